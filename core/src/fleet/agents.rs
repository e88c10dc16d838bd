//! All agents of a fleet, and which of them may have changed since that was last asked. Whoever changes an agent
//! comes through here; there is no other way to one.
//!
//! It knows no rule and no event.

use std::collections::BTreeMap;
use std::collections::btree_map::ValuesMut;
use std::ops::Deref;

use crate::ids::AgentKey;
use crate::status::Agent;

/// More than this at once, and looking at all is as quick.
const TOUCHED_MAX: usize = 8;

/// Every agent by its key.
#[derive(Clone, Debug, Default)]
pub(super) struct Agents {
    all: BTreeMap<AgentKey, Agent>,
    touched: Touched,
}

/// Which of them may not be as they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Touched {
    /// These, at most [`TOUCHED_MAX`].
    These(Vec<AgentKey>),
    /// Any of them, or who there is.
    All,
}

impl Default for Touched {
    /// Nobody has asked yet.
    fn default() -> Self {
        Self::All
    }
}

impl Agents {
    pub(super) fn get_mut(&mut self, key: &AgentKey) -> Option<&mut Agent> {
        let agent = self.all.get_mut(key)?;
        if let Touched::These(touched) = &mut self.touched
            && !touched.contains(key)
        {
            touched.push(key.clone());
            if touched.len() > TOUCHED_MAX {
                self.touched = Touched::All;
            }
        }
        Some(agent)
    }

    pub(super) fn values_mut(&mut self) -> ValuesMut<'_, AgentKey, Agent> {
        self.touch_all();
        self.all.values_mut()
    }

    pub(super) fn insert(&mut self, key: AgentKey, agent: Agent) {
        self.touch_all();
        self.all.insert(key, agent);
    }

    pub(super) fn remove(&mut self, key: &AgentKey) -> Option<Agent> {
        self.touch_all();
        self.all.remove(key)
    }

    /// What is said of agents may be another although they are the same: panes, the layout, what was kept.
    pub(super) fn touch_all(&mut self) {
        self.touched = Touched::All;
    }

    /// Who was touched since this was last asked.
    pub(super) fn touched(&mut self) -> Touched {
        std::mem::replace(&mut self.touched, Touched::These(Vec::new()))
    }
}

impl Deref for Agents {
    type Target = BTreeMap<AgentKey, Agent>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}
