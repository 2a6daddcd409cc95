//! Scans for skews: each starts with the smallest span that reveals it and continues with wider
//! spans.

use std::f64::consts::TAU;

use super::{FittedSkews, PhaseSegments};
use crate::places::BlockAddress;

/// Request that ended when the platter was at a known position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlatterReference {
    /// Place of the request's first block.
    pub(crate) block_address: BlockAddress,
    /// Completion time, in microseconds.
    pub(crate) completion_us: f64,
    /// Blocks that crossed the bus after the first block had passed the head.
    pub(crate) host_blocks: f64,
}

impl PlatterReference {
    /// Returns the platter's rotation when the first block had passed the head, in revolutions. The
    /// blocks cross the bus from then on, and the last one after it has passed.
    pub(crate) fn first_block_rev(&self, period_us: f64, crossing_us: f64) -> f64 {
        let crossing_rev = crossing_us / period_us;
        let passing_rev = (self.host_blocks - 1.0) * self.sector_rev();
        self.completion_us / period_us
            - (self.host_blocks * crossing_rev).max(passing_rev + crossing_rev)
    }

    /// Angle of a sector, in revolutions.
    fn sector_rev(&self) -> f64 {
        1.0 / f64::from(self.block_address.sectors_per_track)
    }

    /// Returns the number of blocks whose bus transfer separates the first block from the completion,
    /// if the bus is slower than the platter; 0 if the platter decides.
    pub(crate) fn crossing_blocks(&self, period_us: f64, crossing_us: f64) -> f64 {
        match crossing_us / period_us > self.sector_rev() {
            true => self.host_blocks,
            false => 0.0,
        }
    }
}

#[derive(Clone, Copy)]
struct ReferencePoint {
    zone: usize,
    cylinder: f64,
    spare_range: f64,
    track_order: f64,
    /// Platter angle minus the angle of the sector on its track.
    angle_residual: f64,
    completion_us: f64,
}

/// Pair of references: the multiple of the unknown angle between them, and the observed difference.
#[derive(Clone, Copy)]
struct ReferencePair {
    unknown_multiple: f64,
    angle_difference: f64,
}

/// Maximum number of request pairs in a scan for a skew.
const PAIRS_MAX: usize = 8192;
const PAIRS_MIN: usize = 12;
/// Initial distances of pairs, in cylinder ranges that share spares. Larger ones are tried if few
/// pairs are closer.
const INITIAL_RANGE_DISTANCES: [f64; 4] = [2.0, 8.0, 32.0, 128.0];
/// Step of a skew scan, as the rotation of the widest request pair, in revolutions.
const SCAN_STEP_REV: f64 = 0.04;

/// Numbers of zones and surfaces of the references, and the distance of pairs.
pub(super) struct ScanScope {
    pub(super) zone_count: usize,
    pub(super) surface_count: u32,
    /// Distance of pairs as a share of the trace.
    pub(super) gap_share_max: f64,
    /// Rotation period and transfer time of a block on the bus, in microseconds.
    pub(super) initial_skews: (f64, f64),
}

