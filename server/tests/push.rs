//! Notifications from the episode to the push service: to which device, once, true, and taken back. The Claudes
//! are stand-ins; the push service is the tests' own.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it stands and looks at the real clock"
)]

mod support;

use std::time::{Duration, Instant};

use purplemux_wire::browser::ClientMsg;
use serde_json::{Value, json};
use support::dialogs::{Actor, permission, prompt};
use support::push_service::PushEndpoint;
use support::standin::{Standin, item_of, shows, wait};
use support::{Browser, TestServer, place, say};

fn subscribe(
    browser: &Browser<'_>,
    service: &PushEndpoint,
    device: &str,
    way: &str,
    choices: &Value,
) {
    let subscription = service.subscription(device, way, choices);
    let answer = browser.write("PUT", "/api/push", &subscription);
    assert_eq!(answer.status, 204, "{}", answer.text());
}

fn desktop() -> Value {
    json!({ "class": "desktop", "shows": "everything" })
}

fn phone() -> Value {
    json!({ "class": "phone", "shows": "everything" })
}

/// A dialog about a command opens, as the file and the hook tell it.
fn ask(server: &TestServer, claude: &Standin, command: &str) {
    claude.write("busy");
    let hook = json!({ "tool_name": "Bash", "tool_input": { "command": command } });
    claude.hook(server, "PreToolUse", &hook);
    claude.hook(server, "PermissionRequest", &hook);
    claude.write("waiting");
    shows(server, claude, "needs-input");
}

fn front(viewer: &mut support::Viewer, items: &[&str]) {
    let items = items.iter().copied().map(str::to_owned).collect();
    say(&mut viewer.socket, &ClientMsg::Front { items });
}

#[test]
fn m01_m04_one_alert_per_device_and_one_taken_back() {
    let server = TestServer::start();
    let service = PushEndpoint::start();
    let (desk, pocket) = (server.browser(), server.browser());
    subscribe(&desk, &service, "desk", "ok", &desktop());
    subscribe(
        &pocket,
        &service,
        "pocket",
        "ok",
        &json!({ "class": "desktop" }),
    );
    let _pages = [desk.status(), desk.status(), desk.status()];
    let claude = Standin::new(server.dir.path());
    ask(&server, &claude, "touch a.txt");
    let shown = service.until("desk", 1);
    let other = service.until("pocket", 1);
    // The same again, from every side.
    claude.hook(
        &server,
        "Notification",
        &json!({ "notification_type": "permission_prompt" }),
    );
    let same = std::fs::read(claude.file()).unwrap();
    std::fs::write(claude.file(), same).unwrap();
    let item = item_of(&server, claude.pid()).unwrap();
    assert_eq!(shown.message["type"], "show");
    assert_eq!(shown.message["row"], item["id"]);
    assert_eq!(shown.message["episode"], item["episode"]);
    assert_eq!(shown.message["silent"], false);
    assert_eq!(shown.message["count"], 1);
    assert_eq!(shown.header("urgency"), "high");
    assert_eq!(shown.header("topic"), other.header("topic"));
    // Answered in the terminal: the next that each device hears is that it is over.
    claude.write("busy");
    for device in ["desk", "pocket"] {
        let closed = service.until(device, 2);
        assert_eq!(closed.message["type"], "close", "{device}");
        assert_eq!(closed.message["row"], item["id"]);
        assert_eq!(closed.message["episode"], item["episode"]);
        assert_eq!(closed.message["count"], 0);
    }
    let history = desk.get("/api/notifications").json();
    assert_eq!(history.as_array().unwrap().len(), 1, "{history}");
    assert_eq!(history[0]["about"], "permission");
    assert!(history[0]["ended_ms"].as_i64() >= history[0]["at_ms"].as_i64());
}

#[test]
fn m02_in_front_on_the_desktop_the_phone_calls_after_ten_seconds() {
    let server = TestServer::start();
    let service = PushEndpoint::start();
    let (desk, pocket) = (server.browser(), server.browser());
    subscribe(&desk, &service, "desk", "ok", &desktop());
    subscribe(&pocket, &service, "pocket", "ok", &phone());
    let claude = Standin::new(server.dir.path());
    claude.write("idle");
    let row = shows(&server, &claude, "idle");
    let mut page = desk.status();
    front(&mut page, &["another", row["id"].as_str().unwrap()]);
    let opened = Instant::now();
    ask(&server, &claude, "touch a.txt");
    let called = service.until("pocket", 1);
    let after = called.at - opened;
    assert!(after >= Duration::from_secs(10), "{after:?}");
    assert!(after < Duration::from_secs(15), "{after:?}");
    assert_eq!(service.taken("desk").len(), 0);
    // Another row in front does not mute.
    front(&mut page, &["another"]);
    claude.write("busy");
    service.until("pocket", 2);
    ask(&server, &claude, "touch b.txt");
    let told = service.until("desk", 1);
    assert_eq!(told.message["text"], "touch b.txt");
}

