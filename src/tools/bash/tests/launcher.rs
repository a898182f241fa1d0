//! A launcher for tests alone: one process, found again by a mark in its environment.
//!
//! The real one runs our own binary again, which a test binary is not. The mark is
//! inherited by whatever the process starts, so that dropping a tree kills all of it.
#![allow(clippy::disallowed_methods, reason = "stands in for the launcher")]

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hostler_actors::ports::{
    BoxFuture, Ended, InnerProcess, Launch, LaunchError, LaunchOrder, Launched, PipeReader,
    ProcessTree,
};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::sync::watch;

static TREES: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, Default)]
pub(super) struct TestLaunch(());

impl Launch for TestLaunch {
    fn launch(&self, order: LaunchOrder) -> BoxFuture<'_, Result<Launched, LaunchError>> {
        Box::pin(async move { Ok(start(order)) })
    }
}

fn start(order: LaunchOrder) -> Launched {
    let number = TREES.fetch_add(1, Ordering::Relaxed);
    let mark = format!("BASH_TEST_TREE={}-{number}", std::process::id());
    let (reader, writer) = std::io::pipe().unwrap();
    let mut child = tokio::process::Command::new(order.program)
        .args(order.args)
        .current_dir(order.cwd)
        .env_clear()
        .envs(order.env)
        .env("BASH_TEST_TREE", mark.split_once('=').unwrap().1)
        .stdin(Stdio::null())
        .stdout(writer.try_clone().unwrap())
        .stderr(writer)
        .process_group(0)
        .spawn()
        .unwrap();
    let pid = child.id().unwrap();
    let (ended_tx, ended) = watch::channel(None);
    let (emptied_tx, emptied) = watch::channel(false);
    let watched = mark.clone();
    tokio::spawn(async move {
        let status = child.wait().await.unwrap();
        let how = status.code().map(Ended::Code).or(status.signal().map(Ended::Signal));
        ended_tx.send_replace(how);
        while !marked(&watched).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        emptied_tx.send_replace(true);
    });
    let reader = tokio::net::unix::pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).unwrap();
    Launched {
        tree: std::sync::Arc::new(Tree { pid, mark, ended, emptied }),
        to_process: Default::default(),
        from_process: [(1, Box::new(reader) as PipeReader)].into(),
    }
}

#[derive(Debug)]
struct Tree {
    pid: u32,
    mark: String,
    ended: watch::Receiver<Option<Ended>>,
    emptied: watch::Receiver<bool>,
}

impl Tree {
    fn signal(&self, signal: Signal) {
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
    fn ring_tail(&self, _: usize) -> String {
        String::new()
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

/// Finds the processes that carry a mark. One that is dead has no environment.
fn marked(mark: &str) -> Vec<i32> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
                environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
            })
        })
        .collect()
}
