//! The doors: accepts connections on TCP and on the unix socket, hands them to the router, and keeps those who
//! have not shown who they are from crowding out those who have. A request that is only begun, and a
//! connection that never says anything, end by themselves.
//!
//! It knows nothing of routes and checks nothing of a request; who is known is found out by
//! [`super::guard`], which tells the [`Guest`].

use std::collections::BTreeMap;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use purplemux_core::Time;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::Peer;
use crate::{clock, task};

/// How long the head of a request may take, from the connection's first moment or from the answer before it.
pub const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// Connections over TCP that have not signed in yet; a page that is loaded opens six.
pub const STRANGERS_MAX: usize = 256;

/// Of the files that this process may open, so many are never a TCP connection: hooks and commands, terminals
/// with two each, the database, logs and watches.
const RESERVE: u64 = 512;

/// More connections than this serve nobody, whatever the limit of files.
const CONNECTIONS_MAX: usize = 4096;

/// What the kernel holds of what a viewer has not taken yet. More would only be older news, and memory.
const SEND_BYTES: usize = 256 * 1024;

/// After a failed accept: a file that is freed in the meantime lets the next one in.
const RETRY: Duration = Duration::from_millis(50);

/// Who was closed to make room is told at most this often.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// Everybody who is connected over TCP. Leaf data: the lock is never held while anything waits.
#[derive(Debug)]
pub struct Doors {
    room: usize,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    next: u64,
    open: usize,
    /// Those who have not signed in, the longest waiting first.
    strangers: BTreeMap<u64, CancellationToken>,
    /// Closed to make room since it was last said.
    closed: u64,
    said: Option<Time>,
}

impl Doors {
    /// Room for what the limit of open files leaves over.
    #[must_use]
    pub fn new(files_max: u64) -> Arc<Self> {
        let room = usize::try_from(files_max.saturating_sub(RESERVE)).unwrap_or(CONNECTIONS_MAX);
        Arc::new(Self {
            room: room.clamp(STRANGERS_MAX / 4, CONNECTIONS_MAX),
            inside: Mutex::default(),
        })
    }

    /// Lets somebody in whom nobody knows yet; if there is no room, the stranger who has waited longest goes.
    /// `None`: everybody inside is known, and there is no room.
    fn admit(self: &Arc<Self>) -> Option<Arc<Guest>> {
        let mut inside = self.lock();
        let full = inside.open >= self.room;
        if (full || inside.strangers.len() >= STRANGERS_MAX) && !inside.close_one() {
            return None;
        }
        inside.next += 1;
        inside.open += 1;
        let number = inside.next;
        let leave = CancellationToken::new();
        inside.strangers.insert(number, leave.clone());
        Some(Arc::new(Guest {
            number,
            leave,
            doors: Arc::clone(self),
        }))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inside> {
        // Every change of it is one step; it is whole whatever its holder did when it panicked.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    /// Asks the stranger who has waited longest to leave; false if there is none.
    fn close_one(&mut self) -> bool {
        let longest = self.strangers.pop_first();
        let found = longest.is_some();
        if let Some((_, leave)) = longest {
            leave.cancel();
        }
        self.closed += 1;
        let now = clock::boot();
        if self.said.is_none_or(|said| now.since(said) >= SAY_EVERY) {
            warn!(
                "{} connections that had not signed in were closed: there are too many at once ({} open, {} not signed in).",
                self.closed,
                self.open,
                self.strangers.len()
            );
            self.said = Some(now);
            self.closed = 0;
        }
        found
    }
}

/// One connection over TCP. It is inside until the last holder lets go: the connection, or the WebSocket that
/// it has become.
#[derive(Debug)]
pub struct Guest {
    number: u64,
    leave: CancellationToken,
    doors: Arc<Doors>,
}

impl Guest {
    /// It has shown who it is: nobody has to make room any more.
    pub fn is_known(&self) {
        self.doors.lock().strangers.remove(&self.number);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut inside = self.doors.lock();
        inside.strangers.remove(&self.number);
        inside.open = inside.open.saturating_sub(1);
    }
}

/// Serves TCP until `stop`, then until the last answer is out.
pub async fn tcp(
    listener: TcpListener,
    router: Router,
    doors: Arc<Doors>,
    stop: CancellationToken,
) {
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, remote) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                doors.lock().close_one();
                failed(&error).await;
                continue;
            }
        };
        let Some(guest) = doors.admit() else {
            // There is nobody to make room; the one who came last has to try again.
            continue;
        };
        // Keys and echoes are small and must not wait for more.
        if let Err(error) = stream.set_nodelay(true) {
            debug!("TCP_NODELAY: {error}");
        }
        if let Err(error) = rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BYTES) {
            debug!("SO_SNDBUF: {error}");
        }
        let local = stream.local_addr().unwrap_or(remote);
        let peer = Peer::Tcp { remote, local };
        let leave = guest.leave.clone();
        let connection = Connection {
            peer,
            guest: Some(guest),
            leave,
        };
        let served = connection.serve(stream, router.clone(), stop.clone());
        task::spawn("connection", connections.track_future(served));
    }
    connections.close();
    connections.wait().await;
}

