//! Tells the person, on the devices they signed in on (Web Push, RFC 8030): owns the list of those devices and
//! the plan of who is told when ([`purplemux_core::alerts`]); couriers carry it out. It hears of episodes from the hub
//! and must never look at a badge to find one by itself.

pub mod buttons;
pub mod devices;
mod keys;
mod message;
mod send;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use purplemux_core::alerts::{Alerts, DeviceId, Happened, Order};
use purplemux_core::{EpisodeId, Time};
use purplemux_wire::browser::Item;
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::hub::Snapshot;
use crate::store::{NotificationRow, Store, SubscriptionRow};
use crate::{clock, task};
use buttons::Dialog;
use devices::{Address, Choices, Delivery, Kept};
use message::Content;
use send::{Courier, Office, Report, Wish};

pub use send::read as read_address;

/// Base64url without padding, as everything about push is written (RFC 7515 §2).
mod base64 {
    use anyhow::{Context as _, Result};
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    pub fn encode(bytes: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub fn decode(text: &str) -> Result<Vec<u8>> {
        URL_SAFE_NO_PAD
            .decode(text.trim_end_matches('='))
            .context("not base64url")
    }
}

/// Episodes that may wait to be planned; planning one takes microseconds.
const INBOX: usize = 1024;

/// Entries of the history that are kept.
pub const HISTORY_MAX: u32 = 200;

/// Somebody is to be told of this, or of no more of it.
#[derive(Debug)]
enum Message {
    Notify {
        item: Box<Item>,
        episode: EpisodeId,
        since: Time,
        silent: bool,
    },
    Withdraw(EpisodeId),
    Looks {
        viewer: u64,
        device: DeviceId,
        rows: BTreeSet<Arc<str>>,
    },
    Left {
        viewer: u64,
    },
}

/// The hub's and the viewers' way here.
#[derive(Clone, Debug)]
pub struct Handle {
    inbox: mpsc::Sender<Message>,
}

/// What [`channel`] made for [`Push::start`].
#[derive(Debug)]
pub struct Inbox(mpsc::Receiver<Message>);

/// Both ends of the way here; what is sent before the start waits.
#[must_use]
pub fn channel() -> (Handle, Inbox) {
    let (inbox, messages) = mpsc::channel(INBOX);
    (Handle { inbox }, Inbox(messages))
}

impl Handle {
    /// [`purplemux_core::Effect::Notify`]: the row as it is to be shown.
    pub async fn notify(&self, item: Item, episode: EpisodeId, since: Time, silent: bool) {
        let item = Box::new(item);
        self.tell(Message::Notify {
            item,
            episode,
            since,
            silent,
        })
        .await;
    }

    /// [`purplemux_core::Effect::Withdraw`].
    pub async fn withdraw(&self, episode: EpisodeId) {
        self.tell(Message::Withdraw(episode)).await;
    }

    /// A page that was opened; it has nothing in front until it says so.
    #[must_use]
    pub fn viewer(&self, login: &str) -> Viewer {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Viewer {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            device: DeviceId(login.into()),
            handle: self.clone(),
        }
    }

    async fn tell(&self, message: Message) {
        if self.inbox.send(message).await.is_err() {
            debug!("nobody is told of anything any more");
        }
    }
}

/// One open page; forgotten when dropped.
#[derive(Debug)]
pub struct Viewer {
    id: u64,
    device: DeviceId,
    handle: Handle,
}

impl Viewer {
    /// These rows are in front on it, visible and focused.
    pub async fn looks(&self, rows: &[String]) {
        self.handle
            .tell(Message::Looks {
                viewer: self.id,
                device: self.device.clone(),
                rows: rows.iter().map(|row| Arc::from(row.as_str())).collect(),
            })
            .await;
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let left = Message::Left { viewer: self.id };
        if let Err(mpsc::error::TrySendError::Full(left)) = self.handle.inbox.try_send(left) {
            let handle = self.handle.clone();
            task::spawn("left", async move { handle.tell(left).await });
        }
    }
}

struct Device {
    kept: Kept,
    courier: Arc<Courier>,
    work: JoinHandle<()>,
}

impl Drop for Device {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// A device as its owner sees it.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// What it wants.
    pub choices: Choices,
    /// How the last delivery went.
    pub last: Option<Delivery>,
}

/// The devices, for those who set them up.
#[derive(Clone)]
pub struct Push {
    office: Arc<Office>,
    store: Store,
    devices: Arc<Mutex<BTreeMap<String, Device>>>,
}

impl std::fmt::Debug for Push {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Push").finish_non_exhaustive()
    }
}

