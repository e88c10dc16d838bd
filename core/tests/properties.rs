//! Properties: whatever comes in whatever order, some things hold after every event; and a turn that is
//! told like Claude tells it ends right however its hooks are delayed, doubled, swapped or lost.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::RngSeed;
use purplemux_core::event::Persisted;
use purplemux_core::view::{Ask, AskKind, Doing, Outcome};
use purplemux_core::witness::{
    AgentKind, BackgroundTasks, FileStatus, Hook, HookKind, Process, SessionFile, StartSource,
    ToolCall, TranscriptFact, TranscriptKind, WaitingFor,
};
use purplemux_core::{
    AgentKey, Badge, ConversationId, Effect, EpisodeId, Event, Fleet, HookId, HostId, PaneKey,
    Stamp, Time, TmuxServer,
};

const BOOTED: i64 = 1_000_000_000_000;

fn at(ms: u64) -> Stamp {
    Stamp {
        boot: Time::from_ms(ms),
        wall_ms: BOOTED + i64::try_from(ms).expect("short"),
    }
}

fn host() -> HostId {
    HostId::from("here")
}

fn key(n: u32) -> AgentKey {
    AgentKey {
        host: host(),
        pid: n,
        start: u64::from(n) * 10,
    }
}

fn pane(n: u32) -> PaneKey {
    PaneKey {
        server: TmuxServer {
            host: host(),
            pid: 1,
            start: 1,
        },
        pane: n,
    }
}

fn tool(n: u32, with_id: bool) -> ToolCall {
    ToolCall {
        name: ["Bash", "AskUserQuestion", "ExitPlanMode"][n as usize % 3].into(),
        use_id: with_id.then(|| format!("use {n}").into()),
        arg: Some(format!("argument {n}").into()),
        input_digest: n.into(),
        questions: Vec::new(),
    }
}

/// The same cases in every run, so that a red run says something about the change. `PROPTEST_RNG_SEED` draws others,
/// `PROPTEST_CASES` more of them; with cases but no seed, a new seed each time: `make properties`.
fn config(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
        if matches!(config.rng_seed, RngSeed::Random) {
            config.rng_seed = RngSeed::Fixed(1);
        }
    }
    config
}

// ---- invariants after every event --------------------------------------------------------------------

/// A fleet whose every step is checked.
struct Checked {
    fleet: Fleet,
    /// As its changes make them.
    rows: Vec<purplemux_core::Item>,
    now: u64,
    told: BTreeSet<EpisodeId>,
    /// Episodes that a restart brought along: told in an earlier life.
    brought: BTreeSet<EpisodeId>,
    taken_back: BTreeSet<EpisodeId>,
    dead: BTreeSet<AgentKey>,
    alerts: usize,
    readable: bool,
    answers: Vec<Event>,
}

impl Checked {
    fn new(readable: bool) -> Self {
        Self {
            fleet: Fleet::new(host()),
            rows: Vec::new(),
            now: 0,
            told: BTreeSet::new(),
            brought: BTreeSet::new(),
            taken_back: BTreeSet::new(),
            dead: BTreeSet::new(),
            alerts: 0,
            readable,
            answers: Vec::new(),
        }
    }

    fn wait_until(&mut self, ms: u64) {
        let mut fired = 0;
        while let Some((due, why)) = self.fleet.deadline() {
            if due > Time::from_ms(ms) {
                break;
            }
            fired += 1;
            assert!(fired < 1_000, "{why} is due again and again");
            self.now = self.now.max(due.0.div_ceil(1_000_000));
            self.step(Event::DeadlinePassed);
        }
        self.now = self.now.max(ms);
    }

    fn step(&mut self, event: Event) {
        if let Event::ProcessDied { agent } = &event {
            self.dead.insert(agent.clone());
        } else if let Event::Restored { persisted, .. } = &event {
            self.brought.extend(persisted.episode);
        }
        let mut twin = self.fleet.clone();
        let effects = self.fleet.step(at(self.now), event.clone());
        assert_eq!(effects, twin.step(at(self.now), event), "the same twice");
        self.effects(effects);
        self.fleet.changes().apply(&mut self.rows);
        assert_eq!(self.rows, self.fleet.items(), "nothing else has changed");
        self.invariants();
        for answer in std::mem::take(&mut self.answers) {
            self.step(answer);
        }
    }

