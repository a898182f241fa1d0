//! The tree from the host down to a turn, on fakes of the ports.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ractor::{Actor, ActorRef, RpcReplyPort};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{advance, timeout};

use super::workspace::WorkspaceMsg;
use super::workspace::space::SpaceMsg;
use super::workspace::space::conversation::ConversationMsg;
use super::workspace::space::conversation::run::turn::{Asked, TurnMsg};
use super::workspace::space::conversation::run::{Begun, RunMsg};
use super::*;
use crate::ids::{CallId, ConversationId, SpaceId};
use crate::ports::{
    BoxFuture, Caller, Jitter, Launch, LaunchError, LaunchOrder, Launched, RunSpec, Surface,
    ToolCall, ToolResult, Tools, Transcripts,
};
use crate::profile::{Mode, Profile, Tier, WorktreePosture};

const BOUND: Duration = Duration::from_secs(60);

struct NoLaunch;

impl Launch for NoLaunch {
    fn launch(&self, order: LaunchOrder) -> BoxFuture<'_, Result<Launched, LaunchError>> {
        Box::pin(async move { Err(LaunchError::ShuttingDown { label: order.label }) })
    }
}

struct NoJitter;

impl Jitter for NoJitter {
    fn up_to(&self, _: Duration) -> Duration {
        Duration::ZERO
    }
}

/// `wait` ends when told, `panic` panics, `deaf` ignores its cancellation.
#[derive(Default)]
struct FakeTools {
    waiting: Mutex<HashMap<CallId, oneshot::Sender<()>>>,
    ended: Mutex<Vec<RunId>>,
}

impl Tools for FakeTools {
    fn surface(&self, _: &RunSpec, profile: &Arc<Profile>) -> Surface {
        Surface { profile: Arc::clone(profile), tools: Vec::new(), preamble: String::new() }
    }

    fn lanes(&self, _: &str, arguments: &Value) -> Vec<String> {
        arguments["lane"].as_str().map(str::to_owned).into_iter().collect()
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, ToolResult> {
        let (tell, told) = oneshot::channel();
        self.waiting.lock().unwrap().insert(call.call, tell);
        Box::pin(async move {
            match call.tool.as_str() {
                "panic" => panic!("as told"),
                "deaf" => {
                    let _ = told.await;
                }
                _ => tokio::select! {
                    _ = told => {}
                    () = call.cancel.cancelled() => {
                        return ToolResult::error("cancelled", json!({"cancelled": true}));
                    }
                },
            }
            ToolResult { content: Vec::new(), is_error: false, details: json!({"turn": call.turn}) }
        })
    }

    fn run_ended(&self, run: RunId) -> BoxFuture<'static, ()> {
        self.ended.lock().unwrap().push(run);
        Box::pin(async {})
    }
}

#[derive(Default)]
struct Lines(Mutex<Vec<Value>>);

impl Transcripts for Lines {
    fn append(&self, _: RunId, line: Value) {
        self.0.lock().unwrap().push(line);
    }

    fn close(&self, _: RunId) {
        self.0.lock().unwrap().push(json!("closed"));
    }
}

struct Tree {
    host: ActorRef<HostMsg>,
    space: ActorRef<SpaceMsg>,
    run: ActorRef<RunMsg>,
    tools: Arc<FakeTools>,
    lines: Arc<Lines>,
    status: StatusTable,
}

fn profile(mode: Mode) -> Arc<Profile> {
    Arc::new(Profile {
        mode,
        max_tier: Tier::Exec,
        worktree: WorktreePosture::Writable,
        guidance: String::new(),
    })
}

async fn ask<M: ractor::Message, T: Send + 'static>(
    actor: &ActorRef<M>,
    question: impl FnOnce(RpcReplyPort<T>) -> M,
) -> T {
    let (reply, answer) = ractor::concurrency::oneshot();
    actor.cast(question(reply.into())).unwrap();
    timeout(BOUND, answer).await.expect("an answer in time").expect("an answer")
}

