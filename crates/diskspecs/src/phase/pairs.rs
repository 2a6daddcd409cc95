//! Requests that reveal the platter position, and pairs of such requests.

use std::collections::BTreeMap;

use super::PhaseAssumptions;
use crate::layout::{BlockLayout, PhysicalSector};
use crate::trace::{ValidationOperation, ValidationRequest};

/// Request that ended when the platter was at a known angle.
#[derive(Clone, Copy, Debug)]
struct AngleReference {
    request_index: usize,
    /// Angle of the first block of a read, or of the end of a write, in revolutions.
    angle: f64,
    cylinder: u32,
    track_index: u32,
    /// Blocks that cross to the host after the angle has passed; 0 for a write.
    host_blocks: f64,
    /// Time of a block under the head, in microseconds.
    block_media_us: f64,
}

/// Requests that reveal the platter angle, in groups that each have one unknown origin.
///
/// All requests of a group have the same operation, zone, and range of cylinders that share spares.
#[derive(Clone, Debug)]
pub(super) struct AngleReferences {
    reference_groups: Vec<Vec<AngleReference>>,
}

/// Two reference requests of one group. The cylinder of the second one is not below that of the
/// first.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReferencePair {
    /// Completion of the second request minus that of the first in microseconds; negative if the
    /// second came first.
    pub(super) gap_us: f64,
    /// Blocks of both requests, and their times of a block under the head.
    blocks: [f64; 2],
    media_us: [f64; 2],
    /// Angle of the second request minus that of the first, in revolutions.
    pub(super) angle_difference: f64,
    /// Tracks and cylinders from the first request to the second.
    pub(super) track_distance: i32,
    pub(super) cylinder_distance: u32,
    /// Index of the drive's part that contains the pair, for the jackknife error.
    pub(super) jackknife_part: usize,
}

impl ReferencePair {
    /// Returns the time between the passages of both angles under the head, in microseconds.
    pub(super) fn media_gap_us(&self, transfer_us: f64) -> f64 {
        let crossing = |of: usize| self.blocks[of] * transfer_us.max(self.media_us[of]);
        self.gap_us - crossing(1) + crossing(0)
    }
}

/// Pairs that are close enough in time and place, with the bound of their sums by chance.
#[derive(Clone, Debug, Default)]
pub(super) struct ReferencePairs {
    pub(super) pairs: Vec<ReferencePair>,
    /// Upper bound of the largest eigenvalue of the graph of pairs.
    pub(super) eigenvalue_max: f64,
}

impl AngleReferences {
    /// Selects requests that took more than half a revolution in addition to their transfer,
    /// because nearly all requests that did not wait for the platter are faster. Requests that
    /// cross the end of a track are excluded.
    pub(super) fn new(
        layout: &BlockLayout,
        requests: &[ValidationRequest],
        assumed: &PhaseAssumptions,
    ) -> AngleReferences {
        let mut groups: BTreeMap<(bool, usize, u32), Vec<AngleReference>> = BTreeMap::new();
        for (index, request) in requests.iter().enumerate() {
            let is_write = request.operation == ValidationOperation::Write;
            let crossing_us = match is_write {
                true => 0.0,
                false => f64::from(request.block_count) * assumed.transfer_us,
            };
            let waited = request.service_us - crossing_us > assumed.period_us / 2.0;
            if !waited || is_write && !assumed.has_write_through {
                continue;
            }
            let last_block = request.first_block + u64::from(request.block_count) - 1;
            let (Some(first), Some(last)) = (
                layout.locate_block(request.first_block),
                layout.locate_block(last_block),
            ) else {
                continue;
            };
            if (first.cylinder, first.head) != (last.cylinder, last.head) {
                continue;
            }
            let place = group_position(layout, request.first_block, &first);
            groups
                .entry((is_write, place.zone, place.spare_range))
                .or_default()
                .push(AngleReference {
                    request_index: index,
                    // A read's blocks cross the bus after the first one has passed the head;
                    // a write is complete when its last one has.
                    angle: match is_write {
                        true => last.angle + 1.0 / f64::from(last.sectors_per_track),
                        false => first.angle,
                    },
                    cylinder: place.cylinder,
                    track_index: place.track_index,
                    host_blocks: if is_write {
                        0.0
                    } else {
                        request.block_count.into()
                    },
                    block_media_us: assumed.period_us / f64::from(first.sectors_per_track),
                });
        }
        let mut groups: Vec<Vec<AngleReference>> = groups.into_values().collect();
        for group in &mut groups {
            group.sort_by_key(|reference| (reference.cylinder, reference.request_index));
        }
        groups.retain(|group| group.len() > 1);
        AngleReferences {
            reference_groups: groups,
        }
    }

