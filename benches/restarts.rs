//! What a death costs: the time to the next answer, and what is left over after
//! thousands of them. `cargo bench --bench restarts -- [cycles]`.
//!
//! The floor is the same without a host: kill, wait, start, shake hands, ask, from
//! blocking code and behind no walls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::disallowed_methods, missing_docs, reason = "it is a bench")]
#![allow(dead_code, reason = "what benches share is not used whole by each")]

use std::time::{Duration, Instant};

use hostler::launch::child_main;
use hostler_actors::supervise::budget::Limit;
use leased::Leased;
use raw::Raw;
use server::scripted;
use table::{Figure, descriptors, milliseconds, print, quantile, resident};

#[path = "common/framed.rs"]
mod framed;
#[path = "common/leased.rs"]
mod leased;
#[path = "common/raw.rs"]
mod raw;
#[path = "common/server.rs"]
mod server;
#[path = "common/table.rs"]
mod table;

/// Deaths whose time is taken.
const TIMED: usize = 200;
/// Deaths before the first look at what is left over: by then the pools have their
/// size, as 10,000 and 25,000 cycles end at the same one.
const SETTLED: usize = 5_000;
/// No death is one too many; the window is short, for what it remembers is memory.
const NO_LIMIT: Limit = Limit { most: usize::MAX, within: Duration::from_millis(100) };

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let first = args.first().map(String::as_str);
    if first == Some("__launch") {
        child_main();
    }
    let cycles = first.and_then(|cycles| cycles.parse().ok()).unwrap_or(10_000);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut floor = floor();
    let (mut ours, kept) = runtime.block_on(runtime.spawn(killed(cycles))).unwrap();
    let row = |at: f64, floor: &mut [f64], ours: &mut [f64]| {
        let what = format!("SIGKILL of the scripted server to an answer, p{:.0}", at * 100.0);
        Figure::new(what, "ms", quantile(ours, at)).floor(quantile(floor, at))
    };
    print(&[
        row(0.5, &mut floor, &mut ours).goal(5.0),
        row(0.99, &mut floor, &mut ours),
        // A pool that grows once by its size must not look like a leak.
        flat(cycles, "KiB", &kept, 64.0, |kept| kept.resident / 1024.0),
        flat(cycles, "descriptors", &kept, 0.0, |kept| kept.descriptors),
    ]);
}

/// One row of something that shall not grow: per 1,000 cycles, with both ends.
fn flat(
    cycles: usize,
    unit: &'static str,
    kept: &[Kept; 2],
    goal: f64,
    of: impl Fn(&Kept) -> f64,
) -> Figure {
    let [start, end] = kept.each_ref().map(of);
    let what = format!("growth per 1,000 of {cycles} restarts, {start:.0} to {end:.0}");
    Figure::new(what, unit, (end - start) / (cycles as f64 / 1000.0)).goal(goal)
}

fn floor() -> Vec<f64> {
    let server = scripted();
    let mut raw = Raw::start(&server);
    raw.hover();
    let cycle = |_| {
        let began = Instant::now();
        raw = Raw::start(&server);
        raw.hover();
        milliseconds(began.elapsed())
    };
    (0..TIMED).map(cycle).collect()
}

/// What this process has.
struct Kept {
    resident: f64,
    descriptors: f64,
}

fn look() -> Kept {
    let resident = resident(std::process::id()) as f64;
    Kept { resident, descriptors: descriptors() as f64 }
}

async fn killed(cycles: usize) -> (Vec<f64>, [Kept; 2]) {
    let leased = Leased::open(&scripted(), NO_LIMIT).await;
    leased.hover().await;
    let mut times = Vec::with_capacity(TIMED);
    let mut start = None;
    for at in 0..SETTLED + cycles {
        if at == SETTLED {
            start = Some(look());
        }
        if at < TIMED {
            // An agent does not ask in the very moment of the start.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let began = Instant::now();
        leased.kill();
        leased.hover().await;
        if at < TIMED {
            times.push(milliseconds(began.elapsed()));
        }
    }
    let end = look();
    assert_eq!(leased.restarts(), (SETTLED + cycles) as u64, "every kill was a death");
    leased.end().await;
    (times, [start.expect("the cycles have begun"), end])
}
