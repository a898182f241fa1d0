//! What one incarnation has once its process runs, and what it does with what the
//! server says. The actor owns it; nothing here waits.

use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::LanguageServerMsg;
use super::answers::answer;
use super::changes::Changes;
use super::connection::Connection;
use super::documents::{About, Document, Purpose, SharedDocuments, lock};
use super::envelope::Message;
use super::handshake::ServerFacts;
use super::inner::Inner;
use super::observed::Observed;
use super::open_document::{Outgoing, Terms};
use super::progress::Progress;
use super::registrations::{DIAGNOSTIC, Registrations, WATCHED_FILES};
use super::spec::{Recipe, Reread, ServerSpec};
use crate::ids::{Incarnation, RunId};
use crate::ports::{Ended, PipeReader, PipeWriter, ProcessTree};

/// How long a server that answers nothing has for one more answer. A busy one
/// answers late, and then this is its last word.
const PING_BOUND: Duration = Duration::from_secs(10);
/// How long what a process wrote before its end is still read.
const DRAIN_BOUND: Duration = Duration::from_millis(100);
/// How the tokens of the progress of rust-analyzer's checks begin.
const CHECK: &str = "rust-analyzer/flycheck/";
/// How long a server may take to read its projects afresh.
const RELOAD_BOUND: Duration = Duration::from_secs(60);

/// An order to bring the server's texts up to date.
#[derive(Debug)]
pub struct SyncOrder {
    pub(super) run: RunId,
    pub(super) documents: Vec<Document>,
    /// The run has just written them.
    pub(super) saved: bool,
    /// A verdict on them is wanted.
    pub(super) judged: bool,
    pub(super) reply: oneshot::Sender<Synced>,
}

/// Where the server is after a [`SyncOrder`], as to its first document.
#[derive(Debug)]
pub(super) struct Synced {
    /// Is one of the texts older than the server's.
    pub(super) superseded: bool,
    /// What a verdict would speak of.
    pub(super) about: Option<About>,
    /// When anything else last changed.
    pub(super) moved_at: Instant,
    /// When it was last asked to check the whole project.
    pub(super) checked_at: Option<Instant>,
    /// Has something changed since.
    pub(super) outdated: bool,
    /// The identifiers under which diagnostics can be pulled.
    pub(super) pull: Vec<Option<String>>,
}

/// What one incarnation has once its process runs.
pub(super) struct Running {
    pub(super) tree: Arc<dyn ProcessTree>,
    pub(super) connection: Arc<Connection>,
    spec: Arc<ServerSpec>,
    documents: SharedDocuments,
    facts: Option<Shape>,
    observed: watch::Sender<Observed>,
    registrations: Registrations,
    progress: Progress,
    /// Changes from before it said what it watches.
    earlier: Changes,
    /// When it was last asked to check the whole project.
    checked_at: Option<Instant>,
    /// Something has changed before that check began.
    check_again: bool,
    ping: Option<AbortOnDropHandle<()>>,
    inner: Arc<Inner>,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

/// What of the facts shapes our notifications.
struct Shape {
    encoding: super::text::Encoding,
    options: super::sync_options::SyncOptions,
    pull: Option<Option<String>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.connection.close();
    }
}

impl Running {
    /// Starts to read and write a process's pipes and to watch for its end.
    pub(super) fn new(
        actor: &ActorRef<LanguageServerMsg>,
        (spec, documents): (Arc<ServerSpec>, SharedDocuments),
        tree: Arc<dyn ProcessTree>,
        (stdin, stdout): (PipeWriter, PipeReader),
    ) -> Self {
        let (connection, writing) = Connection::new(actor.clone(), stdin);
        let reading = tokio::spawn(Arc::clone(&connection).read_all(stdout));
        let reading = AbortOnDropHandle::new(reading);
        let ending = watch_end(Arc::clone(&tree), reading, actor.clone());
        let inner = Arc::<Inner>::default();
        let follow = spec.inner_process.clone().map(|part| {
            let following = Arc::clone(&inner).follow(Arc::clone(&tree), part, actor.clone());
            tokio::spawn(following)
        });
        let reading = spec.ready_log.is_some().then(|| "reading the project".into());
        let observed = Observed::reading(reading);
        let tasks = [tokio::spawn(writing), tokio::spawn(ending)].into_iter().chain(follow);
        Self {
            tree,
            connection,
            spec,
            documents,
            facts: None,
            observed: watch::channel(observed).0,
            registrations: Registrations::default(),
            progress: Progress::default(),
            earlier: Changes::default(),
            checked_at: None,
            check_again: false,
            ping: None,
            inner,
            _tasks: tasks.map(AbortOnDropHandle::new).collect(),
        }
    }

    /// Says whether the handshake is done.
    pub(super) fn is_up(&self) -> bool {
        self.facts.is_some()
    }

