//! The journal: every event that the fleet was given and every verdict, written down so that a badge can be
//! explained and a report played again. Evidence is written in batches behind the hub's back; a verdict goes
//! in with its badge (see [`super::persist::Keep`]).
//!
//! Must never hold the hub up: what finds no room, or can't be written, is counted, and the gap is a record of
//! its own as soon as there is a place to write it. Knows no database; see [`Shelf`].

use std::fmt::Debug;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use futures_util::future::BoxFuture;
use purplemux_core::{AgentKey, Badge, Effect, EpisodeId, Event, Stamp};
use purplemux_wire::journal::{self, Lost, Record, Started, Verdict, What, agent_of};
use purplemux_wire::sentence::Cause;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tracing::{error, info, warn};

use crate::hub::{self, Degraded};
use crate::{clock, task};

/// Records that may wait to be written: a second of 50 sessions with 20 hooks each, eight times over.
const QUEUE: usize = 8192;
/// Evidence waits at most this long, so that a burst is one transaction.
const BATCH: Duration = Duration::from_millis(100);
/// … and no transaction holds more than this: 5 ms of work, which a badge may have to wait for.
const BATCH_ROWS: usize = 256;
/// A journal that can't be written is tried again this often.
const RETRY: Duration = Duration::from_secs(1);
/// Old records are looked for this often.
const PRUNE: Duration = Duration::from_secs(600);

/// Records older than this are forgotten.
const AGE_MS_MAX: i64 = 7 * 24 * 60 * 60 * 1000;
/// … and the oldest beyond this many bytes.
const BYTES_MAX: u64 = 200 * 1024 * 1024;

/// One record as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its place: what was sooner has the smaller number, over all starts.
    pub seq: i64,
    /// Unix ms.
    pub at_ms: i64,
    /// Whom it concerns (`host:pid:start`), as far as it is known.
    pub agent: Option<String>,
    /// Of a verdict: the tab it was shown in.
    pub tab: Option<String>,
    /// It is a verdict.
    pub verdict: bool,
    /// As `wire::journal` writes it.
    pub record: String,
}

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Records older than this many ms are forgotten.
    pub age_ms_max: i64,
    /// The oldest records beyond this many bytes are forgotten.
    pub bytes_max: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            age_ms_max: AGE_MS_MAX,
            bytes_max: BYTES_MAX,
        }
    }
}

/// Where records are kept. The store implements it; it need not understand them.
pub trait Shelf: Debug + Send + Sync + 'static {
    /// Writes them all or none; the bytes kept afterwards.
    fn append(&self, rows: Vec<Row>) -> BoxFuture<'static, Result<u64>>;

    /// Forgets some of the oldest that are beyond the bounds; whether there may be more of them.
    fn prune(&self, before_ms: i64, bytes_max: u64) -> BoxFuture<'static, Result<bool>>;
}

/// How the journal is kept.
#[derive(Debug)]
pub struct Config {
    /// Where.
    pub shelf: Arc<dyn Shelf>,
    /// The number of the newest record there is.
    pub newest: i64,
    /// With prompts, answers and commands.
    pub text: bool,
    /// How much.
    pub bounds: Bounds,
}

#[derive(Debug)]
struct Entry {
    seq: i64,
    at: Stamp,
    agent: Option<AgentKey>,
    what: What,
}

/// What could not be written. Leaf data: the hub adds to it, the journal's task writes it down.
#[derive(Debug, Default)]
struct Gap {
    open: Mutex<Option<Lost>>,
    opened: Notify,
}

impl Gap {
    fn add(&self, count: u64, why: &str) {
        let now_ms = clock::wall_ms();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = open.get_or_insert_with(|| Lost {
            from_ms: now_ms,
            to_ms: now_ms,
            count: 0,
            why: why.to_owned(),
        });
        lost.count = lost.count.saturating_add(count);
        lost.to_ms = now_ms;
        drop(open);
        self.opened.notify_one();
    }

    fn now(&self) -> Option<Lost> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.clone()
    }

    /// This much of it has been written down.
    fn written(&self, lost: &Lost) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let left = open.take().and_then(|now| {
            let count = now.count.saturating_sub(lost.count);
            (count > 0).then_some(Lost { count, ..now })
        });
        *open = left;
    }
}

