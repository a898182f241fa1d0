//! The launcher with real processes: what is ordered is what runs, and nothing of
//! it is left however anything ends.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "stand-ins and what they say")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use hostler::launch::account::Budget;
use hostler::launch::{LaunchConfig, Launcher};
use hostler_actors::ids::RunId;
use hostler_actors::ports::{
    Ended, Launch, LaunchError, LaunchOrder, Launched, Leftovers, Owner, Posture, Wire,
};
use hostler_actors::status::{NodeKind, StatusTable};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

mod daemon;
mod deaths;
mod walls;

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
/// carries `TEST_TREE=<mark>`; with the main shell they are seven, four of them
/// `sleep`.
const STUBBORN: &str = "trap '' TERM HUP INT
    sh -c 'sleep 1000 & wait' &
    (setsid sh -c 'sleep 1001 & exec sleep 1002' >/dev/null 2>&1 &)
    sh -c \"trap '' TERM HUP INT PIPE; while :; do sleep 1003; done\" &
    echo up; ";

fn stubborn(mark: &str, then: &str) -> LaunchOrder {
    let mut order = script(&format!("{STUBBORN}{then}"));
    order.wires.insert(0, Wire::ToProcess);
    order.env.push(("TEST_TREE".into(), mark.into()));
    order
}

fn mark() -> String {
    format!("{:x}", getrandom::u64().unwrap())
}

/// The processes on this machine that carry the mark.
fn carriers(mark: &str) -> impl Iterator<Item = u32> {
    let wanted = format!("TEST_TREE={mark}").into_bytes();
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(move |pid| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|pair| pair == wanted))
    })
}

fn alive(mark: &str) -> usize {
    carriers(mark).count()
}

/// Waits until a stubborn tree stands: its `sleep`s are its last processes to start.
async fn stands(launched: &mut Launched, mark: &str, trees: usize) {
    up(launched).await;
    let asleep = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n")
    };
    soon("all processes", async {
        while carriers(mark).filter(asleep).count() < 4 * trees {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
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
    // The kernel counts the pages of a small process too roughly for a test.
    let mut order = script("x=$(head -c 8000000 /dev/zero | tr '\\0' x); echo up; read go");
    order.wires.insert(0, Wire::ToProcess);
    let mut launched = launcher.launch(order).await.unwrap();
    up(&mut launched).await;
    let row = status.enter(None, NodeKind::LanguageServer, "x");
    row.update(|state| state.pid = Some(launched.tree.pid()));
    launcher.sample().await;
    let usage = status.snapshot()[0].usage.unwrap();
    assert_eq!(usage.processes, 1);
    assert!(usage.resident_bytes > 4_000_000);
}
