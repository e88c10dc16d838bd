//! Wall time and waiting for the tests: the one place where the lab reads a clock or lets a thread rest.
//!
//! Must never be used as glue: [`until`] waits for a condition, and the deadline is the failure, not the plan.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often [`until`] looks. Small against every deadline, large against the cost of one look.
const LOOK: Duration = Duration::from_millis(10);

/// Unix nanoseconds; the clock in which files are stamped.
pub fn wall_ns() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is past 1970");
    i64::try_from(since.as_nanos()).expect("nanoseconds fit until 2262")
}

/// Looks until `condition` gives a value or `deadline` has passed.
pub fn until<T>(deadline: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + deadline;
    loop {
        if let Some(value) = condition() {
            return Some(value);
        }
        if Instant::now() >= end {
            return None;
        }
        thread::sleep(LOOK);
    }
}
