//! The one control-mode client: brings the server up, writes commands, reads replies in order, and lists
//! the panes whenever something changed. It never stops reading (a control client that is not drained
//! harms the whole server) and comes back by itself when it is dropped.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use purplemux_core::{Time, TmuxServer};
use purplemux_wire::tmux::{Decoder, Message, Notification, PaneFormat, Reply};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{debug, info, warn};

use crate::tmux::{Config, Error, HUB_SESSION, Health, Listing, Place, Run, scope};
use crate::{clock, sys, task};

/// What tmux does not tell by itself (a pane's title, its command, its path) is looked at this often, while
/// there is a pane to look at. 0.8 ms for 50 panes.
const LIST_EVERY: Duration = Duration::from_secs(1);
/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_secs(5);
/// Between two attempts to connect; a dropped connection is back within two seconds.
const RECONNECT: Duration = Duration::from_millis(500);
/// Failures in a row before the person is told.
const FAILURES: u32 = 3;
/// An answer that is this late means that the client hangs: another one is tried.
const HANGS: Duration = Duration::from_secs(15);

/// The first tmux whose clients have flags (`no-output`, `ignore-size`).
const TMUX_SINCE: (u32, u32) = (3, 2);

/// Who a tmux server is, how it was set up and what it runs. The version comes last: it may be any text.
const IDENTITY: &str = "#{pid} #{start_time} #{@purplemux-conf} #{version}";

/// What is asked of the client.
#[derive(Debug)]
pub enum Request {
    /// One command, already quoted.
    Command {
        /// The line with its end.
        line: Vec<u8>,
        /// The only server that it is meant for; on another it is answered with [`Error::Gone`] and not sent.
        only_on: Option<TmuxServer>,
        /// It is not sent at all once this has passed, and is answered with [`Error::Late`].
        not_after: Option<Time>,
        /// Where its output goes.
        answer: oneshot::Sender<Result<Vec<Vec<u8>>, Error>>,
    },
    /// Several commands in one write, so that nothing comes between them: tmux runs what it has read before it
    /// looks at a pane again.
    Together {
        /// The lines, each with its end.
        lines: Vec<Vec<u8>>,
        /// As in a command.
        only_on: TmuxServer,
        /// Where their outputs go, in order.
        answer: oneshot::Sender<Result<Vec<Vec<Vec<u8>>>, Error>>,
    },
    /// List the panes, although nothing says that they have changed.
    List,
    /// List the panes from now on, and say what they are.
    ListNow {
        /// Where the listing goes.
        answer: Listed,
    },
    /// Go away.
    Close {
        /// Rung when it is done.
        closed: oneshot::Sender<()>,
    },
}

/// Where a listing goes that somebody waits for.
type Listed = oneshot::Sender<Result<Arc<Listing>, Error>>;

/// What a reply is for, in the order of the commands.
enum Pending {
    Answer {
        answer: oneshot::Sender<Result<Vec<Vec<u8>>, Error>>,
        until: Time,
    },
    /// One of several commands; `first`: nothing of an earlier several counts any more.
    Part {
        first: bool,
    },
    /// The last of them.
    Whole {
        answer: oneshot::Sender<Result<Vec<Vec<Vec<u8>>>, Error>>,
        until: Time,
    },
    Identity,
    Globals,
    /// With those who wait for it.
    Listing(Vec<Listed>),
    Nothing,
}

/// The client's task, not yet running.
#[derive(Debug)]
pub struct Client {
    config: Config,
    place: Arc<Place>,
    format: PaneFormat,
    publish: watch::Sender<Arc<Listing>>,
    health: watch::Sender<Health>,
    failures: u32,
    /// Starting the server in a scope of its own did not work; it is started without from now on.
    unscoped: bool,
}

/// Why a connection ended.
enum End {
    Closed,
    Lost(String),
    /// It never came about.
    Refused(String),
}

impl Client {
    /// Talks to nobody yet.
    pub fn new(
        config: Config,
        place: Arc<Place>,
        publish: watch::Sender<Arc<Listing>>,
        health: watch::Sender<Health>,
    ) -> Self {
        Self {
            config,
            place,
            format: PaneFormat::new(clock::boot().0),
            publish,
            health,
            failures: 0,
            unscoped: false,
        }
    }

