//! `purplemux workspace`: lists, makes, names and removes workspaces, and says whose agents may act.

use anyhow::Result;
use http::Method;
use purplemux_wire::browser::Color;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Common;
use super::client::{Client, block_on, plain, print, table};
use super::tab::absolute;
use crate::tabs::NewWorkspace;

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
    /// Make a workspace
    Create {
        /// Its name
        name: String,
        /// The directory that its tabs start in (default: your own)
        #[arg(long, value_name = "DIR")]
        dir: Option<String>,
        /// Its colour: red, orange, yellow, green, teal, blue, pink or brown
        #[arg(long, value_parser = color)]
        color: Option<Color>,
        /// The heading that it stands under
        #[arg(long)]
        group: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Give a workspace another name
    Rename {
        /// The workspace (id or name)
        workspace: String,
        /// The new name
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Remove a workspace
    Remove {
        /// The workspace (id or name)
        workspace: String,
        /// Also while tabs live in it: everything in them ends
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        common: Common,
    },
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

fn color(word: &str) -> Result<Color, String> {
    serde_json::from_value(json!(word))
        .map_err(|_| "choose red, orange, yellow, green, teal, blue, pink or brown".to_owned())
}

/// The one workspace that is meant. What is about to be changed must not be one of two of the same name.
fn one(client: &Client, wanted: &str) -> Result<Row> {
    let rows: Vec<Row> = block_on(client.get("/api/workspaces"))?;
    let (mut by_id, mut by_name): (Vec<Row>, Vec<Row>) = rows
        .into_iter()
        .filter(|row| row.id == wanted || row.name == wanted)
        .partition(|row| row.id == wanted);
    if let Some(row) = by_id.pop() {
        return Ok(row);
    }
    match (by_name.pop(), by_name.is_empty()) {
        (Some(row), true) => Ok(row),
        (Some(_), false) => anyhow::bail!(
            "There are several workspaces {wanted:?}; give the id that `purplemux workspace list` shows."
        ),
        (None, _) => anyhow::bail!(
            "There is no workspace {wanted:?}; `purplemux workspace list` shows them."
        ),
    }
}

/// Changes the one workspace that is meant; with `--json` that is said as JSON too.
fn act(
    common: &Common,
    wanted: &str,
    method: Method,
    rest: &str,
    body: Option<Value>,
) -> Result<()> {
    let client = Client::new(&common.home()?);
    let row = one(&client, wanted)?;
    let path = format!("/api/workspaces/{}{rest}", row.id);
    block_on(client.ask(method, &path, body))?;
    if common.json {
        print(&json!({ "ok": true }).to_string())?;
    }
    Ok(())
}

fn create(new: &NewWorkspace, common: &Common) -> Result<()> {
    let client = Client::new(&common.home()?);
    let body = serde_json::to_value(new)?;
    let made = block_on(client.ask(Method::POST, "/api/workspaces", Some(body)))?;
    if common.json {
        return print(&made.to_string());
    }
    print(made["workspace"].as_str().unwrap_or_default())
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
/// No server runs, or it refused.
pub fn run(options: &Options) -> Result<()> {
    match &options.action {
        Action::List(common) => list(common),
        Action::Agents {
            workspace,
            wish,
            common,
        } => {
            let allow = wish.allow && !wish.refuse;
            let body = json!({ "allow": allow });
            act(common, workspace, Method::PUT, "/agents", Some(body))
        }
        Action::Create {
            name,
            dir,
            color,
            group,
            common,
        } => {
            let new = NewWorkspace {
                name: name.clone(),
                dir: dir.as_deref().map(absolute).transpose()?,
                color: *color,
                group: group.clone(),
            };
            create(&new, common)
        }
        Action::Rename {
            workspace,
            name,
            common,
        } => {
            let body = json!({ "name": name });
            act(common, workspace, Method::PATCH, "", Some(body))
        }
        Action::Remove {
            workspace,
            force,
            common,
        } => {
            let force = if *force { "?force=1" } else { "" };
            act(common, workspace, Method::DELETE, force, None)
        }
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
