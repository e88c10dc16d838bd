//! Answering: which key reaches the pane, and above all when none does. The dialogs are drawn by a program of ours; how
//! the real one draws and takes answers is proved with the real one.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::disallowed_methods,
    reason = "a test fails where it is wrong"
)]

mod support;

use std::time::{Duration, Instant};

use purplemux_wire::browser::{Answer, ClientMsg, Sending, ServerMsg};
use serde_json::{Value, json};
use support::dialogs::{Actor, menu, permission, prompt, trust};
use support::standin::wait;
use support::{Browser, PATIENCE, TestServer, Viewer, say};

const OPTIONS: [&str; 3] = ["Yes", "Yes, and always allow it", "No"];

/// An actor with an open permission dialog for this command, and the ask that is shown for it.
fn asked(server: &TestServer, browser: &Browser<'_>, command: &str) -> (Actor, Value) {
    let actor = Actor::new(server, browser);
    actor.is("busy");
    wait("never busy", || {
        (actor.row(server)["state"] == "busy").then_some(())
    });
    actor.draws(&permission(command, &OPTIONS, 0));
    actor.is("waiting");
    let ask = actor.ask(server);
    assert_eq!(ask["card"]["subject"][1], command, "{ask}");
    (actor, ask)
}

fn answer(actor: &Actor, ask: &Value, request: u64, answer: Answer) -> ClientMsg {
    ClientMsg::Answer {
        request,
        item: actor.tab.clone(),
        ask: ask["id"].as_u64().unwrap(),
        reading: ask["card"]["reading"].as_str().unwrap().to_owned(),
        answer,
    }
}

fn choose(actor: &Actor, ask: &Value, request: u64, option: u32) -> ClientMsg {
    answer(actor, ask, request, Answer::Choose { option })
}

/// What a viewer is told of an answer until its end.
fn told(viewer: &mut Viewer) -> Vec<ServerMsg> {
    let until = Instant::now() + PATIENCE;
    let mut all = Vec::new();
    loop {
        assert!(Instant::now() < until, "no end: {all:?}");
        match viewer.next() {
            message @ ServerMsg::Answered {
                outcome: Sending::Sending,
                ..
            } => all.push(message),
            message @ (ServerMsg::Answered { .. }
            | ServerMsg::Refused { .. }
            | ServerMsg::Stopped { .. }) => {
                all.push(message);
                return all;
            }
            _ => {}
        }
    }
}

fn refusal(viewer: &mut Viewer) -> String {
    match told(viewer).pop() {
        Some(ServerMsg::Refused { why, .. }) => {
            assert!(why.contains("Nothing was sent."), "{why}");
            why
        }
        other => panic!("not refused: {other:?}"),
    }
}

/// No key comes any more, not even late.
fn keys_stay(actor: &Actor, keys: &[&str]) {
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(actor.keys(), keys);
}

fn log(server: &TestServer) -> Vec<Value> {
    let rows = server.json(&["audit", "--json"]);
    rows.as_array().unwrap().clone()
}

#[test]
fn a01_a_choice_is_one_key_and_is_sent_once_the_dialog_closes() {
    let server = TestServer::start();
    let browser = server.browser();
    let (actor, ask) = asked(&server, &browser, "touch a.txt");
    let labels: Vec<&str> = ask["card"]["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| option["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, OPTIONS);
    assert_eq!(ask["card"]["reject"], true);
    assert_eq!(ask["card"]["words"], true);
    actor.on("3", &prompt(), "idle");
    let other = Browser::sign_in(&server);
    let (mut viewer, mut bystander) = (browser.status(), other.status());
    say(&mut viewer.socket, &choose(&actor, &ask, 7, 2));
    let heard = told(&mut viewer);
    let [
        ServerMsg::Answered {
            request: Some(7),
            outcome: Sending::Sending,
            ..
        },
        ServerMsg::Answered {
            request: Some(7),
            outcome: Sending::Sent,
            what,
            why: None,
            ..
        },
    ] = &heard[..]
    else {
        panic!("{heard:?}");
    };
    assert_eq!(what, "No");
    let heard = told(&mut bystander);
    assert!(
        matches!(&heard[1], ServerMsg::Answered { request: None, outcome: Sending::Sent, what, .. } if what == "No"),
        "{heard:?}"
    );
    keys_stay(&actor, &["3"]);
    let rows = log(&server);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["result"], "sent");
    assert_eq!(rows[0]["what"], "No");
    let origin = rows[0]["origin"].as_str().unwrap();
    assert!(origin.starts_with("login "), "{origin}");
}

