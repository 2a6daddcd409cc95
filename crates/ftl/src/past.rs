//! A drive that was written long ago, made at once.

use crate::analytic;
use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

use crate::collection::below;
use crate::ftl::Ftl;
use crate::specification::{Impossible, Policy, Specification};
use crate::traffic::Traffic;

/// How the drive was written before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// Never.
    Fresh,
    /// All of it, in order.
    Sequential,
    /// Until its state no longer changed, at random.
    Random,
}

impl Ftl {
    /// A drive with this past, statistically as if it had really been written.
    ///
    /// # Errors
    /// When the specification cannot work, with the reason.
    pub fn with_past(specification: Specification, past: Past) -> Result<Self, Impossible> {
        let mut ftl = Self::fresh(specification)?;
        match past {
            Past::Fresh => {}
            Past::Sequential => ftl.write_in_order(),
            Past::Random => ftl.write_at_random(),
        }
        // The past is not part of what is counted.
        ftl.traffic = Traffic::default();
        Ok(ftl)
    }

    fn write_in_order(&mut self) {
        for logical in 0..self.specification.logical_units {
            self.write(logical, 0).expect("the spare was checked");
        }
    }

    /// Closes all superblocks but the reserve, the oldest first, each with the valid
    /// units that the policy's steady state leaves in it.
    fn write_at_random(&mut self) {
        let specification = self.specification;
        let open = specification.streams + specification.moving_frontiers();
        let closed =
            specification.geometry.superblocks - specification.soft_free - open.div_ceil(2);
        let counts = self.steady_counts(closed);
        let order = Shuffled::new(specification.logical_units, &mut self.random);
        let mut logicals = (0..specification.logical_units).map(|index| order.at(index));
        for valid in counts {
            self.fill_superblock(valid, &mut logicals);
        }
    }

    /// Valid units of `closed` superblocks, the oldest first; together all logical units.
    fn steady_counts(&self, closed: u32) -> Vec<u32> {
        let (units, logical) = (
            f64::from(self.units),
            f64::from(self.specification.logical_units),
        );
        let spare = 1.0 - logical / (f64::from(closed) * units);
        let mut shares: Vec<f64> = match self.specification.policy {
            Policy::Greedy => greedy_counts(spare, self.units, closed),
            Policy::Choices(choices) => {
                let (at_least, _) = analytic::choices_state(spare, self.units, choices);
                ranked(closed, |rank| {
                    at_least
                        .iter()
                        .skip(1)
                        .take_while(|&&w| w > 1.0 - rank)
                        .count() as f64
                })
            }
            Policy::Fifo | Policy::CostBenefit => {
                let oldest = libm::log(analytic::fifo_victim_share(spare));
                ranked(closed, |rank| units * libm::exp(oldest * (1.0 - rank)))
            }
        };
        let scale = logical / shares.iter().sum::<f64>();
        shares.iter_mut().for_each(|share| *share *= scale);
        carried(&shares, self.units)
    }

    /// Closes one superblock with `valid` mapped units at random places.
    fn fill_superblock(&mut self, valid: u32, logicals: &mut impl Iterator<Item = u32>) {
        let mut wanted = valid;
        for offset in 0..self.units {
            if below(&mut self.random, self.units - offset) < wanted {
                let logical = logicals.next().expect("counts add up to the logical units");
                self.write(logical, 0).expect("the reserve is left free");
                wanted -= 1;
            } else {
                let padded = self
                    .place(0, 0, crate::Cause::Padding)
                    .expect("the reserve is left free");
                self.close_if_full(padded.superblock);
            }
        }
    }
}

/// The middle of each of `closed` age ranks, from the oldest (near 0) to the newest.
fn ranked(closed: u32, valid: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..closed)
        .map(|index| valid((f64::from(index) + 0.5) / f64::from(closed)))
        .collect()
}

fn greedy_counts(spare: f64, units: u32, closed: u32) -> Vec<f64> {
    let state = analytic::greedy_state(spare, units);
    let mut valid = state.victim_valid;
    let mut below = state.at_victim;
    (0..closed)
        .map(|index| {
            let rank = (f64::from(index) + 0.5) / f64::from(closed);
            while below < rank && valid < units {
                valid += 1;
                below += state.c / f64::from(valid);
            }
            f64::from(valid)
        })
        .collect()
}

/// Whole counts of at most `units`, with what was rounded off carried to the next.
fn carried(shares: &[f64], units: u32) -> Vec<u32> {
    let total = libm::round(shares.iter().sum::<f64>()) as u64;
    let (mut sum, mut placed) = (0.0, 0u64);
    let mut counts: Vec<u32> = shares
        .iter()
        .map(|share| {
            sum += share;
            let count =
                ((libm::round(sum) as u64).min(total) - placed).min(u64::from(units)) as u32;
            placed += u64::from(count);
            count
        })
        .collect();
    for count in counts.iter_mut().rev() {
        let more = (total - placed).min(u64::from(units - *count));
        *count += more as u32;
        placed += more;
    }
    counts
}

/// The numbers 0 .. `count` in an order drawn at random, without an array of them: a
/// Feistel network permutes the next power of 4, and what is beyond is permuted again.
struct Shuffled {
    count: u32,
    half_bits: u32,
    keys: [u64; 4],
}

impl Shuffled {
    fn new(count: u32, random: &mut Pcg64Mcg) -> Self {
        let bits = u32::BITS - count.leading_zeros();
        let keys = [(); 4].map(|()| random.next_u64());
        Self {
            count,
            half_bits: bits.div_ceil(2).max(1),
            keys,
        }
    }

    fn at(&self, index: u32) -> u32 {
        let mut number = u64::from(index);
        loop {
            number = self.permuted(number);
            if number < u64::from(self.count) {
                return number as u32;
            }
        }
    }

    fn permuted(&self, number: u64) -> u64 {
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
            let order = Shuffled::new(count, &mut Pcg64Mcg::seed_from_u64(27));
            let mut numbers: Vec<u32> = (0..count).map(|index| order.at(index)).collect();
            let sorted: Vec<u32> = (0..count).collect();
            assert!(count < 63 || numbers != sorted);
            numbers.sort_unstable();
            assert_eq!(numbers, sorted);
        }
    }
}
