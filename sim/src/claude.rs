//! The reference model: what Claude Code does with the person's keys, as measured (2.1.332), and what it
//! lets be seen of it, with the delays of the recorded runs. Beside it stands the truth: the badge that a
//! person who sees the screen would give.
//!
//! Knows only the vocabulary of `core`, never how `core` decides. Unmeasured behaviour is left out rather
//! than guessed; where a key's effect was never recorded, the key does nothing.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use purplemux_core::ConversationId;
use purplemux_core::view::AskKind;
use purplemux_core::witness::{
    AgentKind, BackgroundTasks, FileStatus, HookKind, Question, StartSource, ToolCall,
    TranscriptKind, WaitingFor,
};

use crate::chance::Chance;
use crate::script::{Act, Dialog, ERRORS, End, Piece, Start, Step, Tool, Turn};
use crate::truth::{Birth, Due, Entry, File, Id, Push, Role, Signal, Want, What};

/// Where a history begins, in milliseconds after boot.
pub const BEGIN: u64 = 100_000;

/// Unix milliseconds of boot, while nobody sets the clock.
pub const BOOT_WALL_MS: i64 = 1_796_000_000_000;

/// A file without a status may still get one for so long (P01).
pub const NO_STATUS_MS: u64 = 2700;

/// One Claude Code in one pane, one process after the other.
#[derive(Debug)]
pub struct Claude {
    now: u64,
    chance: Chance,
    ticks: BinaryHeap<Reverse<(u64, u64, Tick)>>,
    sequence: u64,
    /// All that was emitted; cancelled ones never happened (the process died first).
    signals: Vec<(Signal, bool)>,
    entries: Vec<Entry>,
    truth: Want,
    /// A shared machine now and then makes everything slow.
    slowness: u64,

    /// Which model of the history this is; numbers that the whole history shares begin at a thousand times this.
    cast: usize,
    /// The pane whose row shows it; none for a background session that no pane shows.
    pane: Option<usize>,
    births: Vec<Birth>,
    /// The process that works now, by its place among the births.
    process: usize,
    life: Life,
    /// The version has no status in its file.
    old: bool,
    /// What the file says it is, and the job that a background session is.
    kind: AgentKind,
    job: Option<usize>,
    parked: Option<Parked>,
    /// The pane's process has left a session that goes on in the background.
    left: Option<Id>,
    left_at: u64,
    /// Typed for it when it was dispatched.
    dispatched: Option<Turn>,
    /// The newest turn, as the payloads name it.
    prompt: Option<usize>,
    prompts: usize,
    /// The settings have lost our hooks.
    unheard: bool,
    was_unheard: bool,
    /// Until then the pane's shell takes nothing: what was started before is still there.
    shell_at: u64,
    /// The entry of an answered dialog of an old version, which only the tool's end tells, and its request.
    freed: Option<(usize, Id)>,
    conversation: usize,
    conversations: usize,
    file: Option<File>,
    written_at: u64,
    flush_at: u64,
    spell_at: u64,
    /// The write that began the spell.
    began: Option<Id>,
    waits_in_spell: bool,

    main: Option<Main>,
    epoch: u32,
    rest: Rest,
    queue: VecDeque<Waiting>,
    /// When the newest prompt that waits is told by its hook.
    enqueued_at: u64,
    between: bool,
    /// The line that closes the turn before is written only after the queue was emptied.
    closing: Option<TranscriptKind>,
    agents: Vec<Agent>,
    born: u32,
    mates: u32,
    notices: u32,
    shells: u32,
    wakes: u32,
    /// When the newest wake-up is to come.
    wakes_at: u64,
    menu: bool,
    dialogs: VecDeque<Asked>,
    tools: u64,
    /// A fork's transcript begins, at its first prompt, with the lines of this conversation.
    copies: Option<usize>,
    /// The entry of the dialog that moved to the front, and whose answered tool tells so.
    card: Option<Card>,
}

/// A dialog that moved to the front and of which nothing has told yet.
#[derive(Clone, Debug)]
struct Card {
    /// Its place in the entries of the row that the session has now.
    entry: usize,
    /// The subagent whose answered tool tells it; none: the main lane's.
    agent: Option<u32>,
    /// The end of the pane's process that must be seen as well: this row began with it.
    left: Option<Id>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Dead,
    /// Before the first status; `untrusted`: a dialog of the start is drawn.
    Starting {
        untrusted: bool,
    },
    Running,
    Suspended {
        at: u64,
    },
    /// `claude -p`, until then.
    Printing {
        until: u64,
    },
    /// Goes over into another process; no key is taken meanwhile.
    Moving,
}

/// A session that goes on in the background while its pane shows the list of all.
#[derive(Clone, Debug)]
struct Parked {
    /// The pane's own process, and what its hooks name.
    host: usize,
    conversation: usize,
    prompt: Option<usize>,
    /// The worker that stands by for the next one, and what its hooks name.
    spare: usize,
    spare_conversation: usize,
    /// The session is on the pane's screen again.
    attached: bool,
}

/// What is shown when nothing runs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rest {
    Idle,
    /// Of a review that was read, if this look reached anybody.
    Read {
        look: Id,
        error: Option<Arc<str>>,
    },
    Review {
        error: Option<Arc<str>>,
        typed: bool,
    },
}

#[derive(Clone, Debug)]
enum Queued {
    Typed(Turn),
    Notice,
    /// A teammate's message: no hook, no line of the queue (s38).
    Mate,
}

/// A thing that waits, and the signals that tell of it.
#[derive(Clone, Debug)]
struct Waiting {
    what: Queued,
    told: Vec<Id>,
}

#[derive(Debug)]
struct Main {
    turn: Turn,
    piece: usize,
    phase: Phase,
    began: u64,
    /// From when Esc is taken: the prompt must have been sent first.
    takes_esc: u64,
    typed: bool,
    /// It was begun by a UPS of its own.
    told: bool,
    compacted: bool,
    vetoed: u8,
    wakes: bool,
    tool: Option<(Tool, ToolCall)>,
    /// Calls of the same answer that wait for their turn.
    ready: VecDeque<ToolCall>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Silent,
    Streaming,
    Tool,
    Asking,
    AutoCompaction,
    Compaction,
    Bang,
    Clearing,
    Ending,
    /// Waits for a subagent in the foreground.
    Inner,
    /// Waits for a Claude that a tool runs.
    Nested,
}

#[derive(Debug)]
struct Agent {
    id: Arc<str>,
    number: u32,
    tools: VecDeque<Tool>,
    tool: Option<(Tool, ToolCall)>,
    mate: bool,
    /// The main lane's call that waits for it.
    inner: Option<ToolCall>,
}

#[derive(Debug)]
struct Asked {
    agent: Option<u32>,
    kind: Dialog,
    call: ToolCall,
    drawn: u64,
    /// The Notification comes six seconds after the last key.
    touched: u64,
    notified: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tick {
    Running,
    Main(u32, Next),
    Agent(u32),
    AgentTool(u32),
    Notice { mate: bool },
    Queue,
    ShellEnds(usize),
    Wakes(usize),
    Nag(u64),
    Bored(u32),
    Tell,
    Esc(usize),
    Printed,
    Dispatched,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Piece,
    Token,
    Asks,
    ToolEnds,
    Compacted,
    Bang,
    Finish,
    Done,
    Cleared,
}

impl Claude {
    /// The pane's shell takes nothing before.
    #[must_use]
    pub fn free_from(mut self, at: u64) -> Self {
        self.shell_at = at;
        self
    }

    /// An empty pane, or nothing yet of a session in the background, from `now` on.
    #[must_use]
    pub fn new(cast: usize, pane: Option<usize>, now: u64) -> Self {
        Self {
            now,
            chance: Chance::new(0),
            ticks: BinaryHeap::new(),
            sequence: 0,
            signals: Vec::new(),
            entries: vec![Entry {
                want: Want::None,
                from: if now == BEGIN { 0 } else { now },
                due: if now == BEGIN { Due::At(0) } else { Due::Never },
                push: Push::Silent,
                why: "nothing runs",
                cast,
            }],
            truth: Want::None,
            slowness: 1,
            cast,
            pane,
            births: Vec::new(),
            process: 0,
            life: Life::Dead,
            old: false,
            kind: AgentKind::Interactive,
            job: None,
            parked: None,
            left: None,
            left_at: 0,
            dispatched: None,
            prompt: None,
            prompts: cast * 1000,
            unheard: false,
            was_unheard: false,
            shell_at: 0,
            freed: None,
            conversation: cast * 1000,
            conversations: cast * 1000,
            file: None,
            written_at: 0,
            flush_at: 0,
            spell_at: 0,
            began: None,
            waits_in_spell: false,
            main: None,
            epoch: 0,
            rest: Rest::Idle,
            queue: VecDeque::new(),
            enqueued_at: 0,
            between: false,
            closing: None,
            agents: Vec::new(),
            born: u32::try_from(cast).unwrap_or(0) * 1000,
            mates: 0,
            notices: 0,
            shells: 0,
            wakes: 0,
            wakes_at: 0,
            menu: false,
            dialogs: VecDeque::new(),
            tools: u64::try_from(cast).unwrap_or(0) * 1000,
            copies: None,
            card: None,
        }
    }

    /// The act of this step is done now; its wait has passed.
    pub fn take(&mut self, step: &Step) {
        self.chance = Chance::new(step.seed);
        self.slowness = if self.chance.percent(4) { 4 } else { 1 };
        self.act(&step.act);
    }

    /// Lets everything that was begun come to its end, or to the person.
    pub fn settle(&mut self, ms: u64) {
        let until = self.now + ms;
        self.run_to(until);
    }

    /// All that was emitted, the processes that were, and the truth about the row it has now.
    #[must_use]
    pub fn finish(self) -> (Vec<Option<Signal>>, Vec<Birth>, Vec<Entry>) {
        let signals = self.signals.into_iter();
        let signals = signals.map(|(signal, cancelled)| (!cancelled).then_some(signal));
        (signals.collect(), self.births, self.entries)
    }

    /// The pane's process has left; the session goes on as a job in a row of its own. What was right in the
    /// pane's row until now, and when the pane's shell takes a command again.
    pub fn leaves_its_pane(&mut self) -> Option<(Vec<Entry>, u64)> {
        let died = self.left.take()?;
        let now = self.now;
        self.pane = None;
        self.parked = None;
        let none = |from, due, why| Entry {
            want: Want::None,
            from,
            due,
            push: Push::Silent,
            why,
            cast: self.cast,
        };
        let due = || Due::After {
            all: vec![died],
            ms: 1000,
        };
        let mut entries = std::mem::take(&mut self.entries);
        self.entries
            .push(none(0, Due::At(0), "its row is the pane's"));
        // What was just changing may be seen to change in the new row.
        let recent = entries.partition_point(|entry| entry.from + 1000 <= now);
        let last = entries.len() - 1;
        // Nor has anything told of a dialog in front when its row changes (Q11): until then the one before
        // it is shown in this row too.
        let card = self.card.take().filter(|card| card.entry == last);
        let first = recent.saturating_sub(1);
        let first = card
            .as_ref()
            .map_or(first, |card| first.min(card.entry.saturating_sub(1)));
        // What a compaction left as it was before was seen in the row before only (C01).
        let kept = |entry: &Entry| matches!(entry.want, Want::AsBefore { .. });
        if let Some(place) = entries.iter().skip(first).position(kept)
            && let Some(before) = entries[..first + place]
                .iter()
                .rposition(|entry| !kept(entry) && entry.want != Want::Busy)
            && before < first
            && matches!(entries[before].want, Want::Idle | Want::Review { .. })
        {
            self.entries.push(Entry {
                from: now,
                due: Due::Never,
                push: Push::Perhaps,
                ..entries[before].clone()
            });
        }
        for (place, entry) in entries.iter().enumerate().skip(first) {
            let mut entry = entry.clone();
            entry.from = now.max(entry.from);
            entry.push = Push::Perhaps;
            entry.due = match entry.due {
                Due::End { .. } | Due::Silence { .. } if place >= recent => entry.due,
                Due::After { mut all, ms } if place == last => {
                    all.push(died);
                    Due::After {
                        all,
                        ms: ms.max(1000),
                    }
                }
                Due::Never
                | Due::At(_)
                | Due::After { .. }
                | Due::Answered { .. }
                | Due::End { .. }
                | Due::Unless { .. }
                | Due::Unread(_)
                | Due::Silence { .. }
                | Due::IfRead { .. } => Due::Never,
            };
            self.entries.push(entry);
        }
        let lives_on = |want, due| Entry {
            want,
            from: now,
            due,
            push: Push::Perhaps,
            why: "R08 the job lives on without a pane",
            cast: self.cast,
        };
        let read = match &self.rest {
            Rest::Read { look, error } if self.right() == Want::Idle => Some((*look, error)),
            Rest::Idle | Rest::Read { .. } | Rest::Review { .. } => None,
        };
        if let Some(mut card) = card {
            card.entry = self.entries.len() - 1;
            card.left = Some(died);
            self.card = Some(card);
        } else if let Some((look, error)) = read
            && (recent > last || entries[last].due.rests_on(look))
        {
            // Whoever looked at a page that was not served has read nothing (P09, H04).
            self.entries.retain(|entry| !entry.due.rests_on(look));
            let error = error.clone();
            for (want, came) in [(Want::Idle, true), (Want::Review { error }, false)] {
                let due = Due::IfRead { look, came, died };
                let entry = lives_on(want, due);
                self.entries.push(entry);
            }
        } else if recent > last {
            // What nothing told of in the pane's row is not told by its end.
            let due = match entries[last].due.clone() {
                Due::Never | Due::At(_) | Due::Unless { .. } | Due::Unread(_) => due(),
                told @ (Due::After { .. }
                | Due::Answered { .. }
                | Due::End { .. }
                | Due::Silence { .. }
                | Due::IfRead { .. }) => told,
            };
            let entry = lives_on(self.right(), due);
            self.entries.push(entry);
        }
        entries.push(none(now, due(), "R08 the pane's Claude has left"));
        self.truth = self.right();
        Some((entries, self.shell_at))
    }

