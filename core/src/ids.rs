//! Identities. Every id is its own type so that the compiler keeps them apart; none is ever derived
//! from a directory, a title or another thing that may change.

use std::fmt;
use std::sync::Arc;

use crate::time::Time;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Arc<str>);

        impl $name {
            /// The id as it is written in messages and on disk.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// The machine an agent or tab runs on.
    HostId
);
text_id!(
    /// One shell in one tmux session of ours; also that session's name.
    TabId
);
text_id!(
    /// Panes, tabs and a default directory.
    WorkspaceId
);
text_id!(
    /// Claude's session id; an agent may change conversation (`/clear`, `/resume`).
    ConversationId
);
text_id!(
    /// A random id that a hook carries, so that a repeat is harmless.
    HookId
);

/// One running Claude Code process: a pid means nothing without its start time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentKey {
    /// Where it runs.
    pub host: HostId,
    /// Process id.
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`: clock ticks after boot at which the process started (proc(5)).
    pub start: u64,
}

/// A clock tick as processes see it: Linux tells all of them 100 a second (`getconf CLK_TCK`; proc(5), time(7)).
const TICK_MS: u64 = 10;

impl AgentKey {
    /// When the process started, to a tick and never later: nothing that happened before is its doing.
    #[must_use]
    pub const fn born(&self) -> Time {
        Time::from_ms(self.start.saturating_mul(TICK_MS))
    }
}

impl fmt::Display for AgentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.host, self.pid, self.start)
    }
}

/// One running tmux server, told apart from another on the same socket by pid and start time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TmuxServer {
    /// Where it runs.
    pub host: HostId,
    /// The server's process id.
    pub pid: u32,
    /// The server's start time in clock ticks (proc(5), field 22).
    pub start: u64,
}

/// One tmux pane: `%id` is unique only within its server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaneKey {
    /// The server that owns the pane.
    pub server: TmuxServer,
    /// The number behind `%`.
    pub pane: u32,
}

/// One uninterrupted stay in needs-input or review; the unit of notification. Never reused within a
/// server's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpisodeId(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n10_an_agent_is_named_by_machine_process_and_start() {
        let key = AgentKey {
            host: HostId::from("here"),
            pid: 12,
            start: 345,
        };
        assert_eq!(key.to_string(), "here:12:345");
        assert_eq!(key.born(), Time::from_ms(3_450));
    }
}
