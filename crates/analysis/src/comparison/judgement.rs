//! Judgement of two samples of rates: their ratio, its interval and a verdict.

use super::{Doubt, Quantity, Verdict};
use crate::statistics::interleaved::{self, Decided, Limits, PRACTICAL_FLOOR, Sequence};
use crate::statistics::separate::{self, SeparateEstimate};
use crate::statistics::shape::Shape;
use crate::statistics::{Interval, Method, median};
use diskperf_timeline::{ProgramResult, Repetition};
use std::collections::BTreeMap;

/// Ratio of two speeds, with its interval and verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// Ratio of the other figure to the base; `None` where either has no repetition with a speed.
    pub ratio: Option<f64>,
    /// Interval of the ratio, with a confidence of 99 % for all rows of the comparison together;
    /// `None` where the repetitions are too few.
    pub interval: Option<Interval>,
    /// Verdict on the difference of the two samples, such as faster or slower.
    pub verdict: Verdict,
    /// Reason why the verdict is not firm, if it is not.
    pub doubt: Option<Doubt>,
}

impl Judgement {
    /// Returns the share beyond which the interval excludes a difference in either direction.
    pub fn excluded_slowdown(&self) -> Option<f64> {
        let interval = self.interval?;
        let outermost = slowdown_factor(interval.low).max(slowdown_factor(interval.high)) - 1.0;
        outermost.is_finite().then_some(outermost)
    }

    /// Makes the verdict inconclusive where either sample is bimodal, so that the choice of the
    /// mode would decide it.
    pub(super) fn doubt_two_modes(self, shapes: [Shape; 2]) -> Self {
        let modes = shapes.map(|shape| shape.modes_s());
        if !self.verdict.is_difference() || modes.iter().all(Option::is_none) {
            return self;
        }
        Self {
            verdict: Verdict::Unsure,
            doubt: Some(Doubt::TwoModes),
            ..self
        }
    }

    /// Replaces the verdict by "inconclusive" for the given reason, whatever the figures are.
    pub(super) fn without_verdict(self, doubt: Doubt) -> Self {
        Self {
            verdict: Verdict::Unsure,
            doubt: Some(doubt),
            ..self
        }
    }

    /// Converts the judgement of speeds to one of times, which are their inverses: ratio and
    /// interval are inverted.
    pub(super) fn as_times(self) -> Self {
        let turned = |interval: Interval| Interval {
            low: 1.0 / interval.high,
            high: 1.0 / interval.low,
            ..interval
        };
        Self {
            ratio: self.ratio.map(|ratio| 1.0 / ratio),
            interval: self.interval.map(turned),
            ..self
        }
    }

    fn undecided(ratio: Option<f64>) -> Self {
        Self {
            ratio,
            interval: None,
            verdict: Verdict::TooFewRepetitions,
            doubt: Some(Doubt::TooFew),
        }
    }
}

/// Judges the rates of two separate runs in the order of running.
///
/// `rows` is the number of rows that share the error probability, and `floor` the minimum noise
/// between whole runs.
pub(super) fn judge(
    (base, other): (&[f64], &[f64]),
    (rows, floor): (usize, f64),
    limits: Limits,
) -> Judgement {
    let ratio = median(other)
        .zip(median(base))
        .map(|(other, base)| other / base);
    let found = SeparateEstimate::from_runs(base, other, rows, floor).zip(ratio);
    let Some((found, ratio)) = found.filter(|(_, ratio)| ratio.is_finite() && *ratio > 0.0) else {
        return Judgement::undecided(ratio.filter(|ratio| ratio.is_finite()));
    };
    let interval = Interval {
        low: ratio * libm::exp(-found.half_width),
        high: ratio * libm::exp(found.half_width),
        confidence: 1.0 - separate::ERROR,
        method: Method::SeparateRuns,
        widened_by: 1.0,
    };
    if !interval.high.is_finite() || interval.low <= 0.0 {
        return Judgement::undecided(Some(ratio));
    }
    let doubt = found.doubt.map(convert_doubt);
    let (verdict, doubt) = match (found.excludes_equality(), doubt) {
        (true, None) if ratio > 1.0 => (Verdict::Faster, None),
        (true, None) => (Verdict::Slower, None),
        (true, Some(Doubt::TooFew)) if ratio > 1.0 => (Verdict::SuggestsFaster, doubt),
        (true, Some(Doubt::TooFew)) => (Verdict::SuggestsSlower, doubt),
        (_, Some(Doubt::TooFew)) => (Verdict::TooFewRepetitions, doubt),
        (_, None) if found.difference_unresolved_max() < limits.min_effect => {
            (Verdict::NoDifferenceSeen, None)
        }
        (_, doubt) => (Verdict::Unsure, doubt.or(Some(Doubt::Noise))),
    };
    Judgement {
        ratio: Some(ratio),
        interval: Some(interval),
        verdict,
        doubt,
    }
}

