//! Who is who: tabs, panes, nested agents, rows and their titles.

use purplemux_core::event::{PaneFacts, Persisted, TabFacts, WorkspaceFacts};
use purplemux_core::view::{Doing, Outcome, Presence};
use purplemux_core::{Badge, EpisodeId, Event, TabId, WorkspaceId};

use crate::dsl::{World, at, check, key, pane, words};

fn pane_facts(number: u32, session: &str) -> PaneFacts {
    PaneFacts {
        pane: pane(number),
        session: session.into(),
        command: "bash".into(),
        path: "/home/dev/proj".into(),
        title: "dev".into(),
        dead: false,
    }
}

fn tab(id: &str, name: Option<&str>) -> TabFacts {
    TabFacts {
        id: TabId::from(id),
        name: name.map(Into::into),
        cwd: "/home/dev/proj".into(),
        ended: false,
    }
}

/// Two tabs in one workspace: `t1` with pane 1, `t2` with pane 2.
fn two_tabs() -> World {
    let mut world = World::new();
    world.step(Event::RecoveryEnded);
    world.step(Event::LayoutChanged {
        workspaces: vec![WorkspaceFacts {
            id: WorkspaceId::from("w"),
            name: "work".into(),
            dir: "/home/dev".into(),
            tabs: vec![tab("t1", None), tab("t2", Some("deploy"))],
        }],
    });
    world.step(Event::PanesListed {
        panes: vec![pane_facts(1, "t1"), pane_facts(2, "t2")],
    });
    world
}

fn play(world: &mut World, script: &str) {
    for line in script.lines().map(str::trim).filter(|l| !l.is_empty()) {
        world.line(line);
    }
}

#[test]
fn n01_two_agents_in_one_directory() {
    check(
        "
        0    found pane=1 cwd=/p
        0    B: found pane=2 cwd=/p
        500  file idle
        500  B: file idle
        1000 hook prompt pane=1
        1050 file busy
        2000 hook stop pane=1
        2060 file idle
        9000 end
        ",
        "
        500  idle
        500  B: idle
        1000 busy
        2060 review finished
        3260 notify
        ",
    );
}

#[test]
fn n02_a_nested_agent_never_moves_its_parent() {
    let nested = |anonymous: &str| {
        check(
            &format!(
                "
            0    found pane=1
            500  file idle
            1000 hook prompt pane=1
            1050 file busy
            2000 B: found pane=1 parent=A
            2100 B: hook start startup pane=1 {anonymous}
            2200 B: file idle kind=headless
            2210 B: hook prompt pane=1 {anonymous}
            2220 B: file busy
            2600 B: hook stop pane=1 {anonymous}
            2650 B: file idle
            2700 B: removed
            2710 B: hook bye other pane=1 {anonymous}
            2800 B: died
            5000 hook stop pane=1
            5060 file idle
            9000 end
            "
            ),
            "
            500  idle
            1000 busy
            5060 review finished
            6260 notify
            ",
        );
    };
    nested("");
    // An old version: its hooks name no process, and its environment is its parent's.
    nested("anonymous");
}

#[test]
fn n03_badge_follows_the_pane_not_the_active_one() {
    let mut world = two_tabs();
    play(
        &mut world,
        "
        0   found pane=2
        500 file idle
    ",
    );
    let items = world.fleet.items();
    assert_eq!(items.len(), 2);
    assert_eq!((&*items[0].id, items[0].badge.is_none()), ("t1", true));
    assert_eq!((&*items[1].id, &items[1].badge), ("t2", &Some(Badge::Idle)));
    assert_eq!(items[1].agent, Some(key('A')));
    // A second agent of the same tab has a row of its own.
    play(
        &mut world,
        "
        600 B: found pane=3
        900 B: file idle
    ",
    );
    world.step(Event::PanesListed {
        panes: vec![
            pane_facts(1, "t1"),
            pane_facts(2, "t2"),
            pane_facts(3, "t2"),
        ],
    });
    let items = world.fleet.items();
    assert_eq!(items.len(), 3);
    assert_eq!(&*items[2].id, key('B').to_string());
    assert_eq!(items[2].tab, Some(TabId::from("t2")));
}

#[test]
fn n04_the_pane_moves_to_another_session() {
    let mut world = two_tabs();
    play(
        &mut world,
        "
        0   found pane=1
        500 file idle
    ",
    );
    assert_eq!(world.item('A').tab, Some(TabId::from("t1")));
    world.step(Event::PanesListed {
        panes: vec![pane_facts(1, "t2"), pane_facts(2, "t2")],
    });
    assert_eq!(world.item('A').tab, Some(TabId::from("t2")));
    // A pane that is in no tab of ours still has its row.
    world.step(Event::PanesListed {
        panes: vec![pane_facts(1, "elsewhere"), pane_facts(2, "t2")],
    });
    assert_eq!(world.item('A').tab, None);
    assert_eq!(words(&world.item('A')), "idle");
}

