//! `purplemux hook EVENT`: hands what Claude Code writes to a hook's standard input to the server, in
//! milliseconds, or spools it. It must never print, never fail and never hold Claude up: every wait has a
//! bound, and whatever goes wrong ends in exit code 0.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use purplemux_core::{HookId, Stamp, Time};
use purplemux_wire::hook::{BODY_BYTES_MAX, Headers, HookStamp, TmuxEnv, encode_spool, parse_pane};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::home::{Home, random_hex};
use crate::{clock, sys};

const PATH: &str = "/api/status/hook";

/// Longest wait for a server that takes no connection, and again for its answer: together they stay under
/// what a person notices, also where a version runs hooks in the foreground.
const CONNECT: Duration = Duration::from_millis(20);
const ANSWER: Duration = Duration::from_millis(20);
/// Claude writes the payload and closes at once; a writer that hangs costs this much and its payload.
const STDIN: Duration = Duration::from_millis(500);
/// Bounds of the spool: some hours of work of many sessions. The oldest go first.
const SPOOL_FILES_MAX: usize = 4_000;
const SPOOL_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Dropped events are noted one line each; more than this is "at least so many".
const LOST_BYTES_MAX: u64 = 64 * 1024;
/// From the hook to Claude there are a shell or two; more is no hook of Claude's.
const PARENTS_MAX: usize = 8;

/// Runs the command if `arguments` (without the program's name) ask for it; `None`: another command.
/// Called first in `main`, before the command line is parsed and before any runtime exists.
pub fn run(arguments: &[OsString]) -> Option<ExitCode> {
    if arguments.first()? != "hook" {
        return None;
    }
    let at = clock::now();
    let event = arguments
        .get(1)
        .map(|event| event.to_string_lossy().into_owned());
    // A hook that dies loudly is shown on Claude's screen: nothing may be printed, not even by a panic.
    std::panic::set_hook(Box::new(|_| {}));
    // Claude's environment holds a token that lets its bearer speak to the session: a crash must not leave
    // it in a dump. Where that can't be said, nothing can be done about it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    let outcome = std::panic::catch_unwind(|| deliver(at, event));
    // There is nobody to tell: what could not be delivered or spooled is gone.
    drop(outcome);
    Some(ExitCode::SUCCESS)
}

fn deliver(at: Stamp, event: Option<String>) -> anyhow::Result<()> {
    let body = read_stdin(at.boot + STDIN);
    let home = Home::locate()?;
    let headers = headers(at, event);
    if post(&home, PATH, &headers, body.as_deref()) == Outcome::Undelivered {
        spool(&home.path("spool"), at, &headers, body.as_deref())?;
    }
    Ok(())
}

