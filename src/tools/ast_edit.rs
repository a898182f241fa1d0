//! `ast_edit`: stages a rewrite of code by its shape. Writes nothing.
//!
//! What a rewrite may not lose is `code::rewrite`'s; here a file whose result would not
//! parse, or be empty, is left out as well, and all that was left out is told. Details:
//! `edit_id`, `files`, `replacements`, `paths[]` (the first 100), `left_out[{path, line,
//! why}]`, `left_out_total`, `nested_left`, `read_as[]`.

use std::fmt::Write;

use hostler_actors::ports::BoxFuture;
use hostler_actors::profile::Tier;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ast_grep::{plural, read};
use crate::code::diff::Preview;
use crate::code::parse::TextParser;
use crate::code::reading::Reading;
use crate::code::rewrite::{Rewritten, applied, rewrite};
use crate::code::template::Template;
use crate::folder::commit::Step;
use crate::folder::disk::{Cut, Leash, cancelled, look};
use crate::seat::Seat;
use crate::tools::glob::{BOUND, left_out};
use crate::tools::{
    Cancel, Effect, Failure, Outcome, Output, Tool, Wired, arguments, never, schema_of,
    writes_nothing,
};
use crate::trees::scan::{Hits, Scanned, Scope, Search};

/// Lines of the preview.
const PREVIEW: usize = 120;
/// Places that are named of what is left out.
const NAMED: usize = 10;
/// Paths in the details.
const PATHS: usize = 100;

pub(crate) const TOOL: Tool = Tool {
    name: "ast_edit",
    tier: Tier::Write,
    parallel_safe: true,
    overtakes: never,
    mutates_worktree: true,
    wired: Wired::Trees,
    effects: &[Effect::WorktreeWrite],
    description: "Proposes to rewrite code by its shape: every match of pattern (as in ast_grep) \
        becomes rewrite, with its $NAME and $$$NAME filled in; write \\$NAME for a literal \
        dollar. Writes nothing: the change is staged, and resolve applies it. Matches that hold \
        code or comments which the rewrite would drop are left out and told.",
    schema: schema_of::<Args>,
    writes: writes_nothing,
    call,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Code with metavariables, as in ast_grep.
    pattern: String,
    /// What to put in the place of a match; empty to delete it.
    rewrite: String,
    /// The file or folder; the work folder if left out.
    #[serde(default)]
    path: Option<String>,
    /// The language; told from the name where path is a file.
    #[serde(default)]
    language: Option<String>,
}

fn call(seat: &Seat, given: Value, cancel: Cancel) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let args: Args = arguments(TOOL.name, given)?;
        let (folder, trees) = (seat.folder.clone(), seat.trees.clone());
        let proposal = look(TOOL.name, &cancel, BOUND, move |leash| {
            let (path, language) = (args.path.as_deref(), args.language.as_deref());
            let scope = Scope::find(TOOL.name, &folder, path, language, leash)?;
            let readings = read(TOOL.name, &args.pattern, &scope)?;
            let template = Template::read(&args.rewrite);
            let bad = |error| Failure::new(format!("ast_edit: {error}"));
            template.check(args.pattern.trim()).map_err(bad)?;
            let all: Vec<_> = readings.all().collect();
            let search = Search { trees: &trees, folder: &folder, readings: &all, keep: 0 };
            let scanned = search.run(&scope, leash);
            whole(&scanned, &scope)?;
            let chosen = readings.chosen(&scanned.counts(all.len()), true);
            let chosen: Vec<_> =
                chosen.into_iter().filter_map(|at| Some((at, *all.get(at)?))).collect();
            if chosen.is_empty() {
                return Err(nothing(&args.pattern, &all, &scanned, &scope));
            }
            Proposal::make(&scope, scanned, &chosen, &template, leash)
        })
        .await?;
        proposal.stage(seat)
    })
}

