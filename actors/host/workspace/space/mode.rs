//! The mode of a space. Supervised by its space.
//!
//! Holds the capability profile and broadcasts its changes by a `watch` channel,
//! which cannot lose the last value. A turn takes one snapshot when it begins, so
//! a change takes effect from the next turn by construction.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::sync::watch;

use crate::profile::Profile;
use crate::status::StatusEntry;

/// What a mode understands.
#[derive(Debug)]
pub enum ModeMsg {
    /// Takes a profile, in force from each run's next turn.
    Set(Arc<Profile>, RpcReplyPort<()>),
}

/// What a mode begins with.
#[derive(Debug)]
pub(super) struct ModeArgs {
    /// The space keeps the other end, so that the value outlives this actor.
    pub(super) profile: watch::Sender<Arc<Profile>>,
    pub(super) status: StatusEntry,
}

/// The mode's actor.
#[derive(Debug)]
pub(super) struct ModeActor;

impl Actor for ModeActor {
    type Msg = ModeMsg;
    type State = ModeArgs;
    type Arguments = ModeArgs;

    async fn pre_start(
        &self,
        _: ActorRef<ModeMsg>,
        args: ModeArgs,
    ) -> Result<ModeArgs, ActorProcessingErr> {
        args.show();
        Ok(args)
    }

    async fn handle(
        &self,
        _: ActorRef<ModeMsg>,
        message: ModeMsg,
        state: &mut ModeArgs,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ModeMsg::Set(profile, reply) => {
                state.profile.send_replace(profile);
                state.show();
                let _ = reply.send(());
            }
        }
        Ok(())
    }
}

impl ModeArgs {
    fn show(&self) {
        let mode = self.profile.borrow().mode;
        self.status.update(|row| {
            row.phase = "in force";
            row.note = Some(mode.to_string().into());
        });
    }
}
