//! What the launcher process does: `hostler __launch`, before anything else starts.
//!
//! Plain single-threaded Rust. Two processes stay per tree: the outer one waits in
//! the host's namespaces, so that its end proves to the daemon that the tree is
//! empty; the init (`init`) reaps, obeys and holds the lifeline. The target is the
//! init's child (`target`), never PID 1 itself: PID 1 ignores signals.

mod init;
mod landlock;
mod mounts;
mod sys;
mod target;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hostler_actors::ports::Leftovers;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::{getegid, geteuid, getppid};

use super::order::Order;
use super::socket::{Refusal, Report, receive_order, send_report};

/// The only argument of a launcher that does nothing: the target of the probe.
pub(super) const NOTHING: &str = "nothing";

/// Programs that call `select` or close every descriptor up to the limit suffer
/// from a high one, watchers of many files from a low one.
const OPEN_FILES: u64 = 16_384;

/// Why a step was refused, ready for the daemon.
struct Refused(Refusal, String);

/// Names the step that failed, in the system's words.
fn step<T, E: Into<io::Error>>(what: &str, result: Result<T, E>) -> Result<T, Refused> {
    result.map_err(|error| {
        let error: io::Error = error.into();
        let words = error.raw_os_error().map(|code| Errno::from_raw(code).desc());
        let words = words.map_or_else(|| error.to_string(), str::to_owned);
        Refused(Refusal::Other, format!("{what}: {words}"))
    })
}

/// The launcher's whole life.
pub(super) fn main() -> ! {
    let code = match std::env::args().nth(2) {
        Some(word) if word == NOTHING => 0,
        word => {
            let parent = word.and_then(|word| word.parse().ok());
            let stdin = io::stdin();
            let socket = stdin.as_fd();
            match parent.map(|parent| outer(socket, parent)) {
                Some(Ok(())) => 0,
                Some(Err(Refused(kind, text))) => {
                    // The daemon may be gone; there is nobody else to tell.
                    let _ = send_report(socket, &Report::Refused(kind, text), None);
                    1
                }
                None => 2,
            }
        }
    };
    std::process::exit(code)
}

fn outer(socket: BorrowedFd<'_>, parent: i32) -> Result<(), Refused> {
    step("parent-death signal", prctl::set_pdeathsig(Signal::SIGKILL))?;
    // The parent may have died before the line above.
    if getppid().as_raw() != parent {
        return Err(Refused(Refusal::Other, "the daemon has gone".to_owned()));
    }
    let Some((memfd, fds)) = step("reading the order", receive_order(socket))? else {
        return Ok(());
    };
    let order = read_order(memfd)?;
    limits()?;
    if matches!(order.leftovers, Leftovers::Release(_)) {
        // The lifeline tells the init as well, which then gives its target a moment.
        step("parent-death signal", prctl::set_pdeathsig(None))?;
    }
    if !order.walls.pid {
        // Without a PID namespace somebody must live on to find the descendants
        // of a daemon that was killed: the lifeline ends us instead.
        step("parent-death signal", prctl::set_pdeathsig(None))?;
        step("subreaper", prctl::set_child_subreaper(true))?;
    }
    let ids = (geteuid().as_raw(), getegid().as_raw());
    // SAFETY: this process has one thread.
    match step("own namespaces", unsafe { sys::fork(namespaces(&order)) })? {
        sys::Forked::Child => init::run(socket, &order, fds, ids),
        sys::Forked::Parent { pid, pidfd } => {
            // A held pipe end would hide the end of the target's output.
            drop(fds);
            let _ = send_report(socket, &Report::Init, pidfd.as_ref().map(AsFd::as_fd));
            drop(pidfd);
            while waitpid(pid, None) == Err(Errno::EINTR) {}
            if !order.walls.pid {
                init::take_down(|_| ());
            }
            Ok(())
        }
    }
}

fn read_order(memfd: OwnedFd) -> Result<Order, Refused> {
    let mut bytes = Vec::new();
    step("reading the order", File::from(memfd).read_to_end(&mut bytes))?;
    Order::decode(&bytes).map_err(|error| Refused(Refusal::Other, error.to_string()))
}

fn limits() -> Result<(), Refused> {
    step("limit of core dumps", setrlimit(Resource::RLIMIT_CORE, 0, 0))?;
    let (_, hard) = step("limit of open files", getrlimit(Resource::RLIMIT_NOFILE))?;
    let soft = hard.min(OPEN_FILES);
    step("limit of open files", setrlimit(Resource::RLIMIT_NOFILE, soft, hard))
}

fn namespaces(order: &Order) -> nix::libc::c_int {
    let walls = order.walls;
    [
        (walls.user, nix::libc::CLONE_NEWUSER),
        (walls.pid, nix::libc::CLONE_NEWPID),
        (walls.mount, nix::libc::CLONE_NEWNS),
    ]
    .into_iter()
    .fold(nix::libc::CLONE_PIDFD, |flags, (on, flag)| if on { flags | flag } else { flags })
}
