//! `purplemux workspace`: the workspaces as the server has them, and whose agents may act.

use anyhow::Result;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

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
    /// Say whether the agents of a workspace may do what is yours to do: answer, type, sign in, close
    Agents {
        /// The workspace (id or name)
        workspace: String,
        #[command(flatten)]
        wish: Wish,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Wish {
    /// They may
    #[arg(long)]
    allow: bool,
    /// They may not
    #[arg(long)]
    refuse: bool,
}

fn agents(workspace: &str, allow: bool, common: &Common) -> Result<()> {
    let client = Client::new(&common.home()?);
    let rows: Vec<Row> = block_on(client.get("/api/workspaces"))?;
    let mut rows = rows.into_iter();
    let row = rows
        .find(|row| row.id == workspace || row.name == workspace)
        .ok_or_else(|| {
            anyhow::anyhow!(
                "There is no workspace {workspace:?}; `purplemux workspace list` shows them."
            )
        })?;
    let path = format!("/api/workspaces/{}/agents", row.id);
    let body = json!({ "allow": allow });
    block_on(client.ask(Method::PUT, &path, Some(body)))?;
    if common.json {
        print(&json!({ "ok": true }).to_string())?;
    }
    Ok(())
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
        Action::Agents {
            workspace,
            wish,
            common,
        } => agents(workspace, wish.allow && !wish.refuse, common),
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
