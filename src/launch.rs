//! The one launcher: the only code in the daemon that starts a process.
//!
//! Every process runs in a tree of its own below `hostler __launch` ([`child_main`]),
//! which the daemon holds by a socket. However the daemon, the launcher or the main
//! process ends, the tree goes with it; "empty" is only said when it is proved.
//! Read `order`, `start` and `tree` for the daemon's side, `child` for the other.
//! The tricky thing: no step here may fork the daemon itself.

pub mod account;
mod child;
pub mod containment;
mod inner;
mod order;
mod procfs;
mod ring;
mod sampler;
pub(crate) mod socket;
mod spawner;
mod start;
mod sweep;
mod tree;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hostler_actors::ports::{
    BoxFuture, Launch, LaunchError, LaunchOrder, Launched, Leftovers, Owner, Posture,
};
use hostler_actors::status::{StatusTable, Usage};
use tokio::time::Instant;

use account::{Account, Budget};
use containment::{Containment, Rung, ladder};
use order::Walls;
use spawner::Spawner;
use sweep::MARK;

/// How long the death of killed processes is waited for before it is called unproved.
const DYING: Duration = Duration::from_secs(3);

/// The launcher process's whole life. `main` calls it for `hostler __launch`, before
/// anything else, with the socket to the daemon as standard input.
pub fn child_main() -> ! {
    child::main()
}

/// What the launcher must know of its daemon.
#[derive(Clone, Debug)]
pub struct LaunchConfig {
    /// The binary that calls [`child_main`] for `__launch`.
    pub launcher: PathBuf,
    /// Names the data folder, stable over restarts: by it a daemon knows what a
    /// former one left behind. Without `:`.
    pub data_id: String,
    /// Folders of the daemon that no process may see.
    pub hide: Vec<PathBuf>,
    /// Folders below those that processes see all the same, read-only.
    pub keep: Vec<PathBuf>,
    /// What all trees together may use.
    pub budget: Budget,
    /// Do without namespaces even where they work: the fallback, on purpose.
    pub subreaper_only: bool,
}

impl LaunchConfig {
    /// Makes a configuration that uses this very binary and hides nothing.
    #[must_use]
    pub fn new(data_id: impl Into<String>) -> Self {
        Self {
            launcher: PathBuf::from("/proc/self/exe"),
            data_id: data_id.into(),
            hide: Vec::new(),
            keep: Vec::new(),
            budget: Budget::default(),
            subreaper_only: false,
        }
    }
}

/// What all launches share.
struct Shared {
    config: LaunchConfig,
    account: Arc<Account>,
    spawner: Spawner,
    status: StatusTable,
    containment: Containment,
    /// The beginning of every mark of this daemon.
    marks: String,
}

/// Returns the bytes of memory that this machine, or our control group, has.
#[must_use]
pub fn memory() -> u64 {
    procfs::memory()
}

/// Returns the resident bytes of this very process.
#[must_use]
pub fn resident_bytes() -> u64 {
    procfs::stat(std::process::id()).map_or(0, |stat| stat.pages * procfs::page_size())
}

/// One tree in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeView {
    /// What its order called it.
    pub label: String,
    /// The main process; `None` while it is being started.
    pub pid: Option<u32>,
    /// Who is charged.
    pub owner: Owner,
    /// Since its start.
    pub age: Duration,
    /// As last sampled; `None` before the first sample.
    pub usage: Option<Usage>,
}

/// What came of ending trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// How many trees there were.
    pub trees: usize,
    /// How many of them had to be killed.
    pub killed: usize,
    /// The labels of those whose death could not be proved in time.
    pub unproved: Vec<String>,
}

/// The launcher. Cloning shares it.
#[derive(Clone)]
pub struct Launcher(Arc<Shared>);

impl Launcher {
    /// Probes what this host can do and starts the background sample. Needs a
    /// runtime, which must outlive the launcher.
    ///
    /// # Errors
    ///
    /// When not even an uncontained process can be started.
    pub async fn start(mut config: LaunchConfig, status: StatusTable) -> Result<Self, LaunchError> {
        let failed = |reason: String| LaunchError::Failed { label: "launcher".to_owned(), reason };
        for path in config.hide.iter_mut().chain(&mut config.keep) {
            // One that does not exist yet is compared as it is written.
            *path = tokio::fs::canonicalize(&*path).await.unwrap_or_else(|_| path.clone());
        }
        let boot = getrandom::u64().map_err(|error| failed(format!("random number: {error}")))?;
        let spawner = Spawner::start(config.launcher.clone())
            .map_err(|error| failed(format!("spawner thread: {error}")))?;
        let none = || Rung { walls: Walls::default(), failed: Vec::new() };
        let mut shared = Shared {
            marks: format!("{}:{boot:016x}", config.data_id),
            account: Account::new(config.budget),
            spawner,
            status,
            containment: Containment::new(none(), none()),
            config,
        };
        let writable = probe(&shared, false).await?;
        let read_only = probe(&shared, true).await?;
        shared.containment = Containment::new(writable, read_only);
        let account = Arc::downgrade(&shared.account);
        tokio::spawn(sampler::run(account, shared.status.clone()));
        Ok(Self(Arc::new(shared)))
    }

