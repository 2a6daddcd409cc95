//! Order in which each block of an area comes once before any block repeats.

/// Permutation of the numbers below a bound that needs only a few words of memory. It is a Feistel
/// network over the next power of four, walked until it lands below the bound (Black and Rogaway
/// 2002, "Ciphers with arbitrary finite domains").
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    number_bound: u64,
    half_bits: u32,
    seed: u64,
}

/// Rounds of the Feistel network. Four rounds turn a pseudorandom function into a pseudorandom
/// permutation (Luby and Rackoff 1988).
const FEISTEL_ROUNDS: u64 = 4;

impl Permutation {
    /// Creates a permutation of the numbers below `bound`, which is at least 1.
    pub(crate) fn new(bound: u64, seed: u64) -> Self {
        let bits = 64 - (bound.max(2) - 1).leading_zeros();
        Self {
            number_bound: bound.max(1),
            half_bits: bits.div_ceil(2),
            seed,
        }
    }

    /// Returns the number at a position of the permutation, which is below its bound.
    #[inline]
    pub(crate) fn permuted_number(&self, place: u64) -> u64 {
        let mut number = place;
        loop {
            number = self.permute_once(number);
            if number < self.number_bound {
                return number;
            }
        }
    }

    fn permute_once(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for round in 0..FEISTEL_ROUNDS {
            let mixed = mix_bits(right ^ self.seed.rotate_left(16 * round as u32) ^ (round << 56));
            (left, right) = (right, left ^ (mixed & mask));
        }
        left << self.half_bits | right
    }
}

/// Scrambles a value by the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
fn mix_bits(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_comes_once() {
        for bound in [1, 2, 3, 7, 64, 65, 1000, 4097] {
            for seed in [0, 1, 1983] {
                let permutation = Permutation::new(bound, seed);
                let mut found: Vec<u64> = (0..bound)
                    .map(|place| permutation.permuted_number(place))
                    .collect();
                found.sort_unstable();
                assert_eq!(found, (0..bound).collect::<Vec<_>>(), "{bound} {seed}");
            }
        }
    }

    #[test]
    fn neighbours_are_a_third_of_the_area_apart() {
        let bound = 10_000;
        let permutation = Permutation::new(bound, 1983);
        let apart = |place: u64| {
            permutation
                .permuted_number(place)
                .abs_diff(permutation.permuted_number(place + 1))
        };
        let mean = (0..bound - 1).map(apart).sum::<u64>() as f64 / bound as f64;
        assert!((mean / bound as f64 - 1.0 / 3.0).abs() < 0.02, "{mean}");
        assert_ne!(
            permutation.permuted_number(0),
            Permutation::new(bound, 1984).permuted_number(0)
        );
    }
}
