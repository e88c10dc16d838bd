//! What the two lists answer, at their boundaries: stamps that are equal, lines of another spell, results without
//! their start, lists that are full. Must not speak of badges: scripts do that.

use super::*;
use std::time::Duration;

fn at(ms: u64) -> Stamp {
    Stamp {
        boot: Time::from_ms(ms),
        wall_ms: 1_000_000 + i64::try_from(ms).expect("tests are short"),
    }
}

fn ms(ms: u64) -> Time {
    Time::from_ms(ms)
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

/// A call that Claude gave no id, with this input.
fn nameless(input_digest: u64) -> ToolCall {
    ToolCall {
        use_id: None,
        input_digest,
        ..tool("")
    }
}

fn turn(ms: u64, what: What) -> Turn {
    Turn {
        at: at(ms),
        lane: None,
        prompt: None,
        what,
    }
}

fn sub(ms: u64, what: What) -> Turn {
    Turn {
        lane: Some("sub".into()),
        ..turn(ms, what)
    }
}

/// A word of this turn, as Claude names it.
fn of(prompt: &str, ms: u64, what: What) -> Turn {
    Turn {
        prompt: Some(prompt.into()),
        ..turn(ms, what)
    }
}

fn line(ms: u64, kind: TranscriptKind) -> Line {
    Line {
        at: at(ms),
        seen: Time::from_ms(ms),
        kind,
    }
}

const TYPED: What = What::Prompted { typed: true };
const PROMPT: TranscriptKind = TranscriptKind::Prompted {
    task_notification: false,
};
const END: TranscriptKind = TranscriptKind::TurnEnded { last_message: None };

fn started(id: &str) -> What {
    What::ToolStarted(tool(id))
}

fn ended(id: &str) -> What {
    What::ToolEnded(tool(id))
}

fn call(id: &str) -> TranscriptKind {
    TranscriptKind::ToolStarted { tool: tool(id) }
}

fn result(id: &str) -> TranscriptKind {
    TranscriptKind::ToolEnded { use_id: id.into() }
}

fn stopped() -> What {
    What::Stopped(Stop {
        error: None,
        message: None,
        shells: 0,
        agents: 0,
        wakes_at_ms: None,
    })
}

fn turns(hooks: impl IntoIterator<Item = Turn>, lines: impl IntoIterator<Item = Line>) -> Turns {
    let mut turns = Turns::default();
    for turn in hooks {
        assert!(turns.add(turn), "nothing is said twice");
    }
    for line in lines {
        turns.read(line);
    }
    turns
}

fn ids<'a>(calls: impl IntoIterator<Item = &'a ToolCall>) -> Vec<&'a str> {
    let id = |call: &'a ToolCall| call.use_id.as_deref().unwrap_or("none");
    calls.into_iter().map(id).collect()
}

#[test]
fn a_hook_stands_where_its_stamp_says_and_counts_once() {
    let mut said = turns(
        [
            turn(30, stopped()),
            turn(10, TYPED),
            turn(20, started("1")),
            turn(20, started("2")),
        ],
        [],
    );
    let order: Vec<&What> = said.hooks().map(|t| &t.what).collect();
    assert_eq!(order, [&TYPED, &started("1"), &started("2"), &stopped()]);
    for twin in [
        turn(20, started("1")),
        turn(20, started("2")),
        turn(10, TYPED),
    ] {
        assert!(!said.add(twin));
    }
    assert!(said.add(turn(21, started("1"))));
    assert!(said.add(sub(20, started("1"))));
    assert_eq!(said.hooks().count(), 6);
}

#[test]
fn full_lists_lose_the_oldest_and_a_subagents_word_first() {
    let all = u64::try_from(ENTRIES_MAX).expect("a small number");
    let mut said = turns((0..all).map(|n| turn(n, TYPED)), []);
    assert_eq!(said.hooks().count(), ENTRIES_MAX);
    said.add(turn(all, TYPED));
    assert_eq!(said.hooks().count(), ENTRIES_MAX);
    assert_eq!(said.hooks().next().map(|t| t.at), Some(at(1)));
    said.add(sub(5, started("1")));
    assert!(said.hooks().all(|t| t.lane.is_none()));
    assert_eq!(said.hooks().next().map(|t| t.at), Some(at(1)));

    let mut said = turns([], (0..all).map(|n| line(n, END)));
    assert_eq!(said.lines().count(), ENTRIES_MAX);
    said.read(line(all, END));
    assert_eq!(said.lines().count(), ENTRIES_MAX);
    assert_eq!(said.lines().next().map(|l| l.at), Some(at(1)));
}