/// Estimates the skews, with zone origins of 0; `None` if there are too few pairs of references.
pub(super) fn estimate_skews(
    references: &[PlatterReference],
    stretches: &PhaseSegments,
    &ScanScope {
        zone_count: zones,
        surface_count: surfaces,
        gap_share_max: gap_share,
        initial_skews: start,
    }: &ScanScope,
) -> Option<FittedSkews> {
    let points = to_points(references, stretches, start)?;
    let completions = points.iter().map(|point| point.completion_us);
    let span_us = completions.clone().fold(0.0, f64::max) - completions.fold(f64::MAX, f64::min);
    let gap_us = gap_share * span_us;
    let pairs =
        |points: &[ReferencePoint], cylinders: f64, known: &KnownAngle, times: &AngleMultiple| {
            self::collect_pairs(points, (cylinders, gap_us), known, times)
        };
    let most = f64::from(surfaces.max(2) - 1);
    let same_cylinder = |a: &ReferencePoint, b: &ReferencePoint| {
        (a.cylinder == b.cylinder).then_some(b.track_order - a.track_order)
    };
    let close = pairs(&points, 0.0, &|_, _| 0.0, &same_cylinder);
    let track = match surfaces {
        0 | 1 => 0.0,
        _ => scan_angle(&close, 0.5, 0.5, SCAN_STEP_REV / most)?,
    };
    let by_track = |a: &ReferencePoint, b: &ReferencePoint| (b.track_order - a.track_order) * track;
    let has_ranges = points.iter().any(|point| point.spare_range > 0.0);
    let cylinder = scan_doubling_distance(4.0, |distance| {
        let neighbours = |a: &ReferencePoint, b: &ReferencePoint| {
            let near = a.spare_range == b.spare_range && b.cylinder > a.cylinder;
            near.then_some(b.cylinder - a.cylinder)
        };
        pairs(&points, distance, &by_track, &neighbours)
    })?;
    let by_both = |a: &ReferencePoint, b: &ReferencePoint| {
        by_track(a, b) + (b.cylinder - a.cylinder) * cylinder
    };
    let mut range_steps = vec![0.0; zones];
    for (zone, step) in range_steps.iter_mut().enumerate().filter(|_| has_ranges) {
        let own: Vec<ReferencePoint> = points
            .iter()
            .filter(|point| point.zone == zone)
            .copied()
            .collect();
        let widest = own
            .iter()
            .map(|point| point.spare_range)
            .fold(1.0, f64::max);
        let per_range = own.iter().map(|point| point.cylinder).fold(1.0, f64::max) / widest;
        let of_ranges = |ranges: f64| {
            let other = |a: &ReferencePoint, b: &ReferencePoint| {
                (b.spare_range > a.spare_range && b.spare_range - a.spare_range <= ranges)
                    .then_some(b.spare_range - a.spare_range)
            };
            pairs(&own, (ranges + 1.0) * (per_range + 1.0), &by_both, &other)
        };
        let mut first = INITIAL_RANGE_DISTANCES.into_iter();
        let found = first.find_map(|first| scan_doubling_distance(first, of_ranges));
        *step = found.unwrap_or(0.0);
    }
    Some(FittedSkews {
        track_skew: track,
        cylinder_skew: cylinder,
        zone_origins: vec![0.0; zones],
        spare_range_steps: range_steps,
    })
}

