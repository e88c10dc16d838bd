//! What the page (and every program) is told over `/api/status`, and what it may say back. The TypeScript
//! types of the page are generated from this file; nothing of it is spelled out twice.
//!
//! `ServerMsg` carries levels: a snapshot or the difference to what this viewer was last sent. The order of
//! items is no part of the message: tabs are ordered by their workspace.

use std::collections::HashMap;
use std::sync::Arc;

use purplemux_core::view;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::sentence::{Notice, Sentence};

/// The five words, and `null` for "no agent" (an `Option` around it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Claude waits for the next prompt.
    Idle,
    /// Claude works.
    Busy,
    /// Something waits for the person.
    NeedsInput,
    /// Claude finished; something to look at.
    Review,
    /// Was busy when the server restarted.
    Unknown,
}

/// One row: a tab, or an agent without one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Item {
    /// The tab's id, or `host:pid:start`.
    pub id: String,
    /// The machine's name.
    pub host: String,
    /// The tab, if it is in one of ours.
    pub tab: Option<String>,
    /// The tab's workspace.
    pub workspace: Option<String>,
    /// The agent's process id.
    pub pid: Option<u32>,
    /// Claude's session id.
    pub session_id: Option<String>,
    /// Directory now.
    pub cwd: Option<String>,
    /// Git branch of the directory.
    pub branch: Option<String>,
    /// The badge.
    pub state: Option<State>,
    /// Unix ms since when the state is this.
    #[ts(type = "number")]
    pub since_ms: i64,
    /// Details inside the state.
    pub detail: Detail,
    /// Of the process.
    pub presence: Presence,
    /// What the row is called.
    pub title: String,
    /// Claude's last words.
    pub last_message: Option<String>,
    /// Current tool.
    pub tool: Option<String>,
    /// Token counts.
    pub tokens: Tokens,
    /// Share of the context window used, in percent; absent where the window's size is not known.
    pub context_pct: Option<u8>,
    /// The model, in Claude's own word.
    pub model: Option<String>,
    /// Listening TCP ports.
    pub ports: Vec<u16>,
    /// Its terminal can be opened: it is a tab, or it runs in a tmux of the person's own.
    pub terminal: bool,
    /// What became of a tab's shell; `null` for a row that is no tab.
    pub shell: Option<Shell>,
    /// A session that somebody else has made on our tmux server: closing it here only hides it.
    pub foreign: bool,
    /// The end of its screen is not what its terminal shows now: its pane is scrolled back, behind another
    /// window, or behind a zoomed pane.
    pub covered: bool,
    /// Our hooks have been heard.
    pub hooks: bool,
    /// Counts for bell and title.
    pub attention: bool,
    /// Names the stay in needs-input or review.
    #[ts(type = "number | null")]
    pub episode: Option<u64>,
    /// A conversation that ran in this tab before its shell was started again, and can be taken up here.
    pub resume: Option<Resume>,
}

/// A conversation that can be taken up again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Resume {
    /// Claude's session id.
    pub conversation: String,
    /// What it was called; empty if it had no name.
    pub title: String,
}

/// Details inside a state; each absent when empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct Detail {
    /// `thinking`, `tool`, `compacting`, `retrying`, `subagents`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub doing: Option<String>,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub tool: Option<String>,
    /// Its argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub arg: Option<String>,
    /// Running subagents.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub agents: Option<u32>,
    /// Background shells still running.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub shells: Option<u32>,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub ask: Option<Ask>,
    /// `finished` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub outcome: Option<String>,
    /// The kind of failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub error: Option<String>,
    /// Next wake-up, unix ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub wakes_at_ms: Option<i64>,
    /// `interrupted`, `headless`, `ended without Stop`, `no transcript`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub label: Option<String>,
}

/// What needs-input waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Ask {
    /// Names this ask; an answer must carry it.
    #[ts(type = "number")]
    pub id: u64,
    /// permission, question, plan, form, dialog, startup.
    pub kind: AskKind,
    /// Command, question or message; empty while unknown.
    pub text: String,
    /// Claude's own labels.
    pub options: Vec<String>,
    /// The dialog as it stands on the screen; absent until it was read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[ts(optional)]
    pub card: Option<Card>,
}

