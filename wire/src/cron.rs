//! When a scheduled wake-up of Claude's comes next: five cron fields in the machine's zone, as `session_crons`
//! of the Stop hook carries them (measured, 2.1.332: `20 9 * * *`).
//!
//! Only for display ("wakes 09:20"). Must never guess: what is not plain cron has no time.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// Longest way ahead that is searched: a 29th of February is at most eight years off.
const DAYS_MAX: i32 = 8 * 366;

/// The first moment after `after_ms` (unix ms) that fits, in unix ms.
pub(crate) fn next(schedule: &str, after_ms: i64, zone: &TimeZone) -> Option<i64> {
    let fields: Vec<&str> = schedule.split_ascii_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields.try_into().ok()?;
    let minutes = Set::parse(minute, 0, 59)?;
    let hours = Set::parse(hour, 0, 23)?;
    let days = Set::parse(day, 1, 31)?;
    let months = Set::parse(month, 1, 12)?;
    let weekdays = Set::parse(weekday, 0, 7)?;
    let fits = |date: Date| {
        let sunday = date.weekday().to_sunday_zero_offset();
        let on_day = days.has(date.day());
        let on_weekday = weekdays.has(sunday) || sunday == 0 && weekdays.has(7);
        // As cron has it: with both restricted, either is enough.
        let day_fits = if days.all || weekdays.all {
            on_day && on_weekday
        } else {
            on_day || on_weekday
        };
        months.has(date.month()) && day_fits
    };
    let after = Timestamp::from_millisecond(after_ms).ok()?;
    let today = after.to_zoned_datetime(zone.clone()).date();
    for ahead in 0..DAYS_MAX {
        let date = today.checked_add(ahead.days()).ok()?;
        if !fits(date) {
            continue;
        }
        for hour in (0..24).filter(|&hour| hours.has(hour)) {
            for minute in (0..60).filter(|&minute| minutes.has(minute)) {
                let at = date
                    .at(hour, minute, 0, 0)
                    .to_zoned_datetime(zone.clone())
                    .ok()?;
                if at.timestamp() > after {
                    return Some(at.timestamp().as_millisecond());
                }
            }
        }
    }
    None
}

/// The values one field allows.
struct Set {
    bits: u64,
    /// Written as `*`: it restricts nothing.
    all: bool,
}

impl Set {
    fn parse(field: &str, low: u8, high: u8) -> Option<Self> {
        let mut bits = 0;
        for part in field.split(',') {
            let (range, step) = part.split_once('/').unwrap_or((part, "1"));
            let step: u8 = step.parse().ok().filter(|&step| step > 0)?;
            let (from, to) = if range == "*" {
                (low, high)
            } else if let Some((from, to)) = range.split_once('-') {
                (from.parse().ok()?, to.parse().ok()?)
            } else {
                let from = range.parse().ok()?;
                (from, if part.contains('/') { high } else { from })
            };
            if from < low || to > high || from > to {
                return None;
            }
            for value in (from..=to).step_by(usize::from(step)) {
                bits |= 1 << value;
            }
        }
        Some(Self {
            bits,
            all: field == "*",
        })
    }

    fn has(&self, value: i8) -> bool {
        u8::try_from(value).is_ok_and(|value| self.bits >> value & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(schedule: &str, after: &str) -> Option<String> {
        let after: Timestamp = after.parse().expect("a timestamp");
        let next = next(schedule, after.as_millisecond(), &TimeZone::UTC)?;
        Some(
            Timestamp::from_millisecond(next)
                .expect("in range")
                .to_string(),
        )
    }

    #[test]
    fn the_next_fitting_minute_is_found() {
        // The recorded run s36: Stop at 09:18:39, the wake-up came at 09:20:00.
        let after = "2026-11-30T09:18:39Z";
        assert_eq!(
            at("20 9 * * *", after).as_deref(),
            Some("2026-11-30T09:20:00Z")
        );
        assert_eq!(
            at("18 9 * * *", after).as_deref(),
            Some("2026-12-01T09:18:00Z")
        );
        assert_eq!(
            at("*/15 * * * *", after).as_deref(),
            Some("2026-11-30T09:30:00Z")
        );
        assert_eq!(
            at("0 8-10,14 * * *", after).as_deref(),
            Some("2026-11-30T10:00:00Z")
        );
        assert_eq!(
            at("0 0 29 2 *", after).as_deref(),
            Some("2028-02-29T00:00:00Z")
        );
        assert_eq!(
            at("0 12 * * 7", after).as_deref(),
            Some("2026-12-06T12:00:00Z")
        );
        // Both day fields restricted: the 1st or a Friday.
        assert_eq!(
            at("0 0 1 * 5", after).as_deref(),
            Some("2026-12-01T00:00:00Z")
        );
    }

    #[test]
    fn what_is_not_plain_cron_has_no_time() {
        for schedule in [
            "",
            "* * * *",
            "60 * * * *",
            "5-1 * * * *",
            "*/0 * * * *",
            "@daily",
            "0 0 31 2 *",
        ] {
            assert_eq!(at(schedule, "2026-11-30T09:18:39Z"), None, "{schedule}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_has_no_time(schedule in "[0-9*/, -]{0,24}|\\PC*", after in any::<i64>()) {
            if let Some(found) = next(&schedule, after, &TimeZone::UTC) {
                prop_assert!(found > after);
            }
        }
    }
}
