//! Which device tells the person of an episode, when, and when it takes that back. Pure like the rest: the
//! fleet says *that* somebody is to be told ([`crate::Effect::Notify`], rule 6 with its dwell), this says *where*.
//! It must never look at evidence or change a badge.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::ids::EpisodeId;
use crate::time::Time;

/// A desktop that stays quiet because the session is in front of somebody leaves this long to act before a
/// phone calls.
pub const AFTER_A_LOOK: Duration = Duration::from_secs(10);

/// How long a desktop that was told may be left alone before a phone calls, unless the person set another.
pub const ESCALATE_AFTER: Duration = Duration::from_secs(60);

/// A signed-in browser that wants to be told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub Arc<str>);

/// Where a device is when its person is not at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// On the desk: told first.
    Desktop,
    /// In the pocket: told at once only if no desktop can be.
    Phone,
}

/// A device as it is set up at this moment. One that is off, or in its quiet hours, is not given at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Which.
    pub id: DeviceId,
    /// Desk or pocket.
    pub class: Class,
    /// Wants to hear of needs-input.
    pub asks: bool,
    /// Wants to hear of review.
    pub reviews: bool,
    /// Phones: how long after the dialog opened a desktop that was told is given, for needs-input.
    pub escalate_after: Duration,
    /// Phones: also call for a review that was left alone for that long.
    pub escalate_reviews: bool,
}

/// What an episode is about, as far as devices choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Needs-input.
    Ask,
    /// Review.
    Review,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// [`crate::Effect::Notify`].
    Notify {
        /// The row's id: one notification a row.
        row: Arc<str>,
        /// Which stay.
        episode: EpisodeId,
        /// Dialog or end.
        kind: Kind,
        /// When the badge began, on the boot clock; waits count from here (M05).
        since: Time,
        /// Without sound, and no reason to call a phone.
        silent: bool,
    },
    /// [`crate::Effect::Withdraw`].
    Withdraw {
        /// Which stay.
        episode: EpisodeId,
    },
    /// What a viewer has in front: rows that are visible in a focused window, in several panes perhaps.
    Looks {
        /// One open page.
        viewer: u64,
        /// The device it is open on.
        device: DeviceId,
        /// The rows.
        rows: BTreeSet<Arc<str>>,
    },
    /// That page is closed or not connected any more.
    Left {
        /// One open page.
        viewer: u64,
    },
    /// The moment that [`Alerts::deadline`] named has come.
    DeadlinePassed,
}

/// What a device is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Show the row's notification, in place of an earlier one of that row.
    Show {
        /// Where.
        device: DeviceId,
        /// Which row.
        row: Arc<str>,
        /// Which stay; look up what it says just before it is sent.
        episode: EpisodeId,
        /// Without sound.
        silent: bool,
    },
    /// Take it away.
    Close {
        /// Where.
        device: DeviceId,
        /// Which row.
        row: Arc<str>,
        /// Which stay.
        episode: EpisodeId,
    },
}

/// What each open page has in front, and the device it is open on.
type Viewers = BTreeMap<u64, (DeviceId, BTreeSet<Arc<str>>)>;

#[derive(Clone, Debug)]
struct Open {
    row: Arc<str>,
    kind: Kind,
    since: Time,
    /// Somebody had it in front when it began: phones wait for [`AFTER_A_LOOK`].
    looked_at: bool,
    /// A desktop was told aloud.
    desk_told: bool,
    /// Not worth a call by itself.
    silent: bool,
    shown: BTreeSet<DeviceId>,
    /// Phones that may yet be called: there when it began (M07), and not looking at it themselves.
    phones: BTreeSet<DeviceId>,
}

/// All open episodes that somebody was, or may yet be, told of.
#[derive(Clone, Debug, Default)]
pub struct Alerts {
    open: BTreeMap<EpisodeId, Open>,
    viewers: Viewers,
    due: Option<Time>,
}

