//! Changes in the order in which they happened, with a cursor per server, pure.
//!
//! A file that changes a thousand times is kept once, at its latest place. What is
//! told as a whole is the change since the cursor: created and then changed is
//! created, deleted and then created is changed (so `git checkout` replaces files),
//! created and then deleted is nothing that anybody must hear of.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use hostler_actors::host::language_server::spec::ServerKey;
use hostler_actors::ports::{FileChange, FileChangeKind};

/// Files remembered at most; beyond that the log says that it lost some.
const MOST: usize = 50_000;
/// How many of the latest changed files are known by name.
const LATEST: usize = 256;

/// How many of the latest changes are named to who only asks whether there were any.
pub(crate) const NAMED: usize = 8;

/// What changed since a server last asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Since {
    /// The changes, oldest first.
    pub(crate) changes: Vec<FileChange>,
    /// It asks for the first time: what changed before is not known here.
    pub(crate) first: bool,
    /// More changed than anybody can name: the kernel's queue overflowed.
    pub(crate) lost: bool,
    /// Not every folder is watched, so that there may be more.
    pub(crate) partial: bool,
}

/// A moment in the life of a root: nothing changed where the next one is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(u64);

#[derive(Debug)]
struct Entry {
    at: u64,
    /// Since when the file is there or not, oldest first. Of what was between two
    /// cursors only the end is kept, as nobody can ask for the rest.
    there: Vec<(u64, bool)>,
}

impl Entry {
    fn is_there(&self) -> bool {
        self.there.last().is_some_and(|(_, there)| *there)
    }

    fn was_there(&self, cursor: u64) -> bool {
        let until = self.there.iter().take_while(|(since, _)| *since <= cursor);
        until.last().is_some_and(|(_, there)| *there)
    }
}

/// The changes of one root.
#[derive(Debug, Default)]
pub(super) struct Log {
    now: u64,
    entries: HashMap<Arc<Path>, Entry>,
    cursors: HashMap<ServerKey, u64>,
    /// Each file once, the latest last.
    latest: VecDeque<(u64, Arc<Path>)>,
    /// When the last of those changed that are not among them any more.
    forgotten_at: u64,
    lost_at: Option<u64>,
    partial: bool,
}

impl Log {
    /// Adds a change.
    pub(super) fn add(&mut self, change: FileChange) {
        self.now += 1;
        let (now, asked) = (self.now, self.cursors.values().max().copied().unwrap_or(0));
        let before = change.kind != FileChangeKind::Created;
        self.latest.retain(|(_, path)| *path != change.path);
        self.latest.push_back((now, Arc::clone(&change.path)));
        if self.latest.len() > LATEST {
            self.forgotten_at = self.latest.pop_front().map_or(now, |(at, _)| at);
        }
        let entry = self.entries.entry(change.path);
        let entry = entry.or_insert_with(|| Entry { at: now, there: vec![(0, before)] });
        entry.at = now;
        let there = change.kind != FileChangeKind::Deleted;
        if entry.is_there() != there {
            entry.there.retain(|(since, _)| *since <= asked);
            entry.there.push((now, there));
        }
        if self.entries.len() > MOST {
            self.entries.clear();
            self.lose();
        }
    }

    /// Takes note that changes happened which nobody will ever name.
    pub(super) fn lose(&mut self) {
        self.now += 1;
        self.lost_at = Some(self.now);
    }

    /// Takes note that not everything is watched.
    pub(super) fn give_up(&mut self) {
        self.partial = true;
    }

    /// Names the present moment; `None` where a change could go by unseen.
    pub(super) fn moment(&self) -> Option<Moment> {
        (!self.partial).then_some(Moment(self.now))
    }

    /// Returns the latest changes after a moment; `None` where there were none.
    pub(super) fn after(&self, moment: Moment) -> Option<Vec<Arc<Path>>> {
        (self.now > moment.0).then(|| self.names(moment).take(NAMED).collect())
    }

    /// Returns everything that changed after a moment; `None` where that is not known.
    pub(super) fn all_after(&self, moment: Moment) -> Option<Vec<Arc<Path>>> {
        let unknown = self.forgotten_at.max(self.lost_at.unwrap_or(0)) > moment.0;
        (!unknown).then(|| self.names(moment).collect())
    }

    /// The latest first.
    fn names(&self, moment: Moment) -> impl Iterator<Item = Arc<Path>> {
        let after = self.latest.iter().rev().take_while(move |(at, _)| *at > moment.0);
        after.map(|(_, path)| Arc::clone(path))
    }

