//! Hooks that were posted, by our own command or by curl, and those that were spooled while the server
//! was down. Resolves who sent them; which agent's badge they touch is decided in `core`.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jiff::tz::TimeZone;
use purplemux_core::witness::HookKind;
use purplemux_core::{Event, PaneKey};
use purplemux_wire::hook::{self, BODY_BYTES_MAX, Headers, Here, HookError};
use purplemux_wire::status_line;
use thiserror::Error;
use tracing::{debug, info, warn};

use crate::hub;
use crate::ingest::odd::Kind;
use crate::ingest::watch::{Seen, Watch};
use crate::{clock, sys};

/// One post as the route received it, after its token and size were checked there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookPost {
    /// The `x-pmux-*` headers.
    pub headers: Headers,
    /// Claude's JSON unchanged, or the minimal form; empty if it was over 1 MiB.
    pub body: Vec<u8>,
}

impl HookPost {
    /// Takes the `x-pmux-*` headers of a request; what is absent or odd is absent.
    #[must_use]
    pub fn new(headers: &http::HeaderMap, body: Vec<u8>) -> Self {
        Self {
            headers: Headers::read(|name| Some(headers.get(name)?.as_bytes())),
            body,
        }
    }
}

/// Why a post was not taken.
#[derive(Debug, Error)]
pub enum Refusal {
    /// 400: the body is neither a hook's JSON nor the minimal form. The text says what is wrong.
    #[error("{0}")]
    Malformed(String),
    /// 503: the server is stopping.
    #[error(transparent)]
    Stopped(#[from] hub::Stopped),
}

/// By which door a post came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// A hook's.
    Hook,
    /// The status line's: it carries facts, and whatever it says is no hook.
    StatusLine,
}

/// Hands one post to the hub. `Ok` means that it is in the inbox and will not be lost while the server
/// lives: answer 204.
///
/// # Errors
/// See [`Refusal`]; nothing has changed then.
pub async fn accept(hub: &hub::Handle, post: HookPost, route: Route) -> Result<(), Refusal> {
    let body = (!post.body.is_empty()).then_some(post.body.as_slice());
    let mut headers = post.headers;
    if route == Route::StatusLine {
        headers.event = Some(status_line::EVENT.to_owned());
    }
    take(hub, &headers, body, route).await
}

async fn take(
    hub: &hub::Handle,
    headers: &Headers,
    body: Option<&[u8]>,
    route: Route,
) -> Result<(), Refusal> {
    let sender = headers.pid.and_then(sys::stat);
    let here = Here {
        host: hub.host(),
        boot_id: clock::boot_id(),
        now: clock::now(),
        agent_start: sender.as_ref().map(|stat| stat.start),
        tmux_start: headers
            .tmux
            .as_ref()
            .and_then(|tmux| started(hub, tmux.pid)),
        zone: zone(),
    };
    let odd = &hub.witnesses().odd;
    let malformed = |why: HookError| {
        odd.add(Kind::HookRefused, &why);
        Refusal::Malformed(format!("This is no hook: {why}."))
    };
    let mut received = hook::read(headers, body, &here).map_err(malformed)?;
    let is_line = matches!(received.hook.kind, HookKind::StatusLine { .. });
    if is_line != (route == Route::StatusLine) {
        return Err(malformed(HookError::NoEvent));
    }
    if let HookKind::Unknown { name } = &received.hook.kind {
        debug!("A hook of an unknown name: {name}");
        odd.add(Kind::HookUnknown, name);
    }
    if received.hook.pane.is_none()
        && let Some(session) = &received.tmux_session
    {
        received.hook.pane = pane_of_session(hub, session);
    }
    match &received.hook.agent {
        Some(agent) => {
            // Announced before its hook, so that the hook finds it. A process that has ended since is not
            // announced; its hook still counts for what is already known of it. What is no Claude is not
            // announced either: the hook waits for a while, in case that its status file is still to come.
            let processes = &hub.witnesses().processes;
            let lives = |stat: &sys::Stat| stat.start == agent.start && !stat.is_dead();
            let is_known = sender.as_ref().is_some_and(lives) && processes.is_announced(agent);
            if !is_known && processes.look_named(agent.pid, agent.start).await.is_none() {
                debug!(%agent, "A hook names a process that is no Claude, or none yet.");
            }
        }
        None if headers.pid.is_some_and(sys::is_nobody) => {
            // It had ended before its hook came. Whoever is in its pane now, or has taken up its
            // conversation, is another.
            debug!(?headers, "A hook names a process that does not exist.");
            return Ok(());
        }
        None => {}
    }
    let hook = Box::new(received.hook);
    hub.send(Event::HookFired { hook }).await?;
    // What it means goes out to the pages before its answer does, which nobody looks at.
    tokio::task::yield_now().await;
    Ok(())
}

