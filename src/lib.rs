//! The edge of hostler: what touches the operating system, the network, the disk.
//!
//! `cli` is where a process begins, `tools::call` where every call of a tool enters,
//! `launch` the only code that starts a process.

pub(crate) mod cli;
pub(crate) mod config;
pub(crate) mod folders;
pub(crate) mod install;
pub mod launch;
pub(crate) mod oneshot;
pub(crate) mod shims;

/// Runs this process's command line.
#[must_use]
pub fn main() -> std::process::ExitCode {
    cli::run()
}
