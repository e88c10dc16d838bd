//! `purplemux status`: a line per session, once or at every change. What is printed is what every browser
//! shows, from the same messages.

use anyhow::{Context as _, Result, bail};
use futures_util::StreamExt as _;
use purplemux_wire::browser::{AskKind, Changes, Item, Presence, ServerMsg, State, Workspace};
use purplemux_wire::sentence::Notice;
use serde::Deserialize;
use tokio::net::UnixStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::Common;
use super::client::{Client, PIPED_CHARS, block_on, cut, fit, plain, print, table};
use crate::clock;

/// Its options.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Go on: one line per change
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Deserialize)]
struct Shown {
    items: Vec<Item>,
    notices: Vec<String>,
}

/// Runs it.
///
/// # Errors
/// No server runs, or it has stopped while we watched.
pub fn run(options: &Options) -> Result<()> {
    let client = Client::new(&options.common.home()?);
    block_on(async {
        if options.watch {
            return watch(&client, options.common.json).await;
        }
        if options.common.json {
            let items: serde_json::Value = client.get("/api/items").await?;
            return print(&items["items"].to_string());
        }
        let shown: Shown = client.get("/api/items").await?;
        for notice in &shown.notices {
            eprintln!("purplemux: {}", plain(notice));
        }
        if shown.items.is_empty() {
            return print("No sessions. `purplemux tab create -t claude-code` starts one.");
        }
        let mut cells = vec![header()];
        cells.extend(shown.items.iter().map(|item| row(item, clock::wall_ms())));
        fit(&mut cells, TITLE);
        print(&table(&cells))
    })
}

/// Prints every change. A server that stops ends it.
async fn watch(client: &Client, json: bool) -> Result<()> {
    let mut follow = Follow::start(client).await?;
    loop {
        let before = follow.items.clone();
        let now_ms = follow.next().await?;
        for item in &follow.items {
            if before.contains(item) {
                continue;
            }
            say(item, now_ms, json)?;
        }
        for item in before {
            if !follow.items.iter().any(|now| now.id == item.id) {
                say(&gone(item, now_ms), now_ms, json)?;
            }
        }
    }
}

/// Follows the stream as a browser does: a snapshot, then differences.
#[derive(Debug)]
pub struct Follow {
    client: Client,
    socket: WebSocketStream<UnixStream>,
    /// All rows, as last told.
    pub items: Vec<Item>,
    workspaces: Vec<Workspace>,
    notices: Vec<Notice>,
}

impl Follow {
    /// Connects; nothing is known before [`Self::next`].
    ///
    /// # Errors
    /// No server runs, or it refused.
    pub async fn start(client: &Client) -> Result<Self> {
        Ok(Self {
            client: client.clone(),
            socket: client.status().await?,
            items: Vec::new(),
            workspaces: Vec::new(),
            notices: Vec::new(),
        })
    }

    /// Waits for the next message that may have changed something; the server's clock in it, unix ms.
    ///
    /// # Errors
    /// The server has stopped, or is of another version.
    pub async fn next(&mut self) -> Result<i64> {
        loop {
            let message = self
                .socket
                .next()
                .await
                .context("The server has stopped")?
                .context("The server has stopped")?;
            let text = match message {
                Message::Text(text) => text,
                Message::Close(_) => bail!("The server has stopped"),
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {
                    continue;
                }
            };
            let message: ServerMsg = match serde_json::from_str(&text) {
                Ok(message) => message,
                Err(error) => {
                    let other = self.client.another().await;
                    return Err(anyhow::Error::new(error).context(other));
                }
            };
            match message {
                ServerMsg::Snapshot {
                    now_ms,
                    items,
                    workspaces,
                    notices,
                    epoch: _,
                    rev: _,
                } => {
                    self.items = items;
                    self.workspaces = workspaces;
                    self.notices = notices;
                    return Ok(now_ms);
                }
                ServerMsg::Diff {
                    now_ms,
                    set,
                    gone,
                    workspaces,
                    notices,
                    epoch: _,
                    rev: _,
                } => {
                    let changes = Changes {
                        set,
                        gone,
                        workspaces,
                        notices,
                    };
                    changes.apply(&mut self.items, &mut self.workspaces, &mut self.notices);
                    return Ok(now_ms);
                }
                ServerMsg::Heartbeat { .. }
                | ServerMsg::Refused { .. }
                | ServerMsg::Answered { .. }
                | ServerMsg::Settings { .. }
                | ServerMsg::Stopped { .. } => {}
            }
        }
    }
}

