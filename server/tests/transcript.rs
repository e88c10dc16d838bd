//! Transcripts through a whole server: when they are watched, what becomes of files that are cut, replaced or can't
//! be read, and what a row shows of them after a restart. The Claudes here are processes that only sleep.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it stands and starts programs"
)]

mod support;

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use purplemux_wire::browser::ClientMsg;
use serde_json::{Value, json};
use support::standin::{Standin, item_of, items, shows, wait};
use support::{TestServer, place, purplemux, say, start};

const END: &str = r#"{"type":"system","subtype":"turn_duration","durationMs":5}"#;

fn prompt(text: &str) -> String {
    json!({"type": "user", "message": {"role": "user", "content": text}, "origin": {"kind": "human"}})
        .to_string()
}

/// Its transcript, in a folder of its own.
fn transcript(standin: &Standin) -> PathBuf {
    let projects = standin.sessions.parent().unwrap().join("projects");
    projects
        .join(format!("-tmp-{}", standin.pid()))
        .join(format!(
            "00000000-0000-4000-8000-{:012}.jsonl",
            standin.pid()
        ))
}

fn write(path: &Path, lines: &[&str]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

fn append(path: &Path, line: &str) {
    let mut file = File::options().append(true).open(path).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Whether the server has a watch of the kernel's on this folder.
fn watched(server: &TestServer, folder: &Path) -> bool {
    let wanted = format!(" ino:{:x} ", fs::metadata(folder).unwrap().ino());
    let infos = fs::read_dir(format!("/proc/{}/fdinfo", server.pid())).unwrap();
    infos.flatten().any(|info| {
        let text = fs::read_to_string(info.path()).unwrap_or_default();
        let mut watches = text.lines().filter(|line| line.starts_with("inotify "));
        watches.any(|line| line.contains(&wanted))
    })
}

fn becomes_watched(server: &TestServer, folder: &Path, on: bool) {
    wait(&format!("watched is not {on}"), || {
        (watched(server, folder) == on).then_some(())
    });
}

/// The counts of `purplemux doctor`, as it says them.
fn counted(server: &TestServer) -> Vec<String> {
    let answer = server.local("GET", "/api/doctor", &[], b"").json();
    let odd = answer["odd"].as_object().unwrap().clone();
    let said = odd.iter().map(|(kind, counted)| {
        format!(
            "{kind} {} {}",
            counted["count"],
            counted["why"].as_str().unwrap()
        )
    });
    said.collect()
}

/// A status file of a version without status.
fn write_without_status(standin: &Standin) {
    let mut file: Value = serde_json::from_str(&standin.status("idle")).unwrap();
    for field in ["status", "statusUpdatedAt"] {
        file.as_object_mut().unwrap().remove(field);
    }
    fs::write(standin.file(), file.to_string()).unwrap();
}

#[test]
fn t10_a_transcript_is_watched_while_something_may_come_of_it() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    let path = transcript(&standin);
    let folder = path.parent().unwrap();
    write(&path, &[&prompt("the first thing"), "{broken"]);
    standin.write("idle");
    wait("what a look brings", || {
        item_of(&server, standin.pid()).filter(|item| item["title"] == "the first thing")
    });
    // What the first look was for has come; the watch for it goes at once.
    becomes_watched(&server, folder, false);

    for status in ["busy", "waiting", "busy"] {
        standin.write(status);
        becomes_watched(&server, folder, true);
    }
    append(&path, END);
    standin.write("idle");
    let item = shows(&server, &standin, "review");
    assert!(watched(&server, folder), "review");
    let browser = server.browser();
    let mut viewer = browser.status();
    let dismiss = ClientMsg::Dismiss {
        request: 1,
        item: item["id"].as_str().unwrap().to_owned(),
        episode: item["episode"].as_u64().unwrap(),
    };
    say(&mut viewer.socket, &dismiss);
    shows(&server, &standin, "idle");
    becomes_watched(&server, folder, false);

    // The place was kept: a line that can't be used is met once.
    append(&path, &prompt("again"));
    standin.write("busy");
    becomes_watched(&server, folder, true);
    append(&path, "{broken too");
    wait("the second one", || {
        let said = counted(&server);
        let wanted = format!("line-broken 2 {}", path.display());
        assert!(said.len() <= 1, "{said:?}");
        said.contains(&wanted).then_some(())
    });
}

#[test]
fn t10_unknown_is_watched_until_the_transcript_says_what_it_is() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    let path = transcript(&standin);
    write(&path, &[&prompt("long work")]);
    write_without_status(&standin);
    let began = json!({ "prompt": "long work", "transcript_path": path });
    wait("never busy", || {
        standin.hook(&server, "UserPromptSubmit", &began);
        item_of(&server, standin.pid()).filter(|item| item["state"] == "busy")
    });
    let server = TestServer::start_in(server.end("-KILL"));
    shows(&server, &standin, "unknown");
    becomes_watched(&server, path.parent().unwrap(), true);
    append(&path, END);
    shows(&server, &standin, "review");
}

