//! The signals that end a command, as a token.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Returns a token that SIGTERM, SIGINT and SIGHUP cancel.
pub(crate) fn stop() -> CancellationToken {
    let stop = CancellationToken::new();
    stop_on_signal(&stop);
    stop
}

/// Cancels a token at SIGTERM, SIGINT and SIGHUP: a terminal that goes away ends
/// what it started.
pub(crate) fn stop_on_signal(stop: &CancellationToken) {
    stop_on(&[SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()], stop);
}

/// Cancels a token at any of these signals.
pub(crate) fn stop_on(kinds: &[SignalKind], stop: &CancellationToken) {
    for kind in kinds {
        let stop = stop.clone();
        match signal(*kind) {
            Ok(mut signals) => {
                tokio::spawn(async move {
                    signals.recv().await;
                    stop.cancel();
                });
            }
            Err(error) => tracing::error!("a signal cannot be caught: {error}"),
        }
    }
}
