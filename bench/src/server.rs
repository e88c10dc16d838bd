//! One `purplemux serve` in a throw-away home, for what needs no Claude Code. Ends it and its tmux server when
//! dropped.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use purplemux_lab::clock::until;
use purplemux_lab::home::Home;
use purplemux_lab::product::{PATIENCE, product_binary};
use rustix::process::{Pid, Signal, kill_process};

/// The server and its home.
pub struct Server {
    /// `None`: ended on purpose.
    child: Option<Child>,
    home: Home,
    binary: PathBuf,
    /// Of its tmux server, which outlives it.
    tmux: PathBuf,
}

impl Server {
    /// Starts it in a new home, with one tab, and returns when it has answered.
    pub fn start() -> anyhow::Result<Self> {
        // No Claude Code runs here, so nobody asks its API.
        let home = Home::new("http://127.0.0.1:9")?;
        let binary = product_binary()?;
        let child = Some(spawn(&home, &binary)?);
        let mut server = Self {
            child,
            home,
            binary,
            tmux: PathBuf::new(),
        };
        until(PATIENCE, || server.health().ok()).context("purplemux serve does not answer")?;
        let made: serde_json::Value = serde_json::from_str(&server.tab()?)?;
        server.tmux = made["tmux"]["socket"].as_str().context("a socket")?.into();
        Ok(server)
    }

    /// Opens one more tab; what was said about it, as JSON.
    pub fn tab(&self) -> anyhow::Result<String> {
        let dir = self.home.dir();
        let dir = dir.to_str().context("the path is UTF-8")?;
        self.run(&["tab", "create", "--cwd", dir, "--json"])
    }

    /// Starts it again in the same home; returns at once.
    pub fn start_again(&mut self) -> anyhow::Result<()> {
        self.child = Some(spawn(&self.home, &self.binary)?);
        Ok(())
    }

    /// Ends it; the tabs live on.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)?;
        if let Some(mut child) = self.child.take() {
            child.wait().context("wait for the server's end")?;
        }
        Ok(())
    }

    /// Its process.
    pub fn pid(&self) -> anyhow::Result<u32> {
        Ok(self.running()?.id())
    }

    /// Its home.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Its TCP port.
    pub fn port(&self) -> anyhow::Result<u16> {
        let text = fs::read_to_string(self.home.product().join("port"))?;
        Ok(text.trim().parse()?)
    }

    /// What its hooks carry.
    pub fn token(&self) -> anyhow::Result<String> {
        let token = fs::read_to_string(self.home.product().join("cli-token"))?;
        Ok(token.trim().to_owned())
    }

    /// Its unix socket.
    pub fn socket(&self) -> PathBuf {
        self.home.product().join("purplemux.sock")
    }

    /// The socket of its tmux server.
    pub fn tmux(&self) -> &PathBuf {
        &self.tmux
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        kill_process(Pid::from_child(self.running()?), signal).context("signal the server")
    }

    fn running(&self) -> anyhow::Result<&Child> {
        self.child.as_ref().context("the server has been ended")
    }

    /// Asks `/api/health` over the unix socket.
    pub fn health(&self) -> anyhow::Result<()> {
        self.local("/api/health").map(drop)
    }

    /// What is answered to a `GET` over the unix socket, without its head.
    pub fn local(&self, path: &str) -> anyhow::Result<String> {
        let mut socket = UnixStream::connect(self.socket())?;
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        write!(
            socket,
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "it answered {answer}");
        let (_, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        Ok(body.to_owned())
    }

    /// Runs a command of the product to its end; what it printed.
    pub fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = command(&self.home, &self.binary)
            .args(arguments)
            .output()
            .context("start purplemux")?;
        ensure!(
            output.status.success(),
            "purplemux {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Each step fails only when there is nothing left to end.
        self.signal(Signal::CONT).ok();
        self.signal(Signal::TERM).ok();
        if let Some(child) = &mut self.child {
            if until(Duration::from_secs(5), || child.try_wait().ok().flatten()).is_none() {
                child.kill().ok();
            }
            child.wait().ok();
        }
        if self.tmux.is_absolute() {
            purplemux_lab::tmux::run(&self.tmux, &["kill-server"]).ok();
        }
    }
}

fn command(home: &Home, binary: &PathBuf) -> Command {
    let mut command = Command::new(binary);
    command
        .env_clear()
        .envs(home.env())
        .current_dir(home.dir())
        .stdin(Stdio::null());
    command
}

fn spawn(home: &Home, binary: &PathBuf) -> anyhow::Result<Child> {
    let log = fs::File::create(home.root().join("serve.log"))?;
    command(home, binary)
        .args(["serve", "--port", "0"])
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("start purplemux serve")
}
