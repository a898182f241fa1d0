//! A caller's hold on the conversation's debug session.
//!
//! Looking asks nobody: the session is shared, so that `status` answers also while the
//! debuggee runs hot or the adapter hangs. Only beginning goes through the actor, which
//! takes one request after the other, so that two at once cannot both win.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use ractor::ActorRef;

use super::DebugSessionMsg;
use super::breakpoints::SharedWishes;
use super::refusal::End;
use super::session::Session;
use super::spec::SessionSpec;

/// What outlives a session, and the actor too.
#[derive(Debug, Default)]
pub struct Shared {
    pub(super) wishes: SharedWishes,
    pub(super) latest: Mutex<Option<Arc<Session>>>,
    pub(super) stops: Arc<AtomicU64>,
    pub(super) sessions: AtomicU64,
    turns: Arc<tokio::sync::Mutex<()>>,
}

/// Why a session was not begun.
#[derive(Debug, thiserror::Error)]
pub enum NotBegun {
    /// There is one.
    #[error("a debug session of {} is there already", .0.spec.what)]
    Occupied(Arc<Session>),
    /// Nobody is there to begin it.
    #[error("the conversation is over")]
    Gone,
}

/// A hold on the conversation's debug session. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Desk {
    actor: ActorRef<DebugSessionMsg>,
    shared: Arc<Shared>,
}

impl Desk {
    /// Makes a hold on what an actor and its conversation share.
    #[must_use]
    pub fn new(actor: ActorRef<DebugSessionMsg>, shared: Arc<Shared>) -> Self {
        Self { actor, shared }
    }

    /// Returns the session that is there, or the last one that was.
    #[must_use]
    pub fn latest(&self) -> Option<Arc<Session>> {
        self.shared.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the breakpoints that the conversation wants.
    #[must_use]
    pub fn wishes(&self) -> &SharedWishes {
        &self.shared.wishes
    }

    /// Waits for the calls that came before, of whatever run. Drop it when done.
    pub async fn turn(&self) -> tokio::sync::OwnedMutexGuard<()> {
        Arc::clone(&self.shared.turns).lock_owned().await
    }

    /// Begins a session, unless there is one.
    pub async fn begin(&self, spec: SessionSpec) -> Result<Arc<Session>, NotBegun> {
        let (reply, answer) = ractor::concurrency::oneshot();
        self.actor
            .cast(DebugSessionMsg::Begin(Box::new(spec), reply.into()))
            .map_err(|_| NotBegun::Gone)?;
        answer.await.map_err(|_| NotBegun::Gone)?
    }

    /// Ends a session on request. Its standing tells when it is over.
    pub async fn terminate(&self, session: &Session) {
        session.end(End::Terminated);
        // The goodbye is bounded, and so is this wait.
        session.until(|book| book.gone.then_some(())).await;
    }
}
