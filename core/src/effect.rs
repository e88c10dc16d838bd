//! What `step` wants done. Effects are values: the server runs them and their answers come back as events.

use std::sync::Arc;

use crate::event::Persisted;
use crate::ids::{AgentKey, EpisodeId};
use crate::time::Stamp;
use crate::view::Badge;

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Read the agent's transcript up to its end now, then answer `TranscriptRead` with this request.
    ReadTranscript { agent: AgentKey, request: u64 },
    /// Follow this transcript by a watch while `on` (design: busy, needs-input, unknown, review).
    WatchTranscript { agent: AgentKey, on: bool },
    /// The hook's payload or the status file names this transcript for this agent.
    UseTranscript {
        agent: AgentKey,
        path: Option<Arc<str>>,
        conversation: Option<Arc<str>>,
    },
    /// Report `ProcessQuiet` once a second while `on` (start-up dialogs, D06).
    WatchCpu { agent: AgentKey, on: bool },
    /// Tell the person: an episode has held for the dwell of rule 6. `silent`: update without sound, for a turn
    /// nobody typed or another ask in an episode that was told before. At most one is not silent per episode.
    Notify {
        agent: AgentKey,
        episode: EpisodeId,
        badge: Badge,
        silent: bool,
    },
    /// The episode is over; take the notification back.
    Withdraw { agent: AgentKey, episode: EpisodeId },
    /// The badge was committed: keep it over a restart. Comes before anything is sent.
    Persist {
        agent: AgentKey,
        badge: Badge,
        since: Stamp,
        episode: Option<EpisodeId>,
        /// Kept in its stead, without a tab: the badge from before a compaction, which comes back after it.
        beneath: Option<Persisted>,
    },
    /// The agent is gone: forget what was kept of it.
    Forget { agent: AgentKey },
    /// A piece of evidence or a verdict, in words, for the journal.
    Record {
        agent: AgentKey,
        at: Stamp,
        line: Arc<str>,
    },
}
