//! The process inside a server's tree that does its work.
//!
//! Some servers only pass on what another process says, and go on without it: they
//! answer "nothing found" then, at once and for ever. So its end is the server's, and
//! an answer counts only if it was still there when the answer came.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ractor::ActorRef;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::LanguageServerMsg;
use crate::ports::{InnerProcess, ProcessTree};

/// How long after a document was brought it may take to start, at most: some start it
/// only for the first one. Looked for after each of these pauses.
const PAUSES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(3),
];

/// What is known of it, shared by the actor and whoever asks the server.
#[derive(Debug, Default)]
pub(super) struct Inner {
    found: Mutex<Vec<Arc<dyn InnerProcess>>>,
    /// Told when a document was brought.
    brought: Notify,
}

impl Inner {
    /// Says that a document was brought to the server.
    pub(super) fn look(&self) {
        self.brought.notify_one();
    }

    /// Says whether it was there and is so no longer.
    pub(super) fn is_lost(&self) -> bool {
        self.found().iter().any(|inner| inner.is_over())
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Vec<Arc<dyn InnerProcess>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds it and waits for its end, which the actor is told.
    pub(super) async fn follow(
        self: Arc<Self>,
        tree: Arc<dyn ProcessTree>,
        part: String,
        actor: ActorRef<LanguageServerMsg>,
    ) {
        let all = self.find(&*tree, &part).await;
        *self.found() = all.clone();
        let mut ends = JoinSet::new();
        for inner in all {
            ends.spawn(async move {
                inner.over().await;
                inner.pid()
            });
        }
        let Some(Ok(pid)) = ends.join_next().await else { return };
        let reason = format!("its inner process `{part}` (pid {pid}) ended");
        let _ = actor.cast(LanguageServerMsg::Broken(reason));
    }

    async fn find(&self, tree: &dyn ProcessTree, part: &str) -> Vec<Arc<dyn InnerProcess>> {
        loop {
            self.brought.notified().await;
            for pause in PAUSES {
                sleep(pause).await;
                let found = tree.inner(part).await;
                if !found.is_empty() {
                    return found;
                }
            }
        }
    }
}
