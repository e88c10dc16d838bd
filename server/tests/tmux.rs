//! Our tmux server and what others do to it: whose a session is, what its end and its scroll-back mean, and that
//! nothing meant for one session ever reaches another.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it is wrong"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use purplemux_wire::browser::ClientMsg;
use serde_json::{Value, json};
use support::standin::{items, wait};
use support::{Browser, TestServer, end_tmux, eventually, say};

/// The socket of the server's own tmux.
fn socket(server: &TestServer) -> PathBuf {
    let folders = fs::read_dir(server.dir.path()).unwrap().flatten();
    let mut sockets = folders
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("tmux-"))
        .flat_map(|entry| fs::read_dir(entry.path()).unwrap().flatten())
        .map(|entry| entry.path());
    sockets.next().unwrap()
}

/// What a person types: `tmux …`, on this server's socket.
fn tmux(server: &TestServer, arguments: &[&str]) -> String {
    let output = Command::new("tmux")
        .arg("-S")
        .arg(socket(server))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn row(server: &TestServer, id: &str) -> Option<Value> {
    items(server).into_iter().find(|item| item["id"] == id)
}

/// The row of a session that is not ours, once there is one.
fn foreign(server: &TestServer, name: &str) -> Value {
    wait(&format!("{name:?} is no tab"), || {
        items(server)
            .into_iter()
            .find(|item| item["foreign"] == true && item["title"] == name)
    })
}

fn ended(server: &TestServer, id: &str) {
    wait(&format!("{id} has not ended"), || {
        row(server, id).filter(|item| item["shell"] == "ended")
    });
}

fn send(browser: &Browser<'_>, id: &str, text: &str) -> support::Answer {
    let body = json!({ "text": text, "enter": true });
    browser.write("POST", &format!("/api/tabs/{id}/send"), &body)
}

fn sessions(server: &TestServer) -> Vec<String> {
    let listed = tmux(server, &["list-sessions", "-F", "#{session_name}"]);
    let mut names: Vec<String> = listed.lines().map(str::to_owned).collect();
    names.sort();
    names
}

/// A session of the person's own that writes what is typed into it into a file.
fn note_taker(server: &TestServer, name: &str, file: &Path) {
    let run = format!("exec cat > '{}'", file.display());
    tmux(server, &["new-session", "-d", "-s", name, "-c", "/", &run]);
}

#[test]
fn x02_nothing_reaches_a_new_server_with_the_same_names() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let other = browser.tab();
    let mut terminal = browser.terminal(&tab, 80, 24);
    terminal.keys("echo $((6*7))-before\r");
    terminal.until("42-before");
    let offset = terminal.offset;
    let file = server.dir.path().join("notes");

    // In one breath, so that there is hardly any time between the two servers; the first still answers while it
    // is ending.
    let socket = socket(&server);
    let script = format!(
        "tmux -S {0} kill-server; n=0
         until tmux -S {0} -f /dev/null new-session -d -s {tab} -x 70 -y 20 'exec cat > {1}'; do
             n=$((n + 1)); [ $n -lt 200 ] || exit 1
         done",
        socket.display(),
        file.display(),
    );
    let since = Instant::now();
    let done = Command::new("sh").args(["-c", &script]).status().unwrap();
    assert!(done.success());
    // What is still on its way, and what comes after.
    terminal.keys("typed too late\r");
    terminal.resize(33, 11);
    ended(&server, &tab);
    ended(&server, &other);
    assert!(
        since.elapsed() < Duration::from_secs(5),
        "five times the deadline"
    );
    while terminal.ended.is_none() && terminal.step() {}
    let why = terminal.ended.clone().unwrap();
    assert_eq!(why, "The shell in this tab has ended.");

    // It is somebody else's session, under the very name.
    let stranger = foreign(&server, &tab);
    assert_ne!(stranger["id"], tab.as_str());
    assert_eq!(send(&browser, &tab, "by mistake").status, 409);
    let mut resumed = browser.resume(&tab, offset, 33, 11);
    resumed.until_that("its end", |t| t.ended.is_some());
    let mut anew = browser.terminal(&tab, 33, 11);
    anew.until_that("its end", |t| t.ended.is_some());
    let asked = browser.get(&format!("/api/check-claude?tab={tab}"));
    assert_eq!(asked.json()["running"], false);
    let target = format!("={tab}:");
    let size = [
        "display-message",
        "-p",
        "-t",
        &target,
        "#{window_width}x#{window_height}",
    ];
    assert_eq!(tmux(&server, &size), "70x20", "nobody has sized it");
    assert_eq!(fs::read_to_string(&file).unwrap(), "");

    // Reopening and closing the ended tab leaves it alone as well.
    let reopened = browser.write("POST", &format!("/api/tabs/{tab}/reopen"), &json!({}));
    assert_eq!(reopened.status, 204, "{}", reopened.text());
    assert_eq!(send(&browser, &tab, "echo in-the-new-shell").status, 204);
    let mut shell = browser.terminal(&tab, 80, 24);
    shell.until("in-the-new-shell");
    let closed = browser.write("DELETE", &format!("/api/tabs/{tab}"), &json!(null));
    assert_eq!(closed.status, 204);
    assert!(sessions(&server).contains(&tab), "theirs lives");
    assert_eq!(fs::read_to_string(&file).unwrap(), "");

    // What is meant for it reaches it.
    let id = stranger["id"].as_str().unwrap();
    assert_eq!(send(&browser, id, "on purpose").status, 204);
    eventually("it is written", || {
        fs::read_to_string(&file).unwrap() == "on purpose\n"
    });
}

