//! Points that were measured in rounds, each once in every round that it is in, in an
//! order that chance decides: two points in one round are a block.

use super::Places;
use crate::comparison::{Block, Judgement, judge_blocks};
use crate::statistics::interleaved::Limits;
use std::collections::BTreeMap;

/// One measurement of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    /// The round, counted from 0.
    pub round: u32,
    /// How many points were measured before it in the round.
    pub place_in_round: u32,
    /// What counts, as a speed.
    pub speed: f64,
}

/// What was measured of each point, in the order of running.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Of the target as it is, which may be one of the points.
    pub today: Vec<Visit>,
    /// Of each point.
    pub points: BTreeMap<Places, Vec<Visit>>,
}

impl Samples {
    /// What a point's rounds say beside today's, as one of all points; nothing of
    /// today's own.
    pub fn against_today(&self, places: &[usize]) -> Option<Judgement> {
        let point = self.points.get(places)?;
        (*point != self.today).then(|| self.judge(&self.today, point))
    }

    /// What the rounds of one point say beside another's.
    pub(super) fn beside(&self, base: &[usize], other: &[usize]) -> Option<Judgement> {
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
