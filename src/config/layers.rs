//! Layers of TOML, merged key by key, with where each value came from.
//!
//! Pure. A later layer wins; tables merge, everything else (also an array) is
//! replaced whole, so that a list can be made shorter.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use toml::de::{DeArray, DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It ships with the program.
    Default,
    /// A file and a line in it, 1-based.
    File { path: Arc<Path>, line: usize },
    /// An environment variable.
    Variable(String),
    /// A flag of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// Says that a text is not TOML.
#[derive(Debug)]
pub(crate) struct NotToml {
    pub(crate) line: usize,
    pub(crate) reason: String,
}

/// The merged values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    values: Table,
    origins: BTreeMap<Vec<String>, Origin>,
}

impl Layers {
    /// Lays the TOML of `text` over what is there, below the keys `at`.
    /// `origin` names the origin of a line.
    pub(crate) fn overlay(
        &mut self,
        at: &[&str],
        text: &str,
        origin: impl Fn(usize) -> Origin,
    ) -> Result<(), NotToml> {
        let place = |offset: Option<usize>| line_of(text, offset.unwrap_or(0));
        let not_toml = |error: toml::de::Error| NotToml {
            line: place(error.span().map(|span| span.start)),
            reason: error.message().to_owned(),
        };
        // The first parse gives values, the second the places of their keys.
        let values: Table = toml::from_str(text).map_err(not_toml)?;
        let spans = DeTable::parse(text).map_err(not_toml)?;
        let mut path: Vec<String> = at.iter().map(|&key| key.to_owned()).collect();
        self.insert(&mut path, Value::Table(values), &Origin::Default);
        for (key, line) in lines(spans.get_ref(), text) {
            path.truncate(at.len());
            path.extend(key);
            self.origins.insert(path.clone(), origin(line));
        }
        Ok(())
    }

    /// Sets one value, whatever was there.
    pub(crate) fn set(&mut self, path: &[String], value: Value, origin: &Origin) {
        self.insert(&mut path.to_vec(), value, origin);
    }

    /// Returns the merged values.
    pub(crate) fn values(&self) -> &Table {
        &self.values
    }

    /// Returns one value.
    pub(crate) fn get(&self, path: &[String]) -> Option<&Value> {
        let (last, parents) = path.split_last()?;
        parents.iter().try_fold(&self.values, |table, key| table.get(key)?.as_table())?.get(last)
    }

    /// Returns where the value at `path` came from, or the nearest thing around it.
    pub(crate) fn origin(&self, path: &[String]) -> Origin {
        (0..=path.len())
            .rev()
            .find_map(|length| self.origins.get(path.get(..length)?).cloned())
            .unwrap_or(Origin::Default)
    }

    /// Returns every value that is not a table, in the order of its file.
    pub(crate) fn leaves(&self) -> Vec<(Vec<String>, &Value)> {
        let mut leaves = Vec::new();
        collect(&self.values, &mut Vec::new(), &mut leaves);
        leaves
    }

    fn insert(&mut self, path: &mut Vec<String>, value: Value, origin: &Origin) {
        if let Value::Table(table) = value {
            for (key, value) in table {
                path.push(key);
                self.insert(path, value, origin);
                path.pop();
            }
            return;
        }
        let Some((last, parents)) = path.split_last() else { return };
        let mut at = &mut self.values;
        for key in parents {
            let slot = at.entry(key.clone()).or_insert_with(|| Value::Table(Table::new()));
            if !slot.is_table() {
                *slot = Value::Table(Table::new());
            }
            let Value::Table(inner) = slot else { return };
            at = inner;
        }
        at.insert(last.clone(), value);
        self.origins.retain(|key, _| !(key.len() > path.len() && key.starts_with(path)));
        self.origins.insert(path.clone(), origin.clone());
    }
}

fn collect<'a>(
    table: &'a Table,
    path: &mut Vec<String>,
    leaves: &mut Vec<(Vec<String>, &'a Value)>,
) {
    for (key, value) in table {
        path.push(key.clone());
        match value {
            Value::Table(inner) if !inner.is_empty() => collect(inner, path, leaves),
            leaf => leaves.push((path.clone(), leaf)),
        }
        path.pop();
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

/// Returns the line of every key, also of those in arrays.
fn lines(table: &DeTable<'_>, text: &str) -> Vec<(Vec<String>, usize)> {
    let mut found = Vec::new();
    for (key, value) in table {
        let line = line_of(text, key.span().start);
        note(vec![key.get_ref().to_string()], line, value, text, &mut found);
    }
    found
}

fn note(
    path: Vec<String>,
    line: usize,
    value: &Spanned<DeValue<'_>>,
    text: &str,
    found: &mut Vec<(Vec<String>, usize)>,
) {
    let inner: Vec<(Vec<String>, usize)> = match value.get_ref() {
        DeValue::Table(table) => lines(table, text),
        DeValue::Array(array) => lines_of_items(array, text),
        _ => Vec::new(),
    };
    found.extend(inner.into_iter().map(|(key, line)| ([path.clone(), key].concat(), line)));
    found.push((path, line));
}

fn lines_of_items(array: &DeArray<'_>, text: &str) -> Vec<(Vec<String>, usize)> {
    let mut found = Vec::new();
    for (index, item) in array.iter().enumerate() {
        let line = line_of(text, item.span().start);
        note(vec![index.to_string()], line, item, text, &mut found);
    }
    found
}
