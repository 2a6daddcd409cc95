//! Rotation period of the spindle, found from completion times alone.
//!
//! Completions of two requests for neighbouring sectors differ by nearly whole revolutions, however
//! much time is between them. Pairs close in time reveal the period to a part in a thousand, at any
//! spindle speed. The lines of whole zones ([`super::lines`]) reveal it to parts in a million.

use super::observed::ObservedRequest;
use std::f64::consts::TAU;

/// Range of spindle speeds that are tried, in revolutions per microsecond: 2,900 to 16,000 per
/// minute.
const RATE_RANGE: (f64, f64) = (48e-6, 267e-6);
/// Maximum sector distances of a pair; the first that yields enough pairs is used.
const PAIR_SECTORS_MAX: [f64; 4] = [200.0, 400.0, 800.0, 1600.0];
const PAIRS_MAX: usize = 300;
/// Longest time between the requests of a pair in the first scan, in microseconds.
const PAIR_GAP_US_MAX: f64 = 1e6;
/// Rate step of the first scan, in revolutions per microsecond: a tenth of a revolution over the
/// longest gap.
const RATE_STEP: f64 = 1e-7;
/// Step of the revolutions per sector in the first scan, in revolutions over the largest sector
/// distance.
const TRACK_DENSITY_STEP: f64 = 0.16;
/// Largest number of revolutions per sector that the first scan tries.
const TRACK_DENSITY_MAX: f64 = 0.033;
/// Number of parts into which the drive is divided; each may have its own number of revolutions per
/// sector.
const TRACE_PARTS: usize = 6;
/// Share of a revolution above which a service time counts as a wait for the platter; this holds
/// for nearly all such requests.
const MEDIA_READ_SHARE_MIN: f64 = 0.45;
const RATE_CANDIDATES_MAX: usize = 6;
/// Range of track densities of all drives, in revolutions per sector.
pub(super) const TRACK_DENSITIES: (f64, f64) = (1.0 / 1500.0, 1.0 / 25.0);

/// Coarse rotation rate from pairs of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RateCandidate {
    /// Rotation rate of the spindle, in revolutions per microsecond.
    pub(super) revolutions_per_us: f64,
    /// Sum of the cosines of the residual angles, divided by the square root of the number of
    /// pairs.
    pub(super) score: f64,
    pub(super) pair_count: usize,
}

/// Time and sector distance between two requests.
#[derive(Clone, Copy, Debug)]
struct ReadPair {
    gap_us: f64,
    issue_gap_us: f64,
    sector_distance: f64,
    /// Shorter of the two service times, in microseconds.
    service_us: f64,
    trace_part: usize,
}

/// Returns the requests that waited for the platter, given its rotation rate.
pub(super) fn select_media_reads(
    observations: &[ObservedRequest],
    rate: f64,
) -> Vec<ObservedRequest> {
    let is_media = |one: &&ObservedRequest| one.service_us > MEDIA_READ_SHARE_MIN / rate;
    observations.iter().filter(is_media).copied().collect()
}

/// Returns the rates at which pairs close in time agree, best first.
pub(super) fn find_rate_candidates(observations: &[ObservedRequest]) -> Vec<RateCandidate> {
    let all = select_media_reads(observations, RATE_RANGE.1);
    let tried = PAIR_SECTORS_MAX
        .iter()
        .map(|sectors| (collect_read_pairs(&all, *sectors), *sectors));
    let mut tried = tried.skip_while(|(found, sectors)| {
        found.len() < PAIRS_MAX && *sectors < PAIR_SECTORS_MAX[PAIR_SECTORS_MAX.len() - 1]
    });
    let Some((mut pairs, sectors)) = tried.next() else {
        return Vec::new();
    };
    let density_step = TRACK_DENSITY_STEP / sectors;
    pairs.sort_by(|a, b| b.service_us.total_cmp(&a.service_us));
    let score = |rate: f64| {
        let used = pairs.partition_point(|pair| pair.service_us > MEDIA_READ_SHARE_MIN / rate);
        let root = (used.max(1) as f64).sqrt();
        let turns = sum_cosines(&pairs[..used], density_step, |pair| rate * pair.gap_us) / root;
        // A clock of the host shows in the times of issues.
        let issued = sum_cosines(&pairs[..used], density_step, |pair| {
            rate * pair.issue_gap_us
        }) / root;
        let score = if issued > turns { 0.0 } else { turns };
        RateCandidate {
            revolutions_per_us: rate,
            score,
            pair_count: used,
        }
    };
    let steps = ((RATE_RANGE.1 - RATE_RANGE.0) / RATE_STEP) as usize;
    let rates = (0..=steps).map(|step| RATE_RANGE.0 + RATE_STEP * step as f64);
    let mut scores: Vec<RateCandidate> =
        rates.map(score).filter(|one| one.pair_count >= 8).collect();
    scores.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut best: Vec<RateCandidate> = Vec::new();
    for one in scores {
        let is_apart = |other: &RateCandidate| {
            (other.revolutions_per_us - one.revolutions_per_us).abs() > 15.0 * RATE_STEP
        };
        if best.iter().all(is_apart) {
            best.push(one);
        }
        if best.len() == RATE_CANDIDATES_MAX {
            break;
        }
    }
    best
}

/// Returns pairs of neighbouring requests of the same kind.
fn collect_read_pairs(media: &[ObservedRequest], sectors_max: f64) -> Vec<ReadPair> {
    let last = media
        .iter()
        .map(ObservedRequest::end_sector)
        .fold(1.0, f64::max);
    let mut pairs = Vec::new();
    for (number, one) in media.iter().enumerate() {
        for other in &media[number + 1..] {
            let gap_us = other.completion_us - one.completion_us;
            if gap_us > PAIR_GAP_US_MAX {
                break;
            }
            let sectors = other.end_sector() - one.end_sector();
            if other.is_write == one.is_write && sectors.abs() <= sectors_max {
                let part = (one.first_sector / last * TRACE_PARTS as f64) as usize;
                pairs.push(ReadPair {
                    gap_us,
                    issue_gap_us: gap_us - (other.service_us - one.service_us),
                    sector_distance: sectors,
                    service_us: one.service_us.min(other.service_us),
                    trace_part: part.min(TRACE_PARTS - 1),
                });
            }
        }
    }
    pairs
}

/// Returns the sum of cosines at the best angular density of each part of the drive.
fn sum_cosines(pairs: &[ReadPair], density_step: f64, turns: impl Fn(&ReadPair) -> f64) -> f64 {
    let densities = (TRACK_DENSITY_MAX / density_step) as usize;
    let mut sums = vec![vec![0.0; densities]; TRACE_PARTS];
    for pair in pairs {
        let (sin, cos) = libm::sincos(TAU * turns(pair));
        let (turn_sin, turn_cos) = libm::sincos(-TAU * density_step * pair.sector_distance);
        let (mut re, mut im) = (cos, sin);
        for sum in &mut sums[pair.trace_part] {
            *sum += re;
            (re, im) = (re * turn_cos - im * turn_sin, re * turn_sin + im * turn_cos);
        }
    }
    sums.iter()
        .map(|sums| sums.iter().copied().fold(0.0, f64::max))
        .sum()
}
