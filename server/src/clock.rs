//! The one home of clock reads. Everything else gets its time from here, as a [`Stamp`] that carries both
//! clocks: CLOCK_BOOTTIME orders, wall time is shown. It must never be asked for by `core`.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use purplemux_core::{Stamp, Time};
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since boot on CLOCK_BOOTTIME (runs on while the machine sleeps), and the wall clock in
/// unix milliseconds, read one right after the other.
#[must_use]
pub fn now() -> Stamp {
    Stamp {
        boot: boot(),
        wall_ms: wall_ms(),
    }
}

/// CLOCK_BOOTTIME now.
#[must_use]
pub fn boot() -> Time {
    let t = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(t.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(t.tv_nsec).unwrap_or(0);
    Time(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// Unix milliseconds now.
#[must_use]
pub fn wall_ms() -> i64 {
    unix_ms(system_now())
}

#[expect(
    clippy::disallowed_methods,
    reason = "this module is the home of clock reads"
)]
fn system_now() -> SystemTime {
    SystemTime::now()
}

/// Unix milliseconds of a file's time.
#[must_use]
pub fn unix_ms(at: SystemTime) -> i64 {
    match at.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    }
}

/// Puts a wall time on the boot clock by the offset between the two clocks now. A moment before boot
/// becomes boot itself; one in the future stays in the future, so that it can be seen to be odd.
#[must_use]
pub fn from_wall_ms(wall_ms: i64) -> Stamp {
    let now = now();
    Stamp {
        boot: shift(now, wall_ms),
        wall_ms,
    }
}

/// As [`from_wall_ms`], with the nanoseconds of a file's time kept.
#[must_use]
pub fn from_file_time(at: SystemTime) -> Stamp {
    let boot_now = boot();
    let boot = match system_now().duration_since(at) {
        Ok(ago) => boot_now - ago,
        Err(ahead) => boot_now + ahead.duration(),
    };
    Stamp {
        boot,
        wall_ms: unix_ms(at),
    }
}

/// Waits until the boot clock reads `at`. Tokio's own clock stands still while the machine sleeps, so the
/// wait is cut into pieces of at most [`PIECE`].
pub async fn reached(at: Time) {
    loop {
        let left = at.since(boot());
        if left.is_zero() {
            return;
        }
        passed(left.min(PIECE)).await;
    }
}

/// The longest a moment can be missed by after the machine slept.
const PIECE: Duration = Duration::from_secs(5);

/// Waits for a time that is itself what is wanted: a retry's distance, a sampling interval.
pub async fn passed(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// As [`passed`], where there is no runtime.
pub fn passed_blocking(duration: Duration) {
    std::thread::sleep(duration);
}

fn shift(now: Stamp, wall_ms: i64) -> Time {
    let ahead_ns = i128::from(wall_ms.saturating_sub(now.wall_ms)) * 1_000_000;
    let ns = (i128::from(now.boot.0) + ahead_ns).clamp(0, i128::from(u64::MAX));
    Time(u64::try_from(ns).unwrap_or(0))
}

/// Names this boot (`/proc/sys/kernel/random/boot_id`); empty if the kernel does not say. Boot times of
/// another boot can't be compared with ours.
#[must_use]
pub fn boot_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map(|text| text.trim().to_owned())
            .unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_time_lands_as_far_from_now_on_the_boot_clock() {
        let now = now();
        let earlier = from_wall_ms(now.wall_ms - 5_000);
        let ago = now.boot.since(earlier.boot).as_millis();
        assert!((4_990..=5_010).contains(&ago), "{ago} ms");
        assert_eq!(from_wall_ms(0).boot, Time(0), "before boot");
    }

    #[test]
    fn the_boot_has_a_name() {
        assert_eq!(boot_id().len(), 36);
    }
}
