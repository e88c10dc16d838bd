//! A tmux server of the person's own, outside of purplemux: started and used as a person would.
//!
//! Ends itself with the home it lives in; must never be one that a test did not start.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::clock::until;
use crate::product::{Lab, PATIENCE, claude_is_ready};
use crate::tmux::Pane;

/// A tmux server with the session `main`, and a login shell in its only pane.
pub struct Own {
    /// The server's socket.
    pub socket: PathBuf,
    /// The pane.
    pub pane: Pane,
    /// The shell's directory.
    pub dir: PathBuf,
}

impl Own {
    /// Starts one in the project of this number.
    pub fn shell(lab: &Lab, number: usize) -> anyhow::Result<Self> {
        let dir = lab.home().project(number);
        let socket = lab.home().root().join(format!("own-{number}.sock"));
        let started = Command::new("tmux")
            .env_clear()
            .envs(lab.home().env())
            .args(["-f", "/dev/null", "-S"])
            .arg(&socket)
            .args(["new-session", "-d", "-s", "main", "-x", "100", "-y", "30"])
            .arg("-c")
            .arg(&dir)
            .args(["bash", "-l"])
            .status()
            .context("start tmux")?;
        ensure!(started.success(), "tmux does not start");
        let pane = Pane::new(&socket, "main");
        pane.wait("a shell's prompt", PATIENCE, |screen| {
            screen.contains("lab$") || screen.contains("lab#")
        })?;
        Ok(Self { socket, pane, dir })
    }

    /// As [`Own::shell`], with a Claude that is ready for a prompt.
    pub fn claude(lab: &Lab, number: usize) -> anyhow::Result<Self> {
        let own = Self::shell(lab, number)?;
        own.enter("claude")?;
        own.pane
            .wait("Claude's prompt", PATIENCE, claude_is_ready)?;
        Ok(own)
    }

    /// Types a line, and presses Enter once it stands on the screen.
    pub fn enter(&self, line: &str) -> anyhow::Result<()> {
        let plain = |text: &str| text.split_whitespace().collect::<String>();
        self.pane.text(line)?;
        self.pane.wait(line, PATIENCE, |screen| {
            plain(screen).contains(&plain(line))
        })?;
        self.pane.keys(&["Enter"])
    }

    /// Its row: the one in its directory.
    pub fn item(&self, lab: &Lab) -> anyhow::Result<Option<Value>> {
        Ok(lab.rows()?.into_iter().find(|item| in_dir(item, &self.dir)))
    }

    /// Waits until its row shows this state.
    pub fn shows(&self, lab: &Lab, state: &str) -> anyhow::Result<Value> {
        let shown = || self.item(lab).ok().flatten();
        until(PATIENCE, || shown().filter(|item| item["state"] == state)).with_context(|| {
            format!(
                "not {state}: {:?}\n{}",
                shown(),
                self.pane.screen().unwrap_or_default()
            )
        })
    }
}

fn in_dir(item: &Value, dir: &Path) -> bool {
    item["cwd"]
        .as_str()
        .is_some_and(|cwd| Path::new(cwd) == dir)
}
