//! A run's hold on a shared language server: the client API.
//!
//! A caller never holds an incarnation. Each call takes the one that is up, brings
//! its documents up to the disk first, and is repeated once where it died under it:
//! all that is asked here are read requests. Every wait has the caller's bound.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lsp_types::error_codes::{CONTENT_MODIFIED, SERVER_CANCELLED};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::LanguageServerMsg;
use super::diagnostics::Findings;
use super::documents::{Document, OpenDocument, SharedDocuments, lock};
use super::envelope::Refusal;
use super::handshake::ServerFacts;
use super::running::{SyncOrder, Synced};
use super::spec::ServerSpec;
use crate::ids::{Incarnation, RunId};
use crate::ports::FileChange;
use crate::supervise::handle::{Live, SlotHandle, Unavailable, View};
use crate::supervise::slot::Phase;

/// Requests of one run under way at once; the rest wait in order, so that a run's
/// thousand references do not starve the others.
const MOST_UNDER_WAY: usize = 4;
/// The first wait before a request is repeated that the server was not ready for.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LONGEST_RETRY: Duration = Duration::from_millis(200);

/// Questions over the whole workspace, whose answers are partial while it is read.
const OVER_ALL: [&str; 4] = [
    "textDocument/references",
    "textDocument/implementation",
    "textDocument/rename",
    "workspace/symbol",
];
/// How long they wait for that at most.
const READS: Duration = Duration::from_secs(10);

pub(super) type LiveServer = Live<LanguageServerMsg, ServerFacts>;

/// What a request was answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The result, as it came.
    pub value: Value,
    /// Who answered.
    pub incarnation: Incarnation,
    /// What that server is like: its encoding is needed to read positions.
    pub facts: Arc<ServerFacts>,
    /// What the server was still busy with when it answered, for example indexing:
    /// an answer over the whole workspace may then be partial.
    pub doing: Option<Arc<str>>,
}

/// Why a request has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServerError {
    /// There is no server that could be asked.
    #[error("{server}: {why}")]
    Unavailable {
        /// Which server.
        server: String,
        /// Where it is instead.
        why: Unavailable,
    },
    /// It died twice while it was asked.
    #[error("{server}: died while it answered `{method}`, also when asked again: {last_error}")]
    Died {
        /// Which server.
        server: String,
        /// What it was asked.
        method: &'static str,
        /// Why it last died, with the end of its stderr.
        last_error: String,
    },
    /// It answered with an error.
    #[error("{server}: refused `{method}`: {message} (code {code})")]
    Refused {
        /// Which server.
        server: String,
        /// What it was asked.
        method: &'static str,
        /// The protocol's code, or its own.
        code: i64,
        /// Its words.
        message: String,
    },
    /// It did not answer within the caller's bound.
    #[error(
        "{server}: no answer to `{method}` within {:.1} s{}",
        .within.as_secs_f64(),
        .doing.as_deref().map(|doing| format!("; it is busy with: {doing}")).unwrap_or_default()
    )]
    TimedOut {
        /// Which server.
        server: String,
        /// What it was asked.
        method: &'static str,
        /// The bound.
        within: Duration,
        /// What it says it is busy with.
        doing: Option<String>,
    },
    /// A file was changed by somebody while the request was made of its old text.
    #[error("{server}: the file changed while `{method}` was asked; ask again")]
    Superseded {
        /// Which server.
        server: String,
        /// What it was asked.
        method: &'static str,
    },
    /// The caller cancelled it.
    #[error("{server}: `{method}` was cancelled")]
    Cancelled {
        /// Which server.
        server: String,
        /// What it was asked.
        method: &'static str,
    },
}

/// What stopped one attempt.
pub(super) enum Stopped {
    /// The incarnation died or is being replaced.
    Died,
    /// The document's text is older than the server's.
    Superseded,
    /// The server said no.
    Refused(Refusal),
    /// It cannot tell, as things are.
    Unfit(Arc<str>),
}

/// A run's hold on a language server. Dropping it gives it back.
pub struct Lease {
    pub(super) slot: SlotHandle<LanguageServerMsg, ServerFacts>,
    pub(super) spec: Arc<ServerSpec>,
    pub(super) documents: SharedDocuments,
    run: RunId,
    room: Semaphore,
    on_drop: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({} on {} in {})", self.run, self.spec.name, self.spec.root.display())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.release(None);
        if let Some(on_drop) = self.on_drop.take() {
            on_drop();
        }
    }
}

