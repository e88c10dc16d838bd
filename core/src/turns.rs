//! What hooks and transcript have said about an agent's turns, in the order of the stamps at the source.
//!
//! Keeps and answers questions; never decides. Bounded: 512 entries each, far more than the newest spell's
//! decisive events, and only the newest ones decide.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::time::{Stamp, Time};
use crate::witness::{ToolCall, TranscriptKind};

/// Longest memory of each list. A turn of thousands of tools keeps its newest ones, which are those that decide.
const ENTRIES_MAX: usize = 512;

/// What calls a subagent; `Task` in old versions.
const SUBAGENT_TOOLS: [&str; 2] = ["Agent", "Task"];

/// A Stop or StopFailure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    /// StopFailure's kind.
    pub error: Option<Arc<str>>,
    /// Claude's last words, as the payload says.
    pub message: Option<Arc<str>>,
    /// Running shells in its list.
    pub shells: u32,
    /// Running entries of any other type in its list.
    pub agents: u32,
    /// The next scheduled wake-up.
    pub wakes_at_ms: Option<i64>,
}

/// What a hook said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// UserPromptSubmit; not `typed` when it is a task's notification.
    Prompted { typed: bool },
    /// PreToolUse.
    ToolStarted(ToolCall),
    /// PostToolUse or PostToolUseFailure.
    ToolEnded(ToolCall),
    /// PermissionRequest.
    Asked(ToolCall),
    /// Elicitation.
    FormAsked(Arc<str>),
    /// ElicitationResult.
    FormAnswered,
    /// PreCompact.
    CompactStarted,
    /// PostCompact or SessionStart(compact).
    CompactEnded,
    /// Any other SessionStart.
    Started,
    /// Stop or StopFailure.
    Stopped(Stop),
    /// Notification of a permission prompt: counts only where nothing better exists.
    PromptNoticed,
}

impl What {
    /// A Stop or StopFailure.
    pub(crate) fn stop(&self) -> Option<&Stop> {
        if let Self::Stopped(stop) = self {
            Some(stop)
        } else {
            None
        }
    }

    /// A prompt: typed by a person or not.
    pub(crate) fn prompt(&self) -> Option<bool> {
        if let Self::Prompted { typed } = self {
            Some(*typed)
        } else {
            None
        }
    }

    /// A tool's start.
    pub(crate) fn call(&self) -> Option<&ToolCall> {
        if let Self::ToolStarted(tool) = self {
            Some(tool)
        } else {
            None
        }
    }

    /// A tool's result.
    pub(crate) fn result(&self) -> Option<&ToolCall> {
        if let Self::ToolEnded(tool) = self {
            Some(tool)
        } else {
            None
        }
    }
}

/// One hook's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Stamped by the hook.
    pub at: Stamp,
    /// The subagent that fired it; `None` is the main lane.
    pub lane: Option<Arc<str>>,
    /// The turn it belongs to, where Claude says so.
    pub prompt: Option<Arc<str>>,
    /// Its word.
    pub what: What,
}

impl Turn {
    /// A turn event of the main lane (rule 4): these alone decide how a spell ended.
    pub(crate) fn decides(&self) -> bool {
        self.lane.is_none() && !matches!(self.what, What::PromptNoticed)
    }

    /// Belongs to a compaction.
    pub(crate) fn compacts(&self) -> bool {
        matches!(self.what, What::CompactStarted | What::CompactEnded)
    }
}

/// One decisive transcript line of the main lane, in the file's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// When Claude wrote it, on both clocks; when we saw it, if the wall clock was set in between.
    pub at: Stamp,
    /// When we saw it.
    pub seen: Time,
    /// What it says.
    pub kind: TranscriptKind,
}

