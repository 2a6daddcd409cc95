//! Counters of a modelled machine, in addition to the measurements of its programs.

use super::bench::ModelBench;
use diskperf_timeline::Nanoseconds;

/// Counters of a machine at some time.
#[derive(Clone, Copy)]
pub struct MachineCounts {
    /// Requests that the drives of the machine completed.
    pub request_count: u64,
    /// Requests of the machine that lost an avoidable revolution.
    pub missed_revolution_count: u64,
    /// Busy time of the machine's processor, for all purposes.
    pub processor_time: Nanoseconds,
    /// Busy time of the processor for the driver's routines, in processes and in interrupt
    /// handlers.
    pub driver_time: Nanoseconds,
}

impl MachineCounts {
    /// Reads the current counters of a machine.
    pub fn from_bench(bench: &ModelBench) -> Self {
        let drives = bench.machine.statistics().drive_statistics;
        let (processor, _) = bench.machine.processor_busy_times();
        Self {
            request_count: drives.iter().map(|drive| drive.request_count).sum(),
            missed_revolution_count: drives
                .iter()
                .map(|drive| drive.missed_revolution_count)
                .sum(),
            processor_time: Nanoseconds(processor.0),
            driver_time: Nanoseconds(bench.machine.driver_busy_time().0),
        }
    }

    /// Returns the increase of all counters since an earlier reading.
    pub fn since(self, before: &Self) -> Self {
        Self {
            request_count: self.request_count - before.request_count,
            missed_revolution_count: self.missed_revolution_count - before.missed_revolution_count,
            processor_time: self.processor_time.since(before.processor_time),
            driver_time: self.driver_time.since(before.driver_time),
        }
    }
}
