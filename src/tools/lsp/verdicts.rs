//! The verdict on one file: every error and warning in it.
//!
//! A server that is not done within the bound is waited for in the background, as
//! after a write. What is told here the ledger knows, so that no later write tells
//! it again.

use std::sync::Arc;
use std::time::Duration;

use hostler_actors::host::language_server::documents::Document;
use hostler_actors::host::workspace::space::conversation::run::language_session::wait::{
    Baseline, Settled, Target, Wait,
};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::asking::Subject;
use crate::diagnostics::findings::{Cap, Freshness, capped, counted, detail, fresh_by, line, note};
use crate::diagnostics::judgement::{Judgement, Watched, judge};
use crate::folder::disk::cancelled;
use crate::seat::Seat;
use crate::servers::Server;
use crate::tools::{Cancel, Failure, Outcome, Output};

/// How many findings are shown.
const CAP: Cap = Cap { files: 1, items: 100 };
/// How long a verdict is waited for beyond the call.
const BEYOND: Duration = Duration::from_secs(12);

/// Tells every error and warning in a file.
pub(super) async fn of_file(seat: &Seat, cancel: &Cancel, given: &str) -> Outcome {
    let subject = Subject::find(seat, given).await?;
    let document = subject.read(seat).await?;
    let session = &seat.languages.session;
    let (mut found, mut standings) = (Vec::new(), Vec::new());
    let (mut pending, mut reasons) = (Vec::new(), subject.serving.lacking.clone());
    for (server, judgement) in judged(seat, &subject, &document, cancel).await {
        if cancel.is_cancelled() && !matches!(judgement, Judgement::Fresh(_)) {
            return Err(cancelled("lsp", "nothing was changed"));
        }
        note(&mut standings, judgement.standing(server.name()));
        match judgement {
            Judgement::Fresh(findings) => {
                let target = Target { server: server.name(), path: Arc::clone(&document.path) };
                session.told(target, findings.clone()).await?;
                found.extend(findings);
            }
            Judgement::Pending(reason) => {
                go_on(seat, &subject, &server).await?;
                pending.push(reason);
            }
            Judgement::NoServer(reason) => reasons.push(reason),
        }
    }
    let is_fresh = standings.iter().any(|standing| standing.freshness == Freshness::Fresh);
    let freshness = match (pending.is_empty(), is_fresh) {
        (false, _) => Freshness::StillAnalysing,
        (true, false) => Freshness::NoServer,
        (true, true) => Freshness::Fresh,
    };
    let name = subject.file.name();
    let counts = counted(found.iter().map(|finding| (finding, 1)));
    let mut lines = Vec::new();
    match freshness {
        Freshness::StillAnalysing => lines.push(format!(
            "{name}: still analysing ({}); what comes of it is added to a later result",
            pending.join("; ")
        )),
        Freshness::NoServer => lines.push(format!("{name}: no server: {}", reasons.join("; "))),
        Freshness::Fresh | Freshness::Unknown => {}
    }
    if is_fresh {
        lines.push(format!("{name}: {}: {counts}", fresh_by(&standings)));
    }
    let total = found.len();
    let (kept, cut) = capped(found, CAP, |finding| finding, None);
    let folder = seat.folder.root();
    lines.extend(kept.iter().map(|finding| line(folder, finding)));
    lines.extend(cut);
    let items: Vec<_> = kept.iter().map(|finding| detail(folder, finding)).collect();
    let cautions: Vec<_> = subject.serving.servers.iter().filter_map(Server::caution).collect();
    lines.extend(cautions.iter().map(|caution| format!("({caution})")));
    reasons.extend(pending.into_iter().chain(cautions));
    let details = json!({
        "action": "diagnostics", "file": name, "freshness": freshness, "diagnostics": items,
        "total": total, "shown": items.len(), "reasons": reasons,
        "servers": standings,
    });
    Ok(Output::text(lines.join("\n"), details))
}

/// Asks all servers at once, so that a slow one does not keep the others' verdicts
/// back. They stay in their order.
async fn judged(
    seat: &Seat,
    subject: &Subject,
    document: &Document,
    cancel: &Cancel,
) -> Vec<(Server, Judgement)> {
    let within = seat.languages.request_bound();
    let mut asked = JoinSet::new();
    for (at, server) in subject.serving.servers.iter().cloned().enumerate() {
        let (document, cancel) = (document.clone(), cancel.clone());
        asked.spawn(async move {
            let judgement = judge(&server, &document, false, within, &cancel).await;
            (at, server, judgement)
        });
    }
    let mut judged = asked.join_all().await;
    judged.sort_by_key(|(at, ..)| *at);
    judged.into_iter().map(|(_, server, judgement)| (server, judgement)).collect()
}

async fn go_on(seat: &Seat, subject: &Subject, server: &Server) -> Result<(), Failure> {
    let watched = Watched { server: server.clone(), file: subject.file.clone(), only_if: None };
    let (folder, target) = (seat.folder.clone(), watched.target());
    // Nothing counts as known before, so that all of it is told.
    let baseline = Baseline { target: target.clone(), before: Some(Vec::new()), lines: None };
    let until = Instant::now() + BEYOND;
    let verdicts = async move {
        let after = watched.settled(&folder, until).await;
        // Nobody is charged with anything.
        let settled = |after| Settled { target: target.clone(), after, theirs: false };
        after.into_iter().map(settled).collect()
    };
    let wait = Wait {
        of: format!("lsp diagnostics {}", subject.file.name()).into(),
        baselines: vec![baseline],
        verdicts: Box::pin(verdicts),
        within: BEYOND + Duration::from_secs(1),
    };
    Ok(seat.languages.session.go_on(wait).await?)
}
