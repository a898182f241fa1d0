//! What the tree needs from the outside, as traits that `src` implements.
//!
//! An actor can so not start a process, touch a file or ask a clock for
//! randomness by itself, and every actor test runs on the fakes in `testing/`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use ractor::ActorRef;

use crate::host::workspace::space::conversation::run::RunMsg;
use crate::ids::{CallId, RunId};
use crate::profile::{Profile, Tier};
use crate::status::Anchor;

/// A boxed future, for traits that are used as objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

// ---------------------------------------------------------------- processes

/// What one descriptor of a launched process is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wire {
    /// A pipe that we write and the process reads.
    ToProcess,
    /// A pipe that the process writes and we read.
    FromProcess,
    /// The same open file as another descriptor of this order.
    SameAs(i32),
    /// The bounded ring whose tail is shown in `status` and in errors.
    Ring,
    /// Nothing: reads end at once, writes vanish.
    Null,
}

/// What happens to the rest of a tree when its main process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// They are killed: a server without its main process is of no use.
    Kill,
    /// They live on until the tree is killed: what a shell put into the background.
    Keep,
    /// They are killed, but the main process holds somebody else's, which it must let go
    /// by itself: when the daemon is gone it is sent these bytes on its standard input,
    /// and given a moment.
    Release(Vec<u8>),
}

/// Who is charged for a process and takes it along when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Owner {
    /// The host: shared servers.
    Host,
    /// One run.
    Run(RunId),
}

/// How much of the disk a process may write.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Posture {
    /// What its user may write, less the daemon's own folders.
    Writable,
    /// The worktree is read-only; build output goes to the scratch folder.
    ReadOnly {
        /// The folder that must not change.
        worktree: PathBuf,
        /// A folder that may be written instead.
        scratch: PathBuf,
    },
}

/// An order to start one process, complete: nothing is inherited.
#[derive(Clone, Debug)]
pub struct LaunchOrder {
    /// What to call it in `status` and in errors.
    pub label: String,
    /// The program, resolved: no search is made.
    pub program: PathBuf,
    /// The arguments after the program's name.
    pub args: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// What each descriptor is; one that is not named is closed.
    pub wires: BTreeMap<i32, Wire>,
    /// Who is charged.
    pub owner: Owner,
    /// What it may write.
    pub posture: Posture,
    /// What happens to its children when it ends.
    pub leftovers: Leftovers,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ended {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
    /// Its launcher died before it could tell.
    Unknown,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "was killed by {name}"),
                None => write!(f, "was killed by signal {signal}"),
            },
            Self::Unknown => f.write_str("ended, and its launcher died before it could say how"),
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// Why a process could not be started.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LaunchError {
    /// The program is not there.
    #[error("{program}: no such program")]
    NotFound {
        /// The program.
        program: PathBuf,
    },
    /// The program is there and cannot be executed.
    #[error("{program}: cannot be executed: {reason}")]
    NotExecutable {
        /// The program.
        program: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The working directory cannot be entered.
    #[error("{cwd}: cannot be used as working directory: {reason}")]
    BadCwd {
        /// The folder.
        cwd: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The host's budget is used up.
    #[error("{label}: not started: {reason}")]
    Budget {
        /// What was to be started.
        label: String,
        /// Which limit, how much of it is used, and the way out.
        reason: String,
    },
    /// The daemon is shutting down.
    #[error("{label}: not started: the host is shutting down")]
    ShuttingDown {
        /// What was to be started.
        label: String,
    },
    /// Anything else that the system refused.
    #[error("{label}: cannot be started: {reason}")]
    Failed {
        /// What was to be started.
        label: String,
        /// The step that failed and the system's words.
        reason: String,
    },
}

/// A running process tree. Dropping the last handle kills the whole tree.
pub trait ProcessTree: Send + Sync + fmt::Debug {
    /// Returns the main process's id, as this host sees it.
    fn pid(&self) -> u32;
    /// Becomes `Some` when the main process has ended.
    fn ended(&self) -> watch::Receiver<Option<Ended>>;
    /// Becomes true when no process of the tree is left.
    fn emptied(&self) -> watch::Receiver<bool>;
    /// Asks the main process's group to end (SIGTERM).
    fn terminate(&self);
    /// Interrupts the main process's group (SIGINT).
    fn interrupt(&self);
    /// Kills every process of the tree. `emptied` says when it is done.
    fn kill(&self);
    /// Returns the end of what it wrote to its ring, at most `lines` lines.
    fn ring_tail(&self, lines: usize) -> String;
    /// Finds the processes of the tree, the main one aside, whose command line holds
    /// `part` now.
    fn inner(&self, part: &str) -> BoxFuture<'static, Vec<Arc<dyn InnerProcess>>>;
    /// Holds one process of the tree: the main one, or that which calls itself `own_id`
    /// in its own namespace. `None` if it is over, or cannot be told from others.
    fn process(&self, own_id: Option<u32>) -> BoxFuture<'static, Option<Arc<dyn InnerProcess>>> {
        let _ = own_id;
        Box::pin(async { None })
    }
}

