//! What the seats of all runs have in common, and how a seat is taken.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use hostler_actors::host::workspace::space::conversation::run::language_session::LanguageSessionHandle;
use hostler_actors::ports::{Launch, Posture, ToolCall};

use crate::background::Background;
use crate::config::Config;
use crate::folder::{Folder, FolderError};
use crate::folders::Folders;
use crate::handles::{Limits, OutputHandles};
use crate::install::bin_folders;
use crate::locks::PathLocks;
use crate::seat::Seat;
use crate::servers::Languages;
use crate::shims::Programs;

/// What the seats of all runs have in common.
pub(crate) struct Commons {
    config: RwLock<Arc<Config>>,
    launch: Arc<dyn Launch>,
    programs: Arc<Programs>,
    locks: PathLocks,
    spilled: PathBuf,
    tools: PathBuf,
}

impl Commons {
    /// Takes what a host was started with.
    pub(crate) fn new(config: Arc<Config>, folders: &Folders, launch: Arc<dyn Launch>) -> Self {
        Self {
            config: RwLock::new(config),
            programs: Arc::new(Programs::new(Arc::clone(&launch))),
            launch,
            locks: PathLocks::default(),
            spilled: folders.data.join("spilled"),
            tools: folders.tools.clone(),
        }
    }

    /// Takes a configuration for the seats that are taken from now on.
    pub(crate) fn configure(&self, config: Arc<Config>) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// Takes a seat for the run of a call. Looks at the disk.
    pub(crate) fn seat(&self, call: &ToolCall) -> Result<Seat, FolderError> {
        let config = Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner));
        let run = call.spec.id;
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
            launch: Arc::clone(&self.launch),
            languages: Languages {
                session: LanguageSessionHandle::of_run(call.run.clone()),
                installed: bin_folders(&self.tools, &config),
                config,
                programs: Arc::clone(&self.programs),
                posture: Posture::Writable,
            },
        })
    }
}
