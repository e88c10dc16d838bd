//! The commands of the binary, one file each, and what they share: the command line, the exit codes.

pub mod audit;
pub mod claude_exec;
pub mod hook;
pub mod status_line;

pub mod doctor;
pub mod explain;
pub mod hooks;
pub mod login;
pub mod serve;
pub mod status;
pub mod tab;
pub mod wait;
pub mod workspace;

pub mod client;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::home::Home;
use client::NotRunning;

/// Done.
pub const DONE: u8 = 0;
/// Failed; the reason is on standard error.
pub const FAILED: u8 = 1;
/// The command line makes no sense (clap uses the same).
pub const USAGE: u8 = 2;
/// No server runs in this home.
pub const NOT_RUNNING: u8 = 3;
/// What was waited for did not come in time.
pub const TIMED_OUT: u8 = 4;

/// Keeps your terminals alive and shows what every Claude Code session is doing.
#[derive(Debug, Parser)]
#[command(
    name = "purplemux",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Without a command: serve."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Options,
}

/// Where and how, for every command.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Common {
    /// The home directory (default: $PURPLEMUX_HOME, else ~/.purplemux)
    #[arg(long, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl Common {
    /// The home that is meant.
    ///
    /// # Errors
    /// None can be told.
    pub fn home(&self) -> Result<Home> {
        match &self.home {
            Some(dir) => Home::at(dir),
            None => Home::locate(),
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server
    Serve(serve::Options),
    /// Print a sign-in link for the running server
    Login(login::Options),
    /// Show every session and its badge
    Status(status::Options),
    /// Say why a session shows what it shows
    Explain(explain::Options),
    /// Wait until a session shows one of these states
    Wait(wait::Options),
    /// List, create, type into, ask about and close tabs
    Tab(tab::Options),
    /// Show who has answered what, newest first
    Audit(audit::Options),
    /// List workspaces
    Workspace(workspace::Options),
    /// Look for what is missing or wrong, and say what to do
    Doctor(Common),
    /// Show what Claude Code is given so that it tells us what it does
    Hooks(hooks::Options),
    /// Print what makes a shell complete these commands
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// List workspaces
    #[command(hide = true)]
    Workspaces(Common),
}

/// Runs what the command line says.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let done = match cli.command {
        None => serve::run(&cli.serve),
        Some(Command::Serve(options)) => serve::run(&options),
        Some(Command::Login(options)) => login::run(&options),
        Some(Command::Status(options)) => status::run(&options),
        Some(Command::Explain(options)) => explain::run(&options),
        Some(Command::Wait(options)) => wait::run(&options),
        Some(Command::Completions { shell }) => completions(shell),
        Some(Command::Tab(options)) => tab::run(&options),
        Some(Command::Workspace(options)) => workspace::run(&options),
        Some(Command::Audit(options)) => audit::run(&options),
        Some(Command::Doctor(common)) => doctor::run(&common),
        Some(Command::Hooks(options)) => hooks::run(&options),
        Some(Command::Workspaces(common)) => workspace::list(&common),
    };
    match done {
        Ok(()) => ExitCode::from(DONE),
        Err(error) => {
            eprintln!("purplemux: {error:#}");
            ExitCode::from(if error.is::<NotRunning>() {
                NOT_RUNNING
            } else if error.is::<Usage>() {
                USAGE
            } else if error.is::<TimedOut>() {
                TIMED_OUT
            } else {
                FAILED
            })
        }
    }
}

fn completions(shell: clap_complete::Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "purplemux", &mut script);
    client::print(String::from_utf8(script)?.trim_end())
}

/// What was waited for did not come in time.
#[derive(Debug, thiserror::Error)]
#[error("That did not happen in time.")]
pub struct TimedOut;

/// What was asked for makes no sense; the sentence says what would.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);
