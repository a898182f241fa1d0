//! Changes several files together: all of them or none, whatever happens.
//!
//! Every new content is written beside its place and synced, and a journal names all
//! of it, before the first file is touched. Then each pair is exchanged in one step of
//! the kernel, and what came out is compared with what was expected: if anybody wrote
//! in between, everything goes back. A crash leaves the journal, from which `journal`
//! restores all the old. What a file has beside its bytes goes along, as in `replace`.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, fsync, linkat, mkdirat, openat, renameat, renameat_with,
    unlinkat,
};
use rustix::io::Errno;

use super::journal::{Entry, Journal, Journals, Kind, Record};
use super::replace::{Temp, put_new};
use super::{DIRECTORY, Folder, FolderError, Hash, Inside, READ, below};

/// What is to become of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Another content, where it still has the known one.
    Replace { file: Inside, was: Hash, content: Vec<u8> },
    /// A new file, with the mode and the like of another where one is named.
    Create { file: Inside, content: Vec<u8>, like: Option<Inside> },
    /// No file any more, where it still has the known content.
    Delete { file: Inside, was: Hash },
}

impl Step {
    /// Returns the file.
    pub(crate) fn file(&self) -> &Inside {
        match self {
            Self::Replace { file, .. } | Self::Create { file, .. } | Self::Delete { file, .. } => {
                file
            }
        }
    }

    fn content(&self) -> Option<&[u8]> {
        match self {
            Self::Replace { content, .. } | Self::Create { content, .. } => Some(content),
            Self::Delete { .. } => None,
        }
    }

    fn was(&self) -> Option<Hash> {
        match self {
            Self::Replace { was, .. } | Self::Delete { was, .. } => Some(*was),
            Self::Create { .. } => None,
        }
    }
}

/// What a commit came to.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// What could not be kept, by file.
    pub(crate) lost: Vec<(String, Vec<&'static str>)>,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommitError {
    /// Files are not what the change was made for.
    #[error("nothing was written: {}", .0.join("; "))]
    Moved(Vec<String>),
    /// One of them cannot be changed.
    #[error("nothing was written: {0}")]
    Folder(#[from] FolderError),
    /// The journal cannot be written.
    #[error("nothing was written: the journal of the change: {0}")]
    Journal(std::io::Error),
    /// Going back did not succeed everywhere.
    #[error("the change was taken back, except where somebody wrote meanwhile: {}", .0.join("; "))]
    Torn(Vec<String>),
    /// It was stopped where it stood, as by a crash. Only tests do.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests stop where they stand"))]
    #[error("stopped")]
    Stopped,
}

/// Asked before each thing that is done on the disk; an error stops everything there.
type Pulse<'a> = &'a mut dyn FnMut() -> Result<(), CommitError>;

impl Folder {
    /// Makes every step or none. The caller holds the locks of all paths.
    pub(crate) fn commit(
        &self,
        steps: &[Step],
        journals: &Journals,
    ) -> Result<Committed, CommitError> {
        self.commit_with(steps, journals, &mut || Ok(()))
    }

    pub(super) fn commit_with(
        &self,
        steps: &[Step],
        journals: &Journals,
        pulse: Pulse<'_>,
    ) -> Result<Committed, CommitError> {
        let moved: Vec<_> = steps.iter().filter_map(|step| self.moved(step).transpose()).collect();
        let moved = moved.into_iter().collect::<Result<Vec<_>, _>>()?;
        if !moved.is_empty() {
            return Err(CommitError::Moved(moved));
        }
        let made = Vec::new();
        let mut commit =
            Commit { folder: self, steps, entries: Vec::new(), dirs: Vec::new(), made };
        match commit.prepare().and_then(|()| commit.record(journals)) {
            Ok(journal) => commit.carry_out(journal, pulse),
            Err(error) => {
                commit.remove_made();
                Err(error)
            }
        }
    }

    /// Says what keeps a step from being made, if anything does.
    fn moved(&self, step: &Step) -> Result<Option<String>, FolderError> {
        let name = step.file().name();
        let Some(was) = step.was() else {
            let there = self.kind(step.file()).is_some();
            return Ok(there.then(|| format!("{name} exists by now")));
        };
        match self.hash(step.file()) {
            Ok(hash) if hash == was => Ok(None),
            Ok(_) => Ok(Some(format!("{name} has changed"))),
            Err(FolderError::Missing { .. }) => Ok(Some(format!("{name} is gone"))),
            Err(error) => Err(error),
        }
    }
}

struct Commit<'a> {
    folder: &'a Folder,
    steps: &'a [Step],
    entries: Vec<Entry>,
    /// The folder of each step's file.
    dirs: Vec<OwnedFd>,
    /// Folders that were made for new files.
    made: Vec<PathBuf>,
}