/// An edit is whole or refused: one that was cut short is no edit.
fn whole(scanned: &Scanned, scope: &Scope) -> Result<(), Failure> {
    match scanned.cut.or(scope.walked.cut) {
        None => Ok(()),
        Some(Cut::Cancelled) => Err(cancelled(TOOL.name, "nothing was staged")),
        Some(Cut::TimedOut) => Err(too_long()),
    }
}

fn too_long() -> Failure {
    Failure::new(format!(
        "ast_edit: not done within {} s, and nothing was staged: narrow it with `path`",
        BOUND.as_secs()
    ))
}

fn nothing(pattern: &str, all: &[&Reading], scanned: &Scanned, scope: &Scope) -> Failure {
    let found: usize = scanned.counts(all.len()).into_iter().sum();
    let pattern = pattern.trim();
    let mut message = if found == 0 {
        format!(
            "ast_edit: nothing to rewrite: no match of `{pattern}` in {} ({} files searched); \
             ast_grep with the same pattern says why",
            scope.start.name(),
            scanned.searched
        )
    } else {
        let read_as: Vec<_> = all.iter().map(|reading| reading.words()).collect();
        format!(
            "ast_edit: nothing was staged: `{pattern}` was read as {}, of which replacing would \
             break what holds it; write more of the code, so that it is a whole expression or \
             statement",
            read_as.join(", as ")
        )
    };
    for note in scanned.notes() {
        let _ = write!(message, "\n({note})");
    }
    Failure { message, details: json!({ "replacements": 0, "files": 0 }) }
}

struct Proposal {
    steps: Vec<Step>,
    replacements: usize,
    nested_left: usize,
    left: Vec<(String, usize, String)>,
    read_as: Vec<String>,
    preview: Preview,
    notes: Vec<String>,
}

impl Proposal {
    fn make(
        scope: &Scope,
        scanned: Scanned,
        chosen: &[(usize, &Reading)],
        template: &Template,
        leash: &Leash,
    ) -> Result<Self, Failure> {
        let mut notes = left_out(TOOL.name, &scope.walked)?;
        notes.extend(scanned.notes());
        let mut proposal = Self {
            steps: Vec::new(),
            replacements: 0,
            nested_left: 0,
            left: Vec::new(),
            read_as: chosen.iter().map(|(_, reading)| reading.words()).collect(),
            preview: Preview::new(PREVIEW),
            notes,
        };
        let mut parser = TextParser::new(scope.language)?;
        for hits in scanned.hits {
            let readings: Vec<_> = chosen
                .iter()
                .filter(|(at, _)| hits.counts.get(*at).is_some_and(|count| *count > 0))
                .map(|(_, reading)| *reading)
                .collect();
            if readings.is_empty() {
                continue;
            }
            match leash.cut() {
                None => {}
                Some(Cut::Cancelled) => return Err(cancelled(TOOL.name, "nothing was staged")),
                Some(Cut::TimedOut) => return Err(too_long()),
            }
            proposal.file(&hits, &readings, template, &mut parser)?;
        }
        Ok(proposal)
    }

    fn file(
        &mut self,
        hits: &Hits,
        readings: &[&Reading],
        template: &Template,
        parser: &mut TextParser,
    ) -> Result<(), Failure> {
        let name = hits.file.name();
        let done: Rewritten = rewrite(&hits.parsed, readings, template)
            .map_err(|error| Failure::new(format!("ast_edit: {name}: {error}")))?;
        self.left
            .extend(done.left.iter().map(|(line, why)| (name.clone(), *line, why.to_string())));
        self.nested_left += done.nested_left;
        if done.replacements.is_empty() {
            return Ok(());
        }
        let old = hits.source.text.as_str();
        let new = applied(old, &done.replacements);
        if new == old {
            return Ok(());
        }
        if let Some((line, why)) = unfit(old, &new, hits, parser, &done)? {
            self.left.push((name, line, why));
            return Ok(());
        }
        self.replacements += done.matches;
        self.preview.file(&name, old, &done.replacements);
        self.steps.push(Step::Replace {
            file: hits.file.clone(),
            was: hits.source.hash,
            content: new.into_bytes(),
        });
        Ok(())
    }

