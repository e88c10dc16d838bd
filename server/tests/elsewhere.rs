//! Claudes outside our tabs: found from their files and processes, told apart by the tmux server they run
//! in, and shown in their own terminal without anything of it being changed.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it stands, starts programs and looks at the real clock"
)]

mod support;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use support::{TestServer, eventually, place};

/// A tmux server of the person's own with one session, `main`, in whose first pane something called `claude`
/// runs after it has printed a mark.
struct Own {
    socket: PathBuf,
    pid: u32,
}

impl Own {
    fn start(dir: &Path, name: &str, environment: &[(&str, &Path)]) -> Self {
        let claude = dir.join("claude");
        if !claude.exists() {
            fs::copy("/bin/sleep", &claude).unwrap();
        }
        // Where the end of a test looks for servers that are left.
        let folder = dir.join("tmux-own");
        fs::create_dir_all(&folder).unwrap();
        let socket = folder.join(name);
        let mut command = Command::new("tmux");
        command.args(["-f", "/dev/null", "-S"]).arg(&socket).args([
            "new-session",
            "-d",
            "-s",
            "main",
            "-x",
            "100",
            "-y",
            "20",
            "-c",
            "/",
        ]);
        for (variable, value) in environment {
            command
                .arg("-e")
                .arg(format!("{variable}={}", value.display()));
        }
        let run = format!("echo this is {name}; exec {} 600", claude.display());
        let started = command.args(["sh", "-c", &run]).env_remove("TMUX").status();
        assert!(started.unwrap().success());
        let mut own = Self { socket, pid: 0 };
        eventually("its claude runs", || {
            own.pid = own
                .tmux(&["list-panes", "-t", "%0", "-F", "#{pane_pid}"])
                .parse()
                .unwrap();
            let comm = fs::read_to_string(format!("/proc/{}/comm", own.pid));
            comm.is_ok_and(|comm| comm.trim() == "claude")
        });
        own
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        let output = command.arg("-S").arg(&self.socket).args(arguments).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The person's own terminal on it, of that size.
    fn look_at(&self, size: &str) -> Child {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket);
        let client = command
            .args(["-C", "attach", "-t", "main"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        let mut client = client.unwrap();
        let input = client.stdin.as_mut().unwrap();
        // Said again until it holds: what is written before the client has attached may be lost.
        eventually("the person's terminal has its size", || {
            writeln!(input, "refresh-client -C {size}").unwrap();
            self.size() == size
        });
        client
    }

    fn size(&self) -> String {
        let format = "#{window_width}x#{window_height}";
        self.tmux(&["display-message", "-p", "-t", "%0", format])
    }

    /// Writes its status file as Claude would.
    fn says(&self, claude_dir: &Path, status: &str) {
        let sessions = claude_dir.join("sessions");
        fs::create_dir_all(&sessions).unwrap();
        let start = support::standin::start_of(self.pid);
        let file = json!({
            "pid": self.pid,
            "procStart": start,
            "sessionId": format!("00000000-0000-4000-8000-{:012}", self.pid),
            "cwd": "/",
            "version": "2.1.332",
            "kind": "interactive",
            "entrypoint": "cli",
            "status": status,
        });
        let path = sessions.join(format!("{}.json", self.pid));
        fs::write(path, file.to_string()).unwrap();
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        let ended = command
            .arg("-S")
            .arg(&self.socket)
            .arg("kill-server")
            .output();
        // A test may have ended it already.
        ended.unwrap();
    }
}

fn item_of(server: &TestServer, pid: u32) -> Option<Value> {
    let items = server.json(&["status", "--json"]);
    let items = items.as_array().unwrap().clone();
    items.into_iter().find(|item| item["pid"] == pid)
}

fn until_state(server: &TestServer, own: &Own, state: &str) -> Value {
    eventually(&format!("{} is {state}", own.pid), || {
        item_of(server, own.pid).is_some_and(|item| item["state"] == state)
    });
    item_of(server, own.pid).unwrap()
}

#[test]
fn n05_two_servers_with_the_same_names_are_never_mixed_up() {
    let dir = place();
    let claude_dir = dir.path().join("person/.claude");
    let one = Own::start(dir.path(), "one", &[]);
    let two = Own::start(dir.path(), "two", &[]);
    one.says(&claude_dir, "idle");
    let server = TestServer::start_in(dir);
    two.says(&claude_dir, "busy");
    let shown = until_state(&server, &one, "idle");
    assert_eq!(
        (&shown["tab"], &shown["terminal"]),
        (&Value::Null, &json!(true))
    );
    until_state(&server, &two, "busy");
    assert_eq!(until_state(&server, &one, "idle")["id"], shown["id"]);

    // Each opens in its own server, and the window keeps the size that the person's terminal gave it.
    let browser = server.browser();
    for (own, mark) in [(&one, "this is one"), (&two, "this is two")] {
        let id = item_of(&server, own.pid).unwrap()["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let mut looks = own.look_at("90x18");
        let mut terminal = browser.terminal_elsewhere(&id, 60, 10);
        terminal.until(mark);
        assert_eq!(own.size(), "90x18");
        // Without its input a control client leaves.
        drop(looks.stdin.take());
        looks.wait().unwrap();
    }

    // One ends: its row goes, the other's stays.
    one.tmux(&["kill-server"]);
    eventually("the ended one is gone", || {
        item_of(&server, one.pid).is_none()
    });
    until_state(&server, &two, "busy");
    // Its socket is not there any more, and no server is started in its place.
    let id = shown["id"].as_str().unwrap();
    let path = format!("/api/terminal?item={id}");
    assert_eq!(
        browser.upgrade(&path, Some(&server.origin())).err(),
        Some(404)
    );
    assert!(
        Command::new("tmux")
            .arg("-S")
            .arg(&one.socket)
            .arg("has-session")
            .status()
            .is_ok_and(|s| !s.success())
    );
}

#[test]
fn n08_a_directory_of_its_own_is_found_from_the_process() {
    let dir = place();
    let other = dir.path().join("other-claude");
    let own = Own::start(dir.path(), "own", &[("CLAUDE_CONFIG_DIR", &other)]);
    own.says(&other, "idle");
    // Nothing points there but the process; the server was started without the variable.
    let server = TestServer::start_in(dir);
    until_state(&server, &own, "idle");
    own.says(&other, "busy");
    until_state(&server, &own, "busy");
}
