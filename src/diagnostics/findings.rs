//! Findings made of what a server said, and how a model is shown them. Pure.
//!
//! Only errors and warnings are findings. Columns are counted in characters from 1,
//! whatever the server counts.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use hostler_actors::host::language_server::diagnostics::{Findings, Severity as Given};
use hostler_actors::host::language_server::documents::Document;
use hostler_actors::host::language_server::text::{Encoding, Lines};
use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::{
    Finding, Introduced, Severity,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::details::with;
use super::documents::shown;

/// How much of a message is shown, in characters.
const MESSAGE: usize = 600;
/// How many lines of identical findings are named.
const SAME: usize = 8;

/// What is known of the state of the diagnostics in a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum Freshness {
    /// The server is done with exactly what is on disk.
    #[serde(rename = "fresh")]
    Fresh,
    /// Nobody could be asked.
    #[serde(rename = "no server")]
    NoServer,
    /// It was asked and gave no verdict.
    #[serde(rename = "unknown")]
    Unknown,
    /// It is not done; the rest comes with a later result.
    #[serde(rename = "still analysing")]
    StillAnalysing,
}

/// What is known of one server's diagnostics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Standing {
    /// The server.
    #[serde(rename = "name")]
    pub(crate) server: Arc<str>,
    pub(crate) freshness: Freshness,
    /// Why there is no verdict.
    pub(crate) reason: Option<String>,
}

/// Notes how a server stands. Of several files the worst counts.
pub(crate) fn note(standings: &mut Vec<Standing>, new: Standing) {
    match standings.iter_mut().find(|known| known.server == new.server) {
        Some(known) if known.freshness < new.freshness => *known = new,
        Some(_) => {}
        None => standings.push(new),
    }
}

/// Returns `fresh`, or by whom alone where others gave no verdict.
pub(crate) fn fresh_by(standings: &[Standing]) -> String {
    let (fresh, others): (Vec<_>, Vec<_>) =
        standings.iter().partition(|standing| standing.freshness == Freshness::Fresh);
    let names = |of: Vec<&Standing>| of.iter().map(|it| &*it.server).collect::<Vec<_>>().join(", ");
    match (fresh.is_empty(), others.is_empty()) {
        (_, true) => "fresh".to_owned(),
        // Each server stands as it does for the worst of several files.
        (true, false) => "fresh for a part of the files".to_owned(),
        (false, false) => format!("fresh by {} only, not by {}", names(fresh), names(others)),
    }
}

/// Returns the errors and warnings that a server found in a document.
pub(crate) fn findings(server: &Arc<str>, document: &Document, found: &Findings) -> Vec<Finding> {
    let lines = Lines::new(&document.text);
    let mut findings: Vec<_> = found
        .items
        .iter()
        .filter_map(|item| {
            let severity = match item.severity {
                Given::Error => Severity::Error,
                Given::Warning => Severity::Warning,
                Given::Information | Given::Hint => return None,
            };
            let offset = lines.offset(item.range.start, found.encoding);
            let at = lines.position(offset, Encoding::Utf32);
            Some(Finding {
                server: Arc::clone(server),
                path: Arc::clone(&document.path),
                line: at.line.saturating_add(1),
                column: at.character.saturating_add(1),
                severity,
                code: item.code.as_deref().map(Arc::from),
                message: item.message.as_str().into(),
            })
        })
        .collect();
    findings.sort_by_key(|finding| (finding.severity, finding.line, finding.column));
    findings
}

/// Returns the line in which a finding is shown.
pub(crate) fn line(folder: &Path, finding: &Finding) -> String {
    let message = one_line(&finding.message);
    let code = finding.code.as_ref().map_or_else(String::new, |code| format!(" ({code})"));
    format!(
        "{}:{}:{} {} {message}{code} [{}]",
        shown(folder, &finding.path),
        finding.line,
        finding.column,
        finding.severity,
        finding.server
    )
}

/// Returns the line in which new findings of one kind are shown.
pub(crate) fn introduced_line(folder: &Path, new: &Introduced) -> String {
    let mut text = line(folder, &new.finding);
    if !new.others.is_empty() {
        let lines: Vec<_> = new.others.iter().take(SAME).map(u32::to_string).collect();
        let more = new.others.len().saturating_sub(SAME);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text.push_str(&format!("; the same on line {}{more}", lines.join(", ")));
    }
    text
}

fn one_line(message: &str) -> String {
    let lines: Vec<_> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let line = lines.join("; ");
    match line.char_indices().nth(MESSAGE) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

/// Returns a finding as programs get it.
pub(crate) fn detail(folder: &Path, finding: &Finding) -> Value {
    with(json!(finding), json!({ "path": shown(folder, &finding.path) }))
}

/// Returns new findings of one kind as programs get them.
pub(crate) fn introduced_detail(folder: &Path, new: &Introduced) -> Value {
    let more = json!({ "count": new.count(), "also_on_lines": new.others });
    with(detail(folder, &new.finding), more)
}

/// How much of a list of findings is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cap {
    /// From how many files.
    pub(crate) files: usize,
    /// How many.
    pub(crate) items: usize,
}

