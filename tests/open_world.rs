//! Projects as they are met: moved under an open server, without what they depend
//! on, claimed by two servers, or slow to be read.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Home, Session, eventually, scripted};
use crate::truth::dialects::dialect;
use crate::truth::ground;

fn diagnostics(session: &mut Session, file: &str) -> Value {
    let mut details = Value::Null;
    eventually("there is a verdict", || {
        let result = session.call("lsp", json!({ "action": "diagnostics", "file": file }));
        assert_eq!(result["is_error"], false, "{result:#}");
        details = result["details"].clone();
        details["freshness"] == "fresh"
    });
    details
}

fn bash(session: &mut Session, command: &str) {
    session.text("bash", json!({ "command": command }));
}

/// What a write says, all of it.
fn written(session: &mut Session, tool: &str, arguments: Value) -> (String, Value) {
    let result = session.call(tool, arguments);
    assert_eq!(result["is_error"], false, "{result:#}");
    let blocks = result["content"].as_array().unwrap();
    let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    (texts.join("\n"), result["details"].clone())
}

#[test]
fn a_file_that_is_renamed_under_an_open_server_is_known_by_its_new_name_only() {
    for (server, old, new, user) in [
        ("pyright", "depot/money.py", "depot/cash.py", "depot/orders.py"),
        ("typescript-native", "src/money.ts", "src/cash.ts", "src/orders.ts"),
        ("typescript-language-server", "src/money.ts", "src/cash.ts", "src/orders.ts"),
    ] {
        let home = Home::new();
        ground::only(&home, server);
        let dir = ground::project(&home, dialect(server).project);
        let Some(mut session) = ground::session(&home, &dir, server) else { continue };
        for file in [old, user] {
            assert_eq!(diagnostics(&mut session, file)["total"], 0, "{server}: {file}");
        }
        bash(&mut session, &format!("mv {old} {new}"));
        assert_ne!(diagnostics(&mut session, user)["total"], 0, "{server}: its import is gone");
        let gone = session.failure("lsp", json!({ "action": "diagnostics", "file": old }));
        assert!(gone.contains(old), "{gone}");
        assert_eq!(diagnostics(&mut session, new)["total"], 0, "{server}");
        bash(&mut session, &format!("mv {new} {old}"));
        assert_eq!(diagnostics(&mut session, user)["total"], 0, "{server}: it is back");
        assert!(session.end().success());
    }
}

#[test]
fn a_branch_that_is_switched_in_mid_query_leaves_no_stale_answer() {
    let home = Home::new();
    let dialect = dialect("pyright");
    ground::only(&home, "pyright");
    let dir = ground::project(&home, dialect.project);
    ground::branches(&dir, &dialect);
    let Some(mut session) = ground::session(&home, &dir, "pyright") else { return };
    assert_eq!(diagnostics(&mut session, "depot/orders.py")["total"], 0);
    for (branch, total) in [("other", 1), ("main", 0), ("other", 1)] {
        let question = json!({ "action": "diagnostics", "file": "depot/orders.py" });
        let mut asked: Vec<_> = (0..4).map(|_| session.begin("lsp", question.clone())).collect();
        let switched =
            session.begin("bash", json!({ "command": format!("git checkout -q {branch}") }));
        asked.extend((0..4).map(|_| session.begin("lsp", question.clone())));
        assert_eq!(session.answer(switched)["result"]["is_error"], false);
        for id in asked {
            // Before or after; or said to be in between.
            let result = session.answer(id)["result"].clone();
            let before_or_after = result["details"]["total"].as_u64().is_some_and(|n| n <= 1);
            assert!(result["is_error"] == true || before_or_after, "{result:#}");
        }
        assert_eq!(diagnostics(&mut session, "depot/orders.py")["total"], total, "{branch}");
    }
    assert!(session.end().success());
}

#[test]
fn what_is_not_installed_is_no_news_of_a_write() {
    for (server, file, text, wrong) in [
        (
            "pyright",
            "depot/web.py",
            "import not_installed_here\n\nvalue: int = 1\n",
            ("= 1\n", "= ''\n"),
        ),
        (
            "typescript-native",
            "src/web.ts",
            "import * as web from \"not-installed-here\";\n\nexport const value: number = 1;\nexport { web };\n",
            ("= 1;", "= '';"),
        ),
    ] {
        let home = Home::new();
        ground::only(&home, server);
        let dir = ground::project(&home, dialect(server).project);
        std::fs::write(dir.join(file), text).unwrap();
        let Some(mut session) = ground::session(&home, &dir, server) else { continue };
        let before = diagnostics(&mut session, file);
        assert_eq!(before["total"], 1, "the import: {before:#}");
        let edit = json!({ "path": file, "old_text": wrong.0, "new_text": wrong.1 });
        let (said, details) = written(&mut session, "edit", edit);
        assert_eq!(
            (&details["total"], &details["freshness"]),
            (&json!(1), &json!("fresh")),
            "{said}"
        );
        assert_eq!(details["diagnostics"][0]["line"], 3, "{said}");
        assert!(session.end().success());
    }
}

