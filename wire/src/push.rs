//! What is pushed to a device: facts, which the page's own service worker puts into words. Owns the shape of
//! one message; must never carry text that was not cleaned (`crate::text`).

use serde::Serialize;
use ts_rs::TS;

/// What a notification is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum About {
    /// May this tool run?
    Permission,
    /// AskUserQuestion.
    Question,
    /// A plan to approve.
    Plan,
    /// Values to fill in.
    Form,
    /// A dialog of Claude's.
    Dialog,
    /// A start-up question.
    Startup,
    /// A turn has ended.
    Finished,
    /// A turn has failed.
    Failed,
}

impl About {
    /// As it is written in messages and in the history.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Question => "question",
            Self::Plan => "plan",
            Self::Form => "form",
            Self::Dialog => "dialog",
            Self::Startup => "startup",
            Self::Finished => "finished",
            Self::Failed => "failed",
        }
    }
}

/// What a press on Yes or No sends back, word for word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
pub struct Buttons {
    /// The ask.
    #[ts(type = "number")]
    pub ask: u64,
    /// The card's reading.
    pub reading: String,
    /// Place of "Yes" among the card's options.
    pub yes: u32,
    /// Place of "No".
    pub no: u32,
    /// Proves that this was sent to this device.
    pub seal: String,
}

/// One push message.
#[derive(Debug, Serialize, TS)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Push<'a> {
    /// Show a row's notification in place of an earlier one.
    Show {
        /// Names the notification, and what a tap opens.
        row: &'a str,
        /// Which stay; a repeat of it makes no sound again.
        #[ts(type = "number")]
        episode: u64,
        /// What for; absent where only the count may be seen.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        about: Option<About>,
        /// The session.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        title: Option<&'a str>,
        /// The tool that wants to run.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        tool: Option<&'a str>,
        /// Command, question, last words or reason.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        text: Option<&'a str>,
        /// Background shells that go on.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        shells: Option<u32>,
        /// Since when, unix ms.
        #[ts(type = "number")]
        since_ms: i64,
        /// Without sound.
        silent: bool,
        /// How many sessions need the person now.
        #[ts(type = "number")]
        count: usize,
        /// The language of the words.
        lang: &'a str,
        /// Yes and No: only for a plain permission, on a device that wants them.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        buttons: Option<Buttons>,
    },
    /// Take a row's notification away, unless it is of another stay.
    Close {
        /// Which.
        row: &'a str,
        /// Of which stay.
        #[ts(type = "number")]
        episode: u64,
        /// How many sessions need the person now.
        #[ts(type = "number")]
        count: usize,
        /// The language of the words.
        lang: &'a str,
    },
    /// The person pressed "test".
    Test {
        /// The language of the words.
        lang: &'a str,
    },
}

impl Push<'_> {
    /// The bytes to encrypt; far below the 4096 that every push service takes (RFC 8030 §7.2).
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain texts and numbers have a JSON form")
    }
}
