//! What a write can break, before and after it.
//!
//! Before: everything that is looked at is judged, so that what was wrong already is
//! known. After: the same again. A verdict that does not come within the bound is
//! waited for in the background, with its baseline.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hostler_actors::host::language_server::documents::Document;
use hostler_actors::host::workspace::space::conversation::run::language_session::Gone;
use hostler_actors::host::workspace::space::conversation::run::language_session::ledger::{
    Change, Finding, Introduced, Severity,
};
use hostler_actors::host::workspace::space::conversation::run::language_session::wait::{
    Baseline, Settled, Target, Wait,
};
use hostler_actors::ports::{FileChange, FileChangeKind};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::charge::take_doubtful;
use super::documents::{self, DocumentError};
use super::findings::note;
use super::judgement::{Judgement, Watched, judge, judge_before};
use super::{Written, dependents};
use crate::folder::{Folder, Inside};
use crate::seat::Seat;
use crate::servers::watched::Since;
use crate::servers::{Server, Viewpoint};
use crate::tools::Cancel;

/// How long the state before a write may take to be learnt.
const BEFORE: Duration = Duration::from_secs(1);
/// How many written files servers are asked about: each is judged twice, and a verdict
/// on hundreds would not come within any bound.
const WRITTEN: usize = 40;
/// How many open documents are looked at beside the written ones.
const OPEN: usize = 20;
/// How long a verdict is waited for after the write, in the background as well. A
/// hard bound: a server that hangs must not be waited for for ever.
const HARD: Duration = Duration::from_secs(12);
/// The same for servers whose verdicts take longer: so often what a write waits.
const LATER: u32 = 4;

/// One file for one server, as it was before.
struct Before {
    watched: Watched,
    known: Option<Vec<Finding>>,
    /// The text, for files that are about to be written.
    text: Option<Arc<str>>,
    written: bool,
}

/// The state before a write.
pub(super) struct Watch {
    files: Vec<Inside>,
    existed: Vec<bool>,
    /// What the roots were then.
    roots: Vec<Since>,
    before: Vec<Before>,
    /// Why files have no server.
    lacking: Vec<String>,
    /// What is to be said beside the verdicts of those that have one.
    cautions: Vec<String>,
}

impl Watch {
    /// Learns the state before these files are written.
    pub(super) async fn begin(
        seat: &Seat,
        files: &[Inside],
        cancel: &Cancel,
    ) -> Result<Self, Gone> {
        let until = Instant::now() + BEFORE;
        let mut watch = Self {
            files: files.to_vec(),
            existed: Vec::new(),
            // Before servers are told of what has changed so far: all that they are not
            // told of then may show in what they say afterwards.
            roots: seat.languages.watched.since_now(),
            before: Vec::new(),
            lacking: Vec::new(),
            cautions: Vec::new(),
        };
        let mut by_server: BTreeMap<(String, PathBuf), (Server, Vec<Inside>)> = BTreeMap::new();
        watch.existed.extend(files.iter().map(|file| seat.folder.kind(file).is_some()));
        if let Some(more) = files.len().checked_sub(WRITTEN).filter(|more| *more > 0) {
            watch.cautions.push(format!(
                "{more} of the {} written files are beyond what is judged at once: lsp diagnostics \
                 with file \"*\" checks the whole project",
                files.len()
            ));
        }
        for file in files.iter().take(WRITTEN) {
            let serving = seat.languages.serving(Viewpoint::of(seat), file.absolute()).await?;
            if serving.servers.is_empty() {
                watch.lacking.extend(serving.lacking);
            }
            for server in serving.servers {
                let key = (server.held.spec.name.clone(), server.held.spec.root.clone());
                watch.cautions.extend(server.caution());
                by_server.entry(key).or_insert((server, Vec::new())).1.push(file.clone());
            }
        }
        let mut looks = JoinSet::new();
        for (server, written) in by_server.into_values() {
            for (file, written) in beside(seat, &server, written).await {
                let watched = Watched { server: server.clone(), file, only_if: None };
                looks.spawn(look(seat.folder.clone(), watched, written, until, cancel.clone()));
            }
        }
        watch.before = looks.join_all().await.into_iter().flatten().collect();
        watch.before.sort_by_key(|Before { watched, written, .. }| {
            (!written, watched.file.absolute().to_owned(), watched.server.name())
        });
        Ok(watch)
    }

