//! lldb-dap on C and Rust, delve on Go.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::Debugged;
use crate::support::{Home, copy};

/// Copies a project and builds it, or says why that cannot be done here.
#[expect(clippy::print_stdout, reason = "a test that proves nothing says so")]
fn project(home: &Home, name: &str, build: &[&str]) -> Option<Debugged> {
    let dir = home.folder(name);
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/projects").join(name);
    copy(&from, &dir);
    if let [program, args @ ..] = build {
        let mut command = Command::new(program);
        command.args(args).current_dir(&dir).env_remove("CARGO_TARGET_DIR");
        match command.status() {
            Ok(status) if status.success() => {}
            outcome => {
                println!("skipped: `{}`: {outcome:?}", build.join(" "));
                return None;
            }
        }
    }
    Some(Debugged { session: home.session(&dir, &[]), dir })
}

#[expect(clippy::print_stdout, reason = "a test that proves nothing says so")]
fn usable(debug: &mut Debugged, adapter: &str) -> bool {
    let (text, _) = debug.done("adapters", json!({}));
    let prefix = format!("{adapter}: ");
    let line = text.lines().find(|line| line.starts_with(&prefix)).unwrap_or_default();
    if !line.contains("usable") {
        println!("skipped: {line}");
    }
    line.contains("usable")
}

const CC: [&str; 5] = ["cc", "-g", "queue.c", "-o", "build-queue"];

#[test]
fn a_c_program_is_stepped_and_its_data_seen() {
    let home = Home::new();
    let Some(mut debug) = project(&home, "debug_c", &CC) else { return };
    if !usable(&mut debug, "lldb") {
        return;
    }
    debug.done("breakpoints", json!({ "file": "queue.c", "lines": [21] }));
    let (text, stop) = debug.done("launch", json!({ "program": "build-queue" }));
    assert!(text.contains(">   21 |         total += head->value;"), "{text}");
    assert!(text.contains("total=0"), "{text}");
    let (_, scopes) = debug.done("scopes", json!({ "frame_id": stop["frames"][0]["id"] }));
    let (_, locals) =
        debug.done("variables", json!({ "reference": scopes["scopes"][0]["reference"] }));
    let head = locals["variables"].as_array().unwrap().iter().find(|it| it["name"] == "head");
    let (text, _) = debug.done("variables", json!({ "reference": head.unwrap()["reference"] }));
    assert!(text.contains("value = 16"), "{text}");
    let (text, _) = debug.done("evaluate", json!({ "expression": "head->next->value" }));
    assert!(text.contains("= 9"), "{text}");
    let text = debug.fails("evaluate", json!({ "expression": "nothing" }));
    assert!(text.contains("nothing"), "{text}");
    for operation in ["stack", "step_over", "continue"] {
        let text = debug.fails(operation, json!({ "thread_id": 77 }));
        assert!(text.contains("there is no thread 77"), "{operation}: {text}");
    }
    debug.done("step_over", json!({}));
    debug.done("breakpoints", json!({ "file": "queue.c", "lines": [] }));
    let (text, _) = debug.done("step_out", json!({}));
    assert!(text.contains("in main"), "{text}");
    let (text, _) = debug.done("continue", json!({}));
    assert!(text.contains("exited with code 0") && text.contains("total 30"), "{text}");
    let (text, _) = debug.done("launch", json!({ "program": "build-queue", "args": ["read"] }));
    assert!(text.contains("exited with code 0") && text.contains("read nothing"), "{text}");
    let (text, _) = debug.done("launch", json!({ "program": "build-queue", "args": ["crash"] }));
    assert!(text.contains("SIGABRT"), "{text}");
    debug.done("terminate", json!({}));
    let entry = json!({ "program": "build-queue", "stop_on_entry": true });
    let (text, _) = debug.done("launch", entry);
    assert!(text.starts_with("stopped: entry  ["), "{text}");
    debug.done("terminate", json!({}));
    let text = debug.fails("launch", json!({ "program": "other" }));
    assert!(text.contains("build-queue") && text.contains("cmake --build build"), "{text}");
    let text = debug.fails("launch", json!({ "program": "queue.c" }));
    assert!(text.contains("must be built first"), "{text}");
    assert!(debug.session.end().success());
}

#[test]
fn a_program_that_is_stale_or_stripped_is_said_to_be() {
    let home = Home::new();
    let Some(mut debug) = project(&home, "debug_c", &["cc", "queue.c", "-o", "bare"]) else {
        return;
    };
    if !usable(&mut debug, "lldb") {
        return;
    }
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    let source = std::fs::File::options().append(true).open(debug.dir.join("queue.c")).unwrap();
    source.set_modified(later).unwrap();
    debug.done("breakpoints", json!({ "file": "queue.c", "lines": [21] }));
    let (text, _) = debug.done("launch", json!({ "program": "bare" }));
    assert!(text.contains("bare was built before queue.c was changed"), "{text}");
    assert!(
        text.contains("no debug information") && text.contains("not bound: queue.c:21"),
        "{text}"
    );
    assert!(text.contains("exited with code 0 and never stopped"), "{text}");
    assert!(debug.session.end().success());
}

