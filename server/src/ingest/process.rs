//! The process witness: which Claude Code processes exist, whose they are, and when they stop or end.
//! Looks only at processes that something points to (a file in `sessions/`, a hook, a pane of ours), never
//! at all of `/proc`. Dead is dead, whatever else says; what can't be read changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use purplemux_core::witness::Process;
use purplemux_core::{AgentKey, Event, HostId, PaneKey, Time, TmuxServer};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::AbortHandle;
use tracing::{debug, warn};

use crate::hub::{self, Stopped};
use crate::ingest::session_file;
use crate::{clock, sys, task};

/// Ctrl-Z is told by no file and no hook; half a second keeps it within its deadline of one.
const STATE: Duration = Duration::from_millis(500);
/// A process that used no CPU for this long waits for somebody.
const QUIET: Duration = Duration::from_secs(1);
/// From a pane's shell down to a Claude started by a script of a script.
const DEPTH_MAX: usize = 8;
/// A wrapper may start many; more processes than this below one pane are not walked.
const TREE_MAX: usize = 256;
/// Questions that may wait; askers wait beyond that.
const QUEUE: usize = 256;

/// A pane as the tree walk needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaneRoot {
    /// Which pane.
    pub pane: PaneKey,
    /// The process tmux started in it.
    pub pid: u32,
    /// `#{pane_current_command}`.
    pub command: Arc<str>,
}

/// A way to the process witness.
#[derive(Clone, Debug)]
pub struct Processes {
    commands: mpsc::Sender<Command>,
    quiet_wanted: Arc<Mutex<BTreeSet<AgentKey>>>,
    announced: Arc<Mutex<BTreeSet<AgentKey>>>,
    claude_dirs: Arc<ClaudeDirs>,
}

/// Claude's directories, as processes show them. Leaf data: filled by one task, read by another.
#[derive(Debug, Default)]
pub struct ClaudeDirs {
    known: Mutex<BTreeSet<PathBuf>>,
    /// Rings when one was added.
    pub added: Notify,
}

impl ClaudeDirs {
    /// Adds one; rings if it is new.
    pub fn add(&self, dir: PathBuf) {
        let new = lock(&self.known).insert(dir);
        if new {
            self.added.notify_one();
        }
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Vec<PathBuf> {
        lock(&self.known).iter().cloned().collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Both sets stay whole whatever their holder did when it panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who says that a process is a Claude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Its own status file or our own memory, by its start time.
    Believed,
    /// Anybody: the process itself or its status file must say so too.
    Checked,
}

#[derive(Debug)]
enum Command {
    Look {
        pid: u32,
        start: Option<u64>,
        word: Word,
        answer: oneshot::Sender<Option<AgentKey>>,
    },
    Adopt {
        agent: AgentKey,
        answer: oneshot::Sender<()>,
    },
    Panes(Vec<PaneRoot>),
    LookAround,
    Ended(AgentKey),
}

/// The witness's task, not yet running.
#[derive(Debug)]
pub struct ProcessTask {
    commands: mpsc::Receiver<Command>,
    own: Processes,
    host: HostId,
    home: PathBuf,
}

impl Processes {
    /// Makes the way and the task that answers on it.
    #[must_use]
    pub fn new(host: HostId, home: PathBuf) -> (Self, ProcessTask) {
        let (sender, commands) = mpsc::channel(QUEUE);
        let own = Self {
            commands: sender,
            quiet_wanted: Arc::default(),
            announced: Arc::default(),
            claude_dirs: Arc::default(),
        };
        let task = ProcessTask {
            commands,
            own: own.clone(),
            host,
            home,
        };
        (own, task)
    }

    /// Is this pid a living Claude? If so it is watched from now on, and `ProcessFound` is in the hub's
    /// inbox before this returns. With `start` (from its status file) it must have started then, and needs
    /// no other sign of being a Claude.
    pub async fn look(&self, pid: u32, start: Option<u64>) -> Option<AgentKey> {
        self.ask(pid, start, Word::Believed).await
    }

    /// Whether it was announced and its end was not: the usual case of a hook, a thousand times a second,
    /// answered without asking the task. That it lives now is for the caller to see.
    #[must_use]
    pub fn is_announced(&self, agent: &AgentKey) -> bool {
        lock(&self.announced).contains(agent)
    }

    /// As [`Self::look`], for a process that a hook names: whoever holds the token can name any.
    pub async fn look_named(&self, pid: u32, start: u64) -> Option<AgentKey> {
        self.ask(pid, Some(start), Word::Checked).await
    }

    async fn ask(&self, pid: u32, start: Option<u64>, word: Word) -> Option<AgentKey> {
        let (answer, answered) = oneshot::channel();
        let command = Command::Look {
            pid,
            start,
            word,
            answer,
        };
        self.commands.send(command).await.ok()?;
        answered.await.ok()?
    }

    /// Takes an agent over from before the restart: `ProcessFound` or `ProcessDied` is in the hub's inbox
    /// before this returns.
    pub async fn adopt(&self, agent: AgentKey) {
        let (answer, answered) = oneshot::channel();
        if self
            .commands
            .send(Command::Adopt { agent, answer })
            .await
            .is_ok()
        {
            // An error means that the witness is stopping.
            drop(answered.await);
        }
    }

    /// The panes as tmux lists them now.
    pub async fn panes(&self, panes: Vec<PaneRoot>) {
        // An error means that the witness is stopping.
        drop(self.commands.send(Command::Panes(panes)).await);
    }

    /// For the safety net: looks again at who is who, and for Claudes that nothing has pointed to.
    pub async fn look_around(&self) {
        // An error means that the witness is stopping.
        drop(self.commands.send(Command::LookAround).await);
    }

    /// Reports whether an agent uses the CPU, once a second while `on`. Never waits.
    pub fn watch_cpu(&self, agent: AgentKey, on: bool) {
        let mut wanted = lock(&self.quiet_wanted);
        if on {
            wanted.insert(agent);
        } else {
            wanted.remove(&agent);
        }
    }

    /// Where Claude keeps its files, as far as processes have shown.
    #[must_use]
    pub fn claude_dirs(&self) -> Arc<ClaudeDirs> {
        Arc::clone(&self.claude_dirs)
    }
}

impl ProcessTask {
    /// Answers until the hub is gone.
    pub async fn run(self, hub: hub::Handle) {
        let mut witness = Witness {
            hub,
            own: self.own,
            host: self.host,
            home: self.home,
            panes: Vec::new(),
            agents: BTreeMap::new(),
        };
        let mut commands = self.commands;
        let mut next_state = clock::boot() + STATE;
        loop {
            let done = tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => witness.answer(command).await,
                    None => return,
                },
                () = clock::reached(next_state), if !witness.agents.is_empty() => {
                    next_state = clock::boot() + STATE;
                    witness.look_at_states().await
                }
            };
            if let Err(Stopped) = done {
                return;
            }
        }
    }
}

