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

#[test]
fn plain_turns() {
    none_fails("plain", "none", 1, 8000);
}

#[test]
fn plain_turns_with_hooks_late_lost_repeated_and_swapped() {
    none_fails("plain", "hooks", 100_001, 8000);
}

#[test]
fn processes_that_stop_and_die() {
    none_fails("plain,processes", "hooks,tear", 200_001, 8000);
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
