//! Tests of `bash` on real processes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use hostler_actors::status::NodeKind;
use serde_json::json;

use super::*;
use crate::oneshot::direct;
use crate::seat::testing::Bench;
use crate::tools::read;

fn bench() -> Bench {
    Bench::new(direct::launcher())
}

/// A zombie is dead; when it is reaped is up to whoever it fell to.
fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn output_and_end_are_told() {
    let bench = bench();
    for (command, shown, code, signal) in [
        (
            "echo out; echo err >&2; exit 3",
            "out\nerr\n(exited with code 3, ",
            json!(3),
            Value::Null,
        ),
        ("true", "(no output)\n(exited with code 0, ", json!(0), Value::Null),
        ("kill -SEGV $$", "(no output)\n(was killed by SIGSEGV, ", Value::Null, json!(11)),
        ("cat; printf done", "done\n(exited with code 0, ", json!(0), Value::Null),
        ("printf '\\377'", "\u{FFFD}\n(exited with code 0, ", json!(0), Value::Null),
        ("pwd -P | xargs basename", "work\n(exited", json!(0), Value::Null),
        ("no-such-program", "command not found", json!(127), Value::Null),
    ] {
        let (text, details) = bench.call(&TOOL, json!({ "command": command })).await.unwrap();
        assert!(text.contains(shown), "{command}: {text}");
        assert_eq!((&details["exit_code"], &details["signal"]), (&code, &signal), "{command}");
        assert_eq!(details["background"], Value::Null, "{command}");
    }
}

#[tokio::test]
async fn what_holds_the_pipe_is_not_waited_for_and_ends_with_the_run() {
    let bench = bench();
    let begun = Instant::now();
    let waits = "until [ -e go ]; do sleep 0.02; done";
    let command = format!("echo before; ({waits}; echo after; exec sleep 600) & echo done");
    let call = json!({ "command": command });
    let (text, details) = bench.call(&TOOL, call).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(text.starts_with("before\ndone\n(exited with code 0, "), "{text}");
    let left = &details["background"]["processes"][0];
    let pid = left["pid"].as_u64().unwrap();
    assert!(text.contains(&format!("until this run ends: pid {pid} `")), "{text}");
    let rows = bench.table.snapshot();
    let row = rows.iter().find(|row| row.kind == NodeKind::Background).unwrap();
    assert_eq!((row.pid, row.parent.is_some()), (Some(u32::try_from(pid).unwrap()), true));

    bench.put("go", "");
    let handle = details["background"]["handle"].as_str().unwrap();
    let later = async {
        loop {
            let text = bench.done(&read::TOOL, json!({ "path": handle })).await;
            if text.contains("after") {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let text = tokio::time::timeout(Duration::from_secs(20), later).await.unwrap();
    assert_eq!(text, "     1\tbefore\n     2\tdone\n     3\tafter");

    bench.seat.background.end().await;
    assert!(left_of(u32::try_from(pid).unwrap()).is_empty());
    assert!(!bench.table.snapshot().iter().any(|row| row.kind == NodeKind::Background));
}

#[tokio::test]
async fn what_leaves_the_session_is_kept_and_killed_all_the_same() {
    let bench = bench();
    let call = json!({ "command": "setsid sh -c 'echo $$ > pid; trap \"\" TERM; sleep 600' \
        >/dev/null 2>&1 & while ! [ -s pid ]; do sleep 0.01; done" });
    let (text, details) = bench.call(&TOOL, call).await.unwrap();
    assert!(text.contains("something in a session of its own"), "{text}");
    assert_eq!(details["background"], json!({ "processes": [], "handle": null }));
    let pid: u32 = bench.content("pid").trim().parse().unwrap();
    assert_eq!(left_of(pid).len(), 2);
    bench.seat.background.end().await;
    assert_eq!(left_of(pid), []);
}

#[tokio::test]
async fn a_run_that_is_dropped_takes_its_background_along() {
    let bench = bench();
    let call = json!({ "command": "sleep 600 & echo $! > pid" });
    bench.call(&TOOL, call).await.unwrap();
    let pid: u32 = bench.content("pid").trim().parse().unwrap();
    assert!(is_alive(pid));
    drop(bench);
    let gone = async {
        while is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
}

#[tokio::test]
async fn a_background_process_that_ends_leaves_the_status() {
    let bench = bench();
    let command = "until [ -e over ]; do sleep 0.02; done & true";
    bench.call(&TOOL, json!({ "command": command })).await.unwrap();
    let has_row = || bench.table.snapshot().iter().any(|row| row.kind == NodeKind::Background);
    assert!(has_row());
    bench.put("over", "");
    let gone = async {
        while has_row() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
}

#[tokio::test]
async fn time_is_bounded_and_all_of_the_tree_goes() {
    let bench = bench();
    let call = json!({
        "command": "echo begun; trap '' TERM; (trap '' TERM; sleep 600) & echo $! > pid; sleep 600",
        "timeout_seconds": 1,
    });
    let failure = bench.call(&TOOL, call).await.unwrap_err();
    assert!(failure.message.starts_with("begun\n(timed out after 1 s; "), "{}", failure.message);
    assert!(failure.message.ends_with("it was stopped with all that it had started)"));
    assert_eq!(failure.details["timed_out"], true);
    let pid: u32 = bench.content("pid").trim().parse().unwrap();
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_cancelled_command_is_stopped_and_shows_what_it_printed() {
    let bench = bench();
    let cancel = Cancel::new();
    let call = json!({ "command": "echo begun; touch ready; sleep 600" });
    let call = (TOOL.call)(&bench.seat, call, cancel.clone());
    let cancelling = async {
        while !bench.path("ready").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(call, cancelling);
    let failure = outcome.unwrap_err();
    assert!(
        failure.message.starts_with("begun\n(cancelled: it was stopped"),
        "{}",
        failure.message
    );
    assert_eq!(failure.details["cancelled"], true);
}

#[tokio::test]
async fn long_output_is_shown_by_its_ends_and_kept() {
    let bench = bench();
    let call = json!({ "command": "seq 1 100000" });
    let (text, details) = bench.call(&TOOL, call).await.unwrap();
    assert!(text.len() < 34_000, "{}", text.len());
    assert!(text.starts_with("1\n2\n") && text.contains("\n99999\n100000\n(exited"), "{text}");
    assert_eq!(details["output_bytes"], 588_895);
    let call = json!({ "path": details["handle"], "offset": 50_000, "limit": 1 });
    let text = bench.done(&read::TOOL, call).await;
    assert!(text.starts_with(" 50000\t50000\n"), "{text}");
}

#[tokio::test]
async fn a_background_flood_does_not_hold_the_answer() {
    let bench = bench();
    let begun = Instant::now();
    let call = json!({ "command": "yes flood & sleep 0.1" });
    let (text, _) = bench.call(&TOOL, call).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(text.contains("`yes flood`"), "{text}");
    bench.seat.background.end().await;
}

#[tokio::test]
async fn bad_calls_say_what_is_wrong() {
    let bench = bench();
    for (call, message) in [
        (json!({ "command": "true", "timeout_seconds": 1801 }), "is 1801, over the limit of 1800"),
        (json!({ "command": "true", "timeout_seconds": 0 }), "give at least 1"),
        (json!({ "command": "true", "timeout": 1 }), "unknown field `timeout`"),
        (json!({}), "missing field `command`"),
    ] {
        let text = bench.fails(&TOOL, call).await;
        assert!(text.contains(message), "{text}");
    }
}
