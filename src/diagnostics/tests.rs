//! Writes around the server in memory: what each result tells.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use hostler_actors::host::workspace::space::conversation::run::language_session::testing::Pace;
use tokio::time::Instant;

use super::*;
use crate::seat::testing::{Bench, NoLaunch};
use crate::servers::watched::{UNSEEN, Watched};
use crate::tools::Failure;
use crate::watch::Watches;

fn bench() -> Bench {
    let bench = Bench::new(Arc::new(NoLaunch));
    bench.put("pyproject.toml", "");
    bench.program("bin/fake", "");
    bench
}

/// Writes a file through the wrapper, and returns what that adds.
async fn write(bench: &Bench, name: &str, text: &str) -> (String, Value) {
    let path = bench.path(name);
    let call = async {
        std::fs::write(path, text).unwrap();
        Ok(Output::text("written", json!({ "path": name })))
    };
    let output = around(&bench.seat, "write", &[name.to_owned()], &Cancel::new(), call).await;
    let output = output.unwrap();
    assert_eq!(output.details["path"], name, "the tool's own details stay");
    let added: Vec<_> = output.content[1..]
        .iter()
        .map(|block| match block {
            Block::Text { text } => text.as_str(),
            Block::Image { .. } => panic!("no image was written"),
        })
        .collect();
    (added.join("\n"), output.details)
}

async fn told(bench: &Bench, name: &str, text: &str) -> String {
    write(bench, name, text).await.0
}

#[tokio::test(start_paused = true)]
async fn only_what_is_new_is_told() {
    let bench = bench();
    bench.put("a.py", "error old\n");
    let (text, details) = write(&bench, "a.py", "ok\nerror old\nwarning w\n").await;
    assert_eq!(text, "diagnostics: fresh, new: 1 warning\na.py:3:1 warning w (c) [pyright]");
    assert_eq!(details["freshness"], "fresh");
    assert_eq!(details["total"], 1);
    assert_eq!(details["diagnostics"][0]["line"], 3);
    let nothing = "diagnostics: fresh, nothing new";
    assert_eq!(told(&bench, "a.py", "ok\n\n\nerror old\nwarning w\n").await, nothing);
    let second = told(&bench, "a.py", "error old\nok\nerror old\nwarning w\n").await;
    assert!(second.contains("new: 1 error\na.py:1:1 error old"), "{second}");
    assert_eq!(told(&bench, "a.py", "ok\n").await, nothing);
    let back = told(&bench, "a.py", "ok\nerror old\n").await;
    assert!(back.contains("a.py:2:1 error old"), "{back}");
    assert_eq!(bench.server.saved(), 5);
}

#[tokio::test(start_paused = true)]
async fn two_servers_are_told_together_and_each_by_its_name() {
    let bench = bench().with_second();
    bench.put("a.py", "ok\n");
    let (text, details) = write(&bench, "a.py", "error x\n").await;
    assert_eq!(
        text,
        "diagnostics: fresh, new: 2 errors\n\
         a.py:1:1 error x (c) [pyright]\n\
         a.py:1:1 error x (c) [ruff]"
    );
    let fresh = |name: &str| json!({ "name": name, "freshness": "fresh", "reason": null });
    assert_eq!(details["servers"], json!([fresh("pyright"), fresh("ruff")]));
}

