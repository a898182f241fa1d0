//! The conversation's debug session: at most one, and what outlives it. Supervised by
//! the conversation, which starts the actor on first use.
//!
//! The actor owns what must go when it goes: the adapter's process and the tasks of the
//! session. It begins, and it ends: by request, by the time limit, with the debuggee,
//! with the adapter. Questions and steps go past it, through the [`session::Session`]
//! that it made. It awaits nothing outside; starts and goodbyes are tasks.
//!
//! The tricky thing: a session that is over frees its place by itself, but only once
//! its process is gone, so whoever begins meanwhile waits for that and for nothing else.

pub mod adapter;
pub mod bodies;
pub mod book;
pub mod breakpoints;
mod children;
mod configure;
pub mod desk;
mod goodbye;
mod hearing;
pub mod inspect;
pub mod link;
pub mod output;
pub mod refusal;
pub mod report;
pub mod session;
pub mod spec;
mod start;
#[cfg(test)]
mod tests;
pub mod travel;
mod wire;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::ports::{Launch, ProcessTree, Sockets};
use crate::status::StatusEntry;
use adapter::Started;
use desk::{NotBegun, Shared};
use refusal::End;
use session::{Means, Session};
use spec::{Kind, SessionSpec};

/// How long an adapter is kept ready after one was lost: `spec/operations.md`.
const READY: Duration = Duration::from_secs(60);
/// How long a killed tree may take to be empty.
const EMPTY: Duration = Duration::from_secs(3);

/// What the actor understands.
#[derive(Debug)]
pub enum DebugSessionMsg {
    /// Begins a session, unless there is one.
    Begin(Box<SessionSpec>, RpcReplyPort<Begun>),
    /// Brings the process of a session's adapter.
    Launched(u64, Arc<dyn ProcessTree>),
    /// Says that a session is over, and its adapter is to go.
    Over(u64),
    /// Says that a session's time is up.
    Expired(u64),
    /// Says that nothing of a session is left.
    Gone(u64),
    /// Brings an adapter that was started in the place of a session's lost one.
    Ready(u64, Started),
    /// Lets the adapter go that was kept ready after a session.
    Unwanted(u64),
    /// Says that what was kept ready is gone.
    Dismissed,
    /// Ends the session and the actor.
    End(RpcReplyPort<()>),
}

/// A session that has begun, or why none has.
type Begun = Result<Arc<Session>, NotBegun>;

/// What the actor begins with.
pub struct DebugSessionArgs {
    /// Starts adapters.
    pub launch: Arc<dyn Launch>,
    /// Connects to them.
    pub sockets: Arc<dyn Sockets>,
    /// What outlives the actor.
    pub shared: Arc<Shared>,
    /// Its row.
    pub status: StatusEntry,
}

struct Held {
    session: Arc<Session>,
    tree: Option<Arc<dyn ProcessTree>>,
    /// Ends the session's tasks with the actor, however that ends.
    _tasks: DropGuard,
}

/// What the actor keeps.
pub struct State {
    launch: Arc<dyn Launch>,
    sockets: Arc<dyn Sockets>,
    shared: Arc<Shared>,
    status: Arc<StatusEntry>,
    held: Option<Held>,
    /// An adapter for the next launch, and the session whose it replaces.
    ready: Option<(u64, Started)>,
    /// Who wants to begin once the last one is gone.
    next: Vec<(Box<SessionSpec>, RpcReplyPort<Begun>)>,
    ending: Option<RpcReplyPort<()>>,
}

/// The debug session's actor.
#[derive(Debug)]
pub struct DebugSession;

impl Actor for DebugSession {
    type Msg = DebugSessionMsg;
    type State = State;
    type Arguments = DebugSessionArgs;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        args: DebugSessionArgs,
    ) -> Result<State, ActorProcessingErr> {
        let DebugSessionArgs { launch, sockets, shared, status } = args;
        let status = Arc::new(status);
        Ok(State {
            launch,
            sockets,
            shared,
            status,
            held: None,
            ready: None,
            next: Vec::new(),
            ending: None,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            DebugSessionMsg::Begin(spec, reply) => state.begin(&myself, spec, reply),
            DebugSessionMsg::Launched(number, tree) => match state.held(number) {
                Some(held) if held.session.look(|book| book.over.is_none()) => {
                    held.tree = Some(tree);
                }
                // It came too late, and is nobody's.
                _ => tree.kill(),
            },
            DebugSessionMsg::Over(number) => {
                if let Some(held) = state.held(number) {
                    let goodbye = goodbye::say(Arc::clone(&held.session), held.tree.take());
                    tokio::spawn(async move {
                        goodbye.await;
                        let _ = myself.cast(DebugSessionMsg::Gone(number));
                    });
                }
            }
            DebugSessionMsg::Expired(number) => {
                if let Some(held) = state.held(number) {
                    held.session.end(End::Expired);
                }
            }
            DebugSessionMsg::Gone(number) => state.gone(&myself, number),
            DebugSessionMsg::Ready(number, started) => state.keep_ready(&myself, number, started),
            DebugSessionMsg::Unwanted(number) => {
                if state.ready.take_if(|(of, _)| *of == number).is_some() {
                    state.status.update(|row| row.pid = None);
                }
            }
            DebugSessionMsg::Dismissed => state.ended(&myself),
            DebugSessionMsg::End(reply) => {
                state.ending = Some(reply);
                match &state.held {
                    Some(held) => held.session.end(End::Closed),
                    None => state.ended(&myself),
                }
            }
        }
        Ok(())
    }
}