struct Tracked {
    process: Process,
    stopped: bool,
    /// When and with how many ticks a second of quiet began to be measured.
    cpu: Option<(Time, u64)>,
    exit: Option<AbortHandle>,
}

impl Drop for Tracked {
    fn drop(&mut self) {
        if let Some(exit) = &self.exit {
            exit.abort();
        }
    }
}

struct Witness {
    hub: hub::Handle,
    own: Processes,
    host: HostId,
    home: PathBuf,
    panes: Vec<PaneRoot>,
    agents: BTreeMap<AgentKey, Tracked>,
}

impl Witness {
    async fn answer(&mut self, command: Command) -> Result<(), Stopped> {
        match command {
            Command::Look {
                pid,
                start,
                word,
                answer,
            } => {
                let found = match word {
                    Word::Checked if !self.shows_itself(pid, start) => None,
                    Word::Checked | Word::Believed => self.look(pid, start).await?,
                };
                task::answer(answer, found);
            }
            Command::Adopt { agent, answer } => {
                let found = if agent.host == self.host {
                    self.look(agent.pid, Some(agent.start)).await?
                } else {
                    None
                };
                if found.is_none() {
                    self.hub.send(Event::ProcessDied { agent }).await?;
                }
                task::answer(answer, ());
            }
            Command::Panes(panes) => self.take_panes(panes).await?,
            Command::LookAround => self.look_around().await?,
            Command::Ended(agent) => self.died(agent).await?,
        }
        Ok(())
    }

    async fn look(&mut self, pid: u32, start: Option<u64>) -> Result<Option<AgentKey>, Stopped> {
        if let Some(start) = start {
            // The usual case, a thousand times a second: it is known and lives.
            let agent = AgentKey {
                host: self.host.clone(),
                pid,
                start,
            };
            if self.agents.contains_key(&agent)
                && sys::stat(pid).is_some_and(|stat| stat.start == start && !stat.is_dead())
            {
                return Ok(Some(agent));
            }
        }
        // Parents first, so that a nested agent's parent is known when it is announced.
        let mut found = self.describe(pid, start);
        let Some((agent, ancestors)) = found.take() else {
            return Ok(None);
        };
        if self.agents.contains_key(&agent) {
            return Ok(Some(agent));
        }
        for pid in ancestors.into_iter().rev() {
            if let Some((ancestor, _)) = self.describe(pid, None) {
                self.track(ancestor).await?;
            }
        }
        self.track(agent.clone()).await?;
        Ok(self.agents.contains_key(&agent).then_some(agent))
    }

