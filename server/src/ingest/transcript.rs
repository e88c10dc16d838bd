//! The transcript witness: follows the JSONL file of each agent that is to be followed, by offset, inode
//! and unfinished line, and reads the end of it backwards when it is first opened. Files are Claude's:
//! only read, and only inside the projects folder of a directory of Claude's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use purplemux_core::witness::{TranscriptFact, TranscriptKind};
use purplemux_core::{AgentKey, ConversationId, Event, Time};
use purplemux_wire::transcript::{self as wire, Lines, Tail};
use rustix::fs::OFlags;
use thiserror::Error;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::hub::{self, Stopped};
use crate::ingest::odd::{Kind, Odd};
use crate::ingest::process::ClaudeDirs;
use crate::ingest::watch::{Seen, Watch};
use crate::{clock, task};

/// A file is read in pieces of this size, forwards and backwards.
const BLOCK: u64 = 256 * 1024;
/// The newest turn is looked for this far back. More would hold up the first badge after a start; what is
/// not found within it counts as not written.
const BACK_MAX: u64 = 32 * 1024 * 1024;
/// Claude writes a transcript first at the first prompt; its folder too. Until both exist they are looked
/// for this often, while somebody wants them.
const APPEARS: Duration = Duration::from_millis(200);
/// Claude writes the first line of a turn 0.15 to 0.3 s after the prompt (measured, Claude Code 2.1.332). One that
/// has not done so after this long keeps no transcript.
const MISSING_AFTER: Duration = Duration::from_secs(3);
/// Without a watch, and while a file can't be read.
const SWEEP_DEGRADED: Duration = Duration::from_secs(1);
/// What a look at a file that is not followed reads of its end, for what a row shows beside its badge.
const LOOK_MAX: u64 = 1024 * 1024;
/// Files that are read at the same time: each may hold a line of 8 MiB, and one that is slow holds up nobody.
const READING: usize = 8;
/// Bytes before the place that was read up to, by which a file that was written anew is told.
const MARK_BYTES: usize = 64;

/// What the hub wants of one agent's transcript. Leaf data: the hub never waits for a file.
#[derive(Debug, Default)]
struct Wish {
    wanted: Mutex<Wanted>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Wanted {
    on: bool,
    path: Option<Arc<str>>,
    conversation: Option<ConversationId>,
    /// `path` and `conversation` were set anew.
    moved: bool,
    /// What the row shows beside its badge is wanted once, whether or not the file is followed.
    look: bool,
    reads: Vec<u64>,
}

impl Wish {
    fn change(&self, change: impl FnOnce(&mut Wanted)) {
        change(&mut self.wanted.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }
}

/// One agent that is followed; ends when it is dropped.
#[derive(Debug)]
struct Follower {
    wish: Arc<Wish>,
    task: JoinHandle<()>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Whose timeline somebody has open: while it is, its transcript is followed, whatever its badge. A part of the
/// page that shows a timeline holds an [`OpenTimeline`].
#[derive(Debug)]
pub struct Timelines {
    open: Mutex<BTreeMap<AgentKey, usize>>,
    changed: watch::Sender<()>,
}

/// A timeline that is open until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct OpenTimeline {
    timelines: Arc<Timelines>,
    agent: AgentKey,
}

impl Timelines {
    /// None is open.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let (changed, _) = watch::channel(());
        Arc::new(Self {
            open: Mutex::default(),
            changed,
        })
    }

    /// Somebody looks at this agent's timeline from now on.
    pub fn open(self: &Arc<Self>, agent: AgentKey) -> OpenTimeline {
        *self.lock().entry(agent.clone()).or_default() += 1;
        self.changed.send_replace(());
        OpenTimeline {
            timelines: Arc::clone(self),
            agent,
        }
    }

