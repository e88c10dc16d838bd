//! Histories drawn by seed, played against the fleet: every invariant after every event, every badge right
//! on the way and in the end. What fails is printed with its script, made as small as it was cheap to make.

use purplemux_sim::trial::{self, Plan};

fn none_fails(scope: &str, adversary: &str, first: u64, histories: u64) {
    let plan = Plan {
        steps: 12,
        scope: scope.parse().expect("a scope"),
        knobs: adversary.parse().expect("knobs"),
    };
    for seed in first..first + histories {
        let case = trial::draw(seed, plan);
        if !trial::verdict(&case).is_empty() {
            panic!("{}", trial::told(seed, &trial::smaller(&case)));
        }
    }
}

/// Turns and tools; processes that stop, die and begin; commands; what is odd but was seen.
const MOST: &str = "plain,processes,commands,oddities";

#[test]
fn plain_turns() {
    none_fails("plain", "none", 1, 3000);
}

#[test]
fn hooks_late_lost_repeated_and_swapped() {
    none_fails(MOST, "hooks", 100_001, 6000);
}

#[test]
fn files_read_seldom_and_torn_and_transcripts_unreadable() {
    none_fails(MOST, "coalesce,tear,blind", 200_001, 5000);
}

#[test]
fn servers_that_start_anew() {
    none_fails(MOST, "restart", 300_001, 4000);
}

#[test]
fn clocks_that_are_set() {
    none_fails(MOST, "jump", 400_001, 2000);
}

#[test]
fn menus_of_the_person_s_own() {
    none_fails("plain,menus,oddities", "restart,tear", 500_001, 4000);
}

#[test]
fn a_seed_repeats_to_the_millisecond() {
    let plan = Plan {
        steps: 20,
        scope: "all".parse().expect("a scope"),
        knobs: "all".parse().expect("knobs"),
    };
    for seed in 0..50 {
        let first = trial::told(seed, &trial::draw(seed, plan));
        let again = trial::told(seed, &trial::draw(seed, plan));
        assert_eq!(first, again);
    }
}
