//! A range of a volume that a drive moves, by one request after the other.

use super::session::Volume;
use super::{Owner, Rig, Worker};
use crate::ring::RingState;
use diskperf_device::{Operation, Request};
use std::ops::Range;

/// What a call or a submission asks of a drive.
#[derive(Clone)]
pub(super) struct Transfer {
    volume: Volume,
    operation: Operation,
    /// Bytes of the volume; none of a flush.
    all: Range<u64>,
    /// Those of the present request.
    part: Range<u64>,
}

impl Rig {
    /// The transfer of a range of a volume, in bytes; none where the drive has nothing to do:
    /// of no bytes, and a flush of a drive that keeps no writes.
    pub(super) fn begin_transfer(
        &self,
        volume: Volume,
        operation: Operation,
        all: Range<u64>,
    ) -> Option<Transfer> {
        let has_work = match operation {
            Operation::Flush => {
                let device = self.volumes.partition(volume.number).drive;
                self.drives.borrow().all.get(device).keeps_writes()
            }
            _ => !all.is_empty(),
        };
        let mut transfer = Transfer {
            volume,
            operation,
            part: all.start..all.start,
            all,
        };
        self.take_part(&mut transfer);
        has_work.then_some(transfer)
    }

    /// The request that is done is followed by another; false if it was the last.
    pub(super) fn next_part(&self, transfer: &mut Transfer) -> bool {
        self.take_part(transfer);
        !transfer.part.is_empty()
    }

    /// Goes on to what the next request moves: all that is left, unless commands of the drive
    /// move less.
    fn take_part(&self, transfer: &mut Transfer) {
        let partition = self.volumes.partition(transfer.volume.number);
        let most = match transfer.operation {
            Operation::Read | Operation::Write { .. } => {
                self.drives.borrow().all.get(partition.drive).most_bytes()
            }
            Operation::Flush | Operation::Discard | Operation::WriteZeroes => None,
        };
        let most = most.map_or(u64::MAX, |most| most as u64);
        let start = transfer.part.end;
        transfer.part = start..transfer.all.end.min(start.saturating_add(most));
    }

    /// Issues the present request of a transfer.
    pub(super) fn issue_part(&self, worker: &Worker, transfer: &Transfer, owner: Owner) {
        let Transfer {
            volume,
            operation,
            part,
            ..
        } = transfer;
        if *operation == Operation::Read {
            worker.books.count_storage_read(part.end - part.start);
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
        self.issue(request, owner);
    }

    /// Moves the data of the present request, between the contents of a ring's slot and the
    /// medium.
    pub(super) fn move_part(&self, transfer: &Transfer, (ring, slot): (&RingState, u32)) {
        let Transfer {
            volume, all, part, ..
        } = transfer;
        let within = (part.start - all.start) as usize..(part.end - all.start) as usize;
        let contents = &mut ring.contents(slot).borrow_mut();
        self.volumes
            .medium(volume.number, |medium| match transfer.operation {
                Operation::Read => {
                    if let Some(into) = contents.get_mut(within) {
                        medium.read_bytes(part.start, into);
                    }
                }
                Operation::Write { .. } => {
                    let data = contents.get(within.clone());
                    medium.write_bytes(part.start, data.unwrap_or(&ring.bytes()[within]));
                }
                Operation::Discard | Operation::WriteZeroes => medium.forget(part.clone()),
                Operation::Flush => {}
            });
    }
}

impl Transfer {
    /// Bytes that a program learns were moved.
    pub(super) fn moved_bytes(&self) -> u64 {
        match self.operation {
            Operation::Read | Operation::Write { .. } => self.all.end - self.all.start,
            Operation::Flush | Operation::Discard | Operation::WriteZeroes => 0,
        }
    }
}
