//! What a server registered while running, and which files and documents that
//! covers. Pure.
//!
//! A stack per method, keyed by id: servers register twice under one method and
//! unregister in any order (pyright does so at each change of configuration).

use std::collections::HashMap;
use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use serde_json::Value;

use super::uri;
use crate::ports::{FileChange, FileChangeKind};

/// Registrations kept per server; real ones make some 30.
const CAP: usize = 1000;

/// What a server registered, by method.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    by_method: HashMap<String, Vec<Registration>>,
    watched: Vec<(String, Vec<Watcher>)>,
}

#[derive(Debug)]
struct Registration {
    id: String,
    options: Value,
}

pub(super) const DIAGNOSTIC: &str = "textDocument/diagnostic";
pub(super) const DID_SAVE: &str = "textDocument/didSave";
pub(super) const WATCHED_FILES: &str = "workspace/didChangeWatchedFiles";

impl Registrations {
    /// Takes the params of `client/registerCapability`.
    pub(super) fn register(&mut self, params: &Value) {
        for item in list(params, &["registrations"]) {
            let (Some(id), Some(method)) = (text(item, "id"), text(item, "method")) else {
                continue;
            };
            self.forget(id, method);
            let stack = self.by_method.entry(method.to_owned()).or_default();
            if stack.len() >= CAP {
                continue;
            }
            let options = item.get("registerOptions").cloned().unwrap_or_default();
            if method == WATCHED_FILES {
                let watchers = list(&options, &["watchers"]).filter_map(Watcher::read).collect();
                self.watched.push((id.to_owned(), watchers));
            }
            stack.push(Registration { id: id.to_owned(), options });
        }
    }

    /// Takes the params of `client/unregisterCapability`. The protocol's own name
    /// of the list has a letter too few, and servers write both.
    pub(super) fn unregister(&mut self, params: &Value) {
        for item in list(params, &["unregisterations", "unregistrations"]) {
            if let (Some(id), Some(method)) = (text(item, "id"), text(item, "method")) {
                self.forget(id, method);
            }
        }
    }

    fn forget(&mut self, id: &str, method: &str) {
        if let Some(stack) = self.by_method.get_mut(method) {
            stack.retain(|registration| registration.id != id);
        }
        if method == WATCHED_FILES {
            self.watched.retain(|(of, _)| of != id);
        }
    }

    /// Returns the options of a method that cover a document, newest first.
    pub(super) fn covering<'a>(
        &'a self,
        method: &str,
        path: &'a Path,
        language: &'a str,
    ) -> impl Iterator<Item = &'a Value> {
        let stack = self.by_method.get(method).map(Vec::as_slice).unwrap_or_default();
        let options = stack.iter().rev().map(|registration| &registration.options);
        options.filter(move |options| selects(options.get("documentSelector"), path, language))
    }

    /// Returns the options last registered under a method.
    pub(super) fn newest(&self, method: &str) -> Option<&Value> {
        self.by_method.get(method)?.last().map(|registration| &registration.options)
    }

    /// Says whether the server wants to hear of a change.
    pub(super) fn wants(&self, change: &FileChange) -> bool {
        self.watched.iter().flat_map(|(_, watchers)| watchers).any(|watch| watch.covers(change))
    }
}

/// One glob that a server watches.
#[derive(Debug)]
struct Watcher {
    glob: GlobMatcher,
    /// 1 created, 2 changed, 4 deleted, added up.
    kinds: u64,
}

impl Watcher {
    fn read(watcher: &Value) -> Option<Self> {
        let kinds = watcher.get("kind").and_then(Value::as_u64).unwrap_or(7);
        let glob = match watcher.get("globPattern")? {
            // A relative pattern is matched anywhere below the root: servers send
            // `**/x` and `x` and mean the same.
            Value::String(pattern) if pattern.starts_with('/') => pattern.clone(),
            Value::String(pattern) => below("/**", pattern),
            relative => {
                let base = relative.get("baseUri")?;
                let base = base.as_str().or_else(|| text(base, "uri"))?;
                let base = uri::to_path(base)?.to_str().map(globset::escape)?;
                below(base.trim_end_matches('/'), text(relative, "pattern")?)
            }
        };
        Some(Self { glob: compiled(&glob)?, kinds })
    }

    fn covers(&self, change: &FileChange) -> bool {
        let kind = match change.kind {
            FileChangeKind::Created => 1,
            FileChangeKind::Changed => 2,
            FileChangeKind::Deleted => 4,
        };
        self.kinds & kind != 0 && self.glob.is_match(&change.path)
    }
}

fn below(base: &str, pattern: &str) -> String {
    format!("{base}/{}", pattern.trim_start_matches("./"))
}

fn compiled(pattern: &str) -> Option<GlobMatcher> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).empty_alternates(true).build();
    glob.ok().map(|glob| glob.compile_matcher())
}

