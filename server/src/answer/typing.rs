//! How one answer is typed: which keys, in which order, with a check before each, and what is waited for afterwards.
//! Every key goes through [`check`]; nothing here can type without one.

use std::time::Duration;

use purplemux_core::Time;
use purplemux_core::witness::FileStatus;
use purplemux_wire::browser::Answer;
use purplemux_wire::dialog::{Choice, Dialog, DialogKind, Front, squeezed};
use purplemux_wire::sentence::{Cause, Sentence, Then};

use super::check::{Checked, Eyes, Key, Not, check, instead, this};
use super::sight::{Seal, Sight};
use super::unsent;
use crate::{clock, sys, tmux};

/// The dialog must be seen to close within this.
const CLOSES_WITHIN: Duration = Duration::from_secs(2);
/// What a key does shows within this: a mark that moves, a box that is ticked, words that appear.
const SHOWS_WITHIN: Duration = Duration::from_millis(1500);
/// A screen that is half drawn is whole within this.
const DRAWN_WITHIN: Duration = Duration::from_millis(500);
/// Somebody who types in the terminal is waited for this long.
const QUIET_WITHIN: Duration = Duration::from_secs(3);
/// Between two looks while something is waited for; each costs 0.2 ms.
const AGAIN: Duration = Duration::from_millis(20);
/// Words that fit on a screen with the dialog around them.
pub const WORDS_CHARS_MAX: usize = 500;

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing was typed, and why.
    Refused(Sentence),
    /// The dialog was seen to close.
    Sent,
    /// Something was typed, and the dialog was not seen to close.
    Failed {
        /// What to do.
        why: Sentence,
        /// A key that answers may have reached Claude: nothing is ever typed for this dialog again.
        answered: bool,
    },
}

/// One answer to be typed.
#[derive(Clone, Copy)]
pub struct Typist<'a> {
    /// Whom.
    pub eyes: Eyes<'a>,
    /// What Claude's files said when the dialog was read.
    pub seal: &'a Seal,
    /// The dialog that the person saw.
    pub reading: &'a str,
    /// Whether a dialog fits what hooks and file say of the ask.
    pub fits: &'a (dyn Fn(&Dialog) -> bool + Sync),
    /// Told once, when the first key has been typed.
    pub typed: &'a (dyn Fn() + Sync),
}

/// How it ends early.
enum End {
    /// Not to be typed.
    Not(Not),
    /// tmux did not take a key, or did not say whether.
    Key(tmux::Error, Key),
    /// It went wrong on the way; no key that answers was typed.
    Way(Cause),
}

impl From<Not> for End {
    fn from(not: Not) -> Self {
        Self::Not(not)
    }
}

impl Typist<'_> {
    /// Types it.
    pub async fn type_out(&self, answer: &Answer) -> Done {
        let mut steps = Steps {
            of: *self,
            typed: false,
            refused: false,
        };
        let ended = match answer {
            Answer::Choose { option } => steps.choose(place(*option)).await,
            Answer::Check { options } => {
                let wanted: Vec<usize> = options.iter().map(|option| place(*option)).collect();
                steps.tick(&wanted).await
            }
            Answer::Reject => steps.reject().await,
            Answer::Words { text } => steps.say(text).await,
            Answer::Submit => steps.submit().await,
        };
        let Steps { typed, refused, .. } = steps;
        match ended {
            Ok(()) => Done::Sent,
            Err(End::Not(not)) if !typed => Done::Refused(unsent(not.why())),
            Err(End::Not(not)) if refused => Done::Failed {
                why: then(not.why(), Then::WordsNotSent),
                answered: true,
            },
            Err(End::Not(not)) => Done::Failed {
                why: then(not.why(), Then::NothingConfirmed),
                answered: false,
            },
            Err(End::Way(why)) => Done::Failed {
                answered: why == Cause::NoReaction,
                why: why.into(),
            },
            // tmux said that it did not do it.
            Err(End::Key(
                error @ (tmux::Error::Late | tmux::Error::Gone | tmux::Error::Refused(_)),
                _,
            )) if !typed => Done::Refused(unsent(error.into())),
            Err(End::Key(error, key)) => Done::Failed {
                answered: !matches!(key, Key::Up | Key::Down)
                    && matches!(error, tmux::Error::Unreachable(_)),
                why: Cause::from(error).into(),
            },
        }
    }
}

