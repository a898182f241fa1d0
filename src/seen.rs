//! Which contents a run has seen, so that `write` never buries what nobody read.
//!
//! Only the latest content per file is kept, by hash: a touched file is still the
//! one that was seen, and a changed one is not. A file that was read in pieces counts
//! as seen once the pieces cover it.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::folder::Hash;

/// How many files one run is remembered to have seen; the oldest go first.
const FILES: usize = 10_000;

/// What one run has seen. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    files: HashMap<PathBuf, Content>,
    order: VecDeque<PathBuf>,
}

#[derive(Debug)]
struct Content {
    hash: Hash,
    /// The lines shown (0-based), sorted, none touching the next.
    shown: Vec<Range<u64>>,
    lines: u64,
}

/// How much of a content a run knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// All of it.
    Whole,
    /// Not this line (1-based) and perhaps others of so many.
    Part { unseen: u64, lines: u64 },
    /// Another content of this file.
    Other,
    /// Nothing of this file.
    Never,
}

impl Seen {
    /// Records that some lines (0-based) of a content with so many lines were shown.
    pub(crate) fn lines(&self, path: &Path, hash: Hash, shown: Range<u64>, lines: u64) {
        let mut contents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match contents.files.get_mut(path) {
            Some(content) if content.hash == hash => {
                content.shown.push(shown);
                merge(&mut content.shown);
            }
            _ => contents.put(path, Content { hash, shown: vec![shown], lines }),
        }
    }

    /// Records that a run knows a content because it wrote it.
    pub(crate) fn wrote(&self, path: &Path, hash: Hash) {
        let mut contents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        contents.put(path, Content { hash, shown: Vec::new(), lines: 0 });
    }

    /// Forgets a file.
    pub(crate) fn forget(&self, path: &Path) {
        let mut contents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        contents.files.remove(path);
        contents.order.retain(|known| known != path);
    }

    /// Says how much of this content the run knows.
    pub(crate) fn sight(&self, path: &Path, hash: Hash) -> Sight {
        let contents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(content) = contents.files.get(path) else { return Sight::Never };
        if content.hash != hash {
            return Sight::Other;
        }
        let unseen = match content.shown.first() {
            Some(first) if first.start == 0 => first.end,
            _ => 0,
        };
        if unseen >= content.lines {
            Sight::Whole
        } else {
            Sight::Part { unseen: unseen + 1, lines: content.lines }
        }
    }
}

impl Contents {
    fn put(&mut self, path: &Path, content: Content) {
        if self.files.insert(path.to_owned(), content).is_some() {
            return;
        }
        self.order.push_back(path.to_owned());
        if self.order.len() > FILES
            && let Some(oldest) = self.order.pop_front()
        {
            self.files.remove(&oldest);
        }
    }
}

fn merge(ranges: &mut Vec<Range<u64>>) {
    ranges.sort_by_key(|range| range.start);
    ranges.dedup_by(|next, kept| {
        let touches = next.start <= kept.end;
        if touches {
            kept.end = kept.end.max(next.end);
        }
        touches
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_seen_once_its_pieces_cover_it() {
        let (seen, path, hash) = (Seen::default(), Path::new("/f"), Hash::of(b"x"));
        assert_eq!(seen.sight(path, hash), Sight::Never);
        let steps: &[(Range<u64>, Sight)] = &[
            (4..6, Sight::Part { unseen: 1, lines: 10 }),
            (0..2, Sight::Part { unseen: 3, lines: 10 }),
            (6..10, Sight::Part { unseen: 3, lines: 10 }),
            (1..4, Sight::Whole),
        ];
        for (shown, sight) in steps {
            seen.lines(path, hash, shown.clone(), 10);
            assert_eq!(seen.sight(path, hash), *sight, "after {shown:?}");
        }
        assert_eq!(seen.sight(path, Hash::of(b"y")), Sight::Other);
        seen.lines(path, Hash::of(b"y"), 0..1, 2);
        assert_eq!(seen.sight(path, hash), Sight::Other);
        assert_eq!(seen.sight(path, Hash::of(b"y")), Sight::Part { unseen: 2, lines: 2 });
        seen.wrote(path, hash);
        assert_eq!(seen.sight(path, hash), Sight::Whole);
        seen.forget(path);
        assert_eq!(seen.sight(path, hash), Sight::Never);
    }

    #[test]
    fn memory_is_bounded() {
        let (seen, hash) = (Seen::default(), Hash::of(b"x"));
        for number in 0..FILES + 10 {
            seen.wrote(Path::new(&format!("/{number}")), hash);
        }
        assert_eq!(seen.sight(Path::new("/9"), hash), Sight::Never);
        assert_eq!(seen.sight(Path::new("/10"), hash), Sight::Whole);
    }
}
