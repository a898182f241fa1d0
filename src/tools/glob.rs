//! `glob`: finds files by their path, in the order of their paths.
//!
//! By path and not by time, so that the same tree gives the same answer. Details:
//! `paths[]`, `total` (of all that match), `complete` (was everything looked at).

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use globset::{GlobBuilder, GlobMatcher};
use hostler_actors::ports::BoxFuture;
use hostler_actors::profile::Tier;
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::folder::disk::{Leash, cancelled, look};
use crate::folder::walk::Walked;
use crate::folder::{Folder, FolderError};
use crate::handles::OutputHandles;
use crate::handles::capture::clip;
use crate::seat::Seat;
use crate::tools::{
    Cancel, Failure, Outcome, Output, Tool, Wired, arguments, never, schema_of, writes_nothing,
};

pub(super) const MOST_RESULTS: usize = 10_000;
/// How long a search may take.
pub(super) const BOUND: Duration = Duration::from_secs(30);

pub(crate) const TOOL: Tool = Tool {
    name: "glob",
    tier: Tier::Read,
    parallel_safe: true,
    overtakes: never,
    mutates_worktree: false,
    wired: Wired::Folder,
    effects: &[],
    description: "Finds files by path: * and ? stay within a name, ** crosses folders, {a,b} gives \
        choices. A pattern without / matches names at any depth. Sorted by path. Leaves out what \
        git ignores, and hidden files unless the pattern names a dot. Does not follow symbolic \
        links.",
    schema: schema_of::<Args>,
    writes: writes_nothing,
    call,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The pattern, relative to `path`.
    pattern: String,
    /// The folder to look in; the work folder if left out.
    #[serde(default)]
    path: Option<String>,
    /// How many paths to show; 200 if left out, unless configured otherwise.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10_000))]
    max_results: Option<usize>,
}

fn call(seat: &Seat, given: Value, cancel: Cancel) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let args: Args = arguments(TOOL.name, given)?;
        let names = Names::new(TOOL.name, "pattern", &args.pattern)?;
        let usual = seat.languages.config.results.glob;
        let most = most_results(TOOL.name, args.max_results.unwrap_or(usual))?;
        let (folder, handles) = (seat.folder.clone(), seat.handles.clone());
        look(TOOL.name, &cancel, BOUND, move |leash| {
            find(&folder, &handles, &args, &names, most, leash)
        })
        .await
    })
}

/// A pattern for the paths below a folder.
pub(super) struct Names {
    glob: GlobMatcher,
    /// Does it ask for hidden files.
    pub(super) hidden: bool,
}

impl Names {
    /// Reads the pattern that stands in a tool's argument.
    pub(super) fn new(tool: &str, argument: &str, given: &str) -> Result<Self, Failure> {
        let pattern = given.strip_prefix("./").unwrap_or(given);
        let bad = |why: &str| Failure::new(format!("{tool}: `{argument}` `{given}`: {why}"));
        if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
            return Err(bad("is relative to `path`: name the folder there"));
        }
        let anywhere = if pattern.contains('/') { "" } else { "**/" };
        let glob = GlobBuilder::new(&format!("{anywhere}{pattern}"))
            .literal_separator(true)
            .build()
            .map_err(|error| bad(&format!("is not a pattern: {}", error.kind())))?;
        let hidden = pattern.split('/').any(|part| part.starts_with('.'));
        Ok(Self { glob: glob.compile_matcher(), hidden })
    }

    /// Says whether a path below the folder matches.
    pub(super) fn matches(&self, below: &Path) -> bool {
        self.glob.is_match(below)
    }
}

pub(super) fn most_results(tool: &str, most: usize) -> Result<usize, Failure> {
    match most {
        most @ 1..=MOST_RESULTS => Ok(most),
        most => Err(Failure::new(format!(
            "{tool}: `max_results` is {most}: give 1 to {MOST_RESULTS}, and narrow the search"
        ))),
    }
}

/// Says what a search left out, one note each. What was cancelled is a failure.
pub(super) fn left_out(tool: &str, walked: &Walked) -> Result<Vec<String>, Failure> {
    use crate::folder::disk::Cut;
    let mut notes = Vec::new();
    match walked.cut {
        Some(Cut::Cancelled) => return Err(cancelled(tool, "nothing was changed")),
        Some(Cut::TimedOut) => notes.push(format!(
            "stopped after {} s, so this is not all: narrow it with `path`",
            BOUND.as_secs()
        )),
        None => {}
    }
    if walked.unreadable > 0 {
        notes.push(format!("folders that could not be read: {}", walked.unreadable));
    }
    if walked.worktrees > 0 {
        notes.push(format!("other git worktrees left out: {}", walked.worktrees));
    }
    Ok(notes)
}

fn find(
    folder: &Folder,
    handles: &OutputHandles,
    args: &Args,
    names: &Names,
    most: usize,
    leash: &Leash,
) -> Outcome {
    let start = folder.locate(args.path.as_deref().unwrap_or("."))?;
    match folder.kind(&start) {
        Some(FileType::Directory) => {}
        Some(_) => return Err(FolderError::NotAFolder { path: start.name() }.into()),
        None => return Err(FolderError::Missing { path: start.name() }.into()),
    }
    let (mut paths, mut total) = (Vec::new(), 0_usize);
    let walked = folder.walk(&start, names.hidden, leash, |file| {
        let below = file.absolute().strip_prefix(start.absolute()).unwrap_or(file.relative());
        if names.matches(below) {
            total += 1;
            // Looked at again, confined: the walk may have been led astray by a race.
            if paths.len() < most && folder.kind(&file) == Some(FileType::RegularFile) {
                paths.push(file.name());
            }
        }
        ControlFlow::Continue(())
    });
    let mut notes = left_out(TOOL.name, &walked)?;
    if total > paths.len() {
        notes.insert(0, format!("{} of {total}; give max_results or narrow it", paths.len()));
    }
    let mut text = if paths.is_empty() {
        format!(
            "no file matches `{}` in {}; what git ignores and hidden files were not looked at",
            args.pattern,
            start.name()
        )
    } else {
        clip(handles, paths.join("\n")).text
    };
    for note in notes {
        text.push_str(&format!("\n({note})"));
    }
    let complete = walked.cut.is_none() && walked.unreadable == 0;
    Ok(Output::text(text, json!({ "paths": paths, "total": total, "complete": complete })))
}

#[cfg(test)]
mod tests;
