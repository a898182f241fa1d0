//! The configuration: shipped defaults, the user's files, `HOSTLER_*`, flags.
//!
//! Each layer overrides the one before it. Nothing here is ever read from a
//! worktree: a server definition is code execution. Every key has a shipped value,
//! so the defaults are also the list of what is known. `load` may be called again
//! (SIGHUP); a caller that gets an error keeps what it had.

pub(crate) mod adapters;
pub(crate) mod decode;
pub(crate) mod definitions;
pub(crate) mod environment;
pub(crate) mod error;
pub(crate) mod layers;
pub(crate) mod span;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hostler_actors::profile::Profile;
use serde::Deserialize;
use toml::Value;

use adapters::AdapterDefinition;
use definitions::{CheckerDefinition, InstallRecipe, ServerDefinition, Share};
use environment::Environment;
use error::ConfigError;
use layers::{Layers, Origin};

const SHIPPED: &str = include_str!("../config/hostler.toml");

/// Embeds definitions: kind, name, text.
macro_rules! shipped {
    ($($kind:literal: $($name:literal)+;)+) => {
        &[$($(($kind, $name, include_str!(concat!("../config/", $kind, "/", $name, ".toml")))),+),+]
    };
}

/// Shipped definitions: kind, name, text.
const SHIPPED_DEFINITIONS: &[(&str, &str, &str)] = shipped! {
    "servers":
        "ast-grep" "astro" "basedpyright" "bash-language-server" "biome" "buf" "clangd"
        "clojure-lsp" "csharp-ls" "css" "dart" "dockerfile" "elixir-ls" "elm" "elp" "emmylua"
        "erlang-ls" "eslint" "fortls" "fsautocomplete" "gleam" "gopls" "graphql"
        "haskell-language-server" "helm" "html" "intelephense" "jdtls" "jedi" "json" "julia"
        "just" "kotlin-language-server" "kotlin-lsp" "lean" "lua-language-server" "marksman"
        "metals" "neocmakelsp" "nil" "nim" "nixd" "nushell" "ocamllsp" "omnisharp" "oxlint"
        "perl" "phpactor" "prisma" "purescript" "pylsp" "pyrefly" "pyright" "r" "ruby-lsp"
        "ruff" "rust-analyzer" "slint" "solargraph" "solidity" "sourcekit-lsp" "sqls" "svelte"
        "tailwindcss" "taplo" "terraform-ls" "texlab" "tinymist" "tombi" "ty"
        "typescript-language-server" "typescript-native" "vim-language-server" "vtsls" "vue"
        "yaml-language-server" "zls" "zuban";
    "checkers": "cargo" "clang" "dart" "go-build" "go-vet" "pyright" "ruff" "tsc";
    "adapters": "dart" "debugpy" "delve" "lldb";
    "profiles": "chat";
};

/// Kinds of definitions, each with a folder beside the configuration file.
const KINDS: [&str; 4] = ["servers", "checkers", "adapters", "profiles"];

/// Variables that are ours and name no key.
const OTHER_VARIABLES: [&str; 1] = ["HOSTLER_CONFIG"];

/// Everything that can be configured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The data folder; empty for the usual one.
    pub(crate) data: PathBuf,
    /// The folder of socket and credentials; empty for the usual one.
    pub(crate) runtime: PathBuf,
    /// The folder of installed tools; empty for the usual one.
    pub(crate) tools: PathBuf,
    pub(crate) host: Host,
    pub(crate) language_servers: LanguageServers,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) bash: Bash,
    /// What bounds interpreters.
    pub(crate) eval: Eval,
    pub(crate) debug: Debugger,
    pub(crate) results: Results,
    pub(crate) log: Log,
    /// Language servers by name.
    pub(crate) servers: BTreeMap<String, ServerDefinition>,
    /// Checkers by name.
    pub(crate) checkers: BTreeMap<String, CheckerDefinition>,
    /// Debug adapters by name.
    pub(crate) adapters: BTreeMap<String, AdapterDefinition>,
    /// What a mode guarantees, by the mode's name.
    pub(crate) profiles: BTreeMap<String, Profile>,
}

/// The budget over all process trees.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    /// How many processes at most.
    pub(crate) processes: u32,
    /// How much of the memory at most, in hundredths.
    pub(crate) memory_percent: u8,
}

