//! Compiled programs: found by the name of their target, and seen to be up to date.
//!
//! Nothing is built here. A build that is missing, or older than its sources, is said
//! with the command that makes it: breakpoints in yesterday's program lead astray.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ignore::WalkBuilder;

use crate::adapters::elf;
use crate::servers::roots::{self, Contents, Rule};
use crate::tools::Failure;

/// Source files that are looked at for their age.
const MOST_SOURCES: usize = 5_000;
/// Programs that are listed.
const LISTED: usize = 8;

/// A program that was found.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) path: PathBuf,
    pub(crate) notes: Vec<String>,
}

/// Finds a target by its name in the builds of every root of the folder.
pub(crate) async fn find(top: &Path, markers: &[String], given: &str) -> Result<Built, Failure> {
    let roots: Vec<PathBuf> =
        roots::below(markers, top).await.into_iter().filter_map(Result::ok).collect();
    let wanted = given.to_owned();
    let of = roots.clone();
    let looked = tokio::task::spawn_blocking(move || {
        let programs: Vec<PathBuf> = of.iter().flat_map(|root| programs(root)).collect();
        let found = programs.iter().find(|path| is_target(path, &wanted)).cloned();
        (found, programs)
    })
    .await;
    let (found, programs) = looked.unwrap_or_default();
    if let Some(path) = found {
        let notes = warnings(top, markers, &path).await;
        return Ok(Built { path, notes });
    }
    let shown: Vec<_> = programs.iter().take(LISTED).map(|path| relative(top, path)).collect();
    let there = match shown.as_slice() {
        [] => "nothing is built yet".to_owned(),
        shown => format!("built are, the newest first: {}", shown.join(", ")),
    };
    let way_out = roots.first().map_or_else(String::new, |root| {
        format!("; build it with `{}`", command(root, Some(Path::new(given))))
    });
    Err(Failure::new(format!("debug: there is no program {given}: {there}{way_out}")))
}

fn relative(top: &Path, path: &Path) -> String {
    path.strip_prefix(top).unwrap_or(path).display().to_string()
}

/// Returns the command that builds a program of this root.
fn command(root: &Path, program: Option<&Path>) -> &'static str {
    let test = program.is_some_and(|path| path.iter().any(|part| part == "deps"));
    match (root.join("Cargo.toml").exists(), test) {
        (true, true) => "cargo test --no-run",
        (true, false) => "cargo build",
        (false, _) => "cmake -DCMAKE_BUILD_TYPE=Debug -B build && cmake --build build",
    }
}

/// Lists the programs that builds of this root have made, the newest first, with those
/// of an optimised build last: they have no line to stop at.
fn programs(root: &Path) -> Vec<PathBuf> {
    let target = root.join("target");
    let mut folders = vec![
        target.join("debug"),
        target.join("debug/examples"),
        target.join("debug/deps"),
        root.to_owned(),
    ];
    let named = |name: &str| name.starts_with("build") || name.starts_with("cmake-build");
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        if named(&entry.file_name().to_string_lossy()) && entry.path().is_dir() {
            folders.push(entry.path());
        }
    }
    let mut found: Vec<_> = folders.iter().flat_map(|folder| in_folder(folder)).collect();
    found.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    let optimised = in_folder(&target.join("release"));
    found.into_iter().chain(optimised).map(|(_, path)| path).collect()
}

fn in_folder(folder: &Path) -> Vec<(SystemTime, PathBuf)> {
    let program = |path: PathBuf| {
        let library =
            path.extension().is_some_and(|ext| ext == "so" || ext == "o" || ext == "rlib");
        let time = crate::shims::executable(&path).ok().filter(|runs| *runs)?;
        debug_assert!(time);
        let time = path.metadata().and_then(|meta| meta.modified()).ok()?;
        (!library && elf::is_elf(&path)).then_some((time, path))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| program(entry.path())).collect()
}

/// Is this the program of a target: of its name, or with cargo's hash behind it.
fn is_target(path: &Path, wanted: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name == wanted {
        return true;
    }
    let hashed = name.rsplit_once('-').is_some_and(|(stem, hash)| {
        stem == wanted.replace('-', "_")
            && hash.len() == 16
            && hash.chars().all(|c| c.is_ascii_hexdigit())
    });
    hashed && path.parent().is_some_and(|folder| folder.ends_with("deps"))
}

/// Says what is to be known of a program: that it is older than its sources, or that it
/// carries nothing to debug it by.
pub(crate) async fn warnings(top: &Path, markers: &[String], path: &Path) -> Vec<String> {
    let folder = path.parent().unwrap_or(top);
    let root = Rule::nearest(markers).above(folder, top, &Contents::default());
    let Ok(root) = root else { return Vec::new() };
    let (top, path) = (top.to_owned(), path.to_owned());
    let looked = tokio::task::spawn_blocking(move || {
        let built = path.metadata().and_then(|meta| meta.modified()).ok();
        let stale = built.and_then(|built| newer_source(&root, built)).map(|source| {
            format!(
                "{} was built before {} was changed: `{}` brings it up to date",
                relative(&top, &path),
                relative(&top, &source),
                command(&root, Some(&path))
            )
        });
        let bare = (!elf::can_be_debugged(&path)).then(|| {
            format!(
                "{} has no debug information, so no breakpoint binds: `{}` makes one that has",
                relative(&top, &path),
                command(&root, Some(&path))
            )
        });
        stale.into_iter().chain(bare).collect()
    });
    looked.await.unwrap_or_default()
}

fn newer_source(root: &Path, built: SystemTime) -> Option<PathBuf> {
    let walk = WalkBuilder::new(root)
        .require_git(false)
        .filter_entry(|entry| {
            let name = entry.file_name().to_string_lossy();
            name != "target" && !name.starts_with("build") && !name.starts_with("cmake-build")
        })
        .build();
    let source = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("rs" | "c" | "cc" | "cpp" | "cxx" | "h" | "hh" | "hpp"))
    };
    let newer = |path: &Path| {
        path.metadata().and_then(|meta| meta.modified()).is_ok_and(|changed| changed > built)
    };
    walk.filter_map(Result::ok)
        .map(ignore::DirEntry::into_path)
        .filter(|path| source(path))
        .take(MOST_SOURCES)
        .find(|path| newer(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_known_by_its_name_and_with_cargos_hash() {
        for (path, wanted, is) in [
            ("/p/target/debug/tool", "tool", true),
            ("/p/target/debug/deps/my_test-0123456789abcdef", "my-test", true),
            ("/p/target/debug/deps/my_test-0123456789abcdef", "my", false),
            ("/p/build/my_test-0123456789abcdef", "my-test", false),
            ("/p/target/debug/deps/tool-notahash", "tool", false),
        ] {
            assert_eq!(is_target(Path::new(path), wanted), is, "{path}");
        }
    }
}
