//! The project's checkers, which stand behind diagnostics of `"*"`.
//!
//! A language server knows what is open; a checker reads everything. Every language
//! that is found in the folder is checked, two checks at a time. All is well only where
//! each one said so with the right exit code *and* an output that could be read;
//! anything else, and what no checker looks at, is named. What does not end within the
//! call goes on and comes with a later result.
//!
//! Details: `action`, `freshness`, `diagnostics[]`, `total`, `shown`, `outside`,
//! `reasons[]`, `checkers[]` (`name`, `root`, `verified`, `files`, `took_ms`),
//! `not_covered[]` (`language`, `files`, `example`).

mod cache;
mod columns;
mod commands;
mod formats;
mod plan;
mod projects;
mod run;
pub(crate) mod shared;
mod survey;
mod told;
pub(crate) mod wanted;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::config::definitions::Runs;
use crate::diagnostics::details::with;
use crate::folder::disk::cancelled;
use crate::seat::Seat;
use crate::tools::{Cancel, Outcome, Output};
use plan::Plan;
use survey::{Survey, survey};
use told::{Checked, State, Told, not_covered, root, several, told};
use wanted::Asked;

/// How many checks of one call run at once.
const AT_ONCE: usize = 2;

/// Runs every checker that applies to the folder.
pub(crate) async fn check(seat: &Seat, cancel: &Cancel) -> Outcome {
    tokio::select! {
        outcome = checked(seat) => outcome,
        () = cancel.cancelled() => {
            Err(cancelled("lsp", "checks that nobody else waits for were killed; nothing was changed"))
        }
    }
}

async fn checked(seat: &Seat) -> Outcome {
    let (config, top) = (Arc::clone(&seat.languages.config), seat.folder.root().to_owned());
    let looked = tokio::task::spawn_blocking(move || {
        let mut survey = survey(&config, &top);
        survey.settle(&config);
        survey
    });
    let survey = looked.await?;
    let (plans, mut checked) = plans(seat, &survey).await;
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let asked: Vec<_> = plans.into_iter().map(|plan| seat.checks.ask(plan, &turns)).collect();
    let all = async {
        for one in &asked {
            one.check.ended().await;
        }
    };
    // What is not over by then goes on.
    let _ = timeout(seat.languages.config.diagnostics.project, all).await;
    let folder = seat.folder.root();
    checked.extend(asked.iter().map(|one| Checked::of(folder, &one.check)));
    let going = |one: &Asked| matches!(Checked::of(folder, &one.check).state, State::GoesOn(_));
    let (goes_on, over): (Vec<_>, Vec<_>) = asked.into_iter().partition(going);
    drop(over);
    seat.checks.promise(goes_on);
    checked.sort_by(|a, b| (&a.name, &a.root).cmp(&(&b.name, &b.root)));
    Ok(answer(seat, &survey, checked))
}

/// Plans the checks of all roots, and says which cannot be made.
async fn plans(seat: &Seat, survey: &Survey) -> (Vec<Plan>, Vec<Checked>) {
    let (mut plans, mut lacking) = (Vec::<Plan>::new(), Vec::new());
    for (name, definition) in &seat.languages.config.checkers {
        let roots = survey.roots.get(name).map_or(&[][..], Vec::as_slice);
        let led_to = match definition.runs {
            Runs::TsProjects => roots.iter().flat_map(|at| led_to(at)).collect(),
            Runs::Once | Runs::CompileCommands => Vec::new(),
        };
        for at in roots.iter().filter(|at| !led_to.contains(&at.join("tsconfig.json"))) {
            let seen = survey.inside.get(&(name.clone(), at.clone())).copied().unwrap_or(0);
            match Plan::of(seat, name, definition, at, seen).await {
                Ok(plan) if plans.iter().any(|known| known.key == plan.key) => {}
                Ok(plan) => plans.push(plan),
                Err(why) => lack(&mut lacking, name, root(seat.folder.root(), at), why),
            }
        }
        if let Some(files) = survey.outside.get(name) {
            let markers = definition.root_markers.join(", ");
            let why = format!("no root (none of {markers} above them) for {}", several(files));
            lacking.push(Checked { name: name.clone(), root: None, state: State::Not(why) });
        }
    }
    (plans, lacking)
}

/// Takes note of a check that cannot be made: once for all roots, where it is for one
/// reason.
fn lack(lacking: &mut Vec<Checked>, name: &str, root: String, why: String) {
    let same = |one: &&mut Checked| {
        one.name == name && matches!(&one.state, State::Not(known) if *known == why)
    };
    match lacking.iter_mut().find(same).and_then(|one| one.root.as_mut()) {
        Some(roots) => *roots = format!("{roots}, {root}"),
        None => {
            let (name, root) = (name.to_owned(), Some(root));
            lacking.push(Checked { name, root, state: State::Not(why) });
        }
    }
}

/// Lists the configurations that another one leads to.
fn led_to(root: &std::path::Path) -> Vec<PathBuf> {
    projects::configs(root).split_off(1)
}

fn answer(seat: &Seat, survey: &Survey, checked: Vec<Checked>) -> Output {
    let Told { mut lines, mut details } = told(seat.folder.root(), checked);
    let mut more = Vec::new();
    if lines.is_empty() {
        let names: Vec<_> = seat.languages.config.checkers.keys().map(String::as_str).collect();
        more.push(format!("nothing was checked: nothing here is for {}", names.join(", ")));
    }
    more.extend(not_covered(survey.uncovered.iter()));
    more.extend(survey.cut.iter().cloned());
    if let Some(reasons) = details.get_mut("reasons").and_then(Value::as_array_mut) {
        reasons.extend(more.iter().map(|reason| reason.clone().into()));
    }
    lines.extend(more);
    let uncovered = survey.uncovered.iter().map(|(language, files)| {
        json!({ "language": language, "files": files.count, "example": files.example })
    });
    let uncovered: Vec<_> = uncovered.collect();
    Output::text(lines.join("\n"), with(details, json!({ "not_covered": uncovered })))
}

/// Takes what came of checks that outlasted their call, for the run's next result.
pub(crate) fn late(seat: &Seat) -> Option<(String, Vec<Value>)> {
    let done = seat.checks.take_done();
    if done.is_empty() {
        return None;
    }
    let folder = seat.folder.root();
    let checked = done.iter().map(|check| Checked::of(folder, check)).collect();
    let Told { lines, details } = told(folder, checked);
    let text = format!("of your earlier diagnostics of \"*\":\n{}", lines.join("\n"));
    Some((text, vec![with(details, json!({ "of": "lsp diagnostics *" }))]))
}

#[cfg(test)]
mod tests;
