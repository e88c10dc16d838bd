//! The transcript witness: follows the JSONL file of each agent that is to be followed, by offset, inode
//! and unfinished line, and reads the end of it backwards when it is first opened. Files are Claude's:
//! only read, and only inside the projects folder of a directory of Claude's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use purplemux_core::witness::TranscriptFact;
use purplemux_core::{AgentKey, ConversationId, Event};
use purplemux_wire::transcript::{Lines, Tail};
use rustix::fs::OFlags;
use thiserror::Error;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::hub::{self, Stopped};
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
/// Without a watch.
const SWEEP_DEGRADED: Duration = Duration::from_secs(1);

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
                grew: Arc::default(),
                watched: None,
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

/// Who wants to hear of which folder: one watcher for all transcripts, since the kernel gives few.
#[derive(Debug)]
struct Routes {
    watch: Mutex<Watch>,
    listeners: Mutex<BTreeMap<PathBuf, Vec<Arc<Notify>>>>,
}

impl Routes {
    fn new() -> Arc<Self> {
        let (watch, mut seen) = Watch::new();
        let routes = Arc::new(Self {
            watch: Mutex::new(watch),
            listeners: Mutex::default(),
        });
        let weak = Arc::downgrade(&routes);
        task::spawn("transcript watch", async move {
            while let Some(seen) = seen.recv().await {
                let Some(routes) = weak.upgrade() else {
                    return;
                };
                match seen {
                    Seen::Made(path)
                    | Seen::Grew(path)
                    | Seen::Written(path)
                    | Seen::Removed(path) => routes.ring(&path),
                    Seen::Overflow => routes.ring_all(),
                }
            }
        });
        routes
    }

    /// Rings `listener` at every change of `file` from now on; false: it can't be watched.
    fn add(&self, file: &Path, listener: &Arc<Notify>) -> bool {
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
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners
            .entry(file.to_owned())
            .or_default()
            .push(Arc::clone(listener));
        true
    }

    fn remove(&self, file: &Path, listener: &Arc<Notify>) {
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = listeners.get_mut(file) {
            all.retain(|other| !Arc::ptr_eq(other, listener));
            if all.is_empty() {
                listeners.remove(file);
            }
        }
        let still = listeners
            .keys()
            .any(|other| other.parent() == file.parent());
        drop(listeners);
        if let Some(folder) = file.parent().filter(|_| !still) {
            self.watch
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(folder);
        }
    }

    fn ring(&self, file: &Path) {
        let listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for listener in listeners.get(file).into_iter().flatten() {
            listener.notify_one();
        }
    }

    fn ring_all(&self) {
        let listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for listener in listeners.values().flatten() {
            listener.notify_one();
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

struct Reader {
    hub: hub::Handle,
    dirs: Arc<ClaudeDirs>,
    routes: Arc<Routes>,
    agent: AgentKey,
    wish: Arc<Wish>,
    source: Source,
    tail: Followed,
    grew: Arc<Notify>,
    watched: Option<PathBuf>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.unwatch();
    }
}

impl Reader {
    async fn run(mut self) -> Result<(), Stopped> {
        let wish = Arc::clone(&self.wish);
        let grew = Arc::clone(&self.grew);
        let mut rounds = self.hub.witnesses().rounds.clone();
        let mut on = false;
        loop {
            let wait = match (&self.watched, self.tail.opened) {
                _ if !on => None,
                // A watch may lose an event: then the safety net says when to look.
                (Some(_), true) => None,
                (Some(_) | None, false) => Some(APPEARS),
                (None, true) => Some(SWEEP_DEGRADED),
            };
            tokio::select! {
                () = wish.changed.notified() => {}
                () = grew.notified() => {}
                () = clock::passed(wait.unwrap_or_default()), if wait.is_some() => {}
                Ok(()) = rounds.changed(), if on => {}
            }
            let wanted = {
                let mut wanted = wish.wanted.lock().unwrap_or_else(PoisonError::into_inner);
                let moved = std::mem::take(&mut wanted.moved);
                let named = (wanted.path.clone(), wanted.conversation.clone());
                let reads = std::mem::take(&mut wanted.reads);
                (wanted.on, moved, named, reads)
            };
            let (now_on, moved, (path, conversation), reads) = wanted;
            on = now_on;
            if moved || !matches!(self.source, Source::At(_)) {
                self.locate(path.as_deref(), conversation.as_ref());
            }
            if on {
                self.watch();
            } else {
                self.unwatch();
            }
            let ok = if on || !reads.is_empty() {
                self.read().await?
            } else {
                continue;
            };
            for request in reads {
                let agent = self.agent.clone();
                let read = Event::TranscriptRead { agent, request, ok };
                self.hub.send(read).await?;
            }
        }
    }

    fn locate(&mut self, path: Option<&str>, conversation: Option<&ConversationId>) {
        let dirs = self.dirs.all();
        let named = path.and_then(|path| match allowed(Path::new(path), &dirs) {
            Ok(path) => Some(path),
            Err(why) => {
                warn!(agent = %self.agent, path, "The transcript is not read: {why}.");
                self.hub.witnesses().odd.transcript_refused();
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
            self.source = source;
        }
    }

    fn watch(&mut self) {
        let Source::At(path) = &self.source else {
            return;
        };
        if self.watched.is_none() && self.routes.add(path, &self.grew) {
            self.watched = Some(path.clone());
        }
    }

    fn unwatch(&mut self) {
        if let Some(path) = self.watched.take() {
            self.routes.remove(&path, &self.grew);
        }
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
            // A first look may read megabytes; other agents are not to wait for that.
            let read = tokio::task::spawn_blocking(move || {
                let read = tail.read(&file);
                (tail, read)
            })
            .await;
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
                    if !facts.is_empty() {
                        let agent = self.agent.clone();
                        let grew = Event::TranscriptGrew { agent, facts };
                        self.hub.send(grew).await?;
                    }
                    if !more {
                        return Ok(true);
                    }
                }
                // Written first at the first prompt: until then there is nothing in it.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
                Err(error) => {
                    debug!(agent = %self.agent, "{}: {error}", path.display());
                    self.hub.witnesses().odd.transcript_refused();
                    return Ok(false);
                }
            }
        }
    }
}

/// How far a file has been read.
#[derive(Debug, Default)]
struct Followed {
    opened: bool,
    inode: u64,
    offset: u64,
    lines: Lines,
}

impl Followed {
    /// The facts of what is new, at most one block of it, and whether there is more.
    fn read(&mut self, path: &Path) -> io::Result<(Vec<TranscriptFact>, bool)> {
        let file = open(path)?;
        let meta = file.metadata()?;
        if !self.opened {
            return Ok((self.open_at_end(&file, &meta)?, false));
        }
        if meta.ino() != self.inode || meta.len() < self.offset {
            // Replaced or cut short: another file, read anew from its start.
            *self = Self {
                opened: true,
                inode: meta.ino(),
                ..Self::default()
            };
        }
        let mut block = vec![0; usize::try_from(BLOCK).unwrap_or(usize::MAX)];
        let read = file.read_at(&mut block, self.offset)?;
        self.offset += u64::try_from(read).unwrap_or(0);
        let facts = self.lines.push_facts(&block[..read]);
        Ok((facts, self.offset < meta.len() && read > 0))
    }

