//! The one door: every [`Event`] enters by [`Fleet::step`], every badge leaves by [`Fleet::items`].
//!
//! Owns all agents, the layout and the hooks that wait for an agent nobody has seen yet. Must never
//! ask for the time: whoever calls says when it is.

use crate::effect::Effect;
use crate::event::Event;
use crate::ids::{AgentKey, HostId};
use crate::time::{Stamp, Time};
use crate::view::{Evidence, Item, WorkspaceView};

/// All agents and tabs of one host, and everything known about them.
#[derive(Clone, Debug)]
pub struct Fleet {
    host: HostId,
}

impl Fleet {
    /// A fleet that has seen nothing yet.
    #[must_use]
    pub fn new(host: HostId) -> Self {
        Self { host }
    }

    /// Takes one event in and says what is to be done. Total: odd input changes nothing.
    pub fn step(&mut self, now: Stamp, event: Event) -> Vec<Effect> {
        drop((now, event));
        Vec::new()
    }

    /// When [`Event::DeadlinePassed`] is wanted next, and what for. A function of the state alone.
    #[must_use]
    pub fn deadline(&self) -> Option<(Time, &'static str)> {
        None
    }

    /// All rows: tabs in the order of the layout, then agents outside tabs by age.
    #[must_use]
    pub fn items(&self) -> Vec<Item> {
        Vec::new()
    }

    /// All workspaces in the order of the layout, each with its most urgent badge (rule 7).
    #[must_use]
    pub fn workspaces(&self) -> Vec<WorkspaceView> {
        Vec::new()
    }

    /// The evidence about one agent, newest first; bounded.
    #[must_use]
    pub fn explain(&self, agent: &AgentKey) -> Vec<Evidence> {
        if agent.host != self.host {
            return Vec::new();
        }
        Vec::new()
    }
}
