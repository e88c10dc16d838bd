//! Restart of the server; hooks lost, doubled, reordered, late. And what follows for notifications.

use purplemux_core::Badge;

use crate::dsl::{check, run, words};
use crate::g1_plain::{IDLE, REVIEW, REVIEW_SEEN};

#[test]
fn h01_restart_in_mid_turn() {
    check(
        "
        99000  restored@50000 busy
        100000 found
        101000 recovered
        101500 file busy since=50000
        110000 hook stop
        110060 file idle
        120000 end
        ",
        "
        100000 unknown
        101500 busy
        110060 review finished
        111260 notify
        ",
    );
}

#[test]
fn h02_stored_busy() {
    // (a) The turn ended meanwhile.
    check(
        "
        99000  restored@50000 busy
        100000 found
        100010 tx@60000 end
        100020 file idle since=60050
        101000 recovered
        120000 end
        ",
        "
        100000 unknown
        101000 review finished
        ",
    );
    // By a spooled Stop.
    check(
        "
        99000  restored@50000 busy
        100000 found
        100010 hook@60000 stop
        100020 file idle since=60050
        101000 recovered
        120000 end
        ",
        "
        100000 unknown
        101000 review finished
        ",
    );
    // It was started while the server was down, and only the spool tells of its turn.
    check(
        "
        99000  recovering
        100000 found
        100010 file idle since=60050
        100020 hook@55000 start startup
        100030 hook@60000 stop
        101000 recovered
        120000 end
        ",
        "
        100010 unknown
        101000 review finished
        ",
    );
    // (b) The process died.
    check(
        "
        99000  restored@50000 busy
        101000 recovered
        120000 end
        ",
        "",
    );
    // Interrupted.
    check(
        "
        99000  restored@50000 busy
        100000 found
        100010 tx@60000 interrupt
        100020 file idle since=60050
        101000 recovered
        120000 end
        ",
        "
        100000 unknown
        101000 idle (interrupted)
        ",
    );
}

#[test]
fn h03_the_person_played_on() {
    let needs_input = "
        99000  restored@50000 needs-input episode=4
        100000 found
    ";
    // (a) answered
    check(
        &format!(
            "{needs_input}
        100010 file busy since=60000
        101000 recovered
        120000 end
        "
        ),
        "
        100000 needs-input permission \"touch old.txt\"
        100010 busy
        100010 withdraw
        ",
    );
    // (b) refused
    check(
        &format!(
            "{needs_input}
        100005 tx@60000 interrupt
        100010 file idle since=60000
        101000 recovered
        120000 end
        "
        ),
        "
        100000 needs-input permission \"touch old.txt\"
        101000 idle (interrupted)
        101000 withdraw
        ",
    );
    // It still stands: the same ask, the same episode, nobody is called again.
    check(
        &format!(
            "{needs_input}
        100010 file permission since=49990
        101000 recovered
        120000 end
        "
        ),
        "100000 needs-input permission \"touch old.txt\"",
    );
    // (c) a prompt, (d) a dialog
    check(
        "
        99000  restored@50000 idle
        100000 found
        100010 file busy since=60000
        101000 recovered
        110000 hook stop
        110060 file idle
        120000 end
        ",
        "
        100000 idle
        100010 busy
        110060 review finished
        111260 notify
        ",
    );
    let world = check(
        "
        99000  restored@50000 idle
        100000 found
        100010 file permission since=60000
        101000 recovered
        120000 end
        ",
        "
        100000 idle
        100010 needs-input permission
        ",
    );
    assert!(world.item('A').attention, "in bell and title all the same");
    // A first start of the server: a dialog that stands open already is no news either.
    check(
        "
        99000  recovering
        100000 found
        100010 file permission since=60000
        101000 recovered
        120000 end
        ",
        "100010 needs-input permission",
    );
}

#[test]
fn h04_nothing_happened_while_down() {
    let world = check(
        "
        99000  restored@50000 review episode=4
        100000 found
        100010 file idle since=50000
        101000 recovered
        120000 end
        ",
        "100000 review finished",
    );
    assert_eq!(world.item('A').since, crate::dsl::at(50_000), "its old age");
    check(
        "
        99000  restored@50000 idle
        100000 found
        100005 tx@40000 end
        100010 file idle since=40050
        101000 recovered
        120000 end
        ",
        "100000 idle",
    );
    // A menu was opened and closed meanwhile: the file's time is newer, nothing else is.
    check(
        "
        99000  restored@50000 review episode=4
        100000 found
        100005 tx@49900 end
        100010 file idle since=70000
        101000 recovered
        120000 end
        ",
        "100000 review finished",
    );
    // A whole turn was run and ended meanwhile.
    check(
        "
        99000  restored@50000 idle
        100000 found
        100005 tx@60000 end
        100010 file idle since=60050
        101000 recovered
        120000 end
        ",
        "
        100000 idle
        100010 unknown
        101000 review finished
        ",
    );
}

