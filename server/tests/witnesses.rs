//! What the witnesses make of files, processes, hooks and tmux, good and bad, through a whole server. The
//! Claudes here are processes that only sleep; the test writes their status files and fires their hooks.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it stands, starts programs and looks at the real clock"
)]

mod support;

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::{Value, json};
use support::standin::{Standin, gone, item_of, items, shows, wait};
use support::{TestServer, place, purplemux, start};

/// Whatever else was sent before has been taken in when the server has taken in this: a change of a witness
/// process, through the same watch and the same inbox.
fn settle(server: &TestServer, witness: &Standin) {
    for status in ["busy", "idle"] {
        witness.write(status);
        shows(server, witness, status);
    }
}

#[test]
fn h11_a_torn_or_odd_file_keeps_the_badge_until_it_is_whole() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    let witness = Standin::new(server.dir.path());
    standin.write("idle");
    shows(&server, &standin, "idle");

    let whole = standin.status("busy");
    for torn in [
        &whole[..whole.len() / 2],
        "",
        "{}",
        "[]",
        "\0\0\0",
        "{\"status\":",
    ] {
        fs::write(standin.file(), torn).unwrap();
        settle(&server, &witness);
        let item = item_of(&server, standin.pid()).unwrap();
        assert_eq!(item["state"], "idle", "{torn:?}");
    }
    // The rest of the write arrives; the file is not closed, so nothing but a retry can see it.
    let mut file = File::create(standin.file()).unwrap();
    file.write_all(&whole.as_bytes()[..100]).unwrap();
    file.sync_all().unwrap();
    settle(&server, &witness);
    file.write_all(&whole.as_bytes()[100..]).unwrap();
    shows(&server, &standin, "busy");
}

#[test]
fn h11_what_is_no_file_is_never_waited_for() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    let witness = Standin::new(server.dir.path());
    let elsewhere = server.dir.path().join("elsewhere.json");
    fs::write(&elsewhere, standin.status("busy")).unwrap();
    // A link that leads out, a pipe without a writer, a folder.
    symlink(&elsewhere, standin.file()).unwrap();
    settle(&server, &witness);
    assert!(item_of(&server, standin.pid()).is_none());
    fs::remove_file(standin.file()).unwrap();
    let made = Command::new("mkfifo").arg(standin.file()).status().unwrap();
    assert!(made.success());
    settle(&server, &witness);
    fs::remove_file(standin.file()).unwrap();
    fs::create_dir(standin.file()).unwrap();
    settle(&server, &witness);
    assert!(item_of(&server, standin.pid()).is_none());
    fs::remove_dir(standin.file()).unwrap();
    standin.write("busy");
    shows(&server, &standin, "busy");
}

#[test]
fn d08_what_else_lies_in_the_folder_is_left_alone() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    let witness = Standin::new(server.dir.path());
    let pid = standin.pid();
    let long_ago = UNIX_EPOCH + Duration::from_secs(1_000_000);
    let mut keys = Vec::new();
    for name in [format!("{pid}.abc0.key"), format!("{pid}.abc0.key.tmp.ff")] {
        let path = standin.sessions.join(name);
        fs::write(&path, "{\"secret\":true}").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_times(fs::FileTimes::new().set_accessed(long_ago))
            .unwrap();
        keys.push(path);
    }
    fs::write(
        standin.sessions.join(format!("pid-{pid}.json")),
        standin.status("busy"),
    )
    .unwrap();
    fs::write(standin.sessions.join("notes.txt"), "x").unwrap();
    let mut daemon: Value = serde_json::from_str(&standin.status("busy")).unwrap();
    daemon["kind"] = json!("daemon-worker");
    fs::write(standin.file(), daemon.to_string()).unwrap();
    settle(&server, &witness);
    assert!(item_of(&server, pid).is_none(), "{:?}", items(&server));
    for key in keys {
        // A read would have set it: it is older than the last change.
        let accessed = fs::metadata(&key).unwrap().atime();
        assert_eq!(accessed, 1_000_000, "{} was opened", key.display());
    }
}

