//! Who is behind a request that only the person may make: signing in, typing, answering, closing. A browser has shown
//! its login; a program on the unix socket has the person's user id, which a Claude Code in a tab has as well, so it
//! must not descend from one.
//!
//! That keeps an agent from acting by what we put there; it is no wall against one that means to (the boundary is the
//! user id, see docs/security.md).

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts};
use http::StatusCode;
use http::request::Parts;
use purplemux_wire::sentence::Cause;

use super::{App, Caller, Peer, Problem};

use crate::answer::Asker;
use crate::ingest::process::ancestors;
use crate::sys;

/// The setting that holds the ids of workspaces whose agents may act as the person, a JSON list.
pub const ALLOWED: &str = "agents.workspaces";

/// What Claude Code leaves in the environment of what it starts.
const MARKS: [&str; 3] = ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PID"];

/// The person, as far as can be told. A handler that takes this is not reached by anybody else.
#[derive(Clone, Debug)]
pub struct Owner(pub Asker);

impl FromRequestParts<Arc<App>> for Owner {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let peer = parts.extensions.get::<ConnectInfo<Peer>>().copied();
        let peer = peer.map(|ConnectInfo(peer)| peer);
        of(app, caller.as_ref(), peer)
            .await
            .map(Self)
            .map_err(|why| Problem::of(StatusCode::FORBIDDEN, why))
    }
}

/// Who asks, or why that is not for the asker to do.
///
/// # Errors
/// The sentence for the asker.
pub async fn of(app: &App, caller: Option<&Caller>, peer: Option<Peer>) -> Result<Asker, Cause> {
    match (caller, peer) {
        (Some(Caller::Login { id, .. }), _) => Ok(device(app, id)),
        (Some(Caller::Local), Some(Peer::Unix { pid, .. })) => program(app, pid).await,
        (Some(Caller::Local | Caller::Stranger) | None, _) => Err(Cause::AskerUnknown),
    }
}

/// A signed-in browser.
fn device(app: &App, login: &str) -> Asker {
    let devices = app.auth.devices();
    let name = devices.into_iter().find(|row| row.id == login);
    let name = name.map(|row| row.name).filter(|name| !name.is_empty());
    Asker {
        by: name.unwrap_or_else(|| "a browser".to_owned()),
        origin: format!("login {login}"),
        viewer: 0,
    }
}

async fn program(app: &App, pid: Option<u32>) -> Result<Asker, Cause> {
    // Without a number there is nobody to look at: it lives in a namespace beside ours.
    let pid = pid.filter(|pid| *pid > 0).ok_or(Cause::AgentsMayNot)?;
    let stat = sys::stat(pid).ok_or(Cause::AskerEnded)?;
    let asker = |origin: String| Asker {
        by: "the command line".to_owned(),
        origin,
        viewer: 0,
    };
    let named = format!("pid {pid} ({})", stat.comm);
    match agent_behind(app, pid) {
        Behind::Nobody => Ok(asker(named)),
        Behind::Agent(agent) if may_act(app, agent).await => {
            Ok(asker(format!("{named} of the agent {agent}")))
        }
        Behind::Agent(_) | Behind::Some => Err(Cause::AgentsMayNot),
    }
}

enum Behind {
    Nobody,
    /// This process.
    Agent(u32),
    /// One whose process can't be told any more.
    Some,
}

/// The nearest agent that a program descends from. One that started this server itself does not count: then the
/// server is its own.
fn agent_behind(app: &App, pid: u32) -> Behind {
    let ours: BTreeSet<u32> = ancestors(std::process::id()).map(|(pid, _)| pid).collect();
    let snapshots = app.hub.snapshots();
    let known: BTreeSet<u32> = {
        let snapshot = snapshots.borrow();
        let here = snapshot.items.iter().filter(|item| item.host == app.host);
        here.filter_map(|item| item.pid).collect()
    };
    let mut above = ancestors(pid).filter(|(pid, _)| !ours.contains(pid));
    let agent = above.find(|(pid, stat)| known.contains(pid) || sys::is_claude(*pid, stat));
    if let Some((agent, _)) = agent {
        return Behind::Agent(agent);
    }
    // One that let go of its parent still has what it was given.
    let marked = |name: &str| {
        sys::environment(pid, name).is_some()
            && sys::environment(std::process::id(), name).is_none()
    };
    if MARKS.iter().any(|name| marked(name)) {
        return Behind::Some;
    }
    Behind::Nobody
}

/// Whether the workspace that the agent is in lets its agents act.
async fn may_act(app: &App, agent: u32) -> bool {
    let workspace = {
        let snapshots = app.hub.snapshots();
        let snapshot = snapshots.borrow();
        let mut items = snapshot.items.iter();
        let item = items.find(|item| item.pid == Some(agent) && item.host == app.host);
        item.and_then(|item| item.workspace.clone())
    };
    let Some(workspace) = workspace else {
        return false;
    };
    allowed(app).await.contains(&workspace)
}

/// The workspaces whose agents may act as the person. What can't be read allows nobody.
pub async fn allowed(app: &App) -> BTreeSet<String> {
    let setting = app.store.setting(ALLOWED).await.ok().flatten();
    setting
        .and_then(|list| serde_json::from_str(&list).ok())
        .unwrap_or_default()
}

/// For commands that ask no server: whether this very program descends from an agent.
#[must_use]
pub fn is_agents() -> bool {
    let by_parent = ancestors(std::process::id()).any(|(pid, stat)| sys::is_claude(pid, &stat));
    by_parent || MARKS.iter().any(|name| std::env::var_os(name).is_some())
}
