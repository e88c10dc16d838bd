//! Everything around the fleet while a recording plays: the clock, the processes, the sessions folder, the
//! transcripts that are read on request, the one timer. Behaves as the server does, without waiting.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::tz::TimeZone;
use purplemux_core::event::{PaneFacts, TabFacts, WorkspaceFacts};
use purplemux_core::fleet::Fleet;
use purplemux_core::view::{AskKind, Badge as CoreBadge, Item, Presence};
use purplemux_core::witness::Process;
use purplemux_core::{
    AgentKey, Effect, EpisodeId, Event, HostId, PaneKey, Stamp, TabId, Time, TmuxServer,
};
use purplemux_wire::hook::{self, Headers, Here, HookStamp, TmuxEnv};
use purplemux_wire::journal::{self, Record};
use purplemux_wire::session_file::{self, Entry};
use purplemux_wire::transcript;

use super::expect::{Badge, Expect};
use super::recording::{Hook, Moment, What};

/// The boot of every recording; its boot clock is unix time.
const BOOT: &str = "11111111-2222-3333-4444-555555555555";
/// Start time of a process whose file does not tell.
const SOME_START: u64 = 1;
/// The run goes on this long after its last line, so that what is pending happens.
const AFTER_MS: i64 = 5_000;
/// More steps than this at one moment mean that a deadline does not advance.
const STEPS_MAX: usize = 200;

/// What was shown of one agent, from this moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub badge: Badge,
    pub labels: Vec<String>,
    pub ask: String,
}

impl Shown {
    fn none() -> Self {
        Self {
            badge: Badge {
                word: "none".to_owned(),
                what: None,
            },
            labels: Vec::new(),
            ask: String::new(),
        }
    }
}

/// What happened to one agent while the recording played.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Every change of what was shown, in ms since the run's zero.
    pub shown: Vec<(i64, Shown)>,
    pub pushes: i64,
    pub silent: i64,
    pub withdrawn: i64,
    /// Times of the pushes.
    pub pushed_at: Vec<i64>,
}

impl Seen {
    /// What was shown at `ms`.
    pub fn at(&self, ms: i64) -> Shown {
        let before = self.shown.iter().rev().find(|(at, _)| *at <= ms);
        before.map_or_else(Shown::none, |(_, shown)| shown.clone())
    }

    /// Changes of the badge alone.
    pub fn changes(&self) -> Vec<(i64, Badge)> {
        let mut changes: Vec<(i64, Badge)> = Vec::new();
        let mut last = Shown::none().badge;
        for (at, shown) in &self.shown {
            if shown.badge != last {
                changes.push((*at, shown.badge.clone()));
                last = shown.badge.clone();
            }
        }
        changes
    }
}

/// Plays the moments in order and returns what was seen of each judged agent.
pub fn play(expect: &Expect, moments: &[Moment]) -> BTreeMap<char, Seen> {
    play_noting(expect, moments).0
}

/// As [`play`], with the journal of the run and the key of each judged agent.
pub fn play_noting(
    expect: &Expect,
    moments: &[Moment],
) -> (BTreeMap<char, Seen>, Vec<Record>, BTreeMap<char, AgentKey>) {
    let mut world = World::new(expect, moments);
    let begin = [world.layout(), world.pane_listing(), Event::RecoveryEnded];
    let mut queue: Vec<(i64, Step)> = begin.map(|event| (expect.t0, Step::Event(event))).into();
    for moment in moments {
        queue.push((moment.at, Step::Moment(moment)));
    }
    for judged in expect.agents.values() {
        let agent = world.key(judged.pid);
        for &(at, stopped) in &judged.stops {
            let event = Event::ProcessStopped {
                agent: agent.clone(),
                stopped,
            };
            queue.push((expect.t0 + at, Step::Event(event)));
        }
        if let Some(at) = judged.died {
            queue.push((expect.t0 + at, Step::Event(Event::ProcessDied { agent })));
        }
    }
    queue.sort_by_key(|(at, _)| *at);
    let end = queue.last().map_or(expect.t0, |(at, _)| *at) + AFTER_MS;
    for (at, step) in queue {
        world.run_until(at);
        match step {
            Step::Event(event) => world.step(event),
            Step::Moment(moment) => world.moment(moment),
        }
    }
    world.run_until(end);
    let keys = expect.agents.iter();
    let keys = keys.map(|(&letter, judged)| (letter, world.key(judged.pid)));
    let keys = keys.collect();
    (world.seen, world.journal, keys)
}