#[test]
fn t10_h12_without_watches_transcripts_are_looked_at() {
    let dir = place();
    let standin = Standin::new(dir.path());
    let path = transcript(&standin);
    write(&path, &[&prompt("work")]);
    standin.write("busy");
    let server = TestServer::start_unwatched(dir);
    shows(&server, &standin, "busy");
    append(
        &path,
        r#"{"type":"ai-title","aiTitle":"Seen all the same"}"#,
    );
    wait("the new title", || {
        item_of(&server, standin.pid()).filter(|item| item["title"] == "Seen all the same")
    });
    assert_eq!(item_of(&server, standin.pid()).unwrap()["state"], "busy");
}

#[test]
fn t03_a_file_that_is_cut_replaced_or_made_anew_is_read_anew() {
    type Make = fn(&Path, &[&str]);
    let server = TestServer::start();
    let ways: [(&str, Make); 3] = [
        ("truncated in place", |path, lines| write(path, lines)),
        ("replaced", |path, lines| {
            let other = path.with_extension("new");
            write(&other, lines);
            fs::rename(&other, path).unwrap();
        }),
        ("deleted and made anew", |path, lines| {
            fs::remove_file(path).unwrap();
            write(path, lines);
        }),
    ];
    for (way, make) in ways {
        let standin = Standin::new(server.dir.path());
        let path = transcript(&standin);
        let long = format!(r#"{{"type":"mode","x":"{}"}}"#, "y".repeat(5000));
        write(&path, &[&prompt("old"), &long]);
        standin.write("busy");
        shows(&server, &standin, "busy");
        becomes_watched(&server, path.parent().unwrap(), true);
        let title = format!(r#"{{"type":"ai-title","aiTitle":"{way}"}}"#);
        make(&path, &[&prompt("new"), &title]);
        wait(way, || {
            item_of(&server, standin.pid()).filter(|item| item["title"] == way)
        });
        append(&path, END);
        standin.write("idle");
        shows(&server, &standin, "review");
    }
}

/// A server that is bound by permissions, whoever runs the test.
fn start_bound() -> TestServer {
    let dir = place();
    let plain = purplemux(dir.path());
    let mut command = Command::new("setpriv");
    if rustix::process::geteuid().is_root() {
        let without = "-dac_override,-dac_read_search";
        command.args(["--bounding-set", without, "--inh-caps", without]);
    }
    command
        .arg(plain.get_program())
        .args(["serve", "--port", "0"])
        .env_clear();
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let (child, port) = start(command);
    TestServer::adopt(dir, port, child)
}

#[test]
fn t03_a_file_that_can_t_be_read_for_a_while_moves_no_badge() {
    let server = start_bound();
    let standin = Standin::new(server.dir.path());
    let path = transcript(&standin);
    write(&path, &[&prompt("work")]);
    let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    standin.write("busy");
    shows(&server, &standin, "busy");
    mode(0o000);
    let shut = Instant::now();
    append_to_shut(&path, r#"{"type":"ai-title","aiTitle":"Read at last"}"#);
    wait("it is not counted", || {
        let said = counted(&server);
        said.iter()
            .any(|line| line.starts_with("transcript-unread 1 "))
            .then_some(())
    });
    while shut.elapsed() < Duration::from_secs(5) {
        let item = item_of(&server, standin.pid()).unwrap();
        assert_eq!(item["state"], "busy");
        std::thread::sleep(Duration::from_millis(100));
    }
    mode(0o600);
    wait("it is not read", || {
        item_of(&server, standin.pid()).filter(|item| item["title"] == "Read at last")
    });
    assert!(
        counted(&server)
            .iter()
            .any(|line| line.starts_with("transcript-unread 1 ")),
        "counted once"
    );
}

/// Puts a longer file in the place of one that is shut, shut as well: at no moment can it be read.
fn append_to_shut(path: &Path, line: &str) {
    let text = prompt("work");
    let other = path.with_extension("other");
    fs::write(&other, format!("{text}\n{line}\n")).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o000)).unwrap();
    fs::rename(&other, path).unwrap();
}

#[test]
fn s06_h11_what_is_no_transcript_is_not_read_and_is_counted() {
    type Make = fn(&Path, &Path);
    let server = TestServer::start();
    let outside = server.dir.path().join("outside.jsonl");
    write(&outside, &[&prompt("a secret"), END]);
    let witness = Standin::new(server.dir.path());
    witness.write("busy");
    shows(&server, &witness, "busy");
    let made: [(&str, Make); 4] = [
        ("a pipe", |path, _| {
            let made = Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        }),
        ("a device by a link", |path, _| {
            symlink("/dev/zero", path).unwrap();
        }),
        ("a link that leads out", |path, outside| {
            symlink(outside, path).unwrap();
        }),
        ("a folder", |path, _| fs::create_dir(path).unwrap()),
    ];
    let refused = |server: &TestServer| {
        let said = counted(server);
        let line = said
            .into_iter()
            .find(|line| line.starts_with("transcript-refused"));
        line.map_or(0, |line| line.split(' ').nth(1).unwrap().parse().unwrap())
    };
    for (number, (what, make)) in made.into_iter().enumerate() {
        let standin = Standin::new(server.dir.path());
        let path = transcript(&standin);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        make(&path, &outside);
        let body = json!({ "prompt": "work", "transcript_path": path });
        standin.write("busy");
        shows(&server, &standin, "busy");
        standin.hook(&server, "UserPromptSubmit", &body);
        wait(what, || (refused(&server) == number + 1).then_some(()));
        standin.write("idle");
        // Nothing tells of an end, and the secret least of all.
        let item = shows(&server, &standin, "idle");
        assert!(!item.to_string().contains("secret"), "{item}");
    }
    // A path out of the folder, and one that is no transcript's.
    for path in ["/etc/passwd", "/dev/zero", outside.to_str().unwrap()] {
        let standin = Standin::new(server.dir.path());
        let before = refused(&server);
        standin.write("busy");
        shows(&server, &standin, "busy");
        let body = json!({ "prompt": "work", "transcript_path": path });
        standin.hook(&server, "UserPromptSubmit", &body);
        wait(path, || (refused(&server) > before).then_some(()));
        let item = item_of(&server, standin.pid()).unwrap();
        assert!(!item.to_string().contains("secret"), "{item}");
    }
    let doctor = server.cli_ok(&["doctor"]);
    assert!(doctor.contains("transcripts were not read"), "{doctor}");
    // Nothing else is disturbed.
    assert_eq!(item_of(&server, witness.pid()).unwrap()["state"], "busy");
    witness.write("idle");
    shows(&server, &witness, "idle");
}

#[test]
fn h11_deep_and_giant_input_is_skipped_and_counted() {
    let server = TestServer::start();
    let standin = Standin::new(server.dir.path());
    let path = transcript(&standin);
    let deep = format!("{{\"type\":\"user\",\"x\":{}", "[".repeat(10_000));
    let whole = format!(
        "{{\"type\":\"user\",\"x\":{}{}}}",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    let giant = format!(r#"{{"type":"attachment","x":"{}"}}"#, "y".repeat(9_000_000));
    write(&path, &[&prompt("work"), &deep, &whole, &giant, END]);
    standin.write("busy");
    shows(&server, &standin, "busy");
    wait("the lines are not counted", || {
        let said = counted(&server);
        let one = |kind: &str| said.iter().any(|line| line.starts_with(kind));
        (one("line-broken 1 ") && one("line-too-long 1 ")).then_some(())
    });
    // A status file as deep: don't know.
    let status = standin.status("idle");
    let deep = format!(
        "{},\"x\":{}",
        &status[..status.len() - 1],
        "[".repeat(10_000)
    );
    fs::write(standin.file(), &deep).unwrap();
    wait("the file is not counted", || {
        let said = counted(&server);
        said.iter()
            .any(|line| line.starts_with("status-file-unread 1 "))
            .then_some(())
    });
    assert_eq!(item_of(&server, standin.pid()).unwrap()["state"], "busy");
    // Bodies of 50 MB: the event counts, the server does not grow by them.
    let mut body = vec![b' '; 50_000_000];
    body[0] = b'{';
    let pid = standin.pid().to_string();
    let start = standin.start.to_string();
    let token = server.token();
    for _ in 0..3 {
        let headers = [
            ("x-pmux-token", token.as_str()),
            ("x-pmux-event", "Stop"),
            ("x-pmux-pid", &pid),
            ("x-pmux-start", &start),
        ];
        let answer = server.local("POST", "/api/status/hook", &headers, &body);
        assert_eq!(answer.status, 204);
    }
    let said = counted(&server);
    assert!(
        said.iter().any(|line| line == "hook-cut 3 Stop"),
        "{said:?}"
    );
    assert!(
        resident_kb(&server) < 120_000,
        "{} kB",
        resident_kb(&server)
    );
    standin.write("idle");
    shows(&server, &standin, "review");
    let doctor = server.cli_ok(&["doctor"]);
    for what in ["no JSON", "over 8 MiB", "could not be read", "over 1 MiB"] {
        assert!(doctor.contains(what), "{what}: {doctor}");
    }
}

fn resident_kb(server: &TestServer) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let mut lines = status.lines();
    let line = lines.find(|line| line.starts_with("VmRSS")).unwrap();
    let mut words = line.split_ascii_whitespace();
    words.nth(1).unwrap().parse().unwrap()
}

#[test]
fn what_a_row_shows_beside_its_badge_outlives_the_server() {
    let server = TestServer::start();
    let idle = Standin::new(server.dir.path());
    let named = Standin::new(server.dir.path());
    let answer = json!({
        "type": "assistant",
        "message": {
            "model": "claude-opus-5-5",
            "content": [{ "type": "text", "text": "all done" }],
            "stop_reason": "end_turn",
            "usage": { "input_tokens": 100_000, "output_tokens": 20_000 },
        },
    })
    .to_string();
    write(
        &transcript(&idle),
        &[&prompt("refactor the tax code"), &answer, END],
    );
    let title = r#"{"type":"custom-title","customTitle":"My taxes"}"#;
    let later = r#"{"type":"ai-title","aiTitle":"Taxes"}"#;
    write(
        &transcript(&named),
        &[&prompt("something"), title, later, &answer, END],
    );
    idle.write("idle");
    named.write("idle");
    let check = |server: &TestServer| {
        let item = wait("the first prompt", || {
            item_of(server, idle.pid()).filter(|item| item["title"] == "refactor the tax code")
        });
        assert_eq!(item["state"], "idle", "a look decides nothing");
        assert_eq!(item["last_message"], "all done");
        assert_eq!(item["tokens"]["context"], 120_000);
        assert_eq!(item["context_pct"], 12);
        assert_eq!(item["model"], "claude-opus-5-5");
        wait("the person's own title", || {
            item_of(server, named.pid()).filter(|item| item["title"] == "My taxes")
        });
    };
    check(&server);
    let server = TestServer::start_in(server.end("-KILL"));
    check(&server);
    assert_eq!(items(&server).len(), 2);
}
