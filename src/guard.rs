//! The place where a call is weighed before it runs.
//!
//! Pure: a tool's declared effects and the turn's profile go in, a verdict comes
//! out. With `act_freely` in `chat`, the only pair that exists yet, nothing asks
//! and nothing is denied beyond the surface; what a profile denies is denied here
//! whatever the surface said, so that neither has to trust the other.

use hostler_actors::profile::{Profile, WorktreePosture};

use crate::tools::{Effect, Tool};

/// What the guard says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may run.
    Go,
    /// It must not, and why.
    Deny(String),
}

/// Weighs a call.
pub(crate) fn weigh(tool: &Tool, profile: &Profile) -> Verdict {
    let writes = tool.effects.contains(&Effect::WorktreeWrite);
    if writes && profile.worktree == WorktreePosture::ReadOnly {
        return Verdict::Deny(format!(
            "{}: denied: it changes the worktree, which is read-only in the mode {}",
            tool.name, profile.mode
        ));
    }
    if tool.tier > profile.max_tier {
        return Verdict::Deny(format!(
            "{}: denied: it is of tier {}, and the mode {} allows up to {}",
            tool.name, tool.tier, profile.mode, profile.max_tier
        ));
    }
    Verdict::Go
}

#[cfg(test)]
mod tests {
    use hostler_actors::profile::{Mode, Tier};

    use super::*;
    use crate::surface::{Wiring, visible};
    use crate::tools::TOOLS;

    /// The surface and the guard, held against each other over everything.
    #[test]
    fn what_the_surface_hides_the_guard_denies_and_nothing_else() {
        let wiring = Wiring {
            folder: true,
            trees: true,
            language_servers: true,
            debug_sessions: true,
            interpreters: true,
        };
        for worktree in [WorktreePosture::Writable, WorktreePosture::ReadOnly] {
            for max_tier in [Tier::Read, Tier::Write, Tier::Exec] {
                let profile =
                    Profile { mode: Mode::Chat, max_tier, worktree, guidance: String::new() };
                for tool in TOOLS {
                    let shown = visible(tool, &profile, wiring).is_ok();
                    let allowed = weigh(tool, &profile) == Verdict::Go;
                    assert_eq!(shown, allowed, "{} under {profile:?}", tool.name);
                }
            }
        }
    }
}
