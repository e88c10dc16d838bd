//! Our own tmux server: brought up with our own configuration and a clean environment, asked over one
//! control-mode client. It must never touch another tmux server, never resize a window and never kill
//! what it did not start.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use purplemux_core::{HostId, TabId, TmuxServer};
use purplemux_wire::tmux::PaneLine;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

use crate::ingest::process::ForeignPane;
use crate::{hooks, task};

mod client;
mod place;

pub mod environment;

pub use place::Place;

/// Name of the session that the control client is in; never a tab, never listed.
pub const HUB_SESSION: &str = "purplemux-hub";

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

/// The panes of our server, all but the hub's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The server they are on; `None` until it has answered once.
    pub server: Option<TmuxServer>,
    /// All panes of all sessions.
    pub panes: Vec<PaneLine>,
}

/// How talking to tmux goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// It answers, or has not been asked often enough to say otherwise.
    #[default]
    Fine,
    /// Three attempts in a row have failed; a sentence for the person.
    Silent(String),
}

/// A way to our tmux server for everyone else. The control client ends with the last of them.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: mpsc::Sender<client::Request>,
    listing: watch::Receiver<Arc<Listing>>,
    health: watch::Receiver<Health>,
    place: Arc<Place>,
}

/// What xterm.js can do, for a tmux client that draws for it.
const FEATURES: &str = "RGB,256,clipboard,hyperlinks,sync,title,mouse,focus,bpaste,cstyle,extkeys,strikethrough,usstyle,overline";

/// Commands that may wait to be written; askers wait beyond that.
const QUEUE: usize = 256;

