//! The journal through a whole server: why a badge is what it is, what is left of it after a restart, what
//! happens on a full disk, what is left out, and an export that can be played. Also the commands that ask.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it stands, starts programs and looks at the real clock"
)]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use purplemux_wire::journal::{self, What};
use rusqlite::Connection;
use serde_json::{Value, json};
use support::standin::{Standin, shows, wait};
use support::{TestServer, place, purplemux, start};

fn id(standin: &Standin) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    format!("{}:{}:{}", host.trim(), standin.pid(), standin.start)
}

/// Idle, a prompt, and a command that wants permission.
fn asks(server: &TestServer, standin: &Standin) {
    standin.write("idle");
    shows(server, standin, "idle");
    let prompt = json!({ "prompt": "swordfish please" });
    assert_eq!(
        standin.hook(server, "UserPromptSubmit", &prompt).status,
        204
    );
    standin.write("busy");
    shows(server, standin, "busy");
    let tool = json!({ "tool_name": "Bash", "tool_input": { "command": "touch swordfish" } });
    assert_eq!(standin.hook(server, "PermissionRequest", &tool).status, 204);
    standin.write("waiting");
    shows(server, standin, "needs-input");
}

fn witness<'v>(said: &'v Value, source: &str) -> &'v Value {
    let all = said["witnesses"].as_array().unwrap();
    all.iter().find(|w| w["source"] == source).unwrap()
}

fn states(said: &Value) -> Vec<&str> {
    let all = said["transitions"].as_array().unwrap();
    all.iter()
        .map(|t| t["state"].as_str().unwrap_or("none"))
        .collect()
}

/// The journal's records as they lie in the database.
fn records(home: &Path) -> Vec<What> {
    let db = Connection::open(home.join("purplemux.db")).unwrap();
    let mut all = db
        .prepare("SELECT record FROM journal ORDER BY seq")
        .unwrap();
    let lines = all.query_map([], |row| row.get::<_, String>(0)).unwrap();
    lines
        .map(|line| journal::decode(&line.unwrap()).unwrap().what)
        .collect()
}

fn notices(server: &TestServer) -> Vec<Value> {
    let items = server.local("GET", "/api/items", &[], b"").json();
    items["notices"].as_array().unwrap().clone()
}

#[test]
fn a_badge_says_who_decided_it_who_agrees_and_what_came_before() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    asks(&server, &standin);
    let said = server.json(&["explain", &id(&standin), "--json"]);
    assert_eq!(said["state"], "needs-input");
    assert_eq!(
        (&said["reason"], &said["ask"]),
        (&json!("asked"), &json!("permission"))
    );
    assert!(
        said["sentence"]
            .as_str()
            .unwrap()
            .starts_with("Claude asked for permission"),
        "{said}"
    );
    // The file and the request say the same; one of them was first.
    let hook = witness(&said, "hook");
    let file = witness(&said, "file");
    assert_eq!(hook["text"], "PermissionRequest · Bash");
    let named = format!(
        "sessions/{}.json · waiting · permission prompt",
        standin.pid()
    );
    assert_eq!(file["text"], named);
    assert_eq!(file["stand"], "decided", "{said}");
    assert_eq!(hook["stand"], "agrees", "{said}");
    assert!(hook["distance_ms"].as_i64().unwrap() <= 0, "{said}");
    assert_eq!(witness(&said, "transcript")["stand"], "missing");
    let process = witness(&said, "process");
    assert_eq!(process["text"], format!("claude {} alive", standin.pid()));
    assert_eq!(process["stand"], "agrees");
    let evidence = said["evidence"].as_array().unwrap();
    let decided = evidence.iter().filter(|e| e["stand"] == "decided").count();
    assert_eq!(decided, 1, "{said}");
    assert!(
        evidence
            .iter()
            .any(|e| e["text"] == "UserPromptSubmit" && e["stand"] == "older")
    );
    // It may have been found before the server had looked around, and be unknown first.
    let states = states(&said);
    assert!(
        states.ends_with(&["idle", "busy", "needs-input"].map(Into::into)),
        "{states:?}"
    );

    let text = server.cli_ok(&["explain", &id(&standin)]);
    for part in [
        "status file",
        "decided",
        "disagrees, older",
        "missing",
        "idle ",
        " → busy ",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let browser = server.browser();
    let over_tcp = browser.get(&format!("/api/explain?item={}", id(&standin)));
    assert_eq!(over_tcp.json()["state"], "needs-input");
    // The journal itself holds what was said: it is for the person at the machine.
    assert_eq!(browser.get("/api/journal?item=x").status, 404);
    let unknown = server.cli(&["explain", "nobody"]);
    assert_eq!(unknown.status.code(), Some(1));
    let why = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(why.contains("There is no session \"nobody\""), "{why}");
    assert_eq!(server.local("GET", "/api/explain", &[], b"").status, 400);
}

