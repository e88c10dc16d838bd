//! After the machine was started anew, and conversations that are taken up again.
//!
//! A boot is played: the server and its tmux end, and what is kept says that another boot was the last.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it is wrong"
)]

mod support;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use purplemux_wire::browser::{Item, Shell};
use rusqlite::Connection;
use serde_json::{Value, json};
use support::standin::wait;
use support::{Browser, TestServer, Viewer, tmux};

/// A program called `claude` that only sleeps, in a tab, with a status file as Claude's. Its conversation.
fn claude_in(server: &TestServer, browser: &Browser<'_>, viewer: &mut Viewer, tab: &str) -> String {
    let program = server.dir.path().join("claude");
    if !program.exists() {
        fs::copy("/bin/sleep", &program).unwrap();
    }
    let text = json!({ "text": format!("{} 600", program.display()), "enter": true });
    let sent = browser.write("POST", &format!("/api/tabs/{tab}/send"), &text);
    assert_eq!(sent.status, 204, "{}", sent.text());
    viewer.until(|viewer| row(viewer, tab).pid.is_some());
    let pid = row(viewer, tab).pid.unwrap();
    let conversation = format!("00000000-0000-4000-8000-{pid:012}");
    let now = support::standin::now_ms();
    let file = json!({
        "pid": pid, "procStart": support::standin::start_of(pid), "cwd": "/", "version": "2.1.332",
        "sessionId": conversation, "kind": "interactive", "entrypoint": "cli",
        "updatedAt": now, "statusUpdatedAt": now, "status": "idle",
    });
    let sessions = server.dir.path().join("person/.claude/sessions");
    fs::create_dir_all(&sessions).unwrap();
    fs::write(sessions.join(format!("{pid}.json")), file.to_string()).unwrap();
    viewer.until(|viewer| row(viewer, tab).session_id.as_deref() == Some(&*conversation));
    wait("the conversation is never noted", || {
        noted(server.dir.path(), tab).filter(|noted| *noted == conversation)
    });
    conversation
}

fn row<'v>(viewer: &'v Viewer, tab: &str) -> &'v Item {
    viewer
        .items
        .iter()
        .find(|item| item.id == tab)
        .expect("the tab's row")
}

/// The conversation that is kept for a tab.
fn noted(dir: &Path, tab: &str) -> Option<String> {
    let database = Connection::open(dir.join("home/purplemux.db")).unwrap();
    let mut question = database
        .prepare("SELECT conversation FROM tabs WHERE id = ?1")
        .unwrap();
    question.query_row([tab], |row| row.get(0)).unwrap()
}

fn transcript(dir: &Path, conversation: &str, cwd: &str, prompt: &str) {
    let folder = dir.join("person/.claude/projects/-of-a-test");
    fs::create_dir_all(&folder).unwrap();
    let line = json!({
        "type": "user", "cwd": cwd, "isSidechain": false, "origin": { "kind": "human" },
        "promptSource": "typed", "message": { "role": "user", "content": prompt },
    });
    fs::write(
        folder.join(format!("{conversation}.jsonl")),
        format!("{line}\n"),
    )
    .unwrap();
}

/// Ends the server and everything in its tmux, as the machine does.
fn boots_anew(server: TestServer, signal: &str) -> TestServer {
    let dir = server.end(signal);
    support::end_tmux(dir.path());
    let database = Connection::open(dir.path().join("home/purplemux.db")).unwrap();
    let changed = database
        .execute(
            "UPDATE settings SET value = 'another boot' WHERE key = 'layout.boot'",
            [],
        )
        .unwrap();
    assert_eq!(changed, 1, "the boot is kept");
    drop(database);
    TestServer::start_in(dir)
}

fn screen(server: &TestServer, tab: &str) -> String {
    tmux(server, &["capture-pane", "-p", "-J", "-t", tab])
}

