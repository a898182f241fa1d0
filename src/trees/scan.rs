//! Looks through the files of a scope for a pattern, on as many threads as there are
//! processors.
//!
//! A file is parsed only if it holds every word that the pattern needs. What could not
//! be looked at is counted and named, never left out in silence.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ast_grep_language::SupportLang;
use rustix::fs::FileType;

use super::{Source, Trees, Unread};
use crate::code::language;
use crate::code::matching::{self, Found};
use crate::code::parse::ParseError;
use crate::code::reading::Reading;
use crate::code::tree::Parsed;
use crate::folder::disk::{Cut, Leash};
use crate::folder::walk::Walked;
use crate::folder::{Folder, FolderError, Inside};
use crate::tools::Failure;

/// Threads of one search: a host serves others as well.
const THREADS: usize = 4;
/// Files that are named in a note.
const NAMED: usize = 3;

/// The files that a search looks at.
pub(crate) struct Scope {
    /// Where it begins.
    pub(crate) start: Inside,
    /// The language.
    pub(crate) language: SupportLang,
    /// The files, in the order of their paths.
    pub(crate) files: Vec<Inside>,
    /// What the walk left out.
    pub(crate) walked: Walked,
    /// Files of other kinds that the walk came by.
    pub(crate) others: usize,
}

impl Scope {
    /// Finds the files below a path that are of a language, which may be left out where
    /// the path names a file.
    pub(crate) fn find(
        tool: &str,
        folder: &Folder,
        path: Option<&str>,
        given: Option<&str>,
        leash: &Leash,
    ) -> Result<Self, Failure> {
        let start = folder.locate(path.unwrap_or("."))?;
        let wrong = |error| Failure::new(format!("{tool}: `language`: {error}"));
        let asked = given.map(language::by_name).transpose().map_err(wrong)?;
        match folder.kind(&start) {
            Some(FileType::Directory) => {}
            Some(_) => {
                let found = asked.or_else(|| language::of_file(start.relative()));
                let language = found.ok_or_else(|| {
                    Failure::new(format!(
                        "{tool}: the name of {} does not say its language: give `language`, one \
                         of {}",
                        start.name(),
                        language::ids()
                    ))
                })?;
                let files = vec![start.clone()];
                return Ok(Self { start, language, files, walked: Walked::default(), others: 0 });
            }
            None => return Err(FolderError::Missing { path: start.name() }.into()),
        }
        let Some(language) = asked else {
            return Err(missing_language(tool, folder, &start, leash));
        };
        let (mut files, mut others) = (Vec::new(), 0);
        let walked = folder.walk(&start, false, leash, |file| {
            if language::takes(language, file.relative()) {
                files.push(file);
            } else {
                others += 1;
            }
            ControlFlow::Continue(())
        });
        Ok(Self { start, language, files, walked, others })
    }
}

fn missing_language(tool: &str, folder: &Folder, start: &Inside, leash: &Leash) -> Failure {
    let mut counts: Vec<(SupportLang, usize)> = Vec::new();
    folder.walk(start, false, leash, |file| {
        if let Some(language) = language::of_file(file.relative()) {
            match counts.iter_mut().find(|(known, _)| *known == language) {
                Some((_, count)) => *count += 1,
                None => counts.push((language, 1)),
            }
        }
        ControlFlow::Continue(())
    });
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let there: Vec<_> = counts
        .iter()
        .map(|(language, count)| format!("{} ({count})", language::id(*language)))
        .collect();
    let there = match there.is_empty() {
        true => {
            format!("no file there has one of the languages that are known: {}", language::ids())
        }
        false => format!("files there by language: {}", there.join(", ")),
    };
    Failure::new(format!(
        "{tool}: `language` is missing, and {} is a folder: {there}",
        start.name()
    ))
}

/// What was found in one file.
pub(crate) struct Hits {
    /// The file.
    pub(crate) file: Inside,
    /// Its text.
    pub(crate) source: Arc<Source>,
    /// Its tree.
    pub(crate) parsed: Arc<Parsed>,
    /// How many matches each reading has beyond those before it.
    pub(crate) counts: Vec<usize>,
    /// The first matches, each with the place of its reading.
    pub(crate) first: Vec<(usize, Found)>,
}

/// What a search came to.
#[derive(Default)]
pub(crate) struct Scanned {
    /// Files with a match, in the order of their paths.
    pub(crate) hits: Vec<Hits>,
    /// Files that were looked at.
    pub(crate) searched: usize,
    /// Files that had to be parsed in part or hold what does not parse.
    pub(crate) flawed: usize,
    /// What could not be looked at, and why, by file.
    pub(crate) skipped: Vec<(String, String)>,
    /// What ended it early.
    pub(crate) cut: Option<Cut>,
}

impl Scanned {
    /// Returns how many matches each reading has.
    pub(crate) fn counts(&self, readings: usize) -> Vec<usize> {
        (0..readings)
            .map(|index| self.hits.iter().filter_map(|hits| hits.counts.get(index)).sum())
            .collect()
    }

