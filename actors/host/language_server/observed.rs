//! What a server has told of itself, for callers that wait for it to change, and
//! when that may be taken as final.
//!
//! Written by the actor alone; callers read it without asking. Decides in pure code.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::diagnostics::{Diagnostic, diagnostics};
use super::spec::Recipe;
use super::uri;

/// Files of which something is kept; a server that speaks of more is cut.
const CAP: usize = 4096;
/// After a publish, how long to wait for another. What a server with an own
/// debounce sends in two goes came 17 to 200 ms apart.
const QUIET: Duration = Duration::from_millis(250);
/// The same, where the publish names no version and says what was known before
/// the change: it may well have been under way already. Late ones came up to
/// 500 ms after it.
const QUIET_UNCHANGED: Duration = Duration::from_secs(1);
/// How long work that a change sets off may take to begin: rust-analyzer's check came
/// 130 to 430 ms after a save. What has not begun by then is not done at all.
const BEGINS: Duration = Duration::from_secs(5);
/// Work of one kind under way at once that is told apart.
const TOKENS: usize = 64;

/// A caller's hold on what is observed.
pub(super) type Watch = watch::Receiver<Observed>;

/// What a server has told of itself.
#[derive(Debug, Default)]
pub(super) struct Observed {
    files: HashMap<PathBuf, File>,
    /// What it says it is busy with.
    pub(super) doing: Option<Arc<str>>,
    /// It still reads its workspace.
    pub(super) loading: bool,
    /// Why it could not.
    pub(super) unfit: Option<Arc<str>>,
    /// The checks of the whole project that it runs.
    pub(super) check: Work,
    /// Its analysis of everything.
    pub(super) analysis: Work,
}

#[derive(Debug, Default)]
struct File {
    /// How many things were said of it.
    events: u64,
    /// When it was last published, if since our last change of the text.
    since_change: Option<Instant>,
    version: Option<i64>,
    items: Vec<Diagnostic>,
    /// What was known before that change.
    before: Option<Vec<Diagnostic>>,
    /// Is the server done with it, where it says so.
    idle: Option<bool>,
}

/// Something that a server begins and ends over and over.
#[derive(Debug, Default)]
pub(super) struct Work {
    running: BTreeSet<String>,
    began: Option<Instant>,
    ended: Option<Instant>,
    turns: u64,
}

impl Work {
    /// Takes its begin.
    pub(super) fn begin(&mut self, now: Instant, token: &str) {
        if self.running.len() < TOKENS {
            self.running.insert(token.to_owned());
        }
        self.began = Some(now);
        self.turns += 1;
    }

    /// Takes its end.
    pub(super) fn end(&mut self, now: Instant, token: &str) {
        if self.running.remove(token) {
            self.ended = Some(now);
            self.turns += 1;
        }
    }
}

/// What a verdict is wanted of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub(super) recipe: Recipe,
    pub(super) path: &'a Path,
    /// The version that the server was last given.
    pub(super) version: i32,
    /// When that, or anything else, last changed.
    pub(super) since: Instant,
    /// When it was last asked, by a save, to check the whole project.
    pub(super) checked_at: Option<Instant>,
}

