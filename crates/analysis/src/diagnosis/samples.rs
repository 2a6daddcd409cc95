//! Helper functions for samples of requests and values in a diagnosis.

use diskperf_timeline::Stage;
use diskperf_timeline::trace::TracedRequest;

pub(super) const DRIVER_STAGES: &[Stage] = &[Stage::Driver, Stage::DriverQueue];

/// Returns the time at which a request leaves its leading stages, as far as they are among the
/// given ones.
pub(super) fn last_stage_end_ns(request: &TracedRequest, stages: &[Stage]) -> u64 {
    let parts = request.stage_intervals();
    let first = parts.take_while(|interval| stages.contains(&interval.stage));
    first
        .last()
        .map_or(request.issued_at.0, |interval| interval.end.0)
}

/// Returns the median of the values; `None` for an empty slice.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
