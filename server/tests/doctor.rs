//! `purplemux doctor`: what it finds, and what it says to do, on a machine that is well and on some that are
//! not.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it stands and starts programs"
)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use support::{TestServer, eventually, place, purplemux};

/// Runs it with another PATH; its checks and exit code.
fn doctor(dir: &Path, path: Option<&Path>) -> (Vec<Value>, Option<i32>) {
    let mut command = purplemux(dir);
    command
        .args(["doctor", "--json"])
        .env("PURPLEMUX_SHELL", "/bin/sh");
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let Output { status, stdout, .. } = command.output().unwrap();
    let answer: Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!(answer["ok"], json!(status.success()));
    (answer["checks"].as_array().unwrap().clone(), status.code())
}

fn check<'c>(checks: &'c [Value], name: &str, verdict: &str) -> &'c Value {
    checks
        .iter()
        .find(|check| check["name"] == name && check["verdict"] == verdict)
        .unwrap_or_else(|| panic!("no {name} that is {verdict} in {checks:#?}"))
}

/// A directory with one program, a shell script.
fn program(dir: &Path, name: &str, script: &str) -> PathBuf {
    let bin = dir.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let program = bin.join(name);
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    bin
}

#[test]
fn a_machine_that_is_well_gets_no_failure() {
    let server = TestServer::start();
    let dir = server.dir.path();
    let (checks, code) = doctor(dir, None);
    assert_eq!(code, Some(0), "{checks:#?}");
    check(&checks, "tmux", "ok");
    check(&checks, "home", "ok");
    check(&checks, "open files", "ok");
    check(&checks, "hooks", "ok");
    check(&checks, "input", "ok");
    let running = check(&checks, "server", "ok");
    let pid = server.pid().to_string();
    assert!(running["said"].as_str().unwrap().contains(&pid));
    // The same in words.
    let said = server.cli_ok(&["doctor"]);
    assert!(
        said.lines().any(|line| line.starts_with("ok    tmux ")),
        "{said}"
    );
}

#[test]
fn x06_a_tmux_that_is_missing_or_too_old_fails_with_what_to_do() {
    let dir = place();
    let empty = dir.path().join("nothing");
    let (checks, code) = doctor(dir.path(), Some(&empty));
    assert_eq!(code, Some(1));
    let missing = check(&checks, "tmux", "fail");
    assert!(
        missing["todo"]
            .as_str()
            .unwrap()
            .contains("apt install tmux")
    );
    check(&checks, "server", "ok");
    check(&checks, "Claude Code", "warn");

    let old = program(dir.path(), "tmux", "echo tmux 3.1c");
    let (checks, code) = doctor(dir.path(), Some(&old));
    assert_eq!(code, Some(1));
    let old = check(&checks, "tmux", "fail");
    assert!(old["said"].as_str().unwrap().contains("3.1c"));
    assert!(old["todo"].as_str().unwrap().contains("3.2"));
}

#[test]
fn x06_a_socket_directory_of_somebody_elses_fails() {
    let dir = place();
    let uid = rustix::process::geteuid().as_raw();
    // A file where tmux wants its directory.
    fs::write(dir.path().join(format!("tmux-{uid}")), "").unwrap();
    let (checks, code) = doctor(dir.path(), None);
    assert_eq!(code, Some(1));
    check(&checks, "tmux server", "fail");
}

#[test]
fn a_tmux_that_was_updated_under_its_server_is_named() {
    let server = TestServer::start();
    let browser = server.browser();
    browser.tab();
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path)
        .map(|dir| dir.join("tmux"))
        .find(|tmux| tmux.is_file());
    let script = format!(
        "[ \"$1\" = -V ] && echo tmux 9.9 && exit\nexec {} \"$@\"",
        real.unwrap().display()
    );
    let newer = program(server.dir.path(), "tmux", &script);
    let (checks, code) = doctor(server.dir.path(), Some(&newer));
    assert_eq!(code, Some(0));
    let told = check(&checks, "tmux server", "warn");
    assert!(told["said"].as_str().unwrap().contains("9.9"), "{told}");
    assert!(
        told["todo"]
            .as_str()
            .unwrap()
            .contains("Tabs end when tmux is restarted")
    );
}

#[test]
fn versions_of_claude_and_their_hooks_are_listed() {
    let dir = place();
    let claude = program(dir.path(), "claude", "echo '2.1.90 (Claude Code)'");
    let (checks, _) = doctor(dir.path(), Some(&claude));
    let old = check(&checks, "Claude Code", "warn");
    assert!(old["said"].as_str().unwrap().contains("2.1.90"), "{old}");
    program(dir.path(), "claude", "echo '2.1.3320 (Claude Code)'");
    let (checks, _) = doctor(dir.path(), Some(&claude));
    let new = check(&checks, "Claude Code", "ok");
    assert!(new["said"].as_str().unwrap().contains("17 hooks"), "{new}");
}

#[test]
fn a_home_that_others_may_read_fails() {
    let dir = place();
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
    let (checks, code) = doctor(dir.path(), None);
    assert_eq!(code, Some(1));
    let open = check(&checks, "home", "fail");
    assert!(open["todo"].as_str().unwrap().starts_with("chmod"));
}

#[test]
fn what_could_not_be_used_is_counted() {
    let server = TestServer::start();
    let token = server.token();
    let post = |event: &str, body: &[u8]| {
        let headers = [("x-pmux-token", token.as_str()), ("x-pmux-event", event)];
        server
            .local("POST", "/api/status/hook", &headers, body)
            .status
    };
    assert_eq!(post("Stop", b"[1, 2"), 400);
    let deep = "[".repeat(10_000);
    assert_eq!(post("Stop", format!("{{\"a\":{deep}").as_bytes()), 400);
    assert_eq!(
        post(
            "InventedTomorrow",
            br#"{"hook_event_name":"InventedTomorrow"}"#
        ),
        204
    );
    assert_eq!(post("Stop", &vec![b' '; 2 * 1024 * 1024]), 204);
    // Names of status files, of this living process and others, with something else behind them.
    let sessions = server.dir.path().join("person/.claude/sessions");
    let me = std::process::id();
    fs::create_dir_all(sessions.join(format!("{me}.json"))).unwrap();
    std::os::unix::fs::symlink("/dev/zero", sessions.join("1.json")).unwrap();
    let counted = || {
        let (checks, code) = doctor(server.dir.path(), None);
        assert_eq!(code, Some(0), "{checks:#?}");
        let input = checks.iter().filter(|check| check["name"] == "input");
        input
            .map(|check| check["said"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    eventually("everything is counted", || {
        let said = counted();
        [
            "2 hooks were refused",
            "1 hooks had names",
            "1 hooks came without",
            "2 status files were",
        ]
        .iter()
        .all(|start| said.iter().any(|line| line.starts_with(start)))
    });
}
