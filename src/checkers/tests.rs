//! Exit codes and outputs, with scripts that stand in for a checker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use hostler_actors::ports::Block;
use serde_json::Value;

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
async fn a_missing_half_is_named() {
    let no_root = Bench::new(direct::launcher());
    let (text, details) = checked(&no_root).await;
    assert!(text.contains("not verified: no root: none of pyproject.toml"), "{text}");
    assert_eq!(details["freshness"], "no server");
    let mut no_program = Bench::new(direct::launcher());
    no_program.seat.env = [("PATH".into(), "/nowhere".into())].into();
    no_program.put("pyproject.toml", "");
    let (text, details) = checked(&no_program).await;
    assert!(text.contains("no program: `pyright` was not found: not in"), "{text}");
    assert_eq!(details["freshness"], "unknown");
}

#[tokio::test]
async fn a_cancelled_check_kills_the_checker() {
    let bench = bench("echo $$ > pid; exec sleep 600");
    let (cancel, file) = (Cancel::new(), bench.path("pid"));
    let pid = || std::fs::read_to_string(&file).unwrap_or_default().trim().to_owned();
    let lives = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    let watch = async {
        until(|| !pid().is_empty()).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(check(&bench.seat, &cancel), watch);
    assert!(outcome.unwrap_err().message.contains("cancelled"));
    until(|| !lives(&pid())).await;
}

async fn until(holds: impl Fn() -> bool) {
    let polled = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), polled).await.unwrap();
}
