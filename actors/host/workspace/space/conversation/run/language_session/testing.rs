//! A language server in memory, for tests here and in the edge crate.
//!
//! It speaks a language of four lines: `error TEXT` and `warning TEXT` are found as
//! such, `def NAME` declares, and `use NAME` is an error unless some document that
//! the server knows declares it. Answers to requests are scripted; one that nobody
//! asked for fails the test when the server is dropped.

#![allow(clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::servers::{Answer, LeasedServer, Params, ServerView, Servers};
use crate::host::language_server::diagnostics::{Findings, Proof, Verdict, diagnostics};
use crate::host::language_server::documents::{Document, OpenDocument};
use crate::host::language_server::lease::ServerError;
use crate::host::language_server::spec::ServerSpec;
use crate::host::language_server::text::Encoding;
use crate::ids::{Incarnation, RunId};
use crate::ports::{BoxFuture, FileChange};
use crate::supervise::slot::Phase;

/// How the server behaves when it is asked for a verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// It has the verdict so long after it got the text.
    After(Duration),
    /// It is not there.
    Absent(&'static str),
    /// It dies of the question.
    Broken(&'static str),
}

#[derive(Debug)]
struct World {
    texts: BTreeMap<Arc<Path>, (Document, Instant)>,
    answers: HashMap<&'static str, VecDeque<Result<Value, ServerError>>>,
    asked: Vec<(&'static str, Value)>,
    changes: Vec<FileChange>,
    saved: usize,
    reloads: usize,
    pace: Pace,
    doing: Option<Arc<str>>,
    view: ServerView,
}

/// A server.
#[derive(Debug)]
pub struct FakeServer(Mutex<World>);

/// A host that has one server, and others for what is named.
#[derive(Clone, Debug, Default)]
pub struct FakeServers {
    pub server: Arc<FakeServer>,
    pub others: HashMap<String, Arc<FakeServer>>,
    pub leases: Arc<Mutex<Vec<Arc<ServerSpec>>>>,
}

impl Default for FakeServer {
    fn default() -> Self {
        let world = World {
            texts: BTreeMap::new(),
            answers: HashMap::new(),
            asked: Vec::new(),
            changes: Vec::new(),
            saved: 0,
            reloads: 0,
            pace: Pace::After(Duration::from_millis(10)),
            doing: None,
            view: ServerView { phase: Phase::Up, incarnation: Incarnation(1), last_error: None },
        };
        Self(Mutex::new(world))
    }
}

impl Servers for FakeServers {
    fn lease(
        &self,
        spec: Arc<ServerSpec>,
        _: RunId,
    ) -> BoxFuture<'static, Result<Arc<dyn LeasedServer>, ServerError>> {
        let server = Arc::clone(self.others.get(&spec.name).unwrap_or(&self.server));
        self.leases.lock().expect("no test panics with it").push(spec);
        Box::pin(async move { Ok(server as Arc<dyn LeasedServer>) })
    }
}

impl FakeServer {
    fn world(&self) -> std::sync::MutexGuard<'_, World> {
        self.0.lock().expect("no test panics with it")
    }

    /// Scripts the answer to the next request of this method.
    pub fn answer(&self, method: &'static str, answer: Result<Value, ServerError>) {
        self.world().answers.entry(method).or_default().push_back(answer);
    }

    /// Returns what was asked since this was last called.
    pub fn asked(&self) -> Vec<(&'static str, Value)> {
        std::mem::take(&mut self.world().asked)
    }

    pub fn set_pace(&self, pace: Pace) {
        self.world().pace = pace;
    }

    /// Says what the server is busy with while it answers.
    pub fn set_doing(&self, doing: &str) {
        self.world().doing = Some(doing.into());
    }

    pub fn set_view(&self, change: impl FnOnce(&mut ServerView)) {
        change(&mut self.world().view);
    }

    /// Returns how often a file was said to be saved.
    pub fn saved(&self) -> usize {
        self.world().saved
    }

    pub fn reloads(&self) -> usize {
        self.world().reloads
    }

    pub fn changes(&self) -> Vec<FileChange> {
        self.world().changes.clone()
    }

    fn sync(&self, document: &Document) -> Instant {
        let mut world = self.world();
        let (now, wait) = match world.pace {
            Pace::After(wait) => (Instant::now(), wait),
            _ => (Instant::now(), Duration::ZERO),
        };
        let known = world.texts.get(&document.path);
        match known {
            Some((known, ready)) if known.hash == document.hash => *ready,
            Some((known, ready)) if known.read_at > document.read_at => *ready,
            _ => {
                let path = Arc::clone(&document.path);
                world.texts.insert(path, (document.clone(), now + wait));
                now + wait
            }
        }
    }

    fn findings(&self, path: &Path) -> Option<Findings> {
        let world = self.world();
        let (document, _) = world.texts.get(path)?;
        let declared = |name: &str| {
            let declares = |line: &str| line.strip_prefix("def ") == Some(name);
            world.texts.values().any(|(known, _)| known.text.lines().any(declares))
        };
        let items = document.text.lines().enumerate().filter_map(|(at, line)| {
            let (severity, message) = match line.split_once(' ')? {
                ("error", text) => (1, text.to_owned()),
                ("warning", text) => (2, text.to_owned()),
                ("use", name) if !declared(name) => (1, format!("`{name}` is not defined")),
                _ => return None,
            };
            let range = json!({
                "start": { "line": at, "character": 0 },
                "end": { "line": at, "character": line.encode_utf16().count() },
            });
            Some(json!({ "range": range, "severity": severity, "message": message, "code": "c" }))
        });
        Some(Findings {
            items: diagnostics(&Value::Array(items.collect())),
            related: Vec::new(),
            encoding: Encoding::Utf16,
            proof: Proof { incarnation: Incarnation(1), hash: document.hash, epoch: 0 },
        })
    }
}

