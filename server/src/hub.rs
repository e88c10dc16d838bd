//! The hub owns the fleet. Every event of every source goes through its one bounded inbox, every badge
//! leaves it as a [`Snapshot`] by `watch`; it arms one timer, from the fleet's own deadline.
//! It must never wait for a browser, a tmux or a transcript; only for the store, before anything is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use purplemux_core::event::{Persisted, WorkspaceFacts};
use purplemux_core::view::{self, Evidence};
use purplemux_core::{AgentKey, Badge, Changes, Effect, Event, Fleet, HostId, Stamp, Time};
use purplemux_wire::browser::{
    Arranged, Card, Item, PaneArea, PaneTree, Presence, Resume, Shell, Workspace,
};
use purplemux_wire::sentence::{Cause, Notice};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tracing::{debug, error, info, warn};

use crate::clock;
use crate::effects::journal::{self, Journal};
use crate::effects::persist::{self, Badges, Keep};
use crate::ingest::process::Processes;
use crate::ingest::transcript::{Timelines, Transcripts};
use crate::ingest::{self, Witnesses};
use crate::{push, task, tmux};

/// What is shown now: a level, replaced as a whole; `wire::diff` makes the difference per viewer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Counts up by one with every change; starts at 1 with each start of the server.
    pub rev: u64,
    /// All rows; one that has not changed is the very one of the level before.
    pub items: Vec<Arc<Item>>,
    /// All workspaces in order; the very list of the level before, where none has changed.
    pub workspaces: Arc<Vec<Workspace>>,
    /// What is degraded; empty when healthy.
    pub notices: Vec<Notice>,
}

impl Snapshot {
    /// All rows, to be sent.
    #[must_use]
    pub fn rows(&self) -> Vec<Item> {
        self.items.iter().map(|item| Item::clone(item)).collect()
    }
}

/// What is shown beside a badge and never decides one: found by the safety net, a level as well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Listening TCP ports by row.
    pub ports: BTreeMap<String, Vec<u16>>,
    /// Git branches by directory; `None`: it is in no repository.
    pub branches: BTreeMap<String, Option<String>>,
}

/// What the layout's owner knows and core need not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Tabs whose tmux session has ended.
    pub ended: BTreeSet<String>,
    /// Tabs whose tmux session is somebody else's.
    pub foreign: BTreeSet<String>,
    /// Tabs that are closed and can still be brought back: nothing in them is shown.
    pub closing: BTreeSet<String>,
    /// How each workspace is arranged.
    pub arranged: BTreeMap<String, Arranged>,
    /// Conversations that can be taken up, by tab.
    pub resume: BTreeMap<String, Resume>,
}

/// What the hub needs to start.
#[derive(Debug)]
pub struct Config {
    /// This machine's name, part of every identity.
    pub host: HostId,
    /// `$PURPLEMUX_HOME`, made and checked by the caller.
    pub home: PathBuf,
    /// Our tmux server.
    pub tmux: tmux::Handle,
    /// Where badges are kept over a restart.
    pub keep: Arc<dyn Keep>,
    /// Where everything that happens is written down.
    pub journal: journal::Config,
    /// The rows that [`Keep`] holds, as they were given to it: agent and value.
    pub restored: Vec<(String, String)>,
    /// Who tells the person.
    pub alerts: push::Handle,
    /// Claude's directories known from the start (`$CLAUDE_CONFIG_DIR`, else `~/.claude`); more are
    /// learned from processes and hooks. See [`crate::ingest::default_claude_dirs`].
    pub claude_dirs: Vec<PathBuf>,
}

/// What follows the badges for ends of its own waits here, once it has seen a change, until the pages have been
/// told: a change wakes all who follow, in any order.
pub async fn pages_first() {
    tokio::task::yield_now().await;
}

/// The hub has stopped; nothing more can happen.
#[derive(Debug, Error)]
#[error("purplemux is stopping")]
pub struct Stopped;

/// Something that works less well than it should, shown to every viewer until it is over. One sentence
/// per kind, so that a source can take its own back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Degraded {
    /// tmux did not answer three times in a row.
    Tmux,
    /// Another tmux is installed than the one that runs.
    TmuxVersion,
    /// The watch on Claude's files is lost; they are looked at once a second instead.
    Watch,
    /// Badges can't be written down.
    History,
    /// The journal can't be written.
    Journal,
}

