//! Track length in each zone, and the skew from one track to the next.
//!
//! The line of a zone advances by (1 + mean skew) / (sectors per track) with each sector. Within a
//! single track, angles advance more slowly, so pairs of requests for the same track separate the
//! two quantities. The skew is the same angle in all zones, so the pairs of all zones determine it
//! together.

use super::lines::{SectorAngle, TrackLine, mean_direction};
use super::zones::ZoneFit;
use std::f64::consts::TAU;

/// Range of skews that are tried, in revolutions.
const SKEW_RANGE: (f64, f64) = (-0.1, 0.5);
/// Largest distance of a request pair, in revolutions of the zone's line.
const PAIR_GAP_TURNS_MAX: f64 = 2.5;
/// Standard deviations of the residual angles of pairs that are tried, in revolutions.
const PAIR_WIDTHS: [f64; 4] = [0.01, 0.018, 0.03, 0.05];
const PAIRS_MIN: usize = 30;
/// Expected share of request pairs that lie neither on one track nor on adjacent tracks.
const PAIR_OUTLIER_SHARE: f64 = 0.15;
/// Decrease of the log likelihood at the ends of the interval. It is twice that of independent
/// pairs, because a request belongs to several pairs.
const PAIR_LIKELIHOOD_FALL: f64 = 4.0;

/// Additional margins of the skew intervals, in revolutions. On twelve synthetic drives the pairs
/// were off by about this much. A likely reason is the buffer, which answers parts of some
/// successive reads.
const MEAN_SKEW_SHIFT: f64 = 0.04;
const TRACK_SKEW_SHIFT: f64 = 0.03;

/// Track skews estimated from pairs of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EstimatedSkews {
    /// Mean skew of all tracks: (1 + skew) divided by the line's rate is the number of sectors per
    /// track.
    pub(super) skew_mean: f64,
    /// Half width of the 95 % interval of the mean skew.
    pub(super) skew_mean_interval: f64,
    /// Skew between adjacent tracks.
    pub(super) track_skew: f64,
    /// Half width of the 95 % interval of the track skew.
    pub(super) track_skew_interval: f64,
    pub(super) pair_count: usize,
}

/// Estimates the skews from pairs at most a few tracks apart. On one track the angles of a pair
/// differ by less than the zone's line predicts, whatever spare sectors are between tracks. Across
/// the end of a track they differ by the track skew more. The farther apart the tracks are, the
/// more exactly the whole numbers of tracks between pairs show the length of one.
pub(super) fn estimate_skews(points: &[SectorAngle], zones: &[ZoneFit]) -> Option<EstimatedSkews> {
    let pairs = track_crossing_pairs(points, zones);
    if pairs.len() < PAIRS_MIN {
        return None;
    }
    let grid = |low: f64, high: f64, step: f64| {
        (0..=((high - low) / step) as usize).map(move |number| low + step * number as f64)
    };
    let mut width = PAIR_WIDTHS[0];
    let mut best = (f64::MIN, 0.0, 0.0);
    for tried in PAIR_WIDTHS {
        for mean in grid(SKEW_RANGE.0, SKEW_RANGE.1, 0.01) {
            for track in grid(SKEW_RANGE.0, SKEW_RANGE.1, 0.02) {
                let found = skew_log_likelihood(&pairs, mean, track, tried);
                if found > best.0 {
                    (best, width) = ((found, mean, track), tried);
                }
            }
        }
    }
    let mut all = Vec::new();
    for mean in grid(best.1 - 0.05, best.1 + 0.05, 0.002) {
        for track in grid(best.2 - 0.04, best.2 + 0.04, 0.004) {
            all.push((skew_log_likelihood(&pairs, mean, track, width), mean, track));
        }
    }
    let (top, mean, track) = *all.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let near = || all.iter().filter(|one| top - one.0 < PAIR_LIKELIHOOD_FALL);
    Some(EstimatedSkews {
        skew_mean: mean,
        skew_mean_interval: MEAN_SKEW_SHIFT
            + near().map(|one| (one.1 - mean).abs()).fold(0.003, f64::max),
        track_skew: track,
        track_skew_interval: TRACK_SKEW_SHIFT
            + near()
                .map(|one| (one.2 - track).abs())
                .fold(0.004, f64::max),
        pair_count: pairs.len(),
    })
}

/// Returns the distances of pairs in revolutions of their zone's line, with the residuals from the
/// line.
fn track_crossing_pairs(points: &[SectorAngle], zones: &[ZoneFit]) -> Vec<(f64, f64)> {
    let mut pairs = Vec::new();
    for zone in zones {
        let points = &points[zone.point_range.clone()];
        for (number, one) in points.iter().enumerate() {
            for other in &points[number + 1..] {
                let turns = zone.track_line.revolutions_per_sector * (other.sector - one.sector);
                if turns > PAIR_GAP_TURNS_MAX {
                    break;
                }
                pairs.push((
                    turns,
                    zone.track_line.residual(other) - zone.track_line.residual(one),
                ));
            }
        }
    }
    pairs
}

/// Returns the log likelihood of pairs under three cases: as many ends of tracks between them as
/// their distance has whole tracks, one more, or a distance that has nothing to do with tracks.
fn skew_log_likelihood(pairs: &[(f64, f64)], mean: f64, track: f64, width: f64) -> f64 {
    let normal = |left: f64| {
        let scaled = super::lines::wrap_angle(left) / width;
        libm::exp(-0.5 * scaled * scaled) / (width * TAU.sqrt())
    };
    let pair = |(turns, residual): &(f64, f64)| {
        let left = residual + turns * mean / (1.0 + mean);
        let tracks = (turns / (1.0 + mean)).max(0.0);
        let (ends, crosses) = (tracks.floor(), tracks.fract());
        let left = left - ends * track;
        let either = (1.0 - crosses) * normal(left) + crosses * normal(left - track);
        libm::log((1.0 - PAIR_OUTLIER_SHARE) * either + PAIR_OUTLIER_SHARE)
    };
    pairs.iter().map(pair).sum()
}

const TRACK_START_STEPS: usize = 24;

/// Start of the tracks of a zone, if the zone has no gaps between tracks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TrackStart {
    /// First sector of a track of the zone.
    pub(super) sector: f64,
    /// Angle at which that sector starts, in revolutions.
    pub(super) angle: f64,
}

/// Finds the track start that agrees best with a zone's angles, given the number of sectors per
/// track.
pub(super) fn find_track_start(
    points: &[SectorAngle],
    line: &TrackLine,
    sectors: f64,
) -> TrackStart {
    let skew = line.revolutions_per_sector * sectors - 1.0;
    let first = points[0].sector;
    let at = |number: usize| {
        let sector = first - sectors * number as f64 / TRACK_START_STEPS as f64;
        let modelled = |point: &SectorAngle| {
            let tracks = (point.sector - sector) / sectors;
            tracks + skew * tracks.floor()
        };
        let (r, angle) = mean_direction(points.iter().map(|one| one.angle - modelled(one)));
        (r, TrackStart { sector, angle })
    };
    let none = (
        -1.0,
        TrackStart {
            sector: first,
            angle: 0.0,
        },
    );
    (0..TRACK_START_STEPS)
        .map(at)
        .fold(none, |best, one| if one.0 > best.0 { one } else { best })
        .1
}
