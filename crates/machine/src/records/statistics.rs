//! Request statistics of a modelled computer.

use diskperf_device::{Operation, Request};
use diskperf_sim::Time;
use diskperf_timeline::Stage;

/// Statistics over all drive requests of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Request statistics of each drive.
    pub drives: Vec<DriveStatistics>,
    /// Time of all requests in each stage, in nanoseconds, by [`Stage::index`].
    pub stages: Vec<u64>,
}

/// Request statistics of one drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveStatistics {
    /// Number of completed requests.
    pub requests: u64,
    /// Completed requests that missed a deadline and waited for an additional revolution.
    pub missed: u64,
    /// Data read, in sectors.
    pub read_sectors: u64,
    /// Data written, in sectors.
    pub written_sectors: u64,
    /// Sum of the response times of all requests. It equals the integral of the number of requests
    /// in flight over time.
    pub response: Time,
}

impl Statistics {
    pub(crate) fn new(drives: usize) -> Self {
        Self {
            drives: vec![DriveStatistics::default(); drives],
            stages: vec![0; Stage::COUNT],
        }
    }

    pub(crate) fn count_request(&mut self, request: &Request) {
        let mut at = request.spans.issued();
        let mut missed = false;
        for span in request.spans.spans() {
            self.stages[span.stage.index()] += span.until.0 - at.0;
            at = span.until;
            missed |= matches!(span.stage, Stage::MissedRevolution(_));
        }
        let drive = &mut self.drives[request.device];
        drive.requests += 1;
        drive.missed += u64::from(missed);
        let sectors = u64::from(request.sectors);
        match request.operation {
            Operation::Read => drive.read_sectors += sectors,
            Operation::Write { .. } | Operation::WriteZeroes => drive.written_sectors += sectors,
            Operation::Flush | Operation::Discard => {}
        }
        drive.response += Time(at.0 - request.spans.issued().0);
    }
}
