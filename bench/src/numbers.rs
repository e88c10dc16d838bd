//! Rows of a table: what was measured, its spread, and whether the promise was kept. Owns no clock.

use std::time::Duration;

/// What a row promises about its numbers, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Promise {
    /// At most, half of the time.
    pub median: Option<f64>,
    /// At most, 95 times in a hundred.
    pub p95: Option<f64>,
    /// At most, 99 times in a hundred.
    pub p99: Option<f64>,
    /// At most, ever.
    pub max: Option<f64>,
}

/// Prints the head of a table.
pub fn head() {
    println!(
        "{:<50} {:>6} {:>9} {:>9} {:>9} {:>9}  promise (ms)",
        "what", "n", "median", "p95", "p99", "max"
    );
}

/// Prints a row; true if the promise was kept. Nothing measured keeps no promise.
pub fn row(what: &str, mut ms: Vec<f64>, promise: Promise) -> bool {
    ms.sort_by(f64::total_cmp);
    let (Some(median), Some(p95), Some(p99), Some(max)) = (
        at(&ms, 0.5),
        at(&ms, 0.95),
        at(&ms, 0.99),
        ms.last().copied(),
    ) else {
        println!("{what:<50} {:>6}", 0);
        return false;
    };
    let limits = [
        ("median", median, promise.median),
        ("p95", p95, promise.p95),
        ("p99", p99, promise.p99),
        ("max", max, promise.max),
    ];
    let mut kept = true;
    let mut words = Vec::new();
    for (name, is, limit) in limits {
        let Some(limit) = limit else { continue };
        if is <= limit {
            words.push(format!("{name} {limit}"));
        } else {
            words.push(format!("{name} {limit} BROKEN"));
            kept = false;
        }
    }
    println!(
        "{what:<50} {:>6} {median:>9.2} {p95:>9.2} {p99:>9.2} {max:>9.2}  {}",
        ms.len(),
        words.join(", ")
    );
    kept
}

/// Prints one number against its limit; true if it is below.
pub fn single(what: &str, is: f64, limit: f64, unit: &str) -> bool {
    let kept = is < limit;
    let word = if kept { "" } else { " BROKEN" };
    println!("{what:<50} {is:>9.2} {unit}  promise: under {limit} {unit}{word}");
    kept
}

/// Milliseconds of a duration.
pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The value that `share` of the sorted numbers do not exceed.
fn at(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_a_number_that_was_measured() {
        let sorted: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(at(&sorted, 0.5), Some(10.0));
        assert_eq!(at(&sorted, 0.95), Some(19.0));
        assert_eq!(at(&[], 0.5), None);
    }

    #[test]
    fn a_promise_is_kept_or_broken() {
        let promise = Promise {
            p95: Some(2.0),
            ..Promise::default()
        };
        assert!(row("kept", vec![1.0, 2.0], promise));
        assert!(!row("broken", vec![1.0, 2.1], promise));
        assert!(!row("unmeasured", Vec::new(), promise));
    }
}
