//! What a run is told of checks. Pure but for a look at what changed meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::Finding;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::run::distinct;
use super::shared::{Changed, Check, Standing};
use super::survey::Files;
use crate::diagnostics::documents::shown;
use crate::diagnostics::findings::{Cap, Freshness, capped, counted, detail, line};

/// How much is shown.
const CAP: Cap = Cap { files: 20, items: 50 };
/// What is to be said where a change since a check began would not be seen.
const UNWATCHED: &str = "not all of it is watched: what changed since it began is not known";
/// How many languages without a checker are named.
const LANGUAGES: usize = 8;

/// What became of one checker in one root.
pub(super) struct Checked {
    pub(super) name: String,
    /// The root as it is shown; none where there is no root.
    pub(super) root: Option<String>,
    pub(super) state: State,
}

/// How far a check came.
pub(super) enum State {
    /// It is over.
    Done(Arc<Check>),
    /// It goes on, for how long by now.
    GoesOn(Option<Duration>),
    /// It cannot be made.
    Not(String),
}

impl Checked {
    /// Describes a check as it stands.
    pub(super) fn of(folder: &Path, check: &Arc<Check>) -> Self {
        let key = &check.plan.key;
        let state = match check.stands() {
            Standing::Done(..) => State::Done(Arc::clone(check)),
            Standing::Queued => State::GoesOn(None),
            Standing::Running(since, _) => State::GoesOn(Some(Instant::now() - since)),
        };
        Self { name: key.name.clone(), root: Some(root(folder, &key.root)), state }
    }
}

/// Returns a root as it is shown.
pub(super) fn root(folder: &Path, root: &Path) -> String {
    match shown(folder, root) {
        root if root.is_empty() => ".".to_owned(),
        root => root,
    }
}

/// A text and the same for programs.
pub(super) struct Told {
    pub(super) lines: Vec<String>,
    pub(super) details: Value,
}

/// What is gathered from all checks.
#[derive(Default)]
struct Sum {
    lines: Vec<String>,
    reasons: Vec<String>,
    checkers: Vec<Value>,
    findings: Vec<Finding>,
    outside: usize,
    verified: usize,
    going: usize,
    failed: usize,
}

/// Says what came of checks.
pub(super) fn told(folder: &Path, checked: Vec<Checked>) -> Told {
    let mut sum = Sum::default();
    for one in checked {
        sum.take(folder, one);
    }
    let freshness = match (sum.going, sum.failed, sum.verified) {
        (0, 0, 0) => Freshness::NoServer,
        (0, 0, _) => Freshness::Fresh,
        (0, _, _) => Freshness::Unknown,
        _ => Freshness::StillAnalysing,
    };
    distinct(&mut sum.findings);
    let total = sum.findings.len();
    let (kept, cut) = capped(sum.findings, CAP, |finding| finding, None);
    let mut lines = sum.lines;
    lines.extend(kept.iter().map(|finding| line(folder, finding)));
    lines.extend(cut);
    let items: Vec<_> = kept.iter().map(|finding| detail(folder, finding)).collect();
    let details = json!({
        "action": "diagnostics", "file": "*", "freshness": freshness, "diagnostics": items,
        "total": total, "shown": items.len(), "outside": sum.outside, "reasons": sum.reasons,
        "checkers": sum.checkers,
    });
    Told { lines, details }
}

impl Sum {
    fn take(&mut self, folder: &Path, one: Checked) {
        let at = one.root.as_ref().map_or_else(String::new, |root| format!(" in {root}"));
        let title = format!("{}{at}", one.name);
        let (mut files, mut took, mut ok) = (None, None, false);
        match one.state {
            State::Not(why) => self.fail(&title, &why),
            State::GoesOn(since) => {
                self.going += 1;
                let since = since.map_or_else(
                    || "it waits for its turn".to_owned(),
                    |since| format!("it runs for {} s by now", since.as_secs()),
                );
                let text = format!(
                    "still analysing: {since}; what comes of it is added to a later result"
                );
                self.lines.push(format!("{title}: {text}"));
                self.reasons.push(format!("{title}: still analysing"));
            }
            State::Done(check) => {
                if let Standing::Done(verdict, span) = check.stands() {
                    took = Some(span.as_millis());
                    match &*verdict {
                        Ok(report) => {
                            files = report.files;
                            self.report(folder, &title, report);
                            ok = self.changes(folder, &title, &check, report.gaps.is_empty());
                        }
                        Err(why) => self.fail(&title, why),
                    }
                }
            }
        }
        self.checkers.push(json!({
            "name": one.name, "root": one.root, "verified": ok, "files": files, "took_ms": took,
        }));
    }

    fn fail(&mut self, title: &str, why: &str) {
        self.failed += 1;
        self.lines.push(format!("{title}: not verified: {why}"));
        self.reasons.push(format!("{title}: {why}"));
    }

    fn report(&mut self, folder: &Path, title: &str, report: &super::formats::Report) {
        let inside = |finding: &&Finding| finding.path.starts_with(folder);
        let mine = report.findings.iter().filter(inside);
        let outside = report.findings.iter().filter(|finding| !inside(finding)).count();
        let counts = counted(mine.clone().map(|finding| (finding, 1)));
        let of = report.files.map_or_else(String::new, |files| format!(", {files} files checked"));
        let beyond = match outside {
            0 => String::new(),
            outside => format!(" (and {outside} outside this folder, left out)"),
        };
        self.lines.push(format!("{title}: {counts}{of}{beyond}"));
        self.findings.extend(mine.cloned());
        self.outside += outside;
        for aside in &report.aside {
            self.lines.push(format!("{title}: not covered: {aside}"));
            self.reasons.push(format!("{title}: {aside}"));
        }
        if report.gaps.is_empty() {
            self.verified += 1;
            return;
        }
        self.failed += 1;
        for gap in &report.gaps {
            self.lines.push(format!("{title}: not verified in part: {gap}"));
            self.reasons.push(format!("{title}: {gap}"));
        }
    }

    /// Says what changed since a check began. Answers whether a verdict that was whole
    /// is also about the files as they are, as far as is known.
    fn changes(&mut self, folder: &Path, title: &str, check: &Check, whole: bool) -> bool {
        let files = match check.changed() {
            Changed::Nothing => return whole,
            Changed::Unknown => {
                self.lines.push(format!("{title}: {UNWATCHED}"));
                return whole;
            }
            Changed::Files(files) => files,
        };
        let mut names: Vec<_> = files.iter().map(|file| shown(folder, file)).collect();
        if names.is_empty() {
            names.push("more than can be named".to_owned());
        }
        let why = format!("changed since it began: {}; ask again", names.join(", "));
        self.lines.push(format!("{title}: not verified as it is now: {why}"));
        self.reasons.push(format!("{title}: {why}"));
        if whole {
            self.verified -= 1;
            self.failed += 1;
        }
        false
    }
}

/// Says which languages of a folder have no checker.
pub(super) fn not_covered<'a>(
    languages: impl ExactSizeIterator<Item = (&'a String, &'a Files)>,
) -> Option<String> {
    let all = languages.len();
    let named =
        languages.take(LANGUAGES).map(|(name, files)| format!("{name} ({})", several(files)));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match all.saturating_sub(LANGUAGES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (all > 0).then(|| format!("not covered by any checker: {named}{more}"))
}

/// Counts files in words.
pub(super) fn several(files: &Files) -> String {
    let example = files.example.display();
    match files.count {
        1 => format!("1 file: {example}"),
        count => format!("{count} files, such as {example}"),
    }
}