#[test]
fn d03_a_killed_claude_is_gone_and_its_file_is_never_shown_again() {
    let server = TestServer::start();
    let mut standin = Standin::new(server.dir.path());
    standin.write("busy");
    shows(&server, &standin, "busy");
    standin.write("waiting");
    shows(&server, &standin, "needs-input");
    standin.child.kill().unwrap();
    let killed = Instant::now();
    gone(&server, &standin);
    assert!(
        killed.elapsed() < Duration::from_secs(5),
        "five times the deadline"
    );

    let witness = Standin::new(server.dir.path());
    standin.write("waiting");
    settle(&server, &witness);
    assert!(item_of(&server, standin.pid()).is_none(), "the stale file");
    standin.child.wait().unwrap();
    standin.child = Command::new("sleep").arg("600").spawn().unwrap();
}

#[test]
fn d04_a_file_that_names_another_s_pid_is_nobody_s() {
    let server = TestServer::start();
    let mut standin = Standin::new(server.dir.path());
    let witness = Standin::new(server.dir.path());
    let real = standin.start;
    standin.start = real - 1;
    standin.write("busy");
    settle(&server, &witness);
    assert!(item_of(&server, standin.pid()).is_none(), "an editor");
    standin.start = real;
    standin.write("idle");
    shows(&server, &standin, "idle");
}

#[test]
fn d05_a_stopped_claude_is_suspended_and_comes_back() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("busy");
    shows(&server, &standin, "busy");
    standin.signal("-STOP");
    let stopped = Instant::now();
    let item = wait("never suspended", || {
        item_of(&server, standin.pid()).filter(|item| item["presence"] == "suspended")
    });
    assert!(
        stopped.elapsed() < Duration::from_secs(5),
        "five times the deadline"
    );
    assert_eq!(item["attention"], false);
    standin.signal("-CONT");
    wait("never back", || {
        item_of(&server, standin.pid())
            .filter(|item| item["presence"] == "running" && item["state"] == "busy")
    });
}

#[test]
fn h08_a_hook_before_the_file_is_kept_and_goes_to_nobody_else() {
    let server = TestServer::start();
    let other = Standin::new(server.dir.path());
    other.write("idle");
    shows(&server, &other, "idle");
    let standin = Standin::new(server.dir.path());
    let start = standin.hook(&server, "SessionStart", &json!({ "source": "startup" }));
    assert_eq!(start.status, 204);
    let prompt = standin.hook(&server, "UserPromptSubmit", &json!({ "prompt": "early" }));
    assert_eq!(prompt.status, 204);
    settle(&server, &other);
    standin.write("busy");
    let item = shows(&server, &standin, "busy");
    assert_eq!(item["hooks"], true);
    assert_eq!(item_of(&server, other.pid()).unwrap()["state"], "idle");
    let stop = json!({ "last_assistant_message": "done", "background_tasks": [] });
    assert_eq!(standin.hook(&server, "Stop", &stop).status, 204);
    standin.write("idle");
    let item = shows(&server, &standin, "review");
    assert_eq!(item["last_message"], "done");
    assert_eq!(item_of(&server, other.pid()).unwrap()["state"], "idle");
}

