//! Past conversations of all projects, from Claude's transcripts: their heads and ends, looked at when somebody asks
//! and remembered while the file stays as it is.
//!
//! Reads at most [`FILES_MAX`] files, [`PIECE`] at either end of each, never through a link; writes nothing, and tells
//! the fleet nothing.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use purplemux_core::witness::TranscriptKind;
use purplemux_wire::transcript as wire;
use serde::Serialize;

use crate::clock;
use crate::ingest::transcript::open_regular;

/// The newest files that are looked at: a person's of some years.
const FILES_MAX: usize = 5_000;

/// What is read of a file at its beginning, and again at its end: the first prompt and the last title lie there.
const PIECE: usize = 64 * 1024;

/// A conversation that can be taken up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conversation {
    /// Claude's session id.
    pub id: String,
    /// Its title: the person's, else Claude's, else the first prompt.
    pub title: String,
    /// The first thing that was asked.
    pub prompt: String,
    /// The directory it was started in, where alone it can be taken up.
    pub cwd: String,
    /// When something was last written to it, unix ms.
    pub updated_ms: i64,
}

impl Conversation {
    fn matches(&self, words: &[String]) -> bool {
        let all = format!("{}\n{}\n{}", self.title, self.prompt, self.cwd).to_lowercase();
        words.iter().all(|word| all.contains(word))
    }
}

/// A file as it was when it was looked at, and what it holds; `None`: no conversation.
#[derive(Clone, Debug)]
struct Seen {
    modified: SystemTime,
    bytes: u64,
    holds: Option<Conversation>,
}

/// Those that were looked at. Cheap to clone; leaf data behind a lock.
#[derive(Clone, Debug, Default)]
pub struct Conversations {
    seen: Arc<Mutex<HashMap<PathBuf, Seen>>>,
}

impl Conversations {
    /// The newest, at most `most`, in whose title, first prompt or directory all words of `query` are found. Waits for
    /// the disk.
    #[must_use]
    pub fn list(&self, dirs: &[PathBuf], query: &str, most: usize) -> Vec<Conversation> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let files = newest(dirs);
        let mut found: Vec<Conversation> = Vec::new();
        for (path, modified, bytes) in &files {
            if found.len() >= most {
                break;
            }
            if let Some(one) = self.look(path, *modified, *bytes)
                && one.matches(&words)
                // The same conversation under two directories of Claude's: a link or a copy.
                && !found.iter().any(|other| other.id == one.id)
            {
                found.push(one);
            }
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() > FILES_MAX {
            seen.retain(|path, _| files.iter().any(|(file, _, _)| file == path));
        }
        found
    }

    fn look(&self, path: &Path, modified: SystemTime, bytes: u64) -> Option<Conversation> {
        let known = {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.get(path)
                .filter(|seen| seen.modified == modified && seen.bytes == bytes)
                .cloned()
        };
        if let Some(known) = known {
            return known.holds;
        }
        let holds = read(path, modified);
        let seen = Seen {
            modified,
            bytes,
            holds: holds.clone(),
        };
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path.to_owned(), seen);
        holds
    }
}

/// One conversation by its id. Waits for the disk.
#[must_use]
pub fn find(dirs: &[PathBuf], id: &str) -> Option<Conversation> {
    if !is_id(id) {
        return None;
    }
    folders(dirs).find_map(|folder| {
        let path = folder.join(format!("{id}.jsonl"));
        let modified = fs::symlink_metadata(&path).ok()?.modified().ok()?;
        read(&path, modified)
    })
}

/// Whether this can be an id of Claude's; nothing else is ever typed into a shell.
#[must_use]
pub fn is_id(id: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let length = 1..=64;
    length.contains(&id.len()) && !id.starts_with('-') && id.bytes().all(plain)
}

/// Every project's folder. One that can't be read holds nothing for us.
fn folders(dirs: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let all = dirs.iter().map(|dir| fs::read_dir(dir.join("projects")));
    all.flat_map(|entries| entries.into_iter().flatten().flatten())
        .map(|entry| entry.path())
}

/// The newest transcripts, newest first.
fn newest(dirs: &[PathBuf]) -> Vec<(PathBuf, SystemTime, u64)> {
    let files = folders(dirs).flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
    let mut found: Vec<(PathBuf, SystemTime, u64)> = files
        .flatten()
        .filter_map(|entry| {
            let path = entry.path();
            let is_transcript = path.extension().is_some_and(|end| end == "jsonl");
            let meta = entry.metadata().ok()?;
            (is_transcript && meta.is_file())
                .then(|| Some((path, meta.modified().ok()?, meta.len())))?
        })
        .collect();
    found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found.truncate(FILES_MAX);
    found
}

/// What a transcript tells of its conversation; `None` for one in which nobody has asked anything.
fn read(path: &Path, modified: SystemTime) -> Option<Conversation> {
    let id = path.file_stem()?.to_str()?.to_owned();
    // Those of subagents, as earlier versions wrote them, are part of another.
    if !is_id(&id) || id.starts_with("agent-") {
        return None;
    }
    let file = open_regular(path)?;
    let bytes = file.metadata().ok()?.len();
    let head = piece(&file, 0).ok()?;
    let cwd = wire::directory(&head)?;
    let mut named = None;
    let mut made = None;
    let mut prompt = None;
    for fact in wire::head(&head) {
        title(&fact.kind, &mut named, &mut made);
        if let TranscriptKind::FirstPrompt { text } = fact.kind {
            prompt.get_or_insert(text.to_string());
        }
    }
    let prompt = prompt?;
    let rest = bytes.saturating_sub(u64::try_from(PIECE).unwrap_or(u64::MAX));
    if rest > 0 {
        for fact in wire::head(&piece(&file, rest).ok()?) {
            title(&fact.kind, &mut named, &mut made);
        }
    }
    Some(Conversation {
        id,
        title: named.or(made).unwrap_or_else(|| prompt.clone()),
        prompt,
        cwd: cwd.to_string(),
        updated_ms: clock::unix_ms(modified),
    })
}

