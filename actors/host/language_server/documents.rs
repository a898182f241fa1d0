//! The documents that a server has open, and what to tell it of them. Pure.
//!
//! Invariant: a document's text at the server equals the file on disk. Runs share
//! the server, and two that see different texts would see each other's. So a text
//! is brought by who has just read it, an older reading never replaces a newer one,
//! and a file that changed unseen is closed, which makes the server read it again.
//!
//! Outlives incarnations: a restarted server gets the leased ones opened again.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::changes::Changes;
use super::diagnostics::{Findings, Proof};
use super::open_document::{Open, Outgoing, Terms};
use super::spec::AfterChange;
use crate::ids::{Incarnation, RunId};
use crate::ports::FileChange;

/// Open at once per server. Servers keep each in memory with its analysis.
const MOST_OPEN: usize = 64;

/// Files whose last change is remembered before old ones are forgotten.
const MOST_CHANGED: usize = 4096;
/// No text is brought so long after it was read: every wait for a verdict is shorter.
const OLDEST_READING: Duration = Duration::from_secs(120);

/// Identifies a text by its content.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TextHash(pub [u8; 32]);

impl fmt::Debug for TextHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A file as it was just read from the disk, under its path's lock.
#[derive(Clone, Debug)]
pub struct Document {
    /// Which file, canonical.
    pub path: Arc<Path>,
    /// The protocol's name of its language, for example `typescriptreact`.
    pub language_id: Arc<str>,
    /// Its text.
    pub text: Arc<str>,
    /// The text's hash.
    pub hash: TextHash,
    /// When it was read: of two readings the later one counts.
    pub read_at: Instant,
}

/// A document that a server has open.
#[derive(Clone, Debug)]
pub struct OpenDocument {
    /// Which file.
    pub path: Arc<Path>,
    /// Its language.
    pub language_id: Arc<str>,
    /// The text that the server has.
    pub hash: TextHash,
}

/// The documents of one slot.
#[derive(Debug)]
pub(super) struct Documents {
    open: HashMap<Arc<Path>, Open>,
    /// Which incarnation has them open.
    at: Incarnation,
    /// The last version given out. One count for all, so that a version of an
    /// earlier opening is never mistaken for one of this.
    version: i32,
    tick: u64,
    epoch: u64,
    moved_at: Instant,
    /// When the text of a document or a file on disk last changed.
    files_at: Instant,
    untold: Changes,
    /// When files last changed, so that no older reading of one is opened.
    changed: HashMap<Arc<Path>, Instant>,
    /// What a document needs once another file has changed.
    after_change: AfterChange,
}

/// For whom documents are brought up to date, and why.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purpose {
    pub(super) run: RunId,
    /// That run has just written them: the server is to hear of a save.
    pub(super) written: bool,
}

/// What a verdict on a document would speak of.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub(super) proof: Proof,
    /// The version that the server has.
    pub(super) version: i32,
    /// When it got that.
    pub(super) changed_at: Instant,
}

/// The documents of a slot, shared by its actor and its callers.
pub(super) type SharedDocuments = Arc<Mutex<Documents>>;

/// Looks into them. Never held over an await.
pub(super) fn lock(documents: &SharedDocuments) -> MutexGuard<'_, Documents> {
    documents.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What [`Documents::sync`] found to do.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// What to send, in this order.
    pub(super) out: Vec<Outgoing>,
    /// The documents whose text at the server is new.
    pub(super) renewed: Vec<Arc<Path>>,
    /// Was one of the texts older than what the server has.
    pub(super) superseded: bool,
}

impl Documents {
    pub(super) fn new(now: Instant, after_change: AfterChange) -> Self {
        Self {
            open: HashMap::new(),
            at: Incarnation::default(),
            version: 0,
            tick: 0,
            epoch: 0,
            moved_at: now,
            files_at: now,
            untold: Changes::default(),
            changed: HashMap::new(),
            after_change,
        }
    }

