//! The one door: every [`Event`] enters by [`Fleet::step`], every badge leaves by [`Fleet::items`].
//!
//! Owns all agents, the layout and the words about agents nobody has seen yet. Finds out whom a hook
//! concerns and what several agents of one tab amount to. Must never ask for the time: whoever calls says
//! when it is.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use self::agents::{Agents, Touched};
use crate::effect::Effect;
use crate::event::{Event, PaneFacts, Persisted, TabFacts, WorkspaceFacts};
use crate::ids::{AgentKey, EpisodeId, HookId, HostId, PaneKey, TabId};
use crate::net;
use crate::status::{Agent, Ctx};
use crate::time::{Clocks, Stamp, Time};
use crate::view::{Badge, Evidence, Item, Presence, WorkspaceView};
use crate::witness::{Hook, HookKind, StartSource};

mod agents;

/// Words about agents nobody has seen yet are kept this long: a process is found within a second of its
/// first hook, a slow machine included.
const WAIT: Duration = Duration::from_secs(60);
/// … and this many of them: 50 sessions starting at once with 20 words each.
const WAITING_MAX: usize = 1_000;
/// Ids of hooks that were heard: a repeat comes within seconds (a spooled copy of a posted hook).
const HOOK_IDS_MAX: usize = 4_096;
/// Agents known to be dead: nothing that still arrives about them may bring them back.
const DEAD_MAX: usize = 1_024;
/// A parked session's job is given this long to take up the work (measured: 0.4 to 0.6 s after its first
/// status) before its own badge counts.
const HANDOVER: Duration = Duration::from_secs(2);

/// All agents and tabs of one host, and everything known about them.
#[derive(Clone, Debug)]
pub struct Fleet {
    host: HostId,
    agents: Agents,
    panes: BTreeMap<PaneKey, PaneFacts>,
    workspaces: Vec<WorkspaceFacts>,
    restored: BTreeMap<AgentKey, Persisted>,
    /// Where agents were when the server stopped; holds until panes are listed.
    kept_tabs: BTreeMap<AgentKey, TabId>,
    waiting: VecDeque<(Time, Event)>,
    heard: VecDeque<HookId>,
    heard_set: HashSet<HookId>,
    dead: VecDeque<AgentKey>,
    /// Panes whose newest agent has ended.
    ended_panes: HashSet<PaneKey>,
    handovers: BTreeMap<AgentKey, Handover>,
    /// Jobs whose pane's Claude left while it was at work and they had not taken the work up yet: until when a
    /// word of theirs that they rest means nothing.
    left_to: BTreeMap<AgentKey, Time>,
    /// Where each agent stood in the rows that [`Fleet::changes`] last spoke of.
    places: BTreeMap<AgentKey, Place>,
    ctx: Ctx,
}

/// Where an agent stands among the rows, and all that decides it but panes, layout and handovers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// The number of its row; `None`: it has none.
    row: Option<usize>,
    /// Its tab, by the numbers of the workspace and of the tab in it, if its row is a tab's own.
    tab: Option<(usize, usize)>,
    standing: Standing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Standing {
    pane: Option<PaneKey>,
    listed: bool,
    hidden: bool,
    nested: bool,
    left: bool,
    stopped: bool,
}

/// What has become of the rows since they were last spoken of.
#[derive(Clone, Debug, PartialEq)]
pub enum Changes {
    /// All rows, as by [`Fleet::items`].
    All(Vec<Item>),
    /// The rows stand as they did; these, by their numbers, may say something else now.
    Rows(Vec<(usize, Item)>),
}

impl Changes {
    /// Makes of the rows that were last spoken of those that are now.
    pub fn apply(self, rows: &mut Vec<Item>) {
        match self {
            Self::All(all) => *rows = all,
            Self::Rows(changed) => {
                for (number, row) in changed {
                    if let Some(place) = rows.get_mut(number) {
                        *place = row;
                    }
                }
            }
        }
    }
}

/// A pane's session that went on in a background job.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Handover {
    job: AgentKey,
    /// When the job's own badge counts in any case.
    due: Option<Time>,
    done: bool,
    /// The pane's session was at work when it was last seen there.
    busy: bool,
}

impl Fleet {
    /// A fleet that has seen nothing yet. Until [`Event::RecoveryEnded`] what it finds is no news and
    /// notifies nobody.
    #[must_use]
    pub fn new(host: HostId) -> Self {
        Self {
            host,
            agents: Agents::default(),
            panes: BTreeMap::new(),
            workspaces: Vec::new(),
            restored: BTreeMap::new(),
            kept_tabs: BTreeMap::new(),
            waiting: VecDeque::new(),
            heard: VecDeque::new(),
            heard_set: HashSet::new(),
            dead: VecDeque::new(),
            ended_panes: HashSet::new(),
            handovers: BTreeMap::new(),
            left_to: BTreeMap::new(),
            places: BTreeMap::new(),
            ctx: Ctx {
                effects: Vec::new(),
                next_episode: 0,
                next_ask: 0,
                began: None,
                recovered: None,
                clocks: Clocks::default(),
            },
        }
    }

