//! The children of a supervisor that have no process of their own.
//!
//! A space, a conversation or a run that fails is gone and said to be; it is not
//! made again, and its neighbours live on. Too many failures of ours take the
//! supervisor too (`supervise::budget`, 3 in 5 s).

use std::collections::HashMap;
use std::fmt::Display;
use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

use ractor::{ActorCell, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::time::{Instant, timeout};

use super::TooManyBugs;
use super::budget::{Budget, Limit};

/// How long an ended actor may take to be gone once it was killed.
const KILL_BOUND: Duration = Duration::from_millis(500);

/// Children by key.
#[derive(Debug)]
pub struct Branch<K, M> {
    children: HashMap<K, ActorRef<M>>,
    bugs: Budget,
}

impl<K, M> Default for Branch<K, M> {
    fn default() -> Self {
        Self { children: HashMap::new(), bugs: Budget::new(Limit::BUGS) }
    }
}

impl<K: Clone + Eq + Hash + Display, M: ractor::Message> Branch<K, M> {
    /// Adds a child.
    pub fn add(&mut self, key: K, child: ActorRef<M>) {
        self.children.insert(key, child);
    }

    /// Finds a child.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&ActorRef<M>> {
        self.children.get(key)
    }

    /// Takes a child's end. An error is for the supervisor to die of.
    pub fn on_supervision(&mut self, event: &SupervisionEvent) -> Result<Option<K>, TooManyBugs> {
        let (cell, failure) = match event {
            SupervisionEvent::ActorTerminated(cell, _, _) => (cell, None),
            SupervisionEvent::ActorFailed(cell, error) => (cell, Some(error.to_string())),
            _ => return Ok(None),
        };
        let Some(key) = self.key_of(cell) else { return Ok(None) };
        self.children.remove(&key);
        if let Some(failure) = failure {
            tracing::error!("{key} failed: {failure}");
            let spent = self.bugs.spend(Instant::now());
            if self.bugs.is_exhausted_by(spent) {
                return Err(TooManyBugs::new(spent, failure));
            }
        }
        Ok(Some(key))
    }

    fn key_of(&self, cell: &ActorCell) -> Option<K> {
        let found = self.children.iter().find(|(_, child)| child.get_id() == cell.get_id());
        found.map(|(key, _)| key.clone())
    }

    /// Ends all children at once, each within its bound; whoever takes longer is
    /// killed. The future is for a task: a handler must not wait for it.
    pub fn end_all(
        &self,
        end: fn(RpcReplyPort<()>) -> M,
        within: Duration,
    ) -> impl Future<Output = ()> + Send + use<K, M> {
        let children: Vec<_> = self.children.values().cloned().collect();
        async move {
            let ends: Vec<_> = children
                .into_iter()
                .map(|child| tokio::spawn(end_one(child, end, within)))
                .collect();
            for end in ends {
                let _ = end.await;
            }
        }
    }
}

/// Ends one actor within a bound, then kills it.
pub async fn end_one<M: ractor::Message>(
    child: ActorRef<M>,
    end: fn(RpcReplyPort<()>) -> M,
    within: Duration,
) {
    let (reply, answer) = ractor::concurrency::oneshot();
    if child.cast(end(reply.into())).is_err() {
        return;
    }
    let _ = timeout(within, answer).await;
    // wait() rather than stop_and_wait(): see `ractor_semantics`.
    if child.wait(Some(KILL_BOUND)).await.is_err() {
        child.kill();
        let _ = child.wait(Some(KILL_BOUND)).await;
    }
}