/// The hub's end of the journal.
#[derive(Debug)]
pub struct Journal {
    entries: mpsc::Sender<Entry>,
    gap: Arc<Gap>,
    newest: Arc<AtomicI64>,
    text: bool,
    task: JoinHandle<()>,
}

impl Journal {
    /// Starts the task that writes, and writes down that the server has started.
    #[must_use]
    pub fn start(config: Config, hub: hub::Handle) -> Self {
        let (entries, inbox) = mpsc::channel(QUEUE);
        let gap = Arc::new(Gap::default());
        let newest = Arc::new(AtomicI64::new(config.newest));
        let writer = Writer {
            newest: Arc::clone(&newest),
            shelf: config.shelf,
            hub,
            gap: Arc::clone(&gap),
            text: config.text,
            bounds: config.bounds,
            failing: false,
        };
        let journal = Self {
            entries,
            gap,
            newest,
            text: config.text,
            task: task::spawn("journal", writer.run(inbox)),
        };
        let started = Started {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            boot_id: clock::boot_id().to_owned(),
        };
        journal.put(clock::now(), None, What::Started(started));
        journal
    }

    /// An event as the fleet was given it, and what came of it: a hook that does not name its agent belongs
    /// to the one that took it.
    pub fn evidence(&self, at: Stamp, event: Event, effects: &[Effect]) {
        let agent = agent_of(&event).cloned().or_else(|| match &event {
            Event::HookFired { .. } => effects.iter().find_map(|effect| match effect {
                Effect::Record { agent, .. } => Some(agent.clone()),
                Effect::ReadTranscript { .. }
                | Effect::WatchTranscript { .. }
                | Effect::UseTranscript { .. }
                | Effect::WatchCpu { .. }
                | Effect::Notify { .. }
                | Effect::Withdraw { .. }
                | Effect::Persist { .. }
                | Effect::Forget { .. } => None,
            }),
            Event::ProcessFound { .. }
            | Event::ProcessDied { .. }
            | Event::ProcessStopped { .. }
            | Event::KeyFileSeen { .. }
            | Event::ProcessQuiet { .. }
            | Event::ProcessMissed { .. }
            | Event::FileRead { .. }
            | Event::FileRemoved { .. }
            | Event::FileUnreadable { .. }
            | Event::TranscriptGrew { .. }
            | Event::TranscriptRead { .. }
            | Event::TranscriptMissing { .. }
            | Event::Seen { .. }
            | Event::Dismissed { .. }
            | Event::PanesListed { .. }
            | Event::LayoutChanged { .. }
            | Event::Restored { .. }
            | Event::RecoveryEnded
            | Event::DeadlinePassed => None,
        });
        self.put(at, agent, What::Evidence(event));
    }

    /// The row of a verdict, to be written together with the badge; `None`: it can't be put into words.
    pub fn verdict(
        &self,
        agent: &AgentKey,
        badge: Option<Badge>,
        since: Stamp,
        episode: Option<EpisodeId>,
        tab: Option<String>,
    ) -> Option<Row> {
        let what = What::Verdict(Verdict {
            agent: agent.clone(),
            badge,
            since,
            episode,
        });
        let entry = Entry {
            seq: next(&self.newest),
            at: clock::now(),
            agent: Some(agent.clone()),
            what,
        };
        match row(entry, self.text) {
            Ok(row) => Some(Row {
                tab,
                verdict: true,
                ..row
            }),
            Err(why) => {
                self.gap.add(1, &why.to_string());
                None
            }
        }
    }

    /// A verdict could not be written with its badge.
    pub fn lost_verdict(&self, why: &anyhow::Error) {
        self.gap.add(1, &format!("{why:#}"));
    }

    /// Writes down what waits, then ends.
    pub async fn close(self) {
        drop(self.entries);
        if let Err(why) = self.task.await {
            warn!("the journal did not end well: {why}");
        }
    }

    fn put(&self, at: Stamp, agent: Option<AgentKey>, what: What) {
        let entry = Entry {
            seq: next(&self.newest),
            at,
            agent,
            what,
        };
        if self.entries.try_send(entry).is_err() {
            self.gap.add(1, "more happened than could be written");
        }
    }
}

/// The next free place. The numbers order nothing but records.
fn next(newest: &AtomicI64) -> i64 {
    newest.fetch_add(1, Ordering::Relaxed).saturating_add(1)
}

