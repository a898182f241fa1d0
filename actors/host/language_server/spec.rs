//! Everything that shapes one language-server process.
//!
//! What may be shared is decided by equality of [`ServerSpec`]: two runs whose
//! specs differ in a command, a setting, an environment or a posture get two
//! processes.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ports::{FileChange, FileChangeKind, Posture};

/// By which sign a server's verdict on a file is known to be final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recipe {
    /// The answer to `textDocument/diagnostic`, registered statically or dynamically.
    Pull,
    /// The answers of tsserver's own `*DiagnosticsSync` commands, which the server
    /// passes on by `typescript.tsserverRequest`.
    TsserverSync,
    /// clangd's `textDocument/clangd.fileStatus` saying that the file is idle, with
    /// a fence behind it.
    FileStatus,
    /// The pulled diagnostics, and those that cargo's check published before its
    /// progress ended, with a fence behind it: rust-analyzer.
    Flycheck,
    /// What was published when `$/analyzerStatus` says that analysis is over: dart.
    AnalyzerStatus,
    /// The publish that names our version, of a server that sends exactly one of
    /// each.
    VersionedPush,
    /// A publish of our version or, unversioned, after our change, and then a quiet
    /// window. The last resort.
    Push,
}

impl Recipe {
    /// Says whether diagnostics are pulled. Some servers stop publishing once a
    /// client says that it does, so only who pulls says it.
    #[must_use]
    pub fn pulls(self) -> bool {
        matches!(self, Self::Pull | Self::Flycheck)
    }
}

/// What a document needs before a verdict on it, once another file has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterChange {
    /// Nothing: the server looks again by itself.
    #[default]
    Nothing,
    /// To be saved again: the server looks again at what it then finds on disk.
    Save,
    /// To be closed and opened again.
    Reopen,
}

/// A command of a server that makes it read its projects afresh, for changes on disk
/// that it does not see or not in time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reread {
    /// Its name for `workspace/executeCommand`.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Vec<Value>,
    /// The kinds of changes after which it is needed.
    pub after: Vec<FileChangeKind>,
    /// The ends of names of files whose changes count, for example `.ts`.
    pub suffixes: Vec<String>,
}

impl Reread {
    /// Says whether it is needed after a change.
    #[must_use]
    pub fn wants(&self, change: &FileChange) -> bool {
        let name = change.path.file_name().unwrap_or_default().to_string_lossy();
        self.after.contains(&change.kind)
            && self.suffixes.iter().any(|suffix| name.ends_with(suffix.as_str()))
    }
}

/// Everything that shapes the process of a language server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSpec {
    /// The definition's name, for example `pyright`.
    pub name: String,
    /// The root folder, canonical.
    pub root: PathBuf,
    /// The program, resolved.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// What it may write.
    pub posture: Posture,
    /// `initializationOptions`, left out where null.
    pub initialization_options: Value,
    /// Answers to `workspace/configuration`, by section.
    pub settings: Value,
    /// When a verdict is final.
    pub recipe: Recipe,
    /// What it does not do by itself when something else than the asked file changed.
    pub after_change: AfterChange,
    /// A part of the command line of a process inside its tree without which it
    /// answers nothing: when that one ends, the server is replaced.
    pub inner_process: Option<String>,
    /// How to make it read its projects afresh.
    pub reread: Option<Reread>,
    /// How long it may take to come up.
    pub start_deadline: Duration,
    /// How long it stays after its last lease.
    pub linger: Duration,
    /// Set where the configuration gives each run a process of its own.
    pub private_to: Option<crate::ids::RunId>,
}

/// Identifies the process that a [`ServerSpec`] asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerKey {
    name: String,
    root: PathBuf,
    shape: u64,
}

impl ServerSpec {
    /// Returns the key under which equal specs share a process.
    #[must_use]
    pub fn key(&self) -> ServerKey {
        let mut hasher = DefaultHasher::new();
        (&self.program, &self.args, &self.env, &self.posture, self.recipe, self.private_to)
            .hash(&mut hasher);
        (self.after_change, &self.inner_process).hash(&mut hasher);
        if let Some(Reread { command, arguments, after, suffixes }) = &self.reread {
            (command, after, suffixes).hash(&mut hasher);
            arguments.iter().for_each(|argument| argument.to_string().hash(&mut hasher));
        }
        self.initialization_options.to_string().hash(&mut hasher);
        self.settings.to_string().hash(&mut hasher);
        ServerKey { name: self.name.clone(), root: self.root.clone(), shape: hasher.finish() }
    }
}

impl ServerKey {
    /// Returns the definition's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the root folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a spec for tests.
    pub(crate) fn spec() -> ServerSpec {
        ServerSpec {
            name: "scripted".to_owned(),
            root: PathBuf::from("/r/a b"),
            program: PathBuf::from("/bin/scripted"),
            args: Vec::new(),
            env: Vec::new(),
            posture: Posture::Writable,
            initialization_options: Value::Null,
            settings: Value::Null,
            recipe: Recipe::Pull,
            after_change: AfterChange::Nothing,
            inner_process: None,
            reread: None,
            start_deadline: Duration::from_secs(30),
            linger: Duration::from_secs(60),
            private_to: None,
        }
    }

    #[test]
    fn whatever_shapes_the_process_is_in_the_key() {
        let base = spec();
        let changes: [fn(&mut ServerSpec); 8] = [
            |spec| spec.name.push('x'),
            |spec| spec.root.push("x"),
            |spec| spec.program.push("x"),
            |spec| spec.args.push("x".into()),
            |spec| spec.env.push(("VIRTUAL_ENV".into(), "x".into())),
            |spec| spec.settings = serde_json::json!({ "x": 1 }),
            |spec| spec.initialization_options = serde_json::json!(1),
            |spec| spec.private_to = Some(crate::ids::RunId(1)),
        ];
        for (which, change) in changes.iter().enumerate() {
            let mut other = base.clone();
            change(&mut other);
            assert_ne!(base.key(), other.key(), "{which}");
        }
        let lingering = ServerSpec { linger: Duration::ZERO, ..base.clone() };
        assert_eq!(base.key(), lingering.key());
    }
}
