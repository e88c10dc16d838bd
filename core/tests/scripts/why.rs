//! "Why this state": which word decided, what is kept and what goes first.

use purplemux_core::view::{Evidence, Says, Source};
use purplemux_core::{Badge, Time};

use crate::dsl::{key, run};
use crate::g1_plain::{IDLE, REVIEW};

/// All that was said of `A` in this script, newest first.
fn said(script: &str) -> Vec<Evidence> {
    run(script).fleet.explain(&key('A'))
}

/// Who said the word that decided, what it said about the badge, and when; no two may have decided.
fn decided(script: &str) -> (Source, Option<Says>, u64) {
    let said = said(script);
    let mut deciding = said.iter().filter(|line| line.decided);
    let line = deciding.next().expect("one word decided");
    assert!(deciding.next().is_none(), "two words decided: {said:?}");
    (line.source, line.says, line.at.boot.as_ms())
}

#[test]
fn the_newest_word_for_the_badge_decided() {
    let busy = format!("{IDLE} 1000 hook prompt");
    assert_eq!(decided(IDLE), (Source::File, Some(Says::Idle), 500));
    assert_eq!(decided(&busy), (Source::Hook, Some(Says::Busy), 1_000));
    // What comes later without another badge does not decide it again.
    let file = format!("{busy}\n 1050 file busy");
    assert_eq!(decided(&file), (Source::Hook, Some(Says::Busy), 1_000));
    let asked = format!("{file}\n 1480 hook pr Bash ls\n 1500 file permission");
    assert_eq!(
        decided(&asked),
        (Source::File, Some(Says::NeedsInput), 1_500)
    );
    let ended = format!("{file}\n 2000 hook stop\n 2060 file idle");
    assert_eq!(decided(&ended), (Source::Hook, Some(Says::Review), 2_000));
    // Without a word that is just this badge's, the newest that fits it.
    let menu = format!("{file}\n 1300 hook pre Bash id=1 ls\n 1500 file menu");
    assert_eq!(decided(&menu).1, Some(Says::NeedsInput));
    let marker = format!("{file}\n 2000 tx interrupt\n 2060 file idle\n 9000 end");
    assert_eq!(decided(&marker).1, Some(Says::Idle));
    // Not whatever was said last.
    let silent = format!("{file}\n 2000 file idle\n 2100 hook note auth_success\n 9000 end");
    assert_eq!(decided(&silent), (Source::File, Some(Says::Idle), 2_000));
}

#[test]
fn p09_that_it_was_read_decided() {
    let read = format!("{REVIEW}\n 60000 seen");
    assert_eq!(decided(&read), (Source::Person, None, 60_000));
}

#[test]
fn of_unknown_the_restart_decided() {
    let script = "
        2000 restored@1000 busy
        2000 found
        ";
    assert_eq!(decided(script), (Source::Restart, None, 1_000));
    let then = format!("{script} 2010 file busy since=900");
    assert_eq!(decided(&then), (Source::File, Some(Says::Busy), 900));
}

#[test]
fn what_decided_and_each_witness_s_newest_word_outlast_all_else() {
    let mut script = format!("{IDLE}\n 1000 hook prompt\n 1050 file busy\n 1100 tx prompt\n");
    for n in 0..400 {
        script += &format!("{} hook note auth_success\n", 2_000 + n);
    }
    let said = said(&script);
    assert_eq!(said.len(), 200);
    let words: Vec<(Source, Says)> = said
        .iter()
        .filter_map(|line| Some((line.source, line.says?)))
        .collect();
    // Of the file's words the older one went, and of all that says nothing the oldest.
    assert_eq!(
        words,
        [
            (Source::Transcript, Says::Busy),
            (Source::File, Says::Busy),
            (Source::Hook, Says::Busy),
        ]
    );
    assert!(
        said.iter()
            .any(|line| line.decided && line.source == Source::Hook)
    );
    let newest: Vec<Time> = said.iter().take(197).map(|line| line.at.boot).collect();
    let expected: Vec<Time> = (0..197).map(|n| Time::from_ms(2_399 - n)).collect();
    assert_eq!(newest, expected);
}

#[test]
fn two_hundred_words_are_kept() {
    let mut script = IDLE.to_owned();
    let before = said(&script).len();
    for n in before..200 {
        script += &format!("\n{} hook note auth_success", 2_000 + n);
    }
    let all = said(&script);
    assert_eq!(all.len(), 200);
    script += "\n9000 hook note auth_success";
    let then = said(&script);
    assert_eq!(then.len(), 200);
    assert_eq!(then[1..], all[..199]);
}

#[test]
fn the_badges_so_far_newest_first() {
    let mut script = format!("{IDLE}\n");
    for n in 1..=4_u64 {
        let from = n * 10_000;
        script += &format!("{from} hook prompt\n{} file busy\n", from + 50);
        script += &format!("{} hook stop\n{} file idle\n", from + 500, from + 560);
    }
    let history = run(&script).fleet.history(&key('A'));
    let shown: Vec<(u64, bool)> = history
        .iter()
        .map(|(since, badge)| (since.boot.as_ms(), matches!(badge, Some(Badge::Review(_)))))
        .collect();
    let (busy, review) = (false, true);
    assert_eq!(
        shown,
        [
            (40_560, review),
            (40_000, busy),
            (30_560, review),
            (30_000, busy),
            (20_560, review),
            (20_000, busy),
        ]
    );
}

#[test]
fn claude_s_own_words_stand_in_the_evidence() {
    let lines = |script: &str| -> Vec<String> {
        let said = said(script).into_iter();
        said.map(|evidence| evidence.line.to_string()).collect()
    };
    for source in ["startup", "resume", "clear", "compact", "fork", "teleport"] {
        let all = lines(&format!("0 found\n 200 hook start {source}"));
        assert!(all.contains(&format!("SessionStart · {source}")), "{all:?}");
    }
    for (status, word) in [
        ("permission", "permission prompt"),
        ("input", "input needed"),
        ("menu", "dialog open"),
        ("worker", "worker request"),
    ] {
        let all = lines(&format!("{IDLE}\n 1050 file busy\n 1500 file {status}"));
        assert!(all.contains(&format!("waiting · {word}")), "{all:?}");
    }
}

#[test]
fn d06_of_what_nobody_said_the_newest_word_decided() {
    // A start-up dialog has no word of its own.
    assert_eq!(
        decided("0 found\n 60 key\n 9000 end"),
        (Source::File, None, 60)
    );
}

#[test]
fn c01_that_a_session_goes_on_after_a_compaction_says_nothing() {
    for (source, says) in [("startup", Some(Says::Idle)), ("compact", None)] {
        let said = said(&format!("0 found\n 200 hook start {source}"));
        let hook = said.iter().find(|line| line.source == Source::Hook);
        assert_eq!(hook.expect("it was heard").says, says, "{source}");
    }
}
