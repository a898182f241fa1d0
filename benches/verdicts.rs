//! From a write to its verdict, for each language server, through a whole session;
//! and what sharing servers saves.
//!
//! The floor waits for the same sign on the server's own pipes, so that what is above
//! it is ours. `EDITS` writes and `RUNS` runs make it shorter.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::disallowed_methods, missing_docs, reason = "it is a bench")]
#![allow(dead_code, reason = "what benches share is not used whole by each")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use support::{Home, Session, eventually};
use table::{Figure, milliseconds, print, quantile};
use truth::dialects::{Dialect, dialect};
use truth::ground;
use wire::{Sign, Wire};

#[path = "common/framed.rs"]
mod framed;
#[path = "../tests/support.rs"]
mod support;
#[path = "common/table.rs"]
mod table;
#[path = "common/truth.rs"]
mod truth;
#[path = "common/wire.rs"]
mod wire;

/// Folders of the monorepo.
const ROOTS: usize = 100;
/// The most that may lie between the sign and our result, in milliseconds.
const BEYOND: f64 = 20.0;

/// A server to measure.
struct Server {
    name: &'static str,
    args: &'static [&'static str],
    options: Value,
    sign: Sign,
    language: &'static str,
    goal: Option<f64>,
    peer: Option<(f64, &'static str)>,
}

fn servers() -> Vec<Server> {
    let server = |name, args, sign, language| Server {
        name,
        args,
        options: Value::Null,
        sign,
        language,
        goal: None,
        peer: None,
    };
    let lean = json!({ "disableAutomaticTypingAcquisition": true,
        "tsserver": { "useSyntaxServer": "never" } });
    vec![
        Server {
            goal: Some(30.0),
            peer: Some((266.0, "as published")),
            ..server("pyright", &["--stdio"], Sign::Pull, "python")
        },
        server("basedpyright", &["--stdio"], Sign::Pull, "python"),
        server("ruff", &["server"], Sign::Pull, "python"),
        Server {
            goal: Some(450.0),
            peer: Some((635.0, "as published, 3 of 12 unknown")),
            options: lean,
            ..server("typescript-language-server", &["--stdio"], Sign::TsserverSync, "typescript")
        },
        Server {
            goal: Some(15.0),
            peer: Some((10.0, "as published")),
            ..server("typescript-native", &["--lsp", "--stdio"], Sign::Pull, "typescript")
        },
        server("vtsls", &["--stdio"], Sign::TsserverSync, "typescript"),
        Server {
            goal: Some(150.0),
            options: json!({ "clangdFileStatus": true }),
            ..server("clangd", &["-j=16"], Sign::FileStatus, "c")
        },
        server("bash-language-server", &["start"], Sign::VersionedPush, "shellscript"),
    ]
}

