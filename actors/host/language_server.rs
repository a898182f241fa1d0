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
mod connection;
pub mod diagnostics;
pub mod documents;
mod envelope;
mod goodbye;
pub mod handshake;
pub mod lease;
mod observed;
mod progress;
mod registrations;
pub mod spec;
mod sync_options;
#[cfg(test)]
mod tests;
pub mod text;
pub mod uri;
mod verdict;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::ids::RunId;
use crate::ports::{
    BoxFuture, Ended, FileChange, Launch, LaunchError, LaunchOrder, Launched, Leftovers, Owner,
    ProcessTree, Wire,
};
use crate::supervise::exit::Exit;
use crate::supervise::slot::{Policy, Restart};
use crate::supervise::{Report, Resource, SlotHandle};
use connection::{Connection, Incoming};
use diagnostics::Proof;
use documents::{Document, Documents, Terms, changes_params};
use envelope::Message;
use handshake::{ServerFacts, initialize_params};
use lease::Lease;
use observed::Observed;
use progress::Progress;
use registrations::{DIAGNOSTIC, Registrations, WATCHED_FILES};
use spec::ServerSpec;

/// How long a server that answers nothing has for one more answer. A busy one
/// answers late, and then this is its last word.
const PING_BOUND: Duration = Duration::from_secs(10);
/// How long the end of a process may come after the end of its pipes.
const END_BOUND: Duration = Duration::from_secs(1);
/// How long what a process wrote before its end is still read.
const DRAIN_BOUND: Duration = Duration::from_millis(100);
/// Lines of stderr in an error.
const TAIL: usize = 20;
/// Changes kept for a server that has not yet said what it watches.
const MOST_EARLIER: usize = 2000;

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
    Sync(Sync),
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

/// An order to bring texts up to date.
#[derive(Debug)]
pub struct Sync {
    run: RunId,
    documents: Vec<Document>,
    saved: bool,
    reply: oneshot::Sender<Synced>,
}

/// Where the server is after a [`Sync`], as to its first document.
#[derive(Debug)]
struct Synced {
    superseded: bool,
    about: Option<(Proof, i32)>,
    moved_at: Instant,
    /// The identifiers under which diagnostics can be pulled.
    pull: Vec<Option<String>>,
}

/// The documents of a slot, shared by its actor and its callers.
type SharedDocuments = Arc<Mutex<Documents>>;

fn lock(documents: &SharedDocuments) -> MutexGuard<'_, Documents> {
    documents.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A language server as the resource of a slot.
#[derive(Clone)]
pub struct ServerResource {
    spec: Arc<ServerSpec>,
    launch: Arc<dyn Launch>,
    documents: SharedDocuments,
}

impl fmt::Debug for ServerResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerResource({} in {})", self.spec.name, self.spec.root.display())
    }
}

impl ServerResource {
    /// Makes it, not started.
    #[must_use]
    pub fn new(spec: Arc<ServerSpec>, launch: Arc<dyn Launch>) -> Self {
        let documents = Arc::new(Mutex::new(Documents::new(Instant::now())));
        Self { spec, launch, documents }
    }

    /// Returns what it was made from.
    #[must_use]
    pub fn spec(&self) -> &Arc<ServerSpec> {
        &self.spec
    }

    /// Hands a lease to a run. `on_drop` runs when it is given back; it must not
    /// block.
    #[must_use]
    pub fn lease(
        &self,
        slot: SlotHandle<LanguageServerMsg, ServerFacts>,
        run: RunId,
        on_drop: impl FnOnce() + Send + std::marker::Sync + 'static,
    ) -> Lease {
        Lease::new(slot, Arc::clone(&self.spec), Arc::clone(&self.documents), run, on_drop)
    }
}

impl Resource for ServerResource {
    type Msg = LanguageServerMsg;
    type Facts = ServerFacts;

    fn policy(&self) -> Policy {
        // The actor's own bound is the shorter, since it can tell the stderr's end.
        let start_deadline = self.spec.start_deadline + Duration::from_secs(1);
        Policy { restart: Restart::AtOnce, start_deadline, ..Policy::DEFAULT }
    }

