//! Small questions to the kernel about processes, each answered from `/proc` without starting anything, and our
//! own limit of open files. A question that can't be answered says `None`, never a guess.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use purplemux_core::AgentKey;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// What the limit of open files was before we raised it: what we start gets it back, because a program that walks
/// over all its files, or uses select(2), suffers from a high one.
static FILES_BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises our soft limit of open files to the hard one; how many there may be now.
pub fn raise_files() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let (Some(before), true) = (current, current != maximum) else {
        return current.unwrap_or(u64::MAX);
    };
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => {
            FILES_BEFORE.get_or_init(|| before);
            maximum.unwrap_or(u64::MAX)
        }
        Err(why) => {
            warn!("The limit of open files stays at {before}: {why}");
            before
        }
    }
}

/// Starts something with the limit that we were started with. Meanwhile ours is that one, too: where more files are
/// open already, another task may be refused one and has to try again.
pub fn with_files_before<T>(start: impl FnOnce() -> T) -> T {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let set = |current| {
        if let Err(why) = setrlimit(Resource::Nofile, Rlimit { current, maximum }) {
            warn!("The limit of open files: {why}");
        }
    };
    let Some(&before) = FILES_BEFORE.get() else {
        return start();
    };
    set(Some(before));
    let started = start();
    set(current);
    started
}

/// What `/proc/PID/stat` says (proc(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The command name, at most 15 bytes.
    pub comm: String,
    /// Field 3: `R`, `S`, `D`, `T`, `Z`, ….
    pub state: char,
    /// Field 4.
    pub parent: u32,
    /// Field 22: start time in clock ticks after boot.
    pub start: u64,
    /// Fields 14 and 15: CPU ticks used, user and system.
    pub cpu_ticks: u64,
    /// Field 7: the device number of its terminal; `None`: it has none.
    pub terminal: Option<u64>,
    /// Fields 5 and 8: its process group is the one in front in its terminal.
    pub foreground: bool,
}

impl Stat {
    /// It has ended and only waits to be reaped.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Stopped by a signal (Ctrl-Z) or by a debugger.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }
}

/// Reads `/proc/PID/stat`; `None`: no such process, or not readable.
#[must_use]
pub fn stat(pid: u32) -> Option<Stat> {
    // The kernel makes the line anew for every read from its beginning, and gives as much as there is room for:
    // one read, where reading to the end takes five.
    let mut line = [0; STAT_BYTES];
    let read = fs::File::open(format!("/proc/{pid}/stat"))
        .and_then(|mut file| file.read(&mut line))
        .ok()?;
    parse_stat(&String::from_utf8_lossy(&line[..read]))
}

/// 52 fields of at most 20 digits, and a name of at most 64 bytes.
const STAT_BYTES: usize = 2048;

fn parse_stat(text: &str) -> Option<Stat> {
    // The command may hold spaces and parentheses of its own: the last one closes it.
    let (head, rest) = text.rsplit_once(") ")?;
    let (_, comm) = head.split_once(" (")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        comm: comm.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: u32::try_from(number(4)?).ok()?,
        start: number(22)?,
        cpu_ticks: number(14)? + number(15)?,
        terminal: number(7).filter(|device| *device != 0),
        foreground: number(5).is_some() && number(5) == number(8),
    })
}

/// The direct children of a process, from every thread's `children` list (a few hundredths of a
/// millisecond, unlike a walk over all of `/proc`).
#[must_use]
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| {
            text.split_ascii_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// These processes and all below them, each once, at most `max`.
#[must_use]
pub fn tree(roots: Vec<u32>, max: usize) -> Vec<u32> {
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    let mut waiting = roots;
    while let Some(pid) = waiting.pop() {
        if all.len() >= max {
            break;
        }
        if seen.insert(pid) {
            all.push(pid);
            waiting.extend(children(pid));
        }
    }
    all
}

/// The processes of our own user that may be a Claude, by their names: one reading of `/proc`, for the
/// safety net alone.
#[must_use]
pub fn claudes() -> Vec<u32> {
    let us = rustix::process::geteuid().as_raw();
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let ours = entry.metadata().is_ok_and(|meta| meta.uid() == us);
            (ours && is_claude(pid, &stat(pid)?)).then_some(pid)
        })
        .collect()
}

