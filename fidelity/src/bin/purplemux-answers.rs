//! The command behind `make answers`: plays rounds, prints the table, and fails when one went wrong.
//!
//! Must never judge anything itself.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use purplemux_fidelity::answers::{play, table};

#[derive(Parser)]
struct Args {
    /// How many rounds; half of the answers are late or doubled.
    #[arg(long, default_value_t = 200)]
    count: usize,
    /// Plays the same answers again; the moments are Claude's too.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let rounds = play(args.seed, args.count, |round| {
        for wrong in &round.wrong {
            println!("round {}: {wrong}\n  {:?}", round.number, round);
        }
    })?;
    println!("{}", table(&rounds));
    let wrong = rounds
        .iter()
        .filter(|round| !round.wrong.is_empty())
        .count();
    println!("{} rounds, {wrong} wrong", rounds.len());
    Ok(if wrong == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
