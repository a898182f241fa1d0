//! One hosted tree: the launcher, the ports, the host actor and who is engaged.
//!
//! The same value serves a daemon's socket and a session that hosts in process.
//! It owns its data folder for as long as it lives (`folders`), and it goes by
//! deadlines: sessions, then the tree, then whatever the launcher still has.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use hostler_actors::host::workspace::WorkspaceMsg;
use hostler_actors::host::workspace::space::SpaceMsg;
use hostler_actors::host::workspace::space::conversation::ConversationMsg;
use hostler_actors::host::workspace::space::conversation::run::{Begun, RunMsg};
use hostler_actors::host::{Host, HostArgs, HostMsg};
use hostler_actors::ids::{ConversationId, RunId, SpaceId, WorkspaceId};
use hostler_actors::ports::{LaunchError, Ports, RunSpec};
use hostler_actors::profile::{Mode, Profile};
use hostler_actors::status::{NodeKind, NodeView, StatusTable};
use ractor::{Actor, ActorRef, RpcReplyPort};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ask;
use crate::chance;
use crate::commons::Commons;
use crate::config::error::ConfigError;
use crate::config::{Config, Loaded, Sources};
use crate::folders::{Folders, Ownership, Private};
use crate::launch::{self, LaunchConfig, Launcher};
use crate::registry::Registry;
use crate::room::RoomMaking;
use crate::serve::http::StatusReport;
use crate::serve::protocol::Open;
use crate::sockets::Loopback;
use crate::transcripts::TranscriptFiles;

/// `spec/host.md`: 15 s the daemon, of which the launcher gets what is left.
const SHUTDOWN: Duration = Duration::from_secs(15);
/// What sessions may take of that before the tree is ended over their heads.
const SESSIONS: Duration = Duration::from_secs(12);
/// 12 s a space, and a little for the answer.
const SPACE: Duration = Duration::from_millis(12_500);
/// How long an actor may take to answer a question that needs no outside.
const ANSWER: Duration = Duration::from_secs(5);

/// Why a daemon could not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The launcher.
    #[error("cannot start processes: {0}")]
    Launch(#[from] LaunchError),
    /// A thread of ours.
    #[error("cannot start: {0}")]
    Io(#[from] std::io::Error),
    /// An actor of ours did not come up.
    #[error("internal error: the tree did not come up: {0}")]
    Tree(String),
}

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("this is hostler {ours}, the daemon is {theirs}: restart the daemon (`hostler stop`)", theirs = env!("CARGO_PKG_VERSION"))]
    Version { ours: String },
    #[error("{}: cannot be used as work folder: {reason}", .dir.display())]
    Dir { dir: PathBuf, reason: String },
    #[error("{}: lies in the daemon's own folder {}, which is hidden from what a run starts", .dir.display(), .own.display())]
    Hidden { dir: PathBuf, own: PathBuf },
    #[error("this version has no mode {0}, only chat")]
    Mode(Mode),
    #[error("no run {0} lives here")]
    NoRun(RunId),
    #[error("the run {run} works in {}, not in {}", .theirs.display(), .dir.display())]
    OtherFolder { run: RunId, theirs: PathBuf, dir: PathBuf },
    #[error("the host is shutting down")]
    ShuttingDown,
}

