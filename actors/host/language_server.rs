//! One incarnation of one language server: its process, its handshake, its end.
//!
//! Supervised by the host, which holds it in a slot; callers use a [`lease::Lease`].
//! The actor owns what one incarnation has: process tree, registrations, progress,
//! documents. It awaits nothing outside: launch, handshake, ping and goodbye are
//! tasks that report by message. Warm requests go past it, through the connection
//! that it made. It may not read a file nor start a process by itself.
//!
//! The tricky thing: the end of the process is told by its tree alone. A pipe may
//! close before it, or stay open long after it in a grandchild's hands.

mod answers;
mod changes;
mod connection;
pub mod diagnostics;
pub mod documents;
mod envelope;
mod goodbye;
pub mod handshake;
mod inner;
pub mod lease;
mod observed;
mod open_document;
mod progress;
mod registrations;
pub mod resource;
mod running;
pub mod spec;
mod sync_options;
#[cfg(test)]
mod tests;
pub mod text;
pub mod uri;
mod verdict;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::ids::RunId;
use crate::ports::{Ended, LaunchError, Launched};
use crate::supervise::exit::Exit;
use crate::supervise::report::Report;
use connection::{Connection, Incoming};
use documents::{SharedDocuments, lock};
use handshake::{ServerFacts, initialize_params};
use resource::{ServerResource, order};
use running::{Running, SyncOrder};
use spec::ServerSpec;

/// How long the end of a process may come after the end of its pipes.
const END_BOUND: Duration = Duration::from_secs(1);
/// Lines of stderr in an error.
const TAIL: usize = 20;

/// What the actor understands.
#[derive(Debug)]
pub enum LanguageServerMsg {
    /// Brings its process, or why there is none.
    Launched(Result<Launched, LaunchError>),
    /// Brings the answer to `initialize`, or why it is no good.
    Initialized(Result<Value, String>),
    /// Brings a request or notification of the server.
    Incoming(Incoming),
    /// Brings the server's texts up to those of some files.
    Sync(SyncOrder),
    /// Says that files changed, by what the documents hold of it.
    Changed,
    /// Drops a run's hold on one document or on all.
    Release(RunId, Option<Arc<Path>>),
    /// Says that a request was not answered within its bound.
    Unanswered {
        /// When it was made.
        asked: Instant,
    },
    /// Says that a pipe ended, which the process should do too.
    PipeLost(&'static str),
    /// Says what the process did that it must be replaced for.
    Broken(String),
    /// Says that the main process has ended.
    Ended(Ended),
    /// Asks it to say goodbye to its process and end.
    Goodbye,
    /// Says that the process is gone.
    Gone,
}

struct LanguageServer;

struct Start {
    report: Report<ServerFacts>,
    resource: ServerResource,
}

struct State {
    report: Report<ServerFacts>,
    spec: Arc<ServerSpec>,
    documents: SharedDocuments,
    /// A goodbye was asked for: what the process does from here on is no fault.
    leaving: bool,
    running: Option<Running>,
}

impl Actor for LanguageServer {
    type Msg = LanguageServerMsg;
    type State = State;
    type Arguments = Start;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        Start { report, resource }: Start,
    ) -> Result<State, ActorProcessingErr> {
        let ServerResource { spec, launch, documents, .. } = resource;
        let order = order(&spec);
        // The process finds on disk what changed before it.
        lock(&documents).take_untold();
        tokio::spawn(async move {
            // If nobody is left to take it, dropping it kills the tree.
            let _ = myself.cast(LanguageServerMsg::Launched(launch.launch(order).await));
        });
        Ok(State { report, spec, documents, leaving: false, running: None })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            LanguageServerMsg::Launched(launched) => return state.launched(&myself, launched),
            LanguageServerMsg::Initialized(answer) => return state.initialized(answer),
            LanguageServerMsg::PipeLost(which) if !state.leaving => {
                myself.send_after(END_BOUND, move || LanguageServerMsg::Broken(which.to_owned()));
            }
            LanguageServerMsg::Broken(reason) if !state.leaving => {
                return Err(state.exit(|tail| Exit::Misbehaved { reason: reason.into(), tail }));
            }
            LanguageServerMsg::Ended(ended) if !state.leaving => {
                return Err(state.exit(|tail| Exit::ProcessDied { ended, tail }));
            }
            LanguageServerMsg::PipeLost(_)
            | LanguageServerMsg::Broken(_)
            | LanguageServerMsg::Ended(_) => {}
            LanguageServerMsg::Goodbye => state.say_goodbye(&myself),
            LanguageServerMsg::Gone => myself.stop(None),
            of_running => state.on_running(&myself, of_running),
        }
        Ok(())
    }
}