    /// Returns what the server says it is busy with.
    pub(super) fn doing(&self) -> Option<Arc<str>> {
        self.observed.borrow().doing.clone()
    }

    /// Ends the handshake: says so, and opens again what was open before.
    pub(super) fn initialized(&mut self, answer: &Value, at: Incarnation) -> ServerFacts {
        self.connection.notify("initialized", json!({}));
        if !self.spec.settings.is_null() {
            let settings = json!({ "settings": self.spec.settings });
            self.connection.notify("workspace/didChangeConfiguration", settings);
        }
        let (connection, inner) = (Arc::clone(&self.connection), Arc::clone(&self.inner));
        let facts = ServerFacts::read(answer, connection, self.observed.subscribe(), inner);
        let pull = facts.capabilities.get("diagnosticProvider");
        self.facts = Some(Shape {
            encoding: facts.encoding,
            options: facts.sync,
            pull: pull.filter(|options| options.is_object()).map(identifier),
        });
        if let Some(terms) = self.terms() {
            let again = lock(&self.documents).reopen(Instant::now(), at, &terms);
            self.send(again);
        }
        self.tell_changes();
        facts
    }

    /// Takes a request or notification of the server.
    pub(super) fn incoming(&mut self, message: Message) {
        match message {
            Message::Request { id, method, params } => {
                self.connection.answer(&id, answer(&method, &params, &self.spec));
                self.requested(&method, &params);
            }
            Message::Notification { method, params } => self.notified(&method, &params),
            Message::Answer { .. } => {}
        }
    }

    fn requested(&mut self, method: &str, params: &Value) {
        match method {
            "client/registerCapability" => self.registrations.register(params),
            "client/unregisterCapability" => self.registrations.unregister(params),
            "workspace/diagnostic/refresh" => lock(&self.documents).move_on(Instant::now()),
            _ => return,
        }
        // Who waits for a verdict looks again at how it can be had.
        self.observed.send_modify(|_| {});
        self.tell_changes();
    }

    fn notified(&mut self, method: &str, params: &Value) {
        let now = Instant::now();
        let says = |name: &str| params.get(name).and_then(Value::as_bool);
        match method {
            "textDocument/publishDiagnostics" => {
                self.observed.send_modify(|observed| observed.publish(now, params));
            }
            "textDocument/clangd.fileStatus" => {
                self.observed.send_modify(|observed| observed.file_status(params));
            }
            "experimental/serverStatus" => {
                let loading = says("quiescent") == Some(false);
                if self.observed.borrow().loading && !loading {
                    // What a check had found is forgotten with the workspace of then.
                    lock(&self.documents).changed(now, Vec::new());
                }
                self.observed.send_modify(|observed| {
                    observed.loading = loading;
                    observed.unfit = unfit(params);
                    let doing = || loading.then(|| "loading the workspace".into());
                    observed.doing = observed.unfit.clone().or_else(doing);
                });
            }
            "$/analyzerStatus" => self.observed.send_modify(|observed| match says("isAnalyzing") {
                Some(true) => observed.analysis.begin(method),
                _ => observed.analysis.end(now, method),
            }),
            "$/progress" => self.progressed(now, params),
            "window/logMessage" | "window/showMessage" => {
                let said = params.get("message").and_then(Value::as_str).unwrap_or_default();
                if self.spec.ready_log.as_deref().is_some_and(|part| said.contains(part)) {
                    self.observed.send_modify(|observed| observed.reading = None);
                }
                tracing::debug!(server = self.spec.name, %params, "a server says");
            }
            _ => {}
        }
    }

    fn progressed(&mut self, now: Instant, params: &Value) {
        let token = params.get("token").and_then(Value::as_str).unwrap_or_default();
        let kind = params.get("value").and_then(|value| value.get("kind")).and_then(Value::as_str);
        if token.starts_with(CHECK) {
            self.observed.send_modify(|observed| match kind {
                Some("begin") => observed.check.begin(token),
                Some("end") => observed.check.end(now, token),
                _ => {}
            });
            if kind == Some("begin") && std::mem::take(&mut self.check_again) {
                self.ask_check(now);
            }
            return;
        }
        self.progress.take(params);
        let line: Option<Arc<str>> = self.progress.line().map(Into::into);
        self.observed.send_if_modified(|observed| {
            let ended = observed.doing.is_some() && line.is_none();
            observed.doing = line;
            ended
        });
    }

