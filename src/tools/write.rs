//! `write`: puts a whole text in a file, new or known.
//!
//! Over an existing file only if the run has seen what it holds now (by hash, so a
//! touched file is no change). What `read` hides survives: CRLF line endings and a
//! byte order mark are kept where the new text has none. The caller holds the path's
//! lock. Details: `path`, `created`, `bytes`, `lines`, `kept[]`, `lost[]`.

use hostler_actors::ports::BoxFuture;
use hostler_actors::profile::Tier;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::folder::disk::change;
use crate::folder::{Folder, Hash, Inside};
use crate::seat::Seat;
use crate::seen::{Seen, Sight};
use crate::tools::{
    Cancel, Effect, Failure, Outcome, Output, Tool, Wired, arguments, never, schema_of,
};

/// Bytes of a file that is read whole, to be replaced or edited.
pub(super) const WHOLE_FILE: u64 = 64 * 1024 * 1024;

/// The mark with which some editors begin UTF-8 text.
pub(super) const BOM: &[u8] = b"\xEF\xBB\xBF";

pub(crate) const TOOL: Tool = Tool {
    name: "write",
    tier: Tier::Write,
    parallel_safe: true,
    overtakes: never,
    mutates_worktree: true,
    wired: Wired::Folder,
    effects: &[Effect::WorktreeWrite],
    description: "Writes a whole file, making it and its folders if they are missing. An existing \
        file must have been read by you as it is now; to change a part of it, use edit. Its mode, \
        CRLF line endings and byte order mark are kept.",
    schema: schema_of::<Args>,
    writes: path_argument,
    call,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file, relative to the work folder.
    path: String,
    /// All that the file is to hold.
    content: String,
}

/// Returns the `path` of a call, for tools that write one file.
pub(super) fn path_argument(given: &Value) -> Vec<String> {
    given.get("path").and_then(Value::as_str).map(str::to_owned).into_iter().collect()
}

fn call(seat: &Seat, given: Value, cancel: Cancel) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let args: Args = arguments(TOOL.name, given)?;
        let (folder, seen) = (seat.folder.clone(), seat.seen.clone());
        change(TOOL.name, &cancel, move || write(&folder, &seen, args)).await
    })
}

fn write(folder: &Folder, seen: &Seen, args: Args) -> Outcome {
    let file = folder.locate(&args.path)?;
    let old = match folder.kind(&file) {
        Some(_) => Some(folder.read(&file, WHOLE_FILE)?),
        None => None,
    };
    let expected = old.as_deref().map(Hash::of);
    if let Some(hash) = expected {
        may_replace(seen.sight(file.absolute(), hash), &file)?;
    }
    let (content, kept) = keep_form(args.content.into_bytes(), old.as_deref().unwrap_or_default());
    let replaced = folder.replace(&file, &content, expected)?;
    seen.wrote(file.absolute(), replaced.hash);

    let (name, created) = (file.name(), expected.is_none());
    let lines = line_count(&content);
    let mut text = format!(
        "{} {name}: {lines} {}, {} bytes",
        if created { "created" } else { "replaced" },
        if lines == 1 { "line" } else { "lines" },
        content.len()
    );
    for (word, things) in [("kept", &kept), ("could not keep", &replaced.lost)] {
        if !things.is_empty() {
            text.push_str(&format!("; {word} {}", things.join(" and ")));
        }
    }
    let details = json!({
        "path": name, "created": created, "bytes": content.len(), "lines": lines,
        "kept": kept, "lost": replaced.lost,
    });
    Ok(Output::text(text, details))
}

fn may_replace(sight: Sight, file: &Inside) -> Result<(), Failure> {
    let name = file.name();
    Err(Failure::new(match sight {
        Sight::Whole => return Ok(()),
        Sight::Never => format!(
            "{name}: exists, and you have not read it: read it before you replace it, or use edit"
        ),
        Sight::Other => format!(
            "{name}: has changed since you last saw it: read it again before you replace it"
        ),
        Sight::Part { unseen, lines } => format!(
            "{name}: you have seen a part of its {lines} lines: read on from offset {unseen} \
             before you replace it, or use edit"
        ),
    }))
}

/// Gives a new text the line endings and the mark of the old one, if it has none itself.
fn keep_form(new: Vec<u8>, old: &[u8]) -> (Vec<u8>, Vec<&'static str>) {
    let mut kept = Vec::new();
    let mut new = new;
    if all_crlf(old) && new.contains(&b'\n') && !has_crlf(&new) {
        new = to_crlf(&new);
        kept.push("its CRLF line endings");
    }
    if old.starts_with(BOM) && !new.starts_with(BOM) {
        new.splice(..0, BOM.iter().copied());
        kept.push("its byte order mark");
    }
    (new, kept)
}

fn has_crlf(text: &[u8]) -> bool {
    text.windows(2).any(|pair| pair == b"\r\n")
}

fn all_crlf(text: &[u8]) -> bool {
    let crlf = text.windows(2).filter(|pair| *pair == b"\r\n").count();
    crlf > 0 && crlf == text.iter().filter(|byte| **byte == b'\n').count()
}

/// Turns every LF into CRLF. The text must have no CRLF yet.
pub(super) fn to_crlf(text: &[u8]) -> Vec<u8> {
    let mut crlf = Vec::with_capacity(text.len() + text.len() / 32);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => crlf.extend(line.iter().chain(b"\r\n")),
            None => crlf.extend_from_slice(line),
        }
    }
    crlf
}

/// Counts lines, the last one also where no newline ends it.
pub(super) fn line_count(text: &[u8]) -> usize {
    text.split_inclusive(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests;
