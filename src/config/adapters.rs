//! What the configuration says of one debug adapter.
//!
//! Data, like the definitions of servers beside it, and never read from a worktree. The
//! arguments of `launch` and `attach` are templates: `adapters::template` fills them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::config::definitions::{InstallRecipe, Probe, Quirk};
use crate::config::span;

/// How an adapter is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReachedBy {
    /// On its pipes.
    Stdio,
    /// It connects to a port of ours, which its arguments name as `{address}`.
    DialsUs,
}

/// What listens on the port of an `attach`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AttachBy {
    /// An adapter, beside the program: it is spoken to directly.
    Listener,
    /// Something else, to which an adapter of ours connects.
    Process,
}

/// A debug adapter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdapterDefinition {
    /// What it is for, in a word or two.
    pub(crate) about: String,
    /// Patterns of the names of programs that it takes.
    #[serde(default)]
    pub(crate) programs: Vec<String>,
    /// A word in the first line of scripts that it takes, whatever their name.
    pub(crate) interpreter: Option<String>,
    /// A pattern of files that make a folder a program.
    pub(crate) packages: Option<String>,
    /// Does it take compiled programs, and names of what a build makes.
    #[serde(default)]
    pub(crate) executables: bool,
    /// Names of which one must be in a folder for it to be a root.
    pub(crate) root_markers: Vec<String>,
    /// Names of its program, best first. `*` stands for a number, the highest first.
    pub(crate) binaries: Vec<String>,
    /// Further folders to look in, where `*` stands for a number too.
    #[serde(default)]
    pub(crate) folders: Vec<String>,
    /// Programs that it needs beside itself.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    /// The program's arguments.
    #[serde(default)]
    pub(crate) args: Vec<String>,
    /// Variables that it gets beside the session's.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Folders of a project in which its program may be, relative to the root.
    #[serde(default)]
    pub(crate) project_folders: Vec<PathBuf>,
    /// How to see whether a program that was found works.
    pub(crate) probe: Option<Probe>,
    /// How it is spoken to.
    pub(crate) reach: ReachedBy,
    /// What it calls itself in the handshake; its name if left out.
    pub(crate) adapter_id: Option<String>,
    /// What listens on the port of an `attach`.
    pub(crate) attach_by: AttachBy,
    /// The arguments of `launch`.
    pub(crate) launch: Value,
    /// The arguments of `attach`; null for one that cannot.
    #[serde(default)]
    pub(crate) attach: Value,
    /// Capabilities that it claims and that are not believed.
    #[serde(default)]
    pub(crate) distrust: Vec<String>,
    /// Names that it lists among variables and that are none.
    #[serde(default)]
    pub(crate) not_variables: Vec<String>,
    /// What stands before the exit code in its output, where no event tells it.
    pub(crate) exit_line: Option<String>,
    /// The function that holds a program's first line, where the adapter's own way to stop
    /// on entry is of no use.
    pub(crate) entry_function: Option<String>,
    /// Does a program that is left stopped stay so.
    #[serde(default)]
    pub(crate) resume_on_detach: bool,
    /// Does it build the program.
    #[serde(default)]
    pub(crate) builds: bool,
    /// How long it may take to start a program, where that differs from the general bound.
    #[serde(default, deserialize_with = "span::optional")]
    pub(crate) start_deadline: Option<Duration>,
    /// How to get it.
    pub(crate) install: Option<InstallRecipe>,
    /// What it does that surprises.
    #[serde(default)]
    pub(crate) quirks: Vec<Quirk>,
}
