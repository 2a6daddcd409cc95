//! Actuator times: time until a read's first sector, by seek distance in tracks.
//!
//! The platter adds up to a revolution to the actuator's time. The shortest times of many requests
//! at one distance are those of the actuator.

const BIN_SAMPLES_MIN: usize = 30;
/// Share of a bin's requests that are faster than the actuator: buffer hits that resemble media
/// reads.
const FASTEST_SHARE: f64 = 0.02;

/// Time from issue until the first sector is under the head, without rotational latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdentifiedSeekArrival {
    /// Seek distance in tracks.
    pub track_distance: f64,
    /// Time until the first sector is under the head, in microseconds.
    pub arrival_us: f64,
    /// Half width of the confidence interval, in microseconds.
    pub confidence_interval_us: f64,
}

/// Seek distance of a read from the preceding request, and the time until its first sector.
pub(super) struct SeekSample {
    pub(super) track_distance: f64,
    pub(super) arrival_us: f64,
}

/// Returns the actuator times by distance, nearest first.
pub(super) fn fit_seek_arrivals(
    mut reaches: Vec<SeekSample>,
    period_us: f64,
) -> Vec<IdentifiedSeekArrival> {
    reaches.sort_by(|a, b| a.track_distance.total_cmp(&b.track_distance));
    let bins = (reaches.len() / BIN_SAMPLES_MIN).clamp(1, 40);
    let mut found: Vec<IdentifiedSeekArrival> = Vec::new();
    for bin in reaches.chunks(reaches.len().div_ceil(bins).max(1)) {
        if bin.len() < BIN_SAMPLES_MIN / 2 {
            continue;
        }
        let mut times: Vec<f64> = bin.iter().map(|one| one.arrival_us).collect();
        times.sort_by(f64::total_cmp);
        let count = times.len() as f64;
        // Waits are spread evenly over a revolution: the smallest of `count` is at the first
        // of as many parts.
        let rank = (FASTEST_SHARE * count).ceil();
        let time_us = times[(rank as usize).min(times.len() - 1)] - rank / count * period_us;
        let tracks = bin[bin.len() / 2].track_distance.round();
        if found
            .last()
            .is_some_and(|last| last.track_distance >= tracks)
        {
            continue;
        }
        let mut interval_us = 3.0 * (rank.sqrt() + 1.0) / count * period_us;
        // Reads that are as fast as this are not told from hits: the arm may be faster.
        if time_us < 0.5 * period_us {
            interval_us = interval_us.max(time_us);
        }
        // No arm is faster over a longer distance, in the mean.
        let least = found.last().map_or(0.0, |last| last.arrival_us);
        found.push(IdentifiedSeekArrival {
            track_distance: tracks,
            arrival_us: time_us.max(least),
            confidence_interval_us: interval_us,
        });
    }
    found
}
