//! Diagnostics, decoded leniently, and verdicts made of them. Pure.
//!
//! Own structs, since the crate's fail a whole publish over one diagnostic with a
//! severity of 99, a code of 1.5 or a line of -1; each has been sent by a server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::documents::TextHash;
use super::text::{Encoding, Position, Range};
use super::uri;
use crate::ids::Incarnation;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// An error; also where the server leaves it to us.
    Error,
    /// A warning; also where the number is unknown, so that it is not hidden.
    Warning,
    /// For information.
    Information,
    /// A hint.
    Hint,
}

/// One diagnostic.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Where, in the encoding of its server.
    pub range: Range,
    /// How bad it is.
    pub severity: Severity,
    /// The rule or error code, as text.
    pub code: Option<String>,
    /// Who says so, for example `Pyright`.
    pub source: Option<String>,
    /// What is wrong.
    pub message: String,
    /// As it came, for `textDocument/codeAction`.
    pub raw: Value,
}

impl Diagnostic {
    fn read(raw: &Value) -> Option<Self> {
        if !raw.is_object() {
            return None;
        }
        let severity = match raw.get("severity").and_then(Value::as_i64) {
            None | Some(1) => Severity::Error,
            Some(3) => Severity::Information,
            Some(4) => Severity::Hint,
            Some(_) => Severity::Warning,
        };
        let code = raw.get("code").filter(|code| !code.is_null());
        let message = raw.get("message").unwrap_or(&Value::Null);
        // A message may be markup: protocol 3.18.
        let message = message.get("value").unwrap_or(message);
        Some(Self {
            range: raw.get("range").map(range).unwrap_or_default(),
            severity,
            code: code.map(worded),
            source: raw.get("source").and_then(Value::as_str).map(str::to_owned),
            message: worded(message),
            raw: raw.clone(),
        })
    }
}

fn worded(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn range(raw: &Value) -> Range {
    let place = |end: &str| {
        let number = |name: &str| {
            let number = raw.get(end).and_then(|end| end.get(name)).and_then(Value::as_i64);
            u32::try_from(number.unwrap_or_default().max(0)).unwrap_or(u32::MAX)
        };
        Position { line: number("line"), character: number("character") }
    };
    Range { start: place("start"), end: place("end") }
}

/// Decodes a list, dropping only what is no diagnostic at all.
#[must_use]
pub fn diagnostics(raw: &Value) -> Vec<Diagnostic> {
    raw.as_array().into_iter().flatten().filter_map(Diagnostic::read).collect()
}

/// What a pull request was answered, as far as it says something.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Report {
    pub(super) items: Vec<Diagnostic>,
    pub(super) related: Vec<(PathBuf, Vec<Diagnostic>)>,
}

impl Report {
    /// Reads an answer; `None` where it is no full report. We never give an old
    /// result id, so `unchanged` would refer to nothing.
    pub(super) fn read(answer: &Value) -> Option<Self> {
        let items = answer.get("items").filter(|items| items.is_array())?;
        let related = answer.get("relatedDocuments").and_then(Value::as_object);
        let related = related.into_iter().flatten().filter_map(|(of, report)| {
            Some((uri::to_path(of)?, diagnostics(report.get("items")?)))
        });
        Some(Self { items: diagnostics(items), related: related.collect() })
    }

    /// Adds what is not there already under the same code on the same line: what
    /// cargo's check and the server itself find both, they word differently.
    pub(super) fn add_unknown(&mut self, other: Self) {
        let known = |item: &Diagnostic| {
            let same = |mine: &Diagnostic| {
                mine.code.is_some()
                    && mine.code == item.code
                    && mine.range.start.line == item.range.start.line
            };
            self.items.iter().any(same)
        };
        let fresh: Vec<_> = other.items.into_iter().filter(|item| !known(item)).collect();
        self.merge(Self { items: fresh, related: other.related });
    }

