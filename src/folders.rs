//! Where things are kept, and the right to keep them there.
//!
//! A data folder has one owner at a time, by a lock that dies with its process.
//! All folders are 0700. The tricky thing: a unix socket's path has room for 107
//! bytes, so a deep folder gets its socket elsewhere, under a name that everybody
//! who knows the data folder finds.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;

use crate::config::Config;
use crate::config::environment::Environment;

/// `sun_path` is 108 bytes with its final NUL.
const SOCKET_PATH_BYTES: usize = 107;

const LOCK: &str = "owner.lock";
const SOCKET: &str = "hostler.sock";
const PRIVATE: &str = "private";

/// The folders of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folders {
    /// Store, transcripts, spilled output, logs.
    pub(crate) data: PathBuf,
    /// Socket and credentials.
    pub(crate) runtime: PathBuf,
    /// Installed tools, shared by all data folders.
    pub(crate) tools: PathBuf,
    /// What checkers keep between runs; anybody may empty it.
    pub(crate) cache: PathBuf,
    /// Set where the runtime folder is not the one that was wanted.
    pub(crate) note: Option<String>,
}

/// What is wrong with a folder.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    /// Nothing says where it should be.
    #[error("no folder for data: set HOME, XDG_DATA_HOME or HOSTLER_DATA to an absolute path")]
    Nowhere,
    /// It has an owner already.
    #[error(
        "{data}: owned by the running process {pid}: stop it (`hostler stop`) or give another \
         folder with --data"
    )]
    Owned { data: PathBuf, pid: String },
    /// It belongs to somebody else, or others may enter it.
    #[error("{path}: not used, as it {reason}; remove it or set HOSTLER_RUNTIME")]
    Unsafe { path: PathBuf, reason: &'static str },
    /// The system refused.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |source| FolderError::Io { path, source }
}

impl Folders {
    /// Says where the folders are; touches nothing. `data` is the flag's.
    pub(crate) fn locate(
        config: &Config,
        environment: &Environment,
        data: Option<&Path>,
    ) -> Result<Self, FolderError> {
        let usual = environment
            .path("XDG_DATA_HOME")
            .or_else(|| environment.path("HOME").map(|home| home.join(".local/share")))
            .map(|base| base.join("hostler"));
        let set = |path: &PathBuf| (!path.as_os_str().is_empty()).then(|| path.clone());
        let chosen = data.map(Path::to_owned).or_else(|| set(&config.data));
        let data = match chosen {
            // One folder must have one name: it gives the lock and the socket.
            Some(path) => std::path::absolute(&path).map_err(io_error(&path))?,
            None => usual.clone().ok_or(FolderError::Nowhere)?,
        };
        let wanted = match (set(&config.runtime), environment.path("XDG_RUNTIME_DIR")) {
            (Some(runtime), _) => runtime,
            // The user's runtime folder serves the usual data folder only, as
            // each data folder needs a socket of its own.
            (None, Some(base)) if Some(&data) == usual.as_ref() => base.join("hostler"),
            _ => data.join("run"),
        };
        let tools = set(&config.tools)
            .or_else(|| usual.map(|usual| usual.join("tools")))
            .unwrap_or_else(|| data.join("tools"));
        let cache = environment
            .path("XDG_CACHE_HOME")
            .or_else(|| environment.path("HOME").map(|home| home.join(".cache")))
            .map_or_else(|| tools.join(".cache"), |base| base.join("hostler"));
        let (runtime, note) = short_enough(wanted, &data);
        Ok(Self { data, runtime, tools, cache, note })
    }