impl Push {
    /// Reads the devices and starts planning. `contact`: a URL for push services.
    ///
    /// # Errors
    /// The key or the store can't be read.
    pub async fn start(
        home: &std::path::Path,
        contact: String,
        store: Store,
        snapshots: watch::Receiver<Arc<Snapshot>>,
        inbox: Inbox,
    ) -> Result<Self> {
        let push = Self {
            office: Arc::new(Office::new(keys::open(home)?, contact, snapshots)),
            devices: Arc::default(),
            store,
        };
        for row in push.store.subscriptions().await? {
            match kept(row) {
                Ok(kept) => push.employ(kept),
                Err(why) => warn!("A device's subscription can't be read: {why:#}"),
            }
        }
        task::spawn("alerts", push.clone().plan(inbox.0));
        Ok(push)
    }

    /// The key by which browsers subscribe (`applicationServerKey`).
    #[must_use]
    pub fn public_key(&self) -> String {
        self.office.public_key()
    }

    /// What is known of a device; `None`: it has not subscribed.
    #[must_use]
    pub fn device(&self, login: &str) -> Option<Shown> {
        self.devices().get(login).map(|device| Shown {
            choices: device.kept.choices.clone(),
            last: device.kept.last.clone(),
        })
    }

    /// A device subscribes, again, or chooses anew.
    ///
    /// # Errors
    /// It can't be written down; nothing has changed then.
    pub async fn put(&self, login: &str, address: Address, choices: Choices) -> Result<()> {
        let last = self.device(login).and_then(|device| device.last);
        let kept = Kept {
            login: login.to_owned(),
            address,
            choices,
            last,
        };
        self.store.put_subscription(row(&kept)).await?;
        self.employ(kept);
        Ok(())
    }

    /// Whether a press on a notification's button is of one that was sent to this login.
    #[must_use]
    pub fn sent(&self, login: &str, dialog: &Dialog, seal: &str) -> bool {
        self.office.sealer.holds(login, dialog, seal)
    }

    /// A device wants no more.
    ///
    /// # Errors
    /// It can't be written down; it is told nothing until the next start all the same.
    pub async fn remove(&self, login: &str) -> Result<()> {
        self.devices().remove(login);
        self.store.remove_subscription(login.to_owned()).await
    }

    /// Sends a test message now and says how that went; `None`: the device has not subscribed.
    ///
    /// # Errors
    /// What came of it can't be written down.
    pub async fn test(&self, login: &str) -> Result<Option<Delivery>> {
        let found = self
            .devices()
            .get(login)
            .map(|device| (device.kept.address.clone(), device.kept.choices.clone()));
        let Some((address, choices)) = found else {
            return Ok(None);
        };
        let report = send::test(&self.office, &address, &choices).await;
        let delivery = report.delivery.clone();
        self.reported(login, &address, report).await;
        Ok(Some(delivery))
    }

