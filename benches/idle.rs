//! What idleness costs: the daemon itself, and each further idle run.
//!
//! Floor of the first: a tokio runtime with nothing in it is below what is worth
//! measuring, so the peers' figures stand beside it. Floor of the second: the two
//! bare actors that an idle run consists of.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, missing_docs)]
#![allow(clippy::print_stdout, dead_code, reason = "it is a bench, and shares more than it uses")]

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hostler_actors::host::workspace::WorkspaceMsg;
use hostler_actors::host::workspace::space::SpaceMsg;
use hostler_actors::host::workspace::space::conversation::ConversationMsg;
use hostler_actors::host::{Host, HostArgs, HostMsg};
use hostler_actors::ids::{ConversationId, RunId, SpaceId, WorkspaceId};
use hostler_actors::ports::{
    BoxFuture, Jitter, Launch, LaunchError, LaunchOrder, Launched, Ports, RunSpec, Surface,
    ToolCall, ToolResult, Tools, Transcripts,
};
use hostler_actors::profile::{Mode, Profile, Tier, WorktreePosture};
use hostler_actors::status::StatusTable;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use table::{Figure, print, resident};

#[path = "common/table.rs"]
mod table;

const RUNS: u64 = 10_000;

struct Nothing;

impl Launch for Nothing {
    fn launch(&self, order: LaunchOrder) -> BoxFuture<'_, Result<Launched, LaunchError>> {
        Box::pin(async move { Err(LaunchError::ShuttingDown { label: order.label }) })
    }
}

impl Jitter for Nothing {
    fn up_to(&self, most: Duration) -> Duration {
        most
    }
}

impl Tools for Nothing {
    fn surface(&self, _: &RunSpec, profile: &Arc<Profile>) -> Surface {
        Surface { profile: Arc::clone(profile), tools: Vec::new(), preamble: String::new() }
    }
    fn lanes(&self, _: &str, _: &serde_json::Value) -> Vec<String> {
        Vec::new()
    }
    fn call(&self, _: ToolCall) -> BoxFuture<'static, ToolResult> {
        Box::pin(async { ToolResult::error("nothing", serde_json::Value::Null) })
    }
    fn run_ended(&self, _: RunId) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

impl Transcripts for Nothing {
    fn append(&self, _: RunId, _: serde_json::Value) {}
    fn close(&self, _: RunId) {}
}

struct Bare;

impl Actor for Bare {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

async fn ask<M: ractor::Message, T: Send + 'static>(
    actor: &ActorRef<M>,
    question: impl FnOnce(RpcReplyPort<T>) -> M,
) -> T {
    let (reply, answer) = ractor::concurrency::oneshot();
    actor.cast(question(reply.into())).expect("a live actor");
    answer.await.expect("an answer")
}

fn own_resident() -> f64 {
    resident(std::process::id()) as f64
}

async fn bare_actors() -> f64 {
    let before = own_resident();
    let mut kept = Vec::new();
    for _ in 0..2 * RUNS {
        kept.push(Actor::spawn(None, Bare, ()).await.expect("an actor").0);
    }
    let grown = own_resident() - before;
    for actor in kept {
        actor.stop(None);
    }
    grown / RUNS as f64 / 1024.0
}

async fn idle_runs() -> f64 {
    let nothing = Arc::new(Nothing);
    let ports = Ports {
        launch: Arc::clone(&nothing) as _,
        sockets: hostler_actors::testing::sockets::FakeSockets::new().0,
        jitter: Arc::clone(&nothing) as _,
        tools: Arc::clone(&nothing) as _,
        transcripts: nothing,
    };
    let status = StatusTable::default();
    let args = HostArgs { ports, status: status.clone() };
    let (host, _) = Actor::spawn(None, Host, args).await.expect("a host");
    let workspace = ask(&host, |reply| HostMsg::OpenWorkspace(WorkspaceId(1), reply)).await;
    let profile = Arc::new(Profile {
        mode: Mode::Chat,
        max_tier: Tier::Exec,
        worktree: WorktreePosture::Writable,
        guidance: String::new(),
    });
    let open = |reply| WorkspaceMsg::OpenSpace {
        id: SpaceId(1),
        name: "bench".to_owned(),
        profile,
        reply,
    };
    let space = ask(&workspace, open).await;
    let before = own_resident();
    for id in 0..RUNS {
        let open = |reply| SpaceMsg::OpenConversation(ConversationId(id), reply);
        let conversation = ask(&space, open).await;
        let env = Arc::new([("PATH".into(), "/usr/bin:/bin".into())]);
        let spec = Arc::new(RunSpec { id: RunId(id), folder: "/project".into(), env });
        ask(&conversation, |reply| ConversationMsg::OpenRun(spec, reply)).await;
    }
    let each = (own_resident() - before) / RUNS as f64 / 1024.0;
    assert!(status.snapshot().len() as u64 > 2 * RUNS, "the runs live");
    ask(&host, HostMsg::End).await;
    each
}

/// Starts the real daemon on a fresh folder and measures it after two seconds.
fn idle_daemon() -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(["serve", "--data"])
        .arg(folder.path())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("hostler starts");
    let socket = folder.path().join("run/hostler.sock");
    let began = Instant::now();
    while !socket.exists() && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_secs(2));
    let bytes = resident(daemon.id());
    let stopped = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(["stop", "--data"])
        .arg(folder.path())
        .output();
    assert!(stopped.is_ok_and(|output| output.status.success()), "the daemon stops");
    let _ = daemon.wait();
    bytes as f64 / (1024.0 * 1024.0)
}

#[tokio::main]
async fn main() {
    let daemon = idle_daemon();
    let floor = bare_actors().await;
    let runs = idle_runs().await;
    print(&[
        Figure::new("idle daemon, resident", "MiB", daemon)
            .peer(4.9, "a Rust peer, as published; others 12 to 326")
            .goal(10.0),
        Figure::new("each further idle run of 10,000", "KiB", runs).floor(floor).goal(40.0),
    ]);
}
