//! What the host adds to a language server. `cargo bench --bench language_server`,
//! after `cargo build --release --examples`; pyright from `HOSTLER_TOOLS`.
//!
//! The floor is the same request on the server's own pipes, from blocking code. The
//! binary plays the launcher too (`__launch`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs)]
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it is a bench")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hostler::launch::{LaunchConfig, Launcher, child_main};
use hostler_actors::host::language_server::documents::{Document, TextHash};
use hostler_actors::host::language_server::lease::Lease;
use hostler_actors::host::language_server::resource::ServerResource;
use hostler_actors::host::language_server::spec::{Recipe, ServerSpec};
use hostler_actors::host::language_server::uri;
use hostler_actors::ids::RunId;
use hostler_actors::ports::{Launch, Posture};
use hostler_actors::status::StatusTable;
use hostler_actors::testing::keeper::Keeper;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[path = "../tests/language_server/installed.rs"]
mod installed;

const HOVER: &str = "textDocument/hover";
const TEXT: &str = "value = 1\nprint(value)\n";
const BOUND: Duration = Duration::from_secs(30);

fn main() {
    if std::env::args().nth(1).as_deref() == Some("__launch") {
        child_main();
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    println!("{:<52} {:>9} {:>9} {:>9}", "", "floor", "ours", "goal");
    let servers = [Some(("scripted", scripted(), vec![], 5000)), pyright()];
    for (name, program, args, times) in servers.into_iter().flatten() {
        let floor = raw_hovers(&program, &args, times);
        let ours = runtime.block_on(leased_hovers(&program, &args, times));
        row(&format!("warm hover, {name}, p50"), &floor, &ours, 0.5, Some(0.15));
        row(&format!("warm hover, {name}, p99"), &floor, &ours, 0.99, None);
    }
    let back = runtime.block_on(replaced(50));
    println!(
        "{:<52} {:>9} {:>9} {:>9}",
        "SIGKILL of the scripted server to an answer, p50, ms",
        "",
        format!("{:.2}", quantile(&back, 0.5)),
        "5"
    );
}

fn row(what: &str, floor: &[f64], ours: &[f64], at: f64, more: Option<f64>) {
    let (floor, ours) = (quantile(floor, at), quantile(ours, at));
    let goal = more.map_or_else(String::new, |more| format!("{:.3}", floor + more));
    println!("{:<52} {floor:>9.3} {ours:>9.3} {goal:>9}", format!("{what}, ms"));
}

fn quantile(sorted: &[f64], at: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * at) as usize]
}

fn sorted(mut times: Vec<f64>) -> Vec<f64> {
    times.sort_by(f64::total_cmp);
    times
}

fn scripted() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    here.ancestors().nth(2).unwrap().join("examples/scripted_server")
}

type Server = (&'static str, PathBuf, Vec<String>, usize);

fn pyright() -> Option<Server> {
    let (node, entry) = installed::pyright()?;
    Some(("pyright", node, vec![entry.display().to_string(), "--stdio".to_owned()], 1000))
}

fn question(path: &Path) -> Value {
    let position = json!({ "line": 1, "character": 8 });
    json!({ "textDocument": { "uri": uri::of_path(path) }, "position": position })
}

/// The floor: no more than the protocol needs.
fn raw_hovers(program: &Path, args: &[String], times: usize) -> Vec<f64> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.py");
    std::fs::write(&path, TEXT).unwrap();
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut from = BufReader::new(child.stdout.take().unwrap());
    let mut send = |message: Value| {
        let body = message.to_string();
        write!(to, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        to.flush().unwrap();
    };
    let mut answer = |id: usize| loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(from.read_line(&mut line).unwrap() > 0, "the server died");
            match line.trim().strip_prefix("Content-Length: ") {
                Some(number) => length = number.parse().unwrap(),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body).unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap();
        if message["id"] == json!(id) && message.get("method").is_none() {
            break message;
        }
    };
    let root = uri::of_path(folder.path());
    send(json!({ "id": 0, "jsonrpc": "2.0", "method": "initialize", "params": {
        "processId": null, "rootUri": root, "capabilities": {},
        "workspaceFolders": [{ "uri": root, "name": "bench" }] } }));
    answer(0);
    send(json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }));
    send(json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": { "textDocument": {
        "uri": uri::of_path(&path), "languageId": "python", "version": 1, "text": TEXT } } }));
    let mut taken = Vec::new();
    for id in 1..=times + times / 5 {
        let params = question(&path);
        let began = Instant::now();
        send(json!({ "id": id, "jsonrpc": "2.0", "method": HOVER, "params": params }));
        assert!(answer(id)["result"]["contents"].is_object());
        taken.push(began.elapsed().as_secs_f64() * 1e3);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    sorted(taken.split_off(times / 5))
}

