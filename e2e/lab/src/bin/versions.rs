//! `versions DIR…`: runs the course of [`purplemux_lab::course`] with the Claude Code that npm has installed in
//! each directory, and with the pinned one; prints one row of a table for each. Fails if one of them failed.

use std::path::Path;
use std::process::ExitCode;

use purplemux_lab::course;
use purplemux_lab::home::Claude;

fn main() -> anyhow::Result<ExitCode> {
    let mut claudes = Vec::new();
    for dir in std::env::args_os().skip(1) {
        claudes.push(Claude::installed_in(Path::new(&dir))?);
    }
    claudes.push(Claude::pinned()?);
    println!(
        "{:<10} {:<8} {:>10} {:>6}  {:>12} {:>12}  result",
        "version", "status", "registered", "heard", "Esc (ms)", "in a dialog"
    );
    let mut failed = false;
    for claude in claudes {
        let status = if claude.has_status() { "yes" } else { "no" };
        match course::run(&format!("versions {}", claude.version), &claude) {
            Ok(report) => println!(
                "{:<10} {status:<8} {:>10} {:>6}  {:>12.0} {:>12.0}  right",
                claude.version,
                report.registered,
                report.heard.len(),
                report.esc_ms[0],
                report.esc_ms[1]
            ),
            Err(why) => {
                failed = true;
                println!("{:<10} {status:<8} FAILED: {why:#}", claude.version);
            }
        }
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
