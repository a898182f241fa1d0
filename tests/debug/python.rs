//! debugpy, on a program that adds up wrongly, and on programs that behave badly.

use std::path::Path;

use serde_json::json;

use super::Debugged;
use crate::support::{Home, copy, eventually, marked};

/// Opens a session on the project, or says why that proves nothing here.
#[expect(clippy::print_stdout, reason = "a test that proves nothing says so")]
fn debugged(home: &Home) -> Option<Debugged> {
    let dir = home.folder("project");
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/projects/debug_python");
    copy(Path::new(from), &dir);
    let mut debug = Debugged { session: home.session(&dir, &[]), dir };
    let (text, _) = debug.done("adapters", json!({}));
    let line = text.lines().find(|line| line.starts_with("debugpy: ")).unwrap_or_default();
    if !line.contains("usable") {
        println!("skipped: {line}");
        return None;
    }
    Some(debug)
}

fn put(debug: &Debugged, name: &str, text: &str) {
    std::fs::write(debug.dir.join(name), text).unwrap();
}

#[test]
fn the_wrong_line_of_a_program_is_found() {
    let home = Home::new();
    let Some(mut debug) = debugged(&home) else { return };
    let wanted = json!({ "file": "tally/sales.py", "lines": [14] });
    debug.done("breakpoints", wanted);
    let (text, stop) = debug.done("launch", json!({ "program": "main.py" }));
    assert!(text.contains(">   14 |         amount = each * count"), "{text}");
    assert!(text.contains("amount=0") && text.contains("name='hammer'"), "{text}");
    assert!(text.contains("adding up 3 sales"), "output since: {text}");
    let (text, _) = debug.done("evaluate", json!({ "expression": "amount + each * count" }));
    assert!(text.starts_with("amount + each * count = 900  (int)"), "{text}");
    let (text, _) = debug.done("continue", json!({}));
    assert!(text.contains("amount=900") && text.contains("name='saw'"), "{text}");
    let stale =
        debug.fails("evaluate", json!({ "expression": "1", "frame_id": stop["frames"][0]["id"] }));
    assert!(stale.contains("earlier stop"), "{stale}");
    let (text, _) = debug.done("step_out", json!({ "wait_seconds": "20" }));
    assert!(text.contains("stopped: "), "{text}");
    debug.done("breakpoints", json!({ "file": "tally/sales.py", "lines": [] }));
    let (text, _) = debug.done("continue", json!({}));
    assert!(text.contains("SystemExit: 3") && text.contains("total: 900"), "{text}");
    let (text, end) = debug.done("continue", json!({}));
    assert!(text.contains("main.py exited with code 3"), "{text}");
    assert_eq!(end["exit_code"], 3);
    assert!(debug.session.end().success());
}

#[test]
fn breakpoints_have_conditions_counts_and_messages() {
    let home = Home::new();
    let Some(mut debug) = debugged(&home) else { return };
    let lines = json!([
        { "line": 13, "log_message": "each is {each}" },
        { "line": 14, "condition": "name == 'nail'" },
        { "line": 6, "hit_count": 2 },
    ]);
    let (text, _) = debug.done("breakpoints", json!({ "file": "tally/sales.py", "lines": lines }));
    assert!(text.contains("14 if `name == 'nail'`: pending"), "{text}");
    let (text, _) = debug.done("launch", json!({ "program": "main.py", "args": ["more"] }));
    assert!(text.contains("tally/sales.py:6") && text.contains("price=500"), "the second: {text}");
    let (text, _) = debug.done("continue", json!({}));
    assert!(text.contains("name='nail'"), "{text}");
    debug.done("breakpoints", json!({ "file": "tally/sales.py", "lines": [22] }));
    let (text, stop) = debug.done("continue", json!({}));
    assert!(text.contains("in bulky") && text.contains("(5002 characters)"), "{text}");
    let (_, scopes) = debug.done("scopes", json!({ "frame_id": stop["frames"][0]["id"] }));
    let reference = scopes["scopes"][0]["reference"].clone();
    let (text, variables) = debug.done("variables", json!({ "reference": reference }));
    assert!(text.lines().all(|line| line.chars().count() < 600), "{text}");
    let many = variables["variables"].as_array().unwrap().iter();
    let many = many.filter(|variable| variable["name"] == "many").map(|it| &it["reference"]);
    let many = many.clone().next().unwrap();
    let (text, variables) = debug.done("variables", json!({ "reference": many, "start": 50 }));
    assert_eq!(variables["variables"].as_array().unwrap().len(), 50);
    assert_eq!(variables["variables"][0]["value"], "50", "{text}");
    assert!(debug.session.end().success());
}

