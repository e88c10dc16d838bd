//! What the safety net finds by itself: panes made behind our back, what runs in them and listens there, and
//! the branch they are on.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it stands, starts programs and looks at the real clock"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Browser, TestServer};

/// A look of the net with at most ten tabs, and what a busy machine adds.
const ONE_TICK: Duration = Duration::from_secs(45);

/// Waits for as long as one look may take to come.
fn within_a_tick<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + ONE_TICK;
    loop {
        if let Some(found) = there() {
            return found;
        }
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn items(server: &TestServer) -> Vec<Value> {
    let items = server.json(&["status", "--json"]);
    items.as_array().unwrap().clone()
}

fn item(server: &TestServer, id: &str) -> Option<Value> {
    items(server).into_iter().find(|item| item["id"] == id)
}

/// A new tab in this directory, and the socket of its tmux server.
fn tab_in(browser: &Browser<'_>, dir: &Path) -> (String, PathBuf) {
    let made = browser.write("POST", "/api/tabs", &json!({ "cwd": dir }));
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    let socket = made["tmux"]["socket"].as_str().unwrap();
    (made["tab"].as_str().unwrap().to_owned(), socket.into())
}

fn tmux(socket: &Path, arguments: &[&str]) -> String {
    let output = Command::new("tmux")
        .arg("-S")
        .arg(socket)
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The server's control client.
fn control_client(server: &TestServer) -> u32 {
    let children = fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let mut pids = children
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| {
            let pids = text
                .split_ascii_whitespace()
                .map(|pid| pid.parse().unwrap());
            pids.collect::<Vec<u32>>()
        })
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|&byte| byte == 0).any(|word| word == b"-C")
        });
    pids.next().expect("it has one")
}

fn kill(signal: &str, pid: u32) {
    let killed = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(killed.unwrap().success());
}

#[test]
fn y02_a_pane_made_behind_our_back_is_seen_within_a_tick() {
    let server = TestServer::start();
    let browser = server.browser();
    // tmux runs from here on.
    let (first, socket) = tab_in(&browser, Path::new("/"));
    within_a_tick("the first tab", || item(&server, &first));
    // The control client misses what happens while it is gone.
    kill("-KILL", control_client(&server));
    tmux(
        &socket,
        &["new-session", "-d", "-s", "behind", "-c", "/", "sleep 600"],
    );
    let seen = within_a_tick("the pane made behind our back", || {
        let mut rows = items(&server).into_iter();
        rows.find(|item| item["title"] == "behind" && item["cwd"] == "/")
    });
    assert_eq!(seen["tab"], seen["id"]);
    assert_eq!(seen["foreign"], true);
    assert_eq!(seen["state"], Value::Null);
}

#[test]
fn y04_ports_program_and_directory_are_right_within_a_tick() {
    let server = TestServer::start();
    let browser = server.browser();
    let dir = server.dir.path().canonicalize().unwrap();
    let (tab, socket) = tab_in(&browser, &dir);
    let other = browser.tab();
    // Any program that listens; this one writes down on which port.
    let listens = dir.join("listens");
    let run = format!(
        "cd /tmp && {} serve --home {} --port 0",
        env!("CARGO_BIN_EXE_purplemux"),
        listens.display()
    );
    let typed = json!({ "text": run, "enter": true });
    let sent = browser.write("POST", &format!("/api/tabs/{tab}/send"), &typed);
    assert_eq!(sent.status, 204);
    let port: u16 = within_a_tick("the program listens", || {
        let text = fs::read_to_string(listens.join("port")).ok()?;
        text.trim().parse().ok()
    });
    let shown = within_a_tick("its port is shown", || {
        item(&server, &tab).filter(|item| item["ports"] == json!([port]))
    });
    assert_eq!(shown["cwd"], "/tmp");
    assert_eq!(item(&server, &other).unwrap()["ports"], json!([]));

    // It ends and another takes its place while the control client is gone.
    kill("-KILL", control_client(&server));
    let target = format!("={tab}:");
    tmux(&socket, &["send-keys", "-t", &target, "C-c"]);
    within_a_tick("the program has ended", || {
        let running = tmux(
            &socket,
            &[
                "display-message",
                "-p",
                "-t",
                &target,
                "#{pane_current_command}",
            ],
        );
        (running.trim() != "purplemux").then_some(())
    });
    tmux(
        &socket,
        &[
            "send-keys",
            "-t",
            &target,
            "cd / && exec sleep 600",
            "Enter",
        ],
    );
    within_a_tick("no port, and the other program", || {
        item(&server, &tab).filter(|item| {
            item["ports"] == json!([]) && item["cwd"] == "/" && item["title"] == "sleep"
        })
    });
}

#[test]
fn a_row_shows_the_branch_of_its_directory() {
    let server = TestServer::start();
    let browser = server.browser();
    let repository = server.dir.path().join("repository");
    fs::create_dir_all(repository.join(".git")).unwrap();
    fs::create_dir_all(repository.join("src")).unwrap();
    let head = repository.join(".git/HEAD");
    fs::write(&head, "ref: refs/heads/feature/net\n").unwrap();
    let (tab, _) = tab_in(&browser, &repository.join("src"));
    let (plain, _) = tab_in(&browser, Path::new("/"));
    within_a_tick("the branch", || {
        item(&server, &tab).filter(|item| item["branch"] == "feature/net")
    });
    assert_eq!(item(&server, &plain).unwrap()["branch"], Value::Null);
    // A program in the tab checks another branch out.
    let typed =
        json!({ "text": "echo ref: refs/heads/main > ../.git/HEAD; sleep 2", "enter": true });
    let sent = browser.write("POST", &format!("/api/tabs/{tab}/send"), &typed);
    assert_eq!(sent.status, 204);
    within_a_tick("the other branch", || {
        item(&server, &tab).filter(|item| item["branch"] == "main")
    });
}
