//! The one generic supervisor: slots, each with a resource that comes and goes.
//!
//! An actor that supervises resources owns a [`Slots`] and hands it its slot events
//! and supervision events. Callers hold a [`SlotHandle`], never a reference to an
//! incarnation. What happens when is decided in [`slot`], which is pure; here it
//! is only done.
//!
//! The tricky thing: a stopping ractor parent *kills* its children and their
//! `post_stop` never runs, so process cleanup lives in the drop of the process
//! handle, and a supervisor ends its children by itself before it ends.

pub mod backoff;
pub mod branch;
pub mod budget;
pub mod exit;
pub mod handle;
#[cfg(test)]
mod ractor_semantics;
pub mod report;
pub mod slot;

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ractor::{ActorCell, ActorId, ActorRef, SpawnErr, SupervisionEvent};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::ids::Incarnation;
use crate::ports::{BoxFuture, Jitter, ProcessTree};
use crate::status::StatusEntry;
use budget::{Budget, Limit};
use exit::Exit;
use handle::{Live, SlotHandle, View};
use report::Report;
use slot::{Action, Event, Phase, Policy, Slot};

/// How long a tree may take to be confirmed empty once it was killed. Only a
/// process in uninterruptible sleep takes longer; its slot then says so.
const EMPTY_BOUND: Duration = Duration::from_secs(5);

/// A kind of resource that a slot can hold.
pub trait Resource: Send + 'static {
    /// What its actor understands.
    type Msg: ractor::Message;
    /// What callers learn of an incarnation once it is ready.
    type Facts: Send + Sync + 'static;

    /// Returns when and how often it is started.
    fn policy(&self) -> Policy;

    /// Spawns the actor of one incarnation, linked to `supervisor`. Must not
    /// wait for anything outside: the actor reports by `report` when it is ready.
    fn spawn(
        &self,
        report: Report<Self::Facts>,
        supervisor: ActorCell,
    ) -> BoxFuture<'_, Result<ActorRef<Self::Msg>, SpawnErr>>;

    /// Asks an incarnation to say goodbye to its process and end.
    fn goodbye(&self, actor: &ActorRef<Self::Msg>);
}

/// Carries events of one slot to the supervisor's mailbox.
pub type Post = Arc<dyn Fn(SlotEvent) + Send + Sync>;

/// An event of a slot, as it travels through its supervisor's mailbox.
#[derive(Clone, Debug)]
pub struct SlotEvent(pub(crate) Event);

type Facts<F> = Arc<Mutex<Option<(Incarnation, Arc<F>)>>>;
type Tree = Arc<Mutex<Option<Arc<dyn ProcessTree>>>>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Held<R: Resource> {
    resource: R,
    slot: Slot,
    view: watch::Sender<View<R::Msg, R::Facts>>,
    post: Post,
    facts: Facts<R::Facts>,
    tree: Tree,
    status: Arc<StatusEntry>,
    actor: Option<ActorRef<R::Msg>>,
    timer: Option<AbortHandle>,
}

/// The slots of one supervisor, by key.
pub struct Slots<K, R: Resource> {
    held: HashMap<K, Held<R>>,
    cells: HashMap<ActorId, (K, Incarnation)>,
    jitter: Arc<dyn Jitter>,
    bugs: Budget,
}

impl<K, R: Resource> fmt::Debug for Slots<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slots({})", self.held.len())
    }
}

/// Says that too many bugs of ours came to light below one supervisor.
#[derive(Debug, thiserror::Error)]
#[error("{most} internal errors within {within:?}, the last: {last}")]
pub struct TooManyBugs {
    most: usize,
    within: Duration,
    last: String,
}

