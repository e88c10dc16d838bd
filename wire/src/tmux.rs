//! tmux's control mode (tmux(1), CONTROL MODE; measured, 3.3a): a stream of lines in, replies and
//! notifications out; commands quoted so that nothing in an argument is ever read as tmux syntax; and the
//! one listing of panes we ask for.
//!
//! Sans IO. Must never fail for what a program in a pane put into a title, a path or a name.

use std::sync::Arc;

use purplemux_core::event::PaneFacts;
use purplemux_core::{PaneKey, TabId, TmuxServer};
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
                let line = std::mem::take(&mut self.partial);
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
/// Records begin and fields end with marks that hold a number which changes with every server start, so that
/// no title, path or name can forge a field or a pane; a line that does not begin a record goes on the one
/// before it (a directory's name may hold line breaks).
#[derive(Clone, Debug)]
pub struct PaneFormat {
    /// Begins a record.
    start: String,
    /// Ends a field.
    end: String,
}

/// The session option that says which tab a session is. It is set on the session itself, so that a session of
/// the same name on another run of the server is never taken for it.
pub const TAB_OPTION: &str = "@purplemux-tab";

/// The value of [`TAB_OPTION`] on a session of somebody else's that the person does not want to see as a tab.
pub const HIDDEN: &str = "hidden";

/// What is asked of each pane, in order.
const PANE_FIELDS: [&str; 14] = [
    "pane_id",
    "pane_pid",
    "pane_dead",
    "pane_active",
    "window_id",
    "window_active",
    "session_id",
    "session_name",
    TAB_OPTION,
    "pane_in_mode",
    "window_zoomed_flag",
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
    /// The session's name now. Anybody may give it any name: it identifies nothing.
    pub session: Arc<str>,
    /// What [`TAB_OPTION`] makes of the session.
    pub belongs: Belongs,
    /// It is in a mode: scrolled back in copy mode, or in one of tmux's own menus. Keys then go there.
    pub in_mode: bool,
    /// The end of its screen can't be seen by somebody attached: it is in a mode, its window is not in front,
    /// or another pane is zoomed over it.
    pub covered: bool,
    /// `#{pane_current_command}`.
    pub command: Arc<str>,
    /// `#{pane_current_path}`; empty if tmux can't tell.
    pub path: Arc<str>,
    /// `#{pane_title}`.
    pub title: Arc<str>,
}

/// Whose a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Belongs {
    /// This tab's.
    Tab(TabId),
    /// Somebody else's, and no tab yet.
    Nobody,
    /// Somebody else's, and not to be shown as a tab.
    Hidden,
}

impl Belongs {
    fn of(option: &str) -> Self {
        match option {
            "" => Self::Nobody,
            HIDDEN => Self::Hidden,
            tab => Self::Tab(TabId::from(tab)),
        }
    }
}

impl PaneLine {
    /// The tab that its session is.
    #[must_use]
    pub fn tab(&self) -> Option<&TabId> {
        match &self.belongs {
            Belongs::Tab(tab) => Some(tab),
            Belongs::Nobody | Belongs::Hidden => None,
        }
    }

    /// Whether its session is this tab.
    #[must_use]
    pub fn is_of(&self, tab: &str) -> bool {
        self.tab().is_some_and(|found| found.as_str() == tab)
    }

    /// For core, as a pane of `server`. A session that is no tab goes by tmux's own number for it, which no
    /// name can be mistaken for.
    #[must_use]
    pub fn facts(&self, server: &TmuxServer) -> PaneFacts {
        PaneFacts {
            pane: PaneKey {
                server: server.clone(),
                pane: self.pane,
            },
            session: match self.tab() {
                Some(tab) => Arc::from(tab.as_str()),
                None => Arc::from(format!("${}", self.session_id)),
            },
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
            start: format!("[{nonce:016x}]"),
            end: format!("|{nonce:016x}|"),
        }
    }

