//! A verdict on a file: asked for, waited for, kept.
//!
//! By which sign it is final is the recipe's. It counts only if the incarnation, the
//! text and everything else known to have changed are still those that were asked
//! about.

pub(super) mod fences;
mod sign;
mod tsserver;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::diagnostics::{Diagnostic, Findings, Proof, Report, Verdict};
use super::documents::{Document, lock};
use super::lease::{Lease, LiveServer, Stopped, has_reread};
use crate::ids::Incarnation;
use crate::supervise::handle::Unavailable;
use sign::Sign;

/// How a wait for a verdict goes.
struct Wait {
    about: Option<Proof>,
    reason: String,
}

impl Lease {
    /// Returns what the server has to say of a file. `saved` says that the caller
    /// has just written it.
    pub async fn verdict(
        &self,
        document: &Document,
        saved: bool,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Verdict {
        let asked = Instant::now();
        let mut wait = Wait { about: None, reason: "it has not started".to_owned() };
        let bounded =
            timeout_at(asked + within, self.proved(document, saved, asked + within, &mut wait));
        let proved = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            proved = bounded => Some(proved),
        };
        match proved {
            Some(Ok(verdict)) => verdict,
            Some(Err(_)) => {
                let doing = self.unanswered(asked);
                let reason = doing.map_or(wait.reason, |doing| doing.to_string());
                Verdict::StillAnalysing { reason, waited: asked.elapsed(), about: wait.about }
            }
            None => Verdict::Unknown { reason: "cancelled".to_owned(), about: wait.about },
        }
    }

    async fn proved(
        &self,
        document: &Document,
        saved: bool,
        until: Instant,
        wait: &mut Wait,
    ) -> Verdict {
        let asked = Instant::now();
        let mut dead = Incarnation::default();
        loop {
            let live = match self.slot.live_after(dead, until).await {
                Ok(live) => live,
                Err(Unavailable::StillStarting { .. }) => {
                    let reason = "it is still starting".to_owned();
                    return Verdict::StillAnalysing {
                        reason,
                        waited: asked.elapsed(),
                        about: None,
                    };
                }
                Err(why) => return Verdict::NoServer { reason: why.to_string() },
            };
            match self.judged(&live, document, saved, wait).await {
                Ok(findings) => return Verdict::Fresh(findings),
                Err(Stopped::Died) if dead == Incarnation::default() => dead = live.incarnation,
                Err(stopped) => {
                    let reason = match stopped {
                        Stopped::Died => "it died twice while it was asked".to_owned(),
                        Stopped::Superseded => "the file has changed meanwhile".to_owned(),
                        Stopped::Refused(refusal) => refusal.message,
                        Stopped::Unfit(reason) => reason.to_string(),
                    };
                    return Verdict::Unknown { reason, about: wait.about };
                }
            }
        }
    }

    async fn judged(
        &self,
        live: &LiveServer,
        document: &Document,
        saved: bool,
        wait: &mut Wait,
    ) -> Result<Arc<Findings>, Stopped> {
        let path = &document.path;
        loop {
            let mut observed = live.facts.observed.clone();
            observed.mark_unchanged();
            let synced = self.sync(live, vec![document.clone()], saved, true).await?;
            let Some(about) = synced.about.as_ref().filter(|_| !synced.superseded) else {
                return Err(Stopped::Superseded);
            };
            if live.facts.inner.is_lost() {
                return Err(Stopped::Died);
            }
            wait.about = Some(about.proof);
            if let Some(kept) = self.kept(path, about.proof) {
                return Ok(kept);
            }
            has_reread(live).await?;
            match self.sign(live, path, &synced, wait).await? {
                Sign::Kept(kept) => return Ok(kept),
                Sign::Final(report) => match self.keep(live, path, report, about.proof) {
                    Some(findings) => return Ok(findings),
                    None => wait.reason = "other files keep changing".to_owned(),
                },
                Sign::Again => {}
                Sign::At(at, reason) => {
                    wait.reason = reason.to_owned();
                    tokio::select! {
                        _ = observed.changed() => {}
                        () = sleep_until(at) => {}
                    }
                }
                Sign::No(reason) => {
                    wait.reason = reason.to_owned();
                    observed.changed().await.map_err(|_| Stopped::Died)?;
                }
            }
        }
    }

    /// Returns what was proved already of just this.
    fn kept(&self, path: &Path, proof: Proof) -> Option<Arc<Findings>> {
        lock(&self.documents).kept(path).filter(|kept| kept.proof == proof)
    }

    fn keep(
        &self,
        live: &LiveServer,
        path: &Path,
        report: Report,
        proof: Proof,
    ) -> Option<Arc<Findings>> {
        let related = report.related.into_iter().map(|(of, items)| (Arc::from(of), items));
        let findings = Arc::new(Findings {
            items: report.items,
            related: related.collect::<Vec<(Arc<Path>, Vec<Diagnostic>)>>(),
            encoding: live.facts.encoding,
            proof,
        });
        let alive = self.slot.view().live.is_some_and(|now| now.incarnation == proof.incarnation)
            && !live.facts.inner.is_lost();
        (alive && lock(&self.documents).keep(path, &findings)).then_some(findings)
    }
}