impl TooManyBugs {
    pub(crate) fn new(most: usize, last: String) -> Self {
        Self { most, within: Limit::BUGS.within, last }
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static, R: Resource> Slots<K, R> {
    /// Starts with none.
    #[must_use]
    pub fn new(jitter: Arc<dyn Jitter>) -> Self {
        Self { held: HashMap::new(), cells: HashMap::new(), jitter, bugs: Budget::new(Limit::BUGS) }
    }

    /// Opens a slot, idle. `post` must bring its events back to [`Slots::on`].
    pub fn open(
        &mut self,
        key: K,
        resource: R,
        status: StatusEntry,
        post: Post,
    ) -> SlotHandle<R::Msg, R::Facts> {
        let slot = Slot::new(resource.policy());
        let (view, seen) = watch::channel(View {
            phase: slot.phase(),
            live: None,
            incarnation: slot.incarnation(),
            last_exit: None,
        });
        let held = Held {
            resource,
            slot,
            view,
            post: Arc::clone(&post),
            facts: Facts::default(),
            tree: Tree::default(),
            status: Arc::new(status),
            actor: None,
            timer: None,
        };
        self.held.insert(key, held);
        SlotHandle { view: seen, post }
    }

    /// Returns a caller's hold on a slot.
    #[must_use]
    pub fn handle(&self, key: &K) -> Option<SlotHandle<R::Msg, R::Facts>> {
        self.held
            .get(key)
            .map(|held| SlotHandle { view: held.view.subscribe(), post: Arc::clone(&held.post) })
    }

    /// Returns the resource of a slot.
    #[must_use]
    pub fn resource(&self, key: &K) -> Option<&R> {
        self.held.get(key).map(|held| &held.resource)
    }

    /// Returns a slot's row in the status table.
    #[must_use]
    pub fn status(&self, key: &K) -> Option<&StatusEntry> {
        self.held.get(key).map(|held| &*held.status)
    }

    /// Returns a slot's phase.
    #[must_use]
    pub fn phase(&self, key: &K) -> Option<Phase> {
        self.held.get(key).map(|held| held.slot.phase())
    }

    /// Returns the keys of all slots.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.held.keys()
    }

    /// Asks a slot's resource to rest until it is next used.
    pub async fn rest(&mut self, key: &K, supervisor: &ActorCell) -> Result<(), TooManyBugs> {
        self.on(key, SlotEvent(Event::Rest), supervisor).await
    }

    /// Stops a slot's resource on purpose.
    pub async fn stop(&mut self, key: &K, supervisor: &ActorCell) -> Result<(), TooManyBugs> {
        self.on(key, SlotEvent(Event::Stop), supervisor).await
    }

    /// Forgets a slot that holds nothing that lives.
    pub fn close(&mut self, key: &K) -> bool {
        let at_rest = matches!(
            self.phase(key),
            Some(Phase::Idle | Phase::Stopped | Phase::Failed { .. } | Phase::BackingOff { .. })
        );
        if at_rest {
            self.held.remove(key);
        }
        at_rest
    }

    /// Takes an event of a slot. An error is for the supervisor to die of.
    pub async fn on(
        &mut self,
        key: &K,
        event: SlotEvent,
        supervisor: &ActorCell,
    ) -> Result<(), TooManyBugs> {
        let Some(held) = self.held.get_mut(key) else { return Ok(()) };
        let now = Instant::now();
        let mut actions = held.slot.step(now, event.0, &*self.jitter);
        let mut bug = None;
        while !actions.is_empty() {
            let mut more = Vec::new();
            for action in actions {
                if let Some(event) = held.perform(action, supervisor, &mut bug).await {
                    more.extend(held.slot.step(Instant::now(), event, &*self.jitter));
                }
                if let (Action::Spawn(incarnation), Some(actor)) = (action, &held.actor) {
                    self.cells.insert(actor.get_id(), (key.clone(), incarnation));
                }
            }
            actions = more;
        }
        held.publish();
        match bug {
            Some(last) => self.count_bug(now, last),
            None => Ok(()),
        }
    }

    /// Counts a bug of ours that came to light below this supervisor.
    pub fn count_bug(&mut self, now: Instant, last: String) -> Result<(), TooManyBugs> {
        tracing::error!("{last}");
        let spent = self.bugs.spend(now);
        if self.bugs.is_exhausted_by(spent) {
            return Err(TooManyBugs::new(spent, last));
        }
        Ok(())
    }

    /// Takes a supervision event if it is about a slot's actor, else returns it.
    pub async fn on_supervision(
        &mut self,
        event: SupervisionEvent,
        supervisor: &ActorCell,
    ) -> Result<Option<SupervisionEvent>, TooManyBugs> {
        let (id, exit) = match &event {
            SupervisionEvent::ActorTerminated(cell, _, _) => (cell.get_id(), Exit::Requested),
            SupervisionEvent::ActorFailed(cell, error) => {
                let exit = error
                    .downcast_ref::<Exit>()
                    .cloned()
                    .unwrap_or_else(|| Exit::Bug(error.to_string().into()));
                (cell.get_id(), exit)
            }
            _ => return Ok(Some(event)),
        };
        let Some((key, incarnation)) = self.cells.remove(&id) else { return Ok(Some(event)) };
        self.on(&key, SlotEvent(Event::Exited(incarnation, exit)), supervisor).await?;
        Ok(None)
    }

    /// Says whether anything that a slot started still lives.
    #[must_use]
    pub fn any_alive(&self) -> bool {
        self.held.values().any(|held| {
            matches!(
                held.slot.phase(),
                Phase::Starting | Phase::Up | Phase::Stopping(_) | Phase::Emptying(_)
            )
        })
    }
}

impl<R: Resource> Held<R> {
    /// Does what the slot decided; an event that follows at once is returned.
    async fn perform(
        &mut self,
        action: Action,
        supervisor: &ActorCell,
        bug: &mut Option<String>,
    ) -> Option<Event> {
        match action {
            Action::Spawn(incarnation) => return self.spawn(incarnation, supervisor).await,
            Action::Arm(token, at) => {
                let post = Arc::clone(&self.post);
                let timer = tokio::spawn(async move {
                    tokio::time::sleep_until(at).await;
                    post(SlotEvent(Event::Timer(token)));
                });
                // The earlier one would be told by its token; it goes, since a resource
                // that dies often would have thousands of them waiting.
                if let Some(earlier) = self.timer.replace(timer.abort_handle()) {
                    earlier.abort();
                }
            }
            Action::Goodbye(_) => {
                if let Some(actor) = &self.actor {
                    self.resource.goodbye(actor);
                }
            }
            Action::Kill(_) => {
                if let Some(tree) = &*lock(&self.tree) {
                    tree.kill();
                }
                if let Some(actor) = &self.actor {
                    actor.kill();
                }
            }
            Action::AwaitEmpty(incarnation) => return self.await_empty(incarnation),
            Action::CountBug => {
                let exit = self.slot.last_exit();
                *bug = Some(exit.map_or_else(String::new, ToString::to_string));
            }
        }
        None
    }