    fn devices(&self) -> MutexGuard<'_, BTreeMap<String, Device>> {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn employ(&self, kept: Kept) {
        let courier = Courier::new();
        let push = self.clone();
        let (login, address, choices) = (
            kept.login.clone(),
            kept.address.clone(),
            kept.choices.clone(),
        );
        let at_work = Arc::clone(&courier);
        let work = task::spawn("courier", async move {
            loop {
                let report = at_work.next(&push.office, &login, &address, &choices).await;
                push.reported(&login, &address, report).await;
            }
        });
        let device = Device {
            courier,
            work,
            kept,
        };
        self.devices().insert(device.kept.login.clone(), device);
    }

    /// Writes down how a delivery went. A device that is gone is removed, unless it has subscribed anew since.
    async fn reported(&self, login: &str, address: &Address, report: Report) {
        let last = report.delivery;
        if !last.ok {
            warn!(
                "A notification did not reach a device: {}",
                last.why.as_deref().unwrap_or("no reason")
            );
        }
        {
            let mut devices = self.devices();
            let Some(device) = devices
                .get_mut(login)
                .filter(|device| device.kept.address == *address)
            else {
                return;
            };
            device.kept.last = Some(last.clone());
        }
        let kept = if report.gone {
            debug!("a device has unsubscribed");
            self.store.remove_subscription(login.to_owned()).await
        } else {
            self.store
                .set_delivery(login.to_owned(), as_text(&last))
                .await
        };
        if let Err(why) = kept {
            warn!("How a delivery went can't be written down: {why:#}");
        }
        if report.gone {
            // Ends the courier that reports this, so it comes last.
            self.devices().remove(login);
        }
    }

    async fn plan(self, mut messages: mpsc::Receiver<Message>) {
        let mut alerts = Alerts::default();
        let mut contents: BTreeMap<EpisodeId, Arc<Content>> = BTreeMap::new();
        loop {
            let due = alerts.deadline();
            let happened = tokio::select! {
                message = messages.recv() => match message {
                    Some(message) => self.understand(message, &mut contents).await,
                    None => return,
                },
                () = clock::reached(due.unwrap_or_default()), if due.is_some() => Some(Happened::DeadlinePassed),
            };
            let Some(happened) = happened else { continue };
            let over = match happened {
                Happened::Withdraw { episode } => Some(episode),
                Happened::Notify { .. }
                | Happened::Looks { .. }
                | Happened::Left { .. }
                | Happened::DeadlinePassed => None,
            };
            let now_ms = clock::wall_ms();
            let devices: Vec<_> = self
                .devices()
                .values()
                .filter_map(|device| device.kept.choices.now(&device.kept.login, now_ms))
                .collect();
            for order in alerts.step(clock::boot(), &devices, happened) {
                self.carry_out(order, &contents);
            }
            if let Some(episode) = over {
                contents.remove(&episode);
            }
        }
    }

    /// What the plan is to hear; keeps what there is to say.
    async fn understand(
        &self,
        message: Message,
        contents: &mut BTreeMap<EpisodeId, Arc<Content>>,
    ) -> Option<Happened> {
        match message {
            Message::Notify {
                item,
                episode,
                since,
                silent,
            } => {
                let content = Arc::new(Content::of(&item)?);
                let kind = message::kind(content.about);
                let row = Arc::from(content.row.as_str());
                self.remember(&content, episode).await;
                contents.insert(episode, content);
                Some(Happened::Notify {
                    row,
                    episode,
                    kind,
                    since,
                    silent,
                })
            }
            Message::Withdraw(episode) => {
                let ended = self
                    .store
                    .end_notification(episode.0, clock::wall_ms())
                    .await;
                match ended {
                    // Told before the server was restarted: who was is not known any more.
                    Ok(Some(row)) if !contents.contains_key(&episode) => self.close(&row, episode),
                    Ok(Some(_) | None) => {}
                    Err(why) => warn!("The history of notifications can't be written: {why:#}"),
                }
                Some(Happened::Withdraw { episode })
            }
            Message::Looks {
                viewer,
                device,
                rows,
            } => Some(Happened::Looks {
                viewer,
                device,
                rows,
            }),
            Message::Left { viewer } => Some(Happened::Left { viewer }),
        }
    }

    /// Takes a row's notification away on every device.
    fn close(&self, row: &str, episode: EpisodeId) {
        let episode = episode.0;
        for device in self.devices().values() {
            device.courier.wish(row, Wish::Close { episode });
        }
    }

    async fn remember(&self, content: &Content, episode: EpisodeId) {
        let row = NotificationRow {
            episode: episode.0,
            row: content.row.clone(),
            title: content.title.clone(),
            about: content.about.word().to_owned(),
            text: content.text.clone(),
            at_ms: clock::wall_ms(),
            ended_ms: None,
        };
        if let Err(why) = self.store.add_notification(row, HISTORY_MAX).await {
            warn!("The history of notifications can't be written: {why:#}");
        }
    }

    fn carry_out(&self, order: Order, contents: &BTreeMap<EpisodeId, Arc<Content>>) {
        let (device, row, wish) = match order {
            Order::Show {
                device,
                row,
                episode,
                silent,
            } => {
                let Some(content) = contents.get(&episode) else {
                    return;
                };
                let wish = Wish::Show {
                    episode: episode.0,
                    content: Arc::clone(content),
                    silent,
                };
                (device, row, wish)
            }
            Order::Close {
                device,
                row,
                episode,
            } => {
                let episode = episode.0;
                (device, row, Wish::Close { episode })
            }
        };
        if let Some(device) = self.devices().get(&*device.0) {
            device.courier.wish(&row, wish);
        }
    }
}

fn as_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain values have a JSON form")
}

fn row(kept: &Kept) -> SubscriptionRow {
    SubscriptionRow {
        login: kept.login.clone(),
        address: as_text(&kept.address),
        choices: as_text(&kept.choices),
        last: kept.last.as_ref().map(as_text),
    }
}

fn kept(row: SubscriptionRow) -> Result<Kept> {
    let last = row.last.map(|text| serde_json::from_str(&text));
    Ok(Kept {
        address: serde_json::from_str(&row.address).context("its address")?,
        choices: serde_json::from_str(&row.choices).context("its choices")?,
        last: last.transpose().context("its last delivery")?,
        login: row.login,
    })
}
