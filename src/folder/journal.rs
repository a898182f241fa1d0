//! What was begun on several files, so that a crash leaves all old or all new.
//!
//! One file for each commit under way, in the user's own data folder: no run can reach
//! it. It is locked while its process lives. Whoever comes next and can lock it takes
//! everything back, or finishes where the commit was already decided. What is found is
//! told apart by hash alone; what is neither old nor new is somebody's and is left.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::commit::{dir_of, exchange, hash_at, waiting};
use super::replace::put_new;
use super::{Folder, Hash};

/// What journals are called, and while they are being written.
const WHOLE: &str = "commit";
const FRESH: &str = "new";
const DECIDED: &str = "\ndecided\n";
/// Bytes of a journal: 10,000 files with long names.
const LARGEST: u64 = 16 * 1024 * 1024;

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    Replace,
    Create,
    Delete,
}

/// One file of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    /// The file, from the folder's root.
    #[serde(with = "bytes")]
    pub(super) path: PathBuf,
    /// The name beside it: of the new content before, of the old one after.
    #[serde(with = "bytes")]
    pub(super) beside: OsString,
    #[serde(with = "hex")]
    pub(super) was: Option<Hash>,
    #[serde(with = "hex")]
    pub(super) new: Option<Hash>,
}

/// Everything that a commit touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    #[serde(with = "bytes")]
    pub(super) root: PathBuf,
    pub(super) entries: Vec<Entry>,
    /// Folders that were made for it, the outer ones first.
    #[serde(with = "many")]
    pub(super) made: Vec<PathBuf>,
}

impl Entry {
    /// Puts back what was there, and says what could not be.
    pub(super) fn undo(&self, folder: &Folder) -> Result<(), String> {
        let name = self.path.display();
        let failed = |error: io::Error| format!("{name}: {error}");
        let (Ok(dir), Some(leaf)) = (dir_of(folder, &self.path), self.path.file_name()) else {
            return Ok(()); // The whole folder is gone, and with it what was in it.
        };
        let waiting = waiting(&self.beside);
        let hash = |leaf: &std::ffi::OsStr| hash_at(&dir, leaf).ok();
        let remove = |leaf: &std::ffi::OsStr| match unlinkat(&dir, leaf, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed(error.into())),
        };
        let now = hash(leaf);
        match self.kind {
            Kind::Create => {
                if now.is_some() && now == self.new {
                    remove(leaf)?;
                }
                remove(&self.beside)
            }
            Kind::Delete => match put_new(&dir, &self.beside, leaf) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(Errno::EXIST) => Err(format!(
                    "{name}: was written again; what was deleted is {}",
                    self.beside.display()
                )),
                Err(error) => Err(failed(error.into())),
            },
            Kind::Replace if now == self.was => {
                remove(&waiting)?;
                remove(&self.beside)
            }
            Kind::Replace if now == self.new => {
                if hash(&waiting) == self.was {
                    // Between the two steps of a file system that cannot exchange.
                    rustix::fs::renameat(&dir, &waiting, &dir, leaf)
                        .map_err(|error| failed(error.into()))?;
                    return remove(&self.beside);
                }
                exchange(&dir, &self.beside, leaf).map_err(|error| failed(error.into()))?;
                remove(&self.beside)
            }
            Kind::Replace => Err(format!(
                "{name}: holds neither the old nor the new content; the other one is {}",
                self.beside.display()
            )),
        }
    }

    /// Removes what a decided commit no longer needs.
    fn finish(&self, folder: &Folder) {
        if let Ok(dir) = dir_of(folder, &self.path) {
            let _ = unlinkat(&dir, &self.beside, AtFlags::empty());
            let _ = unlinkat(&dir, waiting(&self.beside), AtFlags::empty());
        }
    }
}

/// Where journals are kept. Cloning shares it.
#[derive(Clone, Debug)]
pub(crate) struct Journals(PathBuf);

/// One that is under way.
pub(super) struct Journal {
    path: PathBuf,
    file: Flock<File>,
}

