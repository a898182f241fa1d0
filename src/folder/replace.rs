//! Puts a new content in the place of an old one, whole or not at all.
//!
//! The content goes to a temporary sibling and is renamed over the file, so that a
//! crash leaves the one or the other. What the old file had beside its bytes (mode,
//! owner, extended attributes) goes along; a hard link cannot, and is told. The old
//! content is compared right before the rename: only another program that writes in
//! those microseconds goes unnoticed.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RenameFlags, Stat, Uid, XattrFlags, fchmod, fchown, fgetxattr,
    flistxattr, fsetxattr, fstat, fsync, mkdirat, openat, renameat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;

use super::{DIRECTORY, Folder, FolderError, Hash, Inside, READ, below, regular_only};

/// What a replacement came to.
#[derive(Debug)]
pub(crate) struct Replaced {
    /// What the file holds now.
    pub(crate) hash: Hash,
    /// What could not be kept, in words.
    pub(crate) lost: Vec<&'static str>,
}

impl Folder {
    /// Replaces a file's content if it still is the expected one, or makes the file
    /// (and the folders on its way) if it is expected to be absent.
    pub(crate) fn replace(
        &self,
        file: &Inside,
        content: &[u8],
        expected: Option<Hash>,
    ) -> Result<Replaced, FolderError> {
        let name = file.name();
        let failed = |error: Errno| FolderError::of(&name, "written", error);
        let (Some(parent), Some(leaf)) = (file.relative.parent(), file.relative.file_name()) else {
            return Err(failed(Errno::ISDIR));
        };
        let dir = self.parent(parent, expected.is_none()).map_err(failed)?;
        let old = expected.map(|_| self.old(&dir, leaf, &name)).transpose()?;
        let temp = Temp::name().and_then(|name| Temp::named(&dir, name, old.is_none()));
        let temp = temp.map_err(failed)?;
        temp.write(content).map_err(|error| FolderError::of(&name, "written", error))?;
        let lost = old.map(|old| temp.take_after(&old)).transpose().map_err(failed)?;
        fsync(temp.file().map_err(failed)?).map_err(failed)?;
        match expected {
            Some(expected) if self.hash(file)? != expected => {
                return Err(FolderError::Changed { path: name });
            }
            Some(_) => renameat(&dir, &temp.name, &dir, leaf).map_err(failed)?,
            None => match put_new(&dir, &temp.name, leaf) {
                Err(Errno::EXIST) => return Err(FolderError::Appeared { path: name }),
                done => done.map_err(failed)?,
            },
        }
        temp.keep();
        // For a power cut. The file is in place whether or not this can be had.
        if let Ok(dir) = openat(&dir, ".", READ | OFlags::DIRECTORY, Mode::empty()) {
            let _ = fsync(&dir);
        }
        Ok(Replaced { hash: Hash::of(content), lost: lost.unwrap_or_default() })
    }

    pub(super) fn old(&self, dir: &OwnedFd, leaf: &OsStr, name: &str) -> Result<Old, FolderError> {
        let file = below(dir, Path::new(leaf), READ)
            .map_err(|error| FolderError::of(name, "opened", error))?;
        regular_only(&file, name)?;
        let stat = fstat(&file).map_err(|error| FolderError::of(name, "looked at", error))?;
        // A rename would get round the protection, and so would root.
        if stat.st_mode & 0o222 == 0 {
            return Err(FolderError::Protected {
                path: name.to_owned(),
                mode: stat.st_mode & 0o7777,
            });
        }
        Ok(Old { file, stat })
    }

