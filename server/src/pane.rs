//! The bytes of one visible terminal: a pty that runs `tmux attach`, owned by one task per viewer. The
//! task always drains the pty, keeps what the viewer has not confirmed yet, and hands out as much as the
//! viewer has credit for.
//!
//! One pty per viewer and not one per tab, because each viewer has its own size and its own speed: tmux then
//! draws for each what fits, and a slow one costs the others nothing. A viewer that confirms nothing is
//! detached at 256 KiB and attached anew when it goes on, since a redraw by tmux is always complete. A
//! connection that broke without a farewell leaves its task running for a while, so that it can be resumed
//! at the very byte; offsets of different tasks never overlap, so an offset alone says which task is meant.
//!
//! Of several viewers of one tab only one decides how large its window is; the ptys of all have that size.
//!
//! This module never looks into the bytes and never resizes a window other than by the pty's own size.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use purplemux_core::{AgentKey, TabId};
use purplemux_wire::frame::{Hold, INITIAL_CREDIT, ToViewer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::home::random_hex;
use crate::ingest::process::ForeignPane;
use crate::{sys, tmux};

mod sizes;

use sizes::{Seat, Sizes};

/// What is kept of bytes that the viewer has not confirmed: also what may be in flight to it.
pub const TAIL_BYTES_MAX: usize = INITIAL_CREDIT as usize;

/// Beyond this, the pty is read slower; tmux then skips what would be painted over anyway and redraws. What
/// waits here is what a slow viewer lags behind, so it is a quarter of the bound.
const SLOW_FROM_BYTES: usize = TAIL_BYTES_MAX / 4;

/// How often the pty of a slow viewer is read: 4 KiB each (a pty has no more at once) make 80 KB/s. Measured
/// with tmux 3.3a: at this rate and at a twentieth of it, its own memory stays at 5 MB in an endless flood.
const SLOW_READ_EVERY: Duration = Duration::from_millis(50);

/// A viewer that is behind and has confirmed nothing for this long does not read at all; it is let go before
/// the bound is reached.
const STALLED_AFTER: Duration = Duration::from_secs(2);

/// Room for one read.
const READ_BYTES: usize = 16 * 1024;

/// One message to the viewer: small enough that a key's echo is not stuck behind a megabyte.
const CHUNK_BYTES: usize = 16 * 1024;

/// Messages ready for the viewer's socket; the rest waits in the tail, where it can still be dropped.
const OUTBOX: usize = 4;

/// Messages from the viewer that may wait for the task.
const INBOX: usize = 64;

/// Keys that may wait for a program that does not read: the largest paste we take, and some.
const KEYS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long a broken connection can be resumed: a changed network or a short walk out of reach.
const RESUME_FOR: Duration = Duration::from_secs(30);

/// How long a `tmux attach` may take to leave after its terminal is gone, before it is killed.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// A session that is there but lets us go again this many times in a row is not tried further.
const ATTACHES_MAX: u32 = 3;

/// How long a tmux that can't be reached is waited for before nobody can tell what became of a session; the control
/// client is back within two seconds.
const REACHED_WITHIN: Duration = Duration::from_secs(3);

/// An attach that held this long counts as a good one.
const ATTACH_HELD: Duration = Duration::from_secs(5);

/// Offsets of one task: 2^32 from a random multiple of it, below 2^53 so that JavaScript counts exactly.
const OFFSETS_PER_TASK: u64 = 1 << 32;

/// Columns and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

impl Size {
    /// tmux gives up below 2 and above some thousands; a viewer can't ask for more.
    #[must_use]
    pub fn clamped(self) -> Self {
        Self {
            cols: self.cols.clamp(2, 1000),
            rows: self.rows.clamp(2, 1000),
        }
    }
}

/// What a terminal shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A tab of ours.
    Tab(TabId),
    /// An agent in a tmux of the person's own.
    Elsewhere {
        /// The agent.
        agent: AgentKey,
        /// Where it runs.
        pane: ForeignPane,
    },
}

