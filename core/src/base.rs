//! The verdict for sessions whose file carries no status (Claude Code before about 2.1.128): the mapping of
//! plain hooks, helped by PermissionRequest, tool results and the transcript.
//!
//! A function of what was said, replayed in the order of the stamps, so that no order of arrival matters.
//! Must not be used where the status file speaks.

use std::sync::Arc;
use std::time::Duration;

use crate::asks::{ASK_SKEW, Asks, Wanted};
use crate::time::{Stamp, Time};
use crate::turns::{Line, Stop, Turn, Turns, What};
use crate::witness::TranscriptKind;

/// An end marker counts for the lost Stop once this long has passed without one.
pub(crate) const STOP_GRACE: Duration = Duration::from_millis(500);

/// A tool's hook that is stamped this long after a turn's end is the next turn's: its process may be slow to start.
const TURN_SKEW: Duration = Duration::from_millis(500);

/// What hooks and transcript amount to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Base {
    /// Nothing was said.
    Nothing,
    /// A restart found it busy and nothing newer has been said.
    Unknown,
    /// Waits for a prompt.
    Idle { interrupted: bool },
    /// Works.
    Busy,
    /// A dialog; the open requests say which, or else only a Notification.
    Needs,
    /// The turn ended.
    Ended(Stop),
}

/// The verdict, since when, and when to look again.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub base: Base,
    pub since: Stamp,
    pub again: Option<Time>,
    /// Requests that are still open.
    pub asks: Asks,
    /// Between PreCompact and PostCompact.
    pub compacting: bool,
}

enum Said<'a> {
    Hook(&'a Turn),
    Line(&'a Line),
}

/// Where the replay begins.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub base: Base,
    pub since: Stamp,
    /// Hooks up to here are already in `base`. Both are moments of the boot clock: the wall clock may be set.
    pub hooks_after: Time,
    /// Lines up to here are already in `base`, or copied from another conversation.
    pub lines_after: Time,
}

