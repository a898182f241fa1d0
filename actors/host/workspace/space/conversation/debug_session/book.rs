//! Where a debuggee is: the pure state of one session.
//!
//! Events and our own steps go in, and what may be asked now comes out. A debuggee
//! has limbs: the one that was launched, and the children that its adapter asked us
//! to debug too, each on a connection of its own.
//!
//! The tricky thing: adapters hand out the same numbers for frames and variables at
//! every stop, and answer an old number with the new stop's data. So callers get
//! numbers of ours that carry the stop, and one from an earlier stop is refused.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::bodies::{self, Stopped};
use super::breakpoints::Marks;
use super::refusal::{End, NotNow};

/// The limb that was launched or attached to.
pub(super) const ROOT: usize = 0;
/// References of one stop: its number is what stands before these digits.
const PER_STOP: i64 = 100_000;
/// Threads of the limb n are shown from n times this on.
const PER_LIMB: i64 = 1_000_000_000;
/// Other stops that are listed beside the one that is reported.
const MOST_OTHERS: usize = 16;

/// A place in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as the adapter names it.
    pub path: Option<String>,
    /// The line, from 1.
    pub line: i64,
    /// The function.
    pub function: String,
}

/// A stop of one limb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Halt {
    /// Counts all stops of the conversation.
    pub(super) number: u64,
    pub(super) stopped: Stopped,
    /// Further threads that stopped meanwhile, and why.
    pub(super) others: Vec<(i64, String)>,
    /// The adapter's own id of the top frame, once it was asked for.
    pub(super) top: Option<i64>,
    /// Where it is, once that was asked for.
    pub(super) place: Option<Place>,
    /// Has anybody been told of it.
    pub(super) told: bool,
    /// References handed out.
    handed: i64,
}

impl Halt {
    /// Says whether the stop itself told of a thread.
    pub(super) fn names(&self, thread: i64) -> bool {
        self.stopped.thread == Some(thread) || self.others.iter().any(|(id, _)| *id == thread)
    }
}

/// One debuggee on one connection.
#[derive(Debug, Default)]
pub(super) struct Limb {
    pub(super) name: String,
    pub(super) initialized: bool,
    pub(super) terminated: bool,
    pub(super) capabilities: Map<String, Value>,
    pub(super) halt: Option<Halt>,
    pub(super) pausing: bool,
    /// Was it asked to stop before its first line, and has not yet.
    pub(super) entering: bool,
    /// Counts stops and resumptions, so that a late failure undoes nothing newer.
    moves: u64,
}

/// What a reference stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Frame,
    Variables,
}

/// Whom a reference leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) limb: usize,
    pub(super) what: What,
    pub(super) id: i64,
    halt: u64,
}

/// What somebody who waits must know of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The root's session is over.
    Finished,
    /// A child's session is over.
    ChildGone(usize),
}

/// The state of one session.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) limbs: BTreeMap<usize, Limb>,
    pub(super) marks: Marks,
    pub(super) exit_code: Option<i64>,
    /// What the start is waiting for; `None` once the debuggee runs.
    pub(super) starting: Option<&'static str>,
    pub(super) over: Option<End>,
    /// Is everything that belonged to it gone.
    pub(super) gone: bool,
    pub(super) evaluating: Option<(String, Instant)>,
    /// Where it last stood.
    pub(super) last_place: Option<Place>,
    references: HashMap<i64, Target>,
    last_stop: u64,
    next_limb: usize,
}

impl Book {
    /// Begins, with stops that are counted from those of earlier sessions on.
    pub(super) fn new(last_stop: u64) -> Self {
        Self {
            limbs: BTreeMap::from([(ROOT, Limb::default())]),
            marks: Marks::default(),
            exit_code: None,
            starting: Some("connecting to the adapter"),
            over: None,
            gone: false,
            evaluating: None,
            last_place: None,
            references: HashMap::new(),
            last_stop,
            next_limb: ROOT + 1,
        }
    }

    /// Returns the number of the latest stop.
    pub(super) fn last_stop(&self) -> u64 {
        self.last_stop
    }

    /// Adds a child.
    pub(super) fn add_limb(&mut self, name: String) -> usize {
        let limb = self.next_limb;
        self.next_limb += 1;
        self.limbs.insert(limb, Limb { name, ..Limb::default() });
        limb
    }

