//! Keys into a pane and its screen back, through tmux's own command line.
//!
//! Must never talk to a tmux server that it was not told the socket of.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::clock::{until, wall_ns};

/// How long keys are given to work before they are pressed again, and how often they are.
const AGAIN_AFTER: Duration = Duration::from_millis(600);
const PRESSES: usize = 20;

/// Each look starts a process and so takes some milliseconds; all of them together outlast a redraw.
const REDRAW_LOOKS: usize = 20;

/// One pane: the active one of a session, or the one of an id.
#[derive(Clone, Debug)]
pub struct Pane {
    socket: PathBuf,
    target: String,
}

impl Pane {
    /// Names the active pane of a session; starts nothing.
    pub fn new(socket: &Path, session: &str) -> Self {
        Self::at(socket, format!("={session}:"))
    }

    /// Names a pane by what tmux takes for a target, such as `%3`.
    pub fn at(socket: &Path, target: impl Into<String>) -> Self {
        Self {
            socket: socket.to_owned(),
            target: target.into(),
        }
    }

    /// This pane by its id, whichever is active later and whatever its session is called then.
    pub fn by_id(&self) -> anyhow::Result<Self> {
        let id = self.tmux("display-message", &["-p", "#{pane_id}"])?;
        Ok(Self::at(&self.socket, id.trim()))
    }

    /// What tmux takes for a target.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The server's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Runs a command that takes this pane for its `-t`, and returns what it printed.
    pub fn tmux(&self, command: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let mut all = vec![command, "-t", &self.target];
        all.extend(arguments);
        run(&self.socket, &all)
    }

    /// Presses keys by their tmux names (`Enter`, `Escape`, `C-c`).
    pub fn keys(&self, keys: &[&str]) -> anyhow::Result<()> {
        self.tmux("send-keys", keys).map(drop)
    }

    /// Types text, without Enter.
    pub fn text(&self, text: &str) -> anyhow::Result<()> {
        self.tmux("send-keys", &["-l", "--", text]).map(drop)
    }

    /// What is on the screen.
    pub fn screen(&self) -> anyhow::Result<String> {
        self.tmux("capture-pane", &["-p"])
    }

    /// Waits until the screen fits.
    pub fn wait(
        &self,
        what: &str,
        deadline: Duration,
        fits: impl Fn(&str) -> bool,
    ) -> anyhow::Result<String> {
        let mut last = String::new();
        let found = until(deadline, || {
            last = self.screen().unwrap_or_default();
            fits(&last).then(|| last.clone())
        });
        found.with_context(|| {
            format!(
                "the screen of {} never showed {what}; it shows\n{last}",
                self.target
            )
        })
    }

    /// Waits until the screen holds `text`.
    pub fn wait_for(&self, text: &str, deadline: Duration) -> anyhow::Result<String> {
        self.wait(text, deadline, |screen| screen.contains(text))
    }

    /// Presses keys until `done`, again if need be: Claude disregards keys for a moment after it has drawn a dialog.
    /// Returns when the keys that worked were pressed, unix ns.
    pub fn press_until(
        &self,
        keys: &[&str],
        what: &str,
        done: impl Fn() -> bool,
    ) -> anyhow::Result<i64> {
        for _ in 0..PRESSES {
            let at_ns = wall_ns();
            self.keys(keys)?;
            if until(AGAIN_AFTER, || done().then_some(())).is_some() {
                return Ok(at_ns);
            }
        }
        bail!(
            "{keys:?} do not bring {what}; the screen:\n{}",
            self.screen()?
        )
    }

    /// Presses keys until `text` is off the screen and stays off: while Claude draws anew, anything may be missing.
    pub fn press_away(&self, keys: &[&str], text: &str) -> anyhow::Result<i64> {
        let missing = || !self.screen().unwrap_or_default().contains(text);
        self.press_until(keys, &format!("an end of {text:?}"), || {
            (0..REDRAW_LOOKS).all(|_| missing())
        })
    }

    /// The process of the pane: a shell, or Claude itself.
    pub fn pid(&self) -> anyhow::Result<i32> {
        let pid = self.tmux("display-message", &["-p", "#{pane_pid}"])?;
        Ok(pid.trim().parse()?)
    }
}

/// Runs one tmux command on the server behind `socket`.
pub fn run(socket: &Path, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("tmux")
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .arg("-S")
        .arg(socket)
        .args(args)
        .output()
        .context("start tmux")?;
    if !output.status.success() {
        bail!(
            "tmux {args:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
