//! The actor against servers that a test plays, under a paused clock.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod ends;
mod questions;
mod verdicts;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::diagnostics::Verdict;
use super::documents::{Document, TextHash};
use super::lease::{Answer, Lease, ServerError};
use super::resource::ServerResource;
use super::spec::{Recipe, ServerSpec, tests::spec};
use crate::ids::RunId;
use crate::testing::keeper::Keeper;
use crate::testing::process::{FakeLaunch, FakeProcesses};
use crate::testing::server::FakeServer;

const BOUND: Duration = Duration::from_secs(20);

/// A slot with its resource, and the processes that it starts.
struct Bench {
    resource: ServerResource,
    keeper: Keeper<ServerResource>,
    launch: Arc<FakeLaunch>,
    processes: FakeProcesses,
}

async fn bench(change: impl FnOnce(&mut ServerSpec)) -> Bench {
    let mut spec = spec();
    change(&mut spec);
    let (launch, processes) = FakeLaunch::new();
    let resource = ServerResource::new(Arc::new(spec), Arc::clone(&launch) as _);
    let keeper = Keeper::new(resource.clone()).await;
    Bench { resource, keeper, launch, processes }
}

impl Bench {
    fn lease(&self, run: u64) -> Arc<Lease> {
        Arc::new(self.resource.lease(self.keeper.slot.clone(), RunId(run), || {}))
    }

    async fn server(&mut self) -> FakeServer {
        FakeServer::new(self.processes.next().await)
    }

    /// Brings a server up that can pull and takes ranged changes.
    async fn up(&mut self, lease: &Arc<Lease>) -> FakeServer {
        self.up_with(lease, capabilities()).await
    }

    async fn up_with(&mut self, lease: &Arc<Lease>, capabilities: Value) -> FakeServer {
        let warm = hover(lease, &[]);
        let mut server = self.server().await;
        server.shake_hands(capabilities).await;
        let asked = server.take("textDocument/hover").await;
        server.answer(&asked, Value::Null).await;
        warm.await.unwrap().unwrap();
        server
    }

    fn row(&self) -> crate::status::NodeView {
        self.keeper.status.snapshot().remove(0)
    }
}

fn capabilities() -> Value {
    json!({
        "textDocumentSync": { "openClose": true, "change": 2, "save": true },
        "hoverProvider": true,
        "diagnosticProvider": { "interFileDependencies": true, "workspaceDiagnostics": false },
    })
}

fn document(path: &str, text: &str) -> Document {
    let mut hash = [0; 32];
    let length = text.len().min(32);
    hash[..length].copy_from_slice(&text.as_bytes()[..length]);
    Document {
        path: Path::new(path).into(),
        language_id: "python".into(),
        text: text.into(),
        hash: TextHash(hash),
        read_at: Instant::now(),
    }
}

type Asked = JoinHandle<Result<Answer, ServerError>>;

fn hover(lease: &Arc<Lease>, documents: &[Document]) -> Asked {
    ask(lease, documents, BOUND, &CancellationToken::new())
}

fn ask(
    lease: &Arc<Lease>,
    documents: &[Document],
    within: Duration,
    cancel: &CancellationToken,
) -> Asked {
    let (lease, documents, cancel) = (Arc::clone(lease), documents.to_vec(), cancel.clone());
    tokio::spawn(async move {
        let params = |_: &_| json!({ "position": null, "line": 1 });
        lease.request(&documents, "textDocument/hover", params, within, &cancel).await
    })
}

fn judge(lease: &Arc<Lease>, document: &Document, within: Duration) -> JoinHandle<Verdict> {
    let (lease, document) = (Arc::clone(lease), document.clone());
    tokio::spawn(
        async move { lease.verdict(&document, true, within, &CancellationToken::new()).await },
    )
}

fn words(verdict: &Verdict) -> Vec<String> {
    match verdict {
        Verdict::Fresh(findings) => {
            findings.items.iter().map(|item| item.message.clone()).collect()
        }
        other => panic!("not fresh: {other:?}"),
    }
}

fn items(words: &[&str]) -> Value {
    words.iter().map(|word| json!({ "message": word })).collect()
}
