//! From what happened to the frame that a page is sent, on loopback, with fifty tabs that hold an agent each: a
//! hook that is posted, a status file that is written, a transcript that grows, a process that dies.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use purplemux_lab::clock::until;
use purplemux_wire::browser::{Presence, State};
use serde_json::json;

use crate::crowd::{self, Agent};
use crate::numbers::{Promise, head, ms, row};
use crate::server::Server;
use crate::viewer::{Login, Viewer, find};

/// As the original was measured.
const TABS: usize = 50;

/// Between two events, so that each is alone: the promise is about one, not about a storm.
const APART: Duration = Duration::from_millis(3);

/// Measures and prints; true if the promises were kept.
pub fn measure(events: usize) -> anyhow::Result<bool> {
    let server = Server::start()?;
    let agents = crowd::in_tabs(&server, TABS)?;
    let login = Login::new(&server)?;
    let mut viewer = Viewer::open(&login)?;
    for agent in &agents {
        agent.write("busy")?;
        viewer.until("busy", |items| state(items, agent) == Some(State::Busy))?;
    }
    let promise = Promise {
        median: Some(0.5),
        p99: Some(2.0),
        ..Promise::default()
    };
    let page = Promise {
        p95: Some(100.0),
        max: Some(300.0),
        ..Promise::default()
    };
    head();
    let socket = server.socket();
    let by_socket = || UnixStream::connect(&socket).context("connect");
    let mut kept = row(
        "F01 hook posted by our command to frame, 50 tabs",
        hooks(&server, &agents, &mut viewer, events, "socket", by_socket)?,
        promise,
    );
    let authority = format!("127.0.0.1:{}", server.port()?);
    let by_tcp = || {
        let stream = TcpStream::connect(&authority).context("connect")?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    kept &= row(
        "F01 hook posted over TCP to frame, 50 tabs",
        hooks(&server, &agents, &mut viewer, events, "tcp", by_tcp)?,
        promise,
    );
    kept &= row(
        "F01 status file written to frame, 50 tabs",
        files(&agents, &mut viewer, events)?,
        page,
    );
    kept &= row(
        "F01 transcript grown to frame, 50 tabs",
        transcripts(&server, &agents, &mut viewer, events)?,
        page,
    );
    kept &= row(
        "F01 process dead to frame, 50 tabs",
        deaths(&server, &mut viewer, events)?,
        page,
    );
    Ok(kept)
}

fn state(items: &[purplemux_wire::browser::Item], agent: &Agent) -> Option<State> {
    find(items, agent.pid())?.state
}

fn apart() {
    until::<()>(APART, || None);
}

/// Each hook over a connection of its own, as the hook program makes one; connecting is part of the time.
fn hooks<S: Read + Write>(
    server: &Server,
    agents: &[Agent],
    viewer: &mut Viewer,
    events: usize,
    kind: &str,
    connect: impl Fn() -> anyhow::Result<S>,
) -> anyhow::Result<Vec<f64>> {
    let token = server.token()?;
    let authority = format!("127.0.0.1:{}", server.port()?);
    let mut took = Vec::new();
    let steps = ["PreToolUse", "PostToolUse"];
    let all = agents
        .iter()
        .cycle()
        .flat_map(|agent| steps.map(|step| (agent, step)));
    for (number, (agent, event)) in all.take(events).enumerate() {
        let command = format!("make {kind}-{}", number / 2);
        let tool = json!({ "tool_name": "Bash", "tool_use_id": format!("toolu_{kind}_{}", number / 2),
            "tool_input": { "command": command } });
        let request = agent.hook(
            &authority,
            &token,
            event,
            &format!("{kind}-{number}"),
            &tool,
        )?;
        let runs = event == "PreToolUse";
        let from = Instant::now();
        let mut stream = connect()?;
        stream.write_all(&request)?;
        let at = viewer.until(event, |items| {
            let arg = find(items, agent.pid()).and_then(|item| item.detail.arg.as_deref());
            (arg == Some(&command)) == runs
        })?;
        took.push(ms(at - from));
        ensure!(crowd::status(&mut stream)? == 204, "a hook was refused");
        apart();
    }
    Ok(took)
}

/// A dialog that opens, and its end.
fn files(agents: &[Agent], viewer: &mut Viewer, events: usize) -> anyhow::Result<Vec<f64>> {
    let mut took = Vec::new();
    let steps = [("waiting", State::NeedsInput), ("busy", State::Busy)];
    let all = agents
        .iter()
        .cycle()
        .flat_map(|agent| steps.map(|step| (agent, step)));
    for (agent, (status, shown)) in all.take(events) {
        let from = Instant::now();
        agent.write(status)?;
        let at = viewer.until(status, |items| state(items, agent) == Some(shown))?;
        took.push(ms(at - from));
        apart();
    }
    Ok(took)
}

/// An answer with a new count of tokens.
fn transcripts(
    server: &Server,
    agents: &[Agent],
    viewer: &mut Viewer,
    events: usize,
) -> anyhow::Result<Vec<f64>> {
    let token = server.token()?;
    for agent in agents {
        let path = agent.transcript();
        fs::create_dir_all(path.parent().context("a folder")?)?;
        fs::write(&path, "")?;
        let prompt = json!({ "prompt": "go on", "transcript_path": path });
        let id = format!("prompt-{}", agent.pid());
        let request = agent.hook("localhost", &token, "UserPromptSubmit", &id, &prompt)?;
        ensure!(
            crowd::post(&server.socket(), &request)? == 204,
            "a hook was refused"
        );
    }
    let mut took = Vec::new();
    for (number, agent) in (0..events).zip(agents.iter().cycle()) {
        let tokens = 1000 + number as u64;
        let line = json!({
            "type": "assistant", "isSidechain": false, "uuid": format!("u-{number}"),
            "timestamp": "2026-11-30T08:59:22.600Z",
            "message": { "role": "assistant", "model": "claude-opus-5-5", "stop_reason": "tool_use",
                "content": [{ "type": "text", "text": "on it" }],
                "usage": { "input_tokens": tokens, "output_tokens": 1 } },
        });
        let mut file = OpenOptions::new().append(true).open(agent.transcript())?;
        let line = format!("{line}\n");
        let before = find(&viewer.items, agent.pid()).and_then(|item| item.tokens.context);
        let from = Instant::now();
        file.write_all(line.as_bytes())?;
        drop(file);
        let at = viewer.until("the tokens", |items| {
            find(items, agent.pid()).is_some_and(|item| item.tokens.context != before)
        })?;
        took.push(ms(at - from));
        apart();
    }
    Ok(took)
}

/// Outside the tabs: each is started for its end.
fn deaths(server: &Server, viewer: &mut Viewer, events: usize) -> anyhow::Result<Vec<f64>> {
    let mut took = Vec::new();
    for _ in 0..events {
        let mut agent = Agent::new(server.home())?;
        agent.write("idle")?;
        viewer.until("there", |items| state(items, &agent) == Some(State::Idle))?;
        let from = Instant::now();
        agent.kill()?;
        let at = viewer.until("gone", |items| {
            find(items, agent.pid()).is_none_or(|item| item.presence == Presence::Gone)
        })?;
        took.push(ms(at - from));
        fs::remove_file(
            server
                .home()
                .sessions()
                .join(format!("{}.json", agent.pid())),
        )?;
    }
    Ok(took)
}
