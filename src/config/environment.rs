//! The environment that the daemon was started with, read once.
//!
//! The only file that may ask for it. Everything else is handed an
//! [`Environment`], so that a test can make one and a child gets what was chosen.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// A set of environment variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Reads the variables of this process.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub(crate) fn inherited() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// Returns a variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Returns a variable as an absolute path. A relative one counts as not set,
    /// as the base-directory specification has it.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// Returns every variable whose name and value are text.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)))
    }

    /// Returns what a child may inherit: all but our own variables.
    pub(crate) fn for_children(&self) -> Vec<(OsString, OsString)> {
        self.0
            .iter()
            .filter(|(name, _)| !name.as_encoded_bytes().starts_with(b"HOSTLER_"))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
