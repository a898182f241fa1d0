//! Which interpreter runs a project's cells, what it is made to read, and how its cells
//! reach the tools.
//!
//! The runner is part of this binary. It is handed over on the interpreter's own
//! descriptor, so no file of it can be deleted, changed, or shadowed by the project's.

#[cfg(test)]
pub(crate) mod testing;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use hostler_actors::host::workspace::space::conversation::run::RunMsg;
use hostler_actors::host::workspace::space::conversation::run::interpreter::cell::Bridge;
use hostler_actors::host::workspace::space::conversation::run::interpreter::protocol::Bridged;
use hostler_actors::host::workspace::space::conversation::run::interpreter::session::Session;
use hostler_actors::host::workspace::space::conversation::run::interpreter::spec::{
    InterpreterSpec, Language, Limits,
};
use hostler_actors::host::workspace::space::conversation::run::turn::Asked;
use hostler_actors::ids::CallId;
use hostler_actors::ports::{BoxFuture, Caller, Owner, ToolResult};
use ractor::ActorRef;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::ask::ask;
use crate::config::Eval;
use crate::seat::Seat;
use crate::shims::{NotFound, Search};
use crate::tools::text_of;

/// Reads the runner from descriptor 3 and runs it. The work folder is out of the way
/// meanwhile: a project may have a `json.py`.
const BOOTSTRAP: &str = "\
import sys
sys.path.pop(0)
import os, json
_got = b''
while not _got.endswith(b'\\n'):
    _more = os.read(3, 1 << 16)
    if not _more:
        os._exit(0)
    _got += _more
SOURCES = json.loads(_got)
exec(compile(SOURCES['core'], '<hostler core>', 'exec'), {'__name__': 'hostler', 'SOURCES': SOURCES})
";

/// The same for Node.
const NODE_BOOTSTRAP: &str = "\
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 12)) {
  console.error(`Node ${process.versions.node} is too old: cells need 20.12`);
  process.exit(1);
}
const chunks = [];
for (let chunk = Buffer.alloc(1 << 16), got; ; ) {
  got = require('fs').readSync(3, chunk);
  if (got === 0) process.exit(0);
  chunks.push(Buffer.from(chunk.subarray(0, got)));
  if (chunk[got - 1] === 10) break;
}
const source = JSON.parse(Buffer.concat(chunks)).runner;
new (require('vm').Script)(`(function (require) {${source}\n})`, { filename: 'hostler-runner.js' })
  .runInThisContext()(require);
";

static NODE_RUNNER: LazyLock<Arc<str>> = LazyLock::new(|| {
    json!({ "runner": include_str!("interpreters/runner.js") }).to_string().into()
});

static RUNNER: LazyLock<Arc<str>> = LazyLock::new(|| {
    let parts = json!({
        "core": include_str!("interpreters/python/core.py"),
        "errors": include_str!("interpreters/python/errors.py"),
        "loop": include_str!("interpreters/python/loop.py"),
        "bridge": include_str!("interpreters/python/bridge.py"),
        "magics": include_str!("interpreters/python/magics.py"),
        "display": include_str!("interpreters/python/display.py"),
        "modules": include_str!("interpreters/python/modules.py"),
    });
    parts.to_string().into()
});

/// Asks for the hold on one of the run's interpreters; `None` if the run is over.
pub(crate) type AskSession =
    Arc<dyn Fn(Language) -> BoxFuture<'static, Option<Arc<Session>>> + Send + Sync>;

/// What a run's tools need to reach its interpreters.
pub(crate) struct Interpreters {
    ask: AskSession,
    held: Mutex<HashMap<Language, Arc<Session>>>,
    /// How its cells reach the tools.
    pub(crate) bridge: Arc<dyn Bridge>,
}

impl Interpreters {
    /// Makes it of the two ways.
    pub(crate) fn new(ask: AskSession, bridge: Arc<dyn Bridge>) -> Self {
        Self { ask, held: Mutex::default(), bridge }
    }