/// What the fleet knows about one row.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The row.
    pub item: view::Item,
    /// What was said, newest first; bounded.
    pub evidence: Vec<Evidence>,
    /// Its badges since the server started, newest first; bounded.
    pub history: Vec<(Stamp, Option<Badge>)>,
}

#[derive(Debug)]
enum Message {
    Event(Event),
    Degraded(Degraded, Option<Cause>),
    Explain(String, oneshot::Sender<Option<Explained>>),
    LongBusy(oneshot::Sender<Vec<AgentKey>>),
    Beside(Beside),
    Layout(Box<Marks>, Vec<WorkspaceFacts>),
    Asked(u64, String),
    Card(u64, Option<Box<Card>>),
    Stop,
}

/// A way to the hub for everyone else.
#[derive(Clone, Debug)]
pub struct Handle {
    inbox: mpsc::Sender<Message>,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    host: HostId,
    witnesses: Witnesses,
}

/// Events that may wait: enough for a burst of 50 sessions with 20 hooks each; senders wait beyond that,
/// so nothing is lost.
const INBOX: usize = 1024;

/// How long a deadline that does not go away is left alone.
const OVERDUE: Duration = Duration::from_secs(5);

impl Handle {
    /// Queues an event; waits while the inbox is full.
    pub async fn send(&self, event: Event) -> Result<(), Stopped> {
        self.message(Message::Event(event)).await
    }

    /// What is shown, now and at every change.
    #[must_use]
    pub fn snapshots(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshots.clone()
    }

    /// Shows a sentence about something degraded, or takes it back with `None`.
    pub async fn degraded(&self, what: Degraded, sentence: Option<Cause>) -> Result<(), Stopped> {
        self.message(Message::Degraded(what, sentence)).await
    }

    /// What is known about a row, by its id or its tab's; `None`: there is no such row.
    pub async fn explain(&self, item: String) -> Result<Option<Explained>, Stopped> {
        let (answer, explained) = oneshot::channel();
        self.message(Message::Explain(item, answer)).await?;
        explained.await.map_err(|_| Stopped)
    }

    /// Whose process the safety net should look for.
    pub async fn long_busy(&self) -> Result<Vec<AgentKey>, Stopped> {
        let (answer, answered) = oneshot::channel();
        self.message(Message::LongBusy(answer)).await?;
        answered.await.map_err(|_| Stopped)
    }

    /// Shows this beside the badges from now on, in place of what was shown before.
    pub async fn beside(&self, beside: Beside) -> Result<(), Stopped> {
        self.message(Message::Beside(beside)).await
    }

    /// Shows this layout from now on, in place of what was shown before: one change for every viewer.
    pub async fn layout(
        &self,
        marks: Marks,
        workspaces: Vec<WorkspaceFacts>,
    ) -> Result<(), Stopped> {
        self.message(Message::Layout(Box::new(marks), workspaces))
            .await
    }

    /// Shows these words with an ask that has none of its own, for as long as it stands.
    pub async fn asked(&self, ask: u64, words: String) -> Result<(), Stopped> {
        self.message(Message::Asked(ask, words)).await
    }

    /// Shows the dialog of an ask as it stands on the screen, for as long as the ask does.
    pub async fn card(&self, ask: u64, card: Option<Card>) -> Result<(), Stopped> {
        self.message(Message::Card(ask, card.map(Box::new))).await
    }

    /// Ends the hub's task, after everything that was sent before. All witnesses end with it.
    pub async fn stop(&self) {
        // An error means that it has ended already.
        drop(self.message(Message::Stop).await);
    }

    /// This machine's name.
    #[must_use]
    pub fn host(&self) -> &HostId {
        &self.host
    }

    /// The sources of events, for those who bring something to one of them.
    #[must_use]
    pub fn witnesses(&self) -> &Witnesses {
        &self.witnesses
    }

    async fn message(&self, message: Message) -> Result<(), Stopped> {
        self.inbox.send(message).await.map_err(|_| Stopped)
    }
}

#[cfg(test)]
impl Handle {
    /// A way to nobody, for a test of one witness: what is sent comes out of the receiver.
    pub fn alone(processes: Processes) -> (Self, Alone) {
        let (inbox, messages) = mpsc::channel(INBOX);
        let (_, snapshots) = watch::channel(Arc::default());
        let (round, rounds) = watch::channel(0);
        let handle = Self {
            inbox,
            snapshots,
            host: HostId::from("here"),
            witnesses: Witnesses {
                processes,
                tmux: tmux::Handle::nowhere(),
                odd: Arc::default(),
                timelines: Timelines::new(),
                rounds,
            },
        };
        (handle, Alone { messages, round })
    }
}

