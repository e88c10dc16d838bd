//! What is asked: PermissionRequests and Elicitations that have no answer yet, kept by agent lane and tool
//! until that tool's result or the spell's end. They never say *that* a dialog is open where the status
//! file can say it; only what stands in it.

use std::sync::Arc;
use std::time::Duration;

use crate::time::{Stamp, Time};
use crate::turns::{Turns, same_call};
use crate::view::{Ask, AskKind};
use crate::witness::{ToolCall, WaitingFor};

/// A request may be stamped this long before the dialog is written (measured up to 158 ms).
pub(crate) const ASK_SKEW: Duration = Duration::from_millis(200);
/// … and this long before or after it on a loaded machine, if no other may be meant.
const ASK_SLOW: Duration = Duration::from_millis(500);
/// One stamped this much after the file (measured: 13 ms) was slow to start, or stands behind another that is still
/// to be heard: it names the dialog only where no other lane asks.
const ASK_JITTER: Duration = Duration::from_millis(50);
/// Calls that run side by side ask within this; whoever asks again later has its answer to what it asked before.
const LANE_ASKS: Duration = Duration::from_secs(1);
/// Open requests kept: more than subagents ever ask at once; the oldest goes first.
const ASKS_MAX: usize = 64;

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A tool may run, a plan be approved, a question be answered.
    Tool(ToolCall),
    /// An MCP server's form with its message.
    Form(Arc<str>),
}

/// One request without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenAsk {
    pub at: Stamp,
    pub lane: Option<Arc<str>>,
    pub wanted: Wanted,
    /// The file left `waiting` after it, or told of another dialog: answered, most likely. Kept, since several may
    /// be open at once.
    pub passed: bool,
    /// A newer one has its answer already: this one was answered before, or the newer one asked nobody.
    pub overtaken: bool,
    /// Its lane has asked again: this one was answered, or the other call ran beside it and its hook was slow.
    pub again: bool,
    /// When its answer was known at the source. Kept until the spell's end: what was asked later than this was not
    /// waiting behind it.
    answered: Option<Time>,
}

/// Name of an ask: the same request keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AskName(Time, Option<Arc<str>>);

/// The words of an ask, before it gets its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    pub name: Option<AskName>,
    pub kind: AskKind,
    pub text: Option<Arc<str>>,
    pub tool: Option<Arc<str>>,
    pub options: Vec<Arc<str>>,
}

impl Words {
    /// The ask with these words and this id.
    pub(crate) fn into_ask(self, id: u64) -> Ask {
        Ask {
            id,
            kind: self.kind,
            text: self.text,
            tool: self.tool,
            options: self.options,
        }
    }
}

/// All of one agent, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asks {
    heard: Vec<OpenAsk>,
}

impl Asks {
    pub(crate) fn add(&mut self, at: Stamp, lane: Option<Arc<str>>, wanted: Wanted) {
        let after = self
            .heard
            .iter()
            .rposition(|a| a.at.boot <= at.boot)
            .map_or(0, |i| i + 1);
        // A lane that asks again had its answer, though its result was not heard, unless its calls ran side by side.
        let again =
            |a: &OpenAsk, b: &OpenAsk| a.lane == b.lane && a.at.boot + LANE_ASKS <= b.at.boot;
        let mut ask = OpenAsk {
            at,
            lane,
            wanted,
            passed: false,
            overtaken: false,
            again: false,
            answered: None,
        };
        for older in self.heard.iter_mut().take(after) {
            older.again |= again(older, &ask);
        }
        ask.again = self
            .heard
            .iter()
            .skip(after)
            .any(|newer| again(&ask, newer));
        self.heard.insert(after, ask);
        if self.heard.len() > ASKS_MAX {
            let answered = self.heard.iter().position(|a| a.answered.is_some());
            self.heard.remove(answered.unwrap_or(0));
        }
    }

    /// A tool's result of the same lane closes its request; of twins, the oldest.
    pub(crate) fn tool_ended(&mut self, at: Stamp, lane: Option<&Arc<str>>, tool: &ToolCall) {
        let asked = |a: &OpenAsk| a.is_open() && a.at.boot <= at.boot && a.lane.as_ref() == lane;
        let twin = self
            .heard
            .iter()
            .position(|a| asked(a) && a.wanted.is_call(tool));
        let place = twin.or_else(|| {
            self.heard
                .iter()
                .position(|a| asked(a) && a.wanted.ends_with(tool))
        });
        if let Some(place) = place {
            self.answered(place, at);
        }
    }

    fn answered(&mut self, place: usize, at: Stamp) {
        self.heard[place].answered = Some(at.boot);
        for older in self.heard.iter_mut().take(place) {
            older.overtaken = true;
        }
    }

    /// ElicitationResult: the oldest form is answered.
    pub(crate) fn form_answered(&mut self, at: Stamp) {
        let form = self.heard.iter().position(|a| {
            a.is_open() && a.at.boot <= at.boot && matches!(a.wanted, Wanted::Form(_))
        });
        if let Some(place) = form {
            self.answered(place, at);
        }
    }

