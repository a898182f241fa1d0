//! The background sample: what each tree uses, from one walk over `/proc`.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hostler_actors::status::{StatusTable, Usage};
use tokio::time::MissedTickBehavior;

use super::account::Account;
use super::procfs::{Table, page_size};

/// How old a sample can get.
const EVERY: Duration = Duration::from_secs(2);

/// Samples until the account is gone.
pub(super) async fn run(account: Weak<Account>, status: StatusTable) {
    let mut tick = tokio::time::interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(account) = account.upgrade() else { return };
        sample(&account, &status).await;
    }
}

/// Takes one sample now.
pub(super) async fn sample(account: &Arc<Account>, status: &StatusTable) {
    let trees = account
        .read(|(number, entry)| entry.core.as_ref().map(|core| (core.launcher, core.pid, *number)));
    let trees: Vec<_> = trees.into_iter().flatten().collect();
    if trees.is_empty() {
        return;
    }
    let roots: HashMap<u32, u64> =
        trees.iter().map(|(launcher, _, number)| (*launcher, *number)).collect();
    let walk = move || usages(&Table::read(), &roots, page_size());
    let Ok(samples) = tokio::task::spawn_blocking(walk).await else { return };
    for (row, pid) in status.pids() {
        let number = trees.iter().find(|(_, main, _)| *main == pid).map(|(.., number)| number);
        if let Some(usage) = number.and_then(|number| samples.get(number)) {
            status.sampled(row, *usage);
        }
    }
    account.sampled(&samples);
}

/// Adds up each tree. The outer launcher and the init, its child, do not count.
fn usages(table: &Table, roots: &HashMap<u32, u64>, page: u64) -> BTreeMap<u64, Usage> {
    let mut usages: BTreeMap<u64, Usage> =
        roots.values().map(|number| (*number, Usage::default())).collect();
    for process in table.iter().filter(|process| !process.zombie) {
        let root = table.lineage(process.pid).skip(2).find_map(|up| roots.get(&up.pid));
        let inside = root.filter(|_| !roots.contains_key(&process.parent));
        if let Some(usage) = inside.and_then(|number| usages.get_mut(number)) {
            usage.processes += 1;
            usage.resident_bytes += process.pages * page;
        }
    }
    usages
}

#[cfg(test)]
mod tests {
    use super::super::procfs::Stat;
    use super::*;

    #[test]
    fn a_tree_is_what_is_below_its_init() {
        let one = |pid, parent, zombie, pages| Stat { pid, parent, zombie, started: 0, pages };
        let table: Table = [
            one(1, 0, false, 100),
            one(10, 1, false, 1),  // launcher
            one(11, 10, false, 1), // init
            one(12, 11, false, 5),
            one(13, 12, false, 7),
            one(14, 11, true, 0),
            one(20, 1, false, 1), // launcher of a tree that is just starting
            one(99, 1, false, 50),
        ]
        .into_iter()
        .collect();
        let usages = usages(&table, &HashMap::from([(10, 1), (20, 2)]), 10);
        let expected = [(1, Usage { processes: 2, resident_bytes: 120 }), (2, Usage::default())];
        assert_eq!(usages, BTreeMap::from(expected));
    }
}
