//! The `debug` tool: what its adapters do to it, and what it says.
//!
//! Here with an adapter that behaves as it is told; below with the real ones, each of
//! which says why it proves nothing where it cannot be had.

mod attach;
mod dying;
mod native;
mod python;
mod unseen;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Home, Session, lives, marked};

/// A session on a folder, of which only `debug` is called.
pub(crate) struct Debugged {
    pub(crate) session: Session,
    pub(crate) dir: PathBuf,
}

impl Debugged {
    /// Calls an operation that must succeed.
    pub(crate) fn done(&mut self, operation: &str, arguments: Value) -> (String, Value) {
        let result = self.call(operation, arguments);
        assert_eq!(result["is_error"], false, "{operation}: {result:#}");
        (text_of(&result), result["details"].clone())
    }

    /// Calls an operation that must fail.
    pub(crate) fn fails(&mut self, operation: &str, arguments: Value) -> String {
        let result = self.call(operation, arguments);
        assert_eq!(result["is_error"], true, "{operation}: {result:#}");
        text_of(&result)
    }

    pub(crate) fn call(&mut self, operation: &str, mut arguments: Value) -> Value {
        arguments["operation"] = json!(operation);
        self.session.call("debug", arguments)
    }

    /// Waits until the session is over or stopped, by asking.
    pub(crate) fn state(&mut self) -> String {
        self.done("status", json!({})).1["state"].as_str().unwrap_or_default().to_owned()
    }
}

pub(crate) fn text_of(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// Returns the adapter that behaves as it is told.
fn scripted_adapter() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let built = here.ancestors().nth(2).unwrap().join("examples/scripted_adapter");
    assert!(built.exists(), "{}: `cargo build --examples` builds it", built.display());
    built
}

/// Defines it for a home, in these modes and with further keys.
fn define(home: &Home, modes: &[&str], more: &str) {
    let adapter = scripted_adapter();
    let dials = modes.iter().any(|mode| mode.starts_with("dial:"));
    let keys = [
        "about = 'an adapter that is told how to behave'".to_owned(),
        "programs = ['*.txt']".to_owned(),
        "root_markers = ['scripted.root']".to_owned(),
        "binaries = ['scripted_adapter']".to_owned(),
        format!("project_folders = ['{}']", adapter.parent().unwrap().display()),
        format!("args = {modes:?}"),
        format!("reach = '{}'", if dials { "dials_us" } else { "stdio" }),
        "attach_by = 'listener'".to_owned(),
        more.to_owned(),
        "[launch]\nprogram = '{program}'\nargs = '{args}'".to_owned(),
        "[attach]\nprogram = 'a.txt'".to_owned(),
    ];
    std::fs::write(home.folder(".config/hostler/adapters").join("scripted.toml"), keys.join("\n"))
        .unwrap();
}

/// Opens a session in which that adapter behaves so.
fn scripted(home: &Home, modes: &[&str], more: &str, flags: &[&str]) -> Debugged {
    define(home, modes, more);
    let dir = home.folder("project");
    std::fs::write(dir.join("scripted.root"), "").unwrap();
    std::fs::write(dir.join("a.txt"), "one\ntwo\nthree\n").unwrap();
    Debugged { session: home.session(&dir, flags), dir }
}

fn program() -> Value {
    json!({ "program": "a.txt" })
}

fn lines(lines: &[u32]) -> Value {
    json!({ "file": "a.txt", "lines": lines })
}

#[test]
fn what_an_adapter_cannot_do_is_said() {
    let home = Home::new();
    let mut debug = scripted(&home, &[], "", &[]);
    let wanted = json!([{ "line": 2, "log_message": "x" }, { "line": 3, "condition": "y" }]);
    debug.done("breakpoints", json!({ "file": "a.txt", "lines": wanted }));
    debug.done("launch", program());
    let (text, _) = debug.done("breakpoints", json!({}));
    assert!(text.contains("scripted does no log messages"), "{text}");
    assert!(text.contains("3 if `y`: bound\n"), "{text}");
    assert!(debug.fails("attach", json!({ "port": 1 })).contains("already"));
    assert!(debug.session.end().success());
}

