//! Which debug adapters can be used in a run's folder, and what a session is made of.
//!
//! The rule is that of language servers: a root marker stands there *and* the program is
//! found and works. With one of the two nothing starts, and the answer says which half is
//! missing and where it was looked for. May not start a session: that is the
//! conversation's.

pub(crate) mod elf;
pub(crate) mod order;
pub(crate) mod program;
pub(crate) mod rust;
pub(crate) mod scratch;
pub(crate) mod targets;
pub(crate) mod template;
#[cfg(test)]
pub(crate) mod testing;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hostler_actors::host::workspace::space::conversation::debug_session::desk::Desk;
use hostler_actors::host::workspace::space::conversation::run::RunMsg;
use hostler_actors::ports::BoxFuture;
use ractor::ActorRef;

use crate::ask::ask;
use crate::config::adapters::AdapterDefinition;
use crate::install::in_path;
use crate::seat::Seat;
use crate::servers::Half;
use crate::servers::roots::{self, Rule};
use crate::shims::{Found, InstalledTool, NotFound, Programs, Search, Source};
use rust::Sysroots;

/// Asks for the conversation's debug session; `None` if the conversation is over.
pub(crate) type AskDesk = Arc<dyn Fn() -> BoxFuture<'static, Option<Desk>> + Send + Sync>;

/// What a run's tools need to reach debug adapters.
pub(crate) struct Adapters {
    /// The conversation's debug session.
    pub(crate) desk: AskDesk,
    /// The adapters that are installed.
    pub(crate) installed: Vec<InstalledTool>,
    /// Where toolchains of Rust's keep their formatters.
    pub(crate) sysroots: Arc<Sysroots>,
}

/// Returns the way from a run to its conversation's debug session.
pub(crate) fn desk_of(run: ActorRef<RunMsg>) -> AskDesk {
    Arc::new(move || Box::pin(ask(&run, RunMsg::DebugSession)))
}

/// How one adapter stands for a folder.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// The definition's name.
    pub(crate) name: String,
    /// Its root, by its markers.
    pub(crate) root: Half,
    /// Its program, and where that was found.
    pub(crate) program: Result<(PathBuf, Source), String>,
}

impl Standing {
    /// Returns both halves, where both are there.
    pub(crate) fn usable(&self) -> Option<(&Path, &Path, Source)> {
        let (root, (program, source)) = (self.root.as_ref().ok()?, self.program.as_ref().ok()?);
        Some((root, program, *source))
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        match (&self.root, &self.program) {
            (Ok(root), Ok((program, source))) => {
                write!(
                    f,
                    "usable: root {}, program {} ({source})",
                    root.display(),
                    program.display()
                )
            }
            (Ok(root), Err(why)) => write!(f, "no program: {why} (its root is {})", root.display()),
            (Err(why), Ok((program, _))) => {
                write!(f, "no root: {why} (its program is {})", program.display())
            }
            (Err(root), Err(program)) => write!(f, "no root: {root}; no program: {program}"),
        }
    }
}

/// Returns how every adapter stands: once for each root in the folder, or once as
/// lacking one.
pub(crate) async fn all(seat: &Seat) -> Vec<Standing> {
    let mut standings = Vec::new();
    for (name, definition) in &seat.languages.config.adapters {
        for root in roots::below(&definition.root_markers, seat.folder.root()).await {
            standings.push(standing(seat, name, definition, root).await);
        }
    }
    standings
}

/// Returns how an adapter stands for what lies in a folder.
pub(crate) async fn for_folder(
    seat: &Seat,
    name: &str,
    definition: &AdapterDefinition,
    folder: &Path,
) -> Standing {
    let contents = &seat.languages.known.contents;
    let root = Rule::nearest(&definition.root_markers).above(folder, seat.folder.root(), contents);
    standing(seat, name, definition, root).await
}

async fn standing(
    seat: &Seat,
    name: &str,
    definition: &AdapterDefinition,
    root: roots::Root,
) -> Standing {
    let at = root.as_deref().unwrap_or(seat.folder.root()).to_owned();
    Standing { name: name.to_owned(), program: find(seat, name, definition, &at).await, root }
}

