//! Utilisation of dies by random reads. Each die serves one read at a time, and a fixed number of
//! reads is in flight.

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Warm-up reads before busy time counts, per read in flight.
const WARM_UP_COMPLETIONS: u64 = 50;
/// Number of counted reads, enough to determine the share of busy time to a thousandth.
const COUNTED_COMPLETIONS: u64 = 200_000;
/// Service time of a read. Only its ratio to the other times counts.
const SERVICE_TIME_NS: u64 = 1_000_000;

/// Returns the share of time that a die is busy if each completed read is followed by one to a
/// random die.
pub(super) fn simulate_busy_dies(dies: u32, under_way: u32, seed: u64) -> f64 {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut waiting = vec![0u32; dies as usize];
    let mut ends = BinaryHeap::new();
    // A read's arrival; reads do not begin all at once.
    let mut arrive = |ends: &mut BinaryHeap<_>, waiting: &mut [u32], now: u64| {
        let die = (random.next_u64() % u64::from(dies)) as usize;
        waiting[die] += 1;
        if waiting[die] == 1 {
            ends.push(Reverse((now + SERVICE_TIME_NS, die)));
        }
    };
    for read in 0..u64::from(under_way) {
        arrive(
            &mut ends,
            &mut waiting,
            read * SERVICE_TIME_NS / u64::from(under_way),
        );
    }
    let uncounted = WARM_UP_COMPLETIONS * u64::from(under_way);
    let mut from = 0;
    for done in 0..uncounted + COUNTED_COMPLETIONS {
        let Reverse((now, die)) = ends.pop().expect("reads are under way");
        waiting[die] -= 1;
        if waiting[die] > 0 {
            ends.push(Reverse((now + SERVICE_TIME_NS, die)));
        }
        arrive(&mut ends, &mut waiting, now);
        if done + 1 == uncounted {
            from = now;
        }
        if done + 1 == uncounted + COUNTED_COMPLETIONS {
            return COUNTED_COMPLETIONS as f64 * SERVICE_TIME_NS as f64
                / (f64::from(dies) * (now - from) as f64);
        }
    }
    unreachable!("the last read ends the loop")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dies, then their use at depth 2, 4 .. 256 as others simulated it.
    #[rustfmt::skip]
    const TABLE: [(u32, [f64; 8]); 5] = [
        (8, [0.235, 0.409, 0.619, 0.792, 0.894, 0.946, 0.969, 0.983]),
        (16, [0.121, 0.227, 0.395, 0.603, 0.778, 0.884, 0.939, 0.968]),
        (32, [0.062, 0.119, 0.223, 0.388, 0.593, 0.768, 0.877, 0.936]),
        (64, [0.031, 0.061, 0.118, 0.221, 0.386, 0.590, 0.766, 0.878]),
        (128, [0.016, 0.031, 0.061, 0.118, 0.220, 0.383, 0.588, 0.762]),
    ];

    #[test]
    fn dies_are_busy_as_the_table_and_the_formula_say() {
        for (dies, row) in TABLE {
            for (power, should_be) in (1..).zip(row) {
                let depth = 1 << power;
                let is = simulate_busy_dies(dies, depth, 27);
                let formula = diskperf_ftl::analytic::die_utilisation(dies, depth, 0.0);
                assert!(
                    (is - should_be).abs() < 0.01,
                    "{dies} dies at {depth}: {is:.3}, should be {should_be}, seed 27"
                );
                assert!(
                    (formula - should_be).abs() < 0.02,
                    "{dies} dies at {depth} by formula: {formula:.3}, should be {should_be}"
                );
            }
        }
    }
}
