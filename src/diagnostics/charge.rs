//! Whether what is new since a write is new by it. Pure.
//!
//! Where somebody else changed files at the same time, an error on a line that the
//! write did not touch may be theirs: it is told, and nobody is charged with it.

use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::{
    Change, Finding, Introduced,
};

/// Takes out of what is new what may be somebody else's.
pub(super) fn take_doubtful(
    introduced: Vec<Introduced>,
    changes: &[Change],
) -> (Vec<Introduced>, Vec<Finding>) {
    let touched = |finding: &Finding| {
        changes.iter().any(|change| {
            change.path == finding.path
                && change.lines.as_ref().is_some_and(|lines| lines.contains(&finding.line))
        })
    };
    let (ours, doubtful): (Vec<_>, Vec<_>) =
        introduced.into_iter().partition(|new| touched(&new.finding));
    (ours, doubtful.into_iter().map(|new| new.finding).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use std::path::Path;

    use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::Severity;

    use super::*;

    #[test]
    fn what_is_on_lines_of_the_write_is_its_own() {
        let finding = |path: &str, line| Finding {
            server: "s".into(),
            path: Path::new(path).into(),
            line,
            column: 1,
            severity: Severity::Error,
            code: None,
            message: "m".into(),
        };
        let change = |path: &str, lines| Change {
            server: "s".into(),
            path: Path::new(path).into(),
            before: Some(Vec::new()),
            after: Vec::new(),
            lines,
        };
        let new = [finding("/a", 3), finding("/a", 9), finding("/b", 3)];
        let introduced = new.map(|finding| Introduced { finding, others: Vec::new() });
        let changes = [change("/a", Some(2..=4)), change("/b", None)];
        let (ours, doubtful) = take_doubtful(introduced.to_vec(), &changes);
        assert_eq!(ours, introduced[..1]);
        assert_eq!(doubtful, [finding("/a", 9), finding("/b", 3)]);
    }
}
