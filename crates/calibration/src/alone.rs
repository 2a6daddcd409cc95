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

use crate::parameter::FittedParameter;
pub use arm::IdentifiedSeekArrival;
use arm::SeekSample;
use clock::SpindleRotation;
use crossing::LinkTransfer;
use diskperf_diskspecs::phase::ThinkPosition;
use diskperf_diskspecs::trace::ValidationRequest;
use lines::SectorAngle;
use observed::ObservedRequest;
use tracks::EstimatedSkews;
use zones::ZoneFit;

/// Properties of a drive that its trace shows.
#[derive(Clone, Debug, PartialEq)]
pub struct IdentifiedDrive {
    /// Position of the pauses in the trace: before or after their requests.
    pub think_position: ThinkPosition,
    /// Number of requests in the trace.
    pub request_count: usize,
    /// Number of reads of the trace that waited for the platter.
    pub media_read_count: usize,
    /// Indices of requests before which time is missing, because lines of the trace were dropped.
    pub trace_gaps: Vec<usize>,
    /// Rotation period, in microseconds.
    pub period_us: FittedParameter,
    /// Transfer time of a sector over the link, in microseconds; absent if the platter is slower
    /// than the link.
    pub link_sector_us: Option<FittedParameter>,
    /// Skew between adjacent tracks, in revolutions.
    pub track_skew: Option<FittedParameter>,
    /// Zones in ascending order of sectors; empty if too few pairs of requests reveal the tracks.
    pub zones: Vec<IdentifiedZone>,
    /// Time to reach the first sector, by seek distance.
    pub seek_arrivals: Vec<IdentifiedSeekArrival>,
    /// Service time of writes without data transfer, in microseconds, if a write-back cache accepts
    /// them.
    pub early_write_us: Option<FittedParameter>,
    /// Share of reads that completed too early to have come from the platter.
    pub read_hit_share: f64,
    /// Service time of reads from the buffer, in microseconds; absent if there are none.
    pub read_hit_us: Option<FittedParameter>,
}

/// Recording zone that a trace reveals.
#[derive(Clone, Debug, PartialEq)]
pub struct IdentifiedZone {
    /// First sector of the zone.
    pub first_block: FittedParameter,
    /// Sectors per track in the zone.
    pub sectors_per_track: FittedParameter,
    /// Sectors per track of the modelled zone, a whole number.
    pub modelled_sectors_per_track: u32,
    /// Mean skew of all tracks in revolutions, given the modelled number of sectors per track.
    pub modelled_skew_mean: f64,
    /// Sector at which a modelled track of the zone starts.
    pub track_start_block: i64,
    /// Angle at which that track starts, in revolutions.
    pub track_start_angle: f64,
    /// Number of reads that reveal the zone.
    pub read_count: usize,
    /// Agreement of the angles with the zone's line: length of the mean residual vector, 1 if all
    /// agree.
    pub agreement: f64,
}

/// Minimum power of the windows, relative to chance, for a rotation period to be accepted. Traces
/// without rotational phase stay far below it.
const ACCEPTED_POWER_MIN: f64 = 45.0;
/// Power at which the search stops trying candidates.
const SUFFICIENT_POWER: f64 = 70.0;
const PERIOD_CANDIDATES_MAX: usize = 6;
/// Drift of a spindle's angle over minutes, in microseconds; real drives drift by hundreds.
const SPINDLE_DRIFT_US: f64 = 500.0;

