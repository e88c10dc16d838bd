//! The safety net: how often it looks around, and the one thing that it may put right. Everything else that
//! it finds goes where the witnesses' own findings go; it must never be a second judge of badges.

use std::time::Duration;

use crate::time::{Stamp, Time};
use crate::view::Badge;

/// A badge that has been busy for longer than this is checked against its process.
pub const STUCK_AFTER: Duration = Duration::from_secs(600);

/// How long from one look to the next. More tabs are more to look at, and the load must not grow with them.
#[must_use]
pub const fn interval(tabs: usize) -> Duration {
    match tabs {
        0..=10 => Duration::from_secs(30),
        11..=20 => Duration::from_secs(45),
        21.. => Duration::from_secs(60),
    }
}

/// Whether an agent whose process was missed is to be put right: it is busy, and has been for long enough
/// that whoever should have told of its end will not do so any more.
pub(crate) fn stuck(badge: Option<&Badge>, since: Stamp, now: Time) -> bool {
    matches!(badge, Some(Badge::Busy(_))) && now.since(since.boot) > STUCK_AFTER
}
