//! The root of the tree. Supervises the language servers, which runs share
//! through leases, and the workspaces.
//!
//! A server's process dies alone: its slot restarts it (`supervise`). Without a
//! lease it lingers, then says goodbye and its slot goes.

pub mod language_server;
pub mod workspace;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::time::Instant;

use crate::ids::{RunId, WorkspaceId};
use crate::ports::Ports;
use crate::status::{NodeKind, StatusEntry, StatusTable};
use crate::supervise::branch::Branch;
use crate::supervise::handle::SlotHandle;
use crate::supervise::{SlotEvent, Slots};
use language_server::LanguageServerMsg;
use language_server::handshake::ServerFacts;
use language_server::lease::Lease;
use language_server::resource::ServerResource;
use language_server::spec::{ServerKey, ServerSpec};
use workspace::{Workspace, WorkspaceArgs, WorkspaceMsg};

/// `spec/host.md`: 12 s a space, the deepest that a workspace waits for.
const WORKSPACE_BOUND: Duration = Duration::from_millis(12_500);

/// What the host understands.
#[derive(Debug)]
pub enum HostMsg {
    /// Opens a workspace.
    OpenWorkspace(WorkspaceId, RpcReplyPort<ActorRef<WorkspaceMsg>>),
    /// Leases the server of this spec to a run.
    Lease(Arc<ServerSpec>, RunId, RpcReplyPort<Lease>),
    /// Takes a lease back.
    Release(ServerKey),
    /// Lets a server go whose linger has passed without a lease.
    LingerOver(ServerKey, Instant),
    /// Lets the server go that has been without a lease for longest. Answers when
    /// it is gone; false if there is none, or somebody wants it again.
    EvictIdle(RpcReplyPort<bool>),
    /// Lets every server of a root go that is no longer there.
    RootGone(PathBuf),
    /// Carries an event of a language server's slot.
    Slot(ServerKey, SlotEvent),
    /// Ends everything.
    End(RpcReplyPort<()>),
    /// Takes note that the workspaces are gone.
    WorkspacesEnded(RpcReplyPort<()>),
}

/// What the host begins with.
#[derive(Debug)]
pub struct HostArgs {
    /// The ports.
    pub ports: Ports,
    /// The table that everything below is shown in.
    pub status: StatusTable,
}

/// How a server is leased.
#[derive(Debug)]
struct Tenancy {
    leases: usize,
    linger: Duration,
    idle_since: Option<Instant>,
    going: bool,
    evictors: Vec<RpcReplyPort<bool>>,
}

impl Tenancy {
    fn answer_evictors(&mut self, gone: bool) {
        for evictor in self.evictors.drain(..) {
            let _ = evictor.send(gone);
        }
    }
}

/// What the host keeps.
#[derive(Debug)]
pub struct HostState {
    ports: Ports,
    status: StatusEntry,
    servers: Slots<ServerKey, ServerResource>,
    tenancies: HashMap<ServerKey, Tenancy>,
    workspaces: Branch<WorkspaceId, WorkspaceMsg>,
    ending: Option<RpcReplyPort<()>>,
}

/// The host's actor.
#[derive(Debug)]
pub struct Host;

impl Actor for Host {
    type Msg = HostMsg;
    type State = HostState;
    type Arguments = HostArgs;

    async fn pre_start(
        &self,
        _: ActorRef<HostMsg>,
        args: HostArgs,
    ) -> Result<HostState, ActorProcessingErr> {
        let status = args.status.enter(None, NodeKind::Host, "host");
        status.update(|row| row.phase = "up");
        Ok(HostState {
            servers: Slots::new(Arc::clone(&args.ports.jitter)),
            ports: args.ports,
            status,
            tenancies: HashMap::new(),
            workspaces: Branch::default(),
            ending: None,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<HostMsg>,
        message: HostMsg,
        state: &mut HostState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            HostMsg::OpenWorkspace(id, reply) => {
                let _ = reply.send(state.open_workspace(&myself, id).await?);
            }
            HostMsg::Lease(spec, run, reply) => {
                if let Some(lease) = state.lease(&myself, &spec, run) {
                    let _ = reply.send(lease);
                }
            }
            HostMsg::Release(key) => state.release(&myself, &key),
            HostMsg::LingerOver(key, since) => {
                if state.idle_since(&key) == Some(since) {
                    state.let_go(&myself, &key).await?;
                }
            }
            HostMsg::EvictIdle(reply) => {
                let idlest = state.idlest();
                match idlest.as_ref().and_then(|key| state.tenancies.get_mut(key)) {
                    Some(tenancy) => tenancy.evictors.push(reply),
                    None => drop(reply.send(false)),
                }
                if let Some(key) = idlest {
                    state.let_go(&myself, &key).await?;
                }
            }
            HostMsg::RootGone(root) => {
                let keys: Vec<_> =
                    state.servers.keys().filter(|key| key.root() == root).cloned().collect();
                for key in keys {
                    state.let_go(&myself, &key).await?;
                }
            }
            HostMsg::Slot(key, event) => {
                state.servers.on(&key, event, &myself.get_cell()).await?;
                state.settle(&key);
            }
            HostMsg::End(reply) => {
                state.status.update(|row| row.phase = "ending");
                let ends = state.workspaces.end_all(WorkspaceMsg::End, WORKSPACE_BOUND);
                tokio::spawn(async move {
                    ends.await;
                    let _ = myself.cast(HostMsg::WorkspacesEnded(reply));
                });
                return Ok(());
            }
            HostMsg::WorkspacesEnded(reply) => {
                state.ending = Some(reply);
                let keys: Vec<_> = state.servers.keys().cloned().collect();
                for key in keys {
                    state.servers.stop(&key, &myself.get_cell()).await?;
                }
            }
        }
        state.end_if_empty(&myself);
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<HostMsg>,
        event: SupervisionEvent,
        state: &mut HostState,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(event) = state.servers.on_supervision(event, &myself.get_cell()).await? {
            state.workspaces.on_supervision(&event)?;
        }
        let keys: Vec<_> = state.tenancies.keys().cloned().collect();
        for key in keys {
            state.settle(&key);
        }
        state.end_if_empty(&myself);
        Ok(())
    }
}

impl HostState {
    async fn open_workspace(
        &mut self,
        myself: &ActorRef<HostMsg>,
        id: WorkspaceId,
    ) -> Result<ActorRef<WorkspaceMsg>, ActorProcessingErr> {
        let args = WorkspaceArgs {
            host: myself.clone(),
            ports: self.ports.clone(),
            status: self.status.child(NodeKind::Workspace, id.to_string()),
        };
        let cell = myself.get_cell();
        let (workspace, _) = Workspace::spawn_linked(None, Workspace, args, cell).await?;
        self.workspaces.add(id, workspace.clone());
        Ok(workspace)
    }

