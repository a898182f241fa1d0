//! `bash`: runs one shell command, and answers when it has ended.
//!
//! Waits for the process and never for its pipe, which a background process may hold
//! open. What is left running is kept by the run and named. A command that fails is a
//! result; one that was cut off (time, cancel) is a failure that shows what it printed.
//! Details: `exit_code`, `signal` (null where they do not apply), `timed_out`,
//! `cancelled`, `duration_ms`, `output_bytes`, `handle`, `background` (`handle`,
//! `processes[{pid, command}]`; null if nothing is left).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hostler_actors::ports::{
    BoxFuture, Ended, LaunchOrder, Launched, Leftovers, Owner, Posture, ProcessTree, Wire,
};
use hostler_actors::profile::Tier;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::background::intake::Intake;
use crate::background::left::{Left, left_of};
use crate::background::{emptied, stop};
use crate::config::Bash;
use crate::folder::disk::cancelled;
use crate::handles::capture::Clipped;
use crate::seat::Seat;
use crate::tools::{
    Cancel, Effect, Failure, Outcome, Output, Tool, Wired, arguments, never, schema_of,
    writes_nothing,
};

/// How long the rest of a tree may take to go after its main process, before it counts
/// as left in the background. A pipeline's last process is gone in a millisecond.
const SETTLE: Duration = Duration::from_millis(100);
/// Characters of a command that name it in `status`.
const LABEL: usize = 60;

pub(crate) const TOOL: Tool = Tool {
    name: "bash",
    tier: Tier::Exec,
    parallel_safe: true,
    overtakes: never,
    mutates_worktree: true,
    wired: Wired::Folder,
    effects: &[Effect::ProcessSpawn, Effect::WorktreeWrite],
    description: "Runs a shell command in the work folder, each in a new shell, without input. \
        Returns its output and exit code when it ends. What it leaves in the background (`cmd &`) \
        goes on until the run ends. Long output is read by its handle.",
    schema: schema_of::<Args>,
    writes: writes_nothing,
    call,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The command, for bash -c.
    command: String,
    /// What it does, in a few words: its name in the status.
    #[serde(default)]
    description: Option<String>,
    /// When to stop it; 120 if left out and at most 1800, unless configured otherwise.
    #[serde(default)]
    #[schemars(range(min = 1))]
    timeout_seconds: Option<u64>,
}

fn call(seat: &Seat, given: Value, cancel: Cancel) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let args: Args = arguments(TOOL.name, given)?;
        let limits = &seat.languages.config.bash;
        let bound = bound(args.timeout_seconds, limits)?;
        let label = label(&args);
        let order = order(seat, &args, label.clone());
        let launched = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(cancelled(TOOL.name, "nothing was started")),
            launched = seat.launch.launch(order) => launched?,
        };
        let Launched { tree, mut from_process, .. } = launched;
        let mut call = Call {
            intake: Intake::new(from_process.remove(&1), &seat.handles),
            tree,
            begun: Instant::now(),
        };
        let over = call.until_over(bound, &cancel).await;
        match over {
            Over::Ended(ended) => call.ended(ended, seat, &label).await,
            Over::TimedOut => {
                let cut = format!(
                    "timed out after {} s; give more timeout_seconds (at most {}), or start it in \
                     the background with &",
                    bound.as_secs(),
                    limits.longest.as_secs()
                );
                Err(call.cut(&cut, &over).await)
            }
            Over::Cancelled => Err(call.cut("cancelled", &over).await),
        }
    })
}

fn bound(seconds: Option<u64>, limits: &Bash) -> Result<Duration, Failure> {
    match seconds {
        None => Ok(limits.deadline.min(limits.longest)),
        Some(0) => Err(Failure::new("bash: `timeout_seconds` is 0: give at least 1")),
        Some(seconds) if seconds <= limits.longest.as_secs() => Ok(Duration::from_secs(seconds)),
        Some(seconds) => Err(Failure::new(format!(
            "bash: `timeout_seconds` is {seconds}, over the limit of {}: start what takes longer \
             in the background with &",
            limits.longest.as_secs()
        ))),
    }
}

fn label(args: &Args) -> String {
    let words = args.description.as_deref().unwrap_or(&args.command);
    words.trim().lines().next().unwrap_or_default().chars().take(LABEL).collect()
}

fn order(seat: &Seat, args: &Args, label: String) -> LaunchOrder {
    LaunchOrder {
        label,
        program: shell(),
        args: vec!["-c".into(), args.command.clone().into()],
        cwd: seat.folder.root().to_owned(),
        env: seat.env.to_vec(),
        wires: BTreeMap::from([(0, Wire::Null), (1, Wire::FromProcess), (2, Wire::SameAs(1))]),
        owner: Owner::Run(seat.run),
        posture: Posture::Writable,
        leftovers: Leftovers::Keep,
    }
}

