//! The expectations of the procedure's description: exact ones, and rates over
//! random series.

mod gates;
mod sizes;

use super::*;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const SEED: u64 = 1983;

fn rank(n: usize, alpha: f64) -> usize {
    (1..=n).fold(0, |rank, n| {
        next_order_statistic_rank(n, rank, libm::log(alpha))
    })
}

#[test]
fn ranks_of_the_interval() {
    for (alpha, expected) in [
        (
            0.01,
            &[
                (10, 0),
                (11, 1),
                (15, 2),
                (20, 3),
                (30, 6),
                (50, 13),
                (100, 32),
                (200, 74),
                (1000, 438),
            ][..],
        ),
        (0.002, &[(12, 0), (13, 1), (20, 2), (40, 8), (100, 30)]),
        (0.05, &[(7, 0), (8, 1), (12, 2), (20, 4)]),
    ] {
        for (n, expected) in expected {
            assert_eq!(rank(*n, alpha), *expected, "n {n} at {alpha}");
        }
    }
}

/// The block at which it is decided, and what; `None` if it is not within `cap`.
fn decided(
    rows: usize,
    cap: usize,
    mut block: impl FnMut(usize) -> (f64, bool),
) -> Option<(usize, SequenceVerdict, RatioEstimate)> {
    let mut sequence = ConfidenceSequence::new(rows, DecisionLimits::default());
    (1..=cap).find_map(|n| {
        let (ln_ratio, b_second) = block(n - 1);
        sequence.add_ratio(ln_ratio, b_second);
        let decided = sequence.verdict()?;
        Some((n, decided, sequence.estimate()?))
    })
}

#[test]
fn series_that_are_known() {
    let fair = |n: usize| n.is_multiple_of(2);
    let at = |rows, of: &dyn Fn(usize) -> f64| {
        decided(rows, 200, |n| (of(n), fair(n))).map(|(n, decided, _)| (n, decided))
    };
    let always = decided(1, 200, |n| (0.1, fair(n))).unwrap();
    let point = RatioEstimate {
        ln_ratio: 0.1,
        ln_ratio_min: 0.1,
        ln_ratio_max: 0.1,
    };
    assert_eq!(always, (11, SequenceVerdict::Slower, point));
    assert_eq!(at(5, &|_| 0.1), Some((13, SequenceVerdict::Slower)));
    let alternating = |size: f64| move |n: usize| if n.is_multiple_of(2) { size } else { -size };
    let coin = |n: usize| (n / 2).is_multiple_of(2);
    let open = |size: f64| decided(1, 200, |n| (alternating(size)(n), coin(n)));
    assert_eq!(
        open(0.02).map(|one| (one.0, one.1)),
        Some((11, SequenceVerdict::NoDifference))
    );
    assert_eq!(open(0.05), None);
    assert_eq!(at(1, &|_| 0.0), Some((11, SequenceVerdict::NoDifference)));
    assert_eq!(at(1, &|_| 0.005), Some((11, SequenceVerdict::NoDifference)));
}

/// Without the effect of the order: no block's coin is known.
fn decided_without_order(values: &[f64], cap: usize) -> Option<(usize, SequenceVerdict)> {
    let mut sequence = ConfidenceSequence::new(1, DecisionLimits::default());
    (1..=cap).find_map(|n| {
        insert_in_order(
            &mut sequence.corrected_ln_ratios,
            values[(n - 1) % values.len()],
        );
        sequence.order_statistic_rank =
            next_order_statistic_rank(n, sequence.order_statistic_rank, sequence.ln_alpha);
        sequence.intersect_bounds();
        Some((n, sequence.verdict()?))
    })
}

#[test]
fn exceptions_take_longer() {
    let mut sixth = vec![0.1; 200];
    sixth[5] = -0.1;
    assert_eq!(
        decided_without_order(&sixth, 200),
        Some((15, SequenceVerdict::Slower))
    );
    let one_in_four = [0.05, 0.05, 0.05, -0.05];
    assert_eq!(
        decided_without_order(&one_in_four, 200),
        Some((43, SequenceVerdict::Slower))
    );
    let one_in_three = [0.1, 0.1, -0.5];
    assert_eq!(
        decided_without_order(&one_in_three, 200),
        Some((113, SequenceVerdict::Slower))
    );
}

