//! What a modelled machine counts beside what its programs measure.

use super::bench::Bench;
use diskperf_timeline::Nanoseconds;

/// What a machine has counted by some moment.
#[derive(Clone, Copy)]
pub struct Counts {
    /// Requests that the drives completed.
    pub requests: u64,
    /// Of these, how many lost a revolution that they need not have.
    pub missed: u64,
    /// How long the processor worked, for whomever.
    pub processor: Nanoseconds,
    /// Of that, for the driver: its routines in processes and in handlers.
    pub driver: Nanoseconds,
}

impl Counts {
    /// Up to now.
    pub fn of(bench: &Bench) -> Self {
        let drives = bench.machine.statistics().drives;
        let (processor, _) = bench.machine.processor_busy();
        Self {
            requests: drives.iter().map(|drive| drive.requests).sum(),
            missed: drives.iter().map(|drive| drive.missed).sum(),
            processor: Nanoseconds(processor.0),
            driver: Nanoseconds(bench.machine.driver_busy().0),
        }
    }

    /// What came since an earlier moment.
    pub fn since(self, before: &Self) -> Self {
        Self {
            requests: self.requests - before.requests,
            missed: self.missed - before.missed,
            processor: self.processor.since(before.processor),
            driver: self.driver.since(before.driver),
        }
    }
}
