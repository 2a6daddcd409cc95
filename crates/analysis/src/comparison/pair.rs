//! Two results of the same program, side by side.

use super::{Basis, Block, Doubt, Judgement, Quantity, Verdict};
use crate::cache::CacheVerdict;
use crate::statistics::interleaved::SIZE_BLOCKS_MIN;
use crate::statistics::shape::Shape;
use serde::Serialize;

/// One side of a pair.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// What is compared, by the protocol's statistic and in the unit of its quantity.
    pub figure: f64,
    /// The speed: what is compared, where that is one of KB/s.
    pub kb_per_s: f64,
    /// Of several requests under way: the 99th percentile of the response, which is shown
    /// beside their rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// CPU share in percent.
    pub cpu_percent: f64,
    /// Repetitions that count.
    pub kept: usize,
    /// File system or device.
    pub filesystem: String,
    /// Drives at once.
    pub drives: u32,
    /// Bytes that each worker moves.
    pub size_bytes: u64,
    /// Whether its reads came from where they were meant to.
    pub cache: CacheVerdict,
    /// Of a modelled flash drive, the share of what was read that was never written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unwritten_share: Option<f64>,
    /// How its repetitions lie in the order of running.
    #[serde(flatten)]
    pub shape: Shape,
    /// What is compared, of each kept repetition in the order of running.
    pub repetitions: Vec<f64>,
    /// The speed of each of these.
    pub repetitions_kb_per_s: Vec<f64>,
}

/// Two results of the same program, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Which run the base is compared with, as an index of
    /// [`Comparison::runs`].
    pub run: usize,
    /// The program with its distinguishing parameters.
    pub key: String,
    /// The same for people.
    pub title: String,
    /// The speed.
    pub quantity: Quantity,
    /// What the two figures are.
    pub basis: Basis,
    /// The base.
    pub base: Side,
    /// The other.
    pub other: Side,
    /// The ratio of the two, and what may be said of it.
    pub judgement: Judgement,
    /// Blocks of an A/B measurement that the judgement rests on; absent of separate runs.
    pub blocks: Option<BlockCounts>,
    /// What makes the two less alike than they should be.
    pub warnings: Vec<String>,
    /// Those of the warnings by which the two did not do the same work: neither bears
    /// out that the other is no slower.
    pub unlike_work: Vec<String>,
}

/// Numbers of blocks of one row of an A/B measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockCounts {
    /// All blocks, which the interval and the verdict rest on.
    pub total: usize,
    /// Those after the verdict, whose median is the ratio.
    pub after_verdict: usize,
}

impl BlockCounts {
    pub(super) fn of(blocks: &[Block]) -> Self {
        Self {
            total: blocks.len(),
            after_verdict: blocks.iter().filter(|one| one.after_verdict).count(),
        }
    }

    /// Whether enough blocks ran after the verdict for a ratio without the bias of
    /// having stopped there.
    pub fn has_unbiased_size(self) -> bool {
        self.after_verdict >= SIZE_BLOCKS_MIN
    }
}

impl Pair {
    /// The share (0 to 1) of the base's speed that the other lacks; negative
    /// where it is faster. A time's speed is its inverse. `None` where no ratio is known.
    pub fn slowdown(&self) -> Option<f64> {
        let ratio = self.judgement.ratio?;
        Some(1.0 - self.quantity.turned(ratio))
    }

    /// The greatest share of the base's speed that the other may lack; `None` where no
    /// interval is known.
    pub fn slowdown_at_most(&self) -> Option<f64> {
        let interval = self.judgement.interval?;
        Some(match self.quantity.is_time() {
            true => 1.0 - 1.0 / interval.high,
            false => 1.0 - interval.low,
        })
    }

    /// The verdict in words, with what it leaves open.
    pub fn verdict(&self) -> String {
        let Judgement { verdict, doubt, .. } = self.judgement;
        let below = self.judgement.excluded_above().map(percent_above);
        match (verdict, doubt, below) {
            (Verdict::NoDifferenceSeen, _, _) if self.basis == Basis::SameRun => {
                "the same run".to_owned()
            }
            (Verdict::NoDifferenceSeen, _, Some(below)) if self.basis != Basis::Exact => {
                format!("no difference above {below}")
            }
            (Verdict::Unsure, Some(Doubt::Noise) | None, Some(below)) => {
                format!("not sure below {below}")
            }
            (Verdict::Unsure, Some(doubt), _) if doubt != Doubt::Noise => {
                format!("not sure: {}", doubt.words())
            }
            _ => verdict.words().to_owned(),
        }
    }
}

/// A bound in percent, rounded up, so that it stays one: `34%`, `3.1%`. Without a space,
/// so that a narrow table does not part it.
fn percent_above(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        small if small < 9.95 => format!("{:.1}%", (10.0 * small).ceil() / 10.0),
        large if large < 1000.0 => format!("{:.0}%", large.ceil()),
        huge => format!("a factor of {:.0}", (huge / 100.0 + 1.0).ceil()),
    }
}

impl Side {
    /// Takes a figure for what is compared.
    pub(super) fn show(&mut self, quantity: Quantity, figure: f64) {
        self.figure = figure;
        match quantity {
            Quantity::KbPerS | Quantity::DurableKbPerS => self.kb_per_s = figure,
            Quantity::Iops | Quantity::ResponseP50Us | Quantity::ResponseP99Us => {}
        }
    }
}
