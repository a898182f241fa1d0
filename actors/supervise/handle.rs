//! What callers hold of a slot, and what it tells them: where it is, and why it has
//! nothing to offer now.
//!
//! Nobody holds an incarnation: one that died is found by asking the handle again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use tokio::sync::watch;
use tokio::time::Instant;

use super::exit::Exit;
use super::slot::{Event, Phase, Then};
use super::{Post, SlotEvent};
use crate::ids::Incarnation;

/// An incarnation that was up when asked for.
pub struct Live<M, F> {
    /// Its actor.
    pub actor: ActorRef<M>,
    /// Which one it is.
    pub incarnation: Incarnation,
    /// What it said of itself.
    pub facts: Arc<F>,
}

impl<M, F> Clone for Live<M, F> {
    fn clone(&self) -> Self {
        Self {
            actor: self.actor.clone(),
            incarnation: self.incarnation,
            facts: Arc::clone(&self.facts),
        }
    }
}

/// Where a slot is, for its callers.
pub struct View<M, F> {
    /// The phase.
    pub phase: Phase,
    /// The incarnation that is up.
    pub live: Option<Live<M, F>>,
    /// The latest incarnation, up or not.
    pub incarnation: Incarnation,
    /// Why it last died.
    pub last_exit: Option<Exit>,
}

impl<M, F> Clone for View<M, F> {
    fn clone(&self) -> Self {
        Self {
            phase: self.phase,
            live: self.live.clone(),
            incarnation: self.incarnation,
            last_exit: self.last_exit.clone(),
        }
    }
}

/// Why a slot has nothing to offer now.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unavailable {
    /// It died and waits for its next start.
    #[error("restarting, attempt {attempt}, next try in {:.1} s, last error: {last_error}", .next_try.as_secs_f64())]
    Restarting {
        /// Deaths within the window.
        attempt: usize,
        /// When it is tried again.
        next_try: Duration,
        /// Why it died.
        last_error: String,
    },
    /// It died too often.
    #[error("failed, tried again in {:.0} s or on reload, last error: {last_error}", .next_try.as_secs_f64())]
    Failed {
        /// When it is tried again by itself.
        next_try: Duration,
        /// Why it died.
        last_error: String,
    },
    /// It was stopped on purpose.
    #[error("stopped on purpose; reload starts it again")]
    Stopped,
    /// It was not up within the caller's bound.
    #[error("still starting after {waited:?}")]
    StillStarting {
        /// How long the caller waited.
        waited: Duration,
    },
    /// Its supervisor is gone.
    #[error("the host is shutting down")]
    Gone,
}

/// A caller's hold on a slot. Cloning shares it.
pub struct SlotHandle<M, F> {
    pub(super) view: watch::Receiver<View<M, F>>,
    pub(super) post: Post,
}

impl<M, F> Clone for SlotHandle<M, F> {
    fn clone(&self) -> Self {
        Self { view: self.view.clone(), post: Arc::clone(&self.post) }
    }
}

impl<M, F> fmt::Debug for SlotHandle<M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlotHandle({:?})", self.view.borrow().phase)
    }
}

impl<M, F> SlotHandle<M, F> {
    /// Returns where the slot is now.
    #[must_use]
    pub fn view(&self) -> View<M, F> {
        self.view.borrow().clone()
    }

    /// Returns the incarnation that is up; waits for a start until `until`, and
    /// for nothing else: a backoff or failure is answered at once.
    pub async fn live(&self, until: Instant) -> Result<Live<M, F>, Unavailable> {
        self.live_after(Incarnation::default(), until).await
    }

    /// The same, for a caller whose incarnation has just died: waits until the
    /// supervisor knows of it too.
    pub async fn live_after(
        &self,
        dead: Incarnation,
        until: Instant,
    ) -> Result<Live<M, F>, Unavailable> {
        let began = Instant::now();
        let mut view = self.view.clone();
        let mut asked = false;
        loop {
            {
                let now = view.borrow_and_update();
                match (now.phase, &now.live) {
                    (Phase::Up, Some(live)) if live.incarnation > dead => return Ok(live.clone()),
                    (Phase::BackingOff { .. } | Phase::Failed { .. } | Phase::Stopped, _) => {
                        return Err(unavailable(&now, Instant::now()));
                    }
                    (Phase::Stopping(Then::Stay) | Phase::Emptying(Then::Stay), _) => {
                        return Err(Unavailable::Stopped);
                    }
                    (Phase::Idle | Phase::Stopping(_) | Phase::Emptying(_), _) if !asked => {
                        asked = true;
                        (self.post)(SlotEvent(Event::Use));
                    }
                    _ => {}
                }
            }
            match tokio::time::timeout_at(until, view.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(Unavailable::Gone),
                Err(_) => return Err(Unavailable::StillStarting { waited: began.elapsed() }),
            }
        }
    }

    /// Asks for a fresh start, whatever came before.
    pub fn renew(&self) {
        (self.post)(SlotEvent(Event::Renew));
    }

    /// Stops it; it stays so until it is renewed.
    pub fn stop(&self) {
        (self.post)(SlotEvent(Event::Stop));
    }
}

fn unavailable<M, F>(view: &View<M, F>, now: Instant) -> Unavailable {
    let last_error = || view.last_exit.as_ref().map_or_else(String::new, ToString::to_string);
    match view.phase {
        Phase::BackingOff { attempt, until } => Unavailable::Restarting {
            attempt,
            next_try: until.saturating_duration_since(now),
            last_error: last_error(),
        },
        Phase::Failed { retry_at } => Unavailable::Failed {
            next_try: retry_at.saturating_duration_since(now),
            last_error: last_error(),
        },
        _ => Unavailable::Stopped,
    }
}
