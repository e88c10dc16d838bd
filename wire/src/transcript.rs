//! Claude's transcript: one JSON object a line (measured, Claude Code 2.0.77 to 2.1.332). Turns a line into
//! the facts that may decide something, cuts a growing file into lines, reads a file's end backwards, and tells
//! by the lines' parents which of them belong to a branch that was given up.
//!
//! Opens no file. Must never fail: a line that can't be read, is of a type nobody knows or is too long is
//! skipped and counted, and the rest is read.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use jiff::Timestamp;
use purplemux_core::ConversationId;
use purplemux_core::witness::{TranscriptFact, TranscriptKind};

use crate::hook::{is_task_notification, tool};
use crate::json::{self, Object};
use crate::text::{self, MESSAGE_CHARS_MAX, NAME_CHARS_MAX, block, line};

/// Longest line that is read. The longest that matter hold a tool result with an image: Claude takes 5 MB of
/// image, 6.7 MB in base64.
pub const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Memory kept between lines; what a long line needed beyond it is given back.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// Lines whose place is remembered. A prompt hangs on the newest of them, or after `/rewind` on an older one; one
/// that is older still makes everything that is known count as given up.
const CHAIN_MAX: usize = 1024;

/// The facts of one line, in the order they count; most lines have none.
#[must_use]
pub fn facts(line: &[u8]) -> Vec<TranscriptFact> {
    read(line).facts
}

/// One line.
#[derive(Debug, Default)]
struct Line {
    facts: Vec<TranscriptFact>,
    /// Where a line of the main lane hangs.
    link: Option<Link>,
    /// It has bytes, and they are no JSON object.
    broken: bool,
}

/// `uuid` and `parentUuid` of a line.
#[derive(Debug)]
struct Link {
    id: u64,
    parent: Option<u64>,
    written_ms: Option<i64>,
    prompt: bool,
}

fn read(line: &[u8]) -> Line {
    let line = line.trim_ascii();
    if line.is_empty() || is_bulk(line) {
        return Line::default();
    }
    let text = json::lossy(line);
    let Ok(object) = Object::parse(&text) else {
        return Line {
            broken: true,
            ..Line::default()
        };
    };
    let kinds = match object.text("type").as_deref() {
        Some("assistant") => assistant(&object),
        Some("user") => user(&object),
        Some("system") => system(&object),
        Some("queue-operation") => queue_operation(&object),
        Some("api-request") => request(&object),
        Some("continued-in") => continued_in(&object),
        Some("ai-title") => title(&object, "aiTitle", false),
        Some("custom-title") => title(&object, "customTitle", true),
        Some("summary") => title(&object, "summary", false),
        Some(_) | None => Vec::new(),
    };
    let written_ms = object
        .text("timestamp")
        .and_then(|at| at.parse::<Timestamp>().ok())
        .map(Timestamp::as_millisecond);
    let sidechain = object.flag("isSidechain");
    let prompt = kinds
        .iter()
        .any(|kind| matches!(kind, TranscriptKind::Prompted { .. }));
    let id = object.raw("uuid").filter(|_| !sidechain).map(digest);
    let link = id.map(|id| Link {
        id,
        parent: object
            .raw("parentUuid")
            .filter(|parent| *parent != "null")
            .map(digest),
        written_ms,
        prompt,
    });
    let fact = |kind| TranscriptFact {
        written_ms,
        sidechain,
        kind,
    };
    Line {
        facts: kinds.into_iter().map(fact).collect(),
        link,
        broken: false,
    }
}

