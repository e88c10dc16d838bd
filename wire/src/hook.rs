//! Claude's hooks: the headers our hook program adds, the payload Claude gave it (measured, Claude Code
//! 2.0.77 to 2.1.332), the minimal body other programs send, and the spool record kept while the server is
//! down.
//!
//! Must never fail for an event, a field or a value it does not know: those are `HookKind::Unknown` and
//! absent fields. Only a body that is no JSON object, or one that names no event, is refused.
//!
//! # Headers
//! | header | value |
//! |---|---|
//! | `x-pmux-event` | Claude's name of the event, e.g. `UserPromptSubmit` |
//! | `x-pmux-pid` | decimal pid of the Claude process |
//! | `x-pmux-start` | its start time in clock ticks after boot (field 22 of `/proc/PID/stat`), decimal |
//! | `x-pmux-pane` | `$TMUX_PANE` as it is: `%5` |
//! | `x-pmux-tmux` | `$TMUX` as it is: `<socket>,<pid>,<session>`; bytes other than printable ASCII, and `%`, as `%XX` |
//! | `x-pmux-stamp` | `<CLOCK_BOOTTIME ns>,<boot id>,<unix ms>`, taken first thing by the hook process |
//! | `x-pmux-id` | random, at most 64 of `[0-9A-Za-z-]` |
//! | `x-pmux-job` | `1` when the hook's environment has `CLAUDE_JOB_DIR` (background sessions) |
//!
//! All may be absent; one that can't be read counts as absent. The body's own event name wins over the header.

use std::fmt;
use std::sync::Arc;

use jiff::tz::TimeZone;
use purplemux_core::witness::{BackgroundTasks, Hook, HookKind, Question, StartSource, ToolCall};
use purplemux_core::{AgentKey, ConversationId, HookId, HostId, PaneKey, Stamp, Time, TmuxServer};
use thiserror::Error;

use crate::cron;
use crate::json::{self, Object};
use crate::status_line;
use crate::text::{self, ASK_CHARS_MAX, MESSAGE_CHARS_MAX, NAME_CHARS_MAX, block, line};

/// Largest payload that is sent on. A longer one (a tool's huge result) is left out by the hook program and
/// by the server alike, and the event still counts.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Most questions and most options of one question that are shown. Claude asks at most 4 with 4 options.
const QUESTIONS_MAX: usize = 16;

/// Names of the headers, in the order the hook program writes them.
pub mod header {
    /// The event's name.
    pub const EVENT: &str = "x-pmux-event";
    /// Claude's pid.
    pub const PID: &str = "x-pmux-pid";
    /// Its start time.
    pub const START: &str = "x-pmux-start";
    /// The pane.
    pub const PANE: &str = "x-pmux-pane";
    /// The tmux server.
    pub const TMUX: &str = "x-pmux-tmux";
    /// When the hook process started.
    pub const STAMP: &str = "x-pmux-stamp";
    /// Makes repeats harmless.
    pub const ID: &str = "x-pmux-id";
    /// Fired by a background session.
    pub const JOB: &str = "x-pmux-job";
}

/// A post that is no hook. Answered with 400 and this sentence.
#[derive(Debug, Error)]
pub enum HookError {
    /// Neither the body nor the header names an event.
    #[error("neither the body nor x-pmux-event names an event")]
    NoEvent,
    /// The body is not one JSON object.
    #[error("the body is not a JSON object: {0}")]
    Json(#[from] serde_json::Error),
    /// A spool record that is cut short or was never one.
    #[error("not a whole spool record")]
    Spool,
}

/// `$TMUX` taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TmuxEnv {
    /// Path of the server's socket.
    pub socket: Vec<u8>,
    /// The server's pid.
    pub pid: u32,
    /// The number behind `$` of the session the pane was made in.
    pub session: u32,
}

impl TmuxEnv {
    /// Reads `<socket>,<pid>,<session>`; the socket's path may hold commas.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let mut parts = value.rsplitn(3, |&b| b == b',');
        let session = number(parts.next()?)?;
        let pid = number(parts.next()?)?;
        let socket = parts.next()?.to_vec();
        Some(Self {
            socket,
            pid,
            session,
        })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.socket.clone();
        bytes.extend_from_slice(format!(",{},{}", self.pid, self.session).as_bytes());
        bytes
    }
}

/// When the hook process started, as it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookStamp {
    /// CLOCK_BOOTTIME in nanoseconds.
    pub boot_ns: u64,
    /// `/proc/sys/kernel/random/boot_id`: the boot the nanoseconds belong to.
    pub boot_id: String,
    /// Wall clock, unix milliseconds.
    pub wall_ms: i64,
}

