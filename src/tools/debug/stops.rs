//! How a stop, a running program and the end of a session are told.

use std::fmt::Write as _;
use std::time::SystemTime;

use hostler_actors::host::workspace::space::conversation::debug_session::book::Place;
use hostler_actors::host::workspace::space::conversation::debug_session::output::Piece;
use hostler_actors::host::workspace::space::conversation::debug_session::refusal::End;
use hostler_actors::host::workspace::space::conversation::debug_session::report::{
    Frame, StopReport, Variable,
};
use hostler_actors::host::workspace::space::conversation::debug_session::session::Session;
use hostler_actors::host::workspace::space::conversation::debug_session::travel::Came;
use serde_json::{Value, json};

use super::lines::{around, clipped, shown};
use super::looking::masked;
use super::names::function;
use crate::seat::Seat;
use crate::tools::{Failure, Outcome, Output};

/// Frames of a stop that are shown.
const FRAMES: usize = 5;
/// Locals of a stop that are shown, and characters of each.
const LOCALS: usize = 12;
const LOCAL: usize = 80;

/// Tells what came of a start, a step or a wait.
pub(super) fn told(seat: &Seat, session: &Session, came: Came, notes: &[String]) -> Outcome {
    let mut output = match came {
        Came::Stopped(report) => stop(seat, session, &report),
        Came::Running => running(session),
        Came::Over => return over(seat, session, notes),
    };
    add_notes(&mut output, notes);
    Ok(output)
}

fn add_notes(output: &mut Output, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    let text = notes.iter().map(|note| format!("note: {note}")).collect::<Vec<_>>().join("\n");
    output.content.push(hostler_actors::ports::Block::Text { text });
    if let Some(details) = output.details.as_object_mut() {
        details.insert("notes".to_owned(), json!(notes));
    }
}

fn minutes(session: &Session) -> String {
    let left = session.time_left().as_secs();
    if left >= 120 { format!("{} min left", left / 60) } else { format!("{left} s left") }
}

/// Tells a stop.
pub(super) fn stop(seat: &Seat, session: &Session, report: &StopReport) -> Output {
    let top = seat.folder.root();
    let mut text = format!("stopped: {}", report.reason);
    if let Some(more) = &report.more {
        let _ = write!(text, " ({})", clipped(more, 400));
    }
    if let Some(child) = &report.child {
        let _ = write!(text, ", in the child process {child}");
    }
    let _ = writeln!(text, "  [{}, {}]", session.spec.what, minutes(session));
    if let Some(frame) = report.frames.first() {
        let _ = write!(text, "at {} in {}", place(seat, frame), function(&frame.name));
    } else {
        text.push_str("at an unknown place");
    }
    match report.thread {
        Some(thread) => drop(writeln!(text, ", thread {thread}")),
        None => text.push('\n'),
    }
    let begun = SystemTime::now().checked_sub(session.age()).unwrap_or(SystemTime::UNIX_EPOCH);
    let source =
        report.frames.first().and_then(|frame| around(frame.path.as_deref()?, frame.line, begun));
    if let Some(source) = &source {
        let _ = writeln!(text, "{source}");
    }
    let _ = writeln!(text, "{}", locals(&report.locals));
    let _ = write!(text, "{}", stack(seat, &report.frames));
    for (thread, reason) in &report.others {
        let _ = write!(text, "\nalso stopped: thread {thread} ({reason})");
    }
    if let Some(trouble) = &report.trouble {
        let _ = write!(text, "\nnot all could be asked: {trouble}");
    }
    let unbound = unbound(session);
    if !unbound.is_empty() {
        let _ = write!(text, "\nnot bound: {}", unbound.join("; "));
    }
    let piece = session.new_output();
    text.push_str(&new_output(&piece));
    let first = report.frames.first();
    let details = json!({
        "state": "stopped",
        "reason": report.reason,
        "text": report.more,
        "stop": report.number,
        "thread_id": report.thread,
        "child": report.child,
        "file": first.and_then(|frame| Some(shown(top, frame.path.as_deref()?))),
        "line": first.map(|frame| frame.line),
        "function": first.map(|frame| function(&frame.name)),
        "frames": frames(seat, &report.frames),
        "locals": variables(&report.locals, 400),
        "unbound": unbound,
        "output": masked(&piece.text),
        "seconds_left": session.time_left().as_secs(),
    });
    Output::text(text, details)
}