    /// Says whether an incarnation needs to be told nothing before a question of
    /// this run about these documents.
    pub(super) fn are_current(
        &mut self,
        at: Incarnation,
        run: RunId,
        documents: &[Document],
    ) -> bool {
        self.tick += 1;
        self.at == at
            && self.untold.is_empty()
            && !self.open.values().any(|open| open.suspect.is_some())
            && documents.iter().all(|document| {
                let Some(open) = self.open.get_mut(&document.path) else { return false };
                open.used = self.tick;
                let looks = self.after_change == AfterChange::Nothing || open.seen == self.epoch;
                looks && open.document.hash == document.hash && open.runs.contains(&run)
            })
    }

    /// Takes changes of files. What was proved before them is so no longer. `false`
    /// says that there are too many to tell: a fresh process knows better.
    pub(super) fn changed(&mut self, now: Instant, changes: Vec<FileChange>) -> bool {
        self.move_on(now);
        self.files_at = now;
        if self.changed.len() + changes.len() > MOST_CHANGED {
            self.changed.retain(|_, at| now.duration_since(*at) < OLDEST_READING);
        }
        for change in changes {
            self.changed.insert(Arc::clone(&change.path), now);
            if let Some(open) = self.open.get_mut(&change.path) {
                open.suspect = Some(now);
            }
            self.untold.add(change);
        }
        !self.untold.overflowed()
    }

    /// Makes every verdict so far stale.
    pub(super) fn move_on(&mut self, now: Instant) {
        self.epoch += 1;
        self.moved_at = now;
    }

    /// Returns when a verdict last became stale by something outside its own text.
    pub(super) fn moved_at(&self) -> Instant {
        self.moved_at
    }

    /// Returns when the text of a document or a file on disk last changed.
    pub(super) fn files_at(&self) -> Instant {
        self.files_at
    }

    /// Closes what changed on disk: a server that is then told to read its projects
    /// afresh takes an open document's text for the file's.
    pub(super) fn close_suspect(&mut self) -> Vec<Outgoing> {
        let suspect = self.paths_where(|open| open.suspect.is_some());
        suspect.iter().filter_map(|path| self.close(path)).collect()
    }

    /// Takes the changes that the server was not told of.
    pub(super) fn take_untold(&mut self) -> Changes {
        std::mem::take(&mut self.untold)
    }

    /// Brings the server's texts up to these.
    pub(super) fn sync(
        &mut self,
        now: Instant,
        purpose: Purpose,
        documents: &[Document],
        terms: &Terms<'_>,
    ) -> Steps {
        let mut steps = Steps::default();
        self.tick += 1;
        for document in documents {
            let recheck = self.bring(now, purpose, document, terms, &mut steps);
            if (purpose.written || recheck)
                && let Some(save) =
                    self.open.get_mut(&document.path).and_then(|open| open.save(terms))
            {
                steps.out.push(save);
            }
        }
        let (tick, most) = (self.tick, MOST_OPEN);
        steps.out.extend(self.close_suspect());
        while self.open.len() > most {
            let oldest = self.open.iter().filter(|(_, open)| open.used != tick);
            let Some(path) = oldest.min_by_key(|(_, open)| open.used).map(|(path, _)| path.clone())
            else {
                break;
            };
            steps.out.extend(self.close(&path));
        }
        steps
    }

    /// Brings one. Says whether it needs to be saved again, as another file changed.
    fn bring(
        &mut self,
        now: Instant,
        Purpose { run, written, .. }: Purpose,
        document: &Document,
        terms: &Terms<'_>,
        steps: &mut Steps,
    ) -> bool {
        let mut recheck = false;
        if let Some(open) = self.open.get_mut(&document.path) {
            open.runs.insert(run);
            open.used = self.tick;
            let same = open.document.hash == document.hash;
            let too_old = open.suspect.is_some_and(|since| document.read_at < since && !written);
            if too_old || (document.read_at < open.document.read_at && !same) {
                steps.superseded = true;
                return false;
            }
            open.suspect = None;
            let behind = open.seen != self.epoch;
            open.seen = self.epoch;
            let reopen = behind && self.after_change == AfterChange::Reopen;
            recheck = behind && self.after_change == AfterChange::Save;
            open.unsaved |= recheck;
            if same {
                open.document.read_at = open.document.read_at.max(document.read_at);
                if !reopen {
                    return recheck;
                }
            }
            self.version += 1;
            open.changed_at = now;
            steps.out.extend(open.replace(document, self.version, reopen, terms));
            if !same {
                self.epoch += 1;
                self.moved_at = now;
                self.files_at = now;
                open.seen = self.epoch;
            }
        } else {
            let changed = self.changed.get(&document.path);
            if !written && changed.is_some_and(|at| document.read_at < *at) {
                steps.superseded = true;
                return false;
            }
            self.version += 1;
            let open = Open {
                document: document.clone(),
                version: self.version,
                runs: BTreeSet::from([run]),
                used: self.tick,
                told: terms.opens(),
                unsaved: true,
                suspect: None,
                changed_at: now,
                seen: self.epoch,
                findings: None,
                asking: Arc::default(),
            };
            steps.out.extend(open.told.then(|| open.opening()));
            self.open.insert(Arc::clone(&document.path), open);
        }
        steps.renewed.push(Arc::clone(&document.path));
        recheck
    }