#[test]
fn m03_what_was_over_within_a_second_is_told_to_nobody() {
    let server = TestServer::start();
    let service = PushEndpoint::start();
    let desk = server.browser();
    subscribe(&desk, &service, "desk", "ok", &desktop());
    let (short, long) = (
        Standin::new(server.dir.path()),
        Standin::new(server.dir.path()),
    );
    ask(&server, &short, "touch short.txt");
    // Answered at once; the next dialog, of another session, is told of as ever.
    short.write("busy");
    ask(&server, &long, "touch long.txt");
    let told = service.until("desk", 1);
    assert_eq!(told.message["text"], "touch long.txt");
}

#[test]
fn m05_the_phone_is_called_when_the_desktop_was_left_alone() {
    let server = TestServer::start();
    let service = PushEndpoint::start();
    let (desk, pocket) = (server.browser(), server.browser());
    subscribe(&desk, &service, "desk", "ok", &desktop());
    let hasty = json!({ "class": "phone", "escalate_s": 10 });
    subscribe(&pocket, &service, "pocket", "ok", &hasty);
    let claude = Standin::new(server.dir.path());
    let opened = Instant::now();
    ask(&server, &claude, "touch a.txt");
    service.until("desk", 1);
    let called = service.until("pocket", 1);
    assert!(called.at - opened >= Duration::from_secs(10));
    // Answered: both devices hear of it, and of nothing else in between.
    claude.write("busy");
    assert_eq!(service.until("desk", 2).message["type"], "close");
    assert_eq!(service.until("pocket", 2).message["type"], "close");
}

#[test]
fn m08_a_device_that_is_gone_is_removed_and_one_that_hangs_delays_nobody() {
    let server = TestServer::start();
    let service = PushEndpoint::start();
    let (gone, hung, busy, well) = (
        server.browser(),
        server.browser(),
        server.browser(),
        server.browser(),
    );
    subscribe(&gone, &service, "gone", "gone", &desktop());
    subscribe(&hung, &service, "hung", "hang", &desktop());
    subscribe(&busy, &service, "busy", "500,429,201", &desktop());
    subscribe(&well, &service, "well", "ok", &desktop());
    let claude = Standin::new(server.dir.path());
    ask(&server, &claude, "touch a.txt");
    let well_at = service.until("well", 1).at;
    let gone_at = service.until("gone", 1).at;
    let hung_at = service.until("hung", 1).at;
    let last = service.until("busy", 3);
    let first = well_at.min(gone_at).min(hung_at);
    for at in [well_at, gone_at, hung_at] {
        assert!(
            at - first < Duration::from_secs(1),
            "no device waits for another"
        );
    }
    // A repeat says the same of the same stay, which its device shows once.
    let all = service.taken("busy");
    assert!(
        all.iter()
            .all(|pushed| pushed.message["episode"] == last.message["episode"])
    );
    wait("the delivery is never written down", || {
        let last = busy.get("/api/push").json()["device"]["last"].clone();
        (last["ok"] == true && last["status"] == 201).then_some(())
    });
    wait("the device that is gone is never removed", || {
        gone.get("/api/push").json()["device"]
            .is_null()
            .then_some(())
    });
    // It subscribes anew, and is told again.
    subscribe(&gone, &service, "again", "ok", &desktop());
    claude.write("busy");
    ask(&server, &claude, "touch b.txt");
    wait("never told again", || {
        let taken = service.taken("again");
        taken
            .iter()
            .any(|pushed| pushed.message["text"] == "touch b.txt")
            .then_some(())
    });
}

#[test]
fn m08_the_test_button_tells_the_truth() {
    let server = TestServer::start();
    let service = PushEndpoint::start();
    let browser = server.browser();
    let none = browser.write("POST", "/api/push/test", &json!({}));
    assert_eq!(none.status, 404);
    subscribe(&browser, &service, "well", "ok", &desktop());
    let well = browser.write("POST", "/api/push/test", &json!({})).json();
    assert_eq!(
        (well["ok"].as_bool(), well["status"].as_u64()),
        (Some(true), Some(201))
    );
    assert_eq!(service.until("well", 1).message["type"], "test");
    subscribe(&browser, &service, "refused", "refuse", &desktop());
    let refused = browser.write("POST", "/api/push/test", &json!({})).json();
    assert_eq!(refused["ok"], false);
    assert!(
        refused["why"].as_str().unwrap().contains("403"),
        "{refused}"
    );
    let device = browser.get("/api/push").json()["device"].clone();
    assert_eq!(device["last"], refused);
}