impl HookStamp {
    /// Reads `<ns>,<boot id>,<unix ms>`.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let value = std::str::from_utf8(value).ok()?;
        let mut parts = value.split(',');
        let stamp = Self {
            boot_ns: parts.next()?.trim().parse().ok()?,
            boot_id: parts.next()?.trim().to_owned(),
            wall_ms: parts.next()?.trim().parse().ok()?,
        };
        (parts.next().is_none() && stamp.boot_id.len() <= 64).then_some(stamp)
    }

    /// The moment on our clocks. Of another boot only the wall time counts. Nothing can have happened after
    /// it was received, so a stamp from the future is cut to `now`.
    #[must_use]
    pub fn on_our_clock(&self, boot_id: &str, now: Stamp) -> Stamp {
        let wall_ms = self.wall_ms.clamp(0, now.wall_ms.max(0));
        let boot = if self.boot_id == boot_id {
            Time(self.boot_ns).min(now.boot)
        } else {
            let age_ms = u64::try_from(now.wall_ms.saturating_sub(wall_ms)).unwrap_or(0);
            Time(now.boot.0.saturating_sub(age_ms.saturating_mul(1_000_000)))
        };
        Stamp { boot, wall_ms }
    }
}

impl fmt::Display for HookStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.boot_ns, self.boot_id, self.wall_ms)
    }
}

/// What our hook program says beside Claude's payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Name of the event as it was registered.
    pub event: Option<String>,
    /// Pid of the Claude process.
    pub pid: Option<u32>,
    /// Its start time in clock ticks.
    pub start: Option<u64>,
    /// The number behind `%` in `$TMUX_PANE`.
    pub pane: Option<u32>,
    /// `$TMUX`.
    pub tmux: Option<TmuxEnv>,
    /// When the hook process started.
    pub stamp: Option<HookStamp>,
    /// Random id.
    pub id: Option<HookId>,
    /// The hook's environment has `CLAUDE_JOB_DIR`.
    pub job: bool,
}

impl Headers {
    /// Reads them by name; what is absent or odd is absent.
    #[must_use]
    pub fn read<'a>(get: impl Fn(&'static str) -> Option<&'a [u8]>) -> Self {
        Self {
            event: get(header::EVENT)
                .map(|value| json::lossy(value).trim().to_owned())
                .filter(|event| !event.is_empty() && event.len() <= NAME_CHARS_MAX),
            pid: get(header::PID).and_then(number),
            start: get(header::START).and_then(number),
            pane: get(header::PANE).and_then(parse_pane),
            tmux: get(header::TMUX).and_then(|value| TmuxEnv::parse(&unescape(value))),
            stamp: get(header::STAMP).and_then(HookStamp::parse),
            id: get(header::ID).and_then(parse_id),
            job: get(header::JOB) == Some(b"1"),
        }
    }

    /// Names and values to send; every value is printable ASCII.
    #[must_use]
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        let mut push = |name, value: Option<String>| pairs.extend(value.map(|value| (name, value)));
        push(
            header::EVENT,
            self.event.as_deref().map(|event| escape(event.as_bytes())),
        );
        push(header::PID, self.pid.map(|pid| pid.to_string()));
        push(header::START, self.start.map(|start| start.to_string()));
        push(header::PANE, self.pane.map(|pane| format!("%{pane}")));
        push(
            header::TMUX,
            self.tmux.as_ref().map(|tmux| escape(&tmux.bytes())),
        );
        push(header::STAMP, self.stamp.as_ref().map(HookStamp::to_string));
        push(header::ID, self.id.as_ref().map(HookId::to_string));
        push(header::JOB, self.job.then(|| "1".to_owned()));
        pairs
    }
}

/// The number behind `%` in `$TMUX_PANE`.
#[must_use]
pub fn parse_pane(value: &[u8]) -> Option<u32> {
    number(value.trim_ascii().strip_prefix(b"%")?)
}

/// What only the receiver knows.
#[derive(Clone, Debug)]
pub struct Here<'a> {
    /// This machine.
    pub host: &'a HostId,
    /// This boot.
    pub boot_id: &'a str,
    /// When the post was received; the hook's time if it brings no stamp.
    pub now: Stamp,
    /// Start time of the process `x-pmux-pid` names, looked up when `x-pmux-start` is absent.
    pub agent_start: Option<u64>,
    /// Start time of the tmux server `x-pmux-tmux` names, if it runs.
    pub tmux_start: Option<u64>,
    /// The zone in which Claude reads the times of its scheduled wake-ups: the machine's.
    pub zone: &'a TimeZone,
}

/// A hook as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The hook, as far as it says itself whom it concerns.
    pub hook: Hook,
    /// The minimal body names a tmux session instead of a process: one of our tabs, or none we know.
    pub tmux_session: Option<Arc<str>>,
}

