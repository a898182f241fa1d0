//! One `hostler session`: JSON lines over any pipe, a thin skin over a run.
//!
//! The loop here only reads, hands on and writes; what a call may do is decided
//! behind `tools::call`. The process that holds the pipe is the operator: calls
//! are the run's acts, controls the operator's.
//!
//! The tricky thing: a call that comes after `new_turn` belongs to the next turn,
//! so it is held until that has begun.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hostler_actors::host::workspace::space::conversation::run::turn::{Asked, TurnMsg};
use hostler_actors::host::workspace::space::conversation::run::{Begun, RunMsg, RunView};
use hostler_actors::ids::CallId;
use hostler_actors::ports::{Caller, Surface, ToolResult};
use hostler_actors::profile::Mode;
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::lines::{LONGEST, Line, Lines};
use super::protocol::{CallAnswer, Code, Control, PROTOCOL, Refusal, Request, StatusAnswer, parse};
use crate::ask::ask;
use crate::daemon::Engagement;

/// Lines that may wait, in for the loop and out for a slow reader, before their
/// sender waits too.
const QUEUE: usize = 64;

/// Calls of one session that may be under way or held at once.
const CALLS: usize = 256;

/// How long a peer may take to read the last lines once the session was stopped.
const LAST_LINES: Duration = Duration::from_secs(1);

/// How long an actor may take to answer a question that needs no outside.
const ANSWER: Duration = Duration::from_secs(5);

/// What a task of the session reports to its loop.
enum Event {
    Done { id: Value, result: Option<ToolResult> },
    Begun { id: Value, begun: Option<Begun> },
    TurnEnded { id: Value },
}

struct Call {
    call: CallId,
    tool: String,
}

/// One session's loop.
struct Session {
    engagement: Engagement,
    out: mpsc::Sender<Value>,
    events: mpsc::UnboundedSender<Event>,
    calls: HashMap<String, Call>,
    held: Vec<(Value, String, Value)>,
    turning: usize,
    at_end: AtEnd,
    finishing: bool,
}

/// What the end of the input means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// No more lines; the calls under way finish within their bounds.
    Finish,
    /// The peer is gone; it would have said `end_of_input` before.
    HangUp,
}

/// Speaks on a pipe until its end, or until `stop`; then ends the run if it was
/// begun here. Returns when everything that it owned is gone.
pub(crate) async fn speak<R, W>(
    engagement: Engagement,
    reader: R,
    writer: W,
    at_end: AtEnd,
    stop: CancellationToken,
) where
    R: AsyncBufRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (out, to_write) = mpsc::channel(QUEUE);
    let mut writer = tokio::spawn(write_lines(writer, to_write));
    // As many events as there are calls; lines are the peer's to send, and bounded.
    let (events, mut inbox) = mpsc::unbounded_channel();
    let (read, mut lines) = mpsc::channel(QUEUE);
    let reading = tokio::spawn(read_lines(reader, read));
    let first = ready(&engagement);
    let mut session = Session {
        engagement,
        out,
        events,
        calls: HashMap::new(),
        held: Vec::new(),
        turning: 0,
        at_end,
        finishing: false,
    };
    tokio::select! {
        // Also while a peer that does not read holds a line up.
        () = stop.cancelled() => {}
        () = session.live(first, &mut inbox, &mut lines) => {}
    }
    reading.abort();
    session.engagement.end().await;
    drop(session);
    tokio::select! {
        _ = &mut writer => {}
        () = async { stop.cancelled().await; tokio::time::sleep(LAST_LINES).await } => {}
    }
    writer.abort();
}

/// Reads until the end, at which its sender goes.
async fn read_lines<R: AsyncBufRead + Unpin>(reader: R, read: mpsc::Sender<(u64, Line)>) {
    let mut lines = Lines::new(reader, LONGEST);
    // A pipe that breaks has ended.
    while let Ok(Some(line)) = lines.next().await {
        if read.send(line).await.is_err() {
            return;
        }
    }
}

