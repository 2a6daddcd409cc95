//! Skews by scanning: each on the smallest span that shows it, then on wider ones.

use std::f64::consts::TAU;

use super::{Skews, Stretches};
use crate::places::Place;

/// A request that ended with the platter at a known place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference {
    /// Where: the first block.
    pub(crate) place: Place,
    /// Its completion, in microseconds.
    pub(crate) completion_us: f64,
    /// Blocks that crossed the bus after its first block had passed the head.
    pub(crate) blocks: f64,
}

impl Reference {
    /// The platter's turns when the first block came under the head. Blocks cross the bus as
    /// fast as it takes them, and no faster than they pass the head.
    pub(crate) fn passed_rev(&self, period_us: f64, crossing_us: f64) -> f64 {
        let block_rev =
            (crossing_us / period_us).max(1.0 / f64::from(self.place.sectors_per_track));
        self.completion_us / period_us - self.blocks * block_rev
    }
}

/// A reference in its zone.
#[derive(Clone, Copy)]
struct Point {
    zone: usize,
    cylinder: f64,
    range: f64,
    order: f64,
    /// The platter's angle less that of the sector on its track.
    turned: f64,
    completion_us: f64,
}

/// What turns the second of two references by how much more, and the difference that is
/// seen.
#[derive(Clone, Copy)]
struct Pair {
    times: f64,
    turned: f64,
}

/// Most pairs that a scan looks at.
const MOST_PAIRS: usize = 8192;
/// Fewer show nothing.
const FEWEST_PAIRS: usize = 12;
/// Ranges that pairs are apart at first: more where few pairs are closer.
const FIRST_RANGES: [f64; 4] = [2.0, 8.0, 32.0, 128.0];
/// A step of a scan turns the widest pair by so many revolutions.
const STEP: f64 = 0.04;

/// What references are spread over, and how they are paired.
pub(super) struct Spread {
    pub(super) zones: usize,
    pub(super) surfaces: u32,
    /// Share of the trace that pairs are apart.
    pub(super) gap_share: f64,
    /// Period and a block's time on the bus, in microseconds.
    pub(super) start: (f64, f64),
}

/// Skews, with zone origins of 0; nothing if there are too few pairs of references.
pub(super) fn skews(
    references: &[Reference],
    stretches: &Stretches,
    &Spread {
        zones,
        surfaces,
        gap_share,
        start,
    }: &Spread,
) -> Option<Skews> {
    let points = points(references, stretches, start)?;
    let completions = points.iter().map(|point| point.completion_us);
    let span_us = completions.clone().fold(0.0, f64::max) - completions.fold(f64::MAX, f64::min);
    let gap_us = gap_share * span_us;
    let pairs = |points: &[Point], cylinders: f64, known: &Known, times: &Times| {
        self::pairs(points, (cylinders, gap_us), known, times)
    };
    let most = f64::from(surfaces.max(2) - 1);
    let same_cylinder =
        |a: &Point, b: &Point| (a.cylinder == b.cylinder).then_some(b.order - a.order);
    let close = pairs(&points, 0.0, &|_, _| 0.0, &same_cylinder);
    let track = match surfaces {
        0 | 1 => 0.0,
        _ => scanned(&close, 0.5, 0.5, STEP / most)?,
    };
    let by_track = |a: &Point, b: &Point| (b.order - a.order) * track;
    let has_ranges = points.iter().any(|point| point.range > 0.0);
    let cylinder = doubled(4.0, |distance| {
        let neighbours = |a: &Point, b: &Point| {
            let near = a.range == b.range && b.cylinder > a.cylinder;
            near.then_some(b.cylinder - a.cylinder)
        };
        pairs(&points, distance, &by_track, &neighbours)
    })?;
    let by_both = |a: &Point, b: &Point| by_track(a, b) + (b.cylinder - a.cylinder) * cylinder;
    let mut range_steps = vec![0.0; zones];
    for (zone, step) in range_steps.iter_mut().enumerate().filter(|_| has_ranges) {
        let own: Vec<Point> = points
            .iter()
            .filter(|point| point.zone == zone)
            .copied()
            .collect();
        let widest = own.iter().map(|point| point.range).fold(1.0, f64::max);
        let per_range = own.iter().map(|point| point.cylinder).fold(1.0, f64::max) / widest;
        let of_ranges = |ranges: f64| {
            let other = |a: &Point, b: &Point| {
                (b.range > a.range && b.range - a.range <= ranges).then_some(b.range - a.range)
            };
            pairs(&own, (ranges + 1.0) * (per_range + 1.0), &by_both, &other)
        };
        let mut first = FIRST_RANGES.into_iter();
        let found = first.find_map(|first| doubled(first, of_ranges));
        *step = found.unwrap_or(0.0);
    }
    Some(Skews {
        track,
        cylinder,
        origins: vec![0.0; zones],
        range_steps,
    })
}