/// The payload; `None` if it is too large, did not arrive in time, or the input is a terminal.
fn read_stdin(until: Time) -> Option<Vec<u8>> {
    let stdin = io::stdin();
    if rustix::termios::isatty(&stdin) {
        return None;
    }
    let mut body = Vec::with_capacity(4096);
    let mut block = [0_u8; 64 * 1024];
    loop {
        if !ready(&stdin, PollFlags::IN, until) {
            return None;
        }
        match rustix::io::read(&stdin, &mut block) {
            Ok(0) => break,
            Ok(n) => {
                // What is over the bound is read on and thrown away, so that the writer gets no EPIPE.
                let room = (BODY_BYTES_MAX + 1).saturating_sub(body.len());
                body.extend_from_slice(&block[..n.min(room)]);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    (body.len() <= BODY_BYTES_MAX).then_some(body)
}

/// Waits until `fd` can be read or written (or has hung up); false: the time is over.
pub(super) fn ready(fd: impl AsFd, flags: PollFlags, until: Time) -> bool {
    loop {
        let left = until.since(clock::boot());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(0),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(&fd, flags)], Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// What we know of who runs us.
pub(super) fn headers(at: Stamp, event: Option<String>) -> Headers {
    let env = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let named: Option<u32> = env("CLAUDE_PID").and_then(|pid| pid.to_str()?.parse().ok());
    // A Claude that has ended while its last hook starts is still the one that is meant, not whoever
    // inherited the hook.
    let (pid, start) = match named {
        Some(pid) => (Some(pid), sys::stat(pid).map(|stat| stat.start)),
        None => claude_above_us().unzip(),
    };
    Headers {
        event,
        pid,
        start,
        pane: env("TMUX_PANE").and_then(|pane| parse_pane(pane.as_bytes())),
        tmux: env("TMUX").and_then(|tmux| TmuxEnv::parse(tmux.as_bytes())),
        stamp: Some(HookStamp {
            boot_ns: at.boot.0,
            boot_id: clock::boot_id().to_owned(),
            wall_ms: at.wall_ms,
        }),
        id: Some(HookId::from(random_hex::<16>())),
        job: env("CLAUDE_JOB_DIR").is_some(),
    }
}

/// Versions up to 2.1.200 put no CLAUDE_PID into the environment (measured): the nearest ancestor that is
/// a Claude is meant.
fn claude_above_us() -> Option<(u32, u64)> {
    let mut pid = sys::stat(std::process::id())?.parent;
    for _ in 0..PARENTS_MAX {
        let stat = sys::stat(pid)?;
        if sys::is_claude(pid, &stat) {
            return Some((pid, stat.start));
        }
        pid = stat.parent;
    }
    None
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The server has it, or has said that it wants none of it.
    Settled,
    /// No server, or none that answered in time.
    Undelivered,
}

/// Posts to one of the two routes that the token opens.
pub(super) fn post(home: &Home, path: &str, headers: &Headers, body: Option<&[u8]>) -> Outcome {
    let Ok(token) = fs::read_to_string(home.path("cli-token")) else {
        return Outcome::Undelivered;
    };
    match exchange(&home.socket_to_reach(), path, token.trim(), headers, body) {
        // 4xx: it would be refused again at every replay.
        Ok(200..=299 | 400..=499) => Outcome::Settled,
        Ok(_) | Err(_) => Outcome::Undelivered,
    }
}

/// One request over the unix socket; the status code of the answer.
fn exchange(
    socket: &Path,
    path: &str,
    token: &str,
    headers: &Headers,
    body: Option<&[u8]>,
) -> io::Result<u16> {
    let body = body.unwrap_or_default();
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-pmux-token: {token}\r\n"
    );
    for (name, value) in headers.pairs() {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!(
        "content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    ));
    let mut request = request.into_bytes();
    request.extend_from_slice(body);

    let stream = dial(socket, clock::boot() + CONNECT)?;
    let until = clock::boot() + ANSWER;
    write_all(&stream, &request, until)?;
    read_status(&stream, until)
}

fn dial(path: &Path, until: Time) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    loop {
        let stream = socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            None,
        )?;
        match connect(&stream, &address) {
            Ok(()) => return Ok(stream),
            // The queue of a server that accepts nothing is full; there is nothing to poll for.
            Err(rustix::io::Errno::AGAIN) if clock::boot() < until => {
                clock::passed_blocking(Duration::from_millis(1));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn write_all(stream: &OwnedFd, mut bytes: &[u8], until: Time) -> io::Result<()> {
    while !bytes.is_empty() {
        match send(stream, bytes, SendFlags::NOSIGNAL) {
            Ok(n) => bytes = &bytes[n..],
            Err(rustix::io::Errno::AGAIN) => {
                if !ready(stream, PollFlags::OUT, until) {
                    return Err(ErrorKind::TimedOut.into());
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads as far as the status line: `HTTP/1.1 204 …`.
fn read_status(stream: &OwnedFd, until: Time) -> io::Result<u16> {
    let mut head = Vec::new();
    let mut block = [0_u8; 512];
    while head.len() < 13 {
        if !ready(stream, PollFlags::IN, until) {
            return Err(ErrorKind::TimedOut.into());
        }
        match recv(stream, &mut block, RecvFlags::empty()) {
            Ok((_, 0)) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok((n, _)) => head.extend_from_slice(&block[..n]),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    std::str::from_utf8(&head[9..12])
        .ok()
        .filter(|_| head.starts_with(b"HTTP/1."))
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| ErrorKind::InvalidData.into())
}

/// Keeps one event for the server's return: a file of its own under a name that sorts by time, made under
/// another name first so that no reader sees half of it.
fn spool(dir: &Path, at: Stamp, headers: &Headers, body: Option<&[u8]>) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        // No home at all: purplemux was removed while this Claude ran.
        Err(error) => return Err(error.into()),
    }
    let record = encode_spool(headers, body);
    make_room(dir, u64::try_from(record.len()).unwrap_or(u64::MAX))?;
    let name = format!("{:015}-{:020}-{}", at.wall_ms, at.boot.0, random_hex::<4>());
    let temporary = dir.join(format!(".{name}"));
    let written = (|| -> io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(&record)?;
        fs::rename(&temporary, dir.join(format!("{name}.hook")))
    })();
    if written.is_err() {
        // Disk full, most likely: at least no half file stays. The first error is the one to report.
        drop(fs::remove_file(&temporary));
    }
    Ok(written?)
}

/// Drops the oldest records until one of `size` bytes fits, and notes how many were lost.
fn make_room(dir: &Path, size: u64) -> io::Result<()> {
    let mut records: Vec<(PathBuf, u64)> = fs::read_dir(dir)?
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|e| e == "hook"))
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.len())))
        .collect();
    let mut bytes: u64 = records.iter().map(|(_, size)| size).sum();
    if records.len() < SPOOL_FILES_MAX && bytes.saturating_add(size) <= SPOOL_BYTES_MAX {
        return Ok(());
    }
    records.sort();
    let mut files = records.len();
    for (path, freed) in records {
        if files < SPOOL_FILES_MAX && bytes.saturating_add(size) <= SPOOL_BYTES_MAX {
            break;
        }
        // Another hook may have dropped it at the same moment; then that one has noted it.
        if fs::remove_file(&path).is_ok() {
            note_lost(dir, &path)?;
        }
        files -= 1;
        bytes -= freed;
    }
    Ok(())
}

fn note_lost(dir: &Path, record: &Path) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(dir.join("lost"))?;
    if file.metadata()?.len() < LOST_BYTES_MAX {
        let name = record.file_name().unwrap_or_default().to_string_lossy();
        file.write_all(format!("{name}\n").as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers_for_test() -> Headers {
        Headers {
            event: Some("Stop".to_owned()),
            ..Headers::default()
        }
    }

    #[test]
    fn the_spool_is_bounded_and_says_what_it_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let spool_dir = dir.path().join("spool");
        let body = vec![b' '; 900 * 1024];
        for i in 0..40 {
            let at = Stamp {
                boot: Time(i),
                wall_ms: i64::try_from(i).unwrap(),
            };
            spool(&spool_dir, at, &headers_for_test(), Some(&body)).unwrap();
        }
        let mut names: Vec<String> = fs::read_dir(&spool_dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".hook"))
            .collect();
        names.sort();
        let bytes: u64 = names
            .iter()
            .map(|name| fs::metadata(spool_dir.join(name)).unwrap().len())
            .sum();
        assert!(bytes <= SPOOL_BYTES_MAX, "{bytes}");
        assert!(names.last().unwrap().starts_with("000000000000039-"));
        let lost = fs::read_to_string(spool_dir.join("lost")).unwrap();
        assert_eq!(lost.lines().count() + names.len(), 40);
        assert!(lost.starts_with("000000000000000-"), "the oldest go first");
    }

    #[test]
    fn only_a_whole_status_line_counts_as_an_answer() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let ours = OwnedFd::from(ours);
        (&theirs).write_all(b"HTTP/1.1 204 No Content\r\n").unwrap();
        let until = || clock::boot() + Duration::from_secs(5);
        assert_eq!(read_status(&ours, until()).unwrap(), 204);
        (&theirs).write_all(b"SSH-2.0-OpenSSH_9.2\r\n").unwrap();
        assert!(read_status(&ours, until()).is_err());
        drop(theirs);
        assert!(read_status(&ours, until()).is_err());
    }
}
