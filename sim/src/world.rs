//! Runs one history: brings the signals to a fleet as the server would, does what the fleet asks for, and
//! writes down what was shown. Checks what must hold after every single event.
//!
//! Never looks into the fleet: events in, effects and items out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use purplemux_core::event::{PaneFacts, Persisted, TabFacts, WorkspaceFacts};
use purplemux_core::view::{AskKind, Presence};
use purplemux_core::witness::{Hook, Process, SessionFile, TranscriptFact};
use purplemux_core::{
    AgentKey, Badge, ConversationId, Effect, EpisodeId, Event, Fleet, HookId, HostId, Item,
    PaneKey, Stamp, TabId, Time, TmuxServer, WorkspaceId,
};

use crate::adversary::Adversary;
use crate::claude::{BEGIN, BOOT_WALL_MS, conversation_id};
use crate::truth::{File, Id, Played, Role, Row, Signal, Truth, What};

/// What the row of the tab showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    None,
    Idle,
    Busy,
    Ask(AskKind),
    Review(Option<Arc<str>>),
    Unknown,
}

/// The row from a moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Since when, milliseconds after boot.
    pub at: u64,
    /// The badge.
    pub shown: Shown,
    /// What is asked.
    pub text: Option<Arc<str>>,
    /// The episode.
    pub episode: Option<EpisodeId>,
}

/// A notification or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// When.
    pub at: u64,
    /// For which episode.
    pub episode: EpisodeId,
    /// `None`: withdrawn.
    pub silent: Option<bool>,
}

/// What came of a run.
#[derive(Debug)]
pub struct Run {
    /// Every change of each row, in the order of the truths.
    pub seen: Vec<Vec<Seen>>,
    /// Every notification.
    pub alerts: Vec<Alert>,
    /// When each signal first arrived.
    pub arrived: Vec<Option<u64>>,
    /// When a transcript could not be read.
    pub failed: Vec<u64>,
    /// When which conversation's transcript was read to its end, whether or not it had grown.
    pub read: Vec<(u64, usize)>,
    /// Which episodes a start of the server found, and when.
    pub found: Vec<(u64, EpisodeId)>,
    /// What broke an invariant.
    pub broken: Vec<String>,
    /// Every event as it was given, for a person to read.
    pub log: Vec<(u64, String)>,
    /// Until when it was watched.
    pub end: u64,
}

#[derive(Debug)]
enum Happening {
    Signal(Id),
    Hook(Id),
    ReadFile(usize),
    Torn(usize),
    Lines(usize),
    /// Questions end with the life of the server that asked them.
    Answer {
        process: usize,
        request: u64,
        life: usize,
    },
    Cpu {
        process: usize,
        life: usize,
    },
    Down,
    Up,
    /// The state of a process is read.
    Poll {
        process: usize,
    },
    Recovered {
        life: usize,
    },
    End,
}

struct World<'a> {
    signals: &'a [Option<Signal>],
    played: &'a Played,
    adversary: &'a Adversary,
    fleet: Fleet,
    now: u64,
    waiting: BinaryHeap<Reverse<(u64, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    sequence: u64,
    run: Run,
    keep_log: bool,

    down: bool,
    life: usize,
    questions: u64,
    recovering: bool,
    /// When this life of the server began, and whether anything newer than that has come.
    up_at: u64,
    news: BTreeSet<Row>,
    /// Pid and start of each process of the history.
    keys: Vec<AgentKey>,
    /// The newest write of each process that a reader would find now.
    files: BTreeMap<usize, (Id, File)>,
    unread: BTreeMap<usize, Vec<Id>>,
    key_files: BTreeSet<usize>,
    alive: BTreeSet<usize>,
    stopped: BTreeSet<usize>,
    told_stopped: BTreeSet<usize>,
    /// Whose status has been read.
    met: BTreeSet<usize>,
    quiet: BTreeSet<usize>,
    watched_cpu: BTreeSet<usize>,
    spool: Vec<Id>,
    /// Lines that can be read in each transcript.
    transcripts: BTreeMap<usize, Vec<Id>>,
    /// How many of them have been given to this fleet.
    given: BTreeMap<usize, usize>,
    follows: BTreeMap<usize, usize>,
    watched: BTreeSet<usize>,
    persisted: BTreeMap<AgentKey, Persisted>,
    /// The badge that was last committed, also where another is kept in its stead.
    committed: BTreeMap<AgentKey, Badge>,
    announced: BTreeMap<EpisodeId, bool>,
    withdrawn: BTreeSet<EpisodeId>,
    found_by_recovery: BTreeSet<EpisodeId>,
    kept: BTreeSet<EpisodeId>,
}

