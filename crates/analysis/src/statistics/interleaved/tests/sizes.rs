//! Sizes of differences that were found early, against the truth.
//!
//! `DISKPERF_SIZE_CASES` asks for more measurements of each kind than 1,000.

use super::*;

/// Measurements that end within so many blocks are early.
const EARLY_BLOCKS: usize = 40;

/// Bias of the median that is taken for none, as a share of the difference.
const BIAS_MAX: f64 = 0.10;

/// Share of the sizes above the truth that is taken for one half, from it.
const HALF_TOLERANCE: f64 = 0.06;

/// Confidence of the intervals that are held to it.
const CONFIDENCE: f64 = 0.95;

/// A size and its interval, as ln(t_B / t_A).
type SizeEstimator = fn(&ConfidenceSequence) -> RatioEstimate;

/// The size that is reported, in the interval that is reported.
fn reported(sequence: &ConfidenceSequence) -> RatioEstimate {
    RatioEstimate {
        ln_ratio: sequence.effect_size().unwrap(),
        ..sequence.estimate().unwrap()
    }
}

/// The median of the blocks that led to the verdict, in an interval of order statistics
/// for a number of blocks that is known beforehand.
fn of_deciding_blocks(sequence: &ConfidenceSequence) -> RatioEstimate {
    let after = sequence.ratios_after_verdict.as_deref().unwrap_or_default();
    let mut deciding = sequence.corrected_ln_ratios.clone();
    for one in after {
        let place = deciding.iter().position(|other| other == one);
        deciding.remove(place.unwrap());
    }
    let n = deciding.len();
    let mut ways = libm::exp2(-(n as f64));
    let (mut below, mut rank) = (0.0, 0);
    while below + ways <= (1.0 - CONFIDENCE) / 2.0 {
        below += ways;
        rank += 1;
        ways *= (n + 1 - rank) as f64 / rank as f64;
    }
    RatioEstimate {
        ln_ratio: median_of_sorted(&deciding).unwrap(),
        ln_ratio_min: deciding[rank - 1],
        ln_ratio_max: deciding[n - rank],
    }
}

/// Blocks until an early verdict that the arms differ, and after it those that measure
/// the size; `None` without such a verdict.
fn measured(block: &mut dyn FnMut() -> (f64, bool)) -> Option<ConfidenceSequence> {
    let mut sequence = ConfidenceSequence::new(1, DecisionLimits::default());
    for _ in 0..EARLY_BLOCKS {
        let (ln_ratio, b_second) = block();
        sequence.add_ratio(ln_ratio, b_second);
        match sequence.verdict() {
            None => {}
            Some(SequenceVerdict::NoDifference) => return None,
            Some(SequenceVerdict::Slower | SequenceVerdict::Faster) => {
                sequence.begin_size_phase();
                for _ in 0..size_block_count(sequence.block_count()) {
                    let (ln_ratio, b_second) = block();
                    sequence.add_ratio(ln_ratio, b_second);
                }
                return Some(sequence);
            }
        }
    }
    None
}

/// Sizes of many measurements of one difference beside the truth.
#[derive(Debug)]
struct SizeBias {
    /// Median of the sizes as a share of the truth.
    median: f64,
    /// Share of the sizes above the truth.
    above: f64,
    /// Share of the intervals that hold the truth.
    covered: f64,
}

impl SizeBias {
    fn from_estimates(truth: f64, found: &[RatioEstimate]) -> Self {
        let share = |is: &dyn Fn(&RatioEstimate) -> bool| {
            found.iter().filter(|one| is(one)).count() as f64 / found.len() as f64
        };
        let mut sizes: Vec<f64> = found.iter().map(|one| one.ln_ratio / truth).collect();
        sizes.sort_by(f64::total_cmp);
        Self {
            median: median_of_sorted(&sizes).unwrap(),
            above: share(&|one| one.ln_ratio > truth),
            covered: share(&|one| one.ln_ratio_min <= truth && truth <= one.ln_ratio_max),
        }
    }

    fn is_unbiased(&self) -> bool {
        (self.median - 1.0).abs() <= BIAS_MAX && (self.above - 0.5).abs() <= HALF_TOLERANCE
    }