    /// Makes it of a run's actor.
    pub(crate) fn of_run(run: ActorRef<RunMsg>) -> Self {
        let asked = run.clone();
        let session = move |language| -> BoxFuture<'static, Option<Arc<Session>>> {
            Box::pin(ask(&asked, move |reply| RunMsg::Interpreter(language, reply)))
        };
        Self::new(Arc::new(session), Arc::new(Door { run }))
    }

    /// Returns the hold on one; `None` if the run is over.
    pub(crate) async fn session(&self, language: Language) -> Option<Arc<Session>> {
        let held = || self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let known = held().get(&language).cloned();
        if let Some(session) = known.filter(|session| !session.is_over()) {
            return Some(session);
        }
        let session = (self.ask)(language).await?;
        held().insert(language, Arc::clone(&session));
        Some(session)
    }
}

/// Makes the calls of cells, in the run's open turn, as every other caller does.
struct Door {
    run: ActorRef<RunMsg>,
}

impl Bridge for Door {
    fn call(
        &self,
        tool: String,
        arguments: Value,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Bridged> {
        if tool == "eval" {
            let text = "eval: a cell cannot run another cell: its interpreter is busy with it";
            return Box::pin(async move { failed("failed", text.to_owned(), Value::Null) });
        }
        let run = self.run.clone();
        Box::pin(async move {
            let call = CallId(crate::chance::id());
            let asked = Asked { call, caller: Caller::Cell, tool, arguments };
            let answer = ask(&run, |reply| RunMsg::Call(asked, reply));
            tokio::pin!(answer);
            let (result, cancelled) = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    let _ = ask(&run, |reply| RunMsg::Cancel(call, reply)).await;
                    // Bounded by the turn, which gives a cancelled call up.
                    (answer.await, true)
                }
                result = &mut answer => (result, false),
            };
            bridged(result, cancelled)
        })
    }
}

fn failed(kind: &'static str, text: String, details: Value) -> Bridged {
    Bridged::Error { kind, text, details }
}

fn bridged(result: Option<ToolResult>, cancelled: bool) -> Bridged {
    let Some(ToolResult { content, is_error, details }) = result else {
        return failed("failed", "the turn is over".to_owned(), Value::Null);
    };
    if !is_error {
        return Bridged::Ok { content, details };
    }
    let kind = match (cancelled, details.get("denied")) {
        (true, _) => "cancelled",
        (_, Some(Value::Bool(true))) => "denied",
        _ => "failed",
    };
    failed(kind, text_of(&content), details)
}

/// Says of what a project's interpreter is made.
pub(crate) async fn find(
    seat: &Seat,
    language: Language,
) -> Result<Arc<InterpreterSpec>, NotFound> {
    let memory = seat.languages.config.eval.memory_bytes;
    let (names, folders, args, runner) = match language {
        Language::Python => (
            vec!["python3".to_owned(), "python".to_owned()],
            vec![PathBuf::from(".venv/bin"), PathBuf::from("venv/bin")],
            vec!["-c".into(), BOOTSTRAP.into()],
            &RUNNER,
        ),
        Language::JavaScript => (
            vec!["node".to_owned()],
            Vec::new(),
            vec![
                "--no-warnings".into(),
                format!("--max-old-space-size={}", memory >> 20).into(),
                "-e".into(),
                NODE_BOOTSTRAP.into(),
                "--".into(),
            ],
            &NODE_RUNNER,
        ),
    };
    let search = Search {
        names: &names,
        root: seat.folder.root(),
        project_folders: &folders,
        env: &seat.env,
        installed: &[],
        probe: None,
    };
    let program = seat.languages.programs.interpreter(search).await?;
    Ok(Arc::new(InterpreterSpec {
        language,
        program,
        args,
        runner: Arc::clone(runner),
        cwd: seat.folder.root().to_owned(),
        env: Arc::clone(&seat.env),
        owner: Owner::Run(seat.run),
        posture: seat.languages.posture.clone(),
        memory,
    }))
}

/// Returns the bounds of a cell.
pub(crate) fn limits(config: &Eval) -> Limits {
    Limits {
        start: config.start,
        quiet: config.quiet,
        longest: config.longest,
        output: config.output_bytes,
    }
}
