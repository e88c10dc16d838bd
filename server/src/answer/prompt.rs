//! A prompt from the page: into an empty box of Claude's as one paste, Enter only once the box shows it, and then seen to
//! be taken or said not to have been. A draft that stands there is never merged with, and no Enter is pressed twice.

use std::time::Duration;

use purplemux_core::witness::FileStatus;
use purplemux_wire::browser::Sending;
use purplemux_wire::dialog::{Front, squeezed};
use purplemux_wire::sentence::{Cause, Sentence, Then};

use super::check::{Checked, Eyes, Key, Not, check, instead};
use super::sight::{Place, Seal, seal};
use super::{Ended, Means, Refusal, unsent};
use crate::{clock, tmux};

/// Longer than a person writes; a file says more.
pub const PROMPT_CHARS_MAX: usize = 20_000;
/// A screen that is half drawn is whole within this.
const DRAWN_WITHIN: Duration = Duration::from_millis(500);
/// What is pasted stands in the box within this.
const SHOWS_WITHIN: Duration = Duration::from_millis(1500);
/// Claude takes what was entered within this.
const TAKEN_WITHIN: Duration = Duration::from_secs(2);
/// Between two looks while something is waited for; each costs 0.2 ms.
const AGAIN: Duration = Duration::from_millis(20);
/// A look that has grown too old for its key is repeated this often: nothing was typed by then.
const TRIES: u32 = 5;

/// Sends a prompt once.
///
/// # Errors
/// Why nothing was typed.
pub async fn prompt(place: &Place, means: &Means, text: &str) -> Result<Ended, Refusal> {
    let text = clean(text);
    if text.is_empty() {
        return Err(unsent(Cause::NoWords));
    }
    if text.chars().count() > PROMPT_CHARS_MAX {
        return Err(unsent(Cause::PromptTooLong {
            max: count(PROMPT_CHARS_MAX),
        }));
    }
    let eyes = Eyes {
        place,
        tmux: &means.tmux,
        dirs: &means.dirs,
    };
    let writer = Writer { eyes, text: &text };
    let mut tries = TRIES;
    loop {
        let (checked, _) = writer
            .soon(DRAWN_WITHIN, empty)
            .await
            .map_err(|not| unsent(not.why()))?;
        match checked.paste(&text).await {
            Ok(()) => break,
            Err(tmux::Error::Late) if tries > 0 => tries -= 1,
            Err(error @ (tmux::Error::Late | tmux::Error::Gone | tmux::Error::Refused(_))) => {
                return Err(unsent(error.into()));
            }
            Err(error @ (tmux::Error::Unreachable(_) | tmux::Error::Deaf(_))) => {
                return Ok(writer.failed(Cause::from(error).into()));
            }
        }
    }
    Ok(writer.enter().await)
}

struct Writer<'a> {
    eyes: Eyes<'a>,
    text: &'a str,
}

impl<'a> Writer<'a> {
    /// The text was pasted: enters it once it is seen, and waits until it is taken.
    async fn enter(&self) -> Ended {
        let as_sent = |front: &Front| written(front, self.text);
        let mut tries = TRIES;
        let seal = loop {
            let (checked, seal) = match self.soon(SHOWS_WITHIN, as_sent).await {
                Ok(checked) => checked,
                Err(not) => return self.failed(stands(not.why())),
            };
            match checked.press(Key::Enter).await {
                Ok(()) => break seal,
                Err(tmux::Error::Late) if tries > 0 => tries -= 1,
                Err(error @ (tmux::Error::Late | tmux::Error::Gone | tmux::Error::Refused(_))) => {
                    return self.failed(stands(error.into()));
                }
                Err(error @ (tmux::Error::Unreachable(_) | tmux::Error::Deaf(_))) => {
                    return self.failed(Cause::from(error).into());
                }
            }
        };
        let until = clock::boot() + TAKEN_WITHIN;
        while clock::boot() < until {
            if let Ok(sight) = self.eyes.look().await {
                if sight.seal.as_ref().is_some_and(|now| *now != seal) {
                    return self.sent(None);
                }
                // A prompt changes nothing in the file while Claude works, and a command of Claude's own may never.
                let left = !matches!(&sight.front, Front::Other)
                    && written(&sight.front, self.text).is_err();
                if left && is_busy(&seal) {
                    return self.sent(Some(Cause::Queued));
                }
                if left && self.text.starts_with('/') {
                    return self.sent(None);
                }
            }
            clock::passed(AGAIN).await;
        }
        self.failed(Cause::NotTaken.into())
    }

