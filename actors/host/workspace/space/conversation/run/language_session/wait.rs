//! Verdicts that are waited for beyond the call that began the wait: what is known
//! from before it, and what came of it.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::ledger::{Change, Finding, Introduced};
use crate::ports::BoxFuture;

/// One file as one server sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The server's name.
    pub server: Arc<str>,
    /// The file.
    pub path: Arc<Path>,
}

/// What a file was like before a write.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// Which file, for which server.
    pub target: Target,
    /// What was found then; `None` where that could not be learnt.
    pub before: Option<Vec<Finding>>,
    /// The lines that the write changed, as they are numbered now.
    pub lines: Option<RangeInclusive<u32>>,
}

/// What came of the wait for one verdict.
#[derive(Clone, Debug)]
pub struct Settled {
    /// Which file, for which server.
    pub target: Target,
    /// What is found now, or why that is not known.
    pub after: Result<Vec<Finding>, String>,
    /// May somebody else have changed it meanwhile, or something that it depends on.
    pub theirs: bool,
}

/// A wait that outlasts the call that began it.
pub struct Wait {
    /// What it is about, for the model: `write a.py`.
    pub of: Arc<str>,
    /// What it was like before, for everything that is waited for.
    pub baselines: Vec<Baseline>,
    /// The wait. What it brings no verdict on is no longer waited for.
    pub verdicts: BoxFuture<'static, Vec<Settled>>,
    /// How long it may go on.
    pub within: Duration,
}

/// What came after the result in which it belonged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Late {
    /// What it is about.
    pub of: Arc<str>,
    /// What the write introduced.
    pub introduced: Vec<Introduced>,
    /// What is new, and may be somebody else's.
    pub doubtful: Vec<Finding>,
    /// The files whose verdict is known now.
    pub verified: Vec<Target>,
    /// The files that could not be verified, and why.
    pub unverified: Vec<(Target, String)>,
}

impl Baseline {
    /// Says whether the write changed a line.
    #[must_use]
    pub fn touches(&self, line: u32) -> bool {
        self.lines.as_ref().is_some_and(|lines| lines.contains(&line))
    }

    /// Returns the change that this baseline and what is found now make up.
    #[must_use]
    pub fn change(self, after: Vec<Finding>) -> Change {
        let Target { server, path } = self.target;
        Change { server, path, before: self.before, after, lines: self.lines }
    }
}
