//! tmux's control mode (tmux(1), CONTROL MODE; measured, 3.3a): a stream of lines in, replies and
//! notifications out; commands quoted so that nothing in an argument is ever read as tmux syntax; and the
//! one listing of panes we ask for.
//!
//! Sans IO. Must never fail for what a program in a pane put into a title, a path or a name.

use std::sync::Arc;

use purplemux_core::event::PaneFacts;
use purplemux_core::{PaneKey, TmuxServer};
use thiserror::Error;

use crate::json::lossy;
use crate::text::{NAME_CHARS_MAX, PATH_BYTES_MAX, line};

/// Longest line kept; the rest of a longer one is dropped and its reply marked as cut.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes of one reply that are kept: a capture of 50,000 lines of history is about 10 MB.
pub const REPLY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What tmux sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The answer to a command, or the block tmux sends by itself when a client attaches.
    Reply(Reply),
    /// Something happened.
    Notification(Notification),
}

/// One `%begin` … `%end` or `%error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// tmux's number of the command; counts over all clients.
    pub number: u64,
    /// Answers a command of this control client, in the order they were sent. Otherwise tmux's own.
    pub ours: bool,
    /// `%end`; `%error` otherwise, with the message as its lines.
    pub ok: bool,
    /// The lines, as bytes.
    pub lines: Vec<Vec<u8>>,
    /// A bound was hit and some of it is missing.
    pub cut: bool,
}

/// A line outside any reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    /// A session was made or destroyed.
    SessionsChanged,
    /// `%session-changed`, `%client-session-changed`: a client looks at another session.
    SessionChanged,
    /// A session has a new name.
    SessionRenamed,
    /// A window came, went or was renamed, in this session or another.
    WindowsChanged,
    /// Panes were split, closed, moved or resized.
    LayoutChanged,
    /// Another pane or window became active.
    ActiveChanged,
    /// A pane entered or left a mode.
    PaneModeChanged,
    /// Output of a pane; sent unless the client has the flag `no-output`.
    Output {
        /// The number behind `%`.
        pane: u32,
        /// What it printed.
        bytes: Vec<u8>,
    },
    /// A subscribed format has a new value.
    Subscription {
        /// The name it was subscribed by.
        name: String,
        /// The number behind `%`, for one that belongs to a pane.
        pane: Option<u32>,
        /// The value.
        value: Vec<u8>,
    },
    /// tmux lets this client go.
    Exit {
        /// Why, if tmux says.
        reason: Option<String>,
    },
    /// One that changes nothing for us, or a later version's.
    Other {
        /// Its name without `%`.
        name: String,
    },
}

/// An argument that can't be sent, or a listing that can't be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TmuxError {
    /// A command without a name. (An empty line would end the control client.)
    #[error("an empty tmux command")]
    EmptyCommand,
    /// No program can be given one.
    #[error("a NUL byte in a tmux argument")]
    Nul,
    /// A listing in another shape than was asked for.
    #[error("tmux listed a pane as {0:?}")]
    Listing(String),
}

/// Reads the stream, in pieces of any size.
#[derive(Debug, Default)]
pub struct Decoder {
    partial: Vec<u8>,
    /// The rest of the current line is dropped.
    overlong: bool,
    reply: Option<Open>,
}

#[derive(Debug)]
struct Open {
    /// `<time> <number>`: what closes the block must repeat it.
    tag: Vec<u8>,
    reply: Reply,
    bytes: usize,
}

impl Decoder {
    /// At the start of the stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and gives what they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Message> {
        let mut messages = Vec::new();
        for piece in bytes.split_inclusive(|&b| b == b'\n') {
            let (content, whole) = match piece.strip_suffix(b"\n") {
                Some(content) => (content, true),
                None => (piece, false),
            };
            let room = LINE_BYTES_MAX.saturating_sub(self.partial.len());
            self.overlong |= content.len() > room;
            self.partial
                .extend_from_slice(&content[..content.len().min(room)]);
            if whole {
                let mut line = std::mem::take(&mut self.partial);
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                let cut = std::mem::take(&mut self.overlong);
                messages.extend(self.line(line, cut));
            }
        }
        messages
    }

    fn line(&mut self, line: Vec<u8>, cut: bool) -> Option<Message> {
        let Some(open) = &mut self.reply else {
            return self.outside(&line);
        };
        let closes = |word: &[u8]| {
            let rest = line.strip_prefix(word)?;
            (guard(rest)?.0 == open.tag).then_some(())
        };
        let ok = closes(b"%end ").is_some();
        if ok || closes(b"%error ").is_some() {
            let mut reply = self.reply.take()?.reply;
            reply.ok = ok;
            return Some(Message::Reply(reply));
        }
        open.bytes += line.len() + 1;
        open.reply.cut |= cut || open.bytes > REPLY_BYTES_MAX;
        if open.bytes <= REPLY_BYTES_MAX {
            open.reply.lines.push(line);
        }
        None
    }

    fn outside(&mut self, line: &[u8]) -> Option<Message> {
        if let Some((tag, number, flags)) = line.strip_prefix(b"%begin ").and_then(guard) {
            let reply = Reply {
                number,
                ours: flags & 1 == 1,
                ok: false,
                lines: Vec::new(),
                cut: false,
            };
            self.reply = Some(Open {
                tag,
                reply,
                bytes: 0,
            });
            return None;
        }
        // What else stands outside a block is tmux's start-up noise.
        let rest = line.strip_prefix(b"%")?;
        Some(Message::Notification(notification(rest)))
    }
}

