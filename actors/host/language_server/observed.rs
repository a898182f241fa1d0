//! What a server has told of itself, for callers that wait for it to change.
//!
//! Written by the actor alone; callers read it without asking.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::diagnostics::{Diagnostic, diagnostics};
use super::uri;

/// Files whose publishes are kept; a server that publishes more is cut.
const CAP: usize = 4096;
/// After a publish, how long to wait for another. What a server with an own
/// debounce sends in two goes came 17 to 200 ms apart.
const QUIET: Duration = Duration::from_millis(250);
/// The same, where the publish names no version and says what was known before
/// the change: it may well have been under way already. Late ones came up to
/// 500 ms after it.
const QUIET_UNCHANGED: Duration = Duration::from_secs(1);

/// A caller's hold on what is observed.
pub(super) type Watch = watch::Receiver<Observed>;

/// What a server has told of itself.
#[derive(Debug, Default)]
pub(super) struct Observed {
    published: HashMap<PathBuf, Published>,
    /// What it says it is busy with.
    pub(super) doing: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct Published {
    /// When, if since our last change of the text.
    since_change: Option<Instant>,
    version: Option<i64>,
    items: Vec<Diagnostic>,
    /// What was known before that change.
    before: Option<Vec<Diagnostic>>,
}

/// May what was published be taken as final.
#[derive(Debug, PartialEq)]
pub(super) enum Settled {
    /// It may.
    Yes(Vec<Diagnostic>),
    /// Not before then, if nothing more comes.
    At(Instant),
    /// Not as it is.
    No(&'static str),
}

impl Observed {
    /// Takes the params of `textDocument/publishDiagnostics`.
    pub(super) fn publish(&mut self, now: Instant, params: &Value) {
        let path = params.get("uri").and_then(Value::as_str).and_then(uri::to_path);
        let Some(path) = path else { return };
        if self.published.len() >= CAP && !self.published.contains_key(&path) {
            return;
        }
        let known = self.published.entry(path).or_default();
        known.since_change = Some(now);
        known.version = params.get("version").and_then(Value::as_i64);
        known.items = diagnostics(params.get("diagnostics").unwrap_or(&Value::Null));
    }

    /// Says that the server gets a new text of a file.
    pub(super) fn text_changed(&mut self, path: &Path) {
        if let Some(known) = self.published.get_mut(path)
            && known.since_change.take().is_some()
        {
            known.before = Some(std::mem::take(&mut known.items));
        }
    }

    /// Decides on what was published of a file. `version` is the one that the
    /// server was last given, `moved_at` when anything else last changed.
    pub(super) fn settled(
        &self,
        now: Instant,
        path: &Path,
        version: i32,
        moved_at: Instant,
    ) -> Settled {
        let known = self.published.get(path);
        let Some((known, at)) = known.and_then(|known| Some((known, known.since_change?))) else {
            return Settled::No("it has published nothing since the last change");
        };
        match known.version.map(|told| told.cmp(&i64::from(version))) {
            Some(Ordering::Less) => {
                return Settled::No("what it published is about an earlier version");
            }
            // Whoever makes versions up says nothing about this text, also after a while.
            Some(Ordering::Greater) => {
                return Settled::No("what it published is about a version that it was never given");
            }
            Some(Ordering::Equal) | None => {}
        }
        if self.doing.is_some() {
            return Settled::No("it is busy");
        }
        let same = known.version.is_none() && known.before.as_ref() == Some(&known.items);
        let settles = at.max(moved_at) + if same { QUIET_UNCHANGED } else { QUIET };
        if now < settles { Settled::At(settles) } else { Settled::Yes(known.items.clone()) }
    }
}