    /// The process of a session that was dispatched to the background.
    #[must_use]
    pub fn process(&self) -> usize {
        self.process
    }

    /// Our hooks were not called any more at some time.
    #[must_use]
    pub fn was_unheard(&self) -> bool {
        self.was_unheard
    }

    /// In the middle of something that ends within a moment; a history does not end here.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        let ending = self
            .main
            .as_ref()
            .is_some_and(|main| matches!(main.phase, Phase::Ending | Phase::Clearing));
        let moves = ending || self.between || self.notices > 0 || self.now <= self.written_at;
        let moves = moves || matches!(self.life, Life::Moving | Life::Printing { .. });
        moves && !self.is_suspended() && !self.is_dead()
    }

    // ---- what the author of a history may look at --------------------------------------------------

    /// No process.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.life == Life::Dead
    }

    /// Takes no key: stands before its first prompt, or is on its way into the background.
    #[must_use]
    pub fn is_starting(&self) -> bool {
        matches!(self.life, Life::Starting { .. } | Life::Moving)
    }

    /// `claude -p` runs.
    #[must_use]
    pub fn is_printing(&self) -> bool {
        matches!(self.life, Life::Printing { .. })
    }

    /// A version without a status.
    #[must_use]
    pub fn is_old(&self) -> bool {
        self.old
    }

    /// Goes on in the background; whether it is on the pane's screen.
    #[must_use]
    pub fn parked(&self) -> Option<bool> {
        self.parked.as_ref().map(|parked| parked.attached)
    }

    /// Left on an empty prompt would send it into the background now.
    #[must_use]
    pub fn can_park(&self) -> bool {
        let streams = self.main.as_ref().is_some_and(|main| {
            main.phase == Phase::Streaming && main.vetoed == 0 && !main.compacted && main.told
        });
        let alone = self.agents.is_empty() && self.notices == 0 && self.queue.is_empty();
        let alone = alone && self.shells + self.wakes == 0 && self.mates == 0 && !self.between;
        let free = alone && !self.menu && self.dialogs.is_empty() && self.now > self.written_at;
        let here = self.parked.is_none() && self.pane.is_some() && !self.old;
        free && here && self.life == Life::Running && (streams || self.main.is_none())
    }

    /// The dialog of the start is drawn.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.life == Life::Starting { untrusted: true }
    }

    /// Stopped by Ctrl-Z.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        matches!(self.life, Life::Suspended { .. })
    }

    /// A dialog is drawn, for the main lane or for a subagent.
    #[must_use]
    pub fn dialog_of(&self) -> Option<bool> {
        self.dialogs.front().map(|asked| asked.agent.is_none())
    }

    /// A menu of the person's own is drawn.
    #[must_use]
    pub fn has_menu(&self) -> bool {
        self.menu
    }

    /// A turn, a command or a compaction runs in the main lane.
    #[must_use]
    pub fn is_working(&self) -> bool {
        self.main.is_some() || self.between
    }

    /// Subagents run.
    #[must_use]
    pub fn has_agents(&self) -> bool {
        !self.agents.is_empty() || self.notices > 0
    }

    /// The badge it rests in is review, and nothing runs.
    #[must_use]
    pub fn rests_in_review(&self) -> bool {
        matches!(self.truth, Want::Review { .. })
    }

    // ---- emitting ----------------------------------------------------------------------------------

    fn emit(&mut self, at: u64, what: What) -> Id {
        self.signals.push((Signal { at, what }, false));
        self.signals.len() - 1
    }

    fn delay(&mut self, low: u64, median: u64, high: u64) -> u64 {
        self.chance.around(low, median, high) * self.slowness
    }

    fn span(&mut self, low: u64, high: u64) -> u64 {
        self.chance.between(low, high) * self.slowness
    }

    fn hook(&mut self, at: u64, kind: HookKind) -> Id {
        self.lane_hook(at, None, kind)
    }

    fn lane_hook(&mut self, at: u64, lane: Option<Arc<str>>, kind: HookKind) -> Id {
        // A start knows no turn yet; every other hook, of a subagent too, carries the newest turn's id (measured).
        let prompt = match &kind {
            HookKind::SessionStart { source } if *source != StartSource::Compact => None,
            HookKind::SessionStart { .. }
            | HookKind::SessionEnd { .. }
            | HookKind::Prompt { .. }
            | HookKind::ToolStarted { .. }
            | HookKind::ToolEnded { .. }
            | HookKind::ToolFailed { .. }
            | HookKind::PermissionRequested { .. }
            | HookKind::Notified { .. }
            | HookKind::FormAsked { .. }
            | HookKind::FormAnswered
            | HookKind::Stopped { .. }
            | HookKind::StopFailed { .. }
            | HookKind::SubagentStarted { .. }
            | HookKind::SubagentStopped { .. }
            | HookKind::CompactStarted { .. }
            | HookKind::CompactEnded
            | HookKind::CwdChanged { .. }
            | HookKind::StatusLine { .. }
            | HookKind::Unknown { .. } => self.prompt,
        };
        let (process, conversation) = (self.process, self.conversation);
        let id = self.emit(
            at,
            What::Hook {
                process,
                lane,
                conversation,
                prompt,
                kind,
            },
        );
        self.signals[id].1 = self.unheard;
        id
    }

    /// A turn of its own begins, with an id of its own.
    fn new_prompt(&mut self) {
        self.prompts += 1;
        self.prompt = (!self.old).then_some(self.prompts);
    }

    /// A line that Claude writes now; the file gets it with the next batch, 60 to 200 ms later.
    fn line(&mut self, at: u64, kind: TranscriptKind) -> Id {
        if self.flush_at < at {
            self.flush_at = at + self.span(60, 220);
        }
        let visible = self.flush_at;
        self.emit(
            visible,
            What::Line {
                conversation: self.conversation,
                written: at,
                sidechain: false,
                kind,
            },
        )
    }

    fn write(&mut self, at: u64, status: FileStatus, waiting_for: Option<WaitingFor>) -> Id {
        let at = at.max(self.written_at + 2);
        let before = self.status();
        let rested = matches!(before, None | Some(FileStatus::Idle | FileStatus::Shell));
        let dialog_open = waiting_for == Some(WaitingFor::DialogOpen);
        let works = match status {
            FileStatus::Busy => true,
            FileStatus::Waiting => !dialog_open || !rested,
            FileStatus::Idle | FileStatus::Shell => false,
        };
        let begins = works && rested;
        if begins {
            self.spell_at = at;
            self.waits_in_spell = false;
        }
        let file = File {
            status: Some(status),
            waiting_for,
            ..self.blank(at)
        };
        let id = self.put(at, file);
        if begins {
            self.began = Some(id);
        }
        id
    }

    /// The same status, another detail.
    fn rewrite(&mut self, at: u64) -> Id {
        let at = at.max(self.written_at + 2);
        let mut file = self.file.clone().unwrap_or(self.blank(at));
        file.conversation = self.conversation;
        self.put(at, file)
    }

    fn blank(&self, since: u64) -> File {
        File {
            conversation: self.conversation,
            status: None,
            waiting_for: None,
            since,
            kind: self.kind,
            parked: None,
            job: self.job,
        }
    }

    fn put(&mut self, at: u64, file: File) -> Id {
        self.written_at = at;
        self.file = Some(file.clone());
        let process = self.process;
        // An old version's file says nothing, if there is one.
        let never = self.old && file.status.is_some();
        let id = self.emit(at, What::Wrote { process, file });
        self.signals[id].1 = never;
        id
    }

    fn status(&self) -> Option<FileStatus> {
        self.file.as_ref().and_then(|file| file.status)
    }

    /// The status the file should have now.
    fn status_due(&self) -> (FileStatus, Option<WaitingFor>) {
        if let Some(asked) = self.dialogs.front() {
            let waiting_for = match asked.kind {
                Dialog::Permission | Dialog::Plan | Dialog::Phantom => WaitingFor::Permission,
                Dialog::Question | Dialog::Form => WaitingFor::Input,
                Dialog::Auto => WaitingFor::DialogOpen,
            };
            (FileStatus::Waiting, Some(waiting_for))
        } else if self.works() {
            (FileStatus::Busy, None)
        } else if self.menu {
            (FileStatus::Waiting, Some(WaitingFor::DialogOpen))
        } else {
            (self.resting_status(), None)
        }
    }

    fn resting_status(&self) -> FileStatus {
        if self.shells > 0 {
            FileStatus::Shell
        } else {
            FileStatus::Idle
        }
    }

    /// Writes the file if it must say something else than it does.
    fn refresh(&mut self, at: u64) -> Option<Id> {
        let (status, waiting_for) = self.status_due();
        let same = self
            .file
            .as_ref()
            .is_some_and(|file| file.status == Some(status) && file.waiting_for == waiting_for);
        (!same).then(|| self.write(at, status, waiting_for))
    }

    fn tick(&mut self, at: u64, tick: Tick) {
        self.sequence += 1;
        self.ticks.push(Reverse((at, self.sequence, tick)));
    }

    fn next(&mut self, after: u64, next: Next) {
        let tick = Tick::Main(self.epoch, next);
        self.tick(self.now + after, tick);
    }

    // ---- the truth ---------------------------------------------------------------------------------

    fn works(&self) -> bool {
        self.main.is_some() || self.between || !self.agents.is_empty() || self.notices > 0
    }

    /// What a person who sees the screen would say now.
    fn right(&self) -> Want {
        match self.life {
            Life::Dead => return Want::None,
            Life::Starting { untrusted } => {
                return if untrusted {
                    Want::Ask {
                        kind: AskKind::Startup,
                        text: None,
                    }
                } else {
                    Want::None
                };
            }
            Life::Printing { .. } => return Want::Busy,
            Life::Running | Life::Suspended { .. } | Life::Moving => {}
        }
        if let Some(asked) = self.dialogs.front() {
            let kind = match asked.kind {
                Dialog::Permission | Dialog::Phantom => AskKind::Permission,
                Dialog::Question => AskKind::Question,
                Dialog::Plan => AskKind::Plan,
                Dialog::Form => AskKind::Form,
                Dialog::Auto => AskKind::Dialog,
            };
            let text = (kind == AskKind::Permission)
                .then(|| asked.call.arg.clone())
                .flatten();
            return Want::Ask { kind, text };
        }
        if self.works() {
            return Want::Busy;
        }
        match &self.rest {
            Rest::Idle | Rest::Read { .. } => Want::Idle,
            Rest::Review { error, .. } => Want::Review {
                error: error.clone(),
            },
        }
    }

    fn say(&mut self, want: Want, from: u64, due: Due, push: Push, why: &'static str) {
        self.truth = want.clone();
        self.entries.push(Entry {
            want,
            from,
            due,
            push,
            why,
            cast: self.cast,
        });
    }

    /// The truth changed with what was just done, if it did.
    fn judge(&mut self, from: u64, due: Due, push: Push, why: &'static str) {
        let right = self.right();
        if right != self.truth {
            self.say(right, from, due, push, why);
        }
    }

    // ---- time --------------------------------------------------------------------------------------

    fn run_to(&mut self, until: u64) {
        if self.is_suspended() {
            // Its clock stands; all that was to come is put off when it goes on.
            self.now = until;
            return;
        }
        while let Some(Reverse((at, _, _))) = self.ticks.peek()
            && *at <= until
        {
            let Some(Reverse((at, _, tick))) = self.ticks.pop() else {
                break;
            };
            self.now = self.now.max(at);
            self.ticked(tick);
        }
        self.now = until;
    }

    fn ticked(&mut self, tick: Tick) {
        match tick {
            Tick::Running => {
                self.life = Life::Running;
            }
            Tick::Main(epoch, next) => {
                if epoch == self.epoch {
                    self.main_goes_on(next);
                }
            }
            Tick::Agent(number) => self.agent_goes_on(number),
            Tick::AgentTool(number) => self.agent_tool_ends(number),
            Tick::Notice { mate } => self.agent_reports(mate),
            Tick::Queue => self.queue_starts(),
            Tick::ShellEnds(process) => {
                if process == self.process && self.shells > 0 {
                    self.shells -= 1;
                    self.notice();
                }
            }
            Tick::Wakes(process) => {
                if process == self.process && self.wakes > 0 {
                    self.wakes -= 1;
                    self.wake();
                }
            }
            Tick::Tell => self.notice(),
            Tick::Bored(epoch) => self.is_bored(epoch),
            Tick::Nag(touched) => self.nag(touched),
            Tick::Printed => {
                self.life = Life::Dead;
                self.ticks.clear();
                self.truth = Want::None;
            }
            Tick::Dispatched => {
                if let Some(turn) = self.dispatched.take() {
                    self.prompt(&turn);
                }
            }
            Tick::Esc(process) => {
                if process == self.process {
                    self.act(&Act::Esc);
                }
            }
        }
    }

    // ---- the person --------------------------------------------------------------------------------

    fn act(&mut self, act: &Act) {
        if self.is_dead() {
            self.act_at_shell(act);
            return;
        }
        let nests = self
            .main
            .as_ref()
            .is_some_and(|main| main.phase == Phase::Nested);
        if nests || self.life == Life::Moving {
            // What a key, or a death, does to two processes at once was never measured.
            return;
        }
        if self.parked.is_some() {
            self.act_parked(act);
            return;
        }
        if *act == Act::Kill {
            self.die(false, None);
            return;
        }
        if let (Act::Resume, Life::Suspended { at }) = (act, self.life) {
            self.goes_on(at);
            return;
        }
        match self.life {
            Life::Dead | Life::Suspended { .. } | Life::Printing { .. } | Life::Moving => return,
            Life::Starting { untrusted } => {
                if untrusted && *act == Act::Yes {
                    self.trusted();
                } else if untrusted && *act == Act::Esc {
                    self.die(true, None);
                }
                return;
            }
            Life::Running => {}
        }
        match act {
            Act::Prompt(turn) => self.prompt(turn),
            Act::Bang { ms } => self.bang(*ms),
            Act::Compact { ms } => self.compact(*ms),
            Act::Clear => self.clear(),
            Act::PickConversation => self.pick(),
            Act::OpenMenu => self.open_menu(),
            Act::UnknownCommand => {
                if self.at_prompt() {
                    let at = self.now + self.delay(40, 70, 190);
                    let status = self.resting_status();
                    self.write(at, status, None);
                }
            }
            Act::Esc => self.esc(),
            Act::Yes => self.answer(false),
            Act::NoWithWords => self.answer(true),
            Act::StrayKey => {
                let now = self.now;
                if let Some(asked) = self.dialogs.front_mut()
                    && !asked.notified
                {
                    asked.touched = now;
                    self.tick(now + 6000, Tick::Nag(now));
                }
            }
            Act::Suspend => {
                let free = self.dialogs.is_empty() && !self.menu && self.agents.is_empty();
                // Nor is anything on its way that its end would have to hold back.
                let mut last = self.signals.iter().rev().take(20);
                let free = free && last.all(|(signal, _)| signal.at <= self.now);
                let free = free && self.now > self.written_at && !self.between;
                if free && !self.is_clearing() {
                    let (process, now) = (self.process, self.now);
                    self.life = Life::Suspended { at: now };
                    self.emit(
                        now,
                        What::Stopped {
                            process,
                            stopped: true,
                        },
                    );
                }
            }
            Act::Exit => {
                if self.at_prompt() {
                    self.die(true, Some("prompt_input_exit"));
                }
            }
            Act::Terminate => self.die(true, Some("other")),
            Act::Look => self.look(),
            Act::Park => {
                if self.can_park() {
                    self.park();
                }
            }
            Act::HooksVanish => {
                self.unheard = true;
                self.was_unheard = true;
            }
            Act::Return => self.returns(),
            Act::StopJob => {
                if self.pane.is_none() && self.now > self.left_at + 500 {
                    self.die(true, Some("other"));
                }
            }
            Act::Start { .. }
            | Act::Print(_)
            | Act::Dispatch(_)
            | Act::Subcommand { .. }
            | Act::Attach
            | Act::Nothing
            | Act::Kill
            | Act::Resume => {}
        }
    }

    /// What is typed into the shell of a pane where no Claude runs.
    fn act_at_shell(&mut self, act: &Act) {
        if self.now < self.shell_at {
            return;
        }
        match act {
            Act::Start { how, same_pid } => self.start(*how, *same_pid),
            Act::Print(turn) => self.print(turn),
            Act::Subcommand { ms } => self.subcommand(*ms),
            // Only the program that hands it over lives in the pane (s31).
            Act::Dispatch(_) => self.subcommand(480),
            Act::Prompt(_)
            | Act::Bang { .. }
            | Act::Compact { .. }
            | Act::Clear
            | Act::PickConversation
            | Act::OpenMenu
            | Act::UnknownCommand
            | Act::Esc
            | Act::Yes
            | Act::NoWithWords
            | Act::StrayKey
            | Act::Suspend
            | Act::Resume
            | Act::Exit
            | Act::Terminate
            | Act::Kill
            | Act::Look
            | Act::Park
            | Act::Attach
            | Act::StopJob
            | Act::HooksVanish
            | Act::Return
            | Act::Nothing => {}
        }
    }

    /// The session goes on in the background: its keys come through the list, other ones go to the list.
    fn act_parked(&mut self, act: &Act) {
        let attached = self.parked.as_ref().is_some_and(|parked| parked.attached);
        match act {
            Act::Exit | Act::Terminate => self.leave(true),
            Act::Kill => self.leave(false),
            Act::Attach => {
                if let Some(parked) = &mut self.parked
                    && !parked.attached
                {
                    parked.attached = true;
                    self.returns();
                }
            }
            Act::Look => self.look(),
            Act::Prompt(turn) if attached && self.at_prompt() => self.prompt(turn),
            Act::Esc if attached && !self.dialogs.is_empty() => self.esc(),
            Act::Yes if attached => self.answer(false),
            Act::NoWithWords if attached => self.answer(true),
            Act::Prompt(_)
            | Act::Esc
            | Act::Yes
            | Act::NoWithWords
            | Act::Start { .. }
            | Act::Print(_)
            | Act::Dispatch(_)
            | Act::Subcommand { .. }
            | Act::Bang { .. }
            | Act::Compact { .. }
            | Act::Clear
            | Act::PickConversation
            | Act::OpenMenu
            | Act::UnknownCommand
            | Act::StrayKey
            | Act::Suspend
            | Act::Resume
            | Act::Park
            | Act::StopJob
            | Act::HooksVanish
            | Act::Return
            | Act::Nothing => {}
        }
    }

    /// Read on the page: the end of the answer was on a screen for two seconds (P09).
    fn look(&mut self) {
        let now = self.now;
        let since = self.entries.last().map_or(0, |entry| entry.from);
        if let (true, Some(pane)) = (self.rests_in_review() && now >= since + 2000, self.pane) {
            let error = if let Want::Review { error } = &self.truth {
                error.clone()
            } else {
                None
            };
            let look = self.emit(now, What::Looked { pane });
            self.rest = Rest::Read { look, error };
            let due = Due::After {
                all: vec![look],
                ms: 300,
            };
            self.judge(now, due, Push::Silent, "P09 it was read");
        }
    }

    /// The prompt takes what is typed and nothing runs.
    fn at_prompt(&self) -> bool {
        !self.works() && !self.menu && self.dialogs.is_empty() && self.now > self.written_at
    }

    /// Somebody who was away from a session at rest is told what happened (s29).
    fn returns(&mut self) {
        let now = self.now;
        let since = self.entries.last().map_or(now, |entry| entry.from);
        if now > since + 10_000 && self.at_prompt() {
            self.inner_stop(now + 236);
        }
    }

    /// A command of the person's runs; what the background has to say waits.
    fn is_commanded(&self) -> bool {
        self.main.as_ref().is_some_and(|main| {
            matches!(
                main.phase,
                Phase::Clearing | Phase::Compaction | Phase::Bang
            )
        })
    }

    fn is_clearing(&self) -> bool {
        self.main
            .as_ref()
            .is_some_and(|main| main.phase == Phase::Clearing)
    }

    /// A process comes into being.
    fn bear(&mut self, birth: Birth) -> usize {
        self.births.push(birth);
        self.births.len() - 1
    }

    fn new_conversation(&mut self) -> usize {
        self.conversations += 1;
        self.conversations - 1
    }

    fn has_conversed(&self) -> bool {
        self.conversations > self.cast * 1000
    }

    fn start(&mut self, how: Start, same_pid: bool) {
        self.old = matches!(how, Start::Old { .. });
        self.process = self.bear(Birth {
            same_pid,
            pane: self.pane,
            parent: None,
            role: Role::Session,
            old: self.old,
        });
        let process = self.process;
        self.copies = (how == Start::Fork && self.has_conversed()).then_some(self.conversation);
        if how != Start::Continue || !self.has_conversed() {
            self.conversation = self.new_conversation();
        }
        self.file = None;
        self.written_at = 0;
        self.flush_at = 0;
        self.rest = Rest::Idle;
        self.kind = AgentKind::Interactive;
        self.job = None;
        self.prompt = None;
        self.unheard = false;
        self.freed = None;
        let found = self.now + self.span(5, 150);
        self.emit(found, What::Found { process });
        if let Start::Old { file } = how {
            self.life = Life::Starting { untrusted: false };
            let hook_at = found + self.span(250, 1800);
            if file {
                let at = hook_at - self.chance.between(2, 200);
                self.rewrite(at);
            }
            let source = StartSource::Startup;
            let hook = self.hook(hook_at, HookKind::SessionStart { source });
            // A file without a status may still get one (P01), so it takes longer to tell that it won't.
            let due = Due::After {
                all: vec![hook],
                ms: if file { NO_STATUS_MS } else { 320 },
            };
            self.say(
                Want::Idle,
                hook_at,
                due,
                Push::Silent,
                "a start without a status",
            );
            if !file {
                // Three helpers warm up (s41).
                for _ in 0..3 {
                    let at = hook_at + self.chance.between(900, 1300);
                    self.inner_stop(at);
                }
            }
            // Until then nothing can be known of a file that may still get a status.
            self.tick(hook_at + if file { NO_STATUS_MS } else { 0 }, Tick::Running);
            return;
        }
        let key = self.now + self.delay(230, 360, 900);
        self.emit(key, What::KeyFile { process });
        if how == Start::Untrusted {
            self.life = Life::Starting { untrusted: true };
            let quiet = key + self.span(100, 400);
            self.emit(
                quiet,
                What::Quiet {
                    process,
                    quiet: true,
                },
            );
            self.judge(
                key + 1900,
                Due::At(key + 3500),
                Push::Yes,
                "D06 a dialog of the start",
            );
            return;
        }
        self.life = Life::Starting { untrusted: false };
        let file_at = key + self.delay(15, 90, 450);
        self.begins(file_at, how);
    }

    fn trusted(&mut self) {
        let process = self.process;
        let now = self.now;
        self.life = Life::Starting { untrusted: false };
        if let Some(last) = self.entries.last_mut()
            && last.from > now
        {
            // Answered before anybody had to be told; what was measured in the last second may still say so.
            if last.from > now + 1000 {
                self.entries.pop();
                self.truth = Want::None;
            } else {
                last.from = now;
                last.due = Due::Never;
            }
        }
        self.emit(
            now,
            What::Quiet {
                process,
                quiet: false,
            },
        );
        let file_at = now + self.delay(120, 180, 260);
        self.begins(file_at, Start::Plain);
        // Asked for the last time; from here on idle is right, and so is what stood before.
    }

    /// The file without status, SessionStart somewhere between, the first idle.
    fn begins(&mut self, file_at: u64, how: Start) {
        if how == Start::Continue {
            let real = self.conversation;
            self.conversation = self.new_conversation();
            self.rewrite(file_at);
            self.conversation = real;
            let real_at = file_at + self.span(60, 90);
            self.rewrite(real_at);
        } else {
            self.rewrite(file_at);
        }
        let source = match how {
            Start::Continue => StartSource::Resume,
            Start::Fork => StartSource::Fork,
            Start::Plain | Start::Untrusted | Start::Old { .. } => StartSource::Startup,
        };
        let hook_at = file_at + self.span(0, 130);
        self.hook(hook_at, HookKind::SessionStart { source });
        let idle_at = file_at + self.delay(110, 180, 700).min(1900);
        let idle = self.write(idle_at, FileStatus::Idle, None);
        let (asked, from) = (self.truth != Want::None, self.now);
        self.say(
            Want::Idle,
            if asked { from } else { idle_at },
            Due::After {
                all: vec![idle],
                ms: 300,
            },
            Push::Silent,
            "P01 the first idle",
        );
        self.tick(idle_at, Tick::Running);
    }

    fn die(&mut self, cleanly: bool, reason: Option<&str>) {
        let (process, now) = (self.process, self.now);
        // What had not happened yet never does; a hook process that runs already is not touched.
        for (signal, cancelled) in &mut self.signals {
            let looked = matches!(signal.what, What::Looked { .. });
            if signal.at > now && !looked {
                *cancelled = true;
            }
        }
        if let Some(last) = self.entries.last_mut()
            && matches!(last.want, Want::Ask { .. })
            && (now + 1..now + 1500).contains(&last.from)
        {
            // A dialog of the start that was left just before it had to be told.
            last.from = now;
            last.due = Due::Never;
        }
        let prints = matches!(self.life, Life::Printing { .. });
        while self.entries.last().is_some_and(|entry| {
            let ends = entry.want == Want::None && !prints;
            entry.from > now && !ends && self.entries.len() > 1
        }) {
            self.entries.pop();
        }
        let mut died = now + self.span(1, 6);
        if cleanly {
            let removed = now + self.delay(20, 30, 45);
            let written = self.file.as_ref();
            if written.is_some_and(|file| !self.old || file.status.is_none()) {
                self.emit(removed, What::Removed { process });
            }
            died = removed + self.span(15, 60);
            if let Some(reason) = reason
                && self.life == Life::Running
            {
                let at = removed + self.span(5, 30);
                let reason = Arc::from(reason);
                self.hook(at, HookKind::SessionEnd { reason });
            }
        }
        self.shell_at = died + 10;
        let died = self.emit(died, What::Died { process });
        self.life = Life::Dead;
        self.ticks.clear();
        self.epoch += 1;
        self.main = None;
        self.rest = Rest::Idle;
        self.queue.clear();
        self.between = false;
        self.agents.clear();
        self.mates = 0;
        self.notices = 0;
        self.shells = 0;
        self.wakes = 0;
        self.menu = false;
        self.dialogs.clear();
        self.card = None;
        let due = Due::After {
            all: vec![died],
            ms: 1000,
        };
        self.say(Want::None, now, due, Push::Silent, "D01 to D03 it ended");
    }

    fn goes_on(&mut self, stopped: u64) {
        let (process, now) = (self.process, self.now);
        let put_off = now - stopped;
        for (signal, _) in &mut self.signals {
            if signal.at > stopped
                && !matches!(signal.what, What::Stopped { .. } | What::Looked { .. })
            {
                signal.at += put_off;
                if let What::Wrote { file, .. } = &mut signal.what
                    && file.since > stopped
                {
                    file.since += put_off;
                }
                if let What::Line { written, .. } = &mut signal.what
                    && *written > stopped
                {
                    *written += put_off;
                }
            }
        }
        if let Some(file) = &mut self.file
            && file.since > stopped
        {
            file.since += put_off;
        }
        for at in [&mut self.written_at, &mut self.flush_at, &mut self.spell_at] {
            if *at > stopped {
                *at += put_off;
            }
        }
        let ticks = std::mem::take(&mut self.ticks);
        self.ticks = ticks
            .into_iter()
            .map(|Reverse((at, sequence, tick))| {
                let at = if at > stopped { at + put_off } else { at };
                Reverse((at, sequence, tick))
            })
            .collect();
        self.life = Life::Running;
        self.emit(
            now,
            What::Stopped {
                process,
                stopped: false,
            },
        );
    }

    // ---- the main lane -----------------------------------------------------------------------------

    fn prompt(&mut self, turn: &Turn) {
        if self.menu || !self.dialogs.is_empty() {
            return;
        }
        if self.works() {
            self.enqueue(turn);
            return;
        }
        if !self.at_prompt() {
            return;
        }
        let now = self.now;
        let asked = now + self.delay(30, 56, 110);
        let busy = now + self.delay(45, 70, 123);
        let text: Arc<str> = Arc::from("do it");
        let kind = HookKind::Prompt {
            text,
            task_notification: false,
        };
        self.new_prompt();
        let hook = self.hook(asked, kind);
        if turn.blocked {
            let began = self.write(busy, FileStatus::Busy, None);
            let at = busy.max(asked) + self.span(25, 40);
            let status = self.resting_status();
            let idle = self.write(at, status, None);
            self.rest = Rest::Idle;
            self.say(
                Want::Busy,
                now,
                Due::Never,
                Push::Silent,
                "I05 a blocked prompt",
            );
            self.say(
                Want::AsBefore { at: now },
                now,
                Due::Unread(began),
                Push::Silent,
                "rule 3: the file never said busy",
            );
            let due = Due::Silence {
                file: idle,
                busy: Some(began),
            };
            self.say(Want::Idle, now, due, Push::Silent, "I05");
            // Nothing is taken before the file says idle again.
            self.between = true;
            let done = self.written_at;
            self.tick(done, Tick::Queue);
            return;
        }
        self.copy_lines(busy + 20);
        self.line(busy + 20, prompted(false));
        self.begin(turn.clone(), true);
        if let Some(main) = &mut self.main {
            main.takes_esc = busy.max(asked) + 20;
        }
        let write = self.write(busy, FileStatus::Busy, None);
        let decides = if self.old { hook } else { write };
        self.judge(
            now,
            Due::After {
                all: vec![decides],
                ms: 300,
            },
            Push::Silent,
            "P02 a prompt",
        );
        let after = busy.max(asked) - now + self.span(60, 200);
        self.next(after, Next::Piece);
    }

    fn copy_lines(&mut self, at: u64) {
        let Some(of) = self.copies.take() else {
            return;
        };
        let old: Vec<(u64, TranscriptKind)> = self
            .signals
            .iter()
            .filter_map(|(signal, cancelled)| match &signal.what {
                What::Line {
                    conversation,
                    written,
                    kind,
                    ..
                } if *conversation == of && !cancelled => Some((*written, kind.clone())),
                What::Line { .. }
                | What::Hook { .. }
                | What::Wrote { .. }
                | What::Removed { .. }
                | What::Found { .. }
                | What::KeyFile { .. }
                | What::Quiet { .. }
                | What::Stopped { .. }
                | What::Died { .. }
                | What::Looked { .. } => None,
            })
            .collect();
        for (written, kind) in old {
            let id = self.line(at, kind);
            if let What::Line { written: at, .. } = &mut self.signals[id].0.what {
                *at = written;
            }
        }
    }

    fn begin(&mut self, turn: Turn, typed: bool) {
        self.epoch += 1;
        self.main = Some(Main {
            turn,
            piece: 0,
            phase: Phase::Silent,
            began: self.now,
            takes_esc: self.now + 140,
            typed,
            told: true,
            compacted: false,
            vetoed: 0,
            wakes: false,
            tool: None,
            ready: VecDeque::new(),
        });
    }

    /// A prompt while something runs waits; its UPS comes now (measured), and only now.
    fn enqueue(&mut self, turn: &Turn) {
        let takes = self.main.as_ref().is_some_and(|main| match main.phase {
            Phase::Silent | Phase::Streaming | Phase::Tool => self.now > main.began + 700,
            Phase::Asking
            | Phase::AutoCompaction
            | Phase::Compaction
            | Phase::Bang
            | Phase::Clearing
            | Phase::Ending
            | Phase::Inner
            | Phase::Nested => false,
        });
        if !takes || turn.blocked || !self.agents.is_empty() || self.notices > 0 {
            return;
        }
        let at = self.now + self.delay(34, 60, 177);
        let text = Arc::from("and that");
        let hook = self.hook(
            at,
            HookKind::Prompt {
                text,
                task_notification: false,
            },
        );
        self.enqueued_at = at + 20;
        if let Some(main) = &mut self.main {
            main.takes_esc = main.takes_esc.max(at + 20);
        }
        let line = self.line(at + 10, TranscriptKind::Enqueued);
        self.queue.push_back(Waiting {
            what: Queued::Typed(turn.clone()),
            told: vec![hook, line],
        });
        self.waits_in_spell = true;
    }

    fn main_goes_on(&mut self, next: Next) {
        if self.main.is_none() {
            return;
        }
        match next {
            Next::Piece => self.piece(),
            Next::Token => {
                if let Some(main) = &mut self.main {
                    main.phase = Phase::Streaming;
                    if let Some(Piece::Think { text, .. }) = main.turn.pieces.get(main.piece) {
                        let text = *text;
                        main.piece += 1;
                        self.next(text, Next::Piece);
                    }
                }
            }
            Next::Asks => self.main_asks(),
            Next::ToolEnds => self.main_tool_ends(),
            Next::Compacted => self.compacted(),
            Next::Bang => self.bang_ends(),
            Next::Finish => self.finishes(),
            Next::Done => self.done(),
            Next::Cleared => {
                self.main = None;
            }
        }
    }

    fn piece(&mut self) {
        let Some(main) = &mut self.main else {
            return;
        };
        let Some(piece) = main.turn.pieces.get(main.piece).cloned() else {
            self.finishes();
            return;
        };
        if !matches!(piece, Piece::Think { .. }) {
            main.piece += 1;
        }
        match piece {
            Piece::Think { silent, .. } => {
                main.phase = Phase::Silent;
                self.next(silent, Next::Token);
            }
            Piece::Tool(tool) => {
                main.phase = Phase::Tool;
                let name = tool_name(tool.dialog);
                let call = self.main_call(name);
                if let Some(main) = &mut self.main {
                    main.tool = Some((tool.clone(), call));
                }
                if tool.dialog.is_some() {
                    let after = self.delay(55, 90, 130);
                    self.next(after, Next::Asks);
                } else {
                    let after = self.span(40, 60) + tool.ms;
                    self.next(after, Next::ToolEnds);
                }
            }
            Piece::Agent { think, tools } => self.agent_starts(think, tools, false),
            Piece::Teammate { think, tools } => self.agent_starts(think, tools, true),
            Piece::Inner { tools } => self.inner_starts(tools),
            Piece::Nested(turn) => {
                main.phase = Phase::Nested;
                let call = self.call("Bash");
                self.tool_starts(None, &call);
                if let Some(main) = &mut self.main {
                    let tool = Tool {
                        ms: 0,
                        dialog: None,
                        fails: false,
                    };
                    main.tool = Some((tool, call));
                }
                let child = self.bear(Birth {
                    same_pid: false,
                    pane: self.pane,
                    parent: Some(self.process),
                    role: Role::Nothing,
                    old: false,
                });
                let (_, _, died) = self.prints(child, self.now + 60, &turn);
                let after = died - self.now + self.span(20, 60);
                self.next(after, Next::ToolEnds);
            }
            Piece::Shell { ms } => {
                main.phase = Phase::Tool;
                let call = self.call("Bash");
                self.tool_starts(None, &call);
                let ended = self.now + self.span(100, 160);
                self.tool_ended(ended, &call);
                self.shells += 1;
                let process = self.process;
                self.tick(ended + ms, Tick::ShellEnds(process));
                let after = ended - self.now + self.span(80, 160);
                self.next(after, Next::Piece);
            }
            Piece::Compaction { ms } => {
                main.phase = Phase::AutoCompaction;
                main.compacted = true;
                let at = self.now;
                self.hook(at, HookKind::CompactStarted { manual: false });
                self.next(ms, Next::Compacted);
            }
            Piece::Wakeup { ms } => {
                main.phase = Phase::Tool;
                main.wakes = true;
                let call = self.call("ScheduleWakeup");
                self.tool_starts(None, &call);
                let ended = self.now + self.span(100, 170);
                self.tool_ended(ended, &call);
                self.wakes += 1;
                let process = self.process;
                // At a full minute of the wall clock, and some milliseconds (s36).
                let boot = u64::try_from(BOOT_WALL_MS).unwrap_or(0);
                let wakes_at = (boot + ended + ms).div_ceil(60_000) * 60_000 - boot;
                self.wakes_at = wakes_at;
                let late = self.chance.between(40, 120);
                self.tick(wakes_at + late, Tick::Wakes(process));
                let after = ended - self.now + self.span(80, 160);
                self.next(after, Next::Piece);
            }
        }
    }

    /// The call of a piece that begins now. One answer may hold several calls: the transcript has them all at
    /// once, each hook comes when its own turn has come.
    fn main_call(&mut self, name: &str) -> ToolCall {
        let waiting = self.main.as_mut().and_then(|main| main.ready.pop_front());
        if let Some(call) = waiting {
            let (now, tool) = (self.now, call.clone());
            self.hook(now, HookKind::ToolStarted { tool });
            return call;
        }
        let call = self.call(name);
        self.tool_starts(None, &call);
        if self.chance.percent(60) {
            return call;
        }
        let rest: Vec<&'static str> = self.main.as_ref().map_or(Vec::new(), |main| {
            let rest = main.turn.pieces.iter().skip(main.piece);
            rest.map_while(|piece| match piece {
                Piece::Tool(tool) => Some(tool_name(tool.dialog)),
                Piece::Agent { .. } | Piece::Teammate { .. } => Some("Agent"),
                Piece::Think { .. }
                | Piece::Shell { .. }
                | Piece::Inner { .. }
                | Piece::Nested(_)
                | Piece::Compaction { .. }
                | Piece::Wakeup { .. } => None,
            })
            .collect()
        });
        for name in rest {
            let call = self.call(name);
            let (now, tool) = (self.now, call.clone());
            self.line(now, TranscriptKind::ToolStarted { tool });
            if let Some(main) = &mut self.main {
                main.ready.push_back(call);
            }
        }
        call
    }

    fn call(&mut self, name: &str) -> ToolCall {
        self.tools += 1;
        let number = self.tools;
        let questions = if name == "AskUserQuestion" {
            vec![Question {
                text: Arc::from("Which colour?"),
                options: vec![Arc::from("Red"), Arc::from("Blue")],
                multi: false,
            }]
        } else {
            Vec::new()
        };
        ToolCall {
            name: Arc::from(name),
            use_id: Some(Arc::from(format!("toolu_{number}"))),
            arg: Some(Arc::from(format!("touch file-{number}.txt"))),
            input_digest: number,
            questions,
        }
    }

    fn tool_starts(&mut self, lane: Option<Arc<str>>, call: &ToolCall) {
        let now = self.now;
        let main = lane.is_none();
        let tool = call.clone();
        self.lane_hook(now, lane, HookKind::ToolStarted { tool });
        if main {
            let tool = call.clone();
            self.line(now, TranscriptKind::ToolStarted { tool });
        }
    }

    fn tool_ended(&mut self, at: u64, call: &ToolCall) {
        let tool = call.clone();
        let hook = self.hook(at, HookKind::ToolEnded { tool });
        self.card_moves(None, hook);
        self.freed_by(hook);
        self.tool_result(at, call);
    }

    /// Without a status nothing but the tool's end tells that its dialog was answered (Q14).
    fn freed_by(&mut self, hook: Id) {
        if let Some((entry, request)) = self.freed.take() {
            let result = hook;
            self.entries[entry].due = Due::Answered { request, result };
        }
    }

    fn tool_result(&mut self, at: u64, call: &ToolCall) -> Option<Id> {
        let use_id = call.use_id.clone()?;
        Some(self.line(at, TranscriptKind::ToolEnded { use_id }))
    }

    /// Two dialogs that are drawn within one another's delays can't be told apart; it was never recorded.
    fn just_asked(&self) -> bool {
        self.dialogs
            .iter()
            .any(|asked| self.now < asked.drawn + 250)
    }

    fn main_asks(&mut self) {
        if self.just_asked() {
            self.next(260, Next::Asks);
            return;
        }
        let Some((tool, call)) = self.main.as_ref().and_then(|main| main.tool.clone()) else {
            return;
        };
        let mut kind = tool.dialog.unwrap_or(Dialog::Permission);
        if kind == Dialog::Auto && (self.menu || !self.dialogs.is_empty()) {
            kind = Dialog::Permission;
        }
        if kind == Dialog::Phantom {
            let at = self.now;
            self.hook(at, requested(&call));
            self.next(tool.ms, Next::ToolEnds);
            return;
        }
        if let Some(main) = &mut self.main {
            main.phase = Phase::Asking;
        }
        self.ask(None, kind, call);
    }

    /// A dialog is drawn. PermissionRequest mostly 10 to 34 ms before the file, from 13 ms after to 158 before.
    fn ask(&mut self, agent: Option<u32>, kind: Dialog, call: ToolCall) {
        let now = self.now;
        let lane = agent.and_then(|number| self.lane(number));
        // However slow the machine, the two never lay further apart (measured).
        let written = now + (12 + self.delay(5, 25, 140)).min(175);
        let hook = match kind {
            Dialog::Permission | Dialog::Question | Dialog::Plan | Dialog::Phantom => {
                Some(requested(&call))
            }
            Dialog::Form => Some(HookKind::FormAsked {
                server: Arc::from("lab"),
                message: Arc::from("Which colour?"),
            }),
            Dialog::Auto => None,
        };
        let hook = hook.map(|kind| {
            let at = now + self.chance.between(0, 40);
            self.lane_hook(at, lane, kind)
        });
        self.dialogs.push_back(Asked {
            agent,
            kind,
            call,
            drawn: now,
            touched: now,
            notified: false,
        });
        let file = self.refresh(written);
        self.tick(now + 6000, Tick::Nag(now));
        if let Some(file) = file {
            let mut all = vec![file];
            // In the auto-mode dialog the open tool's PreToolUse is what makes it more than a menu (rule 5).
            if kind == Dialog::Auto {
                all.extend(self.last_tool_started());
            }
            if let (true, Some(hook)) = (self.old, hook) {
                all = vec![hook];
            }
            let due = Due::After { all, ms: 400 };
            self.judge(now, due, Push::Yes, "Q01 to Q08 a dialog");
        }
    }

    fn last_tool_started(&self) -> Option<Id> {
        self.signals.iter().rposition(|(signal, _)| {
            matches!(
                &signal.what,
                What::Hook {
                    lane: None,
                    kind: HookKind::ToolStarted { .. },
                    ..
                }
            )
        })
    }

    fn nag(&mut self, touched: u64) {
        let now = self.now;
        let Some(asked) = self.dialogs.front_mut() else {
            return;
        };
        if asked.touched != touched || asked.notified {
            return;
        }
        asked.notified = true;
        let kind = match asked.kind {
            Dialog::Auto => "agent_needs_input",
            Dialog::Form => "elicitation_dialog",
            Dialog::Permission | Dialog::Question | Dialog::Plan | Dialog::Phantom => {
                "permission_prompt"
            }
        };
        self.notify(now, kind);
    }

    fn notify(&mut self, at: u64, kind: &str) {
        let kind = Some(Arc::from(kind));
        let message = Arc::from("Claude needs you");
        self.hook(at, HookKind::Notified { kind, message });
    }

    /// The dialog in front is answered so that Claude goes on.
    fn answer(&mut self, no_with_words: bool) {
        if self.menu {
            return;
        }
        let Some(asked) = self.dialogs.pop_front() else {
            return;
        };
        let now = self.now;
        let busy = now + self.delay(54, 60, 91);
        let file = self.refresh(busy);
        let due = file.map_or(Due::Never, |file| Due::After {
            all: vec![file],
            ms: 300,
        });
        let next_asks = !self.dialogs.is_empty();
        let push = if next_asks {
            Push::Perhaps
        } else {
            Push::Silent
        };
        let told = file.is_some();
        let due = if self.old { Due::Never } else { due };
        self.judge(now, due, push, "Q02 it was answered");
        if self.old && !no_with_words && !next_asks {
            let number = asked.call.input_digest;
            let request = self.signals.iter().rposition(|(signal, _)| {
                matches!(&signal.what, What::Hook { kind: HookKind::PermissionRequested { tool }, .. }
                    if tool.input_digest == number)
            });
            self.freed = request.map(|request| (self.entries.len() - 1, request));
        }
        if next_asks && !told {
            // Of two answers in a row without a result between them nothing tells.
            let unclear = self.card.take().is_some();
            self.card = (!unclear).then_some(Card {
                entry: self.entries.len() - 1,
                agent: asked.agent,
                left: None,
            });
        }
        if next_asks {
            let front = self.dialogs.front().map(|next| next.touched);
            if let Some(touched) = front {
                let at = now.max(touched) + 6000;
                if let Some(next) = self.dialogs.front_mut() {
                    next.touched = now;
                }
                self.tick(at, Tick::Nag(now));
            }
        }
        let Some(number) = asked.agent else {
            self.main_answered(&asked, no_with_words);
            return;
        };
        let Some(agent) = self.agent(number) else {
            return;
        };
        let ms = agent.tool.as_ref().map_or(0, |(tool, _)| tool.ms);
        let at = now + self.span(40, 110) + ms;
        self.tick(at, Tick::AgentTool(number));
    }

    fn main_answered(&mut self, asked: &Asked, no_with_words: bool) {
        let now = self.now;
        let Some(main) = &mut self.main else {
            return;
        };
        main.phase = Phase::Tool;
        let ms = main.tool.as_ref().map_or(0, |(tool, _)| tool.ms);
        if no_with_words && asked.kind == Dialog::Permission {
            // No hook: the tool's result in the transcript is an error and Claude goes on.
            main.tool = None;
            main.phase = Phase::Silent;
            self.tool_result(now + 60, &asked.call);
            let after = self.span(80, 200);
            self.next(after, Next::Piece);
            return;
        }
        match asked.kind {
            Dialog::Form => {
                let at = now + self.span(85, 120);
                self.hook(at, HookKind::FormAnswered);
                self.notify(at + 60, "elicitation_response");
                self.next(at + 75 - now, Next::ToolEnds);
            }
            Dialog::Question | Dialog::Plan => {
                let after = self.span(45, 140);
                self.next(after, Next::ToolEnds);
            }
            Dialog::Permission | Dialog::Auto | Dialog::Phantom => {
                let after = self.span(60, 140) + ms;
                self.next(after, Next::ToolEnds);
            }
        }
    }

    fn main_tool_ends(&mut self) {
        let now = self.now;
        let Some((tool, call)) = self.main.as_mut().and_then(|main| main.tool.take()) else {
            return;
        };
        if tool.fails {
            let failed = call.clone();
            let hook = self.hook(
                now,
                HookKind::ToolFailed {
                    tool: failed,
                    interrupted: false,
                },
            );
            self.freed_by(hook);
            self.tool_result(now, &call);
        } else {
            self.tool_ended(now, &call);
        }
        if let Some(main) = &mut self.main {
            main.phase = Phase::Silent;
        }
        // Prompts that wait are taken into the running turn at a tool's end.
        if !self.queue.is_empty() && now > self.enqueued_at && self.chance.percent(80) {
            let waiting = self.queue.len();
            self.queue.clear();
            for _ in 0..waiting {
                self.line(now + 90, TranscriptKind::Dequeued);
            }
        }
        let after = self.span(120, 220);
        self.next(after, Next::Piece);
    }

    fn finishes(&mut self) {
        let now = self.now;
        if self.notices > 0 || now <= self.enqueued_at {
            // A helper is just about to report; it is heard before the turn ends.
            self.next(100, Next::Finish);
            return;
        }
        let Some(main) = &mut self.main else {
            return;
        };
        main.phase = Phase::Ending;
        // A failure that the file told first was recorded only without a compaction.
        let compacted = main.compacted;
        if !self.agents.is_empty() || self.notices > 0 {
            // A failure with helpers at work was never recorded.
            if let End::Error { .. } = main.turn.end {
                main.turn.end = End::Answer { vetoes: 0, slow: 0 };
            }
        }
        match main.turn.end {
            End::Answer { vetoes, slow } => {
                let again = main.vetoed > 0;
                let vetoed = main.vetoed < vetoes;
                let wakes = main.wakes;
                let last_message: Option<Arc<str>> = Some(Arc::from("that is done"));
                self.line(
                    now,
                    TranscriptKind::TurnEnded {
                        last_message: last_message.clone(),
                    },
                );
                let at = now + self.span(5, 40);
                let agents = u32::try_from(self.agents.len()).unwrap_or(u32::MAX);
                let background = BackgroundTasks {
                    shells: self.shells,
                    agents: agents + self.mates,
                };
                let wakes_at = BOOT_WALL_MS + i64::try_from(self.wakes_at).unwrap_or(i64::MAX);
                let kind = HookKind::Stopped {
                    last_message: last_message.filter(|_| !self.old),
                    background: (!self.old).then_some(background),
                    wakes_at_ms: wakes.then_some(wakes_at),
                    has_crons: wakes || self.wakes > 0,
                    stop_hook_active: again,
                };
                self.hook(at, kind);
                if vetoed {
                    if let Some(main) = &mut self.main {
                        main.vetoed += 1;
                        main.phase = Phase::Streaming;
                    }
                    let after = at - now + self.span(80, 1500);
                    self.next(after, Next::Finish);
                } else {
                    self.next(at - now + slow, Next::Done);
                }
            }
            End::Error { kind, late } => {
                let error: Arc<str> = Arc::from(ERRORS[usize::from(kind) % ERRORS.len()]);
                let message: Option<Arc<str>> = Some(Arc::from("API Error"));
                self.line(
                    now,
                    TranscriptKind::ApiError {
                        kind: error.clone(),
                        message: message.clone(),
                    },
                );
                if !late || compacted {
                    self.hook(now, HookKind::StopFailed { error, message });
                }
                self.next(0, Next::Done);
            }
        }
    }

    fn done(&mut self) {
        let now = self.now;
        let Some(main) = self.main.take() else {
            return;
        };
        self.epoch += 1;
        let lasted = now.saturating_sub(main.began);
        let (error, lag) = match main.turn.end {
            End::Answer { .. } => (None, self.delay(39, 69, 110)),
            End::Error { kind, late } => {
                let error: Arc<str> = Arc::from(ERRORS[usize::from(kind) % ERRORS.len()]);
                let lag = self.delay(10, 28, 45);
                if late && !main.compacted {
                    let at = now + lag + self.span(4, 10);
                    let message = Some(Arc::from("API Error"));
                    let error = error.clone();
                    self.hook(at, HookKind::StopFailed { error, message });
                }
                (Some(error), lag)
            }
        };
        if error.is_none() && !self.old {
            let line = TranscriptKind::TurnEnded { last_message: None };
            if self.queue.is_empty() {
                self.line(now + lag, line);
            } else {
                self.closing = Some(line);
            }
        }
        if self.queue.is_empty() {
            self.rest = Rest::Review {
                error,
                typed: main.typed,
            };
            let compacted = main.compacted.then_some(main.began);
            self.ended(now + lag, lasted, compacted);
        } else {
            let told = self.queue.iter().flat_map(|waiting| waiting.told.clone());
            let told: Vec<Id> = told.collect();
            let idle = self.passes_to_queue(now + lag);
            if let (Some(file), Want::Busy) = (idle, &self.truth) {
                // Where nothing tells of what waits, the turn's end is all that can be known (rule 4).
                let from = self.signals[file].0.at;
                let due = Due::Unless { told, file };
                let want = Want::Review {
                    error: error.clone(),
                };
                self.say(
                    want,
                    from,
                    due,
                    Push::Perhaps,
                    "rule 4, nothing known to wait",
                );
                self.say(Want::Busy, from, Due::Never, Push::Silent, "B05 it goes on");
            }
            self.rest = Rest::Review {
                error,
                typed: main.typed,
            };
        }
    }

    /// The turn is over and no prompt waits.
    fn ended(&mut self, idle_at: u64, lasted: u64, compacted: Option<u64>) {
        let stop = self.last_end();
        let lines = self.last_end_lines();
        let slow = matches!(&self.signals[stop].0.what, What::Hook { kind: HookKind::Stopped { background: Some(tasks), .. }, .. } if tasks.agents > 0);
        let stale = idle_at.saturating_sub(self.signals[stop].0.at) >= 5000;
        let plain = !slow && !stale && !self.waits_in_spell && lasted > 0;
        let (bored, epoch) = (self.signals[stop].0.at + 60_000, self.epoch);
        self.tick(bored, Tick::Bored(epoch));
        let Some(file) = self.refresh(idle_at) else {
            return;
        };
        let push = match &self.rest {
            Rest::Review { typed: false, .. } => Push::Perhaps,
            Rest::Review { .. } | Rest::Read { .. } | Rest::Idle => Push::Yes,
        };
        if self.old {
            let from = self.signals[stop].0.at;
            let due = Due::After {
                all: vec![stop],
                ms: 300,
            };
            self.judge(from, due, push, "the turn ended, without a status");
            return;
        }
        let from = self.signals[file].0.at;
        let due = Due::End {
            hook: stop,
            file,
            lines,
            plain,
            compacted,
        };
        self.judge(from, due, push, "P02 the turn ended");
    }

    /// Sixty seconds after the Stop, once, if nothing has happened (measured; not after an interrupt).
    fn is_bored(&mut self, epoch: u32) {
        let rests = !self.works() && !self.menu && self.dialogs.is_empty();
        if epoch == self.epoch && rests && self.life == Life::Running {
            let now = self.now;
            self.notify(now, "idle_prompt");
        }
    }

    fn last_end(&self) -> Id {
        let found = self.signals.iter().rposition(|(signal, _)| {
            matches!(
                &signal.what,
                What::Hook {
                    lane: None,
                    kind: HookKind::Stopped { .. } | HookKind::StopFailed { .. },
                    ..
                }
            )
        });
        found.expect("a turn that ends has a Stop or a StopFailure")
    }

    fn last_end_lines(&self) -> Vec<Id> {
        let found = self.signals.iter().rposition(|(signal, _)| {
            matches!(
                &signal.what,
                What::Line {
                    kind: TranscriptKind::TurnEnded { .. } | TranscriptKind::ApiError { .. },
                    ..
                }
            )
        });
        found.into_iter().collect()
    }

    /// The file says idle for a moment, then the prompts that waited run as one turn.
    fn passes_to_queue(&mut self, idle_at: u64) -> Option<Id> {
        self.between = true;
        let shown = self.agents.is_empty() && self.notices == 0 && self.dialogs.is_empty();
        let idle = shown.then(|| {
            let status = self.resting_status();
            self.write(idle_at, status, None)
        });
        let at = idle.map_or(idle_at, |idle| self.signals[idle].0.at);
        let gap = self.delay(30, 34, 140).min(240);
        self.tick(at + gap, Tick::Queue);
        idle
    }

    fn queue_starts(&mut self) {
        let now = self.now;
        self.between = false;
        let waiting = self.queue.len();
        let Some(first) = self.queue.pop_front() else {
            return;
        };
        let mate = matches!(first.what, Queued::Mate);
        let (mut turn, mut typed) = match first.what {
            Queued::Typed(turn) => (turn, true),
            Queued::Notice | Queued::Mate => (notice_turn(), false),
        };
        for other in std::mem::take(&mut self.queue) {
            if let Queued::Typed(other) = other.what {
                turn.pieces.extend(other.pieces);
                turn.end = other.end;
                typed = true;
            }
        }
        for _ in 0..if mate { 0 } else { waiting } {
            self.line(now, TranscriptKind::Dequeued);
        }
        if let Some(line) = self.closing.take() {
            self.line(now, line);
        }
        for _ in 0..waiting {
            self.line(now, prompted(!typed && !mate));
        }
        self.begin(turn, typed);
        if !mate {
            // A teammate's message goes on under the id of the turn before (s38).
            self.new_prompt();
        }
        if let Some(main) = &mut self.main {
            main.told = !typed;
        }
        self.refresh(now);
        if !typed && !mate {
            let at = now + self.span(0, 25);
            self.task_notification(at);
        }
        self.judge(now, Due::Never, Push::Silent, "B05 the prompts that waited");
        let after = self.span(60, 160);
        self.next(after, Next::Piece);
    }

    fn task_notification(&mut self, at: u64) {
        let text = Arc::from("<task-notification>");
        self.hook(
            at,
            HookKind::Prompt {
                text,
                task_notification: true,
            },
        );
        if at > self.spell_at + 400 {
            self.waits_in_spell = true;
        }
    }

    // ---- commands ----------------------------------------------------------------------------------

    fn bang(&mut self, ms: u64) {
        if !self.at_prompt() {
            return;
        }
        let now = self.now;
        // Without hooks nothing tells that it was typed.
        self.begin(notice_turn(), !self.unheard);
        self.new_prompt();
        if let Some(main) = &mut self.main {
            main.phase = Phase::Bang;
        }
        let at = now + self.delay(58, 85, 140);
        let busy = self.write(at, FileStatus::Busy, None);
        let due = Due::After {
            all: vec![busy],
            ms: 300,
        };
        self.judge(now, due, Push::Silent, "P08 a command of the shell");
        self.next(at - now + ms, Next::Bang);
    }

    fn bang_ends(&mut self) {
        if let Some(main) = &mut self.main {
            main.phase = Phase::Silent;
        }
        let after = self.span(60, 160);
        self.next(after, Next::Piece);
    }

    fn compact(&mut self, ms: u64) {
        // Nobody types a command within the half second that decides the turn before.
        if !self.at_prompt() || self.now < self.written_at + 700 {
            return;
        }
        let now = self.now;
        self.begin(notice_turn(), true);
        self.new_prompt();
        if let Some(main) = &mut self.main {
            main.phase = Phase::Compaction;
        }
        let hook = now + self.delay(40, 58, 80);
        self.hook(hook, HookKind::CompactStarted { manual: true });
        // The hook's process takes some milliseconds to begin, the write does not.
        let at = hook + self.delay(4, 20, 169) - 12;
        let busy = self.write(at, FileStatus::Busy, None);
        let due = Due::After {
            all: vec![busy],
            ms: 300,
        };
        self.judge(now, due, Push::Silent, "C01 /compact");
        self.next(at - now + ms, Next::Compacted);
    }

    fn compacted(&mut self) {
        let now = self.now;
        self.inner_stop(now);
        let source = StartSource::Compact;
        let began = now + self.span(50, 85);
        self.hook(began, HookKind::SessionStart { source });
        let ended = began + self.span(20, 40);
        self.hook(ended, HookKind::CompactEnded);
        self.line(ended + 70, TranscriptKind::CompactBoundary);
        let manual = self
            .main
            .as_ref()
            .is_some_and(|main| main.phase == Phase::Compaction);
        if manual {
            let at = ended + self.delay(40, 65, 110);
            self.restored(at, "C01 the badge from before");
        } else {
            if let Some(main) = &mut self.main {
                main.phase = Phase::Silent;
            }
            let after = ended - now + self.span(100, 400);
            self.next(after, Next::Piece);
        }
    }

    /// A helper of Claude's own ends; it has no type and says nothing about the turn (B03).
    fn inner_stop(&mut self, at: u64) {
        self.born += 1;
        let id: Arc<str> = Arc::from(format!("a{:016x}", self.born));
        let kind = Arc::from("");
        self.lane_hook(at, Some(id.clone()), HookKind::SubagentStopped { id, kind });
    }

    /// A compaction is over: what was before is so again.
    fn restored(&mut self, idle_at: u64, why: &'static str) {
        let Some(main) = self.main.take() else {
            return;
        };
        self.epoch += 1;
        let now = self.now;
        if let Some(file) = self.refresh(idle_at) {
            let right = self.right();
            self.truth = right;
            self.entries.push(Entry {
                want: Want::AsBefore { at: main.began },
                from: now,
                due: Due::Silence {
                    file,
                    busy: self.began,
                },
                push: Push::Perhaps,
                why,
                cast: self.cast,
            });
        }
    }

    fn clear(&mut self) {
        if !self.at_prompt() || self.shells + self.wakes > 0 {
            return;
        }
        let now = self.now;
        let ended = now + self.delay(30, 42, 80);
        let reason = Arc::from("clear");
        self.new_prompt();
        self.hook(ended, HookKind::SessionEnd { reason });
        let busy = ended + self.span(1, 50) - 15;
        self.write(busy, FileStatus::Busy, None);
        self.conversation = self.new_conversation();
        self.flush_at = 0;
        let named = busy + self.span(100, 180);
        self.rewrite(named);
        let source = StartSource::Clear;
        let started = named + self.span(30, 70);
        let hook = self.hook(started, HookKind::SessionStart { source });
        let idle = started + self.span(100, 280);
        let status = self.resting_status();
        let file = self.write(idle, status, None);
        self.rest = Rest::Idle;
        self.begin(notice_turn(), true);
        if let Some(main) = &mut self.main {
            main.phase = Phase::Clearing;
        }
        if self.old {
            let due = Due::After {
                all: vec![hook],
                ms: 300,
            };
            self.say(
                Want::Idle,
                now,
                due,
                Push::Silent,
                "R02 /clear without a status",
            );
            self.next(idle - now, Next::Cleared);
            return;
        }
        // SessionStart makes idle at once; the busy that the file said before it may be read after it.
        self.say(Want::Idle, now, Due::Never, Push::Silent, "R01 /clear");
        self.say(Want::Busy, now, Due::Never, Push::Silent, "R01 /clear");
        self.say(
            Want::Idle,
            now,
            Due::End {
                hook,
                file,
                lines: Vec::new(),
                plain: true,
                compacted: None,
            },
            Push::Silent,
            "R01 /clear",
        );
        self.next(idle - now, Next::Cleared);
    }

    fn pick(&mut self) {
        if !self.queue.is_empty() {
            return;
        }
        if !self.menu || self.works() || !self.dialogs.is_empty() || self.shells + self.wakes > 0 {
            return;
        }
        if self.now <= self.written_at {
            return;
        }
        let now = self.now;
        let ended = now + self.span(60, 90);
        let reason = Arc::from("resume");
        self.new_prompt();
        self.hook(ended, HookKind::SessionEnd { reason });
        self.conversation = if self.conversation > self.cast * 1000 {
            self.conversation - 1
        } else {
            self.new_conversation()
        };
        self.flush_at = 0;
        let started = ended + self.span(50, 80);
        let source = StartSource::Resume;
        let hook = self.hook(started, HookKind::SessionStart { source });
        let named_at = started + self.span(60, 90);
        let named = self.rewrite(named_at);
        self.menu = false;
        let at = self.written_at + self.span(80, 120);
        let idle = self.refresh(at);
        self.rest = Rest::Idle;
        let mut all = vec![hook, named];
        all.extend(idle);
        let due = Due::After { all, ms: 300 };
        self.judge(now, due, Push::Silent, "R03 /resume");
    }

    fn open_menu(&mut self) {
        if self.menu || !self.dialogs.is_empty() || !self.queue.is_empty() || self.between {
            return;
        }
        if self.now <= self.written_at {
            return;
        }
        if !self.agents.is_empty() || self.notices > 0 {
            return;
        }
        let open = self.main.as_ref().is_none_or(|main| match main.phase {
            Phase::Silent | Phase::Streaming | Phase::Tool => self.now > main.began + 400,
            Phase::Asking
            | Phase::AutoCompaction
            | Phase::Compaction
            | Phase::Bang
            | Phase::Clearing
            | Phase::Ending
            | Phase::Inner
            | Phase::Nested => false,
        });
        // A turn that goes on to spawn helpers under an open menu was never recorded.
        let spawns = self.main.as_ref().is_some_and(|main| {
            main.turn
                .pieces
                .iter()
                .any(|piece| matches!(piece, Piece::Agent { .. } | Piece::Teammate { .. }))
        });
        if open && !spawns {
            self.menu = true;
            let at = self.now + self.delay(39, 60, 206);
            self.refresh(at);
        }
    }

    fn esc(&mut self) {
        let now = self.now;
        if self.menu {
            if now <= self.written_at {
                let (at, process) = (self.written_at + 20, self.process);
                self.tick(at, Tick::Esc(process));
                return;
            }
            self.menu = false;
            let at = now + self.delay(90, 105, 190);
            if self.works() || self.queue.is_empty() {
                self.refresh(at);
            } else {
                // What ended under the menu is told now (c4): idle, then the turn that nobody typed.
                self.passes_to_queue(at);
            }
            return;
        }
        if let Some(asked) = self.dialogs.front() {
            if asked.agent.is_none() {
                self.refuse();
            }
            return;
        }
        let Some(main) = &self.main else {
            return;
        };
        // Whether an Esc just after a vetoed Stop looks different from a slow Stop hook was never measured.
        // Nor an Esc in a queued turn that had done nothing but compact.
        if main.vetoed > 0 || (main.compacted && !main.told) {
            return;
        }
        if now < main.takes_esc {
            let (at, process) = (main.takes_esc, self.process);
            self.tick(at, Tick::Esc(process));
            return;
        }
        if !self.agents.is_empty() || self.notices > 0 {
            return;
        }
        match main.phase {
            Phase::Silent => self.interrupted(false, false),
            Phase::Streaming => self.interrupted(false, true),
            Phase::Tool => self.interrupted(true, true),
            Phase::Bang => self.interrupted(true, false),
            Phase::Compaction => {
                let at = now + self.delay(92, 115, 147);
                self.restored(at, "C03 the compaction was cancelled");
            }
            Phase::Asking
            | Phase::AutoCompaction
            | Phase::Clearing
            | Phase::Ending
            | Phase::Inner
            | Phase::Nested => {}
        }
    }

    /// Esc at a turn: no hook; with a marker in the transcript unless nothing had come yet.
    fn interrupted(&mut self, in_tool: bool, marker: bool) {
        let now = self.now;
        let Some(main) = self.main.take() else {
            return;
        };
        self.epoch += 1;
        let mut at = now + self.delay(92, 115, 143);
        let mut told = Due::Never;
        if marker {
            // Claude stamps these lines 15 to 60 ms before the file (measured); they can be read later.
            let written = at - self.chance.between(15, 60);
            if let Some((_, call)) = &main.tool {
                let call = call.clone();
                self.tool_result(written, &call);
            }
            for call in &main.ready {
                self.tool_result(written, call);
            }
            if !in_tool && self.chance.percent(20) {
                // 2.1.128 writes a stop reason on the part that had come.
                self.line(written, TranscriptKind::TurnEnded { last_message: None });
            }
            told = self.marker(written);
        }
        self.rest = Rest::Idle;
        if self.old {
            self.judge(now, told, Push::Silent, "Q14 only the marker tells");
            // The prompt comes back when the turn has ended.
            self.written_at = at;
            return;
        }
        if !self.queue.is_empty() {
            self.passes_to_queue(at);
            return;
        }
        if in_tool && self.shells == 0 {
            self.write(at, FileStatus::Shell, None);
            at += self.span(45, 65);
        }
        if let Some(file) = self.refresh(at) {
            let due = Due::Silence {
                file,
                busy: self.began,
            };
            self.judge(now, due, Push::Silent, "I01 to I04 interrupted");
        }
    }

    /// The interrupt line; where a prompt waits it comes after the queue was emptied (s14).
    fn marker(&mut self, at: u64) -> Due {
        if self.queue.is_empty() {
            let line = self.line(at, TranscriptKind::Interrupted);
            let all = vec![line];
            Due::After { all, ms: 800 }
        } else {
            self.closing = Some(TranscriptKind::Interrupted);
            Due::Never
        }
    }

    /// Esc or the last option at the main lane's dialog.
    fn refuse(&mut self) {
        let now = self.now;
        let Some(asked) = self.dialogs.pop_front() else {
            return;
        };
        let ready = self.main.take().map_or(VecDeque::new(), |main| main.ready);
        self.epoch += 1;
        let at = now + self.delay(76, 115, 170);
        let written = at - self.chance.between(15, 60);
        let result = self.tool_result(written, &asked.call);
        for call in &ready {
            self.tool_result(written, call);
        }
        let told = self.marker(written);
        self.rest = Rest::Idle;
        if self.old {
            self.judge(now, told, Push::Silent, "Q14 only the marker tells");
            // The prompt comes back when the turn has ended.
            self.written_at = at;
            return;
        }
        if !self.queue.is_empty() {
            let idle = self.passes_to_queue(at);
            let due = idle.map_or(Due::Never, |idle| Due::After {
                all: vec![idle],
                ms: 1000,
            });
            self.judge(now, due, Push::Silent, "B06 a prompt waits");
            return;
        }
        if let Some(file) = self.refresh(at) {
            if asked.kind == Dialog::Auto {
                // Its result in the transcript ends it before the file does (rule 5).
                self.say(
                    Want::Busy,
                    now,
                    Due::Never,
                    Push::Silent,
                    "rule 5, its result",
                );
            }
            let due = Due::Silence {
                file,
                busy: self.began,
            };
            self.judge(now, due, Push::Silent, "Q03 refused");
        } else if let Some(result) = result {
            // Another dialog moves to the front and the file need not say so.
            let due = Due::After {
                all: vec![result],
                ms: 400,
            };
            self.judge(now, due, Push::Perhaps, "Q11 refused, another in front");
        }
    }

    // ---- beside the main lane ----------------------------------------------------------------------

    fn agent(&mut self, number: u32) -> Option<&mut Agent> {
        self.agents.iter_mut().find(|agent| agent.number == number)
    }

    fn lane(&self, number: u32) -> Option<Arc<str>> {
        let agent = self.agents.iter().find(|agent| agent.number == number);
        agent.map(|agent| agent.id.clone())
    }

    fn agent_starts(&mut self, think: u64, tools: Vec<Tool>, mate: bool) {
        let now = self.now;
        if let Some(main) = &mut self.main {
            main.phase = Phase::Tool;
        }
        let call = self.main_call("Agent");
        self.born += 1;
        let number = self.born;
        let id: Arc<str> = Arc::from(format!("a{number:016x}"));
        let kind: Arc<str> = Arc::from(if mate { "mate" } else { "general-purpose" });
        let started = now + self.span(70, 180);
        let at = started + self.span(0, 25);
        self.tool_ended(at, &call);
        self.lane_hook(
            started,
            Some(id.clone()),
            HookKind::SubagentStarted {
                id: id.clone(),
                kind,
            },
        );
        self.mates += u32::from(mate);
        self.agents.push(Agent {
            id,
            number,
            tools: tools.into(),
            tool: None,
            mate,
            inner: None,
        });
        self.tick(started + think + 150, Tick::Agent(number));
        let beside = self.main.as_ref().is_some_and(|main| {
            main.ready
                .front()
                .is_some_and(|call| call.name.as_ref() == "Agent")
        });
        let after = if beside {
            self.span(1, 5)
        } else {
            at - now + self.span(120, 240)
        };
        self.next(after, Next::Piece);
    }

    /// Before 2.1.332 the turn waits for its subagent (s09a of the old versions).
    fn inner_starts(&mut self, tools: Vec<Tool>) {
        if let Some(main) = &mut self.main {
            main.phase = Phase::Inner;
        }
        let call = self.call("Agent");
        self.tool_starts(None, &call);
        self.born += 1;
        let number = self.born;
        let id: Arc<str> = Arc::from(format!("a{number:016x}"));
        let kind: Arc<str> = Arc::from("general-purpose");
        let started = self.now + self.span(105, 120);
        let starts = HookKind::SubagentStarted {
            id: id.clone(),
            kind,
        };
        self.lane_hook(started, Some(id.clone()), starts);
        self.agents.push(Agent {
            id,
            number,
            tools: tools.into(),
            tool: None,
            mate: false,
            inner: Some(call),
        });
        let at = started + self.span(120, 190);
        self.tick(at, Tick::Agent(number));
    }

    fn agent_goes_on(&mut self, number: u32) {
        let now = self.now;
        let Some(agent) = self.agent(number) else {
            return;
        };
        let (id, mate) = (agent.id.clone(), agent.mate);
        let Some(tool) = agent.tools.pop_front() else {
            let kind: Arc<str> = Arc::from(if mate { "mate" } else { "general-purpose" });
            let lane = Some(id.clone());
            self.lane_hook(now, lane, HookKind::SubagentStopped { id, kind });
            let inner = self.agent(number).and_then(|agent| agent.inner.take());
            self.agents.retain(|agent| agent.number != number);
            if let Some(call) = inner {
                if let Some(main) = &mut self.main {
                    let tool = Tool {
                        ms: 0,
                        dialog: None,
                        fails: false,
                    };
                    main.tool = Some((tool, call));
                }
                let after = self.span(40, 110);
                self.next(after, Next::ToolEnds);
                return;
            }
            self.notices += 1;
            let at = now + self.span(90, 170);
            self.tick(at, Tick::Notice { mate });
            return;
        };
        let asks = tool.dialog.is_some();
        if asks && self.just_asked() {
            if let Some(agent) = self.agent(number) {
                agent.tools.push_front(tool);
            }
            self.tick(now + 260, Tick::Agent(number));
            return;
        }
        let call = self.call("Bash");
        self.tool_starts(Some(id), &call);
        let ms = tool.ms;
        if let Some(agent) = self.agent(number) {
            agent.tool = Some((tool, call.clone()));
        }
        if asks {
            self.ask(Some(number), Dialog::Permission, call);
        } else {
            self.tick(now + ms + 50, Tick::AgentTool(number));
        }
    }

    fn agent_tool_ends(&mut self, number: u32) {
        let now = self.now;
        let Some(agent) = self.agent(number) else {
            return;
        };
        let Some((_, tool)) = agent.tool.take() else {
            return;
        };
        let lane = Some(agent.id.clone());
        let hook = self.lane_hook(now, lane, HookKind::ToolEnded { tool });
        self.card_moves(Some(number), hook);
        let at = now + self.span(100, 160);
        self.tick(at, Tick::Agent(number));
    }

    /// Nothing but the result of the answered tool tells that the next dialog is in front (Q11).
    fn card_moves(&mut self, agent: Option<u32>, hook: Id) {
        if let Some(card) = self.card.take_if(|card| card.agent == agent) {
            let (all, ms) = match card.left {
                None => (vec![hook], 400),
                Some(left) => (vec![hook, left], 1000),
            };
            self.entries[card.entry].due = Due::After { all, ms };
        }
    }

    fn agent_reports(&mut self, mate: bool) {
        self.notices -= 1;
        if self.main.is_some() || self.between {
            self.notice();
            return;
        }
        let now = self.now;
        let alone = self.agents.is_empty() && self.notices == 0 && self.dialogs.is_empty();
        if alone {
            // The file shows the moment between two turns; a poll mostly misses it.
            let status = self.resting_status();
            let idle = self.write(now, status, None);
            let gap = if mate {
                self.chance.between(100, 160)
            } else {
                self.span(2, 25)
            };
            let at = self.signals[idle].0.at + gap;
            self.between = true;
            let what = if mate { Queued::Mate } else { Queued::Notice };
            let told = Vec::new();
            self.queue.push_back(Waiting { what, told });
            if !mate {
                self.line(at, TranscriptKind::Enqueued);
            }
            self.tick(at, Tick::Queue);
        } else {
            self.begin(notice_turn(), false);
            self.new_prompt();
            self.task_notification(now + 5);
            self.line(now, TranscriptKind::Enqueued);
            self.line(now, TranscriptKind::Dequeued);
            self.line(now, prompted(true));
            self.next(80, Next::Piece);
        }
    }

    /// Something that ran in the background tells Claude.
    fn notice(&mut self) {
        let now = self.now;
        if self.is_commanded() || now <= self.written_at {
            self.tick(now + 900, Tick::Tell);
            return;
        }
        if self.works() || self.menu {
            let line = self.line(now, TranscriptKind::Enqueued);
            self.queue.push_back(Waiting {
                what: Queued::Notice,
                told: vec![line],
            });
            self.waits_in_spell = true;
            return;
        }
        self.begin(notice_turn(), false);
        self.new_prompt();
        let busy = self.refresh(now + 20);
        let at = now + self.span(10, 40);
        self.task_notification(at);
        self.line(now + 30, TranscriptKind::Enqueued);
        self.line(now + 30, TranscriptKind::Dequeued);
        self.line(now + 30, prompted(true));
        self.nobody_typed(busy);
    }

    fn wake(&mut self) {
        let now = self.now;
        if self.is_commanded() || now <= self.written_at {
            self.tick(now + 900, Tick::Tell);
            return;
        }
        if self.works() || self.menu {
            let line = self.line(now, TranscriptKind::Enqueued);
            self.queue.push_back(Waiting {
                what: Queued::Notice,
                told: vec![line],
            });
            self.waits_in_spell = true;
            return;
        }
        self.begin(notice_turn(), false);
        self.new_prompt();
        let busy = self.refresh(now + 5);
        let at = now + self.span(15, 40);
        let text = Arc::from("wake up");
        let kind = HookKind::Prompt {
            text,
            task_notification: false,
        };
        self.hook(at, kind);
        self.line(now, TranscriptKind::Enqueued);
        self.line(now, TranscriptKind::Dequeued);
        self.line(now, prompted(true));
        self.nobody_typed(busy);
    }

    fn nobody_typed(&mut self, busy: Option<Id>) {
        let now = self.now;
        let due = busy.map_or(Due::Never, |busy| Due::After {
            all: vec![busy],
            ms: 300,
        });
        self.judge(now, due, Push::Silent, "B04, B08 a turn nobody typed");
        let after = self.span(60, 160);
        self.next(after, Next::Piece);
    }
}

