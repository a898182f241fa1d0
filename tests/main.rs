//! All integration tests: one binary, one module per subject.

mod cli;
mod launch;
mod tidy;
