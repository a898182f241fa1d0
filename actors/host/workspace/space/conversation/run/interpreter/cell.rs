//! One cell: its order, its way through the interpreter, and the report of it.
//!
//! Drives the process from the caller's own task. Whatever is said to the caller of the
//! state was asked of the interpreter: after an interrupt it must answer a probe.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::process::{Heard, Process};
use super::protocol::{self, Bridged, Bundle, Done, Frame, LONGEST_ARGUMENTS, Ready};
use super::spec::{InterpreterSpec, Language, Limits};
use super::stopping::{Ladder, Step};
use super::text::{Late, Sink};
use crate::ports::BoxFuture;

/// Calls of one cell that are under way at once; more wait.
const CALLS: usize = 16;
/// Calls of one cell that wait.
const WAITING: usize = 4096;
/// Displays of one cell that are kept.
const DISPLAYS: usize = 200;
/// How long all text of a cell that is over may take to come.
const WHOLE: Duration = Duration::from_secs(5);
/// How long an interpreter has to answer a probe after it was interrupted.
const PROBE: Duration = Duration::from_secs(2);

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGUSR1: i32 = 10;

/// Makes the calls of a cell, through the one door to the tools.
pub trait Bridge: Send + Sync {
    /// Makes one. Bounded by the tool's own limits and by `cancel`.
    fn call(
        &self,
        name: String,
        arguments: Value,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Bridged>;
}

/// A cell to be run.
pub struct CellOrder {
    /// The interpreter to run it on.
    pub spec: Arc<InterpreterSpec>,
    /// What the interpreter is given.
    pub code: String,
    /// By how many columns its first line was moved to the right.
    pub shift: usize,
    /// What it is called in the status.
    pub label: Arc<str>,
    /// Its bounds.
    pub limits: Limits,
    /// A random part of the marks in the text.
    pub nonce: String,
    /// Takes its text.
    pub sink: Arc<dyn Sink>,
    /// Makes its calls.
    pub bridge: Arc<dyn Bridge>,
    /// Fires when its call is cancelled.
    pub cancel: CancellationToken,
}

/// Why a cell was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its call was cancelled.
    Cancelled,
    /// Another call asks for a fresh interpreter.
    Reset,
    /// It showed no sign of activity for so long.
    Quiet(Duration),
    /// It took longer than any cell may.
    Longest(Duration),
    /// It wrote more than any cell may, in bytes.
    Output(u64),
    /// The run ends.
    RunEnds,
}

/// How a cell ended.
#[derive(Clone, Debug)]
pub enum CellEnd {
    /// By itself.
    Done(Box<Done>),
    /// It was stopped, and what it then said, if it did.
    Stopped(Why, Option<Box<Done>>),
    /// The interpreter died under it, and how.
    Died(String),
    /// There is no interpreter to run it on, and why.
    NotStarted(String),
    /// It had not begun when its call was cancelled or its run ended.
    NotBegun(Why),
}

/// What became of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is kept; the interpreter answered.
    Kept,
    /// A snapshot took over; it is that after this cell.
    Restored(u64),
    /// It is gone, and so many cells had made it.
    Lost(u64),
}

/// What became of a cell.
#[derive(Debug)]
pub struct CellReport {
    /// Its number, from 1 over all incarnations.
    pub cell: u64,
    /// How it ended.
    pub end: CellEnd,
    /// What became of the state.
    pub state: State,
    /// The interpreter that was started for it.
    pub started: Option<Ready>,
    /// What had happened to the interpreter since the last cell.
    pub before: Option<String>,
    /// What was written since then.
    pub late: Late,
    /// What it displayed, by the number of its mark.
    pub displays: BTreeMap<u64, Bundle>,
    /// Displays beyond the cap.
    pub dropped: u64,
    /// How often it called which tool.
    pub calls: BTreeMap<String, u64>,
    /// How long it took.
    pub took: Duration,
}

/// A cell under way.
pub(super) struct Drive<'a> {
    order: &'a CellOrder,
    cell: u64,
    owner: &'a CancellationToken,
    reset: &'a CancellationToken,
    quiet: Duration,
    active: Instant,
    began: Instant,
    /// How long bridged calls have held up the clock so far, and since when one does.
    paused: Duration,
    paused_since: Option<Instant>,
    running: JoinSet<(u64, Bridged)>,
    waiting: VecDeque<(u64, String, Value)>,
    calls_end: CancellationToken,
    stop: Option<(Why, Instant, Ladder)>,
    displays: BTreeMap<u64, Bundle>,
    dropped: u64,
    calls: BTreeMap<String, u64>,
}