impl State {
    fn held(&mut self, number: u64) -> Option<&mut Held> {
        self.held.as_mut().filter(|held| held.session.number == number)
    }

    fn begin(
        &mut self,
        myself: &ActorRef<DebugSessionMsg>,
        spec: Box<SessionSpec>,
        reply: RpcReplyPort<Begun>,
    ) {
        let answer = match &self.held {
            _ if self.ending.is_some() => Err(NotBegun::Gone),
            Some(held) if held.session.look(|book| book.over.is_none()) => {
                Err(NotBegun::Occupied(Arc::clone(&held.session)))
            }
            Some(_) => return self.next.push((spec, reply)),
            None => Ok(self.start(myself, *spec)),
        };
        let _ = reply.send(answer);
    }

    fn start(&mut self, myself: &ActorRef<DebugSessionMsg>, spec: SessionSpec) -> Arc<Session> {
        let number = self.shared.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        // One that is not wanted goes: what is wanted now is known.
        let ready = self.ready.take().map(|(_, started)| started);
        let means = Means {
            ready: Mutex::new(ready.filter(|started| started.fits(&spec))),
            launch: Arc::clone(&self.launch),
            sockets: Arc::clone(&self.sockets),
            wishes: Arc::clone(&self.shared.wishes),
            stops: Arc::clone(&self.shared.stops),
            status: Arc::clone(&self.status),
            actor: myself.clone(),
        };
        let note = format!("{}: {}", spec.adapter, spec.what);
        self.status.update(|row| {
            row.note = Some(note.into());
            row.last_error = None;
            row.incarnation = row.incarnation.next();
        });
        let owner = CancellationToken::new();
        let ttl = spec.bounds.ttl;
        let session = Session::new(number, spec, means, owner.clone());
        myself.send_after(ttl, move || DebugSessionMsg::Expired(number));
        tokio::spawn(start::start(Arc::clone(&session)));
        *self.shared.latest.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::clone(&session));
        let held = Held { session: Arc::clone(&session), tree: None, _tasks: owner.drop_guard() };
        self.held = Some(held);
        session
    }

    fn gone(&mut self, myself: &ActorRef<DebugSessionMsg>, number: u64) {
        let Some(held) = self.held.take_if(|held| held.session.number == number) else { return };
        let lost = held.session.look(|book| match &book.over {
            Some(End::Lost(why) | End::NotStarted(why)) => Some(why.as_str().into()),
            _ => None,
        });
        self.status.update(|row| {
            row.pid = None;
            row.usage = None;
            row.last_error = lost;
        });
        held.session.change(|book| book.gone = true);
        if self.ending.is_some() {
            return self.ended(myself);
        }
        let lost = held.session.look(|book| matches!(book.over, Some(End::Lost(_))));
        if lost && held.session.spec.kind == Kind::Launch && self.next.is_empty() {
            self.replace(myself, &held.session);
        }
        for (spec, reply) in std::mem::take(&mut self.next) {
            self.begin(myself, spec, reply);
        }
    }

    /// Starts an adapter in the place of a lost one, so that the next launch is quick.
    /// The debuggee is not run again: whoever wants that says so.
    fn replace(&self, myself: &ActorRef<DebugSessionMsg>, session: &Arc<Session>) {
        let (launch, sockets) = (Arc::clone(&self.launch), Arc::clone(&self.sockets));
        let (session, myself) = (Arc::clone(session), myself.clone());
        tokio::spawn(async move {
            match adapter::start(&*launch, &*sockets, &session.spec).await {
                Ok(started) => {
                    let _ = myself.cast(DebugSessionMsg::Ready(session.number, started));
                }
                // The next launch tries again, and says why not.
                Err(why) => tracing::info!("a lost debug adapter was not started again: {why}"),
            }
        });
    }

    fn keep_ready(&mut self, myself: &ActorRef<DebugSessionMsg>, number: u64, started: Started) {
        if self.held.is_some() || self.ending.is_some() {
            return;
        }
        let pid = started.tree.pid();
        self.status.update(|row| {
            row.pid = Some(pid);
            row.restarts += 1;
        });
        self.ready = Some((number, started));
        myself.send_after(READY, move || DebugSessionMsg::Unwanted(number));
    }

    fn ended(&mut self, myself: &ActorRef<DebugSessionMsg>) {
        if let Some((_, Started { tree, .. })) = self.ready.take() {
            let myself = myself.clone();
            tokio::spawn(async move {
                tree.kill();
                let _ = tokio::time::timeout(EMPTY, tree.emptied().wait_for(|empty| *empty)).await;
                let _ = myself.cast(DebugSessionMsg::Dismissed);
            });
            return;
        }
        if let Some(reply) = self.ending.take() {
            let _ = reply.send(());
        }
        myself.stop(None);
    }
}
