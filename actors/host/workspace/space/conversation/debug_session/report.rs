//! A stop, as it is told: where, why, and what the top frame holds.
//!
//! At most four requests, one after the other: debugpy takes 44 ms for each, and is
//! no faster when they are piled up.

use std::sync::Arc;

use serde_json::{Value, json};

use super::bodies::{self, RawVariable, Thread};
use super::book::{Place, ROOT, What, outer_thread};
use super::configure::can;
use super::refusal::NotNow;
use super::session::{AskError, Session};

/// Frames that a report asks for.
const FRAMES: usize = 20;

/// A frame, with a number that is good for this stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What callers name it by.
    pub id: i64,
    /// The function.
    pub name: String,
    /// The file as the adapter names it.
    pub path: Option<String>,
    /// The line, from 1; 0 where there is none.
    pub line: i64,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value, as the adapter prints it.
    pub value: String,
    /// Its type, where told.
    pub kind: String,
    /// What its children are asked by; 0 where it has none.
    pub reference: i64,
}

/// One stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopReport {
    /// Counts the stops of the conversation.
    pub number: u64,
    /// In the protocol's words: `breakpoint`, `step`, `exception`.
    pub reason: String,
    /// The adapter's further words, of an exception its text.
    pub more: Option<String>,
    /// The thread.
    pub thread: Option<i64>,
    /// The child's name, if it is one that stopped.
    pub child: Option<String>,
    /// The top of the stack.
    pub frames: Vec<Frame>,
    /// The top frame's variables.
    pub locals: Vec<Variable>,
    /// Other threads that are stopped, and why.
    pub others: Vec<(i64, String)>,
    /// What could not be had.
    pub trouble: Option<String>,
}

/// Where a stop is being looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) limb: usize,
    pub(super) halt: u64,
}

pub(super) async fn report(session: &Arc<Session>) -> Result<StopReport, AskError> {
    let (at, stopped, others, child) = session.look(|book| {
        let limb = book.stopped_limb()?;
        let halt = book.halt(limb).ok_or(NotNow::Running)?;
        let child = book.limbs.get(&limb).filter(|_| limb != ROOT).map(|of| of.name.clone());
        let at = At { limb, halt: halt.number };
        Ok::<_, NotNow>((at, halt.stopped.clone(), halt.others.clone(), child))
    })?;
    let thread = match stopped.thread {
        Some(thread) => Some(thread),
        // delve does not say which it paused; its list marks the present one.
        None => present(&threads_of(session, at.limb).await?),
    };
    let mut report = StopReport {
        number: at.halt,
        reason: stopped.reason.clone(),
        more: words(stopped.description, stopped.text),
        thread: thread.map(|thread| outer_thread(at.limb, thread)),
        child,
        frames: Vec::new(),
        locals: Vec::new(),
        others: others.into_iter().map(|(id, why)| (outer_thread(at.limb, id), why)).collect(),
        trouble: None,
    };
    match look_around(session, at, thread.unwrap_or(0), &mut report).await {
        Ok(()) => {}
        // It went on meanwhile, or is over.
        Err(error) if !still_there(session, at) => return Err(error),
        Err(error) => report.trouble = Some(error.to_string()),
    }
    if !still_there(session, at) {
        return Err(NotNow::Running.into());
    }
    session.change(|book| book.tell(at.limb, at.halt));
    let exception = report.reason == "exception" && report.more.is_none();
    if exception
        && stopped.thread.is_some()
        && can(session, at.limb, "supportsExceptionInfoRequest")
    {
        let asked = json!({ "threadId": thread.unwrap_or(0) });
        if let Ok(body) = session.ask(at.limb, "exceptionInfo", asked).await {
            report.more =
                words(bodies::text(&body, "exceptionId"), bodies::text(&body, "description"));
        }
    }
    Ok(report)
}