    fn is_open(&self, agent: &AgentKey) -> bool {
        self.lock().contains_key(agent)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<AgentKey, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenTimeline {
    fn drop(&mut self) {
        let mut open = self.timelines.lock();
        if let Some(viewers) = open.get_mut(&self.agent) {
            *viewers -= 1;
            if *viewers == 0 {
                open.remove(&self.agent);
            }
        }
        drop(open);
        self.timelines.changed.send_replace(());
    }
}

/// All transcripts; held by the hub alone.
#[derive(Debug)]
pub struct Transcripts {
    hub: hub::Handle,
    dirs: Arc<ClaudeDirs>,
    routes: Arc<Routes>,
    followers: BTreeMap<AgentKey, Follower>,
}

impl Transcripts {
    /// Follows nothing yet.
    #[must_use]
    pub fn new(hub: hub::Handle, dirs: Arc<ClaudeDirs>) -> Self {
        Self {
            hub,
            dirs,
            routes: Routes::new(),
            followers: BTreeMap::new(),
        }
    }

    /// Reads up to the end now, then answers `TranscriptRead`.
    pub fn read(&mut self, agent: AgentKey, request: u64) {
        self.wish(agent, |wanted| wanted.reads.push(request));
    }

    /// Follows by a watch while `on`; the offset is kept when it is not.
    pub fn watch(&mut self, agent: AgentKey, on: bool) {
        self.wish(agent, |wanted| wanted.on = on);
    }

    /// This is the agent's transcript from now on.
    pub fn follow(
        &mut self,
        agent: AgentKey,
        path: Option<Arc<str>>,
        conversation: Option<Arc<str>>,
    ) {
        self.wish(agent, |wanted| {
            wanted.path = path;
            wanted.conversation = conversation.map(ConversationId);
            wanted.moved = true;
            wanted.look = true;
        });
    }

    /// The agent is gone.
    pub fn forget(&mut self, agent: &AgentKey) {
        self.followers.remove(agent);
    }

    fn wish(&mut self, agent: AgentKey, change: impl FnOnce(&mut Wanted)) {
        let follower = self.followers.entry(agent.clone()).or_insert_with(|| {
            let wish = Arc::new(Wish::default());
            let reader = Reader {
                hub: self.hub.clone(),
                dirs: Arc::clone(&self.dirs),
                routes: Arc::clone(&self.routes),
                agent,
                wish: Arc::clone(&wish),
                source: Source::Unknown,
                tail: Followed::default(),
                bell: Arc::default(),
                watched: None,
                readable: Readable::Yes,
                missing: None,
            };
            Follower {
                wish,
                task: task::spawn("transcript", async move {
                    // The hub has stopped; there is nobody to tell.
                    drop(reader.run().await);
                }),
            }
        });
        follower.wish.change(change);
    }
}

/// Rings when a file may have changed.
#[derive(Debug, Default)]
struct Bell {
    rung: Notify,
    /// The watch behind it is gone, with the folder that was watched.
    lost: AtomicBool,
}

/// Who wants to hear of which file: one watcher for all transcripts, since the kernel gives few.
#[derive(Debug)]
struct Routes {
    watch: Mutex<Watch>,
    bells: Mutex<BTreeMap<PathBuf, Vec<Arc<Bell>>>>,
    reading: Semaphore,
    /// Looks are nobody's hurry: one at a time.
    looking: Semaphore,
}

impl Routes {
    fn new() -> Arc<Self> {
        let (watch, mut seen) = Watch::new();
        let routes = Arc::new(Self {
            watch: Mutex::new(watch),
            bells: Mutex::default(),
            reading: Semaphore::new(READING),
            looking: Semaphore::new(1),
        });
        let weak = Arc::downgrade(&routes);
        task::spawn("transcript watch", async move {
            while let Some(seen) = seen.recv().await {
                let Some(routes) = weak.upgrade() else {
                    return;
                };
                match seen {
                    Seen::Made(path) | Seen::Grew(path) | Seen::Written(path) => {
                        routes.ring(|file| *file == path, false);
                    }
                    Seen::Removed(path) => {
                        routes.ring(|file| *file == path, false);
                        routes.ring(|file| file.parent() == Some(&path), true);
                    }
                    Seen::Overflow => routes.ring(|_| true, false),
                }
            }
        });
        routes
    }

    /// Rings `bell` at every change of `file` from now on; false: it can't be watched.
    fn add(&self, file: &Path, bell: &Arc<Bell>) -> bool {
        let Some(folder) = file.parent() else {
            return false;
        };
        // The folder is watched and not the file: a file that is replaced keeps its listeners.
        let added = self
            .watch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(folder);
        if let Err(why) = added {
            debug!("{}: {why}", folder.display());
            return false;
        }
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells
            .entry(file.to_owned())
            .or_default()
            .push(Arc::clone(bell));
        true
    }

    fn remove(&self, file: &Path, bell: &Arc<Bell>) {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = bells.get_mut(file) {
            all.retain(|other| !Arc::ptr_eq(other, bell));
            if all.is_empty() {
                bells.remove(file);
            }
        }
        let still = bells.keys().any(|other| other.parent() == file.parent());
        drop(bells);
        if let Some(folder) = file.parent().filter(|_| !still) {
            self.watch
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(folder);
        }
    }

    fn ring(&self, concerns: impl Fn(&Path) -> bool, lost: bool) {
        let bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, all) in bells.iter().filter(|(file, _)| concerns(file)) {
            for bell in all {
                bell.lost.fetch_or(lost, Ordering::Relaxed);
                bell.rung.notify_one();
            }
        }
    }
}

/// Where an agent's transcript is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// Nobody has said, or what was said was refused.
    Unknown,
    /// Looked for by its id in every projects folder there is: not written yet.
    Unwritten,
    /// Here, whether or not it has been written yet.
    At(PathBuf),
}

/// Whether a file could be read the last time; said and counted once, until it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readable {
    Yes,
    /// Not now: looked at again soon.
    NotNow,
    /// It is no file of Claude's: looked at again when something happens to it.
    Never,
}

struct Reader {
    hub: hub::Handle,
    dirs: Arc<ClaudeDirs>,
    routes: Arc<Routes>,
    agent: AgentKey,
    wish: Arc<Wish>,
    source: Source,
    tail: Followed,
    bell: Arc<Bell>,
    watched: Option<PathBuf>,
    readable: Readable,
    /// Since when it has been looked for without being there; told once.
    missing: Option<(Time, bool)>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.unwatch();
    }
}

