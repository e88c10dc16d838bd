//! A small language for situations: what happens when, and what has to be seen. Runs the fleet on a fake
//! clock, fires every deadline at its moment, and compares the *whole* course: each badge on the way, each
//! notification and each withdrawal with its time.
//!
//! A line of a script is `<ms> [<agent>:] <what> …`, a line of what is expected `<ms> [<agent>:] <badge>` or
//! `<ms> [<agent>:] notify|update|withdraw`. `A` is meant where no agent is named.

use std::collections::BTreeMap;
use std::sync::Arc;

use purplemux_core::event::Persisted;
use purplemux_core::view::{Ask, AskKind, Doing, Outcome, Presence};
use purplemux_core::witness::{
    AgentKind, BackgroundTasks, FileStatus, Hook, HookKind, Process, Question, SessionFile,
    StartSource, ToolCall, TranscriptFact, TranscriptKind, WaitingFor,
};
use purplemux_core::{
    AgentKey, Badge, ConversationId, Effect, EpisodeId, Event, Fleet, HookId, HostId, Item,
    PaneKey, Stamp, Time, TmuxServer,
};

/// Unix ms at which the machine of the scripts was booted.
const BOOTED: i64 = 1_000_000_000_000;

/// The moment `ms` after boot.
pub fn at(ms: u64) -> Stamp {
    Stamp {
        boot: Time::from_ms(ms),
        wall_ms: BOOTED + i64::try_from(ms).expect("scripts are short"),
    }
}

pub fn host() -> HostId {
    HostId::from("here")
}

/// The agent with this letter. Capital ones were born just after boot, small ones two seconds later.
pub fn key(letter: char) -> AgentKey {
    let born_ms = if letter.is_lowercase() { 2_000 } else { 10 };
    AgentKey {
        host: host(),
        pid: u32::from(letter),
        start: born_ms / 10,
    }
}

pub fn pane(number: u32) -> PaneKey {
    PaneKey {
        server: TmuxServer {
            host: host(),
            pid: 1,
            start: 1,
        },
        pane: number,
    }
}

/// A fleet on a fake clock with everything it did so far.
pub struct World {
    pub fleet: Fleet,
    /// As its changes make them.
    rows: Vec<Item>,
    pub now: u64,
    /// By how much the wall clock was set, in ms.
    clock_off: i64,
    /// Changes and tellings, in words.
    pub seen: Vec<String>,
    files: BTreeMap<char, SessionFile>,
    shown: BTreeMap<char, String>,
    told: Vec<EpisodeId>,
    taken_back: Vec<EpisodeId>,
    /// What is to be watched from when on and until when, and who was forgotten: no badge shows it.
    pub asked: Vec<String>,
    /// What outlives a restart.
    pub kept: BTreeMap<char, Persisted>,
    /// The transcript can be read.
    readable: bool,
    /// Written, but not watched: seen only when the transcript is read.
    unseen: Vec<(AgentKey, TranscriptFact)>,
    restored: bool,
}

/// Runs `script` and compares everything that was seen with `expect`.
pub fn check(script: &str, expect: &str) -> World {
    let world = run(script);
    let expected: Vec<String> = lines(expect).map(normal).collect();
    let seen: Vec<String> = world.seen.iter().map(|l| normal(l)).collect();
    assert!(
        seen == expected,
        "\n--- expected\n{}\n--- seen\n{}\n",
        expected.join("\n"),
        seen.join("\n")
    );
    world
}

/// Runs `script`.
pub fn run(script: &str) -> World {
    let mut world = World::new();
    if !script.contains("restored") && !script.contains("recovering") {
        world.step(Event::RecoveryEnded);
    }
    for line in lines(script) {
        world.line(line);
    }
    world
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|l| l.split(" # ").next().unwrap_or_default().trim())
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
}

