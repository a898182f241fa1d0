//! `debug`: drives a debugger. One session per conversation, one operation per call.
//!
//! Says what it is called by and sends each operation to the file that serves it. What
//! is asked in one session keeps its order, over all runs of the conversation; what only
//! looks, and what ends it, overtakes, as it must also work while something hangs.

mod arguments;
mod beginning;
mod ending;
mod lines;
mod looking;
mod marking;
mod moving;
mod names;
mod stops;

use std::time::Duration;

use hostler_actors::host::workspace::space::conversation::debug_session::desk::Desk;
use hostler_actors::ports::BoxFuture;
use hostler_actors::profile::Tier;
use serde_json::Value;

use crate::folder::disk::cancelled;
use crate::seat::Seat;
use crate::tools::{
    Cancel, Effect, Failure, Outcome, Tool, Wired, arguments as read_arguments, schema_of,
    writes_nothing,
};
use arguments::{Args, Operation};

/// How long a step may be told to wait at most: a call that never returns is worth less
/// than one that says that the program still runs.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

pub(crate) const TOOL: Tool = Tool {
    name: "debug",
    tier: Tier::Exec,
    parallel_safe: false,
    overtakes: arguments::overtakes,
    mutates_worktree: true,
    wired: Wired::DebugSessions,
    effects: &[Effect::ProcessSpawn, Effect::WorktreeWrite],
    description: "Debugs a program: Python, Go, Rust, C, C++ or Dart, one session per \
        conversation, for 30 minutes at most. Set `breakpoints`, then `launch` (or `attach` to a \
        port); launch, continue and steps answer with where it stopped, the source around, the \
        locals and new output. `continue` on a program that runs waits for its next stop. Ids of frames and references are good until it moves on. \
        `adapters` says what can be used here.",
    schema: schema_of::<Args>,
    writes: writes_nothing,
    call,
};

fn call(seat: &Seat, given: Value, cancel: Cancel) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let args: Args = read_arguments(TOOL.name, given)?;
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled(
                TOOL.name,
                "the session is as it was left: `status` tells where it is",
            )),
            outcome = serve(seat, args) => outcome,
        }
    })
}

async fn serve(seat: &Seat, args: Args) -> Outcome {
    if args.operation == Operation::Adapters {
        return looking::adapters(seat).await;
    }
    let desk = (seat.adapters.desk)().await;
    let desk = desk.ok_or_else(|| Failure::new("debug: the conversation is over"))?;
    match args.operation {
        Operation::Adapters | Operation::Status => Ok(looking::status(seat, &desk)),
        Operation::Output => looking::output(&desk, &args),
        Operation::Launch => beginning::launch(seat, &desk, &args).await,
        Operation::Attach => beginning::attach(seat, &desk, &args).await,
        Operation::Terminate => ending::terminate(seat, &desk).await,
        Operation::Pause => moving::pause(seat, &desk, &args).await,
        _ => in_order(seat, &desk, &args).await,
    }
}

async fn in_order(seat: &Seat, desk: &Desk, args: &Args) -> Outcome {
    let _turn = desk.turn().await;
    let was_there = ending::session(seat, desk).is_ok();
    let outcome = one(seat, desk, args).await;
    // What was lost on the way has more to tell than the question that met its end.
    match ending::session(seat, desk) {
        Err(gone) if was_there && outcome.is_err() && args.operation.only_looks() => Err(gone),
        _ => outcome,
    }
}

async fn one(seat: &Seat, desk: &Desk, args: &Args) -> Outcome {
    match args.operation {
        Operation::Breakpoints => marking::breakpoints(seat, desk, args).await,
        Operation::Threads => looking::threads(seat, desk).await,
        Operation::Stack => looking::stack(seat, desk, args).await,
        Operation::Scopes => looking::scopes(seat, desk, args).await,
        Operation::Variables => looking::variables(seat, desk, args).await,
        Operation::Evaluate => looking::evaluate(seat, desk, args).await,
        _ => moving::step(seat, desk, args).await,
    }
}

/// How long a call waits for a stop.
fn wait(seat: &Seat, args: &Args) -> Result<Duration, Failure> {
    let Some(seconds) = args.wait_seconds else { return Ok(seat.languages.config.debug.wait) };
    let seconds = u64::try_from(seconds.0).unwrap_or(0);
    match Duration::from_secs(seconds) {
        wait if wait <= LONGEST_WAIT => Ok(wait),
        _ => Err(Failure::new(format!(
            "debug: `wait_seconds` is {seconds}, over the limit of {}: a stop that comes later is \
             told by the next call",
            LONGEST_WAIT.as_secs()
        ))),
    }
}