#[test]
fn n05_same_pane_number_on_another_server() {
    let mut world = two_tabs();
    let mut stranger = pane(1);
    stranger.server.pid = 77;
    world.step(Event::ProcessFound {
        agent: key('A'),
        process: purplemux_core::witness::Process {
            pane: Some(stranger),
            parent_agent: None,
            cwd: None,
            hooks: None,
        },
    });
    play(&mut world, "500 file idle");
    assert_eq!(world.item('A').tab, None);
    assert!(world.fleet.items()[0].agent.is_none());
}

#[test]
fn n06_the_stored_pane_is_a_strangers_now() {
    let mut world = two_tabs();
    play(
        &mut world,
        "
        0    found pane=1
        500  file idle
        1000 died
    ",
    );
    let items = world.fleet.items();
    assert!(items.iter().all(|i| i.badge.is_none() && i.agent.is_none()));
    assert_eq!(items[0].presence, Presence::Gone);
}

#[test]
fn n07_directory_follows_cwd_changed() {
    let mut world = two_tabs();
    play(
        &mut world,
        "
        0    found pane=1
        500  file idle
        1000 hook prompt in=/p
        1050 file busy
        1200 hook cwd /p/sub in=/p/sub
    ",
    );
    assert_eq!(world.item('A').cwd.as_deref(), Some("/p/sub"));
    assert_eq!(words(&world.item('A')), "busy");
}

#[test]
fn n10_a_hook_without_pid() {
    // By pane, by conversation; never another tab's.
    check(
        "
        0    found pane=1
        0    B: found pane=2
        500  file idle
        500  B: file idle
        1000 hook prompt anonymous pane=1
        1050 file busy
        2000 hook stop anonymous
        2060 file idle
        3000 hook prompt anonymous conv=strange pane=2
        9000 end
        ",
        "
        500  idle
        500  B: idle
        1000 busy
        2060 review finished
        3260 notify
        ",
    );
    // The minimal body: a pane, and nothing else.
    check(
        "
        0    found pane=1
        500  file idle
        1000 hook prompt
        1050 file busy
        2000 hook stop anonymous conv=- pane=1
        2060 file idle
        9000 end
        ",
        "
        500  idle
        1000 busy
        2060 review finished
        3260 notify
        ",
    );
}

#[test]
fn rows_are_named_by_tab_then_conversation_then_place() {
    let mut world = two_tabs();
    let titles = |world: &World| -> Vec<String> {
        world
            .fleet
            .items()
            .iter()
            .map(|i| i.title.to_string())
            .collect()
    };
    assert_eq!(titles(&world), ["bash · proj", "deploy"]);
    play(
        &mut world,
        "
        0    found pane=1
        0    B: found pane=2
        500  file idle
        500  B: file idle
        1000 hook prompt \"make the tests green\"
    ",
    );
    assert_eq!(titles(&world), ["make the tests green", "deploy"]);
    play(&mut world, "2000 tx title \"Green tests\"");
    assert_eq!(titles(&world), ["Green tests", "deploy"]);
}

#[test]
fn roll_up_shows_the_most_urgent() {
    let mut world = two_tabs();
    let badge = |world: &World| world.fleet.workspaces()[0].badge.clone();
    assert_eq!(badge(&world), None);
    play(
        &mut world,
        "
        0    found pane=1
        0    B: found pane=2
        500  file idle
        500  B: file idle
    ",
    );
    assert_eq!(badge(&world), Some(Badge::Idle));
    play(
        &mut world,
        "
        1000 hook prompt
        1050 file busy
    ",
    );
    assert!(matches!(badge(&world), Some(Badge::Busy(_))));
    play(
        &mut world,
        "
        2000 B: hook prompt
        2050 B: file busy
        2100 B: hook stop
        2150 B: file idle
    ",
    );
    assert!(matches!(badge(&world), Some(Badge::Review(_))));
    play(&mut world, "3000 file permission");
    assert!(matches!(badge(&world), Some(Badge::NeedsInput(_))));
    // Suspended counts as idle.
    play(&mut world, "4000 suspended");
    assert!(matches!(badge(&world), Some(Badge::Review(_))));
}

