//! From the start of the program to its first answer, in a home that exists.

use std::time::Instant;

use anyhow::Context as _;
use purplemux_lab::clock::until;
use purplemux_lab::product::PATIENCE;

use crate::numbers::{Promise, head, ms, row};
use crate::server::Server;

/// Measures and prints; true if the promise was kept.
pub fn measure(runs: usize) -> anyhow::Result<bool> {
    let mut server = Server::start()?;
    let mut took = Vec::new();
    for _ in 0..runs {
        server.stop()?;
        let from = Instant::now();
        server.start_again()?;
        until(PATIENCE, || server.health().ok()).context("purplemux serve does not answer")?;
        took.push(ms(from.elapsed()));
    }
    head();
    Ok(row(
        "start to first answer",
        took,
        Promise {
            max: Some(300.0),
            ..Promise::default()
        },
    ))
}
