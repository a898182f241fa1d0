//! A server's edit as steps on the run's folder, worked out in memory.
//!
//! Every file must be inside the folder, and none of them a dependency's or git's: an
//! edit with one that is not is refused as a whole. The contents are those on disk now,
//! and the steps hold only for them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hostler_actors::host::language_server::documents::OpenDocument;
use hostler_actors::host::language_server::text::Encoding;
use rustix::fs::FileType;

use crate::code::workspace_edit::{Op, TextEdit, WorkspaceEdit, applied};
use crate::folder::commit::Step;
use crate::folder::{Folder, FolderError, Hash, Inside};
use crate::tools::Failure;

/// Bytes of a file that a server may edit: servers get no larger ones.
const LARGEST: u64 = 8 * 1024 * 1024;

/// Folders whose files belong to others.
const NOT_OURS: [&str; 6] = [".git", "node_modules", ".venv", "venv", "site-packages", ".hg"];

/// What an edit comes to.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    /// The steps.
    pub(crate) steps: Vec<Step>,
    /// How many places change, by file.
    pub(crate) edits: BTreeMap<String, usize>,
    /// Files that get another name.
    pub(crate) renamed: Vec<(String, String)>,
}

impl Planned {
    /// Returns how many places change.
    pub(crate) fn places(&self) -> usize {
        self.edits.values().sum()
    }
}

struct Virtual {
    file: Inside,
    was: Option<Hash>,
    now: Option<Vec<u8>>,
    like: Option<Inside>,
}

struct Plan<'a> {
    folder: &'a Folder,
    encoding: Encoding,
    /// Files whose text the server has from us, with whatever mark they begin with.
    open: &'a [OpenDocument],
    files: BTreeMap<PathBuf, Virtual>,
    planned: Planned,
}

/// Works out an edit. Reads files, and so is for a thread of its own.
pub(crate) fn plan(
    folder: &Folder,
    edit: &WorkspaceEdit,
    encoding: Encoding,
    open: &[OpenDocument],
) -> Result<Planned, Failure> {
    let (files, planned) = (BTreeMap::new(), Planned::default());
    let mut plan = Plan { folder, encoding, open, files, planned };
    for op in &edit.ops {
        plan.op(op)?;
    }
    let Plan { files, mut planned, .. } = plan;
    planned.steps = files.into_values().filter_map(step).collect();
    Ok(planned)
}

fn step(one: Virtual) -> Option<Step> {
    let Virtual { file, was, now, like } = one;
    match (was, now) {
        (Some(was), Some(content)) if Hash::of(&content) != was => {
            Some(Step::Replace { file, was, content })
        }
        (None, Some(content)) => Some(Step::Create { file, content, like }),
        (Some(was), None) => Some(Step::Delete { file, was }),
        (Some(_), Some(_)) | (None, None) => None,
    }
}

impl Plan<'_> {
    fn inside(&self, path: &Path) -> Result<Inside, Failure> {
        let refused = |why: &str| {
            Failure::new(format!(
                "refused, and nothing was written: the server's edit touches {}, {why}",
                path.display()
            ))
        };
        let given = path.to_str().ok_or_else(|| refused("whose name is not UTF-8"))?;
        let file = match self.folder.locate(given) {
            Err(FolderError::Outside { .. }) => {
                return Err(refused("which is outside the work folder"));
            }
            located => located?,
        };
        let theirs = file.relative().iter().any(|part| NOT_OURS.iter().any(|name| part == *name));
        if theirs { Err(refused("which is not the project's own")) } else { Ok(file) }
    }

    fn file(&mut self, path: &Path) -> Result<&mut Virtual, Failure> {
        let file = self.inside(path)?;
        let key = file.absolute().to_owned();
        if !self.files.contains_key(&key) {
            let now = match self.folder.kind(&file) {
                None => None,
                Some(FileType::RegularFile) => Some(self.folder.read(&file, LARGEST)?),
                Some(kind) => return Err(FolderError::NotAFile { path: file.name(), kind }.into()),
            };
            let was = now.as_deref().map(Hash::of);
            self.files.insert(key.clone(), Virtual { file, was, now, like: None });
        }
        self.files.get_mut(&key).ok_or_else(|| Failure::new("lost a file of the plan"))
    }

    fn op(&mut self, op: &Op) -> Result<(), Failure> {
        match op {
            Op::Edit { path, edits } => self.edit(path, edits),
            Op::Create { path, overwrite, ignore_if_exists } => {
                let one = self.file(path)?;
                if one.now.is_some() && !overwrite {
                    return if *ignore_if_exists { Ok(()) } else { Err(exists(&one.file)) };
                }
                one.now = Some(Vec::new());
                Ok(())
            }
            Op::Rename { from, to, overwrite, ignore_if_exists } => {
                let target = self.file(to)?;
                if target.now.is_some() && !overwrite {
                    return if *ignore_if_exists { Ok(()) } else { Err(exists(&target.file)) };
                }
                let target = target.file.name();
                let source = self.file(from)?;
                let name = source.file.name();
                let like = source.like.clone().unwrap_or_else(|| source.file.clone());
                let Some(content) = source.now.take() else {
                    return Err(FolderError::Missing { path: name }.into());
                };
                let one = self.file(to)?;
                one.now = Some(content);
                one.like = Some(like);
                if let Some(count) = self.planned.edits.remove(&name) {
                    self.planned.edits.insert(target.clone(), count);
                }
                self.planned.renamed.push((name, target));
                Ok(())
            }
            Op::Delete { path, ignore_if_missing } => {
                let one = self.file(path)?;
                if one.now.take().is_none() && !ignore_if_missing {
                    return Err(FolderError::Missing { path: one.file.name() }.into());
                }
                Ok(())
            }
        }
    }

    fn edit(&mut self, path: &Path, edits: &[TextEdit]) -> Result<(), Failure> {
        const BOM: &str = "\u{feff}";
        let encoding = self.encoding;
        let opened = self.open.iter().find(|open| *open.path == *path).map(|open| open.hash);
        let one = self.file(path)?;
        let name = one.file.name();
        let Some(now) = one.now.as_deref() else {
            return Err(FolderError::Missing { path: name }.into());
        };
        // In place of a version, which not every server gives.
        let on_disk = one.was.is_some_and(|was| was == Hash::of(now));
        if opened.is_some_and(|known| on_disk && known.0 != *blake3::hash(now).as_bytes()) {
            return Err(Failure::new(format!(
                "refused, and nothing was written: {name} changed while the server answered: ask \
                 again"
            )));
        }
        let text = std::str::from_utf8(now)
            .map_err(|_| Failure::new(format!("{name}: is not UTF-8: nothing was written")))?;
        // Who reads the disk by itself takes the mark off before it counts columns.
        let (mark, body) = match text.strip_prefix(BOM).filter(|_| opened.is_none()) {
            Some(body) => (BOM, body),
            None => ("", text),
        };
        let new = applied(body, edits, encoding).map_err(|error| {
            Failure::new(format!(
                "refused, and nothing was written: the server's edit of {name}: {error}"
            ))
        })?;
        one.now = Some(format!("{mark}{new}").into_bytes());
        *self.planned.edits.entry(name).or_default() += edits.len();
        Ok(())
    }
}

fn exists(file: &Inside) -> Failure {
    Failure::new(format!(
        "refused, and nothing was written: the server's edit would put a file over {}",
        file.name()
    ))
}