/// The right to a data folder, for as long as a daemon lives.
pub(crate) enum DataFolder {
    /// One that stays.
    Owned(Folders, #[expect(dead_code, reason = "held, for its lock")] Ownership),
    /// One that goes with the daemon.
    Private(Private),
}

impl DataFolder {
    /// Returns the folders.
    pub(crate) fn folders(&self) -> &Folders {
        match self {
            Self::Owned(folders, _) => folders,
            Self::Private(private) => &private.folders,
        }
    }
}

/// A run that others may join.
#[derive(Clone)]
struct Live {
    run: ActorRef<RunMsg>,
    folder: PathBuf,
    conversation: ConversationId,
    space: SpaceId,
}

struct NamedSpace {
    id: SpaceId,
    actor: ActorRef<SpaceMsg>,
    conversation: (ConversationId, ActorRef<ConversationMsg>),
}

/// One hosted tree.
pub(crate) struct Daemon {
    folders: DataFolder,
    config: RwLock<Loaded>,
    sources: Sources,
    launcher: Launcher,
    commons: Arc<Commons>,
    transcripts: Arc<TranscriptFiles>,
    host: ActorRef<HostMsg>,
    workspace: ActorRef<WorkspaceMsg>,
    status: StatusTable,
    started: Instant,
    stop: CancellationToken,
    sessions: TaskTracker,
    runs: Mutex<HashMap<RunId, Live>>,
    spaces: tokio::sync::Mutex<HashMap<String, NamedSpace>>,
    swept: usize,
}

impl Daemon {
    /// Starts a tree on a data folder that is ours.
    pub(crate) async fn start(
        config: Loaded,
        sources: Sources,
        folders: DataFolder,
    ) -> Result<Arc<Self>, StartError> {
        let status = StatusTable::default();
        let launcher =
            Launcher::start(launch_config(&config.config, folders.folders()), status.clone())
                .await?;
        let swept = launcher.sweep().await;
        let data = &folders.folders().data;
        let transcripts = Arc::new(TranscriptFiles::new(&data.join("transcripts"))?);
        let launch = Arc::new(RoomMaking::new(launcher.clone()));
        let commons = Arc::new(Commons::new(
            Arc::new(config.config.clone()),
            folders.folders(),
            Arc::clone(&launch) as _,
        ));
        let ports = Ports {
            launch: Arc::clone(&launch) as _,
            sockets: Arc::new(Loopback),
            jitter: Arc::new(chance::SystemJitter),
            tools: Arc::new(Registry::new(Arc::clone(&commons), launcher.clone())),
            transcripts: Arc::clone(&transcripts) as _,
        };
        let stop = CancellationToken::new();
        let host = start_host(HostArgs { ports, status: status.clone() }, stop.clone()).await?;
        launch.host_is(host.clone());
        commons.host_is(host.clone());
        let id = WorkspaceId(chance::id());
        let workspace = ask(&host, |reply| HostMsg::OpenWorkspace(id, reply), ANSWER).await;
        let workspace = workspace.ok_or_else(|| StartError::Tree("no workspace".to_owned()))?;
        Ok(Arc::new(Self {
            folders,
            config: RwLock::new(config),
            sources,
            launcher,
            commons,
            transcripts,
            host,
            workspace,
            status,
            started: Instant::now(),
            stop,
            sessions: TaskTracker::new(),
            runs: Mutex::default(),
            spaces: tokio::sync::Mutex::default(),
            swept,
        }))
    }

    /// Returns the launcher.
    pub(crate) fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    /// Fires when somebody wants the daemon to stop.
    pub(crate) fn stop_requested(&self) -> &CancellationToken {
        &self.stop
    }

    /// Tracks the sessions that were joined from outside.
    pub(crate) fn sessions(&self) -> &TaskTracker {
        &self.sessions
    }

    /// Returns the folders.
    pub(crate) fn folders(&self) -> &Folders {
        self.folders.folders()
    }

    /// Reads the configuration again; what is bad leaves the old one in force.
    pub(crate) fn reload(&self) -> Result<(), ConfigError> {
        let fresh = Loaded::load(&self.sources)?;
        self.commons.configure(Arc::new(fresh.config.clone()));
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    /// Tells how things are. Asks nobody, so it cannot hang.
    pub(crate) fn report(&self) -> StatusReport {
        let mut notes = Vec::new();
        if self.swept > 0 {
            notes.push(format!(
                "{} processes that an earlier daemon of this data folder left were killed",
                self.swept
            ));
        }
        notes.extend(self.folders().note.clone());
        notes.extend(self.transcripts.trouble().map(|trouble| format!("transcripts: {trouble}")));
        StatusReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            resident_bytes: launch::resident_bytes(),
            data: self.folders().data.clone(),
            containment: self.launcher.containment().to_string(),
            notes,
            nodes: self.status.snapshot(),
        }
    }

    fn profile(&self, mode: Mode) -> Result<Arc<Profile>, OpenError> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        let found = config.config.profiles.get(&mode.to_string());
        found.map(|profile| Arc::new(profile.clone())).ok_or(OpenError::Mode(mode))
    }

    /// Opens a space, a conversation and a run on a folder, or joins a run.
    pub(crate) async fn open(self: &Arc<Self>, open: Open) -> Result<Engagement, OpenError> {
        if open.version != env!("CARGO_PKG_VERSION") {
            return Err(OpenError::Version { ours: open.version });
        }
        let dir = self.work_folder(&open.dir)?;
        match open.run {
            Some(run) => self.join(run, dir).await,
            None => self.begin(open, dir).await,
        }
    }