/// What holds for every language server that says nothing else.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LanguageServers {
    /// How long one stays after its last lease.
    #[serde(deserialize_with = "span::required")]
    pub(crate) linger: Duration,
    /// How long one may take to start.
    #[serde(deserialize_with = "span::required")]
    pub(crate) start_deadline: Duration,
    /// How long a request may take.
    #[serde(deserialize_with = "span::required")]
    pub(crate) request: Duration,
    /// Who shares a process.
    pub(crate) share: Share,
    /// Names of servers that go before all others of their group, best first.
    pub(crate) prefer: Vec<String>,
}

/// How long verdicts are waited for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Diagnostics {
    /// After a write.
    #[serde(deserialize_with = "span::required")]
    pub(crate) inline: Duration,
    /// Where the whole project is checked.
    #[serde(deserialize_with = "span::required")]
    pub(crate) project: Duration,
}

/// How long a command may take.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bash {
    /// Unless the call says otherwise.
    #[serde(deserialize_with = "span::required")]
    pub(crate) deadline: Duration,
    /// Whatever the call says.
    #[serde(deserialize_with = "span::required")]
    pub(crate) longest: Duration,
}

/// What bounds interpreters and their cells.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Eval {
    /// A start, until the runner answers.
    #[serde(deserialize_with = "span::required")]
    pub(crate) start: Duration,
    /// A cell without a sign of activity.
    #[serde(deserialize_with = "span::required")]
    pub(crate) quiet: Duration,
    /// A cell, bridged calls not counted.
    #[serde(deserialize_with = "span::required")]
    pub(crate) longest: Duration,
    /// The text that a cell may write.
    pub(crate) output_bytes: u64,
    /// The data that an interpreter may hold.
    pub(crate) memory_bytes: u64,
}

/// How long a debug session and its steps may take.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Debugger {
    /// The whole session, from its start.
    #[serde(deserialize_with = "span::required")]
    pub(crate) ttl: Duration,
    /// Its start, where nothing is built.
    #[serde(deserialize_with = "span::required")]
    pub(crate) start: Duration,
    /// How long a step waits for the next stop.
    #[serde(deserialize_with = "span::required")]
    pub(crate) wait: Duration,
    /// An expression.
    #[serde(deserialize_with = "span::required")]
    pub(crate) evaluate: Duration,
    /// Any other request.
    #[serde(deserialize_with = "span::required")]
    pub(crate) request: Duration,
}

/// How much of a result is shown.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Results {
    /// Bytes of text in place, head and tail together.
    pub(crate) inline_bytes: usize,
    /// Hits of `grep`.
    pub(crate) grep: usize,
    /// Paths of `glob`.
    pub(crate) glob: usize,
    /// Characters of a line in `read`.
    pub(crate) line_chars: usize,
}

/// What is logged and kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    /// Which events, in the form of `RUST_LOG`.
    pub(crate) filter: String,
    /// How many daily files.
    pub(crate) days: usize,
}

/// Where to look for a configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// The variables that may override and locate.
    pub(crate) environment: Environment,
    /// `--config`.
    pub(crate) file: Option<PathBuf>,
    /// `--set KEY=VALUE`, in order.
    pub(crate) sets: Vec<String>,
}

/// A configuration, and where every value of it came from.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) layers: Layers,
    /// What a person should be told, for example of a variable that does nothing.
    pub(crate) notices: Vec<String>,
}

impl Config {
    /// Returns everything that can be installed, by name.
    pub(crate) fn recipes(&self) -> impl Iterator<Item = (&str, &InstallRecipe)> {
        let servers = self.servers.iter();
        let servers =
            servers.filter_map(|(name, server)| Some((name.as_str(), server.install.as_ref()?)));
        servers.chain(self.adapter_recipes())
    }

    /// Returns those that bring a debug adapter.
    pub(crate) fn adapter_recipes(&self) -> impl Iterator<Item = (&str, &InstallRecipe)> {
        let adapters = self.adapters.iter();
        adapters.filter_map(|(name, adapter)| Some((name.as_str(), adapter.install.as_ref()?)))
    }
}

impl Loaded {
    /// Reads what ships with the program and nothing else.
    pub(crate) fn shipped() -> Result<Self, ConfigError> {
        Self::typed(shipped_layers()?, Vec::new())
    }

    /// Reads all layers.
    pub(crate) fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let mut layers = shipped_layers()?;
        read_files(&mut layers, sources)?;
        let notices = read_variables(&mut layers, &sources.environment);
        for set in &sources.sets {
            read_set(&mut layers, set)?;
        }
        Self::typed(layers, notices)
    }

    fn typed(layers: Layers, notices: Vec<String>) -> Result<Self, ConfigError> {
        let values = Value::Table(layers.values().clone());
        match decode::decode(&values) {
            Ok(config) => Ok(Self { config, layers, notices }),
            Err(fault) => Err(ConfigError::bad_value(&fault, &layers)),
        }
    }
}