#[test]
fn badges_of_before_a_crash_are_still_told() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    asks(&server, &standin);
    standin.write("idle");
    shows(&server, &standin, "idle");
    // It ended without a word: the new server looks for its end once more.
    let server = TestServer::start_in(server.end("-KILL"));
    shows(&server, &standin, "idle");
    standin.write("busy");
    shows(&server, &standin, "busy");
    let said = server.json(&["explain", &id(&standin), "--json"]);
    assert_eq!(
        states(&said),
        ["needs-input", "idle", "unknown", "idle", "busy"],
        "{said}"
    );
    drop(standin);
    let dir = server.end("-TERM");
    let starts = records(&dir.path().join("home"));
    let starts = starts
        .iter()
        .filter(|what| matches!(what, What::Started(_)));
    assert_eq!(starts.count(), 2);
    support::end_tmux(dir.path());
}

#[test]
fn texts_are_left_out_when_the_person_says_so() {
    for (wanted, texts) in [(None, true), (Some("false"), false), (Some("nope"), false)] {
        let dir = place();
        let mut command = purplemux(dir.path());
        command.args(["serve", "--port", "0"]);
        command.envs(wanted.map(|wanted| ("PURPLEMUX_JOURNAL_TEXT", wanted)));
        let (child, port) = start(command);
        let server = TestServer::adopt(dir, port, child);
        let standin = Standin::new(server.dir.path());
        asks(&server, &standin);
        drop(standin);
        let dir = server.end("-TERM");
        let all = records(&dir.path().join("home"));
        let prompts = all
            .iter()
            .filter(|what| format!("{what:?}").contains("Prompt {"));
        assert!(prompts.count() > 0, "the event itself is kept");
        let told = all
            .iter()
            .any(|what| format!("{what:?}").contains("swordfish"));
        assert_eq!(told, texts, "{wanted:?}");
        support::end_tmux(dir.path());
    }
}

/// The disk is full for the server alone: it may write no file beyond its first kilobyte.
fn disk(server: &TestServer, limit: Option<u64>) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(server.pid()).unwrap());
    let limit = rustix::process::Rlimit {
        current: limit,
        maximum: None,
    };
    rustix::process::prlimit(pid, rustix::process::Resource::Fsize, limit).unwrap();
}

