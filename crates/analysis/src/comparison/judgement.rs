//! Judgement of two samples of rates: their ratio, its interval and a verdict.

use super::{Quantity, UndecidedReason, Verdict};
use crate::statistics::interleaved::{
    self, ConfidenceSequence, DecisionLimits, PRACTICAL_EFFECT_MIN, SequenceVerdict,
};
use crate::statistics::separate::{self, SeparateEstimate};
use crate::statistics::shape::SeriesShape;
use crate::statistics::{ConfidenceInterval, IntervalMethod, median};
use diskperf_timeline::{ProgramResult, Repetition};
use std::collections::BTreeMap;

/// Ratio of two speeds, with its interval and verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// Ratio of the other figure to the base; `None` where either has no repetition with a speed.
    pub ratio: Option<f64>,
    /// Interval of the ratio, with a confidence of 99 % for all rows of the comparison together;
    /// `None` where the repetitions are too few.
    pub interval: Option<ConfidenceInterval>,
    /// Verdict on the difference of the two samples, such as faster or slower.
    pub verdict: Verdict,
    /// Reason why the verdict is not firm, if it is not.
    pub undecided_reason: Option<UndecidedReason>,
}

impl Judgement {
    /// Returns the share beyond which the interval excludes a difference in either direction.
    pub fn slowdown_excluded_above(&self) -> Option<f64> {
        let interval = self.interval?;
        let outermost = slowdown_factor(interval.min).max(slowdown_factor(interval.max)) - 1.0;
        outermost.is_finite().then_some(outermost)
    }

    /// Makes the verdict inconclusive where either sample is bimodal, so that the choice of the
    /// mode would decide it.
    pub(super) fn without_verdict_if_bimodal(self, shapes: [SeriesShape; 2]) -> Self {
        if !self.verdict.shows_difference() || !shapes.iter().any(SeriesShape::is_bimodal) {
            return self;
        }
        Self {
            verdict: Verdict::Inconclusive,
            undecided_reason: Some(UndecidedReason::Bimodal),
            ..self
        }
    }

    /// Replaces the verdict by "inconclusive" for the given reason, whatever the figures are.
    pub(super) fn without_verdict(self, doubt: UndecidedReason) -> Self {
        Self {
            verdict: Verdict::Inconclusive,
            undecided_reason: Some(doubt),
            ..self
        }
    }

    /// Replaces the verdict on a run that is at a cap and no faster than the base.
    pub(super) fn at_cap(self) -> Self {
        Self {
            verdict: Verdict::Capped,
            undecided_reason: None,
            ..self
        }
    }

    /// Converts the judgement of speeds to one of times, which are their inverses: ratio and
    /// interval are inverted.
    pub(super) fn invert_to_times(self) -> Self {
        let turned = |interval: ConfidenceInterval| ConfidenceInterval {
            min: 1.0 / interval.max,
            max: 1.0 / interval.min,
            ..interval
        };
        Self {
            ratio: self.ratio.map(|ratio| 1.0 / ratio),
            interval: self.interval.map(turned),
            ..self
        }
    }

    fn new_undecided(ratio: Option<f64>) -> Self {
        Self {
            ratio,
            interval: None,
            verdict: Verdict::TooFewRepetitions,
            undecided_reason: Some(UndecidedReason::TooFewRepetitions),
        }
    }
}

/// Judges the rates of two separate runs in the order of running.
///
/// `rows` is the number of rows that share the error probability, and `floor` the minimum noise
/// between whole runs.
pub(super) fn judge_repetitions(
    (base, other): (&[f64], &[f64]),
    (rows, floor): (usize, f64),
    limits: DecisionLimits,
) -> Judgement {
    let ratio = median(other)
        .zip(median(base))
        .map(|(other, base)| other / base);
    let found = SeparateEstimate::from_runs(base, other, rows, floor).zip(ratio);
    let Some((found, ratio)) = found.filter(|(_, ratio)| ratio.is_finite() && *ratio > 0.0) else {
        return Judgement::new_undecided(ratio.filter(|ratio| ratio.is_finite()));
    };
    let interval = ConfidenceInterval {
        min: ratio * libm::exp(-found.ln_half_width),
        max: ratio * libm::exp(found.ln_half_width),
        confidence: 1.0 - separate::ERROR_PROBABILITY,
        method: IntervalMethod::SeparateRuns,
        widening_factor: 1.0,
    };
    if !interval.max.is_finite() || interval.min <= 0.0 {
        return Judgement::new_undecided(Some(ratio));
    }
    let doubt = found.undecided_reason.map(convert_undecided_reason);
    let (verdict, doubt) = match (found.excludes_equality(), doubt) {
        (true, None) if ratio > 1.0 => (Verdict::Faster, None),
        (true, None) => (Verdict::Slower, None),
        (true, Some(UndecidedReason::TooFewRepetitions)) if ratio > 1.0 => {
            (Verdict::SuggestsFaster, doubt)
        }
        (true, Some(UndecidedReason::TooFewRepetitions)) => (Verdict::SuggestsSlower, doubt),
        (_, Some(UndecidedReason::TooFewRepetitions)) => (Verdict::TooFewRepetitions, doubt),
        (_, None) if found.unresolved_difference_max() < limits.effect_share_min => {
            (Verdict::NoDifferenceSeen, None)
        }
        (_, doubt) => (
            Verdict::Inconclusive,
            doubt.or(Some(UndecidedReason::Noise)),
        ),
    };
    Judgement {
        ratio: Some(ratio),
        interval: Some(interval),
        verdict,
        undecided_reason: doubt,
    }
}

