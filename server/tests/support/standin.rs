//! Claudes that only sleep: the test writes their status files and fires their hooks, and looks at what the
//! server makes of it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{Answer, PATIENCE, TestServer};

/// A process that stands in for a Claude.
pub struct Standin {
    pub child: Child,
    pub start: u64,
    pub sessions: PathBuf,
}

impl Standin {
    pub fn new(dir: &Path) -> Self {
        Self::in_claude_dir(dir, None)
    }

    /// As a Claude whose CLAUDE_CONFIG_DIR is this.
    pub fn in_claude_dir(dir: &Path, config: Option<&Path>) -> Self {
        let home = dir.join("person");
        let sessions = config.unwrap_or(&home.join(".claude")).join("sessions");
        fs::create_dir_all(&sessions).unwrap();
        let child = Command::new("sleep")
            .arg("600")
            .current_dir(dir)
            .env("HOME", &home)
            .envs(config.map(|config| ("CLAUDE_CONFIG_DIR", config)))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let start = start_of(child.id()).parse().unwrap();
        Self {
            child,
            start,
            sessions,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn file(&self) -> PathBuf {
        self.sessions.join(format!("{}.json", self.pid()))
    }

    pub fn status(&self, status: &str) -> String {
        let now = now_ms();
        let mut file = json!({
            "pid": self.pid(),
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
        file.to_string()
    }

    /// As Claude does it: in place, in one write.
    pub fn write(&self, status: &str) {
        fs::write(self.file(), self.status(status)).unwrap();
    }

    /// Its transcript, in the directory of Claude's that its status file lies in.
    pub fn transcript(&self) -> PathBuf {
        let projects = self.sessions.parent().unwrap().join("projects/-tmp");
        projects.join(format!("{}.jsonl", self.conversation()))
    }

    pub fn conversation(&self) -> String {
        format!("00000000-0000-4000-8000-{:012}", self.pid())
    }

    /// Adds a line to its transcript, written now.
    pub fn writes_down(&self, line: &Value) {
        let path = self.transcript();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut line = line.clone();
        line["isSidechain"] = json!(false);
        line["sessionId"] = json!(self.conversation());
        line["timestamp"] = json!(jiff::Timestamp::now().to_string());
        let mut file = fs::File::options()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        writeln!(file, "{line}").unwrap();
    }

    /// The person's prompt, as Claude writes it down.
    pub fn writes_prompt(&self, text: &str) {
        self.writes_down(&json!({
            "type": "user",
            "message": { "role": "user", "content": text },
            "origin": { "kind": "human" },
            "promptSource": "typed",
        }));
    }

    /// The end of a turn with an answer.
    pub fn writes_answer(&self, text: &str) {
        self.writes_down(&json!({
            "type": "assistant",
            "message": {
                "id": "msg_1",
                "role": "assistant",
                "content": [{ "type": "text", "text": text }],
                "stop_reason": "end_turn",
            },
        }));
        self.writes_down(&json!({ "type": "system", "subtype": "turn_duration", "durationMs": 1 }));
    }

    /// The marker of an interrupt.
    pub fn writes_interrupt(&self) {
        self.writes_down(&json!({
            "type": "user",
            "message": {
                "role": "user",
                "content": [{ "type": "text", "text": "[Request interrupted by user for tool use]" }],
            },
        }));
    }

    /// A tool call and its result.
    pub fn writes_tool(&self) {
        self.writes_down(&json!({
            "type": "assistant",
            "message": {
                "id": "msg_1",
                "role": "assistant",
                "content": [{ "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": { "command": "true" } }],
                "stop_reason": "tool_use",
            },
        }));
        self.writes_down(&json!({
            "type": "user",
            "message": {
                "role": "user",
                "content": [{ "type": "tool_result", "tool_use_id": "toolu_1", "content": "", "is_error": false }],
            },
        }));
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([name, &self.pid().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Posts a hook of this process, stamped now.
    pub fn hook(&self, server: &TestServer, event: &str, body: &Value) -> Answer {
        let id = format!("{event}-{}", now_ms());
        let mut body = body.clone();
        body["hook_event_name"] = json!(event);
        body["session_id"] = json!(self.conversation());
        server.local(
            "POST",
            "/api/status/hook",
            &[
                ("x-pmux-token", &server.token()),
                ("x-pmux-event", event),
                ("x-pmux-pid", &self.pid().to_string()),
                ("x-pmux-start", &self.start.to_string()),
                ("x-pmux-id", &id),
            ],
            body.to_string().as_bytes(),
        )
    }
}

impl Drop for Standin {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// When a process was started: field 22 of `/proc/PID/stat` (proc(5)).
pub fn start_of(pid: impl std::fmt::Display) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').nth(19).unwrap().to_owned()
}

pub fn now_ms() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis()
}

pub fn items(server: &TestServer) -> Vec<Value> {
    let items = server.json(&["status", "--json"]);
    items.as_array().unwrap().clone()
}

pub fn item_of(server: &TestServer, pid: u32) -> Option<Value> {
    items(server).into_iter().find(|item| item["pid"] == pid)
}

pub fn wait<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = there() {
            return found;
        }
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the row of this process shows the state.
pub fn shows(server: &TestServer, standin: &Standin, state: &str) -> Value {
    wait(&format!("never {state}"), || {
        item_of(server, standin.pid()).filter(|item| item["state"] == state)
    })
}

pub fn gone(server: &TestServer, standin: &Standin) {
    wait("still shown", || {
        item_of(server, standin.pid()).is_none().then_some(())
    });
}
