//! Finding and killing processes by the mark in their environment.
//!
//! For what no namespace and no launcher holds any more. A process can overwrite
//! its environment; then the other layers must hold it. Blocks; never on a runtime
//! worker.

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::Instant;

use super::procfs::{self, Stat, Table};

/// The variable that every launched process carries.
pub(super) const MARK: &str = "HOSTLER_TREE";

/// After this a process is taken for one that cannot be killed.
const GIVE_UP: Duration = Duration::from_secs(5);

/// How long dying processes are left alone before the next look.
const RECHECK: Duration = Duration::from_millis(50);

/// Kills marked processes until none is seen, and returns how many the first look
/// found.
pub(super) async fn until_none(ours: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> usize {
    let ours = Arc::new(ours);
    let give_up = Instant::now() + GIVE_UP;
    let mut first = None;
    while Instant::now() < give_up {
        let ours = Arc::clone(&ours);
        let look = tokio::task::spawn_blocking(move || kill_marked(&*ours)).await;
        let found = look.unwrap_or(0);
        first.get_or_insert(found);
        if found == 0 {
            break;
        }
        tokio::time::sleep(RECHECK).await;
    }
    first.unwrap_or(0)
}

/// Kills every process whose environment has a variable that `ours` accepts (it is
/// given `NAME=value`), and returns how many there were. Those still dying count.
pub(super) fn kill_marked(ours: impl Fn(&[u8]) -> bool) -> usize {
    let table = Table::read();
    // A daemon that was itself started inside a tree must not kill its own parents.
    let spared: HashSet<u32> = table.lineage(std::process::id()).map(|up| up.pid).collect();
    table
        .iter()
        .filter(|process| !spared.contains(&process.pid) && !process.zombie)
        .filter(|process| marked(process.pid, &ours))
        .filter(|process| kill_same(process))
        .count()
}

fn marked(pid: u32, ours: &impl Fn(&[u8]) -> bool) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(ours))
}

/// Kills the process if its id still means what was looked at.
fn kill_same(process: &Stat) -> bool {
    let same = procfs::stat(process.pid).is_some_and(|now| now.started == process.started);
    let pid = i32::try_from(process.pid).ok().filter(|_| same);
    pid.is_some_and(|pid| kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok())
}