/// `<time> <number> <flags>` behind `%begin`, `%end` and `%error`.
fn guard(rest: &[u8]) -> Option<(Vec<u8>, u64, u64)> {
    let text = std::str::from_utf8(rest).ok()?;
    let mut words = text.split(' ');
    let time: u64 = words.next()?.parse().ok()?;
    let number: u64 = words.next()?.parse().ok()?;
    let flags: u64 = words.next()?.parse().ok()?;
    words.next().is_none().then(|| {
        let tag = format!("{time} {number}").into_bytes();
        (tag, number, flags)
    })
}

fn notification(rest: &[u8]) -> Notification {
    let (name, args) = split_word(rest);
    match name {
        b"sessions-changed" => Notification::SessionsChanged,
        b"session-changed" | b"client-session-changed" | b"client-detached" => {
            Notification::SessionChanged
        }
        b"session-renamed" => Notification::SessionRenamed,
        b"window-add"
        | b"window-close"
        | b"window-renamed"
        | b"unlinked-window-add"
        | b"unlinked-window-close"
        | b"unlinked-window-renamed" => Notification::WindowsChanged,
        b"layout-change" => Notification::LayoutChanged,
        b"session-window-changed" | b"window-pane-changed" => Notification::ActiveChanged,
        b"pane-mode-changed" => Notification::PaneModeChanged,
        b"output" => {
            let (pane, data) = split_word(args);
            output(pane, data).unwrap_or_else(|| other(name))
        }
        // `%extended-output %<pane> <age ms> … : <data>`
        b"extended-output" => {
            let (pane, rest) = split_word(args);
            let data = find(rest, b" : ").map(|at| &rest[at + 3..]);
            data.and_then(|data| output(pane, data))
                .unwrap_or_else(|| other(name))
        }
        // `%subscription-changed <name> $<session> @<window> <index> %<pane> … : <value>`
        b"subscription-changed" => {
            let (subscribed, rest) = split_word(args);
            let Some(at) = find(rest, b" : ") else {
                return other(name);
            };
            let pane = rest[..at].split(|&b| b == b' ').find_map(pane_number);
            Notification::Subscription {
                name: lossy(subscribed).into_owned(),
                pane,
                value: rest[at + 3..].to_vec(),
            }
        }
        b"exit" => Notification::Exit {
            reason: (!args.is_empty()).then(|| lossy(args).into_owned()),
        },
        _ => other(name),
    }
}

fn other(name: &[u8]) -> Notification {
    Notification::Other {
        name: line(&lossy(name), NAME_CHARS_MAX).to_string(),
    }
}

fn output(pane: &[u8], data: &[u8]) -> Option<Notification> {
    Some(Notification::Output {
        pane: pane_number(pane)?,
        bytes: unescape(data),
    })
}

fn pane_number(word: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(word.strip_prefix(b"%")?).ok()?;
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok())?
}

fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|&b| b == b' ') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[]),
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

/// `%output` writes every byte below space, and the backslash, as a backslash and three octal digits.
#[must_use]
pub fn unescape(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut rest = data;
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = match tail {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] if byte == b'\\' => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        out.push(octal.unwrap_or(byte));
        rest = if octal.is_some() { &tail[3..] } else { tail };
    }
    out
}

/// One command as a line to send, its arguments quoted.
///
/// # Errors
/// No arguments, or a NUL byte in one.
pub fn command<S: AsRef<str>>(args: &[S]) -> Result<Vec<u8>, TmuxError> {
    if args.first().is_none_or(|name| name.as_ref().is_empty()) {
        return Err(TmuxError::EmptyCommand);
    }
    let quoted: Result<Vec<String>, TmuxError> =
        args.iter().map(|arg| quote(arg.as_ref())).collect();
    let mut line = quoted?.join(" ").into_bytes();
    line.push(b'\n');
    Ok(line)
}

