//! The other end of the daemon's socket, for the command line.
//!
//! One connection, one request: the socket is local and calls are rare.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::http::UPGRADE;
use super::protocol::Open;

/// How long the daemon may take to answer: its answers wait for nothing.
const BOUND: Duration = Duration::from_secs(10);

/// Why the daemon could not be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// Nobody listens.
    #[error("no daemon serves at {}: {reason}; start one with `hostler serve`", .socket.display())]
    NoDaemon { socket: PathBuf, reason: std::io::Error },
    /// It did not answer in time.
    #[error("the daemon at {} did not answer within {BOUND:?}", .socket.display())]
    TimedOut { socket: PathBuf },
    /// It refused.
    #[error("the daemon refused ({status}): {message}")]
    Refused { status: StatusCode, message: String },
    /// The connection broke, or what came is not what was expected.
    #[error("the daemon at {}: {reason}", .socket.display())]
    Broken { socket: PathBuf, reason: String },
}

/// Where a daemon listens.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    socket: PathBuf,
}

impl Client {
    /// Names the socket; nothing is opened yet.
    pub(crate) fn new(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into() }
    }

    /// Says whether somebody listens.
    pub(crate) async fn is_served(&self) -> bool {
        UnixStream::connect(&self.socket).await.is_ok()
    }

    /// Returns the socket.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Asks for a JSON document.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.json(Method::GET, path).await
    }

    /// Asks for something to be done.
    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.json(Method::POST, path).await
    }

    /// Opens a session and returns its stream.
    pub(crate) async fn session(
        &self,
        open: &Open,
    ) -> Result<TokioIo<hyper::upgrade::Upgraded>, ClientError> {
        let response = self.ask(Method::POST, "/v1/session", true).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(self.refused(response).await);
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(|e| self.broken(e))?;
        let mut stream = TokioIo::new(upgraded);
        let mut line = serde_json::to_vec(open).map_err(|error| self.broken(error))?;
        line.push(b'\n');
        stream.write_all(&line).await.map_err(|error| self.broken(error))?;
        Ok(stream)
    }

    fn broken(&self, reason: impl std::fmt::Display) -> ClientError {
        ClientError::Broken { socket: self.socket.clone(), reason: reason.to_string() }
    }

    async fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
    ) -> Result<T, ClientError> {
        let response = self.ask(method, path, false).await?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let body = self.body(response).await?;
        serde_json::from_slice(&body).map_err(|error| self.broken(error))
    }

    async fn body(&self, response: Response<hyper::body::Incoming>) -> Result<Bytes, ClientError> {
        let whole = timeout(BOUND, response.into_body().collect()).await;
        let whole = whole.map_err(|_| ClientError::TimedOut { socket: self.socket.clone() })?;
        Ok(whole.map_err(|error| self.broken(error))?.to_bytes())
    }

    async fn refused(&self, response: Response<hyper::body::Incoming>) -> ClientError {
        let status = response.status();
        match self.body(response).await {
            Ok(body) => {
                let value: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
                let message = value.pointer("/error/message").and_then(serde_json::Value::as_str);
                ClientError::Refused { status, message: message.unwrap_or_default().to_owned() }
            }
            Err(error) => error,
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        upgrade: bool,
    ) -> Result<Response<hyper::body::Incoming>, ClientError> {
        let stream = UnixStream::connect(&self.socket)
            .await
            .map_err(|reason| ClientError::NoDaemon { socket: self.socket.clone(), reason })?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.broken(error))?;
        tokio::spawn(connection.with_upgrades());
        let mut request =
            Request::builder().method(method).uri(path).header(header::HOST, "hostler");
        if upgrade {
            request =
                request.header(header::CONNECTION, "upgrade").header(header::UPGRADE, UPGRADE);
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(|error| self.broken(error))?;
        let sent = timeout(BOUND, sender.send_request(request)).await;
        sent.map_err(|_| ClientError::TimedOut { socket: self.socket.clone() })?
            .map_err(|error| self.broken(error))
    }
}
