//! The two ends of one process's pipes: requests under way, frames to be written.
//!
//! Shared with callers, so that a warm request goes from its caller to the pipe
//! and back without the actor in between; the actor makes it and ends it.
//!
//! The tricky thing: a server that does not read must block nobody. Frames are
//! queued, never awaited; over the cap, or when a write makes no progress, the
//! incarnation is given up.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ractor::ActorRef;
use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::LanguageServerMsg;
use super::envelope::{self, Message, Refusal, Reply};
use crate::frame::FrameReader;
use crate::ports::{PipeReader, PipeWriter};

/// Bytes that may wait to be written: one file at the cap of what tools read, twice.
const MOST_QUEUED: usize = 128 * 1024 * 1024;
/// What a frame costs beside its bytes, so that small ones are bounded too.
const FRAME_COST: usize = 128;
/// How long one write may make no progress. A server that computes reads again
/// within seconds; the longest seen was 9 s, an index of 62,000 lines.
const WRITE_BOUND: Duration = Duration::from_secs(20);
/// Bytes handed to the pipe at once, so that progress is seen.
const PIECE: usize = 64 * 1024;
/// Requests and notifications of the server that may wait for the actor.
const MOST_INCOMING: usize = 256;

/// A connection that takes no more requests.
#[derive(Debug)]
pub(super) struct Closed;

/// A request or notification of the server, on its way through the mailbox.
#[derive(Debug)]
pub struct Incoming {
    pub(super) message: Message,
    /// Gives the reader room for one more when it is dropped.
    _room: OwnedSemaphorePermit,
}

/// Our side of one process's pipes.
#[derive(Debug)]
pub(super) struct Connection {
    calls: Mutex<Calls>,
    queue: mpsc::UnboundedSender<Job>,
    queued: Arc<AtomicUsize>,
    actor: ActorRef<LanguageServerMsg>,
    heard: Mutex<Instant>,
}

#[derive(Debug)]
struct Calls {
    open: bool,
    last_id: i64,
    by_id: HashMap<i64, oneshot::Sender<Reply>>,
}

#[derive(Debug)]
enum Job {
    Write(Vec<u8>),
    Close,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    /// Makes a connection, and the task that writes for it.
    pub(super) fn new(
        actor: ActorRef<LanguageServerMsg>,
        pipe: PipeWriter,
    ) -> (Arc<Self>, impl Future<Output = ()> + Send) {
        let (queue, jobs) = mpsc::unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let writing = write_all(pipe, jobs, Arc::clone(&queued), actor.clone());
        let connection = Self {
            calls: Mutex::new(Calls { open: true, last_id: 0, by_id: HashMap::new() }),
            queue,
            queued,
            actor,
            heard: Mutex::new(Instant::now()),
        };
        (Arc::new(connection), writing)
    }

    /// Sends a request. Dropping the [`Call`] before its answer cancels it.
    pub(super) fn call(self: &Arc<Self>, method: &str, params: Value) -> Result<Call, Closed> {
        let mut calls = lock(&self.calls);
        if !calls.open {
            return Err(Closed);
        }
        let call = self.enter(&mut calls);
        drop(calls);
        self.enqueue(envelope::outgoing(Some(call.id), method, params));
        Ok(call)
    }

    /// The same for the goodbye, when callers may no more.
    pub(super) fn last_call(self: &Arc<Self>, method: &str) -> Call {
        let call = self.enter(&mut lock(&self.calls));
        self.enqueue(envelope::outgoing(Some(call.id), method, Value::Null));
        call
    }

    fn enter(self: &Arc<Self>, calls: &mut Calls) -> Call {
        calls.last_id += 1;
        let (sender, answer) = oneshot::channel();
        calls.by_id.insert(calls.last_id, sender);
        Call { connection: Arc::clone(self), id: calls.last_id, answer }
    }

    /// Sends a notification.
    pub(super) fn notify(&self, method: &str, params: Value) {
        self.enqueue(envelope::outgoing(None, method, params));
    }

    /// Answers a request of the server.
    pub(super) fn answer(&self, id: &serde_json::value::RawValue, answer: Result<Value, Refusal>) {
        self.enqueue(envelope::answer(id, answer));
    }

