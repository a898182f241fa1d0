//! Going on and stopping: `continue`, the steps, `pause`.
//!
//! A step says at once that the program runs, is taken back if the adapter refuses,
//! and waits for the next stop within its bound. That nothing stopped is no failure:
//! the stop is remembered, and told by whoever asks next.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use super::book::{Book, ROOT};
use super::link::Unanswered;
use super::refusal::NotNow;
use super::report::{self, StopReport};
use super::session::{AskError, Session};

/// How long the goodbye after an end may take before its caller is answered without
/// what it would have told, such as an exit code.
const GOODBYE: Duration = Duration::from_secs(8);

/// A way to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the next stop.
    Continue,
    /// To the next line.
    Over,
    /// Into a call.
    In,
    /// Out of the function.
    Out,
}

/// What came of going on.
#[derive(Debug)]
pub enum Came {
    /// It stopped.
    Stopped(Box<StopReport>),
    /// It runs.
    Running,
    /// The session is over.
    Over,
}

impl Session {
    /// Goes on, and waits for the next stop. To continue what runs is to wait for it; and
    /// nobody goes on from a stop that came unseen: that is told first.
    pub async fn resume(
        self: &Arc<Self>,
        step: Step,
        thread: Option<i64>,
        bound: Duration,
    ) -> Result<Came, AskError> {
        if self.look(|book| book.is_news(thread)) {
            return Ok(self.settle(0, bound).await);
        }
        if step == Step::Continue && self.look(Book::is_running) {
            let mark = self.look(Book::last_stop);
            return Ok(self.settle(mark, bound).await);
        }
        self.check_thread(thread).await?;
        let (limb, id, mark, taken) = self.change(|book| {
            let (limb, id) = book.stopped_thread(thread)?;
            let mark = book.last_stop();
            let taken = book.resume(limb).ok_or(NotNow::Running)?;
            Ok::<_, NotNow>((limb, id, mark, taken))
        })?;
        let (command, arguments) = match step {
            Step::Continue => ("continue", json!({ "threadId": id })),
            Step::Over => ("next", json!({ "threadId": id, "granularity": "line" })),
            Step::In => ("stepIn", json!({ "threadId": id, "granularity": "line" })),
            Step::Out => ("stepOut", json!({ "threadId": id, "granularity": "line" })),
        };
        match self.ask(limb, command, arguments).await {
            Err(error @ AskError::Unanswered(Unanswered::Refused(_))) => {
                self.change(|book| book.not_resumed(limb, taken));
                return Err(error);
            }
            // Late or cut off: what became of it is seen from what happens.
            Err(_) => {}
            Ok(_) => self.change(|book| book.forget_old()),
        }
        Ok(self.settle(mark, bound).await)
    }

    /// Stops it where it is.
    pub async fn pause(
        self: &Arc<Self>,
        thread: Option<i64>,
        bound: Duration,
    ) -> Result<Came, AskError> {
        self.look(|book| book.usable())?;
        if self.look(|book| book.stopped_limb().is_ok()) {
            return Ok(self.settle(0, bound).await);
        }
        let mark = self.look(Book::last_stop);
        let (limb, id) = match thread {
            Some(thread) => self.look(|book| book.inner_thread(thread)),
            None => (ROOT, self.any_thread().await),
        };
        self.change(|book| {
            if let Some(of) = book.limbs.get_mut(&limb) {
                of.pausing = true;
            }
        });
        if let Err(error) = self.ask(limb, "pause", json!({ "threadId": id })).await {
            self.change(|book| {
                if let Some(of) = book.limbs.get_mut(&limb) {
                    of.pausing = false;
                }
            });
            return Err(error);
        }
        Ok(self.settle(mark, bound).await)
    }

    async fn any_thread(&self) -> i64 {
        let threads = self.ask(ROOT, "threads", json!({})).await;
        let threads = threads.map(|body| super::bodies::threads(&body)).unwrap_or_default();
        threads.first().map_or(0, |thread| thread.id)
    }

    /// Waits until it runs, stops or is over, after a start.
    pub async fn started(self: &Arc<Self>, bound: Duration) -> Came {
        // Bounded by the start's own deadline.
        self.until(|book| (book.starting.is_none() || book.over.is_some()).then_some(())).await;
        self.settle(0, bound).await
    }

    /// Waits for a stop after the one numbered `mark`, or for the end, and tells it.
    pub async fn settle(self: &Arc<Self>, mark: u64, bound: Duration) -> Came {
        let settled = self.until(|book| book.settled(mark).then_some(()));
        let _ = timeout(bound, settled).await;
        if self.look(|book| book.over.is_some()) {
            let _ = timeout(GOODBYE, self.until(|book| book.gone.then_some(()))).await;
            return Came::Over;
        }
        match self.report().await {
            Ok(report) => Came::Stopped(Box::new(report)),
            Err(_) if self.look(|book| book.over.is_some()) => {
                let _ = timeout(GOODBYE, self.until(|book| book.gone.then_some(()))).await;
                Came::Over
            }
            Err(_) => Came::Running,
        }
    }

    /// Tells the present stop.
    pub async fn report(self: &Arc<Self>) -> Result<StopReport, AskError> {
        report::report(self).await
    }
}
