//! Throughput, fill levels and write amplification of a flash drive over a time range.

use super::DriveGeometry;
use diskperf_timeline::trace::{FlashLevelSample, RequestPurpose, TracedFlash};
use diskperf_timeline::{Nanoseconds, Trace};

/// Maximum number of intervals that the time range of a die picture is divided into.
const INTERVAL_COUNT_MAX: usize = 120;
/// Minimum mean number of requests in an interval of the die picture.
const REQUESTS_PER_INTERVAL_MIN: usize = 6;
/// Minimum number of intervals in the time range of a die picture; fewer would show no trend.
const INTERVAL_COUNT_MIN: usize = 12;

/// Number of intervals that share one figure of write amplification, since program operations are
/// few.
const INTERVALS_PER_AMPLIFICATION: usize = 4;

/// Throughput, fill levels and write amplification of a flash drive in equal consecutive intervals.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FlashSeries {
    pub(super) intervals: Vec<FlashInterval>,
}

/// Throughput, fill levels and write amplification of a flash drive in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FlashInterval {
    pub(super) start: Nanoseconds,
    pub(super) end: Nanoseconds,
    pub(super) read_bytes_per_s: f64,
    pub(super) written_bytes_per_s: f64,
    /// Fill levels of the drive's buffers at the end of the interval, if known.
    pub(super) levels: Option<FlashLevelSample>,
    /// Write amplification: units programmed for each unit that the host wrote, if known.
    pub(super) write_amplification: Option<f64>,
}

impl FlashSeries {
    pub(super) fn from_trace(
        trace: &Trace,
        flash: &TracedFlash,
        (drive, (from, until)): (DriveGeometry, (Nanoseconds, Nanoseconds)),
    ) -> Self {
        let all = trace.requests.iter();
        let ended = |at: Nanoseconds| at > from && at <= until;
        let own =
            all.filter(|one| one.drive_index == drive.drive_index && ended(one.completed_at()));
        let own: Vec<_> = own.collect();
        let count =
            (own.len() / REQUESTS_PER_INTERVAL_MIN).clamp(INTERVAL_COUNT_MIN, INTERVAL_COUNT_MAX);
        let length = until.since(from).0 as f64 / count as f64;
        let at = |number: usize| {
            Nanoseconds(
                from.0
                    .saturating_add((length * number as f64).round() as u64),
            )
        };
        let interval = |number: usize| FlashInterval {
            start: at(number),
            end: at(number + 1),
            levels: find_flash_levels(flash, at(number + 1)),
            ..FlashInterval::default()
        };
        let mut intervals: Vec<FlashInterval> = (0..count).map(interval).collect();
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
        let mut before = find_flash_levels(flash, from);
        for some in intervals.chunks_mut(INTERVALS_PER_AMPLIFICATION) {
            let after = some.last().and_then(|last| last.levels);
            let amplification = before
                .zip(after)
                .and_then(|(before, after)| after.write_amplification_since(&before));
            some.iter_mut()
                .for_each(|one| one.write_amplification = amplification);
            before = after.or(before);
        }
        Self { intervals }
    }

    /// Returns the maximum of a figure over all intervals; 0 without any.
    pub(super) fn series_max(&self, figure_of: impl Fn(&FlashInterval) -> Option<f64>) -> f64 {
        self.intervals
            .iter()
            .filter_map(figure_of)
            .fold(0.0, f64::max)
    }
}

/// Returns the last sample of the fill levels up to a given time.
fn find_flash_levels(flash: &TracedFlash, at: Nanoseconds) -> Option<FlashLevelSample> {
    let after = flash
        .level_samples
        .partition_point(|one| one.sample_time <= at);
    flash.level_samples.get(after.checked_sub(1)?).copied()
}