/// Reads one post. `body: None` (or an empty one): it was too large or its writer died; the event counts by
/// its header.
///
/// # Errors
/// The body is no JSON object, or nothing names an event.
pub fn read(
    headers: &Headers,
    body: Option<&[u8]>,
    here: &Here<'_>,
) -> Result<Received, HookError> {
    let body = body.map(json::lossy).filter(|body| !body.trim().is_empty());
    let payload = body.as_deref().map(Object::parse).transpose()?;
    let payload = payload.unwrap_or_default();
    let at = headers
        .stamp
        .as_ref()
        .map_or(here.now, |stamp| stamp.on_our_clock(here.boot_id, here.now));
    let event = payload
        .text("hook_event_name")
        .or_else(|| payload.text("event"))
        .or_else(|| headers.event.clone())
        .filter(|event| !event.is_empty())
        .ok_or(HookError::NoEvent)?;
    let start = headers.start.or(here.agent_start);
    let agent = headers.pid.zip(start).map(|(pid, start)| AgentKey {
        host: here.host.clone(),
        pid,
        start,
    });
    let pane = match (headers.pane, &headers.tmux, here.tmux_start) {
        (Some(pane), Some(tmux), Some(start)) => Some(PaneKey {
            server: TmuxServer {
                host: here.host.clone(),
                pid: tmux.pid,
                start,
            },
            pane,
        }),
        (_, _, _) => None,
    };
    let hook = Hook {
        id: headers.id.clone(),
        at,
        agent,
        pane,
        conversation: id_of(&payload, "session_id").map(ConversationId),
        transcript: payload.text("transcript_path").and_then(|p| text::path(&p)),
        cwd: payload.text("cwd").and_then(|p| text::path(&p)),
        agent_id: id_of(&payload, "agent_id"),
        prompt_id: id_of(&payload, "prompt_id"),
        job: headers.job,
        kind: kind(&event, &payload, at, here.zone),
    };
    // Claude's own payloads say who they are by process and pane.
    let minimal = payload.raw("hook_event_name").is_none();
    Ok(Received {
        hook,
        tmux_session: payload
            .text("session")
            .filter(|session| minimal && !session.is_empty())
            .map(|session| line(&session, NAME_CHARS_MAX)),
    })
}

/// Claude's words for what happened. Names are compared without case, `-` and `_`, so that the minimal body's
/// `stop` and `pre-compact` are the same events.
fn kind(event: &str, payload: &Object<'_>, at: Stamp, zone: &TimeZone) -> HookKind {
    let plain: String = event
        .chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    match plain.as_str() {
        "sessionstart" => HookKind::SessionStart {
            source: start_source(&payload.text("source").unwrap_or_default()),
        },
        "sessionend" => HookKind::SessionEnd {
            reason: name_of(payload, "reason"),
        },
        "userpromptsubmit" => {
            let prompt = payload.text("prompt").unwrap_or_default();
            HookKind::Prompt {
                task_notification: is_task_notification(&prompt),
                text: block(&prompt, MESSAGE_CHARS_MAX),
            }
        }
        "pretooluse" => HookKind::ToolStarted {
            tool: tool_call(payload),
        },
        "posttooluse" => HookKind::ToolEnded {
            tool: tool_call(payload),
        },
        "posttoolusefailure" => HookKind::ToolFailed {
            tool: tool_call(payload),
            interrupted: payload.flag("is_interrupt"),
        },
        "permissionrequest" => HookKind::PermissionRequested {
            tool: tool_call(payload),
        },
        "notification" => HookKind::Notified {
            kind: payload
                .text("notification_type")
                .filter(|kind| !kind.is_empty())
                .map(|kind| line(&kind, NAME_CHARS_MAX)),
            message: message_of(payload, "message").unwrap_or_default(),
        },
        "elicitation" => HookKind::FormAsked {
            server: name_of(payload, "mcp_server_name"),
            message: message_of(payload, "message").unwrap_or_default(),
        },
        "elicitationresult" => HookKind::FormAnswered,
        "stop" => stopped(payload, at, zone),
        "stopfailure" => HookKind::StopFailed {
            error: name_of(payload, "error"),
            message: message_of(payload, "last_assistant_message")
                .or_else(|| message_of(payload, "error_details")),
        },
        "subagentstart" => HookKind::SubagentStarted {
            id: id_of(payload, "agent_id").unwrap_or_default(),
            kind: name_of(payload, "agent_type"),
        },
        "subagentstop" => HookKind::SubagentStopped {
            id: id_of(payload, "agent_id").unwrap_or_default(),
            kind: name_of(payload, "agent_type"),
        },
        "precompact" => HookKind::CompactStarted {
            manual: payload.text("trigger").as_deref() == Some("manual"),
        },
        "postcompact" => HookKind::CompactEnded,
        "statusline" => HookKind::StatusLine {
            line: status_line::read(payload),
        },
        "cwdchanged" => match payload.text("new_cwd").and_then(|cwd| text::path(&cwd)) {
            Some(cwd) => HookKind::CwdChanged { cwd },
            None => unknown(event),
        },
        _ => unknown(event),
    }
}

fn unknown(event: &str) -> HookKind {
    HookKind::Unknown {
        name: line(event, NAME_CHARS_MAX),
    }
}

fn start_source(source: &str) -> StartSource {
    match source {
        "startup" => StartSource::Startup,
        "resume" => StartSource::Resume,
        "clear" => StartSource::Clear,
        "compact" => StartSource::Compact,
        "fork" => StartSource::Fork,
        other => StartSource::Other(line(other, NAME_CHARS_MAX)),
    }
}