#[test]
fn h05_version_without_status() {
    // (a)
    check(
        "
        99000  restored@50000 busy
        100000 found
        100010 tx@60000 end
        101000 recovered
        120000 end
        ",
        "
        100000 unknown
        101000 review finished
        ",
    );
    // (b)
    check(
        "
        99000  restored@50000 busy
        100000 found
        100010 tx@60000 interrupt
        101000 recovered
        120000 end
        ",
        "
        100000 unknown
        101000 idle (interrupted)
        ",
    );
    // (c)
    check(
        "
        99000  restored@50000 busy
        100000 found
        100010 tx@60000 tool Bash id=1 x
        101000 recovered
        140000 tx result id=1
        150000 tx end
        160000 end
        ",
        "
        100000 unknown
        140000 busy
        150500 review finished
        151700 notify
        ",
    );
}

/// A turn with one allowed tool and one that asks, as (ms, line): hooks can be lost, doubled and delayed.
const TURN: &[(u64, &str)] = &[
    (1000, "hook@1000 prompt hid=1"),
    (1050, "file busy"),
    (1060, "tx prompt"),
    (1200, "hook@1200 pre Bash id=1 ls hid=2"),
    (1210, "tx tool Bash id=1 ls"),
    (1300, "hook@1300 post Bash id=1 ls hid=3"),
    (1310, "tx result id=1"),
    (1400, "hook@1400 pre Bash id=2 touch hid=4"),
    (1410, "tx tool Bash id=2 touch"),
    (1490, "hook@1490 pr Bash touch hid=5"),
    (1500, "file permission"),
    (7500, "hook@7500 note permission_prompt hid=6"),
    (8000, "file busy"),
    (8100, "hook@8100 post Bash id=2 touch hid=7"),
    (8110, "tx result id=2"),
    (12000, "hook@12000 stop hid=8"),
    (12060, "file idle"),
    (12150, "tx end"),
];

/// The badge's word one second after each change of the file, and at the end.
fn milestones(lines: &[(u64, String)]) -> Vec<String> {
    let mut script: Vec<(u64, String)> = lines.to_vec();
    script.sort_by_key(|(ms, _)| *ms);
    let script: String = script
        .iter()
        .map(|(ms, line)| format!("{ms} {line}\n"))
        .collect();
    let mut world = run(IDLE);
    let mut seen = Vec::new();
    let mut marks = vec![2_050, 2_500, 9_000, 13_060, 40_000];
    marks.reverse();
    for line in script.lines() {
        let ms: u64 = line
            .split(' ')
            .next()
            .and_then(|w| w.parse().ok())
            .expect("ms");
        while marks.last().is_some_and(|m| *m < ms) {
            world.wait_until(marks.pop().expect("one at least"));
            seen.push(word(&world));
        }
        world.line(line);
    }
    while let Some(mark) = marks.pop() {
        world.wait_until(mark);
        seen.push(word(&world));
    }
    seen.push(format!(
        "{} pushes",
        world.seen.iter().filter(|l| l.ends_with("notify")).count()
    ));
    seen
}

fn word(world: &crate::dsl::World) -> String {
    words(&world.item('A'))
        .split(' ')
        .next()
        .expect("a word")
        .to_owned()
}

fn turn(with: impl Fn(u64, &str) -> Vec<u64>) -> Vec<(u64, String)> {
    TURN.iter()
        .flat_map(|(ms, line)| {
            with(*ms, line)
                .into_iter()
                .map(|at| (at, (*line).to_owned()))
        })
        .collect()
}

#[test]
fn h06_all_hooks_lost() {
    let untouched = milestones(&turn(|ms, _| vec![ms]));
    assert_eq!(
        untouched,
        [
            "needs-input",
            "needs-input",
            "busy",
            "review",
            "review",
            "2 pushes"
        ]
    );
    let without = milestones(&turn(|ms, line| {
        if line.starts_with("hook") {
            vec![]
        } else {
            vec![ms]
        }
    }));
    assert_eq!(without, untouched);
}