/// Whether this process is gone for certain: its pid is nobody's, or another's. What can't be read is not
/// gone.
#[must_use]
pub fn is_gone(agent: &AgentKey) -> bool {
    match stat(agent.pid) {
        Some(stat) => stat.start != agent.start || stat.is_dead(),
        None => is_nobody(agent.pid),
    }
}

/// Whether there is certainly no process of this pid. Without a readable `/proc`, "no such process" says
/// nothing.
#[must_use]
pub fn is_nobody(pid: u32) -> bool {
    !PathBuf::from(format!("/proc/{pid}")).exists() && stat(std::process::id()).is_some()
}

/// The arguments of a process. Node's versions of Claude Code overwrite theirs with their title: then it
/// is one argument, `claude`.
#[must_use]
pub fn arguments(pid: u32) -> Option<Vec<OsString>> {
    zero_separated(pid, "cmdline")
}

/// One variable of a process's environment as it was when the process was started.
#[must_use]
pub fn environment(pid: u32, name: &str) -> Option<OsString> {
    zero_separated(pid, "environ")?
        .into_iter()
        .find_map(|pair| {
            let value = pair.as_bytes().strip_prefix(name.as_bytes())?;
            Some(OsStr::from_bytes(value.strip_prefix(b"=")?).to_owned())
        })
}

fn zero_separated(pid: u32, file: &str) -> Option<Vec<OsString>> {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).ok()?;
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    Some(
        bytes
            .split(|&byte| byte == 0)
            .map(|part| OsStr::from_bytes(part).to_owned())
            .collect(),
    )
}

/// The directory a process is in; `None` also if that has been removed.
#[must_use]
pub fn directory(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd"))
        .ok()
        .filter(|dir| dir.is_dir())
}

/// Whether this process is a session of Claude Code: it calls itself `claude` (measured: the native binary
/// and the versions under node alike), or is a node that runs its package. The processes that host
/// background sessions call themselves so too, and are none.
#[must_use]
pub fn is_claude(pid: u32, stat: &Stat) -> bool {
    match stat.comm.as_str() {
        "claude" => arguments(pid).is_none_or(|arguments| {
            !arguments.get(1).is_some_and(|first| {
                first == "daemon" || first == "--bg-pty-host" || first == "--bg-spare"
            })
        }),
        "node" | "bun" | "MainThread" => arguments(pid)
            .and_then(|arguments| {
                let script = arguments.get(1)?.as_bytes().to_vec();
                Some(
                    contains(&script, b"@anthropic-ai/claude-code") || script.ends_with(b"/claude"),
                )
            })
            .unwrap_or(false),
        _ => fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| {
            let exe = exe.as_os_str().as_bytes();
            contains(exe, b"/share/claude/versions/")
        }),
    }
}

/// The program behind a process is node (or another runtime of JavaScript), not Claude's own binary.
#[must_use]
pub fn runs_under_node(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| {
        exe.file_name()
            .is_some_and(|name| name == "node" || name == "nodejs" || name == "bun")
    })
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|part| part == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_parentheses_and_spaces_is_read_whole() {
        let line = "42 (a) (b c) T 7 42 42 0 -1 4194304 1 0 0 0 3 4 0 0 20 0 1 0 7975 1 1";
        assert_eq!(
            parse_stat(line),
            Some(Stat {
                comm: "a) (b c".to_owned(),
                state: 'T',
                parent: 7,
                start: 7975,
                cpu_ticks: 7,
                terminal: None,
                foreground: false,
            })
        );
    }

    #[test]
    fn we_exist_and_have_a_parent() {
        let me = stat(std::process::id()).expect("we exist");
        assert!(me.start > 0);
        assert_eq!(stat(u32::MAX), None);
    }

    #[test]
    fn a_program_in_front_is_told_from_one_behind() {
        let in_front = "42 (a) S 7 42 42 34817 42 4194304 1 0 0 0 3 4 0 0 20 0 1 0 7975 1 1";
        let stat = parse_stat(in_front).expect("whole");
        assert_eq!((stat.terminal, stat.foreground), (Some(34817), true));
        let behind = parse_stat(&in_front.replace("34817 42", "34817 43")).expect("whole");
        assert!(!behind.foreground);
    }
}
