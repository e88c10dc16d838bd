//! The whole product in a home of its own: starts `purplemux serve`, makes tabs with its command line, presses keys
//! in them and compares what `status --watch --json` says with what is expected.
//!
//! Must never reach behind the public face: everything here a person or a program could do too. Ends only what it
//! started, by pid.

use std::cell::Cell;
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use crate::badges::{Badges, Line, changes};
use crate::clock::{until, wall_ns};
use crate::fake::Fake;
use crate::home::{Claude, Home, claude_binary};
use crate::latency::Ledger;
use crate::sessions::{Sessions, Write};
use crate::tmux::Pane;

/// For everything that has no deadline of its own: far above what a loaded machine needs.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How long a process is given to end by itself before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// From Claude's own write to our line.
pub const SHOWN_MS: f64 = 300.0;

/// From the key that ends something in silence to our line.
pub const SILENT_END_MS: f64 = 1000.0;

/// From a process's death to our line.
pub const DEATH_MS: f64 = 1000.0;

/// From the start of the server to its first answer.
pub const START_MS: f64 = 300.0;

/// From Enter to busy.
pub const ENTER_MS: f64 = 200.0;

/// What a tab starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TabKind {
    /// A shell.
    Terminal,
    /// Claude Code.
    Claude,
}

impl TabKind {
    fn word(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Claude => "claude-code",
        }
    }
}

/// Fake, home, server, badges. Fields drop in the order in which they must end.
pub struct Lab {
    badges: Option<Badges>,
    server: Mutex<Option<Child>>,
    sessions: Sessions,
    fake: Fake,
    ledger: Mutex<Ledger>,
    tabs: Cell<usize>,
    home: Home,
    binary: PathBuf,
}

impl Lab {
    /// Starts everything for the test of this name, and returns when the server answers.
    pub fn start(test: &str) -> anyhow::Result<Self> {
        Self::start_with(test, &Claude::pinned()?)
    }

    /// As [`Lab::start`], with another Claude than the pinned one.
    pub fn start_with(test: &str, claude: &Claude) -> anyhow::Result<Self> {
        let mut lab = Self::unserved(test, claude)?;
        lab.serve()?;
        lab.follow()?;
        Ok(lab)
    }

    /// Everything but the server, which somebody else starts.
    pub fn without_server(test: &str) -> anyhow::Result<Self> {
        Self::unserved(test, &Claude::pinned()?)
    }

    fn unserved(test: &str, claude: &Claude) -> anyhow::Result<Self> {
        let binary = product_binary()?;
        let fake = Fake::start(None)?;
        let home = Home::with(&fake.url(), claude)?;
        let sessions = Sessions::watch(&home.sessions())?;
        Ok(Self {
            badges: None,
            server: Mutex::default(),
            sessions,
            fake,
            ledger: Mutex::new(Ledger::new(test)),
            tabs: Cell::new(0),
            home,
            binary,
        })
    }

    /// Begins to read what the server shows.
    pub fn follow(&mut self) -> anyhow::Result<()> {
        self.badges = Some(Badges::follow(&mut self.watch())?);
        Ok(())
    }

    fn watch(&self) -> Command {
        let mut watch = self.command(&["status", "--watch", "--json"]);
        watch.stderr(Stdio::inherit());
        watch
    }

    /// Ends the server with a signal, and waits until it is gone; its tabs live on.
    pub fn end_server(&self, signal: Signal) -> anyhow::Result<()> {
        let mut server = self.server().take().context("no server runs")?;
        kill_process(Pid::from_child(&server), signal)?;
        until(PATIENCE, || server.try_wait().ok().flatten())
            .context("the server does not end")
            .map(drop)
    }

    /// Starts the server again after [`Lab::end_server`]; returns when it was started, unix ns.
    pub fn serve_again(&self) -> anyhow::Result<i64> {
        let at_ns = wall_ns();
        self.serve()?;
        self.badges().go_on(&mut self.watch())?;
        Ok(at_ns)
    }

