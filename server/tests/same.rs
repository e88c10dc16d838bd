//! One truth in every place: what ten recorded sessions said is said again, step by step, by ten programs called claude
//! in ten tabs of two workspaces, and after every step socket, HTTP API and command line are compared.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it is wrong"
)]

mod support;

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::Path;
use std::time::Instant;

use purplemux_wire::browser::{Item, Presence, State, Workspace};
use serde::Deserialize;
use serde_json::{Value, json};
use support::standin::now_ms;
use support::{Browser, PATIENCE, TestServer, Viewer};

const CHOSEN: [&str; 10] = [
    "s02_simple",
    "s03_bash_approve",
    "s04_deny",
    "s06c_esc_running_tool",
    "s07_ask",
    "s08_plan",
    "s09d_bg_bash",
    "s12a_errors",
    "s14_queue",
    "s28_parallel_perms",
];

/// What `GET /api/items` says.
#[derive(Debug, PartialEq, Deserialize)]
struct Level {
    rev: u64,
    items: Vec<Item>,
    workspaces: Vec<Workspace>,
}

enum Step {
    File(Value),
    Hook(Value),
}

/// What the recorded Claude wrote and what its hooks said, in its order of time.
fn steps(recording: &str) -> VecDeque<Step> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/recordings");
    let lines = |file: &str| -> Vec<Value> {
        let text = fs::read_to_string(root.join(recording).join(file)).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let files = lines("sessions.jsonl");
    let pid = |line: &Value| line["value"]["pid"].as_u64();
    let first = files.iter().find_map(pid).unwrap();
    let files = files.into_iter().filter(|line| pid(line) == Some(first));
    let mut all: Vec<(u64, Step)> = files
        .map(|line| {
            (
                line["ts"].as_u64().unwrap(),
                Step::File(line["value"].clone()),
            )
        })
        .collect();
    let hooks = lines("hooks.jsonl").into_iter();
    all.extend(hooks.map(|line| {
        (
            line["ts"].as_u64().unwrap(),
            Step::Hook(line["input"].clone()),
        )
    }));
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, step)| step).collect()
}

struct Player {
    tab: String,
    pid: u32,
    start: String,
    left: VecDeque<Step>,
}

impl Player {
    fn new(browser: &Browser<'_>, viewer: &mut Viewer, workspace: &str, recording: &str) -> Self {
        let program = browser.server.dir.path().join("claude");
        if !program.exists() {
            fs::copy("/bin/sleep", &program).unwrap();
        }
        let body = json!({ "workspace": workspace });
        let tab = browser.write("POST", "/api/tabs", &body).json()["tab"].clone();
        let tab = tab.as_str().unwrap().to_owned();
        let text = json!({ "text": format!("exec {} 900", program.display()), "enter": true });
        let sent = browser.write("POST", &format!("/api/tabs/{tab}/send"), &text);
        assert_eq!(sent.status, 204, "{}", sent.text());
        let found = |viewer: &Viewer| {
            let mut items = viewer.items.iter();
            items.find(|item| item.id == tab).and_then(|item| item.pid)
        };
        viewer.until(|viewer| found(viewer).is_some());
        let pid = found(viewer).unwrap();
        let start = support::standin::start_of(pid);
        Self {
            start,
            left: steps(recording),
            tab,
            pid,
        }
    }

    /// Says the next thing.
    fn play(&mut self, server: &TestServer) {
        match self.left.pop_front().unwrap() {
            Step::File(mut file) => {
                let now = now_ms();
                file["pid"] = json!(self.pid);
                file["procStart"] = json!(self.start);
                for at in ["startedAt", "updatedAt", "statusUpdatedAt"] {
                    if file.get(at).is_some() {
                        file[at] = json!(now);
                    }
                }
                let sessions = server.dir.path().join("person/.claude/sessions");
                fs::create_dir_all(&sessions).unwrap();
                fs::write(
                    sessions.join(format!("{}.json", self.pid)),
                    file.to_string(),
                )
                .unwrap();
            }
            Step::Hook(mut hook) => {
                let event = hook["hook_event_name"].as_str().unwrap().to_owned();
                hook["transcript_path"] = Value::Null;
                let headers = [
                    ("x-pmux-token", server.token()),
                    ("x-pmux-event", event),
                    ("x-pmux-pid", self.pid.to_string()),
                    ("x-pmux-start", self.start.clone()),
                    ("x-pmux-id", format!("{}-{}", self.pid, self.left.len())),
                ];
                let headers: Vec<(&str, &str)> = headers
                    .iter()
                    .map(|(name, value)| (*name, value.as_str()))
                    .collect();
                let body = hook.to_string();
                let posted = server.local("POST", "/api/status/hook", &headers, body.as_bytes());
                assert_eq!(posted.status, 204, "{}", posted.text());
            }
        }
    }
}