fn then(cause: Cause, then: Then) -> Sentence {
    Sentence {
        cause,
        then: Some(then),
    }
}

fn place(option: u32) -> usize {
    usize::try_from(option).unwrap_or(usize::MAX)
}

struct Steps<'a> {
    of: Typist<'a>,
    typed: bool,
    /// The dialog was refused on the way to a prompt.
    refused: bool,
}

impl<'a> Steps<'a> {
    async fn choose(&mut self, option: usize) -> Result<(), End> {
        let (checked, dialog) = self.dialog(|_| Ok(())).await?;
        let choice = chosen(&dialog, option)?;
        if is_for_words(choice) {
            return Err(other(Cause::TakesWords).into());
        }
        self.take(checked, &dialog, option).await?;
        self.closed().await
    }

    /// By its digit, or by the mark that is moved there, and Enter.
    async fn take(
        &mut self,
        checked: Checked<'_>,
        dialog: &Dialog,
        option: usize,
    ) -> Result<(), End> {
        if let Some(digit) = digit(dialog, chosen(dialog, option)?) {
            return self.press(checked, Key::Digit(digit)).await;
        }
        drop(checked);
        self.mark(option).await?;
        let (checked, _) = self.dialog(|dialog| marked(dialog, option)).await?;
        self.press(checked, Key::Enter).await
    }

    async fn submit(&mut self) -> Result<(), End> {
        let (checked, dialog) = self
            .dialog(|dialog| match dialog.submit {
                true => Ok(()),
                false => Err(other(Cause::NothingToSubmit)),
            })
            .await?;
        let first = digit(&dialog, chosen(&dialog, 0)?);
        let key = first.map_or(Key::Enter, Key::Digit);
        if first.is_none() {
            marked(&dialog, 0)?;
        }
        self.press(checked, key).await?;
        self.closed().await
    }

    async fn reject(&mut self) -> Result<(), End> {
        let (checked, _) = self.dialog(|_| Ok(())).await?;
        self.press(checked, Key::Escape).await?;
        self.closed().await
    }

    /// Has exactly these ticked, then goes on by the button below them.
    async fn tick(&mut self, wanted: &[usize]) -> Result<(), End> {
        let (_, dialog) = self.dialog(|_| Ok(())).await?;
        let button = dialog
            .options
            .iter()
            .position(|choice| choice.number.is_none() && choice.checked.is_none())
            .ok_or_else(|| other(Cause::OneAnswerOnly))?;
        let may = |at: &usize| {
            let choice = dialog.options.get(*at);
            choice.is_some_and(|choice| choice.checked.is_some() && !is_for_words(choice))
        };
        if !wanted.iter().all(may) {
            return Err(other(Cause::NoSuchBox).into());
        }
        for at in (0..dialog.options.len()).filter(may) {
            let want = Some(wanted.contains(&at));
            let ticked =
                move |dialog: &Dialog| dialog.options.get(at).map(|c| c.checked) == Some(want);
            let (checked, dialog) = self.dialog(|_| Ok(())).await?;
            if ticked(&dialog) {
                continue;
            }
            self.take(checked, &dialog, at).await?;
            self.shows(ticked, Cause::BoxNotTicked).await?;
        }
        self.mark(button).await?;
        let all = |dialog: &Dialog| {
            marked(dialog, button)?;
            let as_wanted = (0..dialog.options.len())
                .filter(may)
                .all(|at| dialog.options[at].checked == Some(wanted.contains(&at)));
            as_wanted
                .then_some(())
                .ok_or_else(|| other(Cause::OtherBoxes))
        };
        let (checked, _) = self.dialog(all).await?;
        self.press(checked, Key::Enter).await?;
        self.closed().await
    }

