//! House rules, generated files and sums of test reports: `cargo xtask <command>`. Owns the commands and
//! where the repository lies; what each does is in its own module.

mod r#gen;
mod hook_events;
mod tidy;
mod total;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check the rules that no compiler knows; print each breach with its place.
    Tidy,
    /// Write the page's TypeScript types from what `wire` declares.
    Gen {
        /// Write nothing; fail if the checked-in file differs.
        #[arg(long)]
        check: bool,
    },
    /// Write down which hook events each version of Claude Code knows, as its package says.
    HookEvents {
        /// Write nothing; fail if the table says something else.
        #[arg(long)]
        check: bool,
        /// Folders in which npm has installed one version each, beside those that the tests install.
        folders: Vec<PathBuf>,
    },
    /// Sum the reports of a test run and close with `N passed, N failed, N skipped`.
    Total {
        /// What `scripts/test` wrote: one line per part, `kind<TAB>name<TAB>exit code<TAB>report`.
        parts: PathBuf,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    let well = match Args::parse().command {
        Command::Tidy => tidy::run(&root())?,
        Command::Gen { check } => {
            r#gen::run(&root(), check)?;
            true
        }
        Command::HookEvents { check, folders } => {
            hook_events::run(&root(), &folders, check)?;
            true
        }
        Command::Total { parts } => total::run(&parts)?,
    };
    Ok(if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The repository's root: the folder above this crate's.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .components()
        .collect()
}