#[test]
fn on_a_full_disk_badges_go_on_and_the_gap_is_written_down_afterwards() {
    let dir = place();
    let plain = purplemux(dir.path());
    // A program that may not write beyond a limit is killed unless it ignores the signal, as here.
    let mut command = Command::new("sh");
    command
        .env_clear()
        .envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .args([
            "-c",
            "trap '' XFSZ; exec \"$0\" serve --port 0",
            env!("CARGO_BIN_EXE_purplemux"),
        ])
        .stdin(Stdio::null());
    let (child, port) = start(command);
    let server = TestServer::adopt(dir, port, child);
    let standin = Standin::new(server.dir.path());
    standin.write("idle");
    shows(&server, &standin, "idle");
    assert_eq!(notices(&server), [""; 0]);

    disk(&server, Some(1024));
    standin.write("busy");
    shows(&server, &standin, "busy");
    wait("nobody is told", || {
        (!notices(&server).is_empty()).then_some(())
    });
    assert_eq!(
        notices(&server),
        [
            "History is not being saved; badges go on from memory. Check the disk that holds purplemux's home."
        ]
    );
    // Longer than evidence is held back for its batch.
    let until = Instant::now() + Duration::from_millis(400);
    let mut changes = 1;
    while Instant::now() < until {
        for (status, state) in [("waiting", "needs-input"), ("busy", "busy")] {
            standin.write(status);
            shows(&server, &standin, state);
            changes += 1;
        }
    }
    let said = server.json(&["explain", &id(&standin), "--json"]);
    assert_eq!(states(&said)[3..], ["needs-input", "busy"]);

    disk(&server, None);
    wait("it is still said", || {
        notices(&server).is_empty().then_some(())
    });
    standin.write("idle");
    shows(&server, &standin, "idle");
    drop(standin);
    let dir = server.end("-TERM");
    let all = records(&dir.path().join("home"));
    let lost: Vec<_> = all
        .iter()
        .filter_map(|what| match what {
            What::Lost(lost) => Some(lost),
            What::Evidence(_) | What::Verdict(_) | What::Started(_) => None,
        })
        .collect();
    // Every verdict, and all readings but those that waited for their batch when there was room again.
    let missing: u64 = lost.iter().map(|lost| lost.count).sum();
    assert!(
        missing > changes,
        "{missing} of {changes} changes: {lost:?}"
    );
    assert!(
        lost.iter()
            .all(|lost| lost.from_ms <= lost.to_ms && !lost.why.is_empty())
    );
    // What came after the gap is there again.
    let gap = all
        .iter()
        .rposition(|what| matches!(what, What::Lost(_)))
        .unwrap();
    let after = all[gap..]
        .iter()
        .filter(|what| matches!(what, What::Verdict(_)));
    assert!(after.count() > 0, "{all:?}");
    support::end_tmux(dir.path());
}

#[test]
fn an_agents_journal_becomes_a_recorded_run_also_after_its_end() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    let agent = id(&standin);
    asks(&server, &standin);
    let pid = standin.pid();
    drop(standin);
    wait("still there", || {
        let said = server.cli(&["explain", &agent, "--json"]);
        (!said.status.success()).then_some(())
    });
    let run = server.dir.path().join("run");
    let run = run.to_str().unwrap();
    // Evidence is written within a tenth of a second.
    wait("no end in the journal", || {
        fs::remove_dir_all(run).ok();
        let done = server.cli(&["explain", &agent, "--export", run]);
        assert!(done.status.success(), "{done:?}");
        let expect = fs::read_to_string(format!("{run}/expect")).unwrap();
        expect.contains("died A ").then_some(())
    });
    let read = |name: &str| fs::read_to_string(format!("{run}/{name}")).unwrap();
    let lines = |name: &str| -> Vec<Value> {
        read(name)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let mut statuses: Vec<Value> = lines("sessions.jsonl")
        .iter()
        .map(|line| line["value"]["status"].clone())
        .collect();
    // A file may be read twice.
    statuses.dedup();
    assert_eq!(statuses, ["idle", "busy", "waiting"]);
    let events: Vec<Value> = lines("hooks.jsonl")
        .iter()
        .map(|l| l["event"].clone())
        .collect();
    assert_eq!(events, ["UserPromptSubmit", "PermissionRequest"]);
    assert_eq!(
        lines("hooks.jsonl")[1]["input"]["tool_input"]["command"],
        "touch swordfish"
    );
    assert!(read("expect").contains(&format!("agent A {pid}\n")));
    assert!(
        !read("expect").contains("needs-input"),
        "judged by nobody yet"
    );
    assert!(read("shown.txt").contains("needs-input permission"));
    assert!(read("timeline.txt").contains("HOOK PermissionRequest Bash"));
    // What was written by hand is not overwritten.
    let again = server.cli(&["explain", &agent, "--export", run]);
    assert_eq!(again.status.code(), Some(1));
}

