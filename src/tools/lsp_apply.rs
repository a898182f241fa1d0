//! `lsp_apply`: stages a code action of the language server.
//!
//! The action is found by its title among those that `lsp code_actions` lists at the
//! same place. An action that is only a command of the server's own is refused: what
//! that would write cannot be shown before. Details: `edit_id`, `title`, `files[{path,
//! edits}]`, `edits`, `renamed[]`.

use hostler_actors::host::language_server::documents::Document;
use hostler_actors::host::workspace::space::conversation::run::language_session::servers::Answer;
use hostler_actors::ports::BoxFuture;
use hostler_actors::profile::Tier;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::diagnostics::details::with;
use crate::seat::Seat;
use crate::servers::Server;
use crate::tools::lsp::arguments::Question;
use crate::tools::lsp::asking::{Ask, Subject, ask};
use crate::tools::lsp::place::{Spotted, diagnostics_at, params, spotted};
use crate::tools::lsp_rename::{details, place, planned, staged};
use crate::tools::{
    Cancel, Effect, Failure, Outcome, Tool, Wired, arguments, never, schema_of, writes_nothing,
};

pub(crate) const TOOL: Tool = Tool {
    name: "lsp_apply",
    tier: Tier::Write,
    parallel_safe: true,
    overtakes: never,
    mutates_worktree: true,
    wired: Wired::LanguageServers,
    effects: &[Effect::WorktreeWrite],
    description: "Stages a code action that lsp code_actions lists at file, line and symbol, by \
        its title. Writes nothing: resolve applies it.",
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
    /// The title of the action, as lsp code_actions shows it.
    title: String,
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
        let servers = subject.servers()?;
        let (server, action, answer) =
            find(seat, &cancel, servers, &document, &spotted, &args.title).await?;
        let edit = edit_of(seat, &cancel, server, action).await?;
        let answer = Answer { value: edit, ..answer };
        let (edit, planned) = planned(seat, &cancel, TOOL.name, server, &answer).await?;
        if planned.steps.is_empty() {
            return Err(Failure::new(format!("lsp_apply: `{}` changes nothing", args.title)));
        }
        let facts = with(details(&planned), json!({ "title": args.title }));
        staged(seat, &format!("`{}`", args.title), planned, &edit.to_confirm, facts)
    })
}

/// Finds an action by its title.
async fn find<'s>(
    seat: &Seat,
    cancel: &Cancel,
    servers: &'s [Server],
    document: &Document,
    spotted: &Spotted,
    title: &str,
) -> Result<(&'s Server, Value, Answer), Failure> {
    let context = diagnostics_at(servers, document, spotted.at, cancel).await;
    let (mut titles, mut reasons) = (Vec::new(), Vec::new());
    for server in servers {
        let ask_params =
            |encoding| params(document, spotted, Question::CodeActions, encoding, &context);
        let question = Ask {
            action: "code_actions",
            method: "textDocument/codeAction",
            documents: std::slice::from_ref(document),
            params: &ask_params,
            first: false,
        };
        let asked = match ask(seat, cancel, std::slice::from_ref(server), question).await {
            Ok(asked) => asked,
            Err(failure) if cancel.is_cancelled() => return Err(failure),
            Err(failure) => {
                reasons.push(failure.message);
                continue;
            }
        };
        for answer in asked.answers {
            let actions = answer.value.as_array().cloned().unwrap_or_default();
            for action in actions {
                let named = action.get("title").and_then(Value::as_str).unwrap_or_default();
                if named.trim() == title.trim() {
                    return Ok((server, action, answer));
                }
                titles.push(format!("`{named}`"));
            }
        }
    }
    if titles.is_empty() && !reasons.is_empty() {
        return Err(Failure::new(format!("lsp_apply: {}", reasons.join("; "))));
    }
    let offered = match titles.is_empty() {
        true => "none is offered there".to_owned(),
        false => {
            format!("offered are {}", titles.into_iter().take(20).collect::<Vec<_>>().join(", "))
        }
    };
    Err(Failure::new(format!("lsp_apply: there is no action `{title}`: {offered}")))
}

/// Returns the edit of an action, which the server may give only when asked for it.
async fn edit_of(
    seat: &Seat,
    cancel: &Cancel,
    server: &Server,
    action: Value,
) -> Result<Value, Failure> {
    let title = action.get("title").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(reason) = action.pointer("/disabled/reason").and_then(Value::as_str) {
        return Err(Failure::new(format!("lsp_apply: `{title}` is not possible now: {reason}")));
    }
    let action = match action.get("edit") {
        None if action.get("command").is_none_or(Value::is_object) => {
            let question = Ask {
                action: "code_actions",
                method: "codeAction/resolve",
                documents: &[],
                params: &|_| action.clone(),
                first: true,
            };
            let asked = ask(seat, cancel, std::slice::from_ref(server), question).await;
            let resolved = asked.ok().and_then(|asked| asked.answers.into_iter().next());
            resolved.map_or(action, |answer| answer.value)
        }
        _ => action,
    };
    match action.get("edit") {
        Some(edit) if !edit.is_null() => Ok(edit.clone()),
        _ => Err(Failure::new(format!(
            "lsp_apply: `{title}` is carried out by a command of the server's own, of which nothing \
             could be shown before it writes: make the change with edit or apply_patch"
        ))),
    }
}

#[cfg(test)]
mod tests;
