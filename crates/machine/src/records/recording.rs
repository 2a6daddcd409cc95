//! Recording of requests to drives for a block trace: each request when software submits it, and
//! each completion when it is reaped.

use super::RunRecords;
use crate::hardware::drives::Drives;
use diskperf_device::{Operation, RequestId, Requests, moment};
use diskperf_sim::Time;
use diskperf_timeline::{DeviceEvent, DeviceOperation, DeviceRequest, DeviceStep};

/// Recorded requests to drives and their completions.
#[derive(Default)]
pub(crate) struct EventRecording {
    events: Vec<DeviceEvent>,
    issued_count: u64,
    request_numbers: Vec<u64>,
}

impl EventRecording {
    /// Returns the memory of the recording, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<DeviceEvent>() * self.events.capacity()
            + size_of::<u64>() * self.request_numbers.capacity()
    }
}

impl RunRecords {
    /// Returns the events recorded since the last call.
    pub(crate) fn take_events(&self) -> Vec<DeviceEvent> {
        let recording = self.event_recording.as_ref();
        recording.map_or_else(Vec::new, |recording| {
            std::mem::take(&mut recording.borrow_mut().events)
        })
    }

    /// Records the submission of a request. `awaited` is whether a program waits for it.
    pub(crate) fn record_issue(
        &self,
        id: RequestId,
        (requests, drives): (&Requests, &Drives),
        awaited: bool,
    ) {
        let Some(recording) = &self.event_recording else {
            return;
        };
        let request = &requests[id];
        let sector_bytes = u64::from(drives.drive_at(request.device).sector_bytes());
        let EventRecording {
            events,
            issued_count: issued,
            request_numbers: numbers,
        } = &mut *recording.borrow_mut();
        if numbers.len() <= id.slot() {
            numbers.resize(id.slot() + 1, 0);
        }
        numbers[id.slot()] = *issued;
        events.push(DeviceEvent {
            event_time: request.spans.issued_at(),
            event_step: DeviceStep::Issued(DeviceRequest {
                request_number: *issued,
                device_index: request.device as u32,
                operation: match request.operation {
                    Operation::Read => DeviceOperation::Read,
                    Operation::Write { fua } => DeviceOperation::Write { fua },
                    Operation::Flush => DeviceOperation::Flush,
                    Operation::Discard => DeviceOperation::Discard,
                    Operation::WriteZeroes => DeviceOperation::WriteZeroes,
                },
                is_awaited: awaited,
                offset_bytes: request.sector * sector_bytes,
                length_bytes: u64::from(request.sectors) * sector_bytes,
            }),
        });
        *issued += 1;
    }

    pub(crate) fn record_completion(&self, id: RequestId, now: Time) {
        let Some(recording) = &self.event_recording else {
            return;
        };
        let recording = &mut *recording.borrow_mut();
        let number = recording.request_numbers[id.slot()];
        recording.events.push(DeviceEvent {
            event_time: moment(now),
            // A drive that fails halts the machine.
            event_step: DeviceStep::Completed { number, errno: 0 },
        });
    }
}
