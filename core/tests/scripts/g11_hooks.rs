//! Hooks as installed: switched off from the start or in mid-session.

use crate::dsl::run;

/// Whether the row says that it has hooks, at the end of a script.
fn hooks(script: &str) -> bool {
    run(script).item('A').hooks
}

const WITH: &str = "
    0    found
    1000 file idle
    2000 hook prompt
    2050 file busy
    3000 hook stop
    3060 file idle
";

#[test]
fn k07_hooks_that_vanish_in_mid_session_are_missed_after_a_whole_turn() {
    assert!(hooks(WITH));
    let silent = format!("{WITH}\n 5000 file busy\n 6000 tx end\n 6060 file idle\n 7000 end");
    assert!(!hooks(&silent));
    // The end is written later than the file turns idle: review comes late, and says the same.
    assert!(!hooks(&format!(
        "{WITH}\n 5000 file busy\n 6060 file idle\n 8000 tx@6050 end\n 8100 end"
    )));
    // They are back.
    assert!(hooks(&format!("{silent}\n 8000 hook prompt")));
}

#[test]
fn k07_a_turn_that_was_interrupted_or_is_late_says_nothing_about_hooks() {
    // Esc in a `!command`: no hook would have fired.
    assert!(hooks(&format!(
        "{WITH}\n 5000 file busy\n 6000 tx interrupt\n 6060 file idle\n 7000 end"
    )));
    // The Stop is late, the prompt's hook was heard.
    assert!(hooks(&format!(
        "{WITH}\n 5000 hook prompt\n 5050 file busy\n 6000 tx end\n 6060 file idle\n 7000 end"
    )));
    // The turn goes on.
    assert!(hooks(&format!("{WITH}\n 5000 file busy\n 9000 end")));
}