    fn stage(self, seat: &Seat) -> Outcome {
        let files = self.steps.len();
        if files == 0 {
            return Err(self.nothing());
        }
        let what = format!(
            "{} {} in {files} {}",
            self.replacements,
            plural(self.replacements, "replacement", "replacements"),
            plural(files, "file", "files")
        );
        let names = self.steps.iter().take(PATHS).map(|step| step.file().name());
        let paths: Vec<_> = names.collect();
        let notes = self.told();
        let staged = seat.staged.stage(&what, self.steps);
        let id = staged.map_err(|error| Failure::new(format!("ast_edit: {error}")))?;
        let mut text = format!(
            "(proposed) {what}, read as {}; nothing is written yet: call resolve with edit_id \
             \"{id}\"\n{}",
            self.read_as.join(" and as "),
            self.preview.text()
        );
        if self.preview.unshown > 0 {
            let _ =
                writeln!(text, "(and {} replacements that are not shown)", self.preview.unshown);
        }
        text.push_str(&notes);
        let details = json!({
            "edit_id": id, "files": files, "replacements": self.replacements, "paths": paths,
            "left_out": left_detail(&self.left), "left_out_total": self.left.len(),
            "nested_left": self.nested_left, "read_as": self.read_as,
        });
        Ok(Output::text(text.trim_end(), details))
    }

    fn nothing(&self) -> Failure {
        let why = match self.left.is_empty() {
            true => "the rewrite leaves every match as it is",
            false => "no match can be rewritten without loss",
        };
        Failure {
            message: format!("ast_edit: nothing was staged: {why}\n{}", self.told().trim_end()),
            details: json!({
                "replacements": 0, "files": 0, "left_out": left_detail(&self.left),
                "left_out_total": self.left.len(),
            }),
        }
    }

    /// What was left out, and why.
    fn told(&self) -> String {
        let mut text = String::new();
        let mut reasons: Vec<(&str, usize)> = Vec::new();
        for (_, _, why) in &self.left {
            match reasons.iter_mut().find(|(known, _)| known == why) {
                Some((_, count)) => *count += 1,
                None => reasons.push((why, 1)),
            }
        }
        for (why, count) in reasons {
            let places = self.left.iter().filter(|(_, _, reason)| reason == why);
            let shown: Vec<_> =
                places.take(NAMED).map(|(name, line, _)| format!("{name}:{line}")).collect();
            let more = match count - shown.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let _ = writeln!(text, "left out, {count}: {}{more}: {why}", shown.join(", "));
        }
        if self.nested_left > 0 {
            let _ = writeln!(
                text,
                "left as they are, {}: matches inside others that the rewrite drops or spells out",
                self.nested_left
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "({note})");
        }
        text
    }
}

fn left_detail(left: &[(String, usize, String)]) -> Vec<Value> {
    let shown = left.iter().take(PATHS);
    shown.map(|(path, line, why)| json!({ "path": path, "line": line, "why": why })).collect()
}

/// Says what is wrong with a result, if anything is: the line, and why.
fn unfit(
    old: &str,
    new: &str,
    hits: &Hits,
    parser: &mut TextParser,
    done: &Rewritten,
) -> Result<Option<(usize, String)>, Failure> {
    let first = done.replacements.first().map_or(0, |first| first.range.start);
    if new.trim().is_empty() && !old.trim().is_empty() {
        let why = "the file would be left empty: delete it with apply_patch if that is meant";
        return Ok(Some((1, why.to_owned())));
    }
    let parsed = parser.parse(&std::sync::Arc::new(new.to_owned()), &|| false)?;
    if parsed.faults() <= hits.parsed.faults() {
        return Ok(None);
    }
    let at = parsed.first_fault().unwrap_or(first);
    let line = new.get(at..).and_then(|text| text.lines().next()).unwrap_or_default();
    let why =
        format!("the file would no longer parse, at `{}`", crate::code::diff::clipped(line.trim()));
    Ok(Some((hits.parsed.line_of(first), why)))
}

#[cfg(test)]
mod tests;
