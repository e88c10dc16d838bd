//! Background work, subagents, queued prompts, wake-ups.

use crate::dsl::check;
use crate::g1_plain::{IDLE, REVIEW, REVIEW_SEEN};

#[test]
fn b01_a_subagent_outlives_the_main_stop() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1100 hook pre Agent id=1 x
        1150 hook sub a
        1160 hook post Agent id=1 x
        2000 hook stop agents=1
        9900 hook subend a
        10000 hook task
        10100 hook stop
        10170 file idle
        20000 end
        "
        ),
        "
        500   idle
        1000  busy
        1150  busy 1 agent
        9900  busy
        10670 review finished
        11870 notify
        ",
    );
}

#[test]
fn b02_a_subagent_asks_around_the_main_stop() {
    for (stop, pr) in [(1600, 1800), (1950, 1750), (1890, 1880)] {
        let mut lines = [
            (stop, format!("{stop} hook stop agents=1")),
            (pr, format!("{pr} hook pr Bash \"touch s.txt\" lane=a")),
            (1900, "1900 file permission".to_owned()),
        ];
        lines.sort();
        let around: String = lines.map(|(_, line)| line + "\n").concat();
        check(
            &format!(
                "{IDLE}
            1000 hook prompt
            1050 file busy
            1150 hook sub a
            {around}
            5000 file busy
            5050 hook post Bash \"touch s.txt\" lane=a
            5500 hook subend a
            5600 hook task
            5700 hook stop
            5780 file idle
            20000 end
            "
            ),
            "
            500  idle
            1000 busy
            1150 busy 1 agent
            1900 needs-input permission \"touch s.txt\"
            3100 notify
            5000 busy 1 agent
            5000 withdraw
            5500 busy
            6280 review finished
            7480 notify
            ",
        );
    }
}

#[test]
fn b03_what_only_looks_like_an_end() {
    check(
        &format!(
            "{REVIEW}
        20590 hook subend x untyped
        20600 hook subend y untyped
        60000 tx title \"Lab session\"
        90000 end
        "
        ),
        REVIEW_SEEN,
    );
    check(
        "
        0    found
        100  hook start startup
        1000 hook subend a untyped
        1100 tx end sidechain
        1200 hook subend b
        9000 end
        ",
        "400 idle",
    );
}

#[test]
fn b04_a_background_shell_ends_by_itself() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 hook stop shells=1
        2060 file shell
        14000 file busy
        14010 hook task
        14150 hook stop
        14200 file idle
        30000 end
        "
        ),
        "
        500   idle
        1000  busy
        2060  review finished 1 shell
        3260  notify
        14000 busy
        14000 withdraw
        14200 review finished
        15400 update
        ",
    );
    // A server that never ends, for 8 hours: read once, then idle with the shell beside it.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 hook stop shells=1
        2060 file shell
        5000 seen
        28800000 end
        "
        ),
        "
        500  idle
        1000 busy
        2060 review finished 1 shell
        3260 notify
        5000 idle (1 shell running)
        5000 withdraw
        ",
    );
}

/// Measured, Claude Code 2.1.332 on two cores with a load average of 18: the file is written up to 570 ms after the
/// moment that it names.
#[test]
fn b05_a_gap_that_is_written_late_is_bridged_too() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1070 file busy
        1800 hook prompt
        4250 hook stop
        4850 file idle since=4280
        4890 file busy since=4440
        6170 hook stop
        6440 file idle since=6330
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        6440 review finished
        7640 notify
        ",
    );
}

#[test]
fn b05_queued_prompts() {
    // Queued by someone who types fast.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1300 hook prompt
        4000 hook stop
        4100 file idle
        4140 file busy
        6000 hook stop
        6100 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        6100 review finished
        7300 notify
        ",
    );
    // The gap is seen only by the file's new time under the same busy.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        3000 hook prompt
        3200 tx enqueue
        7500 hook stop
        7650 file busy since=7620
        7650 tx dequeue
        7700 hook stop
        7780 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        7780 review finished
        8980 notify
        ",
    );
    // Seen by the watch.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        3000 hook prompt
        7500 hook stop
        7590 file idle
        7620 file busy
        7700 hook stop
        7780 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        7780 review finished
        8980 notify
        ",
    );
    // Taken into the running turn: one Stop.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        3000 hook prompt
        3200 tx enqueue
        5000 tx dequeue
        7500 hook stop
        7590 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        8090 review finished
        9290 notify
        ",
    );
}