    /// Whether this process is a Claude by its own name or by a status file of its own.
    fn shows_itself(&self, pid: u32, start: Option<u64>) -> bool {
        let Some(stat) = sys::stat(pid).filter(|stat| start.is_none_or(|at| at == stat.start))
        else {
            return false;
        };
        let agent = AgentKey {
            host: self.host.clone(),
            pid,
            start: stat.start,
        };
        if self.agents.contains_key(&agent) || sys::is_claude(pid, &stat) {
            return true;
        }
        let pane = self.process(&agent, stat.parent).pane;
        let ours = pane.is_some_and(|pane| self.owns(&pane));
        claude_dir(pid, ours).is_some_and(|dir| {
            session_file::speaks_of(&dir.join(format!("sessions/{pid}.json")), pid, stat.start)
        })
    }

    /// The agent that `pid` is, with the ancestors that may be agents too, nearest first.
    fn describe(&self, pid: u32, start: Option<u64>) -> Option<(AgentKey, Vec<u32>)> {
        let stat = sys::stat(pid).filter(|stat| !stat.is_dead())?;
        match start {
            Some(start) if start != stat.start => return None,
            Some(_) => {}
            None if !sys::is_claude(pid, &stat) => return None,
            None => {}
        }
        let agent = AgentKey {
            host: self.host.clone(),
            pid,
            start: stat.start,
        };
        let ancestors = ancestors(stat.parent)
            .filter(|(pid, stat)| sys::is_claude(*pid, stat))
            .map(|(pid, _)| pid)
            .collect();
        Some((agent, ancestors))
    }

    async fn track(&mut self, agent: AgentKey) -> Result<(), Stopped> {
        if self.agents.contains_key(&agent) {
            return Ok(());
        }
        let exit = match watch_exit(agent.pid) {
            Ok(exit) => exit,
            Err(why) => {
                // The state check twice a second sees the end too, only later.
                warn!(%agent, "no pidfd: {why}");
                None
            }
        };
        // Opened first, compared after: the pid can't be another's from here on.
        let Some(stat) = sys::stat(agent.pid).filter(|stat| stat.start == agent.start) else {
            return Ok(());
        };
        if stat.is_dead() {
            return Ok(());
        }
        let process = self.process(&agent, stat.parent);
        let ours = process.pane.as_ref().is_some_and(|pane| self.owns(pane));
        if let Some(dir) = claude_dir(agent.pid, ours) {
            self.own.claude_dirs.add(dir);
        }
        let abort = exit.map(|fd| self.await_exit(agent.clone(), fd));
        debug!(%agent, ?process, "a Claude process");
        let tracked = Tracked {
            process: process.clone(),
            stopped: false,
            cpu: None,
            exit: abort,
        };
        self.agents.insert(agent.clone(), tracked);
        let found = Event::ProcessFound {
            agent: agent.clone(),
            process,
        };
        self.hub.send(found).await?;
        // Only now: whoever finds it here sends what comes after it.
        lock(&self.own.announced).insert(agent);
        Ok(())
    }

    fn process(&self, agent: &AgentKey, parent: u32) -> Process {
        let mut pane = self.pane_rooted_at(agent.pid);
        let mut parent_agent = None;
        for (pid, stat) in ancestors(parent) {
            let key = AgentKey {
                host: self.host.clone(),
                pid,
                start: stat.start,
            };
            if parent_agent.is_none() && self.agents.contains_key(&key) {
                parent_agent = Some(key);
            }
            pane = pane.or_else(|| self.pane_rooted_at(pid));
        }
        let pane = pane.or_else(|| Some(foreign_pane(agent.pid, &self.host)?.pane));
        Process {
            pane,
            parent_agent,
            cwd: sys::directory(agent.pid).map(|dir| Arc::from(dir.to_string_lossy())),
            hooks: has_our_hooks(agent.pid, &self.home),
        }
    }

    fn owns(&self, pane: &PaneKey) -> bool {
        self.panes
            .iter()
            .any(|root| root.pane.server == pane.server)
    }