    fn spawn(
        &self,
        report: Report<ServerFacts>,
        supervisor: ActorCell,
    ) -> BoxFuture<'_, Result<ActorRef<LanguageServerMsg>, SpawnErr>> {
        let start = Start { report, resource: self.clone() };
        Box::pin(async move {
            let spawned = LanguageServer::spawn_linked(None, LanguageServer, start, supervisor);
            spawned.await.map(|(actor, _)| actor)
        })
    }

    fn goodbye(&self, actor: &ActorRef<LanguageServerMsg>) {
        let _ = actor.cast(LanguageServerMsg::Goodbye);
    }
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
    leaving: bool,
    running: Option<Running>,
}

struct Running {
    tree: Arc<dyn ProcessTree>,
    connection: Arc<Connection>,
    observed: watch::Sender<Observed>,
    registrations: Registrations,
    progress: Progress,
    facts: Option<ServerTerms>,
    /// Changes from before it said what it watches.
    earlier: Vec<FileChange>,
    ping: Option<AbortOnDropHandle<()>>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

/// What of the facts shapes our notifications.
struct ServerTerms {
    encoding: text::Encoding,
    options: sync_options::SyncOptions,
    static_pull: Option<Option<String>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.connection.close();
    }
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
        let ServerResource { spec, launch, documents } = resource;
        let order = order(&spec);
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
            LanguageServerMsg::Launched(launched) => state.launched(&myself, launched)?,
            LanguageServerMsg::Initialized(answer) => state.initialized(answer)?,
            LanguageServerMsg::Incoming(Incoming { message, .. }) => state.incoming(message),
            LanguageServerMsg::Sync(sync) => state.sync(sync),
            LanguageServerMsg::Changed => state.tell_changes(),
            LanguageServerMsg::Release(run, only) => {
                let out = lock(&state.documents).release(run, only.as_deref());
                state.send(out);
            }
            LanguageServerMsg::Unanswered { asked } => state.ping(&myself, asked),
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
        }
        Ok(())
    }
}

fn order(spec: &ServerSpec) -> LaunchOrder {
    LaunchOrder {
        label: spec.name.clone(),
        program: spec.program.clone(),
        args: spec.args.clone(),
        cwd: spec.root.clone(),
        env: spec.env.clone(),
        wires: BTreeMap::from([(0, Wire::ToProcess), (1, Wire::FromProcess), (2, Wire::Ring)]),
        owner: spec.private_to.map_or(Owner::Host, Owner::Run),
        posture: spec.posture.clone(),
        leftovers: Leftovers::Kill,
    }
}

/// Sends `Ended` when the process has, and what it wrote before was read.
async fn watch_end(
    tree: Arc<dyn ProcessTree>,
    reading: AbortOnDropHandle<()>,
    actor: ActorRef<LanguageServerMsg>,
) {
    let mut ended = tree.ended();
    let how = match ended.wait_for(Option::is_some).await {
        Ok(how) => how.unwrap_or(Ended::Unknown),
        Err(_) => Ended::Unknown,
    };
    let _ = timeout(DRAIN_BOUND, reading).await;
    let _ = actor.cast(LanguageServerMsg::Ended(how));
}

async fn ping(connection: Arc<Connection>, actor: ActorRef<LanguageServerMsg>) {
    let began = Instant::now();
    // No server knows this method, and each must say so.
    let Ok(mut call) = connection.call("hostler/ping", Value::Null) else { return };
    if timeout(PING_BOUND, call.answer()).await.is_err() && connection.heard() < began {
        let reason = format!("hangs: it answered nothing for {PING_BOUND:?}, not even a ping");
        let _ = actor.cast(LanguageServerMsg::Broken(reason));
    }
}