/// One process of a tree, held by itself.
pub trait InnerProcess: Send + Sync + fmt::Debug {
    /// Returns its id, as this host sees it.
    fn pid(&self) -> u32;
    /// Says whether it has ended. Asks the kernel, so that whoever was told something
    /// by a process that noticed the end knows of it too.
    fn is_over(&self) -> bool;
    /// Returns when it has ended.
    fn over(&self) -> BoxFuture<'_, ()>;
    /// Sends it, and nothing else of its tree, a signal. One that is over gets none.
    fn signal(&self, signal: i32);
}

/// A pipe's writing end.
pub type PipeWriter = Box<dyn AsyncWrite + Send + Unpin>;
/// A pipe's reading end.
pub type PipeReader = Box<dyn AsyncRead + Send + Unpin>;

/// A process that was started, with our ends of its pipes.
pub struct Launched {
    /// The tree; dropping it kills it.
    pub tree: Arc<dyn ProcessTree>,
    /// Our ends of the descriptors ordered as [`Wire::ToProcess`].
    pub to_process: BTreeMap<i32, PipeWriter>,
    /// Our ends of the descriptors ordered as [`Wire::FromProcess`].
    pub from_process: BTreeMap<i32, PipeReader>,
}

impl fmt::Debug for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched").field("tree", &self.tree).finish_non_exhaustive()
    }
}

/// Starts processes. The only way in which anything here can.
pub trait Launch: Send + Sync {
    /// Starts one process, contained as well as this host can.
    fn launch(&self, order: LaunchOrder) -> BoxFuture<'_, Result<Launched, LaunchError>>;
}

// ----------------------------------------------------------------- sockets

/// Both directions of one connection.
pub struct Duplex {
    /// What comes from the other side.
    pub read: PipeReader,
    /// What goes to it.
    pub write: PipeWriter,
}

impl fmt::Debug for Duplex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Duplex")
    }
}

/// A port of ours that a debug adapter dials.
pub trait Listening: Send {
    /// Returns its number.
    fn port(&self) -> u16;
    /// Takes the next connection. Cancel safe; the caller bounds the wait.
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Duplex>>;
}

/// Connections over the loopback interface, and over no other.
pub trait Sockets: Send + Sync {
    /// Connects to a port.
    fn connect(&self, port: u16) -> BoxFuture<'_, io::Result<Duplex>>;
    /// Listens on a port that was free.
    fn listen(&self) -> BoxFuture<'_, io::Result<Box<dyn Listening>>>;
}

// ------------------------------------------------------------------ chance

/// Draws the jitter of a backoff.
pub trait Jitter: Send + Sync {
    /// Returns a random duration between zero and `most`.
    fn up_to(&self, most: Duration) -> Duration;
}

// -------------------------------------------------------------------- runs

/// Everything about a run that does not change while it lives.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The run.
    pub id: RunId,
    /// Its work folder, canonical.
    pub folder: PathBuf,
    /// The environment that its processes get.
    pub env: Arc<[(OsString, OsString)]>,
}

