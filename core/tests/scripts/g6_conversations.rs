//! `/clear`, resume, fork, parking.

use purplemux_core::Badge;

use crate::dsl::{check, run, words};
use crate::g1_plain::{IDLE, REVIEW, REVIEW_SEEN};

#[test]
fn r01_clear_from_an_unread_review() {
    check(
        &format!(
            "{REVIEW}
        5000 hook bye clear
        5100 file busy
        5300 file busy conv=new
        5350 hook start clear conv=new
        5550 file idle conv=new
        62000 hook note idle_prompt
        90000 end
        "
        ),
        &format!(
            "{REVIEW_SEEN}
        5100 busy
        5350 withdraw
        5550 idle
        "
        )
        .replace("5350 withdraw", "5100 withdraw"),
    );
    // Without hooks: the new id in the file.
    check(
        "
        0    found
        500  file idle
        1050 file busy
        2060 file idle
        2100 tx end
        5100 file busy
        5300 file busy conv=new
        5550 file idle conv=new
        90000 end
        ",
        "
        500  idle
        1050 busy
        2560 review finished
        3760 notify
        5100 busy
        5100 withdraw
        6050 idle
        ",
    );
}

#[test]
fn r02_the_marker_is_read_from_the_new_transcript() {
    check(
        "
        0     found
        100   hook start startup path=/old.jsonl
        1000  hook prompt path=/old.jsonl
        2000  hook stop path=/old.jsonl
        5000  hook bye clear
        5100  hook start clear conv=new path=/new.jsonl
        6000  hook prompt conv=new path=/new.jsonl
        8000  tx interrupt
        20000 end
        ",
        "
        400  idle
        1000 busy
        2000 review finished
        3200 notify
        5100 idle
        5100 withdraw
        6000 busy
        8000 idle (interrupted)
        ",
    );
}

#[test]
fn r03_resume_in_the_app() {
    check(
        &format!(
            "{REVIEW}
        5000 file menu
        8000 hook bye resume
        8050 hook start resume conv=older
        8080 file menu conv=older
        8200 file idle conv=older
        20000 end
        "
        ),
        &format!(
            "{REVIEW_SEEN}
        8050 idle
        8050 withdraw
        "
        ),
    );
    // The hook comes after the file.
    check(
        &format!(
            "{REVIEW}
        5000 file menu
        8080 file menu conv=older
        8200 file idle conv=older
        8400 hook@8050 start resume conv=older
        20000 end
        "
        ),
        &format!(
            "{REVIEW_SEEN}
        8080 idle
        8080 withdraw
        "
        ),
    );
}

#[test]
fn r04_continue_shows_a_throw_away_id_first() {
    let world = check(
        "
        0    found
        60   key
        250  file none conv=thrown-away
        330  file none conv=resumed
        350  hook start resume conv=resumed
        500  file idle conv=resumed
        600  tx@-0 title old
        20000 end
        "
        .replace("tx@-0", "tx")
        .as_str(),
        "500 idle",
    );
    assert_eq!(
        world.item('A').conversation.as_ref().map(|c| c.as_str()),
        Some("resumed")
    );
}

#[test]
fn r05_two_starts_and_a_new_id_in_mid_turn() {
    let world = check(
        &format!(
            "{IDLE}
        600  hook start startup conv=never
        1000 hook prompt
        1050 file busy
        2000 file busy conv=other
        2100 hook pre Bash id=1 x conv=other
        5000 end
        "
        ),
        "
        500  idle
        1000 busy
        ",
    );
    assert_eq!(
        world.item('A').conversation.as_ref().map(|c| c.as_str()),
        Some("other")
    );
}

#[test]
fn r06_copied_lines_decide_nothing() {
    check(
        "
        100000 found
        100060 key
        100250 file none conv=fork
        100300 hook start fork conv=fork
        100500 file idle conv=fork
        101000 tx@50000 prompt
        101000 tx@51000 end
        101000 tx@60000 interrupt
        102000 hook prompt conv=fork
        102050 file busy
        105000 file idle
        120000 end
        ",
        "
        100500 idle
        102000 busy
        105500 idle
        ",
    );
    // A version without status.
    check(
        "
        100000 found
        100300 hook start fork conv=fork
        101000 tx@50000 prompt
        101000 tx@51000 end
        120000 end
        ",
        "100600 idle",
    );
}

#[test]
fn r07_parked_in_mid_turn() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        4000 file busy parked=j1
        5300 B: found
        5400 B: file none kind=bg job=j1
        5700 B: file idle
        5720 B: hook start fork job
        6120 B: file busy
        6400 B: hook stop job
        6480 B: file idle
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        6480 review finished
        7680 notify
        ",
    );
}

