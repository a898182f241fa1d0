//! `hostler tools`: which tools there are, and getting them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hostler_actors::ports::Launch;
use nix::unistd::geteuid;

use crate::cli::Ground;
use crate::cli::args::{InstallArgs, ToolsCommand};
use crate::cli::exit::{Done, Exit, Refusal};
use crate::cli::out;
use crate::config::Config;
use crate::config::definitions::{InstallRecipe, PackageManager, ServerDefinition};
use crate::install::{self, Installed, Installer, in_path, installed, recipe};
use crate::servers::roots;
use crate::servers::work::{self, Place};
use crate::shims::{Programs, Search};

pub(crate) async fn run(ground: &Ground, command: ToolsCommand, launch: Arc<dyn Launch>) -> Done {
    match command {
        ToolsCommand::List { names } => list(ground, &names, launch).await,
        ToolsCommand::Install(args) => install(ground, &args, &launch).await,
    }
}

async fn list(ground: &Ground, names: &[String], launch: Arc<dyn Launch>) -> Done {
    let config = &ground.loaded.config;
    let tools = ground.folders(None)?.tools;
    let env = ground.sources.environment.for_children();
    let here = std::env::current_dir().map_err(Refusal::failed)?;
    let installed = installed(&tools, config);
    let programs = Programs::new(launch);
    let place = Place { programs: &programs, env: &env, installed: &installed };
    let mut rows = vec![["NAME", "FOR", "INSTALLED", "USED HERE"].map(str::to_owned)];
    if let Some(name) = names.iter().find(|name| !config.servers.contains_key(*name)) {
        return Err(Refusal::usage(format!("`{name}` is no known tool: see `hostler tools list`")));
    }
    let listed = |name: &String| names.is_empty() || names.contains(name);
    for (name, server) in config.servers.iter().filter(|(name, _)| listed(name)) {
        let version = installed_version(&tools, name, server.install.as_ref());
        let used = match programs.find(place.search(server, &here)).await {
            _ if !server.enabled => "not wanted (enabled = false)".to_owned(),
            Ok(found) => format!("{} ({})", found.path.display(), found.source),
            Err(missing) => match missing.rejected.first() {
                Some((path, why)) => format!("no: {}: {why}", path.display()),
                None => format!("no: {}", way_out(name, server)),
            },
        };
        rows.push([name.clone(), server.about.clone(), version, used].map(|cell| cut(&cell)));
    }
    out::say(table(&rows));
    for server in names.iter().filter_map(|name| config.servers.get(name)) {
        for quirk in &server.quirks {
            out::say(format!("- {} (seen in {})", quirk.what, quirk.seen));
        }
    }
    Ok(Exit::Done)
}

/// Says how to get a server.
pub(crate) fn way_out(name: &str, server: &ServerDefinition) -> String {
    match (&server.install, &server.install_hint) {
        (Some(_), _) => format!("`hostler tools install {name}` gets it"),
        (None, Some(hint)) => hint.clone(),
        (None, None) => "it is installed by you".to_owned(),
    }
}

fn installed_version(tools: &Path, name: &str, recipe: Option<&InstallRecipe>) -> String {
    let Some(recipe) = recipe else { return "by you".to_owned() };
    match install::place::Place::new(tools, name, &recipe.version) {
        Ok(place) if place.is_complete() => recipe.version.clone(),
        _ => "no".to_owned(),
    }
}

/// How much of a cell is shown, in characters.
const CELL: usize = 120;

