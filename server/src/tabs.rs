//! The layout: workspaces and their tabs, each tab one tmux session that is marked with its id. One task owns
//! it; it persists every change, then tells the hub. A session that somebody else makes on our tmux server
//! becomes a tab as well.
//!
//! It never kills a session that it did not start, and never decides anything about an agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use purplemux_core::event::{TabFacts, WorkspaceFacts};
use purplemux_core::{Event, PaneKey, TabId, WorkspaceId};
use purplemux_wire::tmux::{Belongs, PaneLine};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock;
use crate::home::random_hex;
use crate::hub;
use crate::store::{Store, TabRow, WorkspaceRow};
use crate::tmux;

/// Requests that may wait; more than a person and their scripts make at once.
const INBOX: usize = 64;

/// Longest name of a tab, in characters: what a row can show.
pub const NAME_CHARS_MAX: usize = 200;

/// How long a new shell may take to print its prompt before `claude` is typed regardless: the kernel keeps
/// what was typed too early, it only looks odd.
const PROMPT_WAIT: Duration = Duration::from_secs(3);

/// How often it is asked whether the prompt is there, over the control client (0.1 ms each).
const PROMPT_ASK_EVERY: Duration = Duration::from_millis(25);

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
    /// Id or name of the workspace; the first one if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workspace: Option<String>,
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

/// The layout as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// All workspaces in order.
    pub workspaces: Vec<WorkspaceRow>,
    /// All tabs in order.
    pub tabs: Vec<TabRow>,
}

impl Layout {
    /// A tab of this id.
    #[must_use]
    pub fn tab(&self, id: &str) -> Option<&TabRow> {
        self.tabs.iter().find(|tab| tab.id == id)
    }

    fn marks(&self) -> hub::Marks {
        let ids = |wanted: fn(&TabRow) -> bool| {
            let tabs = self.tabs.iter().filter(|tab| wanted(tab));
            tabs.map(|tab| tab.id.clone()).collect()
        };
        hub::Marks {
            ended: ids(|tab| tab.ended),
            foreign: ids(is_foreign),
        }
    }

    fn facts(&self) -> Vec<WorkspaceFacts> {
        self.workspaces
            .iter()
            .map(|workspace| WorkspaceFacts {
                id: WorkspaceId::from(workspace.id.as_str()),
                name: Arc::from(workspace.name.as_str()),
                dir: Arc::from(workspace.dir.as_str()),
                tabs: self
                    .tabs
                    .iter()
                    .filter(|tab| tab.workspace == workspace.id)
                    .map(|tab| TabFacts {
                        id: TabId::from(tab.id.as_str()),
                        name: tab.name.as_deref().map(Arc::from),
                        cwd: Arc::from(tab.cwd.as_str()),
                        ended: tab.ended,
                    })
                    .collect(),
            })
            .collect()
    }
}