#[test]
fn b06_esc_while_a_prompt_is_queued() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        3000 hook prompt
        4000 file idle
        4115 file busy
        4120 tx interrupt
        4125 tx prompt
        4300 hook stop
        4390 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        4390 review finished
        5590 notify
        ",
    );
}

#[test]
fn b07_a_queued_turn_asks() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        3000 hook prompt
        4000 hook stop
        4090 file idle
        4120 file busy
        4300 hook pr Bash \"touch q.txt\"
        4320 file permission
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        4320 needs-input permission \"touch q.txt\"
        5520 notify
        ",
    );
}

#[test]
fn b08_wake_up() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 hook stop wakes=80000
        2060 file idle
        82000 file busy
        82020 hook prompt
        82200 hook stop
        82290 file idle
        99000 end
        "
        ),
        "
        500   idle
        1000  busy
        2060  review finished wakes
        3260  notify
        82000 busy
        82000 withdraw
        82290 review finished
        83490 update
        ",
    );
    // It fails: that is news. So is a dialog in it.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 hook stop wakes=80000
        2060 file idle
        82000 file busy
        82020 hook prompt
        82200 hook stopfail rate_limit
        82290 file idle
        99000 end
        "
        ),
        "
        500   idle
        1000  busy
        2060  review finished wakes
        3260  notify
        82000 busy
        82000 withdraw
        82290 review failed(rate_limit)
        83490 notify
        ",
    );
}

#[test]
fn b09_teammate_and_a_stale_list() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1500 hook sub mate
        2000 hook stop agents=1
        2040 hook pr Bash \"touch mate.txt\" lane=mate
        2180 file permission
        9000 file busy
        9070 hook post Bash \"touch mate.txt\" lane=mate
        9300 hook subend mate
        9400 file idle
        9540 file busy
        9700 hook stop agents=1
        9790 file idle
        20000 end
        "
        ),
        "
        500   idle
        1000  busy
        1500  busy 1 agent
        2180  needs-input permission \"touch mate.txt\"
        3380  notify
        9000  busy 1 agent
        9000  withdraw
        9300  busy
        10290 review finished
        11490 notify
        ",
    );
}

#[test]
fn b10_a_stop_hook_vetoes_once() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 hook stop
        4000 hook stop again
        4070 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        4070 review finished
        5270 notify
        ",
    );
}

#[test]
fn b11_a_slow_stop_hook() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 hook stop
        5070 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        5070 review finished
        6270 notify
        ",
    );
}

#[test]
fn b12_esc_in_a_queued_turn() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        3000 hook prompt
        4000 hook stop
        4120 file idle
        4150 file busy
        7600 file idle
        7700 tx interrupt
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        8100 idle (interrupted)
        ",
    );
    // The gap was never seen, in a version whose file has no time of its own.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy unversioned
        3000 hook prompt
        4000 hook stop
        7600 file idle unversioned
        7700 tx interrupt
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        8100 idle (interrupted)
        ",
    );
}

