//! Launches that make room first, where the host's budget is used up.
//!
//! What is idle goes before anything is refused: a language server that lingers
//! without a lease. What somebody uses is never taken.

use std::sync::OnceLock;
use std::time::Duration;

use hostler_actors::host::HostMsg;
use hostler_actors::ports::{BoxFuture, Launch, LaunchError, LaunchOrder, Launched};
use ractor::ActorRef;

use crate::ask::ask;
use crate::launch::Launcher;

/// How long an idle server may take to go: its goodbye's 5 s and a little.
const GOING: Duration = Duration::from_secs(6);

/// A launcher that asks the host to let idle servers go.
pub(crate) struct RoomMaking {
    launcher: Launcher,
    host: OnceLock<ActorRef<HostMsg>>,
}

impl RoomMaking {
    /// Wraps a launcher. Makes no room before the host is known.
    pub(crate) fn new(launcher: Launcher) -> Self {
        Self { launcher, host: OnceLock::new() }
    }

    /// Names the host.
    pub(crate) fn host_is(&self, host: ActorRef<HostMsg>) {
        // There is one, and it is named once.
        let _ = self.host.set(host);
    }

    async fn make_room(&self) -> bool {
        let Some(host) = self.host.get() else { return false };
        let gone = tokio::time::timeout(GOING, ask(host, HostMsg::EvictIdle)).await;
        gone.ok().flatten().unwrap_or(false)
    }
}

impl Launch for RoomMaking {
    fn launch(&self, order: LaunchOrder) -> BoxFuture<'_, Result<Launched, LaunchError>> {
        Box::pin(async move {
            loop {
                match self.launcher.launch(order.clone()).await {
                    // Ends: each turn takes one idle server away.
                    Err(LaunchError::Budget { .. }) if self.make_room().await => {}
                    outcome => return outcome,
                }
            }
        })
    }
}
