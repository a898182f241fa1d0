//! Where a project begins, by the files that stand in its root.
//!
//! For a file: the nearest folder above it that holds a marker, never above the
//! run's own folder. For the whole folder: downwards too, as a monorepo keeps its
//! projects in subfolders; that walk is bounded and skips what git ignores.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

/// How deep below the run's folder a root is looked for.
const DEPTH: usize = 4;
/// How many folders are looked into at most.
const FOLDERS: usize = 2_000;
/// How many roots are taken at most.
const ROOTS: usize = 16;
/// How many names a message lists.
const LISTED: usize = 8;

/// A root, or why there is none.
pub(crate) type Root = Result<PathBuf, String>;

/// Returns the nearest root at or above `folder` and not above `top`.
pub(crate) fn above(markers: &[String], folder: &Path, top: &Path) -> Root {
    let within = || folder.ancestors().take_while(|folder| folder.starts_with(top));
    within().find(|folder| is_root(markers, folder)).map(Path::to_owned).ok_or_else(|| {
        let looked = within().map(|folder| folder.display().to_string());
        format!("none of {} in {}", some_of(markers), some_of(&looked.collect::<Vec<_>>()))
    })
}

/// Returns the roots at or below `top`, outermost first; a root inside another one
/// counts as well. One failure where there is none.
pub(crate) async fn below(markers: &[String], top: &Path) -> Vec<Root> {
    let (wanted, at) = (markers.to_vec(), top.to_owned());
    let walked = tokio::task::spawn_blocking(move || walk(&wanted, &at)).await;
    let (roots, cut) = walked.unwrap_or_default();
    if !roots.is_empty() {
        return roots.into_iter().map(Ok).collect();
    }
    let bound = if cut { format!(", the first {FOLDERS} folders") } else { String::new() };
    vec![Err(format!(
        "none of {} in {} or {DEPTH} levels below it{bound}",
        some_of(markers),
        top.display()
    ))]
}

fn walk(markers: &[String], top: &Path) -> (Vec<PathBuf>, bool) {
    let walk = WalkBuilder::new(top)
        .max_depth(Some(DEPTH))
        .require_git(false)
        .filter_entry(|entry| {
            entry.file_type().is_some_and(|kind| kind.is_dir())
                && entry.file_name() != "node_modules"
        })
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .build();
    let mut roots = Vec::new();
    for (seen, entry) in walk.filter_map(Result::ok).enumerate() {
        if seen >= FOLDERS || roots.len() >= ROOTS {
            return (roots, true);
        }
        if is_root(markers, entry.path()) {
            roots.push(entry.into_path());
        }
    }
    (roots, false)
}

fn is_root(markers: &[String], folder: &Path) -> bool {
    markers.iter().any(|marker| folder.join(marker).exists())
}

fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;

    fn tree(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap().join("top");
        for file in files {
            let path = top.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        (place, top)
    }

    fn markers() -> Vec<String> {
        ["pyproject.toml", "setup.py"].map(str::to_owned).to_vec()
    }

    #[test]
    fn the_nearest_root_above_a_file_is_taken_and_none_above_the_run() {
        let (_place, top) = tree(&["pyproject.toml", "pkg/setup.py", "pkg/a/b/x.py", "other/x.py"]);
        assert_eq!(above(&markers(), &top.join("pkg/a/b"), &top), Ok(top.join("pkg")));
        assert_eq!(above(&markers(), &top.join("other"), &top), Ok(top.clone()));
        let below = top.join("other");
        let none = above(&markers(), &below, &below).unwrap_err();
        assert_eq!(none, format!("none of pyproject.toml, setup.py in {}", below.display()));
    }

    #[tokio::test]
    async fn roots_below_are_found_and_ignored_folders_are_not() {
        let (_place, top) = tree(&[
            "b/pyproject.toml",
            "a/deep/er/setup.py",
            "node_modules/x/setup.py",
            "out/setup.py",
            ".venv/setup.py",
            "1/2/3/4/5/setup.py",
        ]);
        std::fs::write(top.join(".gitignore"), "out/\n").unwrap();
        let found = below(&markers(), &top).await;
        assert_eq!(found, [Ok(top.join("a/deep/er")), Ok(top.join("b"))]);
        let none = below(&["go.mod".to_owned()], &top).await;
        assert_eq!(
            none,
            [Err(format!("none of go.mod in {} or 4 levels below it", top.display()))]
        );
    }
}