impl Lease {
    pub(super) fn new(
        slot: SlotHandle<LanguageServerMsg, ServerFacts>,
        spec: Arc<ServerSpec>,
        documents: SharedDocuments,
        run: RunId,
        on_drop: impl FnOnce() + Send + Sync + 'static,
    ) -> Self {
        let room = Semaphore::new(MOST_UNDER_WAY);
        Self { slot, spec, documents, run, room, on_drop: Some(Box::new(on_drop)) }
    }

    /// Returns what the server was made from.
    #[must_use]
    pub fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// Returns where the server is now.
    #[must_use]
    pub fn view(&self) -> View<LanguageServerMsg, ServerFacts> {
        self.slot.view()
    }

    /// Asks the server, with these documents brought up to date before. Waits for
    /// its start if need be; repeats the question once if it dies under it.
    pub async fn request(
        &self,
        documents: &[Document],
        method: &'static str,
        params: impl Fn(&ServerFacts) -> Value + Send + Sync,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Answer, ServerError> {
        let asked = Instant::now();
        let until = asked + within;
        let server = || self.spec.name.clone();
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ServerError::Cancelled { server: server(), method }),
            answer = timeout_at(until, self.answered(documents, method, params, until)) => {
                answer.unwrap_or_else(|_| Err(ServerError::TimedOut {
                    server: server(),
                    method,
                    within,
                    doing: self.unanswered(asked).map(|doing| doing.to_string()),
                }))
            }
        }
    }

    async fn answered(
        &self,
        documents: &[Document],
        method: &'static str,
        params: impl Fn(&ServerFacts) -> Value + Send + Sync,
        until: Instant,
    ) -> Result<Answer, ServerError> {
        let server = || self.spec.name.clone();
        let _room = self.room.acquire().await;
        let mut dead = Incarnation::default();
        loop {
            let live = self.slot.live_after(dead, until).await;
            let live = live.map_err(|why| ServerError::Unavailable { server: server(), why })?;
            match self.attempt(&live, documents, method, &params, until).await {
                Ok(raw) => {
                    let value = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
                    let doing = live.facts.observed.borrow().partial();
                    return Ok(Answer {
                        value: value.unwrap_or_default(),
                        incarnation: live.incarnation,
                        facts: live.facts,
                        doing,
                    });
                }
                Err(Stopped::Died) if dead == Incarnation::default() => dead = live.incarnation,
                Err(Stopped::Died) => {
                    let last_exit = self.slot.view().last_exit;
                    let last_error = last_exit.map(|exit| exit.to_string()).unwrap_or_default();
                    return Err(ServerError::Died { server: server(), method, last_error });
                }
                Err(Stopped::Superseded) => {
                    return Err(ServerError::Superseded { server: server(), method });
                }
                Err(Stopped::Unfit(reason)) => {
                    let message = reason.to_string();
                    return Err(ServerError::Refused {
                        server: server(),
                        method,
                        code: 0,
                        message,
                    });
                }
                Err(Stopped::Refused(Refusal { code, message })) => {
                    return Err(ServerError::Refused { server: server(), method, code, message });
                }
            }
        }
    }

    async fn attempt(
        &self,
        live: &LiveServer,
        documents: &[Document],
        method: &str,
        params: impl Fn(&ServerFacts) -> Value,
        until: Instant,
    ) -> Result<Option<Box<RawValue>>, Stopped> {
        // Not through the actor where it has nothing to tell the server.
        if !lock(&self.documents).are_current(live.incarnation, self.run, documents) {
            let synced = self.sync(live, documents.to_vec(), false, false).await?;
            if synced.superseded {
                return Err(Stopped::Superseded);
            }
        }
        has_reread(live).await?;
        if OVER_ALL.contains(&method) {
            has_read(live, until).await;
        }
        let answer = call(live, method, || params(&live.facts)).await;
        if live.facts.inner.is_lost() { Err(Stopped::Died) } else { answer }
    }

    /// Brings the server's texts up to these documents.
    pub(super) async fn sync(
        &self,
        live: &LiveServer,
        documents: Vec<Document>,
        saved: bool,
        judged: bool,
    ) -> Result<Synced, Stopped> {
        let (reply, synced) = oneshot::channel();
        let order = SyncOrder { run: self.run, documents, saved, judged, reply };
        live.actor.cast(LanguageServerMsg::Sync(order)).map_err(|_| Stopped::Died)?;
        synced.await.map_err(|_| Stopped::Died)
    }

    /// Has a server looked after that did not answer, and says what it is doing.
    pub(super) fn unanswered(&self, asked: Instant) -> Option<Arc<str>> {
        let live = self.slot.view().live?;
        let _ = live.actor.cast(LanguageServerMsg::Unanswered { asked });
        live.facts.observed.borrow().doing.clone()
    }

    /// Returns the last verdict on a file, if nothing has moved on since.
    #[must_use]
    pub fn last_verdict(&self, path: &Path) -> Option<Arc<Findings>> {
        let live = self.slot.view().live?;
        lock(&self.documents).kept(path).filter(|kept| kept.proof.incarnation == live.incarnation)
    }

    /// Lists what the server has open, for all runs: whoever learns that one of
    /// these changed on disk brings its new text.
    #[must_use]
    pub fn open_documents(&self) -> Vec<OpenDocument> {
        lock(&self.documents).list()
    }

    /// Says that files changed on disk. Every verdict so far is stale from here on.
    /// What is over the cap of changes replaces the server's process instead.
    pub fn changed(&self, changes: Vec<FileChange>) {
        let can_be_told = lock(&self.documents).changed(Instant::now(), changes);
        let view = self.slot.view();
        if !can_be_told && matches!(view.phase, Phase::Starting | Phase::Up) {
            self.reload();
        } else if let Some(live) = view.live {
            let _ = live.actor.cast(LanguageServerMsg::Changed);
        }
    }

    /// Drops this run's hold on a document; the last one closes it.
    pub fn close(&self, path: &Path) {
        self.release(Some(path));
    }

    fn release(&self, only: Option<&Path>) {
        let live = self.slot.view().live;
        let told = live.is_some_and(|live| {
            let release = LanguageServerMsg::Release(self.run, only.map(Into::into));
            live.actor.cast(release).is_ok()
        });
        if !told {
            lock(&self.documents).release(self.run, only);
        }
    }

    /// Replaces the server's process, for all its runs.
    pub fn reload(&self) {
        self.slot.renew();
    }
}