/// Why something was not done.
#[derive(Debug, Error)]
pub enum Refusal {
    /// There is no such tab or workspace.
    #[error("{0}")]
    Absent(String),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// Something is in the way that the person has to decide about.
    #[error("{0}")]
    InTheWay(String),
    /// tmux refused or does not answer.
    #[error(transparent)]
    Tmux(#[from] tmux::Error),
    /// The layout could not be saved, or the server is stopping.
    #[error("{0:#}")]
    Failed(#[from] anyhow::Error),
}

type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

enum Ask {
    Create(NewTab, Answer<TabRow>),
    Rename(String, Option<String>, Answer<()>),
    Close(String, bool, Answer<()>),
    Reopen(String, Answer<()>),
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
        if store.workspaces().await?.is_empty() {
            let dir = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
            store
                .add_workspace(WorkspaceRow {
                    id: format!("w-{}", random_hex::<4>()),
                    name: "main".to_owned(),
                    dir: dir.to_string_lossy().into_owned(),
                })
                .await?;
        }
        let layout = Layout {
            workspaces: store.workspaces().await?,
            tabs: store.tabs().await?,
        };
        let (publish, seen) = watch::channel(Arc::new(layout));
        let (asks, inbox) = mpsc::channel(INBOX);
        let mut owner = Owner {
            store,
            hub,
            tmux: tmux.clone(),
            publish,
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
        self.ask(|answer| Ask::Create(new, answer)).await
    }

    /// Names a tab; an empty name takes the name away.
    ///
    /// # Errors
    /// There is no such tab, or the name is too long.
    pub async fn rename(&self, id: &str, name: &str) -> Result<(), Refusal> {
        let name = clean_name(name)?;
        self.ask(|answer| Ask::Rename(id.to_owned(), name, answer))
            .await
    }

    /// Ends a tab's tmux session with everything in it, and forgets the tab. A session that somebody else has
    /// made lives on: it is only no tab any more.
    ///
    /// # Errors
    /// There is no such tab, or an agent is alive in it and `force` is not set.
    pub async fn close(&self, id: &str, force: bool) -> Result<(), Refusal> {
        self.ask(|answer| Ask::Close(id.to_owned(), force, answer))
            .await
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
            return Err(Refusal::InTheWay(format!(
                "The shell of tab {id} has ended; `purplemux tab reopen {id}` starts it again."
            )));
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
}

impl Owner {
    async fn run(mut self, mut inbox: mpsc::Receiver<Ask>) {
        // An answer that nobody waits for any more is not an error: the work is done.
        let mut listing = self.tmux.listing();
        loop {
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
            };
            match ask {
                Ask::Create(new, answer) => drop(answer.send(self.create(new).await)),
                Ask::Rename(id, name, answer) => drop(answer.send(self.rename(id, name).await)),
                Ask::Close(id, force, answer) => drop(answer.send(self.close(id, force).await)),
                Ask::Reopen(id, answer) => drop(answer.send(self.reopen(id).await)),
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
                    Belongs::Tab(tab) => layout.tab(tab.as_str()).is_none(),
                    Belongs::Nobody => true,
                    Belongs::Hidden => false,
                }))
    }

    /// Remembers where each tab's shell is: once it has ended, tmux can't be asked any more.
    async fn follow_shells(&mut self, listing: &tmux::Listing) -> Result<()> {
        let layout = self.layout();
        let mut moved: Option<Layout> = None;
        for pane in listing.panes.iter().filter(|pane| pane.active) {
            let tab = pane.tab().and_then(|tab| layout.tab(tab.as_str()));
            let Some(tab) = tab.filter(|tab| !pane.path.is_empty() && *tab.cwd != *pane.path)
            else {
                continue;
            };
            self.store
                .move_tab(tab.id.clone(), pane.path.to_string())
                .await?;
            let moved = moved.get_or_insert_with(|| (*layout).clone());
            if let Some(row) = moved.tabs.iter_mut().find(|row| row.id == tab.id) {
                row.cwd = pane.path.to_string();
            }
        }
        if let Some(moved) = moved {
            // The hub has it from tmux itself for as long as the shell lives.
            self.publish.send_replace(Arc::new(moved));
        }
        Ok(())
    }

    /// Publishes the layout as the store has it now.
    async fn reload(&mut self) -> Result<()> {
        let layout = Layout {
            workspaces: self.store.workspaces().await?,
            tabs: self.store.tabs().await?,
        };
        self.publish.send_replace(Arc::new(layout));
        self.tell().await
    }

    async fn tell(&mut self) -> Result<()> {
        let layout = self.layout();
        self.hub
            .marks(layout.marks())
            .await
            .context("Can't tell the hub about the tabs")?;
        let workspaces = layout.facts();
        self.hub
            .send(Event::LayoutChanged { workspaces })
            .await
            .context("Can't tell the hub about the layout")
    }

    async fn recover(&mut self) {
        if let Err(error) = self.recheck().await {
            tracing::error!("can't find out which tabs are alive: {error:#}");
        }
    }

    /// Compares the layout with the sessions that tmux has now. One that is marked as a tab but in no layout
    /// (its database was lost) becomes a tab again, one that somebody else has made becomes one.
    async fn recheck(&mut self) -> Result<()> {
        let listing = self.tmux.list_now().await?;
        let layout = self.layout();
        let mut changed = false;
        for tab in &layout.tabs {
            let ended = listing.session_of(&tab.id).is_none();
            if ended != tab.ended {
                self.store.mark_tab(tab.id.clone(), ended).await?;
                changed = true;
            }
        }
        let mut lost: Vec<&PaneLine> = Vec::new();
        for pane in &listing.panes {
            if let Some(tab) = pane.tab()
                && is_tab_id(tab.as_str())
                && layout.tab(tab.as_str()).is_none()
                && !lost.iter().any(|other| other.belongs == pane.belongs)
            {
                lost.push(pane);
            }
        }
        for pane in lost {
            let Some(tab) = pane.tab() else { continue };
            // Sessions of ours are named like their tab.
            let ours = pane.session.starts_with(tab.as_str());
            changed |= self.add(tab.as_str(), pane, !ours).await?;
        }
        if changed {
            self.reload().await?;
        }
        for pane in listing.strangers() {
            let (Some(run), id) = (listing.run.clone(), pane.session_id) else {
                continue;
            };
            self.adopt(&tmux::Session { run, id }, pane).await?;
        }
        Ok(())
    }

    /// Puts a session that tmux has into the layout; false if there is no workspace to put it into.
    async fn add(&mut self, id: &str, pane: &PaneLine, foreign: bool) -> Result<bool> {
        let layout = self.layout();
        let Some(workspace) = layout.workspaces.first() else {
            return Ok(false);
        };
        let name = pane.session.chars().take(NAME_CHARS_MAX);
        let name = clean_name(&name.collect::<String>())?;
        self.store
            .add_tab(TabRow {
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
            })
            .await?;
        Ok(true)
    }

    /// Makes a tab of a session that somebody else has made.
    async fn adopt(&mut self, session: &tmux::Session, pane: &PaneLine) -> Result<()> {
        let id = new_id();
        // The layout first, as for a tab of our own.
        if !self.add(&id, pane, true).await? {
            return Ok(());
        }
        self.reload().await?;
        match self.tmux.adopt(session, &TabId::from(id.as_str())).await {
            Ok(()) => tracing::info!("the session {:?} is tab {id} from now on", pane.session),
            Err(error) => {
                tracing::info!("the session {:?} is no tab: {error}", pane.session);
                self.store.remove_tab(id).await?;
                self.reload().await?;
            }
        }
        Ok(())
    }

    async fn create(&mut self, new: NewTab) -> Result<TabRow, Refusal> {
        let layout = self.layout();
        let workspace = match &new.workspace {
            None => layout.workspaces.first(),
            Some(wanted) => layout
                .workspaces
                .iter()
                .find(|workspace| workspace.id == *wanted)
                .or_else(|| {
                    layout
                        .workspaces
                        .iter()
                        .find(|workspace| workspace.name == *wanted)
                }),
        };
        let workspace = workspace.ok_or_else(|| {
            Refusal::Absent(format!(
                "There is no workspace {:?}; `purplemux workspace list` shows them.",
                new.workspace.as_deref().unwrap_or_default()
            ))
        })?;
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
        };
        let id = TabId::from(tab.id.as_str());
        self.tmux.list_now().await?;
        // The layout first: the hub then knows the tab before the first of its panes is listed.
        self.store.add_tab(tab.clone()).await?;
        self.reload().await?;
        if let Err(error) = self.tmux.new_session(&id, &cwd, &[], &[]).await {
            self.store.remove_tab(tab.id.clone()).await?;
            self.reload().await?;
            return Err(error.into());
        }
        if new.kind == Kind::ClaudeCode {
            crate::task::spawn("typing claude", type_claude(self.tmux.clone(), id));
        }
        Ok(tab)
    }