#[test]
fn only_the_main_lanes_turn_events_decide() {
    assert!(turn(1, TYPED).decides());
    assert!(!sub(1, TYPED).decides());
    assert!(!turn(1, What::PromptNoticed).decides());
    for (what, compacts) in [
        (What::CompactStarted, true),
        (What::CompactEnded, true),
        (What::Started, false),
    ] {
        assert_eq!(turn(1, what).compacts(), compacts);
    }
}

#[test]
fn a_line_belongs_to_the_spell_that_it_was_written_and_seen_in() {
    assert!(line(100, END).belongs(at(100)));
    assert!(!line(99, END).belongs(at(100)));
    // Written in it by a clock that is right, but seen before it: a line copied from elsewhere.
    let mut seen_before = line(100, END);
    seen_before.seen = ms(100) - Duration::from_nanos(1);
    assert!(!seen_before.belongs(at(100)));
    // The clock was set by an hour: the other one decides.
    let set = |ms: u64, by: i64| {
        let mut line = line(ms, END);
        line.at.wall_ms += by;
        line
    };
    assert!(set(100, -3_600_000).belongs(at(100)));
    assert!(!set(99, 3_600_000).belongs(at(100)));
}

#[test]
fn t06_what_was_given_up_says_nothing() {
    let rewound = |to_ms| line(50, TranscriptKind::Rewound { to_ms });
    let mut said = turns([], [line(10, PROMPT), line(20, END), line(30, PROMPT)]);
    said.read(rewound(Some(at(20).wall_ms)));
    let left: Vec<Stamp> = said.lines().map(|l| l.at).collect();
    assert_eq!(left, [at(10), at(20)]);
    said.read(rewound(None));
    assert_eq!(said.lines().count(), 0);
}

#[test]
fn the_newest_end_that_has_words_tells_them() {
    let end = |ms, words: Option<&str>| {
        let last_message = words.map(Arc::from);
        line(ms, TranscriptKind::TurnEnded { last_message })
    };
    let said = turns(
        [],
        [
            end(10, Some("a")),
            end(20, Some("b")),
            end(30, None),
            line(40, PROMPT),
        ],
    );
    assert_eq!(said.last_words().map(|w| &**w), Some("b"));
    assert_eq!(turns([], [line(10, PROMPT)]).last_words(), None);
}

#[test]
fn e02_the_second_request_without_an_answer_is_a_retry() {
    let asked = |ms| line(ms, TranscriptKind::Requested);
    assert!(!turns([], [asked(10)]).retries(at(10)));
    let mut said = turns([], [asked(10), asked(20)]);
    assert!(said.retries(at(20)));
    assert!(!said.retries(at(21)), "of the work before");
    said.read(asked(30));
    assert!(said.retries(at(30)));
    said.read(line(40, call("1")));
    assert!(!said.retries(at(10)));
    said.read(asked(50));
    assert!(!said.retries(at(10)));
    said.read(asked(60));
    said.forget_transcript();
    assert!(!said.retries(at(10)));
    assert!(!Turns::default().retries(at(0)));
}

#[test]
fn the_queue_holds_what_was_put_in_and_not_taken_out() {
    let mut said = turns([], [line(1, TranscriptKind::Dequeued)]);
    assert!(!said.prompt_queued());
    for _ in 0..2 {
        said.read(line(2, TranscriptKind::Enqueued));
    }
    assert!(said.prompt_queued());
    said.read(line(3, TranscriptKind::Dequeued));
    assert!(said.prompt_queued());
    said.read(line(3, TranscriptKind::Dequeued));
    assert!(!said.prompt_queued());
    for forget in [Turns::forget_queue, Turns::forget_transcript] {
        said.read(line(4, TranscriptKind::Enqueued));
        assert!(said.prompt_queued());
        forget(&mut said);
        assert!(!said.prompt_queued());
    }
    assert_eq!(said.lines().count(), 0);
}

