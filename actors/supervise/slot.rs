//! One resource's life as a pure state machine.
//!
//! ```text
//! Idle → Starting → Up → Emptying → (Starting | BackingOff | Failed | Idle | Stopped)
//! ```
//!
//! No clock and no await: [`Slot::step`] takes the time and an event and says what
//! to do. Events carry the incarnation (or, for timers, a token) that they speak
//! of; those of an earlier one are ignored. That rules out a restart after a stop
//! by construction.

use std::time::Duration;

use tokio::time::Instant;

use super::backoff::backoff;
use super::budget::{Budget, Limit};
use super::exit::{Blame, Exit};
use crate::ids::Incarnation;
use crate::ports::Jitter;

/// When a resource that died by itself is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// As soon as the backoff allows.
    AtOnce,
    /// When it is next used.
    OnUse,
}

/// What a slot is told about its resource.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// When it is started again.
    pub restart: Restart,
    /// How many deaths within how long make it `failed`.
    pub weather: Limit,
    /// How long a start may take.
    pub start_deadline: Duration,
    /// How long a goodbye may take before it is killed.
    pub goodbye: Duration,
    /// How long it stays `failed` before it is tried again.
    pub retry_failed_after: Duration,
}

impl Policy {
    /// The figures of `spec/host.md`.
    pub const DEFAULT: Self = Self {
        restart: Restart::AtOnce,
        weather: Limit::WEATHER,
        start_deadline: Duration::from_secs(30),
        goodbye: Duration::from_secs(5),
        retry_failed_after: Duration::from_secs(300),
    };
}

/// Identifies one armed timer; a later one makes it stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(u64);

/// Where a resource is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not started, or let go.
    Idle,
    /// Started, not yet ready.
    Starting,
    /// Ready.
    Up,
    /// Its actor is gone, its process tree not yet known to be.
    Emptying(Then),
    /// Waits for its next start.
    BackingOff {
        /// How many deaths lie behind it within the window.
        attempt: usize,
        /// When the next start is due.
        until: Instant,
    },
    /// Died too often.
    Failed {
        /// When it is tried again by itself.
        retry_at: Instant,
    },
    /// Says goodbye.
    Stopping(Then),
    /// Stopped on purpose, and stays so.
    Stopped,
}

impl Phase {
    /// Returns the word that `status` shows for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Up => "up",
            Self::Emptying(_) => "ending",
            Self::BackingOff { .. } => "backing off",
            Self::Failed { .. } => "failed",
            Self::Stopping(_) => "stopping",
            Self::Stopped => "stopped",
        }
    }
}

/// What follows when the tree is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// A fresh start at once.
    Start,
    /// A start after a wait.
    BackOff {
        /// How many deaths lie behind it.
        attempt: usize,
        /// The wait.
        wait: Duration,
    },
    /// Nothing until the next use.
    Rest,
    /// Nothing for long: it died too often.
    Fail,
    /// Nothing, on purpose.
    Stay,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Somebody needs the resource.
    Use,
    /// Somebody asks for a fresh start, whatever came before.
    Renew,
    /// This incarnation is ready.
    Ready(Incarnation),
    /// This incarnation's actor has ended.
    Exited(Incarnation, Exit),
    /// This incarnation's process tree is empty.
    Emptied(Incarnation),
    /// An armed timer fired.
    Timer(Token),
    /// It shall stop, and stay so until it is renewed.
    Stop,
    /// It shall rest until it is next used: nobody needs it now.
    Rest,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Spawn the actor of this incarnation.
    Spawn(Incarnation),
    /// Send [`Event::Timer`] then.
    Arm(Token, Instant),
    /// Ask this incarnation to say goodbye and end.
    Goodbye(Incarnation),
    /// Kill this incarnation's actor and its process tree.
    Kill(Incarnation),
    /// Send [`Event::Emptied`] when this incarnation's tree is empty.
    AwaitEmpty(Incarnation),
    /// Count a bug of ours.
    CountBug,
}

/// One resource's state.
#[derive(Debug)]
pub struct Slot {
    policy: Policy,
    phase: Phase,
    incarnation: Incarnation,
    token: u64,
    deaths: Budget,
    restarts: u64,
    last_exit: Option<Exit>,
    died: bool,
    overdue: bool,
}

