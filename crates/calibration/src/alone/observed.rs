//! Requests of a trace on a common time axis, for the analysis of rotation.

use diskperf_diskspecs::phase::{Think, completions_us};
use diskperf_diskspecs::trace::{Operation, Request};

/// Request with the time of its completion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Observation {
    /// Index of the request in the trace, from 0.
    pub(super) index: usize,
    pub(super) is_write: bool,
    pub(super) first: f64,
    pub(super) blocks: f64,
    pub(super) service_us: f64,
    /// Completion time in microseconds since the issue of the first request.
    pub(super) completion_us: f64,
}

impl Observation {
    pub(super) fn end(&self) -> f64 {
        self.first + self.blocks
    }
}

/// Computes the completion times of all requests, with the pauses before or after their requests.
pub(super) fn observe(requests: &[Request], think: Think) -> Vec<Observation> {
    let completions_us = completions_us(requests, think);
    let with_times = requests.iter().zip(completions_us).enumerate();
    let observation = |(index, (request, completion_us)): (usize, (&Request, f64))| Observation {
        index,
        is_write: request.operation == Operation::Write,
        first: request.first_block as f64,
        blocks: f64::from(request.blocks),
        service_us: request.service_us,
        completion_us,
    };
    with_times.map(observation).collect()
}
