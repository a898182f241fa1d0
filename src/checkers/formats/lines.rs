//! What compilers print for people: a place, a colon, a text.

use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::Severity;

use super::{Item, Report, Taken};

/// Codes by which TypeScript says that a project which is referred to would have to
/// be built before: no fault of the code that was checked.
const UNBUILT: [&str; 2] = ["TS6305", "TS6310"];

/// Reads `src/a.ts(1,7): error TS2322: text`, with more of the text on indented
/// lines, and `error TS18003: text` about the project as such.
pub(super) fn tsc(taken: &mut Taken<'_>, output: &str) -> Report {
    let mut report = Report::default();
    let mut unbuilt = 0;
    for (line, more) in with_more(output) {
        let Some((place, code, text)) = tsc_line(line) else { continue };
        if UNBUILT.contains(&code) {
            unbuilt += 1;
            continue;
        }
        let message = std::iter::once(text).chain(more).collect::<Vec<_>>().join("\n");
        let (file, row, column) = place.unwrap_or(("tsconfig.json", 1, 1));
        let (severity, code) = (Severity::Error, Some(code));
        taken.add(&Item { file, line: row, column, severity, code, message: &message });
    }
    if unbuilt > 0 {
        report.gaps.push(format!(
            "{unbuilt} uses of a project that it refers to were not checked: it is not built \
             (`tsc -b` builds it)"
        ));
    }
    report
}

/// Reads `src/a.c:3:27: error: text [-Wname]`; notes belong to what was said before.
pub(super) fn gnu(taken: &mut Taken<'_>, output: &str) -> Report {
    for line in output.lines() {
        let marks = [
            (": fatal error: ", Severity::Error),
            (": error: ", Severity::Error),
            (": warning: ", Severity::Warning),
        ];
        let split = |(mark, severity)| {
            let (place, text) = line.split_once(mark)?;
            Some((place, text, severity))
        };
        let Some((at, text, severity)) = marks.into_iter().find_map(split) else { continue };
        let Some((file, row, column)) = place(at) else { continue };
        let (message, code) = match text.rsplit_once(" [") {
            Some((message, code)) if code.starts_with("-W") => (message, code.strip_suffix(']')),
            _ => (text, None),
        };
        taken.add(&Item { file, line: row, column, severity, code, message });
    }
    Report::default()
}

/// Reads `vet: ./a.go:7:9: text` and the same without `vet: `, with more of the text
/// on indented lines.
pub(super) fn go(taken: &mut Taken<'_>, output: &str) -> Report {
    for (line, more) in with_more(output) {
        let line = line.strip_prefix("vet: ").unwrap_or(line);
        let Some((at, text)) = line.split_once(": ") else { continue };
        let Some((file, row, column)) = place(at) else { continue };
        let message = std::iter::once(text).chain(more).collect::<Vec<_>>().join("\n");
        let severity = Severity::Error;
        taken.add(&Item { file, line: row, column, severity, code: None, message: &message });
    }
    Report::default()
}

/// Returns each line that is not indented with those after it that are.
fn with_more(output: &str) -> Vec<(&str, Vec<&str>)> {
    let mut lines: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in output.lines() {
        match lines.last_mut() {
            Some((_, more)) if line.starts_with([' ', '\t']) => more.push(line.trim()),
            _ => lines.push((line, Vec::new())),
        }
    }
    lines
}

type Place<'a> = (&'a str, u32, u32);

/// Reads `file:line:column` or `file:line`.
fn place(text: &str) -> Option<Place<'_>> {
    let (before, last) = text.rsplit_once(':')?;
    let last = last.parse().ok()?;
    let with_column = before.rsplit_once(':').and_then(|(file, row)| {
        let row = row.parse().ok()?;
        Some((file, row, last))
    });
    Some(with_column.unwrap_or((before, last, 1))).filter(|(file, ..)| !file.is_empty())
}

fn tsc_line(line: &str) -> Option<(Option<Place<'_>>, &str, &str)> {
    let (place, rest) = match line.strip_prefix("error ") {
        Some(rest) => (None, rest),
        None => {
            let (at, rest) = line.split_once("): error ")?;
            let (file, numbers) = at.rsplit_once('(')?;
            let (row, column) = numbers.split_once(',')?;
            (Some((file, row.parse().ok()?, column.parse().ok()?)), rest)
        }
    };
    let (code, text) = rest.split_once(": ")?;
    code.starts_with("TS").then_some((place, code, text))
}
