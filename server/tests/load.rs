//! Many who connect, some who never finish what they say, one who hears slowly: the others notice nothing, and
//! what is held for each is bounded.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it stands, starts programs and looks at the real clock"
)]

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use purplemux_wire::browser::{Item, State};
use serde_json::{Value, json};
use support::standin::{Standin, now_ms, shows};
use support::{TestServer, Viewer, eventually, place, purplemux, start};
use tokio_tungstenite::tungstenite::WebSocket;
use tokio_tungstenite::tungstenite::protocol::Role;

/// How long the server waits for the head of a request, and what a loaded machine adds.
const DROPPED_WITHIN: Duration = Duration::from_secs(10 + 15);

/// More than the server lets in of those who have not signed in.
const CROWD: usize = 400;

/// What one who is let in waits at most, on a machine that runs other tests beside.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);

/// A connection that has begun a request and sends no more of it.
fn begun(server: &TestServer) -> TcpStream {
    let mut stream = TcpStream::connect(server.authority()).unwrap();
    stream
        .write_all(b"GET /api/health HTTP/1.1\r\nhost: 127.0.0.1\r\nx-half: ")
        .unwrap();
    stream
}

/// Whether the other end has closed it; waits until `until` for that.
fn closed_by(stream: &mut TcpStream, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        stream.set_read_timeout(Some(left)).unwrap();
        match stream.read(&mut [0; 1024]) {
            // A refusal may come first.
            Ok(read) if read > 0 => {}
            Ok(_) => return true,
            Err(error) => return !matches!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
}

#[test]
fn half_sent_requests_are_dropped_and_never_hold_up_the_others() {
    let server = TestServer::start();
    let from = Instant::now();
    let mut silent = TcpStream::connect(server.authority()).unwrap();
    let mut half = begun(&server);
    // Drop by drop is no better than nothing.
    let mut slow = begun(&server);
    let token = server.token();
    let mut body = TcpStream::connect(server.authority()).unwrap();
    let head = format!(
        "POST /api/status/hook HTTP/1.1\r\nhost: {}\r\nx-pmux-token: {token}\r\ncontent-length: 100\r\n\r\n{{",
        server.authority()
    );
    body.write_all(head.as_bytes()).unwrap();
    let until = from + DROPPED_WITHIN;
    assert!(closed_by(&mut half, until), "a request that is only begun");
    // Writing fails at some time after the other end has closed; until then it is one byte more.
    while slow.write_all(b"x").is_ok() {
        assert!(Instant::now() < until, "a request that never ends");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(closed_by(&mut silent, until), "one that says nothing");
    body.set_read_timeout(Some(DROPPED_WITHIN)).unwrap();
    let mut answer = [0; 12];
    body.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408", "a body that does not come");
    assert!(
        from.elapsed() >= Duration::from_secs(9),
        "nobody is hurried: {:?}",
        from.elapsed()
    );
    assert_eq!(server.request("GET", "/api/health", &[], b"").status, 200);
}

#[test]
fn a_crowd_that_has_not_signed_in_keeps_nobody_out() {
    let server = TestServer::start();
    let browser = server.browser();
    let mut viewer = browser.status();
    let standin = Standin::new(server.dir.path());
    standin.write("idle");
    shows(&server, &standin, "idle");
    let crowd: Vec<TcpStream> = (0..CROWD).map(|_| begun(&server)).collect();

    let from = Instant::now();
    assert_eq!(browser.get("/api/session").status, 200);
    let tool = json!({ "tool_name": "Bash", "tool_input": { "command": "true" } });
    assert_eq!(standin.hook(&server, "PreToolUse", &tool).status, 204);
    server.cli_ok(&["status", "--json"]);
    assert!(from.elapsed() < ANSWERED_WITHIN, "{:?}", from.elapsed());
    // Who was signed in before is still there.
    standin.write("busy");
    viewer.until(|viewer| {
        viewer.items.iter().any(|item| {
            item.pid == Some(standin.pid())
                && item
                    .state
                    .is_some_and(|state| state == purplemux_wire::browser::State::Busy)
        })
    });

    // Those who came first had to go for those who came last, and the log says so.
    let until = Instant::now() + Duration::from_secs(5);
    let mut crowd = crowd.into_iter();
    assert!(closed_by(&mut crowd.next().unwrap(), until));
    let log = std::fs::read_to_string(server.home().join("logs/server.log")).unwrap();
    assert!(log.contains("had not signed in were closed"), "{log}");
}

#[test]
fn it_takes_the_files_it_may_have_and_gives_its_shells_what_they_had() {
    let dir = place();
    let plain = purplemux(dir.path());
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -Sn 300; exec \"$0\" serve --port 0"])
        .arg(plain.get_program())
        .env_clear();
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let (child, port) = start(command);
    let server = TestServer::adopt(dir, port, child);
    // While it starts tmux, it has for a moment what tmux is to have.
    eventually("the soft limit is the hard one", || {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
        let files = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"))
            .unwrap();
        let files: Vec<&str> = files.split_whitespace().collect();
        files[0] == files[1]
    });
    let browser = server.browser();
    let tab = browser.tab();
    let mut terminal = browser.terminal(&tab, 80, 24);
    terminal.keys("echo files-$(ulimit -Sn)\r");
    terminal.until("files-300");
}