/// The other end of [`Handle::alone`].
#[cfg(test)]
pub struct Alone {
    messages: mpsc::Receiver<Message>,
    /// The bell of the safety net.
    pub round: watch::Sender<u64>,
}

#[cfg(test)]
impl Alone {
    /// The next event.
    pub async fn event(&mut self) -> Event {
        loop {
            if let Message::Event(event) = self.messages.recv().await.expect("somebody sends") {
                return event;
            }
        }
    }
}

/// Starts the hub and all witnesses, which begin by looking once at everything there is. Returns at once;
/// the task ends with [`Handle::stop`].
#[must_use]
pub fn spawn(config: Config) -> (Handle, JoinHandle<()>) {
    let (inbox, messages) = mpsc::channel(INBOX);
    let (publish, snapshots) = watch::channel(Arc::new(Snapshot::default()));
    let (processes, process_task) = Processes::new(config.host.clone(), config.home.clone());
    let restored = restore(&config.restored);
    let (round, rounds) = watch::channel(0);
    let handle = Handle {
        inbox,
        snapshots,
        host: config.host.clone(),
        witnesses: Witnesses {
            processes: processes.clone(),
            tmux: config.tmux.clone(),
            odd: Arc::default(),
            timelines: Timelines::new(),
            rounds,
        },
    };
    let hub = Hub {
        fleet: Fleet::new(config.host),
        badges: Badges::new(config.keep),
        journal: Journal::start(config.journal, handle.clone()),
        transcripts: Transcripts::new(handle.clone(), processes.claude_dirs()),
        processes,
        publish,
        rows: Rows::default(),
        degraded: BTreeMap::new(),
        beside: Beside::default(),
        asked: BTreeMap::new(),
        cards: BTreeMap::new(),
        alerts: config.alerts,
        marks: Marks::default(),
        tmux: config.tmux,
        overdue: None,
    };
    let agents = restored.iter().map(|(agent, _)| agent.clone()).collect();
    ingest::start(
        &handle,
        ingest::Start {
            home: config.home,
            claude_dirs: config.claude_dirs,
            restored: agents,
            processes: process_task,
            round,
        },
    );
    let task = task::spawn("hub", hub.run(messages, restored));
    (handle, task)
}

fn restore(rows: &[(String, String)]) -> Vec<(AgentKey, Persisted)> {
    rows.iter()
        .filter_map(
            |(agent, value)| match persist::decode(agent, value, clock::boot_id()) {
                Ok(restored) => Some(restored),
                Err(why) => {
                    warn!(
                        agent,
                        "A kept badge can't be read; evidence decides anew: {why:#}"
                    );
                    None
                }
            },
        )
        .collect()
}

/// Rows as they were last published, each beside what it was made from. Most events change one of them.
#[derive(Default)]
struct Rows {
    made: Vec<(view::Item, Arc<Item>)>,
    /// The panes they were made with.
    listing: Arc<tmux::Listing>,
    /// What is shown beside badges may be another in all of them.
    stale: bool,
    workspaces: Arc<Vec<Workspace>>,
}

struct Hub {
    fleet: Fleet,
    badges: Badges,
    journal: Journal,
    processes: Processes,
    transcripts: Transcripts,
    publish: watch::Sender<Arc<Snapshot>>,
    rows: Rows,
    degraded: BTreeMap<Degraded, Cause>,
    beside: Beside,
    /// Words of asks that have none of their own; as many as such asks are shown.
    asked: BTreeMap<u64, String>,
    /// Dialogs of asks; as many as asks are shown.
    cards: BTreeMap<u64, Card>,
    alerts: push::Handle,
    marks: Marks,
    tmux: tmux::Handle,
    /// The deadline that was still there after it had been told that it passed.
    overdue: Option<Time>,
}

