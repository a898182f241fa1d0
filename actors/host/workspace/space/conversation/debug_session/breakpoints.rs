//! The breakpoints that the conversation wants, and where a session put them. Pure.
//!
//! Wishes are the conversation's: they survive sessions and crashes, and may be made
//! before there is a program. Marks are a session's: what its adapter made of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use dap_types::{SetBreakpointsArguments, Source, SourceBreakpoint};
use serde_json::Value;

use super::bodies::Placed;

/// Lines of one file at most, and files: above that it is a mistake.
pub const MOST_LINES: usize = 200;
/// Files at most.
pub const MOST_FILES: usize = 100;

/// One wanted breakpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// The line, from 1.
    pub line: u32,
    /// Stops only where this holds.
    pub condition: Option<String>,
    /// Stops only at this hit, in the adapter's own notation.
    pub hit_count: Option<String>,
    /// Prints this instead of stopping.
    pub log_message: Option<String>,
}

/// A file under the names by which debug information may know it, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// How people name it.
    pub shown: String,
    /// Absolute paths: as given, and as symbolic links resolve.
    pub paths: Vec<PathBuf>,
}

/// All that the conversation wants.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    files: BTreeMap<String, (SourceFile, Vec<Wish>)>,
    exceptions: Option<Vec<String>>,
}

/// Shared between the conversation, its debug session and the tool.
pub type SharedWishes = Arc<Mutex<Wishes>>;

/// Says that there are too many.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    /// In one file.
    #[error("{0} lines in one file; at most {MOST_LINES} breakpoints are kept there")]
    Lines(usize),
    /// Files.
    #[error("{MOST_FILES} files have breakpoints; clear one first (empty `lines`)")]
    Files,
}

impl Wishes {
    /// Replaces the breakpoints of a file; none clears it.
    pub fn set(&mut self, file: SourceFile, mut wishes: Vec<Wish>) -> Result<(), TooMany> {
        if wishes.len() > MOST_LINES {
            return Err(TooMany::Lines(wishes.len()));
        }
        // The last of several on one line is meant, as in an editor.
        wishes.reverse();
        wishes.sort_by_key(|wish| wish.line);
        wishes.dedup_by_key(|wish| wish.line);
        if wishes.is_empty() {
            self.files.remove(&file.shown);
        } else if self.files.len() >= MOST_FILES && !self.files.contains_key(&file.shown) {
            return Err(TooMany::Files);
        } else {
            self.files.insert(file.shown.clone(), (file, wishes));
        }
        Ok(())
    }

    /// Chooses the exception filters; `None` goes back to the adapter's own choice.
    pub fn set_exceptions(&mut self, filters: Option<Vec<String>>) {
        self.exceptions = filters;
    }

    /// Returns the exception filters that were chosen.
    #[must_use]
    pub fn exceptions(&self) -> Option<&[String]> {
        self.exceptions.as_deref()
    }

    /// Returns the files with their breakpoints.
    pub fn files(&self) -> impl Iterator<Item = (&SourceFile, &[Wish])> {
        self.files.values().map(|(file, wishes)| (file, wishes.as_slice()))
    }

    /// Returns the breakpoints of one file.
    #[must_use]
    pub fn of(&self, shown: &str) -> &[Wish] {
        self.files.get(shown).map_or(&[], |(_, wishes)| wishes)
    }
}

/// What became of one breakpoint in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// What was wanted.
    pub wish: Wish,
    /// Does the debuggee have it.
    pub bound: bool,
    /// Where it really is, if the adapter moved it.
    pub line: Option<i64>,
    /// The adapter's word on it.
    pub message: Option<String>,
    /// Was it ever stopped at.
    pub hit: bool,
    pub(super) id: Option<i64>,
}

impl Mark {
    pub(super) fn take(&mut self, placed: Placed) {
        self.bound = placed.verified;
        self.line = placed.line.or(self.line);
        self.message = placed.message;
        self.id = placed.id.or(self.id);
    }

    /// Returns the line at which it stops.
    #[must_use]
    pub fn actual(&self) -> i64 {
        self.line.unwrap_or_else(|| self.wish.line.into())
    }
}

/// A session's marks: file by file, in the order of the lines.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    files: BTreeMap<String, (Vec<PathBuf>, Vec<Mark>)>,
}

impl Marks {
    /// Takes what an adapter made of a file's wishes.
    pub(super) fn take(&mut self, file: &SourceFile, wishes: &[Wish], placed: Vec<Placed>) {
        let before = self.files.remove(&file.shown).map_or_else(Vec::new, |(_, marks)| marks);
        let mut placed = placed.into_iter();
        let marks = wishes.iter().map(|wish| {
            let hit = before.iter().any(|mark| mark.hit && mark.wish == *wish);
            let mut mark = Mark { wish: wish.clone(), hit, ..Mark::default() };
            mark.take(placed.next().unwrap_or_default());
            mark
        });
        let marks: Vec<_> = marks.collect();
        if !marks.is_empty() {
            self.files.insert(file.shown.clone(), (file.paths.clone(), marks));
        }
    }

