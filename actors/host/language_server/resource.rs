//! A language server as what a slot of the host holds.
//!
//! Lives as long as the slot: the open documents are kept here, over incarnations.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorRef, SpawnErr};
use tokio::time::Instant;

use super::documents::{Documents, SharedDocuments};
use super::handshake::ServerFacts;
use super::lease::Lease;
use super::spec::ServerSpec;
use super::{LanguageServer, LanguageServerMsg, Start};
use crate::ids::RunId;
use crate::ports::{BoxFuture, Launch, LaunchOrder, Leftovers, Owner, Wire};
use crate::supervise::Resource;
use crate::supervise::budget::Limit;
use crate::supervise::handle::SlotHandle;
use crate::supervise::report::Report;
use crate::supervise::slot::{Policy, Restart};

/// A language server as the resource of a slot.
#[derive(Clone)]
pub struct ServerResource {
    pub(super) spec: Arc<ServerSpec>,
    pub(super) launch: Arc<dyn Launch>,
    pub(super) documents: SharedDocuments,
    weather: Limit,
}

impl fmt::Debug for ServerResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerResource({} in {})", self.spec.name, self.spec.root.display())
    }
}

impl ServerResource {
    /// Makes it, not started.
    #[must_use]
    pub fn new(spec: Arc<ServerSpec>, launch: Arc<dyn Launch>) -> Self {
        let documents = Arc::new(Mutex::new(Documents::new(Instant::now(), spec.after_change)));
        Self { spec, launch, documents, weather: Limit::WEATHER }
    }

    /// Lets it die so often, instead of [`Limit::WEATHER`], before it is `failed`.
    #[must_use]
    pub fn with_weather(self, weather: Limit) -> Self {
        Self { weather, ..self }
    }

    /// Returns what it was made from.
    #[must_use]
    pub fn spec(&self) -> &Arc<ServerSpec> {
        &self.spec
    }

    /// Hands a lease to a run. `on_drop` runs when it is given back; it must not
    /// block.
    #[must_use]
    pub fn lease(
        &self,
        slot: SlotHandle<LanguageServerMsg, ServerFacts>,
        run: RunId,
        on_drop: impl FnOnce() + Send + Sync + 'static,
    ) -> Lease {
        Lease::new(slot, Arc::clone(&self.spec), Arc::clone(&self.documents), run, on_drop)
    }
}

impl Resource for ServerResource {
    type Msg = LanguageServerMsg;
    type Facts = ServerFacts;

    fn policy(&self) -> Policy {
        // The actor's own bound is the shorter, since it can tell the stderr's end.
        let start_deadline = self.spec.start_deadline + Duration::from_secs(1);
        let restart = Restart::AtOnce;
        Policy { restart, start_deadline, weather: self.weather, ..Policy::DEFAULT }
    }

    fn spawn(
        &self,
        report: Report<ServerFacts>,
        supervisor: ActorCell,
    ) -> BoxFuture<'_, Result<ActorRef<LanguageServerMsg>, SpawnErr>> {
        let start = Start { report, resource: self.clone() };
        Box::pin(async move {
            let spawned = LanguageServer::spawn_linked(None, LanguageServer, start, supervisor);
            spawned.await.map(|(actor, _)| actor)
        })
    }

    fn goodbye(&self, actor: &ActorRef<LanguageServerMsg>) {
        let _ = actor.cast(LanguageServerMsg::Goodbye);
    }
}

/// Returns the order for its process.
pub(super) fn order(spec: &ServerSpec) -> LaunchOrder {
    LaunchOrder {
        label: spec.name.clone(),
        program: spec.program.clone(),
        args: spec.args.clone(),
        cwd: spec.root.clone(),
        env: spec.env.clone(),
        wires: BTreeMap::from([(0, Wire::ToProcess), (1, Wire::FromProcess), (2, Wire::Ring)]),
        owner: spec.private_to.map_or(Owner::Host, Owner::Run),
        posture: spec.posture.clone(),
        leftovers: Leftovers::Kill,
    }
}