/// A process that is no session of ours, or another's session: it is scheduled whole.
impl Claude {
    fn subcommand(&mut self, ms: u64) {
        let process = self.bear(Birth {
            same_pid: false,
            pane: self.pane,
            parent: None,
            role: Role::Nothing,
            old: false,
        });
        let found = self.now + self.span(5, 60);
        self.emit(found, What::Found { process });
        if self.chance.percent(50) {
            // Some, such as `mcp list`, end like a session that never began (d2).
            let conversation = self.new_conversation();
            let reason = Arc::from("other");
            let kind = HookKind::SessionEnd { reason };
            let at = found + ms - ms.min(20);
            self.hook_of(at, process, conversation, None, kind);
        }
        self.emit(found + ms, What::Died { process });
        self.shell_at = found + ms + 10;
    }

    /// `claude -p` in the shell of the pane (s17): nobody is asked, and its end is the end of the row.
    fn print(&mut self, turn: &Turn) {
        self.old = false;
        self.unheard = false;
        self.process = self.bear(Birth {
            same_pid: false,
            pane: self.pane,
            parent: None,
            role: Role::Session,
            old: false,
        });
        let (process, now) = (self.process, self.now);
        let (busy, removed, died) = self.prints(process, now, turn);
        // The file says idle for some milliseconds before its only turn.
        self.say(Want::Idle, now, Due::Never, Push::Silent, "D09 its start");
        let due = Due::After {
            all: vec![busy],
            ms: 300,
        };
        self.say(Want::Busy, now, due, Push::Silent, "D09 headless");
        let ended = self
            .signals
            .iter()
            .rposition(|(signal, _)| signal.at == died);
        let due = Due::After {
            all: ended.into_iter().collect(),
            ms: 1000,
        };
        // Its file is removed before it has ended.
        self.say(Want::None, removed, due, Push::Silent, "D09 it ended");
        self.life = Life::Printing { until: died };
        self.tick(died + 1, Tick::Printed);
    }