fn digest(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// What a row shows of a file besides its badge, from the first bytes of it: titles, and the first thing the
/// person asked. A last line that is not whole is left out.
#[must_use]
pub fn head(bytes: &[u8]) -> Vec<TranscriptFact> {
    let whole = bytes
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(&[][..], |end| &bytes[..end]);
    let mut found = Vec::new();
    let mut asked = false;
    for line in whole.split(|&b| b == b'\n') {
        for fact in facts(line) {
            match &fact.kind {
                TranscriptKind::Title { .. } => found.push(fact),
                TranscriptKind::Prompted {
                    task_notification: false,
                } if !asked && !fact.sidechain => {
                    if let Some(text) = words_of_prompt(line) {
                        asked = true;
                        let kind = TranscriptKind::FirstPrompt { text };
                        found.push(TranscriptFact { kind, ..fact });
                    }
                }
                TranscriptKind::Prompted { .. }
                | TranscriptKind::TurnEnded { .. }
                | TranscriptKind::ApiError { .. }
                | TranscriptKind::Interrupted
                | TranscriptKind::ToolStarted { .. }
                | TranscriptKind::ToolEnded { .. }
                | TranscriptKind::Enqueued
                | TranscriptKind::Dequeued
                | TranscriptKind::CompactBoundary
                | TranscriptKind::ContinuedIn { .. }
                | TranscriptKind::Usage { .. }
                | TranscriptKind::Requested
                | TranscriptKind::FirstPrompt { .. }
                | TranscriptKind::LastWords { .. }
                | TranscriptKind::Rewound { .. } => {}
            }
        }
    }
    found
}

/// The directory that a conversation was started in, from the first bytes of its file: that of the first line that
/// has one. A last line that is not whole is left out.
#[must_use]
pub fn directory(bytes: &[u8]) -> Option<Arc<str>> {
    let whole = bytes.iter().rposition(|&b| b == b'\n')?;
    bytes[..whole].split(|&b| b == b'\n').find_map(|line| {
        let text = json::lossy(line);
        let directory = Object::parse(&text).ok()?.text("cwd")?;
        directory.starts_with('/').then(|| directory.into())
    })
}

/// Of what was read of a file, what a row shows besides its badge: nothing in it tells of a beginning or an end.
#[must_use]
pub fn beside(facts: Vec<TranscriptFact>) -> Vec<TranscriptFact> {
    let beside = |fact: TranscriptFact| {
        let kind = match fact.kind {
            _ if fact.sidechain => return None,
            TranscriptKind::TurnEnded {
                last_message: Some(text),
            } => TranscriptKind::LastWords { text },
            kind @ (TranscriptKind::Usage { .. }
            | TranscriptKind::Title { .. }
            | TranscriptKind::FirstPrompt { .. }
            | TranscriptKind::LastWords { .. }) => kind,
            TranscriptKind::TurnEnded { last_message: None }
            | TranscriptKind::ApiError { .. }
            | TranscriptKind::Interrupted
            | TranscriptKind::Prompted { .. }
            | TranscriptKind::ToolStarted { .. }
            | TranscriptKind::ToolEnded { .. }
            | TranscriptKind::Enqueued
            | TranscriptKind::Dequeued
            | TranscriptKind::CompactBoundary
            | TranscriptKind::ContinuedIn { .. }
            | TranscriptKind::Requested
            | TranscriptKind::Rewound { .. } => return None,
        };
        Some(TranscriptFact { kind, ..fact })
    };
    facts.into_iter().filter_map(beside).collect()
}

/// What a line of a prompt asks. A command is written as tags: `/greet` and its arguments are what was typed.
fn words_of_prompt(line: &[u8]) -> Option<Arc<str>> {
    let text = json::lossy(line);
    let message = Object::parse(&text).ok()?.object("message")?;
    let words = blocks(&message).into_iter().find_map(|block| match block {
        Block::Text(text) => Some(text),
        Block::ToolUse { .. } | Block::ToolResult { .. } => None,
    })?;
    let tag = |name: &str| {
        let (_, rest) = words.split_once(&format!("<{name}>"))?;
        let (inside, _) = rest.split_once(&format!("</{name}>"))?;
        Some(inside.trim())
    };
    let asked = match tag("command-name") {
        Some(command) => {
            let arguments = tag("command-args").unwrap_or_default();
            format!("{command} {arguments}").trim_end().to_owned()
        }
        None => words,
    };
    let first = asked.trim().lines().next()?;
    (!first.is_empty()).then(|| text::line(first, NAME_CHARS_MAX))
}

/// How the lines of the main lane hang together, as far as they were read, newest last. A conversation is a
/// line of them, but for two things: the results of tools that ran side by side each hang on their own call, and
/// after `/rewind` the next *prompt* hangs on an older line. Nothing else tells of a rewind before that prompt
/// (measured, 2.1.332).
#[derive(Debug, Default)]
pub struct Chain {
    /// Each line's id, and when the newest of the lines up to it was written, unix ms.
    newest: VecDeque<(u64, i64)>,
    /// A line that could not be read may be the one that others hang on.
    gap: bool,
}

impl Chain {
    /// Puts a line at the end and its facts into `found`, behind the one that tells of a rewind if it does.
    fn add(&mut self, line: Line, found: &mut Vec<TranscriptFact>) {
        self.gap |= line.broken;
        if let Some(link) = line.link {
            if let Some(to_ms) = self.goes_back(&link) {
                found.push(TranscriptFact {
                    written_ms: link.written_ms,
                    sidechain: false,
                    kind: TranscriptKind::Rewound { to_ms },
                });
            }
            let before = self.newest.back().map_or(i64::MIN, |(_, ms)| *ms);
            let written = link.written_ms.unwrap_or(before);
            self.newest.push_back((link.id, before.max(written)));
            if self.newest.len() > CHAIN_MAX {
                self.newest.pop_front();
            }
        }
        found.extend(line.facts);
    }

    /// The moment that a prompt goes back to, or `Some(None)` for the beginning.
    fn goes_back(&self, link: &Link) -> Option<Option<i64>> {
        let (newest, _) = self.newest.back()?;
        let parent = match link.parent {
            _ if !link.prompt => return None,
            Some(parent) if parent == *newest => return None,
            Some(parent) => parent,
            None => return Some(None),
        };
        let place = self.newest.iter().rev().find(|(id, _)| *id == parent);
        match place {
            Some((_, ms)) => Some(Some(*ms)),
            None if self.gap => None,
            None => Some(None),
        }
    }
}

/// Lines that begin with a type nobody reads: most of a file's bytes, told apart without a scan.
fn is_bulk(line: &[u8]) -> bool {
    const BULK: [&str; 9] = [
        "api-request-blob",
        "api-request-shape",
        "atis-latch",
        "cost-state",
        "file-history-snapshot",
        "last-prompt",
        "mode",
        "permission-mode",
        "tools-used",
    ];
    let rest = line
        .strip_prefix(b"{\"type\":")
        .map(<[u8]>::trim_ascii_start);
    let name = rest
        .and_then(|rest| rest.strip_prefix(b"\""))
        .and_then(|rest| rest.split(|&b| b == b'"').next());
    name.is_some_and(|name| BULK.iter().any(|bulk| bulk.as_bytes() == name))
}

fn assistant(object: &Object<'_>) -> Vec<TranscriptKind> {
    let message = object.object("message").unwrap_or_default();
    let blocks = blocks(&message);
    let text = joined_text(&blocks);
    if object.flag("isApiErrorMessage") {
        let kind = object.text("error").unwrap_or_else(|| "unknown".to_owned());
        return vec![TranscriptKind::ApiError {
            kind: line(&kind, NAME_CHARS_MAX),
            message: text,
        }];
    }
    let mut kinds = Vec::new();
    kinds.extend(usage(&message));
    for block in &blocks {
        if let Block::ToolUse { name, id, input } = block {
            kinds.push(TranscriptKind::ToolStarted {
                tool: tool(name, id.clone(), input),
            });
        }
    }
    // Absent while the answer streams; `tool_use` and `pause_turn` go on; after `max_tokens` Claude goes on by
    // itself, and where it gives up an API error follows (measured, 2.1.332).
    let stop_reason = message.text("stop_reason");
    if matches!(
        stop_reason.as_deref(),
        Some("end_turn" | "stop_sequence" | "refusal")
    ) {
        kinds.push(TranscriptKind::TurnEnded { last_message: text });
    }
    kinds
}

fn usage(message: &Object<'_>) -> Option<TranscriptKind> {
    // `<synthetic>` lines are Claude Code's own and count nothing.
    let model = message
        .text("model")
        .filter(|model| !model.starts_with('<'))?;
    let usage = message.object("usage")?;
    let tokens = |key| usage.get::<u64>(key).unwrap_or(0);
    let context = tokens("input_tokens")
        .saturating_add(tokens("cache_creation_input_tokens"))
        .saturating_add(tokens("cache_read_input_tokens"))
        .saturating_add(tokens("output_tokens"));
    Some(TranscriptKind::Usage {
        model: Some(line(&model, NAME_CHARS_MAX)),
        context_tokens: (context > 0).then_some(context),
    })
}

fn user(object: &Object<'_>) -> Vec<TranscriptKind> {
    let message = object.object("message").unwrap_or_default();
    let blocks = blocks(&message);
    let mut kinds: Vec<TranscriptKind> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolResult { id } => Some(TranscriptKind::ToolEnded { use_id: id.clone() }),
            Block::Text(_) | Block::ToolUse { .. } => None,
        })
        .collect();
    let origin = object
        .object("origin")
        .and_then(|origin| origin.text("kind"));
    let source = object.text("promptSource");
    let first = blocks.iter().find_map(|block| match block {
        Block::Text(text) => Some(text.trim_start()),
        Block::ToolUse { .. } | Block::ToolResult { .. } => None,
    });
    let Some(first) = first else {
        return kinds;
    };
    let unmarked = origin.is_none() && source.is_none();
    if unmarked && first.starts_with("[Request interrupted by user") {
        kinds.push(TranscriptKind::Interrupted);
    } else if object.flag("isCompactSummary") || object.flag("isMeta") && source.is_none() {
        // A summary, a reminder, what a Stop hook said: nobody's prompt.
    } else if unmarked && is_local_note(first) {
        // What a command did that never went to the model.
    } else {
        let nobody_typed = is_task_notification(first)
            || source.as_deref() == Some("system")
            || origin.as_deref() == Some("task-notification");
        kinds.push(TranscriptKind::Prompted {
            task_notification: nobody_typed,
        });
    }
    kinds
}

