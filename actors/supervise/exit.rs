//! Why an incarnation ended, as a value that nobody has to parse.

use std::sync::Arc;

use crate::ports::{Ended, LaunchError};

/// Why one incarnation of a resource ended.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Exit {
    /// It was asked to.
    #[error("stopped on request")]
    Requested,
    /// Its process ended by itself. `tail` is the end of its stderr.
    #[error("the process {ended}{}", Tail(tail))]
    ProcessDied {
        /// How.
        ended: Ended,
        /// The end of its stderr.
        tail: Arc<str>,
    },
    /// Its process could not be started.
    #[error("{0}")]
    LaunchFailed(LaunchError),
    /// It started and did not come up.
    #[error("did not come up: {reason}{}", Tail(tail))]
    HandshakeFailed {
        /// What went wrong.
        reason: Arc<str>,
        /// The end of its stderr.
        tail: Arc<str>,
    },
    /// It was up, broke its protocol or hung, and was killed for it.
    #[error("was replaced: {reason}{}", Tail(tail))]
    Misbehaved {
        /// What it did.
        reason: Arc<str>,
        /// The end of its stderr.
        tail: Arc<str>,
    },
    /// An invariant of ours is broken.
    #[error("internal error: {0}")]
    Bug(Arc<str>),
}

struct Tail<'a>(&'a str);

impl std::fmt::Display for Tail<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.trim() {
            "" => Ok(()),
            tail => write!(f, "; it last wrote: {tail}"),
        }
    }
}

/// Who is to blame for an exit, which decides the budget that it counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Nobody: it was wanted.
    Nobody,
    /// The world outside. Counted per resource, never escalates.
    Weather,
    /// We. Counted per supervisor, escalates.
    Us,
}

impl Exit {
    /// Says who is to blame.
    #[must_use]
    pub fn blame(&self) -> Blame {
        match self {
            Self::Requested => Blame::Nobody,
            Self::Bug(_) => Blame::Us,
            Self::ProcessDied { .. }
            | Self::LaunchFailed(_)
            | Self::HandshakeFailed { .. }
            | Self::Misbehaved { .. } => Blame::Weather,
        }
    }
}
