//! What a hook costs Claude Code: the whole process that our settings name, started as Claude starts it, against
//! `sh -c :` started in turn with it.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use purplemux_lab::home::Home;
use rustix::process::Signal;

use crate::numbers::{Promise, head, ms, row};
use crate::server::Server;

/// As large as an ordinary payload of Claude's (measured, 2.1.332: 500 to 900 bytes).
const PAYLOAD: &str = r#"{"session_id":"00000000-0000-4000-8000-000000000000","transcript_path":"/nowhere/00000000.jsonl","cwd":"/tmp","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"cargo test --workspace --locked","description":"Run the whole test suite of the workspace and look at what fails"},"tool_use_id":"toolu_000000000000000000000000"}"#;

/// The burst.
const AT_ONCE: usize = 16;

/// Measures and prints; true if the promises were kept.
pub fn measure(calls: usize) -> anyhow::Result<bool> {
    let mut server = Server::start()?;
    let hook = format!(
        "'{}' PreToolUse",
        server.home().product().join("status-hook.sh").display()
    );
    let bare = time(server.home(), ":")?;
    ensure!(bare < 1000.0, "a shell takes {bare} ms here");

    head();
    let mut kept = true;
    let over = |limits: Promise, name: &str, home: &Home, hook: &str| -> anyhow::Result<bool> {
        let mut differences = Vec::new();
        for _ in 0..calls {
            let shell = time(home, ":")?;
            differences.push(time(home, hook)? - shell);
        }
        Ok(row(name, differences, limits))
    };
    let promise = Promise {
        median: Some(3.0),
        p95: Some(6.0),
        ..Promise::default()
    };
    kept &= over(
        promise,
        "K01 hook over `sh -c :`, server up",
        server.home(),
        &hook,
    )?;

    let from = Instant::now();
    let mut burst = Vec::new();
    for _ in 0..AT_ONCE {
        burst.push(start(server.home(), &hook)?);
    }
    let mut last = Vec::new();
    for mut child in burst {
        ensure!(child.wait()?.success(), "a hook failed");
        last.push(ms(from.elapsed()));
    }
    let promise = Promise {
        max: Some(60.0),
        ..Promise::default()
    };
    kept &= row(
        "K01 16 hooks at once, each from the first start",
        last,
        promise,
    );

    let promise = Promise {
        max: Some(50.0),
        ..Promise::default()
    };
    server.signal(Signal::STOP)?;
    kept &= over(
        promise,
        "K01 hook over `sh -c :`, server hung",
        server.home(),
        &hook,
    )?;
    server.signal(Signal::CONT)?;
    server.stop()?;
    kept &= over(
        promise,
        "K01 hook over `sh -c :`, server gone",
        server.home(),
        &hook,
    )?;
    Ok(kept)
}

fn start(home: &Home, line: &str) -> anyhow::Result<Child> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", line])
        .env_clear()
        .envs(home.env())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("start a shell")?;
    let mut input = child.stdin.take().context("its input is piped")?;
    // `sh -c :` reads nothing and may have ended.
    input.write_all(PAYLOAD.as_bytes()).ok();
    Ok(child)
}

/// Milliseconds from start to end.
fn time(home: &Home, line: &str) -> anyhow::Result<f64> {
    let from = Instant::now();
    let mut child = start(home, line)?;
    ensure!(child.wait()?.success(), "{line} failed");
    Ok(ms(from.elapsed()))
}
