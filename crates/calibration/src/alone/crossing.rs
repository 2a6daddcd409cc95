//! Time at which a sector becomes visible in a trace. If the link to the host is slower than the
//! platter, a read ends one link transfer after its first sector has passed the head. If the link
//! is faster, the read ends when the last sector has passed.

use super::clock::Clock;
use super::lines::{Point, mean_direction};
use super::observed::Observation;
use super::zones::Zone;

/// Longest transfer time of a sector over the link in the search, in microseconds.
const CROSSING_US_MAX: f64 = 300.0;
const CROSSING_STEP_US: f64 = 2.0;

/// Transfer time of a sector over the link, in microseconds, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Crossing {
    /// Transfer time of a sector in microseconds; absent if the platter limits the transfer rate.
    pub(super) sector_us: Option<f64>,
    /// Half width of the 95 % interval, in microseconds.
    pub(super) interval_us: f64,
}

impl Crossing {
    pub(super) const MEDIA: Self = Self {
        sector_us: None,
        interval_us: 0.0,
    };

    /// Returns the sector of a request and the angle at which it passed the head.
    pub(super) fn point(&self, one: &Observation, clock: &Clock) -> Point {
        let angle = clock.angle(one);
        match self.sector_us {
            None => Point {
                sector: one.end(),
                angle,
            },
            Some(us) => Point {
                sector: one.first,
                angle: angle - clock.rate * one.blocks * us,
            },
        }
    }
}

/// Returns the points of all requests in ascending order of sectors, each with its request.
pub(super) fn points(media: &[Observation], clock: &Clock, crossing: &Crossing) -> Vec<Point> {
    let mut points: Vec<Point> = media.iter().map(|one| crossing.point(one, clock)).collect();
    points.sort_by(|a, b| a.sector.total_cmp(&b.sector));
    points
}

/// Finds the link transfer time for which the angles of all zones agree best. `media_reads` and the
/// points of the zones are in the same order.
pub(super) fn find(media: &[Observation], clock: &Clock, zones: &[Zone]) -> Crossing {
    let mut sorted = media.to_vec();
    sorted.sort_by(|a, b| a.end().total_cmp(&b.end()));
    let score = |crossing: &Crossing| -> f64 {
        let zone = |zone: &Zone| {
            let of_zone = &sorted[zone.points.clone()];
            let left = of_zone.iter().map(|one| {
                let point = crossing.point(one, clock);
                point.angle - zone.line.rate * point.sector
            });
            let (r, _) = mean_direction(left);
            -(of_zone.len() as f64) * libm::log((1.0 - r * r).max(0.01))
        };
        zones.iter().map(zone).sum()
    };
    let of = |us: f64| Crossing {
        sector_us: Some(us),
        interval_us: 0.0,
    };
    let steps = (CROSSING_US_MAX / CROSSING_STEP_US) as usize;
    let tried: Vec<(f64, f64)> = (0..=steps)
        .map(|n| CROSSING_STEP_US * n as f64)
        .map(|us| (score(&of(us)), us))
        .collect();
    let Some((top, us)) = tried.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return Crossing::MEDIA;
    };
    // The platter's pace differs from zone to zone, and is no number of its own.
    if top < score(&Crossing::MEDIA) + 6.0 {
        return Crossing::MEDIA;
    }
    let near = tried.iter().filter(|(score, _)| top - score < 3.0);
    let spread = near
        .map(|(_, other)| (other - us).abs())
        .fold(CROSSING_STEP_US, f64::max);
    Crossing {
        sector_us: Some(us),
        interval_us: spread,
    }
}