/// May what was said be taken as final.
#[derive(Debug, PartialEq)]
pub(super) enum Settled {
    /// It may.
    Yes(Vec<Diagnostic>),
    /// It may if the server answers one more request and this number stays as it is.
    Fenced(u64),
    /// Not before then, if nothing more comes.
    At(Instant, &'static str),
    /// Not as it is.
    No(&'static str),
    /// Never, as things are.
    Never(Arc<str>),
}

impl Observed {
    fn file(&mut self, params: &Value) -> Option<&mut File> {
        let path = params.get("uri").and_then(Value::as_str).and_then(uri::to_path)?;
        if self.files.len() >= CAP && !self.files.contains_key(&path) {
            return None;
        }
        let file = self.files.entry(path).or_default();
        file.events += 1;
        Some(file)
    }

    /// Takes the params of `textDocument/publishDiagnostics`.
    pub(super) fn publish(&mut self, now: Instant, params: &Value) {
        let Some(file) = self.file(params) else { return };
        file.since_change = Some(now);
        file.version = params.get("version").and_then(Value::as_i64);
        file.items = diagnostics(params.get("diagnostics").unwrap_or(&Value::Null));
    }

    /// Takes the params of clangd's `textDocument/clangd.fileStatus`.
    pub(super) fn file_status(&mut self, params: &Value) {
        let Some(file) = self.file(params) else { return };
        file.idle = Some(params.get("state").and_then(Value::as_str) == Some("idle"));
    }

    /// Says that the server gets a new text of a file.
    pub(super) fn text_changed(&mut self, path: &Path) {
        if let Some(file) = self.files.get_mut(path)
            && file.since_change.take().is_some()
        {
            file.before = Some(file.items.clone());
        }
    }

    /// Decides by the recipe.
    pub(super) fn settled(&self, now: Instant, subject: &Subject<'_>) -> Settled {
        match subject.recipe {
            Recipe::FileStatus => self.of_file_status(subject),
            Recipe::Flycheck => self.of_check(now, subject),
            Recipe::AnalyzerStatus => self.of_analysis(now, subject),
            Recipe::Pull | Recipe::TsserverSync | Recipe::VersionedPush | Recipe::Push => {
                self.of_publish(now, subject)
            }
        }
    }

    /// Decides once the fence of [`Settled::Fenced`] was answered. `None` says that
    /// more has come meanwhile.
    pub(super) fn past_fence(&self, mark: u64, subject: &Subject<'_>) -> Option<Settled> {
        Some(match subject.recipe {
            Recipe::FileStatus => {
                let file = self.files.get(subject.path).filter(|file| file.events == mark)?;
                let ours = file.version == Some(i64::from(subject.version));
                match file.since_change {
                    Some(_) if ours => Settled::Yes(file.items.clone()),
                    _ => Settled::No("it has published nothing since the last change"),
                }
            }
            _ if self.check.turns == mark => Settled::Yes(self.known(subject.path)),
            _ => return None,
        })
    }

    /// clangd says `idle` between two builds of one file as well. A request that
    /// needs the file waits for the second, so `idle` counts once one was answered
    /// without anything further said of the file.
    fn of_file_status(&self, subject: &Subject<'_>) -> Settled {
        match self.files.get(subject.path) {
            Some(File { idle: Some(true), events, .. }) => Settled::Fenced(*events),
            Some(File { idle: Some(false), .. }) => Settled::No("it parses the file"),
            _ => Settled::No("it has not said what it does with the file"),
        }
    }

    /// The check that began last after our save, once it ended. rust-analyzer
    /// publishes what it found before it answers anything else.
    fn of_check(&self, now: Instant, subject: &Subject<'_>) -> Settled {
        let Some(asked) = subject.checked_at else {
            return Settled::No("it was not told of the file");
        };
        if !self.check.running.is_empty() {
            return Settled::No("the project is being checked");
        }
        if self.check.began.is_some_and(|began| began >= asked) {
            return Settled::Fenced(self.check.turns);
        }
        if self.loading {
            return Settled::No("it loads the workspace");
        }
        match (asked + BEGINS, &self.unfit) {
            (_, Some(why)) => Settled::Never(Arc::clone(why)),
            (until, None) if now < until => {
                Settled::At(until, "the check of the project has not begun")
            }
            // Without it nothing is known of what only cargo finds.
            _ => Settled::Never("the check of the project does not begin".into()),
        }
    }

    fn of_analysis(&self, now: Instant, subject: &Subject<'_>) -> Settled {
        if !self.analysis.running.is_empty() {
            return Settled::No("it analyses");
        }
        if self.analysis.ended.is_some_and(|ended| ended >= subject.since) {
            return Settled::Yes(self.known(subject.path));
        }
        match subject.since + BEGINS {
            until if now < until => Settled::At(until, "it has not begun to analyse"),
            _ => self.of_publish(now, subject),
        }
    }

    fn known(&self, path: &Path) -> Vec<Diagnostic> {
        self.files.get(path).map(|file| file.items.clone()).unwrap_or_default()
    }

    fn of_publish(&self, now: Instant, subject: &Subject<'_>) -> Settled {
        let file = self.files.get(subject.path);
        let Some((file, at)) = file.and_then(|file| Some((file, file.since_change?))) else {
            return Settled::No("it has published nothing since the last change");
        };
        match file.version.map(|told| told.cmp(&i64::from(subject.version))) {
            Some(Ordering::Less) => {
                return Settled::No("what it published is about an earlier version");
            }
            // Whoever makes versions up says nothing about this text, also after a while.
            Some(Ordering::Greater) => {
                return Settled::No("what it published is about a version that it was never given");
            }
            Some(Ordering::Equal) if subject.recipe == Recipe::VersionedPush => {
                return Settled::Yes(file.items.clone());
            }
            Some(Ordering::Equal) | None => {}
        }
        if self.doing.is_some() {
            return Settled::No("it is busy");
        }
        let same = file.version.is_none() && file.before.as_ref() == Some(&file.items);
        let settles = at.max(subject.since) + if same { QUIET_UNCHANGED } else { QUIET };
        if now < settles {
            Settled::At(settles, "it has only just published")
        } else {
            Settled::Yes(file.items.clone())
        }
    }
}

#[cfg(test)]
mod tests;