fn normal(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl World {
    pub fn new() -> Self {
        Self {
            fleet: Fleet::new(host()),
            rows: Vec::new(),
            now: 0,
            clock_off: 0,
            seen: Vec::new(),
            files: BTreeMap::new(),
            shown: BTreeMap::new(),
            told: Vec::new(),
            taken_back: Vec::new(),
            asked: Vec::new(),
            kept: BTreeMap::new(),
            readable: true,
            unseen: Vec::new(),
            restored: false,
        }
    }

    /// Fires every deadline up to `ms`, then stands there.
    pub fn wait_until(&mut self, ms: u64) {
        while let Some((due, why)) = self.fleet.deadline() {
            if due > Time::from_ms(ms) {
                break;
            }
            self.now = self.now.max(due.0.div_ceil(1_000_000));
            self.step(Event::DeadlinePassed);
            if let Some((next, _)) = self.fleet.deadline() {
                assert!(
                    next > Time::from_ms(self.now),
                    "the deadline \"{why}\" at {due:?} would fire for ever"
                );
            }
        }
        self.now = self.now.max(ms);
    }

    /// Gives the fleet one event now, answers what it asks, writes down what is seen.
    pub fn step(&mut self, event: Event) {
        let effects = self.fleet.step(self.at(self.now), event);
        self.fleet.changes().apply(&mut self.rows);
        assert_eq!(self.rows, self.fleet.items(), "nothing else has changed");
        let mut answers = Vec::new();
        let mut told = Vec::new();
        for effect in effects {
            match effect {
                Effect::ReadTranscript { agent, request } => {
                    if self.readable {
                        let (facts, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.unseen)
                            .into_iter()
                            .partition(|(of, _)| *of == agent);
                        self.unseen = others;
                        answers.push(Event::TranscriptGrew {
                            agent: agent.clone(),
                            facts: facts.into_iter().map(|(_, fact)| fact).collect(),
                        });
                    }
                    answers.push(Event::TranscriptRead {
                        agent,
                        request,
                        ok: self.readable,
                    });
                }
                Effect::Notify {
                    agent,
                    episode,
                    silent,
                    badge,
                } => {
                    let first = !self.told.contains(&episode);
                    assert!(first || silent, "episode {episode:?} alerts twice");
                    assert!(
                        matches!(badge, Badge::NeedsInput(_) | Badge::Review(_)),
                        "told of {badge:?}"
                    );
                    self.told.push(episode);
                    told.push((agent, if silent { "update" } else { "notify" }));
                }
                Effect::Withdraw { agent, episode } => {
                    assert!(
                        self.restored || self.told.contains(&episode),
                        "{episode:?} withdrawn but never told"
                    );
                    assert!(
                        !self.taken_back.contains(&episode),
                        "{episode:?} withdrawn twice"
                    );
                    self.taken_back.push(episode);
                    told.push((agent, "withdraw"));
                }
                Effect::Persist {
                    agent,
                    badge,
                    since,
                    episode,
                    beneath,
                } => {
                    let shown = Persisted {
                        badge,
                        since,
                        episode,
                        tab: None,
                    };
                    self.kept
                        .insert(letter_of(&agent), beneath.unwrap_or(shown));
                }
                Effect::WatchTranscript { agent, on } => self.ask(&agent, "transcript", on),
                Effect::WatchCpu { agent, on } => self.ask(&agent, "cpu", on),
                Effect::UseTranscript { .. } | Effect::Record { .. } => {}
                Effect::Forget { agent } => {
                    self.asked
                        .push(format!("{} {}forget", self.now, prefix(letter_of(&agent))));
                    self.kept.remove(&letter_of(&agent));
                }
            }
        }
        self.look();
        for (agent, word) in told {
            self.seen
                .push(format!("{} {}{word}", self.now, prefix(letter_of(&agent))));
        }
        for answer in answers {
            self.step(answer);
        }
    }

    fn ask(&mut self, agent: &AgentKey, what: &str, on: bool) {
        let (now, who) = (self.now, prefix(letter_of(agent)));
        let on = if on { "on" } else { "off" };
        self.asked.push(format!("{now} {who}{what} {on}"));
    }

    /// The moment `ms` after boot, as the clocks are set now.
    fn at(&self, ms: u64) -> Stamp {
        let Stamp { boot, wall_ms } = at(ms);
        Stamp {
            boot,
            wall_ms: wall_ms + self.clock_off,
        }
    }

    fn look(&mut self) {
        let mut now: BTreeMap<char, String> = BTreeMap::new();
        for item in self.fleet.items() {
            if let Some(agent) = &item.agent {
                now.insert(letter_of(agent), words(&item));
            }
        }
        let letters: Vec<char> = self.shown.keys().chain(now.keys()).copied().collect();
        for letter in letters {
            let new = now
                .get(&letter)
                .cloned()
                .unwrap_or_else(|| "none".to_owned());
            let old = self
                .shown
                .get(&letter)
                .cloned()
                .unwrap_or_else(|| "none".to_owned());
            if new != old {
                self.seen
                    .push(format!("{} {}{new}", self.now, prefix(letter)));
                self.shown.insert(letter, new);
            }
        }
    }

    pub fn item(&self, letter: char) -> Item {
        self.fleet
            .items()
            .into_iter()
            .find(|i| i.agent == Some(key(letter)))
            .expect("the agent has a row")
    }

    /// One line of a script.
    pub fn line(&mut self, line: &str) {
        let words = split(line);
        let ms: u64 = words[0].parse().expect("a line begins with its ms");
        self.wait_until(ms);
        let (letter, words) = match words[1].strip_suffix(':') {
            Some(name) => (name.chars().next().expect("a letter"), &words[2..]),
            None => ('A', &words[1..]),
        };
        let (verb, stamp) = match words[0].split_once('@') {
            Some((verb, stamp)) => (verb, stamp.parse().expect("ms after @")),
            None => (words[0].as_str(), ms),
        };
        let args = Args(&words[1..]);
        let agent = key(letter);
        let event = match verb {
            "end" => return,
            "clock" => {
                let by: i64 = words[1].parse().expect("ms by which the clock is set");
                self.clock_off += by;
                return;
            }
            "unreadable-transcript" => {
                self.readable = false;
                return;
            }
            "found" => Event::ProcessFound {
                agent,
                process: Process {
                    pane: args.get("pane").map(|p| pane(number(p))),
                    parent_agent: args
                        .get("parent")
                        .map(|p| key(p.chars().next().expect("a letter"))),
                    cwd: args.text("cwd"),
                    hooks: None,
                },
            },
            "died" => Event::ProcessDied { agent },
            "missed" => Event::ProcessMissed { agent },
            "suspended" => Event::ProcessStopped {
                agent,
                stopped: true,
            },
            "resumed" => Event::ProcessStopped {
                agent,
                stopped: false,
            },
            "key" => Event::KeyFileSeen { agent },
            "quiet" => Event::ProcessQuiet { agent, quiet: true },
            "loud" => Event::ProcessQuiet {
                agent,
                quiet: false,
            },
            "file" => self.file(letter, stamp, args),
            "removed" => Event::FileRemoved { agent },
            "torn" => Event::FileUnreadable {
                agent,
                why: "torn".into(),
            },
            "hook" => Event::HookFired {
                hook: Box::new(Hook {
                    at: self.at(stamp),
                    ..hook(letter, stamp, args)
                }),
            },
            "tx" => {
                let fact = TranscriptFact {
                    written_ms: Some(self.at(stamp).wall_ms),
                    sidechain: args.has("sidechain"),
                    kind: transcript(args),
                };
                if args.has("unseen") {
                    self.unseen.push((agent, fact));
                    return;
                }
                Event::TranscriptGrew {
                    agent,
                    facts: vec![fact],
                }
            }
            "seen" => Event::Seen {
                agent,
                episode: self.episode(letter, args),
            },
            "dismissed" => Event::Dismissed {
                agent,
                episode: self.episode(letter, args),
            },
            "restored" => {
                self.restored = true;
                Event::Restored {
                    agent,
                    persisted: persisted(stamp, args),
                }
            }
            "recovered" => Event::RecoveryEnded,
            "recovering" => return,
            "restart" => {
                self.restart();
                return;
            }
            "readable-transcript" => {
                self.readable = true;
                return;
            }
            other => panic!("no such thing as {other} in {line}"),
        };
        self.step(event);
    }

    /// The server ends, and starts with what it kept.
    fn restart(&mut self) {
        self.fleet = Fleet::new(host());
        self.restored = true;
        let kept = self.kept.clone();
        let episodes: Vec<EpisodeId> = kept.values().filter_map(|k| k.episode).collect();
        self.told.retain(|episode| episodes.contains(episode));
        self.taken_back.clear();
        for (letter, persisted) in kept {
            let agent = key(letter);
            self.step(Event::Restored { agent, persisted });
        }
    }

    fn episode(&self, letter: char, args: Args<'_>) -> EpisodeId {
        args.get("episode").map_or_else(
            || self.item(letter).episode.unwrap_or(EpisodeId(0)),
            |e| EpisodeId(number(e).into()),
        )
    }

    fn file(&mut self, letter: char, stamp: u64, args: Args<'_>) -> Event {
        let old = self.files.get(&letter).cloned();
        let (status, waiting_for) = match args.0[0].as_str() {
            "none" => (None, None),
            "idle" => (Some(FileStatus::Idle), None),
            "busy" => (Some(FileStatus::Busy), None),
            "shell" => (Some(FileStatus::Shell), None),
            "permission" => (Some(FileStatus::Waiting), Some(WaitingFor::Permission)),
            "input" => (Some(FileStatus::Waiting), Some(WaitingFor::Input)),
            "menu" => (Some(FileStatus::Waiting), Some(WaitingFor::DialogOpen)),
            "worker" => (
                Some(FileStatus::Waiting),
                Some(WaitingFor::Other("worker request".into())),
            ),
            other => panic!("no such status: {other}"),
        };
        let same = old
            .as_ref()
            .filter(|o| o.status == status && o.waiting_for == waiting_for);
        let status_since = if args.has("unversioned") {
            None
        } else if let Some(since) = args.get("since") {
            Some(at(u64::from(number(since))))
        } else {
            same.map_or(status.map(|_| at(stamp)), |o| o.status_since)
        };
        let file = SessionFile {
            conversation: args
                .get("conv")
                .map(ConversationId::from)
                .or_else(|| old.as_ref().and_then(|o| o.conversation.clone()))
                .or(Some(ConversationId::from(format!("conversation {letter}")))),
            status,
            waiting_for,
            status_since,
            kind: match args.get("kind") {
                None => old.as_ref().map_or(AgentKind::Interactive, |o| o.kind),
                Some("headless") => AgentKind::Headless,
                Some("bg") => AgentKind::Background,
                Some("hidden") => AgentKind::Hidden,
                Some(other) => panic!("no such kind: {other}"),
            },
            parked_job: args
                .text("parked")
                .or_else(|| old.as_ref().and_then(|o| o.parked_job.clone())),
            job: args
                .text("job")
                .or_else(|| old.as_ref().and_then(|o| o.job.clone())),
            cwd: None,
            version: None,
            name: None,
        };
        self.files.insert(letter, file.clone());
        Event::FileRead {
            agent: key(letter),
            at: at(stamp),
            file,
        }
    }
}

fn prefix(letter: char) -> String {
    if letter == 'A' {
        String::new()
    } else {
        format!("{letter}: ")
    }
}

fn letter_of(agent: &AgentKey) -> char {
    char::from_u32(agent.pid).expect("pids of scripts are letters")
}

/// A row's badge with everything that is written beside it.
pub fn words(item: &Item) -> String {
    let mut words = match &item.badge {
        None => return "none".to_owned(),
        Some(Badge::Idle) => "idle".to_owned(),
        Some(Badge::Busy(doing)) => {
            let mut words = "busy".to_owned();
            if doing.compacting {
                words += " compacting";
            }
            if doing.retrying {
                words += " retrying";
            }
            if doing.agents > 0 {
                words += &format!(" {} agent", doing.agents);
            }
            words
        }
        Some(Badge::NeedsInput(ask)) => {
            let mut words = format!("needs-input {}", kind(ask.kind));
            if let Some(text) = &ask.text {
                words += &format!(" \"{text}\"");
            }
            words
        }
        Some(Badge::Review(outcome)) => {
            let mut words = match &outcome.error {
                None => "review finished".to_owned(),
                Some(error) => format!("review failed({error})"),
            };
            if outcome.shells > 0 {
                words += &format!(" {} shell", outcome.shells);
            }
            if outcome.wakes_at_ms.is_some() {
                words += " wakes";
            }
            words
        }
        Some(Badge::Unknown) => "unknown".to_owned(),
    };
    if let Some(label) = &item.label {
        words += &format!(" ({label})");
    }
    if item.presence == Presence::Suspended {
        words += " suspended";
    }
    words
}

fn kind(kind: AskKind) -> &'static str {
    match kind {
        AskKind::Permission => "permission",
        AskKind::Question => "question",
        AskKind::Plan => "plan",
        AskKind::Form => "form",
        AskKind::Dialog => "dialog",
        AskKind::Startup => "startup",
    }
}

