//! Questions about a place: where it is declared, who uses it, what it is.

use std::ops::Range;
use std::time::Duration;

use hostler_actors::host::language_server::diagnostics::Verdict;
use hostler_actors::host::language_server::documents::Document;
use hostler_actors::host::language_server::text::{Encoding, Lines, Position};
use hostler_actors::host::language_server::uri;
use serde_json::{Value, json};

use super::answers;
use super::arguments::{Place, Question};
use super::asking::{Answers, Ask, Subject, ask};
use super::sources::{Unshown, spots};
use super::symbol;
use crate::diagnostics::details::with;
use crate::seat::Seat;
use crate::servers::Server;
use crate::tools::{Cancel, Failure, Outcome};

/// How many places, and how many quick fixes, are shown.
const SHOWN: usize = 50;
/// How much of a hover is shown, in characters.
const HOVER: usize = 4_000;
/// How long quick fixes wait for the diagnostics that they are for.
const FOR_ACTIONS: Duration = Duration::from_secs(3);

/// A place in a text.
#[derive(Debug)]
pub(in crate::tools) struct Spotted {
    /// The first byte of the identifier that is asked about.
    pub(in crate::tools) at: usize,
    /// The bytes that were named.
    span: Range<usize>,
    /// The identifier.
    pub(in crate::tools) name: String,
}

impl Question {
    /// Returns its action, the protocol's method, and what it finds.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Definition => ("definition", "textDocument/definition", "definition"),
            Self::TypeDefinition => {
                ("type_definition", "textDocument/typeDefinition", "type definition")
            }
            Self::Implementation => {
                ("implementation", "textDocument/implementation", "implementation")
            }
            Self::References => ("references", "textDocument/references", "use"),
            Self::Hover => ("hover", "textDocument/hover", "hover"),
            Self::CodeActions => ("code_actions", "textDocument/codeAction", "quick fix"),
        }
    }
}

/// Answers a question about a place.
pub(super) async fn answer(
    seat: &Seat,
    cancel: &Cancel,
    question: Question,
    place: &Place,
) -> Outcome {
    let subject = Subject::find(seat, &place.file).await?;
    let document = subject.read(seat).await?;
    let spotted = spotted(&document, &subject.file.name(), place)?;
    let servers = subject.servers()?;
    let (action, method, word) = question.words();
    let context = match question {
        Question::CodeActions => diagnostics_at(servers, &document, spotted.at, cancel).await,
        _ => Value::Null,
    };
    let params = |encoding: Encoding| params(&document, &spotted, question, encoding, &context);
    let documents = std::slice::from_ref(&document);
    // Uses and quick fixes add up; a place is the same, and told once, by whoever knows.
    let first = !matches!(question, Question::References | Question::CodeActions);
    let ask_for = Ask { action, method, documents, params: &params, first };
    let asked = ask(seat, cancel, servers, ask_for).await?;
    let of = format!("`{}` ({}:{})", spotted.name, subject.file.name(), place.line);
    let (text, details) = match question {
        Question::Hover => hover(&asked, &of),
        Question::CodeActions => code_actions(&asked, &of),
        _ => locations(seat, &asked, &of, word).await,
    };
    let about = json!({
        "action": action, "file": subject.file.name(), "line": place.line, "symbol": spotted.name,
    });
    Ok(asked.finish(text, with(details, about)))
}

pub(in crate::tools) fn spotted(
    document: &Document,
    name: &str,
    place: &Place,
) -> Result<Spotted, Failure> {
    let lines = Lines::new(&document.text);
    // What follows the last line end is no line to a reader.
    let after_end = document.text.is_empty() || document.text.ends_with(['\n', '\r']);
    let count = lines.count() - usize::from(after_end);
    let row = place.line - 1;
    let line = lines.line(row).filter(|_| row < count).ok_or_else(|| {
        let lines = if count == 1 { "line" } else { "lines" };
        Failure::new(format!("lsp: {name} has {count} {lines}: there is no line {}", place.line))
    })?;
    let found = symbol::find(line, place.line, &place.symbol, place.occurrence)
        .map_err(|error| Failure::new(format!("lsp: {name}: {error}")))?;
    let first = Position { line: u32::try_from(row).unwrap_or(u32::MAX), character: 0 };
    let start = lines.offset(first, Encoding::Utf8);
    let (at, identifier) = symbol::identifier(line, &found);
    Ok(Spotted {
        at: start + at,
        span: start + found.start..start + found.end,
        name: identifier.to_owned(),
    })
}