impl State {
    fn exit(&self, exit: impl FnOnce(Arc<str>) -> Exit) -> ActorProcessingErr {
        let tail = self.running.as_ref().map(|running| running.tree.ring_tail(TAIL));
        Box::new(exit(tail.unwrap_or_default().into()))
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
        let (connection, writing) = Connection::new(myself.clone(), stdin);
        let reading = tokio::spawn(Arc::clone(&connection).read_all(stdout));
        let reading = AbortOnDropHandle::new(reading);
        let ending = watch_end(Arc::clone(&tree), reading, myself.clone());
        self.running = Some(Running {
            tree,
            connection: Arc::clone(&connection),
            observed: watch::channel(Observed::default()).0,
            registrations: Registrations::default(),
            progress: Progress::default(),
            facts: None,
            earlier: Vec::new(),
            ping: None,
            _tasks: [tokio::spawn(writing), tokio::spawn(ending)].map(AbortOnDropHandle::new),
        });
        if self.leaving {
            self.say_goodbye(myself);
        } else {
            self.greet(myself, &connection);
        }
        Ok(())
    }

    fn greet(&self, myself: &ActorRef<LanguageServerMsg>, connection: &Arc<Connection>) {
        self.doing(Some("initialize".into()));
        let Ok(mut call) = connection.call("initialize", initialize_params(&self.spec)) else {
            return;
        };
        let (bound, myself) = (self.spec.start_deadline, myself.clone());
        tokio::spawn(async move {
            let answer = match timeout(bound, call.answer()).await {
                Ok(Ok(Ok(Some(raw)))) => {
                    serde_json::from_str(raw.get()).map_err(|error| error.to_string())
                }
                Ok(Ok(Ok(None))) => Err("it answered `initialize` with nothing".to_owned()),
                Ok(Ok(Err(refusal))) => {
                    Err(format!("it refused `initialize`: {}", refusal.message))
                }
                // Its end is told otherwise.
                Ok(Err(_)) => return,
                Err(_) => Err(format!("it did not answer `initialize` within {bound:?}")),
            };
            let _ = myself.cast(LanguageServerMsg::Initialized(answer));
        });
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
        let connection = &running.connection;
        connection.notify("initialized", serde_json::json!({}));
        if !self.spec.settings.is_null() {
            let settings = serde_json::json!({ "settings": self.spec.settings });
            connection.notify("workspace/didChangeConfiguration", settings);
        }
        let facts =
            ServerFacts::read(&answer, Arc::clone(connection), running.observed.subscribe());
        running.facts = Some(ServerTerms::of(&facts));
        let again = lock(&self.documents).reopen(Instant::now(), self.report.incarnation());
        self.send(again);
        self.tell_changes();
        self.doing(None);
        self.report.ready(facts);
        Ok(())
    }

    fn doing(&self, line: Option<Arc<str>>) {
        self.report.status().update(|row| {
            if row.doing.as_ref().map(|(line, _)| line) != line.as_ref() {
                row.doing = line.map(|line| (line, Instant::now()));
            }
        });
    }

    fn send(&self, out: Vec<documents::Outgoing>) {
        if let Some(running) = &self.running {
            for (method, params) in out {
                running.connection.notify(method, params);
            }
        }
    }

    fn incoming(&mut self, message: Message) {
        let Some(running) = &mut self.running else { return };
        match message {
            Message::Request { id, method, params } => {
                let answer = answers::answer(&method, &params, &self.spec);
                running.connection.answer(&id, answer);
                self.requested(&method, &params);
            }
            Message::Notification { method, params } => self.notified(&method, &params),
            Message::Answer { .. } => {}
        }
    }

    fn requested(&mut self, method: &str, params: &Value) {
        let Some(running) = &mut self.running else { return };
        match method {
            "client/registerCapability" => running.registrations.register(params),
            "client/unregisterCapability" => running.registrations.unregister(params),
            "workspace/diagnostic/refresh" => lock(&self.documents).move_on(Instant::now()),
            _ => return,
        }
        running.observed.send_modify(|observed| observed.registered += 1);
        self.tell_changes();
    }

