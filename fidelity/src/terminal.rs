//! A tab's terminal through a control-mode client of our own, attached as a person's terminal would be: keys into
//! it, and its screen looked at fifty times a second, so that what a person could see is known with its moment.
//!
//! Must never ask purplemux anything, and never talk to a tmux server that it was not told the socket of.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use purplemux_lab::clock::{until, wall_ns};

use crate::heard::{Aim, Key, Seen};
use crate::screen::{self, Class, Look};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// The window, large enough for every dialog and menu with the spinner above it.
const SIZE: &str = "110x60";

/// tmux answers in under a millisecond; a machine under load gets this long.
const ANSWER: Duration = Duration::from_secs(10);

/// How long a line is waited for before Enter is pressed on it.
const ECHO: Duration = Duration::from_secs(20);

/// How many screens are kept for somebody who wants to see what was seen.
const SCREENS_MAX: usize = 400;

/// A terminal, watched until dropped.
pub struct Terminal {
    shared: Arc<Shared>,
    watcher: Option<thread::JoinHandle<()>>,
}

struct Shared {
    client: Mutex<Client>,
    target: String,
    state: Mutex<State>,
    grown: Condvar,
    stop: AtomicBool,
}

#[derive(Default)]
struct State {
    latest: Option<Picture>,
    seen: Vec<Seen>,
    screens: Vec<(i64, String)>,
    keys: Vec<Key>,
    lost: Option<String>,
}

/// One capture.
#[derive(Clone, Debug)]
pub struct Picture {
    /// When it had been taken.
    pub at: i64,
    /// What it shows, as committed: two captures in a row agree.
    pub look: Look,
    /// The text.
    pub screen: String,
}

impl Terminal {
    /// Attaches to the session of this name on the tmux server behind `socket`.
    pub fn attach(socket: &Path, session: &str) -> Result<Self> {
        let mut client = Client::start(socket, session)?;
        client.ask(&[&format!("refresh-client -C {SIZE}")])?;
        let shared = Arc::new(Shared {
            client: Mutex::new(client),
            target: format!("'={session}:'"),
            state: Mutex::default(),
            grown: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let state = Arc::clone(&shared);
        let watcher = thread::Builder::new()
            .name("terminal".into())
            .spawn(move || state.watch())?;
        Ok(Self {
            shared,
            watcher: Some(watcher),
        })
    }

    /// Presses keys by tmux's names for them.
    pub fn press(&self, keys: &str, aim: Aim) -> Result<i64> {
        let target = &self.shared.target;
        let mut client = self.shared.client();
        let at = wall_ns();
        self.shared.state().keys.push(Key { at, aim });
        client.ask(&[&format!("send-keys -t {target} {keys}")])?;
        Ok(at)
    }

    /// Takes down something that was done to the Claude in here without a key.
    pub fn note(&self, aim: Aim) -> i64 {
        let at = wall_ns();
        self.shared.state().keys.push(Key { at, aim });
        at
    }

    /// Types a line of ASCII and presses Enter once it stands on the screen: Claude takes an Enter that comes with
    /// the text for a part of it.
    pub fn enter(&self, line: &str, aim: Aim) -> Result<i64> {
        let hex: Vec<String> = line.bytes().map(|byte| format!("{byte:02x}")).collect();
        let target = &self.shared.target;
        let command = format!("send-keys -t {target} -H {}", hex.join(" "));
        self.shared.client().ask(&[&command])?;
        let tail = squeeze(&line[line.len().saturating_sub(24)..]);
        let there = self.wait(ECHO, |picture| squeeze(&picture.screen).contains(&tail));
        ensure!(there, "{line:?} was typed and never stood on the screen");
        self.press("Enter", aim)
    }

    /// Waits until a capture fits; `false` after `deadline`.
    pub fn wait(&self, deadline: Duration, mut fits: impl FnMut(&Picture) -> bool) -> bool {
        let end = Instant::now() + deadline;
        let mut state = self.shared.state();
        loop {
            if state.latest.as_ref().is_some_and(&mut fits) {
                return true;
            }
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                return false;
            };
            if state.lost.is_some() {
                return false;
            }
            state = self
                .shared
                .grown
                .wait_timeout(state, left)
                .expect("no holder of the state panics")
                .0;
        }
    }

    /// Waits for a class of look.
    pub fn wait_class(&self, deadline: Duration, fits: impl Fn(Class) -> bool) -> bool {
        self.wait(deadline, |picture| fits(picture.look.class))
    }

    /// Waits until the screen has shown the same class for `still`.
    pub fn wait_still(
        &self,
        deadline: Duration,
        still: Duration,
        fits: impl Fn(Class) -> bool,
    ) -> bool {
        let still = i64::try_from(still.as_nanos()).unwrap_or(i64::MAX);
        until(deadline, || {
            let state = self.shared.state();
            let picture = state.latest.as_ref()?;
            let since = state.seen.last()?.at;
            (fits(picture.look.class) && picture.at - since >= still).then_some(())
        })
        .is_some()
    }

    /// The newest capture.
    pub fn picture(&self) -> Option<Picture> {
        self.shared.state().latest.clone()
    }

    /// What it shows now.
    pub fn class(&self) -> Class {
        let state = self.shared.state();
        let latest = state.latest.as_ref();
        latest.map_or(Class::Blank, |picture| picture.look.class)
    }

    /// The process that the pane was made with.
    pub fn pane_pid(&self) -> Result<i32> {
        let target = &self.shared.target;
        let command = format!("display-message -p -t {target} '#{{pane_pid}}'");
        let answer = self.shared.client().ask(&[&command])?;
        Ok(answer[0].trim().parse()?)
    }

    /// tmux's id of the pane.
    pub fn pane(&self) -> Result<String> {
        let target = &self.shared.target;
        let command = format!("display-message -p -t {target} '#{{pane_id}}'");
        let answer = self.shared.client().ask(&[&command])?;
        Ok(answer[0].trim().to_owned())
    }

    /// Every change of look so far, and the keys.
    pub fn record(&self) -> (Vec<Seen>, Vec<Key>) {
        let state = self.shared.state();
        (state.seen.clone(), state.keys.clone())
    }

    /// The captures at those changes, with their moments.
    pub fn screens(&self) -> Vec<(i64, String)> {
        self.shared.state().screens.clone()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            // A panic in there has been printed already.
            drop(watcher.join());
        }
    }
}