#[test]
fn b08_p08_a_command_after_a_tasks_turn_is_the_persons() {
    // The task's prompt stands in the transcript within half a second, but before the end of its own turn.
    check(
        &format!(
            "{IDLE}
        1000 hook task
        1010 file busy
        1020 tx task
        1200 hook stop
        1260 file idle
        1400 file busy
        2500 hook stop
        2560 file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1260 review finished
        1400 busy
        2560 review finished
        3760 notify
        ",
    );
}

#[test]
fn b12_the_stop_of_a_turn_before_is_that_turn_s_however_late_its_process_started() {
    let begin = format!(
        "{IDLE}
        1000 hook prompt turn=p1
        1050 file busy
        3000 hook prompt turn=p1
        "
    );
    let live = "
        4120 file idle
        4130 file busy
        ";
    // Esc in the queued turn leaves no trace. The Stop is heard before the file, in order, and after the end.
    for rest in [
        "
        4200 hook@4160 stop turn=p1
        4210 file@4120 idle
        4211 file@4130 busy
        4300 file idle
        20000 end
        ",
        &format!(
            "{live}
        4160 hook stop turn=p1
        4300 file idle
        20000 end
        "
        ),
        &format!(
            "{live}
        4300 file idle
        6000 hook@4160 stop turn=p1
        20000 end
        "
        ),
    ] {
        check(
            &format!("{begin}{rest}"),
            "
        500  idle
        1000 busy
        4800 idle
        ",
        );
    }
    // The queued turn has a Stop of its own.
    check(
        &format!(
            "{begin}{live}
        4160 hook stop turn=p1
        4500 hook stop turn=p2
        4600 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        4600 review finished
        5800 notify
        ",
    );
    // What was queued is a compaction: the badge before it is the first turn's review.
    check(
        &format!(
            "{begin}{live}
        4160 hook stop turn=p1
        4200 hook compact
        5000 hook compacted
        5100 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        4200 busy compacting
        5000 busy
        5100 review finished
        6300 notify
        ",
    );
    // A teammate's second Stop of one turn is a Stop.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt turn=p1
        1050 file busy
        2000 hook stop agents=1 turn=p1
        2100 hook pr Bash lane=mate
        2120 file permission
        3000 file idle
        3140 file busy
        3300 hook stop agents=1 turn=p1
        3400 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        2000 busy 1 agent
        2120 needs-input permission
        3140 busy
        3300 busy 1 agent
        3900 review finished
        5100 notify
        ",
    );
}

#[test]
fn b08_a_person_s_turn_beside_a_wake_up_alerts_and_the_wake_up_does_not() {
    // The wake-up of 61000 comes late; a person was quicker. Who asked is known when the transcript has it.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 hook stop wakes=61000
        2060 file idle
        60800 hook prompt
        60850 file busy
        61200 hook stop
        61260 file idle
        61300 tx@60870 prompt
        61400 tx@61190 end
        70000 file busy
        70020 hook prompt
        70100 tx@70000 task
        70200 hook stop
        70260 file idle
        80000 end
        "
        ),
        "
        500  idle
        1000 busy
        2060 review finished wakes
        3260 notify
        60800 busy
        60800 withdraw
        61260 review finished
        62460 notify
        70000 busy
        70000 withdraw
        70260 review finished
        71460 notify
        ",
    );
}

#[test]
fn b09_a_teammate_s_turn_bears_the_id_of_one_that_was_interrupted() {
    // Nobody's Stop but its own: the turn with this id ended before, without one.
    check(
        "
        0     found pane=1
        500   file idle
        1000  hook prompt turn=p1
        1050  file busy
        1500  hook pr Bash ls turn=p1
        1520  file permission
        4000  file idle
        4010  file busy
        4020  tx@3990 interrupt
        8000  hook post Bash ls lane=mate turn=p1
        8200  file idle
        8340  file busy
        8600  hook stop agents=1 turn=p1
        8660  file idle
        20000 end
        ",
        "
        500  idle
        1000 busy
        1520 needs-input permission \"ls\"
        2720 notify
        4010 busy
        4010 withdraw
        8600 busy 1 agent
        9160 review finished
        10360 notify
        ",
    );
}

#[test]
fn b09_a_turn_that_a_teammate_begins_keeps_its_stop() {
    // The turn before was interrupted and has none; the next one's bears its id, and the transcript can't be read.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt turn=p1
        1050 file busy
        1100 unreadable-transcript
        2000 hook subend a
        2100 file idle
        2240 file busy
        2430 hook stop turn=p1 agents=1
        2490 file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        2990 review finished
        4190 notify
        ",
    );
}

#[test]
fn b12_h07_the_first_turn_s_stop_is_spent_however_late_it_comes() {
    // The queued turn was interrupted before a token, and the file between the two turns was never read.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        4050 tx end
        4100 tx dequeue
        4110 tx prompt
        4400 file idle
        9000 hook@4040 stop
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        4900 idle
        ",
    );
}
