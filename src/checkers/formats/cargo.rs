//! What `cargo check --message-format=json` prints: one object a line.
//!
//! A finding stands at its primary span; where that lies in somebody else's macro, at
//! the place in which the macro was called. One without a span is about its crate. That the
//! last line says how it ended is what makes the output whole.

use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::Severity;
use serde::Deserialize;

use super::{Item, Report, Taken};

#[derive(Deserialize)]
struct Line {
    reason: String,
    message: Option<Message>,
    manifest_path: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    message: String,
    level: String,
    code: Option<Code>,
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: u32,
    column_start: u32,
    is_primary: bool,
    label: Option<String>,
    expansion: Option<Box<Expansion>>,
}

#[derive(Deserialize)]
struct Expansion {
    span: Span,
}

impl Span {
    /// Goes out of macros whose text is not the workspace's: that one's files are named
    /// from its root.
    fn written(&self) -> &Self {
        let mut span = self;
        while let Some(outer) =
            span.expansion.as_ref().filter(|_| span.file_name.starts_with(['/', '<']))
        {
            span = &outer.span;
        }
        span
    }
}

/// Reads it.
pub(super) fn read(taken: &mut Taken<'_>, output: &str) -> Result<Report, String> {
    let mut finished = false;
    // Build scripts and the like may print between the objects.
    for line in output.lines().filter(|line| line.starts_with('{')) {
        let Ok(line) = serde_json::from_str::<Line>(line) else { continue };
        finished |= line.reason == "build-finished";
        if let Some(message) = line.message.filter(|_| line.reason == "compiler-message") {
            add(taken, &message, line.manifest_path.as_deref());
        }
    }
    if finished { Ok(Report::default()) } else { Err("its output is not whole".to_owned()) }
}

fn add(taken: &mut Taken<'_>, message: &Message, manifest: Option<&str>) {
    let severity = match message.level.as_str() {
        "error" | "error: internal compiler error" => Severity::Error,
        "warning" => Severity::Warning,
        _ => return,
    };
    let primary = message.spans.iter().find(|span| span.is_primary);
    // `5 warnings emitted` and `aborting due to …` are sums, not findings.
    if primary.is_none() && message.code.is_none() && severity == Severity::Warning {
        return;
    }
    let label = primary.and_then(|span| span.label.as_deref()).filter(|label| !label.is_empty());
    let text = match label {
        Some(label) => format!("{}: {label}", message.message),
        None => message.message.clone(),
    };
    let place = primary.map(Span::written);
    taken.add(&Item {
        file: place.map_or(manifest.unwrap_or("Cargo.toml"), |span| &span.file_name),
        line: place.map_or(1, |span| span.line_start),
        column: place.map_or(1, |span| span.column_start),
        severity,
        code: message.code.as_ref().map(|code| code.code.as_str()),
        message: &text,
    });
}