fn stopped(payload: &Object<'_>, at: Stamp, zone: &TimeZone) -> HookKind {
    let background = payload.list("background_tasks").map(|tasks| {
        let mut running = BackgroundTasks::default();
        for task in tasks.iter().filter_map(|task| Object::parse(task).ok()) {
            match (task.text("status").as_deref(), task.text("type").as_deref()) {
                (None | Some("running"), Some("shell")) => running.shells += 1,
                (None | Some("running"), _) => running.agents += 1,
                (Some(_), _) => {}
            }
        }
        running
    });
    let crons = payload.list("session_crons").unwrap_or_default();
    let wakes_at_ms = crons
        .iter()
        .filter_map(|cron| Object::parse(cron).ok()?.text("schedule"))
        .filter_map(|schedule| cron::next(&schedule, at.wall_ms, zone))
        .min();
    HookKind::Stopped {
        last_message: message_of(payload, "last_assistant_message"),
        background,
        wakes_at_ms,
        has_crons: !crons.is_empty(),
        stop_hook_active: payload.flag("stop_hook_active"),
    }
}

fn tool_call(payload: &Object<'_>) -> ToolCall {
    tool(
        &payload.text("tool_name").unwrap_or_default(),
        id_of(payload, "tool_use_id"),
        payload.raw("tool_input").unwrap_or("{}"),
    )
}

/// A tool call from its name, id and input; the transcript shows the same three.
pub(crate) fn tool(name: &str, use_id: Option<Arc<str>>, input: &str) -> ToolCall {
    let value = serde_json::from_str::<serde_json::Value>(input).ok();
    // Sorted keys and no blanks, so that two hooks of one call agree; raw where it is too deep to read.
    let canonical = value
        .as_ref()
        .map_or_else(|| input.to_owned(), ToString::to_string);
    let fields = Object::parse(input).unwrap_or_default();
    let questions = questions(name, &fields);
    let first = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| fields.text(key))
            .filter(|text| !text.trim().is_empty())
    };
    let arg = match (name, arg_keys(name)) {
        ("AskUserQuestion", _) => questions.first().map(|question| question.text.to_string()),
        // What a tool we do not know does is in some field or other: show them all.
        (_, []) => None,
        (_, keys) => first(keys),
    };
    let arg = arg.or_else(|| match canonical.as_str() {
        "{}" | "null" => None,
        other => Some(other.to_owned()),
    });
    ToolCall {
        name: line(name, NAME_CHARS_MAX),
        use_id,
        arg: arg.map(|arg| line(&arg, ASK_CHARS_MAX)),
        input_digest: digest(canonical.as_bytes()),
        questions,
    }
}

/// The fields that say what a tool works on, the first that is there; none for a tool we do not know.
fn arg_keys(name: &str) -> &'static [&'static str] {
    match name {
        "Bash" | "PowerShell" => &["command"],
        "Read" | "Write" | "Edit" | "MultiEdit" | "LS" => &["file_path", "path"],
        "NotebookEdit" | "NotebookRead" => &["notebook_path"],
        "Glob" | "Grep" => &["pattern"],
        "WebFetch" => &["url"],
        "WebSearch" => &["query"],
        "Agent" | "Task" => &["description", "prompt"],
        "Skill" => &["skill", "command"],
        "ExitPlanMode" => &["plan"],
        "AskUserQuestion" => &["questions"],
        _ => &[],
    }
}

/// The first of them.
pub(crate) fn arg_key(name: &str) -> Option<&'static str> {
    arg_keys(name).first().copied()
}

fn questions(tool: &str, input: &Object<'_>) -> Vec<Question> {
    if tool != "AskUserQuestion" {
        return Vec::new();
    }
    let read = |question: &str| {
        let question = Object::parse(question).ok()?;
        let options = question.list("options").unwrap_or_default();
        let label = |option: &&str| {
            let label = json::text(option).or_else(|| Object::parse(option).ok()?.text("label"));
            label.map(|label| line(&label, NAME_CHARS_MAX))
        };
        Some(Question {
            text: block(&question.text("question")?, MESSAGE_CHARS_MAX),
            options: options
                .iter()
                .filter_map(label)
                .take(QUESTIONS_MAX)
                .collect(),
            multi: question.flag("multiSelect"),
        })
    };
    let list = input.list("questions").unwrap_or_default();
    list.iter()
        .filter_map(|question| read(question))
        .take(QUESTIONS_MAX)
        .collect()
}

/// A prompt nobody typed: a background task reports (measured, 2.1.332).
pub(crate) fn is_task_notification(prompt: &str) -> bool {
    prompt.trim_start().starts_with("<task-notification>")
}

fn id_of(payload: &Object<'_>, key: &str) -> Option<Arc<str>> {
    text::id(&payload.text(key)?)
}

fn name_of(payload: &Object<'_>, key: &str) -> Arc<str> {
    line(&payload.text(key).unwrap_or_default(), NAME_CHARS_MAX)
}

fn message_of(payload: &Object<'_>, key: &str) -> Option<Arc<str>> {
    let message = payload.text(key)?;
    (!message.trim().is_empty()).then(|| block(&message, MESSAGE_CHARS_MAX))
}

/// FNV-1a, 64 bits: compares inputs of one machine's tools, guards nothing.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// First line of a spool record; the number counts the bytes of the body, `-` means none was sent.
const SPOOL_MAGIC: &str = "purplemux-hook 1 ";

