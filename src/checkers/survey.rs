//! What is in a folder: where each checker has its roots, and which files no checker
//! will look at. One bounded walk that skips what git ignores; starts nothing.
//!
//! A marker is asked of the disk in every folder, not looked for among what is
//! walked: `compile_commands.json` is mostly ignored by git.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobSet, GlobSetBuilder};
use ignore::WalkBuilder;

use crate::config::Config;
use crate::config::definitions::{CheckerDefinition, InnerRoot};

/// How many files and folders are looked at, and how many roots of one checker taken.
const ENTRIES: usize = 100_000;
const ROOTS: usize = 32;

/// How much is read of a file that marks a root only by a text in it.
const MARKER_BYTES: u64 = 1024 * 1024;

/// Languages in which there is nothing that a checker of code could say.
const DATA: [&str; 8] =
    ["json", "jsonc", "markdown", "plaintext", "toml", "xml", "yaml", "properties"];

/// Some files that are not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Files {
    /// How many.
    pub(super) count: usize,
    /// One of them, relative to the folder.
    pub(super) example: PathBuf,
}

impl Files {
    fn add(&mut self, path: &Path) {
        if self.count == 0 {
            self.example = path.to_owned();
        }
        self.count += 1;
    }
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Survey {
    /// The roots of each checker that has some.
    pub(super) roots: BTreeMap<String, Vec<PathBuf>>,
    /// How many files of its kind each checker has in each of its roots.
    pub(super) inside: BTreeMap<(String, PathBuf), usize>,
    /// The files of a checker's kind that are in none of its roots.
    pub(super) outside: BTreeMap<String, Files>,
    /// The files that no checker takes, by language.
    pub(super) uncovered: BTreeMap<String, Files>,
    /// What was not looked at.
    pub(super) cut: Vec<String>,
}

/// Looks at a folder.
pub(super) fn survey(config: &Config, top: &Path) -> Survey {
    let mut survey = Survey::default();
    let kinds = Kinds::of(config);
    let walk = WalkBuilder::new(top)
        .require_git(false)
        .follow_links(false)
        // Not the project's own: packages of Node, and environments of Python.
        .filter_entry(|entry| {
            entry.file_name() != "node_modules" && !entry.path().join("pyvenv.cfg").exists()
        })
        .sort_by_file_name(OsStr::cmp)
        .build();
    for (seen, entry) in walk.filter_map(Result::ok).enumerate() {
        if seen >= ENTRIES {
            survey.cut.push(format!("only the first {ENTRIES} files and folders were looked at"));
            break;
        }
        match entry.file_type() {
            Some(kind) if kind.is_dir() => survey.folder(config, entry.path()),
            Some(kind) if kind.is_file() => survey.file(&kinds, top, entry.path()),
            _ => {}
        }
    }
    survey
}

impl Survey {
    fn folder(&mut self, config: &Config, folder: &Path) {
        for (name, definition) in &config.checkers {
            let roots = self.roots.get(name).map_or(&[][..], Vec::as_slice);
            let covered = definition.nested == InnerRoot::Covered
                && roots.iter().any(|outer| folder.starts_with(outer));
            if covered || !is_root(definition, folder) {
                continue;
            }
            if roots.len() < ROOTS {
                self.roots.entry(name.clone()).or_default().push(folder.to_owned());
            } else {
                let cut = format!("{name} has more than {ROOTS} roots; the rest was left out");
                if !self.cut.contains(&cut) {
                    self.cut.push(cut);
                }
            }
        }
    }

    fn file(&mut self, kinds: &Kinds<'_>, top: &Path, path: &Path) {
        let (Some(name), Ok(relative)) = (path.file_name(), path.strip_prefix(top)) else { return };
        let mut taken = false;
        for (checker, files) in &kinds.checked {
            if !files.is_match(name) {
                continue;
            }
            taken = true;
            let roots = self.roots.get(*checker).map_or(&[][..], Vec::as_slice);
            // The innermost, as it was found last.
            match roots.iter().rfind(|root| path.starts_with(root)) {
                Some(root) => {
                    let key = ((*checker).to_owned(), root.clone());
                    *self.inside.entry(key).or_default() += 1;
                }
                None => self.outside.entry((*checker).to_owned()).or_default().add(relative),
            }
        }
        let language = kinds.known.iter().find(|(_, files)| files.is_match(name));
        if let Some((language, _)) = language.filter(|_| !taken) {
            self.uncovered.entry((*language).to_owned()).or_default().add(relative);
        }
    }

