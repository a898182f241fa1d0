//! Visits the files of a folder, for searches.
//!
//! What git ignores is left out (also where there is no repository), and so are hidden
//! files unless asked for, `.git`, and other worktrees that were put inside: their files
//! are somebody else's copies. Symbolic links are not followed. The walk itself goes by
//! names; whoever opens what it found goes through the folder again and is confined.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ignore::{DirEntry, WalkBuilder};

use super::disk::{Cut, Leash};
use super::{Folder, Inside};

/// What a walk left out, and why it ended.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// What ended it early, if anything did.
    pub(crate) cut: Option<Cut>,
    /// Folders that could not be read.
    pub(crate) unreadable: usize,
    /// Worktrees that were left out.
    pub(crate) worktrees: usize,
}

impl Folder {
    /// Visits the regular files below a folder, in the order of their paths, until
    /// there are no more, the visitor breaks or the leash ends.
    pub(crate) fn walk(
        &self,
        start: &Inside,
        hidden: bool,
        leash: &Leash,
        mut visit: impl FnMut(Inside) -> ControlFlow<()>,
    ) -> Walked {
        let worktrees = Arc::new(AtomicUsize::new(0));
        let mut walked = Walked::default();
        for entry in files(start.absolute(), hidden, &worktrees) {
            walked.cut = leash.cut();
            if walked.cut.is_some() {
                break;
            }
            let Ok(entry) = entry else {
                walked.unreadable += 1;
                continue;
            };
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let absolute = entry.into_path();
            let Ok(relative) = absolute.strip_prefix(self.root()) else { continue };
            let file = Inside { relative: relative.to_owned(), absolute };
            if visit(file).is_break() {
                break;
            }
        }
        walked.worktrees = worktrees.load(Ordering::Relaxed);
        walked
    }
}

fn files(start: &Path, hidden: bool, worktrees: &Arc<AtomicUsize>) -> ignore::Walk {
    let worktrees = Arc::clone(worktrees);
    let mut walk = WalkBuilder::new(start);
    walk.hidden(!hidden).require_git(false).follow_links(false).sort_by_file_name(OsStr::cmp);
    walk.filter_entry(move |entry| {
        if entry.depth() == 0 {
            return true;
        }
        if entry.file_name() == ".git" {
            return false;
        }
        let worktree = is_worktree(entry);
        worktrees.fetch_add(usize::from(worktree), Ordering::Relaxed);
        !worktree
    });
    walk.build()
}

/// A linked worktree has a file `.git` that leads into its repository's `worktrees`; a
/// submodule has one too, but belongs to the project.
fn is_worktree(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
        && std::fs::symlink_metadata(entry.path().join(".git")).is_ok_and(|git| git.is_file())
        && std::fs::read_to_string(entry.path().join(".git"))
            .is_ok_and(|link| link.starts_with("gitdir:") && link.contains("/worktrees/"))
}
