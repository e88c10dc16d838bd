//! Hooks that were posted, by our own command or by curl, and those that were spooled while the server
//! was down. Resolves who sent them; which agent's badge they touch is decided in `core`.

use thiserror::Error;

use crate::hub;

/// One post as the route received it, after its token and size were checked there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookPost {
    /// `x-pmux-event`; absent in the minimal form.
    pub event: Option<String>,
    /// `x-pmux-pid`: the Claude process.
    pub pid: Option<String>,
    /// `x-pmux-start`: its start time, field 22 of `/proc/PID/stat`.
    pub start: Option<String>,
    /// `x-pmux-pane`: `$TMUX_PANE`.
    pub pane: Option<String>,
    /// `x-pmux-tmux`: `$TMUX`.
    pub tmux: Option<String>,
    /// `x-pmux-stamp`: CLOCK_BOOTTIME in ns, boot id, unix ms.
    pub stamp: Option<String>,
    /// `x-pmux-id`: random.
    pub id: Option<String>,
    /// Claude's JSON unchanged, or the minimal form; empty if it was over 1 MiB.
    pub body: Vec<u8>,
}

impl HookPost {
    /// Takes the `x-pmux-*` headers of a request; one that is not plain text counts as absent.
    #[must_use]
    pub fn new(headers: &http::HeaderMap, body: Vec<u8>) -> Self {
        let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
        Self {
            event: text("x-pmux-event"),
            pid: text("x-pmux-pid"),
            start: text("x-pmux-start"),
            pane: text("x-pmux-pane"),
            tmux: text("x-pmux-tmux"),
            stamp: text("x-pmux-stamp"),
            id: text("x-pmux-id"),
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

/// Hands one post to the hub. `Ok` means that it is in the inbox and will not be lost while the server
/// lives: answer 204.
pub async fn accept(hub: &hub::Handle, post: HookPost) -> Result<(), Refusal> {
    if post.event.is_none() && post.body.is_empty() {
        return Err(Refusal::Malformed(
            "Send Claude's JSON with the header x-pmux-event, or {\"event\":\"stop\",\"session\":\"NAME\"}."
                .to_owned(),
        ));
    }
    // The translation of the body arrives with `wire::hook`; until then nothing is known of it.
    drop(hub.clone());
    Ok(())
}
