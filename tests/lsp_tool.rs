//! The `lsp` tool and diagnostics on write, with the real pyright on a real project.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Home, Session, copy, eventually};

/// Copies the project that stands among the fixtures.
fn project(home: &Home) -> PathBuf {
    let dir = home.folder("project");
    copy(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/projects/python")), &dir);
    dir
}

/// Opens a session on the project, or says why that proves nothing here.
#[expect(clippy::print_stdout, reason = "a test that proves nothing says so")]
fn session(home: &Home) -> Option<(Session, PathBuf)> {
    let dir = project(home);
    let mut session = home.session(&dir, &[]);
    let status = session.text("lsp", json!({ "action": "status" }));
    if status.contains("no program") {
        println!("skipped: {status}");
        return None;
    }
    Some((session, dir))
}

/// Finds the first line of a file, from 1, that holds a text.
fn line(dir: &Path, file: &str, text: &str) -> usize {
    let content = std::fs::read_to_string(dir.join(file)).unwrap();
    1 + content.lines().position(|line| line.contains(text)).expect("the text stands there")
}

/// A question about a symbol on the first line that holds a text.
fn on(dir: &Path, action: &str, file: &str, text: &str, symbol: &str) -> Value {
    let line = line(dir, file, text);
    json!({ "action": action, "file": file, "line": line, "symbol": symbol })
}

fn edit(session: &mut Session, file: &str, old: &str, new: &str) -> (String, Value) {
    let arguments = json!({ "path": file, "old_text": old, "new_text": new });
    let result = session.call("edit", arguments);
    assert_eq!(result["is_error"], false, "{result:#}");
    let blocks = result["content"].as_array().unwrap();
    let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    (texts.join("\n"), result["details"].clone())
}

/// Waits for the server to be up, so that no write meets a cold one.
fn warm(session: &mut Session, file: &str) {
    let text = session.text("lsp", json!({ "action": "diagnostics", "file": file }));
    assert_eq!(text, format!("{file}: fresh: no errors or warnings"));
}

#[test]
fn every_question_is_answered() {
    let home = Home::new();
    let Some((mut session, dir)) = session(&home) else { return };
    let mut ask = |arguments| session.text("lsp", arguments);
    let of = |action, file, text, symbol| on(&dir, action, file, text, symbol);
    let place = |file, text| format!("{file}:{}", line(&dir, file, text));
    let text = ask(of("definition", "depot/report.py", "isinstance", "Perishable"));
    let class = place("depot/items.py", "class Perishable");
    assert!(text.ends_with(&format!("{class}:7  class Perishable(Item):")), "{text}");
    let text = ask(of("type_definition", "depot/orders.py", "return price_of", "item"));
    assert!(text.contains(&place("depot/items.py", "class Item")), "{text}");
    let text = ask(of("hover", "depot/orders.py", "return price_of", "price_of"));
    assert!(text.contains("price_of(") && text.contains("less its discount"), "{text}");
    let text = ask(of("references", "depot/items.py", "def discount", "discount"));
    assert!(text.contains(&place("depot/pricing.py", "item.discount(")), "{text}");
    let text = ask(json!({ "action": "symbols", "file": "depot/money.py" }));
    assert!(text.contains(" class Money") && text.contains("method times"), "{text}");
    let text = ask(json!({ "action": "symbols", "query": "OutOfStock" }));
    assert!(text.contains(&place("depot/stock.py", "class OutOfStock")), "{text}");
    let text = ask(of("code_actions", "depot/orders.py", "return price_of", "price_of"));
    assert!(text.contains("quick fix"), "{text}");
    let text = ask(of("definition", "depot/stock.py", "import Counter", "Counter"));
    let outside = text.lines().last().unwrap().split(':').next().unwrap().to_owned();
    assert!(outside.starts_with('/') && !outside.starts_with(dir.to_str().unwrap()), "{text}");
    let read = session.call("read", json!({ "path": outside, "limit": 3 }));
    assert_eq!(read["is_error"], false, "what a server named may be read: {read:#}");
    let error =
        session.failure("lsp", of("implementation", "depot/items.py", "def shelf", "shelf"));
    assert_eq!(error, "lsp implementation: pyright does not offer implementation");
    let beyond = json!({ "action": "hover", "file": "depot/money.py", "line": 900, "symbol": "x" });
    let error = session.failure("lsp", beyond);
    assert!(error.ends_with("there is no line 900"), "{error}");
    assert!(session.end().success());
}

#[test]
fn a_write_is_told_exactly_what_it_broke() {
    let home = Home::new();
    let Some((mut session, dir)) = session(&home) else { return };
    warm(&mut session, "depot/money.py");
    let (text, details) = edit(&mut session, "depot/money.py", "def times(", "def repeated(");
    assert_eq!(details["freshness"], "fresh", "{text}");
    let broken = format!("depot/orders.py:{}:", line(&dir, "depot/orders.py", ".times("));
    assert!(text.contains(&format!("diagnostics: fresh, new: 1 error\n{broken}")), "{text}");
    assert!(text.contains("\"times\" for class \"Money\""), "{text}");
    // Lines move, and nothing is told again.
    let doc = "\"\"\"Orders and their lines.\"\"\"\n";
    let (text, _) = edit(&mut session, "depot/orders.py", doc, &format!("{doc}\n\n"));
    assert!(text.ends_with("diagnostics: fresh, nothing new"), "{text}");
    let (text, _) = edit(&mut session, "depot/money.py", "def repeated(", "def times(");
    assert!(text.ends_with("diagnostics: fresh, nothing new"), "{text}");
    let (text, details) = edit(
        &mut session,
        "depot/stock.py",
        "return self._counts[item.name]\n",
        "return str(self._counts[item.name])\n",
    );
    assert_eq!(details["total"], 1, "{text}");
    let broken = format!("depot/stock.py:{}:16 error", line(&dir, "depot/stock.py", "return str("));
    assert!(text.contains(&broken), "{text}");
    assert!(session.end().success());
}

#[test]
fn the_checker_reads_the_whole_project() {
    let home = Home::new();
    let Some((mut session, dir)) = session(&home) else { return };
    let everything = json!({ "action": "diagnostics", "file": "*" });
    let text = session.text("lsp", everything.clone());
    assert!(text.starts_with("pyright in .: no errors or warnings, 8 files checked"), "{text}");
    std::fs::write(dir.join("depot/extra.py"), "import nowhere_at_all\n").unwrap();
    let result = session.call("lsp", everything);
    assert_eq!(result["details"]["total"], 1, "{result:#}");
    assert_eq!(result["details"]["diagnostics"][0]["path"], "depot/extra.py");
    assert!(session.end().success());
}

/// What the server says of a file.
fn diagnostics(session: &mut Session, file: &str) -> Value {
    let result = session.call("lsp", json!({ "action": "diagnostics", "file": file }));
    assert_eq!(result["details"]["freshness"], "fresh", "{result:#}");
    result["details"].clone()
}

fn bash(session: &mut Session, command: &str) {
    session.text("bash", json!({ "command": command }));
}

#[test]
fn what_a_shell_changes_is_known_to_the_next_question() {
    let home = Home::new();
    let Some((mut session, dir)) = session(&home) else { return };
    warm(&mut session, "depot/orders.py");
    warm(&mut session, "depot/money.py");
    // A dependency changes behind the dependent's back.
    bash(&mut session, "sed -i 's/def times/def repeated/' depot/money.py");
    for _ in 0..2 {
        let details = diagnostics(&mut session, "depot/orders.py");
        assert_eq!(details["total"], 1, "now and later: {details:#}");
    }
    bash(&mut session, "sed -i 's/def repeated/def times/' depot/money.py");
    assert_eq!(diagnostics(&mut session, "depot/orders.py")["total"], 0);
    // A module that the shell makes can be imported.
    bash(&mut session, "printf 'RATE = 7\\n' > depot/rates.py");
    let import = "\"\"\"Uses it.\"\"\"\n\nfrom depot.rates import RATE\n\nprint(RATE)\n";
    let made = session.call("write", json!({ "path": "depot/uses.py", "content": import }));
    assert_eq!(
        (&made["details"]["total"], &made["details"]["freshness"]),
        (&json!(0), &json!("fresh")),
        "{made:#}"
    );
    // One that it takes away cannot, also where the file was open at the server.
    warm(&mut session, "depot/rates.py");
    bash(&mut session, "rm depot/rates.py");
    assert_eq!(diagnostics(&mut session, "depot/uses.py")["total"], 1);
    let gone = session.failure("lsp", json!({ "action": "diagnostics", "file": "depot/rates.py" }));
    assert!(gone.contains("depot/rates.py"), "{gone}");
    // Many files at once, as a checkout of another branch does.
    let before = dir.join("depot");
    bash(
        &mut session,
        "cp -r depot other && sed -i 's/class Money/class Cash/' other/*.py && rm other/uses.py && rm -r depot && mv other depot",
    );
    assert!(before.is_dir());
    let text = session.text("lsp", json!({ "action": "diagnostics", "file": "depot/orders.py" }));
    assert!(text.contains("\"Money\" is unknown import symbol"), "{text}");
    assert!(session.end().success());
}

#[test]
fn what_changed_while_a_server_lingered_is_known_to_the_next_run() {
    let home = Home::new();
    let _daemon = home.serve();
    let Some((mut first, dir)) = session(&home) else { return };
    warm(&mut first, "depot/orders.py");
    assert!(first.end().success());
    let money = dir.join("depot/money.py");
    let text = std::fs::read_to_string(&money).unwrap();
    std::fs::write(&money, text.replace("def times", "def repeated")).unwrap();
    let mut second = home.session(&dir, &[]);
    assert_eq!(diagnostics(&mut second, "depot/orders.py")["total"], 1);
    let report = home.report();
    let nodes = report["nodes"].as_array().unwrap();
    let server = nodes.iter().find(|node| node["kind"] == "language_server").unwrap();
    assert_eq!(server["incarnation"], 1, "it was told, and so need not start afresh");
    assert!(second.end().success());
}

#[test]
fn a_root_that_is_deleted_takes_its_server_along_and_the_session_goes_on() {
    let home = Home::new();
    let _daemon = home.serve();
    let Some((mut session, dir)) = session(&home) else { return };
    warm(&mut session, "depot/money.py");
    let up = |home: &Home| {
        let report = home.report();
        let nodes = report["nodes"].as_array().unwrap().clone();
        nodes.iter().any(|node| node["kind"] == "language_server" && node["phase"] == "up")
    };
    assert!(up(&home));
    std::fs::remove_dir_all(&dir).unwrap();
    eventually("its server is gone", || !up(&home));
    let gone = session.failure("lsp", json!({ "action": "diagnostics", "file": "depot/money.py" }));
    assert!(gone.contains("depot/money.py"), "{gone}");
    assert!(session.end().success());
}

#[test]
fn terminals_that_differ_share_one_server() {
    let home = Home::new();
    let _daemon = home.serve();
    let Some((mut one, dir)) = session(&home) else { return };
    let mut command = home.hostler(&["session", "--dir"]);
    command.arg(&dir).env("TERM", "other").env("SHLVL", "9").env("SSH_TTY", "/dev/pts/9");
    let mut two = Session::start(command);
    warm(&mut one, "depot/money.py");
    warm(&mut two, "depot/money.py");
    let report = home.report();
    let nodes = report["nodes"].as_array().unwrap();
    let servers: Vec<_> = nodes.iter().filter(|node| node["kind"] == "language_server").collect();
    assert_eq!(servers.len(), 1, "{servers:#?}");
    assert_eq!(servers[0]["leases"], 2);
    assert!(one.end().success() && two.end().success());
}