/// Splits at spaces; `"…"` keeps its spaces.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("one at least").push(c),
        }
    }
    words.retain(|w| !w.is_empty());
    words
}

fn number(text: &str) -> u32 {
    text.parse()
        .unwrap_or_else(|_| panic!("{text} is no number"))
}

/// Words behind the verb: plain ones in their order, and `name=value`.
#[derive(Clone, Copy)]
struct Args<'a>(&'a [String]);

impl<'a> Args<'a> {
    fn get(self, name: &str) -> Option<&'a str> {
        self.0
            .iter()
            .find_map(|w| w.strip_prefix(name)?.strip_prefix('='))
    }

    fn text(self, name: &str) -> Option<Arc<str>> {
        self.get(name).map(Arc::from)
    }

    fn has(self, name: &str) -> bool {
        self.0.iter().any(|w| w == name)
    }

    /// The nth plain word after the kind.
    fn nth(self, n: usize) -> Option<&'a str> {
        self.0
            .iter()
            .skip(1)
            .filter(|w| !w.contains('='))
            .nth(n)
            .map(String::as_str)
    }

    /// `TOOL [id=…] [arg]`.
    fn tool(self) -> ToolCall {
        let name = self.nth(0).expect("a tool's name");
        let arg = self.nth(1);
        ToolCall {
            name: name.into(),
            use_id: self.text("id"),
            arg: arg.map(Arc::from),
            input_digest: arg.map_or(0, |a| {
                a.bytes()
                    .fold(7, |sum: u64, b| sum.wrapping_mul(31).wrapping_add(b.into()))
            }),
            questions: if name == "AskUserQuestion" {
                vec![Question {
                    text: arg.unwrap_or("Which?").into(),
                    options: vec!["Purple".into(), "Amber".into()],
                    multi: false,
                }]
            } else {
                Vec::new()
            },
        }
    }
}

