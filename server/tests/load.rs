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
use std::time::{Duration, Instant};

use serde_json::json;
use support::standin::{Standin, shows};
use support::{TestServer, eventually, place, purplemux, start};

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
    let ahead_ms = support::standin::now_ms() + 3_600_000;
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
    assert!(u128::from(since) <= support::standin::now_ms(), "{item}");
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
