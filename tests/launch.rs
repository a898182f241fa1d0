//! The launcher with real processes: what is ordered is what runs, and nothing of
//! it is left however anything ends.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "stand-ins and what they say")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hostler::launch::account::Budget;
use hostler::launch::{LaunchConfig, Launcher};
use hostler_actors::ids::RunId;
use hostler_actors::ports::{
    Ended, Launch, LaunchError, LaunchOrder, Launched, Leftovers, Owner, Posture, Wire,
};
use hostler_actors::status::{NodeKind, StatusTable};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::SignalKind;

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(20);

fn config() -> LaunchConfig {
    LaunchConfig {
        launcher: env!("CARGO_BIN_EXE_hostler").into(),
        ..LaunchConfig::new(format!("test-{:x}", getrandom::u64().unwrap()))
    }
}

async fn launcher(config: LaunchConfig) -> Launcher {
    Launcher::start(config, StatusTable::default()).await.unwrap()
}

/// Orders a shell script with output on 1 and the ring on 2.
fn script(text: &str) -> LaunchOrder {
    LaunchOrder {
        label: "script".to_owned(),
        program: "/bin/sh".into(),
        args: vec!["-c".into(), text.into()],
        cwd: "/".into(),
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        wires: wires(&[(0, Wire::Null), (1, Wire::FromProcess), (2, Wire::Ring)]),
        owner: Owner::Host,
        posture: Posture::Writable,
        leftovers: Leftovers::Kill,
    }
}

fn wires(all: &[(i32, Wire)]) -> BTreeMap<i32, Wire> {
    all.iter().copied().collect()
}

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future)
        .await
        .unwrap_or_else(|_| panic!("{what}: not within {LONG:?}"))
}

async fn ended(launched: &Launched) -> Ended {
    let mut ended = launched.tree.ended();
    soon("end", async { ended.wait_for(Option::is_some).await.unwrap().unwrap() }).await
}

async fn emptied(launched: &Launched) {
    let mut emptied = launched.tree.emptied();
    soon("empty", async {
        emptied.wait_for(|empty| *empty).await.unwrap();
    })
    .await;
}

async fn read_all(launched: &mut Launched, fd: i32) -> String {
    let mut text = String::new();
    let mut pipe = launched.from_process.remove(&fd).unwrap();
    soon("end of output", pipe.read_to_string(&mut text)).await.unwrap();
    text
}

#[tokio::test]
async fn a_process_gets_its_wires_and_reports_its_end() {
    let launcher = launcher(config()).await;
    println!("{}", launcher.containment());
    let mut order = script(
        "read a <&3; echo got $a >&4; echo err >&2; echo same >&7; ls /proc/self/fd >&5; exit 3",
    );
    order.wires = wires(&[
        (0, Wire::Null),
        (1, Wire::FromProcess),
        (2, Wire::SameAs(1)),
        (3, Wire::ToProcess),
        (4, Wire::FromProcess),
        (5, Wire::FromProcess),
        (7, Wire::SameAs(1)),
    ]);
    let mut launched = launcher.launch(order).await.unwrap();
    launched.to_process.get_mut(&3).unwrap().write_all(b"it\n").await.unwrap();
    assert_eq!(ended(&launched).await, Ended::Code(3));
    emptied(&launched).await;
    assert_eq!(read_all(&mut launched, 4).await, "got it\n");
    assert_eq!(read_all(&mut launched, 1).await, "err\nsame\n");
    // `ls` adds the folder that it reads; its own 1 is the 5.
    assert_eq!(
        read_all(&mut launched, 5).await.split_whitespace().collect::<Vec<_>>().join(" "),
        "0 1 2 3 4 5 6 7"
    );
}

