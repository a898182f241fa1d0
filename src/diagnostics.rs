//! The wrapper around tools that write: a result tells what the write has broken.
//!
//! Takes the paths' locks, learns the state before, lets the tool write, and puts
//! what is new since into the tool's own result. A write that fails leaves no trace.
//! Never says that all is well without a verdict on exactly what is on disk.
//!
//! Details that it adds to the tool's: `freshness` (`fresh`, `still analysing`,
//! `no server`, `unknown`), `diagnostics[]` (`path`, `line`, `column`, `severity`,
//! `code`, `message`, `server`, `count`, `also_on_lines`), `total`, `shown`,
//! `reasons[]`, `servers[]` (`name`, `freshness`, `reason`), `perhaps_older[]`,
//! `perhaps_older_total`; and to the next result what came late: `late[]` (`of`, the same).

pub(crate) mod details;
pub(crate) mod documents;
pub(crate) mod findings;
pub(crate) mod judgement;

mod charge;
mod dependents;
mod watch;

use std::collections::HashSet;
use std::future::Future;
use std::path::Path;

use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::{
    Finding, Introduced,
};
use hostler_actors::host::workspace::space::conversation::run::language_session::wait::Late;
use hostler_actors::ports::Block;
use serde_json::{Value, json};

use crate::folder::Inside;
use crate::folder::disk::cancelled;
use crate::seat::Seat;
use crate::tools::{Cancel, Outcome, Output};
use details::with;
use documents::shown;
use findings::{
    Cap, Freshness, Standing, capped, counted, detail, fresh_by, introduced_detail,
    introduced_line, line,
};
use watch::Watch;

/// How much of what a write broke is shown.
const CAP: Cap = Cap { files: 5, items: 20 };

/// The same for what may not be of the write.
const UNSURE: Cap = Cap { files: 5, items: 8 };

/// What is known after a write.
#[derive(Debug, Default)]
struct Written {
    introduced: Vec<Introduced>,
    /// How many written files have a verdict.
    verified: usize,
    /// Why there are verdicts still to come.
    pending: Vec<String>,
    /// Why there are none.
    lacking: Vec<String>,
    /// What is to be said beside the verdicts.
    cautions: Vec<String>,
    /// What may not be of this write: the state before is not known, or others changed
    /// something too.
    unsure: Vec<Finding>,
    /// How each server stands.
    standings: Vec<Standing>,
}

/// Makes a call that writes these files, as given, and adds what it broke.
pub(crate) async fn around(
    seat: &Seat,
    tool: &str,
    writes: &[String],
    cancel: &Cancel,
    call: impl Future<Output = Outcome>,
) -> Outcome {
    let files = located(seat, writes).await;
    if files.is_empty() {
        // The tool says what is wrong with its paths.
        return call.await;
    }
    let paths = files.iter().map(|file| file.absolute().to_owned());
    let _held = tokio::select! {
        held = seat.locks.lock_all(paths) => held,
        () = cancel.cancelled() => return Err(cancelled(tool, "nothing was written")),
    };
    let watch = Watch::begin(seat, &files, cancel).await;
    let mut output = call.await?;
    let of = of(tool, &files);
    let written = match watch {
        Ok(watch) => watch.end(seat, &of, cancel).await,
        Err(gone) => Err(gone),
    };
    let mut written = written
        .unwrap_or_else(|gone| Written { lacking: vec![gone.to_string()], ..Written::default() });
    // One cause of many files is told once.
    for causes in [&mut written.pending, &mut written.lacking, &mut written.cautions] {
        let mut known = HashSet::new();
        causes.retain(|cause| known.insert(cause.clone()));
    }
    let first = files.first().map(Inside::absolute);
    let told = told(seat, &written).await;
    written.add_to(&mut output, seat.folder.root(), first, &told);
    Ok(output)
}

/// Names a write, for what is told of it later.
fn of(tool: &str, files: &[Inside]) -> String {
    let names: Vec<_> = files.iter().take(CAP.files).map(Inside::name).collect();
    match files.len() - names.len() {
        0 => format!("{tool} {}", names.join(" ")),
        more => format!("{tool} {} and {more} more files", names.join(" ")),
    }
}

async fn located(seat: &Seat, writes: &[String]) -> Vec<Inside> {
    let (folder, writes) = (seat.folder.clone(), writes.to_vec());
    let looked = tokio::task::spawn_blocking(move || {
        writes.iter().filter_map(|given| folder.locate(given).ok()).collect()
    });
    looked.await.unwrap_or_default()
}

/// Returns the causes that this run was not told of before: a missing server is
/// news once.
async fn told(seat: &Seat, written: &Written) -> Vec<String> {
    let mut new = Vec::new();
    for cause in &written.lacking {
        let mention = seat.languages.session.first_mention(cause.clone()).await;
        if mention.unwrap_or(true) {
            new.push(cause.clone());
        }
    }
    new
}

impl Written {
    fn freshness(&self) -> Freshness {
        if !self.pending.is_empty() {
            Freshness::StillAnalysing
        } else if self.verified > 0 {
            Freshness::Fresh
        } else {
            Freshness::NoServer
        }
    }

