//! Reconstruction of requests from block-layer events.
//!
//! The block layer receives bios and sends requests to the device. It merges adjacent bios and
//! splits large ones. The queueing time of a request starts with the arrival of its first bio.

use super::lines::{BioStep, BlockEvent};
use diskperf_timeline::Nanoseconds;
use diskperf_timeline::block::{BlockOperation, BlockRequest};
use std::collections::BTreeMap;

/// Sector size of block-layer events in bytes.
pub(super) const SECTOR_BYTES: u64 = 512;

/// Follows requests through their events, which arrive in order of time.
#[derive(Default)]
pub(super) struct RequestTracker {
    /// Bios that belong to no request yet: from device and first sector to the end sector and
    /// arrival time.
    unissued_bios: BTreeMap<(u32, u64), (u64, Nanoseconds)>,
    in_flight_requests: Vec<TrackedBlockRequest>,
    completed_requests: Vec<BlockRequest>,
}

struct TrackedBlockRequest {
    block_request: BlockRequest,
    /// Incomplete part of the request: first sector and number of sectors.
    incomplete_sectors: (u64, u64),
    is_at_device: bool,
}

impl RequestTracker {
    /// Updates the requests of a device with a block-layer event.
    pub(super) fn process_event(&mut self, device: u32, event: &BlockEvent) {
        match event.step {
            BioStep::BioQueued => self.record_bio(device, event),
            BioStep::RequestIssued => self.record_issue(device, event),
            BioStep::RequestRequeued => {
                if let Some(place) = self.find_request(device, event) {
                    self.in_flight_requests[place].is_at_device = false;
                }
            }
            BioStep::RequestCompleted => self.record_completion(device, event),
        }
    }

    /// Returns the completed requests in order of completion.
    pub(super) fn into_completed(self) -> Vec<BlockRequest> {
        self.completed_requests
    }

    fn record_bio(&mut self, device: u32, event: &BlockEvent) {
        if event.sector_count == 0 {
            return;
        }
        let after = event.sector + event.sector_count;
        let place = self.unissued_bios.entry((device, event.sector));
        let known = place.or_insert((after, event.time));
        // The same sectors once more: what came first has waited longest.
        known.0 = known.0.max(after);
    }

    fn record_issue(&mut self, device: u32, event: &BlockEvent) {
        if let Some(place) = self.find_request(device, event)
            && !self.in_flight_requests[place].is_at_device
        {
            let in_flight = &mut self.in_flight_requests[place];
            in_flight.is_at_device = true;
            in_flight.block_request.issued_at = event.time;
            return;
        }
        let queued = self
            .take_bios_of_request(device, event)
            .unwrap_or(event.time);
        self.in_flight_requests.push(TrackedBlockRequest {
            block_request: BlockRequest {
                device_index: device,
                operation: event.operation,
                sector: event.sector,
                bytes: event.sector_count * SECTOR_BYTES,
                queued_at: queued,
                issued_at: event.time,
                completed_at: event.time,
            },
            incomplete_sectors: (event.sector, event.sector_count),
            is_at_device: true,
        });
    }

    /// Removes the sectors of a request from the waiting bios, and returns the arrival time of the
    /// first.
    fn take_bios_of_request(&mut self, device: u32, event: &BlockEvent) -> Option<Nanoseconds> {
        let (first, after) = (event.sector, event.sector + event.sector_count);
        let mut came: Option<Nanoseconds> = None;
        while let Some((&(_, from), &(until, at))) = self
            .unissued_bios
            .range((device, 0)..(device, after))
            .next_back()
            .filter(|(_, (until, _))| *until > first)
        {
            self.unissued_bios.remove(&(device, from));
            came = Some(came.map_or(at, |earlier| earlier.min(at)));
            if until > after {
                self.unissued_bios.insert((device, after), (until, at));
            }
            if from < first {
                self.unissued_bios.insert((device, from), (first, at));
            }
        }
        came
    }

    /// Returns the index of the incomplete request that an event belongs to. Requests without data
    /// are matched by their operation.
    fn find_request(&self, device: u32, event: &BlockEvent) -> Option<usize> {
        self.in_flight_requests.iter().position(|in_flight| {
            let (first, sectors) = in_flight.incomplete_sectors;
            let there = match sectors {
                0 => {
                    event.sector_count == 0 && in_flight.block_request.operation == event.operation
                }
                _ => event.sector_count > 0 && (first..first + sectors).contains(&event.sector),
            };
            in_flight.block_request.device_index == device && there
        })
    }