/// The dialog of an ask as Claude has drawn it, to be shown and answered. Everything in it was written by Claude or
/// a tool and has been made visible.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Card {
    /// Names just this dialog: an answer carries it, and is refused when another stands there.
    pub reading: String,
    /// What kind of thing it is about ("Bash command").
    pub title: String,
    /// The command, path or changed lines, as drawn.
    pub subject: Vec<String>,
    /// What is asked.
    pub question: String,
    /// Claude's own options, in order; empty where nothing can be pressed.
    pub options: Vec<CardOption>,
    /// Which of several questions this is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[ts(optional)]
    pub part: Option<CardPart>,
    /// The review page of several questions: `submit` sends all of them.
    pub submit: bool,
    /// `reject` can be sent (Esc).
    pub reject: bool,
    /// `words` can be sent: what to do instead.
    pub words: bool,
    /// Why nothing can be pressed here, in English, with what to do.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[ts(optional)]
    pub cannot: Option<String>,
    /// The same as a code.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[ts(optional)]
    pub said: Option<Sentence>,
}

/// One option of a dialog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct CardOption {
    /// Claude's number for it.
    pub number: Option<u8>,
    /// Claude's label.
    pub label: String,
    /// What stands below the label; empty for most.
    pub note: String,
    /// Where several may be checked: whether this one is.
    pub checked: Option<bool>,
    /// Claude's own mark is on it.
    pub marked: bool,
}

/// The place of a question among several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct CardPart {
    /// From 0.
    pub index: u32,
    /// How many there are, without the page that submits them.
    pub count: u32,
    /// Their titles.
    pub titles: Vec<String>,
    /// Which of them have an answer.
    pub answered: Vec<bool>,
}

/// What the person answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Answer {
    /// Choose one option.
    Choose {
        /// Its place in the card's options, from 0.
        option: u32,
    },
    /// Of a question where several may be checked: have exactly these checked, then go on.
    Check {
        /// Their places in the card's options, from 0.
        options: Vec<u32>,
    },
    /// Esc.
    Reject,
    /// Refuse, and say what to do instead.
    Words {
        /// What to do.
        text: String,
    },
    /// Submit the answers to several questions.
    Submit,
}

/// How far an answer, or a wish to stop, has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum Sending {
    /// It is being checked and typed.
    Sending,
    /// It was typed, and was seen to take effect.
    Sent,
    /// It was typed, or half of it, and had no effect.
    Failed,
}

/// The kinds of ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum AskKind {
    /// May this tool run?
    Permission,
    /// AskUserQuestion.
    Question,
    /// A plan to approve.
    Plan,
    /// MCP elicitation.
    Form,
    /// Another dialog of Claude's.
    Dialog,
    /// Before the first status file.
    Startup,
}

/// The process, apart from its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// No agent.
    None,
    /// A process, no status yet.
    Starting,
    /// Alive.
    Running,
    /// Ctrl-Z.
    Suspended,
    /// Goes on in a background process.
    Elsewhere,
    /// Ended.
    Gone,
}

/// What became of a tab's shell, or of the program that it was replaced by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum Shell {
    /// Its tmux session lives.
    Running,
    /// Its program has exited, and tmux keeps the pane (`remain-on-exit`).
    Dead,
    /// Its tmux session has ended.
    Ended,
}

/// Token counts, absent when unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct Tokens {
    /// In the context now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub context: Option<u64>,
}

/// A workspace with its most urgent state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Workspace {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Default directory.
    pub dir: String,
    /// The colour the person gave it.
    pub color: Option<Color>,
    /// The heading it stands under, with all others of the same.
    pub group: Option<String>,
    /// Its panes. Which tab each shows, which has the focus and which is zoomed is each device's own.
    pub panes: PaneTree,
    /// Ids of its tabs in the order of the panes; each is an item's id.
    pub tabs: Vec<String>,
    /// Most urgent inside.
    pub state: Option<State>,
    /// With `state: review`: the most urgent one failed.
    pub failed: bool,
}

/// The colours of a workspace. Amber, purple and grey are not among them: those belong to states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "a colour is its name")]
pub enum Color {
    Red,
    Orange,
    Yellow,
    Green,
    Teal,
    Blue,
    Pink,
    Brown,
}

/// How a workspace is divided: one pane, or a split of several parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum PaneTree {
    /// One pane.
    Pane(PaneArea),
    /// Parts beside or below each other.
    Split(PaneSplit),
}

