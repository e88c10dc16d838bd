//! The person's own `--settings` and ours in one file, since Claude Code keeps only the last that it is
//! given. One file per Claude process, named by it, 0600, and removed when that process is gone: by the
//! server that sees it end, or by the next one that starts.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;
use tracing::debug;

use crate::home::write_atomic;
use crate::ingest::process::watch_exit;
use crate::ingest::watch::{Seen, Watch};
use crate::{sys, task};

fn folder(home: &Path) -> PathBuf {
    home.join("merged")
}

fn path(home: &Path, pid: u32, start: u64) -> PathBuf {
    folder(home).join(format!("{pid}-{start}.json"))
}

/// Writes the file of one process.
///
/// # Errors
/// The home can't be written.
pub fn write(home: &Path, pid: u32, start: u64, settings: &Value) -> Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    match fs::DirBuilder::new().mode(0o700).create(folder(home)) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    let path = path(home, pid, start);
    write_atomic(&path, format!("{settings:#}\n").as_bytes(), 0o600)?;
    Ok(path)
}

/// The process is gone, and with it whoever read the file.
pub fn remove(home: &Path, pid: u32, start: u64) {
    let path = path(home, pid, start);
    match fs::remove_file(&path) {
        Ok(()) => debug!("removed {}", path.display()),
        // Most processes never had one.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => debug!("{}: {error}", path.display()),
    }
}

/// Removes the files of processes that ended while nobody looked; who still lives.
pub fn sweep(home: &Path) -> Vec<(u32, u64)> {
    let Ok(entries) = fs::read_dir(folder(home)) else {
        return Vec::new();
    };
    let mut living = Vec::new();
    for entry in entries.flatten() {
        let Some((pid, start)) = owner(&entry.path()) else {
            continue;
        };
        if sys::stat(pid).is_some_and(|stat| stat.start == start) {
            living.push((pid, start));
        } else {
            remove(home, pid, start);
        }
    }
    living
}

fn owner(path: &Path) -> Option<(u32, u64)> {
    if path.extension()? != "json" {
        return None;
    }
    let (pid, start) = path.file_stem()?.to_str()?.split_once('-')?;
    Some((pid.parse().ok()?, start.parse().ok()?))
}

/// Removes each file when its process ends, as long as the server runs. A Claude that is not tracked
/// (it lived too short, or wrote no status file) has its file removed as well.
pub async fn follow(home: PathBuf) {
    let (mut watch, mut seen) = Watch::new();
    if let Err(why) = watch.add(&folder(&home)) {
        debug!("{}: {why}", folder(&home).display());
    }
    for (pid, start) in sweep(&home) {
        remove_at_exit(&home, pid, start);
    }
    while let Some(seen) = seen.recv().await {
        match seen {
            Seen::Made(path) => {
                if let Some((pid, start)) = owner(&path) {
                    remove_at_exit(&home, pid, start);
                }
            }
            Seen::Overflow => drop(sweep(&home)),
            Seen::Grew(_) | Seen::Written(_) | Seen::Removed(_) => {}
        }
    }
}

fn remove_at_exit(home: &Path, pid: u32, start: u64) {
    let home = home.to_owned();
    let exit = watch_exit(pid);
    task::spawn("settings file", async move {
        match exit {
            Ok(Some(exit)) if sys::stat(pid).is_some_and(|stat| stat.start == start) => {
                if let Err(why) = exit.readable().await {
                    debug!("process {pid}: {why}");
                }
            }
            Ok(Some(_) | None) => {}
            // The next sweep removes it.
            Err(why) => return debug!("process {pid}: {why}"),
        }
        remove(&home, pid, start);
    });
}
