//! One running tree in the daemon: what callers hold, and the task that watches it.
//!
//! The end of the main process is what the init reports, never the end of a pipe: a
//! background grandchild can hold one open for ever. "Empty" is what the outer
//! launcher's orderly end proves; if it was killed, the init's pidfd and a sweep
//! for the tree's mark prove it instead.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hostler_actors::ports::{BoxFuture, Ended, InnerProcess, ProcessTree};
use nix::sys::signal::Signal;
use nix::sys::socket::{Shutdown, shutdown};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::sync::{Notify, watch};

use super::account::Place;
use super::inner;
use super::ring::{RING, Ring};
use super::socket::{Command, Report, Told, readable, receive_report, send_command};
use super::spawner::Spawner;
use super::sweep;

/// A launcher that was told to take its tree down and is still there after this is
/// killed itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often a tree whose launcher was killed is looked at until it is empty.
const RECHECK: Duration = Duration::from_millis(50);

/// The shared half of a tree.
pub(super) struct Core {
    pub(super) pid: u32,
    /// The outer launcher, the root of the tree in `/proc`.
    pub(super) launcher: u32,
    pub(super) socket: AsyncFd<OwnedFd>,
    pub(super) ring: Mutex<Ring>,
    pub(super) ended: watch::Sender<Option<Ended>>,
    pub(super) emptied: watch::Sender<bool>,
    pub(super) kill_asked: Notify,
    /// Launchers die with the thread that started them.
    pub(super) _spawner: Spawner,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessTree(pid {})", self.pid)
    }
}

impl Core {
    fn signal(&self, signal: Signal) {
        // It fails only when the launcher has gone, and the tree with it.
        let _ = send_command(self.socket.get_ref().as_fd(), Command::Signal(signal as i32));
    }

    pub(super) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Ends our half of the lifeline, which no full buffer can prevent. The other
    /// half stays, to learn how the main process ended.
    pub(super) fn kill(&self) {
        let socket = self.socket.get_ref().as_raw_fd();
        let _ = shutdown(socket, Shutdown::Write);
        self.kill_asked.notify_one();
    }

    fn ring(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn told(&self) -> io::Result<Option<Told>> {
        self.socket.async_io(Interest::READABLE, |socket| receive_report(socket.as_fd())).await
    }
}

/// The handle that callers share; the last one takes the tree along.
#[derive(Debug)]
pub(super) struct Tree(pub(super) Arc<Core>);

impl Drop for Tree {
    fn drop(&mut self) {
        self.0.kill();
    }
}

impl ProcessTree for Tree {
    fn pid(&self) -> u32 {
        self.0.pid
    }

    fn ended(&self) -> watch::Receiver<Option<Ended>> {
        self.0.ended.subscribe()
    }

    fn emptied(&self) -> watch::Receiver<bool> {
        self.0.emptied.subscribe()
    }

    fn terminate(&self) {
        self.0.terminate();
    }

    fn interrupt(&self) {
        self.0.signal(Signal::SIGINT);
    }

    fn kill(&self) {
        self.0.kill();
    }

    fn ring_tail(&self, lines: usize) -> String {
        self.0.ring().tail(lines)
    }

    fn inner(&self, part: &str) -> BoxFuture<'static, Vec<Arc<dyn InnerProcess>>> {
        let (launcher, main, part) = (self.0.launcher, self.0.pid, part.as_bytes().to_vec());
        Box::pin(async move {
            let find = move || inner::find(launcher, main, &part);
            tokio::task::spawn_blocking(find).await.unwrap_or_default()
        })
    }

    fn process(&self, own_id: Option<u32>) -> BoxFuture<'static, Option<Arc<dyn InnerProcess>>> {
        let (launcher, main) = (self.0.launcher, self.0.pid);
        Box::pin(async move {
            let find = move || inner::process(launcher, main, own_id);
            tokio::task::spawn_blocking(find).await.unwrap_or_default()
        })
    }
}

/// The task that watches one tree until it is empty.
pub(super) struct Watch {
    pub(super) core: Arc<Core>,
    pub(super) child: Child,
    pub(super) ring: Option<pipe::Receiver>,
    pub(super) init: Option<OwnedFd>,
    /// `NAME=value` in the environment of every process of the tree.
    pub(super) mark: String,
    pub(super) place: Place,
}

impl Watch {
    pub(super) async fn run(mut self) {
        let mut chunk = vec![0; 8 * 1024];
        let (mut lifeline, mut patient) = (true, true);
        let core = Arc::clone(&self.core);
        let overdue = async move {
            core.kill_asked.notified().await;
            tokio::time::sleep(PATIENCE).await;
        };
        tokio::pin!(overdue);
        let clean = loop {
            tokio::select! {
                biased;
                told = self.core.told(), if lifeline => match told {
                    Ok(Some(told)) => self.note(told),
                    Ok(None) | Err(_) => lifeline = false,
                },
                status = self.child.wait() => break status.is_ok_and(|status| status.success()),
                () = &mut overdue, if patient => {
                    patient = false;
                    // An error says that it has just ended by itself.
                    let _ = self.child.start_kill();
                }
                read = read(self.ring.as_mut(), &mut chunk) => match read {
                    Ok(len) if len > 0 => {
                        self.core.ring().push(chunk.get(..len).unwrap_or_default());
                    }
                    _ => self.ring = None,
                },
            }
        };
        while let Ok(Some(told)) = receive_report(self.core.socket.get_ref().as_fd()) {
            self.note(told);
        }
        self.drain_ring();
        if !clean {
            self.prove_empty().await;
        }
        self.core
            .ended
            .send_if_modified(|ended| ended.is_none() && ended.replace(Ended::Unknown).is_none());
        drop(self.place);
        self.core.emptied.send_replace(true);
    }

    fn note(&mut self, told: Told) {
        let ended = match told.report {
            Report::Exited(code) => Ended::Code(code),
            Report::Signalled(signal) => Ended::Signal(signal),
            Report::Init => {
                self.init = told.fd;
                return;
            }
            Report::Target | Report::Running | Report::Refused(..) => return,
        };
        // Its last words are wanted by whoever is woken by its end.
        self.drain_ring();
        self.core.ended.send_replace(Some(ended));
    }

    /// Reads what is in the ring's pipe now, a ring's worth at most: a grandchild
    /// may write without end.
    fn drain_ring(&mut self) {
        let Some(pipe) = &self.ring else { return };
        let mut chunk = vec![0; RING];
        let mut left = RING;
        while let Some(room) = chunk.get_mut(..left) {
            match pipe.try_read(room) {
                Ok(len) if len > 0 => {
                    self.core.ring().push(chunk.get(..len).unwrap_or_default());
                    left -= len;
                }
                _ => return,
            }
        }
    }

    /// Returns when no process of the tree is left although its launcher could not
    /// say so.
    async fn prove_empty(&mut self) {
        // An init without a PID namespace outlives its launcher and hunts for us.
        self.core.kill();
        if let Some(init) = self.init.take().and_then(|pidfd| readable(pidfd).ok()) {
            let _ = init.readable().await;
        }
        loop {
            let mark = self.mark.clone();
            let sweep = move || sweep::kill_marked(|value| value == mark.as_bytes());
            match tokio::task::spawn_blocking(sweep).await {
                Ok(0) => return,
                _ => tokio::time::sleep(RECHECK).await,
            }
        }
    }
}

async fn read(pipe: Option<&mut pipe::Receiver>, chunk: &mut [u8]) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read(chunk).await,
        None => std::future::pending().await,
    }
}