/// Brings the signals to a new fleet.
#[must_use]
pub fn run(played: &Played, adversary: &Adversary, end: u64, keep_log: bool) -> Run {
    let host = host();
    let signals = &played.signals;
    let mut keys: Vec<AgentKey> = Vec::new();
    let born = |process: usize| {
        let mut signals = signals.iter().flatten();
        let found = signals.find(|s| matches!(s.what, What::Found { process: p } if p == process));
        // One that died before it was found never was.
        found.map_or(90_000 + process_number(process), |signal| signal.at)
    };
    for (place, birth) in played.births.iter().enumerate() {
        let number = u32::try_from(place).unwrap_or(u32::MAX);
        let before = played.births[..place]
            .iter()
            .rposition(|before| before.pane == birth.pane && before.parent.is_none());
        let pid = match before {
            Some(before) if birth.same_pid => keys[before].pid,
            Some(_) | None => 4000 + number,
        };
        keys.push(AgentKey {
            host: host.clone(),
            pid,
            // In clock ticks, as field 22 of its stat; found a moment later.
            start: born(place) / 10 - 2,
        });
    }
    let mut world = World {
        signals,
        played,
        adversary,
        fleet: Fleet::new(host),
        now: BEGIN,
        waiting: BinaryHeap::new(),
        happenings: BTreeMap::new(),
        sequence: 0,
        run: Run {
            seen: vec![
                vec![Seen {
                    at: 0,
                    shown: Shown::None,
                    text: None,
                    episode: None,
                }];
                played.truths.len()
            ],
            alerts: Vec::new(),
            arrived: vec![None; signals.len()],
            failed: Vec::new(),
            read: Vec::new(),
            found: Vec::new(),
            broken: Vec::new(),
            log: Vec::new(),
            end,
        },
        keep_log,
        down: false,
        life: 0,
        questions: 0,
        recovering: false,
        up_at: 0,
        news: BTreeSet::new(),
        keys,
        files: BTreeMap::new(),
        unread: BTreeMap::new(),
        key_files: BTreeSet::new(),
        alive: BTreeSet::new(),
        stopped: BTreeSet::new(),
        told_stopped: BTreeSet::new(),
        met: BTreeSet::new(),
        quiet: BTreeSet::new(),
        watched_cpu: BTreeSet::new(),
        spool: Vec::new(),
        transcripts: BTreeMap::new(),
        given: BTreeMap::new(),
        follows: BTreeMap::new(),
        watched: BTreeSet::new(),
        persisted: BTreeMap::new(),
        committed: BTreeMap::new(),
        announced: BTreeMap::new(),
        withdrawn: BTreeSet::new(),
        found_by_recovery: BTreeSet::new(),
        kept: BTreeSet::new(),
    };
    world.begin();
    world.go(end);
    world.run
}

fn process_number(process: usize) -> u64 {
    10 * u64::try_from(process).unwrap_or(0)
}

fn host() -> HostId {
    HostId::from("here")
}

fn tab(number: usize) -> TabId {
    TabId::from(format!("t{}", number + 1))
}

fn pane(number: usize) -> PaneKey {
    PaneKey {
        server: TmuxServer {
            host: host(),
            pid: 100,
            start: 5,
        },
        pane: u32::try_from(number).unwrap_or(0) + 1,
    }
}

fn transcript(number: usize) -> Arc<str> {
    Arc::from(format!(
        "/home/dev/.claude/projects/p/conversation-{number}.jsonl"
    ))
}

