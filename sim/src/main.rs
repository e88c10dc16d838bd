//! `purplemux-sim`: tries histories one after the other and tells the first that fails.

use std::process::ExitCode;

use clap::Parser;
use purplemux_sim::adversary::Knobs;
use purplemux_sim::author::Scope;
use purplemux_sim::trial::{self, Plan};

/// A model of Claude Code against the decisions of purplemux, by seed.
#[derive(Debug, Parser)]
struct Arguments {
    /// The first seed; each history has its own.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many histories.
    #[arg(long, default_value_t = 20_000)]
    histories: u64,
    /// Steps in each.
    #[arg(long, default_value_t = 12)]
    steps: usize,
    /// Troubles to draw from: none, hooks, all, or names separated by commas.
    #[arg(long, default_value = "all")]
    adversary: Knobs,
    /// What histories contain: all, plain (turns, tools, permissions), or plain and more, by commas:
    /// agents, menus, queue, shells, commands, processes, esc, dialogs, oddities.
    #[arg(long, default_value = "all")]
    scope: Scope,
    /// Go on after a failure and tell only how many there were.
    #[arg(long)]
    count: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let plan = Plan {
        steps: arguments.steps,
        scope: arguments.scope,
        knobs: arguments.adversary,
    };
    let mut failed = 0_u64;
    let last = arguments.seed + arguments.histories;
    for seed in arguments.seed..last {
        let case = trial::draw(seed, plan);
        let faults = trial::verdict(&case);
        if faults.is_empty() {
            continue;
        }
        failed += 1;
        if arguments.count {
            let worst = trial::worst(&faults).map_or("", String::as_str);
            println!("seed {seed} knobs {}: {worst}", case.knobs);
        } else {
            let small = trial::smaller(&case);
            print!("{}", trial::told(seed, &small));
            break;
        }
    }
    let tried = arguments.histories;
    let (steps, knobs) = (arguments.steps, arguments.adversary);
    println!(
        "{tried} histories of {steps} steps from seed {}, adversary {knobs}: {failed} failed",
        arguments.seed
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