fn is_local_note(text: &str) -> bool {
    [
        "<command-",
        "<local-command-",
        "<bash-",
        "<system-reminder>",
    ]
    .iter()
    .any(|tag| text.starts_with(tag))
}

fn system(object: &Object<'_>) -> Vec<TranscriptKind> {
    match object.text("subtype").as_deref() {
        Some("turn_duration") => vec![TranscriptKind::TurnEnded { last_message: None }],
        Some("compact_boundary") => vec![TranscriptKind::CompactBoundary],
        Some(_) | None => Vec::new(),
    }
}

fn queue_operation(object: &Object<'_>) -> Vec<TranscriptKind> {
    match object.text("operation").as_deref() {
        Some("enqueue") => vec![TranscriptKind::Enqueued],
        Some("dequeue" | "remove" | "popAll") => vec![TranscriptKind::Dequeued],
        Some(_) | None => Vec::new(),
    }
}

/// One per try (measured, 2.1.332; older versions write none). Titles and summaries are asked for by others.
fn request(object: &Object<'_>) -> Vec<TranscriptKind> {
    match object.text("querySource").as_deref() {
        Some("repl_main_thread" | "sdk") => vec![TranscriptKind::Requested],
        Some(_) | None => Vec::new(),
    }
}

fn continued_in(object: &Object<'_>) -> Vec<TranscriptKind> {
    let conversation = object
        .text("continuedInSessionId")
        .and_then(|id| text::id(&id))
        .map(ConversationId);
    conversation
        .map(|conversation| TranscriptKind::ContinuedIn { conversation })
        .into_iter()
        .collect()
}

fn title(object: &Object<'_>, key: &str, named: bool) -> Vec<TranscriptKind> {
    let text = object.text(key).filter(|text| !text.trim().is_empty());
    text.map(|text| TranscriptKind::Title {
        text: line(&text, NAME_CHARS_MAX),
        named,
    })
    .into_iter()
    .collect()
}

/// The content blocks that matter.
enum Block<'a> {
    Text(String),
    ToolUse {
        name: String,
        id: Option<Arc<str>>,
        input: &'a str,
    },
    ToolResult {
        id: Arc<str>,
    },
}

fn blocks<'a>(message: &Object<'a>) -> Vec<Block<'a>> {
    if let Some(text) = message.text("content") {
        return vec![Block::Text(text)];
    }
    let read = |block: &'a str| {
        let block = Object::parse(block).ok()?;
        match block.text("type")?.as_str() {
            "text" => Some(Block::Text(block.text("text")?)),
            "tool_use" => Some(Block::ToolUse {
                name: block.text("name")?,
                id: block.text("id").and_then(|id| text::id(&id)),
                input: block.raw("input").unwrap_or("{}"),
            }),
            "tool_result" => Some(Block::ToolResult {
                id: text::id(&block.text("tool_use_id")?)?,
            }),
            _ => None,
        }
    };
    let list = message.list("content").unwrap_or_default();
    list.into_iter().filter_map(read).collect()
}