    /// Connects, and connects again, until it is closed or nobody holds a handle any more.
    pub async fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        loop {
            let scope = if self.unscoped {
                None
            } else {
                scope::of(&self.place)
            };
            let why = match self.connect(scope.as_ref()) {
                Ok(connection) => match self.talk(connection, &mut requests).await {
                    End::Closed => return,
                    End::Lost(why) => why,
                    End::Refused(why) => {
                        self.unscoped |= scope.is_some();
                        too_old().await.unwrap_or(why)
                    }
                },
                Err(why) => {
                    self.unscoped |= scope.is_some();
                    why
                }
            };
            self.failed(&why);
            if !self.wait(&why, &mut requests).await {
                return;
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one control client; it is asked instead of starting a process per question"
    )]
    fn connect(&self, scope: Option<&scope::Scope>) -> Result<Connection, String> {
        self.place
            .prepare()
            .map_err(|error| format!("tmux can't be set up: {error:#}"))?;
        let mut words = scope.map(scope::Scope::words).unwrap_or_default();
        words.push("tmux".into());
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .args(["-u"])
            .args(self.place.arguments())
            .args(["-C", "new-session", "-A", "-s", HUB_SESSION])
            .args(["-f", "no-output,ignore-size", "-x", "80", "-y", "24"])
            // A program that waits for ever and costs nothing.
            .args(["-c", "/", "--", "cat"])
            .env_clear()
            .envs(
                self.place
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .env("TERM", "xterm-256color")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        // The tmux server, and with it every shell in a tab, is a child of what is started here.
        let mut child = sys::with_files_before(|| command.spawn()).map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                "tmux is not installed; install it (apt install tmux).".to_owned()
            } else {
                format!("tmux can't be started: {error}")
            }
        })?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("tmux has no pipes".to_owned());
        };
        let now = clock::boot();
        Ok(Connection {
            child,
            input,
            output,
            decoder: Decoder::new(),
            pending: VecDeque::new(),
            greeted: false,
            listing: false,
            list_again: false,
            listeners: Vec::new(),
            parts: Ok(Vec::new()),
            run: None,
            told: false,
            oldest: Some(now),
            check_at: Some(now + ANSWER),
        })
    }

    /// Between two connections: nothing is answered but that there is no tmux. False: closed.
    async fn wait(&self, why: &str, requests: &mut mpsc::Receiver<Request>) -> bool {
        let until = clock::boot() + RECONNECT;
        loop {
            tokio::select! {
                request = requests.recv() => match request {
                    Some(Request::Command { answer, .. }) => {
                        task::answer(answer, Err(Error::Unreachable(why.to_owned())));
                    }
                    Some(Request::Together { answer, .. }) => {
                        task::answer(answer, Err(Error::Unreachable(why.to_owned())));
                    }
                    Some(Request::ListNow { answer }) => {
                        task::answer(answer, Err(Error::Unreachable(why.to_owned())));
                    }
                    // Connecting lists them.
                    Some(Request::List) => {}
                    Some(Request::Close { closed }) => {
                        task::answer(closed, ());
                        return false;
                    }
                    None => return false,
                },
                () = clock::reached(until) => return true,
            }
        }
    }

    async fn talk(
        &mut self,
        mut connection: Connection,
        requests: &mut mpsc::Receiver<Request>,
    ) -> End {
        let mut block = vec![0; 64 * 1024];
        let mut list_at = clock::boot() + LIST_EVERY;
        loop {
            let wake = connection
                .check_at
                .into_iter()
                .chain([list_at])
                .min()
                .unwrap_or(list_at);
            tokio::select! {
                read = connection.output.read(&mut block) => match read {
                    Ok(0) => return connection.lost("tmux has closed the connection"),
                    Ok(n) => {
                        for message in connection.decoder.push(&block[..n]) {
                            if let Err(why) = self.hear(&mut connection, message).await {
                                return connection.lost(&why);
                            }
                        }
                    }
                    Err(error) => return connection.lost(&error.to_string()),
                },
                request = requests.recv(), if connection.run.is_some() => match request {
                    Some(Request::Command { line, only_on, not_after, answer }) => {
                        if only_on.is_some_and(|meant| !connection.is_on(&meant)) {
                            task::answer(answer, Err(Error::Gone));
                            continue;
                        }
                        if not_after.is_some_and(|at| clock::boot() > at) {
                            task::answer(answer, Err(Error::Late));
                            continue;
                        }
                        let until = clock::boot() + ANSWER;
                        let pending = Pending::Answer { answer, until };
                        if let Err(why) = connection.write(&line, pending).await {
                            return connection.lost(&why);
                        }
                    }
                    Some(Request::Together { lines, only_on, answer }) => {
                        if !connection.is_on(&only_on) {
                            task::answer(answer, Err(Error::Gone));
                            continue;
                        }
                        if let Err(why) = connection.write_together(&lines, answer).await {
                            return connection.lost(&why);
                        }
                    }
                    Some(Request::ListNow { answer }) => {
                        connection.listeners.push(answer);
                        if let Err(why) = self.list(&mut connection).await {
                            return connection.lost(&why);
                        }
                    }
                    Some(Request::List) => {
                        if let Err(why) = self.list(&mut connection).await {
                            return connection.lost(&why);
                        }
                    }
                    Some(Request::Close { closed }) => {
                        connection.leave().await;
                        task::answer(closed, ());
                        return End::Closed;
                    }
                    None => {
                        connection.leave().await;
                        return End::Closed;
                    }
                },
                () = clock::reached(wake) => {
                    if let Some(late) = connection.give_up_late() {
                        self.failed("tmux does not answer");
                        if late > HANGS {
                            return connection.lost("tmux does not answer");
                        }
                    }
                    if list_at <= clock::boot() {
                        list_at = clock::boot() + LIST_EVERY;
                        let panes = !self.publish.borrow().panes.is_empty();
                        if panes && let Err(why) = self.list(&mut connection).await {
                            return connection.lost(&why);
                        }
                    }
                }
            }
        }
    }

    async fn hear(&mut self, connection: &mut Connection, message: Message) -> Result<(), String> {
        match message {
            Message::Reply(reply) if !connection.greeted => self.greet(connection, &reply).await,
            Message::Reply(reply) => self.answer(connection, reply).await,
            Message::Notification(notification) => match notification {
                Notification::SessionsChanged
                | Notification::SessionRenamed
                | Notification::WindowsChanged
                | Notification::LayoutChanged
                | Notification::ActiveChanged
                | Notification::PaneModeChanged
                | Notification::SessionChanged => self.list(connection).await,
                Notification::Exit { reason } => {
                    Err(reason.unwrap_or_else(|| "tmux let us go".to_owned()))
                }
                Notification::Output { .. }
                | Notification::Subscription { .. }
                | Notification::Other { .. } => Ok(()),
            },
        }
    }

    /// The first block answers the command line itself: the session was made or attached to.
    async fn greet(&mut self, connection: &mut Connection, reply: &Reply) -> Result<(), String> {
        if !reply.ok {
            return Err(format!("tmux: {}", text(reply)));
        }
        connection.greeted = true;
        connection.restart_timeout();
        let ask = |arguments: &[&str]| {
            purplemux_wire::tmux::command(arguments).map_err(|error| error.to_string())
        };
        let identity = ask(&["display-message", "-p", IDENTITY])?;
        connection.write(&identity, Pending::Identity).await?;
        let globals = ask(&["show-environment", "-g"])?;
        connection.write(&globals, Pending::Globals).await
    }

    async fn answer(&mut self, connection: &mut Connection, reply: Reply) -> Result<(), String> {
        if !reply.ours {
            return Ok(());
        }
        let Some(pending) = connection.pending.pop_front() else {
            return Err("tmux answered what nobody asked".to_owned());
        };
        connection.restart_timeout();
        match pending {
            Pending::Answer { answer, .. } => {
                self.succeeded();
                let result = if reply.ok {
                    Ok(reply.lines)
                } else {
                    Err(Error::Refused(text(&reply)))
                };
                task::answer(answer, result);
                Ok(())
            }
            Pending::Part { first } => {
                connection.take_part(first, reply);
                Ok(())
            }
            Pending::Whole { answer, .. } => {
                self.succeeded();
                connection.take_part(false, reply);
                let parts = std::mem::replace(&mut connection.parts, Ok(Vec::new()));
                task::answer(answer, parts);
                Ok(())
            }
            Pending::Identity => {
                let said = text(&reply);
                let words: Vec<&str> = said.trim().splitn(4, ' ').collect();
                let [pid, since, set_up, version] = words[..] else {
                    return Err(format!("tmux does not say who it is: {said}"));
                };
                let pid: u32 = pid
                    .parse()
                    .map_err(|_| "tmux does not say its process id".to_owned())?;
                let start = sys::stat(pid)
                    .ok_or_else(|| format!("tmux names process {pid}, which is not there"))?
                    .start;
                info!(
                    "tmux {version}, process {pid}, at {}",
                    self.place.socket().display()
                );
                let server = TmuxServer {
                    host: self.config.host.clone(),
                    pid,
                    start,
                };
                let run = Some(Run {
                    server,
                    since: since.to_owned(),
                    version: version.to_owned(),
                });
                connection.run.clone_from(&run);
                // Before any command of ours is answered it is known who answers.
                self.publish.send_if_modified(|shown| {
                    if shown.run != run {
                        let panes = Vec::new();
                        *shown = Arc::new(Listing { run, panes });
                    }
                    false
                });
                if set_up != self.place.set_up() {
                    // Somebody else has started it, or a purplemux with other settings has.
                    task::spawn("tmux settings", set_up_again(Arc::clone(&self.place)));
                }
                self.list(connection).await
            }
            Pending::Globals => self.set_globals(connection, &reply).await,
            Pending::Listing(listeners) => {
                connection.listing = false;
                let listed = self.listed(connection, &reply);
                for listener in listeners {
                    task::answer(listener, listed.clone());
                }
                if std::mem::take(&mut connection.list_again) {
                    self.list(connection).await?;
                }
                Ok(())
            }
            Pending::Nothing => Ok(()),
        }
    }

    /// A server that outlived us was started with another environment: new tabs get ours.
    async fn set_globals(
        &mut self,
        connection: &mut Connection,
        reply: &Reply,
    ) -> Result<(), String> {
        let wanted: Vec<(String, String)> = self
            .place
            .environment
            .iter()
            .filter_map(|(name, value)| {
                Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
            })
            .collect();
        let there: Vec<String> = reply
            .lines
            .iter()
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        let mut commands: Vec<Vec<&str>> = Vec::new();
        for line in &there {
            let name = line.split('=').next().unwrap_or(line);
            let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            // A line without a name belongs to a value with line breaks.
            if plain && line.contains('=') && !wanted.iter().any(|(kept, _)| kept == name) {
                commands.push(vec!["set-environment", "-g", "-u", name]);
            }
        }
        for (name, value) in &wanted {
            if !there.iter().any(|line| *line == format!("{name}={value}")) {
                commands.push(vec!["set-environment", "-g", name, value]);
            }
        }
        for command in commands {
            let line =
                purplemux_wire::tmux::command(&command).map_err(|error| error.to_string())?;
            connection.write(&line, Pending::Nothing).await?;
        }
        Ok(())
    }

    async fn list(&mut self, connection: &mut Connection) -> Result<(), String> {
        if connection.run.is_none() {
            return Ok(());
        }
        if connection.listing {
            // What is on its way may have been listed before the change.
            connection.list_again = true;
            return Ok(());
        }
        let format = self.format.format();
        let line = purplemux_wire::tmux::command(&["list-panes", "-a", "-F", &format])
            .map_err(|error| error.to_string())?;
        connection.listing = true;
        let listeners = std::mem::take(&mut connection.listeners);
        connection.write(&line, Pending::Listing(listeners)).await
    }

    fn listed(
        &mut self,
        connection: &mut Connection,
        reply: &Reply,
    ) -> Result<Arc<Listing>, Error> {
        if !reply.ok || reply.cut {
            self.failed(&text(reply));
            return Err(Error::Refused(text(reply)));
        }
        let panes = match self.format.parse(&reply.lines) {
            Ok(panes) => panes,
            Err(error) => {
                self.failed(&error.to_string());
                return Err(Error::Unreachable(error.to_string()));
            }
        };
        self.succeeded();
        let panes = panes
            .into_iter()
            .filter(|pane| pane.session.as_ref() != HUB_SESSION)
            .collect();
        let listing = Arc::new(Listing {
            run: connection.run.clone(),
            panes,
        });
        // The first listing of a connection is always told: it may be the one that says "no panes".
        let first = !std::mem::replace(&mut connection.told, true);
        self.publish.send_if_modified(|shown| {
            let changed = first || *shown != listing;
            if changed {
                *shown = Arc::clone(&listing);
            }
            changed
        });
        Ok(listing)
    }

    fn failed(&mut self, why: &str) {
        self.failures += 1;
        if self.failures <= FAILURES {
            warn!("tmux: {why}");
        }
        if self.failures >= FAILURES {
            let why = why.to_owned();
            self.health.send_if_modified(|health| {
                let silent = Health::Silent(why);
                let changed = *health != silent;
                *health = silent;
                changed
            });
        }
    }

    fn succeeded(&mut self) {
        self.failures = 0;
        self.health.send_if_modified(|health| {
            let changed = *health != Health::Fine;
            *health = Health::Fine;
            changed
        });
    }
}

