//! Transfer of a range of a volume by a sequence of drive requests.

use super::session::RigVolume;
use super::{Rig, RigWorker, TransferOwner};
use crate::ring::RingState;
use diskperf_device::{Operation, Request};
use std::ops::Range;

/// Operation of a call or of a ring request on a range of a volume.
#[derive(Clone)]
pub(super) struct RigTransfer {
    volume: RigVolume,
    operation: Operation,
    /// Byte range of the volume. Empty for a flush.
    full_range: Range<u64>,
    part_range: Range<u64>,
}

impl Rig {
    /// Begins an operation on a byte range of a volume. Returns None if the drive has no work: for
    /// an empty range, and for a flush of a drive without a volatile cache.
    pub(super) fn begin_transfer(
        &self,
        volume: RigVolume,
        operation: Operation,
        all: Range<u64>,
    ) -> Option<RigTransfer> {
        let has_work = match operation {
            Operation::Flush => {
                let device = self.volumes.partition(volume.number).drive;
                self.drives
                    .borrow()
                    .all_drives
                    .drive_at(device)
                    .has_write_back_cache()
            }
            _ => !all.is_empty(),
        };
        let mut transfer = RigTransfer {
            volume,
            operation,
            part_range: all.start..all.start,
            full_range: all,
        };
        self.take_next_part(&mut transfer);
        has_work.then_some(transfer)
    }

    /// Advances the transfer to its next drive request. Returns false if the last one was the end.
    pub(super) fn next_part(&self, transfer: &mut RigTransfer) -> bool {
        self.take_next_part(transfer);
        !transfer.part_range.is_empty()
    }

    /// Selects the range of the next drive request: the whole rest, up to the size limit of the
    /// drive's commands.
    fn take_next_part(&self, transfer: &mut RigTransfer) {
        let partition = self.volumes.partition(transfer.volume.number);
        let most = match transfer.operation {
            Operation::Read | Operation::Write { .. } => self
                .drives
                .borrow()
                .all_drives
                .drive_at(partition.drive)
                .request_bytes_max(),
            Operation::Flush | Operation::Discard | Operation::WriteZeroes => None,
        };
        let most = most.map_or(u64::MAX, |most| most as u64);
        let start = transfer.part_range.end;
        transfer.part_range = start..transfer.full_range.end.min(start.saturating_add(most));
    }

    /// Submits the current drive request of a transfer.
    pub(super) fn issue_part(
        &self,
        worker: &RigWorker,
        transfer: &RigTransfer,
        owner: TransferOwner,
    ) {
        let RigTransfer {
            volume,
            operation,
            part_range: part,
            ..
        } = transfer;
        if *operation == Operation::Read {
            worker
                .stage_account
                .count_storage_read(part.end - part.start);
        }
        let partition = self.volumes.partition(volume.number);
        let sector_bytes = u64::from(partition.sector_bytes);
        let request = Request {
            operation: *operation,
            device: partition.drive,
            sector: partition.first_sector + part.start / sector_bytes,
            sectors: ((part.end - part.start) / sector_bytes) as u32,
            ..Request::default()
        };
        self.issue_request(request, owner);
    }

    /// Copies the data of the current drive request between a ring's slot and the medium.
    pub(super) fn copy_part(&self, transfer: &RigTransfer, (ring, slot): (&RingState, u32)) {
        let RigTransfer {
            volume,
            full_range: all,
            part_range: part,
            ..
        } = transfer;
        let within = (part.start - all.start) as usize..(part.end - all.start) as usize;
        let contents = &mut ring.contents_of_slot(slot).borrow_mut();
        self.volumes
            .with_contents(volume.number, |medium| match transfer.operation {
                Operation::Read => {
                    if let Some(into) = contents.get_mut(within) {
                        medium.read_bytes(part.start, into);
                    }
                }
                Operation::Write { .. } => {
                    let data = contents.get(within.clone());
                    medium.write_bytes(part.start, data.unwrap_or(&ring.write_bytes()[within]));
                }
                Operation::Discard | Operation::WriteZeroes => medium.zero_range(part.clone()),
                Operation::Flush => {}
            });
    }
}

impl RigTransfer {
    /// Returns the number of transferred bytes that the program sees. Zero for a flush or a
    /// discard.
    pub(super) fn transferred_bytes(&self) -> u64 {
        match self.operation {
            Operation::Read | Operation::Write { .. } => {
                self.full_range.end - self.full_range.start
            }
            Operation::Flush | Operation::Discard | Operation::WriteZeroes => 0,
        }
    }
}
