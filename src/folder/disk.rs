//! Work on the disk, away from the threads that serve everybody else.
//!
//! A disk can hang (a dead network mount) and a search can be long, so work is
//! bounded from both sides: it looks at its [`Leash`] between steps, and the caller
//! stops waiting when the leash ends, whatever the thread does.

use std::time::{Duration, Instant};

use crate::tools::{Cancel, Failure};

/// What ends a piece of work early.
#[derive(Clone, Debug)]
pub(crate) struct Leash {
    cancel: Cancel,
    until: Instant,
}

/// Why a piece of work ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The call was cancelled.
    Cancelled,
    /// Its time was up.
    TimedOut,
}

impl Leash {
    /// Says whether to stop.
    pub(crate) fn cut(&self) -> Option<Cut> {
        if self.cancel.is_cancelled() {
            Some(Cut::Cancelled)
        } else if Instant::now() >= self.until {
            Some(Cut::TimedOut)
        } else {
            None
        }
    }
}

/// Makes the failure of a call that was cancelled, with what became of its effects.
pub(crate) fn cancelled(tool: &str, state: &str) -> Failure {
    Failure {
        message: format!("{tool}: cancelled; {state}"),
        details: serde_json::json!({ "cancelled": true }),
    }
}

/// Does something that only looks: given up as soon as the call is cancelled.
pub(crate) async fn look<T: Send + 'static>(
    tool: &'static str,
    cancel: &Cancel,
    bound: Duration,
    work: impl FnOnce(&Leash) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let leash = Leash { cancel: cancel.clone(), until: Instant::now() + bound };
    // Work that minds its leash answers by itself, with what it has.
    let grace = Duration::from_secs(2);
    let work = tokio::task::spawn_blocking(move || work(&leash));
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(cancelled(tool, "nothing was changed")),
        done = work => finished(tool, done),
        () = tokio::time::sleep(bound + grace) => Err(Failure::new(format!(
            "{tool}: the disk did not answer within {} s: see whether a mount hangs",
            bound.as_secs()
        ))),
    }
}

/// Does something that writes: once begun it is carried through, so that what is told
/// of it is true.
pub(crate) async fn change<T: Send + 'static>(
    tool: &'static str,
    cancel: &Cancel,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    const BOUND: Duration = Duration::from_secs(60);
    if cancel.is_cancelled() {
        return Err(cancelled(tool, "nothing was written"));
    }
    match tokio::time::timeout(BOUND, tokio::task::spawn_blocking(work)).await {
        Ok(done) => finished(tool, done),
        Err(_) => Err(Failure::new(format!(
            "{tool}: the disk did not answer within {} s: the file has its old content or the \
             new one, so read it before going on",
            BOUND.as_secs()
        ))),
    }
}

fn finished<T>(
    tool: &str,
    done: Result<Result<T, Failure>, tokio::task::JoinError>,
) -> Result<T, Failure> {
    match done {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Failure::new(format!("{tool}: not done: the host is shutting down"))),
    }
}
