//! `WS /api/terminal`: carries one viewer's terminal. First the hello of a browser, then frames both ways.
//! Reading and writing are two loops, so that a key gets in while a slow viewer lets nothing out.
//!
//! It never looks into the bytes; what to send and how much is decided by [`crate::pane`].

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Query, State};
use axum::response::Response;
use axum::{Extension, extract::rejection::QueryRejection};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::StatusCode;
use purplemux_core::{AgentKey, TabId};
use purplemux_wire::browser::ClientMsg;
use purplemux_wire::frame::{FromViewer, ToViewer};
use purplemux_wire::sentence::Cause;
use serde::Deserialize;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::owner::Owner;
use super::{App, Caller, Problem, Shared};

use crate::ingest::process::foreign_pane;
use crate::pane::{Ask, Shown, Size, Terminal};
use crate::{sys, tmux};

/// How long a browser may take to say hello.
pub const HELLO_WITHIN: Duration = Duration::from_secs(5);

/// How often the other end is asked whether it is there. It must have said something within three of these.
pub const PING_EVERY: Duration = Duration::from_secs(10);

/// Who owes the answer to a ping for this long decides nothing until it is heard again: a laptop that was closed, a phone
/// without a network.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// A socket that takes nothing for this long is as good as broken.
const SEND_WITHIN: Duration = Duration::from_secs(30);

/// How long a goodbye may take.
const FAREWELL_WITHIN: Duration = Duration::from_secs(1);

/// The largest message taken: a paste of 1 MB and its frame.
const MESSAGE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// What the address says.
#[derive(Debug, Deserialize)]
pub struct Wanted {
    tab: Option<String>,
    /// A row's id instead: an agent in a tmux of the person's own.
    item: Option<String>,
    #[serde(default = "usual_cols")]
    cols: u16,
    #[serde(default = "usual_rows")]
    rows: u16,
    offset: Option<u64>,
}

fn usual_cols() -> u16 {
    80
}

fn usual_rows() -> u16 {
    24
}

/// Opens the socket.
///
/// # Errors
/// 400 for an address that says nothing sensible, 404 for a tab that does not exist.
pub async fn open(
    State(app): Shared,
    Extension(caller): Extension<Caller>,
    _: Owner,
    wanted: Result<Query<Wanted>, QueryRejection>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Problem> {
    let Query(wanted) = wanted.map_err(|error| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            format!("Say which terminal: /api/terminal?tab=ID&cols=80&rows=24. {error}"),
        )
    })?;
    let (shown, ended) = match (&wanted.tab, &wanted.item) {
        (Some(tab), None) => tab_of(&app, tab)?,
        (None, Some(item)) => (elsewhere(&app, item)?, false),
        (Some(_), Some(_)) | (None, None) => {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "Say which terminal: ?tab=ID, or ?item=ID for a session outside purplemux.",
            ));
        }
    };
    let tasks = app.tasks.clone();
    Ok(upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .on_upgrade(move |socket| {
            tasks.track_future(run(app, caller, wanted, shown, ended, socket))
        }))
}

fn tab_of(app: &App, id: &str) -> Result<(Shown, bool), Problem> {
    let layout = app.tabs.layout();
    let tab = layout.tab(id).ok_or_else(|| {
        let id = id.to_owned();
        Problem::of(StatusCode::NOT_FOUND, Cause::NoTab { id })
    })?;
    Ok((Shown::Tab(TabId::from(id)), tab.ended))
}

/// An agent that is on show and runs in a tmux of the person's own. Where is asked of the process itself:
/// an address can't name a socket.
fn elsewhere(app: &App, id: &str) -> Result<Shown, Problem> {
    let named = || id.to_owned();
    let absent = |why: Cause| Problem::of(StatusCode::NOT_FOUND, why);
    let snapshots = app.hub.snapshots();
    let pid = {
        let snapshot = snapshots.borrow();
        let item = snapshot.items.iter().find(|item| item.id == id);
        item.and_then(|item| item.pid)
    };
    let pid = pid.ok_or_else(|| absent(Cause::NoSession { id: named() }))?;
    let host = app.hub.host();
    let agent = sys::stat(pid)
        .map(|stat| AgentKey {
            host: host.clone(),
            pid,
            start: stat.start,
        })
        .filter(|agent| agent.to_string() == id)
        .ok_or_else(|| absent(Cause::NoSession { id: named() }))?;
    let pane =
        foreign_pane(pid, host).ok_or_else(|| absent(Cause::NoForeignTerminal { id: named() }))?;
    Ok(Shown::Elsewhere { agent, pane })
}

