//! What a run needs to reach language servers, for the tests of tools: a server in
//! memory in the place of pyright, found by the program `bin/fake` in the folder, and
//! one in the place of ruff, which is turned off.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use hostler_actors::host::workspace::space::conversation::run::language_session::testing::FakeServers;
use hostler_actors::host::workspace::space::conversation::run::language_session::{
    Args, LanguageSession, LanguageSessionHandle, LanguageSessionMsg,
};
use hostler_actors::ids::RunId;
use hostler_actors::ports::{Launch, Posture};
use hostler_actors::status::{NodeKind, StatusTable};
use ractor::{Actor, ActorRef};
use tokio::sync::OnceCell;

use super::Languages;
use super::watched::Watched;
use crate::config::Loaded;
use crate::shims::Programs;
use crate::watch::Watches;

/// Makes them around these servers.
pub(crate) fn languages(
    servers: &FakeServers,
    table: &StatusTable,
    launch: Arc<dyn Launch>,
) -> Languages {
    let mut config = Loaded::shipped().unwrap().config;
    config.servers.retain(|name, _| ["pyright", "ruff"].contains(&name.as_str()));
    let ruff = config.servers.get_mut("ruff").unwrap();
    ruff.enabled = false;
    ruff.binaries = vec!["second".to_owned()];
    ruff.project_folders = vec!["bin".into()];
    ruff.probe = None;
    let pyright = config.servers.get_mut("pyright").unwrap();
    pyright.binaries = vec!["fake".to_owned()];
    pyright.project_folders = vec!["bin".into()];
    pyright.probe = None;
    let checker = config.checkers.get_mut("pyright").unwrap();
    checker.probe = None;
    let (servers, table) = (servers.clone(), table.clone());
    let actor: Arc<OnceCell<ActorRef<LanguageSessionMsg>>> = Arc::default();
    let session = LanguageSessionHandle::new(Arc::new(move || {
        let args = Args {
            run: RunId(1),
            servers: Arc::new(servers.clone()),
            status: table.enter(None, NodeKind::LanguageSession, "test"),
        };
        let actor = Arc::clone(&actor);
        Box::pin(async move { Ok(actor.get_or_init(|| spawned(args)).await.clone()) })
    }));
    Languages {
        session,
        config: Arc::new(config),
        programs: Arc::new(Programs::new(launch)),
        installed: Vec::new(),
        posture: Posture::Writable,
        watched: Watched::new(Watches::new(Arc::new(|_| {}))),
        known: Default::default(),
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no run that could supervise it")]
async fn spawned(args: Args) -> ActorRef<LanguageSessionMsg> {
    Actor::spawn(None, LanguageSession, args).await.unwrap().0
}
