//! `purplemux doctor`: what sessions need, looked at one by one, each with what to do about it. Works with
//! and without a running server, and changes nothing.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use purplemux_wire::browser::Item;
use rustix::process::{Resource, geteuid, getrlimit};
use serde::{Deserialize, Serialize};

use super::Common;
use super::client::{Client, NotRunning, block_on, plain, print};
use crate::claude;
use crate::home::Home;
use crate::hooks::{global, settings, version};
use crate::ingest::default_claude_dirs;
use crate::ingest::odd::{Counts, Kind};
use crate::tmux::{Place, environment};
use crate::web::api::Inside;

/// The first tmux with everything that is used: `-f` of attach-session, `-T` and `-N` of tmux itself.
const TMUX_SINCE: (u32, u32) = (3, 2);
/// The first tmux that hands links of a program on to the page.
const TMUX_LINKS: (u32, u32) = (3, 4);
/// The first version that writes its status into its file.
const STATUS_SINCE: [u32; 3] = [2, 1, 128];
/// A terminal takes three descriptors and an agent two; a hundred of each and the rest fit well.
const FILES: u64 = 1024;
/// Folders and transcripts that are watched, with room for an editor that watches a whole tree.
const WATCHES: u64 = 8192;
/// The server takes three instances; some editors take dozens.
const INSTANCES: u64 = 64;

/// How one check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// As it should be.
    Ok,
    /// Works, but less well than it could.
    Warn,
    /// Does not work.
    Fail,
}

/// One line of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    /// What was looked at.
    name: &'static str,
    verdict: Verdict,
    /// What was found.
    said: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    todo: Option<String>,
}

impl Check {
    fn ok(name: &'static str, said: impl Into<String>) -> Self {
        Self {
            name,
            verdict: Verdict::Ok,
            said: said.into(),
            todo: None,
        }
    }

    fn warn(name: &'static str, said: impl Into<String>, todo: impl Into<String>) -> Self {
        Self {
            name,
            verdict: Verdict::Warn,
            said: said.into(),
            todo: Some(todo.into()),
        }
    }

    fn fail(name: &'static str, said: impl Into<String>, todo: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Fail,
            ..Self::warn(name, said, todo)
        }
    }
}

/// Runs it. Exit code 1 if something does not work.
///
/// # Errors
/// The home can't be told, or something does not work.
pub fn run(common: &Common) -> Result<()> {
    let home = common.home()?;
    let mut checks = tmux(&home);
    checks.extend(claude_code(&home));
    checks.extend(everywhere(&home));
    checks.push(of_home(&home));
    checks.extend(limits());
    checks.extend(linger());
    checks.extend(server(&home)?);
    let failed = checks
        .iter()
        .filter(|check| check.verdict == Verdict::Fail)
        .count();
    if common.json {
        print(&serde_json::json!({ "ok": failed == 0, "checks": checks }).to_string())?;
    } else {
        for check in &checks {
            let word = match check.verdict {
                Verdict::Ok => "ok  ",
                Verdict::Warn => "warn",
                Verdict::Fail => "FAIL",
            };
            print(&format!(
                "{word}  {:<14} {}",
                check.name,
                plain(&check.said)
            ))?;
            if let Some(todo) = &check.todo {
                print(&format!("{:21}{}", "", plain(todo)))?;
            }
        }
    }
    match failed {
        0 => Ok(()),
        1 => bail!("One thing does not work; see above."),
        n => bail!("{n} things do not work; see above."),
    }
}

// ---- tmux --------------------------------------------------------------------------------------------