    /// Brings the server's texts up to those of an order.
    pub(super) fn sync(&mut self, SyncOrder { run, documents, saved, judged, reply }: SyncOrder) {
        self.tell_changes();
        let now = Instant::now();
        let Some(terms) = self.terms() else { return };
        let mut held = lock(&self.documents);
        let steps = held.sync(now, Purpose { run, written: saved }, &documents, &terms);
        // One check of the whole project is for whatever changed before it.
        let files_at = held.files_at();
        let outdated = |at: Option<Instant>| at.is_none_or(|at| at < files_at);
        let check = judged && self.spec.recipe == Recipe::Flycheck && outdated(self.checked_at);
        let first = documents.first();
        let synced = Synced {
            superseded: steps.superseded,
            about: first.and_then(|document| held.about(&document.path)),
            moved_at: held.moved_at(),
            checked_at: self.checked_at,
            outdated: outdated(self.checked_at),
            pull: first.map(|document| self.identifiers(document)).unwrap_or_default(),
        };
        drop(held);
        // Before they are sent: what comes after is about the new text.
        self.observed.send_if_modified(|observed| {
            steps.renewed.iter().for_each(|path| observed.text_changed(path));
            false
        });
        self.send(steps.out);
        if check {
            self.ask_check(now);
        }
        self.inner.look();
        let _ = reply.send(synced);
    }

    /// Asks for a check of the whole project, or for one more once the one that was
    /// asked for has begun.
    fn ask_check(&mut self, now: Instant) {
        let waits = |at: Instant| self.observed.borrow().awaits_check(now, at);
        if self.checked_at.is_some_and(waits) {
            self.check_again = true;
            return;
        }
        self.checked_at = Some(now);
        self.observed.send_modify(|observed| observed.check.ask());
        // A save does the same for files that belong to a crate already, and nothing
        // for one that is new.
        self.connection.notify("rust-analyzer/runFlycheck", json!({ "textDocument": null }));
    }

    fn terms(&self) -> Option<Terms<'_>> {
        let Shape { encoding, options, .. } = *self.facts.as_ref()?;
        Some(Terms { encoding, options, registrations: &self.registrations })
    }

    fn identifiers(&self, document: &Document) -> Vec<Option<String>> {
        let registered = self
            .registrations
            .covering(DIAGNOSTIC, &document.path, &document.language_id)
            .map(identifier);
        let fixed = self.facts.as_ref().and_then(|facts| facts.pull.clone());
        let mut all: Vec<_> = fixed.into_iter().chain(registered).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Tells the server of changed files, as far as it wants to hear of them.
    pub(super) fn tell_changes(&mut self) {
        if !self.is_up() {
            return;
        }
        let untold = lock(&self.documents).take_untold();
        let reread = self.spec.reread.as_ref().filter(|reread| untold.any(|c| reread.wants(c)));
        if reread.is_some() {
            self.send(lock(&self.documents).close_suspect());
        }
        self.earlier.append(untold);
        if !self.earlier.is_empty() && self.registrations.newest(WATCHED_FILES).is_some() {
            let told = std::mem::take(&mut self.earlier);
            for params in told.params(|change| self.registrations.wants(change)) {
                self.connection.notify(WATCHED_FILES, params);
            }
        }
        if let Some(Reread { command, arguments, .. }) = reread {
            let params = json!({ "command": command, "arguments": arguments });
            if let Ok(mut call) = self.connection.call("workspace/executeCommand", params) {
                self.observed.send_modify(|observed| observed.rereading += 1);
                let observed = self.observed.clone();
                tokio::spawn(async move {
                    // Who asks behind it waits no longer than that either.
                    let _ = timeout(RELOAD_BOUND, call.answer()).await;
                    observed.send_modify(|observed| observed.rereading -= 1);
                });
            }
        }
    }

    /// Drops a run's hold on one document or on all.
    pub(super) fn release(&self, run: RunId, only: Option<&std::path::Path>) {
        self.send(lock(&self.documents).release(run, only));
    }

    fn send(&self, out: Vec<Outgoing>) {
        for (method, params) in out {
            self.connection.notify(method, params);
        }
    }

    /// Asks for a sign of life, unless there was one since `asked`.
    pub(super) fn ping(&mut self, actor: &ActorRef<LanguageServerMsg>, asked: Instant) {
        let pinging = self.ping.as_ref().is_some_and(|ping| !ping.is_finished());
        if pinging || self.connection.heard() > asked {
            return;
        }
        let ping = tokio::spawn(ping(Arc::clone(&self.connection), actor.clone()));
        self.ping = Some(AbortOnDropHandle::new(ping));
    }
}

/// Returns why rust-analyzer says that it is of little use.
fn unfit(status: &Value) -> Option<Arc<str>> {
    let text = |name: &str| status.get(name).and_then(Value::as_str);
    let bad = text("health") == Some("error");
    bad.then(|| format!("it says: {}", text("message").unwrap_or("error").trim()).into())
}

fn identifier(options: &Value) -> Option<String> {
    options.get("identifier").and_then(Value::as_str).map(str::to_owned)
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
