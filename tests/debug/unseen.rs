//! Stops that come after the call that waited for them was answered.

use serde_json::json;

use super::{Debugged, lines, program, scripted};
use crate::support::{Home, eventually};

/// A program that stands at its first breakpoint, and reaches the next ones late.
fn late(home: &Home) -> Debugged {
    let mut debug = scripted(home, &["late:300"], "", &[]);
    debug.done("breakpoints", lines(&[1, 2, 3]));
    debug.done("launch", program());
    let (text, _) = debug.done("continue", json!({ "wait_seconds": 0 }));
    assert!(text.starts_with("running"), "{text}");
    debug
}

#[test]
fn to_continue_what_runs_is_to_wait_for_it() {
    let home = Home::new();
    let mut debug = late(&home);
    let (text, stop) = debug.done("continue", json!({}));
    assert!(text.contains("stopped: breakpoint"), "{text}");
    assert_eq!((&stop["line"], &stop["stop"]), (&json!(2), &json!(2)));
    assert!(debug.session.end().success());
}

#[test]
fn nobody_goes_on_from_a_stop_that_came_unseen() {
    let home = Home::new();
    for operation in ["continue", "step_over"] {
        let mut debug = late(&home);
        eventually("it stops", || debug.state() == "stopped");
        let (text, status) = debug.done("status", json!({}));
        assert!(text.contains("stopped (breakpoint); `continue` tells where"), "{text}");
        assert_eq!(status["at"], json!(null), "not where it stood before");
        let (_, stop) = debug.done(operation, json!({}));
        assert_eq!((&stop["line"], &stop["stop"]), (&json!(2), &json!(2)), "{operation}");
        let (text, _) = debug.done("status", json!({}));
        assert!(text.contains("stopped (breakpoint) at a.txt:2"), "{text}");
        let (_, stop) = debug.done(operation, json!({}));
        assert_eq!(stop["stop"], 3, "and now it goes on: {stop}");
        assert!(debug.session.end().success());
    }
}

#[test]
fn a_stack_tells_a_stop_too() {
    let home = Home::new();
    let mut debug = late(&home);
    eventually("it stops", || debug.state() == "stopped");
    debug.done("stack", json!({}));
    let (_, stop) = debug.done("continue", json!({}));
    assert_eq!(stop["line"], 3);
    assert!(debug.session.end().success());
}

#[test]
fn who_only_looks_waits_for_no_step() {
    let home = Home::new();
    let mut debug = scripted(&home, &["late:5000"], "", &[]);
    debug.done("breakpoints", lines(&[1, 2]));
    debug.done("launch", program());
    let step = json!({ "operation": "continue", "wait_seconds": 20 });
    let step = debug.session.begin("debug", step);
    for operation in ["status", "output", "adapters"] {
        let look = debug.session.begin("debug", json!({ "operation": operation }));
        let first = debug.session.line(|line| line["id"] == step || line["id"] == look);
        assert_eq!(first["id"], look, "{operation}: {first:#}");
    }
    debug.done("terminate", json!({}));
    assert_eq!(debug.session.answer(step)["result"]["is_error"], true);
    assert!(debug.session.end().success());
}
