//! The part of many languages: a Python, a TypeScript and a C project, four runs on
//! each, and one server for each project.
//!
//! The TypeScript server is installed on the spot, by what `tools install` runs, into
//! a folder that is gone with the part, and stands first in the runs' `PATH`: so it
//! is that one that serves, whatever else this host has.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use hostler_actors::ports::Launch;
use hostler_actors::status::NodeView;
use serde_json::json;
use tokio::task::JoinSet;

use super::projects::{C, PYTHON, Project, TYPESCRIPT, lay_out, text_of};
use super::remote::{Broken, Remote, unexpected};
use super::show::{Line, Show};
use super::{Stage, mib, servers};
use crate::cli::args::{InstallArgs, ToolsCommand};
use crate::cli::exit::Exit;
use crate::cli::status::{self, Paint};
use crate::cli::tools;
use crate::install::place::Place;

/// How often each run breaks its file and mends it.
const ROUNDS: usize = 2;
/// What is installed on the spot: of the three it is there soonest.
const FRESH: &str = "typescript-native";

/// A project, and what its runs do.
struct Language {
    name: &'static str,
    server: &'static str,
    project: Project,
    /// More files: what a server knows a root by, and what the fourth run works on.
    beside: Project,
    /// The file of each run.
    files: [&'static str; 4],
    /// A line with one error, which names `absent`.
    mistake: &'static str,
}

const RECEIPT: &str = r#"#include <stdio.h>

#include "stock.h"

int print_receipt(const struct shelf *shelf) {
  return printf("%d x %s: %ld\n", shelf->count, shelf->name, shelf_worth(shelf));
}
"#;

const LANGUAGES: [Language; 3] = [
    Language {
        name: "python",
        server: "pyright",
        project: PYTHON,
        beside: &[],
        files: ["depot/items.py", "depot/money.py", "depot/orders.py", "depot/stock.py"],
        mistake: "\nwrong: int = absent\n",
    },
    Language {
        name: "typescript",
        server: FRESH,
        project: TYPESCRIPT,
        beside: &[],
        files: ["src/items.ts", "src/money.ts", "src/orders.ts", "src/stock.ts"],
        mistake: "\nexport const wrong: number = absent;\n",
    },
    Language {
        name: "c",
        server: "clangd",
        project: C,
        beside: &[("compile_flags.txt", "-Wall\n"), ("src/receipt.c", RECEIPT)],
        files: ["src/main.c", "src/money.c", "src/receipt.c", "src/stock.c"],
        mistake: "\nint wrong(void) { return absent; }\n",
    },
];

impl Language {
    fn text_of(&self, file: &str) -> &'static str {
        match text_of(self.project, file) {
            "" => text_of(self.beside, file),
            text => text,
        }
    }
}

/// Plays the part.
pub(super) async fn part(stage: &Stage, show: Arc<Show>) -> Result<(), Broken> {
    let began = Instant::now();
    let bin = install(stage).await?;
    show.say(&format!("{FRESH} is there after {:.1} s", began.elapsed().as_secs_f64()));
    let env = path_first(&stage.env, &bin);
    let began = Instant::now();
    let mut runs = JoinSet::new();
    for language in &LANGUAGES {
        let root = stage.folder.join(language.name);
        lay_out(language.project, &root)?;
        lay_out(language.beside, &root)?;
        for (number, file) in language.files.into_iter().enumerate() {
            let remote = Remote::open(&stage.client, &stage.open(&root, &env)).await?;
            let shown = show.line(file, 2 * ROUNDS as u64 + 1);
            let mistake = language.mistake.replace("absent", &format!("absent_{number}"));
            let text = language.text_of(file);
            runs.spawn(run(remote, Subject { file, number, text, mistake }, shown));
        }
    }
    let mut remotes = Vec::new();
    while let Some(run) = runs.join_next().await {
        remotes.push(run.map_err(|error| Broken::Failed {
            what: "a run of the demo".to_owned(),
            text: error.to_string(),
        })??);
    }
    // All runs are still there, and so is what they share.
    count(stage, &show, &bin).await?;
    let told = remotes.len() * ROUNDS;
    let mut times = Vec::new();
    for remote in remotes {
        times.extend(remote.end().await?);
    }
    show.say(&format!("mistakes: {told}, each told to the run that made it and to no other"));
    show.times(times, began.elapsed());
    Ok(())
}

