//! Our own tmux server: brought up with our own configuration and a clean environment, asked over one
//! control-mode client. It must never touch another tmux server, never resize a window and never kill
//! what it did not start.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use purplemux_core::{HostId, TabId, TmuxServer};
use thiserror::Error;

/// What is needed to talk to our tmux server.
#[derive(Clone, Debug)]
pub struct Config {
    /// This machine.
    pub host: HostId,
    /// `$PURPLEMUX_HOME`: holds `tmux.conf` and names the socket.
    pub home: PathBuf,
}

/// A command that tmux refused, or a tmux that can't be talked to.
#[derive(Clone, Debug, Error)]
pub enum Error {
    /// tmux answered with an error; its own words.
    #[error("tmux: {0}")]
    Refused(String),
    /// tmux is missing, too old, or does not answer.
    #[error("{0}")]
    Unreachable(String),
}

/// How a terminal is attached to a tab: run this in a pty, with exactly this environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attach {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The whole environment (start from an empty one).
    pub environment: Vec<(OsString, OsString)>,
}

/// A way to our tmux server for everyone else.
#[derive(Clone, Debug)]
pub struct Handle {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: Config,
    socket: PathBuf,
}

impl Handle {
    /// Prepares the way; starts and connects nothing yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let socket = PathBuf::new();
        Self {
            inner: Arc::new(Inner { config, socket }),
        }
    }

    /// The server's socket, whether or not it runs.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.inner.socket
    }

    /// Starts the server if it does not run, and connects. Cheap when that is done already.
    pub async fn ensure_server(&self) -> Result<TmuxServer, Error> {
        Err(unreachable(&self.inner.config))
    }

    /// Runs one tmux command over the control client and returns its output lines. Arguments are passed
    /// as they are: no quoting needed.
    pub async fn command(&self, _arguments: &[&str]) -> Result<Vec<String>, Error> {
        Err(unreachable(&self.inner.config))
    }

    /// Makes the tmux session of a tab, detached. `environment` is added to the clean one; an empty
    /// `command` is the person's login shell with our shell integration.
    pub async fn new_session(
        &self,
        _tab: &TabId,
        _cwd: &Path,
        _environment: &[(String, String)],
        _command: &[String],
    ) -> Result<(), Error> {
        Err(unreachable(&self.inner.config))
    }

    /// Ends the tmux session of a tab with everything in it. `Ok` also if it had ended already.
    pub async fn kill_session(&self, _tab: &TabId) -> Result<(), Error> {
        Err(unreachable(&self.inner.config))
    }

    /// Types text into a tab's active pane, as one bracketed paste where the program asked for it, then
    /// Enter if wanted.
    pub async fn send_text(&self, _tab: &TabId, _text: &str, _enter: bool) -> Result<(), Error> {
        Err(unreachable(&self.inner.config))
    }

    /// How to attach a terminal to a tab.
    #[must_use]
    pub fn attach_command(&self, _tab: &TabId) -> Attach {
        Attach {
            program: "tmux".into(),
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }
}

fn unreachable(config: &Config) -> Error {
    Error::Unreachable(format!("No tmux server for {}.", config.home.display()))
}