impl Reader {
    async fn run(mut self) -> Result<(), Stopped> {
        let wish = Arc::clone(&self.wish);
        let bell = Arc::clone(&self.bell);
        let timelines = Arc::clone(&self.hub.witnesses().timelines);
        let mut viewers = timelines.changed.subscribe();
        let mut rounds = self.hub.witnesses().rounds.clone();
        let mut on = false;
        loop {
            let wait = match (on, self.readable, &self.watched) {
                (false, _, _) | (true, Readable::Never, _) => None,
                (true, Readable::NotNow, _) => Some(SWEEP_DEGRADED),
                (true, Readable::Yes, _) if !self.tail.opened => Some(APPEARS),
                // A watch may lose an event: then the safety net says when to look.
                (true, Readable::Yes, Some(_)) => None,
                (true, Readable::Yes, None) => Some(SWEEP_DEGRADED),
            };
            tokio::select! {
                () = wish.changed.notified() => {}
                () = bell.rung.notified() => {}
                () = clock::passed(wait.unwrap_or_default()), if wait.is_some() => {}
                Ok(()) = rounds.changed(), if on => {}
                Ok(()) = viewers.changed() => {}
            }
            let (wanted, moved, look, (path, conversation), reads) = {
                let mut wanted = wish.wanted.lock().unwrap_or_else(PoisonError::into_inner);
                let moved = std::mem::take(&mut wanted.moved);
                let look = std::mem::take(&mut wanted.look);
                let named = (wanted.path.clone(), wanted.conversation.clone());
                let reads = std::mem::take(&mut wanted.reads);
                (wanted.on, moved, look, named, reads)
            };
            on = wanted || timelines.is_open(&self.agent);
            if moved || !matches!(self.source, Source::At(_)) {
                self.locate(path.as_deref(), conversation.as_ref());
            }
            if self.bell.lost.swap(false, Ordering::Relaxed) {
                self.unwatch();
            }
            if on {
                self.watch();
            } else {
                self.unwatch();
            }
            if on || !reads.is_empty() {
                let ok = self.read().await?;
                if on {
                    self.tell_missing().await?;
                } else {
                    self.missing = None;
                }
                for request in reads {
                    let agent = self.agent.clone();
                    let read = Event::TranscriptRead { agent, request, ok };
                    self.hub.send(read).await?;
                }
            } else {
                self.missing = None;
                if look && !self.tail.opened {
                    self.look().await?;
                }
            }
        }
    }

    fn locate(&mut self, path: Option<&str>, conversation: Option<&ConversationId>) {
        let dirs = self.dirs.all();
        let named = path.and_then(|path| match allowed(Path::new(path), &dirs) {
            Ok(path) => Some(path),
            Err(why) => {
                warn!(agent = %self.agent, path, "The transcript is not read: {why}.");
                let why = format!("{path}: {why}");
                self.hub.witnesses().odd.add(Kind::TranscriptRefused, why);
                None
            }
        });
        let source = match (named, conversation) {
            (Some(path), _) => Source::At(path),
            (None, Some(conversation)) => search(conversation, &dirs),
            (None, None) => Source::Unknown,
        };
        if source != self.source {
            self.unwatch();
            self.tail = Followed::default();
            self.readable = Readable::Yes;
            self.source = source;
            self.missing = None;
        }
    }

    fn watch(&mut self) {
        let Source::At(path) = &self.source else {
            return;
        };
        if self.watched.is_none() && self.routes.add(path, &self.bell) {
            self.watched = Some(path.clone());
        }
    }

    fn unwatch(&mut self) {
        if let Some(path) = self.watched.take() {
            self.routes.remove(&path, &self.bell);
        }
    }

    /// Says so when it has been looked for long enough in vain.
    async fn tell_missing(&mut self) -> Result<(), Stopped> {
        let unwritten = match &self.source {
            Source::Unwritten => true,
            Source::At(path) => !self.tail.opened && is_missing(path),
            Source::Unknown => false,
        };
        if !unwritten {
            self.missing = None;
            return Ok(());
        }
        let now = clock::boot();
        let (since, told) = *self.missing.get_or_insert((now, false));
        if told || now.since(since) < MISSING_AFTER {
            return Ok(());
        }
        self.missing = Some((since, true));
        let agent = self.agent.clone();
        self.hub.send(Event::TranscriptMissing { agent }).await
    }

    /// Tells everything that is new; whether the file could be read.
    async fn read(&mut self) -> Result<bool, Stopped> {
        let path = match &self.source {
            Source::At(path) => path.clone(),
            Source::Unwritten => return Ok(true),
            Source::Unknown => return Ok(false),
        };
        loop {
            let mut tail = std::mem::take(&mut self.tail);
            let file = path.clone();
            let odd = Arc::clone(&self.hub.witnesses().odd);
            let routes = Arc::clone(&self.routes);
            let Ok(turn) = routes.reading.acquire().await else {
                return Ok(false);
            };
            // A first look may read megabytes; other agents are not to wait for that.
            let read = tokio::task::spawn_blocking(move || {
                let read = tail.read(&file);
                tail.count(&file, &odd);
                (tail, read)
            })
            .await;
            drop(turn);
            let (tail, read) = match read {
                Ok(done) => done,
                Err(failed) => {
                    warn!(agent = %self.agent, "reading the transcript: {failed}");
                    return Ok(false);
                }
            };
            self.tail = tail;
            match read {
                Ok((facts, more)) => {
                    self.readable = Readable::Yes;
                    self.tell(facts).await?;
                    if !more {
                        return Ok(true);
                    }
                }
                Err(Unread::Missing) => {
                    // Written first at the first prompt: until then there is nothing in it.
                    self.readable = Readable::Yes;
                    self.tail.gone = self.tail.opened;
                    return Ok(true);
                }
                Err(Unread::Never(why)) => {
                    self.cannot_read(&path, Readable::Never, Kind::TranscriptRefused, &why);
                    return Ok(false);
                }
                Err(Unread::NotNow(why)) => {
                    self.cannot_read(&path, Readable::NotNow, Kind::TranscriptUnread, &why);
                    return Ok(false);
                }
            }
        }
    }

