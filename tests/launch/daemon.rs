//! The daemon itself ends: killed, asked to, as another user, and its next start.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use hostler::launch::LaunchConfig;
use hostler_actors::ports::Launch;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::signal::unix::SignalKind;

use super::walls::{TRIES, read_only};
use super::{alive, config, launcher, mark, none_left, read_all, script, soon, stands, stubborn};

/// A process of this test, killed with it.
struct Stranger(Child);

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn what_a_former_daemon_left_is_swept() {
    let config = config();
    let left = |id: &str| {
        let mut command = Command::new("/bin/sleep");
        command.arg("1000").env("HOSTLER_TREE", format!("{id}:0123.4."));
        Stranger(command.spawn().unwrap())
    };
    let mut ours = left(&config.data_id);
    let mut others = left("another-folder");
    let launcher = launcher(config).await;
    let launched = launcher.launch(script("echo up; exec sleep 1000")).await.unwrap();
    assert_eq!(soon("sweep", launcher.sweep()).await, 1);
    assert_eq!(ours.0.wait().unwrap().signal(), Some(9));
    assert!(others.0.try_wait().unwrap().is_none(), "another folder's is not ours to kill");
    assert!(launched.tree.ended().borrow().is_none(), "our own tree is not a leftover");
}

/// Not a test by itself: with `TEST_DAEMON` set it plays a daemon, which the tests
/// below start and kill. It ends its trees in order at SIGTERM.
#[tokio::test]
async fn stand_in() {
    let Ok(mark) = std::env::var("TEST_DAEMON") else { return };
    let launcher = launcher(LaunchConfig {
        launcher: std::env::var_os("TEST_LAUNCHER").unwrap().into(),
        subreaper_only: std::env::var_os("TEST_SUBREAPER").is_some(),
        ..config()
    })
    .await;
    let mut term = tokio::signal::unix::signal(SignalKind::terminate()).unwrap();
    let mut trees = Vec::new();
    for count in 1..=2 {
        let mut launched = launcher.launch(stubborn(&mark, "wait")).await.unwrap();
        stands(&mut launched, &mark, count).await;
        trees.push(launched);
    }
    if let Some(folder) = std::env::var_os("TEST_READ_ONLY") {
        let mut launched = launcher.launch(read_only(folder.as_ref(), TRIES)).await.unwrap();
        println!("\nread-only: {:?}", read_all(&mut launched, 1).await);
    }
    println!("\ncontainment: {}\nready", launcher.containment());
    term.recv().await;
    let closed = launcher.shutdown(Duration::from_millis(300)).await;
    println!("\nclosed: {closed:?}");
}

struct Daemon {
    child: Stranger,
    output: BufReader<ChildStdout>,
    /// What it said until it was ready.
    said: String,
}

impl Daemon {
    fn start(folder: &Path, mark: &str, more: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(copy(folder, &std::env::current_exe().unwrap()));
        command
            .args(["launch::daemon::stand_in", "--exact", "--nocapture"])
            .env("TEST_DAEMON", mark)
            .env("TEST_LAUNCHER", copy(folder, Path::new(env!("CARGO_BIN_EXE_hostler"))))
            .stdout(Stdio::piped());
        more(&mut command);
        let mut child = Stranger(command.spawn().unwrap());
        let mut output = BufReader::new(child.0.stdout.take().unwrap());
        let mut said = String::new();
        while !said.ends_with("\nready\n") {
            assert!(output.read_line(&mut said).unwrap() > 0, "the daemon ended: {said}");
        }
        Self { child, output, said }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.0.id().try_into().unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
    }
}

/// Copies a binary to where every user may execute it. By `cp`: if we had it open for
/// writing, a fork in another test would make its exec fail with "text file busy".
fn copy(folder: &Path, binary: &Path) -> PathBuf {
    let to = folder.join(binary.file_name().unwrap());
    assert!(Command::new("cp").arg(binary).arg(&to).status().unwrap().success());
    to
}

#[tokio::test]
async fn a_daemon_that_is_killed_or_asked_to_end_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for subreaper in [false, true] {
        let mark = mark();
        let start = || {
            Daemon::start(folder.path(), &mark, |command| {
                if subreaper {
                    command.env("TEST_SUBREAPER", "1");
                }
            })
        };
        let daemon = start();
        assert!(alive(&mark) >= 14);
        daemon.signal(Signal::SIGKILL);
        none_left(&mark).await;

        let mut daemon = start();
        daemon.signal(Signal::SIGTERM);
        let mut said = String::new();
        daemon.output.read_to_string(&mut said).unwrap();
        assert!(said.contains("Closed { trees: 2, killed: 2, unproved: [] }"), "{said}");
        assert!(daemon.child.0.wait().unwrap().success());
        assert_eq!(alive(&mark), 0);
    }
}

#[tokio::test]
async fn another_user_gets_the_same_walls() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can become another user; the other tests run as one");
        return;
    }
    const NOBODY: u32 = 65534;
    let folder = tempfile::tempdir().unwrap();
    let open = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let own = folder.path().join("own");
    std::fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(NOBODY), Some(NOBODY)).unwrap();
    let mark = mark();
    let daemon = Daemon::start(folder.path(), &mark, |command| {
        command.uid(NOBODY).gid(NOBODY).current_dir("/").env("TEST_READ_ONLY", &own);
    });
    println!("{}", daemon.said);
    assert!(daemon.said.contains(r#"read-only: "ok\nbefore\nnull\n""#), "{}", daemon.said);
    assert!(daemon.said.contains("processes: pid namespace, mount namespace, user namespace;"));
    daemon.signal(Signal::SIGKILL);
    none_left(&mark).await;
}