impl Slot {
    /// Starts idle.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            phase: Phase::Idle,
            incarnation: Incarnation::default(),
            token: 0,
            deaths: Budget::new(policy.weather),
            restarts: 0,
            last_exit: None,
            died: false,
            overdue: false,
        }
    }

    /// Returns where it is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the latest incarnation.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Returns how often it was started again after it died by itself.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Returns why it last ended, unless that was wanted.
    #[must_use]
    pub fn last_exit(&self) -> Option<&Exit> {
        self.last_exit.as_ref()
    }

    /// Takes one event and says what to do.
    #[must_use]
    pub fn step(&mut self, now: Instant, event: Event, jitter: &dyn Jitter) -> Vec<Action> {
        match event {
            Event::Use => match self.phase {
                Phase::Idle => self.start(now),
                Phase::Stopping(Then::Rest) => self.go_on(Phase::Stopping(Then::Start)),
                Phase::Emptying(Then::Rest) => self.go_on(Phase::Emptying(Then::Start)),
                _ => Vec::new(),
            },
            Event::Renew => self.renew(now),
            Event::Ready(of) if of == self.incarnation && self.phase == Phase::Starting => {
                self.go_on(Phase::Up)
            }
            Event::Exited(of, exit) if of == self.incarnation => self.exited(now, exit, jitter),
            Event::Emptied(of) if of == self.incarnation => self.emptied(now),
            Event::Timer(Token(token)) if token == self.token => self.due(now),
            Event::Stop => self.end(now, Then::Stay),
            Event::Rest => self.end(now, Then::Rest),
            // All that is left speaks of an earlier incarnation or timer.
            Event::Ready(_) | Event::Exited(..) | Event::Emptied(_) | Event::Timer(_) => Vec::new(),
        }
    }

    fn go_on(&mut self, phase: Phase) -> Vec<Action> {
        if !matches!(phase, Phase::Stopping(_)) {
            // Whatever timer runs belongs to the phase that ends here. A
            // goodbye keeps its own when only what follows it changes.
            self.token += 1;
        }
        self.phase = phase;
        Vec::new()
    }

    fn arm(&mut self, at: Instant) -> Action {
        self.token += 1;
        Action::Arm(Token(self.token), at)
    }

    fn start(&mut self, now: Instant) -> Vec<Action> {
        self.restarts += u64::from(std::mem::take(&mut self.died));
        self.incarnation = self.incarnation.next();
        self.phase = Phase::Starting;
        self.overdue = false;
        let timer = self.arm(now + self.policy.start_deadline);
        vec![Action::Spawn(self.incarnation), timer]
    }

    fn renew(&mut self, now: Instant) -> Vec<Action> {
        self.deaths.clear();
        match self.phase {
            Phase::Idle | Phase::BackingOff { .. } | Phase::Failed { .. } | Phase::Stopped => {
                self.start(now)
            }
            Phase::Starting | Phase::Up => self.end(now, Then::Start),
            Phase::Stopping(_) => self.go_on(Phase::Stopping(Then::Start)),
            Phase::Emptying(_) => self.go_on(Phase::Emptying(Then::Start)),
        }
    }

    fn end(&mut self, now: Instant, then: Then) -> Vec<Action> {
        match self.phase {
            Phase::Starting | Phase::Up => {
                self.phase = Phase::Stopping(then);
                let timer = self.arm(now + self.policy.goodbye);
                vec![Action::Goodbye(self.incarnation), timer]
            }
            Phase::Stopping(_) => self.go_on(Phase::Stopping(then)),
            Phase::Emptying(_) => self.go_on(Phase::Emptying(then)),
            // A rest does not undo a stop, nor make a failed one look well.
            Phase::Stopped | Phase::Failed { .. } if then == Then::Rest => Vec::new(),
            Phase::Idle | Phase::BackingOff { .. } | Phase::Failed { .. } | Phase::Stopped => {
                let phase = if then == Then::Stay { Phase::Stopped } else { Phase::Idle };
                self.go_on(phase)
            }
        }
    }

    fn exited(&mut self, now: Instant, exit: Exit, jitter: &dyn Jitter) -> Vec<Action> {
        let asked = match self.phase {
            Phase::Stopping(then) => Some(then),
            Phase::Starting | Phase::Up => None,
            _ => return Vec::new(),
        };
        let mut actions = Vec::new();
        let blame = exit.blame();
        if blame == Blame::Us {
            actions.push(Action::CountBug);
        }
        if blame == Blame::Us || asked.is_none() && (blame == Blame::Weather || self.overdue) {
            self.last_exit = Some(if self.overdue { self.too_late() } else { exit });
        }
        let then = match asked {
            Some(then) => then,
            None if blame == Blame::Nobody && !self.overdue => Then::Rest,
            None => self.after_death(now, jitter),
        };
        self.go_on(Phase::Emptying(then));
        actions.push(Action::AwaitEmpty(self.incarnation));
        actions
    }

    fn too_late(&self) -> Exit {
        Exit::HandshakeFailed {
            reason: format!("not ready within {:?}", self.policy.start_deadline).into(),
            tail: "".into(),
        }
    }

    fn after_death(&mut self, now: Instant, jitter: &dyn Jitter) -> Then {
        self.died = true;
        let deaths = self.deaths.spend(now);
        if self.deaths.is_exhausted_by(deaths) {
            Then::Fail
        } else if self.policy.restart == Restart::OnUse {
            Then::Rest
        } else {
            match backoff(deaths, jitter) {
                Duration::ZERO => Then::Start,
                wait => Then::BackOff { attempt: deaths, wait },
            }
        }
    }

    fn emptied(&mut self, now: Instant) -> Vec<Action> {
        let Phase::Emptying(then) = self.phase else { return Vec::new() };
        match then {
            Then::Start => self.start(now),
            Then::Rest => self.go_on(Phase::Idle),
            Then::Stay => self.go_on(Phase::Stopped),
            Then::BackOff { attempt, wait } => {
                self.phase = Phase::BackingOff { attempt, until: now + wait };
                vec![self.arm(now + wait)]
            }
            Then::Fail => {
                let retry_at = now + self.policy.retry_failed_after;
                self.phase = Phase::Failed { retry_at };
                vec![self.arm(retry_at)]
            }
        }
    }

    fn due(&mut self, now: Instant) -> Vec<Action> {
        match self.phase {
            Phase::Starting => {
                self.overdue = true;
                vec![Action::Kill(self.incarnation)]
            }
            Phase::Stopping(_) => vec![Action::Kill(self.incarnation)],
            Phase::BackingOff { .. } => self.start(now),
            Phase::Failed { .. } => {
                self.deaths.clear();
                match self.policy.restart {
                    Restart::AtOnce => self.start(now),
                    Restart::OnUse => self.go_on(Phase::Idle),
                }
            }
            Phase::Idle | Phase::Up | Phase::Emptying(_) | Phase::Stopped => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
