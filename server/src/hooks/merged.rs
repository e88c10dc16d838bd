//! The person's own `--settings` and ours in one file, since Claude Code keeps only the last that it is
//! given. One file per Claude process, named by it, 0600, and removed when that process is gone.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;
use tracing::debug;

use crate::home::write_atomic;
use crate::sys;

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

/// Removes the files of processes that ended while nobody looked.
pub fn sweep(home: &Path) {
    let Ok(entries) = fs::read_dir(folder(home)) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_suffix(".json"))
            .and_then(|stem| stem.split_once('-'))
            .and_then(|(pid, start)| Some((pid.parse().ok()?, start.parse().ok()?)));
        if let Some((pid, start)) = owner
            && sys::stat(pid).is_none_or(|stat| stat.start != start)
        {
            remove(home, pid, start);
        }
    }
}