/// Says whether a document selector takes a document; absent or null takes all.
fn selects(selector: Option<&Value>, path: &Path, language: &str) -> bool {
    let Some(filters) = selector.and_then(Value::as_array) else { return true };
    filters.iter().any(|filter| {
        if let Some(only) = filter.as_str() {
            return only == language;
        }
        text(filter, "scheme").is_none_or(|scheme| scheme == "file")
            && text(filter, "language").is_none_or(|only| only == language)
            && match filter.get("pattern") {
                None | Some(Value::Null) => true,
                Some(pattern) => Watcher::read(&serde_json::json!({ "globPattern": pattern }))
                    .is_some_and(|watch| watch.glob.is_match(path)),
            }
    })
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

fn list<'a>(value: &'a Value, names: &[&str]) -> impl Iterator<Item = &'a Value> {
    names.iter().find_map(|name| value.get(name)?.as_array()).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn watching(watchers: &Value) -> Registrations {
        let mut registrations = Registrations::default();
        registrations.register(&json!({ "registrations": [
            { "id": "w", "method": WATCHED_FILES, "registerOptions": { "watchers": watchers } },
        ] }));
        registrations
    }

    #[test]
    fn globs_mean_what_servers_mean_by_them() {
        use FileChangeKind::{Changed, Created, Deleted};
        let relative = |base: Value, pattern: &str| json!({ "baseUri": base, "pattern": pattern });
        let cases: &[(Value, u64, &str, FileChangeKind, bool)] = &[
            (json!("**/*.py"), 7, "/r/a/b.py", Changed, true),
            (json!("**/*.py"), 7, "/r/b.py", Changed, true),
            (json!("**/*.py"), 7, "/r/b.pyi", Changed, false),
            (json!("**"), 7, "/r/any/thing", Deleted, true),
            (json!("*.{ts,tsx}"), 7, "/r/x.tsx", Created, true),
            (json!("**/pyrightconfig.json"), 7, "/r/pyrightconfig.json", Created, true),
            (json!("/r/src/**/*.rs"), 7, "/r/src/a/b.rs", Created, true),
            (json!("/r/src/**/*.rs"), 7, "/r/tests/b.rs", Created, false),
            (json!("**/*.py"), 4, "/r/b.py", Changed, false),
            (json!("**/*.py"), 4, "/r/b.py", Deleted, true),
            (json!("**/[!a]*.py"), 7, "/r/b.py", Changed, true),
            (json!("**/[!a]*.py"), 7, "/r/ab.py", Changed, false),
            (relative(json!("file:///r/%5Bx%5D"), "*.toml"), 7, "/r/[x]/a.toml", Changed, true),
            (relative(json!("file:///r/x/"), "*.toml"), 7, "/r/x/y/a.toml", Changed, false),
            (relative(json!({ "uri": "file:///r" }), "**/a"), 1, "/r/y/a", Created, true),
            (json!({ "odd": 1 }), 7, "/r/a", Created, false),
            (json!("[broken"), 7, "/r/a", Created, false),
        ];
        for (glob, kind, path, change, wanted) in cases {
            let registrations = watching(&json!([{ "globPattern": glob, "kind": kind }]));
            let change = FileChange { path: Path::new(path).into(), kind: *change };
            assert_eq!(registrations.wants(&change), *wanted, "{glob} {kind} {path} {change:?}");
        }
    }

    #[test]
    fn a_stack_per_method_keyed_by_id() {
        let mut held = Registrations::default();
        let register = |id: &str, options: Value| {
            json!({ "registrations": [
            { "id": id, "method": DIAGNOSTIC, "registerOptions": options },
        ] })
        };
        let names = |held: &Registrations| -> Vec<String> {
            held.covering(DIAGNOSTIC, Path::new("/r/a.py"), "python")
                .map(|options| text(options, "identifier").unwrap_or("-").to_owned())
                .collect()
        };
        held.register(&register("1", json!({ "identifier": "one" })));
        held.register(&register("2", json!({ "documentSelector": null })));
        held.register(&register("3", json!({ "documentSelector": [{ "language": "rust" }] })));
        assert_eq!(names(&held), ["-", "one"]);
        held.unregister(&json!({ "unregisterations": [{ "id": "1", "method": DIAGNOSTIC }] }));
        assert_eq!(names(&held), ["-"]);
        held.register(&register("2", json!({ "identifier": "again" })));
        assert_eq!(names(&held), ["again"]);
        held.unregister(&json!({ "unregistrations": [
            { "id": "2", "method": DIAGNOSTIC }, { "id": "unknown", "method": "x" }, 7,
        ] }));
        assert!(names(&held).is_empty() && held.newest(DIAGNOSTIC).is_some());
    }

    #[test]
    fn selectors_take_by_language_scheme_and_pattern() {
        let cases = [
            (json!(null), true),
            (json!([]), false),
            (json!(["python"]), true),
            (json!([{ "language": "python", "scheme": "untitled" }]), false),
            (json!([{ "scheme": "file", "pattern": "**/*.{py,pyi}" }]), true),
            (json!([{ "pattern": "**/*.rs" }, { "language": "python" }]), true),
        ];
        for (selector, taken) in cases {
            let path = Path::new("/r/a.py");
            assert_eq!(selects(Some(&selector), path, "python"), taken, "{selector}");
        }
    }
}
