//! The sign by which a verdict is final: one look at it, by the recipe.
//!
//! Requests whose answer is the sign (a pull, tsserver's commands) are made here, one
//! at a time per document, so that runs which want the same share the answer. All
//! else is read from what the server said, and at most fenced by one request more.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::fences::HANGS;
use super::{Wait, tsserver};
use crate::host::language_server::LanguageServerMsg;
use crate::host::language_server::diagnostics::{Findings, Report};
use crate::host::language_server::documents::lock;
use crate::host::language_server::lease::{Lease, LiveServer, Stopped, call};
use crate::host::language_server::observed::{Settled, Subject};
use crate::host::language_server::registrations::DIAGNOSTIC;
use crate::host::language_server::running::Synced;
use crate::host::language_server::spec::Recipe;
use crate::host::language_server::uri;

/// After an answer that says nothing, how long until the question is put again.
const REPEAT: Duration = Duration::from_millis(200);

/// What one look came to.
pub(super) enum Sign {
    /// Another run has proved just this meanwhile.
    Kept(Arc<Findings>),
    /// This is final.
    Final(Report),
    /// More came while it was looked at.
    Again,
    /// Nothing before then, if nothing more comes.
    At(Instant, &'static str),
    /// Nothing before the server says more.
    No(&'static str),
}

impl Lease {
    /// Looks once.
    pub(super) async fn sign(
        &self,
        live: &LiveServer,
        path: &Path,
        synced: &Synced,
        wait: &mut Wait,
    ) -> Result<Sign, Stopped> {
        match self.spec.recipe {
            Recipe::TsserverSync => self.by_answer(live, path, synced, wait).await,
            Recipe::Pull | Recipe::VersionedPush | Recipe::Push if !synced.pull.is_empty() => {
                self.by_answer(live, path, synced, wait).await
            }
            _ => {
                wait.reason = "it has not answered about the file yet".to_owned();
                self.by_what_it_said(live, path, synced).await
            }
        }
    }

    /// Asks for the verdict itself.
    async fn by_answer(
        &self,
        live: &LiveServer,
        path: &Path,
        synced: &Synced,
        wait: &mut Wait,
    ) -> Result<Sign, Stopped> {
        let asking = lock(&self.documents).asking(path);
        let _asking = match &asking {
            Some(asking) => Some(asking.lock().await),
            None => None,
        };
        // Another run may have asked the same meanwhile.
        let proof = synced.about.as_ref().map(|about| about.proof);
        if let Some(kept) = proof.and_then(|proof| self.kept(path, proof)) {
            return Ok(Sign::Kept(kept));
        }
        wait.reason = "it has not answered yet".to_owned();
        if self.spec.recipe == Recipe::TsserverSync {
            let items = tsserver::ask(live, path).await?;
            let report = items.map(|items| Report { items, related: Vec::new() });
            let later = Sign::At(Instant::now() + REPEAT, "tsserver gave no diagnostics");
            return Ok(report.map_or(later, Sign::Final));
        }
        match pull(live, path, synced).await? {
            Some(report) => Ok(Sign::Final(report)),
            None => self.by_what_it_said(live, path, synced).await,
        }
    }

    /// Looks at what the server has said.
    async fn by_what_it_said(
        &self,
        live: &LiveServer,
        path: &Path,
        synced: &Synced,
    ) -> Result<Sign, Stopped> {
        let Some(about) = &synced.about else { return Ok(Sign::Again) };
        let subject = Subject {
            recipe: self.spec.recipe,
            path,
            version: about.version,
            since: about.changed_at.max(synced.moved_at),
            checked_at: synced.checked_at,
            outdated: synced.outdated,
        };
        let mut settled = live.facts.observed.borrow().settled(Instant::now(), &subject);
        if let Settled::Fenced(mark) = settled {
            match self.spec.recipe {
                Recipe::FileStatus => self.file_fence(live, path, mark, &subject).await?,
                _ => fence(live, path, self.spec.recipe).await?,
            }
            match live.facts.observed.borrow().past_fence(mark, &subject) {
                Some(past) => settled = past,
                None => return Ok(Sign::Again),
            }
        }
        Ok(match settled {
            Settled::Yes(items) => {
                let mut report = Report { items, related: Vec::new() };
                if self.spec.recipe == Recipe::Flycheck {
                    match pull(live, path, synced).await? {
                        Some(pulled) => report.add_unknown(pulled),
                        None if synced.pull.is_empty() => {}
                        None => return Ok(Sign::At(Instant::now() + REPEAT, "it gave no report")),
                    }
                }
                Sign::Final(report)
            }
            Settled::Fenced(_) => Sign::Again,
            Settled::Never(reason) => return Err(Stopped::Unfit(reason)),
            Settled::At(at, reason) => Sign::At(at, reason),
            Settled::No(reason) => Sign::No(reason),
        })
    }
}

impl Lease {
    /// Fences a file of which the server says that it is done with it. One that neither
    /// answers nor says more of the file, over however many questions, hangs.
    async fn file_fence(
        &self,
        live: &LiveServer,
        path: &Path,
        mark: u64,
        subject: &Subject<'_>,
    ) -> Result<(), Stopped> {
        let asking = live.facts.fences.ask(path, mark);
        if let Ok(answered) = timeout(asking.left(), fence(live, path, Recipe::FileStatus)).await {
            asking.answered();
            return answered;
        }
        if live.facts.observed.borrow().past_fence(mark, subject).is_some() {
            let path = path.display();
            let reason = format!("hangs: is idle, and for {HANGS:?} answered nothing about {path}");
            let _ = live.actor.cast(LanguageServerMsg::Broken(reason));
            return Err(Stopped::Died);
        }
        Ok(())
    }
}

/// Pulls under every identifier, one after the other. `None` where one gave no full
/// report.
async fn pull(live: &LiveServer, path: &Path, synced: &Synced) -> Result<Option<Report>, Stopped> {
    let mut merged = Report::default();
    for identifier in &synced.pull {
        let params =
            || json!({ "textDocument": { "uri": uri::of_path(path) }, "identifier": identifier });
        let raw = call(live, DIAGNOSTIC, params).await?;
        let answer: Option<Value> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
        match answer.as_ref().and_then(Report::read) {
            Some(report) => merged.merge(report),
            None => return Ok(None),
        }
    }
    Ok((!synced.pull.is_empty()).then_some(merged))
}

/// Returns when the server has answered one more request, whatever it answers.
async fn fence(live: &LiveServer, path: &Path, recipe: Recipe) -> Result<(), Stopped> {
    let method = match recipe {
        // It waits for the build of this very file, and ends clangd's own debounce.
        Recipe::FileStatus => "textDocument/documentSymbol",
        _ => "hostler/ping",
    };
    let params = || match recipe {
        Recipe::FileStatus => json!({ "textDocument": { "uri": uri::of_path(path) } }),
        _ => Value::Null,
    };
    match call(live, method, params).await {
        Ok(_) | Err(Stopped::Refused(_)) => Ok(()),
        Err(stopped) => Err(stopped),
    }
}
