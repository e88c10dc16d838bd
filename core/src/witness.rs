//! What the witnesses say, in our words. Vendors' words are translated in `wire`; nothing here parses.

use std::sync::Arc;

use crate::ids::{AgentKey, ConversationId, HookId, PaneKey};
use crate::time::Stamp;

/// What a process is found to be when it is first seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The pane whose process tree it belongs to; on a tmux server of the person's own, as its environment
    /// and its ancestors say.
    pub pane: Option<PaneKey>,
    /// The nearest ancestor that is itself an agent: a nested `claude` never moves its parent.
    pub parent_agent: Option<AgentKey>,
    /// Working directory, if it could be read.
    pub cwd: Option<Arc<str>>,
    /// Our hooks are in its `--settings`; `None` when that can't be told.
    pub hooks: Option<bool>,
}

/// `status` of Claude's own status file (measured, 2.1.332). Absent in old versions and for the first
/// 0.2 to 1.9 s of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileStatus {
    /// Waits for a prompt.
    Idle,
    /// Works, subagents, retries and compaction included.
    Busy,
    /// A dialog is drawn; see [`WaitingFor`].
    Waiting,
    /// As idle, with a background shell still running.
    Shell,
}

/// `waitingFor` beside `waiting`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WaitingFor {
    /// `permission prompt` (a plan's approval as well), or the free text of older versions (`approve Bash`).
    Permission,
    /// `input needed`: a question or an MCP form.
    Input,
    /// `dialog open`: the person's own menu, or a dialog of auto mode.
    DialogOpen,
    /// `worker request`, `sandbox request`, `goal proposal` and whatever comes: a real dialog.
    Other(Arc<str>),
}

/// How the process was started, as far as its own file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentKind {
    /// In a terminal (`kind: interactive`, entrypoint `cli`).
    Interactive,
    /// `claude -p` and SDK runs (entrypoint `sdk-cli`): nobody is ever asked.
    Headless,
    /// A background session (`kind: bg`) with its job id, if written.
    Background,
    /// `daemon`, `daemon-worker`, spare workers: never listed.
    Hidden,
}

/// One whole reading of `sessions/<pid>.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFile {
    /// The conversation the process is in now.
    pub conversation: Option<ConversationId>,
    /// Absent: this version has no status, or not yet.
    pub status: Option<FileStatus>,
    /// Only with [`FileStatus::Waiting`].
    pub waiting_for: Option<WaitingFor>,
    /// `statusUpdatedAt`: when the status last changed, stamped by Claude (wall), put on the boot clock by
    /// the reader. Absent in old versions.
    pub status_since: Option<Stamp>,
    /// Interactive, headless, background or hidden.
    pub kind: AgentKind,
    /// The pane's session goes on in the background job with this id.
    pub parked_job: Option<Arc<str>>,
    /// The job this background session is.
    pub job: Option<Arc<str>>,
    /// Working directory at start.
    pub cwd: Option<Arc<str>>,
    /// Claude Code's version.
    pub version: Option<Arc<str>>,
    /// The session's name, if Claude gives it one.
    pub name: Option<Arc<str>>,
}

/// One hook as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Makes repeats harmless. `None` for the minimal body.
    pub id: Option<HookId>,
    /// When the hook process started, stamped by it.
    pub at: Stamp,
    /// Pid and start time of the Claude process that fired it, if the hook could tell.
    pub agent: Option<AgentKey>,
    /// The pane in the hook's environment (inherited: a nested agent shows its parent's).
    pub pane: Option<PaneKey>,
    /// `session_id` of the payload.
    pub conversation: Option<ConversationId>,
    /// `transcript_path` of the payload, not yet checked.
    pub transcript: Option<Arc<str>>,
    /// `cwd` of the payload: follows `cd` inside tools.
    pub cwd: Option<Arc<str>>,
    /// Set when a subagent's or teammate's loop fired it.
    pub agent_id: Option<Arc<str>>,
    /// `prompt_id` of the payload: the turn it belongs to. A queued prompt's own hook carries the id of the turn
    /// that runs meanwhile (measured, Claude Code 2.1.332); old versions have none.
    pub prompt_id: Option<Arc<str>>,
    /// Fired by a process with a job directory.
    pub job: bool,
    /// What happened.
    pub kind: HookKind,
}

/// A tool call as hooks show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// `tool_name`.
    pub name: Arc<str>,
    /// `tool_use_id`, where the payload has one (PermissionRequest has none).
    pub use_id: Option<Arc<str>>,
    /// One line saying what it works on: the command, the file, the pattern. Cleaned and bounded.
    pub arg: Option<Arc<str>>,
    /// A digest of the whole input, to match a PermissionRequest with its PreToolUse.
    pub input_digest: u64,
    /// The texts of AskUserQuestion: first question first.
    pub questions: Vec<Question>,
}

/// One question with its options, in Claude's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The question.
    pub text: Arc<str>,
    /// Labels in order.
    pub options: Vec<Arc<str>>,
    /// More than one may be chosen.
    pub multi: bool,
}

/// Why a session started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartSource {
    /// A new process.
    Startup,
    /// `--continue`, `--resume`, `/resume`.
    Resume,
    /// `/clear`.
    Clear,
    /// After a compaction: never a reason for idle.
    Compact,
    /// `--fork-session` or parked.
    Fork,
    /// One we do not know yet: treated like a start outside a turn.
    Other(Arc<str>),
}

/// An entry of `background_tasks` in Stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackgroundTasks {
    /// Running entries that are shells.
    pub shells: u32,
    /// Running entries of any other type (subagents, teammates).
    pub agents: u32,
}