struct Connection {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    decoder: Decoder,
    pending: VecDeque<Pending>,
    greeted: bool,
    listing: bool,
    list_again: bool,
    /// Those who wait for the next listing that is asked for.
    listeners: Vec<Listed>,
    /// What was answered so far to several commands.
    parts: Result<Vec<Vec<Vec<u8>>>, Error>,
    /// Who answers; until that is known nothing else is asked.
    run: Option<Run>,
    /// Its panes have been published once.
    told: bool,
    /// Since when the oldest command (or the greeting) waits for its answer.
    oldest: Option<Time>,
    /// When to see whether it waits too long.
    check_at: Option<Time>,
}

impl Connection {
    fn is_on(&self, server: &TmuxServer) -> bool {
        self.run.as_ref().is_some_and(|run| run.server == *server)
    }

    async fn write(&mut self, line: &[u8], pending: Pending) -> Result<(), String> {
        self.pending.push_back(pending);
        if self.oldest.is_none() {
            self.restart_timeout();
        }
        self.input
            .write_all(line)
            .await
            .map_err(|error| format!("tmux: {error}"))
    }

    async fn write_together(
        &mut self,
        lines: &[Vec<u8>],
        answer: oneshot::Sender<Result<Vec<Vec<Vec<u8>>>, Error>>,
    ) -> Result<(), String> {
        for number in 1..lines.len() {
            self.pending.push_back(Pending::Part { first: number == 1 });
        }
        let until = clock::boot() + ANSWER;
        let whole = Pending::Whole { answer, until };
        self.write(&lines.concat(), whole).await
    }

