//! The launcher with real processes: what is ordered is what runs, and nothing of
//! it is left however anything ends.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hostler::launch::{LaunchConfig, Launcher};
use hostler_actors::ports::{
    Ended, Launch, LaunchError, LaunchOrder, Launched, Leftovers, Owner, Posture, Wire,
};
use hostler_actors::status::StatusTable;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
