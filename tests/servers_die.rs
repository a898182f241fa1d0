//! Language servers that misbehave, as a session meets them: each one is defined by
//! the user's configuration, and what is asked is answered in time and truthfully.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::{Home, Running, Session, eventually, lives, marked, scripted, text};

/// What a write may take: its wait for a verdict (3 s), and the machine's load.
const WRITE: Duration = Duration::from_secs(6);

/// A project of one file, and a home in which the server is defined.
fn ground(moods: &[&str], more: &str) -> (Home, PathBuf) {
    let home = Home::new();
    let dir = home.folder("project");
    std::fs::write(dir.join("scripted.root"), "").unwrap();
    std::fs::write(dir.join("a.txt"), "word 0\n").unwrap();
    scripted(&home, moods, more);
    (home, dir)
}

fn hover() -> Value {
    json!({"action": "hover", "file": "a.txt", "line": 1, "symbol": "word"})
}

fn edit(session: &mut Session, old: &str, new: &str) -> Value {
    let result = session.call("edit", json!({"path": "a.txt", "old_text": old, "new_text": new}));
    assert_eq!(result["is_error"], false, "{result:#}");
    result
}

/// Returns how the server stands: its node of the session's tree.
fn node(session: &mut Session) -> Value {
    let status = session.control("status", json!({}));
    let nodes = status["ok"]["resources"].as_array().unwrap_or_else(|| panic!("{status:#}"));
    let server = nodes.iter().find(|node| node["kind"] == "language_server");
    server.cloned().unwrap_or_default()
}

fn pid(session: &mut Session) -> u32 {
    u32::try_from(node(session)["pid"].as_u64().unwrap()).unwrap()
}

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
}