fn tmux(home: &Home) -> Vec<Check> {
    let name = "tmux";
    let Some(program) = on_path("tmux") else {
        return vec![Check::fail(
            name,
            "tmux is not installed; tabs can't be opened. Sessions elsewhere are shown all the same.",
            "Install it: apt install tmux, dnf install tmux or brew install tmux.",
        )];
    };
    let said = ask(&program, &["-V"]).unwrap_or_default();
    let version = said.trim().trim_start_matches("tmux ").to_owned();
    let shown = format!("tmux {version} ({})", program.display());
    let (major, minor) = TMUX_SINCE;
    let first = match numbers(&version) {
        None => Check::warn(
            name,
            format!("{} does not say its version", program.display()),
            format!("Make sure that it is tmux {major}.{minor} or newer."),
        ),
        Some(found) if found < TMUX_SINCE => Check::fail(
            name,
            format!("{shown} is too old"),
            format!("Install tmux {major}.{minor} or newer."),
        ),
        Some(found) if found < TMUX_LINKS => Check::ok(
            name,
            format!("{shown}; links of programs reach the page from 3.4 on"),
        ),
        Some(_) => Check::ok(name, shown),
    };
    let mut checks = vec![first];
    checks.extend(tmux_server(home, &program, &version));
    checks
}

/// Our own tmux server, if it runs.
fn tmux_server(home: &Home, program: &Path, installed: &str) -> Option<Check> {
    let name = "tmux server";
    let place = Place::of(home.dir());
    let socket = place.socket();
    let folder = socket.parent()?;
    let me = geteuid().as_raw();
    match fs::symlink_metadata(folder) {
        Ok(meta) if !meta.is_dir() || meta.uid() != me => {
            return Some(Check::fail(
                name,
                format!("{} is not a directory of yours", folder.display()),
                "Remove it, or set TMUX_TMPDIR to a directory of your own.",
            ));
        }
        Ok(_) => {}
        // tmux makes it with the first tab.
        Err(_) => return None,
    }
    if fs::symlink_metadata(socket).is_err() {
        return None;
    }
    let socket = socket.to_string_lossy();
    let question = ["-N", "-S", &socket, "display-message", "-p", "#{version}"];
    let running = ask(program, &question)?.trim().to_owned();
    Some(if running.is_empty() {
        Check::warn(
            name,
            format!("no tmux answers on {socket}"),
            "It is started with the next tab; if that fails, remove the socket.",
        )
    } else if running == installed {
        Check::ok(name, format!("tmux {running} on {socket}"))
    } else {
        Check::warn(
            name,
            format!("tmux {running} still runs, {installed} is installed"),
            "Everything goes on as it is. Tabs end when tmux is restarted, so do that when you can spare them.",
        )
    })
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next().unwrap_or(0)))
}

// ---- Claude Code -------------------------------------------------------------------------------------

fn claude_code(home: &Home) -> Vec<Check> {
    let name = "Claude Code";
    let found = claude::quick();
    let programs = programs();
    if programs.is_empty() {
        return vec![match &found.directory {
            None => Check::warn(
                name,
                "no claude on the login shell's PATH and no ~/.claude folder",
                "Install it (npm install -g @anthropic-ai/claude-code), then run claude once.",
            ),
            Some(directory) => Check::warn(
                name,
                format!(
                    "{} is there, but no claude on the login shell's PATH",
                    directory.display()
                ),
                "Make sure that the shell of a tab finds claude.",
            ),
        }];
    }
    let mut checks: Vec<Check> = programs
        .iter()
        .map(|program| of_program(home, program))
        .collect();
    if found.directory.is_none() {
        checks.push(Check::ok(name, "installed, not started yet"));
    }
    checks
}

/// Every Claude Code that a shell or the PATH finds, each once.
pub(super) fn programs() -> Vec<PathBuf> {
    let by_shell = block_on(async { Ok(claude::by_shell().await) })
        .ok()
        .flatten();
    let found = claude::quick().program;
    let mut programs: Vec<PathBuf> = by_shell.into_iter().chain(found).collect();
    programs.extend(all_on_path("claude"));
    let mut seen: Vec<PathBuf> = Vec::new();
    programs.retain(|program| {
        let real = fs::canonicalize(program).unwrap_or_else(|_| program.clone());
        let new = !seen.contains(&real);
        if new {
            seen.push(real);
        }
        new
    });
    programs
}