/// Serves the unix socket until `stop`, then until the last answer is out. Its permissions let only our own user
/// in, so nobody here is a stranger.
pub async fn unix(listener: UnixListener, router: Router, stop: CancellationToken) {
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, _) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                failed(&error).await;
                continue;
            }
        };
        let cred = stream.peer_cred().ok();
        let uid = cred.as_ref().map(|cred| cred.uid());
        let pid = cred.and_then(|cred| u32::try_from(cred.pid()?).ok());
        let connection = Connection {
            peer: Peer::Unix { uid, pid },
            guest: None,
            leave: CancellationToken::new(),
        };
        let served = connection.serve(stream, router.clone(), stop.clone());
        task::spawn("local connection", connections.track_future(served));
    }
    connections.close();
    connections.wait().await;
}

/// Nothing could be accepted: somebody hung up in the queue, or there are no files left.
async fn failed(error: &io::Error) {
    debug!("accept: {error}");
    clock::passed(RETRY).await;
}

struct Connection {
    peer: Peer,
    guest: Option<Arc<Guest>>,
    leave: CancellationToken,
}

impl Connection {
    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        router: Router,
        stop: CancellationToken,
    ) {
        let Self { peer, guest, leave } = self;
        let stream = Counted {
            stream: TokioIo::new(stream),
            _guest: guest.clone(),
        };
        let router = TowerToHyperService::new(router);
        let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            if let Some(guest) = &guest {
                request.extensions_mut().insert(Arc::clone(guest));
            }
            router.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .serve_connection(stream, service)
            .with_upgrades();
        let mut connection = pin!(connection);
        let mut stopping = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        debug!("a connection: {error}");
                    }
                    return;
                }
                () = stop.cancelled(), if !stopping => {
                    stopping = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = leave.cancelled() => return,
            }
        }
    }
}

/// A stream that keeps its guest inside for as long as it lives, also as a WebSocket.
struct Counted<S> {
    stream: S,
    _guest: Option<Arc<Guest>>,
}

impl<S: Read + Unpin> Read for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin> Write for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stranger_who_waited_longest_makes_room_and_the_known_stay() {
        let doors = Doors::new(RESERVE + 1024);
        let known = doors.admit().unwrap();
        known.is_known();
        let mut strangers: Vec<_> = (0..STRANGERS_MAX).map(|_| doors.admit().unwrap()).collect();
        assert!(strangers.iter().all(|guest| !guest.leave.is_cancelled()));
        strangers.push(doors.admit().unwrap());
        assert!(strangers[0].leave.is_cancelled());
        assert!(
            strangers[1..]
                .iter()
                .all(|guest| !guest.leave.is_cancelled())
        );
        assert!(!known.leave.is_cancelled());
        drop(strangers);
        assert_eq!(doors.lock().open, 1);
    }

    #[test]
    fn where_everybody_is_known_the_last_one_is_not_let_in() {
        let doors = Doors::new(0);
        let known: Vec<_> = (0..doors.room)
            .map(|_| {
                let guest = doors.admit().unwrap();
                guest.is_known();
                guest
            })
            .collect();
        assert!(doors.admit().is_none());
        drop(known);
        assert!(doors.admit().is_some());
    }
}
