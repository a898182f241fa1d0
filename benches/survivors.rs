//! What is left of 50 processes when their daemon is killed or asked to end, and
//! what the launcher costs. `cargo bench --bench survivors -- [trials]`.
//!
//! The binary plays every part: the bench, the daemon (`daemon`, or `peer` for one
//! that only has process groups) and the launcher (`__launch`).
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, missing_docs)]
#![allow(dead_code, reason = "what benches share is not used whole by each")]
#![allow(clippy::zombie_processes, reason = "what the peer leaves behind is what is measured")]

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hostler::launch::{LaunchConfig, Launcher, child_main};
use hostler_actors::ports::{Launch, LaunchOrder, Launched, Leftovers, Owner, Posture, Wire};
use hostler_actors::status::StatusTable;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use table::{Figure, milliseconds, print, quantile};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[path = "common/table.rs"]
mod table;

const TREES: usize = 5;
/// Ten processes: the shell, which ignores SIGTERM, three it forked, three in sessions of their own, and
/// three that ignore whatever can be ignored.
const TREE: &str = "for i in 1 2 3; do
        sleep 1000 &
        (setsid sleep 1000 &)
        sh -c \"trap '' HUP INT QUIT PIPE TERM USR1 USR2; exec sleep 1000\" &
    done; trap '' TERM; wait";
const PROCESSES: usize = TREES * 10;
const SECOND: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_millis(100);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.first().map(String::as_str) {
        Some("__launch") => child_main(),
        Some("daemon") => runtime().block_on(daemon()),
        Some("peer") => peer(),
        trials => bench(trials.and_then(|trials| trials.parse().ok()).unwrap_or(100)),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn bench(trials: usize) {
    let (peer, _) = trial("peer", Signal::SIGKILL);
    let mut figures = Vec::new();
    for (signal, bound) in [(Signal::SIGKILL, 100.0), (Signal::SIGTERM, 1000.0)] {
        let results: Vec<_> = (0..trials).map(|_| trial("daemon", signal)).collect();
        let most = results.iter().map(|(left, _)| *left).max().unwrap_or(0);
        let mut times: Vec<_> = results.iter().map(|(_, time)| milliseconds(*time)).collect();
        let what = format!("survivors of 50 after 1 s, {signal}, worst of {trials}");
        let count = Figure::new(what, "processes", most as f64).floor(0.0).goal(0.0);
        let killed = signal == Signal::SIGKILL;
        let who = "process groups alone, one trial";
        figures.push(if killed { count.peer(peer as f64, who) } else { count });
        for (name, at) in [("p50", 0.5), ("worst", 1.0)] {
            let what = format!("  until none is left, {name}");
            figures.push(Figure::new(what, "ms", quantile(&mut times, at)).goal(bound));
        }
    }
    figures.extend(runtime().block_on(launches()));
    print(&figures);
}

/// What the launcher costs, first and when it replaces.
async fn launches() -> Vec<Figure> {
    let launcher = Launcher::start(LaunchConfig::new("bench"), StatusTable::default());
    let launcher = launcher.await.unwrap();
    println!("{}", launcher.containment());
    let mut floor: Vec<_> = (0..200).map(|_| milliseconds(floor())).collect();
    let (mut first, mut again) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        let start = Instant::now();
        let launched = answering(&launcher).await;
        first.push(milliseconds(start.elapsed()));
        let start = Instant::now();
        kill(pid(launched.tree.pid()), Signal::SIGKILL).unwrap();
        launched.tree.ended().wait_for(Option::is_some).await.unwrap();
        let replacement = answering(&launcher).await;
        again.push(milliseconds(start.elapsed()));
        for one in [launched, replacement] {
            one.tree.kill();
            one.tree.emptied().wait_for(|empty| *empty).await.unwrap();
        }
    }
    let mut row = |what: &str, at: f64, ours: &mut [f64], goal: f64| {
        let what = format!("{what}, p{:.0}", at * 100.0);
        Figure::new(what, "ms", quantile(ours, at)).floor(quantile(&mut floor, at)).goal(goal)
    };
    let (launch, replaced) = ("launch to the first byte", "SIGKILL to the next first byte");
    vec![
        row(launch, 0.5, &mut first, 4.0),
        row(launch, 0.99, &mut first, 10.0),
        row(replaced, 0.5, &mut again, 5.0),
        row(replaced, 0.99, &mut again, 20.0),
    ]
}