#[test]
fn wait_ends_as_it_says() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("idle");
    shows(&server, &standin, "idle");
    let agent = id(&standin);
    let code = |arguments: &[&str]| {
        let wait = [&["wait"], arguments].concat();
        server.cli(&wait).status.code()
    };
    assert_eq!(code(&[&agent, "--state", "busy,idle"]), Some(0));
    assert_eq!(
        code(&[&agent, "--state", "review", "--timeout", "0.05"]),
        Some(4)
    );
    assert_eq!(code(&["nobody", "--state", "idle"]), Some(1));
    assert_eq!(code(&[&agent, "--state", "sleepy"]), Some(2));
    assert_eq!(code(&[&agent]), Some(2));
    assert_eq!(
        code(&[&agent, "--state", "idle", "--timeout", "-1"]),
        Some(2)
    );

    let waiting = |state: &str| {
        purplemux(server.dir.path())
            .args(["wait", &agent, "--state", state, "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let reached = waiting("needs-input,review");
    standin.write("busy");
    shows(&server, &standin, "busy");
    standin.write("waiting");
    let reached = reached.wait_with_output().unwrap();
    assert_eq!(reached.status.code(), Some(0));
    let item: Value = serde_json::from_slice(&reached.stdout).unwrap();
    assert_eq!(
        (&item["id"], &item["state"]),
        (&json!(agent), &json!("needs-input"))
    );

    let left = waiting("review");
    drop(standin);
    assert_eq!(left.wait_with_output().unwrap().status.code(), Some(1));
    let dir = server.end("-TERM");
    let alone = purplemux(dir.path())
        .args(["wait", "x", "--state", "idle"])
        .output();
    assert_eq!(alone.unwrap().status.code(), Some(3));
    support::end_tmux(dir.path());
}

#[test]
fn a_tab_without_claude_has_a_status_and_no_result() {
    let server = TestServer::start();
    let tab = server.json(&["tab", "create", "--json"])["tab"]
        .as_str()
        .unwrap()
        .to_owned();
    wait("the tab is listed", || {
        server
            .cli(&["tab", "status", &tab])
            .status
            .success()
            .then_some(())
    });
    let item = server.json(&["tab", "status", &tab, "--json"]);
    assert_eq!((&item["id"], &item["state"]), (&json!(tab), &Value::Null));
    assert!(server.cli_ok(&["tab", "status", &tab]).contains(&tab));
    let result = server.json(&["tab", "result", &tab, "--json"]);
    assert_eq!(result["last_message"], Value::Null);
    assert_eq!(server.cli(&["tab", "result", &tab]).status.code(), Some(1));
    assert_eq!(
        server.cli(&["tab", "status", "nobody"]).status.code(),
        Some(1)
    );
    // No agent has ever been there: nothing is there to be exported, and why is said in a sentence.
    let said = server.json(&["explain", &tab, "--json"]);
    assert_eq!(said["reason"], "no-agent");
    let dir = server.dir.path().join("run");
    let none = server.cli(&["explain", &tab, "--export", dir.to_str().unwrap()]);
    assert_eq!(none.status.code(), Some(1));
    assert!(!dir.exists());
}

#[test]
fn completions_are_printed_for_the_shells() {
    let dir = place();
    for shell in ["bash", "zsh", "fish"] {
        let done = purplemux(dir.path())
            .args(["completions", shell])
            .output()
            .unwrap();
        assert!(done.status.success());
        let script = String::from_utf8(done.stdout).unwrap();
        assert!(
            script.contains("explain") && script.contains("purplemux"),
            "{shell}"
        );
    }
    let odd = purplemux(dir.path())
        .args(["completions", "tcsh"])
        .output()
        .unwrap();
    assert_eq!(odd.status.code(), Some(2));
}
