//! Request statistics of a modelled computer.

use diskperf_device::{Operation, Request};
use diskperf_sim::Time;
use diskperf_timeline::Stage;

/// Statistics over all drive requests of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestStatistics {
    /// Request statistics of each drive.
    pub drive_statistics: Vec<DriveStatistics>,
    /// Time of all requests in each stage, in nanoseconds, by [`Stage::index`].
    pub stage_ns: Vec<u64>,
}

/// Request statistics of one drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveStatistics {
    /// Number of completed requests.
    pub request_count: u64,
    /// Completed requests that missed a deadline and waited for an additional revolution.
    pub missed_revolution_count: u64,
    /// Data read, in sectors.
    pub read_sectors: u64,
    /// Data written, in sectors.
    pub written_sectors: u64,
    /// Sum of the response times of all requests. It equals the integral of the number of requests
    /// in flight over time.
    pub response_time_total: Time,
}

impl RequestStatistics {
    pub(crate) fn new(drives: usize) -> Self {
        Self {
            drive_statistics: vec![DriveStatistics::default(); drives],
            stage_ns: vec![0; Stage::COUNT],
        }
    }

    pub(crate) fn count_request(&mut self, request: &Request) {
        let mut at = request.spans.issued_at();
        let mut missed = false;
        for span in request.spans.spans() {
            self.stage_ns[span.stage.index()] += span.stage_end.0 - at.0;
            at = span.stage_end;
            missed |= matches!(span.stage, Stage::MissedRevolution(_));
        }
        let drive = &mut self.drive_statistics[request.device];
        drive.request_count += 1;
        drive.missed_revolution_count += u64::from(missed);
        let sectors = u64::from(request.sectors);
        match request.operation {
            Operation::Read => drive.read_sectors += sectors,
            Operation::Write { .. } | Operation::WriteZeroes => drive.written_sectors += sectors,
            Operation::Flush | Operation::Discard => {}
        }
        drive.response_time_total += Time(at.0 - request.spans.issued_at().0);
    }
}