/// Returns the first items within a cap, and a word on what it cut, if anything.
/// `first` is the file whose items go before those of others.
pub(crate) fn capped<T>(
    mut items: Vec<T>,
    cap: Cap,
    of: impl Fn(&T) -> &Finding,
    first: Option<&Path>,
) -> (Vec<T>, Option<String>) {
    let key = |finding: &Finding| {
        (finding.severity, Some(&*finding.path) != first, finding.path.clone(), finding.line)
    };
    items.sort_by_key(|item| key(of(item)));
    let files = |items: &[T]| -> BTreeSet<Arc<Path>> {
        items.iter().map(|item| Arc::clone(&of(item).path)).collect()
    };
    let (total, all_files) = (items.len(), files(&items).len());
    let mut seen = BTreeSet::new();
    items.retain(|item| {
        let path = &of(item).path;
        seen.contains(path) || (seen.len() < cap.files && seen.insert(Arc::clone(path)))
    });
    items.truncate(cap.items);
    let cut = (items.len() < total).then(|| {
        format!(
            "shown are {} of {total} in {} of {all_files} files",
            items.len(),
            files(&items).len()
        )
    });
    (items, cut)
}

/// Counts findings in words: `2 errors and 1 warning`.
pub(crate) fn counted<'a>(findings: impl Iterator<Item = (&'a Finding, usize)>) -> String {
    let (mut errors, mut warnings) = (0, 0);
    for (finding, count) in findings {
        match finding.severity {
            Severity::Error => errors += count,
            Severity::Warning => warnings += count,
        }
    }
    let word = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    };
    match (errors, warnings) {
        (0, 0) => "no errors or warnings".to_owned(),
        (errors, 0) => word(errors, "error"),
        (0, warnings) => word(warnings, "warning"),
        (errors, warnings) => {
            format!("{} and {}", word(errors, "error"), word(warnings, "warning"))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use hostler_actors::host::language_server::diagnostics::{Proof, diagnostics};
    use hostler_actors::host::language_server::documents::TextHash;
    use hostler_actors::ids::Incarnation;
    use tokio::time::Instant;

    use super::*;

    fn finding(path: &str, line: u32, severity: Severity) -> Finding {
        Finding {
            server: "pyright".into(),
            path: Path::new(path).into(),
            line,
            column: 2,
            severity,
            code: Some("reportX".into()),
            message: "no\n  such thing".into(),
        }
    }

    #[test]
    fn a_finding_is_one_line() {
        let shown = line(Path::new("/w"), &finding("/w/a/b.py", 3, Severity::Error));
        assert_eq!(shown, "a/b.py:3:2 error no; such thing (reportX) [pyright]");
        let new =
            Introduced { finding: finding("/x/b.py", 3, Severity::Warning), others: vec![5, 9] };
        let shown = introduced_line(Path::new("/w"), &new);
        assert_eq!(
            shown,
            "/x/b.py:3:2 warning no; such thing (reportX) [pyright]; the same on line 5, 9"
        );
    }

    #[test]
    fn columns_are_characters_and_hints_are_left_out() {
        let document = Document {
            path: Path::new("/w/a.py").into(),
            language_id: "python".into(),
            text: "x\n😀日 y = 1\n".into(),
            hash: TextHash([0; 32]),
            read_at: Instant::now(),
        };
        let at = |character: u32, severity: u32| {
            json!({ "range": { "start": { "line": 1, "character": character },
                               "end": { "line": 1, "character": character } },
                    "severity": severity, "message": "m" })
        };
        let found = Findings {
            items: diagnostics(&json!([at(4, 2), at(4, 3), at(4, 4), at(0, 1)])),
            related: Vec::new(),
            encoding: Encoding::Utf16,
            proof: Proof { incarnation: Incarnation(1), hash: document.hash, epoch: 0 },
        };
        let found = findings(&"s".into(), &document, &found);
        let places: Vec<_> = found.iter().map(|f| (f.severity, f.line, f.column)).collect();
        assert_eq!(places, [(Severity::Error, 2, 1), (Severity::Warning, 2, 4)]);
    }

    #[test]
    fn a_cap_says_what_it_cut_and_keeps_the_written_file_first() {
        let all: Vec<_> = ["/w/a", "/w/b", "/w/c"]
            .iter()
            .flat_map(|path| (1..=3).map(|line| finding(path, line, Severity::Error)))
            .collect();
        let cap = Cap { files: 2, items: 4 };
        let (kept, cut) = capped(all.clone(), cap, |finding| finding, Some(Path::new("/w/c")));
        let places: Vec<_> =
            kept.iter().map(|f| format!("{}:{}", f.path.display(), f.line)).collect();
        assert_eq!(places, ["/w/c:1", "/w/c:2", "/w/c:3", "/w/a:1"]);
        assert_eq!(cut.as_deref(), Some("shown are 4 of 9 in 2 of 3 files"));
        assert_eq!(capped(all, Cap { files: 9, items: 9 }, |finding| finding, None).1, None);
    }

    #[test]
    fn counts_are_words() {
        let one = finding("/a", 1, Severity::Error);
        let other = finding("/a", 1, Severity::Warning);
        assert_eq!(counted([(&one, 1), (&other, 2)].into_iter()), "1 error and 2 warnings");
        assert_eq!(counted([].into_iter()), "no errors or warnings");
    }
}