    async fn rename(&mut self, id: String, name: Option<String>) -> Result<(), Refusal> {
        if self.layout().tab(&id).is_none() {
            return Err(no_tab(&id));
        }
        self.store.rename_tab(id, name).await?;
        self.reload().await?;
        Ok(())
    }

    async fn close(&mut self, id: String, force: bool) -> Result<(), Refusal> {
        let layout = self.layout();
        let tab = layout.tab(&id).ok_or_else(|| no_tab(&id))?;
        let foreign = is_foreign(tab);
        if !foreign && !force && self.holds_agent(&id) {
            return Err(Refusal::InTheWay(format!(
                "Claude is running in tab {id}; end it first, or close the tab with --force."
            )));
        }
        match self.tmux.session(&TabId::from(id.as_str())).await {
            Ok(session) if foreign => match self.tmux.hide(&session).await {
                Ok(()) | Err(tmux::Error::Gone) => {}
                Err(error) => return Err(error.into()),
            },
            Ok(session) => self.tmux.kill_session(&session).await?,
            Err(tmux::Error::Gone) => {}
            // What has ended needs no tmux to be forgotten.
            Err(_) if tab.ended => {}
            Err(error) => return Err(error.into()),
        }
        self.store.remove_tab(id).await?;
        self.reload().await?;
        Ok(())
    }

