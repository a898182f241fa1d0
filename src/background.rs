//! What a run's commands left running: kept until the run ends, and visible meanwhile.
//!
//! Each tree has a task that goes on taking in its output (a full pipe would stop it)
//! and a row in `status` below the run. [`Background::end`] ends them all; dropping
//! it drops the trees, which kills them. How many there can be is bounded by the
//! host's budget of processes. May not start a process.

pub(crate) mod intake;
pub(crate) mod left;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hostler_actors::ports::ProcessTree;
use hostler_actors::status::{Anchor, NodeKind, StatusEntry};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::intake::Intake;
use self::left::Left;

/// From the request to end until the kill.
const GRACE: Duration = Duration::from_secs(2);
/// From the kill until we say that something is still there. With [`GRACE`] it stays
/// below the 8 s that a run has to end.
const KILLED: Duration = Duration::from_secs(5);

/// What one run left in the background.
#[derive(Debug)]
pub(crate) struct Background {
    run: Anchor,
    over: CancellationToken,
    tasks: Mutex<JoinSet<()>>,
}

impl Background {
    /// Begins with nothing, to be shown below a run's row.
    pub(crate) fn new(run: Anchor) -> Self {
        Self { run, over: CancellationToken::new(), tasks: Mutex::default() }
    }

    /// Keeps a tree whose main process has ended.
    pub(crate) fn keep(
        &self,
        label: &str,
        tree: Arc<dyn ProcessTree>,
        intake: Intake,
        left: &[Left],
    ) {
        let entry = self.entry(label, &*tree, &intake, left);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(look_after(tree, intake, entry, self.over.clone()));
    }

    fn entry(
        &self,
        label: &str,
        tree: &dyn ProcessTree,
        intake: &Intake,
        left: &[Left],
    ) -> StatusEntry {
        let pid = left.first().map_or(tree.pid(), |left| left.pid);
        let entry = self.run.child(NodeKind::Background, format!("{label} (pid {pid})"));
        let note = intake.handle().map(|handle| format!("output: {handle}").into());
        entry.update(|state| {
            state.phase = "running";
            state.pid = Some(pid);
            state.note = note;
        });
        entry
    }

    /// Ends everything, at most within 7 s. What is kept afterwards ends at once.
    pub(crate) async fn end(&self) {
        self.over.cancel();
        let mut tasks =
            std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while tasks.join_next().await.is_some() {}
    }
}

async fn look_after(
    tree: Arc<dyn ProcessTree>,
    mut intake: Intake,
    entry: StatusEntry,
    over: CancellationToken,
) {
    let ends = async {
        tokio::select! {
            () = emptied(&*tree) => false,
            () = over.cancelled() => true,
        }
    };
    if intake.until(ends).await {
        entry.update(|state| state.phase = "stopping");
        if !intake.until(stop(&*tree)).await {
            tracing::error!(pid = tree.pid(), "a background process outlives its kill");
        }
    } else {
        intake.drain().await;
    }
}

/// Ends a tree: asks its main group, then kills. Says whether nothing is left.
pub(crate) async fn stop(tree: &dyn ProcessTree) -> bool {
    tree.terminate();
    if tokio::time::timeout(GRACE, emptied(tree)).await.is_ok() {
        return true;
    }
    tree.kill();
    tokio::time::timeout(KILLED, emptied(tree)).await.is_ok()
}

/// Waits until no process of a tree is left.
pub(crate) async fn emptied(tree: &dyn ProcessTree) {
    let mut emptied = tree.emptied();
    if emptied.wait_for(|empty| *empty).await.is_err() {
        // Its launcher's side is gone without a word: the caller's bound decides.
        std::future::pending::<()>().await;
    }
}