    /// Takes one event in and says what is to be done. Total: odd input changes nothing.
    pub fn step(&mut self, now: Stamp, event: Event) -> Vec<Effect> {
        self.ctx.began.get_or_insert(now.boot);
        self.ctx.clocks.look(now);
        // A timer that fires late must not let a newer event overtake it.
        self.pass_deadlines(now);
        self.take(now, event);
        // Taken back from the row that was told, told to the row that is shown.
        let mut effects = std::mem::take(&mut self.ctx.effects);
        effects.iter_mut().for_each(|e| self.address_withdrawal(e));
        self.hand_over(now);
        effects.append(&mut self.ctx.effects);
        effects.iter_mut().for_each(|e| self.address_notice(e));
        effects
    }

    fn take(&mut self, now: Stamp, event: Event) {
        match event {
            Event::ProcessFound { agent, process } => {
                if agent.host != self.host || self.dead.contains(&agent) {
                    return;
                }
                if let Some(pane) = &process.pane {
                    self.ended_panes.remove(pane);
                }
                match self.agents.get_mut(&agent) {
                    Some(known) => known.on_found(process),
                    None => {
                        let restored = self.restored.remove(&agent);
                        let new = Agent::new(agent.clone(), process, now, restored, &mut self.ctx);
                        self.agents.insert(agent.clone(), new);
                    }
                }
                self.relate(now);
                self.settle(now, &agent);
                self.retry(now);
            }
            Event::ProcessDied { agent } => self.died(now, agent),
            Event::ProcessStopped { ref agent, stopped } => {
                let agent = agent.clone();
                self.with(now, &agent, event, |a, ctx, _| {
                    a.on_stopped(ctx, now, stopped);
                });
            }
            Event::KeyFileSeen { ref agent } => {
                let agent = agent.clone();
                self.with(now, &agent, event, |a, ctx, _| a.on_key_file(ctx, now));
            }
            Event::ProcessQuiet { ref agent, quiet } => {
                let agent = agent.clone();
                self.with(now, &agent, event, |a, _, _| a.on_quiet(quiet));
            }
            Event::ProcessMissed { agent } => {
                let stuck = self
                    .agents
                    .get(&agent)
                    .is_some_and(|a| net::stuck(a.badge(), a.since(), now.boot));
                if stuck {
                    self.died(now, agent);
                }
            }
            Event::FileRead { ref agent, .. } => {
                let agent = agent.clone();
                self.with(now, &agent, event, |a, ctx, event| {
                    if let Event::FileRead { at, file, .. } = event {
                        a.on_file(ctx, now, at, file);
                    }
                });
                self.retry(now);
            }
            Event::FileRemoved { ref agent } => {
                let agent = agent.clone();
                self.with(now, &agent, event, |a, ctx, _| a.on_file_removed(ctx, now));
            }
            Event::FileUnreadable { agent, why } => {
                if let Some(known) = self.agents.get_mut(&agent) {
                    known.on_file_unreadable(&mut self.ctx, now, &why);
                }
            }
            Event::HookFired { hook } => self.hook(now, hook),
            Event::TranscriptGrew { ref agent, .. } => {
                let agent = agent.clone();
                self.with(now, &agent, event, |a, ctx, event| {
                    if let Event::TranscriptGrew { facts, .. } = event {
                        a.on_transcript(ctx, now, facts);
                    }
                });
            }
            Event::TranscriptRead { agent, request, ok } => {
                if let Some(known) = self.agents.get_mut(&agent) {
                    known.on_transcript_read(now, request, ok);
                    self.settle(now, &agent);
                }
            }
            Event::TranscriptMissing { agent } => {
                if let Some(known) = self.agents.get_mut(&agent) {
                    known.transcript_missing = true;
                }
            }
            Event::Seen { agent, episode } => self.person(now, &agent, episode, |a, ctx| {
                a.on_seen(ctx, now, episode);
            }),
            Event::Dismissed { agent, episode } => self.person(now, &agent, episode, |a, ctx| {
                a.on_dismissed(ctx, now, episode);
            }),
            Event::PanesListed { panes } => {
                self.agents.touch_all();
                self.kept_tabs.clear();
                self.panes = panes.into_iter().map(|p| (p.pane.clone(), p)).collect();
                self.ended_panes.retain(|p| self.panes.contains_key(p));
                self.retry(now);
            }
            Event::LayoutChanged { workspaces } => {
                self.agents.touch_all();
                self.workspaces = workspaces;
                self.retry(now);
            }
            Event::Restored { agent, persisted } => {
                self.agents.touch_all();
                self.ctx.next_episode = self
                    .ctx
                    .next_episode
                    .max(persisted.episode.map_or(0, |e| e.0));
                if !self.agents.contains_key(&agent) && !self.dead.contains(&agent) {
                    if let Some(tab) = &persisted.tab {
                        self.kept_tabs.insert(agent.clone(), tab.clone());
                    }
                    self.restored.insert(agent, persisted);
                }
            }
            Event::RecoveryEnded => {
                self.ctx.recovered.get_or_insert(now.boot);
                // Nobody has seen these processes: they ended while the server was down.
                for agent in std::mem::take(&mut self.restored).into_keys() {
                    self.bury(agent.clone());
                    self.ctx.effects.push(Effect::Forget { agent });
                }
                for agent in self.agents.values_mut() {
                    agent.settle(&mut self.ctx, now);
                }
            }
            Event::DeadlinePassed => {}
        }
    }

