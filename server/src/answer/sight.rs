//! Where an agent is and what can be seen of it in one moment: the screen of its pane and what tmux says of that, in
//! one round trip, then its process and its status file. Looks only; it never sends anything, and what it sees decides
//! no badge.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use purplemux_core::witness::FileStatus;
use purplemux_core::{AgentKey, PaneKey, Time};
use purplemux_wire::dialog::{self, Front};
use purplemux_wire::sentence::Cause;
use purplemux_wire::session_file::{Entry, entry};

use crate::ingest::process::ClaudeDirs;
use crate::ingest::session_file;
use crate::tmux::{self, Run};
use crate::{clock, sys};

/// An agent and the pane it was started in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whose dialog it is.
    pub agent: AgentKey,
    /// The run of our tmux server.
    run: Run,
    /// As a target: the number behind `%`, never used again in the same run.
    pane: String,
}

impl Place {
    /// Where this agent can be spoken to; `None`: in no pane of our own tmux server.
    pub fn of(agent: &AgentKey, pane: Option<&PaneKey>, tmux: &tmux::Handle) -> Option<Self> {
        let listing = tmux.listing();
        let run = listing.borrow().run.clone()?;
        let pane = pane.filter(|pane| pane.server == run.server)?;
        Some(Self {
            agent: agent.clone(),
            run,
            pane: format!("%{}", pane.pane),
        })
    }

    /// The run of tmux that the pane is in.
    pub(super) fn run(&self) -> &Run {
        &self.run
    }

    /// As a target for commands.
    pub(super) fn pane(&self) -> &str {
        &self.pane
    }
}

/// What Claude's own files say about its dialog. While the same dialog stands, they say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seal {
    /// Its status file.
    Status {
        /// What it says.
        status: FileStatus,
        /// Since when: `statusUpdatedAt`, or the file's own time where that is absent; unix ms.
        since_ms: i64,
    },
    /// It has not started: there is no status yet, only the key file.
    Starting {
        /// That file; only its name is looked at.
        key: PathBuf,
    },
}

impl Seal {
    /// Whether it says that a dialog is open, or that none can be told of yet.
    #[must_use]
    pub fn asks(&self) -> bool {
        match self {
            Self::Status { status, .. } => *status == FileStatus::Waiting,
            Self::Starting { .. } => true,
        }
    }
}

/// One look.
#[derive(Clone, Debug)]
pub struct Sight {
    /// When the look began: everything seen was so after this.
    pub at: Time,
    /// What stands in front.
    pub front: Front,
    /// The pane is scrolled back, or shows a menu of tmux's, which would take keys for its own.
    pub in_mode: bool,
    /// What Claude's files say; `None`: nothing that can be used.
    pub seal: Option<Seal>,
    /// Keys would not reach the agent, or not it alone; a sentence.
    pub deaf: Option<Cause>,
    /// A key came from a terminal that is attached there a moment ago: what it does may not be drawn yet (60 to 90 ms,
    /// measured, Claude Code 2.1.332), and ours would go to what comes then.
    pub somebody_types: bool,
}

/// What tmux is asked about the pane.
const STATE: &str = "#{pane_dead} #{pane_in_mode} #{pane_input_off} #{pane_synchronized} #{pane_width} #{window_id} #{pane_tty}";

/// And about every terminal that is attached.
const CLIENTS: &str = "#{client_pid} #{client_activity} #{client_control_mode} #{window_id}";

/// A key typed in a terminal of ours has had its effect after this.
const QUIET: Duration = Duration::from_millis(150);