async fn write_lines<W: AsyncWrite + Unpin>(mut writer: W, mut lines: mpsc::Receiver<Value>) {
    while let Some(line) = lines.recv().await {
        let mut bytes = line.to_string().into_bytes();
        bytes.push(b'\n');
        // A peer that is gone ends the session, whose loop sees the channel close.
        if writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}

fn ready(engagement: &Engagement) -> Value {
    let mut line = turn_line("ready", engagement.first.turn, &engagement.first.surface);
    if let Some(object) = line.as_object_mut() {
        object.insert("protocol".to_owned(), PROTOCOL.into());
        object.insert("run".to_owned(), json!(engagement.run_id));
        object.insert("conversation".to_owned(), json!(engagement.conversation));
        object.insert("space".to_owned(), json!(engagement.space));
    }
    line
}

fn turn_line(event: &str, turn: u64, surface: &Arc<Surface>) -> Value {
    json!({
        "event": event,
        "turn": turn,
        "mode": surface.profile.mode,
        "tools": surface.tools,
        "preamble": surface.preamble,
    })
}

impl Session {
    /// Takes lines and events until the session is over by itself.
    async fn live(
        &mut self,
        first: Value,
        inbox: &mut mpsc::UnboundedReceiver<Event>,
        lines: &mut mpsc::Receiver<(u64, Line)>,
    ) {
        self.send(first).await;
        let mut input = true;
        loop {
            tokio::select! {
                () = self.out.closed() => return,
                Some(event) = inbox.recv() => self.on(event).await,
                line = lines.recv(), if input => match line {
                    Some((number, line)) => self.read(number, line).await,
                    None if self.at_end == AtEnd::HangUp => return,
                    None => (input, self.finishing) = (false, true),
                },
            }
            if self.finishing && self.calls.is_empty() && self.turning == 0 {
                return;
            }
        }
    }

    async fn send(&self, line: Value) {
        // A closed channel is seen by the loop.
        let _ = self.out.send(line).await;
    }

    async fn refuse(&self, refusal: Refusal) {
        self.send(refusal.to_json()).await;
    }

    async fn read(&mut self, number: u64, line: Line) {
        match line {
            Line::Text(line) => match parse(number, &line) {
                Ok((id, request)) => self.take(id, request).await,
                Err(refusal) => self.refuse(refusal).await,
            },
            Line::TooLong(most) => {
                let message = format!("line {number} is longer than {most} bytes and was skipped");
                let refusal = Refusal::new(Value::Null, Code::BadLine, message);
                self.refuse(Refusal { line: Some(number), ..refusal }).await;
            }
        }
    }

    async fn on(&mut self, event: Event) {
        match event {
            Event::Done { id, result } => {
                self.calls.remove(&id.to_string());
                match result {
                    Some(result) => self.send(json!({"id": id, "result": result})).await,
                    None => {
                        let message = "the turn ended before the call did";
                        self.refuse(Refusal::new(id, Code::Internal, message)).await;
                    }
                }
            }
            Event::Begun { id, begun } => self.begun(id, begun).await,
            Event::TurnEnded { id } => {
                self.turning -= 1;
                self.send(json!({"id": id, "ok": {"ended": true}})).await;
                self.release_held().await;
            }
        }
    }

    async fn take(&mut self, id: Value, request: Request) {
        if self.calls.contains_key(&id.to_string())
            || self.held.iter().any(|(held, ..)| *held == id)
        {
            let message = format!("id {id} belongs to a request that is not finished yet");
            return self.refuse(Refusal::new(id, Code::DuplicateId, message)).await;
        }
        match request {
            Request::Call { tool, .. } if self.calls.len() + self.held.len() >= CALLS => {
                let text = format!(
                    "{tool}: {CALLS} calls of this session are under way, which is the limit; \
                     make it again when one has ended"
                );
                let result = ToolResult::error(text, json!({}));
                self.send(json!({"id": id, "result": result})).await;
            }
            Request::Call { tool, arguments } if self.turning > 0 => {
                self.held.push((id, tool, arguments));
            }
            Request::Call { tool, arguments } => self.call(id, tool, arguments),
            Request::Control(control) => self.control(id, control).await,
        }
    }

    fn call(&mut self, id: Value, tool: String, arguments: Value) {
        let call = CallId(crate::chance::id());
        self.calls.insert(id.to_string(), Call { call, tool: tool.clone() });
        let (run, events) = (self.engagement.run.clone(), self.events.clone());
        let asked = Asked { call, caller: Caller::External, tool, arguments };
        let answer = ask(&run, |reply| RunMsg::Call(asked, reply));
        tokio::spawn(async move {
            // Bounded by the tool's own limits; closed if the turn dies.
            let result = answer.await;
            let _ = events.send(Event::Done { id, result });
        });
    }

    async fn control(&mut self, id: Value, control: Control) {
        match control {
            Control::SetMode { mode } => self.set_mode(id, mode).await,
            Control::NewTurn => {
                self.turning += 1;
                let (answer, events) =
                    (ask(&self.engagement.run, RunMsg::BeginTurn), self.events.clone());
                tokio::spawn(async move {
                    let begun = answer.await;
                    let _ = events.send(Event::Begun { id, begun });
                });
            }
            Control::EndTurn => {
                self.turning += 1;
                let (answer, events) =
                    (ask(&self.engagement.run, RunMsg::EndTurn), self.events.clone());
                tokio::spawn(async move {
                    let _ = answer.await;
                    let _ = events.send(Event::TurnEnded { id });
                });
            }
            Control::EndOfInput => self.finishing = true,
            Control::Status => self.status(id).await,
            Control::Cancel { target } => self.cancel(id, target).await,
            Control::Answer { .. } | Control::Decline { .. } => {
                let message = "no operator is attached to this session (--operator none), so no \
                               card can be open";
                self.refuse(Refusal::new(id, Code::NotAllowed, message)).await;
            }
            Control::Decide { approval, .. } => {
                let message = format!("there is no approval `{approval}`");
                self.refuse(Refusal::new(id, Code::UnknownTarget, message)).await;
            }
        }
    }

    async fn set_mode(&self, id: Value, mode: Mode) {
        match mode {
            Mode::Chat => {
                let turn = self.look().await.map_or(0, |view| view.turn);
                self.send(json!({"id": id, "ok": {"mode": mode, "from_turn": turn + 1}})).await;
            }
            Mode::Review => {
                let message = "review is set by the system when it opens a review space; open \
                               the session with --mode review";
                self.refuse(Refusal::new(id, Code::NotAllowed, message)).await;
            }
            Mode::Plan | Mode::Orchestrate => {
                let message = format!("this version has only the mode chat, not {mode}");
                self.refuse(Refusal::new(id, Code::BadRequest, message)).await;
            }
        }
    }

    async fn look(&self) -> Option<RunView> {
        let answer = ask(&self.engagement.run, RunMsg::Look);
        tokio::time::timeout(ANSWER, answer).await.ok().flatten()
    }

    async fn status(&self, id: Value) {
        let Some(view) = self.look().await else {
            let message = "the run does not answer; see `hostler status`";
            return self.refuse(Refusal::new(id, Code::Internal, message)).await;
        };
        let under_way = match &view.open {
            Some(turn) => {
                let answer = ask(turn, TurnMsg::Calls);
                tokio::time::timeout(ANSWER, answer).await.ok().flatten().unwrap_or_default()
            }
            None => Vec::new(),
        };
        let mut calls: Vec<_> = under_way
            .into_iter()
            .map(|call| CallAnswer {
                id: self.name_of(call.id),
                tool: call.tool,
                state: call.state,
                age: call.age.as_secs_f64(),
            })
            .collect();
        calls.extend(self.held.iter().map(|(id, tool, _)| CallAnswer {
            id: id.clone(),
            tool: tool.clone(),
            state: "waiting for the next turn",
            age: 0.0,
        }));
        let answer = StatusAnswer {
            mode: view.surface.as_ref().map(|surface| surface.profile.mode),
            next_mode: view.next_profile.mode,
            turn: view.turn,
            calls,
            cards: [],
            approvals: [],
            resources: self.engagement.resources(),
        };
        self.send(json!({"id": id, "ok": answer})).await;
    }

    fn name_of(&self, call: CallId) -> Value {
        let found = self.calls.iter().find(|(_, known)| known.call == call);
        // The keys are the JSON of the ids; a joined run's other calls have none here.
        found.map_or(Value::Null, |(id, _)| serde_json::from_str(id).unwrap_or_default())
    }

    async fn cancel(&mut self, id: Value, target: Value) {
        if let Some(at) = self.held.iter().position(|(held, ..)| *held == target) {
            let (held, tool, _) = self.held.remove(at);
            let result = ToolResult::error(
                format!("{tool}: cancelled before it began; nothing was done"),
                json!({"cancelled": true, "ended": true}),
            );
            self.send(json!({"id": held, "result": result})).await;
            return self.send(json!({"id": id, "ok": {"cancelled": true}})).await;
        }
        let cancelled = match self.calls.get(&target.to_string()) {
            Some(call) => {
                tracing::debug!(tool = call.tool, "cancelling");
                let call = call.call;
                let answer = ask(&self.engagement.run, |reply| RunMsg::Cancel(call, reply));
                tokio::time::timeout(ANSWER, answer).await.ok().flatten().unwrap_or(false)
            }
            None => false,
        };
        if cancelled {
            self.send(json!({"id": id, "ok": {"cancelled": true}})).await;
        } else {
            let message = format!("no call with the id {target} is under way");
            self.refuse(Refusal::new(id, Code::UnknownTarget, message)).await;
        }
    }

    async fn begun(&mut self, id: Value, begun: Option<Begun>) {
        self.turning -= 1;
        match begun {
            Some(begun) => {
                self.send(json!({"id": id, "ok": {"turn": begun.turn}})).await;
                self.send(turn_line("turn", begun.turn, &begun.surface)).await;
            }
            None => {
                let message = "the run has ended";
                self.refuse(Refusal::new(id, Code::Internal, message)).await;
            }
        }
        self.release_held().await;
    }

    async fn release_held(&mut self) {
        if self.turning == 0 {
            for (id, tool, arguments) in std::mem::take(&mut self.held) {
                self.call(id, tool, arguments);
            }
        }
    }
}
