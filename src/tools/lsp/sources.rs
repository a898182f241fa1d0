//! Places as they are shown: file, line, column and the line's text.
//!
//! A file outside the folder is shown by its absolute path, and the run may read it
//! from then on: a `definition` must lead somewhere. Reads are bounded and happen on
//! a thread of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use hostler_actors::host::language_server::text::{Encoding, Lines, Position};
use serde::Serialize;

use super::symbol;
use crate::diagnostics::documents::shown;
use crate::folder::Folder;

/// Of a file's text no more than this is looked at.
const LARGEST: u64 = 8 * 1024 * 1024;

/// A place as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Spot {
    /// The file: relative to the folder, or absolute where it is outside.
    pub(super) path: String,
    /// The line, from 1.
    pub(super) line: u32,
    /// The character of the line, from 1.
    pub(super) column: u32,
    /// The line; empty where the file could not be read.
    pub(super) text: String,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path, self.line, self.column)?;
        if self.text.is_empty() { Ok(()) } else { write!(f, "  {}", self.text) }
    }
}

/// A place as a server gave it.
#[derive(Clone, Debug)]
pub(super) struct Unshown {
    /// The file.
    pub(super) path: PathBuf,
    /// Where in it.
    pub(super) start: Position,
    /// How its column counts.
    pub(super) encoding: Encoding,
}

/// Returns how places are shown, in their order.
pub(super) async fn spots(folder: &Folder, places: Vec<Unshown>) -> Vec<Spot> {
    let folder = folder.clone();
    let looked = tokio::task::spawn_blocking(move || {
        let mut by_path: BTreeMap<&Path, Vec<(usize, &Unshown)>> = BTreeMap::new();
        for (at, place) in places.iter().enumerate() {
            by_path.entry(&place.path).or_default().push((at, place));
        }
        let mut spots = BTreeMap::new();
        for (path, places) in by_path {
            let text = text_of(&folder, path).unwrap_or_default();
            let lines = Lines::new(&text);
            let path = shown(folder.root(), path);
            for (at, place) in places {
                spots.insert(at, spot(path.clone(), &lines, place.start, place.encoding));
            }
        }
        spots.into_values().collect()
    });
    // Fails only where the host is shutting down, and nobody reads the result then.
    looked.await.unwrap_or_default()
}

fn spot(path: String, lines: &Lines<'_>, position: Position, encoding: Encoding) -> Spot {
    let line = usize::try_from(position.line).ok().and_then(|line| lines.line(line));
    let column = match line {
        Some(_) => lines.position(lines.offset(position, encoding), Encoding::Utf32).character,
        None => position.character,
    };
    Spot {
        path,
        line: position.line.saturating_add(1),
        column: column.saturating_add(1),
        text: line.map(symbol::shown).unwrap_or_default(),
    }
}

fn text_of(folder: &Folder, path: &Path) -> Option<String> {
    let file = if path.starts_with(folder.root()) {
        folder.file(&folder.locate(path.to_str()?).ok()?).ok()?
    } else {
        folder.allow_outside(path);
        folder.allowed_file(&path.canonicalize().ok()?)?.ok()?
    };
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