/// The last line of an item that is gone.
fn gone(item: Item, now_ms: i64) -> Item {
    Item {
        state: None,
        since_ms: now_ms,
        presence: Presence::Gone,
        attention: false,
        episode: None,
        detail: purplemux_wire::browser::Detail::default(),
        tool: None,
        ..item
    }
}

fn say(item: &Item, now_ms: i64, json: bool) -> Result<()> {
    if json {
        let mut value = serde_json::to_value(item)?;
        value["ts_ms"] = now_ms.into();
        return print(&value.to_string());
    }
    let time = jiff::Timestamp::from_millisecond(now_ms)
        .unwrap_or_default()
        .to_zoned_datetime(jiff::tz::TimeZone::system())
        .strftime("%H:%M:%S")
        .to_string();
    let what = what(item);
    print(
        format!(
            "{time}  {:<11}  {:<12}  {}{}{what}",
            state(item),
            item.id,
            cut(&plain(&item.title), PIPED_CHARS),
            if what.is_empty() { "" } else { "  " },
        )
        .trim_end(),
    )
}

/// The line of one item, under its header.
#[must_use]
pub fn line(item: &Item) -> String {
    let mut cells = [header(), row(item, clock::wall_ms())];
    fit(&mut cells, TITLE);
    table(&cells)
}

/// The column of titles, which may be long.
const TITLE: usize = 3;

fn header() -> Vec<String> {
    ["STATE", "FOR", "TAB", "TITLE", "WHAT"]
        .map(str::to_owned)
        .to_vec()
}

fn row(item: &Item, now_ms: i64) -> Vec<String> {
    vec![
        state(item).to_owned(),
        if item.state.is_some() {
            age(now_ms - item.since_ms)
        } else {
            String::new()
        },
        item.id.clone(),
        plain(&item.title),
        what(item),
    ]
}

/// The badge as a word; a dash for none.
#[must_use]
pub fn state(item: &Item) -> &'static str {
    if item.presence == Presence::Suspended {
        return "suspended";
    }
    item.state.map_or("-", word)
}

/// A state's own word.
#[must_use]
pub fn word(state: State) -> &'static str {
    match state {
        State::Idle => "idle",
        State::Busy => "busy",
        State::NeedsInput => "needs-input",
        State::Review => "review",
        State::Unknown => "unknown",
    }
}

/// What it does, asks or has ended with, in a few words.
fn what(item: &Item) -> String {
    let detail = &item.detail;
    let cut = |text: &str| cut(&plain(text), 73);
    let mut parts = Vec::new();
    if let Some(ask) = &detail.ask {
        let kind = match ask.kind {
            AskKind::Permission => "permission",
            AskKind::Question => "question",
            AskKind::Plan => "plan",
            AskKind::Form => "form",
            AskKind::Dialog => "dialog",
            AskKind::Startup => "start-up question",
        };
        parts.push(if ask.text.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}: {}", cut(&ask.text))
        });
    }
    match (&detail.tool, &detail.arg, &detail.doing) {
        (Some(tool), Some(arg), _) => parts.push(format!("{}: {}", cut(tool), cut(arg))),
        (Some(tool), None, _) => parts.push(cut(tool)),
        (None, _, Some(doing)) => parts.push(cut(doing)),
        (None, _, None) => {}
    }
    match (&detail.outcome, &detail.error) {
        (Some(outcome), Some(error)) => parts.push(format!("{}: {}", cut(outcome), cut(error))),
        (Some(outcome), None) => parts.push(cut(outcome)),
        (None, _) => {}
    }
    let count = |n: u32, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    if let Some(agents) = detail.agents {
        parts.push(count(agents, "agent"));
    }
    if let Some(shells) = detail.shells {
        parts.push(format!("{} running", count(shells, "shell")));
    }
    if let Some(label) = &detail.label {
        parts.push(cut(label));
    }
    parts.join(" · ")
}

/// A duration in its largest unit.
fn age(ms: i64) -> String {
    let seconds = (ms / 1000).max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_in_their_largest_unit() {
        let ages = [-5, 0, 59_999, 60_000, 3_600_000, 86_400_000].map(age);
        assert_eq!(ages, ["0s", "0s", "59s", "1m", "1h", "1d"]);
    }
}
