//! K04: the person's own status line is shown unchanged with us before it, a project's is left alone, and the
//! server runs no command of anybody's.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it is wrong, and starts programs as Claude Code does"
)]

mod support;

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{TestServer, end_tmux, purplemux};

/// What Claude Code 2.1.332 tells its status line, in short.
const TOLD: &str = r#"{"session_id":"s","cwd":"/nowhere","model":{"id":"claude-opus-5-5"},"cost":{"total_cost_usd":0.5},"context_window":{"context_window_size":1000000,"current_usage":{"input_tokens":250000}}}"#;

/// A home with a stopped server, a person, and a Claude that prints its arguments and the settings among them.
struct Person {
    dir: tempfile::TempDir,
}

impl Person {
    fn new() -> Self {
        let dir = TestServer::start().end("-TERM");
        let person = Self { dir };
        fs::create_dir(person.claude()).unwrap();
        let versions = person.home().join("share/claude/versions");
        fs::create_dir_all(&versions).unwrap();
        fs::create_dir_all(person.project().join("deep")).unwrap();
        let program = versions.join("2.1.332");
        let script = "#!/bin/sh\n[ \"$1\" = --settings ] && cat \"$2\"\n";
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        person
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("person")
    }

    fn claude(&self) -> PathBuf {
        self.home().join(".claude")
    }

    fn project(&self) -> PathBuf {
        self.home().join("project")
    }

    fn own_line(&self, command: &str) {
        let line = json!({ "type": "command", "command": command, "padding": 2 });
        let settings = json!({ "statusLine": line, "model": "opus" });
        fs::write(self.claude().join("settings.json"), settings.to_string()).unwrap();
    }

    fn project_line(&self, name: &str, text: &str) {
        let folder = self.project().join(".claude");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), text).unwrap();
    }

    /// The settings that a Claude started here with these arguments is given.
    fn given(&self, cwd: &Path, arguments: &[&str]) -> Value {
        let output = purplemux(self.dir.path())
            .arg("claude-exec")
            .arg(self.dir.path().join("home"))
            .arg(self.home().join("share/claude/versions/2.1.332"))
            .args(arguments)
            .current_dir(cwd)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stdout)))
    }

    /// Runs a status line as Claude does.
    fn shown(&self, command: &str, input: &[u8]) -> Output {
        let ours = purplemux(self.dir.path());
        let environment: Vec<(OsString, OsString)> = ours
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect();
        let mut child = Command::new("/bin/sh")
            .args(["-c", command])
            .env_clear()
            .envs(environment)
            .env("CLAUDE_PID", std::process::id().to_string())
            .current_dir(self.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that reads nothing may have ended.
        child.stdin.take().unwrap().write_all(input).ok();
        child.wait_with_output().unwrap()
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        end_tmux(self.dir.path());
    }
}

#[test]
fn k04_the_person_s_own_line_is_chained_and_shown_unchanged() {
    let person = Person::new();
    for command in [
        "cat; pwd; echo 'it'\\''s mine' >&2; exit 3",
        "printf '%s|' \"$0\" \"$CLAUDE_PID\"; head -c 5 # with a remark",
        "echo one line, no input",
        "cat <<X\nhere\nX",
        "no-such-command",
    ] {
        person.own_line(command);
        let given = person.given(&person.project(), &[]);
        let line = &given["statusLine"];
        assert_eq!(line["padding"], 2);
        assert!(given["hooks"]["Stop"].is_array(), "the hooks as well");
        let ours = line["command"].as_str().unwrap();
        assert_ne!(ours, command);
        let (before, now) = (
            person.shown(command, TOLD.as_bytes()),
            person.shown(ours, TOLD.as_bytes()),
        );
        assert_eq!(now, before, "{command}");
    }
    // More than a pipe holds.
    person.own_line("wc -c; cat >/dev/null");
    let ours = person.given(&person.project(), &[])["statusLine"]["command"].clone();
    let large = vec![b' '; 3 * 1024 * 1024];
    let output = person.shown(ours.as_str().unwrap(), &large);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "3145728");
    // The person edits it while Claude runs, and takes it away.
    person.own_line("echo edited");
    let output = person.shown(ours.as_str().unwrap(), TOLD.as_bytes());
    assert_eq!(output.stdout, b"edited\n");
    fs::write(person.claude().join("settings.json"), "{}").unwrap();
    let output = person.shown(ours.as_str().unwrap(), TOLD.as_bytes());
    assert!(output.stdout.is_empty() && output.status.success());
    // What can't be read now is as it was, and without purplemux theirs stands alone.
    fs::write(person.claude().join("settings.json"), "{").unwrap();
    let output = person.shown(ours.as_str().unwrap(), b"123");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "3");
    fs::remove_file(person.dir.path().join("home/status-line.sh")).unwrap();
    let output = person.shown(ours.as_str().unwrap(), b"1234");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "4");
}

