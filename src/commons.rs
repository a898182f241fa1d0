//! What the seats of all runs have in common, and how a seat is taken.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use hostler_actors::host::HostMsg;
use hostler_actors::host::workspace::space::conversation::run::language_session::LanguageSessionHandle;
use hostler_actors::ports::{Launch, Posture, ToolCall};
use ractor::ActorRef;

use crate::adapters::rust::Sysroots;
use crate::adapters::scratch;
use crate::adapters::{Adapters, desk_of};
use crate::background::Background;
use crate::checkers::shared::Checks;
use crate::checkers::wanted::WantedChecks;
use crate::config::Config;
use crate::folder::journal::Journals;
use crate::folder::{Folder, FolderError};
use crate::folders::Folders;
use crate::handles::{Limits, OutputHandles};
use crate::install::{installed, installed_adapters};
use crate::interpreters::Interpreters;
use crate::locks::PathLocks;
use crate::seat::Seat;
use crate::servers::Languages;
use crate::servers::watched::Watched;
use crate::shims::Programs;
use crate::staged::Staged;
use crate::trees::Trees;
use crate::watch::Watches;

/// What the seats of all runs have in common.
pub(crate) struct Commons {
    config: RwLock<Arc<Config>>,
    launch: Arc<dyn Launch>,
    programs: Arc<Programs>,
    sysroots: Arc<Sysroots>,
    locks: PathLocks,
    trees: Trees,
    journals: Journals,
    watches: Watches,
    checks: Checks,
    host: Arc<OnceLock<ActorRef<HostMsg>>>,
    spilled: PathBuf,
    tools: PathBuf,
}

impl Commons {
    /// Takes what a host was started with.
    pub(crate) fn new(config: Arc<Config>, folders: &Folders, launch: Arc<dyn Launch>) -> Self {
        let host = Arc::<OnceLock<ActorRef<HostMsg>>>::default();
        let told = Arc::clone(&host);
        let watches = Watches::new(Arc::new(move |root| {
            if let Some(host) = told.get() {
                let _ = host.cast(HostMsg::RootGone(root.to_owned()));
            }
        }));
        scratch::sweep();
        Self {
            checks: Checks::new(Arc::clone(&launch), watches.clone(), folders.cache.join("checks")),
            watches,
            host,
            config: RwLock::new(config),
            programs: Arc::new(Programs::new(Arc::clone(&launch))),
            sysroots: Arc::default(),
            launch,
            locks: PathLocks::default(),
            trees: Trees::default(),
            journals: Journals::at(folders.commits()),
            spilled: folders.data.join("spilled"),
            tools: folders.tools.clone(),
        }
    }

    /// Names the host, which lets the servers of a root go that is deleted.
    pub(crate) fn host_is(&self, host: ActorRef<HostMsg>) {
        // There is one, and it is named once.
        let _ = self.host.set(host);
    }

    /// Lets go of what no run is there for any more.
    pub(crate) fn no_run_is_left(&self) {
        self.trees.clear();
    }

    /// Takes a configuration for the seats that are taken from now on.
    pub(crate) fn configure(&self, config: Arc<Config>) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// Takes a seat for the run of a call. Looks at the disk.
    pub(crate) fn seat(&self, call: &ToolCall) -> Result<Seat, FolderError> {
        let config = Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner));
        let run = call.spec.id;
        // What a session that was killed left half done, before anybody looks at it.
        self.journals.recover();
        Ok(Seat {
            run,
            folder: Folder::open(&call.spec.folder)?,
            seen: Default::default(),
            handles: OutputHandles::new(
                run,
                &self.spilled,
                Limits::showing(config.results.inline_bytes),
            ),
            background: Background::new(call.row.clone()),
            env: Arc::clone(&call.spec.env),
            locks: self.locks.clone(),
            trees: self.trees.clone(),
            staged: Staged::new(call.row.clone()),
            journals: self.journals.clone(),
            launch: Arc::clone(&self.launch),
            adapters: Adapters {
                desk: desk_of(call.run.clone()),
                installed: installed_adapters(&self.tools, &config),
                sysroots: Arc::clone(&self.sysroots),
            },
            interpreters: Interpreters::of_run(call.run.clone()),
            checks: WantedChecks::new(self.checks.clone(), call.row.clone()),
            languages: Languages {
                session: LanguageSessionHandle::of_run(call.run.clone()),
                installed: installed(&self.tools, &config),
                config,
                programs: Arc::clone(&self.programs),
                posture: Posture::Writable,
                watched: Watched::new(self.watches.clone()),
                known: Default::default(),
            },
        })
    }
}