    /// When [`Event::DeadlinePassed`] is wanted next, and what for. A function of the state alone.
    #[must_use]
    pub fn deadline(&self) -> Option<(Time, &'static str)> {
        let handovers = self
            .handovers
            .values()
            .filter(|h| !h.done && !self.agents.get(&h.job).is_some_and(Agent::unreadable))
            .filter_map(|h| h.due)
            .chain(self.left_to.values().copied())
            .map(|due| (due, "a parked session's job takes over"));
        self.agents
            .values()
            .filter_map(Agent::deadline)
            .chain(handovers)
            .min()
    }

    /// Whose process the safety net should look for ([`Event::ProcessMissed`]): those busy for so long that
    /// a witness may have lost them.
    #[must_use]
    pub fn long_busy(&self, now: Time) -> Vec<AgentKey> {
        self.agents
            .values()
            .filter(|a| net::stuck(a.badge(), a.since(), now))
            .map(|a| a.key.clone())
            .collect()
    }

    /// The evidence about one agent, newest first; bounded.
    #[must_use]
    pub fn explain(&self, agent: &AgentKey) -> Vec<Evidence> {
        self.agents
            .get(agent)
            .map(|agent| self.face(agent).evidence())
            .unwrap_or_default()
    }

    /// The badges that an agent has shown, newest first, each with the moment it began: the present one and
    /// at most five before it. `None`: no badge.
    #[must_use]
    pub fn history(&self, agent: &AgentKey) -> Vec<(Stamp, Option<Badge>)> {
        self.agents
            .get(agent)
            .map(|agent| self.face(agent).history())
            .unwrap_or_default()
    }

    fn pass_deadlines(&mut self, now: Stamp) {
        let due: Vec<AgentKey> = self
            .agents
            .values()
            .filter(|a| a.deadline().is_some_and(|(at, _)| at <= now.boot))
            .map(|a| a.key.clone())
            .collect();
        for agent in due {
            self.settle(now, &agent);
        }
    }

    fn settle(&mut self, now: Stamp, agent: &AgentKey) {
        if let Some(agent) = self.agents.get_mut(agent) {
            agent.settle(&mut self.ctx, now);
        }
    }

    /// Gives an event to its agent, or keeps it until that agent is found.
    fn with(
        &mut self,
        now: Stamp,
        agent: &AgentKey,
        event: Event,
        tell: impl FnOnce(&mut Agent, &mut Ctx, Event),
    ) {
        match self.agents.get_mut(agent) {
            Some(known) => {
                tell(known, &mut self.ctx, event);
                known.settle(&mut self.ctx, now);
            }
            None if agent.host == self.host && !self.dead.contains(agent) => {
                self.keep(now, event);
            }
            None => {}
        }
    }

    fn keep(&mut self, now: Stamp, event: Event) {
        self.waiting.push_back((now.boot, event));
        while self.waiting.len() > WAITING_MAX
            || self
                .waiting
                .front()
                .is_some_and(|(at, _)| now.boot.since(*at) > WAIT)
        {
            self.waiting.pop_front();
        }
    }

    /// Something new is known about who is who: perhaps somebody now claims what waits.
    fn retry(&mut self, now: Stamp) {
        if self.waiting.is_empty() {
            return;
        }
        for (since, event) in std::mem::take(&mut self.waiting) {
            if now.boot.since(since) > WAIT {
                continue;
            }
            let claimed = match &event {
                Event::HookFired { hook } => self.owner(hook).is_some(),
                Event::ProcessStopped { agent, .. }
                | Event::KeyFileSeen { agent }
                | Event::ProcessQuiet { agent, .. }
                | Event::FileRead { agent, .. }
                | Event::FileRemoved { agent }
                | Event::TranscriptGrew { agent, .. } => self.agents.contains_key(agent),
                Event::ProcessFound { .. }
                | Event::ProcessDied { .. }
                | Event::ProcessMissed { .. }
                | Event::FileUnreadable { .. }
                | Event::TranscriptRead { .. }
                | Event::TranscriptMissing { .. }
                | Event::Seen { .. }
                | Event::Dismissed { .. }
                | Event::PanesListed { .. }
                | Event::LayoutChanged { .. }
                | Event::Restored { .. }
                | Event::RecoveryEnded
                | Event::DeadlinePassed => false,
            };
            if !claimed {
                self.waiting.push_back((since, event));
                continue;
            }
            match event {
                Event::HookFired { hook } => self.give(now, &hook),
                Event::ProcessFound { .. }
                | Event::ProcessDied { .. }
                | Event::ProcessStopped { .. }
                | Event::KeyFileSeen { .. }
                | Event::ProcessQuiet { .. }
                | Event::ProcessMissed { .. }
                | Event::FileRead { .. }
                | Event::FileRemoved { .. }
                | Event::FileUnreadable { .. }
                | Event::TranscriptGrew { .. }
                | Event::TranscriptRead { .. }
                | Event::TranscriptMissing { .. }
                | Event::Seen { .. }
                | Event::Dismissed { .. }
                | Event::PanesListed { .. }
                | Event::LayoutChanged { .. }
                | Event::Restored { .. }
                | Event::RecoveryEnded
                | Event::DeadlinePassed => self.take(now, event),
            }
        }
    }

