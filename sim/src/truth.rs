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
        /// Number of the turn, where the payload has its id.
        prompt: Option<usize>,
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
    /// The person looks at the end of the answer in this pane's tab.
    Looked { pane: usize },
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
    /// 0.3 s after the end of the tool about which was asked, where nothing else tells that it was answered, and only
    /// if the `request` was known by then (Q14).
    Answered { request: Id, result: Id },
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
    /// A second after a pane's process `died`, in the row of the job that lives on, and right at all only if
    /// this look reached somebody (`came`), or only if it did not.
    IfRead { look: Id, came: bool, died: Id },
}

impl Due {
    /// It waits for this signal to arrive.
    #[must_use]
    pub fn rests_on(&self, id: Id) -> bool {
        matches!(self, Self::After { all, ms: _ } if all.contains(&id))
    }
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
    /// Which model said so: evidence of others means nothing to it.
    pub cast: usize,
}

/// A process of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// The system gives it the pid of the one before in the same pane.
    pub same_pid: bool,
    /// The pane whose shell it descends from.
    pub pane: Option<usize>,
    /// The process whose tool it is.
    pub parent: Option<usize>,
    /// What a row may show of it.
    pub role: Role,
    /// Its version has no status in the file.
    pub old: bool,
}

/// What a row may show of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The session of its pane.
    Session,
    /// A background session: in the row of the pane that parked it, later in a row of its own.
    Job,
    /// Spare workers, children of a tool, subcommands: never anything.
    Nothing,
}

/// A row of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// The tab of this pane.
    Tab(usize),
    /// A background session without a pane, by its process.
    Job(usize),
}

/// What is right in one row, from the beginning to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// Which row.
    pub row: Row,
    /// In order.
    pub entries: Vec<Entry>,
}

/// A history that was played: all that was emitted (`None`: it never happened after all) and what is right.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// Signals, those of one model together; [`Id`]s are places in it.
    pub signals: Vec<Option<Signal>>,
    /// Where each model's signals begin.
    pub casts: Vec<usize>,
    /// Every process.
    pub births: Vec<Birth>,
    /// Every row.
    pub truths: Vec<Truth>,
    /// How many panes there are.
    pub panes: usize,
    /// The moment of the last step.
    pub end: u64,
    /// Hooks vanished, so what only a hook says may be missing.
    pub hooks_vanish: bool,
}

impl Played {
    /// The model that emitted this signal.
    #[must_use]
    pub fn cast_of(&self, id: Id) -> usize {
        self.casts.partition_point(|first| *first <= id) - 1
    }

    /// The signals of one model, by their places.
    #[must_use]
    pub fn signals_of(&self, cast: usize) -> std::ops::Range<Id> {
        let end = self.casts.get(cast + 1);
        self.casts[cast]..end.copied().unwrap_or(self.signals.len())
    }
}
