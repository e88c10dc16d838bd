//! The journal: every event with its moment, every verdict, every gap, one line of JSON each, good enough to
//! be played into a fleet again. Both directions; versioned, so that an old journal is read or refused and
//! never misread.
//!
//! A line is `[version, boot ns, unix ms, what]`. Must never depend on words of a vendor's: those are
//! translated before they get here.

use std::sync::Arc;

use purplemux_core::event::{PaneFacts, Persisted, TabFacts, WorkspaceFacts};
use purplemux_core::view::{Ask, AskKind, Badge, Doing, Outcome};
use purplemux_core::witness::{
    AgentKind, BackgroundTasks, FileStatus, Hook, HookKind, Limit, Process, Question, SessionFile,
    StartSource, StatusLine, ToolCall, TranscriptFact, TranscriptKind, WaitingFor,
};
use purplemux_core::{
    AgentKey, ConversationId, EpisodeId, Event, HookId, HostId, PaneKey, Stamp, TabId, Time,
    TmuxServer, WorkspaceId,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

/// Version of the records written now. Counts up when a record's meaning changes; a field that is added and
/// may be absent changes nothing.
pub const VERSION: u32 = 1;

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// When it came to the fleet.
    pub at: Stamp,
    /// What it was.
    pub what: What,
}

/// What a record holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An event as the fleet was given it.
    Evidence(#[serde(with = "EventDef")] Event),
    /// A badge as it was committed.
    Verdict(Verdict),
    /// Records that could not be written.
    Lost(Lost),
    /// A server started; boot times before and after it compare only within one boot.
    Started(Started),
}

/// A committed badge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whose.
    #[serde(with = "one")]
    pub agent: AgentKey,
    /// `None`: no agent any more.
    #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
    pub badge: Option<Badge>,
    /// Since when it holds.
    #[serde(with = "one")]
    pub since: Stamp,
    /// Which stay, in needs-input and review.
    #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
    pub episode: Option<EpisodeId>,
}

/// A gap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Unix ms from which on records are missing.
    pub from_ms: i64,
    /// Unix ms at which the journal could be written again.
    pub to_ms: i64,
    /// How many.
    pub count: u64,
    /// Why, in words.
    pub why: String,
}

/// A start of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Its version.
    pub version: String,
    /// Names the boot that the boot times belong to.
    pub boot_id: String,
}

