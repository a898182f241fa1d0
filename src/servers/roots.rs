//! Where a project begins, by the files that stand in its root.
//!
//! For a file: a folder above it that holds a marker, never above the run's own
//! folder; of several the one whose workspace marker says that it is the root of all
//! below, so that a monorepo of many packages gets one server. For the whole folder:
//! downwards too; that walk is bounded and skips what git ignores.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use globset::Glob;
use ignore::WalkBuilder;

use super::catalogue::Catalogue;
use crate::config::Config;
use crate::config::definitions::{Nested, ServerDefinition, WorkspaceMarker};

/// How deep below the run's folder a root is looked for.
const DEPTH: usize = 4;
/// How many folders are looked into at most.
const FOLDERS: usize = 2_000;
/// How many files and folders are walked over at most.
const ENTRIES: usize = 50_000;
/// How many roots are taken at most.
const ROOTS: usize = 16;
/// How many names a message lists.
const LISTED: usize = 8;
/// How much of a file is searched for what makes it a workspace marker.
const HEAD: u64 = 256 * 1024;

/// A root, or why there is none.
pub(crate) type Root = Result<PathBuf, String>;

/// How roots are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule<'a> {
    markers: &'a [String],
    workspace: &'a [WorkspaceMarker],
    needs: &'a [String],
    nested: Nested,
}

impl<'a> Rule<'a> {
    /// Returns a server's.
    pub(crate) fn of(definition: &'a ServerDefinition) -> Self {
        Self {
            markers: &definition.root_markers,
            workspace: &definition.workspace_markers,
            needs: &definition.needs,
            nested: definition.nested,
        }
    }

    /// Returns one without workspaces.
    fn nearest(markers: &'a [String]) -> Self {
        Self { markers, workspace: &[], needs: &[], nested: Nested::Nearest }
    }

    /// Says whether the run's folder is a root whatever stands in it.
    fn needs_no_marker(&self) -> bool {
        self.markers.is_empty()
    }

    /// Says whether one of the markers stands in a folder.
    fn is_root(&self, folder: &Path) -> bool {
        self.markers.iter().any(|marker| stands(marker, folder))
    }

    fn is_workspace(&self, folder: &Path, contents: &Contents) -> bool {
        self.workspace.iter().any(|marker| {
            let path = folder.join(&marker.file);
            match &marker.contains {
                None => path.exists(),
                Some(text) => contents.holds(path, text),
            }
        })
    }

    /// Returns the root of what is in `folder`, which is not above `top`.
    pub(crate) fn above(&self, folder: &Path, top: &Path, contents: &Contents) -> Root {
        if self.needs_no_marker() {
            return Ok(top.to_owned());
        }
        let within = || folder.ancestors().take_while(|folder| folder.starts_with(top));
        let root = self
            .choice(within(), |folder| self.is_workspace(folder, contents))
            .or_else(|| self.choice(within(), |folder| self.is_root(folder)));
        let Some(root) = root else { return Err(missing(self.markers, within())) };
        let above = || root.ancestors().take_while(|folder| folder.starts_with(top));
        let is_there = |needed: &String| above().any(|folder| folder.join(needed).exists());
        if !self.needs.is_empty() && !self.needs.iter().any(is_there) {
            return Err(missing(self.needs, above()));
        }
        Ok(root.to_owned())
    }

    fn choice<'p>(
        &self,
        mut folders: impl Iterator<Item = &'p Path>,
        fits: impl Fn(&Path) -> bool,
    ) -> Option<&'p Path> {
        match self.nested {
            Nested::Nearest => folders.find(|folder| fits(folder)),
            Nested::Outermost => folders.filter(|folder| fits(folder)).last(),
        }
    }

    /// Returns the roots of what a survey has seen, outermost first.
    fn below(&self, survey: &Survey, top: &Path, contents: &Contents) -> Vec<PathBuf> {
        if self.needs_no_marker() {
            return vec![top.to_owned()];
        }
        let roots = survey.folders.iter().filter(|folder| self.is_root(folder));
        let roots = roots.filter_map(|folder| self.above(folder, top, contents).ok());
        let roots: BTreeSet<_> = roots.collect();
        roots.into_iter().take(ROOTS).collect()
    }
}

fn missing<'p>(names: &[String], folders: impl Iterator<Item = &'p Path>) -> String {
    let looked: Vec<_> = folders.map(|folder| folder.display().to_string()).collect();
    format!("none of {} in {}", some_of(names), some_of(&looked))
}

/// Does a name, or one that fits a pattern, stand in a folder.
fn stands(marker: &str, folder: &Path) -> bool {
    if !marker.contains(['*', '?', '[', '{']) {
        return folder.join(marker).exists();
    }
    let Ok(glob) = Glob::new(marker).map(|glob| glob.compile_matcher()) else { return false };
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().take(ENTRIES).any(|entry| glob.is_match(entry.file_name()))
}

/// A file as it was searched: its time and length.
type Stamp = (Option<SystemTime>, u64);

