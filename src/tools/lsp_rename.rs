//! `lsp_rename`: renames a symbol across the project, in every file or in none.
//!
//! The server answers with an edit; here it is asked only where its answer is worth
//! something (the symbol can be renamed, the project is read), and what it answers is
//! worked out in memory and committed as one change. What the server wants somebody to
//! look at first is staged. Details: `new_name`, `files[{path, edits}]`, `edits`,
//! `renamed[{from, to}]`, `lost[]`; staged: `edit_id`.

use std::time::Duration;

use hostler_actors::host::language_server::documents::Document;
use hostler_actors::host::language_server::text::{Encoding, Lines, Position, Range};
use hostler_actors::host::language_server::uri;
use hostler_actors::host::workspace::space::conversation::run::language_session::servers::Answer;
use hostler_actors::ports::BoxFuture;
use hostler_actors::profile::Tier;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::changes::{commit_watched, with_lost};
use crate::code::{language, parse::parse, workspace_edit};
use crate::diagnostics::details::with;
use crate::diagnostics::documents;
use crate::folder::Inside;
use crate::folder::disk::{cancelled, look};
use crate::seat::Seat;
use crate::server_edits::{Planned, plan};
use crate::servers::Server;
use crate::tools::ast_grep::plural;
use crate::tools::glob::BOUND;
use crate::tools::lsp::arguments::Place;
use crate::tools::lsp::asking::{Ask, Subject, ask};
use crate::tools::lsp::place::{Spotted, spotted};
use crate::tools::{
    Cancel, Effect, Failure, Outcome, Output, Tool, Wired, arguments, never, schema_of,
    writes_nothing,
};

/// Open documents that are brought up to date before the question.
const OPEN: usize = 50;
/// How long after its start a server may still be reading its project.
const READING: Duration = Duration::from_secs(6);
/// The pause before it is asked again.
const AGAIN: Duration = Duration::from_millis(700);
/// Files that are named in the text.
const NAMED: usize = 30;

pub(crate) const TOOL: Tool = Tool {
    name: "lsp_rename",
    tier: Tier::Write,
    // Which files it writes is known only once the server has answered.
    parallel_safe: false,
    overtakes: never,
    mutates_worktree: true,
    wired: Wired::LanguageServers,
    effects: &[Effect::WorktreeWrite],
    description: "Renames a symbol across the project by its language server: every file that \
        uses it, or none. Takes file, line (from 1), symbol (the name on that line, or a piece of \
        the line that begins with it) and new_name.",
    schema: schema_of::<Args>,
    writes: writes_nothing,
    call,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file, relative to the work folder.
    file: String,
    /// The line of the symbol, counted from 1.
    line: usize,
    /// The symbol, or a piece of the line that names it.
    symbol: String,
    /// The new name.
    new_name: String,
    /// Which one, counted from 1, where the symbol stands more than once on the line.
    #[serde(default)]
    occurrence: Option<usize>,
}

fn call(seat: &Seat, given: Value, cancel: Cancel) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let args: Args = arguments(TOOL.name, given)?;
        let place = place(TOOL.name, args.file, args.line, args.symbol, args.occurrence)?;
        let subject = Subject::find(seat, &place.file).await?;
        let document = subject.read(seat).await?;
        let spotted = spotted(&document, &subject.file.name(), &place)?;
        may_be_named(&document, &spotted.name, &args.new_name)?;
        let (server, answer) =
            first_edit(seat, &cancel, subject.servers()?, &document, &spotted, &args.new_name)
                .await?;
        let (edit, planned) = planned(seat, &cancel, TOOL.name, server, &answer).await?;
        if planned.steps.is_empty() {
            return Err(Failure::new(format!(
                "lsp_rename: the server changes nothing for `{}` to `{}`",
                spotted.name, args.new_name
            )));
        }
        let what = format!("`{}` is now `{}`", spotted.name, args.new_name);
        let details = with(details(&planned), json!({ "new_name": args.new_name }));
        if !edit.to_confirm.is_empty() {
            return staged(seat, &what, planned, &edit.to_confirm, details);
        }
        let text = told(&what, &planned);
        commit_watched(seat, TOOL.name, planned.steps, &cancel, |done| {
            with_lost(Output::text(text, details), done)
        })
        .await
        .map_err(|failure| Failure {
            message: format!("lsp_rename: {}", failure.message),
            ..failure
        })
    })
}