    /// All that a headless run shows of itself: its busy write, when its file goes and when it has died.
    fn prints(&mut self, process: usize, at: u64, turn: &Turn) -> (Id, u64, u64) {
        let conversation = self.new_conversation();
        self.prompts += 1;
        let prompt = Some(self.prompts);
        let hook = |kind, prompt| What::Hook {
            process,
            lane: None,
            conversation,
            prompt,
            kind,
        };
        let file = |status, since| What::Wrote {
            process,
            file: File {
                conversation,
                status,
                waiting_for: None,
                since,
                kind: AgentKind::Headless,
                parked: None,
                job: None,
            },
        };
        let line = |written, kind| What::Line {
            conversation,
            written,
            sidechain: false,
            kind,
        };
        let found = at + self.span(5, 150);
        self.emit(found, What::Found { process });
        let key = at + self.delay(300, 380, 600);
        self.emit(key, What::KeyFile { process });
        let started = key + self.span(5, 30);
        let source = StartSource::Startup;
        self.emit(started, hook(HookKind::SessionStart { source }, None));
        let mut written = started + self.span(2, 10);
        self.emit(written, file(None, 0));
        written += self.span(60, 70);
        if self.chance.percent(75) {
            self.emit(written, file(Some(FileStatus::Idle), written));
            written += self.span(15, 31);
        }
        let busy = self.emit(written, file(Some(FileStatus::Busy), written));
        let asked = written + self.span(4, 46);
        let kind = HookKind::Prompt {
            text: Arc::from("do it"),
            task_notification: false,
        };
        self.emit(asked, hook(kind, prompt));
        let mut now = asked + self.span(124, 136);
        for kind in [
            TranscriptKind::Enqueued,
            TranscriptKind::Dequeued,
            prompted(false),
        ] {
            self.emit(now, line(now, kind));
        }
        for piece in &turn.pieces {
            match piece {
                Piece::Think { silent, text } => now += silent + text,
                Piece::Tool(tool) => {
                    let call = self.call("Bash");
                    let starts = HookKind::ToolStarted { tool: call.clone() };
                    self.emit(now, hook(starts, prompt));
                    let starts = TranscriptKind::ToolStarted { tool: call.clone() };
                    self.emit(now + 14, line(now, starts));
                    if tool.dialog.is_some() {
                        // The request fires, nobody is asked, and the tool may not run.
                        now += self.span(90, 100);
                        self.emit(now, hook(requested(&call), prompt));
                        now += self.span(40, 60);
                    } else {
                        now += tool.ms;
                        let ended = HookKind::ToolEnded { tool: call.clone() };
                        self.emit(now, hook(ended, prompt));
                    }
                    if let Some(use_id) = call.use_id {
                        self.emit(now + 60, line(now, TranscriptKind::ToolEnded { use_id }));
                    }
                    now += self.span(70, 120);
                }
                Piece::Agent { .. }
                | Piece::Teammate { .. }
                | Piece::Inner { .. }
                | Piece::Nested(_)
                | Piece::Shell { .. }
                | Piece::Compaction { .. }
                | Piece::Wakeup { .. } => {}
            }
        }
        let removed = match turn.end {
            End::Answer { .. } => {
                let last_message: Option<Arc<str>> = Some(Arc::from("headless"));
                let ended = TranscriptKind::TurnEnded {
                    last_message: last_message.clone(),
                };
                self.emit(now, line(now, ended));
                now += self.span(5, 12);
                let background = Some(BackgroundTasks::default());
                let kind = HookKind::Stopped {
                    last_message,
                    background,
                    wakes_at_ms: None,
                    has_crons: false,
                    stop_hook_active: false,
                };
                self.emit(now, hook(kind, prompt));
                now + self.span(28, 60)
            }
            End::Error { kind, .. } => {
                // No StopFailure (measured).
                let kind = Arc::from(ERRORS[usize::from(kind) % ERRORS.len()]);
                let message = Some(Arc::from("API Error"));
                self.emit(now, line(now, TranscriptKind::ApiError { kind, message }));
                now + self.span(50, 60)
            }
        };
        self.emit(removed, What::Removed { process });
        let reason = Arc::from("other");
        let ended = removed + self.span(1, 7);
        self.emit(ended, hook(HookKind::SessionEnd { reason }, prompt));
        let died = ended + self.span(10, 100);
        self.emit(died, What::Died { process });
        (busy, removed, died)
    }
}