#[tokio::test]
async fn signals_and_refusals_are_told_apart() {
    let launcher = launcher(config()).await;
    let launched = launcher.launch(script("kill -9 $$")).await.unwrap();
    assert_eq!(ended(&launched).await, Ended::Signal(9));

    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    };
    let refused = async |change: &dyn Fn(&mut LaunchOrder)| {
        let mut order = script("true");
        change(&mut order);
        let error = launcher.launch(order).await.unwrap_err();
        error.to_string().replace(&folder.path().display().to_string(), "<folder>")
    };
    let plain = file("plain", "x", 0o644);
    let lost = file("lost", "#!/nonexistent/interpreter\n", 0o755);
    let text = file("text", "no header", 0o755);
    let mut said = vec![
        refused(&|order| order.program = folder.path().join("none")).await,
        refused(&|order| order.program = plain.clone()).await,
        refused(&|order| order.program = lost.clone()).await,
        refused(&|order| order.program = text.clone()).await,
        refused(&|order| order.cwd = folder.path().join("none")).await,
        refused(&|order| order.cwd = plain.clone()).await,
        refused(&|order| order.args.push("a\0b".into())).await,
        refused(&|order| order.wires = wires(&[(3, Wire::SameAs(4))])).await,
    ];
    said.push(String::new());
    expect_test::expect![[r#"
        <folder>/none: no such program
        <folder>/plain: cannot be executed: Permission denied
        <folder>/lost: cannot be executed: the interpreter that it names is missing
        <folder>/text: cannot be executed: Exec format error
        <folder>/none: cannot be used as working directory: No such file or directory
        <folder>/plain: cannot be used as working directory: Not a directory
        script: cannot be started: a zero byte in the order: data provided contains a nul byte
        script: cannot be started: descriptors: descriptor 3 is to be the same as descriptor 4, which is not one of the order
    "#]]
    .assert_eq(&said.join("\n"));
    assert_eq!(launcher.trees(), [], "a refused start holds no place");
}

/// A script that starts what survives a kill of the process group: a grandchild, a
/// daemon in its own session, and one that ignores every signal that it can. Each
/// carries `TEST_TREE=<mark>`; it says `up` when all are there.
const STUBBORN: &str = "trap '' TERM HUP INT
    sh -c 'sleep 1000 & wait' &
    (setsid sh -c 'sleep 1001 & sleep 1002' >/dev/null 2>&1 &)
    sh -c \"trap '' TERM HUP INT PIPE; while :; do sleep 1003; done\" &
    while [ $(grep -lsz ^TEST_TREE=$TEST_TREE$ /proc/[0-9]*/environ | wc -l) -lt 7 ]; do sleep 0.02; done
    echo up; ";

fn stubborn(mark: &str, then: &str) -> LaunchOrder {
    let mut order = script(&format!("{STUBBORN}{then}"));
    order.env.push(("TEST_TREE".into(), mark.into()));
    order
}

fn mark() -> String {
    format!("{:x}", getrandom::u64().unwrap())
}

/// How many processes on this machine carry the mark.
fn alive(mark: &str) -> usize {
    let wanted = format!("TEST_TREE={mark}").into_bytes();
    let carries = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|pair| pair == wanted))
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(carries)
        .count()
}

