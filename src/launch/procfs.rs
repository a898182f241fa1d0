//! What `/proc` says of processes, read for many at once or for one.
//!
//! Reads block for microseconds; a walk over all belongs on a blocking thread.
//! `children` files are not used: not every kernel has them.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// Deeper chains of parents than this are taken for a race while reading.
const DEEPEST: usize = 256;

/// What `/proc/<pid>/stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: u32,
    pub(super) parent: u32,
    /// A zombie uses nothing and cannot be killed.
    pub(super) zombie: bool,
    /// In clock ticks since boot: with the pid, the identity of a process.
    pub(super) started: u64,
    /// Resident pages.
    pub(super) pages: u64,
}

/// Reads one process. `None` when it has gone.
pub(super) fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name is in brackets and may hold brackets and spaces.
    let (head, tail) = text.rsplit_once(") ")?;
    let mut fields = tail.split_ascii_whitespace();
    let pid = head.split_once(" (")?.0.parse().ok()?;
    let zombie = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    // Fields 22 and 24 of proc(5); `fields` stands at field 5.
    let started = fields.nth(17)?.parse().ok()?;
    let pages = fields.nth(1)?.parse().unwrap_or(0);
    Some(Stat { pid, parent, zombie, started, pages })
}

/// Returns the ids of all processes that can be seen.
fn pids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// All processes, by id.
#[derive(Debug, Default)]
pub(super) struct Table(HashMap<u32, Stat>);

impl Table {
    pub(super) fn read() -> Self {
        pids().into_iter().filter_map(stat).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Stat> {
        self.0.values()
    }

    /// The process's ancestors from itself upwards.
    pub(super) fn lineage(&self, pid: u32) -> impl Iterator<Item = &Stat> {
        let mut at = self.0.get(&pid);
        std::iter::from_fn(move || {
            let here = at?;
            at = self.0.get(&here.parent);
            Some(here)
        })
        .take(DEEPEST)
    }

    /// The living descendants of `root`, itself left out.
    pub(super) fn below(&self, root: u32) -> Vec<u32> {
        let below =
            |stat: &&Stat| !stat.zombie && self.lineage(stat.pid).skip(1).any(|up| up.pid == root);
        self.iter().filter(below).map(|stat| stat.pid).collect()
    }
}

impl FromIterator<Stat> for Table {
    fn from_iter<I: IntoIterator<Item = Stat>>(all: I) -> Self {
        Self(all.into_iter().map(|stat| (stat.pid, stat)).collect())
    }
}

/// The process's ancestors from itself upwards, read one by one.
pub(super) fn lineage(pid: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(pid), |pid| Some(stat(*pid)?.parent)).take(DEEPEST)
}

/// Returns how many bytes of memory there are for us: the machine's, or less where
/// a control group says so.
pub(super) fn memory() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
    });
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = group
        .lines()
        .flat_map(group_limits)
        .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok());
    limits.chain(machine).min().unwrap_or(u64::MAX)
}

/// The files that may limit the memory of one line of `/proc/self/cgroup`: those
/// of the group and of every group above it, since the strictest wins.
fn group_limits(line: &str) -> Vec<String> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (mount, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|one| one == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let ancestors = std::path::Path::new(path).ancestors();
    ancestors
        .map(|group| {
            let group = String::from_utf8_lossy(group.as_os_str().as_bytes()).into_owned();
            format!("{mount}/{}/{file}", group.trim_matches('/'))
        })
        .collect()
}

/// The size of a page in bytes.
pub(super) fn page_size() -> u64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .and_then(|size| u64::try_from(size).ok())
        .unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_name_may_look_like_fields() {
        let text = "42 (a) R (b)) S 7 42 42 0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0 555 1000 33 1";
        let expected = Stat { pid: 42, parent: 7, zombie: false, started: 555, pages: 33 };
        assert_eq!(parse_stat(text), Some(expected));
        assert_eq!(parse_stat("nothing"), None);
    }

    #[test]
    fn descendants_are_found_over_generations_and_circles_end() {
        let one = |pid, parent, zombie| Stat { pid, parent, zombie, started: 0, pages: 1 };
        let table: Table = [
            one(1, 0, false),
            one(2, 1, false),
            one(3, 2, false),
            one(4, 3, false),
            one(5, 3, true),
            one(8, 9, false),
            one(9, 8, false),
        ]
        .into_iter()
        .collect();
        let mut below = table.below(2);
        below.sort_unstable();
        assert_eq!(below, [3, 4]);
        assert_eq!(table.lineage(8).count(), DEEPEST);
    }

    #[test]
    fn a_group_is_limited_by_those_above_it() {
        assert_eq!(
            group_limits("0::/a/b"),
            [
                "/sys/fs/cgroup/a/b/memory.max",
                "/sys/fs/cgroup/a/memory.max",
                "/sys/fs/cgroup//memory.max"
            ]
        );
        assert_eq!(group_limits("3:cpu:/a"), Vec::<String>::new());
        assert_eq!(group_limits("4:memory:/").len(), 1);
    }

    #[test]
    fn this_process_can_be_read() {
        let me = stat(std::process::id()).unwrap();
        assert_eq!(me.parent, std::os::unix::process::parent_id());
        assert!(me.pages > 0 && memory() > 0);
    }
}
