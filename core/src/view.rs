//! What is shown. Values only; the five words of the badge and the details inside them.

use std::sync::Arc;

use crate::ids::{AgentKey, ConversationId, EpisodeId, HostId, PaneKey, TabId, WorkspaceId};
use crate::time::Stamp;

/// The state shown next to a session. Details live inside a state and die with it; there is no sixth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Badge {
    /// Claude waits for the next prompt.
    Idle,
    /// Claude works.
    Busy(Doing),
    /// Something waits for the person.
    NeedsInput(Ask),
    /// Claude finished; there is something to look at.
    Review(Outcome),
    /// Was busy when the server restarted; resolves by itself.
    Unknown,
}

/// What a busy agent is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doing {
    /// The main lane's current tool and its argument.
    pub tool: Option<(Arc<str>, Option<Arc<str>>)>,
    /// Between PreCompact and PostCompact.
    pub compacting: bool,
    /// Retrying an API request.
    pub retrying: bool,
    /// Running subagents.
    pub agents: u32,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Never reused; an answer must name it.
    pub id: u64,
    /// Permission, question, plan, form, dialog or startup.
    pub kind: AskKind,
    /// The command, question or message, verbatim but cleaned; absent while unknown.
    pub text: Option<Arc<str>>,
    /// The tool it is about.
    pub tool: Option<Arc<str>>,
    /// Claude's own option labels, where a hook carried them.
    pub options: Vec<Arc<str>>,
}

/// The kinds of ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AskKind {
    /// May this tool run?
    Permission,
    /// AskUserQuestion.
    Question,
    /// ExitPlanMode.
    Plan,
    /// An MCP elicitation.
    Form,
    /// A dialog of Claude's that no hook describes.
    Dialog,
    /// Trust and other dialogs before the first status file.
    Startup,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// `None`: finished. Otherwise the kind of failure, as Claude names it.
    pub error: Option<Arc<str>>,
    /// Background shells still running.
    pub shells: u32,
    /// Next scheduled wake-up in unix ms.
    pub wakes_at_ms: Option<i64>,
}

/// The process, apart from its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Presence {
    /// No agent.
    #[default]
    None,
    /// A process, but no status yet.
    Starting,
    /// Alive.
    Running,
    /// Stopped with Ctrl-Z.
    Suspended,
    /// Its session goes on in a background process.
    Elsewhere,
    /// It ended.
    Gone,
}

/// One row: a tab with or without an agent, or an agent without a tab.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The tab's id for a tab's (first) agent or empty tab; `host:pid:start` for any other agent.
    pub id: Arc<str>,
    /// The machine.
    pub host: HostId,
    /// The tab it is in.
    pub tab: Option<TabId>,
    /// That tab's workspace.
    pub workspace: Option<WorkspaceId>,
    /// The agent.
    pub agent: Option<AgentKey>,
    /// The pane that the agent runs in, of whatever tmux server.
    pub pane: Option<PaneKey>,
    /// Its conversation.
    pub conversation: Option<ConversationId>,
    /// Its directory now.
    pub cwd: Option<Arc<str>>,
    /// The badge; `None`: no agent.
    pub badge: Option<Badge>,
    /// When the badge became this.
    pub since: Stamp,
    /// Of the process.
    pub presence: Presence,
    /// What the row is called.
    pub title: Arc<str>,
    /// Claude's last words.
    pub last_message: Option<Arc<str>>,
    /// A short label that is no state: `interrupted`, `headless`, `ended without Stop`, `no transcript`.
    pub label: Option<Arc<str>>,
    /// Tokens in the context, if known.
    pub context_tokens: Option<u64>,
    /// Tokens that the context holds, if Claude has said so.
    pub context_window: Option<u64>,
    /// The model that counted them, in Claude's own word.
    pub model: Option<Arc<str>>,
    /// Our hooks have been heard from this agent, or are among its settings, and no whole turn has passed
    /// without one since.
    pub hooks: bool,
    /// Counts for the bell and the title: needs-input or review, and not silenced or suspended.
    pub attention: bool,
    /// The episode, in needs-input and review.
    pub episode: Option<EpisodeId>,
}

/// A workspace with the most urgent state inside (rule 7).
#[derive(Clone, Debug, PartialEq)]
pub struct WorkspaceView {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: Arc<str>,
    /// Its default directory.
    pub dir: Arc<str>,
    /// Its tabs in order.
    pub tabs: Vec<TabId>,
    /// The most urgent badge inside: needs-input, review failed, review, busy, unknown, idle, none.
    pub badge: Option<Badge>,
}

/// Who said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The operating system.
    Process,
    /// Claude's own status file.
    File,
    /// A hook.
    Hook,
    /// The transcript.
    Transcript,
    /// The person at the page.
    Person,
    /// What was kept over a restart.
    Restart,
    /// Our own conclusion.
    Verdict,
}

/// What one piece of evidence would make of the badge if nothing else were known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Says {
    /// At rest: it waits for a prompt, or has ended a turn.
    Idle,
    /// It works.
    Busy,
    /// A tool call has no result yet: it runs, or somebody is asked about it.
    Open,
    /// Somebody is asked.
    NeedsInput,
    /// A turn has ended.
    Review,
}

impl Says {
    /// Whether it fits this badge.
    #[must_use]
    pub fn fits(self, badge: &Badge) -> bool {
        match badge {
            Badge::Idle | Badge::Review(_) => matches!(self, Self::Idle | Self::Review),
            Badge::Busy(_) => matches!(self, Self::Busy | Self::Open),
            Badge::NeedsInput(_) => matches!(self, Self::NeedsInput | Self::Open),
            Badge::Unknown => false,
        }
    }

    /// Whether it says just this badge's word.
    pub(crate) fn is(self, badge: &Badge) -> bool {
        match badge {
            Badge::Idle => self == Self::Idle,
            Badge::Busy(_) => matches!(self, Self::Busy | Self::Open),
            Badge::NeedsInput(_) => self == Self::NeedsInput,
            Badge::Review(_) => self == Self::Review,
            Badge::Unknown => false,
        }
    }
}

/// One line of "why this state".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// When it happened, stamped at the source.
    pub at: Stamp,
    /// Who said it.
    pub source: Source,
    /// What, in words.
    pub line: Arc<str>,
    /// What it says about the badge, if anything.
    pub says: Option<Says>,
    /// The present badge came with this; at most one line of an agent has it.
    pub decided: bool,
}

#[cfg(test)]
mod tests;
