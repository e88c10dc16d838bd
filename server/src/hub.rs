//! The hub owns the fleet. Every event of every source goes through its one bounded inbox, every badge
//! leaves it as a [`Snapshot`] by `watch`; it arms one timer, from the fleet's own deadline.
//! It must never wait for a browser, a tmux or a transcript; only for the store, before anything is shown.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use purplemux_core::event::Persisted;
use purplemux_core::view::Evidence;
use purplemux_core::{AgentKey, Effect, Event, Fleet, HostId, Time};
use purplemux_wire::browser::{Item, Workspace};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tracing::{debug, error, info, warn};

use crate::clock;
use crate::effects::persist::{self, Keep};
use crate::ingest::process::Processes;
use crate::ingest::transcript::Transcripts;
use crate::ingest::{self, Witnesses};
use crate::{task, tmux};

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

/// Something that works less well than it should, shown to every viewer until it is over. One sentence
/// per kind, so that a source can take its own back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Degraded {
    /// tmux did not answer three times in a row.
    Tmux,
    /// The watch on Claude's files is lost; they are looked at once a second instead.
    Watch,
    /// Badges can't be written down.
    History,
}

#[derive(Debug)]
enum Message {
    Event(Event),
    Degraded(Degraded, Option<String>),
    Explain(AgentKey, oneshot::Sender<Vec<Evidence>>),
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
    pub async fn degraded(&self, what: Degraded, sentence: Option<String>) -> Result<(), Stopped> {
        self.message(Message::Degraded(what, sentence)).await
    }

    /// The evidence about an agent, newest first.
    pub async fn explain(&self, agent: AgentKey) -> Result<Vec<Evidence>, Stopped> {
        let (answer, explained) = oneshot::channel();
        self.message(Message::Explain(agent, answer)).await?;
        explained.await.map_err(|_| Stopped)
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

/// Starts the hub and all witnesses, which begin by looking once at everything there is. Returns at once;
/// the task ends with [`Handle::stop`].
#[must_use]
pub fn spawn(config: Config) -> (Handle, JoinHandle<()>) {
    let (inbox, messages) = mpsc::channel(INBOX);
    let (publish, snapshots) = watch::channel(Arc::new(Snapshot::default()));
    let (processes, process_task) = Processes::new(config.host.clone(), config.home.clone());
    let restored = restore(&config.restored);
    let handle = Handle {
        inbox,
        snapshots,
        host: config.host.clone(),
        witnesses: Witnesses {
            processes: processes.clone(),
            tmux: config.tmux,
        },
    };
    let hub = Hub {
        fleet: Fleet::new(config.host),
        keep: config.keep,
        transcripts: Transcripts::new(handle.clone(), processes.claude_dirs()),
        processes,
        publish,
        degraded: BTreeMap::new(),
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

struct Hub {
    fleet: Fleet,
    keep: Arc<dyn Keep>,
    processes: Processes,
    transcripts: Transcripts,
    publish: watch::Sender<Arc<Snapshot>>,
    degraded: BTreeMap<Degraded, String>,
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
                message = messages.recv() => match message {
                    Some(Message::Event(event)) => self.step(event).await,
                    Some(Message::Degraded(what, Some(sentence))) => {
                        warn!("{sentence}");
                        self.degraded.insert(what, sentence);
                    }
                    Some(Message::Degraded(what, None)) => {
                        if let Some(sentence) = self.degraded.remove(&what) {
                            info!("No longer so: {sentence}");
                        }
                    }
                    Some(Message::Explain(agent, answer)) => {
                        task::answer(answer, self.fleet.explain(&agent));
                        continue;
                    }
                    Some(Message::Stop) | None => break,
                },
                () = clock::reached(timer.unwrap_or_default()), if timer.is_some() => self.deadline().await,
            }
            self.publish();
        }
        debug!("The hub has stopped.");
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
        for effect in self.fleet.step(clock::now(), event) {
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
            } => debug!(%agent, ?episode, ?badge, silent, "notify"),
            Effect::Withdraw { agent, episode } => debug!(%agent, ?episode, "withdraw"),
            Effect::Persist {
                agent,
                badge,
                since,
                episode,
            } => {
                let tab = self
                    .fleet
                    .items()
                    .into_iter()
                    .find(|item| item.agent.as_ref() == Some(&agent))
                    .and_then(|item| item.tab);
                let kept = Persisted {
                    badge,
                    since,
                    episode,
                    tab,
                };
                let written = match persist::encode(&kept, clock::boot_id()) {
                    Ok(value) => self.keep.persist(agent.to_string(), value).await,
                    Err(why) => Err(why),
                };
                self.history(written);
            }
            Effect::Forget { agent } => {
                self.transcripts.forget(&agent);
                let written = self.keep.forget(agent.to_string()).await;
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
                self.degraded.remove(&Degraded::History);
            }
            Err(why) => {
                let sentence =
                    "History is not being saved; badges are right, but a restart may lose them.";
                if self
                    .degraded
                    .insert(Degraded::History, sentence.to_owned())
                    .is_none()
                {
                    error!("{sentence} {why:#}");
                }
            }
        }
    }

    fn publish(&self) {
        let items: Vec<Item> = self.fleet.items().iter().map(Item::from).collect();
        let workspaces: Vec<Workspace> = self
            .fleet
            .workspaces()
            .iter()
            .map(Workspace::from)
            .collect();
        let notices: Vec<String> = self.degraded.values().cloned().collect();
        self.publish.send_if_modified(|shown| {
            let same = shown.rev > 0
                && shown.items == items
                && shown.workspaces == workspaces
                && shown.notices == notices;
            if !same {
                *shown = Arc::new(Snapshot {
                    rev: shown.rev + 1,
                    items,
                    workspaces,
                    notices,
                });
            }
            !same
        });
    }
}
