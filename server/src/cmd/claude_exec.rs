//! `purplemux claude-exec HOME PROGRAM ARGUMENTS…` (for the shell integration, not for people): becomes
//! Claude, with our hook settings before its arguments. It must never keep Claude from starting: whatever
//! goes wrong, the arguments pass untouched.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::hooks::{self, merged, settings, status_line, version};
use crate::sys;

/// A person's settings file is small; more than this is none.
const SETTINGS_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Runs the command if `arguments` (without the program's name) ask for it; `None`: another command.
/// Returns only if Claude could not be started.
pub fn run(arguments: &[OsString]) -> Option<ExitCode> {
    let [command, home, program, theirs @ ..] = arguments else {
        return None;
    };
    if command != "claude-exec" {
        return None;
    }
    let home = Path::new(home);
    let own_folder = home.join("shell").join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = if Path::new(program).components().count() > 1 {
        Some(PathBuf::from(program))
    } else {
        version::find_on_path(&program.to_string_lossy(), &path, Some(&own_folder))
    };
    let Some(real) = found else {
        return Some(fail(program, "command not found", 127));
    };
    let start = with_hooks(home, &real, theirs).unwrap_or_else(|_| Start {
        arguments: theirs.to_vec(),
        resume_flags: None,
    });
    let mut claude = command_for(&real, &start.arguments);
    if let Some(flags) = start.resume_flags {
        claude.env(RESUME_FLAGS, flags);
    }
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if folders.contains(&own_folder)
        && let Ok(path) = std::env::join_paths(folders.iter().filter(|dir| **dir != own_folder))
    {
        claude.env("PATH", path);
    }
    let error = claude.exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound {
        127
    } else {
        126
    };
    Some(fail(real.as_os_str(), &error.to_string(), code))
}

#[allow(
    clippy::disallowed_methods,
    reason = "this process becomes Claude; nothing is left to wait for"
)]
fn command_for(program: &Path, arguments: &[OsString]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

#[allow(clippy::print_stderr, reason = "what a shell would say here")]
fn fail(program: &OsStr, why: &str, code: u8) -> ExitCode {
    eprintln!("{}: {why}", program.to_string_lossy());
    ExitCode::from(code)
}

/// How Claude is started.
#[derive(Debug, PartialEq, Eq)]
struct Start {
    arguments: Vec<OsString>,
    /// What Claude is to show as its flags when it says how to resume.
    resume_flags: Option<OsString>,
}

/// At its end, Claude shows the command that resumes the session, with the flags it was started with: ours
/// would stand on the person's screen. In this variable it takes the flags to show instead, and forgets it
/// (measured, 2.1.332). Prompts among them make it show none.
const RESUME_FLAGS: &str = "CLAUDE_CODE_RELAUNCH_RESUME_HINT_FLAGS";
const RESUME_FLAGS_SINCE: [u32; 3] = [2, 1, 332];

/// The arguments with our settings before them, merged with the person's own if they gave some.
fn with_hooks(home: &Path, program: &Path, theirs: &[OsString]) -> Result<Start> {
    if theirs.first().is_some_and(|first| needs_no_hooks(first)) {
        return Ok(Start {
            arguments: theirs.to_vec(),
            resume_flags: None,
        });
    }
    let version = version::of(home, program, true);
    // A command copied from somewhere may name settings of ours: they are added anyway.
    let is_ours = |value: &OsString| Path::new(value).starts_with(home);
    let given: Vec<OsString> = given_settings(theirs)
        .into_iter()
        .filter(|value| !is_ours(value))
        .collect();
    let cwd = std::env::current_dir().ok();
    let line = cwd.and_then(|cwd| status_line::chained(home, &cwd, version.as_ref(), theirs));
    let file = match (given.last(), line) {
        (None, None) => hooks::write_settings(home, version.as_ref())?,
        (None, Some(line)) => {
            let mut ours = settings::value(home, version.as_ref());
            ours["statusLine"] = line;
            of_this_process(home, &ours)?
        }
        (Some(last), line) => {
            let person: Value = read_settings(last)?;
            let ours = settings::value(home, version.as_ref());
            let mut both =
                settings::merge(person, &ours).context("their hooks are in no shape to add to")?;
            // One that they give here goes before every other.
            if let Some(line) = line
                && both.get("statusLine").is_none()
            {
                both["statusLine"] = line;
            }
            of_this_process(home, &both)?
        }
    };
    let mut arguments = vec![OsString::from("--settings"), file.into_os_string()];
    let others = without_settings(theirs);
    arguments.extend(others.iter().cloned());
    let shown = if given.is_empty() { &others } else { theirs };
    let resume_flags = version
        .is_some_and(|version| version.is_at_least(RESUME_FLAGS_SINCE))
        .then(|| shown.join(OsStr::new(" ")));
    Ok(Start {
        arguments,
        resume_flags,
    })
}

/// Settings that no other Claude is given.
fn of_this_process(home: &Path, settings: &Value) -> Result<PathBuf> {
    merged::sweep(home);
    let pid = std::process::id();
    let start = sys::stat(pid).context("our own start time")?.start;
    merged::write(home, pid, start, settings)
}

/// Starts no session: the subcommands of 2.1.332 and earlier, and the options that only print.
fn needs_no_hooks(first: &OsStr) -> bool {
    const FIRST: [&str; 29] = [
        "--help",
        "--version",
        "-h",
        "-v",
        "agents",
        "attach",
        "auth",
        "auto-mode",
        "config",
        "doctor",
        "gateway",
        "import",
        "install",
        "kill",
        "logs",
        "mcp",
        "migrate-installer",
        "plugin",
        "plugins",
        "purge",
        "remote-control",
        "respawn",
        "rm",
        "setup-token",
        "stop",
        "ultrareview",
        "uninstall",
        "update",
        "upgrade",
    ];
    first.to_str().is_some_and(|first| FIRST.contains(&first))
}

/// The values of every `--settings`, in order. What comes after `--` is a prompt.
fn given_settings(arguments: &[OsString]) -> Vec<OsString> {
    let mut values = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match option(argument) {
            Part::End => break,
            Part::Settings => values.extend(rest.next().cloned()),
            Part::SettingsIs(value) => values.push(value),
            Part::Other => {}
        }
    }
    values
}

