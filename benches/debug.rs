//! What the host adds to a debug adapter, operation by operation, and what many
//! sessions leave behind.
//!
//! Ours is the product as its users have it: `hostler session`, lines in, lines out. The
//! floor is the same requests on the adapter's own pipes, from blocking code, in the same
//! run. Real adapters are looked for in `HOSTLER_TOOLS` and in `PATH`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::disallowed_methods, missing_docs, reason = "it is a bench")]
#![allow(dead_code, reason = "what benches share is not used whole by each")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use ours::Ours;
use raw::Raw;
use table::{Figure, milliseconds, print, quantile};

#[path = "common/framed.rs"]
mod framed;
#[path = "debug/ours.rs"]
mod ours;
#[path = "debug/raw.rs"]
mod raw;
#[path = "common/table.rs"]
mod table;

/// Blocks in which floor and ours take turns.
const BLOCKS: usize = 4;
/// Sessions that are begun and killed.
const CYCLES: usize = 100;

/// What is debugged, and by whom.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    /// The adapter's command, for the floor.
    pub(crate) command: Vec<String>,
    /// The arguments of `launch`, for the floor.
    pub(crate) launch: Value,
    /// The folder.
    pub(crate) dir: PathBuf,
    /// The program, the file and the line of the breakpoint.
    pub(crate) program: &'static str,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
    /// How often each operation is measured.
    pub(crate) times: usize,
}

const LOOP_PY: &str = "n = 0\nwhile True:\n    n += 1\n    m = n * 2\n";
const HOT_PY: &str = "while True:\n    print('on and on')\n";
const LOOP_C: &str = "int main(void) {\n  volatile long n = 0, m = 0;\n  for (;;) {\n    n++;\n    \
                      m = n * 2;\n  }\n  return (int)m;\n}\n";

fn main() {
    let place = tempfile::tempdir().unwrap();
    let mut figures = Vec::new();
    let subjects = [Some(scripted(place.path())), debugpy(place.path()), lldb(place.path())];
    for subject in subjects.iter().flatten() {
        figures.extend(operations(subject, place.path()));
    }
    for subject in subjects.iter().flatten() {
        figures.extend(hot(subject, place.path()));
        figures.extend(cycles(subject, place.path()));
    }
    print(&figures);
}

fn built(name: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let program = here.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(program.exists(), "{}: build the examples first", program.display());
    program
}

fn folder(place: &Path, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let dir = place.join(name);
    std::fs::create_dir(&dir).unwrap();
    for (file, text) in files {
        std::fs::write(dir.join(file), text).unwrap();
    }
    dir.canonicalize().unwrap()
}

fn scripted(place: &Path) -> Subject {
    let dir = folder(place, "scripted", &[("scripted.root", ""), ("a.txt", "one\ntwo\n")]);
    let program = dir.join("a.txt");
    Subject {
        name: "scripted",
        command: vec![built("scripted_adapter").display().to_string()],
        launch: json!({ "program": program }),
        dir,
        program: "a.txt",
        file: "a.txt",
        line: 2,
        times: 1000,
    }
}

fn debugpy(place: &Path) -> Option<Subject> {
    let tools = std::env::var("HOSTLER_TOOLS").unwrap_or_default();
    let versions = std::fs::read_dir(Path::new(&tools).join("debugpy")).into_iter().flatten();
    let python = versions.flatten().map(|it| it.path().join("bin/python3")).find(|it| it.exists());
    let Some(python) = python else {
        println!("skipped, the rows of debugpy: none below HOSTLER_TOOLS={tools:?}\n");
        return None;
    };
    let files = [("pyproject.toml", ""), ("loop.py", LOOP_PY), ("hot.py", HOT_PY)];
    let dir = folder(place, "python", &files);
    let launch = json!({ "type": "python", "request": "launch", "program": dir.join("loop.py"),
        "cwd": dir, "python": [python], "console": "internalConsole", "redirectOutput": true,
        "args": [], "justMyCode": true });
    let command = ["-m", "debugpy.adapter"].map(str::to_owned);
    let command = std::iter::once(python.display().to_string()).chain(command).collect();
    Some(Subject {
        name: "debugpy",
        command,
        launch,
        dir,
        program: "loop.py",
        file: "loop.py",
        line: 4,
        times: 40,
    })
}