    fn effects(&mut self, effects: Vec<Effect>) {
        // What waited for its agent is told all at once: an update and its end may come in one step.
        let over: BTreeSet<EpisodeId> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Withdraw { episode, .. } => Some(*episode),
                Effect::ReadTranscript { .. }
                | Effect::WatchTranscript { .. }
                | Effect::UseTranscript { .. }
                | Effect::WatchCpu { .. }
                | Effect::Notify { .. }
                | Effect::Persist { .. }
                | Effect::Forget { .. }
                | Effect::Record { .. } => None,
            })
            .collect();
        for effect in effects {
            match effect {
                Effect::ReadTranscript { agent, request } => {
                    assert!(!self.dead.contains(&agent), "the dead are asked nothing");
                    self.answers.push(Event::TranscriptRead {
                        agent,
                        request,
                        ok: self.readable,
                    });
                }
                Effect::Notify {
                    agent,
                    episode,
                    badge,
                    silent,
                } => {
                    assert!(!self.dead.contains(&agent), "told of the dead");
                    assert!(matches!(badge, Badge::NeedsInput(_) | Badge::Review(_)));
                    if !over.contains(&episode) {
                        let item = self.item(&agent).expect("told of somebody shown");
                        assert_eq!(item.badge, Some(badge), "told of what is shown");
                        assert_eq!(item.episode, Some(episode));
                    }
                    assert!(
                        !self.taken_back.contains(&episode),
                        "told after taking back"
                    );
                    assert!(!self.brought.contains(&episode), "an old story");
                    let first = self.told.insert(episode);
                    assert!(first || silent, "{episode:?} alerts twice");
                    self.alerts += usize::from(!silent);
                }
                Effect::Withdraw { episode, .. } => {
                    assert!(
                        self.told.contains(&episode) || self.brought.contains(&episode),
                        "{episode:?} was never told"
                    );
                    assert!(self.taken_back.insert(episode), "taken back twice");
                }
                Effect::Persist {
                    agent,
                    badge,
                    episode,
                    ..
                } => {
                    assert!(!self.dead.contains(&agent));
                    assert_eq!(
                        episode.is_some(),
                        matches!(badge, Badge::NeedsInput(_) | Badge::Review(_))
                    );
                }
                Effect::WatchTranscript { .. }
                | Effect::UseTranscript { .. }
                | Effect::WatchCpu { .. }
                | Effect::Forget { .. }
                | Effect::Record { .. } => {}
            }
        }
    }

    fn item(&self, agent: &AgentKey) -> Option<purplemux_core::Item> {
        self.fleet
            .items()
            .into_iter()
            .find(|i| i.agent.as_ref() == Some(agent))
    }

    fn invariants(&self) {
        if let Some((due, why)) = self.fleet.deadline() {
            assert!(
                due > Time::from_ms(self.now),
                "\"{why}\" is due in the past"
            );
        }
        let mut ids = BTreeSet::new();
        for item in self.fleet.items() {
            assert!(ids.insert(item.id.clone()), "two rows with one id");
            let wants = matches!(item.badge, Some(Badge::NeedsInput(_) | Badge::Review(_)));
            assert_eq!(item.episode.is_some(), wants, "{item:?}");
            assert!(wants || !item.attention);
            if let Some(agent) = &item.agent {
                assert!(!self.dead.contains(agent), "the dead are not shown");
                assert!(self.fleet.explain(agent).len() <= 200);
            }
            if item.label.as_deref() == Some("headless") {
                assert!(!wants, "nobody is asked by a headless run");
            }
        }
    }
}

// ---- anything at all ---------------------------------------------------------------------------------

