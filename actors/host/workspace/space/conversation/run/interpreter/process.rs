//! One interpreter's process: started, spoken to, and held by the worker in it, which
//! after a death may be a snapshot that took over.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

use super::protocol::{self, Frame, LONGEST_FRAME, Ready};
use super::spec::{FRAMES, InterpreterSpec, Limits, REQUESTS, TEXT};
use super::text::{Sink, Text};
use crate::ports::{Ended, InnerProcess, Launch, Launched, PipeReader, PipeWriter, ProcessTree};

/// How long a killed tree may take to be empty.
const EMPTY: Duration = Duration::from_secs(3);
/// How long after a death a snapshot may take to take over.
const WAKES: Duration = Duration::from_secs(2);
/// How long the system may take to tell how a process ended whose end it has told.
const TOLD: Duration = Duration::from_millis(500);
/// Bytes that are read of frames at once.
const CHUNK: usize = 16 * 1024;

/// A running interpreter.
pub(super) struct Process {
    pub(super) spec: Arc<InterpreterSpec>,
    pub(super) tree: Arc<dyn ProcessTree>,
    pub(super) worker: Worker,
    pub(super) text: Text,
    pub(super) ready: Ready,
    frames: Frames,
    requests: PipeWriter,
    outbox: Vec<u8>,
    /// Why no snapshot stands; `None` where one does.
    pub(super) unkept: Option<String>,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Process({}, pid {})", self.spec.language, self.tree.pid())
    }
}

/// Who runs the cells.
pub(super) struct Worker {
    process: Option<Arc<dyn InnerProcess>>,
    /// It is the tree's main process, whose end is told with its reason.
    is_main: bool,
}

impl Worker {
    pub(super) fn signal(&self, signal: i32) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }
}

/// What comes of waiting for a process.
#[derive(Debug)]
pub(super) enum Heard {
    /// It said something.
    Frame(Frame),
    /// It is over.
    Over,
}

/// Lines of frames, put together from reads.
struct Frames {
    pipe: PipeReader,
    buffer: Vec<u8>,
    /// Up to here no end of a line was found.
    searched: usize,
    ended: bool,
    /// To be heard first.
    early: Option<Frame>,
}

/// A snapshot that took over.
#[derive(Debug)]
pub(super) struct Woken {
    /// The cell after which it was taken.
    pub(super) cell: u64,
    /// All variables, and what they hold.
    pub(super) variables: Vec<(String, String)>,
}

impl Frames {
    /// Returns the next frame; `None` at the end. Cancel safe.
    async fn next(&mut self) -> Option<Frame> {
        if let Some(frame) = self.early.take() {
            return Some(frame);
        }
        loop {
            while let Some(at) = memchr(&self.buffer, self.searched) {
                let line: Vec<u8> = self.buffer.drain(..=at).collect();
                self.searched = 0;
                match serde_json::from_slice(&line) {
                    Ok(frame) => return Some(frame),
                    // What a killed worker left half written, or a kind of a newer runner.
                    Err(_) if line.trim_ascii().is_empty() => {}
                    Err(error) => tracing::debug!("a frame that cannot be read: {error}"),
                }
            }
            self.searched = self.buffer.len();
            if self.ended || self.buffer.len() > LONGEST_FRAME {
                self.ended = true;
                return None;
            }
            self.buffer.reserve(CHUNK);
            match self.pipe.read_buf(&mut self.buffer).await {
                Ok(1..) => {}
                _ => self.ended = true,
            }
        }
    }
}

fn memchr(buffer: &[u8], from: usize) -> Option<usize> {
    let at = buffer.get(from..)?.iter().position(|byte| *byte == b'\n')?;
    Some(from + at)
}

impl Process {
    /// Starts one, and waits until its runner answers.
    pub(super) async fn start(
        launch: &dyn Launch,
        spec: Arc<InterpreterSpec>,
        nonce: String,
        limits: &Limits,
        sink: &Arc<dyn Sink>,
        note: impl FnOnce(&Arc<dyn ProcessTree>),
    ) -> Result<Self, String> {
        let until = Instant::now() + limits.start;
        let launched =
            launch.launch(spec.order(&nonce)).await.map_err(|error| error.to_string())?;
        let Launched { tree, mut to_process, mut from_process } = launched;
        note(&tree);
        let missing = || "internal error: the launcher gave no pipes".to_owned();
        let requests = to_process.remove(&REQUESTS).ok_or_else(missing)?;
        let pipe = from_process.remove(&FRAMES).ok_or_else(missing)?;
        let text = from_process.remove(&TEXT).ok_or_else(missing)?;
        let mut process = Self {
            worker: Worker { process: tree.process(None).await, is_main: true },
            text: Text::read(text, nonce.clone()),
            outbox: format!("{}\n", spec.runner).into_bytes(),
            frames: Frames { pipe, buffer: Vec::new(), searched: 0, ended: false, early: None },
            ready: Ready { nonce, version: String::new(), executable: String::new() },
            unkept: Some("no cell has run".to_owned()),
            requests,
            tree,
            spec,
        };
        let Err(why) = process.until_ready(until).await else { return Ok(process) };
        process.text.take(0, Arc::clone(sink));
        process.text.finish().await;
        let said = process.text.late();
        process.end().await;
        let said = String::from_utf8_lossy(&said.bytes).trim().to_owned();
        Err(if said.is_empty() { why } else { format!("{why}; it said:\n{said}") })
    }

