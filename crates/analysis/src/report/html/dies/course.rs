//! Throughput, fill levels and write amplification of a flash drive over a time range.

use super::DriveGeometry;
use diskperf_timeline::trace::{FlashLevelSample, RequestPurpose, TracedFlash};
use diskperf_timeline::{Nanoseconds, Trace};

/// Maximum number of intervals that the time range of a die picture is divided into.
const MOST: usize = 120;
/// Minimum mean number of requests in an interval of the die picture.
const REQUESTS_PER_INTERVAL_MIN: usize = 6;
/// Minimum number of intervals in the time range of a die picture; fewer would show no trend.
const LEAST: usize = 12;

/// Number of intervals that share one figure of write amplification, since program operations are
/// few.
const INTERVALS_PER_AMPLIFICATION: usize = 4;

/// Throughput, fill levels and write amplification of a flash drive in equal consecutive intervals.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FlashSeries {
    pub(super) intervals: Vec<Interval>,
}

/// Throughput, fill levels and write amplification of a flash drive in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Interval {
    pub(super) from: Nanoseconds,
    pub(super) until: Nanoseconds,
    pub(super) read_bytes_per_s: f64,
    pub(super) written_bytes_per_s: f64,
    /// Fill levels of the drive's buffers at the end of the interval, if known.
    pub(super) levels: Option<FlashLevelSample>,
    /// Write amplification: units programmed for each unit that the host wrote, if known.
    pub(super) amplification: Option<f64>,
}

impl FlashSeries {
    pub(super) fn from_trace(
        trace: &Trace,
        flash: &TracedFlash,
        (drive, (from, until)): (DriveGeometry, (Nanoseconds, Nanoseconds)),
    ) -> Self {
        let all = trace.requests.iter();
        let ended = |at: Nanoseconds| at > from && at <= until;
        let own = all.filter(|one| one.drive_index == drive.number && ended(one.completed_at()));
        let own: Vec<_> = own.collect();
        let count = (own.len() / REQUESTS_PER_INTERVAL_MIN).clamp(LEAST, MOST);
        let length = until.since(from).0 as f64 / count as f64;
        let at = |number: usize| {
            Nanoseconds(
                from.0
                    .saturating_add((length * number as f64).round() as u64),
            )
        };
        let interval = |number: usize| Interval {
            from: at(number),
            until: at(number + 1),
            levels: flash_levels_at(flash, at(number + 1)),
            ..Interval::default()
        };
        let mut intervals: Vec<Interval> = (0..count).map(interval).collect();
        for request in own {
            let place = request.completed_at().since(from).0 as f64 / length.max(1.0);
            let interval = &mut intervals[(place as usize).min(count - 1)];
            let bytes = f64::from(request.sector_count) * f64::from(drive.sector_bytes);
            let rate = bytes / (length.max(1.0) / 1e9);
            match request.purpose {
                RequestPurpose::Read | RequestPurpose::ReadAhead => {
                    interval.read_bytes_per_s += rate
                }
                RequestPurpose::Write | RequestPurpose::WriteBehind => {
                    interval.written_bytes_per_s += rate
                }
            }
        }
        let mut before = flash_levels_at(flash, from);
        for some in intervals.chunks_mut(INTERVALS_PER_AMPLIFICATION) {
            let after = some.last().and_then(|last| last.levels);
            let amplification = before
                .zip(after)
                .and_then(|(before, after)| after.write_amplification_since(&before));
            some.iter_mut()
                .for_each(|one| one.amplification = amplification);
            before = after.or(before);
        }
        Self { intervals }
    }

    /// Returns the maximum of a figure over all intervals; 0 without any.
    pub(super) fn max_of(&self, figure_of: impl Fn(&Interval) -> Option<f64>) -> f64 {
        self.intervals
            .iter()
            .filter_map(figure_of)
            .fold(0.0, f64::max)
    }
}

/// Returns the last sample of the fill levels up to a given time.
fn flash_levels_at(flash: &TracedFlash, at: Nanoseconds) -> Option<FlashLevelSample> {
    let after = flash
        .level_samples
        .partition_point(|one| one.sample_time <= at);
    flash.level_samples.get(after.checked_sub(1)?).copied()
}
