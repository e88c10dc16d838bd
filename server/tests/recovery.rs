//! What badges come to after the server was away, after hooks were lost, and after the person has looked,
//! through a whole server. The Claudes here are processes that only sleep.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it stands, starts programs and looks at the real clock"
)]

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use purplemux_wire::browser::{ClientMsg, ServerMsg, State};
use serde_json::json;
use support::standin::{Standin, gone, shows, wait};
use support::{TestServer, Viewer, place, purplemux, say, start};

/// From the start of the server to the right badges.
const RECOVERED: Duration = Duration::from_secs(2);

/// A server that writes down whom it would notify.
fn talkative(dir: tempfile::TempDir) -> TestServer {
    let mut command = purplemux(dir.path());
    command.args(["serve", "--port", "0"]).env(
        "PURPLEMUX_LOG",
        "info,purplemux::hub=debug,purplemux::told=debug",
    );
    let (child, port) = start(command);
    TestServer::adopt(dir, port, child)
}

fn log(server: &TestServer) -> String {
    std::fs::read_to_string(server.home().join("logs/server.log")).unwrap_or_default()
}

/// What is found before the witnesses have looked once is no news, and notifies nobody.
fn recovered(server: &TestServer, starts: usize) {
    let ended = || log(server).matches("event=RecoveryEnded").count();
    wait("no end of the recovery", || {
        (ended() == starts).then_some(())
    });
}

/// How often somebody would have been notified of this agent.
fn notified(server: &TestServer, standin: &Standin) -> usize {
    let agent = format!(":{}:{}", standin.pid(), standin.start);
    log(server)
        .lines()
        .filter(|line| line.contains("purplemux::told: notify") && line.contains(&agent))
        .count()
}

fn told(server: &TestServer, standin: &Standin, times: usize) {
    wait(&format!("never notified {times} times"), || {
        (notified(server, standin) == times).then_some(())
    });
}

/// Begins a turn that both witnesses tell.
fn begins(server: &TestServer, standin: &Standin) {
    // One that has had a turn rests already, read or unread.
    if !standin.file().exists() {
        standin.write("idle");
        shows(server, standin, "idle");
    }
    let prompt = json!({ "prompt": "go on", "transcript_path": standin.transcript() });
    assert_eq!(
        standin.hook(server, "UserPromptSubmit", &prompt).status,
        204
    );
    standin.writes_prompt("go on");
    standin.write("busy");
    shows(server, standin, "busy");
}

/// … and asks for a permission in it.
fn asks(server: &TestServer, standin: &Standin) {
    begins(server, standin);
    let tool = json!({ "tool_name": "Bash", "tool_input": { "command": "touch a.txt" } });
    assert_eq!(standin.hook(server, "PermissionRequest", &tool).status, 204);
    standin.write("waiting");
    shows(server, standin, "needs-input");
}

#[test]
fn h02_h03_what_happened_while_the_server_was_down_is_found_and_told_nobody() {
    let server = talkative(place());
    recovered(&server, 1);
    let dir = server.dir.path();
    let [ended, mut died, answered, refused, prompted, asked] =
        std::array::from_fn(|_| Standin::new(dir));
    begins(&server, &ended);
    begins(&server, &died);
    asks(&server, &answered);
    asks(&server, &refused);
    for resting in [&prompted, &asked] {
        resting.write("idle");
        shows(&server, resting, "idle");
    }
    told(&server, &answered, 1);
    told(&server, &refused, 1);

    let dir = server.end("-KILL");
    ended.writes_answer("while you were away");
    ended.write("idle");
    died.child.kill().unwrap();
    died.child.wait().unwrap();
    answered.write("busy");
    refused.writes_interrupt();
    refused.write("idle");
    prompted.write("busy");
    asked.write("waiting");

    let from = Instant::now();
    let server = talkative(dir);
    let review = shows(&server, &ended, "review");
    assert_eq!(review["detail"]["outcome"], "finished", "H02 (a)");
    assert_eq!(review["last_message"], "while you were away", "H02 (a)");
    gone(&server, &died);
    shows(&server, &answered, "busy");
    let idle = shows(&server, &refused, "idle");
    assert_eq!(idle["attention"], false, "H03 (b)");
    shows(&server, &prompted, "busy");
    let needs = shows(&server, &asked, "needs-input");
    assert_eq!(needs["attention"], true, "H03 (d): in bell and title");
    let took = from.elapsed();
    println!("right badges {took:?} after the start");
    assert!(took < 5 * RECOVERED, "{took:?}");

    recovered(&server, 2);
    // New work that ends is news, and comes after everything that recovery could have told.
    answered.writes_answer("done");
    answered.hook(
        &server,
        "Stop",
        &json!({ "last_assistant_message": "done", "background_tasks": [] }),
    );
    answered.write("idle");
    shows(&server, &answered, "review");
    told(&server, &answered, 2);
    for (quiet, times, row) in [
        (&ended, 0, "H02 (a)"),
        (&refused, 1, "H03 (b)"),
        (&prompted, 0, "H03 (c)"),
        (&asked, 0, "H03 (d)"),
    ] {
        assert_eq!(notified(&server, quiet), times, "{row}");
    }
    died.child = Command::new("sleep").arg("600").spawn().unwrap();
}

