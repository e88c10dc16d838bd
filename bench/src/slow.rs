//! One page that reads a kilobyte a second while fifty sessions change twenty times a second each: how soon it has
//! the truth once it reads freely again, what the server held for it, and whether another page noticed.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use purplemux_wire::browser::{Item, State};
use serde_json::Value;

use crate::crowd::Agent;
use crate::idle::Account;
use crate::numbers::{Promise, head, ms, row, single};
use crate::server::Server;
use crate::viewer::{Login, Viewer, find};

const SESSIONS: usize = 50;
const EVERY: Duration = Duration::from_millis(50);

/// Measures and prints; true if the promises were kept.
pub fn measure(seconds: u64) -> anyhow::Result<bool> {
    let server = Server::start()?;
    let mut agents = Vec::new();
    for _ in 0..SESSIONS {
        agents.push(Agent::new(server.home())?);
    }
    let watched = Agent::new(server.home())?;
    let login = Login::new(&server)?;
    let mut other = Viewer::open(&login)?;
    for agent in agents.iter().chain([&watched]) {
        agent.write("busy")?;
        other.until("busy", |items| state(items, agent) == Some(State::Busy))?;
    }
    let mut slow = Viewer::open(&login)?;

    let before = Account::of(server.pid()?)?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut late = Vec::new();
    let mut most_kib = before.rss_kib;
    thread::scope(|scope| -> anyhow::Result<()> {
        let writer = scope.spawn(|| change(&agents, end));
        let reader = scope.spawn(|| slow.read_slowly(end));
        while Instant::now() < end {
            for (status, shown) in [("waiting", State::NeedsInput), ("busy", State::Busy)] {
                let from = Instant::now();
                watched.write(status)?;
                let at = other.until(status, |items| state(items, &watched) == Some(shown))?;
                late.push(ms(at - from));
            }
            most_kib = most_kib.max(Account::of(server.pid()?)?.rss_kib);
        }
        writer.join().map_err(|_| anyhow!("the writer died"))??;
        reader.join().map_err(|_| anyhow!("the reader died"))?
    })?;

    let from = Instant::now();
    // A page whose link was closed for its slowness opens another.
    let stayed = catch_up(&mut slow, &server).is_ok();
    if !stayed {
        slow = Viewer::open(&login)?;
        catch_up(&mut slow, &server)?;
    }
    let caught_up = ms(from.elapsed());
    head();
    let mut kept = row(
        "L01 another page meanwhile, badge written to frame",
        late,
        Promise {
            p95: Some(100.0),
            max: Some(300.0),
            ..Promise::default()
        },
    );
    kept &= row(
        if stayed {
            "L01 the slow page, reading freely, to the truth"
        } else {
            "L01 the slow page, on a new link, to the truth"
        },
        vec![caught_up],
        Promise {
            max: Some(2000.0),
            ..Promise::default()
        },
    );
    let grown = (most_kib - before.rss_kib) as f64 / 1024.0;
    kept &= single("L01 memory that the server grew by", grown, 16.0, "MiB");
    Ok(kept)
}

fn state(items: &[Item], agent: &Agent) -> Option<State> {
    find(items, agent.pid())?.state
}

/// All of them, each at its pace, until `end`; then they wait.
fn change(agents: &[Agent], end: Instant) -> anyhow::Result<()> {
    let mut statuses = ["waiting", "busy"].iter().cycle();
    while Instant::now() < end {
        let round = Instant::now() + EVERY;
        let status = statuses.next().context("it goes on for ever")?;
        for agent in agents {
            agent.write(status)?;
        }
        thread::sleep(round.saturating_duration_since(Instant::now()));
    }
    agents.iter().try_for_each(|agent| agent.write("waiting"))
}

/// Reads until the page shows what the server says.
fn catch_up(page: &mut Viewer, server: &Server) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let said: Value = serde_json::from_str(&server.local("/api/items")?)?;
        let wanted: Vec<Item> = serde_json::from_value(said["items"].clone())?;
        let same = |items: &[Item]| {
            items.len() == wanted.len() && wanted.iter().all(|item| items.contains(item))
        };
        if same(&page.items) {
            return Ok(());
        }
        page.next()?;
        ensure!(Instant::now() < end, "it never says the same");
    }
}
