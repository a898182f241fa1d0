//! What a language session needs of the host: leases on servers.
//!
//! The real ones are `host::language_server::lease`'s; a trait stands between, so
//! that the tool and the wrapper are tested against servers that answer by script.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use ractor::rpc::CallResult;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::host::HostMsg;
use crate::host::language_server::diagnostics::{Findings, Verdict};
use crate::host::language_server::documents::{Document, OpenDocument};
use crate::host::language_server::handshake::ServerFacts;
use crate::host::language_server::lease::{Lease, ServerError};
use crate::host::language_server::spec::ServerSpec;
use crate::host::language_server::text::Encoding;
use crate::ids::{Incarnation, RunId};
use crate::ports::{BoxFuture, FileChange};
use crate::supervise::handle::Unavailable;
use crate::supervise::slot::Phase;

/// Makes a request's params for the server that answers it: positions depend on
/// the encoding that was agreed on.
pub type Params<'a> = &'a (dyn Fn(Encoding) -> Value + Send + Sync);

/// What a server answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The result, as it came.
    pub value: Value,
    /// How columns count in it.
    pub encoding: Encoding,
    /// What the server was still busy with: the answer may then be partial.
    pub doing: Option<Arc<str>>,
    /// How long the server had been up: at first it may not have read the project.
    pub up_for: Duration,
}

/// Hands out leases.
pub trait Servers: Send + Sync {
    /// Takes a lease for a run. The process is started when it is first asked.
    fn lease(
        &self,
        spec: Arc<ServerSpec>,
        run: RunId,
    ) -> BoxFuture<'static, Result<Arc<dyn LeasedServer>, ServerError>>;
}

/// A run's hold on a server that it may share with others. Dropping it gives it back.
pub trait LeasedServer: Send + Sync {
    /// Brings the documents up to date at the server and asks it something.
    fn request<'a>(
        &'a self,
        documents: &'a [Document],
        method: &'static str,
        params: Params<'a>,
        within: Duration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, ServerError>>;

    /// Brings a document up to date, says that it was saved if it was, and waits
    /// for the verdict on exactly this text.
    fn verdict<'a>(
        &'a self,
        document: &'a Document,
        saved: bool,
        within: Duration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Verdict>;

    /// Returns the last verdict on a file, if nothing is known to have moved on since.
    fn last_verdict(&self, path: &Path) -> Option<Arc<Findings>>;

    /// Returns the documents that are open at the server, whoever opened them.
    fn open_documents(&self) -> Vec<OpenDocument>;

    /// Tells the server what became of files on disk.
    fn changed(&self, changes: Vec<FileChange>);

    /// Lets go of a document that is no more: the last run to do so closes it.
    fn close(&self, path: &Path);

    /// Starts a fresh process, for everybody who has a lease.
    fn reload(&self);

    /// Returns where the server is now, without asking it.
    fn view(&self) -> ServerView;
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerView {
    /// The phase of its slot.
    pub phase: Phase,
    /// Which start of the process this is; 0 before the first.
    pub incarnation: Incarnation,
    /// Why it last died or could not start.
    pub last_error: Option<String>,
}

/// How long the host may take to hand out a lease. It only looks one up, so that a
/// longer silence means that it is stuck.
const LEASE: Duration = Duration::from_secs(5);

impl Servers for ActorRef<HostMsg> {
    fn lease(
        &self,
        spec: Arc<ServerSpec>,
        run: RunId,
    ) -> BoxFuture<'static, Result<Arc<dyn LeasedServer>, ServerError>> {
        let host = self.clone();
        Box::pin(async move {
            let server = spec.name.clone();
            match host.call(|port| HostMsg::Lease(spec, run, port), Some(LEASE)).await {
                Ok(CallResult::Success(lease)) => Ok(Arc::new(lease) as Arc<dyn LeasedServer>),
                _ => Err(ServerError::Unavailable { server, why: Unavailable::Gone }),
            }
        })
    }
}

impl LeasedServer for Lease {
    fn request<'a>(
        &'a self,
        documents: &'a [Document],
        method: &'static str,
        params: Params<'a>,
        within: Duration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, ServerError>> {
        Box::pin(async move {
            let params = |facts: &ServerFacts| params(facts.encoding);
            let answer = Lease::request(self, documents, method, params, within, cancel).await?;
            Ok(Answer {
                value: answer.value,
                encoding: answer.facts.encoding,
                doing: answer.doing,
                up_for: answer.facts.ready_at.elapsed(),
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
        Box::pin(Lease::verdict(self, document, saved, within, cancel))
    }

    fn last_verdict(&self, path: &Path) -> Option<Arc<Findings>> {
        Lease::last_verdict(self, path)
    }

    fn open_documents(&self) -> Vec<OpenDocument> {
        Lease::open_documents(self)
    }

    fn changed(&self, changes: Vec<FileChange>) {
        Lease::changed(self, changes);
    }

    fn close(&self, path: &Path) {
        Lease::close(self, path);
    }

    fn reload(&self) {
        Lease::reload(self);
    }

    fn view(&self) -> ServerView {
        let view = Lease::view(self);
        ServerView {
            phase: view.phase,
            incarnation: view.incarnation,
            last_error: view.last_exit.map(|exit| exit.to_string()),
        }
    }
}