impl Shown {
    async fn attach(&self, tmux: &tmux::Handle) -> Result<tmux::Attach, tmux::Error> {
        match self {
            Self::Tab(tab) => Ok(tmux.attach_command(&tmux.session(tab).await?)),
            Self::Elsewhere { pane, .. } => Ok(tmux.attach_elsewhere(pane)),
        }
    }

    fn ended(&self) -> &'static str {
        match self {
            Self::Tab(_) => "The shell in this tab has ended.",
            Self::Elsewhere { .. } => "This session has ended.",
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tab(tab) => write!(f, "tab {tab}"),
            Self::Elsewhere { agent, .. } => write!(f, "agent {agent}"),
        }
    }
}

/// What a viewer asks of its terminal's task.
#[derive(Debug)]
pub enum Ask {
    /// Keys or a paste.
    Keys(Vec<u8>),
    /// The size of its place on the page.
    Resize(Size),
    /// Whether it may decide how large the window is.
    Hold(Hold),
    /// Whether it answers; what does not answer decides nothing.
    Here(bool),
    /// Bytes it has consumed.
    Credit(u32),
    /// It has left for good.
    Leave,
    /// It came back on another connection and has everything up to `offset`.
    Resume {
        offset: u64,
        size: Size,
        outbox: mpsc::Sender<ToViewer>,
        taken: oneshot::Sender<bool>,
    },
}

/// A viewer's end of its terminal.
#[derive(Debug)]
pub struct Terminal {
    /// What to send to the viewer; ends with the terminal or when another connection took over.
    pub outbox: mpsc::Receiver<ToViewer>,
    /// What the viewer sends. Dropping it without [`Ask::Leave`] keeps the terminal for a while.
    pub asks: mpsc::Sender<Ask>,
}

#[derive(Debug)]
struct Entry {
    shown: Shown,
    owner: String,
    asks: mpsc::Sender<Ask>,
}

type Registry = Arc<Mutex<HashMap<u64, Entry>>>;

/// All terminals, for resuming one. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Panes {
    tmux: tmux::Handle,
    running: Registry,
    sizes: Sizes,
    ended: mpsc::Sender<TabId>,
}

impl Panes {
    /// `ended` is told of every tab whose session was found to have ended.
    #[must_use]
    pub fn new(tmux: tmux::Handle, ended: mpsc::Sender<TabId>) -> Self {
        Self {
            tmux,
            running: Registry::default(),
            sizes: Sizes::default(),
            ended,
        }
    }

    /// A terminal that shows this, starting with a complete picture.
    ///
    /// # Errors
    /// Its session has ended, no pty can be had or tmux can't be run.
    pub async fn open(&self, shown: Shown, owner: String, size: Size) -> Result<Terminal> {
        let size = size.clamped();
        let (to_viewer, outbox) = mpsc::channel(OUTBOX);
        let (asks, inbox) = mpsc::channel(INBOX);
        let base = self.register(Entry {
            shown: shown.clone(),
            owner,
            asks: asks.clone(),
        });
        let mut seat = match &shown {
            Shown::Tab(tab) => Some(self.sizes.join(tab, base, size)),
            // A window of the person's own tmux is resized by nobody here.
            Shown::Elsewhere { .. } => None,
        };
        let size = seat.as_mut().map_or(size, |seat| seat.look().0);
        let link = match Link::attach(&self.tmux, &shown, size).await {
            Ok(link) => link,
            Err(error) => {
                locked(&self.running).remove(&base);
                return Err(error);
            }
        };
        let task = Task {
            tmux: self.tmux.clone(),
            shown,
            size,
            tell_size: seat.is_some(),
            seat,
            link: Some(link),
            attaches: 1,
            tail: Tail::new(base),
            keys: VecDeque::new(),
            outbox: Some(to_viewer),
            announce: true,
        };
        let (running, ended) = (Arc::clone(&self.running), self.ended.clone());
        crate::task::spawn("terminal", async move {
            let shown = task.shown.clone();
            let session_ended = task.run(inbox).await;
            locked(&running).remove(&base);
            if let (true, Shown::Tab(tab)) = (session_ended, shown) {
                // A server that is stopping does not care any more.
                drop(ended.send(tab).await);
            }
        });
        Ok(Terminal { outbox, asks })
    }

