//! Questions about a stop: threads, frames, scopes, variables, expressions.
//!
//! Everything is asked under a reference that is good for the present stop only. An
//! expression may never come to an end: it is then left to itself and said to be
//! under way, so that the next one is not silently queued behind it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::bodies::{self, Thread};
use super::book::{What, outer_thread};
use super::breakpoints::{SourceFile, Wish};
use super::configure::{place, set_exceptions};
use super::link::Unanswered;
use super::refusal::NotNow;
use super::report::{At, Frame, Variable, frames, known};
use super::session::{AskError, Session};

/// Threads that are listed at most, the stopped one first.
const MOST_THREADS: usize = 50;

/// A frame's scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Its name.
    pub name: String,
    /// What its variables are asked by.
    pub reference: i64,
    /// Would it be slow to list.
    pub expensive: bool,
}

/// Threads, and how many there are.
#[derive(Clone, Debug)]
pub struct Threads {
    /// The first of them.
    pub shown: Vec<Thread>,
    /// How many there are.
    pub total: usize,
    /// The one that stopped.
    pub stopped: Option<i64>,
}

impl Session {
    /// Lists threads.
    pub async fn threads(&self) -> Result<Threads, AskError> {
        self.look(|book| book.usable())?;
        let limbs: Vec<usize> = self.look(|book| book.limbs.keys().copied().collect());
        let mut all = Vec::new();
        for limb in limbs {
            let body = self.ask(limb, "threads", json!({})).await?;
            all.extend(
                bodies::threads(&body)
                    .into_iter()
                    .map(|thread| Thread { id: outer_thread(limb, thread.id), name: thread.name }),
            );
        }
        let stopped = self.look(|book| {
            let limb = book.stopped_limb().ok()?;
            Some(outer_thread(limb, book.halt(limb)?.stopped.thread?))
        });
        all.sort_by_key(|thread| Some(thread.id) != stopped);
        let total = all.len();
        all.truncate(MOST_THREADS);
        Ok(Threads { shown: all, total, stopped })
    }

    /// Refuses a thread that does not exist. Asks only about one that is not known from
    /// the stop itself.
    pub(super) async fn check_thread(&self, thread: Option<i64>) -> Result<(), AskError> {
        let Some(thread) = thread else { return Ok(()) };
        let (limb, id) = self.look(|book| book.stopped_thread(Some(thread)))?;
        if self.look(|book| book.halt(limb).is_some_and(|halt| halt.names(id))) {
            return Ok(());
        }
        let body = self.ask(limb, "threads", json!({})).await?;
        let known = bodies::threads(&body).iter().any(|thread| thread.id == id);
        if known { Ok(()) } else { Err(NotNow::NoThread(thread).into()) }
    }

    /// Lists the frames of a stopped thread.
    pub async fn stack(&self, thread: Option<i64>, most: usize) -> Result<Vec<Frame>, AskError> {
        self.check_thread(thread).await?;
        let (at, thread) = self.look(|book| {
            let (limb, id) = book.stopped_thread(thread)?;
            let halt = book.halt(limb).ok_or(NotNow::Running)?.number;
            Ok::<_, NotNow>((At { limb, halt }, id))
        })?;
        let (frames, _) = frames(self, at, thread, most).await?;
        self.change(|book| book.tell(at.limb, at.halt));
        Ok(frames)
    }

    fn target(&self, reference: i64, what: What) -> Result<(At, i64), NotNow> {
        self.look(|book| {
            let (target, halt) = book.target(reference, what)?;
            Ok((At { limb: target.limb, halt }, target.id))
        })
    }

    /// Lists a frame's scopes.
    pub async fn scopes(&self, frame: i64) -> Result<Vec<Scope>, AskError> {
        let (at, id) = self.target(frame, What::Frame)?;
        let body = self.ask(at.limb, "scopes", json!({ "frameId": id })).await?;
        Ok(self.change(|book| {
            let mut known = |scope: bodies::RawScope| Scope {
                reference: book.refer(at.limb, at.halt, What::Variables, scope.reference),
                name: scope.name,
                expensive: scope.expensive,
            };
            bodies::scopes(&body).into_iter().map(&mut known).collect()
        }))
    }