    fn work_folder(&self, given: &Path) -> Result<PathBuf, OpenError> {
        let bad = |reason: String| OpenError::Dir { dir: given.to_owned(), reason };
        let dir = given.canonicalize().map_err(|error| bad(error.to_string()))?;
        if !dir.is_dir() {
            return Err(bad("not a folder".to_owned()));
        }
        match self.folders().hidden().into_iter().find(|own| dir.starts_with(own)) {
            Some(own) => Err(OpenError::Hidden { dir, own }),
            None => Ok(dir),
        }
    }

    async fn join(self: &Arc<Self>, id: RunId, dir: PathBuf) -> Result<Engagement, OpenError> {
        let found = self.runs().get(&id).cloned();
        let Live { run, folder, conversation, space } = found.ok_or(OpenError::NoRun(id))?;
        if folder != dir {
            return Err(OpenError::OtherFolder { run: id, theirs: folder, dir });
        }
        let view = ask(&run, RunMsg::Look, ANSWER).await.ok_or(OpenError::NoRun(id))?;
        let first = match view.surface {
            Some(surface) => Begun { turn: view.turn, surface },
            None => ask(&run, RunMsg::BeginTurn, ANSWER).await.ok_or(OpenError::NoRun(id))?,
        };
        let daemon = Arc::clone(self);
        Ok(Engagement { run, run_id: id, conversation, space, first, daemon, on_end: OnEnd::Leave })
    }

    async fn begin(self: &Arc<Self>, open: Open, dir: PathBuf) -> Result<Engagement, OpenError> {
        let profile = self.profile(open.mode)?;
        let (space, conversation, on_end) = match open.space {
            Some(name) => self.named_space(name, profile).await?,
            None => {
                let (space, _, conversation) =
                    self.new_space(dir.display().to_string(), profile).await?;
                (space, conversation, OnEnd::EndSpace)
            }
        };
        let (conversation_id, conversation) = conversation;
        let id = RunId(chance::id());
        let env = open.env.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        let spec = Arc::new(RunSpec { id, folder: dir.clone(), env });
        let run = ask(&conversation, |reply| ConversationMsg::OpenRun(spec, reply), ANSWER).await;
        let run = run.ok_or(OpenError::ShuttingDown)?;
        let first = ask(&run, RunMsg::BeginTurn, ANSWER).await.ok_or(OpenError::ShuttingDown)?;
        let live = Live { run: run.clone(), folder: dir, conversation: conversation_id, space };
        self.runs().insert(id, live);
        let daemon = Arc::clone(self);
        Ok(Engagement {
            run,
            run_id: id,
            conversation: conversation_id,
            space,
            first,
            daemon,
            on_end,
        })
    }

    async fn new_space(
        &self,
        name: String,
        profile: Arc<Profile>,
    ) -> Result<(SpaceId, ActorRef<SpaceMsg>, (ConversationId, ActorRef<ConversationMsg>)), OpenError>
    {
        let id = SpaceId(chance::id());
        let open = |reply| WorkspaceMsg::OpenSpace { id, name, profile, reply };
        let space = ask(&self.workspace, open, ANSWER).await.ok_or(OpenError::ShuttingDown)?;
        let talk = ConversationId(chance::id());
        let open = |reply| SpaceMsg::OpenConversation(talk, reply);
        let actor = ask(&space, open, ANSWER).await.ok_or(OpenError::ShuttingDown)?;
        Ok((id, space, (talk, actor)))
    }

    async fn named_space(
        &self,
        name: String,
        profile: Arc<Profile>,
    ) -> Result<(SpaceId, (ConversationId, ActorRef<ConversationMsg>), OnEnd), OpenError> {
        let mut spaces = self.spaces.lock().await;
        if let Some(known) = spaces.get(&name) {
            let set = |reply| SpaceMsg::SetMode(Arc::clone(&profile), reply);
            if ask(&known.actor, set, ANSWER).await.is_some() {
                return Ok((known.id, known.conversation.clone(), OnEnd::EndRun));
            }
            spaces.remove(&name);
        }
        let (id, actor, conversation) = self.new_space(name.clone(), profile).await?;
        let talk = conversation.clone();
        spaces.insert(name, NamedSpace { id, actor, conversation });
        Ok((id, talk, OnEnd::EndRun))
    }

