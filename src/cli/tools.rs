//! `hostler tools`: which tools there are, and getting them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hostler_actors::ports::Launch;

use crate::cli::Ground;
use crate::cli::args::{InstallArgs, ToolsCommand};
use crate::cli::exit::{Done, Exit, Refusal};
use crate::cli::out;
use crate::config::Config;
use crate::config::definitions::{InstallRecipe, ServerDefinition};
use crate::install::place::Place;
use crate::install::{Installed, Installer, bin_folders};
use crate::shims::{Programs, Search};

pub(crate) async fn run(ground: &Ground, command: ToolsCommand, launch: Arc<dyn Launch>) -> Done {
    match command {
        ToolsCommand::List => list(ground, launch).await,
        ToolsCommand::Install(args) => install(ground, &args, &launch).await,
    }
}

async fn list(ground: &Ground, launch: Arc<dyn Launch>) -> Done {
    let config = &ground.loaded.config;
    let tools = ground.folders(None)?.tools;
    let env = ground.sources.environment.for_children();
    let here = std::env::current_dir().map_err(Refusal::failed)?;
    let installed = bin_folders(&tools, config);
    let programs = Programs::new(launch);
    let mut rows = vec![["NAME", "FOR", "INSTALLED", "USED HERE"].map(str::to_owned)];
    for (name, server) in &config.servers {
        let used = match programs.find(search(server, &here, &env, &installed)).await {
            Ok(found) => format!("{} ({})", found.path.display(), found.source),
            Err(missing) => format!("none: {missing}"),
        };
        rows.push([name.clone(), server.about.clone(), version(&tools, name, server), used]);
    }
    out::say(table(&rows));
    let quirks = config.servers.iter().map(|(name, server)| (name, &server.quirks));
    let of_adapters = config.adapters.iter().map(|(name, adapter)| (name, &adapter.quirks));
    for (name, quirks) in quirks.chain(of_adapters) {
        for quirk in quirks {
            out::say(format!("{name}: {} (seen in {})", quirk.what, quirk.seen));
        }
    }
    Ok(Exit::Done)
}

/// The search for a server's program in a project.
pub(crate) fn search<'a>(
    server: &'a ServerDefinition,
    root: &'a Path,
    env: &'a [(OsString, OsString)],
    installed: &'a [PathBuf],
) -> Search<'a> {
    Search {
        names: &server.binaries,
        root,
        project_folders: &server.project_folders,
        env,
        installed,
        probe: server.probe.as_ref(),
    }
}

fn version(tools: &Path, name: &str, server: &ServerDefinition) -> String {
    let Some(recipe) = &server.install else { return "by you".to_owned() };
    match Place::new(tools, name, &recipe.version) {
        Ok(place) if place.is_complete() => recipe.version.clone(),
        _ => "no".to_owned(),
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
    let recipes = wanted(&ground.loaded.config, args)?;
    if recipes.is_empty() {
        out::say("nothing to install: no known tool is for this");
        return Ok(Exit::Done);
    }
    let folders = ground.folders(None)?;
    let programs = Programs::new(Arc::clone(launch));
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
fn wanted<'a>(config: &'a Config, args: &InstallArgs) -> Result<Recipes<'a>, Refusal> {
    let known: Recipes<'_> = config
        .servers
        .iter()
        .map(|(name, server)| (name, &server.install))
        .chain(config.adapters.iter().map(|(name, adapter)| (name, &adapter.install)))
        .filter_map(|(name, recipe)| Some((name.as_str(), recipe.as_ref()?)))
        .collect();
    let mut wanted = Recipes::new();
    for name in &args.names {
        let Some((name, recipe)) = known.get_key_value(name.as_str()) else {
            let names: Vec<_> = known.keys().copied().collect();
            return Err(Refusal::usage(format!(
                "`{name}` is no tool that can be installed; there are: {}",
                names.join(", ")
            )));
        };
        wanted.insert(name, recipe);
    }
    if let Some(dir) = &args.for_dir {
        if !dir.is_dir() {
            return Err(Refusal::usage(format!("{}: not a folder", dir.display())));
        }
        let fits = |name: &str| config.servers.get(name).is_some_and(|it| has_marker(it, dir));
        wanted.extend(known.iter().filter(|(name, _)| fits(name)));
    }
    if args.all {
        wanted.extend(&known);
    }
    Ok(wanted)
}

/// Is one of a server's root markers in this folder.
pub(crate) fn has_marker(server: &ServerDefinition, dir: &Path) -> bool {
    server.root_markers.iter().any(|marker| dir.join(marker).exists())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::config::Loaded;

    fn args(names: &[&str], for_dir: Option<&Path>, all: bool) -> InstallArgs {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        InstallArgs { names, for_dir: for_dir.map(Path::to_owned), all }
    }

    #[test]
    fn tools_are_chosen_by_name_by_project_or_all() {
        let config = Loaded::shipped().unwrap().config;
        let chosen = |args: &InstallArgs| {
            wanted(&config, args).map(|recipes| recipes.into_keys().collect::<Vec<_>>().join(" "))
        };
        let project = tempfile::tempdir().unwrap();
        assert_eq!(chosen(&args(&["pyright"], None, false)).unwrap(), "pyright");
        assert_eq!(chosen(&args(&[], None, true)).unwrap(), "pyright");
        assert_eq!(chosen(&args(&[], Some(project.path()), false)).unwrap(), "");
        std::fs::write(project.path().join("pyproject.toml"), "").unwrap();
        assert_eq!(chosen(&args(&[], Some(project.path()), false)).unwrap(), "pyright");
        let refusal = chosen(&args(&["pyrigth"], None, false)).unwrap_err();
        assert_eq!(refusal.exit, Exit::Usage);
        assert!(refusal.to_string().contains("there are: pyright"), "{refusal}");
        assert!(chosen(&args(&[], Some(Path::new("/nowhere")), false)).is_err());
    }

    #[test]
    fn a_table_is_aligned() {
        let rows = [["A", "FOR", "I", "W"], ["bcd", "x", "no", "a long one"]];
        let rows = rows.map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "A    FOR  I   W\nbcd  x    no  a long one");
    }
}