    /// Learns what became of it, and lets what is not known in time be waited for.
    pub(super) async fn end(self, seat: &Seat, of: &str, cancel: &Cancel) -> Result<Written, Gone> {
        let began = Instant::now();
        let names = self.before.iter().map(|before| before.watched.server.name());
        let inline = seat.languages.inline(names);
        let until = began + inline;
        let Self { files, existed, roots, before, lacking, cautions } = self;
        let mut after = After {
            written: Written { lacking, cautions, ..Written::default() },
            ..After::default()
        };
        let (main, others): (Vec<_>, Vec<_>) = before.into_iter().partition(|one| one.written);
        tell_changes(seat, &files, &existed, &main).await?;
        let older = reclaimed(seat, &main).await?;
        after.judge(&seat.folder, main, until, cancel).await;
        if after.waiting.is_empty() {
            after.judge(&seat.folder, others, until, cancel).await;
        } else {
            after.put_off(others);
        }
        after.take_over(older);
        let others = Others { roots, files };
        after.finish(seat, of, Arc::new(others), began + HARD.max(inline * LATER)).await
    }
}

/// Returns the written files and those that may break with them; says which is which.
async fn beside(seat: &Seat, server: &Server, written: Vec<Inside>) -> Vec<(Inside, bool)> {
    let folder = seat.folder.clone();
    let open = server.held.server.open_documents();
    let spec = &server.held.spec;
    let patterns: Vec<String> = seat
        .languages
        .config
        .servers
        .get(&spec.name)
        .into_iter()
        .flat_map(|definition| &definition.files)
        .flat_map(|kind| kind.patterns.iter().cloned())
        .collect();
    let root = spec.root.clone();
    let looked = tokio::task::spawn_blocking(move || {
        let paths: Vec<_> = written.iter().map(|file| file.absolute().to_owned()).collect();
        let open = open.into_iter().map(|open| open.path.to_path_buf()).take(OPEN);
        let mut files: Vec<_> = written.into_iter().map(|file| (file, true)).collect();
        for path in open.chain(dependents::find(&root, &patterns, &paths)) {
            let file = path.to_str().and_then(|path| folder.locate(path).ok());
            if let Some(file) = file.filter(|file| !files.iter().any(|(known, _)| known == file)) {
                files.push((file, false));
            }
        }
        files
    });
    looked.await.unwrap_or_default()
}

async fn look(
    folder: Folder,
    mut watched: Watched,
    written: bool,
    until: Instant,
    cancel: Cancel,
) -> Option<Before> {
    let read = documents::read(&folder, &watched.file, &watched.server.language_id).await;
    let document = match read {
        Ok(document) => document,
        Err(error) => {
            let known = error.is_missing().then(Vec::new);
            return written.then_some(Before { watched, known, text: Some("".into()), written });
        }
    };
    let left = until.saturating_duration_since(Instant::now());
    let known = match judge_before(&watched.server, &document, left, &cancel).await {
        Judgement::Fresh(found) => Some(found),
        Judgement::Pending(_) | Judgement::NoServer(_) => None,
    };
    if written {
        return Some(Before { watched, known, text: Some(document.text), written });
    }
    watched.only_if = Some(document.hash);
    Some(Before { watched, known, text: None, written })
}

/// Tells the servers of the run what is new on disk. Those that are about to get the
/// new text of a changed file need not hear of it twice.
async fn tell_changes(
    seat: &Seat,
    files: &[Inside],
    existed: &[bool],
    main: &[Before],
) -> Result<(), Gone> {
    for held in seat.languages.session.leases().await? {
        let gets_text = |file: &Inside| {
            main.iter().any(|before| {
                before.watched.file == *file
                    && Arc::ptr_eq(&before.watched.server.held.server, &held.server)
            })
        };
        let changes = files.iter().zip(existed).filter_map(|(file, existed)| {
            let kind = match (existed, seat.folder.kind(file).is_some()) {
                (false, true) => FileChangeKind::Created,
                (true, true) if gets_text(file) => return None,
                (true, true) => FileChangeKind::Changed,
                (true, false) => {
                    // Open, it would go on living at the server.
                    held.server.close(file.absolute());
                    FileChangeKind::Deleted
                }
                (false, false) => return None,
            };
            Some(FileChange { path: file.absolute().into(), kind })
        });
        seat.languages.watched.tell(&held, files, changes.collect());
    }
    Ok(())
}

/// Takes over what earlier writes of these files are still waiting for.
async fn reclaimed(seat: &Seat, main: &[Before]) -> Result<Vec<Baseline>, Gone> {
    let targets: Vec<Target> = main.iter().map(|before| before.watched.target()).collect();
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    seat.languages.session.reclaim(targets).await
}

