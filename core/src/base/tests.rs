//! The mapping at its boundaries. Must not speak of what is shown: scripts do that.

use super::*;
use crate::witness::ToolCall;

fn at(ms: u64) -> Stamp {
    Stamp {
        boot: Time::from_ms(ms),
        wall_ms: i64::try_from(ms).expect("tests are short"),
    }
}

fn tool(id: &str) -> ToolCall {
    ToolCall {
        name: "Bash".into(),
        use_id: Some(id.into()),
        arg: None,
        input_digest: 0,
        questions: Vec::new(),
    }
}

fn stop() -> Stop {
    Stop {
        error: None,
        message: None,
        shells: 0,
        agents: 0,
        wakes_at_ms: None,
    }
}

const IDLE: Base = Base::Idle { interrupted: false };

/// What was said, and what it is replayed onto.
struct Play {
    turns: Turns,
    start: Start,
}

impl Play {
    fn from(base: Base) -> Self {
        Self {
            turns: Turns::default(),
            start: Start {
                base,
                since: at(0),
                hooks_after: Time(0),
                lines_after: Time(0),
            },
        }
    }

    fn hook(self, ms: u64, what: What) -> Self {
        self.by(None, ms, what)
    }

    fn sub(self, ms: u64, what: What) -> Self {
        self.by(Some("sub"), ms, what)
    }

    fn by(mut self, lane: Option<&str>, ms: u64, what: What) -> Self {
        let added = self.turns.add(Turn {
            at: at(ms),
            lane: lane.map(Arc::from),
            prompt: None,
            what,
        });
        assert!(added, "nothing is said twice");
        self
    }

    fn line(mut self, ms: u64, kind: TranscriptKind) -> Self {
        self.turns.read(Line {
            at: at(ms),
            seen: Time::from_ms(ms),
            kind,
        });
        self
    }

    fn at(&self, ms: u64) -> Verdict {
        verdict(&self.turns, self.start.clone(), Time::from_ms(ms))
    }

    /// The verdict long after all that was said.
    fn end(&self) -> Base {
        self.at(1_000_000).base
    }
}

#[test]
fn what_the_start_holds_already_counts_no_second_time() {
    let prompted = || What::Prompted { typed: true };
    let mut play = Play::from(IDLE).hook(100, prompted());
    play.start.hooks_after = Time::from_ms(100);
    assert_eq!(play.end(), IDLE);
    play.start.hooks_after = Time::from_ms(99);
    assert_eq!(play.end(), Base::Busy);

    let task_notification = false;
    let mut play = Play::from(IDLE).line(100, TranscriptKind::Prompted { task_notification });
    play.start.lines_after = Time::from_ms(100);
    assert_eq!(play.end(), IDLE);
    play.start.lines_after = Time::from_ms(99);
    assert_eq!(play.end(), Base::Busy);
}

#[test]
fn q14_q11_a_subagents_tool_wakes_nobody_and_answers_no_other_lane() {
    let started = || What::ToolStarted(tool("1"));
    assert_eq!(Play::from(IDLE).sub(1, started()).end(), IDLE);
    assert_eq!(Play::from(IDLE).hook(1, started()).end(), Base::Busy);
    // A dialog of which only a Notification told: work shows that it is gone.
    let noticed = || Play::from(IDLE).hook(1, What::PromptNoticed);
    assert_eq!(noticed().end(), Base::Needs);
    assert_eq!(noticed().sub(2, started()).end(), Base::Busy);
    // One whose request was heard stays until that has its answer.
    let asked = || Play::from(Base::Busy).sub(1, What::Asked(tool("2")));
    assert_eq!(asked().hook(2, started()).end(), Base::Needs);
    assert_eq!(asked().sub(2, started()).end(), Base::Needs);
    assert_eq!(
        asked().hook(2, What::Prompted { typed: true }).end(),
        Base::Needs
    );
    assert_eq!(
        asked().hook(2, What::ToolEnded(tool("2"))).end(),
        Base::Needs
    );
    assert_eq!(asked().sub(2, What::ToolEnded(tool("2"))).end(), Base::Busy);
    // A result alone is no work that anybody waits for.
    let ended = || What::ToolEnded(tool("1"));
    assert_eq!(Play::from(IDLE).hook(1, ended()).end(), IDLE);
    assert_eq!(Play::from(Base::Unknown).hook(1, ended()).end(), Base::Busy);
}

#[test]
fn q07_q14_a_form_is_over_with_its_answer() {
    let form = || Play::from(Base::Busy).hook(1, What::FormAsked("Pick".into()));
    assert_eq!(form().end(), Base::Needs);
    assert_eq!(form().hook(2, What::FormAnswered).end(), Base::Busy);
    let two = form().sub(2, What::Asked(tool("1")));
    assert_eq!(two.hook(3, What::FormAnswered).end(), Base::Needs);
    // An answer to a form that nobody heard of is no work.
    assert_eq!(Play::from(IDLE).hook(1, What::FormAnswered).end(), IDLE);
}

#[test]
fn q14_a_stop_ends_the_turn_unless_subagents_go_on() {
    let stopped = |stop: Stop| Play::from(Base::Busy).hook(1, What::Stopped(stop)).end();
    assert_eq!(stopped(stop()), Base::Ended(stop()));
    let running = Stop {
        agents: 1,
        ..stop()
    };
    assert_eq!(stopped(running.clone()), Base::Busy);
    let failed = Stop {
        error: Some("rate_limit".into()),
        ..running
    };
    assert_eq!(stopped(failed.clone()), Base::Ended(failed));
    // A subagent's dialog outlives the main lane's turn, the main lane's own does not.
    let asked = Play::from(Base::Busy).sub(1, What::Asked(tool("1")));
    assert_eq!(asked.hook(2, What::Stopped(stop())).end(), Base::Needs);
    let asked = Play::from(Base::Busy).hook(1, What::Asked(tool("1")));
    assert_eq!(
        asked.hook(2, What::Stopped(stop())).end(),
        Base::Ended(stop())
    );
}

#[test]
fn q14_a_result_line_answers_only_its_own_request() {
    let asked = || {
        Play::from(Base::Busy)
            .hook(1, What::ToolStarted(tool("1")))
            .hook(2, What::ToolStarted(tool("2")))
            .hook(3, What::Asked(tool("2")))
    };
    let result = |id: &str| TranscriptKind::ToolEnded { use_id: id.into() };
    assert_eq!(asked().end(), Base::Needs);
    assert_eq!(asked().line(4, result("1")).end(), Base::Needs);
    assert_eq!(asked().line(4, result("2")).end(), Base::Busy);
    // The result of a tool that Esc ended follows the marker.
    let escaped = Play::from(Base::Busy).line(4, TranscriptKind::Interrupted);
    let idle = Base::Idle { interrupted: true };
    assert_eq!(escaped.line(5, result("1")).end(), idle);
}

#[test]
fn e05_an_end_marker_waits_for_its_stop() {
    let last_message = None;
    let play = Play::from(Base::Busy).line(100, TranscriptKind::TurnEnded { last_message });
    let due = Time::from_ms(100) + STOP_GRACE;
    let before = verdict(
        &play.turns,
        play.start.clone(),
        due - Duration::from_nanos(1),
    );
    assert_eq!((before.base, before.again), (Base::Busy, Some(due)));
    let then = verdict(&play.turns, play.start.clone(), due);
    assert_eq!((then.base, then.again), (Base::Ended(stop()), None));
    assert_eq!(then.since, at(100));
}