    fn take_part(&mut self, first: bool, reply: Reply) {
        if first {
            self.parts = Ok(Vec::new());
        }
        match &mut self.parts {
            Ok(parts) if reply.ok => parts.push(reply.lines),
            Ok(_) => self.parts = Err(Error::Refused(text(&reply))),
            Err(_) => {}
        }
    }

    /// The next answer may take its full time; with nothing to wait for there is no time.
    fn restart_timeout(&mut self) {
        self.oldest = (!self.pending.is_empty()).then(clock::boot);
        self.check_at = self.oldest.map(|oldest| oldest + ANSWER);
    }

    /// Answers those who have waited too long; how long the oldest command has waited, if too long.
    fn give_up_late(&mut self) -> Option<Duration> {
        let now = clock::boot();
        let silent = || Error::Unreachable("it is silent".to_owned());
        for pending in &mut self.pending {
            match pending {
                Pending::Answer { until, .. } if *until <= now => {
                    if let Pending::Answer { answer, .. } =
                        std::mem::replace(pending, Pending::Nothing)
                    {
                        task::answer(answer, Err(silent()));
                    }
                }
                Pending::Whole { until, .. } if *until <= now => {
                    if let Pending::Whole { answer, .. } =
                        std::mem::replace(pending, Pending::Nothing)
                    {
                        task::answer(answer, Err(silent()));
                    }
                }
                Pending::Answer { .. }
                | Pending::Part { .. }
                | Pending::Whole { .. }
                | Pending::Identity
                | Pending::Globals
                | Pending::Listing(_)
                | Pending::Nothing => {}
            }
        }
        // Whoever waits for a listing waits no longer than for anything else.
        if self.check_at.is_some_and(|at| at <= now) {
            let waiting = self.pending.iter_mut().filter_map(|pending| match pending {
                Pending::Listing(listeners) => Some(std::mem::take(listeners)),
                Pending::Answer { .. }
                | Pending::Part { .. }
                | Pending::Whole { .. }
                | Pending::Identity
                | Pending::Globals
                | Pending::Nothing => None,
            });
            for listener in waiting.flatten().chain(self.listeners.drain(..)) {
                task::answer(listener, Err(silent()));
            }
        }
        if self.check_at.is_none_or(|at| at > now) {
            return None;
        }
        self.check_at = Some(now + ANSWER);
        Some(now.since(self.oldest?))
    }

