//! One database and its folder, with its spaces. Supervised by the host.

pub mod space;

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};

use crate::host::HostMsg;
use crate::ids::SpaceId;
use crate::ports::Ports;
use crate::profile::Profile;
use crate::status::{NodeKind, StatusEntry};
use crate::supervise::branch::{Branch, end_one};
use space::{Space, SpaceArgs, SpaceMsg};

/// `spec/host.md`: 12 s a space.
const SPACE_BOUND: Duration = Duration::from_secs(12);

/// What a workspace understands.
#[derive(Debug)]
pub enum WorkspaceMsg {
    /// Opens a space.
    OpenSpace {
        /// Which one.
        id: SpaceId,
        /// What people call it.
        name: String,
        /// What its mode guarantees.
        profile: Arc<Profile>,
        /// Takes the space.
        reply: RpcReplyPort<ActorRef<SpaceMsg>>,
    },
    /// Ends one space and all in it. Answers when it is gone.
    EndSpace(SpaceId, RpcReplyPort<()>),
    /// Ends the workspace and its spaces.
    End(RpcReplyPort<()>),
    /// Takes note that its spaces are gone.
    Ended(RpcReplyPort<()>),
}

/// What a workspace begins with.
#[derive(Debug)]
pub(super) struct WorkspaceArgs {
    pub(super) host: ActorRef<HostMsg>,
    pub(super) ports: Ports,
    pub(super) status: StatusEntry,
}

/// What a workspace keeps.
#[derive(Debug)]
pub struct WorkspaceState {
    args: WorkspaceArgs,
    spaces: Branch<SpaceId, SpaceMsg>,
}

/// The workspace's actor.
#[derive(Debug)]
pub(super) struct Workspace;

impl Actor for Workspace {
    type Msg = WorkspaceMsg;
    type State = WorkspaceState;
    type Arguments = WorkspaceArgs;

    async fn pre_start(
        &self,
        _: ActorRef<WorkspaceMsg>,
        args: WorkspaceArgs,
    ) -> Result<WorkspaceState, ActorProcessingErr> {
        args.status.update(|row| row.phase = "open");
        Ok(WorkspaceState { args, spaces: Branch::default() })
    }

    async fn handle(
        &self,
        myself: ActorRef<WorkspaceMsg>,
        message: WorkspaceMsg,
        state: &mut WorkspaceState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            WorkspaceMsg::OpenSpace { id, name, profile, reply } => {
                let args = SpaceArgs {
                    host: state.args.host.clone(),
                    profile,
                    ports: state.args.ports.clone(),
                    status: state.args.status.child(NodeKind::Space, name),
                };
                let (space, _) = Space::spawn_linked(None, Space, args, myself.get_cell()).await?;
                state.spaces.add(id, space.clone());
                let _ = reply.send(space);
            }
            WorkspaceMsg::EndSpace(id, reply) => {
                let space = state.spaces.get(&id).cloned();
                tokio::spawn(async move {
                    if let Some(space) = space {
                        end_one(space, SpaceMsg::End, SPACE_BOUND).await;
                    }
                    let _ = reply.send(());
                });
            }
            WorkspaceMsg::End(reply) => {
                state.args.status.update(|row| row.phase = "ending");
                let ends = state.spaces.end_all(SpaceMsg::End, SPACE_BOUND);
                tokio::spawn(async move {
                    ends.await;
                    let _ = myself.cast(WorkspaceMsg::Ended(reply));
                });
            }
            WorkspaceMsg::Ended(reply) => {
                let _ = reply.send(());
                myself.stop(None);
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<WorkspaceMsg>,
        event: SupervisionEvent,
        state: &mut WorkspaceState,
    ) -> Result<(), ActorProcessingErr> {
        state.spaces.on_supervision(&event)?;
        Ok(())
    }
}
