//! Installs tools: one pinned version each, whole or not at all.
//!
//! Asks the launcher to start the package managers, and decides nothing about a
//! package: that is its definition's. Knows no error texts of any manager: what
//! one said last is shown as it is, beside what it needs.

pub(crate) mod place;
pub(crate) mod recipe;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hostler_actors::ports::Launch;
use nix::unistd::geteuid;

use crate::config::Config;
use crate::config::definitions::{InstallRecipe, PackageManager};
use crate::config::environment::Environment;
use crate::oneshot::{self, OneShot, OneShotError, Terms};
use crate::shims::{InstalledTool, NotFound, Programs, Search, executable};
use place::{Place, PlaceError};
use recipe::Step;

/// The oldest Node on which the servers that we install run.
pub(crate) const OLDEST_NODE: (u32, u32) = (20, 15);

/// How long `node --version` may take.
const VERSION_BOUND: Duration = Duration::from_secs(10);

/// What an installation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Installed {
    /// It is there now, with its programs in this folder.
    Now(PathBuf),
    /// It was there already.
    Already(PathBuf),
    /// It is part of the system now.
    InSystem,
}

/// Why a tool was not installed. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    /// A program that the installation needs is not there.
    #[error("{tool}: `{program}` was not found ({missing}): {way_out}")]
    NoManager { tool: String, program: String, missing: NotFound, way_out: String },
    /// Node is too old.
    #[error(
        "{tool}: Node {found} is too old: {}.{} or later is needed; install a newer one and put \
         it first in PATH", OLDEST_NODE.0, OLDEST_NODE.1
    )]
    OldNode { tool: String, found: String },
    /// A command did not end as it should.
    #[error("{tool}: `{command}` {outcome}\n{way_out}")]
    Command { tool: String, command: String, outcome: String, way_out: String },
    /// The package did not bring what its definition promises.
    #[error(
        "{tool}: {package} was installed and has no program `{binary}`: the definition is wrong"
    )]
    NoBinary { tool: String, package: String, binary: String },
    /// Its place cannot be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
}

/// Installs tools.
pub(crate) struct Installer<'a> {
    pub(crate) launch: &'a Arc<dyn Launch>,
    pub(crate) programs: &'a Programs,
    pub(crate) environment: &'a Environment,
    /// The folder of installed tools.
    pub(crate) tools: &'a Path,
}

/// Is told what goes on.
pub(crate) type OnStep<'a> = &'a mut (dyn FnMut(&str) + Send);

impl Installer<'_> {
    /// Installs a tool, or sees that it is there.
    pub(crate) async fn install(
        &self,
        tool: &str,
        recipe: &InstallRecipe,
        on_step: OnStep<'_>,
    ) -> Result<Installed, InstallError> {
        let job = Job { installer: self, tool, recipe, env: self.environment.for_children() };
        if recipe.manager == PackageManager::Apt {
            return job.install_in_system(on_step).await;
        }
        let place = Place::new(self.tools, tool, &recipe.version)?;
        if place.is_complete() {
            return Ok(Installed::Already(place.bin()));
        }
        let bound = recipe::bound(recipe.manager);
        let stage =
            place.stage(bound, &mut || on_step("waiting for another installation of it")).await?;
        // The other installation may have been of the same version.
        if place.is_complete() {
            return Ok(Installed::Already(place.bin()));
        }
        if recipe.manager == PackageManager::Npm {
            job.check_node(stage.path()).await?;
        }
        for step in recipe::steps(recipe, stage.path(), false) {
            job.run(&step, stage.path(), on_step).await?;
        }
        job.check_binaries(&stage.path().join("bin"))?;
        stage.publish()?;
        Ok(Installed::Now(place.bin()))
    }
}

/// One installation.
struct Job<'a> {
    installer: &'a Installer<'a>,
    tool: &'a str,
    recipe: &'a InstallRecipe,
    env: Vec<(OsString, OsString)>,
}

