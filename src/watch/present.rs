//! Which files are there, to tell a new one from one that was replaced.
//!
//! The kernel calls both a file that was moved to a name, and `sed -i`, most editors
//! and our own tools replace files so. A server that is told of a new file where it
//! knows one need not read it again, and some do not. Names are kept as hashes: a
//! large checkout has some hundred thousand.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The names of files, by folder.
#[derive(Debug, Default)]
pub(super) struct Present(HashMap<PathBuf, HashSet<u64>>);

fn hash(name: &OsStr) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

impl Present {
    /// Adds a file. Says whether it is new.
    pub(super) fn add(&mut self, folder: &Path, name: &OsStr) -> bool {
        let hash = hash(name);
        match self.0.get_mut(folder) {
            Some(names) => names.insert(hash),
            None => self.0.insert(folder.to_owned(), HashSet::from([hash])).is_none(),
        }
    }

    /// Takes a file away.
    pub(super) fn remove(&mut self, folder: &Path, name: &OsStr) {
        if let Some(names) = self.0.get_mut(folder) {
            names.remove(&hash(name));
        }
    }

    /// Takes everything in and below a folder away.
    pub(super) fn remove_below(&mut self, top: &Path) {
        self.0.retain(|folder, _| !folder.starts_with(top));
    }
}