impl Alerts {
    /// Takes in what happened at `now`, with the devices as they are set up now.
    pub fn step(&mut self, now: Time, devices: &[Device], happened: Happened) -> Vec<Order> {
        let mut orders = Vec::new();
        match happened {
            Happened::Notify {
                row,
                episode,
                kind,
                since,
                silent,
            } => self.notify(
                now,
                devices,
                &mut orders,
                (row, episode, kind, since, silent),
            ),
            Happened::Withdraw { episode } => {
                if let Some(open) = self.open.remove(&episode) {
                    orders.extend(open.shown.into_iter().map(|device| Order::Close {
                        device,
                        row: open.row.clone(),
                        episode,
                    }));
                }
            }
            Happened::Looks {
                viewer,
                device,
                rows,
            } => {
                self.viewers.insert(viewer, (device, rows));
            }
            Happened::Left { viewer } => {
                self.viewers.remove(&viewer);
            }
            Happened::DeadlinePassed => {}
        }
        self.call_phones(now, devices, &mut orders);
        self.due = self.next(devices);
        orders
    }

    /// When [`Happened::DeadlinePassed`] is to be told; `None`: nothing is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.due
    }

    fn notify(
        &mut self,
        now: Time,
        devices: &[Device],
        orders: &mut Vec<Order>,
        (row, episode, kind, since, silent): (Arc<str>, EpisodeId, Kind, Time, bool),
    ) {
        if let Some(open) = self.open.get(&episode) {
            // One call an episode: what is shown already changes without a sound.
            orders.extend(open.shown.iter().map(|device| Order::Show {
                device: device.clone(),
                row: row.clone(),
                episode,
                silent: true,
            }));
            return;
        }
        let looked_at = self.viewers.values().any(|(_, front)| front.contains(&row));
        let mut open = Open {
            looked_at,
            desk_told: false,
            silent,
            shown: BTreeSet::new(),
            phones: BTreeSet::new(),
            row,
            kind,
            since: since.min(now),
        };
        for device in devices.iter().filter(|device| wants(device, kind)) {
            let here = looks(&self.viewers, &device.id, &open.row);
            match device.class {
                Class::Phone | Class::Desktop if here => {}
                // What calls nobody need not wait for anybody either.
                Class::Phone if silent => show(orders, &mut open, device, episode),
                Class::Phone => {
                    open.phones.insert(device.id.clone());
                }
                Class::Desktop => {
                    show(orders, &mut open, device, episode);
                    open.desk_told |= !silent;
                }
            }
        }
        self.open.insert(episode, open);
    }

    fn call_phones(&mut self, now: Time, devices: &[Device], orders: &mut Vec<Order>) {
        for (episode, open) in &mut self.open {
            for device in devices {
                let Some(due) = call(open, device) else {
                    continue;
                };
                if due > now {
                    continue;
                }
                let here = looks(&self.viewers, &device.id, &open.row);
                open.phones.remove(&device.id);
                if !here {
                    show(orders, open, device, *episode);
                }
            }
        }
    }

    fn next(&self, devices: &[Device]) -> Option<Time> {
        self.open
            .values()
            .flat_map(|open| devices.iter().filter_map(|device| call(open, device)))
            .min()
    }
}

fn wants(device: &Device, kind: Kind) -> bool {
    match kind {
        Kind::Ask => device.asks,
        Kind::Review => device.reviews,
    }
}

/// Whether a page on this device has this row in front.
fn looks(viewers: &Viewers, device: &DeviceId, row: &str) -> bool {
    viewers
        .values()
        .any(|(at, front)| at == device && front.contains(row))
}

fn show(orders: &mut Vec<Order>, open: &mut Open, device: &Device, episode: EpisodeId) {
    open.shown.insert(device.id.clone());
    orders.push(Order::Show {
        device: device.id.clone(),
        row: open.row.clone(),
        episode,
        silent: open.silent,
    });
}

