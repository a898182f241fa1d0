//! The thread that starts every launcher.
//!
//! A parent-death signal fires when the *thread* that forked ends, so neither a
//! runtime worker nor a blocking thread may start one. It also keeps `pre_exec`
//! out: std then uses posix_spawn, which a large daemon does not pay for.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

struct Job {
    socket: OwnedFd,
    /// `NAME=value`: the mark of the tree, by which a sweep finds the launcher too.
    mark: (&'static str, String),
    reply: oneshot::Sender<io::Result<Child>>,
}

/// A handle on the thread, which lives as long as any of them.
#[derive(Clone, Debug)]
pub(super) struct Spawner(mpsc::Sender<Job>);

impl Spawner {
    pub(super) fn start(launcher: PathBuf) -> io::Result<Self> {
        let runtime = Handle::current();
        let (jobs, inbox) = mpsc::channel::<Job>();
        thread::Builder::new().name("hostler-spawner".to_owned()).spawn(move || {
            // The runtime waits for the child by its pidfd.
            let _entered = runtime.enter();
            for Job { socket, mark, reply } in inbox {
                // Whoever asked may have given up: dropping the socket then ends
                // the launcher.
                let _ = reply.send(spawn(&launcher, socket, &mark));
            }
        })?;
        Ok(Self(jobs))
    }

    /// Starts one launcher that has `socket` as its standard input.
    pub(super) async fn spawn(
        &self,
        socket: OwnedFd,
        mark: (&'static str, String),
    ) -> io::Result<Child> {
        let (reply, answer) = oneshot::channel();
        let gone = || io::Error::other("the spawner thread has gone");
        self.0.send(Job { socket, mark, reply }).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

#[allow(clippy::disallowed_methods, reason = "the one place that starts processes")]
fn spawn(launcher: &PathBuf, socket: OwnedFd, mark: &(&'static str, String)) -> io::Result<Child> {
    Command::new(launcher)
        .arg("__launch")
        .arg(std::process::id().to_string())
        .env_clear()
        .env(mark.0, &mark.1)
        .current_dir("/")
        .stdin(Stdio::from(socket))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A Ctrl-C at the daemon's terminal is not for the trees.
        .process_group(0)
        .spawn()
}
