//! Makes one check: all the runs of its program, two at a time, within its deadline.
//!
//! What a run leaves unsaid is a gap, never a clean bill: an exit code that nothing
//! explains, an output that cannot be read, a program that was killed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::{
    Finding, Severity,
};
use hostler_actors::ports::{Ended, Launch, Owner};
use tokio::time::Instant;

use super::cache;
use super::columns;
use super::commands;
use super::formats::{self, Report};
use super::plan::Plan;
use super::projects;
use crate::config::definitions::Runs;
use crate::oneshot::{self, Finished, Kept, OneShot, Terms};

/// How much of an output is read. A finding takes some 400 bytes.
const OUTPUT: usize = 64 * 1024 * 1024;

/// How many gaps of one check are named.
const GAPS: usize = 5;

/// One run of a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shot {
    /// What it is about, where there are several.
    pub(super) of: String,
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    /// Where it runs.
    pub(super) cwd: PathBuf,
    /// From where relative paths are meant in what it prints.
    pub(super) base: PathBuf,
}

/// What is to be run for a check, and what of it was left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shots {
    pub(super) shots: Vec<Shot>,
    pub(super) gaps: Vec<String>,
    /// What is there and none of them is about.
    pub(super) aside: Vec<String>,
}

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Lines of output so far, or runs of several that are done.
    pub(super) done: usize,
    /// How many runs there are, where there are several.
    pub(super) of: Option<usize>,
}