    /// Lists the children of a scope or variable, those from `start` on. Adapters may
    /// ignore how many are wanted, so the caller cuts.
    pub async fn variables(
        &self,
        reference: i64,
        start: usize,
        most: usize,
    ) -> Result<Vec<Variable>, AskError> {
        let (at, id) = self.target(reference, What::Variables)?;
        let asked = json!({ "variablesReference": id, "start": start, "count": most });
        let body = self.ask(at.limb, "variables", asked).await;
        let body = match body {
            // lldb-dap 19 takes `start` of a scope without its count amiss.
            Err(AskError::Unanswered(Unanswered::Refused(_))) => {
                self.ask(at.limb, "variables", json!({ "variablesReference": id })).await?
            }
            body => body?,
        };
        let mut raw = bodies::variables(&body);
        raw.retain(|variable| !self.spec.not_variables.contains(&variable.name));
        // One that pages gave what was asked; one that does not gave all.
        if raw.len() > most {
            raw = raw.into_iter().skip(start).collect();
        }
        Ok(known(self, at, raw))
    }

    /// Evaluates an expression, in the top frame unless another is named.
    pub async fn evaluate(
        self: &Arc<Self>,
        expression: &str,
        frame: Option<i64>,
        bound: Duration,
    ) -> Result<Variable, AskError> {
        if let Some((under_way, _)) = self.look(|book| book.evaluating.clone()) {
            return Err(NotNow::Evaluating(under_way).into());
        }
        let (at, frame) = match frame {
            Some(frame) => self.target(frame, What::Frame)?,
            None => self.top_frame().await?,
        };
        let Some(link) = self.link(at.limb) else { return Err(NotNow::Over.into()) };
        // `repl` would let lldb-dap run commands of its own, a shell among them.
        let asked = json!({ "expression": expression, "frameId": frame, "context": "watch" });
        let mut call = link.call("evaluate", asked);
        self.change(|book| book.evaluating = Some((expression.to_owned(), Instant::now())));
        let (send, answer) = oneshot::channel();
        let session = Arc::clone(self);
        tokio::spawn(async move {
            let answer = tokio::select! {
                answer = call.answer() => match answer {
                    Ok(body) => Ok(body),
                    Err(error) => Err(session.unanswered(at.limb, error).await),
                },
                _ = session.until_over() => Err(NotNow::Over.into()),
                () = session.owner.cancelled() => Err(NotNow::Over.into()),
            };
            session.change(|book| book.evaluating = None);
            let _ = send.send(answer);
        });
        let late = || Unanswered::Late { command: format!("evaluate {expression}"), bound };
        let body = match timeout(bound, answer).await {
            Ok(Ok(body)) => body?,
            Ok(Err(_)) => return Err(NotNow::Over.into()),
            Err(_) => return Err(late().into()),
        };
        let raw = bodies::evaluated(expression, &body);
        let found = known(self, at, vec![raw]).into_iter().next();
        found.ok_or_else(|| NotNow::Over.into())
    }

    async fn top_frame(&self) -> Result<(At, i64), AskError> {
        let (at, thread, known) = self.look(|book| {
            let (limb, id) = book.stopped_thread(None)?;
            let halt = book.halt(limb).ok_or(NotNow::Running)?;
            Ok::<_, NotNow>((At { limb, halt: halt.number }, id, halt.top))
        })?;
        if let Some(top) = known {
            return Ok((at, top));
        }
        let (_, top) = frames(self, at, thread, 1).await?;
        top.map(|top| (at, top)).ok_or_else(|| NotNow::Running.into())
    }

    /// Brings a file's breakpoints to every debuggee.
    pub async fn place(&self, file: &SourceFile, wishes: &[Wish]) -> Result<(), AskError> {
        let limbs: Vec<usize> = self.look(|book| book.limbs.keys().copied().collect());
        for limb in limbs {
            place(self, limb, file, wishes).await?;
        }
        Ok(())
    }

    /// Brings the chosen exception filters to every debuggee.
    pub async fn place_exceptions(&self) -> Result<(), AskError> {
        let limbs: Vec<usize> = self.look(|book| book.limbs.keys().copied().collect());
        for limb in limbs {
            set_exceptions(self, limb).await?;
        }
        Ok(())
    }
}