/// When this phone is to be called for it, if it is and was not.
fn call(open: &Open, device: &Device) -> Option<Time> {
    if !wants(device, open.kind) || !open.phones.contains(&device.id) {
        return None;
    }
    if open.looked_at {
        return Some(open.since + AFTER_A_LOOK);
    }
    if !open.desk_told {
        return Some(open.since);
    }
    let escalates = match open.kind {
        Kind::Ask => true,
        Kind::Review => device.escalate_reviews,
    };
    escalates.then(|| open.since + device.escalate_after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, class: Class) -> Device {
        Device {
            id: DeviceId(name.into()),
            class,
            asks: true,
            reviews: true,
            escalate_after: ESCALATE_AFTER,
            escalate_reviews: false,
        }
    }

    fn both() -> Vec<Device> {
        vec![
            device("desk", Class::Desktop),
            device("phone", Class::Phone),
        ]
    }

    /// Plays with a clock in seconds; orders come back as `desk! 1` (aloud), `desk 1` (silent), `desk- 1`.
    struct Play {
        alerts: Alerts,
        devices: Vec<Device>,
        now: u64,
    }

    impl Play {
        fn with(devices: Vec<Device>) -> Self {
            Self {
                alerts: Alerts::default(),
                devices,
                now: 100,
            }
        }

        fn tell(&mut self, happened: Happened) -> Vec<String> {
            let now = Time::from_ms(self.now * 1000);
            self.alerts
                .step(now, &self.devices, happened)
                .into_iter()
                .map(|order| match order {
                    Order::Show {
                        device,
                        episode,
                        silent,
                        ..
                    } => format!(
                        "{}{} {}",
                        device.0,
                        if silent { "" } else { "!" },
                        episode.0
                    ),
                    Order::Close {
                        device, episode, ..
                    } => format!("{}- {}", device.0, episode.0),
                })
                .collect()
        }

        /// An episode that began a second ago.
        fn notify(&mut self, episode: u64, kind: Kind, silent: bool) -> Vec<String> {
            self.tell(Happened::Notify {
                row: "row".into(),
                episode: EpisodeId(episode),
                kind,
                since: Time::from_ms(self.now * 1000 - 1000),
                silent,
            })
        }

        fn withdraw(&mut self, episode: u64) -> Vec<String> {
            self.tell(Happened::Withdraw {
                episode: EpisodeId(episode),
            })
        }

        fn looks(&mut self, viewer: u64, device: &str, rows: &[&str]) {
            let orders = self.tell(Happened::Looks {
                viewer,
                device: DeviceId(device.into()),
                rows: rows.iter().map(|row| Arc::from(*row)).collect(),
            });
            assert_eq!(orders, [""; 0]);
        }

        /// Moves the clock to the deadlines within these seconds, as the server does.
        fn wait(&mut self, seconds: u64) -> Vec<String> {
            let end = self.now + seconds;
            let mut orders = Vec::new();
            while let Some(due) = self.alerts.deadline()
                && due <= Time::from_ms(end * 1000)
            {
                self.now = self.now.max(due.as_ms().div_ceil(1000));
                orders.extend(self.tell(Happened::DeadlinePassed));
                assert!(
                    self.alerts.deadline() != Some(due),
                    "a deadline that passed moves on"
                );
            }
            self.now = end;
            orders
        }
    }

    #[test]
    fn m01_one_alert_per_device_however_many_pages() {
        let mut play = Play::with(vec![device("desk", Class::Desktop)]);
        for viewer in 0..3 {
            play.looks(viewer, "desk", &["another"]);
        }
        assert_eq!(play.notify(1, Kind::Ask, false), ["desk! 1"]);
        // The same stay, told again: nobody is called again.
        assert_eq!(play.notify(1, Kind::Ask, false), ["desk 1"]);
    }

    #[test]
    fn m02_in_front_the_desk_is_quiet_and_the_phone_calls_after_ten_seconds() {
        let mut play = Play::with(both());
        play.looks(1, "desk", &["another", "row"]);
        assert_eq!(play.notify(1, Kind::Ask, false), [""; 0]);
        assert_eq!(play.wait(8), [""; 0]);
        assert_eq!(play.wait(1), ["phone! 1"]);
        assert_eq!(play.withdraw(1), ["phone- 1"]);
    }

    #[test]
    fn m02_handled_within_ten_seconds_nobody_is_called() {
        let mut play = Play::with(both());
        play.looks(1, "desk", &["row"]);
        assert_eq!(play.notify(1, Kind::Ask, false), [""; 0]);
        assert_eq!(play.wait(5), [""; 0]);
        assert_eq!(play.withdraw(1), [""; 0]);
        assert_eq!(play.wait(60), [""; 0]);
    }

    #[test]
    fn m02_another_row_in_front_does_not_mute() {
        let mut play = Play::with(both());
        play.looks(1, "desk", &["another", "row"]);
        play.looks(1, "desk", &["another"]);
        assert_eq!(play.notify(1, Kind::Ask, false), ["desk! 1"]);
        let mut play = Play::with(both());
        play.looks(1, "desk", &["row"]);
        play.tell(Happened::Left { viewer: 1 });
        assert_eq!(play.notify(1, Kind::Ask, false), ["desk! 1"]);
    }

    #[test]
    fn m02_in_front_on_the_phone_the_phone_is_quiet() {
        let mut play = Play::with(both());
        play.looks(1, "phone", &["row"]);
        assert_eq!(play.notify(1, Kind::Ask, false), ["desk! 1"]);
        assert_eq!(play.wait(120), [""; 0]);
    }

    #[test]
    fn m05_a_dialog_left_alone_reaches_the_phone_after_a_minute() {
        let mut play = Play::with(both());
        assert_eq!(play.notify(1, Kind::Ask, false), ["desk! 1"]);
        assert_eq!(play.wait(58), [""; 0]);
        // 60 s after it opened, one of which had passed.
        assert_eq!(play.wait(1), ["phone! 1"]);
        assert_eq!(play.wait(600), [""; 0]);
        assert_eq!(play.withdraw(1), ["desk- 1", "phone- 1"]);
    }

    #[test]
    fn m05_answered_after_forty_seconds_the_phone_stays_quiet() {
        let mut play = Play::with(both());
        play.notify(1, Kind::Ask, false);
        assert_eq!(play.wait(40), [""; 0]);
        assert_eq!(play.withdraw(1), ["desk- 1"]);
        assert_eq!(play.wait(60), [""; 0]);
    }

    #[test]
    fn m05_a_review_escalates_only_if_set() {
        let mut play = Play::with(both());
        assert_eq!(play.notify(1, Kind::Review, false), ["desk! 1"]);
        assert_eq!(play.wait(600), [""; 0]);
        let mut play = Play::with(both());
        play.devices[1].escalate_reviews = true;
        play.devices[1].escalate_after = Duration::from_secs(5);
        assert_eq!(play.notify(1, Kind::Review, false), ["desk! 1"]);
        assert_eq!(play.wait(4), ["phone! 1"]);
    }

    #[test]
    fn a_phone_alone_is_called_at_once() {
        let mut play = Play::with(vec![device("phone", Class::Phone)]);
        assert_eq!(play.notify(1, Kind::Review, false), ["phone! 1"]);
        assert_eq!(play.alerts.deadline(), None);
    }

    #[test]
    fn kinds_are_the_devices_choice() {
        let mut play = Play::with(both());
        play.devices[0].reviews = false;
        // No desktop is told of it, so the phone need not wait for one.
        assert_eq!(play.notify(1, Kind::Review, false), ["phone! 1"]);
        assert_eq!(play.notify(2, Kind::Ask, false), ["desk! 2"]);
    }

    #[test]
    fn what_nobody_typed_is_shown_without_sound_and_calls_no_phone() {
        let mut play = Play::with(both());
        assert_eq!(play.notify(1, Kind::Review, true), ["desk 1", "phone 1"]);
        assert_eq!(play.wait(600), [""; 0]);
        assert_eq!(play.withdraw(1), ["desk- 1", "phone- 1"]);
    }

    #[test]
    fn m07_a_device_that_joins_while_a_dialog_is_open_is_not_called() {
        let mut play = Play::with(vec![device("desk", Class::Desktop)]);
        assert_eq!(play.notify(1, Kind::Ask, false), ["desk! 1"]);
        play.wait(120);
        play.devices = both();
        play.looks(2, "desk", &[]);
        assert_eq!(play.wait(120), [""; 0]);
        // The next one reaches it like any other.
        assert_eq!(play.notify(2, Kind::Ask, false), ["desk! 2"]);
        assert_eq!(play.wait(60), ["phone! 2"]);
    }

    #[test]
    fn m02_in_front_on_one_device_mutes_no_other() {
        // The row in front of a viewer on the desk, and another row in front of one on the phone.
        let mut play = Play::with(both());
        play.looks(1, "phone", &["another"]);
        play.looks(2, "tablet", &["row"]);
        assert_eq!(play.notify(1, Kind::Ask, false), ["desk! 1"]);
        assert_eq!(play.wait(9), ["phone! 1"]);
        // Quiet where it is in front when its time comes.
        let mut play = Play::with(both());
        assert_eq!(play.notify(1, Kind::Ask, false), ["desk! 1"]);
        play.looks(1, "phone", &["row"]);
        assert_eq!(play.wait(120), [""; 0]);
    }

    #[test]
    fn what_calls_nobody_waits_for_no_look_either() {
        // The row is in front on the desk: the phone shows it at once all the same, since it makes no sound.
        let mut play = Play::with(both());
        play.looks(1, "desk", &["row"]);
        assert_eq!(play.notify(1, Kind::Review, true), ["phone 1"]);
        assert_eq!(play.alerts.deadline(), None);
    }
}