impl Line {
    /// Belongs to a spell that began at `since`. The wall clock is exact, but it may have been set; then what counts
    /// is when it was seen.
    pub(crate) fn belongs(&self, since: Stamp) -> bool {
        let written = if self.at.same_clock(since) {
            self.at.wall_ms >= since.wall_ms
        } else {
            self.at.boot >= since.boot
        };
        written && self.seen >= since.boot
    }

    /// A tool's start.
    pub(crate) fn call(&self) -> Option<&ToolCall> {
        if let TranscriptKind::ToolStarted { tool } = &self.kind {
            Some(tool)
        } else {
            None
        }
    }

    /// The id of a call whose result this is.
    pub(crate) fn result(&self) -> Option<&Arc<str>> {
        if let TranscriptKind::ToolEnded { use_id } = &self.kind {
            Some(use_id)
        } else {
            None
        }
    }

    /// A prompt: typed by a person or not.
    pub(crate) fn prompt(&self) -> Option<bool> {
        if let TranscriptKind::Prompted { task_notification } = self.kind {
            Some(!task_notification)
        } else {
            None
        }
    }
}

/// Both lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    hooks: VecDeque<Turn>,
    lines: VecDeque<Line>,
    /// Prompts put in the queue and not yet taken out, as far as the transcript says.
    queued: u32,
    /// When the newest was taken out.
    dequeued: Option<Stamp>,
    /// Requests to the API without an answer yet, as far as the transcript says, and the newest of them.
    tries: u32,
    tried: Option<Stamp>,
}

impl Turns {
    /// Puts a hook in its place by its stamp. `false`: it was there already.
    pub(crate) fn add(&mut self, turn: Turn) -> bool {
        let after = self
            .hooks
            .iter()
            .rposition(|t| t.at.boot <= turn.at.boot)
            .map_or(0, |i| i + 1);
        let twin = self
            .hooks
            .iter()
            .take(after)
            .rev()
            .take_while(|t| t.at.boot == turn.at.boot)
            .any(|t| *t == turn);
        if twin {
            return false;
        }
        self.hooks.insert(after, turn);
        if self.hooks.len() > ENTRIES_MAX {
            // Busy subagents must not push the main lane out, which alone decides.
            let lane = self.hooks.iter().position(|t| t.lane.is_some());
            self.hooks.remove(lane.unwrap_or(0));
        }
        true
    }

    /// Appends a transcript line.
    pub(crate) fn read(&mut self, line: Line) {
        self.count_tries(&line);
        match line.kind {
            TranscriptKind::Rewound { to_ms } => self.rewind(to_ms),
            TranscriptKind::Enqueued => self.queued = self.queued.saturating_add(1),
            TranscriptKind::Dequeued => {
                self.queued = self.queued.saturating_sub(1);
                self.dequeued = Some(line.at);
            }
            TranscriptKind::TurnEnded { .. }
            | TranscriptKind::ApiError { .. }
            | TranscriptKind::Interrupted
            | TranscriptKind::Prompted { .. }
            | TranscriptKind::ToolStarted { .. }
            | TranscriptKind::ToolEnded { .. }
            | TranscriptKind::CompactBoundary => {
                self.lines.push_back(line);
                if self.lines.len() > ENTRIES_MAX {
                    self.lines.pop_front();
                }
            }
            TranscriptKind::ContinuedIn { .. }
            | TranscriptKind::Usage { .. }
            | TranscriptKind::Requested
            | TranscriptKind::Title { .. }
            | TranscriptKind::FirstPrompt { .. }
            | TranscriptKind::LastWords { .. } => {}
        }
    }

    /// What was written after `to_ms` belongs to a branch that was given up, and says nothing any more.
    fn rewind(&mut self, to_ms: Option<i64>) {
        self.lines
            .retain(|line| to_ms.is_some_and(|to| line.at.wall_ms <= to));
    }

    /// Claude's last words at the end of a turn, as far as the transcript still tells.
    pub(crate) fn last_words(&self) -> Option<&Arc<str>> {
        self.lines.iter().rev().find_map(|line| {
            if let TranscriptKind::TurnEnded { last_message } = &line.kind {
                last_message.as_ref()
            } else {
                None
            }
        })
    }

