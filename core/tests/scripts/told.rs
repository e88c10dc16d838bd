//! What no badge shows: what is watched, whom nobody is told of, and what is kept over a restart.

use purplemux_core::Badge;
use purplemux_core::view::Source;

use crate::dsl::{World, check, key, run};
use crate::g1_plain::{IDLE, REVIEW, REVIEW_SEEN};

/// What was asked of the server in this script.
fn asked(script: &str) -> Vec<String> {
    run(script).asked
}

#[test]
fn the_transcript_is_watched_while_it_can_tell_something() {
    let busy = format!("{IDLE}\n 1000 hook prompt\n 1050 file busy\n");
    assert_eq!(
        asked(&busy).last().map(String::as_str),
        Some("1000 transcript on")
    );
    let watched = |script: &str| -> Vec<String> {
        let all = asked(script).into_iter();
        all.filter(|line| line.contains("transcript")).collect()
    };
    // Through the dialog and the review, until it was read.
    let course = format!(
        "{busy}
        1480 hook pr Bash ls
        1500 file permission
        5000 file busy
        6000 hook stop
        6060 file idle
        60000 seen
        90000 end
        "
    );
    assert_eq!(
        watched(&course),
        ["1000 transcript on", "60000 transcript off"]
    );
    // Unknown after a restart.
    let unknown = "1000 restored@500 busy\n 1000 found";
    assert_eq!(watched(unknown), ["1000 transcript on"]);
    // Idle without a status and without hooks: nobody else could tell of a turn.
    let alone = "0 found\n 60 key\n 250 file none\n 9000 end";
    assert_eq!(watched(alone).len(), 1, "{:?}", run(alone).seen);
    let hooked = "0 found\n 60 key\n 200 hook start startup\n 250 file none\n 9000 end";
    assert!(watched(hooked).is_empty());
}

#[test]
fn d06_the_process_is_watched_between_its_key_and_its_first_word() {
    let cpu = |script: &str| -> Vec<String> {
        let all = asked(script).into_iter();
        all.filter(|line| line.contains("cpu")).collect()
    };
    assert!(cpu("0 found\n 50 end").is_empty());
    let key = "0 found\n 60 key";
    assert_eq!(cpu(key), ["60 cpu on"]);
    for word in ["file none", "file idle", "hook start startup"] {
        let heard = format!("{key}\n 250 {word}");
        assert_eq!(cpu(&heard), ["60 cpu on", "250 cpu off"], "{word}");
    }
    // A start-up dialog is shown: nothing more is to be found out.
    let shown = format!("{key}\n 9000 end");
    let lines = cpu(&shown);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].ends_with("cpu off"));
}

#[test]
fn d01_who_ended_is_watched_and_kept_no_more() {
    let busy = format!("{IDLE}\n 1000 hook prompt\n 1050 file busy\n 2000 died");
    let world = run(&busy);
    assert_eq!(
        world.asked[world.asked.len() - 2..],
        ["2000 transcript off", "2000 forget"]
    );
    assert!(world.kept.is_empty());
    assert_eq!(
        asked("0 found\n 60 key\n 1000 died"),
        ["60 cpu on", "1000 cpu off", "1000 forget"]
    );
    let idle = format!("{IDLE}\n 2000 died");
    let all = asked(&idle);
    assert_eq!(all.last().map(String::as_str), Some("2000 forget"));
    assert!(!all.iter().any(|line| line.contains("transcript")));
}

/// What is kept of `A` after this script: its badge and since when.
fn kept(world: &World) -> Option<(Badge, u64)> {
    let kept = world.kept.get(&'A')?;
    Some((kept.badge.clone(), kept.since.boot.as_ms()))
}

#[test]
fn what_is_kept_is_the_badge_and_its_moment() {
    assert_eq!(kept(&run(IDLE)), Some((Badge::Idle, 500)));
    let busy = format!("{IDLE}\n 1000 hook prompt\n 1050 file busy\n");
    let world = run(&busy);
    assert!(matches!(kept(&world), Some((Badge::Busy(_), 1_000))));
    assert!(world.kept[&'A'].episode.is_none());
    let world = run(REVIEW);
    assert!(matches!(kept(&world), Some((Badge::Review(_), _))));
    assert_eq!(world.kept[&'A'].episode, world.item('A').episode);
    assert!(world.item('A').episode.is_some());
}

