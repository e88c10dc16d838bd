//! Moments as values. This module must never ask for the current time.

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

#[cfg(test)]
mod tests;