    /// Returns the number of references that have a partner in their group.
    pub(super) fn reference_count(&self) -> usize {
        self.reference_groups.iter().map(Vec::len).sum()
    }

    /// Returns pairs within a gap in time and a distance in cylinders. An evenly spaced subset is
    /// returned if there are more than `pairs_max`.
    pub(super) fn select_pairs(
        &self,
        completions_us: &[f64],
        gap_us: f64,
        cylinders: u32,
        pairs_max: usize,
    ) -> ReferencePairs {
        let count: usize = self
            .nearby_pairs(completions_us, gap_us, cylinders)
            .map(|_| 1)
            .sum();
        let stride = count.div_ceil(pairs_max).max(1);
        let mut all = Vec::with_capacity(count / stride + 1);
        let mut degrees: BTreeMap<usize, f64> = BTreeMap::new();
        let mut ends = Vec::with_capacity(count / stride + 1);
        // A stride that shares a factor with the order of pairs would favour some references.
        let mut wanted = 0;
        for (
            number,
            NearbyPair {
                group,
                first,
                second,
            },
        ) in self
            .nearby_pairs(completions_us, gap_us, cylinders)
            .enumerate()
        {
            if number < wanted {
                continue;
            }
            wanted = stride * (number / stride + 1) + (number / stride * 7919) % stride;
            *degrees.entry(first.request_index).or_default() += 1.0;
            *degrees.entry(second.request_index).or_default() += 1.0;
            ends.push((first.request_index, second.request_index));
            all.push(ReferencePair {
                gap_us: completions_us[second.request_index] - completions_us[first.request_index],
                blocks: [first.host_blocks, second.host_blocks],
                media_us: [first.block_media_us, second.block_media_us],
                angle_difference: second.angle - first.angle,
                track_distance: second.track_index as i32 - first.track_index as i32,
                cylinder_distance: second.cylinder - first.cylinder,
                jackknife_part: group + first.cylinder as usize,
            });
        }
        let product = |(first, second): &(usize, usize)| degrees[first] * degrees[second];
        ReferencePairs {
            pairs: all,
            eigenvalue_max: ends.iter().map(product).fold(1.0, f64::max).sqrt(),
        }
    }

    fn nearby_pairs<'r>(
        &'r self,
        completions_us: &'r [f64],
        gap_us: f64,
        cylinders: u32,
    ) -> impl Iterator<Item = NearbyPair<'r>> {
        let of_group = move |(group, references): (usize, &'r Vec<AngleReference>)| {
            references.iter().enumerate().flat_map(move |(at, first)| {
                references[at + 1..]
                    .iter()
                    .take_while(move |second| second.cylinder - first.cylinder <= cylinders)
                    .filter(move |second| {
                        let gap = completions_us[second.request_index]
                            - completions_us[first.request_index];
                        gap.abs() <= gap_us
                    })
                    .map(move |second| NearbyPair {
                        group,
                        first,
                        second,
                    })
            })
        };
        self.reference_groups.iter().enumerate().flat_map(of_group)
    }
}

/// Two references of one group that are near in time and cylinders.
struct NearbyPair<'r> {
    group: usize,
    first: &'r AngleReference,
    second: &'r AngleReference,
}

/// Position of a block within the area that has one angular origin.
struct ReferencePosition {
    zone: usize,
    spare_range: u32,
    cylinder: u32,
    track_index: u32,
}

fn group_position(layout: &BlockLayout, block: u64, spot: &PhysicalSector) -> ReferencePosition {
    let zone_location = match layout {
        BlockLayout::Zoned(zoned) => zoned.locate_in_zone(block),
        BlockLayout::Mapped(_) | BlockLayout::Indexed(_) => None,
    };
    match zone_location {
        Some(at) => ReferencePosition {
            zone: at.zone_index,
            spare_range: at.spare_range,
            cylinder: at.cylinder,
            track_index: at.track_index,
        },
        None => ReferencePosition {
            zone: 0,
            spare_range: 0,
            cylinder: spot.cylinder,
            track_index: spot.head,
        },
    }
}
