//! The project's checkers, which stand behind diagnostics of `"*"`.
//!
//! A language server knows what is open; a checker reads everything. Each one whose
//! marker and program are there is run, one after the other, within one bound. All
//! is well only where every one said so with the right exit code *and* an output
//! that could be read; anything else is "not verified", with its last words.
//!
//! Details: `action`, `freshness`, `diagnostics[]`, `total`, `shown`, `reasons[]`,
//! `checkers[]` (`name`, `root`, `verified`, `files`).

mod pyright;

use std::path::{Path, PathBuf};
use std::time::Duration;

use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::Finding;
use hostler_actors::ports::{Ended, Owner};
use serde_json::json;
use tokio::time::Instant;

use crate::config::definitions::CheckerDefinition;
use crate::diagnostics::documents::shown;
use crate::diagnostics::findings::{Cap, Freshness, capped, counted, detail, line};
use crate::folder::disk::cancelled;
use crate::oneshot::{self, Finished, OneShot, Terms};
use crate::seat::Seat;
use crate::servers::{Viewpoint, Wanted, roots};
use crate::tools::{Cancel, Outcome, Output};

/// How much is shown.
const CAP: Cap = Cap { files: 20, items: 50 };
/// How much of a checker's output is read. A finding takes some 400 bytes.
const OUTPUT: usize = 64 * 1024 * 1024;

/// What a checker's output says.
#[derive(Debug, PartialEq)]
struct Report {
    findings: Vec<Finding>,
    /// How many files it has looked at, where it says so.
    files: Option<u64>,
}

/// What became of one checker in one root.
struct Checked {
    name: String,
    root: Option<PathBuf>,
    /// What it found, or why that is not known.
    report: Result<Report, String>,
}

/// Reads the output of the checker of this name.
fn read(name: &str, output: &str) -> Result<Report, String> {
    match name {
        "pyright" => pyright::read(output),
        _ => Err(format!("nothing here reads the output of `{name}`")),
    }
}

/// Runs every checker that applies to the folder.
pub(crate) async fn check(seat: &Seat, cancel: &Cancel) -> Outcome {
    let mut checked = Vec::new();
    let began = Instant::now();
    for (name, definition) in &seat.languages.config.checkers {
        let until = began + definition.deadline;
        let mut done: Vec<PathBuf> = Vec::new();
        for root in roots::below(&definition.root_markers, seat.folder.root()).await {
            let root = match root {
                // A checker of an outer root has looked at the inner ones.
                Ok(root) if done.iter().any(|outer| root.starts_with(outer)) => continue,
                Ok(root) => root,
                Err(why) => {
                    let report = Err(format!("no root: {why}"));
                    checked.push(Checked { name: name.clone(), root: None, report });
                    continue;
                }
            };
            let report = tokio::select! {
                report = run(seat, name, definition, &root, until) => report,
                () = cancel.cancelled() => {
                    return Err(cancelled("lsp", "the checker was killed; nothing was changed"));
                }
            };
            done.push(root.clone());
            checked.push(Checked { name: name.clone(), root: Some(root), report });
        }
    }
    Ok(told(seat.folder.root(), checked))
}

async fn run(
    seat: &Seat,
    name: &str,
    definition: &CheckerDefinition,
    root: &Path,
    until: Instant,
) -> Result<Report, String> {
    let wanted = Wanted {
        names: &definition.binaries,
        project_folders: &definition.project_folders,
        probe: definition.probe.as_ref(),
    };
    let program = seat.languages.program(Viewpoint::of(seat), root, wanted).await;
    let program = program.map_err(|why| format!("no program: {why}"))?;
    let bound = until.saturating_duration_since(Instant::now());
    if bound < Duration::from_secs(1) {
        return Err(format!("no time was left of {:?}", definition.deadline));
    }
    let args: Vec<_> = definition.args.iter().map(Into::into).collect();
    let shot = OneShot {
        label: name,
        program: &program,
        args: &args,
        cwd: root,
        env: &seat.env,
        bound,
        terms: Terms {
            owner: Owner::Run(seat.run),
            posture: &seat.languages.posture,
            kept: OUTPUT,
        },
    };
    let finished = oneshot::run(&*seat.launch, shot, &mut |_| {}).await;
    judged(name, definition, &finished.map_err(|error| error.to_string())?)
}

fn judged(
    name: &str,
    definition: &CheckerDefinition,
    finished: &Finished,
) -> Result<Report, String> {
    let codes = &definition.exit_codes;
    let Ended::Code(code) = finished.ended else { return Err(finished.to_string()) };
    let clean = codes.clean.contains(&code);
    if !clean && !codes.findings.contains(&code) {
        return Err(finished.to_string());
    }
    let report = read(name, &finished.stdout)?;
    if !clean && report.findings.is_empty() {
        return Err(format!("{finished}; it says that something is wrong and not what"));
    }
    Ok(report)
}

fn told(folder: &Path, checked: Vec<Checked>) -> Output {
    let (mut lines, mut reasons, mut details) = (Vec::new(), Vec::new(), Vec::new());
    let mut found = Vec::new();
    let (mut ran, mut verified) = (0, 0);
    for Checked { name, root, report } in checked {
        let place = root.as_deref().map(|root| shown(folder, root));
        let place = place.map(|root| if root.is_empty() { ".".to_owned() } else { root });
        let at = place.as_ref().map_or_else(String::new, |root| format!(" in {root}"));
        ran += usize::from(root.is_some());
        let (mut files, ok) = (None, report.is_ok());
        match report {
            Ok(report) => {
                verified += 1;
                files = report.files;
                let counts = counted(report.findings.iter().map(|finding| (finding, 1)));
                let of = files.map_or_else(String::new, |files| format!(", {files} files checked"));
                lines.push(format!("{name}{at}: {counts}{of}"));
                found.extend(report.findings);
            }
            Err(why) => {
                lines.push(format!("{name}{at}: not verified: {why}"));
                reasons.push(format!("{name}{at}: {why}"));
            }
        }
        details.push(json!({ "name": name, "root": place, "verified": ok, "files": files }));
    }
    let freshness = match (verified, ran) {
        (0, 0) => Freshness::NoServer,
        (verified, ran) if verified == ran => Freshness::Fresh,
        _ => Freshness::Unknown,
    };
    if lines.is_empty() {
        lines.push("no checkers are configured".to_owned());
    }
    let total = found.len();
    let (kept, cut) = capped(found, CAP, |finding| finding, None);
    lines.extend(kept.iter().map(|finding| line(folder, finding)));
    lines.extend(cut);
    let items: Vec<_> = kept.iter().map(|finding| detail(folder, finding)).collect();
    let details = json!({
        "action": "diagnostics", "file": "*", "freshness": freshness, "diagnostics": items,
        "total": total, "shown": items.len(), "reasons": reasons, "checkers": details,
    });
    Output::text(lines.join("\n"), details)
}

#[cfg(test)]
mod tests;
