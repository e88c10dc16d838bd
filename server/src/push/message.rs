//! What is sent to a device: facts, which its own service worker puts into words. Must never carry more than
//! the device's choice of what its lock screen shows, nor anything that was not cleaned (`wire::text`).

use purplemux_core::alerts::Kind;
use purplemux_wire::browser::{AskKind, Item, State};
use purplemux_wire::push::{About, Buttons, Push};

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
    /// The tool that wants to run; empty for everything but a permission.
    pub tool: String,
    /// Command, question, last words or reason; one line.
    pub text: String,
    /// It is the whole of it, on the lines that it had.
    pub whole: bool,
    /// Background shells that go on.
    pub shells: u32,
    /// Since when, unix ms.
    pub since_ms: i64,
}

/// Needs-input or review.
#[must_use]
pub fn kind(about: About) -> Kind {
    match about {
        About::Permission
        | About::Question
        | About::Plan
        | About::Form
        | About::Dialog
        | About::Startup => Kind::Ask,
        About::Finished | About::Failed => Kind::Review,
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
                (about, ask.text.clone())
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
        let tool = match about {
            About::Permission => detail.tool.as_deref().unwrap_or_default(),
            About::Question
            | About::Plan
            | About::Form
            | About::Dialog
            | About::Startup
            | About::Finished
            | About::Failed => "",
        };
        Some(Self {
            row: item.id.clone(),
            title: shortened(&item.title),
            about,
            tool: shortened(tool),
            text: shortened(&text),
            whole: shortened(&text) == text,
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

/// As much of the content as the device's lock screen may show.
#[must_use]
pub fn show<'a>(
    content: &'a Content,
    episode: u64,
    silent: bool,
    count: usize,
    choices: &'a Choices,
    buttons: Option<Buttons>,
) -> Push<'a> {
    let title = choices.shows != Shows::Count;
    let everything = choices.shows == Shows::Everything;
    let text = |text: &'a str| (everything && !text.is_empty()).then_some(text);
    Push::Show {
        row: &content.row,
        episode,
        about: title.then_some(content.about),
        title: title.then_some(&content.title),
        tool: text(&content.tool),
        text: text(&content.text),
        shells: (title && content.shells > 0).then_some(content.shells),
        since_ms: content.since_ms,
        silent,
        count,
        lang: &choices.lang,
        buttons,
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
            tool: "Bash".to_owned(),
            text: "rm -rf build".to_owned(),
            whole: true,
            shells: 0,
            since_ms: 5,
        }
    }

    fn shown(shows: Shows) -> String {
        let choices = Choices {
            shows,
            ..Choices::default()
        };
        String::from_utf8(show(&content(), 7, false, 2, &choices, None).bytes()).unwrap()
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
