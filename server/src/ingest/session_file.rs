//! Claude's own status files: `sessions/<pid>.json` in each of Claude's directories, watched, read whole,
//! and told to the hub. Never written, never deleted; the content of a `.key` file is never opened, its
//! name alone says that a process has started.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use purplemux_core::{AgentKey, Event, Stamp, Time};
use purplemux_wire::sentence::Cause;
use purplemux_wire::session_file::{self, Entry, FILE_BYTES_MAX, Reading};
use rustix::fs::OFlags;
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, info};

use crate::hub::{self, Degraded, Stopped};
use crate::ingest::odd::Kind;
use crate::ingest::process::{ClaudeDirs, Processes};
use crate::ingest::watch::{Seen, Watch, WatchError};
use crate::{clock, task};

/// A file that was read half written is whole a moment later: Claude writes it in one call.
const RETRY_FIRST: Duration = Duration::from_millis(20);
/// Later attempts, so that a file that became readable again is read within 100 ms.
const RETRY: Duration = Duration::from_millis(80);
/// After this long the next change or the sweep has to bring it.
const RETRY_FOR: Duration = Duration::from_secs(3);
/// From when on an unreadable file is worth saying.
const UNREADABLE_AFTER: Duration = Duration::from_millis(100);
/// Without a watch, changes are still seen within two seconds.
const SWEEP_DEGRADED: Duration = Duration::from_secs(1);

/// Watches until the hub is gone. `looked` is answered when every directory known at the start has been
/// read once.
pub async fn run(hub: hub::Handle, processes: Processes, looked: oneshot::Sender<()>) {
    let (watch, seen) = Watch::new();
    let witness = Witness {
        dirs: processes.claude_dirs(),
        hub,
        processes,
        watch,
        sessions: BTreeMap::new(),
        files: BTreeMap::new(),
        retries: BTreeMap::new(),
        never: BTreeSet::new(),
        refused: BTreeSet::new(),
        sweep_at: None,
    };
    // The hub has stopped; there is nobody to tell.
    drop(witness.run(seen, looked).await);
}

/// The folder itself, or the nearest one above it that exists.
fn nearest(sessions: &Path) -> Option<&Path> {
    sessions.ancestors().find(|folder| folder.is_dir())
}

/// One `sessions` folder.
enum Folder {
    /// It is watched.
    Watched,
    /// It does not exist: the nearest folder above it that does is watched.
    Awaited { above: PathBuf },
    /// The watch was refused; the sweep looks at it.
    Swept,
}

/// What a file looked like when it was last read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    inode: u64,
    bytes: u64,
    changed_ns: i128,
}

struct Known {
    look: Look,
    /// The living process it is about; absent for a stale file.
    agent: Option<AgentKey>,
}

struct Retry {
    since: Time,
    next: Time,
    said: bool,
}

struct Witness {
    hub: hub::Handle,
    processes: Processes,
    dirs: Arc<ClaudeDirs>,
    watch: Watch,
    sessions: BTreeMap<PathBuf, Folder>,
    files: BTreeMap<PathBuf, Known>,
    retries: BTreeMap<PathBuf, Retry>,
    /// No status files, whatever they are called; each is counted once.
    never: BTreeSet<PathBuf>,
    /// Folders whose watch was refused.
    refused: BTreeSet<PathBuf>,
    /// When to look at everything, where a watch was refused; otherwise the safety net says when.
    sweep_at: Option<Time>,
}

impl Witness {
    async fn run(
        mut self,
        mut seen: mpsc::Receiver<Seen>,
        looked: oneshot::Sender<()>,
    ) -> Result<(), Stopped> {
        self.learn().await?;
        task::answer(looked, ());
        let dirs = Arc::clone(&self.dirs);
        let mut watching = true;
        let mut rounds = self.hub.witnesses().rounds.clone();
        loop {
            let wake = self
                .retries
                .values()
                .map(|retry| retry.next)
                .chain(self.sweep_at)
                .min();
            tokio::select! {
                seen = seen.recv(), if watching => match seen {
                    Some(seen) => self.saw(seen).await?,
                    None => {
                        // No watcher could be made; every folder was refused and is swept.
                        watching = false;
                    }
                },
                () = dirs.added.notified() => self.learn().await?,
                () = clock::reached(wake.unwrap_or_default()), if wake.is_some() => self.due().await?,
                Ok(()) = rounds.changed() => self.sweep().await?,
            }
        }
    }

