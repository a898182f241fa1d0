//! `grep`: finds lines by a regular expression, on ripgrep's libraries.
//!
//! Files are opened through the work folder, so a race during the walk leads nowhere.
//! Once enough lines are shown the rest is only counted, up to a bound. Details:
//! `matches[{path, line, text}]`, `total` (matching lines), `complete` (was everything
//! looked at), `files_matched`, `files_searched`, `binary_skipped`.

mod collect;

use std::ops::ControlFlow;

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use hostler_actors::ports::BoxFuture;
use hostler_actors::profile::Tier;
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::collect::{Found, Leashed, OneFile};
use crate::folder::disk::{Leash, look};
use crate::folder::walk::Walked;
use crate::folder::{Folder, FolderError, Inside};
use crate::handles::OutputHandles;
use crate::handles::capture::clip;
use crate::seat::Seat;
use crate::tools::glob::{BOUND, Names, left_out, most_results};
use crate::tools::{
    Cancel, Failure, Outcome, Output, Tool, Wired, arguments, never, schema_of, writes_nothing,
};

/// Matching lines that are counted.
const COUNTED: u64 = 100_000;
const MOST_CONTEXT: usize = 50;
/// Bytes of a line that are held to search it.
const LINE_BYTES: usize = 64 * 1024 * 1024;

pub(crate) const TOOL: Tool = Tool {
    name: "grep",
    tier: Tier::Read,
    parallel_safe: true,
    overtakes: never,
    mutates_worktree: false,
    wired: Wired::Folder,
    effects: &[],
    description: "Finds lines that match a regular expression (Rust syntax; (?i) ignores case; \
        lines are matched one by one). Shows path:line:text, sorted by path. Leaves out what git \
        ignores, hidden and binary files; a file named by path is always searched.",
    schema: schema_of::<Args>,
    writes: writes_nothing,
    call,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The regular expression.
    pattern: String,
    /// The file or folder to search; the work folder if left out.
    #[serde(default)]
    path: Option<String>,
    /// Only files whose path below `path` matches, as in the tool glob.
    #[serde(default)]
    glob: Option<String>,
    /// Lines to show before and after each match; 0 if left out.
    #[serde(default)]
    #[schemars(range(max = 50))]
    context: Option<usize>,
    /// How many matching lines to show; 200 if left out, unless configured otherwise.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10_000))]
    max_results: Option<usize>,
}

fn call(seat: &Seat, given: Value, cancel: Cancel) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let args: Args = arguments(TOOL.name, given)?;
        let names =
            args.glob.as_deref().map(|glob| Names::new(TOOL.name, "glob", glob)).transpose()?;
        let usual = seat.languages.config.results.grep;
        let mut search = Search {
            matcher: matcher(&args.pattern)?,
            searcher: searcher(args.context.unwrap_or_default())?,
            folder: seat.folder.clone(),
            found: Found::new(most_results(TOOL.name, args.max_results.unwrap_or(usual))?),
        };
        let handles = seat.handles.clone();
        look(TOOL.name, &cancel, BOUND, move |leash| {
            let start = search.folder.locate(args.path.as_deref().unwrap_or("."))?;
            let walked = search.below(&start, names.as_ref(), leash)?;
            search.told(&handles, &args.pattern, &start, &walked)
        })
        .await
    })
}

fn matcher(pattern: &str) -> Result<RegexMatcher, Failure> {
    RegexMatcherBuilder::new().crlf(true).build(pattern).map_err(|error| {
        Failure::new(format!(
            "grep: `pattern` is not a regular expression for lines; escape what is meant \
             literally: {error}"
        ))
    })
}

fn searcher(context: usize) -> Result<Searcher, Failure> {
    if context > MOST_CONTEXT {
        return Err(Failure::new(format!(
            "grep: `context` is {context}, over the limit of {MOST_CONTEXT} lines: use read"
        )));
    }
    Ok(SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .binary_detection(BinaryDetection::quit(0))
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(LINE_BYTES))
        .build())
}

struct Search {
    matcher: RegexMatcher,
    searcher: Searcher,
    folder: Folder,
    found: Found,
}

impl Search {
    fn below(
        &mut self,
        start: &Inside,
        names: Option<&Names>,
        leash: &Leash,
    ) -> Result<Walked, Failure> {
        let folder = self.folder.clone();
        match folder.kind(start) {
            Some(FileType::Directory) => {}
            Some(_) => {
                let failed = |error| FolderError::of(&start.name(), "searched", error);
                self.file(start, leash)?.map_err(failed)?;
                return Ok(Walked { cut: leash.cut(), ..Walked::default() });
            }
            None => return Err(FolderError::Missing { path: start.name() }.into()),
        }
        let hidden = names.is_some_and(|names| names.hidden);
        Ok(folder.walk(start, hidden, leash, |file| {
            let below = file.absolute().strip_prefix(start.absolute()).unwrap_or(file.relative());
            if names.is_none_or(|names| names.matches(below))
                && !matches!(self.file(&file, leash), Ok(Ok(())))
                && leash.cut().is_none()
            {
                self.found.unreadable += 1;
            }
            if self.found.total < COUNTED {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        }))
    }

    fn file(&mut self, file: &Inside, leash: &Leash) -> Result<std::io::Result<()>, FolderError> {
        let reader = Leashed::new(self.folder.file(file)?, leash);
        let mut one = OneFile::new(&self.matcher, file.name(), self.found.room());
        let searched = self.searcher.search_reader(&self.matcher, reader, &mut one);
        self.found.add(one);
        Ok(searched)
    }

    fn told(
        &self,
        handles: &OutputHandles,
        pattern: &str,
        start: &Inside,
        walked: &Walked,
    ) -> Outcome {
        let found = &self.found;
        let notes = left_out(TOOL.name, walked)?.into_iter().chain(found.notes(COUNTED));
        let mut text = if found.total == 0 {
            format!("no line matches `{pattern}` in {}", start.name())
        } else {
            clip(handles, found.text()).text
        };
        for note in notes {
            text.push_str(&format!("\n({note})"));
        }
        let complete = walked.cut.is_none()
            && walked.unreadable + found.unreadable == 0
            && found.total < COUNTED;
        let details = json!({
            "matches": found.matches(), "total": found.total, "complete": complete,
            "files_matched": found.files_matched, "files_searched": found.files_searched,
            "binary_skipped": found.binary,
        });
        Ok(Output::text(text, details))
    }
}

#[cfg(test)]
mod tests;
