//! One agent's arbiter: takes in what the witnesses say about it and keeps the one badge that follows.
//!
//! Every `on_…` only writes evidence down; [`Agent::settle`] alone concludes. Must never look at another
//! agent: what several of them amount to is the fleet's business.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::asks::{ASK_SKEW, AskName, Asks, QUESTION_TOOL, Wanted, Words, words_of};
use crate::base::{self, Base};
use crate::effect::Effect;
use crate::event::Persisted;
use crate::ids::{AgentKey, ConversationId, EpisodeId};
use crate::time::{Stamp, Time};
use crate::turns::{Line, Stop, TranscriptEnd, Turn, Turns, What};
use crate::view::{Ask, AskKind, Badge, Doing, Evidence, Outcome, Presence, Source};
use crate::witness::{
    AgentKind, FileStatus, Hook, HookKind, Process, SessionFile, StartSource, TranscriptFact,
    TranscriptKind, WaitingFor,
};

/// A prompt makes busy this long before the file has to agree (rule 3).
const LEAD: Duration = Duration::from_secs(1);
/// A prompt or PreCompact stamped up to this long before a spell belongs to it (rule 4).
const SPELL_SKEW: Duration = Duration::from_millis(500);
/// How long a spell's end waits for a late Stop, and a doubtful Stop for a stable idle (rule 4).
const END_WAIT: Duration = Duration::from_millis(500);
/// A Stop younger than this ends a spell at once (rule 4).
const STOP_FRESH: Duration = Duration::from_secs(5);
/// Evidence of an end may come this late (rule 4).
const LATE: Duration = Duration::from_secs(30);
/// An answer about the transcript is awaited this long; reading its end takes milliseconds.
const TRANSCRIPT_WAIT: Duration = Duration::from_secs(1);
/// A badge must hold this long before anybody is told (rule 6 allows 1 to 3 s).
const DWELL: Duration = Duration::from_millis(1_200);
/// A start-up dialog: after this, if the process is quiet (D06) …
const STARTUP_QUIET: Duration = Duration::from_secs(2);
/// … and after this in any case.
const STARTUP_SURE: Duration = Duration::from_secs(6);
/// A status that has not come this long after the file has none (measured: up to 1.9 s on a loaded machine).
const STATUS_GRACE: Duration = Duration::from_millis(2_500);
/// The same where there is not even a file: versions without a sessions directory.
const FILE_GRACE: Duration = Duration::from_millis(300);
/// A scheduled wake-up may fire this much later than planned and still be one (measured: 2 s).
const WAKE_SLACK_MS: i64 = 60_000;
/// Evidence kept for "why this state".
const EVIDENCE_MAX: usize = 200;
/// Letters of the first prompt that make a title.
const TITLE_CHARS: usize = 60;

/// What the arbiters of one fleet share: the counters and the list of things to do.
#[derive(Clone, Debug)]
pub(crate) struct Ctx {
    pub effects: Vec<Effect>,
    pub next_episode: u64,
    pub next_ask: u64,
    /// When all witnesses had been asked once since the start: what happened before is not news (rule 6).
    pub recovered: Option<Time>,
}

impl Ctx {
    fn episode(&mut self) -> EpisodeId {
        self.next_episode += 1;
        EpisodeId(self.next_episode)
    }

    fn ask(&mut self) -> u64 {
        self.next_ask += 1;
        self.next_ask
    }
}

/// A question to the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    NotAsked,
    Asked { request: u64, at: Time },
    Answered { ok: bool },
}

/// The file's status with the moment it changed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Status {
    status: FileStatus,
    waiting: Option<WaitingFor>,
    since: Stamp,
}

impl Status {
    fn kind(&self) -> StatusKind {
        match self.status {
            FileStatus::Idle | FileStatus::Shell => StatusKind::Quiet,
            FileStatus::Busy => StatusKind::Busy,
            FileStatus::Waiting => match self.waiting {
                Some(WaitingFor::DialogOpen) => StatusKind::Menu,
                Some(WaitingFor::Permission | WaitingFor::Input | WaitingFor::Other(_)) | None => {
                    StatusKind::Dialog
                }
            },
        }
    }
}

/// What a status means for the phase: idle and shell count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatusKind {
    Quiet,
    Busy,
    Dialog,
    Menu,
}

/// A stay in needs-input or review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Episode {
    pub id: EpisodeId,
    /// When it was committed; the dwell counts from here.
    committed: Time,
    notified: bool,
    withdrawn: bool,
    /// The person does not want to hear of it now.
    pub silenced: bool,
    /// Found by recovery: never told.
    quiet: bool,
    /// Of a turn nobody typed: told without sound.
    silent: bool,
    /// The ask that was told.
    told: Option<u64>,
}

/// Evidence of a spell's end may still come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Late {
    start: Stamp,
    until: Time,
    typed: bool,
}

/// What rests.
#[derive(Clone, Debug, PartialEq)]
enum RestBadge {
    Idle {
        label: Option<Arc<str>>,
    },
    Review {
        /// Which stay.
        serial: u64,
        stop: Stop,
        silent: bool,
    },
}

/// A question whose file stays idle (Q15).
#[derive(Clone, Debug)]
struct HiddenQuestion {
    at: Stamp,
    reading: Reading,
    dialog: Option<Dialog>,
}

/// The file says idle or shell, or the person's own menu over it.
#[derive(Clone, Debug)]
struct Rest {
    badge: RestBadge,
    since: Stamp,
    /// End of the spell before; what is stamped up to here is dealt with.
    ended: Time,
    /// Start of the spell before.
    spell: Option<Stamp>,
    /// Kept while a spell that may be mere compaction hides the review.
    episode: Option<Episode>,
    late: Option<Late>,
    /// Newest SessionStart that was obeyed.
    started: Time,
    /// Newest prompt whose lead is over.
    led: Time,
    /// The review came from the transcript; its Stop may still add the details.
    by_transcript: bool,
    recovered: bool,
    question: Option<HiddenQuestion>,
}

impl Rest {
    fn idle(since: Stamp) -> Self {
        Self {
            badge: RestBadge::Idle { label: None },
            since,
            ended: Time(0),
            spell: None,
            episode: None,
            late: None,
            started: Time(0),
            led: Time(0),
            by_transcript: false,
            recovered: false,
            question: None,
        }
    }
}

/// A dialog that is shown.
#[derive(Clone, Debug, PartialEq)]
struct Dialog {
    /// Which stay; a new one for every dialog after busy.
    serial: u64,
    since: Stamp,
    name: Option<AskName>,
    ask: Ask,
}

/// From leaving idle to idle.
#[derive(Clone, Debug)]
struct Spell {
    start: Stamp,
    /// Prompts and PreCompacts stamped from here on belong to it.
    from: Time,
    before: Rest,
    /// A person's prompt waits for an answer from a spell that was bridged.
    typed: bool,
    /// Began before this server did.
    recovered: bool,
    dialog: Option<Dialog>,
    /// `dialog open` that came from another dialog: the badge stays.
    kept: bool,
    /// Asked about a `dialog open` that came from busy.
    menu: Reading,
}

/// The spell is over by the file, and its end is looked for.
#[derive(Clone, Debug)]
struct Closing {
    spell: Spell,
    idle_at: Stamp,
    /// The half second counts from here: the end, or the answer to a question that hid it.
    wait_from: Time,
    reading: Reading,
    /// Shown meanwhile; `None`: busy.
    held: Option<Held>,
    /// A question that stands open while the file says idle (Q15): the end waits for it.
    question: Option<Dialog>,
}

impl Closing {
    fn new(spell: Spell, idle_at: Stamp, held: Option<Held>) -> Self {
        Self {
            spell,
            idle_at,
            wait_from: idle_at.boot,
            reading: Reading::NotAsked,
            held,
            question: None,
        }
    }
}

/// The badge that stays while the end is looked for.
#[derive(Clone, Debug)]
enum Held {
    Dialog(Dialog),
    Unknown(Stamp),
    Rest,
}

/// What the file makes of the agent.
#[derive(Clone, Debug)]
enum Phase {
    /// It has never carried a status: hooks and transcript decide.
    Unreported,
    Resting(Rest),
    Working(Spell),
    Closing(Box<Closing>),
}

/// How a spell ends.
enum Close {
    Review {
        stop: Stop,
        by_transcript: bool,
    },
    Before,
    Idle {
        label: Option<&'static str>,
        wanting: bool,
    },
    Wait,
    Read,
}

/// Names a stay: while it is the same, the badge is only refreshed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    None,
    Idle,
    Busy,
    Needs(u64),
    Review(u64),
    Unknown,
}

/// What ought to be shown.
#[derive(Clone)]
struct Target {
    badge: Option<Badge>,
    stay: Stay,
    since: Stamp,
    silent: bool,
    quiet: bool,
}

/// One agent with everything known about it.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub key: AgentKey,
    pub process: Process,
    pub found: Stamp,
    found_recovering: bool,
    pub stopped: bool,
    /// The agent that started it lives: it is that one's tool, not a tab's own.
    pub started_by_agent: bool,
    left: Option<Time>,
    key_seen: Option<Stamp>,
    cpu_quiet: bool,
    pub file: Option<SessionFile>,
    file_at: Time,
    file_first: Option<Time>,
    status: Option<Status>,
    seen_shell: bool,
    phase: Phase,
    turns: Turns,
    asks: Asks,
    subagents: BTreeSet<Arc<str>>,
    ended_subagents: BTreeSet<Arc<str>>,
    pub conversation: Option<ConversationId>,
    conversation_at: Stamp,
    transcript: Option<Arc<str>>,
    pub hooks_heard: bool,
    first_start: Option<Time>,
    pub cwd: Option<(Time, Arc<str>)>,
    pub last_message: Option<Arc<str>>,
    pub title: Option<Arc<str>>,
    pub first_prompt: Option<(Time, Arc<str>)>,
    pub context_tokens: Option<u64>,
    last_error: Option<Arc<str>>,
    wakes_at_ms: Option<i64>,
    restored: Option<Persisted>,
    restored_reading: Reading,
    startup: Option<Dialog>,
    base: Option<base::Verdict>,
    base_dialog: Option<Dialog>,
    shown: Option<Badge>,
    stay: Stay,
    shown_since: Stamp,
    episode: Option<Episode>,
    /// The one serial of dialogs.
    serial: u64,
    requests: u64,
    /// Newest moment that was dealt with: no deadline lies before it.
    clock: Time,
    watching: bool,
    watching_cpu: bool,
    evidence: VecDeque<Evidence>,
}

/// What a Stop says, before anything else is known.
fn bare_stop(error: Option<Arc<str>>, message: Option<Arc<str>>) -> Stop {
    Stop {
        error,
        message,
        shells: 0,
        agents: 0,
        wakes_at_ms: None,
    }
}

// ---- evidence in -------------------------------------------------------------------------------------