    /// Reads backwards until the newest turn is complete, then stands at the end.
    fn open_at_end(&mut self, file: &File, meta: &fs::Metadata) -> io::Result<Vec<TranscriptFact>> {
        let end = meta.len();
        let mut tail = Tail::new();
        let mut start = end;
        while start > 0 && !tail.is_enough() && end - start < BACK_MAX {
            let length = BLOCK.min(start);
            start -= length;
            let mut block = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut block, start)?;
            tail.push_before(&block);
        }
        *self = Self {
            opened: true,
            inode: meta.ino(),
            offset: end - tail.unfinished_bytes(),
            lines: Lines::new(),
        };
        Ok(tail.finish(start == 0))
    }
}

/// Opens a regular file, not through a link and without waiting for anything.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).map_err(io::Error::other)?)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("no regular file"))
    }
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

    use purplemux_core::witness::TranscriptKind;

    fn kinds(facts: &[TranscriptFact]) -> Vec<&TranscriptKind> {
        facts.iter().map(|fact| &fact.kind).collect()
    }

    const PROMPT: &str = r#"{"type":"user","message":{"role":"user","content":"hello"}}"#;
    const END: &str = r#"{"type":"system","subtype":"turn_duration","durationMs":5}"#;

    #[test]
    fn t02_an_unfinished_line_is_told_once_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let (first, second) = END.split_at(20);
        fs::write(&path, format!("{PROMPT}\n{first}")).unwrap();
        let mut followed = Followed::default();
        let (facts, _) = followed.read(&path).unwrap();
        assert!(
            matches!(kinds(&facts)[..], [TranscriptKind::Prompted { .. }]),
            "{facts:?}"
        );
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(second.as_bytes()).unwrap();
        assert_eq!(followed.read(&path).unwrap().0, []);
        file.write_all(b"\n").unwrap();
        let (facts, more) = followed.read(&path).unwrap();
        assert!(matches!(
            kinds(&facts)[..],
            [TranscriptKind::TurnEnded { .. }]
        ));
        assert!(!more);
        assert_eq!(followed.read(&path).unwrap().0, []);
    }

    #[test]
    fn t03_a_file_cut_short_or_replaced_is_read_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        fs::write(&path, format!("{PROMPT}\n{END}\n")).unwrap();
        let mut followed = Followed::default();
        assert_eq!(followed.read(&path).unwrap().0.len(), 2);
        fs::write(&path, format!("{PROMPT}\n")).unwrap();
        assert_eq!(followed.read(&path).unwrap().0.len(), 1, "cut short");
        let other = dir.path().join("b.jsonl");
        fs::write(&other, format!("{PROMPT}\n{END}\n{PROMPT}\n")).unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(followed.read(&path).unwrap().0.len(), 3, "replaced");
        fs::remove_file(&path).unwrap();
        assert_eq!(
            followed.read(&path).unwrap_err().kind(),
            ErrorKind::NotFound
        );
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
        assert!(
            Followed::default().read(&link).is_err(),
            "a link is not followed"
        );
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
}
