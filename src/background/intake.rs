//! A process's output on its way from the pipe to a capture.
//!
//! The end of a process is never told from its pipe: whatever it left in the
//! background may hold that open for ever. So output is taken in *while* something
//! else is awaited, and what is in the pipe at the end is fetched until it runs dry.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hostler_actors::ports::PipeReader;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout_at};

use crate::handles::capture::{Capture, Clipped};
use crate::handles::{Handle, OutputHandles};

/// A pipe that gave nothing for so long, with the reactor polled in between, is dry.
const DRY: Duration = Duration::from_millis(10);
/// How long a background process that floods the pipe can keep us.
const FLOOD: Duration = Duration::from_millis(250);
/// As much as a pipe holds by default.
const CHUNK: usize = 64 * 1024;

/// Output that is being taken in.
pub(crate) struct Intake {
    pipe: Option<PipeReader>,
    chunk: Box<[u8]>,
    capture: Arc<Mutex<Capture>>,
}

impl Intake {
    /// Begins to take in from a pipe.
    pub(crate) fn new(pipe: Option<PipeReader>, handles: &OutputHandles) -> Self {
        let capture = Arc::new(Mutex::new(Capture::new(handles)));
        Self { pipe, chunk: vec![0; CHUNK].into(), capture }
    }

    /// Says whether more can come.
    pub(crate) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Returns what is shown of what came so far.
    pub(crate) fn clipped(&self) -> Clipped {
        self.capture().clipped()
    }

    /// Returns where all of it is, if that is more than is shown.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.capture().handle()
    }

    /// Opens a handle for what came and will come.
    pub(crate) async fn spill(&mut self) {
        self.on_disk(Capture::spill).await;
    }

    /// Takes in output until something is done.
    pub(crate) async fn until<F: Future>(&mut self, done: F) -> F::Output {
        let mut done = pin!(done);
        loop {
            let read = tokio::select! {
                output = &mut done => return output,
                read = read(&mut self.pipe, &mut self.chunk) => read,
            };
            // Outside the select: a piece that was read must not be lost.
            self.take(read).await;
        }
    }

    /// Takes in what is in the pipe, without waiting for its end.
    pub(crate) async fn drain(&mut self) {
        let flooded = Instant::now() + FLOOD;
        while self.is_open() {
            let dry = flooded.min(Instant::now() + DRY);
            match timeout_at(dry, read(&mut self.pipe, &mut self.chunk)).await {
                Ok(read) => self.take(read).await,
                Err(_) => return,
            }
        }
    }

    async fn take(&mut self, read: io::Result<usize>) {
        let Ok(length @ 1..) = read else {
            self.pipe = None;
            return;
        };
        let piece = self.chunk.get(..length).unwrap_or_default();
        if self.capture().stays_short(length) {
            self.capture().push(piece);
        } else {
            let piece = piece.to_vec();
            self.on_disk(move |capture| capture.push(&piece)).await;
        }
    }

    // `&mut`, as a pipe may not be shared between threads.
    async fn on_disk(&mut self, work: impl FnOnce(&mut Capture) + Send + 'static) {
        let capture = Arc::clone(&self.capture);
        let work = move || work(&mut capture.lock().unwrap_or_else(PoisonError::into_inner));
        if let Err(error) = tokio::task::spawn_blocking(work).await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }

    fn capture(&self) -> MutexGuard<'_, Capture> {
        self.capture.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a piece; a pipe at its end gives nothing, for ever.
async fn read(pipe: &mut Option<PipeReader>, chunk: &mut [u8]) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read(chunk).await,
        None => std::future::pending().await,
    }
}
