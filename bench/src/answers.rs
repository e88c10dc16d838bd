//! From a tap on a card to the key in the agent's pane, over the page's own socket: the look, the comparison and the
//! key. The dialog is drawn by a program of ours, which hands on every byte that it is sent.

use std::fs::{self, File};
use std::io::Read as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use purplemux_lab::clock::until;
use purplemux_wire::browser::{Answer, Ask, ClientMsg, State};
use serde_json::Value;

use crate::crowd::Agent;
use crate::numbers::{Promise, head, ms, row};
use crate::server::Server;
use crate::viewer::{Login, Viewer, find};

/// A dialog takes no key before it has stood for so long, whoever taps.
const STANDS: Duration = Duration::from_millis(900);

const PATIENCE: Duration = Duration::from_secs(20);

/// Columns of a tab that no terminal is attached to.
const COLS: usize = 120;

/// Measures and prints; true if the promise was kept.
pub fn measure(taps: usize) -> anyhow::Result<bool> {
    let server = Server::start()?;
    let made: Value = serde_json::from_str(&server.tab()?)?;
    let tab = made["tab"].as_str().context("a tab")?.to_owned();
    let dir = server.home().root().to_owned();
    let (screen, keys, pid) = (dir.join("screen"), dir.join("keys"), dir.join("pid"));
    fs::write(&screen, dialog().replace('\n', "\r\n"))?;
    let made = std::process::Command::new("mkfifo").arg(&keys).status()?;
    ensure!(made.success(), "mkfifo");
    let run = format!(
        "stty raw -echo; clear; cat '{}'; echo $$ > '{}'; exec cat > '{}'",
        screen.display(),
        pid.display(),
        keys.display()
    );
    server.run(&["tab", "send", &tab, &run])?;
    let mut keys = File::options().read(true).open(&keys)?;
    let pid: u32 = until(PATIENCE, || {
        fs::read_to_string(&pid).ok()?.trim().parse().ok()
    })
    .context("the program does not start")?;
    let agent = Agent::of(server.home(), pid)?;
    let login = Login::new(&server)?;
    let mut viewer = Viewer::open(&login)?;
    let mut took = Vec::new();
    for number in 0..taps {
        agent.write("busy")?;
        viewer.until("busy", |items| {
            find(items, pid).is_some_and(|item| item.state == Some(State::Busy))
        })?;
        agent.write("waiting")?;
        viewer.until("a card", |items| asked(items, pid).is_some())?;
        let (ask, reading) = asked(&viewer.items, pid).context("a card")?;
        until::<()>(STANDS, || None);
        let from = Instant::now();
        viewer.say(&ClientMsg::Answer {
            request: u64::try_from(number)?,
            item: tab.clone(),
            ask,
            reading,
            answer: Answer::Choose { option: 1 },
        })?;
        let mut key = [0];
        keys.read_exact(&mut key)?;
        took.push(ms(from.elapsed()));
        ensure!(key == *b"2", "another key: {key:?}");
    }
    head();
    let promise = Promise {
        p95: Some(100.0),
        ..Promise::default()
    };
    Ok(row("A01 tap to key", took, promise))
}

fn asked(items: &[purplemux_wire::browser::Item], pid: u32) -> Option<(u64, String)> {
    let ask: &Ask = find(items, pid)?.detail.ask.as_ref()?;
    let card = ask.card.as_ref().filter(|card| !card.options.is_empty())?;
    Some((ask.id, card.reading.clone()))
}

fn dialog() -> String {
    let rule = |of: &str| of.repeat(COLS);
    format!(
        "{}\n Bash command\n\n Run a command\n{frame}\n touch a.txt\n{frame}\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel · Tab to amend",
        rule("─"),
        frame = rule("╌")
    )
}
