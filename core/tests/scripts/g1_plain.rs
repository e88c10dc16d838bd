//! Plain turns.

use crate::dsl::{check, run, words};

/// A Claude that waits for its first prompt: the badge is idle from 500 on.
pub const IDLE: &str = "
    0   found
    60  key
    200 hook start startup
    250 file none
    500 file idle
";

/// `IDLE`, a turn from 1000 to 2000, told at 3260 (its end is known at 2060).
pub const REVIEW: &str = "
    0    found
    60   key
    200  hook start startup
    250  file none
    500  file idle
    1000 hook prompt
    1050 file busy
    2000 hook stop
    2060 file idle
";

/// What [`REVIEW`] shows.
pub const REVIEW_SEEN: &str = "
    500  idle
    1000 busy
    2060 review finished
    3260 notify
";

#[test]
fn p01_nothing_until_idle() {
    check(
        "
        0    found
        60   key
        500  file none
        900  hook start startup
        2400 file idle
        9000 end
        ",
        "2400 idle",
    );
    // SessionStart last, or first of all.
    check(
        "
        0    found
        60   key
        250  file none
        500  file idle
        700  hook start startup
        9000 end
        ",
        "500 idle",
    );
    check(
        "
        0    hook start startup
        30   found
        60   key
        500  file none
        2400 file idle
        9000 end
        ",
        "2400 idle",
    );
}

#[test]
fn p02_prompt_then_answer() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1070 file busy
        2000 hook stop says=done
        2069 file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        2069 review finished
        3269 notify
        ",
    );
    // The file first.
    let world = check(
        &format!(
            "{IDLE}
        1000 file busy
        1030 hook prompt
        2000 hook stop says=done
        2110 file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        2110 review finished
        3310 notify
        ",
    );
    assert_eq!(world.item('A').last_message.as_deref(), Some("done"));
}

#[test]
fn p03_gap_between_stop_and_idle_swept() {
    for gap in (-400_i64..=4_000).step_by(100) {
        let idle = 10_000;
        let stop = idle - gap;
        let mut turn = [
            (stop, format!("{stop} hook stop")),
            (idle, format!("{idle} file idle")),
        ];
        turn.sort_by_key(|(ms, _)| *ms);
        let [(_, first), (_, second)] = turn;
        let shown = stop.max(idle);
        check(
            &format!(
                "{IDLE}
            1000 hook prompt
            1060 file busy
            {first}
            {second}
            30000 end
            "
            ),
            &format!(
                "
            500 idle
            1000 busy
            {shown} review finished
            {} notify
            ",
                shown + 1_200
            ),
        );
    }
}

#[test]
fn p04_failing_tool_is_no_failed_turn() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1060 file busy
        1200 hook pre Bash id=1 ls
        1400 hook post Bash id=1 ls
        1500 hook pre Bash id=2 false
        1700 hook fail Bash id=2 false
        2000 hook stop
        2060 file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        2060 review finished
        3260 notify
        ",
    );
}

#[test]
fn p05_a_tool_of_45_minutes() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1060 file busy
        1200 hook pre Bash id=1 make
        2701200 hook post Bash id=1 make
        2702000 hook stop
        2702060 file idle
        2710000 end
        "
        ),
        "
        500     idle
        1000    busy
        2702060 review finished
        2703260 notify
        ",
    );
}

#[test]
fn p06_slow_session_start_hook_holds_the_prompt() {
    check(
        &format!(
            "{IDLE}
        1120 file busy
        5900 hook prompt
        6100 hook stop
        6160 file idle
        9000 end
        "
        ),
        // A prompt in mid-spell might be a queued one: half a second to see that none waits.
        "
        500  idle
        1120 busy
        6660 review finished
        7860 notify
        ",
    );
}

#[test]
fn p07_commands_known_and_unknown() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt \"/greet\"
        1010 hook UserPromptExpansion
        1060 file busy
        2000 hook stop
        2060 file idle
        9000 file idle since=9000 # /nosuch: the file is written anew with the same status
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        2060 review finished
        3260 notify
        ",
    );
}