/// The seventeen hooks we register, the minimal body, and everything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// SessionStart.
    SessionStart { source: StartSource },
    /// SessionEnd with its reason (`clear`, `resume`, `prompt_input_exit`, `other`, …).
    SessionEnd { reason: Arc<str> },
    /// UserPromptSubmit. `task_notification`: nobody typed it.
    Prompt {
        text: Arc<str>,
        task_notification: bool,
    },
    /// PreToolUse.
    ToolStarted { tool: ToolCall },
    /// PostToolUse.
    ToolEnded { tool: ToolCall },
    /// PostToolUseFailure: a failing tool is not a failed turn.
    ToolFailed { tool: ToolCall, interrupted: bool },
    /// PermissionRequest.
    PermissionRequested { tool: ToolCall },
    /// Notification with its type, if it has one.
    Notified {
        kind: Option<Arc<str>>,
        message: Arc<str>,
    },
    /// Elicitation: an MCP server asks for values.
    FormAsked { server: Arc<str>, message: Arc<str> },
    /// ElicitationResult.
    FormAnswered,
    /// Stop.
    Stopped {
        /// `last_assistant_message`, cleaned and bounded.
        last_message: Option<Arc<str>>,
        /// What still runs; `None` where the version does not say.
        background: Option<BackgroundTasks>,
        /// Unix ms of the next scheduled wake-up, from `session_crons`, if there is one.
        wakes_at_ms: Option<i64>,
        /// The list of crons is not empty, whether or not a time could be read.
        has_crons: bool,
        /// A Stop hook of the person's had vetoed the stop before.
        stop_hook_active: bool,
    },
    /// StopFailure with its kind, known or not, and its text.
    StopFailed {
        error: Arc<str>,
        message: Option<Arc<str>>,
    },
    /// SubagentStart.
    SubagentStarted { id: Arc<str>, kind: Arc<str> },
    /// SubagentStop; an empty `kind` is compaction's or recap's own and is ignored.
    SubagentStopped { id: Arc<str>, kind: Arc<str> },
    /// PreCompact; manual or auto.
    CompactStarted { manual: bool },
    /// PostCompact.
    CompactEnded,
    /// CwdChanged.
    CwdChanged { cwd: Arc<str> },
    /// No hook, but what Claude tells its status line: facts for the row, and nothing about the badge.
    StatusLine { line: StatusLine },
    /// A name we do not know: counted, changes nothing.
    Unknown { name: Arc<str> },
}

/// What Claude tells its status line after each answer (measured, 2.1.332; the limits are read from its program,
/// since a session with an API key has none).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusLine {
    /// The model's id.
    pub model: Option<Arc<str>>,
    /// Tokens in the context.
    pub context_tokens: Option<u64>,
    /// Tokens that the context holds.
    pub context_window: Option<u64>,
    /// What the session has cost so far, in millionths of a dollar.
    pub cost_micro_usd: Option<u64>,
    /// Of the last five hours, of the last seven days.
    pub limits: Vec<Limit>,
}

/// How much of a limit of the person's plan is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Claude's own name: `five_hour`, `seven_day`.
    pub name: Arc<str>,
    /// In percent.
    pub used_pct: u8,
    /// Unix ms.
    pub resets_at_ms: Option<i64>,
}

/// One transcript line that may decide something, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptFact {
    /// `timestamp` of the line: unix ms, stamped by Claude.
    pub written_ms: Option<i64>,
    /// The line belongs to a subagent (sidechain) and never decides.
    pub sidechain: bool,
    /// What the line says.
    pub kind: TranscriptKind,
}

/// What a transcript line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TranscriptKind {
    /// `system/turn_duration`, or an assistant line with a final stop reason.
    TurnEnded { last_message: Option<Arc<str>> },
    /// An assistant line marked as an API error: an end with outcome failed.
    ApiError {
        kind: Arc<str>,
        message: Option<Arc<str>>,
    },
    /// `[Request interrupted by user…`.
    Interrupted,
    /// A prompt of the person's or a task notification.
    Prompted { task_notification: bool },
    /// Assistant asked for a tool.
    ToolStarted { tool: ToolCall },
    /// A user line that carries the result of `use_id`.
    ToolEnded { use_id: Arc<str> },
    /// `queue-operation` enqueue.
    Enqueued,
    /// `queue-operation` dequeue or remove.
    Dequeued,
    /// `system/compact_boundary`.
    CompactBoundary,
    /// The conversation goes on in this session id (`continued-in`).
    ContinuedIn { conversation: ConversationId },
    /// Numbers for the row: model, context tokens used, window size if known.
    Usage {
        model: Option<Arc<str>>,
        context_tokens: Option<u64>,
    },
    /// The main lane has sent a request to the API. The next line of its own is the answer; another request
    /// before it is another try.
    Requested,
    /// A title of the conversation.
    Title {
        text: Arc<str>,
        /// The person gave it (`/rename`); otherwise Claude did. The person's stands whatever comes after it.
        named: bool,
    },
    /// The first thing the person asked: what the conversation is called while nobody has given it a title.
    FirstPrompt { text: Arc<str> },
    /// Claude's last words, from a look at a file that is not followed: they tell of no end.
    LastWords { text: Arc<str> },
    /// The person went back: this line's parent is an older one, and what stands between them is a branch that
    /// was given up.
    Rewound {
        /// The newest of the lines that still count was written then, unix ms; `None`: none of them counts.
        to_ms: Option<i64>,
    },
}
