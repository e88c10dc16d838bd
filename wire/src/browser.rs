//! What the page (and every program) is told over `/api/status`, and what it may say back. The TypeScript
//! types of the page are generated from this file; nothing of it is spelled out twice.
//!
//! `ServerMsg` carries levels: a snapshot or the difference to what this viewer was last sent.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The five words, and `null` for "no agent" (an `Option` around it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Claude waits for the next prompt.
    Idle,
    /// Claude works.
    Busy,
    /// Something waits for the person.
    NeedsInput,
    /// Claude finished; something to look at.
    Review,
    /// Was busy when the server restarted.
    Unknown,
}

/// One row: a tab, or an agent without one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Item {
    /// The tab's id, or `host:pid:start`.
    pub id: String,
    /// The machine's name.
    pub host: String,
    /// The tab, if it is in one of ours.
    pub tab: Option<String>,
    /// The tab's workspace.
    pub workspace: Option<String>,
    /// The agent's process id.
    pub pid: Option<u32>,
    /// Claude's session id.
    pub session_id: Option<String>,
    /// Directory now.
    pub cwd: Option<String>,
    /// Git branch of the directory.
    pub branch: Option<String>,
    /// The badge.
    pub state: Option<State>,
    /// Unix ms since when the state is this.
    #[ts(type = "number")]
    pub since_ms: i64,
    /// Details inside the state.
    pub detail: Detail,
    /// Of the process.
    pub presence: Presence,
    /// What the row is called.
    pub title: String,
    /// Claude's last words.
    pub last_message: Option<String>,
    /// Current tool.
    pub tool: Option<String>,
    /// Token counts.
    pub tokens: Tokens,
    /// Share of the context window used, in percent.
    pub context_pct: Option<u8>,
    /// Listening TCP ports.
    pub ports: Vec<u16>,
    /// Our hooks have been heard.
    pub hooks: bool,
    /// Counts for bell and title.
    pub attention: bool,
    /// Names the stay in needs-input or review.
    #[ts(type = "number | null")]
    pub episode: Option<u64>,
}

/// Details inside a state; each absent when empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct Detail {
    /// `thinking`, `tool`, `compacting`, `retrying`, `subagents`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub doing: Option<String>,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub tool: Option<String>,
    /// Its argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub arg: Option<String>,
    /// Running subagents.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub agents: Option<u32>,
    /// Background shells still running.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub shells: Option<u32>,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub ask: Option<Ask>,
    /// `finished` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub outcome: Option<String>,
    /// The kind of failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub error: Option<String>,
    /// Next wake-up, unix ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub wakes_at_ms: Option<i64>,
    /// `interrupted`, `headless`, `ended without Stop`, `no transcript`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub label: Option<String>,
}

/// What needs-input waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Ask {
    /// Names this ask; an answer must carry it.
    #[ts(type = "number")]
    pub id: u64,
    /// permission, question, plan, form, dialog, startup.
    pub kind: AskKind,
    /// Command, question or message; empty while unknown.
    pub text: String,
    /// Claude's own labels.
    pub options: Vec<String>,
}

/// The kinds of ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum AskKind {
    /// May this tool run?
    Permission,
    /// AskUserQuestion.
    Question,
    /// A plan to approve.
    Plan,
    /// MCP elicitation.
    Form,
    /// Another dialog of Claude's.
    Dialog,
    /// Before the first status file.
    Startup,
}

/// The process, apart from its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// No agent.
    None,
    /// A process, no status yet.
    Starting,
    /// Alive.
    Running,
    /// Ctrl-Z.
    Suspended,
    /// Goes on in a background process.
    Elsewhere,
    /// Ended.
    Gone,
}

/// Token counts, absent when unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct Tokens {
    /// In the context now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub context: Option<u64>,
}

/// A workspace with its most urgent state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Workspace {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Default directory.
    pub dir: String,
    /// Ids of its tabs in order; each is an item's id.
    pub tabs: Vec<String>,
    /// Most urgent inside.
    pub state: Option<State>,
    /// With `state: review`: the most urgent one failed.
    pub failed: bool,
}

/// From the server, as JSON text frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ServerMsg {
    /// Everything; replaces what the viewer had.
    Snapshot {
        /// Changes with every start of the server.
        epoch: String,
        /// Counts up by one per message that changes something.
        #[ts(type = "number")]
        rev: u64,
        /// The server's wall clock, unix ms, for ages on a client whose clock is off.
        #[ts(type = "number")]
        now_ms: i64,
        /// All rows.
        items: Vec<Item>,
        /// All workspaces in order.
        workspaces: Vec<Workspace>,
        /// Plain sentences about what is degraded ("tmux does not answer"); empty when healthy.
        notices: Vec<String>,
    },
    /// The difference to the revision before.
    Diff {
        /// As in the snapshot.
        epoch: String,
        /// The snapshot's or last diff's `rev` plus one.
        #[ts(type = "number")]
        rev: u64,
        /// As in the snapshot.
        #[ts(type = "number")]
        now_ms: i64,
        /// Items that are new or changed.
        set: Vec<Item>,
        /// Ids of items that are gone.
        gone: Vec<String>,
        /// All workspaces, if anything about them changed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        #[ts(optional)]
        workspaces: Option<Vec<Workspace>>,
        /// All notices, if they changed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        #[ts(optional)]
        notices: Option<Vec<String>>,
    },
    /// Every 10 s, so that a dead link is noticed within 15.
    Heartbeat {
        /// As in the snapshot.
        epoch: String,
        /// The last revision sent.
        #[ts(type = "number")]
        rev: u64,
        /// The server's wall clock.
        #[ts(type = "number")]
        now_ms: i64,
    },
    /// Something the viewer sent could not be done.
    Refused {
        /// The `request` of the message refused.
        #[ts(type = "number")]
        request: u64,
        /// A sentence that says what to do.
        why: String,
    },
}

/// From the page or a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ClientMsg {
    /// First message of every socket that came over TCP: the login's secret.
    Hello {
        /// From `POST /api/login`, kept in localStorage.
        secret: String,
    },
    /// The end of this review was really seen.
    Seen {
        /// Names the message in `Refused`.
        #[ts(type = "number")]
        request: u64,
        /// The item.
        item: String,
        /// The episode seen.
        #[ts(type = "number")]
        episode: u64,
    },
    /// Dismissed by hand.
    Dismiss {
        /// Names the message in `Refused`.
        #[ts(type = "number")]
        request: u64,
        /// The item.
        item: String,
        /// The episode dismissed.
        #[ts(type = "number")]
        episode: u64,
    },
    /// Send me a snapshot.
    Resync,
}