    fn died(&mut self, now: Stamp, agent: AgentKey) {
        self.bury(agent.clone());
        if let Some(handover) = self.handovers.remove(&agent) {
            self.leave_to(now, &handover);
        }
        match self.agents.remove(&agent) {
            Some(mut gone) => {
                gone.on_died(&mut self.ctx, now);
                if let Some(pane) = gone.process.pane {
                    self.ended_panes.insert(pane);
                }
                self.relate(now);
            }
            None => {
                if self.restored.remove(&agent).is_some() {
                    self.ctx.effects.push(Effect::Forget { agent });
                }
            }
        }
    }

    fn bury(&mut self, agent: AgentKey) {
        if !self.dead.contains(&agent) {
            self.dead.push_back(agent);
        }
        if self.dead.len() > DEAD_MAX {
            self.dead.pop_front();
        }
    }

    fn person(
        &mut self,
        now: Stamp,
        agent: &AgentKey,
        episode: EpisodeId,
        tell: impl FnOnce(&mut Agent, &mut Ctx),
    ) {
        // A parked session shows its job's badge: the episode is the job's.
        let job = self.handovers.get(agent).map(|h| h.job.clone());
        let whose = [Some(agent.clone()), job]
            .into_iter()
            .flatten()
            .find(|key| {
                self.agents
                    .get(key)
                    .and_then(Agent::episode)
                    .is_some_and(|e| e.id == episode)
            });
        if let Some(key) = whose
            && let Some(known) = self.agents.get_mut(&key)
        {
            tell(known, &mut self.ctx);
            known.settle(&mut self.ctx, now);
        }
    }
}

// ---- whom a hook concerns ----------------------------------------------------------------------------

impl Fleet {
    fn hook(&mut self, now: Stamp, hook: Box<Hook>) {
        if let Some(id) = &hook.id {
            if !self.heard_set.insert(id.clone()) {
                return;
            }
            self.heard.push_back(id.clone());
            if self.heard.len() > HOOK_IDS_MAX
                && let Some(old) = self.heard.pop_front()
            {
                self.heard_set.remove(&old);
            }
        }
        if self.owner(&hook).is_some() {
            self.give(now, &hook);
        } else if !hook.agent.as_ref().is_some_and(|a| self.dead.contains(a)) {
            self.keep(now, Event::HookFired { hook });
        }
    }

    fn give(&mut self, now: Stamp, hook: &Hook) {
        if let Some(owner) = self.owner(hook)
            && let Some(agent) = self.agents.get_mut(&owner)
        {
            agent.on_hook(&mut self.ctx, now, hook);
            agent.settle(&mut self.ctx, now);
        }
    }

    /// By process; else by pane and conversation; else by conversation. Never one that was not born yet. Never by pane
    /// alone where the payload names a conversation that is not that agent's: it is a nested agent's, whose
    /// environment is its parent's.
    fn owner(&self, hook: &Hook) -> Option<AgentKey> {
        if let Some(agent) = &hook.agent {
            return self.agents.contains_key(agent).then(|| agent.clone());
        }
        let living = || {
            let agents = self.agents.values();
            agents.filter(|a| a.key.born() <= hook.at.boot)
        };
        let by_conversation = hook.conversation.as_ref().and_then(|conversation| {
            living()
                .filter(|a| !hook.job || a.process.pane.is_none() || a.job().is_some())
                .filter(|a| a.conversation.as_ref() == Some(conversation))
                .max_by_key(|a| (a.process.pane == hook.pane, a.found))
        });
        if let Some(agent) = by_conversation {
            return Some(agent.key.clone());
        }
        if hook.job {
            return None;
        }
        let in_pane = hook.pane.as_ref().and_then(|pane| {
            first_of(living().filter(|a| a.process.pane.as_ref() == Some(pane)))
        })?;
        let fits = match (&hook.conversation, &in_pane.conversation) {
            (None, _) | (Some(_), None) => true,
            (Some(_), Some(_)) => match &hook.kind {
                HookKind::SessionStart { source } => match source {
                    StartSource::Resume | StartSource::Clear | StartSource::Fork => true,
                    StartSource::Startup | StartSource::Compact | StartSource::Other(_) => false,
                },
                HookKind::SessionEnd { .. }
                | HookKind::Prompt { .. }
                | HookKind::ToolStarted { .. }
                | HookKind::ToolEnded { .. }
                | HookKind::ToolFailed { .. }
                | HookKind::PermissionRequested { .. }
                | HookKind::Notified { .. }
                | HookKind::FormAsked { .. }
                | HookKind::FormAnswered
                | HookKind::Stopped { .. }
                | HookKind::StopFailed { .. }
                | HookKind::SubagentStarted { .. }
                | HookKind::SubagentStopped { .. }
                | HookKind::CompactStarted { .. }
                | HookKind::CompactEnded
                | HookKind::CwdChanged { .. }
                | HookKind::StatusLine { .. }
                | HookKind::Unknown { .. } => false,
            },
        };
        fits.then(|| in_pane.key.clone())
    }

