//! Both clocks at their boundaries.

use super::*;

fn stamp(boot_ms: u64, wall_ms: i64) -> Stamp {
    Stamp {
        boot: Time::from_ms(boot_ms),
        wall_ms,
    }
}

#[test]
fn a_clock_that_drifts_is_the_same_and_one_that_was_set_is_not() {
    let then = stamp(1_000, 900_000);
    assert!(then.same_clock(stamp(61_000, 960_000)));
    for by in [CLOCK_SLACK_MS, -CLOCK_SLACK_MS] {
        assert!(then.same_clock(stamp(61_000, 960_000 + by)));
        assert!(!then.same_clock(stamp(61_000, 960_000 + by + by.signum())));
    }
}

#[test]
fn earlier_and_later_move_both_clocks_by_the_same() {
    assert_eq!(stamp(1_000, 900_000).earlier(250), stamp(750, 899_750));
    // Nothing was before the boot.
    assert_eq!(stamp(100, 900_000).earlier(250), stamp(0, 899_750));
    assert_eq!(stamp(1_000, 900_000).later_ms(), stamp(1_000, 900_001));
}