fn hook(letter: char, stamp: u64, args: Args<'_>) -> Hook {
    let kind = match args.0[0].as_str() {
        "start" => HookKind::SessionStart {
            source: match args.nth(0).expect("a source") {
                "startup" => StartSource::Startup,
                "resume" => StartSource::Resume,
                "clear" => StartSource::Clear,
                "compact" => StartSource::Compact,
                "fork" => StartSource::Fork,
                other => StartSource::Other(other.into()),
            },
        },
        "bye" => HookKind::SessionEnd {
            reason: args.nth(0).expect("a reason").into(),
        },
        "prompt" => HookKind::Prompt {
            text: args.nth(0).unwrap_or("do it").into(),
            task_notification: false,
        },
        "task" => HookKind::Prompt {
            text: "<task-notification>".into(),
            task_notification: true,
        },
        "pre" => HookKind::ToolStarted { tool: args.tool() },
        "post" => HookKind::ToolEnded { tool: args.tool() },
        "fail" => HookKind::ToolFailed {
            tool: args.tool(),
            interrupted: false,
        },
        "pr" => HookKind::PermissionRequested { tool: args.tool() },
        "note" => HookKind::Notified {
            kind: args.nth(0).map(Arc::from),
            message: "Claude has something to say".into(),
        },
        "form" => HookKind::FormAsked {
            server: "lab".into(),
            message: args.nth(0).unwrap_or("Pick").into(),
        },
        "formdone" => HookKind::FormAnswered,
        "stop" => HookKind::Stopped {
            last_message: args.text("says"),
            background: Some(BackgroundTasks {
                shells: args.get("shells").map_or(0, number),
                agents: args.get("agents").map_or(0, number),
            }),
            wakes_at_ms: args
                .get("wakes")
                .map(|ms| at(u64::from(number(ms))).wall_ms),
            has_crons: args.get("wakes").is_some(),
            stop_hook_active: args.has("again"),
        },
        "stopfail" => HookKind::StopFailed {
            error: args.nth(0).expect("a kind").into(),
            message: None,
        },
        "sub" => HookKind::SubagentStarted {
            id: args.nth(0).expect("an id").into(),
            kind: "general-purpose".into(),
        },
        "subend" => HookKind::SubagentStopped {
            id: args.nth(0).expect("an id").into(),
            kind: if args.has("untyped") {
                "".into()
            } else {
                "general-purpose".into()
            },
        },
        "compact" => HookKind::CompactStarted {
            manual: !args.has("auto"),
        },
        "compacted" => HookKind::CompactEnded,
        "cwd" => HookKind::CwdChanged {
            cwd: args.nth(0).expect("a directory").into(),
        },
        other => HookKind::Unknown { name: other.into() },
    };
    let anonymous = args.has("anonymous");
    Hook {
        id: args.get("hid").map(HookId::from),
        at: at(stamp),
        agent: (!anonymous).then(|| key(letter)),
        pane: args.get("pane").map(|p| pane(number(p))),
        conversation: match args.get("conv") {
            Some("-") => None,
            Some(conversation) => Some(ConversationId::from(conversation)),
            None => Some(ConversationId::from(format!("conversation {letter}"))),
        },
        transcript: args.text("path"),
        cwd: args.text("in"),
        agent_id: args.text("lane"),
        prompt_id: args.text("turn"),
        job: args.has("job"),
        kind,
    }
}