#[test]
fn x04_a_name_is_never_a_target() {
    let server = TestServer::start();
    let browser = server.browser();
    let own = browser.tab();
    let longer = format!("{own}2");
    let exact = format!("={own}");
    let names = [
        "app",
        "app2",
        "ap",
        "a.b",
        "a b",
        "=app",
        "$1",
        "$0",
        "@1",
        "%1",
        "日本語",
        "-x",
        &longer,
        &exact,
    ];
    let dir = server.dir.path().join("notes");
    fs::create_dir(&dir).unwrap();
    let file = |number: usize| dir.join(number.to_string());
    for (number, name) in names.iter().enumerate() {
        note_taker(&server, name, &file(number));
    }
    // tmux has no dots in its names.
    let shown = |name: &str| name.replace('.', "_");
    let ids: Vec<String> = names
        .iter()
        .map(|name| {
            foreign(&server, &shown(name))["id"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    for (name, id) in names.iter().zip(&ids) {
        assert_eq!(send(&browser, id, name).status, 204, "{name}");
    }
    let read = |number: usize| fs::read_to_string(file(number)).unwrap();
    for (number, name) in names.iter().enumerate() {
        eventually(&format!("{name} has got its own"), || {
            !read(number).is_empty()
        });
        assert_eq!(read(number), format!("{name}\n"));
    }
    // A terminal is one session's too.
    let mut terminal = browser.terminal(&ids[0], 40, 10);
    terminal.keys("from its terminal\r");
    eventually("typed", || read(0) == "app\nfrom its terminal\n");
    assert_eq!(read(1), "app2\n");

    // Closing ours ends ours alone; closing theirs ends nothing.
    let before = sessions(&server);
    let closed = browser.write("DELETE", &format!("/api/tabs/{own}"), &json!(null));
    assert_eq!(closed.status, 204);
    let left: Vec<String> = before
        .iter()
        .filter(|name| **name != own)
        .cloned()
        .collect();
    assert_eq!(sessions(&server), left);
    let closed = browser.write("DELETE", &format!("/api/tabs/{}", ids[0]), &json!(null));
    assert_eq!(closed.status, 204);
    wait("still a tab", || {
        row(&server, &ids[0]).is_none().then_some(())
    });
    assert_eq!(sessions(&server), left, "theirs is only hidden");
    assert_eq!(send(&browser, &ids[1], "still here").status, 204);
    eventually("app2 works", || read(1).ends_with("still here\n"));
}

#[test]
fn x07_a_session_of_somebody_else_s_is_a_tab_until_it_is_hidden() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    // As typed in a tab, where $TMUX is ours.
    assert_eq!(
        send(
            &browser,
            &tab,
            "tmux new-session -d -s mine -c /tmp 'exec cat'"
        )
        .status,
        204
    );
    let id = foreign(&server, "mine")["id"].as_str().unwrap().to_owned();
    wait("it runs where it was made", || {
        row(&server, &id).filter(|item| item["shell"] == "running" && item["cwd"] == "/tmp")
    });
    assert_eq!(row(&server, &tab).unwrap()["foreign"], false);

    // It is the same tab after a restart, and after a rename by the person.
    tmux(&server, &["rename-session", "-t", "=mine", "yours"]);
    let dir = server.end("-TERM");
    let server = TestServer::start_in(dir);
    let browser = server.browser();
    wait("it is known again", || {
        row(&server, &id).filter(|item| item["shell"] == "running" && item["cwd"] == "/tmp")
    });
    assert_eq!(items(&server).len(), 2);

    // Closed here, it lives on, and does not come back by itself.
    let closed = browser.write("DELETE", &format!("/api/tabs/{id}"), &json!(null));
    assert_eq!(closed.status, 204);
    assert!(sessions(&server).contains(&"yours".to_owned()));
    let dir = server.end("-TERM");
    let server = TestServer::start_in(dir);
    let browser = server.browser();
    tmux(&server, &["new-session", "-d", "-s", "third", "exec cat"]);
    foreign(&server, "third");
    assert_eq!(items(&server).len(), 2, "ours and the third");
    assert!(sessions(&server).contains(&"yours".to_owned()));

    // One that ends by itself is an ended tab, and its place can be had again.
    let third = foreign(&server, "third")["id"].as_str().unwrap().to_owned();
    tmux(&server, &["kill-session", "-t", "=third"]);
    ended(&server, &third);
    let reopened = browser.write("POST", &format!("/api/tabs/{third}/reopen"), &json!({}));
    assert_eq!(reopened.status, 204, "{}", reopened.text());
    let ours = wait("a shell of ours", || {
        row(&server, &third).filter(|item| item["shell"] == "running")
    });
    assert_eq!(ours["foreign"], false);
}

#[test]
fn x07_tabs_that_ended_with_their_server_are_reopened_where_they_were() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let kept = browser.tab();
    let dir = server.dir.path().join("work");
    fs::create_dir(&dir).unwrap();
    let dir = dir.canonicalize().unwrap();
    assert_eq!(
        send(&browser, &tab, &format!("cd {}", dir.display())).status,
        204
    );
    wait("it is there", || {
        row(&server, &tab).filter(|item| item["cwd"] == dir.to_str().unwrap())
    });
    let refused = browser.write("POST", &format!("/api/tabs/{tab}/reopen"), &json!({}));
    assert_eq!(refused.status, 409, "its shell lives");
    // As typed in the tab itself.
    assert_eq!(send(&browser, &tab, "tmux kill-server").status, 204);
    ended(&server, &tab);
    ended(&server, &kept);

    // They are known over a restart, and wait for the person.
    let place = server.end("-TERM");
    support::end_tmux(place.path());
    let server = TestServer::start_in(place);
    let browser = server.browser();
    ended(&server, &tab);
    ended(&server, &kept);
    let cwd = dir.to_str().unwrap();
    assert_eq!(row(&server, &tab).unwrap()["cwd"], cwd);
    let said = server.cli(&["tab", "send", &tab, "x"]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        said.contains(&format!("purplemux tab reopen {tab}")),
        "{said}"
    );
    server.cli_ok(&["tab", "reopen", &tab]);
    wait("it lives again", || {
        row(&server, &tab).filter(|item| item["shell"] == "running")
    });
    let mut terminal = browser.terminal(&tab, 80, 24);
    terminal.keys("echo at:$PWD:$((1))\r");
    terminal.until(&format!("at:{cwd}:1"));
    ended(&server, &kept);
    // A directory that has gone does not keep it from a shell.
    let gone = browser
        .write("POST", "/api/tabs", &json!({ "cwd": cwd }))
        .json();
    let gone = gone["tab"].as_str().unwrap().to_owned();
    assert_eq!(send(&browser, &gone, "exit").status, 204);
    ended(&server, &gone);
    terminal.keys("cd /; rmdir work 2>/dev/null; echo left:$((2))\r");
    terminal.until("left:2");
    fs::remove_dir_all(&dir).unwrap();
    server.cli_ok(&["tab", "reopen", &gone]);
    wait("it lives all the same", || {
        row(&server, &gone).filter(|item| item["shell"] == "running")
    });
}

#[test]
fn x03_a_pane_that_tmux_keeps_after_its_end_is_dead() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    assert_eq!(
        send(
            &browser,
            &tab,
            "tmux set-option -w remain-on-exit on; exec true"
        )
        .status,
        204
    );
    wait("it is not marked", || {
        row(&server, &tab).filter(|item| item["shell"] == "dead")
    });
    let refused = send(&browser, &tab, "to nobody");
    assert_eq!(refused.status, 409);
    assert!(refused.text().contains("has exited"), "{}", refused.text());
    let reopened = browser.write("POST", &format!("/api/tabs/{tab}/reopen"), &json!({}));
    assert_eq!(reopened.status, 204, "{}", reopened.text());
    wait("it lives again", || {
        row(&server, &tab).filter(|item| item["shell"] == "running")
    });
    assert_eq!(send(&browser, &tab, "echo back-$((3))").status, 204);
    browser.terminal(&tab, 80, 24).until("back-3");
}

