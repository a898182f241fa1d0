//! The session's life against an adapter that the test plays, under a paused clock.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorRef};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::breakpoints::{SourceFile, Wish};
use super::desk::{Desk, NotBegun, Shared};
use super::refusal::End;
use super::session::{Session, Standing};
use super::spec::{AdapterProcess, Bounds, Kind, Reach, SessionSpec};
use super::travel::Came;
use super::{DebugSession, DebugSessionArgs, DebugSessionMsg};
use crate::frame::{FrameReader, framed};
use crate::ports::{Ended, PipeReader, PipeWriter};
use crate::status::{NodeKind, StatusTable};
use crate::testing::process::{FakeLaunch, FakeProcess, FakeProcesses};
use crate::testing::sockets::{FakePeers, FakeSockets};

const LONG: Duration = Duration::from_secs(3600);

struct Bench {
    desk: Desk,
    actor: ActorRef<DebugSessionMsg>,
    processes: FakeProcesses,
    peers: FakePeers,
}

#[expect(clippy::disallowed_methods, reason = "the root of a test's tree")]
async fn bench() -> Bench {
    let (launch, processes) = FakeLaunch::new();
    let (sockets, peers) = FakeSockets::new();
    let shared = Arc::<Shared>::default();
    let status = StatusTable::default().enter(None, NodeKind::DebugSession, "test");
    let args = DebugSessionArgs { launch, sockets, shared: Arc::clone(&shared), status };
    let (actor, _) = Actor::spawn(None, DebugSession, args).await.unwrap();
    Bench { desk: Desk::new(actor.clone(), shared), actor, processes, peers }
}

fn spec(reach: Reach, kind: Kind) -> SessionSpec {
    let second = Duration::from_secs(1);
    SessionSpec {
        adapter: "played".to_owned(),
        adapter_id: "played".to_owned(),
        what: "a.py".to_owned(),
        reach,
        kind,
        arguments: json!({ "program": "/p/a.py" }),
        distrust: Vec::new(),
        not_variables: Vec::new(),
        exit_line: None,
        stop_on_entry: false,
        entry_function: None,
        resume_on_detach: true,
        builds: false,
        bounds: Bounds {
            ttl: Duration::from_secs(1800),
            start: 30 * second,
            initialize: 20 * second,
            request: 10 * second,
            disconnect: 2 * second,
        },
        guard: None,
    }
}

fn launched() -> SessionSpec {
    let process = AdapterProcess {
        program: PathBuf::from("/bin/adapter"),
        args: Vec::new(),
        env: Vec::new(),
        cwd: PathBuf::from("/p"),
    };
    spec(Reach::Stdio(process), Kind::Launch)
}

/// The other side of a connection.
struct Played {
    from: FrameReader<PipeReader>,
    to: PipeWriter,
}

impl Played {
    fn of(process: &mut FakeProcess) -> Self {
        let from = process.pipes.remove(&0).unwrap();
        let to = process.pipes.remove(&1).unwrap();
        Self { from: FrameReader::new(Box::new(from)), to: Box::new(to) }
    }

    async fn send(&mut self, message: &Value) {
        self.to.write_all(&framed(message.to_string().as_bytes())).await.unwrap();
    }

    async fn event(&mut self, event: &str, body: Value) {
        self.send(&json!({ "type": "event", "event": event, "body": body })).await;
    }

    /// Returns the next request, which must be this one.
    async fn asked(&mut self, command: &str) -> Value {
        let body = timeout(LONG, self.from.next()).await.unwrap().unwrap().unwrap();
        let request: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(request["command"], command, "{request}");
        request
    }

    async fn answer(&mut self, request: &Value, body: Value) {
        let answer = json!({ "type": "response", "request_seq": request["seq"], "success": true,
            "command": request["command"], "body": body });
        self.send(&answer).await;
    }

    async fn serve(&mut self, command: &str, body: Value) -> Value {
        let request = self.asked(command).await;
        self.answer(&request, body).await;
        request
    }

    /// Comes up to a stop.
    async fn come_up(&mut self, begin: &str) {
        let can = json!({ "supportsConfigurationDoneRequest": true });
        self.serve("initialize", can).await;
        let request = self.asked(begin).await;
        self.event("initialized", json!({})).await;
        self.serve("setBreakpoints", json!({ "breakpoints": [{ "verified": true }] })).await;
        self.serve("setExceptionBreakpoints", Value::Null).await;
        // A stop that comes before its answers is not lost.
        let done = self.asked("configurationDone").await;
        self.event("stopped", json!({ "reason": "breakpoint", "threadId": 7 })).await;
        self.answer(&done, Value::Null).await;
        self.answer(&request, Value::Null).await;
    }

    async fn report(&mut self) {
        let frame = json!({ "id": 1000, "name": "f", "line": 3, "source": { "path": "/p/a.py" } });
        self.serve("stackTrace", json!({ "stackFrames": [frame] })).await;
        self.serve("scopes", json!({ "scopes": [{ "name": "Locals", "variablesReference": 5 }] }))
            .await;
        self.serve("variables", json!({ "variables": [{ "name": "x", "value": "1" }] })).await;
    }
}

fn wish(bench: &Bench) {
    let file = SourceFile { shown: "a.py".to_owned(), paths: vec![PathBuf::from("/p/a.py")] };
    let line = Wish { line: 3, ..Wish::default() };
    bench.desk.wishes().lock().unwrap().set(file, vec![line]).unwrap();
}