/// Says that the program runs.
pub(super) fn running(session: &Session) -> Output {
    let piece = session.new_output();
    let mut text = format!(
        "running: {}, no stop yet [{}]; the next stop is kept: `continue` waits for it, `pause` \
         makes one",
        session.spec.what,
        minutes(session)
    );
    let unbound = unbound(session);
    if !unbound.is_empty() {
        let _ = write!(text, "\nnot bound: {}", unbound.join("; "));
    }
    text.push_str(&new_output(&piece));
    let details = json!({
        "state": "running", "unbound": unbound, "output": masked(&piece.text),
        "seconds_left": session.time_left().as_secs(),
    });
    Output::text(text, details)
}

/// Tells the end of a session: a success if the program came to its end.
fn over(seat: &Seat, session: &Session, notes: &[String]) -> Outcome {
    let end = ended(seat, session);
    let piece = session.new_output();
    let details = json!({
        "state": "over",
        "exit_code": session.exit_code(),
        "reason": end.text,
        "output": masked(&piece.text),
        "unbound": unbound(session),
        "not_hit": not_hit(session),
    });
    let mut text = end.text;
    if end.failed {
        let words = session.last_words();
        if !words.is_empty() && !text.contains(&words) {
            let _ = write!(text, "\nits last words:\n{words}");
        }
        return Err(Failure { message: format!("debug: {text}"), details });
    }
    for (what, list) in [("bound and never hit", not_hit(session)), ("not bound", unbound(session))]
    {
        if !list.is_empty() {
            let _ = write!(text, "\n{what}: {}", list.join("; "));
        }
    }
    text.push_str(&new_output(&piece));
    let mut output = Output::text(text, details);
    add_notes(&mut output, notes);
    Ok(output)
}

/// How a session ended, in words.
pub(super) struct Told {
    pub(super) text: String,
    pub(super) failed: bool,
}

/// Says how a session ended.
pub(super) fn ended(seat: &Seat, session: &Session) -> Told {
    use hostler_actors::host::workspace::space::conversation::debug_session::session::Standing;
    let (Standing::Over(end) | Standing::Ending(end)) = session.standing() else {
        return Told { text: "the session is not over".to_owned(), failed: false };
    };
    let what = &session.spec.what;
    let last = last_stood(seat, session);
    let (text, failed) = match end {
        End::Finished => {
            let code = match session.exit_code() {
                Some(code) => format!("exited with code {code}"),
                None => "ended; its adapter told no exit code".to_owned(),
            };
            let never = if last.is_empty() { " and never stopped" } else { "" };
            (format!("{what} {code}{never}"), false)
        }
        End::Terminated => (format!("the session of {what} was ended on request{last}"), true),
        End::Expired => {
            let minutes = session.spec.bounds.ttl.as_secs() / 60;
            (
                format!(
                    "the session of {what} was ended: a debug session lives {minutes} minutes at \
                     most{last}"
                ),
                true,
            )
        }
        End::NotStarted(why) if session.is_attached() => {
            (format!("{what} was not attached to: {why}"), true)
        }
        End::NotStarted(why) => (format!("{what} was not started: {why}"), true),
        End::Lost(why) => (
            format!(
                "the session of {what} was lost: {why}{last}; the program is not run again by itself"
            ),
            true,
        ),
        End::Closed => (format!("the session of {what} ended with its conversation"), true),
    };
    Told { text, failed }
}

/// Says where a program last stood, if it ever stopped.
pub(super) fn last_stood(seat: &Seat, session: &Session) -> String {
    let last = session.last_place();
    last.map_or_else(String::new, |last| format!("; it last stood at {}", words(seat, &last)))
}

