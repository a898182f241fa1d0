//! `read`: shows a file to the model, by numbered lines, as an image or as a sentence.
//!
//! A file is streamed, so that a page of a large one costs no memory, and hashed on the
//! way, so that `write` knows what was seen. Besides the work folder it reads a run's
//! own `hostler://` results and files that a language server named to it.
//! Details: `path`, `kind` (`text`, `image`, `binary`), `bytes`; of text also
//! `first_line`, `last_line`, `total_lines`, `next_offset` (null where there is none).

mod page;

use std::fs::File;
use std::io::{Read, Seek};
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hostler_actors::ports::{Block, BoxFuture};
use hostler_actors::profile::Tier;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) use self::page::numbered;
use self::page::{Page, Wanted};
use crate::folder::disk::{Leash, look};
use crate::folder::{Folder, FolderError};
use crate::handles::{OutputHandles, SCHEME};
use crate::seat::Seat;
use crate::seen::Seen;
use crate::tools::{
    Cancel, Failure, Outcome, Output, Tool, Wired, arguments, never, schema_of, writes_nothing,
};

const LINES: u64 = 2_000;
/// What providers take as one image.
const IMAGE_BYTES: u64 = 5 * 1024 * 1024;
/// Bytes in which a NUL makes a file binary, as git has it.
const SNIFFED: u64 = 8_000;
const BOUND: Duration = Duration::from_secs(30);

pub(crate) const TOOL: Tool = Tool {
    name: "read",
    tier: Tier::Read,
    parallel_safe: true,
    overtakes: never,
    mutates_worktree: false,
    wired: Wired::Folder,
    effects: &[],
    description: "Reads a file: numbered lines (at most 2,000 lines or 64 KiB a call; very long \
        lines are cut, which is said), or an image. Also reads hostler:// handles of long results. Says how \
        many lines there are and with which offset to go on.",
    schema: schema_of::<Args>,
    writes: writes_nothing,
    call,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file, relative to the work folder, or a hostler:// handle.
    path: String,
    /// The first line to show; the first of a file is 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// How many lines to show; 2,000 if left out.
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

fn call(seat: &Seat, given: Value, cancel: Cancel) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let args: Args = arguments(TOOL.name, given)?;
        for (name, value) in [("offset", args.offset), ("limit", args.limit)] {
            if value == Some(0) {
                return Err(Failure::new(format!("read: `{name}` counts from 1, and 0 was given")));
            }
        }
        let line_chars = seat.languages.config.results.line_chars;
        let (folder, handles, seen) =
            (seat.folder.clone(), seat.handles.clone(), seat.seen.clone());
        look(TOOL.name, &cancel, BOUND, move |leash| {
            read(&Source::open(&folder, &handles, &args.path)?, &seen, &args, line_chars, leash)
        })
        .await
    })
}

/// Something that can be read.
struct Source {
    file: File,
    name: String,
    /// Where it is recorded as seen; `None` for what cannot be written anyway.
    seen_as: Option<PathBuf>,
}

impl Source {
    fn open(folder: &Folder, handles: &OutputHandles, given: &str) -> Result<Self, Failure> {
        if given.starts_with(SCHEME) {
            return Ok(Self { file: handles.open(given)?, name: given.to_owned(), seen_as: None });
        }
        match folder.locate(given) {
            Ok(inside) => Ok(Self {
                file: folder.file(&inside)?,
                name: inside.name(),
                seen_as: Some(inside.absolute().to_owned()),
            }),
            Err(FolderError::Outside { given, leads_to, root }) => {
                match folder.allowed_file(&leads_to) {
                    Some(file) => Ok(Self { file: file?, name: given, seen_as: None }),
                    None => Err(FolderError::Outside { given, leads_to, root }.into()),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    fn failed(&self, error: std::io::Error) -> Failure {
        FolderError::of(&self.name, "read", error).into()
    }
}

fn read(source: &Source, seen: &Seen, args: &Args, line_chars: usize, leash: &Leash) -> Outcome {
    let mut file = &source.file;
    let bytes = file.metadata().map_err(|error| source.failed(error))?.len();
    let mut head = Vec::new();
    file.take(SNIFFED).read_to_end(&mut head).map_err(|error| source.failed(error))?;
    file.rewind().map_err(|error| source.failed(error))?;
    if let Some(mime_type) = image(&head) {
        return show_image(source, mime_type, bytes);
    }
    if head.contains(&0) || head.starts_with(b"%PDF-") {
        let text =
            format!("{} is {} of {bytes} bytes and not shown", source.name, binary_kind(&head));
        return Ok(Output::text(
            text,
            json!({
                "path": source.name, "kind": "binary", "bytes": bytes,
            }),
        ));
    }
    let first = args.offset.unwrap_or(1) - 1;
    let wanted = Wanted { first, lines: args.limit.unwrap_or(LINES), bytes, line_chars };
    let page = Page::of(file, &wanted, leash).map_err(|error| source.failed(error))?;
    if first > 0 && page.shown.is_empty() && page.total.is_some_and(|total| first >= total) {
        return Err(Failure::new(format!(
            "{}: has {} lines, and offset {} is behind them",
            source.name,
            page.total.unwrap_or_default(),
            first + 1
        )));
    }
    if let (Some(path), Some(hash), Some(total)) = (&source.seen_as, page.hash, page.total) {
        seen.lines(path, hash, page.shown.clone(), total);
    }
    let details = json!({
        "path": source.name, "kind": "text", "bytes": bytes,
        "first_line": page.shown.start + 1, "last_line": page.shown.end,
        "total_lines": page.total, "next_offset": page.next_offset(),
    });
    Ok(Output::text(page.render(&source.name), details))
}

fn show_image(source: &Source, mime_type: &str, bytes: u64) -> Outcome {
    let mut data = Vec::new();
    (&source.file)
        .take(IMAGE_BYTES + 1)
        .read_to_end(&mut data)
        .map_err(|error| source.failed(error))?;
    if data.len() as u64 > IMAGE_BYTES {
        return Err(Failure::new(format!(
            "{}: an image of {bytes} bytes, over the limit of {IMAGE_BYTES}: make a smaller copy",
            source.name
        )));
    }
    Ok(Output {
        content: vec![
            Block::Text { text: format!("{}: {mime_type}, {bytes} bytes", source.name) },
            Block::Image { mime_type: mime_type.to_owned(), data: STANDARD.encode(&data) },
        ],
        details: json!({
            "path": source.name, "kind": "image", "bytes": bytes, "mime_type": mime_type,
        }),
    })
}

fn image(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn binary_kind(head: &[u8]) -> &'static str {
    match head {
        [0x7F, b'E', b'L', b'F', ..] => "a binary (ELF: a program or library)",
        [b'P', b'K', 3, 4, ..] => "a zip archive",
        [0x1F, 0x8B, ..] => "a gzip archive",
        [b'%', b'P', b'D', b'F', ..] => "a PDF document",
        [b'S', b'Q', b'L', b'i', b't', b'e', ..] => "an SQLite database",
        [0, b'a', b's', b'm', ..] => "a WebAssembly module",
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "a UTF-16 text (iconv -f UTF-16 makes it readable)",
        _ => "a binary file",
    }
}

#[cfg(test)]
mod tests;