#[test]
fn a_program_is_stopped_looked_at_and_ended() {
    let home = Home::new();
    let mut debug = scripted(&home, &["gossip", "statistics", "reverse"], "", &[]);
    assert_eq!(debug.state(), "none");
    let (text, _) = debug.done("breakpoints", lines(&[2, 3]));
    assert!(text.contains("2: pending"), "{text}");
    let (text, stop) = debug.done("launch", program());
    assert!(text.contains("stopped: breakpoint") && text.contains(">    2 | two"), "{text}");
    assert!(text.contains("locals: at=0"), "{text}");
    assert_eq!((&stop["file"], &stop["line"]), (&json!("a.txt"), &json!(2)));
    let frame = stop["frames"][0]["id"].clone();
    let (_, scopes) = debug.done("scopes", json!({ "frame_id": frame }));
    let reference = &scopes["scopes"][0]["reference"];
    let (_, variables) = debug.done("variables", json!({ "reference": reference.to_string() }));
    assert_eq!(
        variables["variables"][0],
        json!({"name": "at", "value": "0", "type": "int", "reference": 0})
    );
    let (text, _) = debug.done("evaluate", json!({ "expression": "1 + 1" }));
    assert_eq!(text, "1 + 1 = 1 + 1");
    let (text, _) = debug.done("pause", json!({}));
    assert!(text.contains("stopped: breakpoint"), "what is stopped says so at once: {text}");
    let (text, _) = debug.done("continue", json!({}));
    assert!(text.contains(">    3 | three"), "{text}");
    let stale = debug.fails("scopes", json!({ "frame_id": frame }));
    assert!(stale.contains("belongs to an earlier stop"), "{stale}");
    let (text, end) = debug.done("continue", json!({}));
    assert!(text.starts_with("a.txt exited with code 3"), "{text}");
    assert_eq!(end["state"], "over");
    assert!(debug.fails("step_in", json!({})).contains("exited with code 3"));
    // Breakpoints are the conversation's: the next session has them too.
    let (text, _) = debug.done("launch", program());
    assert!(text.contains(">    2 | two"), "{text}");
    let (text, _) = debug.done("terminate", json!({}));
    assert!(text.contains("every process of it is gone"), "{text}");
    assert!(debug.session.end().success());
}

#[test]
fn a_failed_launch_is_told_in_the_adapters_words_wherever_they_are() {
    for (mode, words) in [
        ("fail:message", "words in the message"),
        ("fail:format", "words in the format"),
        ("fail:template", "words: in the variables"),
        ("fail:output", "words in the output"),
        ("late-failure", "the program does not exist"),
        ("die-at-start", "No module named everything"),
        ("die:initialize", "abort in initialize"),
        ("die:launch", "abort in launch"),
        ("die:setBreakpoints", "abort in setBreakpoints"),
        ("die:configurationDone", "abort in configurationDone"),
        ("refuse:configurationDone", "it refused `configurationDone` without a word"),
    ] {
        let home = Home::new();
        let mut debug = scripted(&home, &[mode], "start_deadline = '10s'", &[]);
        debug.done("breakpoints", lines(&[2]));
        let begun = Instant::now();
        let text = debug.fails("launch", program());
        assert!(text.contains(words), "{mode}: {text}");
        assert!(begun.elapsed() < Duration::from_secs(8), "{mode}: {:?}", begun.elapsed());
        let again = debug.fails("launch", program());
        assert!(again.contains(words), "{mode}, the next operation works: {again}");
        assert!(debug.session.end().success());
    }
}

#[test]
fn an_adapter_that_hangs_costs_its_bound_and_no_more() {
    for mode in ["hang:initialize", "hang:launch", "hang:setBreakpoints", "hang:configurationDone"]
    {
        let home = Home::new();
        let limits = "start_deadline = '1s'";
        let mut debug = scripted(&home, &[mode], limits, &["--set", "debug.request=1s"]);
        debug.done("breakpoints", lines(&[2]));
        let begun = Instant::now();
        let text = debug.fails("launch", program());
        assert!(text.contains("was not started"), "{mode}: {text}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{mode}: {:?}", begun.elapsed());
        assert_eq!(debug.state(), "over");
        assert!(debug.session.end().success());
    }
}