    fn pane_rooted_at(&self, pid: u32) -> Option<PaneKey> {
        let root = self.panes.iter().find(|root| root.pid == pid)?;
        Some(root.pane.clone())
    }

    fn await_exit(&self, agent: AgentKey, exit: AsyncFd<OwnedFd>) -> AbortHandle {
        let commands = self.own.commands.clone();
        task::spawn("process exit", async move {
            // A pidfd becomes readable when its process ends, and never before.
            match exit.readable().await {
                Ok(_) => drop(commands.send(Command::Ended(agent)).await),
                Err(why) => warn!(%agent, "the pidfd failed: {why}"),
            }
        })
        .abort_handle()
    }

    async fn died(&mut self, agent: AgentKey) -> Result<(), Stopped> {
        lock(&self.own.announced).remove(&agent);
        if self.agents.remove(&agent).is_none() {
            return Ok(());
        }
        debug!(%agent, "ended");
        self.own.watch_cpu(agent.clone(), false);
        self.hub.send(Event::ProcessDied { agent }).await
    }

    async fn look_at_states(&mut self) -> Result<(), Stopped> {
        let now = clock::boot();
        let quiet_wanted = lock(&self.own.quiet_wanted).clone();
        let mut ended = Vec::new();
        let mut events = Vec::new();
        for (agent, tracked) in &mut self.agents {
            let Some(stat) = sys::stat(agent.pid) else {
                ended.push(agent.clone());
                continue;
            };
            if stat.start != agent.start || stat.is_dead() {
                ended.push(agent.clone());
                continue;
            }
            let stopped = stat.is_stopped();
            if stopped != tracked.stopped {
                tracked.stopped = stopped;
                let agent = agent.clone();
                events.push(Event::ProcessStopped { agent, stopped });
            }
            if !quiet_wanted.contains(agent) {
                tracked.cpu = None;
                continue;
            }
            match tracked.cpu {
                None => tracked.cpu = Some((now, stat.cpu_ticks)),
                Some((since, ticks)) if now.since(since) >= QUIET => {
                    tracked.cpu = Some((now, stat.cpu_ticks));
                    events.push(Event::ProcessQuiet {
                        agent: agent.clone(),
                        quiet: ticks == stat.cpu_ticks,
                    });
                }
                Some(_) => {}
            }
        }
        for event in events {
            self.hub.send(event).await?;
        }
        for agent in ended {
            self.died(agent).await?;
        }
        Ok(())
    }

    async fn take_panes(&mut self, panes: Vec<PaneRoot>) -> Result<(), Stopped> {
        let before = std::mem::replace(&mut self.panes, panes);
        // Agents that were found before their pane was listed, or whose pane was renumbered.
        self.refresh(|before, now| before.pane != now.pane).await?;
        // A Claude that writes no status file (old versions) is seen by its pane's command alone.
        let changed: Vec<PaneRoot> = self
            .panes
            .iter()
            .filter(|root| !before.contains(root) || self.may_hide_a_claude(root))
            .cloned()
            .collect();
        for root in changed {
            for pid in claudes_below(root.pid) {
                self.look(pid, None).await?;
            }
        }
        Ok(())
    }

    /// What nothing else brings: a Claude below a pane whose command tells nothing, one in a terminal of the
    /// person's own whose directory is not known yet, and details that have changed by themselves.
    async fn look_around(&mut self) -> Result<(), Stopped> {
        self.refresh(|before, now| before != now).await?;
        let roots: Vec<u32> = self.panes.iter().map(|root| root.pid).collect();
        let below = roots.into_iter().flat_map(claudes_below);
        for pid in below.chain(sys::claudes()).collect::<Vec<u32>>() {
            self.look(pid, None).await?;
        }
        Ok(())
    }

    /// Announces agents anew whose description has changed as asked.
    async fn refresh(
        &mut self,
        changed: impl Fn(&Process, &Process) -> bool,
    ) -> Result<(), Stopped> {
        let mut moved = Vec::new();
        for agent in self.agents.keys() {
            let Some(stat) = sys::stat(agent.pid) else {
                continue;
            };
            moved.push((agent.clone(), self.process(agent, stat.parent)));
        }
        for (agent, process) in moved {
            let Some(tracked) = self.agents.get_mut(&agent) else {
                continue;
            };
            if changed(&tracked.process, &process) {
                tracked.process = process.clone();
                self.hub
                    .send(Event::ProcessFound { agent, process })
                    .await?;
            }
        }
        Ok(())
    }

