//! What came of the steps, as a row of a table.

use std::fmt;
use std::time::Duration;

/// What came of the steps of one or more runs.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) edits: usize,
    /// Each told, and not clean.
    pub(crate) unknown: Vec<String>,
    /// How many of these were never known at all.
    pub(crate) never: usize,
    pub(crate) wrong: Vec<String>,
    pub(crate) times: Vec<Duration>,
}

impl Tally {
    pub(crate) fn unknown(&mut self, what: &str) {
        self.unknown.push(what.to_owned());
    }

    pub(crate) fn wrong(&mut self, what: &str, differences: Vec<String>) {
        let told = differences.into_iter().map(|wrong| format!("{what}: {wrong}"));
        self.wrong.extend(told);
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.edits += other.edits;
        self.never += other.never;
        self.unknown.extend(other.unknown);
        self.wrong.extend(other.wrong);
        self.times.extend(other.times);
    }

    fn quantile(&self, share: f64) -> f64 {
        let mut times: Vec<_> = self.times.iter().map(Duration::as_secs_f64).collect();
        times.sort_by(f64::total_cmp);
        let at = (times.len().saturating_sub(1) as f64 * share).round() as usize;
        times.get(at).map_or(f64::NAN, |time| time * 1e3)
    }
}

/// The names of the columns.
pub(crate) fn heading() -> String {
    format!(
        "{:<28} {:>5} {:>6} {:>6} {:>8} {:>6} {:>8} {:>8}",
        "server", "runs", "edits", "wrong", "unknown", "never", "p50 ms", "p99 ms"
    )
}

/// One server's row.
pub(crate) struct Row<'a>(pub(crate) &'a str, pub(crate) usize, pub(crate) &'a Tally);

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(server, runs, tally) = self;
        let (wrong, unknown, never) = (tally.wrong.len(), tally.unknown.len(), tally.never);
        let (half, most) = (tally.quantile(0.5), tally.quantile(0.99));
        let edits = tally.edits;
        write!(
            f,
            "{server:<28} {runs:>5} {edits:>6} {wrong:>6} {unknown:>8} {never:>6} {half:>8.1} {most:>8.1}"
        )
    }
}
