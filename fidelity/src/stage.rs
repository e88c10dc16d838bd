//! Where the scripts are played: a home, a fake API, the product, and everything that writes down what happens.
//! The product is started, ended and asked for its badges by its own commands.
//!
//! Must never let what the product says reach those who play: they see the screen, as a person does.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use purplemux_lab::badges::{Badges, Line};
use purplemux_lab::clock::{until, wall_ns};
use purplemux_lab::fake::{self, Fake};
use purplemux_lab::home::Home;
use purplemux_lab::product::{PATIENCE, product_binary};
use purplemux_lab::sessions::Sessions;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::heard::{Asked, Heard, How, Outage, Shown, Told, Written};

/// The events that the original registered.
const ORIGINAL: [&str; 7] = [
    "SessionStart",
    "UserPromptSubmit",
    "Notification",
    "Stop",
    "StopFailure",
    "PreCompact",
    "PostCompact",
];

/// Longer than any prompt of a script; a compaction's is Claude's own and fills pages.
const PROMPT_MAX: usize = 120;

/// One file per hook call, written whole or not at all.
const RECORDER: &str = r#"#!/bin/sh
f="$1/$(date +%s%N).$$.$2"
{ printf '%s\n' "$TMUX_PANE"; cat; } > "$f.tmp" && mv "$f.tmp" "$f"
"#;

/// How long the product is given to end by itself before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// The running whole. Fields drop in the order in which they must end.
pub struct Stage {
    badges: Mutex<Vec<Badges>>,
    server: Mutex<Option<Child>>,
    outages: Mutex<Vec<Outage>>,
    sessions: Sessions,
    fake: Fake,
    home: Home,
    binary: PathBuf,
}

/// A tab of the product.
#[derive(Clone, Debug)]
pub struct Tab {
    /// Its id.
    pub id: String,
    /// The tmux server's socket.
    pub socket: PathBuf,
    /// Its session there.
    pub session: String,
    /// The directory that it was made in.
    pub dir: PathBuf,
}

impl Stage {
    /// Starts everything, and returns when the product answers.
    pub fn start() -> Result<Self> {
        let binary = product_binary()?;
        let fake = Fake::start(None)?;
        let home = Home::new(&fake.url())?;
        record_hooks(&home)?;
        let sessions = Sessions::watch(&home.sessions())?;
        let stage = Self {
            badges: Mutex::default(),
            server: Mutex::default(),
            outages: Mutex::default(),
            sessions,
            fake,
            home,
            binary,
        };
        stage.serve()?;
        Ok(stage)
    }

