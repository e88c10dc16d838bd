//! The screens of panes whose Claude asks something before it has started. No file and no hook says what; the words
//! are read from the screen to be shown beside the badge, and decide nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use purplemux_core::Time;
use purplemux_wire::browser::{AskKind, Item};
use purplemux_wire::screen;
use tracing::debug;

use crate::hub::{self, Stopped};
use crate::ingest::process::ancestors;
use crate::{clock, sys};

/// A dialog may still be being drawn when it is known of.
const AGAIN: Duration = Duration::from_millis(500);
/// What has not been understood by then will not be.
const LOOK_FOR: Duration = Duration::from_secs(10);

/// Reads until the hub is gone.
pub async fn run(hub: hub::Handle) {
    // The hub has stopped; there is nobody to tell.
    drop(follow(hub).await);
}

async fn follow(hub: hub::Handle) -> Result<(), Stopped> {
    let mut snapshots = hub.snapshots();
    // By ask: since when it is looked for; `None`: it needs no look any more.
    let mut asks: BTreeMap<u64, Option<Time>> = BTreeMap::new();
    loop {
        let wordless: Vec<(u64, u32)> = snapshots
            .borrow_and_update()
            .items
            .iter()
            .filter_map(|item| asks_before_its_start(item))
            .collect();
        asks.retain(|id, _| wordless.iter().any(|(asked, _)| asked == id));
        let now = clock::boot();
        let mut again = false;
        for (ask, pid) in wordless {
            let Some(since) = *asks.entry(ask).or_insert(Some(now)) else {
                continue;
            };
            let words = words_of(&hub, pid).await;
            let done = words.is_some() || now.since(since) >= LOOK_FOR;
            if let Some(words) = words {
                hub.asked(ask, words).await?;
            }
            if done {
                asks.insert(ask, None);
            }
            again |= !done;
        }
        tokio::select! {
            changed = snapshots.changed() => {
                changed.map_err(|_| Stopped)?;
                hub::pages_first().await;
            }
            () = clock::passed(AGAIN), if again => {}
        }
    }
}

/// The ask and the process of a row that shows a start-up dialog without words.
fn asks_before_its_start(item: &Item) -> Option<(u64, u32)> {
    let ask = item.detail.ask.as_ref()?;
    (ask.kind == AskKind::Startup && ask.text.is_empty()).then_some((ask.id, item.pid?))
}

/// Only of panes of our own tmux server: it is asked over the one control client.
async fn words_of(hub: &hub::Handle, pid: u32) -> Option<String> {
    let tmux = &hub.witnesses().tmux;
    let pane = {
        let listing = tmux.listing();
        let listing = listing.borrow();
        let of = |pid: u32| {
            let mut panes = listing.panes.iter();
            panes
                .find(|pane| pane.pid == Some(pid))
                .map(|pane| pane.pane)
        };
        let parent = sys::stat(pid)?.parent;
        of(pid).or_else(|| ancestors(parent).find_map(|(pid, _)| of(pid)))?
    };
    match tmux
        .command(&["capture-pane", "-p", "-t", &format!("%{pane}")])
        .await
    {
        Ok(rows) => screen::startup_question(&rows).map(|words| words.to_string()),
        Err(why) => {
            debug!(pid, "its screen can't be read: {why}");
            None
        }
    }
}
