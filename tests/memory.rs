//! Memory and processes over many calls and many sessions: bounded, flat, none left.
//!
//! The counts are those of the cases scaled down so that each test stays below ten
//! seconds on a small machine; what grows with each round shows all the same.

use serde_json::{Value, json};

use crate::support::{Home, Session, eventually, lives, marked, scripted};

/// Results of one megabyte each: 1,000 in the case, as many here as make it plain
/// that not even a tenth of them is held.
const RESULTS: usize = 150;
/// As in the case.
const SESSIONS: usize = 35;
const MEGABYTE: u64 = 1024 * 1024;

fn resident(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

fn nodes(home: &Home) -> usize {
    home.report()["nodes"].as_array().unwrap().len()
}

#[test]
fn long_results_are_on_the_disk_and_not_in_memory() {
    let home = Home::new();
    let dir = home.folder("project");
    let mut daemon = home.serve();
    let mut session = home.session(&dir, &[]);
    let command = "head -c 1048576 /dev/zero | tr '\\0' x";
    let mut make = |count| {
        let mut last = Value::Null;
        for _ in 0..count {
            last = session.call("bash", json!({"command": command}));
            assert_eq!(last["details"]["output_bytes"], MEGABYTE, "{last:#}");
        }
        last
    };
    let first = make(20);
    let before = resident(daemon.pid());
    let last = make(RESULTS);
    let after = resident(daemon.pid());
    assert!(
        after < before + 16 * MEGABYTE,
        "{before} bytes after 20 results, {after} after {RESULTS} more"
    );
    // All of it is there, unless it had to make room, and then that is said.
    let mut read = |handle: &Value| session.call("read", json!({"path": handle}));
    assert_eq!(read(&last["details"]["handle"])["details"]["bytes"], MEGABYTE);
    assert_eq!(read(&first["details"]["handle"])["is_error"], false);
    assert!(session.end().success());
    let spilled = home.path().join(".local/share/hostler/spilled");
    eventually("the results have gone with their run", || {
        std::fs::read_dir(&spilled).unwrap().count() == 0
    });
    assert!(home.run(&["stop"]).status.success());
    assert!(daemon.wait().success());
}

#[test]
fn results_beyond_what_a_run_may_keep_say_that_they_are_gone() {
    let home = Home::new();
    let dir = home.folder("project");
    let mut session = home.session(&dir, &[]);
    let long = json!({"command": "head -c 67108864 /dev/zero | tr '\\0' x"});
    let results = [(); 5].map(|()| session.call("bash", long.clone())["details"]["handle"].clone());
    let gone = session.failure("read", json!({"path": results[0]}));
    assert!(gone.contains("gone") && gone.contains("make the call again"), "{gone}");
    let kept = session.text("read", json!({"path": results[4], "limit": 1}));
    assert!(kept.contains("xxx"), "{kept}");
    assert!(session.end().success());
}

/// Opens a session, lets it work and leave something behind, and ends it; every
/// other one is killed instead.
fn round(home: &Home, dir: &std::path::Path, mark: &str, number: usize) {
    let mut session = home.session(dir, &[]);
    let hover = json!({"action": "hover", "file": "a.txt", "line": 1, "symbol": "word"});
    assert_eq!(session.text("lsp", hover), "word");
    let left = format!("export {mark}; setsid sleep 1000 & sleep 1000 & seq 1 20000");
    session.text("bash", json!({"command": left}));
    let again = json!({"path": "a.txt", "old_text": "word", "new_text": "word"});
    session.failure("edit", again);
    if number.is_multiple_of(2) {
        assert!(session.end().success());
    } else {
        session.process.signal(nix::sys::signal::Signal::SIGKILL);
        session.process.wait();
    }
}

#[test]
fn sessions_that_come_and_go_leave_no_process_and_no_memory() {
    let home = Home::new();
    let dir = home.folder("project");
    std::fs::write(dir.join("scripted.root"), "").unwrap();
    std::fs::write(dir.join("a.txt"), "word\n").unwrap();
    scripted(&home, &[], "linger = '0s'");
    let mut daemon = home.serve();
    let mark = format!("CAME_AND_WENT={}", dir.display());
    let settled = |home: &Home, nodes_before: usize| {
        eventually("what the sessions had is gone", || {
            marked(&mark).is_empty() && nodes(home) <= nodes_before
        });
    };
    for number in 0..5 {
        round(&home, &dir, &mark, number);
    }
    settled(&home, usize::MAX);
    eventually("the killed ones were noticed", || {
        !home.report()["nodes"].to_string().contains("\"run\"")
    });
    let (memory, files, rows) = (resident(daemon.pid()), descriptors(daemon.pid()), nodes(&home));
    for number in 0..SESSIONS {
        round(&home, &dir, &mark, number);
    }
    settled(&home, rows);
    let after = resident(daemon.pid());
    assert!(after < memory + 8 * MEGABYTE, "{memory} bytes before, {after} after");
    eventually("no descriptor is left", || descriptors(daemon.pid()) <= files);
    assert!(lives(daemon.pid()));
    assert!(home.run(&["stop"]).status.success());
    assert!(daemon.wait().success());
}

#[test]
fn what_the_host_keeps_of_a_server_does_not_grow_with_its_deaths() {
    let home = Home::new();
    let dir = home.folder("project");
    std::fs::write(dir.join("scripted.root"), "").unwrap();
    std::fs::write(dir.join("a.txt"), "word\n").unwrap();
    scripted(&home, &[], "");
    let mut daemon = home.serve();
    let mut session = home.session(&dir, &[]);
    let hover = json!({"action": "hover", "file": "a.txt", "line": 1, "symbol": "word"});
    let restart = |session: &mut Session, count| {
        for _ in 0..count {
            session.text("lsp", json!({"action": "reload"}));
            assert_eq!(session.text("lsp", hover.clone()), "word");
        }
    };
    restart(&mut session, 10);
    let (memory, files, rows) = (resident(daemon.pid()), descriptors(daemon.pid()), nodes(&home));
    restart(&mut session, 100);
    let after = resident(daemon.pid());
    assert!(after < memory + 4 * MEGABYTE, "{memory} bytes before, {after} after");
    assert_eq!(nodes(&home), rows);
    eventually("no descriptor is left", || descriptors(daemon.pid()) <= files + 2);
    assert!(session.end().success());
    assert!(home.run(&["stop"]).status.success());
    assert!(daemon.wait().success());
}

#[test]
fn limits_are_those_of_the_configuration() {
    let home = Home::new();
    let dir = home.folder("project");
    for number in 0..5 {
        std::fs::write(dir.join(format!("{number}.txt")), "0123456789abcdef\n").unwrap();
    }
    let limits = "[bash]\ndeadline = '1s'\nlongest = '2s'\n\
                  [results]\ninline_bytes = 100\ngrep = 2\nglob = 3\nline_chars = 10\n";
    std::fs::write(home.folder(".config/hostler").join("hostler.toml"), limits).unwrap();
    let mut session = home.session(&dir, &[]);
    let cut = session.failure("bash", json!({"command": "sleep 100"}));
    assert!(cut.contains("timed out after 1 s") && cut.contains("at most 2"), "{cut}");
    let over = session.failure("bash", json!({"command": "true", "timeout_seconds": 3}));
    assert!(over.contains("over the limit of 2"), "{over}");
    let long = session.text("bash", json!({"command": "seq 1 1000"}));
    assert!(long.len() < 400 && long.contains("read hostler://"), "{long}");
    let found = session.call("grep", json!({"pattern": "abc"}));
    assert_eq!(found["details"]["matches"].as_array().unwrap().len(), 2, "{found:#}");
    let found = session.call("glob", json!({"pattern": "*.txt"}));
    assert_eq!(found["details"]["paths"].as_array().unwrap().len(), 3, "{found:#}");
    let read = session.text("read", json!({"path": "0.txt"}));
    assert!(read.contains("0123456789 [... cut: the line has 17 bytes]"), "{read}");
    assert!(session.end().success());
}

#[test]
fn a_temporary_folder_that_goes_away_takes_nothing_along() {
    let home = Home::new();
    let (dir, temporary) = (home.folder("project"), home.folder("temporary"));
    std::fs::write(dir.join("scripted.root"), "").unwrap();
    std::fs::write(dir.join("a.txt"), "word\n").unwrap();
    scripted(&home, &[], "");
    let mut command = home.hostler(&["session", "--dir"]);
    command.arg(&dir).env("TMPDIR", &temporary).env("XDG_RUNTIME_DIR", home.folder("run"));
    let mut session = Session::start(command);
    std::fs::remove_dir_all(&temporary).unwrap();
    let long = session.call("bash", json!({"command": "seq 1 100000"}));
    assert!(long.to_string().contains("hostler://"), "{long:#}");
    let hover = json!({"action": "hover", "file": "a.txt", "line": 1, "symbol": "word"});
    assert_eq!(session.text("lsp", hover), "word");
    session.text("write", json!({"path": "new.txt", "content": "new\n"}));
    assert!(session.end().success());
}