    /// Refuses and says what to do instead; a question is answered in words.
    async fn say(&mut self, text: &str) -> Result<(), End> {
        let text = one_line(text);
        if text.is_empty() {
            return Err(other(Cause::NoWords).into());
        }
        if text.chars().count() > WORDS_CHARS_MAX {
            return Err(other(Cause::TooLongForDialog {
                max: u32::try_from(WORDS_CHARS_MAX).unwrap_or(u32::MAX),
            })
            .into());
        }
        let (_, dialog) = self.dialog(|_| Ok(())).await?;
        match words_option(&dialog) {
            Some(at) => self.say_in(&dialog, at, &text).await,
            None => self.say_after(&text).await,
        }
    }

    async fn say_in(&mut self, dialog: &Dialog, at: usize, text: &str) -> Result<(), End> {
        self.mark(at).await?;
        if dialog.kind == DialogKind::Permission {
            let (checked, _) = self.dialog(|dialog| marked(dialog, at)).await?;
            self.press(checked, Key::Tab).await?;
        }
        // From here on this one option's words differ, and nothing else may.
        let amending = |front: &Front| match front {
            Front::Dialog(now) if same_but(now, dialog, at) && now.marked == at => {
                (dialog.kind != DialogKind::Permission || !now.offers_words)
                    .then(|| now.clone())
                    .ok_or(Not::Yet(Cause::TakesNoWords))
            }
            Front::Dialog(_) => Err(other(Cause::PromptChanged)),
            Front::Prompt { .. } | Front::Menu(_) | Front::Other => Err(instead(front)),
        };
        let (checked, _) = self.soon(self.of.seal, amending, SHOWS_WITHIN).await?;
        self.paste(checked, text).await?;
        let written = |front: &Front| {
            let now = amending(front)?;
            let label = squeezed(&now.options[at].label);
            let wanted = squeezed(text);
            let is = label == wanted || label.strip_prefix("No,") == Some(&wanted);
            is.then_some(()).ok_or(Not::Yet(Cause::WordsNotShown))
        };
        let (checked, ()) = self.soon(self.of.seal, written, SHOWS_WITHIN).await?;
        self.press(checked, Key::Enter).await?;
        self.closed().await
    }

    /// Where the dialog itself takes no words: it is refused, and they are the next prompt.
    async fn say_after(&mut self, text: &str) -> Result<(), End> {
        self.reject().await?;
        self.refused = true;
        let until = clock::boot() + CLOSES_WITHIN;
        let idle = loop {
            let sight = self.look().await?;
            match sight.seal {
                Some(
                    seal @ Seal::Status {
                        status: FileStatus::Idle | FileStatus::Shell,
                        ..
                    },
                ) => break seal,
                Some(_) | None if clock::boot() < until => clock::passed(AGAIN).await,
                Some(_) | None => {
                    return Err(End::Way(Cause::RefusedWordsUnsent));
                }
            }
        };
        let empty = |front: &Front| match front {
            Front::Prompt { draft: None } => Ok(()),
            Front::Prompt { draft: Some(_) } => Err(other(Cause::BoxTaken)),
            Front::Dialog(_) | Front::Menu(_) => Err(other(Cause::BoxNotInFront)),
            Front::Other => Err(Not::Yet(Cause::BoxNotInFront)),
        };
        let (checked, ()) = self.soon(&idle, empty, SHOWS_WITHIN).await?;
        self.paste(checked, text).await?;
        let written = |front: &Front| match front {
            Front::Prompt { draft: Some(draft) } if squeezed(draft) == squeezed(text) => Ok(()),
            Front::Prompt { .. } | Front::Other => Err(Not::Yet(Cause::WordsNotShown)),
            Front::Dialog(_) | Front::Menu(_) => Err(other(Cause::BoxNotInFront)),
        };
        let (checked, ()) = self.soon(&idle, written, SHOWS_WITHIN).await?;
        self.press(checked, Key::Enter).await?;
        let until = clock::boot() + CLOSES_WITHIN;
        while clock::boot() < until {
            let sight = self.look().await?;
            if sight.seal.is_some_and(|seal| seal != idle) {
                return Ok(());
            }
            clock::passed(AGAIN).await;
        }
        Err(End::Way(Cause::RefusedWordsStand))
    }