struct Bench {
    keeper: Keeper<ServerResource>,
    lease: Lease,
    document: Document,
    launcher: Launcher,
    _folder: tempfile::TempDir,
}

async fn bench(program: &Path, args: &[String]) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let config = LaunchConfig::new(format!("bench-{:x}", getrandom::u64().unwrap()));
    let launcher = Launcher::start(config, StatusTable::default()).await.unwrap();
    let root = folder.path().canonicalize().unwrap();
    let path = root.join("a.py");
    std::fs::write(&path, TEXT).unwrap();
    let spec = ServerSpec {
        name: "bench".to_owned(),
        root,
        program: program.to_owned(),
        args: args.iter().map(Into::into).collect(),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        posture: Posture::Writable,
        initialization_options: Value::Null,
        settings: Value::Null,
        recipe: Recipe::Pull,
        start_deadline: BOUND,
        linger: BOUND,
        private_to: None,
    };
    let launch: Arc<dyn Launch> = Arc::new(launcher.clone());
    let resource = ServerResource::new(Arc::new(spec), launch);
    let keeper = Keeper::new(resource.clone()).await;
    let lease = resource.lease(keeper.slot.clone(), RunId(1), || {});
    let document = Document {
        path: path.into(),
        language_id: "python".into(),
        text: TEXT.into(),
        hash: TextHash([1; 32]),
        read_at: tokio::time::Instant::now(),
    };
    Bench { keeper, lease, document, launcher, _folder: folder }
}

impl Bench {
    async fn hover(&self) -> f64 {
        let documents = std::slice::from_ref(&self.document);
        let path = Arc::clone(&self.document.path);
        let cancel = CancellationToken::new();
        let began = Instant::now();
        let params = |_: &_| question(&path);
        let answer = self.lease.request(documents, HOVER, params, BOUND, &cancel).await.unwrap();
        let taken = began.elapsed().as_secs_f64() * 1e3;
        assert!(answer.value["contents"].is_object());
        taken
    }

    async fn end(self) {
        drop(self.keeper);
        self.launcher.shutdown(Duration::from_secs(5)).await;
    }
}

async fn leased_hovers(program: &Path, args: &[String], times: usize) -> Vec<f64> {
    let (program, args) = (program.to_owned(), args.to_vec());
    // As tools run: in a task of the runtime.
    let hovers = tokio::spawn(async move {
        let bench = bench(&program, &args).await;
        let mut taken = Vec::new();
        for _ in 0..times + times / 5 {
            taken.push(bench.hover().await);
        }
        bench.end().await;
        taken.split_off(times / 5)
    });
    sorted(hovers.await.unwrap())
}

/// Kills the server's process and takes the time to the next answer.
async fn replaced(times: usize) -> Vec<f64> {
    let bench = bench(&scripted(), &[]).await;
    let mut taken = Vec::new();
    for _ in 0..times {
        // A renewed slot has no deaths behind it, so that none is backed off.
        bench.lease.reload();
        bench.hover().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        bench.hover().await;
        let pid = bench.keeper.status.pids()[0].1;
        let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
        let began = Instant::now();
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        bench.hover().await;
        taken.push(began.elapsed().as_secs_f64() * 1e3);
    }
    bench.end().await;
    sorted(taken)
}