    fn serve(&self) -> Result<()> {
        let log = self.home.root().join("serve.log");
        let output = File::options().create(true).append(true).open(&log)?;
        let child = self
            .command(&["serve", "--port", "0"])
            .env("PURPLEMUX_LOG", "info,purplemux::told=debug")
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
            Some(Ok(())) => {}
            Some(Err(status)) => bail!("purplemux serve ended with {status}: {}", self.said()),
            None => bail!("purplemux serve does not listen: {}", self.said()),
        }
        let mut watch = self.command(&["status", "--watch", "--json"]);
        let follower = Badges::follow(watch.stderr(Stdio::null()))?;
        self.lock(&self.badges).push(follower);
        Ok(())
    }

    /// Ends the product, by SIGKILL or in order, and starts it again after a while.
    pub fn restart(&self, kill: bool, away: Duration) -> Result<()> {
        let from = wall_ns();
        if let Some(mut server) = self.server().take() {
            end(&mut server, kill);
        }
        self.lock(&self.outages).push(Outage { from, to: i64::MAX });
        // The length of the outage is the script's.
        until(away, || None::<()>);
        self.serve()?;
        if let Some(outage) = self.lock(&self.outages).last_mut() {
            outage.to = wall_ns();
        }
        Ok(())
    }

    /// Makes a tab in the directory of this number, which starts Claude or a shell.
    pub fn tab(&self, number: usize, claude: bool) -> Result<Tab> {
        let dir = self.home.project(number);
        ensure!(dir.is_dir(), "the home has no project {number}");
        let text = dir.to_str().context("the path is UTF-8")?;
        let kind = if claude { "claude-code" } else { "terminal" };
        let output = self
            .command(&["tab", "create", "-t", kind, "--cwd", text, "--json"])
            .stdin(Stdio::null())
            .output()
            .context("start purplemux tab create")?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let made: Value = serde_json::from_str(&printed).with_context(|| {
            let why = String::from_utf8_lossy(&output.stderr);
            format!("tab create printed {printed:?} and {why:?}")
        })?;
        let of = |value: &Value| {
            value
                .as_str()
                .map(str::to_owned)
                .context("tab create --json")
        };
        Ok(Tab {
            id: of(&made["tab"])?,
            socket: of(&made["tmux"]["socket"])?.into(),
            session: of(&made["tmux"]["session"])?,
            dir,
        })
    }

    /// Writes one agent's journal into a new directory, as a recorded run.
    pub fn export(&self, agent: &str, dir: &Path) -> Result<()> {
        let text = dir.to_str().context("the path is UTF-8")?;
        let output = self
            .command(&["explain", agent, "--export", text])
            .stdin(Stdio::null())
            .output()
            .context("start purplemux explain")?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// A command of the product.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .envs(self.home.env())
            .current_dir(self.home.dir())
            .args(args);
        command
    }

    /// The fake API.
    pub fn fake(&self) -> &Fake {
        &self.fake
    }

    /// What the product has printed.
    pub fn said(&self) -> String {
        fs::read_to_string(self.home.root().join("serve.log")).unwrap_or_default()
    }

    /// Its log.
    pub fn log(&self) -> String {
        let dir = self.home.product().join("logs");
        let read = |name| fs::read_to_string(dir.join(name)).unwrap_or_default();
        read("server.log.1") + &read("server.log")
    }

    /// When the product was down.
    pub fn outages(&self) -> Vec<Outage> {
        self.lock(&self.outages).clone()
    }

    /// Every line about a tab.
    pub fn lines(&self, tab: &Tab) -> Vec<Line> {
        let badges = self.lock(&self.badges);
        badges
            .iter()
            .flat_map(|badges| badges.lines(&tab.id, 0))
            .collect()
    }

    /// The agents that were shown in a tab, as `host:pid:start`.
    pub fn agents(&self, tab: &Tab) -> Result<Vec<String>> {
        let mut agents = Vec::new();
        for line in self.lines(tab) {
            let (Some(host), Some(pid)) = (line.item["host"].as_str(), line.pid()) else {
                continue;
            };
            // The start time stands in Claude's own file, under a name of its own.
            let start = self.sessions.of(pid).iter().find_map(|write| {
                let value = write.value.as_ref()?;
                value["procStart"].as_str().map(str::to_owned)
            });
            if let Some(start) = start {
                agents.push(format!("{host}:{pid}:{start}"));
            }
        }
        agents.sort();
        agents.dedup();
        Ok(agents)
    }

    /// The badges shown in a tab.
    pub fn shown(&self, tab: &Tab) -> Vec<Shown> {
        let lines = self.lines(tab);
        let shown = lines.iter().map(|line| Shown {
            at: line.at_ns,
            badge: line.badge(),
            suspended: line.item["presence"] == "suspended",
        });
        let mut all: Vec<Shown> = Vec::new();
        for shown in shown {
            let same =
                |last: &Shown| last.badge == shown.badge && last.suspended == shown.suspended;
            if !all.last().is_some_and(same) {
                all.push(shown);
            }
        }
        all
    }

    /// Who was told of what in a tab, from the product's log of its effects.
    pub fn told(&self, tab: &Tab) -> Vec<Told> {
        let pids: Vec<u32> = self.lines(tab).iter().filter_map(Line::pid).collect();
        let of_tab = |line: &&str| {
            let agent = told_agent(line).and_then(pid_of);
            agent.is_some_and(|pid| pids.contains(&pid))
        };
        self.log().lines().filter(of_tab).filter_map(told).collect()
    }

    /// The requests of the Claude in a tab: `mine` says which prompts are this session's, `agents` which of those
    /// belong to its subagents, `named` which conversations are known to be in that tab.
    pub fn asked(
        &self,
        mine: impl Fn(&str) -> bool,
        agents: impl Fn(&str) -> bool,
        named: &[String],
    ) -> Vec<Asked> {
        let requests = self.fake.requests();
        let ends = self.fake.ends();
        let sessions: Vec<&str> = requests
            .iter()
            .filter(|request| mine(&request.prompt) && !request.session.is_empty())
            .map(|request| request.session.as_str())
            .chain(named.iter().map(String::as_str))
            .collect();
        let of_tab = |request: &&fake::Request| {
            (request.kind == "main" || request.kind == "compact")
                && (mine(&request.prompt) || sessions.contains(&request.session.as_str()))
        };
        requests
            .iter()
            .filter(of_tab)
            .map(|request| Asked {
                at: request.at_ms * 1_000_000,
                kind: request.kind.to_owned(),
                agent: agents(&request.prompt),
                prompt: request.prompt.chars().take(PROMPT_MAX).collect(),
                end: ends.iter().find(|end| end.id == request.id).map(|end| {
                    let how = match &end.how {
                        fake::How::Complete(stop) => How::Complete((*stop).to_owned()),
                        fake::How::Failed(status) => How::Failed(*status),
                        fake::How::HungUp | fake::How::Cut => How::HungUp,
                    };
                    (end.at_ns, how)
                }),
            })
            .collect()
    }

    /// The hooks of the Claude in this pane, each with what Claude gave it.
    pub fn heard(&self, pane: &str) -> Result<Vec<(Heard, Value)>> {
        let mut files: Vec<PathBuf> = fs::read_dir(hooks_dir(&self.home))?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end != "tmp"))
            .collect();
        files.sort();
        let mut heard = Vec::new();
        for path in files {
            let name = path.file_name().and_then(|name| name.to_str());
            let mut parts = name.unwrap_or_default().split('.');
            let at = parts.next().and_then(|at| at.parse().ok());
            let (Some(at), Some(event)) = (at, parts.nth(1)) else {
                continue;
            };
            let text = fs::read_to_string(&path)?;
            let Some((from, body)) = text.split_once('\n') else {
                continue;
            };
            if from != pane {
                continue;
            }
            let input: Value = serde_json::from_str(body).unwrap_or_default();
            let kind = input["notification_type"].as_str();
            let kind = kind
                .or(input["source"].as_str())
                .unwrap_or_default()
                .to_owned();
            let line = json!({"ts": at / 1_000_000, "event": event, "input": input});
            let hook = Heard {
                at,
                event: event.to_owned(),
                kind,
            };
            heard.push((hook, line));
        }
        Ok(heard)
    }

    /// What Claude wrote into the status files of the processes that ran in a tab's directory.
    pub fn written(&self, tab: &Tab) -> Vec<Written> {
        let dir = tab.dir.to_str().unwrap_or_default();
        let mut all: Vec<Written> = Vec::new();
        for pid in self.sessions.pids() {
            let writes = self.sessions.of(pid);
            let here = |write: &purplemux_lab::sessions::Write| {
                write
                    .value
                    .as_ref()
                    .is_some_and(|value| value["cwd"] == dir)
            };
            if !writes.iter().any(here) {
                continue;
            }
            all.extend(writes.iter().map(|write| Written {
                at: write.at_ns,
                status: write.status().map(str::to_owned),
                waiting_for: write.waiting_for().map(str::to_owned),
            }));
        }
        all.sort_by_key(|write| write.at);
        all
    }

    fn server(&self) -> MutexGuard<'_, Option<Child>> {
        self.lock(&self.server)
    }

    fn lock<'a, T>(&self, what: &'a Mutex<T>) -> MutexGuard<'a, T> {
        what.lock().expect("no holder panics")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.lock(&self.badges).clear();
        if let Some(mut server) = self.server().take() {
            end(&mut server, false);
        }
    }
}