fn file() -> impl Strategy<Value = (SessionFile, u64)> {
    let status = prop_oneof![
        2 => Just((Some(FileStatus::Idle), None)),
        3 => Just((Some(FileStatus::Busy), None)),
        1 => Just((Some(FileStatus::Shell), None)),
        1 => Just((Some(FileStatus::Waiting), Some(WaitingFor::Permission))),
        1 => Just((Some(FileStatus::Waiting), Some(WaitingFor::Input))),
        2 => Just((Some(FileStatus::Waiting), Some(WaitingFor::DialogOpen))),
        1 => Just((Some(FileStatus::Waiting), Some(WaitingFor::Other("worker request".into())))),
        1 => Just((None, None)),
    ];
    let kind = prop_oneof![
        12 => Just(AgentKind::Interactive),
        1 => Just(AgentKind::Headless),
        1 => Just(AgentKind::Background),
        1 => Just(AgentKind::Hidden),
    ];
    let job = prop_oneof![6 => Just(None), 1 => Just(Some("j1"))];
    (status, kind, job.clone(), job, 0..4_u32, 0..600_u64).prop_map(
        |((status, waiting_for), kind, parked, job, conversation, age)| {
            let file = SessionFile {
                conversation: Some(ConversationId::from(format!("c{}", conversation / 3))),
                status,
                waiting_for,
                status_since: None,
                kind,
                parked_job: parked.map(Into::into),
                job: job.map(Into::into),
                cwd: None,
                version: None,
                name: None,
            };
            (file, age)
        },
    )
}

fn hook_kind() -> impl Strategy<Value = HookKind> {
    let n = 0..6_u32;
    prop_oneof![
        4 => any::<bool>().prop_map(|task| HookKind::Prompt {
            text: "do it".into(),
            task_notification: task,
        }),
        4 => (0..3_u32, 0..2_u32, any::<bool>()).prop_map(|(shells, agents, again)| HookKind::Stopped {
            last_message: Some("done".into()),
            background: Some(BackgroundTasks { shells, agents: agents.saturating_sub(1) + agents }),
            wakes_at_ms: again.then_some(BOOTED + 20_000),
            has_crons: again,
            stop_hook_active: again,
        }),
        1 => Just(HookKind::StopFailed { error: "rate_limit".into(), message: None }),
        2 => n.clone().prop_map(|n| HookKind::ToolStarted { tool: tool(n, true) }),
        2 => n.clone().prop_map(|n| HookKind::ToolEnded { tool: tool(n, true) }),
        1 => n.clone().prop_map(|n| HookKind::ToolFailed { tool: tool(n, true), interrupted: false }),
        3 => n.clone().prop_map(|n| HookKind::PermissionRequested { tool: tool(n, false) }),
        1 => Just(HookKind::FormAsked { server: "lab".into(), message: "Pick".into() }),
        1 => Just(HookKind::FormAnswered),
        1 => Just(HookKind::CompactStarted { manual: true }),
        1 => Just(HookKind::CompactEnded),
        1 => select(vec![
            StartSource::Startup,
            StartSource::Clear,
            StartSource::Compact,
            StartSource::Resume,
        ])
        .prop_map(|source| HookKind::SessionStart { source }),
        1 => select(vec!["clear", "other"]).prop_map(|reason| HookKind::SessionEnd { reason: reason.into() }),
        1 => select(vec![Some("permission_prompt"), Some("idle_prompt"), None])
            .prop_map(|kind| HookKind::Notified { kind: kind.map(Into::into), message: "hm".into() }),
        1 => n.clone().prop_map(|n| HookKind::SubagentStarted { id: format!("{n}").into(), kind: "x".into() }),
        1 => n.prop_map(|n| HookKind::SubagentStopped { id: format!("{n}").into(), kind: "x".into() }),
    ]
}

fn line() -> impl Strategy<Value = TranscriptKind> {
    let n = 0..6_u32;
    prop_oneof![
        3 => Just(TranscriptKind::TurnEnded { last_message: None }),
        1 => Just(TranscriptKind::ApiError { kind: "server_error".into(), message: None }),
        2 => Just(TranscriptKind::Interrupted),
        2 => any::<bool>().prop_map(|task_notification| TranscriptKind::Prompted { task_notification }),
        2 => n.clone().prop_map(|n| TranscriptKind::ToolStarted { tool: tool(n, true) }),
        2 => n.prop_map(|n| TranscriptKind::ToolEnded { use_id: format!("use {n}").into() }),
        1 => Just(TranscriptKind::Enqueued),
        1 => Just(TranscriptKind::Dequeued),
        1 => Just(TranscriptKind::CompactBoundary),
    ]
}