    /// Adds what another identifier reported on the same document.
    pub(super) fn merge(&mut self, other: Self) {
        self.items.extend(other.items);
        for (path, items) in other.related {
            match self.related.iter_mut().find(|(of, _)| *of == path) {
                Some((_, known)) => known.extend(items),
                None => self.related.push((path, items)),
            }
        }
    }
}

/// What a verdict speaks of. It holds for this and for nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The server's incarnation.
    pub incarnation: Incarnation,
    /// The text.
    pub hash: TextHash,
    /// The state of all other files, as far as they are known to have changed.
    pub epoch: u64,
}

/// What a server said of one document, final.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// Its diagnostics, of every severity.
    pub items: Vec<Diagnostic>,
    /// Those of other files that it gave with them.
    pub related: Vec<(Arc<Path>, Vec<Diagnostic>)>,
    /// How columns count in them.
    pub encoding: Encoding,
    /// What this speaks of.
    pub proof: Proof,
}

/// What is known of one document's diagnostics.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The server is done with this very text.
    Fresh(Arc<Findings>),
    /// It is not, within the bound.
    StillAnalysing {
        /// What it is waited for.
        reason: String,
        /// For how long.
        waited: Duration,
        /// What was asked about, where the server got it.
        about: Option<Proof>,
    },
    /// It could not say: it refused, died or hung meanwhile.
    Unknown {
        /// How that came.
        reason: String,
        /// What was asked about, where the server got it.
        about: Option<Proof>,
    },
    /// There is none that could be asked: it restarts, failed or was stopped.
    NoServer {
        /// How that came.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use serde_json::json;

    #[test]
    fn one_odd_item_does_not_lose_the_rest() {
        let found = diagnostics(&json!([
            { "range": { "start": { "line": 1, "character": 2 }, "end": { "line": 1, "character": 5 } },
              "severity": 2, "code": "reportX", "source": "Pyright", "message": "bad" },
            { "severity": 99, "code": 1.5, "message": { "kind": "markdown", "value": "*odd*" },
              "range": { "start": { "line": -1 }, "end": 7 } },
            { "code": 2322, "message": null },
            "no diagnostic",
            {},
        ]));
        let seen: Vec<_> = found
            .iter()
            .map(|item| (item.severity, item.code.as_deref(), item.message.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                (Severity::Warning, Some("reportX"), "bad"),
                (Severity::Warning, Some("1.5"), "*odd*"),
                (Severity::Error, Some("2322"), "null"),
                (Severity::Error, None, "null"),
            ]
        );
        assert_eq!(found[0].range.start, Position { line: 1, character: 2 });
        assert_eq!(found[1].range, Range::default());
    }

    #[test]
    fn reports_of_several_identifiers_are_merged() {
        let item = |text: &str| json!({ "message": text });
        let mut report = Report::read(&json!({
            "kind": "full", "resultId": "x", "items": [item("a")],
            "relatedDocuments": { "file:///r/b.ts": { "kind": "full", "items": [item("b")] },
                                  "file:///r/c.ts": { "kind": "unchanged" } },
        }))
        .unwrap();
        report.merge(
            Report::read(&json!({
                "items": [item("c")],
                "relatedDocuments": { "file:///r/b.ts": { "items": [item("d")] } },
            }))
            .unwrap(),
        );
        let words = |items: &[Diagnostic]| {
            items.iter().map(|item| item.message.clone()).collect::<Vec<_>>()
        };
        assert_eq!(words(&report.items), ["a", "c"]);
        assert_eq!(report.related.len(), 1);
        assert_eq!(words(&report.related[0].1), ["b", "d"]);
    }

    #[test]
    fn what_reports_nothing_is_no_clean_report() {
        for answer in [
            json!(null),
            json!({}),
            json!({ "kind": "unchanged", "resultId": "1" }),
            json!({ "kind": "full", "items": null }),
            json!([]),
        ] {
            assert_eq!(Report::read(&answer), None, "{answer}");
        }
    }
}
