//! Verdicts are never wrong: scripted edits with known answers, on real servers.
//!
//! `EDITS=200 make truth` makes that many for each server, alone and with four runs
//! at once; otherwise each run makes one round. A server that is not installed is
//! named. Unknown is no lie, but it is counted, and what comes late must be right.

use std::sync::Arc;
use std::thread;

use crate::support::Home;
use dialects::dialect;
use group::Group;
use run::Run;
use steps::ROUND;
use tally::{Row, Tally, heading};

pub(crate) mod dialects;
pub(crate) mod ground;
mod group;
mod oracle;
mod run;
mod steps;
mod tally;

/// How many runs there are at once.
const RUNS: usize = 4;

fn steps(runs: usize) -> usize {
    let edits = std::env::var("EDITS").ok().and_then(|edits| edits.parse::<usize>().ok());
    edits.map_or(ROUND.len(), |edits| edits.div_ceil(runs).max(ROUND.len()))
}

/// Lets runs make their steps on one root, or says why not.
fn made(server: &'static str, runs: usize) -> Option<Tally> {
    let dialect = dialect(server);
    let home = Home::new();
    ground::only(&home, server);
    let dir = ground::project(&home, dialect.project);
    ground::branches(&dir, &dialect);
    let daemon = home.serve();
    let sessions: Option<Vec<_>> =
        (0..runs).map(|_| ground::session(&home, &dir, server)).collect();
    let group = Arc::new(Group::new(dialect, runs));
    let runs: Vec<_> = sessions?
        .into_iter()
        .enumerate()
        .map(|(number, session)| {
            Run::start(session, dialect, dir.clone(), Arc::clone(&group), number)
        })
        .collect();
    let steps = steps(runs.len());
    let made: Vec<_> = runs.into_iter().map(|run| thread::spawn(move || run.make(steps))).collect();
    let mut tally = Tally::default();
    made.into_iter().for_each(|run| tally.add(run.join().expect("the run ends well")));
    drop(daemon);
    Some(tally)
}

#[expect(clippy::print_stdout, reason = "the figures are for reading")]
fn prove(server: &'static str) {
    let mut wrong = Vec::new();
    for runs in [1, RUNS] {
        let Some(tally) = made(server, runs) else { return };
        println!("{}\n{}", heading(), Row(server, runs, &tally));
        tally.unknown.iter().for_each(|what| println!("unknown: {what}"));
        wrong.extend(tally.wrong);
    }
    assert!(wrong.is_empty(), "{server}:\n  {}", wrong.join("\n  "));
}

/// One test for each server, so that they are proved side by side.
macro_rules! never_wrong {
    ($($test:ident: $server:literal),+ $(,)?) => {
        $(#[test]
        fn $test() {
            prove($server);
        })+
    };
}

never_wrong! {
    pyright_is_never_wrong: "pyright",
    basedpyright_is_never_wrong: "basedpyright",
    ruff_is_never_wrong: "ruff",
    typescript_language_server_is_never_wrong: "typescript-language-server",
    typescript_native_is_never_wrong: "typescript-native",
    vtsls_is_never_wrong: "vtsls",
    clangd_is_never_wrong: "clangd",
    bash_language_server_is_never_wrong: "bash-language-server",
}
