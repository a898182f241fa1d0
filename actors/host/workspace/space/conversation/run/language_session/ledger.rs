//! What a run has been told of, and what a write has newly introduced. Pure.
//!
//! A diagnostic's key leaves its position out, so that one that merely moved is
//! not new; the ledger counts, so that a second identical one is. What is new is
//! what exists beyond both the state before the write and what was told. An entry
//! goes when its diagnostic goes: the same error, made again, is told again.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

/// How bad a finding is. Hints and information are no findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The code is wrong.
    Error,
    /// The code is doubtful.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// One error or warning, from a language server or a checker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Who found it, for example `pyright`.
    pub server: Arc<str>,
    /// In which file, absolute.
    pub path: Arc<Path>,
    /// On which line, from 1.
    pub line: u32,
    /// At which character of the line, from 1.
    pub column: u32,
    /// How bad it is.
    pub severity: Severity,
    /// The rule or error number.
    pub code: Option<Arc<str>>,
    /// What is wrong.
    pub message: Arc<str>,
}

/// The verdicts of one server on one file, before and after a write.
#[derive(Clone, Debug)]
pub struct Change {
    /// Whose verdicts.
    pub server: Arc<str>,
    /// On which file.
    pub path: Arc<Path>,
    /// What it found before the write; `None` where that could not be learnt.
    pub before: Option<Vec<Finding>>,
    /// What it finds now.
    pub after: Vec<Finding>,
    /// The lines that the write changed, as they are numbered now.
    pub lines: Option<RangeInclusive<u32>>,
}

/// Identical findings that are new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduced {
    /// The first of them.
    pub finding: Finding,
    /// The lines of the others.
    pub others: Vec<u32>,
}

impl Introduced {
    /// Returns how many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        1 + self.others.len()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    severity: Severity,
    code: Option<Arc<str>>,
    message: String,
}

impl Key {
    fn of(finding: &Finding) -> Self {
        Self {
            severity: finding.severity,
            code: finding.code.clone(),
            message: normalised(&finding.message),
        }
    }
}

type Counts = BTreeMap<Key, usize>;
type Scope = (Arc<str>, Arc<Path>);

fn counts(findings: &[Finding]) -> Counts {
    let mut counts = Counts::new();
    for finding in findings {
        *counts.entry(Key::of(finding)).or_default() += 1;
    }
    counts
}

/// What one run has been told of, per server and file.
#[derive(Debug, Default)]
pub struct Ledger {
    told: HashMap<Scope, Counts>,
}

impl Ledger {
    /// Returns what is new after a write, without remembering it.
    #[must_use]
    pub fn introduced(&self, change: &Change) -> Vec<Introduced> {
        let scope = (Arc::clone(&change.server), Arc::clone(&change.path));
        let before = change.before.as_deref().map(counts);
        let told = self.told.get(&scope);
        let told = |key: &Key| told.and_then(|told| told.get(key)).copied().unwrap_or(0);
        let mut by_key: BTreeMap<Key, Vec<&Finding>> = BTreeMap::new();
        for finding in &change.after {
            by_key.entry(Key::of(finding)).or_default().push(finding);
        }
        let mut new: Vec<_> = by_key
            .into_iter()
            .filter_map(|(key, mut instances)| {
                let told = told(&key);
                let fresh = match &before {
                    // What was told and has gone since is not told any more, so what
                    // was there before is all that counts.
                    Some(before) => {
                        instances.len().saturating_sub(before.get(&key).copied().unwrap_or(0))
                    }
                    // Without a baseline only what touches the write can be charged to it.
                    None => {
                        let beyond = instances.len().saturating_sub(told);
                        instances.retain(|finding| change.touches(finding));
                        beyond.min(instances.len())
                    }
                };
                change.pick(instances, fresh)
            })
            .collect();
        new.sort_by_key(|new| (new.finding.severity, new.finding.line, new.finding.column));
        new
    }

