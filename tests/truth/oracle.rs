//! What is true of a project, read off its text, and whether a report says just that.
//!
//! Knows nothing of servers and sessions. Kept apart from the product: what is new
//! is counted here in a way of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde_json::Value;

use super::dialects::Dialect;

/// States of a project, by the names that lines give them.
pub(crate) type States = BTreeSet<String>;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    file: String,
    line: u64,
    key: String,
    column: Option<u64>,
}

/// What a write has made wrong: so many of these.
pub(crate) struct New {
    count: usize,
    of: Vec<Fault>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} {}", self.file, self.line, self.key)
    }
}

impl Fault {
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    fn is(&self, file: &str, line: u64, item: &Value) -> bool {
        let says = item["code"] == self.key.as_str()
            || item["message"].as_str().is_some_and(|message| message.contains(&self.key));
        self.file == file && self.line == line && says
    }
}

/// Reads what is wrong in one line of a text, if it holds in these states.
fn fault(line: &str, comment: &str, states: &States) -> Option<(String, Option<u64>)> {
    let (code, mark) = line.split_once(&format!("{comment}~ "))?;
    let (mark, holds) = match mark.trim_end().split_once(" when ") {
        Some((mark, state)) => (mark, states.contains(state)),
        None => (mark.trim_end(), true),
    };
    let (key, symbol) = mark.split_once('@').map_or((mark, None), |(key, at)| (key, Some(at)));
    let column = symbol.map(|symbol| {
        let before = code.split(symbol).next().expect("a first part");
        before.chars().count() as u64 + 1
    });
    holds.then(|| (key.to_owned(), column))
}

/// Returns everything that is wrong in a file that is there.
pub(crate) fn faults(dir: &Path, dialect: &Dialect, states: &States, file: &str) -> Vec<Fault> {
    let text = std::fs::read_to_string(dir.join(file)).unwrap_or_default();
    let breaks = dialect.dependency.iter().flat_map(|dependency| dependency.breaks);
    let breaks: Vec<_> =
        breaks.filter(|(broken, ..)| *broken == file && states.contains("broken")).collect();
    let numbered = (1..).zip(text.lines());
    numbered
        .filter_map(|(number, line)| {
            let broken = || {
                let (.., key) = breaks.iter().find(|(_, piece, _)| line.contains(piece))?;
                Some(((*key).to_owned(), None))
            };
            let (key, column) = fault(line, dialect.comment, states).or_else(broken)?;
            Some(Fault { file: file.to_owned(), line: number, key, column })
        })
        .collect()
}

/// Returns what is new between two states: as many as there are more of one kind in
/// a file, on lines that were changed where there are enough of those.
pub(crate) fn introduced(before: &[Fault], after: &[Fault], changed: &[String]) -> Vec<New> {
    let mut kinds: BTreeMap<(&str, &str), (usize, Vec<&Fault>)> = BTreeMap::new();
    for fault in after {
        kinds.entry((&fault.file, &fault.key)).or_default().1.push(fault);
    }
    for fault in before {
        if let Some((count, _)) = kinds.get_mut(&(fault.file.as_str(), fault.key.as_str())) {
            *count += 1;
        }
    }
    let new = kinds.into_values().filter_map(|(before, of)| {
        let count = of.len().checked_sub(before).filter(|count| *count > 0)?;
        let on_changed =
            |fault: &&&Fault| changed.contains(&format!("{}:{}", fault.file, fault.line));
        let touched: Vec<_> = of.iter().filter(on_changed).copied().collect();
        let of = if touched.len() >= count { touched } else { of };
        Some(New { count, of: of.into_iter().cloned().collect() })
    });
    new.collect()
}

/// Returns everything that is wrong as what a report must list in full.
pub(crate) fn all(faults: &[Fault]) -> Vec<New> {
    faults.iter().map(|fault| New { count: 1, of: vec![fault.clone()] }).collect()
}

/// Leaves out what may as well not be told.
pub(crate) fn owed(new: Vec<New>, optional: &[Fault]) -> Vec<New> {
    let open = |new: &New| new.of.iter().all(|fault| optional.contains(fault));
    new.into_iter().filter(|new| !open(new)).collect()
}

/// Compares what was reported with what had to be and what may be: says what is
/// wrong, each in a sentence.
pub(crate) fn differences(items: &[Value], expected: Vec<New>, optional: &[Fault]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut expected = expected;
    for item in items {
        let file = item["path"].as_str().unwrap_or_default();
        let others = item["also_on_lines"].as_array().cloned().unwrap_or_default();
        for line in std::iter::once(&item["line"]).chain(&others).filter_map(Value::as_u64) {
            let is = |fault: &Fault| fault.is(file, line, item);
            let owed = expected.iter_mut().find(|new| new.count > 0 && new.of.iter().any(is));
            match owed {
                Some(new) => {
                    new.count -= 1;
                    let fault = new.of.iter().position(is).map(|at| new.of.remove(at));
                    let column = fault.and_then(|fault| fault.column);
                    if column.is_some_and(|column| item["line"] == line && item["column"] != column)
                    {
                        wrong.push(format!("not at column {column:?}: {item}"));
                    }
                }
                None if item["perhaps"] == true || optional.iter().any(is) => {}
                None => wrong.push(format!("not so, or not new: line {line} of {item}")),
            }
        }
    }
    let missed = expected.iter().filter(|new| new.count > 0);
    wrong.extend(missed.map(|new| {
        let of: Vec<_> = new.of.iter().map(ToString::to_string).collect();
        format!("not told: {} of {}", new.count, of.join(" or "))
    }));
    wrong
}
