//! The layout over its public face: workspaces, panes and tabs, on every device at once, over restarts, and what is
//! asked for that can't be done.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it is wrong"
)]

mod support;

use std::time::{Duration, Instant};

use purplemux_wire::browser::{PaneTree, Shell, SplitDir, Workspace};
use serde_json::{Value, json};
use support::{Browser, TestServer, Viewer, tmux};

/// What a change may take to the other device, and five times that for a busy machine.
const CHANGE_WITHIN: Duration = Duration::from_millis(500);

fn panes(tree: &PaneTree) -> Vec<(String, Vec<String>)> {
    match tree {
        PaneTree::Pane(pane) => vec![(pane.id.clone(), pane.tabs.clone())],
        PaneTree::Split(split) => split.parts.iter().flat_map(panes).collect(),
    }
}

/// The id of the one pane of a workspace.
fn only_pane(workspace: &Workspace) -> String {
    let panes = panes(&workspace.panes);
    assert_eq!(panes.len(), 1, "{panes:?}");
    panes[0].0.clone()
}

fn change(browser: &Browser<'_>, workspace: &str, op: &Value) -> Value {
    let path = format!("/api/workspaces/{workspace}/panes");
    let answer = browser.write("POST", &path, op);
    match answer.status {
        200 => answer.json(),
        204 => Value::Null,
        _ => panic!("{op}: {}", answer.text()),
    }
}

fn make_workspace(browser: &Browser<'_>, name: &str) -> String {
    let made = browser.write("POST", "/api/workspaces", &json!({ "name": name }));
    assert_eq!(made.status, 201, "{}", made.text());
    made.json()["workspace"].as_str().unwrap().to_owned()
}

/// The sentence of a refusal.
fn refused(browser: &Browser<'_>, method: &str, path: &str, body: &Value, status: u16) -> String {
    let answer = browser.write(method, path, body);
    assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
    let why = answer.json()["error"].as_str().unwrap().to_owned();
    assert!(why.ends_with('.'), "{why}");
    why
}

fn has(viewer: &Viewer, tab: &str) -> bool {
    viewer.items.iter().any(|item| item.id == tab)
        && viewer
            .workspaces
            .iter()
            .any(|w| w.tabs.iter().any(|t| t == tab))
}

#[test]
fn every_change_of_the_layout_is_on_the_other_device_at_once() {
    let server = TestServer::start();
    let (desk, phone) = (server.browser(), server.browser());
    let mut there = phone.status();
    let home = there.workspaces[0].id.clone();
    let first = only_pane(&there.workspaces[0]);
    let (one, two) = (desk.tab(), desk.tab());
    there.until(|viewer| has(viewer, &one) && has(viewer, &two));
    assert_eq!(
        panes(&there.workspaces[0].panes),
        [(first.clone(), vec![one.clone(), two.clone()])]
    );

    let mut slowest = Duration::ZERO;
    let mut seen = |act: &dyn Fn() -> Value, done: &dyn Fn(&Viewer) -> bool| {
        let started = Instant::now();
        let answer = act();
        there.until(done);
        slowest = slowest.max(started.elapsed());
        answer
    };
    let split = json!({ "op": "split", "pane": first, "dir": "right", "tab": two });
    let made = seen(&|| change(&desk, &home, &split), &|viewer| {
        matches!(&viewer.workspaces[0].panes, PaneTree::Split(split)
            if split.dir == SplitDir::Right && split.sizes == [500, 500])
    });
    let second = made["pane"].as_str().unwrap().to_owned();
    let split_id = {
        let viewer = desk.status();
        let PaneTree::Split(split) = &viewer.workspaces[0].panes else {
            panic!("{:?}", viewer.workspaces)
        };
        split.id.clone()
    };
    let sizes = json!({ "op": "sizes", "split": split_id, "sizes": [700, 300] });
    seen(
        &|| change(&desk, &home, &sizes),
        &|viewer| matches!(&viewer.workspaces[0].panes, PaneTree::Split(split) if split.sizes == [700, 300]),
    );
    seen(
        &|| change(&desk, &home, &json!({ "op": "equal" })),
        &|viewer| matches!(&viewer.workspaces[0].panes, PaneTree::Split(split) if split.sizes == [500, 500]),
    );
    let to = json!({ "pane": second, "index": 0 });
    let moved = || {
        let path = format!("/api/tabs/{one}");
        assert_eq!(desk.write("PATCH", &path, &to).status, 204);
        Value::Null
    };
    seen(&moved, &|viewer| {
        panes(&viewer.workspaces[0].panes)
            == [
                (first.clone(), vec![]),
                (second.clone(), vec![one.clone(), two.clone()]),
            ]
    });
    seen(
        &|| change(&desk, &home, &json!({ "op": "close", "pane": second })),
        &|viewer| {
            panes(&viewer.workspaces[0].panes) == [(first.clone(), vec![one.clone(), two.clone()])]
        },
    );
    let named = json!({ "name": "shop", "color": "teal", "group": "work" });
    let rename = || {
        let path = format!("/api/workspaces/{home}");
        assert_eq!(desk.write("PATCH", &path, &named).status, 204);
        Value::Null
    };
    seen(&rename, &|viewer| {
        let workspace = serde_json::to_value(&viewer.workspaces[0]).unwrap();
        workspace["name"] == "shop" && workspace["color"] == "teal" && workspace["group"] == "work"
    });
    eprintln!("slowest change: {slowest:?}");
    assert!(slowest < CHANGE_WITHIN, "{slowest:?}");
}