fn convert_undecided_reason(doubt: separate::SeparateDoubt) -> UndecidedReason {
    match doubt {
        separate::SeparateDoubt::TooFewRepetitions => UndecidedReason::TooFewRepetitions,
        separate::SeparateDoubt::BaseDisturbed => UndecidedReason::BaseDisturbed,
        separate::SeparateDoubt::OtherDisturbed => UndecidedReason::OtherDisturbed,
        separate::SeparateDoubt::FastestQuartersDisagree => {
            UndecidedReason::FastestQuartersDisagree
        }
    }
}

/// One block of an A/B measurement: one repetition of each side, one after the other, as speeds.
pub(crate) struct BlockPair {
    pub(crate) base_rate: f64,
    pub(crate) other_rate: f64,
    pub(crate) is_other_second: bool,
    pub(crate) is_after_verdict: bool,
}

impl BlockPair {
    /// Returns the blocks in which both arms of an A/B measurement have a speed, in the order of
    /// running.
    pub(super) fn pair_blocks(
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
                base_rate: quantity.speed_of_repetition(partner)?,
                other_rate: quantity.speed_of_repetition(one)?,
                is_other_second: place.is_second_run,
                is_after_verdict: place.is_after_verdict,
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
    blocks: &[BlockPair],
    rows: usize,
    limits: DecisionLimits,
) -> (Judgement, Option<MedianFigures>) {
    let mut sequence = ConfidenceSequence::new(rows, limits);
    for block in blocks {
        if block.is_after_verdict {
            sequence.begin_size_phase();
        }
        sequence.add_block_rates(block.base_rate, block.other_rate, block.is_other_second);
    }
    let levels: Vec<f64> = blocks.iter().map(log_mean_of_rates).collect();
    let Some((ln_ratio, level)) = sequence.effect_size().zip(median(&levels)) else {
        return (Judgement::new_undecided(None), None);
    };
    let half = libm::exp(-ln_ratio / 2.0);
    let figures = (libm::exp(level) / half, libm::exp(level) * half);
    let ratio = figures.1 / figures.0;
    let Some(estimate) = sequence.estimate() else {
        return (Judgement::new_undecided(Some(ratio)), Some(figures));
    };
    let (verdict, doubt) = match sequence.verdict() {
        Some(SequenceVerdict::Faster) => (Verdict::Faster, None),
        Some(SequenceVerdict::Slower) => (Verdict::Slower, None),
        Some(SequenceVerdict::NoDifference) => (Verdict::NoDifferenceSeen, None),
        None => (Verdict::Inconclusive, Some(UndecidedReason::Noise)),
    };
    // The ends may be the estimate itself, whose ratio is rounded.
    let interval = ConfidenceInterval {
        min: libm::exp(-estimate.ln_ratio_max).min(ratio),
        max: libm::exp(-estimate.ln_ratio_min).max(ratio),
        confidence: 1.0 - interleaved::ERROR_PROBABILITY,
        method: IntervalMethod::InterleavedBlocks,
        widening_factor: 1.0,
    };
    let judgement = Judgement {
        ratio: Some(ratio),
        interval: Some(interval),
        verdict,
        undecided_reason: doubt,
    };
    (judgement, Some(figures))
}

/// Returns the natural logarithm of the geometric mean of a block's two rates.
fn log_mean_of_rates(block: &BlockPair) -> f64 {
    0.5 * (libm::log(block.base_rate) + libm::log(block.other_rate))
}

/// Judges two modelled figures. They are exact, and so is their ratio.
pub(super) fn judge_exact_figures(base: f64, other: f64) -> Judgement {
    let ratio = (base > 0.0 && other > 0.0).then(|| other / base);
    Judgement {
        ratio,
        interval: ratio.map(ConfidenceInterval::exact_value),
        verdict: match ratio {
            None => Verdict::TooFewRepetitions,
            Some(ratio) if slowdown_factor(ratio) < 1.0 + PRACTICAL_EFFECT_MIN => {
                Verdict::NoDifferenceSeen
            }
            Some(ratio) if ratio > 1.0 => Verdict::Faster,
            Some(_) => Verdict::Slower,
        },
        undecided_reason: None,
    }
}

/// Returns the speed of the faster side divided by that of the slower side; at least 1.
fn slowdown_factor(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio)
}
