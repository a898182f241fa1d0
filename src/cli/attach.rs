//! Whom a command talks to: a daemon that serves, or a tree of its own.
//!
//! Without `--data` a session joins the usual daemon, else it hosts on a private
//! folder that goes with it. With `--data` it owns that folder and serves its
//! socket, unless somebody owns it already, whom it then joins.

use std::sync::Arc;
use std::time::Duration;

use hostler_actors::profile::Mode;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use super::args::{ModeArg, Opening};
use super::exit::Refusal;
use super::logging::Logging;
use crate::cli::Ground;
use crate::daemon::{Daemon, DataFolder};
use crate::folders::{FolderError, Folders};
use crate::serve::client::Client;
use crate::serve::http;
use crate::serve::protocol::Open;

/// How long answers that are under way may take once all else has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Whom a command talks to.
pub(crate) enum Place {
    /// A daemon that serves.
    Joined(Client),
    /// A tree in this process.
    Hosted(Hosted),
}

/// A tree in this process.
pub(crate) struct Hosted {
    /// The tree.
    pub(crate) daemon: Arc<Daemon>,
    serving: Option<JoinHandle<std::io::Result<()>>>,
    _logging: Option<Logging>,
}

impl Hosted {
    /// Waits for the sessions that have joined, then ends everything. Returns how
    /// many processes are left.
    pub(crate) async fn end(self, wait_for_others: bool) -> usize {
        if wait_for_others {
            self.daemon.sessions().close();
            tokio::select! {
                () = self.daemon.sessions().wait() => {}
                () = self.daemon.stop_requested().cancelled() => {}
            }
        }
        let left = self.daemon.shutdown().await;
        if let Some(mut serving) = self.serving {
            // Whoever asked for the stop gets the answer; a peer that hangs does not
            // hold us.
            if tokio::time::timeout(LAST_ANSWERS, &mut serving).await.is_err() {
                serving.abort();
            }
            let _ = std::fs::remove_file(self.daemon.folders().socket());
        }
        left
    }
}

/// Finds or makes the place for a session.
pub(crate) async fn attach(ground: &Ground, opening: &Opening) -> Result<Place, Refusal> {
    let folders = ground.folders(opening.data.as_deref())?;
    if opening.data.is_some() {
        return match folders.own() {
            Ok(owned) => {
                let folder = DataFolder::Owned(folders, owned);
                Ok(Place::Hosted(host(ground, folder, true).await?))
            }
            Err(FolderError::Owned { .. }) => joined(&folders).await,
            Err(error) => Err(Refusal::usage(error)),
        };
    }
    let client = Client::new(folders.socket());
    if client.is_served().await {
        return Ok(Place::Joined(client));
    }
    if opening.run.is_some() {
        let why = "--run joins a run that lives, and no daemon serves here";
        return Err(Refusal::no_daemon(why));
    }
    let private = folders.private().map_err(Refusal::usage)?;
    Ok(Place::Hosted(host(ground, DataFolder::Private(private), false).await?))
}

async fn joined(folders: &Folders) -> Result<Place, Refusal> {
    let client = Client::new(folders.socket());
    // Its owner may be about to open its socket.
    for _ in 0..50 {
        if client.is_served().await {
            return Ok(Place::Joined(client));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let pid = folders.owner().unwrap_or_else(|| "?".to_owned());
    Err(Refusal::no_daemon(format!(
        "{}: process {pid} owns this folder and does not serve {} within 5 s",
        folders.data.display(),
        client.socket().display(),
    )))
}

/// Starts a tree on a folder that takes the log too, and opens its socket if it
/// shall serve. A process logs to one place: it does this once.
pub(crate) async fn host(
    ground: &Ground,
    folder: DataFolder,
    serve: bool,
) -> Result<Hosted, Refusal> {
    let logging = ground.log_to(Some(&folder.folders().logs()))?;
    let hosted = start(ground, folder, serve).await?;
    Ok(Hosted { _logging: Some(logging), ..hosted })
}

/// Starts a tree on a folder, and leaves the log to the caller.
pub(crate) async fn start(
    ground: &Ground,
    folder: DataFolder,
    serve: bool,
) -> Result<Hosted, Refusal> {
    let daemon = Daemon::start(ground.loaded.clone(), ground.sources.clone(), folder)
        .await
        .map_err(Refusal::failed)?;
    let serving = if serve { Some(open_socket(&daemon)?) } else { None };
    Ok(Hosted { daemon, serving, _logging: None })
}

fn open_socket(daemon: &Arc<Daemon>) -> Result<JoinHandle<std::io::Result<()>>, Refusal> {
    daemon.folders().make_runtime().map_err(Refusal::usage)?;
    let socket = daemon.folders().socket();
    // Ours by the lock on the data folder; what is there a dead owner left.
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket)
        .map_err(|error| Refusal::usage(format!("{}: {error}", socket.display())))?;
    let stop = daemon.stop_requested().clone();
    Ok(tokio::spawn(http::serve(Arc::clone(daemon), listener, stop)))
}

/// Says what to open.
pub(crate) fn open(ground: &Ground, opening: &Opening) -> Result<Open, Refusal> {
    opening.supported()?;
    let run = opening.run.as_deref().map(str::parse).transpose().map_err(Refusal::usage)?;
    let dir = std::path::absolute(&opening.dir)
        .map_err(|error| Refusal::usage(format!("{}: {error}", opening.dir.display())))?;
    let texts = ground.sources.environment.for_children().into_iter();
    let env =
        texts.filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
    Ok(Open {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        dir,
        mode: match opening.mode {
            ModeArg::Chat => Mode::Chat,
            ModeArg::Review => Mode::Review,
            ModeArg::Plan => Mode::Plan,
            ModeArg::Orchestrate => Mode::Orchestrate,
        },
        space: opening.space.clone(),
        run,
        env: env.collect(),
    })
}