    /// The file went from waiting to busy at `at`. A request just before that may be the next dialog's.
    pub(crate) fn passed(&mut self, at: Time) {
        for ask in self.heard.iter_mut().filter(|a| a.at.boot + ASK_SKEW <= at) {
            ask.passed = true;
        }
    }

    /// Another dialog came to the front of this one.
    pub(crate) fn passed_by(&mut self, name: &AskName) {
        for ask in self.heard.iter_mut().filter(|a| a.is(name)) {
            ask.passed = true;
        }
    }

    /// The spell ended at `at`.
    pub(crate) fn forget(&mut self, at: Time) {
        self.heard.retain(|a| a.at.boot > at);
    }

    /// Requests of the main lane are over (the turn went on or ended); a subagent's stay.
    pub(crate) fn forget_main(&mut self, at: Time) {
        self.forget_lane(None, at);
    }

    /// The same of any lane: it has gone on.
    pub(crate) fn forget_lane(&mut self, lane: Option<&Arc<str>>, at: Time) {
        let own = self.heard.iter_mut().filter(|a| a.lane.as_ref() == lane);
        for ask in own.filter(|a| a.is_open() && a.at.boot <= at) {
            ask.answered = Some(at);
        }
    }

    /// The main lane was interrupted. Esc goes to the dialog in front: whatever was asked before the main lane's
    /// newest request had been answered.
    pub(crate) fn main_interrupted(&mut self, at: Time) {
        let mut asked = self.heard.iter();
        if let Some(newest) = asked.rposition(|a| a.lane.is_none() && a.at.boot <= at) {
            for older in self.heard.iter_mut().take(newest) {
                older.passed = true;
            }
        }
        self.forget_main(at);
    }

    /// Those without an answer.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &OpenAsk> {
        self.heard.iter().filter(|a| a.is_open())
    }

    /// Which request is the dialog in front. Claude shows them one after the other and says neither whose turn it
    /// is nor which of them ask nobody, so only one that can't be another's is named: a wrong command on a card is
    /// worse than none.
    pub(crate) fn front(
        &self,
        turns: &Turns,
        waiting: &WaitingFor,
        dialog: Standing<'_>,
    ) -> Front<'_> {
        let Standing {
            opened,
            since,
            shown,
            alone,
            late: heard_late,
        } = dialog;
        let moved = since > opened;
        // Who came to the front without a word of the file was waiting when the one before got its answer.
        let waiting_by = match shown {
            Some(name) => {
                let shown = self.heard.iter().find(|a| a.is(name));
                shown.and_then(|a| a.answered)
            }
            None => Some(since + ASK_SKEW),
        };
        let (mut near, mut late, mut stay) = (Vec::new(), Vec::new(), Vec::new());
        for ask in self.iter().filter(|a| !a.passed && a.fits(waiting)) {
            if ask.at.boot + ASK_SKEW >= opened && waiting_by.is_none_or(|by| ask.at.boot <= by) {
                stay.push(ask);
            }
            // What a tool asks that was started after the dialog opened stands behind it. But one lane asks one thing at
            // a time: where there is no other, both hooks were slow to start.
            let behind = if alone {
                ask.at.boot > opened + ASK_SLOW
            } else {
                ask.at.boot > opened + ASK_SKEW || ask.started(turns) > Some(opened)
            };
            if behind || ask.at.boot + ASK_SLOW < opened {
                continue;
            }
            if ask.at.boot <= opened + ASK_JITTER {
                near.push(ask);
            } else if alone {
                late.push(ask);
            }
        }
        let opening = if near.is_empty() { &late } else { &near };
        let first = match opening.as_slice() {
            [_, _, ..] if !moved => return Front::Doubt(same_kind(opening)),
            [ask] if !moved => Some(*ask),
            _ => None,
        };
        let is_shown = |ask: &OpenAsk| shown.is_some_and(|name| ask.is(name));
        let in_front = match first {
            Some(ask) if shown.is_none() || is_shown(ask) => Some(ask),
            // What comes later may stand behind one that was not heard …
            Some(_) | None if shown.is_none() && !moved => None,
            // … unless that one was known, and has its answer.
            Some(_) | None => match (stay.iter().find(|a| is_shown(a)), stay.as_slice()) {
                (Some(ask), [oldest, ..]) if ask == oldest => Some(*ask),
                (None, [ask]) => Some(*ask),
                (Some(_) | None, [_, ..]) => return Front::Doubt(same_kind(&stay)),
                (Some(_) | None, []) => None,
            },
        };
        match in_front {
            // A newer one that has its answer asked nobody, or was in front of the next. What a lone lane asks, the file
            // would have told to be answered.
            Some(ask)
                if (ask.overtaken || ask.again && (!alone || moved))
                    && (heard_late || stay.iter().any(|a| *a != ask)) =>
            {
                Front::Doubt(same_kind(&stay))
            }
            Some(ask) => Front::Is(ask),
            None => Front::Unheard,
        }
    }
}

