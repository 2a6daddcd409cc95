//! What a modelled computer counted.

use diskperf_device::{Operation, Request};
use diskperf_sim::Time;
use diskperf_timeline::Stage;

/// Sums over all requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Of each drive.
    pub drives: Vec<DriveStatistics>,
    /// Time of all requests, by [`Stage::index`].
    pub stages: Vec<u64>,
}

/// Of one drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveStatistics {
    /// Requests that completed.
    pub requests: u64,
    /// Of these, how many waited for a revolution that they need not have.
    pub missed: u64,
    /// Bytes read and written, in sectors.
    pub read_sectors: u64,
    /// Bytes written, in sectors.
    pub written_sectors: u64,
    /// The sum of their times from issue to completion: the integral over
    /// time of how many are under way.
    pub response: Time,
}

impl Statistics {
    pub(crate) fn new(drives: usize) -> Self {
        Self {
            drives: vec![DriveStatistics::default(); drives],
            stages: vec![0; Stage::COUNT],
        }
    }

    pub(crate) fn count(&mut self, request: &Request) {
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
