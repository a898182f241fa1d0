//! Texts and their trees, kept for all runs, as long as there is room.
//!
//! Kept by content, so that worktrees of one repository share them. A file whose stamp
//! (place, size, times) is the one at which it was read is not read again; a stamp is
//! only taken over once it is old enough that a later write must have changed it. What
//! is kept and not used goes first. May not write anything.

pub(crate) mod scan;

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ast_grep_language::SupportLang;

use crate::code::parse::{ParseError, TextParser};
use crate::code::tree::Parsed;
use crate::folder::{Folder, FolderError, Hash, Inside, Stamp};

/// Bytes of texts and trees that are kept.
const CAP: usize = 256 * 1024 * 1024;
/// Files whose stamps are remembered.
const FILES: usize = 200_000;
/// Bytes of a file that is parsed: what a person writes is smaller, and a tree takes
/// several times as much.
pub(crate) const LARGEST: u64 = 4 * 1024 * 1024;
/// Clocks of file systems tick every few milliseconds; within a tick a second write
/// leaves the stamp as it was.
const SETTLED: Duration = Duration::from_millis(100);

/// Why a file cannot be searched as code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// It holds zero bytes.
    #[error("binary")]
    Binary,
    /// It is text in another encoding.
    #[error("byte {0} is not UTF-8")]
    NotUtf8(usize),
    /// It is too large.
    #[error("{0} bytes, over the limit of {LARGEST}")]
    TooBig(u64),
    /// It cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// One text, and its tree once somebody wanted it.
pub(crate) struct Source {
    /// The text.
    pub(crate) text: Arc<String>,
    /// Its hash.
    pub(crate) hash: Hash,
    language: SupportLang,
    tree: Mutex<Option<Result<Arc<Parsed>, ParseError>>>,
}

#[derive(Clone)]
enum Held {
    Text(Arc<Source>),
    Binary,
    NotUtf8(usize),
}

struct Kept {
    source: Arc<Source>,
    used: u64,
    bytes: usize,
}

#[derive(Default)]
struct Store {
    files: HashMap<(u64, u64, SupportLang), (Stamp, Held)>,
    contents: HashMap<(Hash, SupportLang), Kept>,
    bytes: usize,
    clock: u64,
}

/// The texts and trees of all runs. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct Trees(Arc<Mutex<Store>>);

impl Trees {
    fn store(&self) -> std::sync::MutexGuard<'_, Store> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets everything go.
    pub(crate) fn clear(&self) {
        *self.store() = Store::default();
    }

    /// Returns how many bytes are kept.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.store().bytes
    }

    /// Returns the text of a file as it is now.
    pub(crate) fn source(
        &self,
        folder: &Folder,
        file: &Inside,
        language: SupportLang,
    ) -> Result<Arc<Source>, Unread> {
        let stamp = folder.stamp(file)?;
        let key = (stamp.device(), stamp.inode(), language);
        let known = self.store().known(key, &stamp);
        let held = match known {
            Some(held) => held,
            None => {
                let (stamp, held) = self.read(folder, file, language)?;
                if stamp.age() >= SETTLED {
                    self.store().remember((stamp.device(), stamp.inode(), language), stamp, &held);
                }
                held
            }
        };
        match held {
            Held::Text(source) => Ok(source),
            Held::Binary => Err(Unread::Binary),
            Held::NotUtf8(at) => Err(Unread::NotUtf8(at)),
        }
    }

    fn read(
        &self,
        folder: &Folder,
        file: &Inside,
        language: SupportLang,
    ) -> Result<(Stamp, Held), Unread> {
        let open = folder.file(file)?;
        let failed = |error| Unread::from(FolderError::of(&file.name(), "read", error));
        // Before the reading: a write during it makes the stamp a wrong one.
        let stamp = Stamp::of(&open).map_err(failed)?;
        if stamp.size() > LARGEST {
            return Err(Unread::TooBig(stamp.size()));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(stamp.size()).unwrap_or_default() + 1);
        open.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > LARGEST {
            return Err(Unread::TooBig(bytes.len() as u64));
        }
        if memchr::memchr(0, &bytes).is_some() {
            return Ok((stamp, Held::Binary));
        }
        let hash = Hash::of(&bytes);
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => return Ok((stamp, Held::NotUtf8(error.utf8_error().valid_up_to()))),
        };
        Ok((stamp, Held::Text(self.store().content(hash, text, language))))
    }

    /// Returns the tree of a text, parsed now if it never was.
    pub(crate) fn tree(
        &self,
        source: &Arc<Source>,
        parser: &mut Option<TextParser>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Arc<Parsed>, ParseError> {
        let mut tree = source.tree.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = tree.as_ref() {
            return tree.clone();
        }
        let parser = match parser {
            Some(parser) => parser,
            None => parser.insert(TextParser::new(source.language)?),
        };
        let parsed = parser.parse(&source.text, stop).map(Arc::new);
        if parsed.as_ref().err() != Some(&ParseError::Stopped) {
            *tree = Some(parsed.clone());
        }
        drop(tree);
        if let Ok(parsed) = &parsed {
            self.store().grown(source, parsed.bytes());
        }
        parsed
    }
}

impl Store {
    fn known(&mut self, key: (u64, u64, SupportLang), stamp: &Stamp) -> Option<Held> {
        let (known, held) = self.files.get(&key)?;
        if known != stamp {
            return None;
        }
        let held = held.clone();
        if let Held::Text(source) = &held {
            self.clock += 1;
            // One that had to go is kept by nobody else, and so is read again.
            self.contents.get_mut(&(source.hash, source.language))?.used = self.clock;
        }
        Some(held)
    }

    fn remember(&mut self, key: (u64, u64, SupportLang), stamp: Stamp, held: &Held) {
        if self.files.len() >= FILES {
            self.files.clear();
        }
        self.files.insert(key, (stamp, held.clone()));
    }

    fn content(&mut self, hash: Hash, text: String, language: SupportLang) -> Arc<Source> {
        self.clock += 1;
        let used = self.clock;
        if let Some(kept) = self.contents.get_mut(&(hash, language)) {
            kept.used = used;
            return Arc::clone(&kept.source);
        }
        let bytes = text.len();
        let source =
            Arc::new(Source { text: Arc::new(text), hash, language, tree: Mutex::default() });
        self.contents.insert((hash, language), Kept { source: Arc::clone(&source), used, bytes });
        self.bytes += bytes;
        self.make_room();
        source
    }

    fn grown(&mut self, source: &Source, bytes: usize) {
        if let Some(kept) = self.contents.get_mut(&(source.hash, source.language)) {
            kept.bytes += bytes;
            self.bytes += bytes;
            self.make_room();
        }
    }

    /// Lets the longest unused go, a quarter at once: to sort for each would be dear.
    fn make_room(&mut self) {
        if self.bytes <= CAP {
            return;
        }
        let mut by_use: Vec<_> =
            self.contents.iter().map(|(key, kept)| (kept.used, *key)).collect();
        by_use.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in by_use {
            if self.bytes <= CAP / 4 * 3 {
                break;
            }
            if let Some(kept) = self.contents.remove(&key) {
                self.bytes -= kept.bytes;
            }
        }
        let contents = &self.contents;
        self.files.retain(|_, (_, held)| match held {
            Held::Text(source) => contents.contains_key(&(source.hash, source.language)),
            Held::Binary | Held::NotUtf8(_) => true,
        });
    }
}

#[cfg(test)]
mod tests;
