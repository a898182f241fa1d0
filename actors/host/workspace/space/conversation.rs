//! A conversation of a space, with its runs. Supervised by its space.
//!
//! Runs fail one by one: a failed run is gone, its neighbours live on.

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
use run::{Run, RunArgs, RunMsg};

/// `spec/host.md`: 8 s a run.
const RUN_BOUND: Duration = Duration::from_secs(8);

/// What a conversation understands.
#[derive(Debug)]
pub enum ConversationMsg {
    /// Begins a run.
    OpenRun(Arc<RunSpec>, RpcReplyPort<ActorRef<RunMsg>>),
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
        Ok(ConversationState { args, runs: Branch::default() })
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
                    profile: state.args.profile.clone(),
                    ports: state.args.ports.clone(),
                    status: state.args.status.child(NodeKind::Run, id.to_string()),
                };
                let (run, _) = Run::spawn_linked(None, Run, args, myself.get_cell()).await?;
                state.runs.add(id, run.clone());
                let _ = reply.send(run);
            }
            ConversationMsg::End(reply) => {
                state.args.status.update(|row| row.phase = "ending");
                let ends = state.runs.end_all(RunMsg::End, RUN_BOUND);
                tokio::spawn(async move {
                    ends.await;
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
        Ok(())
    }
}