#[test]
fn a_prompt_counts_after_the_moment_and_not_in_it() {
    let said = turns(
        [
            turn(10, TYPED),
            turn(20, TYPED),
            turn(30, stopped()),
            sub(40, TYPED),
        ],
        [],
    );
    assert_eq!(said.prompt_after(ms(19)).map(|t| t.at), Some(at(20)));
    assert_eq!(said.prompt_after(ms(9)).map(|t| t.at), Some(at(20)));
    assert_eq!(said.prompt_after(ms(20)), None);

    let said = turns([], [line(10, PROMPT), line(20, PROMPT), line(30, END)]);
    assert_eq!(said.prompt_line_after(at(19)), Some(at(20)));
    assert_eq!(said.prompt_line_after(at(20)), None);
    assert_eq!(Turns::default().prompt_line_after(at(0)), None);
}

#[test]
fn a_prompt_a_call_and_a_result_are_work_and_an_end_is_none() {
    for (kind, work) in [
        (PROMPT, true),
        (call("1"), true),
        (result("1"), true),
        (END, false),
    ] {
        let said = turns([], [line(10, kind)]);
        assert_eq!(said.worked_after(at(9)), work);
        assert!(!said.worked_after(at(10)));
    }
}

#[test]
fn c06_a_compaction_is_the_newest_event_or_none() {
    let mut said = turns([turn(10, What::CompactStarted), sub(20, started("1"))], []);
    assert_eq!(said.compaction_after(ms(9)).map(|t| t.at), Some(at(10)));
    assert_eq!(said.compaction_after(ms(10)), None);
    assert_eq!(said.compaction_after(ms(11)), None);
    said.add(turn(30, TYPED));
    assert_eq!(said.compaction_after(ms(9)), None);
}

#[test]
fn open_tools_are_the_main_lanes_without_a_result() {
    let hooks = [
        turn(10, started("old")),
        turn(20, started("a")),
        turn(30, started("b")),
        sub(30, started("sub")),
        turn(40, ended("a")),
    ];
    let mut said = turns(hooks, []);
    assert_eq!(ids(said.open_tools(ms(20))), ["b"]);
    assert_eq!(ids(said.open_tools(ms(10))), ["old", "b"]);
    assert_eq!(ids(said.open_tools(ms(21))), ["b"]);
    // A result may be stamped before its start, or be told by the transcript alone.
    said.add(turn(50, ended("c")));
    said.add(turn(51, started("c")));
    said.read(line(60, result("old")));
    assert_eq!(ids(said.open_tools(ms(10))), ["b"]);
    // Calls without an id are told apart by what they are given.
    said.add(turn(70, What::ToolStarted(nameless(1))));
    said.add(turn(71, What::ToolStarted(nameless(2))));
    said.add(turn(72, What::ToolEnded(nameless(1))));
    let open = said.open_tools(ms(61));
    assert_eq!(open, [&nameless(2)]);
}

#[test]
fn a_call_is_known_by_its_id_from_either_list() {
    let said = turns(
        [turn(10, started("a")), turn(11, started("b"))],
        [line(20, call("c"))],
    );
    for id in ["a", "b", "c"] {
        assert_eq!(said.call(&id.into()), Some(&tool(id)));
    }
    assert_eq!(said.call(&"d".into()), None);

    for (id, by) in [("a", 10), ("c", 20)] {
        assert!(said.started_by(&tool(id), ms(by)));
        assert!(said.started_by(&tool(id), ms(by + 1)));
        assert!(!said.started_by(&tool(id), ms(by - 1)));
    }
    assert!(!said.started_by(&tool("d"), ms(99)));

    let said = turns(
        [turn(10, ended("a")), sub(10, ended("s"))],
        [line(20, result("c"))],
    );
    assert!(said.ended(&tool("a")) && said.ended(&tool("c")));
    assert!(!said.ended(&tool("b")) && !said.ended(&tool("s")) && !said.ended(&nameless(0)));
}

#[test]
fn results_count_after_or_since_a_moment_in_their_lane() {
    let said = turns(
        [
            turn(10, ended("a")),
            sub(20, ended("s")),
            turn(5, started("w")),
        ],
        [line(30, result("w")), line(31, result("nobody's"))],
    );
    assert_eq!(ids(said.results_after(ms(9))), ["a", "s", "w"]);
    assert_eq!(ids(said.results_after(ms(10))), ["s", "w"]);
    assert_eq!(ids(said.results_after(ms(29))), ["w"]);
    assert!(ids(said.results_after(ms(30))).is_empty());
    let since = |since, lane: Option<&Arc<str>>| ids(said.results_since(ms(since), lane));
    assert_eq!(since(10, None), ["a", "w"]);
    assert_eq!(since(11, None), ["w"]);
    assert_eq!(since(30, None), ["w"]);
    assert!(since(31, None).is_empty());
    let lane: Arc<str> = "sub".into();
    assert_eq!(since(20, Some(&lane)), ["s"]);
    assert!(since(21, Some(&lane)).is_empty());
    assert!(since(0, Some(&"other".into())).is_empty());
}