/// A pane: an area with a bar of tabs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct PaneArea {
    /// Its id, unique over all workspaces.
    pub id: String,
    /// Ids of its tabs in order; none where nothing was opened in it yet.
    pub tabs: Vec<String>,
}

/// An area that is divided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct PaneSplit {
    /// Its id, unique over all workspaces.
    pub id: String,
    /// Where the next part lies.
    pub dir: SplitDir,
    /// Two or more, from left to right or from top to bottom; none is itself split in this direction.
    pub parts: Vec<PaneTree>,
    /// Their shares in thousandths; 1000 in all.
    pub sizes: Vec<u16>,
}

/// The direction of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum SplitDir {
    /// Side by side.
    Right,
    /// One below the other.
    Down,
}

/// What the layout says of a workspace beside its name, directory and tabs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arranged {
    /// As in [`Workspace`].
    pub color: Option<Color>,
    /// As in [`Workspace`].
    pub group: Option<String>,
    /// As in [`Workspace`].
    pub panes: PaneTree,
}

/// From the server, as JSON text frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ServerMsg {
    /// Everything; replaces what the viewer had.
    Snapshot {
        /// Changes with every start of the server.
        epoch: String,
        /// Counts up by one per message that changes something.
        #[ts(type = "number")]
        rev: u64,
        /// The server's wall clock, unix ms, for ages on a client whose clock is off.
        #[ts(type = "number")]
        now_ms: i64,
        /// All rows.
        items: Vec<Item>,
        /// All workspaces in order.
        workspaces: Vec<Workspace>,
        /// What is degraded ("tmux does not answer"); empty when healthy.
        notices: Vec<Notice>,
    },
    /// The difference to the revision before.
    Diff {
        /// As in the snapshot.
        epoch: String,
        /// The snapshot's or last diff's `rev` plus one.
        #[ts(type = "number")]
        rev: u64,
        /// As in the snapshot.
        #[ts(type = "number")]
        now_ms: i64,
        /// Items that are new or changed.
        set: Vec<Item>,
        /// Ids of items that are gone.
        gone: Vec<String>,
        /// All workspaces, if anything about them changed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        #[ts(optional)]
        workspaces: Option<Vec<Workspace>>,
        /// All notices, if they changed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        #[ts(optional)]
        notices: Option<Vec<Notice>>,
    },
    /// Every 10 s, so that a dead link is noticed within 15.
    Heartbeat {
        /// As in the snapshot.
        epoch: String,
        /// The last revision sent.
        #[ts(type = "number")]
        rev: u64,
        /// The server's wall clock.
        #[ts(type = "number")]
        now_ms: i64,
    },
    /// Something the viewer sent could not be done. After `answer` and `stop` it means that nothing was typed.
    Refused {
        /// The `request` of the message refused.
        #[ts(type = "number")]
        request: u64,
        /// Why, and what to do, in English.
        why: String,
        /// The same as a code.
        said: Sentence,
    },
    /// How an answer goes; to every viewer, so that nobody answers what has been answered.
    Answered {
        /// The `request` of the answer, for the viewer that sent it; `null` for the others.
        #[ts(type = "number | null")]
        request: Option<u64>,
        /// The item.
        item: String,
        /// The ask.
        #[ts(type = "number")]
        ask: u64,
        /// The card's `reading` that it answers.
        reading: String,
        /// How far it has come.
        outcome: Sending,
        /// What was answered: the option's label.
        what: String,
        /// Who answers: the device's name.
        by: String,
        /// Since when, unix ms.
        #[ts(type = "number")]
        at_ms: i64,
        /// With `failed`: what to do, in English.
        why: Option<String>,
        /// The same as a code.
        said: Option<Sentence>,
    },
    /// The person's settings, which all of their devices share: once after the first snapshot, and at every change.
    Settings {
        /// All of them. What the words mean is for the page to know.
        #[ts(type = "Record<string, unknown>")]
        settings: serde_json::Map<String, serde_json::Value>,
    },
    /// How a wish to stop goes; to the viewer that sent it.
    Stopped {
        /// The `request` of the message.
        #[ts(type = "number")]
        request: u64,
        /// The item.
        item: String,
        /// How far it has come.
        outcome: Sending,
        /// What else the person should know, in English: a prompt that waits will run now, or why it failed.
        why: Option<String>,
        /// The same as a code.
        said: Option<Sentence>,
    },
}