    /// Tells every agent whether the one that started it lives.
    fn relate(&mut self, now: Stamp) {
        let parents: HashSet<AgentKey> = self.agents.keys().cloned().collect();
        for agent in self.agents.values_mut() {
            let parent = agent.process.parent_agent.as_ref();
            let nested = parent.is_some_and(|p| *p != agent.key && parents.contains(p));
            if agent.started_by_agent != nested {
                agent.started_by_agent = nested;
                agent.settle(&mut self.ctx, now);
            }
        }
    }
}

/// Of several agents the one that stands for them: in front, alive, the eldest.
fn first_of<'a>(agents: impl Iterator<Item = &'a Agent>) -> Option<&'a Agent> {
    agents
        .filter(|a| !a.hidden() && !a.nested())
        .min_by_key(|a| (a.has_left(), a.stopped, a.key.start, a.key.pid))
}

// ---- sessions that go on elsewhere -------------------------------------------------------------------

impl Fleet {
    /// Ties parked sessions to their jobs, and decides when the job's own badge is shown for both.
    fn hand_over(&mut self, now: Stamp) {
        let parked: Vec<(AgentKey, Arc<str>, bool, bool)> = self
            .agents
            .values()
            .filter_map(|a| {
                let job = a.parked_job()?.clone();
                let busy = matches!(a.badge(), Some(Badge::Busy(_)));
                Some((a.key.clone(), job, busy, a.parked_when_found()))
            })
            .collect();
        self.left_to.retain(|job, due| {
            let job = self.agents.get(job);
            now.boot < *due
                && job.is_some_and(|job| matches!(job.badge(), None | Some(Badge::Idle)))
        });
        self.handovers
            .retain(|key, _| parked.iter().any(|(pane, ..)| pane == key));
        for (pane, job, busy, when_found) in parked {
            let has_left = self.agents.get(&pane).is_some_and(Agent::has_left);
            let Some(successor) = self.agents.values().find(|a| {
                a.job() == Some(&job)
                    && a.parked_job().is_none()
                    && a.key != pane
                    && !a.hidden()
                    && !a.has_left()
            }) else {
                if self.handovers.remove(&pane).is_some()
                    && let Some(parked) = self.agents.get_mut(&pane)
                {
                    parked.on_job_ended(&mut self.ctx, now);
                    parked.settle(&mut self.ctx, now);
                }
                continue;
            };
            let handover = self.handovers.entry(pane).or_insert_with(|| Handover {
                job: successor.key.clone(),
                due: None,
                done: false,
                busy: false,
            });
            if handover.done {
                continue;
            }
            if has_left {
                let left = handover.clone();
                handover.busy = false;
                self.leave_to(now, &left);
                continue;
            }
            handover.busy = busy;
            let working = match successor.badge() {
                Some(Badge::Busy(_) | Badge::NeedsInput(_) | Badge::Review(_)) => true,
                Some(Badge::Idle) => !busy,
                Some(Badge::Unknown) => when_found,
                None => false,
            };
            if handover.due.is_none() && successor.reported() {
                handover.due = Some(now.boot + HANDOVER);
            }
            let waited = handover.due.is_some_and(|due| now.boot >= due);
            handover.done = working || waited && !successor.unreadable();
        }
    }

    /// The pane's Claude has left, and the job is about to take its work up.
    fn leave_to(&mut self, now: Stamp, handover: &Handover) {
        if handover.busy && !handover.done {
            let due = handover.due.unwrap_or(now.boot + HANDOVER);
            self.left_to.entry(handover.job.clone()).or_insert(due);
        }
    }

    /// The agent whose badge stands for this one's. A session that has left shows none; its job is a row of its own.
    fn face<'a>(&'a self, agent: &'a Agent) -> &'a Agent {
        self.handovers
            .get(&agent.key)
            .filter(|h| h.done && !agent.has_left())
            .and_then(|h| self.agents.get(&h.job))
            .unwrap_or(agent)
    }

