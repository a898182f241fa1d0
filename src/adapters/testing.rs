//! What a run needs to reach debug adapters, for the tests of tools.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use hostler_actors::host::workspace::space::conversation::debug_session::desk::{Desk, Shared};
use hostler_actors::host::workspace::space::conversation::debug_session::{
    DebugSession, DebugSessionArgs,
};
use hostler_actors::ports::Launch;
use hostler_actors::status::{NodeKind, StatusTable};
use ractor::Actor;
use tokio::sync::OnceCell;

use super::Adapters;
use crate::sockets::Loopback;

/// Makes them, with a debug session that has no conversation above it.
pub(crate) fn adapters(table: &StatusTable, launch: &Arc<dyn Launch>) -> Adapters {
    let (table, launch) = (table.clone(), Arc::clone(launch));
    let desk: Arc<OnceCell<Desk>> = Arc::default();
    Adapters {
        desk: Arc::new(move || {
            let (desk, shared) = (Arc::clone(&desk), Arc::<Shared>::default());
            let args = DebugSessionArgs {
                launch: Arc::clone(&launch),
                sockets: Arc::new(Loopback),
                shared: Arc::clone(&shared),
                status: table.enter(None, NodeKind::DebugSession, "test"),
            };
            Box::pin(async move { Some(desk.get_or_init(|| spawned(args, shared)).await.clone()) })
        }),
        installed: Vec::new(),
        sysroots: Arc::default(),
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no conversation to supervise it")]
async fn spawned(args: DebugSessionArgs, shared: Arc<Shared>) -> Desk {
    let (actor, _) = Actor::spawn(None, DebugSession, args).await.unwrap();
    Desk::new(actor, shared)
}