#[test]
fn a02_another_dialog_than_the_one_on_the_card_gets_no_key() {
    let server = TestServer::start();
    let browser = server.browser();
    let (actor, ask) = asked(&server, &browser, "touch a.txt");
    let mut viewer = browser.status();
    // Claude has gone on to another command; neither we nor the viewer has seen it yet.
    actor.draws(&permission("rm -rf b", &OPTIONS, 0));
    say(&mut viewer.socket, &choose(&actor, &ask, 1, 0));
    let why = refusal(&mut viewer);
    assert!(why.contains("prompt changed"), "{why}");
    wait("the new card is not shown", || {
        let now = actor.row(&server)["detail"]["ask"]["card"].clone();
        (now["subject"][1] == "rm -rf b").then_some(())
    });
    // Also for who still has the old card in hand.
    say(&mut viewer.socket, &choose(&actor, &ask, 2, 0));
    refusal(&mut viewer);
    keys_stay(&actor, &[]);
}

#[test]
fn a02_a_status_file_that_says_otherwise_stops_the_key() {
    let server = TestServer::start();
    let browser = server.browser();
    let (actor, ask) = asked(&server, &browser, "touch a.txt");
    let mut viewer = browser.status();
    // The screen is the very same; another ask of the same words stands there.
    actor.is("waiting");
    say(&mut viewer.socket, &choose(&actor, &ask, 1, 0));
    refusal(&mut viewer);
    keys_stay(&actor, &[]);
}

#[test]
fn a03_a_late_answer_is_refused() {
    let server = TestServer::start();
    let browser = server.browser();
    let (actor, ask) = asked(&server, &browser, "touch a.txt");
    let mut viewer = browser.status();
    // Answered in the terminal.
    actor.draws(&prompt());
    actor.is("busy");
    say(&mut viewer.socket, &choose(&actor, &ask, 1, 0));
    refusal(&mut viewer);
    keys_stay(&actor, &[]);
}

#[test]
fn a04_of_two_devices_one_answers_and_the_other_is_told_who() {
    let server = TestServer::start();
    let browser = server.browser();
    let (actor, ask) = asked(&server, &browser, "touch a.txt");
    actor.on("1", &prompt(), "busy");
    actor.on("3", &prompt(), "busy");
    let other = Browser::sign_in(&server);
    let (mut first, mut second) = (browser.status(), other.status());
    say(&mut first.socket, &choose(&actor, &ask, 1, 0));
    say(&mut second.socket, &choose(&actor, &ask, 2, 2));
    let mut won = Vec::new();
    let mut why = Vec::new();
    for viewer in [&mut first, &mut second] {
        for message in until_own_end(viewer) {
            match message {
                ServerMsg::Answered {
                    request: Some(_),
                    outcome: Sending::Sent,
                    what,
                    ..
                } => won.push(what),
                ServerMsg::Refused { why: said, .. } => why.push(said),
                _ => {}
            }
        }
    }
    assert_eq!((won.len(), why.len()), (1, 1), "{won:?} {why:?}");
    assert!(why[0].contains(&won[0]), "{why:?} names {won:?}");
    let key = if won[0] == "Yes" { "1" } else { "3" };
    keys_stay(&actor, &[key]);
}

