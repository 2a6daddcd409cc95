//! Time at which a sector becomes visible in a trace. If the link to the host is slower than the
//! platter, a read ends one link transfer after its first sector has passed the head. If the link
//! is faster, the read ends when the last sector has passed.

use super::clock::SpindleRotation;
use super::lines::{SectorAngle, mean_direction};
use super::observed::ObservedRequest;
use super::tracks::EstimatedSkews;
use super::zones::ZoneFit;

/// Longest transfer time of a sector over the link in the search, in microseconds.
const TRANSFER_US_MAX: f64 = 300.0;
const TRANSFER_STEP_US: f64 = 2.0;

/// Transfer time of a sector over the link, in microseconds, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LinkTransfer {
    /// Transfer time of a sector in microseconds; absent if the platter limits the transfer rate.
    pub(super) sector_transfer_us: Option<f64>,
    /// Half width of the 95 % interval, in microseconds.
    pub(super) confidence_interval_us: f64,
}

impl LinkTransfer {
    pub(super) const MEDIA_LIMITED: Self = Self {
        sector_transfer_us: None,
        confidence_interval_us: 0.0,
    };

    /// Subtracts the share of requests over the end of a track, which wait for the skew: each sector
    /// more makes a request more likely to be one of these.
    pub(super) fn exclude_track_ends(
        &mut self,
        clock: &SpindleRotation,
        zones: &[ZoneFit],
        skews: &EstimatedSkews,
    ) {
        let Some(sector_us) = &mut self.sector_transfer_us else {
            return;
        };
        let (mut sum, mut count) = (0.0, 0.0);
        for zone in zones {
            let points = zone.point_range.len() as f64;
            sum += points * zone.track_line.revolutions_per_sector;
            count += points;
        }
        let track_ends_per_sector = sum / f64::max(count, 1.0) / (1.0 + skews.skew_mean);
        let us_per_skew = track_ends_per_sector / clock.revolutions_per_us;
        *sector_us = (*sector_us - us_per_skew * skews.skew_mean).max(0.0);
        self.confidence_interval_us += us_per_skew * skews.skew_mean_interval;
    }

    /// Returns the sector of a request and the angle at which it passed the head.
    pub(super) fn sector_angle(
        &self,
        one: &ObservedRequest,
        clock: &SpindleRotation,
    ) -> SectorAngle {
        let angle = clock.completion_angle(one);
        match self.sector_transfer_us {
            None => SectorAngle {
                sector: one.end_sector(),
                angle,
            },
            Some(us) => SectorAngle {
                sector: one.first_sector,
                angle: angle - clock.revolutions_per_us * one.sector_count * us,
            },
        }
    }
}

/// Returns the points of all requests in ascending order of sectors, each with its request.
pub(super) fn sector_angles(
    media: &[ObservedRequest],
    clock: &SpindleRotation,
    crossing: &LinkTransfer,
) -> Vec<SectorAngle> {
    let mut points: Vec<SectorAngle> = media
        .iter()
        .map(|one| crossing.sector_angle(one, clock))
        .collect();
    points.sort_by(|a, b| a.sector.total_cmp(&b.sector));
    points
}

/// Finds the link transfer time for which the angles of all zones agree best. `media_reads` and the
/// points of the zones are in the same order.
pub(super) fn find_link_transfer(
    media: &[ObservedRequest],
    clock: &SpindleRotation,
    zones: &[ZoneFit],
) -> LinkTransfer {
    let mut sorted = media.to_vec();
    sorted.sort_by(|a, b| a.end_sector().total_cmp(&b.end_sector()));
    let score = |crossing: &LinkTransfer| -> f64 {
        let zone = |zone: &ZoneFit| {
            let of_zone = &sorted[zone.point_range.clone()];
            let left = of_zone.iter().map(|one| {
                let point = crossing.sector_angle(one, clock);
                point.angle - zone.track_line.revolutions_per_sector * point.sector
            });
            let (r, _) = mean_direction(left);
            -(of_zone.len() as f64) * libm::log((1.0 - r * r).max(0.01))
        };
        zones.iter().map(zone).sum()
    };
    let of = |us: f64| LinkTransfer {
        sector_transfer_us: Some(us),
        confidence_interval_us: 0.0,
    };
    let steps = (TRANSFER_US_MAX / TRANSFER_STEP_US) as usize;
    let tried: Vec<(f64, f64)> = (0..=steps)
        .map(|n| TRANSFER_STEP_US * n as f64)
        .map(|us| (score(&of(us)), us))
        .collect();
    let Some((top, us)) = tried.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return LinkTransfer::MEDIA_LIMITED;
    };
    // The platter's pace differs from zone to zone, and is no number of its own.
    if top < score(&LinkTransfer::MEDIA_LIMITED) + 6.0 {
        return LinkTransfer::MEDIA_LIMITED;
    }
    let near = tried.iter().filter(|(score, _)| top - score < 3.0);
    let spread = near
        .map(|(_, other)| (other - us).abs())
        .fold(TRANSFER_STEP_US, f64::max);
    LinkTransfer {
        sector_transfer_us: Some(us),
        confidence_interval_us: spread,
    }
}
