//! The projects that a `tsconfig.json` leads to, each checked from its sources.
//!
//! Measured with TypeScript 5.9 and 7.0: `-b --noEmit` refuses a project that refers
//! to another (TS6310), and `-p` wants the other one built (TS6305). But references
//! are the one thing that `extends` does not inherit: a file in the cache that extends
//! the project makes both check everything, from the sources and without a trace.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::plan::Plan;
use super::run::{Shot, Shots};
use crate::diagnostics::details::with;

/// How many projects of one root are checked.
const PROJECTS: usize = 64;

/// How far what a configuration extends is followed.
const EXTENDS: usize = 8;

const CONFIG: &str = "tsconfig.json";

/// One project.
#[derive(Debug, PartialEq, Eq)]
struct Project {
    config: PathBuf,
    /// Does it refer to others.
    refers: bool,
    /// Has it nothing of its own.
    empty: bool,
}

/// Lists what is to be run.
pub(super) fn shots(plan: &Plan) -> Result<Shots, String> {
    let (projects, mut gaps) = projects(&plan.key.root);
    let mut shots = Vec::new();
    for (number, project) in projects.iter().enumerate().filter(|(_, project)| !project.empty) {
        let config = match project.refers {
            true => derived(plan, number, &project.config),
            false => Ok(project.config.clone()),
        };
        match config {
            Ok(config) => {
                let shown = project.config.strip_prefix(&plan.key.root).unwrap_or(&project.config);
                let mut args = plan.key.args.clone();
                args.extend(["-p".into(), config.into()]);
                shots.push(Shot {
                    of: shown.display().to_string(),
                    program: plan.key.program.clone(),
                    args,
                    cwd: plan.key.root.clone(),
                    base: plan.key.root.clone(),
                });
            }
            Err(error) => gaps.push(format!("{}: {error}", project.config.display())),
        }
    }
    Ok(Shots { shots, gaps, aside: Vec::new() })
}

/// Lists the configurations that a root leads to, its own first.
pub(super) fn configs(root: &Path) -> Vec<PathBuf> {
    projects(root).0.into_iter().map(|project| project.config).collect()
}

fn projects(root: &Path) -> (Vec<Project>, Vec<String>) {
    let (mut found, mut gaps) = (Vec::<Project>::new(), Vec::new());
    let mut pending = vec![root.join(CONFIG)];
    while let Some(config) = pending.pop() {
        if found.iter().any(|known| known.config == config) {
            continue;
        }
        if found.len() >= PROJECTS {
            gaps.push(format!("it leads to more than {PROJECTS} projects; the rest was left out"));
            break;
        }
        let content = match std::fs::read_to_string(&config) {
            Ok(content) => content,
            Err(error) => {
                gaps.push(format!("{}: {error}", config.display()));
                continue;
            }
        };
        // One that cannot be read is the compiler's to complain of.
        let value: Value = serde_json::from_str(&plain_json(&content)).unwrap_or_default();
        let folder = config.parent().unwrap_or(root);
        let others = value.get("references").and_then(Value::as_array).into_iter().flatten();
        let others: Vec<_> = others
            .filter_map(|other| Some(folder.join(other.get("path")?.as_str()?)))
            .map(|other| if other.is_dir() { other.join(CONFIG) } else { other })
            .map(|other| other.canonicalize().unwrap_or(other))
            .collect();
        let files = value.get("files").and_then(Value::as_array);
        let empty = files.is_some_and(Vec::is_empty) && value.get("include").is_none();
        found.push(Project { config, refers: !others.is_empty(), empty });
        pending.extend(others);
    }
    (found, gaps)
}

