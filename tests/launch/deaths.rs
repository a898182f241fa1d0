//! Every way in which a tree can end, and that nothing of it is left.

use std::sync::Arc;

use hostler::launch::LaunchConfig;
use hostler_actors::ports::{Ended, Launch, Leftovers, Owner, Wire};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Handle;

use super::{
    alive, config, emptied, ended, launcher, mark, none_left, read_all, script, soon, stands,
    stubborn, up, wires,
};

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
        stands(&mut launched, &mark, 1).await;
        assert!(alive(&mark) >= 7);
        launcher.sample().await;
        assert!(launcher.usage(Owner::Host).processes >= 7, "{:?}", launcher.trees());
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
        stands(&mut launched, &mark, 1).await;
        let second = Arc::clone(&launched.tree);
        drop(launched);
        assert!(alive(&mark) >= 7);
        drop(second);
        none_left(&mark).await;
    }
}

/// A parent-death signal fires when the thread ends that forked.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_process_outlives_the_thread_that_asked_for_it() {
    for config in layers() {
        let launcher = Arc::new(launcher(config).await);
        let mut order = script("read line; echo $line");
        order.wires = wires(&[(0, Wire::ToProcess), (1, Wire::FromProcess)]);
        let (asked, runtime) = (Arc::clone(&launcher), Handle::current());
        let thread = std::thread::spawn(move || runtime.block_on(asked.launch(order)).unwrap());
        let mut launched = thread.join().unwrap();
        launched.to_process.get_mut(&0).unwrap().write_all(b"alive\n").await.unwrap();
        assert_eq!(ended(&launched).await, Ended::Code(0), "{}", launcher.containment());
        assert_eq!(read_all(&mut launched, 1).await, "alive\n");
    }
}

#[tokio::test]
async fn the_rest_goes_with_the_main_process_or_stays_as_ordered() {
    for config in layers() {
        let launcher = launcher(config).await;
        let mark = mark();
        let mut launched = launcher.launch(stubborn(&mark, "read go; exit 4")).await.unwrap();
        stands(&mut launched, &mark, 1).await;
        launched.to_process.clear();
        assert_eq!(ended(&launched).await, Ended::Code(4));
        emptied(&launched).await;
        assert_eq!(alive(&mark), 0);

        let mut order = stubborn(&mark, "read go; exit 5");
        order.leftovers = Leftovers::Keep;
        let mut launched = launcher.launch(order).await.unwrap();
        stands(&mut launched, &mark, 1).await;
        launched.to_process.clear();
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
                stands(&mut launched, &mark, 1).await;
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
