//! Many sessions that nobody has to pay for: living processes whose status files, transcripts and hooks this
//! program writes as Claude Code does. They stand in for Claude where its number counts and not what it says.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use purplemux_lab::home::Home;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::server::Server;

/// A process that stands in for a Claude.
pub struct Agent {
    /// `None`: it runs in a tab, and ends with it.
    child: Option<Child>,
    pid: u32,
    start: u64,
    /// Claude's directory.
    dir: PathBuf,
}

impl Agent {
    /// One outside all tabs.
    pub fn new(home: &Home) -> anyhow::Result<Self> {
        let child = Command::new("sleep")
            .arg("100000")
            .env_clear()
            .envs(home.env())
            .current_dir(home.dir())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("start a stand-in")?;
        let mut agent = Self::of(home, child.id())?;
        agent.child = Some(child);
        Ok(agent)
    }

    /// The process that runs in a tab of ours.
    pub fn of(home: &Home, pid: u32) -> anyhow::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let (_, rest) = stat.rsplit_once(") ").context("a stat line")?;
        // `rest` begins with field 3; the start time is field 22.
        let start = rest.split(' ').nth(19).context("a start time")?.parse()?;
        Ok(Self {
            child: None,
            pid,
            start,
            dir: home.dir().join(".claude"),
        })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its conversation.
    pub fn conversation(&self) -> String {
        format!("00000000-0000-4000-8000-{:012}", self.pid)
    }

    /// Where its transcript lies.
    pub fn transcript(&self) -> PathBuf {
        self.dir
            .join(format!("projects/-bench/{}.jsonl", self.conversation()))
    }

    /// As `host:pid:start`.
    pub fn key(&self) -> String {
        let name = rustix::system::uname();
        let host = name.nodename().to_string_lossy().into_owned();
        format!("{host}:{}:{}", self.pid, self.start)
    }

    /// Writes its status file as Claude does: in place, in one write.
    pub fn write(&self, status: &str) -> anyhow::Result<()> {
        let now = wall_ms()?;
        let mut file = json!({
            "pid": self.pid,
            "procStart": self.start.to_string(),
            "sessionId": self.conversation(),
            "cwd": "/tmp",
            "version": "2.1.332",
            "kind": "interactive",
            "entrypoint": "cli",
            "updatedAt": now,
            "statusUpdatedAt": now,
            "status": status,
        });
        if status == "waiting" {
            file["waitingFor"] = json!("permission prompt");
        }
        let path = self.dir.join(format!("sessions/{}.json", self.pid));
        fs::write(path, file.to_string()).context("write a status file")
    }

    /// A hook of it, stamped now, as one request over a connection of its own, ready to be sent to this host.
    pub fn hook(
        &self,
        host: &str,
        token: &str,
        event: &str,
        id: &str,
        body: &Value,
    ) -> anyhow::Result<Vec<u8>> {
        let mut body = body.clone();
        body["hook_event_name"] = json!(event);
        body["session_id"] = json!(self.conversation());
        let body = body.to_string();
        let boot = clock_gettime(ClockId::Boottime);
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let head = format!(
            "POST /api/status/hook HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\
             x-pmux-token: {token}\r\nx-pmux-event: {event}\r\nx-pmux-pid: {}\r\nx-pmux-start: {}\r\n\
             x-pmux-stamp: {}{:09},{},{}\r\nx-pmux-id: {id}\r\ncontent-length: {}\r\n\r\n",
            self.pid,
            self.start,
            boot.tv_sec,
            boot.tv_nsec,
            boot_id.trim(),
            wall_ms()?,
            body.len(),
        );
        Ok([head.as_bytes(), body.as_bytes()].concat())
    }

    /// Ends it as a crash does.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(child) = &mut self.child {
            child.kill()?;
            child.wait()?;
        }
        self.child = None;
        Ok(())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It fails only for one that has ended.
        self.kill().ok();
    }
}

fn wall_ms() -> anyhow::Result<u128> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())
}

/// Agents in tabs of their own: each is the program of its tab.
pub fn in_tabs(server: &Server, count: usize) -> anyhow::Result<Vec<Agent>> {
    let mut agents = Vec::new();
    for _ in 0..count {
        let made: Value = serde_json::from_str(&server.tab()?)?;
        let tab = made["tab"].as_str().context("a tab")?;
        server.run(&["tab", "send", tab, "exec sleep 100000"])?;
        let pane = || -> anyhow::Result<u32> {
            let target = format!("={tab}:");
            let asked = [
                "list-panes",
                "-t",
                &target,
                "-F",
                "#{pane_pid} #{pane_current_command}",
            ];
            let said = purplemux_lab::tmux::run(server.tmux(), &asked)?;
            let (pid, command) = said.trim().split_once(' ').context("a pane")?;
            ensure!(command == "sleep", "{command} runs");
            Ok(pid.parse()?)
        };
        let pid = purplemux_lab::clock::until(Duration::from_secs(20), || pane().ok())
            .context("a stand-in in a tab")?;
        agents.push(Agent::of(server.home(), pid)?);
    }
    Ok(agents)
}

/// Sends one request over a new connection to the unix socket; the answer's status.
pub fn post(socket: &PathBuf, request: &[u8]) -> anyhow::Result<u16> {
    let mut stream = UnixStream::connect(socket).context("connect")?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(request)?;
    status(&mut stream)
}

/// The status of an answer; reads it to its end.
pub fn status(stream: &mut impl std::io::Read) -> anyhow::Result<u16> {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let status = answer.get(9..12).context("no answer")?;
    Ok(std::str::from_utf8(status)?.parse()?)
}
