//! What a run without a conversation has of interpreters, for the tests of tools.

use std::sync::Arc;

use hostler_actors::host::workspace::space::conversation::run::interpreter::cell::Bridge;
use hostler_actors::host::workspace::space::conversation::run::interpreter::protocol::Bridged;
use hostler_actors::ports::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Interpreters;

/// Makes it: the run is over.
pub(crate) fn none() -> Interpreters {
    Interpreters::new(Arc::new(|_| Box::pin(async { None })), Arc::new(Nothing))
}

struct Nothing;

impl Bridge for Nothing {
    fn call(&self, _: String, _: Value, _: CancellationToken) -> BoxFuture<'static, Bridged> {
        let text = "there is no turn".to_owned();
        Box::pin(async move { Bridged::Error { kind: "failed", text, details: Value::Null } })
    }
}