/// One spool file: the magic line, header lines as in HTTP, an empty line, the body's bytes.
#[must_use]
pub fn encode_spool(headers: &Headers, body: Option<&[u8]>) -> Vec<u8> {
    let length = body.map_or_else(|| "-".to_owned(), |body| body.len().to_string());
    let mut record = format!("{SPOOL_MAGIC}{length}\n");
    for (name, value) in headers.pairs() {
        record.push_str(&format!("{name}: {value}\n"));
    }
    record.push('\n');
    let mut record = record.into_bytes();
    record.extend_from_slice(body.unwrap_or_default());
    record
}

/// Reads a spool file.
///
/// # Errors
/// It is cut short or was never one.
pub fn decode_spool(record: &[u8]) -> Result<(Headers, Option<&[u8]>), HookError> {
    let end = record
        .windows(2)
        .position(|pair| pair == b"\n\n")
        .ok_or(HookError::Spool)?;
    let head = std::str::from_utf8(&record[..end]).map_err(|_| HookError::Spool)?;
    let rest = &record[end + 2..];
    let mut lines = head.lines();
    let length = lines
        .next()
        .and_then(|first| first.strip_prefix(SPOOL_MAGIC))
        .ok_or(HookError::Spool)?;
    let body = match length {
        "-" => None,
        length => Some(length.parse::<usize>().map_err(|_| HookError::Spool)?),
    };
    if rest.len() != body.unwrap_or(0) {
        return Err(HookError::Spool);
    }
    let pairs: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let headers = Headers::read(|wanted| {
        let found = pairs.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| value.as_bytes())
    });
    Ok((headers, body.map(|_| rest)))
}

fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    let digits = std::str::from_utf8(digits.trim_ascii()).ok()?;
    // `parse` would take a sign.
    digits
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| digits.parse().ok())?
}

fn parse_id(value: &[u8]) -> Option<HookId> {
    let id = std::str::from_utf8(value.trim_ascii()).ok()?;
    let fits = !id.is_empty()
        && id.len() <= 64
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    fits.then(|| HookId::from(id))
}

fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'%' | 0..=0x20 | 0x7f.. => out.push_str(&format!("%{byte:02X}")),
            _ => out.push(char::from(byte)),
        }
    }
    out
}

