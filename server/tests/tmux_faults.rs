//! What goes wrong with tmux and with the witnesses: questions that fail or hang, clients that are dropped, stopped
//! or torn away, a tmux that is updated under the running one, a process whose end nobody tells.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it is wrong"
)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use purplemux::effects::journal;
use purplemux::{clock, hub, push, store, sys, tmux};
use purplemux_core::witness::{AgentKind, FileStatus, Process, SessionFile};
use purplemux_core::{AgentKey, Event, HostId, Stamp};
use purplemux_wire::browser::State;
use serde_json::json;
use support::standin::{Standin, item_of, items, shows, wait};
use support::{TestServer, eventually, place, purplemux as binary, start};

/// A `tmux` of our own in front of the real one; the server's PATH begins with its folder.
struct Wrapped {
    server: TestServer,
    bin: PathBuf,
}

fn write_program(bin: &Path, name: &str, text: &str) {
    let file = bin.join(format!("{name}.new"));
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(file, bin.join(name)).unwrap();
}

impl Wrapped {
    fn start(script: impl Fn(&Path) -> String) -> Self {
        let dir = place();
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).unwrap();
        write_program(&bin, "tmux", &script(dir.path()));
        let mut command = binary(dir.path());
        command
            .args(["serve", "--port", "0"])
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .stderr(Stdio::null());
        let (child, port) = start(command);
        let server = TestServer::adopt(dir, port, child);
        Self { server, bin }
    }

    fn notices(&self) -> String {
        notices(&self.server)
    }
}

fn notices(server: &TestServer) -> String {
    server.local("GET", "/api/items", &[], b"").json()["notices"].to_string()
}

/// The control client's questions pass through a shell that answers for tmux, or not at all, while a file is there.
fn interfering(dir: &Path) -> String {
    format!(
        r#"#!/bin/bash
case " $* " in
*" -C "*) ;;
*) exec /usr/bin/tmux "$@" ;;
esac
while IFS= read -r line; do
    if [[ $line == *list-panes* ]]; then
        # Once, and every time.
        if [[ -e {0}/fail-once ]]; then
            rm {0}/fail-once
            line="list-panes -t '=no-such-session:'"
        fi
        [[ -e {0}/fail ]] && line="list-panes -t '=no-such-session:'"
        if [[ -e {0}/hang ]]; then
            rm {0}/hang
            : > {0}/hanging
            sleep 6
        fi
    fi
    printf '%s\n' "$line"
done | exec /usr/bin/tmux "$@"
"#,
        dir.display()
    )
}

#[test]
fn x01_listings_that_fail_or_hang_move_no_badge_and_the_third_is_told() {
    let wrapped = Wrapped::start(interfering);
    let server = &wrapped.server;
    let file = |name: &str| server.dir.path().join(name);
    let standin = Standin::new(server.dir.path());
    standin.write("busy");
    shows(server, &standin, "busy");
    // Listings go on by themselves while there is a pane to look at.
    let tab = server.json(&["tab", "create", "--json"]);
    let tab = tab["tab"].as_str().unwrap();
    let all = || {
        let mut rows: Vec<(String, String)> = items(server)
            .iter()
            .map(|item| (item["id"].to_string(), item["state"].to_string()))
            .collect();
        rows.sort();
        rows
    };
    wait("the tab", || (all().len() == 2).then_some(()));
    let before = all();

    // One fails.
    fs::write(file("fail-once"), "").unwrap();
    eventually("one has failed", || !file("fail-once").exists());
    assert_eq!(wrapped.notices(), "[]");
    assert_eq!(all(), before);

    // One hangs for six seconds.
    fs::write(file("hang"), "").unwrap();
    eventually("one hangs", || file("hanging").exists());
    let hung = Instant::now();
    standin.write("waiting");
    shows(server, &standin, "needs-input");
    while hung.elapsed() < Duration::from_secs(8) {
        assert_eq!(wrapped.notices(), "[]", "one is no reason to say so");
        assert_eq!(all().len(), 2);
        std::thread::sleep(Duration::from_millis(100));
    }

    // All fail for a minute.
    standin.write("busy");
    shows(server, &standin, "busy");
    let before = all();
    fs::write(file("fail"), "").unwrap();
    let failing = Instant::now();
    wait("nothing is said", || {
        wrapped
            .notices()
            .contains("tmux does not answer")
            .then_some(())
    });
    while failing.elapsed() < Duration::from_secs(60) {
        assert!(wrapped.notices().contains("tmux does not answer"));
        assert_eq!(all(), before);
        std::thread::sleep(Duration::from_millis(500));
    }
    // The file and hooks drive all the while.
    let stop = json!({ "last_assistant_message": "done", "background_tasks": [] });
    standin.hook(server, "Stop", &stop);
    standin.write("idle");
    shows(server, &standin, "review");

    fs::remove_file(file("fail")).unwrap();
    wait("still said", || (wrapped.notices() == "[]").then_some(()));
    assert_eq!(item_of(server, standin.pid()).unwrap()["state"], "review");
    let sent = server.cli(&["tab", "send", tab, "echo works"]);
    assert!(sent.status.success(), "{sent:?}");
}

