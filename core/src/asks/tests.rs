//! The rules about requests at their boundaries: which answer ends which request, and which request may be named as
//! the dialog in front. Must not speak of badges: scripts do that.

use super::*;
use crate::turns::{Turn, What};

/// When the dialogs of these tests opened.
const OPENED: Time = Time::from_ms(10_000);
/// The next moment after another.
const NEXT: Duration = Duration::from_nanos(1);

fn at(boot: Time) -> Stamp {
    Stamp {
        boot,
        wall_ms: i64::try_from(boot.as_ms()).expect("tests are short"),
    }
}

fn ms(ms: u64) -> Time {
    Time::from_ms(ms)
}

fn lane(name: &str) -> Option<Arc<str>> {
    Some(Arc::from(name))
}

fn tool(name: &str, digest: u64) -> ToolCall {
    ToolCall {
        name: name.into(),
        use_id: None,
        arg: None,
        input_digest: digest,
        questions: Vec::new(),
    }
}

/// A request of the main lane to run this command.
fn bash(asks: &mut Asks, boot: Time, digest: u64) {
    asks.add(at(boot), None, Wanted::Tool(tool("Bash", digest)));
}

/// When those without an answer were asked, in ms.
fn open(asks: &Asks) -> Vec<u64> {
    asks.iter().map(|a| a.at.boot.as_ms()).collect()
}

fn standing(opened: Time) -> Standing<'static> {
    Standing {
        opened,
        since: opened,
        shown: None,
        alone: false,
        late: false,
    }
}

/// The request in front of a permission dialog: when it was asked, in ns. `None`: no request is named.
fn named(asks: &Asks, turns: &Turns, standing: Standing<'_>) -> Option<u64> {
    match asks.front(turns, &WaitingFor::Permission, standing) {
        Front::Is(ask) => Some(ask.at.boot.0),
        Front::Doubt(_) | Front::Unheard => None,
    }
}

/// Whether one request of that moment is named.
fn names(boot: Time, standing: Standing<'_>) -> bool {
    let mut asks = Asks::default();
    bash(&mut asks, boot, 1);
    named(&asks, &Turns::default(), standing) == Some(boot.0)
}

#[test]
fn as_many_as_are_kept_and_the_oldest_goes_first() {
    let mut asks = Asks::default();
    let all = u64::try_from(ASKS_MAX).expect("a small number");
    for n in 0..all {
        bash(&mut asks, ms(n), n);
    }
    assert_eq!(open(&asks), (0..all).collect::<Vec<_>>());
    bash(&mut asks, ms(all), all);
    assert_eq!(open(&asks), (1..=all).collect::<Vec<_>>());
    // One that has its answer goes before one that has none.
    asks.tool_ended(at(ms(all)), None, &tool("Bash", 5));
    bash(&mut asks, ms(all + 1), all + 1);
    let expected: Vec<u64> = (1..=all + 1).filter(|n| *n != 5).collect();
    assert_eq!(open(&asks), expected);
}

#[test]
fn asked_late_but_stamped_early_stands_in_its_place() {
    let mut asks = Asks::default();
    for boot in [3, 1, 2] {
        bash(&mut asks, ms(boot), boot);
    }
    assert_eq!(open(&asks), [1, 2, 3]);
    // Of two with one stamp the one that was heard first stays first.
    asks.add(at(ms(2)), lane("sub"), Wanted::Form("Pick".into()));
    assert!(asks.iter().nth(2).is_some_and(|a| a.lane.is_some()));
}

#[test]
fn q10_a_result_answers_the_oldest_request_for_its_call_in_its_lane() {
    let mut asks = Asks::default();
    bash(&mut asks, ms(10), 1);
    bash(&mut asks, ms(20), 1);
    bash(&mut asks, ms(30), 2);
    asks.add(at(ms(40)), lane("sub"), Wanted::Tool(tool("Bash", 1)));
    // From before all of them, of a lane that asks nothing, of a call that nobody asked about.
    asks.tool_ended(at(ms(9)), None, &tool("Bash", 1));
    asks.tool_ended(at(ms(90)), lane("other").as_ref(), &tool("Bash", 1));
    asks.tool_ended(at(ms(90)), None, &tool("Bash", 3));
    assert_eq!(open(&asks), [10, 20, 30, 40]);
    // In the same moment is not before.
    asks.tool_ended(at(ms(10)), None, &tool("Bash", 1));
    assert_eq!(open(&asks), [20, 30, 40]);
    asks.tool_ended(at(ms(90)), None, &tool("Bash", 1));
    assert_eq!(open(&asks), [30, 40]);
    asks.tool_ended(at(ms(90)), None, &tool("Bash", 1));
    assert_eq!(open(&asks), [30, 40]);
    asks.tool_ended(at(ms(90)), lane("sub").as_ref(), &tool("Bash", 1));
    assert_eq!(open(&asks), [30]);
    assert!(
        asks.iter().all(|a| a.overtaken),
        "a newer one has its answer"
    );
}