    /// Drops what is said of the files of one checker where another one, which takes
    /// the same files, has looked at them or says as much.
    pub(super) fn settle(&mut self, config: &Config) {
        let silent: Vec<_> = self
            .outside
            .keys()
            .filter(|name| {
                let files = config.checkers.get(*name).map(|one| &one.files);
                let same = |(other, definition): (&String, &CheckerDefinition)| {
                    let first = other < *name && self.outside.contains_key(other);
                    let looks = self.roots.contains_key(other);
                    other != *name && Some(&definition.files) == files && (looks || first)
                };
                !self.roots.contains_key(*name) && config.checkers.iter().any(same)
            })
            .cloned()
            .collect();
        self.outside.retain(|name, _| !silent.contains(name));
    }
}

fn is_root(definition: &CheckerDefinition, folder: &Path) -> bool {
    definition.root_markers.iter().any(|marker| folder.join(marker).exists())
        || definition.root_texts.iter().any(|(name, text)| holds(&folder.join(name), text))
}

fn holds(path: &Path, text: &str) -> bool {
    use std::io::Read;
    let mut content = Vec::new();
    let read = std::fs::File::open(path).map(|file| file.take(MARKER_BYTES));
    let read = read.and_then(|mut file| file.read_to_end(&mut content));
    read.is_ok() && String::from_utf8_lossy(&content).contains(text)
}

/// Which files are whose.
struct Kinds<'a> {
    checked: Vec<(&'a str, GlobSet)>,
    known: Vec<(&'a str, GlobSet)>,
}

impl<'a> Kinds<'a> {
    fn of(config: &'a Config) -> Self {
        let checked = config.checkers.iter();
        let checked = checked.map(|(name, checker)| (name.as_str(), globs(&checker.files)));
        let kinds = config.servers.values().flat_map(|server| &server.files);
        let kinds = kinds.filter(|kind| !DATA.contains(&kind.language_id.as_str()));
        let known = kinds.map(|kind| (kind.language_id.as_str(), globs(&kind.patterns)));
        Self { checked: checked.collect(), known: known.collect() }
    }
}

fn globs(patterns: &[String]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for glob in patterns.iter().filter_map(|pattern| Glob::new(pattern).ok()) {
        set.add(glob);
    }
    set.build().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;
    use crate::config::Loaded;
    use crate::config::definitions::FileKind;

    fn look(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf, Survey) {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap().join("top");
        for (file, text) in files {
            let path = top.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let config = Loaded::shipped().unwrap().config;
        let mut survey = survey(&config, &top);
        survey.settle(&config);
        (place, top, survey)
    }

    #[test]
    fn an_outer_root_covers_inner_ones_where_the_definition_says_so() {
        let files = [
            ("pyproject.toml", ""),
            ("pkg/setup.py", ""),
            ("Cargo.toml", ""),
            ("x/Cargo.toml", ""),
            (".gitignore", "build\n"),
            ("c/build/compile_commands.json", "[]"),
            ("node_modules/p/tsconfig.json", "{}"),
            ("env/pyvenv.cfg", ""),
            ("env/lib/Cargo.toml", ""),
        ];
        let (_place, top, survey) = look(&files);
        let roots = |name: &str| survey.roots.get(name).cloned().unwrap_or_default();
        assert_eq!(roots("pyright"), std::slice::from_ref(&top));
        assert_eq!(roots("cargo"), [top.clone(), top.join("x")]);
        assert_eq!(roots("clang"), [top.join("c")]);
        assert!(roots("tsc").is_empty() && roots("ruff").is_empty());
    }

    #[test]
    fn a_text_marks_a_root() {
        let (_place, top, survey) = look(&[("pyproject.toml", "[tool.ruff.lint]\n")]);
        assert_eq!(survey.roots["ruff"], [top]);
    }

    #[test]
    fn languages_without_a_checker_are_counted() {
        let place = tempfile::tempdir().unwrap();
        for name in ["a.py", "b.lua", "c.lua", "d.json"] {
            std::fs::write(place.path().join(name), "").unwrap();
        }
        let mut config = Loaded::shipped().unwrap().config;
        let kind = |patterns: &str, language_id: &str| FileKind {
            patterns: vec![patterns.to_owned()],
            language_id: language_id.to_owned(),
        };
        let files = vec![kind("*.py", "python"), kind("*.lua", "lua"), kind("*.json", "json")];
        config.servers.get_mut("pyright").unwrap().files = files;
        let survey = survey(&config, place.path());
        let lua = Files { count: 2, example: "b.lua".into() };
        assert_eq!(survey.uncovered, [("lua".to_owned(), lua)].into());
    }

    #[test]
    fn files_outside_every_root_are_counted_once() {
        let files = [("a/go.mod", ""), ("a/x.go", ""), ("b/y.go", ""), ("s/z.py", "")];
        let (_place, _, survey) = look(&files);
        let outside: Vec<_> = survey.outside.iter().map(|(name, it)| (&**name, it.count)).collect();
        assert_eq!(outside, [("go-build", 1), ("go-vet", 1), ("pyright", 1)]);
        assert_eq!(survey.outside["go-vet"].example, Path::new("b/y.go"));
    }
}