    async fn spawn(&mut self, incarnation: Incarnation, supervisor: &ActorCell) -> Option<Event> {
        let report = Report {
            incarnation,
            post: Arc::clone(&self.post),
            facts: Arc::clone(&self.facts),
            tree: Arc::clone(&self.tree),
            status: Arc::clone(&self.status),
        };
        match self.resource.spawn(report, supervisor.clone()).await {
            Ok(actor) => {
                self.actor = Some(actor);
                None
            }
            // Raises no supervision event, so it is reported here.
            Err(error) => Some(Event::Exited(incarnation, Exit::Bug(error.to_string().into()))),
        }
    }

    fn await_empty(&mut self, incarnation: Incarnation) -> Option<Event> {
        self.actor = None;
        let Some(tree) = lock(&self.tree).take() else { return Some(Event::Emptied(incarnation)) };
        tree.kill();
        if *tree.emptied().borrow() {
            return Some(Event::Emptied(incarnation));
        }
        let (post, status) = (Arc::clone(&self.post), Arc::clone(&self.status));
        tokio::spawn(async move {
            let mut emptied = tree.emptied();
            while tokio::time::timeout(EMPTY_BOUND, emptied.wait_for(|gone| *gone)).await.is_err() {
                let pid = tree.pid();
                tracing::warn!(pid, "a killed process tree is not empty after {EMPTY_BOUND:?}");
                status.update(|row| {
                    row.note = Some(format!("process {pid} was killed and is not gone yet").into());
                });
            }
            status.update(|row| row.note = None);
            post(SlotEvent(Event::Emptied(incarnation)));
        });
        None
    }

    fn publish(&mut self) {
        let phase = self.slot.phase();
        let live = match (phase, &self.actor, &*lock(&self.facts)) {
            (Phase::Up, Some(actor), Some((of, facts))) if *of == self.slot.incarnation() => {
                Some(Live { actor: actor.clone(), incarnation: *of, facts: Arc::clone(facts) })
            }
            _ => None,
        };
        self.status.update(|row| {
            row.phase = phase.word();
            row.incarnation = self.slot.incarnation();
            row.restarts = self.slot.restarts();
            row.last_error = self.slot.last_exit().map(|exit| exit.to_string().into());
            if !matches!(phase, Phase::Starting | Phase::Up | Phase::Stopping(_)) {
                row.pid = None;
                row.usage = None;
                row.doing = None;
            }
        });
        self.view.send_replace(View {
            phase,
            live,
            incarnation: self.slot.incarnation(),
            last_exit: self.slot.last_exit().cloned(),
        });
    }
}

#[cfg(test)]
mod tests;
