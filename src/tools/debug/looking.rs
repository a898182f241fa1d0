//! The operations that only look: `adapters`, `status`, `output`, and what is asked of a
//! program that is stopped.

use std::fmt::Write as _;
use std::sync::Arc;

use hostler_actors::host::workspace::space::conversation::debug_session::desk::Desk;
use hostler_actors::host::workspace::space::conversation::debug_session::session::{
    Session, Standing,
};
use serde_json::{Value, json};

use super::arguments::{Args, needed};
use super::ending::session;
use super::lines::clipped;
use super::names::function;
use super::stops;
use crate::adapters;
use crate::seat::Seat;
use crate::tools::{Failure, Outcome, Output};

/// Frames of `stack`.
const FRAMES: usize = 30;
/// Children of `variables`, and characters of a value.
const CHILDREN: usize = 50;
const VALUE: usize = 400;
/// Bytes of one `output`.
const OUTPUT: usize = 16 * 1024;

/// Says which adapters can be used here, and why the others cannot.
pub(super) async fn adapters(seat: &Seat) -> Outcome {
    let standings = adapters::all(seat).await;
    let lines: Vec<_> = standings.iter().map(ToString::to_string).collect();
    let details: Vec<Value> = standings
        .iter()
        .map(|standing| {
            json!({
                "name": standing.name,
                "usable": standing.usable().is_some(),
                "root": standing.root.as_ref().ok(),
                "program": standing.program.as_ref().ok().map(|(path, _)| path),
                "reason": match (&standing.root, &standing.program) {
                    (Ok(_), Ok(_)) => None,
                    _ => Some(standing.to_string()),
                },
            })
        })
        .collect();
    Ok(Output::text(lines.join("\n"), json!({ "adapters": details })))
}

/// Says whether there is a session, and where it stands. Asks nobody.
pub(super) fn status(seat: &Seat, desk: &Desk) -> Output {
    let wishes = {
        let wishes = desk.wishes().lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        wishes.files().map(|(_, wishes)| wishes.len()).sum::<usize>()
    };
    let kept = format!("{wishes} breakpoint{} kept", if wishes == 1 { "" } else { "s" });
    let Some(session) = desk.latest() else {
        let text = format!("no debug session; {kept}");
        return Output::text(text, json!({ "state": "none", "breakpoints": wishes }));
    };
    let spec = &session.spec;
    let standing = session.standing();
    let state = state(&standing);
    let text = match &standing {
        Standing::Over(_) | Standing::Ending(_) => {
            format!("no debug session: {}; {kept}", stops::ended(seat, &session).text)
        }
        live => {
            let what = match live {
                Standing::Starting(step) => format!("starting: {step}"),
                Standing::Stopped(reason) => match session.present_place() {
                    Some(place) => {
                        format!("stopped ({reason}) at {}", stops::words(seat, &place))
                    }
                    None => format!("stopped ({reason}); `continue` tells where, and stays"),
                },
                _ => "running".to_owned(),
            };
            format!(
                "{} of {}: {}; {} s old, {} s left; {kept}",
                spec.adapter,
                spec.what,
                what,
                session.age().as_secs(),
                session.time_left().as_secs()
            )
        }
    };
    let details = json!({
        "state": state,
        "adapter": spec.adapter,
        "program": spec.what,
        "attached": session.is_attached(),
        "at": session.present_place().map(|place| stops::words(seat, &place)),
        "exit_code": session.exit_code(),
        "age_seconds": session.age().as_secs(),
        "seconds_left": session.time_left().as_secs(),
        "breakpoints": wishes,
    });
    Output::text(text, details)
}

/// Returns the word for a standing.
pub(super) fn state(standing: &Standing) -> &'static str {
    match standing {
        Standing::Starting(_) => "starting",
        Standing::Running => "running",
        Standing::Stopped(_) => "stopped",
        Standing::Ending(_) => "ending",
        Standing::Over(_) => "over",
    }
}

/// Shows what the program wrote, of the last session too.
pub(super) fn output(desk: &Desk, args: &Args) -> Outcome {
    let session = desk
        .latest()
        .ok_or_else(|| Failure::new("debug: there was no debug session, so there is no output"))?;
    let piece = match args.cursor {
        Some(cursor) => session.output_from(u64::try_from(cursor.0).unwrap_or(0), OUTPUT),
        None => session.output_tail(OUTPUT),
    };
    let gone = piece.dropped + piece.skipped;
    let mut text = String::new();
    if piece.dropped > 0 {
        let _ = writeln!(text, "({} bytes are no longer kept)", piece.dropped);
    }
    if piece.skipped > 0 {
        let _ = writeln!(text, "({} bytes before this: give a `cursor`)", piece.skipped);
    }
    if piece.text.is_empty() {
        text.push_str("(nothing new)\n");
    }
    text.push_str(&masked(&piece.text));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let _ = write!(text, "(cursor {}", piece.cursor);
    if let Some(code) = session.exit_code() {
        let _ = write!(text, ", exit code {code}");
    }
    text.push(')');
    let details = json!({
        "output": masked(&piece.text), "cursor": piece.cursor, "dropped_bytes": gone,
        "state": state(&session.standing()), "exit_code": session.exit_code(),
    });
    Ok(Output::text(text, details))
}

/// Lists threads.
pub(super) async fn threads(seat: &Seat, desk: &Desk) -> Outcome {
    let session = session(seat, desk)?;
    let threads = session.threads().await?;
    let mut lines: Vec<_> = threads
        .shown
        .iter()
        .map(|thread| {
            let mark = if Some(thread.id) == threads.stopped { "> " } else { "  " };
            format!("{mark}{} {}", thread.id, thread.name)
        })
        .collect();
    if threads.total > threads.shown.len() {
        lines.push(format!("  {} of {} threads", threads.shown.len(), threads.total));
    }
    let each: Vec<_> = threads
        .shown
        .iter()
        .map(|thread| json!({ "id": thread.id, "name": thread.name }))
        .collect();
    let details = json!({ "threads": each, "total": threads.total, "stopped": threads.stopped });
    Ok(Output::text(lines.join("\n"), details))
}

