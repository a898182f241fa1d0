//! Holds the tree to the house rules that no lint knows.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const MOST_LINES: usize = 800;
const MOST_DOC_LINES: usize = 15;
const MOST_MEDIAN: usize = 200;
const MOST_PACKAGES: usize = 300;

/// Folders with nothing of ours in them.
const NOT_OURS: [&str; 4] = ["target", ".git", "node_modules", ".venv"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if NOT_OURS.iter().any(|skipped| name == *skipped) {
            continue;
        }
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => walk(&entry.path(), found),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

/// Every file of ours that is text, by its path from the root.
fn texts() -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    walk(root(), &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).ok()?;
        Some((path.strip_prefix(root()).unwrap().to_owned(), text))
    };
    paths.into_iter().filter_map(read).collect()
}

/// Every source file of ours; fixtures are what they are.
fn sources() -> Vec<(PathBuf, String)> {
    let ours = |path: &Path| {
        path.extension().is_some_and(|extension| extension == "rs")
            && !path.starts_with("tests/fixtures")
    };
    texts().into_iter().filter(|(path, _)| ours(path)).collect()
}

/// Fails with everything that was found at once.
fn none(what: &str, found: impl IntoIterator<Item = String>) {
    let found: Vec<_> = found.into_iter().collect();
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

fn lines_that(bad: impl Fn(&Path, &str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            if bad(&path, line.trim()) {
                found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    found
}

#[test]
fn every_file_opens_with_what_it_is() {
    let mut found = Vec::new();
    for (path, text) in sources() {
        let doc = text.lines().take_while(|line| line.starts_with("//!")).count();
        // The picture of the tree is the one doc that may be longer.
        let most = if path == Path::new("actors/lib.rs") { 20 } else { MOST_DOC_LINES };
        if doc == 0 || doc > most {
            found.push(format!("{}: {doc} lines of //!, 1 to {most} allowed", path.display()));
        }
    }
    none("files without a short opening", found);
}

#[test]
fn files_are_small() {
    let mut lengths: Vec<_> =
        sources().into_iter().map(|(path, text)| (text.lines().count(), path)).collect();
    lengths.sort();
    let median = lengths[lengths.len() / 2].0;
    let (longest, path) = lengths.last().unwrap();
    println!("{} files, median {median}, longest {longest} ({})", lengths.len(), path.display());
    assert!(median <= MOST_MEDIAN, "median of {median} lines, {MOST_MEDIAN} allowed");
    let long = lengths.iter().filter(|(length, _)| *length > MOST_LINES);
    none(
        "files that are too long",
        long.map(|(length, path)| format!("{}: {length}", path.display())),
    );
}

#[test]
fn modules_have_the_name_of_their_folder() {
    let named = sources().into_iter().filter(|(path, _)| path.ends_with("mod.rs"));
    none("mod.rs", named.map(|(path, _)| path.display().to_string()));
}

#[test]
fn nothing_is_imported_by_the_dozen() {
    // `use super::*` is what a test module beside its code is for.
    let glob = |_: &Path, line: &str| {
        line.starts_with("use ") && line.ends_with("*;") && line != "use super::*;"
    };
    none("glob imports", lines_that(glob));
}

#[test]
fn nothing_is_left_undone_or_skipped() {
    // Put together here, so that this file is not one of those it finds.
    let marks = [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("#[ig", "nore")];
    none("unfinished or skipped", lines_that(|_, line| marks.iter().any(|it| line.contains(it))));
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];
    let marked = |_: &Path, line: &str| words.iter().any(|word| line.contains(word));
    none("markers", lines_that(marked));
}

#[test]
fn the_lock_file_stays_small() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let packages = lock.lines().filter(|line| *line == "[[package]]").count();
    println!("{packages} packages");
    assert!(packages < MOST_PACKAGES, "{packages} packages, fewer than {MOST_PACKAGES} allowed");
}

#[test]
fn every_dependency_has_its_reason() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut names = BTreeSet::new();
    for manifest in ["Cargo.toml", "actors/Cargo.toml"] {
        let text = fs::read_to_string(root().join(manifest)).unwrap();
        let table: toml::Table = toml::from_str(&text).unwrap();
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let section = table.get(section).and_then(toml::Value::as_table);
            names.extend(section.into_iter().flat_map(|table| table.keys().cloned()));
        }
    }
    names.remove("hostler-actors");
    let unexplained = names
        .into_iter()
        .filter(|name| !architecture.lines().any(|line| line.starts_with(&format!("- `{name}`"))));
    none("dependencies without a line of their own in ARCHITECTURE.md", unexplained);
}

/// Is this a file of fakes, or of a module that its parent declares for tests only.
fn is_for_tests(path: &Path) -> bool {
    if path.components().any(|part| part.as_os_str() == "testing" || part.as_os_str() == "tests") {
        return true;
    }
    let Some(folder) = path.parent() else { return false };
    let beside = root().join(folder).with_extension("rs");
    let parent = if beside.exists() { beside } else { root().join(folder).join("lib.rs") };
    let name = path.file_stem().unwrap().to_str().unwrap();
    let declared = fs::read_to_string(parent).unwrap_or_default();
    declared.contains(&format!("#[cfg(test)]\nmod {name};"))
}

/// The parent of `actors/a/b.rs` is the actor in `actors/a.rs`, so a file with
/// an actor must have one above it, up to the host.
#[test]
fn every_actor_lives_below_its_supervisor() {
    let actors: BTreeSet<PathBuf> = sources()
        .into_iter()
        .filter(|(path, text)| {
            // Before any tests: an actor in a test is nobody's child.
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            path.starts_with("actors") && !is_for_tests(path) && code.contains("Actor for ")
        })
        .map(|(path, _)| path)
        .collect();
    let orphan = |path: &&PathBuf| {
        let host = Path::new("actors/host.rs");
        path.as_path() != host && !actors.contains(&path.parent().unwrap().with_extension("rs"))
    };
    let orphans = actors.iter().filter(orphan);
    none("actors without a supervisor above them", orphans.map(|path| path.display().to_string()));
}

#[test]
fn actors_reach_nothing_outside() {
    let reaches = |path: &Path, line: &str| {
        path.starts_with("actors")
            && !is_for_tests(path)
            && ["std::fs", "tokio::fs", "std::process::Command", "tokio::process", "std::env::"]
                .iter()
                .any(|outside| line.contains(outside))
    };
    none("actors that reach outside", lines_that(reaches));
}

#[test]
fn what_belongs_to_a_project_is_there() {
    for name in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        let text = fs::read_to_string(root().join(name)).unwrap_or_default();
        assert!(!text.trim().is_empty(), "{name} is missing or empty");
    }
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert!(changelog.contains(version), "CHANGELOG.md says nothing of {version}");
}

#[test]
fn no_developers_folder_is_named() {
    // Put together here, so that this file is not one of those it finds.
    let homes = [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];
    let checkout = root().to_str().unwrap();
    let mut found = Vec::new();
    for (path, text) in texts() {
        for (number, line) in text.lines().enumerate() {
            let home = homes.iter().any(|home| line.contains(home) && !is_example(line, home));
            if home || line.contains(checkout) {
                found.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    none("paths of a developer's machine", found);
}

/// `/home/USER`, `/home/user` and `/home/ana` stand for anybody's.
fn is_example(line: &str, home: &str) -> bool {
    line.split(home)
        .skip(1)
        .all(|rest| ["user", "USER", "you", "ana", "$"].iter().any(|name| rest.starts_with(name)))
}
