//! The init of one tree: starts the target, reaps, obeys the daemon, and leaves
//! nobody behind.
//!
//! PID 1 of its namespace, or a subreaper where there is none. It ends when it has
//! no child left, which in both forms means that the tree is empty: every orphan
//! becomes its child.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use hostler_actors::ports::Leftovers;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};

use super::super::order::Order;
use super::super::procfs::Table;
use super::super::socket::{Command, Refusal, Report, receive_command, send_report};
use super::{Refused, mounts, step, sys, target};

/// How long a process that holds somebody else's may take to let that go: lldb-dap needs
/// 0.2 s. Less than what the daemon waits after a kill.
const RELEASE: Duration = Duration::from_millis(1500);
const RELEASE_STEP: u8 = 100;

/// Lives the init's life and exits.
pub(super) fn run(
    socket: BorrowedFd<'_>,
    order: &Order,
    mut fds: Vec<OwnedFd>,
    ids: (u32, u32),
) -> ! {
    // Behind those of the wires, if the target's stdin is one of them.
    let farewell = (fds.len() > order.pipes()).then(|| fds.pop()).flatten();
    let begun = begin(socket, order, &fds, ids);
    // A held pipe end would hide the end of the target's output.
    drop(fds);
    let code = match begun {
        Ok((signals, main)) => {
            Init { socket, signals, main, ended: false, order, farewell }.serve();
            0
        }
        Err(Refused(kind, text)) => {
            let _ = send_report(socket, &Report::Refused(kind, text), None);
            1
        }
    };
    std::process::exit(code)
}

fn begin(
    socket: BorrowedFd<'_>,
    order: &Order,
    fds: &[OwnedFd],
    (uid, gid): (u32, u32),
) -> Result<(SignalFd, Pid), Refused> {
    if order.walls.pid {
        // If the outer launcher died before this line, the daemon sees it end and
        // closes the lifeline.
        step("parent-death signal", prctl::set_pdeathsig(Signal::SIGKILL))?;
    } else {
        step("subreaper", prctl::set_child_subreaper(true))?;
    }
    if order.walls.user {
        step("own user namespace", map_ids(uid, gid))?;
    }
    if let Some(hidden) = mounts::hides_cwd(order) {
        let text = format!("it is below {}, which processes do not see", hidden.display());
        return Err(Refused(Refusal::BadCwd, text));
    }
    if order.walls.mount {
        mounts::build(order)?;
    }
    let mut mask = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        mask.add(signal);
    }
    step("blocking signals", mask.thread_block())?;
    let signals = step("signal descriptor", SignalFd::new(&mask))?;
    // With CLONE_VFORK the call returns when the target's program runs or when the
    // attempt has failed and said so: no pipe is needed to learn of it.
    // SAFETY: this process has one thread.
    match step("fork", unsafe { sys::fork(nix::libc::CLONE_VFORK) })? {
        sys::Forked::Child => {
            target::become_target(order, fds, socket);
            std::process::exit(127)
        }
        sys::Forked::Parent { pid, .. } => {
            let _ = send_report(socket, &Report::Running, None);
            Ok((signals, pid))
        }
    }
}

/// Maps the own ids to themselves, the only map that needs no privilege.
fn map_ids(uid: u32, gid: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

struct Init<'a> {
    socket: BorrowedFd<'a>,
    signals: SignalFd,
    main: Pid,
    ended: bool,
    order: &'a Order,
    /// Our own end of the target's stdin.
    farewell: Option<OwnedFd>,
}

impl Init<'_> {
    fn serve(mut self) {
        while self.turn() {}
        if let (Leftovers::Release(words), false) = (&self.order.leftovers, self.ended) {
            self.let_go(words);
        }
        let Self { socket, main, ended, .. } = self;
        if !ended {
            // First, or a shell whose children die before it is seen to exit with 0.
            let _ = kill(main, Signal::SIGKILL);
        }
        take_down(|status| report_end(socket, main, status));
    }

    /// Says farewell to the main process, and gives it a moment to go.
    fn let_go(&mut self, words: &[u8]) {
        if let Some(stdin) = self.farewell.take() {
            // It was made not to block by the daemon, so a process that does not read
            // costs nothing here.
            let _ = File::from(stdin).write_all(words);
        }
        let until = Instant::now() + RELEASE;
        while !self.ended && Instant::now() < until {
            let mut ready = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
            if poll(&mut ready, RELEASE_STEP) == Ok(1) && self.only_children_called() {
                self.reap();
            }
        }
    }

    /// Waits for the next thing and does it. Returns false when the tree is to go.
    fn turn(&mut self) -> bool {
        let mut ready = [
            PollFd::new(self.socket, PollFlags::POLLIN),
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut ready, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => return true,
            Err(_) => return false,
        }
        let [spoken, signalled] = ready.map(|fd| fd.any().unwrap_or(true));
        if spoken {
            match receive_command(self.socket) {
                Ok(Some(Command::Signal(signal))) => self.forward(signal),
                Ok(None) | Err(_) => return false,
            }
        }
        !signalled || (self.only_children_called() && self.reap())
    }

    /// Reads one signal. Returns false for one that asks us to end.
    fn only_children_called(&self) -> bool {
        let child = u32::try_from(Signal::SIGCHLD as i32).ok();
        matches!(self.signals.read_signal(), Ok(Some(info)) if Some(info.ssi_signo) == child)
    }

    fn reap(&mut self) -> bool {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return true,
                Ok(status) if status.pid() == Some(self.main) => {
                    self.ended = true;
                    report_end(self.socket, self.main, status);
                    if self.order.leftovers != Leftovers::Keep {
                        return false;
                    }
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
    }

    fn forward(&self, signal: i32) {
        let Ok(signal) = Signal::try_from(signal) else { return };
        if self.ended {
            // The number of the group may belong to somebody else by now, and what is
            // left need not be in it: it too is to be asked before it is killed.
            everyone(signal);
        } else {
            // The group may be gone already.
            let _ = killpg(self.main, signal);
        }
    }
}

fn report_end(socket: BorrowedFd<'_>, main: Pid, status: WaitStatus) {
    let report = match status {
        WaitStatus::Exited(pid, code) if pid == main => Report::Exited(code),
        WaitStatus::Signaled(pid, signal, _) if pid == main => Report::Signalled(signal as i32),
        _ => return,
    };
    let _ = send_report(socket, &report, None);
}

/// Kills every process of the tree but this one and returns when none is left.
pub(super) fn take_down(mut reaped: impl FnMut(WaitStatus)) {
    let mut flags = None;
    loop {
        if flags.is_none() {
            everyone(Signal::SIGKILL);
        }
        // Wait for one, reap the rest that is dead, then look again: orphans have
        // become our children meanwhile.
        match waitpid(None, flags) {
            Ok(WaitStatus::StillAlive) => flags = None,
            Ok(status) => {
                flags = Some(WaitPidFlag::WNOHANG);
                reaped(status);
            }
            Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

fn everyone(signal: Signal) {
    if getpid().as_raw() == 1 {
        // All of this namespace but us, in one step that no fork can slip through.
        let _ = kill(Pid::from_raw(-1), signal);
        return;
    }
    for pid in Table::read().below(std::process::id()) {
        if let Ok(pid) = i32::try_from(pid) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}