#[test]
fn a_rust_program_shows_its_values_as_rust_does() {
    let home = Home::new();
    let Some(mut debug) = project(&home, "debug_rust", &["cargo", "build", "-q"]) else { return };
    if !usable(&mut debug, "lldb") {
        return;
    }
    debug.done("breakpoints", json!({ "file": "src/main.rs", "lines": [22] }));
    let (text, stop) = debug.done("launch", json!({ "program": "shapes" }));
    assert!(text.contains("src/main.rs:22 in shapes::main"), "{text}");
    for value in ["name=\"wörld\"", "shapes=size=2", "maybe=Some(7)", "total=12.75"] {
        assert!(text.contains(value), "{value}: {text}");
    }
    assert_eq!(stop["function"], "shapes::main");
    let (text, _) = debug.done("stack", json!({}));
    assert!(text.contains("::{{closure}}") && !text.contains("$u7b$"), "{text}");
    debug.done("terminate", json!({}));
    let text = debug.fails("launch", json!({ "program": "shape" }));
    assert!(text.contains("target/debug/shapes") && text.contains("`cargo build`"), "{text}");
    assert!(debug.session.end().success());
}

#[test]
fn breakpoints_bind_below_a_symbolic_link() {
    let home = Home::new();
    let real = home.folder("real");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/projects/debug_c");
    copy(&from, &real);
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    // The shell's name of the folder goes into the debug information, and into the session.
    let built = Command::new("cc").args(&CC[1..]).current_dir(&link).env("PWD", &link).status();
    assert!(built.is_ok_and(|status| status.success()), "set-up sees that there is a `cc`");
    let mut command = home.hostler(&["session", "--dir"]);
    command.arg(&link).env("PWD", &link).current_dir(&link);
    let mut debug = Debugged { session: crate::support::Session::start(command), dir: link };
    if !usable(&mut debug, "lldb") {
        return;
    }
    debug.done("breakpoints", json!({ "file": "queue.c", "lines": [21] }));
    let (text, stop) = debug.done("launch", json!({ "program": "build-queue" }));
    assert!(text.contains("stopped: breakpoint"), "{text}");
    assert_eq!(stop["file"], "queue.c");
    assert!(debug.session.end().success());
}

#[test]
fn a_go_program_is_built_stopped_and_its_end_told() {
    let home = Home::new();
    let Some(mut debug) = project(&home, "debug_go", &[]) else { return };
    if !usable(&mut debug, "delve") {
        return;
    }
    debug.done("breakpoints", json!({ "file": "main.go", "lines": [1, 13] }));
    let (text, stop) = debug.done("launch", json!({ "program": "." }));
    assert!(text.contains("main.go:13 in main.count") && text.contains("word=\"a\""), "{text}");
    assert!(text.contains("not bound: main.go:1 (could not find statement"), "{text}");
    assert_eq!(stop["line"], 13);
    let text = debug.fails("step_over", json!({ "thread_id": 77 }));
    assert!(text.contains("there is no thread 77"), "{text}");
    let (text, _) = debug.done("evaluate", json!({ "expression": "len(text)" }));
    assert!(text.contains("= 9"), "{text}");
    let (text, threads) = debug.done("threads", json!({}));
    assert!(threads["total"].as_u64().unwrap() > 1 && text.starts_with("> "), "{text}");
    debug.done("step_over", json!({}));
    debug.done("breakpoints", json!({ "file": "main.go", "lines": [] }));
    let (text, end) = debug.done("continue", json!({}));
    assert!(text.contains("exited with code 3") && text.contains("a: 3"), "{text}");
    assert_eq!(end["exit_code"], 3);
    let (text, _) = debug.done("launch", json!({ "program": "main.go", "args": ["panic"] }));
    assert!(text.contains("stopped: exception") && text.contains("asked to"), "{text}");
    assert!(
        text.contains("first in the work folder") || text.contains("main.main main.go:22"),
        "{text}"
    );
    debug.done("terminate", json!({}));
    let (text, _) = debug.done("launch", json!({ "program": ".", "stop_on_entry": true }));
    assert!(text.starts_with("stopped: entry  [") && text.contains("in main.main"), "{text}");
    let (text, _) = debug.done("step_over", json!({}));
    assert!(text.contains("stopped: step") && text.contains("in main.main"), "{text}");
    debug.done("terminate", json!({}));
    std::fs::write(debug.dir.join("broken.go"), "package main\n\nfunc broken() { return 1 }\n")
        .unwrap();
    let text = debug.fails("launch", json!({ "program": "." }));
    assert!(text.contains("broken.go:3"), "the compiler's words: {text}");
    let left = std::fs::read_dir(&debug.dir).unwrap().flatten();
    let names: Vec<_> = left.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.starts_with("__debug")), "{names:?}");
    assert!(debug.session.end().success());
}