impl Agent {
    pub(crate) fn new(
        key: AgentKey,
        process: Process,
        now: Stamp,
        restored: Option<Persisted>,
        ctx: &mut Ctx,
    ) -> Self {
        let mut agent = Self {
            key,
            process,
            found: now,
            found_recovering: ctx.recovered.is_none(),
            stopped: false,
            started_by_agent: false,
            left: None,
            key_seen: None,
            cpu_quiet: false,
            file: None,
            file_at: Time(0),
            file_first: None,
            status: None,
            seen_shell: false,
            phase: Phase::Unreported,
            turns: Turns::default(),
            asks: Asks::default(),
            subagents: BTreeSet::new(),
            ended_subagents: BTreeSet::new(),
            conversation: None,
            conversation_at: Stamp::default(),
            transcript: None,
            hooks_heard: false,
            first_start: None,
            cwd: None,
            last_message: None,
            title: None,
            first_prompt: None,
            context_tokens: None,
            last_error: None,
            wakes_at_ms: None,
            restored: None,
            restored_reading: Reading::NotAsked,
            startup: None,
            base: None,
            base_dialog: None,
            shown: None,
            stay: Stay::None,
            shown_since: now,
            episode: None,
            serial: 0,
            requests: 0,
            clock: now.boot,
            watching: false,
            watching_cpu: false,
            evidence: VecDeque::new(),
        };
        agent.note(ctx, now, Source::Process, "found".into());
        if let Some(persisted) = restored {
            ctx.next_episode = ctx
                .next_episode
                .max(persisted.episode.map_or(0, |episode| episode.0));
            if let Badge::NeedsInput(ask) = &persisted.badge {
                ctx.next_ask = ctx.next_ask.max(ask.id);
            }
            agent.note(
                ctx,
                persisted.since,
                Source::Restart,
                format!("was {} when the server stopped", word(&persisted.badge)),
            );
            agent.restored = Some(persisted);
        }
        agent
    }

    fn note(&mut self, ctx: &mut Ctx, at: Stamp, source: Source, line: String) {
        let line: Arc<str> = Arc::from(line);
        self.evidence.push_front(Evidence {
            at,
            source,
            line: line.clone(),
        });
        self.evidence.truncate(EVIDENCE_MAX);
        ctx.effects.push(Effect::Record {
            agent: self.key.clone(),
            at,
            line,
        });
    }

    pub(crate) fn evidence(&self) -> Vec<Evidence> {
        self.evidence.iter().cloned().collect()
    }

    pub(crate) fn on_found(&mut self, process: Process) {
        let Process {
            pane,
            parent_agent,
            cwd,
            hooks,
        } = process;
        // A look that saw less does not take back what an earlier one saw.
        self.process.pane = pane.or(self.process.pane.take());
        self.process.parent_agent = parent_agent.or(self.process.parent_agent.take());
        self.process.cwd = cwd.or(self.process.cwd.take());
        self.process.hooks = hooks.or(self.process.hooks.take());
    }

    pub(crate) fn on_stopped(&mut self, ctx: &mut Ctx, now: Stamp, stopped: bool) {
        if self.stopped == stopped {
            return;
        }
        self.stopped = stopped;
        let line = if stopped { "stopped (T)" } else { "goes on" };
        self.note(ctx, now, Source::Process, line.into());
        if !stopped && let Some(episode) = &mut self.episode {
            // Nobody was told while it stood still; whether to tell is looked at anew.
            episode.committed = episode.committed.max(now.boot);
        }
    }

    pub(crate) fn on_key_file(&mut self, ctx: &mut Ctx, now: Stamp) {
        if self.key_seen.is_none() {
            self.key_seen = Some(now);
            self.note(ctx, now, Source::File, "key file seen".into());
        }
    }

    pub(crate) fn on_quiet(&mut self, quiet: bool) {
        self.cpu_quiet = quiet;
    }

    pub(crate) fn on_file_removed(&mut self, ctx: &mut Ctx, now: Stamp) {
        if self.left.is_none() {
            self.left = Some(now.boot);
            self.note(ctx, now, Source::File, "removed: Claude is leaving".into());
        }
    }

    pub(crate) fn on_file_unreadable(&mut self, ctx: &mut Ctx, now: Stamp, why: &str) {
        self.note(ctx, now, Source::File, format!("can't be read: {why}"));
    }

    pub(crate) fn on_file(&mut self, ctx: &mut Ctx, now: Stamp, at: Stamp, file: SessionFile) {
        if at.boot < self.file_at {
            return;
        }
        self.file_at = at.boot;
        self.file_first.get_or_insert(now.boot);
        self.left = None;
        if let Some(conversation) = &file.conversation
            && self.conversation.as_ref() != Some(conversation)
        {
            // A hook may have led: then the file's older word does not take it back.
            if self.conversation.is_none() || at.boot >= self.conversation_at.boot {
                self.converse(ctx, at, conversation.clone(), None);
            }
        }
        let status = file.status.map(|status| Status {
            status,
            waiting: file.waiting_for.clone(),
            since: file.status_since.unwrap_or(at),
        });
        let versioned = file.status_since.is_some();
        self.file = Some(file);
        let Some(mut status) = status else { return };
        if let Some(old) = &self.status {
            let same = old.status == status.status && old.waiting == status.waiting;
            if same && (!versioned || old.since.wall_ms == status.since.wall_ms) {
                return;
            }
            // The file can't go back in time, whatever the mapping of clocks says.
            status.since.boot = status.since.boot.max(old.since.boot);
        }
        self.seen_shell |= status.status == FileStatus::Shell;
        let line = match (&status.status, &status.waiting) {
            (FileStatus::Idle, _) => "idle".to_owned(),
            (FileStatus::Shell, _) => "shell".to_owned(),
            (FileStatus::Busy, _) => "busy".to_owned(),
            (FileStatus::Waiting, waiting) => format!("waiting: {waiting:?}"),
        };
        self.note(ctx, status.since, Source::File, line);
        let old = self.status.replace(status);
        self.on_status(ctx, old);
    }

    fn converse(
        &mut self,
        ctx: &mut Ctx,
        at: Stamp,
        conversation: ConversationId,
        path: Option<Arc<str>>,
    ) {
        let first = self.conversation.is_none();
        self.conversation = Some(conversation.clone());
        self.conversation_at = at;
        self.transcript = path.clone();
        if !first {
            self.turns.forget_transcript();
            self.title = None;
            self.first_prompt = None;
            // Without hooks this alone tells of `/clear` and `/resume` (rule 4).
            if let Phase::Resting(rest) = &mut self.phase {
                rest.badge = RestBadge::Idle { label: None };
                rest.since = at;
                rest.late = None;
                rest.recovered = false;
            }
        }
        ctx.effects.push(Effect::UseTranscript {
            agent: self.key.clone(),
            path,
            conversation: Some(conversation.0),
        });
    }

    /// The file's status is another one, or the same one anew.
    fn on_status(&mut self, ctx: &mut Ctx, old: Option<Status>) {
        let Some(new) = self.status.clone() else {
            return;
        };
        let anew = old
            .as_ref()
            .is_some_and(|o| o.status == new.status && o.waiting == new.waiting);
        let kind = new.kind();
        let phase = std::mem::replace(&mut self.phase, Phase::Unreported);
        self.phase = match phase {
            Phase::Unreported => self.first_status(ctx, &new),
            Phase::Resting(rest) => match kind {
                StatusKind::Menu => Phase::Resting(rest),
                StatusKind::Quiet => self.resting_anew(rest, &new, old.as_ref(), anew),
                StatusKind::Busy | StatusKind::Dialog => {
                    let from = self.spell_from(&new, old.as_ref());
                    Phase::Working(self.spell(new.since, from, rest))
                }
            },
            // From here on it was seen live.
            Phase::Working(spell) if spell.recovered && kind != StatusKind::Menu => {
                self.phase = Phase::Working(Spell {
                    recovered: false,
                    ..spell
                });
                return self.on_status(ctx, old);
            }
            Phase::Working(mut spell) => match kind {
                StatusKind::Busy => {
                    if anew {
                        // It was idle in between, unseen: another spell, and the Stop of this one is spent.
                        Phase::Working(self.next_spell(spell, new.since, new.since))
                    } else {
                        self.asks.passed(new.since.boot);
                        spell.dialog = None;
                        spell.kept = false;
                        spell.menu = Reading::NotAsked;
                        Phase::Working(spell)
                    }
                }
                StatusKind::Dialog => {
                    if anew || old.as_ref().is_some_and(|o| o.kind() == StatusKind::Menu) {
                        spell.dialog = None;
                    }
                    spell.kept = false;
                    Phase::Working(spell)
                }
                StatusKind::Menu => {
                    spell.kept =
                        spell.kept || old.as_ref().is_some_and(|o| o.kind() == StatusKind::Dialog);
                    spell.menu = Reading::NotAsked;
                    Phase::Working(spell)
                }
                StatusKind::Quiet => {
                    let held = spell.dialog.clone().map(Held::Dialog);
                    Phase::Closing(Box::new(Closing::new(spell, new.since, held)))
                }
            },
            Phase::Closing(mut closing) => match kind {
                StatusKind::Menu => Phase::Closing(closing),
                StatusKind::Quiet => {
                    if anew {
                        // Busy and idle again, unseen.
                        let idle_at = closing.idle_at;
                        let spell = self.next_spell(closing.spell, idle_at, idle_at);
                        *closing = Closing::new(spell, new.since, closing.held);
                    }
                    Phase::Closing(closing)
                }
                StatusKind::Busy | StatusKind::Dialog => {
                    let idle_at = closing.idle_at;
                    Phase::Working(self.next_spell(closing.spell, idle_at, new.since))
                }
            },
        };
    }