    fn enqueue(&self, frame: Vec<u8>) {
        let cost = frame.len() + FRAME_COST;
        if self.queued.fetch_add(cost, Ordering::Relaxed) + cost > MOST_QUEUED {
            self.queued.fetch_sub(cost, Ordering::Relaxed);
            let reason = format!("does not read its stdin: {MOST_QUEUED} bytes wait to be written");
            let _ = self.actor.cast(LanguageServerMsg::Broken(reason));
            return;
        }
        let _ = self.queue.send(Job::Write(frame));
    }

    /// Fails every call under way and takes no more.
    pub(super) fn close(&self) {
        let mut calls = lock(&self.calls);
        calls.open = false;
        calls.by_id.clear();
    }

    /// Closes the process's stdin behind what is queued.
    pub(super) fn close_stdin(&self) {
        let _ = self.queue.send(Job::Close);
    }

    /// Returns when the process last sent anything.
    pub(super) fn heard(&self) -> Instant {
        *lock(&self.heard)
    }

    /// Reads until the pipe ends or the process breaks the framing.
    pub(super) async fn read_all(self: Arc<Self>, pipe: PipeReader) {
        let mut frames = FrameReader::new(pipe);
        // A flood waits in the pipe, not in the actor's mailbox.
        let room = Arc::new(Semaphore::new(MOST_INCOMING));
        loop {
            let body = match frames.next().await {
                Ok(Some(body)) => body,
                Ok(None) => {
                    let _ = self.actor.cast(LanguageServerMsg::PipeLost("closed its stdout"));
                    return;
                }
                Err(error) => {
                    let _ = self.actor.cast(LanguageServerMsg::Broken(error.to_string()));
                    return;
                }
            };
            *lock(&self.heard) = Instant::now();
            match envelope::read(&body) {
                Some(Message::Answer { id, reply }) => {
                    // Nobody waits for a late answer.
                    if let Some(caller) = lock(&self.calls).by_id.remove(&id) {
                        let _ = caller.send(reply);
                    }
                }
                Some(message) => {
                    let Ok(room) = Arc::clone(&room).acquire_owned().await else { return };
                    let message = Incoming { message, _room: room };
                    if self.actor.cast(LanguageServerMsg::Incoming(message)).is_err() {
                        return;
                    }
                }
                None => tracing::debug!(bytes = body.len(), "a server sent what is no message"),
            }
        }
    }
}

async fn write_all(
    mut pipe: PipeWriter,
    mut jobs: mpsc::UnboundedReceiver<Job>,
    queued: Arc<AtomicUsize>,
    actor: ActorRef<LanguageServerMsg>,
) {
    while let Some(Job::Write(frame)) = jobs.recv().await {
        if let Err(lost) = write(&mut pipe, &frame).await {
            let _ = actor.cast(lost);
            return;
        }
        queued.fetch_sub(frame.len() + FRAME_COST, Ordering::Relaxed);
    }
    let _ = timeout(WRITE_BOUND, pipe.shutdown()).await;
}

async fn write(
    pipe: &mut (impl AsyncWrite + Unpin),
    frame: &[u8],
) -> Result<(), LanguageServerMsg> {
    for piece in frame.chunks(PIECE) {
        match timeout(WRITE_BOUND, pipe.write_all(piece)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(LanguageServerMsg::PipeLost("closed its stdin")),
            Err(_) => {
                let reason = format!("has not read its stdin for {WRITE_BOUND:?}");
                return Err(LanguageServerMsg::Broken(reason));
            }
        }
    }
    pipe.flush().await.map_err(|_| LanguageServerMsg::PipeLost("closed its stdin"))
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Call {
    connection: Arc<Connection>,
    id: i64,
    answer: oneshot::Receiver<Reply>,
}

impl Call {
    /// Waits for the answer. Cancel safe.
    pub(super) async fn answer(&mut self) -> Result<Reply, Closed> {
        (&mut self.answer).await.map_err(|_| Closed)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if lock(&self.connection.calls).by_id.remove(&self.id).is_some() {
            self.connection.notify("$/cancelRequest", json!({ "id": self.id }));
        }
    }
}
