//! What can be wrong with a configuration, said so that it can be mended.

use std::io;
use std::path::{Path, PathBuf};

use crate::config::decode::{Fault, Problem};
use crate::config::layers::{Layers, NotToml, Origin};

/// How alike two names must be for one to be taken for the other. `proceses` and
/// `processes` score 0.89, two random short keys less than 0.5.
const ALIKE: f64 = 0.6;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// A file or folder cannot be read.
    #[error("{path}: cannot be read: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    /// A file is not TOML.
    #[error("{path}:{line}: not TOML: {reason}")]
    NotToml { path: PathBuf, line: usize, reason: String },
    /// A key that nothing knows.
    #[error("{origin}: unknown key `{key}`{hint}")]
    UnknownKey { origin: Origin, key: String, hint: String },
    /// A value that does not fit its key.
    #[error("{origin}: {key}: {reason}")]
    BadValue { origin: Origin, key: String, reason: String },
    /// A `--set` without a `=`.
    #[error("`{flag}`: expected KEY=VALUE, for example `--set host.processes=64`")]
    BadSet { flag: String },
}

impl ConfigError {
    pub(crate) fn not_toml(path: &Path, error: NotToml) -> Self {
        Self::NotToml { path: path.to_owned(), line: error.line, reason: error.reason }
    }

    /// Says where a fault of the merged values came from.
    pub(crate) fn bad_value(fault: &Fault, layers: &Layers) -> Self {
        let path = fault.path();
        let origin = layers.origin(&path);
        let key = dotted(&path);
        match &fault.problem {
            Problem::UnknownKey { known, .. } => {
                let hint = hint_for(&path, known, layers);
                Self::UnknownKey { origin, key, hint }
            }
            Problem::Other(reason) => Self::BadValue { origin, key, reason: reason.clone() },
        }
    }
}

/// Writes a path as TOML does.
pub(crate) fn dotted(path: &[String]) -> String {
    let bare = |key: &String| key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let keys: Vec<String> =
        path.iter().map(|key| if bare(key) { key.clone() } else { format!("{key:?}") }).collect();
    keys.join(".")
}

/// Finds what an unknown key was meant to be: a sibling with a similar name, or
/// the same name elsewhere, or else lists what is known in its place.
fn hint_for(path: &[String], known: &[&str], layers: &Layers) -> String {
    let Some((key, parents)) = path.split_last() else { return String::new() };
    let near = nearest(key, known.iter().copied())
        .map(|sibling| [parents, &[sibling.to_owned()]].concat())
        .or_else(|| {
            let mut keys = layers.leaves().into_iter().map(|(path, _)| path);
            keys.find(|other| other != path && other.len() > 1 && other.last() == Some(key))
        });
    match near {
        Some(near) => format!("; did you mean `{}`?", dotted(&near)),
        None => format!("; known here: {}", known.join(", ")),
    }
}

/// Returns `; did you mean …?` where a known name is near.
pub(crate) fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(name, known).map(|near| format!("; did you mean {near}?")).unwrap_or_default()
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|other| (strsim::normalized_damerau_levenshtein(name, other), other))
        .filter(|(score, _)| *score >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, other)| other)
}
