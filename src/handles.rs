//! Results that are too long to show, kept for the run that made them.
//!
//! One mechanism for every tool: what does not fit goes to a file under the data
//! folder and is named `hostler://RUN/N`, which `read` takes as a path. Bounded per
//! run in count and bytes: the oldest make room, and are then said to be gone. All of
//! it goes with the run. The text shown is cut in `capture`.

pub(crate) mod capture;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hostler_actors::ids::RunId;

/// What a handle begins with.
pub(crate) const SCHEME: &str = "hostler://";

/// How much one run may keep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Handles at once.
    pub(crate) handles: usize,
    /// Bytes of all of them.
    pub(crate) bytes: u64,
    /// Bytes of one.
    pub(crate) each: u64,
    /// Bytes of a result that are shown: half of them its head, half its tail.
    pub(crate) shown: usize,
}

impl Limits {
    /// One may be as long as a chatty build, and four of that kind fit.
    pub(crate) const fn showing(shown: usize) -> Self {
        Self { handles: 200, bytes: 256 * 1024 * 1024, each: 64 * 1024 * 1024, shown }
    }
}

/// The name of a kept result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Handle {
    run: RunId,
    number: u64,
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.run, self.number)
    }
}

/// Why a handle leads nowhere.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandleError {
    /// It is not of our form.
    #[error("`{given}` is not a handle: they look like {SCHEME}r1f/3")]
    Malformed { given: String },
    /// Another run's results are its own.
    #[error("{handle}: belongs to another run, whose results only it can read")]
    Foreign { handle: Handle },
    /// It was there once.
    #[error(
        "{handle}: gone: a run keeps its last {handles} long results and {bytes} bytes: make the \
         call again"
    )]
    Gone { handle: Handle, handles: usize, bytes: u64 },
    /// It never was.
    #[error("{handle}: this run has no such result")]
    Unknown { handle: Handle },
    /// The disk.
    #[error("{handle}: cannot be read: {source}")]
    Io { handle: Handle, source: io::Error },
}

/// The long results of one run. Cloning shares them; the last one removes the files.
#[derive(Clone, Debug)]
pub(crate) struct OutputHandles(Arc<Shelf>);

#[derive(Debug)]
struct Shelf {
    run: RunId,
    folder: PathBuf,
    limits: Limits,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    last: u64,
    bytes: BTreeMap<u64, u64>,
}

impl OutputHandles {
    /// Makes an empty shelf for a run. Its folder below `data` is made when needed.
    pub(crate) fn new(run: RunId, data: &Path, limits: Limits) -> Self {
        let folder = data.join(run.to_string());
        Self(Arc::new(Shelf { run, folder, limits, kept: Mutex::default() }))
    }

    /// Returns how many bytes of a result are shown.
    pub(crate) fn shown(&self) -> usize {
        self.0.limits.shown
    }

    /// Opens what a handle names.
    pub(crate) fn open(&self, given: &str) -> Result<File, HandleError> {
        let handle = parse(given)?;
        if handle.run != self.0.run {
            return Err(HandleError::Foreign { handle });
        }
        let kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if handle.number == 0 || handle.number > kept.last {
            return Err(HandleError::Unknown { handle });
        }
        if !kept.bytes.contains_key(&handle.number) {
            let Limits { handles, bytes, .. } = self.0.limits;
            return Err(HandleError::Gone { handle, handles, bytes });
        }
        File::open(self.0.path(handle.number)).map_err(|source| HandleError::Io { handle, source })
    }

    /// Begins a new long result. Blocks on the disk.
    pub(crate) fn begin(&self) -> io::Result<Spill> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0.folder)?;
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let number = kept.last + 1;
        let file =
            File::options().write(true).create_new(true).mode(0o600).open(self.0.path(number))?;
        kept.last = number;
        kept.bytes.insert(number, 0);
        self.0.make_room(&mut kept);
        drop(kept);
        let handle = Handle { run: self.0.run, number };
        Ok(Spill { shelf: Arc::clone(&self.0), handle, file, written: 0 })
    }
}

impl Shelf {
    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(number.to_string())
    }

    fn make_room(&self, kept: &mut Kept) {
        while kept.bytes.len() > self.limits.handles
            || (kept.bytes.len() > 1 && kept.bytes.values().sum::<u64>() > self.limits.bytes)
        {
            let Some((oldest, _)) = kept.bytes.pop_first() else { return };
            self.remove(&self.path(oldest));
        }
    }

    fn remove(&self, path: &Path) {
        if let Err(error) = std::fs::remove_file(path) {
            tracing::warn!(run = %self.run, %error, "a long result stays on the disk");
        }
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        if kept.last == 0 {
            return;
        }
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            tracing::warn!(run = %self.run, %error, "long results stay on the disk");
        }
    }
}

/// A long result that is being written.
#[derive(Debug)]
pub(crate) struct Spill {
    shelf: Arc<Shelf>,
    handle: Handle,
    file: File,
    written: u64,
}

impl Spill {
    /// Returns its name.
    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    /// Appends as much as may be kept, and returns how much that was. Blocks on the disk.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.shelf.limits.each.saturating_sub(self.written);
        let fits = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        let mut kept = self.shelf.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(counted) = kept.bytes.get_mut(&self.handle.number) else { return Ok(0) };
        // Counted first, so that room is there when it is written.
        *counted += fits as u64;
        self.shelf.make_room(&mut kept);
        drop(kept);
        self.file.write_all(bytes.get(..fits).unwrap_or_default())?;
        self.written += fits as u64;
        Ok(fits)
    }
}

fn parse(given: &str) -> Result<Handle, HandleError> {
    given
        .strip_prefix(SCHEME)
        .and_then(|rest| rest.split_once('/'))
        .and_then(|(run, number)| {
            Some(Handle { run: run.parse().ok()?, number: number.parse().ok()? })
        })
        .ok_or_else(|| HandleError::Malformed { given: given.to_owned() })
}

#[cfg(test)]
mod tests;