pub(in crate::tools) fn params(
    document: &Document,
    spotted: &Spotted,
    question: Question,
    encoding: Encoding,
    diagnostics: &Value,
) -> Value {
    let lines = Lines::new(&document.text);
    let file = json!({ "uri": uri::of_path(&document.path) });
    let position = lines.position(spotted.at, encoding);
    match question {
        Question::CodeActions => json!({
            "textDocument": file,
            "range": lines.range(spotted.span.clone(), encoding),
            "context": { "diagnostics": diagnostics },
        }),
        Question::References => json!({
            "textDocument": file,
            "position": position,
            "context": { "includeDeclaration": true },
        }),
        _ => json!({ "textDocument": file, "position": position }),
    }
}

/// Returns the diagnostics on a line as the servers gave them: quick fixes are for
/// those. None where there is no verdict in time.
pub(in crate::tools) async fn diagnostics_at(
    servers: &[Server],
    document: &Document,
    at: usize,
    cancel: &Cancel,
) -> Value {
    let lines = Lines::new(&document.text);
    let mut raw = Vec::new();
    for server in servers {
        let verdict = server.held.server.verdict(document, false, FOR_ACTIONS, cancel).await;
        if let Verdict::Fresh(found) = verdict {
            let wanted = lines.position(at, found.encoding).line;
            let there = found
                .items
                .iter()
                .filter(|item| (item.range.start.line..=item.range.end.line).contains(&wanted));
            raw.extend(there.map(|item| item.raw.clone()));
        }
    }
    Value::Array(raw)
}

async fn locations(seat: &Seat, asked: &Answers, of: &str, word: &str) -> (String, Value) {
    let mut found: Vec<Unshown> = Vec::new();
    let mut elsewhere = 0;
    for answer in &asked.answers {
        let (locations, unnamed) = answers::locations(&answer.value);
        elsewhere += unnamed;
        for answers::Location { path, start } in locations {
            if !found.iter().any(|known| known.path == path && known.start == start) {
                found.push(Unshown { path, start, encoding: answer.encoding });
            }
        }
    }
    if word == "use" {
        found.sort_by(|a, b| (&a.path, a.start).cmp(&(&b.path, b.start)));
    }
    let total = found.len();
    found.truncate(SHOWN);
    let spots = spots(&seat.folder, found).await;
    let mut text = match (total, spots.len()) {
        (0, _) => format!("no {word} of {of} was found"),
        (1, _) => format!("1 {word} of {of}:"),
        (total, shown) if shown < total => format!("{total} {word}s of {of}, the first {shown}:"),
        (total, _) => format!("{total} {word}s of {of}:"),
    };
    for spot in &spots {
        text.push_str(&format!("\n{spot}"));
    }
    if elsewhere > 0 {
        text.push_str(&format!("\n({elsewhere} more are in no file of the disk)"));
    }
    let details =
        json!({ "locations": spots, "shown": spots.len(), "total": total, "elsewhere": elsewhere });
    (text, details)
}

fn hover(asked: &Answers, of: &str) -> (String, Value) {
    let mut texts = asked.answers.iter().filter_map(|answer| answers::hover(&answer.value));
    let whole = texts.next().unwrap_or_default();
    let total = whole.chars().count();
    let text = match whole.char_indices().nth(HOVER) {
        Some((at, _)) => {
            let head = whole.get(..at).unwrap_or_default();
            format!("{head}\n… (the first {HOVER} of {total} characters)")
        }
        None if whole.is_empty() => format!("nothing is known of {of}"),
        None => whole,
    };
    let details = json!({ "hover": text, "total": total, "shown": total.min(HOVER) });
    (text, details)
}

fn code_actions(asked: &Answers, of: &str) -> (String, Value) {
    let all = asked.answers.iter().flat_map(|answer| answers::code_actions(&answer.value));
    let mut all: Vec<_> = all.collect();
    let total = all.len();
    all.truncate(SHOWN);
    let mut text = match total {
        0 => format!("no quick fixes are offered for {of}"),
        1 => format!("1 quick fix for {of}:"),
        total if total > SHOWN => format!("{total} quick fixes for {of}, the first {SHOWN}:"),
        total => format!("{total} quick fixes for {of}:"),
    };
    for action in &all {
        text.push_str(&format!("\n- {action}"));
    }
    (text, json!({ "actions": all, "shown": all.len(), "total": total }))
}
