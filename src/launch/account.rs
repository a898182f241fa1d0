//! Who has how many processes and how much memory, and whether one more may start.
//!
//! The counts are those of the last sample plus what was started since; the
//! decision is pure.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hostler_actors::ports::{LaunchError, Owner};
use hostler_actors::status::Usage;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::tree::Core;

/// What all trees together may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Processes, launchers not counted.
    pub processes: u32,
    /// Resident bytes.
    pub resident_bytes: u64,
}

impl Default for Budget {
    /// 256 processes, and 60 % of the memory that the machine or our control group has.
    fn default() -> Self {
        Self { processes: 256, resident_bytes: super::procfs::memory() / 10 * 6 }
    }
}

/// One tree, or the place reserved for one that is being started.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) owner: Owner,
    pub(super) label: String,
    pub(super) since: Instant,
    pub(super) usage: Option<Usage>,
    pub(super) core: Option<Arc<Core>>,
}

impl Entry {
    /// What it counts for: one process until it was sampled.
    fn counted(&self) -> Usage {
        self.usage.unwrap_or(Usage { processes: 1, resident_bytes: 0 })
    }
}

#[derive(Debug)]
struct Books {
    closed: bool,
    last: u64,
    entries: BTreeMap<u64, Entry>,
}

/// The account of all trees.
#[derive(Debug)]
pub(super) struct Account {
    budget: Budget,
    books: Mutex<Books>,
    /// Told whenever a tree is there or gone.
    changed: Notify,
}

