//! One agent's arbiter: takes in what the witnesses say about it and keeps the one badge that follows.
//!
//! Every `on_…` writes evidence down, [`Agent::settle`] alone concludes and shows. Must never look at another
//! agent: what several of them amount to is the fleet's business.

mod heard;

mod said;

mod concluded;

mod drawn;

mod told;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::asks::{
    ASK_SKEW, AskName, Asks, Front, QUESTION_TOOL, Standing, Wanted, Words, bare_words, words_of,
};
use crate::base::{self, Base};
use crate::effect::Effect;
use crate::event::Persisted;
use crate::ids::{AgentKey, ConversationId, EpisodeId};
use crate::time::{Clocks, Stamp, Time};
use crate::turns::{Line, Stop, TranscriptEnd, Turn, Turns, What};
use crate::view::{Ask, AskKind, Badge, Doing, Evidence, Outcome, Presence, Says, Source};
use crate::witness::{
    AgentKind, FileStatus, Hook, HookKind, Process, SessionFile, StartSource, StatusLine, ToolCall,
    TranscriptFact, TranscriptKind, WaitingFor,
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
/// … and at these moments the transcript, which is not watched in idle, is asked for it.
const LATE_READS: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(29),
];
/// The next moment that can be told from one before it.
const JUST_AFTER: Duration = Duration::from_nanos(1);
/// An answer about the transcript is awaited this long; reading its end takes milliseconds.
const TRANSCRIPT_WAIT: Duration = Duration::from_secs(1);
/// After a start the right badge is shown within two seconds: for so long a transcript that can't be read is asked
/// again …
const RECOVERY: Duration = Duration::from_millis(1_700);
/// … each time after this.
const READ_AGAIN: Duration = Duration::from_millis(200);
/// A line may be stamped this long before it can be read.
const READ_SLACK: Duration = Duration::from_secs(2);
/// A line may be given this long after others that were written later.
const LATE_LINE: Duration = Duration::from_secs(300);
/// A badge must hold this long before anybody is told (rule 6 allows 1 to 3 s).
const DWELL: Duration = Duration::from_millis(1_200);
/// A hook is posted within milliseconds; one that is heard this long after its stamp came by a detour, and others may
/// still be on their way.
const HOOK_LATE: Duration = Duration::from_millis(300);
/// An answered request stays on the card this long: the file follows its answer, or the next request its own.
const ANSWERED_STAYS: Duration = Duration::from_millis(300);
/// A start-up dialog: after this, if the process is quiet (D06) …
const STARTUP_QUIET: Duration = Duration::from_secs(2);
/// … and after this in any case.
const STARTUP_SURE: Duration = Duration::from_secs(6);
/// A status that has not come this long after the file has none (measured: up to 1.9 s on a loaded machine).
const STATUS_GRACE: Duration = Duration::from_millis(2_500);
/// The same where there is not even a file: versions without a sessions directory.
const FILE_GRACE: Duration = Duration::from_millis(300);
/// A scheduled wake-up fires no earlier than its second …
const WAKE_EARLY_MS: i64 = 1_000;
/// … but may be this late and still be one (measured: 2 s).
const WAKE_SLACK_MS: i64 = 60_000;
/// A job that a session goes on in is there this long after the session was parked (measured: 1.3 s and 0.6 s more for
/// its first status).
const PARKING: Duration = Duration::from_secs(5);
/// Counts of tokens that are kept, to fall back on one when the person goes back in the conversation.
const USAGES_MAX: usize = 64;

/// Letters of the first prompt that make a title.
const TITLE_CHARS: usize = 60;

/// What the arbiters of one fleet share: the counters and the list of things to do.
#[derive(Clone, Debug)]
pub(crate) struct Ctx {
    pub effects: Vec<Effect>,
    pub next_episode: u64,
    pub next_ask: u64,
    /// When the fleet was told the first thing.
    pub began: Option<Time>,
    /// When all witnesses had been asked once since the start: what happened before is not news (rule 6).
    pub recovered: Option<Time>,
    /// How the wall clock was set.
    pub clocks: Clocks,
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
    Answered { ok: bool, at: Time },
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
    /// When the spell was taken for idle.
    from: Time,
    /// A Stop stamped after this ends something else. A prompt that the file never confirmed has no such end.
    until: Option<Time>,
    typed: bool,
    /// How often the transcript was asked since.
    reads: usize,
}

