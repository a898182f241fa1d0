//! How a command ends: what the shell is told, and what the person is.

use std::error::Error;
use std::process::ExitCode;

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// The work failed.
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// No daemon, or not allowed.
    NoDaemon = 3,
    /// It took too long.
    TimedOut = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command was not done, in words for a person.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub(crate) struct Refusal {
    /// What the shell is told.
    pub(crate) exit: Exit,
    why: Box<dyn Error + Send + Sync>,
}

impl Refusal {
    /// Gives a reason, as a text or an error, and its code.
    pub(crate) fn new(exit: Exit, why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit, why: why.into() }
    }

    /// The work failed.
    pub(crate) fn failed(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::Failed, why)
    }

    /// Wrong usage or configuration.
    pub(crate) fn usage(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::Usage, why)
    }

    /// No daemon, or not allowed.
    pub(crate) fn no_daemon(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::NoDaemon, why)
    }

    /// It took too long.
    pub(crate) fn timed_out(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::TimedOut, why)
    }
}

/// What a command comes to.
pub(crate) type Done = Result<Exit, Refusal>;