    /// Opens the folder of a file, step by step where steps are to be made.
    pub(super) fn parent(&self, relative: &Path, make: bool) -> Result<OwnedFd, Errno> {
        if !make || relative.as_os_str().is_empty() {
            let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
            return below(&self.0.dir, relative, DIRECTORY);
        }
        let mut dir = below(&self.0.dir, Path::new("."), DIRECTORY)?;
        for step in relative.components() {
            let Component::Normal(step) = step else { return Err(Errno::INVAL) };
            match mkdirat(&dir, step, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            dir = below(&dir, Path::new(step), DIRECTORY)?;
        }
        Ok(dir)
    }
}

/// Renames to a name that must be free.
pub(super) fn put_new(dir: &OwnedFd, temp: &OsStr, leaf: &OsStr) -> Result<(), Errno> {
    match renameat_with(dir, temp, dir, leaf, RenameFlags::NOREPLACE) {
        // Not every file system knows the flag.
        Err(Errno::INVAL | Errno::NOSYS) => match statat(dir, leaf, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => renameat(dir, temp, dir, leaf),
            Err(error) => Err(error),
            Ok(_) => Err(Errno::EXIST),
        },
        done => done,
    }
}

/// A file that is about to be replaced.
pub(super) struct Old {
    file: OwnedFd,
    stat: Stat,
}

/// How the names of temporary siblings begin.
const TEMPORARY: &str = ".hostler-";

/// Says whether a file is there only while another is being replaced.
pub(crate) fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes()))
}

/// A temporary sibling, removed unless it is kept.
pub(super) struct Temp<'a> {
    dir: &'a OwnedFd,
    name: OsString,
    file: Option<OwnedFd>,
}

impl<'a> Temp<'a> {
    /// Chooses a name.
    pub(super) fn name() -> Result<OsString, Errno> {
        Ok(format!("{TEMPORARY}{:016x}", getrandom::u64().map_err(|_| Errno::IO)?).into())
    }

    /// Makes one under a name that must be free.
    pub(super) fn named(dir: &'a OwnedFd, name: OsString, new: bool) -> Result<Self, Errno> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        // Until it has the old file's mode, nobody else may read the content.
        let mode = Mode::from_raw_mode(if new { 0o666 } else { 0o600 });
        let file = openat(dir, &name, flags, mode)?;
        Ok(Self { dir, name, file: Some(file) })
    }

    fn file(&self) -> Result<&OwnedFd, Errno> {
        self.file.as_ref().ok_or(Errno::BADF)
    }

    pub(super) fn write(&self, content: &[u8]) -> std::io::Result<()> {
        std::fs::File::from(self.file()?.try_clone()?).write_all(content)
    }

    /// Takes over what the old file has beside its bytes, and says what it could not.
    pub(super) fn take_after(&self, old: &Old) -> Result<Vec<&'static str>, Errno> {
        let (mut lost, file) = (Vec::new(), self.file()?);
        let (user, group) = (old.stat.st_uid, old.stat.st_gid);
        let ours = fstat(file)?;
        if (ours.st_uid, ours.st_gid) != (user, group)
            && fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group))).is_err()
        {
            lost.push("its owner");
        }
        if !copy_attributes(&old.file, file) {
            lost.push("some extended attributes");
        }
        // After the owner: changing that clears the set-user-id bits.
        fchmod(file, Mode::from_raw_mode(old.stat.st_mode & 0o7777))?;
        if old.stat.st_nlink > 1 {
            lost.push("its other hard links, which keep the old content");
        }
        Ok(lost)
    }

    /// Leaves it to its name, and returns it.
    pub(super) fn keep(mut self) -> Option<OwnedFd> {
        self.file.take()
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if self.file.is_some()
            && let Err(error) = unlinkat(self.dir, &self.name, AtFlags::empty())
        {
            tracing::warn!(name = %self.name.display(), %error, "a temporary file stays behind");
        }
    }
}

/// Copies what can be copied, and says whether that was all.
fn copy_attributes(from: &OwnedFd, to: &OwnedFd) -> bool {
    // 64 KiB is the kernel's own limit for the list and for one value.
    let (mut names, mut value) = (vec![0_u8; 65_536], vec![0_u8; 65_536]);
    match flistxattr(from, &mut names) {
        Ok(length) => names.truncate(length),
        Err(error) => return error == Errno::NOTSUP,
    }
    let mut all = true;
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        all &= fgetxattr(from, name, &mut value).is_ok_and(|length| {
            let value = value.get(..length).unwrap_or_default();
            fsetxattr(to, name, value, XattrFlags::empty()).is_ok()
        });
    }
    all
}