    /// Takes up directories that were not known before.
    async fn learn(&mut self) -> Result<(), Stopped> {
        for dir in self.dirs.all() {
            let sessions = dir.join("sessions");
            if !self.sessions.contains_key(&sessions) {
                info!("Claude's directory {}", dir.display());
                self.sessions.insert(sessions.clone(), Folder::Swept);
                self.attach(&sessions).await?;
            }
        }
        Ok(())
    }

    /// Watches a sessions folder, or the nearest one above it, then reads what is in it: in this order
    /// nothing that appears meanwhile is missed.
    async fn attach(&mut self, sessions: &Path) -> Result<(), Stopped> {
        let folder = loop {
            let exists = nearest(sessions);
            let folder = match self.watch.add(sessions) {
                Ok(()) => Folder::Watched,
                Err(WatchError::Missing) => self.await_folder(sessions),
                Err(WatchError::Refused(why)) => self.refuse(sessions, &why).await?,
            };
            // What was made between the look and the watch above it is told by no event: look again.
            match &folder {
                Folder::Awaited { above } if nearest(sessions) != exists => {
                    self.release(above);
                }
                Folder::Awaited { .. } | Folder::Watched | Folder::Swept => break folder,
            }
        };
        let before = self.sessions.insert(sessions.to_owned(), folder);
        if let Some(Folder::Awaited { above }) = before {
            self.release(&above);
        }
        self.scan(sessions).await
    }

    /// A folder above is watched only as long as something below it is awaited: a person's home is busy.
    fn release(&mut self, above: &Path) {
        let awaited = self
            .sessions
            .values()
            .any(|folder| matches!(folder, Folder::Awaited { above: other } if other == above));
        if !awaited && !self.sessions.contains_key(above) {
            self.watch.remove(above);
        }
    }

    fn await_folder(&mut self, sessions: &Path) -> Folder {
        for above in sessions.ancestors().skip(1) {
            if above.is_dir() && self.watch.add(above).is_ok() {
                let above = above.to_owned();
                return Folder::Awaited { above };
            }
        }
        Folder::Swept
    }

    async fn refuse(&mut self, sessions: &Path, why: &str) -> Result<Folder, Stopped> {
        self.refused.insert(sessions.to_owned());
        self.sweep_at = Some(clock::boot() + SWEEP_DEGRADED);
        let sentence = Cause::WatchRefused {
            detail: why.to_owned(),
        };
        self.hub.degraded(Degraded::Watch, Some(sentence)).await?;
        Ok(Folder::Swept)
    }

    async fn saw(&mut self, seen: Seen) -> Result<(), Stopped> {
        match seen {
            Seen::Made(path) => {
                if let Some(sessions) = self.awaited_below(&path) {
                    self.attach(&sessions).await
                } else {
                    self.made(&path).await
                }
            }
            Seen::Written(path) => self.written(&path).await,
            // Half of a write; its end follows.
            Seen::Grew(_) => Ok(()),
            Seen::Removed(path) => self.removed(&path).await,
            Seen::Overflow => {
                info!("Events of Claude's status files were lost; looking at all of them.");
                self.sweep().await
            }
        }
    }

    /// The sessions folder that waited for `path`, which is on the way to it.
    fn awaited_below(&self, path: &Path) -> Option<PathBuf> {
        let (sessions, _) = self.sessions.iter().find(|(sessions, folder)| {
            matches!(folder, Folder::Awaited { .. }) && sessions.starts_with(path)
        })?;
        Some(sessions.clone())
    }

    fn entry(&self, path: &Path) -> Entry {
        let inside = path
            .parent()
            .is_some_and(|parent| self.sessions.contains_key(parent));
        match path.file_name().and_then(|name| name.to_str()) {
            Some(name) if inside => session_file::entry(name),
            Some(_) | None => Entry::Other,
        }
    }

    async fn made(&mut self, path: &Path) -> Result<(), Stopped> {
        match self.entry(path) {
            Entry::Key { pid } => self.key(pid).await,
            // Empty as yet; but a file that was moved here is never closed by a writer.
            Entry::Status { .. } => self.read_anew(path).await,
            Entry::Other => Ok(()),
        }
    }

    async fn written(&mut self, path: &Path) -> Result<(), Stopped> {
        match self.entry(path) {
            Entry::Status { .. } => self.read_anew(path).await,
            Entry::Key { .. } | Entry::Other => Ok(()),
        }
    }