#[test]
fn q11_the_ask_that_is_kept_is_the_one_on_the_card() {
    let world = run(&format!(
        "{IDLE}
        1000 hook prompt
        1050 file busy
        1500 file permission
        1550 hook pr Bash \"touch a.txt\"
        "
    ));
    let Some((Badge::NeedsInput(ask), 1_500)) = kept(&world) else {
        panic!("{:?}", world.kept);
    };
    assert_eq!(ask.text.as_deref(), Some("touch a.txt"));
}

#[test]
fn not_now_is_heard_once_and_only_for_its_episode() {
    let asked = format!("{IDLE}\n 1000 hook prompt\n 1050 file busy\n 1500 file permission\n");
    let seen = "500 idle\n 1000 busy\n 1500 needs-input permission\n";
    // Before anybody was told: nobody is.
    check(&format!("{asked} 2000 dismissed\n 9000 end"), seen);
    check(
        &format!("{asked} 5000 dismissed\n 5100 dismissed\n 9000 end"),
        &format!("{seen} 2700 notify\n 5000 withdraw"),
    );
    // Another episode's, and one that was read: a dialog can't be.
    check(
        &format!("{asked} 2000 dismissed episode=99\n 2100 seen\n 9000 end"),
        &format!("{seen} 2700 notify"),
    );
}

#[test]
fn c01_h09_what_a_compaction_hides_is_kept_and_what_a_turn_hides_is_not() {
    let review = |script: &str| {
        let world = run(&format!("{REVIEW}\n{script}"));
        match kept(&world) {
            Some((Badge::Review(_), 2_060)) => true,
            Some((Badge::Busy(_), _)) => false,
            other => panic!("{other:?} {:?}", world.seen),
        }
    };
    // While the file stays idle: a PreCompact, and a prompt.
    assert!(review("20000 hook compact\n 20100 end"));
    assert!(!review("20000 hook prompt\n 20100 end"));
    // While the file is busy.
    assert!(review("20000 hook compact\n 20050 file busy\n 20100 end"));
    assert!(!review("20000 hook prompt\n 20050 file busy\n 20100 end"));
    // While the end of a turn is looked for.
    assert!(!review(
        "20000 hook prompt\n 20050 file busy\n 20600 file idle\n 20610 end"
    ));
}

#[test]
fn q14_without_a_status_the_episode_is_kept_with_its_badge() {
    let turn = "
        0    found
        100  file none
        1000 hook start startup
        4000 hook prompt
        4100 hook pre Bash id=1 ls
    ";
    for end in ["5000 hook stop", "5000 hook pr Bash ls"] {
        let world = run(&format!("{turn}\n {end}\n 9000 end"));
        assert!(world.item('A').episode.is_some());
        assert_eq!(world.kept[&'A'].episode, world.item('A').episode);
        assert_eq!(world.kept[&'A'].since, world.item('A').since);
    }
}

#[test]
fn r08_what_was_told_of_a_parked_session_is_taken_back() {
    check(
        &format!("{REVIEW}\n 9000 file idle parked=j1\n 20000 end"),
        &format!("{REVIEW_SEEN}\n 9000 withdraw"),
    );
}

#[test]
fn p09_looking_at_a_dialog_does_not_clear_it() {
    let asked = format!("{IDLE}\n 1000 hook prompt\n 1050 file busy\n 1500 file permission\n");
    let told = "0 found\n 100 file none\n 1000 hook start startup\n 4000 hook prompt\n 4500 hook pr Bash ls\n";
    for script in [asked.as_str(), told] {
        let world = run(&format!("{script} 7000 seen\n 9000 end"));
        assert!(matches!(kept(&world), Some((Badge::NeedsInput(_), _))));
        assert!(matches!(world.item('A').badge, Some(Badge::NeedsInput(_))));
        let said = world.fleet.explain(&key('A'));
        assert!(said.iter().all(|line| line.source != Source::Person));
    }
}
