//! A run's work folder: the only way in which a file tool reaches the disk.
//!
//! A path is resolved in two steps. [`Folder::locate`] follows symbolic links as the
//! kernel would and refuses what ends up outside; what it returns has no link left
//! in it. Everything after that goes through `openat2` below the folder's own
//! descriptor and refuses *any* link, so that a folder that is swapped for a link
//! between the two steps is an error and never a way out. Checking text is no
//! security: nothing here cleans a `..` by hand. May not start a process.

pub(crate) mod commit;
pub(crate) mod disk;
mod error;
pub(crate) mod journal;
pub(crate) mod replace;
mod stamp;
pub(crate) mod walk;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

pub(crate) use self::error::FolderError;
pub(crate) use self::stamp::Stamp;

/// As the kernel does (`MAXSYMLINKS`).
const LINKS: usize = 40;

/// How many files outside one run may be allowed to read.
const OUTSIDE_FILES: usize = 10_000;

/// What names one content: equal exactly where the bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Hash(blake3::Hash);

impl Hash {
    /// Hashes a content.
    pub(crate) fn of(content: &[u8]) -> Self {
        Self(blake3::hash(content))
    }

    /// Reads a hash that was written out.
    fn from_hex(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text).ok().map(Self)
    }

    /// Ends a hash that was fed piece by piece.
    pub(crate) fn finished(hasher: &blake3::Hasher) -> Self {
        Self(hasher.finalize())
    }
}

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

/// A work folder. Cloning shares it.
#[derive(Clone, Debug)]
pub(crate) struct Folder(Arc<Place>);

#[derive(Debug)]
struct Place {
    root: PathBuf,
    dir: OwnedFd,
    outside: Mutex<BTreeSet<PathBuf>>,
}

/// A place inside the folder, with every symbolic link on the way already followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inside {
    relative: PathBuf,
    absolute: PathBuf,
}

impl Inside {
    /// Returns the path below the folder; empty for the folder itself.
    pub(crate) fn relative(&self) -> &Path {
        &self.relative
    }

    /// Returns the canonical path: the key of locks and of what was seen.
    pub(crate) fn absolute(&self) -> &Path {
        &self.absolute
    }

    /// Returns how the place is named to a model.
    pub(crate) fn name(&self) -> String {
        self.dot().display().to_string()
    }

    // `openat2` refuses an empty path.
    fn dot(&self) -> &Path {
        if self.relative.as_os_str().is_empty() { Path::new(".") } else { &self.relative }
    }
}

impl Folder {
    /// Opens a work folder, and finds out whether this kernel can confine paths to it.
    pub(crate) fn open(path: &Path) -> Result<Self, FolderError> {
        let name = path.display().to_string();
        let root = path.canonicalize().map_err(|error| FolderError::of(&name, "opened", error))?;
        let dir = rustix::fs::open(&root, DIRECTORY, Mode::empty())
            .map_err(|error| FolderError::of(&name, "opened", error))?;
        let place = Place { root, dir, outside: Mutex::default() };
        match below(&place.dir, Path::new("."), DIRECTORY) {
            Err(Errno::NOSYS | Errno::PERM) => Err(FolderError::NoOpenat2 { path: name }),
            Err(error) => Err(FolderError::of(&name, "opened", error)),
            Ok(_) => Ok(Self(Arc::new(place))),
        }
    }

    /// Returns the folder's canonical path.
    pub(crate) fn root(&self) -> &Path {
        &self.0.root
    }

    /// Says where a path leads that a model gave: relative to the folder, or absolute.
    /// What it names need not exist yet, but for the folders before a `..`.
    pub(crate) fn locate(&self, given: &str) -> Result<Inside, FolderError> {
        if given.is_empty() || given.contains('\0') {
            return Err(FolderError::BadName { given: given.escape_default().to_string() });
        }
        let absolute = follow(&self.0.root.join(given), LINKS)
            .map_err(|error| FolderError::of(given, "looked up", error))?;
        match absolute.strip_prefix(&self.0.root) {
            Ok(relative) => Ok(Inside { relative: relative.to_owned(), absolute }),
            Err(_) => Err(FolderError::Outside {
                given: given.to_owned(),
                leads_to: absolute,
                root: self.0.root.clone(),
            }),
        }
    }