#[test]
fn a_hook_from_the_future_counts_as_of_its_arrival() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("idle");
    shows(&server, &standin, "idle");
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    let boot_s: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    // An hour ahead: a virtual machine that was restored, or somebody who can't count.
    let ahead_ns = ((boot_s + 3600.0) * 1e9) as u64;
    let ahead_ms = now_ms() + 3_600_000;
    let stamp = format!("{ahead_ns},{},{ahead_ms}", boot_id.trim());
    let body = json!({ "hook_event_name": "UserPromptSubmit", "prompt": "hello" });
    let (pid, started) = (standin.pid().to_string(), standin.start.to_string());
    let token = server.token();
    let headers = [
        ("x-pmux-token", token.as_str()),
        ("x-pmux-event", "UserPromptSubmit"),
        ("x-pmux-pid", &pid),
        ("x-pmux-start", &started),
        ("x-pmux-stamp", &stamp),
    ];
    let posted = server.local(
        "POST",
        "/api/status/hook",
        &headers,
        body.to_string().as_bytes(),
    );
    assert_eq!(posted.status, 204);
    let item = shows(&server, &standin, "busy");
    let since = item["since_ms"].as_u64().unwrap();
    assert!(u128::from(since) <= now_ms(), "{item}");
    // What its file says after that is later, and so it counts.
    standin.write("busy");
    standin.write("waiting");
    shows(&server, &standin, "needs-input");
    standin.write("busy");
    shows(&server, &standin, "busy");
    // A prompt whose file does not follow is taken back after its second, not after an hour.
    standin.write("idle");
    shows(&server, &standin, "idle");
}

/// What changes while somebody reads slowly.
const SESSIONS: usize = 50;
/// Between two changes of each.
const EVERY: Duration = Duration::from_millis(100);
/// For how long, and for how long nobody reads slowly, to compare.
const STORM: Duration = Duration::from_secs(5);
const BEFORE: Duration = Duration::from_secs(2);
/// Five times the deadlines: other tests run beside this one.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(5 * 2);
const SHOWN_WITHIN: Duration = Duration::from_millis(5 * 300);
/// What the server may have grown by meanwhile: its history of fifty sessions, and nothing that waits for a viewer.
const GROWN_MIB_MAX: u64 = 16;

fn rss_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().split_whitespace().next().unwrap();
    number.parse().unwrap()
}

/// Reads from a viewer's connection at 1 kB/s until `until`; what was read then comes first.
fn read_slowly(viewer: &mut Viewer, until: Instant) {
    let mut stream = viewer.socket.get_ref().try_clone().unwrap();
    let mut early = Vec::new();
    let mut some = [0; 100];
    while Instant::now() < until {
        let read = stream.read(&mut some).unwrap();
        early.extend_from_slice(&some[..read]);
        std::thread::sleep(Duration::from_millis(100));
    }
    viewer.socket = WebSocket::from_partially_read(stream, early, Role::Client, None);
}

fn state_of(items: &[Item], standin: &Standin) -> Option<State> {
    let item = items.iter().find(|item| item.pid == Some(standin.pid()))?;
    item.state
}