    fn lost(mut self, why: &str) -> End {
        let lost = || Error::Unreachable(why.to_owned());
        for pending in self.pending.drain(..) {
            match pending {
                Pending::Answer { answer, .. } => task::answer(answer, Err(lost())),
                Pending::Whole { answer, .. } => task::answer(answer, Err(lost())),
                Pending::Listing(listeners) => self.listeners.extend(listeners),
                Pending::Part { .. } | Pending::Identity | Pending::Globals | Pending::Nothing => {}
            }
        }
        for listener in self.listeners.drain(..) {
            task::answer(listener, Err(lost()));
        }
        // Only our own client; the server and its tabs live on.
        if let Err(error) = self.child.start_kill() {
            debug!("the control client: {error}");
        }
        if self.greeted {
            End::Lost(why.to_owned())
        } else {
            End::Refused(why.to_owned())
        }
    }

    /// An end of input lets a control client go; its exit is waited for, so that none is left undrained.
    async fn leave(self) {
        let Self {
            mut child,
            input,
            mut output,
            ..
        } = self;
        drop(input);
        let mut rest = Vec::new();
        let drained = async {
            output.read_to_end(&mut rest).await?;
            child.wait().await
        };
        match tokio::time::timeout(Duration::from_secs(1), drained).await {
            Ok(Ok(status)) => debug!("the control client has left: {status}"),
            Ok(Err(error)) => debug!("the control client: {error}"),
            Err(_) => {
                if let Err(error) = child.kill().await {
                    debug!("the control client: {error}");
                }
            }
        }
    }
}

