//! One debug session, as its callers, its tasks and its actor share it.
//!
//! What it hears (`hearing`) is entered into the book under its lock, in order: a
//! `stopped` that comes before the answer to a step is known before that answer is.
//! The actor is told of the end and sees to it; it is not asked by
//! anybody who only wants to look.
//!
//! It keeps no process alive: the tree is the actor's, so that it goes with the actor.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ractor::ActorRef;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::DebugSessionMsg;
use super::adapter::Started;
use super::bodies;
use super::book::{Book, Place, ROOT};
use super::breakpoints::{Mark, SharedWishes};
use super::link::{Link, Unanswered};
use super::output::{Output, Piece};
use super::refusal::{End, NotNow};
use super::spec::{Guard, Kind, SessionSpec};
use crate::ports::{Launch, ProcessTree, Sockets};
use crate::status::StatusEntry;

/// Bytes of new output in a report.
const REPORTED: usize = 1500;
/// How long after the end of its connection an adapter may be known as lost.
const LOSS: Duration = Duration::from_secs(2);
/// Lines of output beside an error.
const TAIL: usize = 20;

/// Why a question was not answered.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AskError {
    /// It cannot be asked now.
    #[error(transparent)]
    NotNow(#[from] NotNow),
    /// The adapter did not answer, or refused.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

/// What a session needs of the outside and of its conversation.
pub(super) struct Means {
    pub(super) launch: Arc<dyn Launch>,
    pub(super) sockets: Arc<dyn Sockets>,
    pub(super) wishes: SharedWishes,
    /// Stops of all sessions of the conversation.
    pub(super) stops: Arc<AtomicU64>,
    pub(super) status: Arc<StatusEntry>,
    /// An adapter that was kept ready for it.
    pub(super) ready: Mutex<Option<Started>>,
    pub(super) actor: ActorRef<DebugSessionMsg>,
}

/// One debug session, live or over.
pub struct Session {
    /// What shaped it.
    pub spec: SessionSpec,
    /// What goes with it, though it is remembered.
    guard: Mutex<Option<Guard>>,
    pub(super) number: u64,
    pub(super) means: Means,
    /// Cancelled when the actor that owns the session is gone.
    pub(super) owner: CancellationToken,
    begun: Instant,
    book: Mutex<Book>,
    changed: watch::Sender<()>,
    pub(super) links: Mutex<BTreeMap<usize, Arc<Link>>>,
    /// What the debuggee wrote.
    pub(super) output: Mutex<Output>,
    /// What the adapter said beside that.
    pub(super) console: Mutex<Output>,
    pub(super) tree: Mutex<Option<Weak<dyn ProcessTree>>>,
    /// The end of its process's stderr, once that is gone.
    stderr: Mutex<String>,
    /// Pipes of its process that are still read.
    pub(super) pipes: AtomicUsize,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({} {})", self.spec.adapter, self.spec.what)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a session is, in a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// On its way up, and what it waits for.
    Starting(&'static str),
    /// The program runs.
    Running,
    /// It is stopped, for this reason.
    Stopped(String),
    /// It is over; what belonged to it is going.
    Ending(End),
    /// It is over, and nothing of it is left.
    Over(End),
}

impl Session {
    pub(super) fn new(
        number: u64,
        mut spec: SessionSpec,
        means: Means,
        owner: CancellationToken,
    ) -> Arc<Self> {
        let last_stop = means.stops.load(Ordering::Relaxed);
        let guard = Mutex::new(spec.guard.take());
        let session = Arc::new(Self {
            spec,
            guard,
            number,
            means,
            owner,
            begun: Instant::now(),
            book: Mutex::new(Book::new(last_stop)),
            changed: watch::Sender::new(()),
            links: Mutex::default(),
            output: Mutex::default(),
            console: Mutex::default(),
            tree: Mutex::new(None),
            stderr: Mutex::default(),
            pipes: AtomicUsize::new(0),
        });
        session.change(|_| ());
        session
    }

    /// Returns how long it has been there.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns how long it may still live.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.spec.bounds.ttl.saturating_sub(self.age())
    }

    /// Returns where it is.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.look(|book| match (&book.over, book.starting) {
            (Some(end), _) if book.gone => Standing::Over(end.clone()),
            (Some(end), _) => Standing::Ending(end.clone()),
            (None, Some(step)) => Standing::Starting(step),
            (None, None) => {
                let halt = book.stopped_limb().ok().and_then(|limb| book.halt(limb));
                halt.map_or(Standing::Running, |halt| {
                    Standing::Stopped(halt.stopped.reason.clone())
                })
            }
        })
    }

    /// Returns the exit code of the debuggee, where it was told.
    #[must_use]
    pub fn exit_code(&self) -> Option<i64> {
        self.look(|book| book.exit_code)
    }

    /// Returns where it stands, if it is stopped and that was asked for.
    #[must_use]
    pub fn present_place(&self) -> Option<Place> {
        self.look(|book| book.halt(book.stopped_limb().ok()?)?.place.clone())
    }

    /// Returns where it last stood.
    #[must_use]
    pub fn last_place(&self) -> Option<Place> {
        self.look(|book| book.last_place.clone())
    }

    /// Returns what became of a file's breakpoints.
    #[must_use]
    pub fn marks_of(&self, shown: &str) -> Vec<Mark> {
        self.look(|book| book.marks.of(shown).to_vec())
    }

    /// Returns what became of all breakpoints, with the names of their files.
    #[must_use]
    pub fn marks(&self) -> Vec<(String, Mark)> {
        self.look(|book| {
            book.marks.all().map(|(file, mark)| (file.to_owned(), mark.clone())).collect()
        })
    }

    /// Returns the exception filters that the adapter knows, each with whether it is
    /// on by the adapter's own choice.
    #[must_use]
    pub fn exception_filters(&self) -> Vec<(String, bool)> {
        self.look(|book| {
            let of = book.limbs.get(&ROOT).map(|limb| limb.capabilities.clone());
            filters(&Value::Object(of.unwrap_or_default()))
        })
    }

    /// Returns output from a position on.
    #[must_use]
    pub fn output_from(&self, cursor: u64, most: usize) -> Piece {
        lock(&self.output).from(cursor, most)
    }

    /// Returns the end of the output.
    #[must_use]
    pub fn output_tail(&self, most: usize) -> Piece {
        lock(&self.output).tail(0, most)
    }

    /// Returns the output that no report has shown yet.
    #[must_use]
    pub fn new_output(&self) -> Piece {
        lock(&self.output).untold(REPORTED)
    }

    /// Returns the last lines that the adapter and its process said before the end.
    #[must_use]
    pub fn last_words(&self) -> String {
        let said = lock(&self.console).last_lines(TAIL);
        let ring = lock(&self.stderr).clone();
        let pieces = [said, ring.trim_end().to_owned(), lock(&self.output).last_lines(TAIL)];
        pieces.into_iter().filter(|piece| !piece.trim().is_empty()).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&Book) -> T) -> T {
        look(&lock(&self.book))
    }

    /// Changes the book, and wakes whoever waits for a change.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let mut book = lock(&self.book);
        let outcome = change(&mut book);
        self.means.stops.fetch_max(book.last_stop(), Ordering::Relaxed);
        drop(book);
        let phase = match self.standing() {
            Standing::Starting(_) => "starting",
            Standing::Running => "running",
            Standing::Stopped(_) => "stopped",
            Standing::Ending(_) => "ending",
            Standing::Over(_) => "idle",
        };
        self.means.status.update(|row| row.phase = phase);
        self.changed.send_replace(());
        outcome
    }

    /// Waits until the book shows something. The caller bounds it.
    pub(super) async fn until<T>(&self, mut find: impl FnMut(&Book) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(found) = self.look(&mut find) {
                return found;
            }
            if changed.changed().await.is_err() {
                // The sender is ours, and we are here.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until the session is over, for whatever reason.
    pub(super) async fn until_over(&self) -> End {
        self.until(|book| book.over.clone()).await
    }

    /// Ends the session; the first reason counts.
    pub(super) fn end(&self, end: End) {
        let first = self.change(|book| {
            let first = book.over.is_none();
            book.over.get_or_insert(end);
            first
        });
        if first {
            // What it says from here on is of its own end.
            self.keep_words();
            let _ = self.means.actor.cast(DebugSessionMsg::Over(self.number));
        }
    }

    pub(super) fn link(&self, limb: usize) -> Option<Arc<Link>> {
        lock(&self.links).get(&limb).cloned()
    }

    /// Asks a limb's adapter. The end of the session ends the wait too.
    pub(super) async fn ask(
        &self,
        limb: usize,
        command: &'static str,
        arguments: Value,
    ) -> Result<Value, AskError> {
        let Some(link) = self.link(limb) else { return Err(NotNow::Over.into()) };
        let answer = tokio::select! {
            biased;
            answer = link.ask(command, arguments, self.spec.bounds.request) => answer,
            _ = self.until_over() => return Err(NotNow::Over.into()),
        };
        match answer {
            Ok(body) => Ok(body),
            Err(error) => Err(self.unanswered(limb, error).await),
        }
    }

    /// Says why there was no answer: an adapter whose connection ended is about to be
    /// known as lost, and its caller is to find the session so.
    pub(super) async fn unanswered(&self, limb: usize, error: Unanswered) -> AskError {
        if limb == ROOT && matches!(error, Unanswered::Closed(_)) {
            let over = timeout(LOSS, self.until_over());
            if over.await.is_ok() {
                return NotNow::Over.into();
            }
        }
        error.into()
    }

    pub(super) fn drop_link(&self, limb: usize) {
        if let Some(link) = lock(&self.links).remove(&limb) {
            link.close();
        }
    }

    /// Closes every connection behind what is queued.
    pub(super) fn close_links(&self) {
        for link in lock(&self.links).values() {
            link.close();
        }
    }

    /// Takes what the debuggee wrote.
    pub(super) fn wrote(&self, text: &str) {
        lock(&self.output).push(text);
    }

    /// Lets go of what the edge gave along. That may take the disk a moment.
    pub(super) async fn drop_guard(&self) {
        let guard = lock(&self.guard).take();
        // Fails only where the runtime is being shut down.
        let _ = tokio::task::spawn_blocking(move || drop(guard)).await;
    }

    /// Keeps what the adapter's process said last, since it is about to be gone.
    fn keep_words(&self) {
        if let Some(tree) = lock(&self.tree).as_ref().and_then(Weak::upgrade) {
            *lock(&self.stderr) = tree.ring_tail(TAIL);
        }
    }

    /// Says whether the debuggee lives on without us.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.spec.kind == Kind::Attach
    }
}

/// Reads the exception filters of an adapter's capabilities.
pub(super) fn filters(capabilities: &Value) -> Vec<(String, bool)> {
    let read = |of: &Value| Some((bodies::text(of, "filter")?, bodies::truth(of, "default")));
    bodies::list(capabilities, "exceptionBreakpointFilters").filter_map(read).collect()
}
