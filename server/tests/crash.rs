//! A server that is killed, hung or doubled, and files of its own that are damaged: it starts again, shows what
//! is so, and loses nothing that it had acknowledged.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it stands, starts programs and looks at the real clock"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::standin::{Standin, item_of, shows};
use support::{TestServer, place, purplemux, start};

/// A second server is told within this; it looks for a second whether the first is just about to end.
const REFUSED_WITHIN: Duration = Duration::from_secs(10);

/// Starts another server in the same home; what it says before it gives up.
fn refused(server: &TestServer) -> String {
    let from = Instant::now();
    let output = server.cli(&["serve", "--port", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(from.elapsed() < REFUSED_WITHIN, "{:?}", from.elapsed());
    assert!(output.stdout.is_empty(), "it says no address");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn h10_a_second_server_is_refused_and_steals_nothing_even_from_one_that_hangs() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("busy");
    shows(&server, &standin, "busy");
    let browser = server.browser();
    let tab = browser.tab();
    let mut viewer = browser.status();
    let home = server.home();
    let port = std::fs::read_to_string(home.join("port")).unwrap();
    for hung in [false, true] {
        if hung {
            server.signal("-STOP");
        }
        let said = refused(&server);
        for part in [
            "already running",
            &server.pid().to_string(),
            home.to_str().unwrap(),
            "stop it, or set PURPLEMUX_HOME",
        ] {
            assert!(said.contains(part), "{part:?} in {said}");
        }
        if hung {
            server.signal("-CONT");
        }
    }
    // Socket, port, tmux server, database and viewers are the first one's as before.
    assert_eq!(std::fs::read_to_string(home.join("port")).unwrap(), port);
    assert_eq!(server.json(&["tab", "list", "--json"])[0]["id"], tab);
    let lock = std::fs::read_to_string(home.join("lock")).unwrap();
    assert_eq!(lock.trim(), server.pid().to_string());
    standin.write("waiting");
    shows(&server, &standin, "needs-input");
    let asked = |viewer: &support::Viewer| viewer.items.iter().any(|item| item.attention);
    viewer.until(asked);
}

/// Five times the deadline: other tests run beside this one.
const RIGHT_WITHIN: Duration = Duration::from_secs(5 * 2);

/// Ends a server as a crash does, and starts the next one in the same place.
fn crash(server: TestServer) -> TestServer {
    let dir = server.end("-KILL");
    again(dir)
}

fn again(dir: tempfile::TempDir) -> TestServer {
    let mut command = purplemux(dir.path());
    command.args(["serve", "--port", "0"]);
    let (child, port) = start(command);
    TestServer::adopt(dir, port, child)
}

/// Waits until each shows its state, for as long as a start may take.
fn all_right(server: &TestServer, from: Instant, wanted: &[(&Standin, &str)]) {
    for (standin, state) in wanted {
        let mut last = None;
        while from.elapsed() < RIGHT_WITHIN {
            last = item_of(server, standin.pid());
            if last.as_ref().is_some_and(|item| item["state"] == *state) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(last.map(|item| item["state"].clone()), Some(json!(state)));
    }
}

/// Waits until its tmux has answered: a tmux server whose control client is torn away while it greets may not end.
fn settled(server: &TestServer, tab: &str) {
    server.cli_ok(&["tab", "send", "--no-enter", tab, "x"]);
}

fn transcript(standin: &Standin) -> PathBuf {
    let projects = standin.sessions.with_file_name("projects/-tmp");
    fs::create_dir_all(&projects).unwrap();
    projects.join(format!(
        "00000000-0000-4000-8000-{:012}.jsonl",
        standin.pid()
    ))
}

#[test]
fn h09_a_stop_that_was_acknowledged_is_not_forgotten_by_a_crash() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    let path = transcript(&standin);
    fs::write(&path, "").unwrap();
    standin.write("idle");
    shows(&server, &standin, "idle");
    let prompt = json!({ "prompt": "go on", "transcript_path": path });
    assert_eq!(
        standin.hook(&server, "UserPromptSubmit", &prompt).status,
        204
    );
    standin.write("busy");
    shows(&server, &standin, "busy");
    let line = |value: Value| format!("{value}\n");
    let now = jiff_now();
    fs::write(
        &path,
        line(json!({ "type": "user", "isSidechain": false, "uuid": "u1", "timestamp": now,
            "message": { "role": "user", "content": "go on" } }))
            + &line(json!({ "type": "assistant", "isSidechain": false, "uuid": "u2", "parentUuid": "u1", "timestamp": now,
            "message": { "role": "assistant", "model": "m", "stop_reason": "end_turn",
                "content": [{ "type": "text", "text": "done" }] } })),
    )
    .unwrap();
    let stop = json!({ "last_assistant_message": "done", "transcript_path": path });
    assert_eq!(standin.hook(&server, "Stop", &stop).status, 204);
    let dir = server.end("-KILL");
    // Claude goes on without us.
    standin.write("idle");
    let from = Instant::now();
    let server = again(dir);
    all_right(&server, from, &[(&standin, "review")]);
    let item = item_of(&server, standin.pid()).unwrap();
    assert_eq!(item["detail"]["outcome"], "finished");
}

/// As Claude writes times.
fn jiff_now() -> String {
    let output = std::process::Command::new("date")
        .args(["-u", "+%Y-%m-%dT%H:%M:%S.%3NZ"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Times at which it is killed while it writes badges, journal and layout, in milliseconds.
const MOMENTS: [u64; 10] = [0, 1, 2, 3, 5, 8, 13, 40, 120, 260];

#[test]
fn h09_killed_at_any_moment_of_its_writing_it_keeps_what_it_acknowledged() {
    let mut server = TestServer::start();
    let made = server.json(&["tab", "create", "--json"]);
    let tab = made["tab"].as_str().unwrap().to_owned();
    let first = Standin::new(server.dir.path());
    let second = Standin::new(server.dir.path());
    let third = Standin::new(server.dir.path());
    for moment in MOMENTS {
        settled(&server, &tab);
        let stop = AtomicBool::new(false);
        let (acknowledged, last) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut last = "busy";
                while !stop.load(Ordering::Relaxed) {
                    last = if last == "busy" { "waiting" } else { "busy" };
                    first.write("busy");
                    first.write(last);
                    second.write("busy");
                    std::thread::sleep(Duration::from_millis(1));
                }
                last
            });
            let renamer = scope.spawn(|| {
                let mut acknowledged = 0_u32;
                // The last request is cut off by the kill.
                while rename(&server, &tab, acknowledged + 1) {
                    acknowledged += 1;
                }
                acknowledged
            });
            std::thread::sleep(Duration::from_millis(moment));
            server.signal("-KILL");
            stop.store(true, Ordering::Relaxed);
            (renamer.join().unwrap(), writer.join().unwrap())
        });
        // Claude goes on; two words of one millisecond are nothing that it says.
        std::thread::sleep(Duration::from_millis(20));
        first.write(last);
        third.write("idle");
        let from = Instant::now();
        server = crash(server);
        let first_state = if last == "busy" {
            "busy"
        } else {
            "needs-input"
        };
        all_right(
            &server,
            from,
            &[(&first, first_state), (&second, "busy"), (&third, "idle")],
        );
        let title = server.json(&["tab", "list", "--json"])[0]["title"].clone();
        let number = title
            .as_str()
            .unwrap()
            .strip_prefix("name ")
            .map(|n| n.parse::<u32>().unwrap());
        // What was acknowledged is there; the one that was cut off may be.
        assert!(
            acknowledged == 0 || number.is_some_and(|n| n == acknowledged || n == acknowledged + 1),
            "{title} after {acknowledged}"
        );
        let items = server.local("GET", "/api/items", &[], b"").json();
        assert_eq!(items["notices"], json!([]), "nothing was damaged");
    }
}

/// Gives a tab its next name; false when the server does not answer any more.
fn rename(server: &TestServer, tab: &str, number: u32) -> bool {
    use std::io::{Read as _, Write as _};
    let body = json!({ "name": format!("name {number}") }).to_string();
    let asked = || -> std::io::Result<String> {
        let mut stream =
            std::os::unix::net::UnixStream::connect(server.home().join("purplemux.sock"))?;
        write!(
            stream,
            "PATCH /api/tabs/{tab} HTTP/1.1\r\nhost: purplemux\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    asked().is_ok_and(|answer| answer.starts_with("HTTP/1.1 204"))
}

/// Damages a file.
type Hurt<'a> = &'a dyn Fn(&Path);

#[test]
fn h09_whatever_is_damaged_it_starts_with_its_layout_and_says_so() {
    let rubbish = |path: &Path| fs::write(path, vec![b'x'; 9000]).unwrap();
    let short = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 3]).unwrap();
    };
    let empty = |path: &Path| fs::write(path, "").unwrap();
    let without_log = |path: &Path| {
        rubbish(path);
        let log = path.with_extension("db-wal");
        if log.exists() {
            fs::remove_file(log).unwrap();
        }
    };
    // Where the log beside it holds what the file lacks, nothing is lost and nothing set aside.
    let hurts: [(&str, Hurt<'_>, Option<bool>); 7] = [
        ("purplemux.db", &without_log, Some(true)),
        ("purplemux.db", &rubbish, None),
        ("purplemux.db", &short, None),
        ("purplemux.db", &empty, Some(true)),
        ("purplemux.db-wal", &rubbish, Some(false)),
        ("port", &rubbish, Some(false)),
        ("lock", &rubbish, Some(false)),
    ];
    let mut server = TestServer::start_in(place());
    let made = server.json(&["tab", "create", "-n", "kept", "--json"]);
    let standin = Standin::new(server.dir.path());
    let home = server.home();
    support::eventually("the layout is copied", || {
        let copy = rusqlite::Connection::open(home.join("purplemux.kept"));
        copy.and_then(|copy| {
            copy.query_row("SELECT count(*) FROM tabs", [], |row| row.get::<_, i64>(0))
        })
        .is_ok_and(|tabs| tabs == 1)
    });
    let mut damaged = 0;
    for (name, hurt, set_aside) in hurts {
        standin.write("busy");
        shows(&server, &standin, "busy");
        settled(&server, made["tab"].as_str().unwrap());
        let dir = server.end("-KILL");
        hurt(&dir.path().join("home").join(name));
        standin.write("waiting");
        let from = Instant::now();
        server = again(dir);
        all_right(&server, from, &[(&standin, "needs-input")]);
        let tabs = server.json(&["tab", "list", "--json"]);
        assert_eq!(
            (&tabs[0]["id"], &tabs[0]["title"]),
            (&made["tab"], &json!("kept")),
            "{name}"
        );
        let items = server.local("GET", "/api/items", &[], b"").json();
        let notices = items["notices"].to_string();
        let said = notices.contains("has been set aside as");
        assert_eq!(said, set_aside.unwrap_or(said), "{name}: {notices}");
        assert_eq!(
            notices.contains("from the last good copy"),
            said,
            "{name}: {notices}"
        );
        damaged += usize::from(said);
        let aside = fs::read_dir(server.home())
            .unwrap()
            .flatten()
            .filter(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name.starts_with("purplemux.db.damaged-")
                    && !name.ends_with("-wal")
                    && !name.ends_with("-shm")
            });
        assert_eq!(aside.count(), damaged, "{name}");
    }
    settled(&server, made["tab"].as_str().unwrap());
}