/// Sessions in the background (s29, s29b, s31).
impl Claude {
    fn next_job(&mut self) -> usize {
        self.cast * 1000 + self.births.len()
    }

    fn job_birth() -> Birth {
        Birth {
            same_pid: false,
            pane: None,
            parent: None,
            role: Role::Job,
            old: false,
        }
    }

    /// Left on the empty prompt. The pane's process stands still with a file that names the job; a new one takes the
    /// session over, under a new id, and goes on with an answer that was cut off.
    fn park(&mut self) {
        let now = self.now;
        let job = self.next_job();
        let parked_at = now + self.span(30, 52);
        let mut file = self.file.clone().unwrap_or(self.blank(now));
        file.parked = Some(job);
        self.put(parked_at, file);
        let before = self.conversation;
        let next = self.new_conversation();
        let goes_on = TranscriptKind::ContinuedIn {
            conversation: conversation_id(next),
        };
        self.line(now + 250, goes_on);
        let (host, prompt) = (self.process, self.prompt);
        self.process = self.bear(Self::job_birth());
        self.kind = AgentKind::Background;
        self.job = Some(job);
        self.conversation = next;
        self.prompt = None;
        self.file = None;
        self.flush_at = 0;
        self.copies = Some(before);
        let key = now + self.delay(860, 1000, 1400);
        let (hook, idle, idle_at) = self.job_begins(key, StartSource::Fork);
        let spare = self.spare_begins(key);
        self.parked = Some(Parked {
            host,
            conversation: before,
            prompt,
            spare,
            spare_conversation: self.conversations - 1,
            attached: false,
        });
        self.life = Life::Moving;
        self.epoch += 1;
        let text = self.chance.between(5, 9000);
        if let Some(main) = &mut self.main {
            // It goes on with the answer, and that ends the turn.
            main.phase = Phase::Silent;
            main.turn.pieces = vec![Piece::Think { silent: 20, text }];
            main.turn.end = End::Answer { vetoes: 0, slow: 0 };
            main.piece = 0;
            main.ready.clear();
            main.wakes = false;
            let busy = idle_at + self.span(380, 460);
            self.write(busy, FileStatus::Busy, None);
            self.copy_lines(busy + 160);
            self.line(busy + 160, prompted(false));
            let after = busy - now + self.span(170, 260);
            self.next(after, Next::Piece);
        } else {
            self.rest = Rest::Idle;
            let due = Due::After {
                all: vec![hook, idle],
                ms: 300,
            };
            self.judge(now, due, Push::Silent, "R08 it was taken over at rest");
        }
    }