fn lldb(place: &Path) -> Option<Subject> {
    let files = [("CMakeLists.txt", ""), ("loop.c", LOOP_C)];
    let dir = folder(place, "c", &files);
    let built = Command::new("cc").args(["-g", "loop.c", "-o", "loop"]).current_dir(&dir).status();
    let found = Command::new("lldb-dap-19").arg("--help").output();
    if !built.is_ok_and(|status| status.success()) || found.is_err() {
        println!("skipped, the rows of lldb: no `cc`, or no `lldb-dap-19` in PATH\n");
        return None;
    }
    let launch = json!({ "program": dir.join("loop"), "cwd": dir, "args": [],
        "initCommands": ["settings set target.input-path /dev/null"] });
    Some(Subject {
        name: "lldb-dap",
        command: vec!["lldb-dap-19".to_owned()],
        launch,
        dir,
        program: "loop",
        file: "loop.c",
        line: 5,
        times: 200,
    })
}

/// What is measured of each: the operation, and the same requests of the floor. `status`
/// asks no adapter: what it costs is the door's share in all others.
const OPERATIONS: [&str; 8] =
    ["status", "evaluate", "threads", "stack", "scopes", "variables", "breakpoints", "step_over"];

fn operations(subject: &Subject, place: &Path) -> Vec<Figure> {
    let mut raw = Raw::start(subject);
    let mut ours = Ours::start(subject, place);
    ours.launch();
    let mut figures = Vec::new();
    for operation in OPERATIONS {
        let (mut floor, mut times) = (Vec::new(), Vec::new());
        // Block by block: a slow moment of the machine meets both, and no request waits
        // for the other side's, as debugpy is quick only after a rest.
        for _ in 0..BLOCKS {
            floor.extend(timed(subject.times / BLOCKS, || raw.operation(operation, subject)));
            times.extend(timed(subject.times / BLOCKS, || ours.operation(operation, subject)));
        }
        let least = quantile(&mut floor, 0.5);
        let what = format!("{operation}, {}, p50", subject.name);
        let figure = Figure::new(what, "ms", quantile(&mut times, 0.5));
        figures.push(match operation {
            "status" => figure.goal(1.0),
            _ => figure.floor(least).goal(least + 0.3),
        });
    }
    figures
}

/// Times something, after warming up.
fn timed(times: usize, mut act: impl FnMut()) -> Vec<f64> {
    act();
    let mut one = || {
        let began = Instant::now();
        act();
        milliseconds(began.elapsed())
    };
    (0..times).map(|_| one()).collect()
}

/// `status` while the program prints without end.
fn hot(subject: &Subject, place: &Path) -> Vec<Figure> {
    if subject.name != "debugpy" {
        return Vec::new();
    }
    let mut ours = Ours::start(subject, place);
    ours.call("launch", json!({ "program": "hot.py", "wait_seconds": 1 }));
    let mut times: Vec<f64> = (0..500)
        .map(|_| {
            let began = Instant::now();
            let status = ours.call("status", json!({}));
            assert_eq!(status["details"]["state"], "running", "{status}");
            milliseconds(began.elapsed())
        })
        .collect();
    let row = |at: f64, times: &mut [f64]| {
        let what = format!("status while the program runs hot, p{:.0}", at * 100.0);
        Figure::new(what, "ms", quantile(times, at)).goal(1.0)
    };
    vec![row(0.5, &mut times), row(0.99, &mut times)]
}

/// Begins and kills sessions, and counts what is left of them.
fn cycles(subject: &Subject, place: &Path) -> Vec<Figure> {
    let mut ours = Ours::start(subject, place);
    // The first one brings what stays: threads, and what is remembered of programs.
    ours.launch();
    ours.call("terminate", json!({}));
    let (descriptors, files, processes) = (ours.descriptors(), scratch(), ours.processes());
    let mut times = Vec::new();
    for _ in 0..CYCLES {
        let began = Instant::now();
        ours.launch();
        ours.call("terminate", json!({}));
        times.push(milliseconds(began.elapsed()));
    }
    let left = |what: &str, now: usize, before: usize| {
        let what = format!("{what} left by {CYCLES} sessions, {}", subject.name);
        Figure::new(what, "", now.saturating_sub(before) as f64).goal(0.0)
    };
    let cycle = format!("launch to a stop and terminate, {}, p50", subject.name);
    vec![
        left("processes", ours.processes(), processes),
        left("files", scratch(), files),
        left("descriptors", ours.descriptors(), descriptors),
        Figure::new(cycle, "ms", quantile(&mut times, 0.5)),
    ]
}

/// Counts the scratch folders of sessions.
fn scratch() -> usize {
    let entries = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("hostler-debug-"))
        .count()
}
