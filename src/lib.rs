//! The edge of hostler: what touches the operating system, and the tools.

pub mod launch;