#[tokio::test(start_paused = true)]
async fn one_that_still_analyses_hides_no_verdict_and_lets_nothing_be_called_clean() {
    let bench = bench().with_second();
    bench.put("a.py", "ok\n");
    bench.second.set_pace(Pace::After(Duration::from_secs(5)));
    let (text, details) = write(&bench, "a.py", "error x\n").await;
    assert_eq!(
        text,
        "diagnostics: still analysing (ruff: it reads the project); what comes of it is added \
         to a later result\n\
         diagnostics: fresh by pyright only, not by ruff, new: 1 error\n\
         a.py:1:1 error x (c) [pyright]"
    );
    assert_eq!(details["freshness"], "still analysing");
    assert_eq!(details["servers"][0]["freshness"], "fresh");
    assert_eq!(details["servers"][1]["freshness"], "still analysing");
    tokio::time::sleep(Duration::from_secs(6)).await;
    let (text, _) = late(&bench.seat).await.unwrap();
    assert!(text.ends_with("now known, new: 1 error\na.py:1:1 error x (c) [ruff]"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_not_there_is_named_whenever_the_other_is_fresh() {
    let bench = bench().with_second();
    bench.put("a.py", "ok\n");
    bench.second.set_pace(Pace::Absent("it crashed"));
    let (text, details) = write(&bench, "a.py", "ok\nok\n").await;
    assert_eq!(
        text,
        "diagnostics: fresh by pyright only, not by ruff, nothing new\n\
         diagnostics: no server: ruff: it crashed"
    );
    assert_eq!(details["servers"][1]["reason"], "ruff: it crashed");
    let again = told(&bench, "a.py", "ok\n").await;
    assert_eq!(again, "diagnostics: fresh by pyright only, not by ruff, nothing new");
}

#[tokio::test(start_paused = true)]
async fn a_new_file_is_all_new() {
    let bench = bench();
    let text = told(&bench, "n.py", "error x\nerror x\nerror x\n").await;
    assert_eq!(
        text,
        "diagnostics: fresh, new: 3 errors\n\
         n.py:1:1 error x (c) [pyright]; the same on line 2, 3"
    );
    let kinds: Vec<_> = bench.server.changes().iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [hostler_actors::ports::FileChangeKind::Created]);
}

#[tokio::test(start_paused = true)]
async fn what_breaks_elsewhere_is_told_too() {
    let bench = bench();
    bench.put("lib.py", "def f\n");
    bench.put("user.py", "import lib\nuse f\n");
    bench.put("other.py", "use g\n");
    let (text, details) = write(&bench, "lib.py", "def h\nerror e\n").await;
    assert_eq!(
        text,
        "diagnostics: fresh, new: 2 errors\n\
         lib.py:2:1 error e (c) [pyright]\n\
         user.py:2:1 error `f` is not defined (c) [pyright]"
    );
    assert_eq!(details["total"], 2);
}

#[tokio::test(start_paused = true)]
async fn what_another_run_breaks_meanwhile_is_not_charged() {
    let bench = bench();
    bench.put("lib.py", "def f\n");
    let other = bench.put("user.py", "import lib\n");
    let lib = bench.path("lib.py");
    let call = async {
        std::fs::write(&other, "import lib\nerror of another run\n").unwrap();
        std::fs::write(&lib, "def f\nok\n").unwrap();
        Ok(Output::text("written", json!({})))
    };
    let files = ["lib.py".to_owned()];
    let output = around(&bench.seat, "write", &files, &Cancel::new(), call).await.unwrap();
    assert_eq!(output.details["total"], 0);
    assert_eq!(output.details["freshness"], "fresh");
}

#[tokio::test(start_paused = true)]
async fn where_not_all_is_watched_fresh_is_said_with_that() {
    let mut bench = bench();
    bench.put("one/b.py", "");
    bench.put("two/c.py", "");
    bench.seat.languages.watched = Watched::new(Watches::new(Arc::new(|_| {})).at_most(2));
    let (text, details) = write(&bench, "a.py", "ok\n").await;
    assert_eq!(text, format!("diagnostics: fresh, nothing new\n(pyright: {UNSEEN})"));
    assert_eq!(details["freshness"], "fresh");
    assert_eq!(details["reasons"], json!([format!("pyright: {UNSEEN}")]));
}

#[tokio::test(start_paused = true)]
async fn caps_say_what_they_cut() {
    let bench = bench();
    let many: String = (0..30).map(|at| format!("error number-{at}\n")).collect();
    let (text, details) = write(&bench, "a.py", &many).await;
    assert!(text.ends_with("shown are 20 of 30 in 1 of 1 files"), "{text}");
    assert_eq!((&details["total"], &details["shown"]), (&json!(30), &json!(20)));
}

#[tokio::test(start_paused = true)]
async fn a_late_verdict_comes_with_the_next_result() {
    let bench = bench();
    bench.server.set_pace(Pace::After(Duration::from_secs(5)));
    let began = Instant::now();
    let (text, details) = write(&bench, "a.py", "error e\n").await;
    assert!(began.elapsed() < Duration::from_secs(4), "it waited {:?}", began.elapsed());
    assert!(text.starts_with("diagnostics: still analysing (pyright: it reads the project)"));
    assert_eq!(details["freshness"], "still analysing");
    assert!(late(&bench.seat).await.is_none());
    tokio::time::sleep(Duration::from_secs(9)).await;
    let (text, details) = late(&bench.seat).await.unwrap();
    assert_eq!(
        text,
        "diagnostics of your earlier write a.py: now known, new: 1 error\n\
         a.py:1:1 error e (c) [pyright]"
    );
    assert_eq!(details[0]["freshness"], "fresh");
    assert!(late(&bench.seat).await.is_none(), "once");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_finishes_is_not_waited_for_for_ever() {
    let bench = bench();
    bench.server.set_pace(Pace::After(Duration::from_secs(3600)));
    assert!(told(&bench, "a.py", "ok\n").await.contains("still analysing"));
    tokio::time::sleep(Duration::from_secs(14)).await;
    let (text, details) = late(&bench.seat).await.unwrap();
    assert!(text.starts_with("diagnostics of your earlier write a.py: not verified\n"), "{text}");
    assert_eq!(details[0]["freshness"], "unknown");
}

#[tokio::test(start_paused = true)]
async fn a_second_write_takes_over_what_the_first_one_still_waits_for() {
    let bench = bench();
    bench.server.set_pace(Pace::After(Duration::from_secs(9)));
    assert!(told(&bench, "a.py", "error first\n").await.contains("still analysing"));
    bench.server.set_pace(Pace::After(Duration::from_millis(10)));
    let text = told(&bench, "a.py", "error first\nerror second\n").await;
    assert!(text.contains("error first") && text.contains("error second"), "{text}");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(late(&bench.seat).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_missing_server_is_news_once() {
    let bench = Bench::new(Arc::new(NoLaunch));
    let (text, details) = write(&bench, "a.py", "x\n").await;
    assert!(text.starts_with("diagnostics: no server: pyright: no root: none of"), "{text}");
    assert_eq!(details["freshness"], "no server");
    let (text, details) = write(&bench, "a.py", "y\n").await;
    assert_eq!(text, "");
    assert!(details["reasons"][0].as_str().unwrap().contains("no root"), "{details}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_failed_is_no_server_and_one_that_breaks_is_never_clean() {
    let bench = bench();
    bench.server.set_pace(Pace::Absent("failed, last error: x"));
    let (text, details) = write(&bench, "a.py", "ok\n").await;
    assert_eq!(text, "diagnostics: no server: pyright: failed, last error: x");
    assert_eq!(details["freshness"], "no server");
    bench.server.set_pace(Pace::Broken("it died twice"));
    let (text, details) = write(&bench, "a.py", "ok 2\n").await;
    assert!(text.contains("still analysing (pyright: it died twice)"), "{text}");
    assert_eq!(details["freshness"], "still analysing");
}

#[tokio::test(start_paused = true)]
async fn a_failing_write_leaves_no_trace() {
    let bench = bench();
    bench.put("a.py", "ok\n");
    let call = async { Err(Failure::new("no space left")) };
    let files = ["a.py".to_owned()];
    let outcome = around(&bench.seat, "write", &files, &Cancel::new(), call).await;
    assert_eq!(outcome.unwrap_err().message, "no space left");
    assert_eq!(bench.server.saved(), 0);
    assert!(told(&bench, "a.py", "error e\n").await.contains("a.py:1:1 error e"));
}

#[tokio::test(start_paused = true)]
async fn without_a_baseline_only_changed_lines_are_charged() {
    let bench = bench();
    bench.put("a.py", "error old\nx\n");
    bench.server.set_pace(Pace::After(Duration::from_millis(1_500)));
    bench.put("b.py", "import a\nerror there\n");
    let (text, details) = write(&bench, "a.py", "error old\nerror new\n").await;
    assert_eq!(
        text,
        "diagnostics: fresh, new: 1 error\n\
         a.py:2:1 error new (c) [pyright]\n\
         what may be older than this write, or somebody else's:\n\
         a.py:1:1 error old (c) [pyright]\n\
         b.py:2:1 error there (c) [pyright]"
    );
    assert_eq!((&details["total"], &details["perhaps_older_total"]), (&json!(1), &json!(2)));
}

#[tokio::test(start_paused = true)]
async fn one_write_at_a_time_per_path() {
    let bench = bench();
    let files = ["a.py".to_owned()];
    let (began, begin) = tokio::sync::oneshot::channel();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let first = async {
        let call = async {
            began.send(()).unwrap();
            ended.await.unwrap();
            Ok(Output::text("", json!({})))
        };
        around(&bench.seat, "write", &files, &Cancel::new(), call).await.unwrap();
    };
    let second = async {
        begin.await.unwrap();
        let cancel = Cancel::new();
        let call = async { panic!("the path is held") };
        let second = around(&bench.seat, "edit", &files, &cancel, call);
        let cancelling = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(second, cancelling);
        assert!(outcome.unwrap_err().message.contains("cancelled; nothing was written"));
        end.send(()).unwrap();
    };
    tokio::join!(first, second);
}