    /// The first status ever seen of this agent.
    fn first_status(&mut self, ctx: &mut Ctx, new: &Status) -> Phase {
        self.startup = None;
        self.base = None;
        let base_dialog = self.base_dialog.take();
        let restored = self.restored.take();
        let recovered = restored.is_some() || self.found_recovering && ctx.recovered.is_none();
        let Some(persisted) = restored else {
            let mut rest = Rest::idle(new.since);
            return match new.kind() {
                StatusKind::Quiet | StatusKind::Menu => Phase::Resting(rest),
                StatusKind::Busy | StatusKind::Dialog => {
                    rest.since = self.found;
                    let from = self.spell_from(new, None);
                    let mut spell = self.spell(new.since, from, rest);
                    spell.recovered = recovered && new.kind() == StatusKind::Dialog;
                    Phase::Working(spell)
                }
            };
        };
        let mut rest = Rest::idle(persisted.since);
        rest.recovered = true;
        rest.ended = persisted.since.boot;
        if let Badge::Review(outcome) = &persisted.badge {
            let serial = if let Stay::Review(shown) = self.stay {
                shown
            } else {
                self.serial += 1;
                self.serial
            };
            rest.badge = RestBadge::Review {
                serial,
                stop: Stop {
                    error: outcome.error.clone(),
                    message: None,
                    shells: outcome.shells,
                    agents: 0,
                    wakes_at_ms: outcome.wakes_at_ms,
                },
                silent: true,
            };
            let hidden = persisted.episode.filter(|_| self.episode.is_none());
            rest.episode = hidden.map(|id| Episode {
                id,
                committed: persisted.since.boot,
                notified: true,
                withdrawn: false,
                silenced: false,
                quiet: true,
                silent: true,
                told: None,
            });
        }
        let worked = match persisted.badge {
            Badge::Busy(_) | Badge::NeedsInput(_) | Badge::Unknown => true,
            Badge::Idle | Badge::Review(_) => false,
        };
        match new.kind() {
            StatusKind::Busy | StatusKind::Dialog => {
                let mut spell = self.spell(new.since, new.since.boot, rest);
                spell.recovered = new.kind() == StatusKind::Dialog;
                if let (Badge::NeedsInput(ask), StatusKind::Dialog) = (&persisted.badge, new.kind())
                    && new.since.wall_ms <= persisted.since.wall_ms
                {
                    // The same dialog still stands: same ask, same episode.
                    self.serial += 1;
                    spell.dialog = Some(Dialog {
                        serial: self.serial,
                        since: persisted.since,
                        name: None,
                        ask: ask.clone(),
                    });
                    spell.before.episode = persisted.episode.map(|id| Episode {
                        id,
                        committed: persisted.since.boot,
                        notified: true,
                        withdrawn: false,
                        silenced: false,
                        quiet: true,
                        silent: true,
                        told: Some(ask.id),
                    });
                    self.stay = Stay::Needs(self.serial);
                    self.shown = Some(persisted.badge.clone());
                    self.shown_since = persisted.since;
                    self.episode = spell.before.episode.take();
                }
                Phase::Working(spell)
            }
            StatusKind::Quiet | StatusKind::Menu => {
                let unchanged = new.since.wall_ms <= persisted.since.wall_ms;
                if !worked && unchanged {
                    return Phase::Resting(rest);
                }
                if worked && new.kind() == StatusKind::Menu {
                    let mut spell = self.spell(persisted.since, persisted.since.boot, rest);
                    spell.recovered = true;
                    return Phase::Working(spell);
                }
                let start = Stamp {
                    boot: Time(persisted.since.boot.0 + 1),
                    wall_ms: persisted.since.wall_ms + i64::from(!worked),
                };
                let mut spell = self.spell(start, start.boot, rest);
                spell.recovered = true;
                let held = match (base_dialog, worked) {
                    (Some(dialog), _) => Held::Dialog(dialog),
                    (None, true) => Held::Unknown(persisted.since),
                    (None, false) => Held::Rest,
                };
                Phase::Closing(Box::new(Closing::new(spell, new.since, Some(held))))
            }
        }
    }

    /// Idle again, or idle anew. A turn so short that its busy was never seen has left its hooks.
    fn resting_anew(
        &mut self,
        rest: Rest,
        new: &Status,
        old: Option<&Status>,
        anew: bool,
    ) -> Phase {
        let Some(old) = old.filter(|_| anew) else {
            return Phase::Resting(rest);
        };
        let first = self
            .turns
            .deciding()
            .find(|t| {
                t.at.boot > old.since.boot.max(rest.ended)
                    && t.at.boot <= new.since.boot
                    && matches!(
                        t.what,
                        What::Prompted { .. } | What::Stopped(_) | What::CompactStarted
                    )
            })
            .map(|t| t.at);
        match first {
            None => Phase::Resting(rest),
            Some(start) => {
                let spell = self.spell(start, start.boot, rest);
                Phase::Closing(Box::new(Closing::new(spell, new.since, None)))
            }
        }
    }

    /// From where on prompts belong to a spell that begins now.
    fn spell_from(&self, new: &Status, old: Option<&Status>) -> Time {
        let start = new.since.boot;
        let quiet_since = old.map_or(Time(0), |o| o.since.boot);
        let lead = self
            .turns
            .prompt_after(quiet_since)
            .filter(|t| start.since(t.at.boot) <= LEAD)
            .or_else(|| self.turns.compaction_after(quiet_since))
            .map_or(start, |t| t.at.boot);
        lead.min(start - SPELL_SKEW)
    }

    fn spell(&self, start: Stamp, from: Time, mut before: Rest) -> Spell {
        before.late = None;
        before.question = None;
        Spell {
            start,
            from,
            before,
            typed: false,
            recovered: false,
            dialog: None,
            kept: false,
            menu: Reading::NotAsked,
        }
    }

    /// Another spell follows `spell`, which was idle from `idle_at` on, without the badge having moved.
    fn next_spell(&mut self, spell: Spell, idle_at: Stamp, start: Stamp) -> Spell {
        let newest = self
            .deciding(&spell, idle_at.boot)
            .into_iter()
            .next_back()
            .cloned();
        let typed = spell.typed || self.typed(&spell, idle_at.boot);
        let mut before = spell.before;
        if let Some(Turn {
            what: What::Stopped(stop),
            ..
        }) = newest
        {
            // Its Stop is spent: it shows only if what follows proves to be a mere compaction.
            self.serial += 1;
            before.badge = RestBadge::Review {
                serial: self.serial,
                stop,
                silent: !typed,
            };
            before.since = idle_at;
            before.recovered = false;
            before.spell = Some(spell.start);
        }
        // A hidden review that was taken back can't come again.
        before.episode = before.episode.filter(|e| e.notified && !e.withdrawn);
        before.ended = idle_at.boot;
        self.asks.forget(idle_at.boot - ASK_SKEW);
        self.turns.forget_queue();
        Spell {
            start,
            from: start.boot - SPELL_SKEW,
            before,
            typed,
            recovered: false,
            dialog: None,
            kept: false,
            menu: Reading::NotAsked,
        }
    }

    pub(crate) fn on_transcript(&mut self, ctx: &mut Ctx, now: Stamp, facts: Vec<TranscriptFact>) {
        for fact in facts {
            if fact.sidechain {
                continue;
            }
            let wall_ms = fact.written_ms.unwrap_or(now.wall_ms);
            let age_ms = u64::try_from(now.wall_ms.saturating_sub(wall_ms)).unwrap_or(0);
            let at = Stamp {
                boot: now.boot - Duration::from_millis(age_ms),
                wall_ms,
            };
            match &fact.kind {
                TranscriptKind::TurnEnded { last_message } => {
                    if last_message.is_some() {
                        self.last_message.clone_from(last_message);
                    }
                    self.note(ctx, at, Source::Transcript, "the turn ended".into());
                }
                TranscriptKind::ApiError { kind, .. } => {
                    self.note(ctx, at, Source::Transcript, format!("API error: {kind}"));
                }
                TranscriptKind::Interrupted => {
                    self.note(ctx, at, Source::Transcript, "interrupted".into());
                }
                TranscriptKind::Usage { context_tokens, .. } => {
                    self.context_tokens = context_tokens.or(self.context_tokens);
                }
                TranscriptKind::Title { text } => self.title = Some(text.clone()),
                TranscriptKind::Prompted { .. }
                | TranscriptKind::ToolStarted { .. }
                | TranscriptKind::ToolEnded { .. }
                | TranscriptKind::Enqueued
                | TranscriptKind::Dequeued
                | TranscriptKind::CompactBoundary
                | TranscriptKind::ContinuedIn { .. } => {}
            }
            self.turns.read(Line {
                at,
                seen: now.boot,
                kind: fact.kind,
            });
        }
    }

    pub(crate) fn on_transcript_read(&mut self, request: u64, ok: bool) {
        let answer = |reading: &mut Reading| {
            if let Reading::Asked { request: asked, .. } = reading
                && *asked == request
            {
                *reading = Reading::Answered { ok };
            }
        };
        answer(&mut self.restored_reading);
        match &mut self.phase {
            Phase::Unreported => {}
            Phase::Resting(rest) => {
                if let Some(question) = &mut rest.question {
                    answer(&mut question.reading);
                }
            }
            Phase::Working(spell) => answer(&mut spell.menu),
            Phase::Closing(closing) => answer(&mut closing.reading),
        }
    }

    pub(crate) fn on_hook(&mut self, ctx: &mut Ctx, now: Stamp, hook: &Hook) {
        self.hooks_heard = true;
        self.locate(ctx, hook);
        let at = hook.at;
        let lane = hook.agent_id.clone();
        if let Some(left) = self.left
            && at.boot > left
            && !matches!(hook.kind, HookKind::SessionEnd { .. })
        {
            self.left = None;
        }
        let (line, what) = match &hook.kind {
            HookKind::SessionStart { source } => {
                self.first_start.get_or_insert(now.boot);
                let what = match source {
                    StartSource::Compact => What::CompactEnded,
                    StartSource::Startup
                    | StartSource::Resume
                    | StartSource::Clear
                    | StartSource::Fork
                    | StartSource::Other(_) => What::Started,
                };
                (format!("SessionStart({source:?})"), Some(what))
            }
            HookKind::SessionEnd { reason } => {
                let goes_on = matches!(&**reason, "clear" | "resume");
                if !goes_on && self.file.is_none() {
                    // A version without files: nothing else says so before the process is gone.
                    self.left.get_or_insert(at.boot);
                }
                (format!("SessionEnd({reason})"), None)
            }
            HookKind::Prompt {
                text,
                task_notification,
            } => {
                if !task_notification
                    && self
                        .first_prompt
                        .as_ref()
                        .is_none_or(|(first, _)| at.boot < *first)
                {
                    self.first_prompt = Some((at.boot, shortened(text)));
                }
                let what = What::Prompted {
                    typed: !task_notification,
                };
                ("UserPromptSubmit".to_owned(), Some(what))
            }
            HookKind::ToolStarted { tool } => (
                format!("PreToolUse({})", tool.name),
                Some(What::ToolStarted(tool.clone())),
            ),
            HookKind::ToolEnded { tool } => (
                format!("PostToolUse({})", tool.name),
                Some(What::ToolEnded(tool.clone())),
            ),
            HookKind::ToolFailed { tool, .. } => (
                format!("PostToolUseFailure({})", tool.name),
                Some(What::ToolEnded(tool.clone())),
            ),
            HookKind::PermissionRequested { tool } => (
                format!("PermissionRequest({})", tool.name),
                Some(What::Asked(tool.clone())),
            ),
            HookKind::Notified { kind, .. } => {
                let prompt = matches!(
                    kind.as_deref(),
                    Some("permission_prompt" | "worker_permission_prompt")
                );
                (
                    format!("Notification({})", kind.as_deref().unwrap_or("-")),
                    prompt.then_some(What::PromptNoticed),
                )
            }
            HookKind::FormAsked { server, message } => (
                format!("Elicitation({server})"),
                Some(What::FormAsked(message.clone())),
            ),
            HookKind::FormAnswered => ("ElicitationResult".to_owned(), Some(What::FormAnswered)),
            HookKind::Stopped {
                last_message,
                background,
                wakes_at_ms,
                ..
            } => {
                let background = background.clone().unwrap_or_default();
                let stop = Stop {
                    error: None,
                    message: last_message.clone(),
                    shells: background.shells,
                    agents: background.agents,
                    wakes_at_ms: *wakes_at_ms,
                };
                let line = format!(
                    "Stop ({} shells, {} agents)",
                    background.shells, background.agents
                );
                (line, Some(What::Stopped(stop)))
            }
            HookKind::StopFailed { error, message } => (
                format!("StopFailure({error})"),
                Some(What::Stopped(bare_stop(
                    Some(error.clone()),
                    message.clone(),
                ))),
            ),
            HookKind::SubagentStarted { id, kind } => {
                if !kind.is_empty() && !self.ended_subagents.contains(id) {
                    self.subagents.insert(id.clone());
                }
                (format!("SubagentStart({kind})"), None)
            }
            HookKind::SubagentStopped { id, kind } => {
                if !kind.is_empty() {
                    self.subagents.remove(id);
                    self.ended_subagents.insert(id.clone());
                    if self.ended_subagents.len() > 256 {
                        self.ended_subagents.pop_first();
                    }
                }
                (format!("SubagentStop({kind})"), None)
            }
            HookKind::CompactStarted { manual } => (
                format!("PreCompact({})", if *manual { "manual" } else { "auto" }),
                Some(What::CompactStarted),
            ),
            HookKind::CompactEnded => ("PostCompact".to_owned(), Some(What::CompactEnded)),
            HookKind::CwdChanged { cwd } => {
                self.cwd = Some((at.boot, cwd.clone()));
                (format!("CwdChanged({cwd})"), None)
            }
            HookKind::Unknown { name } => (format!("{name} (not known)"), None),
        };
        self.note(ctx, at, Source::Hook, line);
        let Some(what) = what else { return };
        let turn = Turn { at, lane, what };
        if self.turns.add(turn.clone()) {
            self.on_turn(&turn);
        }
    }