#[test]
fn n10_a_hook_of_a_process_nobody_knows_moves_nothing() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("idle");
    shows(&server, &standin, "idle");
    let before = items(&server);
    let token = server.token();
    let post = |headers: &[(&str, &str)], body: &[u8]| {
        let mut all = vec![("x-pmux-token", token.as_str())];
        all.extend(headers);
        server.local("POST", "/api/status/hook", &all, body)
    };
    let pid = standin.pid().to_string();
    // Broken, empty, no JSON object, deep: refused with a sentence.
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    for body in ["{", "[]", "null", "\"x\"", "{\"a\":}", "\u{0}", &deep] {
        let answer = post(
            &[("x-pmux-event", "Stop"), ("x-pmux-pid", &pid)],
            body.as_bytes(),
        );
        assert_eq!(answer.status, 400, "{body:.20}");
        assert!(
            answer.json()["error"]
                .as_str()
                .is_some_and(|why| !why.is_empty())
        );
    }
    assert_eq!(post(&[], b"").status, 400, "no event at all");
    // Well formed, but about nobody or nothing we know: taken, and changes nothing.
    let accepted: [(&[(&str, &str)], &str); 6] = [
        (
            &[("x-pmux-event", "InventedTomorrow"), ("x-pmux-pid", &pid)],
            "{}",
        ),
        (
            &[
                ("x-pmux-event", "Stop"),
                ("x-pmux-pid", "4194303"),
                ("x-pmux-start", "1"),
            ],
            "{}",
        ),
        (
            &[
                ("x-pmux-event", "Stop"),
                ("x-pmux-pane", "%77"),
                ("x-pmux-tmux", "/none,1,0"),
            ],
            "{}",
        ),
        (
            &[
                ("x-pmux-event", "Stop"),
                ("x-pmux-pid", "-1"),
                ("x-pmux-stamp", "x,y"),
            ],
            "{}",
        ),
        (&[], r#"{"event":"stop","session":"no-such-session"}"#),
        (
            &[("x-pmux-event", "Notification"), ("x-pmux-pid", &pid)],
            "{}",
        ),
    ];
    for (headers, body) in accepted {
        assert_eq!(
            post(headers, body.as_bytes()).status,
            204,
            "{headers:?} {body}"
        );
    }
    let witness = Standin::new(server.dir.path());
    settle(&server, &witness);
    let mut after = items(&server);
    after.retain(|item| item["pid"] != witness.pid());
    // That a hook of ours was heard may be seen; no badge may move.
    for items in [&before, &after] {
        assert_eq!(items.len(), 1, "{items:?}");
        assert_eq!(items[0]["state"], "idle");
    }
}

#[test]
fn n08_directories_of_claude_are_learned_from_its_processes() {
    let server = TestServer::start();
    let dir = server.dir.path();
    let (a, b) = (dir.join("a"), dir.join("deep/b"));
    let standins = [
        Standin::in_claude_dir(dir, Some(&a)),
        Standin::in_claude_dir(dir, Some(&b)),
        Standin::new(dir),
    ];
    for standin in &standins {
        standin.write("busy");
        // Its pid leads to its environment, and that to its folder.
        let start = standin.hook(&server, "SessionStart", &json!({ "source": "startup" }));
        assert_eq!(start.status, 204);
    }
    for standin in &standins {
        shows(&server, standin, "busy");
    }
    // From then on the folder is watched: the next one in it needs no hook.
    let quiet = Standin::in_claude_dir(dir, Some(&a));
    quiet.write("idle");
    shows(&server, &quiet, "idle");
    assert_eq!(items(&server).len(), 4);
}

#[test]
fn n08_a_directory_that_does_not_exist_yet_is_found_when_it_is_made() {
    let server = TestServer::start();
    let sessions = server.dir.path().join("person/.claude/sessions");
    assert!(!sessions.exists());
    let standin = Standin::new(server.dir.path());
    standin.write("idle");
    shows(&server, &standin, "idle");
    // Removed with everything in it, and made again.
    fs::remove_dir_all(server.dir.path().join("person/.claude")).unwrap();
    fs::create_dir_all(&sessions).unwrap();
    standin.write("busy");
    shows(&server, &standin, "busy");
}

/// Fires the hook command itself, as Claude does.
fn run_hook(dir: &Path, standin: &Standin, event: &str, body: &[u8]) -> (Output, Duration) {
    let mut child = purplemux(dir)
        .args(["hook", event])
        .env("CLAUDE_PID", standin.pid().to_string())
        .env("CLAUDE_CODE_MESSAGING_TOKEN", "secret-of-claude")
        .env("http_proxy", "http://127.0.0.1:9")
        .env("HTTP_PROXY", "http://127.0.0.1:9")
        .env("ALL_PROXY", "http://127.0.0.1:9")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    // It may not read what it does not want.
    drop(child.stdin.take().unwrap().write_all(body));
    let output = child.wait_with_output().unwrap();
    (output, began.elapsed())
}

fn assert_silent(output: &Output) {
    assert_eq!(output.status.code(), Some(0));
    assert!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
}

fn spooled(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir.join("home/spool")) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "hook"))
        .collect()
}