/// A server whose home is a small disk of its own, in a namespace of its own.
fn on_a_small_disk() -> TestServer {
    let dir = place();
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    let plain = purplemux(dir.path());
    let mut command = std::process::Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg("mount -t tmpfs -o size=6m,mode=700 none \"$PURPLEMUX_HOME\" && exec \"$0\" serve --port 0")
        .arg(plain.get_program())
        .env_clear();
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let (child, port) = start(command);
    TestServer::adopt(dir, port, child)
}

/// Runs something where the server lives.
fn inside(server: &TestServer, program: &str, arguments: &[&str]) -> std::process::Output {
    let plain = purplemux(server.dir.path());
    let mut command = std::process::Command::new("nsenter");
    command
        .args([
            "-t",
            &server.pid().to_string(),
            "-U",
            "-m",
            "--preserve-credentials",
            program,
        ])
        .args(arguments)
        .env_clear();
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.output().unwrap()
}

fn run_inside(server: &TestServer, arguments: &[&str]) -> std::process::Output {
    inside(server, env!("CARGO_BIN_EXE_purplemux"), arguments)
}

#[test]
fn a_full_disk_is_named_once_and_badges_go_on_until_there_is_room() {
    let server = on_a_small_disk();
    let standin = Standin::new(server.dir.path());
    standin.write("idle");
    let seen = |state: &str| {
        support::eventually(state, || {
            let said = run_inside(&server, &["status", "--json"]);
            let items: Vec<Value> = serde_json::from_slice(&said.stdout).unwrap_or_default();
            items
                .iter()
                .any(|item| item["pid"] == standin.pid() && item["state"] == state)
        });
    };
    let notices = || {
        let said = inside(
            &server,
            "curl",
            &[
                "-s",
                "--unix-socket",
                server.home().join("purplemux.sock").to_str().unwrap(),
                "http://purplemux/api/items",
            ],
        );
        let said: Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
        said["notices"].to_string()
    };
    seen("idle");
    let home = server.home().display().to_string();
    let filler = format!("{home}/filler");
    let fill = format!("head -c 8M /dev/zero >{filler}");
    assert!(!inside(&server, "sh", &["-c", &fill]).status.success());
    for status in ["busy", "waiting", "busy"] {
        standin.write(status);
        seen(if status == "busy" {
            "busy"
        } else {
            "needs-input"
        });
    }
    support::eventually("the page says so", || {
        notices().contains("History is not being saved")
    });
    for command in [&["tab", "create"][..], &["login"]] {
        let refused = run_inside(&server, command);
        assert_eq!(refused.status.code(), Some(1), "{command:?}");
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(said.matches("full").count(), 1, "{said}");
        assert_eq!(said.matches(&home).count(), 1, "{said}");
        assert!(
            said.contains("Free some space there, then try again"),
            "{said}"
        );
    }
    assert!(inside(&server, "rm", &[&filler]).status.success());
    support::eventually("it heals", || notices() == "[]");
    assert!(run_inside(&server, &["login"]).status.success());
    assert!(run_inside(&server, &["tab", "create"]).status.success());
    standin.write("waiting");
    seen("needs-input");
}
