//! `WS /api/status`: each viewer is sent a snapshot, then only the difference between what it was last sent
//! and what is shown now. A viewer that lags behind gets one larger difference, never a queue.
//!
//! It never changes a status: `seen` and `dismiss` become events for the hub, answers go to the gate ([`crate::answer`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Extension;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{ConnectInfo, State};
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use purplemux_core::{AgentKey, EpisodeId, Event, HostId};
use purplemux_wire::browser::{Changes, ClientMsg, Level, ServerMsg, diff};
use purplemux_wire::sentence::{Cause, Sentence};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::Instant;
use tracing::debug;

use super::terminal_ws::{farewell, greet};
use super::{App, Caller, Peer, Shared, owner};

use crate::answer::{Asker, Ended, Ending, Refusal, Told, Wish, unsent};
use crate::hub::{Snapshot, Stopped};
use crate::{clock, push, settings, sys, task};

/// Between signs of life, so that a dead link is noticed within 15 s.
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(10);

/// A viewer answers every ping; one that has said nothing for this long is gone, and its socket is freed.
const SILENCE_MAX: Duration = Duration::from_secs(35);

/// A socket that takes nothing for this long is as good as broken.
const SEND_WITHIN: Duration = Duration::from_secs(30);

/// What a viewer says is a few words.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Answers to what a viewer said that may wait for its socket; then its reading waits too.
const REPLIES: usize = 16;

/// Opens the socket.
pub async fn open(
    State(app): Shared,
    Extension(caller): Extension<Caller>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let tasks = app.tasks.clone();
    upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .on_upgrade(move |socket| tasks.track_future(run(app, caller, peer, socket)))
}

async fn run(app: Arc<App>, caller: Caller, peer: Peer, mut socket: WebSocket) {
    let Some(owner) = greet(&app, &caller, &mut socket).await else {
        return;
    };
    let asker = owner::of(&app, Some(&caller), Some(peer)).await;
    let viewer = next_viewer();
    let asker = asker.map(|asker| Asker { viewer, ..asker });
    let (sink, mut stream) = socket.split();
    let (replies, waiting) = mpsc::channel(REPLIES);
    let mut viewer = Viewer {
        sink,
        number: viewer,
        told: app.answers.told(),
        snapshots: app.hub.snapshots(),
        settings: app.settings.watch(),
        sent: Arc::new(Snapshot::default()),
        rev: 0,
        waiting,
    };
    let (code, reason) = tokio::select! {
        end = read(&app, &mut stream, replies, app.alerts.viewer(&owner), asker) => end,
        end = viewer.write(&app) => end,
        () = app.auth.until_signed_out(&owner) => (close_code::POLICY, "signed out"),
    };
    farewell(&mut viewer.sink, &mut stream, code, reason).await;
}

/// What the reading loop asks of the writing one.
enum Reply {
    Snapshot,
    Say(Box<ServerMsg>),
}

fn say(message: ServerMsg) -> Reply {
    Reply::Say(Box::new(message))
}