fn row(entry: Entry, text: bool) -> Result<Row, journal::JournalError> {
    let Entry {
        seq,
        at,
        agent,
        what,
    } = entry;
    let what = if text {
        what
    } else {
        journal::without_text(what)
    };
    Ok(Row {
        seq,
        at_ms: at.wall_ms,
        agent: agent.map(|agent| agent.to_string()),
        tab: None,
        verdict: false,
        record: journal::encode(&Record { at, what })?,
    })
}

struct Writer {
    shelf: Arc<dyn Shelf>,
    hub: hub::Handle,
    gap: Arc<Gap>,
    newest: Arc<AtomicI64>,
    text: bool,
    bounds: Bounds,
    failing: bool,
}

impl Writer {
    async fn run(mut self, mut inbox: mpsc::Receiver<Entry>) {
        let mut prune_at = clock::boot() + RETRY;
        let mut open = true;
        while open {
            let wait = if self.failing { RETRY } else { PRUNE };
            let mut batch = Vec::new();
            let gap = Arc::clone(&self.gap);
            tokio::select! {
                received = inbox.recv_many(&mut batch, BATCH_ROWS) => {
                    open = received > 0;
                    self.fill(&mut inbox, &mut batch).await;
                }
                () = gap.opened.notified(), if !self.failing => {}
                () = clock::passed(wait) => {}
            }
            let full = self.write(batch).await;
            if full || clock::boot() >= prune_at {
                self.prune().await;
                prune_at = clock::boot() + PRUNE;
            }
        }
    }

    /// What comes within the next moment belongs to the same transaction.
    async fn fill(&self, inbox: &mut mpsc::Receiver<Entry>, batch: &mut Vec<Entry>) {
        let until = clock::boot() + BATCH;
        while !batch.is_empty() && batch.len() < BATCH_ROWS {
            let room = BATCH_ROWS - batch.len();
            tokio::select! {
                received = inbox.recv_many(batch, room) => if received == 0 { return },
                () = clock::reached(until) => return,
            }
        }
    }

    /// Writes them, the gap before them first; whether the shelf is fuller than it may be.
    async fn write(&mut self, batch: Vec<Entry>) -> bool {
        let count = batch.len();
        let mut rows = Vec::with_capacity(count + 1);
        for entry in batch {
            match row(entry, self.text) {
                Ok(row) => rows.push(row),
                Err(why) => self.gap.add(1, &why.to_string()),
            }
        }
        let lost = self.gap.now().map(|lost| Lost {
            to_ms: clock::wall_ms(),
            ..lost
        });
        if let Some(lost) = &lost {
            let entry = Entry {
                seq: next(&self.newest),
                at: clock::from_wall_ms(lost.to_ms),
                agent: None,
                what: What::Lost(lost.clone()),
            };
            match row(entry, true) {
                Ok(row) => rows.insert(0, row),
                Err(why) => warn!("{why}"),
            }
        }
        if rows.is_empty() {
            return false;
        }
        match self.shelf.append(rows).await {
            Ok(bytes) => {
                if let Some(lost) = &lost {
                    self.gap.written(lost);
                    info!(
                        "Lost: {} records of the journal ({}).",
                        lost.count, lost.why
                    );
                    self.failing = false;
                    // Also when only a badge could not be written: its owner then tries again.
                    self.say(None).await;
                }
                bytes > self.bounds.bytes_max
            }
            Err(why) => {
                self.gap.add(
                    u64::try_from(count).unwrap_or(u64::MAX),
                    &format!("{why:#}"),
                );
                if !self.failing {
                    self.failing = true;
                    error!("The journal can't be written: {why:#}");
                    self.say(Some(Cause::HistoryNotSaved)).await;
                }
                false
            }
        }
    }

    async fn prune(&mut self) {
        let before_ms = clock::wall_ms().saturating_sub(self.bounds.age_ms_max);
        loop {
            match self.shelf.prune(before_ms, self.bounds.bytes_max).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(why) => {
                    warn!("Old records of the journal can't be removed: {why:#}");
                    return;
                }
            }
        }
    }

    async fn say(&self, sentence: Option<Cause>) {
        // An error means that the hub has stopped: nobody is left to be told.
        drop(self.hub.degraded(Degraded::Journal, sentence).await);
    }
}
