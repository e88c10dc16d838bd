//! The hub owns the fleet. Every event of every source goes through its one bounded inbox, every badge
//! leaves it as a [`Snapshot`] by `watch`; it arms one timer, from the fleet's own deadline.
//! It must never wait for a browser, a tmux or a file.

use std::path::PathBuf;
use std::sync::Arc;

use purplemux_core::{Event, HostId};
use purplemux_wire::browser::{Item, Workspace};
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::effects::persist::Keep;
use crate::tmux;

/// What is shown now: a level, replaced as a whole; `wire::diff` makes the difference per viewer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Counts up by one with every change; starts at 1 with each start of the server.
    pub rev: u64,
    /// All rows.
    pub items: Vec<Item>,
    /// All workspaces in order.
    pub workspaces: Vec<Workspace>,
    /// Plain sentences about what is degraded; empty when healthy.
    pub notices: Vec<String>,
}

/// What the hub needs to start.
pub struct Config {
    /// This machine's name, part of every identity.
    pub host: HostId,
    /// `$PURPLEMUX_HOME`, made and checked by the caller.
    pub home: PathBuf,
    /// Our tmux server.
    pub tmux: tmux::Handle,
    /// Where badges are kept over a restart.
    pub keep: Arc<dyn Keep>,
    /// The rows that [`Keep`] holds, as they were given to it: agent and value.
    pub restored: Vec<(String, String)>,
    /// Claude's directories known from the start (`$CLAUDE_CONFIG_DIR`, else `~/.claude`); more are
    /// learned from processes and hooks. See [`crate::ingest::default_claude_dirs`].
    pub claude_dirs: Vec<PathBuf>,
}

/// The hub has stopped; nothing more can happen.
#[derive(Debug, Error)]
#[error("purplemux is stopping")]
pub struct Stopped;

/// A way to the hub for everyone else.
#[derive(Clone, Debug)]
pub struct Handle {
    inbox: mpsc::Sender<Event>,
    snapshots: watch::Receiver<Arc<Snapshot>>,
}

/// Events that may wait: enough for a burst of 50 sessions with 20 hooks each; senders wait beyond that,
/// so nothing is lost.
const INBOX: usize = 1024;

impl Handle {
    /// Queues an event; waits while the inbox is full.
    pub async fn send(&self, event: Event) -> Result<(), Stopped> {
        self.inbox.send(event).await.map_err(|_| Stopped)
    }

    /// What is shown, now and at every change.
    #[must_use]
    pub fn snapshots(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshots.clone()
    }
}

/// Starts the hub and all witnesses. The task ends when the last handle is dropped.
#[must_use]
pub fn spawn(_config: Config) -> (Handle, JoinHandle<()>) {
    let (inbox, mut events) = mpsc::channel::<Event>(INBOX);
    let (_publish, snapshots) = watch::channel(Arc::new(Snapshot::default()));
    let task = tokio::spawn(async move { while events.recv().await.is_some() {} });
    (Handle { inbox, snapshots }, task)
}
