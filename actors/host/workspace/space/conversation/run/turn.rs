//! One turn of a run: from its prompt to its end. Supervised by its run.
//!
//! Holds the surface that was materialised when it began, and the calls that are
//! under way. Knows nothing of what a tool does: it decides who may go on
//! (`lanes`), hands a call through the port, and sees that it ends.
//!
//! The tricky thing: a call is answered exactly once, by its result, by its
//! cancellation's bound, or by the end of this actor (the caller's port closes).

mod lanes;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{CallView, RunMsg};
use crate::ids::CallId;
use crate::ports::{Caller, Ports, RunSpec, Surface, ToolCall, ToolResult};
use crate::status::{Anchor, StatusEntry};
use lanes::Lanes;

/// How long a cancelled call may take to tidy up before it is let go: a process
/// gets 2 s after SIGTERM and is then killed and waited for.
const CANCEL_BOUND: Duration = Duration::from_secs(8);

/// What a turn understands.
#[derive(Debug)]
pub enum TurnMsg {
    /// Makes a call and answers with its result.
    Call(Asked, RpcReplyPort<ToolResult>),
    /// Takes a call's result from its task.
    Finished(CallId, ToolResult),
    /// Cancels a call. Answers whether there was one.
    Cancel(CallId, RpcReplyPort<bool>),
    /// Gives up a cancelled call that did not end within its bound.
    GiveUp(CallId),
    /// Lists the calls that are under way.
    Calls(RpcReplyPort<Vec<CallView>>),
    /// Ends the turn when no call is under way any more.
    Finish(RpcReplyPort<()>),
    /// Cancels every call and ends the turn.
    End(RpcReplyPort<()>),
}

/// A call as its caller states it.
#[derive(Debug)]
pub struct Asked {
    /// Its id.
    pub call: CallId,
    /// Who calls.
    pub caller: Caller,
    /// The tool's name.
    pub tool: String,
    /// The arguments.
    pub arguments: serde_json::Value,
}

/// What a turn begins with.
#[derive(Debug)]
pub(super) struct TurnArgs {
    pub(super) number: u64,
    pub(super) spec: Arc<RunSpec>,
    pub(super) run: ActorRef<RunMsg>,
    pub(super) row: Anchor,
    pub(super) surface: Arc<Surface>,
    pub(super) ports: Ports,
    pub(super) status: StatusEntry,
}

struct Call {
    asked: Asked,
    since: Instant,
    cancel: CancellationToken,
    begun: bool,
    reply: RpcReplyPort<ToolResult>,
}

/// What a turn keeps.
pub struct TurnState {
    args: TurnArgs,
    lanes: Lanes,
    calls: HashMap<CallId, Call>,
    finish: Vec<RpcReplyPort<()>>,
}

impl std::fmt::Debug for TurnState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TurnState({})", self.args.number)
    }
}

/// The turn's actor.
#[derive(Debug)]
pub(super) struct Turn;

impl Actor for Turn {
    type Msg = TurnMsg;
    type State = TurnState;
    type Arguments = TurnArgs;

    async fn pre_start(
        &self,
        _: ActorRef<TurnMsg>,
        args: TurnArgs,
    ) -> Result<TurnState, ActorProcessingErr> {
        args.status.update(|row| row.phase = "open");
        Ok(TurnState { args, lanes: Lanes::default(), calls: HashMap::new(), finish: Vec::new() })
    }

    async fn handle(
        &self,
        myself: ActorRef<TurnMsg>,
        message: TurnMsg,
        state: &mut TurnState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            TurnMsg::Call(asked, reply) => state.enter(&myself, asked, reply),
            TurnMsg::Finished(call, result) => state.finished(&myself, call, result),
            TurnMsg::Cancel(call, reply) => {
                let _ = reply.send(state.cancel(&myself, call));
            }
            TurnMsg::GiveUp(call) => {
                let text = format!(
                    "cancelled, and not yet ended after {CANCEL_BOUND:?}; what it started may still be ending"
                );
                let details = json!({"cancelled": true, "ended": false});
                state.finished(&myself, call, ToolResult::error(text, details));
            }
            TurnMsg::Calls(reply) => {
                let _ = reply.send(state.views());
            }
            TurnMsg::Finish(reply) => state.finish.push(reply),
            TurnMsg::End(reply) => {
                state.finish.push(reply);
                let all: Vec<_> = state.calls.keys().copied().collect();
                for call in all {
                    state.cancel(&myself, call);
                }
            }
        }
        state.show();
        state.end_if_finished(&myself);
        Ok(())
    }
}

