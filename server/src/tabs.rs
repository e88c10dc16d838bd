//! The layout: workspaces, their panes and their tabs, each tab one tmux session that is marked with its id. One
//! task owns it; it persists every change, then tells the hub. A session that somebody else makes on our tmux server
//! becomes a tab as well.
//!
//! It never kills a session that it did not start, and never decides anything about an agent.

mod layout;
mod tree;

pub use layout::{Change, Edit, Layout, Workspace};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::StreamExt as _;
use purplemux_core::{PaneKey, TabId, Time};
use purplemux_wire::browser::{Color, Presence, SplitDir};
use purplemux_wire::sentence::Cause;
use purplemux_wire::tmux::{Belongs, PaneLine};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock;
use crate::conversations::{self, Conversation};
use crate::home::random_hex;
use crate::hub;
use crate::store::{Store, TabRow};
use crate::tmux;
use layout::{no_pane, no_workspace};

/// Requests that may wait; more than a person and their scripts make at once.
const INBOX: usize = 64;

/// Longest name of a tab, a workspace or a heading, in characters: what a row can show.
pub const NAME_CHARS_MAX: usize = 200;

/// How long what was closed can be brought back: the time that a person needs to see that it was the wrong one.
pub const UNDO_WITHIN: Duration = Duration::from_secs(10);

/// How long a new shell may take to print its prompt before `claude` is typed regardless: the kernel keeps
/// what was typed too early, it only looks odd.
const PROMPT_WAIT: Duration = Duration::from_secs(3);

/// How often it is asked whether the prompt is there, over the control client (0.1 ms each).
const PROMPT_ASK_EVERY: Duration = Duration::from_millis(25);

/// The setting that holds the machine's boot in which the shells were last seen.
const BOOT: &str = "layout.boot";

/// How long a conversation is remembered after its Claude has ended in a shell that lives on: a machine that stops
/// ends Claude some seconds before us.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

/// Claudes that start at once after the machine was started anew, and how long the next waits for each.
const STARTING_MAX: usize = 3;
const START_WAIT: Duration = Duration::from_secs(15);

/// The kind of a tab whose session somebody else has made.
const FOREIGN: &str = "foreign";

/// What a new tab runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The person's login shell.
    #[default]
    Terminal,
    /// The login shell with `claude` typed into it, so that it goes the way of a hand-typed one.
    ClaudeCode,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::ClaudeCode => "claude-code",
        }
    }
}

/// A tab to be made; what is absent is chosen by the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewTab {
    /// Id or name of the workspace; the pane's or the first one if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workspace: Option<String>,
    /// Id of the pane; the workspace's first one if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pane: Option<String>,
    /// What to call it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// What it runs.
    #[serde(rename = "type", default)]
    pub kind: Kind,
    /// Directory; the workspace's if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd: Option<String>,
}

/// A workspace to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewWorkspace {
    /// Its name.
    pub name: String,
    /// The directory for its tabs; the person's own if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir: Option<String>,
    /// Its colour.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub color: Option<Color>,
    /// The heading it stands under.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub group: Option<String>,
}

/// A change of a workspace's panes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PaneOp {
    /// A new pane beside or below another.
    Split {
        /// The pane to be divided.
        pane: String,
        /// Where the new one lies.
        dir: SplitDir,
        /// The tab that moves into it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        tab: Option<String>,
    },
    /// A pane goes; its tabs go to its neighbour.
    Close {
        /// The pane.
        pane: String,
    },
    /// Other shares of a split.
    Sizes {
        /// The split.
        split: String,
        /// Thousandths, one for each part.
        sizes: Vec<u16>,
    },
    /// Equal shares everywhere.
    Equal,
}

/// How something is to be closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closing {
    /// Also what the person would be asked about.
    pub force: bool,
    /// Only hidden at first, so that it can be brought back for [`UNDO_WITHIN`].
    pub undo: bool,
}

/// Why something was not done.
#[derive(Debug, Error)]
pub enum Refusal {
    /// There is no such tab or workspace.
    #[error("{0}")]
    Absent(Cause),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Invalid(Cause),
    /// Something is in the way that the person has to decide about.
    #[error("{0}")]
    InTheWay(Cause),
    /// tmux refused or does not answer.
    #[error(transparent)]
    Tmux(#[from] tmux::Error),
    /// The layout could not be saved, or the server is stopping.
    #[error("{0:#}")]
    Failed(#[from] anyhow::Error),
}

type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

enum Ask {
    Create(NewTab, Option<String>, Answer<TabRow>),
    Change(Change, Answer<()>),
    Close(String, Closing, Answer<Option<i64>>),
    Remove(String, Closing, Answer<Option<i64>>),
    Restore(String, Answer<()>),
    Reopen(String, Answer<()>),
    Resume(String, bool, Answer<()>),
    Recheck,
}

/// The way to the layout's task. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tabs {
    asks: mpsc::Sender<Ask>,
    layout: watch::Receiver<Arc<Layout>>,
    tmux: tmux::Handle,
}

impl Tabs {
    /// Loads the layout, makes the first workspace if there is none, tells the hub, and starts the task,
    /// which brings tmux up and finds out which tabs are still alive.
    ///
    /// # Errors
    /// The store can't be read or written, or the hub is gone.
    pub async fn start(store: Store, hub: hub::Handle, tmux: tmux::Handle) -> Result<Self> {
        let (workspaces, tabs) = store.layout().await?;
        let (mut layout, said) = Layout::from_rows(workspaces, tabs, &new_pane);
        for sentence in said {
            tracing::warn!("{sentence}");
        }
        if layout.workspaces().next().is_none() {
            let dir = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
            layout.workspaces.push(Workspace {
                id: format!("w-{}", random_hex::<4>()),
                name: "main".to_owned(),
                dir: dir.to_string_lossy().into_owned(),
                color: None,
                group: None,
                panes: tree::one(&new_pane(), Vec::new()),
                closing_ms: None,
            });
        }
        let (workspaces, tabs) = layout.to_rows();
        store.put_layout(workspaces, tabs).await?;
        let closing = remaining(&layout);
        let before = store.setting(BOOT).await?;
        let mut revive = Vec::new();
        if before.is_some_and(|before| before != clock::boot_id()) {
            // Nothing outlives the machine: shown as ended until they run again.
            let had_shell =
                |tab: &&mut TabRow| !tab.ended && tab.closing_ms.is_none() && !is_foreign(tab);
            for tab in layout.tabs.iter_mut().filter(had_shell) {
                tab.ended = true;
                revive.push(tab.id.clone());
            }
        }
        let (publish, seen) = watch::channel(Arc::new(layout));
        let (asks, inbox) = mpsc::channel(INBOX);
        let mut owner = Owner {
            store,
            hub,
            tmux: tmux.clone(),
            publish,
            closing,
            leaving: BTreeMap::new(),
            revive,
        };
        owner.tell().await?;
        crate::task::spawn("layout", async move {
            owner.recover().await;
            owner.run(inbox).await;
        });
        Ok(Self {
            asks,
            layout: seen,
            tmux,
        })
    }