/// Identifies a drive from its trace; returns `None` if the trace does not reveal the platter.
pub fn identify_drive(requests: &[ValidationRequest]) -> Option<IdentifiedDrive> {
    let (think, clock) = find_spindle_rotation(requests)?;
    let observations = observed::observe_requests(requests, think);
    let mut reads = period::select_media_reads(&observations, clock.revolutions_per_us);
    reads.retain(|one| !one.is_write);
    let view = |crossing: &LinkTransfer| {
        let points = crossing::sector_angles(&reads, &clock, crossing);
        let zones = zones::find_zones(&points);
        let skews = tracks::estimate_skews(&points, &zones);
        (points, zones, skews)
    };
    let plain = view(&LinkTransfer::MEDIA_LIMITED);
    let mut crossing = crossing::find_link_transfer(&reads, &clock, &plain.1);
    let skews_of_plain = plain.2;
    let (points, zones, mut skews) = match crossing.sector_transfer_us {
        None => plain,
        Some(_) => {
            let (_, zones, skews) = view(&crossing);
            if let Some(skews) = skews {
                crossing.exclude_track_ends(&clock, &zones, &skews);
            }
            view(&crossing)
        }
    };
    // Which moment of a request shows is itself uncertain.
    if let (Some(skews), Some(other)) = (&mut skews, skews_of_plain) {
        skews.skew_mean_interval += (skews.skew_mean - other.skew_mean).abs();
        skews.track_skew_interval += (skews.track_skew - other.track_skew).abs();
    }
    let zones = skews.map_or(Vec::new(), |skews| describe_zones(&points, &zones, &skews));
    Some(assemble_drive(
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
fn find_spindle_rotation(
    requests: &[ValidationRequest],
) -> Option<(ThinkPosition, SpindleRotation)> {
    let observed = [ThinkPosition::BeforeRequest, ThinkPosition::AfterRequest]
        .map(|think| (think, observed::observe_requests(requests, think)));
    let mut found: Vec<_> = observed
        .iter()
        .flat_map(|(think, all)| {
            period::find_rate_candidates(all)
                .into_iter()
                .map(move |one| (*think, all, one))
        })
        .collect();
    found.sort_by(|a, b| b.2.score.total_cmp(&a.2.score));
    let mut best: Option<(f64, ThinkPosition, SpindleRotation)> = None;
    for (think, all, coarse) in found.into_iter().take(PERIOD_CANDIDATES_MAX) {
        let mut reads = period::select_media_reads(all, coarse.revolutions_per_us);
        reads.retain(|one| !one.is_write);
        let Some(clock) = clock::find_rotation(&reads, requests.len(), coarse.revolutions_per_us)
        else {
            continue;
        };
        let power = clock.window_power - clock.chance_power;
        if best.as_ref().is_none_or(|(other, ..)| power > *other) {
            best = Some((power, think, clock));
        }
        if power > SUFFICIENT_POWER {
            break;
        }
    }
    let (power, think, clock) = best?;
    (power > ACCEPTED_POWER_MIN).then_some((think, clock))
}

fn parameter_with_half_width(name: &str, value: f64, half: f64) -> FittedParameter {
    FittedParameter::with_interval(name, value, (value - half, value + half))
}

fn describe_zones(
    points: &[SectorAngle],
    zones: &[ZoneFit],
    skews: &EstimatedSkews,
) -> Vec<IdentifiedZone> {
    let describe = |(number, zone): (usize, &ZoneFit)| {
        let part = &points[zone.point_range.clone()];
        let sectors = (1.0 + skews.skew_mean) / zone.track_line.revolutions_per_sector;
        let whole = sectors.round().max(1.0);
        let begin = tracks::find_track_start(part, &zone.track_line, whole);
        // The boundary is between the last sector of one zone and the first of the next.
        let before = number
            .checked_sub(1)
            .map_or(0.0, |last| points[zones[last].point_range.end - 1].sector);
        let first = part[0].sector;
        let (value, half) = match number {
            0 => (0.0, 0.0),
            _ => ((before + first) / 2.0, (first - before) / 2.0 + sectors),
        };
        IdentifiedZone {
            first_block: parameter_with_half_width("zone.first_block", value.round(), half),
            sectors_per_track: parameter_with_half_width(
                "zone.sectors_per_track",
                sectors,
                skews.skew_mean_interval / zone.track_line.revolutions_per_sector,
            ),
            modelled_sectors_per_track: whole as u32,
            modelled_skew_mean: zone.track_line.revolutions_per_sector * whole - 1.0,
            track_start_block: begin.sector.round() as i64,
            track_start_angle: begin.angle + (begin.sector.round() - begin.sector) / whole,
            read_count: part.len(),
            agreement: zone.track_line.agreement,
        }
    };
    zones.iter().enumerate().map(describe).collect()
}

fn assemble_drive(
    requests: &[ValidationRequest],
    think: ThinkPosition,
    clock: &SpindleRotation,
    crossing: &LinkTransfer,
    (zones, skews): (Vec<IdentifiedZone>, Option<EstimatedSkews>),
    observations: &[ObservedRequest],
    reads: &[ObservedRequest],
) -> IdentifiedDrive {
    let period_us = 1.0 / clock.revolutions_per_us;
    let stretch_us = clock.longest_segment_us(observations);
    let relative =
        2.0 * clock.rate_standard_error / clock.revolutions_per_us + SPINDLE_DRIFT_US / stretch_us;
    let sector_us = |one: &ObservedRequest| match crossing.sector_transfer_us {
        Some(us) => us,
        None => period_us / sectors_per_track_at(&zones, one.first_sector),
    };
    let reach = |one: &ObservedRequest| {
        let before = one
            .request_index
            .checked_sub(1)
            .map(|index| &observations[index])?;
        let tracks = (tracks_before(&zones, one.first_sector)
            - tracks_before(&zones, before.end_sector()))
        .abs();
        let time_us = one.service_us - one.sector_count * sector_us(one);
        Some(SeekSample {
            track_distance: tracks,
            arrival_us: time_us,
        })
    };
    let reaches: Vec<SeekSample> = reads.iter().filter_map(reach).collect();
    let fast = |is_write: bool| {
        let of_kind = observations
            .iter()
            .filter(move |one| one.is_write == is_write);
        let all = of_kind.clone().count().max(1);
        let mut times: Vec<f64> = of_kind
            .map(|one| one.service_us - one.sector_count * sector_us(one))
            .filter(|us| *us < 0.35 * period_us)
            .collect();
        times.sort_by(f64::total_cmp);
        (times.len() as f64 / all as f64, times)
    };
    let middle = |name: &str, times: &[f64]| {
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        (times.len() >= 30)
            .then(|| FittedParameter::with_interval(name, at(0.5), (at(0.1), at(0.9))))
    };
    let ((write_share, writes), (read_hit_share, hits)) = (fast(true), fast(false));
    IdentifiedDrive {
        think_position: think,
        request_count: requests.len(),
        media_read_count: reads.len(),
        trace_gaps: clock
            .phase_segments
            .iter()
            .skip(1)
            .map(|(index, _)| *index)
            .collect(),
        period_us: parameter_with_half_width("period_us", period_us, period_us * relative),
        link_sector_us: crossing.sector_transfer_us.map(|us| {
            parameter_with_half_width("crossing_us", us, 2.0 * crossing.confidence_interval_us)
        }),
        track_skew: skews.map(|skews| {
            parameter_with_half_width(
                "track_skew_rev",
                skews.track_skew,
                skews.track_skew_interval,
            )
        }),
        seek_arrivals: if zones.is_empty() {
            Vec::new()
        } else {
            arm::fit_seek_arrivals(reaches, period_us)
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

fn sectors_per_track_at(zones: &[IdentifiedZone], block: f64) -> f64 {
    let zone = zones
        .iter()
        .rev()
        .find(|zone| zone.first_block.value <= block);
    zone.or(zones.first()).map_or(f64::INFINITY, |zone| {
        f64::from(zone.modelled_sectors_per_track)
    })
}

/// Returns the number of tracks between the first sector and a block.
fn tracks_before(zones: &[IdentifiedZone], block: f64) -> f64 {
    let ends = zones
        .iter()
        .skip(1)
        .map(|zone| zone.first_block.value)
        .chain([f64::INFINITY]);
    let tracks = |(zone, end): (&IdentifiedZone, f64)| {
        let inside = (block.min(end) - zone.first_block.value).max(0.0);
        inside / f64::from(zone.modelled_sectors_per_track)
    };
    zones.iter().zip(ends).map(tracks).sum()
}
