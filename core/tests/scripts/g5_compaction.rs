//! Compaction.

use crate::dsl::check;
use crate::g1_plain::{IDLE, REVIEW, REVIEW_SEEN};

const COMPACTION: &str = "
    5000 hook compact
    5170 file busy
    7000 hook subend x untyped
    7080 hook start compact
    7110 hook compacted
    7160 file idle
    30000 end
";

#[test]
fn c01_compaction_restores_the_badge_before() {
    check(
        &format!("{IDLE}{COMPACTION}"),
        "
        500  idle
        5000 busy compacting
        7080 busy
        7160 idle
        ",
    );
    // An unread review is not taken back and not told again.
    let world = check(
        &format!("{REVIEW}{COMPACTION}"),
        &format!(
            "{REVIEW_SEEN}
        5000 busy compacting
        7080 busy
        7160 review finished
        "
        ),
    );
    assert_eq!(
        world.item('A').since,
        crate::dsl::at(2060),
        "as old as before"
    );
    // By the transcript alone.
    check(
        "
        0    found
        250  file none
        500  file idle
        5170 file busy
        7100 tx boundary
        7160 file idle
        30000 end
        ",
        "
        500  idle
        5170 busy
        7660 idle
        ",
    );
}

#[test]
fn c02_compaction_inside_a_turn() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 hook compact auto
        3000 hook subend x untyped
        3100 hook start compact
        3150 hook compacted
        9000 hook stop
        9070 file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        2000 busy compacting
        3100 busy
        9070 review finished
        10270 notify
        ",
    );
    // Its prompt and its Stop are late: the transcript knows that it was a turn.
    check(
        &format!(
            "{IDLE}
        1050 file busy
        1200 tx prompt
        2000 hook compact auto
        3100 hook start compact
        3150 hook compacted
        4000 tx tool Bash id=1 x
        4100 tx result id=1
        9070 file idle
        9100 tx end
        12000 hook@1000 prompt
        13000 hook@9000 stop
        20000 end
        "
        ),
        "
        500  idle
        1050 busy
        2000 busy compacting
        3100 busy
        9570 review finished
        10770 notify
        ",
    );
}

#[test]
fn c03_compaction_cancelled() {
    // Claude refuses: nothing to compact. The hook's process starts when all is over.
    check(
        &format!(
            "{REVIEW}
        5100 file busy
        5170 file idle
        5180 hook compact
        30000 end
        "
        ),
        &format!(
            "{REVIEW_SEEN}
        5100 busy
        5100 withdraw
        5180 review finished
        "
        ),
    );
    check(
        &format!(
            "{REVIEW}
        5000 hook compact
        5170 file busy
        6300 file idle
        30000 end
        "
        ),
        &format!(
            "{REVIEW_SEEN}
        5000 busy compacting
        6300 review finished
        "
        ),
    );
}

#[test]
fn c04_compaction_of_160_seconds() {
    check(
        &format!(
            "{IDLE}
        5000 hook compact
        5170 file busy
        165000 hook compacted
        165050 file idle
        200000 end
        "
        ),
        "
        500    idle
        5000   busy compacting
        165000 busy
        165050 idle
        ",
    );
}

#[test]
fn c05_request_too_large() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1200 hook compact auto
        1300 hook start compact
        1350 hook compacted
        1400 hook stopfail invalid_request
        1450 file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1200 busy compacting
        1300 busy
        1450 review failed(invalid_request)
        2650 notify
        ",
    );
}

#[test]
fn c06_compaction_behind_an_idle_file() {
    check(
        &format!(
            "{IDLE}
        5000 hook compact
        95000 hook compacted
        99000 end
        "
        ),
        "
        500   idle
        5000  busy compacting
        95000 idle
        ",
    );
    // A level that never moved does not end it; a change from busy to idle does.
    check(
        &format!(
            "{IDLE}
        5000 hook compact
        6000 file idle
        20000 file busy
        21000 file idle
        99000 end
        "
        ),
        "
        500   idle
        5000  busy compacting
        21000 idle
        ",
    );
    // So does the next turn event.
    check(
        &format!(
            "{IDLE}
        5000 hook compact
        20000 hook prompt
        20050 file busy
        25000 end
        "
        ),
        "
        500   idle
        5000  busy compacting
        20000 busy
        ",
    );
    // A PreCompact of a spell that is over, late: nothing.
    check(
        &format!("{REVIEW}\n 9000 hook@1500 compact auto\n 20000 end"),
        REVIEW_SEEN,
    );
}

#[test]
fn c01_h04_what_a_compaction_hid_comes_back_with_an_episode_or_not_at_all() {
    // A dialog that was open when the server ended is not open under a compaction, and nobody keeps it as if it were.
    let world = check(
        &format!(
            "{IDLE}
        1000  hook prompt
        1050  file busy
        2000  hook pr Bash ls
        2030  file permission
        9000  restart
        9010  found pane=1
        9020  file@8000 busy
        9030  hook@7950 compact
        9200  recovered
        9300  restart
        9310  found pane=1
        9320  file@8000 busy
        9500  recovered
        12000 file idle
        20000 end
        "
        ),
        "
        500   idle
        1000  busy
        2030  needs-input permission \"ls\"
        3230  notify
        9000  none
        9010  needs-input permission \"ls\"
        9020  busy
        9020  withdraw
        9030  busy compacting
        9300  none
        9310  unknown
        9320  busy
        12500 idle
        ",
    );
    assert!(world.kept[&'A'].episode.is_none());
}

#[test]
fn c01_b04_a_turn_right_after_a_compaction_keeps_its_stop() {
    // Its Stop is here before the file is busy; the transcript tells that it began after the compaction.
    check(
        &format!(
            "{REVIEW}
        17000 hook compact
        17050 file busy
        34620 hook compacted
        34690 file idle
        34800 tx@34712 boundary
        34970 tx@34887 task
        35050 hook stop
        35054 file@34877 busy
        35120 file busy since=35116
        35360 hook stop
        35630 file@35412 idle
        40000 end
        "
        ),
        "
        500     idle
        1000    busy
        2060    review finished
        3260    notify
        17000   busy compacting
        34620   busy
        34690   review finished
        35054   busy
        35054   withdraw
        35630   review finished
        36830   notify
        ",
    );
}

#[test]
fn c01_h11_a_compaction_whose_busy_is_read_late_does_not_flash() {
    check(
        &format!(
            "{IDLE}
        7480 hook compact
        7572 torn
        8020 hook compacted
        8120 file@7573 busy
        8155 file idle
        12000 end
        "
        ),
        "
        500     idle
        7480    busy compacting
        8020    busy
        8155    idle
        ",
    );
}