/// Replays what was said onto the start.
pub(crate) fn verdict(turns: &Turns, start: Start, now: Time) -> Verdict {
    // Claude stamps its lines by the millisecond.
    let (hooks_after, lines_after) = (start.hooks_after.as_ms(), start.lines_after.as_ms());
    let mut said: Vec<(u64, Said<'_>)> = turns
        .hooks()
        .map(|t| (t.at.boot.as_ms(), Said::Hook(t)))
        .filter(|(ms, _)| *ms > hooks_after)
        .chain(
            turns
                .lines()
                .map(|l| (l.at.boot.as_ms(), Said::Line(l)))
                .filter(|(ms, _)| *ms > lines_after),
        )
        .collect();
    // Stable: hooks keep the order of their boot stamps, lines that of their file.
    said.sort_by_key(|(ms, _)| *ms);

    let mut verdict = Verdict {
        base: start.base,
        since: start.since,
        again: None,
        asks: Asks::default(),
        compacting: false,
    };
    for (_, said) in said {
        match said {
            Said::Hook(turn) => verdict.hook(turns, turn),
            Said::Line(line) => verdict.line(turns, line, now),
        }
    }
    verdict
}

impl Verdict {
    fn be(&mut self, base: Base, since: Stamp) {
        if self.base != base {
            self.base = base;
            self.since = since;
        }
    }

    fn hook(&mut self, turns: &Turns, turn: &Turn) {
        let at = turn.at;
        let main = turn.lane.is_none();
        if main && self.was_cut_off(turn) {
            return;
        }
        match &turn.what {
            What::Prompted { typed } => {
                if *typed {
                    self.asks.forget_main(at.boot);
                }
                if self.asks.iter().next().is_none() {
                    self.be(Base::Busy, at);
                }
            }
            What::ToolStarted(_) => {
                if main {
                    self.asks.forget_main(at.boot);
                }
                if self.asks.iter().next().is_none() && (main || self.base == Base::Needs) {
                    self.be(Base::Busy, at);
                }
            }
            What::ToolEnded(tool) => {
                let call = tool
                    .use_id
                    .as_ref()
                    .and_then(|id| turns.call(id))
                    .unwrap_or(tool);
                self.asks.tool_ended(at, turn.lane.as_ref(), call);
                let works = match self.base {
                    Base::Nothing | Base::Unknown | Base::Needs => true,
                    // Its turn's other hooks were lost. A hook of the turn before may be slow to start.
                    Base::Idle { interrupted: false } | Base::Ended(_) => {
                        main && at.boot > self.since.boot + TURN_SKEW
                    }
                    Base::Idle { interrupted: true } | Base::Busy => false,
                };
                if works && self.asks.iter().next().is_none() {
                    self.be(Base::Busy, at);
                }
            }
            What::Asked(tool) => {
                // One lane asks one thing at a time.
                self.asks.forget_lane(turn.lane.as_ref(), at.boot);
                self.asks
                    .add(at, turn.lane.clone(), Wanted::Tool(tool.clone()));
                self.be(Base::Needs, at);
            }
            What::FormAsked(message) => {
                self.asks.forget_lane(turn.lane.as_ref(), at.boot);
                self.asks
                    .add(at, turn.lane.clone(), Wanted::Form(message.clone()));
                self.be(Base::Needs, at);
            }
            What::FormAnswered => {
                self.asks.form_answered(at);
                if self.asks.iter().next().is_none() && self.base == Base::Needs {
                    self.be(Base::Busy, at);
                }
            }
            What::CompactStarted => self.compacting = true,
            What::CompactEnded => self.compacting = false,
            What::Started => {
                self.asks.forget(at.boot);
                self.compacting = false;
                // Also where it was idle already: what was said before is another conversation's.
                self.base = Base::Idle { interrupted: false };
                self.since = at;
            }
            What::Stopped(stop) => {
                self.asks.forget_main(at.boot);
                self.compacting = false;
                if self.asks.iter().next().is_some() {
                    return;
                }
                if stop.agents > 0 && stop.error.is_none() {
                    self.be(Base::Busy, at);
                } else {
                    self.be(Base::Ended(stop.clone()), at);
                }
            }
            What::PromptNoticed => self.be(Base::Needs, at),
        }
    }

    /// Esc ended the turn while the process of this hook was still to start: only a prompt begins another.
    fn was_cut_off(&self, turn: &Turn) -> bool {
        let of_a_tool = match &turn.what {
            What::ToolStarted(_) | What::ToolEnded(_) | What::Asked(_) | What::FormAsked(_) => true,
            What::Prompted { .. }
            | What::FormAnswered
            | What::CompactStarted
            | What::CompactEnded
            | What::Started
            | What::Stopped(_)
            | What::PromptNoticed => false,
        };
        of_a_tool
            && self.base == Base::Idle { interrupted: true }
            && turn.at.boot <= self.since.boot + ASK_SKEW
    }

    fn line(&mut self, turns: &Turns, line: &Line, now: Time) {
        let at = line.at;
        match &line.kind {
            TranscriptKind::TurnEnded { last_message } => {
                self.ended_in_transcript(line, None, last_message.clone(), now);
            }
            TranscriptKind::ApiError { kind, message } => {
                self.ended_in_transcript(line, Some(kind.clone()), message.clone(), now);
            }
            TranscriptKind::Interrupted => {
                self.asks.forget(at.boot);
                self.compacting = false;
                self.be(Base::Idle { interrupted: true }, at);
            }
            TranscriptKind::Prompted { .. } => match self.base {
                Base::Nothing | Base::Idle { .. } | Base::Ended(_) => self.be(Base::Busy, at),
                // An early Esc leaves no trace: after a restart a prompt alone does not prove work.
                Base::Unknown | Base::Busy | Base::Needs => {}
            },
            TranscriptKind::ToolStarted { .. } => match self.base {
                Base::Nothing | Base::Idle { .. } | Base::Ended(_) => self.be(Base::Busy, at),
                Base::Unknown | Base::Busy | Base::Needs => {}
            },
            TranscriptKind::ToolEnded { use_id } => {
                // Its hook may be late or lost: the request is answered all the same.
                if let Some(call) = turns.call(use_id) {
                    self.asks.tool_ended(at, None, call);
                }
                let answered = self.base == Base::Needs && self.asks.iter().next().is_none();
                match self.base {
                    Base::Nothing | Base::Unknown => self.be(Base::Busy, at),
                    Base::Needs if answered => self.be(Base::Busy, at),
                    // The result of a tool that Esc ended follows the marker.
                    Base::Idle { .. } | Base::Busy | Base::Needs | Base::Ended(_) => {}
                }
            }
            TranscriptKind::CompactBoundary
            | TranscriptKind::Enqueued
            | TranscriptKind::Dequeued
            | TranscriptKind::ContinuedIn { .. }
            | TranscriptKind::Usage { .. }
            | TranscriptKind::Requested
            | TranscriptKind::Title { .. }
            | TranscriptKind::FirstPrompt { .. }
            | TranscriptKind::LastWords { .. }
            | TranscriptKind::Rewound { .. } => {}
        }
    }

    fn ended_in_transcript(
        &mut self,
        line: &Line,
        error: Option<Arc<str>>,
        message: Option<Arc<str>>,
        now: Time,
    ) {
        match self.base {
            Base::Busy | Base::Unknown => {}
            Base::Nothing | Base::Idle { .. } | Base::Needs | Base::Ended(_) => return,
        }
        let due = line.seen + STOP_GRACE;
        if self.base == Base::Busy && now < due {
            self.again = Some(self.again.map_or(due, |a| a.min(due)));
            return;
        }
        self.be(
            Base::Ended(Stop {
                error,
                message,
                shells: 0,
                agents: 0,
                wakes_at_ms: None,
            }),
            line.at,
        );
    }
}

#[cfg(test)]
mod tests;