#[test]
fn shells_run_again_in_their_directories_and_conversations_are_offered() {
    let server = TestServer::start();
    let browser = server.browser();
    let place = server.dir.path().join("person/project");
    fs::create_dir(&place).unwrap();
    let place = fs::canonicalize(place).unwrap();
    let place = place.to_str().unwrap();
    let made = browser.write(
        "POST",
        "/api/tabs",
        &json!({ "cwd": place, "name": "mine" }),
    );
    let tab = made.json()["tab"].as_str().unwrap().to_owned();
    let (plain, closed, ended) = (browser.tab(), browser.tab(), browser.tab());
    let mut viewer = browser.status();
    let conversation = claude_in(&server, &browser, &mut viewer, &tab);
    transcript(
        server.dir.path(),
        &conversation,
        place,
        "fix the tax rounding",
    );
    browser.write("DELETE", &format!("/api/tabs/{closed}"), &Value::Null);
    tmux(&server, &["kill-session", "-t", &ended]);
    viewer.until(|viewer| row(viewer, &ended).shell == Some(Shell::Ended));
    let before = browser.get("/api/workspaces").json();
    drop(viewer);

    let server = boots_anew(server, "-KILL");
    let browser = server.browser();
    let mut viewer = browser.status();
    viewer.until(|viewer| row(viewer, &tab).resume.is_some());
    viewer.until(|viewer| row(viewer, &plain).shell == Some(Shell::Running));
    assert_eq!(browser.get("/api/workspaces").json(), before);
    let offered = row(&viewer, &tab).resume.clone().unwrap();
    assert_eq!(offered.conversation, conversation);
    assert_eq!(offered.title, "fix the tax rounding");
    assert_eq!(row(&viewer, &plain).resume, None);
    // What had ended before stays so.
    assert_eq!(row(&viewer, &ended).shell, Some(Shell::Ended));
    let sessions = tmux(&server, &["list-sessions", "-F", "#{session_name}"]);
    assert!(
        sessions.contains(&tab) && sessions.contains(&plain),
        "{sessions}"
    );
    assert!(
        !sessions.contains(&closed) && !sessions.contains(&ended),
        "{sessions}"
    );
    let at = tmux(
        &server,
        &["display-message", "-p", "-t", &tab, "#{pane_current_path}"],
    );
    assert_eq!(at, place);

    let path = format!("/api/tabs/{tab}/resume");
    let resumed = browser.write("POST", &path, &json!({}));
    assert_eq!(resumed.status, 204, "{}", resumed.text());
    viewer.until(|viewer| row(viewer, &tab).resume.is_none());
    let line = format!("claude --resume {conversation}");
    wait("it is never typed", || {
        screen(&server, &tab).contains(&line).then_some(())
    });
    for (method, path) in [("POST", &*path), ("DELETE", &*path)] {
        let again = browser.write(method, path, &json!({}));
        assert_eq!(again.status, 409, "{}", again.text());
    }
    assert_eq!(
        browser
            .write("POST", "/api/tabs/t-none/resume", &json!({}))
            .status,
        404
    );
}

#[test]
fn conversations_are_taken_up_by_themselves_if_the_person_set_so() {
    let server = TestServer::start();
    let browser = server.browser();
    let set = browser.write("PATCH", "/api/settings", &json!({ "resume": "auto" }));
    assert_eq!(set.status, 204);
    let tabs = [browser.tab(), browser.tab()];
    let mut viewer = browser.status();
    let talks = tabs
        .clone()
        .map(|tab| claude_in(&server, &browser, &mut viewer, &tab));
    transcript(server.dir.path(), &talks[0], "/", "one");
    // Of the other there is nothing that could be taken up.
    drop(viewer);
    let server = boots_anew(server, "-TERM");
    let mut viewer = server.browser().status();
    let runs = |viewer: &Viewer, tab: &String| row(viewer, tab).shell == Some(Shell::Running);
    viewer.until(|viewer| tabs.iter().all(|tab| runs(viewer, tab)));
    let line = format!("claude --resume {}", talks[0]);
    wait("it is never typed", || {
        screen(&server, &tabs[0]).contains(&line).then_some(())
    });
    let viewer = server.browser().status();
    assert!(tabs.iter().all(|tab| row(&viewer, tab).resume.is_none()));
    assert!(!screen(&server, &tabs[1]).contains("--resume"));
}