fn shipped_layers() -> Result<Layers, ConfigError> {
    let mut layers = Layers::default();
    let mut lay = |at: &[&str], text| {
        layers
            .overlay(at, text, |_| Origin::Default)
            .map_err(|error| ConfigError::not_toml(Path::new("the shipped defaults"), error))
    };
    lay(&[], SHIPPED)?;
    for (kind, name, text) in SHIPPED_DEFINITIONS {
        lay(&[kind, name], text)?;
    }
    Ok(layers)
}

/// Returns the file that is read, and whether it was asked for by name.
fn main_file(sources: &Sources) -> Option<(PathBuf, bool)> {
    let environment = &sources.environment;
    let named = sources.file.clone().or_else(|| environment.get("HOSTLER_CONFIG").map(Into::into));
    if let Some(file) = named {
        return Some((file, true));
    }
    let folder = environment
        .path("XDG_CONFIG_HOME")
        .or_else(|| environment.path("HOME").map(|home| home.join(".config")))?;
    Some((folder.join("hostler/hostler.toml"), false))
}

fn read_files(layers: &mut Layers, sources: &Sources) -> Result<(), ConfigError> {
    let Some((file, named)) = main_file(sources) else { return Ok(()) };
    match fs::read_to_string(&file) {
        Ok(text) => lay_file(layers, &[], &file, &text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !named => {}
        Err(source) => return Err(ConfigError::Unreadable { path: file, source }),
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    for kind in KINDS {
        for path in toml_files(&folder.join(kind))? {
            let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            let text = fs::read_to_string(&path)
                .map_err(|source| ConfigError::Unreadable { path: path.clone(), source })?;
            lay_file(layers, &[kind, name], &path, &text)?;
        }
    }
    Ok(())
}

fn lay_file(layers: &mut Layers, at: &[&str], path: &Path, text: &str) -> Result<(), ConfigError> {
    let shared: Arc<Path> = path.into();
    layers
        .overlay(at, text, |line| Origin::File { path: Arc::clone(&shared), line })
        .map_err(|error| ConfigError::not_toml(path, error))
}

fn toml_files(folder: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(unreadable)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    Ok(paths)
}

/// Lays the variables over the keys of `hostler.toml`: `HOSTLER_HOST_PROCESSES`
/// is `host.processes`. Returns a notice for each variable that is no key.
fn read_variables(layers: &mut Layers, environment: &Environment) -> Vec<String> {
    let keys: BTreeMap<String, Vec<String>> = layers
        .leaves()
        .into_iter()
        .filter(|(path, _)| !path.first().is_some_and(|first| KINDS.contains(&first.as_str())))
        .map(|(path, _)| (format!("HOSTLER_{}", path.join("_").to_uppercase()), path))
        .collect();
    let mut notices = Vec::new();
    for (name, text) in environment.texts().filter(|(name, _)| name.starts_with("HOSTLER_")) {
        match keys.get(name) {
            Some(path) => {
                let value = value_like(layers.get(path), text);
                layers.set(path, value, &Origin::Variable(name.to_owned()));
            }
            None if OTHER_VARIABLES.contains(&name) => {}
            None => {
                let hint = error::hint(name, keys.keys().map(String::as_str));
                notices.push(format!("${name} does nothing: there is no such setting{hint}"));
            }
        }
    }
    notices
}

fn read_set(layers: &mut Layers, set: &str) -> Result<(), ConfigError> {
    let flag = format!("--set {set}");
    let Some((key, text)) = set.split_once('=') else {
        return Err(ConfigError::BadSet { flag });
    };
    let path: Vec<String> = key.trim().split('.').map(str::to_owned).collect();
    let value = value_like(layers.get(&path), text);
    layers.set(&path, value, &Origin::Flag(flag));
    Ok(())
}

/// Reads a bare text as the kind of value that it replaces. What does not fit
/// stays a text, and is refused with the key's name when the whole is decoded.
fn value_like(old: Option<&Value>, text: &str) -> Value {
    match old {
        Some(Value::String(_)) => Value::String(text.to_owned()),
        _ => text.parse().unwrap_or_else(|_| Value::String(text.to_owned())),
    }
}

#[cfg(test)]
mod shipped_tests;
#[cfg(test)]
mod tests;
