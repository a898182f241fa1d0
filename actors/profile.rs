//! What a mode guarantees, as one value.
//!
//! Every layer of enforcement (surface, guard, preamble, worktree posture) is a
//! pure function of a [`Profile`], so that the layers cannot disagree. The
//! values themselves are data in `config/profiles/`; this file only says what
//! one consists of. A turn takes a snapshot when it begins and keeps it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a call to a tool can do, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// No side effect.
    Read,
    /// Changes files.
    Write,
    /// Starts or drives a process.
    Exec,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Exec => "exec",
        })
    }
}

/// The mode of a space. Carries no policy: that is the [`Profile`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Full surface, writable worktree.
    Chat,
    /// Read-only, ends in a plan.
    Plan,
    /// Read-only, findings on a pull request.
    Review,
    /// Read-only, ends in a proposal for a team.
    Orchestrate,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chat => "chat",
            Self::Plan => "plan",
            Self::Review => "review",
            Self::Orchestrate => "orchestrate",
        })
    }
}

/// May processes of this mode write the worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorktreePosture {
    /// The worktree may be written.
    Writable,
    /// The worktree is read-only, by surface and by kernel.
    ReadOnly,
}

/// Everything that a mode guarantees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The mode that this profile belongs to.
    pub mode: Mode,
    /// The highest tier on the surface.
    pub max_tier: Tier,
    /// May the worktree be written.
    pub worktree: WorktreePosture,
    /// The hand-written part of the system prompt.
    pub guidance: String,
}