#[test]
fn shells_that_ended_without_a_boot_stay_ended_and_offer_when_they_are_reopened() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let mut viewer = browser.status();
    let conversation = claude_in(&server, &browser, &mut viewer, &tab);
    transcript(server.dir.path(), &conversation, "/", "hello");
    drop(viewer);
    let dir = server.end("-TERM");
    support::end_tmux(dir.path());
    let server = TestServer::start_in(dir);
    let browser = server.browser();
    let mut viewer = browser.status();
    viewer.until(|viewer| row(viewer, &tab).shell == Some(Shell::Ended));
    assert_eq!(row(&viewer, &tab).resume, None);
    let reopened = browser.write("POST", &format!("/api/tabs/{tab}/reopen"), &json!({}));
    assert_eq!(reopened.status, 204, "{}", reopened.text());
    viewer.until(|viewer| row(viewer, &tab).resume.is_some());
    // It is offered until it is taken, or wanted no more, over restarts as well.
    drop(viewer);
    let server = TestServer::start_in(server.end("-KILL"));
    let browser = server.browser();
    let mut viewer = browser.status();
    viewer.until(|viewer| row(viewer, &tab).resume.is_some());
    let declined = browser.write("DELETE", &format!("/api/tabs/{tab}/resume"), &Value::Null);
    assert_eq!(declined.status, 204, "{}", declined.text());
    viewer.until(|viewer| row(viewer, &tab).resume.is_none());
    assert!(!screen(&server, &tab).contains("--resume"));
}

#[test]
fn what_is_offered_is_taken_up_by_a_command() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let mut viewer = browser.status();
    let conversation = claude_in(&server, &browser, &mut viewer, &tab);
    transcript(server.dir.path(), &conversation, "/", "hello");
    let nothing = server.cli(&["tab", "resume", &tab]);
    assert!(!nothing.status.success());
    let why = String::from_utf8_lossy(&nothing.stderr);
    assert!(!why.trim().is_empty(), "it says why");
    drop(viewer);
    let server = boots_anew(server, "-KILL");
    let browser = server.browser();
    let mut viewer = browser.status();
    viewer.until(|viewer| row(viewer, &tab).resume.is_some());
    server.cli_ok(&["tab", "resume", &tab]);
    viewer.until(|viewer| row(viewer, &tab).resume.is_none());
    let line = format!("claude --resume {conversation}");
    wait("it is never typed", || {
        screen(&server, &tab).contains(&line).then_some(())
    });
    assert!(!server.cli(&["tab", "resume", &tab]).status.success());
}

#[test]
fn a_conversation_that_was_left_in_a_living_shell_is_forgotten() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let mut viewer = browser.status();
    claude_in(&server, &browser, &mut viewer, &tab);
    let left = Instant::now();
    let pid = row(&viewer, &tab).pid.unwrap().to_string();
    std::process::Command::new("kill")
        .arg(&pid)
        .status()
        .unwrap();
    wait("it is never forgotten", || {
        noted(server.dir.path(), &tab).is_none().then_some(())
    });
    assert!(
        left.elapsed() > Duration::from_secs(9),
        "{:?}",
        left.elapsed()
    );
}

