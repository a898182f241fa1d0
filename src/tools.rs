//! The registry of tools, and the only door to them.
//!
//! Every caller (a harness over `hostler session`, the built-in harness, `tool()`
//! in a cell) enters at [`call`]. A tool is one file below `tools/` that holds
//! everything said about it; the registry, the surface and the guard read it from
//! there. May not start a process: that is `launch`'s.

pub(crate) mod apply_patch;
pub(crate) mod ast_edit;
pub(crate) mod ast_grep;
pub(crate) mod bash;
pub(crate) mod debug;
pub(crate) mod edit;
pub(crate) mod eval;
pub(crate) mod glob;
pub(crate) mod grep;
pub(crate) mod lsp;
pub(crate) mod lsp_apply;
pub(crate) mod lsp_rename;
pub(crate) mod read;
pub(crate) mod resolve;
pub(crate) mod write;

use hostler_actors::ports::{Block, BoxFuture, ToolCall, ToolCard, ToolResult};
use hostler_actors::profile::Tier;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::seat::Seat;
use crate::{checkers, diagnostics, guard};

/// Something that a call may do to the world, by the id that profiles name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Effect {
    /// Changes files inside the worktree.
    WorktreeWrite,
    /// Starts a process.
    ProcessSpawn,
}

/// What must be wired for a run before a tool is on its surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wired {
    /// A work folder.
    Folder,
    /// A work folder and parsers.
    Trees,
    /// A work folder and a language-server supervisor.
    LanguageServers,
    /// A work folder, and a conversation with a debug-session supervisor.
    DebugSessions,
    /// A work folder, and a run with a supervisor of interpreters.
    Interpreters,
}

/// Everything said about a tool.
pub(crate) struct Tool {
    /// The name by which it is called.
    pub(crate) name: &'static str,
    /// What it can do.
    pub(crate) tier: Tier,
    /// May several calls of one run go on at once.
    pub(crate) parallel_safe: bool,
    /// Does a call with these arguments wait for none of the calls before it, where those
    /// of this tool otherwise keep their order.
    pub(crate) overtakes: fn(&Value) -> bool,
    /// Does it change the worktree: taken away where that is read-only.
    pub(crate) mutates_worktree: bool,
    /// What must be wired.
    pub(crate) wired: Wired,
    /// What a call may do.
    pub(crate) effects: &'static [Effect],
    /// What the model is told.
    pub(crate) description: &'static str,
    /// The schema of the arguments.
    pub(crate) schema: fn() -> Value,
    /// The files that a call with these arguments writes, as given. They are
    /// locked and looked at by the diagnostics wrapper around the call.
    pub(crate) writes: fn(&Value) -> Vec<String>,
    /// Makes a call.
    pub(crate) call: for<'a> fn(&'a Seat, Value, Cancel) -> BoxFuture<'a, Outcome>,
}

/// Fires when a call is cancelled.
pub(crate) type Cancel = tokio_util::sync::CancellationToken;

/// What a call came to.
pub(crate) type Outcome = Result<Output, Failure>;

/// What a call brought.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// What the model is shown.
    pub(crate) content: Vec<Block>,
    /// The same facts for programs, with stable names.
    pub(crate) details: Value,
}

impl Output {
    /// Makes an output of one text.
    pub(crate) fn text(text: impl Into<String>, details: Value) -> Self {
        Self { content: vec![Block::Text { text: text.into() }], details }
    }
}

/// Why a call failed, for the model: names the thing, the limit and the way out.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The text.
    pub(crate) message: String,
    /// The same facts for programs.
    pub(crate) details: Value,
}

impl Failure {
    /// Makes a failure without details.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), details: Value::Object(serde_json::Map::new()) }
    }

    /// Makes a failure of a call that may not be made.
    fn denied(message: impl Into<String>) -> Self {
        Self { message: message.into(), details: serde_json::json!({ "denied": true }) }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

/// Every tool, in the order in which a surface lists them.
pub(crate) static TOOLS: &[Tool] = &[
    read::TOOL,
    grep::TOOL,
    glob::TOOL,
    ast_grep::TOOL,
    lsp::TOOL,
    write::TOOL,
    edit::TOOL,
    apply_patch::TOOL,
    ast_edit::TOOL,
    lsp_rename::TOOL,
    lsp_apply::TOOL,
    resolve::TOOL,
    bash::TOOL,
    eval::TOOL,
    debug::TOOL,
];

/// Generates the JSON schema of a tool's arguments.
pub(crate) fn schema_of<A: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(A).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        // A tool's fields stand in its description; the type's own doc is for us.
        object.remove("description");
    }
    schema
}