    /// The layout now.
    #[must_use]
    pub fn layout(&self) -> Arc<Layout> {
        Arc::clone(&self.layout.borrow())
    }

    /// Makes a tab and starts its shell.
    ///
    /// # Errors
    /// The workspace or directory does not exist, or tmux can't start it.
    pub async fn create(&self, new: NewTab) -> Result<TabRow, Refusal> {
        self.ask(|answer| Ask::Create(new, None, answer)).await
    }

    /// Makes a tab in the directory of a conversation and takes that up in it. Without a wish for another, it is made
    /// in the workspace whose directory is nearest above.
    ///
    /// # Errors
    /// As for [`Self::create`].
    pub async fn take_up(
        &self,
        conversation: &Conversation,
        workspace: Option<String>,
        pane: Option<String>,
    ) -> Result<TabRow, Refusal> {
        let nearest = || {
            let layout = self.layout();
            let above =
                |workspace: &&Workspace| Path::new(&conversation.cwd).starts_with(&workspace.dir);
            let above = layout.workspaces().filter(above);
            above
                .max_by_key(|workspace| workspace.dir.len())
                .map(|workspace| workspace.id.clone())
        };
        let workspace = workspace.or_else(|| pane.is_none().then(nearest).flatten());
        let new = NewTab {
            workspace,
            pane,
            name: None,
            kind: Kind::ClaudeCode,
            cwd: Some(conversation.cwd.clone()),
        };
        let id = Some(conversation.id.clone());
        self.ask(|answer| Ask::Create(new, id, answer)).await
    }

    /// Takes up the conversation that is offered in a tab; without `wanted` it is offered no more.
    ///
    /// # Errors
    /// There is no such tab, its shell does not run, or nothing is offered.
    pub async fn resume(&self, id: &str, wanted: bool) -> Result<(), Refusal> {
        self.ask(|answer| Ask::Resume(id.to_owned(), wanted, answer))
            .await
    }

    /// Names a tab; an empty name takes the name away.
    ///
    /// # Errors
    /// There is no such tab, or the name is too long.
    pub async fn rename(&self, id: &str, name: &str) -> Result<(), Refusal> {
        let name = clean_name(name)?;
        self.change(Change::RenameTab(id.to_owned(), name)).await
    }

    /// Moves a tab to a pane, of whatever workspace, to this place among the tabs shown there (counted without it); to
    /// the end if absent. Its session is not touched.
    ///
    /// # Errors
    /// There is no such tab or pane.
    pub async fn place(&self, id: &str, pane: &str, index: Option<usize>) -> Result<(), Refusal> {
        let change = Change::MoveTab(id.to_owned(), pane.to_owned(), index);
        self.change(change).await
    }

    /// Makes a workspace with one empty pane; its id.
    ///
    /// # Errors
    /// It has no name or no directory, or there are too many.
    pub async fn add_workspace(&self, new: NewWorkspace) -> Result<String, Refusal> {
        let id = format!("w-{}", random_hex::<4>());
        let person = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
        let dir = directory(new.dir.as_deref(), &person.to_string_lossy())?;
        let workspace = Workspace {
            id: id.clone(),
            name: workspace_name(&new.name)?,
            dir: dir.to_string_lossy().into_owned(),
            color: new.color,
            group: clean_name(new.group.as_deref().unwrap_or_default())?,
            panes: tree::one(&new_pane(), Vec::new()),
            closing_ms: None,
        };
        self.change(Change::AddWorkspace(workspace)).await?;
        Ok(id)
    }

    /// Changes a workspace's name, directory, colour or heading.
    ///
    /// # Errors
    /// There is no such workspace, or what it is to be makes no sense.
    pub async fn edit_workspace(&self, id: &str, edit: Edit) -> Result<(), Refusal> {
        let dir = edit.dir.as_deref().map(|dir| {
            // Absent is "as it is", which an empty one is not.
            directory(Some(if dir.is_empty() { "." } else { dir }), "/")
        });
        let dir = dir.transpose()?;
        let group = match edit.group {
            Some(group) => Some(clean_name(group.as_deref().unwrap_or_default())?),
            None => None,
        };
        let edit = Edit {
            name: edit.name.as_deref().map(workspace_name).transpose()?,
            dir: dir.map(|dir| dir.to_string_lossy().into_owned()),
            color: edit.color,
            group,
        };
        self.change(Change::EditWorkspace(id.to_owned(), edit))
            .await
    }

