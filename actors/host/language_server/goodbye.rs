//! The end of a server's process, by deadlines that add up to less than the
//! supervisor's 5 s.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::connection::Connection;
use crate::ports::ProcessTree;

/// For the answer to `shutdown`. All servers tried answered within 0.8 s.
const SHUTDOWN_BOUND: Duration = Duration::from_secs(2);
/// For the process to end after each further step.
const STEP_BOUND: Duration = Duration::from_secs(1);
/// For its tree to be empty once it was killed.
const EMPTY_BOUND: Duration = Duration::from_millis(500);

/// Ends a process: by the protocol, by closing its stdin, by SIGTERM, by SIGKILL.
/// Returns when its tree is empty, or leaves that to the supervisor.
pub(super) async fn say(connection: Arc<Connection>, tree: Arc<dyn ProcessTree>, polite: bool) {
    // Kept to the end: to drop it is to cancel it, and after `shutdown` only `exit`
    // may come.
    let mut shutdown = polite.then(|| connection.last_call("shutdown"));
    if let Some(call) = &mut shutdown {
        let _ = timeout(SHUTDOWN_BOUND, call.answer()).await;
    }
    // Unanswered or not: one that hangs in `shutdown` may still take this.
    connection.notify("exit", Value::Null);
    connection.close_stdin();
    if !has_ended(&tree).await {
        tree.terminate();
        has_ended(&tree).await;
    }
    // The main process may be gone and its children not.
    tree.kill();
    let _ = timeout(EMPTY_BOUND, tree.emptied().wait_for(|empty| *empty)).await;
}

async fn has_ended(tree: &Arc<dyn ProcessTree>) -> bool {
    timeout(STEP_BOUND, tree.ended().wait_for(Option::is_some)).await.is_ok()
}
