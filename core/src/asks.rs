//! What is asked: PermissionRequests and Elicitations that have no answer yet, kept by agent lane and tool
//! until that tool's result or the spell's end. They never say *that* a dialog is open where the status
//! file can say it; only what stands in it.

use std::sync::Arc;
use std::time::Duration;

use crate::time::{Stamp, Time};
use crate::turns::same_call;
use crate::view::{Ask, AskKind};
use crate::witness::{ToolCall, WaitingFor};

/// A request may be stamped this long before the dialog is written (measured up to 158 ms).
pub(crate) const ASK_SKEW: Duration = Duration::from_millis(200);
/// … and this long on a loaded machine, if no other fits better.
const ASK_SLOW: Duration = Duration::from_millis(500);
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
    /// The file left `waiting` after it: answered, most likely. Kept, since several may be open at once.
    pub passed: bool,
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

/// All of one agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asks {
    open: Vec<OpenAsk>,
}

impl Asks {
    pub(crate) fn add(&mut self, at: Stamp, lane: Option<Arc<str>>, wanted: Wanted) {
        let after = self
            .open
            .iter()
            .rposition(|a| a.at.boot <= at.boot)
            .map_or(0, |i| i + 1);
        self.open.insert(
            after,
            OpenAsk {
                at,
                lane,
                wanted,
                passed: false,
            },
        );
        if self.open.len() > ASKS_MAX {
            self.open.remove(0);
        }
    }

    /// A tool's result of the same lane closes its request; of twins, the oldest.
    pub(crate) fn tool_ended(&mut self, at: Stamp, lane: Option<&Arc<str>>, tool: &ToolCall) {
        let twin = self.open.iter().position(|a| {
            a.at.boot <= at.boot
                && a.lane.as_ref() == lane
                && matches!(&a.wanted, Wanted::Tool(t) if same_call(t, tool))
        });
        // The result of a question or a plan may carry another input than its request; only one of each is
        // ever open in a lane.
        let named = || {
            matches!(&*tool.name, QUESTION_TOOL | PLAN_TOOL)
                .then(|| {
                    self.open.iter().position(|a| {
                        a.at.boot <= at.boot
                            && a.lane.as_ref() == lane
                            && matches!(&a.wanted, Wanted::Tool(t) if t.name == tool.name)
                    })
                })
                .flatten()
        };
        if let Some(i) = twin.or_else(named) {
            self.open.remove(i);
        }
    }

    /// ElicitationResult: the oldest form is answered.
    pub(crate) fn form_answered(&mut self, at: Stamp) {
        if let Some(i) = self
            .open
            .iter()
            .position(|a| a.at.boot <= at.boot && matches!(a.wanted, Wanted::Form(_)))
        {
            self.open.remove(i);
        }
    }

    /// The file went from waiting to busy at `at`.
    pub(crate) fn passed(&mut self, at: Time) {
        for ask in self.open.iter_mut().filter(|a| a.at.boot <= at) {
            ask.passed = true;
        }
    }

    /// The spell ended at `at`.
    pub(crate) fn forget(&mut self, at: Time) {
        self.open.retain(|a| a.at.boot > at);
    }

    /// Requests of the main lane are over (the turn went on or ended); a subagent's stay.
    pub(crate) fn forget_main(&mut self, at: Time) {
        self.open.retain(|a| a.lane.is_some() || a.at.boot > at);
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &OpenAsk> {
        self.open.iter()
    }

    /// What the dialog asks that the file has named since `since`. `shown` stays while it is open. Else of the
    /// requests that fit and were not passed by, the oldest near the dialog's opening or after it: Claude shows
    /// them one after the other. An older one may run without asking, and a wrong command is worse than none.
    pub(crate) fn words(
        &self,
        waiting: &WaitingFor,
        since: Time,
        shown: Option<&AskName>,
    ) -> Words {
        let fits = |a: &&OpenAsk| match (waiting, &a.wanted) {
            (WaitingFor::Input, Wanted::Form(_)) => true,
            (WaitingFor::Input, Wanted::Tool(t)) => &*t.name == QUESTION_TOOL,
            (WaitingFor::Permission, Wanted::Form(_)) => false,
            (WaitingFor::Permission, Wanted::Tool(t)) => &*t.name != QUESTION_TOOL,
            (WaitingFor::DialogOpen, _) => false,
            (WaitingFor::Other(_), Wanted::Form(_)) => false,
            (WaitingFor::Other(_), Wanted::Tool(_)) => true,
        };
        let fresh = || self.open.iter().filter(|a| !a.passed).filter(fits);
        let best = fresh()
            .find(|a| shown.is_some_and(|shown| a.is(shown)))
            .or_else(|| {
                // Until one was known to be in front, a later request may stand behind one that was not heard.
                fresh()
                    .filter(|a| shown.is_some() || a.at.boot <= since + ASK_SKEW)
                    .find(|a| a.at.boot + ASK_SKEW >= since)
            })
            // On a loaded machine the file is slower than measured; seconds before, nobody was asked.
            .or_else(|| {
                fresh()
                    .next_back()
                    .filter(|a| a.at.boot <= since && a.at.boot + ASK_SLOW >= since)
            });
        match best {
            Some(ask) => ask.words(),
            None => Words {
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
            },
        }
    }
}

/// Asks the person something of Claude's own.
pub(crate) const QUESTION_TOOL: &str = "AskUserQuestion";
/// Asks to leave plan mode.
pub(crate) const PLAN_TOOL: &str = "ExitPlanMode";

impl OpenAsk {
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