    /// Takes an event of a limb.
    pub(super) fn on_event(&mut self, limb: usize, event: &str, body: &Value) -> Option<Effect> {
        match event {
            "stopped" => self.stop(limb, bodies::stopped(body)),
            "breakpoint" if limb == ROOT => {
                let placed = body.get("breakpoint").map(bodies::placed).unwrap_or_default();
                self.marks.changed(placed);
            }
            "exited" if limb == ROOT => self.exit_code = bodies::int(body, "exitCode"),
            "continued" => self.continued(limb, body),
            _ => {}
        }
        let of = self.limbs.get_mut(&limb)?;
        match event {
            "initialized" => of.initialized = true,
            "capabilities" => {
                let more = body.get("capabilities").and_then(Value::as_object);
                of.capabilities.extend(more.cloned().unwrap_or_default());
            }
            // delve sends it twice.
            "terminated" if !of.terminated => {
                of.terminated = true;
                of.halt = None;
                if limb == ROOT {
                    return self.starting.is_none().then_some(Effect::Finished);
                }
                self.limbs.remove(&limb);
                return Some(Effect::ChildGone(limb));
            }
            _ => {}
        }
        None
    }

    fn stop(&mut self, limb: usize, mut stopped: Stopped) {
        let Some(of) = self.limbs.get_mut(&limb) else { return };
        if let Some(halt) = &mut of.halt {
            // Its other threads report one by one; the first is the one that counts.
            if let Some(thread) = stopped.thread.filter(|id| halt.stopped.thread != Some(*id)) {
                halt.others.retain(|(other, _)| *other != thread);
                halt.others.push((thread, stopped.reason));
                halt.others.truncate(MOST_OTHERS);
            }
            self.marks.hit(&stopped.hit);
            return;
        }
        self.last_stop += 1;
        of.moves += 1;
        if std::mem::take(&mut of.pausing) && stopped.reason != "breakpoint" {
            // lldb-dap calls it an exception, with the signal that it used.
            stopped = Stopped { reason: "pause".to_owned(), description: None, ..stopped };
        }
        if std::mem::take(&mut of.entering) && stopped.reason != "breakpoint" {
            // For lldb-dap that is an exception too, for delve a function's breakpoint.
            stopped = Stopped { reason: "entry".to_owned(), description: None, ..stopped };
        }
        self.marks.hit(&stopped.hit);
        of.halt = Some(Halt {
            number: self.last_stop,
            stopped,
            others: Vec::new(),
            top: None,
            place: None,
            told: false,
            handed: 0,
        });
    }

    fn continued(&mut self, limb: usize, body: &Value) {
        let Some(of) = self.limbs.get_mut(&limb) else { return };
        let thread = bodies::int(body, "threadId");
        let all = bodies::truth(body, "allThreadsContinued") || thread.is_none();
        let Some(halt) = of.halt.as_mut() else { return };
        if all || halt.stopped.thread.is_none() || halt.stopped.thread == thread {
            let next = if all { None } else { halt.others.pop() };
            of.halt = None;
            of.moves += 1;
            self.forget_old();
            if let Some((thread, reason)) = next {
                self.stop(limb, Stopped { reason, thread: Some(thread), ..Stopped::default() });
            }
        } else {
            halt.others.retain(|(other, _)| Some(*other) != thread);
        }
    }

    /// Says whether the session can be asked at all.
    pub(super) fn usable(&self) -> Result<(), NotNow> {
        match (&self.over, self.starting) {
            (Some(_), _) => Err(NotNow::Over),
            (None, Some(step)) => Err(NotNow::Starting(step)),
            (None, None) => Ok(()),
        }
    }

    /// Returns the limb that stopped last.
    pub(super) fn stopped_limb(&self) -> Result<usize, NotNow> {
        self.usable()?;
        let halted = self.limbs.iter().filter_map(|(id, limb)| Some((limb.halt.as_ref()?, *id)));
        let latest = halted.max_by_key(|(halt, _)| halt.number);
        latest.map(|(_, limb)| limb).ok_or(NotNow::Running)
    }

    /// Says whether it runs, all of it.
    pub(super) fn is_running(&self) -> bool {
        self.stopped_limb() == Err(NotNow::Running)
    }

    /// Returns a limb's stop.
    pub(super) fn halt(&self, limb: usize) -> Option<&Halt> {
        self.limbs.get(&limb)?.halt.as_ref()
    }

    /// Finds the limb and thread that a caller means: a thread that was named, or the
    /// one that stopped last.
    pub(super) fn stopped_thread(&self, thread: Option<i64>) -> Result<(usize, i64), NotNow> {
        let latest = self.stopped_limb()?;
        let (limb, id) = match thread {
            Some(thread) => self.inner_thread(thread),
            None => (latest, self.halt(latest).and_then(|halt| halt.stopped.thread).unwrap_or(0)),
        };
        self.halt(limb).map(|_| (limb, id)).ok_or(NotNow::Running)
    }