#[test]
fn swapping_the_arms_swaps_everything() {
    let mut random = Random::new(8);
    for _ in 0..50 {
        let (mut one, mut other) = (
            ConfidenceSequence::new(3, DecisionLimits::default()),
            ConfidenceSequence::new(3, DecisionLimits::default()),
        );
        for _ in 0..60 {
            let (ln_ratio, coin) = (0.02 + 0.03 * random.normal(), random.coin());
            one.add_ratio(ln_ratio, coin);
            other.add_ratio(-ln_ratio, !coin);
            let mirrored = other.estimate().map(|of| RatioEstimate {
                ln_ratio: -of.ln_ratio,
                ln_ratio_min: -of.ln_ratio_max,
                ln_ratio_max: -of.ln_ratio_min,
            });
            assert_eq!(one.estimate(), mirrored);
            let mirrored = other.verdict().map(|verdict| match verdict {
                SequenceVerdict::Slower => SequenceVerdict::Faster,
                SequenceVerdict::Faster => SequenceVerdict::Slower,
                SequenceVerdict::NoDifference => SequenceVerdict::NoDifference,
            });
            assert_eq!(one.verdict(), mirrored);
        }
    }
}

struct Random(Pcg64Mcg);

impl Random {
    fn new(stream: u64) -> Self {
        println!("seed {SEED}, stream {stream}");
        Self(Pcg64Mcg::seed_from_u64(SEED << 8 | stream))
    }