impl State {
    fn on_running(&mut self, myself: &ActorRef<LanguageServerMsg>, message: LanguageServerMsg) {
        let Some(running) = &mut self.running else { return };
        match message {
            LanguageServerMsg::Incoming(Incoming { message, .. }) => {
                running.incoming(message);
                if running.is_up() {
                    let doing = running.doing();
                    self.doing(doing);
                }
            }
            LanguageServerMsg::Sync(order) => running.sync(order),
            LanguageServerMsg::Changed => running.tell_changes(),
            LanguageServerMsg::Release(run, only) => running.release(run, only.as_deref()),
            LanguageServerMsg::Unanswered { asked } => running.ping(myself, asked),
            _ => {}
        }
    }

    fn exit(&self, exit: impl FnOnce(Arc<str>) -> Exit) -> ActorProcessingErr {
        let tail = self.running.as_ref().map(|running| running.tree.ring_tail(TAIL));
        Box::new(exit(tail.unwrap_or_default().into()))
    }

    fn doing(&self, line: Option<Arc<str>>) {
        self.report.status().update(|row| {
            if row.doing.as_ref().map(|(line, _)| line) != line.as_ref() {
                row.doing = line.map(|line| (line, Instant::now()));
            }
        });
    }

    fn launched(
        &mut self,
        myself: &ActorRef<LanguageServerMsg>,
        launched: Result<Launched, LaunchError>,
    ) -> Result<(), ActorProcessingErr> {
        let Launched { tree, mut to_process, mut from_process } = match launched {
            Ok(launched) => launched,
            Err(_) if self.leaving => {
                myself.stop(None);
                return Ok(());
            }
            Err(error) => return Err(Box::new(Exit::LaunchFailed(error))),
        };
        self.report.launched(&tree);
        let (Some(stdin), Some(stdout)) = (to_process.remove(&0), from_process.remove(&1)) else {
            return Err(Box::new(Exit::Bug("the launcher gave no pipes".into())));
        };
        let shared = (Arc::clone(&self.spec), Arc::clone(&self.documents));
        let running = Running::new(myself, shared, tree, (stdin, stdout));
        if !self.leaving {
            self.doing(Some("initialize".into()));
            greet(myself.clone(), &running.connection, &self.spec);
        }
        self.running = Some(running);
        if self.leaving {
            self.say_goodbye(myself);
        }
        Ok(())
    }

    fn initialized(&mut self, answer: Result<Value, String>) -> Result<(), ActorProcessingErr> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(_) if self.leaving => return Ok(()),
            Err(reason) => {
                let reason = reason.into();
                return Err(self.exit(|tail| Exit::HandshakeFailed { reason, tail }));
            }
        };
        let Some(running) = &mut self.running else { return Ok(()) };
        let facts = running.initialized(&answer, self.report.incarnation());
        let doing = running.doing();
        self.doing(doing);
        self.report.ready(facts);
        Ok(())
    }

    fn say_goodbye(&mut self, myself: &ActorRef<LanguageServerMsg>) {
        self.leaving = true;
        // One that is still being launched is told when it comes.
        let Some(running) = &self.running else { return };
        running.connection.close();
        let (connection, tree) = (Arc::clone(&running.connection), Arc::clone(&running.tree));
        let goodbye = goodbye::say(connection, tree, running.is_up());
        let myself = myself.clone();
        tokio::spawn(async move {
            goodbye.await;
            let _ = myself.cast(LanguageServerMsg::Gone);
        });
    }
}

/// Sends `initialize`; its answer, or why there is none, comes by message.
fn greet(actor: ActorRef<LanguageServerMsg>, connection: &Arc<Connection>, spec: &ServerSpec) {
    let Ok(mut call) = connection.call("initialize", initialize_params(spec)) else { return };
    let bound = spec.start_deadline;
    tokio::spawn(async move {
        let answer = match timeout(bound, call.answer()).await {
            Ok(Ok(Ok(Some(raw)))) => {
                serde_json::from_str(raw.get()).map_err(|error| error.to_string())
            }
            Ok(Ok(Ok(None))) => Err("it answered `initialize` with nothing".to_owned()),
            Ok(Ok(Err(refusal))) => Err(format!("it refused `initialize`: {}", refusal.message)),
            // The end of its process is told by its tree.
            Ok(Err(_)) => return,
            Err(_) => Err(format!("it did not answer `initialize` within {bound:?}")),
        };
        let _ = actor.cast(LanguageServerMsg::Initialized(answer));
    });
}