    /// Tells what the row shows beside its badge, of a file that is not followed. What it can't read it leaves:
    /// whoever follows the file will say so.
    async fn look(&mut self) -> Result<(), Stopped> {
        let Source::At(path) = self.source.clone() else {
            return Ok(());
        };
        let Ok(turn) = self.routes.looking.acquire().await else {
            return Ok(());
        };
        let looked = tokio::task::spawn_blocking(move || look(&path)).await;
        drop(turn);
        match looked {
            Ok(Ok(facts)) => self.tell(facts).await,
            Ok(Err(why)) => {
                debug!(agent = %self.agent, "a look at the transcript: {why:?}");
                Ok(())
            }
            Err(failed) => {
                warn!(agent = %self.agent, "looking at the transcript: {failed}");
                Ok(())
            }
        }
    }

    async fn tell(&self, facts: Vec<TranscriptFact>) -> Result<(), Stopped> {
        if facts.is_empty() {
            return Ok(());
        }
        let agent = self.agent.clone();
        self.hub.send(Event::TranscriptGrew { agent, facts }).await
    }

    fn cannot_read(&mut self, path: &Path, so: Readable, kind: Kind, why: &str) {
        if self.readable != so {
            self.readable = so;
            let why = format!("{}: {why}", path.display());
            debug!(agent = %self.agent, "{why}");
            self.hub.witnesses().odd.add(kind, why);
        }
    }
}

/// Why a transcript can't be read.
#[derive(Debug)]
enum Unread {
    /// There is no such file.
    Missing,
    /// No file of Claude's: a folder, a link, a pipe, a device.
    Never(String),
    /// Not permitted, or the disk fails.
    NotNow(String),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        let link = rustix::io::Errno::LOOP.raw_os_error();
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
            Self::Missing
        } else if error.raw_os_error() == Some(link) {
            Self::Never("a link".to_owned())
        } else {
            Self::NotNow(error.to_string())
        }
    }
}

fn is_missing(path: &Path) -> bool {
    matches!(fs::symlink_metadata(path), Err(error) if error.kind() == ErrorKind::NotFound)
}

/// How far a file has been read.
#[derive(Debug, Default)]
struct Followed {
    opened: bool,
    inode: u64,
    offset: u64,
    lines: Lines,
    /// The bytes before `offset`. If they are others now, the file was written anew.
    mark: Vec<u8>,
    /// It was removed after it had been opened: whatever comes in its place is another.
    gone: bool,
    /// Its first prompt is known, or can't be found in its head.
    headed: bool,
    /// Of the lines that could not be used, how many have been counted.
    counted: (u64, u64),
}

impl Followed {
    /// The facts of what is new, at most one block of it, and whether there is more.
    fn read(&mut self, path: &Path) -> Result<(Vec<TranscriptFact>, bool), Unread> {
        let file = open(path)?;
        let meta = file.metadata()?;
        if !self.opened {
            let mut facts = self.head(&file, meta.len())?;
            facts.extend(self.open_at_end(&file, &meta, BACK_MAX)?);
            return Ok((facts, false));
        }
        let mut facts = Vec::new();
        if self.is_another(&file, &meta)? {
            // Replaced, cut short, or made anew: another file, whose lines replace those of the first.
            *self = Self {
                opened: true,
                inode: meta.ino(),
                ..Self::default()
            };
            facts.push(TranscriptFact {
                written_ms: None,
                sidechain: false,
                kind: TranscriptKind::Rewound { to_ms: None },
            });
            if meta.len() > BACK_MAX {
                facts.extend(self.head(&file, meta.len())?);
                facts.extend(self.open_at_end(&file, &meta, BACK_MAX)?);
                return Ok((facts, false));
            }
        }
        facts.extend(self.head(&file, meta.len())?);
        let mut block = vec![0; usize::try_from(BLOCK).unwrap_or(usize::MAX)];
        let read = file.read_at(&mut block, self.offset)?;
        let block = &block[..read];
        self.offset += u64::try_from(read).unwrap_or(0);
        self.remember(block);
        facts.extend(self.lines.push_facts(block));
        Ok((facts, self.offset < meta.len() && read > 0))
    }