    /// A new word of a hook: asks open and close, the newest Stop brings Claude's last words.
    fn on_turn(&mut self, turn: &Turn) {
        match &turn.what {
            What::Asked(tool) => self.open_ask(turn, Wanted::Tool(tool.clone())),
            What::FormAsked(message) => self.open_ask(turn, Wanted::Form(message.clone())),
            What::ToolEnded(tool) => self.asks.tool_ended(turn.at, turn.lane.as_ref(), tool),
            What::FormAnswered => self.asks.form_answered(turn.at),
            What::Stopped(stop) => {
                let newest = self
                    .turns
                    .deciding()
                    .rfind(|t| matches!(t.what, What::Stopped(_)));
                if turn.lane.is_none() && newest == Some(turn) {
                    if stop.message.is_some() {
                        self.last_message.clone_from(&stop.message);
                    }
                    self.wakes_at_ms = stop.wakes_at_ms;
                    if stop.agents == 0 {
                        self.subagents.clear();
                    }
                }
            }
            What::Prompted { .. }
            | What::ToolStarted(_)
            | What::CompactStarted
            | What::CompactEnded
            | What::Started
            | What::PromptNoticed => {}
        }
    }

    /// Keeps a request, unless what answers it came first or its spell is long over.
    fn open_ask(&mut self, turn: &Turn, wanted: Wanted) {
        let over = match &self.phase {
            Phase::Unreported => false,
            Phase::Resting(rest) => turn.at.boot + ASK_SKEW <= rest.ended,
            Phase::Working(spell) => turn.at.boot + ASK_SKEW < spell.start.boot,
            Phase::Closing(closing) => turn.at.boot + ASK_SKEW < closing.spell.start.boot,
        };
        let answered = self.turns.hooks().any(|t| {
            t.at.boot >= turn.at.boot
                && match &wanted {
                    Wanted::Tool(tool) => {
                        t.lane == turn.lane
                            && t.what.result().is_some_and(|ended| {
                                ended.name == tool.name && ended.input_digest == tool.input_digest
                            })
                    }
                    Wanted::Form(_) => matches!(t.what, What::FormAnswered),
                }
        });
        if !over && !answered {
            self.asks.add(turn.at, turn.lane.clone(), wanted);
        }
    }

    /// Conversation, transcript and directory as the payload has them.
    fn locate(&mut self, ctx: &mut Ctx, hook: &Hook) {
        let speaks_of_old = matches!(
            hook.kind,
            HookKind::SessionEnd { .. } | HookKind::Notified { .. }
        );
        if hook.agent_id.is_some() || speaks_of_old {
            return;
        }
        if let Some(cwd) = &hook.cwd
            && self.cwd.as_ref().is_none_or(|(at, _)| hook.at.boot >= *at)
        {
            self.cwd = Some((hook.at.boot, cwd.clone()));
        }
        let Some(conversation) = &hook.conversation else {
            return;
        };
        if self.conversation.as_ref() == Some(conversation) {
            if let Some(path) = &hook.transcript
                && self.transcript.as_ref() != Some(path)
            {
                self.transcript = Some(path.clone());
                ctx.effects.push(Effect::UseTranscript {
                    agent: self.key.clone(),
                    path: Some(path.clone()),
                    conversation: Some(conversation.0.clone()),
                });
            }
            return;
        }
        let starts = matches!(hook.kind, HookKind::SessionStart { .. });
        let leads = self.conversation.is_none()
            || hook.at.boot > self.conversation_at.boot && (starts || self.file.is_none());
        if leads {
            let first = self.conversation.is_none();
            let kept = match &self.phase {
                Phase::Resting(rest) if !first => Some(rest.clone()),
                Phase::Resting(_) | Phase::Unreported | Phase::Working(_) | Phase::Closing(_) => {
                    None
                }
            };
            self.converse(ctx, hook.at, conversation.clone(), hook.transcript.clone());
            // The SessionStart itself decides by rule 4, not the id it brings.
            if let Some(rest) = kept {
                self.phase = Phase::Resting(rest);
            }
        }
    }
}

// ---- conclusions -------------------------------------------------------------------------------------

impl Agent {
    /// Concludes from everything that is known at `now`: moves the phases on, commits the badge, says what
    /// is to be done.
    pub(crate) fn settle(&mut self, ctx: &mut Ctx, now: Stamp) {
        self.clock = self.clock.max(now.boot);
        // Each conclusion may allow the next one; none can return to an earlier one, the bound is a seat belt.
        for _ in 0..8 {
            self.take_back_hidden(ctx);
            if !self.conclude(ctx, now) {
                break;
            }
        }
        self.take_back_hidden(ctx);
        self.draw_dialogs(ctx);
        let target = self.target(now, ctx.recovered);
        self.show(ctx, now, target);
        self.tell(ctx, now);
        self.watch(ctx);
    }

    /// One step of the phase machine; `true`: something moved, look again.
    fn conclude(&mut self, ctx: &mut Ctx, now: Stamp) -> bool {
        let phase = std::mem::replace(&mut self.phase, Phase::Unreported);
        let (phase, moved) = match phase {
            Phase::Unreported => {
                self.conclude_unreported(ctx, now);
                (Phase::Unreported, false)
            }
            Phase::Resting(mut rest) => {
                let moved = self.conclude_resting(ctx, now, &mut rest);
                (Phase::Resting(rest), moved)
            }
            Phase::Working(spell) => self.conclude_working(ctx, now, spell),
            Phase::Closing(closing) => self.conclude_closing(ctx, now, closing),
        };
        self.phase = phase;
        moved
    }

    fn conclude_unreported(&mut self, ctx: &mut Ctx, now: Stamp) {
        let (start, since) = match &self.restored {
            None => (Base::Nothing, self.found),
            Some(persisted) => {
                let base = match &persisted.badge {
                    Badge::Idle => Base::Idle { interrupted: false },
                    Badge::Busy(_) | Badge::Unknown => Base::Unknown,
                    Badge::NeedsInput(_) => Base::Needs,
                    Badge::Review(outcome) => Base::Ended(Stop {
                        error: outcome.error.clone(),
                        message: None,
                        shells: outcome.shells,
                        agents: 0,
                        wakes_at_ms: outcome.wakes_at_ms,
                    }),
                };
                (base, persisted.since)
            }
        };
        let restored = self.restored.is_some();
        // Until all witnesses were asked, the file may still have its say: what was shown stays.
        let held = restored && ctx.recovered.is_none();
        if restored
            && !held
            && self
                .file_first
                .is_none_or(|at| now.boot >= at + STATUS_GRACE)
        {
            self.read_once(ctx, now, |agent| &mut agent.restored_reading);
        }
        let verdict = base::verdict(
            &self.turns,
            base::Start {
                base: start,
                since,
                hooks_after_ms: match (held, restored) {
                    (true, _) => i64::MAX,
                    (false, true) => since.wall_ms,
                    (false, false) => i64::MIN,
                },
                lines_after_ms: if held {
                    i64::MAX
                } else if restored {
                    since.wall_ms
                } else if self.conversation_at.wall_ms > self.found.wall_ms {
                    self.conversation_at.wall_ms
                } else {
                    self.found.wall_ms
                },
            },
            now.boot,
        );
        self.base = Some(verdict);

        let working = self.base.as_ref().is_some_and(|verdict| {
            matches!(verdict.base, Base::Busy | Base::Needs | Base::Ended(_))
        });
        let due = |after: Duration| {
            self.key_seen
                .is_some_and(|key| now.boot >= key.boot + after)
        };
        if self.file.is_some() || self.hooks_heard {
            // It was answered. Amber stays until there is a badge to follow it, which takes half a second.
            if working || !self.idle_hidden(now.boot) {
                self.startup = None;
            }
        } else if self.startup.is_none()
            && (due(STARTUP_SURE) || due(STARTUP_QUIET) && self.cpu_quiet)
        {
            self.serial += 1;
            self.startup = Some(Dialog {
                serial: self.serial,
                since: now,
                name: None,
                ask: Ask {
                    id: ctx.ask(),
                    kind: AskKind::Startup,
                    text: None,
                    tool: None,
                    options: Vec::new(),
                },
            });
        }
    }

    /// Asks for the transcript unless that was done.
    fn read_once(
        &mut self,
        ctx: &mut Ctx,
        now: Stamp,
        reading: impl FnOnce(&mut Self) -> &mut Reading,
    ) {
        let request = self.requests + 1;
        let slot = reading(self);
        if *slot == Reading::NotAsked {
            *slot = Reading::Asked {
                request,
                at: now.boot,
            };
            self.requests = request;
            ctx.effects.push(Effect::ReadTranscript {
                agent: self.key.clone(),
                request,
            });
        }
    }

    /// As [`Self::read_once`], for a reading that stands outside of `self` while a phase is at work.
    fn read(&mut self, ctx: &mut Ctx, now: Stamp, reading: &mut Reading) {
        if *reading == Reading::NotAsked {
            self.requests += 1;
            *reading = Reading::Asked {
                request: self.requests,
                at: now.boot,
            };
            ctx.effects.push(Effect::ReadTranscript {
                agent: self.key.clone(),
                request: self.requests,
            });
        }
    }

    fn conclude_resting(&mut self, ctx: &mut Ctx, now: Stamp, rest: &mut Rest) -> bool {
        // SessionStart outside a spell.
        let started = self
            .turns
            .deciding()
            .rfind(|t| matches!(t.what, What::Started))
            .map(|t| t.at)
            .filter(|at| at.boot > rest.ended.max(rest.started));
        if let Some(at) = started {
            rest.started = at.boot;
            rest.late = None;
            rest.question = None;
            if rest.badge != (RestBadge::Idle { label: None }) {
                self.drop_hidden(ctx, rest.episode.take());
                rest.badge = RestBadge::Idle { label: None };
                rest.since = at;
            }
            return true;
        }
        if self.late_end(ctx, now, rest) {
            return true;
        }
        self.fill_in(rest);

        // The lead of a prompt that the file never confirmed is over: its Stop may still come.
        let Some(status_since) = self.status.as_ref().map(|s| s.since) else {
            return false;
        };
        let led = self
            .turns
            .prompt_after(status_since.boot)
            .filter(|t| now.boot >= t.at.boot + LEAD && t.at.boot > rest.led)
            .map(|t| (t.at, matches!(t.what, What::Prompted { typed: true })));
        if let Some((at, typed)) = led {
            rest.led = at.boot;
            let until = at.boot + LEAD + LATE;
            if now.boot < until {
                rest.late = Some(Late {
                    start: at,
                    until,
                    typed,
                });
                return true;
            }
        }
        self.hidden_question(ctx, now, rest, status_since);
        false
    }