#[test]
fn two_servers_of_one_file_each_say_theirs() {
    let home = Home::new();
    ground::only(&home, "pyright");
    std::fs::remove_file(home.path().join(".config/hostler/servers/ruff.toml")).unwrap();
    let dir = ground::project(&home, "python");
    let Some(mut session) = ground::session(&home, &dir, "pyright") else { return };
    if ground::session(&home, &dir, "ruff").is_none() {
        return;
    }
    assert_eq!(diagnostics(&mut session, "depot/money.py")["total"], 0);
    let edit = json!({ "path": "depot/money.py", "old_text": "ZERO = Money(0)",
        "new_text": "ZERO = Money(absent)" });
    let (said, details) = written(&mut session, "edit", edit);
    let all = details["diagnostics"].as_array().unwrap();
    let mut servers: Vec<_> = all.iter().filter_map(|item| item["server"].as_str()).collect();
    servers.sort_unstable();
    assert_eq!(servers, ["pyright", "ruff"], "{said}");
    assert!(session.end().success());
}

/// A project for the server that is told how to behave.
fn texts(home: &Home, moods: &[&str]) -> std::path::PathBuf {
    let dir = home.folder("project");
    std::fs::write(dir.join("scripted.root"), "").unwrap();
    std::fs::write(dir.join("a.txt"), "word 0\n").unwrap();
    scripted(home, moods, "");
    dir
}

#[test]
fn a_server_that_indexes_for_minutes_is_said_to() {
    let home = Home::new();
    let dir = texts(&home, &["index"]);
    let mut session = home.session(&dir, &[]);
    let question = json!({ "action": "references", "file": "a.txt", "line": 1, "symbol": "word" });
    let text = session.text("lsp", question);
    assert!(text.contains("scripted is still busy (indexing: 3/900"), "{text}");
    assert!(text.contains("may be incomplete"), "{text}");
    let status = session.control("status", json!({}));
    let nodes = status["ok"]["resources"].as_array().unwrap();
    let busy = nodes.iter().any(|node| node["doing"] == "indexing: 3/900");
    assert!(busy, "progress is shown: {status:#}");
    assert!(session.end().success());

    let home = Home::new();
    let dir = texts(&home, &["push", "index"]);
    let mut session = home.session(&dir, &[]);
    let edit = json!({ "path": "a.txt", "old_text": "word", "new_text": "ERROR" });
    let (said, details) = written(&mut session, "edit", edit);
    assert_eq!(details["freshness"], "still analysing", "never clean: {said}");
    assert!(said.contains("indexing: 3/900"), "{said}");
    assert!(session.end().success());
}

#[test]
fn a_first_write_that_breaks_something_is_told_of_it_however_cold_the_server_is() {
    for (server, file, text) in [
        ("typescript-native", "src/first.ts", "export const first: number = absent;\n"),
        ("typescript-language-server", "src/first.ts", "export const first: number = absent;\n"),
        ("pyright", "depot/first.py", "first: int = absent\n"),
    ] {
        let home = Home::new();
        ground::only(&home, server);
        let dir = ground::project(&home, dialect(server).project);
        let Some(mut session) = ground::session(&home, &dir, server) else { continue };
        let write = json!({ "path": file, "content": text });
        let (said, details) = written(&mut session, "write", write);
        let mut told = said.contains("absent");
        assert!(told || details["freshness"] != "fresh", "{server}: never clean: {said}");
        eventually("it is told", || {
            let (said, _) = written(&mut session, "bash", json!({ "command": "true" }));
            told |= said.contains("absent");
            told
        });
        assert!(session.end().success());
    }
}

#[test]
fn a_file_that_two_runs_have_open_is_open_once_and_each_is_judged_as_it_is_on_disk() {
    let home = Home::new();
    ground::only(&home, "typescript-native");
    let dir = ground::project(&home, "typescript");
    let _daemon = home.serve();
    let Some(mut one) = ground::session(&home, &dir, "typescript-native") else { return };
    let Some(mut two) = ground::session(&home, &dir, "typescript-native") else { return };
    let write = |session: &mut Session, content: &str| {
        session.call("read", json!({ "path": "src/both.ts" }));
        written(session, "write", json!({ "path": "src/both.ts", "content": content }))
    };
    write(&mut one, "export const a = 1;\n");
    assert_eq!(diagnostics(&mut two, "src/both.ts")["total"], 0);
    for number in 0..4 {
        let (writer, reader) =
            if number % 2 == 0 { (&mut one, &mut two) } else { (&mut two, &mut one) };
        let (_, details) = write(writer, &format!("export const a{number} = absent{number};\n"));
        assert_eq!(details["total"], 1, "{details:#}");
        let seen = diagnostics(reader, "src/both.ts");
        assert_eq!(seen["total"], 1, "{seen:#}");
        let message = seen["diagnostics"][0]["message"].as_str().unwrap();
        assert!(message.contains(&format!("absent{number}")), "as it is on disk: {message}");
    }
    assert!(one.end().success() && two.end().success());
    assert!(Path::new(&dir).join("src/both.ts").exists());
}