#[test]
fn operations_in_the_wrong_state_say_which_it_is() {
    let home = Home::new();
    let mut debug = scripted(&home, &["endless"], "", &[]);
    for (operation, arguments) in [
        ("continue", json!({})),
        ("stack", json!({})),
        ("evaluate", json!({ "expression": "1" })),
        ("terminate", json!({})),
        ("output", json!({})),
    ] {
        let text = debug.fails(operation, arguments);
        assert!(text.contains("no debug session"), "{text}");
    }
    assert!(debug.fails("scopes", json!({ "frame_id": 1 })).contains("no debug session"));
    assert!(debug.fails("launch", json!({})).contains("needs `program`"));
    assert!(debug.fails("launch", json!({ "program": "b.txt" })).contains("no such"));
    let (text, _) = debug.done("launch", json!({ "program": "a.txt", "wait_seconds": 0 }));
    assert!(text.starts_with("running: a.txt"), "{text}");
    for operation in ["step_over", "stack"] {
        let text = debug.fails(operation, json!({}));
        assert!(text.contains("the program is running"), "{operation}: {text}");
    }
    assert!(debug.fails("variables", json!({ "reference": 7 })).contains("no variables reference"));
    let second = debug.fails("launch", program());
    assert!(second.contains("there is a session already: scripted of a.txt, running"), "{second}");
    assert!(debug.fails("attach", json!({ "port": 1 })).contains("already"));
    let (text, _) = debug.done("pause", json!({}));
    assert!(text.contains("stopped: pause"), "{text}");
    let (text, _) = debug.done("step_over", json!({}));
    assert!(text.contains("stopped: step"), "{text}");
    assert!(debug.session.end().success());
}

#[test]
fn two_launches_at_once_do_not_both_win() {
    let home = Home::new();
    define(&home, &["endless", "slow:300"], "");
    let _daemon = home.serve();
    let mut debug = scripted(&home, &["endless", "slow:300"], "", &[]);
    let run = debug.session.ready["run"].as_str().unwrap().to_owned();
    let mut other = home.session(&debug.dir, &["--run", &run]);
    let arguments = json!({ "operation": "launch", "program": "a.txt", "wait_seconds": 0 });
    let (one, two) =
        (debug.session.begin("debug", arguments.clone()), other.begin("debug", arguments));
    let results = [debug.session.answer(one), other.answer(two)];
    let failed = results.iter().filter(|answer| answer["result"]["is_error"] == true).count();
    assert_eq!(failed, 1, "{results:#?}");
    assert!(other.end().success() && debug.session.end().success());
}

#[test]
fn a_step_that_is_refused_leaves_everything_as_it_was() {
    let home = Home::new();
    let mut debug = scripted(&home, &["refuse:next"], "", &[]);
    debug.done("breakpoints", lines(&[2]));
    let (_, stop) = debug.done("launch", program());
    let text = debug.fails("step_over", json!({}));
    assert!(text.contains("refused `next` without a word"), "{text}");
    assert_eq!(debug.state(), "stopped");
    debug.done("scopes", json!({ "frame_id": stop["frames"][0]["id"] }));
    assert!(debug.session.end().success());
}

#[test]
fn an_evaluation_without_end_blocks_itself_alone() {
    let home = Home::new();
    let mut debug = scripted(&home, &["hang:evaluate"], "", &["--set", "debug.evaluate=300ms"]);
    debug.done("breakpoints", lines(&[2]));
    debug.done("launch", program());
    let text = debug.fails("evaluate", json!({ "expression": "loop()" }));
    assert!(text.contains("did not answer `evaluate loop()` within 300ms"), "{text}");
    let text = debug.fails("evaluate", json!({ "expression": "1" }));
    assert!(text.contains("`loop()` is still being evaluated"), "{text}");
    debug.done("stack", json!({}));
    debug.done("terminate", json!({}));
    assert!(debug.session.end().success());
}

#[test]
fn a_stop_that_was_taken_back_is_not_told() {
    let home = Home::new();
    let mut debug = scripted(&home, &["resumes"], "", &[]);
    debug.done("breakpoints", lines(&[2]));
    let (text, _) = debug.done("launch", json!({ "program": "a.txt", "wait_seconds": 0 }));
    assert!(text.starts_with("running"), "{text}");
    assert!(debug.fails("stack", json!({})).contains("running"));
    assert!(debug.session.end().success());
}

#[test]
fn a_megabyte_of_output_is_bounded_and_readable_after_the_end() {
    let home = Home::new();
    let mut debug = scripted(&home, &["flood"], "", &[]);
    let (text, end) = debug.done("launch", program());
    assert!(text.starts_with("a.txt exited with code 3 and never stopped"), "{text}");
    assert_eq!(end["exit_code"], 3);
    let (text, output) = debug.done("output", json!({}));
    assert!(text.contains(&format!("{:062}", 16_383)) && text.contains("exit code 3"), "{text}");
    assert_eq!(output["cursor"], 16_384 * 63);
    let (text, output) = debug.done("output", json!({ "cursor": 0 }));
    assert!(text.contains("bytes are no longer kept"), "{text}");
    assert!(output["dropped_bytes"].as_u64().unwrap() > 700_000, "{output}");
    let (text, _) = debug.done("output", json!({ "cursor": 16_384 * 63 }));
    assert!(text.contains("nothing new"), "{text}");
    assert!(debug.session.end().success());
}