    /// Puts all workspaces in this order.
    ///
    /// # Errors
    /// These are not the workspaces that there are now.
    pub async fn order(&self, ids: Vec<String>) -> Result<(), Refusal> {
        self.change(Change::Order(ids)).await
    }

    /// Changes the panes of a workspace; the id of a pane that it made.
    ///
    /// # Errors
    /// It names what is not there, or there is no room.
    pub async fn panes(&self, workspace: &str, op: PaneOp) -> Result<Option<String>, Refusal> {
        let workspace = workspace.to_owned();
        let mut made = None;
        let change = match op {
            PaneOp::Split { pane, dir, tab } => {
                let new_pane = new_pane();
                made = Some(new_pane.clone());
                Change::Split {
                    workspace,
                    pane,
                    dir,
                    tab,
                    new_pane,
                    new_split: format!("s-{}", random_hex::<4>()),
                }
            }
            PaneOp::Close { pane } => Change::ClosePane(workspace, pane),
            PaneOp::Sizes { split, sizes } => Change::Resize(workspace, split, sizes),
            PaneOp::Equal => Change::Equalise(workspace),
        };
        self.change(change).await?;
        Ok(made)
    }

    async fn change(&self, change: Change) -> Result<(), Refusal> {
        self.ask(|answer| Ask::Change(change, answer)).await
    }

    /// Ends a tab's tmux session with everything in it, and forgets the tab; with `undo` only once nobody has brought
    /// it back until the time (unix ms) that this answers. A session that somebody else has made lives on: it is only
    /// no tab any more.
    ///
    /// # Errors
    /// There is no such tab, or an agent is alive in it and `force` is not set.
    pub async fn close(&self, id: &str, how: Closing) -> Result<Option<i64>, Refusal> {
        self.ask(|answer| Ask::Close(id.to_owned(), how, answer))
            .await
    }

    /// Removes a workspace with all its tabs; see [`Self::close`].
    ///
    /// # Errors
    /// There is no such workspace, it is the only one, or something lives in it and `force` is not set.
    pub async fn remove_workspace(&self, id: &str, how: Closing) -> Result<Option<i64>, Refusal> {
        self.ask(|answer| Ask::Remove(id.to_owned(), how, answer))
            .await
    }

    /// Brings back a tab or a workspace that was closed a moment ago, to its place.
    ///
    /// # Errors
    /// It has ended for good, or was never there.
    pub async fn restore(&self, id: &str) -> Result<(), Refusal> {
        self.ask(|answer| Ask::Restore(id.to_owned(), answer)).await
    }

    /// Starts the shell of a tab that has ended again, in the tab's directory.
    ///
    /// # Errors
    /// There is no such tab, its shell lives, or tmux can't start one.
    pub async fn reopen(&self, id: &str) -> Result<(), Refusal> {
        self.ask(|answer| Ask::Reopen(id.to_owned(), answer)).await
    }

    /// Types into a tab: into the pane of its agent if it has one, else into the active one.
    ///
    /// # Errors
    /// There is no such tab, it has ended, its pane takes no text, or tmux does not answer.
    pub async fn send(
        &self,
        id: &str,
        agent: Option<&PaneKey>,
        text: &str,
        enter: bool,
    ) -> Result<(), Refusal> {
        let layout = self.layout();
        let tab = layout.tab(id).ok_or_else(|| no_tab(id))?;
        if tab.ended {
            return Err(Refusal::InTheWay(Cause::TabEnded { id: id.to_owned() }));
        }
        self.tmux
            .send_text(&TabId::from(id), agent, text, enter)
            .await
            .map_err(Refusal::from)
    }

    /// Looks again at which tabs are alive; called when a terminal's end was seen.
    pub async fn recheck(&self) {
        // A stopping server needs no fresh layout.
        drop(self.asks.send(Ask::Recheck).await);
    }

    async fn ask<T>(&self, ask: impl FnOnce(Answer<T>) -> Ask) -> Result<T, Refusal> {
        let stopping = || anyhow::anyhow!("purplemux is stopping");
        let (answer, wait) = oneshot::channel();
        self.asks.send(ask(answer)).await.map_err(|_| stopping())?;
        wait.await.map_err(|_| stopping())?
    }
}

struct Owner {
    store: Store,
    hub: hub::Handle,
    tmux: tmux::Handle,
    publish: watch::Sender<Arc<Layout>>,
    /// What is closed, tabs and workspaces, and when it ends.
    closing: BTreeMap<String, Time>,
    /// Tabs whose agent has ended while their shell lives on, and when its conversation is forgotten.
    leaving: BTreeMap<String, Time>,
    /// Tabs whose shells ended with the machine and are to run again.
    revive: Vec<String>,
}

impl Owner {
    async fn run(mut self, mut inbox: mpsc::Receiver<Ask>) {
        // An answer that nobody waits for any more is not an error: the work is done.
        let mut listing = self.tmux.listing();
        let mut snapshots = self.hub.snapshots();
        loop {
            let due = self.closing.values().chain(self.leaving.values()).min();
            let due = due.copied();
            let ask = tokio::select! {
                ask = inbox.recv() => match ask {
                    Some(ask) => ask,
                    None => return,
                },
                Ok(()) = listing.changed() => {
                    let listing = Arc::clone(&listing.borrow_and_update());
                    if let Err(error) = self.follow_shells(&listing).await {
                        tracing::warn!("can't note where shells are: {error:#}");
                    }
                    if !self.differs(&listing) {
                        continue;
                    }
                    // What is listed may be older than the last tab we made: ask once more.
                    Ask::Recheck
                }
                () = clock::reached(due.unwrap_or_default()), if due.is_some() => {
                    self.end_due().await;
                    self.forget_conversations().await;
                    continue;
                }
                Ok(()) = snapshots.changed() => {
                    hub::pages_first().await;
                    let snapshot = Arc::clone(&snapshots.borrow_and_update());
                    if let Err(error) = self.note_conversations(&snapshot).await {
                        tracing::warn!("can't note which conversations run: {error:#}");
                    }
                    continue;
                }
            };
            match ask {
                Ask::Create(new, conversation, answer) => {
                    drop(answer.send(self.create(new, conversation).await));
                }
                Ask::Change(change, answer) => drop(answer.send(self.change(change).await)),
                Ask::Close(id, how, answer) => drop(answer.send(self.close(&id, how).await)),
                Ask::Remove(id, how, answer) => {
                    drop(answer.send(self.remove_workspace(&id, how).await));
                }
                Ask::Restore(id, answer) => drop(answer.send(self.restore(&id).await)),
                Ask::Reopen(id, answer) => drop(answer.send(self.reopen(id).await)),
                Ask::Resume(id, wanted, answer) => {
                    drop(answer.send(self.resume(&id, wanted).await));
                }
                Ask::Recheck => {
                    if let Err(error) = self.recheck().await {
                        tracing::warn!("can't tell which tabs are alive: {error:#}");
                    }
                }
            }
        }
    }

