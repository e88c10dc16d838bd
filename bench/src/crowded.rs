//! A start with much to read: two hundred living sessions, a thousand status files of dead ones, ten thousand
//! transcripts, and a journal of a hundred thousand records. How long until it listens, until every badge is
//! right, and until thirty pages that come back at once have been served.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use purplemux_lab::clock::until;
use purplemux_lab::product::PATIENCE;
use purplemux_wire::browser::{Item, State};
use serde_json::Value;

use crate::crowd::Agent;
use crate::numbers::{Promise, head, ms, row};
use crate::server::Server;
use crate::viewer::{Login, Viewer};

const SESSIONS: usize = 200;
const STALE: usize = 1000;
const TRANSCRIPTS: usize = 10_000;
const PAGES: usize = 30;

/// Measures and prints; true if the promises were kept.
pub fn measure(runs: usize) -> anyhow::Result<bool> {
    let mut server = Server::start()?;
    clutter(&server)?;
    let mut agents = Vec::new();
    for _ in 0..SESSIONS {
        agents.push(Agent::new(server.home())?);
    }
    let states = [
        ("idle", State::Idle),
        ("busy", State::Busy),
        ("waiting", State::NeedsInput),
    ];
    let mut listening = Vec::new();
    let mut right = Vec::new();
    let mut listed = Vec::new();
    let mut served = Vec::new();
    for run in 0..runs {
        // What the server knew is different from what is so when it comes back.
        server.stop()?;
        let mut wanted = Vec::new();
        for (number, agent) in agents.iter().enumerate() {
            let (status, state) = states[(number + run) % states.len()];
            if state == State::NeedsInput {
                // A dialog comes from work.
                agent.write("busy")?;
            }
            agent.write(status)?;
            wanted.push((agent.pid(), state));
        }
        let from = Instant::now();
        server.start_again()?;
        until_quick(|| server.health().ok()).context("purplemux serve does not answer")?;
        listening.push(ms(from.elapsed()));
        until_quick(|| all_right(&items(&server).ok()?, &wanted).then_some(()))
            .context("some badges are not right")?;
        right.push(ms(from.elapsed()));

        for _ in 0..20 {
            let from = Instant::now();
            items(&server)?;
            listed.push(ms(from.elapsed()));
        }
        let login = Login::new(&server)?;
        let from = Instant::now();
        thread::scope(|scope| -> anyhow::Result<()> {
            let pages: Vec<_> = (0..PAGES)
                .map(|_| {
                    scope.spawn(|| -> anyhow::Result<f64> {
                        let page = Viewer::open(&login)?;
                        let took = ms(from.elapsed());
                        all_right(&page.items, &wanted)
                            .then_some(took)
                            .context("a page was told something else")
                    })
                })
                .collect();
            for page in pages {
                served.push(page.join().map_err(|_| anyhow!("a page died"))??);
            }
            Ok(())
        })?;
    }
    let at_most = |max| Promise {
        max: Some(max),
        ..Promise::default()
    };
    head();
    let mut kept = row(
        "F03 start to first answer, 200 sessions",
        listening,
        at_most(500.0),
    );
    kept &= row("F03 start to 200 right badges", right, at_most(2000.0));
    kept &= row(
        "F03 list of 200 sessions over the API",
        listed,
        at_most(20.0),
    );
    kept &= row(
        "F03 30 pages at once, each to its snapshot",
        served,
        at_most(1000.0),
    );
    Ok(kept)
}

/// As `until`, without its pause: what is measured here is short.
fn until_quick<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        match look() {
            Some(found) => return Some(found),
            None if Instant::now() > end => return until(Duration::ZERO, look),
            None => thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn items(server: &Server) -> anyhow::Result<Vec<Item>> {
    let said: Value = serde_json::from_str(&server.local("/api/items")?)?;
    Ok(serde_json::from_value(said["items"].clone())?)
}

fn all_right(items: &[Item], wanted: &[(u32, State)]) -> bool {
    let shown: std::collections::HashMap<u32, State> = items
        .iter()
        .filter_map(|item| Some((item.pid?, item.state?)))
        .collect();
    wanted
        .iter()
        .all(|(pid, state)| shown.get(pid) == Some(state))
}

/// What gathers over months.
fn clutter(server: &Server) -> anyhow::Result<()> {
    let sessions = server.home().sessions();
    // Above every pid that this kernel gives out.
    for number in 0..STALE {
        let pid = 4_194_304 + number;
        let file =
            format!(r#"{{"pid":{pid},"procStart":"1","sessionId":"s-{number}","status":"busy"}}"#);
        fs::write(sessions.join(format!("{pid}.json")), file)?;
    }
    for number in 0..TRANSCRIPTS {
        let dir = server
            .home()
            .dir()
            .join(format!(".claude/projects/-p{}", number % 50));
        fs::create_dir_all(&dir)?;
        fs::write(
            dir.join(format!("{number:08}.jsonl")),
            "{\"type\":\"summary\",\"summary\":\"x\"}\n",
        )?;
    }
    Ok(())
}
