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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Stamp = Stamp {
        boot: Time::from_ms(100_000),
        wall_ms: 1_796_029_172_312,
    };

    fn file(json: &str) -> SessionFile {
        read(json.as_bytes(), NOW).expect("a whole file").file
    }

    /// 2.1.332, recorded run s02: a permission dialog.
    const WAITING: &str = r#"{"pid":31878,"sessionId":"1c81608c-56e1-49ac-9513-332c5e0f0c41","cwd":"/home/dev/proj","startedAt":1796029160526,"procStart":"60389","version":"2.1.332","peerProtocol":1,"peerFeatures":["notify_idle"],"kind":"interactive","entrypoint":"cli","pidDomain":"linux:0:pid:[4026531836]","asksForConvertedSkills":null,"tmux":"s02_simple:@0.%12","messagingSocketPath":"/tmp/cc-socks/31878.sock","name":"proj-2b","nameSource":"derived","nameSince":1796029160526,"status":"waiting","updatedAt":1796029172282,"statusUpdatedAt":1796029172282,"waitingFor":"permission prompt"}"#;

    #[test]
    fn the_newest_version_is_read_whole() {
        let reading = read(WAITING.as_bytes(), NOW).expect("a whole file");
        assert_eq!(
            reading,
            Reading {
                pid: 31878,
                proc_start: Some(60389),
                pane: Some(12),
                started_ms: Some(1_796_029_160_526),
                file: SessionFile {
                    conversation: Some("1c81608c-56e1-49ac-9513-332c5e0f0c41".into()),
                    status: Some(FileStatus::Waiting),
                    waiting_for: Some(WaitingFor::Permission),
                    status_since: Some(Stamp {
                        boot: Time::from_ms(99_970),
                        wall_ms: 1_796_029_172_282,
                    }),
                    kind: AgentKind::Interactive,
                    parked_job: None,
                    job: None,
                    cwd: Some("/home/dev/proj".into()),
                    version: Some("2.1.332".into()),
                    name: Some("proj-2b".into()),
                },
            }
        );
    }

    #[test]
    fn a_file_without_status_is_no_error() {
        // 2.1.90, and every version in the first 0.2 to 1.9 s.
        let young = r#"{"pid":5,"sessionId":"a","cwd":"/","startedAt":1,"procStart":"9","version":"2.1.90","kind":"interactive","entrypoint":"cli"}"#;
        assert_eq!(file(young).status, None);
        assert_eq!(file(young).status_since, None);
        assert_eq!(file(r#"{"pid":5}"#).kind, AgentKind::Interactive);
    }

    #[test]
    fn every_status_and_reason_of_every_version_is_known() {
        let waiting = |reason: &str| {
            file(&format!(
                r#"{{"pid":5,"status":"waiting","waitingFor":"{reason}"}}"#
            ))
            .waiting_for
        };
        assert_eq!(waiting("permission prompt"), Some(WaitingFor::Permission));
        assert_eq!(waiting("approve Bash"), Some(WaitingFor::Permission));
        assert_eq!(waiting("input needed"), Some(WaitingFor::Input));
        assert_eq!(waiting("dialog open"), Some(WaitingFor::DialogOpen));
        for other in [
            "worker request",
            "sandbox request",
            "goal proposal",
            "tomorrow",
        ] {
            assert_eq!(waiting(other), Some(WaitingFor::Other(other.into())));
        }
        assert_eq!(
            file(r#"{"pid":5,"status":"shell"}"#).status,
            Some(FileStatus::Shell)
        );
        // A reason that was left behind says nothing.
        assert_eq!(
            file(r#"{"pid":5,"status":"busy","waitingFor":"dialog open"}"#).waiting_for,
            None
        );
        assert_eq!(file(r#"{"pid":5,"status":"waiting"}"#).waiting_for, None);
    }

    #[test]
    fn background_headless_and_hidden_are_told_apart() {
        let kind = |json: &str| file(json).kind;
        assert_eq!(
            kind(r#"{"pid":5,"kind":"interactive","entrypoint":"sdk-cli"}"#),
            AgentKind::Headless
        );
        assert_eq!(
            kind(r#"{"pid":5,"kind":"bg","jobId":"j1"}"#),
            AgentKind::Background
        );
        assert_eq!(
            kind(r#"{"pid":5,"kind":"bg","spare":true}"#),
            AgentKind::Hidden
        );
        assert_eq!(kind(r#"{"pid":5,"kind":"daemon"}"#), AgentKind::Hidden);
        assert_eq!(
            kind(r#"{"pid":5,"kind":"daemon-worker"}"#),
            AgentKind::Hidden
        );
        let parked = file(r#"{"pid":5,"parkedJobId":"j1","status":"idle"}"#);
        assert_eq!(parked.parked_job.as_deref(), Some("j1"));
        assert_eq!(file(r#"{"pid":5,"jobId":"j1"}"#).job.as_deref(), Some("j1"));
    }

    #[test]
    fn what_is_torn_empty_or_strange_is_no_state() {
        for cut in 0..WAITING.len() {
            assert!(read(&WAITING.as_bytes()[..cut], NOW).is_err(), "{cut}");
        }
        assert!(matches!(read(b"", NOW), Err(FileError::Empty)));
        assert!(matches!(read(&[0; 300], NOW), Err(FileError::Empty)));
        assert!(matches!(read(b"{}", NOW), Err(FileError::NoPid)));
        assert!(matches!(read(b"{\"pid\":-1}", NOW), Err(FileError::NoPid)));
        assert!(matches!(
            read(br#"{"pid":5,"status":"dreaming"}"#, NOW),
            Err(FileError::UnknownStatus(word)) if &*word == "dreaming"
        ));
        let huge = vec![b' '; FILE_BYTES_MAX + 1];
        assert!(matches!(read(&huge, NOW), Err(FileError::TooLarge(_))));
    }

    #[test]
    fn a_time_from_the_future_is_now() {
        let ahead = file(r#"{"pid":5,"status":"idle","statusUpdatedAt":9999999999999}"#);
        assert_eq!(ahead.status_since, Some(NOW));
        let before_boot = file(r#"{"pid":5,"status":"idle","statusUpdatedAt":5}"#);
        assert_eq!(before_boot.status_since.map(|at| at.boot), Some(Time(0)));
    }

    #[test]
    fn names_tell_without_opening() {
        assert_eq!(entry("31878.json"), Entry::Status { pid: 31878 });
        let key = "31878.c2be98726d6dac61aad23a1188624f9c9e8303523f21db1b38e3d40a43893e12.key";
        assert_eq!(entry(key), Entry::Key { pid: 31878 });
        for other in [
            "31878.c2be.key.tmp.0b580b11",
            "pid-31878.json",
            "31878..key",
            "31878.xyz.key",
            "031.json",
            "-3.json",
            "99999999999.json",
            "31878.json.swp",
            "notes.txt",
            ".json",
            "",
        ] {
            assert_eq!(entry(other), Entry::Other, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let pid = read(&bytes, NOW).map(|reading| reading.pid);
            prop_assert!(pid.is_err() || bytes.contains(&0x7b), "from bytes without an object");
        }

        #[test]
        fn odd_fields_lose_themselves_alone(
            key in "(status|waitingFor|statusUpdatedAt|kind|tmux|procStart|cwd|name|jobId|startedAt)",
            value in "(null|true|[0-9]{1,25}|-1|1e999|\"\\PC{0,9}\"|\\[\\]|\\{\\})",
        ) {
            let json = format!(r#"{{"pid":5,"sessionId":"s","{key}":{value}}}"#);
            match read(json.as_bytes(), NOW) {
                Ok(reading) => prop_assert_eq!(reading.file.conversation, Some("s".into())),
                Err(error) => prop_assert!(matches!(error, FileError::UnknownStatus(_) | FileError::Torn(_))),
            }
        }

        #[test]
        fn any_name_is_told_apart(name in "\\PC*|[0-9.a-f]*(json|key)?") {
            if let Entry::Status { pid } = entry(&name) {
                prop_assert_eq!(format!("{pid}.json"), name);
            }
        }
    }
}
