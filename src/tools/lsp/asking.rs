//! Asks every server that takes a file, and says what the answers are worth.
//!
//! One server that answers is enough; if none does, every reason is told. What only
//! one can know best is asked of them in turn, until one has something to say. A
//! server that was still busy when it answered may have answered in part, which is
//! said.

use std::sync::Arc;
use std::time::Duration;

use hostler_actors::host::language_server::documents::Document;
use hostler_actors::host::language_server::lease::ServerError;
use hostler_actors::host::workspace::space::conversation::run::language_session::servers::{
    Answer, Params,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::diagnostics::details::with;
use crate::diagnostics::documents;
use crate::folder::Inside;
use crate::folder::disk::cancelled;
use crate::seat::Seat;
use crate::servers::{Server, Serving, Viewpoint};
use crate::tools::{Cancel, Failure, Output};

/// JSON-RPC: the server does not have the method.
const METHOD_NOT_FOUND: i64 = -32601;

/// What is asked of the whole project. A server that has only just started knows of
/// it only what it has read so far: pyright 1.1.414 finds no symbol at all in its
/// first second, and says so without a word of doubt.
const OF_THE_PROJECT: [&str; 3] =
    ["workspace/symbol", "textDocument/references", "textDocument/implementation"];
/// How long a server may take to read its project before its "nothing" is believed.
const READING: Duration = Duration::from_secs(5);
/// The pause before it is asked again.
const AGAIN: Duration = Duration::from_millis(250);

/// A file and who can be asked about it.
pub(in crate::tools) struct Subject {
    /// The file.
    pub(in crate::tools) file: Inside,
    /// The servers.
    pub(in crate::tools) serving: Serving,
}

impl Subject {
    /// Finds a file as it was given.
    pub(in crate::tools) async fn find(seat: &Seat, given: &str) -> Result<Self, Failure> {
        let file = seat.folder.locate(given)?;
        let serving = seat.languages.serving(Viewpoint::of(seat), file.absolute()).await?;
        Ok(Self { file, serving })
    }

    /// Reads the file as it is now. Also where no server takes it, so that a missing
    /// file is told as that.
    pub(in crate::tools) async fn read(&self, seat: &Seat) -> Result<Document, Failure> {
        let language_id = self.serving.servers.first();
        let language_id = language_id.map_or_else(|| "".into(), |first| first.language_id.clone());
        Ok(documents::read(&seat.folder, &self.file, &language_id).await?)
    }

    /// Returns the servers, or why there is none.
    pub(in crate::tools) fn servers(&self) -> Result<&[Server], Failure> {
        match self.serving.servers.as_slice() {
            [] => Err(Failure {
                message: format!("lsp: {}", self.serving.reason(&self.file.name())),
                details: json!({ "freshness": "no server", "reasons": self.serving.lacking }),
            }),
            servers => Ok(servers),
        }
    }
}

/// One question to servers.
pub(in crate::tools) struct Ask<'a> {
    /// The action, for errors.
    pub(in crate::tools) action: &'static str,
    /// The protocol's method.
    pub(in crate::tools) method: &'static str,
    /// The documents that it is about.
    pub(in crate::tools) documents: &'a [Document],
    /// Its params.
    pub(in crate::tools) params: Params<'a>,
    /// Is the first that has something to say enough, or do all add to the answer.
    pub(in crate::tools) first: bool,
}

/// What servers answered.
#[derive(Debug, Default)]
pub(in crate::tools) struct Answers {
    /// The answers.
    pub(in crate::tools) answers: Vec<Answer>,
    /// What to say of those that did not, or not for certain.
    pub(in crate::tools) notes: Vec<String>,
}

/// Asks all of these servers.
pub(in crate::tools) async fn ask(
    seat: &Seat,
    cancel: &Cancel,
    servers: &[Server],
    question: Ask<'_>,
) -> Result<Answers, Failure> {
    let mut asked = Answers::default();
    let mut without = Vec::new();
    for server in servers {
        match one(seat, cancel, server, &question).await {
            Ok(answer) => {
                asked.notes.extend(server.caution());
                if let Some(doing) = &answer.doing {
                    asked.notes.push(format!(
                        "{} is still busy ({doing}): this answer may be incomplete, ask again",
                        server.name()
                    ));
                }
                let says_something = !is_empty(&answer.value);
                asked.answers.push(answer);
                if question.first && says_something {
                    break;
                }
            }
            Err(ServerError::Cancelled { .. }) => {
                return Err(cancelled("lsp", "nothing was changed"));
            }
            Err(ServerError::Refused { code: METHOD_NOT_FOUND, server, .. }) => {
                without.push(format!("{server} does not offer {}", question.action));
            }
            Err(error) => asked.notes.push(error.to_string()),
        }
    }
    if asked.answers.is_empty() {
        // Of those that answer, nobody needs to hear which ones are made for other things.
        asked.notes.extend(without);
        let message = format!("lsp {}: {}", question.action, asked.notes.join("; "));
        return Err(Failure { message, details: json!({ "reasons": asked.notes }) });
    }
    Ok(asked)
}

/// Does an answer say nothing.
fn is_empty(answer: &Value) -> bool {
    answer.is_null() || answer.as_array().is_some_and(Vec::is_empty)
}

async fn one(
    seat: &Seat,
    cancel: &Cancel,
    server: &Server,
    question: &Ask<'_>,
) -> Result<Answer, ServerError> {
    let language_id = &server.language_id;
    let own =
        |document: &Document| Document { language_id: Arc::clone(language_id), ..document.clone() };
    let documents: Vec<_> = question.documents.iter().map(own).collect();
    let until = Instant::now() + seat.languages.request_bound();
    let held = &server.held.server;
    loop {
        let within = until.saturating_duration_since(Instant::now());
        let answer =
            held.request(&documents, question.method, question.params, within, cancel).await?;
        let doubtful = is_empty(&answer.value)
            && OF_THE_PROJECT.contains(&question.method)
            && answer.up_for < READING
            && Instant::now() + AGAIN < until;
        if !doubtful {
            return Ok(answer);
        }
        tokio::select! {
            () = sleep(AGAIN) => {}
            () = cancel.cancelled() => {}
        }
    }
}

impl Answers {
    /// Adds to a result what is to be said of its answers.
    pub(in crate::tools) fn finish(&self, text: String, details: Value) -> Output {
        let notes = self.notes.iter().map(|note| format!("\n({note})"));
        let text = text + &notes.collect::<String>();
        Output::text(text, with(details, json!({ "notes": self.notes })))
    }
}