    /// The living pane whose session this job is.
    fn pane_of(&self, job: &AgentKey) -> Option<&AgentKey> {
        self.handovers
            .iter()
            .find(|(_, h)| h.job == *job)
            .map(|(pane, _)| pane)
            .filter(|pane| {
                let agent = self.agents.get(pane);
                agent.is_some_and(|a| !a.has_left() && !a.hidden() && !a.nested())
            })
    }

    /// People are told about the row they see: a parked session's, not its job's.
    fn address_notice(&self, effect: &mut Effect) {
        let Effect::Notify {
            agent,
            episode,
            badge,
            ..
        } = effect
        else {
            return;
        };
        // Several words may have been heard in this one step: the last of them is what is shown.
        if let Some(told) = self.agents.get(agent)
            && told.episode().is_some_and(|shown| shown.id == *episode)
            && let Some(shown) = told.badge()
        {
            badge.clone_from(shown);
        }
        if let Some(pane) = self.pane_of(agent) {
            agent.clone_from(pane);
        }
    }

    fn address_withdrawal(&self, effect: &mut Effect) {
        if let Effect::Withdraw { agent, .. } = effect
            && let Some(pane) = self.pane_of(agent)
        {
            agent.clone_from(pane);
        }
    }
}

// ---- rows --------------------------------------------------------------------------------------------

impl Fleet {
    /// All rows: tabs in the order of the layout, then agents outside tabs (or beside the first of their
    /// tab), the eldest first.
    #[must_use]
    pub fn items(&self) -> Vec<Item> {
        let mut in_session: HashMap<&str, Vec<&Agent>> = HashMap::new();
        for agent in self.agents.values() {
            if let Some(session) = self.session_of(agent) {
                in_session.entry(session).or_default().push(agent);
            }
        }
        let mut panes: HashMap<&str, &PaneFacts> = HashMap::new();
        for pane in self.panes.values() {
            panes.entry(&*pane.session).or_insert(pane);
        }

        let mut items = Vec::new();
        let mut shown: HashSet<&AgentKey> = HashSet::new();
        for workspace in &self.workspaces {
            for tab in &workspace.tabs {
                let session = tab.id.as_str();
                let first = first_of(in_session.get(session).into_iter().flatten().copied());
                shown.extend(first.map(|agent| &agent.key));
                let pane = panes.get(session).copied();
                items.push(match (first, self.kept_in(&tab.id)) {
                    (None, Some(kept)) => {
                        self.tab_item(workspace, tab, pane, Some(self.kept_item(kept)))
                    }
                    (first, _) => {
                        self.tab_item(workspace, tab, pane, first.map(|a| self.agent_item(a)))
                    }
                });
            }
        }
        let mut others: Vec<&Agent> = self
            .agents
            .values()
            .filter(|a| !shown.contains(&a.key) && self.listed(a))
            .collect();
        others.sort_by_key(|a| (a.key.start, a.key.pid));
        for agent in others {
            items.push(self.placed(agent, self.agent_item(agent)));
        }
        items
    }

    /// What of [`Self::items`] may be another since this was last asked; the first time, all. Most events touch one
    /// agent, and looking at all others takes longer than everything else that is done for an event.
    pub fn changes(&mut self) -> Changes {
        let touched = self.agents.touched();
        // A parked session's row is made of two agents, and whose row a job has depends on the time.
        let alone = self.handovers.is_empty() && self.left_to.is_empty();
        if let Touched::These(touched) = touched
            && alone
            && let Some(rows) = self.rows_of(&touched)
        {
            return Changes::Rows(rows);
        }
        let items = self.items();
        self.places = self.places(&items);
        if !alone {
            self.agents.touch_all();
        }
        Changes::All(items)
    }

    /// The rows of these agents; `None`: one of them may stand elsewhere now.
    fn rows_of(&self, agents: &[AgentKey]) -> Option<Vec<(usize, Item)>> {
        let mut rows = Vec::with_capacity(agents.len());
        for key in agents {
            let (agent, place) = (self.agents.get(key)?, self.places.get(key)?);
            if place.standing != self.standing(agent) {
                return None;
            }
            let Some(row) = place.row else {
                continue;
            };
            let item = self.agent_item(agent);
            rows.push((
                row,
                match place.tab {
                    Some((workspace, tab)) => {
                        let workspace = self.workspaces.get(workspace)?;
                        let tab = workspace.tabs.get(tab)?;
                        let mut panes = self.panes.values();
                        // It fills in for what an agent hardly ever lacks.
                        let pane = (item.cwd.is_none() || item.title.is_empty())
                            .then(|| panes.find(|pane| *pane.session == *tab.id.0))
                            .flatten();
                        self.tab_item(workspace, tab, pane, Some(item))
                    }
                    None => self.placed(agent, item),
                },
            ));
        }
        Some(rows)
    }

