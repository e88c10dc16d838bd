//! What Claude itself wrote, and when: every version of its status files, stamped with the file's own mtime. It is
//! the yardstick that every latency is measured from.
//!
//! Must never open a `.key` file, and never write into the directory.

use std::collections::HashMap;
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use serde_json::Value;

use crate::clock::wall_ns;

/// How long a thread may go on after it was told to stop.
const STOP_WITHIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// One version of one file.
#[derive(Clone, Debug)]
pub struct Write {
    /// The file's mtime, unix ns; for a removal the time it was noticed.
    pub at_ns: i64,
    /// From the file's name.
    pub pid: u32,
    /// The whole file; `None`: it was removed.
    pub value: Option<Value>,
}

impl Write {
    /// `idle`, `busy`, `waiting`, `shell`; `None` while Claude has not written one, and when the file is gone.
    pub fn status(&self) -> Option<&str> {
        self.value.as_ref()?["status"].as_str()
    }

    /// What a waiting Claude waits for, in its own words.
    pub fn waiting_for(&self) -> Option<&str> {
        self.value.as_ref()?["waitingFor"].as_str()
    }
}

/// Watches a directory of status files until dropped.
pub struct Sessions {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    writes: Mutex<Vec<Write>>,
    grown: Condvar,
    stop: AtomicBool,
}

impl Sessions {
    /// Starts to watch `dir`, which exists.
    pub fn watch(dir: &Path) -> anyhow::Result<Self> {
        let fd = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        let what = inotify::WatchFlags::MODIFY
            | inotify::WatchFlags::CLOSE_WRITE
            | inotify::WatchFlags::CREATE
            | inotify::WatchFlags::DELETE;
        inotify::add_watch(&fd, dir, what).with_context(|| format!("watch {}", dir.display()))?;
        let shared = Arc::new(Shared::default());
        let (state, dir) = (Arc::clone(&shared), dir.to_owned());
        let thread = thread::Builder::new()
            .name("sessions".into())
            .spawn(move || follow(&fd, &dir, &state))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Everything written by `pid` so far, oldest first.
    pub fn of(&self, pid: u32) -> Vec<Write> {
        self.shared
            .writes()
            .iter()
            .filter(|write| write.pid == pid)
            .cloned()
            .collect()
    }

    /// Every process that has ever had a file here.
    pub fn pids(&self) -> Vec<u32> {
        let mut pids: Vec<u32> = self.shared.writes().iter().map(|write| write.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Waits for a write that fits, also one that has come already.
    pub fn wait(&self, deadline: Duration, fits: impl Fn(&Write) -> bool) -> Option<Write> {
        let end = Instant::now() + deadline;
        let mut writes = self.shared.writes();
        loop {
            if let Some(found) = writes.iter().find(|write| fits(write)) {
                return Some(found.clone());
            }
            let left = end.checked_duration_since(Instant::now())?;
            writes = self
                .shared
                .grown
                .wait_timeout(writes, left)
                .expect("no holder of the writes panics")
                .0;
        }
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed already, and a second one while unwinding would abort the test.
            drop(thread.join());
        }
    }
}

impl Shared {
    fn writes(&self) -> MutexGuard<'_, Vec<Write>> {
        self.writes.lock().expect("no holder of the writes panics")
    }

    fn record(&self, write: Write) {
        self.writes().push(write);
        self.grown.notify_all();
    }
}

fn follow(fd: &rustix::fd::OwnedFd, dir: &Path, shared: &Shared) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(fd, &mut buffer);
    let mut newest: HashMap<PathBuf, i64> = HashMap::new();
    while !shared.stop.load(Ordering::Relaxed) {
        let mut ready = [PollFd::new(fd, PollFlags::IN)];
        if poll(&mut ready, Some(&STOP_WITHIN)).unwrap_or(0) == 0 {
            continue;
        }
        while let Ok(event) = events.next() {
            let Some(name) = event.file_name().and_then(|name| name.to_str().ok()) else {
                continue;
            };
            let Some(pid) = name.strip_suffix(".json").and_then(|pid| pid.parse().ok()) else {
                continue;
            };
            let path = dir.join(name);
            if event.events().contains(inotify::ReadFlags::DELETE) {
                newest.remove(&path);
                shared.record(Write {
                    at_ns: wall_ns(),
                    pid,
                    value: None,
                });
                continue;
            }
            let Some((at_ns, value)) = read(&path) else {
                continue;
            };
            if newest.insert(path, at_ns) != Some(at_ns) {
                shared.record(Write {
                    at_ns,
                    pid,
                    value: Some(value),
                });
            }
        }
    }
}

/// The file and its mtime; `None` while it is torn or gone, and another event follows.
fn read(path: &Path) -> Option<(i64, Value)> {
    let before = fs::metadata(path).ok()?;
    let value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    Some((before.mtime() * 1_000_000_000 + before.mtime_nsec(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_and_the_removal_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::watch(dir.path()).unwrap();
        let file = dir.path().join("41.json");
        fs::write(dir.path().join("41.abc.key"), "secret").unwrap();
        fs::write(&file, r#"{"pid":41}"#).unwrap();
        let first = sessions
            .wait(Duration::from_secs(5), |write| write.pid == 41)
            .unwrap();
        assert_eq!(first.status(), None);
        fs::write(
            &file,
            r#"{"status":"waiting","waitingFor":"permission prompt"}"#,
        )
        .unwrap();
        let second = sessions
            .wait(Duration::from_secs(5), |write| {
                write.status() == Some("waiting")
            })
            .unwrap();
        assert_eq!(second.waiting_for(), Some("permission prompt"));
        assert!((wall_ns() - second.at_ns).abs() < 5_000_000_000);
        fs::remove_file(&file).unwrap();
        assert!(
            sessions
                .wait(Duration::from_secs(5), |write| write.value.is_none())
                .is_some()
        );
        assert_eq!(sessions.pids(), [41]);
    }
}
