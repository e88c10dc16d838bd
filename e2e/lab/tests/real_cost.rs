//! What the product costs when nothing happens, and what a hook costs Claude. Reported always, and an error only
//! above five times the budget: the machine is shared, and a debug build is measured.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, in its helpers too, and starts what it tests"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use purplemux_lab::clock::until;
use purplemux_lab::product::{Lab, PATIENCE, TabKind};

/// A hook's own cost above a shell that does nothing.
const HOOK_MS: f64 = 3.0;

/// Ten idle tabs: share of one core, and resident memory.
const IDLE_PERCENT: f64 = 1.0;
const IDLE_MIB: f64 = 40.0;

/// How long an idle server is watched. Three heartbeats of its sockets, and many looks at /proc.
const WATCHED: Duration = Duration::from_secs(10);

#[test]
fn a_hook_costs_claude_next_to_nothing() {
    let lab = Lab::start("hook cost").unwrap();
    let script = lab.home().product().join("status-hook.sh");
    until(PATIENCE, || script.is_file().then_some(())).expect("the server writes its script");
    let payload = format!(
        r#"{{"session_id":"x","hook_event_name":"Stop","cwd":"/tmp","transcript_path":"/tmp/x","last_assistant_message":"{}"}}"#,
        "word ".repeat(120)
    );
    let time = |command: &mut Command| {
        let start = Instant::now();
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(payload.as_bytes())
            .ok();
        assert!(child.wait().unwrap().success());
        start.elapsed().as_secs_f64() * 1000.0
    };
    let shell = |arguments: &[&str]| {
        let mut command = Command::new("/bin/sh");
        command.env_clear().envs(lab.home().env()).args(arguments);
        command
    };
    let script = script.to_str().unwrap();
    let (mut hooks, mut nothings) = (Vec::new(), Vec::new());
    // Interleaved, so that both meet the same load.
    for _ in 0..100 {
        nothings.push(time(&mut shell(&["-c", ":"])));
        hooks.push(time(&mut shell(&["-c", &format!("'{script}' Stop")])));
    }
    hooks.sort_by(f64::total_cmp);
    nothings.sort_by(f64::total_cmp);
    let above = hooks[50] - nothings[50];
    lab.note_ms("a hook above `sh -c :`, median of 100", HOOK_MS, above);
    assert!(
        above <= 5.0 * HOOK_MS,
        "{above:.2} ms: {:.2} against {:.2}",
        hooks[50],
        nothings[50]
    );
}

#[test]
fn ten_idle_tabs_cost_nothing() {
    let lab = Lab::start("ten idle tabs").unwrap();
    let tabs: Vec<_> = (0..10)
        .map(|_| lab.tab(TabKind::Terminal).unwrap())
        .collect();
    for tab in &tabs {
        tab.shell_ready().unwrap();
    }
    let pid = lab.server_pid().unwrap();
    let before = ticks(pid);
    let children_before = children(pid);
    // Nothing may be started while nothing happens: looked for as long as the server is watched.
    let started = until(WATCHED, || {
        let now = children(pid);
        (!now.is_subset(&children_before)).then_some(now)
    });
    let used = ticks(pid) - before;
    // A tick is 10 ms on Linux, whatever the kernel counts in.
    let percent = used as f64 * 10.0 / WATCHED.as_millis() as f64 * 100.0;
    let mib = resident_kib(pid) as f64 / 1024.0;
    lab.note_ms("ten idle tabs, percent of a core", IDLE_PERCENT, percent);
    lab.note_ms("ten idle tabs, MiB resident", IDLE_MIB, mib);
    assert!(
        started.is_none(),
        "{started:?} were started beside {children_before:?}"
    );
    assert!(percent <= 5.0 * IDLE_PERCENT, "{percent:.2} % of a core");
    assert!(mib <= 5.0 * IDLE_MIB, "{mib:.0} MiB");
}

/// User and system time so far.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The processes that any thread of this one has started and that still live.
fn children(pid: u32) -> BTreeSet<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let all: Vec<String> = lists.collect();
    all.iter()
        .flat_map(|list| list.split_whitespace())
        .filter_map(|pid| pid.parse().ok())
        .collect()
}
