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

#[test]
fn c04_h03_a_wall_clock_that_was_set_tells_two_moments_at_most() {
    let mut clocks = Clocks::default();
    let look = |clocks: &mut Clocks, ms: u64, ahead_ms: i64| {
        clocks.look(Stamp {
            boot: Time::from_ms(ms),
            wall_ms: i64::try_from(ms).expect("short") + ahead_ms,
        });
    };
    let moments = |clocks: &Clocks, wall_ms: i64| -> Vec<u64> {
        clocks.moments(wall_ms).map(Time::as_ms).collect()
    };
    look(&mut clocks, 1_000, 100_000);
    look(&mut clocks, 2_000, 100_010);
    assert_eq!(moments(&clocks, 101_010), [1_000]);
    // Set back by a minute between 2000 and 2500: each setting holds within its time.
    look(&mut clocks, 2_500, 40_000);
    look(&mut clocks, 9_000, 40_000);
    assert_eq!(moments(&clocks, 101_510), [61_510, 1_500]);
    assert_eq!(moments(&clocks, 42_200), [2_200]);
    assert_eq!(moments(&clocks, 102_500), [62_500, 2_490]);
    assert_eq!(moments(&clocks, 102_520), [62_520]);
    assert_eq!(moments(&clocks, 41_949), Vec::<u64>::new());
}
