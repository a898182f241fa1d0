//! The end of a session: a word to the adapter, then its process, then the proof.
//!
//! No `terminate` is ever sent: lldb-dap 19 aborts on it. What a debuggee of ours has
//! started goes with the adapter's tree. One that is somebody else's is freed first:
//! no breakpoint left in it, running, and detached by the adapter itself, since an
//! adapter that is killed while its target is stopped takes the target along.

use std::sync::Arc;
use std::time::Duration;

use dap_types::DisconnectArguments;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::book::ROOT;
use super::breakpoints;
use super::link::Link;
use super::refusal::End;
use super::session::Session;
use super::spec::Kind;
use crate::ports::ProcessTree;

/// How long a request may take that frees a target.
const FREEING: Duration = Duration::from_secs(1);
/// How long an adapter may take to go once its connection is closed: 64 ms for debugpy,
/// never for lldb-dap 19 after a launch that failed.
const LEAVING: Duration = Duration::from_millis(500);
/// The same where its end must be its own, as a target hangs on it.
const DETACHING: Duration = Duration::from_secs(5);
/// How long a killed tree may take to be empty.
const EMPTY: Duration = Duration::from_secs(3);

/// Says goodbye. Returns when nothing of ours is left, or the bounds have passed.
pub(super) async fn say(session: Arc<Session>, tree: Option<Arc<dyn ProcessTree>>) {
    part(&session, tree).await;
    session.drop_guard().await;
}

async fn part(session: &Session, tree: Option<Arc<dyn ProcessTree>>) {
    let attached = session.spec.kind == Kind::Attach;
    // Who never said a word has nothing to let go of, and would not answer.
    let heard = |link: &Arc<Link>| link.is_open() && link.was_heard();
    if let Some(link) = session.link(ROOT).filter(heard) {
        let finished = session.look(|book| book.over == Some(End::Finished));
        if attached && !finished {
            free(session, &link).await;
        }
        let bound = session.spec.bounds.disconnect;
        // Whether it answers or not, its end is what counts.
        let _ = link.ask("disconnect", disconnect(!attached), bound).await;
    }
    session.close_links();
    let Some(tree) = tree else { return };
    let mut ended = tree.ended();
    let leaving = if attached { DETACHING } else { LEAVING };
    let _ = timeout(leaving, ended.wait_for(Option::is_some)).await;
    tree.kill();
    if timeout(EMPTY, tree.emptied().wait_for(|empty| *empty)).await.is_err() {
        tracing::error!(pid = tree.pid(), "a debug adapter was killed, and is not gone yet");
    }
}

async fn free(session: &Session, link: &Arc<Link>) {
    let files: Vec<_> = {
        let wishes = session.means.wishes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        wishes.files().flat_map(|(file, _)| file.paths.clone()).collect()
    };
    let clear = async {
        for path in files {
            let _ = link.ask("setBreakpoints", breakpoints::arguments(&path, &[]), FREEING).await;
        }
    };
    let _ = timeout(FREEING, clear).await;
    let stopped = session.look(|book| book.halt(ROOT).map(|halt| halt.stopped.thread));
    if let (Some(thread), true) = (stopped, session.spec.resume_on_detach) {
        let arguments: Value = json!({ "threadId": thread.unwrap_or(0) });
        let _ = link.ask("continue", arguments, FREEING).await;
    }
}

/// Returns the arguments of `disconnect`. Whether the debuggee goes is always said:
/// what is left out, every adapter decides for itself.
pub(super) fn disconnect(terminate_debuggee: bool) -> Value {
    let arguments = DisconnectArguments {
        restart: Some(false),
        terminate_debuggee: Some(terminate_debuggee),
        suspend_debuggee: None,
    };
    serde_json::to_value(arguments).unwrap_or_default()
}