/// What happens, as if it happened at `now`.
#[derive(Clone, Debug)]
enum Act {
    Found(Option<u32>, Option<u32>),
    Died,
    Stopped(bool),
    Key,
    Quiet(bool),
    Missed,
    File(SessionFile, u64),
    Removed,
    Torn,
    Hook(HookKind, u64, bool, bool),
    Grew(TranscriptKind, u64),
    Seen,
    Dismissed,
    Restored(u8),
    Recovered,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (prop::option::of(1..3_u32), prop::option::weighted(0.1, 1..3_u32))
            .prop_map(|(pane, parent)| Act::Found(pane, parent)),
        1 => Just(Act::Died),
        1 => any::<bool>().prop_map(Act::Stopped),
        1 => Just(Act::Key),
        1 => any::<bool>().prop_map(Act::Quiet),
        20 => file().prop_map(|(file, age)| Act::File(file, age)),
        1 => Just(Act::Removed),
        1 => Just(Act::Missed),
        1 => Just(Act::Torn),
        20 => (hook_kind(), 0..1_500_u64, prop::bool::weighted(0.8), prop::bool::weighted(0.2))
            .prop_map(|(kind, age, named, lane)| Act::Hook(kind, age, named, lane)),
        10 => (line(), 0..500_u64).prop_map(|(line, age)| Act::Grew(line, age)),
        2 => Just(Act::Seen),
        1 => Just(Act::Dismissed),
        1 => (0..4_u8).prop_map(Act::Restored),
        1 => Just(Act::Recovered),
    ]
}

fn event(act: Act, who: u32, now: u64, number: usize, world: &Checked) -> Event {
    let agent = key(who);
    let episode = || {
        world
            .item(&agent)
            .and_then(|i| i.episode)
            .unwrap_or(EpisodeId(1))
    };
    match act {
        Act::Found(in_pane, parent) => Event::ProcessFound {
            agent,
            process: Process {
                pane: in_pane.map(pane),
                parent_agent: parent.filter(|p| *p != who).map(key),
                cwd: None,
                hooks: None,
            },
        },
        Act::Died => Event::ProcessDied { agent },
        Act::Stopped(stopped) => Event::ProcessStopped { agent, stopped },
        Act::Key => Event::KeyFileSeen { agent },
        Act::Quiet(quiet) => Event::ProcessQuiet { agent, quiet },
        Act::Missed => Event::ProcessMissed { agent },
        Act::File(mut file, age) => {
            if file.status.is_some() {
                file.status_since = Some(at(now.saturating_sub(age)));
            }
            Event::FileRead {
                agent,
                at: at(now),
                file,
            }
        }
        Act::Removed => Event::FileRemoved { agent },
        Act::Torn => Event::FileUnreadable {
            agent,
            why: "torn".into(),
        },
        Act::Hook(kind, age, named, lane) => Event::HookFired {
            hook: Box::new(Hook {
                id: Some(HookId::from(format!("{number}"))),
                at: at(now.saturating_sub(age)),
                agent: named.then(|| agent.clone()),
                pane: Some(pane(1)),
                conversation: Some(ConversationId::from("c0")),
                transcript: Some("/t.jsonl".into()),
                cwd: Some("/p".into()),
                agent_id: lane.then(|| "lane".into()),
                prompt_id: (age % 3 == 0).then(|| format!("p{}", number / 8).into()),
                job: false,
                kind,
            }),
        },
        Act::Grew(kind, age) => Event::TranscriptGrew {
            agent,
            facts: vec![TranscriptFact {
                written_ms: Some(at(now.saturating_sub(age)).wall_ms),
                sidechain: false,
                kind,
            }],
        },
        Act::Seen => Event::Seen {
            episode: episode(),
            agent,
        },
        Act::Dismissed => Event::Dismissed {
            episode: episode(),
            agent,
        },
        Act::Restored(which) => {
            let (badge, episode) = match which {
                0 => (Badge::Idle, None),
                1 => (Badge::Busy(Doing::default()), None),
                2 => (
                    Badge::NeedsInput(Ask {
                        id: 1,
                        kind: AskKind::Permission,
                        text: None,
                        tool: None,
                        options: Vec::new(),
                    }),
                    Some(EpisodeId(1_000 * number as u64)),
                ),
                _other => (
                    Badge::Review(Outcome {
                        error: None,
                        shells: 0,
                        wakes_at_ms: None,
                    }),
                    Some(EpisodeId(1_000 * number as u64)),
                ),
            };
            Event::Restored {
                agent,
                persisted: Persisted {
                    badge,
                    since: at(now / 2),
                    episode,
                    tab: None,
                },
            }
        }
        Act::Recovered => Event::RecoveryEnded,
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn anything_in_any_order_keeps_the_invariants(
        acts in prop::collection::vec((act(), 1..4_u32, 0..2_000_u64), 1..80),
        readable in any::<bool>(),
        recovering in prop::bool::weighted(0.3),
    ) {
        let mut world = Checked::new(readable);
        if !recovering {
            world.step(Event::RecoveryEnded);
        }
        let mut now = 5_000;
        world.wait_until(now);
        for who in 1..3 {
            world.step(event(Act::Found(Some(who), None), who, now, 0, &world));
        }
        for (number, (act, who, pause)) in acts.into_iter().enumerate() {
            now += pause;
            world.wait_until(now);
            world.step(event(act, who, now, number + 1, &world));
        }
        world.wait_until(now + 120_000);
    }

    #[test]
    fn what_is_heard_twice_counts_once(
        acts in prop::collection::vec((act(), 1..3_u32, 0..2_000_u64), 1..60),
    ) {
        let mut once = Checked::new(true);
        let mut twice = Checked::new(true);
        once.step(Event::RecoveryEnded);
        twice.step(Event::RecoveryEnded);
        let mut now = 5_000;
        for (number, (act, who, pause)) in acts.into_iter().enumerate() {
            now += pause;
            once.wait_until(now);
            twice.wait_until(now);
            let event = event(act, who, now, number + 1, &once);
            let repeatable = matches!(
                event,
                Event::HookFired { .. } | Event::FileRead { .. } | Event::ProcessStopped { .. }
            );
            once.step(event.clone());
            twice.step(event.clone());
            if repeatable {
                twice.step(event);
            }
        }
        once.wait_until(now + 60_000);
        twice.wait_until(now + 60_000);
        prop_assert_eq!(once.fleet.items(), twice.fleet.items());
        prop_assert_eq!(once.alerts, twice.alerts);
    }
}

// ---- turns as Claude tells them ----------------------------------------------------------------------

/// How a turn goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Answers,
    Fails,
    EscWhileStreaming,
    Approves,
    EscAtTheDialog,
}

