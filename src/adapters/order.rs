//! What a session is made of: the adapter's process, and the arguments of its request.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hostler_actors::host::workspace::space::conversation::debug_session::spec::{
    AdapterProcess, Bounds, Guard, Kind, Reach, SessionSpec,
};
use serde_json::{Value, json};

use crate::adapters::program::Program;
use crate::adapters::template::{Values, fill};
use crate::adapters::{Standing, scratch};
use crate::config::adapters::{AdapterDefinition, AttachBy, ReachedBy};
use crate::seat::Seat;
use crate::shims::{Search, Source};
use crate::tools::Failure;

/// How long the handshake of a process of ours may take.
const HANDSHAKE: Duration = Duration::from_secs(20);
/// The same of whoever listens on a port: adapters answer in 160 ms.
const LISTENER_HANDSHAKE: Duration = Duration::from_secs(5);
/// How long `disconnect` may take: 0.3 s, but longer where children hold the pipes, and
/// then their end is not the adapter's doing.
const DISCONNECT: Duration = Duration::from_secs(2);

/// What a call wants beside its program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) args: Vec<String>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) stop_on_entry: bool,
}

/// Makes the order for a launch.
pub(crate) async fn launch(
    seat: &Seat,
    program: &Program<'_>,
    standing: &Standing,
    wanted: &Wanted,
    shown: String,
) -> Result<SessionSpec, Failure> {
    let definition = program.definition;
    if wanted.stop_on_entry && !stops_on_entry(definition) {
        return Err(Failure::new(format!(
            "debug: {} cannot stop on entry: set a breakpoint on the first line instead",
            program.adapter
        )));
    }
    let (root, adapter, source) = usable(standing)?;
    let cwd = wanted.cwd.clone().unwrap_or_else(|| root.to_owned());
    let mut values = common(seat, definition, root).await;
    values.insert("program", json!(program.path));
    values.insert("args", json!(wanted.args));
    values.insert("cwd", json!(cwd));
    values.insert("mode", json!(program.mode));
    values.insert("stop_on_entry", json!(wanted.stop_on_entry));
    let folder = scratch::make()
        .map_err(|error| Failure::new(format!("debug: no scratch folder: {error}")))?;
    values.insert("scratch", json!(folder.path()));
    if definition.interpreter.is_some() {
        let python = debuggee_interpreter(seat, definition, root, (adapter, source)).await;
        values.insert("python", json!(python));
    }
    let process = process(seat, definition, root, adapter);
    let reach = match definition.reach {
        ReachedBy::Stdio => Reach::Stdio(process),
        ReachedBy::DialsUs => Reach::DialsUs(process),
    };
    let arguments = fill(&definition.launch, &values).unwrap_or_default();
    let guard = Some(Guard(Arc::new(folder)));
    let parts = Parts {
        reach,
        kind: Kind::Launch,
        arguments,
        stop_on_entry: wanted.stop_on_entry,
        guard,
        shown,
    };
    Ok(spec(seat, program.adapter, definition, parts))
}

/// Makes the order for an attach.
pub(crate) async fn attach(
    seat: &Seat,
    name: &str,
    definition: &AdapterDefinition,
    standing: &Standing,
    (port, program): (u16, Option<PathBuf>),
) -> Result<SessionSpec, Failure> {
    if definition.attach.is_null() {
        return Err(Failure::new(format!(
            "debug: {name} cannot attach: its definition has no `attach`"
        )));
    }
    let shown = format!("port {port}");
    // Where the adapter is already there, its program is not needed here.
    let (reach, root) = match definition.attach_by {
        AttachBy::Listener => {
            let root = standing.root.as_deref().map_err(|_| refusal(standing))?;
            (Reach::Listens(port), root)
        }
        AttachBy::Process => {
            let (root, adapter, _) = usable(standing)?;
            (Reach::Stdio(process(seat, definition, root, adapter)), root)
        }
    };
    let mut values = common(seat, definition, root).await;
    values.insert("port", json!(port));
    values.insert("cwd", json!(root));
    if let Some(program) = program {
        values.insert("program", json!(program));
    }
    let arguments = fill(&definition.attach, &values).unwrap_or_default();
    let kind = Kind::Attach;
    let parts = Parts { reach, kind, arguments, stop_on_entry: false, guard: None, shown };
    Ok(spec(seat, name, definition, parts))
}