    fn layout(&self) -> Arc<Layout> {
        Arc::clone(&self.publish.borrow())
    }

    /// Whether tmux lists other tabs than the layout has as alive.
    fn differs(&self, listing: &tmux::Listing) -> bool {
        let layout = self.layout();
        listing.run.is_some()
            && (layout
                .tabs
                .iter()
                .any(|tab| tab.ended == listing.session_of(&tab.id).is_some())
                || listing.panes.iter().any(|pane| match &pane.belongs {
                    Belongs::Tab(tab) => layout.known(tab.as_str()).is_none(),
                    Belongs::Nobody => true,
                    Belongs::Hidden => false,
                }))
    }

    /// Remembers where each tab's shell is: once it has ended, tmux can't be asked any more.
    async fn follow_shells(&mut self, listing: &tmux::Listing) -> Result<()> {
        let layout = self.layout();
        let mut moved: Option<Layout> = None;
        for pane in listing.panes.iter().filter(|pane| pane.active) {
            let tab = pane.tab().and_then(|tab| layout.known(tab.as_str()));
            let Some(tab) = tab.filter(|tab| !pane.path.is_empty() && *tab.cwd != *pane.path)
            else {
                continue;
            };
            self.store
                .move_tab(tab.id.clone(), pane.path.to_string())
                .await?;
            let moved = moved.get_or_insert_with(|| (*layout).clone());
            if let Some(row) = moved.known_mut(&tab.id) {
                row.cwd = pane.path.to_string();
            }
        }
        if let Some(moved) = moved {
            // The hub has it from tmux itself for as long as the shell lives.
            self.publish.send_replace(Arc::new(moved));
        }
        Ok(())
    }

    /// Keeps a layout, then publishes it.
    async fn commit(&mut self, next: Layout) -> Result<()> {
        let (workspaces, tabs) = next.to_rows();
        self.store.put_layout(workspaces, tabs).await?;
        self.publish.send_replace(Arc::new(next));
        self.tell().await
    }

    async fn tell(&mut self) -> Result<()> {
        let layout = self.layout();
        self.hub
            .layout(layout.marks(), layout.facts())
            .await
            .context("Can't tell the hub about the layout")
    }

    async fn change(&mut self, change: Change) -> Result<(), Refusal> {
        let mut next = Layout::clone(&self.layout());
        next.apply(change)?;
        self.commit(next).await?;
        Ok(())
    }

    async fn recover(&mut self) {
        if let Err(error) = self.revive().await {
            tracing::error!("can't start the shells again that ended with the machine: {error:#}");
        }
        if let Err(error) = self.recheck().await {
            tracing::error!("can't find out which tabs are alive: {error:#}");
        }
    }

    /// After the machine was started anew: the shells that ran before run again, in their directories, and what Claude
    /// was doing in them can be taken up.
    async fn revive(&mut self) -> Result<()> {
        let revived = std::mem::take(&mut self.revive);
        if !revived.is_empty() {
            let shells = revived.len();
            tracing::info!("the machine was started anew; {shells} shells begin again");
        }
        let mut offered = Vec::new();
        // One after the other: each is there within some milliseconds, and all at once would be a load.
        for id in revived {
            let mut next = Layout::clone(&self.layout());
            let Some(tab) = next.known_mut(&id) else {
                continue;
            };
            self.offer(tab).await;
            let conversation = tab.conversation.clone().filter(|_| tab.offered);
            let cwd = self.directory_of(tab);
            tab.ended = false;
            let id = TabId::from(id.as_str());
            let begun = match cwd {
                Ok(cwd) => {
                    let shell = self.tmux.new_session(&id, &cwd, &[], &[]);
                    shell.await.map_err(Refusal::from)
                }
                Err(why) => Err(why),
            };
            match begun {
                Ok(()) => {
                    self.commit(next).await?;
                    offered.extend(conversation.map(|conversation| (id, conversation)));
                }
                Err(why) => tracing::warn!("the shell of tab {id} can't be started again: {why}"),
            }
        }
        self.store
            .set_setting(BOOT, clock::boot_id().to_owned())
            .await?;
        if offered.is_empty() {
            return Ok(());
        }
        let settings = crate::settings::kept(&self.store).await?;
        if settings.get("resume").and_then(serde_json::Value::as_str) == Some("auto") {
            let mut next = Layout::clone(&self.layout());
            for (id, _) in &offered {
                if let Some(tab) = next.known_mut(id.as_str()) {
                    tab.offered = false;
                }
            }
            self.commit(next).await?;
            let (tmux, hub) = (self.tmux.clone(), self.hub.clone());
            crate::task::spawn("resuming", resume_all(tmux, hub, offered));
        }
        Ok(())
    }