/// One thing that Claude says, with the moment it says it.
#[derive(Clone, Debug)]
enum Says {
    File(FileStatus, Option<WaitingFor>),
    Hook(HookKind),
    Line(TranscriptKind),
}

/// A course of turns: what is said when, and the word that is right at the end.
fn story(turns: &[(Turn, u64)]) -> (Vec<(u64, Says)>, &'static str, u64) {
    let mut said = vec![(500, Says::File(FileStatus::Idle, None))];
    let mut now = 2_000;
    let mut word = "idle";
    for (number, (turn, length)) in (0..).zip(turns) {
        let call = tool(number * 3, true);
        said.push((
            now,
            Says::Hook(HookKind::Prompt {
                text: "do".into(),
                task_notification: false,
            }),
        ));
        said.push((now + 40, Says::File(FileStatus::Busy, None)));
        said.push((
            now + 60,
            Says::Line(TranscriptKind::Prompted {
                task_notification: false,
            }),
        ));
        now += 300;
        said.push((
            now,
            Says::Hook(HookKind::ToolStarted { tool: call.clone() }),
        ));
        said.push((
            now + 5,
            Says::Line(TranscriptKind::ToolStarted { tool: call.clone() }),
        ));
        now += 90;
        if matches!(turn, Turn::Approves | Turn::EscAtTheDialog) {
            said.push((
                now,
                Says::Hook(HookKind::PermissionRequested {
                    tool: ToolCall {
                        use_id: None,
                        ..call.clone()
                    },
                }),
            ));
            said.push((
                now + 20,
                Says::File(FileStatus::Waiting, Some(WaitingFor::Permission)),
            ));
            now += length;
        }
        if *turn == Turn::EscAtTheDialog {
            said.push((now, Says::File(FileStatus::Idle, None)));
            said.push((
                now + 80,
                Says::Line(TranscriptKind::ToolEnded {
                    use_id: call.use_id.clone().expect("it has one"),
                }),
            ));
            said.push((now + 80, Says::Line(TranscriptKind::Interrupted)));
            word = "idle";
            now += 8_000;
            continue;
        }
        if *turn == Turn::Approves {
            said.push((now, Says::File(FileStatus::Busy, None)));
        }
        now += length;
        said.push((now, Says::Hook(HookKind::ToolEnded { tool: call.clone() })));
        said.push((
            now + 5,
            Says::Line(TranscriptKind::ToolEnded {
                use_id: call.use_id.clone().expect("it has one"),
            }),
        ));
        now += 700;
        match turn {
            Turn::Answers | Turn::Approves => {
                said.push((
                    now,
                    Says::Hook(HookKind::Stopped {
                        last_message: None,
                        background: Some(BackgroundTasks::default()),
                        wakes_at_ms: None,
                        has_crons: false,
                        stop_hook_active: false,
                    }),
                ));
                said.push((
                    now + 60,
                    Says::Line(TranscriptKind::TurnEnded { last_message: None }),
                ));
                word = "review";
            }
            Turn::Fails => {
                said.push((
                    now + 76,
                    Says::Hook(HookKind::StopFailed {
                        error: "rate_limit".into(),
                        message: None,
                    }),
                ));
                said.push((
                    now + 60,
                    Says::Line(TranscriptKind::ApiError {
                        kind: "rate_limit".into(),
                        message: None,
                    }),
                ));
                word = "failed";
            }
            Turn::EscWhileStreaming => {
                said.push((now + 180, Says::Line(TranscriptKind::Interrupted)));
                word = "idle";
            }
            Turn::EscAtTheDialog => {}
        }
        said.push((now + 70, Says::File(FileStatus::Idle, None)));
        now += 8_000;
    }
    (said, word, now)
}

