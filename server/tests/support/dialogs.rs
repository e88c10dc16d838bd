//! A program in a tab that stands in for a Claude with a dialog: it draws what the test says, writes down each key that
//! reaches it, and does what the test has laid down for that key. It is no Claude: whether the real one draws and
//! answers so is proved elsewhere.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::standin::{now_ms, wait};
use super::{Browser, TestServer};

/// Columns of a tab that no terminal is attached to.
const COLS: usize = 120;

/// It reads raw keys. Every turn it draws `screen` anew if that has changed; `on` holds commands for keys.
const PROGRAM: &str = r#"#!/bin/bash
cd "$1"
stty raw -echo
printf '\033[?2004h'
echo "$$ $(cut -d' ' -f22 /proc/$$/stat)" > pid.new && mv pid.new pid
sequence=
while :; do
    if [ -e screen.new ]; then mv screen.new screen; printf '\033[2J\033[H'; cat screen; fi
    key=
    # A key may arrive in the very moment that the time is over.
    IFS= read -rsN1 -t 0.01 -d '' key
    if [ -n "$key" ]; then
        printf '%q\n' "$key" >> keys
        sequence="$sequence$key"
        case "$sequence" in
            $'\033[A') sequence=; name=up ;;
            $'\033[B') sequence=; name=down ;;
            $'\033['*|$'\033') continue ;;
            $'\r' | $'\n') sequence=; name=enter ;;
            *) name="$sequence"; sequence= ;;
        esac
        [ -e "on/$name" ] && . "on/$name"
    elif [ "$sequence" = $'\033' ]; then
        sequence=
        [ -e on/escape ] && . on/escape
    fi
done
"#;

/// One such program, running in a tab.
pub struct Actor {
    pub tab: String,
    pub pid: u32,
    start: u64,
    dir: PathBuf,
    sessions: PathBuf,
}

impl Actor {
    /// Starts it in a new tab; it has no status file yet.
    pub fn new(server: &TestServer, browser: &Browser<'_>) -> Self {
        let tab = browser.tab();
        let dir = server.dir.path().join(format!("actor-{tab}"));
        fs::create_dir_all(dir.join("on")).unwrap();
        let program = dir.join("claude");
        fs::write(&program, PROGRAM).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let typed = format!("'{}' '{}'", program.display(), dir.display());
        let sent = browser.write(
            "POST",
            &format!("/api/tabs/{tab}/send"),
            &json!({ "text": typed, "enter": true }),
        );
        assert_eq!(sent.status, 204, "{}", sent.text());
        let said = wait("the actor does not start", || {
            let said = fs::read_to_string(dir.join("pid")).ok()?;
            let (pid, start) = said.trim().split_once(' ')?;
            Some((pid.parse().ok()?, start.parse().ok()?))
        });
        let sessions = server.dir.path().join("person/.claude/sessions");
        fs::create_dir_all(&sessions).unwrap();
        Self {
            tab,
            pid: said.0,
            start: said.1,
            dir,
            sessions,
        }
    }

    /// What its status file says of it, as a text.
    fn status(&self, status: &str, since_ms: u128) -> String {
        let mut file = json!({
            "pid": self.pid,
            "procStart": self.start.to_string(),
            "sessionId": format!("00000000-0000-4000-8000-{:012}", self.pid),
            "cwd": "/tmp", "version": "2.1.332", "kind": "interactive", "entrypoint": "cli",
            "status": status, "updatedAt": since_ms, "statusUpdatedAt": since_ms,
        });
        if status == "waiting" {
            file["waitingFor"] = json!("permission prompt");
        }
        file.to_string()
    }

    /// Tells of an event as Claude's hooks do.
    pub fn hook(&self, server: &TestServer, event: &str, body: &Value) {
        let mut body = body.clone();
        body["hook_event_name"] = json!(event);
        body["session_id"] = json!(format!("00000000-0000-4000-8000-{:012}", self.pid));
        let id = format!("{event}-{}", now_ms());
        let headers = [
            ("x-pmux-token", server.token()),
            ("x-pmux-event", event.to_owned()),
            ("x-pmux-pid", self.pid.to_string()),
            ("x-pmux-start", self.start.to_string()),
            ("x-pmux-id", id),
        ];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let body = body.to_string();
        let told = server.local("POST", "/api/status/hook", &headers, body.as_bytes());
        assert_eq!(told.status, 204, "{}", told.text());
    }

    pub fn file(&self) -> PathBuf {
        self.sessions.join(format!("{}.json", self.pid))
    }

    /// Writes its status file, as Claude does it.
    pub fn is(&self, status: &str) {
        fs::write(self.file(), self.status(status, now_ms())).unwrap();
    }