    async fn reopen(&mut self, id: String) -> Result<(), Refusal> {
        let layout = self.layout();
        let tab = layout.tab(&id).ok_or_else(|| no_tab(&id))?;
        let tab_id = TabId::from(id.as_str());
        let listing = self.tmux.list_now().await?;
        if let Some(session) = listing.session_of(&id) {
            let mut panes = listing.panes.iter().filter(|pane| pane.is_of(&id));
            if !panes.all(|pane| pane.dead) {
                return Err(Refusal::InTheWay(format!(
                    "The shell of tab {id} is running; there is nothing to reopen."
                )));
            }
            if is_foreign(tab) {
                return Err(Refusal::InTheWay(format!(
                    "The session of tab {id} is not purplemux's own; `tmux respawn-pane` in it starts its program again."
                )));
            }
            // Nothing lives in it any more: its program has exited, and only its last screen is kept.
            self.tmux.kill_session(&session).await?;
        }
        let workspace = layout.workspaces.iter().find(|w| w.id == tab.workspace);
        let fallback = workspace.map_or("/", |workspace| &workspace.dir);
        let cwd = match directory(Some(&tab.cwd), fallback) {
            Ok(cwd) => cwd,
            // It has been removed meanwhile.
            Err(_) => directory(None, fallback)?,
        };
        self.store.mark_tab(id.clone(), false).await?;
        if let Err(error) = self.tmux.new_session(&tab_id, &cwd, &[], &[]).await {
            self.store.mark_tab(id.clone(), true).await?;
            self.reload().await?;
            return Err(error.into());
        }
        // Whoever started the session before, this one is ours.
        if is_foreign(tab) {
            let kind = Kind::Terminal.as_str().to_owned();
            self.store.turn_tab(id, kind).await?;
        }
        self.reload().await?;
        Ok(())
    }

    fn holds_agent(&self, id: &str) -> bool {
        use purplemux_wire::browser::Presence;
        self.hub.snapshots().borrow().items.iter().any(|item| {
            item.tab.as_deref() == Some(id)
                && match item.presence {
                    Presence::Starting | Presence::Running | Presence::Suspended => true,
                    Presence::None | Presence::Elsewhere | Presence::Gone => false,
                }
        })
    }
}

/// Types `claude` once the shell shows its prompt.
async fn type_claude(tmux: tmux::Handle, tab: TabId) {
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
        Err(_) => tracing::info!("tab {tab} shows no prompt yet; typing claude all the same"),
    }
    if let Err(error) = tmux.send_text(&tab, None, "claude", true).await {
        tracing::warn!("can't type claude into tab {tab}: {error}");
    }
}

fn is_foreign(tab: &TabRow) -> bool {
    tab.kind == FOREIGN
}

fn new_id() -> String {
    format!("t-{}", random_hex::<4>())
}

fn no_tab(id: &str) -> Refusal {
    Refusal::Absent(format!(
        "There is no tab {id:?}; `purplemux tab list` shows them."
    ))
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
        return Err(Refusal::Invalid(format!(
            "A name may have {NAME_CHARS_MAX} characters; choose a shorter one."
        )));
    }
    Ok((!name.is_empty()).then_some(name))
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
        return Err(Refusal::Invalid(format!(
            "There is no directory {asked:?}; give the absolute path of one that exists."
        )));
    }
    in_text(dir)
}

/// A path is kept and handed to tmux as text. One that is none would become another: letters in the place of
/// bytes that stand for none.
fn in_text(dir: PathBuf) -> Result<PathBuf, Refusal> {
    if dir.to_str().is_some() {
        return Ok(dir);
    }
    Err(Refusal::Invalid(format!(
        "{} has a name that is no UTF-8; tabs can't be opened there. Give it another name, or open a tab above it and cd.",
        dir.display()
    )))
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