async fn none_left(mark: &str) {
    let gone = async {
        while alive(mark) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("no survivor", gone).await;
}

async fn up(launched: &mut Launched) {
    let mut line = [0; 3];
    let pipe = launched.from_process.get_mut(&1).unwrap();
    soon("up", pipe.read_exact(&mut line)).await.unwrap();
    assert_eq!(&line, b"up\n");
}

/// Both ways to hold a tree: the kernel's, and the hunt.
fn layers() -> [LaunchConfig; 2] {
    [config(), LaunchConfig { subreaper_only: true, ..config() }]
}

#[tokio::test]
async fn a_killed_tree_is_empty() {
    for config in layers() {
        let launcher = launcher(config).await;
        let mark = mark();
        let mut launched = launcher.launch(stubborn(&mark, "wait")).await.unwrap();
        up(&mut launched).await;
        assert!(alive(&mark) >= 7);
        launcher.sample().await;
        assert!(launcher.usage(Owner::Host).processes >= 7, "{:?}", launcher.trees());
        assert!(launcher.usage(Owner::Host).resident_bytes > 0);
        launched.tree.kill();
        emptied(&launched).await;
        assert_eq!(alive(&mark), 0, "{}", launcher.containment());
        assert_eq!(ended(&launched).await, Ended::Signal(9));
        assert_eq!(launcher.trees(), []);
    }
}

#[tokio::test]
async fn a_dropped_tree_goes() {
    for config in layers() {
        let launcher = launcher(config).await;
        let mark = mark();
        let mut launched = launcher.launch(stubborn(&mark, "wait")).await.unwrap();
        up(&mut launched).await;
        let second = Arc::clone(&launched.tree);
        drop(launched);
        assert!(alive(&mark) >= 7);
        drop(second);
        none_left(&mark).await;
    }
}

#[tokio::test]
async fn the_rest_goes_with_the_main_process_or_stays_as_ordered() {
    for config in layers() {
        let launcher = launcher(config).await;
        let mark = mark();
        let mut launched = launcher.launch(stubborn(&mark, "exit 4")).await.unwrap();
        up(&mut launched).await;
        assert_eq!(ended(&launched).await, Ended::Code(4));
        emptied(&launched).await;
        assert_eq!(alive(&mark), 0);

        let mut order = stubborn(&mark, "exit 5");
        order.leftovers = Leftovers::Keep;
        let mut launched = launcher.launch(order).await.unwrap();
        up(&mut launched).await;
        assert_eq!(ended(&launched).await, Ended::Code(5));
        assert!(alive(&mark) >= 6 && !*launched.tree.emptied().borrow());
        launched.tree.kill();
        emptied(&launched).await;
        assert_eq!(alive(&mark), 0);

        // One that nobody kills empties by itself; the open pipe delays nothing.
        let mut order = script("sleep 0.3 & exit 6");
        order.leftovers = Leftovers::Keep;
        let mut launched = launcher.launch(order).await.unwrap();
        assert_eq!(ended(&launched).await, Ended::Code(6));
        assert!(!*launched.tree.emptied().borrow());
        assert_eq!(read_all(&mut launched, 1).await, "");
        emptied(&launched).await;
    }
}

#[tokio::test]
async fn terminate_and_interrupt_reach_the_group() {
    let launcher = launcher(config()).await;
    let text =
        "trap 'echo int' INT; trap 'echo term; exit 7' TERM; echo up; while :; do sleep 0.05; done";
    let mut launched = launcher.launch(script(text)).await.unwrap();
    up(&mut launched).await;
    launched.tree.interrupt();
    let mut line = [0; 4];
    let pipe = launched.from_process.get_mut(&1).unwrap();
    soon("int", pipe.read_exact(&mut line)).await.unwrap();
    launched.tree.terminate();
    assert_eq!(ended(&launched).await, Ended::Code(7));
    assert_eq!(read_all(&mut launched, 1).await, "term\n");
}

#[tokio::test]
async fn a_launcher_killed_from_outside_leaves_nothing() {
    for config in layers() {
        let launcher = launcher(config).await;
        for signal in [Signal::SIGKILL, Signal::SIGTERM] {
            for generation in [1, 2] {
                let mark = mark();
                let mut launched = launcher.launch(stubborn(&mark, "wait")).await.unwrap();
                up(&mut launched).await;
                // The init is the target's parent, the launcher the init's.
                let mut pid = launched.tree.pid();
                for _ in 0..generation {
                    pid = parent(pid);
                }
                let init = i32::try_from(pid).unwrap();
                nix::sys::signal::kill(Pid::from_raw(init), signal).unwrap();
                if (signal, generation) == (Signal::SIGTERM, 1)
                    && launcher.containment().has_pid_namespaces()
                {
                    launched.tree.kill();
                }
                emptied(&launched).await;
                assert_eq!(alive(&mark), 0, "{signal} to generation {generation}");
                assert!(launched.tree.ended().borrow().is_some());
            }
        }
    }
}

fn parent(pid: u32) -> u32 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = text.rsplit_once(") ").unwrap();
    fields.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn output_held_open_by_a_grandchild_delays_no_end() {
    let launcher = launcher(config()).await;
    let mut order = script("echo words >&2; setsid sleep 1000 & exit 0");
    order.leftovers = Leftovers::Keep;
    let launched = launcher.launch(order).await.unwrap();
    assert_eq!(ended(&launched).await, Ended::Code(0));
    assert_eq!(launched.tree.ring_tail(5), "words");
    drop(launched);
}

#[tokio::test]
async fn a_ring_is_drained_whatever_is_written() {
    let launcher = launcher(config()).await;
    let text = "head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2";
    let launched = launcher.launch(script(text)).await.unwrap();
    assert_eq!(ended(&launched).await, Ended::Code(0));
    assert_eq!(launched.tree.ring_tail(1), "last");
    assert!(launched.tree.ring_tail(2).len() > 60_000);
}

#[tokio::test]
async fn the_daemons_folders_are_hidden_and_what_is_kept_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let tools = data.join("tools/bin");
    std::fs::create_dir_all(&tools).unwrap();
    std::fs::write(data.join("secret"), "s").unwrap();
    std::fs::write(tools.join("tool"), "tool").unwrap();
    let launcher = launcher(LaunchConfig {
        hide: vec![data.clone(), folder.path().join("absent")],
        keep: vec![tools.clone(), data.join("absent")],
        ..config()
    })
    .await;
    let text = "ls $D; ls $D/tools; cat $D/tools/bin/tool; echo; echo x >$D/tools/bin/tool; echo x >$D/new; mount | grep -c $D";
    let mut order = script(text);
    order.env.push(("D".into(), data.clone().into()));
    let mut launched = launcher.launch(order).await.unwrap();
    assert_eq!(read_all(&mut launched, 1).await, "tools\nbin\ntool\n2\n");
    ended(&launched).await;
    let complaints = launched.tree.ring_tail(9);
    assert_eq!(complaints.matches("Read-only file system").count(), 2, "{complaints}");

    let mut order = script("cat tool");
    order.cwd = tools;
    let mut launched = launcher.launch(order).await.unwrap();
    assert_eq!(read_all(&mut launched, 1).await, "tool");
    for cwd in [data.clone(), data.join("tools")] {
        let mut order = script("true");
        order.cwd = cwd.clone();
        let error = launcher.launch(order).await.unwrap_err().to_string();
        let expected = format!(
            "{}: cannot be used as working directory: it is below {}, which processes do not see",
            cwd.display(),
            data.canonicalize().unwrap().display()
        );
        assert_eq!(error, expected);
    }
}

