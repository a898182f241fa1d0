//! What the configuration says of one language server, one checker, one tool.
//!
//! Definitions are data: the shipped ones are in `config/`, a file of the same name
//! in the user's folder changes single keys of them or adds a new one. They are
//! never read from a worktree, as a definition is a command to be run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hostler_actors::host::language_server::spec::{AfterChange, Recipe};
use serde::Deserialize;
use serde_json::Value;

use crate::config::span;

/// Who uses one process of a language server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Share {
    /// Every run on the same root.
    Host,
    /// One run.
    Run,
}

/// A language server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerDefinition {
    /// What it is for, in a word or two.
    pub(crate) about: String,
    /// Which files it takes.
    pub(crate) files: Vec<FileKind>,
    /// Names of which one must be in a folder for it to be a root.
    pub(crate) root_markers: Vec<String>,
    /// Names of its program, best first.
    pub(crate) binaries: Vec<String>,
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
    /// When a verdict is final.
    pub(crate) recipe: Recipe,
    /// What a document needs once another file has changed.
    #[serde(default)]
    pub(crate) after_change: AfterChange,
    /// A part of the command line of the inner process that it is nothing without.
    pub(crate) inner_process: Option<String>,
    /// `initializationOptions` of the handshake.
    #[serde(default)]
    pub(crate) initialization_options: Value,
    /// Answers to `workspace/configuration`.
    #[serde(default)]
    pub(crate) settings: Value,
    /// How long it may take to start, where that differs from the general bound.
    #[serde(default, deserialize_with = "span::optional")]
    pub(crate) start_deadline: Option<Duration>,
    /// How long it stays unused, where that differs from the general span.
    #[serde(default, deserialize_with = "span::optional")]
    pub(crate) linger: Option<Duration>,
    /// Who shares it, where that differs from the general rule.
    pub(crate) share: Option<Share>,
    /// How to get it.
    pub(crate) install: Option<InstallRecipe>,
    /// What it does that surprises.
    #[serde(default)]
    pub(crate) quirks: Vec<Quirk>,
}

/// A kind of files and what the protocol calls it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileKind {
    /// Patterns of file names.
    pub(crate) patterns: Vec<String>,
    /// The protocol's language identifier.
    pub(crate) language_id: String,
}

/// A bounded run of a program that shows whether it works.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Probe {
    /// A program in the same folder to run instead, where it is there.
    pub(crate) companion: Option<String>,
    /// The arguments.
    pub(crate) args: Vec<String>,
}

/// A fact about a server that code or a person must know.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Quirk {
    /// The version in which it was seen.
    pub(crate) seen: String,
    /// What it is.
    pub(crate) what: String,
}

/// A project's checker, which stands behind diagnostics of `"*"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckerDefinition {
    /// Names of which one must be in a folder for it to be a root.
    pub(crate) root_markers: Vec<String>,
    /// Names of its program, best first.
    pub(crate) binaries: Vec<String>,
    /// The program's arguments.
    #[serde(default)]
    pub(crate) args: Vec<String>,
    /// Folders of a project in which its program may be, relative to the root.
    #[serde(default)]
    pub(crate) project_folders: Vec<PathBuf>,
    /// How long it may take.
    #[serde(deserialize_with = "span::required")]
    pub(crate) deadline: Duration,
    /// What its exit codes mean.
    pub(crate) exit_codes: ExitCodes,
    /// How to see whether a program that was found works.
    pub(crate) probe: Option<Probe>,
}

/// What a checker's exit codes mean. Any other code is no verdict.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExitCodes {
    /// Nothing was found.
    pub(crate) clean: Vec<i32>,
    /// Something was found.
    pub(crate) findings: Vec<i32>,
}

/// A tool in one pinned version.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InstallRecipe {
    /// Who installs it.
    pub(crate) manager: PackageManager,
    /// The package's name there.
    pub(crate) package: String,
    /// The version.
    pub(crate) version: String,
    /// Further packages of the system's manager that it is of no use without.
    #[serde(default)]
    pub(crate) with: Vec<String>,
    /// The programs that it brings.
    pub(crate) binaries: Vec<String>,
}

/// A way to get a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PackageManager {
    /// Node's.
    Npm,
    /// Python's, into an environment of its own.
    Pypi,
    /// Rust's, built from source.
    Crates,
    /// The system's, which needs root.
    Apt,
}
