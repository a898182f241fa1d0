//! Columns as this project counts them, in characters, from what checkers count.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hostler_actors::host::language_server::text::{Encoding, Lines, Position};
use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::Finding;

use crate::config::definitions::Format;

/// How many files are read for it, and how large they may be; columns in others stay
/// as they are, which is right for all lines of plain ASCII.
const FILES: usize = 200;
const BYTES: u64 = 4 * 1024 * 1024;

/// Returns what a checker counts, where it is not characters. Compilers differ: gcc
/// counts cells of a terminal and clang bytes, so that theirs are taken as they are.
fn counted(format: Format) -> Option<Encoding> {
    match format {
        Format::Tsc | Format::PyrightJson | Format::DartMachine => Some(Encoding::Utf16),
        Format::Go => Some(Encoding::Utf8),
        Format::CargoJson | Format::RuffJson | Format::Gnu => None,
    }
}

/// Converts the columns of findings. Reads the files that they are in.
pub(super) fn settle(format: Format, findings: &mut [Finding]) {
    let Some(encoding) = counted(format) else { return };
    let mut by_file = BTreeMap::<Arc<Path>, Vec<&mut Finding>>::new();
    for finding in findings {
        by_file.entry(Arc::clone(&finding.path)).or_default().push(finding);
    }
    for (path, findings) in by_file.into_iter().take(FILES) {
        let small = std::fs::metadata(&path).is_ok_and(|meta| meta.len() <= BYTES);
        let Some(text) = small.then(|| std::fs::read_to_string(&path).ok()).flatten() else {
            continue;
        };
        let lines = Lines::new(&text);
        for finding in findings {
            let (line, character) = (finding.line - 1, finding.column - 1);
            let offset = lines.offset(Position { line, character }, encoding);
            finding.column = lines.position(offset, Encoding::Utf32).character + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::Severity;

    use super::*;

    #[test]
    fn what_is_counted_is_characters() {
        let place = tempfile::tempdir().unwrap();
        let path: Arc<Path> = place.path().join("a").into();
        std::fs::write(&path, "x\n\"日😀\" + missing\n").unwrap();
        let column = |format, column| {
            let mut found = [Finding {
                server: "x".into(),
                path: Arc::clone(&path),
                line: 2,
                column,
                severity: Severity::Error,
                code: None,
                message: "m".into(),
            }];
            settle(format, &mut found);
            found[0].column
        };
        assert_eq!(column(Format::Tsc, 9), 8);
        assert_eq!(column(Format::Go, 13), 8);
        assert_eq!(column(Format::CargoJson, 8), 8);
    }
}
