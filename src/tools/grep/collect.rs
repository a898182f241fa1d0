//! What a search finds, on its way from one file to the result.
//!
//! A file's lines are taken over only once it is through: whether it is binary may
//! show after its first matches.

use std::fs::File;
use std::io::{self, Read};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};
use serde::Serialize;

use crate::folder::disk::Leash;

/// Characters shown of a line, and how many of them before the match.
const LINE: usize = 500;
const BEFORE: usize = 100;

/// A line that is shown.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    path: String,
    line: u64,
    text: String,
    #[serde(skip)]
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Match,
    Context,
    Gap,
}

/// What a search found.
#[derive(Debug, Default)]
pub(super) struct Found {
    lines: Vec<Line>,
    shown: usize,
    most: usize,
    pub(super) total: u64,
    pub(super) files_matched: usize,
    pub(super) files_searched: usize,
    pub(super) binary: usize,
    pub(super) unreadable: usize,
}

impl Found {
    pub(super) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Returns how many more matches are to be shown.
    pub(super) fn room(&self) -> usize {
        self.most - self.shown
    }

    /// Takes over what one file had.
    pub(super) fn add(&mut self, one: OneFile<'_>) {
        self.files_searched += 1;
        if one.binary {
            self.binary += 1;
            return;
        }
        self.files_matched += usize::from(one.total > 0);
        self.total += one.total;
        self.shown += one.shown;
        self.lines.extend(one.lines);
    }

    /// Returns the matching lines, without their context.
    pub(super) fn matches(&self) -> Vec<&Line> {
        self.lines.iter().filter(|line| line.kind == Kind::Match).collect()
    }

    pub(super) fn text(&self) -> String {
        let lines = self.lines.iter().map(|Line { path, line, text, kind }| match kind {
            Kind::Match => format!("{path}:{line}:{text}"),
            Kind::Context => format!("{path}-{line}-{text}"),
            Kind::Gap => "--".to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Says what is not shown.
    pub(super) fn notes(&self, counted: u64) -> Vec<String> {
        let mut notes = Vec::new();
        if self.total > self.shown as u64 {
            let more = if self.total >= counted { "at least " } else { "" };
            notes.push(format!(
                "{} of {more}{} matching lines; files that match: {}; narrow it or give max_results",
                self.shown, self.total, self.files_matched
            ));
        } else if self.total == 0 {
            notes.push(format!(
                "files searched: {}; what git ignores and hidden files were not",
                self.files_searched - self.binary
            ));
        }
        if self.binary > 0 {
            notes.push(format!("binary files skipped: {}", self.binary));
        }
        if self.unreadable > 0 {
            notes.push(format!("files that could not be read: {}", self.unreadable));
        }
        notes
    }
}

/// What one file has.
pub(super) struct OneFile<'a> {
    matcher: &'a RegexMatcher,
    path: String,
    room: usize,
    lines: Vec<Line>,
    shown: usize,
    total: u64,
    binary: bool,
}

impl<'a> OneFile<'a> {
    pub(super) fn new(matcher: &'a RegexMatcher, path: String, room: usize) -> Self {
        Self { matcher, path, room, lines: Vec::new(), shown: 0, total: 0, binary: false }
    }

    fn push(&mut self, kind: Kind, number: Option<u64>, bytes: &[u8]) {
        let at = match kind {
            Kind::Match => self.matcher.find(bytes).ok().flatten().map_or(0, |found| found.start()),
            Kind::Context | Kind::Gap => 0,
        };
        let text = excerpt(bytes, at);
        self.lines.push(Line { path: self.path.clone(), line: number.unwrap_or(0), text, kind });
    }
}

impl Sink for OneFile<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.total += 1;
        if self.shown < self.room {
            self.shown += 1;
            self.push(Kind::Match, found.line_number(), found.bytes());
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, io::Error> {
        // What follows the last line shown belongs to it; what leads up to the next does not.
        let of_shown = *line.kind() == SinkContextKind::After && self.total == self.shown as u64;
        if of_shown || self.shown < self.room {
            self.push(Kind::Context, line.line_number(), line.bytes());
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if self.shown < self.room {
            self.push(Kind::Gap, None, b"");
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// Shows a line, or of a long one the piece around a match.
fn excerpt(line: &[u8], at: usize) -> String {
    let before = String::from_utf8_lossy(line.get(..at).unwrap_or_default()).chars().count();
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end_matches(['\r', '\n']);
    if line.chars().count() <= LINE {
        return line.to_owned();
    }
    let from = before.saturating_sub(BEFORE);
    let piece: String = line.chars().skip(from).take(LINE).collect();
    let left = if from > 0 { "[...] " } else { "" };
    format!("{left}{piece} [... cut: the line has {} bytes]", line.len())
}

/// A file whose reading ends with the leash, also in the middle of an endless one.
pub(super) struct Leashed<'a> {
    file: File,
    leash: &'a Leash,
}

impl<'a> Leashed<'a> {
    pub(super) fn new(file: File, leash: &'a Leash) -> Self {
        Self { file, leash }
    }
}

impl Read for Leashed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.leash.cut() {
            // Not `Interrupted`, which readers take as "try again".
            Some(_) => Err(io::ErrorKind::TimedOut.into()),
            None => self.file.read(buffer),
        }
    }
}
