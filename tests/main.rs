//! The one integration binary; each module is one subject.

mod language_server;
mod launch;