/// One installed Claude Code: its version, and which hooks it gets.
fn of_program(home: &Home, program: &Path) -> Check {
    let name = "Claude Code";
    let Some(version) = version::of(home.dir(), program, true) else {
        return Check::warn(
            name,
            format!("{} does not say its version", program.display()),
            format!(
                "It is given the {} original hooks. Make sure that it is Claude Code.",
                settings::events(None).len()
            ),
        );
    };
    let hooks = settings::events(Some(&version)).len();
    let shown = format!("{version} ({}), {hooks} hooks", program.display());
    if version.is_at_least(STATUS_SINCE) {
        Check::ok(name, shown)
    } else {
        Check::warn(
            name,
            format!("{shown}, and no status in its own file"),
            "Badges come from hooks and transcript alone and may be late; update Claude Code.",
        )
    }
}

/// Our hooks in the person's own settings, if they were put there.
fn everywhere(home: &Home) -> Vec<Check> {
    let name = "global hooks";
    let mut dirs = global::recorded(home.dir());
    dirs.extend(
        default_claude_dirs()
            .into_iter()
            .filter(|dir| !global::state(home.dir(), dir).events.is_empty()),
    );
    dirs.sort();
    dirs.dedup();
    if dirs.is_empty() {
        return vec![Check::ok(
            name,
            "not installed; sessions outside purplemux are followed by Claude's own files (purplemux hooks install --global)",
        )];
    }
    let found: Vec<version::Version> = programs()
        .iter()
        .filter_map(|program| version::of(home.dir(), program, true))
        .collect();
    dirs.iter()
        .map(|dir| of_settings(&global::state(home.dir(), dir), &found))
        .collect()
}

fn of_settings(state: &global::State, found: &[version::Version]) -> Check {
    let name = "global hooks";
    let file = state.file.display();
    let again =
        "Run `purplemux hooks install --global` again, or `purplemux hooks uninstall --global`.";
    if let Some(why) = &state.unreadable {
        return Check::warn(name, format!("{file}: {why}"), "Mend that file.");
    }
    if state.events.is_empty() {
        return Check::warn(
            name,
            format!("something has taken our hooks out of {file}"),
            again,
        );
    }
    if state.off {
        return Check::warn(
            name,
            format!("{file} switches all hooks off (disableAllHooks)"),
            "Badges are right without hooks, their details poorer. Take disableAllHooks out to have both.",
        );
    }
    for version in found {
        let known = settings::events(Some(version));
        let unknown = state
            .events
            .iter()
            .find(|event| !known.contains(&event.as_str()));
        if let Some(event) = unknown {
            return Check::fail(
                name,
                format!("{file} names {event}, which Claude Code {version} refuses at every start"),
                again,
            );
        }
    }
    let wanted = settings::events(found.iter().min()).len();
    if state.events.len() < wanted {
        return Check::warn(
            name,
            format!(
                "{file} has {} of {wanted} hooks; Claude Code has been updated since",
                state.events.len()
            ),
            again,
        );
    }
    Check::ok(name, format!("{} in {file}", state.events.len()))
}

// ---- the home and the machine ------------------------------------------------------------------------

fn of_home(home: &Home) -> Check {
    let name = "home";
    let dir = home.dir();
    let shown = dir.display();
    let meta = match fs::metadata(dir) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Check::ok(name, format!("{shown} is made at the first start"));
        }
        Err(error) => {
            return Check::fail(
                name,
                format!("{shown}: {error}"),
                "Make it readable, or set PURPLEMUX_HOME to another directory.",
            );
        }
    };
    if !meta.is_dir() || meta.uid() != geteuid().as_raw() {
        return Check::fail(
            name,
            format!("{shown} is not a directory of yours"),
            "Set PURPLEMUX_HOME to a directory of your own.",
        );
    }
    // What is in a closed directory is closed; these are secrets wherever they are copied to.
    let open: Vec<&str> = ["", "cli-token", "hook-headers", "purplemux.db"]
        .into_iter()
        .filter(|file| fs::metadata(dir.join(file)).is_ok_and(|meta| meta.mode() & 0o077 != 0))
        .map(|file| {
            if file.is_empty() {
                "the directory itself"
            } else {
                file
            }
        })
        .collect();
    if open.is_empty() {
        Check::ok(name, format!("{shown}, closed to other users"))
    } else {
        Check::fail(
            name,
            format!("{shown}: other users may read {}", open.join(", ")),
            format!("chmod -R go= {shown}"),
        )
    }
}