    /// A spell ended as idle for want of evidence; within 30 s it may still come (rule 4).
    fn late_end(&mut self, ctx: &mut Ctx, now: Stamp, rest: &mut Rest) -> bool {
        let Some(late) = rest.late else { return false };
        if now.boot > late.until {
            rest.late = None;
            return true;
        }
        let newest = self
            .turns
            .deciding()
            .next_back()
            .filter(|t| t.at.boot >= late.start.boot);
        if newest
            .is_some_and(|t| matches!(t.what, What::Prompted { .. }) && t.at.boot > late.start.boot)
        {
            // Something newer has begun.
            return false;
        }
        let (stop, by_transcript) = match newest.map(|t| &t.what) {
            Some(What::Stopped(stop)) => (stop.clone(), false),
            Some(_) | None => match self.turns.end_in_transcript(late.start.wall_ms) {
                TranscriptEnd::Ended { error, message } => (bare_stop(error, message), true),
                TranscriptEnd::Interrupted => {
                    rest.late = None;
                    rest.badge = RestBadge::Idle {
                        label: Some("interrupted".into()),
                    };
                    return true;
                }
                TranscriptEnd::Compacted | TranscriptEnd::Cut | TranscriptEnd::Nothing => {
                    return false;
                }
            },
        };
        self.drop_hidden(ctx, rest.episode.take());
        rest.late = None;
        self.serial += 1;
        rest.badge = RestBadge::Review {
            serial: self.serial,
            stop,
            silent: !late.typed,
        };
        rest.spell = Some(late.start);
        rest.since = now;
        rest.by_transcript = by_transcript;
        true
    }

    /// The transcript decided before the Stop was here: now it adds what it alone knows.
    fn fill_in(&self, rest: &mut Rest) {
        if !rest.by_transcript {
            return;
        }
        let (Some(start), RestBadge::Review { stop: known, .. }) = (rest.spell, &mut rest.badge)
        else {
            return;
        };
        let stop = self
            .turns
            .deciding()
            .rev()
            .filter(|t| t.at.boot >= start.boot)
            .find_map(|t| t.what.stop());
        if let Some(stop) = stop {
            // Whether it failed was shown already; only a kind may become more exact.
            let error = match (&known.error, &stop.error) {
                (Some(_), Some(exact)) => Some(exact.clone()),
                (kept, _) => kept.clone(),
            };
            *known = Stop {
                error,
                ..stop.clone()
            };
            rest.by_transcript = false;
        }
    }

    /// Q15: a question stands open while the file stays idle.
    fn hidden_question(&mut self, ctx: &mut Ctx, now: Stamp, rest: &mut Rest, status_since: Stamp) {
        let asked = self
            .asks
            .iter()
            .rev()
            .find(|a| {
                a.lane.is_none()
                    && a.at.boot > status_since.boot.max(rest.ended)
                    && matches!(&a.wanted, Wanted::Tool(t) if &*t.name == QUESTION_TOOL)
            })
            .map(|a| (a.at, a.words()));
        let Some((at, words)) = asked else {
            self.question_answered(now, rest);
            return;
        };
        let newer_prompt = self.turns.prompt_after(at.boot).is_some();
        let open_in_transcript = self
            .turns
            .open_lines(at.wall_ms.saturating_sub(5_000))
            .iter()
            .any(|t| &*t.name == QUESTION_TOOL);
        let mut question = match rest.question.take() {
            Some(question) if question.at == at => question,
            Some(_) | None => HiddenQuestion {
                at,
                reading: Reading::NotAsked,
                dialog: None,
            },
        };
        if newer_prompt || question.dialog.is_some() && !open_in_transcript {
            self.asks.forget_main(at.boot);
            rest.question = Some(question);
            self.question_answered(now, rest);
            return;
        }
        if now.boot >= at.boot + END_WAIT {
            self.read(ctx, now, &mut question.reading);
            if question.dialog.is_none()
                && open_in_transcript
                && matches!(question.reading, Reading::Answered { ok: true })
            {
                self.serial += 1;
                question.dialog = Some(Dialog {
                    serial: self.serial,
                    since: at,
                    name: words.name.clone(),
                    ask: ask_of(words, ctx.ask()),
                });
            }
        }
        rest.question = Some(question);
    }

    /// Claude works on behind a file that says idle: its Stop makes review as after any unseen turn.
    fn question_answered(&self, now: Stamp, rest: &mut Rest) {
        if let Some(question) = rest.question.take()
            && question.dialog.is_some()
        {
            rest.late = Some(Late {
                start: question.at,
                until: now.boot + LATE,
                typed: true,
            });
        }
    }

    /// Main-lane turn events of a spell, oldest first. Prompts and PreCompacts after its end are the next one's.
    fn deciding(&self, spell: &Spell, end: Time) -> Vec<&Turn> {
        self.turns
            .deciding()
            .filter(|t| {
                if matches!(t.what, What::Prompted { .. } | What::CompactStarted) {
                    t.at.boot >= spell.from && t.at.boot <= end
                } else {
                    t.at.boot >= spell.start.boot
                }
            })
            .collect()
    }

    /// A person asked for this spell: by a typed prompt, or by something that no hook tells (`!command`).
    fn typed(&self, spell: &Spell, end: Time) -> bool {
        let mut prompts = self
            .deciding(spell, end)
            .into_iter()
            .filter_map(|t| t.what.prompt())
            .peekable();
        let waking = self.wakes_at_ms_before(spell).is_some_and(|wakes| {
            (wakes - 5_000..=wakes + WAKE_SLACK_MS).contains(&spell.start.wall_ms)
        });
        if waking {
            return false;
        }
        if prompts.peek().is_some() {
            return prompts.any(|typed| typed);
        }
        // Without a hook the transcript may tell that it was a task's notification.
        let mut lines = self
            .turns
            .lines()
            .filter(|l| l.at.wall_ms >= spell.start.wall_ms.saturating_sub(500))
            .filter_map(Line::prompt)
            .peekable();
        lines.peek().is_none() || lines.any(|typed| typed)
    }

    /// The wake-up that the newest Stop before this spell announced.
    fn wakes_at_ms_before(&self, spell: &Spell) -> Option<i64> {
        self.turns
            .deciding()
            .rev()
            .filter(|t| t.at.boot < spell.start.boot)
            .find_map(|t| t.what.stop().map(|stop| stop.wakes_at_ms))
            .flatten()
    }

    /// Nothing but a compaction is known of the spell, and something is.
    fn mere_compaction(&self, spell: &Spell, end: Time) -> bool {
        let events = self.deciding(spell, end);
        !events.is_empty()
            && events.iter().all(|t| t.compacts())
            && matches!(
                self.turns.end_in_transcript(spell.start.wall_ms),
                TranscriptEnd::Nothing | TranscriptEnd::Compacted | TranscriptEnd::Interrupted
            )
    }

    /// Rule 5, for `dialog open` that came from busy.
    fn conclude_working(&mut self, ctx: &mut Ctx, now: Stamp, mut spell: Spell) -> (Phase, bool) {
        let status = match &self.status {
            Some(status) if status.kind() == StatusKind::Menu && !spell.kept => status.clone(),
            Some(_) | None => return (Phase::Working(spell), false),
        };
        let events = self.deciding(&spell, now.boot);
        let hooked = !events.is_empty();
        let stopped = matches!(
            events.last(),
            Some(Turn {
                what: What::Stopped(_),
                ..
            })
        );
        let tool_open = !self.turns.open_tools(spell.start.boot).is_empty();
        let answered = matches!(spell.menu, Reading::Answered { .. });
        let ended = !tool_open
            && (answered || !hooked)
            && matches!(
                self.turns.end_in_transcript(spell.start.wall_ms),
                TranscriptEnd::Ended { .. }
            );
        if stopped || ended {
            let reading = spell.menu;
            let mut closing = Closing::new(spell, status.since, None);
            if answered {
                closing.reading = reading;
            }
            return (Phase::Closing(Box::new(closing)), true);
        }
        if !tool_open && now.boot >= status.since.boot + END_WAIT {
            let mut menu = spell.menu;
            self.read(ctx, now, &mut menu);
            spell.menu = menu;
        }
        (Phase::Working(spell), false)
    }

    /// `dialog open` from busy is a dialog of Claude's (rule 5).
    fn menu_is_dialog(&self, spell: &Spell) -> bool {
        if spell.kept {
            return spell.dialog.is_some();
        }
        if !self.turns.open_tools(spell.start.boot).is_empty() {
            return true;
        }
        // Its PreToolUse may be late or lost: then the transcript has the call, and no result either.
        matches!(spell.menu, Reading::Answered { ok: true })
            && self
                .turns
                .open_lines(spell.start.wall_ms)
                .iter()
                .any(|call| !self.turns.ended(call))
    }

    fn conclude_closing(
        &mut self,
        ctx: &mut Ctx,
        now: Stamp,
        mut closing: Box<Closing>,
    ) -> (Phase, bool) {
        let answered = self.question_over(ctx, now, &mut closing);
        if answered {
            return (Phase::Closing(closing), true);
        }
        let close = self.close(&closing, now);
        let silent = !(closing.spell.typed || self.typed(&closing.spell, closing.idle_at.boot));
        let Closing { spell, idle_at, .. } = &mut *closing;
        let mut rest = Rest {
            ended: idle_at.boot,
            spell: Some(spell.start),
            recovered: spell.recovered,
            led: spell.before.led.max(idle_at.boot),
            started: idle_at.boot,
            ..Rest::idle(*idle_at)
        };
        match close {
            Close::Wait => return (Phase::Closing(closing), false),
            Close::Read => {
                let mut reading = closing.reading;
                self.read(ctx, now, &mut reading);
                closing.reading = reading;
                return (Phase::Closing(closing), false);
            }
            Close::Before => {
                let before = spell.before.clone();
                rest.badge = before.badge;
                rest.since = before.since;
                rest.episode = before.episode;
                rest.recovered = before.recovered;
                rest.spell = before.spell;
                // A compaction inside a turn whose other hooks are late looks the same until they come.
                rest.late = Some(Late {
                    start: spell.start,
                    until: now.boot + LATE,
                    typed: !silent,
                });
            }
            Close::Review {
                stop,
                by_transcript,
            } => {
                self.last_error.clone_from(&stop.error);
                self.serial += 1;
                rest.badge = RestBadge::Review {
                    serial: self.serial,
                    stop,
                    silent,
                };
                rest.by_transcript = by_transcript;
            }
            Close::Idle { label, wanting } => {
                rest.badge = RestBadge::Idle {
                    label: label.map(Arc::from),
                };
                if wanting {
                    rest.late = Some(Late {
                        start: spell.start,
                        until: now.boot + LATE,
                        typed: !silent,
                    });
                }
            }
        }
        if !matches!(close_kind(&rest, &spell.before), Kept::Same) {
            let hidden = spell.before.episode.take();
            self.drop_hidden(ctx, hidden);
        }
        let idle_at = *idle_at;
        self.asks.forget(idle_at.boot);
        self.subagents.clear();
        self.turns.forget_queue();
        (Phase::Resting(rest), true)
    }

