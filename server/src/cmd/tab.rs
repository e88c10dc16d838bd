//! `purplemux tab`: list, create, type into, answer, stop, ask about, reopen and close tabs of the running server.

use anyhow::Result;
use http::Method;
use purplemux_wire::browser::{Answer, Ask, Card, Item};
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
    /// Answer what Claude asks in a tab; without an answer, print what is asked
    Answer {
        /// The tab's id
        tab: String,
        #[command(flatten)]
        answer: Given,
        /// Only if this is still what is asked (its id is in the JSON)
        #[arg(long, value_name = "ID")]
        ask: Option<u64>,
        #[command(flatten)]
        common: Common,
    },
    /// Interrupt Claude in a tab
    Stop {
        /// The tab's id
        tab: String,
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
    /// Take up the conversation that Claude had in a tab before its shell was started again
    Resume {
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

/// One answer.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct Given {
    /// Choose the option with Claude's number N; where it has none, the N-th
    #[arg(long, value_name = "N")]
    option: Option<u8>,
    /// Choose the option with exactly this label
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Where several can be ticked: have exactly these ticked (their numbers), then go on
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    check: Option<Vec<u8>>,
    /// Refuse (Esc)
    #[arg(long)]
    reject: bool,
    /// Refuse and say what to do instead, or answer a question in words
    #[arg(long, value_name = "TEXT")]
    words: Option<String>,
    /// Submit the answers to several questions
    #[arg(long)]
    submit: bool,
}

impl Given {
    /// What is to be sent; `None`: nothing was given.
    fn answer(&self, card: &Card) -> Result<Option<Answer>> {
        if let Some(number) = self.option {
            let option = place(card, number)?;
            return Ok(Some(Answer::Choose { option }));
        }
        if let Some(label) = &self.label {
            let mut found = card
                .options
                .iter()
                .enumerate()
                .filter(|(_, option)| option.label == *label);
            let (Some((at, _)), None) = (found.next(), found.next()) else {
                anyhow::bail!(
                    "No option, or more than one, has the label {label:?}; nothing was sent."
                );
            };
            let option = u32::try_from(at)?;
            return Ok(Some(Answer::Choose { option }));
        }
        if let Some(numbers) = &self.check {
            let options: Result<Vec<u32>> = numbers.iter().map(|n| place(card, *n)).collect();
            return Ok(Some(Answer::Check { options: options? }));
        }
        if let Some(text) = &self.words {
            return Ok(Some(Answer::Words { text: text.clone() }));
        }
        Ok(if self.submit {
            Some(Answer::Submit)
        } else {
            self.reject.then_some(Answer::Reject)
        })
    }
}

/// The place of the option with this number.
fn place(card: &Card, number: u8) -> Result<u32> {
    let numbered = card
        .options
        .iter()
        .position(|option| option.number == Some(number));
    let plain = card.options.iter().all(|option| option.number.is_none());
    let counted = usize::from(number)
        .checked_sub(1)
        .filter(|at| plain && *at < card.options.len());
    let at = numbered
        .or(counted)
        .ok_or_else(|| anyhow::anyhow!("There is no option {number}; nothing was sent."))?;
    Ok(u32::try_from(at)?)
}

fn answer(tab: &str, given: &Given, ask: Option<u64>, common: &Common) -> Result<()> {
    let tab = id(tab)?;
    let item = one(tab, common)?;
    let asked = item
        .detail
        .ask
        .as_ref()
        .ok_or_else(|| anyhow::anyhow!("Nothing is asked in {tab:?}."))?;
    if ask.is_some_and(|ask| ask != asked.id) {
        anyhow::bail!("That is over; something else is asked in {tab:?} now. Nothing was sent.");
    }
    let card = asked.card.as_ref().ok_or_else(|| {
        anyhow::anyhow!("Its dialog has not been read yet; try again, or open the terminal.")
    })?;
    let Some(answer) = given.answer(card)? else {
        return show(asked, card, common);
    };
    let client = Client::new(&common.home()?);
    let body = json!({ "ask": asked.id, "reading": card.reading, "answer": answer });
    let path = format!("/api/tabs/{tab}/answer");
    let ended = block_on(client.ask(Method::POST, &path, Some(body)))?;
    if common.json {
        return print(&ended.to_string());
    }
    print(&format!(
        "Sent: {}",
        plain(ended["what"].as_str().unwrap_or_default())
    ))
}

fn show(ask: &Ask, card: &Card, common: &Common) -> Result<()> {
    if common.json {
        return print(&serde_json::to_string(ask)?);
    }
    let rows = card.subject.iter().map(|row| format!("  {}", plain(row)));
    let mut lines: Vec<String> = vec![plain(&card.title)];
    lines.extend(rows);
    lines.extend(card.question.lines().map(plain));
    for option in &card.options {
        let number = option.number.map(|n| format!("{n}.")).unwrap_or_default();
        let tick = match option.checked {
            Some(true) => "[x] ",
            Some(false) => "[ ] ",
            None => "",
        };
        let mark = if option.marked { "❯" } else { " " };
        lines.push(format!("{mark} {number:>2} {tick}{}", plain(&option.label)));
    }
    if let Some(why) = &card.cannot {
        lines.push(plain(why));
    }
    lines.retain(|line| !line.trim().is_empty());
    print(&lines.join("\n"))
}

fn stop(tab: &str, common: &Common) -> Result<()> {
    let client = Client::new(&common.home()?);
    let path = format!("/api/tabs/{}/stop", id(tab)?);
    let ended = block_on(client.ask(Method::POST, &path, Some(json!({}))))?;
    if common.json {
        return print(&ended.to_string());
    }
    match ended["why"].as_str() {
        Some(why) => print(&format!("Stopped. {}", plain(why))),
        None => print("Stopped."),
    }
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
                pane: None,
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
        Action::Answer {
            tab,
            answer: given,
            ask,
            common,
        } => answer(tab, given, *ask, common),
        Action::Stop { tab, common } => stop(tab, common),
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
        Action::Resume { tab, common } => act(
            common,
            Method::POST,
            &format!("/api/tabs/{}/resume", id(tab)?),
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
pub(super) fn absolute(dir: &str) -> Result<String> {
    if dir.starts_with('~') {
        return Ok(dir.to_owned());
    }
    if dir.is_empty() {
        return Err(Usage("The directory is empty; give one, or leave it out.".to_owned()).into());
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