fn read_only(folder: &Path, text: &str) -> LaunchOrder {
    let mut order = script(text);
    let (worktree, scratch) = (folder.join("wt"), folder.join("scratch"));
    std::fs::create_dir_all(worktree.join("sub")).unwrap();
    std::fs::create_dir_all(&scratch).unwrap();
    std::fs::write(worktree.join("file"), "before").unwrap();
    order.env.push(("SCRATCH".into(), scratch.clone().into()));
    order.cwd.clone_from(&worktree);
    order.posture = Posture::ReadOnly { worktree, scratch };
    order
}

const TRIES: &str = "echo x >file; echo x >sub/new; chmod 777 file; rm file; mv file $SCRATCH/; \
    mkdir d; mount -o remount,rw,bind . ; umount . ; \
    echo ok >$SCRATCH/out; cat $SCRATCH/out; cat file; echo; echo x >/dev/null && echo null; \
    unshare -rm mount -o remount,rw,bind \"$PWD\" && echo broken";

#[tokio::test]
async fn a_read_only_worktree_is_read_only() {
    let launcher = launcher(config()).await;
    assert!(launcher.containment().enforces_read_only());
    let folder = tempfile::tempdir().unwrap();
    let mut launched = launcher.launch(read_only(folder.path(), TRIES)).await.unwrap();
    assert_eq!(read_all(&mut launched, 1).await, "ok\nbefore\nnull\n");
    ended(&launched).await;
    let complaints = launched.tree.ring_tail(20);
    let chmod = complaints.lines().find(|line| line.contains("chmod")).unwrap();
    assert!(chmod.contains("Read-only file system"), "{complaints}");
    assert_eq!(std::fs::read_to_string(folder.path().join("wt/file")).unwrap(), "before");
    assert!(!folder.path().join("wt/d").exists());
}

