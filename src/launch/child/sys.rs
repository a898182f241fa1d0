//! The system calls that no safe wrapper has. Nothing is decided here.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::libc::{
    self, AT_EMPTY_PATH, AT_FDCWD, AT_RECURSIVE, CLOSE_RANGE_CLOEXEC, SIGCHLD, c_int, c_long,
    c_uint, c_ulong,
};
use nix::unistd::Pid;

const OPEN_TREE_CLONE: c_uint = 1;
const OPEN_TREE_CLOEXEC: c_uint = libc::O_CLOEXEC as c_uint;
const MOVE_MOUNT_F_EMPTY_PATH: c_uint = 4;
const MOUNT_ATTR_RDONLY: u64 = 1;
const CAP_SYS_ADMIN: c_ulong = 21;

fn check(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Which side of a fork this is.
pub(super) enum Forked {
    Child,
    Parent { pid: Pid, pidfd: Option<OwnedFd> },
}

/// Forks into the namespaces that `flags` name. One call instead of `unshare` and
/// `fork`, so that the parent stays outside of them.
///
/// # Safety
///
/// The process must have one thread only.
pub(super) unsafe fn fork(flags: c_int) -> io::Result<Forked> {
    let mut pidfd: c_int = -1;
    // SAFETY: without CLONE_VM and a stack this is fork; the kernel writes the
    // descriptor to where the third argument points, which outlives the call.
    let result = unsafe {
        libc::syscall(libc::SYS_clone, c_long::from(flags | SIGCHLD), 0, &raw mut pidfd, 0, 0)
    };
    match check(result)? {
        0 => Ok(Forked::Child),
        pid => {
            // SAFETY: the kernel has just made it for us.
            let pidfd = (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) });
            let pid = i32::try_from(pid).map_err(io::Error::other)?;
            Ok(Forked::Parent { pid: Pid::from_raw(pid), pidfd })
        }
    }
}

/// Lets every open descriptor be closed by the next exec.
pub(super) fn close_all_on_exec() -> io::Result<()> {
    // SAFETY: marks descriptors, touches no memory.
    check(unsafe { libc::syscall(libc::SYS_close_range, 0, c_uint::MAX, CLOSE_RANGE_CLOEXEC) })?;
    Ok(())
}

/// Duplicates `fd` to a number of at least `least`, closed by exec.
pub(super) fn duplicate(fd: BorrowedFd<'_>, least: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: touches no memory.
    let made = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, least) };
    check(made.into())?;
    // SAFETY: the kernel has just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

/// Makes `to` the same open file as `from`, kept open by exec.
pub(super) fn duplicate_to(from: BorrowedFd<'_>, to: RawFd) -> io::Result<()> {
    // SAFETY: touches no memory; what `to` was is meant to be replaced.
    check(unsafe { libc::dup2(from.as_raw_fd(), to) }.into())?;
    Ok(())
}

/// Sets every signal's action to its default.
pub(super) fn default_signals() {
    for signal in 1..=64 {
        // SAFETY: the default action runs no code of ours. A refusal (SIGKILL,
        // SIGSTOP, the two that libc keeps) leaves the default that they have.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Gives up the right to mount, for this process and whatever it executes.
pub(super) fn drop_mount_right() -> io::Result<()> {
    // SAFETY: touches no memory.
    check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) }.into())?;
    Ok(())
}

/// A copy of a folder with all mounts below it, attached nowhere yet.
pub(super) struct Detached(OwnedFd);

#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

impl Detached {
    pub(super) fn copy(path: &Path) -> io::Result<Self> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE as c_uint;
        // SAFETY: the path is a C string that outlives the call.
        let fd = unsafe { libc::syscall(libc::SYS_open_tree, AT_FDCWD, path.as_ptr(), flags) };
        let fd = i32::try_from(check(fd)?).map_err(io::Error::other)?;
        // SAFETY: the kernel has just made it for us.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(super) fn read_only(&self) -> io::Result<()> {
        set_read_only(self.0.as_raw_fd(), c"", AT_EMPTY_PATH | AT_RECURSIVE)
    }

    pub(super) fn attach(&self, path: &Path) -> io::Result<()> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let from = self.0.as_raw_fd();
        // SAFETY: both paths are C strings that outlive the call.
        check(unsafe {
            libc::syscall(
                libc::SYS_move_mount,
                from,
                c"".as_ptr(),
                AT_FDCWD,
                path.as_ptr(),
                MOVE_MOUNT_F_EMPTY_PATH,
            )
        })?;
        Ok(())
    }
}

/// Makes the one mount at `path` read-only.
pub(super) fn mount_read_only(path: &Path) -> io::Result<()> {
    set_read_only(AT_FDCWD, &CString::new(path.as_os_str().as_bytes())?, 0)
}

// A remount would have to repeat the flags that a user namespace locks; this
// changes the one attribute.
fn set_read_only(at: RawFd, path: &std::ffi::CStr, flags: c_int) -> io::Result<()> {
    let attr = MountAttr { set: MOUNT_ATTR_RDONLY, clear: 0, propagation: 0, userns: 0 };
    // SAFETY: the path and the struct outlive the call, and its size is given.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at,
            path.as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    })?;
    Ok(())
}
