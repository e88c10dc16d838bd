//! Our own tmux server: brought up with our own configuration and a clean environment, asked over one
//! control-mode client. It must never touch another tmux server, never resize a window and never kill
//! what it did not start.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use purplemux_core::{HostId, PaneKey, TabId, Time, TmuxServer};
use purplemux_wire::sentence::Cause;
use purplemux_wire::tmux::{Belongs, HIDDEN, PaneLine, TAB_OPTION};
use thiserror::Error;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::home::random_hex;
use crate::ingest::process::ForeignPane;
use crate::{hooks, task};

mod client;
mod place;
mod program;
mod scope;
mod typed;

pub mod environment;

pub use place::Place;
pub use typed::Typed;

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
    #[error("tmux does not answer ({0}).")]
    Unreachable(String),
    /// What was meant is no more: another tmux server runs now, or this one has no such session.
    #[error("The shell in this tab has ended.")]
    Gone,
    /// Its pane does not take text now.
    #[error("{0}")]
    Deaf(Cause),
    /// It could not be sent before the moment after which it was not to be sent any more.
    #[error("tmux was too busy.")]
    Late,
}

impl From<Error> for Cause {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(detail) => Self::TmuxRefused { detail },
            Error::Unreachable(detail) => Self::TmuxSilent { detail },
            Error::Gone => Self::ShellEnded,
            Error::Deaf(why) => why,
            Error::Late => Self::TmuxBusy,
        }
    }
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

/// One run of a tmux server on our socket, from its start to its end. Whatever comes after it is another, with
/// other sessions under the same names and numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its process.
    pub server: TmuxServer,
    /// When it started, as tmux says it (`#{start_time}`): what a client can be made to compare before it does
    /// anything.
    pub since: String,
    /// The version it runs, whatever is installed by now.
    pub version: String,
}

/// The panes of our server, all but the hub's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The server they are on; `None` until it has answered once.
    pub run: Option<Run>,
    /// All panes of all sessions. One that several sessions share comes once for each.
    pub panes: Vec<PaneLine>,
}

impl Listing {
    /// Its server's process.
    #[must_use]
    pub fn server(&self) -> Option<&TmuxServer> {
        self.run.as_ref().map(|run| &run.server)
    }

    /// The session that is this tab.
    #[must_use]
    pub fn session_of(&self, tab: &str) -> Option<Session> {
        let pane = self.panes.iter().find(|pane| pane.is_of(tab))?;
        Some(Session {
            run: self.run.clone()?,
            id: pane.session_id,
        })
    }

    /// Sessions of others that are no tab yet: each once, with the directory of its active pane.
    #[must_use]
    pub fn strangers(&self) -> Vec<&PaneLine> {
        let mut found: Vec<&PaneLine> = Vec::new();
        for pane in &self.panes {
            if pane.belongs != Belongs::Nobody {
                continue;
            }
            match found
                .iter_mut()
                .find(|other| other.session_id == pane.session_id)
            {
                Some(other) if pane.active => *other = pane,
                Some(_) => {}
                None => found.push(pane),
            }
        }
        found
    }
}

/// One session: tmux's number for it, which is never used again in the same run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The run it is in.
    pub run: Run,
    /// The number behind `$`.
    pub id: u32,
}

impl Session {
    /// As a target for a session; exact, whatever the session is called.
    #[must_use]
    pub fn target(&self) -> String {
        format!("${}", self.id)
    }

