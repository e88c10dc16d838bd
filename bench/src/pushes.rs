//! From the end of the dwell to the request at a push service: what purplemux itself adds to a notification. The
//! service takes what it is sent and reads none of it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use purplemux_wire::browser::State;
use serde_json::json;

use crate::crowd::Agent;
use crate::numbers::{Promise, head, ms, row};
use crate::server::Server;
use crate::viewer::{Login, Viewer, find};

/// How long a badge has to stand before anybody is told (rule 6).
const DWELL: Duration = Duration::from_millis(1_200);

const PATIENCE: Duration = Duration::from_secs(20);

/// A browser's public key and secret: those of the example in RFC 8291, section 5.
const P256DH: &str =
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";

/// Measures and prints; true if the promise was kept.
pub fn measure(dialogs: usize) -> anyhow::Result<bool> {
    let server = Server::start()?;
    let agent = Agent::new(server.home())?;
    let login = Login::new(&server)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let endpoint = format!("http://{}/device", listener.local_addr()?);
    let (came, requests) = channel();
    std::thread::spawn(move || take(&listener, &came));
    let subscription = json!({
        "endpoint": endpoint,
        "keys": { "p256dh": P256DH, "auth": AUTH },
        "choices": { "class": "desktop", "shows": "everything" },
    });
    let status = login.put("/api/push", &subscription)?;
    ensure!(status == 204, "the subscription was answered with {status}");
    let mut viewer = Viewer::open(&login)?;
    let mut took = Vec::new();
    for _ in 0..dialogs {
        agent.write("busy")?;
        viewer.until("busy", |items| state(items, &agent) == Some(State::Busy))?;
        let from = Instant::now();
        agent.write("waiting")?;
        took.push(ms(next(&requests)?.saturating_duration_since(from + DWELL)));
        agent.write("busy")?;
        // That it is over is a message too.
        next(&requests)?;
    }
    head();
    let promise = Promise {
        p95: Some(100.0),
        ..Promise::default()
    };
    Ok(row("M01 dwell over to push request", took, promise))
}

fn state(items: &[purplemux_wire::browser::Item], agent: &Agent) -> Option<State> {
    find(items, agent.pid())?.state
}

fn next(requests: &Receiver<Instant>) -> anyhow::Result<Instant> {
    requests.recv_timeout(PATIENCE).context("no push request")
}

/// Until the measurement's process ends.
fn take(listener: &TcpListener, came: &Sender<Instant>) {
    for stream in listener.incoming().flatten() {
        let came = came.clone();
        std::thread::spawn(move || {
            if let Err(why) = answer(stream, &came) {
                eprintln!("the push service of the bench: {why:#}");
            }
        });
    }
}

/// Says when each request of a connection began, and takes it.
fn answer(stream: TcpStream, came: &Sender<Instant>) -> anyhow::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        came.send(Instant::now())?;
        let mut length = 0;
        while !line.trim().is_empty() {
            line.clear();
            reader.read_line(&mut line)?;
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        reader.read_exact(&mut vec![0; length])?;
        stream.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n")?;
    }
}
