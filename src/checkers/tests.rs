//! Exit codes and outputs, with scripts that stand in for a checker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::time::Duration;

use hostler_actors::ports::Block;

use super::*;
use crate::oneshot::direct;
use crate::seat::testing::Bench;

const CLEAN: &str = r#"{"generalDiagnostics":[],"summary":{"filesAnalyzed":3}}"#;
const SOME: &str = r#"{"generalDiagnostics":[
  {"file":"WORK/a.py","severity":"error","message":"no such name","rule":"reportUndefinedVariable",
   "range":{"start":{"line":4,"character":2},"end":{"line":4,"character":9}}},
  {"file":"WORK/a.py","severity":"information","message":"x","range":{"start":{"line":0,"character":0}}},
  {"file":"WORK/a.py","severity":"warning","message":"old config"}],"summary":{"filesAnalyzed":3}}"#;

/// A folder whose checker is this script.
fn bench(script: &str) -> Bench {
    let bench = Bench::new(direct::launcher());
    bench.put("pyproject.toml", "");
    let script = script.replace("WORK", bench.seat.folder.root().to_str().unwrap());
    bench.program(".venv/bin/pyright", &script);
    bench
}

async fn checked(bench: &Bench) -> (String, Value) {
    let output = check(&bench.seat, &Cancel::new()).await.unwrap();
    let Block::Text { text } = &output.content[0] else { panic!("no text") };
    (text.clone(), output.details)
}

#[tokio::test]
async fn a_clean_exit_with_a_readable_output_is_clean() {
    let (text, details) = checked(&bench(&format!("echo '{CLEAN}'"))).await;
    assert_eq!(text, "pyright in .: no errors or warnings, 3 files checked");
    assert_eq!(details["freshness"], "fresh");
    assert_eq!(details["checkers"][0]["verified"], true);
}

#[tokio::test]
async fn findings_are_listed_with_their_number() {
    let (text, details) = checked(&bench(&format!("echo '{SOME}'; exit 1"))).await;
    assert_eq!(
        text,
        "pyright in .: 1 error and 1 warning, 3 files checked\n\
         a.py:5:3 error no such name (reportUndefinedVariable) [pyright]\n\
         a.py:1:1 warning old config [pyright]"
    );
    assert_eq!(details["total"], 2);
    assert_eq!(details["diagnostics"][0]["path"], "a.py");
}

#[tokio::test]
async fn anything_else_is_not_verified() {
    let cases = [
        ("echo broken >&2; exit 3".to_owned(), "exited with code 3: broken"),
        (format!("echo '{CLEAN}'; kill -9 $$"), "was killed by SIGKILL"),
        ("echo nothing to see".to_owned(), "its output cannot be read"),
        ("exit 0".to_owned(), "its output cannot be read"),
        (format!("echo '{CLEAN}'; exit 1"), "something is wrong and not what"),
    ];
    for (script, expected) in cases {
        let (text, details) = checked(&bench(&script)).await;
        assert!(text.contains("not verified") && text.contains(expected), "{script}: {text}");
        assert_eq!(details["freshness"], "unknown", "{script}");
    }
}

#[tokio::test]
async fn what_is_not_checked_is_named() {
    let empty = Bench::new(direct::launcher());
    let (text, details) = checked(&empty).await;
    assert!(text.starts_with("nothing was checked: nothing here is for cargo, clang,"), "{text}");
    assert_eq!(details["freshness"], "no server");
    let mut no_program = Bench::new(direct::launcher());
    no_program.seat.env = [("PATH".into(), "/nowhere".into())].into();
    no_program.put("pyproject.toml", "");
    no_program.put("b/x.go", "");
    let (text, details) = checked(&no_program).await;
    assert!(text.contains("pyright in .: not verified: no program: `pyright` or"), "{text}");
    assert!(
        text.contains(
            "go-build: not verified: no root (none of go.mod above them) for 1 file: b/x.go"
        ),
        "{text}"
    );
    assert_eq!(details["freshness"], "unknown");
}

#[tokio::test]
async fn findings_outside_the_folder_are_only_counted() {
    let some = SOME.replacen("WORK/a.py", "/usr/a.py", 1);
    let (text, details) = checked(&bench(&format!("echo '{some}'; exit 1"))).await;
    let first = text.lines().next().unwrap();
    assert_eq!(
        first,
        "pyright in .: 1 warning, 3 files checked (and 1 outside this folder, left out)"
    );
    assert_eq!((&details["total"], &details["outside"]), (&1.into(), &1.into()));
}