    fn notified(&mut self, method: &str, params: &Value) {
        let Some(running) = &mut self.running else { return };
        match method {
            "textDocument/publishDiagnostics" => {
                let now = Instant::now();
                running.observed.send_modify(|observed| observed.publish(now, params));
            }
            "$/progress" => {
                running.progress.take(params);
                let line: Option<Arc<str>> = running.progress.line().map(Into::into);
                running.observed.send_if_modified(|observed| {
                    let ended = observed.doing.is_some() && line.is_none();
                    observed.doing.clone_from(&line);
                    ended
                });
                if running.facts.is_some() {
                    self.doing(line);
                }
            }
            "window/logMessage" | "window/showMessage" => {
                tracing::debug!(server = self.spec.name, %params, "a server says");
            }
            _ => {}
        }
    }

    fn sync(&mut self, Sync { run, documents, saved, reply }: Sync) {
        self.tell_changes();
        let Some((running, facts)) =
            self.running.as_ref().and_then(|running| Some((running, running.facts.as_ref()?)))
        else {
            return;
        };
        let terms = facts.terms(&running.registrations);
        let mut held = lock(&self.documents);
        let steps = held.sync(Instant::now(), run, &documents, saved, &terms);
        let first = documents.first();
        let synced = Synced {
            superseded: steps.superseded,
            about: first.and_then(|document| held.about(&document.path)),
            moved_at: held.moved_at(),
            pull: first.map(|document| running.identifiers(document)).unwrap_or_default(),
        };
        drop(held);
        // Before they are sent: what comes after is about the new text.
        running.observed.send_if_modified(|observed| {
            steps.renewed.iter().for_each(|path| observed.text_changed(path));
            false
        });
        self.send(steps.out);
        let _ = reply.send(synced);
    }

    fn tell_changes(&mut self) {
        let Some(running) = self.running.as_mut().filter(|running| running.facts.is_some()) else {
            return;
        };
        let mut changes = std::mem::take(&mut running.earlier);
        changes.extend(lock(&self.documents).take_untold());
        if running.registrations.newest(WATCHED_FILES).is_none() {
            changes.truncate(MOST_EARLIER);
            running.earlier = changes;
            return;
        }
        changes.retain(|change| running.registrations.wants(change));
        if !changes.is_empty() {
            running.connection.notify(WATCHED_FILES, changes_params(changes.iter()));
        }
    }

    fn ping(&mut self, myself: &ActorRef<LanguageServerMsg>, asked: Instant) {
        let Some(running) = &mut self.running else { return };
        let pinging = running.ping.as_ref().is_some_and(|ping| !ping.is_finished());
        if pinging || running.connection.heard() > asked {
            return;
        }
        let ping = tokio::spawn(ping(Arc::clone(&running.connection), myself.clone()));
        running.ping = Some(AbortOnDropHandle::new(ping));
    }

    fn say_goodbye(&mut self, myself: &ActorRef<LanguageServerMsg>) {
        self.leaving = true;
        // A launch that is under way is told apart when it comes.
        let Some(running) = &self.running else { return };
        running.connection.close();
        let polite = running.facts.is_some();
        let goodbye =
            goodbye::say(Arc::clone(&running.connection), Arc::clone(&running.tree), polite);
        let myself = myself.clone();
        tokio::spawn(async move {
            goodbye.await;
            let _ = myself.cast(LanguageServerMsg::Gone);
        });
    }
}

impl Running {
    fn identifiers(&self, document: &Document) -> Vec<Option<String>> {
        let registered = self
            .registrations
            .covering(DIAGNOSTIC, &document.path, &document.language_id)
            .map(identifier);
        let fixed = self.facts.as_ref().and_then(|facts| facts.static_pull.clone());
        let mut all: Vec<_> = fixed.into_iter().chain(registered).collect();
        all.sort();
        all.dedup();
        all
    }
}

fn identifier(options: &Value) -> Option<String> {
    options.get("identifier").and_then(Value::as_str).map(str::to_owned)
}

impl ServerTerms {
    fn of(facts: &ServerFacts) -> Self {
        let static_pull = facts.capabilities.get("diagnosticProvider");
        Self {
            encoding: facts.encoding,
            options: facts.sync,
            static_pull: static_pull.filter(|options| options.is_object()).map(identifier),
        }
    }

    fn terms<'a>(&self, registrations: &'a Registrations) -> Terms<'a> {
        Terms { encoding: self.encoding, options: self.options, registrations }
    }
}
