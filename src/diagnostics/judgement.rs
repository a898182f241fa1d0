//! One server's verdict on one file, in the words of the ledger.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hostler_actors::host::language_server::diagnostics::Verdict;
use hostler_actors::host::language_server::documents::{Document, TextHash};
use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::Finding;
use hostler_actors::host::workspace::space::conversation::run::language_session::wait::Target;
use tokio::time::{Instant, sleep};

use super::documents;
use super::findings::{Freshness, Standing, findings};
use crate::folder::{Folder, Inside};
use crate::servers::Server;
use crate::tools::Cancel;

/// The pause before a server is asked again that answered early that it had no
/// verdict.
const AGAIN: Duration = Duration::from_millis(50);

/// What is known of a file.
#[derive(Clone, Debug)]
pub(crate) enum Judgement {
    /// All that is found in exactly this text.
    Fresh(Vec<Finding>),
    /// There is no verdict yet, and why.
    Pending(String),
    /// There is no server to give one, and why.
    NoServer(String),
}

impl Judgement {
    /// Returns what it says of its server.
    pub(crate) fn standing(&self, server: Arc<str>) -> Standing {
        let (freshness, reason) = match self {
            Self::Fresh(_) => (Freshness::Fresh, None),
            Self::Pending(reason) => (Freshness::StillAnalysing, Some(reason.clone())),
            Self::NoServer(reason) => (Freshness::NoServer, Some(reason.clone())),
        };
        Standing { server, freshness, reason }
    }
}

/// Asks a server for its verdict on a document.
pub(crate) async fn judge(
    server: &Server,
    document: &Document,
    saved: bool,
    within: Duration,
    cancel: &Cancel,
) -> Judgement {
    let name = server.name();
    let document = Document { language_id: Arc::clone(&server.language_id), ..document.clone() };
    match server.held.server.verdict(&document, saved, within, cancel).await {
        Verdict::Fresh(found) => Judgement::Fresh(findings(&name, &document, &found)),
        Verdict::StillAnalysing { reason, .. } | Verdict::Unknown { reason, .. } => {
            Judgement::Pending(format!("{name}: {reason}"))
        }
        Verdict::NoServer { reason } => Judgement::NoServer(format!("{name}: {reason}")),
    }
}

/// The same for a text that may have been judged already: then nothing is asked.
pub(crate) async fn judge_before(
    server: &Server,
    document: &Document,
    within: Duration,
    cancel: &Cancel,
) -> Judgement {
    match server.held.server.last_verdict(&document.path) {
        Some(found) if found.proof.hash == document.hash => {
            Judgement::Fresh(findings(&server.name(), document, &found))
        }
        _ => judge(server, document, false, within, cancel).await,
    }
}

/// A file that a server is asked about.
#[derive(Clone)]
pub(crate) struct Watched {
    /// The server.
    pub(crate) server: Server,
    /// The file.
    pub(crate) file: Inside,
    /// The text that was there before: an error in a text that somebody else has
    /// changed since is not this run's. Not set for what the run itself wrote.
    pub(crate) only_if: Option<TextHash>,
}

impl Watched {
    /// Returns the key of its entries in the ledger.
    pub(crate) fn target(&self) -> Target {
        Target { server: self.server.name(), path: Arc::<Path>::from(self.file.absolute()) }
    }

    /// Waits for a verdict on the file as it is, asking again until `until`. `None`
    /// where somebody else has changed it.
    pub(crate) async fn settled(
        &self,
        folder: &Folder,
        until: Instant,
    ) -> Option<Result<Vec<Finding>, String>> {
        let cancel = Cancel::new();
        loop {
            let read = documents::read(folder, &self.file, &self.server.language_id).await;
            let document = match read {
                Ok(document) => document,
                Err(error) if error.is_missing() => return None,
                Err(error) => return Some(Err(error.to_string())),
            };
            if self.only_if.is_some_and(|hash| hash != document.hash) {
                return None;
            }
            let left = until.saturating_duration_since(Instant::now());
            let reason = match judge(&self.server, &document, false, left, &cancel).await {
                Judgement::Fresh(found) => return Some(Ok(found)),
                Judgement::Pending(reason) | Judgement::NoServer(reason) => reason,
            };
            if Instant::now() + AGAIN >= until {
                return Some(Err(reason));
            }
            sleep(AGAIN).await;
        }
    }
}
