//! One interpreter of a run: at most one per language, whose variables last over cells
//! and turns. Supervised by its run, which starts the actor on first use.
//!
//! The actor owns what must go when it goes: the process tree. Cells go past it, through
//! the [`session::Session`] that it made, so that a cell costs no message. It awaits
//! nothing outside; the goodbye is a task.
//!
//! The tricky thing: the process may outlive its main process, as a snapshot takes over
//! when that dies; and the tree is gone only when all of it is.

pub mod cell;
mod marks;
mod process;
pub mod protocol;
pub mod session;
pub mod spec;
mod stopping;
pub mod text;

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::ports::Launch;
use crate::status::StatusEntry;
use session::Session;
use spec::Language;

/// How long a killed tree may take to be empty: `spec/host.md`, 5 s a resource.
const EMPTY: Duration = Duration::from_secs(5);

/// What the actor understands.
#[derive(Debug)]
pub enum InterpreterMsg {
    /// Hands out the hold on it.
    Session(RpcReplyPort<Arc<Session>>),
    /// Ends it and all that it started.
    End(RpcReplyPort<()>),
    /// Takes note that nothing of it is left.
    Gone(RpcReplyPort<()>),
}

/// What the actor begins with.
pub struct InterpreterArgs {
    /// What its cells are written in.
    pub language: Language,
    /// Starts the process.
    pub launch: Arc<dyn Launch>,
    /// Its row.
    pub status: StatusEntry,
}

/// What the actor keeps.
#[derive(Debug)]
pub struct State {
    session: Owned,
    /// Stops the cell that runs, however the actor ends.
    _owner: DropGuard,
}

/// Kills the tree when the actor goes without a goodbye.
#[derive(Debug)]
struct Owned(Arc<Session>);

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(tree) = self.0.tree() {
            tree.kill();
        }
    }
}

/// The interpreter's actor.
#[derive(Debug)]
pub struct Interpreter;

impl Actor for Interpreter {
    type Msg = InterpreterMsg;
    type State = State;
    type Arguments = InterpreterArgs;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        args: InterpreterArgs,
    ) -> Result<State, ActorProcessingErr> {
        let InterpreterArgs { language, launch, status } = args;
        let owner = CancellationToken::new();
        let session = Session::new(language, launch, Arc::new(status), owner.clone());
        Ok(State { session: Owned(session), _owner: owner.drop_guard() })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            InterpreterMsg::Session(reply) => drop(reply.send(Arc::clone(&state.session.0))),
            InterpreterMsg::End(reply) => {
                let tree = state.session.0.close();
                tokio::spawn(async move {
                    if let Some(tree) = tree {
                        tree.kill();
                        let mut emptied = tree.emptied();
                        let empty = emptied.wait_for(|empty| *empty);
                        let _ = tokio::time::timeout(EMPTY, empty).await;
                    }
                    let _ = myself.cast(InterpreterMsg::Gone(reply));
                });
            }
            InterpreterMsg::Gone(reply) => {
                let _ = reply.send(());
                myself.stop(None);
            }
        }
        Ok(())
    }
}
