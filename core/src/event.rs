//! Everything that can happen, as one closed list. A badge changes for no other reason than one of these.

use std::sync::Arc;

use crate::ids::{AgentKey, EpisodeId, PaneKey, TabId, WorkspaceId};
use crate::time::Stamp;
use crate::view::Badge;
use crate::witness::{Hook, Process, SessionFile, TranscriptFact};

/// One thing that happened. Whoever sends it also says when it arrived (`step(fleet, now, event)`);
/// where the source stamped it earlier, that stamp is inside.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    // Process witness.
    /// A Claude process exists (or is still the same one; then only the details are refreshed).
    ProcessFound { agent: AgentKey, process: Process },
    /// It is gone: its pidfd fired, or its start time differs.
    ProcessDied { agent: AgentKey },
    /// State T in `/proc/PID/stat` (Ctrl-Z), or no longer.
    ProcessStopped { agent: AgentKey, stopped: bool },
    /// Its `.key` file's name was seen in `sessions/` (the content is never read).
    KeyFileSeen { agent: AgentKey },
    /// The process used no CPU in the second before `now` (asked for by [`crate::Effect::WatchCpu`]).
    ProcessQuiet { agent: AgentKey, quiet: bool },
    /// The safety net looked for it and found no such process. Means something only to an agent that has been
    /// busy for [`crate::net::STUCK_AFTER`]: its witness has lost it.
    ProcessMissed { agent: AgentKey },

    // Claude's own status file.
    /// A whole reading. `at`: the file's mtime.
    FileRead {
        agent: AgentKey,
        at: Stamp,
        file: SessionFile,
    },
    /// The file was removed (Claude does so at every exit but kill -9).
    FileRemoved { agent: AgentKey },
    /// The file is there but can't be read or parsed: "don't know".
    FileUnreadable { agent: AgentKey, why: Arc<str> },

    /// A hook fired; which agent it belongs to is decided here.
    HookFired { hook: Box<Hook> },

    // Transcript.
    /// New lines of the agent's transcript, as they were seen.
    TranscriptGrew {
        agent: AgentKey,
        facts: Vec<TranscriptFact>,
    },
    /// The answer to [`crate::Effect::ReadTranscript`]: everything up to now has been delivered by
    /// `TranscriptGrew` before this. `ok: false`: could not be read.
    TranscriptRead {
        agent: AgentKey,
        request: u64,
        ok: bool,
    },

    /// The agent has been at work for a while, and its transcript still does not exist.
    TranscriptMissing { agent: AgentKey },

    // The person.
    /// The end of the answer was really seen (2 s, visible, focused).
    Seen { agent: AgentKey, episode: EpisodeId },
    /// Put away by hand: a review counts as read; a needs-input badge stays and is only silenced.
    Dismissed { agent: AgentKey, episode: EpisodeId },

    // tmux and layout.
    /// All panes of one tmux server, as listed now. A failed listing sends nothing.
    PanesListed { panes: Vec<PaneFacts> },
    /// The layout changed: all workspaces with their tabs in order.
    LayoutChanged { workspaces: Vec<WorkspaceFacts> },

    // Restart.
    /// What was persisted about an agent before the server stopped; sent before any witness speaks.
    Restored {
        agent: AgentKey,
        persisted: Persisted,
    },
    /// All witnesses have been asked once since the start.
    RecoveryEnded,

    /// The moment that [`crate::fleet::Fleet::deadline`] asked for has come.
    DeadlinePassed,
}

/// One pane as tmux lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaneFacts {
    /// Which pane.
    pub pane: PaneKey,
    /// The tmux session it is in now: a tab's id if it is ours.
    pub session: Arc<str>,
    /// `#{pane_current_command}`.
    pub command: Arc<str>,
    /// `#{pane_current_path}`.
    pub path: Arc<str>,
    /// `#{pane_title}`.
    pub title: Arc<str>,
    /// The pane's process has exited and `remain-on-exit` keeps it.
    pub dead: bool,
}

/// One workspace of the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceFacts {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: Arc<str>,
    /// Its default directory.
    pub dir: Arc<str>,
    /// Its tabs in order.
    pub tabs: Vec<TabFacts>,
}

/// One tab of the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TabFacts {
    /// Its id, also its tmux session's name.
    pub id: TabId,
    /// The name the person gave it, if any.
    pub name: Option<Arc<str>>,
    /// The directory it was opened in.
    pub cwd: Arc<str>,
    /// Its tmux session has ended.
    pub ended: bool,
}

/// What is kept of an agent over a restart of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Persisted {
    /// The badge as it was shown.
    pub badge: Badge,
    /// Since when.
    pub since: Stamp,
    /// The episode, if it was in one.
    pub episode: Option<EpisodeId>,
    /// The tab it was shown in.
    pub tab: Option<TabId>,
}
