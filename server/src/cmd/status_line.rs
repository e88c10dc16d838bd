//! `purplemux status-line COMMAND` (for Claude Code, not for people): tells the server what Claude tells its status
//! line, then becomes the person's own command, with the same input and in the same directory.
//!
//! It must never print, change what is shown, or hold it up for longer than a hook would.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;

use purplemux_core::{Stamp, Time};
use purplemux_wire::hook::BODY_BYTES_MAX;
use rustix::event::PollFlags;

use super::hook;
use crate::clock;
use crate::home::Home;
use crate::hooks::status_line;

const PATH: &str = "/api/status/statusline";
/// Claude writes and closes at once; a writer that hangs costs this much.
const STDIN: Duration = Duration::from_millis(500);
/// What a pipe holds without a reader (pipe(7)).
const PIPE_BYTES: usize = 64 * 1024;

/// Runs the command if `arguments` (without the program's name) ask for it; `None`: another command.
pub fn run(arguments: &[OsString]) -> Option<ExitCode> {
    if arguments.first()? != "status-line" {
        return None;
    }
    let at = clock::now();
    // Whatever is printed here would be the status line.
    std::panic::set_hook(Box::new(|_| {}));
    let input = read_stdin(at.boot + STDIN);
    // It is told or it is not; what the person sees does not depend on it.
    drop(std::panic::catch_unwind(|| tell(at, &input)));
    let command = match status_line::command_now() {
        Some(now) => now.map(OsString::from),
        // As it was when Claude started.
        None => arguments.get(1).cloned(),
    };
    let Some(command) = command else {
        return Some(ExitCode::SUCCESS);
    };
    Some(become_theirs(&command, &input))
}

fn tell(at: Stamp, input: &[u8]) {
    let Ok(home) = Home::locate() else {
        return;
    };
    let body = (input.len() <= BODY_BYTES_MAX).then_some(input);
    // Facts that come again after the next answer: not worth a place in the spool.
    hook::post(&home, PATH, &hook::headers(at, None), body);
}

/// Everything that Claude has written, however much.
fn read_stdin(until: Time) -> Vec<u8> {
    let stdin = io::stdin();
    let mut input = Vec::with_capacity(4096);
    let mut block = [0_u8; 64 * 1024];
    while hook::ready(&stdin, PollFlags::IN, until) {
        match rustix::io::read(&stdin, &mut block) {
            Ok(0) => break,
            Ok(n) => input.extend_from_slice(&block[..n]),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    input
}

#[allow(
    clippy::disallowed_methods,
    reason = "this process becomes the person's own command, as Claude would have started it"
)]
fn become_theirs(command: &OsString, input: &[u8]) -> ExitCode {
    let stdin = match holding(input) {
        Ok(stdin) => stdin,
        Err(_) => return ExitCode::FAILURE,
    };
    // As Claude itself runs it (measured, 2.1.332).
    let error = Command::new("/bin/sh")
        .arg("-c")
        .arg(command)
        .stdin(stdin)
        .exec();
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound {
        127
    } else {
        126
    })
}

/// Something to read that holds just this.
fn holding(input: &[u8]) -> io::Result<OwnedFd> {
    if input.len() <= PIPE_BYTES {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        io::Write::write_all(&mut std::fs::File::from(writer), input)?;
        return Ok(reader);
    }
    use std::io::Seek as _;
    let memory = rustix::fs::memfd_create("status line", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(memory);
    file.write_all(input)?;
    file.rewind()?;
    Ok(file.into())
}
