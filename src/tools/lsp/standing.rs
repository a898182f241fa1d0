//! Which servers run and which cannot and why, and their restart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;

use crate::diagnostics::details::with;
use crate::diagnostics::documents::shown;
use crate::seat::Seat;
use crate::servers::{Server, Viewpoint};
use crate::tools::{Failure, Outcome, Output};

/// Says how every server stands for this folder.
pub(super) async fn status(seat: &Seat) -> Outcome {
    let top = seat.folder.root();
    let (mut lines, mut servers) = (Vec::new(), Vec::new());
    let mut passed_over: BTreeMap<Arc<str>, BTreeSet<Arc<str>>> = BTreeMap::new();
    for detected in seat.languages.for_folder(Viewpoint::of(seat)).await {
        let detail = json!({
            "name": detected.name,
            "root": detected.root.as_ref().ok().map(|root| shown_root(top, root)),
            "program": detected.program.as_ref().ok(),
            "no_root": detected.root.as_ref().err(),
            "no_program": detected.program.as_ref().err(),
        });
        let state = match seat.languages.leased(&detected).await? {
            Ok(server) => {
                let view = server.held.server.view();
                let (name, phase) = (&detected.name, view.phase.word());
                let last = view.last_error.as_ref();
                let last = last.map_or_else(String::new, |why| format!(", last error: {why}"));
                lines.push(format!("{name}: {phase} {}{last}", started(&server)));
                json!({
                    "state": phase, "incarnation": view.incarnation, "last_error": view.last_error,
                })
            }
            Err(_) if let Some(rival) = &detected.rival => {
                let names = passed_over.entry(Arc::clone(rival)).or_default();
                names.insert(Arc::clone(&detected.name));
                json!({ "state": "passed over", "passed_over_for": rival })
            }
            Err(why) => {
                lines.push(why);
                json!({ "state": "cannot start" })
            }
        };
        servers.push(with(detail, state));
    }
    lines.extend(passed_over.iter().map(|(rival, names)| {
        let names: Vec<_> = names.iter().map(|name| &**name).collect();
        format!(
            "passed over, as {rival} does the same (`language_servers.prefer` puts one before it): {}",
            names.join(", ")
        )
    }));
    if lines.is_empty() {
        lines.push(seat.languages.none_for_folder(Viewpoint::of(seat)).await);
    }
    Ok(Output::text(lines.join("\n"), json!({ "action": "status", "servers": servers })))
}

fn started(server: &Server) -> String {
    let (spec, view) = (&server.held.spec, server.held.server.view());
    let incarnation = match view.incarnation.0 {
        0 => "not started yet".to_owned(),
        1 => "first start".to_owned(),
        count => format!("start {count}"),
    };
    format!("({incarnation}), root {}, program {}", spec.root.display(), spec.program.display())
}

fn shown_root(top: &std::path::Path, root: &std::path::Path) -> String {
    match shown(top, root) {
        same if same.is_empty() => ".".to_owned(),
        below => below,
    }
}

/// Starts fresh processes of every server that can be used in this folder.
pub(super) async fn reload(seat: &Seat) -> Outcome {
    let (servers, lacking) = super::listing::everywhere(seat).await?;
    if servers.is_empty() {
        return Err(Failure {
            message: format!("lsp reload: there is nothing to restart: {}", lacking.join("; ")),
            details: json!({ "reasons": lacking }),
        });
    }
    let mut lines = Vec::new();
    for server in &servers {
        server.held.server.reload();
        lines.push(format!(
            "{}: restarting for every run on {}; the next call waits for it",
            server.name(),
            server.held.spec.root.display()
        ));
    }
    let names: Vec<_> = servers.iter().map(Server::name).collect();
    Ok(Output::text(lines.join("\n"), json!({ "action": "reload", "restarted": names })))
}