#[test]
fn h01_a_tab_shows_what_was_kept_until_its_agent_is_looked_for() {
    let kept = |badge: Badge, tab: &str, episode| Persisted {
        badge,
        since: at(500),
        episode,
        tab: Some(TabId::from(tab)),
    };
    let finished = Outcome {
        error: None,
        shells: 0,
        wakes_at_ms: None,
    };
    let mut world = World::new();
    world.now = 9000;
    for (agent, persisted) in [
        ('A', kept(Badge::Busy(Doing::default()), "t1", None)),
        (
            'B',
            kept(Badge::Review(finished.clone()), "t2", Some(EpisodeId(7))),
        ),
    ] {
        world.step(Event::Restored {
            agent: key(agent),
            persisted,
        });
    }
    world.step(Event::LayoutChanged {
        workspaces: vec![WorkspaceFacts {
            id: WorkspaceId::from("w"),
            name: "work".into(),
            dir: "/home/dev".into(),
            tabs: vec![tab("t1", None), tab("t2", Some("deploy"))],
        }],
    });
    let shown = |world: &World| -> Vec<(String, Option<Badge>, bool)> {
        let items = world.fleet.items().into_iter();
        items
            .map(|item| (item.id.to_string(), item.badge, item.attention))
            .collect()
    };
    let before = shown(&world);
    assert_eq!(
        before,
        [
            ("t1".to_owned(), Some(Badge::Unknown), false),
            ("t2".to_owned(), Some(Badge::Review(finished)), true),
        ]
    );
    assert_eq!(world.fleet.items()[1].since, at(500), "its old age");
    // Found before tmux has listed its panes: still where they were.
    play(
        &mut world,
        "9010 found pane=1 cwd=/p\n9020 B: found pane=2 cwd=/p",
    );
    assert_eq!(shown(&world), before);
    world.step(Event::PanesListed {
        panes: vec![pane_facts(1, "t1"), pane_facts(2, "t2")],
    });
    assert_eq!(shown(&world), before);
    // One that is not found is gone with the recovery at the latest.
    let mut world = World::new();
    world.step(Event::Restored {
        agent: key('A'),
        persisted: kept(Badge::Idle, "t1", None),
    });
    world.step(Event::LayoutChanged {
        workspaces: vec![WorkspaceFacts {
            id: WorkspaceId::from("w"),
            name: "work".into(),
            dir: "/home/dev".into(),
            tabs: vec![tab("t1", None)],
        }],
    });
    assert_eq!(shown(&world)[0].1, Some(Badge::Idle));
    world.step(Event::RecoveryEnded);
    assert_eq!(shown(&world)[0].1, None);
}

#[test]
fn n09_a_session_without_a_transcript_says_so() {
    let mut world = World::new();
    world.step(Event::RecoveryEnded);
    let label = |world: &World| world.item('A').label.map(|label| label.to_string());
    play(
        &mut world,
        "100 found\n200 file idle\n1000 hook prompt\n1050 file busy",
    );
    world.step(Event::TranscriptMissing { agent: key('A') });
    // Taken back before its first token: such a turn leaves no line anywhere.
    play(&mut world, "2000 file idle\n4000 end");
    assert_eq!(label(&world), None);
    play(
        &mut world,
        "5000 hook prompt\n5050 file busy\n6000 hook stop\n6050 file idle\n6100 end",
    );
    assert_eq!(label(&world).as_deref(), Some("no transcript"));
    play(&mut world, "7000 hook prompt\n7050 file busy\n7100 end");
    assert_eq!(label(&world), None, "not while it works");
    // It was only late.
    play(
        &mut world,
        "7200 tx prompt\n8000 hook stop\n8050 file idle\n9000 end",
    );
    assert_eq!(label(&world), None);
}

#[test]
fn n10_d09_a_late_hook_of_the_one_that_ended_is_not_the_next_one_s() {
    // No pid in it, and the one that runs in this pane now has no conversation yet.
    check(
        "
        0    found pane=1
        100  file none
        200  file idle
        1000 hook@990 prompt pane=1 anonymous conv=c1
        1050 file busy
        1900 removed
        1950 died
        3000 b: found pane=1
        3100 b: hook@1880 stop pane=1 anonymous conv=c1
        3200 b: file none conv=c2
        3500 b: file idle conv=c2
        9000 end
        ",
        "
        200  idle
        1050 busy
        1950 none
        3500 b: idle
        ",
    );
}

#[test]
fn n10_d09_h02_the_spool_of_one_that_ended_while_the_server_was_down_is_not_the_next_one_s() {
    // Without a pid and without a conversation, only the time says whose it can't be.
    check(
        "
        9000 recovering
        9100 b: found pane=1
        9110 b: file idle since=2500
        9200 hook@1500 prompt pane=1 anonymous conv=-
        9210 hook@1900 stop pane=1 anonymous conv=-
        9300 recovered
        20000 end
        ",
        "
        9110 b: unknown
        9300 b: idle
        ",
    );
}

#[test]
fn r01_h01_any_hook_tells_that_a_session_without_files_has_started() {
    // Its SessionStart was heard just before the server ended, and nothing was shown yet.
    check(
        "
        0    recovering
        500  found
        500  hook@200 subend x untyped
        700  recovered
        9000 end
        ",
        "800 idle",
    );
}