async fn read(
    app: &App,
    stream: &mut SplitStream<WebSocket>,
    replies: mpsc::Sender<Reply>,
    front: push::Viewer,
    asker: Result<Asker, Cause>,
) -> (u16, &'static str) {
    loop {
        let text = match tokio::time::timeout(SILENCE_MAX, stream.next()).await {
            Err(_) => return (close_code::AWAY, "nothing was heard"),
            Ok(None | Some(Err(_)) | Some(Ok(Message::Close(_)))) => {
                return (close_code::NORMAL, "");
            }
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => continue,
            Ok(Some(Ok(Message::Binary(_)))) => {
                return (close_code::UNSUPPORTED, "send text");
            }
            Ok(Some(Ok(Message::Text(text)))) => text,
        };
        let reply = match serde_json::from_str(&text) {
            Ok(ClientMsg::Hello { .. }) => None,
            Ok(ClientMsg::Resync) => Some(Reply::Snapshot),
            Ok(ClientMsg::Front { items }) => {
                front.looks(&items).await;
                None
            }
            Ok(ClientMsg::Seen {
                request,
                item,
                episode,
                // It may have been scrolled back in the very moment; the page says so again once it is not.
            }) if covered(app, &item) => {
                debug!(request, episode, "{item} can't have been seen");
                None
            }
            Ok(ClientMsg::Seen {
                request,
                item,
                episode,
            }) => tell(app, request, &item, episode, |agent, episode| Event::Seen {
                agent,
                episode,
            })
            .await
            .map(say),
            Ok(ClientMsg::Dismiss {
                request,
                item,
                episode,
            }) => tell(app, request, &item, episode, |agent, episode| {
                Event::Dismissed { agent, episode }
            })
            .await
            .map(say),
            Ok(ClientMsg::Answer {
                request,
                item,
                ask,
                reading,
                answer,
            }) => {
                let wish = Wish {
                    request,
                    item,
                    ask,
                    reading,
                    answer,
                };
                let ending = match asker.clone() {
                    Ok(asker) => app.answers.answer(wish, asker).await,
                    Err(why) => Err(unsent(why)),
                };
                // How it goes is told to all viewers; only a refusal is this one's alone.
                let told = move |ended: Result<Ended, Refusal>| {
                    let why = ended.err()?;
                    Some(refused(request, why))
                };
                follow(app, ending, &replies, told).map(say)
            }
            Ok(ClientMsg::Stop { request, item }) => {
                let ending = match asker.clone() {
                    Ok(asker) => app.answers.stop(item.clone(), asker).await,
                    Err(why) => Err(unsent(why)),
                };
                let told = move |ended: Result<Ended, Refusal>| {
                    Some(match ended {
                        Ok(Ended { outcome, why, .. }) => ServerMsg::Stopped {
                            request,
                            item,
                            outcome,
                            why: why.as_ref().map(Sentence::english),
                            said: why,
                        },
                        Err(why) => refused(request, why),
                    })
                };
                follow(app, ending, &replies, told).map(say)
            }
            Err(_) => return (close_code::POLICY, "not understood"),
        };
        if let Some(reply) = reply
            && replies.send(reply).await.is_err()
        {
            return (close_code::NORMAL, "");
        }
    }
}

fn refused(request: u64, said: Sentence) -> ServerMsg {
    ServerMsg::Refused {
        request,
        why: said.english(),
        said,
    }
}

/// Says how an answer or a stop has ended, once it has; at once, if nothing is typed.
fn follow(
    app: &App,
    ending: Result<Ending, Refusal>,
    replies: &mpsc::Sender<Reply>,
    told: impl FnOnce(Result<Ended, Refusal>) -> Option<ServerMsg> + Send + 'static,
) -> Option<ServerMsg> {
    let ending = match ending {
        Ok(ending) => ending,
        Err(why) => return told(Err(why)),
    };
    let replies = replies.clone();
    let told = async move {
        // An error means that purplemux is stopping.
        if let Ok(ended) = ending.await
            && let Some(message) = told(ended)
        {
            // The viewer may have gone.
            drop(replies.send(say(message)).await);
        }
    };
    task::spawn("an answer's end", app.tasks.track_future(told));
    None
}

/// A number that no other viewer has.
fn next_viewer() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Whether the end of a row's screen is not what its terminal shows.
fn covered(app: &App, item: &str) -> bool {
    let snapshots = app.hub.snapshots();
    let snapshot = snapshots.borrow();
    let mut rows = snapshot.items.iter();
    rows.any(|row| row.id == item && row.covered)
}

/// Hands what the person did to the hub; the answer, if it could not be done.
async fn tell(
    app: &App,
    request: u64,
    item: &str,
    episode: u64,
    event: impl FnOnce(AgentKey, EpisodeId) -> Event,
) -> Option<ServerMsg> {
    let refused = |why: Cause| Some(refused(request, why.into()));
    let agent = {
        let snapshots = app.hub.snapshots();
        let snapshot = snapshots.borrow();
        let Some(row) = snapshot.items.iter().find(|row| row.id == item) else {
            return refused(Cause::RowGone);
        };
        if row.episode != Some(episode) {
            return refused(Cause::Over);
        }
        // The pid is shown without its start time; as long as the process lives, the kernel has it.
        row.pid
            .and_then(|pid| Some((pid, sys::stat(pid)?.start)))
            .map(|(pid, start)| AgentKey {
                host: HostId::from(row.host.as_str()),
                pid,
                start,
            })
    };
    let Some(agent) = agent else {
        return refused(Cause::ProcessEnded);
    };
    match app.hub.send(event(agent, EpisodeId(episode))).await {
        Ok(()) => None,
        Err(Stopped) => refused(Cause::ServerStopping),
    }
}

