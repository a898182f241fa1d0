//! Structural search and edits beside the ast-grep command and ripgrep, in one run.
//!
//! The tree is made of installed crates' sources. Ours goes through the whole door: a
//! session's lines and the tool; its CPU is that of the process that hosts. The peers
//! are the ones in `AST_GREP` and `RIPGREP`, or in `PATH`; where one is missing the run
//! says so. `cargo bench --bench structural -- [kills]`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::disallowed_methods, missing_docs, reason = "it is a bench")]
#![allow(dead_code, reason = "what benches share is not used whole by each")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;
use nix::sys::time::TimeValLike;
use serde_json::json;
use support::{Home, Session};
use table::{Figure, milliseconds, print, quantile, resident};

#[path = "../tests/support.rs"]
mod support;
#[path = "common/table.rs"]
mod table;

/// What the figures ask for: at least as many files.
const FILES: usize = 1_600;
const WARM: usize = 20;
const RUNS: usize = 10;

/// A word that is in most files, and words that are in few.
const COMMON: &str = "$X.unwrap()";
const RARE: [&str; 2] = ["Vec::with_capacity($N)", "std::mem::take($X)"];
const PATTERNS: [&str; 10] = [
    COMMON,
    RARE[0],
    RARE[1],
    "$A == $A",
    "fn $NAME($$$ARGS) -> $RET { $$$BODY }",
    "let $X = $Y.iter().map($F).collect();",
    "if let Some($X) = $Y { $$$B }",
    "$X.clone()",
    "return Err($E)",
    "match $X { $$$A }",
];
const NATURAL: &str = include_str!("../src/code/reading/recall.tsv");

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let kills = args.first().and_then(|kills| kills.parse().ok()).unwrap_or(200);
    let home = Home::new();
    let (tree, bytes) = corpus(&home);
    let cli = peer("AST_GREP", "ast-grep", "0.51");
    let rg = peer("RIPGREP", "rg", "ripgrep");
    let mut figures = Vec::new();
    if let Some(cli) = &cli {
        figures.extend(cold(&home, &tree, cli));
        figures.extend(warm(&home, &tree, cli, rg.as_deref()));
        figures.extend(many(&home, &tree, cli));
    }
    figures.extend(memory(&home, &tree, bytes));
    figures.extend(recall(&home, cli.as_deref()));
    figures.extend(commits(&home));
    figures.push(killed(&home, kills));
    print(&figures);
}

/// Finds a peer, or says that its columns are missing.
fn peer(variable: &str, name: &str, version: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map_or_else(|| PathBuf::from(name), PathBuf::from);
    let asked = Command::new(&path).arg("--version").output();
    match asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()) {
        Ok(text) if text.contains(version) => {
            println!("peer: {}", text.lines().next().unwrap_or_default());
            Some(path)
        }
        other => {
            println!(
                "skipped, the figures beside {name}: none of version {version} in {variable} or \
                 PATH ({other:?}); `pip install ast-grep-cli==0.51.1` brings ast-grep\n"
            );
            None
        }
    }
}

/// Copies sources of installed crates: the same files on the same machine.
fn corpus(home: &Home) -> (PathBuf, u64) {
    let registry = std::env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cargo"),
        PathBuf::from,
    );
    let mut found = Vec::new();
    let mut open = vec![registry.join("registry/src")];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    let tree = home.folder("tree");
    let (mut count, mut bytes) = (0, 0);
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        // Generated tables say nothing about code that people write.
        if (2_000..100_000).contains(&text.len()) && count < FILES {
            let to = tree.join(format!("{}/{count}.rs", count / 40));
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            bytes += text.len() as u64;
            std::fs::write(to, text).unwrap();
            count += 1;
        }
    }
    assert_eq!(count, FILES, "too few crates are installed: `cargo fetch` brings them");
    println!("the tree: {count} files, {:.1} MB of Rust", bytes as f64 / 1e6);
    // Older than the tick of any clock, as files of a project are.
    std::thread::sleep(Duration::from_millis(300));
    (tree, bytes)
}

struct Cost {
    wall: f64,
    cpu: f64,
    matches: usize,
}

fn children_cpu() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e3
}

fn cli_run(cli: &Path, pattern: &str, language: &str, tree: &Path) -> Cost {
    let run = |more: &[&str], out: Stdio| {
        let mut command = Command::new(cli);
        command.args(["run", "-p", pattern, "-l", language]).args(more).arg(tree);
        command.stdout(out).stderr(Stdio::null()).output().unwrap()
    };
    let counted = run(&["--json=stream"], Stdio::piped());
    let matches = counted.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let (began, before) = (Instant::now(), children_cpu());
    run(&[], Stdio::null());
    Cost {
        wall: milliseconds(began.elapsed()),
        cpu: children_cpu() - before,
        matches: matches.count(),
    }
}

/// CPU that a process has used so far, in milliseconds.
fn cpu_of(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks * 10.0
}