/// References by zone and cylinder; nothing if one is of a layout without zones.
fn points(
    references: &[Reference],
    stretches: &Stretches,
    (period_us, crossing_us): (f64, f64),
) -> Option<Vec<Point>> {
    let point = |reference: &Reference| {
        let at = reference.place.in_zone?;
        Some(Point {
            zone: at.zone,
            cylinder: at.cylinder.into(),
            range: at.range.into(),
            order: at.order.into(),
            turned: reference.passed_rev(period_us, crossing_us)
                - at.within
                - stretches.turned_at(reference.completion_us),
            completion_us: reference.completion_us,
        })
    };
    let mut points = references
        .iter()
        .map(point)
        .collect::<Option<Vec<Point>>>()?;
    points.sort_by(|a, b| {
        (a.zone, a.cylinder)
            .partial_cmp(&(b.zone, b.cylinder))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    Some(points)
}

/// Turn of a pair that is known.
type Known<'k> = dyn Fn(&Point, &Point) -> f64 + 'k;
/// How many times an angle that is looked for turns a pair; nothing of a pair without it.
type Times<'t> = dyn Fn(&Point, &Point) -> Option<f64> + 't;

/// Pairs of one zone up to some cylinders and some time apart, by what `times` says of them,
/// less what is known; evenly chosen ones if they are many.
fn pairs(
    points: &[Point],
    (cylinders, gap_us): (f64, f64),
    known: &Known<'_>,
    times: &Times<'_>,
) -> Vec<Pair> {
    let mut all = Vec::new();
    for (index, a) in points.iter().enumerate() {
        let near = points[index + 1..]
            .iter()
            .take_while(|b| b.zone == a.zone && b.cylinder - a.cylinder <= cylinders)
            .filter(|b| (b.completion_us - a.completion_us).abs() <= gap_us);
        for b in near {
            if let Some(times) = times(a, b).filter(|times| *times != 0.0) {
                all.push(Pair {
                    times,
                    turned: b.turned - a.turned - known(a, b),
                });
            }
        }
    }
    let stride = all.len().div_ceil(MOST_PAIRS).max(1);
    all.into_iter().step_by(stride).collect()
}

/// The angle, at first any, of pairs at a small distance; then of pairs ever farther apart,
/// as long as there are wider ones and they agree.
fn doubled(first: f64, pairs: impl Fn(f64) -> Vec<Pair>) -> Option<f64> {
    let close = pairs(first);
    let mut value = scanned(&close, 0.5, 0.5, STEP / first)?;
    let least = 0.5 * cosine(&close, value);
    let (mut distance, mut widest) = (first, widest_of(&close));
    loop {
        distance *= 2.0;
        let wider = pairs(distance);
        if widest_of(&wider) <= widest {
            return Some(value);
        }
        let finer = scanned(&wider, value, 0.3 / widest, STEP / widest_of(&wider))?;
        if cosine(&wider, finer) < least {
            return Some(value);
        }
        (value, widest) = (finer, widest_of(&wider));
    }
}

fn widest_of(pairs: &[Pair]) -> f64 {
    pairs
        .iter()
        .map(|pair| pair.times.abs())
        .fold(1.0, f64::max)
}

/// The angle around one with the highest mean cosine.
fn scanned(pairs: &[Pair], around: f64, width: f64, step: f64) -> Option<f64> {
    if pairs.len() < FEWEST_PAIRS {
        return None;
    }
    let best = |around: f64, width: f64, step: f64| {
        let steps = (2.0 * width / step).ceil() as usize;
        let tried = (0..=steps).map(|at| around - width + at as f64 * step);
        let scored = tried.map(|angle| (angle, cosine(pairs, angle)));
        scored
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(around, |best| best.0)
    };
    let coarse = best(around, width, step);
    Some(best(coarse, step, step / 20.0))
}

fn cosine(pairs: &[Pair], angle: f64) -> f64 {
    let sum: f64 = pairs
        .iter()
        .map(|pair| (TAU * (pair.turned - pair.times * angle).fract()).cos())
        .sum();
    sum / pairs.len().max(1) as f64
}

/// The mean direction of angles, and how much they agree; nothing of none.
pub(crate) fn mean_direction(turns: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (mut sines, mut cosines, mut count) = (0.0, 0.0, 0usize);
    for turn in turns {
        let (sine, cosine) = (TAU * turn.fract()).sin_cos();
        (sines, cosines, count) = (sines + sine, cosines + cosine, count + 1);
    }
    let r = f64::hypot(sines, cosines) / count as f64;
    (count > 0).then(|| ((f64::atan2(sines, cosines) / TAU).rem_euclid(1.0), r))
}