impl Late {
    fn new(start: Stamp, from: Time, typed: bool) -> Self {
        Self {
            start,
            from,
            until: None,
            typed,
            reads: 0,
        }
    }

    /// The same for a spell that the file ended at `idle_at`.
    fn of_spell(self, idle_at: Time) -> Self {
        let until = Some(idle_at + END_WAIT);
        Self { until, ..self }
    }

    /// When to ask the transcript again.
    fn next_read(&self) -> Option<Time> {
        LATE_READS.get(self.reads).map(|after| self.from + *after)
    }

    /// When to look again: at the end nothing is looked for any more.
    fn next_look(&self) -> Time {
        self.next_read().unwrap_or(self.from + LATE + JUST_AFTER)
    }
}

/// What was known when the server stopped, of an agent that may have done more since.
#[derive(Clone, Debug, PartialEq)]
struct Past {
    badge: Badge,
    reading: Reading,
    /// Nothing was told of it up to now: idle for want of evidence since then, with the file as of this moment.
    wanting: Option<(Time, Stamp)>,
    /// How often the transcript was asked again.
    reads: usize,
}

impl Past {
    fn of(badge: Badge) -> Self {
        Self {
            badge,
            reading: Reading::NotAsked,
            wanting: None,
            reads: 0,
        }
    }

    /// When to ask the transcript again.
    fn next_read(&self) -> Option<Time> {
        let (from, _) = self.wanting?;
        LATE_READS.get(self.reads).map(|after| from + *after)
    }

    /// When to look again: at the end nothing is looked for any more.
    fn next_look(&self) -> Option<Time> {
        let (from, _) = self.wanting?;
        Some(self.next_read().unwrap_or(from + LATE + JUST_AFTER))
    }
}

/// A spell of which it is asked whether a person wanted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Whose {
    start: Stamp,
    /// Prompts stamped from here …
    from: Time,
    /// … to here belong to it.
    end: Time,
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
    /// The Stop that made the review: used.
    used: Time,
    /// Newest SessionStart that was obeyed.
    started: Time,
    /// Newest prompt whose lead is over.
    led: Time,
    /// The review came from the transcript; its Stop may still add the details.
    by_transcript: bool,
    /// Whose turn it was may still be told, by lines that are written late.
    whose: Option<Whose>,
    recovered: bool,
    /// Found by recovery: what it did meanwhile is asked of the transcript.
    past: Option<Past>,
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
            used: Time(0),
            started: Time(0),
            led: Time(0),
            by_transcript: false,
            whose: None,
            recovered: false,
            past: None,
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
    /// The file names another one since: its words are not this one's.
    moved: bool,
    /// When its request was found answered, though the file still says that somebody is asked.
    answered: Option<Time>,
}

impl Dialog {
    fn new(serial: u64, since: Stamp, name: Option<AskName>, ask: Ask) -> Self {
        Self {
            serial,
            since,
            name,
            ask,
            moved: false,
            answered: None,
        }
    }

    fn asking(serial: u64, since: Stamp, words: Words, id: u64) -> Self {
        Self::new(serial, since, words.name.clone(), words.into_ask(id))
    }
}

/// A spell that was followed by another at once, before its Stop was heard: that hook's process was slow to
/// start, and so it is stamped in the spell that followed.
#[derive(Clone, Copy, Debug)]
struct Unheard {
    start: Stamp,
    /// Where its prompts begin.
    began: Time,
    idle_at: Stamp,
    typed: bool,
    /// Start of the spell that followed …
    next: Time,
    /// … and where its prompts begin.
    from: Time,
}

impl Unheard {
    /// Between which moments it was heard of.
    fn heard(&self) -> (Time, Time) {
        (self.began, self.from)
    }

    /// Where its Stop belongs.
    fn end(&self) -> Stamp {
        Stamp {
            boot: self.idle_at.boot - Duration::from_nanos(1),
            ..self.idle_at
        }
    }
}

/// From leaving idle to idle.
#[derive(Clone, Debug)]
struct Spell {
    start: Stamp,
    /// Prompts and PreCompacts stamped from here on belong to it.
    from: Time,
    before: Box<Rest>,
    /// A person's prompt waits for an answer from a spell that was bridged.
    typed: bool,
    /// Began before this server did.
    recovered: bool,
    dialog: Option<Dialog>,
    /// The file has shown a dialog in it.
    asked: bool,
    /// `dialog open` that came from another dialog: the badge stays.
    kept: bool,
    /// Asked about a `dialog open` that came from busy.
    menu: Reading,
}

