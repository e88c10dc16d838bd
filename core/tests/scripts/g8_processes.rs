//! Process death, suspend, exit, start-up dialogs, workers nobody sees.

use crate::dsl::{check, run, words};
use crate::g1_plain::{IDLE, REVIEW, REVIEW_SEEN};

#[test]
fn d01_exit_from_whatever_badge() {
    check(
        &format!(
            "{REVIEW}
        5000 removed
        5020 hook bye prompt_input_exit
        5100 died
        20000 end
        "
        ),
        &format!(
            "{REVIEW_SEEN}
        5020 none
        5020 withdraw
        "
        ),
    );
    check(
        &format!("{IDLE}\n 5000 removed\n 5100 died\n 9000 end"),
        "500 idle\n 5100 none",
    );
    // A version without files.
    check(
        "
        0    found
        100  hook start startup
        5000 hook bye prompt_input_exit
        5100 died
        9000 end
        ",
        "
        400  idle
        5000 none
        ",
    );
}

#[test]
fn d01_h07_a_reading_that_comes_twice_does_not_bring_a_session_back() {
    check(
        &format!(
            "{IDLE}
        5000 file@4900 idle
        5001 hook@4990 bye other
        5002 file@4900 idle
        5020 removed
        9000 end
        "
        ),
        "500 idle\n 5020 none",
    );
}

#[test]
fn d02_killed_in_mid_turn() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 removed
        2020 hook bye other
        2100 died
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        2020 none
        ",
    );
}

#[test]
fn d03_kill_9_with_a_dialog_open() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1500 file permission
        4000 died
        4100 file permission # the stale file is read again
        5000 B: found
        5060 B: key
        5500 B: file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input permission
        2700 notify
        4000 none
        4000 withdraw
        5500 B: idle
        ",
    );
}

#[test]
fn d04_a_stale_file_of_a_reused_pid() {
    // Same pid, other start time: another agent. The dead one's file and hooks reach nobody.
    let world = run(&format!(
        "{REVIEW}
        5000 died
        5100 file busy
        5200 hook prompt
        5300 found
        9000 end
        "
    ));
    assert!(world.fleet.items().is_empty());
}

#[test]
fn d05_suspended_in_mid_turn() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        3000 suspended
        12000 resumed
        12100 hook stop
        12160 file idle
        20000 end
        "
        ),
        "
        500   idle
        1000  busy
        3000  busy suspended
        12000 busy
        12160 review finished
        13360 notify
        ",
    );
    // Suspended within the dwell: told only when it goes on.
    check(
        &format!(
            "{REVIEW}
        3000 suspended
        12000 resumed
        20000 end
        "
        )
        .replace("2060 file idle", "2060 file idle"),
        "
        500   idle
        1000  busy
        2060  review finished
        3000  review finished suspended
        12000 review finished
        13200 notify
        ",
    );
    let world = run(&format!("{REVIEW}\n 5000 suspended\n 6000 end"));
    assert!(!world.item('A').attention);
}

#[test]
fn d06_a_dialog_holds_the_start() {
    // Quiet: after two seconds.
    check(
        "
        0    found
        60   key
        1060 loud
        2000 quiet
        9000 file none
        9300 file idle
        20000 end
        ",
        "
        2060 needs-input startup
        3260 notify
        9300 idle
        9300 withdraw
        ",
    );
    // Not quiet: after six.
    check(
        "
        0    found
        60   key
        1060 loud
        2060 loud
        9000 died
        20000 end
        ",
        "
        6060 needs-input startup
        7260 notify
        9000 none
        9000 withdraw
        ",
    );
    // Quiet later.
    check(
        "
        0    found
        60   key
        2060 loud
        3060 quiet
        4000 end
        ",
        "3060 needs-input startup",
    );
    // A slow start is no dialog.
    check(
        "
        0    found
        60   key
        1000 quiet
        1500 file none
        2400 file idle
        9000 end
        ",
        "2400 idle",
    );
}

#[test]
fn d07_spare_worker() {
    let world = check(
        &format!(
            "{IDLE}
        600  B: hook start startup job pane=1
        800  B: found
        900  B: file idle kind=hidden
        1000 B: hook prompt job
        1100 B: file busy kind=hidden
        9000 end
        "
        ),
        "500 idle",
    );
    assert_eq!(world.fleet.items().len(), 1);
}

#[test]
fn d08_daemons_are_not_listed() {
    check(
        "
        0   found
        100 file none kind=hidden
        500 file waiting kind=hidden
        900 end
        "
        .replace("waiting", "permission")
        .as_str(),
        "",
    );
}

#[test]
fn d09_headless_is_busy_while_it_lives() {
    check(
        "
        0    found
        60   key
        150  hook start startup
        200  file none kind=headless
        260  file idle
        280  file busy
        300  hook prompt
        600  hook pr Bash \"touch x.txt\"
        900  file permission
        2000 hook stop
        2050 file idle
        5000 removed
        5100 hook bye other
        5200 died
        9000 end
        ",
        "
        200  busy (headless)
        5100 none
        ",
    );
}

#[test]
fn h11_a_file_that_vanishes_under_a_living_process_moves_no_badge() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1500 hook pre Bash \"touch x.txt\"
        1510 hook pr Bash \"touch x.txt\"
        1530 file permission
        5000 removed
        9000 hook post Bash \"touch x.txt\"
        9500 hook stop
        20000 died
        24000 end
        "
        ),
        "
        500   idle
        1000  busy
        1530  needs-input permission \"touch x.txt\"
        2730  notify
        9000  busy
        9000  withdraw
        9500  review finished
        10700 notify
        20000 none
        20000 withdraw
        ",
    );
}

#[test]
fn h11_a_torn_file_keeps_the_badge() {
    let world = run(&format!("{REVIEW}\n 3500 torn\n 3600 torn\n 9000 end"));
    assert_eq!(words(&world.item('A')), "review finished");
}

#[test]
fn p01_h11_a_status_is_awaited_from_when_the_file_was_written() {
    check(
        "
        0    found
        100  hook start startup
        300  file@110 none
        9000 end
        ",
        "2610 idle",
    );
}