    async fn removed(&mut self, path: &Path) -> Result<(), Stopped> {
        if let Some(folder) = self.sessions.get_mut(path) {
            *folder = Folder::Swept;
            let sessions = path.to_owned();
            self.watch.remove(&sessions);
            return self.attach(&sessions).await;
        }
        let lost: Vec<PathBuf> = self
            .sessions
            .iter()
            .filter(|(_, folder)| matches!(folder, Folder::Awaited { above } if above == path))
            .map(|(sessions, _)| sessions.clone())
            .collect();
        for sessions in lost {
            self.attach(&sessions).await?;
        }
        self.gone(path).await
    }

    async fn gone(&mut self, path: &Path) -> Result<(), Stopped> {
        self.retries.remove(path);
        self.never.remove(path);
        if let Some(Known {
            agent: Some(agent), ..
        }) = self.files.remove(path)
        {
            self.hub.send(Event::FileRemoved { agent }).await?;
        }
        Ok(())
    }

    async fn key(&mut self, pid: u32) -> Result<(), Stopped> {
        if let Some(agent) = self.processes.look(pid, None).await {
            self.hub.send(Event::KeyFileSeen { agent }).await?;
        }
        Ok(())
    }

    /// Reads everything in a folder whose look has changed since it was last read.
    async fn scan(&mut self, sessions: &Path) -> Result<(), Stopped> {
        let entries = match fs::read_dir(sessions) {
            Ok(entries) => entries,
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    debug!("{}: {error}", sessions.display());
                }
                return Ok(());
            }
        };
        let mut present = BTreeSet::new();
        let mut keys = Vec::new();
        for entry in entries.flatten() {
            let path = entry.path();
            match self.entry(&path) {
                Entry::Status { pid } => {
                    // A thousand stale files of dead processes cost a thousand looks into /proc, not
                    // as many reads.
                    if crate::sys::stat(pid).is_some() && self.looks_changed(&path) {
                        self.read(&path).await?;
                    }
                    present.insert(path);
                }
                Entry::Key { pid } => keys.push(pid),
                Entry::Other => {}
            }
        }
        for pid in keys {
            let has_file = present.contains(&sessions.join(format!("{pid}.json")));
            if !has_file && crate::sys::stat(pid).is_some() {
                self.key(pid).await?;
            }
        }
        let gone: Vec<PathBuf> = self
            .files
            .keys()
            .filter(|path| path.parent() == Some(sessions) && !present.contains(*path))
            .cloned()
            .collect();
        for path in gone {
            self.gone(&path).await?;
        }
        Ok(())
    }

    fn looks_changed(&self, path: &Path) -> bool {
        match (fs::symlink_metadata(path), self.files.get(path)) {
            (Ok(meta), Some(known)) => look_of(&meta) != known.look || known.agent.is_none(),
            (Ok(_), None) | (Err(_), _) => true,
        }
    }

    /// Something has just happened to it: if it can't be read now, it gets its full time.
    async fn read_anew(&mut self, path: &Path) -> Result<(), Stopped> {
        self.retries.remove(path);
        self.read(path).await
    }

    async fn read(&mut self, path: &Path) -> Result<(), Stopped> {
        match read_file(path) {
            Ok((reading, at, look)) => {
                self.retries.remove(path);
                self.never.remove(path);
                self.tell(path, reading, at, look).await
            }
            Err(Unread::Missing) => self.gone(path).await,
            Err(Unread::Never(why)) => {
                if self.never.insert(path.to_owned()) {
                    let why = format!("{}: {why}", path.display());
                    debug!("{why}");
                    self.hub.witnesses().odd.add(Kind::StatusFileRefused, why);
                }
                Ok(())
            }
            Err(Unread::NotNow(why)) => self.retry(path, &why).await,
        }
    }

    async fn tell(
        &mut self,
        path: &Path,
        reading: Reading,
        at: Stamp,
        look: Look,
    ) -> Result<(), Stopped> {
        let Entry::Status { pid } = self.entry(path) else {
            return Ok(());
        };
        if reading.pid != pid {
            debug!("{} speaks of process {}", path.display(), reading.pid);
            return Ok(());
        }
        // A file that outlived its process names a start time that no living process has.
        let agent = self.processes.look(pid, reading.proc_start).await;
        let known = Known {
            look,
            agent: agent.clone(),
        };
        self.files.insert(path.to_owned(), known);
        match agent {
            Some(agent) => {
                let file = reading.file;
                self.hub.send(Event::FileRead { agent, at, file }).await
            }
            None => Ok(()),
        }
    }

    async fn retry(&mut self, path: &Path, why: &str) -> Result<(), Stopped> {
        let now = clock::boot();
        let retry = self.retries.entry(path.to_owned()).or_insert(Retry {
            since: now,
            next: now,
            said: false,
        });
        let tried_for = now.since(retry.since);
        retry.next = now
            + if tried_for.is_zero() {
                RETRY_FIRST
            } else {
                RETRY
            };
        let say = !retry.said && tried_for >= UNREADABLE_AFTER;
        retry.said |= say;
        if tried_for >= RETRY_FOR {
            self.retries.remove(path);
        }
        if say {
            let why = format!("{}: {why}", path.display());
            self.hub.witnesses().odd.add(Kind::StatusFileUnread, why);
        }
        if say
            && let Some(Known {
                agent: Some(agent), ..
            }) = self.files.get(path)
        {
            let agent = agent.clone();
            let why = Arc::from(why);
            self.hub.send(Event::FileUnreadable { agent, why }).await?;
        }
        Ok(())
    }

    async fn due(&mut self) -> Result<(), Stopped> {
        let now = clock::boot();
        let paths: Vec<PathBuf> = self
            .retries
            .iter()
            .filter(|(_, retry)| retry.next <= now)
            .map(|(path, _)| path.clone())
            .collect();
        for path in paths {
            self.read(&path).await?;
        }
        if self.sweep_at.is_some_and(|at| at <= now) {
            self.sweep().await?;
        }
        Ok(())
    }

    async fn sweep(&mut self) -> Result<(), Stopped> {
        let mut all: Vec<PathBuf> = Vec::new();
        for (sessions, folder) in &self.sessions {
            match folder {
                Folder::Watched => all.push(sessions.clone()),
                Folder::Awaited { .. } | Folder::Swept => {}
            }
        }
        for sessions in all {
            self.scan(&sessions).await?;
        }
        let unwatched: Vec<PathBuf> = self
            .sessions
            .iter()
            .filter(|(_, folder)| !matches!(folder, Folder::Watched))
            .map(|(sessions, _)| sessions.clone())
            .collect();
        self.refused.clear();
        for sessions in unwatched {
            self.attach(&sessions).await?;
        }
        if self.refused.is_empty() {
            self.hub.degraded(Degraded::Watch, None).await?;
            self.sweep_at = None;
        } else {
            self.sweep_at = Some(clock::boot() + SWEEP_DEGRADED);
        }
        Ok(())
    }
}