/// Writes a configuration into the cache that is the project's without its references.
fn derived(plan: &Plan, number: usize, config: &Path) -> std::io::Result<PathBuf> {
    let folder = config.parent().unwrap_or(config);
    let types = folder.ancestors().map(|at| at.join("node_modules/@types"));
    let mut derived = json!({
        "extends": config,
        "compilerOptions": {
            // Both would be looked for beside this file.
            "rootDir": "/",
            "typeRoots": types.filter(|at| at.is_dir()).collect::<Vec<_>>(),
        },
    });
    // Not inherited either: that without a word everything in the folder is meant.
    if !names_files(config, EXTENDS) {
        derived = with(derived, json!({ "include": [folder.join("**/*")] }));
    }
    let path = plan.cache.join(format!("{number}.json"));
    std::fs::write(&path, derived.to_string())?;
    Ok(path)
}

/// Says whether a configuration, or one that it extends, says which files are its own.
fn names_files(config: &Path, deeper: usize) -> bool {
    let content = std::fs::read_to_string(config).unwrap_or_default();
    let value: Value = serde_json::from_str(&plain_json(&content)).unwrap_or_default();
    if value.get("files").or_else(|| value.get("include")).is_some() {
        return true;
    }
    let bases = match value.get("extends") {
        Some(Value::Array(bases)) => bases.clone(),
        Some(base) => vec![base.clone()],
        None => Vec::new(),
    };
    let folder = config.parent().unwrap_or(config);
    // One of a package has no files of this project to name.
    let bases = bases.iter().filter_map(Value::as_str).filter(|base| base.starts_with(['.', '/']));
    let mut bases = bases.flat_map(|base| [folder.join(base), folder.join(format!("{base}.json"))]);
    deeper > 0 && bases.any(|base| base.is_file() && names_files(&base, deeper - 1))
}

/// Takes comments and trailing commas out of JSON, of which such files are full.
fn plain_json(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.trim_start_matches('\u{feff}').chars().peekable();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match (quoted, c, chars.peek()) {
            (true, '\\', Some(_)) => {
                plain.push(c);
                plain.extend(chars.next());
                continue;
            }
            (_, '"', _) => quoted = !quoted,
            (false, '/', Some('/')) => {
                while chars.next_if(|&c| c != '\n').is_some() {}
                continue;
            }
            (false, '/', Some('*')) => {
                let mut last = ' ';
                chars.next();
                for c in chars.by_ref() {
                    if (last, c) == ('*', '/') {
                        break;
                    }
                    last = c;
                }
                continue;
            }
            (false, ']' | '}', _) => {
                let end = plain.trim_end();
                plain.truncate(end.strip_suffix(',').unwrap_or(end).len());
            }
            _ => {}
        }
        plain.push(c);
    }
    plain
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;

    #[test]
    fn comments_and_trailing_commas_go() {
        let text =
            "\u{feff}{ // a\n \"a\": \"x // y /* z\", /* b, */ \"b\\\"\": [1, 2, /* c */ ],\n}";
        let value: Value = serde_json::from_str(&plain_json(text)).unwrap();
        assert_eq!(value, json!({ "a": "x // y /* z", "b\"": [1, 2] }));
    }

    #[test]
    fn references_are_followed_once_each() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let put = |name: &str, text: &str| {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), text).unwrap();
        };
        put(CONFIG, r#"{"files": [], "references": [{"path": "a"}, {"path": "./b.json"}]}"#);
        put("a/tsconfig.json", r#"{"references": [{"path": "../b.json"}, {"path": "../none"}]}"#);
        put("b.json", "{}");
        let (found, gaps) = projects(&root);
        let mut flags: Vec<_> = found
            .iter()
            .map(|it| (it.config.strip_prefix(&root).unwrap().to_str().unwrap(), it.refers))
            .collect();
        flags.sort_unstable();
        assert_eq!(flags, [("a/tsconfig.json", true), ("b.json", false), (CONFIG, true)]);
        assert!(found.iter().all(|it| it.empty == (it.config == root.join(CONFIG))));
        assert_eq!(gaps.len(), 1, "{gaps:?}");
    }
}