    fn is_another(&self, file: &File, meta: &fs::Metadata) -> Result<bool, Unread> {
        if self.gone || meta.ino() != self.inode || meta.len() < self.offset {
            return Ok(true);
        }
        let mut now = vec![0; self.mark.len()];
        let from = self.offset - u64::try_from(now.len()).unwrap_or(self.offset);
        match file.read_exact_at(&mut now, from) {
            Ok(()) => Ok(now != self.mark),
            // Cut short just now.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    fn remember(&mut self, read: &[u8]) {
        self.mark
            .extend_from_slice(&read[read.len().saturating_sub(MARK_BYTES)..]);
        self.mark
            .drain(..self.mark.len().saturating_sub(MARK_BYTES));
    }

    /// What the first bytes say, once they do.
    fn head(&mut self, file: &File, len: u64) -> Result<Vec<TranscriptFact>, Unread> {
        if self.headed {
            return Ok(Vec::new());
        }
        let facts = wire::head(&head_of(file)?);
        let asked = |fact: &TranscriptFact| matches!(fact.kind, TranscriptKind::FirstPrompt { .. });
        self.headed = len >= BLOCK || facts.iter().any(asked);
        Ok(if self.headed { facts } else { Vec::new() })
    }

    /// Reads backwards until the newest turn is complete, at most `back` bytes, then stands at the end.
    fn open_at_end(
        &mut self,
        file: &File,
        meta: &fs::Metadata,
        back: u64,
    ) -> Result<Vec<TranscriptFact>, Unread> {
        let end = meta.len();
        let mut tail = Tail::new();
        let mut start = end;
        while start > 0 && !tail.is_enough() && end - start < back {
            let length = BLOCK.min(start);
            start -= length;
            let mut block = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut block, start)?;
            tail.push_before(&block);
        }
        let offset = end - tail.unfinished_bytes();
        let marked = offset.min(u64::try_from(MARK_BYTES).unwrap_or(0));
        let mut mark = vec![0; usize::try_from(marked).unwrap_or(0)];
        file.read_exact_at(&mut mark, offset - marked)?;
        let (facts, lines) = tail.finish(start == 0);
        *self = Self {
            opened: true,
            inode: meta.ino(),
            offset,
            lines,
            mark,
            gone: false,
            headed: self.headed,
            counted: (0, 0),
        };
        Ok(facts)
    }

    /// Counts the lines that could not be used.
    fn count(&mut self, path: &Path, odd: &Odd) {
        let found = (self.lines.broken(), self.lines.skipped());
        let (broken, skipped) = std::mem::replace(&mut self.counted, found);
        let path = path.display();
        odd.add_many(Kind::LineBroken, found.0.saturating_sub(broken), &path);
        odd.add_many(Kind::LineTooLong, found.1.saturating_sub(skipped), &path);
    }
}

/// What a row shows beside its badge, of a file that is not followed.
fn look(path: &Path) -> Result<Vec<TranscriptFact>, Unread> {
    let file = open(path)?;
    let meta = file.metadata()?;
    let mut facts = wire::head(&head_of(&file)?);
    let newest = Followed::default().open_at_end(&file, &meta, LOOK_MAX)?;
    facts.extend(wire::beside(newest));
    Ok(facts)
}

fn head_of(file: &File) -> io::Result<Vec<u8>> {
    let mut head = vec![0; usize::try_from(BLOCK).unwrap_or(usize::MAX)];
    let read = file.read_at(&mut head, 0)?;
    head.truncate(read);
    Ok(head)
}

/// As [`open`], for whom it does not matter why it can't be had.
pub(crate) fn open_regular(path: &Path) -> Option<File> {
    open(path).ok()
}