/// When a tmux server started. Our own is known as long as it is connected, and lives so long.
fn started(hub: &hub::Handle, pid: u32) -> Option<u64> {
    let listing = hub.witnesses().tmux.listing();
    let ours = listing
        .borrow()
        .server()
        .filter(|own| own.pid == pid)
        .map(|own| own.start);
    ours.or_else(|| Some(sys::stat(pid)?.start))
}

/// The active pane of a session on our own tmux server, for the minimal form.
fn pane_of_session(hub: &hub::Handle, session: &str) -> Option<PaneKey> {
    let listing = hub.witnesses().tmux.listing();
    let listing = listing.borrow();
    let server = listing.server()?.clone();
    let pane = listing
        .panes
        .iter()
        .filter(|pane| pane.is_of(session) || *pane.session == *session)
        .max_by_key(|pane| (pane.is_of(session), pane.active))?;
    Some(PaneKey {
        server,
        pane: pane.pane,
    })
}

fn zone() -> &'static TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    ZONE.get_or_init(TimeZone::system)
}

/// The spool's own bound on one record: the largest body and its headers.
const RECORD_BYTES_MAX: u64 = (BODY_BYTES_MAX + 64 * 1024) as u64;

/// Takes in what was spooled while the server was down, oldest first. Records that can't be read are
/// thrown away with a warning.
pub async fn replay(hub: &hub::Handle, spool: &Path) {
    let mut records: Vec<PathBuf> = match fs::read_dir(spool) {
        Ok(entries) => entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "hook"))
            .collect(),
        // No hook has ever been spooled.
        Err(_) => return,
    };
    // Names begin with the wall time and the boot time of their hook.
    records.sort();
    let mut taken = 0_usize;
    for path in records {
        match read_record(&path) {
            Ok(record) => {
                if let Err(why) = replay_one(hub, &record).await {
                    warn!("A spooled hook is thrown away: {why}");
                }
                taken += 1;
            }
            Err(why) => warn!("A spooled hook can't be read: {why}"),
        }
        // Only now: a crash before this replays it, and its id makes that harmless.
        if let Err(why) = fs::remove_file(&path) {
            warn!("{}: {why}", path.display());
        }
    }
    if taken > 0 {
        info!("{taken} hooks from while the server could not be reached");
    }
    tell_lost(spool);
}

async fn replay_one(hub: &hub::Handle, record: &[u8]) -> Result<(), Refusal> {
    let (headers, body) =
        hook::decode_spool(record).map_err(|why| Refusal::Malformed(why.to_string()))?;
    take(hub, &headers, body, Route::Hook).await
}

fn read_record(path: &Path) -> std::io::Result<Vec<u8>> {
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_file() {
        return Err(std::io::Error::other("no regular file"));
    }
    let mut record = Vec::new();
    fs::File::open(path)?
        .take(RECORD_BYTES_MAX)
        .read_to_end(&mut record)?;
    Ok(record)
}

/// Events that the hook dropped because the spool was full.
fn tell_lost(spool: &Path) {
    let path = spool.join("lost");
    if let Ok(text) = fs::read_to_string(&path) {
        let lost = text.lines().count();
        warn!("Lost: at least {lost} hooks were dropped because the spool was full.");
        if let Err(why) = fs::remove_file(&path) {
            warn!("{}: {why}", path.display());
        }
    }
}

/// Takes in records that appear while the server runs, until the hub is gone: a hook may spool while the
/// server lives but is slow. Without a watch the safety net says when to look.
pub async fn follow_spool(hub: hub::Handle, spool: PathBuf) {
    let (mut watch, mut seen) = Watch::new();
    if let Err(why) = watch.add(&spool) {
        debug!("{}: {why}", spool.display());
    }
    let mut rounds = hub.witnesses().rounds.clone();
    let mut watching = true;
    loop {
        tokio::select! {
            seen = seen.recv(), if watching => match seen {
                Some(Seen::Made(path)) => {
                    if path.extension().is_none_or(|ending| ending != "hook") {
                        continue;
                    }
                }
                Some(Seen::Overflow) => {}
                Some(Seen::Grew(_) | Seen::Written(_) | Seen::Removed(_)) => continue,
                None => {
                    watching = false;
                    continue;
                }
            },
            rung = rounds.changed() => if rung.is_err() {
                return;
            },
        }
        replay(&hub, &spool).await;
    }
}
