//! Where an interpreter's text goes: to the cell that it belongs to, or, when it comes
//! between two cells, to the next one as late.
//!
//! One task reads the pipe as long as the process lives, so that a thread that prints
//! between cells is never held up. The runner's marks say what belongs where.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::marks::{Piece, Splitter};
use crate::ports::PipeReader;

/// Bytes that are kept of what comes between two cells.
const LATE: usize = 16 * 1024;
/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;
/// How long nothing more may come of a process that is over until that was all: what
/// it started may hold the pipe open for ever.
const LAST_WORDS: Duration = Duration::from_millis(30);
/// The longest that last words are listened to.
const PATIENCE: Duration = Duration::from_secs(1);

/// Takes the text of one cell.
pub trait Sink: Send + Sync {
    /// Takes text. Called in order, by one task; may block for as long as the disk does.
    fn text(&self, bytes: &[u8]);
    /// Says that a display belongs here.
    fn display(&self, seq: u64);
}

/// What came between two cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Late {
    /// Its end.
    pub bytes: Vec<u8>,
    /// How many bytes before that were dropped.
    pub dropped: u64,
}

impl Late {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let over = self.bytes.len().saturating_sub(LATE);
        self.bytes.drain(..over);
        self.dropped += over as u64;
    }
}

/// The cell that takes text.
struct Taking {
    cell: u64,
    sink: Arc<dyn Sink>,
    /// Its begin was seen.
    begun: bool,
}

#[derive(Default)]
struct Routes {
    taking: Option<Taking>,
    late: Late,
}

/// The text of one process. Cloning shares it.
#[derive(Clone)]
pub(super) struct Text {
    routes: Arc<Mutex<Routes>>,
    /// The last cell whose text has all come.
    whole: watch::Receiver<u64>,
    over: watch::Receiver<bool>,
    began: Instant,
    /// When text last came, in milliseconds since the begin.
    active: Arc<AtomicU64>,
    /// Bytes of the cell that takes text.
    bytes: Arc<AtomicU64>,
}

impl Text {
    /// Reads a pipe to its end, in a task.
    pub(super) fn read(pipe: PipeReader, nonce: String) -> Self {
        let (whole_tx, whole) = watch::channel(0);
        let (over_tx, over) = watch::channel(false);
        let text = Self {
            routes: Arc::default(),
            whole,
            over,
            began: Instant::now(),
            active: Arc::default(),
            bytes: Arc::default(),
        };
        let reading = text.clone();
        tokio::spawn(async move {
            reading.pump(pipe, Splitter::new(nonce), &whole_tx).await;
            let _ = over_tx.send(true);
        });
        text
    }

    async fn pump(self, mut pipe: PipeReader, mut splitter: Splitter, whole: &watch::Sender<u64>) {
        let mut chunk = vec![0; CHUNK];
        while let Ok(len @ 1..) = pipe.read(&mut chunk).await {
            self.touch();
            let read = chunk.get(..len).unwrap_or_default();
            let mut ended = None;
            {
                let mut routes = self.lock();
                splitter.push(read, |piece| {
                    if let Piece::End(cell) = piece {
                        ended = Some(cell);
                    }
                    self.route(&mut routes, &piece);
                });
            }
            if let Some(cell) = ended {
                whole.send_replace(cell);
            }
        }
        let mut routes = self.lock();
        splitter.finish(|piece| self.route(&mut routes, &piece));
    }

    fn route(&self, routes: &mut Routes, piece: &Piece<'_>) {
        let Routes { taking, late } = routes;
        match (piece, taking.as_mut()) {
            (Piece::Begin(cell), Some(taking)) if taking.cell == *cell => taking.begun = true,
            (Piece::Text(bytes), Some(taking)) if taking.begun => {
                self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                taking.sink.text(bytes);
            }
            (Piece::Text(bytes), _) => late.push(bytes),
            (Piece::Display(cell, seq), Some(taking)) if taking.cell == *cell => {
                taking.sink.display(*seq);
            }
            (Piece::End(cell), Some(of)) if of.cell == *cell => *taking = None,
            _ => {}
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        let since = self.began.elapsed().as_millis();
        self.active.store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Says to whom the text of a cell goes once that begins.
    pub(super) fn take(&self, cell: u64, sink: Arc<dyn Sink>) {
        self.bytes.store(0, Ordering::Relaxed);
        self.lock().taking = Some(Taking { cell, sink, begun: false });
    }

    /// Hands out what came since the last cell.
    pub(super) fn late(&self) -> Late {
        std::mem::take(&mut self.lock().late)
    }

    /// Returns when text last came.
    pub(super) fn last(&self) -> Instant {
        self.began + Duration::from_millis(self.active.load(Ordering::Relaxed))
    }

    /// Returns how much the cell has written.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Waits until all text of a cell has come. Says whether it has within the bound.
    pub(super) async fn is_whole(&self, cell: u64, within: Duration) -> bool {
        let mut whole = self.whole.clone();
        let come = timeout(within, whole.wait_for(|whole| *whole >= cell)).await;
        matches!(come, Ok(Ok(_)))
    }

    /// Waits for the last words of a process that is over; they are the cell's.
    pub(super) async fn finish(&self) {
        let until = Instant::now() + PATIENCE;
        let mut over = self.over.clone();
        loop {
            if timeout(LAST_WORDS, over.wait_for(|over| *over)).await.is_ok()
                || self.last().elapsed() > LAST_WORDS
                || Instant::now() > until
            {
                break;
            }
        }
        self.lock().taking = None;
    }
}