    /// Records the completion of a request, or of its first part. Requests that began before the
    /// recording are ignored.
    fn record_completion(&mut self, device: u32, event: &BlockEvent) {
        let Some(place) = self.find_request(device, event) else {
            return;
        };
        let (first, sectors) = self.in_flight_requests[place].incomplete_sectors;
        if event.sector_count < sectors {
            self.in_flight_requests[place].incomplete_sectors =
                (first + event.sector_count, sectors - event.sector_count);
            return;
        }
        let mut request = self.in_flight_requests.remove(place).block_request;
        request.completed_at = event.time;
        if request.operation == BlockOperation::Flush {
            request.bytes = 0;
        }
        self.completed_requests.push(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::device::DeviceNumber;

    /// Steps of reads on one device; times and sectors as they come.
    fn requests(events: &[(u64, BioStep, BlockOperation, u64, u64)]) -> Vec<BlockRequest> {
        let mut all = RequestTracker::default();
        for (at, step, operation, sector, sectors) in events.iter().copied() {
            let event = BlockEvent {
                time: Nanoseconds(at),
                step,
                device: DeviceNumber { major: 7, minor: 0 },
                operation,
                sector,
                sector_count: sectors,
            };
            all.process_event(0, &event);
        }
        all.into_completed()
    }

    /// First sector, sectors, and the three times.
    fn told(all: &[BlockRequest]) -> Vec<(u64, u64, [u64; 3])> {
        let one = |request: &BlockRequest| {
            let times = [
                request.queued_at.0,
                request.issued_at.0,
                request.completed_at.0,
            ];
            (request.sector, request.bytes / SECTOR_BYTES, times)
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn what_is_merged_has_waited_since_the_first_came() {
        let read = BlockOperation::Read;
        let found = requests(&[
            (10, BioStep::BioQueued, read, 8, 8),
            (12, BioStep::BioQueued, read, 0, 8),
            (14, BioStep::BioQueued, read, 16, 8),
            (20, BioStep::RequestIssued, read, 0, 24),
            (30, BioStep::RequestCompleted, read, 0, 24),
        ]);
        assert_eq!(told(&found), [(0, 24, [10, 20, 30])]);
    }

    #[test]
    fn what_is_split_waits_in_all_its_parts() {
        let read = BlockOperation::Read;
        let found = requests(&[
            (10, BioStep::BioQueued, read, 100, 2048),
            (12, BioStep::RequestIssued, read, 100, 2032),
            (15, BioStep::BioQueued, read, 2148, 100),
            // The driver gives it back, and takes it again.
            (20, BioStep::RequestIssued, read, 2132, 16),
            (21, BioStep::RequestRequeued, read, 2132, 16),
            (30, BioStep::RequestCompleted, read, 100, 2032),
            (31, BioStep::RequestIssued, read, 2132, 16),
            (40, BioStep::RequestCompleted, read, 2132, 16),
        ]);
        assert_eq!(
            told(&found),
            [(100, 2032, [10, 12, 30]), (2132, 16, [10, 31, 40])]
        );
    }

    #[test]
    fn a_request_is_done_when_all_of_it_is() {
        let write = BlockOperation::Write;
        let found = requests(&[
            (10, BioStep::BioQueued, write, 0, 16),
            (11, BioStep::RequestIssued, write, 0, 16),
            (20, BioStep::RequestCompleted, write, 0, 8),
            (30, BioStep::RequestCompleted, write, 8, 8),
        ]);
        assert_eq!(told(&found), [(0, 16, [10, 11, 30])]);
    }

    #[test]
    fn an_unknown_beginning_is_no_request_and_an_empty_one_is_told_by_what_it_asks() {
        let found = requests(&[
            (5, BioStep::RequestCompleted, BlockOperation::Read, 64, 8),
            (10, BioStep::BioQueued, BlockOperation::Write, 0, 0),
            (12, BioStep::RequestIssued, BlockOperation::Flush, 0, 0),
            (20, BioStep::RequestCompleted, BlockOperation::Flush, 0, 0),
            (21, BioStep::RequestCompleted, BlockOperation::Write, 0, 0),
        ]);
        assert_eq!(told(&found), [(0, 0, [12, 12, 20])]);
        assert_eq!(found[0].operation, BlockOperation::Flush);
    }
}
