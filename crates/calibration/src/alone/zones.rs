//! Recording zones: runs of neighbouring sectors whose angles lie on one line.

use super::lines::{SectorAngle, TrackLine, refine_line, strongest_line};
use super::period::TRACK_DENSITIES;
use std::f64::consts::TAU;

/// Recording zone: neighbouring sectors whose angles lie on one line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ZoneFit {
    /// Indices of the zone's points, in ascending order of sectors.
    pub(super) point_range: std::ops::Range<usize>,
    pub(super) track_line: TrackLine,
}

/// Window sizes in requests, largest first. The line of each window is a candidate for a zone.
const WINDOW_POINTS: [usize; 3] = [96, 48, 24];
/// Minimum evidence of a line beyond what chance yields for the number of rates tried.
const POINT_EVIDENCE_MAX: f64 = 4.0;
/// Expected share of request angles that follow no zone's line. Missed revolutions do not matter
/// here, but wrongly classified requests do.
const OUTLIER_SHARE: f64 = 0.1;
/// Logarithm of the odds against a zone boundary between two points.
const ZONE_CHANGE_COST: f64 = 10.0;
const ZONE_POINTS_MIN: usize = 12;

/// Divides points in ascending order of sectors into zones, each with its own line.
pub(super) fn find_zones(points: &[SectorAngle]) -> Vec<ZoneFit> {
    let mut lines = candidate_lines(points);
    let mut found = Vec::new();
    for _ in 0..3 {
        if lines.is_empty() {
            return found;
        }
        found = divide_into_zones(points, &lines);
        lines = found.iter().map(|one| fit_line(points, one)).collect();
    }
    for (one, line) in found.iter_mut().zip(lines) {
        one.track_line = line;
    }
    found.retain(|one| one.point_range.len() >= ZONE_POINTS_MIN);
    merge_zones(points, enforce_longer_outer_tracks(found))
}

/// Relative difference in angle per sector below which adjacent zones count as having equally long
/// tracks.
const MERGE_GAIN_MAX: f64 = 0.002;

/// Selects the zones with the most evidence whose tracks do not get longer inward. Other lines
/// belong to cylinders and lie beside those of tracks.
fn enforce_longer_outer_tracks(zones: Vec<ZoneFit>) -> Vec<ZoneFit> {
    let weight = |zone: &ZoneFit| {
        zone.point_range.len() as f64 * zone.track_line.agreement * zone.track_line.agreement
    };
    let mut best: Vec<(f64, Option<usize>)> = Vec::with_capacity(zones.len());
    for (number, zone) in zones.iter().enumerate() {
        let before = (0..number)
            .filter(|other| {
                zones[*other].track_line.revolutions_per_sector
                    <= zone.track_line.revolutions_per_sector * (1.0 + MERGE_GAIN_MAX)
            })
            .max_by(|a, b| best[*a].0.total_cmp(&best[*b].0));
        let sum = before.map_or(0.0, |other| best[other].0);
        best.push((sum + weight(zone), before));
    }
    let mut at = (0..zones.len()).max_by(|a, b| best[*a].0.total_cmp(&best[*b].0));
    let mut kept = vec![false; zones.len()];
    while let Some(number) = at {
        kept[number] = true;
        at = best[number].1;
    }
    zones
        .into_iter()
        .zip(kept)
        .filter_map(|(zone, is_kept)| is_kept.then_some(zone))
        .collect()
}

fn merge_zones(points: &[SectorAngle], zones: Vec<ZoneFit>) -> Vec<ZoneFit> {
    let fits = |zone: &ZoneFit| {
        let r = zone.track_line.agreement;
        -(zone.point_range.len() as f64) * libm::log((1.0 - r * r).max(0.01))
    };
    let mut all: Vec<ZoneFit> = Vec::new();
    for zone in zones {
        let joined = all.last().map(|last| {
            let range = last.point_range.start..zone.point_range.end;
            let larger = if last.point_range.len() > zone.point_range.len() {
                last
            } else {
                &zone
            };
            let part = &points[range.clone()];
            let line = refine_line(
                part,
                larger.track_line.revolutions_per_sector,
                0.3 / sector_span(part),
            );
            ZoneFit {
                point_range: range,
                track_line: line,
            }
        });
        match (joined, all.last_mut()) {
            (Some(joined), Some(last))
                if fits(&joined) > fits(last) + fits(&zone) - ZONE_CHANGE_COST =>
            {
                *last = joined;
            }
            _ => all.push(zone),
        }
    }
    all
}

