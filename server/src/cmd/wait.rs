//! `purplemux wait`: until a session shows one of the states asked for. Follows the same stream as a browser;
//! must never ask twice for what it will be told.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use purplemux_wire::browser::{Item, State};

use super::client::{Client, block_on, print};
use super::status::{self, Follow};
use super::{Common, TimedOut};

/// Its options.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The tab's id, or an agent as host:pid:start
    #[arg(value_name = "TAB")]
    item: String,
    /// The states to wait for, one of them suffices
    #[arg(long, value_enum, value_delimiter = ',', required = true)]
    state: Vec<Wanted>,
    /// Give up after so many seconds (exit code 4)
    #[arg(long, value_name = "S")]
    timeout: Option<f64>,
    #[command(flatten)]
    common: Common,
}

/// A state to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Wanted {
    Idle,
    Busy,
    NeedsInput,
    Review,
    Unknown,
    /// No agent runs
    None,
}

impl Wanted {
    fn is(self, item: &Item) -> bool {
        item.state
            == match self {
                Self::Idle => Some(State::Idle),
                Self::Busy => Some(State::Busy),
                Self::NeedsInput => Some(State::NeedsInput),
                Self::Review => Some(State::Review),
                Self::Unknown => Some(State::Unknown),
                Self::None => None,
            }
    }
}

/// Runs it.
///
/// # Errors
/// The tab is gone, the time is over, or the server has stopped.
pub fn run(options: &Options) -> Result<()> {
    let within = match options.timeout {
        None => None,
        Some(seconds) => Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
            super::Usage(format!("{seconds} is no number of seconds to wait for."))
        })?),
    };
    let client = Client::new(&options.common.home()?);
    block_on(async {
        let reached = reach(&client, options);
        let item = match within {
            None => reached.await?,
            Some(within) => match tokio::time::timeout(within, reached).await {
                Ok(item) => item?,
                Err(_) => return Err(TimedOut.into()),
            },
        };
        if options.common.json {
            print(&serde_json::to_string(&item)?)
        } else {
            print(status::state(&item))
        }
    })
}

async fn reach(client: &Client, options: &Options) -> Result<Item> {
    let mut follow = Follow::start(client).await?;
    loop {
        follow.next().await?;
        let Some(item) = follow.items.iter().find(|item| item.id == options.item) else {
            bail!(
                "There is no session {:?}; `purplemux status` shows them all.",
                options.item
            );
        };
        if options.state.iter().any(|wanted| wanted.is(item)) {
            return Ok(item.clone());
        }
    }
}
