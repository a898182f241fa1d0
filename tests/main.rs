//! All integration tests: one binary, one module per subject.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "tests start hostler as a stranger does")]

mod bad_input;
mod checkers;
mod cli;
mod daemon;
mod debug;
mod eval;
mod language_server;
mod launch;
mod lsp_tool;
mod memory;
mod open_world;
mod servers_die;
mod session;
mod structural;
mod support;
mod tidy;
mod trials;
mod truth;