#[test]
fn i06_a_turn_that_ends_without_a_stop() {
    let server = talkative(place());
    recovered(&server, 1);
    let lost = Standin::new(server.dir.path());
    begins(&server, &lost);
    // (a) Its Stop hook is lost; the transcript's end comes 0.1 s after the file's.
    let from = Instant::now();
    lost.write("idle");
    std::thread::sleep(Duration::from_millis(100));
    lost.writes_answer("found in the transcript");
    let review = shows(&server, &lost, "review");
    assert!(
        from.elapsed() < 5 * Duration::from_secs(1),
        "{:?}",
        from.elapsed()
    );
    assert_eq!(review["detail"]["outcome"], "finished");
    assert_eq!(review["last_message"], "found in the transcript");
    told(&server, &lost, 1);

    // (b) The transcript ends in a tool's result, and nothing more ever comes.
    let cut = Standin::new(server.dir.path());
    begins(&server, &cut);
    cut.writes_tool();
    cut.write("idle");
    let idle = shows(&server, &cut, "idle");
    assert_eq!(idle["detail"]["label"], "ended without Stop", "{idle}");
    assert_eq!(idle["attention"], false);
    // Another's end, told meanwhile, shows that there was time to tell.
    begins(&server, &lost);
    lost.hook(
        &server,
        "Stop",
        &json!({ "last_assistant_message": "x", "background_tasks": [] }),
    );
    lost.write("idle");
    told(&server, &lost, 2);
    assert_eq!(notified(&server, &cut), 0);
}

fn row<'v>(viewer: &'v Viewer, standin: &Standin) -> Option<&'v purplemux_wire::browser::Item> {
    viewer
        .items
        .iter()
        .find(|item| item.pid == Some(standin.pid()))
}

fn until_state(viewer: &mut Viewer, standin: &Standin, state: State) {
    viewer.until(|viewer| row(viewer, standin).is_some_and(|item| item.state == Some(state)));
}

#[test]
fn p09_a_review_that_was_read_is_idle_for_everybody() {
    let server = TestServer::start();
    let browser = server.browser();
    let (mut desk, mut phone) = (browser.status(), browser.status());
    let standin = Standin::new(server.dir.path());
    let ends = |text: &str| {
        let stop = json!({ "last_assistant_message": text, "background_tasks": [] });
        standin.hook(&server, "Stop", &stop);
        standin.write("idle");
    };
    begins(&server, &standin);
    ends("first");
    for viewer in [&mut desk, &mut phone] {
        until_state(viewer, &standin, State::Review);
    }
    // (a) The page says that its end was really seen; it names the episode that was.
    let item = row(&desk, &standin).unwrap().clone();
    let seen = |request: u64, episode: u64| ClientMsg::Seen {
        request,
        item: item.id.clone(),
        episode,
    };
    let first = item.episode.unwrap();
    say(&mut desk.socket, &seen(1, first));
    for viewer in [&mut desk, &mut phone] {
        until_state(viewer, &standin, State::Idle);
    }
    // (b) Nobody has seen the next one: the late word is about the one before, and is refused.
    begins(&server, &standin);
    ends("second");
    until_state(&mut phone, &standin, State::Review);
    let mut late = browser.status();
    say(&mut late.socket, &seen(2, first));
    while !matches!(late.next(), ServerMsg::Refused { request: 2, .. }) {}
    // … and a dialog is not over because it was looked at.
    let other = Standin::new(server.dir.path());
    asks(&server, &other);
    until_state(&mut desk, &other, State::NeedsInput);
    let asked = row(&desk, &other).unwrap().clone();
    say(
        &mut desk.socket,
        &ClientMsg::Seen {
            request: 3,
            item: asked.id.clone(),
            episode: asked.episode.unwrap(),
        },
    );
    let third = Standin::new(server.dir.path());
    third.write("idle");
    until_state(&mut desk, &third, State::Idle);
    until_state(&mut phone, &third, State::Idle);
    for viewer in [&desk, &phone] {
        let state = |of| row(viewer, of).and_then(|item| item.state);
        assert_eq!(state(&standin), Some(State::Review));
        assert_eq!(state(&other), Some(State::NeedsInput));
    }
    // (c) A prompt from review goes straight to busy, and the episode is over.
    standin.hook(&server, "UserPromptSubmit", &json!({ "prompt": "next" }));
    standin.write("busy");
    phone.until(|viewer| {
        let state = row(viewer, &standin).and_then(|item| item.state);
        assert_ne!(state, Some(State::Idle), "on the way");
        state == Some(State::Busy)
    });
    assert_eq!(row(&phone, &standin).unwrap().episode, None);
}
