//! Everything that shapes one debug session, resolved by the edge beforehand.

use std::any::Any;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

/// What in an adapter's arguments stands for the address that it shall dial.
pub const ADDRESS: &str = "{address}";

/// How an adapter is reached.
#[derive(Clone, Debug)]
pub enum Reach {
    /// A process that speaks on its pipes.
    Stdio(AdapterProcess),
    /// A process that dials a port of ours, which stands for [`ADDRESS`] in its
    /// arguments: no line of its output to be parsed, no port to be raced for.
    DialsUs(AdapterProcess),
    /// Somebody else's, that listens on this port of the loopback interface.
    Listens(u16),
}

/// An adapter's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterProcess {
    /// The program, resolved.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where it runs.
    pub cwd: PathBuf,
}

/// Who owns the debuggee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The session: it dies with it.
    Launch,
    /// Somebody else: it lives on, whatever happens to us.
    Attach,
}

impl Kind {
    /// Returns the request that begins it.
    #[must_use]
    pub fn request(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Attach => "attach",
        }
    }
}

/// Something of the edge that goes when the session does, such as a scratch folder.
#[derive(Clone)]
pub struct Guard(pub Arc<dyn Any + Send + Sync>);

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The whole session, from its start, never renewed.
    pub ttl: Duration,
    /// From the order to the debuggee that runs, builds included.
    pub start: Duration,
    /// The answer to `initialize`: who listens and does not speak the protocol is so
    /// found out.
    pub initialize: Duration,
    /// Any other request.
    pub request: Duration,
    /// The answer to `disconnect`.
    pub disconnect: Duration,
}

/// Everything that shapes one debug session.
#[derive(Clone, Debug)]
pub struct SessionSpec {
    /// The definition's name, for example `debugpy`.
    pub adapter: String,
    /// What the adapter calls itself in the handshake.
    pub adapter_id: String,
    /// What is debugged, for people: a program, or `port 5678`.
    pub what: String,
    /// How the adapter is reached.
    pub reach: Reach,
    /// Who owns the debuggee.
    pub kind: Kind,
    /// The arguments of the `launch` or `attach` request.
    pub arguments: Value,
    /// Capabilities that it claims, or will claim, and that are not believed.
    pub distrust: Vec<String>,
    /// Names that it mixes among a scope's variables and that are none.
    pub not_variables: Vec<String>,
    /// What stands before the exit code in a line of output, where no event tells it.
    pub exit_line: Option<String>,
    /// Is it to stop before its first line.
    pub stop_on_entry: bool,
    /// The function that holds its first line, for an adapter whose own way to stop there
    /// does so before there is anything to look at.
    pub entry_function: Option<String>,
    /// Does a debuggee that is left stopped stay so: it is then sent on first.
    pub resume_on_detach: bool,
    /// Does building the program belong to its start.
    pub builds: bool,
    /// How long things may take.
    pub bounds: Bounds,
    /// What goes with the session.
    pub guard: Option<Guard>,
}

impl SessionSpec {
    /// Returns the adapter's process, if it is ours.
    #[must_use]
    pub fn process(&self) -> Option<&AdapterProcess> {
        match &self.reach {
            Reach::Stdio(process) | Reach::DialsUs(process) => Some(process),
            Reach::Listens(_) => None,
        }
    }
}
