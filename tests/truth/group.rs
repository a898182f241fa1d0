//! Runs at once on one root: what they share, and where they wait for each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

use crate::support::BOUND;
use crate::truth::dialects::Dialect;

/// What runs of one root share.
pub(crate) struct Group {
    dialect: Dialect,
    runs: usize,
    broken: AtomicBool,
    /// How many wait, and how often all have met.
    gate: Mutex<(usize, usize)>,
    met: Condvar,
}

impl Group {
    pub(crate) fn new(dialect: Dialect, runs: usize) -> Self {
        let (broken, gate) = (AtomicBool::new(false), Mutex::new((0, 0)));
        Self { dialect, runs, broken, gate, met: Condvar::new() }
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::SeqCst)
    }

    pub(crate) fn set_broken(&self, broken: bool) {
        self.broken.store(broken, Ordering::SeqCst);
    }

    /// Says whether a file is another run's own.
    pub(crate) fn is_of_another(&self, run: usize, file: &str) -> bool {
        let own = (0..self.runs).filter(|other| *other != run);
        own.map(|other| self.dialect.file.replace("{r}", &other.to_string())).any(|own| own == file)
    }

    /// The files in which something can be wrong.
    pub(crate) fn files(&self) -> Vec<String> {
        let own = (0..self.runs).map(|run| self.dialect.file.replace("{r}", &run.to_string()));
        let breaks = self.dialect.dependency.iter().flat_map(|dependency| dependency.breaks);
        own.chain(breaks.map(|(file, ..)| (*file).to_owned())).collect()
    }

    /// Waits until all runs are here.
    pub(crate) fn gate(&self) {
        let mut gate = self.gate.lock().unwrap();
        gate.0 += 1;
        let round = gate.1;
        if gate.0 == self.runs {
            *gate = (0, round + 1);
            self.met.notify_all();
            return;
        }
        let (_gate, waited) =
            self.met.wait_timeout_while(gate, 3 * BOUND, |gate| gate.1 == round).unwrap();
        assert!(!waited.timed_out(), "another run has given up");
    }
}
