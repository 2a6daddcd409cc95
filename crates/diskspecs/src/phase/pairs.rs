//! The requests that show where the platter was, and pairs of them.

use std::collections::BTreeMap;

use super::Assumed;
use crate::layout::Layout;
use crate::trace::{Operation, Request};

/// A request that ended with the platter at a known angle.
#[derive(Clone, Copy, Debug)]
struct Reference {
    /// Which request.
    index: usize,
    /// Of the first block of a read, behind the last one of a write; in revolutions.
    angle: f64,
    /// Blocks that cross to the host after the angle has passed.
    blocks: f64,
}

/// Requests that show the angle, by operation and cylinders: groups of two and more.
#[derive(Clone, Debug)]
pub(super) struct References {
    groups: Vec<Vec<Reference>>,
}

/// Two references of one group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Between their completions, in microseconds.
    pub(super) gap_us: f64,
    /// The second one's blocks less the first one's.
    pub(super) blocks: f64,
    /// The second one's angle less the first one's, in revolutions.
    pub(super) angle: f64,
    /// The group's number.
    pub(super) group: usize,
}

impl References {
    /// Requests that took more than half a revolution beside their transfer: those that did
    /// not wait for the platter were faster, nearly all.
    /// So many cylinders are taken together.
    pub(super) fn new(
        layout: &Layout,
        requests: &[Request],
        assumed: &Assumed,
        cylinders: u32,
    ) -> References {
        let mut groups: BTreeMap<(bool, u32), Vec<Reference>> = BTreeMap::new();
        for (index, request) in requests.iter().enumerate() {
            let is_write = request.operation == Operation::Write;
            let crossing_us = match is_write {
                true => 0.0,
                false => f64::from(request.blocks) * assumed.transfer_us,
            };
            let waited = request.service_us - crossing_us > assumed.period_us / 2.0;
            if !waited || is_write && !assumed.write_through {
                continue;
            }
            // A read's blocks cross the bus after the first one has passed the head; a
            // write is complete when its last one has.
            let (block, sectors, blocks) = match request.operation {
                Operation::Read => (request.first_block, 0.0, f64::from(request.blocks)),
                Operation::Write => (
                    request.first_block + u64::from(request.blocks) - 1,
                    1.0,
                    0.0,
                ),
            };
            let Some(spot) = layout.spot(block) else {
                continue;
            };
            let angle = spot.angle + sectors / f64::from(spot.sectors_per_track);
            let group = groups
                .entry((is_write, spot.cylinder / cylinders))
                .or_default();
            group.push(Reference {
                index,
                angle,
                blocks,
            });
        }
        let groups = groups
            .into_values()
            .filter(|group| group.len() > 1)
            .collect();
        References { groups }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    /// Pairs with gaps up to some, at most about so many: then evenly chosen ones.
    pub(super) fn pairs(&self, completions_us: &[f64], gap_us: f64, most: usize) -> Vec<Pair> {
        let at = |reference: &Reference| completions_us[reference.index];
        let within = |group: &[Reference], first: usize| {
            let end = at(&group[first]) + gap_us;
            first + 1 + group[first + 1..].partition_point(|other| at(other) <= end)
        };
        let all = self.groups.iter().map(|group| {
            let of_one = |first: usize| within(group, first) - first - 1;
            (0..group.len()).map(of_one).sum::<usize>()
        });
        let stride = all.sum::<usize>().div_ceil(most).max(1);
        let mut pairs = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            for first in 0..group.len() {
                let from = first + 1 + first % stride;
                for second in (from..within(group, first)).step_by(stride) {
                    let (one, other) = (&group[first], &group[second]);
                    pairs.push(Pair {
                        gap_us: at(other) - at(one),
                        blocks: other.blocks - one.blocks,
                        angle: other.angle - one.angle,
                        group: number,
                    });
                }
            }
        }
        pairs
    }
}