enum Step<'a> {
    Event(Event),
    Moment(&'a Moment),
}

struct World<'a> {
    expect: &'a Expect,
    fleet: Fleet,
    host: HostId,
    zone: TimeZone,
    /// Unix ms.
    now: i64,
    /// What is known beforehand: start times and panes.
    starts: HashMap<u32, u64>,
    panes: HashMap<u32, PaneKey>,
    parents: HashMap<u32, u32>,
    /// Processes that have been announced, and whether they live.
    alive: HashMap<u32, bool>,
    transcripts: HashMap<String, Vec<String>>,
    readers: HashMap<AgentKey, Reader>,
    /// Next CPU report per agent, unix ms.
    cpu: BTreeMap<AgentKey, i64>,
    pushed: Vec<(AgentKey, EpisodeId)>,
    seen: BTreeMap<char, Seen>,
    journal: Vec<Record>,
}

#[derive(Default)]
struct Reader {
    path: Option<String>,
    conversation: Option<String>,
    /// Lines delivered.
    offset: usize,
    /// How they hang together.
    lines: transcript::Lines,
    watching: bool,
}

impl<'a> World<'a> {
    fn new(expect: &'a Expect, moments: &[Moment]) -> Self {
        let host = HostId::from("lab");
        let mut world = Self {
            expect,
            fleet: Fleet::new(host.clone()),
            host,
            zone: TimeZone::UTC,
            now: expect.t0,
            starts: HashMap::new(),
            panes: HashMap::new(),
            parents: HashMap::new(),
            alive: HashMap::new(),
            transcripts: HashMap::new(),
            readers: HashMap::new(),
            cpu: BTreeMap::new(),
            pushed: Vec::new(),
            seen: expect
                .agents
                .keys()
                .map(|&letter| (letter, Seen::default()))
                .collect(),
            journal: Vec::new(),
        };
        world.look_ahead(moments);
        world
    }

    /// What /proc and tmux would tell about each process, from anywhere in the recording.
    fn look_ahead(&mut self, moments: &[Moment]) {
        let mut pane_numbers = HashMap::new();
        let mut server = None;
        for moment in moments {
            match &moment.what {
                What::File { content, .. } => {
                    let reading = content
                        .as_ref()
                        .and_then(|text| session_file::read(text.as_bytes(), self.stamp()).ok());
                    if let Some(reading) = reading {
                        self.starts
                            .extend(reading.proc_start.map(|start| (reading.pid, start)));
                        pane_numbers.extend(reading.pane.map(|pane| (reading.pid, pane)));
                    }
                }
                What::Hook(hook) => {
                    let tmux = hook
                        .tmux
                        .as_ref()
                        .and_then(|tmux| TmuxEnv::parse(tmux.as_bytes()));
                    server = server.or(tmux.map(|tmux| tmux.pid));
                    if let Some(pid) = hook.claude_pid {
                        let pane = hook.tmux_pane.as_ref();
                        let pane = pane.and_then(|pane| hook::parse_pane(pane.as_bytes()));
                        pane_numbers.extend(pane.map(|pane| (pid, pane)));
                        self.parents
                            .extend(hook.ancestors.first().map(|&parent| (pid, parent)));
                    }
                }
                What::Line { .. } => {}
            }
        }
        let server = TmuxServer {
            host: self.host.clone(),
            pid: server.unwrap_or(1),
            start: SOME_START,
        };
        for (pid, pane) in pane_numbers {
            let server = server.clone();
            self.panes.insert(pid, PaneKey { server, pane });
        }
    }

    /// Every pane of the recording is a tab of ours, all in one workspace.
    fn layout(&self) -> Event {
        let tab = |pane: &PaneKey| TabFacts {
            id: tab_of(pane),
            name: None,
            cwd: Arc::from("/home/dev/proj"),
            ended: false,
        };
        Event::LayoutChanged {
            workspaces: vec![WorkspaceFacts {
                id: "default".into(),
                name: Arc::from("Default"),
                dir: Arc::from("/home/dev"),
                tabs: self.all_panes().iter().map(tab).collect(),
            }],
        }
    }