fn joined_text(blocks: &[Block<'_>]) -> Option<Arc<str>> {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            Block::ToolUse { .. } | Block::ToolResult { .. } => None,
        })
        .collect();
    let text = texts.join("\n");
    (!text.trim().is_empty()).then(|| block(&text, MESSAGE_CHARS_MAX))
}

/// Cuts a file that grows into lines. Holds the unfinished last line, at most [`LINE_BYTES_MAX`] of it; a
/// longer one is skipped to its end.
#[derive(Debug, Default)]
pub struct Lines {
    partial: Vec<u8>,
    skipping: bool,
    skipped: u64,
    broken: u64,
    chain: Chain,
}

impl Lines {
    /// For a file that is read from its start, or from the start of a line.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// For a file whose lines so far hang together like this.
    #[must_use]
    pub fn after(chain: Chain) -> Self {
        Self {
            chain,
            ..Self::default()
        }
    }

    /// Takes the next bytes and gives the facts of all lines they complete, in order.
    pub fn push_facts(&mut self, bytes: &[u8]) -> Vec<TranscriptFact> {
        let mut found = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&b| b == b'\n') {
            let (line, tail) = (&rest[..end], &rest[end + 1..]);
            rest = tail;
            let line = if self.skipping || self.partial.len() + line.len() > LINE_BYTES_MAX {
                self.skipping = false;
                self.skipped += 1;
                self.chain.gap = true;
                Line::default()
            } else if self.partial.is_empty() {
                read(line)
            } else {
                self.partial.extend_from_slice(line);
                read(&self.partial)
            };
            self.broken += u64::from(line.broken);
            self.chain.add(line, &mut found);
            self.clear();
        }
        self.keep(rest);
        found
    }

    fn keep(&mut self, rest: &[u8]) {
        if self.skipping {
            return;
        }
        if self.partial.len() + rest.len() > LINE_BYTES_MAX {
            self.skipping = true;
            self.clear();
        } else {
            self.partial.extend_from_slice(rest);
        }
    }

    /// Lines skipped because they were too long.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Lines skipped because they were no JSON object.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.broken
    }

    /// Bytes of the unfinished line that are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.partial.len()
    }

    fn clear(&mut self) {
        self.partial.clear();
        if self.partial.capacity() > KEPT_BYTES_MAX {
            self.partial = Vec::new();
        }
    }
}

/// Reads the end of a file backwards, block by block, until enough is known. Lines are whole or not read; the
/// unfinished last one is left for whoever follows the file.
#[derive(Debug, Default)]
pub struct Tail {
    /// Pieces of the line whose start has not been reached, last piece first.
    pieces: Vec<Vec<u8>>,
    held: usize,
    /// The line in `pieces` is too long, or is the unfinished one.
    dropping: bool,
    /// A line break has been seen; before that everything belongs to the unfinished line.
    inside: bool,
    unfinished: u64,
    /// Last line first.
    found: Vec<Line>,
    skipped: u64,
    prompted: bool,
}

impl Tail {
    /// Begins at the end of the file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the bytes that stand directly before all taken so far.
    pub fn push_before(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(at) = rest.iter().rposition(|&b| b == b'\n') {
            self.hold(&rest[at + 1..]);
            self.end_line();
            rest = &rest[..at];
        }
        self.hold(rest);
    }

