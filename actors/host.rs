//! The host's part of the tree.

pub mod language_server;