/// What came of the drive.
pub(super) struct Drove {
    pub(super) end: CellEnd,
    pub(super) displays: BTreeMap<u64, Bundle>,
    pub(super) dropped: u64,
    pub(super) calls: BTreeMap<String, u64>,
    /// The process is there and answers.
    pub(super) alive: bool,
}

impl<'a> Drive<'a> {
    pub(super) fn new(
        order: &'a CellOrder,
        cell: u64,
        owner: &'a CancellationToken,
        reset: &'a CancellationToken,
    ) -> Self {
        let now = Instant::now();
        Self {
            order,
            cell,
            owner,
            reset,
            quiet: order.limits.quiet,
            active: now,
            began: now,
            paused: Duration::ZERO,
            paused_since: None,
            running: JoinSet::new(),
            waiting: VecDeque::new(),
            calls_end: order.cancel.child_token(),
            stop: None,
            displays: BTreeMap::new(),
            dropped: 0,
            calls: BTreeMap::new(),
        }
    }

    /// Runs the cell to its end, whichever that is.
    pub(super) async fn run(mut self, process: &mut Process) -> Drove {
        process.text.take(self.cell, Arc::clone(&self.order.sink));
        process.say(&protocol::run(self.cell, &self.order.code, self.order.shift));
        let over = process.over();
        tokio::pin!(over);
        let done = loop {
            let due = self.due(process);
            tokio::select! {
                biased;
                heard = process.hear() => match heard {
                    Heard::Frame(Frame::Done(done)) if done.cell == self.cell => break Some(done),
                    // A snapshot wakes at once; its word is for whoever asks for it.
                    Heard::Frame(frame @ Frame::Woken { .. }) => {
                        process.unhear(frame);
                        break None;
                    }
                    Heard::Frame(frame) => self.heard(process, frame),
                    Heard::Over => break None,
                },
                Some(answered) = self.running.join_next(), if !self.running.is_empty() => {
                    if let Ok((id, bridged)) = answered {
                        process.say(&protocol::reply(id, &bridged));
                    }
                    self.next_call();
                }
                () = &mut over => break self.last_frames(process).await,
                () = self.order.cancel.cancelled(), if self.stop.is_none() => {
                    self.stop(Why::Cancelled);
                }
                () = self.reset.cancelled(), if self.stop.is_none() => self.stop(Why::Reset),
                () = self.owner.cancelled(), if self.stop.is_none() => self.stop(Why::RunEnds),
                () = sleep_until(due) => self.on_time(process),
            }
        };
        self.calls_end.cancel();
        match done {
            Some(done) => self.ended(process, done).await,
            None => self.died(process).await,
        }
    }

    /// What a worker said before its end may still be in the pipe.
    async fn last_frames(&mut self, process: &mut Process) -> Option<Done> {
        let until = Instant::now() + Duration::from_millis(50);
        loop {
            match tokio::time::timeout_at(until, process.hear()).await {
                Ok(Heard::Frame(frame @ Frame::Display { .. })) => self.heard(process, frame),
                Ok(Heard::Frame(frame @ Frame::Woken { .. })) => {
                    process.unhear(frame);
                    return None;
                }
                Ok(Heard::Frame(frame)) => process.note(&frame),
                Ok(Heard::Over) | Err(_) => return None,
            }
        }
    }

    fn heard(&mut self, process: &mut Process, frame: Frame) {
        self.active = Instant::now();
        match frame {
            Frame::Display { cell, seq, data } if cell == self.cell => {
                if self.displays.len() < DISPLAYS {
                    self.displays.insert(seq, data);
                } else {
                    self.dropped += 1;
                }
            }
            Frame::Tool { cell, id, name, arguments } if cell == self.cell => {
                self.asked(process, id, name, arguments);
            }
            Frame::Tool { id, .. } => {
                let text = "no cell is running that could call a tool".to_owned();
                let details = Value::Null;
                let late = Bridged::Error { kind: "failed", text, details };
                process.say(&protocol::reply(id, &late));
            }
            Frame::Budget { cell, seconds } if cell == self.cell => {
                let longest = self.order.limits.longest;
                let asked = Duration::try_from_secs_f64(seconds).unwrap_or(longest);
                self.quiet = asked.min(longest);
            }
            other => process.note(&other),
        }
    }

