//! The same figures through the whole door: `hostler session`, its lines, the tools.
//!
//! A write's time runs from the line that a harness sends to the line that tells it
//! what the write broke. The memory is that of the trees that a daemon says it has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::disallowed_methods, missing_docs, reason = "it is a bench")]
#![allow(dead_code, reason = "what benches share is not used whole by each")]

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};
use server::{TEXT, pyright};
use support::{Home, Session};
use table::{Figure, milliseconds, print, quantile};

#[path = "common/server.rs"]
mod server;
#[path = "../tests/support.rs"]
mod support;
#[path = "common/table.rs"]
mod table;

const WRITES: usize = 100;
const RUNS: usize = 16;

fn main() {
    // It says why, if there is none.
    if pyright().is_none() {
        return;
    }
    let home = Home::new();
    let dir = home.folder("project");
    std::fs::write(dir.join("pyproject.toml"), "[project]\nname = \"bench\"\n").unwrap();
    std::fs::write(dir.join("a.py"), TEXT).unwrap();
    let mut figures = writes(&home, &dir);
    figures.extend(sharing(&home, &dir));
    print(&figures);
}

fn write(session: &mut Session, text: &str) -> f64 {
    let began = Instant::now();
    let result = session.call("write", json!({ "path": "a.py", "content": text }));
    let time = milliseconds(began.elapsed());
    assert_eq!(result["details"]["freshness"], "fresh", "{result:#}");
    time
}

fn warm(session: &mut Session) {
    let arguments = json!({ "action": "diagnostics", "file": "a.py" });
    let text = session.text("lsp", arguments);
    assert!(text.contains("fresh"), "{text}");
}

fn writes(home: &Home, dir: &Path) -> Vec<Figure> {
    let mut session = home.session(dir, &[]);
    warm(&mut session);
    session.text("read", json!({ "path": "a.py" }));
    let mut times = Vec::new();
    for at in 0..WRITES * 6 / 5 {
        // Right and wrong in turn, and never the text that is there already.
        let name = if at % 2 == 0 { "absent" } else { "value" };
        times.push(write(&mut session, &format!("value = {at}\nprint({name})\n")));
    }
    assert!(session.end().success());
    times.drain(..WRITES / 5);
    let row = |at: f64, times: &mut [f64]| {
        let what = format!("write to verdict through a session, pyright, p{:.0}", at * 100.0);
        Figure::new(what, "ms", quantile(times, at))
    };
    let median = row(0.5, &mut times);
    vec![median.goal(30.0).peer(266.0, "as published; another takes 617"), row(0.99, &mut times)]
}

/// Returns how many language servers a daemon has, and their memory in MiB.
fn servers(home: &Home) -> (usize, f64) {
    // Sampled every two seconds.
    std::thread::sleep(std::time::Duration::from_secs(5));
    let report = home.report();
    let nodes = report["nodes"].as_array().unwrap();
    let servers: Vec<_> = nodes.iter().filter(|node| node["kind"] == "language_server").collect();
    let bytes = |node: &&Value| node["usage"]["resident_bytes"].as_f64().unwrap_or_default();
    (servers.len(), servers.iter().map(bytes).sum::<f64>() / (1024.0 * 1024.0))
}

fn sharing(home: &Home, dir: &Path) -> Vec<Figure> {
    let _daemon = home.serve();
    let mut sessions = vec![home.session(dir, &[])];
    warm(&mut sessions[0]);
    let (_, one) = servers(home);
    for _ in 1..RUNS {
        let mut session = home.session(dir, &[]);
        warm(&mut session);
        sessions.push(session);
    }
    let (count, all) = servers(home);
    sessions.into_iter().for_each(|session| assert!(session.end().success()));
    assert!(home.run(&["stop"]).status.success());
    vec![
        Figure::new("language servers of 16 runs on one root", "", count as f64)
            .floor(1.0)
            .goal(1.0),
        // Its garbage collector has its own times.
        Figure::new("memory of the language servers of 16 runs", "MiB", all)
            .floor(one)
            .peer(one * 16.0, "computed: a server for each run")
            .goal(one * 1.1),
    ]
}