#[tokio::test]
async fn landlock_alone_keeps_contents() {
    let launcher = launcher(LaunchConfig { subreaper_only: true, ..config() }).await;
    if !launcher.containment().enforces_read_only() {
        println!("skipped: this kernel has no landlock");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "echo x >file; rm file; mkdir d; echo ok >$SCRATCH/out; cat $SCRATCH/out file; echo x >/dev/null && echo null";
    let mut launched = launcher.launch(read_only(folder.path(), text)).await.unwrap();
    assert_eq!(read_all(&mut launched, 1).await, "ok\nbeforenull\n");
    ended(&launched).await;
}

#[tokio::test]
async fn quick_launches_leak_nothing() {
    let launcher = launcher(config()).await;
    let round = async || {
        let launched = launcher.launch(script("true")).await.unwrap();
        ended(&launched).await;
        emptied(&launched).await;
    };
    round().await;
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let children = || {
        let me = std::process::id();
        let pids = std::fs::read_dir("/proc").unwrap();
        let pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|text| text.contains(&format!(") Z {me} ")))
        })
        .count()
    };
    for _ in 0..200 {
        round().await;
    }
    // Other tests of this binary come and go; a leak would be 200.
    assert!(open() < 200 + 100, "{} descriptors", open());
    soon("zombies", async {
        while children() > 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_budget_refuses_and_an_owner_is_ended() {
    let budget = Budget { processes: 3, ..Budget::default() };
    let launcher = launcher(LaunchConfig { budget, ..config() }).await;
    let run = Owner::Run(RunId(7));
    let mut order = script("trap '' TERM; echo up; sleep 1000 & wait; wait");
    order.owner = run;
    let mut first = launcher.launch(order).await.unwrap();
    up(&mut first).await;
    let second = launcher.launch(script("echo up; exec sleep 1000")).await.unwrap();
    launcher.sample().await;
    let error = launcher.launch(script("true")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "script: not started: 3 processes run and the host's limit is 3 (run r7: 2, most by \
         `script`; host: 1, most by `script`); end some of them, or raise `budget.processes`"
    );
    assert_eq!(launcher.trees().len(), 2);
    let child = first.tree.pid();
    assert_eq!(launcher.peer_in_tree(child), Some(run));
    assert_eq!(launcher.peer_in_tree(second.tree.pid()), Some(Owner::Host));
    assert_eq!(launcher.peer_in_tree(std::process::id()), None);

    let closed = launcher.end_owner(run, Duration::from_millis(200)).await;
    assert_eq!((closed.trees, closed.killed, closed.unproved.len()), (1, 1, 0));
    emptied(&first).await;
    let closed = launcher.shutdown(Duration::from_secs(5)).await;
    assert_eq!((closed.trees, closed.killed, closed.unproved.len()), (1, 0, 0));
    assert_eq!(ended(&second).await, Ended::Signal(15));
    let error = launcher.launch(script("true")).await.unwrap_err();
    assert!(matches!(error, LaunchError::ShuttingDown { .. }));
}

#[tokio::test]
async fn a_sample_reaches_the_status_row() {
    let status = StatusTable::default();
    let launcher = Launcher::start(config(), status.clone()).await.unwrap();
    let mut launched = launcher.launch(script("echo up; exec sleep 1000")).await.unwrap();
    up(&mut launched).await;
    let row = status.enter(None, NodeKind::LanguageServer, "x");
    row.update(|state| state.pid = Some(launched.tree.pid()));
    launcher.sample().await;
    let usage = status.snapshot()[0].usage.unwrap();
    assert_eq!(usage.processes, 1);
    assert!(usage.resident_bytes > 0);
}

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
async fn daemon_stand_in() {
    let Ok(mark) = std::env::var("TEST_DAEMON") else { return };
    let launcher = launcher(LaunchConfig {
        launcher: std::env::var_os("TEST_LAUNCHER").unwrap().into(),
        subreaper_only: std::env::var_os("TEST_SUBREAPER").is_some(),
        ..config()
    })
    .await;
    let mut term = tokio::signal::unix::signal(SignalKind::terminate()).unwrap();
    let mut trees = Vec::new();
    for _ in 0..2 {
        let mut launched = launcher.launch(stubborn(&mark, "wait")).await.unwrap();
        up(&mut launched).await;
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
            .args(["launch::daemon_stand_in", "--exact", "--nocapture"])
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

/// Copies a binary to where every user may execute it.
fn copy(folder: &Path, binary: &Path) -> PathBuf {
    let to = folder.join(binary.file_name().unwrap());
    std::fs::copy(binary, &to).unwrap();
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