    /// Takes a `breakpoint` event.
    pub(super) fn changed(&mut self, placed: Placed) {
        let Some(id) = placed.id else { return };
        let mut all = self.files.values_mut().flat_map(|(_, marks)| marks);
        if let Some(mark) = all.find(|mark| mark.id == Some(id)) {
            mark.take(placed);
        }
    }

    /// Takes note of the breakpoints that a stop was at, by what the event named.
    pub(super) fn hit(&mut self, ids: &[i64]) {
        for (_, marks) in self.files.values_mut() {
            for mark in marks.iter_mut() {
                mark.hit |= mark.id.is_some_and(|id| ids.contains(&id));
            }
        }
    }

    /// The same by the place: debugpy names none.
    pub(super) fn hit_at(&mut self, path: &str, line: i64) {
        for (paths, marks) in self.files.values_mut() {
            if paths.iter().any(|known| known == Path::new(path)) {
                for mark in marks.iter_mut() {
                    mark.hit |= mark.bound && mark.actual() == line;
                }
            }
        }
    }

    /// Returns the marks of one file.
    #[must_use]
    pub fn of(&self, shown: &str) -> &[Mark] {
        self.files.get(shown).map_or(&[], |(_, marks)| marks)
    }

    /// Returns all marks with the names of their files.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Mark)> {
        self.files
            .iter()
            .flat_map(|(name, (_, marks))| marks.iter().map(|mark| (name.as_str(), mark)))
    }
}

/// Returns the arguments of `setBreakpoints` for a file under one of its paths.
pub(super) fn arguments(path: &Path, wishes: &[Wish]) -> Value {
    let wish = |wish: &Wish| SourceBreakpoint {
        line: wish.line.into(),
        column: None,
        condition: wish.condition.clone(),
        hit_condition: wish.hit_count.clone(),
        log_message: wish.log_message.clone(),
        mode: None,
    };
    let source = Source {
        name: path.file_name().map(|name| name.to_string_lossy().into_owned()),
        path: Some(path.to_string_lossy().into_owned()),
        source_reference: None,
        presentation_hint: None,
        origin: None,
        sources: None,
        adapter_data: None,
        checksums: None,
    };
    let arguments = SetBreakpointsArguments {
        source,
        breakpoints: Some(wishes.iter().map(wish).collect()),
        lines: Some(wishes.iter().map(|wish| wish.line.into()).collect()),
        source_modified: Some(false),
    };
    serde_json::to_value(arguments).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> SourceFile {
        SourceFile { shown: name.to_owned(), paths: vec![PathBuf::from("/p").join(name)] }
    }

    fn wish(line: u32) -> Wish {
        Wish { line, ..Wish::default() }
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_cleared_by_nothing() {
        let mut wishes = Wishes::default();
        let told = Wish { condition: Some("x".to_owned()), ..wish(3) };
        wishes.set(file("a"), vec![wish(9), wish(3), told.clone()]).unwrap();
        assert_eq!(wishes.of("a"), [told, wish(9)]);
        wishes.set(file("a"), Vec::new()).unwrap();
        assert_eq!(wishes.files().count(), 0);
        let many = (1..300).map(wish).collect();
        assert_eq!(wishes.set(file("a"), many), Err(TooMany::Lines(299)));
        for index in 0..MOST_FILES {
            wishes.set(file(&index.to_string()), vec![wish(1)]).unwrap();
        }
        assert_eq!(wishes.set(file("one more"), vec![wish(1)]), Err(TooMany::Files));
        wishes.set(file("7"), vec![wish(2)]).unwrap();
    }

    #[test]
    fn marks_follow_answers_events_and_stops() {
        let mut marks = Marks::default();
        let refused = Placed { message: Some("no code".to_owned()), ..Placed::default() };
        let bound = Placed { id: Some(4), verified: true, line: Some(6), message: None };
        marks.take(&file("a"), &[wish(1), wish(5)], vec![refused, bound]);
        assert_eq!(marks.of("a")[0].message.as_deref(), Some("no code"));
        assert_eq!((marks.of("a")[1].bound, marks.of("a")[1].actual()), (true, 6));
        marks.hit_at("/p/a", 6);
        assert!(marks.of("a")[1].hit && !marks.of("a")[0].hit);
        marks.changed(Placed { id: Some(4), verified: false, line: None, message: None });
        assert!(!marks.of("a")[1].bound);
        // Setting the file again keeps what is known of the same wish.
        marks.take(&file("a"), &[wish(5)], Vec::new());
        assert!(marks.of("a")[0].hit);
        marks.hit(&[-1]);
        assert_eq!(marks.all().count(), 1);
    }

    #[test]
    fn what_is_asked_of_an_adapter_names_file_and_lines() {
        let asked = arguments(Path::new("/p/a.py"), &[wish(3)]);
        assert_eq!(asked["source"]["path"], "/p/a.py");
        assert_eq!(asked["breakpoints"][0]["line"], 3);
        assert_eq!(asked["lines"][0], 3);
    }
}