/// A program called `claude` that only sleeps, in a tab; its process.
fn claude_in(server: &TestServer, browser: &Browser<'_>, tab: &str) -> u32 {
    let program = server.dir.path().join("claude");
    fs::copy("/bin/sleep", &program).unwrap();
    let run = format!("seq 200; {} 600", program.display());
    assert_eq!(send(browser, tab, &run).status, 204);
    let starting = wait("never found", || {
        row(server, tab).filter(|item| item["presence"] == "starting")
    });
    u32::try_from(starting["pid"].as_u64().unwrap()).unwrap()
}

fn write_status(server: &TestServer, pid: u32, status: &str) {
    let sessions = server.dir.path().join("person/.claude/sessions");
    fs::create_dir_all(&sessions).unwrap();
    let now = support::standin::now_ms();
    let file = json!({
        "pid": pid, "procStart": support::standin::start_of(pid), "cwd": "/", "version": "2.1.332",
        "sessionId": format!("00000000-0000-4000-8000-{pid:012}"), "kind": "interactive",
        "entrypoint": "cli", "updatedAt": now, "statusUpdatedAt": now, "status": status,
    });
    fs::write(sessions.join(format!("{pid}.json")), file.to_string()).unwrap();
}

#[test]
fn p09_what_is_scrolled_away_is_not_seen_and_text_leaves_the_scroll_back() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let pid = claude_in(&server, &browser, &tab);
    let start = support::standin::start_of(pid);
    let hook = |event: &str| {
        let body = json!({
            "hook_event_name": event, "session_id": format!("00000000-0000-4000-8000-{pid:012}"),
            "last_assistant_message": "done", "background_tasks": [],
        });
        let id = format!("{event}-{}", support::standin::now_ms());
        let headers = [
            ("x-pmux-token", server.token()),
            ("x-pmux-event", event.to_owned()),
            ("x-pmux-pid", pid.to_string()),
            ("x-pmux-start", start.clone()),
            ("x-pmux-id", id),
        ];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let body = body.to_string();
        let posted = server.local("POST", "/api/status/hook", &headers, body.as_bytes());
        assert_eq!(posted.status, 204, "{}", posted.text());
    };
    let state = |wanted: &str| {
        wait(&format!("never {wanted}"), || {
            row(&server, &tab).filter(|item| item["state"] == wanted)
        })
    };
    let covered = |wanted: bool| {
        wait(&format!("covered is not {wanted}"), || {
            row(&server, &tab).filter(|item| item["covered"] == wanted)
        });
    };
    write_status(&server, pid, "idle");
    state("idle");
    write_status(&server, pid, "busy");
    hook("UserPromptSubmit");
    state("busy");
    hook("Stop");
    write_status(&server, pid, "idle");
    let review = state("review");
    let mut viewer = browser.status();
    let episode = review["episode"].as_u64().unwrap();
    let seen = ClientMsg::Seen {
        request: 1,
        item: tab.clone(),
        episode,
    };

    // Scrolled back, behind another window, behind a zoomed pane.
    let target = format!("={tab}:");
    let there = [
        vec!["copy-mode", "-t", &target],
        vec!["new-window", "-t", &target, "exec cat"],
        vec!["split-window", "-Z", "-t", &target, "exec cat"],
    ];
    let back = [
        vec!["copy-mode", "-q", "-t", &target],
        vec!["kill-window", "-t", &target],
        vec!["kill-pane", "-t", &target],
    ];
    for (there, back) in there.iter().zip(&back) {
        tmux(&server, there);
        covered(true);
        say(&mut viewer.socket, &seen);
        // What comes after it has been taken in, it has too.
        say(&mut viewer.socket, &ClientMsg::Resync);
        let snapshots = viewer.snapshots;
        viewer.until(|viewer| viewer.snapshots > snapshots);
        assert_eq!(state("review")["episode"], episode, "{there:?}");
        tmux(&server, back);
        covered(false);
    }
    say(&mut viewer.socket, &seen);
    state("idle");

    // What is sent is typed into the program, and not into the scroll-back.
    tmux(&server, &["copy-mode", "-t", &target]);
    tmux(&server, &["send-keys", "-t", &target, "-X", "page-up"]);
    covered(true);
    assert_eq!(send(&browser, &tab, "arrives").status, 204);
    covered(false);
    let mut terminal = browser.terminal(&tab, 80, 24);
    terminal.until("arrives");
    // Where it can't be typed, that is said.
    tmux(&server, &["select-pane", "-d", "-t", &target]);
    let refused = send(&browser, &tab, "not this");
    assert_eq!(refused.status, 409);
    assert!(
        refused.text().contains("select-pane -e"),
        "{}",
        refused.text()
    );
    assert!(!terminal.text().contains("not this"));
}

