//! A supervisor of one slot, for tests of one resource.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};

use crate::ports::Jitter;
use crate::status::{NodeKind, StatusTable};
use crate::supervise::handle::SlotHandle;
use crate::supervise::{Resource, SlotEvent, Slots};

/// A chance that never is.
#[derive(Clone, Copy, Debug)]
pub struct NoJitter;

impl Jitter for NoJitter {
    fn up_to(&self, _: Duration) -> Duration {
        Duration::ZERO
    }
}

/// Holds one resource in a slot. Dropping it ends the supervisor and all below.
pub struct Keeper<R: Resource> {
    actor: ActorRef<KeeperMsg>,
    /// The slot.
    pub slot: SlotHandle<R::Msg, R::Facts>,
    /// The table that the slot's row is in.
    pub status: StatusTable,
}

impl<R: Resource> fmt::Debug for Keeper<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keeper({:?})", self.slot)
    }
}

/// What a [`Keeper`]'s actor understands.
#[derive(Debug)]
pub enum KeeperMsg {
    /// Brings an event of its slot.
    Slot(SlotEvent),
    /// Asks the resource to rest.
    Rest,
}

impl<R: Resource + Sync> Keeper<R> {
    /// Opens a slot for a resource.
    pub async fn new(resource: R) -> Self {
        let status = StatusTable::default();
        let (send, slot) = tokio::sync::oneshot::channel();
        let start = (resource, status.clone(), send);
        #[expect(clippy::disallowed_methods, reason = "the top of a test's tree: it has the drop")]
        let (actor, _) = Actor::spawn(None, Supervisor(std::marker::PhantomData), start)
            .await
            .expect("a keeper starts");
        Self { actor, slot: slot.await.expect("a keeper opens its slot"), status }
    }

    /// Asks the resource to rest, as the host does when it is idle.
    pub fn rest(&self) {
        self.actor.cast(KeeperMsg::Rest).expect("the keeper lives");
    }
}

impl<R: Resource> Drop for Keeper<R> {
    fn drop(&mut self) {
        self.actor.kill();
    }
}

struct Supervisor<R>(std::marker::PhantomData<fn() -> R>);

impl<R: Resource + Sync> Actor for Supervisor<R> {
    type Msg = KeeperMsg;
    type State = Slots<(), R>;
    type Arguments = (R, StatusTable, tokio::sync::oneshot::Sender<SlotHandle<R::Msg, R::Facts>>);

    async fn pre_start(
        &self,
        myself: ActorRef<KeeperMsg>,
        (resource, status, opened): Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let mut slots = Slots::new(Arc::new(NoJitter));
        let row = status.enter(None, NodeKind::LanguageServer, "kept");
        let post = move |event| drop(myself.cast(KeeperMsg::Slot(event)));
        let slot = slots.open((), resource, row, Arc::new(post));
        let _ = opened.send(slot);
        Ok(slots)
    }

    async fn handle(
        &self,
        myself: ActorRef<KeeperMsg>,
        message: KeeperMsg,
        slots: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            KeeperMsg::Slot(event) => slots.on(&(), event, &myself.get_cell()).await?,
            KeeperMsg::Rest => slots.rest(&(), &myself.get_cell()).await?,
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<KeeperMsg>,
        event: SupervisionEvent,
        slots: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        slots.on_supervision(event, &myself.get_cell()).await?;
        Ok(())
    }
}