#[test]
fn open_lines_are_calls_of_the_spell_without_a_result_line() {
    let mut said = turns(
        [],
        [
            line(10, call("old")),
            line(20, call("a")),
            line(30, call("b")),
        ],
    );
    assert_eq!(ids(said.open_lines(at(20))), ["a", "b"]);
    said.read(line(40, result("a")));
    assert_eq!(ids(said.open_lines(at(20))), ["b"]);
    assert_eq!(ids(said.open_lines(at(10))), ["old", "b"]);
    said.read(line(50, TranscriptKind::Interrupted));
    assert!(said.open_lines(at(10)).is_empty());
}

#[test]
fn the_newest_decisive_line_of_a_spell_says_how_it_ended() {
    let end = |kinds: &[TranscriptKind]| {
        let kinds = kinds.iter().cloned();
        let lines = kinds.enumerate().map(|(n, kind)| {
            let after = u64::try_from(n).expect("a few lines");
            line(100 + after, kind)
        });
        turns([], lines).end_in_transcript(at(100))
    };
    let words: Option<Arc<str>> = Some("done".into());
    let finished = TranscriptKind::TurnEnded {
        last_message: words.clone(),
    };
    let failed = TranscriptKind::ApiError {
        kind: "rate_limit".into(),
        message: words.clone(),
    };
    let by = |error: Option<&str>| TranscriptEnd::Ended {
        error: error.map(Arc::from),
        message: words.clone(),
    };
    let interrupted = TranscriptKind::Interrupted;
    let boundary = TranscriptKind::CompactBoundary;
    assert_eq!(
        end(&[PROMPT, call("1"), result("1"), finished.clone()]),
        by(None)
    );
    assert_eq!(end(&[PROMPT, failed.clone()]), by(Some("rate_limit")));
    assert_eq!(
        end(&[PROMPT, interrupted.clone()]),
        TranscriptEnd::Interrupted
    );
    // Work after it: that line ended another turn.
    for line in [finished.clone(), failed, interrupted] {
        assert_eq!(end(&[line.clone(), call("1")]), TranscriptEnd::Cut);
        assert_eq!(end(&[line.clone(), result("1")]), TranscriptEnd::Cut);
        assert_eq!(end(&[line, PROMPT]), TranscriptEnd::Prompted);
    }
    assert_eq!(end(&[PROMPT, call("1")]), TranscriptEnd::Cut);
    assert_eq!(
        end(std::slice::from_ref(&boundary)),
        TranscriptEnd::Compacted
    );
    assert_eq!(end(&[boundary.clone(), finished.clone()]), by(None));
    assert_eq!(end(&[PROMPT, boundary]), TranscriptEnd::Prompted);
    assert_eq!(end(&[]), TranscriptEnd::Nothing);

    // Only of this spell, and only up to the next.
    let said = turns(
        [],
        [line(100, finished), line(200, TranscriptKind::Interrupted)],
    );
    assert_eq!(said.end_in_transcript(at(201)), TranscriptEnd::Nothing);
    assert_eq!(said.end_between(at(100), Some(at(200))), by(None));
    assert_eq!(
        said.end_between(at(100), Some(at(201))),
        TranscriptEnd::Interrupted
    );
    assert!(said.interrupted_after(at(199)));
    assert!(!said.interrupted_after(at(200)));
    assert!(!turns([], [line(10, END)]).interrupted_after(at(0)));
}

