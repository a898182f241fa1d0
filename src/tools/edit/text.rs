//! What an edit makes of a content: pure.
//!
//! Matching is done on a view of the content in which CRLF is LF, with the places of
//! the removed CRs kept, so that one `\n` in `old_text` stands for either. New lines
//! get the ending of the text that they replace. A byte order mark is outside the view.

use super::nearest::{Nearest, nearest};
use crate::tools::write::{BOM, to_crlf};

/// Places that are told at most.
const PLACES: usize = 20;

/// What an edit made.
#[derive(Debug)]
pub(super) struct Edited {
    /// The whole new content.
    pub(super) content: Vec<u8>,
    /// How many pieces were replaced.
    pub(super) count: usize,
    /// Where the first of them stand now.
    pub(super) spots: Vec<Spot>,
}

/// The lines (1-based) on which a new text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) first_line: usize,
    pub(super) last_line: usize,
}

/// Why nothing was edited.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("old_text is empty: give the text to replace, or use write for a whole file")]
    Empty,
    #[error("old_text and new_text are the same: nothing to do")]
    Same,
    #[error("old_text does not occur{nearest}")]
    NotFound { nearest: Nearest },
    #[error(
        "old_text occurs {count} times, on lines {}: give more of the lines around the one you \
         mean, or set replace_all", list(.lines, *.count)
    )]
    Ambiguous { count: usize, lines: Vec<usize> },
}

fn list(lines: &[usize], count: usize) -> String {
    let shown: Vec<_> = lines.iter().map(usize::to_string).collect();
    format!("{}{}", shown.join(", "), if count > lines.len() { ", ..." } else { "" })
}

/// Replaces `old` by `new` in a content.
pub(super) fn apply(content: &[u8], old: &str, new: &str, all: bool) -> Result<Edited, Refused> {
    let (old, new) = (plain(old), plain(new));
    if old.is_empty() {
        return Err(Refused::Empty);
    }
    if old == new {
        return Err(Refused::Same);
    }
    let mark = if content.starts_with(BOM) { BOM.len() } else { 0 };
    let (mark, body) = content.split_at(mark);
    let view = View::of(body);
    let found = view.occurrences(&old, !all);
    match found.len() {
        0 => Err(Refused::NotFound { nearest: nearest(&view.text, &old) }),
        1 => Ok(view.replace(mark, body, &found, old.len(), &new)),
        _ if all => Ok(view.replace(mark, body, &found, old.len(), &new)),
        count => {
            let mut lines = view.lines_of(&found);
            lines.truncate(PLACES);
            Err(Refused::Ambiguous { count, lines })
        }
    }
}

/// Strips what the view does not have.
fn plain(text: &str) -> Vec<u8> {
    text.strip_prefix('\u{FEFF}').unwrap_or(text).replace("\r\n", "\n").into_bytes()
}

struct View {
    text: Vec<u8>,
    /// Where in `text` the LFs are that had a CR.
    crlf: Vec<usize>,
}

impl View {
    fn of(body: &[u8]) -> Self {
        let (mut text, mut crlf) = (Vec::with_capacity(body.len()), Vec::new());
        for line in body.split_inclusive(|byte| *byte == b'\n') {
            match line.strip_suffix(b"\r\n") {
                Some(line) => {
                    text.extend_from_slice(line);
                    crlf.push(text.len());
                    text.push(b'\n');
                }
                None => text.extend_from_slice(line),
            }
        }
        Self { text, crlf }
    }

    /// Finds every occurrence, those that overlap another one only on demand: they
    /// make a single replacement ambiguous, but cannot all be replaced.
    fn occurrences(&self, old: &[u8], overlapping: bool) -> Vec<usize> {
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some(rest) = self.text.get(from..)
            && let Some(at) = rest.windows(old.len()).position(|window| window == old)
        {
            found.push(from + at);
            from += at + if overlapping { 1 } else { old.len() };
        }
        found
    }

    fn lines_of(&self, places: &[usize]) -> Vec<usize> {
        let (mut line, mut counted) = (1, 0);
        let mut lines = Vec::new();
        for place in places {
            line += newlines(self.text.get(counted..*place).unwrap_or_default());
            counted = *place;
            lines.push(line);
        }
        lines
    }

    /// Returns where in the body a place of the view is.
    fn original(&self, place: usize) -> usize {
        place + self.crlf.partition_point(|at| *at < place)
    }

    /// Says whether lines put in the place of a range end in CRLF.
    fn is_crlf(&self, from: usize, to: usize) -> bool {
        let newline = |range: std::ops::Range<usize>| {
            let start = range.start;
            let at = self.text.get(range)?.iter().position(|byte| *byte == b'\n')?;
            Some(start + at)
        };
        let before = || self.text.get(..from)?.iter().rposition(|byte| *byte == b'\n');
        newline(from..to)
            .or_else(|| newline(to..self.text.len()))
            .or_else(before)
            .is_some_and(|at| self.crlf.binary_search(&at).is_ok())
    }

    fn replace(&self, mark: &[u8], body: &[u8], at: &[usize], old: usize, new: &[u8]) -> Edited {
        let mut content = mark.to_vec();
        let (mut copied, mut line, mut spots) = (0, 1, Vec::new());
        for from in at.iter().copied() {
            let (start, end) = (self.original(from), self.original(from + old));
            let before = body.get(copied..start).unwrap_or_default();
            content.extend_from_slice(before);
            copied = end;
            line += newlines(before);
            let first_line = line;
            if self.is_crlf(from, from + old) {
                content.extend(to_crlf(new));
            } else {
                content.extend_from_slice(new);
            }
            line += newlines(new);
            if spots.len() < PLACES {
                // A text that ends its line does not stand on the next one.
                let last_line = if new.ends_with(b"\n") { line - 1 } else { line };
                spots.push(Spot { first_line, last_line });
            }
        }
        content.extend_from_slice(body.get(copied..).unwrap_or_default());
        Edited { content, count: at.len(), spots }
    }
}

fn newlines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}
