//! `eval`: runs a cell in an interpreter whose variables last.
//!
//! A cell that raises is a result, with its traceback; one that was stopped, or whose
//! interpreter died, is a failure that shows what it printed and says what became of the
//! variables. Details: `cell`, `status` (`ok`, `error`, `interrupted`, `exit`),
//! `interpreter` (`version`, `executable`, `started`), `state` (`kept`, `restored`,
//! `lost`), `variables` (`new`, `changed`, `gone`), `calls`, `duration_ms`,
//! `output_bytes`, `handle`, `images`.

mod collect;
mod told;

use std::sync::Arc;

use hostler_actors::host::workspace::space::conversation::run::interpreter::cell::CellOrder;
use hostler_actors::host::workspace::space::conversation::run::interpreter::session::Session;
use hostler_actors::host::workspace::space::conversation::run::interpreter::spec::Language;
use hostler_actors::host::workspace::space::conversation::run::interpreter::text::Sink;
use hostler_actors::ports::BoxFuture;
use hostler_actors::profile::Tier;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::code::cells::{self, Dialect, Refusal};
use crate::interpreters::{find, limits};
use crate::seat::Seat;
use crate::tools::{
    Cancel, Effect, Failure, Outcome, Tool, Wired, arguments, schema_of, writes_nothing,
};
use collect::Collect;
use told::{Told, why};

/// Characters of a description that name a cell in `status`.
const LABEL: usize = 60;

pub(crate) const TOOL: Tool = Tool {
    name: "eval",
    tier: Tier::Exec,
    parallel_safe: false,
    overtakes,
    mutates_worktree: true,
    wired: Wired::Interpreters,
    effects: &[Effect::ProcessSpawn, Effect::WorktreeWrite],
    description: "Runs a cell of Python, or of JavaScript or TypeScript, in the project's own interpreter; variables, imports and \
        data last from cell to cell. The last expression is echoed; display(), figures, tables, \
        top-level await and the usual magics (%pip, !cmd, %%bash, %cd, %time) work. \
        tool(\"read\", {\"path\": \"a.py\"}) calls a tool and returns its text (tool.map for \
        many); in JavaScript it is a promise (tool.sync is none). A cell may be silent for 5 minutes; budget(seconds) asks for more. `undo` goes \
        back to the state before the last cell.",
    schema: schema_of::<Args>,
    writes: writes_nothing,
    call,
};

/// In what a cell is written.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Tongue {
    #[default]
    Python,
    JavaScript,
}

impl From<Tongue> for Language {
    fn from(tongue: Tongue) -> Self {
        match tongue {
            Tongue::Python => Self::Python,
            Tongue::JavaScript => Self::JavaScript,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The cell. May be empty with `reset` or `undo`.
    #[serde(default)]
    code: String,
    /// What it does, in 5 to 10 words: its label in the transcript.
    description: String,
    /// What it is written in.
    #[serde(default)]
    language: Tongue,
    /// Drops the interpreter, and the cell that runs on it, and starts a clean one first.
    #[serde(default)]
    reset: bool,
    /// Goes back to the state before the last cell first, where a snapshot of it is kept.
    #[serde(default)]
    undo: bool,
}

/// A reset ends the cell that runs, so it must not wait for it.
fn overtakes(given: &Value) -> bool {
    given.get("reset").and_then(Value::as_bool) == Some(true)
}

fn call(seat: &Seat, given: Value, cancel: Cancel) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let args: Args = arguments(TOOL.name, given)?;
        let wanted = !args.code.trim().is_empty();
        if args.description.trim().is_empty() {
            return Err(Failure::new(
                "eval: `description` is empty: say in 5 to 10 words what the cell does",
            ));
        }
        if !wanted && !args.reset && !args.undo {
            return Err(Failure::new("eval: `code` is empty: give a cell, or `reset` or `undo`"));
        }
        let session = seat.interpreters.session(args.language.into()).await;
        let session = session.ok_or_else(|| Failure::new("eval: the run is over"))?;
        let mut told = Told::default();
        if args.reset {
            match session.reset(&cancel).await {
                Ok(Some(cells)) => told.line(&format!(
                    "reset: the interpreter and the variables of {cells} cells are gone"
                )),
                Ok(None) => told.line("reset: there was no interpreter"),
                Err(stopped) => return Err(Failure::new(format!("eval: {}", why(stopped)))),
            }
        }
        if args.undo {
            let undone = session.undo(&cancel).await;
            let cell = undone.map_err(|why| Failure::new(format!("eval: not undone: {why}")))?;
            told.line(&format!(
                "undone: the variables are those after cell {cell}; files and \
                               other effects of the cell stay"
            ));
        }
        if wanted { cell(seat, &session, args, told, cancel).await } else { Ok(told.output()) }
    })
}

/// Makes a cell of JavaScript, or of TypeScript where it is none, into what the runner
/// runs.
fn script(code: &str) -> Result<(String, usize), Failure> {
    let plain = cells::script(code, Dialect::JavaScript);
    let script = plain.or_else(|refused| {
        // Of a cell that is neither, what JavaScript says is the more likely to help.
        cells::script(code, Dialect::TypeScript).map_err(|typed| match typed {
            Refusal::Unsupported { .. } => typed,
            _ => refused,
        })
    });
    let script = script.map_err(|refused| Failure::new(format!("eval: {refused}")))?;
    Ok((script.code, script.shift))
}

async fn cell(
    seat: &Seat,
    session: &Arc<Session>,
    args: Args,
    told: Told,
    cancel: Cancel,
) -> Outcome {
    let language = Language::from(args.language);
    let spec = find(seat, language).await;
    let spec = spec.map_err(|why| Failure::new(format!("eval: no {language} here: {why}")))?;
    let (code, shift) = match language {
        Language::Python => (args.code, 0),
        Language::JavaScript => script(&args.code)?,
    };
    let config = &seat.languages.config.eval;
    let sink = Arc::new(Collect::new(&seat.handles));
    let order = CellOrder {
        spec: Arc::clone(&spec),
        code,
        shift,
        label: args.description.chars().take(LABEL).collect::<String>().into(),
        limits: limits(config),
        nonce: format!("{:x}", crate::chance::id()),
        sink: Arc::clone(&sink) as Arc<dyn Sink>,
        bridge: Arc::clone(&seat.interpreters.bridge),
        cancel,
    };
    let report = session.run(order).await;
    told.cell(&report, &sink, config, &spec)
}