    /// Returns the path of the daemon's socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.runtime.join(SOCKET)
    }

    /// Returns what no process of a run may see: its own host's folders, and the
    /// usual ones where it hosts on a private folder inside them.
    pub(crate) fn hidden(&self) -> Vec<PathBuf> {
        let usual = self.usual().map(Path::to_owned);
        [self.data.clone(), self.runtime.clone()].into_iter().chain(usual).collect()
    }

    /// Returns where commits under way are noted: one place for all hosts of a user,
    /// as whoever comes next takes back what one that was killed left.
    pub(crate) fn commits(&self) -> PathBuf {
        self.usual().unwrap_or(&self.data).join("commits")
    }

    /// The usual data folder, of one that hosts on a private folder inside it.
    fn usual(&self) -> Option<&Path> {
        self.data.parent().filter(|base| base.ends_with(PRIVATE)).and_then(Path::parent)
    }

    /// Returns the folder of the daemon's logs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.data.join("logs")
    }

    /// Makes the runtime folder, private.
    pub(crate) fn make_runtime(&self) -> Result<(), FolderError> {
        make_private(&self.runtime)
    }

    /// Makes the data folder and becomes its owner, until the answer is dropped.
    pub(crate) fn own(&self) -> Result<Ownership, FolderError> {
        make_private(&self.data)?;
        Ownership::take(&self.data)
    }

    /// Returns who owns the data folder now, if anybody does.
    pub(crate) fn owner(&self) -> Option<String> {
        match Ownership::try_lock(&self.data) {
            Err(FolderError::Owned { pid, .. }) => Some(pid),
            _ => None,
        }
    }

    /// Makes folders for one session that joins nobody, and sweeps those whose
    /// sessions were killed. Deleted when the answer is dropped.
    pub(crate) fn private(&self) -> Result<Private, FolderError> {
        let base = self.data.join(PRIVATE);
        make_private(&self.data)?;
        make_private(&base)?;
        sweep(&base);
        let folder = tempfile::Builder::new()
            .prefix("session-")
            .tempdir_in(&base)
            .map_err(io_error(&base))?;
        let owned = Ownership::take(folder.path())?;
        let data = folder.path().to_owned();
        let (runtime, _) = short_enough(data.join("run"), &data);
        let folders = Self { data, runtime, note: None, ..self.clone() };
        Ok(Private { folders, _owned: owned, _folder: folder })
    }
}

/// The folders of one session, gone with it.
#[derive(Debug)]
pub(crate) struct Private {
    pub(crate) folders: Folders,
    // In this order: the lock is held until the folder is about to go.
    _folder: tempfile::TempDir,
    _owned: Ownership,
}

/// The right to a data folder.
#[derive(Debug)]
pub(crate) struct Ownership {
    _lock: Flock<File>,
}

impl Ownership {
    fn take(data: &Path) -> Result<Self, FolderError> {
        let mut lock = Self::try_lock(data)?;
        lock.set_len(0)
            .and_then(|()| lock.write_all(std::process::id().to_string().as_bytes()))
            .map_err(io_error(data))?;
        Ok(Self { _lock: lock })
    }

    fn try_lock(data: &Path) -> Result<Flock<File>, FolderError> {
        let path = data.join(LOCK);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(io_error(&path))?;
        Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(mut file, errno)| {
            if errno != nix::errno::Errno::EWOULDBLOCK {
                return FolderError::Io { path, source: errno.into() };
            }
            let mut pid = String::new();
            // Empty for the moment in which the owner has not yet written it.
            let _ = file.read_to_string(&mut pid);
            FolderError::Owned { data: data.to_owned(), pid }
        })
    }
}

/// Makes a folder that only its user may enter, or takes one that is there if
/// that holds for it: one that somebody else made could be exchanged under us.
pub(crate) fn make_private(path: &Path) -> Result<(), FolderError> {
    if let Some(parent) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(io_error(path))?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(io_error(path)(error)),
        _ => check_private(path),
    }
}

fn check_private(path: &Path) -> Result<(), FolderError> {
    let meta = fs::symlink_metadata(path).map_err(io_error(path))?;
    // A link of the user's own is followed: whoever can exchange it is the user.
    let owner = meta.uid();
    let meta = fs::metadata(path).map_err(io_error(path))?;
    let unsafe_ = |reason| FolderError::Unsafe { path: path.to_owned(), reason };
    if !meta.is_dir() {
        return Err(unsafe_("is not a folder"));
    }
    if owner != geteuid().as_raw() || meta.uid() != owner {
        return Err(unsafe_("belongs to somebody else"));
    }
    if meta.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(io_error(path))?;
    }
    Ok(())
}

/// Returns a runtime folder whose socket has a path that fits, and a note if it
/// is not the wanted one.
fn short_enough(wanted: PathBuf, data: &Path) -> (PathBuf, Option<String>) {
    let length = wanted.join(SOCKET).as_os_str().len();
    if length <= SOCKET_PATH_BYTES {
        return (wanted, None);
    }
    let hash = blake3::hash(data.as_os_str().as_bytes()).to_hex();
    let short = hash.get(..16).unwrap_or_default();
    let runtime = PathBuf::from(format!("/tmp/hostler-{}-{short}", geteuid()));
    let note = format!(
        "the socket is in {}, as its path in {} would be {length} bytes long and {SOCKET_PATH_BYTES} fit",
        runtime.display(),
        wanted.display(),
    );
    (runtime, Some(note))
}