/// What a viewer is told up to the end of its own request.
fn until_own_end(viewer: &mut Viewer) -> Vec<ServerMsg> {
    let mut all = Vec::new();
    loop {
        all.extend(told(viewer));
        match all.last() {
            Some(ServerMsg::Answered { request: None, .. }) => {}
            _ => return all,
        }
    }
}

#[test]
fn a12_the_same_answer_twice_is_one_key() {
    let server = TestServer::start();
    let browser = server.browser();
    let (actor, ask) = asked(&server, &browser, "touch a.txt");
    // It closes late: the second one comes while the first is on its way, the third after it.
    actor.on("1", &prompt(), "busy");
    let mut viewer = browser.status();
    say(&mut viewer.socket, &choose(&actor, &ask, 1, 0));
    say(&mut viewer.socket, &choose(&actor, &ask, 2, 0));
    let mut refused = 0;
    let mut sent = 0;
    while refused + sent < 2 {
        match told(&mut viewer).pop().unwrap() {
            ServerMsg::Refused { request: 2, .. } => refused += 1,
            ServerMsg::Answered {
                outcome: Sending::Sent,
                request: Some(1),
                ..
            } => sent += 1,
            other => panic!("{other:?}"),
        }
    }
    say(&mut viewer.socket, &choose(&actor, &ask, 3, 0));
    let why = refusal(&mut viewer);
    assert!(why.contains("Answered already"), "{why}");
    keys_stay(&actor, &["1"]);
}

#[test]
fn a12_a_key_that_claude_did_not_take_is_not_repeated() {
    let server = TestServer::start();
    let browser = server.browser();
    let (actor, ask) = asked(&server, &browser, "touch a.txt");
    let mut viewer = browser.status();
    say(&mut viewer.socket, &choose(&actor, &ask, 1, 0));
    let Some(ServerMsg::Answered {
        outcome: Sending::Failed,
        why: Some(why),
        ..
    }) = told(&mut viewer).pop()
    else {
        panic!("it does not fail");
    };
    assert!(why.contains("Open the terminal"), "{why}");
    say(&mut viewer.socket, &choose(&actor, &ask, 2, 0));
    refusal(&mut viewer);
    keys_stay(&actor, &["1"]);
}

#[test]
fn a05_where_options_have_no_numbers_the_mark_is_moved_and_seen() {
    let server = TestServer::start();
    let browser = server.browser();
    let actor = Actor::new(&server, &browser);
    let key = actor
        .file()
        .with_file_name(format!("{}.abcdef0123456789.key", actor.pid));
    std::fs::write(key, "secret").unwrap();
    actor.draws(&trust(0));
    let ask = actor.ask(&server);
    assert_eq!(ask["kind"], "startup");
    assert_eq!(
        ask["card"]["options"][1]["label"],
        "Yes, I trust this folder"
    );
    assert_eq!(ask["card"]["options"][0]["marked"], true);
    // The mark does not move: nothing is confirmed.
    let mut viewer = browser.status();
    say(&mut viewer.socket, &choose(&actor, &ask, 1, 1));
    assert!(
        matches!(told(&mut viewer).pop(), Some(ServerMsg::Answered { outcome: Sending::Failed, why: Some(why), .. }) if why.contains("mark")),
    );
    let arrow = ["$'\\E'", "\\[", "B"];
    assert_eq!(actor.keys(), arrow);
    // It does: Enter, once it was seen there.
    actor.redraws_on("down", &trust(1));
    actor.on("enter", &prompt(), "idle");
    say(&mut viewer.socket, &choose(&actor, &ask, 2, 1));
    let last = told(&mut viewer).pop().unwrap();
    assert!(
        matches!(
            last,
            ServerMsg::Answered {
                outcome: Sending::Sent,
                ..
            }
        ),
        "{last:?} {:?}",
        actor.keys()
    );
    let keys = [&arrow[..], &arrow[..], &["$'\\n'"]].concat();
    keys_stay(&actor, &keys);
}

