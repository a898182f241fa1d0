//! What is to be started of a definition, for a root and a program.
//!
//! A run's environment and settings never change, so what was made is kept as long
//! as the run.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hostler_actors::host::language_server::spec::ServerSpec;
use hostler_actors::host::language_server::uri;
use serde_json::Value;

use super::{Languages, Viewpoint};
use crate::config::definitions::{ServerDefinition, Share};

/// What was made, by name, root and program.
#[derive(Debug, Default)]
pub(super) struct Specs {
    made: Mutex<HashMap<(String, PathBuf, PathBuf), Arc<ServerSpec>>>,
}

impl Languages {
    /// Returns what to start, made once for each root and program: a question to a
    /// server that runs must not cost a copy of the environment.
    pub(super) fn spec(
        &self,
        from: Viewpoint<'_>,
        name: &str,
        definition: &ServerDefinition,
        root: &Path,
        program: &Path,
    ) -> Arc<ServerSpec> {
        let key = (name.to_owned(), root.to_owned(), program.to_owned());
        let mut known = self.known.specs.made.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(self.made(from, name, definition, root, program));
        Arc::clone(known.entry(key).or_insert_with(made))
    }

    fn made(
        &self,
        from: Viewpoint<'_>,
        name: &str,
        definition: &ServerDefinition,
        root: &Path,
        program: &Path,
    ) -> ServerSpec {
        let general = &self.config.language_servers;
        let own = |(name, value): (&String, &String)| (name.into(), value.into());
        let taken =
            |name: &OsString| name.to_str().is_some_and(|name| definition.env.contains_key(name));
        let env = from.env.iter().filter(|(name, _)| !taken(name) && !is_of_a_terminal(name));
        let env = env.cloned();
        ServerSpec {
            name: name.to_owned(),
            root: root.to_owned(),
            program: program.to_owned(),
            args: definition.args.iter().map(OsString::from).collect(),
            env: env.chain(definition.env.iter().map(own)).collect(),
            posture: self.posture.clone(),
            initialization_options: rooted(&definition.initialization_options, root),
            settings: rooted(&definition.settings, root),
            recipe: definition.recipe,
            after_change: definition.after_change,
            inner_process: definition.inner_process.clone(),
            reread: definition.reread.clone(),
            start_deadline: definition.start_deadline.unwrap_or(general.start_deadline),
            linger: definition.linger.unwrap_or(general.linger),
            private_to: match definition.share.unwrap_or(general.share) {
                Share::Host => None,
                Share::Run => Some(from.run),
            },
        }
    }
}

/// Fills in the root where options name it.
fn rooted(options: &Value, root: &Path) -> Value {
    match options {
        Value::String(text) if text.contains("${root") => text
            .replace("${root}", &root.to_string_lossy())
            .replace("${root_uri}", &uri::of_path(root))
            .into(),
        Value::Array(items) => items.iter().map(|item| rooted(item, root)).collect(),
        Value::Object(members) => {
            let filled = members.iter().map(|(key, value)| (key.clone(), rooted(value, root)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

/// Says whether a variable only tells which terminal or login a session was started
/// from. It shapes no server, and would keep sessions from sharing one.
pub(crate) fn is_of_a_terminal(name: &OsString) -> bool {
    const NAMES: [&str; 16] = [
        "_",
        "COLORTERM",
        "COLUMNS",
        "DISPLAY",
        "GPG_TTY",
        "LINES",
        "LS_COLORS",
        "OLDPWD",
        "PWD",
        "SHLVL",
        "STY",
        "TERM",
        "TMUX",
        "TMUX_PANE",
        "VTE_VERSION",
        "WINDOWID",
    ];
    const BEGINNINGS: [&str; 4] = ["SSH_", "TERM_", "XDG_SESSION_", "WAYLAND_"];
    name.to_str().is_some_and(|name| {
        NAMES.contains(&name) || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_of_settings_may_name_the_root() {
        let settings = json!({ "a": ["${root}/lib", 1], "b": { "c": "${root_uri}", "d": "$x" } });
        assert_eq!(
            rooted(&settings, Path::new("/w/a b")),
            json!({ "a": ["/w/a b/lib", 1], "b": { "c": "file:///w/a%20b", "d": "$x" } })
        );
    }
}