async fn run(
    app: Arc<App>,
    caller: Caller,
    wanted: Wanted,
    shown: Shown,
    ended: bool,
    mut socket: WebSocket,
) {
    let Some(owner) = greet(&app, &caller, &mut socket).await else {
        return;
    };
    let (mut sink, mut stream) = socket.split();
    if ended {
        let end = ToViewer::End("The shell in this tab has ended.".to_owned());
        // If it does not arrive, the page finds out by asking again.
        drop(sink.send(Message::binary(end.encode())).await);
        farewell(&mut sink, &mut stream, close_code::NORMAL, "ended").await;
        return;
    }
    let terminal = match get_terminal(&app, &wanted, &shown, &owner).await {
        Ok(terminal) => terminal,
        Err(error) => {
            if !matches!(error.downcast_ref(), Some(tmux::Error::Gone)) {
                tracing::error!("{shown}: {error:#}");
            }
            let end = ToViewer::End(format!("{error:#}"));
            drop(sink.send(Message::binary(end.encode())).await);
            farewell(&mut sink, &mut stream, close_code::ERROR, "no terminal").await;
            return;
        }
    };
    let Terminal { outbox, asks } = terminal;
    let mut listing = app.tmux.listing();
    // The one that is there already counts as a change.
    listing.mark_changed();
    let mut outbound = Outbound {
        sink,
        outbox,
        tab: wanted.tab,
        listing,
        title: None,
    };
    // Whichever loop ends first ends the socket. Only a viewer that says goodbye ends its terminal at once;
    // every other way out leaves it to be resumed.
    let left = tokio::select! {
        left = read(&mut stream, &asks) => left,
        left = outbound.write(&app) => left,
        () = app.auth.until_signed_out(&owner) => Left {
            for_good: true,
            code: close_code::POLICY,
            reason: "signed out".to_owned(),
        },
    };
    if left.for_good {
        // The terminal may have ended first.
        drop(asks.send(Ask::Leave).await);
    }
    farewell(&mut outbound.sink, &mut stream, left.code, &left.reason).await;
}

/// Waits for the hello of a browser. The owner of what is opened: a login's id, or empty for a program
/// of our own user.
pub async fn greet(app: &App, caller: &Caller, socket: &mut WebSocket) -> Option<String> {
    let id = match caller {
        Caller::Local => return Some(String::new()),
        Caller::Login { id, proven: true } => return Some(id.clone()),
        Caller::Login { id, proven: false } => id,
        Caller::Stranger => return None,
    };
    let first = tokio::select! {
        first = tokio::time::timeout(HELLO_WITHIN, socket.recv()) => first,
        () = app.stopping.cancelled() => return None,
    };
    let proven = matches!(&first, Ok(Some(Ok(Message::Text(text))))
        if matches!(serde_json::from_str(text), Ok(ClientMsg::Hello { secret }) if app.auth.proves(id, &secret)));
    if proven {
        return Some(id.clone());
    }
    let close = Message::Close(Some(CloseFrame {
        code: close_code::POLICY,
        reason: "sign in first".into(),
    }));
    // It may have gone already.
    drop(socket.send(close).await);
    None
}

async fn get_terminal(
    app: &App,
    wanted: &Wanted,
    shown: &Shown,
    owner: &str,
) -> anyhow::Result<Terminal> {
    let size = Size {
        cols: wanted.cols,
        rows: wanted.rows,
    };
    if let Some(offset) = wanted.offset
        && let Some(terminal) = app.panes.resume(shown, owner, offset, size).await
    {
        return Ok(terminal);
    }
    app.panes.open(shown.clone(), owner.to_owned(), size).await
}

/// How a socket's end came about.
struct Left {
    for_good: bool,
    code: u16,
    reason: String,
}

impl Left {
    fn broken() -> Self {
        Self {
            for_good: false,
            code: close_code::AWAY,
            reason: String::new(),
        }
    }
}

