//! A room with a worktree and a mode, and its conversations. Supervised by its
//! workspace.
//!
//! The mode's value lives here, in a `watch` channel, so that it outlives the
//! actor that changes it.

pub mod conversation;
pub mod mode;

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::sync::watch;

use crate::host::HostMsg;
use crate::ids::ConversationId;
use crate::ports::Ports;
use crate::profile::Profile;
use crate::status::{NodeKind, StatusEntry};
use crate::supervise::branch::Branch;
use conversation::{Conversation, ConversationArgs, ConversationMsg};
use mode::{ModeActor, ModeArgs, ModeMsg};

/// `spec/host.md`: 10 s a conversation.
const CONVERSATION_BOUND: Duration = Duration::from_secs(10);

/// What a space understands.
#[derive(Debug)]
pub enum SpaceMsg {
    /// Opens a conversation.
    OpenConversation(ConversationId, RpcReplyPort<ActorRef<ConversationMsg>>),
    /// Changes the mode from each run's next turn on.
    SetMode(Arc<Profile>, RpcReplyPort<()>),
    /// Ends the space and its conversations.
    End(RpcReplyPort<()>),
    /// Takes note that its conversations are gone.
    Ended(RpcReplyPort<()>),
}

/// What a space begins with.
#[derive(Debug)]
pub(super) struct SpaceArgs {
    pub(super) host: ActorRef<HostMsg>,
    pub(super) profile: Arc<Profile>,
    pub(super) ports: Ports,
    pub(super) status: StatusEntry,
}

/// What a space keeps.
#[derive(Debug)]
pub struct SpaceState {
    host: ActorRef<HostMsg>,
    ports: Ports,
    status: StatusEntry,
    profile: watch::Sender<Arc<Profile>>,
    mode: ActorRef<ModeMsg>,
    conversations: Branch<ConversationId, ConversationMsg>,
}

/// The space's actor.
#[derive(Debug)]
pub(super) struct Space;

impl Actor for Space {
    type Msg = SpaceMsg;
    type State = SpaceState;
    type Arguments = SpaceArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<SpaceMsg>,
        args: SpaceArgs,
    ) -> Result<SpaceState, ActorProcessingErr> {
        args.status.update(|row| row.phase = "open");
        let (profile, _) = watch::channel(args.profile);
        let mode = start_mode(&profile, &args.status, &myself).await?;
        Ok(SpaceState {
            host: args.host,
            ports: args.ports,
            status: args.status,
            profile,
            mode,
            conversations: Branch::default(),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<SpaceMsg>,
        message: SpaceMsg,
        state: &mut SpaceState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SpaceMsg::OpenConversation(id, reply) => {
                let args = ConversationArgs {
                    host: state.host.clone(),
                    profile: state.profile.subscribe(),
                    ports: state.ports.clone(),
                    status: state.status.child(NodeKind::Conversation, id.to_string()),
                };
                let (conversation, _) =
                    Conversation::spawn_linked(None, Conversation, args, myself.get_cell()).await?;
                state.conversations.add(id, conversation.clone());
                let _ = reply.send(conversation);
            }
            SpaceMsg::SetMode(profile, reply) => {
                let _ = state.mode.cast(ModeMsg::Set(profile, reply));
            }
            SpaceMsg::End(reply) => {
                state.status.update(|row| row.phase = "ending");
                let ends = state.conversations.end_all(ConversationMsg::End, CONVERSATION_BOUND);
                tokio::spawn(async move {
                    ends.await;
                    let _ = myself.cast(SpaceMsg::Ended(reply));
                });
            }
            SpaceMsg::Ended(reply) => {
                let _ = reply.send(());
                myself.stop(None);
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<SpaceMsg>,
        event: SupervisionEvent,
        state: &mut SpaceState,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(cell, error) = &event
            && cell.get_id() == state.mode.get_id()
        {
            tracing::error!("the mode failed and is started again: {error}");
            state.mode = start_mode(&state.profile, &state.status, &myself).await?;
            return Ok(());
        }
        state.conversations.on_supervision(&event)?;
        Ok(())
    }
}

async fn start_mode(
    profile: &watch::Sender<Arc<Profile>>,
    status: &StatusEntry,
    space: &ActorRef<SpaceMsg>,
) -> Result<ActorRef<ModeMsg>, ActorProcessingErr> {
    let args = ModeArgs { profile: profile.clone(), status: status.child(NodeKind::Mode, "mode") };
    let (mode, _) = ModeActor::spawn_linked(None, ModeActor, args, space.get_cell()).await?;
    Ok(mode)
}