    /// The terminal that this viewer had before its connection broke, if every byte after `offset` is
    /// still there.
    pub async fn resume(
        &self,
        shown: &Shown,
        owner: &str,
        offset: u64,
        size: Size,
    ) -> Option<Terminal> {
        let base = offset - offset % OFFSETS_PER_TASK;
        let asks = {
            let running = locked(&self.running);
            let entry = running.get(&base)?;
            if entry.shown != *shown || entry.owner != owner {
                return None;
            }
            entry.asks.clone()
        };
        let (to_viewer, outbox) = mpsc::channel(OUTBOX);
        let (taken, answer) = oneshot::channel();
        asks.send(Ask::Resume {
            offset,
            size: size.clamped(),
            outbox: to_viewer,
            taken,
        })
        .await
        .ok()?;
        answer.await.ok()?.then_some(Terminal { outbox, asks })
    }

    /// How many terminals run, resumable ones included.
    #[must_use]
    pub fn running(&self) -> usize {
        locked(&self.running).len()
    }

    fn register(&self, entry: Entry) -> u64 {
        let mut running = locked(&self.running);
        loop {
            let random =
                u64::from_str_radix(&random_hex::<4>(), 16).expect("eight hex digits are a number");
            // 20 bits above the 32: below 2^53 with room for a task's whole range.
            let base = (1 + random % ((1 << 20) - 1)) * OFFSETS_PER_TASK;
            if let std::collections::hash_map::Entry::Vacant(place) = running.entry(base) {
                place.insert(entry);
                return base;
            }
        }
    }
}

fn locked(running: &Registry) -> std::sync::MutexGuard<'_, HashMap<u64, Entry>> {
    running
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Bytes that the viewer has not confirmed, by absolute offset: first those in flight, then those to come.
#[derive(Debug)]
struct Tail {
    bytes: VecDeque<u8>,
    /// Offset of the first byte kept.
    start: u64,
    /// How many of them are in flight.
    sent: usize,
    /// In flight as well, from before the last gap: can be confirmed but not sent again.
    older: usize,
}

impl Tail {
    fn new(base: u64) -> Self {
        Self {
            bytes: VecDeque::new(),
            start: base,
            sent: 0,
            older: 0,
        }
    }

    fn unconfirmed(&self) -> usize {
        self.older + self.bytes.len()
    }

    fn room(&self) -> usize {
        TAIL_BYTES_MAX.saturating_sub(self.unconfirmed())
    }

    fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Offset of the next byte to send.
    fn next_offset(&self) -> u64 {
        self.start + self.sent as u64
    }

    /// The next bytes to send, at most `max`.
    fn next(&mut self, max: usize) -> Vec<u8> {
        let n = self.waiting().min(max);
        let chunk = self
            .bytes
            .range(self.sent..self.sent + n)
            .copied()
            .collect();
        self.sent += n;
        chunk
    }

    /// The viewer has consumed `n` bytes; what was never sent can't be confirmed.
    fn confirm(&mut self, n: usize) {
        let older = n.min(self.older);
        self.older -= older;
        let n = (n - older).min(self.sent);
        self.bytes.drain(..n);
        self.start += n as u64;
        self.sent -= n;
    }

    /// Gives up what was not sent and `more` bytes that came on top; the next byte stands behind the gap.
    fn skip(&mut self, more: usize) {
        self.start += (self.bytes.len() + more) as u64;
        self.older += self.sent;
        self.sent = 0;
        self.bytes.clear();
    }

    /// Goes back to `offset` for a viewer that has everything before it; false if that is not possible.
    fn rewind(&mut self, offset: u64) -> bool {
        let end = self.start + self.bytes.len() as u64;
        if offset < self.start || offset > end {
            return false;
        }
        self.older = 0;
        self.sent = self.bytes.len();
        self.confirm(usize::try_from(offset - self.start).unwrap_or(usize::MAX));
        self.sent = 0;
        true
    }
}