fn ask(session: &mut Session, pattern: &str) -> Cost {
    let pid = session.process.pid();
    let (began, before) = (Instant::now(), cpu_of(pid));
    let asked = json!({"pattern": pattern, "language": "rust"});
    let result = session.call("ast_grep", asked);
    let wall = milliseconds(began.elapsed());
    assert_eq!(result["is_error"], false, "{result:#}");
    let matches = result["details"]["total"].as_u64().unwrap() as usize;
    Cost { wall, cpu: cpu_of(pid) - before, matches }
}

/// A session without anything kept.
fn fresh(home: &Home, tree: &Path) -> Session {
    home.session(tree, &[])
}

fn cold(home: &Home, tree: &Path, cli: &Path) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut slowest: f64 = 0.0;
    for pattern in PATTERNS {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let mut session = fresh(home, tree);
            let our = ask(&mut session, pattern);
            assert!(session.end().success());
            let their = cli_run(cli, pattern, "rust", tree);
            assert_eq!(our.matches, their.matches, "{pattern}");
            ours.push(our.cpu);
            theirs.push(their.cpu);
        }
        let (ours, theirs) = (quantile(&mut ours, 0.5), quantile(&mut theirs, 0.5));
        slowest = slowest.max(ours / theirs);
        let goal = match pattern {
            COMMON => theirs / 1.5,
            rare if RARE.contains(&rare) => theirs / 5.0,
            _ => theirs,
        };
        let what = format!("cold, CPU, `{pattern}`");
        figures.push(Figure::new(what, "ms", ours).goal(goal).peer(theirs, "ast-grep"));
    }
    figures.push(Figure::new("cold, CPU, slowest of ten beside ast-grep", "x", slowest).goal(1.0));
    figures
}

fn warm(home: &Home, tree: &Path, cli: &Path, rg: Option<&Path>) -> Vec<Figure> {
    let mut session = fresh(home, tree);
    for pattern in PATTERNS {
        ask(&mut session, pattern);
    }
    let (mut times, mut ratios) = (Vec::new(), Vec::new());
    for pattern in PATTERNS {
        let mut these: Vec<_> = (0..WARM).map(|_| ask(&mut session, pattern).wall).collect();
        times.extend(these.iter().copied());
        let ours = quantile(&mut these, 0.5);
        let mut theirs: Vec<_> = (0..3).map(|_| cli_run(cli, pattern, "rust", tree).wall).collect();
        ratios.push(quantile(&mut theirs, 0.5) / ours);
    }
    let file = tree.join("0/0.rs");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\nfn added() {{}}\n")).unwrap();
    let changed = ask(&mut session, COMMON).wall;
    std::fs::write(&file, text).unwrap();
    assert!(session.end().success());
    let worst = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let p50 = quantile(&mut times, 0.5);
    let mut row =
        Figure::new("warm, wall, ten patterns through a session, p50", "ms", p50).goal(25.0);
    if let Some(rg) = rg {
        let began = Instant::now();
        let mut command = Command::new(rg);
        command.args(["-c", "\\.unwrap\\(\\)"]).arg(tree).stdout(Stdio::null()).output().unwrap();
        row = row.peer(milliseconds(began.elapsed()), "ripgrep, the word alone");
    }
    vec![
        row,
        Figure::new("warm, wall, the same, p99", "ms", quantile(&mut times, 0.99)),
        // A ratio turned round, so that less is better as everywhere here.
        Figure::new("warm, wall beside ast-grep's, worst of ten patterns", "1/x", 1.0 / worst)
            .goal(1.0 / 30.0),
        Figure::new(
            "warm, wall beside ast-grep's, median pattern",
            "1/x",
            1.0 / quantile(&mut ratios, 0.5),
        ),
        Figure::new("warm, wall, one file changed", "ms", changed),
    ]
}

/// Ten runs on one repository, ten patterns each.
fn many(home: &Home, tree: &Path, cli: &Path) -> Vec<Figure> {
    let theirs: f64 = PATTERNS.iter().map(|pattern| cli_run(cli, pattern, "rust", tree).cpu).sum();
    let daemon = home.serve();
    let pid = daemon.pid();
    let before = cpu_of(pid);
    let mut sessions: Vec<_> = (0..RUNS).map(|_| home.session(tree, &[])).collect();
    for pattern in PATTERNS {
        let asked = json!({"pattern": pattern, "language": "rust"});
        let ids: Vec<_> =
            sessions.iter_mut().map(|session| session.begin("ast_grep", asked.clone())).collect();
        for (session, id) in sessions.iter_mut().zip(ids) {
            assert_eq!(session.answer(id)["result"]["is_error"], false);
        }
    }
    let ours = cpu_of(pid) - before;
    sessions.into_iter().for_each(|session| assert!(session.end().success()));
    assert!(home.run(&["stop"]).status.success());
    let all = theirs * RUNS as f64;
    vec![
        Figure::new("10 runs with ten patterns each, CPU in total", "ms", ours)
            .goal(all / 50.0)
            .peer(all, "ast-grep, one run of ten times ten"),
    ]
}

