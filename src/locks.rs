//! One writer per path, over all runs.
//!
//! Keys are canonical paths, so that two names of one file share a lock. Locks are
//! taken in sorted order, so that two calls with several files cannot wait for each
//! other. The map holds a path only while somebody holds or awaits its lock.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Gate, OwnedMutexGuard};

type Gates = Arc<Mutex<HashMap<PathBuf, Weak<Gate<()>>>>>;

/// The locks of every path in use. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathLocks(Gates);

/// Some paths that nobody else may write until this is dropped.
#[derive(Debug, Default)]
#[must_use = "the paths are free again once this is dropped"]
pub(crate) struct Held(Vec<HeldPath>);

impl PathLocks {
    /// Locks every path, waiting for whoever holds one. Paths must be canonical.
    pub(crate) async fn lock_all(&self, paths: impl IntoIterator<Item = PathBuf>) -> Held {
        let mut held = Held::default();
        for path in paths.into_iter().collect::<BTreeSet<_>>() {
            held.0.push(self.lock(path).await);
        }
        held
    }

    async fn lock(&self, path: PathBuf) -> HeldPath {
        let gate = self.gate(&path);
        // Made before the wait: a caller that gives up must clean the map as well.
        let mut held = HeldPath { guard: None, path, gates: Arc::clone(&self.0) };
        held.guard = Some(gate.lock_owned().await);
        held
    }

    fn gate(&self, path: &Path) -> Arc<Gate<()>> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = gates.get(path).and_then(Weak::upgrade) {
            return gate;
        }
        let gate = Arc::default();
        gates.insert(path.to_owned(), Arc::downgrade(&gate));
        gate
    }
}

#[derive(Debug)]
struct HeldPath {
    guard: Option<OwnedMutexGuard<()>>,
    path: PathBuf,
    gates: Gates,
}

impl Drop for HeldPath {
    fn drop(&mut self) {
        drop(self.guard.take());
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if gates.get(&self.path).is_some_and(|gate| gate.strong_count() == 0) {
            gates.remove(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::time::Duration;

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_path_is_held_by_one_and_others_are_free() {
        let locks = PathLocks::default();
        let held = locks.lock_all(paths(&["/a", "/b", "/a"])).await;
        let wait = |names: &'static [&'static str]| {
            let locks = locks.clone();
            async move {
                tokio::time::timeout(Duration::from_secs(1), locks.lock_all(paths(names))).await
            }
        };
        assert!(wait(&["/b"]).await.is_err());
        assert!(wait(&["/c"]).await.is_ok());
        drop(held);
        assert!(wait(&["/b"]).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn opposite_orders_do_not_lock_each_other_out() {
        let locks = PathLocks::default();
        let mut calls = tokio::task::JoinSet::new();
        for turn in 0..100 {
            let locks = locks.clone();
            let names: &[&str] = if turn % 2 == 0 { &["/a", "/b"] } else { &["/b", "/a"] };
            calls.spawn(async move {
                let held = locks.lock_all(paths(names)).await;
                tokio::task::yield_now().await;
                drop(held);
            });
        }
        tokio::time::timeout(Duration::from_secs(1), calls.join_all()).await.unwrap();
        assert_eq!(locks.0.lock().unwrap().len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_gives_up_leaves_nothing_behind() {
        let locks = PathLocks::default();
        let held = locks.lock_all(paths(&["/a"])).await;
        let waited =
            tokio::time::timeout(Duration::from_secs(1), locks.lock_all(paths(&["/a"]))).await;
        assert!(waited.is_err());
        drop(held);
        assert_eq!(locks.0.lock().unwrap().len(), 0);
    }
}
