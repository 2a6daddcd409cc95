//! A drive that was written long ago, made at once.

use crate::analytic;
use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

use crate::anonymous::Anonymous;
use crate::collection::below;
use crate::features::Features;
use crate::ftl::Ftl;
use crate::skew::{self, Class};
use crate::small_drive;
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
    /// As long, at random, some units more than others.
    HotCold {
        /// Percent of the writes that went to the first units.
        writes_percent: u8,
        /// Percent of the units that are these.
        space_percent: u8,
    },
    /// As long, at random, the k-th unit in proportion to k^-theta.
    Zipf {
        /// Theta in hundredths.
        theta_percent: u8,
    },
}

impl Ftl {
    /// A drive with this past, statistically as if it had really been written.
    ///
    /// # Errors
    /// When the specification cannot work, with the reason.
    pub fn with_past(specification: Specification, past: Past) -> Result<Self, Impossible> {
        let filled = specification.logical_units;
        Self::written(specification, Features::default(), past, filled)
    }

    /// A drive with these features whose first `filled` units have this past; the others
    /// were never written.
    ///
    /// # Errors
    /// When the specification cannot work, with the reason, or has fewer units.
    pub fn written(
        specification: Specification,
        features: Features,
        past: Past,
        filled: u32,
    ) -> Result<Self, Impossible> {
        let mut ftl = Self::with_features(specification, features)?;
        if filled > specification.logical_units {
            return Err(Impossible::Overfilled {
                filled,
                logical: specification.logical_units,
            });
        }
        if let Some(classes) = skew::classes(past, filled).filter(|_| filled > 0) {
            check_classes(&classes)?;
            ftl.write_skewed(filled, &classes)?;
        } else {
            match past {
                Past::Sequential => ftl.write_in_order(filled),
                Past::Random if filled > 0 => ftl.write_at_random(filled),
                _ => {}
            }
        }
        // Its last program was programmed, however full.
        ftl.leave_begun();
        // The past is not part of what is counted.
        ftl.traffic = Traffic::default();
        ftl.settle();
        Ok(ftl)
    }

    fn write_in_order(&mut self, filled: u32) {
        for logical in 0..filled {
            self.write_of_past(logical);
        }
    }

    fn write_of_past(&mut self, logical: u32) {
        self.write_past_cache(logical, 0)
            .expect("the spare was checked");
    }

    /// Superblocks that a long past has closed: all but the reserve, the half of the open
    /// ones, and those of the cache.
    fn closed_by_past(&self) -> u32 {
        let specification = &self.specification;
        let open = specification.streams + specification.moving_frontiers();
        specification.geometry.superblocks
            - self.features.fixed_superblocks()
            - specification.soft_free
            - open.div_ceil(2)
    }

    /// Closes all superblocks but the reserve, the oldest first, each with the valid
    /// units that the policy's steady state leaves in it.
    fn write_at_random(&mut self, filled: u32) {
        let counts = self.steady_counts(self.closed_by_past(), filled);
        if self.features.anonymous {
            let superblocks = self.specification.geometry.superblocks;
            self.anonymous = Some(Box::new(Anonymous::new(superblocks, filled)));
            counts
                .into_iter()
                .for_each(|valid| self.close_untouched(valid));
            return;
        }
        let order = Shuffled::new(filled, &mut self.random);
        let mut logicals = (0..filled).map(|index| order.at(index));
        for valid in counts {
            self.fill_superblock(valid, &mut logicals);
        }
    }

    /// As [`write_at_random`](Self::write_at_random), with the units of each class that a
    /// small drive has in superblocks of the same age.
    fn write_skewed(&mut self, filled: u32, classes: &[Class]) -> Result<(), Impossible> {
        let ages = small_drive::ages(&self.specification, filled, classes)?;
        let ends = skew::ends(classes, filled);
        let closed = self.closed_by_past();
        let mut left = Vec::with_capacity(ends.len());
        let mut logicals = Vec::with_capacity(ends.len());
        let mut first = 0;
        for &end in &ends {
            let (count, start) = (end - first, first);
            let order = Shuffled::new(count.max(1), &mut self.random);
            logicals.push((0..count).map(move |index| start + order.at(index)));
            left.push(count);
            first = end;
        }
        for counts in class_counts(&ages, closed, self.units, &left) {
            self.fill_with_classes(counts, &mut logicals);
        }
        Ok(())
    }

    /// Valid units of `closed` superblocks, the oldest first; together all logical units.
    fn steady_counts(&self, closed: u32, filled: u32) -> Vec<u32> {
        let (units, logical) = (f64::from(self.units), f64::from(filled));
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
                self.write_of_past(logical);
                wanted -= 1;
            } else {
                self.leave_invalid();
            }
        }
    }

    /// Closes one superblock with so many mapped units of each class at random places.
    fn fill_with_classes(
        &mut self,
        mut counts: Vec<u32>,
        logicals: &mut [impl Iterator<Item = u32>],
    ) {
        for offset in 0..self.units {
            let mut drawn = below(&mut self.random, self.units - offset);
            let class = counts.iter().position(|&count| {
                let is = drawn < count;
                drawn = drawn.saturating_sub(count);
                is
            });
            let Some(class) = class else {
                self.leave_invalid();
                continue;
            };
            counts[class] -= 1;
            let logical = logicals[class].next().expect("counts add up to the class");
            self.write_of_past(logical);
        }
    }

    /// A unit that was written and is no longer valid.
    fn leave_invalid(&mut self) {
        let place = self
            .place(0, 0, crate::Cause::Padding)
            .expect("the reserve is left free");
        self.close_if_full(place.superblock);
    }
}

fn check_classes(classes: &[Class]) -> Result<(), Impossible> {
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    let works = (classes.iter()).all(|class| is_share(class.writes) && is_share(class.space));
    works.then_some(()).ok_or(Impossible::NoShare)
}

/// Units of each class in each of `closed` superblocks, the oldest first, so that they add
/// up to `left` of each class and no superblock has more than its units.
fn class_counts(ages: &[Vec<f64>], closed: u32, units: u32, left: &[u32]) -> Vec<Vec<u32>> {
    let age = |index: u32| {
        let of = u64::from(index) * ages.len() as u64 / u64::from(closed);
        &ages[of as usize]
    };
    let mut left = left.to_vec();
    let mut owed = vec![0.0; left.len()];
    let mut counts = vec![vec![0; left.len()]; closed as usize];
    let scale: Vec<f64> = (0..left.len())
        .map(|class| {
            let sum: f64 = (0..closed).map(|index| age(index)[class]).sum();
            if sum > 0.0 {
                f64::from(left[class]) / sum
            } else {
                0.0
            }
        })
        .collect();
    for index in 0..closed {
        let mut room = units;
        for class in 0..left.len() {
            owed[class] += age(index)[class] * scale[class];
            let count = (libm::round(owed[class]) as u32).min(room).min(left[class]);
            owed[class] -= f64::from(count);
            counts[index as usize][class] = count;
            room -= count;
            left[class] -= count;
        }
    }
    // What was rounded off, and classes that the small drive had in open superblocks only.
    for counts in counts.iter_mut().rev() {
        for class in 0..left.len() {
            let room = units - counts.iter().sum::<u32>();
            let more = room.min(left[class]);
            counts[class] += more;
            left[class] -= more;
        }
    }
    counts
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