/// Interrupt markers of the main lane in these transcripts, unix ns.
#[must_use]
pub fn interrupts(transcripts: &[String]) -> Vec<i64> {
    let mut all = Vec::new();
    for path in transcripts {
        let text = fs::read_to_string(path).unwrap_or_default();
        for line in text.lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let content = &line["message"]["content"];
            let says = |text: &Value| {
                let text = text.as_str().unwrap_or_default();
                text.starts_with("[Request interrupted by user")
            };
            let interrupted = line["type"] == "user"
                && line["isSidechain"] != true
                && (says(content)
                    || content
                        .as_array()
                        .is_some_and(|blocks| blocks.iter().any(|block| says(&block["text"]))));
            if interrupted && let Some(at) = line["timestamp"].as_str().and_then(moment) {
                all.push(at);
            }
        }
    }
    all.sort_unstable();
    all
}

/// An RFC 3339 moment in unix ns.
fn moment(text: &str) -> Option<i64> {
    let stamp: jiff::Timestamp = text.parse().ok()?;
    i64::try_from(stamp.as_nanosecond()).ok()
}

/// The agent of a line of the log about who was told.
fn told_agent(line: &str) -> Option<&str> {
    let (_, after) = line.split_once(" purplemux::told: ")?;
    let (_, agent) = after.split_once("agent=")?;
    agent.split(' ').next()
}

