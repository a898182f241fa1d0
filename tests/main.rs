//! All integration tests: one binary, one module per subject.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "tests start hostler as a stranger does")]

mod cli;
mod daemon;
mod language_server;
mod launch;
mod lsp_tool;
mod session;
mod support;
mod tidy;