    /// Returns what is new to a server and moves its cursor.
    pub(super) fn since(&mut self, server: &ServerKey) -> Since {
        let Some(cursor) = self.cursors.insert(server.clone(), self.now) else {
            let (changes, partial) = (Vec::new(), self.partial);
            return Since { changes, first: true, lost: false, partial };
        };
        let mut found = BTreeMap::new();
        for (path, entry) in &self.entries {
            let kind = match (entry.was_there(cursor), entry.is_there()) {
                _ if entry.at <= cursor => continue,
                (false, true) => FileChangeKind::Created,
                (true, true) => FileChangeKind::Changed,
                (true, false) => FileChangeKind::Deleted,
                (false, false) => continue,
            };
            found.insert(entry.at, FileChange { path: Arc::clone(path), kind });
        }
        self.forget();
        let lost = self.lost_at.is_some_and(|at| at > cursor);
        let (changes, partial) = (found.into_values().collect(), self.partial);
        Since { changes, first: false, lost, partial }
    }

    /// Drops what every server has heard of.
    fn forget(&mut self) {
        let oldest = self.cursors.values().min().copied().unwrap_or(self.now);
        self.entries.retain(|_, entry| entry.at > oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::tests::key;

    #[test]
    fn what_changed_after_a_moment_is_known_whoever_else_asks() {
        let mut log = Log::default();
        let change =
            |name: &str| FileChange { path: Path::new(name).into(), kind: FileChangeKind::Changed };
        log.add(change("a"));
        let moment = log.moment().expect("all is watched");
        assert_eq!(log.after(moment), None);
        log.add(change("b"));
        log.since(&key("1"));
        assert_eq!(log.after(moment), Some(vec![Path::new("b").into()]));
        (0..20).for_each(|n| log.add(change(&n.to_string())));
        assert_eq!(log.after(moment).map(|after| after.len()), Some(NAMED));
        log.give_up();
        assert_eq!(log.moment(), None);
    }

    /// `+a` creates, `~a` changes, `-a` deletes, `!` loses, `1?` lets server 1 ask.
    fn play(script: &str) -> Vec<String> {
        let mut log = Log::default();
        let mut answers = Vec::new();
        for word in script.split_whitespace() {
            if let Some(server) = word.strip_suffix('?') {
                let since = log.since(&key(server));
                let mark = |kind| match kind {
                    FileChangeKind::Created => '+',
                    FileChangeKind::Changed => '~',
                    FileChangeKind::Deleted => '-',
                };
                let changes = since.changes.iter();
                let mut answer: Vec<_> = changes
                    .map(|change| format!("{}{}", mark(change.kind), change.path.display()))
                    .collect();
                answer.extend(since.lost.then(|| "lost".to_owned()));
                answers.push(answer.join(" "));
            } else if word == "!" {
                log.lose();
            } else {
                let kind = match &word[..1] {
                    "+" => FileChangeKind::Created,
                    "~" => FileChangeKind::Changed,
                    _ => FileChangeKind::Deleted,
                };
                log.add(FileChange { path: Path::new(&word[1..]).into(), kind });
            }
        }
        answers
    }

    #[test]
    fn each_server_hears_of_each_change_once() {
        assert_eq!(play("1? 2? +a ~b 1? ~a 1? 2? 2?"), ["", "", "+a ~b", "~a", "~b +a", ""]);
    }

    #[test]
    fn what_came_and_went_between_two_questions_is_nothing() {
        assert_eq!(play("1? +a ~a -a 1?"), ["", ""]);
        assert_eq!(play("1? +a -a +a -a 1?"), ["", ""]);
    }

    #[test]
    fn what_went_and_came_back_has_changed() {
        assert_eq!(play("1? -a +a 1?"), ["", "~a"]);
        assert_eq!(play("1? -a +a -a +a 1?"), ["", "~a"]);
        assert_eq!(play("1? +a -a +a 1?"), ["", "+a"]);
        assert_eq!(play("1? 2? -a 1? +a 1? 2?"), ["", "", "-a", "+a", "~a"]);
        assert_eq!(play("1? 2? +a 1? -a +a 1? 2?"), ["", "", "+a", "~a", "+a"]);
    }

    #[test]
    fn everything_after_a_moment_is_named_or_not_known() {
        let mut log = Log::default();
        let change =
            |name: &str| FileChange { path: Path::new(name).into(), kind: FileChangeKind::Changed };
        log.add(change("before"));
        let moment = log.moment().expect("all is watched");
        assert_eq!(log.all_after(moment), Some(Vec::new()));
        for name in ["a", "b", "a"] {
            log.add(change(name));
        }
        let names = ["a", "b"].map(|name| Arc::from(Path::new(name)));
        assert_eq!(log.all_after(moment), Some(names.to_vec()));
        (0..LATEST).for_each(|n| log.add(change(&n.to_string())));
        assert_eq!(log.all_after(moment), None, "too many");
        let moment = log.moment().expect("all is watched");
        log.lose();
        assert_eq!(log.all_after(moment), None, "some were lost");
    }

    #[test]
    fn what_was_lost_is_said_once_to_each() {
        assert_eq!(play("1? 2? ! +a 1? 1? 2?"), ["", "", "+a lost", "", "+a lost"]);
    }
}
