//! Single processes of a tree, held by their pidfd.
//!
//! A pidfd names one process for ever, also once its number was given to another.

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use hostler_actors::ports::{BoxFuture, InnerProcess};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::unix::AsyncFd;

use super::procfs::{Table, stat};
use super::socket::readable;

#[derive(Debug)]
struct Inner {
    pid: u32,
    pidfd: AsyncFd<OwnedFd>,
}

impl InnerProcess for Inner {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn is_over(&self) -> bool {
        let mut polled = [PollFd::new(&self.pidfd, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    fn over(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // An error says that the runtime ends, and everything with it.
            let _ = self.pidfd.readable().await;
        })
    }

    fn signal(&self, signal: i32) {
        // It fails only where it is over.
        let _ = Signal::from_named_raw(signal).map(|signal| pidfd_send_signal(&self.pidfd, signal));
    }
}

/// Holds the main process, or the one below `launcher` that calls itself `own_id`.
/// Blocks as [`find`] does.
pub(super) fn process(
    launcher: u32,
    main: u32,
    own_id: Option<u32>,
) -> Option<Arc<dyn InnerProcess>> {
    let Some(own_id) = own_id else { return hold(main) };
    Table::read().below(launcher).into_iter().find(|pid| calls_itself(*pid, own_id)).and_then(hold)
}

/// The innermost of the ids of a process is the one by which it knows itself.
fn calls_itself(pid: u32, own_id: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    ids.and_then(|ids| ids.split_ascii_whitespace().last()?.parse().ok()) == Some(own_id)
}

/// Finds those below `launcher` whose command line holds `part`. Walks `/proc`, so it
/// belongs on a thread that may block; within a runtime, as it registers with it.
pub(super) fn find(launcher: u32, main: u32, part: &[u8]) -> Vec<Arc<dyn InnerProcess>> {
    let below = Table::read().below(launcher);
    let candidates = below.into_iter().filter(|pid| *pid != main && runs(*pid, part));
    candidates.filter_map(hold).collect()
}

fn runs(pid: u32, part: &[u8]) -> bool {
    fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| line.windows(part.len().max(1)).any(|window| window == part))
}

fn hold(pid: u32) -> Option<Arc<dyn InnerProcess>> {
    let before = stat(pid)?;
    let number = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let pidfd = pidfd_open(number, PidfdFlags::empty()).ok()?;
    // Else its number was given to another in between.
    let same = stat(pid)?.started == before.started;
    same.then_some(())?;
    Some(Arc::new(Inner { pid, pidfd: readable(pidfd).ok()? }))
}
