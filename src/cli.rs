//! Where a process begins: reads the command line and the configuration, and does
//! what was asked.
//!
//! Commands that need a daemon are thin clients of it. Nothing here prints except
//! through `out`, and nothing ends the process except by returning.

pub(crate) mod args;
pub(crate) mod attach;
pub(crate) mod call;
pub(crate) mod config_show;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod exit;
pub(crate) mod logging;
pub(crate) mod logs;
pub(crate) mod out;
pub(crate) mod serve;
pub(crate) mod service;
pub(crate) mod session;
pub(crate) mod signals;
pub(crate) mod status;
pub(crate) mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use hostler_actors::status::StatusTable;

use crate::config::environment::Environment;
use crate::config::{Loaded, Sources};
use crate::folders::Folders;
use crate::launch::{LaunchConfig, Launcher};
use args::{Cli, Command, ConfigCommand};
use exit::{Done, Exit, Refusal};
use logging::Logging;

/// Runs one command line to its exit code.
pub(crate) fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and the version come this way too, with the code 0.
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done }.into();
        }
    };
    match dispatch(cli) {
        Ok(exit) => exit.into(),
        Err(refusal) => {
            out::aside(&refusal);
            refusal.exit.into()
        }
    }
}

/// What every command stands on.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    /// Where the configuration came from, to read it again.
    pub(crate) sources: Sources,
    pub(crate) loaded: Loaded,
    verbose: u8,
}

impl Ground {
    fn stand(file: Option<PathBuf>, sets: Vec<String>, verbose: u8) -> Result<Self, Refusal> {
        let sources = Sources { environment: Environment::inherited(), file, sets };
        let loaded = Loaded::load(&sources).map_err(Refusal::usage)?;
        loaded.notices.iter().for_each(out::aside);
        Ok(Self { sources, loaded, verbose })
    }

    /// Begins to log, into a folder if the command is a host.
    pub(crate) fn log_to(&self, folder: Option<&Path>) -> Result<Logging, Refusal> {
        logging::begin(folder, &self.loaded.config.log, self.verbose)
    }

    /// Locates the folders, with the data folder that a flag may name.
    pub(crate) fn folders(&self, data: Option<&Path>) -> Result<Folders, Refusal> {
        Folders::locate(&self.loaded.config, &self.sources.environment, data)
            .map_err(Refusal::usage)
    }
}

fn dispatch(cli: Cli) -> Done {
    let Cli { config, sets, verbose, command } = cli;
    let ground = || Ground::stand(config, sets, verbose);
    match command {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "hostler", &mut script);
            out::raw(&script);
            Ok(Exit::Done)
        }
        Command::Man => {
            let mut page = Vec::new();
            let man = clap_mangen::Man::new(Cli::command());
            man.render(&mut page).map_err(Refusal::failed)?;
            out::raw(&page);
            Ok(Exit::Done)
        }
        Command::Service => {
            let program = std::env::current_exe().map_err(Refusal::failed)?;
            out::say(service::unit(&program));
            Ok(Exit::Done)
        }
        Command::Config(ConfigCommand::Show { defaults: false }) => {
            config_show::run(&ground()?.loaded)
        }
        // Also where the user's own files cannot be read.
        Command::Config(ConfigCommand::Show { defaults: true }) => {
            config_show::run(&Loaded::shipped().map_err(Refusal::usage)?)
        }
        Command::Tools(command) => {
            let ground = ground()?;
            let _logging = ground.log_to(None)?;
            block_on(async { tools::run(&ground, command, Arc::new(launcher().await?)).await })
        }
        Command::Doctor(args) => {
            let ground = ground()?;
            let _logging = ground.log_to(None)?;
            block_on(async { doctor::run(&ground, &args, launcher().await?).await })
        }
        Command::Logs(args) => block_on(logs::run(&ground()?, &args)),
        Command::Session(opening) => in_runtime(session::session(&ground()?, &opening)),
        Command::Call(args) => in_runtime(call::call(&ground()?, &args)),
        Command::Serve(args) => in_runtime(serve::serve(&ground()?, &args)),
        Command::Stop(args) => block_on(serve::stop(&ground()?, &args)),
        Command::Reload(args) => block_on(serve::reload(&ground()?, &args)),
        Command::Status(args) => block_on(serve::show_status(&ground()?, &args)),
        Command::Demo(args) => in_runtime(demo::demo(&ground()?, &args)),
    }
}

/// Starts a launcher for a command that is no host. It hides nothing: tools are
/// installed below the data folder.
async fn launcher() -> Result<Launcher, Refusal> {
    let config = LaunchConfig::new(format!("command-{}", std::process::id()));
    Launcher::start(config, StatusTable::default()).await.map_err(Refusal::failed)
}

/// Runs a command that waits, on this thread.
fn block_on(command: impl Future<Output = Done>) -> Done {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Refusal::failed)?.block_on(command)
}

/// Runs a command that may host, on all cores.
fn in_runtime(command: impl Future<Output = Done>) -> Done {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(Refusal::failed)?;
    let done = runtime.block_on(command);
    // A read of standard input that nobody can interrupt must not hold the exit.
    runtime.shutdown_background();
    done
}