    /// Returns what is new after a write, and remembers that the run was told.
    pub fn account(&mut self, change: &Change) -> Vec<Introduced> {
        let new = self.introduced(change);
        if let Some(before) = &change.before {
            self.forget_gone(&change.server, &change.path, before);
        }
        let scope = (Arc::clone(&change.server), Arc::clone(&change.path));
        let told = self.told.entry(scope).or_default();
        for new in &new {
            *told.entry(Key::of(&new.finding)).or_default() += new.count();
        }
        self.forget_gone(&change.server, &change.path, &change.after);
        new
    }

    /// Remembers that the run was told of everything that is in a file now.
    pub fn told_all(&mut self, server: &Arc<str>, path: &Arc<Path>, now: &[Finding]) {
        let scope = (Arc::clone(server), Arc::clone(path));
        if now.is_empty() {
            self.told.remove(&scope);
        } else {
            self.told.insert(scope, counts(now));
        }
    }

    fn forget_gone(&mut self, server: &Arc<str>, path: &Arc<Path>, now: &[Finding]) {
        let scope = (Arc::clone(server), Arc::clone(path));
        let Some(told) = self.told.get_mut(&scope) else { return };
        let now = counts(now);
        told.retain(|key, told| {
            *told = (*told).min(now.get(key).copied().unwrap_or(0));
            *told > 0
        });
        if told.is_empty() {
            self.told.remove(&scope);
        }
    }

    /// Returns how many findings the run has been told of that still exist.
    #[must_use]
    pub fn len(&self) -> usize {
        self.told.values().flat_map(BTreeMap::values).sum()
    }

    /// Says whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }
}

impl Finding {
    /// Says whether two differ in their place only.
    #[must_use]
    pub fn is_alike(&self, other: &Self) -> bool {
        self.server == other.server && self.path == other.path && Key::of(self) == Key::of(other)
    }
}

impl Change {
    /// Says whether a finding is on a line that the write changed.
    #[must_use]
    pub fn touches(&self, finding: &Finding) -> bool {
        self.lines.as_ref().is_some_and(|lines| lines.contains(&finding.line))
    }

    /// Picks the instances to show: those on changed lines, else the last ones.
    fn pick(&self, mut instances: Vec<&Finding>, count: usize) -> Option<Introduced> {
        instances.sort_by_key(|finding| (self.touches(finding), finding.line));
        let mut picked = instances.split_off(instances.len().saturating_sub(count));
        picked.sort_by_key(|finding| (finding.line, finding.column));
        let (first, others) = picked.split_first()?;
        Some(Introduced {
            finding: (*first).clone(),
            others: others.iter().map(|finding| finding.line).collect(),
        })
    }
}

