//! What Claude emits, and what a person who watched it would call the right badge at each moment.
//!
//! Values only. Times are milliseconds of the boot clock; a signal's time is that of its source.

use std::sync::Arc;

use purplemux_core::view::AskKind;
use purplemux_core::witness::{AgentKind, FileStatus, HookKind, TranscriptKind, WaitingFor};

/// The place of a signal in the history.
pub type Id = usize;

/// One thing that some witness can see.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// When it happened, at its source.
    pub at: u64,
    /// What.
    pub what: What,
}

/// The kinds of signals. `process` counts the processes of a history.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A hook process started.
    Hook {
        process: usize,
        lane: Option<Arc<str>>,
        conversation: usize,
        kind: HookKind,
    },
    /// The status file was written.
    Wrote { process: usize, file: File },
    /// It was removed.
    Removed { process: usize },
    /// A line can be read in this conversation's transcript; Claude stamped it earlier.
    Line {
        conversation: usize,
        written: u64,
        sidechain: bool,
        kind: TranscriptKind,
    },
    /// The process was found.
    Found { process: usize },
    /// Its key file appeared.
    KeyFile { process: usize },
    /// From here on it uses no CPU, or it does again.
    Quiet { process: usize, quiet: bool },
    /// Its state became T, or no longer is.
    Stopped { process: usize, stopped: bool },
    /// It ended.
    Died { process: usize },
    /// The person looks at the end of the answer.
    Looked,
}

/// What the status file says.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Which conversation.
    pub conversation: usize,
    /// Absent at first.
    pub status: Option<FileStatus>,
    /// Beside `waiting`.
    pub waiting_for: Option<WaitingFor>,
    /// `statusUpdatedAt`.
    pub since: u64,
    /// Interactive or background.
    pub kind: AgentKind,
    /// Number of the job that goes on with this session.
    pub parked: Option<usize>,
    /// Number of the job this is.
    pub job: Option<usize>,
}

/// The right badge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// No Claude.
    None,
    Idle,
    Busy,
    /// What is asked and, where a hook says it, the text that names it.
    Ask {
        kind: AskKind,
        text: Option<Arc<str>>,
    },
    /// The kind of failure, if it failed.
    Review {
        error: Option<Arc<str>>,
    },
    /// Whatever was shown before this moment (a compaction changes nothing).
    AsBefore {
        at: u64,
    },
}

/// By when a badge must be shown. Counted from the arrival of what decides, because what has not
/// arrived can't be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// It may be skipped.
    Never,
    /// At this moment.
    At(u64),
    /// `ms` after all of these have arrived; if one never does, it may be skipped.
    After { all: Vec<Id>, ms: u64 },
    /// A turn's end (rule 4): at once when `hook` was there before the file and nothing speaks against
    /// it (`plain`); else after the half second of waiting, by what the transcript says.
    End {
        hook: Id,
        file: Id,
        lines: Vec<Id>,
        plain: bool,
        /// When the turn began, if it compacted.
        compacted: Option<u64>,
    },
    /// It may be shown, but only if none of these had arrived when the file did.
    Unless { told: Vec<Id>, file: Id },
    /// It may be shown, but only if this write was never read by itself.
    Unread(Id),
    /// An end in silence: the wait of half a second after the file, then nothing found.
    /// If the busy before it was read at all.
    Silence { file: Id, busy: Option<Id> },
}

/// Whether the stay in this badge is to be pushed, if it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// Once, with sound.
    Yes,
    /// Once or never, with sound or without.
    Perhaps,
    /// Not with sound.
    Silent,
}

/// One stretch of the truth: from here on this badge is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The badge.
    pub want: Want,
    /// The earliest moment at which showing it can be right.
    pub from: u64,
    /// By when it must be shown.
    pub due: Due,
    /// What is to be pushed.
    pub push: Push,
    /// The reason, by the rule or the case that says so.
    pub why: &'static str,
}