    /// The value of `-F`.
    #[must_use]
    pub fn format(&self) -> String {
        let mut format = self.start.clone();
        for field in PANE_FIELDS {
            format.push_str(&format!("#{{{field}}}{}", self.end));
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
                Some(record) if !text.starts_with(&self.start) => {
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
            .strip_prefix(&self.start)
            .and_then(|record| record.strip_suffix(&self.end))
            .ok_or_else(unreadable)?
            .split(&self.end)
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
            tab,
            in_mode,
            zoomed,
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
        let in_mode = !matches!(in_mode, "" | "0");
        Ok(PaneLine {
            pane: id(pane, '%')?,
            pid: pid.parse().ok().filter(|&pid| pid > 0),
            dead: dead == "1",
            active: active == "1" && window_active == "1",
            window: id(window, '@')?,
            session_id: id(session_id, '$')?,
            session: Arc::from(session),
            belongs: Belongs::of(tab),
            in_mode,
            covered: in_mode || window_active != "1" || (zoomed == "1" && active != "1"),
            command: line(command, NAME_CHARS_MAX),
            path: Arc::from(&path[..path.floor_char_boundary(PATH_BYTES_MAX)]),
            title: line(title, NAME_CHARS_MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(stream: &[u8]) -> Vec<Message> {
        Decoder::new().push(stream)
    }

    /// Recorded from tmux 3.3a, `tmux -u -C attach -f no-output,ignore-size`.
    const STREAM: &[u8] = b"%begin 1796038835 265 0\n%end 1796038835 265 0\n%session-changed $0 x\n\
        %begin 1796038835 285 1\nline1\nline2\ttab\r\n%end 1796038835 285 1\n\
        %begin 1796038835 294 1\nparse error: unknown command: no-such-command\n%error 1796038835 294 1\n\
        %exit\n";

    #[test]
    fn replies_and_notifications_come_in_their_order() {
        let reply = |number, ours, ok, lines: &[&[u8]]| {
            Message::Reply(Reply {
                number,
                ours,
                ok,
                lines: lines.iter().map(|line| line.to_vec()).collect(),
                cut: false,
            })
        };
        assert_eq!(
            decode(STREAM),
            [
                reply(265, false, true, &[]),
                Message::Notification(Notification::SessionChanged),
                reply(285, true, true, &[b"line1", b"line2\ttab\r"]),
                reply(
                    294,
                    true,
                    false,
                    &[b"parse error: unknown command: no-such-command"]
                ),
                Message::Notification(Notification::Exit { reason: None }),
            ]
        );
    }

    #[test]
    fn what_looks_like_an_end_inside_a_reply_does_not_end_it() {
        let stream =
            b"%begin 5 7 1\n%end 5 6 1\n%error 1 7 1\n%output %0 x\n%begin 5 7 1\n%end 5 7 1\n";
        let messages = decode(stream);
        let [Message::Reply(reply)] = messages.as_slice() else {
            panic!("{messages:?}");
        };
        assert_eq!(reply.lines.len(), 4);
        assert!(reply.ok);
    }

    #[test]
    fn notifications_are_read_and_later_ones_named() {
        let one = |text: &str| match decode(format!("{text}\n").as_bytes()).pop() {
            Some(Message::Notification(notification)) => notification,
            other => panic!("{other:?}"),
        };
        assert_eq!(one("%sessions-changed"), Notification::SessionsChanged);
        assert_eq!(one("%window-add @3"), Notification::WindowsChanged);
        assert_eq!(
            one("%unlinked-window-close @3"),
            Notification::WindowsChanged
        );
        assert_eq!(
            one("%layout-change @0 b25d,80x24,0,0,0 b25d,80x24,0,0,0 *"),
            Notification::LayoutChanged
        );
        assert_eq!(
            one("%window-pane-changed @0 %1"),
            Notification::ActiveChanged
        );
        assert_eq!(
            one(r"%output %12 a\033[1mb\134c"),
            Notification::Output {
                pane: 12,
                bytes: b"a\x1b[1mb\\c".to_vec()
            }
        );
        assert_eq!(
            one("%extended-output %1 20 : x : y"),
            Notification::Output {
                pane: 1,
                bytes: b"x : y".to_vec()
            }
        );
        assert_eq!(
            one("%subscription-changed panes $1 @2 0 %3 : bash : x"),
            Notification::Subscription {
                name: "panes".into(),
                pane: Some(3),
                value: b"bash : x".to_vec()
            }
        );
        assert_eq!(
            one("%exit too far behind"),
            Notification::Exit {
                reason: Some("too far behind".into())
            }
        );
        assert_eq!(
            one("%invented-tomorrow x"),
            Notification::Other {
                name: "invented-tomorrow".into()
            }
        );
    }

    #[test]
    fn a_line_without_end_is_cut_and_said_to_be() {
        let mut decoder = Decoder::new();
        assert!(decoder.push(b"%begin 1 2 1\n").is_empty());
        for _ in 0..3 * LINE_BYTES_MAX / 1000 {
            assert!(decoder.push(&[b'x'; 1000]).is_empty());
        }
        let messages = decoder.push(b"\nshort\n%end 1 2 1\n");
        let [Message::Reply(reply)] = messages.as_slice() else {
            panic!("one reply");
        };
        assert!(reply.cut && reply.ok);
        assert_eq!(reply.lines[0].len(), LINE_BYTES_MAX);
        assert_eq!(reply.lines[1], b"short");
    }

    /// Each of these was given to tmux 3.3a as `set-option -g @v …` and came back unchanged.
    #[test]
    fn arguments_are_quoted_so_that_tmux_reads_them_back() {
        let quoted = |arg| quote(arg).expect("no NUL");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("plain"), "'plain'");
        assert_eq!(quoted("; kill-server"), "'; kill-server'");
        assert_eq!(quoted("~ $HOME #{x} \\"), "'~ $HOME #{x} \\'");
        assert_eq!(quoted("it's"), r#"'it'"'"'s'"#);
        assert_eq!(quoted("a\nb\tc\x7f"), r#"'a'"\012"'b'"\011"'c'"\177""#);
        assert_eq!(quote("a\0"), Err(TmuxError::Nul));
        assert_eq!(
            command(&["kill-session", "-t", "=a:"]).expect("fine"),
            b"'kill-session' '-t' '=a:'\n"
        );
        assert_eq!(command::<&str>(&[]), Err(TmuxError::EmptyCommand));
        assert_eq!(command(&["", "x"]), Err(TmuxError::EmptyCommand));
    }

    fn listed(format: &PaneFormat, fields: [&str; 14]) -> String {
        let mut line = format.start.clone();
        for field in fields {
            line.push_str(field);
            line.push_str(&format.end);
        }
        line
    }

    fn as_lines(text: &str) -> Vec<Vec<u8>> {
        text.split('\n')
            .map(|line| line.as_bytes().to_vec())
            .collect()
    }

    #[test]
    fn panes_are_listed_whatever_their_paths_and_titles_hold() {
        let format = PaneFormat::new(0xfeed);
        assert!(
            format
                .format()
                .starts_with("[000000000000feed]#{pane_id}|000000000000feed|#{pane_pid}|")
        );
        let plain = listed(
            &format,
            [
                "%0",
                "5640",
                "0",
                "1",
                "@0",
                "1",
                "$0",
                "tab-1",
                "t-1",
                "0",
                "0",
                "claude",
                "/tmp",
                "✳ Claude Code",
            ],
        );
        let evil = listed(
            &format,
            [
                "%3",
                "9",
                "1",
                "0",
                "@1",
                "1",
                "$2",
                "it's | x",
                "",
                "1",
                "0",
                "a b",
                "/home/dev/new\nline|%7|",
                "\x1b]0;|",
            ],
        );
        let panes = format
            .parse(&as_lines(&format!("{plain}\n{evil}")))
            .expect("a listing");
        assert_eq!(panes.len(), 2);
        assert_eq!(
            (panes[0].pane, panes[0].pid, panes[0].active),
            (0, Some(5640), true)
        );
        assert_eq!(&*panes[0].title, "✳ Claude Code");
        assert_eq!(&*panes[1].path, "/home/dev/new\nline|%7|");
        assert_eq!(&*panes[1].session, "it's | x");
        assert_eq!(&*panes[1].title, "␛]0;|");
        assert!(panes[1].dead && !panes[1].active);
        assert!(panes[0].is_of("t-1") && !panes[0].covered);
        assert!(panes[1].in_mode && panes[1].covered);
        assert!(format.parse(&[]).expect("no panes").is_empty());
    }

    #[test]
    fn x04_a_session_is_a_tab_by_its_mark_and_never_by_its_name() {
        let format = PaneFormat::new(2);
        let of = |name: &str, mark: &str| {
            let fields = [
                "%0", "1", "0", "1", "@0", "1", "$7", name, mark, "0", "0", "sh", "/", "",
            ];
            let line = listed(&format, fields);
            format.parse(&as_lines(&line)).expect("one pane").remove(0)
        };
        let server = TmuxServer {
            host: "here".into(),
            pid: 1,
            start: 2,
        };
        for name in ["t-1", "app", "$7", "=app", "a.b", "日本"] {
            let other = of(name, "");
            assert_eq!(other.belongs, Belongs::Nobody);
            assert_eq!(&*other.facts(&server).session, "$7", "{name}");
            let ours = of(name, "t-1");
            assert_eq!(&*ours.facts(&server).session, "t-1", "{name}");
        }
        assert_eq!(of("t-1", HIDDEN).tab(), None);
    }

    #[test]
    fn what_cannot_be_seen_of_a_pane_is_covered() {
        let format = PaneFormat::new(3);
        let covered = |active: &str, window_active: &str, in_mode: &str, zoomed: &str| {
            let fields = [
                "%0",
                "1",
                "0",
                active,
                "@0",
                window_active,
                "$7",
                "x",
                "t-1",
                in_mode,
                zoomed,
                "sh",
                "/",
                "",
            ];
            let line = listed(&format, fields);
            format.parse(&as_lines(&line)).expect("one pane")[0].covered
        };
        assert!(!covered("1", "1", "0", "0"), "plain");
        assert!(!covered("0", "1", "0", "0"), "beside the active one");
        assert!(!covered("1", "1", "", "1"), "zoomed itself");
        assert!(covered("1", "1", "1", "0"), "scrolled back");
        assert!(covered("1", "0", "0", "0"), "in another window");
        assert!(covered("0", "1", "0", "1"), "behind a zoomed one");
    }

    #[test]
    fn a_listing_in_another_shape_is_refused_whole() {
        let format = PaneFormat::new(1);
        for text in [
            "no such format".to_owned(),
            format.start.clone(),
            listed(
                &format,
                [
                    "x", "1", "0", "1", "@0", "1", "$0", "s", "", "0", "0", "c", "/", "t",
                ],
            ),
            listed(
                &PaneFormat::new(2),
                [
                    "%0", "1", "0", "1", "@0", "1", "$0", "s", "", "0", "0", "c", "/", "t",
                ],
            ),
        ] {
            assert!(format.parse(&as_lines(&text)).is_err(), "{text}");
        }
    }

    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let word = prop_oneof![
            Just(b"%begin 1 2 1\n".to_vec()),
            Just(b"%end 1 2 1\n".to_vec()),
            Just(b"%error 1 2 1\n".to_vec()),
            Just(b"%output %1 \\01".to_vec()),
            Just(b"%subscription-changed x : ".to_vec()),
            prop::collection::vec(any::<u8>(), 0..8),
        ];
        prop::collection::vec(word, 0..12).prop_map(|words| words.concat())
    }

    proptest! {
        #[test]
        fn any_bytes_cut_anywhere_decode_alike(stream in pieces(), cut in any::<prop::sample::Index>()) {
            let whole = decode(&stream);
            let at = cut.index(stream.len() + 1);
            let mut decoder = Decoder::new();
            let mut parts = decoder.push(&stream[..at]);
            parts.extend(decoder.push(&stream[at..]));
            prop_assert_eq!(parts, whole);
        }

        #[test]
        fn any_path_and_title_survive_a_listing(path in "/(\\PC|\n)*", title in "\\PC*") {
            let format = PaneFormat::new(77);
            let line = listed(&format, ["%0", "1", "0", "1", "@0", "1", "$0", "s", "", "0", "0", "c", &path, &title]);
            let panes = format.parse(&as_lines(&line)).expect("a listing");
            prop_assert_eq!(&*panes[0].path, path.as_str());
        }

        #[test]
        fn any_lines_are_a_listing_or_refused(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..4)) {
            let format = PaneFormat::new(5);
            if let Ok(panes) = format.parse(&lines) {
                prop_assert!(panes.len() <= lines.len());
            }
        }

        #[test]
        fn a_command_is_always_one_line(args in prop::collection::vec("[^\\x00]*", 1..4)) {
            let line = command(&args);
            if let Ok(line) = line {
                let breaks = line.iter().filter(|&&b| b == b'\n' || b == b'\r').count();
                prop_assert_eq!(breaks, 1);
            } else {
                prop_assert!(args[0].is_empty());
            }
        }
    }
}