    /// The first signs of a background session: its SessionStart, its first idle, and when that is.
    fn job_begins(&mut self, key: u64, source: StartSource) -> (Id, Id, u64) {
        let process = self.process;
        let found = key - self.chance.between(1, 40);
        self.emit(found, What::Found { process });
        self.emit(key, What::KeyFile { process });
        let file_at = key + self.span(80, 210);
        self.written_at = 0;
        self.rewrite(file_at);
        let idle_at = file_at + self.span(20, 370);
        let idle = self.write(idle_at, FileStatus::Idle, None);
        let hook_at = idle_at + self.span(3, 30);
        let hook = self.hook(hook_at, HookKind::SessionStart { source });
        self.tick(hook_at + 5, Tick::Running);
        (hook, idle, idle_at)
    }

    /// A worker that stands by; no row ever shows it (D07).
    fn spare_begins(&mut self, at: u64) -> usize {
        let birth = Birth {
            role: Role::Nothing,
            ..Self::job_birth()
        };
        let process = self.bear(birth);
        let conversation = self.new_conversation();
        let key = at + self.span(0, 150);
        self.emit(key - 5, What::Found { process });
        self.emit(key, What::KeyFile { process });
        let written = key + self.span(290, 340);
        let job = Some(self.cast * 1000 + process);
        for (at, status) in [(written, None), (written + 90, Some(FileStatus::Idle))] {
            let file = File {
                conversation,
                status,
                waiting_for: None,
                since: at,
                kind: AgentKind::Hidden,
                parked: None,
                job,
            };
            self.emit(at, What::Wrote { process, file });
        }
        let kind = HookKind::SessionStart {
            source: StartSource::Startup,
        };
        let hook_at = written + self.chance.between(0, 25) - 5;
        self.hook_of(hook_at, process, conversation, None, kind);
        process
    }

