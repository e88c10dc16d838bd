//! What came in and could not be used: refused, skipped or not understood. Counted since the server's start,
//! for `purplemux doctor`; no count decides anything.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// The counters. Leaf data: every witness adds, one route reads.
#[derive(Debug, Default)]
pub struct Odd {
    hooks_refused: AtomicU64,
    hooks_unknown: AtomicU64,
    hooks_cut: AtomicU64,
    status_files_refused: AtomicU64,
    status_files_unread: AtomicU64,
    transcripts_refused: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Posts that were no hook's: no JSON, no event, nested too deep, endless.
    pub hooks_refused: u64,
    /// Hooks of a name we do not know.
    pub hooks_unknown: u64,
    /// Hooks whose body was too large to be kept; the event counted.
    pub hooks_cut: u64,
    /// Names of status files with something else behind them: a folder, a link, a pipe.
    pub status_files_refused: u64,
    /// Status files that could not be read or understood for longer than a write takes.
    pub status_files_unread: u64,
    /// Transcripts that may not or can't be read.
    pub transcripts_refused: u64,
}

impl Odd {
    /// A post that was no hook's.
    pub fn hook_refused(&self) {
        add(&self.hooks_refused);
    }

    /// A hook of an unknown name.
    pub fn hook_unknown(&self) {
        add(&self.hooks_unknown);
    }

    /// A hook without its body.
    pub fn hook_cut(&self) {
        add(&self.hooks_cut);
    }

    /// Something that is no status file in the place of one.
    pub fn status_file_refused(&self) {
        add(&self.status_files_refused);
    }

    /// A status file that can't be read for now.
    pub fn status_file_unread(&self) {
        add(&self.status_files_unread);
    }

    /// A transcript that is not read.
    pub fn transcript_refused(&self) {
        add(&self.transcripts_refused);
    }

    /// All of them now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            hooks_refused: read(&self.hooks_refused),
            hooks_unknown: read(&self.hooks_unknown),
            hooks_cut: read(&self.hooks_cut),
            status_files_refused: read(&self.status_files_refused),
            status_files_unread: read(&self.status_files_unread),
            transcripts_refused: read(&self.transcripts_refused),
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