    fn may_hide_a_claude(&self, root: &PaneRoot) -> bool {
        matches!(root.command.as_ref(), "claude" | "node" | "bun")
            && !self
                .agents
                .values()
                .any(|tracked| tracked.process.pane.as_ref() == Some(&root.pane))
    }
}

/// Becomes readable when the process ends; `None`: there is no such process. Whose pid it is must be
/// compared after this, not before.
///
/// # Errors
/// The kernel gives no pidfd.
#[allow(
    deprecated,
    reason = "unsound only for a type that gives out a descriptor it does not own; an OwnedFd owns its own, \
              and the replacement would be this program's only unsafe block"
)]
pub fn watch_exit(pid: u32) -> std::io::Result<Option<AsyncFd<OwnedFd>>> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Ok(None);
    };
    match pidfd_open(pid, PidfdFlags::NONBLOCK) {
        Ok(fd) => Ok(Some(AsyncFd::with_interest(fd, Interest::READABLE)?)),
        // Gone already: the comparison of start times that follows says so.
        Err(rustix::io::Errno::SRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The processes above one whose parent this is, nearest first; bounded.
pub fn ancestors(parent: u32) -> impl Iterator<Item = (u32, sys::Stat)> {
    let mut next = parent;
    std::iter::from_fn(move || {
        if next <= 1 {
            return None;
        }
        let pid = next;
        let stat = sys::stat(pid)?;
        next = stat.parent;
        Some((pid, stat))
    })
    .take(64)
}

/// The topmost Claudes of a process tree. What is below one of them is that one's business: a nested
/// Claude shows itself by a file of its own.
fn claudes_below(root: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut level = vec![root];
    let mut seen = 0;
    for _ in 0..DEPTH_MAX {
        let mut below = Vec::new();
        for pid in level {
            seen += 1;
            if seen > TREE_MAX {
                return found;
            }
            match sys::stat(pid) {
                Some(stat) if sys::is_claude(pid, &stat) => found.push(pid),
                Some(_) => below.extend(sys::children(pid)),
                None => {}
            }
        }
        level = below;
    }
    found
}

/// Where this process keeps its files: `$CLAUDE_CONFIG_DIR`, else (in our own tabs, whose environment we
/// made) `.claude` in its HOME. Elsewhere nothing else of the environment is read: it is the person's.
fn claude_dir(pid: u32, in_our_tabs: bool) -> Option<PathBuf> {
    let named = |name| sys::environment(pid, name).filter(|value| !value.is_empty());
    let home = || in_our_tabs.then(|| named("HOME")).flatten();
    named("CLAUDE_CONFIG_DIR")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(home()?).join(".claude")))
        .filter(|dir| dir.is_absolute())
}

/// A pane of a tmux server, and the socket that leads there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignPane {
    /// The server's socket.
    pub socket: PathBuf,
    /// Which pane of it.
    pub pane: PaneKey,
}

/// The pane that a process says it runs in, if its ancestors agree: the variables are inherited by whatever
/// is started from there, the tmux server is an ancestor only of what runs there.
#[must_use]
pub fn foreign_pane(pid: u32, host: &HostId) -> Option<ForeignPane> {
    let tmux = sys::environment(pid, "TMUX")?;
    let mut parts = tmux.as_bytes().rsplitn(3, |&byte| byte == b',');
    let (_session, server, socket) = (parts.next()?, parts.next()?, parts.next()?);
    let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<u32>().ok();
    let server = number(server)?;
    let pane = sys::environment(pid, "TMUX_PANE")?;
    let pane = number(pane.as_bytes().strip_prefix(b"%")?)?;
    let parent = sys::stat(pid)?.parent;
    let (_, stat) = ancestors(parent).find(|(ancestor, _)| *ancestor == server)?;
    Some(ForeignPane {
        socket: PathBuf::from(OsStr::from_bytes(socket)),
        pane: PaneKey {
            server: TmuxServer {
                host: host.clone(),
                pid: server,
                start: stat.start,
            },
            pane,
        },
    })
}

/// Whether our settings are among its arguments. A Claude under node overwrites its arguments with a
/// title; then nothing can be told.
fn has_our_hooks(pid: u32, home: &Path) -> Option<bool> {
    let arguments = sys::arguments(pid)?;
    let ours = arguments
        .windows(2)
        .any(|pair| pair[0] == "--settings" && Path::new(&pair[1]).starts_with(home));
    (ours || arguments.len() > 1 || !sys::runs_under_node(pid)).then_some(ours)
}