/// Removes the folders of sessions that ended without removing them.
fn sweep(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        // Not locked yet is also one that is being made: leave it its moment.
        let settled = entry
            .metadata()
            .and_then(|meta| meta.modified())
            .is_ok_and(|made| made.elapsed().is_ok_and(|age| age.as_secs() >= 60));
        if settled && Ownership::try_lock(&entry.path()).is_ok() {
            // What cannot be removed is tried again by the next session.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;
    use crate::config::Loaded;

    fn locate(variables: &[(&str, &str)], data: Option<&str>) -> Result<Folders, FolderError> {
        let config = Loaded::shipped().unwrap().config;
        let environment = variables.iter().copied().collect();
        Folders::locate(&config, &environment, data.map(Path::new))
    }

    fn in_tempdir() -> (tempfile::TempDir, Folders) {
        let folder = tempfile::tempdir().unwrap();
        let folders = locate(&[], Some(folder.path().join("data").to_str().unwrap())).unwrap();
        (folder, folders)
    }

    #[test]
    fn the_usual_folders_are_those_of_the_user() {
        let home = locate(&[("HOME", "/h")], None).unwrap();
        assert_eq!(home.data, Path::new("/h/.local/share/hostler"));
        assert_eq!(home.socket(), Path::new("/h/.local/share/hostler/run/hostler.sock"));
        assert_eq!(home.tools, Path::new("/h/.local/share/hostler/tools"));
        let xdg = [("HOME", "/h"), ("XDG_DATA_HOME", "/d"), ("XDG_RUNTIME_DIR", "/r")];
        let usual = locate(&xdg, None).unwrap();
        assert_eq!(usual.data, Path::new("/d/hostler"));
        assert_eq!(usual.socket(), Path::new("/r/hostler/hostler.sock"));
        let own = locate(&xdg, Some("/x")).unwrap();
        assert_eq!(own.socket(), Path::new("/x/run/hostler.sock"));
        assert_eq!(own.tools, Path::new("/d/hostler/tools"));
        assert!(matches!(locate(&[("HOME", "here")], None), Err(FolderError::Nowhere)));
    }

    #[test]
    fn a_socket_path_that_does_not_fit_falls_back_and_says_so() {
        let deep = format!("/{}", "d".repeat(120));
        let folders = locate(&[], Some(&deep)).unwrap();
        assert!(folders.socket().as_os_str().len() <= SOCKET_PATH_BYTES);
        assert!(folders.note.as_ref().unwrap().contains("bytes long"), "{folders:?}");
        assert_eq!(folders, locate(&[], Some(&deep)).unwrap());
        let fits = format!("/{}", "d".repeat(107 - "//run/hostler.sock".len()));
        assert_eq!(locate(&[], Some(&fits)).unwrap().note, None);
    }

    #[test]
    fn a_data_folder_has_one_owner() {
        let (_folder, folders) = in_tempdir();
        assert_eq!(folders.owner(), None);
        let owned = folders.own().unwrap();
        let error = folders.own().unwrap_err().to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        assert_eq!(folders.owner(), Some(std::process::id().to_string()));
        drop(owned);
        assert_eq!(folders.owner(), None);
        folders.own().unwrap();
    }

    #[test]
    fn folders_are_private_also_if_they_were_not() {
        let (_folder, folders) = in_tempdir();
        fs::create_dir_all(&folders.data).unwrap();
        fs::set_permissions(&folders.data, fs::Permissions::from_mode(0o755)).unwrap();
        let _owned = folders.own().unwrap();
        folders.make_runtime().unwrap();
        for path in [&folders.data, &folders.runtime] {
            assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o700, "{path:?}");
        }
        assert_eq!(fs::metadata(folders.data.join(LOCK)).unwrap().mode() & 0o777, 0o600);
        let file = folders.data.join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(make_private(&file), Err(FolderError::Unsafe { .. })));
    }

    #[test]
    fn a_private_folder_goes_with_its_session_and_the_next_sweeps() {
        let (_folder, folders) = in_tempdir();
        let one = folders.private().unwrap();
        let two = folders.private().unwrap();
        let first = one.folders.data.clone();
        let second = &two.folders.data;
        assert!(first.join(LOCK).exists() && first != *second);
        drop(one);
        assert!(!first.exists() && second.exists());
        let abandoned = folders.data.join(PRIVATE).join("session-old");
        fs::create_dir_all(&abandoned).unwrap();
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        File::open(&abandoned).unwrap().set_modified(old).unwrap();
        drop(folders.private().unwrap());
        assert!(!abandoned.exists() && second.exists());
    }
}