#[test]
fn x08_a_tmux_that_is_updated_under_the_running_one_is_told() {
    let real = |_: &Path| "#!/bin/sh\nexec /usr/bin/tmux \"$@\"\n".to_owned();
    let wrapped = Wrapped::start(real);
    let server = &wrapped.server;
    let browser = server.browser();
    let tab = browser.tab();
    let mut terminal = browser.terminal(&tab, 80, 24);
    terminal.keys("MARK=$((40+2))\r");
    terminal.keys("echo is:$MARK\r");
    terminal.until("is:42");
    assert_eq!(wrapped.notices(), "[]");

    let newer =
        "#!/bin/sh\n[ \"$1\" = -V ] && { echo 'tmux 9.9'; exit; }\nexec /usr/bin/tmux \"$@\"\n";
    write_program(&wrapped.bin, "tmux", newer);
    // A terminal that is opened is a moment to look; the safety net is another.
    let mut second = browser.terminal(&tab, 80, 24);
    wait("nothing is said", || {
        let said = wrapped.notices();
        (said.contains("tmux 9.9 is installed") && said.contains("tabs end when tmux is restarted"))
            .then_some(())
    });
    // Until then everything goes on.
    second.keys("echo still:$MARK\r");
    second.until("still:42");
    terminal.until("still:42");
    let doctor = binary(server.dir.path())
        .arg("doctor")
        .env("PATH", format!("{}:/usr/bin:/bin", wrapped.bin.display()))
        .output()
        .unwrap();
    let said = String::from_utf8(doctor.stdout).unwrap();
    assert!(said.contains("9.9 is installed"), "{said}");
    assert!(said.contains("Tabs end when tmux is restarted"), "{said}");

    write_program(&wrapped.bin, "tmux", &real(Path::new("/")));
    drop(browser.terminal(&tab, 80, 24));
    wait("still said", || (wrapped.notices() == "[]").then_some(()));
}

/// The server's own children that are tmux clients of terminals.
fn attaches(server: &TestServer) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let children = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| {
            let pids = text.split_ascii_whitespace();
            pids.map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>()
        });
    children
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let is_control = line.split(|&byte| byte == 0).any(|word| word == b"-C");
            !line.is_empty() && !is_control
        })
        .collect()
}

fn signal(name: &str, pid: u32) {
    let done = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(done.unwrap().success());
}

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn x05_a_terminal_whose_client_is_torn_away_is_drawn_anew() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let mut terminal = browser.terminal(&tab, 80, 24);
    terminal.keys("PS1='$ '; clear; echo first-$((1))\r");
    terminal.until("first-1");
    let announced = terminal.announced.len();
    let attached = attaches(&server);
    assert_eq!(attached.len(), 1);
    signal("-KILL", attached[0]);
    let torn = Instant::now();
    terminal.until_that("another picture", |t| t.announced.len() > announced);
    assert!(
        torn.elapsed() < Duration::from_secs(10),
        "five times the deadline"
    );
    terminal.until("first-1");
    terminal.keys("echo second-$((2))\r");
    terminal.until("second-2");
    assert_eq!(attaches(&server).len(), 1);
}