    /// Starts the server and waits until it listens.
    pub fn serve(&self) -> anyhow::Result<()> {
        let log = self.home.root().join("serve.log");
        let output = File::options().create(true).append(true).open(&log)?;
        let from_ns = wall_ns();
        let child = self
            .command(&["serve", "--port", "0"])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("start purplemux serve")?;
        *self.server() = Some(child);
        let socket = self.home.product().join("purplemux.sock");
        let ready = until(PATIENCE, || match self.server().as_mut()?.try_wait() {
            Ok(None) => UnixStream::connect(&socket).ok().map(|_| Ok(())),
            Ok(Some(status)) => Some(Err(status)),
            Err(_) => None,
        });
        match ready {
            Some(Ok(())) => {
                self.note("start to first answer", START_MS, from_ns, wall_ns());
                Ok(())
            }
            Some(Err(status)) => bail!(
                "purplemux serve ended with {status}:\n{}",
                self.server_log()
            ),
            None => bail!("purplemux serve does not listen:\n{}", self.server_log()),
        }
    }

    /// A command of the product, in the lab's environment.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .envs(self.home.env())
            .current_dir(self.home.dir())
            .args(args);
        command
    }

    /// Runs a command of the product and returns what it printed.
    pub fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = self
            .command(args)
            .stdin(Stdio::null())
            .output()
            .context("start purplemux")?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "purplemux {args:?} ended with {}: {}",
            output.status,
            stderr.trim()
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// All rows, as a program asks for them.
    pub fn rows(&self) -> anyhow::Result<Vec<Value>> {
        let printed = self.run(&["status", "--json"])?;
        serde_json::from_str(&printed).with_context(|| format!("not JSON: {printed}"))
    }

    /// Makes a tab in a directory of its own.
    pub fn tab(&self, kind: TabKind) -> anyhow::Result<Tab<'_>> {
        self.tabs.set(self.tabs.get() + 1);
        let dir = self.home.project(self.tabs.get());
        ensure!(dir.is_dir(), "the home has no more projects");
        self.tab_in(kind, dir)
    }

    /// Makes a tab in this directory.
    pub fn tab_in(&self, kind: TabKind, dir: PathBuf) -> anyhow::Result<Tab<'_>> {
        let dir_text = dir.to_str().context("the path is UTF-8")?;
        let printed = self.run(&[
            "tab",
            "create",
            "-t",
            kind.word(),
            "--cwd",
            dir_text,
            "--json",
        ])?;
        let made: Value =
            serde_json::from_str(&printed).with_context(|| format!("not JSON: {printed}"))?;
        let (id, socket, session) = (
            &made["tab"],
            &made["tmux"]["socket"],
            &made["tmux"]["session"],
        );
        let (Some(id), Some(socket), Some(session)) =
            (id.as_str(), socket.as_str(), session.as_str())
        else {
            bail!("tab create --json printed {printed}");
        };
        Ok(Tab {
            lab: self,
            id: id.to_owned(),
            pane: Pane::new(Path::new(socket), session),
            dir,
            seen: 0,
            shown: None,
            written: 0,
            pid: None,
        })
    }

    /// The home.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The fake API.
    pub fn fake(&self) -> &Fake {
        &self.fake
    }

    /// What Claude writes.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// What the server has printed so far.
    pub fn server_log(&self) -> String {
        fs::read_to_string(self.home.root().join("serve.log")).unwrap_or_default()
    }

    /// Takes a latency down; an error above five times its deadline.
    pub fn latency(
        &self,
        measure: &str,
        deadline_ms: f64,
        from_ns: i64,
        to_ns: i64,
    ) -> anyhow::Result<()> {
        let within = self.note(measure, deadline_ms, from_ns, to_ns);
        let took = (to_ns - from_ns) / 1_000_000;
        ensure!(
            within,
            "{measure} took {took} ms, more than five times {deadline_ms} ms"
        );
        Ok(())
    }

    /// Takes a latency down; whether it is within five times its deadline.
    pub fn note(&self, measure: &str, deadline_ms: f64, from_ns: i64, to_ns: i64) -> bool {
        let mut ledger = self.ledger.lock().expect("no holder of the ledger panics");
        ledger.record(measure, deadline_ms, from_ns, to_ns)
    }

    /// Takes down a number that is no span between two stamps.
    pub fn note_ms(&self, measure: &str, deadline: f64, value: f64) {
        let mut ledger = self.ledger.lock().expect("no holder of the ledger panics");
        ledger.add(measure, deadline, value);
    }

    /// The server's process.
    pub fn server_pid(&self) -> Option<u32> {
        self.server().as_ref().map(Child::id)
    }

    fn badges(&self) -> &Badges {
        self.badges.as_ref().expect("they are followed since start")
    }

    fn server(&self) -> MutexGuard<'_, Option<Child>> {
        self.server.lock().expect("no holder of the server panics")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.badges.take());
        if let Some(mut server) = self.server().take() {
            end(&mut server);
        }
        if std::thread::panicking() {
            eprintln!("the server said:\n{}", self.server_log());
        }
    }
}