/// What is known after a write, while it is gathered.
#[derive(Default)]
struct After {
    known: Vec<(Baseline, Vec<Finding>)>,
    waiting: Vec<(Watched, Baseline)>,
    written: Written,
}

/// Says what others have changed since a write began.
struct Others {
    roots: Vec<Since>,
    files: Vec<Inside>,
}

impl Others {
    /// Returns what they have, where that is known.
    fn changed(&self) -> Option<Vec<Arc<Path>>> {
        let others: Option<Vec<_>> =
            self.roots.iter().map(|root| root.of_others(&self.files)).collect();
        others.map(|others| others.concat())
    }

    /// Says whether they may have changed a file, or something that it depends on.
    /// Reads the file, so it belongs on a thread that may block.
    fn may_have_broken(&self, path: &Path) -> bool {
        let Some(others) = self.changed() else { return true };
        let is_of = |others: Vec<Arc<Path>>| others.iter().any(|other| **other == *path);
        // What was just read may be newer than the list, and depend on nothing any more.
        !others.is_empty()
            && (dependents::depends_on(path, &others) || self.changed().is_none_or(is_of))
    }
}

impl After {
    async fn judge(
        &mut self,
        folder: &Folder,
        these: Vec<Before>,
        until: Instant,
        cancel: &Cancel,
    ) {
        let mut looks = JoinSet::new();
        for (at, before) in these.into_iter().enumerate() {
            let (folder, cancel) = (folder.clone(), cancel.clone());
            looks.spawn(async move {
                let Watched { server, file, .. } = &before.watched;
                if !before.written {
                    let settled = tokio::select! {
                        settled = before.watched.settled(&folder, until) => settled,
                        () = cancel.cancelled() => Some(Err("cancelled".to_owned())),
                    };
                    let judgement = settled.map(|settled| match settled {
                        Ok(found) => Judgement::Fresh(found),
                        Err(reason) => Judgement::Pending(reason),
                    });
                    return (at, before, None, judgement);
                }
                let read = documents::read(&folder, file, &server.language_id).await;
                let judgement = match &read {
                    Ok(document) => {
                        let left = until.saturating_duration_since(Instant::now());
                        Some(judge(server, document, true, left, &cancel).await)
                    }
                    Err(_) => None,
                };
                (at, before, Some(read), judgement)
            });
        }
        let mut looked = looks.join_all().await;
        looked.sort_by_key(|(at, ..)| *at);
        for (_, before, read, judgement) in looked {
            self.take(before, read, judgement);
        }
    }