#[test]
fn x05_a_connection_that_nobody_reads_costs_no_memory_and_catches_up() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let standin = Standin::new(server.dir.path());
    standin.write("busy");
    shows(&server, &standin, "busy");
    let made = server.json(&["tab", "create", "--json"]);
    let socket = made["tmux"]["socket"].as_str().unwrap().to_owned();
    let tmux = |arguments: &[&str]| {
        let mut tmux = Command::new("tmux");
        let output = tmux.args(["-S", &socket]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let of_tmux: u32 = tmux(&["display-message", "-p", "#{pid}"]).parse().unwrap();
    let mut terminal = browser.terminal(&tab, 80, 24);
    // Bounded from here on, so that only what is kept for readers can grow.
    terminal.keys("PS1='ready> '; tmux set-option -g history-limit 100; clear; seq 1 60000; echo one-$((1))\r");
    terminal.until("one-1");
    let before = (resident_kib(server.pid()), resident_kib(of_tmux));

    // tmux writes to the control connection and to the terminal by itself; their reader does nothing for a while.
    terminal.keys("seq 1 1000000; echo two-$((2))\r");
    let received = terminal.received;
    terminal.until_that("the flood", |t| t.received > received + 10_000);
    server.signal("-STOP");
    for number in 0..40 {
        let name = format!("other-{number}");
        tmux(&["new-session", "-d", "-s", &name, "exec cat"]);
        if number % 2 == 0 {
            tmux(&["kill-session", "-t", &format!("={name}")]);
        }
    }
    standin.write("waiting");
    let target = format!("={tab}:");
    eventually("the program is not held up", || {
        tmux(&["capture-pane", "-p", "-t", &target]).contains("two-2")
    });
    let behind = resident_kib(of_tmux);
    assert!(behind < before.1 + 60_000, "tmux: {before:?}, {behind} KiB");

    server.signal("-CONT");
    let back = Instant::now();
    shows(&server, &standin, "needs-input");
    terminal.until("two-2");
    wait("the sessions made meanwhile", || {
        let rows = items(&server);
        (rows.iter().filter(|row| row["foreign"] == true).count() == 20).then_some(())
    });
    assert!(
        back.elapsed() < Duration::from_secs(10),
        "five times the deadline"
    );
    terminal.keys("clear; echo three-$((3))\r");
    terminal.until("three-3");
    let after = resident_kib(server.pid());
    assert!(
        after < before.0 + 40_000,
        "the server: {before:?}, {after} KiB"
    );
}

/// A reading of a status file: busy, and so for ten minutes and a second.
fn busy_since_long() -> (Stamp, SessionFile) {
    let since = clock::from_wall_ms(clock::wall_ms() - 601_000);
    let file = SessionFile {
        conversation: Some("00000000-0000-4000-8000-000000000001".into()),
        status: Some(FileStatus::Busy),
        waiting_for: None,
        status_since: Some(since),
        kind: AgentKind::Interactive,
        parked_job: None,
        job: None,
        cwd: Some(Arc::from("/")),
        version: Some(Arc::from("2.1.332")),
        name: None,
    };
    (since, file)
}

#[test]
fn y03_an_agent_whose_end_nobody_tells_is_put_right_by_the_net_and_a_living_one_is_left() {
    let dir = place();
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut dead = Command::new("sleep").arg("600").spawn().unwrap();
    let mut alive = Command::new("sleep").arg("600").spawn().unwrap();
    let key = |pid: u32| AgentKey {
        host: HostId::from("here"),
        pid,
        start: sys::stat(pid).unwrap().start,
    };
    let (of_dead, of_alive) = (key(dead.id()), key(alive.id()));
    runtime.block_on(async {
        let store = store::open(&home.join("purplemux.db")).unwrap();
        let tmux = tmux::Handle::new(tmux::Config {
            host: HostId::from("here"),
            home: home.clone(),
        });
        let (alerts, told) = push::channel();
        // As `serve` does it, but with none of Claude's directories: the files here are the test's own word.
        let (hub, ended) = hub::spawn(hub::Config {
            host: HostId::from("here"),
            home: home.clone(),
            tmux: tmux.clone(),
            keep: Arc::new(store.clone()),
            journal: journal::Config {
                shelf: Arc::new(store.clone()),
                newest: 0,
                text: true,
                bounds: journal::Bounds::default(),
            },
            restored: Vec::new(),
            alerts,
            claude_dirs: Vec::new(),
        });
        // The hub is told of both and the process witness of neither: nobody watches them.
        for agent in [&of_dead, &of_alive] {
            let (at, file) = busy_since_long();
            let process = Process {
                pane: None,
                parent_agent: None,
                cwd: None,
                hooks: None,
            };
            let agent = agent.clone();
            let found = Event::ProcessFound {
                agent: agent.clone(),
                process,
            };
            hub.send(found).await.unwrap();
            hub.send(Event::FileRead { agent, at, file }).await.unwrap();
        }
        let state = |agent: &AgentKey| {
            let snapshots = hub.snapshots();
            let snapshot = snapshots.borrow();
            let mut rows = snapshot.items.iter();
            rows.find(|item| item.id == agent.to_string())
                .map(|item| item.state)
        };
        let until = Instant::now() + support::PATIENCE;
        while state(&of_dead) != Some(Some(State::Busy))
            || state(&of_alive) != Some(Some(State::Busy))
        {
            assert!(Instant::now() < until, "they are not busy");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        dead.kill().unwrap();
        dead.wait().unwrap();
        // One look of the net with at most ten tabs, and what a busy machine adds.
        let until = Instant::now() + Duration::from_secs(45);
        while state(&of_dead).is_some() {
            assert!(Instant::now() < until, "it is still {:?}", state(&of_dead));
            assert_eq!(state(&of_alive), Some(Some(State::Busy)));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(
            state(&of_alive),
            Some(Some(State::Busy)),
            "a living one is busy"
        );
        hub.stop().await;
        drop(told);
        tmux.close().await;
        ended.await.unwrap();
        // In this process's own environment there is no other place for the socket.
        let socket = tmux.socket();
        let mut end = Command::new("tmux");
        end.arg("-S").arg(socket).arg("kill-server");
        end.stderr(Stdio::null()).status().unwrap();
        let until = Instant::now() + support::PATIENCE;
        while std::os::unix::net::UnixStream::connect(socket).is_ok() {
            assert!(Instant::now() < until, "tmux does not end");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        fs::remove_file(socket).ok();
    });
    alive.kill().unwrap();
    alive.wait().unwrap();
}
