//! What tells without reading whether a file is still the one that was read.

use std::os::fd::AsFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{OFlags, fstat};

use super::{Folder, FolderError, Inside, below};

/// Place, size and times of a file. The time of change cannot be set by programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Returns the stamp of an open file.
    pub(crate) fn of(file: &impl AsFd) -> std::io::Result<Self> {
        let stat = fstat(file)?;
        Ok(Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        })
    }

    /// Returns the file system.
    pub(crate) fn device(&self) -> u64 {
        self.device
    }

    /// Returns the place in it.
    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    /// Returns the bytes of the file.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns how long ago the file was last changed.
    pub(crate) fn age(&self) -> Duration {
        let (seconds, nanoseconds) = self.changed;
        let changed = Duration::new(
            u64::try_from(seconds).unwrap_or_default(),
            u32::try_from(nanoseconds).unwrap_or_default(),
        );
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(changed)
    }
}

impl Folder {
    /// Returns a file's stamp, without opening it.
    pub(crate) fn stamp(&self, file: &Inside) -> Result<Stamp, FolderError> {
        let failed = |error| FolderError::of(&file.name(), "looked at", error);
        let looked = below(&self.0.dir, file.dot(), OFlags::PATH | OFlags::CLOEXEC);
        Stamp::of(&looked.map_err(|error| failed(error.into()))?).map_err(failed)
    }
}