/// The `tmux attach` as tmux lists it, for as long as it is ours.
struct Client {
    typed: tmux::Typed,
    pid: Option<u32>,
}

impl Client {
    fn new(typed: &tmux::Typed, pid: Option<u32>) -> Self {
        if let Some(pid) = pid {
            typed.attached(pid);
        }
        Self {
            typed: typed.clone(),
            pid,
        }
    }

    fn heard(&self, bytes: &[u8]) {
        if let Some(pid) = self.pid {
            self.typed.heard(pid, bytes);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            self.typed.left(pid);
        }
    }
}

/// One `tmux attach` in its pty.
struct Link {
    read: pty_process::OwnedReadPty,
    write: pty_process::OwnedWritePty,
    child: Child,
    client: Client,
    since: Instant,
    /// It has drawn something. Until then its terminal still cooks what is typed: a Ctrl-C would be for the
    /// attach itself, and be lost.
    ready: bool,
}

impl Link {
    async fn attach(tmux: &tmux::Handle, shown: &Shown, size: Size) -> Result<Self> {
        let how = shown.attach(tmux).await?;
        let (pty, pts) = pty_process::open().context("Can't get a pseudo-terminal")?;
        pty.resize(pty_process::Size::new(size.rows, size.cols))
            .context("Can't size the pseudo-terminal")?;
        let child = pty_process::Command::new(&how.program)
            .args(&how.arguments)
            .env_clear()
            .envs(how.environment.iter().map(|(name, value)| (name, value)))
            .kill_on_drop(true)
            .spawn(pts)
            .context("Can't run tmux; is it installed?")?;
        let (read, write) = pty.into_split();
        let client = Client::new(tmux.typed(), child.id());
        Ok(Self {
            read,
            write,
            child,
            client,
            since: Instant::now(),
            ready: false,
        })
    }

    /// Hangs up as a closed terminal does, waits, and reaps.
    async fn hang_up(self) {
        let Self {
            read,
            write,
            mut child,
            client: _client,
            since: _,
            ready: _,
        } = self;
        drop((read, write));
        if tokio::time::timeout(LEAVE_WITHIN, child.wait())
            .await
            .is_err()
            && let Err(error) = child.kill().await
        {
            tracing::warn!("can't end a tmux attach: {error}");
        }
    }
}

/// Why a `tmux attach` has ended.
enum Detached {
    /// Its session lives: attach again.
    ByOthers,
    /// Its session has ended.
    Ended,
    /// It can't be told; a sentence for the person.
    Unclear(String),
}

struct Task {
    tmux: tmux::Handle,
    shown: Shown,
    size: Size,
    /// Its place among the viewers of its tab.
    seat: Option<Seat>,
    /// The viewer is to be told how large the window is, and by whose choice.
    tell_size: bool,
    /// `None`: detached, because the viewer has too much unconfirmed.
    link: Option<Link>,
    /// Attaches in a row that did not hold.
    attaches: u32,
    tail: Tail,
    keys: VecDeque<u8>,
    /// `None`: the connection broke and may come back.
    outbox: Option<mpsc::Sender<ToViewer>>,
    /// The next message to the viewer is the offset.
    announce: bool,
}

