//! The one table of what lives, written by its owners and read without asking them.
//!
//! A hung actor is so *seen* as hung instead of hanging the listing. An entry is
//! removed when its [`StatusEntry`] is dropped; the order is that of creation, so
//! a parent always stands before its children.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::ids::Incarnation;

/// A row's identity: grows with each new row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(u64);

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the words of the tree")]
pub enum NodeKind {
    Host,
    LanguageServer,
    Workspace,
    Space,
    Mode,
    Conversation,
    Run,
    Turn,
    LanguageSession,
    Interpreter,
    DebugSession,
    VibeWorker,
    /// What `bash` left running in the background.
    Background,
    /// A change that waits to be accepted or discarded.
    StagedEdit,
    /// A check of the project that the run waits for.
    Check,
}

impl fmt::Display for NodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::LanguageServer => "language server",
            Self::Workspace => "workspace",
            Self::Space => "space",
            Self::Mode => "mode",
            Self::Conversation => "conversation",
            Self::Run => "run",
            Self::Turn => "turn",
            Self::LanguageSession => "language session",
            Self::Interpreter => "interpreter",
            Self::DebugSession => "debug session",
            Self::VibeWorker => "vibe worker",
            Self::Background => "background process",
            Self::StagedEdit => "staged edit",
            Self::Check => "check",
        })
    }
}

/// What a row says of its subject now.
#[derive(Clone, Debug, Default)]
pub struct NodeState {
    /// For example `up`, `backing off`, `idle`.
    pub phase: &'static str,
    /// The main process, where there is one.
    pub pid: Option<u32>,
    /// Which start of the process this is.
    pub incarnation: Incarnation,
    /// How often it was started again after it died by itself.
    pub restarts: u64,
    /// Why it last died or could not start.
    pub last_error: Option<Arc<str>>,
    /// How many runs hold a lease.
    pub leases: Option<usize>,
    /// What it is doing, and since when.
    pub doing: Option<(Arc<str>, Instant)>,
    /// Resident bytes and processes of its tree, and when they were sampled.
    pub usage: Option<(Usage, Instant)>,
    /// Anything else worth a line.
    pub note: Option<Arc<str>>,
}

/// What a process tree uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Resident bytes, added up over the tree.
    pub resident_bytes: u64,
    /// Processes in the tree, the launcher's own not counted.
    pub processes: u32,
}

struct Row {
    parent: Option<NodeId>,
    kind: NodeKind,
    name: Arc<str>,
    since: Instant,
    state: Mutex<NodeState>,
}

#[derive(Default)]
struct Rows {
    last: u64,
    rows: BTreeMap<NodeId, Arc<Row>>,
}

/// The table. Cloning shares it.
#[derive(Clone, Default)]
pub struct StatusTable(Arc<Mutex<Rows>>);

impl fmt::Debug for StatusTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatusTable({} rows)", self.lock().rows.len())
    }
}

/// The right and duty to keep one row true. Dropping it removes the row.
pub struct StatusEntry {
    table: StatusTable,
    id: NodeId,
    row: Arc<Row>,
}

impl fmt::Debug for StatusEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatusEntry({} {})", self.row.kind, self.row.name)
    }
}

/// A place in the table below which rows can be added; keeps nothing alive.
#[derive(Clone, Debug)]
pub struct Anchor {
    table: StatusTable,
    id: NodeId,
}

impl Anchor {
    /// Adds a row below this one.
    #[must_use]
    pub fn child(&self, kind: NodeKind, name: impl Into<Arc<str>>) -> StatusEntry {
        self.table.enter(Some(self.id), kind, name)
    }
}

