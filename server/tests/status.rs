//! The status stream and the commands: one truth, told as snapshot and differences.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::disallowed_methods,
    reason = "a test fails where it is wrong"
)]

mod support;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use purplemux_wire::browser::{ClientMsg, ServerMsg, State};
use serde_json::{Value, json};
use support::standin::{Standin, shows};
use support::{TestServer, Viewer, purplemux, say};

#[test]
fn a_viewer_gets_a_snapshot_then_differences_and_can_ask_anew() {
    let server = TestServer::start();
    let browser = server.browser();
    let mut viewer = browser.status();
    assert_eq!(viewer.rev, 1);
    assert_eq!(viewer.workspaces[0].name, "main");
    let tab = browser.tab();
    viewer.until(|viewer| viewer.items.iter().any(|item| item.id == tab));
    viewer.until(|viewer| viewer.workspaces[0].tabs == [tab.clone()]);
    let path = format!("/api/tabs/{tab}");
    let renamed = browser.write("PATCH", &path, &json!({ "name": "my work" }));
    assert_eq!(renamed.status, 204);
    viewer.until(|viewer| viewer.items[0].title == "my work");
    say(&mut viewer.socket, &ClientMsg::Resync);
    viewer.until(|viewer| viewer.snapshots == 2);
    assert_eq!(viewer.items[0].title, "my work");
    let closed = browser.write("DELETE", &path, &json!(null));
    assert_eq!(closed.status, 204);
    viewer.until(|viewer| viewer.items.is_empty() && viewer.workspaces[0].tabs.is_empty());
}

#[test]
fn l05_revisions_count_up_by_one_and_a_new_start_is_a_new_epoch() {
    let server = TestServer::start();
    let browser = server.browser();
    let mut viewer = browser.status();
    let first = viewer.epoch.clone();
    // Each message is one further than the one before, snapshots that were asked for included: the viewer's own
    // reading fails on a gap. What is asked for in the middle of changes holds them all.
    let mut tabs = Vec::new();
    for round in 2..6 {
        let before = viewer.rev;
        tabs.push(browser.tab());
        say(&mut viewer.socket, &ClientMsg::Resync);
        tabs.push(browser.tab());
        viewer.until(|viewer| {
            let known = |tab: &String| viewer.items.iter().any(|item| item.id == *tab);
            viewer.snapshots == round && tabs.iter().all(known)
        });
        assert!(viewer.rev > before);
        assert_eq!(viewer.epoch, first);
    }
    // A second link of the same start counts for itself.
    assert_eq!(browser.status().rev, 1);

    let (cookie, secret, port) = (browser.cookie.clone(), browser.secret.clone(), server.port);
    let dir = server.end("-KILL");
    let mut command = purplemux(dir.path());
    command.args(["serve", "--port", &port.to_string()]);
    let (child, _) = support::start(command);
    let server = TestServer::adopt(dir, port, child);
    let browser = support::Browser {
        server: &server,
        cookie,
        secret,
    };
    let viewer = browser.status();
    assert_ne!(viewer.epoch, first);
    assert_eq!((viewer.rev, viewer.snapshots), (1, 1));
    assert!(
        tabs.iter()
            .all(|tab| viewer.items.iter().any(|item| item.id == *tab))
    );
}

#[test]
fn every_way_to_ask_says_the_same() {
    let server = TestServer::start();
    let browser = server.browser();
    let made = server.json(&["tab", "create", "-n", "one", "--cwd", "/", "--json"]);
    let tab = made["tab"].as_str().unwrap().to_owned();
    assert_eq!(made["tmux"]["session"], made["tab"]);
    let socket = made["tmux"]["socket"].as_str().unwrap();
    assert!(socket.starts_with('/'), "{socket}");
    let mut viewer = browser.status();
    viewer.until(|viewer| {
        viewer
            .items
            .iter()
            .any(|item| item.id == tab && item.cwd.as_deref() == Some("/"))
    });
    let shown: Vec<Value> = viewer
        .items
        .iter()
        .map(|item| serde_json::to_value(item).unwrap())
        .collect();
    assert_eq!(browser.get("/api/items").json()["items"], json!(shown));
    assert_eq!(browser.get("/api/tabs").json(), json!(shown));
    assert_eq!(server.json(&["status", "--json"]), json!(shown));
    assert_eq!(server.json(&["tab", "list", "--json"]), json!(shown));
    assert_eq!(
        server.json(&["tab", "list", "-w", "main", "--json"]),
        json!(shown)
    );
    let workspaces = server.json(&["workspace", "list", "--json"]);
    assert_eq!(workspaces[0]["tabs"], json!([tab]));
    let table = server.cli_ok(&["status"]);
    assert!(table.contains("one") && table.contains(&tab), "{table}");
}