#[test]
fn h07_doubled_and_delayed() {
    let untouched = milestones(&turn(|ms, _| vec![ms]));
    let doubled = milestones(&turn(|ms, line| {
        if line.starts_with("hook") {
            vec![ms, ms + 40]
        } else {
            vec![ms]
        }
    }));
    assert_eq!(doubled, untouched);
    for late in [100, 400, 900, 2_500, 5_000] {
        let delayed = milestones(&turn(|ms, line| {
            if line.starts_with("hook") {
                vec![ms + late]
            } else {
                vec![ms]
            }
        }));
        assert_eq!(delayed, untouched, "{late} ms late");
    }
    // The Notification behind the answer, and behind the Stop.
    for to in [8_050, 12_500, 20_000] {
        let moved = milestones(&turn(|ms, line| {
            if line.contains("note") {
                vec![to]
            } else {
                vec![ms]
            }
        }));
        assert_eq!(moved, untouched);
    }
}

#[test]
fn h07_a_stop_of_an_earlier_spell_changes_nothing() {
    check(
        &format!(
            "{REVIEW}
        5000 seen
        6000 file busy
        6200 hook@2000 stop
        8000 file idle
        20000 hook@2000 stop
        30000 end
        "
        ),
        &format!(
            "{REVIEW_SEEN}
        5000 idle
        5000 withdraw
        6000 busy
        8500 idle
        "
        ),
    );
}

#[test]
fn h08_a_hook_before_its_agent() {
    check(
        "
        0    hook start startup
        100  hook prompt
        600  found
        650  file busy since=150
        5000 hook stop
        5060 file idle
        9000 end
        ",
        "
        600  busy
        5060 review finished
        6260 notify
        ",
    );
    // Never another tab's: an unknown process in a known pane.
    check(
        "
        0    found pane=1
        500  file idle
        1000 B: hook prompt pane=1
        9000 end
        ",
        "500 idle",
    );
    // The status file before its process.
    check(
        "
        0    file idle
        500  found
        900  end
        ",
        "500 idle",
    );
}

#[test]
fn h11_torn_file_keeps_the_badge() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        2000 torn
        2500 torn
        3000 file busy
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        ",
    );
}

#[test]
fn m03_over_before_anybody_was_told() {
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1500 file permission
        2300 file busy
        3000 hook stop
        3060 file idle
        3900 hook prompt
        3950 file busy
        9000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input permission
        2300 busy
        3060 review finished
        3900 busy
        ",
    );
}

#[test]
fn m05_not_now_silences_an_open_dialog() {
    let world = check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        1500 file permission
        5000 dismissed
        60000 end
        "
        ),
        "
        500  idle
        1000 busy
        1500 needs-input permission
        2700 notify
        5000 withdraw
        ",
    );
    let item = world.item('A');
    assert!(!item.attention && item.episode.is_some());
    // Of a review it is the same as reading it.
    check(
        &format!("{REVIEW}\n 5000 dismissed\n 9000 end"),
        &format!(
            "{REVIEW_SEEN}
        5000 idle
        5000 withdraw
        "
        ),
    );
}

#[test]
fn h03_a_queued_turn_that_was_interrupted_while_down_is_idle() {
    // The Stop is the first turn's; the transcript has the queued prompt after it and nothing more.
    check(
        "
        8990  tx@1020 prompt unseen
        8991  tx@2010 enqueue unseen
        8992  tx@4990 end unseen
        8993  tx@5100 dequeue unseen
        8994  tx@5100 prompt unseen
        9000  restored@500 idle
        9010  found
        9020  hook@1000 prompt
        9021  hook@2000 prompt
        9022  hook@5000 stop
        9030  file idle since=8500
        9300  recovered
        15000 end
        ",
        "
        9010  idle
        9030  unknown
        9300  idle
        ",
    );
}

