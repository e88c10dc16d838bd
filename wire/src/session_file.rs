//! Claude's own status file `sessions/<pid>.json` (measured, Claude Code 2.1.90 to 2.1.332) and the names in
//! its folder. Presence of a field decides, never a version number.
//!
//! Reads only: the files are Claude's. Must never be given the content of a `.key` file, which is a secret of
//! Claude's; its name says enough. What is torn, empty or in words we do not know is an error, which means
//! "don't know" and never a state.

use std::sync::Arc;

use purplemux_core::witness::{AgentKind, FileStatus, SessionFile, WaitingFor};
use purplemux_core::{ConversationId, Stamp, Time};
use thiserror::Error;

use crate::json::{self, Object};
use crate::text::{self, NAME_CHARS_MAX, line};

/// Largest file that is read; real ones have 400 to 900 bytes.
pub const FILE_BYTES_MAX: usize = 256 * 1024;

/// What a name in the sessions folder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// `<pid>.json`: a status file.
    Status {
        /// The process.
        pid: u32,
    },
    /// `<pid>.<hex>.key`: this process has started. Must not be opened.
    Key {
        /// The process.
        pid: u32,
    },
    /// Anything else: `.key.tmp.…`, `pid-<n>.json` of old versions, a stranger's file.
    Other,
}

/// Tells what a file name stands for, without opening the file.
#[must_use]
pub fn entry(name: &str) -> Entry {
    let pid = |digits: &str| {
        let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
        plain.then(|| digits.parse::<u32>().ok())?
    };
    if let Some(pid) = name.strip_suffix(".json").and_then(pid) {
        return Entry::Status { pid };
    }
    let key = name
        .strip_suffix(".key")
        .and_then(|stem| stem.split_once('.'))
        .filter(|(_, hash)| !hash.is_empty() && hash.bytes().all(|b| b.is_ascii_hexdigit()))
        .and_then(|(digits, _)| pid(digits));
    key.map_or(Entry::Other, |pid| Entry::Key { pid })
}

/// One whole reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// `pid`: the process that wrote it.
    pub pid: u32,
    /// `procStart`: its start time in clock ticks after boot. Absent only in versions before 2.1.90.
    pub proc_start: Option<u64>,
    /// `tmux`: the number behind `%` of the pane it started in. The names beside it may be outdated.
    pub pane: Option<u32>,
    /// `startedAt`, unix ms.
    pub started_ms: Option<i64>,
    /// What core wants to know.
    pub file: SessionFile,
}

/// The file says nothing that can be used. Read it again at its next change.
#[derive(Debug, Error)]
pub enum FileError {
    /// No byte in it: it has just been opened for writing.
    #[error("the status file is empty")]
    Empty,
    /// Cut short, or no JSON object.
    #[error("the status file is not whole: {0}")]
    Torn(serde_json::Error),
    /// Larger than any of Claude's.
    #[error("the status file has {0} bytes")]
    TooLarge(usize),
    /// No `pid`.
    #[error("the status file names no process")]
    NoPid,
    /// A status that no known version writes.
    #[error("the status file says `{0}`, which is not known")]
    UnknownStatus(Arc<str>),
}

/// Reads a file's bytes. `now` is the moment of reading: it puts Claude's wall times on the boot clock.
///
/// # Errors
/// See [`FileError`]; each means "don't know".
pub fn read(bytes: &[u8], now: Stamp) -> Result<Reading, FileError> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(FileError::TooLarge(bytes.len()));
    }
    let body = json::lossy(bytes);
    if body.trim_matches(['\0', ' ', '\t', '\r', '\n']).is_empty() {
        return Err(FileError::Empty);
    }
    let object = Object::parse(&body).map_err(FileError::Torn)?;
    let pid = object.get::<u32>("pid").ok_or(FileError::NoPid)?;
    let name = |key: &str| {
        let text = object.text(key)?;
        (!text.is_empty()).then(|| line(&text, NAME_CHARS_MAX))
    };
    let id = |key: &str| text::id(&object.text(key)?);
    let status = object
        .text("status")
        .map(|status| match status.as_str() {
            "idle" => Ok(FileStatus::Idle),
            "busy" => Ok(FileStatus::Busy),
            "waiting" => Ok(FileStatus::Waiting),
            "shell" => Ok(FileStatus::Shell),
            other => Err(FileError::UnknownStatus(line(other, NAME_CHARS_MAX))),
        })
        .transpose()?;
    let waiting_for = match status {
        Some(FileStatus::Waiting) => object.text("waitingFor").map(|text| waiting_for(&text)),
        Some(FileStatus::Idle | FileStatus::Busy | FileStatus::Shell) | None => None,
    };
    let file = SessionFile {
        conversation: id("sessionId").map(ConversationId),
        status,
        waiting_for,
        status_since: object
            .get::<i64>("statusUpdatedAt")
            .map(|wall_ms| on_our_clock(wall_ms, now)),
        kind: kind(&object),
        parked_job: id("parkedJobId"),
        job: id("jobId"),
        cwd: object.text("cwd").and_then(|cwd| text::path(&cwd)),
        version: name("version"),
        name: name("name"),
    };
    Ok(Reading {
        pid,
        proc_start: ticks(&object),
        pane: object
            .text("tmux")
            .and_then(|tmux| tmux.rsplit_once('%')?.1.parse().ok()),
        started_ms: object.get("startedAt"),
        file,
    })
}

/// Text in all known versions; a number would mean the same.
fn ticks(object: &Object<'_>) -> Option<u64> {
    let text = object.text("procStart").and_then(|text| text.parse().ok());
    text.or_else(|| object.get("procStart"))
}

fn kind(object: &Object<'_>) -> AgentKind {
    let kind = object.text("kind").unwrap_or_default();
    let entrypoint = object.text("entrypoint").unwrap_or_default();
    if object.flag("spare") || kind.starts_with("daemon") {
        AgentKind::Hidden
    } else if kind == "bg" {
        AgentKind::Background
    } else if entrypoint.starts_with("sdk") {
        AgentKind::Headless
    } else {
        AgentKind::Interactive
    }
}

/// 2.1.128 writes free text (`approve Bash`), later versions a fixed list.
fn waiting_for(text: &str) -> WaitingFor {
    match text {
        "permission prompt" => WaitingFor::Permission,
        "input needed" => WaitingFor::Input,
        "dialog open" => WaitingFor::DialogOpen,
        other if other.starts_with("approve ") => WaitingFor::Permission,
        other if other.starts_with("answer") => WaitingFor::Input,
        other => WaitingFor::Other(line(other, NAME_CHARS_MAX)),
    }
}

/// A wall time of Claude's as a moment on the boot clock, by its age at the time of reading. One from the
/// future (a clock was set) is now.
fn on_our_clock(wall_ms: i64, now: Stamp) -> Stamp {
    let wall_ms = wall_ms.min(now.wall_ms);
    let age_ms = u64::try_from(now.wall_ms.saturating_sub(wall_ms)).unwrap_or(0);
    Stamp {
        boot: Time(now.boot.0.saturating_sub(age_ms.saturating_mul(1_000_000))),
        wall_ms,
    }
}