    /// Offers the conversation that ran in a tab, if there is something to take up.
    async fn offer(&self, tab: &mut TabRow) {
        tab.offered = false;
        let Some(id) = tab.conversation.clone() else {
            return;
        };
        let dirs = self.hub.witnesses().processes.claude_dirs().all();
        let look = tokio::task::spawn_blocking(move || conversations::find(&dirs, &id));
        if let Ok(Some(found)) = look.await {
            tab.offered = true;
            tab.conversation_title = Some(found.title);
        }
    }

    /// Where a tab's shell is to be started again.
    fn directory_of(&self, tab: &TabRow) -> Result<PathBuf, Refusal> {
        let layout = self.layout();
        let workspace = layout.workspace(&tab.workspace);
        let fallback = workspace.map_or("/", |workspace| &workspace.dir);
        // It may have been removed meanwhile.
        directory(Some(&tab.cwd), fallback).or_else(|_| directory(None, fallback))
    }

    /// Remembers which conversation runs in each tab: once its shell has ended, nobody can be asked any more.
    async fn note_conversations(&mut self, snapshot: &hub::Snapshot) -> Result<()> {
        let layout = self.layout();
        let mut next: Option<Layout> = None;
        for item in &snapshot.items {
            let Some(tab) = layout.known(&item.id) else {
                continue;
            };
            if is_alive(item.presence) {
                self.leaving.remove(&tab.id);
                let runs = item
                    .session_id
                    .as_ref()
                    .filter(|id| conversations::is_id(id));
                if runs.is_none() || (runs == tab.conversation.as_ref() && !tab.offered) {
                    continue;
                }
                let next = next.get_or_insert_with(|| Layout::clone(&layout));
                if let Some(row) = next.known_mut(&tab.id) {
                    row.conversation = runs.cloned();
                    row.conversation_title = None;
                    row.offered = false;
                }
            } else if tab.conversation.is_some() && !tab.offered && !tab.ended {
                // Not at once: when the machine stops, Claude may end before us.
                let until = clock::boot() + FORGOTTEN_AFTER;
                self.leaving.entry(tab.id.clone()).or_insert(until);
            }
        }
        match next {
            Some(next) => self.commit(next).await,
            None => Ok(()),
        }
    }

    /// Forgets conversations that the person has left, in tabs whose shells live on.
    async fn forget_conversations(&mut self) {
        let now = clock::boot();
        let mut next = Layout::clone(&self.layout());
        self.leaving.retain(|id, until| {
            if *until > now {
                return true;
            }
            if let Some(tab) = next.known_mut(id).filter(|tab| !tab.ended && !tab.offered) {
                tab.conversation = None;
            }
            false
        });
        if next != *self.layout()
            && let Err(error) = self.commit(next).await
        {
            tracing::warn!("can't forget which conversations ran: {error:#}");
        }
    }

    async fn resume(&mut self, id: &str, wanted: bool) -> Result<(), Refusal> {
        let layout = self.layout();
        let tab = layout.tab(id).ok_or_else(|| no_tab(id))?;
        let offered = tab.conversation.clone().filter(|_| tab.offered);
        let conversation = offered
            .ok_or_else(|| Refusal::InTheWay(Cause::NothingOffered { id: id.to_owned() }))?;
        if wanted && (tab.ended || self.holds_agent(id)) {
            return Err(Refusal::InTheWay(Cause::ShellNotAtPrompt {
                id: id.to_owned(),
            }));
        }
        let mut next = Layout::clone(&layout);
        if let Some(tab) = next.known_mut(id) {
            tab.offered = false;
            tab.conversation = None;
        }
        self.commit(next).await?;
        if wanted {
            let typing = type_soon(
                self.tmux.clone(),
                TabId::from(id),
                resume_line(&conversation),
            );
            crate::task::spawn("resuming", typing);
        }
        Ok(())
    }

    /// Compares the layout with the sessions that tmux has now. One that is marked as a tab but in no layout
    /// (its database was lost) becomes a tab again, one that somebody else has made becomes one.
    async fn recheck(&mut self) -> Result<()> {
        let listing = self.tmux.list_now().await?;
        let mut next = Layout::clone(&self.layout());
        for tab in &mut next.tabs {
            tab.ended = listing.session_of(&tab.id).is_none();
        }
        let mut lost: Vec<&PaneLine> = Vec::new();
        for pane in &listing.panes {
            if let Some(tab) = pane.tab()
                && is_tab_id(tab.as_str())
                && next.known(tab.as_str()).is_none()
                && !lost.iter().any(|other| other.belongs == pane.belongs)
            {
                lost.push(pane);
            }
        }
        for pane in lost {
            let Some(tab) = pane.tab() else { continue };
            // Sessions of ours are named like their tab.
            let ours = pane.session.starts_with(tab.as_str());
            add(&mut next, tab.as_str(), pane, !ours)?;
        }
        if next != *self.layout() {
            self.commit(next).await?;
        }
        for pane in listing.strangers() {
            let (Some(run), id) = (listing.run.clone(), pane.session_id) else {
                continue;
            };
            self.adopt(&tmux::Session { run, id }, pane).await?;
        }
        Ok(())
    }

    /// Makes a tab of a session that somebody else has made.
    async fn adopt(&mut self, session: &tmux::Session, pane: &PaneLine) -> Result<()> {
        let id = new_id();
        // The layout first, as for a tab of our own.
        let mut next = Layout::clone(&self.layout());
        add(&mut next, &id, pane, true)?;
        self.commit(next).await?;
        match self.tmux.adopt(session, &TabId::from(id.as_str())).await {
            Ok(()) => tracing::info!("the session {:?} is tab {id} from now on", pane.session),
            Err(error) => {
                tracing::info!("the session {:?} is no tab: {error}", pane.session);
                self.forget(&id).await?;
            }
        }
        Ok(())
    }

