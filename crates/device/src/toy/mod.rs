//! A toy: a ramdisk with a seek. It serves one request after the other; each takes time for the
//! distance from the one before it, and for its sectors.

#[cfg(all(test, feature = "catalogue"))]
mod tests;

use crate::{BuildDevice, Busy, RequestId, Requests, Unit, moment};
#[cfg(feature = "catalogue")]
use diskperf_catalogue::Reader;
use diskperf_sim::{Streams, Time};
use diskperf_spans::Stage;
use std::collections::VecDeque;

/// Bytes of a sector.
const SECTOR_BYTES: u32 = 512;
/// Requests that it holds.
const QUEUE_DEPTH: usize = 32;

/// The specification of a ramdisk with a seek.
#[derive(Clone, Debug)]
pub struct SeekDiskSpecification {
    sectors: u64,
    seek_per_sector: Time,
    transfer_per_sector: Time,
}

impl BuildDevice for SeekDiskSpecification {
    type Device = SeekDisk;

    #[cfg(feature = "catalogue")]
    fn read(reader: &mut Reader<'_>) -> Self {
        let sectors = 1..=u64::from(u32::MAX);
        let mut time = |key, doc| Time(reader.integer(key, 0..=1_000_000, doc));
        Self {
            seek_per_sector: time(
                "seek_ns_per_sector",
                "seek time for each sector of distance",
            ),
            transfer_per_sector: time("transfer_ns_per_sector", "transfer time of a sector"),
            sectors: reader.integer("sectors", sectors, "how many it has"),
        }
    }

    fn build(&self, _: &Streams, _: Unit) -> SeekDisk {
        SeekDisk {
            of: self.clone(),
            position: 0,
            queue: VecDeque::new(),
            in_service: None,
            done: VecDeque::new(),
            busy: Busy::default(),
        }
    }

    fn sector_bytes(&self) -> u32 {
        SECTOR_BYTES
    }

    fn sectors(&self) -> Option<u64> {
        Some(self.sectors)
    }
}

/// A ramdisk with a seek.
#[derive(Clone, Debug)]
pub struct SeekDisk {
    of: SeekDiskSpecification,
    /// Sector after the last request.
    position: u64,
    queue: VecDeque<RequestId>,
    /// Request in service, and the end of its service.
    in_service: Option<(Time, RequestId)>,
    done: VecDeque<RequestId>,
    busy: Busy,
}

impl SeekDisk {
    pub(crate) fn sector_bytes(&self) -> u32 {
        SECTOR_BYTES
    }

    pub(crate) fn sectors(&self) -> u64 {
        self.of.sectors
    }

    pub(crate) fn busy(&self) -> Busy {
        self.busy
    }

    pub(crate) fn takes_requests(&self) -> bool {
        self.queue.len() < QUEUE_DEPTH
    }

    pub(crate) fn take(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        assert!(self.takes_requests(), "the queue is full");
        self.queue.push_back(id);
        self.serve(now, requests);
    }

    pub(crate) fn next_event(&self) -> Option<Time> {
        self.in_service.map(|(end, _)| end)
    }

    pub(crate) fn advance(&mut self, now: Time, requests: &mut Requests) -> bool {
        let before = self.done.len();
        while let Some((end, id)) = self.in_service.take_if(|(end, _)| *end <= now) {
            let request = &requests[id];
            self.busy.bytes += u64::from(request.sectors) * u64::from(SECTOR_BYTES);
            self.busy.transfers += 1;
            self.done.push_back(id);
            self.serve(end, requests);
        }
        self.done.len() > before
    }

    pub(crate) fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    pub(crate) fn take_done(&mut self) -> Option<RequestId> {
        self.done.pop_front()
    }

    fn serve(&mut self, now: Time, requests: &mut Requests) {
        if self.in_service.is_some() {
            return;
        }
        let Some(id) = self.queue.pop_front() else {
            return;
        };
        let request = &mut requests[id];
        let distance = request.sector.abs_diff(self.position);
        let positioned = now + Time(self.of.seek_per_sector.0 * distance);
        let end = positioned + Time(self.of.transfer_per_sector.0 * u64::from(request.sectors));
        request.mark(Stage::ControllerQueue, moment(now));
        request.mark(Stage::Seek, moment(positioned));
        request.mark(Stage::Command, moment(end));
        self.busy.positioning += positioned - now;
        self.busy.transfer += end - positioned;
        self.position = request.end();
        self.in_service = Some((end, id));
    }
}