fn memory(home: &Home, tree: &Path, bytes: u64) -> Vec<Figure> {
    let mut session = fresh(home, tree);
    session.text("glob", json!({"pattern": "*.rs"}));
    let before = resident(session.process.pid());
    // Without a word of its own, so that every file is parsed.
    ask(&mut session, "$A == $A");
    ask(&mut session, "$A == $A");
    let grown = resident(session.process.pid()).saturating_sub(before);
    assert!(session.end().success());
    vec![
        Figure::new(
            "kept texts and trees, resident, beside the source",
            "x",
            grown as f64 / bytes as f64,
        )
        .goal(6.0)
        .peer(24.0, "the parser's own trees, as noted; to 36"),
    ]
}

fn recall(home: &Home, cli: Option<&Path>) -> Vec<Figure> {
    let dir = home.folder("natural");
    let mut session = home.session(&dir, &[]);
    let (mut all, mut ours, mut theirs) = (0, 0, 0);
    for row in NATURAL.lines() {
        let columns: Vec<_> = row.split('\t').collect();
        let (language, pattern) = (columns[0], columns[1]);
        let text = columns[2].replace("\\n", "\n").replace("\\t", "\t");
        let end = match language {
            "rust" => "rs",
            "python" => "py",
            "javascript" => "js",
            "typescript" => "ts",
            "ruby" => "rb",
            "kotlin" => "kt",
            "csharp" => "cs",
            other => other,
        };
        let file = dir.join(format!("{all}.{end}"));
        std::fs::write(&file, format!("{text}\n")).unwrap();
        all += 1;
        let asked = json!({"pattern": pattern, "path": file, "language": language});
        let result = session.call("ast_grep", asked);
        ours += usize::from(result["details"]["total"].as_u64().unwrap_or(0) > 0);
        if let Some(cli) = cli {
            theirs += usize::from(cli_run(cli, pattern, language, &file).matches > 0);
        }
    }
    assert!(session.end().success());
    let missed = |hits: usize| (all - hits) as f64 * 100.0 / all as f64;
    let what = format!("natural patterns of {all} that find nothing");
    let figure = Figure::new(what, "%", missed(ours)).goal(10.0);
    vec![if cli.is_some() { figure.peer(missed(theirs), "ast-grep") } else { figure }]
}

fn lay(dir: &Path, files: usize) {
    let text =
        format!("foo(1);\n{}", "// a line that stays as it is, whatever happens\n".repeat(200));
    for file in 0..files {
        std::fs::write(dir.join(format!("{file}.js")), &text).unwrap();
    }
}

fn stage(session: &mut Session) {
    let rewrite = json!({"pattern": "foo($A)", "rewrite": "bar($A)", "language": "js"});
    let staged = session.text("ast_edit", rewrite);
    assert!(staged.starts_with("(proposed)"), "{staged}");
}

fn commits(home: &Home) -> Vec<Figure> {
    let dir = home.folder("hundred");
    let mut session = home.session(&dir, &[]);
    let mut times = Vec::new();
    for round in 1..=20 {
        lay(&dir, 100);
        stage(&mut session);
        let began = Instant::now();
        let accept = json!({"edit_id": format!("edit_{round}"), "action": "accept"});
        session.text("resolve", accept);
        times.push(milliseconds(began.elapsed()));
    }
    assert!(session.end().success());
    let p95 = quantile(&mut times, 0.95);
    vec![
        Figure::new(
            "100 files of 10 kB committed, through a session, p50",
            "ms",
            quantile(&mut times, 0.5),
        )
        .goal(60.0),
        Figure::new("the same, p95", "ms", p95),
    ]
}

/// Kills a session at a moment of its commit and counts the trees that are neither.
fn killed(home: &Home, kills: usize) -> Figure {
    const FILES: usize = 30;
    let dir = home.folder("killed");
    let (mut halves, mut old, mut new) = (0, 0, 0);
    for round in 0..kills {
        lay(&dir, FILES);
        let mut session = home.session(&dir, &[]);
        stage(&mut session);
        session.begin("resolve", json!({"edit_id": "edit_1", "action": "accept"}));
        // Spread evenly over what a commit takes, and a little more.
        std::thread::sleep(Duration::from_micros((round * 7_919 % kills * 40_000 / kills) as u64));
        session.process.signal(Signal::SIGKILL);
        session.process.wait();
        let mut next = home.session(&dir, &[]);
        next.text("glob", json!({"pattern": "*"}));
        let is_new = |file: usize| {
            std::fs::read_to_string(dir.join(format!("{file}.js"))).unwrap().starts_with("bar")
        };
        let count = (0..FILES).filter(|file| is_new(*file)).count();
        let beside = std::fs::read_dir(&dir).unwrap().count() - FILES;
        match (count, beside) {
            (0, 0) => old += 1,
            (FILES, 0) => new += 1,
            _ => halves += 1,
        }
        assert!(next.end().success());
    }
    println!("killed {kills} times: {old} all old, {new} all new, {halves} neither");
    let what = format!("half-made changes after {kills} kills");
    Figure::new(what, "", f64::from(halves)).floor(0.0).goal(0.0)
}