/// Reads the place that a call names.
pub(super) fn place(
    tool: &str,
    file: String,
    line: usize,
    symbol: String,
    occurrence: Option<usize>,
) -> Result<Place, Failure> {
    if line == 0 {
        return Err(Failure::new(format!("{tool}: `line` is 0: lines are counted from 1")));
    }
    if symbol.is_empty() {
        return Err(Failure::new(format!(
            "{tool}: `symbol` is empty: give the name on that line, or a piece of the line"
        )));
    }
    Ok(Place { file, line, symbol, occurrence })
}

/// Some servers take any text for a name, and break the project with it.
fn may_be_named(document: &Document, old: &str, new: &str) -> Result<(), Failure> {
    let refused = |why: String| Err(Failure::new(format!("lsp_rename: `new_name` `{new}` {why}")));
    if new == old {
        return refused("is the name that it has".to_owned());
    }
    if new.is_empty() || new.contains(char::is_whitespace) {
        return refused("is no name: give one word".to_owned());
    }
    let Some(known) = language::of_file(&document.path) else { return Ok(()) };
    let Ok(parsed) = parse(new, known) else { return Ok(()) };
    let is_name = parsed.root().walk().any(|node| {
        node.source() == new && node.size() == 1 && node.kind_name().ends_with("identifier")
    });
    match is_name {
        true => Ok(()),
        false => refused(format!("is no name in {}", language::id(known))),
    }
}

/// Asks the servers in turn, until one has an edit.
async fn first_edit<'s>(
    seat: &Seat,
    cancel: &Cancel,
    servers: &'s [Server],
    document: &Document,
    spotted: &Spotted,
    new_name: &str,
) -> Result<(&'s Server, Answer), Failure> {
    let mut reasons = Vec::new();
    for server in servers {
        let asking = Asking { seat, cancel, server, document };
        let asked = match asking.prepare(spotted).await {
            Ok(()) => asking.rename(spotted, new_name).await,
            Err(refused) => Err(refused),
        };
        match asked {
            Ok(answer) => return Ok((server, answer)),
            Err(failure) if cancel.is_cancelled() => return Err(failure),
            Err(failure) => reasons.push(failure.message),
        }
    }
    Err(Failure::new(reasons.join("; ")))
}

struct Asking<'a> {
    seat: &'a Seat,
    cancel: &'a Cancel,
    server: &'a Server,
    document: &'a Document,
}

impl Asking<'_> {
    fn at(&self, spotted: &Spotted, encoding: Encoding) -> Value {
        let lines = Lines::new(&self.document.text);
        json!({
            "textDocument": { "uri": uri::of_path(&self.document.path) },
            "position": lines.position(spotted.at, encoding),
        })
    }

    async fn ask(
        &self,
        method: &'static str,
        documents: &[Document],
        params: &(dyn Fn(Encoding) -> Value + Send + Sync),
    ) -> Result<Answer, Failure> {
        let server = std::slice::from_ref(self.server);
        let question = Ask { action: "rename", method, documents, params, first: true };
        let asked = ask(self.seat, self.cancel, server, question).await?;
        asked.answers.into_iter().next().ok_or_else(|| Failure::new("lsp_rename: no answer"))
    }

    /// Asks whether there is something to rename, where the server can say.
    async fn prepare(&self, spotted: &Spotted) -> Result<(), Failure> {
        let document = std::slice::from_ref(self.document);
        let params = |encoding| self.at(spotted, encoding);
        let Ok(answer) = self.ask("textDocument/prepareRename", document, &params).await else {
            // Not every server has the question; the rename itself tells the reason then.
            return Ok(());
        };
        let refused = |why: &str| {
            Failure::new(format!("lsp_rename: `{}` cannot be renamed: {why}", spotted.name))
        };
        if answer.value.is_null() {
            return Err(refused("the server says that nothing here has a name of the project's"));
        }
        let range = answer.value.get("range").unwrap_or(&answer.value);
        let Ok(range) = serde_json::from_value::<Range>(range.clone()) else { return Ok(()) };
        let lines = Lines::new(&self.document.text);
        let offset = |at: Position| lines.offset(at, answer.encoding);
        if !(offset(range.start)..offset(range.end)).contains(&spotted.at) {
            return Err(refused("the server would rename another symbol"));
        }
        Ok(())
    }

    /// Asks for the edit, until the server has read its project.
    async fn rename(&self, spotted: &Spotted, new_name: &str) -> Result<Answer, Failure> {
        let until = Instant::now() + self.seat.languages.request_bound();
        let params = |encoding| with(self.at(spotted, encoding), json!({ "newName": new_name }));
        let mut before: Option<Value> = None;
        loop {
            let documents = self.open().await;
            let answer = self.ask("textDocument/rename", &documents, &params).await?;
            let early = answer.up_for < READING && before.as_ref() != Some(&answer.value);
            let late = Instant::now() + AGAIN >= until;
            match (&answer.doing, early || answer.doing.is_some()) {
                (Some(doing), _) if late => {
                    return Err(Failure::new(format!(
                        "lsp_rename: the server is still busy ({doing}) and may not know every \
                         use: nothing was written; ask again"
                    )));
                }
                (_, true) if !late => {}
                _ if answer.value.is_null() => {
                    return Err(Failure::new(format!(
                        "lsp_rename: the server has no edit that renames `{}` to `{new_name}`",
                        spotted.name
                    )));
                }
                _ => return Ok(answer),
            }
            before = Some(answer.value);
            tokio::select! {
                () = sleep(AGAIN) => {}
                () = self.cancel.cancelled() => {
                    return Err(cancelled(TOOL.name, "nothing was written"));
                }
            }
        }
    }

    /// The document, and what else the server has open, as they are on disk now.
    async fn open(&self) -> Vec<Document> {
        let mut all = vec![self.document.clone()];
        for open in self.server.held.server.open_documents().into_iter().take(OPEN) {
            let file = open.path.to_str().and_then(|path| self.seat.folder.locate(path).ok());
            let other = |file: &Inside| file.absolute() != &*self.document.path;
            // All documents of a question are told as of one language.
            let Some(file) =
                file.filter(other).filter(|_| open.language_id == self.server.language_id)
            else {
                continue;
            };
            let read = documents::read(&self.seat.folder, &file, &open.language_id).await;
            all.extend(read.ok());
        }
        all
    }
}