    fn runs(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Live>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends everything within 15 s. Returns how many processes are left: none,
    /// unless the kernel holds one.
    pub(crate) async fn shutdown(&self) -> usize {
        let deadline = Instant::now() + SHUTDOWN;
        self.stop.cancel();
        self.sessions.close();
        let _ = timeout(SESSIONS, self.sessions.wait()).await;
        let left = deadline.saturating_duration_since(Instant::now());
        // Its goodbyes get all but a second, which is the launcher's to kill in.
        let _ = ask(&self.host, HostMsg::End, left.saturating_sub(Duration::from_secs(1))).await;
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_secs(1));
        let unproved = self.launcher.shutdown(left).await.unproved;
        for label in &unproved {
            tracing::error!("{label}: killed, and not proved to be gone");
        }
        let transcripts = Arc::clone(&self.transcripts);
        let _ = timeout(ANSWER, tokio::task::spawn_blocking(move || transcripts.flush())).await;
        unproved.len()
    }
}

fn launch_config(config: &Config, folders: &Folders) -> LaunchConfig {
    // A hash, since a path may hold what a mark may not.
    let id = blake3::hash(folders.data.as_os_str().as_encoded_bytes()).to_hex();
    let mut launch = LaunchConfig::new(id.get(..16).unwrap_or_default());
    launch.hide = folders.hidden();
    launch.keep = vec![folders.tools.clone()];
    launch.budget.processes = config.host.processes;
    launch.budget.resident_bytes = launch::memory() / 100 * u64::from(config.host.memory_percent);
    launch
}

#[expect(clippy::disallowed_methods, reason = "the root of the tree has nobody to be linked to")]
async fn start_host(
    args: HostArgs,
    stop: CancellationToken,
) -> Result<ActorRef<HostMsg>, StartError> {
    let spawned = Actor::spawn(None, Host, args).await;
    let (host, ended) = spawned.map_err(|error| StartError::Tree(error.to_string()))?;
    tokio::spawn(async move {
        let _ = ended.await;
        // Without its host a daemon has nothing to serve; systemd starts a new one.
        stop.cancel();
    });
    Ok(host)
}

/// Asks an actor and waits for so long; `None` if it is gone or silent.
async fn ask<M: ractor::Message, T: Send + 'static>(
    actor: &ActorRef<M>,
    question: impl FnOnce(RpcReplyPort<T>) -> M,
    within: Duration,
) -> Option<T> {
    timeout(within, ask::ask(actor, question)).await.ok().flatten()
}

/// What a session's end ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnEnd {
    /// The space that it made.
    EndSpace,
    /// Its run; the space has a name and stays.
    EndRun,
    /// Nothing: it joined another's run.
    Leave,
}

/// A session's hold on a run.
pub(crate) struct Engagement {
    /// The run's actor.
    pub(crate) run: ActorRef<RunMsg>,
    /// The run.
    pub(crate) run_id: RunId,
    /// Its conversation.
    pub(crate) conversation: ConversationId,
    /// Its space.
    pub(crate) space: SpaceId,
    /// The turn that is open as the session begins.
    pub(crate) first: Begun,
    daemon: Arc<Daemon>,
    on_end: OnEnd,
}

impl Engagement {
    /// Lists what lives for the run, and the language servers that it may share.
    pub(crate) fn resources(&self) -> Vec<NodeView> {
        let nodes = self.daemon.status.snapshot();
        let name = self.run_id.to_string();
        let mut of_run = Vec::new();
        for node in &nodes {
            let inside = node.parent.is_some_and(|parent| of_run.contains(&parent));
            if inside || node.kind == NodeKind::Run && node.name == name {
                of_run.push(node.id);
            }
        }
        let wanted =
            |node: &NodeView| node.kind == NodeKind::LanguageServer || of_run.contains(&node.id);
        nodes.into_iter().filter(wanted).collect()
    }

    /// Ends what this session began. Returns when it is gone.
    pub(crate) async fn end(&self) {
        if self.on_end == OnEnd::Leave {
            return;
        }
        self.daemon.runs().remove(&self.run_id);
        match self.on_end {
            OnEnd::EndSpace => {
                let end = |reply| WorkspaceMsg::EndSpace(self.space, reply);
                let _ = ask(&self.daemon.workspace, end, SPACE).await;
            }
            OnEnd::EndRun => {
                let _ = ask(&self.run, RunMsg::End, SPACE).await;
            }
            OnEnd::Leave => {}
        }
    }
}