    fn share(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn coin(&mut self) -> bool {
        self.0.next_u64() >> 63 == 1
    }

    /// A block of two repetitions, of which a coin says which is B's.
    fn block(&mut self, (first, second): (f64, f64), shift: f64) -> (f64, bool) {
        let b_second = self.coin();
        let ln_ratio = if b_second {
            second - first
        } else {
            first - second
        };
        (shift + ln_ratio, b_second)
    }

    fn normal(&mut self) -> f64 {
        // Box and Muller.
        let (one, other) = (1.0 - self.share(), self.share());
        (-2.0 * libm::log(one)).sqrt() * libm::cos(2.0 * std::f64::consts::PI * other)
    }
}

#[test]
fn fair_coins_are_seldom_called_unfair() {
    let mut random = Random::new(13);
    for (alpha, share) in [(0.01, 0.004..=0.010), (0.05, 0.030..=0.046)] {
        let ranks: Vec<usize> = (1..=400)
            .scan(0, |rank, n| {
                *rank = next_order_statistic_rank(n, *rank, libm::log(alpha));
                Some(*rank)
            })
            .collect();
        let cases = 20_000;
        let wrong = (0..cases).filter(|_| {
            let mut heads = 0;
            ranks.iter().enumerate().any(|(at, rank)| {
                heads += usize::from(random.coin());
                heads.min(at + 1 - heads) < *rank
            })
        });
        let found = wrong.count() as f64 / f64::from(cases);
        assert!(share.contains(&found), "{found} at {alpha}");
    }
}

/// What came of many series of up to 150 blocks.
#[derive(Debug, Default)]
struct VerdictRates {
    slower: f64,
    faster: f64,
    alike: f64,
    /// Mean blocks; those of an open one are 150.
    blocks: f64,
}

const CASES: usize = 2_000;
const BLOCKS_CAP: usize = 150;

fn rates(mut series: impl FnMut(usize) -> (f64, bool)) -> VerdictRates {
    let mut rates = VerdictRates::default();
    let one = 1.0 / CASES as f64;
    for _ in 0..CASES {
        let found = decided(1, BLOCKS_CAP, &mut series);
        match found.map(|found| found.1) {
            Some(SequenceVerdict::Slower) => rates.slower += one,
            Some(SequenceVerdict::Faster) => rates.faster += one,
            Some(SequenceVerdict::NoDifference) => rates.alike += one,
            None => {}
        }
        rates.blocks += one * found.map_or(BLOCKS_CAP, |found| found.0) as f64;
    }
    rates
}

#[test]
fn even_noise() {
    let mut random = Random::new(14);
    let mut of = |shift: f64| rates(|_| (shift + 0.042 * random.normal(), random.coin()));
    let alike = of(0.0);
    assert!(alike.slower + alike.faster < 0.012, "{alike:?}");
    assert!(alike.alike > 0.98, "{alike:?}");
    assert!((55.0..=65.0).contains(&alike.blocks), "{alike:?}");
    for (share, blocks) in [
        (0.03, 39.0..=47.0),
        (0.05, 18.0..=22.0),
        (0.10, 11.0..=13.0),
    ] {
        let found = of(libm::log1p(share));
        assert!(found.slower > 0.99, "{share}: {found:?}");
        assert!(blocks.contains(&found.blocks), "{share}: {found:?}");
    }
}

#[test]
fn the_order_of_a_block_is_taken_out() {
    let mut random = Random::new(16);
    let mut of = |shift: f64| {
        rates(|_| {
            let second = random.coin();
            let order = if second { 0.06 } else { -0.06 };
            (shift + order + 0.028 * random.normal(), second)
        })
    };
    let found = of(libm::log1p(0.03));
    assert!(found.slower > 0.98, "{found:?}");
    assert!((36.0..=43.0).contains(&found.blocks), "{found:?}");
    let alike = of(0.0);
    assert!(alike.slower + alike.faster < 0.012, "{alike:?}");
}

#[test]
fn places_of_their_own_are_told_apart_unless_a_coin_swaps_them() {
    let mut random = Random::new(17);
    let (mut kept, mut swapped) = (0, 0);
    for _ in 0..CASES {
        let place = 0.03 * (random.normal() - random.normal());
        let mut noise = || (0.042 * random.normal(), random.coin(), random.coin());
        let firm = |found: Option<(usize, SequenceVerdict, RatioEstimate)>| {
            usize::from(found.is_some_and(|found| found.1 != SequenceVerdict::NoDifference))
        };
        kept += firm(decided(1, BLOCKS_CAP, |_| {
            let (noise, second, _) = noise();
            (place + noise, second)
        }));
        swapped += firm(decided(1, BLOCKS_CAP, |_| {
            let (noise, second, swap) = noise();
            (if swap { -place } else { place } + noise, second)
        }));
    }
    let share = |count: usize| count as f64 / CASES as f64;
    assert!(share(kept) > 0.60, "{kept}");
    assert!(share(swapped) < 0.015, "{swapped}");
}

#[test]
fn two_modes_and_bursts_and_drift_do_not_fool_it() {
    let mut random = Random::new(18);
    // Two states 15 % apart that change with probability 0.08 a repetition.
    let mut modes = |shift: f64| {
        let mut slow = false;
        rates(|_| {
            let mut one = || {
                slow ^= random.share() < 0.08;
                0.15 * f64::from(u8::from(slow)) + 0.015 * random.normal()
            };
            let (first, second) = (one(), one());
            random.block((first, second), shift)
        })
    };
    let alike = modes(0.0);
    assert!(alike.slower + alike.faster < 0.01, "{alike:?}");
    let found = modes(libm::log1p(0.10));
    assert!(found.slower > 0.99, "{found:?}");
    assert!((12.0..=16.0).contains(&found.blocks), "{found:?}");

    // Each block is hit with probability 0.3 in one repetition, by 10 to 70 %.
    let mut bursts = |shift: f64| {
        rates(|_| {
            let mut hit = 0.0;
            if random.share() < 0.3 {
                hit = libm::log1p(0.1 + 0.6 * random.share());
                hit = if random.coin() { hit } else { -hit };
            }
            let noise = random.normal() - random.normal();
            (shift + hit + 0.015 * noise, random.coin())
        })
    };
    let alike = bursts(0.0);
    assert!(alike.slower + alike.faster < 0.012, "{alike:?}");
    let found = bursts(libm::log1p(0.03));
    assert!(found.slower > 0.98, "{found:?}");
    assert!((31.0..=39.0).contains(&found.blocks), "{found:?}");
}

/// One repetition after the other of a machine with a memory, in blocks.
fn rates_of_machine(
    random: &mut Random,
    mut next: impl FnMut(&mut Random) -> f64,
    shift: f64,
) -> VerdictRates {
    rates(|_| {
        let (first, second) = (next(random), next(random));
        random.block((first, second), shift)
    })
}

#[test]
fn memory_and_heavy_tails_do_not_fool_it() {
    type Machine = fn(&mut Random, &mut f64) -> f64;
    let machines: [(&str, Machine); 4] = [
        ("autocorrelated", |random, level| {
            *level = 0.85 * *level + 0.016 * random.normal();
            *level
        }),
        ("drifting", |random, level| {
            *level += 0.002;
            *level + 0.02 * random.normal()
        }),
        ("heavy tails", |random, _| {
            // Student's t of 2 degrees of freedom.
            let chi = -2.0 * libm::log(1.0 - random.share());
            0.02 * random.normal() / (chi / 2.0).sqrt()
        }),
        ("walking", |random, level| {
            *level += 0.01 * random.normal();
            *level
        }),
    ];
    let mut random = Random::new(21);
    for (name, machine) in machines {
        for (shift, least_slower) in [(0.0, 0.0), (libm::log1p(0.10), 0.98)] {
            let mut level = 0.0;
            let found = rates_of_machine(&mut random, |random| machine(random, &mut level), shift);
            assert!(found.slower >= least_slower, "{name}: {found:?}");
            let wrong = found.faster + if shift == 0.0 { found.slower } else { 0.0 };
            assert!(wrong < 0.012, "{name}: {found:?}");
        }
    }
}
