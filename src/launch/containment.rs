//! Which walls this host can put up, found out once by putting them up.
//!
//! The probe is a real launch of a program that does nothing, down a ladder from
//! the best walls to none; the reason why a rung failed is kept for `status`.

use std::fmt;

use hostler_actors::ports::Posture;
use landlock::{ABI, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};

use super::order::Walls;

/// What holds the trees of this host, and why not more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Containment {
    writable: Rung,
    read_only: Rung,
    landlock: bool,
}

/// The best walls that worked, and why each better rung did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rung {
    pub(super) walls: Walls,
    pub(super) failed: Vec<String>,
}

impl Containment {
    pub(super) fn new(writable: Rung, read_only: Rung) -> Self {
        Self { writable, read_only, landlock: landlock_works() }
    }

    pub(super) fn walls(&self, posture: &Posture) -> Walls {
        match posture {
            Posture::Writable => self.writable.walls,
            Posture::ReadOnly { .. } => Walls { landlock: self.landlock, ..self.read_only.walls },
        }
    }

    /// Does the kernel itself end a tree with its init; else a subreaper hunts it.
    #[must_use]
    pub fn has_pid_namespaces(&self) -> bool {
        self.writable.walls.pid
    }

    /// Are the daemon's folders hidden from the trees.
    #[must_use]
    pub fn hides_folders(&self) -> bool {
        self.writable.walls.mount
    }

    /// Is a read-only worktree read-only for the processes too, by at least one wall.
    #[must_use]
    pub fn enforces_read_only(&self) -> bool {
        self.read_only.walls.mount || self.landlock
    }
}

impl fmt::Display for Containment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |walls: Walls| {
            let names = [
                (walls.pid, "pid namespace"),
                (!walls.pid, "subreaper"),
                (walls.mount, "mount namespace"),
                (walls.user, "user namespace"),
                (walls.landlock, "landlock"),
            ];
            names
                .into_iter()
                .filter_map(|(on, name)| on.then_some(name))
                .collect::<Vec<_>>()
                .join(", ")
        };
        write!(f, "processes: {}", list(self.writable.walls))?;
        let read_only = Walls { landlock: self.landlock, ..self.read_only.walls };
        write!(f, "; read-only: {}", list(read_only))?;
        if !self.enforces_read_only() {
            f.write_str(" (a read-only worktree is not enforced on processes)")?;
        }
        let mut reasons: Vec<_> =
            self.writable.failed.iter().chain(&self.read_only.failed).collect();
        reasons.sort_unstable();
        reasons.dedup();
        reasons.into_iter().try_for_each(|reason| write!(f, "; not available: {reason}"))
    }
}

/// The walls to try, best first. A user namespace costs a tree its other ids, so
/// root does without where it can; for a read-only worktree it is what keeps the
/// target from undoing the bind.
pub(super) fn ladder(root: bool, read_only: bool) -> Vec<Walls> {
    let walls = |user, pid, mount| Walls { user, pid, mount, landlock: false };
    let users: &[bool] = match (root, read_only) {
        (true, false) => &[false, true],
        (true, true) => &[true, false],
        (false, _) => &[true],
    };
    let rung = |pid| users.iter().map(move |user| walls(*user, pid, true));
    rung(true).chain(rung(false)).chain([Walls::default()]).collect()
}

fn landlock_works() -> bool {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(ABI::V1))
        .and_then(Ruleset::create)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_goes_from_best_to_none() {
        let names = |root, read_only| -> Vec<String> {
            let name = |walls: Walls| {
                let on = [(walls.user, 'u'), (walls.pid, 'p'), (walls.mount, 'm')];
                on.into_iter().filter_map(|(on, name)| on.then_some(name)).collect()
            };
            ladder(root, read_only).into_iter().map(name).collect()
        };
        assert_eq!(names(true, false), ["pm", "upm", "m", "um", ""]);
        assert_eq!(names(true, true), ["upm", "pm", "um", "m", ""]);
        assert_eq!(names(false, true), ["upm", "um", ""]);
    }
}
