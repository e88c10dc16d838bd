//! The command behind `make fidelity`: plays labs, prints the table, and fails when a run did.
//!
//! Must never judge anything itself.

#![allow(
    clippy::disallowed_methods,
    reason = "it asks tmux for its version, once"
)]

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;
use purplemux_fidelity::lab::{Order, Outcome, play, story};
use purplemux_fidelity::report;
use purplemux_fidelity::script::{draw, words};
use purplemux_lab::home::CLAUDE_VERSION;

#[derive(Parser)]
struct Args {
    /// How many runs (sessions), in labs of `--sessions` each.
    #[arg(long, default_value_t = 200)]
    runs: usize,
    /// The first lab's seed; the next one's is larger by one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Sessions at a time.
    #[arg(long, default_value_t = 4)]
    sessions: usize,
    /// Where failed runs are kept.
    #[arg(long, default_value = "target/fidelity")]
    keep: PathBuf,
    /// Keep the good ones too.
    #[arg(long)]
    keep_all: bool,
    /// Print the scripts instead of playing them.
    #[arg(long)]
    script: bool,
    /// Judge kept runs again instead of playing.
    #[arg(long)]
    judge: Vec<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if args.script {
        let labs = args.runs.div_ceil(args.sessions.max(1));
        for seed in (args.seed..).take(labs) {
            for session in 0..args.sessions {
                println!("seed {seed} session {session}");
                for word in words(seed, &draw(seed, session)) {
                    println!("  {word}");
                }
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let outcomes = if args.judge.is_empty() {
        all(&args)?
    } else {
        again(&args.judge)?
    };
    println!("{}\n", head(&args));
    println!("{}", report::table(&outcomes));
    print!("{}", report::faults(&outcomes));
    let good = outcomes.iter().all(Outcome::is_good);
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// When, what, and on which machine: what the numbers below it mean.
fn head(args: &Args) -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.map(|line| line[name.len()..].trim().trim_matches('"').to_owned());
        value.unwrap_or_else(|| "?".to_owned())
    };
    let memory = field(&read("/proc/meminfo"), "MemTotal:");
    let kib: u64 = memory.trim_end_matches(" kB").parse().unwrap_or(0);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = read("/proc/loadavg");
    let tmux = std::process::Command::new("tmux").arg("-V").output();
    let tmux = tmux.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    format!(
        "{}, `make fidelity RUNS={} SEED={} SESSIONS={}`, {build} build: purplemux {}, Claude Code {CLAUDE_VERSION}, {}; {cores} cores, {} GiB, {}, load average at the end {}.",
        jiff::Timestamp::now().strftime("%Y-%m-%d"),
        args.runs,
        args.seed,
        args.sessions,
        env!("CARGO_PKG_VERSION"),
        tmux.unwrap_or_else(|_| "no tmux".to_owned()),
        kib.div_ceil(1 << 20),
        field(&read("/etc/os-release"), "PRETTY_NAME="),
        load.split(' ').next().unwrap_or("?"),
    )
}

fn all(args: &Args) -> Result<Vec<Outcome>> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut seed = args.seed;
    while outcomes.len() < args.runs {
        let order = Order {
            seed,
            sessions: args.sessions.min(args.runs - outcomes.len()).max(1),
            keep: args.keep.clone(),
            keep_all: args.keep_all,
        };
        let played = play(&order).with_context(|| format!("seed {seed}"))?;
        let failed = played.iter().filter(|outcome| !outcome.is_good()).count();
        let count = outcomes.len() + played.len();
        eprintln!(
            "seed {seed}: {} runs, {failed} failed; {count} of {}",
            played.len(),
            args.runs
        );
        eprint!("{}", report::faults(&played));
        outcomes.extend(played);
        seed += 1;
    }
    Ok(outcomes)
}

/// Judges kept runs again, and writes their stories anew.
fn again(dirs: &[PathBuf]) -> Result<Vec<Outcome>> {
    dirs.iter()
        .map(|dir| {
            let path = dir.join("run.json");
            let text = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
            let mut outcome = Outcome::of(serde_json::from_slice(&text)?);
            outcome.kept = Some(dir.clone());
            fs::write(dir.join("story.txt"), story(&outcome))?;
            Ok(outcome)
        })
        .collect()
}
