//! Finding a program: the project's own folders, then PATH, then installed tools.
//!
//! That a file of the right name is there proves little: it may not be executable,
//! may be a proxy of a version manager for something that is not installed, may
//! need another Node. So a candidate is probed where its definition says how, and
//! the search goes on past one that fails. What was looked at is told in the end.
//! Probes and interpreters are remembered until the file or PATH changes.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use hostler_actors::ports::Launch;

use crate::config::definitions::Probe;
use crate::oneshot::{self, OneShot, Terms};

/// How long a probe may take: a cold Node on a loaded box needs seconds.
const PROBE_BOUND: Duration = Duration::from_secs(10);

/// Folders that are named of those in which a program was looked for in vain: the
/// project's own come first.
const SHOWN: usize = 4;

/// What a program is looked for by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search<'a> {
    /// Its names, best first.
    pub(crate) names: &'a [String],
    /// The project's root, from which probes are run.
    pub(crate) root: &'a Path,
    /// Folders below the root to look in first.
    pub(crate) project_folders: &'a [PathBuf],
    /// The environment of the session, with its PATH.
    pub(crate) env: &'a [(OsString, OsString)],
    /// The installed tools, to look in last.
    pub(crate) installed: &'a [InstalledTool],
    /// How to see whether one works.
    pub(crate) probe: Option<&'a Probe>,
}

/// A tool that was installed. Its folder may hold more than it was installed for:
/// one server's package brings another one's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstalledTool {
    /// The folder of its programs.
    pub(crate) bin: PathBuf,
    /// Those that it is for.
    pub(crate) binaries: Vec<String>,
}

/// Where a program was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the project.
    Project,
    /// In PATH.
    Path,
    /// Among the installed tools.
    Installed,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Project => "project",
            Self::Path => "PATH",
            Self::Installed => "installed",
        })
    }
}

/// A program that is there and works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) source: Source,
}

/// What was looked at in vain.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub(crate) struct NotFound {
    /// The folders without a file of that name.
    pub(crate) looked: Vec<PathBuf>,
    /// The files that do not work, and why.
    pub(crate) rejected: Vec<(PathBuf, String)>,
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, reason) in &self.rejected {
            write!(f, "{}: {reason}; ", path.display())?;
        }
        let looked: Vec<_> = self.looked.iter().map(|path| path.display().to_string()).collect();
        let shown = looked.get(..SHOWN.min(looked.len())).unwrap_or_default().join(", ");
        match looked.len().saturating_sub(SHOWN) {
            0 if looked.is_empty() => f.write_str("there was no folder to look in"),
            0 => write!(f, "not in {shown}"),
            more => {
                write!(f, "not in {shown} and {more} more folders of PATH and of installed tools")
            }
        }
    }
}

/// A program as it was probed: one that was replaced since is another, a shim's
/// answer depends on the folder in which it is asked, and two definitions may want
/// different programs of one name.
type Stamp = (PathBuf, Option<SystemTime>, Option<PathBuf>, Probe);
type Known<K, V> = Mutex<HashMap<K, V>>;

/// Finds programs and remembers what its probes said.
pub(crate) struct Programs {
    launch: Arc<dyn Launch>,
    probed: Known<Stamp, Result<(), String>>,
    interpreters: Known<(Vec<String>, PathBuf, OsString), Result<PathBuf, NotFound>>,
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Programs")
    }
}

impl Programs {
    pub(crate) fn new(launch: Arc<dyn Launch>) -> Self {
        Self { launch, probed: Known::default(), interpreters: Known::default() }
    }

    /// Finds a program that works.
    pub(crate) async fn find(&self, search: Search<'_>) -> Result<Found, NotFound> {
        let (candidates, mut missing) = candidates(search);
        for found in candidates {
            match self.probe(&found.path, search).await {
                Ok(()) => return Ok(found),
                Err(reason) => missing.rejected.push((found.path, reason)),
            }
        }
        Err(missing)
    }

    /// Finds the real interpreter behind the first of `search.names` that works,
    /// once per names, root and PATH: a shim of a version manager costs a shell on each
    /// start, and decides anew by the folder in which it is run.
    pub(crate) async fn interpreter(&self, search: Search<'_>) -> Result<PathBuf, NotFound> {
        let names = search.names.to_vec();
        let key = (names, search.root.to_owned(), path_of(search.env).to_owned());
        if let Some(known) = recall(&self.interpreters, &key) {
            return known;
        }
        let (candidates, mut missing) = candidates(search);
        let mut answer = None;
        for found in candidates {
            match self.unshim(&found.path, search).await {
                Ok(path) => {
                    answer = Some(path);
                    break;
                }
                Err(reason) => missing.rejected.push((found.path, reason)),
            }
        }
        let answer = answer.ok_or(missing);
        remember(&self.interpreters, key, answer.clone());
        answer
    }

