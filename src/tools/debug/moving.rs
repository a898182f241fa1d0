//! `continue`, the steps and `pause`.

use hostler_actors::host::workspace::space::conversation::debug_session::desk::Desk;
use hostler_actors::host::workspace::space::conversation::debug_session::travel::Step;

use super::arguments::{Args, Operation};
use super::ending::session;
use super::{stops, wait};
use crate::seat::Seat;
use crate::tools::Outcome;

/// Goes on, and tells the next stop.
pub(super) async fn step(seat: &Seat, desk: &Desk, args: &Args) -> Outcome {
    let session = session(seat, desk)?;
    let step = match args.operation {
        Operation::StepIn => Step::In,
        Operation::StepOut => Step::Out,
        Operation::StepOver => Step::Over,
        _ => Step::Continue,
    };
    let thread = args.thread_id.map(|thread| thread.0);
    let came = session.resume(step, thread, wait(seat, args)?).await?;
    stops::told(seat, &session, came, &[])
}

/// Stops it where it is.
pub(super) async fn pause(seat: &Seat, desk: &Desk, args: &Args) -> Outcome {
    let session = session(seat, desk)?;
    let thread = args.thread_id.map(|thread| thread.0);
    let came = session.pause(thread, wait(seat, args)?).await?;
    stops::told(seat, &session, came, &[])
}