#[test]
fn q05_q06_a_question_or_a_plan_is_answered_whatever_its_input_says() {
    for name in [QUESTION_TOOL, PLAN_TOOL] {
        let mut asks = Asks::default();
        asks.add(at(ms(10)), None, Wanted::Tool(tool(name, 1)));
        asks.add(at(ms(20)), None, Wanted::Tool(tool("Bash", 1)));
        asks.tool_ended(at(ms(9)), None, &tool(name, 2));
        asks.tool_ended(at(ms(30)), lane("sub").as_ref(), &tool(name, 2));
        assert_eq!(open(&asks), [10, 20]);
        asks.tool_ended(at(ms(30)), None, &tool(name, 2));
        assert_eq!(open(&asks), [20]);
        // Any other tool's result needs the same input.
        asks.tool_ended(at(ms(30)), None, &tool("Bash", 2));
        assert_eq!(open(&asks), [20]);
    }
}

#[test]
fn q07_an_elicitation_result_answers_the_oldest_form() {
    let mut asks = Asks::default();
    bash(&mut asks, ms(10), 1);
    asks.add(at(ms(20)), None, Wanted::Form("Pick".into()));
    asks.add(at(ms(30)), lane("sub"), Wanted::Form("Pick".into()));
    asks.form_answered(at(ms(19)));
    assert_eq!(open(&asks), [10, 20, 30]);
    asks.form_answered(at(ms(20)));
    assert_eq!(open(&asks), [10, 30]);
    asks.form_answered(at(ms(29)));
    assert_eq!(open(&asks), [10, 30]);
    asks.form_answered(at(ms(40)));
    assert_eq!(open(&asks), [10]);
    asks.form_answered(at(ms(40)));
    assert_eq!(open(&asks), [10]);
}

#[test]
fn q11_the_main_lanes_requests_are_over_and_a_subagents_stay() {
    let mut asks = Asks::default();
    bash(&mut asks, ms(10), 1);
    asks.add(at(ms(20)), lane("sub"), Wanted::Tool(tool("Bash", 2)));
    bash(&mut asks, ms(30), 3);
    bash(&mut asks, ms(31), 4);
    asks.forget_main(ms(9));
    assert_eq!(open(&asks), [10, 20, 30, 31]);
    asks.forget_main(ms(30));
    assert_eq!(open(&asks), [20, 31]);
    // With the spell's end all go, and what was asked later is the next one's.
    asks.forget(ms(19));
    assert_eq!(open(&asks), [20, 31]);
    asks.forget(ms(20));
    assert_eq!(open(&asks), [31]);
    // What had its answer keeps the moment of it: a later one did not wait until then.
    let mut asks = Asks::default();
    bash(&mut asks, ms(10), 1);
    asks.forget_main(ms(15));
    asks.forget_main(ms(40));
    assert_eq!(asks.heard[0].answered, Some(ms(15)));
}

#[test]
fn q10_a_request_just_before_busy_is_the_next_dialogs() {
    let mut asks = Asks::default();
    let busy = ms(1_000);
    bash(&mut asks, busy - ASK_SKEW, 1);
    bash(&mut asks, busy - ASK_SKEW + NEXT, 2);
    asks.passed(busy);
    let passed: Vec<bool> = asks.iter().map(|a| a.passed).collect();
    assert_eq!(passed, [true, false]);
}

#[test]
fn q11_only_the_request_of_that_name_is_passed_by() {
    let mut asks = Asks::default();
    bash(&mut asks, ms(10), 1);
    asks.add(at(ms(10)), lane("sub"), Wanted::Tool(tool("Bash", 1)));
    bash(&mut asks, ms(20), 1);
    asks.passed_by(&AskName(ms(10), None));
    let passed: Vec<bool> = asks.iter().map(|a| a.passed).collect();
    assert_eq!(passed, [true, false, false]);
}