/// Returns a place in words, relative to the work folder.
pub(super) fn words(seat: &Seat, place: &Place) -> String {
    let path = place.path.as_deref().map(|path| shown(seat.folder.root(), path));
    let path = path.as_deref().unwrap_or("(no source)");
    format!("{path}:{} in {}", place.line, function(&place.function))
}

/// Lists the breakpoints that never bound, and why.
pub(super) fn unbound(session: &Session) -> Vec<String> {
    let marks = session.marks().into_iter().filter(|(_, mark)| !mark.bound);
    marks
        .map(|(file, mark)| {
            let why = mark.message.map_or_else(
                || "no code there that the debugger knows".to_owned(),
                |why| clipped(&why, 200),
            );
            format!("{file}:{} ({why})", mark.wish.line)
        })
        .collect()
}

/// Lists the breakpoints that were bound and never stopped at.
fn not_hit(session: &Session) -> Vec<String> {
    let marks = session.marks().into_iter();
    marks
        .filter(|(_, mark)| mark.bound && !mark.hit && mark.wish.log_message.is_none())
        .map(|(file, mark)| format!("{file}:{}", mark.actual()))
        .collect()
}

fn new_output(piece: &Piece) -> String {
    if piece.text.trim().is_empty() {
        return String::new();
    }
    let gone = piece.dropped + piece.skipped;
    let cut =
        if gone > 0 { format!(" (after {gone} bytes more: `output`)") } else { String::new() };
    format!("\noutput{cut}:\n{}", masked(piece.text.trim_end()))
}

/// Returns a frame's place, relative to the work folder.
pub(super) fn place(seat: &Seat, frame: &Frame) -> String {
    let path = frame.path.as_deref().map(|path| shown(seat.folder.root(), path));
    format!("{}:{}", path.as_deref().unwrap_or("(no source)"), frame.line)
}

fn locals(locals: &[Variable]) -> String {
    if locals.is_empty() {
        return "locals: none".to_owned();
    }
    let digest = locals
        .iter()
        .take(LOCALS)
        .map(|local| format!("{}={}", local.name, clipped(&masked(&local.value), LOCAL)));
    let mut text = format!("locals: {}", digest.collect::<Vec<_>>().join(", "));
    if locals.len() > LOCALS {
        let _ = write!(text, " and {} more (`scopes`)", locals.len() - LOCALS);
    }
    text
}

fn stack(seat: &Seat, frames: &[Frame]) -> String {
    let shown = frames.iter().take(FRAMES).enumerate().map(|(index, frame)| {
        format!("  #{index} {} {} [frame {}]", function(&frame.name), place(seat, frame), frame.id)
    });
    let mut text = format!("stack:\n{}", shown.collect::<Vec<_>>().join("\n"));
    // What runs a test or handles a panic hides the user's own frames behind its own.
    let inside = |frame: &Frame| {
        frame
            .path
            .as_deref()
            .is_some_and(|path| std::path::Path::new(path).starts_with(seat.folder.root()))
    };
    if !frames.iter().take(FRAMES).any(inside)
        && let Some((index, frame)) = frames.iter().enumerate().find(|(_, frame)| inside(frame))
    {
        let _ = write!(
            text,
            "\n  first in the work folder: #{index} {} {} [frame {}]",
            function(&frame.name),
            place(seat, frame),
            frame.id
        );
    }
    if frames.len() > FRAMES {
        let _ = write!(text, "\n  {} more or further: `stack`", frames.len() - FRAMES);
    }
    text
}

/// Returns frames for programs.
pub(super) fn frames(seat: &Seat, frames: &[Frame]) -> Value {
    let each = frames.iter().map(|frame| {
        let file = frame.path.as_deref().map(|path| shown(seat.folder.root(), path));
        json!({ "id": frame.id, "name": function(&frame.name), "file": file, "line": frame.line })
    });
    each.collect()
}

/// Returns variables for programs.
pub(super) fn variables(all: &[Variable], most: usize) -> Value {
    let each = all.iter().map(|variable| {
        let value = clipped(&masked(&variable.value), most);
        json!({ "name": variable.name, "value": value, "type": variable.kind,
            "reference": variable.reference })
    });
    each.collect()
}
