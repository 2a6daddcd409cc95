//! Measurements of points in rounds. Each point is measured at most once per round, in random
//! order; two points in one round are a block.

use super::GridPoint;
use crate::comparison::{BlockPair, Judgement, judge_blocks};
use crate::statistics::interleaved::DecisionLimits;
use std::collections::BTreeMap;

/// One measurement of a point in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointVisit {
    /// Number of the round, counted from 0.
    pub round: u32,
    /// Number of points measured before it in the round.
    pub order_in_round: u32,
    /// Goal's value in the measurement, converted to a speed.
    pub speed: f64,
}

/// Measurements of each point, in the order of running.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VisitSamples {
    /// Measurements of the target with its current settings, which may be one of the points.
    pub today_visits: Vec<PointVisit>,
    /// Measurements of each point of the search.
    pub point_visits: BTreeMap<GridPoint, Vec<PointVisit>>,
}

impl VisitSamples {
    /// Judges a point's rounds beside those of today's settings, as one of all points; `None` for
    /// today's settings themselves.
    pub fn compare_with_today(&self, places: &[usize]) -> Option<Judgement> {
        let point = self.point_visits.get(places)?;
        (*point != self.today_visits).then(|| self.judge_visits(&self.today_visits, point))
    }

    /// Judges the rounds of one point of a search beside another's.
    pub(super) fn compare_points(&self, base: &[usize], other: &[usize]) -> Option<Judgement> {
        let both = self
            .point_visits
            .get(base)
            .zip(self.point_visits.get(other));
        both.map(|(base, other)| self.judge_visits(base, other))
    }

    fn judge_visits(&self, base: &[PointVisit], other: &[PointVisit]) -> Judgement {
        let by_round: BTreeMap<u32, &PointVisit> =
            base.iter().map(|one| (one.round, one)).collect();
        let block = |other: &PointVisit| {
            let base = by_round.get(&other.round)?;
            Some(BlockPair {
                base_rate: base.speed,
                other_rate: other.speed,
                is_other_second: other.order_in_round > base.order_in_round,
                is_after_verdict: false,
            })
        };
        let blocks: Vec<BlockPair> = other.iter().filter_map(block).collect();
        judge_blocks(&blocks, self.point_visits.len(), DecisionLimits::default()).0
    }
}
