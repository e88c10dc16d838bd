//! The safety net: when it looks, and how little it decides.

use std::time::Duration;

use purplemux_core::net;

use crate::dsl::{check, run, words};
use crate::g1_plain::{IDLE, REVIEW, REVIEW_SEEN};

#[test]
fn y01_the_net_looks_less_often_the_more_tabs_there_are() {
    let seconds = |tabs| net::interval(tabs).as_secs();
    let tabs = [0, 1, 10, 11, 20, 21, 500];
    assert_eq!(tabs.map(seconds), [30, 30, 30, 45, 45, 60, 60]);
    assert_eq!(net::STUCK_AFTER, Duration::from_secs(600));
}

#[test]
fn y03_busy_for_ten_minutes_with_a_dead_process() {
    // Its end was seen by nobody: none, and nobody is told.
    let stuck = format!("{IDLE}\n 1000 hook prompt\n 1050 file busy\n");
    let seen = "500 idle\n 1000 busy\n";
    check(
        &format!("{stuck} 601001 missed\n 700000 end"),
        &format!("{seen} 601001 none\n"),
    );
    // The same with a process that lives: the net has nothing to say, and no time ends busy.
    check(&format!("{stuck} 6000000 end"), seen);
    // Ten minutes and not a moment more: it is still its witness's business.
    check(
        &format!("{stuck} 31000 missed\n 601000 missed\n 700000 end"),
        seen,
    );
}

#[test]
fn y03_a_stuck_agent_that_was_put_right_stays_so() {
    let world = run(&format!(
        "{IDLE}\n 1000 hook prompt\n 1050 file busy\n 700000 missed\n 700010 file busy\n 700020 hook stop\n 710000 end"
    ));
    assert_eq!(world.seen.last().map(String::as_str), Some("700000 none"));
}

#[test]
fn y05_the_net_alone_decides_nothing_else() {
    // Whatever else is shown, for however long: not the net's business.
    for (script, seen) in [
        (IDLE.to_owned(), "500 idle\n".to_owned()),
        (REVIEW.to_owned(), REVIEW_SEEN.to_owned()),
        (
            format!("{IDLE}\n 1000 hook prompt\n 1050 file busy\n 2000 file permission\n"),
            "500 idle\n 1000 busy\n 2000 needs-input permission\n 3200 notify\n".to_owned(),
        ),
    ] {
        check(
            &format!("{script}\n 30000 missed\n 60000 missed\n 6000000 missed\n 7000000 end"),
            &seen,
        );
    }
    let world = run(&format!(
        "{IDLE}\n 1000 hook prompt\n 1050 file busy\n 1500 suspended\n 300000 missed\n 590000 end"
    ));
    assert_eq!(words(&world.item('A')), "busy suspended");
}
