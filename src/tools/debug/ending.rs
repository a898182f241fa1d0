//! The session that an operation needs, and `terminate`.

use std::sync::Arc;

use hostler_actors::host::workspace::space::conversation::debug_session::desk::Desk;
use hostler_actors::host::workspace::space::conversation::debug_session::session::{
    Session, Standing,
};
use serde_json::json;

use super::stops;
use crate::seat::Seat;
use crate::tools::{Failure, Outcome, Output};

/// Returns the live session, or says why there is none.
pub(super) fn session(seat: &Seat, desk: &Desk) -> Result<Arc<Session>, Failure> {
    let Some(session) = desk.latest() else {
        return Err(Failure::new("debug: there is no debug session: `launch` a program first"));
    };
    match session.standing() {
        Standing::Over(_) | Standing::Ending(_) => Err(Failure {
            message: format!(
                "debug: there is no debug session: {}; its output can still be read, and `launch` \
                 begins a new one with the same breakpoints",
                stops::ended(seat, &session).text
            ),
            details: json!({ "state": "over", "exit_code": session.exit_code() }),
        }),
        _ => Ok(session),
    }
}

/// Ends the session.
pub(super) async fn terminate(seat: &Seat, desk: &Desk) -> Outcome {
    let session = session(seat, desk)?;
    desk.terminate(&session).await;
    let spec = &session.spec;
    let text = if session.is_attached() {
        format!("{}: detached; the program goes on without us", spec.what)
    } else {
        format!("{}: ended, and every process of it is gone", spec.what)
    };
    let text = format!("{text}{}", stops::last_stood(seat, &session));
    Ok(Output::text(text, json!({ "state": "over", "attached": session.is_attached() })))
}