    /// Q15 where the file turned idle as the question opened: shows it, or says that it is answered.
    fn question_over(&mut self, ctx: &mut Ctx, now: Stamp, closing: &mut Closing) -> bool {
        if closing.held.is_some() || !matches!(closing.reading, Reading::Answered { ok: true }) {
            return false;
        }
        let start = closing.spell.start;
        let asked = self
            .asks
            .iter()
            .rev()
            .find(|a| {
                a.lane.is_none()
                    && a.at.boot >= start.boot
                    && matches!(&a.wanted, Wanted::Tool(t) if &*t.name == QUESTION_TOOL)
            })
            .map(|a| (a.at, a.words()))
            .filter(|(at, _)| self.turns.prompt_after(at.boot).is_none())
            .filter(|_| {
                self.turns
                    .open_lines(start.wall_ms)
                    .iter()
                    .any(|t| &*t.name == QUESTION_TOOL)
            });
        match (asked, &closing.question) {
            (Some((at, words)), None) => {
                self.serial += 1;
                closing.question = Some(Dialog {
                    serial: self.serial,
                    since: at,
                    name: words.name.clone(),
                    ask: ask_of(words, ctx.ask()),
                });
                false
            }
            (None, Some(_)) => {
                closing.question = None;
                closing.wait_from = now.boot;
                closing.reading = Reading::NotAsked;
                true
            }
            (Some(_), Some(_)) | (None, None) => false,
        }
    }

    /// Rule 4: how does this spell end?
    fn close(&self, closing: &Closing, now: Stamp) -> Close {
        let Closing {
            spell,
            idle_at,
            reading,
            question,
            ..
        } = closing;
        if question.is_some() {
            return Close::Wait;
        }
        // A prompt newer than idle makes busy for a second; only then the end is judged.
        if self
            .turns
            .prompt_after(idle_at.boot)
            .is_some_and(|t| now.boot < t.at.boot + LEAD)
        {
            return Close::Wait;
        }
        if self.mere_compaction(spell, idle_at.boot) {
            return Close::Before;
        }
        let events = self.deciding(spell, idle_at.boot);
        let waited = now.boot >= closing.wait_from + END_WAIT;
        match events.last() {
            Some(Turn {
                what: What::Stopped(stop),
                at,
                ..
            }) => {
                let prompt_waits = self.turns.prompt_queued()
                    || events.iter().any(|t| {
                        matches!(t.what, What::Prompted { .. })
                            && t.at.boot > spell.start.boot + SPELL_SKEW
                    });
                let sure =
                    idle_at.boot.since(at.boot) < STOP_FRESH && stop.agents == 0 && !prompt_waits;
                let review = Close::Review {
                    stop: stop.clone(),
                    by_transcript: false,
                };
                if sure {
                    return review;
                }
                match self.ask_transcript(*reading, waited, now) {
                    Some(undecided) => undecided,
                    None if self.turns.interrupted_after(at.wall_ms) => Close::Idle {
                        label: Some("interrupted"),
                        wanting: false,
                    },
                    None => review,
                }
            }
            Some(Turn {
                what: What::Started,
                ..
            }) => Close::Idle {
                label: None,
                wanting: false,
            },
            Some(_) | None => match self.ask_transcript(*reading, waited, now) {
                Some(undecided) => undecided,
                None => self.close_by_transcript(closing),
            },
        }
    }

    /// What is still to be awaited before the transcript may decide; `None`: it may.
    fn ask_transcript(&self, reading: Reading, waited: bool, now: Stamp) -> Option<Close> {
        match reading {
            _ if !waited => Some(Close::Wait),
            Reading::NotAsked => Some(Close::Read),
            Reading::Asked { at, .. } if now.boot < at + TRANSCRIPT_WAIT => Some(Close::Wait),
            Reading::Asked { .. } | Reading::Answered { .. } => None,
        }
    }

    fn close_by_transcript(&self, closing: &Closing) -> Close {
        let spell = &closing.spell;
        let kept = matches!(closing.held, Some(Held::Rest));
        match self.turns.end_in_transcript(spell.start.wall_ms) {
            TranscriptEnd::Ended { error, message } => Close::Review {
                stop: bare_stop(error, message),
                by_transcript: true,
            },
            TranscriptEnd::Interrupted => Close::Idle {
                label: Some("interrupted"),
                wanting: false,
            },
            TranscriptEnd::Compacted => Close::Before,
            // Nothing is known to have happened while the server was down.
            TranscriptEnd::Cut | TranscriptEnd::Nothing if kept => Close::Before,
            TranscriptEnd::Cut => Close::Idle {
                label: Some("ended without Stop"),
                wanting: true,
            },
            TranscriptEnd::Nothing => Close::Idle {
                label: None,
                wanting: true,
            },
        }
    }

    /// Gives every open dialog its words, and a new id when it is another one.
    fn draw_dialogs(&mut self, ctx: &mut Ctx) {
        let phase = std::mem::replace(&mut self.phase, Phase::Unreported);
        self.phase = match phase {
            Phase::Unreported => {
                self.draw_base_dialog(ctx);
                Phase::Unreported
            }
            Phase::Working(mut spell) => {
                let words = match &self.status {
                    Some(status) => match status.kind() {
                        StatusKind::Dialog => {
                            Some((self.dialog_words(&spell, status), status.since))
                        }
                        StatusKind::Menu if spell.kept => None,
                        StatusKind::Menu if self.menu_is_dialog(&spell) => {
                            Some((self.menu_words(&spell), status.since))
                        }
                        StatusKind::Menu | StatusKind::Quiet | StatusKind::Busy => {
                            spell.dialog = None;
                            None
                        }
                    },
                    None => None,
                };
                if self.headless() {
                    spell.dialog = None;
                } else if let Some((words, since)) = words {
                    let old = spell.dialog.take();
                    spell.dialog = Some(self.redraw(ctx, old, words, since));
                }
                Phase::Working(spell)
            }
            other @ (Phase::Resting(_) | Phase::Closing(_)) => other,
        };
    }

    fn draw_base_dialog(&mut self, ctx: &mut Ctx) {
        let asked = self.base.as_ref().and_then(|verdict| {
            (verdict.base == Base::Needs).then(|| {
                let words = verdict.asks.iter().next().map(|ask| ask.words());
                (words, verdict.since)
            })
        });
        let kept = self.restored.as_ref().and_then(|p| match &p.badge {
            Badge::NeedsInput(ask) => Some(ask.clone()),
            Badge::Idle | Badge::Busy(_) | Badge::Review(_) | Badge::Unknown => None,
        });
        self.base_dialog = asked.filter(|_| !self.headless()).map(|(words, since)| {
            let old = self.base_dialog.take();
            match (words, kept) {
                (None, Some(ask)) if old.is_none() => {
                    self.serial += 1;
                    Dialog {
                        serial: self.serial,
                        since,
                        name: None,
                        ask,
                    }
                }
                (words, _) => {
                    let words = words.unwrap_or(Words {
                        name: None,
                        kind: AskKind::Permission,
                        text: None,
                        tool: None,
                        options: Vec::new(),
                    });
                    self.redraw(ctx, old, words, since)
                }
            }
        });
    }

    fn redraw(&mut self, ctx: &mut Ctx, old: Option<Dialog>, words: Words, since: Stamp) -> Dialog {
        match old {
            None => {
                self.serial += 1;
                Dialog {
                    serial: self.serial,
                    since,
                    name: words.name.clone(),
                    ask: ask_of(words, ctx.ask()),
                }
            }
            // Its request has its result, or is not here yet: what was known stays on the card.
            Some(dialog)
                if words.name.is_none() && (dialog.name.is_some() || words.text.is_none()) =>
            {
                dialog
            }
            Some(mut dialog) => {
                let same = dialog.name.is_none() || dialog.name == words.name;
                let id = if same { dialog.ask.id } else { ctx.ask() };
                dialog.name.clone_from(&words.name);
                dialog.ask = ask_of(words, id);
                dialog
            }
        }
    }

    /// What the dialog asks that the file tells of.
    fn dialog_words(&self, spell: &Spell, status: &Status) -> Words {
        let waiting = status.waiting.clone().unwrap_or(WaitingFor::Permission);
        let words = self.asks.words(&waiting);
        if words.name.is_some() {
            return words;
        }
        // No request was heard: the one tool that has no result is what is asked.
        let mut open = self.turns.open_tools(spell.start.boot);
        if open.is_empty() {
            open = self
                .turns
                .open_lines(spell.start.wall_ms.saturating_sub(500));
        }
        if waiting == WaitingFor::Input {
            open.retain(|t| &*t.name == QUESTION_TOOL);
        }
        match (&waiting, open.as_slice()) {
            (WaitingFor::Input | WaitingFor::Permission, [tool]) => words_of(tool),
            (
                WaitingFor::Input
                | WaitingFor::Permission
                | WaitingFor::DialogOpen
                | WaitingFor::Other(_),
                _,
            ) => words,
        }
    }

    /// What a dialog asks that nothing but an unanswered tool backs.
    fn menu_words(&self, spell: &Spell) -> Words {
        let mut open = self.turns.open_tools(spell.start.boot);
        if open.is_empty() {
            open = self.turns.open_lines(spell.start.wall_ms);
        }
        let tool = open.last();
        Words {
            name: None,
            kind: AskKind::Dialog,
            text: tool.and_then(|t| t.arg.clone()),
            tool: tool.map(|t| t.name.clone()),
            options: Vec::new(),
        }
    }

    pub(crate) fn headless(&self) -> bool {
        self.file
            .as_ref()
            .is_some_and(|f| f.kind == AgentKind::Headless)
    }

    /// A living agent's child, and no background session, which goes its own way: never a row, never told.
    pub(crate) fn nested(&self) -> bool {
        self.started_by_agent
            && self
                .file
                .as_ref()
                .is_none_or(|f| f.kind != AgentKind::Background)
    }

    pub(crate) fn hidden(&self) -> bool {
        self.file
            .as_ref()
            .is_some_and(|f| f.kind == AgentKind::Hidden)
    }

    pub(crate) fn parked_job(&self) -> Option<&Arc<str>> {
        self.file.as_ref().and_then(|f| f.parked_job.as_ref())
    }

    pub(crate) fn job(&self) -> Option<&Arc<str>> {
        self.file.as_ref().and_then(|f| f.job.as_ref())
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left.is_some()
    }

    /// When its status was first known; for a parked session's successor.
    pub(crate) fn reported(&self) -> bool {
        self.status.is_some()
    }