impl Commit<'_> {
    /// Opens the folders, and chooses the names beside the files.
    fn prepare(&mut self) -> Result<(), CommitError> {
        for step in self.steps {
            let file = step.file();
            let name = file.name();
            let failed = |error: Errno| FolderError::of(&name, "written", error);
            let (Some(parent), Some(leaf)) = (file.relative.parent(), file.relative.file_name())
            else {
                return Err(failed(Errno::ISDIR).into());
            };
            if let Step::Create { .. } = step {
                self.make(parent).map_err(failed)?;
            }
            let dir = self.folder.parent(parent, false).map_err(failed)?;
            if step.was().is_some() {
                // Says no to what is write-protected, before anything is done.
                self.folder.old(&dir, leaf, &name)?;
            }
            self.dirs.push(dir);
            self.entries.push(Entry {
                kind: match step {
                    Step::Replace { .. } => Kind::Replace,
                    Step::Create { .. } => Kind::Create,
                    Step::Delete { .. } => Kind::Delete,
                },
                path: file.relative.clone(),
                beside: Temp::name().map_err(failed)?,
                was: step.was(),
                new: step.content().map(Hash::of),
            });
        }
        Ok(())
    }

    fn make(&mut self, parent: &Path) -> Result<(), Errno> {
        let mut here = PathBuf::new();
        for part in parent.components() {
            let above = self.folder.parent(&here, false)?;
            here.push(part);
            match mkdirat(&above, part.as_os_str(), Mode::from_raw_mode(0o777)) {
                Ok(()) => self.made.push(here.clone()),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn remove_made(&self) {
        for folder in self.made.iter().rev() {
            if let (Some(parent), Some(leaf)) = (folder.parent(), folder.file_name())
                && let Ok(parent) = self.folder.parent(parent, false)
            {
                // One that somebody has put something into stays.
                let _ = unlinkat(&parent, leaf, AtFlags::REMOVEDIR);
            }
        }
    }

    fn record(&self, journals: &Journals) -> Result<Journal, CommitError> {
        let record = Record {
            root: self.folder.root().to_owned(),
            entries: self.entries.clone(),
            made: self.made.clone(),
        };
        journals.begin(&record).map_err(CommitError::Journal)
    }

    fn carry_out(&self, journal: Journal, pulse: Pulse<'_>) -> Result<Committed, CommitError> {
        let done = self.write(pulse).and_then(|lost| self.swap(pulse).map(|()| lost));
        match done {
            Ok(lost) => {
                pulse()?;
                // From here on a crash ends with all the new.
                if let Err(error) = journal.commit() {
                    return Err(self.back(journal, CommitError::Journal(error)));
                }
                self.sync_dirs();
                for (entry, dir) in self.entries.iter().zip(&self.dirs) {
                    pulse()?;
                    let _ = unlinkat(dir, &entry.beside, AtFlags::empty());
                }
                journal.end();
                Ok(Committed { lost })
            }
            Err(CommitError::Stopped) => {
                journal.abandon();
                Err(CommitError::Stopped)
            }
            Err(error) => Err(self.back(journal, error)),
        }
    }

    /// Takes everything back and says why.
    fn back(&self, journal: Journal, why: CommitError) -> CommitError {
        let torn: Vec<_> =
            self.entries.iter().rev().filter_map(|entry| entry.undo(self.folder).err()).collect();
        self.remove_made();
        self.sync_dirs();
        journal.end();
        if torn.is_empty() { why } else { CommitError::Torn(torn) }
    }

    /// Writes every new content beside its file.
    fn write(&self, pulse: Pulse<'_>) -> Result<Vec<(String, Vec<&'static str>)>, CommitError> {
        let mut all_lost = Vec::new();
        let mut written = Vec::new();
        for ((step, entry), dir) in self.steps.iter().zip(&self.entries).zip(&self.dirs) {
            let Some(content) = step.content() else { continue };
            pulse()?;
            let name = step.file().name();
            let failed = |error: Errno| FolderError::of(&name, "written", error);
            let like = match step {
                Step::Create { like, .. } => like.as_ref(),
                Step::Replace { file, .. } => Some(file),
                Step::Delete { .. } => None,
            };
            let temp = Temp::named(dir, entry.beside.clone(), like.is_none()).map_err(failed)?;
            temp.write(content).map_err(|error| FolderError::of(&name, "written", error))?;
            if let Some(like) = like {
                let mut lost = self.take_after(&temp, like).map_err(CommitError::Folder)?;
                if matches!(step, Step::Create { .. }) {
                    lost.retain(|lost| !lost.contains("hard links"));
                }
                if !lost.is_empty() {
                    all_lost.push((name.clone(), lost));
                }
            }
            written.extend(temp.keep().map(|file| (file, name)));
        }
        sync_all(&written)?;
        Ok(all_lost)
    }

    fn take_after(&self, temp: &Temp<'_>, like: &Inside) -> Result<Vec<&'static str>, FolderError> {
        let name = like.name();
        let failed = |error: Errno| FolderError::of(&name, "looked at", error);
        let parent = like.relative.parent().unwrap_or(Path::new(""));
        let leaf = like.relative.file_name().unwrap_or_default();
        let dir = self.folder.parent(parent, false).map_err(failed)?;
        let old = self.folder.old(&dir, leaf, &name)?;
        temp.take_after(&old).map_err(failed)
    }

    fn swap(&self, pulse: Pulse<'_>) -> Result<(), CommitError> {
        for (entry, dir) in self.entries.iter().zip(&self.dirs) {
            pulse()?;
            let name = entry.path.display().to_string();
            let leaf = entry.path.file_name().unwrap_or_default();
            let failed = |error: Errno| FolderError::of(&name, "written", error);
            match entry.kind {
                Kind::Replace => exchange(dir, &entry.beside, leaf).map_err(failed)?,
                Kind::Delete => put_new(dir, leaf, &entry.beside).map_err(failed)?,
                Kind::Create => match put_new(dir, &entry.beside, leaf) {
                    Err(Errno::EXIST) => {
                        return Err(CommitError::Moved(vec![format!("{name} exists by now")]));
                    }
                    done => done.map_err(failed)?,
                },
            }
            pulse()?;
            if let Some(was) = entry.was
                && hash_at(dir, &entry.beside).ok() != Some(was)
            {
                return Err(CommitError::Moved(vec![format!("{name} has changed")]));
            }
        }
        Ok(())
    }

    /// For a power cut. The files are in place whether or not this can be had.
    fn sync_dirs(&self) {
        let mut synced: Vec<&Path> = Vec::new();
        for (entry, dir) in self.entries.iter().zip(&self.dirs) {
            let parent = entry.path.parent().unwrap_or(Path::new(""));
            if synced.contains(&parent) {
                continue;
            }
            synced.push(parent);
            if let Ok(dir) = openat(dir, ".", READ | OFlags::DIRECTORY, Mode::empty()) {
                let _ = fsync(&dir);
            }
        }
    }
}

/// Syncs files side by side: a journaling file system then commits many at a time.
fn sync_all(written: &[(OwnedFd, String)]) -> Result<(), FolderError> {
    const THREADS: usize = 8;
    let each = written.len().div_ceil(THREADS).max(1);
    let sync = |part: &[(OwnedFd, String)]| {
        let mut files = part.iter();
        files.try_for_each(|(file, name)| {
            fsync(file).map_err(|error| FolderError::of(name, "written", error))
        })
    };
    std::thread::scope(|threads| {
        let parts: Vec<_> =
            written.chunks(each).map(|part| threads.spawn(move || sync(part))).collect();
        parts.into_iter().try_for_each(|part| {
            // It only makes a system call: a panic in it is one of ours.
            part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

/// The name under which an old file waits where the kernel cannot exchange two.
pub(super) fn waiting(beside: &OsStr) -> OsString {
    let mut name = beside.to_owned();
    name.push("~");
    name
}

/// Exchanges two files in one step, or where the file system cannot, so that the old
/// content always has a name.
pub(super) fn exchange(dir: &OwnedFd, beside: &OsStr, leaf: &OsStr) -> Result<(), Errno> {
    match renameat_with(dir, beside, dir, leaf, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            let waiting = waiting(beside);
            linkat(dir, leaf, dir, &waiting, AtFlags::empty())?;
            renameat(dir, beside, dir, leaf)?;
            renameat(dir, &waiting, dir, beside)
        }
        done => done,
    }
}

/// Hashes a regular file of a folder.
pub(super) fn hash_at(dir: &OwnedFd, leaf: &OsStr) -> std::io::Result<Hash> {
    let file = below(dir, Path::new(leaf), READ | OFlags::NOFOLLOW)?;
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut std::fs::File::from(file), &mut hasher)?;
    Ok(Hash::finished(&hasher))
}

/// Opens a folder for the recovery.
pub(super) fn dir_of(folder: &Folder, path: &Path) -> Result<OwnedFd, Errno> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    below(&folder.0.dir, parent.unwrap_or(Path::new(".")), DIRECTORY)
}

#[cfg(test)]
mod tests;
