//! A language server that the test plays, message by message.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::time::timeout;

use super::process::{FakeProcess, PATIENCE};
use crate::frame::{FrameReader, framed};
use crate::ports::Ended;

/// One end of the protocol over a [`FakeProcess`].
#[derive(Debug)]
pub struct FakeServer {
    /// The process that it runs in.
    pub process: FakeProcess,
    from_client: FrameReader<DuplexStream>,
    to_client: Option<DuplexStream>,
    /// A message that was read and not yet taken.
    waiting: Option<Value>,
}

impl FakeServer {
    /// Takes a process's stdin and stdout.
    #[must_use]
    pub fn new(mut process: FakeProcess) -> Self {
        let stdin = process.pipes.remove(&0).expect("a language server has a stdin");
        let to_client = process.pipes.remove(&1);
        Self { process, from_client: FrameReader::new(stdin), to_client, waiting: None }
    }

    /// Plays the handshake, claiming these capabilities.
    pub async fn shake_hands(&mut self, capabilities: Value) -> Value {
        let asked = self.take("initialize").await;
        self.answer(&asked, json!({ "capabilities": capabilities })).await;
        self.take("initialized").await;
        asked
    }

    /// Takes the next message, which must have this method; returns all of it.
    pub async fn take(&mut self, method: &str) -> Value {
        let message = self.next().await.expect("the client still writes");
        let given = message.get("method").and_then(Value::as_str);
        assert_eq!(given, Some(method), "in {message}");
        message
    }

    /// Takes the next message, which must answer the request of this id.
    pub async fn take_answer(&mut self, id: &Value) -> Value {
        let message = self.next().await.expect("the client still writes");
        assert_eq!(message.get("id"), Some(id), "in {message}");
        assert!(message.get("method").is_none(), "in {message}");
        message
    }

    /// Takes the next message, or `None` when stdin was closed.
    pub async fn next(&mut self) -> Option<Value> {
        if let Some(message) = self.waiting.take() {
            return Some(message);
        }
        let body = timeout(PATIENCE, self.from_client.next()).await;
        let body = body.expect("the client sends what the test waits for");
        let body = body.expect("the client frames well")?;
        Some(serde_json::from_slice(&body).expect("the client writes JSON"))
    }

    /// Says whether a message is there, without waiting for time to pass.
    pub async fn has_more(&mut self) -> bool {
        let soon = timeout(Duration::from_millis(1), self.next());
        self.waiting = soon.await.ok().flatten();
        self.waiting.is_some()
    }

    /// Answers a request that was taken.
    pub async fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id_of(request), "result": result })).await;
    }

    /// Refuses a request that was taken.
    pub async fn refuse(&mut self, request: &Value, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.send(&json!({ "jsonrpc": "2.0", "id": id_of(request), "error": error })).await;
    }

    /// Tells the client something.
    pub async fn say(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Asks the client something and takes the answer, which must come next.
    pub async fn ask(&mut self, id: Value, method: &str, params: Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&request).await;
        self.take_answer(&id).await
    }

    /// Sends a message.
    pub async fn send(&mut self, message: &Value) {
        self.write(&framed(message.to_string().as_bytes())).await;
    }

    /// Writes bytes as they are.
    pub async fn write(&mut self, bytes: &[u8]) {
        let pipe = self.to_client.as_mut().expect("stdout is open");
        // The client may be gone: that is the test's business, not the fake's.
        let _ = pipe.write_all(bytes).await;
    }

    /// Closes stdout, while the process lives on.
    pub fn close_stdout(&mut self) {
        self.to_client = None;
    }

    /// Ends the process.
    pub fn die(&mut self, how: Ended) {
        self.close_stdout();
        self.process.tree.end(how);
    }
}

fn id_of(request: &Value) -> &Value {
    request.get("id").expect("only a request is answered")
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        if let Some(message) = self.waiting.as_ref().filter(|_| !thread::panicking()) {
            panic!("a message was seen and never taken: {message}");
        }
    }
}