impl Handle {
    /// Starts to bring our server up (or to connect to the one that outlived us) and returns at once;
    /// whatever is asked meanwhile waits for it.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let place = Arc::new(Place::of(&config.home));
        let (requests, queue) = mpsc::channel(QUEUE);
        let (publish, listing) = watch::channel(Arc::new(Listing::default()));
        let (tell, health) = watch::channel(Health::Fine);
        let client = client::Client::new(config, Arc::clone(&place), publish, tell);
        task::spawn("tmux", client.run(queue));
        Self {
            requests,
            listing,
            health,
            place,
        }
    }

    /// The server's socket, whether or not it runs.
    #[must_use]
    pub fn socket(&self) -> &Path {
        self.place.socket()
    }

    /// The panes as last listed, and every listing that differs. A failed listing changes nothing.
    #[must_use]
    pub fn listing(&self) -> watch::Receiver<Arc<Listing>> {
        self.listing.clone()
    }

    /// Whether tmux answers.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<Health> {
        self.health.clone()
    }

    /// Waits for the server, which is started if it does not run. Cheap when that is done already.
    ///
    /// # Errors
    /// It can't be started, or does not answer.
    pub async fn ensure_server(&self) -> Result<TmuxServer, Error> {
        // The answer comes after the connection was made and the server has said who it is.
        self.command(&["display-message", "-p", "#{pid}"]).await?;
        let server = self.listing.borrow().server.clone();
        server.ok_or_else(|| Error::Unreachable("tmux does not say who it is.".to_owned()))
    }

    /// Runs one tmux command over the control client and returns its output lines. Arguments are passed
    /// as they are: no quoting needed. A line that is no UTF-8 is made so.
    ///
    /// # Errors
    /// tmux refuses it, or can't be reached within five seconds.
    pub async fn command(&self, arguments: &[&str]) -> Result<Vec<String>, Error> {
        let line = purplemux_wire::tmux::command(arguments)
            .map_err(|error| Error::Refused(error.to_string()))?;
        let (answer, answered) = oneshot::channel();
        let stopping = || Error::Unreachable("purplemux is stopping".to_owned());
        self.requests
            .send(client::Request::Command { line, answer })
            .await
            .map_err(|_| stopping())?;
        let lines = answered.await.map_err(|_| stopping())??;
        Ok(lines
            .iter()
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect())
    }

    /// Makes the tmux session of a tab, detached. `environment` is added to the clean one; an empty
    /// `command` is the person's login shell with our shell integration.
    ///
    /// # Errors
    /// There is a session of that name, or tmux can't be reached.
    pub async fn new_session(
        &self,
        tab: &TabId,
        cwd: &Path,
        environment: &[(String, String)],
        command: &[String],
    ) -> Result<(), Error> {
        let shell = hooks::shell::launch(&self.place.home, &environment::shell());
        let cwd = literal(&cwd.to_string_lossy());
        let mut arguments = vec!["new-session", "-d", "-s", tab.as_str(), "-c", &cwd];
        // Until a terminal is attached; then its size is the window's.
        arguments.extend(["-x", "120", "-y", "36"]);
        let pairs: Vec<String> = environment
            .iter()
            .chain(if command.is_empty() {
                &shell.environment[..]
            } else {
                &[]
            })
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        for pair in &pairs {
            arguments.extend(["-e", pair]);
        }
        arguments.push("--");
        let command = if command.is_empty() {
            &shell.command
        } else {
            command
        };
        arguments.extend(command.iter().map(String::as_str));
        self.command(&arguments).await.map(drop)
    }

    /// Ends the tmux session of a tab with everything in it. `Ok` also if it had ended already.
    ///
    /// # Errors
    /// tmux can't be reached.
    pub async fn kill_session(&self, tab: &TabId) -> Result<(), Error> {
        match self
            .command(&["kill-session", "-t", &format!("={tab}")])
            .await
        {
            Ok(_) => Ok(()),
            Err(Error::Refused(why)) if why.contains("can't find session") => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Types text into a tab's active pane, as one bracketed paste where the program asked for it, then
    /// Enter if wanted. Leaves the scroll-back first, which would take the keys for its own. Control
    /// characters other than line breaks and tabs are left out: they are keys, not text, and could end
    /// the paste.
    ///
    /// # Errors
    /// There is no such tab, or tmux can't be reached.
    pub async fn send_text(&self, tab: &TabId, text: &str, enter: bool) -> Result<(), Error> {
        let target = format!("={tab}:");
        let text: String = text
            .chars()
            .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
            .collect();
        self.command(&["copy-mode", "-q", "-t", &target]).await?;
        if !text.is_empty() {
            let buffer = format!("purplemux-{tab}");
            self.command(&["set-buffer", "-b", &buffer, "--", &text])
                .await?;
            self.command(&["paste-buffer", "-p", "-d", "-b", &buffer, "-t", &target])
                .await?;
        }
        if enter {
            self.command(&["send-keys", "-t", &target, "Enter"]).await?;
        }
        Ok(())
    }

    /// Lists the panes once more, for the case that a change of theirs was missed. Never waits: a client
    /// that is too busy to be asked lists them by itself.
    pub fn look_again(&self) {
        drop(self.requests.try_send(client::Request::List));
    }

    /// How to attach a terminal to a tab. The features are those of xterm.js; a tmux that does not know
    /// one of them ignores it.
    #[must_use]
    pub fn attach_command(&self, tab: &TabId) -> Attach {
        let mut arguments: Vec<OsString> = ["-u", "-T", FEATURES].map(OsString::from).into();
        arguments.extend(self.place.arguments());
        arguments.extend(["attach-session", "-E", "-t"].map(OsString::from));
        arguments.push(format!("={tab}").into());
        Attach {
            program: "tmux".into(),
            arguments,
            environment: self.client_environment(),
        }
    }

    /// How to attach a terminal to a pane of a tmux server that is not ours: it must be running, and its
    /// windows keep their size while a terminal of the person's is attached (measured, tmux 3.3a: a client
    /// that is alone counts nevertheless).
    #[must_use]
    pub fn attach_elsewhere(&self, pane: &ForeignPane) -> Attach {
        let mut arguments: Vec<OsString> = ["-u", "-N", "-T", FEATURES, "-S"]
            .map(OsString::from)
            .into();
        arguments.push(pane.socket.clone().into());
        arguments.extend(["attach-session", "-E", "-f", "ignore-size", "-t"].map(OsString::from));
        arguments.push(format!("%{}", pane.pane.pane).into());
        Attach {
            program: "tmux".into(),
            arguments,
            environment: self.client_environment(),
        }
    }

    fn client_environment(&self) -> Vec<(OsString, OsString)> {
        let mut environment = self.place.environment.clone();
        environment.push(("TERM".into(), "xterm-256color".into()));
        environment
    }

    /// Leaves the server alone and closes the control client: a tmux whose control client is not drained
    /// suffers. To be called before the process ends.
    pub async fn close(&self) {
        let (closed, done) = oneshot::channel();
        if self
            .requests
            .send(client::Request::Close { closed })
            .await
            .is_ok()
        {
            // An error means that it is closed already.
            drop(done.await);
        }
    }
}

/// A text for an argument that tmux expands as a format (tmux(1), FORMATS): without this a directory's name
/// could be a command, `#(…)`. `##` stands for one `#`, but for `#`s before a `[`, which are left alone.
fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('#') {
        let (before, from) = rest.split_at(at);
        let after = from.trim_start_matches('#');
        let hashes = &from[..from.len() - after.len()];
        literal.push_str(before);
        literal.push_str(hashes);
        if !after.starts_with('[') {
            literal.push_str(hashes);
        }
        rest = after;
    }
    literal + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_stand_for_themselves() {
        for (text, expanded) in [
            ("/a b", "/a b"),
            ("/#(touch x)#S", "/##(touch x)##S"),
            ("#{pid}##", "##{pid}####"),
            ("/#[bold]#x##[y", "/#[bold]##x##[y"),
            ("/日本#語", "/日本##語"),
        ] {
            assert_eq!(literal(text), expanded);
        }
    }
}
