//! Identification of a drive from its trace alone, without a parameter file.
//!
//! A read that misses the buffer ends when its sectors have passed the head. Many such reads reveal
//! the rotation period (`period`, `clock`), the track length by zone (`lines`, `zones`,
//! `tracks`), the speed of the link (`crossing`) and the actuator's times (`arm`). Properties
//! that the trace does not show are absent, and every number has a confidence interval.

mod arm;
mod clock;
mod crossing;
pub mod entry;
mod lines;
mod observed;
mod period;
mod tracks;
mod zones;

use crate::parameter::Parameter;
pub use arm::Arrival;
use arm::SeekReach;
use clock::Clock;
use crossing::Crossing;
use diskperf_diskspecs::phase::Think;
use diskperf_diskspecs::trace::Request;
use lines::Point;
use observed::Observation;
use tracks::PairSkews;
use zones::Zone;

/// Properties of a drive that its trace shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Alone {
    /// Position of the pauses in the trace: before or after their requests.
    pub think: Think,
    /// Number of requests in the trace.
    pub requests: usize,
    /// Number of reads of the trace that waited for the platter.
    pub media_reads: usize,
    /// Indices of requests before which time is missing, because lines of the trace were dropped.
    pub jumps: Vec<usize>,
    /// Rotation period, in microseconds.
    pub period_us: Parameter,
    /// Transfer time of a sector over the link, in microseconds; absent if the platter is slower
    /// than the link.
    pub crossing_us: Option<Parameter>,
    /// Skew between adjacent tracks, in revolutions.
    pub track_skew: Option<Parameter>,
    /// Zones in ascending order of sectors; empty if too few pairs of requests reveal the tracks.
    pub zones: Vec<AloneZone>,
    /// Time to reach the first sector, by seek distance.
    pub arrivals: Vec<Arrival>,
    /// Service time of writes without data transfer, in microseconds, if a write-back cache accepts
    /// them.
    pub early_write_us: Option<Parameter>,
    /// Share of reads that completed too early to have come from the platter.
    pub read_hit_share: f64,
    /// Service time of reads from the buffer, in microseconds; absent if there are none.
    pub read_hit_us: Option<Parameter>,
}

/// Recording zone that a trace reveals.
#[derive(Clone, Debug, PartialEq)]
pub struct AloneZone {
    /// First sector of the zone.
    pub first_block: Parameter,
    /// Sectors per track in the zone.
    pub sectors_per_track: Parameter,
    /// Sectors per track of the modelled zone, a whole number.
    pub modelled_sectors: u32,
    /// Mean skew of all tracks in revolutions, given the modelled number of sectors per track.
    pub modelled_skew: f64,
    /// Sector at which a modelled track of the zone starts.
    pub begin_block: i64,
    /// Angle at which that track starts, in revolutions.
    pub begin_angle: f64,
    /// Number of reads that reveal the zone.
    pub reads: usize,
    /// Agreement of the angles with the zone's line: length of the mean residual vector, 1 if all
    /// agree.
    pub r: f64,
}

/// Minimum power of the windows, relative to chance, for a rotation period to be accepted. Traces
/// without rotational phase stay far below it.
const POWER_MIN: f64 = 45.0;
/// Power at which the search stops trying candidates.
const POWER_SUFFICIENT: f64 = 70.0;
const PERIOD_CANDIDATES: usize = 6;
/// Drift of a spindle's angle over minutes, in microseconds; real drives drift by hundreds.
const CLOCK_WANDER_US: f64 = 500.0;

/// Identifies a drive from its trace; returns `None` if the trace does not reveal the platter.
pub fn identify(requests: &[Request]) -> Option<Alone> {
    let (think, clock) = find_clock(requests)?;
    let observations = observed::observe(requests, think);
    let mut reads = period::media_reads(&observations, clock.rate);
    reads.retain(|one| !one.is_write);
    let plain = crossing::points(&reads, &clock, &Crossing::MEDIA);
    let of_plain = zones::zones(&plain);
    let crossing = crossing::find(&reads, &clock, &of_plain);
    let skews_of_plain = tracks::skew_of_pairs(&plain, &of_plain);
    let (points, zones, mut skews) = match crossing.sector_us {
        None => (plain, of_plain, skews_of_plain),
        Some(_) => {
            let points = crossing::points(&reads, &clock, &crossing);
            let zones = zones::zones(&points);
            let skews = tracks::skew_of_pairs(&points, &zones);
            (points, zones, skews)
        }
    };
    // Which moment of a request shows is itself uncertain.
    if let (Some(skews), Some(other)) = (&mut skews, skews_of_plain) {
        skews.mean_interval += (skews.mean - other.mean).abs();
        skews.track_interval += (skews.track - other.track).abs();
    }
    let zones = skews.map_or(Vec::new(), |skews| describe_zones(&points, &zones, &skews));
    Some(assemble(
        requests,
        think,
        &clock,
        &crossing,
        (zones, skews),
        &observations,
        &reads,
    ))
}

/// Finds the clock with the best agreement, if it is better than chance.
fn find_clock(requests: &[Request]) -> Option<(Think, Clock)> {
    let observed =
        [Think::Before, Think::After].map(|think| (think, observed::observe(requests, think)));
    let mut found: Vec<_> = observed
        .iter()
        .flat_map(|(think, all)| {
            period::coarse_rates(all)
                .into_iter()
                .map(move |one| (*think, all, one))
        })
        .collect();
    found.sort_by(|a, b| b.2.score.total_cmp(&a.2.score));
    let mut best: Option<(f64, Think, Clock)> = None;
    for (think, all, coarse) in found.into_iter().take(PERIOD_CANDIDATES) {
        let mut reads = period::media_reads(all, coarse.rate);
        reads.retain(|one| !one.is_write);
        let Some(clock) = clock::find(&reads, requests.len(), coarse.rate) else {
            continue;
        };
        let power = clock.power - clock.chance;
        if best.as_ref().is_none_or(|(other, ..)| power > *other) {
            best = Some((power, think, clock));
        }
        if power > POWER_SUFFICIENT {
            break;
        }
    }
    let (power, think, clock) = best?;
    (power > POWER_MIN).then_some((think, clock))
}

