//! Runs one program to its end, bounded in time and in what it may print.
//!
//! For questions to programs (`--version`) and for installations; what lives on is
//! the tree's. The tricky thing: the end of its pipe proves nothing, as something
//! that it left behind may hold it open, so the main process's end decides.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use hostler_actors::ports::{
    Ended, Launch, LaunchError, LaunchOrder, Launched, Leftovers, Owner, PipeReader, Posture,
    ProcessTree, Wire,
};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout, timeout_at};

/// How much of an answer to a question of ours is kept, from its beginning.
const KEPT_BYTES: usize = 64 * 1024;

/// How long is waited for output that was on its way when the process ended, and
/// how long for a killed tree to be empty.
const DRAIN: Duration = Duration::from_millis(200);
const EMPTY: Duration = Duration::from_secs(5);

/// How many lines of an error's tail are shown.
const TAIL_LINES: usize = 24;

/// A program to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneShot<'a> {
    /// What to call it in errors.
    pub(crate) label: &'a str,
    /// The program, resolved.
    pub(crate) program: &'a Path,
    /// Its arguments.
    pub(crate) args: &'a [OsString],
    /// Where it runs.
    pub(crate) cwd: &'a Path,
    /// Its whole environment.
    pub(crate) env: &'a [(OsString, OsString)],
    /// How long it may take.
    pub(crate) bound: Duration,
    /// On whose account it runs.
    pub(crate) terms: Terms<'a>,
}

/// On whose account a program runs, and what it may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// Who is charged.
    pub(crate) owner: Owner,
    /// What it may write.
    pub(crate) posture: &'a Posture,
    /// What is kept of what it prints.
    pub(crate) kept: Kept,
}

/// What is kept of what a program prints.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// How many bytes of its standard output, from its beginning.
    pub(crate) bytes: usize,
    /// Does its standard error go the same way.
    pub(crate) with_errors: bool,
    /// Is it killed when it prints more.
    pub(crate) strict: bool,
}

impl Terms<'_> {
    /// Those of the host's own questions and installations.
    pub(crate) const OURS: Self = Self {
        owner: Owner::Host,
        posture: &Posture::Writable,
        kept: Kept { bytes: KEPT_BYTES, with_errors: false, strict: false },
    };
}

/// How it ended and what it printed.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) ended: Ended,
    pub(crate) stdout: String,
    stderr: String,
}

impl Finished {
    /// Did it exit with 0.
    pub(crate) fn is_success(&self) -> bool {
        self.ended == Ended::Code(0)
    }

    /// Returns its last words, of standard error if it wrote there.
    pub(crate) fn tail(&self) -> String {
        let text = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let lines: Vec<&str> = text.trim_end().lines().collect();
        lines.split_at(lines.len().saturating_sub(TAIL_LINES)).1.join("\n")
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ended)?;
        match self.tail() {
            tail if tail.is_empty() => f.write_str(" and printed nothing"),
            tail => write!(f, ": {tail}"),
        }
    }
}

/// Why there is no [`Finished`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum OneShotError {
    /// It was not started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// It took too long and was killed.
    #[error("{label}: killed, as it was not done within {bound:?}{tail}")]
    TooLong { label: String, bound: Duration, tail: String },
    /// It printed too much and was killed.
    #[error("{label}: killed, as it printed more than {bytes} bytes")]
    TooMuch { label: String, bytes: usize },
}