    /// Takes a tab out of the layout.
    async fn forget(&mut self, id: &str) -> Result<()> {
        let mut next = Layout::clone(&self.layout());
        next.remove(id);
        self.closing.remove(id);
        self.commit(next).await
    }

    async fn create(
        &mut self,
        new: NewTab,
        conversation: Option<String>,
    ) -> Result<TabRow, Refusal> {
        let layout = self.layout();
        let workspace = match (&new.workspace, &new.pane) {
            (Some(wanted), _) => layout
                .workspace(wanted)
                .ok_or_else(|| no_workspace(wanted))?,
            (None, Some(pane)) => layout.holder(pane).ok_or_else(|| no_pane(pane))?,
            (None, None) => layout.workspaces().next().ok_or_else(|| no_workspace(""))?,
        };
        if let Some(pane) = &new.pane {
            let holder = layout.holder(pane);
            if holder.is_none_or(|holder| holder.id != workspace.id) {
                return Err(no_pane(pane));
            }
        }
        let name = clean_name(new.name.as_deref().unwrap_or_default())?;
        let cwd = directory(new.cwd.as_deref(), &workspace.dir)?;
        let tab = TabRow {
            id: new_id(),
            workspace: workspace.id.clone(),
            name,
            cwd: cwd.to_string_lossy().into_owned(),
            kind: new.kind.as_str().to_owned(),
            ended: false,
            created_ms: clock::wall_ms(),
            closing_ms: None,
            conversation: None,
            conversation_title: None,
            offered: false,
        };
        let id = TabId::from(tab.id.as_str());
        self.tmux.list_now().await?;
        // The layout first: the hub then knows the tab before the first of its panes is listed.
        let mut next = Layout::clone(&layout);
        next.add(tab.clone(), new.pane.as_deref());
        self.commit(next).await?;
        if let Err(error) = self.tmux.new_session(&id, &cwd, &[], &[]).await {
            self.forget(&tab.id).await?;
            return Err(error.into());
        }
        if new.kind == Kind::ClaudeCode {
            let line = conversation
                .as_deref()
                .map_or_else(|| "claude".to_owned(), resume_line);
            crate::task::spawn("typing claude", type_soon(self.tmux.clone(), id, line));
        }
        Ok(tab)
    }

    async fn close(&mut self, id: &str, how: Closing) -> Result<Option<i64>, Refusal> {
        let layout = self.layout();
        let tab = layout.known(id).ok_or_else(|| no_tab(id))?;
        if !is_foreign(tab) && !how.force && self.holds_agent(id) {
            return Err(Refusal::InTheWay(Cause::ClaudeInTab { id: id.to_owned() }));
        }
        if how.undo {
            return self.hide(None, &[id.to_owned()]).await.map(Some);
        }
        self.end(id).await?;
        Ok(None)
    }

    /// Shows tabs, or a workspace with them, to nobody any more; when they end, unix ms.
    async fn hide(&mut self, workspace: Option<&str>, tabs: &[String]) -> Result<i64, Refusal> {
        let until_ms = clock::wall_ms() + i64::try_from(UNDO_WITHIN.as_millis()).unwrap_or(0);
        let mut next = Layout::clone(&self.layout());
        for id in tabs {
            if let Some(tab) = next.known_mut(id) {
                tab.closing_ms = Some(until_ms);
            }
        }
        if let Some(id) = workspace {
            next.workspace_mut(id)?.closing_ms = Some(until_ms);
        }
        self.commit(next).await?;
        let until = clock::boot() + UNDO_WITHIN;
        let ids = tabs.iter().cloned();
        let ids = ids.chain(workspace.map(str::to_owned));
        self.closing.extend(ids.map(|id| (id, until)));
        Ok(until_ms)
    }

    /// Ends a tab's session and forgets the tab.
    async fn end(&mut self, id: &str) -> Result<(), Refusal> {
        let layout = self.layout();
        let tab = layout.known(id).ok_or_else(|| no_tab(id))?;
        match self.tmux.session(&TabId::from(id)).await {
            Ok(session) if is_foreign(tab) => match self.tmux.hide(&session).await {
                Ok(()) | Err(tmux::Error::Gone) => {}
                Err(error) => return Err(error.into()),
            },
            Ok(session) => self.tmux.kill_session(&session).await?,
            Err(tmux::Error::Gone) => {}
            // What has ended needs no tmux to be forgotten.
            Err(_) if tab.ended => {}
            Err(error) => return Err(error.into()),
        }
        self.forget(id).await?;
        Ok(())
    }

    async fn remove_workspace(&mut self, id: &str, how: Closing) -> Result<Option<i64>, Refusal> {
        let layout = self.layout();
        let mut workspaces = layout.workspaces();
        let workspace = workspaces.find(|workspace| workspace.id == id);
        let workspace = workspace.ok_or_else(|| no_workspace(id))?;
        if layout.workspaces().count() == 1 {
            return Err(Refusal::InTheWay(Cause::LastWorkspace));
        }
        let own = |tab: &&TabRow| tab.workspace == id;
        let living: Vec<&TabRow> = layout.tabs().filter(own).filter(|tab| !tab.ended).collect();
        if !how.force && !living.is_empty() {
            let agents = living
                .iter()
                .filter(|tab| self.holds_agent(&tab.id))
                .count();
            return Err(Refusal::InTheWay(Cause::WorkspaceInUse {
                name: workspace.name.clone(),
                tabs: number(living.len()),
                agents: number(agents),
            }));
        }
        if how.undo {
            let shown: Vec<String> = layout
                .tabs()
                .filter(own)
                .map(|tab| tab.id.clone())
                .collect();
            return self.hide(Some(id), &shown).await.map(Some);
        }
        self.end_workspace(id).await?;
        Ok(None)
    }