/// Asks a child to end, and kills it when it does not.
fn end(child: &mut Child) {
    // Each of these fails only when the child has ended already.
    kill_process(Pid::from_child(child), Signal::TERM).ok();
    if until(GRACE, || child.try_wait().ok().flatten()).is_none() {
        drop(child.kill());
        drop(child.wait());
    }
}

/// `$PURPLEMUX_BIN`, else the binary beside the test's own.
pub fn product_binary() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("PURPLEMUX_BIN") {
        return Ok(path.into());
    }
    let own = std::env::current_exe().context("find the test's own binary")?;
    // target/<profile>/deps/<test> or target/<profile>/<program>
    let found = own
        .ancestors()
        .skip(1)
        .take(2)
        .map(|dir| dir.join("purplemux"))
        .find(|path| path.is_file());
    found.with_context(|| {
        format!(
            "no purplemux beside {}: run `cargo build -p purplemux`",
            own.display()
        )
    })
}

/// A tab, and how far its badges have been looked at.
pub struct Tab<'a> {
    lab: &'a Lab,
    /// Its id.
    pub id: String,
    /// Its terminal.
    pub pane: Pane,
    /// Its directory.
    pub dir: PathBuf,
    /// Lines of this tab that have been judged.
    seen: usize,
    /// The badge that they ended in.
    shown: Option<String>,
    /// Writes of this agent that have been matched with a badge.
    written: usize,
    /// The agent whose writes these are.
    pid: Option<u32>,
}