fn still_there(session: &Session, at: At) -> bool {
    session.look(|book| {
        book.over.is_none() && book.halt(at.limb).is_some_and(|halt| halt.number == at.halt)
    })
}

fn words(description: Option<String>, text: Option<String>) -> Option<String> {
    match (description, text) {
        (Some(one), Some(two)) if one.contains(&two) => Some(one),
        (Some(one), Some(two)) if two.contains(&one) => Some(two),
        (Some(one), Some(two)) => Some(format!("{two}: {one}")),
        (one, two) => one.or(two),
    }
}

fn present(threads: &[Thread]) -> Option<i64> {
    let marked = threads.iter().find(|thread| thread.name.starts_with('*'));
    marked.or(threads.first()).map(|thread| thread.id)
}

async fn threads_of(session: &Session, limb: usize) -> Result<Vec<Thread>, AskError> {
    Ok(bodies::threads(&session.ask(limb, "threads", json!({})).await?))
}

async fn look_around(
    session: &Session,
    at: At,
    thread: i64,
    report: &mut StopReport,
) -> Result<(), AskError> {
    let (frames, top) = frames(session, at, thread, FRAMES).await?;
    report.frames = frames;
    if let Some(frame) = report.frames.first() {
        let place =
            Place { path: frame.path.clone(), line: frame.line, function: frame.name.clone() };
        let (path, line) = (frame.path.clone().unwrap_or_default(), frame.line);
        session.change(|book| {
            let halt = book.limbs.get_mut(&at.limb).and_then(|of| of.halt.as_mut());
            if let Some(halt) = halt.filter(|halt| halt.number == at.halt) {
                halt.place = Some(place.clone());
            }
            book.last_place = Some(place);
            book.marks.hit_at(&path, line);
        });
    }
    let Some(top) = top else { return Ok(()) };
    let body = session.ask(at.limb, "scopes", json!({ "frameId": top })).await?;
    let scope = bodies::scopes(&body).into_iter().find(|scope| !scope.expensive);
    if let Some(scope) = scope {
        let asked = json!({ "variablesReference": scope.reference });
        let body = session.ask(at.limb, "variables", asked).await?;
        report.locals = known(session, at, bodies::variables(&body));
    }
    Ok(())
}

/// Asks for frames. Returns them, and the adapter's own id of the first.
pub(super) async fn frames(
    session: &Session,
    at: At,
    thread: i64,
    most: usize,
) -> Result<(Vec<Frame>, Option<i64>), AskError> {
    let asked = json!({ "threadId": thread, "startFrame": 0, "levels": most });
    let body: Value = session.ask(at.limb, "stackTrace", asked).await?;
    let mut raw = bodies::frames(&body);
    raw.truncate(most);
    let top = raw.first().map(|frame| frame.id);
    let frames = session.change(|book| {
        let halt = book.limbs.get_mut(&at.limb).and_then(|of| of.halt.as_mut());
        if let Some(halt) = halt.filter(|halt| halt.stopped.thread.is_none_or(|id| id == thread)) {
            halt.top = top;
        }
        let mut known = |frame: bodies::RawFrame| Frame {
            id: book.refer(at.limb, at.halt, What::Frame, frame.id),
            name: frame.name,
            path: frame.path,
            line: frame.line,
        };
        raw.into_iter().map(&mut known).collect()
    });
    Ok((frames, top))
}

/// Gives variables references that are good for this stop, and drops what an adapter
/// lists among them that is none.
pub(super) fn known(session: &Session, at: At, raw: Vec<RawVariable>) -> Vec<Variable> {
    let not_variables = &session.spec.not_variables;
    let raw = raw.into_iter().filter(|variable| !not_variables.contains(&variable.name));
    session.change(|book| {
        let mut known = |variable: RawVariable| Variable {
            reference: book.refer(at.limb, at.halt, What::Variables, variable.reference),
            name: variable.name,
            value: variable.value,
            kind: variable.kind,
        };
        raw.map(&mut known).collect()
    })
}