    /// Draws this.
    pub fn draws(&self, screen: &str) {
        let path = self.dir.join("screen.tmp");
        fs::write(&path, screen.replace('\n', "\r\n")).unwrap();
        fs::rename(path, self.dir.join("screen.new")).unwrap();
        let pane = format!("{}:", self.tab);
        wait("it is not drawn", || {
            let below = self.dir.parent()?;
            let drawn = super::tmux_below(below, &["capture-pane", "-p", "-t", &pane]);
            let trimmed = |text: &str| {
                let rows: Vec<String> = text.lines().map(|row| row.trim_end().to_owned()).collect();
                rows.join("\n").trim_end().to_owned()
            };
            (trimmed(&drawn) == trimmed(screen)).then_some(())
        });
    }

    /// From now on this key makes it draw that, and its status file say this.
    pub fn on(&self, key: &str, screen: &str, status: &str) {
        let drawn = self.dir.join(format!("drawn-{key}"));
        fs::write(&drawn, screen.replace('\n', "\r\n")).unwrap();
        let file = self.dir.join(format!("file-{key}"));
        fs::write(&file, self.status(status, now_ms() + 1)).unwrap();
        let commands = format!(
            "cp 'file-{key}' '{}'; printf '\\033[2J\\033[H'; cat 'drawn-{key}'\n",
            self.file().display()
        );
        fs::write(self.dir.join("on").join(key), commands).unwrap();
    }

    /// From now on this key makes it draw that; its status file stays.
    pub fn redraws_on(&self, key: &str, screen: &str) {
        fs::write(
            self.dir.join(format!("drawn-{key}")),
            screen.replace('\n', "\r\n"),
        )
        .unwrap();
        let commands = format!("printf '\\033[2J\\033[H'; cat 'drawn-{key}'\n");
        fs::write(self.dir.join("on").join(key), commands).unwrap();
    }

    /// From now on this key makes it run these commands of a shell, as a tool of Claude's would.
    pub fn runs_on(&self, key: &str, commands: &str) {
        fs::write(self.dir.join("on").join(key), format!("{commands}\n")).unwrap();
    }

    /// The keys that have reached it, one after the other, as bash quotes them.
    pub fn keys(&self) -> Vec<String> {
        let keys = fs::read_to_string(self.dir.join("keys")).unwrap_or_default();
        keys.lines().map(str::to_owned).collect()
    }

    /// Its row.
    pub fn row(&self, server: &TestServer) -> Value {
        let rows = super::standin::items(server);
        let mut rows = rows.into_iter();
        rows.find(|row| row["id"] == *self.tab).unwrap_or_default()
    }

    /// Its ask, once its card is there.
    pub fn ask(&self, server: &TestServer) -> Value {
        wait("no card", || {
            let ask = self.row(server)["detail"]["ask"].clone();
            ask["card"].is_object().then_some(ask)
        })
    }
}

/// A rule as wide as the pane.
fn rule(of: char) -> String {
    std::iter::repeat_n(of, COLS).collect()
}

/// A permission dialog for a command, drawn as Claude Code 2.1.332 does; `marked` from 0.
pub fn permission(command: &str, options: &[&str], marked: usize) -> String {
    let mut screen = format!(
        "❯ a prompt\n\n● I'll use a tool.\n\n{}\n Bash command\n\n Run a lab command\n{frame}\n {command}\n{frame}\n Do you want to proceed?\n",
        rule('─'),
        frame = rule('╌'),
    );
    for (at, option) in options.iter().enumerate() {
        let mark = if at == marked { '❯' } else { ' ' };
        screen.push_str(&format!(" {mark} {}. {option}\n", at + 1));
    }
    screen + "\n Esc to cancel · Tab to amend"
}

/// The trust dialog, with this option marked.
pub fn trust(marked: usize) -> String {
    let mark = |at| if at == marked { '❯' } else { ' ' };
    format!(
        "{}\n Accessing workspace:\n\n /home/dev/proj\n\n Quick safety check: Is this a project you created or one you trust?\n\n Security guide\n\n {} No, exit\n {} Yes, I trust this folder\n\n Enter to confirm · Esc to cancel",
        rule('─'),
        mark(0),
        mark(1),
    )
}

/// Claude's own box with nothing in it.
pub fn prompt() -> String {
    format!(
        "● done\n\n{rule}\n❯ \n{rule}\n  ⏸ manual mode on · ? for shortcuts",
        rule = rule('─')
    )
}

/// The person's own menu.
pub fn menu() -> String {
    format!(
        "{}\n  Select model\n  Your pick is the default for new sessions.\n\n  ❯ 1. Default (recommended) ✔  Use the default model\n    2. Opus                     Best for everyday tasks\n\n  ◐ Medium effort (default) ←/→ to adjust\n\n  s to use this session only · Enter to save · Esc to cancel",
        rule('▔')
    )
}

/// Where the home of the person is.
pub fn person(server: &TestServer) -> PathBuf {
    Path::new(server.dir.path()).join("person")
}