enum Unread {
    /// There is no such file.
    Missing,
    /// No file of Claude's: a folder, a pipe, a link.
    Never(String),
    /// Torn, empty, not permitted: try again.
    NotNow(String),
}

/// Whether this is the status file of just this process.
pub fn speaks_of(path: &Path, pid: u32, start: u64) -> bool {
    read_file(path)
        .is_ok_and(|(reading, _, _)| reading.pid == pid && reading.proc_start == Some(start))
}

/// One look at a status file and the time that the file itself has; `None`: nothing that can be used now.
#[must_use]
pub fn look(path: &Path) -> Option<(Reading, Stamp)> {
    let (reading, at, _) = read_file(path).ok()?;
    Some((reading, at))
}

/// Reads one status file. Nothing but a regular file is opened for reading: not through a link, and
/// without waiting for a pipe's writer.
fn read_file(path: &Path) -> Result<(Reading, Stamp, Look), Unread> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => return Err(Unread::Never("no regular file".to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Unread::Missing),
        Err(error) => return Err(Unread::NotNow(error.to_string())),
    }
    // It may have been replaced since: whatever is there now is opened without following a link.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(|why| Unread::Never(why.to_string()))?;
    let opened = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Unread::Missing),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(Unread::Never("a link".to_owned()));
        }
        Err(error) => return Err(Unread::NotNow(error.to_string())),
    };
    let not_now = |error: io::Error| Unread::NotNow(error.to_string());
    let meta = file.metadata().map_err(not_now)?;
    if !meta.is_file() {
        return Err(Unread::Never("no regular file".to_owned()));
    }
    let at = meta
        .modified()
        .map(clock::from_file_time)
        .map_err(not_now)?;
    let mut bytes = Vec::with_capacity(1024);
    let limit = u64::try_from(FILE_BYTES_MAX + 1).unwrap_or(u64::MAX);
    file.take(limit).read_to_end(&mut bytes).map_err(not_now)?;
    let reading = session_file::read(&bytes, clock::now())
        .map_err(|error| Unread::NotNow(error.to_string()))?;
    Ok((reading, at, look_of(&meta)))
}

fn look_of(meta: &fs::Metadata) -> Look {
    Look {
        inode: meta.ino(),
        bytes: meta.len(),
        changed_ns: i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()),
    }
}