/// A line that is no record of ours.
#[derive(Debug, Error)]
pub enum JournalError {
    /// Written by another version.
    #[error("the record is of version {0}; this purplemux reads up to {VERSION}")]
    Version(u32),
    /// Damaged, or never one.
    #[error("no record: {0}")]
    Json(#[from] serde_json::Error),
}

/// One line, without its line break.
///
/// # Errors
/// None that a record of ours can cause.
pub fn encode(record: &Record) -> Result<String, JournalError> {
    let Record { at, what } = record;
    Ok(serde_json::to_string(&(
        VERSION, at.boot.0, at.wall_ms, what,
    ))?)
}

/// Reads a line.
///
/// # Errors
/// It is damaged, or of a later version.
pub fn decode(line: &str) -> Result<Record, JournalError> {
    let (version, boot, wall_ms, what): (u32, u64, i64, &RawValue) = serde_json::from_str(line)?;
    if version != VERSION {
        return Err(JournalError::Version(version));
    }
    Ok(Record {
        at: Stamp {
            boot: Time(boot),
            wall_ms,
        },
        what: serde_json::from_str(what.get())?,
    })
}

/// The agent that an event names itself; a hook's may be found only when the fleet is asked.
#[must_use]
pub fn agent_of(event: &Event) -> Option<&AgentKey> {
    match event {
        Event::ProcessFound { agent, .. }
        | Event::ProcessDied { agent }
        | Event::ProcessStopped { agent, .. }
        | Event::KeyFileSeen { agent }
        | Event::ProcessQuiet { agent, .. }
        | Event::ProcessMissed { agent }
        | Event::FileRead { agent, .. }
        | Event::FileRemoved { agent }
        | Event::FileUnreadable { agent, .. }
        | Event::TranscriptGrew { agent, .. }
        | Event::TranscriptRead { agent, .. }
        | Event::TranscriptMissing { agent }
        | Event::Seen { agent, .. }
        | Event::Dismissed { agent, .. }
        | Event::Restored { agent, .. } => Some(agent),
        Event::HookFired { hook } => hook.agent.as_ref(),
        Event::PanesListed { .. }
        | Event::LayoutChanged { .. }
        | Event::RecoveryEnded
        | Event::DeadlinePassed => None,
    }
}

/// An agent from its written form `host:pid:start`.
#[must_use]
pub fn agent_key(text: &str) -> Option<AgentKey> {
    let mut parts = text.rsplitn(3, ':');
    let start = parts.next()?.parse().ok()?;
    let pid = parts.next()?.parse().ok()?;
    Some(AgentKey {
        host: HostId::from(parts.next()?),
        pid,
        start,
    })
}

// ---- without texts -----------------------------------------------------------------------------------

/// The same without prompts, answers, commands, questions and titles. It still plays to the same badges; of
/// what was asked it says only the kind.
#[must_use]
pub fn without_text(what: What) -> What {
    match what {
        What::Evidence(event) => What::Evidence(bare_event(event)),
        What::Verdict(verdict) => What::Verdict(Verdict {
            badge: verdict.badge.map(bare_badge),
            ..verdict
        }),
        What::Lost(_) | What::Started(_) => what,
    }
}

fn bare_event(event: Event) -> Event {
    match event {
        Event::FileRead { agent, at, file } => Event::FileRead {
            agent,
            at,
            file: SessionFile { name: None, ..file },
        },
        Event::HookFired { hook } => Event::HookFired {
            hook: Box::new(Hook {
                kind: bare_hook(hook.kind.clone()),
                ..*hook
            }),
        },
        Event::TranscriptGrew { agent, facts } => Event::TranscriptGrew {
            agent,
            facts: facts.into_iter().map(bare_fact).collect(),
        },
        Event::PanesListed { panes } => Event::PanesListed {
            panes: panes
                .into_iter()
                .map(|pane| PaneFacts {
                    title: Arc::default(),
                    ..pane
                })
                .collect(),
        },
        Event::Restored { agent, persisted } => Event::Restored {
            agent,
            persisted: Persisted {
                badge: bare_badge(persisted.badge),
                ..persisted
            },
        },
        Event::ProcessFound { .. }
        | Event::ProcessDied { .. }
        | Event::ProcessStopped { .. }
        | Event::KeyFileSeen { .. }
        | Event::ProcessQuiet { .. }
        | Event::ProcessMissed { .. }
        | Event::FileRemoved { .. }
        | Event::FileUnreadable { .. }
        | Event::TranscriptRead { .. }
        | Event::TranscriptMissing { .. }
        | Event::Seen { .. }
        | Event::Dismissed { .. }
        | Event::LayoutChanged { .. }
        | Event::RecoveryEnded
        | Event::DeadlinePassed => event,
    }
}

fn bare_tool(tool: ToolCall) -> ToolCall {
    // A digest of a short command tells the command: without it a request still matches by the tool's name.
    ToolCall {
        arg: None,
        input_digest: 0,
        questions: Vec::new(),
        ..tool
    }
}

fn bare_hook(kind: HookKind) -> HookKind {
    match kind {
        HookKind::Prompt {
            task_notification, ..
        } => HookKind::Prompt {
            text: Arc::default(),
            task_notification,
        },
        HookKind::ToolStarted { tool } => HookKind::ToolStarted {
            tool: bare_tool(tool),
        },
        HookKind::ToolEnded { tool } => HookKind::ToolEnded {
            tool: bare_tool(tool),
        },
        HookKind::ToolFailed { tool, interrupted } => HookKind::ToolFailed {
            tool: bare_tool(tool),
            interrupted,
        },
        HookKind::PermissionRequested { tool } => HookKind::PermissionRequested {
            tool: bare_tool(tool),
        },
        HookKind::Notified { kind, .. } => HookKind::Notified {
            kind,
            message: Arc::default(),
        },
        HookKind::FormAsked { server, .. } => HookKind::FormAsked {
            server,
            message: Arc::default(),
        },
        HookKind::Stopped {
            background,
            wakes_at_ms,
            has_crons,
            stop_hook_active,
            ..
        } => HookKind::Stopped {
            last_message: None,
            background,
            wakes_at_ms,
            has_crons,
            stop_hook_active,
        },
        HookKind::StopFailed { error, .. } => HookKind::StopFailed {
            error,
            message: None,
        },
        HookKind::SessionStart { .. }
        | HookKind::SessionEnd { .. }
        | HookKind::FormAnswered
        | HookKind::SubagentStarted { .. }
        | HookKind::SubagentStopped { .. }
        | HookKind::CompactStarted { .. }
        | HookKind::CompactEnded
        | HookKind::CwdChanged { .. }
        | HookKind::StatusLine { .. }
        | HookKind::Unknown { .. } => kind,
    }
}

fn bare_fact(fact: TranscriptFact) -> TranscriptFact {
    let kind = match fact.kind {
        TranscriptKind::TurnEnded { .. } => TranscriptKind::TurnEnded { last_message: None },
        TranscriptKind::ApiError { kind, .. } => TranscriptKind::ApiError {
            kind,
            message: None,
        },
        TranscriptKind::ToolStarted { tool } => TranscriptKind::ToolStarted {
            tool: bare_tool(tool),
        },
        TranscriptKind::Title { named, .. } => TranscriptKind::Title {
            text: Arc::default(),
            named,
        },
        TranscriptKind::FirstPrompt { .. } => TranscriptKind::FirstPrompt {
            text: Arc::default(),
        },
        TranscriptKind::LastWords { .. } => TranscriptKind::LastWords {
            text: Arc::default(),
        },
        kind @ (TranscriptKind::Interrupted
        | TranscriptKind::Prompted { .. }
        | TranscriptKind::ToolEnded { .. }
        | TranscriptKind::Enqueued
        | TranscriptKind::Dequeued
        | TranscriptKind::CompactBoundary
        | TranscriptKind::ContinuedIn { .. }
        | TranscriptKind::Usage { .. }
        | TranscriptKind::Requested
        | TranscriptKind::Rewound { .. }) => kind,
    };
    TranscriptFact { kind, ..fact }
}

fn bare_badge(badge: Badge) -> Badge {
    match badge {
        Badge::Busy(doing) => Badge::Busy(Doing {
            tool: doing.tool.map(|(name, _)| (name, None)),
            ..doing
        }),
        Badge::NeedsInput(ask) => Badge::NeedsInput(Ask {
            text: None,
            options: Vec::new(),
            ..ask
        }),
        Badge::Idle | Badge::Review(_) | Badge::Unknown => badge,
    }
}

// ---- how core's values are written -------------------------------------------------------------------

/// A value of core's that has a written form here. Core itself knows of none.
trait Written: Sized {
    fn write<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;
    fn read<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error>;
}

struct Borrowed<'a, T>(&'a T);