#[test]
fn k02_hooks_fired_while_the_server_is_down_are_spooled_and_come_in_order() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("idle");
    shows(&server, &standin, "idle");
    let dir = server.end("-TERM");
    let stop = json!({ "last_assistant_message": "while you were away", "background_tasks": [] });
    standin.write("busy");
    for (event, body) in [
        ("UserPromptSubmit", json!({ "prompt": "hello" })),
        ("Stop", stop),
    ] {
        let (output, _) = run_hook(dir.path(), &standin, event, body.to_string().as_bytes());
        assert_silent(&output);
    }
    standin.write("idle");
    let records = spooled(dir.path());
    assert_eq!(records.len(), 2);
    for record in &records {
        let mode = fs::metadata(record).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let text = fs::read_to_string(record).unwrap();
        assert!(!text.contains("secret-of-claude"), "K08");
    }
    fs::write(dir.path().join("home/spool/0-broken.hook"), "rubbish").unwrap();
    let server = TestServer::start_in(dir);
    let item = shows(&server, &standin, "review");
    assert_eq!(item["last_message"], "while you were away");
    wait("the spool is not emptied", || {
        spooled(server.dir.path()).is_empty().then_some(())
    });
}

#[test]
fn k01_k02_a_hung_server_holds_no_hook_up_and_loses_none() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("busy");
    shows(&server, &standin, "busy");
    server.signal("-STOP");
    let stop = json!({ "last_assistant_message": "late", "background_tasks": [] }).to_string();
    let (output, took) = run_hook(server.dir.path(), &standin, "Stop", stop.as_bytes());
    assert_silent(&output);
    assert!(
        took < Duration::from_millis(250),
        "{took:?}: five times the bound of 50 ms"
    );
    assert_eq!(spooled(server.dir.path()).len(), 1);
    standin.write("idle");
    server.signal("-CONT");
    let item = shows(&server, &standin, "review");
    assert_eq!(item["last_message"], "late");
    wait("the spool is not emptied", || {
        spooled(server.dir.path()).is_empty().then_some(())
    });
}

#[test]
fn k02_the_hook_is_silent_whatever_is_wrong() {
    let dir = place();
    let standin = Standin::new(dir.path());
    // No home at all; then a home that is a file.
    for _ in 0..2 {
        let (output, _) = run_hook(dir.path(), &standin, "Stop", b"{}");
        assert_silent(&output);
        if !dir.path().join("home").exists() {
            fs::write(dir.path().join("home"), "").unwrap();
        }
    }
    // No event, no input, an endless one.
    for arguments in [&["hook"][..], &["hook", "Stop", "more"]] {
        let output = purplemux(dir.path()).args(arguments).output().unwrap();
        assert_silent(&output);
    }
    let (output, _) = run_hook(dir.path(), &standin, "Stop", &vec![b' '; 3 * 1024 * 1024]);
    assert_silent(&output);
}

#[test]
fn k02_the_script_is_silent_with_the_program_and_without_it() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("busy");
    shows(&server, &standin, "busy");
    let script = server.home().join("status-hook.sh");
    let run = |script: &Path| {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(format!("'{}' Stop", script.display()))
            .env("CLAUDE_PID", standin.pid().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let body = br#"{"hook_event_name":"Stop","last_assistant_message":"by script"}"#;
        child.stdin.take().unwrap().write_all(body).unwrap();
        child.wait_with_output().unwrap()
    };
    assert_silent(&run(&script));
    standin.write("idle");
    shows(&server, &standin, "review");

    // The binary has gone: curl takes over, and without curl or a server nothing is said either.
    standin.write("busy");
    shows(&server, &standin, "busy");
    let text = fs::read_to_string(&script).unwrap();
    let orphan = server.dir.path().join("orphan.sh");
    fs::write(
        &orphan,
        text.replace(env!("CARGO_BIN_EXE_purplemux"), "/nowhere/purplemux"),
    )
    .unwrap();
    fs::set_permissions(&orphan, fs::Permissions::from_mode(0o755)).unwrap();
    assert_silent(&run(&orphan));
    standin.write("idle");
    // curl has 50 ms and no spool, so on a loaded machine a call may be lost; a Stop may come late, and
    // repeats are harmless.
    wait("review by curl", || {
        assert_silent(&run(&orphan));
        (item_of(&server, standin.pid())?["state"] == "review").then_some(())
    });
    let dir = server.end("-KILL");
    assert_silent(&run(&orphan));
    support::end_tmux(dir.path());
}