    /// Moves Claude's mark to an option, one row at a time, each step seen.
    async fn mark(&mut self, option: usize) -> Result<(), End> {
        let (mut checked, mut dialog) = self.dialog(|_| Ok(())).await?;
        chosen(&dialog, option)?;
        let steps = dialog.marked.abs_diff(option);
        for _ in 0..steps {
            let at = dialog.marked;
            let (key, next) = if at < option {
                (Key::Down, at + 1)
            } else {
                (Key::Up, at - 1)
            };
            self.press(checked, key).await?;
            self.shows(move |dialog| dialog.marked == next, Cause::MarkStuck)
                .await?;
            (checked, dialog) = self.dialog(|dialog| marked(dialog, next)).await?;
        }
        Ok(())
    }

    /// The dialog that the person saw, checked now.
    async fn dialog(
        &self,
        also: impl Fn(&Dialog) -> Result<(), Not>,
    ) -> Result<(Checked<'a>, Dialog), Not> {
        let Typist { reading, fits, .. } = self.of;
        let expected = |front: &Front| {
            let dialog = this(front, reading)?;
            if !fits(&dialog) {
                return Err(other(Cause::NotTheAsked));
            }
            also(&dialog)?;
            Ok(dialog)
        };
        self.soon(self.of.seal, expected, DRAWN_WITHIN).await
    }

    /// Checks until what is expected is there, as long as that may still come.
    async fn soon<T>(
        &self,
        seal: &Seal,
        expected: impl Fn(&Front) -> Result<T, Not>,
        within: Duration,
    ) -> Result<(Checked<'a>, T), Not> {
        let until = clock::boot() + within;
        let quiet_by = clock::boot() + QUIET_WITHIN;
        loop {
            match check(self.of.eyes, seal, &expected).await {
                Err(Not::Yet(Cause::SomebodyTypes)) if clock::boot() < quiet_by => {
                    clock::passed(AGAIN).await
                }
                Err(Not::Yet(_)) if clock::boot() < until => clock::passed(AGAIN).await,
                checked => return checked,
            }
        }
    }

    async fn press(&mut self, checked: Checked<'_>, key: Key) -> Result<(), End> {
        checked
            .press(key)
            .await
            .map_err(|error| End::Key(error, key))?;
        self.has_typed();
        Ok(())
    }

    async fn paste(&mut self, checked: Checked<'_>, text: &str) -> Result<(), End> {
        // As harmless as an arrow: it chooses nothing.
        checked
            .paste(text)
            .await
            .map_err(|error| End::Key(error, Key::Down))?;
        self.has_typed();
        Ok(())
    }

    fn has_typed(&mut self) {
        if !std::mem::replace(&mut self.typed, true) {
            (self.of.typed)();
        }
    }

    async fn look(&self) -> Result<Sight, End> {
        let looked = self.of.eyes.look().await;
        looked.map_err(|error| End::Not(Not::Other(error.into())))
    }

    /// Waits until the same dialog is seen so.
    async fn shows(&self, wanted: impl Fn(&Dialog) -> bool, otherwise: Cause) -> Result<(), End> {
        let until = clock::boot() + SHOWS_WITHIN;
        while clock::boot() < until {
            if let Front::Dialog(dialog) = self.look().await?.front
                && wanted(&dialog)
            {
                return Ok(());
            }
            clock::passed(AGAIN).await;
        }
        Err(End::Way(otherwise))
    }

    /// Waits until the dialog is seen to have closed: the file says something else, or something else is surely in
    /// front, or the process has ended.
    async fn closed(&self) -> Result<(), End> {
        let until: Time = clock::boot() + CLOSES_WITHIN;
        loop {
            let agent = &self.of.eyes.place.agent;
            if sys::is_gone(agent) {
                return Ok(());
            }
            if let Ok(sight) = self.of.eyes.look().await {
                let file = sight.seal.is_some_and(|seal| seal != *self.of.seal);
                let screen = match &sight.front {
                    Front::Dialog(dialog) => dialog.reading() != self.of.reading,
                    Front::Prompt { .. } => true,
                    Front::Menu(_) | Front::Other => false,
                };
                if file || screen {
                    return Ok(());
                }
            }
            if clock::boot() >= until {
                return Err(End::Way(Cause::NoReaction));
            }
            clock::passed(AGAIN).await;
        }
    }
}