impl World<'_> {
    fn at(&mut self, at: u64, happening: Happening) {
        self.sequence += 1;
        self.waiting.push(Reverse((at, self.sequence)));
        self.happenings.insert(self.sequence, happening);
    }

    fn begin(&mut self) {
        let signals = self.signals;
        for (id, signal) in signals.iter().enumerate() {
            let Some(signal) = signal else {
                continue;
            };
            let at = signal.at;
            if matches!(signal.what, What::Hook { .. }) {
                for arrives in self.adversary.hook(id, at) {
                    self.at(arrives, Happening::Hook(id));
                }
            } else {
                self.at(at, Happening::Signal(id));
            }
        }
        let adversary = self.adversary;
        for stretch in &adversary.down {
            self.at(stretch.from, Happening::Down);
            self.at(stretch.to, Happening::Up);
        }
        let end = self.run.end;
        self.at(end, Happening::End);
        self.layout();
        // The first start finds no process: its recovery is over at once.
        self.step(Event::RecoveryEnded, None);
    }

    fn go(&mut self, end: u64) {
        let mut idle_deadlines = 0;
        loop {
            let due = if self.down {
                None
            } else {
                self.fleet.deadline()
            };
            let next = self.waiting.peek().map(|Reverse((at, _))| *at);
            // A timer never fires early: whole milliseconds, rounded up.
            let due = due.map(|(time, why)| (time.0.div_ceil(1_000_000), why));
            if let Some((at, why)) = due
                && next.is_none_or(|next| at <= next)
            {
                let before = self.fleet.deadline();
                self.now = self.now.max(at);
                if self.now > end {
                    return;
                }
                self.step(Event::DeadlinePassed, None);
                if self.fleet.deadline() == before {
                    idle_deadlines += 1;
                    if idle_deadlines > 3 {
                        self.broken(format!("the deadline {why:?} passed and stands still"));
                        return;
                    }
                } else {
                    idle_deadlines = 0;
                }
                continue;
            }
            let Some(Reverse((at, key))) = self.waiting.pop() else {
                return;
            };
            self.now = self.now.max(at);
            let Some(happening) = self.happenings.remove(&key) else {
                continue;
            };
            if matches!(happening, Happening::End) {
                return;
            }
            self.happens(happening);
            if self.run.broken.len() > 5 {
                return;
            }
        }
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::Signal(id) => self.signal(id),
            Happening::Hook(id) => {
                let mut hung = self.adversary.hung.iter();
                if self.down || hung.any(|stretch| stretch.holds(self.now)) {
                    self.spool.push(id);
                } else {
                    self.hook(id);
                }
            }
            Happening::ReadFile(process) => self.read_file(process),
            Happening::Torn(process) => {
                if !self.down {
                    let agent = self.keys[process].clone();
                    let why = Arc::from("torn");
                    let before = self.rows_seen();
                    self.step(Event::FileUnreadable { agent, why }, None);
                    if self.rows_seen() != before {
                        self.broken("a file that could not be read changed a row".to_owned());
                    }
                }
            }
            Happening::Lines(process) => {
                if !self.down && self.watched.contains(&process) {
                    self.give_lines(process);
                }
            }
            Happening::Answer {
                process,
                request,
                life,
            } => {
                if !self.down && life == self.life {
                    self.answer(process, request);
                }
            }
            Happening::Cpu { process, life } => {
                if !self.down && life == self.life && self.watched_cpu.contains(&process) {
                    let agent = self.keys[process].clone();
                    let quiet = self.quiet.contains(&process);
                    self.questions += 1;
                    if !self.adversary.fails(self.questions) {
                        self.step(Event::ProcessQuiet { agent, quiet }, None);
                    }
                    let again = self.now + 1000;
                    self.at(again, Happening::Cpu { process, life });
                }
            }
            Happening::Down => {
                self.down = true;
                self.note("the server ends".to_owned());
                self.watched.clear();
                self.watched_cpu.clear();
            }
            Happening::Up => self.up(),
            Happening::Poll { process } => {
                let stopped = self.stopped.contains(&process);
                let told = self.told_stopped.contains(&process);
                if !self.down && self.alive.contains(&process) && stopped != told {
                    self.tell_stopped(process, stopped);
                }
            }
            Happening::Recovered { life } => {
                if !self.down && self.recovering && life == self.life {
                    self.step(Event::RecoveryEnded, None);
                    self.recovering = false;
                }
            }
            Happening::End => {}
        }
    }

    fn signal(&mut self, id: Id) {
        let Some(signal) = &self.signals[id] else {
            return;
        };
        let soon = self.adversary.soon(id);
        match &signal.what {
            What::Hook { .. } => {}
            What::Wrote { process, file } => {
                let process = *process;
                self.files.insert(process, (id, file.clone()));
                let unread = self.unread.entry(process).or_default();
                let first = unread.is_empty();
                unread.push(id);
                if first && !self.down {
                    let at = self.now + self.adversary.file(id, self.met.contains(&process));
                    if self.adversary.tears(id) {
                        self.at(self.now, Happening::Torn(process));
                    }
                    self.at(at, Happening::ReadFile(process));
                }
            }
            What::Removed { process } => {
                let process = *process;
                self.files.remove(&process);
                self.unread.remove(&process);
                self.key_files.remove(&process);
                let agent = self.keys[process].clone();
                self.step_up(Event::FileRemoved { agent }, id);
            }
            What::Line { conversation, .. } => {
                let conversation = *conversation;
                self.transcripts.entry(conversation).or_default().push(id);
                let readers: Vec<usize> = self.watched.iter().copied().collect();
                for process in readers {
                    if self.follows.get(&process) == Some(&conversation) {
                        let at = self.now + soon;
                        self.at(at, Happening::Lines(process));
                    }
                }
            }
            What::Found { process } => {
                self.alive.insert(*process);
                let event = self.found(*process);
                self.step_up(event, id);
            }
            What::KeyFile { process } => {
                self.key_files.insert(*process);
                let agent = self.keys[*process].clone();
                self.step_up(Event::KeyFileSeen { agent }, id);
            }
            What::Quiet { process, quiet } => {
                if *quiet {
                    self.quiet.insert(*process);
                } else {
                    self.quiet.remove(process);
                }
            }
            What::Stopped { process, stopped } => {
                let (process, stopped) = (*process, *stopped);
                if stopped {
                    self.stopped.insert(process);
                } else {
                    self.stopped.remove(&process);
                }
                // Read from /proc twice a second; what lasts less may be missed.
                let phase = u64::try_from(process).unwrap_or(0) * 37 % 500;
                let at = (self.now / 500 + 1) * 500 + phase;
                self.at(at, Happening::Poll { process });
            }
            What::Died { process } => {
                let process = *process;
                self.alive.remove(&process);
                self.watched.remove(&process);
                self.watched_cpu.remove(&process);
                let agent = self.keys[process].clone();
                self.step_up(Event::ProcessDied { agent }, id);
            }
            What::Looked { pane } => {
                let row = self.row(Row::Tab(*pane));
                if let (Some(agent), Some(episode)) = (row.agent, row.episode)
                    && matches!(row.badge, Some(Badge::Review(_)))
                    // Right after a start the page may still show what was; reading that reads nothing newer.
                    && (self.up_at == 0 || self.now > self.up_at + 2500)
                {
                    self.step_up(Event::Seen { agent, episode }, id);
                }
            }
        }
    }

    fn step_up(&mut self, event: Event, id: Id) {
        if !self.down {
            self.step(event, Some(id));
        }
    }

    fn tell_stopped(&mut self, process: usize, stopped: bool) {
        if stopped {
            self.told_stopped.insert(process);
        } else {
            self.told_stopped.remove(&process);
        }
        let agent = self.keys[process].clone();
        self.step(Event::ProcessStopped { agent, stopped }, None);
    }

    fn found(&self, process: usize) -> Event {
        let birth = &self.played.births[process];
        Event::ProcessFound {
            agent: self.keys[process].clone(),
            process: Process {
                pane: birth.pane.map(pane),
                parent_agent: birth.parent.map(|parent| self.keys[parent].clone()),
                cwd: Some(Arc::from("/home/dev/p")),
                hooks: Some(true),
            },
        }
    }

    fn stamp(&self, at: u64) -> Stamp {
        let wall = BOOT_WALL_MS + i64::try_from(at).unwrap_or(i64::MAX);
        Stamp {
            boot: Time::from_ms(at),
            wall_ms: wall + self.adversary.wall_off(at),
        }
    }

    /// A wall time that Claude wrote, put on the boot clock by the reader, as the server does.
    fn read_back(&self, written: u64) -> Stamp {
        let wall_ms = self.stamp(written).wall_ms;
        let now = self.stamp(self.now);
        let mut ago = now.wall_ms - wall_ms;
        if self.now < written + 1000 {
            // Nobody sets the clock between a write and its reading by the watch.
            ago = i64::try_from(self.now - written).unwrap_or(0);
        }
        let now_ms = i64::try_from(self.now).unwrap_or(i64::MAX);
        let boot = u64::try_from(now_ms - ago.max(0)).unwrap_or(0);
        Stamp {
            boot: Time::from_ms(boot),
            wall_ms,
        }
    }

    fn hook(&mut self, id: Id) {
        let Some(Signal {
            at,
            what:
                What::Hook {
                    process,
                    lane,
                    conversation: number,
                    prompt,
                    kind,
                },
        }) = &self.signals[id]
        else {
            return;
        };
        let birth = &self.played.births[*process];
        let (no_process, no_pane) = self.adversary.nameless(id);
        // A version without a file is known by nothing else.
        let (no_process, no_pane) = (no_process && !birth.old, no_pane && !birth.old);
        let hook = Hook {
            id: Some(HookId::from(format!("hook-{id}"))),
            at: self.stamp(*at),
            agent: (!no_process).then(|| self.keys[*process].clone()),
            pane: birth.pane.filter(|_| !no_pane).map(pane),
            conversation: Some(conversation_id(*number)),
            transcript: Some(transcript(*number)),
            cwd: Some(Arc::from("/home/dev/p")),
            agent_id: lane.clone(),
            prompt_id: prompt.map(|number| Arc::from(format!("prompt-{number}"))),
            job: birth.pane.is_none(),
            kind: kind.clone(),
        };
        let hook = Box::new(hook);
        self.step(Event::HookFired { hook }, Some(id));
    }

    fn read_file(&mut self, process: usize) {
        let unread = self.unread.remove(&process).unwrap_or_default();
        if self.down {
            return;
        }
        let Some((id, file)) = self.files.get(&process).cloned() else {
            return;
        };
        for id in unread {
            self.run.arrived[id].get_or_insert(self.now);
        }
        let written = self.signals[id]
            .as_ref()
            .map_or(self.now, |signal| signal.at);
        let old = self.played.births[process].old;
        let job = |number: usize| Arc::from(format!("job-{number}"));
        let event = Event::FileRead {
            agent: self.keys[process].clone(),
            at: self.read_back(written),
            file: SessionFile {
                conversation: Some(conversation_id(file.conversation)),
                status: file.status,
                waiting_for: file.waiting_for.clone(),
                status_since: file.status.map(|_| self.read_back(file.since)),
                kind: file.kind,
                parked_job: file.parked.map(job),
                job: file.job.map(job),
                cwd: Some(Arc::from("/home/dev/p")),
                version: Some(Arc::from(if old { "2.1.90" } else { "2.1.332" })),
                name: None,
            },
        };
        if file.status.is_some() {
            self.met.insert(process);
        }
        self.follows.entry(process).or_insert(file.conversation);
        self.step(event, Some(id));
    }

    fn is_blind(&self) -> bool {
        self.adversary
            .blind
            .iter()
            .any(|stretch| stretch.holds(self.now))
    }

    fn give_lines(&mut self, process: usize) {
        if self.is_blind() {
            return;
        }
        let Some(&number) = self.follows.get(&process) else {
            return;
        };
        self.run.read.push((self.now, number));
        let lines = self.transcripts.entry(number).or_default().clone();
        let given = self.given.entry(number).or_insert(0);
        let new: Vec<Id> = lines[*given..].to_vec();
        *given = lines.len();
        if new.is_empty() {
            return;
        }
        let facts = new
            .iter()
            .filter_map(|id| match &self.signals[*id] {
                Some(Signal {
                    what:
                        What::Line {
                            written,
                            sidechain,
                            kind,
                            ..
                        },
                    ..
                }) => Some(TranscriptFact {
                    written_ms: Some(self.stamp(*written).wall_ms),
                    sidechain: *sidechain,
                    kind: kind.clone(),
                }),
                Some(_) | None => None,
            })
            .collect();
        for id in &new {
            self.run.arrived[*id].get_or_insert(self.now);
        }
        let agent = self.keys[process].clone();
        self.step(Event::TranscriptGrew { agent, facts }, None);
    }

    fn answer(&mut self, process: usize, request: u64) {
        if self.down {
            return;
        }
        self.questions += 1;
        let ok = !self.is_blind() && !self.adversary.fails(self.questions);
        if !ok {
            self.run.failed.push(self.now);
        }
        if ok {
            self.give_lines(process);
        }
        let agent = self.keys[process].clone();
        self.step(Event::TranscriptRead { agent, request, ok }, None);
    }

    fn layout(&mut self) {
        let tab_facts = |number| TabFacts {
            id: tab(number),
            name: None,
            cwd: Arc::from("/home/dev/p"),
            ended: false,
        };
        let workspace = WorkspaceFacts {
            id: WorkspaceId::from("w1"),
            name: Arc::from("one"),
            dir: Arc::from("/home/dev/p"),
            tabs: (0..self.played.panes).map(tab_facts).collect(),
        };
        let workspaces = vec![workspace];
        self.step(Event::LayoutChanged { workspaces }, None);
        let facts = |number: usize| PaneFacts {
            pane: pane(number),
            session: Arc::from(tab(number).as_str()),
            command: Arc::from("claude"),
            path: Arc::from("/home/dev/p"),
            title: Arc::from("claude"),
            dead: false,
        };
        let panes = (0..self.played.panes).map(facts).collect();
        self.step(Event::PanesListed { panes }, None);
    }

    /// A new life of the server: what was kept first, then every witness is asked once, then the spool.
    fn up(&mut self) {
        self.down = false;
        self.life += 1;
        self.recovering = true;
        self.up_at = self.now;
        self.news.clear();
        self.note("the server starts".to_owned());
        self.fleet = Fleet::new(host());
        self.given.clear();
        self.follows.clear();
        self.unread.clear();
        self.told_stopped.clear();
        // Ids are new with each life of the server, but for the episodes that were kept.
        let kept: BTreeSet<EpisodeId> = self
            .persisted
            .values()
            .filter_map(|kept| kept.episode)
            .collect();
        self.kept.clone_from(&kept);
        self.announced.retain(|episode, _| kept.contains(episode));
        self.withdrawn.clear();
        self.found_by_recovery.clear();
        for (agent, persisted) in self.persisted.clone() {
            self.committed
                .insert(agent.clone(), persisted.badge.clone());
            self.step(Event::Restored { agent, persisted }, None);
        }
        self.layout();
        for process in 0..self.keys.len() {
            let agent = self.keys[process].clone();
            if !self.alive.contains(&process) {
                if self.persisted.contains_key(&agent) {
                    self.step(Event::ProcessDied { agent }, None);
                }
                continue;
            }
            let found = self.found(process);
            self.step(found, None);
            if self.key_files.contains(&process) {
                let agent = agent.clone();
                self.step(Event::KeyFileSeen { agent }, None);
            }
            if self.stopped.contains(&process) {
                self.tell_stopped(process, true);
            }
            self.read_file(process);
        }
        let mut spool = std::mem::take(&mut self.spool);
        spool.sort_by_key(|id| self.signals[*id].as_ref().map_or(0, |signal| signal.at));
        for id in spool {
            self.hook(id);
        }
        // What happened while nobody watched has arrived by being found.
        for (id, signal) in self.signals.iter().enumerate() {
            if let Some(signal) = signal
                && signal.at <= self.now
                && !matches!(
                    signal.what,
                    What::Hook { .. } | What::Line { .. } | What::Looked { .. }
                )
            {
                self.run.arrived[id].get_or_insert(self.now);
            }
        }
        let at = self.now + 200;
        let life = self.life;
        self.at(at, Happening::Recovered { life });
    }

    // ---- one step and what must hold after it ------------------------------------------------------

    fn step(&mut self, event: Event, id: Option<Id>) {
        if let Some(id) = id {
            self.run.arrived[id].get_or_insert(self.now);
            let at = self.signals[id].as_ref().map_or(0, |signal| signal.at);
            if at > self.up_at
                && let Some(row) = self.concerns(id)
            {
                self.news.insert(row);
            }
        }
        if self.keep_log {
            let line = told(&event);
            self.note(line);
        }
        let dead = if let Event::ProcessDied { agent } = &event {
            Some(agent.clone())
        } else {
            None
        };
        let now = self.stamp(self.now);
        let effects = self.fleet.step(now, event);
        if let Some(agent) = dead {
            self.dead_shows_nothing(&agent);
        }
        for effect in effects {
            self.effect(effect);
        }
        self.look();
    }

    fn note(&mut self, line: String) {
        if self.keep_log {
            self.run.log.push((self.now, line));
        }
    }

    fn broken(&mut self, what: String) {
        let at = self.now;
        self.note(format!("BROKEN {what}"));
        self.run.broken.push(format!("at {at}: {what}"));
    }

    /// The row that a signal is about at its time; none for what no row shows.
    fn concerns(&self, id: Id) -> Option<Row> {
        let cast = self.played.cast_of(id);
        let at = self.signals[id].as_ref().map_or(0, |signal| signal.at);
        let truths = || self.played.truths.iter();
        // A job has its row from the moment on at which its pane was left (R08).
        let begun = |truth: &&Truth| {
            let mut entries = truth.entries.iter().filter(|entry| entry.cast == cast);
            entries.any(|entry| (1..=at).contains(&entry.from))
        };
        let ever = |truth: &&Truth| truth.entries.iter().any(|entry| entry.cast == cast);
        let truth = truths().rfind(begun).or_else(|| truths().find(ever))?;
        Some(truth.row)
    }

    fn row(&self, row: Row) -> Item {
        let items = self.fleet.items();
        find_row(&items, row, &self.keys)
            .cloned()
            .unwrap_or_else(empty_row)
    }

    fn dead_shows_nothing(&mut self, agent: &AgentKey) {
        let items = self.fleet.items();
        let ghost = items
            .iter()
            .find(|item| item.agent.as_ref() == Some(agent) && item.badge.is_some());
        if let Some(ghost) = ghost {
            let badge = ghost.badge.clone();
            self.broken(format!("a dead process shows {badge:?}"));
        }
    }

    fn look(&mut self) {
        let items = self.fleet.items();
        let truths = &self.played.truths;
        let empty = empty_row();
        let mut episodes: BTreeSet<EpisodeId> = BTreeSet::new();
        let mut above = None;
        for (place, truth) in truths.iter().enumerate() {
            let row = find_row(&items, truth.row, &self.keys).unwrap_or(&empty);
            if let Row::Tab(_) = truth.row {
                above = above.max(urgency(row));
            }
            self.look_at(place, truth.row, row);
            if let Some(episode) = row.episode
                && !episodes.insert(episode)
            {
                self.broken(format!("{episode:?} is in two rows"));
            }
        }
        for item in &items {
            let process = item.agent.as_ref().and_then(|agent| self.process_of(agent));
            if let Some(process) = process
                && self.played.births[process].role == Role::Nothing
                && (item.badge.is_some() || item.tab.is_none())
                // What was kept is unknown until it is looked for.
                && !(self.recovering && item.badge == Some(Badge::Unknown))
            {
                let (id, badge) = (&item.id, &item.badge);
                self.broken(format!(
                    "process {process} is no session, row {id} shows {badge:?}"
                ));
            }
        }
        let workspaces = self.fleet.workspaces();
        let shows = workspaces.first().and_then(|view| view.badge.as_ref());
        let shows = rank(shows);
        if shows != above.unwrap_or(0) {
            self.broken(format!(
                "the workspace shows {shows}, its most urgent tab {above:?}"
            ));
        }
    }

    /// How many changes the rows have had.
    fn rows_seen(&self) -> usize {
        self.run.seen.iter().map(Vec::len).sum()
    }

    fn look_at(&mut self, place: usize, name: Row, row: &Item) {
        let shown = shown(row.badge.as_ref());
        let text = match &row.badge {
            Some(Badge::NeedsInput(ask)) => ask.text.clone(),
            Some(Badge::Idle | Badge::Busy(_) | Badge::Review(_) | Badge::Unknown) | None => None,
        };
        let waits = matches!(shown, Shown::Ask(_) | Shown::Review(_));
        if waits != row.episode.is_some() {
            let episode = row.episode;
            self.broken(format!("{shown:?} with episode {episode:?}"));
        }
        if row.attention && (!waits || row.presence == Presence::Suspended) {
            let presence = row.presence;
            self.broken(format!(
                "{shown:?} of a {presence:?} process wants attention"
            ));
        }
        if let Some(agent) = &row.agent
            && !matches!(shown, Shown::None | Shown::Unknown)
        {
            let kept = self.committed.get(agent);
            let kept = kept.map(|badge| self::shown(Some(badge)));
            // A parked session shows its job's badge, which is kept as the job's.
            let jobs = self.played.births.iter().zip(&self.keys);
            let mut jobs = jobs.filter(|(birth, _)| birth.role == Role::Job);
            let of_job = jobs.any(|(_, key)| {
                let kept = self.committed.get(key);
                kept.is_some_and(|badge| self::shown(Some(badge)) == shown)
            });
            if kept.as_ref() != Some(&shown) && !of_job {
                self.broken(format!("{shown:?} is shown, {kept:?} was kept"));
            }
        }
        if self.recovering
            && !self.news.contains(&name)
            && let Some(episode) = row.episode
            && self.found_by_recovery.insert(episode)
        {
            self.run.found.push((self.now, episode));
        }
        let same = self.run.seen[place].last().is_some_and(|last| {
            last.shown == shown && last.text == text && last.episode == row.episode
        });
        if !same {
            if self.keep_log {
                self.note(format!("        => {name:?} {shown:?} {text:?}"));
            }
            self.run.seen[place].push(Seen {
                at: self.now,
                shown,
                text,
                episode: row.episode,
            });
        }
    }

    fn process_of(&self, agent: &AgentKey) -> Option<usize> {
        self.keys.iter().position(|key| key == agent)
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::ReadTranscript { agent, request } => {
                if let Some(process) = self.process_of(&agent) {
                    self.note(format!("    wants the transcript read ({request})"));
                    let id = usize::try_from(request).unwrap_or(0);
                    let at = self.now + 2 * self.adversary.soon(id);
                    let life = self.life;
                    self.at(
                        at,
                        Happening::Answer {
                            process,
                            request,
                            life,
                        },
                    );
                }
            }
            Effect::WatchTranscript { agent, on } => {
                if let Some(process) = self.process_of(&agent) {
                    if on && self.alive.contains(&process) {
                        self.watched.insert(process);
                        let at = self.now + 3;
                        self.at(at, Happening::Lines(process));
                    } else {
                        self.watched.remove(&process);
                    }
                }
            }
            Effect::UseTranscript {
                agent,
                path: _,
                conversation: named,
            } => {
                let number = named
                    .as_deref()
                    .and_then(|named| named.strip_prefix("conversation-")?.parse::<usize>().ok());
                if let (Some(process), Some(number)) = (self.process_of(&agent), number) {
                    self.follows.insert(process, number);
                    let at = self.now + 3;
                    self.at(at, Happening::Lines(process));
                }
            }
            Effect::WatchCpu { agent, on } => {
                if let Some(process) = self.process_of(&agent) {
                    if !on {
                        self.watched_cpu.remove(&process);
                    } else if self.watched_cpu.insert(process) {
                        let at = self.now + 1000;
                        let life = self.life;
                        self.at(at, Happening::Cpu { process, life });
                    }
                }
            }
            Effect::Notify {
                agent: _,
                episode,
                badge,
                silent,
            } => self.notified(episode, &badge, silent),
            Effect::Withdraw { agent: _, episode } => {
                self.note(format!("    withdraws {episode:?}"));
                // Whether a kept episode had been announced is not kept.
                let known = self.announced.contains_key(&episode) || self.kept.contains(&episode);
                if !known {
                    self.broken(format!("{episode:?} withdrawn, never announced"));
                }
                if !self.withdrawn.insert(episode) {
                    self.broken(format!("{episode:?} withdrawn twice"));
                }
                let at = self.now;
                self.run.alerts.push(Alert {
                    at,
                    episode,
                    silent: None,
                });
            }
            Effect::Persist {
                agent,
                badge,
                since,
                episode,
                beneath,
            } => {
                self.committed.insert(agent.clone(), badge.clone());
                let shown = Persisted {
                    badge,
                    since,
                    episode,
                    tab: None,
                };
                let persisted = Persisted {
                    tab: self.process_of(&agent).and_then(|process| {
                        let pane = self.played.births[process].pane;
                        pane.map(tab)
                    }),
                    ..beneath.unwrap_or(shown)
                };
                self.persisted.insert(agent, persisted);
            }
            Effect::Forget { agent } => {
                self.persisted.remove(&agent);
                self.committed.remove(&agent);
            }
            Effect::Record { .. } => {}
        }
    }

    fn notified(&mut self, episode: EpisodeId, badge: &Badge, silent: bool) {
        self.note(format!(
            "    notifies {episode:?} {badge:?} silent: {silent}"
        ));
        if !silent {
            if self.announced.get(&episode) == Some(&false) {
                self.broken(format!("{episode:?} announced twice"));
            }
            if self.found_by_recovery.contains(&episode) {
                self.broken(format!("{episode:?} was found by recovery and announced"));
            }
        }
        if self.withdrawn.contains(&episode) {
            self.broken(format!("{episode:?} announced after it was withdrawn"));
        }
        let items = self.fleet.items();
        let row = items.into_iter().find(|item| item.episode == Some(episode));
        let row = row.unwrap_or_else(empty_row);
        if row.episode != Some(episode) || shown(row.badge.as_ref()) != shown(Some(badge)) {
            let now = shown(row.badge.as_ref());
            self.broken(format!("announced {badge:?} of {episode:?}, shown {now:?}"));
        }
        if row.presence == Presence::Suspended {
            self.broken("a suspended process announces".to_owned());
        }
        let before = self.announced.get(&episode).copied().unwrap_or(true);
        self.announced.insert(episode, before && silent);
        let at = self.now;
        self.run.alerts.push(Alert {
            at,
            episode,
            silent: Some(silent),
        });
    }
}