    fn add_to(self, output: &mut Output, folder: &Path, first: Option<&Path>, news: &[String]) {
        let freshness = self.freshness();
        let total: usize = self.introduced.iter().map(Introduced::count).sum();
        let counts = counted(self.introduced.iter().map(|new| (&new.finding, new.count())));
        let mut lines = Vec::new();
        match freshness {
            Freshness::StillAnalysing => lines.push(format!(
                "diagnostics: still analysing ({}); what comes of it is added to a later result",
                self.pending.join("; ")
            )),
            Freshness::Fresh | Freshness::NoServer | Freshness::Unknown => {}
        }
        let fresh = fresh_by(&self.standings);
        if self.verified > 0 {
            lines.push(match total {
                0 if self.unsure.is_empty() => format!("diagnostics: {fresh}, nothing new"),
                0 => format!("diagnostics: {fresh}, nothing surely new"),
                _ => format!("diagnostics: {fresh}, new: {counts}"),
            });
        }
        lines.extend(self.cautions.iter().map(|caution| format!("({caution})")));
        let reasons = self.pending.into_iter().chain(self.lacking).chain(self.cautions);
        let reasons: Vec<_> = reasons.collect();
        lines.extend(news.iter().map(|cause| format!("diagnostics: no server: {cause}")));
        let (kept, cut) = capped(self.introduced, CAP, |new| &new.finding, first);
        lines.extend(kept.iter().map(|new| introduced_line(folder, new)));
        lines.extend(cut);
        let unsure = Unsure::of(folder, self.unsure, first);
        lines.extend(unsure.lines);
        if !lines.is_empty() {
            output.content.push(Block::Text { text: lines.join("\n") });
        }
        let items: Vec<_> = kept.iter().map(|new| introduced_detail(folder, new)).collect();
        let more = json!({
            "freshness": freshness, "diagnostics": items, "total": total,
            "shown": kept.iter().map(Introduced::count).sum::<usize>(), "reasons": reasons,
            "perhaps_older": unsure.details, "perhaps_older_total": unsure.total,
            "servers": self.standings,
        });
        output.details = with(std::mem::take(&mut output.details), more);
    }
}

/// What nobody is charged with, as it is told.
struct Unsure {
    lines: Vec<String>,
    details: Vec<Value>,
    total: usize,
}

impl Unsure {
    fn of(folder: &Path, found: Vec<Finding>, first: Option<&Path>) -> Self {
        let total = found.len();
        let (shown, cut) = capped(found, UNSURE, |finding| finding, first);
        let mut lines = Vec::new();
        if !shown.is_empty() {
            lines.push("what may be older than this write, or somebody else's:".to_owned());
            lines.extend(shown.iter().map(|finding| line(folder, finding)));
            lines.extend(cut);
        }
        let details = shown.iter().map(|finding| detail(folder, finding)).collect();
        Self { lines, details, total }
    }
}

/// Takes what came after the result in which it belonged, as text and details for
/// the run's next result, whatever tool that is of.
pub(crate) async fn late(seat: &Seat) -> Option<(String, Vec<Value>)> {
    let late = seat.languages.session.take_late().await.unwrap_or_default();
    let folder = seat.folder.root();
    let (texts, details): (Vec<_>, Vec<_>) =
        late.into_iter().map(|late| late_part(folder, late)).unzip();
    (!texts.is_empty()).then(|| (texts.join("\n"), details))
}

fn late_part(folder: &Path, late: Late) -> (String, Value) {
    let total: usize = late.introduced.iter().map(Introduced::count).sum();
    let counts = counted(late.introduced.iter().map(|new| (&new.finding, new.count())));
    let freshness = match (late.verified.is_empty(), late.unverified.is_empty()) {
        (_, true) => Freshness::Fresh,
        _ => Freshness::Unknown,
    };
    let mut lines = vec![match (late.verified.is_empty(), total) {
        (false, 0) if !late.doubtful.is_empty() => {
            format!("diagnostics of your earlier {}: now known, nothing surely new", late.of)
        }
        (true, _) => format!("diagnostics of your earlier {}: not verified", late.of),
        (false, 0) => format!("diagnostics of your earlier {}: now known, nothing new", late.of),
        (false, _) => format!("diagnostics of your earlier {}: now known, new: {counts}", late.of),
    }];
    let reasons = late.unverified.iter().map(|(target, reason)| {
        format!("{} was not verified: {reason}", shown(folder, &target.path))
    });
    let reasons: Vec<_> = reasons.collect();
    let (kept, cut) = capped(late.introduced, CAP, |new| &new.finding, None);
    lines.extend(kept.iter().map(|new| introduced_line(folder, new)));
    lines.extend(cut);
    let doubtful = Unsure::of(folder, late.doubtful, None);
    lines.extend(doubtful.lines);
    lines.extend(reasons.iter().take(CAP.files).cloned());
    if let Some(more) = reasons.len().checked_sub(CAP.files).filter(|more| *more > 0) {
        lines.push(format!("and {more} more files were not verified"));
    }
    let items: Vec<_> = kept.iter().map(|new| introduced_detail(folder, new)).collect();
    let details = json!({
        "of": late.of, "freshness": freshness, "diagnostics": items, "total": total,
        "shown": kept.iter().map(Introduced::count).sum::<usize>(), "reasons": reasons,
        "perhaps_older": doubtful.details, "perhaps_older_total": doubtful.total,
    });
    (lines.join("\n"), details)
}

#[cfg(test)]
mod tests;