impl<T: Written> Serialize for Borrowed<'_, T> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.write(to)
    }
}

struct Owned<T>(T);

impl<'de, T: Written> Deserialize<'de> for Owned<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        T::read(from).map(Self)
    }
}

/// `#[serde(with = "one")]`: a value.
mod one {
    use super::Written;

    pub(super) fn serialize<T: Written, S: serde::Serializer>(
        value: &T,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.write(to)
    }

    pub(super) fn deserialize<'de, T: Written, D: serde::Deserializer<'de>>(
        from: D,
    ) -> Result<T, D::Error> {
        T::read(from)
    }
}

/// `#[serde(with = "opt")]`: a value or none.
mod opt {
    use serde::{Deserialize as _, Serialize as _};

    use super::{Borrowed, Owned, Written};

    pub(super) fn serialize<T: Written, S: serde::Serializer>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(Borrowed).serialize(to)
    }

    pub(super) fn deserialize<'de, T: Written, D: serde::Deserializer<'de>>(
        from: D,
    ) -> Result<Option<T>, D::Error> {
        Ok(Option::<Owned<T>>::deserialize(from)?.map(|owned| owned.0))
    }
}

/// `#[serde(with = "list")]`: values in order.
mod list {
    use serde::Deserialize as _;

    use super::{Borrowed, Owned, Written};

    pub(super) fn serialize<T: Written, S: serde::Serializer>(
        values: &[T],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(values.iter().map(Borrowed))
    }

    pub(super) fn deserialize<'de, T: Written, D: serde::Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<T>, D::Error> {
        let owned = Vec::<Owned<T>>::deserialize(from)?;
        Ok(owned.into_iter().map(|owned| owned.0).collect())
    }
}

impl<T: Written> Written for Box<T> {
    fn write<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        T::write(self, to)
    }

    fn read<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        T::read(from).map(Self::new)
    }
}

macro_rules! written_by {
    ($($value:ty => $form:ty,)*) => {$(
        impl Written for $value {
            fn write<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                <$form>::serialize(self, to)
            }
            fn read<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                <$form>::deserialize(from)
            }
        }
    )*};
}

written_by! {
    Process => ProcessDef,
    SessionFile => SessionFileDef,
    FileStatus => FileStatusDef,
    WaitingFor => WaitingForDef,
    AgentKind => AgentKindDef,
    Hook => HookDef,
    HookKind => HookKindDef,
    StatusLine => StatusLineDef,
    Limit => LimitDef,
    ToolCall => ToolCallDef,
    Question => QuestionDef,
    StartSource => StartSourceDef,
    BackgroundTasks => BackgroundTasksDef,
    TranscriptFact => TranscriptFactDef,
    TranscriptKind => TranscriptKindDef,
    PaneFacts => PaneFactsDef,
    WorkspaceFacts => WorkspaceFactsDef,
    TabFacts => TabFactsDef,
    Persisted => PersistedDef,
    Badge => BadgeDef,
    Doing => DoingDef,
    Ask => AskDef,
    AskKind => AskKindDef,
    Outcome => OutcomeDef,
}

macro_rules! written_as_text {
    ($($id:ty,)*) => {$(
        impl Written for $id {
            fn write<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&self.0)
            }
            fn read<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Ok(Self(Arc::from(String::deserialize(from)?)))
            }
        }
    )*};
}

written_as_text! { TabId, WorkspaceId, ConversationId, HookId, }

impl Written for EpisodeId {
    fn write<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.0)
    }

    fn read<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        u64::deserialize(from).map(Self)
    }
}

/// `[boot ns, unix ms]`.
impl Written for Stamp {
    fn write<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (self.boot.0, self.wall_ms).serialize(to)
    }

    fn read<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (boot, wall_ms) = <(u64, i64)>::deserialize(from)?;
        Ok(Self {
            boot: Time(boot),
            wall_ms,
        })
    }
}

/// `[host, pid, start]`.
impl Written for AgentKey {
    fn write<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (self.host.as_str(), self.pid, self.start).serialize(to)
    }

    fn read<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (host, pid, start) = <(String, u32, u64)>::deserialize(from)?;
        Ok(Self {
            host: HostId::from(host),
            pid,
            start,
        })
    }
}