#[test]
fn an_agent_in_a_tab_that_is_closing_is_shown_to_nobody() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let mut viewer = browser.status();
    claude_in(&server, &browser, &mut viewer, &tab);
    let close =
        |query: &str| browser.write("DELETE", &format!("/api/tabs/{tab}{query}"), &Value::Null);
    let refused = close("?undo=1");
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert!(
        refused.text().contains("Claude is running"),
        "{}",
        refused.text()
    );
    let pid = row(&viewer, &tab).pid.unwrap();
    let closed = close("?undo=1&force=1");
    assert_eq!(closed.status, 200, "{}", closed.text());
    // Nor as a session outside of the tabs; a look at all processes must not bring it up either.
    viewer.until(|viewer| viewer.items.is_empty());
    let asked = browser.get("/api/items").json();
    assert_eq!(asked["items"], json!([]));
    assert_eq!(asked["workspaces"][0]["state"], Value::Null);
    assert!(
        Path::new(&format!("/proc/{pid}")).exists(),
        "it goes on meanwhile"
    );
    let back = browser.write("POST", &format!("/api/tabs/{tab}/restore"), &json!({}));
    assert_eq!(back.status, 204, "{}", back.text());
    viewer.until(|viewer| {
        viewer
            .items
            .iter()
            .any(|item| item.id == tab && item.pid == Some(pid))
    });
    assert_eq!(close("?force=1").status, 204);
    wait("it does not end", || {
        (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
}

#[test]
fn past_conversations_are_listed_searched_and_taken_up() {
    let server = TestServer::start();
    let browser = server.browser();
    let shop = server.dir.path().join("person/shop");
    fs::create_dir(&shop).unwrap();
    let shop = fs::canonicalize(shop).unwrap();
    let shop = shop.to_str().unwrap();
    let workspace = json!({ "name": "shop", "dir": shop });
    let workspace =
        browser.write("POST", "/api/workspaces", &workspace).json()["workspace"].clone();
    let (one, two) = (
        "11111111-0000-4000-8000-000000000001",
        "11111111-0000-4000-8000-000000000002",
    );
    transcript(server.dir.path(), one, shop, "fix the tax rounding");
    transcript(server.dir.path(), two, "/no/such/place", "something else");
    let list = |query: &str| browser.get(&format!("/api/conversations{query}")).json();
    assert_eq!(list("").as_array().unwrap().len(), 2);
    assert_eq!(list("?most=1").as_array().unwrap().len(), 1);
    let found = list("?q=tax%20SHOP");
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found[0]["id"], one);
    assert_eq!(found[0]["title"], "fix the tax rounding");
    assert_eq!(
        (&found[0]["cwd"], &found[0]["item"]),
        (&json!(shop), &Value::Null)
    );
    assert_eq!(list("?q=nothing"), json!([]));
    assert_eq!(browser.get("/api/conversations?most=x").status, 400);

    let made = browser.write(
        "POST",
        &format!("/api/conversations/{one}/resume"),
        &json!({}),
    );
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    assert_eq!(
        made["workspace"], workspace,
        "the one whose directory is nearest above"
    );
    let tab = made["tab"].as_str().unwrap();
    let line = format!("claude --resume {one}");
    wait("it is never typed", || {
        screen(&server, tab).contains(&line).then_some(())
    });
    let at = tmux(
        &server,
        &["display-message", "-p", "-t", tab, "#{pane_current_path}"],
    );
    assert_eq!(at, shop);

    let resume = |id: &str, body: &Value| {
        let answer = browser.write("POST", &format!("/api/conversations/{id}/resume"), body);
        (answer.status, answer.text())
    };
    assert_eq!(resume(two, &json!({})).0, 400, "its directory has gone");
    assert_eq!(
        resume("11111111-0000-4000-8000-000000000003", &json!({})).0,
        404
    );
    assert_eq!(resume("x%3B%20reboot", &json!({})).0, 404);
    assert_eq!(resume(one, &json!({ "pane": "p-none" })).0, 404);
    assert_eq!(resume(one, &json!({ "cwd": "/" })).0, 400);
    // One that runs is gone to, not started twice.
    let plain = browser.tab();
    let mut viewer = browser.status();
    let runs = claude_in(&server, &browser, &mut viewer, &plain);
    transcript(server.dir.path(), &runs, "/", "running");
    assert_eq!(list("?q=running")[0]["item"], plain);
    let (status, why) = resume(&runs, &json!({}));
    assert_eq!(status, 409, "{why}");
    assert!(why.contains(&plain), "{why}");
}
