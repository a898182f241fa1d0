//! Fakes of the ports, for tests here and in the edge crate.
//!
//! They complain in their drop about what a test prepared and never used, so that
//! a test cannot pass by not getting there.

#![allow(clippy::expect_used, clippy::panic, reason = "a fake that is used wrongly fails its test")]

pub mod keeper;
pub mod process;
pub mod server;
pub mod sockets;