/// Runs a program. `on_line` is told each line that it prints, as it comes.
pub(crate) async fn run(
    launch: &dyn Launch,
    shot: OneShot<'_>,
    on_line: &mut (dyn FnMut(&str) + Send),
) -> Result<Finished, OneShotError> {
    let Launched { tree, mut from_process, .. } = launch.launch(order(shot)).await?;
    let mut ended = tree.ended();
    let Kept { bytes, strict, .. } = shot.terms.kept;
    let mut stdout = Stdout {
        pipe: from_process.remove(&1),
        most: bytes,
        strict,
        kept: Vec::new(),
        shown: 0,
        over: false,
    };
    let deadline = Instant::now() + shot.bound;
    let over = timeout_at(deadline, async {
        tokio::select! {
            over = ended.wait_for(Option::is_some) => Some(over.ok().and_then(|ended| *ended)),
            () = stdout.read_until_over(on_line) => None,
        }
    })
    .await;
    let Ok(Some(over)) = over else {
        kill(&*tree).await;
        let label = shot.label.to_owned();
        if over.is_ok() {
            return Err(OneShotError::TooMuch { label, bytes });
        }
        let tail = match tree.ring_tail(TAIL_LINES) {
            tail if tail.trim().is_empty() => String::new(),
            tail => format!("; its last words: {tail}"),
        };
        return Err(OneShotError::TooLong { label, bound: shot.bound, tail });
    };
    // Ends by its bound where something else holds the pipe.
    let _ = timeout(DRAIN, stdout.read_rest(on_line)).await;
    if stdout.over {
        return Err(OneShotError::TooMuch { label: shot.label.to_owned(), bytes });
    }
    let kept = String::from_utf8(stdout.kept);
    Ok(Finished {
        ended: over.unwrap_or(Ended::Unknown),
        stdout: kept.unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()),
        stderr: tree.ring_tail(TAIL_LINES),
    })
}

async fn kill(tree: &dyn ProcessTree) {
    tree.kill();
    let mut emptied = tree.emptied();
    // A tree that cannot be emptied is the launcher's to report.
    let _ = timeout(EMPTY, emptied.wait_for(|&empty| empty)).await;
}

fn order(shot: OneShot<'_>) -> LaunchOrder {
    let errors = if shot.terms.kept.with_errors { Wire::SameAs(1) } else { Wire::Ring };
    LaunchOrder {
        label: shot.label.to_owned(),
        program: shot.program.to_owned(),
        args: shot.args.to_vec(),
        cwd: shot.cwd.to_owned(),
        env: shot.env.to_vec(),
        wires: [(0, Wire::Null), (1, Wire::FromProcess), (2, errors)].into(),
        owner: shot.terms.owner,
        posture: shot.terms.posture.clone(),
        leftovers: Leftovers::Kill,
    }
}

struct Stdout {
    pipe: Option<PipeReader>,
    /// How much is kept.
    most: usize,
    /// Does reading end when there is more.
    strict: bool,
    kept: Vec<u8>,
    /// How much of what was kept `on_line` was told of.
    shown: usize,
    /// Was there more, where that ends the reading.
    over: bool,
}

impl Stdout {
    /// Reads for as long as there may be something, and returns only when it was
    /// too much.
    async fn read_until_over(&mut self, on_line: &mut (dyn FnMut(&str) + Send)) {
        self.read_rest(on_line).await;
        if !self.over {
            std::future::pending::<()>().await;
        }
    }

    async fn read_rest(&mut self, on_line: &mut (dyn FnMut(&str) + Send)) {
        let mut buffer = [0; 4096];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut buffer).await {
                Ok(0) | Err(_) => self.pipe = None,
                Ok(read) => {
                    let room = self.most.saturating_sub(self.kept.len());
                    self.kept.extend(buffer.iter().take(read.min(room)));
                    self.show(on_line);
                    self.over = self.strict && read > room;
                    if self.over {
                        return;
                    }
                }
            }
        }
    }

    fn show(&mut self, on_line: &mut (dyn FnMut(&str) + Send)) {
        let rest = self.kept.split_at(self.shown).1;
        let Some(end) = rest.iter().rposition(|&byte| byte == b'\n') else { return };
        let (lines, _) = rest.split_at(end);
        for line in String::from_utf8_lossy(lines).lines() {
            on_line(line);
        }
        self.shown += end + 1;
    }
}

#[cfg(test)]
pub(crate) mod direct;
#[cfg(test)]
mod tests;
