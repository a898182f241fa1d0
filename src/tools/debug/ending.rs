//! The session that an operation needs, and `terminate`.

use std::sync::Arc;

use hostler_actors::host::workspace::space::conversation::debug_session::desk::Desk;
use hostler_actors::host::workspace::space::conversation::debug_session::session::{
    Session, Standing,
};
use serde_json::json;

use super::stops;
use crate::tools::{Failure, Outcome, Output};

/// Returns the live session, or says why there is none.
pub(super) fn session(desk: &Desk) -> Result<Arc<Session>, Failure> {
    let Some(session) = desk.latest() else {
        return Err(Failure::new("debug: there is no debug session: `launch` a program first"));
    };
    match session.standing() {
        Standing::Over(_) | Standing::Ending(_) => Err(Failure {
            message: format!(
                "debug: there is no debug session: {}; its output can still be read, and `launch` \
                 begins a new one with the same breakpoints",
                stops::ended(&session).text
            ),
            details: json!({ "state": "over", "exit_code": session.exit_code() }),
        }),
        _ => Ok(session),
    }
}

/// Ends the session.
pub(super) async fn terminate(desk: &Desk) -> Outcome {
    let session = session(desk)?;
    desk.terminate(&session).await;
    let spec = &session.spec;
    let text = if session.is_attached() {
        format!("{}: detached; the program goes on without us", spec.what)
    } else {
        format!("{}: ended, and every process of it is gone", spec.what)
    };
    let place = session.last_place().map(|place| format!("; it last stood at {place}"));
    let text = format!("{text}{}", place.unwrap_or_default());
    Ok(Output::text(text, json!({ "state": "over", "attached": session.is_attached() })))
}