    fn hook_of(
        &mut self,
        at: u64,
        process: usize,
        conversation: usize,
        prompt: Option<usize>,
        kind: HookKind,
    ) {
        let lane = None;
        let hook = What::Hook {
            process,
            lane,
            conversation,
            prompt,
            kind,
        };
        let id = self.emit(at, hook);
        self.signals[id].1 = self.unheard;
    }

    /// The pane's process ends, by keys in the list or by a signal; the job lives on.
    fn leave(&mut self, cleanly: bool) {
        let Some(parked) = self.parked.clone() else {
            return;
        };
        let now = self.now;
        let mut died = now + self.span(1, 6);
        if cleanly {
            let removed = now + self.span(12, 20);
            for (process, conversation, prompt, at) in [
                (parked.host, parked.conversation, parked.prompt, removed),
                (parked.spare, parked.spare_conversation, None, removed + 15),
            ] {
                self.emit(at, What::Removed { process });
                let reason = Arc::from("other");
                let kind = HookKind::SessionEnd { reason };
                let hook_at = at + self.chance.between(5, 25);
                self.hook_of(hook_at, process, conversation, prompt, kind);
            }
            died = removed + self.span(20, 60);
            let process = parked.spare;
            self.emit(died + 10, What::Died { process });
        }
        let process = parked.host;
        self.shell_at = died + 10;
        self.left = Some(self.emit(died, What::Died { process }));
        self.left_at = now;
    }

