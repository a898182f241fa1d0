//! What changes on disk below a root, whoever changes it.
//!
//! A shell, a `git checkout` or another program changes files that no tool of ours
//! was asked to change, and a language server must hear of it before the next
//! question. One watch per root feeds all servers of that root, each with its own
//! cursor. Reading is synchronous and never blocks: [`RootWatch::hand_over`] drains
//! the kernel's queue first, so what happened before a question is known before it.
//!
//! The tricky thing: a queue that overflowed, or a tree with more folders than may
//! be watched, is said, and the caller then trusts nothing.

pub(crate) mod log;
mod present;

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hostler_actors::host::language_server::spec::ServerKey;
use hostler_actors::ports::{FileChange, FileChangeKind};
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use tokio_util::sync::CancellationToken;

use crate::launch::socket;
use log::{Log, Moment, Since};
use present::Present;

/// Folders of one root that are watched at most: a quarter of the kernel's usual
/// allowance of a user.
const FOLDERS: usize = 16_384;

/// Folders in which nothing that a server must hear of changes, and much else does.
const PRUNED: [&str; 8] =
    [".git", ".hg", ".svn", "node_modules", "target", "__pycache__", ".venv", "venv"];

/// Called when a root is no longer there.
pub(crate) type OnGone = Arc<dyn Fn(&Path) + Send + Sync>;

/// The watches of all roots that somebody uses. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Watches {
    roots: Arc<Mutex<HashMap<PathBuf, Weak<RootWatch>>>>,
    on_gone: OnGone,
    /// Folders of one root that are watched.
    most: usize,
}

impl Watches {
    /// Starts with none.
    pub(crate) fn new(on_gone: OnGone) -> Self {
        Self { roots: Arc::default(), on_gone, most: FOLDERS }
    }

    /// Watches fewer folders of each root.
    #[cfg(test)]
    pub(crate) fn at_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Returns the watch of a root, and begins it if it is new. Walks the tree
    /// then, so it belongs on a thread that may block.
    pub(crate) fn of(&self, root: &Path) -> std::io::Result<Arc<RootWatch>> {
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let known = roots.get(root).and_then(Weak::upgrade);
        if let Some(watch) = known.filter(|watch| !watch.is_gone()) {
            return Ok(watch);
        }
        let watch = Arc::new(RootWatch::begin(root, self.most)?);
        roots.retain(|_, watch| watch.strong_count() > 0);
        roots.insert(root.to_owned(), Arc::downgrade(&watch));
        drop(roots);
        follow(&watch, Arc::clone(&self.on_gone))?;
        Ok(watch)
    }
}

/// Drains a watch whenever something happens, so that its queue does not fill up
/// while nobody asks and a root that goes is noticed.
fn follow(watch: &Arc<RootWatch>, on_gone: OnGone) -> std::io::Result<()> {
    let (root, over) = (watch.root.clone(), watch.over.clone());
    let source = socket::readable(watch.source.as_fd().try_clone_to_owned()?)?;
    let watch = Arc::downgrade(watch);
    tokio::spawn(async move {
        loop {
            let ready = tokio::select! {
                ready = source.readable() => ready,
                () = over.cancelled() => return,
            };
            let (Ok(mut ready), Some(watch)) = (ready, watch.upgrade()) else { return };
            // First, as what happens while the queue is drained must wake us again.
            ready.clear_ready();
            let gone = watch.state().drain();
            if gone {
                on_gone(&root);
                return;
            }
        }
    });
    Ok(())
}

/// One root's watch.
pub(crate) struct RootWatch {
    root: PathBuf,
    source: Arc<Inotify>,
    state: Mutex<State>,
    /// Ends the task that drains it.
    over: CancellationToken,
}

