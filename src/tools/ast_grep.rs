//! `ast_grep`: finds code by its shape.
//!
//! The searching is `trees::scan`'s, the reading of patterns `code::reading`'s; here
//! is what is told of it, also where nothing was found. Details: `matches[{path, line,
//! column, end_line, text, captures}]`, `total`, `shown`, `files_matched`,
//! `files_searched`, `complete` (was everything looked at), `read_as[]`, `other_readings
//! [{read_as, total}]`, `skipped`.

mod nothing;

use hostler_actors::ports::BoxFuture;
use hostler_actors::profile::Tier;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::code::diff::clipped;
use crate::code::language;
use crate::code::matching::Found;
use crate::code::reading::{self, Reading, Readings};
use crate::folder::disk::{Leash, look};
use crate::folder::walk::Walked;
use crate::handles::OutputHandles;
use crate::handles::capture::clip;
use crate::seat::Seat;
use crate::tools::glob::{BOUND, left_out};
use crate::tools::{
    Cancel, Failure, Outcome, Output, Tool, Wired, arguments, never, schema_of, writes_nothing,
};
use crate::trees::scan::{Hits, Scanned, Scope, Search};

/// `spec`'s.
const USUAL_RESULTS: usize = 50;
const MOST_RESULTS: usize = 1_000;

pub(crate) const TOOL: Tool = Tool {
    name: "ast_grep",
    tier: Tier::Read,
    parallel_safe: true,
    overtakes: never,
    mutates_worktree: false,
    wired: Wired::Trees,
    effects: &[],
    description: "Finds code by its shape, not its text. The pattern is code in which $NAME stands \
        for any one node, $$$NAME for any number of them (arguments, statements) and $_ for any \
        node that is not remembered; a $NAME that stands twice must be the same code twice. \
        Example: `if ($X != null) $X.dispose()`. Give language where path is no file.",
    schema: schema_of::<Args>,
    writes: writes_nothing,
    call,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Code with metavariables.
    pattern: String,
    /// The file or folder to search; the work folder if left out.
    #[serde(default)]
    path: Option<String>,
    /// The language, such as dart, python, rust, c; told from the name where path is a file.
    #[serde(default)]
    language: Option<String>,
    /// How many matches to show; 50 if left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    max_results: Option<usize>,
}

fn call(seat: &Seat, given: Value, cancel: Cancel) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let args: Args = arguments(TOOL.name, given)?;
        let most = match args.max_results.unwrap_or(USUAL_RESULTS) {
            most @ 1..=MOST_RESULTS => most,
            most => {
                return Err(Failure::new(format!(
                    "ast_grep: `max_results` is {most}: give 1 to {MOST_RESULTS}; the total is told \
                     in any case"
                )));
            }
        };
        let (folder, trees) = (seat.folder.clone(), seat.trees.clone());
        let handles = seat.handles.clone();
        look(TOOL.name, &cancel, BOUND, move |leash| {
            let (path, language) = (args.path.as_deref(), args.language.as_deref());
            let scope = Scope::find(TOOL.name, &folder, path, language, leash)?;
            let readings = read(TOOL.name, &args.pattern, &scope)?;
            let all: Vec<_> = readings.all().collect();
            let search = Search { trees: &trees, folder: &folder, readings: &all, keep: most };
            let scanned = search.run(&scope, leash);
            let told = Told { pattern: &args.pattern, scope, readings: &readings, scanned, most };
            told.outcome(&handles, &search, leash)
        })
        .await
    })
}

/// Reads a pattern in the language of a scope.
pub(super) fn read(tool: &str, pattern: &str, scope: &Scope) -> Result<Readings, Failure> {
    reading::read(pattern, scope.language).map_err(|error| Failure::new(format!("{tool}: {error}")))
}

struct Told<'a> {
    pattern: &'a str,
    scope: Scope,
    readings: &'a Readings,
    scanned: Scanned,
    most: usize,
}