fn limits() -> Vec<Check> {
    let mut checks = Vec::new();
    let number = |file: &str| {
        let text = fs::read_to_string(Path::new("/proc/sys/fs/inotify").join(file)).ok()?;
        text.trim().parse::<u64>().ok()
    };
    for (file, least) in [
        ("max_user_watches", WATCHES),
        ("max_user_instances", INSTANCES),
    ] {
        let Some(found) = number(file) else {
            continue;
        };
        checks.push(if found >= least {
            Check::ok("inotify", format!("fs.inotify.{file} = {found}"))
        } else {
            Check::warn(
                "inotify",
                format!("fs.inotify.{file} = {found}: when it is used up, files are looked at once a second instead of watched"),
                format!("sudo sysctl fs.inotify.{file}={}", least * 16),
            )
        });
    }
    let files = getrlimit(Resource::Nofile);
    checks.push(match files.current {
        Some(found) if found < FILES => Check::warn(
            "open files",
            format!("at most {found} open files"),
            format!("Start purplemux after `ulimit -n {FILES}`, or raise it in limits.conf."),
        ),
        Some(found) => Check::ok("open files", format!("at most {found}")),
        None => Check::ok("open files", "without limit"),
    });
    checks
}

/// Under systemd, whether what a person started outlives their login.
fn linger() -> Option<Check> {
    let name = "linger";
    if !Path::new("/run/systemd/system").is_dir() || geteuid().is_root() {
        return None;
    }
    let user = environment::clean()
        .into_iter()
        .find(|(variable, _)| variable == "USER")
        .map(|(_, user)| user)?;
    Some(
        if Path::new("/var/lib/systemd/linger").join(&user).exists() {
            Check::ok(name, "tabs and server outlive your login")
        } else {
            Check::warn(
                name,
                "everything of yours, tabs included, may be ended when you log out",
                format!("loginctl enable-linger {}", user.to_string_lossy()),
            )
        },
    )
}

// ---- the running server ------------------------------------------------------------------------------

fn server(home: &Home) -> Result<Vec<Check>> {
    #[derive(Deserialize)]
    struct Shown {
        items: Vec<Item>,
    }
    let name = "server";
    let client = Client::new(home);
    let asked = block_on(async {
        let inside: Inside = client.get("/api/doctor").await?;
        let shown: Shown = client.get("/api/items").await?;
        Ok((inside, shown.items))
    });
    let (inside, items) = match asked {
        Ok(answer) => answer,
        Err(error) if error.is::<NotRunning>() => {
            return Ok(vec![Check::ok(name, "not running; `purplemux` starts it")]);
        }
        Err(error) => {
            return Ok(vec![Check::fail(
                name,
                format!("{error:#}"),
                "Stop it and start it anew; logs/server.log in the home says more.",
            )]);
        }
    };
    let ours = env!("CARGO_PKG_VERSION");
    let mut checks = vec![if inside.version == ours {
        Check::ok(name, format!("{ours}, process {}", inside.pid))
    } else {
        Check::warn(
            name,
            format!("{} runs, {ours} is installed", inside.version),
            "Restart it; tabs go on meanwhile.",
        )
    }];
    let notices = inside.notices.into_iter();
    checks.extend(
        notices.map(|notice| Check::warn(name, notice, "logs/server.log in the home says more.")),
    );
    checks.push(hooks_heard(&items));
    checks.extend(odd(&inside.odd));
    Ok(checks)
}