    fn paths_where(&self, wanted: impl Fn(&Open) -> bool) -> Vec<Arc<Path>> {
        let found = self.open.iter().filter(|(_, open)| wanted(open));
        found.map(|(path, _)| Arc::clone(path)).collect()
    }

    fn close(&mut self, path: &Path) -> Option<Outgoing> {
        self.open.remove(path)?.closing()
    }

    /// Drops a run's hold on one document, or on all; what nobody holds is closed.
    pub(super) fn release(&mut self, run: RunId, only: Option<&Path>) -> Vec<Outgoing> {
        for (path, open) in &mut self.open {
            if only.is_none_or(|only| only == &**path) {
                open.runs.remove(&run);
            }
        }
        let unheld = self.paths_where(|open| open.runs.is_empty());
        unheld.iter().filter_map(|path| self.close(path)).collect()
    }

    /// Opens everything again at a new incarnation, with the texts last known.
    pub(super) fn reopen(
        &mut self,
        now: Instant,
        at: Incarnation,
        terms: &Terms<'_>,
    ) -> Vec<Outgoing> {
        self.at = at;
        self.move_on(now);
        // Whoever changed these since has said so, and a fresh server reads the disk.
        let suspect = self.paths_where(|open| open.suspect.is_some());
        suspect.iter().for_each(|path| drop(self.open.remove(path)));
        let mut opened = Vec::new();
        for open in self.open.values_mut() {
            self.version += 1;
            open.version = self.version;
            open.changed_at = now;
            open.seen = self.epoch;
            open.unsaved = true;
            open.told = terms.opens();
            opened.extend(open.told.then(|| open.opening()));
        }
        opened
    }

    /// Returns what a verdict on a document would speak of now.
    pub(super) fn about(&self, path: &Path) -> Option<About> {
        let open = self.open.get(path)?;
        let proof = Proof { incarnation: self.at, hash: open.document.hash, epoch: self.epoch };
        Some(About { proof, version: open.version, changed_at: open.changed_at })
    }

    /// Keeps a verdict, if it still holds.
    pub(super) fn keep(&mut self, path: &Path, findings: &Arc<Findings>) -> bool {
        let holds = self.about(path).is_some_and(|about| about.proof == findings.proof);
        if let Some(open) = self.open.get_mut(path).filter(|_| holds) {
            open.findings = Some(Arc::clone(findings));
        }
        holds
    }

    /// Returns the verdict kept of a document, if it still holds.
    pub(super) fn kept(&self, path: &Path) -> Option<Arc<Findings>> {
        let open = self.open.get(path)?;
        let About { proof, .. } = self.about(path)?;
        open.findings.clone().filter(|kept| kept.proof == proof && open.suspect.is_none())
    }

    /// Returns what whoever asks for a verdict on a document holds meanwhile.
    pub(super) fn asking(&self, path: &Path) -> Option<Arc<tokio::sync::Mutex<()>>> {
        self.open.get(path).map(|open| Arc::clone(&open.asking))
    }

    pub(super) fn list(&self) -> Vec<OpenDocument> {
        let mut list: Vec<_> = self
            .open
            .values()
            .map(|open| OpenDocument {
                path: Arc::clone(&open.document.path),
                language_id: Arc::clone(&open.document.language_id),
                hash: open.document.hash,
            })
            .collect();
        list.sort_by(|a, b| a.path.cmp(&b.path));
        list
    }
}

#[cfg(test)]
mod tests;
