//! The only way to a key: [`check`] looks, and only if what is seen is what was expected does it give a
//! [`Checked`], which is used up by the one key that it allows, and is good for a moment only.
//!
//! Nothing else in [`super`] can type. A `Checked` can't be made, copied or kept.

use std::time::Duration;

use purplemux_core::Time;
use purplemux_core::witness::FileStatus;
use purplemux_wire::dialog::{Dialog, Front};
use purplemux_wire::sentence::Cause;
use tracing::debug;

use super::sight::{Place, Seal, Sight, look};
use crate::ingest::process::ClaudeDirs;
use crate::{clock, tmux};

/// How long what was seen counts. Reading the file and comparing takes well below a millisecond; a task that was
/// held up longer looks again.
const FRESH: Duration = Duration::from_millis(40);

/// How often a look that has grown too old is repeated.
const LOOKS_MAX: u32 = 5;

/// What is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The number of an option.
    Digit(u8),
    /// One option up.
    Up,
    /// One option down.
    Down,
    /// Chooses what is marked, or sends what stands in a box.
    Enter,
    /// To the next question, or to the words on an option.
    Tab,
    /// Refuses a dialog, or interrupts.
    Escape,
}

impl Key {
    /// The arguments of `send-keys`.
    fn arguments(self) -> Vec<String> {
        let name = match self {
            // Literally: a key's name could never be a digit, but nothing is to depend on that.
            Self::Digit(digit) => return vec!["-l".to_owned(), "--".to_owned(), digit.to_string()],
            Self::Up => "Up",
            Self::Down => "Down",
            Self::Enter => "Enter",
            Self::Tab => "Tab",
            Self::Escape => "Escape",
        };
        vec![name.to_owned()]
    }
}

/// Who is looked at, and by what means.
#[derive(Clone, Copy, Debug)]
pub struct Eyes<'a> {
    /// Whose pane.
    pub place: &'a Place,
    /// Our tmux server.
    pub tmux: &'a tmux::Handle,
    /// Where Claude keeps its files.
    pub dirs: &'a ClaudeDirs,
}

impl Eyes<'_> {
    /// Looks once; nothing is typed.
    ///
    /// # Errors
    /// tmux does not answer, or the pane is gone.
    pub async fn look(&self) -> Result<Sight, tmux::Error> {
        look(self.place, self.tmux, self.dirs).await
    }
}

/// Why nothing may be typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Not {
    /// Something else is there.
    Other(Cause),
    /// What was seen may be what was meant in a moment: a screen that is half drawn.
    Yet(Cause),
}

impl Not {
    /// What is in the way.
    #[must_use]
    pub fn why(self) -> Cause {
        match self {
            Self::Other(why) | Self::Yet(why) => why,
        }
    }
}

/// That what was expected was there a moment ago. It allows one key.
#[must_use]
#[derive(Debug)]
pub struct Checked<'a> {
    eyes: Eyes<'a>,
    at: Time,
}

impl Checked<'_> {
    /// Types one key into the pane that was looked at.
    ///
    /// # Errors
    /// The look is too old by now, or tmux refuses: nothing was typed. Where tmux does not answer it may have been.
    pub async fn press(self, key: Key) -> Result<(), tmux::Error> {
        let arguments = key.arguments();
        let mut command = vec!["send-keys", "-t", self.eyes.place.pane()];
        command.extend(arguments.iter().map(String::as_str));
        self.run(&command).await
    }

    /// Pastes one line as one bracketed paste: no key of it is read as a choice (measured, Claude Code 2.1.332: a
    /// paste into a dialog changes nothing).
    ///
    /// # Errors
    /// As [`Self::press`].
    pub async fn paste(self, text: &str) -> Result<(), tmux::Error> {
        let pane = self.eyes.place.pane();
        let buffer = format!("purplemux-answer-{}", pane.trim_start_matches('%'));
        let set = ["set-buffer", "-b", &buffer, "--", text];
        self.eyes
            .tmux
            .command_in(self.eyes.place.run(), &set)
            .await?;
        self.run(&["paste-buffer", "-p", "-d", "-b", &buffer, "-t", pane])
            .await
    }

    async fn run(self, command: &[&str]) -> Result<(), tmux::Error> {
        let eyes = self.eyes;
        let not_after = self.at + FRESH;
        eyes.tmux
            .command_before(eyes.place.run(), not_after, command)
            .await?;
        Ok(())
    }
}

/// Looks, and gives leave for one key if `expected` finds nothing against it. Leaves the scroll-back first, then
/// looks again.
///
/// # Errors
/// Why not; nothing was typed.
pub async fn check<'a, T>(
    eyes: Eyes<'a>,
    seal: &Seal,
    expected: impl Fn(&Front) -> Result<T, Not>,
) -> Result<(Checked<'a>, T), Not> {
    let unreachable = |error: tmux::Error| Not::Other(error.into());
    let mut left_mode = false;
    for _ in 0..LOOKS_MAX {
        let sight = eyes.look().await.map_err(unreachable)?;
        if sight.in_mode {
            if left_mode {
                break;
            }
            left_mode = true;
            let quit = ["copy-mode", "-q", "-t", eyes.place.pane()];
            let quit = eyes.tmux.command_in(eyes.place.run(), &quit).await;
            quit.map_err(unreachable)?;
            continue;
        }
        if let Some(why) = sight.deaf {
            return Err(Not::Other(why));
        }
        // What a key does to Claude's own box is the person's to know; to a dialog it may be the answer.
        if sight.somebody_types && seal.asks() {
            return Err(Not::Yet(Cause::SomebodyTypes));
        }
        if sight.seal.as_ref() != Some(seal) {
            return Err(changed(seal, sight.seal.as_ref()));
        }
        let found = expected(&sight.front)?;
        if clock::boot().since(sight.at) < FRESH {
            let at = sight.at;
            return Ok((Checked { eyes, at }, found));
        }
        debug!("a look took too long to count");
    }
    Err(if left_mode {
        Not::Other(Cause::ScrolledBack)
    } else {
        Not::Other(Cause::MachineBusy)
    })
}

fn changed(was: &Seal, now: Option<&Seal>) -> Not {
    match (was, now) {
        (_, None) => Not::Yet(Cause::StatusUnreadable),
        (Seal::Status { .. }, Some(Seal::Status { status, .. })) => Not::Other(match status {
            FileStatus::Waiting => Cause::AsksOther,
            FileStatus::Idle | FileStatus::Busy | FileStatus::Shell => Cause::AnsweredInTerminal,
        }),
        (_, Some(_)) => Not::Other(Cause::AnsweredInTerminal),
    }
}

/// This dialog and no other.
///
/// # Errors
/// What stands there instead.
pub fn this(front: &Front, reading: &str) -> Result<Dialog, Not> {
    match front {
        Front::Dialog(dialog) if dialog.reading() == reading => Ok(dialog.clone()),
        Front::Dialog(_) => Err(Not::Other(Cause::PromptChanged)),
        Front::Prompt { .. } | Front::Menu(_) | Front::Other => Err(instead(front)),
    }
}

/// Why no dialog can be answered while this stands in front.
#[must_use]
pub fn instead(front: &Front) -> Not {
    match front {
        Front::Menu(_) => Not::Other(Cause::MenuOpen),
        Front::Prompt { draft: Some(_) } => Not::Other(Cause::DraftInBox),
        Front::Prompt { draft: None } => Not::Other(Cause::NoDialog),
        Front::Dialog(_) => Not::Other(Cause::OtherDialog),
        Front::Other => Not::Yet(Cause::ScreenUnsure),
    }
}