#[test]
fn a07_copy_mode_is_left_before_a_key_and_its_text_never_offered() {
    let server = TestServer::start();
    let browser = server.browser();
    let (actor, ask) = asked(&server, &browser, "touch a.txt");
    actor.on("1", &prompt(), "busy");
    let tmux = |arguments: &[&str]| support::tmux(&server, arguments);
    tmux(&["copy-mode", "-t", &format!("{}:", actor.tab)]);
    // A search line, which would take the digit for its own.
    tmux(&[
        "send-keys",
        "-t",
        &format!("{}:", actor.tab),
        "-X",
        "search-backward",
        "x",
    ]);
    let mut viewer = browser.status();
    say(&mut viewer.socket, &choose(&actor, &ask, 1, 0));
    assert!(matches!(
        told(&mut viewer).pop(),
        Some(ServerMsg::Answered {
            outcome: Sending::Sent,
            ..
        })
    ),);
    keys_stay(&actor, &["1"]);
    let mode = tmux(&[
        "display-message",
        "-p",
        "-t",
        &format!("{}:", actor.tab),
        "#{pane_in_mode}",
    ]);
    assert_eq!(mode, "0");
}

#[test]
fn a11_a_menu_in_front_is_recognised() {
    let server = TestServer::start();
    let browser = server.browser();
    let (actor, ask) = asked(&server, &browser, "touch a.txt");
    actor.draws(&menu());
    let mut viewer = browser.status();
    say(&mut viewer.socket, &choose(&actor, &ask, 1, 0));
    let why = refusal(&mut viewer);
    assert!(why.contains("A menu is open in the terminal."), "{why}");
    wait("the card goes on offering", || {
        let card = actor.row(&server)["detail"]["ask"]["card"].clone();
        let said = card["cannot"].as_str()?.contains("menu");
        (said && card["options"] == json!([])).then_some(())
    });
    keys_stay(&actor, &[]);
}

#[test]
fn a13_stop_is_one_esc_only_while_it_works() {
    let server = TestServer::start();
    let browser = server.browser();
    let (actor, _) = asked(&server, &browser, "touch a.txt");
    let stop = |viewer: &mut Viewer, request| {
        let item = actor.tab.clone();
        say(&mut viewer.socket, &ClientMsg::Stop { request, item });
        told(viewer).pop().unwrap()
    };
    let mut viewer = browser.status();
    let refused = stop(&mut viewer, 1);
    assert!(
        matches!(&refused, ServerMsg::Refused { why, .. } if why.contains("asks something")),
        "{refused:?}"
    );
    actor.draws(&prompt());
    actor.is("idle");
    let refused = stop(&mut viewer, 2);
    assert!(
        matches!(&refused, ServerMsg::Refused { why, .. } if why.contains("not working")),
        "{refused:?}"
    );
    assert_eq!(actor.keys(), [""; 0]);
    actor.is("busy");
    // It goes on all the same.
    let failed = stop(&mut viewer, 3);
    assert!(
        matches!(
            &failed,
            ServerMsg::Stopped {
                outcome: Sending::Failed,
                why: Some(_),
                ..
            }
        ),
        "{failed:?}"
    );
    actor.on("escape", &prompt(), "idle");
    let stopped = stop(&mut viewer, 4);
    assert!(
        matches!(
            &stopped,
            ServerMsg::Stopped {
                outcome: Sending::Sent,
                why: None,
                ..
            }
        ),
        "{stopped:?}"
    );
    keys_stay(&actor, &["$'\\E'", "$'\\E'"]);
}