#[test]
fn m09_what_is_asked_is_on_the_lock_screen_only_where_that_was_chosen() {
    let server = TestServer::start();
    let service = PushEndpoint::start();
    let (open, shy, mute) = (server.browser(), server.browser(), server.browser());
    subscribe(&open, &service, "open", "ok", &desktop());
    subscribe(
        &shy,
        &service,
        "shy",
        "ok",
        &json!({ "shows": "title", "lang": "zh-TW" }),
    );
    subscribe(&mute, &service, "mute", "ok", &json!({ "shows": "count" }));
    let claude = Standin::new(server.dir.path());
    ask(&server, &claude, "echo \u{202e}txt.a\n\u{1b}[31mred");
    let open = service.until("open", 1).message;
    let text = open["text"].as_str().unwrap();
    assert!(
        text.contains("‹U+202E›") && text.contains("␛[31m"),
        "{text}"
    );
    assert!(text.starts_with("echo") && text.chars().count() <= 200);
    assert_eq!(open["tool"], "Bash");
    let shy = service.until("shy", 1).message;
    assert_eq!(shy["about"], "permission");
    assert_eq!(shy["lang"], "zh-TW");
    assert!(shy["title"].is_string() && shy["text"].is_null(), "{shy}");
    let mute = service.until("mute", 1).message;
    assert!(mute["title"].is_null() && mute["about"].is_null(), "{mute}");
    assert_eq!(mute["count"], 1);
}

/// A Claude with a dialog about this command on its screen, as the hook tells of it too.
fn drawn(server: &TestServer, browser: &Browser<'_>, command: &str, options: &[&str]) -> Actor {
    let actor = Actor::new(server, browser);
    actor.is("busy");
    wait("never busy", || {
        (actor.row(server)["state"] == "busy").then_some(())
    });
    actor.draws(&permission(command, options, 0));
    let hook = json!({ "tool_name": "Bash", "tool_input": { "command": command } });
    actor.hook(server, "PreToolUse", &hook);
    actor.hook(server, "PermissionRequest", &hook);
    actor.is("waiting");
    actor.ask(server);
    actor
}

/// As a service worker sends it: with the cookie, and without the secret, which lies where only pages reach.
fn press(
    server: &TestServer,
    browser: &Browser<'_>,
    shown: &Value,
    button: &str,
) -> support::Answer {
    let mut body = shown["buttons"].clone();
    body["item"] = shown["row"].clone();
    body["button"] = json!(button);
    let origin = server.origin();
    let headers = [
        ("cookie", browser.cookie.as_str()),
        ("origin", &origin),
        ("content-type", "application/json"),
    ];
    server.request(
        "POST",
        "/api/push/answer",
        &headers,
        body.to_string().as_bytes(),
    )
}

fn with_buttons() -> Value {
    json!({ "class": "desktop", "shows": "everything", "buttons": true })
}

#[test]
fn m06_a_button_answers_a_plain_permission_once_and_says_why_it_did_not() {
    let server = TestServer::start();
    let service = PushEndpoint::start();
    let (desk, other) = (server.browser(), Browser::sign_in(&server));
    subscribe(&desk, &service, "desk", "ok", &with_buttons());
    subscribe(&other, &service, "plain", "ok", &desktop());
    let options = ["Yes", "Yes, and don't ask again for: touch *", "No"];
    let actor = drawn(&server, &desk, "touch a.txt", &options);
    let shown = service.until("desk", 1).message;
    // "Don't ask again" is no button, and a device that did not choose them has none.
    assert_eq!(
        (&shown["buttons"]["yes"], &shown["buttons"]["no"]),
        (&json!(0), &json!(2))
    );
    assert_eq!(service.until("plain", 1).message["buttons"], Value::Null);
    // Not for another login, nor for what was not sent.
    assert_eq!(press(&server, &other, &shown, "yes").status, 401);
    let mut forged = shown.clone();
    forged["buttons"]["yes"] = json!(1);
    let refused = press(&server, &desk, &forged, "yes");
    assert_eq!(refused.status, 401);
    assert_eq!(refused.json()["said"]["code"], "button_too_old");
    assert_eq!(actor.keys(), [""; 0]);
    actor.on("3", &prompt(), "idle");
    let sent = press(&server, &desk, &shown, "no");
    assert_eq!(sent.status, 200, "{}", sent.text());
    assert_eq!(sent.json()["what"], "No");
    // Pressed again, or late.
    let late = press(&server, &desk, &shown, "yes");
    assert_eq!(late.status, 409);
    assert_eq!(late.json()["said"]["code"], "answered", "{}", late.text());
    assert_eq!(late.json()["said"]["then"], "nothing_sent");
    assert_eq!(actor.keys(), ["3"]);
    let log = server.json(&["audit", "--json"]);
    assert_eq!(log[0]["said"]["code"], "answered", "{log}");
    assert!(
        log[1]["origin"].as_str().unwrap().starts_with("login "),
        "{log}"
    );
}