fn said(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// A variable that reaches every process that the server ever starts.
fn mark(dir: &Path) -> (String, String) {
    (
        format!("[env]\nSCRIPTED_IN = '{}'\n", dir.display()),
        format!("SCRIPTED_IN={}", dir.display()),
    )
}

#[test]
fn one_that_dies_at_every_start_costs_five_starts_and_no_edit() {
    let (home, dir) = ground(&["exit"], "");
    let mut session = home.session(&dir, &[]);
    for number in 0..50 {
        edit(&mut session, &format!("word {number}"), &format!("word {}", number + 1));
    }
    assert_eq!(std::fs::read_to_string(dir.join("a.txt")).unwrap(), "word 50\n");
    eventually("it is given up", || node(&mut session)["phase"] == "failed");
    // The quickest of some: the machine has other things to do as well.
    let answers = [(); 5].map(|()| {
        let began = Instant::now();
        let failure = session.failure("lsp", hover());
        (began.elapsed(), failure)
    });
    let (took, failure) = answers.into_iter().min().unwrap();
    assert!(took < Duration::from_millis(100), "{took:?}");
    for word in ["scripted", "exited with code 3", "cannot find module `everything`", "reload"] {
        assert!(failure.contains(word), "`{word}` is not in: {failure}");
    }
    let node = node(&mut session);
    assert_eq!(node["incarnation"], 5, "{node:#}");
    let edited = edit(&mut session, "word 50", "word 51");
    // Told in words when it began; the details say it each time.
    assert_eq!(edited["details"]["freshness"], "no server", "{edited:#}");
    assert!(session.end().success());
}

#[test]
fn one_that_hangs_in_initialize_is_named_and_holds_nobody_up() {
    let (home, dir) = ground(&["hang-initialize"], "start_deadline = '1s'");
    let mut session = home.session(&dir, &[]);
    let began = Instant::now();
    let edited = edit(&mut session, "word 0", "word 1");
    assert!(began.elapsed() < WRITE, "{:?}", began.elapsed());
    assert_ne!(edited["details"]["freshness"], "fresh", "{edited:#}");
    let failure = session.failure("lsp", hover());
    assert!(failure.contains("did not answer `initialize` within 1s"), "{failure}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(session.end().success());
}

#[test]
fn junk_floods_and_questions_under_our_own_id_are_coped_with() {
    for moods in [&["junk"][..], &["flood"], &["ask"], &["late-registration"], &["push", "junk"]] {
        let (home, dir) = ground(moods, "");
        let mut session = home.session(&dir, &[]);
        // One that says that it is busy is quoted with that.
        let answer = session.text("lsp", hover());
        assert!(
            answer == "word" || answer.starts_with("word\n(scripted is still busy"),
            "{answer}"
        );
        let edited = edit(&mut session, "word 0", "word ERROR");
        assert!(said(&edited).contains("word ERROR"), "{moods:?}: {edited:#}");
        assert_eq!(node(&mut session)["incarnation"], 1, "{moods:?}");
        assert!(session.end().success());
    }
}

#[test]
fn a_death_in_mid_request_is_mended_once_and_then_told() {
    let (home, dir) = ground(&[], "");
    let trigger = home.path().join("die");
    std::fs::write(&trigger, "").unwrap();
    scripted(&home, &[&format!("die-once:{}", trigger.display())], "");
    let mut session = home.session(&dir, &[]);
    assert_eq!(session.text("lsp", hover()), "word");
    let status = session.text("lsp", json!({"action": "status"}));
    assert!(status.contains("start 2") && status.contains("SIGABRT"), "{status}");
    assert!(session.end().success());

    let (home, dir) = ground(&["die:textDocument/hover"], "");
    let mut session = home.session(&dir, &[]);
    let failure = session.failure("lsp", hover());
    assert!(failure.contains("dying of textDocument/hover"), "{failure}");
    assert_eq!(node(&mut session)["incarnation"], 2);
    let edited = edit(&mut session, "word 0", "word ERROR");
    assert!(said(&edited).contains("word ERROR"), "only hovers kill it: {edited:#}");
    assert!(session.end().success());
}

#[test]
fn what_a_dead_server_knew_is_not_told_afterwards() {
    let (home, dir) = ground(&[], "");
    let mut session = home.session(&dir, &[]);
    assert_eq!(session.text("lsp", hover()), "word");
    let first = pid(&mut session);
    std::fs::write(dir.join("a.txt"), "words ERROR\n").unwrap();
    signal(first, Signal::SIGKILL);
    let asked = json!({"action": "hover", "file": "a.txt", "line": 1, "symbol": "words"});
    assert_eq!(session.text("lsp", asked), "words");
    let found = session.text("lsp", json!({"action": "diagnostics", "file": "a.txt"}));
    assert!(found.contains("words ERROR"), "{found}");
    assert_ne!(pid(&mut session), first);
    assert!(session.end().success());
}

#[test]
fn a_stopped_one_is_told_replaced_and_no_write_waits_for_another() {
    let (home, dir) = ground(&[], "");
    std::fs::write(dir.join("b.txt"), "other\n").unwrap();
    let mut session = home.session(&dir, &[]);
    assert_eq!(session.text("lsp", hover()), "word");
    let first = pid(&mut session);
    signal(first, Signal::SIGSTOP);
    let began = Instant::now();
    let writes = [("a.txt", "word 0"), ("b.txt", "other")].map(|(path, old)| {
        session.begin("edit", json!({"path": path, "old_text": old, "new_text": "ERROR"}))
    });
    for id in writes {
        let result = session.answer(id)["result"].clone();
        assert_eq!(result["is_error"], false, "{result:#}");
        assert!(said(&result).contains("still analysing"), "never clean: {result:#}");
    }
    // One after the other would take twice the bound of one.
    assert!(began.elapsed() < WRITE, "{:?}", began.elapsed());
    assert_eq!(std::fs::read_to_string(dir.join("b.txt")).unwrap(), "ERROR\n");
    eventually("it is replaced", || node(&mut session)["incarnation"] == 2);
    let mut found = String::new();
    eventually("the new one has read what was written", || {
        found = session.text("lsp", json!({"action": "diagnostics", "file": "a.txt"}));
        found.contains("a.txt: fresh") || found.contains("error")
    });
    assert!(found.contains("ERROR"), "{found}");
    assert!(!lives(first));
    assert!(session.end().success());
}

#[test]
fn nothing_is_left_of_one_that_ignores_its_goodbye_and_forks() {
    for joined in [false, true] {
        let (home, dir) = ground(&[], "");
        let (more, mark) = mark(&dir);
        scripted(&home, &["immortal", "orphan"], &more);
        let daemon = joined.then(|| home.serve());
        let mut session = home.session(&dir, &[]);
        assert_eq!(session.text("lsp", hover()), "word");
        assert_eq!(marked(&mark).len(), 2, "the server and its child in a session of its own");
        let began = Instant::now();
        assert!(session.end().success());
        if let Some(mut daemon) = daemon {
            assert!(home.run(&["stop"]).status.success());
            assert!(daemon.wait().success());
        }
        assert!(began.elapsed() < Duration::from_secs(16), "{:?}", began.elapsed());
        assert_eq!(marked(&mark), [0; 0], "joined: {joined}");
    }
}

#[test]
fn nothing_is_left_of_one_whose_daemon_is_killed() {
    for how in [Signal::SIGKILL, Signal::SIGTERM] {
        let (home, dir) = ground(&[], "");
        let (more, mark) = mark(&dir);
        scripted(&home, &["immortal", "orphan"], &more);
        let mut daemon = home.serve();
        let mut session = home.session(&dir, &[]);
        assert_eq!(session.text("lsp", hover()), "word");
        assert_eq!(marked(&mark).len(), 2);
        daemon.signal(how);
        daemon.wait();
        eventually("both are gone", || marked(&mark).is_empty());
    }
}

#[test]
fn twenty_first_questions_at_once_start_one() {
    let (home, dir) = ground(&["slow:20"], "");
    let mut session = home.session(&dir, &[]);
    let asked: Vec<_> = (0..20).map(|_| session.begin("lsp", hover())).collect();
    for id in asked {
        let answer = session.answer(id);
        assert_eq!(answer["result"]["content"][0]["text"], "word", "{answer:#}");
    }
    let node = node(&mut session);
    assert_eq!((&node["incarnation"], &node["restarts"]), (&json!(1), &json!(0)), "{node:#}");
    assert!(session.end().success());
}

#[test]
fn runs_of_one_root_share_one_and_what_each_writes_is_seen_by_both() {
    let (home, dir) = ground(&[], "");
    let _daemon: Running = home.serve();
    let mut one = home.session(&dir, &[]);
    let mut two = home.session(&dir, &[]);
    for number in 0..3 {
        let (old, new) = (format!("word {number}"), format!("word {}", number + 1));
        let writer = if number % 2 == 0 { &mut one } else { &mut two };
        edit(writer, &old, &new);
        for session in [&mut one, &mut two] {
            assert_eq!(session.text("lsp", hover()), "word");
        }
    }
    assert_eq!(pid(&mut one), pid(&mut two));
    assert!(one.end().success() && two.end().success());
}

#[test]
fn runs_whose_environments_differ_get_one_each() {
    let (home, dir) = ground(&[], "");
    let _daemon = home.serve();
    let mut one = home.session(&dir, &[]);
    let mut command = home.hostler(&["session", "--dir"]);
    command.arg(&dir).env("VIRTUAL_ENV", home.path().join("venv"));
    let mut two = Session::start(command);
    for session in [&mut one, &mut two] {
        assert_eq!(session.text("lsp", hover()), "word");
    }
    let report = home.report();
    let nodes = report["nodes"].as_array().unwrap();
    let servers = nodes.iter().filter(|node| node["kind"] == "language_server").count();
    assert_eq!(servers, 2, "{report:#}");
    assert!(one.end().success() && two.end().success());
}

#[test]
fn one_that_nobody_uses_goes_after_its_own_linger_and_comes_back() {
    let (home, dir) = ground(&[], "linger = '300ms'");
    let _daemon = home.serve();
    let mut session = home.session(&dir, &[]);
    assert_eq!(session.text("lsp", hover()), "word");
    let first = pid(&mut session);
    assert!(session.end().success());
    eventually("it is gone", || !lives(first));
    let mut session = home.session(&dir, &[]);
    assert_eq!(session.text("lsp", hover()), "word");
    assert_ne!(pid(&mut session), first);
    assert!(session.end().success());
}

#[test]
fn a_question_longer_than_the_linger_is_answered() {
    let (home, dir) = ground(&["slow:700"], "linger = '100ms'");
    let mut session = home.session(&dir, &[]);
    assert_eq!(session.text("lsp", hover()), "word");
    assert_eq!(node(&mut session)["incarnation"], 1);
    assert!(session.end().success());
}

#[test]
fn a_lie_about_versions_is_never_told_as_clean() {
    let (home, dir) = ground(&["lie"], "");
    let mut session = home.session(&dir, &[]);
    let began = Instant::now();
    let edited = edit(&mut session, "word 0", "word ERROR");
    assert!(began.elapsed() < WRITE, "{:?}", began.elapsed());
    assert!(said(&edited).contains("a version that it was never given"), "{edited:#}");
    assert_ne!(edited["details"]["freshness"], "fresh", "{edited:#}");
    assert!(session.end().success());
}

#[test]
fn one_that_reads_nothing_holds_no_write_up() {
    let (home, dir) = ground(&["deaf"], "");
    std::fs::write(dir.join("b.txt"), "x".repeat(1_000_000) + "end\n").unwrap();
    let mut session = home.session(&dir, &[]);
    for (old, new) in [("end", "END"), ("END", "end")] {
        let began = Instant::now();
        let write = json!({"path": "b.txt", "old_text": old, "new_text": new});
        let result = session.call("edit", write);
        assert_eq!(result["is_error"], false, "{result:#}");
        assert!(began.elapsed() < WRITE, "{:?}", began.elapsed());
        assert_ne!(result["details"]["freshness"], "fresh", "{result:#}");
    }
    assert!(session.end().success());
}

#[test]
fn a_server_that_is_all_there_is_gets_named_when_it_cannot_answer() {
    let (home, dir) = ground(&[], "");
    let mut session = home.session(&dir, &[]);
    let failure = session.failure("lsp", json!({"action": "symbols", "query": "word"}));
    assert!(failure.contains("scripted"), "never an empty success: {failure}");
    let shown = home.run(&["config", "show"]);
    assert!(text(&shown.stdout).contains("scripted.toml"), "{}", text(&shown.stdout));
    assert!(session.end().success());
}
