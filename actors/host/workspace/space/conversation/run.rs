//! One agent's engagement in a conversation. Supervised by its conversation.
//!
//! Lasts over turns, at most one of which is open. An idle run has no child: its
//! turn and its language session are actors only while they are used.

pub mod interpreter;
pub mod language_session;
pub mod turn;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, ActorStatus, RpcReplyPort, SupervisionEvent};
use serde_json::json;
use tokio::sync::watch;

use crate::host::HostMsg;
use crate::host::workspace::space::conversation::ConversationMsg;
use crate::host::workspace::space::conversation::debug_session::desk::Desk;
use crate::ids::CallId;
use crate::ports::{Ports, RunSpec, Surface, ToolResult};
use crate::profile::Profile;
use crate::status::{NodeKind, StatusEntry};
use crate::supervise::branch::end_one;
use interpreter::session::Session;
use interpreter::spec::Language;
use interpreter::{Interpreter, InterpreterArgs, InterpreterMsg};
use language_session::{LanguageSession, LanguageSessionMsg};
use turn::{Asked, Turn, TurnArgs, TurnMsg};

/// How long a turn has to end when its run ends: `spec/host.md`, 8 s a run.
const TURN_BOUND: Duration = Duration::from_secs(6);

/// How long an interpreter has to end then: `spec/host.md`, 5 s a resource.
const INTERPRETER_BOUND: Duration = Duration::from_secs(5);

/// What a run understands.
#[derive(Debug)]
pub enum RunMsg {
    /// Begins the next turn, once the open one has no call under way.
    BeginTurn(RpcReplyPort<Begun>),
    /// Ends the open turn, once it has no call under way.
    EndTurn(RpcReplyPort<()>),
    /// Tells what the run is doing.
    Look(RpcReplyPort<RunView>),
    /// Makes a call in the open turn.
    Call(Asked, RpcReplyPort<ToolResult>),
    /// Cancels a call. Answers whether there was one.
    Cancel(CallId, RpcReplyPort<bool>),
    /// Hands out the run's language session, which it starts on first use.
    LanguageSession(RpcReplyPort<ActorRef<LanguageSessionMsg>>),
    /// Hands out the hold on the interpreter of a language, which it starts on first use.
    Interpreter(Language, RpcReplyPort<Arc<Session>>),
    /// Passes on who wants the conversation's debug session.
    DebugSession(RpcReplyPort<Desk>),
    /// Takes note that the turn has ended, and goes on as was asked.
    TurnEnded(Next),
    /// Ends the run and all that it owns.
    End(RpcReplyPort<()>),
    /// Takes note that all that it owned is gone.
    Ended(RpcReplyPort<()>),
}

/// What follows a turn.
#[derive(Debug)]
pub enum Next {
    /// Another turn.
    Turn(RpcReplyPort<Begun>),
    /// Nothing.
    Rest(RpcReplyPort<()>),
}

/// A turn that has begun.
#[derive(Clone, Debug)]
pub struct Begun {
    /// Its number, from 1.
    pub turn: u64,
    /// What it may see.
    pub surface: Arc<Surface>,
}

/// What a run is doing.
#[derive(Clone, Debug)]
pub struct RunView {
    /// The open or last turn; 0 before the first.
    pub turn: u64,
    /// The mode that the next turn begins with.
    pub next_profile: Arc<Profile>,
    /// What the open turn may see.
    pub surface: Option<Arc<Surface>>,
    /// The open turn's actor, to ask for its calls.
    pub open: Option<ActorRef<TurnMsg>>,
}

/// One call under way.
#[derive(Clone, Debug)]
pub struct CallView {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub tool: String,
    /// `waiting`, `running` or `cancelling`.
    pub state: &'static str,
    /// How long it has been so.
    pub age: Duration,
}

/// What a run begins with.
#[derive(Debug)]
pub(super) struct RunArgs {
    pub(super) spec: Arc<RunSpec>,
    pub(super) host: ActorRef<HostMsg>,
    pub(super) conversation: ActorRef<ConversationMsg>,
    pub(super) profile: watch::Receiver<Arc<Profile>>,
    pub(super) ports: Ports,
    pub(super) status: StatusEntry,
}

/// What a run keeps.
#[derive(Debug)]
pub struct RunState {
    args: RunArgs,
    turns: u64,
    open: Option<(ActorRef<TurnMsg>, Arc<Surface>)>,
    language: Option<ActorRef<LanguageSessionMsg>>,
    interpreters: HashMap<Language, ActorRef<InterpreterMsg>>,
}

