//! All integration tests: one binary, one module per subject.

mod launch;
mod tidy;