fn transcript(args: Args<'_>) -> TranscriptKind {
    match args.0[0].as_str() {
        "end" => TranscriptKind::TurnEnded {
            last_message: args.text("says"),
        },
        "error" => TranscriptKind::ApiError {
            kind: args.nth(0).expect("a kind").into(),
            message: None,
        },
        "interrupt" => TranscriptKind::Interrupted,
        "prompt" => TranscriptKind::Prompted {
            task_notification: false,
        },
        "task" => TranscriptKind::Prompted {
            task_notification: true,
        },
        "tool" => TranscriptKind::ToolStarted { tool: args.tool() },
        "result" => TranscriptKind::ToolEnded {
            use_id: args.get("id").expect("an id").into(),
        },
        "enqueue" => TranscriptKind::Enqueued,
        "dequeue" => TranscriptKind::Dequeued,
        "boundary" => TranscriptKind::CompactBoundary,
        "request" => TranscriptKind::Requested,
        "title" => TranscriptKind::Title {
            text: args.nth(0).expect("a title").into(),
            named: args.has("named"),
        },
        "first" => TranscriptKind::FirstPrompt {
            text: args.nth(0).expect("a prompt").into(),
        },
        "words" => TranscriptKind::LastWords {
            text: args.nth(0).expect("words").into(),
        },
        "usage" => TranscriptKind::Usage {
            model: args.text("model"),
            context_tokens: args.nth(0).and_then(|tokens| tokens.parse().ok()),
        },
        "rewound" => TranscriptKind::Rewound {
            to_ms: args.get("to").map(|to| at(number(to).into()).wall_ms),
        },
        other => panic!("no such line: {other}"),
    }
}

fn persisted(since: u64, args: Args<'_>) -> Persisted {
    let badge = match args.0[0].as_str() {
        "idle" => Badge::Idle,
        "busy" => Badge::Busy(Doing::default()),
        "unknown" => Badge::Unknown,
        "needs-input" => Badge::NeedsInput(Ask {
            id: 7,
            kind: AskKind::Permission,
            text: Some("touch old.txt".into()),
            tool: Some("Bash".into()),
            options: Vec::new(),
        }),
        "review" => Badge::Review(Outcome {
            error: None,
            shells: 0,
            wakes_at_ms: None,
        }),
        other => panic!("no such badge: {other}"),
    };
    Persisted {
        badge,
        since: at(since),
        episode: args.get("episode").map(|e| EpisodeId(number(e).into())),
        tab: None,
    }
}
