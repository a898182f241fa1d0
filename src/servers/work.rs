//! What servers have to do in a folder, and who does it: for those who look from
//! outside of any run.
//!
//! Servers of one group do the same work, so one that is found is enough. Starts
//! nothing but probes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::catalogue::Catalogue;
use super::roots::{self, Contents, Fitting};
use crate::config::Config;
use crate::config::definitions::ServerDefinition;
use crate::shims::{Found, InstalledTool, NotFound, Programs, Search};

/// A piece of work in a folder.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    /// Who could do it, best first.
    pub(crate) rivals: Vec<Fitting<'a>>,
    /// Who does, or why the best of them does not.
    pub(crate) done_by: Result<(Arc<str>, Found), NotFound>,
}

/// Where programs are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// Finds them.
    pub(crate) programs: &'a Programs,
    /// The environment, with its PATH.
    pub(crate) env: &'a [(OsString, OsString)],
    /// The installed tools.
    pub(crate) installed: &'a [InstalledTool],
}

/// Returns the work that there is in a folder.
pub(crate) async fn of_folder<'a>(
    config: &'a Config,
    place: Place<'_>,
    dir: &Path,
) -> Vec<Work<'a>> {
    let catalogue = Arc::new(Catalogue::new(config));
    let mut groups: Vec<Vec<Fitting<'a>>> = Vec::new();
    for fitting in roots::fitting(config, &catalogue, dir, &Contents::default()).await {
        let group = fitting.1.group.as_ref();
        let same = |of: &&mut Vec<Fitting<'a>>| {
            group.is_some() && of.iter().any(|(_, other, _)| other.group.as_ref() == group)
        };
        match groups.iter_mut().find(same) {
            Some(rivals) => rivals.push(fitting),
            None => groups.push(vec![fitting]),
        }
    }
    let mut works = Vec::new();
    for rivals in groups {
        let done_by = first_found(&rivals, place).await;
        works.push(Work { rivals, done_by });
    }
    works
}

async fn first_found(
    rivals: &[Fitting<'_>],
    place: Place<'_>,
) -> Result<(Arc<str>, Found), NotFound> {
    let mut missing = None;
    for (name, definition, roots) in rivals {
        for root in roots {
            match place.programs.find(place.search(definition, root)).await {
                Ok(found) => return Ok((Arc::clone(name), found)),
                Err(why) => missing = missing.or(Some(why)),
            }
        }
    }
    Err(missing.unwrap_or_default())
}

impl<'a> Place<'a> {
    /// Returns the search for a server's program in a project.
    pub(crate) fn search(self, server: &'a ServerDefinition, root: &'a Path) -> Search<'a> {
        Search {
            names: &server.binaries,
            root,
            project_folders: &server.project_folders,
            env: self.env,
            installed: self.installed,
            probe: server.probe.as_ref(),
        }
    }
}

impl Work<'_> {
    /// Returns the first root of the best one.
    pub(crate) fn root(&self) -> Option<&PathBuf> {
        self.rivals.first().and_then(|(_, _, roots)| roots.first())
    }
}