#[test]
fn p07_a_file_written_anew_uses_no_stop_twice() {
    // The Stop came late, or was told by the transcript first: the review is that one's already.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 file idle
        2100 tx@1990 end
        4000 hook@2007 stop
        9000 file idle since=9000
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        2500 review finished
        3700 notify
        ",
    );
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 file idle
        2007 hook stopfail rate_limit
        9000 file idle since=9000
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        2007 review failed(rate_limit)
        3207 notify
        ",
    );
}

#[test]
fn p08_bang_command_with_an_answer() {
    check(
        &format!(
            "{IDLE}
        1060 file busy
        4300 hook stop
        4360 file idle
        9000 end
        "
        ),
        "
        500  idle
        1060 busy
        4360 review finished
        5560 notify
        ",
    );
}

#[test]
fn p09_seen_unseen_and_prompted() {
    // (a) read
    check(
        &format!(
            "{REVIEW}
        5000 seen
        9000 end
        "
        ),
        &format!(
            "{REVIEW_SEEN}
        5000 idle
        5000 withdraw
        "
        ),
    );
    // (b) not read for an hour
    check(&format!("{REVIEW}\n 3600000 end"), REVIEW_SEEN);
    // (c) a new prompt
    check(
        &format!(
            "{REVIEW}
        5000 hook prompt
        5060 file busy
        6000 end
        "
        ),
        &format!(
            "{REVIEW_SEEN}
        5000 busy
        5000 withdraw
        "
        ),
    );
    // Reading never clears a dialog, and a late "read" of an older episode clears nothing.
    let world = run(&format!(
        "{IDLE}
        1000 hook prompt
        1060 file busy
        1500 file permission
        1600 seen
        1700 seen episode=99
        "
    ));
    assert_eq!(
        crate::dsl::words(&world.item('A')),
        "needs-input permission"
    );
}

#[test]
fn p01_q14_idle_does_not_go_because_its_start_is_told_late() {
    // A version without status; five seconds on a loaded machine.
    check(
        "
        0    found
        300  file none
        4912 hook@440 start startup
        9000 end
        ",
        "2800 idle",
    );
    // Only now is its start told, by `/clear`: from review to idle, with no hole.
    check(
        "
        0     found
        2000  hook prompt
        3000  hook stop
        21400 hook start clear conv=other
        30000 end
        ",
        "
        2000  busy
        3000  review finished
        4200  notify
        21400 idle
        21400 withdraw
        ",
    );
}

#[test]
fn p02_h07_a_late_stop_adds_what_it_alone_knows() {
    let by_transcript = |end: &str| {
        format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1990 tx {end}
        2000 file idle
        "
        )
    };
    let last = |script: String| {
        let world = run(&script);
        words(&world.item('A'))
    };
    // Shells and wake-ups.
    assert_eq!(
        last(by_transcript("end") + "5000 hook@1980 stop shells=1 wakes=90000"),
        "review finished 1 shell wakes"
    );
    // Whether it failed is shown already; only its kind may become more exact.
    assert_eq!(
        last(by_transcript("error api_error") + "5000 hook@1980 stopfail rate_limit"),
        "review failed(rate_limit)"
    );
    assert_eq!(
        last(by_transcript("error api_error") + "5000 hook@1980 stop shells=1"),
        "review failed(api_error) 1 shell"
    );
    assert_eq!(
        last(by_transcript("end") + "5000 hook@1980 stopfail rate_limit"),
        "review finished"
    );
    // It does so once.
    assert_eq!(
        last(by_transcript("end") + "5000 hook@1980 stop shells=1\n 5100 hook@1985 stop shells=2"),
        "review finished 1 shell"
    );
}

#[test]
fn b05_h07_a_late_stop_of_the_turn_before_adds_nothing() {
    // The file was not seen between them, and the queued one has no prompt's hook: the transcript tells them apart.
    let turns = |stop: u64| {
        let world = run(&format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 tx end
        2010 tx prompt
        3000 tx end
        3010 file idle
        6000 hook@{stop} stop shells=1
        9000 end
        "
        ));
        words(&world.item('A'))
    };
    assert_eq!(turns(1995), "review finished");
    assert_eq!(turns(2995), "review finished 1 shell");
    // A prompt that was taken up since is another turn's, and the Stop this one's.
    let world = run(&format!(
        "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 tx end
        2010 file idle
        4000 tx prompt
        6000 hook@2005 stop shells=1
        9000 end
        "
    ));
    assert_eq!(words(&world.item('A')), "review finished 1 shell");
}