    /// Says whether the thread that a caller means stands at a stop of which nobody has
    /// been told: it came after the call that waited for it had been answered.
    pub(super) fn is_news(&self, thread: Option<i64>) -> bool {
        let limb = self.stopped_thread(thread).map(|(limb, _)| limb);
        limb.is_ok_and(|limb| self.halt(limb).is_some_and(|halt| !halt.told))
    }

    /// Notes that a stop was told, if it is still the present one.
    pub(super) fn tell(&mut self, limb: usize, number: u64) {
        let halt = self.limbs.get_mut(&limb).and_then(|of| of.halt.as_mut());
        if let Some(halt) = halt.filter(|halt| halt.number == number) {
            halt.told = true;
        }
    }

    /// Splits a thread's id into the limb and its own.
    pub(super) fn inner_thread(&self, thread: i64) -> (usize, i64) {
        let limb = usize::try_from(thread / PER_LIMB).unwrap_or(ROOT);
        if limb != ROOT && self.limbs.contains_key(&limb) {
            (limb, thread % PER_LIMB)
        } else {
            (ROOT, thread)
        }
    }

    /// Says that a limb runs from now on; what it was stopped at is returned, to be
    /// given back if the adapter refuses.
    pub(super) fn resume(&mut self, limb: usize) -> Option<(Halt, u64)> {
        let of = self.limbs.get_mut(&limb)?;
        let halt = of.halt.take()?;
        of.moves += 1;
        Some((halt, of.moves))
    }

    /// Takes a resumption back that the adapter refused.
    pub(super) fn not_resumed(&mut self, limb: usize, (halt, at): (Halt, u64)) {
        if let Some(of) = self.limbs.get_mut(&limb).filter(|of| of.moves == at) {
            of.halt = Some(halt);
        }
    }

    /// Hands out a reference that is good for the present stop of a limb; 0 for none.
    pub(super) fn refer(&mut self, limb: usize, at: u64, what: What, id: i64) -> i64 {
        let halt = self.limbs.get_mut(&limb).and_then(|of| of.halt.as_mut());
        let Some(halt) = halt.filter(|halt| halt.number == at) else { return 0 };
        if what == What::Variables && id <= 0 || halt.handed >= PER_STOP - 1 {
            return 0;
        }
        halt.handed += 1;
        let number = i64::try_from(halt.number).unwrap_or(0);
        let reference = number * PER_STOP + halt.handed;
        self.references.insert(reference, Target { limb, what, id, halt: at });
        reference
    }

    /// Finds what a reference stands for, if its stop is still the present one.
    pub(super) fn target(&self, reference: i64, what: What) -> Result<(Target, u64), NotNow> {
        self.usable()?;
        if let Some(target) = self.references.get(&reference) {
            return match self.halt(target.limb) {
                Some(halt) if halt.number == target.halt && target.what == what => {
                    Ok((*target, halt.number))
                }
                Some(halt) if halt.number == target.halt => Err(NotNow::OtherKind {
                    id: reference,
                    is: noun(target.what),
                    wanted: noun(what),
                }),
                Some(_) => Err(NotNow::Stale(reference)),
                None => Err(NotNow::Running),
            };
        }
        match u64::try_from(reference / PER_STOP) {
            Ok(stop) if stop > 0 && stop <= self.last_stop => Err(NotNow::Stale(reference)),
            _ => Err(NotNow::Unknown { what: noun(what), id: reference }),
        }
    }

    /// Drops the references of stops that are over.
    pub(super) fn forget_old(&mut self) {
        let limbs = &self.limbs;
        let present = |target: &Target| {
            let halt = limbs.get(&target.limb).and_then(|limb| limb.halt.as_ref());
            halt.is_some_and(|halt| halt.number == target.halt)
        };
        self.references.retain(|_, target| present(target));
    }

    /// Says whether there is news for somebody who waits since the stop `mark`.
    pub(super) fn settled(&self, mark: u64) -> bool {
        let halted = || self.limbs.values().any(|limb| limb.halt.is_some());
        let running = || self.limbs.values().any(|limb| limb.halt.is_none());
        self.over.is_some() || halted() && (self.last_stop > mark || !running())
    }
}

/// Returns a thread's id as callers name it.
pub(super) fn outer_thread(limb: usize, thread: i64) -> i64 {
    i64::try_from(limb).map_or(thread, |limb| limb * PER_LIMB + thread)
}

fn noun(what: What) -> &'static str {
    match what {
        What::Frame => "frame id",
        What::Variables => "variables reference",
    }
}

#[cfg(test)]
mod tests;