fn without_settings(arguments: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match option(argument) {
            Part::End => {
                kept.push(argument.clone());
                kept.extend(rest.cloned());
                break;
            }
            Part::Settings => drop(rest.next()),
            Part::SettingsIs(_) => {}
            Part::Other => kept.push(argument.clone()),
        }
    }
    kept
}

enum Part {
    End,
    Settings,
    SettingsIs(OsString),
    Other,
}

fn option(argument: &OsStr) -> Part {
    use std::os::unix::ffi::OsStrExt as _;
    if argument == "--" {
        Part::End
    } else if argument == "--settings" {
        Part::Settings
    } else if let Some(value) = argument.as_bytes().strip_prefix(b"--settings=") {
        Part::SettingsIs(OsStr::from_bytes(value).to_owned())
    } else {
        Part::Other
    }
}

/// A file's name or the JSON itself, as Claude takes both.
fn read_settings(value: &OsStr) -> Result<Value> {
    use std::io::Read as _;
    let text = value.to_string_lossy();
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(&text).context("--settings is no JSON");
    }
    let mut text = String::new();
    std::fs::File::open(value)
        .context("--settings can't be opened")?
        .take(SETTINGS_BYTES_MAX)
        .read_to_string(&mut text)
        .context("--settings can't be read")?;
    serde_json::from_str(&text).context("--settings is no JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn k09_only_settings_are_taken_out_of_the_arguments() {
        let given = words(&[
            "--model",
            "x",
            "--settings",
            "a.json",
            "--settings={\"b\":1}",
            "say",
            "--",
            "--settings",
            "no",
        ]);
        assert_eq!(given_settings(&given), words(&["a.json", "{\"b\":1}"]));
        assert_eq!(
            without_settings(&given),
            words(&["--model", "x", "say", "--", "--settings", "no"])
        );
    }

    #[test]
    fn k09_settings_that_cannot_be_parsed_leave_the_arguments_alone() {
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join("claude");
        for theirs in [["--settings", "/nowhere.json"], ["--settings", "{broken"]] {
            assert!(with_hooks(home.path(), &program, &words(&theirs)).is_err());
        }
        assert!(!home.path().join("merged").exists());
    }
}