    /// Ends everything in a workspace and forgets it.
    async fn end_workspace(&mut self, id: &str) -> Result<(), Refusal> {
        let layout = self.layout();
        for tab in layout.tabs.iter().filter(|tab| tab.workspace == id) {
            self.end(&tab.id).await?;
        }
        let mut next = Layout::clone(&self.layout());
        next.workspaces.retain(|workspace| workspace.id != id);
        self.closing.remove(id);
        self.commit(next).await?;
        Ok(())
    }

    async fn restore(&mut self, id: &str) -> Result<(), Refusal> {
        let mut next = Layout::clone(&self.layout());
        let until = self.closing.get(id).copied();
        let over = || Refusal::Absent(Cause::NotRestorable { id: id.to_owned() });
        let until = until.ok_or_else(over)?;
        let whole = next
            .workspaces
            .iter_mut()
            .find(|workspace| workspace.id == id);
        let back: Vec<String> = match whole {
            Some(workspace) => {
                workspace.closing_ms = None;
                // One that was closed before its workspace stays closed.
                let own = |tab: &&TabRow| tab.workspace == id;
                let tabs = next.tabs.iter().filter(own).map(|tab| tab.id.clone());
                tabs.filter(|tab| self.closing.get(tab) == Some(&until))
                    .collect()
            }
            None => vec![id.to_owned()],
        };
        for tab in &back {
            if let Some(tab) = next.known_mut(tab) {
                tab.closing_ms = None;
                // Its workspace has been closed as well meanwhile: it comes back with it.
                let workspace = tab.workspace.clone();
                if let Some(workspace) = next.workspaces.iter_mut().find(|w| w.id == workspace) {
                    workspace.closing_ms = None;
                    self.closing.remove(&workspace.id);
                }
            }
        }
        self.commit(next).await?;
        self.closing
            .retain(|closed, _| closed != id && !back.contains(closed));
        Ok(())
    }

    /// Ends what nobody has brought back.
    async fn end_due(&mut self) {
        let now = clock::boot();
        let due: Vec<String> = self
            .closing
            .iter()
            .filter(|(_, until)| **until <= now)
            .map(|(id, _)| id.clone())
            .collect();
        // Tabs come before workspaces by the alphabet of their ids, and a workspace ends its own besides.
        for id in due {
            let done = if self.layout().known(&id).is_some() {
                self.end(&id).await
            } else if self.layout().workspaces.iter().any(|w| w.id == id) {
                self.end_workspace(&id).await
            } else {
                self.closing.remove(&id);
                Ok(())
            };
            if let Err(why) = done {
                tracing::warn!("{id} can't be ended yet: {why}");
                self.closing.insert(id, now + UNDO_WITHIN);
            }
        }
    }

    async fn reopen(&mut self, id: String) -> Result<(), Refusal> {
        let layout = self.layout();
        let tab = layout.tab(&id).ok_or_else(|| no_tab(&id))?;
        let tab_id = TabId::from(id.as_str());
        let listing = self.tmux.list_now().await?;
        if let Some(session) = listing.session_of(&id) {
            let mut panes = listing.panes.iter().filter(|pane| pane.is_of(&id));
            if !panes.all(|pane| pane.dead) {
                return Err(Refusal::InTheWay(Cause::NothingToReopen { id }));
            }
            if is_foreign(tab) {
                return Err(Refusal::InTheWay(Cause::NotOurs { id }));
            }
            // Nothing lives in it any more: its program has exited, and only its last screen is kept.
            self.tmux.kill_session(&session).await?;
        }
        let cwd = self.directory_of(tab)?;
        let mut next = Layout::clone(&layout);
        if let Some(tab) = next.known_mut(&id) {
            self.offer(tab).await;
            tab.ended = false;
            // Whoever started the session before, this one is ours.
            if is_foreign(tab) {
                tab.kind = Kind::Terminal.as_str().to_owned();
            }
        }
        self.commit(next).await?;
        if let Err(error) = self.tmux.new_session(&tab_id, &cwd, &[], &[]).await {
            self.commit(Layout::clone(&layout)).await?;
            return Err(error.into());
        }
        Ok(())
    }

    fn holds_agent(&self, id: &str) -> bool {
        self.hub
            .snapshots()
            .borrow()
            .items
            .iter()
            .any(|item| item.tab.as_deref() == Some(id) && is_alive(item.presence))
    }
}

/// What takes up a conversation.
fn resume_line(conversation: &str) -> String {
    format!("claude --resume {conversation}")
}

/// Takes up all of these, a few at a time: a Claude that starts is a load, and a person has dozens.
async fn resume_all(tmux: tmux::Handle, hub: hub::Handle, offered: Vec<(TabId, String)>) {
    futures_util::stream::iter(offered)
        .for_each_concurrent(STARTING_MAX, |(tab, conversation)| {
            let (tmux, mut snapshots) = (tmux.clone(), hub.snapshots());
            async move {
                type_soon(tmux, tab.clone(), resume_line(&conversation)).await;
                let runs = snapshots.wait_for(|snapshot| {
                    let mut items = snapshot.items.iter();
                    items.any(|item| item.id == tab.as_str() && is_alive(item.presence))
                });
                if tokio::time::timeout(START_WAIT, runs).await.is_err() {
                    tracing::info!("no Claude is seen in tab {tab} yet; going on with the next");
                }
            }
        })
        .await;
}

fn is_alive(presence: Presence) -> bool {
    match presence {
        Presence::Starting | Presence::Running | Presence::Suspended => true,
        Presence::None | Presence::Elsewhere | Presence::Gone => false,
    }
}

/// Types a line once the shell shows its prompt.
async fn type_soon(tmux: tmux::Handle, tab: TabId, line: String) {
    let prompt = async {
        let session = tmux.session(&tab).await?;
        let pane = session.pane();
        let question = [
            "display-message",
            "-p",
            "-t",
            &pane,
            "#{cursor_x},#{cursor_y}",
        ];
        let mut ask = tokio::time::interval(PROMPT_ASK_EVERY);
        loop {
            ask.tick().await;
            let place = tmux.command_in(&session.run, &question).await?;
            if place.first().is_some_and(|place| place != "0,0") {
                return Ok::<(), tmux::Error>(());
            }
        }
    };
    match tokio::time::timeout(PROMPT_WAIT, prompt).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::info!("tab {tab} can't be asked for its prompt: {error}"),
        Err(_) => tracing::info!("tab {tab} shows no prompt yet; typing all the same"),
    }
    if let Err(error) = tmux.send_text(&tab, None, &line, true).await {
        tracing::warn!("can't type {line:?} into tab {tab}: {error}");
    }
}