#[test]
fn a_stop_of_a_turn_from_before_goes_where_it_belongs() {
    let from = ms(100);
    let stop = || of("one", 110, stopped());
    let first = || of("one", 10, TYPED);
    let queued = || of("one", 20, TYPED);
    let said = turns([first(), queued(), of("two", 100, TYPED), stop()], []);
    assert!(said.ends_turn_before(Time(0), from, &stop()));
    // Nothing waited: a turn that no prompt began, under the id of the one before. The transcript knows as well.
    let lone = turns([first(), stop()], []);
    assert!(!lone.ends_turn_before(Time(0), from, &stop()));
    let taken = |ms| turns([first(), stop()], [line(ms, TranscriptKind::Dequeued)]);
    assert!(taken(5).ends_turn_before(ms(5), from, &stop()));
    assert!(!taken(5).ends_turn_before(ms(6), from, &stop()));
    // Stamped before the next turn's prompts begin, it is in its place …
    assert!(!said.ends_turn_before(Time(0), ms(111), &stop()));
    assert!(said.ends_turn_before(Time(0), ms(110), &stop()));
    // … a turn first heard of in the next spell is that one's …
    assert!(!said.ends_turn_before(Time(0), ms(10), &stop()));
    assert!(!said.ends_turn_before(Time(0), ms(20), &stop()));
    // Heard of before another spell began, it is not that one's.
    assert!(!said.ends_turn_before(ms(100), from, &stop()));
    // … as is what is no Stop, another turn's, a subagent's, or of no turn that is named.
    assert!(!said.ends_turn_before(Time(0), from, &of("one", 110, TYPED)));
    assert!(!said.ends_turn_before(Time(0), from, &of("two", 110, stopped())));
    assert!(!said.ends_turn_before(Time(0), from, &turn(110, stopped())));
    let lane = Some("sub".into());
    assert!(!said.ends_turn_before(Time(0), from, &Turn { lane, ..stop() }));
    // Its Stop was heard already.
    let heard = turns([first(), queued(), of("one", 50, stopped()), stop()], []);
    assert!(!heard.ends_turn_before(Time(0), from, &stop()));

    let mut moved = said.clone();
    assert_eq!(
        moved.move_stop_before(Time(0), from, at(90)).as_ref(),
        stopped().stop()
    );
    let stamps: Vec<Stamp> = moved.hooks().map(|t| t.at).collect();
    assert_eq!(stamps, [at(10), at(20), at(90), at(100)]);
    assert_eq!(moved.newest_stop(), ms(90));
    assert_eq!(moved.move_stop_before(Time(0), from, at(90)), None);
}

#[test]
fn where_the_newest_turn_began() {
    assert_eq!(Turns::default().newest_turn(), None);
    let said = turns(
        [turn(10, TYPED), turn(20, TYPED), turn(30, started("1"))],
        [],
    );
    assert_eq!(said.newest_turn(), Some(at(20)));
    // No prompt was heard: the first word since the session started.
    let unprompted = [
        turn(10, started("1")),
        turn(20, What::Started),
        turn(30, started("2")),
        turn(40, ended("2")),
    ];
    assert_eq!(turns(unprompted, []).newest_turn(), Some(at(30)));

    let said = turns([], [line(10, PROMPT), line(20, PROMPT), line(30, END)]);
    assert_eq!(said.newest_written(at(30), false), Some(at(20)));
    assert_eq!(said.newest_written(at(31), false), None);
    assert_eq!(
        turns([], [line(30, END)]).newest_written(at(0), false),
        Some(at(30))
    );
    // A turn that has not ended counts only with a tool that is open.
    let said = turns([], [line(20, PROMPT), line(30, call("1"))]);
    assert_eq!(said.newest_written(at(0), true), Some(at(20)));
    assert_eq!(said.newest_written(at(0), false), None);
    let said = turns([], [line(20, PROMPT), line(30, result("1"))]);
    assert_eq!(said.newest_written(at(0), true), None);
    assert_eq!(Turns::default().newest_written(at(0), true), None);

    let said = turns(
        [turn(10, stopped()), turn(20, stopped()), sub(30, stopped())],
        [],
    );
    assert_eq!(said.newest_stop(), ms(20));
    assert_eq!(Turns::default().newest_stop(), Time(0));
}

#[test]
fn the_same_call_has_the_same_id_or_else_the_same_input() {
    assert!(same_call(&tool("1"), &tool("1")));
    assert!(!same_call(&tool("1"), &tool("2")));
    assert!(same_call(&tool("1"), &nameless(0)) && same_call(&nameless(0), &tool("1")));
    assert!(!same_call(&nameless(1), &nameless(2)));
    let read = ToolCall {
        name: "Read".into(),
        ..nameless(1)
    };
    assert!(!same_call(&nameless(1), &read));
}
