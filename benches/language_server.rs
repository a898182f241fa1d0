//! What the host adds to a language server: to a warm question, and to a write.
//!
//! The floor is the same on the server's own pipes, from blocking code. The binary
//! plays the launcher too (`__launch`). pyright is looked for in `HOSTLER_TOOLS`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::disallowed_methods, missing_docs, reason = "it is a bench")]
#![allow(dead_code, reason = "what benches share is not used whole by each")]

use std::time::Instant;

use hostler::launch::child_main;
use hostler_actors::supervise::budget::Limit;
use leased::Leased;
use raw::Raw;
use server::{BROKEN, Server, TEXT, pyright, scripted};
use table::{Figure, milliseconds, print, quantile};

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

/// Writes of each kind.
const WRITES: usize = 200;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("__launch") {
        child_main();
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut figures = Vec::new();
    for server in [Some(scripted()), pyright()].into_iter().flatten() {
        let floor = raw(&server);
        // As tools run: in a task of the runtime.
        let ours = runtime.block_on(runtime.spawn(leased(server.clone()))).unwrap();
        figures.extend(rows(&server, floor, ours));
    }
    print(&figures);
}

/// Times of warm hovers, and of writes until their verdict.
struct Times {
    hovers: Vec<f64>,
    verdicts: Vec<f64>,
}

impl Times {
    /// The first fifth is for warming up.
    fn warm(mut self) -> Self {
        for times in [&mut self.hovers, &mut self.verdicts] {
            times.drain(..times.len() / 6);
        }
        self
    }
}

/// The text of the n-th write and how many errors it has.
fn text(at: usize) -> (&'static str, usize) {
    if at.is_multiple_of(2) { (BROKEN, 1) } else { (TEXT, 0) }
}

fn raw(server: &Server) -> Times {
    let mut times = Times { hovers: Vec::new(), verdicts: Vec::new() };
    let mut raw = Raw::start(server);
    for _ in 0..server.times * 6 / 5 {
        let began = Instant::now();
        raw.hover();
        times.hovers.push(milliseconds(began.elapsed()));
    }
    for at in 0..WRITES * 6 / 5 {
        let (text, errors) = text(at);
        let began = Instant::now();
        assert_eq!(raw.verdict(text), errors);
        times.verdicts.push(milliseconds(began.elapsed()));
    }
    times.warm()
}

async fn leased(server: Server) -> Times {
    let mut times = Times { hovers: Vec::new(), verdicts: Vec::new() };
    let mut leased = Leased::open(&server, Limit::WEATHER).await;
    for _ in 0..server.times * 6 / 5 {
        let began = Instant::now();
        leased.hover().await;
        times.hovers.push(milliseconds(began.elapsed()));
    }
    for at in 0..WRITES * 6 / 5 {
        let (text, errors) = text(at);
        let began = Instant::now();
        assert_eq!(leased.verdict(text).await, errors);
        times.verdicts.push(milliseconds(began.elapsed()));
    }
    leased.end().await;
    times.warm()
}

fn rows(server: &Server, mut floor: Times, mut ours: Times) -> Vec<Figure> {
    let row = |what: &str, at, floor: &mut [f64], ours: &mut [f64]| {
        let what = format!("{what}, {}, p{:.0}", server.name, at * 100.0);
        Figure::new(what, "ms", quantile(ours, at)).floor(quantile(floor, at))
    };
    let hover = "warm hover by a lease";
    let median = row(hover, 0.5, &mut floor.hovers, &mut ours.hovers);
    let goal = median.floor.unwrap_or_default() + 0.15;
    let verdict = "write to verdict by a lease";
    vec![
        median.goal(goal),
        row(hover, 0.99, &mut floor.hovers, &mut ours.hovers),
        row(verdict, 0.5, &mut floor.verdicts, &mut ours.verdicts).goal(30.0),
        row(verdict, 0.99, &mut floor.verdicts, &mut ours.verdicts),
    ]
}