/// A tab's own row, or the row that an agent has without a tab.
fn find_row<'a>(items: &'a [Item], row: Row, keys: &[AgentKey]) -> Option<&'a Item> {
    match row {
        Row::Tab(number) => {
            let id = tab(number);
            let mut items = items.iter();
            items.find(|item| item.id.as_ref() == id.as_str())
        }
        Row::Job(process) => {
            let key = keys.get(process);
            let mut items = items.iter();
            items.find(|item| item.tab.is_none() && item.agent.as_ref() == key)
        }
    }
}

/// Rule 7, the least urgent first.
fn rank(badge: Option<&Badge>) -> u8 {
    match badge {
        None => 0,
        Some(Badge::Idle) => 1,
        Some(Badge::Unknown) => 2,
        Some(Badge::Busy(_)) => 3,
        Some(Badge::Review(outcome)) => 4 + u8::from(outcome.error.is_some()),
        Some(Badge::NeedsInput(_)) => 6,
    }
}

fn urgency(row: &Item) -> Option<u8> {
    let badge = row.badge.as_ref();
    if row.presence == Presence::Suspended && badge.is_some() {
        return Some(1);
    }
    Some(rank(badge))
}

fn empty_row() -> Item {
    Item {
        id: Arc::from("t1"),
        host: host(),
        tab: None,
        workspace: None,
        agent: None,
        pane: None,
        conversation: None,
        cwd: None,
        badge: None,
        since: Stamp::default(),
        presence: Presence::None,
        title: Arc::from(""),
        last_message: None,
        label: None,
        context_tokens: None,
        context_window: None,
        model: None,
        hooks: false,
        attention: false,
        episode: None,
    }
}