/// From the page or a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ClientMsg {
    /// First message of every socket that came over TCP: the login's secret.
    Hello {
        /// From `POST /api/login`, kept in localStorage.
        secret: String,
    },
    /// The end of this review was really seen.
    Seen {
        /// Names the message in `Refused`.
        #[ts(type = "number")]
        request: u64,
        /// The item.
        item: String,
        /// The episode seen.
        #[ts(type = "number")]
        episode: u64,
    },
    /// Dismissed by hand.
    Dismiss {
        /// Names the message in `Refused`.
        #[ts(type = "number")]
        request: u64,
        /// The item.
        item: String,
        /// The episode dismissed.
        #[ts(type = "number")]
        episode: u64,
    },
    /// These rows are in front here: on screen in a focused window, in as many panes as there are. Said at every
    /// change; a viewer that has said nothing has none.
    Front {
        /// The items.
        items: Vec<String>,
    },
    /// Answer an ask.
    Answer {
        /// Names the message in `Refused` and `Answered`.
        #[ts(type = "number")]
        request: u64,
        /// The item.
        item: String,
        /// The ask.
        #[ts(type = "number")]
        ask: u64,
        /// The card's `reading`, as it was shown to the person.
        reading: String,
        /// What the person answers.
        answer: Answer,
    },
    /// Interrupt Claude: one Esc, if it works and asks nothing.
    Stop {
        /// Names the message in `Refused` and `Stopped`.
        #[ts(type = "number")]
        request: u64,
        /// The item.
        item: String,
    },
    /// Send me a snapshot.
    Resync,
}

/// What a viewer has, or should have, by reference.
#[derive(Clone, Copy, Debug)]
pub struct Level<'a> {
    /// All rows. Those that stand for both levels are not compared.
    pub items: &'a [Arc<Item>],
    /// All workspaces in order. A list that stands for both levels is not compared.
    pub workspaces: &'a [Workspace],
    /// All notices.
    pub notices: &'a [Notice],
}

/// The parts of [`ServerMsg::Diff`] that say what changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Items that are new or changed.
    pub set: Vec<Item>,
    /// Ids of items that are gone.
    pub gone: Vec<String>,
    /// All workspaces, if anything about them changed.
    pub workspaces: Option<Vec<Workspace>>,
    /// All notices, if they changed.
    pub notices: Option<Vec<Notice>>,
}

/// What must be sent to a viewer that was last sent `sent`, so that it has `now`; `None`: nothing.
#[must_use]
pub fn diff(sent: Level<'_>, now: Level<'_>) -> Option<Changes> {
    let mut set = Vec::new();
    let mut places = sent.items.iter().zip(now.items);
    // Nearly always the same rows stand in the same places.
    let kept = places.by_ref().take_while(|(sent, now)| {
        let stays = Arc::ptr_eq(sent, now) || sent.id == now.id;
        if stays && sent != now {
            set.push(Item::clone(now));
        }
        stays
    });
    let kept = kept.count();
    let mut before = by_id(&sent.items[kept..]);
    for item in &now.items[kept..] {
        if before.remove(item.id.as_str()) != Some(item) {
            set.push(Item::clone(item));
        }
    }
    let mut gone: Vec<String> = before.into_keys().map(str::to_owned).collect();
    gone.sort_unstable();
    let same_list = std::ptr::eq(sent.workspaces, now.workspaces);
    let changes = Changes {
        set,
        gone,
        workspaces: (!same_list && sent.workspaces != now.workspaces)
            .then(|| now.workspaces.to_vec()),
        notices: (sent.notices != now.notices).then(|| now.notices.to_vec()),
    };
    (changes != Changes::default()).then_some(changes)
}

fn by_id(items: &[Arc<Item>]) -> HashMap<&str, &Arc<Item>> {
    items.iter().map(|item| (item.id.as_str(), item)).collect()
}

impl Changes {
    /// Brings what a viewer has up to date, as every viewer does. New items go to the end.
    pub fn apply(
        self,
        items: &mut Vec<Item>,
        workspaces: &mut Vec<Workspace>,
        notices: &mut Vec<Notice>,
    ) {
        items.retain(|item| !self.gone.contains(&item.id));
        for item in self.set {
            match items.iter_mut().find(|had| had.id == item.id) {
                Some(had) => *had = item,
                None => items.push(item),
            }
        }
        if let Some(now) = self.workspaces {
            *workspaces = now;
        }
        if let Some(now) = self.notices {
            *notices = now;
        }
    }
}