/// Whether files hold a text, remembered until they change.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    known: Mutex<HashMap<(PathBuf, String), (Stamp, bool)>>,
}

impl Contents {
    fn holds(&self, path: PathBuf, text: &str) -> bool {
        let Ok(meta) = fs::metadata(&path) else { return false };
        let stamp = (meta.modified().ok(), meta.len());
        let key = (path, text.to_owned());
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, holds)) = known().get(&key).filter(|(seen, _)| *seen == stamp) {
            return *holds;
        }
        let mut bytes = Vec::new();
        let read = fs::File::open(&key.0).and_then(|file| file.take(HEAD).read_to_end(&mut bytes));
        let holds = read.is_ok() && String::from_utf8_lossy(&bytes).contains(text);
        known().insert(key, (stamp, holds));
        holds
    }
}

/// What stands at and below a folder.
#[derive(Debug, Default)]
struct Survey {
    /// The folders, outermost first.
    folders: Vec<PathBuf>,
    /// The servers that take one of the files.
    takers: BTreeSet<Arc<str>>,
    /// Was it bounded.
    cut: bool,
}

impl Survey {
    /// Walks over a folder, away from the threads that serve everybody else.
    async fn of(top: &Path, catalogue: Option<Arc<Catalogue>>) -> Self {
        let top = top.to_owned();
        let walked = tokio::task::spawn_blocking(move || walk(&top, catalogue.as_deref())).await;
        walked.unwrap_or_default()
    }

    /// Says how far it reached.
    fn reach(&self, top: &Path) -> String {
        let bound = if self.cut { ", the first of its folders" } else { "" };
        format!("{} or {DEPTH} levels below it{bound}", top.display())
    }
}

/// A server, best first, and its roots in a folder: at least one.
pub(crate) type Fitting<'a> = (Arc<str>, &'a ServerDefinition, Vec<PathBuf>);

/// Returns the servers that have a root in a folder. One that needs no marker has
/// where there is a file that it takes.
pub(crate) async fn fitting<'a>(
    config: &'a Config,
    catalogue: &Arc<Catalogue>,
    top: &Path,
    contents: &Contents,
) -> Vec<Fitting<'a>> {
    let survey = Survey::of(top, Some(Arc::clone(catalogue))).await;
    let fits = |name: &Arc<str>| {
        let definition = config.servers.get(&**name)?;
        let rule = Rule::of(definition);
        let is_used = !rule.needs_no_marker() || survey.takers.contains(name);
        let roots = is_used.then(|| rule.below(&survey, top, contents))?;
        (!roots.is_empty()).then(|| (Arc::clone(name), definition, roots))
    };
    catalogue.order().iter().filter_map(fits).collect()
}

/// Says that no server has a root in a folder, and what those that take files in it
/// looked for.
pub(crate) async fn none_in(config: &Config, catalogue: &Arc<Catalogue>, top: &Path) -> String {
    let survey = Survey::of(top, Some(Arc::clone(catalogue))).await;
    let mut groups = BTreeSet::new();
    let taking = catalogue.order().iter().filter(|name| survey.takers.contains(*name));
    let wanted = taking.filter_map(|name| {
        let definition = config.servers.get(&**name)?;
        // Its rivals look for much the same.
        let is_first = definition.group.as_ref().is_none_or(|group| groups.insert(group));
        is_first.then(|| format!("{name} (none of {})", some_of(&definition.root_markers)))
    });
    let wanted: Vec<_> = wanted.collect();
    let reach = survey.reach(top);
    match wanted.as_slice() {
        [] => format!("no language server takes a file in {reach}"),
        wanted => format!("no language server has a root in {reach}: {}", some_of(wanted)),
    }
}

fn walk(top: &Path, catalogue: Option<&Catalogue>) -> Survey {
    let walk = WalkBuilder::new(top)
        .max_depth(Some(DEPTH))
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != "node_modules")
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .build();
    let mut survey = Survey::default();
    for (seen, entry) in walk.filter_map(Result::ok).enumerate() {
        if seen >= ENTRIES || survey.folders.len() >= FOLDERS {
            survey.cut = true;
            break;
        }
        let Some(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            survey.folders.push(entry.into_path());
        } else if let Some(catalogue) = catalogue {
            let takers = catalogue.takers(entry.path()).into_iter();
            survey.takers.extend(takers.map(|(name, _)| name));
        }
    }
    survey
}

/// Returns the roots at or below `top`, outermost first; a root inside another one
/// counts as well. One failure where there is none.
pub(crate) async fn below(markers: &[String], top: &Path) -> Vec<Root> {
    let survey = Survey::of(top, None).await;
    let rule = Rule::nearest(markers);
    let roots = rule.below(&survey, top, &Contents::default());
    if roots.is_empty() {
        return vec![Err(format!("none of {} in {}", some_of(markers), survey.reach(top)))];
    }
    roots.into_iter().map(Ok).collect()
}

fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