impl TurnState {
    fn enter(&mut self, myself: &ActorRef<TurnMsg>, asked: Asked, reply: RpcReplyPort<ToolResult>) {
        let call = asked.call;
        let lanes = self.args.ports.tools.lanes(&asked.tool, &asked.arguments);
        let entry = Call {
            asked,
            since: Instant::now(),
            cancel: CancellationToken::new(),
            begun: false,
            reply,
        };
        self.calls.insert(call, entry);
        self.lanes.enter(call, lanes);
        self.begin_ready(myself);
    }

    fn begin_ready(&mut self, myself: &ActorRef<TurnMsg>) {
        for id in self.lanes.ready() {
            let Some(call) = self.calls.get_mut(&id) else { continue };
            call.begun = true;
            call.since = Instant::now();
            self.args.ports.transcripts.append(
                self.args.spec.id,
                json!({
                    "turn": self.args.number,
                    "call": id,
                    "caller": call.asked.caller,
                    "tool": call.asked.tool,
                    "arguments": call.asked.arguments,
                }),
            );
            let task = self.args.ports.tools.call(ToolCall {
                spec: Arc::clone(&self.args.spec),
                run: self.args.run.clone(),
                row: self.args.row.clone(),
                turn: self.args.number,
                call: id,
                caller: call.asked.caller,
                tool: call.asked.tool.clone(),
                arguments: std::mem::take(&mut call.asked.arguments),
                surface: Arc::clone(&self.args.surface),
                cancel: call.cancel.clone(),
            });
            let turn = myself.clone();
            tokio::spawn(async move {
                // A panic of a tool is a bug of ours, and stays this call's.
                let result = tokio::spawn(task).await.unwrap_or_else(|error| {
                    tracing::error!(call = %id, "a tool panicked: {error}");
                    ToolResult::error(
                        "internal error: the tool failed in a way that it must not; its effects are unknown",
                        json!({"internal": true}),
                    )
                });
                let _ = turn.cast(TurnMsg::Finished(id, result));
            });
        }
    }

    fn finished(&mut self, myself: &ActorRef<TurnMsg>, id: CallId, result: ToolResult) {
        let Some(call) = self.calls.remove(&id) else { return };
        self.args.ports.transcripts.append(
            self.args.spec.id,
            json!({"turn": self.args.number, "call": id, "result": result}),
        );
        let _ = call.reply.send(result);
        self.lanes.leave(id);
        self.begin_ready(myself);
    }

    fn cancel(&mut self, myself: &ActorRef<TurnMsg>, id: CallId) -> bool {
        let Some(call) = self.calls.get(&id) else { return false };
        call.cancel.cancel();
        if call.begun {
            let turn = myself.clone();
            tokio::spawn(async move {
                tokio::time::sleep(CANCEL_BOUND).await;
                let _ = turn.cast(TurnMsg::GiveUp(id));
            });
        } else {
            let result = ToolResult::error(
                "cancelled before it began; nothing was done",
                json!({"cancelled": true, "ended": true}),
            );
            self.finished(myself, id, result);
        }
        true
    }

    fn views(&self) -> Vec<CallView> {
        let mut views: Vec<_> = self
            .calls
            .values()
            .map(|call| CallView {
                id: call.asked.call,
                tool: call.asked.tool.clone(),
                state: match (call.cancel.is_cancelled(), call.begun) {
                    (true, _) => "cancelling",
                    (false, true) => "running",
                    (false, false) => "waiting",
                },
                age: call.since.elapsed(),
            })
            .collect();
        views.sort_by_key(|view| view.id);
        views
    }

    fn show(&self) {
        let waits = !self.finish.is_empty();
        let oldest = self.calls.values().min_by_key(|call| call.since);
        self.args.status.update(|row| {
            row.phase = if waits { "ending" } else { "open" };
            row.doing = oldest.map(|call| {
                let more = self.calls.len() - 1;
                let others = if more > 0 { format!(" and {more} more") } else { String::new() };
                (format!("{}{others}", call.asked.tool).into(), call.since)
            });
        });
    }

    fn end_if_finished(&mut self, myself: &ActorRef<TurnMsg>) {
        if self.calls.is_empty() && !self.finish.is_empty() {
            for reply in self.finish.drain(..) {
                let _ = reply.send(());
            }
            myself.stop(None);
        }
    }
}