    async fn unshim(&self, path: &Path, search: Search<'_>) -> Result<PathBuf, String> {
        if !is_shim(path) {
            return Ok(path.to_owned());
        }
        let args = ["-c".into(), "import sys; print(sys.executable)".into()];
        let printed = self.ask(path, &args, search).await?;
        let real = PathBuf::from(printed.trim());
        match executable(&real) {
            Ok(true) if real.is_absolute() && !is_shim(&real) => Ok(real),
            _ => Err(format!("is a shim that leads to `{}`", real.display())),
        }
    }

    async fn probe(&self, path: &Path, search: Search<'_>) -> Result<(), String> {
        let Some(probe) = search.probe else { return Ok(()) };
        let companion = probe.companion.as_ref().and_then(|name| {
            let beside = path.parent()?.join(name);
            executable(&beside).is_ok_and(|runs| runs).then_some(beside)
        });
        let program = match (companion, &probe.companion) {
            (Some(beside), _) => beside,
            // Without its companion there is nothing that could be asked.
            (None, Some(_)) => return Ok(()),
            (None, None) => path.to_owned(),
        };
        let modified = fs::metadata(&program).and_then(|meta| meta.modified()).ok();
        let asked_in = is_shim(&program).then(|| search.root.to_owned());
        let key = (program.clone(), modified, asked_in, probe.clone());
        if let Some(known) = recall(&self.probed, &key) {
            return known;
        }
        let args: Vec<OsString> = probe.args.iter().map(Into::into).collect();
        let answer = self.ask(&program, &args, search).await.and_then(|printed| {
            match probe.prints.as_ref().filter(|prints| !printed.starts_with(prints.as_str())) {
                None => Ok(()),
                Some(_) => {
                    let said = printed.lines().next().unwrap_or_default();
                    Err(format!("is another program: it says `{said}`"))
                }
            }
        });
        remember(&self.probed, key, answer.clone());
        answer
    }

    /// Runs a program in the project and returns what it printed.
    async fn ask(
        &self,
        program: &Path,
        args: &[OsString],
        search: Search<'_>,
    ) -> Result<String, String> {
        let label = program.to_string_lossy();
        let shot = OneShot {
            label: &label,
            program,
            args,
            cwd: search.root,
            env: search.env,
            bound: PROBE_BOUND,
            terms: Terms::OURS,
        };
        match oneshot::run(&*self.launch, shot, &mut |_| {}).await {
            Ok(finished) if finished.is_success() => Ok(finished.stdout),
            Ok(finished) => Err(finished.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn recall<K: std::hash::Hash + Eq, V: Clone>(known: &Known<K, V>, key: &K) -> Option<V> {
    known.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
}

fn remember<K: std::hash::Hash + Eq, V>(known: &Known<K, V>, key: K, value: V) {
    known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, value);
}

fn path_of(env: &[(OsString, OsString)]) -> &OsStr {
    env.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new(""), |(_, path)| path)
}

/// Lists the executable files of the wanted names in the order of preference,
/// and says where there was none. Asks the disk, starts nothing.
fn candidates(search: Search<'_>) -> (Vec<Found>, NotFound) {
    let project = search.project_folders.iter().map(|sub| (search.root.join(sub), Source::Project));
    let path = std::env::split_paths(path_of(search.env)).map(|folder| (folder, Source::Path));
    let brings = |tool: &&InstalledTool| search.names.iter().any(|it| tool.binaries.contains(it));
    let installed = search.installed.iter().filter(brings);
    let installed = installed.map(|tool| (tool.bin.clone(), Source::Installed));
    let mut found: Vec<Found> = Vec::new();
    let mut missing = NotFound::default();
    for (folder, source) in project.chain(path).chain(installed) {
        // A relative entry of PATH would mean another program in each folder.
        if !folder.is_absolute() || missing.looked.contains(&folder) {
            continue;
        }
        for name in search.names {
            let path = folder.join(name);
            match executable(&path) {
                Ok(true) if found.iter().all(|other| other.path != path) => {
                    found.push(Found { path, source });
                }
                Ok(true) => {}
                Ok(false) => missing.rejected.push((path, "is not executable".to_owned())),
                Err(_) => {}
            }
        }
        missing.looked.push(folder);
    }
    (found, missing)
}

/// Is this a file that may be executed. An error where there is none.
pub(crate) fn executable(path: &Path) -> std::io::Result<bool> {
    let meta = fs::metadata(path)?;
    Ok(meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Is this a script with which a version manager stands in for the real program.
fn is_shim(path: &Path) -> bool {
    if path.parent().is_some_and(|folder| folder.ends_with("shims")) {
        return true;
    }
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(1024).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    read.is_ok()
        && head.starts_with("#!")
        && ["pyenv exec", "asdf exec", "pyenv\" exec"].iter().any(|call| head.contains(call))
}

#[cfg(test)]
mod tests;
