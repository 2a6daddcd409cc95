//! Records of what drives do: what is counted of every run, and what is kept of one for
//! those who ask for it.

mod recording;
mod statistics;
mod tracing;

pub use statistics::{DriveStatistics, Statistics};
pub(crate) use tracing::Tracing;

use crate::hardware::drives::{Drive, Drives};
use diskperf_device::Request;
use recording::Recording;
use std::cell::RefCell;

/// The records of a rig or of a computer.
pub(crate) struct Records {
    pub(crate) statistics: RefCell<Statistics>,
    /// The trace of what happens, if it is kept.
    pub(crate) tracing: Option<RefCell<Tracing>>,
    /// The recording of all requests to the drives, if it is kept.
    recording: Option<RefCell<Recording>>,
}

impl Records {
    /// Empty ones of so many drives.
    pub(crate) fn new(drives: usize, (trace, record): (bool, bool)) -> Self {
        Self {
            statistics: RefCell::new(Statistics::new(drives)),
            tracing: trace.then(RefCell::default),
            recording: record.then(RefCell::default),
        }
    }

    /// Counts a request that is over, of a kernel's buffer if it is one's, for which
    /// somebody waited or nobody.
    pub(crate) fn count(
        &self,
        of: Option<usize>,
        request: &Request,
        (drive, awaited): (Drive<'_>, bool),
    ) {
        self.statistics.borrow_mut().count(request);
        self.trace_request(of, request, drive, awaited);
    }

    /// Memory that they take, with what drives keep of themselves.
    pub(crate) fn bytes(&self, drives: &Drives) -> usize {
        let recording = self.recording.as_ref();
        let events = recording.map_or(0, |recording| recording.borrow().bytes());
        let tracing = self.tracing.as_ref();
        let traced = tracing.map_or(0, |tracing| {
            tracing.borrow().bytes() + drives.recorded_bytes()
        });
        events + traced
    }
}