#[test]
fn a01_the_command_line_prints_the_card_and_answers_it() {
    let server = TestServer::start();
    let browser = server.browser();
    let (actor, ask) = asked(&server, &browser, "touch a.txt");
    let tab = actor.tab.as_str();
    let card = server.cli_ok(&["tab", "answer", tab]);
    for words in [
        "Bash command",
        "touch a.txt",
        "Do you want to proceed?",
        "3. No",
    ] {
        assert!(card.contains(words), "{words}: {card}");
    }
    let json = server.json(&["tab", "answer", tab, "--json"]);
    assert_eq!(json["card"]["reading"], ask["card"]["reading"]);
    let code = |arguments: &[&str]| {
        let output = server.cli(&[&["tab", "answer", tab], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), said)
    };
    for wrong in [
        &["--option", "1", "--reject"][..],
        &["--option", "x"],
        &["--words"],
        &["--ask", "x", "--option", "1"],
    ] {
        assert_eq!(code(wrong).0, 2, "{wrong:?}");
    }
    for absent in [
        &["--option", "9"][..],
        &["--label", "Maybe"],
        &["--ask", "999999", "--option", "1"],
    ] {
        let (code, said) = code(absent);
        assert_eq!(code, 1, "{absent:?}");
        assert!(
            said.to_lowercase().contains("nothing was sent"),
            "{absent:?}: {said}"
        );
    }
    let (failed, said) = code(&["--submit"]);
    assert_eq!(failed, 1);
    assert!(said.contains("nothing to submit"), "{said}");
    assert_eq!(actor.keys(), [""; 0]);
    actor.on("escape", &prompt(), "idle");
    assert_eq!(
        server.cli_ok(&["tab", "answer", tab, "--reject"]),
        "Sent: Esc\n"
    );
    keys_stay(&actor, &["$'\\E'"]);
    wait("it goes on asking", || {
        actor.row(&server)["detail"]["ask"].is_null().then_some(())
    });
    let (code, said) = code(&["--option", "1"]);
    assert_eq!(code, 1);
    assert!(said.contains("Nothing is asked"), "{said}");
    let rows = log(&server);
    assert_eq!(rows[0]["result"], "sent");
    let origin = rows[0]["origin"].as_str().unwrap();
    assert!(
        origin.starts_with("pid ") && origin.contains("purplemux"),
        "{origin}"
    );
    let printed = server.cli_ok(&["audit"]);
    assert!(
        printed.contains("touch a.txt") && printed.contains("Esc"),
        "{printed}"
    );
}

#[test]
fn a03_who_types_in_the_terminal_goes_first() {
    let server = TestServer::start();
    let browser = server.browser();
    let (actor, ask) = asked(&server, &browser, "touch a.txt");
    actor.on("1", &prompt(), "busy");
    let mut terminal = browser.terminal(&actor.tab, 120, 36);
    terminal.until("Do you want to proceed?");
    let mut viewer = browser.status();
    // The key of the person is on its way; what it does is not drawn yet.
    terminal.keys("1");
    say(&mut viewer.socket, &choose(&actor, &ask, 1, 2));
    refusal(&mut viewer);
    keys_stay(&actor, &["1"]);
}

#[test]
fn a01_leaving_the_terminal_for_the_card_delays_nothing() {
    let server = TestServer::start();
    let browser = server.browser();
    let (actor, ask) = asked(&server, &browser, "touch a.txt");
    actor.on("1", &prompt(), "busy");
    let mut terminal = browser.terminal(&actor.tab, 120, 36);
    terminal.until("Do you want to proceed?");
    // The size may have changed with it, and the card with that.
    let ask = wait("no card", || {
        let now = actor.ask(&server);
        (now["id"] == ask["id"]).then_some(now)
    });
    std::thread::sleep(Duration::from_secs(1));
    let mut viewer = browser.status();
    // As xterm.js does it when the focus goes.
    terminal.keys("\u{1b}[O");
    let from = Instant::now();
    say(&mut viewer.socket, &choose(&actor, &ask, 1, 0));
    let last = told(&mut viewer).pop().unwrap();
    assert!(
        matches!(
            last,
            ServerMsg::Answered {
                outcome: Sending::Sent,
                ..
            }
        ),
        "{last:?}"
    );
    assert!(
        from.elapsed() < Duration::from_millis(900),
        "{:?}",
        from.elapsed()
    );
}