struct Viewer {
    sink: SplitSink<WebSocket, Message>,
    /// Tells it from other viewers.
    number: u64,
    told: broadcast::Receiver<Arc<Told>>,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    settings: watch::Receiver<Arc<settings::Object>>,
    /// What this viewer has.
    sent: Arc<Snapshot>,
    /// Counts this viewer's messages, so that it sees a gap at once.
    rev: u64,
    waiting: mpsc::Receiver<Reply>,
}

impl Viewer {
    async fn write(&mut self, app: &App) -> (u16, &'static str) {
        let mut heartbeat =
            tokio::time::interval_at(Instant::now() + HEARTBEAT_EVERY, HEARTBEAT_EVERY);
        let mut next = self.snapshot(app);
        // They come next, whether they have changed or not.
        self.settings.mark_changed();
        loop {
            if self.say(&next).await.is_err() {
                return (close_code::AWAY, "too slow");
            }
            next = loop {
                tokio::select! {
                    changed = self.snapshots.changed() => match changed {
                        Ok(()) => {
                            if let Some(diff) = self.difference(app) {
                                break diff;
                            }
                        }
                        Err(_) => return (close_code::RESTART, "purplemux is stopping"),
                    },
                    changed = self.settings.changed() => match changed {
                        Ok(()) => break self.settings(),
                        Err(_) => return (close_code::RESTART, "purplemux is stopping"),
                    },
                    told = self.told.recv() => match told {
                        Ok(told) => break told.to(self.number),
                        // What it missed of others' answers shows in the cards.
                        Err(broadcast::error::RecvError::Lagged(_)) => {}
                        Err(broadcast::error::RecvError::Closed) => {
                            return (close_code::RESTART, "purplemux is stopping");
                        }
                    },
                    reply = self.waiting.recv() => match reply {
                        Some(Reply::Snapshot) => break self.snapshot(app),
                        Some(Reply::Say(message)) => break *message,
                        None => return (close_code::NORMAL, ""),
                    },
                    _ = heartbeat.tick() => {
                        let ping = self.sink.send(Message::Ping(axum::body::Bytes::new()));
                        if !matches!(tokio::time::timeout(SEND_WITHIN, ping).await, Ok(Ok(()))) {
                            return (close_code::AWAY, "too slow");
                        }
                        break ServerMsg::Heartbeat {
                            epoch: app.epoch.clone(),
                            rev: self.rev,
                            now_ms: clock::wall_ms(),
                        };
                    }
                    () = app.stopping.cancelled() => return (close_code::RESTART, "purplemux is stopping"),
                }
            };
        }
    }

    fn settings(&mut self) -> ServerMsg {
        let settings = self.settings.borrow_and_update();
        ServerMsg::Settings {
            settings: settings::Object::clone(&settings),
        }
    }

    fn snapshot(&mut self, app: &App) -> ServerMsg {
        self.sent = Arc::clone(&self.snapshots.borrow_and_update());
        self.rev += 1;
        ServerMsg::Snapshot {
            epoch: app.epoch.clone(),
            rev: self.rev,
            now_ms: clock::wall_ms(),
            items: self.sent.rows(),
            workspaces: self.sent.workspaces.to_vec(),
            notices: app.notices(&self.sent),
        }
    }

    fn difference(&mut self, app: &App) -> Option<ServerMsg> {
        let now = Arc::clone(&self.snapshots.borrow_and_update());
        let changes = diff(level(&self.sent), level(&now));
        self.sent = now;
        let Changes {
            set,
            gone,
            workspaces,
            notices,
        } = changes?;
        self.rev += 1;
        Some(ServerMsg::Diff {
            epoch: app.epoch.clone(),
            rev: self.rev,
            now_ms: clock::wall_ms(),
            set,
            gone,
            workspaces,
            notices: notices.map(|_| app.notices(&self.sent)),
        })
    }

    async fn say(&mut self, message: &ServerMsg) -> Result<(), ()> {
        let text = serde_json::to_string(message)
            .expect("every message has a JSON form: its maps have text keys");
        match tokio::time::timeout(SEND_WITHIN, self.sink.send(Message::text(text))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(()),
        }
    }
}

fn level(snapshot: &Snapshot) -> Level<'_> {
    Level {
        items: &snapshot.items,
        workspaces: &snapshot.workspaces,
        notices: &snapshot.notices,
    }
}
