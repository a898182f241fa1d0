//! Lives of a slot as one-line scripts, and what it decided at each word.
//!
//! `use`, `renew`, `ready`, `die` (the weather's fault), `bug`, `quit` (as asked),
//! `empty`, `due` (the armed timer), `stop`, `rest`, `+5` (so many seconds pass),
//! `old:WORD` (the event, of an earlier incarnation or timer).

use expect_test::{Expect, expect};

use super::*;
use crate::ports::Ended;

struct Longest;

impl Jitter for Longest {
    fn up_to(&self, most: Duration) -> Duration {
        most
    }
}

struct Life {
    slot: Slot,
    start: Instant,
    now: Instant,
    armed: Option<(Token, Instant)>,
}

impl Life {
    fn event(&self, word: &str) -> Event {
        let (word, of, token) = match word.strip_prefix("old:") {
            Some(word) => (word, Incarnation(self.slot.incarnation.0 - 1), Token(0)),
            None => (word, self.slot.incarnation, self.armed.expect("a timer is armed").0),
        };
        match word {
            "use" => Event::Use,
            "renew" => Event::Renew,
            "ready" => Event::Ready(of),
            "die" => {
                Event::Exited(of, Exit::ProcessDied { ended: Ended::Signal(9), tail: "".into() })
            }
            "bug" => Event::Exited(of, Exit::Bug("index out of range".into())),
            "quit" => Event::Exited(of, Exit::Requested),
            "empty" => Event::Emptied(of),
            "due" => Event::Timer(token),
            "stop" => Event::Stop,
            "rest" => Event::Rest,
            _ => panic!("no such word: {word}"),
        }
    }

    fn at(&self, then: Instant) -> String {
        format!("{:.1}", then.duration_since(self.start).as_secs_f64())
    }

    fn line(&mut self, word: &str) -> String {
        if let Some(seconds) = word.strip_prefix('+') {
            self.now += Duration::from_secs_f64(seconds.parse().expect("a number"));
            return format!("{word}\n");
        }
        if word == "due" {
            self.now = self.now.max(self.armed.expect("a timer is armed").1);
        }
        let event = self.event(word);
        let actions = self.slot.step(self.now, event, &Longest);
        let mut line = format!("{word:<9} {:<34}", self.phase());
        for action in actions {
            line += &match action {
                Action::Arm(token, at) => {
                    self.armed = Some((token, at));
                    format!(" Arm({})", self.at(at))
                }
                Action::Spawn(of) => format!(" Spawn({of})"),
                Action::Goodbye(of) => format!(" Goodbye({of})"),
                Action::Kill(of) => format!(" Kill({of})"),
                Action::AwaitEmpty(of) => format!(" AwaitEmpty({of})"),
                Action::CountBug => " CountBug".to_owned(),
            };
        }
        line.trim_end().to_owned() + "\n"
    }

    fn phase(&self) -> String {
        match self.slot.phase {
            Phase::BackingOff { attempt, until } => {
                format!("BackingOff({attempt}, {})", self.at(until))
            }
            Phase::Failed { retry_at } => format!("Failed({})", self.at(retry_at)),
            other => format!("{other:?}"),
        }
    }
}

fn check(policy: Policy, script: &str, expected: &Expect) {
    let now = Instant::now();
    let slot = Slot::new(policy);
    let mut life = Life { slot, start: now, now, armed: Some((Token(0), now)) };
    let lines: String = script.split_whitespace().map(|word| life.line(word)).collect();
    expected.assert_eq(&lines);
}

fn at_once(script: &str, expected: &Expect) {
    check(Policy::DEFAULT, script, expected);
}

fn on_use(script: &str, expected: &Expect) {
    check(Policy { restart: Restart::OnUse, ..Policy::DEFAULT }, script, expected);
}