    /// `claude --bg PROMPT`: begins by itself, belongs to no pane.
    pub fn dispatch(&mut self, turn: &Turn, seed: u64) {
        self.chance = Chance::new(seed);
        let job = self.next_job();
        self.process = self.bear(Self::job_birth());
        self.kind = AgentKind::Background;
        self.job = Some(job);
        self.conversation = self.new_conversation();
        self.life = Life::Moving;
        let key = self.now + self.delay(860, 990, 1100);
        let (_, idle, idle_at) = self.job_begins(key, StartSource::Startup);
        let due = Due::After {
            all: vec![idle],
            ms: 300,
        };
        self.say(Want::Idle, idle_at, due, Push::Silent, "N10 it began");
        let mut turn = turn.clone();
        turn.blocked = false;
        self.dispatched = Some(turn);
        self.tick(idle_at + 50, Tick::Dispatched);
    }
}

/// The name of a conversation, as all witnesses give it.
#[must_use]
pub fn conversation_id(number: usize) -> ConversationId {
    ConversationId::from(format!("conversation-{number}"))
}

fn tool_name(dialog: Option<Dialog>) -> &'static str {
    match dialog {
        Some(Dialog::Question) => "AskUserQuestion",
        Some(Dialog::Plan) => "ExitPlanMode",
        Some(Dialog::Form) => "mcp__lab__ask_user",
        Some(Dialog::Permission | Dialog::Auto | Dialog::Phantom) | None => "Bash",
    }
}

/// PermissionRequest has no `tool_use_id`.
fn requested(call: &ToolCall) -> HookKind {
    let mut tool = call.clone();
    tool.use_id = None;
    HookKind::PermissionRequested { tool }
}

fn prompted(task_notification: bool) -> TranscriptKind {
    TranscriptKind::Prompted { task_notification }
}

/// A short answer to something nobody typed.
fn notice_turn() -> Turn {
    Turn {
        pieces: vec![Piece::Think {
            silent: 40,
            text: 30,
        }],
        end: End::Answer { vetoes: 0, slow: 0 },
        blocked: false,
    }
}