async fn stopped(session: &Arc<Session>, played: &mut Played) {
    let (came, ()) = tokio::join!(session.started(LONG), played.report());
    let Came::Stopped(report) = came else { panic!("{came:?}") };
    assert_eq!((report.reason.as_str(), report.locals.len()), ("breakpoint", 1));
}

async fn over(session: &Session) -> End {
    session.until(|book| book.gone.then_some(())).await;
    let Standing::Over(end) = session.standing() else { panic!("{:?}", session.standing()) };
    end
}

#[tokio::test(start_paused = true)]
async fn thirty_minutes_are_the_end_whatever_goes_on() {
    let mut bench = bench().await;
    wish(&bench);
    let session = bench.desk.begin(launched()).await.unwrap();
    let mut process = bench.processes.next().await;
    let mut played = Played::of(&mut process);
    played.come_up("launch").await;
    stopped(&session, &mut played).await;
    let second = bench.desk.begin(launched()).await;
    assert!(matches!(second, Err(NotBegun::Occupied(_))));
    sleep(Duration::from_secs(1700)).await;
    assert_eq!(session.time_left().as_secs(), 100);
    let waits = tokio::spawn({
        let session = Arc::clone(&session);
        async move { session.resume(super::travel::Step::Continue, None, LONG).await }
    });
    played.serve("continue", Value::Null).await;
    // It never answers its goodbye, and is killed.
    let request = played.asked("disconnect").await;
    assert_eq!(request["arguments"]["terminateDebuggee"], true);
    assert_eq!(over(&session).await, End::Expired);
    assert!(matches!(waits.await.unwrap(), Ok(Came::Over)));
    assert!(session.age() < Duration::from_secs(1805));
    bench.desk.begin(launched()).await.unwrap();
    bench.actor.kill();
}

#[tokio::test(start_paused = true)]
async fn a_lost_adapter_is_replaced_at_once_and_let_go_after_a_minute() {
    let mut bench = bench().await;
    wish(&bench);
    let session = bench.desk.begin(launched()).await.unwrap();
    let mut process = bench.processes.next().await;
    let mut played = Played::of(&mut process);
    played.come_up("launch").await;
    stopped(&session, &mut played).await;
    process.tree.write_ring("free(): invalid pointer");
    process.tree.end(Ended::Signal(6));
    drop(played);
    assert_eq!(
        over(&session).await,
        End::Lost("the adapter's process was killed by SIGABRT".to_owned())
    );
    assert!(session.last_words().contains("free()"), "{}", session.last_words());
    // The next one is there before anybody asks, and is the next session's.
    let mut ready = bench.processes.next().await;
    sleep(Duration::from_secs(59)).await;
    let session = bench.desk.begin(launched()).await.unwrap();
    let mut played = Played::of(&mut ready);
    played.come_up("launch").await;
    stopped(&session, &mut played).await;
    assert!(bench.processes.try_next().is_none());
    ready.tree.end(Ended::Code(1));
    over(&session).await;
    let unused = bench.processes.next().await;
    sleep(Duration::from_secs(58)).await;
    assert!(Arc::strong_count(&unused.tree) > 1);
    sleep(Duration::from_secs(3)).await;
    assert_eq!(Arc::strong_count(&unused.tree), 1, "nobody wanted it");
    bench.actor.kill();
}

#[tokio::test(start_paused = true)]
async fn what_is_attached_to_is_freed_and_left_running() {
    let mut bench = bench().await;
    wish(&bench);
    let session = bench.desk.begin(spec(Reach::Listens(5678), Kind::Attach)).await.unwrap();
    let (port, stream) = bench.peers.next().await;
    assert_eq!(port, 5678);
    let (from, to) = tokio::io::split(stream);
    let mut played = Played { from: FrameReader::new(Box::new(from)), to: Box::new(to) };
    played.come_up("attach").await;
    stopped(&session, &mut played).await;
    let (reply, ended) = ractor::concurrency::oneshot();
    bench.actor.cast(DebugSessionMsg::End(reply.into())).unwrap();
    let cleared = played.serve("setBreakpoints", json!({ "breakpoints": [] })).await;
    assert_eq!(cleared["arguments"]["breakpoints"], json!([]));
    let freed = played.serve("continue", Value::Null).await;
    assert_eq!(freed["arguments"]["threadId"], 7);
    let left = played.serve("disconnect", Value::Null).await;
    assert_eq!(left["arguments"]["terminateDebuggee"], false);
    ended.await.unwrap();
    assert_eq!(over(&session).await, End::Closed);
    assert!(bench.processes.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn the_actors_death_takes_the_process_along() {
    let mut bench = bench().await;
    let session = bench.desk.begin(launched()).await.unwrap();
    let mut process = bench.processes.next().await;
    let mut stdin = process.pipes.remove(&0).unwrap();
    assert!(matches!(session.standing(), Standing::Starting(_)));
    bench.actor.kill();
    // Our ends are closed: nothing of the session lives on.
    let closed = timeout(Duration::from_secs(5), async {
        let mut rest = Vec::new();
        stdin.read_to_end(&mut rest).await
    });
    closed.await.unwrap().unwrap();
}
