//! Moments as values. This module must never ask for the current time.

use std::collections::VecDeque;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment on the machine's CLOCK_BOOTTIME, in nanoseconds since boot.
///
/// It orders evidence; it survives suspend and never jumps, unlike wall time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The moment `ms` milliseconds after boot.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// Whole milliseconds since boot.
    #[must_use]
    pub const fn as_ms(self) -> u64 {
        self.0 / 1_000_000
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    fn sub(self, rhs: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

/// When something happened: the boot clock orders, the wall clock is what people see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// Orders evidence within one boot.
    pub boot: Time,
    /// Unix milliseconds; shown to people and used to order what was spooled or found after a restart.
    pub wall_ms: i64,
}

/// Clocks drift and are mapped by the millisecond; more than this is a clock that was set.
pub(crate) const CLOCK_SLACK_MS: i64 = 50;

impl Stamp {
    /// The wall clock was not set between the two moments, so that it may order them.
    #[must_use]
    pub fn same_clock(self, other: Self) -> bool {
        self.wall_ahead_ms().abs_diff(other.wall_ahead_ms()) <= CLOCK_SLACK_MS.unsigned_abs()
    }

    /// How far the wall clock is ahead of the boot clock: the moment of the boot, as this wall clock has it.
    #[must_use]
    pub(crate) fn wall_ahead_ms(self) -> i64 {
        let boot_ms = i64::try_from(self.boot.as_ms()).unwrap_or(i64::MAX);
        self.wall_ms.saturating_sub(boot_ms)
    }

    /// The next millisecond of the wall: what was written in the same one is not later.
    #[must_use]
    pub(crate) const fn later_ms(self) -> Self {
        Self {
            boot: self.boot,
            wall_ms: self.wall_ms.saturating_add(1),
        }
    }

    /// The moment `ms` milliseconds before this one.
    #[must_use]
    pub const fn earlier(self, ms: u32) -> Self {
        Self {
            boot: Time(self.boot.0.saturating_sub(ms as u64 * 1_000_000)),
            wall_ms: self.wall_ms.saturating_sub(ms as i64),
        }
    }
}

/// How the wall clock was set, newest last, as far as it was looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks {
    kept: VecDeque<Clock>,
}

/// One setting of the wall clock.
#[derive(Clone, Copy, Debug)]
struct Clock {
    ahead_ms: i64,
    /// The clock was still another one then; zero if none is known.
    from: Time,
    /// This one was seen first, and last.
    noticed: Time,
    seen: Time,
}

/// Settings that are kept: a clock is hardly ever set, and what is mapped is seconds old.
const CLOCKS_MAX: usize = 8;

impl Clocks {
    /// Notes how the wall clock stands now.
    pub(crate) fn look(&mut self, now: Stamp) {
        let ahead_ms = now.wall_ahead_ms();
        let known = self.kept.back_mut();
        let from = match known {
            Some(known) if known.ahead_ms.abs_diff(ahead_ms) <= CLOCK_SLACK_MS.unsigned_abs() => {
                known.ahead_ms = ahead_ms;
                known.seen = known.seen.max(now.boot);
                return;
            }
            Some(known) => known.seen,
            None => Time(0),
        };
        self.kept.push_back(Clock {
            ahead_ms,
            from,
            noticed: now.boot,
            seen: now.boot,
        });
        if self.kept.len() > CLOCKS_MAX {
            self.kept.pop_front();
        }
    }

    /// The moments at which a wall clock of this machine may have shown `wall_ms`, the newest setting first.
    pub(crate) fn moments(&self, wall_ms: i64) -> impl Iterator<Item = Time> {
        let until = self.kept.iter().skip(1).map(|next| next.noticed);
        let until = until.chain(std::iter::once(Time(u64::MAX)));
        let settings: Vec<(Clock, Time)> = self.kept.iter().copied().zip(until).collect();
        settings
            .into_iter()
            .rev()
            .filter_map(move |(clock, until)| {
                let boot_ms = u64::try_from(wall_ms.saturating_sub(clock.ahead_ms)).ok()?;
                let at = Time::from_ms(boot_ms);
                // The drift of both clocks is within the slack.
                let slack = Duration::from_millis(CLOCK_SLACK_MS.unsigned_abs());
                (at + slack >= clock.from && at <= until).then_some(at)
            })
    }
}

#[cfg(test)]
mod tests;
