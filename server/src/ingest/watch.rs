//! Watching files and folders: the kernel's events in the few words that the witnesses need. Loses nothing
//! in silence: an overflow and a limit that was hit are told, and the listener falls back to looking.

use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use thiserror::Error;
use tokio::sync::mpsc;
use tracing::warn;

/// Events that may wait. Beyond that the kernel's own queue (16,384) fills, and its overflow is told.
const QUEUE: usize = 1024;

/// Something happened to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It is there now: made, or moved here.
    Made(PathBuf),
    /// It got new bytes, and its writer may have more.
    Grew(PathBuf),
    /// Its writer has closed it.
    Written(PathBuf),
    /// It is gone: removed, or moved away.
    Removed(PathBuf),
    /// Events were lost: everything watched must be looked at.
    Overflow,
}

/// Why a path can't be watched.
#[derive(Debug, Error)]
pub enum WatchError {
    /// It does not exist (yet).
    #[error("it does not exist")]
    Missing,
    /// The limit of this machine is reached, or the path can't be read.
    #[error("{0}")]
    Refused(String),
}

/// A set of watched paths; their events come out of the receiver that [`Watch::new`] gives.
#[derive(Debug)]
pub struct Watch {
    watcher: Result<RecommendedWatcher, String>,
}

impl Watch {
    /// Watches nothing yet. If the kernel gives us no instance, every [`Watch::add`] is refused.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<Seen>) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            for seen in translate(event) {
                // The watcher's own thread may wait; an error means that nobody listens any more.
                drop(sender.blocking_send(seen));
            }
        })
        .map_err(|error| error.to_string());
        (Self { watcher }, receiver)
    }

    /// Watches one folder (not what is in its folders) or one file.
    ///
    /// # Errors
    /// See [`WatchError`].
    pub fn add(&mut self, path: &Path) -> Result<(), WatchError> {
        let watcher = self
            .watcher
            .as_mut()
            .map_err(|why| WatchError::Refused(why.clone()))?;
        watcher
            .watch(path, RecursiveMode::NonRecursive)
            .map_err(|error| match error.kind {
                notify::ErrorKind::PathNotFound => WatchError::Missing,
                notify::ErrorKind::Io(ref io) if io.kind() == std::io::ErrorKind::NotFound => {
                    WatchError::Missing
                }
                notify::ErrorKind::Io(_)
                | notify::ErrorKind::Generic(_)
                | notify::ErrorKind::WatchNotFound
                | notify::ErrorKind::InvalidConfig(_) => WatchError::Refused(error.to_string()),
                notify::ErrorKind::MaxFilesWatch => {
                    WatchError::Refused("this machine's limit is reached".to_owned())
                }
            })
    }

    /// No longer watches a path; harmless if it was not watched or is gone.
    pub fn remove(&mut self, path: &Path) {
        if let Ok(watcher) = &mut self.watcher {
            // The kernel drops the watch of a removed path by itself.
            drop(watcher.unwatch(path));
        }
    }
}

fn translate(event: notify::Result<notify::Event>) -> Vec<Seen> {
    let event = match event {
        Ok(event) => event,
        Err(error) => {
            warn!("watching files: {error}");
            return vec![Seen::Overflow];
        }
    };
    if event.need_rescan() {
        return vec![Seen::Overflow];
    }
    let all = |seen: fn(PathBuf) -> Seen| event.paths.iter().cloned().map(seen).collect();
    match event.kind {
        EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => {
            all(Seen::Made)
        }
        EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Any) => all(Seen::Grew),
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Metadata(_)) => all(Seen::Written),
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => {
            all(Seen::Removed)
        }
        // A rename within the watched folder is also told as a From and a To.
        EventKind::Modify(ModifyKind::Name(
            RenameMode::Both | RenameMode::Any | RenameMode::Other,
        ))
        | EventKind::Modify(ModifyKind::Other)
        | EventKind::Access(_)
        | EventKind::Any
        | EventKind::Other => Vec::new(),
    }
}