fn parameter_within(name: &str, value: f64, half: f64) -> Parameter {
    Parameter::within(name, value, (value - half, value + half))
}

fn describe_zones(points: &[Point], zones: &[Zone], skews: &PairSkews) -> Vec<AloneZone> {
    let describe = |(number, zone): (usize, &Zone)| {
        let part = &points[zone.points.clone()];
        let sectors = (1.0 + skews.mean) / zone.line.rate;
        let whole = sectors.round().max(1.0);
        let begin = tracks::find_track_begin(part, &zone.line, whole);
        // The boundary is between the last sector of one zone and the first of the next.
        let before = number
            .checked_sub(1)
            .map_or(0.0, |last| points[zones[last].points.end - 1].sector);
        let first = part[0].sector;
        let (value, half) = match number {
            0 => (0.0, 0.0),
            _ => ((before + first) / 2.0, (first - before) / 2.0 + sectors),
        };
        AloneZone {
            first_block: parameter_within("zone.first_block", value.round(), half),
            sectors_per_track: parameter_within(
                "zone.sectors_per_track",
                sectors,
                skews.mean_interval / zone.line.rate,
            ),
            modelled_sectors: whole as u32,
            modelled_skew: zone.line.rate * whole - 1.0,
            begin_block: begin.sector.round() as i64,
            begin_angle: begin.angle + (begin.sector.round() - begin.sector) / whole,
            reads: part.len(),
            r: zone.line.r,
        }
    };
    zones.iter().enumerate().map(describe).collect()
}

fn assemble(
    requests: &[Request],
    think: Think,
    clock: &Clock,
    crossing: &Crossing,
    (zones, skews): (Vec<AloneZone>, Option<PairSkews>),
    observations: &[Observation],
    reads: &[Observation],
) -> Alone {
    let period_us = 1.0 / clock.rate;
    let stretch_us = clock.longest_stretch_us(observations);
    let relative = 2.0 * clock.rate_error / clock.rate + CLOCK_WANDER_US / stretch_us;
    let sector_us = |one: &Observation| match crossing.sector_us {
        Some(us) => us,
        None => period_us / sectors_at(&zones, one.first),
    };
    let reach = |one: &Observation| {
        let before = one.index.checked_sub(1).map(|index| &observations[index])?;
        let tracks = (tracks_before(&zones, one.first) - tracks_before(&zones, before.end())).abs();
        let time_us = one.service_us - one.blocks * sector_us(one);
        Some(SeekReach { tracks, time_us })
    };
    let reaches: Vec<SeekReach> = reads.iter().filter_map(reach).collect();
    let fast = |is_write: bool| {
        let of_kind = observations
            .iter()
            .filter(move |one| one.is_write == is_write);
        let all = of_kind.clone().count().max(1);
        let mut times: Vec<f64> = of_kind
            .map(|one| one.service_us - one.blocks * sector_us(one))
            .filter(|us| *us < 0.35 * period_us)
            .collect();
        times.sort_by(f64::total_cmp);
        (times.len() as f64 / all as f64, times)
    };
    let middle = |name: &str, times: &[f64]| {
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        (times.len() >= 30).then(|| Parameter::within(name, at(0.5), (at(0.1), at(0.9))))
    };
    let ((write_share, writes), (read_hit_share, hits)) = (fast(true), fast(false));
    Alone {
        think,
        requests: requests.len(),
        media_reads: reads.len(),
        jumps: clock
            .stretches
            .iter()
            .skip(1)
            .map(|(index, _)| *index)
            .collect(),
        period_us: parameter_within("period_us", period_us, period_us * relative),
        crossing_us: crossing
            .sector_us
            .map(|us| parameter_within("crossing_us", us, 2.0 * crossing.interval_us)),
        track_skew: skews
            .map(|skews| parameter_within("track_skew_rev", skews.track, skews.track_interval)),
        arrivals: if zones.is_empty() {
            Vec::new()
        } else {
            arm::arrivals(reaches, period_us)
        },
        zones,
        early_write_us: if write_share > 0.5 {
            middle("early_write_us", &writes)
        } else {
            None
        },
        read_hit_share,
        read_hit_us: middle("read_hit_us", &hits),
    }
}

fn sectors_at(zones: &[AloneZone], block: f64) -> f64 {
    let zone = zones
        .iter()
        .rev()
        .find(|zone| zone.first_block.value <= block);
    zone.or(zones.first())
        .map_or(f64::INFINITY, |zone| f64::from(zone.modelled_sectors))
}

/// Returns the number of tracks between the first sector and a block.
fn tracks_before(zones: &[AloneZone], block: f64) -> f64 {
    let ends = zones
        .iter()
        .skip(1)
        .map(|zone| zone.first_block.value)
        .chain([f64::INFINITY]);
    let tracks = |(zone, end): (&AloneZone, f64)| {
        let inside = (block.min(end) - zone.first_block.value).max(0.0);
        inside / f64::from(zone.modelled_sectors)
    };
    zones.iter().zip(ends).map(tracks).sum()
}
