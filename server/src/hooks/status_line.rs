//! The person's own status line, with us before it: it is shown unchanged, and we learn what Claude Code told it.
//!
//! It must never take the place of one that a project brings, since ours would hide it, and never be there where
//! the person has none: a status line that prints nothing takes Claude's hint `? for shortcuts` off the screen
//! (measured, 2.1.332). And it must never make the server run a command: Claude's own process does, and none
//! that comes from a repository.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::shell::quote;
use super::version::Version;

/// A settings file is small; more than this is none.
const SETTINGS_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// From the oldest version that it was tried with.
const SINCE: [u32; 3] = [2, 0, 77];

/// Arguments with which the person's own settings count in part or not at all.
const OTHERWISE: [&str; 3] = ["--bare", "--safe-mode", "--setting-sources"];

/// The `statusLine` to give to a Claude that starts in this directory with these arguments; `None`: theirs is left
/// alone, whatever it is.
#[must_use]
pub fn chained(
    home: &Path,
    cwd: &Path,
    version: Option<&Version>,
    arguments: &[OsString],
) -> Option<Value> {
    version.filter(|version| version.is_at_least(SINCE))?;
    if arguments.iter().any(|argument| otherwise(argument)) {
        return None;
    }
    let file = settings_file()?;
    if a_project_has_one(cwd, &file) {
        return None;
    }
    let mut line = read(&file)??;
    let command = command_of(&line)?.to_owned();
    let script = quote(&home.join("status-line.sh").to_string_lossy());
    // Without the script (purplemux was removed while this Claude ran), their command stands alone.
    let ours = format!(
        "if [ -x {script} ]; then exec {script} {}; fi\n{command}",
        quote(&command)
    );
    line["command"] = ours.into();
    Some(line)
}

/// The command of the person's own settings as they are now; `None`: that can't be told, `Some(None)`: there is
/// none any more.
#[must_use]
pub fn command_now() -> Option<Option<String>> {
    let line = read(&settings_file()?)?;
    Some(line.and_then(|line| command_of(&line).map(str::to_owned)))
}

fn command_of(line: &Value) -> Option<&str> {
    if line["type"] != "command" {
        return None;
    }
    line["command"]
        .as_str()
        .filter(|command| !command.trim().is_empty())
}

fn otherwise(argument: &OsStr) -> bool {
    let argument = argument.to_string_lossy();
    let name = argument.split('=').next().unwrap_or_default();
    OTHERWISE.contains(&name)
}

/// The person's own settings.
fn settings_file() -> Option<PathBuf> {
    let dir = match std::env::var_os("CLAUDE_CONFIG_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => std::env::home_dir()?.join(".claude"),
    };
    Some(dir.join("settings.json"))
}

/// Whether a status line stands in settings of the project, shared or local, here or in a directory above; also
/// where that can't be told.
fn a_project_has_one(cwd: &Path, own: &Path) -> bool {
    let own = fs::canonicalize(own).ok();
    let files = cwd.ancestors().flat_map(|dir| {
        let folder = dir.join(".claude");
        ["settings.json", "settings.local.json"].map(|name| folder.join(name))
    });
    files
        .filter(|file| own.is_none() || fs::canonicalize(file).ok() != own)
        .any(|file| read(&file).is_none_or(|line| line.is_some()))
}

/// The `statusLine` of a settings file; `None`: the file can't be read or understood, `Some(None)`: it has none.
fn read(file: &Path) -> Option<Option<Value>> {
    match fs::metadata(file) {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => return None,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(None),
        // A directory above may not be ours to look into; then it is not Claude's either.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Some(None),
        Err(_) => return None,
    }
    let mut text = String::new();
    fs::File::open(file)
        .ok()?
        .take(SETTINGS_BYTES_MAX)
        .read_to_string(&mut text)
        .ok()?;
    if text.trim().is_empty() {
        return Some(None);
    }
    let settings: Value = serde_json::from_str(&text).ok()?;
    Some(
        settings
            .as_object()?
            .get("statusLine")
            .filter(|line| !line.is_null())
            .cloned(),
    )
}
