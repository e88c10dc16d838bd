//! Chance that can be repeated: one number gives the same run on every machine and in every release.
//! Must never take anything from the world.

/// SplitMix64 (Steele, Lea, Flood 2014): small, portable, good enough to pick delays.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The stream number `stream` of this seed, for parts that are drawn apart from each other.
    #[must_use]
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut start = Self(seed ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03));
        Self(start.bits())
    }

    /// The stream that belongs to this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.bits() % (high - low + 1)
    }

    /// True `percent` times of a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.bits() % 100 < percent
    }

    /// One of these, each as likely as its weight. At least one weight is above zero.
    pub fn weighted<T: Copy>(&mut self, choices: &[(u64, T)]) -> T {
        let total: u64 = choices.iter().map(|(weight, _)| weight).sum();
        let mut left = self.bits() % total;
        for (weight, choice) in choices {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        unreachable!("the weights sum to the total")
    }

    /// A delay as measured: mostly near `median`, never below `low` or above `high`.
    pub fn around(&mut self, low: u64, median: u64, high: u64) -> u64 {
        if self.percent(50) {
            self.between(low, median)
        } else {
            // Two draws, the smaller: the long tail is thin.
            self.between(median, high).min(self.between(median, high))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_stream_and_another_gives_another() {
        let take = |seed, stream| {
            let mut chance = Chance::stream(seed, stream);
            (0..8).map(|_| chance.between(0, 999)).collect::<Vec<_>>()
        };
        assert_eq!(take(7, 1), take(7, 1));
        assert_ne!(take(7, 1), take(8, 1));
        assert_ne!(take(7, 1), take(7, 2));
    }
}
