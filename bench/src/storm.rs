//! Fifty sessions that fire twenty hooks a second each: whether one is lost, what it costs, and how late the
//! badges are meanwhile.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use purplemux_wire::browser::State;
use serde_json::{Value, json};

use crate::crowd::{self, Agent};
use crate::idle::Account;
use crate::numbers::{Promise, head, ms, row, single};
use crate::server::Server;
use crate::viewer::{Login, Viewer, find};

const SESSIONS: usize = 50;
const EACH_SECOND: u32 = 20;
/// Who posts them; each is a thread that serves some of the sessions in turn.
const POSTERS: usize = 10;

/// Measures and prints; true if the promises were kept.
pub fn measure(seconds: u32) -> anyhow::Result<bool> {
    let server = Server::start()?;
    let agents = crowd::in_tabs(&server, SESSIONS)?;
    let login = Login::new(&server)?;
    let mut viewer = Viewer::open(&login)?;
    // Whose badge changes while all the others fire.
    let watched = Agent::new(server.home())?;
    for agent in agents.iter().chain([&watched]) {
        agent.write("busy")?;
        viewer.until("busy", |items| {
            find(items, agent.pid()).is_some_and(|item| item.state == Some(State::Busy))
        })?;
    }
    let token = server.token()?;
    let socket = server.socket();
    let hooks = seconds * EACH_SECOND;

    let before = Account::of(server.pid()?)?;
    let from = Instant::now();
    let end = from + Duration::from_secs(u64::from(seconds));
    let mut late = Vec::new();
    let mut answers = Vec::new();
    thread::scope(|scope| -> anyhow::Result<()> {
        let posters: Vec<_> = agents
            .chunks(SESSIONS.div_ceil(POSTERS))
            .map(|agents| scope.spawn(|| fire(agents, &token, &socket, hooks, from)))
            .collect();
        while Instant::now() < end {
            for (status, shown) in [("waiting", State::NeedsInput), ("busy", State::Busy)] {
                let from = Instant::now();
                watched.write(status)?;
                let at = viewer.until(status, |items| {
                    find(items, watched.pid()).is_some_and(|item| item.state == Some(shown))
                })?;
                late.push(ms(at - from));
                // What else comes meanwhile is taken in as a page would.
                let pause = Instant::now() + Duration::from_millis(100);
                while Instant::now() < pause && Instant::now() < end {
                    viewer.next()?;
                }
            }
        }
        for poster in posters {
            answers.extend(poster.join().map_err(|_| anyhow!("a poster died"))??);
        }
        Ok(())
    })?;
    let took = from.elapsed().as_secs_f64();
    let after = Account::of(server.pid()?)?;

    head();
    let mut kept = row(
        "F06 badge written to frame, in the storm",
        late,
        Promise {
            p95: Some(100.0),
            max: Some(300.0),
            ..Promise::default()
        },
    );
    kept &= row(
        "F06 hook posted to its answer, in the storm",
        answers,
        Promise::default(),
    );
    let busy = after.cpu_seconds_since(&before) / took * 100.0;
    kept &= single(
        "F06 processor, 50 sessions at 20 hooks a second",
        busy,
        50.0,
        "% of a core",
    );
    single_memory(&after);
    let lost = lost(&server, &agents, hooks)?;
    println!(
        "{:<50} {:>9} of {}  promise: none{}",
        "F06 hooks lost",
        lost,
        hooks as usize * SESSIONS,
        if lost == 0 { "" } else { " BROKEN" }
    );
    Ok(kept && lost == 0)
}

fn single_memory(after: &Account) {
    println!(
        "{:<50} {:>9.2} MiB",
        "F06 memory afterwards",
        after.rss_kib as f64 / 1024.0
    );
}

/// Fires the hooks of some sessions at their pace; how long each took to be answered, in milliseconds.
fn fire(
    agents: &[Agent],
    token: &str,
    socket: &PathBuf,
    hooks: u32,
    from: Instant,
) -> anyhow::Result<Vec<f64>> {
    let mut took = Vec::new();
    for number in 0..hooks {
        for (place, agent) in agents.iter().enumerate() {
            let due = f64::from(number) / f64::from(EACH_SECOND)
                + place as f64 / (agents.len() as f64 * f64::from(EACH_SECOND));
            let due = from + Duration::from_secs_f64(due);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let event = if number % 2 == 0 {
                "PreToolUse"
            } else {
                "PostToolUse"
            };
            let tool = json!({ "tool_name": "Bash", "tool_use_id": format!("toolu_{}", number / 2),
                "tool_input": { "command": format!("make step-{}", number / 2), "description": "Builds the next part and looks at what fails in it" },
                "cwd": "/tmp", "permission_mode": "default" });
            let id = format!("{}-{number}", agent.pid());
            let request = agent.hook("localhost", token, event, &id, &tool)?;
            let posted = Instant::now();
            let status = crowd::post(socket, &request)?;
            ensure!(status == 204, "a hook was answered with {status}");
            took.push(ms(posted.elapsed()));
        }
    }
    Ok(took)
}

/// Hooks that were answered with 204 and are not in the journal.
fn lost(server: &Server, agents: &[Agent], hooks: u32) -> anyhow::Result<usize> {
    let mut lost = 0;
    for agent in agents {
        let path = format!("/api/journal?item={}", agent.key());
        // The journal is written some hundred milliseconds behind.
        let found = purplemux_lab::clock::until(Duration::from_secs(5), || {
            let found = hooks_in_journal(server, &path).ok()?;
            (found >= hooks as usize).then_some(found)
        });
        let found = match found {
            Some(found) => found,
            None => hooks_in_journal(server, &path)?,
        };
        lost += (hooks as usize).saturating_sub(found);
    }
    Ok(lost)
}

fn hooks_in_journal(server: &Server, path: &str) -> anyhow::Result<usize> {
    let said = server.local(path)?;
    let said: Value = serde_json::from_str(&said)?;
    let records = said["records"].as_array().context("records")?;
    let hooks = records.iter().filter_map(Value::as_str);
    Ok(hooks.filter(|record| record.contains("hook_fired")).count())
}
