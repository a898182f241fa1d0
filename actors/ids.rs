//! Identities as types, so that no two kinds can be mixed up.
//!
//! Numbers come from outside (`src` draws them at random), so that an id stays
//! unique over a restart of the daemon and tests can choose their own.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{:x}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                text.strip_prefix($prefix)
                    .and_then(|hex| u64::from_str_radix(hex, 16).ok())
                    .map(Self)
                    .ok_or_else(|| BadId { text: text.to_owned(), prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// Says that a text is not an id of the wanted kind.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not an id: expected `{prefix}` and hexadecimal digits")]
pub struct BadId {
    text: String,
    prefix: &'static str,
}

id!(
    /// One database and its folder.
    WorkspaceId,
    "w"
);
id!(
    /// A room with a worktree, a mode and a degree of autonomy.
    SpaceId,
    "s"
);
id!(
    /// A conversation in a space; a thread is one with a parent.
    ConversationId,
    "c"
);
id!(
    /// One agent's engagement in a conversation.
    RunId,
    "r"
);
id!(
    /// One call of a tool, unique in the daemon.
    CallId,
    "k"
);

/// How often the process behind a slot was started: 1 is the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// Returns the one that follows.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