impl Task {
    /// Runs until the viewer has left or the session has ended; true for the latter.
    async fn run(mut self, mut inbox: mpsc::Receiver<Ask>) -> bool {
        let mut buffer = vec![0; READ_BYTES];
        let mut last_read = Instant::now() - SLOW_READ_EVERY;
        let mut broken_at = None;
        let mut behind_since = None;
        let session_ended = loop {
            let behind = self.tail.unconfirmed() > SLOW_FROM_BYTES;
            if self.link.is_none() && self.outbox.is_none() {
                // Nothing more comes, so there is nothing to resume.
                break false;
            }
            if self.link.is_none()
                && !behind
                && let Err(error) = self.attach_again().await
            {
                let gone = matches!(error.downcast_ref(), Some(tmux::Error::Gone));
                if !gone {
                    tracing::error!("{}: {error:#}", self.shown);
                }
                self.finish(&format!("{error:#}")).await;
                break gone;
            }
            let read_from = if behind {
                last_read + SLOW_READ_EVERY
            } else {
                last_read
            };
            behind_since =
                (behind && self.link.is_some()).then(|| behind_since.unwrap_or_else(Instant::now));
            let stalled_at = behind_since.map(|since| since + STALLED_AFTER);
            let give_up_at = broken_at.map(|at: Instant| at + RESUME_FOR);
            let has_message = self.announce || self.tell_size || self.tail.waiting() > 0;
            let (read, write) = match &mut self.link {
                Some(link) => (Some(&mut link.read), link.ready.then_some(&mut link.write)),
                None => (None, None),
            };
            tokio::select! {
                got = read_when(read, &mut buffer, read_from) => {
                    last_read = Instant::now();
                    match got {
                        Ok(n) if n > 0 => self.keep(&buffer[..n]).await,
                        // A pty without its program reads as EIO on Linux.
                        Ok(_) | Err(_) => match self.why_detached().await {
                            Detached::ByOthers => {}
                            Detached::Ended => {
                                self.finish(self.shown.ended()).await;
                                break true;
                            }
                            Detached::Unclear(why) => {
                                self.finish(&why).await;
                                break false;
                            }
                        },
                    }
                }
                written = write_when(write, &self.keys) => match written {
                    Ok(n) => drop(self.keys.drain(..n)),
                    // The reading side finds out what happened.
                    Err(_) => self.keys.clear(),
                },
                () = room_when(self.outbox.as_ref(), has_message) => self.send_next(),
                () = closed_when(self.outbox.as_ref()) => {
                    self.outbox = None;
                    broken_at = Some(Instant::now());
                    self.here(false);
                }
                ask = inbox.recv(), if self.keys.len() < KEYS_BYTES_MAX => match ask {
                    None | Some(Ask::Leave) => break false,
                    Some(Ask::Keys(bytes)) => {
                        if let Some(link) = &self.link {
                            link.client.heard(&bytes);
                        }
                        self.keys.extend(bytes);
                    }
                    Some(Ask::Resize(size)) => self.wants(size.clamped()),
                    Some(Ask::Hold(hold)) => {
                        if let Some(seat) = &self.seat {
                            seat.hold(hold);
                        }
                    }
                    Some(Ask::Here(here)) => self.here(here && self.outbox.is_some()),
                    Some(Ask::Credit(bytes)) => {
                        behind_since = None;
                        self.tail.confirm(usize::try_from(bytes).unwrap_or(usize::MAX));
                    }
                    Some(Ask::Resume { offset, size, outbox, taken }) => {
                        let can = self.link.is_some() && self.tail.rewind(offset);
                        // Whoever gave up waiting for the answer takes nothing over.
                        if taken.send(can).is_ok() && can {
                            self.outbox = Some(outbox);
                            self.announce = true;
                            broken_at = None;
                            self.tell_size = self.seat.is_some();
                            self.wants(size);
                            self.here(true);
                        }
                    }
                },
                () = changed_when(self.seat.as_mut()) => {
                    if let Some(seat) = &mut self.seat {
                        let (size, _) = seat.look();
                        self.tell_size = true;
                        self.resize(size);
                    }
                }
                () = sleep_until(stalled_at) => self.let_go(1).await,
                () = sleep_until(give_up_at) => break false,
            }
        };
        // Whoever else looks need not wait until this attach is gone.
        self.seat = None;
        if let Some(link) = self.link.take() {
            link.hang_up().await;
        }
        session_ended
    }

