//! HTTP on the daemon's unix socket: status, stop, reload and the session stream.
//!
//! Only the user's own processes reach the socket (its folder is 0700); one that
//! lies in a tree which we launched is a run's, and may do nothing here.
//!
//! The tricky thing: a session is an upgraded connection, not a long response,
//! so that both directions flow at once and either side's end is seen.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::IncomingStream;
use axum::{Json, Router};
use hostler_actors::status::NodeView;
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

use super::lines::{LONGEST, Line, Lines};
use super::protocol::{Code, Open, Refusal};
use super::session::{self, AtEnd};
use crate::daemon::Daemon;

/// The protocol that a connection is upgraded to.
pub(crate) const UPGRADE: &str = "hostler-session";

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug)]
struct Peer {
    pid: Option<u32>,
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        let pid = stream.io().peer_cred().ok().and_then(|peer| peer.pid());
        Self { pid: pid.and_then(|pid| u32::try_from(pid).ok()) }
    }
}

/// What `GET /v1/status` answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StatusReport {
    /// The daemon's version.
    pub(crate) version: String,
    /// Its process.
    pub(crate) pid: u32,
    /// Milliseconds since it started.
    pub(crate) uptime_ms: u64,
    /// Its resident bytes.
    pub(crate) resident_bytes: u64,
    /// Its data folder.
    pub(crate) data: PathBuf,
    /// How processes are contained on this host, in words.
    pub(crate) containment: String,
    /// What a person should know.
    pub(crate) notes: Vec<String>,
    /// The tree, parents before children.
    pub(crate) nodes: Vec<NodeView>,
}

/// Serves until `stop`, and then until the answers under way are given.
pub(crate) async fn serve(
    daemon: Arc<Daemon>,
    listener: UnixListener,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/v1/status", get(status))
        .route("/v1/stop", post(end))
        .route("/v1/reload", post(reload))
        .route("/v1/session", post(open_session))
        .layer(middleware::from_fn_with_state(Arc::clone(&daemon), refuse_runs))
        .with_state(daemon);
    axum::serve(listener, router.into_make_service_with_connect_info::<Peer>())
        .with_graceful_shutdown(async move { stop.cancelled().await })
        .await
}

async fn refuse_runs(
    State(daemon): State<Arc<Daemon>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let owner = peer.pid.and_then(|pid| daemon.launcher().peer_in_tree(pid));
    if owner.is_some() {
        let message = "a process that a run started has no rights at the daemon's socket";
        return refusal(StatusCode::FORBIDDEN, message);
    }
    next.run(request).await
}

fn refusal(status: StatusCode, message: impl Into<String>) -> Response {
    (status, Json(json!({"error": {"message": message.into()}}))).into_response()
}

async fn status(State(daemon): State<Arc<Daemon>>) -> Json<StatusReport> {
    Json(daemon.report())
}

async fn end(State(daemon): State<Arc<Daemon>>) -> Json<serde_json::Value> {
    daemon.stop_requested().cancel();
    Json(json!({"ok": {"pid": std::process::id()}}))
}

async fn reload(State(daemon): State<Arc<Daemon>>) -> Response {
    match daemon.reload() {
        Ok(()) => Json(json!({"ok": {}})).into_response(),
        Err(error) => refusal(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
    }
}

async fn open_session(State(daemon): State<Arc<Daemon>>, mut request: Request) -> Response {
    let wanted = request.headers().get(header::UPGRADE).is_some_and(|value| value == UPGRADE);
    if !wanted {
        let message = format!("this address takes `Upgrade: {UPGRADE}` only");
        return refusal(StatusCode::UPGRADE_REQUIRED, message);
    }
    let upgrade = hyper::upgrade::on(&mut request);
    let tracker = daemon.sessions().clone();
    tracker.spawn(async move {
        match upgrade.await {
            Ok(upgraded) => {
                let (reader, writer) = tokio::io::split(TokioIo::new(upgraded));
                join(&daemon, BufReader::new(reader), writer).await;
            }
            Err(error) => tracing::warn!("a session's connection was not upgraded: {error}"),
        }
    });
    (StatusCode::SWITCHING_PROTOCOLS, [(header::CONNECTION, "upgrade"), (header::UPGRADE, UPGRADE)])
        .into_response()
}

/// Takes the opening line and then speaks as any session does.
async fn join<R, W>(daemon: &Arc<Daemon>, mut reader: R, mut writer: W)
where
    R: tokio::io::AsyncBufRead + Send + Unpin + 'static,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let opened = async {
        let line =
            Lines::new(&mut reader, LONGEST).next().await.map_err(|error| error.to_string())?;
        let Some((_, Line::Text(line))) = line else {
            return Err("the opening line is missing or too long".to_owned());
        };
        let open: Open = serde_json::from_slice(&line)
            .map_err(|error| format!("not an opening line: {error}"))?;
        daemon.open(open).await.map_err(|error| error.to_string())
    };
    match opened.await {
        Ok(engagement) => {
            let stop = daemon.stop_requested().clone();
            session::speak(engagement, reader, writer, AtEnd::HangUp, stop).await;
        }
        Err(message) => {
            let refusal = Refusal::new(serde_json::Value::Null, Code::BadRequest, message);
            let _ = writer.write_all(format!("{}\n", refusal.to_json()).as_bytes()).await;
            let _ = writer.shutdown().await;
        }
    }
}
