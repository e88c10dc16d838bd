//! The binary `purplemux`. The hook and the status line are decided before anything else is set up,
//! because Claude Code waits for them; the rest is in the library.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(code) = purplemux::cmd::hook::run(&arguments) {
        return code;
    }
    if let Some(code) = purplemux::cmd::status_line::run(&arguments) {
        return code;
    }
    if let Some(code) = purplemux::cmd::claude_exec::run(&arguments) {
        return code;
    }
    purplemux::cmd::run(purplemux::cmd::Cli::parse())
}
