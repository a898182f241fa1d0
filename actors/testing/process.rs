//! A launcher whose processes are the test itself.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::io::DuplexStream;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::ports::{
    BoxFuture, Ended, InnerProcess, Launch, LaunchError, LaunchOrder, Launched, PipeReader,
    PipeWriter, ProcessTree, Wire,
};

/// As much as a pipe of Linux holds.
const PIPE: usize = 64 * 1024;
/// How long a fake waits for the other side, in the time of its test: a test under
/// a paused clock fails at once where it would else hang.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// Starts processes that the test plays.
#[derive(Debug)]
pub struct FakeLaunch {
    refusals: Mutex<VecDeque<LaunchError>>,
    started: mpsc::UnboundedSender<FakeProcess>,
    pids: AtomicU32,
}

impl FakeLaunch {
    /// Makes a launcher, and the place where its processes come out.
    #[must_use]
    pub fn new() -> (Arc<Self>, FakeProcesses) {
        let (started, processes) = mpsc::unbounded_channel();
        let launch = Self { refusals: Mutex::default(), started, pids: AtomicU32::new(100) };
        (Arc::new(launch), FakeProcesses(processes))
    }

    /// Makes the next launch fail.
    pub fn refuse(&self, error: LaunchError) {
        self.refusals.lock().expect("no panic under the lock").push_back(error);
    }
}

impl Drop for FakeLaunch {
    fn drop(&mut self) {
        let left = self.refusals.lock().map_or(0, |refusals| refusals.len());
        assert!(left == 0 || thread::panicking(), "{left} prepared refusals were never met");
    }
}

impl Launch for FakeLaunch {
    fn launch(&self, order: LaunchOrder) -> BoxFuture<'_, Result<Launched, LaunchError>> {
        let refusal = self.refusals.lock().expect("no panic under the lock").pop_front();
        let started = match refusal {
            Some(error) => Err(error),
            None => Ok(self.start(order)),
        };
        Box::pin(async move { started })
    }
}

impl FakeLaunch {
    fn start(&self, order: LaunchOrder) -> Launched {
        let tree = Arc::new(FakeTree {
            pid: self.pids.fetch_add(1, Ordering::Relaxed),
            ended: watch::channel(None).0,
            emptied: watch::channel(false).0,
            obeys_term: watch::channel(true).0,
            ring: Mutex::default(),
            inner: Mutex::default(),
        });
        let mut launched = Launched {
            tree: Arc::clone(&tree) as Arc<dyn ProcessTree>,
            to_process: BTreeMap::new(),
            from_process: BTreeMap::new(),
        };
        let mut pipes = BTreeMap::new();
        for (descriptor, wire) in &order.wires {
            let (ours, its) = tokio::io::duplex(PIPE);
            match wire {
                Wire::ToProcess => {
                    launched.to_process.insert(*descriptor, Box::new(ours) as PipeWriter);
                }
                Wire::FromProcess => {
                    launched.from_process.insert(*descriptor, Box::new(ours) as PipeReader);
                }
                _ => continue,
            }
            pipes.insert(*descriptor, its);
        }
        // A test that ended takes no more processes.
        let _ = self.started.send(FakeProcess { order, pipes, tree });
        launched
    }
}

/// The processes that were started and not yet taken.
#[derive(Debug)]
pub struct FakeProcesses(mpsc::UnboundedReceiver<FakeProcess>);

impl FakeProcesses {
    /// Waits for the next start.
    pub async fn next(&mut self) -> FakeProcess {
        let started = timeout(PATIENCE, self.0.recv()).await;
        started.expect("a process is started").expect("the launcher lives")
    }

    /// Returns the next start, if there was one.
    pub fn try_next(&mut self) -> Option<FakeProcess> {
        self.0.try_recv().ok()
    }
}

/// A started process, as its test plays it.
#[derive(Debug)]
pub struct FakeProcess {
    /// How it was ordered.
    pub order: LaunchOrder,
    /// Its ends of its pipes.
    pub pipes: BTreeMap<i32, DuplexStream>,
    /// Its tree, to end it and to see what was done to it.
    pub tree: Arc<FakeTree>,
}

/// The tree of a [`FakeProcess`].
#[derive(Debug)]
pub struct FakeTree {
    pid: u32,
    ended: watch::Sender<Option<Ended>>,
    emptied: watch::Sender<bool>,
    obeys_term: watch::Sender<bool>,
    ring: Mutex<String>,
    inner: Mutex<Vec<Arc<FakeInner>>>,
}

/// A process inside a [`FakeTree`].
#[derive(Debug)]
pub struct FakeInner {
    command: String,
    over: watch::Sender<bool>,
}

impl FakeInner {
    /// Ends it.
    pub fn end(&self) {
        self.over.send_replace(true);
    }
}

impl InnerProcess for FakeInner {
    fn pid(&self) -> u32 {
        u32::MAX
    }

    fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    fn over(&self) -> BoxFuture<'_, ()> {
        let mut over = self.over.subscribe();
        Box::pin(async move { drop(over.wait_for(|over| *over).await) })
    }

    fn signal(&self, signal: i32) {
        if signal == SIGKILL {
            self.end();
        }
    }
}

impl FakeTree {
    /// Starts a process inside it.
    pub fn start_inner(&self, command: &str) -> Arc<FakeInner> {
        let over = watch::channel(false).0;
        let inner = Arc::new(FakeInner { command: command.to_owned(), over });
        self.inner.lock().expect("no panic under the lock").push(Arc::clone(&inner));
        inner
    }

    /// Ends the process, and the tree with it.
    pub fn end(&self, how: Ended) {
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            ended.get_or_insert(how);
            first
        });
        self.emptied.send_replace(true);
    }

    /// Makes it deaf to SIGTERM.
    pub fn ignore_term(&self) {
        self.obeys_term.send_replace(false);
    }

    /// Writes to its stderr.
    pub fn write_ring(&self, text: &str) {
        self.ring.lock().expect("no panic under the lock").push_str(text);
    }
}

impl ProcessTree for FakeTree {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn ended(&self) -> watch::Receiver<Option<Ended>> {
        self.ended.subscribe()
    }

    fn emptied(&self) -> watch::Receiver<bool> {
        self.emptied.subscribe()
    }

    fn terminate(&self) {
        if *self.obeys_term.borrow() {
            self.end(Ended::Signal(SIGTERM));
        }
    }

    fn interrupt(&self) {}

    fn kill(&self) {
        self.end(Ended::Signal(SIGKILL));
    }

    fn ring_tail(&self, lines: usize) -> String {
        let ring = self.ring.lock().expect("no panic under the lock");
        let all: Vec<_> = ring.lines().collect();
        all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
    }

    fn inner(&self, part: &str) -> BoxFuture<'static, Vec<Arc<dyn InnerProcess>>> {
        let all = self.inner.lock().expect("no panic under the lock");
        let found = all.iter().filter(|inner| inner.command.contains(part) && !inner.is_over());
        let found: Vec<_> = found.map(|inner| Arc::clone(inner) as _).collect();
        Box::pin(async { found })
    }
}
