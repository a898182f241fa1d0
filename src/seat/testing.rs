//! A seat on a temporary folder, for the tests of tools.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hostler_actors::host::workspace::space::conversation::run::language_session::testing::{
    FakeServer, FakeServers,
};
use hostler_actors::ids::RunId;
use hostler_actors::ports::{Block, BoxFuture, Launch, LaunchError, LaunchOrder, Launched};
use hostler_actors::status::{NodeKind, StatusEntry, StatusTable};
use serde_json::Value;

use super::Seat;
use crate::background::Background;
use crate::checkers::shared::Checks;
use crate::checkers::wanted::WantedChecks;
use crate::folder::Folder;
use crate::folder::journal::Journals;
use crate::handles::{Limits, OutputHandles};
use crate::servers::testing::languages;
use crate::staged::Staged;
use crate::tools::{Cancel, Failure, Tool};
use crate::watch::Watches;

/// A seat, and the folder that goes with it.
pub(crate) struct Bench {
    pub(crate) seat: Seat,
    pub(crate) table: StatusTable,
    /// The language server that its tools find once there is `bin/fake`.
    pub(crate) server: Arc<FakeServer>,
    /// The one that there is beside it, once it is turned on.
    pub(crate) second: Arc<FakeServer>,
    _run: StatusEntry,
    place: tempfile::TempDir,
}

impl Bench {
    /// Makes a seat on an empty folder.
    pub(crate) fn new(launch: Arc<dyn Launch>) -> Self {
        let place = tempfile::tempdir().unwrap();
        let (work, run) = (place.path().join("work"), RunId(1));
        std::fs::create_dir(&work).unwrap();
        let table = StatusTable::default();
        let entry = table.enter(None, NodeKind::Run, run.to_string());
        let mut servers = FakeServers::default();
        let second: Arc<FakeServer> = Arc::default();
        servers.others.insert("ruff".to_owned(), Arc::clone(&second));
        let languages = languages(&servers, &table, Arc::clone(&launch));
        let watches = Watches::new(Arc::new(|_| {}));
        let checks = Checks::new(Arc::clone(&launch), watches, place.path().join("cache"));
        let limits = Limits::showing(languages.config.results.inline_bytes);
        let seat = Seat {
            run,
            folder: Folder::open(&work).unwrap(),
            seen: Default::default(),
            handles: OutputHandles::new(run, &place.path().join("data"), limits),
            background: Background::new(entry.anchor()),
            env: crate::config::environment::Environment::inherited().for_children().into(),
            locks: Default::default(),
            adapters: crate::adapters::testing::adapters(&table, &launch),
            interpreters: crate::interpreters::testing::none(),
            trees: Default::default(),
            staged: Staged::new(entry.anchor()),
            journals: Journals::at(place.path().join("data/commits")),
            checks: WantedChecks::new(checks, entry.anchor()),
            languages,
            launch,
        };
        Self { seat, table, server: servers.server, second, _run: entry, place }
    }

    /// Turns the second server on.
    pub(crate) fn with_second(mut self) -> Self {
        let mut config = (*self.seat.languages.config).clone();
        config.servers.get_mut("ruff").unwrap().enabled = true;
        self.seat.languages.config = Arc::new(config);
        self.program("bin/second", "");
        self
    }

    /// Returns a place in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.seat.folder.root().join(name)
    }

    /// Returns a place beside the folder.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Puts a file there, with the folders on its way.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Puts a script there that can be executed.
    pub(crate) fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.put(name, format!("#!/bin/sh\n{script}\n"));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
        path
    }

    /// Returns what a file holds.
    pub(crate) fn content(&self, name: &str) -> String {
        String::from_utf8(std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    /// Calls a tool and returns its text and details.
    pub(crate) async fn call(
        &self,
        tool: &Tool,
        arguments: Value,
    ) -> Result<(String, Value), Failure> {
        let output = (tool.call)(&self.seat, arguments, Cancel::new()).await?;
        let texts = output.content.iter().map(|block| match block {
            Block::Text { text } => text.as_str(),
            Block::Image { mime_type, .. } => mime_type.as_str(),
        });
        Ok((texts.collect::<Vec<_>>().join("\n"), output.details))
    }

    /// Calls a tool that must succeed.
    pub(crate) async fn done(&self, tool: &Tool, arguments: Value) -> String {
        self.call(tool, arguments).await.expect("the call succeeds").0
    }

    /// Calls a tool that must fail.
    pub(crate) async fn fails(&self, tool: &Tool, arguments: Value) -> String {
        self.call(tool, arguments).await.expect_err("the call fails").message
    }
}

/// Starts nothing.
pub(crate) struct NoLaunch;

impl Launch for NoLaunch {
    fn launch(&self, order: LaunchOrder) -> BoxFuture<'_, Result<Launched, LaunchError>> {
        Box::pin(async move { Err(LaunchError::NotFound { program: order.program }) })
    }
}
