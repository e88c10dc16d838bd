//! `purplemux hooks show`: what Claude Code is given so that it tells us what it does. Needs no server, and
//! never writes or changes settings.

use anyhow::Result;
use serde_json::json;

use super::client::print;
use super::{Common, Usage};
use crate::hooks::version::{self, Version};
use crate::hooks::{settings, settings_path};

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
}

/// Runs it.
///
/// # Errors
/// The home can't be told, or the version makes no sense.
pub fn run(options: &Options) -> Result<()> {
    let Action::Show { claude, common } = &options.action;
    show(claude.as_deref(), common)
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
    if common.json {
        let version = version.map(|version| version.to_string());
        let shown =
            json!({ "claude": program, "version": version, "path": path, "settings": settings });
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
    print(&format!("{settings:#}"))
}