impl Tab<'_> {
    /// Types a line and presses Enter once the line stands on the screen: Claude takes an Enter that comes with
    /// the text for a part of it. Returns when Enter was pressed, unix ns.
    pub fn enter(&self, line: &str) -> anyhow::Result<i64> {
        self.pane.text(line)?;
        let tail: String = line
            .chars()
            .rev()
            .take(24)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect();
        let tail = squeeze(&tail);
        // The line may be wrapped in the box, so spaces and edges are left out of the comparison.
        self.pane
            .wait(&tail, PATIENCE, |screen| squeeze(screen).contains(&tail))?;
        let at_ns = wall_ns();
        self.pane.keys(&["Enter"])?;
        Ok(at_ns)
    }

    /// Types a line, presses Enter and waits for busy; returns the line that said so.
    pub fn prompt(&mut self, line: &str) -> anyhow::Result<()> {
        let at_ns = self.enter(line)?;
        let shown = self.expect(&["busy"])?;
        // Most of it is Claude's own time, so it is taken down and never a fault of ours.
        self.lab
            .note("Enter to busy shown", ENTER_MS, at_ns, shown[0].at_ns);
        Ok(())
    }

    /// Lets a new session run a first turn whose course is not judged: on a loaded machine its hook leads its file by
    /// up to a second (measured), which is when rule 3 takes the lead back. For tests about something else.
    pub fn warm_up(&mut self) -> anyhow::Result<()> {
        self.enter("say warm")?;
        self.settle("review(finished)")
    }

    /// Waits for a badge without judging those on the way, and takes it for where the next ones begin.
    pub fn settle(&mut self, badge: &str) -> anyhow::Result<()> {
        let mut lines = Vec::new();
        let settled = self
            .lab
            .badges()
            .wait(&self.id, self.seen, PATIENCE, |so_far| {
                lines = so_far.to_vec();
                let newest = so_far.last()?;
                (newest.badge() == badge).then(|| newest.clone())
            })?;
        let settled = settled.with_context(|| format!("no {badge}; {}", self.evidence()))?;
        let pid = settled.pid().context("the agent of that badge")?;
        self.seen += lines.len();
        self.shown = Some(settled.badge());
        (self.pid, self.written) = (Some(pid), self.lab.sessions.of(pid).len());
        Ok(())
    }

    /// Presses keys; returns when, unix ns.
    pub fn press(&self, keys: &[&str]) -> anyhow::Result<i64> {
        let at_ns = wall_ns();
        self.pane.keys(keys)?;
        Ok(at_ns)
    }

    /// Answers the dialog that shows `text` with a key, and returns when the key that worked was pressed, unix ns.
    /// Claude's own file says when a dialog is over.
    pub fn answer(&self, key: &str, text: &str) -> anyhow::Result<i64> {
        self.pane.wait_for(text, PATIENCE)?;
        let pid = self.agent()?;
        let waits = || {
            let newest = self.lab.sessions.of(pid).pop();
            newest.is_some_and(|write| write.status() == Some("waiting"))
        };
        self.pane
            .press_until(&[key], "an end of the dialog", || !waits())
    }

    /// Waits until Claude has drawn its prompt and the badge says idle, with nothing else shown on the way.
    pub fn ready(&mut self) -> anyhow::Result<()> {
        self.expect_unmeasured(&["idle"])
            .with_context(|| format!("the screen shows\n{}", self.screen()))?;
        self.pane
            .wait("Claude's prompt", PATIENCE, claude_is_ready)?;
        Ok(())
    }

    /// Starts Claude by hand in a shell tab and waits until it is ready.
    pub fn start_claude(&mut self, command: &str) -> anyhow::Result<()> {
        self.shell_ready()?;
        self.enter(command)?;
        self.ready()
    }

    /// Clears a shell's screen and line, whatever is left on them of the program before.
    pub fn fresh_shell(&self) -> anyhow::Result<()> {
        let fresh = || matches!(self.screen().trim(), "lab$" | "lab#");
        self.pane
            .press_until(&["C-u", "C-l"], "a fresh shell", fresh)
            .map(drop)
    }

    /// Waits for the shell's prompt, which the lab's own start-up file sets.
    pub fn shell_ready(&self) -> anyhow::Result<()> {
        let prompt = |screen: &str| {
            let last = screen.trim_end().lines().last().unwrap_or_default();
            matches!(last.trim_end(), "lab$" | "lab#")
        };
        self.pane
            .wait("the shell's prompt", PATIENCE, prompt)
            .map(drop)
    }

    /// Waits for exactly these badges, one after the other from the last one judged, and takes down how long each
    /// took from Claude's own write. Any other badge on the way is an error, at once.
    pub fn expect(&mut self, badges: &[&str]) -> anyhow::Result<Vec<Line>> {
        let lines = self.expect_unmeasured(badges)?;
        for line in &lines {
            self.measure(line)?;
        }
        Ok(lines)
    }

    /// As [`Tab::expect`], for badges that are not decided by a write of Claude's alone.
    pub fn expect_unmeasured(&mut self, badges: &[&str]) -> anyhow::Result<Vec<Line>> {
        let shown = self.shown.clone();
        let mut last = Vec::new();
        let found = self
            .lab
            .badges()
            .wait(&self.id, self.seen, PATIENCE, |lines| {
                // A tab without an agent is where everything starts; its first line is no change.
                let before = shown.as_deref().unwrap_or("none");
                last = changes(lines, Some(before));
                let right = last
                    .iter()
                    .map(Line::badge)
                    .zip(badges)
                    .all(|(is, wanted)| is == *wanted);
                (!right || last.len() >= badges.len()).then_some((right, lines.to_vec()))
            })?;
        let story: Vec<String> = last.iter().map(Line::badge).collect();
        let Some((right, lines)) = found else {
            bail!(
                "expected {badges:?} after {shown:?}, and only {story:?} came; {}",
                self.evidence()
            );
        };
        ensure!(
            right,
            "expected {badges:?} after {shown:?}, and {story:?} came; {}",
            self.evidence()
        );
        last.truncate(badges.len());
        if let Some(end) = last.last() {
            // Lines that say the same again belong to this badge too, but the next one must not be skipped.
            let place = lines
                .iter()
                .position(|line| line.at_ns == end.at_ns && line.item == end.item);
            self.seen += place.map_or(0, |place| place + 1);
            self.shown = Some(end.badge());
            if let Some(pid) = end.pid()
                && self.pid != Some(pid)
            {
                (self.pid, self.written) = (Some(pid), 0);
            }
        }
        Ok(last)
    }

    /// Makes sure that the badge does not move for so long.
    pub fn stays(&mut self, how_long: Duration) -> anyhow::Result<()> {
        let shown = self.shown.clone();
        let moved = self
            .lab
            .badges()
            .wait(&self.id, self.seen, how_long, |lines| {
                let moved = changes(lines, Some(shown.as_deref().unwrap_or("none")));
                (!moved.is_empty()).then_some(moved)
            })?;
        let story: Vec<String> = moved.unwrap_or_default().iter().map(Line::badge).collect();
        ensure!(
            story.is_empty(),
            "the badge left {shown:?} for {story:?}; {}",
            self.evidence()
        );
        Ok(())
    }

    /// The lines at which the badge changed after a moment, up to this badge, whatever it was before: the server
    /// was started anew. The tab is judged from there on.
    pub fn lines_until(&mut self, from_ns: i64, badge: &str) -> anyhow::Result<Vec<Line>> {
        let lines = self.lab.badges().lines(&self.id, 0);
        let from = lines.iter().take_while(|line| line.at_ns < from_ns).count();
        let found = self.lab.badges().wait(&self.id, from, PATIENCE, |lines| {
            let place = lines.iter().position(|line| line.badge() == badge)?;
            Some(lines[..=place].to_vec())
        })?;
        let lines = found
            .with_context(|| format!("never {badge} after the restart; {}", self.evidence()))?;
        self.seen = from + lines.len();
        self.shown = Some(badge.to_owned());
        Ok(changes(&lines, None))
    }

    /// The newest item of this tab.
    pub fn item(&self) -> Option<Value> {
        self.lab
            .badges()
            .lines(&self.id, 0)
            .pop()
            .map(|line| line.item)
    }

    /// Waits until the newest item of this tab fits.
    pub fn wait_item(&self, what: &str, fits: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let found = self.lab.badges().wait(&self.id, 0, PATIENCE, |lines| {
            lines
                .last()
                .filter(|line| fits(&line.item))
                .map(|line| line.item.clone())
        })?;
        found.with_context(|| format!("the item never showed {what}; it is {:?}", self.item()))
    }

    /// The badges shown after a line, in words.
    pub fn story_since(&self, line: &Line) -> String {
        let lines = self.lab.badges().lines(&self.id, 0);
        let later: Vec<Line> = lines
            .into_iter()
            .filter(|later| later.at_ns > line.at_ns)
            .collect();
        let story: Vec<String> = changes(&later, Some(&line.badge()))
            .iter()
            .map(Line::badge)
            .collect();
        story.join(" ")
    }

    /// The agent in this tab, as the product names it.
    pub fn agent(&self) -> anyhow::Result<u32> {
        self.pid.context("no badge of an agent has been judged yet")
    }

    /// Kills the agent without a chance to say anything, and waits until it is gone; returns when it was killed.
    pub fn kill_agent(&self) -> anyhow::Result<i64> {
        let pid = i32::try_from(self.agent()?)
            .ok()
            .and_then(Pid::from_raw)
            .context("a pid")?;
        let exe = fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero()))?;
        ensure!(
            exe == claude_binary()?.canonicalize()?,
            "{} is not our Claude",
            exe.display()
        );
        let at_ns = wall_ns();
        kill_process(pid, Signal::KILL)?;
        until(GRACE, || test_kill_process(pid).is_err().then_some(()))
            .context("it outlived SIGKILL")?;
        Ok(at_ns)
    }

    /// The screen, or why it can't be read.
    pub fn screen(&self) -> String {
        self.pane
            .screen()
            .unwrap_or_else(|why| format!("({why:#})"))
    }

    /// Takes down the time between the write that decided a badge and the line that showed it.
    fn measure(&mut self, line: &Line) -> anyhow::Result<()> {
        let badge = line.badge();
        let (statuses, measure): (&[&str], _) = match badge.split('(').next() {
            Some("busy") => (&["busy"], "busy written to busy shown"),
            Some("needs-input") => (&["waiting"], "waiting written to needs-input shown"),
            Some("review") => (&["idle", "shell"], "idle written to review shown"),
            Some("idle") => (&["idle", "shell"], "idle written to idle shown"),
            _ => return Ok(()),
        };
        // Silence has to be waited for, half a second at most, before an end counts as one without an answer.
        let deadline_ms = if badge == "idle" {
            SHOWN_MS + 500.0
        } else {
            SHOWN_MS
        };
        let (pid, from) = (self.agent()?, self.written);
        let fits = |write: &Write| {
            write
                .status()
                .is_some_and(|status| statuses.contains(&status))
        };
        let found = until(GRACE, || {
            let writes = self.lab.sessions.of(pid);
            let place = writes.iter().skip(from).position(fits)?;
            Some((from + place, writes[from + place].at_ns))
        });
        let (place, at_ns) = found.with_context(|| {
            format!(
                "{badge} was shown, but Claude never wrote it; {}",
                self.evidence()
            )
        })?;
        self.written = place + 1;
        self.lab.latency(measure, deadline_ms, at_ns, line.at_ns)
    }

    /// Everything that helps to see whose fault it is.
    pub fn evidence(&self) -> String {
        let mut story: Vec<(i64, String)> = Vec::new();
        for line in self.lab.badges().lines(&self.id, 0) {
            story.push((
                line.at_ns,
                format!("shown   {:<26} {}", line.badge(), line.item["detail"]),
            ));
        }
        for pid in self.lab.sessions.pids() {
            for write in self.lab.sessions.of(pid) {
                let status = if write.value.is_some() {
                    write.status().unwrap_or("no status")
                } else {
                    "removed"
                };
                story.push((
                    write.at_ns,
                    format!(
                        "written {status} {}  ({pid})",
                        write.waiting_for().unwrap_or("")
                    ),
                ));
            }
        }
        for request in self
            .lab
            .fake
            .requests()
            .iter()
            .filter(|request| request.kind == "main")
        {
            story.push((
                request.at_ms * 1_000_000,
                format!("asked   step {} of {:?}", request.step, request.prompt),
            ));
        }
        story.sort();
        let start = story.first().map_or(0, |(at_ns, _)| *at_ns);
        let story: Vec<String> = story
            .iter()
            .map(|(at_ns, what)| format!("{:>9.1} {what}", (at_ns - start) as f64 / 1e6))
            .collect();
        format!(
            "the story in ms:\n{}\nthe screen:\n{}",
            story.join("\n"),
            self.screen()
        )
    }
}

/// Claude has drawn the line under its box.
pub fn claude_is_ready(screen: &str) -> bool {
    [
        "? for shortcuts",
        "manual mode",
        "plan mode on",
        "accept edits on",
        "shift+tab",
        "/effort",
    ]
    .iter()
    .any(|hint| screen.contains(hint))
}

/// Without blanks and the edges of boxes.
fn squeeze(screen: &str) -> String {
    screen
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '│' && *c != '>')
        .collect()
}