fn stops_on_entry(definition: &AdapterDefinition) -> bool {
    definition.entry_function.is_some() || definition.launch.to_string().contains("{stop_on_entry}")
}

fn refusal(standing: &Standing) -> Failure {
    Failure::new(format!("debug: {standing}"))
}

fn usable(standing: &Standing) -> Result<(&Path, &Path, Source), Failure> {
    standing.usable().ok_or_else(|| refusal(standing))
}

async fn common(seat: &Seat, definition: &AdapterDefinition, root: &Path) -> Values {
    let mut values = Values::new();
    if definition.executables {
        let (programs, launch) = (&seat.languages.programs, &*seat.launch);
        let found = seat.adapters.sysroots.formatters(programs, launch, root, &seat.env).await;
        if let Some(folder) = found {
            values.insert("rust_formatters", json!(folder));
        }
    }
    values
}

/// Finds what runs the program: the project's own interpreter, whether it has the
/// adapter or not, since only the adapter's must.
async fn debuggee_interpreter(
    seat: &Seat,
    definition: &AdapterDefinition,
    root: &Path,
    (adapter, source): (&Path, Source),
) -> PathBuf {
    if source == Source::Project {
        return adapter.to_owned();
    }
    let search = Search {
        names: &definition.binaries,
        root,
        project_folders: &definition.project_folders,
        env: &seat.env,
        installed: &[],
        probe: None,
    };
    let found = seat.languages.programs.find(search).await;
    found.map_or_else(|_| adapter.to_owned(), |found| found.path)
}

fn process(
    seat: &Seat,
    definition: &AdapterDefinition,
    root: &Path,
    adapter: &Path,
) -> AdapterProcess {
    let taken =
        |name: &OsString| name.to_str().is_some_and(|name| definition.env.contains_key(name));
    let given = seat.env.iter().filter(|(name, _)| !taken(name) && !is_ours(name)).cloned();
    let own = definition.env.iter().map(|(name, value)| (name.into(), value.into()));
    AdapterProcess {
        program: adapter.to_owned(),
        args: definition.args.iter().map(OsString::from).collect(),
        env: given.chain(own).collect(),
        cwd: root.to_owned(),
    }
}

/// Is this a credential of the host, or a setting of it. A debuggee's environment can be
/// read by any expression, and ends in a transcript.
fn is_ours(name: &OsString) -> bool {
    const BEGINNINGS: [&str; 3] = ["HOSTLER_", "ANTHROPIC_", "OPENAI_"];
    name.to_str().is_some_and(|name| BEGINNINGS.iter().any(|begin| name.starts_with(begin)))
}

struct Parts {
    reach: Reach,
    kind: Kind,
    arguments: Value,
    stop_on_entry: bool,
    guard: Option<Guard>,
    shown: String,
}

fn spec(seat: &Seat, name: &str, definition: &AdapterDefinition, parts: Parts) -> SessionSpec {
    let limits = &seat.languages.config.debug;
    let handshake = match parts.reach {
        Reach::Listens(_) => LISTENER_HANDSHAKE,
        _ => HANDSHAKE.max(definition.start_deadline.unwrap_or_default() / 2),
    };
    SessionSpec {
        adapter: name.to_owned(),
        adapter_id: definition.adapter_id.clone().unwrap_or_else(|| name.to_owned()),
        what: parts.shown,
        reach: parts.reach,
        kind: parts.kind,
        arguments: parts.arguments,
        distrust: definition.distrust.clone(),
        not_variables: definition.not_variables.clone(),
        exit_line: definition.exit_line.clone(),
        stop_on_entry: parts.stop_on_entry,
        entry_function: definition.entry_function.clone(),
        resume_on_detach: definition.resume_on_detach,
        builds: definition.builds,
        bounds: Bounds {
            ttl: limits.ttl,
            start: definition.start_deadline.unwrap_or(limits.start),
            initialize: handshake,
            request: limits.request,
            disconnect: DISCONNECT,
        },
        guard: parts.guard,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_credentials_are_known() {
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "HOSTLER_DATA", "HOSTLER_TOKEN"] {
            assert!(is_ours(&name.into()), "{name}");
        }
        for name in ["PATH", "DATABASE_URL", "OPENAI"] {
            assert!(!is_ours(&name.into()), "{name}");
        }
    }
}
