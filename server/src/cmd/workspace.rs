//! `purplemux workspace`: the workspaces as the server has them.

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

use super::Common;
use super::client::{Client, block_on, plain, print, table};

/// Its options.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List workspaces
    List(Common),
}

#[derive(Debug, Deserialize)]
struct Row {
    id: String,
    name: String,
    dir: String,
    tabs: Vec<String>,
}

/// Runs it.
///
/// # Errors
/// No server runs.
pub fn run(options: &Options) -> Result<()> {
    match &options.action {
        Action::List(common) => list(common),
    }
}

/// Lists them.
///
/// # Errors
/// No server runs.
pub fn list(common: &Common) -> Result<()> {
    let client = Client::new(&common.home()?);
    if common.json {
        let rows: Value = block_on(client.get("/api/workspaces"))?;
        return print(&rows.to_string());
    }
    let rows: Vec<Row> = block_on(client.get("/api/workspaces"))?;
    let mut cells = vec![
        ["ID", "NAME", "TABS", "DIRECTORY"]
            .map(str::to_owned)
            .to_vec(),
    ];
    cells.extend(rows.into_iter().map(|row| {
        vec![
            row.id,
            plain(&row.name),
            row.tabs.len().to_string(),
            plain(&row.dir),
        ]
    }));
    print(&table(&cells))
}