    /// A line of the main lane answers all requests before it (recorded runs s12a to s12c, 2.1.332: in no run did
    /// one that was not a retry follow another without such a line).
    fn count_tries(&mut self, line: &Line) {
        match line.kind {
            TranscriptKind::Requested => {
                self.tries = self.tries.saturating_add(1);
                self.tried = Some(line.at);
            }
            TranscriptKind::TurnEnded { .. }
            | TranscriptKind::ApiError { .. }
            | TranscriptKind::Interrupted
            | TranscriptKind::Prompted { .. }
            | TranscriptKind::ToolStarted { .. }
            | TranscriptKind::ToolEnded { .. }
            | TranscriptKind::CompactBoundary
            | TranscriptKind::Usage { .. }
            | TranscriptKind::Rewound { .. } => self.tries = 0,
            TranscriptKind::Enqueued
            | TranscriptKind::Dequeued
            | TranscriptKind::ContinuedIn { .. }
            | TranscriptKind::Title { .. }
            | TranscriptKind::FirstPrompt { .. }
            | TranscriptKind::LastWords { .. } => {}
        }
    }

    /// The API is asked again, in work that began at `since`.
    pub(crate) fn retries(&self, since: Stamp) -> bool {
        self.tries > 1 && self.tried.is_some_and(|at| at.wall_ms >= since.wall_ms)
    }

    /// The conversation is another one: its transcript says nothing about the new one.
    pub(crate) fn forget_transcript(&mut self) {
        self.tries = 0;
        self.lines.clear();
        self.queued = 0;
    }

    /// A spell is over: whatever waited in the queue has been dealt with.
    pub(crate) fn forget_queue(&mut self) {
        self.queued = 0;
    }

    /// A prompt waits in the queue.
    pub(crate) fn prompt_queued(&self) -> bool {
        self.queued > 0
    }

    /// All hooks, oldest first.
    pub(crate) fn hooks(&self) -> impl DoubleEndedIterator<Item = &Turn> {
        self.hooks.iter()
    }

    /// All lines, oldest first.
    pub(crate) fn lines(&self) -> impl DoubleEndedIterator<Item = &Line> {
        self.lines.iter()
    }

    /// Turn events of the main lane, oldest first.
    pub(crate) fn deciding(&self) -> impl DoubleEndedIterator<Item = &Turn> {
        self.hooks.iter().filter(|t| t.decides())
    }

    /// The newest prompt stamped after `after`.
    pub(crate) fn prompt_after(&self, after: Time) -> Option<&Turn> {
        self.deciding()
            .rev()
            .take_while(|t| t.at.boot > after)
            .find(|t| matches!(t.what, What::Prompted { .. }))
    }

    /// The newest prompt line written after `after`: a queued prompt was taken up, which no hook tells.
    pub(crate) fn prompt_line_after(&self, after: Stamp) -> Option<Stamp> {
        let mut newest = self.lines.iter().rev();
        let line = newest.find(|l| l.prompt().is_some())?;
        line.belongs(after.later_ms()).then_some(line.at)
    }

    /// A prompt or a tool was written after `after`.
    pub(crate) fn worked_after(&self, after: Stamp) -> bool {
        let mut written = self.lines.iter().filter(|l| l.belongs(after.later_ms()));
        written.any(|l| l.prompt().is_some() || l.call().is_some() || l.result().is_some())
    }

    /// The newest turn event, if it is a PreCompact stamped after `after`.
    pub(crate) fn compaction_after(&self, after: Time) -> Option<&Turn> {
        self.deciding()
            .next_back()
            .filter(|t| t.at.boot > after && matches!(t.what, What::CompactStarted))
    }