/// Changes all of them again and again while somebody else does something; the longest that one page had to wait for
/// one session's badge meanwhile. All wait for the person at the end.
fn storm(
    standins: &[Standin],
    watched: &Standin,
    page: &mut Viewer,
    length: Duration,
    meanwhile: impl FnOnce(Instant),
) -> Duration {
    let until = Instant::now() + length;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut statuses = ["waiting", "busy"].iter().cycle();
            while Instant::now() < until {
                let status = statuses.next().unwrap();
                for standin in standins {
                    standin.write(status);
                }
                std::thread::sleep(EVERY);
            }
            for standin in standins {
                standin.write("waiting");
            }
            over.store(true, Ordering::Release);
        });
        let waited = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !over.load(Ordering::Acquire) {
                for (status, state) in [("waiting", State::NeedsInput), ("busy", State::Busy)] {
                    // Claude says no two words in one millisecond, which is how exactly it stamps them.
                    let last = now_ms();
                    while now_ms() == last {
                        std::thread::yield_now();
                    }
                    let from = Instant::now();
                    watched.write(status);
                    page.until(|viewer| state_of(&viewer.items, watched) == Some(state));
                    longest = longest.max(from.elapsed());
                }
            }
            longest
        });
        meanwhile(until);
        waited.join().unwrap()
    })
}

#[test]
fn l01_a_viewer_that_reads_slowly_ends_with_the_truth_and_delays_nobody() {
    let server = TestServer::start();
    let browser = server.browser();
    let standins: Vec<Standin> = (0..SESSIONS)
        .map(|_| Standin::new(server.dir.path()))
        .collect();
    let watched = Standin::new(server.dir.path());
    for standin in standins.iter().chain([&watched]) {
        standin.write("busy");
    }
    let mut other = browser.status();
    other.until(|viewer| {
        let mut all = standins.iter().chain([&watched]);
        all.all(|standin| state_of(&viewer.items, standin) == Some(State::Busy))
    });
    let usual = storm(&standins, &watched, &mut other, BEFORE, |_| {});
    // What comes between its snapshot and its slow reading would be in nobody's hands.
    other.until(|viewer| {
        let waiting = |standin| state_of(&viewer.items, standin) == Some(State::NeedsInput);
        standins.iter().all(waiting) && state_of(&viewer.items, &watched) == Some(State::Busy)
    });
    let mut slow = browser.status();
    let before = rss_kib(server.pid());
    let late = storm(&standins, &watched, &mut other, STORM, |until| {
        read_slowly(&mut slow, until);
    });
    let grown = rss_kib(server.pid()).saturating_sub(before) / 1024;
    assert!(grown < GROWN_MIB_MAX, "{grown} MiB");
    // On a machine that is busy with other tests, everything is late; what counts is who makes it so.
    let most = SHOWN_WITHIN.max(usual * 3);
    assert!(late < most, "{late:?}, without the slow one {usual:?}");

    // The last words of the storm have been taken in when this one has.
    watched.write("waiting");
    other.until(|viewer| state_of(&viewer.items, &watched) == Some(State::NeedsInput));
    // From now on it reads as fast as it can.
    let from = Instant::now();
    let said = browser.get("/api/items").json();
    let wanted: Vec<Item> = serde_json::from_value(said["items"].clone()).unwrap();
    slow.until(|viewer| {
        wanted.len() == viewer.items.len() && wanted.iter().all(|item| viewer.items.contains(item))
    });
    assert!(from.elapsed() < CAUGHT_UP_WITHIN, "{:?}", from.elapsed());
}

#[test]
fn f06_a_thousand_hooks_a_second_lose_none() {
    const HOOKS: usize = 60;
    let server = TestServer::start();
    let standins: Vec<Standin> = (0..SESSIONS)
        .map(|_| Standin::new(server.dir.path()))
        .collect();
    for standin in &standins {
        standin.write("busy");
        shows(&server, standin, "busy");
    }
    let before = cpu_ms(server.pid());
    let from = Instant::now();
    std::thread::scope(|scope| {
        for (poster, standins) in standins.chunks(10).enumerate() {
            let server = &server;
            scope.spawn(move || {
                for number in 0..HOOKS {
                    let due = EVERY * u32::try_from(number).unwrap();
                    std::thread::sleep(due.saturating_sub(from.elapsed()));
                    for standin in standins {
                        let id = format!("{poster}-{}-{number}", standin.pid());
                        let tool = json!({ "tool_name": "Bash", "tool_use_id": id,
                            "tool_input": { "command": format!("step {number}") } });
                        assert_eq!(standin.hook(server, "PreToolUse", &tool).status, 204);
                        assert_eq!(standin.hook(server, "PostToolUse", &tool).status, 204);
                    }
                }
            });
        }
    });
    let took = from.elapsed().as_secs_f64() * 1000.0;
    let hooks = SESSIONS * HOOKS * 2;
    let spent = cpu_ms(server.pid()) - before;
    // Half a core at a thousand a second is half a millisecond each; five times that, in a build for debugging.
    assert!(
        spent / (hooks as f64) < 5.0 * 0.5,
        "{spent} ms for {hooks} hooks in {took} ms"
    );
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for standin in &standins {
        let path = format!(
            "/api/journal?item={}:{}:{}",
            host.trim(),
            standin.pid(),
            standin.start
        );
        eventually("all of them are in the journal", || {
            let said = server.local("GET", &path, &[], b"").json();
            let records = said["records"].as_array().unwrap();
            let hooks = records.iter().filter_map(Value::as_str);
            hooks.filter(|record| record.contains("hook_fired")).count() == HOOKS * 2
        });
    }
}