/// Plays a story whose hooks arrive as `arrival` says (`None`: never; several: repeated).
fn play(turns: &[(Turn, u64)], mut arrival: impl FnMut(usize, u64) -> Vec<u64>) -> (String, usize) {
    let (said, _, end) = story(turns);
    let mut queue: Vec<(u64, Event)> = vec![(
        0,
        Event::ProcessFound {
            agent: key(1),
            process: Process {
                pane: Some(pane(1)),
                parent_agent: None,
                cwd: None,
                hooks: None,
            },
        },
    )];
    let mut hooks = 0;
    for (ms, says) in said {
        match says {
            Says::File(status, waiting_for) => queue.push((
                ms,
                Event::FileRead {
                    agent: key(1),
                    at: at(ms),
                    file: SessionFile {
                        conversation: Some(ConversationId::from("c")),
                        status: Some(status),
                        waiting_for,
                        status_since: Some(at(ms)),
                        kind: AgentKind::Interactive,
                        parked_job: None,
                        job: None,
                        cwd: None,
                        version: None,
                        name: None,
                    },
                },
            )),
            Says::Line(kind) => queue.push((
                ms + 110,
                Event::TranscriptGrew {
                    agent: key(1),
                    facts: vec![TranscriptFact {
                        written_ms: Some(at(ms).wall_ms),
                        sidechain: false,
                        kind,
                    }],
                },
            )),
            Says::Hook(kind) => {
                hooks += 1;
                let hook = Hook {
                    id: Some(HookId::from(format!("{hooks}"))),
                    at: at(ms),
                    agent: Some(key(1)),
                    pane: Some(pane(1)),
                    conversation: Some(ConversationId::from("c")),
                    transcript: None,
                    cwd: None,
                    agent_id: None,
                    prompt_id: None,
                    job: false,
                    kind,
                };
                for arrives in arrival(hooks, ms) {
                    queue.push((
                        arrives,
                        Event::HookFired {
                            hook: Box::new(hook.clone()),
                        },
                    ));
                }
            }
        }
    }
    queue.sort_by_key(|(ms, _)| *ms);
    let mut world = Checked::new(true);
    world.step(Event::RecoveryEnded);
    for (ms, event) in queue {
        world.wait_until(ms);
        world.step(event);
    }
    world.wait_until(end + 20_000);
    let badge = world.item(&key(1)).expect("it lives").badge;
    let word = match badge.expect("it has a badge") {
        Badge::Idle => "idle",
        Badge::Busy(_) => "busy",
        Badge::NeedsInput(_) => "needs-input",
        Badge::Review(outcome) if outcome.error.is_some() => "failed",
        Badge::Review(_) => "review",
        Badge::Unknown => "unknown",
    };
    (word.to_owned(), world.alerts)
}

