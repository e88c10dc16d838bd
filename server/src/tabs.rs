//! The layout: workspaces and their tabs, each tab one tmux session named by its id. One task owns it; it
//! persists every change, then tells the hub.
//!
//! It never kills a session that is not a tab of ours, and never decides anything about an agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use purplemux_core::event::{TabFacts, WorkspaceFacts};
use purplemux_core::{Event, TabId, WorkspaceId};
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

    /// Ends a tab's tmux session with everything in it, and forgets the tab.
    ///
    /// # Errors
    /// There is no such tab, or an agent is alive in it and `force` is not set.
    pub async fn close(&self, id: &str, force: bool) -> Result<(), Refusal> {
        self.ask(|answer| Ask::Close(id.to_owned(), force, answer))
            .await
    }

    /// Types into a tab.
    ///
    /// # Errors
    /// There is no such tab, it has ended, or tmux does not take it.
    pub async fn send(&self, id: &str, text: &str, enter: bool) -> Result<(), Refusal> {
        let layout = self.layout();
        let tab = layout.tab(id).ok_or_else(|| no_tab(id))?;
        if tab.ended {
            return Err(Refusal::InTheWay(format!(
                "The shell of tab {id} has ended; close the tab and open another."
            )));
        }
        self.tmux
            .send_text(&TabId::from(id), text, enter)
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
        let listed = |id: &str| listing.panes.iter().any(|pane| *pane.session == *id);
        listing.server.is_some()
            && (layout.tabs.iter().any(|tab| tab.ended == listed(&tab.id))
                || listing
                    .panes
                    .iter()
                    .any(|pane| is_tab_id(&pane.session) && layout.tab(&pane.session).is_none()))
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
        let workspaces = self.layout().facts();
        self.hub
            .send(Event::LayoutChanged { workspaces })
            .await
            .context("Can't tell the hub about the layout")
    }

    async fn recover(&mut self) {
        let found = async {
            self.tmux.ensure_server().await?;
            self.recheck().await
        };
        if let Err(error) = found.await {
            tracing::error!("can't find out which tabs are alive: {error:#}");
        }
    }

    /// Compares the layout with the sessions that tmux has. A session named like a tab of ours that is in
    /// no layout (its database was lost) becomes a tab again.
    async fn recheck(&mut self) -> Result<()> {
        let alive = self
            .tmux
            .command(&["list-sessions", "-F", "#{session_name}\t#{session_path}"])
            .await?;
        let alive: Vec<(&str, &str)> = alive
            .iter()
            .filter_map(|line| line.split_once('\t'))
            .collect();
        let layout = self.layout();
        let mut changed = false;
        for tab in &layout.tabs {
            let ended = !alive.iter().any(|(name, _)| *name == tab.id);
            if ended != tab.ended {
                self.store.mark_tab(tab.id.clone(), ended).await?;
                changed = true;
            }
        }
        for (name, path) in alive {
            if layout.tab(name).is_none()
                && is_tab_id(name)
                && let Some(workspace) = layout.workspaces.first()
            {
                self.store
                    .add_tab(TabRow {
                        id: name.to_owned(),
                        workspace: workspace.id.clone(),
                        name: None,
                        cwd: path.to_owned(),
                        kind: Kind::Terminal.as_str().to_owned(),
                        ended: false,
                        created_ms: clock::wall_ms(),
                    })
                    .await?;
                changed = true;
            }
        }
        if changed {
            self.reload().await?;
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
            id: format!("t-{}", random_hex::<4>()),
            workspace: workspace.id.clone(),
            name,
            cwd: cwd.to_string_lossy().into_owned(),
            kind: new.kind.as_str().to_owned(),
            ended: false,
            created_ms: clock::wall_ms(),
        };
        let id = TabId::from(tab.id.as_str());
        self.tmux.ensure_server().await?;
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
        if self.layout().tab(&id).is_none() {
            return Err(no_tab(&id));
        }
        if !force && self.holds_agent(&id) {
            return Err(Refusal::InTheWay(format!(
                "Claude is running in tab {id}; end it first, or close the tab with --force."
            )));
        }
        self.tmux.kill_session(&TabId::from(id.as_str())).await?;
        self.store.remove_tab(id).await?;
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
    let target = format!("={tab}:");
    let prompt = async {
        let mut ask = tokio::time::interval(PROMPT_ASK_EVERY);
        loop {
            ask.tick().await;
            let place = tmux
                .command(&[
                    "display-message",
                    "-p",
                    "-t",
                    &target,
                    "#{cursor_x},#{cursor_y}",
                ])
                .await;
            if place.is_ok_and(|lines| lines.first().is_some_and(|place| place != "0,0")) {
                return;
            }
        }
    };
    if tokio::time::timeout(PROMPT_WAIT, prompt).await.is_err() {
        tracing::info!("tab {tab} shows no prompt yet; typing claude all the same");
    }
    if let Err(error) = tmux.send_text(&tab, "claude", true).await {
        tracing::warn!("can't type claude into tab {tab}: {error}");
    }
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
        return Ok(if dir.is_dir() { dir } else { person });
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
    Ok(dir)
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