    /// Says what was not looked at.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (name, why) in &self.skipped {
            match reasons.iter_mut().find(|(known, _)| known == why) {
                Some((_, names)) => names.push(name),
                None => reasons.push((why, vec![name])),
            }
        }
        let mut notes: Vec<_> = reasons
            .iter()
            .take(8)
            .map(|(why, names)| {
                let (shown, more) = names.split_at(names.len().min(NAMED));
                let more = match more.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!("not searched: {}{more}: {why}", shown.join(", "))
            })
            .collect();
        if let Some(more) = reasons.len().checked_sub(8).filter(|more| *more > 0) {
            notes.push(format!("not searched for {more} other reasons as well"));
        }
        notes
    }
}

/// A search: what to look for and how much of it to keep.
pub(crate) struct Search<'a> {
    /// The trees of all runs.
    pub(crate) trees: &'a Trees,
    /// The run's folder.
    pub(crate) folder: &'a Folder,
    /// What to look for.
    pub(crate) readings: &'a [&'a Reading],
    /// Matches of each reading to keep in each file.
    pub(crate) keep: usize,
}

impl Search<'_> {
    /// Looks through the files of a scope.
    pub(crate) fn run(&self, scope: &Scope, leash: &Leash) -> Scanned {
        let next = AtomicUsize::new(0);
        let all = Mutex::new((Vec::new(), Scanned::default()));
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = processors.min(THREADS).min(scope.files.len()).max(1);
        std::thread::scope(|threads_of| {
            for _ in 0..threads {
                threads_of.spawn(|| {
                    let mut worker = Worker::default();
                    let mut parser = None;
                    while let Some(at) = self.next(&next, scope, leash, &mut worker.scanned) {
                        if let Some(file) = scope.files.get(at) {
                            self.file(at, file, scope.language, leash, &mut parser, &mut worker);
                        }
                    }
                    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                    all.0.append(&mut worker.hits);
                    all.1.searched += worker.scanned.searched;
                    all.1.flawed += worker.scanned.flawed;
                    all.1.skipped.append(&mut worker.scanned.skipped);
                    all.1.cut = all.1.cut.or(worker.scanned.cut);
                });
            }
        });
        let (mut hits, mut scanned) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
        hits.sort_by_key(|(at, _): &(usize, Hits)| *at);
        scanned.hits = hits.into_iter().map(|(_, hits)| hits).collect();
        scanned.skipped.sort();
        scanned
    }

    fn next(
        &self,
        next: &AtomicUsize,
        scope: &Scope,
        leash: &Leash,
        scanned: &mut Scanned,
    ) -> Option<usize> {
        let at = next.fetch_add(1, Ordering::Relaxed);
        if at >= scope.files.len() {
            return None;
        }
        scanned.cut = leash.cut();
        scanned.cut.is_none().then_some(at)
    }

    fn file(
        &self,
        at: usize,
        file: &Inside,
        language: SupportLang,
        leash: &Leash,
        parser: &mut Option<crate::code::parse::TextParser>,
        worker: &mut Worker,
    ) {
        let source = match self.trees.source(self.folder, file, language) {
            Ok(source) => source,
            Err(Unread::Folder(FolderError::Missing { .. })) => return,
            Err(error) => {
                worker.scanned.skipped.push((file.name(), error.to_string()));
                return;
            }
        };
        worker.scanned.searched += 1;
        let possible = matching::possible(&source.text, self.readings);
        if !possible.contains(&true) {
            return;
        }
        let parsed = match self.trees.tree(&source, parser, &|| leash.cut().is_some()) {
            Ok(parsed) => parsed,
            Err(ParseError::Stopped) => {
                worker.scanned.cut = leash.cut();
                return;
            }
            Err(error) => {
                worker.scanned.searched -= 1;
                worker.scanned.skipped.push((file.name(), error.to_string()));
                return;
            }
        };
        worker.scanned.flawed += usize::from(parsed.faults() > 0);
        let tried: Vec<usize> =
            possible.iter().enumerate().filter(|(_, may)| **may).map(|(at, _)| at).collect();
        let readings: Vec<_> =
            tried.iter().filter_map(|at| self.readings.get(*at).copied()).collect();
        let (mut counts, mut first) = (vec![0; possible.len()], Vec::new());
        // A node that two readings match is one match.
        let mut known = HashSet::new();
        matching::each(&parsed, &readings, |at, found| {
            let clean = readings.get(at).is_some_and(|reading| reading.clean);
            if clean && !known.insert(found.node()) {
                return;
            }
            let Some(index) = tried.get(at).copied() else { return };
            let Some(count) = counts.get_mut(index) else { return };
            *count += 1;
            if *count <= self.keep {
                first.push((index, found.found()));
            }
        });
        if counts.iter().any(|count| *count > 0) {
            worker.hits.push((at, Hits { file: file.clone(), source, parsed, counts, first }));
        }
    }
}

#[derive(Default)]
struct Worker {
    hits: Vec<(usize, Hits)>,
    scanned: Scanned,
}