/// A row as a reader gets it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeView {
    /// The row.
    pub id: NodeId,
    /// The row of its supervisor.
    pub parent: Option<NodeId>,
    /// What it stands for.
    pub kind: NodeKind,
    /// Its name, unique among its siblings.
    pub name: String,
    /// For example `up`, `backing off`, `idle`.
    pub phase: String,
    /// The main process.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid: Option<u32>,
    /// Which start of the process this is; 0 where none was made.
    pub incarnation: u64,
    /// Starts after a death.
    pub restarts: u64,
    /// Why it last died or could not start.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_error: Option<String>,
    /// Runs that hold a lease.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub leases: Option<usize>,
    /// What it is doing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub doing: Option<String>,
    /// For how long, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub doing_ms: Option<u64>,
    /// Milliseconds since the row was made.
    pub age_ms: u64,
    /// Resident bytes and processes, as last sampled.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Usage>,
    /// Milliseconds since that sample.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage_age_ms: Option<u64>,
    /// Anything else worth a line.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub note: Option<String>,
}

impl StatusTable {
    fn lock(&self) -> std::sync::MutexGuard<'_, Rows> {
        // A panic between two field writes leaves a row that is old, not broken.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a row.
    #[must_use]
    pub fn enter(
        &self,
        parent: Option<NodeId>,
        kind: NodeKind,
        name: impl Into<Arc<str>>,
    ) -> StatusEntry {
        let row = Arc::new(Row {
            parent,
            kind,
            name: name.into(),
            since: Instant::now(),
            state: Mutex::new(NodeState { phase: "idle", ..NodeState::default() }),
        });
        let mut rows = self.lock();
        rows.last += 1;
        let id = NodeId(rows.last);
        rows.rows.insert(id, Arc::clone(&row));
        drop(rows);
        StatusEntry { table: self.clone(), id, row }
    }

    /// Reads every row, parents before children.
    #[must_use]
    pub fn snapshot(&self) -> Vec<NodeView> {
        let rows: Vec<_> =
            self.lock().rows.iter().map(|(id, row)| (*id, Arc::clone(row))).collect();
        let now = Instant::now();
        rows.iter().map(|(id, row)| row.view(*id, now)).collect()
    }

    /// Returns the process of every row that has one.
    #[must_use]
    pub fn pids(&self) -> Vec<(NodeId, u32)> {
        self.lock().rows.iter().filter_map(|(id, row)| Some((*id, row.lock().pid?))).collect()
    }

    /// Writes a sample of what a row's process tree uses.
    pub fn sampled(&self, id: NodeId, usage: Usage) {
        let row = self.lock().rows.get(&id).cloned();
        if let Some(row) = row {
            row.lock().usage = Some((usage, Instant::now()));
        }
    }
}

impl Row {
    fn lock(&self) -> std::sync::MutexGuard<'_, NodeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self, id: NodeId, now: Instant) -> NodeView {
        let state = self.lock();
        let age = |since: Instant| millis(now.saturating_duration_since(since));
        NodeView {
            id,
            parent: self.parent,
            kind: self.kind,
            name: self.name.to_string(),
            phase: state.phase.to_owned(),
            pid: state.pid,
            incarnation: state.incarnation.0,
            restarts: state.restarts,
            last_error: state.last_error.as_deref().map(str::to_owned),
            leases: state.leases,
            doing: state.doing.as_ref().map(|(what, _)| what.to_string()),
            doing_ms: state.doing.as_ref().map(|(_, since)| age(*since)),
            age_ms: age(self.since),
            usage: state.usage.map(|(usage, _)| usage),
            usage_age_ms: state.usage.map(|(_, at)| age(at)),
            note: state.note.as_deref().map(str::to_owned),
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl StatusEntry {
    /// Returns the row's identity, for its children.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Returns the table that the row is in.
    #[must_use]
    pub fn table(&self) -> &StatusTable {
        &self.table
    }

    /// Returns the row as a place to add others to.
    #[must_use]
    pub fn anchor(&self) -> Anchor {
        Anchor { table: self.table.clone(), id: self.id }
    }

    /// Changes what the row says. `change` must not block.
    pub fn update(&self, change: impl FnOnce(&mut NodeState)) {
        change(&mut self.row.lock());
    }

    /// Adds a row below this one.
    #[must_use]
    pub fn child(&self, kind: NodeKind, name: impl Into<Arc<str>>) -> StatusEntry {
        self.table.enter(Some(self.id), kind, name)
    }
}

impl Drop for StatusEntry {
    fn drop(&mut self) {
        self.table.lock().rows.remove(&self.id);
    }
}
