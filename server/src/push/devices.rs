//! What a device wants to be told and how: its choices, its push subscription, and how the last delivery went.
//! Values only.

use jiff::civil::Time;
use jiff::tz::TimeZone;
use purplemux_core::alerts;
use purplemux_wire::sentence::{Cause, Sentence};
use serde::{Deserialize, Serialize};

/// Desk or pocket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Told first.
    #[default]
    Desktop,
    /// Called when nobody is at a desktop, or none is.
    Phone,
}

/// How much stands on a lock screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shows {
    /// The session's title and what is asked or said.
    Everything,
    /// The session's title and the kind.
    #[default]
    Title,
    /// How many need the person.
    Count,
}

/// From when to when a device stays quiet, by its own clock; over midnight where `from` is later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiet {
    /// `HH:MM`.
    pub from: Time,
    /// `HH:MM`.
    pub to: Time,
}

/// A device's choices; what is left out has its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choices {
    /// Told at all.
    pub on: bool,
    /// Desk or pocket.
    pub class: Class,
    /// Needs-input.
    pub asks: bool,
    /// Review.
    pub reviews: bool,
    /// Quiet hours.
    pub quiet: Option<Quiet>,
    /// Its time zone as IANA names it, for the quiet hours.
    pub zone: String,
    /// What its lock screen shows.
    pub shows: Shows,
    /// The language of its words (BCP 47).
    pub lang: String,
    /// Phones: seconds that a desktop which was told is given, 10 to 3600.
    pub escalate_s: u32,
    /// Phones: also for review.
    pub escalate_reviews: bool,
    /// Yes and No on the notification of a plain permission, where it shows everything.
    pub buttons: bool,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            on: true,
            class: Class::default(),
            asks: true,
            reviews: true,
            quiet: None,
            zone: "UTC".to_owned(),
            shows: Shows::default(),
            lang: "en".to_owned(),
            escalate_s: 60,
            escalate_reviews: false,
            buttons: false,
        }
    }
}

impl Choices {
    /// What is wrong with them, as a sentence.
    ///
    /// # Errors
    /// Something is.
    pub fn check(&self) -> Result<(), Cause> {
        if TimeZone::get(&self.zone).is_err() {
            return Err(Cause::NoZone {
                zone: self.zone.clone(),
            });
        }
        if !(10..=3600).contains(&self.escalate_s) {
            return Err(Cause::EscalateRange);
        }
        Ok(())
    }

    fn is_quiet(&self, now_ms: i64) -> bool {
        let Some(Quiet { from, to }) = self.quiet else {
            return false;
        };
        let (Ok(now), Ok(zone)) = (
            jiff::Timestamp::from_millisecond(now_ms),
            TimeZone::get(&self.zone),
        ) else {
            return false;
        };
        let now = now.to_zoned_datetime(zone).time();
        if from <= to {
            from <= now && now < to
        } else {
            from <= now || now < to
        }
    }

    /// The device as it is now; `None`: it is not to be told of anything.
    #[must_use]
    pub fn now(&self, login: &str, now_ms: i64) -> Option<alerts::Device> {
        (self.on && !self.is_quiet(now_ms)).then(|| alerts::Device {
            id: alerts::DeviceId(login.into()),
            class: match self.class {
                Class::Desktop => alerts::Class::Desktop,
                Class::Phone => alerts::Class::Phone,
            },
            asks: self.asks,
            reviews: self.reviews,
            escalate_after: std::time::Duration::from_secs(self.escalate_s.into()),
            escalate_reviews: self.escalate_reviews,
        })
    }
}

/// Where a device's browser listens (RFC 8030), and the keys to write to it (RFC 8291).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// Its push service's URL for it.
    pub endpoint: String,
    /// Public key, base64url.
    pub p256dh: String,
    /// Secret of 16 bytes, base64url.
    pub auth: String,
}

/// How a delivery went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// When it was over, unix ms.
    pub at_ms: i64,
    /// The push service took it.
    pub ok: bool,
    /// What it answered.
    pub status: Option<u16>,
    /// What went wrong, and what to do.
    pub why: Option<String>,
    /// The same as a code; none in what was kept before codes were.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub said: Option<Sentence>,
}

/// A device with all that is kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its login.
    pub login: String,
    /// Where it listens.
    pub address: Address,
    /// What it wants.
    pub choices: Choices,
    /// How the last delivery went.
    pub last: Option<Delivery>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(from: &str, to: &str, zone: &str) -> Choices {
        Choices {
            quiet: Some(Quiet {
                from: from.parse().unwrap(),
                to: to.parse().unwrap(),
            }),
            zone: zone.to_owned(),
            ..Choices::default()
        }
    }

    #[test]
    fn quiet_hours_go_over_midnight_and_by_the_devices_own_clock() {
        let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
        let night = quiet("22:00", "07:00", "Asia/Taipei");
        assert!(night.is_quiet(at("2026-01-01T15:00:00Z")));
        assert!(night.is_quiet(at("2026-01-01T22:59:00Z")));
        assert!(!night.is_quiet(at("2026-01-01T23:00:00Z")));
        let noon = quiet("12:00", "13:00", "UTC");
        assert!(noon.is_quiet(at("2026-01-01T12:30:00Z")));
        assert!(!noon.is_quiet(at("2026-01-01T13:00:00Z")));
        assert!(night.now("a", at("2026-01-01T15:00:00Z")).is_none());
        assert!(night.now("a", at("2026-01-01T23:00:00Z")).is_some());
    }

    #[test]
    fn odd_choices_are_named() {
        assert!(
            quiet("12:00", "13:00", "Mars/Olympus")
                .check()
                .unwrap_err()
                .to_string()
                .contains("Mars")
        );
        assert!(
            serde_json::from_str::<Choices>(r#"{"asks":true}"#)
                .unwrap()
                .reviews
        );
        assert!(serde_json::from_str::<Choices>(r#"{"ask":true}"#).is_err());
    }
}
