//! What hosts that share servers among runs fail at, on real servers.
//!
//! The other trials need servers that misbehave at will and are with those.

use std::path::Path;
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::{Home, Session, eventually, lives};
use crate::truth::ground;

/// Finds the first line of a file, from 1, that holds a text.
fn line(dir: &Path, file: &str, text: &str) -> usize {
    let content = std::fs::read_to_string(dir.join(file)).unwrap();
    1 + content.lines().position(|line| line.contains(text)).expect("the text stands there")
}

fn diagnostics(session: &mut Session, file: &str) -> Value {
    session.call("lsp", json!({ "action": "diagnostics", "file": file }))["details"].clone()
}

/// Waits for a verdict, and returns how many findings there are.
fn found(session: &mut Session, file: &str) -> usize {
    let mut details = Value::Null;
    eventually("there is a verdict", || {
        details = diagnostics(session, file);
        details["freshness"] == "fresh"
    });
    details["diagnostics"].as_array().unwrap().len()
}

/// Returns the process of the only server that is up.
fn server(session: &mut Session) -> u32 {
    let status = session.control("status", json!({}));
    let nodes = status["ok"]["resources"].as_array().unwrap();
    let up = nodes.iter().find(|node| node["kind"] == "language_server" && node["phase"] == "up");
    u32::try_from(up.expect("a server is up")["pid"].as_u64().unwrap()).unwrap()
}

fn end(pid: u32) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
    eventually("it is dead", || !lives(pid));
}

/// Returns the processes below one, with their command lines.
fn below(top: u32) -> Vec<(u32, String)> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let all: Vec<(u32, u32)> = pids
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let parent = stat.rsplit(')').next()?.split(' ').nth(2)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect();
    let (mut found, mut next) = (Vec::new(), vec![top]);
    while let Some(parent) = next.pop() {
        for (pid, _) in all.iter().filter(|(_, of)| *of == parent) {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            found.push((*pid, String::from_utf8_lossy(&command).replace('\0', " ")));
            next.push(*pid);
        }
    }
    found
}

#[test]
fn runs_that_ask_together_while_the_server_starts_are_all_answered_right() {
    let home = Home::new();
    ground::only(&home, "pyright");
    let dir = ground::project(&home, "python");
    let _daemon = home.serve();
    let sessions: Option<Vec<_>> =
        (0..4).map(|_| ground::session(&home, &dir, "pyright")).collect();
    let Some(sessions) = sessions else { return };
    let place = line(&dir, "depot/money.py", "def times");
    let use_of = format!("depot/orders.py:{}", line(&dir, "depot/orders.py", ".times("));
    let asking = sessions.into_iter().map(|mut session| {
        thread::spawn(move || {
            let text = session.text(
                "lsp",
                json!({ "action": "references", "file": "depot/money.py", "line": place, "symbol": "times" }),
            );
            assert!(session.end().success());
            text
        })
    });
    for asked in asking.collect::<Vec<_>>() {
        let text = asked.join().unwrap();
        assert!(text.contains(&use_of), "{text}");
    }
    let report = home.report();
    let nodes = report["nodes"].as_array().unwrap();
    let servers: Vec<_> = nodes.iter().filter(|node| node["kind"] == "language_server").collect();
    assert_eq!(servers.len(), 1, "{servers:#?}");
    assert_eq!(servers[0]["incarnation"], 1, "{servers:#?}");
}

#[test]
fn what_a_killed_server_knew_is_not_told() {
    let home = Home::new();
    ground::only(&home, "pyright");
    let dir = ground::project(&home, "python");
    let Some(mut session) = ground::session(&home, &dir, "pyright") else { return };
    assert_eq!(found(&mut session, "depot/orders.py"), 0);
    end(server(&mut session));
    let money = dir.join("depot/money.py");
    let text = std::fs::read_to_string(&money).unwrap();
    std::fs::write(&money, text.replace("def times", "def repeated")).unwrap();
    let details = diagnostics(&mut session, "depot/orders.py");
    assert!(
        details["freshness"] != "fresh" || details["total"] == 1,
        "the first answer is not from before: {details:#}"
    );
    assert_eq!(found(&mut session, "depot/orders.py"), 1);
    assert!(session.end().success());
}

#[test]
fn a_server_whose_inner_process_is_dead_is_found_out_and_replaced() {
    for name in ["typescript-language-server", "vtsls"] {
        let home = Home::new();
        ground::only(&home, name);
        let dir = ground::project(&home, "typescript");
        let Some(mut session) = ground::session(&home, &dir, name) else { continue };
        assert_eq!(found(&mut session, "src/orders.ts"), 0);
        let place = line(&dir, "src/money.ts", "times(count");
        let use_of = format!("src/orders.ts:{}", line(&dir, "src/orders.ts", ".times("));
        let question = json!({ "action": "references", "file": "src/money.ts", "line": place, "symbol": "times" });
        let text = session.text("lsp", question.clone());
        assert!(text.contains(&use_of), "{name}: {text}");
        let outer = server(&mut session);
        let inner = below(outer).into_iter().find(|(_, command)| command.contains("tsserver.js"));
        let (inner, _) = inner.expect("an inner process");
        end(inner);
        let result = session.call("lsp", question.clone());
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        let honest = result["is_error"] == true || text.contains(&use_of);
        assert!(honest, "{name}: never an empty answer: {result:#}");
        eventually("it is replaced and answers", || {
            let result = session.call("lsp", question.clone());
            result["content"][0]["text"].as_str().is_some_and(|text| text.contains(&use_of))
        });
        assert_ne!(server(&mut session), outer, "{name}");
        std::fs::write(dir.join("src/items.ts"), "export {};\n").unwrap();
        assert_ne!(found(&mut session, "src/orders.ts"), 0, "{name}");
        assert!(session.end().success());
    }
}

#[test]
fn an_answer_for_the_whole_project_says_which_part_of_it_nobody_was_asked_about() {
    let home = Home::new();
    ground::only(&home, "pyright");
    let dir = ground::project(&home, "python");
    let here = home.folder(".config/hostler/servers");
    std::fs::write(
        here.join("typescript-native.toml"),
        "binaries = ['a-program-that-is-not-there']\nproject_folders = []\n",
    )
    .unwrap();
    std::fs::write(dir.join("tsconfig.json"), "{}").unwrap();
    std::fs::write(dir.join("money.ts"), "export class Money {}\n").unwrap();
    let Some(mut session) = ground::session(&home, &dir, "pyright") else { return };
    let text = session.text("lsp", json!({ "action": "symbols", "query": "Money" }));
    assert!(text.contains("depot/money.py:"), "{text}");
    let lacks = "not asked: typescript-native: no program";
    assert!(text.contains(lacks), "never as if that were all: {text}");
    assert!(session.end().success());
}