/// Lists frames.
pub(super) async fn stack(seat: &Seat, desk: &Desk, args: &Args) -> Outcome {
    let session = session(seat, desk)?;
    let frames = session.stack(args.thread_id.map(|id| id.0), FRAMES).await?;
    let lines: Vec<_> = frames
        .iter()
        .enumerate()
        .map(|(index, frame)| {
            let place = stops::place(seat, frame);
            format!("#{index} {} {place} [frame {}]", function(&frame.name), frame.id)
        })
        .collect();
    let mut text = lines.join("\n");
    if text.is_empty() {
        text.push_str("no frames");
    } else if frames.len() == FRAMES {
        let _ = write!(text, "\n(the first {FRAMES}; there may be more)");
    }
    Ok(Output::text(text, json!({ "frames": stops::frames(seat, &frames) })))
}

/// Lists a frame's scopes.
pub(super) async fn scopes(seat: &Seat, desk: &Desk, args: &Args) -> Outcome {
    let session = session(seat, desk)?;
    let frame = needed(args.frame_id, "scopes", "frame_id")?;
    let scopes = session.scopes(frame.0).await?;
    let lines: Vec<_> = scopes
        .iter()
        .map(|scope| {
            let slow = if scope.expensive { " (slow to list)" } else { "" };
            format!("{} [reference {}]{slow}", scope.name, scope.reference)
        })
        .collect();
    let each: Vec<_> = scopes
        .iter()
        .map(|scope| json!({ "name": scope.name, "reference": scope.reference }))
        .collect();
    Ok(Output::text(lines.join("\n"), json!({ "scopes": each })))
}

/// Lists the children of a scope or variable.
pub(super) async fn variables(seat: &Seat, desk: &Desk, args: &Args) -> Outcome {
    let session = session(seat, desk)?;
    let reference = needed(args.reference, "variables", "reference")?;
    let start = args.start.map_or(0, |start| usize::try_from(start.0).unwrap_or(0));
    let mut all = session.variables(reference.0, start, CHILDREN).await?;
    let total = all.len();
    all.truncate(CHILDREN);
    let mut lines: Vec<_> = all.iter().map(line_of).collect();
    if lines.is_empty() {
        lines.push("nothing".to_owned());
    }
    let more = total >= CHILDREN;
    if more {
        let next = start + CHILDREN;
        lines.push(format!("({CHILDREN} shown; `start` {next} gives what may follow)"));
    }
    let details = json!({ "variables": stops::variables(&all, VALUE), "more": more });
    Ok(Output::text(lines.join("\n"), details))
}

fn line_of(
    variable: &hostler_actors::host::workspace::space::conversation::debug_session::report::Variable,
) -> String {
    let mut line = format!("{} = {}", variable.name, clipped(&masked(&variable.value), VALUE));
    if !variable.kind.is_empty() {
        let _ = write!(line, "  ({})", clipped(&variable.kind, 80));
    }
    if variable.reference != 0 {
        let _ = write!(line, "  [reference {}]", variable.reference);
    }
    line
}

/// Evaluates an expression.
pub(super) async fn evaluate(seat: &Seat, desk: &Desk, args: &Args) -> Outcome {
    let session: Arc<Session> = session(seat, desk)?;
    let expression = needed(args.expression.as_deref(), "evaluate", "expression")?;
    let bound = seat.languages.config.debug.evaluate;
    let frame = args.frame_id.map(|frame| frame.0);
    let found = session.evaluate(expression, frame, bound).await?;
    let details = json!({
        "value": clipped(&masked(&found.value), VALUE), "type": found.kind,
        "reference": found.reference,
    });
    Ok(Output::text(line_of(&found), details))
}

/// Beginnings of well-known kinds of credentials, and how many characters at least
/// follow in a real one.
const SECRETS: [(&str, usize); 7] = [
    ("ghp_", 30),
    ("gho_", 30),
    ("github_pat_", 30),
    ("sk-", 20),
    ("AKIA", 16),
    ("xoxb-", 20),
    ("glpat-", 20),
];

/// Masks what is plainly a credential: what is shown ends in a transcript.
pub(super) fn masked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, begin, length)) = next_secret(rest) {
        let (before, from) = rest.split_at(at);
        let (_, after) = from.split_at(length);
        shown.push_str(before);
        let _ = write!(shown, "{begin}…(masked)");
        rest = after;
    }
    shown.push_str(rest);
    shown
}

fn next_secret(text: &str) -> Option<(usize, &'static str, usize)> {
    let found = SECRETS.iter().filter_map(|(begin, least)| {
        text.match_indices(begin).find_map(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let body = text.get(at + begin.len()..).unwrap_or_default();
            let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let length = body.find(|c| !part(c)).unwrap_or(body.len());
            let apart = before.is_none_or(|before| !before.is_ascii_alphanumeric());
            (apart && length >= *least).then_some((at, *begin, begin.len() + length))
        })
    });
    found.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_masked_and_words_are_not() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        assert_eq!(masked(&format!("t='{token}' x")), "t='ghp_…(masked)' x");
        assert_eq!(masked(&format!("{token},{token}")), "ghp_…(masked),ghp_…(masked)");
        for plain in ["sk-learn", "risk-assessment-of-the-whole-quarter", "AKIA", "ghp_short", "é"]
        {
            assert_eq!(masked(plain), plain);
        }
    }
}