/// Installs a server as `hostler tools install` does. Returns its folder of programs.
async fn install(stage: &Stage) -> Result<PathBuf, Broken> {
    let mut ground = stage.ground.clone();
    let config = &mut ground.loaded.config;
    config.tools = stage.folder.join("tools");
    let recipe = config.servers.get(FRESH).and_then(|server| server.install.as_ref());
    let version = recipe.map(|recipe| recipe.version.as_str()).unwrap_or_default();
    let failed = |text: String| Broken::Failed { what: format!("tools install {FRESH}"), text };
    let place =
        Place::new(&config.tools, FRESH, version).map_err(|error| failed(error.to_string()))?;
    let args = InstallArgs { names: vec![FRESH.to_owned()], for_dir: None, all: false };
    let launch: Arc<dyn Launch> = Arc::new(stage.hosted.daemon.launcher().clone());
    match tools::run(&ground, ToolsCommand::Install(args), launch).await {
        Ok(Exit::Done) if place.is_complete() => Ok(place.bin()),
        Ok(_) => Err(failed("it is not there; why is said above".to_owned())),
        Err(refusal) => Err(failed(refusal.to_string())),
    }
}

/// Returns an environment in which a folder stands first in `PATH`.
fn path_first(env: &[(String, String)], bin: &Path) -> Vec<(String, String)> {
    let with = |(name, value): &(String, String)| match name.as_str() {
        "PATH" => (name.clone(), format!("{}:{value}", bin.display())),
        _ => (name.clone(), value.clone()),
    };
    env.iter().map(with).collect()
}

/// What one run is about.
struct Subject {
    file: &'static str,
    number: usize,
    text: &'static str,
    mistake: String,
}

async fn run(mut remote: Remote, subject: Subject, shown: Line) -> Result<Remote, Broken> {
    let Subject { file, number, text, mistake } = subject;
    remote.call("read", json!({"path": file})).await?;
    // A question waits for a server that begins; a write is not kept waiting so long.
    remote.call("lsp", json!({"action": "symbols", "file": file})).await?;
    shown.step("read");
    for _ in 0..ROUNDS {
        let broken = format!("{text}{mistake}");
        let answer = remote.call("write", json!({"path": file, "content": broken})).await?;
        let own = answer.text.contains(&format!("absent_{number}"));
        answer.expect(own && answer.is_fresh(1), "write with a mistake", "its one error")?;
        shown.step("broken, and told so");
        let mend = json!({"path": file, "old_text": mistake, "new_text": ""});
        let answer = remote.call("edit", mend).await?;
        answer.expect(answer.is_fresh(0), "edit without it", "a fresh verdict, nothing new")?;
        shown.step("mended");
    }
    Ok(remote)
}

/// Shows the servers: one for each project, with all its runs, and the fresh one is
/// that which was installed.
async fn count(stage: &Stage, show: &Show, bin: &Path) -> Result<(), Broken> {
    let report = stage.report().await?;
    let found = servers(&report);
    let rows: Vec<NodeView> = found.iter().copied().cloned().collect();
    show.say(&status::tree(&rows, Paint::for_stdout()));
    for Language { name, server, files, .. } in &LANGUAGES {
        let expected = format!("{server} {}", stage.folder.join(name).display());
        let one = found.iter().any(|row| row.name == expected && row.leases == Some(files.len()));
        if !one || found.len() != LANGUAGES.len() {
            let expected = format!("{expected} with {} leases, and no second one", files.len());
            return Err(unexpected("the servers", &expected, format!("{} servers", found.len())));
        }
    }
    let fresh = found.iter().find(|row| row.name.starts_with(FRESH)).and_then(|row| row.pid);
    let words = std::fs::read(format!("/proc/{}/cmdline", fresh.unwrap_or_default()))?;
    let words = String::from_utf8_lossy(&words).replace('\0', " ");
    if !words.contains(&*bin.to_string_lossy()) {
        return Err(unexpected(FRESH, &format!("what is in {}", bin.display()), words));
    }
    let bytes = found.iter().filter_map(|row| Some(row.usage?.resident_bytes)).sum();
    show.say(&format!(
        "projects: {}, language servers: {} for {} runs, {} MiB; hostler itself {} MiB",
        LANGUAGES.len(),
        found.len(),
        found.iter().filter_map(|row| row.leases).sum::<usize>(),
        mib(bytes),
        mib(report.resident_bytes),
    ));
    show.say(&format!("{FRESH}, as just installed: {}", words.trim_end()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_a_file_of_its_project() {
        for language in &LANGUAGES {
            assert!(language.files.iter().all(|file| !language.text_of(file).is_empty()));
        }
    }

    #[test]
    fn a_folder_is_put_first_in_path_and_the_rest_stays() {
        let env = [("A", "/x"), ("PATH", "/bin")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        let with = path_first(&env, Path::new("/t/bin"));
        assert_eq!(with.first(), env.first());
        assert_eq!(with.last(), Some(&("PATH".to_owned(), "/t/bin:/bin".to_owned())));
    }
}