impl Job<'_> {
    async fn install_in_system(&self, on_step: OnStep<'_>) -> Result<Installed, InstallError> {
        let here = Path::new("/");
        let mut all = true;
        for binary in &self.recipe.binaries {
            all &= self.find(binary, here).await.is_ok();
        }
        if all {
            return Ok(Installed::Already(PathBuf::from("/usr/bin")));
        }
        for step in recipe::steps(self.recipe, here, geteuid().is_root()) {
            self.run(&step, here, on_step).await?;
        }
        Ok(Installed::InSystem)
    }

    async fn check_node(&self, cwd: &Path) -> Result<(), InstallError> {
        let node = self.find("node", cwd).await?;
        let version = version_of(&**self.installer.launch, &node, cwd, &self.env).await;
        let found = version.map_err(|error| self.failed("node --version", &error.to_string()))?;
        if version_numbers(&found) < Some(OLDEST_NODE) {
            return Err(InstallError::OldNode { tool: self.tool.to_owned(), found });
        }
        Ok(())
    }

    async fn run(&self, step: &Step, cwd: &Path, on_step: OnStep<'_>) -> Result<(), InstallError> {
        let program = match Path::new(&step.program) {
            path if path.is_absolute() => path.to_owned(),
            name => self.find(&name.to_string_lossy(), cwd).await?,
        };
        let words = std::iter::once(&step.program).chain(&step.args);
        let command = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        on_step(&command);
        let shot = OneShot {
            label: self.tool,
            program: &program,
            args: &step.args,
            cwd,
            env: &self.env,
            bound: recipe::bound(self.recipe.manager),
            terms: Terms::OURS,
        };
        match oneshot::run(&**self.installer.launch, shot, on_step).await {
            Ok(finished) if finished.is_success() => Ok(()),
            Ok(finished) => Err(self.failed(&command, &finished.to_string())),
            Err(error) => Err(self.failed(&command, &error.to_string())),
        }
    }

    fn failed(&self, command: &str, outcome: &str) -> InstallError {
        InstallError::Command {
            tool: self.tool.to_owned(),
            command: command.to_owned(),
            outcome: outcome.to_owned(),
            way_out: recipe::way_out(self.recipe),
        }
    }

    async fn find(&self, program: &str, root: &Path) -> Result<PathBuf, InstallError> {
        let names = [program.to_owned()];
        let search = in_path(&names, root, &self.env);
        let found = self.installer.programs.find(search).await;
        found.map(|found| found.path).map_err(|missing| InstallError::NoManager {
            tool: self.tool.to_owned(),
            program: program.to_owned(),
            missing,
            way_out: recipe::way_out(self.recipe),
        })
    }

    fn check_binaries(&self, bin: &Path) -> Result<(), InstallError> {
        for binary in &self.recipe.binaries {
            if !executable(&bin.join(binary)).unwrap_or(false) {
                return Err(InstallError::NoBinary {
                    tool: self.tool.to_owned(),
                    package: self.recipe.package.clone(),
                    binary: binary.clone(),
                });
            }
        }
        Ok(())
    }
}

/// A search in PATH and nowhere else.
pub(crate) fn in_path<'a>(
    names: &'a [String],
    root: &'a Path,
    env: &'a [(OsString, OsString)],
) -> Search<'a> {
    Search { names, root, project_folders: &[], env, installed: &[], probe: None }
}

/// Returns every tool that is installed.
pub(crate) fn installed(tools: &Path, config: &Config) -> Vec<InstalledTool> {
    let complete = |(name, recipe): (&str, &InstallRecipe)| {
        let place = Place::new(tools, name, &recipe.version).ok().filter(Place::is_complete)?;
        Some(InstalledTool { bin: place.bin(), binaries: recipe.binaries.clone() })
    };
    let recipes = config.recipes().filter(|(_, recipe)| recipe.manager != PackageManager::Apt);
    recipes.filter_map(complete).collect()
}

/// Asks a program for its version: the first line that it prints.
pub(crate) async fn version_of(
    launch: &dyn Launch,
    program: &Path,
    cwd: &Path,
    env: &[(OsString, OsString)],
) -> Result<String, OneShotError> {
    let label = program.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    let args = ["--version".into()];
    let (bound, terms) = (VERSION_BOUND, Terms::OURS);
    let shot = OneShot { label: &label, program, args: &args, cwd, env, bound, terms };
    let finished = oneshot::run(launch, shot, &mut |_| {}).await?;
    Ok(finished.stdout.lines().next().unwrap_or_default().trim().to_owned())
}

/// Reads `v20.15.1` or `20.15` as major and minor version.
pub(crate) fn version_numbers(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().trim_start_matches('v').split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests;