    fn places(&self, items: &[Item]) -> BTreeMap<AgentKey, Place> {
        let mut rows: HashMap<&AgentKey, usize> = HashMap::new();
        for (row, item) in items.iter().enumerate() {
            if let Some(agent) = &item.agent {
                rows.insert(agent, row);
            }
        }
        let tabs = self.workspaces.iter().enumerate();
        let tabs: Vec<(usize, usize)> = tabs
            .flat_map(|(number, workspace)| (0..workspace.tabs.len()).map(move |tab| (number, tab)))
            .collect();
        self.agents
            .iter()
            .map(|(key, agent)| {
                let row = rows.get(key).copied();
                let place = Place {
                    row,
                    // Tabs come first, in the order of the layout.
                    tab: row.and_then(|row| tabs.get(row).copied()),
                    standing: self.standing(agent),
                };
                (key.clone(), place)
            })
            .collect()
    }

    fn standing(&self, agent: &Agent) -> Standing {
        Standing {
            pane: agent.process.pane.clone(),
            listed: self.listed(agent),
            hidden: agent.hidden(),
            nested: agent.nested(),
            left: agent.has_left(),
            stopped: agent.stopped,
        }
    }

    /// All workspaces in the order of the layout, each with its most urgent badge (rule 7).
    #[must_use]
    pub fn workspaces(&self) -> Vec<WorkspaceView> {
        let items = self.items();
        self.workspaces_of(&items.iter().collect::<Vec<_>>())
    }

    /// As [`Self::workspaces`], from the rows as [`Self::items`] has just said them.
    #[must_use]
    pub fn workspaces_of(&self, items: &[&Item]) -> Vec<WorkspaceView> {
        self.workspaces
            .iter()
            .map(|workspace| {
                let badge = items
                    .iter()
                    .filter(|i| i.workspace.as_ref() == Some(&workspace.id))
                    .filter_map(|item| rolled_up(item))
                    .max_by_key(urgency);
                WorkspaceView {
                    id: workspace.id.clone(),
                    name: workspace.name.clone(),
                    dir: workspace.dir.clone(),
                    tabs: workspace.tabs.iter().map(|t| t.id.clone()).collect(),
                    badge,
                }
            })
            .collect()
    }

    /// A row of its own, and the tab that its agent is in, if any.
    fn placed(&self, agent: &Agent, mut item: Item) -> Item {
        if let Some((workspace, tab)) = self.place_of(agent) {
            item.tab = Some(tab.id.clone());
            item.workspace = Some(workspace.id.clone());
        }
        item
    }

    /// The tab that an agent is in, if it is in one of ours.
    #[must_use]
    pub fn tab_of(&self, agent: &AgentKey) -> Option<&TabId> {
        let (_, tab) = self.place_of(self.agents.get(agent)?)?;
        Some(&tab.id)
    }

    fn place_of(&self, agent: &Agent) -> Option<(&WorkspaceFacts, &TabFacts)> {
        let session = self.session_of(agent)?;
        self.workspaces
            .iter()
            .flat_map(|workspace| workspace.tabs.iter().map(move |tab| (workspace, tab)))
            .find(|(_, tab)| *tab.id.0 == *session)
    }

    /// Gets a row of its own although no tab's first agent.
    fn listed(&self, agent: &Agent) -> bool {
        !agent.hidden()
            && !agent.nested()
            && self.face(agent).badge().is_some()
            && self.pane_of(&agent.key).is_none()
            && !self.left_to.contains_key(&agent.key)
    }

    /// The tmux session its pane is in now; a tab's id if it is one of ours. Before the first listing after a
    /// restart it is where it was.
    fn session_of(&self, agent: &Agent) -> Option<&str> {
        if let Some(tab) = self.kept_tabs.get(&agent.key) {
            return Some(tab.as_str());
        }
        let pane = self.panes.get(agent.process.pane.as_ref()?)?;
        Some(&*pane.session)
    }

    /// The agent that was in a tab when the server stopped, and has not been looked for yet.
    fn kept_in(&self, tab: &TabId) -> Option<(&AgentKey, &Persisted)> {
        self.restored
            .iter()
            .find(|(_, kept)| kept.tab.as_ref() == Some(tab))
    }

    /// Its row until then: as it was, but whoever was busy may have ended meanwhile, and what a compaction hid before
    /// anybody was to be told of it has no episode yet.
    fn kept_item(&self, (agent, kept): (&AgentKey, &Persisted)) -> Item {
        let badge = match &kept.badge {
            Badge::Busy(_) | Badge::Unknown => Badge::Unknown,
            Badge::NeedsInput(_) | Badge::Review(_) if kept.episode.is_none() => Badge::Unknown,
            Badge::Idle | Badge::NeedsInput(_) | Badge::Review(_) => kept.badge.clone(),
        };
        Item {
            agent: Some(agent.clone()),
            since: kept.since,
            presence: Presence::Running,
            attention: matches!(badge, Badge::NeedsInput(_) | Badge::Review(_)),
            episode: kept.episode,
            badge: Some(badge),
            ..self.bare_item()
        }
    }

