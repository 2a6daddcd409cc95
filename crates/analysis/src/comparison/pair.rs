//! Two results of the same program, side by side.

use super::{BlockPair, ComparisonBasis, Judgement, Quantity, UndecidedReason, Verdict};
use crate::cache::CacheVerdict;
use crate::statistics::interleaved::SIZE_BLOCK_COUNT_MIN;
use crate::statistics::shape::SeriesShape;
use serde::Serialize;

/// One side of a pair of results: base or other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairSide {
    /// Compared figure of one side, by the protocol's statistic and in the unit of the quantity.
    pub figure: f64,
    /// Speed of the result in KB/s; the compared figure, where the quantity is in KB/s.
    pub kb_per_s: f64,
    /// 99th percentile of the response time in microseconds, shown beside the rate where several
    /// requests are in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// CPU share of the result in percent.
    pub cpu_percent: f64,
    /// Number of repetitions of the result that count, without discarded ones.
    #[serde(rename = "kept")]
    pub kept_count: usize,
    /// File system or device of the result.
    pub filesystem: String,
    /// Drives that ran the program concurrently.
    #[serde(rename = "drives")]
    pub drive_count: u32,
    /// Bytes that each worker of the program moves.
    pub size_bytes: u64,
    /// Verdict on the source of the read bytes, memory or storage.
    pub cache: CacheVerdict,
    /// Share of the read bytes that were never written; only for a modelled flash drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unwritten_share: Option<f64>,
    /// Pattern of the repetitions in the order of running, such as steady or bimodal.
    #[serde(flatten)]
    pub shape: SeriesShape,
    /// Compared quantity of each kept repetition, in the order of running.
    #[serde(rename = "repetitions")]
    pub repetition_figures: Vec<f64>,
    /// Speed of each kept repetition in KB/s.
    pub repetitions_kb_per_s: Vec<f64>,
}

/// Comparison of two results of the same program.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultPair {
    /// Run that the base is compared with, as an index of [`Comparison::runs`].
    pub run_index: usize,
    /// Key of the pair: the program with its distinguishing parameters.
    pub program_key: String,
    /// Title of the pair for people: the program with its distinguishing parameters.
    pub title: String,
    /// Quantity by which the two results are compared.
    pub quantity: Quantity,
    /// Kind of the two compared figures, such as medians of separate runs.
    pub basis: ComparisonBasis,
    /// Result of the base run.
    pub base: PairSide,
    /// Result of the other run.
    pub other: PairSide,
    /// Ratio of the two figures, with its interval and verdict.
    pub judgement: Judgement,
    /// Blocks of an A/B measurement on which the judgement rests; absent for separate runs.
    pub block_counts: Option<BlockCounts>,
    /// Warnings about facts that make the two results less comparable.
    pub warnings: Vec<String>,
    /// Warnings by which the two results did different work. Neither result then proves that the
    /// other is no slower.
    pub work_differences: Vec<String>,
}

/// Numbers of blocks in one row of an A/B measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockCounts {
    /// Number of all blocks, on which interval and verdict rest.
    #[serde(rename = "total")]
    pub total_count: usize,
    /// Number of blocks after the verdict, whose median is the ratio.
    #[serde(rename = "after_verdict")]
    pub after_verdict_count: usize,
}

impl BlockCounts {
    pub(super) fn count_blocks(blocks: &[BlockPair]) -> Self {
        Self {
            total_count: blocks.len(),
            after_verdict_count: blocks.iter().filter(|one| one.is_after_verdict).count(),
        }
    }

    /// Tests whether enough blocks ran after the verdict for a ratio without the bias of stopping
    /// at the verdict.
    pub fn has_unbiased_size(self) -> bool {
        self.after_verdict_count >= SIZE_BLOCK_COUNT_MIN
    }
}

impl ResultPair {
    /// Returns the share (0 to 1) of the base's speed that the other side lacks; negative where the
    /// other is faster. The speed of a time is its inverse. `None` where no ratio is known.
    pub fn slowdown(&self) -> Option<f64> {
        let ratio = self.judgement.ratio?;
        Some(1.0 - self.quantity.invert_time(ratio))
    }

    /// Returns the largest share of the base's speed that the other side may lack; `None` where no
    /// interval is known.
    pub fn slowdown_max(&self) -> Option<f64> {
        let interval = self.judgement.interval?;
        Some(match self.quantity.is_duration() {
            true => 1.0 - 1.0 / interval.max,
            false => 1.0 - interval.min,
        })
    }

    /// Describes the verdict, with the question that it leaves open.
    pub fn describe_verdict(&self) -> String {
        let Judgement {
            verdict,
            undecided_reason: doubt,
            ..
        } = self.judgement;
        let below = self
            .judgement
            .slowdown_excluded_above()
            .map(format_percent_above);
        match (verdict, doubt, below) {
            (Verdict::NoDifferenceSeen, _, _) if self.basis == ComparisonBasis::SameModelledRun => {
                "the same run".to_owned()
            }
            (Verdict::NoDifferenceSeen, _, Some(below))
                if self.basis != ComparisonBasis::ExactFigures =>
            {
                format!("no difference above {below}")
            }
            (Verdict::Inconclusive, Some(UndecidedReason::Noise) | None, Some(below)) => {
                format!("not sure below {below}")
            }
            (Verdict::Inconclusive, Some(doubt), _) if doubt != UndecidedReason::Noise => {
                format!("not sure: {}", doubt.label())
            }
            _ => verdict.label().to_owned(),
        }
    }
}

/// Formats a bound in percent, rounded up so that it remains a bound: `34%`, `3.1%`. It has no
/// space, so that a narrow table does not split it.
fn format_percent_above(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        small if small < 9.95 => format!("{:.1}%", (10.0 * small).ceil() / 10.0),
        large if large < 1000.0 => format!("{:.0}%", large.ceil()),
        huge => format!("a factor of {:.0}", (huge / 100.0 + 1.0).ceil()),
    }
}

impl PairSide {
    /// Sets the compared figure of one side, and its speed where the quantity is in KB/s.
    pub(super) fn set_figure(&mut self, quantity: Quantity, figure: f64) {
        self.figure = figure;
        match quantity {
            Quantity::KbPerS | Quantity::DurableKbPerS => self.kb_per_s = figure,
            Quantity::Iops | Quantity::ResponseP50Us | Quantity::ResponseP99Us => {}
        }
    }
}