    fn pane_listing(&self) -> Event {
        let facts = |pane: &PaneKey| PaneFacts {
            pane: pane.clone(),
            session: Arc::from(tab_of(pane).as_str()),
            command: Arc::from("bash"),
            path: Arc::from("/home/dev/proj"),
            title: Arc::from("host"),
            dead: false,
        };
        Event::PanesListed {
            panes: self.all_panes().iter().map(facts).collect(),
        }
    }

    fn all_panes(&self) -> BTreeSet<PaneKey> {
        self.panes.values().cloned().collect()
    }

    fn key(&self, pid: u32) -> AgentKey {
        AgentKey {
            host: self.host.clone(),
            pid,
            start: self.starts.get(&pid).copied().unwrap_or(SOME_START),
        }
    }

    fn stamp(&self) -> Stamp {
        stamp(self.now)
    }

    /// Lets time pass up to `end`: deadlines and CPU reports come in their order.
    fn run_until(&mut self, end: i64) {
        let mut steps = 0;
        loop {
            let deadline = self
                .fleet
                .deadline()
                .map(|(at, _)| up_to_ms(at).max(self.now));
            let report = self.cpu.iter().min_by_key(|(_, at)| **at);
            let report = report.map(|(agent, &at)| (agent.clone(), at));
            let next = [deadline, report.as_ref().map(|(_, at)| *at)];
            let Some(next) = next.into_iter().flatten().min().filter(|&at| at <= end) else {
                break;
            };
            steps = if next > self.now { 0 } else { steps + 1 };
            assert!(
                steps < STEPS_MAX,
                "the deadline {:?} does not advance at {}",
                self.fleet.deadline(),
                next - self.expect.t0
            );
            self.now = next;
            match report {
                Some((agent, at)) if at == next => {
                    self.cpu.insert(agent.clone(), at + 1_000);
                    let quiet = self.is_quiet(&agent, at);
                    self.step(Event::ProcessQuiet { agent, quiet });
                }
                Some(_) | None => self.step(Event::DeadlinePassed),
            }
        }
        self.now = end;
    }

    fn is_quiet(&self, agent: &AgentKey, at: i64) -> bool {
        let judged = self
            .expect
            .agents
            .values()
            .find(|judged| judged.pid == agent.pid);
        let since = judged.and_then(|judged| judged.quiet);
        since.is_some_and(|since| at - 1_000 >= self.expect.t0 + since)
    }

    fn moment(&mut self, moment: &Moment) {
        match &moment.what {
            What::File { name, content } => self.file(name, content.as_deref()),
            What::Hook(hook) => self.hook(hook),
            What::Line { path, line } => {
                self.transcripts
                    .entry(path.clone())
                    .or_default()
                    .push(line.clone());
                let watching: Vec<AgentKey> = self
                    .readers
                    .iter()
                    .filter(|(_, reader)| reader.watching && self.reads(reader, path))
                    .map(|(agent, _)| agent.clone())
                    .collect();
                for agent in watching {
                    self.deliver(&agent);
                }
            }
        }
    }

    fn file(&mut self, name: &str, content: Option<&str>) {
        let (pid, status) = match session_file::entry(name) {
            Entry::Status { pid } => (pid, true),
            Entry::Key { pid } => (pid, false),
            Entry::Other => return,
        };
        let agent = self.key(pid);
        match (status, content) {
            (true, Some(text)) => {
                self.found(pid);
                let at = self.stamp();
                match session_file::read(text.as_bytes(), at) {
                    Ok(reading) => self.step(Event::FileRead {
                        agent,
                        at,
                        file: reading.file,
                    }),
                    Err(error) => self.step(Event::FileUnreadable {
                        agent,
                        why: Arc::from(error.to_string()),
                    }),
                }
            }
            (true, None) => {
                self.step(Event::FileRemoved {
                    agent: agent.clone(),
                });
                // Only of judged agents it is written down when they died; the others go with their file.
                if !self.expect.agents.values().any(|judged| judged.pid == pid) {
                    self.step(Event::ProcessDied { agent });
                }
            }
            (false, Some(_)) => {
                self.found(pid);
                self.step(Event::KeyFileSeen { agent });
            }
            (false, None) => {}
        }
    }

