//! The supervision tree of hostler.
//!
//! ```text
//! host
//! ├─ language server ×n            one process per server, root, configuration, posture
//! └─ workspace ×n
//!    └─ space ×n
//!       ├─ mode                    the capability profile
//!       └─ conversation ×n
//!          ├─ debug session       an adapter, its debuggee and their children
//!          └─ run ×n
//!             ├─ turn
//!             └─ language session  leases and the diagnostics ledger
//! ```
//!
//! The folders are that tree. Read `ids`, `profile`, `ports` and `status` first,
//! then `supervise/slot`, then `host` and downwards. Nothing here starts a
//! process, opens a file or draws a random number: `ports` says what is asked of
//! the outside.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod frame;
pub mod host;
pub mod ids;
pub mod ports;
pub mod profile;
pub mod status;
pub mod supervise;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