impl Hub {
    async fn run(
        mut self,
        mut messages: mpsc::Receiver<Message>,
        restored: Vec<(AgentKey, Persisted)>,
    ) {
        for (agent, persisted) in restored {
            self.step(Event::Restored { agent, persisted }).await;
        }
        self.publish();
        loop {
            let timer = self.timer();
            tokio::select! {
                message = messages.recv() => match self.received(message) {
                    Some(Message::Event(event)) => self.step(event).await,
                    Some(Message::Degraded(what, Some(sentence))) => {
                        // A source says so again as long as it is so.
                        if self.degraded.get(&what) != Some(&sentence) {
                            warn!("{sentence}");
                            self.degraded.insert(what, sentence);
                        }
                    }
                    Some(Message::Degraded(what, None)) => {
                        if let Some(sentence) = self.degraded.remove(&what) {
                            info!("No longer so: {sentence}");
                        }
                        if what == Degraded::Journal && !self.badges.are_written() {
                            // It can be written again, and so can they: they lie in one file.
                            let written = self.badges.again().await;
                            self.history(written);
                        }
                    }
                    Some(Message::Explain(item, answer)) => {
                        task::answer(answer, self.explain(&item));
                        continue;
                    }
                    Some(Message::LongBusy(answer)) => {
                        task::answer(answer, self.fleet.long_busy(clock::boot()));
                        continue;
                    }
                    Some(Message::Beside(beside)) => self.beside = beside,
                    Some(Message::Layout(marks, workspaces)) => {
                        self.marks = *marks;
                        self.step(Event::LayoutChanged { workspaces }).await;
                    }
                    Some(Message::Asked(ask, words)) => {
                        self.asked.insert(ask, words);
                    }
                    Some(Message::Card(ask, Some(card))) => {
                        self.cards.insert(ask, *card);
                    }
                    Some(Message::Card(ask, None)) => {
                        self.cards.remove(&ask);
                    }
                    Some(Message::Stop) | None => break,
                },
                () = clock::reached(timer.unwrap_or_default()), if timer.is_some() => self.deadline().await,
            }
            self.publish();
        }
        debug!("The hub has stopped.");
        // Nobody who still wants to tell us something is to wait for us while we wait for the journal.
        drop(messages);
        self.journal.close().await;
    }

    /// What is shown beside badges comes in messages of its own, and may be in every row.
    fn received(&mut self, message: Option<Message>) -> Option<Message> {
        if !matches!(message, Some(Message::Event(_))) {
            self.rows.stale = true;
        }
        message
    }

    fn explain(&self, id: &str) -> Option<Explained> {
        let items = self.fleet.items();
        let named = |item: &view::Item| {
            *item.id == *id || item.agent.as_ref().is_some_and(|a| a.to_string() == id)
        };
        let item = items.into_iter().find(named)?;
        let agent = item.agent.as_ref();
        Some(Explained {
            evidence: agent.map(|a| self.fleet.explain(a)).unwrap_or_default(),
            history: agent.map(|a| self.fleet.history(a)).unwrap_or_default(),
            item,
        })
    }

    /// When [`Self::deadline`] is to be called; `None`: nothing is due.
    fn timer(&self) -> Option<Time> {
        let (at, _) = self.fleet.deadline()?;
        // The fleet was told and still wants it: without this it would be told again and again.
        let wait = if self.overdue == Some(at) {
            clock::boot() + OVERDUE
        } else {
            at
        };
        Some(wait)
    }

    async fn deadline(&mut self) {
        let Some((at, why)) = self.fleet.deadline() else {
            return;
        };
        if at > clock::boot() {
            return;
        }
        self.step(Event::DeadlinePassed).await;
        match self.fleet.deadline() {
            Some((still, _)) if still == at => {
                if self.overdue != Some(at) {
                    error!("The deadline for {why:?} did not go away.");
                }
                self.overdue = Some(at);
            }
            Some(_) | None => self.overdue = None,
        }
    }

    async fn step(&mut self, event: Event) {
        debug!(?event, "step");
        let now = clock::now();
        let copy = event.clone();
        let effects = self.fleet.step(now, event);
        self.journal.evidence(now, copy, &effects);
        for effect in effects {
            self.run_effect(effect).await;
        }
    }