#[test]
fn k04_ours_is_added_only_where_it_hides_nothing() {
    let person = Person::new();
    let has =
        |cwd: &Path, arguments: &[&str]| !person.given(cwd, arguments)["statusLine"].is_null();
    // None of their own: an empty one would take a hint off Claude's screen.
    assert!(!has(&person.project(), &[]));
    person.own_line("echo mine");
    assert!(has(&person.project(), &[]));
    for name in ["settings.json", "settings.local.json"] {
        for text in [
            r#"{"statusLine": {"type": "command", "command": "echo project"}}"#,
            r#"{"statusLine": {"type": "new", "x": 1}}"#,
            "{broken",
        ] {
            person.project_line(name, text);
            assert!(!has(&person.project(), &[]), "{name}: {text}");
            assert!(!has(&person.project().join("deep"), &[]), "{name}: {text}");
        }
        person.project_line(name, r#"{"statusLine": null, "model": "x"}"#);
        assert!(has(&person.project(), &[]), "{name}");
    }
    for arguments in [
        &["--bare"][..],
        &["--safe-mode"],
        &["--setting-sources", "project"],
        &["--setting-sources=local"],
    ] {
        assert!(!has(&person.project(), arguments), "{arguments:?}");
    }
    // One given on the command line goes before all.
    let theirs = r#"{"statusLine": {"type": "command", "command": "echo given"}}"#;
    let given = person.given(&person.project(), &["--settings", theirs]);
    assert_eq!(given["statusLine"]["command"], "echo given");
    let given = person.given(&person.project(), &["--settings", "{\"model\": \"y\"}"]);
    assert_eq!(given["model"], "y");
    assert!(
        given["statusLine"]["command"]
            .as_str()
            .unwrap()
            .contains("echo mine")
    );
}

#[test]
fn k04_nobody_s_command_is_run_by_us_and_a_repository_s_not_at_all() {
    let person = Person::new();
    let trap = person.home().join("trapped");
    let command = format!("touch '{}'", trap.display());
    let line = json!({ "statusLine": { "type": "command", "command": command } });
    person.own_line("cat >/dev/null; echo mine");
    let ours = person.given(&person.project(), &[])["statusLine"]["command"].clone();
    for name in ["settings.json", "settings.local.json"] {
        person.project_line(name, &line.to_string());
    }
    let given = person.given(&person.project(), &[]).to_string();
    assert!(!given.contains("trapped"), "{given}");
    // Brought by a repository in mid-session: still the person's own is shown.
    let output = person.shown(ours.as_str().unwrap(), TOLD.as_bytes());
    assert_eq!(output.stdout, b"mine\n");
    // And what is posted is data, whatever it says.
    let server = TestServer::start();
    let token = server.token();
    let headers = [("x-pmux-token", token.as_str())];
    let body = json!({ "statusLine": { "command": command }, "command": command, "cwd": person.project() });
    let answer = server.request(
        "POST",
        "/api/status/statusline",
        &headers,
        body.to_string().as_bytes(),
    );
    assert_eq!(answer.status, 204);
    // What the server starts it starts at once, or never: its next answer comes after.
    server.json(&["status", "--json"]);
    assert!(!trap.exists());
}

#[test]
fn k04_the_route_takes_facts_and_no_hooks_from_those_with_the_token() {
    let server = TestServer::start();
    let token = server.token();
    let right = ("x-pmux-token", token.as_str());
    let post = |headers: &[(&str, &str)], body: &str| {
        let path = "/api/status/statusline";
        server
            .request("POST", path, headers, body.as_bytes())
            .status
    };
    assert_eq!(post(&[right], TOLD), 204);
    assert_eq!(post(&[], TOLD), 401);
    assert_eq!(post(&[right, ("cookie", "a=1")], TOLD), 403);
    assert_eq!(post(&[right, ("origin", "http://evil.example")], TOLD), 403);
    assert_eq!(post(&[right], r#"{"hook_event_name":"Stop"}"#), 400);
    assert_eq!(post(&[right], "[]"), 400);
    let hooks = server.request(
        "POST",
        "/api/status/hook",
        &[right],
        br#"{"hook_event_name":"StatusLine"}"#,
    );
    assert_eq!(hooks.status, 400);
    let answer = server.local("POST", "/api/status/statusline", &[right], TOLD.as_bytes());
    assert_eq!(answer.status, 204);
}

#[test]
fn k04_a_server_that_hangs_or_is_gone_holds_the_line_up_for_a_moment_at_most() {
    let person = Person::new();
    person.own_line("echo mine");
    let ours = person.given(&person.project(), &[])["statusLine"]["command"].clone();
    let time = || {
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let from = Instant::now();
            let output = person.shown(ours.as_str().unwrap(), TOLD.as_bytes());
            assert_eq!(output.stdout, b"mine\n");
            best = best.min(from.elapsed());
        }
        best
    };
    let gone = time();
    assert!(gone < Duration::from_millis(250), "{gone:?}");
    let socket = person.dir.path().join("home/purplemux.sock");
    if socket.exists() {
        fs::remove_file(&socket).unwrap();
    }
    let _hung = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let hung = time();
    assert!(hung < Duration::from_millis(250), "{hung:?}");
}
