//! The second wall of a read-only posture: a Landlock domain.
//!
//! Landlock grants and cannot except, so everything beside the path from the root
//! to the worktree is granted. It does not stop chmod and utimes; the read-only
//! mount does. It still holds where mounts cannot be made.

use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    path_beneath_rules,
};

use super::super::socket::Refusal;
use super::Refused;

/// Truncation is covered since the third version.
const VERSION: ABI = ABI::V3;

/// More entries than this beside the worktree's path are not granted one by one.
const MOST_RULES: usize = 8192;

/// Takes from this process the right to change anything below `worktree`.
pub(super) fn restrict(worktree: &Path, scratch: &Path) -> Result<(), Refused> {
    let granted = beside(worktree);
    if granted.len() > MOST_RULES {
        let text = format!(
            "sandbox: the folders above {} hold {} entries, the limit is {MOST_RULES}",
            worktree.display(),
            granted.len()
        );
        return Err(Refused(Refusal::Other, text));
    }
    let write = AccessFs::from_write(VERSION);
    let rules = granted.iter().map(PathBuf::as_path).chain([scratch]);
    domain(|domain| domain.add_rules(path_beneath_rules(rules, write)))
        .and_then(RulesetCreated::restrict_self)
        .map(drop)
        .map_err(|error| Refused(Refusal::Other, format!("sandbox: {error}")))
}

fn domain(
    fill: impl FnOnce(RulesetCreated) -> Result<RulesetCreated, RulesetError>,
) -> Result<RulesetCreated, RulesetError> {
    fill(Ruleset::default().handle_access(AccessFs::from_write(VERSION))?.create()?)
}

/// Every entry beside the path from the root to `path`. Links lead elsewhere, and
/// it is there that they are granted or not.
fn beside(path: &Path) -> Vec<PathBuf> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folders = path.ancestors().skip(1).flat_map(fs::read_dir).flatten().flatten();
    folders
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()))
        .map(|entry| entry.path())
        .filter(|entry| !path.starts_with(entry))
        .collect()
}