/// The word for a badge.
#[must_use]
pub fn state(badge: &view::Badge) -> State {
    match badge {
        view::Badge::Idle => State::Idle,
        view::Badge::Busy(_) => State::Busy,
        view::Badge::NeedsInput(_) => State::NeedsInput,
        view::Badge::Review(_) => State::Review,
        view::Badge::Unknown => State::Unknown,
    }
}

/// Tokens that a model's context holds. Transcripts do not say it; this is what Claude Code tells its status line
/// (`context_window_size`) for each model that it has by name (measured, 2.1.332, one start each). The older ones can
/// be had with a larger window, which shows only when there is more in it than the plain one holds.
fn context_window(model: &str, tokens: u64) -> Option<u64> {
    const PLAIN: u64 = 200_000;
    const LARGE: u64 = 1_000_000;
    // An id may end in the day of the model.
    let name = match model.rsplit_once('-') {
        Some((name, day)) if day.len() == 8 && day.bytes().all(|b| b.is_ascii_digit()) => name,
        Some(_) | None => model,
    };
    match name {
        "claude-opus-5-5" | "claude-opus-5" | "claude-opus-4-8" | "claude-opus-4-7"
        | "claude-sonnet-5-5" | "claude-sonnet-5" | "claude-haiku-5-5" | "claude-fable-5"
        | "claude-fable-5-1" | "claude-fable-5-2" | "claude-mythos-5" | "claude-mythos-5-2" => {
            Some(LARGE)
        }
        "claude-opus-4-6" | "claude-opus-4-5" | "claude-sonnet-4-6" | "claude-sonnet-4-5"
        | "claude-sonnet-4-0" | "claude-haiku-4-5" => {
            Some(if tokens > PLAIN { LARGE } else { PLAIN })
        }
        _ => None,
    }
}

/// The share of the context that is used, rounded; `None` where the whole is not known.
/// Claude's own word for the whole, from its status line, goes first.
fn percent(tokens: Option<u64>, told: Option<u64>, model: Option<&str>) -> Option<u8> {
    let tokens = tokens?;
    let window = match told.filter(|window| *window > 0) {
        Some(window) => window,
        None => context_window(model?, tokens)?,
    };
    let percent = tokens.saturating_mul(100).saturating_add(window / 2) / window;
    u8::try_from(percent).ok().filter(|percent| *percent <= 100)
}

/// What core shows of a row. Branch, ports, what tmux says of its pane and what can be resumed are the server's to add.
impl From<&view::Item> for Item {
    fn from(item: &view::Item) -> Self {
        let detail = item.badge.as_ref().map(detail).unwrap_or_default();
        Self {
            id: item.id.to_string(),
            host: item.host.to_string(),
            tab: item.tab.as_ref().map(ToString::to_string),
            workspace: item.workspace.as_ref().map(ToString::to_string),
            pid: item.agent.as_ref().map(|agent| agent.pid),
            session_id: item.conversation.as_ref().map(ToString::to_string),
            cwd: item.cwd.as_ref().map(ToString::to_string),
            branch: None,
            state: item.badge.as_ref().map(state),
            since_ms: item.since.wall_ms,
            tool: detail.tool.clone(),
            detail: Detail {
                label: item.label.as_ref().map(ToString::to_string),
                ..detail
            },
            presence: item.presence.into(),
            title: item.title.to_string(),
            last_message: item.last_message.as_ref().map(ToString::to_string),
            tokens: Tokens {
                context: item.context_tokens,
            },
            context_pct: percent(
                item.context_tokens,
                item.context_window,
                item.model.as_deref(),
            ),
            model: item.model.as_ref().map(ToString::to_string),
            ports: Vec::new(),
            terminal: item.tab.is_some() || item.pane.is_some(),
            shell: None,
            foreign: false,
            covered: false,
            hooks: item.hooks,
            attention: item.attention,
            episode: item.episode.map(|episode| episode.0),
            resume: None,
        }
    }
}

