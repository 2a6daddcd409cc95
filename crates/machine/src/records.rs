//! Records of drive activity: statistics of every run, and optional recordings.

mod recording;
mod statistics;
mod tracing;

pub use statistics::{DriveStatistics, RequestStatistics};
pub(crate) use tracing::RunTracing;

use crate::hardware::drives::{Drive, Drives};
use diskperf_device::Request;
use recording::EventRecording;
use std::cell::RefCell;

/// Records of drive activity on a computer or on a rig (drives without a computer).
pub(crate) struct RunRecords {
    pub(crate) statistics: RefCell<RequestStatistics>,
    /// Trace of the run, if recorded.
    pub(crate) active_tracing: Option<RefCell<RunTracing>>,
    event_recording: Option<RefCell<EventRecording>>,
}

impl RunRecords {
    /// Returns empty records for the given number of drives.
    pub(crate) fn new(drives: usize, (trace, record): (bool, bool)) -> Self {
        Self {
            statistics: RefCell::new(RequestStatistics::new(drives)),
            active_tracing: trace.then(RefCell::default),
            event_recording: record.then(RefCell::default),
        }
    }

    /// Counts a completed request. `of` is the kernel buffer of the request, if any; `awaited` is
    /// whether a program waits for it.
    pub(crate) fn count_request(
        &self,
        of: Option<usize>,
        request: &Request,
        (drive, awaited): (Drive<'_>, bool),
    ) {
        self.statistics.borrow_mut().count_request(request);
        self.trace_request(of, request, drive, awaited);
    }

    /// Returns the memory of the records, including recordings inside the drives, in bytes.
    pub(crate) fn memory_bytes(&self, drives: &Drives) -> usize {
        let recording = self.event_recording.as_ref();
        let events = recording.map_or(0, |recording| recording.borrow().memory_bytes());
        let tracing = self.active_tracing.as_ref();
        let traced = tracing.map_or(0, |tracing| {
            tracing.borrow().memory_bytes() + drives.recorded_bytes()
        });
        events + traced
    }
}