/// Opens a regular file, not through a link and without waiting for anything. What is none is not even
/// opened: opening a device may do something.
fn open(path: &Path) -> Result<File, Unread> {
    let regular = |meta: &fs::Metadata| {
        let kind = meta.file_type();
        if kind.is_file() {
            Ok(())
        } else if kind.is_symlink() {
            Err(Unread::Never("a link".to_owned()))
        } else {
            Err(Unread::Never("no regular file".to_owned()))
        }
    };
    regular(&fs::symlink_metadata(path)?)?;
    // It may have been replaced since.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).map_err(io::Error::other)?)
        .open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

/// Why a path that a hook named is not read.
#[derive(Debug, Error, PartialEq, Eq)]
enum NotAllowed {
    #[error("it is outside of Claude's projects folders")]
    Outside,
    #[error("it is no .jsonl file")]
    NoTranscript,
}

/// Checks a path that came from outside: a `.jsonl` file inside `<Claude's directory>/projects`, with
/// every link on the way resolved. It need not exist yet.
fn allowed(path: &Path, dirs: &[PathBuf]) -> Result<PathBuf, NotAllowed> {
    if path
        .extension()
        .is_none_or(|extension| extension != "jsonl")
    {
        return Err(NotAllowed::NoTranscript);
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(NotAllowed::NoTranscript);
    };
    let folder = resolve(folder).ok_or(NotAllowed::Outside)?;
    let inside = dirs
        .iter()
        .filter_map(|dir| resolve(&dir.join("projects")))
        .any(|projects| folder.starts_with(&projects));
    if inside {
        Ok(folder.join(name))
    } else {
        Err(NotAllowed::Outside)
    }
}

/// The path with all links of its existing part resolved; what does not exist yet must be plain names.
fn resolve(path: &Path) -> Option<PathBuf> {
    let plain = path
        .components()
        .all(|part| !matches!(part, std::path::Component::ParentDir));
    if !path.is_absolute() || !plain {
        return None;
    }
    let mut missing = Vec::new();
    for existing in path.ancestors() {
        if let Ok(mut real) = fs::canonicalize(existing) {
            real.extend(missing.iter().rev());
            return Some(real);
        }
        missing.push(existing.file_name()?.to_owned());
    }
    None
}

/// Looks for the transcript of a conversation by its id alone; a folder's name is never guessed.
fn search(conversation: &ConversationId, dirs: &[PathBuf]) -> Source {
    let id = conversation.as_str();
    let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if id.is_empty() || !plain {
        return Source::Unknown;
    }
    let name = format!("{id}.jsonl");
    let mut looked = false;
    let mut folders = BTreeSet::new();
    for dir in dirs {
        match fs::read_dir(dir.join("projects")) {
            Ok(entries) => {
                looked = true;
                folders.extend(entries.flatten().map(|entry| entry.path()));
            }
            // The first prompt ever makes the folder.
            Err(error) if error.kind() == ErrorKind::NotFound => looked |= dir.is_dir(),
            Err(error) => debug!("{}: {error}", dir.display()),
        }
    }
    let found = folders
        .into_iter()
        .map(|folder| folder.join(&name))
        .find(|path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file()))
        .and_then(|path| allowed(&path, dirs).ok());
    match found {
        Some(path) => Source::At(path),
        None if looked => Source::Unwritten,
        None => Source::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use crate::ingest::process::Processes;

    fn kinds(facts: &[TranscriptFact]) -> Vec<&TranscriptKind> {
        facts.iter().map(|fact| &fact.kind).collect()
    }

    const PROMPT: &str = r#"{"type":"user","message":{"role":"user","content":"hello"}}"#;
    const END: &str = r#"{"type":"system","subtype":"turn_duration","durationMs":5}"#;

    fn append(path: &Path, text: &str) {
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn t02_an_unfinished_line_is_told_once_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let (first, second) = END.split_at(20);
        fs::write(&path, format!("{PROMPT}\n{first}")).unwrap();
        let mut followed = Followed::default();
        let (facts, _) = followed.read(&path).unwrap();
        assert!(
            matches!(
                kinds(&facts)[..],
                [
                    TranscriptKind::FirstPrompt { .. },
                    TranscriptKind::Prompted { .. }
                ]
            ),
            "{facts:?}"
        );
        append(&path, second);
        assert_eq!(followed.read(&path).unwrap().0, []);
        append(&path, "\n");
        let (facts, more) = followed.read(&path).unwrap();
        assert!(matches!(
            kinds(&facts)[..],
            [TranscriptKind::TurnEnded { .. }]
        ));
        assert!(!more);
        assert_eq!(followed.read(&path).unwrap().0, []);
        // The cut falls inside a character.
        let line = r#"{"type":"ai-title","aiTitle":"標題"}"#;
        let cut = line.find('題').unwrap() + 1;
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&line.as_bytes()[..cut]).unwrap();
        assert_eq!(followed.read(&path).unwrap().0, []);
        file.write_all(&line.as_bytes()[cut..]).unwrap();
        file.write_all(b"\n").unwrap();
        let (facts, _) = followed.read(&path).unwrap();
        assert!(
            matches!(kinds(&facts)[..], [TranscriptKind::Title { text, .. }] if &**text == "標題"),
            "{facts:?}"
        );
    }

    #[test]
    fn t03_a_file_cut_short_replaced_or_made_anew_is_read_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let turn = format!("{PROMPT}\n{END}\n");
        fs::write(&path, &turn).unwrap();
        let mut followed = Followed::default();
        assert_eq!(followed.read(&path).unwrap().0.len(), 3);
        let anew = |followed: &mut Followed, what: &str| {
            let (facts, more) = followed.read(&path).unwrap();
            assert!(!more);
            let told = kinds(&facts);
            assert_eq!(told[0], &TranscriptKind::Rewound { to_ms: None }, "{what}");
            let decides = |kind: &&&TranscriptKind| {
                matches!(
                    kind,
                    TranscriptKind::Prompted { .. } | TranscriptKind::TurnEnded { .. }
                )
            };
            told.iter().filter(decides).count()
        };
        fs::write(&path, format!("{PROMPT}\n")).unwrap();
        assert_eq!(anew(&mut followed, "cut short"), 1);
        fs::write(&path, format!("{PROMPT} \n{END}\n")).unwrap();
        assert_eq!(anew(&mut followed, "cut short and longer than before"), 2);
        let other = dir.path().join("b.jsonl");
        fs::write(&other, format!("{turn}{PROMPT}\n")).unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(anew(&mut followed, "replaced"), 3);
        fs::remove_file(&path).unwrap();
        assert!(matches!(followed.read(&path), Err(Unread::Missing)));
        followed.gone = true;
        fs::write(&path, format!("{turn}{turn}")).unwrap();
        assert_eq!(anew(&mut followed, "made anew"), 4);
        append(&path, &turn);
        assert_eq!(followed.read(&path).unwrap().0.len(), 2, "and goes on");
    }

    #[test]
    fn t05_a_giant_line_is_passed_over_or_read_in_bounded_memory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let image = |bytes: usize| {
            format!(
                r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t1","content":[{{"type":"image","source":{{"data":"{}"}}}}]}}]}}}}"#,
                "A".repeat(bytes)
            ) + "\n"
        };
        // Last, and read whole; between the end marker and the end of the file, and too long to be read.
        fs::write(&path, format!("{PROMPT}\n{}", image(3_000_000))).unwrap();
        let (facts, _) = Followed::default().read(&path).unwrap();
        assert!(matches!(
            kinds(&facts)[1..],
            [
                TranscriptKind::Prompted { .. },
                TranscriptKind::ToolEnded { .. }
            ]
        ));
        fs::write(&path, format!("{PROMPT}\n{END}\n{}", image(9_000_000))).unwrap();
        let odd = Odd::default();
        let mut followed = Followed::default();
        let (facts, _) = followed.read(&path).unwrap();
        assert!(matches!(
            kinds(&facts)[1..],
            [
                TranscriptKind::Prompted { .. },
                TranscriptKind::TurnEnded { .. }
            ]
        ));
        followed.count(&path, &odd);
        followed.count(&path, &odd);
        assert_eq!(odd.counts()[&Kind::LineTooLong].count, 1);
        // The same line while the file is followed.
        append(&path, &format!("{}{PROMPT}\n", image(9_000_000)));
        let mut facts = Vec::new();
        loop {
            let (new, more) = followed.read(&path).unwrap();
            facts.extend(new);
            assert!(followed.lines.held() <= wire::LINE_BYTES_MAX);
            if !more {
                break;
            }
        }
        assert!(matches!(
            kinds(&facts)[..],
            [TranscriptKind::Prompted { .. }]
        ));
        followed.count(&path, &odd);
        assert_eq!(odd.counts()[&Kind::LineTooLong].count, 2);
    }

    #[test]
    fn a_look_tells_what_a_row_shows_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let answer = r#"{"type":"assistant","message":{"model":"claude-opus-5-5","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn","usage":{"input_tokens":7}}}"#;
        let noise = format!("{{\"type\":\"mode\",\"x\":\"{}\"}}\n", "y".repeat(1000));
        // The first prompt is far behind what is read of the end.
        let text = format!(
            "{PROMPT}\n{}{PROMPT}\n{answer}\n{END}\n",
            noise.repeat(1500)
        );
        fs::write(&path, text).unwrap();
        assert!(matches!(
            kinds(&look(&path).unwrap())[..],
            [
                TranscriptKind::FirstPrompt { .. },
                TranscriptKind::Usage { .. },
                TranscriptKind::LastWords { .. }
            ]
        ));
    }

    #[test]
    fn t04_the_end_marker_is_found_behind_much_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let noise = format!(
            "{{\"type\":\"attachment\",\"x\":\"{}\"}}\n",
            "y".repeat(1000)
        );
        let text = format!("{PROMPT}\n{END}\n{}", noise.repeat(700));
        fs::write(&path, text).unwrap();
        let (facts, _) = Followed::default().read(&path).unwrap();
        assert!(matches!(
            kinds(&facts)[..],
            [
                TranscriptKind::FirstPrompt { .. },
                TranscriptKind::Prompted { .. },
                TranscriptKind::TurnEnded { .. }
            ]
        ));
    }

    #[test]
    fn s06_only_transcripts_inside_the_projects_folders_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let claude = root.join("claude");
        let projects = claude.join("projects");
        fs::create_dir_all(projects.join("p")).unwrap();
        fs::write(root.join("secret.jsonl"), "x").unwrap();
        symlink(&root, projects.join("out")).unwrap();
        symlink(root.join("secret.jsonl"), projects.join("p/link.jsonl")).unwrap();
        let dirs = [claude.clone()];

        let fine = projects.join("p/a.jsonl");
        assert_eq!(allowed(&fine, &dirs), Ok(fine.clone()));
        let not_yet = projects.join("new/a.jsonl");
        assert_eq!(allowed(&not_yet, &dirs), Ok(not_yet.clone()));
        for (path, why) in [
            (root.join("secret.jsonl"), NotAllowed::Outside),
            (projects.join("../../secret.jsonl"), NotAllowed::Outside),
            (projects.join("out/secret.jsonl"), NotAllowed::Outside),
            (PathBuf::from("/etc/passwd"), NotAllowed::NoTranscript),
            (PathBuf::from("/dev/zero"), NotAllowed::NoTranscript),
            (PathBuf::from("a.jsonl"), NotAllowed::Outside),
        ] {
            assert_eq!(allowed(&path, &dirs), Err(why), "{}", path.display());
        }
        let link = allowed(&projects.join("p/link.jsonl"), &dirs).unwrap();
        for odd in ["link.jsonl", "pipe.jsonl", "folder.jsonl"] {
            let path = link.with_file_name(odd);
            if odd == "pipe.jsonl" {
                rustix::fs::mknodat(
                    rustix::fs::CWD,
                    &path,
                    rustix::fs::FileType::Fifo,
                    rustix::fs::Mode::from_raw_mode(0o600),
                    0,
                )
                .unwrap();
            } else if odd == "folder.jsonl" {
                fs::create_dir(&path).unwrap();
            }
            // Neither read nor waited for.
            assert!(
                matches!(Followed::default().read(&path), Err(Unread::Never(_))),
                "{odd}"
            );
        }
        let device = Followed::default().read(Path::new("/dev/null"));
        assert!(matches!(device, Err(Unread::Never(_))));
    }

    #[test]
    fn t07_a_transcript_is_found_by_its_id() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("projects/-a-b");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("c0ffee-1.jsonl"), "").unwrap();
        let dirs = [fs::canonicalize(dir.path()).unwrap()];
        let search = |id: &str| search(&ConversationId::from(id), &dirs);
        assert_eq!(
            search("c0ffee-1"),
            Source::At(dirs[0].join("projects/-a-b/c0ffee-1.jsonl"))
        );
        assert_eq!(search("../x"), Source::Unknown);
        assert_eq!(search("other"), Source::Unwritten);
    }

    /// Transcripts of one agent, whose file is in a folder of Claude's.
    struct Scene {
        _dir: tempfile::TempDir,
        path: PathBuf,
        agent: AgentKey,
        transcripts: Transcripts,
        hub: hub::Handle,
        told: hub::Alone,
    }

    impl Scene {
        fn new(text: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = fs::canonicalize(dir.path()).unwrap();
            let folder = root.join("projects/-p");
            fs::create_dir_all(&folder).unwrap();
            let path = folder.join("a.jsonl");
            fs::write(&path, text).unwrap();
            let host = purplemux_core::HostId::from("here");
            let (processes, _) = Processes::new(host.clone(), root.join("home"));
            let dirs = processes.claude_dirs();
            dirs.add(root);
            let (hub, told) = hub::Handle::alone(processes);
            let mut transcripts = Transcripts::new(hub.clone(), dirs);
            let agent = AgentKey {
                host,
                pid: 1,
                start: 1,
            };
            let named = path.to_str().unwrap();
            transcripts.follow(agent.clone(), Some(Arc::from(named)), None);
            Self {
                _dir: dir,
                path,
                agent,
                transcripts,
                hub,
                told,
            }
        }

        /// The kinds of facts that are told next; within a second, or the file is not followed.
        async fn next(&mut self) -> Option<Vec<TranscriptKind>> {
            let told = tokio::time::timeout(Duration::from_secs(1), self.told.event()).await;
            let told = told.ok()?;
            let Event::TranscriptGrew { facts, .. } = told else {
                panic!("{told:?}");
            };
            Some(facts.into_iter().map(|fact| fact.kind).collect())
        }

        fn ends(kinds: Option<Vec<TranscriptKind>>) -> usize {
            let kinds = kinds.expect("something is told");
            let ends = kinds.iter();
            ends.filter(|kind| matches!(kind, TranscriptKind::TurnEnded { .. }))
                .count()
        }
    }

    #[tokio::test]
    async fn t10_a_timeline_that_is_open_keeps_the_file_followed_and_the_place_is_kept() {
        let mut scene = Scene::new(&format!("{PROMPT}\n{END}\n"));
        // A look alone: what the row is called, and nothing that decides.
        assert!(matches!(
            scene.next().await.unwrap()[..],
            [TranscriptKind::FirstPrompt { .. }]
        ));
        append(&scene.path, &format!("{END}\n"));
        assert_eq!(scene.next().await, None, "nobody follows it");
        assert_eq!(watches(&scene), 0);

        let timelines = Arc::clone(&scene.hub.witnesses().timelines);
        let one = timelines.open(scene.agent.clone());
        assert_eq!(Scene::ends(scene.next().await), 2);
        let another = timelines.open(scene.agent.clone());
        drop(one);
        append(&scene.path, &format!("{END}\n"));
        assert_eq!(Scene::ends(scene.next().await), 1, "it is still open");
        assert_eq!(watches(&scene), 1);
        drop(another);
        assert_eq!(scene.next().await, None);
        assert_eq!(watches(&scene), 0);
        append(&scene.path, &format!("{END}\n{END}\n"));
        assert_eq!(scene.next().await, None, "it is closed");

        // For the sake of its badge: from where it was left.
        scene.transcripts.watch(scene.agent.clone(), true);
        assert_eq!(Scene::ends(scene.next().await), 2);
        scene.transcripts.watch(scene.agent.clone(), false);
        assert_eq!(scene.next().await, None);
        append(&scene.path, &format!("{END}\n"));
        assert_eq!(scene.next().await, None);
    }

    fn watches(scene: &Scene) -> usize {
        let routes = &scene.transcripts.routes;
        routes.bells.lock().unwrap().len()
    }

    #[tokio::test]
    async fn t10_a_lost_watch_falls_back_to_the_safety_net() {
        let mut scene = Scene::new(&format!("{PROMPT}\n"));
        scene.transcripts.watch(scene.agent.clone(), true);
        scene.next().await.unwrap();
        // The watch is lost in silence: nothing is told until the safety net rings.
        let routes = Arc::clone(&scene.transcripts.routes);
        let folder = scene.path.parent().unwrap();
        routes.watch.lock().unwrap().remove(folder);
        append(&scene.path, &format!("{END}\n"));
        assert_eq!(scene.next().await, None);
        scene.told.round.send_replace(1);
        assert_eq!(Scene::ends(scene.next().await), 1);
    }

    #[tokio::test]
    async fn t10_a_folder_that_is_made_anew_is_watched_anew() {
        let mut scene = Scene::new(&format!("{PROMPT}\n"));
        scene.transcripts.watch(scene.agent.clone(), true);
        scene.next().await.unwrap();
        let folder = scene.path.parent().unwrap().to_owned();
        fs::remove_dir_all(&folder).unwrap();
        // Nothing is there, and nothing is told: what was read still holds.
        assert_eq!(scene.next().await, None);
        fs::create_dir(&folder).unwrap();
        fs::write(&scene.path, format!("{PROMPT}\n{END}\n")).unwrap();
        assert_eq!(Scene::ends(scene.next().await), 1);
        append(&scene.path, &format!("{END}\n"));
        assert_eq!(Scene::ends(scene.next().await), 1);
    }
}
