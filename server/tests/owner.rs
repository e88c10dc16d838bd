//! What is the person's to do is refused to what an agent has started, as far as we can tell, and to what we give an
//! agent. The boundary is the user id; this keeps an agent from acting by what we put there.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it is wrong"
)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::json;
use support::dialogs::{Actor, permission};
use support::standin::{items, wait};
use support::{TestServer, purplemux};

const REFUSED: &str = "This is the person's to do";

/// A program that calls itself `claude` and starts what it is given, as Claude's own tools do.
fn agent(server: &TestServer) -> PathBuf {
    let program = server.dir.path().join("claude");
    fs::write(&program, "#!/bin/sh\n\"$@\"\nexit $?\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    program
}

/// Runs our command with the environment of the tests, below this program.
fn below(server: &TestServer, above: &PathBuf, arguments: &[&str]) -> Output {
    let plain = purplemux(server.dir.path());
    let mut command = Command::new(above);
    command
        .arg(plain.get_program())
        .args(arguments)
        .env_clear()
        .stdin(std::process::Stdio::null());
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn s11_what_an_agent_starts_may_look_but_not_act() {
    let server = TestServer::start();
    let browser = server.browser();
    let actor = Actor::new(&server, &browser);
    actor.is("busy");
    actor.draws(&permission("touch a.txt", &["Yes", "No"], 0));
    actor.is("waiting");
    actor.ask(&server);
    let tab = actor.tab.as_str();
    let claude = agent(&server);
    for looks in [
        &["status", "--json"][..],
        &["tab", "list", "--json"],
        &["tab", "answer", tab],
    ] {
        let output = below(&server, &claude, looks);
        assert!(output.status.success(), "{looks:?}: {}", said(&output));
    }
    let acts: [&[&str]; 9] = [
        &["login"],
        &["tab", "send", tab, "1"],
        &["tab", "answer", tab, "--option", "1"],
        &["tab", "answer", tab, "--reject"],
        &["tab", "stop", tab],
        &["tab", "close", tab, "--force"],
        &["hooks", "install", "--global"],
        &["workspace", "agents", "main", "--allow"],
        &["login", "--json"],
    ];
    for acts in acts {
        let output = below(&server, &claude, acts);
        assert_eq!(output.status.code(), Some(1), "{acts:?}");
        assert!(
            said(&output).contains(REFUSED),
            "{acts:?}: {}",
            said(&output)
        );
        assert!(output.stdout.is_empty(), "{acts:?} says something");
    }
    // The same from the person's own shell.
    assert!(server.cli(&["login", "--json"]).status.success());
    assert_eq!(actor.keys(), [""; 0], "nothing has reached the dialog");
    assert!(items(&server).iter().any(|item| item["id"] == tab));
}

#[test]
fn s11_a_program_that_has_left_its_agent_is_known_by_its_environment() {
    let server = TestServer::start();
    for mark in ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PID"] {
        let mut login = purplemux(server.dir.path());
        let output = login.arg("login").env(mark, "1").output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{mark}");
        assert!(said(&output).contains(REFUSED), "{mark}: {}", said(&output));
    }
}

#[test]
fn s11_what_a_tab_is_given_opens_nothing_but_the_hooks() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let token = server.token();
    let headers = [
        ("x-pmux-token", token.as_str()),
        ("content-type", "application/json"),
    ];
    for (method, path) in [
        ("POST", format!("/api/tabs/{tab}/send")),
        ("POST", format!("/api/tabs/{tab}/answer")),
        ("POST", format!("/api/tabs/{tab}/stop")),
        ("DELETE", format!("/api/tabs/{tab}")),
        ("GET", "/api/answers".to_owned()),
        ("GET", "/api/items".to_owned()),
        ("POST", "/api/login/code".to_owned()),
        ("PUT", "/api/workspaces/main/agents".to_owned()),
    ] {
        let answer = server.request(method, &path, &headers, b"{}");
        assert!(
            matches!(answer.status, 401 | 403 | 404),
            "{method} {path}: {}",
            answer.status
        );
    }
    // What stands in the environment of a tab's shell.
    let file = server.dir.path().join("environment");
    let typed = format!("env > '{0}.new' && mv '{0}.new' '{0}'", file.display());
    let body = json!({ "text": typed, "enter": true });
    let sent = browser.write("POST", &format!("/api/tabs/{tab}/send"), &body);
    assert_eq!(sent.status, 204);
    let environment = wait("no environment", || fs::read_to_string(&file).ok());
    assert!(!environment.contains(&token), "{environment}");
    let ours = environment
        .lines()
        .filter(|line| line.starts_with("PURPLEMUX_"));
    for line in ours {
        let (_, value) = line.split_once('=').unwrap();
        assert!(
            value.is_empty() || value.starts_with('/'),
            "{line} is a place"
        );
    }
}

#[test]
fn s11_the_person_may_let_the_agents_of_a_workspace_act() {
    let server = TestServer::start();
    let browser = server.browser();
    let other = browser.tab();
    let actor = Actor::new(&server, &browser);
    actor.is("busy");
    wait("it is not seen", || {
        (actor.row(&server)["state"] == "busy").then_some(())
    });
    let said = server.dir.path().join("said");
    let acts = format!(
        "'{}' tab send --home '{}' {other} ': typed' 2> said.new; echo $? >> said.new; mv said.new '{}'",
        env!("CARGO_BIN_EXE_purplemux"),
        server.home().display(),
        said.display(),
    );
    actor.runs_on("g", &acts);
    let tries = || {
        support::tmux(
            &server,
            &["send-keys", "-t", &format!("{}:", actor.tab), "g"],
        );
        let heard = wait("it does not act", || fs::read_to_string(&said).ok());
        fs::remove_file(&said).unwrap();
        heard
    };
    let refused = tries();
    assert!(
        refused.contains(REFUSED) && refused.ends_with("1\n"),
        "{refused}"
    );
    server.cli_ok(&["workspace", "agents", "main", "--allow"]);
    assert_eq!(tries(), "0\n");
    server.cli_ok(&["workspace", "agents", "main", "--refuse"]);
    assert!(tries().contains(REFUSED));
}