    async fn run_effect(&mut self, effect: Effect) {
        match effect {
            Effect::ReadTranscript { agent, request } => {
                self.transcripts.read(agent, request);
            }
            Effect::WatchTranscript { agent, on } => self.transcripts.watch(agent, on),
            Effect::UseTranscript {
                agent,
                path,
                conversation,
            } => self.transcripts.follow(agent, path, conversation),
            Effect::WatchCpu { agent, on } => self.processes.watch_cpu(agent, on),
            Effect::Notify {
                agent,
                episode,
                badge,
                silent,
            } => {
                // A target of its own: who was told can be read from the log without everything else.
                debug!(target: "purplemux::told", %agent, ?episode, ?badge, silent, "notify");
                let items = self.fleet.items();
                let about =
                    |item: &&view::Item| item.episode == Some(episode) && !self.is_closing(item);
                if let Some(item) = items.iter().find(about) {
                    let since = item.since.boot;
                    self.alerts
                        .notify(self.dressed(item), episode, since, silent)
                        .await;
                }
            }
            Effect::Withdraw { agent, episode } => {
                debug!(target: "purplemux::told", %agent, ?episode, "withdraw");
                self.alerts.withdraw(episode).await;
            }
            Effect::Persist {
                agent,
                badge,
                since,
                episode,
                beneath,
            } => {
                let tab = self.fleet.tab_of(&agent).cloned();
                let verdict = self.journal.verdict(
                    &agent,
                    Some(badge.clone()),
                    since,
                    episode,
                    tab.as_ref().map(ToString::to_string),
                );
                let shown = Persisted {
                    badge,
                    since,
                    episode,
                    tab: None,
                };
                let kept = Persisted {
                    tab,
                    ..beneath.unwrap_or(shown)
                };
                let written = self.badges.put(&agent, Some(&kept), verdict).await;
                self.history(written);
            }
            Effect::Forget { agent } => {
                self.transcripts.forget(&agent);
                let now = clock::now();
                let verdict = self.journal.verdict(&agent, None, now, None, None);
                let written = self.badges.put(&agent, None, verdict).await;
                self.history(written);
            }
            Effect::Record { agent, at, line } => {
                debug!(%agent, at_ms = at.wall_ms, "{line}");
            }
        }
    }

    /// Badges go on from memory when they can't be written; viewers are told (design, invariant 4).
    fn history(&mut self, written: anyhow::Result<()>) {
        match written {
            Ok(()) => {
                if self.badges.are_written() {
                    self.degraded.remove(&Degraded::History);
                }
            }
            Err(why) => {
                self.journal.lost_verdict(&why);
                let shown = self
                    .degraded
                    .insert(Degraded::History, Cause::HistoryNotSaved);
                if shown.is_none() {
                    error!("Badges can't be written down: {why:#}");
                }
            }
        }
    }

    /// A row as it is sent, with what is shown beside its badge.
    fn dressed(&self, row: &view::Item) -> Item {
        let mut item = Item::from(row);
        let ports = self.beside.ports.get(&item.id);
        item.ports = ports.cloned().unwrap_or_default();
        let dir = item.cwd.as_ref();
        let branch = dir.and_then(|dir| self.beside.branches.get(dir));
        item.branch = branch.cloned().flatten();
        self.add_pane(&mut item, row);
        if let Some(ask) = &mut item.detail.ask
            && ask.text.is_empty()
            && let Some(words) = self.asked.get(&ask.id)
        {
            ask.text.clone_from(words);
        }
        if let Some(ask) = &mut item.detail.ask {
            ask.card = self.cards.get(&ask.id).cloned();
        }
        item
    }

    /// What tmux says of a row's pane and session.
    fn add_pane(&self, item: &mut Item, row: &view::Item) {
        let listing = Arc::clone(&self.tmux.listing().borrow());
        let of_agent = row
            .pane
            .as_ref()
            .filter(|pane| listing.server() == Some(&pane.server));
        let panes = &listing.panes;
        item.covered = of_agent.is_some_and(|key| {
            let mut shared = panes.iter().filter(|pane| pane.pane == key.pane).peekable();
            // A pane that several sessions share can be seen in any of them.
            shared.peek().is_some() && shared.all(|pane| pane.covered)
        });
        if item.tab.as_deref() != Some(item.id.as_str()) {
            return;
        }
        item.foreign = self.marks.foreign.contains(&item.id);
        item.resume = match item.presence {
            Presence::None | Presence::Gone => self.marks.resume.get(&item.id).cloned(),
            Presence::Starting | Presence::Running | Presence::Suspended | Presence::Elsewhere => {
                None
            }
        };
        let mut own = panes.iter().filter(|pane| pane.is_of(&item.id)).peekable();
        item.shell = Some(if self.marks.ended.contains(&item.id) {
            Shell::Ended
        } else if own.peek().is_some() && own.all(|pane| pane.dead) {
            Shell::Dead
        } else {
            Shell::Running
        });
    }