/// Returns when a server has answered that it read its projects afresh: a wrapper may
/// pass a question on before the order.
pub(super) async fn has_reread(live: &LiveServer) -> Result<(), Stopped> {
    let mut observed = live.facts.observed.clone();
    let answered = observed.wait_for(|observed| observed.rereading == 0).await;
    answered.map(drop).map_err(|_| Stopped::Died)
}

/// Returns when a server has read what there is, or when it has had time enough.
async fn has_read(live: &LiveServer, until: Instant) {
    let left = until.saturating_duration_since(Instant::now()) / 2;
    let enough = READS.min(left);
    // It may never say that it has read its project: that counts from its start.
    let since_start = live.facts.ready_at + READS;
    let mut observed = live.facts.observed.clone();
    let read = async {
        loop {
            let (reading, doing) = {
                let seen = observed.borrow_and_update();
                (seen.reading.is_some() && Instant::now() < since_start, seen.doing.is_some())
            };
            if !(reading || doing) || observed.changed().await.is_err() {
                return;
            }
        }
    };
    // Its answer says then that it may be partial.
    let _ = timeout(enough, read).await;
}

/// Asks an incarnation, again while it says that it is not ready to answer.
pub(super) async fn call(
    live: &LiveServer,
    method: &str,
    params: impl Fn() -> Value,
) -> Result<Option<Box<RawValue>>, Stopped> {
    let mut wait = FIRST_RETRY;
    loop {
        let call = live.facts.connection.call(method, params());
        let answer = call.map_err(|_| Stopped::Died)?.answer().await;
        match answer.map_err(|_| Stopped::Died)? {
            Ok(raw) => return Ok(raw),
            Err(refusal) if matches!(refusal.code, CONTENT_MODIFIED | SERVER_CANCELLED) => {
                sleep(wait).await;
                wait = LONGEST_RETRY.min(wait * 2);
            }
            Err(refusal) => return Err(Stopped::Refused(refusal)),
        }
    }
}