impl Spell {
    fn whose(&self, end: Time) -> Whose {
        Whose {
            start: self.start,
            from: self.from,
            end,
        }
    }
}

/// The spell is over by the file, and its end is looked for.
#[derive(Clone, Debug)]
struct Closing {
    spell: Box<Spell>,
    idle_at: Stamp,
    /// The half second counts from here: the end, or the answer to a question that hid it.
    wait_from: Time,
    reading: Reading,
    /// A prompt waited when the file turned idle: taking it out of the queue is no reason to be quicker.
    queued: bool,
    /// Shown meanwhile; `None`: busy.
    held: Option<Held>,
    /// A question that stands open while the file says idle (Q15): the end waits for it.
    question: Option<Dialog>,
}

impl Closing {
    fn new(spell: Box<Spell>, idle_at: Stamp, held: Option<Held>) -> Self {
        Self {
            spell,
            idle_at,
            wait_from: idle_at.boot,
            reading: Reading::NotAsked,
            queued: false,
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
    Resting(Box<Rest>),
    Working(Box<Spell>),
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
        /// Evidence of an end may still come, of what began here.
        wanting: Option<Stamp>,
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
    /// Its file was removed.
    removed: Option<Time>,
    /// It has said that its session ended.
    ended: Option<Time>,
    key_seen: Option<Stamp>,
    cpu_quiet: bool,
    pub file: Option<SessionFile>,
    /// A restart met it when its session had long gone on in a background job: its own file was frozen then.
    parked_when_found: bool,
    file_at: Time,
    /// Since when it can't be read: what it says now is not known (rule 2).
    file_torn: Option<Time>,
    file_first: Option<Time>,
    status: Option<Status>,
    seen_shell: bool,
    phase: Phase,
    turns: Turns,
    asks: Asks,
    subagents: BTreeSet<Arc<str>>,
    /// With the moment of the end.
    ended_subagents: BTreeMap<Arc<str>, Time>,
    unheard: Option<Unheard>,
    pub conversation: Option<ConversationId>,
    conversation_at: Stamp,
    transcript: Option<Arc<str>>,
    /// When its lines were last given.
    read_up_to: Option<Time>,
    /// It did not exist when it was last looked for.
    pub transcript_missing: bool,
    pub hooks_heard: bool,
    /// When the newest hook happened.
    newest_hook: Time,
    /// When one was last heard so late that others may be missing still.
    heard_late: Time,
    /// A whole turn has ended since without one, not even its Stop: they have been switched off.
    pub hooks_silent: bool,
    first_start: Option<Time>,
    pub cwd: Option<(Time, Arc<str>)>,
    pub last_message: Option<Arc<str>>,
    pub title: Option<Arc<str>>,
    /// The person gave it.
    title_named: bool,
    pub first_prompt: Option<(Time, Arc<str>)>,
    pub context_tokens: Option<u64>,
    /// What made them so, newest last: wall time and tokens.
    usages: VecDeque<(i64, u64)>,
    pub model: Option<Arc<str>>,
    /// What it told its status line last.
    status_line: Option<StatusLine>,
    wakes_at_ms: Option<i64>,
    restored: Option<Persisted>,
    restored_reading: Reading,
    startup: Option<Dialog>,
    base: Option<base::Verdict>,
    /// The same with all that was told, also where it is not shown yet.
    base_told: Option<base::Verdict>,
    base_dialog: Option<Dialog>,
    shown: Option<Badge>,
    stay: Stay,
    shown_since: Stamp,
    /// What is kept is not the badge that is shown but this.
    kept_beneath: Option<Persisted>,
    episode: Option<Episode>,
    /// The one serial of dialogs.
    serial: u64,
    requests: u64,
    /// Newest moment that was dealt with: no deadline lies before it.
    clock: Time,
    watching: bool,
    watching_cpu: bool,
    evidence: VecDeque<Evidence>,
    history: VecDeque<(Stamp, Option<Badge>)>,
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

impl Agent {
    pub(crate) fn new(
        key: AgentKey,
        process: Process,
        now: Stamp,
        restored: Option<Persisted>,
        ctx: &mut Ctx,
    ) -> Self {
        // A process that is younger than the fleet did nothing before.
        let found_recovering =
            ctx.recovered.is_none() && ctx.began.is_none_or(|began| key.born() <= began);
        let mut agent = Self {
            key,
            process,
            found: now,
            found_recovering,
            stopped: false,
            started_by_agent: false,
            left: None,
            removed: None,
            ended: None,
            key_seen: None,
            cpu_quiet: false,
            file: None,
            parked_when_found: false,
            file_at: Time(0),
            file_torn: None,
            file_first: None,
            status: None,
            seen_shell: false,
            phase: Phase::Unreported,
            turns: Turns::default(),
            asks: Asks::default(),
            subagents: BTreeSet::new(),
            ended_subagents: BTreeMap::new(),
            unheard: None,
            conversation: None,
            conversation_at: Stamp::default(),
            transcript: None,
            read_up_to: None,
            transcript_missing: false,
            hooks_heard: false,
            newest_hook: Time(0),
            heard_late: Time(0),
            hooks_silent: false,
            first_start: None,
            cwd: None,
            last_message: None,
            title: None,
            title_named: false,
            first_prompt: None,
            context_tokens: None,
            usages: VecDeque::new(),
            model: None,
            status_line: None,
            wakes_at_ms: None,
            restored: None,
            restored_reading: Reading::NotAsked,
            startup: None,
            base: None,
            base_told: None,
            base_dialog: None,
            shown: None,
            stay: Stay::None,
            shown_since: now,
            kept_beneath: None,
            episode: None,
            serial: 0,
            requests: 0,
            clock: now.boot,
            watching: false,
            watching_cpu: false,
            evidence: VecDeque::new(),
            history: VecDeque::new(),
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
        if let Phase::Resting(rest) = &self.phase
            && let Some(at) = rest
                .late
                .as_ref()
                .map(Late::next_look)
                .or_else(|| rest.past.as_ref().and_then(Past::next_look))
        {
            due.push((at, "a late end marker may have been written"));
        }
        let mut answer = |reading: Reading| {
            if let Reading::Asked { at, .. } = reading {
                due.push((at + TRANSCRIPT_WAIT, "no answer about the transcript"));
            }
            if let Reading::Answered { ok: false, at } = reading {
                due.push((at + READ_AGAIN, "the transcript could not be read"));
            }
        };
        match &self.phase {
            Phase::Unreported => {}
            Phase::Resting(rest) => {
                if let Some(past) = &rest.past {
                    answer(past.reading);
                }
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
                if let Some(at) = self.turns.prompt_line_after(closing.idle_at) {
                    due.push((at.boot + LEAD, "the file has not confirmed a prompt"));
                }
            }
        }
        if let Phase::Working(spell) = &self.phase
            && let Some(answered) = spell.dialog.as_ref().and_then(|d| d.answered)
        {
            due.push((
                answered + ANSWERED_STAYS,
                "an answered request is still asked",
            ));
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

/// For the rows and for the fleet.
impl Agent {
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

    /// What its own witnesses say is no more than how it was left: its job's badge counts from the first.
    pub(crate) fn parked_when_found(&self) -> bool {
        self.parked_when_found && self.parked_job().is_some()
    }

    pub(crate) fn job(&self) -> Option<&Arc<str>> {
        self.file.as_ref().and_then(|f| f.job.as_ref())
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left.is_some()
    }

    /// Nobody knows what its file says now.
    pub(crate) fn unreadable(&self) -> bool {
        self.file_torn.is_some()
    }

    /// When its status was first known; for a parked session's successor.
    pub(crate) fn reported(&self) -> bool {
        self.status.is_some()
    }

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
        self.state_label()
            .or_else(|| self.unwritten().then(|| "no transcript".into()))
    }

    /// At rest after a turn of which Claude has written nothing: it keeps no transcript. A turn that was taken
    /// back before its first token leaves none either, but has no Stop.
    fn unwritten(&self) -> bool {
        let since = self.conversation_at.boot;
        self.transcript_missing
            && matches!(self.shown, Some(Badge::Idle | Badge::Review(_)))
            && self
                .turns
                .deciding()
                .any(|t| t.what.stop().is_some() && t.at.boot >= since)
    }

    fn state_label(&self) -> Option<Arc<str>> {
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

fn word(badge: &Badge) -> &'static str {
    match badge {
        Badge::Idle => "idle",
        Badge::Busy(_) => "busy",
        Badge::NeedsInput(_) => "needs-input",
        Badge::Review(_) => "review",
        Badge::Unknown => "unknown",
    }
}