#[test]
fn r08_parked_from_idle_and_driven_from_the_job() {
    let world = check(
        &format!(
            "{IDLE}
        4000 file idle parked=j1
        5300 B: found
        5400 B: file none kind=bg job=j1
        5700 B: file idle
        10000 B: hook prompt job
        10050 B: file busy
        10300 B: hook pr Bash \"touch z.txt\" job
        10400 B: file permission
        20000 B: file idle
        20100 B: tx interrupt
        30000 died
        40000 end
        "
        ),
        "
        500   idle
        10000 busy
        10400 needs-input permission \"touch z.txt\"
        11600 notify
        20500 idle (interrupted)
        20500 withdraw
        30000 none
        30000 B: idle (interrupted)
        ",
    );
    assert_eq!(words(&world.item('B')), "idle (interrupted)");
    // Reading a review on the pane's row reads the job's.
    let world = run(&format!(
        "{IDLE}
        4000 file idle parked=j1
        5300 B: found
        5700 B: file idle kind=bg job=j1
        10000 B: hook prompt job
        10050 B: file busy
        10300 B: hook stop job
        10400 B: file idle
        15000 seen
        16000 end
        "
    ));
    assert_eq!(words(&world.item('A')), "idle");
}

#[test]
fn r07_h01_a_restart_with_a_parked_session() {
    // The pane's own file was frozen as it was parked, and what it showed is long over: its job's badge counts.
    for frozen in ["busy", "idle"] {
        check(
            &format!(
                "
        98000  restored@50000 unknown
        98001  B: restored@95000 busy
        99000  found
        99010  file@50100 {frozen} since=50000 parked=j1
        99020  B: found
        99030  B: file idle since=96000 kind=bg job=j1
        99040  B: hook@95950 stop job
        99200  recovered
        120000 end
        "
            ),
            "
        99000 unknown
        99020 B: unknown
        99030 B: none
        99200 review finished
        ",
        );
    }
    // There is no job any more.
    check(
        "
        98000  restored@50000 unknown
        99000  found
        99010  file@60000 busy since=50000 parked=j1
        99200  recovered
        120000 end
        ",
        "
        99000 unknown
        99200 idle
        ",
    );
}

#[test]
fn r07_h01_a_restart_while_a_session_is_being_parked() {
    let world = check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        4000 file busy parked=j1
        4500 end
        "
        ),
        "
        500  idle
        1000 busy
        ",
    );
    // What was kept is no badge of the pane's own.
    assert_eq!(world.kept[&'A'].badge, Badge::Unknown);
    // Its job comes up only now: until then it is as it was parked.
    check(
        "
        99000  restored@50000 busy
        99010  found
        99020  file@98900 busy since=50000 parked=j1
        99200  recovered
        99900  B: found
        100000 B: file none kind=bg job=j1
        100300 B: file idle
        100700 B: file busy
        120000 end
        ",
        "
        99010 unknown
        99020 busy
        ",
    );
}

#[test]
fn r08_the_job_ends_first() {
    check(
        &format!(
            "{IDLE}
        1000  hook prompt
        1050  file busy
        4000  file busy parked=j1
        5300  B: found
        5700  B: file idle kind=bg job=j1
        6120  B: file busy
        9000  B: removed
        9100  B: died
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        9100 idle
        ",
    );
}

#[test]
fn r03_h07_another_conversation_is_picked_from_a_menu_over_the_end() {
    // The turn ended under the open picker; its Stop and its tool's result are late. With the old conversation its
    // transcript is forgotten, and its end is nobody's question any more.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1200 hook pre Bash id=1 ls
        1300 tx tool Bash id=1 ls
        2000 tx@1900 result id=1
        2000 tx@1950 end
        2050 file menu
        2400 file menu conv=other
        2500 file idle conv=other
        3000 hook@1900 post Bash id=1 ls
        5000 hook@1960 stop
        6000 hook@2300 start resume conv=other
        20000 end
        "
        ),
        "
        500  idle
        1000 busy
        2400 idle
        ",
    );
}

#[test]
fn r08_the_pane_leaves_before_its_job_has_taken_the_work_up() {
    // The job begins at rest, and takes the work up within half a second: until then it has no word of its own.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1300 file busy parked=j1
        2000 B: found
        2400 B: file none kind=bg job=j1
        2700 B: file idle
        2760 removed
        2780 hook bye other
        2800 died
        3200 B: file busy
        4000 B: hook stop
        4060 B: file idle
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        2780 none
        3200 B: busy
        4060 B: review finished
        5260 B: notify
        ",
    );
    // It never does: then its own badge counts.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1300 file busy parked=j1
        2000 B: found
        2400 B: file none kind=bg job=j1
        2700 B: file idle
        2760 removed
        2780 hook bye other
        2800 died
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        2780 none
        4700 B: idle
        ",
    );
}

#[test]
fn r06_b05_what_waited_in_a_process_before_waits_no_more() {
    // The transcript was copied: its last prompt was put in the queue, and nobody took it up.
    let turn = |queued: u64| {
        let mut world = run(&format!(
            "
        8000 a: found
        8500 a: file idle
        9000 a: hook prompt
        9050 a: file busy
        9060 a: tx@{queued} enqueue
        9900 a: hook stop
        9950 a: file idle
        "
        ));
        let at_once = words(&world.item('a'));
        world.wait_until(10_500);
        assert_eq!(words(&world.item('a')), "review finished");
        at_once
    };
    assert_eq!(turn(1_999), "review finished");
    assert_eq!(turn(9_055), "busy", "it may be taken up now");
}
