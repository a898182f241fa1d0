//! Adapters that die: in each step of the handshake, and at a stop.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{lines, program, scripted};
use crate::support::Home;

#[test]
fn an_adapter_that_dies_in_the_handshake_is_told_at_once() {
    let handshake =
        ["initialize", "launch", "setBreakpoints", "setExceptionBreakpoints", "configurationDone"];
    for command in handshake {
        let home = Home::new();
        let mut debug = scripted(&home, &[&format!("die:{command}")], "", &[]);
        debug.done("breakpoints", lines(&[2]));
        let begin = Instant::now();
        let text = debug.fails("launch", program());
        assert!(begin.elapsed() < Duration::from_secs(10), "{command}: {:?}", begin.elapsed());
        assert!(text.contains("a.txt was not started"), "{command}: {text}");
        assert!(text.contains(&format!("abort in {command}")), "its words: {text}");
        // The next operation works, and so would the next launch.
        assert_eq!(debug.state(), "over", "{command}");
        let (text, _) = debug.done("breakpoints", json!({}));
        assert!(text.contains("2: pending"), "{command}: {text}");
        assert!(!debug.fails("launch", program()).contains("a session already"));
        assert!(debug.session.end().success());
    }
}

#[test]
fn an_adapter_that_dies_at_a_question_takes_the_session_and_nothing_else() {
    for (command, operation, arguments) in [
        ("threads", "threads", json!({})),
        ("evaluate", "evaluate", json!({ "expression": "x" })),
        ("next", "step_over", json!({})),
        ("stepIn", "step_in", json!({})),
        ("stepOut", "step_out", json!({})),
    ] {
        let home = Home::new();
        let mut debug = scripted(&home, &[&format!("die:{command}")], "", &[]);
        debug.done("breakpoints", lines(&[2]));
        debug.done("launch", program());
        let text = debug.fails(operation, arguments);
        assert!(text.contains("the session of a.txt was lost"), "{command}: {text}");
        assert!(text.contains("exited with code 6"), "{command}: {text}");
        let (text, _) = debug.done("launch", program());
        assert!(text.contains("stopped: breakpoint"), "{command}: {text}");
        assert!(debug.session.end().success());
    }
}

#[test]
fn an_adapter_that_dies_at_a_stop_is_told_and_the_next_launch_works() {
    let home = Home::new();
    let mut debug = scripted(&home, &["die:continue"], "", &[]);
    debug.done("breakpoints", lines(&[2]));
    debug.done("launch", program());
    let text = debug.fails("continue", json!({}));
    assert!(text.contains("was lost") && text.contains("exited with code 6"), "{text}");
    assert!(text.contains("abort in continue"), "{text}");
    let (text, _) = debug.done("launch", program());
    assert!(text.contains("stopped: breakpoint"), "breakpoints survive: {text}");
    assert!(debug.session.end().success());
}