    async fn until_ready(&mut self, until: Instant) -> Result<(), String> {
        loop {
            match timeout_at(until, self.hear()).await {
                Ok(Heard::Frame(Frame::Ready(ready))) if ready.nonce == self.ready.nonce => {
                    self.ready = ready;
                    return Ok(());
                }
                Ok(Heard::Frame(_)) => {}
                Ok(Heard::Over) => return Err(format!("it {} at its start", self.how().await)),
                Err(_) => return Err("it did not answer in time after its start".to_owned()),
            }
        }
    }

    /// Adds to what is to be said to it.
    pub(super) fn say(&mut self, line: &[u8]) {
        self.outbox.extend_from_slice(line);
    }

    /// Waits for what it says, and meanwhile says what is to be said. Cancel safe.
    pub(super) async fn hear(&mut self) -> Heard {
        loop {
            let Self { frames, requests, outbox, .. } = self;
            tokio::select! {
                biased;
                wrote = requests.write(outbox), if !outbox.is_empty() => match wrote {
                    Ok(len @ 1..) => drop(outbox.drain(..len)),
                    // Its end is told by its frames.
                    _ => outbox.clear(),
                },
                frame = frames.next() => return match frame {
                    Some(frame) => Heard::Frame(frame),
                    None => Heard::Over,
                },
            }
        }
    }

    /// Waits until the worker is over, which its frames need not tell: a snapshot
    /// holds their pipe as well.
    pub(super) fn over(&self) -> impl Future<Output = ()> + use<> {
        let worker = self.worker.process.clone();
        let mut ended = self.tree.ended();
        let is_main = self.worker.is_main;
        async move {
            match worker {
                Some(worker) => worker.over().await,
                None if is_main => drop(ended.wait_for(Option::is_some).await),
                None => std::future::pending().await,
            }
        }
    }

    /// Says how the worker ended.
    pub(super) fn how(&self) -> impl Future<Output = String> + use<> {
        let is_main = self.worker.is_main;
        let mut ended = self.tree.ended();
        async move {
            if !is_main {
                return "ended; how, nobody can say of a snapshot that had taken over".to_owned();
            }
            let told = timeout(TOLD, ended.wait_for(Option::is_some)).await;
            match told.ok().and_then(|told| told.ok().and_then(|ended| *ended)) {
                Some(Ended::Code(0)) => "ended by itself (exit code 0)".to_owned(),
                Some(ended) => ended.to_string(),
                None => "closed its side of the protocol".to_owned(),
            }
        }
    }

    /// Says whether the worker is over.
    pub(super) fn is_over(&self) -> bool {
        match &self.worker.process {
            Some(worker) => worker.is_over(),
            None => self.tree.ended().borrow().is_some(),
        }
    }

    /// Says whether a snapshot was known to stand.
    pub(super) fn is_kept(&self) -> bool {
        self.unkept.is_none()
    }

    /// After a death, waits for a snapshot to take over. Where there is none the frames
    /// end at once, as nobody else holds their pipe.
    pub(super) async fn woken(&mut self) -> Option<Woken> {
        let until = Instant::now() + WAKES;
        loop {
            match timeout_at(until, self.hear()).await {
                Ok(Heard::Frame(Frame::Woken { pid, cell, variables })) => {
                    let process = self.tree.process(Some(pid)).await;
                    self.worker = Worker { process, is_main: false };
                    self.unkept = Some("none was taken since the last one took over".to_owned());
                    return Some(Woken { cell, variables });
                }
                Ok(Heard::Frame(frame)) => self.note(&frame),
                Ok(Heard::Over) | Err(_) => return None,
            }
        }
    }

    /// Goes back to the state before the last cell.
    pub(super) async fn undo(&mut self) -> Result<Woken, String> {
        self.say(&protocol::undo());
        let until = Instant::now() + WAKES;
        loop {
            match timeout_at(until, self.hear()).await {
                Ok(Heard::Frame(frame @ Frame::Woken { .. })) => {
                    self.unhear(frame);
                    let woken = self.woken().await;
                    return woken.ok_or_else(|| "the snapshot is gone".to_owned());
                }
                Ok(Heard::Frame(Frame::Refused { why })) => return Err(why),
                Ok(Heard::Frame(frame)) => self.note(&frame),
                Ok(Heard::Over) => return Err("the interpreter ended".to_owned()),
                Err(_) => return Err("the interpreter did not answer in time".to_owned()),
            }
        }
    }

    /// Has a frame heard again.
    pub(super) fn unhear(&mut self, frame: Frame) {
        self.frames.early = Some(frame);
    }

    /// Asks whether it is there. `false` if it does not answer in time.
    pub(super) async fn answers(&mut self, n: u64, within: Duration) -> bool {
        self.say(&protocol::probe(n));
        let until = Instant::now() + within;
        loop {
            match timeout_at(until, self.hear()).await {
                Ok(Heard::Frame(Frame::Alive { n: answered })) if answered == n => return true,
                Ok(Heard::Frame(frame)) => self.note(&frame),
                Ok(Heard::Over) | Err(_) => return false,
            }
        }
    }

    /// Takes what is said of snapshots between cells.
    pub(super) fn note(&mut self, frame: &Frame) {
        if let Frame::Kept { skipped, .. } = frame {
            self.unkept.clone_from(skipped);
        }
    }

    /// Kills it and what it started. Says whether nothing of it was seen to be left.
    pub(super) async fn end(self) -> bool {
        self.tree.kill();
        let mut emptied = self.tree.emptied();
        matches!(timeout(EMPTY, emptied.wait_for(|empty| *empty)).await, Ok(Ok(_)))
    }
}
