//! Claude's transcript: one JSON object a line (measured, Claude Code 2.0.77 to 2.1.332). Turns a line into
//! the facts that may decide something, cuts a growing file into lines, and reads a file's end backwards.
//!
//! Opens no file. Must never fail: a line that can't be read, is of a type nobody knows or is too long is
//! skipped, and the rest is read.

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

/// The facts of one line, in the order they count; most lines have none.
#[must_use]
pub fn facts(line: &[u8]) -> Vec<TranscriptFact> {
    let line = line.trim_ascii();
    if line.first() != Some(&b'{') || is_bulk(line) {
        return Vec::new();
    }
    let text = json::lossy(line);
    let Ok(object) = Object::parse(&text) else {
        return Vec::new();
    };
    let kinds = match object.text("type").as_deref() {
        Some("assistant") => assistant(&object),
        Some("user") => user(&object),
        Some("system") => system(&object),
        Some("queue-operation") => queue_operation(&object),
        Some("continued-in") => continued_in(&object),
        Some("ai-title") => title(&object, "aiTitle"),
        Some("custom-title") => title(&object, "customTitle"),
        Some("summary") => title(&object, "summary"),
        Some(_) | None => Vec::new(),
    };
    let written_ms = object
        .text("timestamp")
        .and_then(|at| at.parse::<Timestamp>().ok())
        .map(Timestamp::as_millisecond);
    let sidechain = object.flag("isSidechain");
    let fact = |kind| TranscriptFact {
        written_ms,
        sidechain,
        kind,
    };
    kinds.into_iter().map(fact).collect()
}

/// Lines that begin with a type nobody reads: most of a file's bytes, told apart without a scan.
fn is_bulk(line: &[u8]) -> bool {
    const BULK: [&str; 11] = [
        "api-request",
        "api-request-blob",
        "api-request-shape",
        "atis-latch",
        "attachment",
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

fn title(object: &Object<'_>, key: &str) -> Vec<TranscriptKind> {
    let text = object.text(key).filter(|text| !text.trim().is_empty());
    text.map(|text| TranscriptKind::Title {
        text: line(&text, NAME_CHARS_MAX),
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
}

impl Lines {
    /// For a file that is read from its start, or from the start of a line.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and gives every line they complete, without its line break.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&b| b == b'\n') {
            let (line, tail) = (&rest[..end], &rest[end + 1..]);
            rest = tail;
            if self.skipping || self.partial.len() + line.len() > LINE_BYTES_MAX {
                self.skipping = false;
                self.skipped += 1;
            } else if self.partial.is_empty() {
                each(line);
            } else {
                self.partial.extend_from_slice(line);
                each(&self.partial);
            }
            self.clear();
        }
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

    /// As [`Lines::push`], with the facts of all lines in order.
    pub fn push_facts(&mut self, bytes: &[u8]) -> Vec<TranscriptFact> {
        let mut found = Vec::new();
        self.push(bytes, |line| found.extend(facts(line)));
        found
    }

    /// Lines skipped because they were too long.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
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
    /// Facts of each line, last line first.
    found: Vec<Vec<TranscriptFact>>,
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

    /// All facts in the order of the file. `at_start`: everything before has been taken, so what is still held
    /// is a whole line.
    #[must_use]
    pub fn finish(mut self, at_start: bool) -> Vec<TranscriptFact> {
        if at_start && self.inside {
            self.end_line();
        }
        self.found.into_iter().rev().flatten().collect()
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
        if self.inside && !self.dropping {
            self.pieces.reverse();
            let facts = facts(&self.pieces.concat());
            self.prompted |= facts.iter().any(|fact| {
                !fact.sidechain && matches!(fact.kind, TranscriptKind::Prompted { .. })
            });
            self.found.push(facts);
        }
        self.inside = true;
        self.dropping = false;
        self.pieces.clear();
        self.held = 0;
    }
}