/// `[host, server's pid, server's start, pane]`.
impl Written for PaneKey {
    fn write<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let server = &self.server;
        (server.host.as_str(), server.pid, server.start, self.pane).serialize(to)
    }

    fn read<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (host, pid, start, pane) = <(String, u32, u64, u32)>::deserialize(from)?;
        Ok(Self {
            server: TmuxServer {
                host: HostId::from(host),
                pid,
                start,
            },
            pane,
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Event", rename_all = "snake_case")]
enum EventDef {
    ProcessFound {
        #[serde(with = "one")]
        agent: AgentKey,
        #[serde(with = "one")]
        process: Process,
    },
    ProcessDied {
        #[serde(with = "one")]
        agent: AgentKey,
    },
    ProcessStopped {
        #[serde(with = "one")]
        agent: AgentKey,
        stopped: bool,
    },
    KeyFileSeen {
        #[serde(with = "one")]
        agent: AgentKey,
    },
    ProcessQuiet {
        #[serde(with = "one")]
        agent: AgentKey,
        quiet: bool,
    },
    ProcessMissed {
        #[serde(with = "one")]
        agent: AgentKey,
    },
    FileRead {
        #[serde(with = "one")]
        agent: AgentKey,
        #[serde(with = "one")]
        at: Stamp,
        #[serde(with = "one")]
        file: SessionFile,
    },
    FileRemoved {
        #[serde(with = "one")]
        agent: AgentKey,
    },
    FileUnreadable {
        #[serde(with = "one")]
        agent: AgentKey,
        why: Arc<str>,
    },
    HookFired {
        #[serde(with = "one")]
        hook: Box<Hook>,
    },
    TranscriptGrew {
        #[serde(with = "one")]
        agent: AgentKey,
        #[serde(with = "list")]
        facts: Vec<TranscriptFact>,
    },
    TranscriptRead {
        #[serde(with = "one")]
        agent: AgentKey,
        request: u64,
        ok: bool,
    },
    TranscriptMissing {
        #[serde(with = "one")]
        agent: AgentKey,
    },
    Seen {
        #[serde(with = "one")]
        agent: AgentKey,
        #[serde(with = "one")]
        episode: EpisodeId,
    },
    Dismissed {
        #[serde(with = "one")]
        agent: AgentKey,
        #[serde(with = "one")]
        episode: EpisodeId,
    },
    PanesListed {
        #[serde(with = "list")]
        panes: Vec<PaneFacts>,
    },
    LayoutChanged {
        #[serde(with = "list")]
        workspaces: Vec<WorkspaceFacts>,
    },
    Restored {
        #[serde(with = "one")]
        agent: AgentKey,
        #[serde(with = "one")]
        persisted: Persisted,
    },
    RecoveryEnded,
    DeadlinePassed,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Process")]
struct ProcessDef {
    #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
    pane: Option<PaneKey>,
    #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
    parent_agent: Option<AgentKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cwd: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hooks: Option<bool>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FileStatus", rename_all = "snake_case")]
enum FileStatusDef {
    Idle,
    Busy,
    Waiting,
    Shell,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "WaitingFor", rename_all = "snake_case")]
enum WaitingForDef {
    Permission,
    Input,
    DialogOpen,
    Other(Arc<str>),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "AgentKind", rename_all = "snake_case")]
enum AgentKindDef {
    Interactive,
    Headless,
    Background,
    Hidden,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SessionFile")]
struct SessionFileDef {
    #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
    conversation: Option<ConversationId>,
    #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
    status: Option<FileStatus>,
    #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
    waiting_for: Option<WaitingFor>,
    #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
    status_since: Option<Stamp>,
    #[serde(with = "one")]
    kind: AgentKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parked_job: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cwd: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Hook")]
struct HookDef {
    #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
    id: Option<HookId>,
    #[serde(with = "one")]
    at: Stamp,
    #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentKey>,
    #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
    pane: Option<PaneKey>,
    #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
    conversation: Option<ConversationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transcript: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cwd: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent_id: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt_id: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    job: bool,
    #[serde(with = "one")]
    kind: HookKind,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ToolCall")]
struct ToolCallDef {
    name: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    use_id: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arg: Option<Arc<str>>,
    input_digest: u64,
    #[serde(with = "list", default, skip_serializing_if = "Vec::is_empty")]
    questions: Vec<Question>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Question")]
struct QuestionDef {
    text: Arc<str>,
    options: Vec<Arc<str>>,
    multi: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "StartSource", rename_all = "snake_case")]
enum StartSourceDef {
    Startup,
    Resume,
    Clear,
    Compact,
    Fork,
    Other(Arc<str>),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "BackgroundTasks")]
struct BackgroundTasksDef {
    shells: u32,
    agents: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "HookKind", rename_all = "snake_case")]
enum HookKindDef {
    SessionStart {
        #[serde(with = "one")]
        source: StartSource,
    },
    SessionEnd {
        reason: Arc<str>,
    },
    Prompt {
        text: Arc<str>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        task_notification: bool,
    },
    ToolStarted {
        #[serde(with = "one")]
        tool: ToolCall,
    },
    ToolEnded {
        #[serde(with = "one")]
        tool: ToolCall,
    },
    ToolFailed {
        #[serde(with = "one")]
        tool: ToolCall,
        interrupted: bool,
    },
    PermissionRequested {
        #[serde(with = "one")]
        tool: ToolCall,
    },
    Notified {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<Arc<str>>,
        message: Arc<str>,
    },
    FormAsked {
        server: Arc<str>,
        message: Arc<str>,
    },
    FormAnswered,
    Stopped {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_message: Option<Arc<str>>,
        #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
        background: Option<BackgroundTasks>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wakes_at_ms: Option<i64>,
        has_crons: bool,
        stop_hook_active: bool,
    },
    StopFailed {
        error: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<str>>,
    },
    SubagentStarted {
        id: Arc<str>,
        kind: Arc<str>,
    },
    SubagentStopped {
        id: Arc<str>,
        kind: Arc<str>,
    },
    CompactStarted {
        manual: bool,
    },
    CompactEnded,
    CwdChanged {
        cwd: Arc<str>,
    },
    StatusLine {
        #[serde(with = "one")]
        line: StatusLine,
    },
    Unknown {
        name: Arc<str>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "StatusLine")]
struct StatusLineDef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context_window: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost_micro_usd: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "list")]
    limits: Vec<Limit>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Limit")]
struct LimitDef {
    name: Arc<str>,
    used_pct: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resets_at_ms: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TranscriptFact")]
struct TranscriptFactDef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    written_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sidechain: bool,
    #[serde(with = "one")]
    kind: TranscriptKind,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TranscriptKind", rename_all = "snake_case")]
enum TranscriptKindDef {
    TurnEnded {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_message: Option<Arc<str>>,
    },
    ApiError {
        kind: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<str>>,
    },
    Interrupted,
    Prompted {
        task_notification: bool,
    },
    ToolStarted {
        #[serde(with = "one")]
        tool: ToolCall,
    },
    ToolEnded {
        use_id: Arc<str>,
    },
    Enqueued,
    Dequeued,
    CompactBoundary,
    ContinuedIn {
        #[serde(with = "one")]
        conversation: ConversationId,
    },
    Usage {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_tokens: Option<u64>,
    },
    Title {
        text: Arc<str>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        named: bool,
    },
    Requested,
    FirstPrompt {
        text: Arc<str>,
    },
    LastWords {
        text: Arc<str>,
    },
    Rewound {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to_ms: Option<i64>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "PaneFacts")]
struct PaneFactsDef {
    #[serde(with = "one")]
    pane: PaneKey,
    session: Arc<str>,
    command: Arc<str>,
    path: Arc<str>,
    title: Arc<str>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dead: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "WorkspaceFacts")]
struct WorkspaceFactsDef {
    #[serde(with = "one")]
    id: WorkspaceId,
    name: Arc<str>,
    dir: Arc<str>,
    #[serde(with = "list")]
    tabs: Vec<TabFacts>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TabFacts")]
struct TabFactsDef {
    #[serde(with = "one")]
    id: TabId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<Arc<str>>,
    cwd: Arc<str>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ended: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Persisted")]
struct PersistedDef {
    #[serde(with = "one")]
    badge: Badge,
    #[serde(with = "one")]
    since: Stamp,
    #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
    episode: Option<EpisodeId>,
    #[serde(with = "opt", default, skip_serializing_if = "Option::is_none")]
    tab: Option<TabId>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Badge", rename_all = "snake_case")]
enum BadgeDef {
    Idle,
    Busy(#[serde(with = "one")] Doing),
    NeedsInput(#[serde(with = "one")] Ask),
    Review(#[serde(with = "one")] Outcome),
    Unknown,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Doing")]
struct DoingDef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<(Arc<str>, Option<Arc<str>>)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    compacting: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    retrying: bool,
    #[serde(default)]
    agents: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Ask")]
struct AskDef {
    id: u64,
    #[serde(with = "one")]
    kind: AskKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    options: Vec<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "AskKind", rename_all = "snake_case")]
enum AskKindDef {
    Permission,
    Question,
    Plan,
    Form,
    Dialog,
    Startup,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Outcome")]
struct OutcomeDef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Arc<str>>,
    #[serde(default)]
    shells: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wakes_at_ms: Option<i64>,
}

#[cfg(test)]
mod tests {
    use proptest::option::of;
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = Arc<str>> {
        // Quotes, line breaks, NUL, all of Unicode.
        any::<String>().prop_map(Arc::from)
    }

    fn stamp() -> impl Strategy<Value = Stamp> {
        (any::<u64>(), any::<i64>()).prop_map(|(boot, wall_ms)| Stamp {
            boot: Time(boot),
            wall_ms,
        })
    }

    fn agent() -> impl Strategy<Value = AgentKey> {
        (any::<String>(), any::<u32>(), any::<u64>()).prop_map(|(host, pid, start)| AgentKey {
            host: HostId::from(host),
            pid,
            start,
        })
    }

    fn pane() -> impl Strategy<Value = PaneKey> {
        (agent(), any::<u32>()).prop_map(|(key, pane)| PaneKey {
            server: TmuxServer {
                host: key.host,
                pid: key.pid,
                start: key.start,
            },
            pane,
        })
    }

    fn tool() -> impl Strategy<Value = ToolCall> {
        let question = (text(), prop::collection::vec(text(), 0..3), any::<bool>()).prop_map(
            |(t, o, multi)| Question {
                text: t,
                options: o,
                multi,
            },
        );
        let questions = prop::collection::vec(question, 0..2);
        (text(), of(text()), of(text()), any::<u64>(), questions).prop_map(
            |(name, use_id, arg, input_digest, questions)| ToolCall {
                name,
                use_id,
                arg,
                input_digest,
                questions,
            },
        )
    }

    fn hook_kind() -> impl Strategy<Value = HookKind> {
        let source = prop_oneof![
            Just(StartSource::Startup),
            Just(StartSource::Resume),
            Just(StartSource::Clear),
            Just(StartSource::Compact),
            Just(StartSource::Fork),
            text().prop_map(StartSource::Other),
        ];
        let background = (any::<u32>(), any::<u32>())
            .prop_map(|(shells, agents)| BackgroundTasks { shells, agents });
        prop_oneof![
            source.prop_map(|source| HookKind::SessionStart { source }),
            text().prop_map(|reason| HookKind::SessionEnd { reason }),
            (text(), any::<bool>()).prop_map(|(text, task_notification)| HookKind::Prompt {
                text,
                task_notification
            }),
            tool().prop_map(|tool| HookKind::ToolStarted { tool }),
            tool().prop_map(|tool| HookKind::ToolEnded { tool }),
            (tool(), any::<bool>())
                .prop_map(|(tool, interrupted)| HookKind::ToolFailed { tool, interrupted }),
            tool().prop_map(|tool| HookKind::PermissionRequested { tool }),
            (of(text()), text()).prop_map(|(kind, message)| HookKind::Notified { kind, message }),
            (text(), text()).prop_map(|(server, message)| HookKind::FormAsked { server, message }),
            Just(HookKind::FormAnswered),
            (
                of(text()),
                of(background),
                of(any::<i64>()),
                any::<bool>(),
                any::<bool>()
            )
                .prop_map(
                    |(last_message, background, wakes_at_ms, has_crons, stop_hook_active)| {
                        HookKind::Stopped {
                            last_message,
                            background,
                            wakes_at_ms,
                            has_crons,
                            stop_hook_active,
                        }
                    }
                ),
            (text(), of(text()))
                .prop_map(|(error, message)| HookKind::StopFailed { error, message }),
            (text(), text()).prop_map(|(id, kind)| HookKind::SubagentStarted { id, kind }),
            (text(), text()).prop_map(|(id, kind)| HookKind::SubagentStopped { id, kind }),
            any::<bool>().prop_map(|manual| HookKind::CompactStarted { manual }),
            Just(HookKind::CompactEnded),
            text().prop_map(|cwd| HookKind::CwdChanged { cwd }),
            status_line().prop_map(|line| HookKind::StatusLine { line }),
            text().prop_map(|name| HookKind::Unknown { name }),
        ]
    }

    fn status_line() -> impl Strategy<Value = StatusLine> {
        let limit =
            (text(), any::<u8>(), of(any::<i64>())).prop_map(|(name, used_pct, resets_at_ms)| {
                Limit {
                    name,
                    used_pct,
                    resets_at_ms,
                }
            });
        (
            of(text()),
            of(any::<u64>()),
            of(any::<u64>()),
            of(any::<u64>()),
            proptest::collection::vec(limit, 0..3),
        )
            .prop_map(
                |(model, context_tokens, context_window, cost_micro_usd, limits)| StatusLine {
                    model,
                    context_tokens,
                    context_window,
                    cost_micro_usd,
                    limits,
                },
            )
    }

    fn hook() -> impl Strategy<Value = Hook> {
        let whose = (
            of(text()),
            stamp(),
            of(agent()),
            of(pane()),
            of(text()),
            of(text()),
        );
        let lanes = (of(text()), of(text()));
        (whose, of(text()), lanes, any::<bool>(), hook_kind()).prop_map(
            |(
                (id, at, agent, pane, conversation, transcript),
                cwd,
                (agent_id, prompt_id),
                job,
                kind,
            )| Hook {
                id: id.map(HookId),
                at,
                agent,
                pane,
                conversation: conversation.map(ConversationId),
                transcript,
                cwd,
                agent_id,
                prompt_id,
                job,
                kind,
            },
        )
    }

    fn file() -> impl Strategy<Value = SessionFile> {
        let status = prop_oneof![
            Just(FileStatus::Idle),
            Just(FileStatus::Busy),
            Just(FileStatus::Waiting),
            Just(FileStatus::Shell),
        ];
        let waiting = prop_oneof![
            Just(WaitingFor::Permission),
            Just(WaitingFor::Input),
            Just(WaitingFor::DialogOpen),
            text().prop_map(WaitingFor::Other),
        ];
        let kind = prop_oneof![
            Just(AgentKind::Interactive),
            Just(AgentKind::Headless),
            Just(AgentKind::Background),
            Just(AgentKind::Hidden),
        ];
        let words = (
            of(text()),
            of(text()),
            of(text()),
            of(text()),
            of(text()),
            of(text()),
        );
        (of(status), of(waiting), of(stamp()), kind, words).prop_map(
            |(status, waiting_for, status_since, kind, words)| {
                let (conversation, parked_job, job, cwd, version, name) = words;
                SessionFile {
                    conversation: conversation.map(ConversationId),
                    status,
                    waiting_for,
                    status_since,
                    kind,
                    parked_job,
                    job,
                    cwd,
                    version,
                    name,
                }
            },
        )
    }

    fn fact() -> impl Strategy<Value = TranscriptFact> {
        let kind = prop_oneof![
            of(text()).prop_map(|last_message| TranscriptKind::TurnEnded { last_message }),
            (text(), of(text()))
                .prop_map(|(kind, message)| TranscriptKind::ApiError { kind, message }),
            Just(TranscriptKind::Interrupted),
            any::<bool>()
                .prop_map(|task_notification| TranscriptKind::Prompted { task_notification }),
            tool().prop_map(|tool| TranscriptKind::ToolStarted { tool }),
            text().prop_map(|use_id| TranscriptKind::ToolEnded { use_id }),
            Just(TranscriptKind::Enqueued),
            Just(TranscriptKind::Dequeued),
            Just(TranscriptKind::CompactBoundary),
            Just(TranscriptKind::Requested),
            text().prop_map(|id| TranscriptKind::ContinuedIn {
                conversation: ConversationId(id)
            }),
            (of(text()), of(any::<u64>())).prop_map(|(model, context_tokens)| {
                TranscriptKind::Usage {
                    model,
                    context_tokens,
                }
            }),
            (text(), any::<bool>()).prop_map(|(text, named)| TranscriptKind::Title { text, named }),
            text().prop_map(|text| TranscriptKind::FirstPrompt { text }),
            text().prop_map(|text| TranscriptKind::LastWords { text }),
            of(any::<i64>()).prop_map(|to_ms| TranscriptKind::Rewound { to_ms }),
        ];
        (of(any::<i64>()), any::<bool>(), kind).prop_map(|(written_ms, sidechain, kind)| {
            TranscriptFact {
                written_ms,
                sidechain,
                kind,
            }
        })
    }

    fn badge() -> impl Strategy<Value = Badge> {
        let ask_kind = prop_oneof![
            Just(AskKind::Permission),
            Just(AskKind::Question),
            Just(AskKind::Plan),
            Just(AskKind::Form),
            Just(AskKind::Dialog),
            Just(AskKind::Startup),
        ];
        let doing = (
            of((text(), of(text()))),
            any::<bool>(),
            any::<bool>(),
            any::<u32>(),
        );
        let ask = (
            any::<u64>(),
            ask_kind,
            of(text()),
            of(text()),
            prop::collection::vec(text(), 0..3),
        );
        prop_oneof![
            Just(Badge::Idle),
            Just(Badge::Unknown),
            doing.prop_map(|(tool, compacting, retrying, agents)| Badge::Busy(Doing {
                tool,
                compacting,
                retrying,
                agents
            })),
            ask.prop_map(|(id, kind, text, tool, options)| Badge::NeedsInput(Ask {
                id,
                kind,
                text,
                tool,
                options
            })),
            (of(text()), any::<u32>(), of(any::<i64>())).prop_map(
                |(error, shells, wakes_at_ms)| Badge::Review(Outcome {
                    error,
                    shells,
                    wakes_at_ms
                })
            ),
        ]
    }

    fn event() -> impl Strategy<Value = Event> {
        let process = (of(pane()), of(agent()), of(text()), of(any::<bool>())).prop_map(
            |(pane, parent_agent, cwd, hooks)| Process {
                pane,
                parent_agent,
                cwd,
                hooks,
            },
        );
        let panes = (pane(), text(), text(), text(), text(), any::<bool>()).prop_map(
            |(pane, session, command, path, title, dead)| PaneFacts {
                pane,
                session,
                command,
                path,
                title,
                dead,
            },
        );
        let tab = (text(), of(text()), text(), any::<bool>()).prop_map(|(id, name, cwd, ended)| {
            TabFacts {
                id: TabId(id),
                name,
                cwd,
                ended,
            }
        });
        let workspace = (text(), text(), text(), prop::collection::vec(tab, 0..3)).prop_map(
            |(id, name, dir, tabs)| WorkspaceFacts {
                id: WorkspaceId(id),
                name,
                dir,
                tabs,
            },
        );
        let persisted = (badge(), stamp(), of(any::<u64>()), of(text())).prop_map(
            |(badge, since, episode, tab)| Persisted {
                badge,
                since,
                episode: episode.map(EpisodeId),
                tab: tab.map(TabId),
            },
        );
        let episode = any::<u64>().prop_map(EpisodeId);
        prop_oneof![
            (agent(), process).prop_map(|(agent, process)| Event::ProcessFound { agent, process }),
            agent().prop_map(|agent| Event::ProcessDied { agent }),
            (agent(), any::<bool>())
                .prop_map(|(agent, stopped)| Event::ProcessStopped { agent, stopped }),
            agent().prop_map(|agent| Event::KeyFileSeen { agent }),
            (agent(), any::<bool>())
                .prop_map(|(agent, quiet)| Event::ProcessQuiet { agent, quiet }),
            agent().prop_map(|agent| Event::ProcessMissed { agent }),
            (agent(), stamp(), file()).prop_map(|(agent, at, file)| Event::FileRead {
                agent,
                at,
                file
            }),
            agent().prop_map(|agent| Event::FileRemoved { agent }),
            (agent(), text()).prop_map(|(agent, why)| Event::FileUnreadable { agent, why }),
            hook().prop_map(|hook| Event::HookFired {
                hook: Box::new(hook)
            }),
            (agent(), prop::collection::vec(fact(), 0..4))
                .prop_map(|(agent, facts)| Event::TranscriptGrew { agent, facts }),
            (agent(), any::<u64>(), any::<bool>())
                .prop_map(|(agent, request, ok)| Event::TranscriptRead { agent, request, ok }),
            agent().prop_map(|agent| Event::TranscriptMissing { agent }),
            (agent(), episode.clone()).prop_map(|(agent, episode)| Event::Seen { agent, episode }),
            (agent(), episode).prop_map(|(agent, episode)| Event::Dismissed { agent, episode }),
            prop::collection::vec(panes, 0..3).prop_map(|panes| Event::PanesListed { panes }),
            prop::collection::vec(workspace, 0..3)
                .prop_map(|workspaces| Event::LayoutChanged { workspaces }),
            (agent(), persisted)
                .prop_map(|(agent, persisted)| Event::Restored { agent, persisted }),
            Just(Event::RecoveryEnded),
            Just(Event::DeadlinePassed),
        ]
    }

    fn what() -> impl Strategy<Value = What> {
        prop_oneof![
            8 => event().prop_map(What::Evidence),
            2 => (agent(), of(badge()), stamp(), of(any::<u64>())).prop_map(
                |(agent, badge, since, episode)| What::Verdict(Verdict {
                    agent,
                    badge,
                    since,
                    episode: episode.map(EpisodeId),
                })
            ),
            1 => (any::<i64>(), any::<i64>(), any::<u64>(), any::<String>()).prop_map(
                |(from_ms, to_ms, count, why)| What::Lost(Lost { from_ms, to_ms, count, why })
            ),
            1 => (any::<String>(), any::<String>())
                .prop_map(|(version, boot_id)| What::Started(Started { version, boot_id })),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(at in stamp(), what in what()) {
            let record = Record { at, what };
            let line = encode(&record).expect("plain data");
            prop_assert!(!line.contains('\n'), "{}", line);
            prop_assert_eq!(decode(&line).expect("our own"), record);
        }

        #[test]
        fn an_agent_is_read_from_its_written_form(agent in agent()) {
            prop_assert_eq!(agent_key(&agent.to_string()), Some(agent));
        }

        #[test]
        fn any_line_is_read_or_refused(line in any::<String>()) {
            prop_assert!(decode(&line).is_err());
        }

        #[test]
        fn whatever_is_cut_off_is_refused(what in what(), cut in any::<prop::sample::Index>()) {
            let line = encode(&Record { at: Stamp::default(), what }).expect("plain data");
            let mut cut = cut.index(line.len());
            while !line.is_char_boundary(cut) {
                cut -= 1;
            }
            prop_assert!(decode(&line[..cut]).is_err());
        }

        #[test]
        fn without_text_changes_no_more_the_second_time(what in what()) {
            let bare = without_text(what);
            prop_assert_eq!(without_text(bare.clone()), bare);
        }
    }

    #[test]
    fn a_later_version_is_refused_by_its_number() {
        let error = decode(r#"[2,0,0,{"tomorrow":{}}]"#).expect_err("not ours");
        assert!(matches!(error, JournalError::Version(2)), "{error}");
    }

    /// What a person typed, what Claude said and what was run: in no record when texts are left out.
    #[test]
    fn without_text_nothing_of_what_was_said_is_left() {
        const SECRET: &str = "hunter2";
        let secret = || Arc::<str>::from(SECRET);
        let tool = || ToolCall {
            name: Arc::from("AskUserQuestion"),
            use_id: Some(Arc::from("toolu_1")),
            arg: Some(secret()),
            input_digest: 77,
            questions: vec![Question {
                text: secret(),
                options: vec![secret()],
                multi: false,
            }],
        };
        let kinds = vec![
            HookKind::Prompt {
                text: secret(),
                task_notification: false,
            },
            HookKind::ToolStarted { tool: tool() },
            HookKind::ToolEnded { tool: tool() },
            HookKind::ToolFailed {
                tool: tool(),
                interrupted: false,
            },
            HookKind::PermissionRequested { tool: tool() },
            HookKind::Notified {
                kind: None,
                message: secret(),
            },
            HookKind::FormAsked {
                server: Arc::from("lab"),
                message: secret(),
            },
            HookKind::Stopped {
                last_message: Some(secret()),
                background: None,
                wakes_at_ms: None,
                has_crons: false,
                stop_hook_active: false,
            },
            HookKind::StopFailed {
                error: Arc::from("rate_limit"),
                message: Some(secret()),
            },
        ];
        let facts = [
            TranscriptKind::TurnEnded {
                last_message: Some(secret()),
            },
            TranscriptKind::ApiError {
                kind: Arc::from("x"),
                message: Some(secret()),
            },
            TranscriptKind::ToolStarted { tool: tool() },
            TranscriptKind::Title {
                text: secret(),
                named: true,
            },
            TranscriptKind::FirstPrompt { text: secret() },
            TranscriptKind::LastWords { text: secret() },
        ];
        let key = AgentKey {
            host: HostId::from("here"),
            pid: 1,
            start: 2,
        };
        let mut all: Vec<What> = kinds
            .into_iter()
            .map(|kind| {
                What::Evidence(Event::HookFired {
                    hook: Box::new(Hook {
                        id: None,
                        at: Stamp::default(),
                        agent: Some(key.clone()),
                        pane: None,
                        conversation: None,
                        transcript: None,
                        cwd: None,
                        agent_id: None,
                        prompt_id: None,
                        job: false,
                        kind,
                    }),
                })
            })
            .collect();
        all.push(What::Evidence(Event::TranscriptGrew {
            agent: key.clone(),
            facts: facts
                .into_iter()
                .map(|kind| TranscriptFact {
                    written_ms: None,
                    sidechain: false,
                    kind,
                })
                .collect(),
        }));
        for badge in [
            Badge::NeedsInput(Ask {
                id: 1,
                kind: AskKind::Question,
                text: Some(secret()),
                tool: None,
                options: vec![secret()],
            }),
            Badge::Busy(Doing {
                tool: Some((Arc::from("Bash"), Some(secret()))),
                ..Doing::default()
            }),
        ] {
            all.push(What::Verdict(Verdict {
                agent: key.clone(),
                badge: Some(badge),
                since: Stamp::default(),
                episode: None,
            }));
        }
        for what in all {
            let line = |what| {
                encode(&Record {
                    at: Stamp::default(),
                    what,
                })
                .expect("plain data")
            };
            assert!(
                line(what.clone()).contains(SECRET),
                "the test itself: {what:?}"
            );
            let bare = line(without_text(what));
            assert!(!bare.contains(SECRET) && !bare.contains("77"), "{bare}");
        }
    }
}
