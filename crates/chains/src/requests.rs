//! Lives of bios and requests, from the events of the block layer.

use crate::context::Origin;
use crate::event::{BlockExtent, FileIdentity, ReportedRequest};
use crate::identity::{BioAddress, KernelDevice, RequestAddress, RequestFlags, RequestOperation};
use diskperf_spans::Nanoseconds;
use std::collections::{BTreeMap, HashMap};

/// Index of a request in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RequestIndex(pub(crate) usize);

/// Life of a bio from its arrival.
#[derive(Clone, Debug)]
pub(crate) struct BioLife {
    /// Arrival of the bio at the block layer.
    pub(crate) queued_at: Nanoseconds,
    /// Origin of the bio.
    pub(crate) queued_by: Origin,
    /// Extent of the bio, on the disk as far as the events tell.
    pub(crate) extent: BlockExtent,
    /// Operation and flags of the bio.
    pub(crate) flags: RequestFlags,
    /// File of the bio's data, where it is known.
    pub(crate) file: Option<FileIdentity>,
    /// Time at which the bio had a request or joined one.
    pub(crate) allocated_at: Option<Nanoseconds>,
    /// Request that carries the bio.
    pub(crate) request: Option<RequestIndex>,
}

/// Life of a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestLife {
    /// Extent of the request on its disk.
    pub(crate) extent: BlockExtent,
    /// Operation and flags of the request.
    pub(crate) flags: RequestFlags,
    /// Bios of the request, by their indices, the first one first.
    pub(crate) bios: Vec<usize>,
    /// Entry to the scheduler or a queue.
    pub(crate) inserted_at: Option<Nanoseconds>,
    /// Hand-overs to the device. There are several if the driver was busy.
    pub(crate) issued_at: Vec<Nanoseconds>,
    /// Completions by the device. There are several of a request in a flush sequence.
    pub(crate) completed_at: Vec<Nanoseconds>,
    /// Origin that ended the request, on a loop device its worker.
    pub(crate) completed_by: Option<CompletionOrigin>,
    completed_bytes: u64,
    is_closed: bool,
}

/// Origin of a completion: what ran as the request was handed to the soft interrupt, or completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompletionOrigin {
    /// Time of the hand-over.
    pub(crate) time: Nanoseconds,
    /// Origin of the hand-over.
    pub(crate) origin: Origin,
}

impl RequestLife {
    /// Returns the time of the last completion; `None` for a request in flight.
    pub(crate) fn last_completion(&self) -> Option<Nanoseconds> {
        self.completed_at.last().copied()
    }

    /// Reports whether the request is the flush of a device.
    pub(crate) fn is_flush(&self) -> bool {
        self.flags.operation == RequestOperation::Flush
    }
}

/// Lives of all bios and requests, in one pass over the events.
#[derive(Debug, Default)]
pub(crate) struct RequestTracker {
    pub(crate) bios: Vec<BioLife>,
    pub(crate) requests: Vec<RequestLife>,
    live_bios: HashMap<BioAddress, usize>,
    live_requests: HashMap<RequestAddress, RequestIndex>,
    /// Bios that joined a request that is not issued yet, by disk and sector.
    merged_bios: BTreeMap<(KernelDevice, u64), usize>,
    /// Whole disk of each partition.
    disks: HashMap<KernelDevice, KernelDevice>,
}

impl RequestTracker {
    pub(crate) fn from_disks(disks: HashMap<KernelDevice, KernelDevice>) -> Self {
        Self {
            disks,
            ..Self::default()
        }
    }

    pub(crate) fn disk(&self, device: KernelDevice) -> KernelDevice {
        self.disks.get(&device).copied().unwrap_or(device)
    }

    pub(crate) fn queue_bio(&mut self, bio: BioAddress, life: BioLife) {
        self.bios.push(life);
        self.live_bios.insert(bio, self.bios.len() - 1);
    }

    pub(crate) fn remap_bio(&mut self, bio: BioAddress, extent: BlockExtent) {
        if let Some(index) = self.live_bios.get(&bio) {
            self.bios[*index].extent = extent;
        }
    }

    /// Adds the front part of a bio that is split, and returns the bio whose rest goes on; `None`
    /// where no such bio is known.
    pub(crate) fn split_bio(&mut self, front: BioAddress, extent: BlockExtent) -> Option<usize> {
        let is_whole = |bio: &usize| {
            let bio = &self.bios[*bio];
            let start = (bio.extent.device, bio.extent.sector);
            bio.allocated_at.is_none()
                && start == (extent.device, extent.sector)
                && bio.extent.bytes > extent.bytes
        };
        // An earlier one whose end no event told may have started at the same sector.
        let whole = self.live_bios.values().copied().filter(is_whole).max()?;
        let life = BioLife {
            extent,
            ..self.bios[whole].clone()
        };
        let rest = &mut self.bios[whole].extent;
        rest.sector += u64::from(extent.bytes) / 512;
        rest.bytes -= extent.bytes;
        self.queue_bio(front, life);
        Some(whole)
    }