impl Journals {
    /// Names the folder. It is made when it is needed.
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self(folder)
    }

    #[cfg(test)]
    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    pub(super) fn begin(&self, record: &Record) -> io::Result<Journal> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let id = getrandom::u64().map_err(|_| io::Error::other("no random number"))?;
        let fresh = self.0.join(format!("{id:016x}.{FRESH}"));
        let path = self.0.join(format!("{id:016x}.{WHOLE}"));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        let mut file = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error)?;
        file.write_all(&serde_json::to_vec(record)?)?;
        file.sync_all()?;
        // Under its name only once it is whole and locked.
        fs::rename(&fresh, &path)?;
        File::open(&self.0)?.sync_all()?;
        Ok(Journal { path, file })
    }

    /// Takes back, or finishes, what processes left that are gone. Says what of it could
    /// not be.
    pub(crate) fn recover(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.extension().and_then(|end| end.to_str()) {
                Some(WHOLE) => match recover(&path) {
                    Ok(found) => troubles.extend(found),
                    Err(error) => troubles.push(format!("{}: {error}", path.display())),
                },
                // Nothing was begun yet for one that is not whole.
                Some(FRESH) if is_old(&path) => drop(fs::remove_file(&path)),
                _ => {}
            }
        }
        for trouble in &troubles {
            tracing::warn!("a change that was interrupted: {trouble}");
        }
        troubles
    }
}

/// Says whether a journal that is not whole can no longer become so.
fn is_old(path: &Path) -> bool {
    let age = fs::metadata(path).and_then(|found| found.modified());
    age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > Duration::from_secs(60)))
}

fn recover(path: &Path) -> io::Result<Vec<String>> {
    let Ok(file) = File::open(path) else { return Ok(Vec::new()) };
    let Ok(mut file) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else {
        return Ok(Vec::new()); // Its process lives.
    };
    if file.metadata()?.nlink() == 0 {
        return Ok(Vec::new()); // It ended just now.
    }
    let mut text = String::new();
    (&mut *file).take(LARGEST).read_to_string(&mut text)?;
    let decided = text.strip_suffix(DECIDED);
    let record: Record = serde_json::from_str(decided.unwrap_or(&text))?;
    let mut troubles = Vec::new();
    // A root that is gone took everything along.
    if let Ok(folder) = Folder::open(&record.root) {
        match decided {
            Some(_) => record.entries.iter().for_each(|entry| entry.finish(&folder)),
            None => {
                let undone = record.entries.iter().rev().map(|entry| entry.undo(&folder));
                troubles.extend(undone.filter_map(Result::err));
                for made in record.made.iter().rev() {
                    if let (Ok(dir), Some(leaf)) = (dir_of(&folder, made), made.file_name()) {
                        let _ = unlinkat(&dir, leaf, AtFlags::REMOVEDIR);
                    }
                }
                tracing::info!(root = %record.root.display(), "took an interrupted change back");
            }
        }
    }
    fs::remove_file(path)?;
    Ok(troubles)
}

impl Journal {
    /// Decides for the new.
    pub(super) fn commit(&self) -> io::Result<()> {
        let mut file: &File = &self.file;
        file.write_all(DECIDED.as_bytes())?;
        file.sync_data()
    }

    /// Forgets it: everything is as it should be.
    pub(super) fn end(self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a journal stays behind");
        }
    }

    /// Leaves it as a crash would.
    pub(super) fn abandon(self) {
        drop(self.file);
    }
}

mod bytes {
    //! Names as they are: they need not be text.

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::{OsStrExt, OsString, OsStringExt};

    pub(super) fn serialize<S: Serializer>(
        name: &impl AsRef<std::ffi::OsStr>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(name.as_ref().as_bytes()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: From<OsString>>(
        from: D,
    ) -> Result<T, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
        Ok(OsString::from_vec(bytes).into())
    }
}

mod many {
    //! The same for several.

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{PathBuf, bytes};

    #[derive(Serialize, Deserialize)]
    struct One(#[serde(with = "bytes")] PathBuf);

    pub(super) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().cloned().map(One))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<One>::deserialize(from)?.into_iter().map(|one| one.0).collect())
    }
}

mod hex {
    //! Hashes as text.

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::Hash;

    pub(super) fn serialize<S: Serializer>(hash: &Option<Hash>, to: S) -> Result<S::Ok, S::Error> {
        hash.map(|hash| format!("{hash:?}")).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Hash>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| Hash::from_hex(&text).ok_or_else(|| D::Error::custom("no hash")))
            .transpose()
    }
}