async fn find(
    seat: &Seat,
    name: &str,
    definition: &AdapterDefinition,
    root: &Path,
) -> Result<(PathBuf, Source), String> {
    let way_out = || match &definition.install {
        Some(_) => format!("; `hostler tools install {name}` gets it"),
        None => String::new(),
    };
    let programs = &seat.languages.programs;
    let found = locate(programs, definition, root, &seat.env, &seat.adapters.installed).await;
    let found = found.map_err(|missing| {
        format!("`{}` was not found: {missing}{}", definition.binaries.join("` or `"), way_out())
    })?;
    for needed in &definition.needs {
        let names = [needed.clone()];
        programs.find(in_path(&names, root, &seat.env)).await.map_err(|missing| {
            format!("{} needs `{needed}`, which was not found: {missing}", found.path.display())
        })?;
    }
    Ok((found.path, found.source))
}

/// Finds an adapter's program.
pub(crate) async fn locate(
    programs: &Programs,
    definition: &AdapterDefinition,
    root: &Path,
    env: &[(OsString, OsString)],
    installed: &[InstalledTool],
) -> Result<Found, NotFound> {
    let path = env.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or(OsStr::new(""), |(_, path)| path);
    let folders: Vec<PathBuf> =
        definition.folders.iter().flat_map(|folder| numbered_folders(Path::new(folder))).collect();
    let everywhere = std::env::split_paths(path).chain(folders.iter().cloned());
    let everywhere = std::env::join_paths(everywhere).unwrap_or_else(|_| path.to_owned());
    let names: Vec<String> =
        definition.binaries.iter().flat_map(|binary| numbered(binary, &everywhere)).collect();
    let further = folders.into_iter().map(|bin| InstalledTool { bin, binaries: names.clone() });
    let installed: Vec<InstalledTool> = installed.iter().cloned().chain(further).collect();
    let search = Search {
        names: &names,
        root,
        project_folders: &definition.project_folders,
        env,
        installed: &installed,
        probe: definition.probe.as_ref(),
    };
    programs.find(search).await
}

/// Returns the names that a name with a `*` for a number stands for, the highest number
/// first: Debian has `lldb-dap-19` and no `lldb-dap`.
fn numbered(name: &str, path: &OsStr) -> Vec<String> {
    let Some((before, after)) = name.split_once('*') else { return vec![name.to_owned()] };
    let mut numbers: Vec<u32> =
        std::env::split_paths(path).flat_map(|folder| numbers_in(&folder, before, after)).collect();
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    numbers.dedup();
    numbers.into_iter().map(|number| format!("{before}{number}{after}")).collect()
}

fn numbers_in(folder: &Path, before: &str, after: &str) -> Vec<u32> {
    let number = |name: OsString| {
        let name = name.into_string().ok()?;
        name.strip_prefix(before)?.strip_suffix(after)?.parse().ok()
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| number(entry.file_name())).collect()
}

/// The same for one part of a path.
fn numbered_folders(pattern: &Path) -> Vec<PathBuf> {
    let parts: Vec<_> = pattern.iter().collect();
    let Some(at) = parts.iter().position(|part| part.to_string_lossy().contains('*')) else {
        return vec![pattern.to_owned()];
    };
    let (before, rest) = parts.split_at(at);
    let parent: PathBuf = before.iter().collect();
    let part = rest.first().map(|part| part.to_string_lossy()).unwrap_or_default();
    let names = numbered(&part, parent.as_os_str());
    let tail: PathBuf = rest.iter().skip(1).collect();
    names.into_iter().map(|name| parent.join(name).join(&tail)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_star_stands_for_the_highest_number_first() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["dap-9", "dap-19", "dap-x", "dap", "llvm-7/bin", "llvm-20/bin"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let path = folder.path().as_os_str();
        assert_eq!(numbered("dap-*", path), ["dap-19", "dap-9"]);
        assert_eq!(numbered("dap", path), ["dap"]);
        let found = numbered_folders(&folder.path().join("llvm-*/bin"));
        assert_eq!(found, [folder.path().join("llvm-20/bin"), folder.path().join("llvm-7/bin")]);
        assert!(numbered_folders(&folder.path().join("none-*/bin")).is_empty());
    }
}