#[test]
fn m09_buttons_stand_only_where_the_notification_shows_all_that_is_allowed() {
    let server = TestServer::start();
    let service = PushEndpoint::start();
    let browsers = [
        server.browser(),
        Browser::sign_in(&server),
        Browser::sign_in(&server),
    ];
    for (browser, (device, shows)) in browsers.iter().zip([
        ("all", "everything"),
        ("title", "title"),
        ("count", "count"),
    ]) {
        let choices = json!({ "class": "desktop", "shows": shows, "buttons": true });
        subscribe(browser, &service, device, "ok", &choices);
    }
    let own = &browsers[0];
    drawn(&server, own, "touch a.txt", &["Yes", "No"]);
    assert!(service.until("all", 1).message["buttons"].is_object());
    for device in ["title", "count"] {
        assert_eq!(
            service.until(device, 1).message["buttons"],
            Value::Null,
            "{device}"
        );
    }
    // Other words than Yes and No, and more than a notification holds.
    drawn(&server, own, "touch b.txt", &["Allow", "Deny"]);
    assert_eq!(service.until("all", 2).message["buttons"], Value::Null);
    // What only the file tells of is not in the notification.
    let claude = Standin::new(server.dir.path());
    ask(&server, &claude, "touch c.txt");
    assert_eq!(
        service.until("all", 3).message["buttons"],
        Value::Null,
        "nothing was read from a screen"
    );
}

#[test]
fn what_was_told_before_a_restart_is_taken_back_after_it() {
    let service = PushEndpoint::start();
    let server = TestServer::start_in(place());
    let browser = server.browser();
    subscribe(&browser, &service, "desk", "ok", &desktop());
    let claude = Standin::new(server.dir.path());
    ask(&server, &claude, "touch a.txt");
    let shown = service.until("desk", 1);
    let dir = server.end("-KILL");
    let server = TestServer::start_in(dir);
    shows(&server, &claude, "needs-input");
    claude.write("busy");
    let closed = service.until("desk", 2);
    assert_eq!(
        closed.message["type"], "close",
        "found again, not told again"
    );
    assert_eq!(closed.message["row"], shown.message["row"]);
}

#[test]
fn odd_subscriptions_are_refused_with_the_reason() {
    let server = TestServer::start();
    let service = PushEndpoint::start();
    let browser = server.browser();
    let good = service.subscription("x", "ok", &desktop());
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut odd = good.clone();
        change(&mut odd);
        let answer = browser.write("PUT", "/api/push", &odd);
        assert_eq!(answer.status, 400, "{odd}");
        answer.json()["error"].as_str().unwrap().to_owned()
    };
    assert!(refused(&|odd| odd["endpoint"] = json!("http://example.net/x")).contains("https"));
    assert!(refused(&|odd| odd["keys"]["auth"] = json!("AAAA")).contains("16 bytes"));
    assert!(refused(&|odd| odd["keys"]["p256dh"] = json!("AAAA")).contains("public key"));
    assert!(refused(&|odd| odd["choices"]["zone"] = json!("Mars")).contains("time zone"));
    assert!(refused(&|odd| odd["choices"]["escalate_s"] = json!(1)).contains("10 to 3600"));
    assert!(refused(&|odd| odd["choices"]["colour"] = json!("red")).contains("colour"));
    assert!(browser.get("/api/push").json()["device"].is_null());
}

#[test]
fn a_device_is_listed_and_signed_out_by_another() {
    let server = TestServer::start();
    let (one, two) = (server.browser(), server.browser());
    let devices = one.get("/api/devices").json();
    let devices = devices.as_array().unwrap();
    assert_eq!(devices.len(), 2);
    let other = devices
        .iter()
        .find(|device| device["this"] == false)
        .unwrap();
    let mut page = two.status();
    let path = format!("/api/devices/{}", other["id"].as_str().unwrap());
    assert_eq!(one.write("DELETE", &path, &json!(null)).status, 204);
    assert!(
        support::close_code(&mut page.socket).is_some(),
        "its page is closed at once"
    );
    assert_eq!(two.get("/api/items").status, 401);
    assert_eq!(one.write("DELETE", &path, &json!(null)).status, 404);
    assert_eq!(one.get("/api/devices").json().as_array().unwrap().len(), 1);
}