/// Works out what a server answered, as steps on the folder.
pub(super) async fn planned(
    seat: &Seat,
    cancel: &Cancel,
    tool: &'static str,
    server: &Server,
    answer: &Answer,
) -> Result<(workspace_edit::WorkspaceEdit, Planned), Failure> {
    let edit = workspace_edit::read(&answer.value).map_err(|error| {
        Failure::new(format!(
            "{tool}: the server's edit is refused, and nothing was written: {error}"
        ))
    })?;
    let open = server.held.server.open_documents();
    let (folder, encoding, ops) = (seat.folder.clone(), answer.encoding, edit.clone());
    let planned = look(tool, cancel, BOUND, move |_| plan(&folder, &ops, encoding, &open)).await;
    let planned = planned.map_err(|failure| Failure {
        message: format!("{tool}: {}", failure.message),
        ..failure
    })?;
    Ok((edit, planned))
}

/// Stages what a server proposes.
pub(super) fn staged(
    seat: &Seat,
    what: &str,
    planned: Planned,
    to_confirm: &[String],
    details: Value,
) -> Outcome {
    let files = planned.steps.len();
    let places = planned.places();
    let summary = format!(
        "{places} {} in {files} {}",
        plural(places, "edit", "edits"),
        plural(files, "file", "files")
    );
    let text = told(what, &planned);
    let id = seat.staged.stage(&format!("{what}: {summary}"), planned.steps)?;
    let confirm = match to_confirm {
        [] => String::new(),
        labels => format!("; the server asks to look at it first: {}", labels.join(", ")),
    };
    let details = with(details, json!({ "edit_id": id }));
    let text = format!(
        "(proposed) {summary}{confirm}; nothing is written yet: call resolve with edit_id \
         \"{id}\"\n{text}"
    );
    Ok(Output::text(text, details))
}

fn told(what: &str, planned: &Planned) -> String {
    let (places, files) = (planned.places(), planned.steps.len());
    let mut lines = vec![format!(
        "{what}: {places} {} in {files} {}",
        plural(places, "edit", "edits"),
        plural(files, "file", "files")
    )];
    let edits = planned.edits.iter().take(NAMED);
    lines.extend(edits.map(|(name, count)| format!("M {name} ({count})")));
    if let Some(more) = planned.edits.len().checked_sub(NAMED).filter(|more| *more > 0) {
        lines.push(format!("and {more} more files"));
    }
    lines.extend(planned.renamed.iter().take(NAMED).map(|(from, to)| format!("R {from} -> {to}")));
    lines.join("\n")
}

/// Returns the facts of an edit.
pub(super) fn details(planned: &Planned) -> Value {
    let files: Vec<_> =
        planned.edits.iter().map(|(path, edits)| json!({ "path": path, "edits": edits })).collect();
    let renamed: Vec<_> =
        planned.renamed.iter().map(|(from, to)| json!({ "from": from, "to": to })).collect();
    json!({ "files": files, "edits": planned.places(), "renamed": renamed })
}

#[cfg(test)]
mod tests;
