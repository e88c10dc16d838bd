//! Interrupts and turns that end in silence.

use crate::dsl::check;
use crate::g1_plain::{IDLE, REVIEW, REVIEW_SEEN};

#[test]
fn i01_esc_while_text_streams() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        4000 file idle
        4100 tx interrupt
        75000 end
        "
        ),
        "
        500  idle
        1000 busy
        4500 idle (interrupted)
        ",
    );
    // 2.1.128 writes a stop reason on the partial answer, then the marker.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        4000 file idle
        4100 tx end
        4100 tx interrupt
        75000 end
        "
        ),
        "
        500  idle
        1000 busy
        4500 idle (interrupted)
        ",
    );
}

#[test]
fn i02_esc_before_the_first_token() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        4000 file idle
        75000 end
        "
        ),
        "
        500  idle
        1000 busy
        4500 idle
        ",
    );
}

#[test]
fn i03_esc_in_a_running_tool() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1300 hook pre Bash id=1 \"sleep 60\"
        1310 tx tool Bash id=1 \"sleep 60\"
        4000 file shell
        4050 file idle
        4100 tx result id=1
        4100 tx interrupt
        75000 end
        "
        ),
        "
        500  idle
        1000 busy
        4500 idle (interrupted)
        ",
    );
}

#[test]
fn i04_bang_command_interrupted() {
    check(
        &format!(
            "{REVIEW}
        5000 file busy
        7000 file shell
        7060 file idle
        75000 end
        "
        ),
        &format!(
            "{REVIEW_SEEN}
        5000 busy
        5000 withdraw
        7500 idle
        "
        ),
    );
}

#[test]
fn i05_prompt_blocked_by_a_hook() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1040 file busy
        1071 file idle
        75000 end
        "
        ),
        "
        500  idle
        1000 busy
        1571 idle
        ",
    );
    // The 31 ms of busy were never seen.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1075 file idle since=1071
        75000 end
        "
        ),
        "
        500  idle
        1000 busy
        1571 idle
        ",
    );
    // Nor any change of the file at all: the prompt's lead is over after a second.
    check(
        &format!(
            "{REVIEW}
        5000 hook prompt
        75000 end
        "
        ),
        &format!(
            "{REVIEW_SEEN}
        5000 busy
        5000 withdraw
        6000 review finished
        "
        ),
    );
}

#[test]
fn i06_turn_without_a_stop() {
    // (a) The hook is lost; the end marker tells.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        4000 file idle
        4100 tx end
        75000 end
        "
        ),
        "
        500  idle
        1000 busy
        4500 review finished
        5700 notify
        ",
    );
    // (b) The transcript ends in a tool's result, and nothing more ever comes.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1200 tx prompt
        1300 tx tool Bash id=1 x
        1400 tx result id=1
        4000 file idle
        75000 end
        "
        ),
        "
        500  idle
        1000 busy
        4500 idle (ended without Stop)
        ",
    );
    // A Stop that comes within 30 s makes review after all, once.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        4000 file idle
        20000 hook@3950 stop
        21000 hook@3950 stop
        75000 end
        "
        ),
        "
        500  idle
        1000 busy
        4500 idle
        20000 review finished
        21200 notify
        ",
    );
    // Later than that, or once something newer has begun, it changes nothing.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        4000 file idle
        35000 hook@3950 stop
        75000 end
        "
        ),
        "
        500  idle
        1000 busy
        4500 idle
        ",
    );
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        4000 file idle
        6000 file busy
        7000 hook@3950 stop
        8000 file idle
        75000 end
        "
        ),
        "
        500  idle
        1000 busy
        4500 idle
        6000 busy
        8500 idle
        ",
    );
    // The end marker is written late, when nobody watches the transcript any more.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        4000 file idle
        6500 tx@3990 end unseen
        75000 end
        "
        ),
        "
        500  idle
        1000 busy
        4500 idle
        7500 review finished
        8700 notify
        ",
    );
    // The transcript can't be read: don't know, so not review.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1100 unreadable-transcript
        4000 file idle
        75000 end
        "
        ),
        "
        500  idle
        1000 busy
        4500 idle
        ",
    );
}

#[test]
fn i07_marker_older_than_the_prompts_receipt() {
    check(
        "
        0    found
        100  hook start startup
        1600 tx interrupt
        4000 hook@1000 prompt
        9000 end
        ",
        "
        400  idle
        1600 idle (interrupted)
        ",
    );
    check(
        "
        0    found
        100  hook start startup
        1300 tx@1000 prompt
        2600 tx interrupt
        4000 hook@1000 prompt
        9000 end
        ",
        "
        400  idle
        1300 busy
        2600 idle (interrupted)
        ",
    );
}

#[test]
fn i06_a_clock_set_in_mid_turn_does_not_hide_the_end() {
    // The Stop is lost; the end marker is seen live, whatever the wall clock says by then.
    for clock in ["-7200000", "7200000"] {
        check(
            &format!(
                "{IDLE}
        1000 hook prompt
        1050 file busy
        1070 tx@1060 prompt
        4000 clock {clock}
        8000 tx@7950 end
        8060 file idle
        9000 end
        "
            ),
            "
        500  idle
        1000 busy
        8560 review finished
        ",
        );
    }
    // Nor does it make an earlier turn's marker this turn's.
    check(
        &format!(
            "{REVIEW}
        20000 seen
        21000 clock -7200000
        22000 hook prompt
        22050 file busy
        24000 file idle
        25000 end
        "
        ),
        &format!(
            "{REVIEW_SEEN}
        20000 idle
        20000 withdraw
        22000 busy
        24500 idle
        "
        ),
    );
}

#[test]
fn i05_a_blocked_prompt_does_not_wait_behind_the_next_one() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1002 file busy
        1034 file idle
        1150 hook prompt
        1200 file busy
        1400 hook stop
        1450 file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1450 review finished
        2650 notify
        ",
    );
}

#[test]
fn i01_b12_a_turn_right_after_an_interrupt_keeps_its_own_stop() {
    // Its prompt's hook starts before the file is busy again, and names the turn that the Stop is of.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt turn=p1
        1050 file busy
        3000 file idle
        3076 hook prompt turn=p2
        3082 file busy
        3500 hook stop turn=p2
        3550 file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        3550 review finished
        4750 notify
        ",
    );
}
