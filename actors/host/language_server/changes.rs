//! Changes of files that a server was not told of yet. Pure.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::uri;
use crate::ports::{FileChange, FileChangeKind};

/// Files kept. A branch switched in a large checkout changes some ten thousand.
const MOST: usize = 20_000;
/// Files in one notification.
const CHUNK: usize = 2000;

/// What became of files since a server was last told, each file once.
#[derive(Debug, Default)]
pub(super) struct Changes {
    by_path: BTreeMap<Arc<Path>, FileChangeKind>,
    overflowed: bool,
}

impl Changes {
    /// Adds what became of a file to what is known of it.
    pub(super) fn add(&mut self, FileChange { path, kind }: FileChange) {
        use FileChangeKind::{Changed, Created, Deleted};
        if self.by_path.len() >= MOST && !self.by_path.contains_key(&path) {
            self.overflowed = true;
            return;
        }
        let known = self.by_path.entry(path).or_insert(kind);
        *known = match (*known, kind) {
            (Created, Changed) => Created,
            (Deleted, Created) => Changed,
            (_, last) => last,
        };
    }

    /// Adds later changes.
    pub(super) fn append(&mut self, later: Self) {
        self.overflowed |= later.overflowed;
        later.by_path.into_iter().for_each(|(path, kind)| self.add(FileChange { path, kind }));
    }

    /// Says whether some were lost for their number.
    pub(super) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Says whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// Says whether there is one of a kind.
    pub(super) fn any(&self, wanted: impl Fn(&FileChange) -> bool) -> bool {
        let mut changes = self.by_path.iter();
        changes.any(|(path, kind)| wanted(&FileChange { path: Arc::clone(path), kind: *kind }))
    }

    /// Writes those that are wanted as params of notifications.
    pub(super) fn params(self, wanted: impl Fn(&FileChange) -> bool) -> Vec<Value> {
        let changes = self.by_path.into_iter().map(|(path, kind)| FileChange { path, kind });
        let events: Vec<_> = changes.filter(wanted).map(|change| event(&change)).collect();
        events.chunks(CHUNK).map(|chunk| json!({ "changes": chunk })).collect()
    }
}

fn event(change: &FileChange) -> Value {
    let kind = match change.kind {
        FileChangeKind::Created => 1,
        FileChangeKind::Changed => 2,
        FileChangeKind::Deleted => 3,
    };
    json!({ "uri": uri::of_path(&change.path), "type": kind })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use FileChangeKind::{Changed, Created, Deleted};

    fn change(path: &str, kind: FileChangeKind) -> FileChange {
        FileChange { path: Path::new(path).into(), kind }
    }

    #[test]
    fn each_file_is_told_once_as_it_ends_up() {
        let mut changes = Changes::default();
        for (path, kind) in [
            ("/new", Created),
            ("/new", Changed),
            ("/replaced", Deleted),
            ("/replaced", Created),
            ("/gone", Changed),
            ("/gone", Deleted),
            ("/other", Changed),
        ] {
            changes.add(change(path, kind));
        }
        let told = changes.params(|change| &*change.path != Path::new("/other"));
        assert_eq!(
            told,
            [json!({ "changes": [
            { "uri": "file:///gone", "type": 3 },
            { "uri": "file:///new", "type": 1 },
            { "uri": "file:///replaced", "type": 2 },
        ] })]
        );
    }

    #[test]
    fn many_go_in_chunks_and_too_many_are_known_to_be_too_many() {
        let mut changes = Changes::default();
        for at in 0..MOST {
            changes.add(change(&format!("/{at}"), Changed));
        }
        changes.add(change("/0", Deleted));
        assert!(!changes.overflowed());
        changes.add(change("/one more", Created));
        assert!(changes.overflowed());
        let told = changes.params(|_| true);
        assert_eq!(told.len(), MOST / CHUNK);
        assert_eq!(told[0]["changes"].as_array().map(Vec::len), Some(CHUNK));
    }
}
