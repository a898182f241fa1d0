//! One connection to an adapter: requests under way, frames to be written.
//!
//! Shared with callers, so that a question goes from its caller to the pipe and back
//! without an actor in between. An adapter that does not read blocks nobody: frames
//! are queued, and over the cap the connection is given up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::wire::{self, Fault, Message, Reply};
use crate::frame::FrameReader;
use crate::ports::{PipeReader, PipeWriter};

/// Frames that may wait to be written. Calls of a conversation come one by one, so a
/// healthy adapter never has more than a handful.
const MOST_QUEUED: usize = 256;
/// How long one frame may take to be written.
const WRITE_BOUND: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unanswered {
    /// The adapter refused.
    #[error(transparent)]
    Refused(#[from] Fault),
    /// Its connection ended first.
    #[error("the debug adapter's connection ended before it answered `{0}`")]
    Closed(String),
    /// It took too long.
    #[error("the debug adapter did not answer `{command}` within {bound:?}")]
    Late {
        /// What was asked.
        command: String,
        /// How long was waited.
        bound: Duration,
    },
}

#[derive(Debug)]
struct Calls {
    open: bool,
    heard: bool,
    last: i64,
    waiting: HashMap<i64, oneshot::Sender<Reply>>,
}

/// Our side of one connection.
#[derive(Debug)]
pub(super) struct Link {
    calls: Mutex<Calls>,
    queue: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Makes a connection, and the task that writes for it.
    pub(super) fn new(to: PipeWriter) -> (Arc<Self>, impl Future<Output = ()> + Send) {
        let (queue, frames) = mpsc::channel(MOST_QUEUED);
        let waiting = HashMap::new();
        let link = Arc::new(Self {
            calls: Mutex::new(Calls { open: true, heard: false, last: 0, waiting }),
            queue: Mutex::new(Some(queue)),
        });
        let writing = write_all(Arc::clone(&link), to, frames);
        (link, writing)
    }

    /// Sends a request; the [`Call`] brings its answer.
    pub(super) fn call(self: &Arc<Self>, command: &'static str, arguments: Value) -> Call {
        let mut calls = lock(&self.calls);
        calls.last += 1;
        let seq = calls.last;
        let (sender, answer) = oneshot::channel();
        let open = calls.open;
        if open {
            calls.waiting.insert(seq, sender);
        }
        drop(calls);
        if open {
            self.enqueue(wire::request(seq, command, arguments));
        }
        Call { link: Arc::clone(self), seq, command, answer }
    }

    /// Sends a request and waits for its answer, at most for `bound`.
    pub(super) async fn ask(
        self: &Arc<Self>,
        command: &'static str,
        arguments: Value,
        bound: Duration,
    ) -> Result<Value, Unanswered> {
        let mut call = self.call(command, arguments);
        match timeout(bound, call.answer()).await {
            Ok(answer) => answer,
            Err(_) => Err(Unanswered::Late { command: command.to_owned(), bound }),
        }
    }

    /// Answers a request of the adapter.
    pub(super) fn answer(&self, to: i64, command: &str, answer: Result<Value, &str>) {
        let seq = {
            let mut calls = lock(&self.calls);
            calls.last += 1;
            calls.last
        };
        self.enqueue(wire::answer(seq, to, command, answer));
    }

    fn enqueue(&self, frame: Vec<u8>) {
        let queued = lock(&self.queue).as_ref().is_some_and(|queue| queue.try_send(frame).is_ok());
        if !queued {
            self.close();
        }
    }

    /// Fails every call under way, takes no more, and closes the writing side behind
    /// what is queued.
    pub(super) fn close(&self) {
        let mut calls = lock(&self.calls);
        calls.open = false;
        calls.waiting.clear();
        drop(calls);
        lock(&self.queue).take();
    }

    /// Says whether it can be used.
    pub(super) fn is_open(&self) -> bool {
        lock(&self.calls).open
    }

    /// Says whether the adapter ever sent a message.
    pub(super) fn was_heard(&self) -> bool {
        lock(&self.calls).heard
    }

    /// Reads until the connection ends; whatever is no answer goes to `on`. Returns
    /// why it ended, where that was a breach of the framing.
    pub(super) async fn read_all(
        self: Arc<Self>,
        from: PipeReader,
        mut on: impl FnMut(Message) + Send,
    ) -> Option<String> {
        let mut frames = FrameReader::new(from);
        let broken = loop {
            let body = match frames.next().await {
                Ok(Some(body)) => body,
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            };
            match wire::read(&body) {
                Some(Message::Answer { to, reply }) => {
                    let mut calls = lock(&self.calls);
                    calls.heard = true;
                    let caller = calls.waiting.remove(&to);
                    drop(calls);
                    // Nobody waits for a late answer.
                    if let Some(caller) = caller {
                        let _ = caller.send(reply);
                    }
                }
                Some(message) => {
                    lock(&self.calls).heard = true;
                    on(message);
                }
                None => tracing::debug!(bytes = body.len(), "an adapter sent what is no message"),
            }
        };
        self.close();
        broken
    }
}

async fn write_all(link: Arc<Link>, mut to: PipeWriter, mut frames: mpsc::Receiver<Vec<u8>>) {
    while let Some(frame) = frames.recv().await {
        let written = async {
            to.write_all(&frame).await?;
            to.flush().await
        };
        if !matches!(timeout(WRITE_BOUND, written).await, Ok(Ok(()))) {
            link.close();
            return;
        }
    }
    let _ = timeout(WRITE_BOUND, to.shutdown()).await;
}

/// A request under way. Dropping it gives it up.
#[derive(Debug)]
pub(super) struct Call {
    link: Arc<Link>,
    seq: i64,
    command: &'static str,
    answer: oneshot::Receiver<Reply>,
}

impl Call {
    /// Waits for the answer. Cancel safe.
    pub(super) async fn answer(&mut self) -> Result<Value, Unanswered> {
        match (&mut self.answer).await {
            Ok(reply) => Ok(reply?),
            Err(_) => Err(Unanswered::Closed(self.command.to_owned())),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        lock(&self.link.calls).waiting.remove(&self.seq);
    }
}