    /// The server sees a process at the latest when something speaks of it.
    fn found(&mut self, pid: u32) {
        if self.alive.contains_key(&pid) {
            return;
        }
        self.alive.insert(pid, true);
        let process = Process {
            pane: self.panes.get(&pid).cloned(),
            parent_agent: self.parents.get(&pid).map(|&parent| self.key(parent)),
            cwd: None,
            hooks: None,
        };
        let agent = self.key(pid);
        self.step(Event::ProcessFound { agent, process });
    }

    fn hook(&mut self, recorded: &Hook) {
        if let Some(pid) = recorded.claude_pid {
            self.found(pid);
        }
        let wall_ms = recorded.stamp;
        let headers = Headers {
            event: Some(recorded.event.clone()),
            pid: recorded.claude_pid,
            start: recorded.claude_pid.map(|pid| self.key(pid).start),
            pane: recorded
                .tmux_pane
                .as_ref()
                .and_then(|pane| hook::parse_pane(pane.as_bytes())),
            tmux: recorded
                .tmux
                .as_ref()
                .and_then(|tmux| TmuxEnv::parse(tmux.as_bytes())),
            stamp: Some(HookStamp {
                boot_ns: stamp(wall_ms).boot.0,
                boot_id: BOOT.to_owned(),
                wall_ms,
            }),
            id: Some(recorded.id.as_str().into()),
            job: recorded.job,
        };
        // As it comes over the wire.
        let pairs = headers.pairs();
        let headers = Headers::read(|wanted| {
            let found = pairs.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value.as_bytes())
        });
        let here = Here {
            host: &self.host,
            boot_id: BOOT,
            now: self.stamp(),
            agent_start: None,
            tmux_start: Some(SOME_START),
            zone: &self.zone,
        };
        let received = hook::read(&headers, Some(recorded.payload.as_bytes()), &here)
            .expect("every recorded hook can be read");
        self.step(Event::HookFired {
            hook: Box::new(received.hook),
        });
    }

    /// One event into the fleet, its effects carried out, and everything shown written down.
    fn step(&mut self, event: Event) {
        if let Event::ProcessDied { agent } = &event {
            self.cpu.remove(agent);
            self.alive.insert(agent.pid, false);
        }
        let at = self.stamp();
        let what = journal::What::Evidence(event.clone());
        self.journal.push(Record { at, what });
        let effects = self.fleet.step(at, event);
        self.look();
        for effect in effects {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::ReadTranscript { agent, request } => {
                let ok = self.deliver(&agent);
                self.step(Event::TranscriptRead { agent, request, ok });
            }
            Effect::WatchTranscript { agent, on } => {
                self.readers.entry(agent.clone()).or_default().watching = on;
                if on {
                    self.deliver(&agent);
                }
            }
            Effect::UseTranscript {
                agent,
                path,
                conversation,
            } => {
                let reader = self.readers.entry(agent.clone()).or_default();
                let before = (reader.path.clone(), reader.conversation.clone());
                reader.path = path.map(|path| path.to_string());
                reader.conversation = conversation.map(|id| id.to_string());
                if before != (reader.path.clone(), reader.conversation.clone()) {
                    reader.offset = 0;
                    reader.lines = transcript::Lines::new();
                }
                if reader.watching {
                    self.deliver(&agent);
                }
            }
            Effect::WatchCpu { agent, on } => {
                if on {
                    self.cpu.entry(agent).or_insert(self.now + 1_000);
                } else {
                    self.cpu.remove(&agent);
                }
            }
            Effect::Notify {
                agent,
                episode,
                silent,
                ..
            } => {
                let at = self.now - self.expect.t0;
                self.pushed.push((agent.clone(), episode));
                if let Some(seen) = self.seen_of(&agent) {
                    if silent {
                        seen.silent += 1;
                    } else {
                        seen.pushes += 1;
                        seen.pushed_at.push(at);
                    }
                }
            }
            Effect::Withdraw { agent, episode } => {
                let shown = self
                    .pushed
                    .iter()
                    .any(|pushed| *pushed == (agent.clone(), episode));
                if let Some(seen) = self.seen_of(&agent).filter(|_| shown) {
                    seen.withdrawn += 1;
                }
            }
            Effect::Persist { .. } | Effect::Forget { .. } | Effect::Record { .. } => {}
        }
    }

    /// Is `path` the transcript this reader follows?
    fn reads(&self, reader: &Reader, path: &str) -> bool {
        match (&reader.path, &reader.conversation) {
            (Some(wanted), _) => wanted == path,
            (None, Some(id)) => path.ends_with(&format!("/{id}.jsonl")),
            (None, None) => false,
        }
    }

    /// Gives an agent the lines of its transcript that it has not had. False: there is no such file.
    fn deliver(&mut self, agent: &AgentKey) -> bool {
        let Some(reader) = self.readers.get(agent) else {
            return false;
        };
        let found = self
            .transcripts
            .iter()
            .find(|(path, _)| self.reads(reader, path));
        let Some((_, lines)) = found else {
            return false;
        };
        let new: Vec<String> = lines[reader.offset.min(lines.len())..].to_vec();
        let mut facts = Vec::new();
        if let Some(reader) = self.readers.get_mut(agent) {
            reader.offset += new.len();
            for line in &new {
                facts.extend(reader.lines.push_facts(format!("{line}\n").as_bytes()));
            }
        }
        if !facts.is_empty() {
            self.step(Event::TranscriptGrew {
                agent: agent.clone(),
                facts,
            });
        }
        true
    }

    fn seen_of(&mut self, agent: &AgentKey) -> Option<&mut Seen> {
        let judged = &self.expect.agents;
        let letter = judged.iter().find(|(_, judged)| judged.pid == agent.pid)?.0;
        self.seen.get_mut(letter)
    }

    fn look(&mut self) {
        let items = self.fleet.items();
        let at = self.now - self.expect.t0;
        for (letter, judged) in &self.expect.agents {
            let key = self.key(judged.pid);
            let item = items.iter().find(|item| item.agent.as_ref() == Some(&key));
            let shown = item.map_or_else(Shown::none, shown);
            let seen = self
                .seen
                .get_mut(letter)
                .expect("one for each judged agent");
            if seen.shown.last().map_or(&Shown::none(), |(_, last)| last) != &shown {
                seen.shown.push((at, shown));
            }
        }
    }
}

