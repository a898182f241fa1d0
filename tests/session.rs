//! `hostler session` and `call`, as a harness uses them.

use std::io::Write;
use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::{Home, Running, eventually, lives, marked, text};

fn error(answer: &Value) -> (&str, &str) {
    let part = |name: &str| answer["error"][name].as_str().unwrap_or_default();
    (part("code"), part("message"))
}

#[test]
fn the_first_line_says_what_the_turn_has() {
    let home = Home::new();
    let dir = home.folder("project");
    let session = home.session(&dir, &[]);
    let ready = &session.ready;
    assert_eq!(
        (&ready["protocol"], &ready["mode"], &ready["turn"]),
        (&json!(1), &json!("chat"), &json!(1))
    );
    let names: Vec<_> = ready["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let expected = "read, grep, glob, ast_grep, lsp, write, edit, apply_patch, ast_edit, \
                    lsp_rename, lsp_apply, resolve, bash, eval, debug";
    assert_eq!(names.join(", "), expected);
    for tool in ready["tools"].as_array().unwrap() {
        assert_eq!(tool["input_schema"]["type"], "object", "{tool:#}");
        let name = tool["name"].as_str().unwrap();
        assert!(ready["preamble"].as_str().unwrap().contains(&format!("`{name}`")));
    }
    assert!(session.end().success());
}

#[test]
fn lines_that_are_no_requests_are_told_and_the_session_goes_on() {
    let home = Home::new();
    let dir = home.folder("project");
    let mut session = home.session(&dir, &[]);
    session.send("this is not JSON");
    let answer = session.line(|line| line["id"].is_null() && line["error"].is_object());
    assert_eq!((error(&answer).0, &answer["error"]["line"]), ("bad_line", &json!(1)));
    session.send(&format!("\"{}\"", "x".repeat(33 * 1024 * 1024)));
    let answer = session.line(|line| line["id"].is_null() && line["error"].is_object());
    assert_eq!(
        error(&answer),
        ("bad_line", "line 2 is longer than 33554432 bytes and was skipped")
    );
    let failure = session.failure("explode", json!({}));
    assert_eq!(
        failure,
        "there is no tool `explode`; this turn has: read, grep, glob, ast_grep, lsp, write, edit, \
         apply_patch, ast_edit, lsp_rename, lsp_apply, resolve, bash, eval, debug"
    );
    let failure = session.failure("read", json!({"path": 7}));
    assert!(failure.contains("`path`") && failure.contains("expected a string"), "{failure}");
    let failure = session.failure("read", json!({"path": "x", "of_set": 7}));
    assert!(failure.contains("of_set") && failure.contains("offset"), "{failure}");
    let answer = session.control("explode", json!({}));
    assert_eq!(error(&answer).0, "bad_request");
    for (control, more, code) in [
        ("answer", json!({"card": 1, "choice": ["yes"]}), "not_allowed"),
        ("decline", json!({"card": 1}), "not_allowed"),
        ("decide", json!({"approval": "a1", "decision": "approve"}), "unknown_target"),
        ("cancel", json!({"target": 999}), "unknown_target"),
        ("set_mode", json!({"mode": "review"}), "not_allowed"),
        ("set_mode", json!({"mode": "plan"}), "bad_request"),
    ] {
        let answer = session.control(control, more);
        assert_eq!(error(&answer).0, code, "{control}: {answer}");
    }
    assert!(session.end().success());
}

#[test]
fn a_call_is_cancelled_and_its_processes_are_gone() {
    let home = Home::new();
    let dir = home.folder("project");
    let mut session = home.session(&dir, &[]);
    let mark = format!("CANCELLED_IN={}", dir.display());
    let command = format!("export {mark}; (setsid sleep 1000 &) ; sleep 1000");
    let id = session.begin("bash", json!({"command": command}));
    eventually("both sleep", || marked(&mark).len() >= 2);
    session.send(&format!("{{\"id\":{id},\"call\":\"read\",\"arguments\":{{}}}}"));
    let answer = session.line(|line| line["error"]["code"] == "duplicate_id");
    assert_eq!(answer["id"], id);
    let status = session.control("status", json!({}));
    assert_eq!(status["ok"]["calls"][0]["id"], id, "{status:#}");
    assert_eq!(status["ok"]["calls"][0]["state"], "running");
    assert_eq!(session.control("cancel", json!({"target": id}))["ok"], json!({"cancelled": true}));
    let answer = session.answer(id);
    assert_eq!(answer["result"]["is_error"], true);
    assert!(
        answer["result"]["content"][0]["text"].as_str().unwrap().contains("cancelled"),
        "{answer:#}"
    );
    assert_eq!(marked(&mark), [0; 0], "said to be cancelled while a process lives");
    assert!(session.end().success());
}

#[test]
fn a_new_turn_waits_for_calls_and_later_calls_wait_for_it() {
    let home = Home::new();
    let dir = home.folder("project");
    let mut session = home.session(&dir, &[]);
    let slow = session
        .begin("bash", json!({"command": "until [ -e go ]; do sleep 0.01; done; echo gone"}));
    session.send(r#"{"id":"next","control":"new_turn"}"#);
    let later = session.begin("bash", json!({"command": "echo later"}));
    eventually("status shows who waits", || {
        let status = session.control("status", json!({}));
        let calls = status["ok"]["calls"].as_array().unwrap().clone();
        calls.len() == 2 && calls[1]["state"] == "waiting for the next turn"
    });
    std::fs::write(dir.join("go"), "").unwrap();
    assert_eq!(session.answer(slow)["result"]["is_error"], false);
    let begun = session.line(|line| line["id"] == "next");
    assert_eq!(begun["ok"], json!({"turn": 2}));
    let event = session.line(|line| line["event"] == "turn");
    assert_eq!((&event["turn"], &event["mode"]), (&json!(2), &json!("chat")));
    assert_eq!(session.answer(later)["result"]["is_error"], false);
    let ended = session.control("end_turn", json!({}));
    assert_eq!(ended["ok"]["ended"], true);
    assert!(session.failure("read", json!({"path": "go"})).contains("no turn is open"));
    assert!(session.end().success());
}

#[test]
fn calls_in_flight_at_the_end_of_input_finish_first() {
    let home = Home::new();
    let dir = home.folder("project");
    let mut session = home.session(&dir, &[]);
    let id = session.begin("bash", json!({"command": "sleep 0.3; echo done"}));
    session.close_input();
    let answer = session.answer(id);
    assert!(
        answer["result"]["content"][0]["text"].as_str().unwrap().contains("done"),
        "{answer:#}"
    );
    assert!(session.end().success());
}

#[test]
fn nothing_outlives_a_session_however_it_ends() {
    let home = Home::new();
    let dir = home.folder("project");
    for (signal, joined) in [
        (Some(Signal::SIGKILL), false),
        (Some(Signal::SIGTERM), false),
        (Some(Signal::SIGHUP), false),
        (Some(Signal::SIGKILL), true),
        (Some(Signal::SIGTERM), true),
        (None, false),
        (None, true),
    ] {
        let daemon = joined.then(|| home.serve());
        let mark =
            format!("OUTLIVE_{}_{joined}={}", signal.map_or("end", Signal::as_str), dir.display());
        let mut session = home.session(&dir, &[]);
        let stubborn = "trap '' TERM HUP INT; (setsid sleep 1000 &); sleep 1000 & wait; sleep 1000";
        let begun = session.begin("bash", json!({"command": format!("export {mark}; {stubborn}")}));
        eventually("they live", || marked(&mark).len() >= 2);
        match signal {
            Some(signal) => {
                session.process.signal(signal);
                session.process.wait();
            }
            None => {
                session.control("cancel", json!({"target": begun}));
                assert!(session.end().success());
            }
        }
        eventually("nothing is left", || marked(&mark).is_empty());
        if let Some(mut daemon) = daemon {
            assert!(lives(daemon.pid()), "a session's end must not end its daemon");
            assert_eq!(home.run(&["stop"]).status.code(), Some(0));
            assert!(daemon.wait().success());
        }
    }
}

#[test]
fn a_call_prints_text_names_images_and_tells_by_its_code() {
    let home = Home::new();
    let dir = home.folder("project");
    let at = dir.to_str().unwrap();
    std::fs::write(dir.join("hello.txt"), "hello there\n").unwrap();
    // The smallest PNG: one pixel.
    let png = [
        0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0,
        0, 0, 1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, 0x49, 0x44,
        0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0xf0, 0x1f, 0, 5, 0, 1, 0xff, 0x89, 0x99,
        0x3d, 0x1d, 0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
    ];
    std::fs::write(dir.join("dot.png"), png).unwrap();
    let read = home.run(&["call", "read", r#"{"path":"hello.txt"}"#, "--dir", at]);
    assert_eq!(read.status.code(), Some(0), "{}", text(&read.stderr));
    assert!(text(&read.stdout).contains("hello there"));
    let image = home.run(&["call", "read", r#"{"path":"dot.png"}"#, "--dir", at]);
    let said = text(&image.stdout);
    let path = said.lines().find_map(|line| line.strip_prefix("image (image/png): ")).expect(&said);
    assert_eq!(std::fs::read(path).unwrap(), png);
    std::fs::remove_file(path).unwrap();
    for (args, code, says) in [
        (vec!["call", "read", r#"{"path":"none"}"#, "--dir", at], 1, "none"),
        (vec!["call", "read", "{", "--dir", at], 2, "not JSON"),
        (vec!["call", "read", "{}", "--dir", "/nowhere"], 2, "/nowhere"),
        (vec!["session", "--dir", at, "--mode", "plan"], 2, "--mode plan"),
        (vec!["session", "--dir", at, "--vibe"], 2, "--vibe"),
        (vec!["session", "--dir", at, "--autonomy", "propose_only"], 2, "--autonomy propose_only"),
        (vec!["session", "--dir", at, "--operator", "stdio"], 2, "--operator stdio"),
        (vec!["session", "--dir", at, "--run", "r1"], 3, "no daemon"),
        (vec!["status"], 3, "no daemon"),
        (vec!["stop"], 3, "no daemon"),
    ] {
        let output = home.run(&args);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
}

#[test]
fn a_harness_that_is_gone_takes_its_session_and_all_calls_along() {
    let home = Home::new();
    let dir = home.folder("project");
    for joined in [false, true] {
        let _daemon = joined.then(|| home.serve());
        let mark = format!("HARNESS_{joined}={}", dir.display());
        let mut command = home.hostler(&["session", "--dir"]);
        command.arg(&dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut session = Running(command.spawn().unwrap());
        let (mut stdin, stdout) =
            (session.0.stdin.take().unwrap(), session.0.stdout.take().unwrap());
        let call = json!({"command": format!("export {mark}; sleep 1000")});
        writeln!(stdin, "{}", json!({"id": 1, "call": "bash", "arguments": call})).unwrap();
        eventually("it sleeps", || !marked(&mark).is_empty());
        drop((stdin, stdout));
        session.wait();
        assert_eq!(marked(&mark), [0; 0]);
    }
}

#[test]
fn a_peer_that_does_not_read_holds_up_nobody_but_itself() {
    let home = Home::new();
    let dir = home.folder("project");
    std::fs::write(dir.join("long.txt"), "x".repeat(60_000)).unwrap();
    let mut command = home.hostler(&["session", "--dir"]);
    command.arg(&dir).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut session = Running(command.spawn().unwrap());
    let mut stdin = session.0.stdin.take().unwrap();
    // Far more than the pipe and the queues hold.
    let flood = std::thread::spawn(move || {
        for id in 0..5_000 {
            let line = json!({"id": id, "call": "bash", "arguments": {"command": "cat long.txt"}});
            if writeln!(stdin, "{line}").is_err() {
                return;
            }
        }
    });
    eventually("it is stuck", || {
        let before = std::fs::read_to_string(format!("/proc/{}/io", session.pid())).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(500));
        before == std::fs::read_to_string(format!("/proc/{}/io", session.pid())).unwrap()
    });
    session.signal(Signal::SIGTERM);
    session.wait();
    flood.join().unwrap();
}
