//! Counters of a modelled machine, in addition to the measurements of its programs.

use super::bench::Bench;
use diskperf_timeline::Nanoseconds;

/// Counters of a machine at some time.
#[derive(Clone, Copy)]
pub struct Counts {
    /// Requests that the drives of the machine completed.
    pub requests: u64,
    /// Requests of the machine that lost an avoidable revolution.
    pub missed: u64,
    /// Busy time of the machine's processor, for all purposes.
    pub processor: Nanoseconds,
    /// Busy time of the processor for the driver's routines, in processes and in interrupt
    /// handlers.
    pub driver: Nanoseconds,
}

impl Counts {
    /// Reads the current counters of a machine.
    pub fn of(bench: &Bench) -> Self {
        let drives = bench.machine.statistics().drive_statistics;
        let (processor, _) = bench.machine.processor_busy_times();
        Self {
            requests: drives.iter().map(|drive| drive.request_count).sum(),
            missed: drives
                .iter()
                .map(|drive| drive.missed_revolution_count)
                .sum(),
            processor: Nanoseconds(processor.0),
            driver: Nanoseconds(bench.machine.driver_busy_time().0),
        }
    }

    /// Returns the increase of all counters since an earlier reading.
    pub fn since(self, before: &Self) -> Self {
        Self {
            requests: self.requests - before.requests,
            missed: self.missed - before.missed,
            processor: self.processor.since(before.processor),
            driver: self.driver.since(before.driver),
        }
    }
}