fn tab_of(pane: &PaneKey) -> TabId {
    TabId::from(format!("tab-{}", pane.pane))
}

/// Both clocks of a recording are unix time.
fn stamp(wall_ms: i64) -> Stamp {
    Stamp {
        boot: Time::from_ms(u64::try_from(wall_ms).expect("after 1970")),
        wall_ms,
    }
}

/// The first whole millisecond at which `time` has come.
fn up_to_ms(time: Time) -> i64 {
    i64::try_from(time.0.div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

fn shown(item: &Item) -> Shown {
    let mut labels: Vec<String> = item.label.iter().map(ToString::to_string).collect();
    if item.presence == Presence::Suspended {
        labels.push("suspended".to_owned());
    }
    let mut ask_text = String::new();
    let (word, what) = match &item.badge {
        None => ("none", None),
        Some(CoreBadge::Idle) => ("idle", None),
        Some(CoreBadge::Unknown) => ("unknown", None),
        Some(CoreBadge::Busy(doing)) => {
            labels.extend(doing.compacting.then(|| "compacting".to_owned()));
            labels.extend(doing.retrying.then(|| "retrying".to_owned()));
            labels.extend(counted(doing.agents, "agent"));
            ("busy", None)
        }
        Some(CoreBadge::NeedsInput(ask)) => {
            ask_text = ask.text.as_deref().unwrap_or_default().to_owned();
            let kind = match ask.kind {
                AskKind::Permission => "permission",
                AskKind::Question => "question",
                AskKind::Plan => "plan",
                AskKind::Form => "form",
                AskKind::Dialog => "dialog",
                AskKind::Startup => "startup",
            };
            ("needs-input", Some(kind.to_owned()))
        }
        Some(CoreBadge::Review(outcome)) => {
            labels.extend(counted(outcome.shells, "shell"));
            labels.extend(outcome.wakes_at_ms.map(|_| "wakes".to_owned()));
            let what = match &outcome.error {
                Some(kind) => format!("failed({kind})"),
                None => "finished".to_owned(),
            };
            ("review", Some(what))
        }
    };
    Shown {
        badge: Badge {
            word: word.to_owned(),
            what,
        },
        labels,
        ask: ask_text,
    }
}

fn counted(count: u32, thing: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {thing}")),
        more => Some(format!("{more} {thing}s")),
    }
}
