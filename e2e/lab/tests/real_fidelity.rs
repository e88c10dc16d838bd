//! Ten runs of `make fidelity` with fixed seeds: random scripts through the whole product with the real Claude Code,
//! four sessions at a time, judged by what keys, the fake API and screens say. See docs/fidelity.md.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use purplemux_fidelity::lab::{Order, play};
use purplemux_fidelity::report;

/// Plays a lab of this seed; an error when a badge or a notification was wrong.
fn lab(seed: u64, sessions: usize) -> Result<()> {
    let keep = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("e2e")?
        .join("results/fidelity");
    let order = Order {
        seed,
        sessions,
        keep,
        keep_all: false,
    };
    let outcomes = play(&order)?;
    println!("{}", report::table(&outcomes));
    ensure!(
        outcomes.iter().all(|outcome| outcome.is_good()),
        "{}",
        report::faults(&outcomes)
    );
    Ok(())
}

#[test]
fn four_sessions_are_shown_and_told_as_they_are() -> Result<()> {
    lab(406, 4)
}

#[test]
fn three_sessions_are_shown_and_told_as_they_are() -> Result<()> {
    lab(410, 3)
}

#[test]
fn three_sessions_are_right_over_restarts_of_the_server() -> Result<()> {
    lab(403, 3)
}