fn detail(badge: &view::Badge) -> Detail {
    match badge {
        view::Badge::Idle | view::Badge::Unknown => Detail::default(),
        view::Badge::Busy(doing) => {
            let (tool, arg) = match &doing.tool {
                Some((tool, arg)) => (
                    Some(tool.to_string()),
                    arg.as_ref().map(ToString::to_string),
                ),
                None => (None, None),
            };
            // The one word for the row; what stops everything else comes first.
            let word = if doing.compacting {
                "compacting"
            } else if doing.retrying {
                "retrying"
            } else if tool.is_some() {
                "tool"
            } else if doing.agents > 0 {
                "subagents"
            } else {
                "thinking"
            };
            Detail {
                doing: Some(word.to_owned()),
                tool,
                arg,
                agents: (doing.agents > 0).then_some(doing.agents),
                ..Detail::default()
            }
        }
        view::Badge::NeedsInput(ask) => Detail {
            tool: ask.tool.as_ref().map(ToString::to_string),
            ask: Some(ask.into()),
            ..Detail::default()
        },
        view::Badge::Review(outcome) => {
            let word = match outcome.error {
                Some(_) => "failed",
                None => "finished",
            };
            Detail {
                outcome: Some(word.to_owned()),
                error: outcome.error.as_ref().map(ToString::to_string),
                shells: (outcome.shells > 0).then_some(outcome.shells),
                wakes_at_ms: outcome.wakes_at_ms,
                ..Detail::default()
            }
        }
    }
}

impl From<&view::Ask> for Ask {
    fn from(ask: &view::Ask) -> Self {
        Self {
            id: ask.id,
            kind: ask.kind.into(),
            text: ask.text.as_deref().unwrap_or_default().to_owned(),
            options: ask.options.iter().map(ToString::to_string).collect(),
            card: None,
        }
    }
}

impl From<view::AskKind> for AskKind {
    fn from(kind: view::AskKind) -> Self {
        match kind {
            view::AskKind::Permission => Self::Permission,
            view::AskKind::Question => Self::Question,
            view::AskKind::Plan => Self::Plan,
            view::AskKind::Form => Self::Form,
            view::AskKind::Dialog => Self::Dialog,
            view::AskKind::Startup => Self::Startup,
        }
    }
}

impl From<view::Presence> for Presence {
    fn from(presence: view::Presence) -> Self {
        match presence {
            view::Presence::None => Self::None,
            view::Presence::Starting => Self::Starting,
            view::Presence::Running => Self::Running,
            view::Presence::Suspended => Self::Suspended,
            view::Presence::Elsewhere => Self::Elsewhere,
            view::Presence::Gone => Self::Gone,
        }
    }
}

