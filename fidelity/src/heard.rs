//! What one run left behind, as plain data: the keys, the fake's log, the looks of the screen, and what was shown
//! and told meanwhile. Everything that is judged is judged from this, so that a run can be judged again.
//!
//! All moments are unix nanoseconds of one clock.

use serde::{Deserialize, Serialize};

use crate::screen::{Class, Look};

/// Nanoseconds in a millisecond.
pub const MS: i64 = 1_000_000;

/// Nanoseconds in a second.
pub const SECOND: i64 = 1_000 * MS;

/// What a key was pressed for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// Sends a prompt to Claude.
    Prompt(String),
    /// Sends a `!command`.
    Bang,
    /// Sends `/compact`.
    Compact,
    /// Sends `/clear`.
    Clear,
    /// Opens a menu.
    OpenMenu,
    /// Closes it.
    CloseMenu,
    /// Ends a turn.
    Interrupt,
    /// Says yes to a dialog, or answers it.
    Approve,
    /// Says no to it.
    Refuse,
    /// Changes nothing.
    Stray,
    /// Ctrl-Z.
    Suspend,
    /// `fg`.
    Foreground,
    /// `/exit`.
    Exit,
    /// kill -9 of Claude's process; no key at all.
    Kill,
    /// Starts Claude from the shell.
    Start,
}

/// A key, or what counts as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Right before it was sent.
    pub at: i64,
    /// What for.
    pub aim: Aim,
}

/// A change of what the screen shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The first capture that shows it.
    pub at: i64,
    /// The last one that does not.
    pub before: i64,
    /// What it shows.
    pub look: Look,
}

/// How the fake's answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Whole, with this stop reason.
    Complete(String),
    /// An HTTP error.
    Failed(u16),
    /// Claude hung up.
    HungUp,
}

/// One request for a message by the Claude of this tab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// When it had arrived.
    pub at: i64,
    /// `main` or `compact`.
    pub kind: String,
    /// It is a subagent's.
    pub agent: bool,
    /// The newest prompt in it.
    pub prompt: String,
    /// How its answer ended, and when; `None`: it was still being answered.
    pub end: Option<(i64, How)>,
}

/// A badge as a viewer was shown it: `none`, `idle`, `busy`, `unknown`, `needs-input(permission)`,
/// `review(finished)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// When the line had arrived.
    pub at: i64,
    /// The badge.
    pub badge: String,
    /// Drawn as suspended.
    pub suspended: bool,
}

/// Somebody was told of a badge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// When.
    pub at: i64,
    /// `needs-input` or `review`.
    pub state: String,
    /// Without a sound: an update of what was told before.
    pub silent: bool,
}

/// A hook of Claude's, as our own recorder in the person's settings heard it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// When the recorder's process started.
    pub at: i64,
    /// The event's name.
    pub event: String,
    /// `notification_type` or `source`; empty elsewhere.
    pub kind: String,
}

/// A write of Claude's status file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The file's mtime.
    pub at: i64,
    /// `status`; `None`: there is none, or the file is gone.
    pub status: Option<String>,
    /// `waitingFor`.
    pub waiting_for: Option<String>,
}

/// The server was down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// From the signal that ended it.
    pub from: i64,
    /// To the first line of the next one.
    pub to: i64,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The seed of the lab that it was played in.
    pub seed: u64,
    /// Which of its sessions.
    pub session: usize,
    /// The script, in words.
    pub script: Vec<String>,
    /// Why it could not be played to its end.
    pub broken: Option<String>,
    /// Judged from here …
    pub from: i64,
    /// … to here.
    pub to: i64,
    /// Keys.
    pub keys: Vec<Key>,
    /// Screens.
    pub seen: Vec<Seen>,
    /// The fake's log.
    pub asked: Vec<Asked>,
    /// The product's badges.
    pub shown: Vec<Shown>,
    /// Its notifications.
    pub told: Vec<Told>,
    /// When it was down.
    pub outages: Vec<Outage>,
    /// The original hooks.
    pub heard: Vec<Heard>,
    /// Interrupt markers in the transcript.
    pub interrupts: Vec<i64>,
    /// Claude's own file.
    pub written: Vec<Written>,
}

impl Run {
    /// What the screen showed at a moment.
    #[must_use]
    pub fn class_at(&self, at: i64) -> Option<Class> {
        let seen = self.seen.iter().rev().find(|seen| seen.at <= at)?;
        Some(seen.look.class)
    }
}