fn shell() -> PathBuf {
    let bash = Path::new("/bin/bash");
    if bash.exists() { bash.to_owned() } else { PathBuf::from("/bin/sh") }
}

/// A command that was started.
struct Call {
    tree: Arc<dyn ProcessTree>,
    intake: Intake,
    begun: Instant,
}

enum Over {
    Ended(Ended),
    TimedOut,
    Cancelled,
}

impl Call {
    async fn until_over(&mut self, bound: Duration, cancel: &Cancel) -> Over {
        let mut ended = self.tree.ended();
        let over = async {
            tokio::select! {
                biased;
                ended = ended.wait_for(Option::is_some) => {
                    Over::Ended(ended.ok().and_then(|ended| *ended).unwrap_or(Ended::Unknown))
                }
                () = cancel.cancelled() => Over::Cancelled,
                () = tokio::time::sleep(bound) => Over::TimedOut,
            }
        };
        self.intake.until(over).await
    }

    async fn ended(mut self, ended: Ended, seat: &Seat, label: &str) -> Outcome {
        let took = self.begun.elapsed();
        let empty = self.intake.until(tokio::time::timeout(SETTLE, emptied(&*self.tree))).await;
        self.intake.drain().await;
        let left = if empty.is_err() { Some(self.left().await) } else { None };
        let (shown, mut details) = self.told(took);
        let mut notes = vec![format!("{ended}, {:.1} s", took.as_secs_f64())];
        match ended {
            Ended::Code(code) => details.exit_code = Some(code),
            Ended::Signal(signal) => details.signal = Some(signal),
            Ended::Unknown => {}
        }
        if let Some(left) = left {
            notes.push(left.to_string());
            seat.background.keep(label, self.tree, self.intake, &left.processes);
            details.background = Some(left);
        }
        Ok(Output::text(with_notes(shown, &notes), json!(details)))
    }

    /// Finds out what is left in the background, and gives its output a place.
    async fn left(&mut self) -> InBackground {
        let pid = self.tree.pid();
        let processes = tokio::task::spawn_blocking(move || left_of(pid)).await.unwrap_or_default();
        let mut handle = None;
        if self.intake.is_open() {
            self.intake.spill().await;
            handle = self.intake.handle().map(|handle| handle.to_string());
        }
        InBackground { processes, handle }
    }

    /// Stops the command, and tells what it printed until then.
    async fn cut(mut self, why: &str, over: &Over) -> Failure {
        let took = self.begun.elapsed();
        let gone = self.intake.until(stop(&*self.tree)).await;
        self.intake.drain().await;
        let (shown, mut details) = self.told(took);
        details.timed_out = matches!(over, Over::TimedOut);
        details.cancelled = matches!(over, Over::Cancelled);
        let state = if gone {
            "it was stopped with all that it had started"
        } else {
            "it was killed, and is not gone yet"
        };
        let message = with_notes(shown, &[format!("{why}: {state}")]);
        Failure { message, details: json!(details) }
    }

    fn told(&self, took: Duration) -> (String, Details) {
        let Clipped { text, handle, bytes } = self.intake.clipped();
        let details = Details {
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            output_bytes: bytes,
            handle: handle.map(|handle| handle.to_string()),
            ..Details::default()
        };
        (text, details)
    }
}

#[derive(Default, Serialize)]
struct Details {
    exit_code: Option<i32>,
    signal: Option<i32>,
    timed_out: bool,
    cancelled: bool,
    duration_ms: u64,
    output_bytes: u64,
    handle: Option<String>,
    background: Option<InBackground>,
}

#[derive(Serialize)]
struct InBackground {
    processes: Vec<Left>,
    handle: Option<String>,
}

impl fmt::Display for InBackground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("still running in the background until this run ends: ")?;
        if self.processes.is_empty() {
            f.write_str("something in a session of its own")?;
        }
        for (index, Left { pid, command }) in self.processes.iter().enumerate() {
            write!(f, "{}pid {pid} `{command}`", if index > 0 { ", " } else { "" })?;
        }
        match &self.handle {
            Some(handle) => write!(f, "; its further output: read {handle}"),
            None => Ok(()),
        }
    }
}

fn with_notes(mut text: String, notes: &[String]) -> String {
    if text.is_empty() {
        text.push_str("(no output)");
    }
    for note in notes {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("({note})"));
    }
    text
}

#[cfg(test)]
mod tests;
