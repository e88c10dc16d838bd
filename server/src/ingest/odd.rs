//! What came in and could not be used: refused, skipped or not understood. Counted since the server's start,
//! each kind with the last reason, for `purplemux doctor`; no count decides anything.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::clock;

/// Characters of a reason that are kept: a path and a sentence.
const WHY_CHARS_MAX: usize = 300;

/// The kinds of what can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Posts that were no hook's: no JSON, no event, nested too deep, endless.
    HookRefused,
    /// Hooks of a name we do not know.
    HookUnknown,
    /// Hooks whose body was too large to be kept; the event counted.
    HookCut,
    /// Names of status files with something else behind them: a folder, a link, a pipe.
    StatusFileRefused,
    /// Status files that could not be read or understood for longer than a write takes.
    StatusFileUnread,
    /// Transcripts that may not be read: outside of Claude's folders, a link, a pipe, a device.
    TranscriptRefused,
    /// Transcripts that could not be read.
    TranscriptUnread,
    /// Lines of transcripts that were no JSON object.
    LineBroken,
    /// Lines of transcripts that were too long.
    LineTooLong,
}

/// How often, and why the last time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Since the server's start.
    pub count: u64,
    /// The last reason.
    pub why: String,
    /// When that was, unix ms.
    pub at_ms: i64,
}

/// All kinds that were met.
pub type Counts = BTreeMap<Kind, Counted>;

/// The table. Leaf data: every witness adds, one route reads.
#[derive(Debug, Default)]
pub struct Odd(Mutex<Counts>);

impl Odd {
    /// One more of this kind.
    pub fn add(&self, kind: Kind, why: impl Display) {
        self.add_many(kind, 1, why);
    }

    /// So many more of this kind; none is none.
    pub fn add_many(&self, kind: Kind, count: u64, why: impl Display) {
        if count == 0 {
            return;
        }
        let why = why.to_string().chars().take(WHY_CHARS_MAX).collect();
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = counts.entry(kind).or_default();
        counted.count = counted.count.saturating_add(count);
        counted.why = why;
        counted.at_ms = clock::wall_ms();
    }

    /// All of them now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
