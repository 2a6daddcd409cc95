//! Recording what drives are asked for, for a block trace: each request when software
//! issues it, and when its completion is taken.

use super::Records;
use crate::hardware::drives::Drives;
use diskperf_device::{Operation, RequestId, Requests, moment};
use diskperf_sim::Time;
use diskperf_timeline::{DeviceEvent, DeviceOperation, DeviceRequest, DeviceStep};

/// What was recorded so far.
#[derive(Default)]
pub(crate) struct Recording {
    events: Vec<DeviceEvent>,
    /// How many requests were issued.
    issued: u64,
    /// Numbers of the requests that are under way, by their places.
    numbers: Vec<u64>,
}

impl Recording {
    /// Memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<DeviceEvent>() * self.events.capacity()
            + size_of::<u64>() * self.numbers.capacity()
    }
}

impl Records {
    /// What was recorded since the last time this was asked.
    pub(crate) fn take_events(&self) -> Vec<DeviceEvent> {
        let recording = self.recording.as_ref();
        recording.map_or_else(Vec::new, |recording| {
            std::mem::take(&mut recording.borrow_mut().events)
        })
    }

    /// A request was issued, for which somebody waits or nobody.
    pub(crate) fn issued(
        &self,
        id: RequestId,
        (requests, drives): (&Requests, &Drives),
        awaited: bool,
    ) {
        let Some(recording) = &self.recording else {
            return;
        };
        let request = &requests[id];
        let sector_bytes = u64::from(drives.get(request.device).sector_bytes());
        let Recording {
            events,
            issued,
            numbers,
        } = &mut *recording.borrow_mut();
        if numbers.len() <= id.place() {
            numbers.resize(id.place() + 1, 0);
        }
        numbers[id.place()] = *issued;
        events.push(DeviceEvent {
            at: request.spans.issued(),
            step: DeviceStep::Issued(DeviceRequest {
                number: *issued,
                device: request.device as u32,
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

    /// The completion of a request is taken.
    pub(crate) fn completed(&self, id: RequestId, now: Time) {
        let Some(recording) = &self.recording else {
            return;
        };
        let recording = &mut *recording.borrow_mut();
        let number = recording.numbers[id.place()];
        recording.events.push(DeviceEvent {
            at: moment(now),
            // A drive that fails halts the machine.
            step: DeviceStep::Completed { number, errno: 0 },
        });
    }
}
