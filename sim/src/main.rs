//! `purplemux-sim`: tries histories, on all cores, and tells the first that fails, or all that do.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use purplemux_sim::adversary::Knobs;
use purplemux_sim::author::Scope;
use purplemux_sim::trial::{self, Case, Plan, Tried};

/// A model of Claude Code against the decisions of purplemux, by seed.
#[derive(Debug, Parser)]
struct Arguments {
    /// The first seed; each history has its own.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many histories.
    #[arg(long, default_value_t = 20_000)]
    histories: u64,
    /// Go on for so long instead.
    #[arg(long)]
    minutes: Option<u64>,
    /// Steps in each; with several panes some more.
    #[arg(long, default_value_t = 12)]
    steps: usize,
    /// Troubles to draw from: turns (sets of them in turn, by seed), none, hooks, all, or names separated by
    /// commas.
    #[arg(long, default_value = "turns")]
    adversary: String,
    /// What histories contain: all, plain (turns, tools, permissions), plain and more by commas, or all but
    /// some: all,-panes.
    #[arg(long, default_value = "all")]
    scope: Scope,
    /// Threads; 0 is one for each core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Go on after a failure; at the end each kind of fault is told with its first seeds.
    #[arg(long)]
    keep_going: bool,
    /// As --keep-going, and list every failing seed.
    #[arg(long)]
    count: bool,
}

/// A failing history and what it said.
type Failure = (Case, Vec<String>);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let knobs: Option<Knobs> = match arguments.adversary.as_str() {
        "turns" => None,
        named => match named.parse() {
            Ok(knobs) => Some(knobs),
            Err(why) => {
                eprintln!("{why}");
                return ExitCode::from(2);
            }
        },
    };
    let plan = Plan {
        steps: arguments.steps,
        scope: arguments.scope,
        knobs,
    };
    let all = thread::available_parallelism().map_or(1, usize::from);
    let threads = if arguments.threads == 0 {
        all
    } else {
        arguments.threads
    };
    let goes_on = arguments.keep_going || arguments.count;
    let began = now();
    let tried = AtomicU64::new(0);
    let failures: Mutex<BTreeMap<u64, Failure>> = Mutex::new(BTreeMap::new());
    let spoke = Mutex::new(began);
    let until = arguments
        .minutes
        .map(|minutes| Duration::from_secs(60 * minutes));
    let end = if until.is_some() {
        u64::MAX
    } else {
        arguments.seed.saturating_add(arguments.histories)
    };
    let told = |what: Tried| match what {
        Tried::Failed { seed, case, faults } => {
            if let Ok(mut failures) = failures.lock() {
                failures.insert(seed, (case, faults));
            }
            goes_on
        }
        Tried::Done(more) => {
            let tried = tried.fetch_add(more, Ordering::Relaxed) + more;
            let took = now().duration_since(began);
            if let Ok(mut spoke) = spoke.try_lock()
                && now().duration_since(*spoke) > Duration::from_secs(5)
            {
                *spoke = now();
                let failed = failures.lock().map_or(0, |failures| failures.len());
                let rate = per_second(tried, took);
                eprintln!("{tried} histories, {rate} a second, {failed} failed");
            }
            until.is_none_or(|until| took < until)
        }
    };
    trial::try_all(arguments.seed..end, plan, threads, &told);
    let took = now().duration_since(began);
    let tried = tried.into_inner();
    let failures = failures.into_inner().unwrap_or_default();
    tell(&failures, &arguments);
    println!(
        "{tried} histories of {} steps from seed {}, adversary {}: {} failed; {:.1} s, {} a second on {threads} threads",
        arguments.steps,
        arguments.seed,
        arguments.adversary,
        failures.len(),
        took.as_secs_f64(),
        per_second(tried, took),
    );
    if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn tell(failures: &BTreeMap<u64, Failure>, arguments: &Arguments) {
    if arguments.count {
        for (seed, (case, faults)) in failures {
            let worst = trial::worst(faults).map_or("", String::as_str);
            println!("seed {seed} knobs {}: {worst}", case.knobs);
        }
        return;
    }
    let mut kinds: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (seed, (_, faults)) in failures {
        let kind = trial::kind(faults).unwrap_or_default();
        kinds.entry(kind).or_default().push(*seed);
    }
    if arguments.keep_going {
        for (kind, seeds) in &kinds {
            let first: Vec<String> = seeds.iter().take(5).map(u64::to_string).collect();
            println!("{} times, seeds {}: {kind}", seeds.len(), first.join(", "));
        }
    }
    if let Some((seed, (case, _))) = failures.first_key_value() {
        print!("{}", trial::told(*seed, &trial::smaller(case)));
    }
}

fn per_second(count: u64, took: Duration) -> u64 {
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    count * 1000 / ms.max(1)
}

/// How long it took is only told, never decided on.
#[expect(clippy::disallowed_methods, reason = "a progress line for a person")]
fn now() -> Instant {
    Instant::now()
}
