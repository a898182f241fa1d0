//! A harness of its own for the demo: one session over the daemon's socket, in
//! which calls are made and timed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};
use tokio::time::timeout;

use crate::cli::session::END_OF_INPUT;
use crate::serve::client::{Client, ClientError};
use crate::serve::protocol::Open;

type Stream = hyper_util::rt::TokioIo<hyper::upgrade::Upgraded>;

/// Against a hang: no call of the demo takes a fraction of it.
const BOUND: Duration = Duration::from_secs(15);

/// Why the demo cannot go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the session broke: {0}")]
    Stream(#[from] std::io::Error),
    #[error("no answer to {what} within {within:?}")]
    Silent { what: String, within: Duration },
    #[error("the session ended early")]
    Ended,
    #[error("{what} failed: {text}")]
    Failed { what: String, text: String },
    #[error("{what}: expected {expected}, and came: {text}")]
    Unexpected { what: String, expected: String, text: String },
}

/// A session, used by one run.
pub(super) struct Remote {
    reader: BufReader<ReadHalf<Stream>>,
    writer: WriteHalf<Stream>,
    last: u64,
    /// How long a call may take.
    pub(super) bound: Duration,
    /// How long each call took.
    pub(super) times: Vec<Duration>,
}

/// What a call brought.
pub(super) struct Answer {
    /// Its text.
    pub(super) text: String,
    /// Its images: their types, and their bytes in base64.
    pub(super) images: Vec<(String, String)>,
    /// Its facts.
    pub(super) details: Value,
}

impl Answer {
    /// Returns the word for what the diagnostics in it are worth.
    pub(super) fn freshness(&self) -> &str {
        self.details.get("freshness").and_then(Value::as_str).unwrap_or_default()
    }

    /// Is it a verdict on the text as it is now, with so many problems.
    pub(super) fn is_fresh(&self, problems: u64) -> bool {
        let fact = |name| self.details.get(name);
        fact("total").and_then(Value::as_u64) == Some(problems) && self.freshness() == "fresh"
    }

    /// Fails where what must hold does not.
    pub(super) fn expect(&self, holds: bool, what: &str, expected: &str) -> Result<(), Broken> {
        if holds {
            return Ok(());
        }
        Err(unexpected(what, expected, format!("{} {}", self.text, self.details)))
    }
}

/// Says what should have come, and what came.
pub(super) fn unexpected(what: &str, expected: &str, text: String) -> Broken {
    Broken::Unexpected { what: what.to_owned(), expected: expected.to_owned(), text }
}

impl Remote {
    /// Opens a session.
    pub(super) async fn open(client: &Client, open: &Open) -> Result<Self, Broken> {
        let (reader, writer) = tokio::io::split(client.session(open).await?);
        let reader = BufReader::new(reader);
        let mut remote = Self { reader, writer, last: 0, bound: BOUND, times: Vec::new() };
        let ready = remote.line("the opening").await?;
        match ready.pointer("/error/message").and_then(Value::as_str) {
            Some(text) => {
                Err(Broken::Failed { what: "the opening".to_owned(), text: text.to_owned() })
            }
            None => Ok(remote),
        }
    }

    async fn line(&mut self, what: &str) -> Result<Value, Broken> {
        let mut line = Vec::new();
        let read = timeout(self.bound, self.reader.read_until(b'\n', &mut line)).await;
        match read.map_err(|_| Broken::Silent { what: what.to_owned(), within: self.bound })?? {
            0 => Err(Broken::Ended),
            _ => Ok(serde_json::from_slice(&line).unwrap_or_default()),
        }
    }

    /// Makes a call that must succeed.
    pub(super) async fn call(&mut self, tool: &str, arguments: Value) -> Result<Answer, Broken> {
        let what = format!("{tool} {arguments}");
        match self.make(tool, arguments).await? {
            (false, answer) => Ok(answer),
            (true, Answer { text, .. }) => Err(Broken::Failed { what, text }),
        }
    }

    /// Makes a call that must be refused.
    pub(super) async fn refused(&mut self, tool: &str, arguments: Value) -> Result<Answer, Broken> {
        let what = format!("{tool} {arguments}");
        let (refused, answer) = self.make(tool, arguments).await?;
        answer.expect(refused, &what, "a refusal")?;
        Ok(answer)
    }

    /// Makes a call, and says whether it failed.
    async fn make(&mut self, tool: &str, arguments: Value) -> Result<(bool, Answer), Broken> {
        self.last += 1;
        let what = format!("{tool} {arguments}");
        let line = json!({"id": self.last, "call": tool, "arguments": arguments});
        let began = Instant::now();
        self.writer.write_all(format!("{line}\n").as_bytes()).await?;
        self.writer.flush().await?;
        let answer = loop {
            let line = self.line(&what).await?;
            if line.get("id").and_then(Value::as_u64) == Some(self.last) {
                break line;
            }
        };
        self.times.push(began.elapsed());
        let blocks = answer.pointer("/result/content").and_then(Value::as_array);
        let texts = blocks.into_iter().flatten().filter_map(|block| block.get("text")?.as_str());
        let text = texts.collect::<Vec<_>>().join("\n");
        let image = |block: &Value| {
            let part = |name: &str| Some(block.get(name)?.as_str()?.to_owned());
            Some((part("mime_type")?, part("data")?))
        };
        let images = blocks.into_iter().flatten().filter_map(image).collect();
        let failed = answer.pointer("/result/is_error") != Some(&Value::Bool(false));
        let refused = answer.pointer("/error/message").and_then(Value::as_str);
        let text = text + refused.unwrap_or_default();
        let details = answer.pointer("/result/details").cloned().unwrap_or_default();
        Ok((failed, Answer { text, images, details }))
    }

    /// Ends the session and waits until the daemon has ended its run.
    pub(super) async fn end(mut self) -> Result<Vec<Duration>, Broken> {
        self.writer.write_all(END_OF_INPUT).await?;
        self.writer.flush().await?;
        loop {
            match self.line("the end").await {
                Ok(_) => {}
                Err(Broken::Ended) => return Ok(self.times),
                Err(error) => return Err(error),
            }
        }
    }
}