fn shown(badge: Option<&Badge>) -> Shown {
    match badge {
        None => Shown::None,
        Some(Badge::Idle) => Shown::Idle,
        Some(Badge::Busy(_)) => Shown::Busy,
        Some(Badge::NeedsInput(ask)) => Shown::Ask(ask.kind),
        Some(Badge::Review(outcome)) => Shown::Review(outcome.error.clone()),
        Some(Badge::Unknown) => Shown::Unknown,
    }
}

/// An event in one line.
fn told(event: &Event) -> String {
    match event {
        Event::FileRead { at, file, .. } => {
            let since = file.status_since.map(|since| since.boot.as_ms());
            let (status, waiting_for) = (file.status, file.waiting_for.as_ref());
            let named = file.conversation.as_ref().map(ConversationId::as_str);
            format!(
                "FileRead written {} {status:?} {waiting_for:?} since {since:?} {named:?}",
                at.boot.as_ms()
            )
        }
        Event::HookFired { hook } => {
            let lane = hook.agent_id.as_deref().unwrap_or("main");
            format!(
                "Hook stamped {} {lane} {:?}",
                hook.at.boot.as_ms(),
                hook.kind
            )
        }
        Event::TranscriptGrew { facts, .. } => {
            let kinds: Vec<String> = facts
                .iter()
                .map(|fact| {
                    let written = fact.written_ms.unwrap_or(0) - BOOT_WALL_MS;
                    format!("{:?} written {written}", fact.kind)
                })
                .collect();
            format!("Transcript {}", kinds.join(" | "))
        }
        Event::ProcessFound { .. }
        | Event::ProcessDied { .. }
        | Event::ProcessStopped { .. }
        | Event::KeyFileSeen { .. }
        | Event::ProcessQuiet { .. }
        | Event::ProcessMissed { .. }
        | Event::FileRemoved { .. }
        | Event::FileUnreadable { .. }
        | Event::TranscriptRead { .. }
        | Event::TranscriptMissing { .. }
        | Event::Seen { .. }
        | Event::Dismissed { .. }
        | Event::PanesListed { .. }
        | Event::LayoutChanged { .. }
        | Event::Restored { .. }
        | Event::RecoveryEnded
        | Event::DeadlinePassed => {
            let text = format!("{event:?}");
            text.chars().take(160).collect()
        }
    }
}