#[expect(clippy::disallowed_methods, reason = "the root of a test's tree")]
async fn tree() -> Tree {
    let (tools, lines) = (Arc::<FakeTools>::default(), Arc::<Lines>::default());
    let status = StatusTable::default();
    let ports = Ports {
        launch: Arc::new(NoLaunch),
        sockets: crate::testing::sockets::FakeSockets::new().0,
        jitter: Arc::new(NoJitter),
        tools: Arc::clone(&tools) as _,
        transcripts: Arc::clone(&lines) as _,
    };
    let args = HostArgs { ports, status: status.clone() };
    let (host, _) = Actor::spawn(None, Host, args).await.unwrap();
    let workspace = ask(&host, |reply| HostMsg::OpenWorkspace(WorkspaceId(1), reply)).await;
    let space = ask(&workspace, |reply| WorkspaceMsg::OpenSpace {
        id: SpaceId(1),
        name: "here".to_owned(),
        profile: profile(Mode::Chat),
        reply,
    })
    .await;
    let open = |reply| SpaceMsg::OpenConversation(ConversationId(1), reply);
    let conversation = ask(&space, open).await;
    let spec = Arc::new(RunSpec { id: RunId(1), folder: "/here".into(), env: Arc::new([]) });
    let run = ask(&conversation, |reply| ConversationMsg::OpenRun(spec, reply)).await;
    Tree { host, space, run, tools, lines, status }
}

impl Tree {
    async fn begin(&self) -> Begun {
        ask(&self.run, RunMsg::BeginTurn).await
    }

    /// Makes a call and returns its answer as a task.
    fn call(&self, id: u64, tool: &str, lane: Option<&str>) -> tokio::task::JoinHandle<ToolResult> {
        let asked = Asked {
            call: CallId(id),
            caller: Caller::External,
            tool: tool.to_owned(),
            arguments: json!({"lane": lane}),
        };
        let (reply, answer) = ractor::concurrency::oneshot();
        self.run.cast(RunMsg::Call(asked, reply.into())).unwrap();
        tokio::spawn(async move { timeout(BOUND, answer).await.unwrap().unwrap() })
    }

    /// Lists the calls under way, once all messages so far were handled.
    async fn calls(&self) -> Vec<(u64, &'static str)> {
        let view = ask(&self.run, RunMsg::Look).await;
        let calls = ask(view.open.as_ref().expect("an open turn"), TurnMsg::Calls).await;
        calls.into_iter().map(|call| (call.id.0, call.state)).collect()
    }

    fn finish(&self, id: u64) {
        let tell = self.tools.waiting.lock().unwrap().remove(&CallId(id)).expect("a call");
        tell.send(()).unwrap();
    }