#[test]
fn x05_a_dropped_control_client_is_back_and_no_badge_moves() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("busy");
    shows(&server, &standin, "busy");
    let tab = server.json(&["tab", "create", "--json"]);
    let socket = tab["tmux"]["socket"].as_str().unwrap().to_owned();
    let clients = || {
        let output = Command::new("tmux")
            .args(["-S", &socket, "list-clients", "-F", "#{client_pid}"])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let first = clients();
    let killed = Command::new("kill").args(["-9", &first]).status().unwrap();
    assert!(killed.success());
    let dropped = Instant::now();
    wait("no control client", || {
        let now = clients();
        (!now.is_empty() && now != first).then_some(())
    });
    assert!(
        dropped.elapsed() < Duration::from_secs(10),
        "five times the deadline"
    );
    assert_eq!(item_of(&server, standin.pid()).unwrap()["state"], "busy");
    let second = server.json(&["tab", "create", "--json"]);
    assert_ne!(tab["tab"], second["tab"]);
}

#[test]
fn x05_a_control_client_that_falls_behind_catches_up() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("busy");
    shows(&server, &standin, "busy");
    let tab = server.json(&["tab", "create", "--json"]);
    let socket = tab["tmux"]["socket"].as_str().unwrap().to_owned();
    let tmux = |arguments: &[&str]| {
        let output = Command::new("tmux")
            .args(["-S", &socket])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let client = tmux(&["list-clients", "-F", "#{client_pid}"]);
    let signal = |name: &str| {
        assert!(
            Command::new("kill")
                .args([name, &client])
                .status()
                .unwrap()
                .success()
        );
    };
    signal("-STOP");
    // Each of these is a notification, and the flood is none of the control client's business.
    for number in 0..50 {
        tmux(&[
            "new-session",
            "-d",
            "-s",
            &format!("other-{number}"),
            "seq 1 20000; exec cat",
        ]);
    }
    standin.write("waiting");
    shows(&server, &standin, "needs-input");
    signal("-CONT");
    let second = server.json(&["tab", "create", "--json"]);
    let id = second["tab"].as_str().unwrap();
    wait("the new tab's pane is not listed", || {
        let rows = items(&server);
        let row = rows.iter().find(|row| row["tab"] == id)?;
        row["title"]
            .as_str()
            .is_some_and(|title| title.starts_with("bash"))
            .then_some(())
    });
    let resident = || -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS"))
            .unwrap();
        line.split_ascii_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    };
    assert!(resident() < 100_000, "{} kB", resident());
}

#[test]
fn x01_a_tmux_that_hangs_moves_no_badge_and_files_and_hooks_go_on() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("idle");
    shows(&server, &standin, "idle");
    let tab = server.json(&["tab", "create", "--json"]);
    let socket = tab["tmux"]["socket"].as_str().unwrap().to_owned();
    let output = Command::new("tmux")
        .args(["-S", &socket, "display-message", "-p", "#{pid}"])
        .output()
        .unwrap();
    let tmux = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let signal = |name: &str| {
        assert!(
            Command::new("kill")
                .args([name, &tmux])
                .status()
                .unwrap()
                .success()
        );
    };
    signal("-STOP");
    let rows = items(&server).len();
    standin.write("busy");
    shows(&server, &standin, "busy");
    let stop = json!({ "last_assistant_message": "done", "background_tasks": [] });
    standin.hook(&server, "Stop", &stop);
    standin.write("idle");
    shows(&server, &standin, "review");
    assert_eq!(items(&server).len(), rows, "no tab is lost");
    // Until three questions in a row have had no answer within their time.
    let notice = loop_until(Duration::from_secs(40), || {
        let said = server.local("GET", "/api/items", &[], b"").json()["notices"].to_string();
        said.contains("tmux does not answer").then_some(said)
    });
    assert!(notice.is_some(), "nothing is said");
    assert_eq!(items(&server).len(), rows);
    signal("-CONT");
    wait("still said", || {
        let said = server.local("GET", "/api/items", &[], b"").json()["notices"].to_string();
        (!said.contains("tmux")).then_some(())
    });
    assert_eq!(item_of(&server, standin.pid()).unwrap()["state"], "review");
}