    fn bare_item(&self) -> Item {
        Item {
            id: Arc::from(""),
            host: self.host.clone(),
            tab: None,
            workspace: None,
            agent: None,
            pane: None,
            conversation: None,
            cwd: None,
            badge: None,
            since: Stamp::default(),
            presence: Presence::None,
            title: Arc::from(""),
            last_message: None,
            label: None,
            context_tokens: None,
            context_window: None,
            model: None,
            hooks: false,
            attention: false,
            episode: None,
        }
    }

    fn tab_item(
        &self,
        workspace: &WorkspaceFacts,
        tab: &TabFacts,
        pane: Option<&PaneFacts>,
        agent: Option<Item>,
    ) -> Item {
        let empty = agent.is_none();
        let mut item = agent.unwrap_or_else(|| Item {
            presence: match pane {
                Some(pane) if self.ended_panes.contains(&pane.pane) => Presence::Gone,
                Some(_) | None => Presence::None,
            },
            ..self.bare_item()
        });
        item.id = Arc::clone(&tab.id.0);
        item.tab = Some(tab.id.clone());
        item.workspace = Some(workspace.id.clone());
        item.cwd = item
            .cwd
            // tmux has no path for a pane whose shell it is just starting.
            .or_else(|| pane.map(|p| p.path.clone()).filter(|path| !path.is_empty()))
            .or_else(|| Some(tab.cwd.clone()));
        if let Some(name) = &tab.name {
            item.title = name.clone();
        } else if empty || item.title.is_empty() {
            item.title = match (pane, &item.cwd) {
                (Some(pane), cwd) => titled(&pane.command, cwd.as_deref().unwrap_or(&pane.path)),
                (None, Some(cwd)) => titled("shell", cwd),
                (None, None) => Arc::from("shell"),
            };
        }
        item
    }

    fn agent_item(&self, agent: &Agent) -> Item {
        let face = self.face(agent);
        let badge = face.badge().cloned();
        let presence = agent.presence();
        let episode = face.episode();
        let wants = matches!(badge, Some(Badge::NeedsInput(_) | Badge::Review(_)));
        let file = face.file.as_ref();
        let cwd = face
            .cwd
            .as_ref()
            .map(|(_, cwd)| cwd.clone())
            .or_else(|| file.and_then(|f| f.cwd.clone()))
            .or_else(|| face.process.cwd.clone());
        let title = [face, agent]
            .into_iter()
            .find_map(|a| {
                a.title
                    .clone()
                    .or_else(|| a.first_prompt.as_ref().map(|(_, words)| words.clone()))
            })
            .or_else(|| file.and_then(|f| f.name.clone()))
            .unwrap_or_else(|| titled("claude", cwd.as_deref().unwrap_or_default()));
        Item {
            id: Arc::from(agent.key.to_string()),
            host: self.host.clone(),
            tab: None,
            workspace: None,
            agent: Some(agent.key.clone()),
            pane: agent.process.pane.clone(),
            conversation: face
                .conversation
                .clone()
                .or_else(|| agent.conversation.clone()),
            cwd,
            badge,
            since: face.since(),
            presence,
            title,
            last_message: face
                .last_message
                .clone()
                .or_else(|| agent.last_message.clone()),
            label: face.label(),
            context_tokens: face.context_tokens.or(agent.context_tokens),
            model: face.model.clone().or_else(|| agent.model.clone()),
            context_window: face.context_window(),
            hooks: !agent.hooks_silent && (agent.hooks_heard || agent.process.hooks == Some(true)),
            attention: wants
                && presence != Presence::Suspended
                && episode.is_some_and(|e| !e.silenced),
            episode: episode.map(|e| e.id),
        }
    }
}

/// A command and where it runs: `vim · notes`.
fn titled(command: &str, dir: &str) -> Arc<str> {
    let last = dir.rsplit('/').find(|part| !part.is_empty());
    match last {
        Some(last) => Arc::from(format!("{command} · {last}")),
        None => Arc::from(command),
    }
}

/// What a row adds to its workspace: a suspended agent is drawn grey and counts as idle.
fn rolled_up(item: &Item) -> Option<Badge> {
    let badge = item.badge.clone()?;
    Some(match item.presence {
        Presence::Suspended => Badge::Idle,
        Presence::None
        | Presence::Starting
        | Presence::Running
        | Presence::Elsewhere
        | Presence::Gone => badge,
    })
}

/// Rule 7: needs-input, review failed, review, busy, unknown, idle.
fn urgency(badge: &Badge) -> u8 {
    match badge {
        Badge::NeedsInput(_) => 5,
        Badge::Review(outcome) if outcome.error.is_some() => 4,
        Badge::Review(_) => 3,
        Badge::Busy(_) => 2,
        Badge::Unknown => 1,
        Badge::Idle => 0,
    }
}

#[cfg(test)]
mod tests;
