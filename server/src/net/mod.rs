//! The safety net: one ticker that looks again at what the witnesses may have missed. New panes, processes,
//! folders whose watch lost something, and what no witness tells at all: listening ports and Git branches.
//!
//! It decides nothing. What it finds goes to those whose business it is; only an agent that has been busy
//! for ten minutes with a dead process is put right on its word, and that by the fleet.

pub mod branch;
pub mod ports;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use purplemux_core::{Event, Time, net};
use purplemux_wire::browser::Item;
use tokio::sync::watch;
use tracing::debug;

use crate::hub::{self, Beside, Stopped};
use crate::{clock, sys, tmux};

/// A program that was just started in a pane, or has just ended, has opened or closed its ports or changed
/// the branch within this time; what takes longer is found by the next look.
const SETTLES: Duration = Duration::from_secs(2);

/// Looks until the hub is gone. Every look rings `rounds`, for those who watch folders.
pub async fn run(hub: hub::Handle, rounds: watch::Sender<u64>) {
    let now = clock::boot();
    let net = Net {
        last: now,
        soon: Some(now + SETTLES),
        beside: Beside::default(),
        told: Beside::default(),
        commands: BTreeMap::new(),
        hub,
        rounds,
    };
    // The hub has stopped; there is nobody to tell.
    drop(net.watch().await);
}

struct Net {
    hub: hub::Handle,
    rounds: watch::Sender<u64>,
    /// When it looked last.
    last: Time,
    /// When to look at ports and branches out of turn.
    soon: Option<Time>,
    beside: Beside,
    /// What the hub was last told.
    told: Beside,
    /// What ran in each pane at the last listing.
    commands: BTreeMap<u32, Arc<str>>,
}

impl Net {
    async fn watch(mut self) -> Result<(), Stopped> {
        let mut snapshots = self.hub.snapshots();
        let mut listings = self.hub.witnesses().tmux.listing();
        loop {
            // With the number of tabs there are now: a tab more may put the next look off.
            let tabs = tabs(&snapshots.borrow());
            let round_at = self.last + net::interval(tabs);
            tokio::select! {
                () = clock::reached(round_at) => self.round().await?,
                () = clock::reached(self.soon.unwrap_or_default()), if self.soon.is_some() => {
                    self.look_at_ports().await;
                    self.look_at_branches(true).await;
                    self.tell().await?;
                }
                changed = snapshots.changed() => {
                    changed.map_err(|_| Stopped)?;
                    hub::pages_first().await;
                    self.look_at_branches(false).await;
                    self.tell().await?;
                }
                Ok(()) = listings.changed() => {
                    let listing = listings.borrow_and_update().clone();
                    self.expect_changes(&listing);
                }
            }
        }
    }

    async fn round(&mut self) -> Result<(), Stopped> {
        debug!("looking around");
        self.last = clock::boot();
        let witnesses = self.hub.witnesses();
        witnesses.tmux.look_again();
        witnesses.tmux.look_at_program();
        witnesses.processes.look_around().await;
        self.rounds.send_modify(|round| *round += 1);
        for agent in self.hub.long_busy().await? {
            if sys::is_gone(&agent) {
                self.hub.send(Event::ProcessMissed { agent }).await?;
            }
        }
        self.look_at_ports().await;
        self.look_at_branches(true).await;
        self.tell().await
    }

    /// A pane runs another program than before: soon its ports and its branch may differ.
    fn expect_changes(&mut self, listing: &tmux::Listing) {
        let commands: BTreeMap<u32, Arc<str>> = listing
            .panes
            .iter()
            .map(|pane| (pane.pane, pane.command.clone()))
            .collect();
        if commands != self.commands {
            self.commands = commands;
            self.soon.get_or_insert(clock::boot() + SETTLES);
        }
    }

    async fn look_at_ports(&mut self) {
        self.soon = None;
        let roots = {
            let listing = self.hub.witnesses().tmux.listing();
            let listing = listing.borrow();
            let snapshots = self.hub.snapshots();
            let snapshot = snapshots.borrow();
            snapshot
                .items
                .iter()
                .map(|item| (item.id.clone(), roots(item, &listing)))
                .collect()
        };
        if let Ok(ports) = tokio::task::spawn_blocking(move || ports::listening(roots)).await {
            self.beside.ports = ports;
        }
    }

    /// Of directories nobody has asked about yet, or of `all`.
    async fn look_at_branches(&mut self, all: bool) {
        let dirs: BTreeSet<String> = {
            let snapshots = self.hub.snapshots();
            let snapshot = snapshots.borrow();
            let dirs = snapshot.items.iter().filter_map(|item| item.cwd.clone());
            dirs.collect()
        };
        self.beside.branches.retain(|dir, _| dirs.contains(dir));
        let asked: Vec<String> = dirs
            .into_iter()
            .filter(|dir| all || !self.beside.branches.contains_key(dir))
            .collect();
        if asked.is_empty() {
            return;
        }
        // A directory may be on a disk that has to wake up, or on another machine.
        let read = tokio::task::spawn_blocking(move || {
            let read = asked.into_iter().map(|dir| {
                let branch = branch::of(Path::new(&dir));
                (dir, branch)
            });
            read.collect::<Vec<_>>()
        });
        if let Ok(read) = read.await {
            self.beside.branches.extend(read);
        }
    }

    async fn tell(&mut self) -> Result<(), Stopped> {
        if self.beside != self.told {
            self.told.clone_from(&self.beside);
            self.hub.beside(self.beside.clone()).await?;
        }
        Ok(())
    }
}

fn tabs(snapshot: &hub::Snapshot) -> usize {
    let workspaces = snapshot.workspaces.iter();
    workspaces.map(|workspace| workspace.tabs.len()).sum()
}

/// The processes below which a row's ports are looked for: a tab's panes, or the agent itself.
fn roots(item: &Item, listing: &tmux::Listing) -> Vec<u32> {
    if item.tab.as_deref() == Some(item.id.as_str()) {
        let panes = listing.panes.iter();
        panes
            .filter(|pane| pane.is_of(&item.id))
            .filter_map(|pane| pane.pid)
            .collect()
    } else {
        item.pid.into_iter().collect()
    }
}
