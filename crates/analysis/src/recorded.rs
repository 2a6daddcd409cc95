//! Results of recording the requests of a disk.

use diskperf_timeline::{DeviceEvent, DeviceOperation, DeviceStep};
use serde::Serialize;

/// Result of a recording, or its progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Observed {
    /// Target of the recording, as the user named it.
    pub target: String,
    /// Disks, or the part of one, whose requests were recorded.
    pub devices: Vec<String>,
    /// Duration of the recording in seconds.
    pub elapsed_s: f64,
    /// Number of requests issued during the recording.
    pub requests: u64,
    /// Number of reads issued during the recording.
    pub reads: u64,
    /// Number of writes issued during the recording.
    pub writes: u64,
    /// Number of issued requests that are neither reads nor writes, such as flushes and discards.
    pub others: u64,
    /// Number of requests that completed during the recording.
    pub completed: u64,
    /// Bytes that the recorded requests move.
    pub bytes: u64,
    /// Number of events that the kernel dropped because its buffers were full.
    pub lost_events: u64,
    /// Processor time of the recording itself, in seconds.
    pub cpu_s: f64,
    /// Processor time of the recording itself, as a share of one processor.
    pub cpu_share: f64,
    /// Whether the recording was ended before its planned duration.
    pub is_interrupted: bool,
    /// Notes to the reader about the recording.
    pub notes: Vec<String>,
}

impl Observed {
    /// Adds events of a device to the counts.
    pub fn count(&mut self, events: &[DeviceEvent]) {
        for event in events {
            match event.event_step {
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
                DeviceStep::EventsLost(events) => self.lost_events += events,
                DeviceStep::Completed { .. } => self.completed += 1,
            }
        }
    }

    /// Describes the loss of events; `None` if none were lost.
    pub fn lost_note(&self) -> Option<String> {
        (self.lost_events > 0).then(|| {
            format!(
                "{} events were lost because the kernel's buffers were full: some requests are not in the trace, or have no completion",
                self.lost_events
            )
        })
    }
}