#[test]
fn q08_h03_a_dialog_of_auto_mode_in_a_session_that_began_while_the_server_was_down() {
    // By the spool.
    check(
        "
        99000  recovering
        100000 found
        100010 file menu since=61850
        100020 hook@61050 start startup
        100030 hook@61570 prompt
        100040 hook@61690 pre Bash id=1 \"rm -rf /etc/lab\"
        100050 hook@67770 note agent_needs_input
        101000 recovered
        120000 file busy
        121000 hook post Bash id=1 \"rm -rf /etc/lab\"
        121500 hook stop
        121560 file idle
        130000 end
        ",
        "
        100010 unknown
        101000 needs-input dialog \"rm -rf /etc/lab\"
        120000 busy
        121560 review finished
        122760 notify
        ",
    );
    // By the transcript, if every hook was lost.
    check(
        "
        99000  recovering
        100000 found
        100005 tx@61600 prompt unseen
        100005 tx@61700 tool Bash id=1 \"rm -rf /etc/lab\" unseen
        100010 file menu since=61850
        101000 recovered
        110000 end
        ",
        "
        100010 unknown
        101000 needs-input dialog \"rm -rf /etc/lab\"
        ",
    );
    // The person's own menu: no tool stands open.
    check(
        "
        99000  recovering
        100000 found
        100005 tx@51600 prompt unseen
        100005 tx@51700 tool Bash id=1 ls unseen
        100005 tx@51900 result id=1 unseen
        100005 tx@52000 end unseen
        100010 file menu since=61850
        101000 recovered
        110000 end
        ",
        "
        100010 unknown
        101000 idle
        ",
    );
}

#[test]
fn h02_a_turn_of_a_session_that_began_and_ended_it_while_the_server_was_down() {
    // Every hook was lost; the end was written as the file turned idle.
    check(
        "
        99000  recovering
        100000 found
        100005 tx@59000 prompt unseen
        100005 tx@60000 end unseen
        100010 file idle since=60050
        101000 recovered
        120000 end
        ",
        "
        100010 unknown
        101000 review finished
        ",
    );
    // An end of long ago, as `--continue` finds it, is none of this session's.
    check(
        "
        99000  recovering
        100000 found
        100005 tx@50000 end unseen
        100010 file idle since=60050
        101000 recovered
        120000 end
        ",
        "
        100010 unknown
        101000 idle
        ",
    );
    // The transcript can't be read: the spool alone tells.
    check(
        "
        99000  recovering
        99500  unreadable-transcript
        100000 found
        100010 file idle since=60050
        100020 hook@59000 prompt
        100030 hook@60000 stop
        101000 recovered
        120000 end
        ",
        "
        100010 unknown
        101800 review finished
        ",
    );
}

#[test]
fn b06_h02_the_queued_turn_after_a_spooled_stop_was_interrupted() {
    // Stop of the first turn, then the queued one began and Esc ended it before a token.
    check(
        "
        99000  restored@50000 busy
        100000 found
        100005 tx@50100 enqueue unseen
        100005 tx@59990 end unseen
        100005 tx@60100 dequeue unseen
        100005 tx@60100 end unseen
        100005 tx@60100 prompt unseen
        100010 file idle since=64000
        100020 hook@60000 stop
        101000 recovered
        120000 end
        ",
        "
        100000 unknown
        101000 idle
        ",
    );
}

#[test]
fn r01_h07_the_hook_of_a_clear_while_the_server_was_down_comes_late() {
    check(
        "
        99000  restored@50000 review episode=4
        100000 found
        100010 file idle since=87330 conv=new
        101000 recovered
        101900 hook@87210 start clear conv=new
        120000 end
        ",
        "
        100000 review finished
        101900 idle
        101900 withdraw
        ",
    );
}

#[test]
fn c01_h02_what_a_compaction_hides_outlives_a_restart_in_the_middle_of_it() {
    // It is kept as long as nothing but the compaction is known …
    let mut world = run(&format!(
        "{REVIEW}
        9000 hook compact
        9050 file busy
        "
    ));
    assert_eq!(words(&world.item('A')), "busy compacting");
    assert!(matches!(world.kept[&'A'].badge, Badge::Review(_)));
    // … and no longer when it is inside a turn.
    world.line("9500 hook pre Bash id=1 ls");
    assert!(matches!(world.kept[&'A'].badge, Badge::Busy(_)));
    // The compaction ended while the server was down.
    check(
        "
        99000  restored@50000 review episode=4
        100000 found
        100005 tx@49950 end unseen
        100005 tx@62040 boundary unseen
        100010 file idle since=62050
        100020 hook@62000 start compact
        100030 hook@62010 compacted
        101000 recovered
        120000 end
        ",
        "100000 review finished",
    );
    // It ends after the start; the turn before it ended while the server was down.
    check(
        "
        99000  restored@18041 busy
        100000 found
        100005 tx@18210 end unseen
        100010 file busy since=27990
        100020 hook@18221 stop
        100020 hook@27982 compact
        101000 recovered
        102000 hook compacted
        102050 file idle
        120000 end
        ",
        "
        100000 unknown
        100010 busy
        100020 busy compacting
        102000 busy
        102050 review finished
        ",
    );
    // The same without a hook, and with an interrupt.
    for (line, badge) in [("end", "review finished"), ("interrupt", "idle")] {
        check(
            &format!(
                "
        99000  restored@18041 busy
        100000 found
        100005 tx@18210 {line} unseen
        100010 file busy since=27990
        100020 hook@27982 compact
        101000 recovered
        102000 hook compacted
        102050 file idle
        120000 end
        "
            ),
            &format!(
                "
        100000 unknown
        100010 busy
        100020 busy compacting
        102000 busy
        102050 {badge}
        "
            ),
        );
    }
    // Nothing happened before it.
    check(
        "
        99000  restored@18041 review episode=4
        100000 found
        100010 file busy since=27990
        100020 hook@27982 compact
        101000 recovered
        102000 hook compacted
        102050 file idle
        120000 end
        ",
        "
        100000 review finished
        100010 busy
        100010 withdraw
        100020 busy compacting
        102000 busy
        102050 review finished
        ",
    );
}