    /// The newest PreCompact stamped after `after`, if nothing but its own end was heard since.
    pub(crate) fn compacted_after(&self, after: Time) -> Option<&Turn> {
        self.deciding()
            .rev()
            .take_while(|t| t.at.boot > after && t.compacts())
            .find(|t| matches!(t.what, What::CompactStarted))
    }

    /// Main-lane tools that were started by `since` or later and have no result yet, oldest first.
    pub(crate) fn open_tools(&self, since: Time) -> Vec<&ToolCall> {
        let mut open: Vec<&ToolCall> = Vec::new();
        for turn in self.deciding().filter(|t| t.at.boot >= since) {
            if let What::ToolStarted(tool) = &turn.what {
                open.push(tool);
            } else if let Some(tool) = turn.what.result() {
                open.retain(|o| !same_call(o, tool));
            }
        }
        // A result may be stamped before its start: both are stamped by processes of their own.
        open.retain(|o| !self.ended(o));
        open
    }

    /// The call with this id, as a hook or the transcript told its start.
    pub(crate) fn call(&self, id: &Arc<str>) -> Option<&ToolCall> {
        let hooked = self.hooks.iter().rev().filter_map(|t| t.what.call());
        let written = self.lines.iter().rev().filter_map(Line::call);
        hooked
            .chain(written)
            .find(|call| call.use_id.as_ref() == Some(id))
    }

    /// The tools, of whatever lane, whose result was stamped after `after`.
    pub(crate) fn results_after(&self, after: Time) -> impl Iterator<Item = &ToolCall> {
        let hooked = self.hooks.iter().filter(move |t| t.at.boot > after);
        let hooked = hooked.filter_map(|t| t.what.result());
        let written = self.lines.iter().filter(move |l| l.at.boot > after);
        hooked.chain(written.filter_map(|l| self.call(l.result()?)))
    }

    /// The tools of `lane` whose result was stamped at `since` or later, as a hook or the transcript told it.
    pub(crate) fn results_since(
        &self,
        since: Time,
        lane: Option<&Arc<str>>,
    ) -> impl Iterator<Item = &ToolCall> {
        let of_lane = move |t: &&Turn| t.at.boot >= since && t.lane.as_ref() == lane;
        let hooked = self.hooks.iter().filter(of_lane);
        let hooked = hooked.filter_map(|t| t.what.result());
        // The transcript's lines are the main lane's.
        let written = self.lines.iter().filter(move |l| l.at.boot >= since);
        let written = written.filter(move |_| lane.is_none());
        hooked.chain(written.filter_map(|l| self.call(l.result()?)))
    }

    /// The call was started by `by`.
    pub(crate) fn started_by(&self, call: &ToolCall, by: Time) -> bool {
        let hooked = self.hooks.iter().map(|t| (t.at.boot, t.what.call()));
        let written = self.lines.iter().map(|l| (l.at.boot, l.call()));
        hooked
            .chain(written)
            .any(|(at, started)| started == Some(call) && at <= by)
    }

    /// A hook or the transcript has told this call's result.
    pub(crate) fn ended(&self, call: &ToolCall) -> bool {
        let Some(id) = &call.use_id else { return false };
        let hooked = self.deciding().filter_map(|t| t.what.result());
        let written = self.lines.iter().filter_map(Line::result);
        hooked
            .filter_map(|ended| ended.use_id.as_ref())
            .chain(written)
            .any(|ended| ended == id)
    }