impl LeasedServer for FakeServer {
    fn request<'a>(
        &'a self,
        documents: &'a [Document],
        method: &'static str,
        params: Params<'a>,
        _: Duration,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, ServerError>> {
        Box::pin(async move {
            for document in documents {
                self.sync(document);
            }
            let mut world = self.world();
            let asked = params(Encoding::Utf16);
            world.asked.push((method, asked));
            let answer = world.answers.get_mut(method).and_then(VecDeque::pop_front);
            let value = answer.unwrap_or_else(|| panic!("nothing is scripted for {method}"))?;
            Ok(Answer {
                value,
                encoding: Encoding::Utf16,
                doing: world.doing.clone(),
                up_for: Duration::from_secs(3600),
            })
        })
    }

    fn verdict<'a>(
        &'a self,
        document: &'a Document,
        saved: bool,
        within: Duration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let pace = self.world().pace.clone();
            match pace {
                Pace::Absent(reason) => return Verdict::NoServer { reason: reason.to_owned() },
                Pace::Broken(reason) => {
                    return Verdict::Unknown { reason: reason.to_owned(), about: None };
                }
                Pace::After(_) => {}
            }
            let (ready, until) = (self.sync(document), Instant::now() + within);
            self.world().saved += usize::from(saved);
            tokio::select! {
                () = sleep_until(ready.min(until)) => {}
                () = cancel.cancelled() => {}
            }
            let findings = self.findings(&document.path);
            match findings.filter(|found| ready <= until && found.proof.hash == document.hash) {
                Some(findings) => Verdict::Fresh(Arc::new(findings)),
                None => Verdict::StillAnalysing {
                    reason: "it reads the project".to_owned(),
                    waited: within,
                    about: None,
                },
            }
        })
    }

    fn last_verdict(&self, _: &Path) -> Option<Arc<Findings>> {
        None
    }

    fn open_documents(&self) -> Vec<OpenDocument> {
        let open = |(document, _): &(Document, Instant)| OpenDocument {
            path: Arc::clone(&document.path),
            language_id: Arc::clone(&document.language_id),
            hash: document.hash,
        };
        self.world().texts.values().map(open).collect()
    }

    fn changed(&self, changes: Vec<FileChange>) {
        self.world().changes.extend(changes);
    }

    fn close(&self, path: &Path) {
        self.world().texts.remove(path);
    }

    fn reload(&self) {
        self.world().reloads += 1;
    }

    fn view(&self) -> ServerView {
        self.world().view.clone()
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        let world = self.0.get_mut();
        let left = world.map(|world| world.answers.values().map(VecDeque::len).sum()).unwrap_or(0);
        if left > 0 && !std::thread::panicking() {
            panic!("{left} scripted answers were not asked for");
        }
    }
}
