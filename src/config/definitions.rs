//! What the configuration says of one language server, one checker, one tool.
//!
//! Definitions are data: the shipped ones are in `config/`, a file of the same name
//! in the user's folder changes single keys of them or adds a new one. They are
//! never read from a worktree, as a definition is a command to be run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use globset::Glob;
use hostler_actors::host::language_server::spec::{AfterChange, Recipe, Reread};
use serde::{Deserialize, Deserializer};
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
    /// Set to false by a user who does not want it.
    #[serde(default = "yes")]
    pub(crate) enabled: bool,
    /// Names the work of which one server is enough: of all in a group that could
    /// serve a file, only one does.
    pub(crate) group: Option<String>,
    /// Its place in its group: the lowest that can be used serves.
    #[serde(default = "last")]
    pub(crate) rank: u8,
    /// Which files it takes.
    pub(crate) files: Vec<FileKind>,
    /// Names, or patterns of them, of which one must be in a folder for it to be a
    /// root. None: the run's own folder is one.
    #[serde(deserialize_with = "globs")]
    pub(crate) root_markers: Vec<String>,
    /// What makes a folder the root of everything below it.
    #[serde(default)]
    pub(crate) workspace_markers: Vec<WorkspaceMarker>,
    /// Paths below the root, or below a folder above it, of which one must be there:
    /// without it the server starts and finds nothing.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    /// Which of several roots, one inside the other, it is for.
    #[serde(default)]
    pub(crate) nested: Nested,
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
    /// How to make it read its projects afresh.
    pub(crate) reread: Option<Reread>,
    /// `initializationOptions` of the handshake. In texts `${root}` is the root and
    /// `${root_uri}` its address.
    #[serde(default)]
    pub(crate) initialization_options: Value,
    /// Answers to `workspace/configuration`; the same holds for its texts.
    #[serde(default)]
    pub(crate) settings: Value,
    /// How long it may take to start, where that differs from the general bound.
    #[serde(default, deserialize_with = "span::optional")]
    pub(crate) start_deadline: Option<Duration>,
    /// How long a write waits for its verdict, where that differs from the general bound.
    #[serde(default, deserialize_with = "span::optional")]
    pub(crate) inline: Option<Duration>,
    /// How long it stays unused, where that differs from the general span.
    #[serde(default, deserialize_with = "span::optional")]
    pub(crate) linger: Option<Duration>,
    /// Who shares it, where that differs from the general rule.
    pub(crate) share: Option<Share>,
    /// How to get it.
    pub(crate) install: Option<InstallRecipe>,
    /// How a person gets it, where no package manager that we know has it.
    pub(crate) install_hint: Option<String>,
    /// What it does that surprises.
    #[serde(default)]
    pub(crate) quirks: Vec<Quirk>,
}

/// Serde's defaults of [`ServerDefinition`].
fn yes() -> bool {
    true
}
fn last() -> u8 {
    100
}

/// Reads patterns, and refuses one that is none.
fn globs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let patterns = Vec::<String>::deserialize(from)?;
    for pattern in &patterns {
        Glob::new(pattern).map_err(serde::de::Error::custom)?;
    }
    Ok(patterns)
}

/// What makes a folder the root of everything below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkspaceMarker {
    /// The file's name.
    pub(crate) file: String,
    /// What must stand in it, where its presence alone says nothing.
    pub(crate) contains: Option<String>,
}

/// Which of several roots, one inside the other, is a file's, where no workspace
/// marker says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Nested {
    /// The innermost.
    #[default]
    Nearest,
    /// The outermost.
    Outermost,
}

/// A kind of files and what the protocol calls it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileKind {
    /// Patterns of file names.
    #[serde(deserialize_with = "globs")]
    pub(crate) patterns: Vec<String>,
    /// The protocol's language identifier.
    pub(crate) language_id: String,
}

/// A bounded run of a program that shows whether it works.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Probe {
    /// A program in the same folder to run instead, where it is there.
    pub(crate) companion: Option<String>,
    /// The arguments.
    pub(crate) args: Vec<String>,
    /// How what it prints begins, where another program of that name is about.
    pub(crate) prints: Option<String>,
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
    /// Patterns of the names of the files that it judges.
    pub(crate) files: Vec<String>,
    /// Names of which one must be in a folder for it to be a root.
    pub(crate) root_markers: Vec<String>,
    /// Names of files that mark a root as well where they hold this text.
    #[serde(default)]
    pub(crate) root_texts: BTreeMap<String, String>,
    /// What a root inside another root is.
    #[serde(default)]
    pub(crate) nested: InnerRoot,
    /// Arguments with which the program prints a file that stands in the true root,
    /// where markers alone do not tell.
    #[serde(default)]
    pub(crate) locate: Vec<String>,
    /// Names of its program, best first.
    pub(crate) binaries: Vec<String>,
    /// The program's arguments.
    #[serde(default)]
    pub(crate) args: Vec<String>,
    /// Variables that it gets beside the session's; `{cache}` stands for a folder of
    /// the checker and the root.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Folders of a project in which its program may be, relative to the root or to a
    /// folder above it.
    #[serde(default)]
    pub(crate) project_folders: Vec<PathBuf>,
    /// Names of files below a root that it may write itself.
    #[serde(default)]
    pub(crate) writes: Vec<String>,
    /// How often it is run for one root.
    #[serde(default)]
    pub(crate) runs: Runs,
    /// In what form it prints what it found.
    pub(crate) format: Format,
    /// How long it may take for one root.
    #[serde(deserialize_with = "span::required")]
    pub(crate) deadline: Duration,
    /// What its exit codes mean.
    pub(crate) exit_codes: ExitCodes,
    /// How to see whether a program that was found works.
    pub(crate) probe: Option<Probe>,
}

/// What a root inside another root is to a checker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InnerRoot {
    /// A part of what is checked with the outer one.
    #[default]
    Covered,
    /// A root of its own.
    Apart,
}

/// How often a checker is run for one root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Runs {
    /// Once, for all of it.
    #[default]
    Once,
    /// Once for each project that the root's `tsconfig.json` leads to.
    TsProjects,
    /// Once for each command of its `compile_commands.json`.
    CompileCommands,
}

/// In what form a checker prints what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// Messages of cargo, one JSON object a line.
    CargoJson,
    /// `file(line,column): error TS1: text`.
    Tsc,
    /// `--outputjson` of pyright and its kin.
    PyrightJson,
    /// `--output-format json` of ruff.
    RuffJson,
    /// `file:line:column: error: text`, as compilers print it.
    Gnu,
    /// `file:line:column: text`, as `go vet` and `go build` print it.
    Go,
    /// `--format=machine` of dart.
    DartMachine,
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
    /// The programs that it brings.
    pub(crate) binaries: Vec<String>,
    /// Further packages that it is nothing without, of the same manager, as
    /// `name@version`.
    #[serde(default)]
    pub(crate) with: Vec<String>,
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
