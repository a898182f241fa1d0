//! A conversation of a space, with its runs. Supervised by its space.
//!
//! Runs fail one by one: a failed run is gone, its neighbours live on. The debug
//! session is an actor from its first use on; what it is to remember over a failure
//! of its own, such as breakpoints, is kept here.

pub mod debug_session;
pub mod run;

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::sync::watch;

use crate::host::HostMsg;
use crate::ids::RunId;
use crate::ports::{Ports, RunSpec};
use crate::profile::Profile;
use crate::status::{NodeKind, StatusEntry};
use crate::supervise::branch::Branch;
use debug_session::desk::{Desk, Shared};
use debug_session::{DebugSession, DebugSessionArgs, DebugSessionMsg};
use run::{Run, RunArgs, RunMsg};

/// `spec/host.md`: 8 s a run.
const RUN_BOUND: Duration = Duration::from_secs(8);

/// What a debug session may take to end: `spec/host.md`, 5 s a resource, and the 3 s in
/// which a killed tree is seen to be empty.
const DEBUG_BOUND: Duration = Duration::from_secs(8);
/// The one debug session's key.
const DEBUG: &str = "debug session";

/// What a conversation understands.
#[derive(Debug)]
pub enum ConversationMsg {
    /// Begins a run.
    OpenRun(Arc<RunSpec>, RpcReplyPort<ActorRef<RunMsg>>),
    /// Hands out the conversation's debug session, whose actor it starts on first use.
    DebugSession(RpcReplyPort<Desk>),
    /// Ends the conversation and its runs.
    End(RpcReplyPort<()>),
    /// Takes note that its runs are gone.
    Ended(RpcReplyPort<()>),
}

/// What a conversation begins with.
#[derive(Debug)]
pub(super) struct ConversationArgs {
    pub(super) host: ActorRef<HostMsg>,
    pub(super) profile: watch::Receiver<Arc<Profile>>,
    pub(super) ports: Ports,
    pub(super) status: StatusEntry,
}

/// What a conversation keeps.
#[derive(Debug)]
pub struct ConversationState {
    args: ConversationArgs,
    runs: Branch<RunId, RunMsg>,
    debug: Branch<&'static str, DebugSessionMsg>,
    debugged: Arc<Shared>,
}

/// The conversation's actor.
#[derive(Debug)]
pub(super) struct Conversation;

impl Actor for Conversation {
    type Msg = ConversationMsg;
    type State = ConversationState;
    type Arguments = ConversationArgs;

    async fn pre_start(
        &self,
        _: ActorRef<ConversationMsg>,
        args: ConversationArgs,
    ) -> Result<ConversationState, ActorProcessingErr> {
        args.status.update(|row| row.phase = "open");
        Ok(ConversationState {
            args,
            runs: Branch::default(),
            debug: Branch::default(),
            debugged: Arc::default(),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<ConversationMsg>,
        message: ConversationMsg,
        state: &mut ConversationState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ConversationMsg::OpenRun(spec, reply) => {
                let id = spec.id;
                let args = RunArgs {
                    spec,
                    host: state.args.host.clone(),
                    conversation: myself.clone(),
                    profile: state.args.profile.clone(),
                    ports: state.args.ports.clone(),
                    status: state.args.status.child(NodeKind::Run, id.to_string()),
                };
                let (run, _) = Run::spawn_linked(None, Run, args, myself.get_cell()).await?;
                state.runs.add(id, run.clone());
                let _ = reply.send(run);
            }
            ConversationMsg::DebugSession(reply) => {
                let _ = reply.send(state.debug_session(&myself).await?);
            }
            ConversationMsg::End(reply) => {
                state.args.status.update(|row| row.phase = "ending");
                let runs = state.runs.end_all(RunMsg::End, RUN_BOUND);
                let debug = state.debug.end_all(DebugSessionMsg::End, DEBUG_BOUND);
                tokio::spawn(async move {
                    tokio::join!(runs, debug);
                    let _ = myself.cast(ConversationMsg::Ended(reply));
                });
            }
            ConversationMsg::Ended(reply) => {
                let _ = reply.send(());
                myself.stop(None);
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<ConversationMsg>,
        event: SupervisionEvent,
        state: &mut ConversationState,
    ) -> Result<(), ActorProcessingErr> {
        state.runs.on_supervision(&event)?;
        state.debug.on_supervision(&event)?;
        Ok(())
    }
}

impl ConversationState {
    async fn debug_session(
        &mut self,
        myself: &ActorRef<ConversationMsg>,
    ) -> Result<Desk, ActorProcessingErr> {
        if let Some(actor) = self.debug.get(&DEBUG) {
            return Ok(Desk::new(actor.clone(), Arc::clone(&self.debugged)));
        }
        let args = DebugSessionArgs {
            launch: Arc::clone(&self.args.ports.launch),
            sockets: Arc::clone(&self.args.ports.sockets),
            shared: Arc::clone(&self.debugged),
            status: self.args.status.child(NodeKind::DebugSession, DEBUG),
        };
        let (actor, _) =
            DebugSession::spawn_linked(None, DebugSession, args, myself.get_cell()).await?;
        self.debug.add(DEBUG, actor.clone());
        Ok(Desk::new(actor, Arc::clone(&self.debugged)))
    }
}
