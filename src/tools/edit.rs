//! `edit`: replaces an exact piece of a file.
//!
//! The deciding is in `text`, on bytes, so that a file in another encoding keeps every
//! byte that was not asked for. Between reading and replacing the content is compared
//! by hash. The caller holds the path's lock. Details: `path`, `replacements`,
//! `lines[]` (where the new text stands, the first 20), `lost[]`.

mod nearest;
mod text;

use hostler_actors::ports::BoxFuture;
use hostler_actors::profile::Tier;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::text::{Edited, Refused, Spot, apply};
use crate::folder::disk::change;
use crate::folder::{Folder, Hash};
use crate::seat::Seat;
use crate::seen::{Seen, Sight};
use crate::tools::write::{WHOLE_FILE, path_argument};
use crate::tools::{
    Cancel, Effect, Failure, Outcome, Output, Tool, Wired, arguments, never, schema_of,
};

/// Lines shown before and after the new text.
const AROUND: usize = 3;
/// Lines shown of the new text itself.
const SHOWN: usize = 20;

pub(crate) const TOOL: Tool = Tool {
    name: "edit",
    tier: Tier::Write,
    parallel_safe: true,
    overtakes: never,
    mutates_worktree: true,
    wired: Wired::Folder,
    effects: &[Effect::WorktreeWrite],
    description: "Replaces an exact piece of a file. old_text must stand there exactly once, white \
        space included, without the line numbers that read shows; set replace_all to replace every \
        occurrence. Write line breaks as \\n, also in files with CRLF line endings: those are kept.",
    schema: schema_of::<Args>,
    writes: path_argument,
    call,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file, relative to the work folder.
    path: String,
    /// The text to replace, exactly as it stands in the file.
    old_text: String,
    /// The text to put there, taken literally.
    new_text: String,
    /// Replace every occurrence and not just the only one.
    #[serde(default)]
    replace_all: bool,
}

fn call(seat: &Seat, given: Value, cancel: Cancel) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let args: Args = arguments(TOOL.name, given)?;
        let (folder, seen) = (seat.folder.clone(), seat.seen.clone());
        let line_chars = seat.languages.config.results.line_chars;
        change(TOOL.name, &cancel, move || edit(&folder, &seen, &args, line_chars)).await
    })
}

fn edit(folder: &Folder, seen: &Seen, args: &Args, line_chars: usize) -> Outcome {
    let file = folder.locate(&args.path)?;
    let (name, old) = (file.name(), folder.read(&file, WHOLE_FILE)?);
    let (hash, path) = (Hash::of(&old), file.absolute());
    let sight = seen.sight(path, hash);
    let edited =
        apply(&old, &args.old_text, &args.new_text, args.replace_all).map_err(|refused| {
            let stale = sight == Sight::Other && !matches!(refused, Refused::Same | Refused::Empty);
            refusal(&name, &refused, stale)
        })?;
    let replaced = folder.replace(&file, &edited.content, Some(hash))?;
    // Who knew the old content knows the new one; who did not has to read it.
    match sight {
        Sight::Whole => seen.wrote(path, replaced.hash),
        Sight::Part { .. } | Sight::Other | Sight::Never => seen.forget(path),
    }

    let mut text = format!("{name}: {}\n{}", summary(&edited), context(&edited, line_chars));
    if !replaced.lost.is_empty() {
        text.push_str(&format!("\ncould not keep {}", replaced.lost.join(" and ")));
    }
    let lines: Vec<usize> = edited.spots.iter().map(|spot| spot.first_line).collect();
    let details = json!({
        "path": name, "replacements": edited.count, "lines": lines, "lost": replaced.lost,
    });
    Ok(Output::text(text, details))
}

fn refusal(name: &str, refused: &Refused, stale: bool) -> Failure {
    let mut message = format!("{name}: {refused}");
    if stale {
        message.push_str("\nThe file has changed since you last saw it: read it again.");
    }
    let details = match refused {
        Refused::Ambiguous { count, lines } => json!({ "occurrences": count, "lines": lines }),
        Refused::NotFound { .. } => json!({ "occurrences": 0 }),
        Refused::Empty | Refused::Same => json!({}),
    };
    Failure { message, details }
}

fn summary(edited: &Edited) -> String {
    let Some(first) = edited.spots.first() else { return String::new() };
    match edited.count {
        1 if first.last_line > first.first_line => {
            format!("replaced 1 occurrence, now lines {} to {}", first.first_line, first.last_line)
        }
        1 => format!("replaced 1 occurrence, now line {}", first.first_line),
        count => {
            let more = if count > edited.spots.len() { ", ..." } else { "" };
            let lines: Vec<_> = edited.spots.iter().map(|s| s.first_line.to_string()).collect();
            format!("replaced {count} occurrences, now on lines {}{more}", lines.join(", "))
        }
    }
}

/// Shows the first place that changed, as `read` would.
fn context(edited: &Edited, line_chars: usize) -> String {
    let Some(Spot { first_line, last_line }) = edited.spots.first().copied() else {
        return String::new();
    };
    let from = first_line.saturating_sub(AROUND + 1);
    let cut = last_line - first_line >= SHOWN;
    let to = if cut { first_line + SHOWN - 1 } else { last_line + AROUND };
    let lines = edited.content.split_inclusive(|byte| *byte == b'\n').enumerate();
    let mut shown: Vec<_> = lines
        .take(to)
        .skip(from)
        .map(|(index, line)| super::read::numbered(index as u64 + 1, line, line_chars))
        .collect();
    if cut {
        shown.push(format!("       (to line {last_line})"));
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests;
