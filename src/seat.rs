//! What one run sits on in the edge: everything that its tools may reach.
//!
//! Made when a run begins, gone when it ends. The resources with a life of their
//! own (language servers, processes) are the tree's; a seat only holds the means
//! to ask for them.

use std::ffi::OsString;
use std::sync::Arc;

use hostler_actors::ids::RunId;
use hostler_actors::ports::Launch;

use crate::adapters::Adapters;
use crate::background::Background;
use crate::checkers::wanted::WantedChecks;
use crate::folder::Folder;
use crate::folder::journal::Journals;
use crate::handles::OutputHandles;
use crate::interpreters::Interpreters;
use crate::locks::PathLocks;
use crate::seen::Seen;
use crate::servers::Languages;
use crate::staged::Staged;
use crate::trees::Trees;

/// What one run's tools may reach.
pub(crate) struct Seat {
    /// The run.
    pub(crate) run: RunId,
    /// Its work folder, with the confinement of every path in it.
    pub(crate) folder: Folder,
    /// The contents that it has seen, for `write` over existing files.
    pub(crate) seen: Seen,
    /// Where results go that are too long to show.
    pub(crate) handles: OutputHandles,
    /// What `bash` left running.
    pub(crate) background: Background,
    /// The environment that its processes get.
    pub(crate) env: Arc<[(OsString, OsString)]>,
    /// One writer per path, over all runs.
    pub(crate) locks: PathLocks,
    /// Texts and their trees, of all runs.
    pub(crate) trees: Trees,
    /// Changes that wait to be accepted.
    pub(crate) staged: Staged,
    /// What was begun on several files.
    pub(crate) journals: Journals,
    /// Starts processes.
    pub(crate) launch: Arc<dyn Launch>,
    /// The checks of its project that it waits for.
    pub(crate) checks: WantedChecks,
    /// What it needs to reach language servers and checkers.
    pub(crate) languages: Languages,
    /// What it needs to reach the conversation's debug session.
    pub(crate) adapters: Adapters,
    /// What it needs to reach its interpreters.
    pub(crate) interpreters: Interpreters,
}

#[cfg(test)]
pub(crate) mod testing;
