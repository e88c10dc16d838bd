//! What is kept of what nobody claims yet, of repeats and of the dead: how long and how many.

use purplemux_core::witness::Process;
use purplemux_core::{AgentKey, Event, Time};

use crate::dsl::{World, check, host, key, run};
use crate::g1_plain::IDLE;

/// An agent that is none of the letters'.
fn stranger(pid: u32) -> AgentKey {
    AgentKey {
        host: host(),
        pid: 100_000 + pid,
        start: 1,
    }
}

#[test]
fn what_was_said_before_the_process_was_found_counts_for_a_minute() {
    // The file and the hook came first; the process is found a minute later, but no later than that.
    check("0 file idle\n 60000 found", "60000 idle");
    check("0 file idle\n 60001 found\n 60002 end", "");
    check(
        "0 file idle\n 100 hook prompt\n 150 file busy\n 400 found\n 900 end",
        "400 busy",
    );
    // Newer words do not make the older ones last.
    check(
        "0 file idle\n 60001 hook note auth_success\n 60002 found",
        "",
    );
}

#[test]
fn n10_a_hook_of_a_conversation_waits_for_whom_it_concerns() {
    check(
        "
        0   found
        250 file none
        500 file idle conv=c1
        900 hook prompt anonymous conv=c2
        950 file idle conv=c2
        ",
        "
        500 idle
        950 busy
        ",
    );
}

#[test]
fn a_thousand_words_wait_and_the_oldest_goes_first() {
    let waits = |others: u32| {
        let mut world = World::new();
        world.step(Event::RecoveryEnded);
        world.line("0 file idle");
        for pid in 0..others {
            world.step(Event::KeyFileSeen {
                agent: stranger(pid),
            });
        }
        world.line("10 found");
        !world.seen.is_empty()
    };
    assert!(waits(999));
    assert!(!waits(1_000));
}

#[test]
fn a_hook_that_comes_twice_is_heard_once() {
    let said = |script: String| run(&script).fleet.explain(&key('A')).len();
    let once = said(format!("{IDLE}\n 1000 hook note auth_success hid=1"));
    let twice =
        format!("{IDLE}\n 1000 hook note auth_success hid=1\n 1500 hook note auth_success hid=1");
    assert_eq!(said(twice), once);
    let two =
        format!("{IDLE}\n 1000 hook note auth_success hid=1\n 1500 hook note auth_success hid=2");
    assert_eq!(said(two), once + 1);
    // 4,096 ids are known: one that is older than that would be heard again.
    let repeated = |others: u32| {
        let mut world = run(&format!(
            "{IDLE}\n 1000 hook prompt hid=first\n 2000 hook stop hid=x"
        ));
        for n in 1..others {
            world.line(&format!("3000 B: hook note auth_success hid={n}"));
        }
        let before = world.fleet.explain(&key('A')).len();
        world.line("3000 hook note auth_success hid=first");
        world.fleet.explain(&key('A')).len() - before
    };
    assert_eq!(repeated(4_095), 0);
    assert_eq!(repeated(4_096), 1);
}

#[test]
fn nothing_brings_back_the_dead() {
    for late in ["found", "file idle", "key", "hook prompt", "suspended"] {
        check(
            &format!("{IDLE}\n 1000 died\n 1100 {late}\n 1200 found\n 9000 end"),
            "500 idle\n 1000 none",
        );
    }
    // 1,024 of them are known.
    let comes_back = |others: u32| {
        let mut world = run(&format!("{IDLE}\n 1000 died"));
        for pid in 0..others {
            world.step(Event::ProcessDied {
                agent: stranger(pid),
            });
            // Dead twice is dead once.
            world.step(Event::ProcessDied {
                agent: stranger(pid),
            });
        }
        world.line("2000 found");
        world.line("2100 file idle");
        world.seen.len() > 2
    };
    assert!(!comes_back(1_023));
    assert!(comes_back(1_024));
}

#[test]
fn another_machines_agent_is_none_of_ours() {
    let mut world = World::new();
    world.step(Event::RecoveryEnded);
    let theirs = AgentKey {
        host: "there".into(),
        ..stranger(1)
    };
    world.step(Event::KeyFileSeen {
        agent: theirs.clone(),
    });
    world.step(Event::ProcessFound {
        agent: theirs,
        process: Process {
            pane: None,
            parent_agent: None,
            cwd: None,
            hooks: None,
        },
    });
    assert!(world.fleet.items().is_empty());
}

#[test]
fn long_busy_are_those_busy_for_more_than_ten_minutes() {
    let long = |until: u64| {
        let world = run(&format!(
            "{IDLE}\n 1000 hook prompt\n 1050 file busy\n {until} end"
        ));
        world.fleet.long_busy(Time::from_ms(until))
    };
    assert!(long(601_000).is_empty());
    assert_eq!(long(601_001), [key('A')]);
    let idle = run(&format!("{IDLE}\n 900000 end"));
    assert!(idle.fleet.long_busy(Time::from_ms(900_000)).is_empty());
}
