//! `yes` at full speed in a tab that two pages look at, one of which reads nothing for seconds on end: how soon Ctrl-C
//! ends it, whether the slow page goes on after each pause, what the server and its tmux hold meanwhile, and whether a
//! badge is later for it.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use purplemux_wire::browser::State;
use purplemux_wire::frame::{FromViewer, ToViewer};
use serde_json::Value;
use tokio_tungstenite::tungstenite::{Message, WebSocket};

use crate::crowd::Agent;
use crate::idle::Account;
use crate::numbers::{Promise, head, ms, row, single};
use crate::server::Server;
use crate::viewer::{Login, Viewer, find};

/// Longer than anything may take; then the measurement has failed.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the slow page reads nothing, and then reads.
const PAUSE: Duration = Duration::from_secs(3);
const READING: Duration = Duration::from_secs(1);
/// Floods after the long one, each ended by Ctrl-C.
const MORE: usize = 10;
const MORE_FOR: Duration = Duration::from_secs(2);
const EVERY: Duration = Duration::from_millis(100);
const PROMPT: &[u8] = b"ready> ";

/// One page's terminal, as bytes.
struct Terminal {
    socket: WebSocket<TcpStream>,
    /// The end of what was read.
    tail: Vec<u8>,
}

impl Terminal {
    fn open(login: &Login, tab: &str) -> anyhow::Result<Self> {
        let path = format!("/api/terminal?tab={tab}&cols=120&rows=40");
        Ok(Self {
            socket: login.socket(&path)?,
            tail: Vec::new(),
        })
    }

    fn send(&mut self, frame: &FromViewer) -> anyhow::Result<()> {
        self.socket.send(Message::binary(frame.encode()))?;
        Ok(())
    }

    fn keys(&mut self, keys: &str) -> anyhow::Result<()> {
        self.tail.clear();
        self.send(&FromViewer::Data(keys.as_bytes().to_vec()))
    }

    /// Takes in one frame and confirms it; how many bytes it had.
    fn read(&mut self) -> anyhow::Result<usize> {
        loop {
            let Message::Binary(frame) = self.socket.read()? else {
                continue;
            };
            let ToViewer::Data(bytes) = ToViewer::decode(&frame)? else {
                continue;
            };
            self.send(&FromViewer::Credit(u32::try_from(bytes.len())?))?;
            self.tail.extend(&bytes);
            let old = self.tail.len().saturating_sub(4096);
            self.tail.drain(..old);
            return Ok(bytes.len());
        }
    }

    fn shows(&self, text: &[u8]) -> bool {
        self.tail.windows(text.len()).any(|part| part == text)
    }

    fn until(&mut self, text: &[u8]) -> anyhow::Result<()> {
        let until = Instant::now() + PATIENCE;
        while !self.shows(text) {
            ensure!(
                Instant::now() < until,
                "never {}",
                String::from_utf8_lossy(text)
            );
            self.read()?;
        }
        Ok(())
    }

    fn read_until(&mut self, end: Instant) -> anyhow::Result<usize> {
        let mut bytes = 0;
        while Instant::now() < end {
            bytes += self.read()?;
        }
        Ok(bytes)
    }

    /// How long Ctrl-C takes to bring the prompt.
    fn interrupt(&mut self) -> anyhow::Result<f64> {
        let from = Instant::now();
        self.keys("\u{3}")?;
        self.until(PROMPT)?;
        Ok(ms(from.elapsed()))
    }
}

/// Measures and prints; true if the promises were kept.
pub fn measure(seconds: u64) -> anyhow::Result<bool> {
    let server = Server::start()?;
    let watched = Agent::new(server.home())?;
    let made: Value = serde_json::from_str(&server.tab()?)?;
    let tab = made["tab"].as_str().context("a tab")?;
    let login = Login::new(&server)?;
    let mut status = Viewer::open(&login)?;
    let mut page = Terminal::open(&login, tab)?;
    let mut slow = Terminal::open(&login, tab)?;
    page.keys("PS1='ready> '; clear\r")?;
    page.until(PROMPT)?;

    let before = Account::of(server.pid()?)?;
    let end = Instant::now() + Duration::from_secs(seconds);
    page.keys("yes\r")?;
    let (badges, most_kib, pauses) = thread::scope(|scope| -> anyhow::Result<_> {
        let badges = scope.spawn(|| badges(&server, &watched, &mut status, end));
        let pauses = scope.spawn(|| pauses(&mut slow, end));
        page.read_until(end)?;
        let (badges, most_kib) = badges.join().map_err(|_| anyhow!("the watcher died"))??;
        let pauses = pauses.join().map_err(|_| anyhow!("the slow page died"))??;
        Ok((badges, most_kib, pauses))
    })?;
    let mut interrupts = vec![page.interrupt()?];
    let from = Instant::now();
    slow.tail.clear();
    slow.until(PROMPT)?;
    let caught_up = ms(from.elapsed());
    for _ in 0..MORE {
        page.keys("yes\r")?;
        page.read_until(Instant::now() + MORE_FOR)?;
        interrupts.push(page.interrupt()?);
    }

    head();
    let at_most = |p95, max| Promise {
        p95,
        max,
        ..Promise::default()
    };
    let mut kept = row(
        "W09 Ctrl-C in a flood, to the prompt",
        interrupts,
        at_most(None, Some(300.0)),
    );
    kept &= row(
        "W09 badge written to frame, beside a flood",
        badges,
        at_most(Some(100.0), Some(300.0)),
    );
    kept &= row(
        "W09 the slow page, reading freely, to the prompt",
        vec![caught_up],
        at_most(None, Some(2000.0)),
    );
    let grown = f64::from(u32::try_from(most_kib.saturating_sub(before.rss_kib))?) / 1024.0;
    kept &= single("W09 the server has grown by", grown, 16.0, "MiB");
    println!("W09 the slow page went on after each of {pauses} pauses");
    kept &= pauses > 0;
    Ok(kept)
}

/// Reads nothing, then reads, until the end; how many pauses there were, each of which was followed by output.
fn pauses(slow: &mut Terminal, end: Instant) -> anyhow::Result<usize> {
    let mut pauses = 0;
    while Instant::now() + PAUSE + READING < end {
        thread::sleep(PAUSE);
        let until = Instant::now() + READING;
        // More than what was on its way already, so that the server has gone on.
        let bytes = slow.read_until(until)?;
        ensure!(bytes > 0, "no output after pause {pauses}");
        pauses += 1;
    }
    Ok(pauses)
}

/// From a status file to the frame, again and again until the end; and the most memory that the server had.
fn badges(
    server: &Server,
    watched: &Agent,
    status: &mut Viewer,
    end: Instant,
) -> anyhow::Result<(Vec<f64>, u64)> {
    let (mut late, mut most_kib) = (Vec::new(), 0);
    while Instant::now() < end {
        for (word, shown) in [("waiting", State::NeedsInput), ("busy", State::Busy)] {
            let from = Instant::now();
            watched.write(word)?;
            let at = status.until(word, |items| {
                find(items, watched.pid()).and_then(|item| item.state) == Some(shown)
            })?;
            late.push(ms(at - from));
            thread::sleep(EVERY);
        }
        most_kib = most_kib.max(Account::of(server.pid()?)?.rss_kib);
    }
    Ok((late, most_kib))
}