impl Told<'_> {
    fn outcome(&self, handles: &OutputHandles, search: &Search<'_>, leash: &Leash) -> Outcome {
        let counts = self.scanned.counts(search.readings.len());
        let chosen = self.readings.chosen(&counts, false);
        let shown = self.shown(&chosen);
        let (total, files) = self.totals(&chosen);
        let words = |at: &usize| search.readings.get(*at).map(|reading| reading.words());
        let read_as: Vec<_> = chosen.iter().filter_map(words).collect();
        let others = self.others(&chosen, &counts, search.readings);
        let mut text = if total == 0 {
            nothing::explain(self, search, leash)
        } else {
            let first = match shown.len() < total {
                true => format!(", the first {}", shown.len()),
                false => String::new(),
            };
            let lines: Vec<_> = shown.iter().map(Shown::line).collect();
            let head = format!(
                "{total} {} in {files} {} (read as {}){first}:",
                plural(total, "match", "matches"),
                plural(files, "file", "files"),
                read_as.join(" and as ")
            );
            clip(handles, format!("{head}\n{}", lines.join("\n"))).text
        };
        for note in self.notes(&chosen, &others, search.readings)? {
            text.push_str(&format!("\n({note})"));
        }
        let others: Vec<_> = others
            .iter()
            .map(|(read_as, total)| json!({ "read_as": read_as, "total": total }))
            .collect();
        let details = json!({
            "matches": shown.iter().map(Shown::detail).collect::<Vec<_>>(),
            "total": total, "shown": shown.len(), "files_matched": files,
            "files_searched": self.scanned.searched, "complete": self.complete(),
            "read_as": read_as, "other_readings": others,
            "skipped": self.scanned.skipped.len(),
        });
        Ok(Output::text(text, details))
    }

    /// Was everything looked at.
    fn complete(&self) -> bool {
        let walked = &self.scope.walked;
        self.scanned.cut.or(walked.cut).is_none()
            && walked.unreadable == 0
            && self.scanned.skipped.is_empty()
    }

    fn notes(
        &self,
        chosen: &[usize],
        others: &[(String, usize)],
        readings: &[&Reading],
    ) -> Result<Vec<String>, Failure> {
        let mut notes = left_out(TOOL.name, &self.scope.walked)?;
        if self.scope.walked.cut.is_none() {
            notes.extend(left_out(
                TOOL.name,
                &Walked { cut: self.scanned.cut, ..Walked::default() },
            )?);
        }
        notes.extend(self.scanned.notes());
        notes.extend(
            others
                .iter()
                .map(|(read_as, total)| format!("read as {read_as} it would match {total} more")),
        );
        if chosen.iter().any(|at| readings.get(*at).is_some_and(|reading| !reading.clean)) {
            notes.push(format!(
                "the pattern does not parse cleanly as {}: {}",
                language::id(self.scope.language),
                self.readings.fault.as_deref().unwrap_or("a piece of it is missing")
            ));
        }
        Ok(notes)
    }

    fn totals(&self, chosen: &[usize]) -> (usize, usize) {
        let count =
            |hits: &Hits| -> usize { chosen.iter().filter_map(|at| hits.counts.get(*at)).sum() };
        let counts = self.scanned.hits.iter().map(count).filter(|count| *count > 0);
        counts.fold((0, 0), |(total, files), count| (total + count, files + 1))
    }

    fn others(
        &self,
        chosen: &[usize],
        counts: &[usize],
        readings: &[&Reading],
    ) -> Vec<(String, usize)> {
        let all = readings.iter().enumerate().zip(counts);
        let others = all.filter(|((at, reading), count)| {
            !chosen.is_empty() && !chosen.contains(at) && **count > 0 && reading.clean
        });
        others.map(|((_, reading), count)| (reading.words(), *count)).collect()
    }

    fn shown(&self, chosen: &[usize]) -> Vec<Shown<'_>> {
        let mut shown = Vec::new();
        for hits in &self.scanned.hits {
            let mut these: Vec<_> = hits
                .first
                .iter()
                .filter(|(at, _)| chosen.contains(at))
                .map(|(_, found)| found)
                .collect();
            these.sort_by_key(|found| (found.range.start, found.node));
            let room = self.most - shown.len();
            shown.extend(these.into_iter().take(room).map(|found| Shown { hits, found }));
            if shown.len() == self.most {
                break;
            }
        }
        shown
    }
}

/// Chooses a word by a count.
pub(super) fn plural(count: usize, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

struct Shown<'a> {
    hits: &'a Hits,
    found: &'a Found,
}

impl Shown<'_> {
    fn text(&self) -> &str {
        self.hits.source.text.get(self.found.range.clone()).unwrap_or_default()
    }

    fn line(&self) -> String {
        let source = self.hits.source.text.as_str();
        let start = self.found.range.start;
        let from = source.get(..start).and_then(|text| text.rfind('\n')).map_or(0, |at| at + 1);
        let line = source.get(from..).and_then(|text| text.lines().next()).unwrap_or_default();
        let more = match self.text().lines().count() {
            0 | 1 => String::new(),
            lines => format!(" … ({} more lines)", lines - 1),
        };
        let name = self.hits.file.name();
        format!("{name}:{}: {}{more}", self.hits.parsed.line_of(start), clipped(line.trim_end()))
    }

    fn detail(&self) -> Value {
        let source = self.hits.source.text.as_str();
        let (start, end) = (self.found.range.start, self.found.range.end);
        let before = source.get(..start).unwrap_or_default();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let captures: Map<_, _> = self
            .found
            .captured
            .iter()
            .map(|captured| {
                let range = captured.range.clone().unwrap_or_default();
                let text = source.get(range).unwrap_or_default();
                (captured.name.clone(), Value::String(clipped(text)))
            })
            .collect();
        json!({
            "path": self.hits.file.name(), "line": self.hits.parsed.line_of(start),
            "column": column, "end_line": self.hits.parsed.line_of(end.max(start + 1) - 1),
            "text": clipped(self.text()), "captures": captures,
        })
    }
}

#[cfg(test)]
mod tests;
