//! Where installed tools stand, so that one is there whole or not at all.
//!
//! `TOOL/VERSION` is a link to `TOOL/VERSION.RANDOM`, made when everything below
//! that is complete. The folder itself never moves: the scripts of a Python
//! environment hold its path. What no link leads to was left by an installation
//! that was killed, and is removed by the next.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::folders;

/// How often a lock that somebody else holds is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// The place of one tool in one version.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    tool: PathBuf,
    version: String,
}

/// Why a place cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    /// A name that would lead out of the folder.
    #[error("`{0}` cannot be the name of a folder: use letters, digits and `.+_-`")]
    BadName(String),
    /// Somebody else installs the same tool for too long.
    #[error("{path}: another installation of this tool is still going on after {bound:?}")]
    Busy { path: PathBuf, bound: Duration },
    /// The folder cannot be made private.
    #[error(transparent)]
    Folder(#[from] folders::FolderError),
    /// The system refused.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> PlaceError {
    let path = path.to_owned();
    move |source| PlaceError::Io { path, source }
}

impl Place {
    /// Names the place of a tool.
    pub(crate) fn new(tools: &Path, tool: &str, version: &str) -> Result<Self, PlaceError> {
        for name in [tool, version] {
            let plain = |c: char| c.is_ascii_alphanumeric() || ".+_-".contains(c);
            if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
                return Err(PlaceError::BadName(name.to_owned()));
            }
        }
        Ok(Self { tool: tools.join(tool), version: version.to_owned() })
    }

    /// Returns the folder of its programs.
    pub(crate) fn bin(&self) -> PathBuf {
        self.link().join("bin")
    }

    /// Is it there, whole.
    pub(crate) fn is_complete(&self) -> bool {
        self.link().exists()
    }

    /// Waits until nobody else installs the tool, sweeps what was left half done,
    /// and makes a folder to install into.
    pub(crate) async fn stage(
        &self,
        bound: Duration,
        on_wait: &mut (dyn FnMut() + Send),
    ) -> Result<Stage, PlaceError> {
        folders::make_private(&self.tool)?;
        let lock = self.lock(bound, on_wait).await?;
        self.sweep();
        let folder = tempfile::Builder::new()
            .prefix(&format!("{}.", self.version))
            .tempdir_in(&self.tool)
            .map_err(io_error(&self.tool))?;
        Ok(Stage { place: self.clone(), folder, _lock: lock })
    }

    fn link(&self) -> PathBuf {
        self.tool.join(&self.version)
    }

    async fn lock(
        &self,
        bound: Duration,
        on_wait: &mut (dyn FnMut() + Send),
    ) -> Result<Flock<File>, PlaceError> {
        let path = self.tool.join(".lock");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(io_error(&path))?;
        let deadline = Instant::now() + bound;
        let mut told = false;
        loop {
            let errno = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(lock),
                Err((back, errno)) => {
                    file = back;
                    errno
                }
            };
            if errno != Errno::EWOULDBLOCK {
                return Err(PlaceError::Io { path, source: errno.into() });
            }
            if Instant::now() >= deadline {
                return Err(PlaceError::Busy { path, bound });
            }
            if !told {
                on_wait();
                told = true;
            }
            sleep(RETRY).await;
        }
    }

    /// Removes folders of this version that were never published. Only under the lock.
    fn sweep(&self) {
        let published = fs::read_link(self.link()).ok();
        let Ok(entries) = fs::read_dir(&self.tool) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let ours = name.to_string_lossy().starts_with(&format!("{}.", self.version));
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if ours && !is_link && published.as_deref() != Some(Path::new(&name)) {
                // What cannot be removed only takes room.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// A folder to install into, removed again unless it is published.
#[derive(Debug)]
pub(crate) struct Stage {
    place: Place,
    folder: TempDir,
    _lock: Flock<File>,
}

impl Stage {
    /// Returns the folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Makes it the tool's folder, in one step.
    pub(crate) fn publish(self) -> Result<(), PlaceError> {
        let Self { place, folder, _lock } = self;
        let target = PathBuf::from(folder.path().file_name().unwrap_or_default());
        let fresh = place.tool.join(".link");
        let _ = fs::remove_file(&fresh);
        symlink(target, &fresh).map_err(io_error(&fresh))?;
        fs::rename(&fresh, place.link()).map_err(io_error(&place.link()))?;
        let _published = folder.keep();
        Ok(())
    }
}
