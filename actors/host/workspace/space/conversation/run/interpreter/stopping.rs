//! How a cell is stopped, step by step, pure.
//!
//! An interrupt of the interpreter alone leaves what earlier cells put into the
//! background in peace; one of the whole group is for what the cell waits for, such as
//! `os.system`, which ignores its own. Whoever answers none of them is killed.

use std::time::Duration;

/// What is done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Interrupt the interpreter.
    Interrupt,
    /// Interrupt its group, and once more itself.
    InterruptGroup,
    /// Have it say where it stands.
    Stack,
    /// Kill it.
    Kill,
}

/// What is done when, since the stop was wanted.
const LADDER: [(Duration, Step); 4] = [
    (Duration::ZERO, Step::Interrupt),
    (Duration::from_secs(1), Step::InterruptGroup),
    (Duration::from_millis(3800), Step::Stack),
    (Duration::from_secs(4), Step::Kill),
];

/// How far a stop has come.
#[derive(Debug, Default)]
pub(super) struct Ladder {
    done: usize,
}

impl Ladder {
    /// Returns when the next step is due, since the stop was wanted.
    pub(super) fn due(&self) -> Option<Duration> {
        LADDER.get(self.done).map(|(due, _)| *due)
    }

    /// Takes the next step, if that is due.
    pub(super) fn step(&mut self, since: Duration) -> Option<Step> {
        let (due, step) = LADDER.get(self.done)?;
        (*due <= since).then(|| {
            self.done += 1;
            *step
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_taken_once_and_in_its_time() {
        let mut ladder = Ladder::default();
        let mut taken = Vec::new();
        for tenths in 0..60 {
            while let Some(step) = ladder.step(Duration::from_millis(tenths * 100)) {
                taken.push((tenths, step));
            }
        }
        let expected =
            [(0, Step::Interrupt), (10, Step::InterruptGroup), (38, Step::Stack), (40, Step::Kill)];
        assert_eq!(taken, expected);
        assert_eq!(ladder.due(), None);
    }
}
