//! Interrupting: one Esc, only while Claude works and nothing of it is asked, seen to work or said not to have.

use std::time::Duration;

use purplemux_core::witness::FileStatus;
use purplemux_wire::browser::Sending;
use purplemux_wire::dialog::Front;
use purplemux_wire::sentence::{Cause, Sentence};

use super::check::{Eyes, Key, Not, check, instead};
use super::sight::{Place, Seal, seal};
use super::{Ended, Means, Refusal, unsent};
use crate::{clock, tmux};

/// Esc shows in the status file within this (measured, Claude Code 2.1.332: 92 to 143 ms).
const IDLE_WITHIN: Duration = Duration::from_secs(1);
/// A prompt that waits begins about 100 ms after the interrupt (measured).
const NEXT_WITHIN: Duration = Duration::from_millis(500);
/// Between two looks at the status file.
const AGAIN: Duration = Duration::from_millis(20);

/// Interrupts once.
pub async fn stop(place: &Place, means: &Means) -> Result<Ended, Refusal> {
    let eyes = Eyes {
        place,
        tmux: &means.tmux,
        dirs: &means.dirs,
    };
    let now = seal(&place.agent, &means.dirs);
    let busy = match &now {
        Some(
            busy @ Seal::Status {
                status: FileStatus::Busy,
                ..
            },
        ) => busy,
        Some(Seal::Status {
            status: FileStatus::Waiting,
            ..
        }) => return Err(unsent(Cause::AsksSomething)),
        Some(Seal::Status { .. }) => return Err(unsent(Cause::NotWorking)),
        Some(Seal::Starting { .. }) => return Err(unsent(Cause::NotStarted)),
        None => return Err(unsent(Cause::WorkUnknown)),
    };
    let in_front = |front: &Front| match front {
        Front::Prompt { .. } => Ok(()),
        Front::Dialog(_) => Err(Not::Other(Cause::AsksSomething)),
        other @ (Front::Menu(_) | Front::Other) => Err(instead(other)),
    };
    let (checked, ()) = check(eyes, busy, in_front)
        .await
        .map_err(|not| unsent(not.why()))?;
    match checked.press(Key::Escape).await {
        Ok(()) => {}
        Err(error @ (tmux::Error::Unreachable(_) | tmux::Error::Deaf(_))) => {
            return Ok(ended(Sending::Failed, Some(Cause::from(error).into())));
        }
        Err(error @ (tmux::Error::Late | tmux::Error::Gone | tmux::Error::Refused(_))) => {
            return Err(unsent(error.into()));
        }
    }
    let until = clock::boot() + IDLE_WITHIN;
    let mut idle_since = None;
    loop {
        let now = clock::boot();
        match seal(&place.agent, &means.dirs) {
            Some(Seal::Status {
                status: FileStatus::Idle | FileStatus::Shell,
                ..
            }) => {
                let since = *idle_since.get_or_insert(now);
                if now.since(since) >= NEXT_WITHIN {
                    return Ok(ended(Sending::Sent, None));
                }
            }
            // Another spell: it was idle in between, seen or not.
            Some(other) if other != *busy => {
                return Ok(ended(Sending::Sent, Some(Cause::NextRuns.into())));
            }
            Some(_) | None if idle_since.is_some() && now >= until + NEXT_WITHIN => {
                return Ok(ended(Sending::Sent, None));
            }
            Some(_) | None if idle_since.is_none() && now >= until => {
                return Ok(ended(Sending::Failed, Some(Cause::WentOn.into())));
            }
            Some(_) | None => {}
        }
        clock::passed(AGAIN).await;
    }
}

fn ended(outcome: Sending, why: Option<Sentence>) -> Ended {
    Ended {
        outcome,
        what: "stop".to_owned(),
        why,
    }
}