/// Returns the references by zone and cylinder; `None` if the layout has no zones.
fn to_points(
    references: &[PlatterReference],
    stretches: &PhaseSegments,
    (period_us, crossing_us): (f64, f64),
) -> Option<Vec<ReferencePoint>> {
    let point = |reference: &PlatterReference| {
        let at = reference.block_address.in_zone?;
        Some(ReferencePoint {
            zone: at.zone_index,
            cylinder: at.cylinder_in_zone.into(),
            spare_range: at.range_index.into(),
            track_order: at.track_in_range.into(),
            angle_residual: reference.first_block_rev(period_us, crossing_us)
                - at.angle_in_zone
                - stretches.phase_shift_at(reference.completion_us),
            completion_us: reference.completion_us,
        })
    };
    let mut points = references
        .iter()
        .map(point)
        .collect::<Option<Vec<ReferencePoint>>>()?;
    points.sort_by(|a, b| {
        (a.zone, a.cylinder)
            .partial_cmp(&(b.zone, b.cylinder))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    Some(points)
}

type KnownAngle<'k> = dyn Fn(&ReferencePoint, &ReferencePoint) -> f64 + 'k;
/// Multiple of the unknown angle in a pair; `None` for a pair that does not contain the angle.
type AngleMultiple<'t> = dyn Fn(&ReferencePoint, &ReferencePoint) -> Option<f64> + 't;

/// Returns pairs of one zone within the given distances in cylinders and time, with the known
/// angles subtracted. An evenly spaced subset is returned if there are too many.
fn collect_pairs(
    points: &[ReferencePoint],
    (cylinders, gap_us): (f64, f64),
    known: &KnownAngle<'_>,
    times: &AngleMultiple<'_>,
) -> Vec<ReferencePair> {
    let mut all = Vec::new();
    for (index, a) in points.iter().enumerate() {
        let near = points[index + 1..]
            .iter()
            .take_while(|b| b.zone == a.zone && b.cylinder - a.cylinder <= cylinders)
            .filter(|b| (b.completion_us - a.completion_us).abs() <= gap_us);
        for b in near {
            if let Some(times) = times(a, b).filter(|times| *times != 0.0) {
                all.push(ReferencePair {
                    unknown_multiple: times,
                    angle_difference: b.angle_residual - a.angle_residual - known(a, b),
                });
            }
        }
    }
    let stride = all.len().div_ceil(PAIRS_MAX).max(1);
    all.into_iter().step_by(stride).collect()
}

/// Estimates an angle from pairs at a small distance, then from pairs at increasing distances, as
/// long as wider pairs exist and agree.
fn scan_doubling_distance(first: f64, pairs: impl Fn(f64) -> Vec<ReferencePair>) -> Option<f64> {
    let close = pairs(first);
    let mut value = scan_angle(&close, 0.5, 0.5, SCAN_STEP_REV / first)?;
    let least = 0.5 * mean_cosine(&close, value);
    let (mut distance, mut widest) = (first, largest_multiple(&close));
    loop {
        distance *= 2.0;
        let wider = pairs(distance);
        if largest_multiple(&wider) <= widest {
            return Some(value);
        }
        let finer = scan_angle(
            &wider,
            value,
            0.3 / widest,
            SCAN_STEP_REV / largest_multiple(&wider),
        )?;
        if mean_cosine(&wider, finer) < least {
            return Some(value);
        }
        (value, widest) = (finer, largest_multiple(&wider));
    }
}

fn largest_multiple(pairs: &[ReferencePair]) -> f64 {
    pairs
        .iter()
        .map(|pair| pair.unknown_multiple.abs())
        .fold(1.0, f64::max)
}

/// Returns the angle with the highest mean cosine near a given one.
fn scan_angle(pairs: &[ReferencePair], around: f64, width: f64, step: f64) -> Option<f64> {
    if pairs.len() < PAIRS_MIN {
        return None;
    }
    let best = |around: f64, width: f64, step: f64| {
        let steps = (2.0 * width / step).ceil() as usize;
        let tried = (0..=steps).map(|at| around - width + at as f64 * step);
        let scored = tried.map(|angle| (angle, mean_cosine(pairs, angle)));
        scored
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(around, |best| best.0)
    };
    let coarse = best(around, width, step);
    Some(best(coarse, step, step / 20.0))
}

fn mean_cosine(pairs: &[ReferencePair], angle: f64) -> f64 {
    let sum: f64 = pairs
        .iter()
        .map(|pair| (TAU * (pair.angle_difference - pair.unknown_multiple * angle).fract()).cos())
        .sum();
    sum / pairs.len().max(1) as f64
}

/// Returns the mean direction of the half of the angles that lie closest together, and their
/// agreement; `None` without angles. The other half may be anywhere.
pub(crate) fn densest_direction(turns: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut turns: Vec<f64> = turns.map(|turn| turn.rem_euclid(1.0)).collect();
    turns.sort_by(f64::total_cmp);
    let (count, half) = (turns.len(), turns.len().div_ceil(2));
    turns.extend_from_within(..);
    let arc = |from: &usize| (turns[from + half - 1] - turns[*from]).rem_euclid(1.0);
    let from = (0..count).min_by(|a, b| arc(a).total_cmp(&arc(b)))?;
    mean_direction(turns[from..from + half].iter().copied())
}

/// Returns the mean direction of angles and their agreement; `None` without angles.
pub(crate) fn mean_direction(turns: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (mut sines, mut cosines, mut count) = (0.0, 0.0, 0usize);
    for turn in turns {
        let (sine, cosine) = (TAU * turn.fract()).sin_cos();
        (sines, cosines, count) = (sines + sine, cosines + cosine, count + 1);
    }
    let r = f64::hypot(sines, cosines) / count as f64;
    (count > 0).then(|| ((f64::atan2(sines, cosines) / TAU).rem_euclid(1.0), r))
}
