//! Files that may break when a file is written: those that mention its name.
//!
//! Servers tell only of files that are open. A bounded look for the module's name
//! as a word finds most of the others; what it misses, the project's checker finds.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use globset::{GlobSet, GlobSetBuilder};
use ignore::WalkBuilder;

/// How many files are taken.
const TAKEN: usize = 20;
/// How many files are looked into.
const LOOKED: usize = 2_000;
/// How much of a file is looked at: imports stand at its head.
const HEAD: u64 = 64 * 1024;
/// How long the look may take: the write waits for it.
const BOUND: Duration = Duration::from_millis(400);

/// Returns the files below `root` that fit the patterns and mention one of the
/// written files, which are left out themselves.
pub(super) fn find(root: &Path, patterns: &[String], written: &[PathBuf]) -> Vec<PathBuf> {
    let stems: Vec<_> = written.iter().filter_map(|path| stem(path)).collect();
    let (Some(files), false) = (globs(patterns), stems.is_empty()) else { return Vec::new() };
    let until = Instant::now() + BOUND;
    let walk = WalkBuilder::new(root)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != "node_modules")
        .build();
    walk.filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter(|entry| files.is_match(entry.file_name()))
        .take(LOOKED)
        .take_while(|_| Instant::now() < until)
        .filter(|entry| !written.iter().any(|path| path == entry.path()))
        .filter(|entry| head(entry.path()).is_some_and(|head| mentions(&head, &stems)))
        .take(TAKEN)
        .map(ignore::DirEntry::into_path)
        .collect()
}

fn globs(patterns: &[String]) -> Option<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(globset::Glob::new(pattern).ok()?);
    }
    set.build().ok()
}

/// Says whether a file is one of these, or mentions one.
pub(super) fn depends_on(path: &Path, others: &[Arc<Path>]) -> bool {
    let stems: Vec<_> = others.iter().filter_map(|other| stem(other)).collect();
    let mentions_one = || head(path).is_none_or(|head| mentions(&head, &stems));
    others.iter().any(|other| **other == *path) || mentions_one()
}

/// Returns the name by which others import a file.
fn stem(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_str()?;
    // A package is imported by the name of its folder.
    let of_folder = matches!(stem, "__init__" | "index" | "mod");
    let folder = || path.parent().and_then(|folder| folder.file_name()?.to_str());
    let name = if of_folder { folder()? } else { stem };
    Some(name.to_owned())
}

fn head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    Some(head)
}

fn mentions(text: &[u8], words: &[String]) -> bool {
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    text.split(|byte| !part(byte)).any(|word| words.iter().any(|wanted| wanted.as_bytes() == word))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;

    #[test]
    fn files_that_mention_the_module_are_found() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        let files = [
            ("pkg/shapes.py", "import shapes"),
            ("pkg/report.py", "from pkg.shapes import Circle"),
            ("pkg/other.py", "reshapes = 1"),
            ("pkg/notes.md", "shapes"),
            (".venv/lib/x.py", "import shapes"),
            ("main.py", "import pkg"),
        ];
        for (name, text) in files {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), text).unwrap();
        }
        let found = |written: &str| {
            let mut found = find(root, &["*.py".to_owned()], &[root.join(written)]);
            found.sort();
            found
        };
        assert_eq!(found("pkg/shapes.py"), [root.join("pkg/report.py")]);
        assert_eq!(found("pkg/__init__.py"), [root.join("main.py"), root.join("pkg/report.py")]);
        assert!(find(root, &["*.py".to_owned()], &[]).is_empty());
    }
}