    /// Notes that a bio has a request, or joins one.
    pub(crate) fn allocate(
        &mut self,
        (time, origin): (Nanoseconds, Origin),
        (bio, extent): (BioAddress, BlockExtent),
        joins: bool,
    ) {
        let known = self.live_bios.get(&bio).copied();
        let known = known.filter(|index| {
            let own = &self.bios[*index];
            own.allocated_at.is_none() && own.extent.sector == extent.sector
        });
        let index = known.unwrap_or_else(|| {
            let life = BioLife {
                queued_at: time,
                queued_by: origin,
                extent,
                flags: RequestFlags::default(),
                file: None,
                allocated_at: None,
                request: None,
            };
            self.queue_bio(bio, life);
            self.bios.len() - 1
        });
        self.bios[index].allocated_at = Some(time);
        if joins {
            let disk = self.disk(extent.device);
            self.merged_bios.insert((disk, extent.sector), index);
        }
    }

    /// Returns the request that an event reports, which may be a new one.
    fn find_or_add(&mut self, reported: &ReportedRequest) -> RequestIndex {
        if let Some(index) = self.live_requests.get(&reported.request).copied() {
            let known = &self.requests[index.0];
            let same_extent = known.extent.sector == reported.extent.sector;
            if !known.is_closed && (same_extent || known.flags.is_in_flush_sequence) {
                return index;
            }
        }
        let index = RequestIndex(self.requests.len());
        self.requests.push(RequestLife {
            extent: reported.extent,
            flags: reported.flags,
            bios: Vec::new(),
            inserted_at: None,
            issued_at: Vec::new(),
            completed_at: Vec::new(),
            completed_by: None,
            completed_bytes: 0,
            is_closed: false,
        });
        self.live_requests.insert(reported.request, index);
        self.link_first_bio(index, reported);
        index
    }

    fn link_first_bio(&mut self, index: RequestIndex, reported: &ReportedRequest) {
        if reported.flags.operation == RequestOperation::Flush {
            return;
        }
        let by_address = reported.bio.and_then(|bio| self.live_bios.get(&bio));
        let disk = self.disk(reported.extent.device);
        let matches = |bio: &usize| {
            let bio = &self.bios[*bio];
            bio.request.is_none()
                && self.disk(bio.extent.device) == disk
                && match reported.extent.bytes {
                    0 => bio.flags.is_preflush && bio.extent.bytes == 0,
                    _ => bio.extent.sector == reported.extent.sector,
                }
        };
        let free = |bio: &usize| self.bios[*bio].request.is_none();
        let found = by_address.copied().filter(free).or_else(|| {
            let live = self.live_bios.values().copied().filter(matches);
            live.min_by_key(|bio| self.bios[*bio].queued_at)
        });
        if let Some(bio) = found {
            self.bios[bio].request = Some(index);
            self.requests[index.0].bios.push(bio);
        }
    }

    pub(crate) fn insert(&mut self, time: Nanoseconds, reported: &ReportedRequest) {
        let index = self.find_or_add(reported);
        self.requests[index.0].inserted_at.get_or_insert(time);
    }

    pub(crate) fn issue(&mut self, time: Nanoseconds, reported: &ReportedRequest) -> RequestIndex {
        let index = self.find_or_add(reported);
        self.link_merged_bios(index, reported.extent);
        let request = &mut self.requests[index.0];
        request.extent = reported.extent;
        request.issued_at.push(time);
        index
    }

    /// Adds the merged bios within the extent of a request to it.
    fn link_merged_bios(&mut self, index: RequestIndex, extent: BlockExtent) {
        let end = extent.sector.saturating_add(u64::from(extent.bytes) / 512);
        let disk = self.disk(extent.device);
        let inside = (disk, extent.sector)..(disk, end.max(extent.sector));
        let found: Vec<((KernelDevice, u64), usize)> = self
            .merged_bios
            .range(inside)
            .map(|(place, bio)| (*place, *bio))
            .collect();
        for (place, bio) in found {
            self.merged_bios.remove(&place);
            self.bios[bio].request = Some(index);
            self.requests[index.0].bios.push(bio);
        }
    }

    pub(crate) fn complete(
        &mut self,
        time: Nanoseconds,
        (reported, bytes): (&ReportedRequest, u32),
        completed_by: Option<CompletionOrigin>,
    ) -> RequestIndex {
        let index = self.find_or_add(reported);
        let request = &mut self.requests[index.0];
        request.completed_at.push(time);
        request.completed_by = completed_by;
        request.completed_bytes += u64::from(bytes);
        request.flags.is_in_flush_sequence |= reported.flags.is_in_flush_sequence;
        // The data of a request in a flush sequence completes before its flush, and then again.
        request.is_closed = match request.flags.is_in_flush_sequence {
            true => bytes == 0,
            false => request.completed_bytes >= u64::from(request.extent.bytes),
        };
        index
    }

    /// Returns the latest request with an address.
    pub(crate) fn find_request(&self, request: RequestAddress) -> Option<RequestIndex> {
        self.live_requests.get(&request).copied()
    }
}
