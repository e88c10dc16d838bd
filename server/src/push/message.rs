//! What is sent to a device: facts, which its own service worker puts into words. Must never carry more than
//! the device's choice of what its lock screen shows, nor anything that was not cleaned (`wire::text`).

use purplemux_core::alerts::Kind;
use purplemux_wire::browser::{AskKind, Item, State};
use serde::Serialize;

use super::devices::{Choices, Shows};

/// Longer texts say nothing more on a lock screen (M09).
const TEXT_CHARS_MAX: usize = 200;

/// What there is to say about an episode, as it was when somebody was to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The row's id.
    pub row: String,
    /// The session.
    pub title: String,
    /// What for.
    pub about: About,
    /// Command, question, last words or reason; one line.
    pub text: String,
    /// Background shells that go on.
    pub shells: u32,
    /// Since when, unix ms.
    pub since_ms: i64,
}

/// What an episode is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
    /// Needs-input or review.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Permission
            | Self::Question
            | Self::Plan
            | Self::Form
            | Self::Dialog
            | Self::Startup => Kind::Ask,
            Self::Finished | Self::Failed => Kind::Review,
        }
    }

    /// As it is written in the history.
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

impl Content {
    /// From a row in needs-input or review; `None` for any other.
    #[must_use]
    pub fn of(item: &Item) -> Option<Self> {
        let detail = &item.detail;
        let (about, text) = match item.state? {
            State::NeedsInput => {
                let ask = detail.ask.as_ref()?;
                let about = match ask.kind {
                    AskKind::Permission => About::Permission,
                    AskKind::Question => About::Question,
                    AskKind::Plan => About::Plan,
                    AskKind::Form => About::Form,
                    AskKind::Dialog => About::Dialog,
                    AskKind::Startup => About::Startup,
                };
                let tool = detail
                    .tool
                    .as_deref()
                    .filter(|_| about == About::Permission);
                let text = match tool {
                    Some(tool) if !ask.text.is_empty() => format!("{tool}: {}", ask.text),
                    Some(tool) => tool.to_owned(),
                    None => ask.text.clone(),
                };
                (about, text)
            }
            State::Review => match &detail.error {
                Some(error) => (About::Failed, error.clone()),
                None => (
                    About::Finished,
                    item.last_message.clone().unwrap_or_default(),
                ),
            },
            State::Idle | State::Busy | State::Unknown => return None,
        };
        Some(Self {
            row: item.id.clone(),
            title: shortened(&item.title),
            about,
            text: shortened(&text),
            shells: detail.shells.unwrap_or(0),
            since_ms: item.since_ms,
        })
    }
}

/// One line of at most [`TEXT_CHARS_MAX`] characters.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TEXT_CHARS_MAX) {
        None => line,
        Some(_) => line.chars().take(TEXT_CHARS_MAX - 1).chain(['…']).collect(),
    }
}

/// One push message; the service worker's side of this is `web/src/worker`.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Payload<'a> {
    /// Show a row's notification in place of an earlier one.
    Show {
        /// Names the notification, and what a tap opens.
        row: &'a str,
        /// Which stay; a repeat of it makes no sound again.
        episode: u64,
        /// What for; absent where only the count may be seen.
        #[serde(skip_serializing_if = "Option::is_none")]
        about: Option<About>,
        /// The session.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        /// What exactly.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<&'a str>,
        /// Background shells that go on.
        #[serde(skip_serializing_if = "Option::is_none")]
        shells: Option<u32>,
        /// Since when, unix ms.
        since_ms: i64,
        /// Without sound.
        silent: bool,
        /// How many need the person now.
        count: usize,
        /// The language of the words.
        lang: &'a str,
    },
    /// Take a row's notification away, unless it is of a later stay.
    Close {
        /// Which.
        row: &'a str,
        /// Of which stay.
        episode: u64,
        /// How many need the person now.
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

impl<'a> Payload<'a> {
    /// As much of the content as the device's lock screen may show.
    #[must_use]
    pub fn show(
        content: &'a Content,
        episode: u64,
        silent: bool,
        count: usize,
        choices: &'a Choices,
    ) -> Self {
        let title = choices.shows != Shows::Count;
        let everything = choices.shows == Shows::Everything;
        Self::Show {
            row: &content.row,
            episode,
            about: title.then_some(content.about),
            title: title.then_some(&content.title),
            text: (everything && !content.text.is_empty()).then_some(&content.text),
            shells: (title && content.shells > 0).then_some(content.shells),
            since_ms: content.since_ms,
            silent,
            count,
            lang: &choices.lang,
        }
    }

    /// The bytes to encrypt; far below the 4096 that every push service takes (RFC 8030 §7.2).
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain texts and numbers have a JSON form")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> Content {
        Content {
            row: "r1".to_owned(),
            title: "shop".to_owned(),
            about: About::Permission,
            text: "Bash: rm -rf build".to_owned(),
            shells: 0,
            since_ms: 5,
        }
    }

    fn shown(shows: Shows) -> String {
        let choices = Choices {
            shows,
            ..Choices::default()
        };
        String::from_utf8(Payload::show(&content(), 7, false, 2, &choices).bytes()).unwrap()
    }

    #[test]
    fn m09_a_lock_screen_shows_no_more_than_was_chosen() {
        let everything = shown(Shows::Everything);
        assert!(everything.contains("rm -rf build") && everything.contains("shop"));
        let title = shown(Shows::Title);
        assert!(
            title.contains("shop") && title.contains("permission") && !title.contains("rm -rf")
        );
        let count = shown(Shows::Count);
        assert!(count.contains(r#""count":2"#) && !count.contains("shop"));
        assert!(!count.contains("permission"));
    }

    #[test]
    fn m09_texts_are_one_line_of_two_hundred_characters() {
        assert_eq!(shortened("a\n  b\tc"), "a b c");
        let long = shortened(&"漢".repeat(500));
        assert_eq!(long.chars().count(), TEXT_CHARS_MAX);
        assert!(long.ends_with('…'));
        assert_eq!(shortened(&"漢".repeat(200)).chars().last(), Some('漢'));
    }
}