/// The run's actor.
#[derive(Debug)]
pub(super) struct Run;

impl Actor for Run {
    type Msg = RunMsg;
    type State = RunState;
    type Arguments = RunArgs;

    async fn pre_start(
        &self,
        _: ActorRef<RunMsg>,
        args: RunArgs,
    ) -> Result<RunState, ActorProcessingErr> {
        Ok(RunState { args, turns: 0, open: None, language: None, interpreters: HashMap::new() })
    }

    async fn handle(
        &self,
        myself: ActorRef<RunMsg>,
        message: RunMsg,
        state: &mut RunState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            RunMsg::BeginTurn(reply) => state.finish_turn(&myself, Next::Turn(reply)),
            RunMsg::EndTurn(reply) => state.finish_turn(&myself, Next::Rest(reply)),
            RunMsg::Look(reply) => drop(reply.send(state.view())),
            RunMsg::Call(asked, reply) => state.call(asked, reply),
            RunMsg::Cancel(call, reply) => match &state.open {
                Some((turn, _)) => drop(turn.cast(TurnMsg::Cancel(call, reply))),
                None => drop(reply.send(false)),
            },
            RunMsg::LanguageSession(reply) => {
                drop(reply.send(state.language_session(&myself).await?));
            }
            RunMsg::Interpreter(language, reply) => {
                let interpreter = state.interpreter(&myself, language).await?;
                let _ = interpreter.cast(InterpreterMsg::Session(reply));
            }
            RunMsg::DebugSession(reply) => {
                let _ = state.args.conversation.cast(ConversationMsg::DebugSession(reply));
            }
            RunMsg::TurnEnded(next) => state.go_on(&myself, next).await?,
            RunMsg::End(reply) => state.end(&myself, reply),
            RunMsg::Ended(reply) => {
                let _ = reply.send(());
                myself.stop(None);
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<RunMsg>,
        event: SupervisionEvent,
        state: &mut RunState,
    ) -> Result<(), ActorProcessingErr> {
        let (cell, failure) = match event {
            SupervisionEvent::ActorTerminated(cell, _, _) => (cell, None),
            SupervisionEvent::ActorFailed(cell, error) => (cell, Some(error.to_string())),
            _ => return Ok(()),
        };
        if let Some(failure) = &failure {
            tracing::error!(run = %state.args.spec.id, "a part of the run failed: {failure}");
        }
        if state.open.as_ref().is_some_and(|(turn, _)| turn.get_id() == cell.get_id()) {
            state.open = None;
            state.args.status.update(|row| {
                row.phase = if failure.is_some() { "turn failed" } else { "idle" };
                row.last_error = failure.map(Into::into);
            });
        } else if state.language.as_ref().is_some_and(|of| of.get_id() == cell.get_id()) {
            // Its leases went with it; the next use starts a fresh one.
            state.language = None;
        } else {
            // Its process went with it; the next use starts a fresh one.
            state.interpreters.retain(|_, of| of.get_id() != cell.get_id());
        }
        Ok(())
    }
}

impl RunState {
    /// Lets the open turn finish, in a task, and then goes on.
    fn finish_turn(&mut self, myself: &ActorRef<RunMsg>, next: Next) {
        let (run, open) = (myself.clone(), self.open.as_ref().map(|(turn, _)| turn.clone()));
        tokio::spawn(async move {
            if let Some(turn) = open {
                let (reply, done) = ractor::concurrency::oneshot();
                // Bounded by the bounds of the calls that are under way.
                if turn.cast(TurnMsg::Finish(reply.into())).is_ok() && done.await.is_ok() {
                    let _ = turn.wait(Some(Duration::from_secs(1))).await;
                }
            }
            let _ = run.cast(RunMsg::TurnEnded(next));
        });
    }

    async fn go_on(
        &mut self,
        myself: &ActorRef<RunMsg>,
        next: Next,
    ) -> Result<(), ActorProcessingErr> {
        if self.live().is_none() {
            // It is gone before the supervisor hears of it, so that whoever is
            // answered finds no turn open.
            self.open = None;
            self.args.status.update(|row| row.phase = "idle");
        }
        match next {
            Next::Turn(reply) => {
                // Another door of this run may have begun one meanwhile: it is shared.
                let begun = match self.live() {
                    Some((_, surface)) => Begun { turn: self.turns, surface: Arc::clone(surface) },
                    None => self.begin_turn(myself).await?,
                };
                let _ = reply.send(begun);
            }
            Next::Rest(reply) => drop(reply.send(())),
        }
        Ok(())
    }