#[test]
fn x07_a_second_pane_is_a_second_agent_of_its_tab() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let first = claude_in(&server, &browser, &tab);
    write_status(&server, first, "idle");
    wait("the first", || {
        row(&server, &tab).filter(|item| item["state"] == "idle")
    });
    let program = server.dir.path().join("claude");
    let run = format!("exec {} 600", program.display());
    let target = format!("={tab}:");
    tmux(&server, &["split-window", "-t", &target, &run]);
    let panes = tmux(&server, &["list-panes", "-t", &target, "-F", "#{pane_pid}"]);
    let second: u32 = panes.lines().last().unwrap().parse().unwrap();
    eventually("it runs", || {
        fs::read_to_string(format!("/proc/{second}/comm")).is_ok_and(|comm| comm == "claude\n")
    });
    write_status(&server, second, "busy");
    let rows = wait("the second", || {
        let rows = items(&server);
        rows.iter()
            .any(|item| item["pid"] == second && item["state"] == "busy")
            .then_some(rows)
    });
    assert_eq!(rows.len(), 2);
    for item in &rows {
        assert_eq!(item["tab"], tab.as_str(), "{item}");
    }
    let of_tab = rows.iter().find(|item| item["id"] == tab.as_str()).unwrap();
    assert_eq!(
        (&of_tab["pid"], &of_tab["state"]),
        (&json!(first), &json!("idle"))
    );
    let other = rows.iter().find(|item| item["pid"] == second).unwrap();
    assert_ne!(other["id"], tab.as_str());
    assert_eq!(other["shell"], Value::Null);
    // Its pane goes, and its row with it; the tab stays.
    tmux(&server, &["kill-pane", "-t", &format!("={tab}:.1")]);
    wait("one row", || (items(&server).len() == 1).then_some(()));
    assert_eq!(row(&server, &tab).unwrap()["pid"], first);
}