fn convert_doubt(doubt: separate::Doubt) -> Doubt {
    match doubt {
        separate::Doubt::TooFew => Doubt::TooFew,
        separate::Doubt::BaseDisturbed => Doubt::BaseDisturbed,
        separate::Doubt::OtherDisturbed => Doubt::OtherDisturbed,
        separate::Doubt::FastestDisagree => Doubt::FastestDisagree,
    }
}

/// One block of an A/B measurement: one repetition of each side, one after the other, as speeds.
pub(crate) struct Block {
    pub(crate) base: f64,
    pub(crate) other: f64,
    /// Whether the other side ran second in the block.
    pub(crate) other_second: bool,
    /// Whether the block ran after the verdict.
    pub(crate) after_verdict: bool,
}

impl Block {
    /// Returns the blocks in which both arms of an A/B measurement have a speed, in the order of
    /// running.
    pub(super) fn pair_up(
        base: &ProgramResult,
        other: &ProgramResult,
        quantity: Quantity,
    ) -> Vec<Self> {
        let partners: BTreeMap<u32, &Repetition> = base
            .kept_repetitions()
            .filter_map(|one| Some((one.interleaved_block?.block_number, one)))
            .collect();
        let blocks = other.kept_repetitions().filter_map(|one| {
            let place = one.interleaved_block?;
            let partner = partners.get(&place.block_number)?;
            Some(Self {
                base: quantity.speed(partner)?,
                other: quantity.speed(one)?,
                other_second: place.is_second_run,
                after_verdict: place.is_after_verdict,
            })
        });
        blocks.collect()
    }
}

/// Figures of base and other in the median block; their quotient is the ratio.
type MedianFigures = (f64, f64);

/// Judges blocks of an A/B measurement in the order of running.
///
/// `rows` is the number of rows that share the error probability. The figures are those that form
/// the ratio.
pub(crate) fn judge_blocks(
    blocks: &[Block],
    rows: usize,
    limits: Limits,
) -> (Judgement, Option<MedianFigures>) {
    let mut sequence = Sequence::new(rows, limits);
    for block in blocks {
        if block.after_verdict {
            sequence.begin_size();
        }
        sequence.add_rates(block.base, block.other, block.other_second);
    }
    let levels: Vec<f64> = blocks.iter().map(log_mean_rate).collect();
    let Some((ln_ratio, level)) = sequence.size().zip(median(&levels)) else {
        return (Judgement::undecided(None), None);
    };
    let half = libm::exp(-ln_ratio / 2.0);
    let figures = (libm::exp(level) / half, libm::exp(level) * half);
    let ratio = figures.1 / figures.0;
    let Some(estimate) = sequence.estimate() else {
        return (Judgement::undecided(Some(ratio)), Some(figures));
    };
    let (verdict, doubt) = match sequence.verdict() {
        Some(Decided::Faster) => (Verdict::Faster, None),
        Some(Decided::Slower) => (Verdict::Slower, None),
        Some(Decided::NoDifference) => (Verdict::NoDifferenceSeen, None),
        None => (Verdict::Unsure, Some(Doubt::Noise)),
    };
    // The ends may be the estimate itself, whose ratio is rounded.
    let interval = Interval {
        low: libm::exp(-estimate.high).min(ratio),
        high: libm::exp(-estimate.low).max(ratio),
        confidence: 1.0 - interleaved::ERROR,
        method: Method::InterleavedBlocks,
        widened_by: 1.0,
    };
    let judgement = Judgement {
        ratio: Some(ratio),
        interval: Some(interval),
        verdict,
        doubt,
    };
    (judgement, Some(figures))
}

/// Returns the natural logarithm of the geometric mean of a block's two rates.
fn log_mean_rate(block: &Block) -> f64 {
    0.5 * (libm::log(block.base) + libm::log(block.other))
}

/// Judges two modelled figures. They are exact, and so is their ratio.
pub(super) fn judge_exact(base: f64, other: f64) -> Judgement {
    let ratio = (base > 0.0 && other > 0.0).then(|| other / base);
    Judgement {
        ratio,
        interval: ratio.map(Interval::exact),
        verdict: match ratio {
            None => Verdict::TooFewRepetitions,
            Some(ratio) if slowdown_factor(ratio) < 1.0 + PRACTICAL_FLOOR => {
                Verdict::NoDifferenceSeen
            }
            Some(ratio) if ratio > 1.0 => Verdict::Faster,
            Some(_) => Verdict::Slower,
        },
        doubt: None,
    }
}

/// Returns the speed of the faster side divided by that of the slower side; at least 1.
fn slowdown_factor(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio)
}