/// When what was closed before the last stop ends; at once if its time has passed.
fn remaining(layout: &Layout) -> BTreeMap<String, Time> {
    let tabs = layout.tabs.iter().map(|tab| (&tab.id, tab.closing_ms));
    let workspaces = layout.workspaces.iter();
    let workspaces = workspaces.map(|workspace| (&workspace.id, workspace.closing_ms));
    tabs.chain(workspaces)
        .filter_map(|(id, closing_ms)| {
            let left = closing_ms?.saturating_sub(clock::wall_ms()).max(0);
            let left = Duration::from_millis(left.unsigned_abs()).min(UNDO_WITHIN);
            Some((id.clone(), clock::boot() + left))
        })
        .collect()
}

/// Puts a session that tmux has into a layout's first workspace.
fn add(layout: &mut Layout, id: &str, pane: &PaneLine, foreign: bool) -> Result<(), Refusal> {
    let workspace = layout.workspaces().next();
    let workspace = workspace.ok_or_else(|| no_workspace(""))?;
    let name = pane.session.chars().take(NAME_CHARS_MAX);
    let name = clean_name(&name.collect::<String>())?;
    let tab = TabRow {
        id: id.to_owned(),
        workspace: workspace.id.clone(),
        name: name.filter(|_| foreign),
        // tmux has no path for a pane whose program it is just starting.
        cwd: if pane.path.is_empty() {
            workspace.dir.clone()
        } else {
            pane.path.to_string()
        },
        kind: if foreign {
            FOREIGN
        } else {
            Kind::Terminal.as_str()
        }
        .to_owned(),
        ended: false,
        created_ms: clock::wall_ms(),
        closing_ms: None,
        conversation: None,
        conversation_title: None,
        offered: false,
    };
    layout.add(tab, None);
    Ok(())
}

fn is_foreign(tab: &TabRow) -> bool {
    tab.kind == FOREIGN
}

fn new_id() -> String {
    format!("t-{}", random_hex::<4>())
}

fn new_pane() -> String {
    format!("p-{}", random_hex::<4>())
}

fn no_tab(id: &str) -> Refusal {
    Refusal::Absent(Cause::NoTab { id: id.to_owned() })
}

fn is_tab_id(name: &str) -> bool {
    name.strip_prefix("t-")
        .is_some_and(|rest| rest.len() == 8 && rest.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// One line, its words apart; `None` for an empty name.
fn clean_name(name: &str) -> Result<Option<String>, Refusal> {
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    if name.chars().count() > NAME_CHARS_MAX {
        return Err(Refusal::Invalid(Cause::NameTooLong {
            max: number(NAME_CHARS_MAX),
        }));
    }
    Ok((!name.is_empty()).then_some(name))
}

/// As [`clean_name`], for what can't be without one.
fn workspace_name(name: &str) -> Result<String, Refusal> {
    clean_name(name)?.ok_or_else(|| Refusal::Invalid(Cause::NameMissing))
}

/// For a sentence.
fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The directory asked for, or the workspace's, or (when that one has gone) the person's own.
fn directory(asked: Option<&str>, workspace_dir: &str) -> Result<PathBuf, Refusal> {
    let person = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
    let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
        let dir = PathBuf::from(workspace_dir);
        return in_text(if dir.is_dir() { dir } else { person });
    };
    let dir = match asked.strip_prefix('~') {
        Some("") => person,
        Some(rest) if rest.starts_with('/') => person.join(rest.trim_start_matches('/')),
        Some(_) | None => PathBuf::from(asked),
    };
    if !dir.is_absolute() || !Path::new(&dir).is_dir() {
        return Err(Refusal::Invalid(Cause::NoDirectory {
            dir: asked.to_owned(),
        }));
    }
    in_text(dir)
}

/// A path is kept and handed to tmux as text. One that is none would become another: letters in the place of
/// bytes that stand for none.
fn in_text(dir: PathBuf) -> Result<PathBuf, Refusal> {
    if dir.to_str().is_some() {
        return Ok(dir);
    }
    Err(Refusal::Invalid(Cause::DirectoryNotText {
        dir: dir.display().to_string(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_or_none() {
        let cleaned = clean_name(" a\nb\u{1b} ").unwrap();
        assert_eq!(cleaned.as_deref(), Some("a b"));
        assert_eq!(clean_name(" \t").unwrap(), None);
        clean_name(&"x".repeat(NAME_CHARS_MAX + 1)).unwrap_err();
    }

    #[test]
    fn a_directory_must_exist_and_the_workspaces_may_be_missing() {
        assert_eq!(directory(Some("/"), "/").unwrap(), Path::new("/"));
        directory(Some("/no/such/place"), "/").unwrap_err();
        directory(Some("relative"), "/").unwrap_err();
        assert!(directory(None, "/no/such/place").unwrap().is_dir());
    }

    #[test]
    fn only_our_own_ids_are_taken_for_tabs() {
        assert!(is_tab_id("t-0123abcd"));
        for name in ["t-0123abc", "t-0123abcdx", "app", "t-", "t-0123abcg"] {
            assert!(!is_tab_id(name), "{name}");
        }
    }
}