fn title(kind: &TranscriptKind, named: &mut Option<String>, made: &mut Option<String>) {
    if let TranscriptKind::Title { text, named: own } = kind {
        let place = if *own { named } else { made };
        *place = Some(text.to_string());
    }
}

fn piece(file: &fs::File, at: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PIECE];
    let mut filled = 0;
    while filled < PIECE {
        let from = at + u64::try_from(filled).unwrap_or(0);
        match file.read_at(&mut bytes[filled..], from)? {
            0 => break,
            read => filled += read,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn write(dir: &Path, project: &str, id: &str, lines: &str, age_s: u64) {
        let folder = dir.join("projects").join(project);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{id}.jsonl"));
        fs::write(&path, lines).unwrap();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000 - age_s);
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(at).unwrap();
    }

    fn prompt(cwd: &str, text: &str) -> String {
        format!(
            r#"{{"type":"user","cwd":"{cwd}","isSidechain":false,"origin":{{"kind":"human"}},"promptSource":"typed","message":{{"role":"user","content":"{text}"}}}}"#
        ) + "\n"
    }

    fn ids(found: &[Conversation]) -> Vec<&str> {
        found.iter().map(|one| one.id.as_str()).collect()
    }

    #[test]
    fn the_newest_come_first_and_are_found_by_title_prompt_and_directory() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = [dir.path().to_owned()];
        let titled = prompt("/home/me/shop", "fix the tax rounding")
            + "{\"type\":\"ai-title\",\"aiTitle\":\"Checkout tax\"}\n";
        write(dir.path(), "-home-me-shop", "a1", &titled, 30);
        let named = titled.clone() + "{\"type\":\"custom-title\",\"customTitle\":\"Mine\"}\n";
        write(dir.path(), "-home-me-shop", "a2", &named, 10);
        write(
            dir.path(),
            "-srv",
            "a3",
            &prompt("/srv", "Größe ändern"),
            20,
        );
        let list = |query: &str| Conversations::default().list(&dirs, query, 10);
        let all = list("");
        assert_eq!(ids(&all), ["a2", "a3", "a1"]);
        let titles: Vec<&str> = all.iter().map(|one| one.title.as_str()).collect();
        assert_eq!(titles, ["Mine", "Größe ändern", "Checkout tax"]);
        assert_eq!(all[2].cwd, "/home/me/shop");
        assert_eq!(all[2].prompt, "fix the tax rounding");
        assert_eq!(ids(&list("mine")), ["a2"]);
        assert_eq!(ids(&list("TAX shop")), ["a2", "a1"]);
        assert_eq!(ids(&list("größe")), ["a3"]);
        assert_eq!(ids(&list("srv")), ["a3"]);
        assert!(list("nothing of the kind").is_empty());
        assert_eq!(ids(&Conversations::default().list(&dirs, "", 1)), ["a2"]);
        assert_eq!(find(&dirs, "a3").unwrap().cwd, "/srv");
        assert_eq!(find(&dirs, "a4"), None);
    }

    #[test]
    fn what_is_no_conversation_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = [dir.path().to_owned(), dir.path().join("absent")];
        let good = prompt("/", "hello");
        write(dir.path(), "p", "good", &good, 0);
        write(dir.path(), "p", "agent-1", &good, 0);
        write(dir.path(), "p", "empty", "", 0);
        write(dir.path(), "p", "torn", &good[..40], 0);
        write(dir.path(), "p", "odd", "\u{0}\n[]\n{}\n", 0);
        write(dir.path(), "p", "a b", &good, 0);
        write(
            dir.path(),
            "p",
            "unasked",
            "{\"type\":\"summary\",\"summary\":\"x\",\"cwd\":\"/\"}\n",
            0,
        );
        let projects = dir.path().join("projects/p");
        std::os::unix::fs::symlink(projects.join("good.jsonl"), projects.join("link.jsonl"))
            .unwrap();
        fs::create_dir(projects.join("folder.jsonl")).unwrap();
        fs::write(projects.join("notes.txt"), &good).unwrap();
        let all = Conversations::default();
        assert_eq!(ids(&all.list(&dirs, "", 10)), ["good"]);
        for id in ["link", "../p/good", "", "-p", "a b", "good; rm"] {
            assert_eq!(find(&dirs, id), None, "{id:?}");
        }
    }

    #[test]
    fn the_end_of_a_long_one_has_its_last_title_and_a_change_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = [dir.path().to_owned()];
        let filler = format!("{{\"type\":\"x\",\"y\":\"{}\"}}\n", "z".repeat(1000)).repeat(300);
        let long =
            prompt("/", "hello") + &filler + "{\"type\":\"ai-title\",\"aiTitle\":\"Last\"}\n";
        write(dir.path(), "p", "long", &long, 50);
        let all = Conversations::default();
        assert_eq!(all.list(&dirs, "", 10)[0].title, "Last");
        let renamed = long + "{\"type\":\"custom-title\",\"customTitle\":\"Named\"}\n";
        write(dir.path(), "p", "long", &renamed, 40);
        assert_eq!(all.list(&dirs, "", 10)[0].title, "Named");
    }
}
