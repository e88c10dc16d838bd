//! The witnesses: the world into events. Each source has its own file; none of them decides what an
//! event means, and a question that failed sends nothing at all.

pub mod hook;
pub mod process;
pub mod screen;
pub mod session_file;
pub mod transcript;

pub mod odd;
pub mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use purplemux_core::{AgentKey, Event, PaneKey};
use purplemux_wire::sentence::Cause;
use purplemux_wire::tmux::PaneLine;
use tokio::sync::oneshot;
use tokio::sync::watch::{Receiver, Sender};
use tracing::{debug, error};

use crate::hub::{self, Degraded, Stopped};
use crate::ingest::odd::Odd;
use crate::ingest::process::{PaneRoot, ProcessTask, Processes};
use crate::ingest::transcript::Timelines;
use crate::{hooks, net, task, tmux};

/// The first listing of panes is waited for this long; what comes later is told when it comes.
const FIRST_LISTING: Duration = Duration::from_millis(1500);

/// The sources that others bring something to.
#[derive(Clone, Debug)]
pub struct Witnesses {
    /// Which processes are agents.
    pub processes: Processes,
    /// Our tmux server.
    pub tmux: tmux::Handle,
    /// What could not be used.
    pub odd: Arc<Odd>,
    /// Whose timeline is open.
    pub timelines: Arc<Timelines>,
    /// Rings with every look of the safety net.
    pub rounds: Receiver<u64>,
}

/// What the witnesses need to start.
#[derive(Debug)]
pub struct Start {
    /// `$PURPLEMUX_HOME`.
    pub home: PathBuf,
    /// Claude's directories known from the start.
    pub claude_dirs: Vec<PathBuf>,
    /// Agents whose badges were kept over the restart.
    pub restored: Vec<AgentKey>,
    /// The process witness.
    pub processes: ProcessTask,
    /// The bell of the safety net.
    pub round: Sender<u64>,
}

/// Starts all witnesses. Each looks once at everything there is, in an order in which every event finds
/// what it refers to; then `RecoveryEnded` is sent.
pub fn start(hub: &hub::Handle, start: Start) {
    let processes = hub.witnesses().processes.clone();
    for dir in start.claude_dirs {
        processes.claude_dirs().add(dir);
    }
    if let Err(why) = hooks::write(&start.home) {
        error!("The hooks can't be written; badges come from Claude's status files alone: {why:#}");
    }
    task::spawn("settings files", hooks::merged::follow(start.home.clone()));
    task::spawn("processes", start.processes.run(hub.clone()));
    task::spawn("tmux health", follow_health(hub.clone()));
    task::spawn("tmux version", follow_version(hub.clone()));
    task::spawn("start-up dialogs", screen::run(hub.clone()));
    task::spawn("safety net", net::run(hub.clone(), start.round));
    let (listed, first_listing) = oneshot::channel();
    task::spawn("panes", follow_panes(hub.clone(), listed));
    let hub = hub.clone();
    let spool = start.home.join("spool");
    task::spawn("recovery", async move {
        let recovered = recover(&hub, start.restored, first_listing, &spool).await;
        if recovered.is_ok() {
            hook::follow_spool(hub, spool).await;
        }
    });
}

async fn recover(
    hub: &hub::Handle,
    restored: Vec<AgentKey>,
    first_listing: oneshot::Receiver<()>,
    spool: &std::path::Path,
) -> Result<(), Stopped> {
    if tokio::time::timeout(FIRST_LISTING, first_listing)
        .await
        .is_err()
    {
        debug!("tmux has not answered yet");
    }
    let processes = &hub.witnesses().processes;
    for agent in restored {
        processes.adopt(agent).await;
    }
    // Claudes outside our tabs, whose directories nothing else names.
    processes.look_around().await;
    let (looked, files_looked) = oneshot::channel();
    let files = session_file::run(hub.clone(), processes.clone(), looked);
    task::spawn("status files", files);
    // An error means that the hub has stopped; sending says so below.
    drop(files_looked.await);
    hook::replay(hub, spool).await;
    hub.send(Event::RecoveryEnded).await
}

/// Tells the hub and the process witness of every listing of panes that differs from the one before.
async fn follow_panes(hub: hub::Handle, first: oneshot::Sender<()>) {
    let mut listings = hub.witnesses().tmux.listing();
    let mut first = Some(first);
    while listings.changed().await.is_ok() {
        let listing = listings.borrow_and_update().clone();
        let Some(server) = listing.server().cloned() else {
            continue;
        };
        let roots = listing
            .panes
            .iter()
            .filter_map(|pane| {
                Some(PaneRoot {
                    pane: PaneKey {
                        server: server.clone(),
                        pane: pane.pane,
                    },
                    pid: pane.pid?,
                    command: pane.command.clone(),
                })
            })
            .collect();
        // Of several sessions that share a pane, the one that is a tab counts: it comes last.
        let mut lines: Vec<&PaneLine> = listing.panes.iter().collect();
        lines.sort_by_key(|pane| (pane.tab().is_some(), std::cmp::Reverse(pane.session_id)));
        let panes = lines.iter().map(|pane| pane.facts(&server)).collect();
        if hub.send(Event::PanesListed { panes }).await.is_err() {
            return;
        }
        hub.witnesses().processes.panes(roots).await;
        if let Some(first) = first.take() {
            task::answer(first, ());
        }
    }
}

/// Tells viewers when tmux has stopped answering, and when it answers again.
async fn follow_health(hub: hub::Handle) {
    let mut health = hub.witnesses().tmux.health();
    while health.changed().await.is_ok() {
        let sentence = match &*health.borrow_and_update() {
            tmux::Health::Fine => None,
            tmux::Health::Silent(why) => Some(Cause::TmuxSilent {
                detail: why.clone(),
            }),
        };
        if hub.degraded(Degraded::Tmux, sentence).await.is_err() {
            return;
        }
    }
}

/// Tells viewers when another tmux is installed than the one that runs.
async fn follow_version(hub: hub::Handle) {
    let mut outdated = hub.witnesses().tmux.outdated();
    while outdated.changed().await.is_ok() {
        let sentence = outdated.borrow_and_update().clone();
        if hub.degraded(Degraded::TmuxVersion, sentence).await.is_err() {
            return;
        }
    }
}

/// Claude's directories that are known before any process was seen: `$CLAUDE_CONFIG_DIR` if it is set in
/// our own environment, and `~/.claude` in any case.
#[must_use]
pub fn default_claude_dirs() -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    if let Some(dir) = std::env::var_os("CLAUDE_CONFIG_DIR").filter(|dir| !dir.is_empty()) {
        dirs.push(PathBuf::from(dir));
    }
    if let Some(home) = std::env::home_dir() {
        dirs.push(home.join(".claude"));
    }
    dirs.dedup();
    dirs
}