#[test]
fn a_tab_that_is_moved_keeps_its_shell() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let pid = || {
        tmux(
            &server,
            &["list-panes", "-a", "-F", "#{session_name} #{pane_pid}"],
        )
    };
    let before = pid();
    let other = make_workspace(&browser, "other");
    let mut viewer = browser.status();
    let target = only_pane(viewer.workspaces.iter().find(|w| w.id == other).unwrap());
    let mut terminal = browser.terminal(&tab, 80, 24);
    terminal.keys("echo before-$((1+1))\r");
    terminal.until("before-2");
    let moved = browser.write(
        "PATCH",
        &format!("/api/tabs/{tab}"),
        &json!({ "pane": target }),
    );
    assert_eq!(moved.status, 204, "{}", moved.text());
    viewer.until(|viewer| {
        let row = viewer.items.iter().find(|item| item.id == tab).unwrap();
        row.workspace.as_deref() == Some(&*other)
    });
    // The very terminal goes on.
    terminal.keys("echo after-$((1+1))\r");
    terminal.until("after-2");
    assert_eq!(pid(), before);
}

#[test]
fn the_layout_outlives_the_server_however_it_ends() {
    for signal in ["-TERM", "-KILL"] {
        let server = TestServer::start();
        let browser = server.browser();
        let other = make_workspace(&browser, "other");
        let tab = browser.tab();
        let viewer = browser.status();
        let home = viewer.workspaces[0].id.clone();
        let pane = only_pane(&viewer.workspaces[0]);
        change(
            &browser,
            &home,
            &json!({ "op": "split", "pane": pane, "dir": "down", "tab": tab }),
        );
        change(
            &browser,
            &home,
            &json!({ "op": "split", "pane": pane, "dir": "right" }),
        );
        let order = browser.write(
            "PUT",
            "/api/workspaces/order",
            &json!({ "ids": [other, home] }),
        );
        assert_eq!(order.status, 204, "{}", order.text());
        let before = browser.get("/api/workspaces").json();
        drop(viewer);
        let server = TestServer::start_in(server.end(signal));
        let browser = server.browser();
        let mut viewer = browser.status();
        viewer.until(|viewer| {
            viewer
                .items
                .iter()
                .any(|item| item.shell == Some(Shell::Running))
        });
        assert_eq!(browser.get("/api/workspaces").json(), before, "{signal}");
        assert_eq!(viewer.workspaces[0].id, other);
    }
}