#[test]
fn q12_only_a_request_beside_the_dialog_is_named() {
    let among = standing(OPENED);
    let alone = Standing {
        alone: true,
        ..among
    };
    // On a loaded machine up to half a second before the file …
    assert!(names(OPENED - ASK_SLOW, among));
    assert!(!names(OPENED - ASK_SLOW - NEXT, among));
    // … and after it only within the jitter, since it may stand behind another lane's …
    assert!(names(OPENED + ASK_JITTER, among));
    assert!(!names(OPENED + ASK_JITTER + NEXT, among));
    // … which is not to be feared where no other lane is at work.
    assert!(names(OPENED + ASK_JITTER + NEXT, alone));
    assert!(names(OPENED + ASK_SLOW, alone));
    assert!(!names(OPENED + ASK_SLOW + NEXT, alone));
}

#[test]
fn q12_what_was_started_behind_the_dialog_is_not_named() {
    let asked = OPENED + Duration::from_millis(20);
    let named_by = |started: Time, by: Option<Arc<str>>, digest: u64, alone: bool| {
        let mut turns = Turns::default();
        turns.add(Turn {
            at: at(started),
            lane: by,
            prompt: None,
            what: What::ToolStarted(tool("Bash", digest)),
        });
        let mut asks = Asks::default();
        bash(&mut asks, asked, 1);
        let standing = Standing {
            alone,
            ..standing(OPENED)
        };
        named(&asks, &turns, standing).is_some()
    };
    let named = |started, by, digest| named_by(started, by, digest, false);
    // Alone it is the hook's own process that was slow to start.
    assert!(named_by(OPENED + NEXT, None, 1, true));
    assert!(named(OPENED, None, 1));
    assert!(!named(OPENED + NEXT, None, 1));
    assert!(!named(asked, None, 1));
    // Another lane's start, another call's, or one stamped after the request says nothing about it.
    assert!(named(OPENED + NEXT, lane("sub"), 1));
    assert!(named(OPENED + NEXT, None, 2));
    assert!(named(asked + NEXT, None, 1));
}

#[test]
fn q11_of_several_beside_the_dialog_none_is_named_but_their_kind() {
    let mut asks = Asks::default();
    bash(&mut asks, OPENED, 1);
    asks.add(at(OPENED), lane("sub"), Wanted::Tool(tool("Bash", 2)));
    let turns = Turns::default();
    let front = asks.front(&turns, &WaitingFor::Permission, standing(OPENED));
    assert_eq!(front, Front::Doubt(Some(AskKind::Permission)));
    asks.add(at(OPENED), lane("third"), Wanted::Tool(tool(PLAN_TOOL, 3)));
    let front = asks.front(&turns, &WaitingFor::Permission, standing(OPENED));
    assert_eq!(front, Front::Doubt(None));
    // One near it goes before those that came late.
    let mut asks = Asks::default();
    bash(&mut asks, OPENED, 1);
    bash(&mut asks, OPENED + ASK_SKEW, 2);
    let alone = Standing {
        alone: true,
        ..standing(OPENED)
    };
    assert_eq!(named(&asks, &turns, alone), Some(OPENED.0));
}

#[test]
fn q10_the_file_names_another_dialog_while_it_waits() {
    let moved = Standing {
        since: OPENED + Duration::from_secs(5),
        ..standing(OPENED)
    };
    assert!(names(OPENED - ASK_SKEW, moved));
    assert!(!names(OPENED - ASK_SKEW - NEXT, moved));
    assert!(names(moved.since + ASK_SKEW, moved));
    assert!(!names(moved.since + ASK_SKEW + NEXT, moved));
}

#[test]
fn q11_who_waited_behind_the_answered_one_comes_to_the_front() {
    let turns = Turns::default();
    let answered = OPENED + Duration::from_secs(2);
    let first = AskName(OPENED, None);
    let shown = Standing {
        shown: Some(&first),
        ..standing(OPENED)
    };
    // Nobody else: it stays.
    let mut asks = Asks::default();
    bash(&mut asks, OPENED, 1);
    assert_eq!(named(&asks, &turns, shown), Some(OPENED.0));
    // Others wait behind it: it stays until its answer.
    let second = OPENED + Duration::from_secs(1);
    asks.add(at(second), lane("b"), Wanted::Tool(tool("Bash", 2)));
    assert_eq!(named(&asks, &turns, shown), Some(OPENED.0));
    // What was asked after the answer did not wait for it.
    asks.add(
        at(answered + NEXT),
        lane("c"),
        Wanted::Tool(tool("Bash", 3)),
    );
    asks.tool_ended(at(answered), None, &tool("Bash", 1));
    assert_eq!(named(&asks, &turns, shown), Some(second.0));
    // Two that waited: either may be in front.
    asks.add(at(answered), lane("d"), Wanted::Tool(tool("Bash", 4)));
    let front = asks.front(&turns, &WaitingFor::Permission, shown);
    assert_eq!(front, Front::Doubt(Some(AskKind::Permission)));
}