    /// Puts the next message into the viewer's outbox, which has room: only this task fills it.
    fn send_next(&mut self) {
        let message = if let (true, Some(seat)) = (self.tell_size, &mut self.seat) {
            self.tell_size = false;
            let (size, own) = seat.look();
            self.resize(size);
            let Size { cols, rows } = size;
            ToViewer::Size { cols, rows, own }
        } else if self.announce {
            self.announce = false;
            ToViewer::Offset(self.tail.next_offset())
        } else {
            ToViewer::Data(self.tail.next(CHUNK_BYTES))
        };
        if let Some(outbox) = &self.outbox
            && outbox.try_send(message).is_err()
        {
            // The viewer has just gone; what was meant for it counts as in flight until it comes back.
            tracing::debug!("{}: the viewer has gone", self.shown);
        }
    }

    /// Takes in what the pty said, unless it is too much for a slow viewer.
    async fn keep(&mut self, bytes: &[u8]) {
        if let Some(link) = &mut self.link {
            link.ready = true;
        }
        if bytes.len() <= self.tail.room() {
            self.tail.bytes.extend(bytes);
            return;
        }
        self.let_go(bytes.len()).await;
    }

    /// Detaches and gives up what was not sent, and `more` bytes besides; once the viewer has caught up, it
    /// gets a complete picture at an offset behind the gap.
    async fn let_go(&mut self, more: usize) {
        self.tail.skip(more);
        if let Some(link) = self.link.take() {
            link.hang_up().await;
        }
        self.attaches = 0;
    }

    async fn attach_again(&mut self) -> Result<()> {
        let link = Link::attach(&self.tmux, &self.shown, self.size).await?;
        self.link = Some(link);
        self.announce = true;
        Ok(())
    }

    /// The attach has ended, and here is why.
    async fn why_detached(&mut self) -> Detached {
        if let Some(link) = self.link.take() {
            self.attaches = if link.since.elapsed() < ATTACH_HELD {
                self.attaches + 1
            } else {
                1
            };
            link.hang_up().await;
        }
        let again_and_again =
            || Detached::Unclear("tmux lets go of this terminal again and again.".to_owned());
        let tab = match &self.shown {
            Shown::Tab(tab) => tab,
            // The person may have detached us; nobody is asked about a server that is not ours.
            Shown::Elsewhere { agent, .. } if sys::is_gone(agent) => return Detached::Ended,
            Shown::Elsewhere { .. } if self.attaches <= ATTACHES_MAX => return Detached::ByOthers,
            Shown::Elsewhere { .. } => return again_and_again(),
        };
        match session_now(&self.tmux, tab).await {
            Ok(_) if self.attaches <= ATTACHES_MAX => Detached::ByOthers,
            Ok(_) => again_and_again(),
            Err(tmux::Error::Gone) => Detached::Ended,
            // Not an answer: the shell may well be alive.
            Err(
                error @ (tmux::Error::Unreachable(_)
                | tmux::Error::Refused(_)
                | tmux::Error::Late
                | tmux::Error::Deaf(_)),
            ) => Detached::Unclear(error.to_string()),
        }
    }

    /// The viewer's place has this size now. The window gets it if the viewer decides.
    fn wants(&mut self, size: Size) {
        match &self.seat {
            Some(seat) => seat.wants(size),
            None => self.resize(size),
        }
    }

    fn here(&self, here: bool) {
        if let Some(seat) = &self.seat {
            seat.here(here);
        }
    }

    fn resize(&mut self, size: Size) {
        if self.size == size {
            return;
        }
        self.size = size;
        if let Some(link) = &self.link
            && let Err(error) = link
                .write
                .resize(pty_process::Size::new(size.rows, size.cols))
        {
            tracing::warn!("{}: can't resize: {error}", self.shown);
        }
    }

    /// What is still to be shown, as far as the credit goes, then the reason.
    async fn finish(&mut self, reason: &str) {
        let Some(outbox) = self.outbox.take() else {
            return;
        };
        let all = async {
            if self.announce {
                outbox
                    .send(ToViewer::Offset(self.tail.next_offset()))
                    .await?;
            }
            while self.tail.waiting() > 0 {
                outbox
                    .send(ToViewer::Data(self.tail.next(CHUNK_BYTES)))
                    .await?;
            }
            outbox.send(ToViewer::End(reason.to_owned())).await
        };
        // A viewer that has left, or takes no more, has no use for the rest.
        drop(tokio::time::timeout(LEAVE_WITHIN, all).await);
    }
}

