//! `make bench`: measures what docs/performance.md promises, on the product as it is built for people. Prints
//! one table per question and fails when a promise is broken; it is not part of the test suite, because a
//! number taken on a busy machine proves nothing.
//!
//! Must never touch anything of the person's: every server here has a throw-away home and a tmux server of
//! its own, and ends with the measurement.

#![allow(
    clippy::disallowed_methods,
    reason = "it measures time, and what processes cost"
)]

mod answers;
mod crowded;
mod flood;
mod frames;
mod giant;
mod hooks;
mod idle;
mod pushes;
mod replay;
mod slow;
mod start;
mod storm;
mod turns;

mod crowd;
mod numbers;
mod server;
mod viewer;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// From Claude's own write to the badge, over whole turns of the real Claude Code, each ended by kill -9.
    Turns {
        /// How many.
        #[arg(long, default_value_t = 20)]
        runs: usize,
    },
    /// What a hook costs: the whole process, over `sh -c :`; with the server up, hung and gone.
    Hooks {
        /// Calls of each kind.
        #[arg(long, default_value_t = 200)]
        calls: usize,
    },
    /// What ten idle tabs cost.
    Idle {
        /// Length of the look, in seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// From the start of the program to its first answer.
    Start {
        /// How many times.
        #[arg(long, default_value_t = 20)]
        runs: usize,
    },
    /// A start with 200 living sessions, 1,000 stale status files and 10,000 transcripts.
    Crowded {
        /// How many times.
        #[arg(long, default_value_t = 5)]
        runs: usize,
    },
    /// From an event to the frame that tells a page, with 50 tabs.
    Frames {
        /// Events of each kind.
        #[arg(long, default_value_t = 1000)]
        events: usize,
    },
    /// Fifty sessions that fire twenty hooks a second each.
    Storm {
        /// For how long, in seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// A page that reads a kilobyte a second while fifty sessions change.
    Slow {
        /// For how long, in seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// A flood in a tab that a slow page looks at too.
    Flood {
        /// For how long, in seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Transcripts whose newest turn lies behind 30 MB of images.
    Giant {
        /// How many.
        #[arg(long, default_value_t = 20)]
        runs: usize,
    },
    /// From a tap on a card to the key in the agent's pane.
    Answers {
        /// How many.
        #[arg(long, default_value_t = 50)]
        taps: usize,
    },
    /// From the end of the dwell to the request at the push service.
    Pushes {
        /// Dialogs to tell of.
        #[arg(long, default_value_t = 30)]
        dialogs: usize,
    },
    /// A journal of 100,000 events, read and played again.
    Replay {
        /// How many times.
        #[arg(long, default_value_t = 5)]
        runs: usize,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    let kept = match Args::parse().what {
        What::Turns { runs } => turns::measure(runs)?,
        What::Hooks { calls } => hooks::measure(calls)?,
        What::Idle { seconds } => idle::measure(seconds)?,
        What::Start { runs } => start::measure(runs)?,
        What::Crowded { runs } => crowded::measure(runs)?,
        What::Frames { events } => frames::measure(events)?,
        What::Storm { seconds } => storm::measure(seconds)?,
        What::Slow { seconds } => slow::measure(seconds)?,
        What::Flood { seconds } => flood::measure(seconds)?,
        What::Giant { runs } => giant::measure(runs)?,
        What::Answers { taps } => answers::measure(taps)?,
        What::Pushes { dialogs } => pushes::measure(dialogs)?,
        What::Replay { runs } => replay::measure(runs)?,
    };
    Ok(if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
