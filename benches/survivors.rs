//! What is left of 50 processes when their daemon is killed or asked to end, and
//! what the launcher costs. `cargo bench --bench survivors -- [trials]`.
//!
//! The binary plays every part: the bench, the daemon (`daemon`, or `peer` for one
//! that only has process groups) and the launcher (`__launch`).
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, missing_docs)]
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
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
    println!("{:<58} {:>9} {:>9} {:>9}", "", "floor", "ours", "goal");
    let row = |what: &str, floor: &str, ours: &str, goal: &str| {
        println!("{what:<58} {floor:>9} {ours:>9} {goal:>9}");
    };
    let (peer, _) = trial("peer", Signal::SIGKILL);
    row("survivors of 50, SIGKILL, peer with process groups, 1 trial", "", &peer.to_string(), "");
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let results: Vec<_> = (0..trials).map(|_| trial("daemon", signal)).collect();
        let most = results.iter().map(|(left, _)| *left).max().unwrap_or(0);
        let times: Vec<_> = results.into_iter().map(|(_, time)| time).collect();
        let what = format!("survivors of 50 after 1 s, {signal}, worst of {trials} trials");
        row(&what, "0", &most.to_string(), "0");
        let goal = if signal == Signal::SIGKILL { "100" } else { "1000" };
        row("  ms until none is left, p50", "", &millis(&times, 50), goal);
        row("  ms until none is left, worst", "", &millis(&times, 100), goal);
    }
    runtime().block_on(async {
        let config = LaunchConfig::new("bench");
        let launcher = Launcher::start(config, StatusTable::default()).await.unwrap();
        println!("{}", launcher.containment());
        let floor: Vec<_> = (0..200).map(|_| floor()).collect();
        let mut first = Vec::new();
        let mut again = Vec::new();
        for _ in 0..200 {
            let start = Instant::now();
            let launched = answering(&launcher).await;
            first.push(start.elapsed());
            let start = Instant::now();
            kill(pid(launched.tree.pid()), Signal::SIGKILL).unwrap();
            launched.tree.ended().wait_for(Option::is_some).await.unwrap();
            let replacement = answering(&launcher).await;
            again.push(start.elapsed());
            for one in [launched, replacement] {
                one.tree.kill();
                one.tree.emptied().wait_for(|empty| *empty).await.unwrap();
            }
        }
        row("ms from launch to the first byte, p50", &millis(&floor, 50), &millis(&first, 50), "4");
        row(
            "ms from launch to the first byte, p99",
            &millis(&floor, 99),
            &millis(&first, 99),
            "10",
        );
        row("ms from SIGKILL to the replacement's first byte, p50", "", &millis(&again, 50), "5");
        row("ms from SIGKILL to the replacement's first byte, p99", "", &millis(&again, 99), "20");
    });
}

fn millis(times: &[Duration], percent: usize) -> String {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).map_or_else(String::new, |time| format!("{:.2}", time.as_secs_f64() * 1e3))
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