#[test]
fn q11_a_newer_answer_puts_the_shown_one_in_doubt() {
    let turns = Turns::default();
    let first = AskName(OPENED, None);
    let shown = Standing {
        shown: Some(&first),
        ..standing(OPENED)
    };
    let mut asks = Asks::default();
    bash(&mut asks, OPENED, 1);
    let later = OPENED + Duration::from_secs(1);
    asks.add(at(later), lane("b"), Wanted::Tool(tool("Bash", 2)));
    asks.tool_ended(at(later), lane("b").as_ref(), &tool("Bash", 2));
    // It was overtaken, but there is no other.
    assert_eq!(named(&asks, &turns, shown), Some(OPENED.0));
    asks.add(at(later), lane("c"), Wanted::Tool(tool("Bash", 3)));
    let front = asks.front(&turns, &WaitingFor::Permission, shown);
    assert_eq!(front, Front::Doubt(Some(AskKind::Permission)));
}

#[test]
fn q05_q06_q07_the_file_s_word_fits_only_its_own_requests() {
    let question = Wanted::Tool(tool(QUESTION_TOOL, 1));
    let plan = Wanted::Tool(tool(PLAN_TOOL, 1));
    let form = Wanted::Form("Pick".into());
    let other = WaitingFor::Other("worker request".into());
    for (waiting, wanted, fits) in [
        (&WaitingFor::Input, &question, true),
        (&WaitingFor::Input, &form, true),
        (&WaitingFor::Input, &plan, false),
        (&WaitingFor::Permission, &plan, true),
        (&WaitingFor::Permission, &question, false),
        (&WaitingFor::Permission, &form, false),
        (&other, &plan, true),
        (&other, &form, false),
        (&WaitingFor::DialogOpen, &plan, false),
    ] {
        let mut asks = Asks::default();
        asks.add(at(OPENED), None, wanted.clone());
        let front = asks.front(&Turns::default(), waiting, standing(OPENED));
        assert_eq!(
            matches!(front, Front::Is(_)),
            fits,
            "{waiting:?} {wanted:?}"
        );
    }
}

#[test]
fn q11_once_the_file_has_named_another_what_stood_beside_the_first_says_nothing() {
    let moved = Standing {
        since: OPENED + Duration::from_secs(5),
        ..standing(OPENED)
    };
    let mut asks = Asks::default();
    let slow = OPENED - Duration::from_millis(400);
    bash(&mut asks, slow, 1);
    asks.add(at(slow), lane("b"), Wanted::Tool(tool("Bash", 2)));
    let third = OPENED + Duration::from_secs(1);
    asks.add(at(third), lane("c"), Wanted::Tool(tool("Bash", 3)));
    assert_eq!(named(&asks, &Turns::default(), moved), Some(third.0));
}

#[test]
fn q11_who_is_not_shown_is_named_only_if_no_other_waits() {
    let turns = Turns::default();
    let first = AskName(OPENED, None);
    let shown = Standing {
        shown: Some(&first),
        ..standing(OPENED)
    };
    // One beside the dialog and one that came later, both before the answer to the shown one.
    let mut asks = Asks::default();
    bash(&mut asks, OPENED, 1);
    asks.add(at(OPENED), lane("b"), Wanted::Tool(tool("Bash", 2)));
    let later = OPENED + Duration::from_secs(1);
    asks.add(at(later), lane("c"), Wanted::Tool(tool(PLAN_TOOL, 3)));
    asks.tool_ended(at(later + NEXT), None, &tool("Bash", 1));
    let front = asks.front(&turns, &WaitingFor::Permission, shown);
    assert_eq!(front, Front::Doubt(None));
    // The shown one has an older one beside it: either may be in front.
    let of_b = AskName(OPENED + Duration::from_millis(100), lane("b"));
    let mut asks = Asks::default();
    asks.add(
        at(OPENED + Duration::from_millis(60)),
        lane("z"),
        Wanted::Tool(tool("Bash", 1)),
    );
    asks.add(at(of_b.0), lane("b"), Wanted::Tool(tool("Bash", 2)));
    let shown = Standing {
        shown: Some(&of_b),
        ..standing(OPENED)
    };
    let front = asks.front(&turns, &WaitingFor::Permission, shown);
    assert_eq!(front, Front::Doubt(Some(AskKind::Permission)));
}