impl Account {
    pub(super) fn new(budget: Budget) -> Arc<Self> {
        let books = Books { closed: false, last: 0, entries: BTreeMap::new() };
        Arc::new(Self { budget, books: Mutex::new(books), changed: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses every start from now on.
    pub(super) fn close(&self) {
        self.lock().closed = true;
    }

    /// Reserves a place for one more tree, or says why there is none.
    pub(super) fn reserve(
        self: &Arc<Self>,
        owner: Owner,
        label: &str,
    ) -> Result<Place, LaunchError> {
        let mut books = self.lock();
        let label = label.to_owned();
        if books.closed {
            return Err(LaunchError::ShuttingDown { label });
        }
        if let Some(reason) = refusal(&self.budget, books.entries.values()) {
            return Err(LaunchError::Budget { label, reason });
        }
        books.last += 1;
        let number = books.last;
        let entry = Entry { owner, label, since: Instant::now(), usage: None, core: None };
        books.entries.insert(number, entry);
        Ok(Place { account: Arc::clone(self), number })
    }

    /// Reads all entries under the lock; `read` must not block.
    pub(super) fn read<T>(&self, read: impl FnMut((&u64, &Entry)) -> T) -> Vec<T> {
        self.lock().entries.iter().map(read).collect()
    }

    /// Writes samples into the entries that are still there.
    pub(super) fn sampled(&self, samples: &BTreeMap<u64, Usage>) {
        let mut books = self.lock();
        for (number, usage) in samples {
            if let Some(entry) = books.entries.get_mut(number) {
                entry.usage = Some(*usage);
            }
        }
    }

    /// Does `act` to every tree of `owner` (of everybody, if none is named), also to
    /// those that finish starting meanwhile, and waits until all are gone. Returns
    /// the labels of those that are not after `limit`.
    pub(super) async fn until_gone(
        &self,
        owner: Option<Owner>,
        limit: Duration,
        act: impl Fn(&Arc<Core>),
    ) -> Vec<String> {
        let mut done = HashSet::new();
        let mut sight = || {
            let seen = self.read(|(number, entry)| {
                if owner.is_some_and(|owner| owner != entry.owner) {
                    return None;
                }
                if let Some(core) = entry.core.as_ref().filter(|_| done.insert(*number)) {
                    act(core);
                }
                Some(entry.label.clone())
            });
            seen.into_iter().flatten().collect::<Vec<_>>()
        };
        let gone = async {
            loop {
                let told = self.changed.notified();
                tokio::pin!(told);
                told.as_mut().enable();
                if sight().is_empty() {
                    return;
                }
                told.await;
            }
        };
        match tokio::time::timeout(limit, gone).await {
            Ok(()) => Vec::new(),
            Err(_) => sight(),
        }
    }

    pub(super) fn usage(&self, owner: Owner) -> Usage {
        let books = self.lock();
        sum(books.entries.values().filter(|entry| entry.owner == owner))
    }
}

/// A place in the account; dropping it says that the tree is gone.
#[derive(Debug)]
pub(super) struct Place {
    account: Arc<Account>,
    pub(super) number: u64,
}

impl Place {
    /// Fills the place with the tree that was started.
    pub(super) fn fill(&self, core: &Arc<Core>) {
        if let Some(entry) = self.account.lock().entries.get_mut(&self.number) {
            entry.core = Some(Arc::clone(core));
        }
        self.account.changed.notify_waiters();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.account.lock().entries.remove(&self.number);
        self.account.changed.notify_waiters();
    }
}

fn sum<'a>(entries: impl Iterator<Item = &'a Entry>) -> Usage {
    entries.map(Entry::counted).fold(Usage::default(), |sum, one| Usage {
        resident_bytes: sum.resident_bytes + one.resident_bytes,
        processes: sum.processes + one.processes,
    })
}

/// Says why no further tree may start, if so.
fn refusal<'a>(
    budget: &Budget,
    entries: impl Iterator<Item = &'a Entry> + Clone,
) -> Option<String> {
    let used = sum(entries.clone());
    if used.processes >= budget.processes {
        let most = top(entries, |usage| u64::from(usage.processes), |n| n.to_string());
        return Some(format!(
            "{} processes run and the host's limit is {} ({most}); end some of them, or raise \
             `budget.processes`",
            used.processes, budget.processes
        ));
    }
    if used.resident_bytes >= budget.resident_bytes {
        let most = top(entries, |usage| usage.resident_bytes, mebibytes);
        return Some(format!(
            "processes hold {} of memory and the host's limit is {} ({most}); end some of them, \
             or raise `budget.resident`",
            mebibytes(used.resident_bytes),
            mebibytes(budget.resident_bytes)
        ));
    }
    None
}

/// Names the three owners that use most, each with its largest tree.
fn top<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    measure: impl Fn(Usage) -> u64,
    show: impl Fn(u64) -> String,
) -> String {
    let mut owners: Vec<(Owner, u64, &Entry)> = Vec::new();
    for entry in entries {
        let amount = measure(entry.counted());
        match owners.iter_mut().find(|(owner, ..)| *owner == entry.owner) {
            None => owners.push((entry.owner, amount, entry)),
            Some((_, total, largest)) => {
                *total += amount;
                if amount > measure(largest.counted()) {
                    *largest = entry;
                }
            }
        }
    }
    owners.sort_by_key(|(_, total, _)| std::cmp::Reverse(*total));
    let all = owners.len();
    let shown = owners.into_iter().take(3).map(|(owner, total, largest)| {
        format!("{}: {}, most by `{}`", Named(owner), show(total), largest.label)
    });
    let mut text = shown.collect::<Vec<_>>().join("; ");
    if all > 3 {
        text.push_str(&format!("; and {} more", all - 3));
    }
    text
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// An owner in words.
pub(super) struct Named(pub(super) Owner);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Owner::Host => f.write_str("host"),
            Owner::Run(run) => write!(f, "run {run}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use expect_test::expect;
    use hostler_actors::ids::RunId;

    fn entry(owner: Owner, label: &str, processes: u32, mebibytes: u64) -> Entry {
        let usage = Usage { processes, resident_bytes: mebibytes << 20 };
        let (label, since) = (label.to_owned(), Instant::now());
        Entry { owner, label, since, usage: Some(usage), core: None }
    }

    #[test]
    fn a_refusal_names_limit_use_and_way_out() {
        let budget = Budget { processes: 10, resident_bytes: 100 << 20 };
        let run = |n| Owner::Run(RunId(n));
        let mut all = vec![
            entry(Owner::Host, "gopls", 1, 30),
            entry(run(1), "npm", 5, 20),
            entry(run(1), "sh", 3, 1),
        ];
        assert_eq!(refusal(&budget, all.iter()), None);
        all.push(entry(run(2), "py", 1, 1));
        expect!["10 processes run and the host's limit is 10 (run r1: 8, most by `npm`; host: 1, most by `gopls`; run r2: 1, most by `py`); end some of them, or raise `budget.processes`"]
            .assert_eq(&refusal(&budget, all.iter()).unwrap());
        let all = [entry(Owner::Host, "gopls", 1, 100)];
        expect!["processes hold 100 MiB of memory and the host's limit is 100 MiB (host: 100 MiB, most by `gopls`); end some of them, or raise `budget.resident`"]
            .assert_eq(&refusal(&budget, all.iter()).unwrap());
    }

    #[test]
    fn a_place_counts_until_it_is_dropped() {
        let account = Account::new(Budget { processes: 2, resident_bytes: 1 });
        let first = account.reserve(Owner::Host, "a").unwrap();
        let _second = account.reserve(Owner::Host, "b").unwrap();
        assert!(matches!(account.reserve(Owner::Host, "c"), Err(LaunchError::Budget { .. })));
        drop(first);
        assert_eq!(account.usage(Owner::Host).processes, 1);
        account.close();
        assert!(matches!(account.reserve(Owner::Host, "c"), Err(LaunchError::ShuttingDown { .. })));
    }
}