#[tokio::test]
async fn an_endless_output_is_ended() {
    let (text, details) = checked(&bench("exec yes")).await;
    assert!(text.contains("killed, as it printed more than 67108864 bytes"), "{text}");
    assert_eq!(details["freshness"], "unknown");
}

/// A bench whose calls wait for so long.
fn hurried(script: &str, inline: Duration) -> Bench {
    let mut bench = bench(script);
    let config = Arc::make_mut(&mut bench.seat.languages.config);
    config.diagnostics.project = inline;
    bench
}

#[tokio::test]
async fn a_checker_that_hangs_is_killed_by_its_deadline() {
    let mut bench = bench("echo $$ > pid; sleep 600");
    let config = Arc::make_mut(&mut bench.seat.languages.config);
    config.checkers.get_mut("pyright").unwrap().deadline = Duration::from_millis(300);
    let (text, _) = checked(&bench).await;
    assert!(
        text.contains("not verified: pyright: killed, as it was not done within 300ms"),
        "{text}"
    );
    assert!(!lives(bench.content("pid").trim()));
}

#[tokio::test]
async fn what_outlasts_its_call_comes_with_a_later_result() {
    let script = format!("until [ -e go ]; do sleep 0.01; done; echo '{SOME}'; exit 1");
    let bench = hurried(&script, Duration::from_millis(50));
    let (text, details) = checked(&bench).await;
    assert!(text.contains("pyright in .: still analysing"), "{text}");
    assert_eq!(details["freshness"], "still analysing");
    assert!(late(&bench.seat).is_none());
    let rows = bench.table.snapshot();
    assert!(rows.iter().any(|row| row.name.starts_with("pyright in") && row.doing.is_some()));
    // Not a change of what is checked: it is pruned from what is watched.
    bench.put("target/go", "");
    std::os::unix::fs::symlink("target/go", bench.path("go")).unwrap();
    let mut told = None;
    until(|| {
        told = late(&bench.seat);
        told.is_some()
    })
    .await;
    let (text, details) = told.unwrap();
    assert!(
        text.contains("of your earlier diagnostics of \"*\":\npyright in .: 1 error"),
        "{text}"
    );
    assert!(text.contains("changed since it began: go; ask again"), "{text}");
    assert_eq!(details[0]["total"], 2);
    assert!(late(&bench.seat).is_none(), "told once");
}

#[tokio::test]
async fn a_call_joins_what_is_under_way_unless_something_changed() {
    let count = "echo x >> ../runs; until [ -e ../go ]; do sleep 0.01; done";
    let bench = hurried(&format!("{count}; echo '{CLEAN}'"), Duration::from_millis(100));
    let runs = || std::fs::read_to_string(bench.beside("runs")).unwrap_or_default().lines().count();
    for _ in 0..2 {
        assert!(checked(&bench).await.0.contains("still analysing"));
        assert_eq!(runs(), 1);
    }
    bench.put("a.py", "x = 1\n");
    assert!(checked(&bench).await.0.contains("still analysing"));
    assert_eq!(runs(), 2, "a change since it began asks for another one");
    std::fs::write(bench.beside("go"), "").unwrap();
    until(|| matches!(bench.seat.checks.peek(), Some(shared::Standing::Done(..)))).await;
    let (text, details) = checked(&bench).await;
    assert_eq!(text, "pyright in .: no errors or warnings, 3 files checked");
    assert_eq!(
        (runs(), &details["freshness"]),
        (2, &"fresh".into()),
        "what was promised is taken up"
    );
    assert!(late(&bench.seat).is_none());
    checked(&bench).await;
    assert_eq!(runs(), 3, "what was told is not told again of a later state");
}

#[tokio::test]
async fn a_check_ends_with_the_last_run_that_wants_it() {
    let bench = hurried("echo $$ > ../pid; exec sleep 600", Duration::from_millis(300));
    assert!(checked(&bench).await.0.contains("still analysing"));
    let pid = std::fs::read_to_string(bench.beside("pid")).unwrap();
    assert!(lives(pid.trim()));
    drop(bench);
    until(|| !lives(pid.trim())).await;
}

#[tokio::test]
async fn a_cancelled_check_kills_the_checker() {
    let bench = bench("echo $$ > pid; exec sleep 600");
    let (cancel, file) = (Cancel::new(), bench.path("pid"));
    let pid = || std::fs::read_to_string(&file).unwrap_or_default().trim().to_owned();
    let watch = async {
        until(|| !pid().is_empty()).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(check(&bench.seat, &cancel), watch);
    assert!(outcome.unwrap_err().message.contains("cancelled"));
    until(|| !lives(&pid())).await;
}

fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

async fn until(mut holds: impl FnMut() -> bool) {
    let polled = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), polled).await.unwrap();
}