    fn lease(
        &mut self,
        myself: &ActorRef<HostMsg>,
        spec: &Arc<ServerSpec>,
        run: RunId,
    ) -> Option<Lease> {
        let key = spec.key();
        let slot = self.servers.handle(&key).unwrap_or_else(|| self.open_slot(myself, &key, spec));
        let tenancy = self.tenancies.entry(key.clone()).or_insert_with(|| Tenancy {
            leases: 0,
            linger: spec.linger,
            idle_since: None,
            going: false,
            evictors: Vec::new(),
        });
        tenancy.leases += 1;
        tenancy.idle_since = None;
        tenancy.going = false;
        tenancy.answer_evictors(false);
        let leases = tenancy.leases;
        if let Some(status) = self.servers.status(&key) {
            status.update(|row| row.leases = Some(leases));
        }
        let (host, resource) = (myself.clone(), self.servers.resource(&key)?);
        Some(resource.lease(slot, run, move || {
            let _ = host.cast(HostMsg::Release(key));
        }))
    }

    fn open_slot(
        &mut self,
        myself: &ActorRef<HostMsg>,
        key: &ServerKey,
        spec: &Arc<ServerSpec>,
    ) -> SlotHandle<LanguageServerMsg, ServerFacts> {
        let (host, of) = (myself.clone(), key.clone());
        let resource = ServerResource::new(Arc::clone(spec), Arc::clone(&self.ports.launch));
        let name = format!("{} {}", key.name(), key.root().display());
        let status = self.status.child(NodeKind::LanguageServer, name);
        let post = Arc::new(move |event| {
            let _ = host.cast(HostMsg::Slot(of.clone(), event));
        });
        self.servers.open(key.clone(), resource, status, post)
    }

    fn release(&mut self, myself: &ActorRef<HostMsg>, key: &ServerKey) {
        let Some(tenancy) = self.tenancies.get_mut(key) else { return };
        tenancy.leases = tenancy.leases.saturating_sub(1);
        let (leases, linger) = (tenancy.leases, tenancy.linger);
        if let Some(status) = self.servers.status(key) {
            status.update(|row| row.leases = Some(leases));
        }
        if leases == 0 {
            let now = Instant::now();
            tenancy.idle_since = Some(now);
            let (host, key) = (myself.clone(), key.clone());
            tokio::spawn(async move {
                tokio::time::sleep(linger).await;
                let _ = host.cast(HostMsg::LingerOver(key, now));
            });
        }
    }

    fn idle_since(&self, key: &ServerKey) -> Option<Instant> {
        self.tenancies.get(key).and_then(|tenancy| tenancy.idle_since)
    }

    fn idlest(&self) -> Option<ServerKey> {
        self.tenancies
            .iter()
            .filter(|(_, tenancy)| !tenancy.going)
            .filter_map(|(key, tenancy)| Some((tenancy.idle_since?, key)))
            .min_by_key(|(since, _)| *since)
            .map(|(_, key)| key.clone())
    }

    async fn let_go(
        &mut self,
        myself: &ActorRef<HostMsg>,
        key: &ServerKey,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(tenancy) = self.tenancies.get_mut(key) {
            tenancy.going = true;
        }
        self.servers.rest(key, &myself.get_cell()).await?;
        self.settle(key);
        Ok(())
    }

    /// Forgets a server that was let go, once nothing of it lives.
    fn settle(&mut self, key: &ServerKey) {
        let gone =
            self.tenancies.get(key).is_some_and(|tenancy| tenancy.going && tenancy.leases == 0);
        if gone
            && self.servers.close(key)
            && let Some(mut tenancy) = self.tenancies.remove(key)
        {
            tenancy.answer_evictors(true);
        }
    }

    fn end_if_empty(&mut self, myself: &ActorRef<HostMsg>) {
        if self.servers.any_alive() {
            return;
        }
        if let Some(reply) = self.ending.take() {
            let _ = reply.send(());
            myself.stop(None);
        }
    }
}

#[cfg(test)]
mod tests;