fn level(server: &TestServer) -> Level {
    serde_json::from_slice(&server.local("GET", "/api/items", &[], b"").body).unwrap()
}

/// Rule 7: the place of a row among those of its workspace.
fn urgency(item: &Item) -> u8 {
    match item.state {
        None => 0,
        Some(_) if item.presence == Presence::Suspended => 1,
        Some(State::Idle) => 1,
        Some(State::Unknown) => 2,
        Some(State::Busy) => 3,
        Some(State::Review) if item.detail.outcome.as_deref() != Some("failed") => 4,
        Some(State::Review) => 5,
        Some(State::NeedsInput) => 6,
    }
}

/// Compares every place with every other. False: something changed while it was looked at.
fn agree(browser: &Browser<'_>, viewer: &mut Viewer, tab: &str, closely: bool) -> bool {
    let server = browser.server;
    let first = level(server);
    let cli: Vec<Item> = serde_json::from_value(server.json(&["status", "--json"])).unwrap();
    // A command costs a process: those about one row are run at every fourth step.
    let one = closely.then(|| {
        let item: Item =
            serde_json::from_value(server.json(&["tab", "status", tab, "--json"])).unwrap();
        (item, server.json(&["explain", tab, "--json"]))
    });
    let tabs: Vec<Item> =
        serde_json::from_slice(&server.local("GET", "/api/tabs", &[], b"").body).unwrap();
    let anew = browser.status();
    if level(server) != first {
        return false;
    }
    // A viewer that was told differences all along has the same as one that has just come.
    viewer.until(|viewer| {
        viewer.workspaces == first.workspaces && sorted(&viewer.items) == sorted(&first.items)
    });
    assert_eq!(anew.items, first.items);
    assert_eq!(anew.workspaces, first.workspaces);
    assert_eq!(cli, first.items);
    assert_eq!(tabs, first.items, "all of them are tabs");
    let own = first.items.iter().find(|item| item.id == tab).unwrap();
    if let Some((one, why)) = one {
        assert_eq!(&one, own);
        assert_eq!(why["state"], serde_json::to_value(own.state).unwrap());
    }
    for workspace in &first.workspaces {
        let inside = || {
            first
                .items
                .iter()
                .filter(|item| workspace.tabs.contains(&item.id))
        };
        let most = inside().max_by_key(|item| urgency(item)).unwrap();
        let same =
            inside().find(|item| urgency(item) == urgency(most) && item.state == workspace.state);
        assert!(same.is_some(), "{workspace:?} of {most:?}");
        assert_eq!(workspace.failed, urgency(most) == 5, "{workspace:?}");
        assert!(inside().all(|item| item.workspace.as_deref() == Some(&*workspace.id)));
    }
    for item in &first.items {
        let calls = matches!(item.state, Some(State::NeedsInput | State::Review));
        assert_eq!(item.attention, calls, "{item:?}");
    }
    true
}

fn sorted(items: &[Item]) -> Vec<&Item> {
    let mut items: Vec<&Item> = items.iter().collect();
    items.sort_by(|a, b| a.id.cmp(&b.id));
    items
}

#[test]
fn l07_socket_http_api_and_command_line_say_the_same_at_every_step() {
    let server = TestServer::start();
    let browser = server.browser();
    let mut viewer = browser.status();
    let home = viewer.workspaces[0].id.clone();
    let made = browser
        .write("POST", "/api/workspaces", &json!({ "name": "other" }))
        .json();
    let spaces = [home, made["workspace"].as_str().unwrap().to_owned()];
    let mut players: Vec<Player> = CHOSEN
        .iter()
        .enumerate()
        .map(|(at, recording)| Player::new(&browser, &mut viewer, &spaces[at % 2], recording))
        .collect();
    let mut seen = BTreeSet::new();
    let mut played = 0;
    // One word of each in turn, so that every mixture comes up.
    while players.iter().any(|player| !player.left.is_empty()) {
        for player in players.iter_mut().filter(|player| !player.left.is_empty()) {
            player.play(&server);
            played += 1;
            let until = Instant::now() + PATIENCE;
            while !agree(&browser, &mut viewer, &player.tab, played % 4 == 0) {
                assert!(Instant::now() < until, "it never rests after step {played}");
            }
            seen.extend(viewer.items.iter().map(urgency));
        }
    }
    assert!(played > 150, "{played} steps");
    // Idle, busy, review, failed and needs-input have all come up.
    assert!(BTreeSet::from([1, 3, 4, 5, 6]).is_subset(&seen), "{seen:?}");
}
