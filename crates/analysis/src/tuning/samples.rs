//! Measurements of points in rounds. Each point is measured at most once per round, in random
//! order; two points in one round are a block.

use super::Places;
use crate::comparison::{Block, Judgement, judge_blocks};
use crate::statistics::interleaved::Limits;
use std::collections::BTreeMap;

/// One measurement of a point in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    /// Number of the round, counted from 0.
    pub round: u32,
    /// Number of points measured before it in the round.
    pub place_in_round: u32,
    /// Goal's value in the measurement, converted to a speed.
    pub speed: f64,
}

/// Measurements of each point, in the order of running.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Measurements of the target with its current settings, which may be one of the points.
    pub today: Vec<Visit>,
    /// Measurements of each point of the search.
    pub points: BTreeMap<Places, Vec<Visit>>,
}

impl Samples {
    /// Judges a point's rounds beside those of today's settings, as one of all points; `None` for
    /// today's settings themselves.
    pub fn against_today(&self, places: &[usize]) -> Option<Judgement> {
        let point = self.points.get(places)?;
        (*point != self.today).then(|| self.judge(&self.today, point))
    }

    /// Judges the rounds of one point of a search beside another's.
    pub(super) fn compare_points(&self, base: &[usize], other: &[usize]) -> Option<Judgement> {
        let both = self.points.get(base).zip(self.points.get(other));
        both.map(|(base, other)| self.judge(base, other))
    }

    fn judge(&self, base: &[Visit], other: &[Visit]) -> Judgement {
        let by_round: BTreeMap<u32, &Visit> = base.iter().map(|one| (one.round, one)).collect();
        let block = |other: &Visit| {
            let base = by_round.get(&other.round)?;
            Some(Block {
                base: base.speed,
                other: other.speed,
                other_second: other.place_in_round > base.place_in_round,
                after_verdict: false,
            })
        };
        let blocks: Vec<Block> = other.iter().filter_map(block).collect();
        judge_blocks(&blocks, self.points.len(), Limits::default()).0
    }
}
