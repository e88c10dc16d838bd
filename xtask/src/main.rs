//! House rules, generated files and release archives: `cargo xtask <command>`.

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

mod r#gen;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write the page's TypeScript types from what `wire` declares.
    Gen {
        /// Write nothing; fail if the checked-in file differs.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> anyhow::Result<()> {
    match Args::parse().command {
        Command::Gen { check } => r#gen::run(&root(), check),
    }
}

/// The repository's root: the folder above this crate's.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .components()
        .collect()
}