impl Shared {
    fn client(&self) -> MutexGuard<'_, Client> {
        self.client.lock().expect("no holder of the client panics")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the state panics")
    }

    fn watch(&self) {
        let questions = [
            format!(
                "display-message -p -t {} '#{{pane_current_command}}'",
                self.target
            ),
            format!("capture-pane -p -t {}", self.target),
        ];
        let mut last: Option<(Look, i64)> = None;
        let mut before = wall_ns();
        while !self.stop.load(Ordering::Relaxed) {
            let answer = self.client().ask(&[&questions[0], &questions[1]]);
            let at = wall_ns();
            let (command, screen) = match answer.as_deref() {
                Ok([command, screen]) => (command.trim(), screen),
                Ok(_) => ("", &String::new()),
                Err(why) => {
                    self.state().lost = Some(format!("{why:#}"));
                    self.grown.notify_all();
                    return;
                }
            };
            let look = screen::read(command, screen);
            // While Claude draws anew, anything may be missing for a moment.
            let agreed = last.filter(|(earlier, _)| *earlier == look);
            let mut state = self.state();
            let committed = state.latest.as_ref().map(|picture| picture.look);
            if let Some((_, first)) = agreed
                && committed != Some(look)
            {
                state.seen.push(Seen {
                    at: first,
                    before,
                    look,
                });
                if state.screens.len() < SCREENS_MAX {
                    state.screens.push((first, screen.clone()));
                }
            }
            state.latest = Some(Picture {
                at,
                look: match (agreed, committed) {
                    (Some(_), _) | (None, None) => look,
                    (None, Some(committed)) => committed,
                },
                screen: screen.clone(),
            });
            drop(state);
            self.grown.notify_all();
            if agreed.is_some() {
                before = at;
            }
            let since = last.filter(|(earlier, _)| *earlier == look);
            last = Some((look, since.map_or(at, |(_, since)| since)));
            // The rhythm of the looks, not a wait for something.
            until(LOOK, || self.stop.load(Ordering::Relaxed).then_some(()));
        }
    }
}

/// tmux in control mode: a question a line, an answer a block.
struct Client {
    child: Child,
    input: ChildStdin,
    blocks: Receiver<Result<String, String>>,
}

impl Client {
    fn start(socket: &Path, session: &str) -> Result<Self> {
        let mut child = Command::new("tmux")
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .arg("-S")
            .arg(socket)
            .args(["-C", "attach-session", "-f", "no-output", "-t"])
            .arg(format!("={session}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("start tmux")?;
        let input = child.stdin.take().context("its input is piped")?;
        let output = child.stdout.take().context("its output is piped")?;
        let (send, blocks) = channel();
        thread::Builder::new().name("tmux".into()).spawn(move || {
            let mut block: Option<(String, String)> = None;
            for line in BufReader::new(output).split(b'\n') {
                let Ok(line) = line else { return };
                let line = String::from_utf8_lossy(&line).into_owned();
                block = match block.take() {
                    None => match line.strip_prefix("%begin ") {
                        // Of its three numbers the last says whether the command was this client's.
                        Some(numbers) if numbers.ends_with(" 1") => {
                            Some((numbers.to_owned(), String::new()))
                        }
                        Some(_) | None => None,
                    },
                    Some((numbers, text)) => {
                        let ended = if line == format!("%end {numbers}") {
                            Ok(text)
                        } else if line == format!("%error {numbers}") {
                            Err(text)
                        } else {
                            block = Some((numbers, text + &line + "\n"));
                            continue;
                        };
                        if send.send(ended).is_err() {
                            return;
                        }
                        None
                    }
                };
            }
        })?;
        let mut client = Self {
            child,
            input,
            blocks,
        };
        client.ask(&["display-message -p attached"])?;
        Ok(client)
    }

    fn ask(&mut self, commands: &[&str]) -> Result<Vec<String>> {
        let lines = commands.join("\n") + "\n";
        self.input
            .write_all(lines.as_bytes())
            .context("write to tmux")?;
        let mut answers = Vec::with_capacity(commands.len());
        for command in commands {
            match self.blocks.recv_timeout(ANSWER) {
                Ok(Ok(text)) => answers.push(text),
                Ok(Err(why)) => bail!("tmux, asked {command:?}: {}", why.trim()),
                Err(RecvTimeoutError::Timeout) => bail!("tmux does not answer {command:?}"),
                Err(RecvTimeoutError::Disconnected) => bail!("the tmux client has ended"),
            }
        }
        Ok(answers)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Both fail only when it has ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Without blanks, and without what a box's edge adds to a wrapped line.
fn squeeze(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && *c != '│')
        .collect()
}