#[test]
fn panes_that_can_not_be_read_become_one_and_no_tab_is_lost() {
    let server = TestServer::start();
    let browser = server.browser();
    let (one, two) = (browser.tab(), browser.tab());
    let viewer = browser.status();
    let home = viewer.workspaces[0].id.clone();
    let pane = only_pane(&viewer.workspaces[0]);
    change(
        &browser,
        &home,
        &json!({ "op": "split", "pane": pane, "dir": "down", "tab": one }),
    );
    drop(viewer);
    let dir = server.end("-TERM");
    let database = dir.path().join("home/purplemux.db");
    rusqlite::Connection::open(database)
        .unwrap()
        .execute("UPDATE workspaces SET panes = substr(panes, 1, 40)", [])
        .unwrap();
    let server = TestServer::start_in(dir);
    let viewer = server.browser().status();
    let mut tabs = panes(&viewer.workspaces[0].panes)[0].1.clone();
    tabs.sort();
    let mut wanted = vec![one, two];
    wanted.sort();
    assert_eq!(tabs, wanted);
    assert_ne!(only_pane(&viewer.workspaces[0]), pane);
    let log = std::fs::read_to_string(server.home().join("logs/server.log")).unwrap();
    assert!(log.contains("all its tabs are in one pane now"), "{log}");
}