/// Replaces the positions that compilers write into messages (`line 12`, `a.py:3:4`),
/// which move with the code, and evens out white space.
fn normalised(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for word in message.split_whitespace() {
        let after_line = out.ends_with("line") || out.ends_with("lines");
        if !out.is_empty() {
            out.push(' ');
        }
        let mut in_position = after_line;
        for letter in word.chars() {
            if letter.is_ascii_digit() && in_position {
                if !out.ends_with('#') {
                    out.push('#');
                }
            } else {
                in_position = letter == ':';
                out.push(letter);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;

    /// Reads `E3 W7`: an error `E` on line 3, a warning `W` on line 7. Letters after
    /// the first are the message, `!` marks another code.
    fn findings(text: &str) -> Vec<Finding> {
        text.split_whitespace()
            .map(|word| {
                let at = word.find(|c: char| c.is_ascii_digit()).unwrap();
                let (name, line) = word.split_at(at);
                Finding {
                    server: "s".into(),
                    path: Path::new("/f").into(),
                    line: line.parse().unwrap(),
                    column: 1,
                    severity: if name.starts_with('W') {
                        Severity::Warning
                    } else {
                        Severity::Error
                    },
                    code: Some(if name.ends_with('!') { "b" } else { "a" }.into()),
                    message: name.into(),
                }
            })
            .collect()
    }

    fn change(before: Option<&str>, after: &str, lines: Option<RangeInclusive<u32>>) -> Change {
        Change {
            server: "s".into(),
            path: Path::new("/f").into(),
            before: before.map(findings),
            after: findings(after),
            lines,
        }
    }

    fn shown(new: &[Introduced]) -> String {
        let words: Vec<_> = new
            .iter()
            .map(|new| {
                let others: String = new.others.iter().map(|line| format!("+{line}")).collect();
                format!("{}{}{others}", new.finding.message, new.finding.line)
            })
            .collect();
        words.join(" ")
    }

    /// Each step is a write: what was there before, what after, what is told.
    fn check(name: &str, steps: &[(&str, &str, &str)]) {
        let mut ledger = Ledger::default();
        for (at, (before, after, told)) in steps.iter().enumerate() {
            let new = ledger.account(&change(Some(before), after, None));
            assert_eq!(shown(&new), *told, "{name}, step {at}");
        }
    }

    #[test]
    fn only_what_is_beyond_the_state_before_and_the_ledger_is_new() {
        check("old errors are not new on first touch", &[("E3 E9", "E3 E9", "")]);
        check("a moved error is not new", &[("E3", "E17", "")]);
        check("a new one is", &[("E3", "E3 F5", "F5")]);
        check("a second identical one is, and the last is shown", &[("E3", "E3 E8", "E8")]);
        check("three at once are one entry", &[("", "E3 E8 E9", "E3+8+9")]);
        check("told once", &[("", "E3", "E3"), ("E3", "E3", ""), ("E3", "E5", "")]);
        check(
            "fixed and back is new",
            &[("", "E3", "E3"), ("E3", "", ""), ("", "E3", "E3"), ("E3", "E3", "")],
        );
        check("fixed elsewhere and back is new", &[("", "E3", "E3"), ("", "E3", "E3")]);
        check("one of two goes and comes back", &[("E1 E2", "E1", ""), ("E1", "E1 E4", "E4")]);
        check("another run's are not charged", &[("", "E3", "E3"), ("E3 F4", "E3 F4 G5", "G5")]);
        check(
            "severity and code are part of the key",
            &[("E3", "W3 E3", "W3"), ("E3", "E3 E!4", "E!4")],
        );
        check("errors stand before warnings", &[("", "W1 E2", "E2 W1")]);
    }

    #[test]
    fn the_instance_on_a_changed_line_is_shown() {
        let ledger = Ledger::default();
        let told = |before, after, lines| shown(&ledger.introduced(&change(before, after, lines)));
        assert_eq!(told(Some("E30"), "E4 E30", Some(3..=5)), "E4");
        assert_eq!(told(Some("E30"), "E4 E30", Some(50..=51)), "E30");
    }

    #[test]
    fn without_a_baseline_only_changed_lines_are_charged() {
        let mut ledger = Ledger::default();
        let write = change(None, "E4 F30", Some(3..=5));
        assert_eq!(shown(&ledger.account(&write)), "E4");
        assert_eq!(shown(&ledger.account(&write)), "", "what was told is not told again");
        let second = change(None, "E4 E9 F30", Some(9..=9));
        assert_eq!(shown(&ledger.account(&second)), "E9", "one more of what was told is");
    }

    #[test]
    fn asking_counts_as_being_told() {
        let mut ledger = Ledger::default();
        let (server, path): (Arc<str>, Arc<Path>) = ("s".into(), Path::new("/f").into());
        ledger.told_all(&server, &path, &findings("E3 E4"));
        assert_eq!(ledger.len(), 2);
        assert_eq!(shown(&ledger.account(&change(None, "E3 E4 E5", Some(1..=9)))), "E5");
        ledger.told_all(&server, &path, &[]);
        assert!(ledger.is_empty());
    }

    #[test]
    fn looking_leaves_no_trace() {
        let ledger = Ledger::default();
        let write = change(Some(""), "E3", None);
        assert_eq!(ledger.introduced(&write), ledger.introduced(&write));
        assert!(ledger.is_empty());
    }

    #[test]
    fn positions_in_messages_do_not_count() {
        let cases = [
            ("see line 12", "see line #"),
            ("declared at a.py:12:7", "declared at a.py:#:#"),
            ("expected 2 arguments", "expected 2 arguments"),
            ("a\n  b", "a b"),
            ("lines 3-4", "lines #-4"),
        ];
        for (message, expected) in cases {
            assert_eq!(normalised(message), expected);
        }
    }
}
