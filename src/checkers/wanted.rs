//! What one run wants of checks: shown below its row in `status`, and kept after the
//! call where it was promised for later. Ends with the run's seat.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hostler_actors::status::{Anchor, NodeKind, StatusEntry};
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;

use super::plan::{Key, Plan};
use super::run::Progress;
use super::shared::{Check, Checks, Standing};

/// A check that this run wants, with its row.
pub(super) struct Asked {
    pub(super) check: Arc<Check>,
    row: AbortHandle,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.row.abort();
    }
}

/// The checks that one run wants.
pub(crate) struct WantedChecks {
    host: Checks,
    row: Anchor,
    promised: Mutex<HashMap<Key, Asked>>,
}

impl WantedChecks {
    /// Begins with none, to be shown below a run's row.
    pub(crate) fn new(host: Checks, row: Anchor) -> Self {
        Self { host, row, promised: Mutex::default() }
    }

    /// Returns the folder of what checkers keep.
    pub(super) fn cache(&self) -> PathBuf {
        self.host.cache().to_owned()
    }

    /// Asks for a check. One that was promised and is still true is taken up, and
    /// nothing is told of it twice.
    pub(super) fn ask(&self, plan: Plan, turns: &Arc<Semaphore>) -> Asked {
        let promised = self.promised().remove(&plan.key);
        if let Some(asked) = promised.filter(|asked| asked.check.is_current()) {
            return asked;
        }
        let check = self.host.check(plan, turns);
        let key = &check.plan.key;
        let name = format!("{} in {}", key.name, key.root.display());
        let entry = self.row.child(NodeKind::Check, name);
        let row = tokio::spawn(show(entry, check.standing()));
        Asked { check, row: row.abort_handle() }
    }

    /// Keeps checks that go on, for a later result.
    pub(super) fn promise(&self, asked: impl IntoIterator<Item = Asked>) {
        let kept = asked.into_iter().map(|asked| (asked.check.plan.key.clone(), asked));
        self.promised().extend(kept);
    }

    /// Takes those of the promised that are over.
    pub(super) fn take_done(&self) -> Vec<Arc<Check>> {
        let mut promised = self.promised();
        let done =
            promised.extract_if(|_, asked| matches!(asked.check.stands(), Standing::Done(..)));
        let mut done: Vec<_> = done.map(|(_, asked)| Arc::clone(&asked.check)).collect();
        done.sort_by(|a, b| {
            let key = |check: &Check| (check.plan.key.name.clone(), check.plan.key.root.clone());
            key(a).cmp(&key(b))
        });
        done
    }

    /// Says how the promised check stands, where there is one.
    #[cfg(test)]
    pub(super) fn peek(&self) -> Option<Standing> {
        self.promised().values().next().map(|asked| asked.check.stands())
    }

    fn promised(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Asked>> {
        self.promised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a row true until the check is over.
async fn show(entry: StatusEntry, mut standing: watch::Receiver<Standing>) {
    loop {
        let now = standing.borrow_and_update().clone();
        entry.update(|row| match &now {
            Standing::Queued => row.phase = "waiting",
            Standing::Running(since, progress) => {
                row.phase = "running";
                row.doing = Some((progress.to_string().into(), *since));
            }
            Standing::Done(..) => {
                row.phase = "done";
                row.doing = None;
            }
        });
        if matches!(now, Standing::Done(..)) {
            // Until it was told, or nobody wants it.
            std::future::pending::<()>().await;
        }
        if standing.changed().await.is_err() {
            return;
        }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.done, self.of) {
            (done, Some(of)) => write!(f, "{done} of {of} runs"),
            (0, None) => f.write_str("no output yet"),
            (1, None) => f.write_str("1 line of output so far"),
            (done, None) => write!(f, "{done} lines of output so far"),
        }
    }
}
