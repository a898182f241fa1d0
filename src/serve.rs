//! The doors: what comes in from outside, over a pipe or a socket.
//!
//! A door authenticates, translates and hands on; it decides nothing about
//! tools. May not start a process.

pub(crate) mod client;
pub(crate) mod http;
pub(crate) mod lines;
pub(crate) mod protocol;
pub(crate) mod session;
