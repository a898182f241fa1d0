//! `lsp`: questions to language servers. Read only; renames and code actions are
//! applied elsewhere.
//!
//! Details by action, all with `action`: `definition`, `type_definition`,
//! `implementation`, `references`: `file`, `line`, `symbol`, `locations[]` (`path`,
//! `line`, `column`, `text`), `shown`, `total`, `elsewhere`, `notes[]`. `hover`:
//! `hover`. `code_actions`: `actions[]` (`title`, `kind`, `preferred`, `disabled`).
//! `symbols`: `symbols[]` (`name`, `kind`, `container`, `path`, `line`, `column`).
//! `status`: `servers[]` (`name`, `root`, `program`, `no_root`, `no_program`,
//! `state`, `incarnation`, `last_error`). `reload`: `restarted[]`. `diagnostics`:
//! `freshness`, `diagnostics[]`, `total`, `shown`, `reasons[]` as in `diagnostics`.

mod answers;
pub(super) mod arguments;
pub(super) mod asking;
mod listing;
pub(super) mod place;
mod sources;
mod standing;
mod symbol;
mod verdicts;

use hostler_actors::profile::Tier;
use serde_json::Value;

use crate::checkers;
use crate::seat::Seat;
use crate::tools::{
    Cancel, Outcome, Tool, Wired, arguments as read, never, schema_of, writes_nothing,
};
use arguments::{Arguments, Query};

const NAME: &str = "lsp";

pub(crate) const TOOL: Tool = Tool {
    name: NAME,
    tier: Tier::Read,
    parallel_safe: true,
    overtakes: never,
    mutates_worktree: false,
    wired: Wired::LanguageServers,
    effects: &[],
    description: "Asks the project's language servers. Actions: definition, type_definition, \
        implementation, references, hover, code_actions take file, line (from 1) and symbol: the \
        name on that line, or a piece of the line that begins with it; give occurrence where it \
        stands there more than once. symbols takes a file, or a query for the whole project. \
        diagnostics takes a file, or \"*\" to check the whole project. status says which servers \
        run and which cannot and why. reload restarts them.",
    schema: schema_of::<Arguments>,
    writes: writes_nothing,
    call: |seat, given, cancel| Box::pin(call(seat, given, cancel)),
};

async fn call(seat: &Seat, given: Value, cancel: Cancel) -> Outcome {
    match Query::read(read(NAME, given)?)? {
        Query::FileDiagnostics(file) => verdicts::of_file(seat, &cancel, &file).await,
        Query::ProjectDiagnostics => checkers::check(seat, &cancel).await,
        Query::At(question, place) => place::answer(seat, &cancel, question, &place).await,
        Query::FileSymbols(file) => listing::of_file(seat, &cancel, &file).await,
        Query::ProjectSymbols(query) => listing::of_project(seat, &cancel, &query).await,
        Query::Status => standing::status(seat).await,
        Query::Reload => standing::reload(seat).await,
    }
}

#[cfg(test)]
mod tests;