#[test]
fn h07_a_stop_long_after_a_spell_is_not_that_spell_s() {
    // A compaction; 18 s later a turn whose busy was never seen. Its Stop is here first.
    check(
        &format!(
            "{IDLE}
        1000 hook compact
        1050 file busy
        3000 hook compacted
        3050 file idle
        21000 hook stop
        21040 hook@20850 prompt
        21055 file idle since=21055
        30000 end
        "
        ),
        "
        500  idle
        1050 busy compacting
        3000 busy
        3050 idle
        21040 busy
        21055 review finished
        22255 notify
        ",
    );
}

/// A turn whose end nobody told and no transcript could tell: idle for want of evidence at 3500.
const WANTING: &str = "
        0    found pane=1
        500  file idle
        900  unreadable-transcript
        1000 hook prompt
        1050 file busy
        3000 file idle
";

#[test]
fn h02_h07_the_end_of_a_turn_is_looked_for_over_a_restart() {
    // Its Stop lay in the spool.
    check(
        &format!(
            "{WANTING}
        8000  restart
        8010  found pane=1
        8020  file idle
        8030  hook@2950 stop
        8200  recovered
        60000 end
        "
        ),
        "
        500  idle
        1000 busy
        3500 idle
        8000 none
        8010 unknown
        9820 review finished
        ",
    );
    // Nothing more is ever heard of it.
    let world = check(
        &format!(
            "{WANTING}
        8000  restart
        8010  found pane=1
        8020  file idle
        8200  recovered
        60000 end
        "
        ),
        "
        500  idle
        1000 busy
        3500 idle
        8000 none
        8010 unknown
        9820 idle
        ",
    );
    // Then it is over: a later restart finds it idle.
    assert_eq!(world.kept[&'A'].badge, Badge::Idle);
}

#[test]
fn h02_h07_what_ended_a_turn_before_it_was_met_comes_late() {
    let met = "
        9000  recovering
        9000  unreadable-transcript
        9010  found pane=1
        9020  file idle since=5000
        9200  recovered
    ";
    let met_and_idle = "
        9020  unknown
        10800 idle
    ";
    // The spool was slow.
    check(
        &format!(
            "{met}
        12000 hook@4950 stop
        60000 end
        "
        ),
        &format!("{met_and_idle} 12000 review finished"),
    );
    // The transcript could not be read at first.
    check(
        &format!(
            "{met}
        9300  tx@4000 prompt unseen
        9300  tx@4990 end unseen
        9500  readable-transcript
        60000 end
        "
        ),
        "9020 unknown\n 9600 review finished",
    );
    // Something newer has begun.
    check(
        &format!(
            "{met}
        11000 hook prompt
        11050 file busy
        12000 hook@4950 stop
        13000 file idle
        13000 tx interrupt
        60000 end
        "
        ),
        &format!(
            "{met_and_idle}
        11000 busy
        13500 idle (interrupted)
        "
        ),
    );
}

#[test]
fn h05_h09_what_was_heard_before_a_second_restart_is_not_lost() {
    // A version without a status: once taken in, its hooks never come again. Killed before the recovery was over.
    check(
        "
        0     found pane=1
        100   file none
        1000  hook start startup pane=1
        4000  hook prompt pane=1
        4100  hook pre Bash id=1 ls
        20000 restart
        20010 found pane=1
        20020 file none
        20030 hook@15000 pr Bash ls
        20100 restart
        20110 found pane=1
        20120 file none
        20300 recovered
        40000 end
        ",
        "
        3500  idle
        4000  busy
        20000 none
        20010 unknown
        20100 none
        20110 needs-input permission \"ls\"
        ",
    );
    // The same badge, but from a later moment: what was before it says nothing any more.
    check(
        "
        0     found pane=1
        100   file none
        1000  hook start startup pane=1
        20000 restart
        20010 found pane=1
        20020 file none
        20030 hook@15000 prompt
        20040 hook@16000 stop
        20050 hook@17000 start clear conv=c2
        20200 recovered
        40000 restart
        40010 found pane=1
        40020 file none
        40030 tx@15000 prompt
        40040 tx@16000 end
        40200 recovered
        50000 end
        ",
        "
        3500  idle
        20000 none
        20010 idle
        40000 none
        40010 idle
        ",
    );
}

