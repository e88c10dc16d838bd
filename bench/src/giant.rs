//! Transcripts whose newest turn lies behind megabytes of images: how soon it is found, what that costs in memory,
//! and whether another session has to wait for it.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::time::Instant;

use anyhow::Context as _;
use purplemux_wire::browser::State;
use serde_json::json;

use crate::crowd::Agent;
use crate::idle::Account;
use crate::numbers::{Promise, head, ms, row, single};
use crate::server::Server;
use crate::viewer::{Login, Viewer, find};

/// Images behind the end marker, and their size: together what is read back at most.
const IMAGES: usize = 10;
const IMAGE_BYTES: usize = 3_000_000;

/// Measures and prints; true if the promises were kept.
pub fn measure(runs: usize) -> anyhow::Result<bool> {
    let server = Server::start()?;
    let other = Agent::new(server.home())?;
    other.write("idle")?;
    let login = Login::new(&server)?;
    let mut viewer = Viewer::open(&login)?;
    let state = |viewer: &mut Viewer, agent: &Agent, state| {
        viewer.until("its badge", |items| {
            find(items, agent.pid()).is_some_and(|item| item.state == Some(state))
        })
    };
    state(&mut viewer, &other, State::Idle)?;
    let before = Account::of(server.pid()?)?.rss_kib;
    let (mut found, mut waited, mut most) = (Vec::new(), Vec::new(), before);
    for _ in 0..runs {
        let agent = Agent::new(server.home())?;
        write(&agent)?;
        let from = Instant::now();
        agent.write("busy")?;
        let at = viewer.until("its tokens", |items| {
            find(items, agent.pid()).is_some_and(|item| item.tokens.context.is_some())
        })?;
        found.push(ms(at - from));
        most = most.max(Account::of(server.pid()?)?.rss_kib);
        // And another one, while something happens to a session that has nothing to do with it.
        let agent = Agent::new(server.home())?;
        write(&agent)?;
        agent.write("busy")?;
        for (word, shown) in [("busy", State::Busy), ("idle", State::Idle)] {
            let from = Instant::now();
            other.write(word)?;
            let at = state(&mut viewer, &other, shown)?;
            waited.push(ms(at - from));
            most = most.max(Account::of(server.pid()?)?.rss_kib);
        }
    }
    head();
    let mut kept = row(
        "T05 newest turn found behind 30 MB of images",
        found,
        Promise {
            max: Some(1000.0),
            ..Promise::default()
        },
    );
    // An idle that nothing explains is waited for half a second (rule 4).
    kept &= row(
        "T05 another session's badge meanwhile",
        waited,
        Promise {
            max: Some(1000.0),
            ..Promise::default()
        },
    );
    let grown = most.saturating_sub(before) as f64 / 1024.0;
    kept &= single("T05 memory for it", grown, 40.0, "MiB");
    Ok(kept)
}

/// A turn, and then nothing but images.
fn write(agent: &Agent) -> anyhow::Result<()> {
    let path = agent.transcript();
    fs::create_dir_all(path.parent().context("a folder")?)?;
    let mut file = BufWriter::new(File::create(path)?);
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "look"}});
    let answer = json!({
        "type": "assistant",
        "message": {
            "model": "claude-opus-5-5", "content": [], "stop_reason": "end_turn",
            "usage": {"input_tokens": 9},
        },
    });
    writeln!(file, "{prompt}\n{answer}")?;
    let data = "A".repeat(IMAGE_BYTES);
    for number in 0..IMAGES {
        let image = json!({
            "type": "user",
            "message": {"content": [{
                "type": "tool_result", "tool_use_id": format!("t{number}"),
                "content": [{"type": "image", "source": {"data": data}}],
            }]},
        });
        writeln!(file, "{image}")?;
    }
    Ok(file.flush()?)
}
