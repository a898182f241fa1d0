//! A launcher for tests: starts the process itself, and kills all of its tree when the
//! last handle goes.
//!
//! The real one runs our own binary again, which a test binary is not. A tree is found by
//! a mark in the environment, which is inherited by whatever a process starts.

#![allow(clippy::unwrap_used)]

use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hostler_actors::ports::{
    BoxFuture, Ended, InnerProcess, Launch, LaunchError, LaunchOrder, Launched, ProcessTree, Wire,
};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::os::unix::process::ExitStatusExt;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

/// The variable that marks a tree.
const MARK: &str = "HOSTLER_TEST_TREE";
/// How often the environment of a process is read again that shows none for now.
const REREADS: usize = 200;

static TREES: AtomicU64 = AtomicU64::new(0);

/// The launcher.
#[derive(Debug)]
pub(crate) struct Direct;

/// Returns it as the port.
pub(crate) fn launcher() -> Arc<dyn Launch> {
    Arc::new(Direct)
}

impl Launch for Direct {
    fn launch(&self, order: LaunchOrder) -> BoxFuture<'_, Result<Launched, LaunchError>> {
        Box::pin(async move { start(&order) })
    }
}

#[expect(clippy::disallowed_methods, reason = "the real launcher needs the real binary")]
fn start(order: &LaunchOrder) -> Result<Launched, LaunchError> {
    let (stdout, to) = std::io::pipe().unwrap();
    let errors = match order.wires.get(&2) {
        Some(Wire::SameAs(1)) => Stdio::from(to.try_clone().unwrap()),
        _ => Stdio::piped(),
    };
    let number = TREES.fetch_add(1, Ordering::Relaxed);
    let mark = format!("{}-{number}", std::process::id());
    let mut child = tokio::process::Command::new(&order.program)
        .args(&order.args)
        .env_clear()
        .envs(order.env.iter().cloned())
        .env(MARK, &mark)
        .current_dir(&order.cwd)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(to)
        .stderr(errors)
        .spawn()
        .map_err(|error| LaunchError::Failed {
            label: order.label.clone(),
            reason: error.to_string(),
        })?;
    let (ended_to, ended) = watch::channel(None);
    let (emptied_to, emptied) = watch::channel(false);
    let pid = child.id().unwrap();
    let mark = format!("{MARK}={mark}");
    let tree = Arc::new(Tree { pid, mark: mark.clone(), ended, emptied, ring: Arc::default() });
    let stdout = Receiver::from_owned_fd(stdout.into()).unwrap();
    let ring = Arc::clone(&tree.ring);
    if let Some(stderr) = child.stderr.take() {
        let mut lines = BufReader::new(stderr).lines();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                ring.lock().unwrap().push(line);
            }
        });
    }
    tokio::spawn(async move {
        let status = child.wait().await.unwrap();
        let ended = status.code().map(Ended::Code).or(status.signal().map(Ended::Signal));
        ended_to.send_replace(Some(ended.unwrap_or(Ended::Unknown)));
        while !marked(&mark).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        emptied_to.send_replace(true);
    });
    Ok(Launched {
        tree,
        to_process: [].into(),
        from_process: [(1, Box::new(stdout) as Box<_>)].into(),
    })
}

#[derive(Debug)]
struct Tree {
    pid: u32,
    mark: String,
    ended: watch::Receiver<Option<Ended>>,
    emptied: watch::Receiver<bool>,
    ring: Arc<Mutex<Vec<String>>>,
}

impl Tree {
    fn signal(&self, signal: Signal) {
        // The group is gone already where this fails.
        let _ = killpg(Pid::from_raw(self.pid.cast_signed()), signal);
    }
}

impl ProcessTree for Tree {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn ended(&self) -> watch::Receiver<Option<Ended>> {
        self.ended.clone()
    }

    fn emptied(&self) -> watch::Receiver<bool> {
        self.emptied.clone()
    }

    fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    fn interrupt(&self) {
        self.signal(Signal::SIGINT);
    }

    fn kill(&self) {
        self.signal(Signal::SIGKILL);
        // Again and again: one may have forked meanwhile.
        loop {
            let pids = marked(&self.mark);
            if pids.is_empty() {
                return;
            }
            for pid in pids {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }

    fn ring_tail(&self, lines: usize) -> String {
        let ring = self.ring.lock().unwrap();
        ring.split_at(ring.len().saturating_sub(lines)).1.join("\n")
    }

    fn inner(&self, _: &str) -> BoxFuture<'static, Vec<Arc<dyn InnerProcess>>> {
        Box::pin(async { Vec::new() })
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Finds the processes that carry a mark.
fn marked(mark: &str) -> Vec<i32> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let environment = environment(*pid);
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        })
        .collect()
}

/// Reads a process's environment. A zombie has none, and neither has for a moment one
/// that is becoming another program: that has a program all the same, and is read again.
fn environment(pid: i32) -> Vec<u8> {
    for _ in 0..REREADS {
        let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { break };
        if !environment.is_empty() || std::fs::read_link(format!("/proc/{pid}/exe")).is_err() {
            return environment;
        }
        std::thread::yield_now();
    }
    Vec::new()
}
