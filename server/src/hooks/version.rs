//! Which version a Claude binary is, found out without starting it where possible, and remembered by
//! path, size and time of change.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock;
use crate::home::write_atomic;

/// A version is asked for by starting the binary only as a last resort, and not for longer than this.
const ASK: Duration = Duration::from_secs(5);
/// Between two looks whether it has answered.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// A version of Claude Code: three numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version([u32; 3]);

impl Version {
    /// Not older than that one.
    #[must_use]
    pub fn is_at_least(&self, other: [u32; 3]) -> bool {
        self.0.cmp(&other) != Ordering::Less
    }
}

impl FromStr for Version {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbers: Vec<u32> = text
            .split('.')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .with_context(|| format!("{text:?} is no version"))?;
        match numbers[..] {
            [major, minor, patch] => Ok(Self([major, minor, patch])),
            _ => bail!("{text:?} is no version"),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// The `claude` that our own PATH leads to.
#[must_use]
pub fn on_path() -> Option<PathBuf> {
    find_on_path("claude", &std::env::var_os("PATH")?, None)
}

/// The first executable of that name on a PATH, leaving out one directory.
#[must_use]
pub fn find_on_path(name: &str, path: &std::ffi::OsStr, without: Option<&Path>) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|dir| !dir.as_os_str().is_empty() && without != Some(dir.as_path()))
        .map(|dir| dir.join(name))
        .find(|candidate| is_executable(candidate))
}

/// A regular file that somebody may execute.
#[must_use]
pub fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Cache {
    versions: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    bytes: u64,
    changed_ns: i64,
    version: String,
}

/// The version of a binary. With `may_start` it is started with `--version` if nothing else tells.
#[must_use]
pub fn of(home: &Path, program: &Path, may_start: bool) -> Option<Version> {
    let real = fs::canonicalize(program).ok()?;
    let meta = fs::metadata(&real).ok()?;
    let cache_path = home.join("hooks.d").join("versions");
    let mut cache: Cache = fs::read_to_string(&cache_path)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let key = real.to_string_lossy().into_owned();
    let looks = (
        meta.len(),
        meta.mtime().saturating_mul(1_000_000_000) + meta.mtime_nsec(),
    );
    if let Some(entry) = cache.versions.get(&key)
        && (entry.bytes, entry.changed_ns) == looks
    {
        return entry.version.parse().ok();
    }
    let version = by_name(&real)
        .or_else(|| by_package(&real))
        .or_else(|| may_start.then(|| by_asking(program)).flatten())?;
    cache.versions.retain(|path, _| Path::new(path).exists());
    cache.versions.insert(
        key,
        Entry {
            bytes: looks.0,
            changed_ns: looks.1,
            version: version.to_string(),
        },
    );
    // Without the cache it is only found out again.
    if let Ok(text) = serde_json::to_string(&cache) {
        drop(write_atomic(&cache_path, text.as_bytes(), 0o600));
    }
    Some(version)
}

/// The native installer names the binary by its version: `…/claude/versions/2.1.332`.
fn by_name(real: &Path) -> Option<Version> {
    let parent = real.parent()?.file_name()?;
    (parent == "versions").then(|| real.file_name()?.to_str()?.parse().ok())?
}

/// In an npm package the version stands beside it.
fn by_package(real: &Path) -> Option<Version> {
    let folder = real.parent()?;
    let text = fs::read_to_string(folder.join("package.json")).ok()?;
    let package: Value = serde_json::from_str(&text).ok()?;
    let name = package.get("name")?.as_str()?;
    if !name.starts_with("@anthropic-ai/claude-code") {
        return None;
    }
    package.get("version")?.as_str()?.parse().ok()
}

/// `claude --version` prints `2.1.332 (Claude Code)`.
#[allow(
    clippy::disallowed_methods,
    reason = "the last resort, once per binary, bounded in time"
)]
fn by_asking(program: &Path) -> Option<Version> {
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let until = clock::boot() + ASK;
    while child.try_wait().ok()?.is_none() {
        if clock::boot() >= until {
            // It has been given up; whether it can still be ended makes no difference.
            drop(child.kill());
            drop(child.wait());
            return None;
        }
        clock::passed_blocking(ASK_EVERY);
    }
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_without_starting_anything() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("hooks.d")).unwrap();
        let package = home
            .path()
            .join("node_modules/@anthropic-ai/claude-code-linux-x64");
        fs::create_dir_all(&package).unwrap();
        fs::write(package.join("claude"), "binary").unwrap();
        let json = r#"{"name":"@anthropic-ai/claude-code-linux-x64","version":"2.1.332"}"#;
        fs::write(package.join("package.json"), json).unwrap();
        let expected: Version = "2.1.332".parse().unwrap();
        let of = |path: &Path| of(home.path(), path, false);
        assert_eq!(of(&package.join("claude")), Some(expected.clone()));
        // From the cache: the package's own word is gone.
        fs::remove_file(package.join("package.json")).unwrap();
        assert_eq!(of(&package.join("claude")), Some(expected));
        // Another binary in the same place is another question.
        fs::write(package.join("claude"), "another binary").unwrap();
        assert_eq!(of(&package.join("claude")), None);

        let versions = home.path().join("share/claude/versions");
        fs::create_dir_all(&versions).unwrap();
        fs::write(versions.join("2.1.200"), "binary").unwrap();
        std::os::unix::fs::symlink(versions.join("2.1.200"), home.path().join("claude")).unwrap();
        assert_eq!(of(&home.path().join("claude")), "2.1.200".parse().ok());
    }

    #[test]
    fn what_is_no_version_is_none() {
        for text in ["", "2.1", "2.1.x", "2.1.3.4", "v2.1.3"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }
}