/// Reads a call's arguments, or says which field is wrong, what came and what
/// was expected.
pub(crate) fn arguments<A: DeserializeOwned>(tool: &str, given: Value) -> Result<A, Failure> {
    serde_path_to_error::deserialize(given).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!(" `{path}`") };
        Failure::new(format!("{tool}: wrong argument{place}: {}", error.inner()))
    })
}

/// For tools of which every call keeps its place.
pub(crate) fn never(_: &Value) -> bool {
    false
}

/// For tools that write nothing.
pub(crate) fn writes_nothing(_: &Value) -> Vec<String> {
    Vec::new()
}

impl Tool {
    /// Returns what a model is told of the tool.
    pub(crate) fn card(&self) -> ToolCard {
        ToolCard {
            name: self.name.to_owned(),
            tier: self.tier,
            parallel_safe: self.parallel_safe,
            description: self.description.to_owned(),
            input_schema: (self.schema)(),
        }
    }
}

/// Makes one call. The only door: every caller comes through here, so that
/// surface, guard, locks, diagnostics and late results hold for all of them.
pub(crate) async fn call(seat: &Seat, call: ToolCall) -> ToolResult {
    let outcome = match admit(&call) {
        Ok(tool) => {
            let writes = (tool.writes)(&call.arguments);
            let made = (tool.call)(seat, call.arguments, call.cancel.clone());
            diagnostics::around(seat, tool.name, &writes, &call.cancel, made).await
        }
        Err(failure) => Err(failure),
    };
    let mut result = match outcome {
        Ok(Output { content, details }) => ToolResult { content, is_error: false, details },
        Err(Failure { message, details }) => ToolResult::error(message, details),
    };
    let late = [diagnostics::late(seat).await, checkers::late(seat)];
    let (texts, details): (Vec<_>, Vec<_>) = late.into_iter().flatten().unzip();
    let details = details.concat();
    result.content.extend(texts.into_iter().map(|text| Block::Text { text }));
    if let Some(facts) = result.details.as_object_mut().filter(|_| !details.is_empty()) {
        facts.insert("late".to_owned(), details.into());
    }
    result
}

/// Joins the texts of a result.
pub(crate) fn text_of(content: &[Block]) -> String {
    let texts = content.iter().map(|block| match block {
        Block::Text { text } => text.clone(),
        Block::Image { mime_type, .. } => format!("[{mime_type}]"),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Finds the tool of a call, if this turn has it and the guard lets it pass.
fn admit(call: &ToolCall) -> Result<&'static Tool, Failure> {
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == call.tool) else {
        let names: Vec<_> = call.surface.tools.iter().map(|tool| tool.name.as_str()).collect();
        return Err(Failure::new(format!(
            "there is no tool `{}`; this turn has: {}",
            call.tool,
            names.join(", ")
        )));
    };
    let profile = &call.surface.profile;
    if call.surface.tool(tool.name).is_none() {
        return Err(Failure::denied(format!(
            "{}: the mode {} has taken it away; it comes back with the next turn in a mode that \
             allows {} tools, such as chat",
            tool.name, profile.mode, tool.tier
        )));
    }
    match guard::weigh(tool, profile) {
        guard::Verdict::Go => Ok(tool),
        guard::Verdict::Deny(why) => Err(Failure::denied(why)),
    }
}

/// Names the lanes in which a call keeps its order (`ports::Tools::lanes`).
pub(crate) fn lanes(tool: &str, arguments: &Value) -> Vec<String> {
    let Some(tool) = TOOLS.iter().find(|known| known.name == tool) else { return Vec::new() };
    if (tool.overtakes)(arguments) {
        return Vec::new();
    }
    if !tool.parallel_safe {
        return vec![tool.name.to_owned()];
    }
    let plain = |path: &String| {
        use std::path::{Component, Path};
        let parts = Path::new(path).components().filter(|part| *part != Component::CurDir);
        format!("path {}", parts.collect::<std::path::PathBuf>().display())
    };
    (tool.writes)(arguments).iter().map(plain).collect()
}