    /// The newest turn is complete: its prompt, on the main lane, has been read. Nothing before it decides.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.prompted
    }

    /// Bytes of the unfinished last line: a follower starts that much before the end.
    #[must_use]
    pub fn unfinished_bytes(&self) -> u64 {
        self.unfinished
    }

    /// All facts in the order of the file, and what follows them is read with. `at_start`: everything before has
    /// been taken, so what is still held is a whole line.
    #[must_use]
    pub fn finish(mut self, at_start: bool) -> (Vec<TranscriptFact>, Lines) {
        if at_start && self.inside {
            self.end_line();
        }
        let mut lines = Lines::new();
        lines.skipped = self.skipped;
        lines.chain.gap = self.skipped > 0;
        let mut found = Vec::new();
        for line in self.found.into_iter().rev() {
            lines.broken += u64::from(line.broken);
            lines.chain.add(line, &mut found);
        }
        (found, lines)
    }

    fn hold(&mut self, bytes: &[u8]) {
        if !self.inside {
            self.unfinished += bytes.len() as u64;
            return;
        }
        if self.dropping || bytes.is_empty() {
            return;
        }
        if self.held + bytes.len() > LINE_BYTES_MAX {
            self.dropping = true;
            self.pieces = Vec::new();
            self.held = 0;
            return;
        }
        self.pieces.push(bytes.to_vec());
        self.held += bytes.len();
    }

    fn end_line(&mut self) {
        if self.inside && self.dropping {
            self.skipped += 1;
        } else if self.inside {
            self.pieces.reverse();
            let line = read(&self.pieces.concat());
            self.prompted |= line.facts.iter().any(|fact| {
                !fact.sidechain && matches!(fact.kind, TranscriptKind::Prompted { .. })
            });
            self.found.push(line);
        }
        self.inside = true;
        self.dropping = false;
        self.pieces.clear();
        self.held = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds(line: &str) -> Vec<TranscriptKind> {
        facts(line.as_bytes())
            .into_iter()
            .map(|fact| fact.kind)
            .collect()
    }

    /// Recorded run s02, Claude Code 2.1.332.
    const PROMPT: &str = r#"{"parentUuid":null,"isSidechain":false,"promptId":"64ffb3f2","type":"user","message":{"role":"user","content":"say hello"},"uuid":"de5b42f6","timestamp":"2026-11-30T08:59:22.186Z","permissionMode":"default","origin":{"kind":"human"},"promptSource":"typed"}"#;
    const ANSWER: &str = r#"{"parentUuid":"7893362e","isSidechain":false,"message":{"model":"claude-opus-5-5","id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{"input_tokens":14002,"cache_read_input_tokens":10,"cache_creation_input_tokens":5,"output_tokens":7}},"type":"assistant","uuid":"cf8ac230","timestamp":"2026-11-30T08:59:22.600Z"}"#;
    const DURATION: &str = r#"{"parentUuid":"x","isSidechain":false,"type":"system","subtype":"turn_duration","durationMs":604,"timestamp":"2026-11-30T08:59:22.816Z"}"#;
    const ATTACHMENT: &str = r#"{"parentUuid":"d","isSidechain":false,"attachment":{"type":"date","date":"2026-11-30"},"type":"attachment","uuid":"8370affe","timestamp":"2026-11-30T08:59:22.410Z"}"#;
    const BLOB: &str = r#"{"type":"api-request-blob","blobs":["say hello"]}"#;
    const MARKER: &str = r#"{"parentUuid":"x","isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]},"timestamp":"2026-11-30T08:59:30.000Z","interruptedMessageId":"msg_2"}"#;

    #[test]
    fn a_plain_turn_is_prompt_usage_and_end() {
        assert_eq!(
            facts(PROMPT.as_bytes()),
            [TranscriptFact {
                written_ms: Some(1_796_029_162_186),
                sidechain: false,
                kind: TranscriptKind::Prompted {
                    task_notification: false
                },
            }]
        );
        assert_eq!(
            kinds(ANSWER),
            [
                TranscriptKind::Usage {
                    model: Some("claude-opus-5-5".into()),
                    context_tokens: Some(14_024),
                },
                TranscriptKind::TurnEnded {
                    last_message: Some("hello".into())
                },
            ]
        );
        assert_eq!(
            kinds(DURATION),
            [TranscriptKind::TurnEnded { last_message: None }]
        );
        assert_eq!(kinds(ATTACHMENT), []);
        assert_eq!(kinds(BLOB), []);
    }

    #[test]
    fn an_answer_that_goes_on_is_no_end() {
        for reason in [
            "null",
            r#""tool_use""#,
            r#""pause_turn""#,
            r#""max_tokens""#,
        ] {
            let line = ANSWER.replace(r#""end_turn""#, reason);
            assert!(
                !kinds(&line)
                    .iter()
                    .any(|kind| matches!(kind, TranscriptKind::TurnEnded { .. }))
            );
        }
        for reason in [r#""stop_sequence""#, r#""refusal""#] {
            assert_eq!(kinds(&ANSWER.replace(r#""end_turn""#, reason)).len(), 2);
        }
    }

    #[test]
    fn tools_are_matched_by_their_id() {
        let asked = r#"{"isSidechain":false,"type":"assistant","message":{"model":"claude-opus-5-5","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"touch a.txt"}}],"stop_reason":"tool_use"}}"#;
        assert!(matches!(
            kinds(asked).as_slice(),
            [TranscriptKind::ToolStarted { tool }]
                if tool.use_id.as_deref() == Some("toolu_1") && tool.arg.as_deref() == Some("touch a.txt")
        ));
        let result = r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":[{"type":"image","source":{"data":"AAAA"}}],"is_error":false}]}}"#;
        assert_eq!(
            kinds(result),
            [TranscriptKind::ToolEnded {
                use_id: "toolu_1".into()
            }]
        );
    }

    #[test]
    fn an_interrupt_is_a_marker_and_not_a_persons_words() {
        assert_eq!(kinds(MARKER), [TranscriptKind::Interrupted]);
        let for_tool = MARKER.replace("by user]", "by user for tool use]");
        assert_eq!(kinds(&for_tool), [TranscriptKind::Interrupted]);
        let typed = PROMPT.replace("say hello", "[Request interrupted by user] is what I saw");
        assert_eq!(
            kinds(&typed),
            [TranscriptKind::Prompted {
                task_notification: false
            }]
        );
    }

    #[test]
    fn an_api_error_carries_its_kind() {
        // Recorded run s12c.
        let error = r#"{"isSidechain":false,"type":"assistant","message":{"model":"<synthetic>","role":"assistant","stop_reason":"stop_sequence","content":[{"type":"text","text":"API Error: Request rejected (429)"}]},"error":"rate_limit","isApiErrorMessage":true}"#;
        assert_eq!(
            kinds(error),
            [TranscriptKind::ApiError {
                kind: "rate_limit".into(),
                message: Some("API Error: Request rejected (429)".into()),
            }]
        );
        // 2.1.128 writes the field as false on an interrupted partial: an end, until its marker comes.
        let partial = error.replace(
            r#""error":"rate_limit","isApiErrorMessage":true"#,
            r#""isApiErrorMessage":false"#,
        );
        assert!(matches!(
            kinds(&partial).as_slice(),
            [TranscriptKind::TurnEnded { .. }]
        ));
        let older = error.replace(r#""error":"rate_limit","#, "");
        assert!(matches!(
            kinds(&older).as_slice(),
            [TranscriptKind::ApiError { kind, .. }] if &**kind == "unknown"
        ));
    }

    #[test]
    fn only_prompts_are_prompts() {
        let user = |content: &str, more: &str| {
            kinds(&format!(
                r#"{{"type":"user","message":{{"role":"user","content":"{content}"}}{more}}}"#
            ))
        };
        let nobody = [TranscriptKind::Prompted {
            task_notification: true,
        }];
        let person = [TranscriptKind::Prompted {
            task_notification: false,
        }];
        let notified = user(
            r"<task-notification>\n<task-id>b</task-id>",
            r#","origin":{"kind":"task-notification"},"promptSource":"system""#,
        );
        assert_eq!(notified, nobody);
        // Recorded run s36: a wake-up.
        assert_eq!(
            user("say woke up", r#","isMeta":true,"promptSource":"system""#),
            nobody
        );
        // 2.0.77 has neither origin nor source.
        assert_eq!(user("say ok", ""), person);
        assert_eq!(user("say headless", r#","promptSource":"sdk""#), person);
        assert_eq!(
            user(
                "<command-message>greet</command-message>",
                r#","origin":{"kind":"human"}"#
            ),
            person
        );
        for (content, more) in [
            (
                "This session is being continued",
                r#","isCompactSummary":true"#,
            ),
            ("<system-reminder>x", r#","isMeta":true"#),
            ("Stop hook feedback:", r#","isMeta":true"#),
            ("<command-name>/clear</command-name>", ""),
            ("<local-command-stdout>Bye!</local-command-stdout>", ""),
            ("<bash-input>sleep 6</bash-input>", ""),
        ] {
            assert_eq!(user(content, more), [], "{content}");
        }
    }

    #[test]
    fn queue_compaction_continuation_and_titles_are_read() {
        let queue = |operation: &str| {
            kinds(&format!(
                r#"{{"type":"queue-operation","operation":"{operation}","timestamp":"2026-11-30T10:26:02.037Z"}}"#
            ))
        };
        assert_eq!(queue("enqueue"), [TranscriptKind::Enqueued]);
        for operation in ["dequeue", "remove", "popAll"] {
            assert_eq!(queue(operation), [TranscriptKind::Dequeued]);
        }
        assert_eq!(queue("tomorrow"), []);
        assert_eq!(
            kinds(
                r#"{"type":"system","subtype":"compact_boundary","content":"Conversation compacted"}"#
            ),
            [TranscriptKind::CompactBoundary]
        );
        assert_eq!(
            kinds(
                r#"{"type":"continued-in","sessionId":"a","continuedInSessionId":"faf2987f-ee43"}"#
            ),
            [TranscriptKind::ContinuedIn {
                conversation: "faf2987f-ee43".into()
            }]
        );
        assert_eq!(
            kinds(r#"{"type":"ai-title","aiTitle":"Lab session","sessionId":"a"}"#),
            [TranscriptKind::Title {
                text: "Lab session".into(),
                named: false,
            }]
        );
        assert_eq!(
            kinds(r#"{"type":"system","subtype":"away_summary","content":"x"}"#),
            []
        );
    }

    /// A line of the main lane: `uuid`, `parentUuid`, second it was written in, what it says.
    fn linked(uuid: &str, parent: &str, second: u32, kind: &str) -> String {
        let parent = match parent {
            "" => "null".to_owned(),
            parent => format!("\"{parent}\""),
        };
        let says = match kind {
            "prompt" => {
                r#""type":"user","message":{"role":"user","content":"do it"},"origin":{"kind":"human"}"#
            }
            "answer" => {
                r#""type":"assistant","message":{"model":"claude-opus-5-5","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn"}"#
            }
            "interrupt" => {
                r#""type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}"#
            }
            "call" => {
                r#""type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}],"stop_reason":"tool_use"}"#
            }
            "result" => {
                r#""type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}"#
            }
            "note" => r#""type":"attachment","attachment":{"type":"date"}"#,
            other => panic!("no such line: {other}"),
        };
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,{says},\"uuid\":\"{uuid}\",\"timestamp\":\"2026-11-30T14:24:{second:02}.000Z\"}}\n"
        )
    }

    /// Unix ms of that second.
    fn ms(second: i64) -> i64 {
        1_796_048_640_000 + second * 1000
    }

    fn rewinds(facts: &[TranscriptFact]) -> Vec<Option<i64>> {
        let told = |fact: &TranscriptFact| {
            if let TranscriptKind::Rewound { to_ms } = fact.kind {
                Some(to_ms)
            } else {
                None
            }
        };
        facts.iter().filter_map(told).collect()
    }

    #[test]
    fn t06_a_prompt_that_hangs_on_an_older_line_gives_up_what_came_after_it() {
        // As 2.1.332 writes it (measured): two turns, a third that Esc ends, `/rewind` to before the third, of which
        // the file tells nothing, and a prompt.
        let before = [
            linked("p1", "", 1, "prompt"),
            linked("n1", "p1", 1, "note"),
            linked("a1", "n1", 2, "answer"),
            linked("p2", "a1", 3, "prompt"),
            linked("a2", "p2", 4, "answer"),
            linked("p3", "a2", 5, "prompt"),
            linked("x3", "p3", 6, "interrupt"),
        ]
        .concat();
        let mut lines = Lines::new();
        assert_eq!(rewinds(&lines.push_facts(before.as_bytes())), []);
        let facts = lines.push_facts(linked("p4", "a2", 9, "prompt").as_bytes());
        assert_eq!(
            facts.iter().map(|fact| &fact.kind).collect::<Vec<_>>(),
            [
                &TranscriptKind::Rewound { to_ms: Some(ms(4)) },
                &TranscriptKind::Prompted {
                    task_notification: false
                },
            ]
        );
        // Further back, over both branches; then to before everything.
        let facts = lines.push_facts(linked("p5", "a1", 12, "prompt").as_bytes());
        assert_eq!(rewinds(&facts), [Some(ms(2))]);
        let facts = lines.push_facts(linked("p6", "", 14, "prompt").as_bytes());
        assert_eq!(rewinds(&facts), [None]);
        let facts = lines.push_facts(linked("a6", "p6", 15, "answer").as_bytes());
        assert_eq!(rewinds(&facts), []);
    }

    #[test]
    fn t06_a_rewind_to_what_was_never_read_gives_up_all_that_was() {
        let old = linked("a1", "", 2, "answer");
        let file = [
            linked("p2", "a1", 3, "prompt"),
            linked("x2", "p2", 4, "interrupt"),
        ]
        .concat();
        let (tail, _) = tail(format!("{old}{file}").as_bytes(), 64);
        let (facts, mut lines) = tail.finish(false);
        assert_eq!(rewinds(&facts), []);
        let facts = lines.push_facts(linked("p3", "a1", 9, "prompt").as_bytes());
        assert_eq!(rewinds(&facts), [None]);
        // But what could not be read may be what it hangs on.
        let mut lines = Lines::new();
        let broken = format!("{file}{{\"uuid\":\"a2\",\"parentU\n");
        assert_eq!(rewinds(&lines.push_facts(broken.as_bytes())), []);
        let facts = lines.push_facts(linked("p3", "a2", 9, "prompt").as_bytes());
        assert_eq!((rewinds(&facts), lines.broken()), (vec![], 1));
    }

    #[test]
    fn t06_tools_side_by_side_and_a_compaction_are_no_rewind() {
        let file = [
            linked("p1", "", 1, "prompt"),
            linked("c1", "p1", 2, "call"),
            linked("c2", "c1", 2, "call"),
            // Each on its own call, in the order in which they end (recorded run s28).
            linked("r2", "c2", 3, "result"),
            linked("r1", "c1", 4, "result"),
            linked("a1", "r1", 5, "answer"),
            r#"{"parentUuid":null,"logicalParentUuid":"a1","isSidechain":false,"type":"system","subtype":"compact_boundary","uuid":"b","timestamp":"2026-11-30T14:24:06.000Z"}"#.to_owned() + "\n",
            linked("p2", "b", 7, "prompt"),
        ]
        .concat();
        assert_eq!(rewinds(&Lines::new().push_facts(file.as_bytes())), []);
        // Nor is what a subagent is asked in the same file (2.0.77).
        let side = linked("s1", "", 8, "prompt").replace("false", "true");
        let file = format!("{file}{side}");
        assert_eq!(rewinds(&Lines::new().push_facts(file.as_bytes())), []);
    }

    #[test]
    fn the_head_of_a_file_has_its_titles_and_its_first_prompt() {
        let told = |file: &str| -> Vec<TranscriptKind> {
            head(file.as_bytes())
                .into_iter()
                .map(|fact| fact.kind)
                .collect()
        };
        let asked = |text: &str| TranscriptKind::FirstPrompt { text: text.into() };
        let notified = PROMPT
            .replace("say hello", "<task-notification>x")
            .replace("human", "task-notification");
        let later = PROMPT.replace("say hello", "and now?");
        let title = r#"{"type":"ai-title","aiTitle":"Lab session","sessionId":"a"}"#;
        let file = format!("{BLOB}\n{notified}\n{PROMPT}\n{ANSWER}\n{title}\n{later}\n");
        assert_eq!(
            told(&file),
            [
                asked("say hello"),
                TranscriptKind::Title {
                    text: "Lab session".into(),
                    named: false
                }
            ]
        );
        let command = PROMPT.replace(
            "say hello",
            r"<command-message>greet</command-message>\n<command-name>/greet</command-name>\n<command-args>the lab</command-args>",
        );
        assert_eq!(told(&format!("{command}\n")), [asked("/greet the lab")]);
        // Not whole yet.
        assert_eq!(told(PROMPT), []);
        assert_eq!(told(""), []);
    }

    #[test]
    fn what_a_row_shows_beside_its_badge_decides_nothing() {
        let file = format!("{PROMPT}\n{ANSWER}\n{DURATION}\n{MARKER}\n");
        let facts = beside(Lines::new().push_facts(file.as_bytes()));
        assert!(matches!(
            facts.iter().map(|fact| &fact.kind).collect::<Vec<_>>()[..],
            [
                TranscriptKind::Usage { .. },
                TranscriptKind::LastWords { .. }
            ]
        ));
    }

    #[test]
    fn t08_a_sidechain_line_says_that_it_is_one() {
        let side = ANSWER.replace(r#""isSidechain":false"#, r#""isSidechain":true"#);
        assert!(facts(side.as_bytes()).iter().all(|fact| fact.sidechain));
    }

    #[test]
    fn broken_lines_are_skipped_and_the_rest_is_read() {
        let deep = format!(r#"{{"type":"user","x":{}}}"#, "[".repeat(10_000));
        let deep_whole = format!(
            r#"{{"type":"assistant","message":{{"stop_reason":"end_turn","content":[{{"type":"tool_use","name":"x","id":"t","input":{}{}}}]}}}}"#,
            "[".repeat(10_000),
            "]".repeat(10_000)
        );
        assert_eq!(kinds(&deep_whole).len(), 2);
        let mut file = Vec::new();
        for line in [
            b"\xff\xfe{".as_slice(),
            b"\0\0\0",
            b"{\"type\":\"user\"",
            b"null",
            b"[]",
            b"",
            b"{\"type\":7}",
            b"{\"type\":\"user\",\"message\":[]}",
            deep.as_bytes(),
            DURATION.as_bytes(),
        ] {
            file.extend_from_slice(line);
            file.push(b'\n');
        }
        let facts = Lines::new().push_facts(&file);
        assert_eq!(facts.len(), 1);
        // Bytes that are no UTF-8 inside a string lose only themselves.
        let mut line = ANSWER.as_bytes().to_vec();
        let at = ANSWER.find("hello").expect("the text");
        line[at] = 0xff;
        assert_eq!(super::facts(&line).len(), 2);
    }

    #[test]
    fn t02_a_line_is_read_once_and_only_when_it_is_whole() {
        let file = format!("{PROMPT}\n{}\n", ANSWER.replace("hello", "漢字"));
        let bytes = file.as_bytes();
        for cut in 0..=bytes.len() {
            let mut lines = Lines::new();
            let mut facts = lines.push_facts(&bytes[..cut]);
            let whole = bytes[..cut].iter().filter(|&&b| b == b'\n').count();
            assert_eq!(facts.len(), [0, 1, 3][whole]);
            facts.extend(lines.push_facts(&bytes[cut..]));
            assert_eq!(facts.len(), 3);
            assert_eq!(
                facts[2].kind,
                TranscriptKind::TurnEnded {
                    last_message: Some("漢字".into())
                }
            );
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_in_bounded_memory() {
        let mut lines = Lines::new();
        assert!(lines.push_facts(b"{\"type\":\"user\",\"x\":\"").is_empty());
        let block = vec![b'a'; 1024 * 1024];
        for _ in 0..20 {
            assert!(lines.push_facts(&block).is_empty());
            assert!(lines.held() <= LINE_BYTES_MAX);
        }
        let facts = lines.push_facts(format!("\"}}\n{DURATION}\n").as_bytes());
        assert_eq!((facts.len(), lines.skipped(), lines.held()), (1, 1, 0));
    }

    fn tail(file: &[u8], block: usize) -> (Tail, usize) {
        let mut tail = Tail::new();
        let mut end = file.len();
        while end > 0 && !tail.is_enough() {
            let start = end.saturating_sub(block);
            tail.push_before(&file[start..end]);
            end = start;
        }
        (tail, end)
    }

    #[test]
    fn t04_t05_the_newest_turn_is_found_behind_bulk_and_giants() {
        // Not one decisive line in the last 300 kB, then one line of 3 MB, then one that is too long.
        let attachments = format!("{ATTACHMENT}\n").repeat(2_000);
        let image = format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t","content":"{}"}}]}}}}"#,
            "A".repeat(3_000_000)
        );
        let giant = format!(
            r#"{{"type":"attachment","x":"{}"}}"#,
            "A".repeat(LINE_BYTES_MAX)
        );
        let old = format!("{PROMPT}\n{MARKER}\n");
        let file =
            format!("{old}{PROMPT}\n{ANSWER}\n{image}\n{giant}\n{attachments}{{\"unfinished");
        for block in [4_096, 65_536, 1 << 20] {
            let (tail, rest) = tail(file.as_bytes(), block);
            assert!(tail.is_enough());
            assert_eq!(tail.unfinished_bytes(), "{\"unfinished".len() as u64);
            let (facts, _) = tail.finish(rest == 0);
            let last = &facts[facts.len() - 4..];
            assert!(matches!(last[0].kind, TranscriptKind::Prompted { .. }));
            assert!(matches!(last[2].kind, TranscriptKind::TurnEnded { .. }));
            assert!(matches!(last[3].kind, TranscriptKind::ToolEnded { .. }));
        }
    }

    #[test]
    fn a_file_without_a_prompt_is_read_to_its_start() {
        let file = format!("{ANSWER}\n{DURATION}\n");
        let (tail, rest) = tail(file.as_bytes(), 7);
        assert_eq!((tail.is_enough(), rest), (false, 0));
        assert_eq!(tail.finish(true).0.len(), 3);
        assert!(Tail::new().finish(true).0.is_empty());
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_skipped(line in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(facts(&line).len() < 100);
        }

        #[test]
        fn any_odd_value_anywhere_is_read_or_skipped(
            kind in "(user|assistant|system|queue-operation|continued-in|ai-title|summary|x)",
            key in "(message|subtype|operation|content|isSidechain|timestamp|error|isApiErrorMessage|aiTitle|origin)",
            value in r#"(null|true|-1|"\PC{0,9}"|\[\]|\{\}|\{"content":\[null,7,\{\},\{"type":"text"\},\{"type":"tool_use"\}\]\})"#,
        ) {
            let line = format!(r#"{{"type":"{kind}","{key}":{value}}}"#);
            prop_assert!(facts(line.as_bytes()).len() < 10);
        }

        #[test]
        fn forwards_and_backwards_find_the_same(
            picks in prop::collection::vec(0usize..8, 0..12),
            block in 1usize..700,
            cut in 0usize..40,
        ) {
            let lines = [PROMPT, ANSWER, DURATION, ATTACHMENT, BLOB, MARKER, "", "{broken"];
            let file: String = picks.iter().map(|&pick| format!("{}\n", lines[pick])).collect();
            let file = &file.as_bytes()[..file.len().saturating_sub(cut)];
            let mut forwards = Lines::new();
            // What a prompt goes back behind can't be told by who has not read it.
            let lines_of = |facts: Vec<TranscriptFact>| -> Vec<TranscriptFact> {
                let told = facts.into_iter();
                told.filter(|fact| !matches!(fact.kind, TranscriptKind::Rewound { .. })).collect()
            };
            let all = lines_of(forwards.push_facts(file));
            let (tail, rest) = tail(file, block);
            prop_assert_eq!(tail.unfinished_bytes(), forwards.held() as u64);
            let found = lines_of(tail.finish(rest == 0).0);
            prop_assert!(all.ends_with(&found));
            let prompts = |facts: &[TranscriptFact]| {
                facts.iter().filter(|fact| matches!(fact.kind, TranscriptKind::Prompted { .. })).count()
            };
            prop_assert!(prompts(&found) >= prompts(&all).min(1));
            if prompts(&all) == 0 {
                prop_assert_eq!(found, all);
            }
        }
    }
}
