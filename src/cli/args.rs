//! The command line's grammar, and which parts of it are there yet.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::cli::exit::Refusal;

/// Hosts many concurrent coding-agent runs on one box, with every live resource
/// supervised.
#[derive(Debug, Parser)]
#[command(name = "hostler", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// Read this configuration file instead of the usual one
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Override one setting, for example `host.processes=64`
    #[arg(long = "set", global = true, value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Log to standard error too; twice for more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Open a run on a folder and speak JSON lines with it
    Session(Opening),
    /// Open a run on a folder and make one call of a tool
    Call(CallArgs),
    /// Host runs until told to stop
    Serve(DataArgs),
    /// Stop the daemon that serves
    Stop(DataArgs),
    /// Make the daemon read its configuration again
    Reload(DataArgs),
    /// Show everything that lives
    Status(StatusArgs),
    /// Look for what would keep hostler from working here
    Doctor(DoctorArgs),
    /// Show the daemon's log
    Logs(LogsArgs),
    /// Show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List or install language servers
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// Watch it work: many runs on one project with one language server
    Demo(DemoArgs),
    /// Print the completions of a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page
    Man,
    /// Print a systemd unit for `hostler serve`
    Service,
}

/// A folder and how to work on it.
#[derive(Debug, Args)]
pub(crate) struct Opening {
    /// The work folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// What the run may do
    #[arg(long, value_enum, default_value = "chat")]
    pub(crate) mode: ModeArg,
    /// Let the run direct workers of its own
    #[arg(long)]
    pub(crate) vibe: bool,
    /// What the run may do without asking
    #[arg(long, value_enum, default_value = "act_freely")]
    pub(crate) autonomy: Autonomy,
    /// Who answers questions
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) operator: Operator,
    /// Own this data folder, or join the daemon that does
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Keep the space under this name
    #[arg(long, value_name = "NAME")]
    pub(crate) space: Option<String>,
    /// Join a run that lives already
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
}

/// The modes, as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum ModeArg {
    Chat,
    Review,
    Plan,
    Orchestrate,
}

/// How much is done without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Autonomy {
    ProposeOnly,
    ActWithApproval,
    ActFreely,
}

/// Who answers questions and permission prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Operator {
    /// Nobody: they fail closed
    None,
    /// The process that holds the pipe
    Stdio,
}

impl Opening {
    /// Refuses what this version cannot do, naming what is missing.
    pub(crate) fn supported(&self) -> Result<(), Refusal> {
        let missing = if self.mode != ModeArg::Chat {
            format!("--mode {}: only `chat` is there yet", name_of(&self.mode))
        } else if self.vibe {
            "--vibe: workers are not there yet; leave it out".to_owned()
        } else if self.autonomy != Autonomy::ActFreely {
            format!(
                "--autonomy {}: approvals are not there yet; only `act_freely` is",
                name_of(&self.autonomy)
            )
        } else if self.operator != Operator::None {
            format!(
                "--operator {}: questions are not there yet; only `none` is",
                name_of(&self.operator)
            )
        } else {
            return Ok(());
        };
        Err(Refusal::usage(missing))
    }
}

fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// One call.
#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool's name
    pub(crate) tool: String,
    /// Its arguments, as a JSON object
    pub(crate) json: String,
    #[command(flatten)]
    pub(crate) opening: Opening,
}

/// Which daemon.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// The daemon's data folder, if not the usual one
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// How to show the status.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Keep it on screen
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// What to look at.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Say which language servers can work on this folder
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// How much of the log.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// How many lines
    #[arg(short = 'n', long, default_value_t = 200)]
    pub(crate) lines: usize,
    /// Go on with what is written from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every value and where it came from
    Show {
        /// Print what ships with the program and nothing else
        #[arg(long)]
        defaults: bool,
    },
}

/// What to do with tools.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// Say which there are, what for, and where they were found
    List {
        /// Only these, with what is known to be odd about them
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Install tools in the version that hostler was tried with
    Install(InstallArgs),
}

/// Which tools.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct InstallArgs {
    /// Their names, as `tools list` shows them
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Those that the project in this folder can use
    #[arg(long = "for", value_name = "DIR")]
    pub(crate) for_dir: Option<PathBuf>,
    /// All that can be installed
    #[arg(long)]
    pub(crate) all: bool,
}

/// Which parts of the demo.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The parts, all if none is named
    #[arg(value_name = "PART")]
    pub(crate) parts: Vec<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use clap::CommandFactory;

    use super::*;

    fn opening(more: &[&str]) -> Opening {
        let args = ["hostler", "session", "--dir", "."].iter().chain(more);
        match Cli::try_parse_from(args).unwrap().command {
            Command::Session(opening) => opening,
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn the_grammar_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_session_is_chat_that_acts_freely_and_nothing_else_yet() {
        assert!(opening(&[]).supported().is_ok());
        for (more, named) in [
            (&["--mode", "plan"][..], "--mode plan"),
            (&["--autonomy", "propose_only"], "--autonomy propose_only"),
            (&["--operator", "stdio"], "--operator stdio"),
            (&["--vibe"], "--vibe"),
        ] {
            let refusal = opening(more).supported().unwrap_err();
            assert_eq!(refusal.exit, crate::cli::exit::Exit::Usage);
            assert!(refusal.to_string().starts_with(named), "{refusal}");
        }
    }

    #[test]
    fn install_needs_to_know_what() {
        assert!(Cli::try_parse_from(["hostler", "tools", "install"]).is_err());
        assert!(Cli::try_parse_from(["hostler", "tools", "install", "--all"]).is_ok());
    }
}