    fn take(
        &mut self,
        before: Before,
        read: Option<Result<Document, DocumentError>>,
        judgement: Option<Judgement>,
    ) {
        let written = before.written;
        let (document, error) = match read {
            Some(Ok(document)) => (Some(document), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        let (watched, baseline) = before.baseline(document.as_ref());
        // Of a dependent file that has no verdict nothing is said: it was not written.
        let counts =
            |judgement: &&Judgement| written || !matches!(judgement, Judgement::NoServer(_));
        if let Some(judgement) = judgement.as_ref().filter(counts) {
            note(&mut self.written.standings, judgement.standing(watched.server.name()));
        }
        match (judgement, error) {
            (Some(Judgement::Fresh(found)), _) => {
                self.written.verified += usize::from(written);
                self.known.push((baseline, found));
            }
            (Some(Judgement::Pending(reason)), _) => {
                self.written.pending.push(reason);
                self.waiting.push((watched, baseline));
            }
            (Some(Judgement::NoServer(reason)), _) if written => self.written.lacking.push(reason),
            (None, Some(error)) if !error.is_missing() => {
                self.written.lacking.push(error.to_string());
            }
            _ => {}
        }
    }

    /// Leaves others for later: their verdicts mean nothing before the written
    /// file's own is known.
    fn put_off(&mut self, others: Vec<Before>) {
        self.waiting.extend(others.into_iter().map(|before| before.baseline(None)));
    }

    /// Puts the baselines of earlier writes that were never settled in the place of
    /// later ones, which may hold what those writes broke.
    fn take_over(&mut self, older: Vec<Baseline>) {
        let known = self.known.iter_mut().map(|(baseline, _)| baseline);
        let waiting = self.waiting.iter_mut().map(|(_, baseline)| baseline);
        let mut current: Vec<_> = known.chain(waiting).collect();
        for old in older {
            if let Some(now) = current.iter_mut().find(|now| now.target == old.target) {
                now.before = old.before;
                now.lines = match (now.lines.clone(), old.lines) {
                    (Some(a), Some(b)) => Some(*a.start().min(b.start())..=*a.end().max(b.end())),
                    (now, old) => now.or(old),
                };
            }
        }
    }

    async fn finish(
        mut self,
        seat: &Seat,
        of: &str,
        since: Arc<Others>,
        until: Instant,
    ) -> Result<Written, Gone> {
        let session = &seat.languages.session;
        let changes: Vec<Change> =
            self.known.into_iter().map(|(baseline, found)| baseline.change(found)).collect();
        let introduced = session.account(changes.clone()).await?;
        self.written.unsure =
            changes.iter().flat_map(|change| unsure(change, &introduced)).collect();
        if !introduced.is_empty() {
            let others = Arc::clone(&since);
            let charged = tokio::task::spawn_blocking(move || {
                take_doubtful(introduced, &changes, |path| others.may_have_broken(path))
            });
            let (ours, doubtful) = charged.await.unwrap_or_default();
            self.written.introduced = ours;
            self.written.unsure.extend(doubtful);
        }
        if !self.waiting.is_empty() {
            let (watched, baselines) = self.waiting.into_iter().unzip();
            session.go_on(wait(seat.folder.clone(), of, watched, baselines, since, until)).await?;
        }
        Ok(self.written)
    }
}

fn wait(
    folder: Folder,
    of: &str,
    watched: Vec<Watched>,
    baselines: Vec<Baseline>,
    since: Arc<Others>,
    until: Instant,
) -> Wait {
    let verdicts = async move {
        let mut settled = Vec::new();
        // In order: the written files first, as the others depend on them.
        for one in watched {
            if let Some(after) = one.settled(&folder, until).await {
                let (target, roots) = (one.target(), Arc::clone(&since));
                let path = Arc::clone(&target.path);
                let theirs = tokio::task::spawn_blocking(move || roots.may_have_broken(&path));
                let theirs = theirs.await.unwrap_or(true);
                settled.push(Settled { target, after, theirs });
            }
        }
        settled
    };
    // The wait knows best why it ends, so it ends before it is ended.
    let within = until.saturating_duration_since(Instant::now()) + Duration::from_secs(1);
    Wait { of: of.into(), baselines, verdicts: Box::pin(verdicts), within }
}

impl Before {
    fn baseline(self, now: Option<&Document>) -> (Watched, Baseline) {
        let lines = match (&self.text, now) {
            (Some(old), Some(new)) => changed_lines(old, &new.text),
            _ => None,
        };
        let target = self.watched.target();
        (self.watched, Baseline { target, before: self.known, lines })
    }
}

/// Returns of what it is not known whether it is older than the write: errors, and on
/// the lines of the write warnings as well.
fn unsure(change: &Change, introduced: &[Introduced]) -> Vec<Finding> {
    let told = |found: &Finding| {
        introduced.iter().any(|new| {
            let lines = || std::iter::once(new.finding.line).chain(new.others.iter().copied());
            new.finding.is_alike(found) && lines().any(|line| line == found.line)
        })
    };
    let unsure = |found: &&Finding| {
        (found.severity == Severity::Error || change.touches(found)) && !told(found)
    };
    match change.before {
        Some(_) => Vec::new(),
        None => change.after.iter().filter(unsure).cloned().collect(),
    }
}

/// Returns the lines of `new`, from 1, between what both texts begin and end with.
fn changed_lines(old: &str, new: &str) -> Option<RangeInclusive<u32>> {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - head;
    let ends = old.iter().rev().zip(new.iter().rev());
    let tail = ends.take(most).take_while(|(a, b)| a == b).count();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let changed = number(head + 1)..=number(new.len() - tail);
    (!changed.is_empty()).then_some(changed)
}

#[cfg(test)]
mod tests {
    use super::changed_lines;

    #[test]
    fn changed_lines_are_those_between_the_same_ends() {
        let cases = [
            ("a\nb\nc\n", "a\nx\ny\nc\n", Some(2..=3)),
            ("", "a\nb\n", Some(1..=2)),
            ("a\na\n", "a\na\na\n", Some(3..=3)),
            ("a\nb\nc\n", "a\nc\n", None),
            ("a\n", "a\n", None),
        ];
        for (old, new, expected) in cases {
            assert_eq!(changed_lines(old, new), expected, "{old:?} {new:?}");
        }
    }
}