fn cut(cell: &str) -> String {
    let line = cell.lines().next().unwrap_or_default();
    match line.char_indices().nth(CELL) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// Aligns all columns but the last.
fn table(rows: &[[String; 4]]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let lines = rows.iter().map(|row| {
        let cells = row.iter().enumerate().map(|(column, cell)| match column {
            3 => cell.clone(),
            _ => format!("{cell:<width$}", width = width(column).unwrap_or_default()),
        });
        cells.collect::<Vec<_>>().join("  ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

async fn install(ground: &Ground, args: &InstallArgs, launch: &Arc<dyn Launch>) -> Done {
    let folders = ground.folders(None)?;
    let programs = Programs::new(Arc::clone(launch));
    let env = ground.sources.environment.for_children();
    let config = &ground.loaded.config;
    let installed = installed(&folders.tools, config);
    let place = Place { programs: &programs, env: &env, installed: &installed };
    let recipes = wanted(config, args, place).await?;
    if recipes.is_empty() {
        out::say("nothing to install: nothing that is known is missing here");
        return Ok(Exit::Done);
    }
    let names: Vec<_> = recipes.keys().copied().collect();
    out::say(format!("to install: {}", names.join(", ")));
    let installer = Installer {
        launch,
        programs: &programs,
        environment: &ground.sources.environment,
        tools: &folders.tools,
    };
    let mut exit = Exit::Done;
    for (name, recipe) in recipes {
        let progress = out::Progress::begin(format!("installing {name} {}", recipe.version));
        let outcome = installer.install(name, recipe, &mut |text| progress.step(text)).await;
        drop(progress);
        match outcome {
            Ok(Installed::Now(bin)) => {
                out::say(format!("{name} {} installed: {}", recipe.version, bin.display()));
            }
            Ok(Installed::Already(bin)) => {
                out::say(format!("{name} {} is already there: {}", recipe.version, bin.display()));
            }
            Ok(Installed::InSystem) => out::say(format!("{name} installed in the system")),
            // One that fails does not keep the others from being tried.
            Err(error) => {
                out::aside(error);
                exit = Exit::Failed;
            }
        }
    }
    Ok(exit)
}

type Recipes<'a> = BTreeMap<&'a str, &'a InstallRecipe>;

/// Returns what is to be installed, each once.
async fn wanted<'a>(
    config: &'a Config,
    args: &InstallArgs,
    place: Place<'_>,
) -> Result<Recipes<'a>, Refusal> {
    let known: Recipes<'_> = config.recipes().collect();
    let mut wanted = Recipes::new();
    for name in &args.names {
        let Some((name, recipe)) = known.get_key_value(name.as_str()) else {
            return Err(Refusal::usage(not_known(config, name, &known)));
        };
        wanted.insert(name, recipe);
    }
    if let Some(dir) = &args.for_dir {
        let dir = dir
            .canonicalize()
            .ok()
            .filter(|dir| dir.is_dir())
            .ok_or_else(|| Refusal::usage(format!("{}: not a folder", dir.display())))?;
        wanted.extend(missing_in(config, &dir, place, &known).await);
    }
    if args.all {
        for (name, recipe) in &known {
            if manager_is_there(recipe.manager, place).await {
                wanted.insert(name, recipe);
            } else {
                out::aside(format!("{name} is left out: {}", recipe::way_out(recipe)));
            }
        }
    }
    Ok(wanted)
}

fn not_known(config: &Config, name: &str, known: &Recipes<'_>) -> String {
    if let Some(server) = config.servers.get(name) {
        return format!("`{name}` is not installed by hostler: {}", way_out(name, server));
    }
    let names: Vec<_> = known.keys().copied().collect();
    format!("`{name}` is no tool that can be installed; there are: {}", names.join(", "))
}

/// Returns what a project could use and does not have: of rivals the best one.
async fn missing_in<'a>(
    config: &'a Config,
    dir: &Path,
    place: Place<'_>,
    known: &Recipes<'a>,
) -> Recipes<'a> {
    let mut missing = Recipes::new();
    for work in work::of_folder(config, place, dir).await {
        if work.done_by.is_ok() {
            continue;
        }
        let installable = work.rivals.iter().find_map(|(name, _, _)| known.get_key_value(&**name));
        match (installable, work.rivals.first()) {
            (Some((name, recipe)), _) => drop(missing.insert(*name, *recipe)),
            (None, Some((name, server, _))) => {
                out::aside(format!("{name} is left out: {}", way_out(name, server)));
            }
            (None, None) => {}
        }
    }
    for checker in config.checkers.values() {
        let has_root = roots::below(&checker.root_markers, dir).await.iter().any(Result::is_ok);
        let search = Search {
            names: &checker.binaries,
            root: dir,
            project_folders: &checker.project_folders,
            env: place.env,
            installed: place.installed,
            probe: checker.probe.as_ref(),
        };
        if has_root && place.programs.find(search).await.is_err() {
            let brings = |recipe: &InstallRecipe| {
                checker.binaries.iter().any(|name| recipe.binaries.contains(name))
            };
            let already = missing.values().any(|recipe| brings(recipe));
            let brought = known.iter().find(|(_, recipe)| !already && brings(recipe));
            missing.extend(brought.map(|(name, recipe)| (*name, *recipe)));
        }
    }
    missing
}

/// Is the program there that installs, and may it.
async fn manager_is_there(manager: PackageManager, place: Place<'_>) -> bool {
    let program = match manager {
        PackageManager::Npm => "npm",
        PackageManager::Pypi => "python3",
        PackageManager::Crates => "cargo",
        PackageManager::Apt if geteuid().is_root() => "apt-get",
        PackageManager::Apt => "sudo",
    };
    let names = [program.to_owned()];
    place.programs.find(in_path(&names, Path::new("/"), place.env)).await.is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::config::Loaded;
    use crate::oneshot::direct;

    fn args(names: &[&str], for_dir: Option<&Path>, all: bool) -> InstallArgs {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        InstallArgs { names, for_dir: for_dir.map(Path::to_owned), all }
    }

    /// What would be installed where PATH is only this folder.
    async fn chosen(config: &Config, path: &Path, args: InstallArgs) -> Result<String, Refusal> {
        let programs = Programs::new(direct::launcher());
        let env = [("PATH".into(), path.into())];
        let place = Place { programs: &programs, env: &env, installed: &[] };
        let recipes = wanted(config, &args, place).await?;
        Ok(recipes.into_keys().collect::<Vec<_>>().join(" "))
    }

    fn program(path: &Path, name: &str, prints: &str) {
        let file = path.join(name);
        std::fs::write(&file, format!("#!/bin/sh\necho {prints}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[tokio::test]
    async fn tools_are_chosen_by_name_or_by_what_a_project_lacks() {
        let mut config = Loaded::shipped().unwrap().config;
        let few = ["pyright", "basedpyright", "ruff", "bash-language-server", "vtsls", "gopls"];
        config.servers.retain(|name, _| few.contains(&name.as_str()));
        let path = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let dir = project.path();
        let for_dir = || args(&[], Some(dir), false);
        let chosen = async |args| chosen(&config, path.path(), args).await;
        assert_eq!(chosen(args(&["pyright"], None, false)).await.unwrap(), "pyright");
        assert_eq!(chosen(for_dir()).await.unwrap(), "");
        std::fs::write(dir.join("pyproject.toml"), "").unwrap();
        std::fs::write(dir.join("run.sh"), "").unwrap();
        std::fs::write(dir.join("tsconfig.json"), "").unwrap();
        assert_eq!(chosen(for_dir()).await.unwrap(), "bash-language-server pyright ruff vtsls");
        // One of each group is enough, if it is what it says.
        program(path.path(), "basedpyright-langserver", "x");
        program(path.path(), "ruff", "ruff 0.17.6");
        program(path.path(), "pyright", "pyright 1.1.414");
        assert_eq!(chosen(for_dir()).await.unwrap(), "bash-language-server vtsls");
        let refusal = chosen(args(&["gopls"], None, false)).await.unwrap_err();
        assert!(refusal.to_string().contains("go install golang.org/x/tools/gopls"), "{refusal}");
        let refusal = chosen(args(&["pyrigth"], None, false)).await.unwrap_err();
        assert_eq!(refusal.exit, Exit::Usage);
        assert!(refusal.to_string().contains("basedpyright, "), "{refusal}");
        assert!(chosen(args(&[], Some(Path::new("/nowhere")), false)).await.is_err());
    }

    #[tokio::test]
    async fn all_is_what_the_managers_that_are_there_can_install() {
        let config = Loaded::shipped().unwrap().config;
        let path = tempfile::tempdir().unwrap();
        let all = || args(&[], None, true);
        assert_eq!(chosen(&config, path.path(), all()).await.unwrap(), "");
        program(path.path(), "npm", "10");
        let chosen = chosen(&config, path.path(), all()).await.unwrap();
        assert!(chosen.contains("pyright") && !chosen.contains("ruff"), "{chosen}");
    }

    #[test]
    fn a_table_is_aligned() {
        let rows = [["A", "FOR", "I", "W"], ["bcd", "x", "no", "a long one"]];
        let rows = rows.map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "A    FOR  I   W\nbcd  x    no  a long one");
    }
}