/// A dialog that the file tells of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing<'a> {
    /// When the file went to waiting.
    pub opened: Time,
    /// When it last said what for.
    pub since: Time,
    /// The request that was found for it.
    pub shown: Option<&'a AskName>,
    /// Nobody but the main lane is at work: no other's request can have been first.
    pub alone: bool,
    /// Hooks are heard late: there may be others than those that were heard.
    pub late: bool,
}

/// What is known of the request in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front<'a> {
    /// This one.
    Is(&'a OpenAsk),
    /// It may be one or the other; their kind, if it is the same.
    Doubt(Option<AskKind>),
    /// None was heard.
    Unheard,
}

fn same_kind(asks: &[&OpenAsk]) -> Option<AskKind> {
    let mut kinds = asks.iter().map(|a| a.words().kind);
    let first = kinds.next()?;
    kinds.all(|kind| kind == first).then_some(first)
}

/// The words for what the file alone says.
pub(crate) fn bare_words(waiting: &WaitingFor) -> Words {
    Words {
        name: None,
        kind: match waiting {
            WaitingFor::Permission => AskKind::Permission,
            WaitingFor::Input => AskKind::Question,
            WaitingFor::DialogOpen | WaitingFor::Other(_) => AskKind::Dialog,
        },
        text: match waiting {
            WaitingFor::Other(text) => Some(text.clone()),
            WaitingFor::Permission | WaitingFor::Input | WaitingFor::DialogOpen => None,
        },
        tool: None,
        options: Vec::new(),
    }
}

/// Asks the person something of Claude's own.
pub(crate) const QUESTION_TOOL: &str = "AskUserQuestion";
/// Asks to leave plan mode.
const PLAN_TOOL: &str = "ExitPlanMode";

impl Wanted {
    /// It is for this call.
    pub(crate) fn is_call(&self, tool: &ToolCall) -> bool {
        matches!(self, Self::Tool(wanted) if same_call(wanted, tool))
    }

    /// The result of `tool` answers it. That of a question or a plan may carry another input than its request; only
    /// one of each is ever open in a lane.
    pub(crate) fn ends_with(&self, tool: &ToolCall) -> bool {
        let lone = matches!(&*tool.name, QUESTION_TOOL | PLAN_TOOL);
        self.is_call(tool) || lone && matches!(self, Self::Tool(wanted) if wanted.name == tool.name)
    }
}

impl OpenAsk {
    fn is_open(&self) -> bool {
        self.answered.is_none()
    }

    /// The file tells permission from input; the rest is in the request.
    fn fits(&self, waiting: &WaitingFor) -> bool {
        match (waiting, &self.wanted) {
            (WaitingFor::Input, Wanted::Form(_)) | (WaitingFor::Other(_), Wanted::Tool(_)) => true,
            (WaitingFor::Input, Wanted::Tool(t)) => &*t.name == QUESTION_TOOL,
            (WaitingFor::Permission, Wanted::Tool(t)) => &*t.name != QUESTION_TOOL,
            (WaitingFor::Permission | WaitingFor::Other(_), Wanted::Form(_))
            | (WaitingFor::DialogOpen, _) => false,
        }
    }

    /// When its tool was started, if a hook has told.
    fn started(&self, turns: &Turns) -> Option<Time> {
        let Wanted::Tool(wanted) = &self.wanted else {
            return None;
        };
        let mut before = turns.hooks().rev().filter(|t| t.at.boot <= self.at.boot);
        let start = before.find(|t| {
            t.lane == self.lane && t.what.call().is_some_and(|call| same_call(call, wanted))
        })?;
        Some(start.at.boot)
    }

    fn is(&self, name: &AskName) -> bool {
        self.at.boot == name.0 && self.lane == name.1
    }

    pub(crate) fn words(&self) -> Words {
        let mut words = match &self.wanted {
            Wanted::Tool(tool) => words_of(tool),
            Wanted::Form(message) => Words {
                name: None,
                kind: AskKind::Form,
                text: Some(message.clone()),
                tool: None,
                options: Vec::new(),
            },
        };
        words.name = Some(AskName(self.at.boot, self.lane.clone()));
        words
    }
}

/// The words for a tool that waits.
pub(crate) fn words_of(tool: &ToolCall) -> Words {
    let question = tool.questions.first();
    Words {
        name: None,
        kind: match &*tool.name {
            QUESTION_TOOL => AskKind::Question,
            PLAN_TOOL => AskKind::Plan,
            _ => AskKind::Permission,
        },
        text: question
            .map(|q| q.text.clone())
            .or_else(|| tool.arg.clone()),
        tool: Some(tool.name.clone()),
        options: question.map(|q| q.options.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