    /// Returns which walls hold the trees of this host.
    #[must_use]
    pub fn containment(&self) -> &Containment {
        &self.0.containment
    }

    /// Returns what an owner's trees use, as of the last sample.
    #[must_use]
    pub fn usage(&self, owner: Owner) -> Usage {
        self.0.account.usage(owner)
    }

    /// Lists the trees, the oldest first.
    #[must_use]
    pub fn trees(&self) -> Vec<TreeView> {
        let now = Instant::now();
        self.0.account.read(|(_, entry)| TreeView {
            label: entry.label.clone(),
            pid: entry.core.as_ref().map(|core| core.pid),
            owner: entry.owner,
            age: now.saturating_duration_since(entry.since),
            usage: entry.usage,
        })
    }

    /// Takes a sample now instead of waiting for the next one (every 2 s).
    pub async fn sample(&self) {
        sampler::sample(&self.0.account, &self.0.status).await;
    }

    /// Returns whose tree a process (as from `SO_PEERCRED`) is in, if any. Reads a
    /// few small files of `/proc`.
    #[must_use]
    pub fn peer_in_tree(&self, pid: u32) -> Option<Owner> {
        let roots = self
            .0
            .account
            .read(|(_, entry)| entry.core.as_ref().map(|core| (core.launcher, entry.owner)));
        procfs::lineage(pid)
            .find_map(|pid| roots.iter().flatten().find(|(root, _)| *root == pid))
            .map(|(_, owner)| *owner)
    }

    /// Kills what a former daemon of the same data folder left, and returns how many
    /// processes that were. Returns after 5 s at the latest.
    pub async fn sweep(&self) -> usize {
        let of_folder = format!("{MARK}={}:", self.0.config.data_id).into_bytes();
        let of_daemon = format!("{MARK}={}.", self.0.marks).into_bytes();
        sweep::until_none(move |pair| pair.starts_with(&of_folder) && !pair.starts_with(&of_daemon))
            .await
    }

    /// Ends all trees of an owner: SIGTERM to the main process's group, a kill at the
    /// deadline, and then the proof that nobody is left (3 s at most).
    pub async fn end_owner(&self, owner: Owner, deadline: Duration) -> Closed {
        self.end(Some(owner), deadline).await
    }

    /// Refuses new launches and ends all trees like [`Self::end_owner`].
    pub async fn shutdown(&self, deadline: Duration) -> Closed {
        self.0.account.close();
        self.end(None, deadline).await
    }

    async fn end(&self, owner: Option<Owner>, deadline: Duration) -> Closed {
        let mut closed = Closed::default();
        let account = &self.0.account;
        let labels = account.read(|(_, entry)| owner.is_none_or(|owner| owner == entry.owner));
        closed.trees = labels.into_iter().filter(|mine| *mine).count();
        let polite = |core: &Arc<tree::Core>| core.terminate();
        let left = account.until_gone(owner, deadline, polite).await;
        closed.killed = left.len();
        if closed.killed > 0 {
            closed.unproved = account.until_gone(owner, DYING, |core| core.kill()).await;
        }
        closed
    }
}

impl Launch for Launcher {
    fn launch(&self, order: LaunchOrder) -> BoxFuture<'_, Result<Launched, LaunchError>> {
        Box::pin(async move {
            let place = self.0.account.reserve(order.owner, &order.label)?;
            let walls = self.0.containment.walls(&order.posture);
            start::start(&self.0, order, walls, place).await
        })
    }
}

/// Goes down the ladder until a program starts behind the walls.
async fn probe(shared: &Shared, read_only: bool) -> Result<Rung, LaunchError> {
    let root = nix::unistd::geteuid().is_root();
    let mut failed = Vec::new();
    let mut last = None;
    let rungs =
        if shared.config.subreaper_only { vec![Walls::default()] } else { ladder(root, read_only) };
    for walls in rungs {
        let order = LaunchOrder {
            label: "probe".to_owned(),
            program: shared.config.launcher.clone(),
            args: vec!["__launch".into(), child::NOTHING.into()],
            cwd: PathBuf::from("/"),
            env: Vec::new(),
            wires: std::collections::BTreeMap::new(),
            owner: Owner::Host,
            posture: Posture::Writable,
            leftovers: Leftovers::Kill,
        };
        let place = shared.account.reserve(Owner::Host, &order.label)?;
        match start::start(shared, order, walls, place).await {
            Ok(launched) => {
                // Its place in the account must be free again.
                let _ = launched.tree.emptied().wait_for(|empty| *empty).await;
                return Ok(Rung { walls, failed });
            }
            Err(error) => {
                failed.push(error.to_string());
                last = Some(error);
            }
        }
    }
    let none = || LaunchError::Failed { label: "probe".to_owned(), reason: "no rung".to_owned() };
    Err(last.unwrap_or_else(none))
}
