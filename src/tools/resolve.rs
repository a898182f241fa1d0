//! `resolve`: applies or drops a staged edit.
//!
//! An edit is applied once, and only to the contents that it was made for: one file
//! that changed, appeared or went since refuses all of it, and the edit is dropped, as
//! it is an answer to a question about another tree. Details: `edit_id`, `action`,
//! `files`, `lost[]`, and for a refusal `moved[]`.

use hostler_actors::ports::BoxFuture;
use hostler_actors::profile::Tier;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::changes::{commit_watched, listed, with_lost};
use crate::diagnostics::details::with;
use crate::seat::Seat;
use crate::staged::End;
use crate::tools::{
    Cancel, Effect, Failure, Outcome, Output, Tool, Wired, arguments, never, schema_of,
    writes_nothing,
};

pub(crate) const TOOL: Tool = Tool {
    name: "resolve",
    tier: Tier::Write,
    // The files are known only by the edit, so that two of them keep their order.
    parallel_safe: false,
    overtakes: never,
    mutates_worktree: true,
    wired: Wired::Trees,
    effects: &[Effect::WorktreeWrite],
    description: "Applies a staged edit (action accept) or drops it (action discard). Nothing is \
        written if any of its files has changed since it was staged: the edit is dropped then, and \
        has to be staged again.",
    schema: schema_of::<Args>,
    writes: writes_nothing,
    call,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The edit_id of the (proposed) result.
    edit_id: String,
    /// What to do with it.
    action: Action,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// Write it.
    Accept,
    /// Drop it.
    Discard,
}

fn call(seat: &Seat, given: Value, cancel: Cancel) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let args: Args = arguments(TOOL.name, given)?;
        let edit = seat.staged.take(&args.edit_id);
        let edit = edit.map_err(|error| Failure::new(format!("resolve: {error}")))?;
        let id = edit.id();
        if let Action::Discard = args.action {
            seat.staged.ended(&edit, End::Discarded);
            return Ok(Output::text(
                format!("{id} is discarded: {}; nothing was written", edit.what),
                json!({ "edit_id": id, "action": "discard", "files": edit.steps.len() }),
            ));
        }
        let (what, files) = (edit.what.clone(), edit.steps.len());
        let told = listed(&edit.steps);
        let outcome = commit_watched(seat, TOOL.name, edit.steps.clone(), &cancel, |done| {
            let details = json!({ "edit_id": id, "action": "accept", "files": files });
            with_lost(Output::text(format!("applied {id}: {what}\n{told}"), details), done)
        })
        .await;
        match outcome {
            Ok(output) => {
                seat.staged.ended(&edit, End::Accepted);
                Ok(output)
            }
            Err(failure) if failure.details.get("cancelled").is_some() => {
                let message = format!("{}; {id} is still staged", failure.message);
                seat.staged.put_back(edit);
                Err(Failure { message, ..failure })
            }
            Err(failure) => {
                seat.staged.ended(&edit, End::Refused);
                let message = format!(
                    "resolve: {id} is refused and dropped: {}; look again and stage it anew",
                    failure.message
                );
                let details = with(failure.details, json!({ "edit_id": id }));
                Err(Failure { message, details })
            }
        }
    })
}

#[cfg(test)]
mod tests;
