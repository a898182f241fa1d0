//! What a turn may see: profile × wired resources, pure.
//!
//! The surface is the guarantee that holds on any host: a tool that is not on it
//! is in no schema and in no preamble. The preamble is generated from the tools
//! that are really there.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use hostler_actors::ports::Surface;
use hostler_actors::profile::{Profile, Tier, WorktreePosture};

use crate::tools::{TOOLS, Tool, Wired};

/// What is wired for a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wiring {
    /// It has a work folder.
    pub(crate) folder: bool,
    /// It has parsers.
    pub(crate) trees: bool,
    /// It has a language-server supervisor.
    pub(crate) language_servers: bool,
    /// It is part of a conversation with a debug-session supervisor.
    pub(crate) debug_sessions: bool,
    /// It is a run with a supervisor of interpreters.
    pub(crate) interpreters: bool,
}

/// Why a tool is not on a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// Its tier is above the mode's.
    Tier(Tier),
    /// It changes the worktree, which the mode keeps read-only.
    Worktree,
    /// What it needs is not wired.
    NotWired,
}

/// Says whether a profile and a wiring leave a tool on the surface.
pub(crate) fn visible(tool: &Tool, profile: &Profile, wiring: Wiring) -> Result<(), Hidden> {
    let wired = match tool.wired {
        Wired::Folder => wiring.folder,
        Wired::Trees => wiring.folder && wiring.trees,
        Wired::LanguageServers => wiring.folder && wiring.language_servers,
        Wired::DebugSessions => wiring.folder && wiring.debug_sessions,
        Wired::Interpreters => wiring.folder && wiring.interpreters,
    };
    if !wired {
        Err(Hidden::NotWired)
    } else if tool.tier > profile.max_tier {
        Err(Hidden::Tier(tool.tier))
    } else if tool.mutates_worktree && profile.worktree == WorktreePosture::ReadOnly {
        Err(Hidden::Worktree)
    } else {
        Ok(())
    }
}

/// Materialises a surface.
pub(crate) fn materialise(profile: &Arc<Profile>, wiring: Wiring, folder: &Path) -> Surface {
    let tools: Vec<_> =
        TOOLS.iter().filter(|tool| visible(tool, profile, wiring).is_ok()).collect();
    Surface {
        profile: Arc::clone(profile),
        preamble: preamble(profile, &tools, folder),
        tools: tools.iter().map(|tool| tool.card()).collect(),
    }
}

fn preamble(profile: &Profile, tools: &[&Tool], folder: &Path) -> String {
    let worktree = match profile.worktree {
        WorktreePosture::Writable => "may be changed",
        WorktreePosture::ReadOnly => "is read-only",
    };
    let mut text = format!(
        "You work in {}, which {worktree}. Paths are relative to it. The mode is {}.\n\nTools:\n",
        folder.display(),
        profile.mode,
    );
    for tool in tools {
        let first = tool.description.split_inclusive(". ").next().unwrap_or_default().trim_end();
        let _ = writeln!(text, "- `{}` ({}): {first}", tool.name, tool.tier);
    }
    if !profile.guidance.trim().is_empty() {
        let _ = write!(text, "\n{}\n", profile.guidance.trim());
    }
    text
}

#[cfg(test)]
mod tests {
    use hostler_actors::profile::Mode;

    use super::*;

    fn profile(max_tier: Tier, worktree: WorktreePosture) -> Arc<Profile> {
        Arc::new(Profile { mode: Mode::Chat, max_tier, worktree, guidance: String::new() })
    }

    fn names(profile: &Arc<Profile>, wiring: Wiring) -> Vec<String> {
        let surface = materialise(profile, wiring, Path::new("/project"));
        for tool in &surface.tools {
            assert!(surface.preamble.contains(&format!("`{}`", tool.name)), "{}", tool.name);
        }
        surface.tools.into_iter().map(|tool| tool.name).collect()
    }

    const ALL: Wiring = Wiring {
        folder: true,
        trees: true,
        language_servers: true,
        debug_sessions: true,
        interpreters: true,
    };

    #[test]
    fn the_tier_and_the_posture_take_tools_away() {
        let read = ["read", "grep", "glob", "ast_grep", "lsp"];
        let full = profile(Tier::Exec, WorktreePosture::Writable);
        assert_eq!(
            names(&full, ALL),
            [
                &read[..],
                &[
                    "write",
                    "edit",
                    "apply_patch",
                    "ast_edit",
                    "lsp_rename",
                    "lsp_apply",
                    "resolve",
                    "bash",
                    "eval",
                    "debug"
                ]
            ]
            .concat()
        );
        assert_eq!(names(&profile(Tier::Read, WorktreePosture::Writable), ALL), read);
        let posture = profile(Tier::Write, WorktreePosture::ReadOnly);
        assert_eq!(names(&posture, ALL), read);
    }

    #[test]
    fn what_is_not_wired_is_not_there() {
        let full = profile(Tier::Exec, WorktreePosture::Writable);
        let bare =
            Wiring { language_servers: false, debug_sessions: false, interpreters: false, ..ALL };
        let names_of = names(&full, bare);
        assert!(!names_of.iter().any(|name| name == "lsp" || name == "debug"));
        let nothing = Wiring { folder: false, ..ALL };
        assert!(names(&full, nothing).is_empty());
    }
}