/// The ports, as the tree hands them down. Cloning shares them.
#[derive(Clone)]
pub struct Ports {
    /// Starts processes.
    pub launch: Arc<dyn Launch>,
    /// Connects to debug adapters.
    pub sockets: Arc<dyn Sockets>,
    /// Draws jitter.
    pub jitter: Arc<dyn Jitter>,
    /// Makes tool calls.
    pub tools: Arc<dyn Tools>,
    /// Keeps transcripts.
    pub transcripts: Arc<dyn Transcripts>,
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ports")
    }
}

// ------------------------------------------------------------------- tools

/// One tool as a turn sees it: what a model is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolCard {
    /// The name by which it is called.
    pub name: String,
    /// What it can do.
    pub tier: Tier,
    /// May several calls run at once.
    pub parallel_safe: bool,
    /// What the model is told of it.
    pub description: String,
    /// The JSON schema of its arguments.
    pub input_schema: serde_json::Value,
}

/// What one turn may see, materialised when it begins and frozen until it ends.
#[derive(Clone, Debug)]
pub struct Surface {
    /// The profile that it was made from.
    pub profile: Arc<Profile>,
    /// The tools, by name.
    pub tools: Vec<ToolCard>,
    /// The generated part of the system prompt.
    pub preamble: String,
}

impl Surface {
    /// Finds a tool by its name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolCard> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// Who makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// A harness over `hostler session` or an external turn.
    External,
    /// The built-in harness's model.
    Model,
    /// `tool()` in a cell.
    Cell,
}

/// One call of a tool on its way through the door.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The run that calls.
    pub spec: Arc<RunSpec>,
    /// The run's actor, for what lives in the tree.
    pub run: ActorRef<RunMsg>,
    /// The run's row in the status table.
    pub row: Anchor,
    /// The number of the turn that it belongs to.
    pub turn: u64,
    /// Its own id.
    pub call: CallId,
    /// Who calls.
    pub caller: Caller,
    /// The tool's name, as given.
    pub tool: String,
    /// The arguments, as given.
    pub arguments: serde_json::Value,
    /// What the turn may see.
    pub surface: Arc<Surface>,
    /// Fires when the call is cancelled.
    pub cancel: CancellationToken,
}

/// One piece of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text for the model.
    Text {
        /// The text.
        text: String,
    },
    /// An image for the model.
    Image {
        /// For example `image/png`.
        mime_type: String,
        /// The bytes in base64.
        data: String,
    },
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// What the model is shown.
    pub content: Vec<Block>,
    /// Did the call fail.
    pub is_error: bool,
    /// The same facts for programs.
    pub details: serde_json::Value,
}

impl ToolResult {
    /// Makes a failed result of one text.
    #[must_use]
    pub fn error(text: impl Into<String>, details: serde_json::Value) -> Self {
        Self { content: vec![Block::Text { text: text.into() }], is_error: true, details }
    }
}

/// The registry of tools, as the tree sees it.
pub trait Tools: Send + Sync {
    /// Materialises what a turn of this run may see under this profile.
    fn surface(&self, run: &RunSpec, profile: &Arc<Profile>) -> Surface;
    /// Names the lanes in which a call must keep its order: it waits for every
    /// earlier call of its turn that shares one. None for a call that may overtake.
    fn lanes(&self, tool: &str, arguments: &serde_json::Value) -> Vec<String>;
    /// Makes one call. Bounded by the tool's own limits and by `call.cancel`.
    fn call(&self, call: ToolCall) -> BoxFuture<'static, ToolResult>;
    /// Says that a run has ended, so that what it owned in the edge goes too.
    fn run_ended(&self, run: RunId) -> BoxFuture<'static, ()>;
}

// ------------------------------------------------------------- transcripts

/// Appends to a run's transcript.
pub trait Transcripts: Send + Sync {
    /// Appends one line. Never waits for the disk; a failure shows in `status`.
    fn append(&self, run: RunId, line: serde_json::Value);
    /// Says that nothing more comes for this run.
    fn close(&self, run: RunId);
}

/// A change of one file on disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileChange {
    /// Which file or folder.
    pub path: Arc<Path>,
    /// What became of it.
    pub kind: FileChangeKind,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// It is new.
    Created,
    /// Its content changed.
    Changed,
    /// It is gone.
    Deleted,
}