    fn doing(&self) -> Doing {
        let spell = match &self.phase {
            Phase::Working(spell) => Some(spell),
            Phase::Closing(closing) => Some(&closing.spell),
            Phase::Unreported | Phase::Resting(_) => None,
        };
        let compacting = match (spell, &self.phase) {
            (Some(spell), _) => self
                .deciding(spell, self.clock)
                .iter()
                .rev()
                .find(|t| t.compacts())
                .is_some_and(|t| matches!(t.what, What::CompactStarted)),
            (None, Phase::Resting(_)) => self.compaction_lead().is_some(),
            (None, _) => self.base.as_ref().is_some_and(|b| b.compacting),
        };
        let closing = matches!(self.phase, Phase::Closing(_));
        let since = spell.map_or(Time(0), |s| s.start.boot);
        let tool = self
            .turns
            .open_tools(since)
            .last()
            .copied()
            .or_else(|| {
                let since_ms = spell.map_or(i64::MAX, |s| s.start.wall_ms);
                let hooked = self.turns.deciding().any(|t| t.at.boot >= since);
                if hooked {
                    None
                } else {
                    self.turns.open_lines(since_ms).last().copied()
                }
            })
            .map(|t| (t.name.clone(), t.arg.clone()));
        let listed = spell.and_then(|s| {
            self.deciding(s, self.clock)
                .iter()
                .rev()
                .find_map(|t| t.what.stop().map(|stop| stop.agents))
        });
        let known = u32::try_from(self.subagents.len()).unwrap_or(u32::MAX);
        Doing {
            tool: tool.filter(|_| !closing),
            compacting: compacting && !closing,
            retrying: false,
            agents: if known == 0 && self.ended_subagents.is_empty() {
                listed.unwrap_or(0)
            } else {
                known
            },
        }
    }

    /// A PreCompact while the file stays idle (C06).
    fn compaction_lead(&self) -> Option<Stamp> {
        let since = self.status.as_ref()?.since.boot;
        self.turns.compaction_after(since).map(|t| t.at)
    }

    /// A prompt that the file has not confirmed yet (rule 3).
    fn prompt_lead(&self, now: Time) -> Option<Stamp> {
        let since = self.status.as_ref()?.since.boot;
        self.turns
            .prompt_after(since)
            .map(|t| t.at)
            .filter(|at| now < at.boot + LEAD)
    }

    fn outcome(&self, stop: &Stop) -> Outcome {
        let shells = match self.status.as_ref().map(|s| s.status) {
            Some(FileStatus::Shell) => stop.shells.max(1),
            Some(FileStatus::Idle | FileStatus::Busy | FileStatus::Waiting) if self.seen_shell => 0,
            Some(FileStatus::Idle | FileStatus::Busy | FileStatus::Waiting) | None => stop.shells,
        };
        Outcome {
            error: stop.error.clone(),
            shells,
            wakes_at_ms: stop.wakes_at_ms,
        }
    }

    fn target(&self, now: Stamp, recovered: Option<Time>) -> Target {
        let none = Target {
            badge: None,
            stay: Stay::None,
            since: self.found,
            silent: false,
            quiet: false,
        };
        let busy = |since: Stamp| Target {
            badge: Some(Badge::Busy(self.doing())),
            stay: Stay::Busy,
            since,
            ..none.clone()
        };
        if self.hidden() || self.left.is_some() {
            return none;
        }
        if self.headless() {
            return busy(self.found);
        }
        let needs = |dialog: &Dialog, quiet: bool| Target {
            badge: Some(Badge::NeedsInput(dialog.ask.clone())),
            stay: Stay::Needs(dialog.serial),
            since: dialog.since,
            silent: false,
            quiet,
        };
        match &self.phase {
            Phase::Unreported => self.base_target(now, recovered, &none, busy, needs),
            Phase::Resting(rest) => {
                if let Some(dialog) = rest.question.as_ref().and_then(|q| q.dialog.as_ref()) {
                    needs(dialog, false)
                } else if let Some(at) = self.compaction_lead().or(self.prompt_lead(now.boot)) {
                    busy(at)
                } else {
                    self.rest_target(rest, &none)
                }
            }
            Phase::Working(spell) => match &spell.dialog {
                Some(dialog) => needs(dialog, spell.recovered),
                None => busy(spell.start),
            },
            Phase::Closing(closing) => match &closing.held {
                _ if let Some(dialog) = &closing.question => needs(dialog, false),
                _ if self
                    .turns
                    .prompt_after(closing.idle_at.boot)
                    .is_some_and(|t| now.boot < t.at.boot + LEAD) =>
                {
                    busy(closing.spell.start)
                }
                Some(Held::Dialog(dialog)) => needs(dialog, true),
                Some(Held::Unknown(since)) => Target {
                    badge: Some(Badge::Unknown),
                    stay: Stay::Unknown,
                    since: *since,
                    ..none.clone()
                },
                Some(Held::Rest) => self.rest_target(&closing.spell.before, &none),
                None => busy(closing.spell.start),
            },
        }
    }

    fn rest_target(&self, rest: &Rest, none: &Target) -> Target {
        match &rest.badge {
            RestBadge::Idle { .. } => Target {
                badge: Some(Badge::Idle),
                stay: Stay::Idle,
                since: rest.since,
                ..none.clone()
            },
            RestBadge::Review {
                serial,
                stop,
                silent,
            } => Target {
                badge: Some(Badge::Review(self.outcome(stop))),
                stay: Stay::Review(*serial),
                since: rest.since,
                // A failure is news even where nobody typed.
                silent: *silent && stop.error.is_none(),
                quiet: rest.recovered,
            },
        }
    }

    fn base_target(
        &self,
        now: Stamp,
        recovered: Option<Time>,
        none: &Target,
        busy: impl Fn(Stamp) -> Target,
        needs: impl Fn(&Dialog, bool) -> Target,
    ) -> Target {
        if let Some(dialog) = &self.startup {
            return needs(dialog, self.found_recovering);
        }
        let Some(verdict) = &self.base else {
            return none.clone();
        };
        let quiet = self.found_recovering
            && recovered.is_none_or(|recovered| verdict.since.boot <= recovered);
        match &verdict.base {
            Base::Nothing if self.restored.is_none() && self.idle_hidden(now.boot) => none.clone(),
            Base::Nothing | Base::Idle { .. } => {
                if self.restored.is_none() && self.idle_hidden(now.boot) {
                    return none.clone();
                }
                Target {
                    badge: Some(Badge::Idle),
                    stay: Stay::Idle,
                    since: verdict.since,
                    ..none.clone()
                }
            }
            Base::Unknown => Target {
                badge: Some(Badge::Unknown),
                stay: Stay::Unknown,
                since: verdict.since,
                ..none.clone()
            },
            Base::Busy => busy(verdict.since),
            Base::Needs => match &self.base_dialog {
                Some(dialog) => needs(dialog, quiet),
                None => busy(verdict.since),
            },
            Base::Ended(stop) => Target {
                badge: Some(Badge::Review(self.outcome(stop))),
                stay: Stay::Review(verdict.since.boot.0),
                since: verdict.since,
                silent: false,
                quiet,
            },
        }
    }

    /// Idle by SessionStart is shown only when no status can come any more.
    fn idle_hidden(&self, now: Time) -> bool {
        self.idle_shown_at().is_none_or(|at| now < at)
    }

    fn idle_shown_at(&self) -> Option<Time> {
        let base_known = self.base.as_ref().is_some_and(|v| v.base != Base::Nothing);
        if let Some(file) = self.file_first {
            return Some(file.max(self.first_start.unwrap_or(file)) + STATUS_GRACE);
        }
        if !base_known {
            return None;
        }
        let heard = self.first_start.unwrap_or(self.found.boot);
        Some(match &self.key_seen {
            Some(key) => key.boot.max(heard) + STATUS_GRACE,
            None => heard + FILE_GRACE,
        })
    }
}

/// Whether what rests now is what rested before the spell.
enum Kept {
    Same,
    Other,
}

fn close_kind(rest: &Rest, before: &Rest) -> Kept {
    if rest.episode.is_some() && rest.episode.map(|e| e.id) == before.episode.map(|e| e.id) {
        Kept::Same
    } else {
        Kept::Other
    }
}

fn ask_of(words: Words, id: u64) -> Ask {
    Ask {
        id,
        kind: words.kind,
        text: words.text,
        tool: words.tool,
        options: words.options,
    }
}

fn word(badge: &Badge) -> &'static str {
    match badge {
        Badge::Idle => "idle",
        Badge::Busy(_) => "busy",
        Badge::NeedsInput(_) => "needs-input",
        Badge::Review(_) => "review",
        Badge::Unknown => "unknown",
    }
}

/// The first words of a prompt, as a title.
fn shortened(text: &str) -> Arc<str> {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(TITLE_CHARS) {
        None => Arc::from(line),
        Some((end, _)) => Arc::from(format!("{}…", line[..end].trim_end())),
    }
}

// ---- what is shown and told --------------------------------------------------------------------------

impl Agent {
    /// The rest that lies under the present phase.
    fn under(&mut self) -> Option<&mut Rest> {
        match &mut self.phase {
            Phase::Unreported => None,
            Phase::Resting(rest) => Some(rest),
            Phase::Working(spell) => Some(&mut spell.before),
            Phase::Closing(closing) => Some(&mut closing.spell.before),
        }
    }

    /// A review that a spell hides is over as soon as the spell is more than a compaction (C01).
    fn take_back_hidden(&mut self, ctx: &mut Ctx) {
        let spell = match &self.phase {
            Phase::Unreported => return,
            Phase::Resting(_) => None,
            Phase::Working(spell) => Some(spell),
            Phase::Closing(closing) => Some(&closing.spell),
        };
        let mere = match spell {
            Some(spell) => self.mere_compaction(spell, self.clock),
            // Hidden while resting: by a lead. Only a prompt's takes the review back.
            None => self.prompt_lead(self.clock).is_none(),
        };
        if mere {
            return;
        }
        let key = self.key.clone();
        if let Some(rest) = self.under()
            && let Some(episode) = &mut rest.episode
            && episode.notified
            && !episode.withdrawn
        {
            episode.withdrawn = true;
            ctx.effects.push(Effect::Withdraw {
                agent: key,
                episode: episode.id,
            });
        }
    }

    /// An episode ends for good.
    fn drop_hidden(&mut self, ctx: &mut Ctx, episode: Option<Episode>) {
        let Some(episode) = episode else { return };
        if let Some(restored) = &mut self.restored
            && restored.episode == Some(episode.id)
        {
            restored.episode = None;
        }
        if episode.notified && !episode.withdrawn {
            ctx.effects.push(Effect::Withdraw {
                agent: self.key.clone(),
                episode: episode.id,
            });
        }
    }

    fn show(&mut self, ctx: &mut Ctx, now: Stamp, target: Target) {
        if target.stay == self.stay {
            if target.badge != self.shown {
                self.shown = target.badge;
            }
            return;
        }
        let ended = self.episode.take();
        let old_stay = self.stay;
        let mut ended_for_good = ended;
        if target.stay == Stay::Busy
            && let Some(rest) = self.under()
            && let RestBadge::Review { serial, .. } = rest.badge
            && old_stay == Stay::Review(serial)
            && rest.episode.is_none()
        {
            rest.episode = ended;
            ended_for_good = None;
        }
        self.drop_hidden(ctx, ended_for_good);
        self.take_back_hidden(ctx);

        self.episode = match target.stay {
            Stay::Needs(_) | Stay::Review(_) => {
                let hidden = if matches!(target.stay, Stay::Review(_)) {
                    match &mut self.phase {
                        Phase::Resting(rest) => rest.episode.take(),
                        Phase::Closing(closing) => closing.spell.before.episode.take(),
                        Phase::Unreported | Phase::Working(_) => None,
                    }
                } else {
                    None
                };
                let restored = self
                    .restored
                    .as_ref()
                    .filter(|p| target.since == p.since)
                    .and_then(|p| p.episode);
                Some(match (hidden, restored) {
                    (Some(mut episode), _) => {
                        episode.committed = now.boot;
                        episode
                    }
                    (None, restored) => Episode {
                        id: restored.unwrap_or_else(|| ctx.episode()),
                        committed: now.boot,
                        notified: restored.is_some(),
                        withdrawn: false,
                        silenced: false,
                        quiet: target.quiet,
                        silent: target.silent,
                        told: None,
                    },
                })
            }
            Stay::None | Stay::Idle | Stay::Busy | Stay::Unknown => None,
        };
        self.stay = target.stay;
        self.shown_since = target.since;
        self.shown = target.badge;
        let line = self.shown.as_ref().map_or("none", word);
        self.note(ctx, now, Source::Verdict, line.to_owned());
        if let Some(badge) = &self.shown {
            ctx.effects.push(Effect::Persist {
                agent: self.key.clone(),
                badge: badge.clone(),
                since: self.shown_since,
                episode: self.episode.map(|e| e.id),
            });
        }
    }