    /// As a target for its active pane.
    #[must_use]
    pub fn pane(&self) -> String {
        format!("${}:", self.id)
    }
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
    outdated: watch::Receiver<Option<Cause>>,
    look_at_program: Arc<Notify>,
    place: Arc<Place>,
    typed: Typed,
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
        let look_at_program = Arc::new(Notify::new());
        let (say, outdated) = watch::channel(None);
        task::spawn(
            "tmux program",
            program::watch(
                Arc::clone(&place),
                listing.clone(),
                Arc::clone(&look_at_program),
                say,
            ),
        );
        Self {
            requests,
            listing,
            health,
            outdated,
            look_at_program,
            place,
            typed: Typed::default(),
        }
    }

    /// Of no server at all, for a test of something else.
    #[cfg(test)]
    pub fn nowhere() -> Self {
        let (requests, _) = mpsc::channel(1);
        let (_, listing) = watch::channel(Arc::new(Listing::default()));
        let (_, health) = watch::channel(Health::Fine);
        let (_, outdated) = watch::channel(None);
        Self {
            requests,
            listing,
            health,
            outdated,
            look_at_program: Arc::new(Notify::new()),
            place: Arc::new(Place::of(Path::new("/nowhere"))),
            typed: Typed::default(),
        }
    }

    /// When the person last typed in terminals of ours.
    #[must_use]
    pub fn typed(&self) -> &Typed {
        &self.typed
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

    /// A sentence while the tmux that runs is not the one that is installed any more.
    #[must_use]
    pub fn outdated(&self) -> watch::Receiver<Option<Cause>> {
        self.outdated.clone()
    }

    /// Waits for the server, which is started if it does not run, and lists its panes as they are now.
    ///
    /// # Errors
    /// It can't be started, or does not answer.
    pub async fn list_now(&self) -> Result<Arc<Listing>, Error> {
        let (answer, answered) = oneshot::channel();
        self.requests
            .send(client::Request::ListNow { answer })
            .await
            .map_err(|_| stopping())?;
        answered.await.map_err(|_| stopping())?
    }

    /// The session that is this tab, as tmux has it now.
    ///
    /// # Errors
    /// [`Error::Gone`] if there is none; tmux can't be reached.
    pub async fn session(&self, tab: &TabId) -> Result<Session, Error> {
        let listing = match self.list_now().await {
            Ok(listing) => listing,
            // What was last known names the very session or nothing at all.
            Err(error) => {
                let known = self.listing.borrow().session_of(tab.as_str());
                return known.ok_or(error);
            }
        };
        listing.session_of(tab.as_str()).ok_or(Error::Gone)
    }

    /// Runs one tmux command over the control client and returns its output lines. Arguments are passed
    /// as they are: no quoting needed. A line that is no UTF-8 is made so.
    ///
    /// # Errors
    /// tmux refuses it, or can't be reached within five seconds.
    pub async fn command(&self, arguments: &[&str]) -> Result<Vec<String>, Error> {
        self.ask(None, None, arguments).await
    }

    /// As [`Self::command`], and only in that run of the server: what the numbers in `arguments` name in the
    /// next one is another's.
    ///
    /// # Errors
    /// As there, and [`Error::Gone`] if that run is over.
    pub async fn command_in(&self, run: &Run, arguments: &[&str]) -> Result<Vec<String>, Error> {
        self.ask(Some(run.server.clone()), None, arguments).await
    }

    /// As [`Self::command_in`], and only if it can be written to tmux before that moment.
    ///
    /// # Errors
    /// As there, and [`Error::Late`]: then nothing was sent.
    pub async fn command_before(
        &self,
        run: &Run,
        not_after: Time,
        arguments: &[&str],
    ) -> Result<Vec<String>, Error> {
        self.ask(Some(run.server.clone()), Some(not_after), arguments)
            .await
    }

    /// Runs several commands in that run of the server, in one round trip: what they say, they say of one and the
    /// same moment.
    ///
    /// # Errors
    /// As [`Self::command_in`], with the first command's that fails.
    pub async fn together(
        &self,
        run: &Run,
        commands: &[&[&str]],
    ) -> Result<Vec<Vec<String>>, Error> {
        let lines: Result<Vec<_>, _> = commands
            .iter()
            .map(|arguments| purplemux_wire::tmux::command(arguments))
            .collect();
        let lines = lines.map_err(|error| Error::Refused(error.to_string()))?;
        let (answer, answered) = oneshot::channel();
        self.requests
            .send(client::Request::Together {
                lines,
                only_on: run.server.clone(),
                answer,
            })
            .await
            .map_err(|_| stopping())?;
        let parts = answered.await.map_err(|_| stopping())??;
        Ok(parts.iter().map(|lines| readable(lines)).collect())
    }

    async fn ask(
        &self,
        only_on: Option<TmuxServer>,
        not_after: Option<Time>,
        arguments: &[&str],
    ) -> Result<Vec<String>, Error> {
        let line = purplemux_wire::tmux::command(arguments)
            .map_err(|error| Error::Refused(error.to_string()))?;
        let (answer, answered) = oneshot::channel();
        self.requests
            .send(client::Request::Command {
                line,
                only_on,
                not_after,
                answer,
            })
            .await
            .map_err(|_| stopping())?;
        let lines = answered.await.map_err(|_| stopping())??;
        Ok(readable(&lines))
    }

    /// Makes the tmux session of a tab, detached, and marks it as that tab's. `environment` is added to the
    /// clean one; an empty `command` is the person's login shell with our shell integration.
    ///
    /// # Errors
    /// `cwd` is no UTF-8, tmux can't start it, or can't be reached.
    pub async fn new_session(
        &self,
        tab: &TabId,
        cwd: &Path,
        environment: &[(String, String)],
        command: &[String],
    ) -> Result<(), Error> {
        let run = self.list_now().await?.run.clone();
        let run = run.ok_or_else(|| Error::Unreachable("tmux does not say who it is.".into()))?;
        let make = async |name: &str| {
            self.new_session_named(&run, name, cwd, environment, command)
                .await
        };
        let id = match make(tab.as_str()).await {
            // Somebody has made a session of that name, which is theirs.
            Err(Error::Refused(why)) if why.contains("duplicate session") => {
                make(&format!("{tab}-{}", random_hex::<2>())).await?
            }
            made => made?,
        };
        self.mark(&Session { run, id }, tab.as_str()).await
    }

    /// The number of the session that was made.
    async fn new_session_named(
        &self,
        run: &Run,
        name: &str,
        cwd: &Path,
        environment: &[(String, String)],
        command: &[String],
    ) -> Result<u32, Error> {
        let shell = hooks::shell::launch(&self.place.home, &environment::shell());
        let cwd = cwd.to_str().ok_or_else(|| {
            Error::Refused(format!("{} has a name that is no UTF-8", cwd.display()))
        })?;
        let cwd = literal(cwd);
        let mut arguments = vec!["new-session", "-d", "-P", "-F", "#{session_id}"];
        arguments.extend(["-s", name, "-c", &cwd]);
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
        let made = self.command_in(run, &arguments).await?;
        let id = made.first().and_then(|id| id.strip_prefix('$'));
        id.and_then(|id| id.parse().ok())
            .ok_or_else(|| Error::Refused("tmux does not say which session it made".into()))
    }

    /// Marks a session of somebody else's as this tab.
    ///
    /// # Errors
    /// It has ended, or tmux can't be reached.
    pub async fn adopt(&self, session: &Session, tab: &TabId) -> Result<(), Error> {
        self.mark(session, tab.as_str()).await
    }

    /// Lets a session of somebody else's be no tab any more; it lives on as it is.
    ///
    /// # Errors
    /// It has ended, or tmux can't be reached.
    pub async fn hide(&self, session: &Session) -> Result<(), Error> {
        self.mark(session, HIDDEN).await
    }

    async fn mark(&self, session: &Session, mark: &str) -> Result<(), Error> {
        let arguments = ["set-option", "-t", &session.target(), TAB_OPTION, mark];
        self.command_in(&session.run, &arguments).await?;
        // tmux tells nobody about an option.
        self.look_again();
        Ok(())
    }

    /// Ends a session with everything in it. `Ok` also if it had ended already.
    ///
    /// # Errors
    /// tmux can't be reached.
    pub async fn kill_session(&self, session: &Session) -> Result<(), Error> {
        let arguments = ["kill-session", "-t", &session.target()];
        match self.command_in(&session.run, &arguments).await {
            Ok(_) | Err(Error::Gone) => Ok(()),
            Err(Error::Refused(why)) if why.contains("can't find session") => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Types text into a tab's active pane, as one bracketed paste where the program asked for it, then
    /// Enter if wanted. Leaves the scroll-back and tmux's menus first, which would take the keys for their own.
    /// Control characters other than line breaks and tabs are left out: they are keys, not text, and could end
    /// the paste.
    ///
    /// # Errors
    /// [`Error::Gone`] if the tab has ended, [`Error::Deaf`] if its pane does not take text; tmux can't be
    /// reached.
    pub async fn send_text(
        &self,
        tab: &TabId,
        agent: Option<&PaneKey>,
        text: &str,
        enter: bool,
    ) -> Result<(), Error> {
        let listing = self.list_now().await?;
        let session = listing.session_of(tab.as_str()).ok_or(Error::Gone)?;
        let run = &session.run;
        let text: String = text
            .chars()
            .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
            .collect();
        let of_agent = agent.filter(|key| {
            let mut panes = listing.panes.iter();
            key.server == run.server
                && panes.any(|pane| pane.pane == key.pane && pane.is_of(tab.as_str()))
        });
        let target = match of_agent {
            Some(key) => format!("%{}", key.pane),
            None => session.pane(),
        };
        let arguments = ["display-message", "-p", "-t", &target, "#{pane_id}"];
        let pane = self.command_in(run, &arguments).await?;
        // From here on this very pane, whichever becomes the active one.
        let pane = pane.first().ok_or(Error::Gone)?;
        self.command_in(run, &["copy-mode", "-q", "-t", pane])
            .await?;
        let question = "#{pane_dead} #{pane_in_mode} #{pane_input_off}";
        let state = self
            .command_in(run, &["display-message", "-p", "-t", pane, question])
            .await?;
        let state: Vec<&str> = state
            .first()
            .map(|line| line.split(' ').collect())
            .unwrap_or_default();
        if let Some(why) = deaf(&state) {
            return Err(Error::Deaf(why));
        }
        if !text.is_empty() {
            let buffer = format!("purplemux-{tab}");
            self.command_in(run, &["set-buffer", "-b", &buffer, "--", &text])
                .await?;
            self.command_in(
                run,
                &["paste-buffer", "-p", "-d", "-b", &buffer, "-t", pane],
            )
            .await?;
        }
        if enter {
            self.command_in(run, &["send-keys", "-t", pane, "Enter"])
                .await?;
        }
        Ok(())
    }

    /// Lists the panes once more, for the case that a change of theirs was missed. Never waits: a client
    /// that is too busy to be asked lists them by itself.
    pub fn look_again(&self) {
        drop(self.requests.try_send(client::Request::List));
    }

    /// Looks whether another tmux has been installed meanwhile.
    pub fn look_at_program(&self) {
        self.look_at_program.notify_one();
    }

    /// How to attach a terminal to a session of ours. The features are those of xterm.js; a tmux that does not
    /// know one of them ignores it. The client itself makes sure that it has reached the run that is meant, and
    /// leaves at once if not: between our question and its start the server may have been another's.
    #[must_use]
    pub fn attach_command(&self, session: &Session) -> Attach {
        let mut arguments: Vec<OsString> = ["-u", "-N", "-T", FEATURES].map(OsString::from).into();
        arguments.extend(self.place.arguments());
        let Run { server, since, .. } = &session.run;
        let meant = format!(
            "#{{&&:#{{==:#{{pid}},{}}},#{{==:#{{start_time}},{since}}}}}",
            server.pid
        );
        let attach = format!("attach-session -E -t '${}'", session.id);
        arguments.extend(["if-shell", "-F", &meant, &attach].map(OsString::from));
        self.look_at_program();
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

fn readable(lines: &[Vec<u8>]) -> Vec<String> {
    lines
        .iter()
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect()
}

fn stopping() -> Error {
    Error::Unreachable("purplemux is stopping".to_owned())
}

/// Why a pane that says this of itself (dead, in a mode, input off) takes no text.
fn deaf(state: &[&str]) -> Option<Cause> {
    match state {
        ["1", ..] => Some(Cause::ProgramExited),
        [_, "0" | "", "1", ..] => Some(Cause::InputOff),
        [_, "0" | "", ..] => None,
        _ => Some(Cause::ScrolledBack),
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
    fn a_pane_that_takes_no_text_says_why() {
        assert_eq!(deaf(&["0", "0", "0"]), None);
        assert_eq!(deaf(&["0", "0"]), None, "a tmux that knows no input_off");
        for (state, why) in [
            (["1", "0", "0"], "has exited"),
            (["0", "1", "0"], "scrolled back"),
            (["0", "0", "1"], "switched off"),
        ] {
            assert!(
                deaf(&state).is_some_and(|said| said.to_string().contains(why)),
                "{why}"
            );
        }
        assert!(deaf(&[]).is_some(), "tmux says nothing");
    }

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
