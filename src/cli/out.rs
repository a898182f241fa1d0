//! The only place that prints: standard output for results, standard error for
//! everything said beside them.
//!
//! A reader that went away (`| head`) is not an error of ours.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Prints a result.
pub(crate) fn say(text: impl Display) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Prints bytes as they are.
pub(crate) fn raw(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// Says something beside the result.
pub(crate) fn aside(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "hostler: {text}");
}

/// Does a person look at standard output.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Shows that something goes on: one moving line on a terminal, plain lines
/// elsewhere.
pub(crate) struct Progress {
    bar: ProgressBar,
    plain: bool,
}

impl Progress {
    /// Begins.
    pub(crate) fn begin(what: String) -> Self {
        let plain = !io::stderr().is_terminal();
        if plain {
            aside(&what);
        }
        let target =
            if plain { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(what);
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar, plain }
    }

    /// Shows what is being done now, in words of ours or of a program that we run.
    pub(crate) fn step(&self, text: &str) {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        if text.trim().is_empty() {
            return;
        }
        if self.plain {
            aside(text);
        } else {
            self.bar.set_message(text);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
