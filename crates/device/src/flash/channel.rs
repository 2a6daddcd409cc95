//! Channel of a flash drive: transfers pages from die registers to the controller, and program data
//! to dies.
//!
//! Program data cross page by page, so a host read waits for one page at most. Host reads have
//! precedence over other transfers; after a few of them, another transfer gets its turn.

use diskperf_sim::Time;
use std::collections::VecDeque;

/// Maximum number of host reads that pass a waiting transfer of another kind: as many as a page of
/// 16 KiB has mapping units.
const PASSING_READS_MAX: u32 = 4;

/// Data of a channel transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// Data of a page read; holds the index of the read operation.
    Read(u32),
    /// Data of a program; holds the index of the program.
    Program(u32),
}

/// Current transfer of a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) load: Load,
    pub(super) from: Time,
    pub(super) ends: Time,
    /// Transfer time of one page of a program.
    page: Time,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Channel {
    now: Option<Transfer>,
    /// Waiting reads for the host, with their transfer times.
    reads: VecDeque<(u32, Time)>,
    /// Waiting programs, and reads of the drive itself.
    others: VecDeque<Queued>,
    /// Number of host reads that have passed the other transfers since these wait.
    passed: u32,
    pub(super) generation: u32,
    busy: Time,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    load: Load,
    /// Transfer time; of one page, if a program.
    takes: Time,
    pages: u32,
}

impl Channel {
    /// Applies a power cut: aborts all transfers.
    pub(super) fn lose_power(&mut self) {
        *self = Self {
            generation: self.generation + 1,
            busy: self.busy,
            ..Self::default()
        };
    }

    /// Returns the total time of transfers so far.
    pub(super) fn busy(&self) -> Time {
        self.busy
    }

    /// Returns the data in transfer, if any.
    #[inline]
    pub(super) fn carries(&self) -> Option<Load> {
        self.now.map(|transfer| transfer.load)
    }

    pub(super) fn queue_read(&mut self, (op, takes): (u32, Time), is_host: bool) {
        match is_host {
            true => self.reads.push_back((op, takes)),
            false => self.others.push_back(Queued {
                load: Load::Read(op),
                takes,
                pages: 1,
            }),
        }
    }

    /// Gives a waiting internal read the precedence of a host read, because its page occupies a
    /// register that a host read needs.
    pub(super) fn hurry(&mut self, op: u32) {
        let is_it = |queued: &Queued| queued.load == Load::Read(op);
        let place = self.others.iter().position(is_it);
        if let Some(queued) = place.and_then(|place| self.others.remove(place)) {
            self.reads.push_back((op, queued.takes));
        }
    }

    pub(super) fn queue_program(&mut self, program: u32, (page, pages): (Time, u32)) {
        self.others.push_back(Queued {
            load: Load::Program(program),
            takes: page,
            pages,
        });
    }

    /// Starts the next transfer, or interrupts program data at the next page boundary for a host
    /// read. Returns the end of the transfer if it is new or has changed.
    pub(super) fn start(&mut self, now: Time) -> Option<Time> {
        let Some(transfer) = &mut self.now else {
            return self.begin(now);
        };
        let Load::Program(program) = transfer.load else {
            return None;
        };
        if self.reads.is_empty() || transfer.page == Time::ZERO {
            return None;
        }
        let crossed = (now - transfer.from).0.div_ceil(transfer.page.0).max(1);
        let stops = transfer.from + Time(crossed * transfer.page.0);
        if stops >= transfer.ends {
            return None;
        }
        let pages = ((transfer.ends - stops).0 / transfer.page.0) as u32;
        self.others.push_front(Queued {
            load: Load::Program(program),
            takes: transfer.page,
            pages,
        });
        transfer.ends = stops;
        self.generation += 1;
        Some(stops)
    }

    fn begin(&mut self, now: Time) -> Option<Time> {
        let takes_turns = self.passed >= PASSING_READS_MAX && !self.others.is_empty();
        if let Some((op, takes)) = self.reads.front().copied().filter(|_| !takes_turns) {
            self.reads.pop_front();
            self.passed = if self.others.is_empty() {
                0
            } else {
                self.passed + 1
            };
            return Some(self.carry((Load::Read(op), now), takes, takes));
        }
        let queued = self.others.pop_front()?;
        self.passed = 0;
        let mut pages = queued.pages;
        if matches!(queued.load, Load::Program(_)) && pages > 1 && !self.reads.is_empty() {
            self.others.push_front(Queued {
                pages: pages - 1,
                ..queued
            });
            pages = 1;
        }
        let takes = Time(queued.takes.0 * u64::from(pages));
        Some(self.carry((queued.load, now), takes, queued.takes))
    }

    fn carry(&mut self, (load, from): (Load, Time), takes: Time, page: Time) -> Time {
        let ends = from + takes;
        self.now = Some(Transfer {
            load,
            from,
            ends,
            page,
        });
        self.generation += 1;
        ends
    }

    /// Ends the current transfer, and returns it with whether all of its data have crossed.
    pub(super) fn end(&mut self) -> (Transfer, bool) {
        let transfer = self.now.take().expect("something crosses");
        self.busy += transfer.ends - transfer.from;
        let left = self.others.front().map(|queued| queued.load);
        (transfer, left != Some(transfer.load))
    }
}
