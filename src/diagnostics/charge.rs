//! Whether what is new since a write is new by it.
//!
//! Where somebody else changed files at the same time, an error on a line that the
//! write did not touch, in a file that mentions one of those, may be theirs: it is
//! told, and nobody is charged with it.

use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::{
    Change, Finding, Introduced,
};
use std::path::Path;

/// Takes out of what is new what may be somebody else's: `theirs` says of which files
/// they may have broken something.
pub(super) fn take_doubtful(
    introduced: Vec<Introduced>,
    changes: &[Change],
    theirs: impl Fn(&Path) -> bool,
) -> (Vec<Introduced>, Vec<Finding>) {
    let touched = |finding: &Finding| {
        changes.iter().any(|change| change.path == finding.path && change.touches(finding))
    };
    let (ours, doubtful): (Vec<_>, Vec<_>) =
        introduced.into_iter().partition(|new| touched(&new.finding) || !theirs(&new.finding.path));
    (ours, doubtful.into_iter().map(|new| new.finding).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::Severity;

    use std::sync::Arc;

    use super::super::dependents::depends_on;
    use super::*;

    #[test]
    fn what_depends_on_what_others_changed_is_doubtful_but_on_lines_of_the_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| -> Arc<Path> { folder.path().join(name).into() };
        std::fs::write(path("a.py"), "import theirs").unwrap();
        std::fs::write(path("b.py"), "import ours").unwrap();
        let finding = |name: &str, line| Finding {
            server: "s".into(),
            path: path(name),
            line,
            column: 1,
            severity: Severity::Error,
            code: None,
            message: "m".into(),
        };
        let change = Change {
            server: "s".into(),
            path: path("a.py"),
            before: Some(Vec::new()),
            after: Vec::new(),
            lines: Some(2..=4),
        };
        let new = [finding("a.py", 3), finding("a.py", 9), finding("b.py", 3)];
        let introduced = new.map(|finding| Introduced { finding, others: Vec::new() });
        let doubtful = |others: Option<&[Arc<Path>]>| {
            let theirs = |path: &Path| others.is_none_or(|others| depends_on(path, others));
            let changes = std::slice::from_ref(&change);
            let (ours, doubtful) = take_doubtful(introduced.to_vec(), changes, theirs);
            assert_eq!(ours.len() + doubtful.len(), 3);
            doubtful
        };
        assert_eq!(doubtful(Some(&[path("neither.py")])), []);
        assert_eq!(doubtful(Some(&[path("theirs.py")])), [finding("a.py", 9)]);
        assert_eq!(doubtful(Some(&[path("b.py")])), [finding("b.py", 3)]);
        assert_eq!(doubtful(None), [finding("a.py", 9), finding("b.py", 3)]);
    }
}