fn turns() -> impl Strategy<Value = Vec<(Turn, u64)>> {
    let turn = select(vec![
        Turn::Answers,
        Turn::Fails,
        Turn::EscWhileStreaming,
        Turn::Approves,
        Turn::EscAtTheDialog,
    ]);
    prop::collection::vec((turn, 2_000..9_000_u64), 1..6)
}

/// Dialogs last longer than the dwell, reviews longer still: each is told once.
fn alerts(turns: &[(Turn, u64)]) -> usize {
    turns
        .iter()
        .map(|(turn, _)| match turn {
            Turn::Answers | Turn::Fails | Turn::EscAtTheDialog => 1,
            Turn::EscWhileStreaming => 0,
            Turn::Approves => 2,
        })
        .sum()
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn turns_end_right_in_order(turns in turns()) {
        let (_, word, _) = story(&turns);
        prop_assert_eq!(play(&turns, |_, ms| vec![ms]), (word.to_owned(), alerts(&turns)));
    }

    #[test]
    fn turns_end_right_whatever_hooks_are_lost(
        turns in turns(),
        lost in prop::collection::vec(any::<bool>(), 40),
    ) {
        let (_, word, _) = story(&turns);
        let played = play(&turns, |n, ms| if lost[n % lost.len()] { vec![] } else { vec![ms] });
        prop_assert_eq!(played, (word.to_owned(), alerts(&turns)));
    }

    #[test]
    fn turns_end_right_however_late_hooks_are(
        turns in turns(),
        delays in prop::collection::vec(0..5_000_u64, 40),
    ) {
        let (_, word, _) = story(&turns);
        let played = play(&turns, |n, ms| vec![ms + delays[n % delays.len()]]);
        prop_assert_eq!(played, (word.to_owned(), alerts(&turns)));
    }

    #[test]
    fn neighbours_swapped_and_doubled_converge(
        turns in turns(),
        delays in prop::collection::vec(0..500_u64, 40),
        again in any::<Index>(),
    ) {
        let (_, word, _) = story(&turns);
        let played = play(&turns, |n, ms| {
            let arrives = ms + delays[n % delays.len()];
            if again.index(3) == n % 3 { vec![arrives, arrives + 200] } else { vec![arrives] }
        });
        prop_assert_eq!(played, (word.to_owned(), alerts(&turns)));
    }
}

#[test]
fn a_hundred_agents_do_not_disturb_each_other() {
    let mut world = Checked::new(true);
    world.step(Event::RecoveryEnded);
    let mut expected = BTreeMap::new();
    for n in 1..=100 {
        world.step(event(Act::Found(Some(n), None), n, 0, 0, &world));
    }
    for n in 1..=100_u32 {
        let status = if n % 2 == 0 {
            FileStatus::Busy
        } else {
            FileStatus::Idle
        };
        world.step(Event::FileRead {
            agent: key(n),
            at: at(1),
            file: SessionFile {
                conversation: Some(ConversationId::from(format!("c{n}"))),
                status: Some(status),
                waiting_for: None,
                status_since: Some(at(1)),
                kind: AgentKind::Interactive,
                parked_job: None,
                job: None,
                cwd: None,
                version: None,
                name: None,
            },
        });
        expected.insert(key(n), status);
    }
    world.wait_until(10_000);
    for (agent, status) in expected {
        let badge = world.item(&agent).expect("shown").badge;
        assert_eq!(
            matches!(badge, Some(Badge::Busy(_))),
            status == FileStatus::Busy
        );
    }
}