    fn covers(&self) -> bool {
        self.covered >= CONFIDENCE
    }
}

/// Noise of a block whose median is 0, for a scale.
type Noise = fn(&mut Random, f64) -> f64;

const NOISES: [(&str, Noise); 4] = [
    ("normal", |random, scale| scale * random.normal()),
    ("heavy tails", |random, scale| {
        // Student's t of 2 degrees of freedom.
        let chi = -2.0 * libm::log(1.0 - random.share());
        scale * random.normal() / (chi / 2.0).sqrt()
    }),
    ("bursts", |random, scale| {
        let hit = 5.0 * scale * random.share();
        let burst = match random.share() {
            share if share < 0.1 => hit,
            share if share < 0.2 => -hit,
            _ => 0.0,
        };
        burst + 0.8 * scale * random.normal()
    }),
    ("skewed", |random, scale| {
        let median = std::f64::consts::LN_2;
        1.6 * scale * (-libm::log(1.0 - random.share()) - median)
    }),
];

/// Each kind of noise with a difference that is seldom found early: `check` of the
/// sizes of those in which it is.
fn for_each_noise(stream: u64, sized: SizeEstimator, check: impl Fn(&str, &SizeBias)) {
    let cases = std::env::var("DISKPERF_SIZE_CASES");
    let cases: usize = cases.map_or(1000, |cases| cases.parse().unwrap());
    let mut random = Random::new(stream);
    for (kind, noise) in NOISES {
        for (share, scale) in [(0.03, 0.06), (0.10, 0.2), (-0.05, 0.11)] {
            let truth = libm::log1p(share);
            let mut block = || (truth + noise(&mut random, scale), random.coin());
            let early = std::iter::repeat_with(|| measured(&mut block)).flatten();
            let found: Vec<RatioEstimate> = early.take(cases).map(|one| sized(&one)).collect();
            let beside = SizeBias::from_estimates(truth, &found);
            check(&format!("{kind}, {share}: {beside:?}"), &beside);
        }
    }
}

#[test]
fn a_size_that_was_found_early_is_unbiased_and_its_interval_covers() {
    for_each_noise(41, reported, |told, beside| {
        assert!(beside.is_unbiased(), "{told}");
        assert!(beside.covers(), "{told}");
    });
}

/// The control: without the blocks after the verdict the same check fails everywhere.
#[test]
fn the_median_of_the_deciding_blocks_overstates_and_its_interval_misses() {
    for_each_noise(41, of_deciding_blocks, |told, beside| {
        assert!(!beside.is_unbiased() && beside.median > 1.0, "{told}");
        assert!(!beside.covers(), "{told}");
    });
}

#[test]
fn too_few_blocks_after_the_verdict_leave_the_size_to_all() {
    let mut sequence = ConfidenceSequence::new(1, DecisionLimits::default());
    let add = |sequence: &mut ConfidenceSequence, ln_ratio: f64| {
        let b_second = sequence.block_count().is_multiple_of(2);
        sequence.add_ratio(ln_ratio, b_second);
    };
    assert_eq!(sequence.effect_size(), None);
    for n in 0..11 {
        add(&mut sequence, [0.08, 0.2][n % 2]);
    }
    assert_eq!(sequence.verdict(), Some(SequenceVerdict::Slower));
    sequence.begin_size_phase();
    for _ in 1..SIZE_BLOCK_COUNT_MIN {
        let all = sequence.estimate().map(|it| it.ln_ratio);
        assert_eq!(sequence.effect_size(), all);
        add(&mut sequence, 0.1);
    }
    add(&mut sequence, 0.1);
    let all = sequence.estimate().unwrap();
    assert!(
        (sequence.effect_size().unwrap() - 0.1).abs() < 0.02,
        "{all:?}"
    );
    // The verdict stays where later blocks alone would not bear it out.
    for _ in 0..12 {
        add(&mut sequence, -0.001);
    }
    assert_eq!(sequence.verdict(), Some(SequenceVerdict::Slower));
    let bounds = sequence.estimate().unwrap();
    assert_eq!(sequence.effect_size(), Some(bounds.ln_ratio_min));
}
