//! Interrupting: one Esc, only while Claude works and nothing of it is asked, seen to work or said not to have.

use std::time::Duration;

use purplemux_core::witness::FileStatus;
use purplemux_wire::browser::Sending;
use purplemux_wire::dialog::Front;

use super::check::{Eyes, Key, Not, check, instead};
use super::sight::{Place, Seal, seal};
use super::{Ended, Means, Refusal};
use crate::{clock, tmux};

/// Esc shows in the status file within this (measured, Claude Code 2.1.332: 92 to 143 ms).
const IDLE_WITHIN: Duration = Duration::from_secs(1);
/// A prompt that waits begins about 100 ms after the interrupt (measured).
const NEXT_WITHIN: Duration = Duration::from_millis(500);
/// Between two looks at the status file.
const AGAIN: Duration = Duration::from_millis(20);

const NEXT: &str = "A prompt was waiting; it runs now.";

/// Interrupts once.
pub async fn stop(place: &Place, means: &Means) -> Result<Ended, Refusal> {
    let refused = |why: &str| format!("{why} Nothing was sent.");
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
        }) => return Err(refused("Claude asks something; answer or reject that.")),
        Some(Seal::Status { .. }) => return Err(refused("Claude is not working.")),
        Some(Seal::Starting { .. }) => return Err(refused("Claude has not started yet.")),
        None => {
            return Err(refused(
                "It can't be told whether Claude works; open the terminal.",
            ));
        }
    };
    let in_front = |front: &Front| match front {
        Front::Prompt { .. } => Ok(()),
        Front::Dialog(_) => Err(Not::Other(
            "Claude asks something; answer or reject that.".to_owned(),
        )),
        other @ (Front::Menu(_) | Front::Other) => Err(instead(other)),
    };
    let (checked, ()) = check(eyes, busy, in_front)
        .await
        .map_err(|not| refused(&not.why()))?;
    match checked.press(Key::Escape).await {
        Ok(()) => {}
        Err(error @ (tmux::Error::Unreachable(_) | tmux::Error::Deaf(_))) => {
            return Ok(ended(
                Sending::Failed,
                Some(format!("{error} Open the terminal.")),
            ));
        }
        Err(error @ (tmux::Error::Late | tmux::Error::Gone | tmux::Error::Refused(_))) => {
            return Err(refused(&error.to_string()));
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
                return Ok(ended(Sending::Sent, Some(NEXT.to_owned())));
            }
            Some(_) | None if idle_since.is_some() && now >= until + NEXT_WITHIN => {
                return Ok(ended(Sending::Sent, None));
            }
            Some(_) | None if idle_since.is_none() && now >= until => {
                let why = "Claude went on all the same; open the terminal.".to_owned();
                return Ok(ended(Sending::Failed, Some(why)));
            }
            Some(_) | None => {}
        }
        clock::passed(AGAIN).await;
    }
}

fn ended(outcome: Sending, why: Option<String>) -> Ended {
    Ended {
        outcome,
        what: "stop".to_owned(),
        why,
    }
}
