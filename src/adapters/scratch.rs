//! Folders for what an adapter builds, one per session.
//!
//! They cannot lie in the daemon's own folders, which are hidden from what it starts. A
//! daemon that is killed leaves its own behind, so each carries the daemon's process id
//! and the next one clears up after those that are gone.

use std::io;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "hostler-debug-";

/// Makes one; it goes with its value.
pub(crate) fn make() -> io::Result<TempDir> {
    let prefix = format!("{PREFIX}{}-", std::process::id());
    tempfile::Builder::new().prefix(&prefix).tempdir()
}

/// Removes what daemons left that are no more.
pub(crate) fn sweep() {
    sweep_in(&std::env::temp_dir());
}

fn sweep_in(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        if !Path::new("/proc").join(pid.to_string()).exists() {
            // Another user's stays, as it cannot be removed.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_what_dead_daemons_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let ours = format!("{PREFIX}{}-a", std::process::id());
        let dead = format!("{PREFIX}{}-a", u32::MAX);
        for name in [ours.as_str(), dead.as_str(), "hostler-debug-x", "other"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        sweep_in(folder.path());
        assert!(folder.path().join(ours).exists() && folder.path().join("other").exists());
        assert!(!folder.path().join(dead).exists());
    }
}
