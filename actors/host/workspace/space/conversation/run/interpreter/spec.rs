//! What an interpreter is made from, and what bounds it.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ports::{LaunchOrder, Leftovers, Owner, Posture, Wire};

/// The descriptor on which a runner takes requests.
pub const REQUESTS: i32 = 3;
/// The descriptor on which a runner answers.
pub const FRAMES: i32 = 4;
/// The pipe of all text: of stdout, of stderr, and of what the interpreter starts.
pub const TEXT: i32 = 1;

/// What cells are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Python, 3.9 and up.
    Python,
    /// JavaScript and TypeScript, on Node 20.12 and up, or Bun.
    JavaScript,
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
        })
    }
}

/// What an interpreter is made from. Another one makes another interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterpreterSpec {
    /// What its cells are written in.
    pub language: Language,
    /// The interpreter's program, resolved.
    pub program: PathBuf,
    /// The arguments that make it read its runner from descriptor 3.
    pub args: Vec<OsString>,
    /// The runner, as one line of JSON that is the first on descriptor 3.
    pub runner: Arc<str>,
    /// The work folder.
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: Arc<[(OsString, OsString)]>,
    /// Who is charged for it.
    pub owner: Owner,
    /// What it may write.
    pub posture: Posture,
    /// How much data it may hold, in bytes, before an allocation fails in a way that a
    /// cell can catch.
    pub memory: u64,
}

impl InterpreterSpec {
    /// Orders its process. The nonce marks what the runner itself writes into the text.
    pub(super) fn order(&self, nonce: &str) -> LaunchOrder {
        let own = [OsString::from(nonce), self.memory.to_string().into()];
        LaunchOrder {
            label: self.language.to_string(),
            program: self.program.clone(),
            args: self.args.iter().cloned().chain(own).collect(),
            cwd: self.cwd.clone(),
            env: self.env.to_vec(),
            wires: [
                (0, Wire::Null),
                (TEXT, Wire::FromProcess),
                (2, Wire::SameAs(TEXT)),
                (REQUESTS, Wire::ToProcess),
                (FRAMES, Wire::FromProcess),
            ]
            .into(),
            owner: self.owner,
            posture: self.posture.clone(),
            // A snapshot takes over when the main process dies.
            leftovers: Leftovers::Keep,
        }
    }
}

/// What bounds an interpreter and its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a start may take until the runner answers.
    pub start: Duration,
    /// How long a cell may show no sign of activity.
    pub quiet: Duration,
    /// How long a cell may take at most, bridged calls not counted.
    pub longest: Duration,
    /// How many bytes of text a cell may write.
    pub output: u64,
}
