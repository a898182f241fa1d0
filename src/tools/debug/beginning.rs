//! `launch` and `attach`.

use std::sync::Arc;

use hostler_actors::host::workspace::space::conversation::debug_session::desk::{Desk, NotBegun};
use hostler_actors::host::workspace::space::conversation::debug_session::session::{
    Session, Standing,
};
use hostler_actors::host::workspace::space::conversation::debug_session::spec::SessionSpec;
use serde_json::json;

use super::arguments::{Args, needed};
use super::looking::state;
use super::{stops, wait};
use crate::adapters::order::{self, Wanted};
use crate::adapters::{self, program};
use crate::config::adapters::AdapterDefinition;
use crate::seat::Seat;
use crate::tools::{Failure, Outcome};

/// Starts a program, stopped at the breakpoints.
pub(super) async fn launch(seat: &Seat, desk: &Desk, args: &Args) -> Outcome {
    refuse_second(seat, desk)?;
    let given = args.program.as_deref().filter(|program| !program.trim().is_empty());
    let given = needed(given, "launch", "program")?;
    let wait = wait(seat, args)?;
    let program = program::resolve(seat, given, &args.args, args.adapter.as_deref()).await?;
    let standing =
        adapters::for_folder(seat, program.adapter, program.definition, &program.folder).await;
    let cwd = args.cwd.as_ref().map(|cwd| seat.folder.root().join(cwd));
    if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        return Err(Failure::new(format!("debug: {}: not a folder", cwd.display())));
    }
    let wanted = Wanted { args: args.args.clone(), cwd, stop_on_entry: args.stop_on_entry };
    let spec = order::launch(seat, &program, &standing, &wanted, given.to_owned()).await?;
    let session = begin(seat, desk, spec).await?;
    let came = session.started(wait).await;
    stops::told(seat, &session, came, &program.notes)
}

/// Attaches to a program that runs.
pub(super) async fn attach(seat: &Seat, desk: &Desk, args: &Args) -> Outcome {
    refuse_second(seat, desk)?;
    let port = needed(args.port, "attach", "port")?.0;
    let port = u16::try_from(port)
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| Failure::new(format!("debug: {port} is no port: 1 to 65535 are")))?;
    let wait = wait(seat, args)?;
    let (name, definition) = which(seat, args).await?;
    let standing = adapters::for_folder(seat, name, definition, seat.folder.root()).await;
    let standing = match standing.root {
        Ok(_) => standing,
        // The project may lie further down.
        Err(_) => {
            let all = adapters::all(seat).await;
            all.into_iter().find(|other| other.name == name).unwrap_or(standing)
        }
    };
    let program = args.program.as_ref().map(|program| seat.folder.root().join(program));
    let spec = order::attach(seat, name, definition, &standing, (port, program)).await?;
    let session = begin(seat, desk, spec).await?;
    let came = session.started(wait).await;
    stops::told(seat, &session, came, &[])
}

/// Finds the adapter for a port: the one that was named, or the only one with a root.
async fn which<'a>(
    seat: &'a Seat,
    args: &Args,
) -> Result<(&'a str, &'a AdapterDefinition), Failure> {
    if let Some(name) = &args.adapter {
        return program::by_name(seat, name);
    }
    let standings = adapters::all(seat).await;
    let mut rooted: Vec<_> = standings.iter().filter(|standing| standing.root.is_ok()).collect();
    rooted.dedup_by_key(|standing| standing.name.clone());
    match rooted.as_slice() {
        [one] => program::by_name(seat, &one.name),
        [] => {
            let why: Vec<_> = standings.iter().map(ToString::to_string).collect();
            Err(Failure::new(format!("debug: no adapter fits this folder:\n{}", why.join("\n"))))
        }
        several => {
            let names: Vec<_> = several.iter().map(|standing| standing.name.as_str()).collect();
            Err(Failure::new(format!(
                "debug: a port does not say what listens on it, and several adapters fit this \
                 folder: give `adapter`, one of {}",
                names.join(", ")
            )))
        }
    }
}

async fn begin(seat: &Seat, desk: &Desk, spec: SessionSpec) -> Result<Arc<Session>, Failure> {
    match desk.begin(spec).await {
        Ok(session) => Ok(session),
        Err(NotBegun::Occupied(session)) => Err(occupied(seat, &session)),
        Err(gone @ NotBegun::Gone) => Err(gone.into()),
    }
}

/// Refuses early what would be refused in the end, before anything is looked for.
fn refuse_second(seat: &Seat, desk: &Desk) -> Result<(), Failure> {
    match desk.latest() {
        Some(session) if !matches!(session.standing(), Standing::Over(_) | Standing::Ending(_)) => {
            Err(occupied(seat, &session))
        }
        _ => Ok(()),
    }
}

fn occupied(seat: &Seat, session: &Session) -> Failure {
    let standing = session.standing();
    let spec = &session.spec;
    let at = match (&standing, session.present_place()) {
        (Standing::Stopped(reason), Some(place)) => {
            format!("stopped ({reason}) at {}", stops::words(seat, &place))
        }
        (Standing::Starting(step), _) => format!("starting: {step}"),
        _ => state(&standing).to_owned(),
    };
    Failure {
        message: format!(
            "debug: there is a session already: {} of {}, {at}, {} s old and for another {} s; \
             `terminate` ends it",
            spec.adapter,
            spec.what,
            session.age().as_secs(),
            session.time_left().as_secs()
        ),
        details: json!({ "state": state(&standing), "program": spec.what,
            "seconds_left": session.time_left().as_secs() }),
    }
}
