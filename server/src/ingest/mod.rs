//! The witnesses: the world into events. Each source has its own file; none of them decides what an
//! event means, and a question that failed sends nothing at all.

pub mod hook;

use std::path::PathBuf;

/// Claude's directories that are known before any process was seen: `$CLAUDE_CONFIG_DIR` if it is set in
/// our own environment, and `~/.claude` in any case.
#[must_use]
pub fn default_claude_dirs() -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    if let Some(dir) = std::env::var_os("CLAUDE_CONFIG_DIR").filter(|dir| !dir.is_empty()) {
        dirs.push(PathBuf::from(dir));
    }
    if let Some(home) = std::env::home_dir() {
        dirs.push(home.join(".claude"));
    }
    dirs.dedup();
    dirs
}