    /// Tools of the transcript written at `since` or later that have no result line yet, oldest first.
    pub(crate) fn open_lines(&self, since: Stamp) -> Vec<&ToolCall> {
        let mut open: Vec<&ToolCall> = Vec::new();
        for line in self.lines.iter().filter(|l| l.belongs(since)) {
            match &line.kind {
                TranscriptKind::ToolStarted { tool } => open.push(tool),
                TranscriptKind::ToolEnded { use_id } => {
                    open.retain(|o| o.use_id.as_ref() != Some(use_id));
                }
                TranscriptKind::Interrupted => open.clear(),
                TranscriptKind::TurnEnded { .. }
                | TranscriptKind::ApiError { .. }
                | TranscriptKind::Prompted { .. }
                | TranscriptKind::Enqueued
                | TranscriptKind::Dequeued
                | TranscriptKind::CompactBoundary
                | TranscriptKind::ContinuedIn { .. }
                | TranscriptKind::Usage { .. }
                | TranscriptKind::Requested
                | TranscriptKind::Title { .. }
                | TranscriptKind::FirstPrompt { .. }
                | TranscriptKind::LastWords { .. }
                | TranscriptKind::Rewound { .. } => {}
            }
        }
        open
    }

    /// How the transcript says that the spell since `since` ended.
    pub(crate) fn end_in_transcript(&self, since: Stamp) -> TranscriptEnd {
        self.end_between(since, None)
    }

