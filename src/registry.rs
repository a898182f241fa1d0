//! The tools as the tree sees them: one seat per run, made at its first call.
//!
//! An idle run has no seat, so it holds no descriptor and no folder.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hostler_actors::ids::RunId;
use hostler_actors::ports::{BoxFuture, Owner, RunSpec, Surface, ToolCall, ToolResult, Tools};
use hostler_actors::profile::Profile;
use serde_json::{Value, json};

use crate::commons::Commons;
use crate::launch::Launcher;
use crate::seat::Seat;
use crate::surface::{Wiring, materialise};
use crate::tools;

/// How long what a run left behind may take to end before it is killed:
/// `spec/host.md`, 5 s a resource.
const LEFTOVERS: Duration = Duration::from_secs(5);

/// Everything is wired: a session has a folder and a conversation, and the host its
/// servers.
const WIRING: Wiring = Wiring {
    folder: true,
    trees: true,
    language_servers: true,
    debug_sessions: true,
    interpreters: true,
};

/// Serves the tree's calls. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Registry {
    commons: Arc<Commons>,
    launcher: Launcher,
    seats: Arc<Mutex<HashMap<RunId, Arc<Seat>>>>,
}

impl Registry {
    /// Starts without seats.
    pub(crate) fn new(commons: Arc<Commons>, launcher: Launcher) -> Self {
        Self { commons, launcher, seats: Arc::default() }
    }

    fn seat(&self, call: &ToolCall) -> Result<Arc<Seat>, ToolResult> {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seat) = seats.get(&call.spec.id) {
            return Ok(Arc::clone(seat));
        }
        let seat = self
            .commons
            .seat(call)
            .map_err(|error| ToolResult::error(error.to_string(), json!({})))?;
        let seat = Arc::new(seat);
        seats.insert(call.spec.id, Arc::clone(&seat));
        Ok(seat)
    }
}

impl Tools for Registry {
    fn surface(&self, run: &RunSpec, profile: &Arc<Profile>) -> Surface {
        materialise(profile, WIRING, &run.folder)
    }

    fn lanes(&self, tool: &str, arguments: &Value) -> Vec<String> {
        tools::lanes(tool, arguments)
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, ToolResult> {
        let registry = self.clone();
        Box::pin(async move {
            match registry.seat(&call) {
                Ok(seat) => tools::call(&seat, call).await,
                Err(refused) => refused,
            }
        })
    }

    fn run_ended(&self, run: RunId) -> BoxFuture<'static, ()> {
        let seat = {
            let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
            let seat = seats.remove(&run);
            if seats.is_empty() {
                self.commons.no_run_is_left();
            }
            seat
        };
        let launcher = self.launcher.clone();
        Box::pin(async move {
            if let Some(seat) = &seat {
                seat.background.end().await;
            }
            let closed = launcher.end_owner(Owner::Run(run), LEFTOVERS).await;
            for label in closed.unproved {
                tracing::error!(%run, "{label}: killed, and not proved to be gone");
            }
            drop(seat);
        })
    }
}
