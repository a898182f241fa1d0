//! How every bench prints: floor, ours, peer and goal of one run, and the ratio.
//!
//! A bench measures and says; it does not judge by exit code, since a shared
//! machine has slow moments.

use std::fmt::Write as _;
use std::time::Duration;

/// One measured figure.
pub(crate) struct Figure {
    /// What was measured.
    pub(crate) what: String,
    /// The unit of all numbers of the row.
    pub(crate) unit: &'static str,
    /// What could at best be reached, measured in the same run.
    pub(crate) floor: Option<f64>,
    /// What we reach.
    pub(crate) ours: f64,
    /// What others reach, and who.
    pub(crate) peer: Option<(f64, &'static str)>,
    /// At most this, where there is a goal.
    pub(crate) goal: Option<f64>,
}

impl Figure {
    /// Makes a row that has nothing to stand beside it yet.
    pub(crate) fn new(what: impl Into<String>, unit: &'static str, ours: f64) -> Self {
        Self { what: what.into(), unit, floor: None, ours, peer: None, goal: None }
    }

    /// Says what could at best be reached.
    pub(crate) fn floor(self, floor: f64) -> Self {
        Self { floor: Some(floor), ..self }
    }

    /// Says what others reach, and who.
    pub(crate) fn peer(self, value: f64, who: &'static str) -> Self {
        Self { peer: Some((value, who)), ..self }
    }

    /// Says what it shall be at most.
    pub(crate) fn goal(self, goal: f64) -> Self {
        Self { goal: Some(goal), ..self }
    }
}

/// Prints figures as a table.
pub(crate) fn print(figures: &[Figure]) {
    let mut text = format!(
        "{:<58} {:>10} {:>10} {:>8} {:>10} {:>10}  {}\n",
        "figure", "floor", "ours", "ratio", "goal", "met", "peer"
    );
    for figure in figures {
        let number = |value: f64| format!("{value:.3}");
        let floor = figure.floor.map_or_else(|| "-".to_owned(), number);
        let ratio = figure
            .floor
            .filter(|floor| *floor > 0.0)
            .map_or_else(|| "-".to_owned(), |floor| format!("{:.2}x", figure.ours / floor));
        let met = match figure.goal {
            Some(goal) if figure.ours <= goal => "yes",
            Some(_) => "NO",
            None => "-",
        };
        let peer = figure.peer.map_or_else(String::new, |(value, who)| {
            if figure.ours > 0.0 {
                format!("{value:.1} ({who}, {:.1}x ours)", value / figure.ours)
            } else {
                format!("{value:.1} ({who})")
            }
        });
        let what = format!("{} [{}]", figure.what, figure.unit);
        let _ = writeln!(
            text,
            "{what:<58} {floor:>10} {:>10} {ratio:>8} {:>10} {met:>10}  {peer}",
            number(figure.ours),
            figure.goal.map_or_else(|| "-".to_owned(), number),
        );
    }
    println!("{text}");
}

/// Returns a span in milliseconds.
pub(crate) fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Returns the value below which `share` of the samples lie.
pub(crate) fn quantile(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let last = samples.len().saturating_sub(1);
    samples.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

/// Returns a process's resident bytes.
pub(crate) fn resident(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * 4096
}

/// Returns how many descriptors this process has open.
pub(crate) fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}