/// Looks once.
///
/// # Errors
/// tmux does not answer, or the pane is gone.
pub async fn look(
    place: &Place,
    tmux: &tmux::Handle,
    dirs: &ClaudeDirs,
) -> Result<Sight, tmux::Error> {
    let at = clock::boot();
    let pane = place.pane();
    let mut said = tmux
        .together(
            place.run(),
            &[
                &["display-message", "-p", "-t", pane, STATE],
                &["capture-pane", "-p", "-e", "-t", pane],
                &["list-clients", "-F", CLIENTS],
            ],
        )
        .await?
        .into_iter();
    let state = said.next().and_then(|lines| lines.into_iter().next());
    let rows = said.next().unwrap_or_default();
    let clients = said.next().unwrap_or_default();
    let state = state.unwrap_or_default();
    let words: Vec<&str> = state.splitn(7, ' ').collect();
    let [dead, in_mode, input_off, synchronized, width, window, tty] = words[..] else {
        // A pane that is gone: tmux says so by saying nothing.
        return Err(tmux::Error::Gone);
    };
    // A tmux that does not know one of these says nothing for it.
    let set = |word: &str| !matches!(word, "" | "0");
    let deaf = if set(dead) {
        Some(Cause::ProgramExited)
    } else if set(input_off) {
        Some(Cause::InputOff)
    } else if set(synchronized) {
        Some(Cause::Synchronized)
    } else {
        elsewhere(&place.agent, Path::new(tty))
    };
    Ok(Sight {
        at,
        front: dialog::read(&rows, width.parse().unwrap_or(80)),
        in_mode: set(in_mode),
        seal: seal(&place.agent, dirs),
        deaf,
        somebody_types: clients
            .iter()
            .any(|client| types_in(client, window, tmux.typed())),
    })
}

/// Whether something was typed in this client a moment ago, if it shows this window.
fn types_in(client: &str, window: &str, typed: &tmux::Typed) -> bool {
    let words: Vec<&str> = client.split(' ').collect();
    let [pid, activity, control, shows] = words[..] else {
        return false;
    };
    if shows != window || control == "1" {
        return false;
    }
    match pid.parse().ok().and_then(|pid| typed.last(pid)) {
        Some(last) => last.is_some_and(|at| clock::boot().since(at) < QUIET),
        // Not ours: tmux tells whole seconds only.
        None => activity
            .parse::<i64>()
            .is_ok_and(|at| clock::wall_ms() / 1000 - at <= 1),
    }
}

/// Why keys typed into this terminal would not reach the agent.
fn elsewhere(agent: &AgentKey, tty: &Path) -> Option<Cause> {
    let Some(stat) = sys::stat(agent.pid).filter(|stat| stat.start == agent.start) else {
        return Some(Cause::ProcessEnded);
    };
    if stat.is_dead() {
        return Some(Cause::ProcessEnded);
    }
    if stat.is_stopped() {
        return Some(Cause::SuspendedThere);
    }
    let terminal = fs::metadata(tty).ok().map(|meta| meta.rdev());
    if stat.terminal.is_none() || stat.terminal != terminal {
        return Some(Cause::OtherTerminal);
    }
    (!stat.foreground).then_some(Cause::OtherInFront)
}

/// What Claude's files say of this very process now.
#[must_use]
pub fn seal(agent: &AgentKey, dirs: &ClaudeDirs) -> Option<Seal> {
    let mut key = None;
    for dir in dirs.all() {
        let sessions = dir.join("sessions");
        let path = sessions.join(format!("{}.json", agent.pid));
        match session_file::look(&path) {
            Some((reading, at))
                if reading.pid == agent.pid && reading.proc_start == Some(agent.start) =>
            {
                let status = reading.file.status?;
                let since_ms = reading.file.status_since.unwrap_or(at).wall_ms;
                return Some(Seal::Status { status, since_ms });
            }
            // Left over from another process of the same number.
            Some(_) => {}
            // A file that can't be read now says nothing, and least of all that there is none.
            None if path.exists() => return None,
            None => {}
        }
        key = key.or_else(|| key_file(&sessions, agent.pid));
    }
    key.map(|key| Seal::Starting { key })
}

fn key_file(sessions: &Path, pid: u32) -> Option<PathBuf> {
    let entries = fs::read_dir(sessions).ok()?;
    entries.flatten().find_map(|file| {
        let name = file.file_name();
        (entry(name.to_str()?) == Entry::Key { pid }).then(|| file.path())
    })
}