/// The session that is this tab now. When tmux has just gone, it takes a moment to be reached again, or to be
/// known to have ended.
async fn session_now(tmux: &tmux::Handle, tab: &TabId) -> Result<tmux::Session, tmux::Error> {
    let find = async || {
        let listing = tmux.list_now().await?;
        listing.session_of(tab.as_str()).ok_or(tmux::Error::Gone)
    };
    let mut listing = tmux.listing();
    let until = Instant::now() + REACHED_WITHIN;
    loop {
        listing.mark_unchanged();
        let found = find().await;
        if !matches!(found, Err(tmux::Error::Unreachable(_))) {
            return found;
        }
        match tokio::time::timeout_at(until, listing.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return found,
        }
    }
}

async fn read_when(
    pty: Option<&mut pty_process::OwnedReadPty>,
    buffer: &mut [u8],
    from: Instant,
) -> std::io::Result<usize> {
    match pty {
        Some(pty) => {
            if from > Instant::now() {
                tokio::time::sleep_until(from).await;
            }
            pty.read(buffer).await
        }
        None => std::future::pending().await,
    }
}

async fn write_when(
    pty: Option<&mut pty_process::OwnedWritePty>,
    keys: &VecDeque<u8>,
) -> std::io::Result<usize> {
    match pty {
        Some(pty) if !keys.is_empty() => pty.write(keys.as_slices().0).await,
        Some(_) | None => std::future::pending().await,
    }
}

/// Waits until a message could be sent. A closed outbox is [`closed_when`]'s to report.
async fn room_when(outbox: Option<&mpsc::Sender<ToViewer>>, wanted: bool) {
    let there_is_room = match outbox {
        Some(outbox) if wanted => outbox.reserve().await.is_ok(),
        Some(_) | None => false,
    };
    if !there_is_room {
        std::future::pending::<()>().await;
    }
}

async fn changed_when(seat: Option<&mut Seat>) {
    match seat {
        Some(seat) => seat.changed().await,
        None => std::future::pending().await,
    }
}

async fn closed_when(outbox: Option<&mpsc::Sender<ToViewer>>) {
    match outbox {
        Some(outbox) => outbox.closed().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_counts_what_is_in_flight_and_what_is_confirmed() {
        let mut tail = Tail::new(100);
        tail.bytes.extend(b"hello world");
        assert_eq!(tail.next(5), b"hello");
        assert_eq!((tail.sent, tail.waiting()), (5, 6));
        tail.confirm(3);
        assert_eq!((tail.start, tail.sent, tail.waiting()), (103, 2, 6));
        tail.confirm(99);
        assert_eq!(
            (tail.start, tail.sent),
            (105, 0),
            "unsent is never confirmed"
        );
        assert_eq!(tail.next(99), b" world");
    }

    #[test]
    fn a_viewer_that_comes_back_gets_every_byte_after_the_last_it_has() {
        let mut tail = Tail::new(100);
        tail.bytes.extend(b"hello world");
        tail.next(8);
        tail.confirm(2);
        assert!(!tail.rewind(101), "confirmed bytes are gone");
        assert!(!tail.rewind(112), "never said");
        assert!(tail.rewind(106));
        assert_eq!(tail.start, 106);
        assert_eq!(tail.next(99), b"world");
    }

    #[test]
    fn what_is_dropped_leaves_a_gap_and_what_is_in_flight_still_counts() {
        let mut tail = Tail::new(0);
        tail.bytes.extend(b"hello world");
        tail.next(5);
        tail.skip(10);
        assert_eq!((tail.waiting(), tail.next_offset()), (0, 21));
        assert_eq!(tail.unconfirmed(), 5);
        tail.bytes.extend(b"again");
        assert_eq!(tail.next(2), b"ag");
        tail.confirm(6);
        assert_eq!((tail.unconfirmed(), tail.start), (4, 22));
        assert!(!tail.rewind(20), "in the gap");
    }
}
