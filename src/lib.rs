//! The edge of hostler: what touches the operating system, the network, the disk.
//!
//! `cli` is where a process begins, `tools::call` where every call of a tool enters,
//! `launch` the only code that starts a process.

pub(crate) mod adapters;
pub(crate) mod ask;
pub(crate) mod background;
pub(crate) mod chance;
pub(crate) mod changes;
pub(crate) mod checkers;
pub(crate) mod cli;
pub(crate) mod code;
pub(crate) mod commons;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod diagnostics;
pub(crate) mod folder;
pub(crate) mod folders;
pub(crate) mod footprint;
pub(crate) mod guard;
pub(crate) mod handles;
pub(crate) mod install;
pub(crate) mod interpreters;
pub mod launch;
pub(crate) mod locks;
pub(crate) mod oneshot;
pub(crate) mod registry;
pub(crate) mod room;
pub(crate) mod seat;
pub(crate) mod seen;
pub(crate) mod serve;
pub(crate) mod server_edits;
pub(crate) mod servers;
pub(crate) mod shims;
pub(crate) mod sockets;
pub(crate) mod staged;
pub(crate) mod surface;
pub(crate) mod tools;
pub(crate) mod transcripts;
pub(crate) mod trees;
pub(crate) mod watch;

/// Runs this process's command line.
#[must_use]
pub fn main() -> std::process::ExitCode {
    cli::run()
}
