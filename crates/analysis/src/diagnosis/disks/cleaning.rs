//! Measures of the cleaning of bands on shingled disks.

use diskperf_timeline::trace::{ArmWork, RequestPurpose, TracedRequest};
use diskperf_timeline::{Nanoseconds, Trace};

/// Bytes that the arms moved to clean bands, beside the bytes that programs wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct CleaningMeasures {
    /// Bytes that cleaning read from bands and wrote to them.
    pub(super) moved_bytes: u64,
    written_bytes: u64,
}

impl CleaningMeasures {
    pub(in super::super) fn from_trace(
        trace: &Trace,
        requests: &[&TracedRequest],
        (from, until): (Nanoseconds, Nanoseconds),
    ) -> Self {
        let bytes = |drive: u32, sectors: u32| {
            u64::from(sectors) * u64::from(trace.drives[drive as usize].sector_bytes)
        };
        let cleans = trace.arm_traces.iter().filter(|arm| {
            arm.arm_work == ArmWork::Cleaning && arm.work_end() > from && arm.work_start < until
        });
        let writes = requests.iter().filter(|one| {
            matches!(
                one.purpose,
                RequestPurpose::Write | RequestPurpose::WriteBehind
            )
        });
        Self {
            moved_bytes: cleans
                .map(|arm| bytes(arm.drive_index, arm.sector_count))
                .sum(),
            written_bytes: writes
                .map(|one| bytes(one.drive_index, one.sector_count))
                .sum(),
        }
    }

    /// Returns the bytes that cleaning moved for each byte that programs wrote; `None` if they
    /// wrote nothing.
    pub(super) fn moved_per_written_byte(self) -> Option<f64> {
        (self.written_bytes > 0).then(|| self.moved_bytes as f64 / self.written_bytes as f64)
    }
}
