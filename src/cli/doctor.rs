//! `hostler doctor`: looks for what would keep hostler from working here.
//!
//! A check gives findings and never an error: the point is to see all of them.
//! What the kernel allows is what the launcher's probe found.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hostler_actors::ports::Launch;

use crate::cli::Ground;
use crate::cli::args::DoctorArgs;
use crate::cli::exit::{Done, Exit, Refusal};
use crate::cli::out;
use crate::cli::tools::way_out;
use crate::folders::{self, Folders};
use crate::install::{self, OLDEST_NODE, in_path, installed, version_numbers, version_of};
use crate::launch::Launcher;
use crate::launch::containment::Containment;
use crate::servers::work::{self, Work};
use crate::shims::Programs;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// As it should be.
    Good,
    /// Something works less well, or is not there to be used.
    Lacking,
    /// Hostler cannot work like this.
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// What it is, and the way out where it is not good.
    pub(crate) text: String,
}

impl Finding {
    pub(crate) fn new(level: Level, text: impl Into<String>) -> Self {
        Self { level, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.level {
            Level::Good => "good",
            Level::Lacking => "lacking",
            Level::Bad => "bad",
        };
        write!(f, "{word:<8} {}", self.text)
    }
}

/// Prints all findings.
pub(crate) async fn run(ground: &Ground, args: &DoctorArgs, launcher: Launcher) -> Done {
    let dir = args.dir.canonicalize();
    let dir = dir.map_err(|error| Refusal::usage(format!("{}: {error}", args.dir.display())))?;
    let folders = ground.folders(args.data.data.as_deref())?;
    let env = ground.sources.environment.for_children();
    let programs = Programs::new(Arc::new(launcher.clone()));
    let place = Place { dir: &dir, env: &env, launch: &launcher, programs: &programs };
    let mut findings = of_kernel(launcher.containment());
    findings.extend(of_folders(&folders));
    for (names, oldest) in [(&["node"][..], Some(OLDEST_NODE)), (&["npm"], None)] {
        findings.push(place.of_program(names, oldest).await);
    }
    findings.push(place.of_python().await);
    let installed = installed(&folders.tools, &ground.loaded.config);
    let look = work::Place { programs: &programs, env: &env, installed: &installed };
    let works = work::of_folder(&ground.loaded.config, look, &dir).await;
    findings.extend(works.iter().map(|work| of_work(work, &dir)));
    findings.iter().for_each(out::say);
    let bad = findings.iter().any(|finding| finding.level == Level::Bad);
    Ok(if bad { Exit::Failed } else { Exit::Done })
}

/// What the kernel allows, as the launcher found out by doing it.
fn of_kernel(containment: &Containment) -> Vec<Finding> {
    let promises = [
        (containment.has_pid_namespaces(), "a killed daemon's processes are ended by the kernel"),
        (containment.hides_folders(), "data and credentials are hidden from processes"),
        (containment.enforces_read_only(), "a read-only worktree is read-only for processes"),
    ];
    let mut findings: Vec<_> = promises
        .into_iter()
        .map(|(kept, promise)| match kept {
            true => Finding::new(Level::Good, promise),
            false => Finding::new(Level::Lacking, format!("not here: {promise}")),
        })
        .collect();
    let all = findings.iter().all(|finding| finding.level == Level::Good);
    let level = if all { Level::Good } else { Level::Lacking };
    findings.push(Finding::new(level, containment.to_string()));
    findings
}

fn of_folders(folders: &Folders) -> Vec<Finding> {
    let mut findings: Vec<_> = [&folders.data, &folders.runtime, &folders.tools]
        .into_iter()
        .map(|path| match folders::make_private(path) {
            Ok(()) => Finding::new(Level::Good, format!("{} is private", path.display())),
            Err(error) => Finding::new(Level::Bad, error.to_string()),
        })
        .collect();
    findings.extend(folders.note.iter().map(|note| Finding::new(Level::Lacking, note)));
    findings.push(Finding::new(
        Level::Good,
        match folders.owner() {
            Some(pid) => format!("{} is owned by process {pid}", folders.data.display()),
            None => format!("{} has no owner", folders.data.display()),
        },
    ));
    findings
}

struct Place<'a> {
    dir: &'a Path,
    env: &'a [(OsString, OsString)],
    launch: &'a dyn Launch,
    programs: &'a Programs,
}

impl Place<'_> {
    async fn of_program(&self, names: &[&str], oldest: Option<(u32, u32)>) -> Finding {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let found = match self.programs.find(in_path(&names, self.dir, self.env)).await {
            Ok(found) => found.path,
            Err(missing) => {
                return Finding::new(Level::Lacking, format!("no {}: {missing}", names.join(", ")));
            }
        };
        let shown = found.display();
        match version_of(self.launch, &found, self.dir, self.env).await {
            Ok(version) if oldest.is_some_and(|least| version_numbers(&version) < Some(least)) => {
                let (major, minor) = oldest.unwrap_or_default();
                Finding::new(
                    Level::Lacking,
                    format!("{shown} is {version}: install {major}.{minor} or later"),
                )
            }
            Ok(version) => Finding::new(Level::Good, format!("{shown} is {version}")),
            Err(error) => Finding::new(Level::Lacking, format!("{shown} does not work: {error}")),
        }
    }

    async fn of_python(&self) -> Finding {
        let names = ["python3".to_owned(), "python".to_owned()];
        let search = install::in_path(&names, self.dir, self.env);
        match self.programs.interpreter(search).await {
            Ok(path) => Finding::new(Level::Good, format!("python is {}", path.display())),
            Err(missing) => Finding::new(Level::Lacking, format!("no python: {missing}")),
        }
    }
}

/// What language servers have to do here. Those for which there is nothing to do are
/// not worth a line.
fn of_work(work: &Work<'_>, dir: &Path) -> Finding {
    let best = work.rivals.first();
    let about = best.map_or("", |(_, definition, _)| definition.about.as_str());
    let root = work.root().map_or(dir, PathBuf::as_path).display();
    match &work.done_by {
        Ok((name, found)) => {
            let text = format!("{name} ({about}) works on {root}: {}", found.path.display());
            Finding::new(Level::Good, text)
        }
        Err(missing) => {
            let way_out = best.map_or_else(String::new, |(name, server, _)| way_out(name, server));
            let text = format!("{about} could work on {root}: {way_out}; {missing}");
            Finding::new(Level::Lacking, text)
        }
    }
}
