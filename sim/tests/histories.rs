//! Histories drawn by seed, played against the fleet: every invariant after every event, every badge right
//! on the way and in the end. What fails is printed with its script, made as small as it was cheap to make.

use std::ops::Range;

use purplemux_sim::trial::{self, Plan};

fn none_fails(scope: &str, adversary: Option<&str>, seeds: Range<u64>) {
    let plan = Plan {
        steps: 12,
        scope: scope.parse().expect("a scope"),
        knobs: adversary.map(|adversary| adversary.parse().expect("knobs")),
    };
    for seed in seeds {
        let case = trial::draw(seed, plan);
        if !trial::verdict(&case).is_empty() {
            let adversary = adversary.unwrap_or("turns");
            panic!(
                "make simulate SEED={seed} HISTORIES=1 SCOPE={scope} ADVERSARY={adversary}\n{}",
                trial::told(seed, &trial::smaller(&case))
            );
        }
    }
}

/// Turns and tools; processes that stop, die and begin; commands; what is odd but was seen; several panes.
const MOST: &str = "plain,processes,commands,oddities,panes";

#[test]
fn plain_turns() {
    none_fails("plain", Some("none"), 1..3001);
}

#[test]
fn hooks_late_lost_repeated_and_swapped() {
    none_fails(MOST, Some("hooks"), 100_000..105_000);
}

#[test]
fn files_read_seldom_and_torn_and_transcripts_unreadable() {
    none_fails(MOST, Some("coalesce,tear,blind,fail"), 200_000..204_000);
}

#[test]
fn servers_that_start_anew() {
    none_fails(MOST, Some("restart,hang"), 300_000..303_000);
}

#[test]
fn clocks_that_are_set() {
    none_fails(MOST, Some("jump"), 400_000..402_000);
}

#[test]
fn menus_of_the_person_s_own() {
    none_fails(
        "plain,menus,oddities",
        Some("restart,tear"),
        500_000..503_000,
    );
}

#[test]
fn headless_runs_in_the_shell_and_in_a_tool() {
    let scope = "plain,headless,nested,processes,panes";
    none_fails(scope, Some("hooks,coalesce,tear"), 600_000..603_000);
}

#[test]
fn sessions_that_go_on_in_the_background() {
    none_fails("plain,parking,processes", Some("hooks"), 1..3001);
}

#[test]
fn a_seed_repeats_to_the_millisecond() {
    let plan = Plan {
        steps: 20,
        scope: "all".parse().expect("a scope"),
        knobs: None,
    };
    for seed in 0..90 {
        let first = trial::told(seed, &trial::draw(seed, plan));
        let again = trial::told(seed, &trial::draw(seed, plan));
        assert_eq!(first, again);
    }
}