#[test]
fn a_child_that_stops_is_the_one_that_is_asked() {
    let home = Home::new();
    let mut debug = scripted(&home, &["child", "endless"], "", &[]);
    debug.done("breakpoints", lines(&[2]));
    let (text, stop) = debug.done("launch", program());
    assert!(text.contains("in the child process child 7"), "{text}");
    assert_eq!(stop["thread_id"], 1_000_000_001);
    let (_, threads) = debug.done("threads", json!({}));
    assert_eq!(threads["threads"][0]["id"], 1_000_000_001, "{threads}");
    assert_eq!(threads["total"], 2);
    debug.done("stack", json!({}));
    debug.done("evaluate", json!({ "expression": "x" }));
    let (text, _) = debug.done("continue", json!({ "wait_seconds": 1 }));
    assert!(text.starts_with("running"), "the parent goes on without it: {text}");
    debug.done("terminate", json!({}));
    assert!(debug.session.end().success());
}

#[test]
fn an_adapter_that_dials_is_waited_for_also_behind_ghosts() {
    for modes in [&["dial:{address}"][..], &["dial:{address}", "ghost"]] {
        let home = Home::new();
        let mut debug = scripted(&home, modes, "", &[]);
        debug.done("breakpoints", lines(&[2]));
        let (text, _) = debug.done("launch", program());
        assert!(text.contains("stopped: breakpoint"), "{text}");
        assert!(debug.session.end().success());
    }
    let home = Home::new();
    let mut debug = scripted(&home, &["dial:{address}", "die-at-start"], "", &[]);
    let text = debug.fails("launch", program());
    assert!(text.contains("No module named everything"), "{text}");
    assert!(debug.session.end().success());
}

#[test]
fn the_time_limit_holds_and_is_told_afterwards() {
    let home = Home::new();
    let mut debug = scripted(&home, &["endless"], "", &["--set", "debug.ttl=1500ms"]);
    debug.done("breakpoints", lines(&[2]));
    let (_, stop) = debug.done("launch", program());
    assert!(stop["seconds_left"].as_u64().unwrap() <= 1);
    // Also during a pending call.
    let text = debug.fails("continue", json!({ "wait_seconds": 60 }));
    assert!(
        text.contains("a debug session lives") && text.contains("last stood at a.txt:2"),
        "{text}"
    );
    let text = debug.fails("stack", json!({}));
    assert!(text.contains("there is no debug session: the session of a.txt was ended"), "{text}");
    assert!(debug.session.end().success());
}

#[test]
fn everything_that_an_adapter_started_goes_with_it() {
    let home = Home::new();
    let mark = format!("DEBUG_TEST_MARK={}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    define(&home, &["orphan", "immortal", "hang:disconnect"], "");
    let dir = home.folder("project");
    std::fs::write(dir.join("scripted.root"), "").unwrap();
    std::fs::write(dir.join("a.txt"), "one\ntwo\n").unwrap();
    let mut command = home.hostler(&["session", "--dir"]);
    command.arg(&dir).env(name, value);
    let mut debug = Debugged { session: Session::start(command), dir };
    debug.done("breakpoints", lines(&[2]));
    debug.done("launch", program());
    let adapter = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("scripted_adapter") && lives(*pid)
    };
    let there = |mark: &str| marked(mark).into_iter().filter(adapter).count();
    assert!(there(&mark) >= 2, "the adapter and its child in a session of its own");
    debug.done("terminate", json!({}));
    assert_eq!(there(&mark), 0);
    assert!(debug.session.end().success());
}

#[test]
fn what_cannot_be_used_says_which_half_is_missing() {
    let home = Home::new();
    let mut debug = scripted(&home, &[], "", &[]);
    std::fs::remove_file(debug.dir.join("scripted.root")).unwrap();
    let (text, _) = debug.done("adapters", json!({}));
    let line = text.lines().find(|line| line.starts_with("scripted: ")).unwrap();
    assert!(line.contains("no root: none of scripted.root"), "{line}");
    assert!(line.contains("its program is"), "{line}");
    let text = debug.fails("launch", program());
    assert!(text.contains("scripted: no root: none of scripted.root in"), "{text}");
    let text = debug.fails("breakpoints", lines(&[99]));
    assert!(text.contains("a.txt has 3 lines, so there is no line 99"), "{text}");
    let text = debug.fails("breakpoints", json!({ "file": "none.txt", "lines": [1] }));
    assert!(text.contains("none.txt: no such file"), "{text}");
    assert!(debug.session.end().success());
}