impl Drop for RootWatch {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

struct State {
    root: PathBuf,
    source: Arc<Inotify>,
    most: usize,
    folders: HashMap<WatchDescriptor, PathBuf>,
    parent: Option<WatchDescriptor>,
    present: Present,
    log: Log,
    gone: bool,
}

impl RootWatch {
    fn begin(root: &Path, most: usize) -> std::io::Result<Self> {
        let source = Arc::new(Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?);
        let mut state = State {
            root: root.to_owned(),
            source: Arc::clone(&source),
            most,
            folders: HashMap::new(),
            parent: None,
            present: Present::default(),
            log: Log::default(),
            gone: false,
        };
        state.watch(root, false);
        state.watch_parent();
        let over = CancellationToken::new();
        Ok(Self { root: root.to_owned(), source, state: Mutex::new(state), over })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over what changed since this server last asked; what was before its
    /// first question is not known here. Nobody else asks for the same server until
    /// it has been given.
    pub(crate) fn hand_over<T>(&self, server: &ServerKey, give: impl FnOnce(Since) -> T) -> T {
        let mut state = self.state();
        state.drain();
        let since = state.log.since(server);
        give(since)
    }

    /// Names the present moment; `None` where not all of the root is watched.
    pub(crate) fn moment(&self) -> Option<Moment> {
        let mut state = self.state();
        let gone = state.drain();
        state.log.moment().filter(|_| !gone)
    }

    /// Returns the latest changes after a moment; `None` where there were none.
    pub(crate) fn after(&self, moment: Moment) -> Option<Vec<Arc<Path>>> {
        let mut state = self.state();
        state.drain();
        state.log.after(moment)
    }

    /// Returns everything that changed after a moment; `None` where that is not known.
    pub(crate) fn all_after(&self, moment: Moment) -> Option<Vec<Arc<Path>>> {
        let mut state = self.state();
        state.drain();
        state.log.all_after(moment)
    }

    /// Says whether the root was deleted or moved away.
    pub(crate) fn is_gone(&self) -> bool {
        let mut state = self.state();
        state.drain()
    }
}

impl State {
    /// Reads the kernel's queue until it is empty. Says whether the root is gone.
    fn drain(&mut self) -> bool {
        loop {
            match self.source.read_events() {
                Ok(events) => {
                    for event in events {
                        self.take(event);
                    }
                }
                Err(Errno::EAGAIN) => return self.gone,
                Err(Errno::EINTR) => {}
                Err(error) => {
                    tracing::warn!(root = %self.root.display(), "watching failed: {error}");
                    self.log.lose();
                    return self.gone;
                }
            }
        }
    }

    fn take(&mut self, event: InotifyEvent) {
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            self.log.lose();
            // Folders that were made meanwhile were lost too.
            self.watch(&self.root.clone(), false);
            return;
        }
        if Some(event.wd) == self.parent {
            self.gone |= event.name.as_deref() == self.root.file_name();
            return;
        }
        let Some(folder) = self.folders.get(&event.wd) else { return };
        let Some(name) = event.name else {
            if event.mask.contains(AddWatchFlags::IN_IGNORED) {
                self.folders.remove(&event.wd);
            }
            return;
        };
        let path = folder.join(&name);
        let created = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO;
        let deleted = AddWatchFlags::IN_DELETE | AddWatchFlags::IN_MOVED_FROM;
        let kind = if event.mask.intersects(created) {
            FileChangeKind::Created
        } else if event.mask.intersects(deleted) {
            FileChangeKind::Deleted
        } else {
            FileChangeKind::Changed
        };
        if event.mask.contains(AddWatchFlags::IN_ISDIR) {
            if kind == FileChangeKind::Created && !PRUNED.iter().any(|pruned| name == **pruned) {
                // What was made in it before the watch stood is found by the walk.
                self.watch(&path, true);
            }
            if kind == FileChangeKind::Deleted {
                self.present.remove_below(&path);
                self.log.add(FileChange { path: path.into(), kind });
            }
            return;
        }
        let kind = match kind {
            FileChangeKind::Created if !self.present.add(folder, &name) => FileChangeKind::Changed,
            FileChangeKind::Deleted => {
                self.present.remove(folder, &name);
                kind
            }
            kind => kind,
        };
        self.log.add(FileChange { path: path.into(), kind });
    }

    /// Watches the folder that holds the root. What the root itself would tell of its
    /// end comes only when nobody works in it any more, and servers do.
    fn watch_parent(&mut self) {
        let flags = AddWatchFlags::IN_DELETE | AddWatchFlags::IN_MOVED_FROM;
        let added = self.root.parent().map(|parent| self.source.add_watch(parent, flags));
        self.parent = added.and_then(Result::ok);
    }

    /// Watches a folder and all below it; `report` logs the files that are there.
    fn watch(&mut self, top: &Path, report: bool) {
        let flags = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_ONLYDIR
            | AddWatchFlags::IN_DONT_FOLLOW;
        let mut pending = vec![top.to_owned()];
        while let Some(folder) = pending.pop() {
            if self.folders.len() >= self.most {
                self.log.give_up();
                return;
            }
            match self.source.add_watch(&folder, flags) {
                Ok(descriptor) => drop(self.folders.insert(descriptor, folder.clone())),
                // It went between being listed and being watched.
                Err(Errno::ENOENT | Errno::ENOTDIR) => continue,
                Err(error) => {
                    tracing::warn!(folder = %folder.display(), "cannot be watched: {error}");
                    self.log.give_up();
                    continue;
                }
            }
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                let name = entry.file_name();
                if kind.is_dir() && !PRUNED.iter().any(|pruned| name == **pruned) {
                    pending.push(entry.path());
                } else if kind.is_file() {
                    let kind = match self.present.add(&folder, &name) {
                        true => FileChangeKind::Created,
                        false => FileChangeKind::Changed,
                    };
                    if report {
                        self.log.add(FileChange { path: entry.path().into(), kind });
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
