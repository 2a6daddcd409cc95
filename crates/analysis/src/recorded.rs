//! Results of recording the requests of a disk.

use diskperf_timeline::{DeviceEvent, DeviceOperation, DeviceStep};
use serde::Serialize;

/// Result of a recording, or its progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RecordingSummary {
    /// Target of the recording, as the user named it.
    pub target: String,
    /// Disks, or the part of one, whose requests were recorded.
    pub devices: Vec<String>,
    /// Duration of the recording in seconds.
    pub elapsed_s: f64,
    /// Number of requests issued during the recording.
    #[serde(rename = "requests")]
    pub request_count: u64,
    /// Number of reads issued during the recording.
    #[serde(rename = "reads")]
    pub read_count: u64,
    /// Number of writes issued during the recording.
    #[serde(rename = "writes")]
    pub write_count: u64,
    /// Number of issued requests that are neither reads nor writes, such as flushes and discards.
    #[serde(rename = "others")]
    pub other_count: u64,
    /// Number of requests that completed during the recording.
    #[serde(rename = "completed")]
    pub completed_count: u64,
    /// Bytes that the recorded requests move.
    #[serde(rename = "bytes")]
    pub transferred_bytes: u64,
    /// Number of events that the kernel dropped because its buffers were full.
    #[serde(rename = "lost_events")]
    pub lost_event_count: u64,
    /// Processor time of the recording itself, in seconds.
    pub cpu_s: f64,
    /// Processor time of the recording itself, as a share of one processor.
    pub cpu_share: f64,
    /// Whether the recording was ended before its planned duration.
    pub is_interrupted: bool,
    /// Notes to the reader about the recording.
    pub notes: Vec<String>,
}

impl RecordingSummary {
    /// Adds events of a device to the counts.
    pub fn count_events(&mut self, events: &[DeviceEvent]) {
        for event in events {
            match event.event_step {
                DeviceStep::Issued(request) => {
                    self.request_count += 1;
                    self.transferred_bytes += request.length_bytes;
                    match request.operation {
                        DeviceOperation::Read => self.read_count += 1,
                        DeviceOperation::Write { .. } => self.write_count += 1,
                        DeviceOperation::Flush
                        | DeviceOperation::Discard
                        | DeviceOperation::WriteZeroes => self.other_count += 1,
                    }
                }
                DeviceStep::EventsLost(events) => self.lost_event_count += events,
                DeviceStep::Completed { .. } => self.completed_count += 1,
            }
        }
    }

    /// Describes the loss of events; `None` if none were lost.
    pub fn describe_lost_events(&self) -> Option<String> {
        (self.lost_event_count > 0).then(|| {
            format!(
                "{} events were lost because the kernel's buffers were full: some requests are not in the trace, or have no completion",
                self.lost_event_count
            )
        })
    }
}