/// Whether agents in our tabs have our hooks; those elsewhere were not started by us.
fn hooks_heard(items: &[Item]) -> Check {
    let name = "hooks";
    let agents = || {
        items
            .iter()
            .filter(|item| item.tab.is_some() && item.pid.is_some() && item.state.is_some())
    };
    let deaf: Vec<&str> = agents()
        .filter(|item| !item.hooks)
        .map(|item| item.id.as_str())
        .collect();
    if deaf.is_empty() {
        let said = match agents().count() {
            0 => "no Claude runs in a tab; nothing to hear yet".to_owned(),
            n => format!("heard from every Claude in a tab ({n})"),
        };
        Check::ok(name, said)
    } else {
        Check::warn(
            name,
            format!("none heard from {}", deaf.join(", ")),
            "Their badges are right, their details poorer. Start claude anew in a shell opened by purplemux, without --bare and with hooks enabled in its settings.",
        )
    }
}

/// What the server could not use, each kind with the last reason.
fn odd(counts: &Counts) -> Vec<Check> {
    if counts.is_empty() {
        return vec![Check::ok("input", "everything that came in was understood")];
    }
    let told = counts.iter().map(|(kind, counted)| {
        let (what, todo) = words(*kind);
        let said = format!("{} {what}; the last: {}", counted.count, counted.why);
        Check::warn("input", said, todo)
    });
    told.collect()
}

/// What happened, and what to do about it.
fn words(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::HookRefused => (
            "hooks were refused because they were none",
            "Something else posts to the hook route.",
        ),
        Kind::HookUnknown => (
            "hooks had names that this version does not know",
            "Update purplemux.",
        ),
        Kind::HookCut => (
            "hooks came without their body, which was over 1 MiB",
            "Their events counted; only details are missing.",
        ),
        Kind::StatusFileRefused => (
            "status files were folders, links or pipes",
            "Look into Claude's sessions folder.",
        ),
        Kind::StatusFileUnread => (
            "times a status file could not be read",
            "Look at the permissions of Claude's sessions folder; update purplemux if Claude Code is newer.",
        ),
        Kind::TranscriptRefused => (
            "transcripts were not read because they were no files of Claude's",
            "Look into Claude's projects folder; something else may post to the hook route.",
        ),
        Kind::TranscriptUnread => (
            "times a transcript could not be read",
            "Look at the permissions of Claude's projects folder.",
        ),
        Kind::LineBroken => (
            "lines of transcripts were no JSON and were skipped",
            "Badges go on; a disk that was full or another program may have written them.",
        ),
        Kind::LineTooLong => (
            "lines of transcripts were over 8 MiB and were skipped",
            "Badges go on; only what stood in them is missing.",
        ),
    }
}

// ---- programs ----------------------------------------------------------------------------------------

fn on_path(name: &str) -> Option<PathBuf> {
    version::find_on_path(name, &std::env::var_os("PATH")?, None)
}

fn all_on_path(name: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .filter(|program| version::is_executable(program))
        .collect()
}

/// What a program prints; `None`: it can't be started.
#[expect(
    clippy::disallowed_methods,
    reason = "a person asked for it, and each program is asked once"
)]
fn ask(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .env_remove("TMUX")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::odd::Counted;

    #[test]
    fn a_version_of_tmux_is_compared_by_its_numbers() {
        assert_eq!(numbers("3.3a"), Some((3, 3)));
        assert_eq!(numbers("next-3.6"), Some((3, 6)));
        assert_eq!(numbers("3.10"), Some((3, 10)));
        assert!(numbers("3.1c") < Some(TMUX_SINCE));
        assert_eq!(numbers("master"), None);
    }

    #[test]
    fn what_could_not_be_used_is_said_one_by_one() {
        assert_eq!(odd(&Counts::default()).len(), 1);
        let counted = |count, why: &str| Counted {
            count,
            why: why.to_owned(),
            at_ms: 0,
        };
        let counts = Counts::from([
            (Kind::HookRefused, counted(2, "no JSON")),
            (Kind::TranscriptRefused, counted(1, "/x.jsonl: a pipe")),
        ]);
        let checks = odd(&counts);
        assert!(checks.iter().all(|check| check.verdict == Verdict::Warn));
        assert_eq!(checks.len(), 2);
        assert!(checks[0].said.starts_with("2 hooks"), "{checks:?}");
        assert!(checks[1].said.ends_with("/x.jsonl: a pipe"), "{checks:?}");
    }
}