fn loop_until<T>(patience: Duration, mut there: impl FnMut() -> Option<T>) -> Option<T> {
    let until = Instant::now() + patience;
    while Instant::now() < until {
        if let Some(found) = there() {
            return Some(found);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    None
}

#[test]
fn x06_without_tmux_sessions_are_still_listed_from_their_files() {
    let dir = place();
    let mut command = purplemux(dir.path());
    command
        .args(["serve", "--port", "0"])
        .env("PATH", dir.path().join("no-such-folder"))
        .stderr(Stdio::null());
    let (child, port) = start(command);
    let server = TestServer::adopt(dir, port, child);
    let standin = Standin::new(server.dir.path());
    standin.write("busy");
    shows(&server, &standin, "busy");
    wait("nothing is said", || {
        let said = server.local("GET", "/api/items", &[], b"").json()["notices"].to_string();
        said.contains("tmux is not installed").then_some(())
    });
    let refused = server.cli(&["tab", "create"]);
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("tmux"), "{said}");
}

#[test]
fn x06_a_tmux_that_is_too_old_or_may_not_have_its_socket_is_named() {
    let old = place();
    let bin = old.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let script =
        "#!/bin/sh\nif [ \"$1\" = -V ]; then echo 'tmux 2.9a'; else echo usage >&2; exit 1; fi\n";
    fs::write(bin.join("tmux"), script).unwrap();
    fs::set_permissions(bin.join("tmux"), fs::Permissions::from_mode(0o755)).unwrap();
    // Where tmux would have its sockets there is something else.
    let shut = place();
    let uid = fs::metadata(shut.path()).unwrap().uid();
    fs::write(shut.path().join(format!("tmux-{uid}")), "").unwrap();

    for (dir, path, sentence) in [
        (
            old,
            format!("{}:/usr/bin:/bin", bin.display()),
            "tmux 3.2 or newer is needed; 2.9a is installed",
        ),
        (
            shut,
            "/usr/bin:/bin".to_owned(),
            "is not a directory of yours",
        ),
    ] {
        let mut command = purplemux(dir.path());
        command
            .args(["serve", "--port", "0"])
            .env("PATH", path)
            .stderr(Stdio::null());
        let (child, port) = start(command);
        // The rest of the test's own tools are those of its own PATH.
        let server = TestServer::adopt(dir, port, child);
        let standin = Standin::new(server.dir.path());
        standin.write("busy");
        shows(&server, &standin, "busy");
        wait(sentence, || {
            let said = server.local("GET", "/api/items", &[], b"").json()["notices"].to_string();
            said.contains(sentence).then_some(())
        });
        if server.dir.path().join(format!("tmux-{uid}")).is_file() {
            fs::remove_file(server.dir.path().join(format!("tmux-{uid}"))).unwrap();
        }
    }
}

#[test]
fn h01_h04_badges_outlive_the_server_and_evidence_corrects_them() {
    let server = TestServer::start();
    let review = Standin::new(server.dir.path());
    let busy = Standin::new(server.dir.path());
    let idle = Standin::new(server.dir.path());
    let mut dies = Standin::new(server.dir.path());
    for standin in [&review, &busy, &dies] {
        standin.write("busy");
        shows(&server, standin, "busy");
    }
    idle.write("idle");
    let stop = json!({ "last_assistant_message": "kept", "background_tasks": [] });
    review.hook(&server, "Stop", &stop);
    review.write("idle");
    let before = shows(&server, &review, "review");
    shows(&server, &idle, "idle");

    let dir = server.end("-KILL");
    dies.child.kill().unwrap();
    dies.child.wait().unwrap();
    let server = TestServer::start_in(dir);
    let after = shows(&server, &review, "review");
    assert_eq!(after["since_ms"], before["since_ms"], "its old age");
    shows(&server, &busy, "busy");
    shows(&server, &idle, "idle");
    gone(&server, &dies);
    dies.child = Command::new("sleep").arg("600").spawn().unwrap();
}

#[test]
fn n10_a_hook_that_names_a_process_that_is_no_claude_makes_no_row() {
    let server = TestServer::start();
    let dir = server.dir.path();
    let witness = Standin::new(dir);
    witness.write("idle");
    shows(&server, &witness, "idle");
    let tab = server.json(&["tab", "create", "--json"]);
    let socket = tab["tmux"]["socket"].as_str().unwrap().to_owned();
    let session = tab["tab"].as_str().unwrap().to_owned();
    let shell = Command::new("tmux")
        .args(["-S", &socket, "display-message", "-p", "-t", &session])
        .arg("#{pane_pid}")
        .output()
        .unwrap();
    let shell: u32 = String::from_utf8(shell.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let claude_dir = dir.join("nobody-s");
    let sleeper = Standin::in_claude_dir(dir, Some(&claude_dir));
    let token = server.token();
    let fire = |pid: u32, start: Option<u64>, event: &str| {
        let (pid, start) = (pid.to_string(), start.map(|start| start.to_string()));
        let mut headers = vec![
            ("x-pmux-token", token.as_str()),
            ("x-pmux-event", event),
            ("x-pmux-pid", &pid),
        ];
        headers.extend(start.as_deref().map(|start| ("x-pmux-start", start)));
        let answer = server.local("POST", "/api/status/hook", &headers, b"{}");
        assert_eq!(answer.status, 204);
    };
    for event in ["SessionStart", "UserPromptSubmit", "Stop"] {
        for pid in [1, std::process::id(), server.pid(), shell, sleeper.pid()] {
            fire(pid, None, event);
        }
        fire(sleeper.pid(), Some(sleeper.start), event);
        fire(sleeper.pid(), Some(sleeper.start - 1), event);
    }
    settle(&server, &witness);
    let rows = items(&server);
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in rows.iter().filter(|row| row["pid"] != witness.pid()) {
        assert_eq!(row["tab"], session.as_str());
        assert!(row["state"].is_null(), "{row}");
    }
    let log = fs::read_to_string(server.home().join("logs/server.log")).unwrap();
    assert!(!log.contains("nobody-s"), "its directory is watched: {log}");

    // A status file of its own is evidence; what was said before it came is kept (H08).
    sleeper.write("busy");
    fire(sleeper.pid(), Some(sleeper.start), "UserPromptSubmit");
    shows(&server, &sleeper, "busy");
}

#[test]
fn h08_a_hook_finds_a_claude_that_writes_no_file() {
    let server = TestServer::start();
    let dir = server.dir.path();
    let program = dir.join("claude");
    symlink("/bin/sleep", &program).unwrap();
    let mut claude = Command::new(&program)
        .arg0("sleep")
        .arg("600")
        .current_dir(dir)
        .spawn()
        .unwrap();
    let pid = claude.id().to_string();
    let token = server.token();
    let headers = [
        ("x-pmux-token", token.as_str()),
        ("x-pmux-event", "UserPromptSubmit"),
        ("x-pmux-pid", &pid),
    ];
    let answer = server.local("POST", "/api/status/hook", &headers, b"{\"prompt\":\"x\"}");
    assert_eq!(answer.status, 204);
    wait("never busy", || {
        item_of(&server, claude.id()).filter(|item| item["state"] == "busy")
    });
    claude.kill().unwrap();
    claude.wait().unwrap();
}

#[test]
fn n10_a_hook_of_an_ended_process_is_nobody_else_s() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    standin.write("busy");
    shows(&server, &standin, "busy");
    let mut ended = Command::new("true").spawn().unwrap();
    let pid = ended.id().to_string();
    ended.wait().unwrap();
    // Its conversation has been taken up by another process.
    let body = json!({
        "hook_event_name": "SessionEnd",
        "reason": "other",
        "session_id": format!("00000000-0000-4000-8000-{:012}", standin.pid()),
    });
    let token = server.token();
    let headers = [("x-pmux-token", token.as_str()), ("x-pmux-pid", &pid)];
    let answer = server.local(
        "POST",
        "/api/status/hook",
        &headers,
        body.to_string().as_bytes(),
    );
    assert_eq!(answer.status, 204);
    let witness = Standin::new(server.dir.path());
    settle(&server, &witness);
    let item = item_of(&server, standin.pid()).unwrap();
    assert_eq!(
        (&item["state"], &item["hooks"]),
        (&json!("busy"), &json!(false))
    );
}
