//! Which call may go on and which must wait, pure.
//!
//! A call waits for every earlier call that shares a lane with it, so calls on
//! one path, one debug session or one interpreter keep the order in which they
//! were issued, and all others overtake as they like.

use std::collections::BTreeMap;

use crate::ids::CallId;

#[derive(Debug)]
struct Waiting {
    lanes: Vec<String>,
    running: bool,
}

/// The calls of a turn that are not finished, in the order issued.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    calls: BTreeMap<u64, (CallId, Waiting)>,
    next: u64,
}

impl Lanes {
    /// Takes a call in.
    pub(super) fn enter(&mut self, call: CallId, lanes: Vec<String>) {
        self.calls.insert(self.next, (call, Waiting { lanes, running: false }));
        self.next += 1;
    }

    /// Lets a call go, finished or given up.
    pub(super) fn leave(&mut self, call: CallId) {
        self.calls.retain(|_, (id, _)| *id != call);
    }

    /// Returns the calls that may begin now, in order, and takes them as begun.
    pub(super) fn ready(&mut self) -> Vec<CallId> {
        let mut taken: Vec<String> = Vec::new();
        let mut ready = Vec::new();
        for (call, waiting) in self.calls.values_mut() {
            let free = !waiting.lanes.iter().any(|lane| taken.contains(lane));
            if free && !waiting.running {
                waiting.running = true;
                ready.push(*call);
            }
            taken.extend(waiting.lanes.iter().cloned());
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a:x,y` takes call a in with lanes x and y, `-a` finishes it; returns
    /// what began after each word.
    fn play(script: &str) -> Vec<String> {
        let id = |name: &str| CallId(u64::from(name.as_bytes()[0]));
        let mut lanes = Lanes::default();
        let mut began = Vec::new();
        for word in script.split_whitespace() {
            match word.strip_prefix('-') {
                Some(name) => lanes.leave(id(name)),
                None => {
                    let (name, of) = word.split_once(':').unwrap();
                    let of = of.split(',').filter(|lane| !lane.is_empty()).map(str::to_owned);
                    lanes.enter(id(name), of.collect());
                }
            }
            let ready = lanes.ready();
            began.push(ready.iter().map(|call| char::from(call.0 as u8)).collect());
        }
        began
    }

    #[test]
    fn a_call_waits_for_earlier_ones_on_its_lanes_only() {
        assert_eq!(play("a:x b:x c: d:y -a -b"), ["a", "", "c", "d", "b", ""]);
        assert_eq!(play("a:x b:x,y c:y -a -b"), ["a", "", "", "b", "c"], "c waits behind b");
        assert_eq!(play("a:x b:x c:x -b -a"), ["a", "", "", "", "c"], "a waiting one given up");
    }
}
