//! Which processes are left of a command, as far as its session tells.
//!
//! A process that made a session of its own is not found here; the tree knows of it
//! and kills it, but cannot name it.

use std::fs;

use serde::Serialize;

/// Processes that are named at most.
const NAMED: usize = 20;
/// Characters of a command line that are shown.
const COMMAND: usize = 100;

/// A process that is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Left {
    pub(crate) pid: u32,
    pub(crate) command: String,
}

/// Finds what is left of the session or group of a leader that has ended. Blocks. As
/// long as one is left, the kernel gives the leader's number to nobody else.
pub(crate) fn left_of(leader: u32) -> Vec<Left> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let mut left: Vec<Left> = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| is_of(*pid, leader))
        .map(|pid| Left { pid, command: command_of(pid) })
        .collect();
    left.sort_by_key(|left| left.pid);
    left.truncate(NAMED);
    left
}

fn is_of(pid: u32, leader: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat_is_of(&stat, leader))
}

/// Reads a line of `/proc/PID/stat`. The name stands in brackets and may hold some.
fn stat_is_of(stat: &str, leader: u32) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut fields = rest.split_ascii_whitespace();
    let alive = !matches!(fields.next(), None | Some("Z" | "X"));
    let leader = leader.to_string();
    // After the state: parent, group, session.
    alive && fields.skip(1).take(2).any(|field| field == leader)
}

fn command_of(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let mut shown: String = line.trim_end().chars().take(COMMAND).collect();
    if shown.len() < line.trim_end().len() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_belongs_to_its_group_and_session() {
        for (stat, expected) in [
            ("9 (sleep) S 1 7 5 0 -1", true),
            ("9 (sleep) S 1 5 7 0 -1", true),
            ("9 (sleep) S 7 5 5 0 -1", false),
            ("9 (a) S 1 7 7 (b) S 1 5 5 0", false),
            ("9 (sleep) Z 1 7 7 0 -1", false),
            ("garbage", false),
        ] {
            assert_eq!(stat_is_of(stat, 7), expected, "{stat}");
        }
    }
}
