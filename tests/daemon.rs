//! `hostler serve` and what is asked of it.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::{Home, eventually, marked, text};

#[test]
fn a_daemon_shows_its_sessions_and_stops() {
    let home = Home::new();
    let dir = home.folder("project");
    let mut daemon = home.serve();
    let session = home.session(&dir, &[]);
    let report = home.report();
    let kinds: Vec<_> = report["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["kind"].as_str().unwrap())
        .collect();
    for kind in ["host", "workspace", "space", "mode", "conversation", "run", "turn"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    let run = session.ready["run"].as_str().unwrap().to_owned();
    let drawn = text(&home.run(&["status"]).stdout);
    assert!(drawn.contains(&run), "{drawn}");
    assert!(session.end().success());
    eventually("the session's part of the tree is gone", || {
        !text(&home.run(&["status"]).stdout).contains(&run)
    });
    assert_eq!(home.run(&["reload"]).status.code(), Some(0));
    let stopped = home.run(&["stop"]);
    assert_eq!(stopped.status.code(), Some(0), "{}", text(&stopped.stderr));
    assert!(daemon.wait().success());
}

#[test]
fn a_second_daemon_names_the_first() {
    let home = Home::new();
    let daemon = home.serve();
    let second = home.run(&["serve"]);
    assert_eq!(second.status.code(), Some(1));
    let said = text(&second.stderr);
    assert!(said.contains(&daemon.pid().to_string()) && said.contains("hostler stop"), "{said}");
}

#[test]
fn a_run_is_joined_by_its_id_and_outlives_its_guests() {
    let home = Home::new();
    let dir = home.folder("project");
    let _daemon = home.serve();
    let mut owner = home.session(&dir, &[]);
    let run = owner.ready["run"].as_str().unwrap().to_owned();
    let guest = home.session(&dir, &["--run", &run]);
    assert_eq!(guest.ready["run"], run.as_str());
    assert_eq!(guest.ready["turn"], 1);
    assert!(guest.end().success());
    assert!(owner.text("bash", json!({"command": "echo still here"})).contains("still here"));
    let elsewhere = home.folder("elsewhere");
    let refused =
        home.run(&["call", "read", "{}", "--dir", elsewhere.to_str().unwrap(), "--run", &run]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(owner.end().success());
}

#[test]
fn two_sessions_share_a_named_space() {
    let home = Home::new();
    let dir = home.folder("project");
    let _daemon = home.serve();
    let one = home.session(&dir, &["--space", "work"]);
    let two = home.session(&dir, &["--space", "work"]);
    assert_eq!(one.ready["space"], two.ready["space"]);
    assert_eq!(one.ready["conversation"], two.ready["conversation"]);
    assert_ne!(one.ready["run"], two.ready["run"]);
    assert!(one.end().success() && two.end().success());
}

#[test]
fn a_session_that_owns_a_data_folder_serves_it_until_its_guests_have_left() {
    let home = Home::new();
    let dir = home.folder("project");
    let data = home.path().join("data");
    let more = ["--data", data.to_str().unwrap()];
    let mut owner = home.session(&dir, &more);
    let mut guest = home.session(&dir, &more);
    assert_ne!(owner.ready["run"], guest.ready["run"]);
    owner.close_input();
    assert!(guest.text("bash", json!({"command": "echo served"})).contains("served"));
    assert!(guest.end().success());
    assert!(owner.end().success());
}

#[test]
fn a_process_of_a_run_has_no_rights_at_the_socket_and_does_not_see_it() {
    let home = Home::new();
    let dir = home.folder("project");
    let _daemon = home.serve();
    let mut session = home.session(&dir, &[]);
    let data = home.path().join(".local/share/hostler");
    let hostler = env!("CARGO_BIN_EXE_hostler");
    let command = format!("ls -A {} 2>&1; {hostler} status; echo code $?", data.display());
    let said = session.text("bash", json!({"command": command}));
    assert!(!said.contains("owner.lock") && !said.contains("transcripts"), "{said}");
    assert!(said.contains("code 3"), "{said}");
    assert!(session.end().success());
}

#[test]
fn a_deep_data_folder_gets_a_short_socket_and_says_so() {
    let home = Home::new();
    let deep = home.path().join("d".repeat(100)).join("data");
    let dir = home.folder("project");
    let session = home.session(&dir, &["--data", deep.to_str().unwrap()]);
    let status = home.run(&["status", "--data", deep.to_str().unwrap()]);
    assert_eq!(status.status.code(), Some(0), "{}", text(&status.stderr));
    assert!(text(&status.stdout).contains("the socket is in /tmp/"), "{}", text(&status.stdout));
    assert!(session.end().success());
}

#[test]
fn a_broken_configuration_is_told_and_a_daemon_keeps_the_old_one() {
    let home = Home::new();
    let daemon = home.serve();
    let config = home.folder(".config/hostler").join("hostler.toml");
    std::fs::write(&config, "[host]\nproceses = 7\n").unwrap();
    let reloaded = home.run(&["reload"]);
    assert_eq!(reloaded.status.code(), Some(2), "configuration is read by the client too");
    let said = text(&reloaded.stderr);
    assert!(said.contains("proceses") && said.contains("processes"), "{said}");
    daemon.signal(Signal::SIGHUP);
    std::fs::remove_file(&config).unwrap();
    assert!(home.run(&["status"]).status.success(), "it serves on");
}

#[test]
fn a_background_process_is_named_listed_and_gone_with_its_run() {
    let home = Home::new();
    let dir = home.folder("project");
    let _daemon = home.serve();
    let mut session = home.session(&dir, &[]);
    let mark = format!("BACKGROUND_OF={}", dir.display());
    let said =
        session.text("bash", json!({"command": format!("export {mark}; sleep 1000 & echo began")}));
    assert!(said.contains("began") && said.contains("background"), "{said}");
    let report = home.report();
    let listed =
        report["nodes"].as_array().unwrap().iter().any(|node| node["kind"] == "background");
    assert!(listed, "{report:#}");
    assert_eq!(marked(&mark).len(), 1);
    assert!(session.end().success());
    assert_eq!(marked(&mark), [0; 0]);
}

#[test]
fn what_left_the_group_is_asked_before_it_is_killed() {
    let home = Home::new();
    let dir = home.folder("project");
    let mut session = home.session(&dir, &[]);
    let polite =
        "trap 'echo asked > asked; exit 0' TERM; touch ready; while :; do sleep 0.01; done";
    let command = format!("setsid sh -c {polite:?} & until [ -e ready ]; do sleep 0.01; done");
    session.text("bash", json!({"command": command}));
    let began = std::time::Instant::now();
    assert!(session.end().success());
    assert!(began.elapsed().as_millis() < 1500, "within the grace: {:?}", began.elapsed());
    assert_eq!(std::fs::read_to_string(dir.join("asked")).unwrap(), "asked\n");
}
