//! `purplemux hooks`: what Claude Code is given so that it tells us what it does. `show` writes nothing;
//! `install --global` and `uninstall --global` are the only commands that write the person's own settings of
//! Claude Code, and only the entries of this home. None of them needs a server.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::client::print;
use super::{Common, Usage, doctor};
use crate::home::Home;
use crate::hooks::global::{self, Done};
use crate::hooks::version::{self, Version};
use crate::hooks::{self, settings, settings_path};
use crate::ingest::default_claude_dirs;
use crate::web::owner;

/// Its options.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show the settings that Claude is started with
    Show {
        /// Of this version of Claude Code (default: the one on the PATH)
        #[arg(long, value_name = "X.Y.Z")]
        claude: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Put our hooks into your own settings of Claude Code, for sessions started outside purplemux
    Install(Everywhere),
    /// Take them out again
    Uninstall(Everywhere),
}

#[derive(Debug, clap::Args)]
struct Everywhere {
    /// For every session of Claude Code, wherever it is started
    #[arg(long)]
    global: bool,
    /// A directory of Claude Code's; may be given several times (default: $CLAUDE_CONFIG_DIR and ~/.claude)
    #[arg(long, value_name = "DIR")]
    config_dir: Vec<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Runs it.
///
/// # Errors
/// The home can't be told, the version makes no sense, or settings were refused.
pub fn run(options: &Options) -> Result<()> {
    match &options.action {
        Action::Show { claude, common } => show(claude.as_deref(), common),
        Action::Install(everywhere) => install(everywhere),
        Action::Uninstall(everywhere) => uninstall(everywhere),
    }
}

fn show(claude: Option<&str>, common: &Common) -> Result<()> {
    let home = common.home()?;
    let home = home.dir();
    let asked: Option<Version> = claude
        .map(|text| {
            text.parse().map_err(|_| {
                Usage(format!(
                    "{text:?} is no version; write three numbers: 2.1.332"
                ))
            })
        })
        .transpose()?;
    let program = match asked {
        Some(_) => None,
        None => version::on_path(),
    };
    let version = asked.or_else(|| version::of(home, program.as_deref()?, true));
    let settings = settings::value(home, version.as_ref());
    let path = settings_path(home, version.clone());
    let everywhere: Vec<PathBuf> = global::recorded(home)
        .iter()
        .map(|dir| global::state(home, dir).file)
        .collect();
    if common.json {
        let version = version.map(|version| version.to_string());
        let shown = json!({
            "claude": program, "version": version, "path": path, "settings": settings, "global": everywhere,
        });
        return print(&shown.to_string());
    }
    let who = match (&version, &program) {
        (Some(version), Some(program)) => format!("Claude Code {version} ({})", program.display()),
        (Some(version), None) => format!("Claude Code {version}"),
        (None, Some(program)) => {
            format!("Claude Code of an unknown version ({})", program.display())
        }
        (None, None) => "Claude Code (not on the PATH, so of an unknown version)".to_owned(),
    };
    print(&format!("{who} is given --settings {}:", path.display()))?;
    print(&format!("{settings:#}"))?;
    for file in everywhere {
        print(&format!(
            "They are in {} as well (`purplemux hooks uninstall --global` takes them out).",
            file.display()
        ))?;
    }
    Ok(())
}

fn install(options: &Everywhere) -> Result<()> {
    needs_global(options)?;
    // What it changes runs in every session of the person's.
    if owner::is_agents() {
        anyhow::bail!(
            "This is the person's to do, and it was asked by a program that Claude Code started."
        );
    }
    let home = options.common.home()?.prepare()?;
    home.cli_token()?;
    hooks::write(home.dir())?;
    let version = oldest(&home);
    let dirs = match &options.config_dir[..] {
        [] => {
            let dirs = default_claude_dirs();
            let (there, missing): (Vec<_>, Vec<_>) = dirs.into_iter().partition(|dir| dir.is_dir());
            // With none at all, the refusal says what to do.
            if there.is_empty() { missing } else { there }
        }
        named => named.to_vec(),
    };
    let whose = match &version {
        Some(version) => format!("for Claude Code {version} and newer"),
        None => "for a Claude Code of an unknown version".to_owned(),
    };
    let mut outcomes = Vec::new();
    for dir in dirs {
        let done = global::install(home.dir(), &dir, version.as_ref());
        outcomes.push(Outcome::new(&home, dir, done));
    }
    let tell = |outcome: &Outcome, done: &Done| {
        let file = outcome.file.display();
        let mut said = match done {
            Done::Unchanged => format!("Our hooks are in {file} already, {whose}."),
            Done::Installed | Done::Restored | Done::Removed => {
                format!("Our hooks are in {file} now, {whose}.")
            }
        };
        if let Some(backup) = &outcome.backup {
            said += &format!(" As it was before, it is kept in {}.", backup.display());
        }
        said
    };
    finish(&options.common, &outcomes, tell)
}

fn uninstall(options: &Everywhere) -> Result<()> {
    needs_global(options)?;
    let home = options.common.home()?;
    let dirs = match &options.config_dir[..] {
        [] => {
            let mut dirs = global::recorded(home.dir());
            dirs.extend(default_claude_dirs());
            let mut seen: Vec<PathBuf> = Vec::new();
            dirs.retain(|dir| {
                let real = dir.canonicalize().unwrap_or_else(|_| dir.clone());
                let new = !seen.contains(&real);
                seen.push(real);
                new
            });
            dirs
        }
        named => named.to_vec(),
    };
    let mut outcomes = Vec::new();
    for dir in dirs {
        let done = global::uninstall(home.dir(), &dir);
        outcomes.push(Outcome::new(&home, dir, done));
    }
    let tell = |outcome: &Outcome, done: &Done| {
        let file = outcome.file.display();
        match done {
            Done::Unchanged => format!("None of our hooks were in {file}."),
            Done::Restored => format!("{file} is what it was before."),
            Done::Installed | Done::Removed => {
                format!("Our hooks are out of {file}; what you changed since then has stayed.")
            }
        }
    };
    finish(&options.common, &outcomes, tell)
}

fn needs_global(options: &Everywhere) -> Result<()> {
    if options.global {
        return Ok(());
    }
    bail!(Usage(
        "Say --global: your own settings of Claude Code are changed then. Sessions in tabs of purplemux have the hooks without."
            .to_owned()
    ))
}

/// The oldest Claude Code found here: a name that it does not know would stop it at every start.
fn oldest(home: &Home) -> Option<Version> {
    doctor::programs()
        .iter()
        .filter_map(|program| version::of(home.dir(), program, true))
        .min()
}

/// What came of one settings file.
struct Outcome {
    file: PathBuf,
    backup: Option<PathBuf>,
    done: Result<Done>,
}

impl Outcome {
    fn new(home: &Home, dir: PathBuf, done: Result<Done>) -> Self {
        Self {
            file: dir.join("settings.json"),
            backup: global::backup(home.dir(), &dir),
            done,
        }
    }
}

fn finish(
    common: &Common,
    outcomes: &[Outcome],
    tell: impl Fn(&Outcome, &Done) -> String,
) -> Result<()> {
    if common.json {
        let told: Vec<Value> = outcomes
            .iter()
            .map(|outcome| match &outcome.done {
                Ok(done) => json!({ "file": outcome.file, "done": done, "backup": outcome.backup }),
                Err(why) => json!({ "file": outcome.file, "refused": format!("{why:#}") }),
            })
            .collect();
        print(&Value::from(told).to_string())?;
    }
    let mut refused = Vec::new();
    for outcome in outcomes {
        match &outcome.done {
            Ok(done) if !common.json => print(&tell(outcome, done))?,
            Ok(_) => {}
            Err(why) => refused.push(format!("{why:#}")),
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    bail!("{}", refused.join("\n"))
}