fn pid_of(agent: &str) -> Option<u32> {
    agent.rsplit(':').nth(1)?.parse().ok()
}

/// `2026-11-30T14:25:00.123456Z DEBUG purplemux::told: notify agent=h:1:2 … badge=NeedsInput(…) silent=false`
fn told(line: &str) -> Option<Told> {
    let at = moment(line.trim_start().split(' ').next()?)?;
    let (_, after) = line.split_once(" purplemux::told: ")?;
    if !after.starts_with("notify ") {
        return None;
    }
    let (_, badge) = after.split_once("badge=")?;
    let state = if badge.starts_with("NeedsInput") {
        "needs-input"
    } else {
        "review"
    };
    Some(Told {
        at,
        state: state.to_owned(),
        silent: after.trim_end().ends_with("silent=true"),
    })
}

fn hooks_dir(home: &Home) -> PathBuf {
    home.root().join("heard")
}

/// Puts our recorder beside whatever the product does, in the settings that are the person's own.
fn record_hooks(home: &Home) -> Result<()> {
    let dir = hooks_dir(home);
    fs::create_dir(&dir)?;
    let script = home.root().join("heard.sh");
    fs::write(&script, RECORDER)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    let path = home.dir().join(".claude/settings.json");
    let mut settings: Value = serde_json::from_slice(&fs::read(&path)?)?;
    for event in ORIGINAL {
        let command = format!("{} {} {event}", script.display(), dir.display());
        settings["hooks"][event] =
            json!([{"hooks": [{"type": "command", "command": command, "async": true}]}]);
    }
    fs::write(&path, settings.to_string())?;
    Ok(())
}

fn end(child: &mut Child, kill: bool) {
    let signal = if kill { Signal::KILL } else { Signal::TERM };
    // Each of these fails only when the child has ended already.
    kill_process(Pid::from_child(child), signal).ok();
    if until(GRACE, || child.try_wait().ok().flatten()).is_none() {
        drop(child.kill());
        drop(child.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_who_was_told() {
        let line = "2026-11-30T14:25:00.500000Z DEBUG purplemux::told: notify agent=box:41:7 episode=EpisodeId(3) badge=NeedsInput(Ask { id: 1 }) silent=false";
        assert_eq!(told_agent(line).and_then(pid_of), Some(41));
        let told = told(line).unwrap();
        assert_eq!((told.state.as_str(), told.silent), ("needs-input", false));
        assert_eq!(told.at % 1_000_000_000, 500_000_000);
        let back = "2026-11-30T14:25:00.5Z DEBUG purplemux::told: withdraw agent=box:41:7 episode=EpisodeId(3)";
        assert!(super::told(back).is_none());
    }
}