    fn asked(&mut self, process: &mut Process, id: u64, name: String, arguments: Value) {
        *self.calls.entry(name.clone()).or_default() += 1;
        let size = arguments.to_string().len();
        let refused = if size > LONGEST_ARGUMENTS {
            Some(format!("the arguments are {size} bytes, over the limit of {LONGEST_ARGUMENTS}"))
        } else if self.waiting.len() >= WAITING {
            Some(format!("{WAITING} calls of this cell wait already"))
        } else {
            None
        };
        if let Some(text) = refused {
            let error = Bridged::Error { kind: "failed", text, details: Value::Null };
            return process.say(&protocol::reply(id, &error));
        }
        self.waiting.push_back((id, name, arguments));
        self.next_call();
    }

    fn next_call(&mut self) {
        while self.running.len() < CALLS {
            let Some((id, name, arguments)) = self.waiting.pop_front() else { break };
            let call = self.order.bridge.call(name, arguments, self.calls_end.clone());
            self.running.spawn(async move { (id, call.await) });
        }
        let now = Instant::now();
        match (self.running.is_empty(), self.paused_since) {
            (false, None) => self.paused_since = Some(now),
            (true, Some(since)) => {
                self.paused += now - since;
                self.paused_since = None;
                self.active = now;
            }
            _ => {}
        }
    }

    /// Returns when something is to be done without anything being heard.
    fn due(&self, process: &Process) -> Instant {
        let far = Instant::now() + Duration::from_secs(3600);
        match &self.stop {
            Some((_, since, ladder)) => ladder.due().map_or(far, |due| *since + due),
            None if self.paused_since.is_some() => Instant::now() + Duration::from_secs(1),
            // Output is looked at from time to time, as its bytes pass by here.
            None => self.limit(process).map_or(far, |(at, _)| at).min(Instant::now() + LOOK),
        }
    }

    /// Returns the limit that is met first, and when.
    fn limit(&self, process: &Process) -> Option<(Instant, Why)> {
        if self.paused_since.is_some() {
            return None;
        }
        let longest = self.order.limits.longest;
        let quiet = (self.active.max(process.text.last()) + self.quiet, Why::Quiet(self.quiet));
        let longest = (self.began + self.paused + longest, Why::Longest(longest));
        Some(if quiet.0 <= longest.0 { quiet } else { longest })
    }

    fn on_time(&mut self, process: &mut Process) {
        let now = Instant::now();
        if self.stop.is_none() {
            let most = self.order.limits.output;
            if process.text.bytes() > most {
                self.stop(Why::Output(most));
            } else if let Some((_, why)) = self.limit(process).filter(|(at, _)| *at <= now) {
                self.stop(why);
            }
        }
        let Some((_, since, ladder)) = &mut self.stop else { return };
        while let Some(step) = ladder.step(now - *since) {
            match step {
                Step::Interrupt => process.worker.signal(SIGINT),
                Step::InterruptGroup => {
                    process.tree.interrupt();
                    process.worker.signal(SIGINT);
                }
                Step::Stack if self.order.spec.language == Language::Python => {
                    process.worker.signal(SIGUSR1);
                }
                Step::Stack => {}
                Step::Kill => process.worker.signal(SIGKILL),
            }
        }
    }

    fn stop(&mut self, why: Why) {
        self.calls_end.cancel();
        self.waiting.clear();
        self.stop = Some((why, Instant::now(), Ladder::default()));
    }

    async fn ended(self, process: &mut Process, done: Done) -> Drove {
        let whole = process.text.is_whole(self.cell, WHOLE).await;
        if !whole {
            tracing::warn!(cell = self.cell, "its text has no end");
        }
        // What interrupts came too late must be taken before the next cell begins.
        let alive = self.stop.is_none() || process.answers(self.cell, PROBE).await;
        let done = Box::new(done);
        let end = match self.stop {
            Some((why, ..)) => CellEnd::Stopped(why, Some(done)),
            None => CellEnd::Done(done),
        };
        let Self { displays, dropped, calls, .. } = self;
        Drove { end, displays, dropped, calls, alive }
    }

    async fn died(self, process: &mut Process) -> Drove {
        process.text.finish().await;
        let end = match self.stop {
            Some((why, ..)) => CellEnd::Stopped(why, None),
            None => CellEnd::Died(process.how().await),
        };
        let Self { displays, dropped, calls, .. } = self;
        Drove { end, displays, dropped, calls, alive: false }
    }
}

/// How often the amount of output is looked at.
const LOOK: Duration = Duration::from_secs(1);