/// One argument in tmux's own quoting: single quotes, in which nothing is special; a single quote itself and
/// control characters (a line break would end the command) in double quotes, the latter in octal.
///
/// # Errors
/// A NUL byte.
pub fn quote(arg: &str) -> Result<String, TmuxError> {
    if arg.contains('\0') {
        return Err(TmuxError::Nul);
    }
    let special = |c: char| c == '\'' || c.is_ascii_control();
    let mut out = String::with_capacity(arg.len() + 2);
    let mut rest = arg;
    while !rest.is_empty() {
        let plain = rest.find(special).unwrap_or(rest.len());
        if plain > 0 {
            out.push('\'');
            out.push_str(&rest[..plain]);
            out.push('\'');
            rest = &rest[plain..];
        }
        let run = rest.find(|c| !special(c)).unwrap_or(rest.len());
        if run > 0 {
            out.push('"');
            for c in rest[..run].chars() {
                match c {
                    '\'' => out.push('\''),
                    control => out.push_str(&format!("\\{:03o}", u32::from(control))),
                }
            }
            out.push('"');
            rest = &rest[run..];
        }
    }
    if out.is_empty() {
        out.push_str("''");
    }
    Ok(out)
}

/// The listing of panes: `list-panes -a -F <format>`.
///
/// Fields are parted by a mark with a number that changes with every server start, so that no title, path or
/// name can forge a field or a pane; a line that does not begin with the mark goes on the record before it (a
/// directory's name may hold line breaks).
#[derive(Clone, Debug)]
pub struct PaneFormat {
    mark: String,
}

/// What is asked of each pane, in order.
const PANE_FIELDS: [&str; 11] = [
    "pane_id",
    "pane_pid",
    "pane_dead",
    "pane_active",
    "window_id",
    "window_active",
    "session_id",
    "session_name",
    "pane_current_command",
    "pane_current_path",
    "pane_title",
];

/// One pane as tmux lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaneLine {
    /// The number behind `%`.
    pub pane: u32,
    /// The pane's first process; absent when tmux has none.
    pub pid: Option<u32>,
    /// Its process has exited and `remain-on-exit` keeps it.
    pub dead: bool,
    /// Active in its window, and its window in its session.
    pub active: bool,
    /// The number behind `@`.
    pub window: u32,
    /// The number behind `$`.
    pub session_id: u32,
    /// The session's name now.
    pub session: Arc<str>,
    /// `#{pane_current_command}`.
    pub command: Arc<str>,
    /// `#{pane_current_path}`; empty if tmux can't tell.
    pub path: Arc<str>,
    /// `#{pane_title}`.
    pub title: Arc<str>,
}

impl PaneLine {
    /// For core, as a pane of `server`.
    #[must_use]
    pub fn facts(&self, server: &TmuxServer) -> PaneFacts {
        PaneFacts {
            pane: PaneKey {
                server: server.clone(),
                pane: self.pane,
            },
            session: self.session.clone(),
            command: self.command.clone(),
            path: self.path.clone(),
            title: self.title.clone(),
            dead: self.dead,
        }
    }
}

impl PaneFormat {
    /// `nonce`: random, once per server start.
    #[must_use]
    pub fn new(nonce: u64) -> Self {
        Self {
            mark: format!("|{nonce:016x}|"),
        }
    }

    /// The value of `-F`.
    #[must_use]
    pub fn format(&self) -> String {
        let mut format = self.mark.clone();
        for field in PANE_FIELDS {
            format.push_str(&format!("#{{{field}}}{}", self.mark));
        }
        format
    }

    /// Reads the lines of a reply.
    ///
    /// # Errors
    /// The listing is not in the shape that was asked for; nothing of it may be used.
    pub fn parse(&self, lines: &[Vec<u8>]) -> Result<Vec<PaneLine>, TmuxError> {
        let mut records: Vec<String> = Vec::new();
        for bytes in lines {
            let text = lossy(bytes);
            match records.last_mut() {
                Some(record) if !text.starts_with(&self.mark) => {
                    record.push('\n');
                    record.push_str(&text);
                }
                Some(_) | None => records.push(text.into_owned()),
            }
        }
        records.iter().map(|record| self.record(record)).collect()
    }

    fn record(&self, record: &str) -> Result<PaneLine, TmuxError> {
        let unreadable = || TmuxError::Listing(line(record, NAME_CHARS_MAX).to_string());
        let fields: Vec<&str> = record
            .strip_prefix(&self.mark)
            .and_then(|record| record.strip_suffix(&self.mark))
            .ok_or_else(unreadable)?
            .split(&self.mark)
            .collect();
        let [
            pane,
            pid,
            dead,
            active,
            window,
            window_active,
            session_id,
            session,
            command,
            path,
            title,
        ] = fields.try_into().map_err(|_| unreadable())?;
        let id = |text: &str, sigil: char| {
            let digits = text.strip_prefix(sigil);
            digits
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(unreadable)
        };
        Ok(PaneLine {
            pane: id(pane, '%')?,
            pid: pid.parse().ok().filter(|&pid| pid > 0),
            dead: dead == "1",
            active: active == "1" && window_active == "1",
            window: id(window, '@')?,
            session_id: id(session_id, '$')?,
            session: Arc::from(session),
            command: line(command, NAME_CHARS_MAX),
            path: Arc::from(&path[..path.floor_char_boundary(PATH_BYTES_MAX)]),
            title: line(title, NAME_CHARS_MAX),
        })
    }
}