    /// Checks until what is expected is there, as long as that may still come. Claude may begin or end a turn
    /// meanwhile: that is no other box.
    async fn soon(
        &self,
        within: Duration,
        expected: impl Fn(&Front) -> Result<(), Not>,
    ) -> Result<(Checked<'a>, Seal), Not> {
        let until = clock::boot() + within;
        loop {
            let now = takes_prompts(seal(&self.eyes.place.agent, self.eyes.dirs))?;
            match check(self.eyes, &now, &expected).await {
                Ok((checked, ())) => return Ok((checked, now)),
                Err(not) => {
                    let moved = seal(&self.eyes.place.agent, self.eyes.dirs) != Some(now);
                    if clock::boot() >= until || !(moved || matches!(not, Not::Yet(_))) {
                        return Err(not);
                    }
                }
            }
            clock::passed(AGAIN).await;
        }
    }

    fn sent(&self, why: Option<Cause>) -> Ended {
        self.ended(Sending::Sent, why.map(Sentence::from))
    }

    fn failed(&self, why: Sentence) -> Ended {
        self.ended(Sending::Failed, Some(why))
    }

    fn ended(&self, outcome: Sending, why: Option<Sentence>) -> Ended {
        Ended {
            outcome,
            what: self.text.to_owned(),
            why,
        }
    }
}

/// It was typed and not entered.
fn stands(cause: Cause) -> Sentence {
    Sentence {
        cause,
        then: Some(Then::NotSubmitted),
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// What Claude's file says, if a prompt can be typed at all.
fn takes_prompts(seal: Option<Seal>) -> Result<Seal, Not> {
    match seal {
        Some(Seal::Status {
            status: FileStatus::Waiting,
            ..
        }) => Err(Not::Other(Cause::AsksSomething)),
        Some(Seal::Starting { .. }) => Err(Not::Other(Cause::NotStarted)),
        None => Err(Not::Other(Cause::WorkUnknown)),
        Some(seal @ Seal::Status { .. }) => Ok(seal),
    }
}

fn is_busy(seal: &Seal) -> bool {
    matches!(
        seal,
        Seal::Status {
            status: FileStatus::Busy,
            ..
        }
    )
}

fn empty(front: &Front) -> Result<(), Not> {
    match front {
        Front::Prompt { draft: None } => Ok(()),
        // What was entered in the terminal this moment may still stand there.
        Front::Prompt { draft: Some(_) } => Err(Not::Yet(Cause::DraftInBox)),
        Front::Menu(_) | Front::Other => Err(instead(front)),
        Front::Dialog(_) => Err(Not::Other(Cause::AsksSomething)),
    }
}

fn written(front: &Front, text: &str) -> Result<(), Not> {
    match front {
        Front::Prompt { draft: Some(draft) } if stands_for(draft, text) => Ok(()),
        Front::Prompt { .. } | Front::Other => Err(Not::Yet(Cause::TextNotShown)),
        Front::Dialog(_) | Front::Menu(_) => Err(Not::Other(Cause::OtherOpened)),
    }
}

/// Whether the box holds this text and nothing else. What is long stands there as one mark (measured, Claude Code
/// 2.1.332).
fn stands_for(draft: &str, text: &str) -> bool {
    let draft = squeezed(draft);
    if draft == squeezed(text) {
        return true;
    }
    let mark = draft
        .strip_prefix("[Pastedtext#")
        .or_else(|| draft.strip_prefix("[Image#"))
        .and_then(|rest| rest.strip_suffix(']'));
    mark.is_some_and(|rest| !rest.contains(['[', ']']))
}

/// Without control characters but line breaks and tabs: they are keys, not text, and could end the paste.
fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let kept: String = text
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect();
    kept.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a08_a_prompt_is_text_and_no_key() {
        assert_eq!(clean("one\r\ntwo\x1b[201~\x03\n\n"), "one\ntwo[201~");
        assert_eq!(clean(" \n\t"), "");
    }

    #[test]
    fn a08_the_box_holds_this_text_and_nothing_else() {
        assert!(stands_for("one\n  two", "one\ntwo"));
        assert!(!stands_for("draft one two", "one\ntwo"));
        assert!(!stands_for("one", "one\ntwo"));
        assert!(stands_for("[Pasted text #1 +12 lines]", "long"));
        assert!(stands_for("[Image #2]", "/tmp/a.png"));
        assert!(!stands_for("draft [Pasted text #1 +12 lines]", "long"));
        assert!(!stands_for("[Pasted text #1] [Pasted text #2]", "long"));
    }

    #[test]
    fn a08_nothing_is_typed_over_a_draft_or_a_dialog() {
        let draft = Front::Prompt {
            draft: Some("half a thought".into()),
        };
        assert!(empty(&draft).is_err());
        assert!(matches!(
            empty(&Front::Menu("Model".into())),
            Err(Not::Other(_))
        ));
        assert!(matches!(empty(&Front::Other), Err(Not::Yet(_))));
        assert!(empty(&Front::Prompt { draft: None }).is_ok());
        assert!(takes_prompts(None).is_err());
        let waiting = Seal::Status {
            status: FileStatus::Waiting,
            since_ms: 0,
        };
        assert!(takes_prompts(Some(waiting)).is_err());
    }
}