#[test]
fn n03_n06_keys_go_to_the_agent_s_own_pane_and_never_to_who_comes_after_it() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let dir = server.dir.path().to_owned();
    // A process that is called claude, with a status file of its own.
    let claude = dir.join("claude");
    fs::copy("/bin/cat", &claude).unwrap();
    let mut terminal = browser.terminal(&tab, 80, 24);
    terminal.keys(&format!(
        "exec {} > {}\r",
        claude.display(),
        dir.join("heard").display()
    ));
    let own = format!("={tab}:");
    let pane = tmux(
        &server,
        &[
            "display-message",
            "-p",
            "-t",
            &own,
            "#{pane_id} #{pane_pid}",
        ],
    );
    let (pane, pid) = pane.split_once(' ').unwrap();
    eventually("it is a claude", || {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "claude")
    });
    let start = support::standin::start_of(pid);
    let folder = dir.join("person/.claude/sessions");
    fs::create_dir_all(&folder).unwrap();
    let now = support::standin::now_ms();
    let status = json!({
        "pid": pid.parse::<u32>().unwrap(), "procStart": start, "kind": "interactive", "entrypoint": "cli",
        "sessionId": "00000000-0000-4000-8000-000000000001", "cwd": "/tmp", "version": "2.1.332",
        "updatedAt": now, "statusUpdatedAt": now, "status": "busy",
    });
    fs::write(folder.join(format!("{pid}.json")), status.to_string()).unwrap();
    wait("never busy", || {
        row(&server, &tab).filter(|item| item["state"] == "busy")
    });

    // N03: a shell beside it is the active pane.
    let noted = dir.join("beside");
    let beside = format!("exec cat > '{}'", noted.display());
    tmux(&server, &["split-window", "-h", "-t", pane, &beside]);
    assert_eq!(send(&browser, &tab, "for claude").status, 204);
    eventually("claude hears it", || {
        fs::read_to_string(dir.join("heard")).unwrap() == "for claude\n"
    });
    assert_eq!(fs::read_to_string(&noted).unwrap(), "", "the active pane");

    // N06: purplemux and tmux end, and a bare shell comes back under the old name and numbers.
    drop(terminal);
    // In an orderly way: a tmux whose control client was torn away may not end at all.
    let dir = server.end("-TERM");
    end_tmux(dir.path());
    let file = dir.path().join("stranger");
    let own_socket = fs::read_dir(dir.path())
        .unwrap()
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with("tmux-"))
        .and_then(|entry| fs::read_dir(entry.path()).unwrap().flatten().next());
    let own_socket = own_socket.unwrap().path();
    let run = format!("exec cat > '{}'", file.display());
    let restored = Command::new("tmux")
        .arg("-S")
        .arg(&own_socket)
        .args(["-f", "/dev/null", "new-session", "-d", "-s", &tab, &run])
        .status()
        .unwrap();
    assert!(restored.success());
    let server = TestServer::start_in(dir);
    ended(&server, &tab);
    let item = row(&server, &tab).unwrap();
    assert!(
        item["state"].is_null() && item["pid"].is_null(),
        "no old badge: {item}"
    );
    let browser = server.browser();
    assert_eq!(send(&browser, &tab, "for claude").status, 409);
    assert_eq!(fs::read_to_string(&file).unwrap(), "");
}
