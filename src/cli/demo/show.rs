//! How a person watches a part: a line per run that moves on a terminal, plain
//! lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::out;

/// What is on the screen.
pub(super) struct Show {
    bars: MultiProgress,
    plain: bool,
}

/// One run's line.
pub(super) struct Line {
    bar: ProgressBar,
}

impl Show {
    /// Begins with nothing.
    pub(super) fn begin() -> Self {
        let plain = !std::io::stderr().is_terminal();
        let target =
            if plain { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        Self { bars: MultiProgress::with_draw_target(target), plain }
    }

    /// Adds a line for something that takes so many steps.
    pub(super) fn line(&self, name: &str, steps: u64) -> Line {
        let bar = self.bars.add(ProgressBar::new(steps));
        let style = ProgressStyle::with_template("{prefix:20} {bar:24} {pos:>3}/{len} {wide_msg}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        Line { bar }
    }

    /// Says something that stays.
    pub(super) fn say(&self, text: &str) {
        if self.plain {
            out::say(text);
        } else {
            self.bars.suspend(|| out::say(text));
        }
    }

    /// Says how long calls took, and all together.
    pub(super) fn times(&self, mut times: Vec<Duration>, took: Duration) {
        times.sort_unstable();
        let at = |share: f64| {
            let index = (times.len().saturating_sub(1) as f64 * share).round() as usize;
            times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        self.say(&format!("calls: {}, p50 {:.1} ms, p99 {:.1} ms", times.len(), at(0.5), at(0.99)));
        self.say(&format!("took {:.1} s", took.as_secs_f64()));
    }
}

impl Line {
    /// Shows what was done, one step on.
    pub(super) fn step(&self, text: &str) {
        self.bar.inc(1);
        self.bar.set_message(text.to_owned());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Show {
    fn drop(&mut self) {
        // What is drawn is gone; what was said stays.
        let _ = self.bars.clear();
    }
}
