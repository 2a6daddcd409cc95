//! Requests of a trace on a common time axis, for the analysis of rotation.

use diskperf_diskspecs::phase::{ThinkPosition, completions_us};
use diskperf_diskspecs::trace::{ValidationOperation, ValidationRequest};

/// Request with the time of its completion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ObservedRequest {
    /// Index of the request in the trace, from 0.
    pub(super) request_index: usize,
    pub(super) is_write: bool,
    pub(super) first_sector: f64,
    pub(super) sector_count: f64,
    pub(super) service_us: f64,
    /// Completion time in microseconds since the issue of the first request.
    pub(super) completion_us: f64,
}

impl ObservedRequest {
    pub(super) fn end_sector(&self) -> f64 {
        self.first_sector + self.sector_count
    }
}

/// Computes the completion times of all requests, with the pauses before or after their requests.
pub(super) fn observe_requests(
    requests: &[ValidationRequest],
    think: ThinkPosition,
) -> Vec<ObservedRequest> {
    let completions_us = completions_us(requests, think);
    let with_times = requests.iter().zip(completions_us).enumerate();
    let observation =
        |(index, (request, completion_us)): (usize, (&ValidationRequest, f64))| ObservedRequest {
            request_index: index,
            is_write: request.operation == ValidationOperation::Write,
            first_sector: request.first_block as f64,
            sector_count: f64::from(request.block_count),
            service_us: request.service_us,
            completion_us,
        };
    with_times.map(observation).collect()
}