    /// Returns the open turn, unless it is about to be gone.
    fn live(&self) -> Option<&(ActorRef<TurnMsg>, Arc<Surface>)> {
        self.open.as_ref().filter(|(turn, _)| turn.get_status() < ActorStatus::Stopping)
    }

    async fn begin_turn(&mut self, myself: &ActorRef<RunMsg>) -> Result<Begun, ActorProcessingErr> {
        self.turns += 1;
        let profile = Arc::clone(&self.args.profile.borrow_and_update());
        let surface = Arc::new(self.args.ports.tools.surface(&self.args.spec, &profile));
        let args = TurnArgs {
            number: self.turns,
            spec: Arc::clone(&self.args.spec),
            run: myself.clone(),
            row: self.args.status.anchor(),
            surface: Arc::clone(&surface),
            ports: self.args.ports.clone(),
            status: self.args.status.child(NodeKind::Turn, self.turns.to_string()),
        };
        let (turn, _) = Turn::spawn_linked(None, Turn, args, myself.get_cell()).await?;
        self.open = Some((turn, Arc::clone(&surface)));
        self.args.status.update(|row| row.phase = "in a turn");
        self.args.ports.transcripts.append(
            self.args.spec.id,
            json!({"turn": self.turns, "mode": profile.mode, "folder": self.args.spec.folder}),
        );
        Ok(Begun { turn: self.turns, surface })
    }

    fn call(&self, asked: Asked, reply: RpcReplyPort<ToolResult>) {
        match self.live() {
            Some((turn, _)) => drop(turn.cast(TurnMsg::Call(asked, reply))),
            None => {
                let text = format!("{}: no turn is open; begin one first", asked.tool);
                let _ = reply.send(ToolResult::error(text, json!({})));
            }
        }
    }

    fn view(&self) -> RunView {
        RunView {
            turn: self.turns,
            surface: self.open.as_ref().map(|(_, surface)| Arc::clone(surface)),
            next_profile: Arc::clone(&self.args.profile.borrow()),
            open: self.open.as_ref().map(|(turn, _)| turn.clone()),
        }
    }

    async fn language_session(
        &mut self,
        myself: &ActorRef<RunMsg>,
    ) -> Result<ActorRef<LanguageSessionMsg>, ActorProcessingErr> {
        if let Some(session) = &self.language {
            return Ok(session.clone());
        }
        let args = language_session::Args {
            run: self.args.spec.id,
            servers: Arc::new(self.args.host.clone()),
            status: self.args.status.child(NodeKind::LanguageSession, "language session"),
        };
        let (session, _) =
            LanguageSession::spawn_linked(None, LanguageSession, args, myself.get_cell()).await?;
        self.language = Some(session.clone());
        Ok(session)
    }

    async fn interpreter(
        &mut self,
        myself: &ActorRef<RunMsg>,
        language: Language,
    ) -> Result<ActorRef<InterpreterMsg>, ActorProcessingErr> {
        if let Some(interpreter) = self.interpreters.get(&language) {
            return Ok(interpreter.clone());
        }
        let args = InterpreterArgs {
            language,
            launch: Arc::clone(&self.args.ports.launch),
            status: self.args.status.child(NodeKind::Interpreter, language.to_string()),
        };
        let (interpreter, _) =
            Interpreter::spawn_linked(None, Interpreter, args, myself.get_cell()).await?;
        self.interpreters.insert(language, interpreter.clone());
        Ok(interpreter)
    }

    fn end(&mut self, myself: &ActorRef<RunMsg>, reply: RpcReplyPort<()>) {
        self.args.status.update(|row| row.phase = "ending");
        let run = myself.clone();
        let open = self.open.as_ref().map(|(turn, _)| turn.clone());
        let interpreters: Vec<_> = self.interpreters.values().cloned().collect();
        let (id, ports) = (self.args.spec.id, self.args.ports.clone());
        tokio::spawn(async move {
            if let Some(turn) = open {
                end_one(turn, TurnMsg::End, TURN_BOUND).await;
            }
            let ends = interpreters.into_iter().map(|interpreter| {
                tokio::spawn(end_one(interpreter, InterpreterMsg::End, INTERPRETER_BOUND))
            });
            for end in ends.collect::<Vec<_>>() {
                let _ = end.await;
            }
            ports.tools.run_ended(id).await;
            ports.transcripts.close(id);
            // The language session needs no goodbye: its leases are let go when
            // this actor's end takes it along.
            let _ = run.cast(RunMsg::Ended(reply));
        });
    }
}
