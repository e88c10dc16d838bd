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
    child: Child,
    home: Home,
    binary: PathBuf,
}

impl Server {
    /// Starts it in a new home and returns when it has answered.
    pub fn start() -> anyhow::Result<Self> {
        // No Claude Code runs here, so nobody asks its API.
        let home = Home::new("http://127.0.0.1:9")?;
        let binary = product_binary()?;
        let child = spawn(&home, &binary)?;
        let server = Self {
            child,
            home,
            binary,
        };
        until(PATIENCE, || server.health().ok()).context("purplemux serve does not answer")?;
        Ok(server)
    }

    /// Ends it and starts it again; the home stays.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.stop()?;
        self.child = spawn(&self.home, &self.binary)?;
        Ok(())
    }

    /// Ends it; the tabs live on.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)?;
        self.child.wait().context("wait for the server's end")?;
        Ok(())
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its home.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), signal).context("signal the server")
    }

    /// Asks `/api/health` over the unix socket.
    pub fn health(&self) -> anyhow::Result<()> {
        let mut socket = UnixStream::connect(self.home.product().join("purplemux.sock"))?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        socket.write_all(
            b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        )?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "it answered {answer}");
        Ok(())
    }

    /// Runs a command of the product and returns what it printed.
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
        // A server that hangs (it may have been stopped on purpose) is killed; each step fails only when the
        // one before has done its work.
        self.signal(Signal::CONT).ok();
        if let Ok(listed) = self.run(&["tab", "list", "--json"]) {
            for id in listed
                .split("\"id\":\"")
                .skip(1)
                .filter_map(|rest| rest.split('"').next())
            {
                self.run(&["tab", "close", "--force", id]).ok();
            }
        }
        self.signal(Signal::TERM).ok();
        if until(Duration::from_secs(5), || {
            self.child.try_wait().ok().flatten()
        })
        .is_none()
        {
            self.child.kill().ok();
        }
        self.child.wait().ok();
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
