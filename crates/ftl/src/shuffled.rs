//! Random permutation without an array.

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

/// Random permutation of the numbers 0 .. `count` without an array. A Feistel network permutes the
/// next power of 4, and results beyond `count` are permuted again.
pub(crate) struct ShuffledOrder {
    count: u32,
    half_bits: u32,
    keys: [u64; 4],
}

impl ShuffledOrder {
    pub(crate) fn new(count: u32, random: &mut Pcg64Mcg) -> Self {
        let bits = u32::BITS - count.leading_zeros();
        let keys = [(); 4].map(|()| random.next_u64());
        Self {
            count,
            half_bits: bits.div_ceil(2).max(1),
            keys,
        }
    }

    /// Returns the number at position `index`, which must be below the count.
    pub(crate) fn number_at(&self, index: u32) -> u32 {
        let mut number = u64::from(index);
        loop {
            number = self.permute(number);
            if number < u64::from(self.count) {
                return number as u32;
            }
        }
    }

    fn permute(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in self.keys {
            // Multiplication by the golden ratio spreads every bit to the upper ones.
            let mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (left, right) = (right, left ^ (mixed >> 32 & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng as _;

    #[test]
    fn a_shuffled_order_has_each_number_once() {
        for count in [1, 2, 3, 4, 5, 63, 64, 65, 1000] {
            let order = ShuffledOrder::new(count, &mut Pcg64Mcg::seed_from_u64(27));
            let mut numbers: Vec<u32> = (0..count).map(|index| order.number_at(index)).collect();
            let sorted: Vec<u32> = (0..count).collect();
            assert!(count < 63 || numbers != sorted);
            numbers.sort_unstable();
            assert_eq!(numbers, sorted);
        }
    }
}