#[test]
fn starts_on_use_and_restarts_at_once() {
    at_once(
        "use use ready use die use empty ready",
        &expect![[r#"
        use       Starting                           Spawn(#1) Arm(30.0)
        use       Starting
        ready     Up
        use       Up
        die       Emptying(Start)                    AwaitEmpty(#1)
        use       Emptying(Start)
        empty     Starting                           Spawn(#2) Arm(30.0)
        ready     Up
    "#]],
    );
}

#[test]
fn five_deaths_make_it_failed_and_five_minutes_heal_it() {
    at_once(
        "use die empty die empty due die empty due die empty due die empty use due ready",
        &expect![[r#"
            use       Starting                           Spawn(#1) Arm(30.0)
            die       Emptying(Start)                    AwaitEmpty(#1)
            empty     Starting                           Spawn(#2) Arm(30.0)
            die       Emptying(BackOff { attempt: 2, wait: 200ms }) AwaitEmpty(#2)
            empty     BackingOff(2, 0.2)                 Arm(0.2)
            due       Starting                           Spawn(#3) Arm(30.2)
            die       Emptying(BackOff { attempt: 3, wait: 400ms }) AwaitEmpty(#3)
            empty     BackingOff(3, 0.6)                 Arm(0.6)
            due       Starting                           Spawn(#4) Arm(30.6)
            die       Emptying(BackOff { attempt: 4, wait: 800ms }) AwaitEmpty(#4)
            empty     BackingOff(4, 1.4)                 Arm(1.4)
            due       Starting                           Spawn(#5) Arm(31.4)
            die       Emptying(Fail)                     AwaitEmpty(#5)
            empty     Failed(301.4)                      Arm(301.4)
            use       Failed(301.4)
            due       Starting                           Spawn(#6) Arm(331.4)
            ready     Up
        "#]],
    );
}

#[test]
fn deaths_that_lie_far_apart_never_make_it_failed() {
    at_once(
        "use ready die empty ready +61 die empty ready +61 die empty ready +61 die empty \
         ready +61 die empty ready +61 die empty",
        &expect![[r#"
            use       Starting                           Spawn(#1) Arm(30.0)
            ready     Up
            die       Emptying(Start)                    AwaitEmpty(#1)
            empty     Starting                           Spawn(#2) Arm(30.0)
            ready     Up
            +61
            die       Emptying(Start)                    AwaitEmpty(#2)
            empty     Starting                           Spawn(#3) Arm(91.0)
            ready     Up
            +61
            die       Emptying(Start)                    AwaitEmpty(#3)
            empty     Starting                           Spawn(#4) Arm(152.0)
            ready     Up
            +61
            die       Emptying(Start)                    AwaitEmpty(#4)
            empty     Starting                           Spawn(#5) Arm(213.0)
            ready     Up
            +61
            die       Emptying(Start)                    AwaitEmpty(#5)
            empty     Starting                           Spawn(#6) Arm(274.0)
            ready     Up
            +61
            die       Emptying(Start)                    AwaitEmpty(#6)
            empty     Starting                           Spawn(#7) Arm(335.0)
        "#]],
    );
}

#[test]
fn a_start_that_takes_too_long_is_killed_and_counts() {
    at_once(
        "use due quit empty",
        &expect![[r#"
        use       Starting                           Spawn(#1) Arm(30.0)
        due       Starting                           Kill(#1)
        quit      Emptying(Start)                    AwaitEmpty(#1)
        empty     Starting                           Spawn(#2) Arm(60.0)
    "#]],
    );
}

#[test]
fn stays_stopped_whatever_comes_late() {
    at_once(
        "use ready stop use die empty use due old:ready old:die renew",
        &expect![[r#"
        use       Starting                           Spawn(#1) Arm(30.0)
        ready     Up
        stop      Stopping(Stay)                     Goodbye(#1) Arm(5.0)
        use       Stopping(Stay)
        die       Emptying(Stay)                     AwaitEmpty(#1)
        empty     Stopped
        use       Stopped
        due       Stopped
        old:ready Stopped
        old:die   Stopped
        renew     Starting                           Spawn(#2) Arm(35.0)
    "#]],
    );
}

#[test]
fn a_stop_during_a_backoff_is_not_undone_by_its_timer() {
    at_once(
        "use die empty die empty stop old:due due",
        &expect![[r#"
        use       Starting                           Spawn(#1) Arm(30.0)
        die       Emptying(Start)                    AwaitEmpty(#1)
        empty     Starting                           Spawn(#2) Arm(30.0)
        die       Emptying(BackOff { attempt: 2, wait: 200ms }) AwaitEmpty(#2)
        empty     BackingOff(2, 0.2)                 Arm(0.2)
        stop      Stopped
        old:due   Stopped
        due       Stopped
    "#]],
    );
}

#[test]
fn a_goodbye_that_takes_too_long_ends_in_a_kill() {
    at_once(
        "use ready stop due die empty",
        &expect![[r#"
        use       Starting                           Spawn(#1) Arm(30.0)
        ready     Up
        stop      Stopping(Stay)                     Goodbye(#1) Arm(5.0)
        due       Stopping(Stay)                     Kill(#1)
        die       Emptying(Stay)                     AwaitEmpty(#1)
        empty     Stopped
    "#]],
    );
}

#[test]
fn rests_when_nobody_needs_it_and_comes_back_on_use() {
    at_once(
        "use ready rest use quit empty ready rest quit use empty",
        &expect![[r#"
        use       Starting                           Spawn(#1) Arm(30.0)
        ready     Up
        rest      Stopping(Rest)                     Goodbye(#1) Arm(5.0)
        use       Stopping(Start)
        quit      Emptying(Start)                    AwaitEmpty(#1)
        empty     Starting                           Spawn(#2) Arm(30.0)
        ready     Up
        rest      Stopping(Rest)                     Goodbye(#2) Arm(5.0)
        quit      Emptying(Rest)                     AwaitEmpty(#2)
        use       Emptying(Start)
        empty     Starting                           Spawn(#3) Arm(30.0)
    "#]],
    );
}

#[test]
fn renewal_forgives_all_deaths() {
    at_once(
        "use die empty die empty due die empty due die empty due die empty renew die empty",
        &expect![[r#"
            use       Starting                           Spawn(#1) Arm(30.0)
            die       Emptying(Start)                    AwaitEmpty(#1)
            empty     Starting                           Spawn(#2) Arm(30.0)
            die       Emptying(BackOff { attempt: 2, wait: 200ms }) AwaitEmpty(#2)
            empty     BackingOff(2, 0.2)                 Arm(0.2)
            due       Starting                           Spawn(#3) Arm(30.2)
            die       Emptying(BackOff { attempt: 3, wait: 400ms }) AwaitEmpty(#3)
            empty     BackingOff(3, 0.6)                 Arm(0.6)
            due       Starting                           Spawn(#4) Arm(30.6)
            die       Emptying(BackOff { attempt: 4, wait: 800ms }) AwaitEmpty(#4)
            empty     BackingOff(4, 1.4)                 Arm(1.4)
            due       Starting                           Spawn(#5) Arm(31.4)
            die       Emptying(Fail)                     AwaitEmpty(#5)
            empty     Failed(301.4)                      Arm(301.4)
            renew     Starting                           Spawn(#6) Arm(31.4)
            die       Emptying(Start)                    AwaitEmpty(#6)
            empty     Starting                           Spawn(#7) Arm(31.4)
        "#]],
    );
}

#[test]
fn renewal_of_one_that_is_up_says_goodbye_first() {
    at_once(
        "use ready renew quit empty ready",
        &expect![[r#"
        use       Starting                           Spawn(#1) Arm(30.0)
        ready     Up
        renew     Stopping(Start)                    Goodbye(#1) Arm(5.0)
        quit      Emptying(Start)                    AwaitEmpty(#1)
        empty     Starting                           Spawn(#2) Arm(30.0)
        ready     Up
    "#]],
    );
}

#[test]
fn events_of_an_earlier_incarnation_are_ignored() {
    at_once(
        "use die empty old:ready old:die old:empty old:due ready old:die",
        &expect![[r#"
        use       Starting                           Spawn(#1) Arm(30.0)
        die       Emptying(Start)                    AwaitEmpty(#1)
        empty     Starting                           Spawn(#2) Arm(30.0)
        old:ready Starting
        old:die   Starting
        old:empty Starting
        old:due   Starting
        ready     Up
        old:die   Up
    "#]],
    );
}

#[test]
fn a_bug_is_counted_and_the_resource_comes_back() {
    at_once(
        "use ready bug empty ready",
        &expect![[r#"
        use       Starting                           Spawn(#1) Arm(30.0)
        ready     Up
        bug       Emptying(Start)                    CountBug AwaitEmpty(#1)
        empty     Starting                           Spawn(#2) Arm(30.0)
        ready     Up
    "#]],
    );
}

#[test]
fn one_that_restarts_on_use_rests_after_a_death() {
    on_use(
        "use ready die empty use ready die empty",
        &expect![[r#"
        use       Starting                           Spawn(#1) Arm(30.0)
        ready     Up
        die       Emptying(Rest)                     AwaitEmpty(#1)
        empty     Idle
        use       Starting                           Spawn(#2) Arm(30.0)
        ready     Up
        die       Emptying(Rest)                     AwaitEmpty(#2)
        empty     Idle
    "#]],
    );
}

#[test]
fn one_that_restarts_on_use_fails_too_and_is_idle_again_later() {
    on_use(
        "use die empty use die empty use die empty use die empty use die empty use due use",
        &expect![[r#"
            use       Starting                           Spawn(#1) Arm(30.0)
            die       Emptying(Rest)                     AwaitEmpty(#1)
            empty     Idle
            use       Starting                           Spawn(#2) Arm(30.0)
            die       Emptying(Rest)                     AwaitEmpty(#2)
            empty     Idle
            use       Starting                           Spawn(#3) Arm(30.0)
            die       Emptying(Rest)                     AwaitEmpty(#3)
            empty     Idle
            use       Starting                           Spawn(#4) Arm(30.0)
            die       Emptying(Rest)                     AwaitEmpty(#4)
            empty     Idle
            use       Starting                           Spawn(#5) Arm(30.0)
            die       Emptying(Fail)                     AwaitEmpty(#5)
            empty     Failed(300.0)                      Arm(300.0)
            use       Failed(300.0)
            due       Idle
            use       Starting                           Spawn(#6) Arm(330.0)
        "#]],
    );
}

#[test]
fn an_end_that_nobody_asked_for_and_nobody_regrets() {
    at_once(
        "use ready quit empty use",
        &expect![[r#"
        use       Starting                           Spawn(#1) Arm(30.0)
        ready     Up
        quit      Emptying(Rest)                     AwaitEmpty(#1)
        empty     Idle
        use       Starting                           Spawn(#2) Arm(30.0)
    "#]],
    );
}