impl Workspace {
    /// What core shows of a workspace, as it is arranged.
    #[must_use]
    pub fn new(view: &view::WorkspaceView, arranged: Arranged) -> Self {
        Self {
            id: view.id.to_string(),
            name: view.name.to_string(),
            dir: view.dir.to_string(),
            color: arranged.color,
            group: arranged.group,
            panes: arranged.panes,
            tabs: view.tabs.iter().map(ToString::to_string).collect(),
            state: view.badge.as_ref().map(state),
            failed: matches!(&view.badge, Some(view::Badge::Review(outcome)) if outcome.error.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use purplemux_core::view::{Badge, Doing, Outcome};
    use purplemux_core::{AgentKey, EpisodeId, HostId, Stamp, Time};

    use super::*;
    use crate::sentence::Cause;

    fn row(badge: Option<Badge>) -> Item {
        Item::from(&view::Item {
            id: Arc::from("tab-1"),
            host: HostId::from("here"),
            tab: Some("tab-1".into()),
            workspace: Some("ws".into()),
            agent: Some(AgentKey {
                host: HostId::from("here"),
                pid: 7,
                start: 8,
            }),
            pane: None,
            conversation: None,
            cwd: Some(Arc::from("/home/dev")),
            badge,
            since: Stamp {
                boot: Time::from_ms(5),
                wall_ms: 1_796_029_162_252,
            },
            presence: view::Presence::Running,
            title: Arc::from("proj"),
            last_message: None,
            label: Some(Arc::from("interrupted")),
            context_tokens: Some(14_024),
            context_window: None,
            model: Some(Arc::from("claude-opus-5-5")),
            hooks: true,
            attention: false,
            episode: Some(EpisodeId(3)),
        })
    }

    #[test]
    fn a_row_has_the_names_that_programs_read() {
        let ask = view::Ask {
            id: 9,
            kind: view::AskKind::Permission,
            text: Some(Arc::from("touch a.txt")),
            tool: Some(Arc::from("Bash")),
            options: vec![Arc::from("Yes")],
        };
        let json = serde_json::to_value(row(Some(Badge::NeedsInput(ask)))).expect("plain data");
        assert_eq!(
            json,
            serde_json::json!({
                "id": "tab-1", "host": "here", "tab": "tab-1", "workspace": "ws", "pid": 7,
                "session_id": null, "cwd": "/home/dev", "branch": null, "state": "needs-input",
                "since_ms": 1_796_029_162_252_i64,
                "detail": {
                    "tool": "Bash", "label": "interrupted",
                    "ask": {"id": 9, "kind": "permission", "text": "touch a.txt", "options": ["Yes"]},
                },
                "presence": "running", "title": "proj", "last_message": null, "tool": "Bash",
                "tokens": {"context": 14024}, "context_pct": 1, "model": "claude-opus-5-5", "ports": [], "hooks": true,
                "attention": false, "episode": 3, "terminal": true,
                "shell": null, "foreign": false, "covered": false, "resume": null,
            })
        );
    }

    #[test]
    fn the_share_of_the_context_is_known_where_the_window_is() {
        let share = |tokens, model| percent(Some(tokens), None, Some(model));
        // As the status line of the recorded run s22 has it.
        assert_eq!(share(13_925, "claude-opus-5-5"), Some(1));
        assert_eq!(share(150_000, "claude-haiku-4-5-20251001"), Some(75));
        // More than the plain window: it is the large one.
        assert_eq!(share(250_000, "claude-sonnet-4-5"), Some(25));
        assert_eq!(share(2_000_000, "claude-opus-5-5"), None);
        assert_eq!(share(u64::MAX, "claude-opus-5-5"), None);
        assert_eq!(share(5, "somebody-s-model-1"), None);
        // What Claude has told its status line goes before what we know.
        let told = |tokens, window, model| percent(Some(tokens), Some(window), model);
        assert_eq!(told(100_000, 500_000, Some("claude-opus-5-5")), Some(20));
        assert_eq!(told(5, 10, Some("somebody-s-model-1")), Some(50));
        assert_eq!(told(5, 10, None), Some(50));
        assert_eq!(told(13_925, 0, Some("claude-opus-5-5")), Some(1));
        assert_eq!(percent(None, None, Some("claude-opus-5-5")), None);
        assert_eq!(percent(Some(5), None, None), None);
    }

    #[test]
    fn details_say_what_goes_on_inside_a_state() {
        let busy = |doing| row(Some(Badge::Busy(doing))).detail;
        assert_eq!(busy(Doing::default()).doing.as_deref(), Some("thinking"));
        let tool = Doing {
            tool: Some((Arc::from("Bash"), Some(Arc::from("sleep 9")))),
            agents: 2,
            ..Doing::default()
        };
        let detail = busy(tool.clone());
        assert_eq!(detail.doing.as_deref(), Some("tool"));
        assert_eq!(detail.arg.as_deref(), Some("sleep 9"));
        assert_eq!(detail.agents, Some(2));
        let compacting = Doing {
            compacting: true,
            ..tool
        };
        assert_eq!(busy(compacting).doing.as_deref(), Some("compacting"));
        let failed = row(Some(Badge::Review(Outcome {
            error: Some(Arc::from("rate_limit")),
            shells: 1,
            wakes_at_ms: None,
        })));
        assert_eq!(failed.detail.outcome.as_deref(), Some("failed"));
        assert_eq!(failed.detail.error.as_deref(), Some("rate_limit"));
        assert_eq!(failed.detail.shells, Some(1));
        assert_eq!(row(None).state, None);
    }

    #[test]
    fn panes_have_the_form_that_programs_read() {
        let pane = |id: &str, tabs: &[&str]| {
            PaneTree::Pane(PaneArea {
                id: id.into(),
                tabs: tabs.iter().map(ToString::to_string).collect(),
            })
        };
        let tree = PaneTree::Split(PaneSplit {
            id: "s-1".into(),
            dir: SplitDir::Right,
            parts: vec![pane("p-1", &["t-1", "t-2"]), pane("p-2", &[])],
            sizes: vec![600, 400],
        });
        let json = serde_json::json!({"split": {
            "id": "s-1", "dir": "right", "sizes": [600, 400],
            "parts": [{"pane": {"id": "p-1", "tabs": ["t-1", "t-2"]}}, {"pane": {"id": "p-2", "tabs": []}}],
        }});
        assert_eq!(serde_json::to_value(&tree).expect("plain data"), json);
        assert_eq!(
            serde_json::from_value::<PaneTree>(json).expect("our own"),
            tree
        );
        let word = serde_json::to_string(&Color::Teal).expect("a word");
        assert_eq!(word, r#""teal""#);
    }

    #[test]
    fn messages_are_tagged_and_survive_both_ways() {
        let hello = r#"{"type":"hello","secret":"s"}"#;
        assert_eq!(
            serde_json::from_str::<ClientMsg>(hello).expect("a hello"),
            ClientMsg::Hello { secret: "s".into() }
        );
        let diff = ServerMsg::Diff {
            epoch: "e".into(),
            rev: 2,
            now_ms: 3,
            set: vec![row(None)],
            gone: vec!["x".into()],
            workspaces: None,
            notices: None,
        };
        let json = serde_json::to_string(&diff).expect("plain data");
        assert!(
            json.starts_with(r#"{"type":"diff","epoch":"e","rev":2"#),
            "{json}"
        );
        assert!(!json.contains("workspaces"), "{json}");
        assert_eq!(
            serde_json::from_str::<ServerMsg>(&json).expect("our own"),
            diff
        );
    }

    fn items() -> impl Strategy<Value = Vec<Item>> {
        let word = prop_oneof![
            Just(None),
            Just(Some(Badge::Idle)),
            Just(Some(Badge::Busy(Doing::default()))),
            Just(Some(Badge::Unknown)),
        ];
        prop::collection::btree_map("[a-f]", (word, 0i64..3), 0..6).prop_map(|rows| {
            rows.into_iter()
                .map(|(id, (badge, since_ms))| Item {
                    id,
                    since_ms,
                    ..row(badge)
                })
                .collect()
        })
    }

    fn notices() -> impl Strategy<Value = Vec<Notice>> {
        let one = prop_oneof![Just(Cause::HistoryNotSaved), Just(Cause::TmuxBusy)];
        prop::collection::vec(one.prop_map(Notice::from), 0..2)
    }

    fn workspaces() -> impl Strategy<Value = Vec<Workspace>> {
        let one = prop::collection::vec("[a-f]", 0..3).prop_map(|tabs| Workspace {
            id: "ws".into(),
            name: "Default".into(),
            dir: "/".into(),
            color: None,
            group: None,
            panes: PaneTree::Pane(PaneArea {
                id: "p".into(),
                tabs: tabs.clone(),
            }),
            tabs,
            state: None,
            failed: false,
        });
        prop::collection::vec(one, 0..2)
    }

    fn sorted(mut items: Vec<Item>) -> Vec<Item> {
        items.sort_by(|a, b| a.id.cmp(&b.id));
        items
    }

    proptest! {
        #[test]
        fn apply_of_diff_is_now(
            a in (items(), workspaces(), notices()),
            b in (items(), workspaces(), notices()),
            shares in any::<bool>(),
        ) {
            let (mut had, mut had_workspaces, mut had_notices) = a.clone();
            // A row that has not changed is the same one, as a server keeps it, or one of its own that is equal.
            let before: Vec<Arc<Item>> = a.0.iter().cloned().map(Arc::new).collect();
            let kept = |item: &Item| before.iter().find(|had| ***had == *item).filter(|_| shares);
            let now: Vec<Arc<Item>> = b.0
                .iter()
                .map(|item| kept(item).map_or_else(|| Arc::new(item.clone()), Arc::clone))
                .collect();
            let from = Level { items: &before, workspaces: &a.1, notices: &a.2 };
            let to = Level { items: &now, workspaces: &b.1, notices: &b.2 };
            let changes = diff(from, to);
            prop_assert_eq!(changes.is_none(), a == b);
            if let Some(changes) = changes {
                changes.apply(&mut had, &mut had_workspaces, &mut had_notices);
            }
            prop_assert_eq!(sorted(had), b.0.clone());
            prop_assert_eq!(had_workspaces, b.1.clone());
            prop_assert_eq!(had_notices, b.2.clone());
            prop_assert!(diff(to, to).is_none());
        }
    }
}