/// Sets a server up that was started without our configuration. Not over the control client: each command of the
/// file would be answered there as if we had asked it (measured, 3.3a).
#[expect(
    clippy::disallowed_methods,
    reason = "once for a server that somebody else has started"
)]
async fn set_up_again(place: Arc<Place>) {
    let status = Command::new("tmux")
        .args(["-N", "-S"])
        .arg(place.socket())
        .arg("source-file")
        .arg(place.configuration())
        .env_clear()
        .envs(place.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .status();
    match tokio::time::timeout(ANSWER, status).await {
        Ok(Ok(status)) if status.success() => info!("tmux has our settings from now on"),
        Ok(Ok(status)) => warn!("tmux does not take our settings: {status}"),
        Ok(Err(error)) => warn!("tmux does not take our settings: {error}"),
        Err(_) => warn!("tmux does not take our settings in time"),
    }
}

/// A tmux that does not know our options says so only in a usage text; its version says it better.
#[allow(
    clippy::disallowed_methods,
    reason = "only after tmux has refused to start, to say why"
)]
async fn too_old() -> Option<String> {
    let output = Command::new("tmux")
        .arg("-V")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(ANSWER, output).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.trim().strip_prefix("tmux ")?;
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse::<u32>().ok());
    let found = (numbers.next()?, numbers.next().unwrap_or(0));
    (found < TMUX_SINCE).then(|| {
        let (major, minor) = TMUX_SINCE;
        format!("tmux {major}.{minor} or newer is needed; {version} is installed")
    })
}

fn text(reply: &Reply) -> String {
    let lines: Vec<String> = reply
        .lines
        .iter()
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    lines.join(" ")
}