/// Processor time that a process has used, in milliseconds.
fn cpu_ms(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u32 = fields[11].parse::<u32>().unwrap() + fields[12].parse::<u32>().unwrap();
    // A hundred ticks a second on every Linux that there is a build for.
    f64::from(ticks) * 10.0
}

#[test]
fn f03_two_hundred_living_sessions_are_right_soon_after_a_start() {
    const LIVING: usize = 200;
    let server = TestServer::start();
    // tmux is up then: torn away while it starts, it might not end.
    server.cli_ok(&["tab", "create"]);
    let standins: Vec<Standin> = (0..LIVING)
        .map(|_| Standin::new(server.dir.path()))
        .collect();
    for pid in 4_194_304..4_194_304 + 1000 {
        let stale = format!(r#"{{"pid":{pid},"procStart":"1","status":"busy"}}"#);
        std::fs::write(standins[0].sessions.join(format!("{pid}.json")), stale).unwrap();
    }
    let dir = server.end("-KILL");
    let statuses = [
        ("idle", "idle"),
        ("busy", "busy"),
        ("waiting", "needs-input"),
    ];
    for (standin, (status, _)) in standins.iter().zip(statuses.iter().cycle()) {
        standin.write(status);
    }
    let from = Instant::now();
    let mut command = purplemux(dir.path());
    command.args(["serve", "--port", "0"]);
    let (child, port) = start(command);
    let server = TestServer::adopt(dir, port, child);
    let listening = from.elapsed();
    assert!(listening < 5 * Duration::from_millis(500), "{listening:?}");
    let mut wrong = Vec::new();
    while from.elapsed() < CAUGHT_UP_WITHIN {
        let said = server.local("GET", "/api/items", &[], b"").json();
        let items = said["items"].as_array().unwrap();
        wrong = standins
            .iter()
            .zip(statuses.iter().cycle())
            .filter(|(standin, (_, state))| {
                !items
                    .iter()
                    .any(|item| item["pid"] == standin.pid() && item["state"] == *state)
            })
            .map(|(standin, _)| standin.pid())
            .collect();
        if wrong.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{} are not right yet", wrong.len());
}

#[test]
fn f01_a_hook_is_on_the_page_soon_with_many_tabs() {
    const EVENTS: usize = 200;
    let server = TestServer::start();
    let browser = server.browser();
    let standins: Vec<Standin> = (0..SESSIONS)
        .map(|_| Standin::new(server.dir.path()))
        .collect();
    for standin in &standins {
        standin.write("busy");
    }
    let mut viewer = browser.status();
    viewer.until(|viewer| {
        let mut all = standins.iter();
        all.all(|standin| state_of(&viewer.items, standin) == Some(State::Busy))
    });
    let mut took = Vec::new();
    for (number, standin) in (0..EVENTS).zip(standins.iter().cycle()) {
        let command = format!("step {number}");
        let tool = json!({ "tool_name": "Bash", "tool_use_id": command,
            "tool_input": { "command": command } });
        let from = Instant::now();
        assert_eq!(standin.hook(&server, "PreToolUse", &tool).status, 204);
        viewer.until(|viewer| {
            let item = viewer
                .items
                .iter()
                .find(|item| item.pid == Some(standin.pid()));
            item.is_some_and(|item| item.detail.arg.as_deref() == Some(&command))
        });
        took.push(from.elapsed());
        assert_eq!(standin.hook(&server, "PostToolUse", &tool).status, 204);
        viewer.until(|viewer| {
            let item = viewer
                .items
                .iter()
                .find(|item| item.pid == Some(standin.pid()));
            item.is_some_and(|item| item.detail.arg.is_none())
        });
    }
    took.sort();
    let (median, p99) = (took[EVENTS / 2], took[EVENTS * 99 / 100]);
    // Five times what the page may take (p95 100 ms, at most 300); what a quiet machine reaches is measured by bench.
    assert!(median < 5 * Duration::from_millis(100), "{median:?}");
    assert!(p99 < 5 * Duration::from_millis(300), "{p99:?}");
}
