//! What was recorded of a disk.

use diskperf_timeline::{DeviceEvent, DeviceOperation, DeviceStep};
use serde::Serialize;

/// What came of it, or how far it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Observed {
    /// What was asked for, as the user named it.
    pub target: String,
    /// The disks, or the part of one, that were listened to.
    pub devices: Vec<String>,
    /// For how long.
    pub elapsed_s: f64,
    /// Requests that were issued.
    pub requests: u64,
    /// Those that read, that write and that do something else.
    pub reads: u64,
    /// See `reads`.
    pub writes: u64,
    /// See `reads`.
    pub others: u64,
    /// Those that completed while it was recorded.
    pub completed: u64,
    /// Bytes that they move.
    pub bytes: u64,
    /// Events that the kernel could not keep for want of room.
    pub lost_events: u64,
    /// The processor time that it took to record them.
    pub cpu_s: f64,
    /// The same as a share of the time of one processor.
    pub cpu_share: f64,
    /// Whether it was ended before its time.
    pub is_interrupted: bool,
    /// What a reader must know.
    pub notes: Vec<String>,
}

impl Observed {
    /// Counts what happened.
    pub fn count(&mut self, events: &[DeviceEvent]) {
        for event in events {
            match event.step {
                DeviceStep::Issued(request) => {
                    self.requests += 1;
                    self.bytes += request.length_bytes;
                    match request.operation {
                        DeviceOperation::Read => self.reads += 1,
                        DeviceOperation::Write { .. } => self.writes += 1,
                        DeviceOperation::Flush
                        | DeviceOperation::Discard
                        | DeviceOperation::WriteZeroes => self.others += 1,
                    }
                }
                DeviceStep::Lost(events) => self.lost_events += events,
                DeviceStep::Completed { .. } => self.completed += 1,
            }
        }
    }

    /// What is to be said of events that were lost.
    pub fn lost_note(&self) -> Option<String> {
        (self.lost_events > 0).then(|| {
            format!(
                "{} events were lost because the kernel's buffers were full: some requests are not in the trace, or have no completion",
                self.lost_events
            )
        })
    }
}
