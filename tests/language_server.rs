//! The language-server actor with real processes: the scripted server in every
//! mood, and pyright where it is installed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "says what is skipped")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hostler::launch::{LaunchConfig, Launcher};
use hostler_actors::host::language_server::diagnostics::Verdict;
use hostler_actors::host::language_server::documents::{Document, TextHash};
use hostler_actors::host::language_server::handshake::ServerFacts;
use hostler_actors::host::language_server::lease::{Answer, Lease, ServerError};
use hostler_actors::host::language_server::resource::ServerResource;
use hostler_actors::host::language_server::spec::{AfterChange, Recipe, ServerSpec};
use hostler_actors::host::language_server::text::{Lines, Position};
use hostler_actors::host::language_server::uri;
use hostler_actors::ids::RunId;
use hostler_actors::ports::{Launch, Posture};
use hostler_actors::status::{NodeView, StatusTable};
use hostler_actors::testing::keeper::Keeper;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::scripted_server;

mod installed;
mod moods;
mod pyright;

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(20);

/// A slot with a real server in a folder of its own.
struct Bench {
    folder: tempfile::TempDir,
    resource: ServerResource,
    keeper: Keeper<ServerResource>,
    launcher: Launcher,
}

/// Opens a slot for the scripted server in these moods.
async fn scripted(moods: &[&str]) -> Bench {
    scripted_with(moods, |_| {}).await
}

async fn scripted_with(moods: &[&str], change: impl FnOnce(&mut ServerSpec)) -> Bench {
    let push = moods.iter().any(|mood| ["push", "lie"].contains(mood));
    bench(|spec| {
        spec.program = scripted_server();
        spec.args = moods.iter().map(Into::into).collect();
        spec.recipe = if push { Recipe::Push } else { Recipe::Pull };
        change(spec);
    })
    .await
}

async fn bench(change: impl FnOnce(&mut ServerSpec)) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let config = LaunchConfig {
        launcher: env!("CARGO_BIN_EXE_hostler").into(),
        ..LaunchConfig::new(format!("test-{:x}", getrandom::u64().unwrap()))
    };
    let launcher = Launcher::start(config, StatusTable::default()).await.unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let mut spec = ServerSpec {
        name: "scripted".to_owned(),
        root: folder.path().canonicalize().unwrap(),
        program: PathBuf::new(),
        args: Vec::new(),
        env: vec![("PATH".into(), path)],
        posture: Posture::Writable,
        initialization_options: Value::Null,
        settings: Value::Null,
        recipe: Recipe::Pull,
        after_change: AfterChange::Nothing,
        inner_process: None,
        reread: None,
        start_deadline: LONG,
        linger: LONG,
        private_to: None,
    };
    change(&mut spec);
    let launch: Arc<dyn Launch> = Arc::new(launcher.clone());
    let resource = ServerResource::new(Arc::new(spec), launch);
    let keeper = Keeper::new(resource.clone()).await;
    Bench { folder, resource, keeper, launcher }
}

impl Bench {
    fn lease(&self, run: u64) -> Lease {
        self.resource.lease(self.keeper.slot.clone(), RunId(run), || {})
    }

    /// Writes a file and reads it as a tool does.
    fn write(&self, name: &str, text: &str) -> Document {
        let path = self.resource.spec().root.join(name);
        std::fs::write(&path, text).unwrap();
        Document {
            path: path.into(),
            language_id: "python".into(),
            text: text.into(),
            hash: TextHash(*blake3::hash(text.as_bytes()).as_bytes()),
            read_at: Instant::now(),
        }
    }

    fn row(&self) -> NodeView {
        self.keeper.status.snapshot().remove(0)
    }

    async fn row_when(&self, what: &str, wanted: impl Fn(&NodeView) -> bool) -> NodeView {
        let seen = async {
            while !wanted(&self.row()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            self.row()
        };
        timeout(LONG, seen).await.unwrap_or_else(|_| panic!("{what}: {:?}", self.row()))
    }

    /// Ends everything that was started, and proves it.
    async fn end(self) {
        drop(self.keeper);
        let closed = self.launcher.shutdown(Duration::from_secs(5)).await;
        assert!(closed.unproved.is_empty(), "{closed:?}");
        assert!(self.launcher.trees().is_empty());
        drop(self.folder);
    }
}

/// Asks about the first place of a word in a document.
async fn ask(
    lease: &Lease,
    method: &'static str,
    document: &Document,
    word: &str,
) -> Result<Answer, ServerError> {
    let offset = document.text.find(word).unwrap();
    let params = |facts: &ServerFacts| {
        let position = Lines::new(&document.text).position(offset, facts.encoding);
        json!({
            "textDocument": { "uri": uri::of_path(&document.path) },
            "position": position,
            "context": { "includeDeclaration": true },
        })
    };
    let cancel = CancellationToken::new();
    lease.request(std::slice::from_ref(document), method, params, LONG, &cancel).await
}

async fn hover(lease: &Lease, document: &Document, word: &str) -> Result<String, ServerError> {
    let answer = ask(lease, "textDocument/hover", document, word).await?;
    Ok(answer.value["contents"]["value"].as_str().unwrap_or_default().to_owned())
}

async fn verdict(lease: &Lease, document: &Document, within: Duration) -> Verdict {
    lease.verdict(document, true, within, &CancellationToken::new()).await
}

fn messages(verdict: &Verdict) -> Vec<&str> {
    match verdict {
        Verdict::Fresh(findings) => findings.items.iter().map(|item| &*item.message).collect(),
        other => panic!("not fresh: {other:?}"),
    }
}

fn position(value: &Value) -> Position {
    serde_json::from_value(value.clone()).unwrap()
}
