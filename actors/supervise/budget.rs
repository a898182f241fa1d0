//! A limit of so many events within so long, pure.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// How many within how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The count that exhausts it.
    pub most: usize,
    /// The window.
    pub within: Duration,
}

impl Limit {
    /// External deaths of one resource: `spec/host.md`, 5 in 60 s.
    pub const WEATHER: Self = Self { most: 5, within: Duration::from_secs(60) };
    /// Panics of ours below one supervisor: 3 in 5 s.
    pub const BUGS: Self = Self { most: 3, within: Duration::from_secs(5) };
}

/// The events that still count.
#[derive(Clone, Debug)]
pub struct Budget {
    limit: Limit,
    events: VecDeque<Instant>,
}

impl Budget {
    /// Starts with nothing spent.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self { limit, events: VecDeque::new() }
    }

    /// Counts one event and returns how many now lie within the window.
    pub fn spend(&mut self, now: Instant) -> usize {
        self.events.push_back(now);
        while self.events.front().is_some_and(|at| now.duration_since(*at) > self.limit.within) {
            self.events.pop_front();
        }
        self.events.len()
    }

    /// Says whether so many events exhaust it.
    #[must_use]
    pub fn is_exhausted_by(&self, events: usize) -> bool {
        events >= self.limit.most
    }

    /// Forgets what was spent.
    pub fn clear(&mut self) {
        self.events.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_events_within_the_window_count() {
        let mut budget = Budget::new(Limit { most: 3, within: Duration::from_secs(5) });
        let start = Instant::now();
        let spend = |budget: &mut Budget, at| budget.spend(start + Duration::from_secs(at));
        assert_eq!([0, 2, 4].map(|at| spend(&mut budget, at)), [1, 2, 3]);
        assert!(budget.is_exhausted_by(3));
        assert_eq!(spend(&mut budget, 8), 2, "those at 0 and 2 are too old at 8");
        assert!(!budget.is_exhausted_by(2));
    }
}
