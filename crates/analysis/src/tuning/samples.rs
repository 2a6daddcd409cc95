//! Points that were measured, repetition by repetition.

use super::Places;
use crate::comparison::{Judgement, Verdict, judge};
use crate::statistics::interleaved::Limits;
use crate::statistics::separate;
use std::collections::BTreeMap;

/// What counts of each repetition, as a speed, in the order of running.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Of the target as it is.
    pub today: Vec<f64>,
    /// Of each point.
    pub points: BTreeMap<Places, Vec<f64>>,
}

impl Samples {
    /// What a point's repetitions say beside today's, as one of all points.
    pub fn against_today(&self, places: &[usize]) -> Option<Judgement> {
        let point = self.points.get(places)?;
        Some(self.judge(&self.today, point))
    }

    fn judge(&self, base: &[f64], other: &[f64]) -> Judgement {
        let rows = (self.points.len(), separate::FLOOR);
        judge((base, other), rows, Limits::default())
    }

    /// Whether one point is surely slower than another.
    pub(super) fn is_slower(&self, than: &[usize], places: &[usize]) -> bool {
        let both = self.points.get(than).zip(self.points.get(places));
        both.is_some_and(|(base, other)| self.judge(base, other).verdict == Verdict::Slower)
    }
}