#[test]
fn what_is_closed_can_be_brought_back_for_ten_seconds_and_then_ends() {
    let server = TestServer::start();
    let (desk, phone) = (server.browser(), server.browser());
    let (one, two) = (desk.tab(), desk.tab());
    let mut there = phone.status();
    there.until(|viewer| has(viewer, &one) && has(viewer, &two));
    let before = desk.get("/api/workspaces").json();
    let sessions = || tmux(&server, &["list-sessions", "-F", "#{session_name}"]);
    let path = format!("/api/tabs/{one}");

    let closed = desk.write("DELETE", &format!("{path}?undo=1"), &Value::Null);
    assert_eq!(closed.status, 200, "{}", closed.text());
    assert!(closed.json()["until_ms"].as_i64().unwrap() > 0);
    there.until(|viewer| !has(viewer, &one));
    assert!(!there.workspaces[0].tabs.contains(&one));
    assert!(sessions().contains(&one), "its shell lives on");
    // Nothing can be done with it meanwhile but to bring it back.
    let gone = refused(&desk, "PATCH", &path, &json!({ "name": "x" }), 404);
    assert!(gone.contains(&one), "{gone}");
    assert_eq!(
        phone
            .write("POST", &format!("{path}/restore"), &json!({}))
            .status,
        204
    );
    there.until(|viewer| has(viewer, &one));
    assert_eq!(desk.get("/api/workspaces").json(), before, "in its place");
    refused(&desk, "POST", &format!("{path}/restore"), &json!({}), 404);

    let started = Instant::now();
    desk.write("DELETE", &format!("{path}?undo=1"), &Value::Null);
    let until = started + support::PATIENCE;
    while sessions().contains(&one) {
        assert!(Instant::now() < until, "it never ends");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(
        started.elapsed() > Duration::from_secs(9),
        "{:?}",
        started.elapsed()
    );
    assert!(sessions().contains(&two));
    refused(&desk, "POST", &format!("{path}/restore"), &json!({}), 404);
}

#[test]
fn what_is_closed_when_the_server_stops_ends_after_the_next_start() {
    let server = TestServer::start();
    let browser = server.browser();
    let (one, two) = (browser.tab(), browser.tab());
    let closed = browser.write("DELETE", &format!("/api/tabs/{one}?undo=1"), &Value::Null);
    assert_eq!(closed.status, 200, "{}", closed.text());
    let server = TestServer::start_in(server.end("-KILL"));
    let viewer = server.browser().status();
    assert!(!has(&viewer, &one) && has(&viewer, &two));
    let until = Instant::now() + support::PATIENCE;
    while tmux(&server, &["list-sessions", "-F", "#{session_name}"]).contains(&one) {
        assert!(Instant::now() < until, "it never ends");
        std::thread::sleep(Duration::from_millis(50));
    }
    // It is not taken for a session of somebody else's on the way.
    let tabs = server.browser().get("/api/tabs").json();
    assert_eq!(tabs.as_array().unwrap().len(), 1, "{tabs}");
}

#[test]
fn a_workspace_goes_with_its_tabs_and_comes_back_with_them() {
    let server = TestServer::start();
    let browser = server.browser();
    let home = browser.status().workspaces[0].id.clone();
    refused(
        &browser,
        "DELETE",
        &format!("/api/workspaces/{home}"),
        &Value::Null,
        409,
    );
    let other = make_workspace(&browser, "other");
    let made = browser.write("POST", "/api/tabs", &json!({ "workspace": other }));
    let tab = made.json()["tab"].as_str().unwrap().to_owned();
    let mut viewer = browser.status();
    viewer.until(|viewer| has(viewer, &tab));
    let path = format!("/api/workspaces/{other}");
    let why = refused(&browser, "DELETE", &path, &Value::Null, 409);
    assert!(
        why.contains("1 open tabs") && why.contains("--force"),
        "{why}"
    );

    let closed = browser.write("DELETE", &format!("{path}?force=1&undo=1"), &Value::Null);
    assert_eq!(closed.status, 200, "{}", closed.text());
    viewer.until(|viewer| viewer.workspaces.len() == 1 && !has(viewer, &tab));
    let back = browser.write("POST", &format!("{path}/restore"), &json!({}));
    assert_eq!(back.status, 204, "{}", back.text());
    viewer.until(|viewer| viewer.workspaces.len() == 2 && has(viewer, &tab));

    let closed = browser.write("DELETE", &format!("{path}?force=1"), &Value::Null);
    assert_eq!(closed.status, 204, "{}", closed.text());
    viewer.until(|viewer| viewer.workspaces.len() == 1 && !has(viewer, &tab));
    let sessions = tmux(&server, &["list-sessions", "-F", "#{session_name}"]);
    assert!(!sessions.contains(&tab), "{sessions}");
    refused(
        &browser,
        "POST",
        &format!("{path}/restore"),
        &json!({}),
        404,
    );
}

#[test]
fn what_is_asked_for_wrongly_changes_nothing_and_says_why() {
    let server = TestServer::start();
    let browser = server.browser();
    let tab = browser.tab();
    let viewer = browser.status();
    let home = viewer.workspaces[0].id.clone();
    let pane = only_pane(&viewer.workspaces[0]);
    let other = make_workspace(&browser, "other");
    let before = browser.get("/api/workspaces").json();
    let panes = format!("/api/workspaces/{home}/panes");
    let elsewhere = format!("/api/workspaces/{other}/panes");
    let space = format!("/api/workspaces/{home}");
    let tab_path = format!("/api/tabs/{tab}");
    let long = "x".repeat(201);
    let wrong = [
        (
            "POST",
            &*panes,
            json!({ "op": "split", "pane": "p-none", "dir": "right" }),
            404,
        ),
        (
            "POST",
            &*panes,
            json!({ "op": "split", "pane": pane, "dir": "left" }),
            400,
        ),
        (
            "POST",
            &*panes,
            json!({ "op": "split", "pane": pane, "dir": "down", "tab": "t-0" }),
            404,
        ),
        ("POST", &*panes, json!({ "op": "close", "pane": pane }), 409),
        (
            "POST",
            &*panes,
            json!({ "op": "sizes", "split": "s-none", "sizes": [500, 500] }),
            404,
        ),
        (
            "POST",
            &*panes,
            json!({ "op": "sizes", "split": "s", "sizes": [-1, 1001] }),
            400,
        ),
        ("POST", &*panes, json!({ "op": "zoom", "pane": pane }), 400),
        ("POST", &*panes, json!({}), 400),
        ("POST", &*panes, json!([1]), 400),
        (
            "POST",
            &*elsewhere,
            json!({ "op": "split", "pane": pane, "dir": "right" }),
            404,
        ),
        (
            "POST",
            "/api/workspaces/w-none/panes",
            json!({ "op": "equal" }),
            404,
        ),
        ("PATCH", &*tab_path, json!({}), 400),
        ("PATCH", &*tab_path, json!({ "index": 0 }), 400),
        ("PATCH", &*tab_path, json!({ "pane": "p-none" }), 404),
        (
            "PATCH",
            &*tab_path,
            json!({ "pane": pane, "index": -1 }),
            400,
        ),
        (
            "PATCH",
            &*tab_path,
            json!({ "pane": pane, "name": "x" }),
            400,
        ),
        ("PATCH", &*tab_path, json!({ "name": long }), 400),
        ("PATCH", "/api/tabs/t-none", json!({ "pane": pane }), 404),
        ("POST", "/api/tabs", json!({ "pane": "p-none" }), 404),
        (
            "POST",
            "/api/tabs",
            json!({ "workspace": other, "pane": pane }),
            404,
        ),
        ("POST", "/api/workspaces", json!({ "name": " \t" }), 400),
        ("POST", "/api/workspaces", json!({ "name": long }), 400),
        (
            "POST",
            "/api/workspaces",
            json!({ "name": "x", "color": "mauve" }),
            400,
        ),
        (
            "POST",
            "/api/workspaces",
            json!({ "name": "x", "dir": "/no/such/place" }),
            400,
        ),
        (
            "POST",
            "/api/workspaces",
            json!({ "name": "x", "dir": "relative" }),
            400,
        ),
        ("PATCH", &*space, json!({ "name": "" }), 400),
        ("PATCH", &*space, json!({ "dir": "" }), 400),
        ("PATCH", &*space, json!({ "group": long }), 400),
        ("PATCH", &*space, json!({ "panes": {} }), 400),
        (
            "PATCH",
            "/api/workspaces/w-none",
            json!({ "name": "x" }),
            404,
        ),
        (
            "PUT",
            "/api/workspaces/order",
            json!({ "ids": [home] }),
            409,
        ),
        (
            "PUT",
            "/api/workspaces/order",
            json!({ "ids": [home, home] }),
            409,
        ),
        ("PUT", "/api/workspaces/order", json!({ "ids": "x" }), 400),
        ("DELETE", "/api/workspaces/w-none", Value::Null, 404),
        (
            "DELETE",
            "/api/workspaces/w-none?force=yes",
            Value::Null,
            400,
        ),
        ("DELETE", "/api/tabs/t-none?undo=1", Value::Null, 404),
        ("POST", "/api/tabs/t-none/restore", json!({}), 404),
        ("POST", "/api/workspaces/w-none/restore", json!({}), 404),
    ];
    for (method, path, body, status) in wrong {
        refused(&browser, method, path, &body, status);
        let now = browser.get("/api/workspaces").json();
        assert_eq!(now, before, "{method} {path} {body}");
    }
}

#[test]
fn new_tabs_go_where_they_are_wanted() {
    let server = TestServer::start();
    let browser = server.browser();
    let viewer = browser.status();
    let home = viewer.workspaces[0].id.clone();
    let first = only_pane(&viewer.workspaces[0]);
    let split = json!({ "op": "split", "pane": first, "dir": "right" });
    let made = change(&browser, &home, &split);
    let second = made["pane"].as_str().unwrap().to_owned();
    let body = json!({ "pane": second });
    let tab = browser.write("POST", "/api/tabs", &body).json()["tab"].clone();
    let tab = tab.as_str().unwrap().to_owned();
    let plain = browser.tab();
    let viewer = browser.status();
    let wanted = [(first, vec![plain]), (second, vec![tab])];
    assert_eq!(panes(&viewer.workspaces[0].panes), wanted);
    assert_eq!(
        viewer.workspaces[0].tabs,
        [wanted[0].1.clone(), wanted[1].1.clone()].concat()
    );
}

#[test]
fn l04_what_was_deleted_while_a_device_was_away_is_gone_when_it_comes_back() {
    let server = TestServer::start();
    let (desk, phone) = (server.browser(), server.browser());
    let other = make_workspace(&desk, "other");
    let made = desk.write("POST", "/api/tabs", &json!({ "workspace": other }));
    let tab = made.json()["tab"].as_str().unwrap().to_owned();
    let kept = desk.tab();
    let mut there = phone.status();
    there.until(|viewer| has(viewer, &tab) && has(viewer, &kept));
    drop(there);
    let path = format!("/api/workspaces/{other}?force=1");
    assert_eq!(desk.write("DELETE", &path, &Value::Null).status, 204);
    let there = phone.status();
    assert_eq!(there.items.len(), 1);
    assert_eq!(there.items[0].id, kept);
    assert_eq!(there.workspaces.len(), 1);
    assert_eq!(there.workspaces[0].tabs, [kept]);
}

#[test]
fn workspaces_are_made_named_and_removed_from_the_command_line() {
    let server = TestServer::start();
    let dir = server.dir.path().join("person");
    let dir = dir.to_str().unwrap();
    let made = server.json(&[
        "workspace",
        "create",
        "shop",
        "--dir",
        dir,
        "--color",
        "teal",
        "--group",
        "work",
        "--json",
    ]);
    let id = made["workspace"].as_str().unwrap().to_owned();
    let rows = server.json(&["workspace", "list", "--json"]);
    let row = &rows[1];
    assert_eq!(row["id"], id);
    assert_eq!((&row["name"], &row["dir"]), (&json!("shop"), &json!(dir)));
    assert_eq!(
        (&row["color"], &row["group"]),
        (&json!("teal"), &json!("work"))
    );
    let tab = server.cli_ok(&["tab", "create", "--workspace", "shop"]);
    let listed = server.json(&["tab", "list", "-w", "shop", "--json"]);
    assert_eq!(listed[0]["id"], tab.trim());
    assert_eq!(server.cli_ok(&["workspace", "rename", "shop", "store"]), "");
    assert_eq!(
        server.json(&["workspace", "rename", &id, "store 2", "--json"]),
        json!({ "ok": true })
    );

    let code = |arguments: &[&str]| server.cli(arguments).status.code();
    assert_eq!(
        code(&["workspace", "remove", "store 2"]),
        Some(1),
        "a tab lives in it"
    );
    assert_eq!(code(&["workspace", "remove", "nowhere"]), Some(1));
    assert_eq!(code(&["workspace", "rename", "shop", "x"]), Some(1));
    assert_eq!(
        code(&["workspace", "create", "x", "--color", "mauve"]),
        Some(2)
    );
    assert_eq!(code(&["workspace", "create"]), Some(2));
    assert_eq!(code(&["workspace", "create", "x", "--dir", ""]), Some(2));
    // Which of two is meant must be said.
    server.cli_ok(&["workspace", "create", "twin"]);
    let twin = server.cli_ok(&["workspace", "create", "twin"]);
    let refused = server.cli(&["workspace", "remove", "twin"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("several"), "{said}");
    server.cli_ok(&["workspace", "remove", twin.trim()]);
    server.cli_ok(&["workspace", "remove", "twin"]);
    server.cli_ok(&["workspace", "remove", "store 2", "--force"]);
    assert_eq!(
        server
            .json(&["workspace", "list", "--json"])
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let nobody = support::place();
    let alone = support::purplemux(nobody.path())
        .args(["workspace", "create", "x"])
        .output()
        .unwrap();
    assert_eq!(alone.status.code(), Some(3));
}

#[test]
fn settings_are_one_for_all_devices_and_outlive_the_server() {
    let server = TestServer::start();
    let (desk, phone) = (server.browser(), server.browser());
    let mut there = phone.status();
    there.until(|viewer| viewer.settings.is_some());
    assert_eq!(desk.get("/api/settings").json(), json!({}));
    let all = json!({ "theme": "dark", "keys": { "palette": "Alt+K" }, "of-tomorrow": [1, null] });
    assert_eq!(desk.write("PUT", "/api/settings", &all).status, 204);
    there.until(|viewer| json!(viewer.settings) == all);
    let some = json!({ "theme": "light", "of-tomorrow": null });
    assert_eq!(phone.write("PATCH", "/api/settings", &some).status, 204);
    let wanted = json!({ "theme": "light", "keys": { "palette": "Alt+K" } });
    there.until(|viewer| json!(viewer.settings) == wanted);
    refused(&desk, "PUT", "/api/settings", &json!([]), 400);
    refused(&desk, "PUT", "/api/settings", &json!("x"), 400);
    refused(
        &desk,
        "PATCH",
        "/api/settings",
        &json!({ "x": "y".repeat(64 * 1024) }),
        413,
    );
    assert_eq!(desk.get("/api/settings").json(), wanted);
    drop(there);
    let server = TestServer::start_in(server.end("-KILL"));
    assert_eq!(server.browser().get("/api/settings").json(), wanted);
}