    /// Allows this run to read one file outside the folder, because a server named it.
    pub(crate) fn allow_outside(&self, path: &Path) {
        let Ok(path) = path.canonicalize() else { return };
        let mut outside = self.0.outside.lock().unwrap_or_else(PoisonError::into_inner);
        if outside.len() < OUTSIDE_FILES {
            outside.insert(path);
        }
    }

    /// Opens a regular file for reading, without ever waiting for a pipe or a device.
    pub(crate) fn file(&self, inside: &Inside) -> Result<File, FolderError> {
        self.regular(inside, &|flags| below(&self.0.dir, inside.dot(), flags))
    }

    /// Opens a file outside the folder that [`Folder::allow_outside`] named.
    pub(crate) fn allowed_file(&self, path: &Path) -> Option<Result<File, FolderError>> {
        let allowed = self.0.outside.lock().unwrap_or_else(PoisonError::into_inner).contains(path);
        let inside = Inside { relative: path.to_owned(), absolute: path.to_owned() };
        allowed.then(|| {
            self.regular(&inside, &|flags| {
                openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
            })
        })
    }

    fn regular(
        &self,
        inside: &Inside,
        open: &dyn Fn(OFlags) -> rustix::io::Result<OwnedFd>,
    ) -> Result<File, FolderError> {
        let name = inside.name();
        let failed = |error: Errno| FolderError::of(&name, "opened", error);
        // Looked at before it is opened: opening a pipe already wakes its writer.
        let looked = open(OFlags::PATH | OFlags::CLOEXEC).map_err(failed)?;
        regular_only(&looked, &name)?;
        let file = open(READ).map_err(failed)?;
        regular_only(&file, &name)?;
        Ok(file.into())
    }

    /// Says whether something is there, without opening it. Links count as absent.
    pub(crate) fn kind(&self, inside: &Inside) -> Option<FileType> {
        let looked = below(&self.0.dir, inside.dot(), OFlags::PATH | OFlags::CLOEXEC).ok()?;
        Some(FileType::from_raw_mode(fstat(&looked).ok()?.st_mode))
    }

    /// Reads a regular file of at most `limit` bytes.
    pub(crate) fn read(&self, inside: &Inside, limit: u64) -> Result<Vec<u8>, FolderError> {
        let file = self.file(inside)?;
        let mut content = Vec::new();
        file.take(limit.saturating_add(1))
            .read_to_end(&mut content)
            .map_err(|error| FolderError::of(&inside.name(), "read", error))?;
        if content.len() as u64 > limit {
            return Err(FolderError::TooBig { path: inside.name(), limit });
        }
        Ok(content)
    }

    /// Hashes what a regular file holds now, whatever its size.
    pub(crate) fn hash(&self, inside: &Inside) -> Result<Hash, FolderError> {
        let mut hasher = blake3::Hasher::new();
        io::copy(&mut self.file(inside)?, &mut hasher)
            .map_err(|error| FolderError::of(&inside.name(), "read", error))?;
        Ok(Hash::finished(&hasher))
    }
}

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens what lies below a folder and is reached without a symbolic link.
fn below(dir: &OwnedFd, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    // NO_SYMLINKS implies NO_MAGICLINKS; both are named because both are meant.
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    loop {
        // The kernel cannot always tell a rename beside the path from one in it.
        match openat2(dir, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            done => return done,
        }
    }
}

fn regular_only(file: &OwnedFd, name: &str) -> Result<(), FolderError> {
    let stat = fstat(file).map_err(|error| FolderError::of(name, "looked at", error))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        kind => Err(FolderError::NotAFile { path: name.to_owned(), kind }),
    }
}

/// Follows every symbolic link of a path, and keeps the names that do not exist yet.
fn follow(path: &Path, links: usize) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        done => return done,
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::NOENT.into());
    };
    let parent = follow(parent, links)?;
    match std::fs::read_link(path) {
        // A link to what does not exist: writing through it makes its target.
        Ok(target) if links > 0 => follow(&parent.join(target), links - 1),
        Ok(_) => Err(Errno::LOOP.into()),
        Err(_) => Ok(parent.join(name)),
    }
}

#[cfg(test)]
mod tests;
