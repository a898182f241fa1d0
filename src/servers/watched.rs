//! One run's look at what changes on disk behind our tools' back.
//!
//! Before every question the server is told of what a shell, a checkout or another
//! program did since the last. What is open there and changed is closed by that, and
//! read again by whoever asks about it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hostler_actors::host::workspace::space::conversation::run::language_session::Held;
use hostler_actors::ports::{FileChange, FileChangeKind};

use crate::folder::Inside;
use crate::watch::{RootWatch, Watches};

/// The roots whose watch a run keeps alive.
pub(crate) struct Watched {
    watches: Watches,
    roots: Mutex<HashMap<PathBuf, Arc<RootWatch>>>,
}

impl Watched {
    /// Starts with none.
    pub(crate) fn new(watches: Watches) -> Self {
        Self { watches, roots: Mutex::default() }
    }

    fn of(&self, root: &Path) -> Option<Arc<RootWatch>> {
        let roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        roots.get(root).filter(|watch| !watch.is_gone()).cloned()
    }

    /// Begins to watch a root, if that is new.
    pub(super) async fn begin(&self, root: &Path) {
        if self.of(root).is_some() {
            return;
        }
        let (watches, at) = (self.watches.clone(), root.to_owned());
        let begun = tokio::task::spawn_blocking(move || watches.of(&at)).await;
        match begun.map_err(std::io::Error::other).and_then(|begun| begun) {
            Ok(watch) => {
                let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
                roots.insert(root.to_owned(), watch);
            }
            Err(error) => tracing::warn!(root = %root.display(), "cannot be watched: {error}"),
        }
    }

    /// Tells a server what changed since it was last told. Of what this call has
    /// just written it is told what `ours` says, and otherwise gets the new text.
    pub(crate) fn tell(&self, held: &Held, written: &[Inside], ours: Vec<FileChange>) {
        let root = &held.spec.root;
        let Some(watch) = self.of(root) else {
            let open = all_open(held).filter(|open| !is_of(written, open));
            return held.server.changed(open.chain(ours).collect());
        };
        watch.hand_over(&held.spec.key(), |since| {
            if since.lost {
                // Nobody can name what changed; a fresh process reads the disk.
                tracing::warn!(root = %root.display(), "more changed than could be followed");
                held.server.reload();
            }
            let unwatched = since.partial.then(|| all_open(held)).into_iter().flatten();
            let others = since.changes.into_iter().chain(unwatched);
            let others = others.filter(|change| !is_of(written, change));
            let changes: Vec<_> = others.chain(ours).collect();
            if !changes.is_empty() {
                held.server.changed(changes);
            }
        });
    }
}

fn is_of(files: &[Inside], change: &FileChange) -> bool {
    files.iter().any(|file| *file.absolute() == *change.path)
}

/// What must be read again where nobody watches.
fn all_open(held: &Held) -> impl Iterator<Item = FileChange> + use<> {
    let open = held.server.open_documents().into_iter();
    open.map(|open| FileChange { path: open.path, kind: FileChangeKind::Changed })
}