    /// The same of the time between `since` and `until`.
    pub(crate) fn end_between(&self, since: Stamp, until: Option<Stamp>) -> TranscriptEnd {
        let mut boundary = false;
        let mut worked = false;
        let mut prompted = false;
        for line in self.lines.iter().rev() {
            if !line.belongs(since) || until.is_some_and(|until| line.belongs(until)) {
                continue;
            }
            match &line.kind {
                TranscriptKind::TurnEnded { last_message } if !worked => {
                    return TranscriptEnd::Ended {
                        error: None,
                        message: last_message.clone(),
                    };
                }
                TranscriptKind::ApiError { kind, message } if !worked => {
                    return TranscriptEnd::Ended {
                        error: Some(kind.clone()),
                        message: message.clone(),
                    };
                }
                TranscriptKind::Interrupted if !worked => return TranscriptEnd::Interrupted,
                // The turn that this line ended was followed by another one.
                TranscriptKind::TurnEnded { .. }
                | TranscriptKind::ApiError { .. }
                | TranscriptKind::Interrupted => return TranscriptEnd::Cut,
                TranscriptKind::ToolStarted { .. } | TranscriptKind::ToolEnded { .. } => {
                    worked = true;
                }
                TranscriptKind::CompactBoundary => boundary = true,
                // What stands before a prompt ended an earlier turn.
                TranscriptKind::Prompted { .. } => {
                    prompted = true;
                    break;
                }
                TranscriptKind::Enqueued
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
        if worked {
            TranscriptEnd::Cut
        } else if prompted {
            TranscriptEnd::Prompted
        } else if boundary {
            TranscriptEnd::Compacted
        } else {
            TranscriptEnd::Nothing
        }
    }

    /// The newest interrupt line was written after `after`, and no end marker after it.
    pub(crate) fn interrupted_after(&self, after: Stamp) -> bool {
        self.end_in_transcript(after.later_ms()) == TranscriptEnd::Interrupted
    }

    /// Whether this is the Stop of a turn that was heard of between `start` and `from`, where the prompts of the next
    /// one begin, and whose Stop was not. Only a prompt that waited begins a turn so soon that the Stop of the one
    /// before is stamped in it; a teammate's message makes a turn too, but under the id of the one before.
    pub(crate) fn ends_turn_before(&self, start: Time, from: Time, turn: &Turn) -> bool {
        let Some(prompt) = turn.prompt.as_ref().filter(|_| turn.lane.is_none()) else {
            return false;
        };
        let same = || {
            let hooks = self
                .deciding()
                .filter(|t| t.prompt.as_ref() == Some(prompt));
            hooks.filter(|t| *t != turn)
        };
        let before = || same().filter(|t| t.at.boot >= start && t.at.boot < from);
        let prompts = before().filter(|t| t.what.prompt().is_some()).count();
        let queued = prompts > 1 || self.dequeued.is_some_and(|at| at.boot >= start);
        turn.what.stop().is_some()
            && turn.at.boot >= from
            && queued
            && before().next().is_some()
            && !same().any(|t| t.what.stop().is_some())
    }

    /// Restamps the Stop of a turn that was heard of between `start` and `from` as if it had come at `to`, and gives it.
    pub(crate) fn move_stop_before(&mut self, start: Time, from: Time, to: Stamp) -> Option<Stop> {
        let place = self
            .hooks
            .iter()
            .position(|t| self.ends_turn_before(start, from, t))?;
        let turn = self.hooks.remove(place)?;
        let stop = turn.what.stop().cloned();
        self.add(Turn { at: to, ..turn });
        stop
    }

    /// Where the newest turn began, as hooks tell: at its prompt, or with the first word since the session started.
    pub(crate) fn newest_turn(&self) -> Option<Stamp> {
        let prompt = self.deciding().rfind(|t| t.what.prompt().is_some());
        let words = self.deciding().rev();
        let first = || words.take_while(|t| t.what != What::Started).last();
        prompt.or_else(first).map(|t| t.at)
    }

    /// The same as the transcript tells, if that turn ended at `since` or later, or with `open`, if a tool of it has
    /// no result.
    pub(crate) fn newest_written(&self, since: Stamp, open: bool) -> Option<Stamp> {
        let newest = self.lines.back()?;
        let ended = matches!(
            newest.kind,
            TranscriptKind::TurnEnded { .. } | TranscriptKind::ApiError { .. }
        );
        let told = if ended {
            newest.at.wall_ms >= since.wall_ms
        } else {
            open && newest.call().is_some()
        };
        let prompt = self.lines.iter().rfind(|l| l.prompt().is_some());
        told.then_some(prompt.unwrap_or(newest).at)
    }

    /// When the newest Stop that lists no running agent was stamped.
    pub(crate) fn newest_stop_alone(&self) -> Time {
        let alone = |t: &&Turn| t.what.stop().is_some_and(|stop| stop.agents == 0);
        let stop = self.deciding().rfind(alone);
        stop.map_or(Time(0), |t| t.at.boot)
    }

    /// How many subagents were called after `since`, as far as hooks or the transcript tell.
    pub(crate) fn delegated_since(&self, since: Time) -> usize {
        let hooked = self.hooks.iter().map(|t| (t.at.boot, t.what.call()));
        let written = self.lines.iter().map(|l| (l.at.boot, l.call()));
        let calls = hooked.chain(written).filter(|(at, _)| *at > since);
        let ids = calls.filter_map(|(_, call)| {
            let call = call.filter(|c| SUBAGENT_TOOLS.contains(&&*c.name))?;
            call.use_id.as_ref()
        });
        ids.collect::<BTreeSet<_>>().len()
    }

    /// When the newest Stop of the main lane was stamped.
    pub(crate) fn newest_stop(&self) -> Time {
        let stop = self.deciding().rfind(|t| t.what.stop().is_some());
        stop.map_or(Time(0), |t| t.at.boot)
    }
}

/// What the transcript's newest decisive line of a spell says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TranscriptEnd {
    /// The turn's end marker.
    Ended {
        error: Option<Arc<str>>,
        message: Option<Arc<str>>,
    },
    /// The interrupt marker.
    Interrupted,
    /// Only a compaction.
    Compacted,
    /// Tools, and then nothing that ends the turn.
    Cut,
    /// A prompt, and nothing after it.
    Prompted,
    /// No word about this spell.
    Nothing,
}

/// The same call: by its id where both have one, else by name and input.
pub(crate) fn same_call(a: &ToolCall, b: &ToolCall) -> bool {
    match (&a.use_id, &b.use_id) {
        (Some(a), Some(b)) => a == b,
        (None, _) | (_, None) => a.name == b.name && a.input_digest == b.input_digest,
    }
}

#[cfg(test)]
mod tests;
