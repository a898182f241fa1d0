//! One run's look at what changes on disk behind our tools' back.
//!
//! Before every question the server is told of what a shell, a checkout or another
//! program did since the last. What is open there and changed is closed by that, and
//! read again by whoever asks about it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hostler_actors::host::language_server::spec::ServerSpec;
use hostler_actors::host::workspace::space::conversation::run::language_session::Held;
use hostler_actors::ports::{FileChange, FileChangeKind};
use hostler_actors::supervise::slot::Phase;

use crate::folder::Inside;
use crate::folder::replace::is_temporary;
use crate::watch::log::Moment;
use crate::watch::{RootWatch, Watches};

/// How much longer than its server lingers a root is watched: the server's own time
/// begins when its lease has been given back, a moment after the run's end.
const SLACK: Duration = Duration::from_secs(2);

/// What is to be said where not everything below a root is watched.
pub(crate) const UNSEEN: &str = "not all of this root can be watched, so a change made outside \
    hostler's tools may be missed in files that are not open; the action `reload` of `lsp` reads \
    the disk afresh";

/// A root's watch, and for how long servers of it outlive their last run.
struct Root {
    watch: Arc<RootWatch>,
    linger: Duration,
}

/// The roots whose watch a run keeps alive.
pub(crate) struct Watched {
    watches: Watches,
    roots: Mutex<HashMap<PathBuf, Root>>,
}

/// A root since a moment.
pub(crate) struct Since {
    watch: Arc<RootWatch>,
    moment: Moment,
}

impl Since {
    /// Returns what others have changed since, or nothing where that is not known.
    pub(crate) fn of_others(&self, written: &[Inside]) -> Option<Vec<Arc<Path>>> {
        let mut names = self.watch.all_after(self.moment)?;
        names.retain(|path| {
            !is_temporary(path) && !written.iter().any(|file| file.absolute() == &**path)
        });
        Some(names)
    }
}

impl Drop for Watched {
    /// Keeps what the run watched for as long as its servers linger: the next run
    /// then finds them told of everything.
    fn drop(&mut self) {
        let roots = self.roots.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        for Root { watch, linger } in roots.drain().map(|(_, root)| root) {
            runtime.spawn(async move {
                tokio::time::sleep(linger + SLACK).await;
                drop(watch);
            });
        }
    }
}

impl Watched {
    /// Starts with none.
    pub(crate) fn new(watches: Watches) -> Self {
        Self { watches, roots: Mutex::default() }
    }

    fn of(&self, root: &Path) -> Option<Arc<RootWatch>> {
        let roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let root = roots.get(root).filter(|root| !root.watch.is_gone());
        root.map(|root| Arc::clone(&root.watch))
    }

    /// Begins to watch a server's root, if that is new.
    pub(super) async fn begin(&self, spec: &ServerSpec) {
        let ServerSpec { root, linger, .. } = spec;
        if self.of(root).is_some() {
            let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(root) = roots.get_mut(root) {
                root.linger = root.linger.max(*linger);
            }
            return;
        }
        let (watches, at) = (self.watches.clone(), root.clone());
        let begun = tokio::task::spawn_blocking(move || watches.of(&at)).await;
        match begun.map_err(std::io::Error::other).and_then(|begun| begun) {
            Ok(watch) => {
                let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
                roots.insert(root.clone(), Root { watch, linger: *linger });
            }
            Err(error) => tracing::warn!(root = %root.display(), "cannot be watched: {error}"),
        }
    }

    /// Remembers the present moment of every root all of which is watched.
    pub(crate) fn since_now(&self) -> Vec<Since> {
        let roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let watches = roots.values().map(|root| Arc::clone(&root.watch));
        watches.filter_map(|watch| Some(Since { moment: watch.moment()?, watch })).collect()
    }

    /// Tells a server what changed since it was last told. Of what this call has
    /// just written it is told what `ours` says, and otherwise gets the new text.
    /// Answers whether all of the root is watched; else [`UNSEEN`] is to be said.
    pub(crate) fn tell(&self, held: &Held, written: &[Inside], ours: Vec<FileChange>) -> bool {
        let root = &held.spec.root;
        let Some(watch) = self.of(root) else {
            let open = all_open(held).filter(|open| !is_of(written, open));
            held.server.changed(open.chain(ours).collect());
            return false;
        };
        watch.hand_over(&held.spec.key(), |since| {
            let unnamed = since.lost || since.first;
            let doubted = (unnamed || since.partial).then(|| all_open(held)).into_iter().flatten();
            let others = since.changes.into_iter().chain(doubted);
            let others = others.filter(|change| !is_of(written, change));
            let changes: Vec<_> = others.chain(ours).collect();
            // First, so that a fresh process is not given the texts of the old one.
            if !changes.is_empty() {
                held.server.changed(changes);
            }
            // Nobody can name what changed: the queue overflowed, or the server
            // lingered while no run watched its root. A fresh process reads the disk.
            if unnamed && matches!(held.server.view().phase, Phase::Starting | Phase::Up) {
                tracing::info!(root = %root.display(), "restarted: changes may have gone by unseen");
                held.server.reload();
            }
            !since.partial
        })
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