fn fit_line(points: &[SectorAngle], of: &ZoneFit) -> TrackLine {
    let points = &points[of.point_range.clone()];
    refine_line(
        points,
        of.track_line.revolutions_per_sector,
        0.5 / sector_span(points),
    )
}

fn sector_span(points: &[SectorAngle]) -> f64 {
    (points[points.len() - 1].sector - points[0].sector).max(1.0)
}

/// Returns the lines of windows that chance does not explain.
fn candidate_lines(points: &[SectorAngle]) -> Vec<TrackLine> {
    let mut lines: Vec<TrackLine> = Vec::new();
    for size in WINDOW_POINTS {
        for start in (0..points.len().saturating_sub(size / 2)).step_by(size / 2) {
            let window = &points[start..(start + size).min(points.len())];
            let whole = 0..window.len();
            let found = strongest_line(window, std::slice::from_ref(&whole), TRACK_DENSITIES);
            if found.power - libm::log(found.trial_count.max(1.0)) > POINT_EVIDENCE_MAX {
                lines.push(refine_line(
                    window,
                    found.revolutions_per_sector,
                    0.3 / sector_span(window),
                ));
            }
        }
    }
    lines
}

/// Assigns a line to each point by the most likely sequence of lines.
fn divide_into_zones(points: &[SectorAngle], lines: &[TrackLine]) -> Vec<ZoneFit> {
    let none = lines.len();
    let mut scores = vec![0.0; none + 1];
    let mut came_from: Vec<Vec<u32>> = Vec::with_capacity(points.len());
    for point in points {
        let (best, top) =
            scores
                .iter()
                .enumerate()
                .fold((none, f64::MIN), |best, (line, score)| {
                    match *score > best.1 {
                        true => (line, *score),
                        false => best,
                    }
                });
        let mut from = Vec::with_capacity(none + 1);
        for (number, score) in scores.iter_mut().enumerate() {
            let stays = *score >= top - ZONE_CHANGE_COST;
            from.push(if stays { number } else { best } as u32);
            let before = if stays {
                *score
            } else {
                top - ZONE_CHANGE_COST
            };
            *score = before
                + lines
                    .get(number)
                    .map_or(0.0, |line| point_evidence(line, point));
        }
        came_from.push(from);
    }
    let last = (0..=none)
        .max_by(|a, b| scores[*a].total_cmp(&scores[*b]))
        .unwrap_or(none);
    let mut of_points = vec![last; points.len()];
    for number in (1..points.len()).rev() {
        of_points[number - 1] = came_from[number][of_points[number]] as usize;
    }
    let mut found: Vec<ZoneFit> = Vec::new();
    let mut start = 0;
    for number in 1..=points.len() {
        if number == points.len() || of_points[number] != of_points[start] {
            if let Some(line) = lines.get(of_points[start]) {
                found.push(ZoneFit {
                    point_range: start..number,
                    track_line: *line,
                });
            }
            start = number;
        }
    }
    found
}

/// Returns the log likelihood ratio of an angle on the line against a random angle.
fn point_evidence(line: &TrackLine, point: &SectorAngle) -> f64 {
    let spread = line.agreement.clamp(0.3, 0.97);
    // Concentration of von Mises' distribution of this mean length.
    let concentration = spread * (2.0 - spread * spread) / (1.0 - spread * spread);
    let cos = libm::cos(TAU * line.residual(point));
    let peak = libm::exp(concentration * cos) / bessel_i0(concentration);
    libm::log((1.0 - OUTLIER_SHARE) * peak + OUTLIER_SHARE)
}

fn bessel_i0(x: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 1..60 {
        term *= (x / 2.0 / f64::from(k)) * (x / 2.0 / f64::from(k));
        sum += term;
        if term < 1e-12 * sum {
            break;
        }
    }
    sum
}
