//! A channel: pages from registers to the controller, and data of programs the other way.
//!
//! Data of a program go page by page, so that a read for the host waits for one page at most:
//! it goes before all others, which come in turn after a few of them.

use diskperf_sim::Time;
use std::collections::VecDeque;

/// Reads for the host that go before others which wait: as many units as a page of 16 KiB has.
const MOST_PASSING: u32 = 4;

/// What crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// What a page read brought.
    Read(u32),
    /// The data of a program.
    Program(u32),
}

/// What crosses now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) load: Load,
    pub(super) from: Time,
    pub(super) ends: Time,
    /// Of a program, what one page takes.
    page: Time,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Channel {
    now: Option<Transfer>,
    /// For the host.
    reads: VecDeque<(u32, Time)>,
    /// Programs, and reads of the drive itself.
    others: VecDeque<Queued>,
    /// Reads for the host that have crossed since others wait.
    passed: u32,
    pub(super) generation: u32,
    busy: Time,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    load: Load,
    /// What it takes, of a program each page.
    takes: Time,
    pages: u32,
}

impl Channel {
    /// The power fails: it carries nothing.
    pub(super) fn lose_power(&mut self) {
        *self = Self {
            generation: self.generation + 1,
            busy: self.busy,
            ..Self::default()
        };
    }

    /// How long it has been carrying something.
    pub(super) fn busy(&self) -> Time {
        self.busy
    }

    /// What crosses now.
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

    /// A read of the drive itself keeps a register from one for the host: it crosses as that
    /// would, unless it does already.
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

    /// Begins with what is next, or has a program's data stop behind a page for a read;
    /// gives when the transfer ends if that is new.
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
        let takes_turns = self.passed >= MOST_PASSING && !self.others.is_empty();
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

    /// The transfer is over; whether all of what crossed has.
    pub(super) fn end(&mut self) -> (Transfer, bool) {
        let transfer = self.now.take().expect("something crosses");
        self.busy += transfer.ends - transfer.from;
        let left = self.others.front().map(|queued| queued.load);
        (transfer, left != Some(transfer.load))
    }
}