async fn read(stream: &mut SplitStream<WebSocket>, asks: &mpsc::Sender<Ask>) -> Left {
    let mut here = true;
    let mut heard = Instant::now();
    loop {
        let patience = if here {
            PING_EVERY + ANSWER_WITHIN
        } else {
            PING_EVERY * 3
        };
        let message = match tokio::time::timeout_at(heard + patience, stream.next()).await {
            Err(_) if here => {
                here = false;
                // A terminal that has ended needs no viewer.
                drop(asks.send(Ask::Here(false)).await);
                continue;
            }
            Err(_) | Ok(None | Some(Err(_))) => return Left::broken(),
            Ok(Some(Ok(message))) => message,
        };
        heard = Instant::now();
        if !here {
            here = true;
            drop(asks.send(Ask::Here(true)).await);
        }
        let ask = match message {
            Message::Binary(bytes) => match FromViewer::decode(&bytes) {
                Ok(FromViewer::Data(keys)) => Ask::Keys(keys),
                Ok(FromViewer::Resize { cols, rows }) => Ask::Resize(Size { cols, rows }),
                Ok(FromViewer::Credit(bytes)) => Ask::Credit(bytes),
                Ok(FromViewer::Hold(hold)) => Ask::Hold(hold),
                Err(error) => {
                    return Left {
                        for_good: true,
                        code: close_code::PROTOCOL,
                        reason: error.to_string(),
                    };
                }
            },
            Message::Close(_) => {
                return Left {
                    for_good: true,
                    code: close_code::NORMAL,
                    reason: String::new(),
                };
            }
            // A program on the unix socket may greet although it need not; the library answers pings.
            Message::Text(_) | Message::Ping(_) | Message::Pong(_) => continue,
        };
        if asks.send(ask).await.is_err() {
            // The terminal has ended: the other loop brings the news and ends the socket.
            std::future::pending::<()>().await;
        }
    }
}

struct Outbound {
    sink: SplitSink<WebSocket, Message>,
    outbox: mpsc::Receiver<ToViewer>,
    /// A tab of ours; of other servers nothing is listed.
    tab: Option<String>,
    listing: watch::Receiver<Arc<tmux::Listing>>,
    /// What the viewer was last told.
    title: Option<String>,
}

impl Outbound {
    /// The pair of command and path, if it has changed. tmux 3.3 sends none while its status line is off.
    fn new_title(&mut self) -> Option<String> {
        let listing = Arc::clone(&self.listing.borrow_and_update());
        let pane = listing
            .panes
            .iter()
            .filter(|pane| self.tab.as_deref().is_some_and(|tab| pane.is_of(tab)))
            .max_by_key(|pane| pane.active)?;
        let title = Some(format!("{}|{}", pane.command, pane.path));
        if title == self.title {
            return None;
        }
        self.title.clone_from(&title);
        title
    }

    async fn write(&mut self, app: &App) -> Left {
        let mut ping = tokio::time::interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        loop {
            let message = tokio::select! {
                frame = self.outbox.recv() => match frame {
                    Some(frame) => Message::binary(frame.encode()),
                    // The end was said, or another connection of the same viewer took over.
                    None => return Left { for_good: false, code: close_code::NORMAL, reason: String::new() },
                },
                Ok(()) = self.listing.changed() => match self.new_title() {
                    Some(title) => Message::binary(ToViewer::Title(title).encode()),
                    None => continue,
                },
                _ = ping.tick() => Message::Ping(axum::body::Bytes::new()),
                () = app.stopping.cancelled() => {
                    return Left { for_good: true, code: close_code::RESTART, reason: "purplemux is stopping".into() };
                }
            };
            match tokio::time::timeout(SEND_WITHIN, self.sink.send(message)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Left::broken(),
            }
        }
    }
}

/// Says goodbye and waits for the other end's, so that what was sent before arrives: a socket closed with
/// something unread is reset, and a reset overtakes it. Whoever has gone already does not hear it.
pub async fn farewell(
    sink: &mut SplitSink<WebSocket, Message>,
    stream: &mut SplitStream<WebSocket>,
    code: u16,
    reason: &str,
) {
    let close = Message::Close(Some(CloseFrame {
        code,
        reason: reason.into(),
    }));
    let goodbye = async {
        // After the other end's goodbye ours is queued already; closing sends what is queued.
        drop(sink.send(close).await);
        drop(sink.flush().await);
        while let Some(Ok(_)) = stream.next().await {}
        sink.close().await
    };
    drop(tokio::time::timeout(FAREWELL_WITHIN, goodbye).await);
}
