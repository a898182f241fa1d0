//! All integration tests: one binary, one module per subject.

mod cli;
mod language_server;
mod launch;
mod tidy;