#[test]
fn h11_what_the_file_said_while_it_could_not_be_read_is_not_known() {
    // It went busy within the second of a prompt, but was read later.
    check(
        "
        0    found pane=1
        500  file idle
        1000 hook prompt
        1300 torn
        2400 file@1290 busy
        5000 hook stop
        5060 file idle
        8000 end
        ",
        "
        500  idle
        1000 busy
        5060 review finished
        6260 notify
        ",
    );
    // A prompt that is long over does not come back with it.
    check(
        "
        0    found pane=1
        500  file idle
        1000 hook prompt
        9000 torn
        9500 file idle
        20000 end
        ",
        "
        500  idle
        1000 busy
        2000 idle
        ",
    );
    // It went busy within the half second after an end that nobody had told yet.
    check(
        "
        0    found pane=1
        500  file idle
        1000 hook prompt
        1050 file busy
        2000 file idle
        2050 torn
        2900 file@2040 busy
        4000 hook stop
        4060 file idle
        8000 end
        ",
        "
        500  idle
        1000 busy
        4060 review finished
        5260 notify
        ",
    );
}

#[test]
fn h06_h11_a_turn_between_two_words_of_the_file_ends_as_any_other() {
    let rested = "
        0    found pane=1
        500  file idle
    ";
    // No hook came: the transcript is asked.
    check(
        &format!(
            "{rested}
        3000 tx@2100 prompt unseen
        3000 tx@2900 end unseen
        3000 file idle since=3000
        8000 end
        "
        ),
        "
        500  idle
        3500 review finished
        4700 notify
        ",
    );
    // Its hooks are late.
    check(
        &format!(
            "{rested}
        3000 file idle since=3000
        6000 hook@2100 prompt
        7000 hook@2930 stop
        9000 end
        "
        ),
        "
        500  idle
        7000 review finished
        8200 notify
        ",
    );
    // A review stays if nothing is known to have happened, and is not told of twice.
    check(
        &format!(
            "{rested}
        1000 hook prompt
        1050 file busy
        2000 hook stop
        2060 file idle
        9000 file idle since=9000
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
fn q08_h11_a_dialog_of_a_turn_whose_beginning_the_file_did_not_tell() {
    for first in ["500 file idle", "500 file none"] {
        let world = check(
            &format!(
                "
        0    found pane=1
        {first}
        1000 hook prompt
        1300 hook pre Bash id=1 \"rm -rf /etc/lab\"
        1600 file@1350 menu since=1350
        9000 file busy
        9500 hook post Bash id=1 \"rm -rf /etc/lab\"
        9600 hook stop
        9660 file idle
        20000 end
        "
            ),
            if first.ends_with("idle") {
                "
        500  idle
        1000 busy
        1600 needs-input dialog \"rm -rf /etc/lab\"
        2800 notify
        9000 busy
        9000 withdraw
        9660 review finished
        10860 notify
        "
            } else {
                "
        1000 busy
        1600 needs-input dialog \"rm -rf /etc/lab\"
        2800 notify
        9000 busy
        9000 withdraw
        9660 review finished
        10860 notify
        "
            },
        );
        assert_eq!(words(&world.item('A')), "review finished");
    }
}

#[test]
fn h02_r01_what_followed_a_clear_while_the_server_was_down() {
    // The spool has the `/clear`; the hooks of the turn after it are late, and the transcript has its end.
    check(
        "
        0     found pane=1
        500   file idle
        9000  restart
        9010  found pane=1
        9020  file idle since=8900 conv=c2
        9030  hook@5000 bye clear
        9040  hook@5200 start clear conv=c2
        9050  tx@8700 prompt unseen
        9050  tx@8850 end unseen
        9200  recovered
        30000 end
        ",
        "
        500  idle
        9000 none
        9010 idle
        9020 unknown
        9400 review finished
        ",
    );
}

#[test]
fn q09_h02_a_menu_opened_after_a_start_is_the_person_s_own() {
    // A question was cut off without a trace while the server was down; nobody asks any more.
    check(
        "
        0     recovering
        90000 found
        90010 file@31000 idle
        90011 hook@30900 start resume
        90020 tx@20000 prompt
        90021 tx@20100 tool AskUserQuestion id=1 Which?
        90200 recovered
        98000 file menu
        120000 end
        ",
        "
        90010 unknown
        90200 idle
        ",
    );
}

#[test]
fn c03_h02_a_tool_that_was_cut_off_is_no_dialog_behind_a_menu() {
    // While the server was down: a plan was cut off, a compaction cancelled, a menu opened.
    check(
        "
        200   restored@100 idle
        10000 found
        10010 file@9100 menu
        10020 hook@1000 prompt
        10021 hook@5000 compact
        10030 tx@1100 prompt
        10031 tx@2000 tool ExitPlanMode id=2 steps
        10200 recovered
        20000 end
        ",
        "
        10000 idle
        10010 unknown
        10200 idle (ended without Stop)
        ",
    );
}

#[test]
fn r02_h05_what_was_written_before_a_clear_starts_no_turn_after_a_restart() {
    // Nothing but its SessionStart told of the `/clear`, and the row was idle before and after.
    check(
        "
        99000  found
        100000 file none
        100050 hook start startup
        104000 tx@103344 end
        104500 hook start clear
        120000 restart
        120001 found
        120002 file@100000 none
        120003 tx@103900 prompt
        120200 recovered
        140000 end
        ",
        "
        102550  idle
        120000  none
        120001  idle
        ",
    );
}

#[test]
fn h06_h11_a_turn_after_a_start_that_was_heard_ends_as_any_other() {
    // The file could not be read while it was busy; the SessionStart is older than the turn.
    check(
        "
        0    found
        100  file none
        210  file idle
        215  hook start startup
        260  torn
        1160 file@610 idle since=610
        3400 hook@520 stop
        9000 end
        ",
        "
        210   idle
        3400  review finished
        4600  notify
        ",
    );
}

#[test]
fn q09_h02_a_menu_over_a_tool_that_was_cut_off_is_the_person_s_own_after_a_second_restart_too() {
    check(
        "
        0      found
        500    file idle
        1000   restart
        75000  found
        75001  hook@66400 prompt
        75002  hook@68900 pre Bash ls id=t1
        75003  hook@69000 compact
        75004  tx@66470 prompt
        75005  tx@68900 tool Bash ls id=t1
        75006  file@74900 menu
        75200  recovered
        100000 restart
        105000 found
        105001 tx@66470 prompt
        105002 tx@68900 tool Bash ls id=t1
        105003 file@74900 menu
        105200 recovered
        140000 end
        ",
        "
        500   idle
        1000  none
        75000 idle
        75006 unknown
        75400 idle (ended without Stop)
        100000  none
        105000  idle
        ",
    );
}

#[test]
fn r01_h07_a_clear_after_a_turn_that_ended_while_the_server_was_down_is_told_late() {
    let down = "
        99000  restored@90000 idle
        100000 found
        100010 hook@91000 prompt
        100020 hook@92000 stop
        100030 file idle since=95000
        101000 recovered
        ";
    check(
        &format!("{down} 103000 hook@94900 start clear\n 140000 end"),
        "
        100000  idle
        100030  unknown
        101000  review finished
        103000  idle
        ",
    );
    // An earlier one, before the turn, says nothing about it.
    check(
        &format!("{down} 103000 hook@90500 start clear\n 140000 end"),
        "
        100000  idle
        100030  unknown
        101000  review finished
        ",
    );
}

#[test]
fn h11_b05_a_prompt_that_is_told_late_between_two_idles_makes_no_busy() {
    // The queued turn was not seen: its Stop is here before its prompt.
    check(
        &format!(
            "{IDLE}
        1000 hook prompt
        1050 file busy
        4500 tx enqueue
        5000 file idle
        5060 torn
        5240 hook stop
        5440 file@5290 idle since=5290
        5460 hook@5080 task
        12000 end
        "
        ),
        "
        500     idle
        1000    busy
        5460    review finished
        6660    notify
        ",
    );
}

#[test]
fn h06_h11_the_end_of_a_turn_under_a_menu_is_looked_for_when_its_prompt_comes_late() {
    // The file could not be read while it was busy; the person has opened a menu since, and the Stop is lost.
    check(
        &format!(
            "{IDLE}
        5000 torn
        5900 file@5800 menu
        6500 hook@5010 prompt
        6600 tx@5020 prompt unseen
        6601 tx@5700 end unseen
        20000 end
        "
        ),
        "
        500     idle
        7500    review finished
        8700    notify
        ",
    );
}

#[test]
fn h01_what_ends_after_a_start_is_told_also_before_all_witnesses_were_asked() {
    check(
        "
        99000  recovering
        100000 found
        100010 file busy since=99000
        100100 hook stop
        100150 file idle
        100200 recovered
        110000 end
        ",
        "
        100010  busy
        100150  review finished
        101350  notify
        ",
    );
}

#[test]
fn h02_what_a_process_asks_that_started_after_the_server_is_told_at_once() {
    check(
        "
        900  recovering
        1000 found
        2100 b: found
        2110 b: file idle since=2050
        2150 b: hook prompt
        2200 b: file busy
        2480 b: hook pr Bash ls
        2500 b: file permission
        9000 recovered
        9500 end
        ",
        "
        2110 b: idle
        2150 b: busy
        2500 b: needs-input permission \"ls\"
        3700 b: notify
        ",
    );
}

#[test]
fn c01_h02_what_was_done_before_a_compaction_that_a_restart_found() {
    // What was kept, what spool and transcript tell of the time up to the compaction, what rests after it.
    let cases = [
        // Nothing happened.
        ("idle", "", "idle"),
        ("review episode=4", "", "review finished"),
        ("busy", "", "idle"),
        ("needs-input", "", "idle"),
        // The turn ended; or another session was begun since.
        ("busy", "100020 hook@60000 stop", "review finished"),
        ("idle", "100020 hook@60000 stop", "review finished"),
        (
            "busy",
            "100020 hook@60000 stop\n 100021 hook@61000 start clear",
            "idle",
        ),
        // That Stop was followed by an interrupt, or by a queued prompt of which nothing more is known.
        (
            "busy",
            "100005 tx@60500 interrupt unseen\n 100020 hook@60000 stop",
            "idle",
        ),
        (
            "busy",
            "100005 tx@60500 prompt unseen\n 100020 hook@60000 stop",
            "idle",
        ),
        // Only the transcript tells: an end, a prompt, tools.
        ("idle", "100005 tx@60000 end unseen", "review finished"),
        ("idle", "100005 tx@60000 prompt unseen", "idle"),
        (
            "review episode=4",
            "100005 tx@60000 tool Bash ls id=t1 unseen",
            "idle",
        ),
        ("review episode=4", "100020 hook@60000 prompt", "idle"),
        // An end from before what was kept is known already.
        ("idle", "100005 tx@49000 end unseen", "idle"),
    ];
    for (kept, told, rests) in cases {
        let world = run(&format!(
            "
        99000  restored@50000 {kept}
        100000 found
        {told}
        100030 file busy since=90000
        100040 hook@89950 compact
        101000 recovered
        102000 hook compacted
        102050 file idle
        102600 end
        "
        ));
        assert_eq!(words(&world.item('A')), rests, "{kept}, {told}");
        let told: Vec<&String> = world
            .seen
            .iter()
            .filter(|l| l.ends_with("notify"))
            .collect();
        assert!(told.is_empty(), "found by recovery: {told:?}");
    }
}

#[test]
fn c01_h02_what_a_compaction_gives_back_waits_for_the_transcript_after_a_restart() {
    let found = "
        98000  restored@50000 busy
        98000  unreadable-transcript
        99000  tx@60000 end unseen
        100000 found
        100010 file busy since=99000
        100020 hook@98950 compact
        100200 recovered
        100500 hook compacted
        100550 file idle
        ";
    // It can't be read at first.
    check(
        &format!("{found} 101000 readable-transcript\n 140000 end"),
        "
        100000  unknown
        100010  busy
        100020  busy compacting
        100500  busy
        101150  review finished
        ",
    );
    // Nor within the time that a restart has.
    check(
        &format!("{found} 102000 readable-transcript\n 102100 end"),
        "
        100000  unknown
        100010  busy
        100020  busy compacting
        100500  busy
        101750  idle
        ",
    );
}

#[test]
fn h05_a_version_without_status_is_shown_two_seconds_after_a_start() {
    // The file is old, and says nothing; nothing was kept.
    check(
        "
        99000  recovering
        100000 found
        100010 file@90000 none
        100020 hook@90100 start startup
        100200 recovered
        110000 end
        ",
        "101700 idle",
    );
}