    fn kinds(&self) -> Vec<NodeKind> {
        self.status.snapshot().iter().map(|node| node.kind).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_run_costs_a_conversation_and_a_run() {
    use NodeKind::{Conversation, Host, Mode, Run, Space, Turn, Workspace};
    let tree = tree().await;
    assert_eq!(tree.kinds(), [Host, Workspace, Space, Mode, Conversation, Run]);
    tree.begin().await;
    assert_eq!(tree.kinds(), [Host, Workspace, Space, Mode, Conversation, Run, Turn]);
    ask(&tree.run, RunMsg::EndTurn).await;
    tree.begin().await;
    assert_eq!(tree.kinds().iter().filter(|kind| **kind == Turn).count(), 1);
    ask(&tree.host, HostMsg::End).await;
    tree.host.wait(Some(BOUND)).await.unwrap();
    assert_eq!(tree.kinds(), []);
}

#[tokio::test(start_paused = true)]
async fn calls_on_one_lane_keep_their_order() {
    let tree = tree().await;
    tree.begin().await;
    let first = tree.call(1, "wait", Some("a.py"));
    let second = tree.call(2, "wait", Some("a.py"));
    let other = tree.call(3, "wait", None);
    assert_eq!(tree.calls().await, [(1, "running"), (2, "waiting"), (3, "running")]);
    tree.finish(3);
    assert!(!other.await.unwrap().is_error);
    tree.finish(1);
    assert!(!first.await.unwrap().is_error);
    assert_eq!(tree.calls().await, [(2, "running")]);
    tree.finish(2);
    assert!(!second.await.unwrap().is_error);
}

#[tokio::test(start_paused = true)]
async fn a_mode_changes_with_the_next_turn_and_never_within_one() {
    let tree = tree().await;
    tree.begin().await;
    let call = tree.call(1, "wait", None);
    ask(&tree.space, |reply| SpaceMsg::SetMode(profile(Mode::Plan), reply)).await;
    let view = ask(&tree.run, RunMsg::Look).await;
    assert_eq!(view.surface.expect("an open turn").profile.mode, Mode::Chat);
    assert_eq!(view.next_profile.mode, Mode::Plan);
    let (reply, next) = ractor::concurrency::oneshot();
    tree.run.cast(RunMsg::BeginTurn(reply.into())).unwrap();
    assert_eq!(tree.calls().await, [(1, "running")], "the next turn waits for the call");
    tree.finish(1);
    assert_eq!(call.await.unwrap().details["turn"], 1);
    let begun = timeout(BOUND, next).await.unwrap().unwrap();
    assert_eq!((begun.turn, begun.surface.profile.mode), (2, Mode::Plan));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_says_so_whether_it_began_or_not() {
    let tree = tree().await;
    tree.begin().await;
    let running = tree.call(1, "wait", Some("x"));
    let waiting = tree.call(2, "wait", Some("x"));
    assert!(ask(&tree.run, |reply| RunMsg::Cancel(CallId(2), reply)).await);
    assert_eq!(waiting.await.unwrap().details["ended"], true);
    assert!(ask(&tree.run, |reply| RunMsg::Cancel(CallId(1), reply)).await);
    assert!(running.await.unwrap().is_error);
    assert!(!ask(&tree.run, |reply| RunMsg::Cancel(CallId(1), reply)).await, "it is finished");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ignores_its_cancellation_is_given_up() {
    let tree = tree().await;
    tree.begin().await;
    let deaf = tree.call(1, "deaf", None);
    assert!(ask(&tree.run, |reply| RunMsg::Cancel(CallId(1), reply)).await);
    advance(Duration::from_secs(9)).await;
    assert_eq!(deaf.await.unwrap().details["ended"], false);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_fails_its_call_and_nothing_else() {
    let tree = tree().await;
    tree.begin().await;
    let neighbour = tree.call(1, "wait", None);
    let result = tree.call(2, "panic", None).await.unwrap();
    assert!(result.is_error && result.details["internal"] == true);
    tree.finish(1);
    assert!(!neighbour.await.unwrap().is_error);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_host_ends_calls_runs_and_transcripts() {
    let tree = tree().await;
    tree.begin().await;
    let call = tree.call(1, "wait", None);
    assert_eq!(tree.calls().await, [(1, "running")]);
    ask(&tree.host, HostMsg::End).await;
    assert!(call.await.unwrap().is_error);
    assert_eq!(*tree.tools.ended.lock().unwrap(), [RunId(1)]);
    assert_eq!(tree.lines.0.lock().unwrap().last(), Some(&json!("closed")));
    tree.host.wait(Some(BOUND)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_outside_a_turn_is_told_so() {
    let tree = tree().await;
    let result = tree.call(1, "wait", None).await.unwrap();
    assert!(result.is_error);
    for call in 2..100 {
        tree.begin().await;
        ask(&tree.run, RunMsg::EndTurn).await;
        let result = tree.call(call, "wait", None).await.unwrap();
        assert!(result.is_error, "also at once after its end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_transcript_has_the_turn_the_call_and_the_result() {
    let tree = tree().await;
    tree.begin().await;
    let call = tree.call(7, "wait", None);
    tree.calls().await;
    tree.finish(7);
    call.await.unwrap();
    let lines = tree.lines.0.lock().unwrap();
    let have: Vec<_> = lines
        .iter()
        .map(|line| line.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(have, ["folder mode turn", "arguments call caller tool turn", "call result turn"]);
}
