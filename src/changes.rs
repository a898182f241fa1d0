//! Several files changed by one call: the commit, and what the run knows afterwards.
//!
//! The one way for tools that write more than one file. What a tool does not know
//! before it has looked (which files a rename touches) goes through the diagnostics
//! wrapper here; the wrapper around every call takes what the arguments already name.

use hostler_actors::ports::Block;
use serde_json::{Value, json};

use crate::diagnostics;
use crate::diagnostics::details::with;
use crate::folder::Hash;
use crate::folder::commit::{CommitError, Committed, Step};
use crate::folder::disk::change;
use crate::seat::Seat;
use crate::seen::{Seen, Sight};
use crate::tools::{Cancel, Failure, Outcome, Output};

/// Files that a text lists by name.
const NAMED: usize = 20;

/// Makes every step or none, under the locks that the caller holds.
pub(crate) async fn commit(
    seat: &Seat,
    tool: &'static str,
    steps: Vec<Step>,
    cancel: &Cancel,
) -> Result<Committed, Failure> {
    let (folder, seen) = (seat.folder.clone(), seat.seen.clone());
    let journals = seat.journals.clone();
    change(tool, cancel, move || {
        let known: Vec<_> = steps.iter().map(|step| knows(&seen, step)).collect();
        match folder.commit(&steps, &journals) {
            Ok(done) => {
                steps.iter().zip(known).for_each(|(step, known)| learn(&seen, step, known));
                Ok(done)
            }
            Err(error) => Err(refusal(&error)),
        }
    })
    .await
}

/// The same with locks and diagnostics, for tools whose arguments do not name the files.
pub(crate) async fn commit_watched(
    seat: &Seat,
    tool: &'static str,
    steps: Vec<Step>,
    cancel: &Cancel,
    tell: impl FnOnce(&Committed) -> Output,
) -> Outcome {
    let names: Vec<_> = steps.iter().map(|step| step.file().name()).collect();
    let made = async { commit(seat, tool, steps, cancel).await.map(|done| tell(&done)) };
    diagnostics::around(seat, tool, &names, cancel, made).await
}

fn refusal(error: &CommitError) -> Failure {
    let moved = match error {
        CommitError::Moved(files) => files.clone(),
        _ => Vec::new(),
    };
    Failure { message: error.to_string(), details: json!({ "refused": true, "moved": moved }) }
}

/// Says whether the run knows all that a file holds before a step.
fn knows(seen: &Seen, step: &Step) -> bool {
    match step {
        Step::Replace { file, was, .. } => seen.sight(file.absolute(), *was) == Sight::Whole,
        Step::Create { .. } | Step::Delete { .. } => false,
    }
}

/// Who knew the old content knows the new one; who did not has to read it.
fn learn(seen: &Seen, step: &Step, known: bool) {
    let path = step.file().absolute();
    match step {
        Step::Replace { content, .. } if known => seen.wrote(path, Hash::of(content)),
        _ => seen.forget(path),
    }
}

/// Returns what became of a folder's files, as text: one line each, as git names them.
pub(crate) fn listed(steps: &[Step]) -> String {
    let line = |step: &Step| {
        let sign = match step {
            Step::Replace { .. } => "M",
            Step::Create { .. } => "A",
            Step::Delete { .. } => "D",
        };
        format!("{sign} {}", step.file().name())
    };
    let mut lines: Vec<_> = steps.iter().take(NAMED).map(line).collect();
    if let Some(more) = steps.len().checked_sub(NAMED).filter(|more| *more > 0) {
        lines.push(format!("and {more} more files"));
    }
    lines.join("\n")
}

/// Adds what could not be kept.
pub(crate) fn with_lost(mut output: Output, done: &Committed) -> Output {
    if !done.lost.is_empty() {
        let one = |(name, lost): &(String, Vec<&str>)| {
            format!("could not keep of {name}: {}", lost.join(" and "))
        };
        let lines: Vec<_> = done.lost.iter().take(NAMED).map(one).collect();
        output.content.push(Block::Text { text: lines.join("\n") });
    }
    let lost: Vec<Value> =
        done.lost.iter().map(|(name, lost)| json!({ "path": name, "lost": lost })).collect();
    output.details = with(output.details, json!({ "lost": lost }));
    output
}