fn count(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

fn main() {
    let mut figures = Vec::new();
    for server in servers() {
        let dialect = dialect(server.name);
        let home = Home::new();
        ground::only(&home, server.name);
        let dir = ground::project(&home, dialect.project);
        let file = dialect.file.replace("{r}", "0");
        std::fs::write(dir.join(&file), dialect.text).unwrap();
        let Some(mut session) = ground::session(&home, &dir, server.name) else { continue };
        let program = program(&mut session, server.name);
        let mut ours = through_session(session, &dialect, &file);
        let place = (dir.as_path(), file.as_str(), server.language);
        let wire = Wire::start(&program, server.args, &server.options, server.sign, place);
        let mut floor = on_the_wire(wire, &dialect);
        figures.extend(rows(&server, &mut ours, &mut floor));
        figures.extend(sharing(&home, &dir, &file, server.name));
    }
    figures.extend(monorepo());
    print(&figures);
}

fn program(session: &mut Session, name: &str) -> PathBuf {
    let status = session.call("lsp", json!({ "action": "status" }));
    let servers = status["details"]["servers"].as_array().unwrap();
    let row = servers.iter().find(|row| row["name"] == name).unwrap();
    PathBuf::from(row["program"].as_str().unwrap())
}

/// The text of the n-th write and how many errors it has: right and wrong in turn.
fn text(dialect: &Dialect, at: usize) -> (String, usize) {
    let wrong = at.is_multiple_of(2);
    let line = if wrong { dialect.wrong } else { dialect.fine };
    let line = line.replace("{n}", &at.to_string());
    (format!("{}{line}\n", dialect.text), usize::from(wrong))
}

/// The first sixth is for warming up.
fn warm(mut times: Vec<f64>) -> Vec<f64> {
    times.drain(..times.len() / 6);
    times
}

fn fresh(session: &mut Session, file: &str) {
    eventually("there is a verdict", || {
        let result = session.call("lsp", json!({ "action": "diagnostics", "file": file }));
        result["details"]["freshness"] == "fresh"
    });
}

fn through_session(mut session: Session, dialect: &Dialect, file: &str) -> Vec<f64> {
    fresh(&mut session, file);
    session.text("read", json!({ "path": file }));
    let mut times = Vec::new();
    for at in 0..count("EDITS", 100) * 6 / 5 {
        let (text, errors) = text(dialect, at);
        let began = Instant::now();
        let result = session.call("write", json!({ "path": file, "content": text }));
        times.push(milliseconds(began.elapsed()));
        let details = &result["details"];
        assert_eq!((&details["freshness"], &details["total"]), (&json!("fresh"), &json!(errors)));
    }
    assert!(session.end().success());
    warm(times)
}

fn on_the_wire(mut wire: Wire, dialect: &Dialect) -> Vec<f64> {
    let mut times = Vec::new();
    for at in 0..count("EDITS", 100) * 6 / 5 {
        let (text, errors) = text(dialect, at);
        let began = Instant::now();
        assert_eq!(wire.verdict(&text), errors);
        times.push(milliseconds(began.elapsed()));
    }
    warm(times)
}

fn rows(server: &Server, ours: &mut [f64], floor: &mut [f64]) -> Vec<Figure> {
    let name = server.name;
    let at = |share: f64, ours: &mut [f64], floor: &mut [f64]| {
        let what = format!("write to verdict, {name}, p{:.0}", share * 100.0);
        Figure::new(what, "ms", quantile(ours, share)).floor(quantile(floor, share))
    };
    let half = at(0.5, ours, floor);
    let beyond = half.ours - half.floor.unwrap_or_default();
    let half = Figure { goal: server.goal, peer: server.peer, ..half };
    let beyond = Figure::new(format!("beyond its sign, {name}, p50"), "ms", beyond).goal(BEYOND);
    vec![half, at(0.99, ours, floor), beyond]
}

/// Returns how many language servers a daemon has, and their memory in MiB.
fn footprint(home: &Home) -> (usize, f64) {
    // Sampled every two seconds.
    std::thread::sleep(std::time::Duration::from_secs(5));
    let report = home.report();
    let nodes = report["nodes"].as_array().unwrap();
    let up = nodes.iter().filter(|node| node["kind"] == "language_server" && node["phase"] == "up");
    let bytes = up.clone().map(|node| node["usage"]["resident_bytes"].as_f64().unwrap_or_default());
    (up.count(), bytes.sum::<f64>() / (1024.0 * 1024.0))
}

fn sharing(home: &Home, dir: &Path, file: &str, name: &str) -> Vec<Figure> {
    let runs = count("RUNS", 16);
    let daemon = home.serve();
    let mut sessions = vec![home.session(dir, &[])];
    fresh(&mut sessions[0], file);
    let (_, one) = footprint(home);
    for _ in 1..runs {
        let mut session = home.session(dir, &[]);
        fresh(&mut session, file);
        sessions.push(session);
    }
    let (servers, all) = footprint(home);
    sessions.into_iter().for_each(|session| assert!(session.end().success()));
    drop(daemon);
    let what = format!("memory of {runs} runs on one root, {name}");
    vec![
        Figure::new(format!("servers of {runs} runs on one root, {name}"), "", servers as f64)
            .floor(1.0)
            .goal(1.0),
        Figure::new(what, "MiB", all)
            .floor(one)
            .peer(one * runs as f64, "computed: a server for each run")
            .goal(one * 1.1),
    ]
}

/// A monorepo whose marker says that one server is enough.
fn monorepo() -> Option<Figure> {
    let home = Home::new();
    let server = "typescript-native";
    ground::only(&home, server);
    let dir = home.folder("project");
    std::fs::write(dir.join("package.json"), r#"{ "workspaces": ["packages/*"] }"#).unwrap();
    let files: Vec<_> = (0..ROOTS).map(|at| format!("packages/p{at}/index.ts")).collect();
    for file in &files {
        let folder = dir.join(file).parent().unwrap().to_owned();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("package.json"), "{}").unwrap();
        std::fs::write(folder.join("tsconfig.json"), "{}").unwrap();
        std::fs::write(dir.join(file), "export const a = 1;\n").unwrap();
    }
    let daemon = home.serve();
    let mut session = ground::session(&home, &dir, server)?;
    files.iter().for_each(|file| fresh(&mut session, file));
    let (servers, _) = footprint(&home);
    assert!(session.end().success());
    drop(daemon);
    let what = format!("servers for {ROOTS} roots of a monorepo, {server}");
    let figure = Figure::new(what, "", servers as f64).floor(1.0).goal(1.0);
    Some(figure.peer(ROOTS as f64, "computed: a server for each root"))
}