#[test]
fn a_watch_prints_a_line_per_change_as_it_happens() {
    let server = TestServer::start();
    let first = server.json(&["tab", "create", "-n", "first", "--json"]);
    let mut command = purplemux(server.dir.path());
    let mut child = command
        .args(["status", "--watch", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |done: &dyn Fn(&Value) -> bool| loop {
        let line = lines.next().expect("the watch goes on").unwrap();
        let item: Value = serde_json::from_str(&line).unwrap();
        assert!(item["ts_ms"].as_i64().unwrap() > 1_600_000_000_000);
        if done(&item) {
            return item;
        }
    };
    until(&|item| item["id"] == first["tab"]);
    let second = server.json(&["tab", "create", "-n", "second", "--json"]);
    until(&|item| item["id"] == second["tab"] && item["title"] == "second");
    server.cli_ok(&["tab", "close", second["tab"].as_str().unwrap()]);
    let last = until(&|item| item["id"] == second["tab"] && item["presence"] == "gone");
    assert_eq!(last["state"], Value::Null);
    // The server's end is the watch's.
    let server_dir = server.end("-TERM");
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(1));
    support::end_tmux(server_dir.path());
}

#[test]
fn tabs_are_made_typed_into_and_closed_from_the_command_line() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = server.cli_ok(&["tab", "create", "-t", "terminal", "--cwd", "/tmp"]);
    let tab = tab.trim();
    let mut terminal = browser.terminal(tab, 80, 24);
    server.cli_ok(&["tab", "send", tab, "echo", "$PWD-$((1+1))"]);
    terminal.until("/tmp-2");
    server.cli_ok(&["tab", "send", "--no-enter", tab, "echo not-yet"]);
    terminal.until("echo not-yet");
    assert!(!terminal.text().contains("\nnot-yet"));
    let output = server.cli(&["tab", "send", "t-ffffffff", "x"]);
    assert_eq!(output.status.code(), Some(1));
    let output = server.cli(&["tab", "send", "../x", "x"]);
    assert_eq!(output.status.code(), Some(2));
    let output = server.cli(&["tab", "create", "-w", "nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    server.cli_ok(&["tab", "close", tab]);
    assert_eq!(server.json(&["tab", "list", "--json"]), json!([]));
}

#[test]
fn closing_a_tab_never_touches_another_whose_name_begins_alike() {
    let server = TestServer::start();
    let made = server.json(&["tab", "create", "--json"]);
    let tab = made["tab"].as_str().unwrap();
    let socket = made["tmux"]["socket"].as_str().unwrap();
    let longer = format!("{tab}2");
    let tmux = |arguments: &[&str]| {
        std::process::Command::new("tmux")
            .args(["-S", socket])
            .args(arguments)
            .status()
            .unwrap()
            .success()
    };
    assert!(tmux(&["new-session", "-d", "-s", &longer]));
    server.cli_ok(&["tab", "close", tab]);
    assert!(!tmux(&["has-session", "-t", &format!("={tab}")]));
    assert!(tmux(&["has-session", "-t", &format!("={longer}")]));
}

#[test]
fn nothing_that_a_viewer_says_can_break_the_stream_of_another() {
    let server = TestServer::start();
    let browser = server.browser();
    let mut good = browser.status();
    let mut bad = browser.status();
    let nonsense = tokio_tungstenite::tungstenite::Message::text("{\"type\":\"conquer\"}");
    bad.socket.send(nonsense).unwrap();
    assert_eq!(support::close_code(&mut bad.socket), Some(1008));
    let seen = ClientMsg::Seen {
        request: 7,
        item: "none".to_owned(),
        episode: 1,
    };
    say(&mut good.socket, &seen);
    let refused = good.next();
    let ServerMsg::Refused { request, why, .. } = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        (request, why.as_str()),
        (7, "That row is gone. There is nothing more to do.")
    );
    let tab = browser.tab();
    good.until(|viewer| viewer.items.iter().any(|item| item.id == tab));
}

#[test]
fn a_login_that_ends_takes_its_sockets_along() {
    let server = TestServer::start();
    let browser = server.browser();
    let mut viewer = browser.status();
    assert_eq!(
        browser.write("POST", "/api/logout", &json!(null)).status,
        204
    );
    assert_eq!(support::close_code(&mut viewer.socket), Some(1008));
}

#[test]
fn check_claude_answers_for_a_tab_without_one() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let answer = browser.get(&format!("/api/check-claude?tab={tab}"));
    assert_eq!(answer.status, 200);
    let said = answer.json();
    assert_eq!(said["running"], false);
    assert_eq!(said["pid"], Value::Null);
    assert!(said["checked_at_ms"].is_i64() && said["installed"].is_boolean());
    assert_eq!(browser.get("/api/check-claude?tab=none").status, 404);
    assert_eq!(browser.get("/api/check-claude").status, 400);
}

