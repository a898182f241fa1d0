//! The same server in a slot behind the launcher, held by a lease.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hostler::launch::{LaunchConfig, Launcher};
use hostler_actors::host::language_server::diagnostics::Verdict;
use hostler_actors::host::language_server::documents::{Document, TextHash};
use hostler_actors::host::language_server::lease::Lease;
use hostler_actors::host::language_server::resource::ServerResource;
use hostler_actors::host::language_server::spec::{AfterChange, Recipe, ServerSpec};
use hostler_actors::ids::RunId;
use hostler_actors::ports::{Launch, Posture};
use hostler_actors::status::StatusTable;
use hostler_actors::supervise::budget::Limit;
use hostler_actors::testing::keeper::Keeper;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::server::{HOVER, Server, TEXT, question};

const BOUND: Duration = Duration::from_secs(30);

/// One lease on one server.
pub(crate) struct Leased {
    keeper: Keeper<ServerResource>,
    lease: Lease,
    document: Document,
    launcher: Launcher,
    _folder: tempfile::TempDir,
}

impl Leased {
    /// Opens the slot, with so many deaths allowed.
    pub(crate) async fn open(server: &Server, weather: Limit) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = LaunchConfig::new(format!("bench-{:x}", getrandom::u64().unwrap()));
        let launcher = Launcher::start(config, StatusTable::default()).await.unwrap();
        let root = folder.path().canonicalize().unwrap();
        let path = root.join("a.py");
        std::fs::write(&path, TEXT).unwrap();
        let launch: Arc<dyn Launch> = Arc::new(launcher.clone());
        let resource = ServerResource::new(Arc::new(spec(server, &root)), launch);
        let resource = resource.with_weather(weather);
        let keeper = Keeper::new(resource.clone()).await;
        let lease = resource.lease(keeper.slot.clone(), RunId(1), || {});
        let document = document(&path, TEXT);
        Self { keeper, lease, document, launcher, _folder: folder }
    }

    /// Asks the one question.
    pub(crate) async fn hover(&self) {
        let documents = std::slice::from_ref(&self.document);
        let path = Arc::clone(&self.document.path);
        let cancel = CancellationToken::new();
        let params = |_: &_| question(&path);
        let answer = self.lease.request(documents, HOVER, params, BOUND, &cancel).await.unwrap();
        assert!(answer.value["contents"].is_object());
    }

    /// Gives the file a new text and returns how many errors it has then.
    pub(crate) async fn verdict(&mut self, text: &str) -> usize {
        std::fs::write(&self.document.path, text).unwrap();
        self.document = document(&self.document.path, text);
        let cancel = CancellationToken::new();
        match self.lease.verdict(&self.document, true, BOUND, &cancel).await {
            Verdict::Fresh(findings) => findings.items.len(),
            other => panic!("not fresh: {other:?}"),
        }
    }

    /// Kills the server's process.
    pub(crate) fn kill(&self) {
        let pids = self.keeper.status.pids();
        let (_, pid) = pids.first().expect("the server is up");
        kill(Pid::from_raw(i32::try_from(*pid).unwrap()), Signal::SIGKILL).unwrap();
    }

    /// Returns how often it was started again.
    pub(crate) fn restarts(&self) -> u64 {
        self.keeper.status.snapshot().iter().map(|row| row.restarts).sum()
    }

    /// Ends it with all its processes.
    pub(crate) async fn end(self) {
        drop(self.keeper);
        self.launcher.shutdown(Duration::from_secs(5)).await;
    }
}

fn spec(server: &Server, root: &Path) -> ServerSpec {
    ServerSpec {
        name: "bench".to_owned(),
        root: root.to_owned(),
        program: server.program.clone(),
        args: server.args.iter().map(Into::into).collect(),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        posture: Posture::Writable,
        initialization_options: Value::Null,
        settings: Value::Null,
        recipe: Recipe::Pull,
        after_change: AfterChange::Nothing,
        inner_process: None,
        reread: None,
        start_deadline: BOUND,
        linger: BOUND,
        private_to: None,
    }
}

fn document(path: &Path, text: &str) -> Document {
    Document {
        path: path.into(),
        language_id: "python".into(),
        text: text.into(),
        hash: TextHash(*blake3::hash(text.as_bytes()).as_bytes()),
        read_at: Instant::now(),
    }
}