#[test]
fn exceptions_are_stopped_at_as_the_adapter_or_the_caller_chooses() {
    let home = Home::new();
    let Some(mut debug) = debugged(&home) else { return };
    put(&debug, "raise.py", "import sys\nprint('first')\nraise ValueError('no such sale')\n");
    let (text, stop) = debug.done("launch", json!({ "program": "raise.py" }));
    assert!(text.contains("stopped: exception") && text.contains("no such sale"), "{text}");
    assert_eq!(stop["line"], 3);
    let text = debug.fails("breakpoints", json!({ "exceptions": ["rased"] }));
    assert!(text.contains("it has: raised, uncaught, userUnhandled"), "{text}");
    let (text, _) = debug.done("continue", json!({}));
    assert!(text.contains("exited with code 1"), "{text}");
    debug.done("breakpoints", json!({ "exceptions": [] }));
    let (text, _) = debug.done("launch", json!({ "program": "raise.py" }));
    assert!(text.contains("exited with code 1 and never stopped"), "{text}");
    assert!(text.contains("ValueError: no such sale"), "{text}");
    assert!(debug.session.end().success());
}

#[test]
fn bad_programs_end_in_a_clear_state() {
    let home = Home::new();
    let Some(mut debug) = debugged(&home) else { return };
    put(&debug, "syntax.py", "def broken(:\n    pass\n");
    let text = debug.done("launch", json!({ "program": "syntax.py" })).0;
    let text = if text.starts_with("stopped") { debug.done("continue", json!({})).0 } else { text };
    assert!(text.contains("exited with code 1"), "{text}");
    let (text, _) = debug.done("output", json!({}));
    assert!(text.contains("SyntaxError"), "{text}");
    put(&debug, "asks.py", "try:\n    input('name? ')\nexcept EOFError:\n    print('nobody')\n");
    let (text, _) = debug.done("launch", json!({ "program": "asks.py" }));
    assert!(text.contains("exited with code 0") && text.contains("nobody"), "{text}");
    put(&debug, "prints.py", "while True:\n    print('on and on')\n");
    let (text, _) = debug.done("launch", json!({ "program": "prints.py", "wait_seconds": 1 }));
    assert!(text.contains("running: prints.py") && text.len() < 4000, "{text}");
    eventually("it prints", || debug.done("output", json!({})).0.contains("on and on"));
    let (text, _) = debug.done("pause", json!({}));
    assert!(text.contains("stopped: pause"), "{text}");
    let looped = json!({ "expression": "[x for x in iter(int, 1)]" });
    let text = debug.fails("evaluate", looped);
    assert!(text.contains("KeyboardInterrupt") || text.contains("within 15s"), "{text}");
    debug.done("stack", json!({}));
    debug.done("terminate", json!({}));
    assert!(
        debug.fails("launch", json!({ "program": "none.py" })).contains("no such Python program")
    );
    assert!(
        debug.fails("launch", json!({ "program": "pyproject.toml" })).contains("no adapter takes")
    );
    assert!(debug.session.end().success());
}

#[test]
fn children_are_followed_and_die_with_the_session() {
    let home = Home::new();
    let Some(mut debug) = debugged(&home) else { return };
    let mark = format!("debugged-{}", std::process::id());
    let program = format!(
        "import os, subprocess, sys\n\
         subprocess.Popen(['sleep', '900'], env=dict(os.environ, CHILD_MARK='{mark}'))\n\
         subprocess.Popen(['setsid', 'sleep', '900'], env=dict(os.environ, CHILD_MARK='{mark}'))\n\
         if os.fork() == 0:\n    \
             value = 'of the child'; print('once', flush=True)\n    \
             os._exit(0)\n\
         os.wait()\n\
         print('done')\n"
    );
    put(&debug, "forks.py", &program);
    debug.done("breakpoints", json!({ "file": "forks.py", "lines": [6, 8] }));
    let (mut text, _) = debug.done("launch", json!({ "program": "forks.py" }));
    assert!(text.contains("in the child process"), "{text}");
    assert!(text.contains("value='of the child'"), "{text}");
    text = debug.done("continue", json!({})).0;
    assert!(text.contains("forks.py:8") && !text.contains("in the child"), "{text}");
    let (text, _) = debug.done("output", json!({}));
    assert_eq!(text.matches("once").count(), 1, "{text}");
    let marks = || marked(&format!("CHILD_MARK={mark}")).len();
    assert!(marks() >= 2);
    debug.done("terminate", json!({}));
    eventually("what it started is gone", || marks() == 0);
    assert!(debug.session.end().success());
}

#[test]
fn an_interpreter_of_the_project_runs_the_program_and_no_credential_reaches_it() {
    let home = Home::new();
    let Some(debug) = debugged(&home) else { return };
    let dir = debug.dir.clone();
    assert!(debug.session.end().success());
    let made = std::process::Command::new("python3")
        .args(["-m", "venv", "--without-pip", ".venv"])
        .current_dir(&dir)
        .status()
        .unwrap();
    assert!(made.success());
    let mut command = home.hostler(&["session", "--dir"]);
    command.arg(&dir).env("ANTHROPIC_API_KEY", "a-key").env("OWN_KEY", "kept");
    let mut debug = Debugged { session: crate::support::Session::start(command), dir };
    put(
        &debug,
        "who.py",
        "import os, sys\nprint(sys.prefix)\nprint(os.environ.get('ANTHROPIC_API_KEY'), os.environ['OWN_KEY'])\n",
    );
    let (text, _) = debug.done("launch", json!({ "program": "who.py" }));
    assert!(text.contains("project/.venv\n"), "{text}");
    assert!(text.contains("None kept"), "{text}");
    assert!(debug.session.end().success());
}
