//! `purplemux tab`: list, create, type into, ask about, reopen and close tabs of the running server.

use anyhow::Result;
use http::Method;
use purplemux_wire::browser::Item;
use serde_json::{Value, json};

use super::client::{Client, block_on, fit, plain, print, table};
use super::{Common, Usage, status};
use crate::tabs::{Kind, NewTab};

/// Its options.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List tabs
    List {
        /// Only of this workspace (id or name)
        #[arg(short, long, value_name = "WORKSPACE")]
        workspace: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Open a tab
    Create {
        /// In this workspace (id or name)
        #[arg(short, long, value_name = "WORKSPACE")]
        workspace: Option<String>,
        /// Its name
        #[arg(short, long)]
        name: Option<String>,
        /// What it runs
        #[arg(short = 't', long = "type", value_enum, default_value_t)]
        kind: Kind,
        /// The directory it starts in
        #[arg(long, value_name = "DIR")]
        cwd: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Type text into a tab, then Enter
    Send {
        /// The tab's id
        tab: String,
        /// What to type; several words are joined by spaces
        #[arg(required = true)]
        text: Vec<String>,
        /// Accepted for the sake of older scripts; ids are unique over all workspaces
        #[arg(short, long, value_name = "WORKSPACE")]
        workspace: Option<String>,
        /// Leave out the Enter
        #[arg(long)]
        no_enter: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Show a tab's badge
    Status {
        /// The tab's id
        tab: String,
        /// Accepted for the sake of older scripts; ids are unique over all workspaces
        #[arg(short, long, value_name = "WORKSPACE")]
        workspace: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Print Claude's last words in a tab
    Result {
        /// The tab's id
        tab: String,
        /// Accepted for the sake of older scripts; ids are unique over all workspaces
        #[arg(short, long, value_name = "WORKSPACE")]
        workspace: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Start the shell of a tab that has ended again, in its directory
    Reopen {
        /// The tab's id
        tab: String,
        #[command(flatten)]
        common: Common,
    },
    /// Close a tab and end everything in it; a session that you made with tmux yourself lives on
    Close {
        /// The tab's id
        tab: String,
        /// Accepted for the sake of older scripts; ids are unique over all workspaces
        #[arg(short, long, value_name = "WORKSPACE")]
        workspace: Option<String>,
        /// Also while Claude runs in it
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        common: Common,
    },
}

/// Runs it.
///
/// # Errors
/// No server runs, or it refused.
pub fn run(options: &Options) -> Result<()> {
    match &options.action {
        Action::List { workspace, common } => list(workspace.as_deref(), common),
        Action::Create {
            workspace,
            name,
            kind,
            cwd,
            common,
        } => {
            let new = NewTab {
                workspace: workspace.clone(),
                name: name.clone(),
                kind: *kind,
                cwd: cwd.as_deref().map(absolute).transpose()?,
            };
            create(&new, common)
        }
        Action::Send {
            tab,
            text,
            no_enter,
            common,
            workspace: _,
        } => {
            let body = json!({ "text": text.join(" "), "enter": !no_enter });
            act(
                common,
                Method::POST,
                &format!("/api/tabs/{}/send", id(tab)?),
                Some(body),
            )
        }
        Action::Status {
            tab,
            common,
            workspace: _,
        } => {
            let item = one(tab, common)?;
            if common.json {
                print(&serde_json::to_string(&item)?)
            } else {
                print(&status::line(&item))
            }
        }
        Action::Result {
            tab,
            common,
            workspace: _,
        } => result(&one(tab, common)?, common.json),
        Action::Reopen { tab, common } => act(
            common,
            Method::POST,
            &format!("/api/tabs/{}/reopen", id(tab)?),
            Some(json!({})),
        ),
        Action::Close {
            tab,
            force,
            common,
            workspace: _,
        } => {
            let force = if *force { "?force=1" } else { "" };
            act(
                common,
                Method::DELETE,
                &format!("/api/tabs/{}{force}", id(tab)?),
                None,
            )
        }
    }
}

fn list(workspace: Option<&str>, common: &Common) -> Result<()> {
    let client = Client::new(&common.home()?);
    let (items, workspaces): (Vec<Item>, Vec<Value>) = block_on(async {
        Ok((
            client.get("/api/tabs").await?,
            client.get("/api/workspaces").await?,
        ))
    })?;
    let wanted = match workspace {
        None => None,
        Some(wanted) => Some(
            workspaces
                .iter()
                .find(|w| w["id"] == wanted || w["name"] == wanted)
                .and_then(|w| w["id"].as_str())
                .ok_or_else(|| {
                    anyhow::anyhow!(
                        "There is no workspace {wanted:?}; `purplemux workspace list` shows them."
                    )
                })?,
        ),
    };
    let items: Vec<Item> = items
        .into_iter()
        .filter(|item| wanted.is_none() || item.workspace.as_deref() == wanted)
        .collect();
    if common.json {
        return print(&serde_json::to_string(&items)?);
    }
    let mut cells = vec![
        ["TAB", "STATE", "TITLE", "DIRECTORY"]
            .map(str::to_owned)
            .to_vec(),
    ];
    cells.extend(items.iter().map(|item| {
        vec![
            item.id.clone(),
            status::state(item).to_owned(),
            plain(&item.title),
            plain(item.cwd.as_deref().unwrap_or_default()),
        ]
    }));
    fit(&mut cells, 2);
    print(&table(&cells))
}

fn one(tab: &str, common: &Common) -> Result<Item> {
    let client = Client::new(&common.home()?);
    let items: Vec<Item> = block_on(client.get("/api/tabs"))?;
    items
        .into_iter()
        .find(|item| item.id == tab)
        .ok_or_else(|| anyhow::anyhow!("There is no tab {tab:?}; `purplemux tab list` shows them."))
}

fn result(item: &Item, json: bool) -> Result<()> {
    if json {
        return print(
            &json!({
                "tab": item.id, "state": item.state, "since_ms": item.since_ms,
                "outcome": item.detail.outcome, "error": item.detail.error,
                "last_message": item.last_message,
            })
            .to_string(),
        );
    }
    if let Some(error) = &item.detail.error {
        eprintln!("purplemux: Claude stopped with an error: {}.", plain(error));
    }
    match &item.last_message {
        // Line breaks are Claude's own and stay; whatever else could move the cursor does not.
        Some(message) => print(&message.lines().map(plain).collect::<Vec<_>>().join("\n")),
        None => anyhow::bail!("Claude has not answered anything in {:?} yet.", item.id),
    }
}

fn create(new: &NewTab, common: &Common) -> Result<()> {
    let client = Client::new(&common.home()?);
    let body = serde_json::to_value(new)?;
    let made = block_on(client.ask(Method::POST, "/api/tabs", Some(body)))?;
    if common.json {
        print(&made.to_string())
    } else {
        print(made["tab"].as_str().unwrap_or_default())
    }
}

/// Does what answers nothing; with `--json` that is said as JSON too.
fn act(common: &Common, method: Method, path: &str, body: Option<Value>) -> Result<()> {
    let client = Client::new(&common.home()?);
    block_on(client.ask(method, path, body))?;
    if common.json {
        print(&json!({ "ok": true }).to_string())?;
    }
    Ok(())
}

/// A tab's id as part of a path.
fn id(tab: &str) -> Result<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !tab.is_empty() && tab.chars().all(plain) {
        return Ok(tab);
    }
    Err(Usage(format!(
        "{tab:?} is no tab's id; `purplemux tab list` shows them."
    ))
    .into())
}

/// A directory as it is meant where the command is typed; `~` is left to the server.
fn absolute(dir: &str) -> Result<String> {
    if dir.starts_with('~') {
        return Ok(dir.to_owned());
    }
    if dir.is_empty() {
        return Err(Usage(
            "--cwd is empty; give a directory, or leave it out for the workspace's.".to_owned(),
        )
        .into());
    }
    let absolute = std::path::absolute(dir)?;
    // Letters in the place of bytes that are none would name another directory.
    absolute.into_os_string().into_string().map_err(|dir| {
        Usage(format!(
            "{} has a name that is no UTF-8; tabs can't be opened there. Give it another name, or open a tab above it and cd.",
            std::path::Path::new(&dir).display()
        ))
        .into()
    })
}
