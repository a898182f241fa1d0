//! What the target sees of the disk: the daemon's folders hidden, the worktree of
//! a read-only posture read-only.
//!
//! Copies of what must stay visible are taken first, attached nowhere; then the
//! hiding mounts go up; then the copies are attached.

use std::fs;
use std::path::{Path, PathBuf};

use hostler_actors::ports::Posture;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};

use super::super::order::Order;
use super::sys::{Detached, mount_read_only};
use super::{Refused, step};

/// Returns the hidden folder that the working directory is below, if it is.
pub(super) fn hides_cwd(order: &Order) -> Option<&Path> {
    let cwd = fs::canonicalize(&order.cwd).ok()?;
    hidden_by(&cwd, &order.hide, &shown(order))
}

/// The folders that stay visible below hidden ones, and whether they may be written.
fn shown(order: &Order) -> Vec<(PathBuf, bool)> {
    let mut all: Vec<_> = order.keep.iter().map(|path| (path.clone(), false)).collect();
    if let Posture::ReadOnly { worktree, scratch } = &order.posture {
        all.extend([(worktree, false), (scratch, true)].map(|(path, writable)| {
            (fs::canonicalize(path).unwrap_or_else(|_| path.clone()), writable)
        }));
    }
    // Outer folders first, so that an inner one is not covered again.
    all.sort_by_key(|(path, _)| path.components().count());
    all
}

fn hidden_by<'a>(cwd: &Path, hide: &'a [PathBuf], shown: &[(PathBuf, bool)]) -> Option<&'a Path> {
    let hidden = hide.iter().find(|hidden| cwd.starts_with(hidden))?;
    let visible = |path: &Path| path.starts_with(hidden) && cwd.starts_with(path);
    (!shown.iter().any(|(path, _)| visible(path))).then_some(hidden)
}

/// Puts the mounts up. This process must be in its own mount namespace.
pub(super) fn build(order: &Order) -> Result<(), Refused> {
    const NOTHING: Option<&str> = None;
    // What the host mounts later still arrives, what we mount does not get out.
    let slave = MsFlags::MS_REC | MsFlags::MS_SLAVE;
    step("own mounts", mount(NOTHING, "/", NOTHING, slave, NOTHING))?;
    let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    if order.walls.pid {
        step("own /proc", mount(Some("proc"), "/proc", Some("proc"), plain, NOTHING))?;
    }
    let mut copies = Vec::new();
    for (path, writable) in shown(order) {
        let copy = match Detached::copy(&path) {
            Err(error) if error.raw_os_error() == Some(Errno::ENOENT as i32) => continue,
            other => step(&named("copying", &path), other)?,
        };
        if !writable {
            step(&named("making read-only", &path), copy.read_only())?;
        }
        copies.push((path, copy));
    }
    let mut hidden = Vec::new();
    for path in &order.hide {
        match mount(Some("tmpfs"), path, Some("tmpfs"), plain, Some("mode=755,size=64k")) {
            Ok(()) => hidden.push(path),
            Err(Errno::ENOENT) => {}
            Err(error) => step(&named("hiding", path), Err(error))?,
        }
    }
    for (path, copy) in copies {
        if hidden.iter().any(|hidden| path.starts_with(hidden)) {
            step(&named("making a place for", &path), fs::create_dir_all(&path))?;
        }
        step(&named("attaching", &path), copy.attach(&path))?;
    }
    for path in hidden {
        step(&named("hiding", path), mount_read_only(path))?;
    }
    Ok(())
}

fn named(what: &str, path: &Path) -> String {
    format!("{what} {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_cwd_is_found() {
        let hide = [PathBuf::from("/data"), PathBuf::from("/run/h")];
        let shown = [(PathBuf::from("/data/tools"), false), (PathBuf::from("/run"), false)];
        for (cwd, expected) in [
            ("/home", None),
            ("/database", None),
            ("/data", Some("/data")),
            ("/data/store", Some("/data")),
            ("/data/tools", None),
            ("/data/tools/x", None),
            ("/data/toolsx", Some("/data")),
            ("/run/h/x", Some("/run/h")),
        ] {
            assert_eq!(hidden_by(Path::new(cwd), &hide, &shown), expected.map(Path::new), "{cwd}");
        }
    }
}