/// Makes a check.
pub(super) async fn run(
    launch: &dyn Launch,
    plan: &Plan,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Report, String> {
    let until = Instant::now() + plan.deadline;
    let known = plan.clone();
    let shots = tokio::task::spawn_blocking(move || shots(&known)).await;
    let Shots { shots, mut gaps, aside } = shots.map_err(|error| error.to_string())??;
    let several = shots.len() > 1;
    let of = several.then_some(shots.len());
    let (queue, done) = (Mutex::new(shots.into_iter()), Mutex::new(Vec::new()));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let worker = async || {
        while let Some(shot) = next() {
            let mut lines = 0;
            let mut on_line = |_: &str| {
                lines += 1;
                if !several {
                    tell(Progress { done: lines, of });
                }
            };
            let report = one(launch, plan, &shot, until, &mut on_line).await;
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((shot.of, report));
            if several {
                tell(Progress { done: done.len(), of });
            }
        }
    };
    tokio::join!(worker(), worker());
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut report = together(done, several, &mut gaps)?;
    report.gaps = named(gaps);
    report.aside = aside;
    let format = plan.format;
    let settled = tokio::task::spawn_blocking(move || {
        columns::settle(format, &mut report.findings);
        report
    });
    settled.await.map_err(|error| error.to_string())
}

/// Puts the runs' reports together. Where none of them says anything, that is all
/// there is to say.
fn together(
    done: Vec<(String, Result<Report, String>)>,
    several: bool,
    gaps: &mut Vec<String>,
) -> Result<Report, String> {
    let mut whole = Report::default();
    let mut verified = 0;
    for (of, report) in done {
        match report {
            Ok(report) => {
                verified += 1;
                whole.findings.extend(report.findings);
                gaps.extend(report.gaps);
                whole.files = report.files.or(whole.files);
            }
            Err(why) if several => gaps.push(format!("{of}: {why}")),
            Err(why) => return Err(why),
        }
    }
    if several && verified == 0 {
        return Err(named(std::mem::take(gaps)).join("; "));
    }
    whole.files = whole.files.or(several.then_some(verified));
    distinct(&mut whole.findings);
    Ok(whole)
}

/// Keeps one of each: a header is read with every file that includes it, and a crate
/// once for itself and once for its tests.
pub(super) fn distinct(findings: &mut Vec<Finding>) {
    let mut seen = std::collections::HashSet::new();
    findings.retain(|it| {
        let place = (it.path.clone(), it.line, it.column);
        seen.insert((place, it.severity, it.code.clone(), it.message.clone()))
    });
}

fn named(mut gaps: Vec<String>) -> Vec<String> {
    let more = gaps.len().saturating_sub(GAPS);
    gaps.truncate(GAPS);
    gaps.extend((more > 0).then(|| format!("and {more} more like these")));
    gaps
}

/// Lists what is to be run. Reads the disk, and writes only into the cache.
fn shots(plan: &Plan) -> Result<Shots, String> {
    cache::prepare(&plan.cache).map_err(|error| format!("{}: {error}", plan.cache.display()))?;
    let shots = match plan.runs {
        Runs::Once => Shots { shots: vec![once(plan)], ..Shots::default() },
        Runs::TsProjects => projects::shots(plan)?,
        Runs::CompileCommands => commands::shots(plan)?,
    };
    match (shots.shots.is_empty(), shots.gaps.is_empty()) {
        (true, false) => Err(shots.gaps.join("; ")),
        (true, true) => Err("there is nothing in it to be checked".to_owned()),
        _ => Ok(shots),
    }
}

fn once(plan: &Plan) -> Shot {
    Shot {
        of: String::new(),
        program: plan.key.program.clone(),
        args: plan.key.args.clone(),
        cwd: plan.key.root.clone(),
        base: plan.base.clone(),
    }
}

async fn one(
    launch: &dyn Launch,
    plan: &Plan,
    shot: &Shot,
    until: Instant,
    on_line: &mut (dyn FnMut(&str) + Send),
) -> Result<Report, String> {
    let bound = until.saturating_duration_since(Instant::now());
    if bound < Duration::from_millis(100) {
        return Err(format!("no time was left of {:?}", plan.deadline));
    }
    // As it is told where it was too short.
    let bound =
        Duration::from_millis(u64::try_from(bound.as_micros()).unwrap_or(0).div_ceil(10_000) * 10);
    let with_errors = formats::is_on_stderr(plan.format);
    let order = OneShot {
        label: &plan.key.name,
        program: &shot.program,
        args: &shot.args,
        cwd: &shot.cwd,
        env: &plan.key.env,
        bound,
        terms: Terms {
            // Several runs may wait for it, and none of them takes it along.
            owner: Owner::Host,
            posture: &plan.key.posture,
            kept: Kept { bytes: OUTPUT, with_errors, strict: true },
        },
    };
    let finished = oneshot::run(launch, order, on_line).await;
    judged(plan, shot, &finished.map_err(|error| error.to_string())?)
}

fn judged(plan: &Plan, shot: &Shot, finished: &Finished) -> Result<Report, String> {
    let codes = &plan.exit_codes;
    let Ended::Code(code) = finished.ended else { return Err(finished.to_string()) };
    let clean = codes.clean.contains(&code);
    if !clean && !codes.findings.contains(&code) {
        return Err(finished.to_string());
    }
    let report = formats::read(plan.format, &plan.key.name, &finished.stdout, &shot.base);
    let mut report = match report {
        Err(_) if !clean => return Err(finished.to_string()),
        report => report?,
    };
    let errors = report.findings.iter().any(|finding| finding.severity == Severity::Error);
    let explained = errors
        || !report.gaps.is_empty()
        || !report.findings.is_empty() && !formats::fails_by_errors(plan.format);
    if !clean && !explained {
        let why = format!("{finished}; it says that something is wrong and not what");
        if report.findings.is_empty() {
            return Err(why);
        }
        report.gaps.push(why);
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;

    #[test]
    fn gaps_are_named_up_to_a_number() {
        let gaps = (0..9).map(|n| n.to_string()).collect();
        assert_eq!(named(gaps), ["0", "1", "2", "3", "4", "and 4 more like these"]);
    }

    #[test]
    fn a_run_of_several_that_fails_is_a_gap_and_all_of_them_are_none() {
        let ok = || Ok(Report { files: None, ..Report::default() });
        let bad = || Err("crashed".to_owned());
        let mut gaps = Vec::new();
        let whole = together(vec![("a.c".into(), ok()), ("b.c".into(), bad())], true, &mut gaps);
        assert_eq!((whole.unwrap().files, gaps), (Some(1), vec!["b.c: crashed".to_owned()]));
        let none = together(vec![("b.c".into(), bad())], true, &mut Vec::new());
        assert_eq!(none, Err("b.c: crashed".to_owned()));
    }
}
