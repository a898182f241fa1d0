//! The folders that checkers may fill, such as cargo's target folder: one for each
//! checker and root, removed when it was not used for long. Touches nothing else.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How long an unused folder stays.
const KEPT: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// Its time of change says when a folder was last used. It is also what says that a
/// folder is one of ours.
const USED: &str = ".used-by-hostler";

/// Makes a folder, notes that it is used, and removes those beside it that are not.
pub(super) fn prepare(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join(USED), "")?;
    let long_ago = SystemTime::now() - KEPT;
    for beside in fs::read_dir(folder.parent().unwrap_or(folder))?.flatten() {
        let used = fs::metadata(beside.path().join(USED)).and_then(|meta| meta.modified());
        if used.is_ok_and(|used| used < long_ago) {
            // What cannot be removed only takes room.
            let _ = fs::remove_dir_all(beside.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;

    #[test]
    fn what_was_not_used_for_long_goes_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("others")).unwrap();
        for name in ["old", "new"] {
            prepare(&at(name)).unwrap();
        }
        let used = fs::File::options().write(true).open(at("old").join(USED)).unwrap();
        used.set_modified(SystemTime::now() - KEPT - KEPT).unwrap();
        prepare(&at("new")).unwrap();
        assert!(!at("old").exists() && at("new").exists() && at("others").exists());
    }
}
