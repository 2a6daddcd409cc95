//! Channel of a flash drive: transfers pages from die registers to the controller, and program data
//! to dies.
//!
//! Program data cross page by page, so a host read waits for one page at most. Host reads have
//! precedence over other transfers; after a few of them, another transfer gets its turn.

use diskperf_sim::Time;
use std::collections::VecDeque;

/// Maximum number of host reads that pass a waiting transfer of another kind: as many as a page of
/// 16 KiB has mapping units.
const PASSING_READ_COUNT_MAX: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferPayload {
    /// Data of a page read; holds the index of the read operation.
    Read(u32),
    /// Data of a program; holds the index of the program.
    Program(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ChannelTransfer {
    pub(super) payload: TransferPayload,
    pub(super) start: Time,
    pub(super) end: Time,
    page_end: Time,
}

#[derive(Clone, Debug, Default)]
pub(super) struct FlashChannel {
    current_transfer: Option<ChannelTransfer>,
    /// Waiting reads for the host, with their transfer times.
    queued_host_reads: VecDeque<(u32, Time)>,
    /// Waiting programs, and reads of the drive itself.
    queued_transfers: VecDeque<QueuedTransfer>,
    /// Number of host reads that have passed the other transfers since these wait.
    passing_read_count: u32,
    pub(super) generation: u32,
    busy_time: Time,
}

#[derive(Clone, Copy, Debug)]
struct QueuedTransfer {
    payload: TransferPayload,
    /// Transfer time; of one page, if a program.
    page_time: Time,
    page_count: u32,
}

impl FlashChannel {
    /// Applies a power cut: aborts all transfers.
    pub(super) fn lose_power(&mut self) {
        *self = Self {
            generation: self.generation + 1,
            busy_time: self.busy_time,
            ..Self::default()
        };
    }

    /// Returns the total time of transfers so far.
    pub(super) fn busy_time(&self) -> Time {
        self.busy_time
    }

    #[inline]
    pub(super) fn current_payload(&self) -> Option<TransferPayload> {
        self.current_transfer.map(|transfer| transfer.payload)
    }

    pub(super) fn queue_read(&mut self, (op, takes): (u32, Time), is_host: bool) {
        match is_host {
            true => self.queued_host_reads.push_back((op, takes)),
            false => self.queued_transfers.push_back(QueuedTransfer {
                payload: TransferPayload::Read(op),
                page_time: takes,
                page_count: 1,
            }),
        }
    }

    /// Gives a waiting internal read the precedence of a host read, because its page occupies a
    /// register that a host read needs.
    pub(super) fn move_read_forward(&mut self, op: u32) {
        let is_it = |queued: &QueuedTransfer| queued.payload == TransferPayload::Read(op);
        let place = self.queued_transfers.iter().position(is_it);
        if let Some(queued) = place.and_then(|place| self.queued_transfers.remove(place)) {
            self.queued_host_reads.push_back((op, queued.page_time));
        }
    }

    pub(super) fn queue_program(&mut self, program: u32, (page, pages): (Time, u32)) {
        self.queued_transfers.push_back(QueuedTransfer {
            payload: TransferPayload::Program(program),
            page_time: page,
            page_count: pages,
        });
    }

    /// Starts the next transfer, or interrupts program data at the next page boundary for a host
    /// read. Returns the end of the transfer if it is new or has changed.
    pub(super) fn start_next(&mut self, now: Time) -> Option<Time> {
        let Some(transfer) = &mut self.current_transfer else {
            return self.begin_next(now);
        };
        let TransferPayload::Program(program) = transfer.payload else {
            return None;
        };
        if self.queued_host_reads.is_empty() || transfer.page_end == Time::ZERO {
            return None;
        }
        let crossed = (now - transfer.start)
            .0
            .div_ceil(transfer.page_end.0)
            .max(1);
        let stops = transfer.start + Time(crossed * transfer.page_end.0);
        if stops >= transfer.end {
            return None;
        }
        let pages = ((transfer.end - stops).0 / transfer.page_end.0) as u32;
        self.queued_transfers.push_front(QueuedTransfer {
            payload: TransferPayload::Program(program),
            page_time: transfer.page_end,
            page_count: pages,
        });
        transfer.end = stops;
        self.generation += 1;
        Some(stops)
    }

    fn begin_next(&mut self, now: Time) -> Option<Time> {
        let takes_turns =
            self.passing_read_count >= PASSING_READ_COUNT_MAX && !self.queued_transfers.is_empty();
        if let Some((op, takes)) = self
            .queued_host_reads
            .front()
            .copied()
            .filter(|_| !takes_turns)
        {
            self.queued_host_reads.pop_front();
            self.passing_read_count = if self.queued_transfers.is_empty() {
                0
            } else {
                self.passing_read_count + 1
            };
            return Some(self.begin_transfer((TransferPayload::Read(op), now), takes, takes));
        }
        let queued = self.queued_transfers.pop_front()?;
        self.passing_read_count = 0;
        let mut pages = queued.page_count;
        if matches!(queued.payload, TransferPayload::Program(_))
            && pages > 1
            && !self.queued_host_reads.is_empty()
        {
            self.queued_transfers.push_front(QueuedTransfer {
                page_count: pages - 1,
                ..queued
            });
            pages = 1;
        }
        let takes = Time(queued.page_time.0 * u64::from(pages));
        Some(self.begin_transfer((queued.payload, now), takes, queued.page_time))
    }

    fn begin_transfer(
        &mut self,
        (load, from): (TransferPayload, Time),
        takes: Time,
        page: Time,
    ) -> Time {
        let ends = from + takes;
        self.current_transfer = Some(ChannelTransfer {
            payload: load,
            start: from,
            end: ends,
            page_end: page,
        });
        self.generation += 1;
        ends
    }

    /// Ends the current transfer, and returns it with whether all of its data have crossed.
    pub(super) fn end_transfer(&mut self) -> (ChannelTransfer, bool) {
        let transfer = self.current_transfer.take().expect("something crosses");
        self.busy_time += transfer.end - transfer.start;
        let left = self.queued_transfers.front().map(|queued| queued.payload);
        (transfer, left != Some(transfer.payload))
    }
}
