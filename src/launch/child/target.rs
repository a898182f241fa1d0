//! The last steps in the process that becomes the target, in the order in which
//! each is still possible. Returns only to say why it did not.

use std::ffi::{CString, OsStr};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use hostler_actors::ports::Posture;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{chdir, execve, geteuid, setsid};

use super::super::order::{Order, Source};
use super::super::socket::{Refusal, Report, send_report};
use super::{Refused, landlock, step, sys};

/// When memory runs out, tools go before the host (0 is neutral, 1000 is first).
const OOM_SCORE: &str = "500";

/// Becomes the order's program. Returns only when it cannot, having told the daemon.
pub(super) fn become_target(order: &Order, fds: &[OwnedFd], socket: BorrowedFd<'_>) {
    let above = order.wires.iter().map(|(fd, _)| fd + 1).max().unwrap_or(0).max(3);
    // The wires may need the socket's number.
    let moved = match sys::duplicate(socket, above) {
        Ok(moved) => moved,
        Err(error) => return tell(socket, step("descriptors", Err(error))),
    };
    let done = prepare(order, moved.as_fd())
        .and_then(|()| connect(order, fds, above))
        .and_then(|()| execute(order));
    tell(moved.as_fd(), done);
}

fn tell(socket: BorrowedFd<'_>, done: Result<(), Refused>) {
    if let Err(Refused(kind, text)) = done {
        let _ = send_report(socket, &Report::Refused(kind, text), None);
    }
}

fn prepare(order: &Order, socket: BorrowedFd<'_>) -> Result<(), Refused> {
    step("own session", setsid())?;
    if !order.walls.pid {
        step("parent-death signal", prctl::set_pdeathsig(Signal::SIGKILL))?;
    }
    // The kernel adds our process id, translated to the daemon's namespace.
    step("telling the daemon", send_report(socket, &Report::Target, None))?;
    // Not worth a refusal: without the right to it the default stays.
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    if let Err(error) = chdir(&order.cwd) {
        return Err(Refused(Refusal::BadCwd, error.desc().to_owned()));
    }
    if let Posture::ReadOnly { worktree, scratch } = &order.posture {
        if order.walls.mount && geteuid().is_root() {
            // Root in its own user namespace could make the bind writable again.
            step("giving up the right to mount", sys::drop_mount_right())?;
        }
        if order.walls.landlock {
            landlock::restrict(worktree, scratch)?;
        }
    }
    Ok(())
}

/// Makes the descriptors exactly those of the order.
fn connect(order: &Order, fds: &[OwnedFd], above: RawFd) -> Result<(), Refused> {
    step("closing descriptors", sys::close_all_on_exec())?;
    let null = step("/dev/null", fs::File::options().read(true).write(true).open("/dev/null"))?;
    // Sources are moved out of the way first: one may sit at another's number.
    let null = step("descriptors", sys::duplicate(null.as_fd(), above))?;
    let sources: Result<Vec<_>, _> =
        fds.iter().map(|fd| step("descriptors", sys::duplicate(fd.as_fd(), above))).collect();
    let sources = sources?;
    for (fd, source) in &order.wires {
        let from = match source {
            Source::Null => Some(&null),
            Source::Sent(at) => usize::try_from(*at).ok().and_then(|at| sources.get(at)),
        };
        let from = from.ok_or_else(|| {
            Refused(Refusal::Other, format!("descriptor {fd}: its pipe was not sent"))
        })?;
        step("descriptors", sys::duplicate_to(from.as_fd(), *fd))?;
    }
    // Closed by exec, and the socket must live until then.
    sources.into_iter().chain([null]).for_each(|fd| {
        let _ = fd.into_raw_fd();
    });
    Ok(())
}

fn execute(order: &Order) -> Result<(), Refused> {
    let c_string = |text: &OsStr| step("a zero byte in the order", CString::new(text.as_bytes()));
    let program = c_string(order.program.as_os_str())?;
    let args = std::iter::once(order.program.as_os_str())
        .chain(order.args.iter().map(|arg| arg.as_os_str()))
        .map(c_string)
        .collect::<Result<Vec<_>, _>>()?;
    let env = order.env.iter().map(|pair| c_string(pair)).collect::<Result<Vec<_>, _>>()?;
    // Rust ignores SIGPIPE, and the daemon may have been started with others
    // ignored or blocked; exec would hand that on.
    sys::default_signals();
    step("unblocking signals", SigSet::empty().thread_set_mask())?;
    let Err(error) = execve(&program, &args, &env);
    Err(match error {
        // The file is there: it is its interpreter that is not.
        Errno::ENOENT if order.program.exists() => {
            Refused(Refusal::NotExecutable, "the interpreter that it names is missing".to_owned())
        }
        Errno::ENOENT | Errno::ENOTDIR => Refused(Refusal::NotFound, String::new()),
        Errno::E2BIG => Refused(Refusal::Other, error.desc().to_owned()),
        _ => Refused(Refusal::NotExecutable, error.desc().to_owned()),
    })
}