fn pid(pid: u32) -> Pid {
    Pid::from_raw(pid.try_into().unwrap())
}

/// How many processes are left a second after the signal at the latest, and when it
/// was none.
fn trial(part: &str, signal: Signal) -> (usize, Duration) {
    let mark = format!("BENCH_TREE={:x}", getrandom::u64().unwrap());
    let mut daemon = start(part, &mark);
    let start = Instant::now();
    kill(pid(daemon.id()), signal).unwrap();
    let mut left = marked(&mark);
    while !left.is_empty() && start.elapsed() < SECOND {
        left = marked(&mark);
    }
    let time = start.elapsed();
    daemon.wait().unwrap();
    for pid in &left {
        let _ = kill(*pid, Signal::SIGKILL);
    }
    (left.len(), time)
}

fn start(part: &str, mark: &str) -> Child {
    let (name, value) = mark.split_once('=').unwrap();
    let mut command = Command::new("/proc/self/exe");
    command.arg(part).env("BENCH_MARK", format!("{name}={value}"));
    let mut daemon = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = [0];
    daemon.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    while marked(mark).len() < PROCESSES {}
    daemon
}

fn marked(mark: &str) -> Vec<Pid> {
    let carries = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|pair| pair == mark.as_bytes()))
    };
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(carries).map(Pid::from_raw).collect()
}

fn order(script: &str, wires: &[(i32, Wire)]) -> LaunchOrder {
    let mark = std::env::var("BENCH_MARK").unwrap_or_default();
    let mut env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    env.extend(mark.split_once('=').map(|(name, value)| (name.into(), value.into())));
    LaunchOrder {
        label: "tree".to_owned(),
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        cwd: "/".into(),
        env,
        wires: wires.iter().copied().collect(),
        owner: Owner::Host,
        posture: Posture::Writable,
        leftovers: Leftovers::Kill,
    }
}

async fn daemon() {
    let config = LaunchConfig::new("bench");
    let launcher = Launcher::start(config, StatusTable::default()).await.unwrap();
    let kind = tokio::signal::unix::SignalKind::terminate();
    let mut term = tokio::signal::unix::signal(kind).unwrap();
    let mut trees = Vec::new();
    for _ in 0..TREES {
        let wires = [(0, Wire::Null), (1, Wire::Null), (2, Wire::Ring)];
        trees.push(launcher.launch(order(TREE, &wires)).await.unwrap());
    }
    print!("!");
    std::io::stdout().flush().unwrap();
    term.recv().await;
    launcher.shutdown(DEADLINE).await;
}

fn peer() {
    let mark = std::env::var("BENCH_MARK").unwrap();
    let (name, value) = mark.split_once('=').unwrap();
    for _ in 0..TREES {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", TREE]).env_remove("BENCH_MARK").env(name, value).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    }
    print!("!");
    std::io::stdout().flush().unwrap();
    std::thread::park();
}

/// A plain posix_spawn of `cat` that answers one byte.
fn floor() -> Duration {
    let start = Instant::now();
    let mut command = Command::new("/bin/cat");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut byte = [b'x'];
    child.stdin.as_mut().unwrap().write_all(&byte).unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    let time = start.elapsed();
    drop(child.stdin.take());
    child.wait().unwrap();
    time
}

/// The same behind the launcher.
async fn answering(launcher: &Launcher) -> Launched {
    let wires = [(0, Wire::ToProcess), (1, Wire::FromProcess), (2, Wire::Ring)];
    let mut order = order("", &wires);
    order.program = "/bin/cat".into();
    order.args.clear();
    let mut launched = launcher.launch(order).await.unwrap();
    let mut byte = [b'x'];
    launched.to_process.get_mut(&0).unwrap().write_all(&byte).await.unwrap();
    launched.from_process.get_mut(&1).unwrap().read_exact(&mut byte).await.unwrap();
    launched
}