fn unescape(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&byte, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| {
            let hex = std::str::from_utf8(hex)
                .ok()
                .filter(|hex| !hex.starts_with('+'))?;
            u8::from_str_radix(hex, 16).ok()
        });
        match (byte, hex) {
            (b'%', Some(escaped)) => {
                out.push(escaped);
                rest = &tail[2..];
            }
            (other, _) => {
                out.push(other);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOOT: &str = "0c2b8ff5-70a4-4f0e-9f3c-1d53b1f0a111";
    const NOW: Stamp = Stamp {
        boot: Time::from_ms(60_000),
        wall_ms: 1_796_029_168_900,
    };

    fn received(headers: &Headers, body: Option<&[u8]>) -> Result<Received, HookError> {
        let here = Here {
            host: &HostId::from("here"),
            boot_id: BOOT,
            now: NOW,
            agent_start: None,
            tmux_start: Some(77),
            zone: &TimeZone::UTC,
        };
        read(headers, body, &here)
    }

    fn hook(body: &str) -> Hook {
        received(&Headers::default(), Some(body.as_bytes()))
            .expect("a hook")
            .hook
    }

    fn full_headers() -> Headers {
        Headers {
            event: Some("Stop".into()),
            pid: Some(31878),
            start: Some(60389),
            pane: Some(5),
            tmux: TmuxEnv::parse(b"/tmp/tmux-1000/lab,31859,0"),
            stamp: Some(HookStamp {
                boot_ns: 59_990_000_001,
                boot_id: BOOT.into(),
                wall_ms: 1_796_029_168_833,
            }),
            id: Some("4f2c-1".into()),
            job: true,
        }
    }

    fn through_pairs(headers: &Headers) -> Headers {
        let pairs = headers.pairs();
        Headers::read(|wanted| {
            let found = pairs.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value.as_bytes())
        })
    }

    /// Recorded run s02, Claude Code 2.1.332.
    const STOP: &str = r#"{"session_id":"1c81608c-56e1-49ac-9513-332c5e0f0c41","transcript_path":"/home/dev/.claude/projects/-home-dev-proj/1c81608c-56e1-49ac-9513-332c5e0f0c41.jsonl","cwd":"/home/dev/proj","prompt_id":"64ffb3f2","permission_mode":"default","effort":{"level":"medium"},"hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"hello","background_tasks":[],"session_crons":[]}"#;

    #[test]
    fn a_stop_is_read_whole() {
        let got = received(&full_headers(), Some(STOP.as_bytes())).expect("a hook");
        assert_eq!(got.tmux_session, None);
        let here = HostId::from("here");
        assert_eq!(
            got.hook,
            Hook {
                id: Some("4f2c-1".into()),
                at: Stamp {
                    boot: Time(59_990_000_001),
                    wall_ms: 1_796_029_168_833,
                },
                agent: Some(AgentKey {
                    host: here.clone(),
                    pid: 31878,
                    start: 60389,
                }),
                pane: Some(PaneKey {
                    server: TmuxServer {
                        host: here,
                        pid: 31859,
                        start: 77,
                    },
                    pane: 5,
                }),
                conversation: Some("1c81608c-56e1-49ac-9513-332c5e0f0c41".into()),
                transcript: Some("/home/dev/.claude/projects/-home-dev-proj/1c81608c-56e1-49ac-9513-332c5e0f0c41.jsonl".into()),
                cwd: Some("/home/dev/proj".into()),
                agent_id: None,
                prompt_id: Some("64ffb3f2".into()),
                job: true,
                kind: HookKind::Stopped {
                    last_message: Some("hello".into()),
                    background: Some(BackgroundTasks::default()),
                    wakes_at_ms: None,
                    has_crons: false,
                    stop_hook_active: false,
                },
            }
        );
    }

    #[test]
    fn what_still_runs_and_wakes_is_counted() {
        // Recorded runs s09d, g2, s38 and s36.
        let kind = hook(
            r#"{"hook_event_name":"Stop","stop_hook_active":true,"background_tasks":[
                {"id":"b","type":"shell","status":"running","command":"sleep 8"},
                {"id":"c","type":"shell","status":"completed"},
                {"id":"a","type":"subagent","status":"running","agent_type":"general-purpose"},
                {"id":"t","type":"teammate","status":"running"}, 7],
                "session_crons":[{"id":"bf692cc4","schedule":"20 9 * * *","recurring":false,"prompt":"say woke up"}]}"#,
        )
        .kind;
        let HookKind::Stopped {
            background,
            wakes_at_ms,
            has_crons,
            stop_hook_active,
            ..
        } = kind
        else {
            panic!("{kind:?}");
        };
        assert_eq!(
            background,
            Some(BackgroundTasks {
                shells: 1,
                agents: 2
            })
        );
        assert_eq!(wakes_at_ms, Some(1_796_030_400_000));
        assert!(has_crons && stop_hook_active);
        // 2.1.128 does not say.
        assert!(matches!(
            hook(r#"{"hook_event_name":"Stop"}"#).kind,
            HookKind::Stopped {
                background: None,
                ..
            }
        ));
    }

    #[test]
    fn a_permission_request_matches_its_tool_call() {
        // Recorded run s05: the two payloads differ in everything but name and input.
        let pre = hook(r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"touch a.txt","description":"Run a lab command"},"tool_use_id":"toolu_fake1"}"#).kind;
        let asked = hook(r#"{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"description":"Run a lab command", "command":"touch a.txt"},"permission_suggestions":[]}"#).kind;
        let (HookKind::ToolStarted { tool: pre }, HookKind::PermissionRequested { tool: asked }) =
            (pre, asked)
        else {
            panic!("other kinds");
        };
        assert_eq!(pre.use_id.as_deref(), Some("toolu_fake1"));
        assert_eq!(asked.use_id, None);
        assert_eq!(asked.arg.as_deref(), Some("touch a.txt"));
        assert_eq!(pre.input_digest, asked.input_digest);
        assert_ne!(
            pre.input_digest,
            tool("Bash", None, r#"{"command":"touch b.txt"}"#).input_digest
        );
    }

    #[test]
    fn questions_keep_claudes_own_words() {
        // Recorded run s07.
        let asked = hook(r#"{"hook_event_name":"PermissionRequest","tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"Which colour should the badge have?","header":"Colour","options":[{"label":"Amber","description":"warm"},{"label":"Violet","description":"cool"}],"multiSelect":false}]}}"#).kind;
        let HookKind::PermissionRequested { tool } = asked else {
            panic!("{asked:?}");
        };
        assert_eq!(
            tool.questions,
            [Question {
                text: "Which colour should the badge have?".into(),
                options: vec!["Amber".into(), "Violet".into()],
                multi: false,
            }]
        );
        assert_eq!(
            tool.arg.as_deref(),
            Some("Which colour should the badge have?")
        );
    }

    #[test]
    fn a_tool_nobody_knows_shows_all_it_was_given() {
        let unknown = tool(
            "mcp__lab__drop",
            None,
            r#"{"table": "users", "sure": true}"#,
        );
        assert_eq!(
            unknown.arg.as_deref(),
            Some(r#"{"sure":true,"table":"users"}"#)
        );
        assert_eq!(tool("ExitPlanMode", None, "{}").arg, None);
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        assert!(
            tool("x", None, &deep)
                .arg
                .is_some_and(|arg| arg.len() < 20_000)
        );
    }

    #[test]
    fn every_registered_event_is_known() {
        let kind = |json: &str| hook(json).kind;
        for (source, start) in [
            ("startup", StartSource::Startup),
            ("resume", StartSource::Resume),
            ("clear", StartSource::Clear),
            ("compact", StartSource::Compact),
            ("fork", StartSource::Fork),
            ("tomorrow", StartSource::Other("tomorrow".into())),
        ] {
            assert_eq!(
                kind(&format!(
                    r#"{{"hook_event_name":"SessionStart","source":"{source}"}}"#
                )),
                HookKind::SessionStart { source: start }
            );
        }
        assert_eq!(
            kind(r#"{"hook_event_name":"SessionEnd","reason":"prompt_input_exit"}"#),
            HookKind::SessionEnd {
                reason: "prompt_input_exit".into()
            }
        );
        assert_eq!(
            kind(
                r#"{"hook_event_name":"UserPromptSubmit","prompt":"<task-notification>\n<task-id>b</task-id>"}"#
            ),
            HookKind::Prompt {
                text: "<task-notification>\n<task-id>b</task-id>".into(),
                task_notification: true,
            }
        );
        assert!(matches!(
            kind(r#"{"hook_event_name":"PostToolUse","tool_name":"Read","tool_input":{"file_path":"/a"},"tool_response":{},"tool_use_id":"t"}"#),
            HookKind::ToolEnded { tool } if tool.arg.as_deref() == Some("/a")
        ));
        assert!(matches!(
            kind(
                r#"{"hook_event_name":"PostToolUseFailure","tool_name":"Bash","is_interrupt":true}"#
            ),
            HookKind::ToolFailed {
                interrupted: true,
                ..
            }
        ));
        assert_eq!(
            kind(
                r#"{"hook_event_name":"Notification","message":"Claude needs your permission","notification_type":"permission_prompt"}"#
            ),
            HookKind::Notified {
                kind: Some("permission_prompt".into()),
                message: "Claude needs your permission".into(),
            }
        );
        assert_eq!(
            kind(
                r#"{"hook_event_name":"Elicitation","mcp_server_name":"lab","message":"Pick a shade","mode":"form"}"#
            ),
            HookKind::FormAsked {
                server: "lab".into(),
                message: "Pick a shade".into()
            }
        );
        assert_eq!(
            kind(r#"{"hook_event_name":"ElicitationResult","action":"decline"}"#),
            HookKind::FormAnswered
        );
        assert_eq!(
            kind(
                r#"{"hook_event_name":"StopFailure","error":"rate_limit","last_assistant_message":"API Error: 429"}"#
            ),
            HookKind::StopFailed {
                error: "rate_limit".into(),
                message: Some("API Error: 429".into()),
            }
        );
        assert_eq!(
            kind(
                r#"{"hook_event_name":"SubagentStart","agent_id":"a1","agent_type":"general-purpose"}"#
            ),
            HookKind::SubagentStarted {
                id: "a1".into(),
                kind: "general-purpose".into()
            }
        );
        assert_eq!(
            kind(r#"{"hook_event_name":"SubagentStop","agent_id":"a1","agent_type":""}"#),
            HookKind::SubagentStopped {
                id: "a1".into(),
                kind: "".into()
            }
        );
        assert_eq!(
            kind(
                r#"{"hook_event_name":"PreCompact","trigger":"manual","custom_instructions":null}"#
            ),
            HookKind::CompactStarted { manual: true }
        );
        assert_eq!(
            kind(r#"{"hook_event_name":"PostCompact","trigger":"auto"}"#),
            HookKind::CompactEnded
        );
        assert_eq!(
            kind(r#"{"hook_event_name":"CwdChanged","old_cwd":"/a","new_cwd":"/a/sub"}"#),
            HookKind::CwdChanged {
                cwd: "/a/sub".into()
            }
        );
        assert_eq!(
            kind(r#"{"hook_event_name":"MessageDisplay"}"#),
            HookKind::Unknown {
                name: "MessageDisplay".into()
            }
        );
    }

    #[test]
    fn the_minimal_body_names_a_tab() {
        let got = received(
            &Headers::default(),
            Some(br#"{"event":"stop","session":"tab-7"}"#),
        )
        .expect("a hook");
        assert_eq!(got.tmux_session.as_deref(), Some("tab-7"));
        assert!(matches!(
            got.hook.kind,
            HookKind::Stopped {
                background: None,
                ..
            }
        ));
        assert_eq!(
            (got.hook.id, got.hook.at, got.hook.agent),
            (None, NOW, None)
        );
    }

    #[test]
    fn a_body_left_out_still_counts_by_its_header() {
        let kind = |event: &str, body| {
            let headers = Headers {
                event: Some(event.into()),
                ..Headers::default()
            };
            received(&headers, body).expect("a hook").hook.kind
        };
        assert!(matches!(kind("Stop", None), HookKind::Stopped { .. }));
        assert!(matches!(
            kind("PostToolUse", Some(b" \n".as_slice())),
            HookKind::ToolEnded { .. }
        ));
    }

    #[test]
    fn broken_bodies_are_refused_in_words() {
        for body in [
            "{",
            "[1]",
            "null",
            "\"Stop\"",
            "{\"hook_event_name\":\"Stop\"",
            "Stop",
        ] {
            let error = received(&full_headers(), Some(body.as_bytes())).expect_err(body);
            assert!(
                error
                    .to_string()
                    .starts_with("the body is not a JSON object"),
                "{error}"
            );
        }
        let nothing = received(&Headers::default(), Some(b"{}")).expect_err("no event");
        assert!(matches!(nothing, HookError::NoEvent));
        assert!(matches!(
            received(&Headers::default(), None),
            Err(HookError::NoEvent)
        ));
    }

    #[test]
    fn odd_fields_lose_themselves_alone() {
        let hook = hook(
            r#"{"hook_event_name":"UserPromptSubmit","session_id":7,"transcript_path":"../../etc/passwd","cwd":"relative","prompt":"\ud83d\u202e\u001b[31mhi","agent_id":"a b"}"#,
        );
        assert_eq!(hook.conversation, None);
        assert_eq!(hook.transcript, None);
        assert_eq!(hook.cwd, None);
        assert_eq!(hook.agent_id, None);
        let HookKind::Prompt { text, .. } = hook.kind else {
            panic!("{:?}", hook.kind);
        };
        assert!(text.ends_with("‹U+202E›␛[31mhi"), "{text}");
    }

    #[test]
    fn long_texts_are_bounded() {
        let body = format!(
            r#"{{"hook_event_name":"StopFailure","error":"{}","last_assistant_message":"{}"}}"#,
            "k".repeat(20_000),
            "m".repeat(20_000)
        );
        let HookKind::StopFailed { error, message } = hook(&body).kind else {
            panic!("another kind");
        };
        assert!(error.chars().count() <= NAME_CHARS_MAX + 20);
        assert!(message.is_some_and(|message| message.chars().count() <= MESSAGE_CHARS_MAX + 20));
    }

    #[test]
    fn stamps_of_this_boot_order_and_others_count_by_wall_time() {
        let stamp = |boot_ns, boot_id: &str, wall_ms| {
            HookStamp {
                boot_ns,
                boot_id: boot_id.into(),
                wall_ms,
            }
            .on_our_clock(BOOT, NOW)
        };
        let now_ms = NOW.wall_ms;
        assert_eq!(
            stamp(5, BOOT, now_ms - 900),
            Stamp {
                boot: Time(5),
                wall_ms: now_ms - 900
            }
        );
        assert_eq!(
            stamp(5, "another boot", now_ms - 900),
            Stamp {
                boot: Time::from_ms(59_100),
                wall_ms: now_ms - 900
            }
        );
        assert_eq!(stamp(u64::MAX, BOOT, i64::MAX), NOW);
        assert_eq!(
            stamp(5, "another boot", i64::MIN),
            Stamp {
                boot: Time(0),
                wall_ms: 0
            }
        );
    }

    #[test]
    fn headers_survive_the_way() {
        assert_eq!(through_pairs(&full_headers()), full_headers());
        let odd = Headers {
            tmux: Some(TmuxEnv {
                socket: "/tmp/a b,c/ü%41\n".as_bytes().to_vec(),
                pid: 1,
                session: 2,
            }),
            ..Headers::default()
        };
        assert_eq!(through_pairs(&odd), odd);
        assert!(odd.pairs()[0].1.is_ascii());
        // As curl sends it from the environment.
        assert_eq!(
            Headers::read(|name| (name == header::PANE).then_some(b"%5".as_slice())).pane,
            Some(5)
        );
    }

    #[test]
    fn spool_records_are_whole_or_refused() {
        for body in [None, Some(b"".as_slice()), Some(b"{\"a\":\"\n\n\"}\xff")] {
            let record = encode_spool(&full_headers(), body);
            let (headers, got) = decode_spool(&record).expect("a record");
            assert_eq!((headers, got), (full_headers(), body));
            for cut in 0..record.len() {
                assert!(decode_spool(&record[..cut]).is_err(), "cut at {cut}");
            }
        }
        assert!(decode_spool(b"GET / HTTP/1.1\n\n").is_err());
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(got) = received(&Headers::default(), Some(&body)) {
                prop_assert_eq!(got.hook.at, NOW);
            }
        }

        #[test]
        fn any_field_of_any_event_is_read(
            event in "(SessionStart|UserPromptSubmit|PreToolUse|PermissionRequest|Notification|Elicitation|Stop|StopFailure|SubagentStop|PreCompact|CwdChanged|x)",
            key in "(source|prompt|tool_name|tool_input|notification_type|message|background_tasks|session_crons|error|agent_id|new_cwd|session_id)",
            value in r#"(null|true|-1|1e999|"\PC{0,9}"|\[\]|\[\{\}\]|\{"questions":\[1,\{"question":"q","options":\[\[\]\]\}\]\}|\{\}|"\\ud800")"#,
        ) {
            let body = format!(r#"{{"hook_event_name":"{event}","{key}":{value}}}"#);
            // The value may hold a quote of its own; then it is a broken body.
            if let Err(error) = received(&Headers::default(), Some(body.as_bytes())) {
                prop_assert!(matches!(error, HookError::Json(_)));
            }
        }

        #[test]
        fn any_header_is_read_or_absent(value in prop::collection::vec(any::<u8>(), 0..60)) {
            let headers = Headers::read(|_| Some(&value));
            prop_assert_eq!(through_pairs(&headers).tmux, headers.tmux);
        }

        #[test]
        fn any_file_is_a_record_or_none(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(decode_spool(&bytes).is_err());
        }
    }
}