#[test]
fn what_claude_is_given_can_be_looked_at_without_a_server() {
    let dir = support::place();
    let ask = |arguments: &[&str]| purplemux(dir.path()).args(arguments).output().unwrap();
    let shown = ask(&["hooks", "show", "--claude", "2.1.332", "--json"]);
    assert!(shown.status.success());
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["version"], "2.1.332");
    let command = shown["settings"]["hooks"]["Stop"][0]["hooks"][0]["command"].as_str();
    assert!(command.unwrap().contains("status-hook.sh"), "{shown}");
    // What an old version does not know would stop it at every start.
    let old = ask(&["hooks", "show", "--claude", "2.1.31"]);
    let old = String::from_utf8(old.stdout).unwrap();
    assert!(
        old.starts_with("Claude Code 2.1.31 is given --settings "),
        "{old}"
    );
    assert!(
        old.contains("\"Stop\"") && !old.contains("StopFailure"),
        "{old}"
    );
    let odd = ask(&["hooks", "show", "--claude", "new"]);
    assert_eq!(odd.status.code(), Some(2));
}

#[test]
fn check_claude_finds_a_process_below_the_tab_and_its_end() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    // Any program under Claude's name will do: only the process tree is asked.
    let bin = server.dir.path().join("person/bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::copy("/bin/sleep", bin.join("claude")).unwrap();
    let check = || browser.get(&format!("/api/check-claude?tab={tab}")).json();
    let mut terminal = browser.terminal(&tab, 80, 24);
    terminal.keys("sh -c '~/bin/claude 600; true'\r");
    support::eventually("it runs", || check()["running"] == true);
    let said = check();
    let pid = said["pid"].as_u64().unwrap();
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    assert_eq!(name.trim(), "claude");
    // A tab with an agent in it is not closed without a word.
    let mut viewer = browser.status();
    viewer.until(|viewer| viewer.items[0].pid.map(u64::from) == Some(pid));
    let output = server.cli(&["tab", "close", &tab]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--force"), "{said}");
    terminal.keys("\u{3}");
    support::eventually("it has ended", || check()["running"] == false);
    viewer.until(|viewer| viewer.items[0].pid.is_none());
    server.cli_ok(&["tab", "close", &tab]);
}

/// One turn from its prompt to its end, and the episode of its review.
fn turn(server: &TestServer, standin: &Standin) -> u64 {
    let prompt = json!({ "prompt": "go on" });
    assert_eq!(
        standin.hook(server, "UserPromptSubmit", &prompt).status,
        204
    );
    standin.write("busy");
    shows(server, standin, "busy");
    let stop = json!({ "last_assistant_message": "done" });
    assert_eq!(standin.hook(server, "Stop", &stop).status, 204);
    standin.write("idle");
    let item = shows(server, standin, "review");
    item["episode"].as_u64().unwrap()
}

#[test]
fn l03_what_is_read_on_one_device_is_read_on_all_and_a_late_word_names_its_turn() {
    /// Five times the deadline.
    const KNOWN_WITHIN: Duration = Duration::from_millis(5 * 300);
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("idle");
    shows(&server, &standin, "idle");
    let first = turn(&server, &standin);
    // Two browsers, each with a login of its own.
    let (phone, desk) = (server.browser(), server.browser());
    let (mut phone, mut desk) = (phone.status(), desk.status());
    let state = |viewer: &Viewer| {
        let mut items = viewer.items.iter();
        let item = items.find(|item| item.pid == Some(standin.pid()));
        item.and_then(|item| item.state)
    };
    let id = phone.items[0].id.clone();
    let seen = |request, episode| ClientMsg::Seen {
        request,
        item: id.clone(),
        episode,
    };
    assert_eq!(state(&desk), Some(State::Review));
    say(&mut phone.socket, &seen(1, first));
    let from = Instant::now();
    desk.until(|viewer| state(viewer) == Some(State::Idle));
    assert!(from.elapsed() < KNOWN_WITHIN, "{:?}", from.elapsed());
    phone.until(|viewer| state(viewer) == Some(State::Idle));

    let second = turn(&server, &standin);
    assert_ne!(first, second);
    phone.until(|viewer| state(viewer) == Some(State::Review));
    // Read while it was away, sent when it is back: that turn is over, and this one unread.
    say(&mut phone.socket, &seen(2, first));
    let refused = phone.next();
    assert!(
        matches!(refused, ServerMsg::Refused { request: 2, .. }),
        "{refused:?}"
    );
    shows(&server, &standin, "review");
    say(&mut phone.socket, &seen(3, second));
    phone.until(|viewer| state(viewer) == Some(State::Idle));
    desk.until(|viewer| state(viewer) == Some(State::Idle));
}