    /// Whether somebody may be told of the present episode at all.
    fn tellable(&self) -> bool {
        !self.stopped
            && !self.headless()
            && !self.nested()
            && self.parked_job().is_none()
            && match &self.phase {
                Phase::Unreported | Phase::Resting(_) | Phase::Working(_) => true,
                Phase::Closing(closing) => closing.question.is_some(),
            }
    }

    fn tell(&mut self, ctx: &mut Ctx, now: Stamp) {
        if self.parked_job().is_some()
            && let Some(episode) = &mut self.episode
            && episode.notified
            && !episode.withdrawn
        {
            // What is shown from now on is the job's.
            episode.withdrawn = true;
            ctx.effects.push(Effect::Withdraw {
                agent: self.key.clone(),
                episode: episode.id,
            });
        }
        if !self.tellable() {
            return;
        }
        let (Some(episode), Some(badge)) = (&mut self.episode, &self.shown) else {
            return;
        };
        if episode.silenced || episode.quiet || episode.withdrawn {
            return;
        }
        let ask = match badge {
            Badge::NeedsInput(ask) => Some(ask.id),
            Badge::Idle | Badge::Busy(_) | Badge::Review(_) | Badge::Unknown => None,
        };
        let silent = if !episode.notified {
            if now.boot < episode.committed + DWELL {
                return;
            }
            episode.silent
        } else if ask.is_some() && episode.told.is_some() && episode.told != ask {
            // Another ask in the same episode: the card changes, nobody is called again.
            true
        } else {
            return;
        };
        episode.notified = true;
        episode.told = ask;
        ctx.effects.push(Effect::Notify {
            agent: self.key.clone(),
            episode: episode.id,
            badge: badge.clone(),
            silent,
        });
    }

    fn watch(&mut self, ctx: &mut Ctx) {
        let transcript = match self.stay {
            Stay::Busy | Stay::Needs(_) | Stay::Review(_) | Stay::Unknown => true,
            // Without a status the transcript alone may tell of a turn.
            Stay::None | Stay::Idle => {
                self.left.is_none() && self.status.is_none() && self.stay == Stay::Idle
            }
        };
        if transcript != self.watching {
            self.watching = transcript;
            ctx.effects.push(Effect::WatchTranscript {
                agent: self.key.clone(),
                on: transcript,
            });
        }
        let cpu = self.key_seen.is_some()
            && self.file.is_none()
            && !self.hooks_heard
            && self.startup.is_none()
            && self.left.is_none();
        if cpu != self.watching_cpu {
            self.watching_cpu = cpu;
            ctx.effects.push(Effect::WatchCpu {
                agent: self.key.clone(),
                on: cpu,
            });
        }
    }

    /// The person has read the end of the answer, or put a review away.
    pub(crate) fn on_seen(&mut self, ctx: &mut Ctx, now: Stamp, episode: EpisodeId) {
        if self.episode.is_none_or(|e| e.id != episode) || !matches!(self.stay, Stay::Review(_)) {
            return;
        }
        self.note(ctx, now, Source::Person, "read".into());
        let error = match &self.shown {
            Some(Badge::Review(outcome)) => outcome.error.clone(),
            Some(Badge::Idle | Badge::Busy(_) | Badge::NeedsInput(_) | Badge::Unknown) | None => {
                None
            }
        };
        self.last_error.clone_from(&error);
        match &mut self.phase {
            Phase::Resting(rest) => {
                rest.badge = RestBadge::Idle {
                    label: error.map(|e| Arc::from(format!("failed: {e}"))),
                };
                rest.since = now;
                rest.late = None;
                rest.by_transcript = false;
            }
            Phase::Closing(closing) => {
                closing.spell.before.badge = RestBadge::Idle { label: None };
                closing.spell.before.since = now;
            }
            Phase::Unreported => {
                // What was said so far is dealt with: the replay begins anew from here.
                self.restored = Some(Persisted {
                    badge: Badge::Idle,
                    since: now,
                    episode: None,
                    tab: None,
                });
                self.restored_reading = Reading::Answered { ok: true };
            }
            Phase::Working(_) => {}
        }
    }

    pub(crate) fn on_dismissed(&mut self, ctx: &mut Ctx, now: Stamp, id: EpisodeId) {
        if self.episode.is_none_or(|e| e.id != id) {
            return;
        }
        if matches!(self.stay, Stay::Review(_)) {
            self.on_seen(ctx, now, id);
            return;
        }
        let key = self.key.clone();
        if let Some(episode) = &mut self.episode
            && !episode.silenced
        {
            episode.silenced = true;
            if episode.notified && !episode.withdrawn {
                episode.withdrawn = true;
                ctx.effects.push(Effect::Withdraw {
                    agent: key,
                    episode: id,
                });
            }
            self.note(ctx, now, Source::Person, "not now".into());
        }
    }

    /// The process is gone: nothing of it is shown any more.
    pub(crate) fn on_died(&mut self, ctx: &mut Ctx, now: Stamp) {
        self.note(ctx, now, Source::Process, "ended".into());
        let episode = self.episode.take();
        self.drop_hidden(ctx, episode);
        let hidden = self.under().and_then(|rest| rest.episode.take());
        self.drop_hidden(ctx, hidden);
        if self.watching {
            ctx.effects.push(Effect::WatchTranscript {
                agent: self.key.clone(),
                on: false,
            });
        }
        if self.watching_cpu {
            ctx.effects.push(Effect::WatchCpu {
                agent: self.key.clone(),
                on: false,
            });
        }
        ctx.effects.push(Effect::Forget {
            agent: self.key.clone(),
        });
    }

    /// When to look again, and why. Only moments after the last look count.
    pub(crate) fn deadline(&self) -> Option<(Time, &'static str)> {
        let mut due: Vec<(Time, &'static str)> = Vec::new();
        if let Some(episode) = &self.episode
            && self.tellable()
            && !episode.notified
            && !episode.silenced
            && !episode.quiet
        {
            due.push((episode.committed + DWELL, "the badge has held: tell"));
        }
        let mut answer = |reading: Reading| {
            if let Reading::Asked { at, .. } = reading {
                due.push((at + TRANSCRIPT_WAIT, "no answer about the transcript"));
            }
        };
        match &self.phase {
            Phase::Unreported => {}
            Phase::Resting(rest) => {
                if let Some(question) = &rest.question {
                    answer(question.reading);
                    due.push((
                        question.at.boot + END_WAIT,
                        "is a question open that the file hides",
                    ));
                }
            }
            Phase::Working(spell) => {
                answer(spell.menu);
                if let Some(status) = &self.status
                    && status.kind() == StatusKind::Menu
                {
                    due.push((status.since.boot + END_WAIT, "whose menu is open"));
                }
            }
            Phase::Closing(closing) => {
                answer(closing.reading);
                due.push((closing.wait_from + END_WAIT, "a late Stop may still come"));
            }
        }
        let rested = match &self.phase {
            Phase::Unreported | Phase::Working(_) => None,
            Phase::Resting(_) => self.status.as_ref().map(|s| s.since.boot),
            Phase::Closing(closing) => Some(closing.idle_at.boot),
        };
        if let Some(prompt) = rested.and_then(|since| self.turns.prompt_after(since)) {
            due.push((prompt.at.boot + LEAD, "the file has not confirmed a prompt"));
        }
        if matches!(self.phase, Phase::Unreported) {
            if let Some(at) = self.idle_shown_at() {
                due.push((at, "no status comes: hooks decide"));
            }
            if let Some(at) = self.file_first {
                due.push((at + STATUS_GRACE, "no status comes: hooks decide"));
            }
            if let (Some(key), None, None, false) =
                (&self.key_seen, &self.startup, &self.file, self.hooks_heard)
            {
                due.push((key.boot + STARTUP_QUIET, "a dialog may hold the start"));
                due.push((key.boot + STARTUP_SURE, "a dialog holds the start"));
            }
            if let Some(again) = self.base.as_ref().and_then(|v| v.again) {
                due.push((again, "an end marker waits for its Stop"));
            }
        }
        due.retain(|(at, _)| *at > self.clock);
        due.into_iter().min()
    }
}

// ---- for the rows ------------------------------------------------------------------------------------

impl Agent {
    pub(crate) fn badge(&self) -> Option<&Badge> {
        self.shown.as_ref()
    }

    pub(crate) fn since(&self) -> Stamp {
        self.shown_since
    }

    pub(crate) fn episode(&self) -> Option<Episode> {
        self.episode
    }

    pub(crate) fn presence(&self) -> Presence {
        if self.left.is_some() {
            Presence::Gone
        } else if self.stopped {
            Presence::Suspended
        } else if self.parked_job().is_some() {
            Presence::Elsewhere
        } else if self.shown.is_none() && self.status.is_none() {
            Presence::Starting
        } else {
            Presence::Running
        }
    }

    /// A word beside the badge that is no state.
    pub(crate) fn label(&self) -> Option<Arc<str>> {
        if self.headless() {
            return Some("headless".into());
        }
        match (&self.shown, &self.phase) {
            (Some(Badge::Idle), Phase::Resting(rest)) => {
                let label = match &rest.badge {
                    RestBadge::Idle { label } => label.clone(),
                    RestBadge::Review { .. } => None,
                };
                let shell = self
                    .status
                    .as_ref()
                    .is_some_and(|s| s.status == FileStatus::Shell);
                label.or_else(|| shell.then(|| self.shells_label()))
            }
            (Some(Badge::Idle), Phase::Unreported) => {
                self.base.as_ref().and_then(|v| match v.base {
                    Base::Idle { interrupted: true } => Some("interrupted".into()),
                    _ if v.compacting => Some("compacting".into()),
                    Base::Idle { interrupted: false }
                    | Base::Nothing
                    | Base::Unknown
                    | Base::Busy
                    | Base::Needs
                    | Base::Ended(_) => None,
                })
            }
            (Some(_) | None, _) => None,
        }
    }

    fn shells_label(&self) -> Arc<str> {
        let listed = self
            .turns
            .deciding()
            .rev()
            .find_map(|t| t.what.stop().map(|stop| stop.shells))
            .unwrap_or(1)
            .max(1);
        if listed == 1 {
            "1 shell running".into()
        } else {
            Arc::from(format!("{listed} shells running"))
        }
    }
}