fn other(why: Cause) -> Not {
    Not::Other(why)
}

fn chosen(dialog: &Dialog, option: usize) -> Result<&Choice, Not> {
    dialog
        .options
        .get(option)
        .ok_or_else(|| other(Cause::NoSuchOption))
}

fn marked(dialog: &Dialog, option: usize) -> Result<(), Not> {
    (dialog.marked == option)
        .then_some(())
        .ok_or_else(|| other(Cause::MarkMoved))
}

/// The digit that chooses an option, unless digits go into words that stand under the mark now.
fn digit(dialog: &Dialog, choice: &Choice) -> Option<u8> {
    let into_words = dialog.options.get(dialog.marked).is_some_and(is_for_words);
    choice
        .number
        .filter(|number| (1..=9).contains(number) && !into_words)
}

/// An option that is a box to write in (measured, Claude Code 2.1.332): its label is this until something is written.
pub fn is_for_words(choice: &Choice) -> bool {
    matches!(
        choice.label.as_str(),
        // Its digit only moves the mark there (measured, Claude Code 2.1.332).
        "Type something." | "Type something" | "Tell Claude what to change"
    )
}

/// The option that takes words: a permission's "No", a question's own.
pub fn words_option(dialog: &Dialog) -> Option<usize> {
    if !dialog.offers_words {
        return None;
    }
    let found = match dialog.kind {
        DialogKind::Permission => |choice: &Choice| choice.label == "No",
        // Between boxes to tick it would only be one more of them.
        DialogKind::Question => |choice: &Choice| choice.checked.is_none() && is_for_words(choice),
        DialogKind::Plan | DialogKind::Trust | DialogKind::Form | DialogKind::Other => return None,
    };
    dialog.options.iter().rposition(found)
}

/// The same dialog, whatever the label of this one option is now.
fn same_but(now: &Dialog, before: &Dialog, at: usize) -> bool {
    let rest = |dialog: &Dialog| {
        let mut rest = dialog.clone();
        if let Some(choice) = rest.options.get_mut(at) {
            choice.label.clear();
            choice.note.clear();
        }
        rest.reading()
    };
    now.options.len() == before.options.len() && rest(now) == rest(before)
}

/// One line without control characters: they are keys, not text.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog(labels: &[&str], marked: usize) -> Dialog {
        let options = labels.iter().enumerate().map(|(at, label)| Choice {
            number: u8::try_from(at + 1).ok(),
            label: (*label).to_owned(),
            note: String::new(),
            checked: None,
        });
        Dialog {
            kind: DialogKind::Permission,
            title: "Bash command".to_owned(),
            subject: vec!["touch a.txt".to_owned()],
            question: "Do you want to proceed?".to_owned(),
            options: options.collect(),
            marked,
            part: None,
            submit: false,
            offers_words: true,
        }
    }

    #[test]
    fn a05_a_digit_is_not_typed_into_words() {
        let asked = dialog(&["Amber", "Violet", "Type something."], 0);
        assert_eq!(digit(&asked, &asked.options[1]), Some(2));
        let writing = Dialog { marked: 2, ..asked };
        assert_eq!(digit(&writing, &writing.options[1]), None);
    }

    #[test]
    fn a10_words_go_to_the_option_that_takes_them() {
        let asked = dialog(&["Yes", "No"], 0);
        assert_eq!(words_option(&asked), Some(1));
        let plain = Dialog {
            offers_words: false,
            ..asked.clone()
        };
        assert_eq!(words_option(&plain), None);
        let amending = dialog(&["Yes", "No, use 1 file"], 1);
        assert!(same_but(&amending, &asked, 1));
        assert!(!same_but(&amending, &asked, 0));
        assert!(!same_but(&dialog(&["Yes", "No", "Maybe"], 1), &asked, 1));
        assert_eq!(one_line(" use\n1\x1b file\t"), "use 1 file");
    }
}