    /// Whether a row's agent runs in a tab that is closed and can still be brought back.
    fn is_closing(&self, row: &view::Item) -> bool {
        let Some(key) = row.pane.as_ref().filter(|_| !self.marks.closing.is_empty()) else {
            return false;
        };
        let listing = Arc::clone(&self.tmux.listing().borrow());
        let mut panes = listing.panes.iter().filter(|pane| pane.pane == key.pane);
        listing.server() == Some(&key.server)
            && panes.any(|pane| {
                let tab = pane.tab();
                tab.is_some_and(|tab| self.marks.closing.contains(tab.as_str()))
            })
    }

    /// A workspace as it is sent. One that the layout has not arranged yet is one pane.
    fn arranged(&self, workspace: &view::WorkspaceView) -> Workspace {
        let arranged = self.marks.arranged.get(workspace.id.as_str()).cloned();
        let arranged = arranged.unwrap_or_else(|| Arranged {
            color: None,
            group: None,
            panes: PaneTree::Pane(PaneArea {
                id: String::new(),
                tabs: workspace.tabs.iter().map(ToString::to_string).collect(),
            }),
        });
        Workspace::new(workspace, arranged)
    }

    /// Makes rows anew that may be others; the rest stay the very ones they were.
    fn remake(&mut self, changes: Changes) {
        let stale = std::mem::take(&mut self.rows.stale);
        let mut before = std::mem::take(&mut self.rows.made);
        let rows: Vec<(usize, view::Item)> = match changes {
            Changes::All(rows) => {
                before.truncate(rows.len());
                rows.into_iter().enumerate().collect()
            }
            Changes::Rows(changed) => changed,
        };
        for (place, row) in rows {
            match before.get_mut(place) {
                Some((from, _)) if *from == row => {}
                Some(old) => {
                    let dressed = Arc::new(self.dressed(&row));
                    *old = (row, dressed);
                }
                None => {
                    let dressed = Arc::new(self.dressed(&row));
                    before.push((row, dressed));
                }
            }
        }
        if stale {
            for (row, made) in &mut before {
                let dressed = self.dressed(row);
                if **made != dressed {
                    *made = Arc::new(dressed);
                }
            }
        }
        self.rows.made = before;
    }

    /// All rows but those of tabs that are closed and can still be brought back.
    fn open_rows(&self) -> impl Iterator<Item = &(view::Item, Arc<Item>)> {
        let rows = self.rows.made.iter();
        rows.filter(|(row, _)| !self.is_closing(row))
    }

    fn publish(&mut self) {
        let listing = Arc::clone(&self.tmux.listing().borrow());
        if !Arc::ptr_eq(&listing, &self.rows.listing) {
            self.rows.listing = listing;
            self.rows.stale = true;
        }
        let changes = self.fleet.changes();
        let rolled = self.rows.stale
            || match &changes {
                Changes::All(_) => true,
                Changes::Rows(changed) => changed.iter().any(|(place, row)| {
                    let before = self.rows.made.get(*place).map(|(from, _)| from);
                    before.is_none_or(|b| (&b.badge, b.presence) != (&row.badge, row.presence))
                }),
            };
        self.remake(changes);
        if rolled {
            let rows: Vec<&view::Item> = self.open_rows().map(|(row, _)| row).collect();
            let workspaces = self.fleet.workspaces_of(&rows);
            let workspaces = workspaces.iter().map(|w| self.arranged(w));
            let workspaces: Vec<Workspace> = workspaces.collect();
            if *self.rows.workspaces != workspaces {
                self.rows.workspaces = Arc::new(workspaces);
            }
        }
        let items: Vec<Arc<Item>> = self.open_rows().map(|(_, made)| Arc::clone(made)).collect();
        let asks = |id: u64| {
            let mut asks = items.iter().filter_map(|item| item.detail.ask.as_ref());
            asks.any(|ask| ask.id == id)
        };
        self.asked.retain(|id, _| asks(*id));
        self.cards.retain(|id, _| asks(*id));
        let mut notices: Vec<Notice> = self.degraded.values().cloned().map(Notice::from).collect();
        // Badges and journal lie on the same disk and say the same.
        notices.dedup();
        self.publish.send_if_modified(|shown| {
            let same = shown.rev > 0
                && shown.items == items
                && shown.workspaces == self.rows.workspaces
                && shown.notices == notices;
            if !same {
                *shown = Arc::new(Snapshot {
                    rev: shown.rev + 1,
                    items,
                    workspaces: Arc::clone(&self.rows.workspaces),
                    notices,
                });
            }
            !same
        });
    }
}
