//! A host with nothing but a disk: it asks, waits, and pauses.

use crate::hardware::{Operation, Request, RequestId, Requests, moment};
use diskperf_device::WhatIf;
use diskperf_device::disk::device::{Disk, DiskSpecification};
use diskperf_device::disk::spindle::Turn;
use diskperf_sim::{Streams, Time};
use diskperf_timeline::trace::TracedArm;

/// What is asked for at once.
const BLOCK_BYTES: u64 = 4096;

/// A disk in a closed loop.
pub struct Host {
    disk: Disk,
    requests: Requests,
    now: Time,
    /// Sectors of a block.
    sectors: u64,
}

impl Host {
    /// A disk that nobody has asked for anything, whose platters are at this angle.
    ///
    /// # Panics
    ///
    /// When the specification was not checked.
    pub fn new(specification: &DiskSpecification, phase: Turn) -> Self {
        let disk = Disk::new(specification, phase).expect("a specification that was checked");
        Self {
            sectors: (BLOCK_BYTES / u64::from(disk.sector_bytes())).max(1),
            disk,
            requests: Requests::default(),
            now: Time::ZERO,
        }
    }

    /// The same, with something supposed of the disk.
    #[must_use]
    pub fn supposing(mut self, what_if: WhatIf) -> Self {
        self.disk = self.disk.supposing(what_if);
        self
    }

    /// Has the disk record what its arm does for no command, for [`Self::recorded`].
    pub fn record(&mut self) {
        self.disk.record();
    }

    /// What was recorded so far.
    pub fn recorded(&mut self) -> Vec<TracedArm> {
        self.disk.take_recorded(self.now, 0)
    }

    /// The present moment.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The disk.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Blocks of 4 KiB.
    pub fn blocks(&self) -> u64 {
        self.disk.sectors() / self.sectors
    }

    /// Asks for blocks.
    ///
    /// # Panics
    ///
    /// When the disk takes no more commands.
    pub fn ask(&mut self, operation: Operation, block: u64, blocks: u64) -> RequestId {
        let sectors = (blocks * self.sectors) as u32;
        self.ask_sectors(operation, block * self.sectors, sectors)
    }

    /// The same, for sectors.
    ///
    /// # Panics
    ///
    /// When the disk takes no more commands.
    pub fn ask_sectors(&mut self, operation: Operation, sector: u64, sectors: u32) -> RequestId {
        let mut request = Request {
            operation,
            sector,
            sectors,
            ..Request::default()
        };
        request.spans.issue(moment(self.now));
        let id = self.requests.issue(request);
        self.disk.take(self.now, &mut self.requests, id);
        id
    }

    /// Waits until something is done, and takes it.
    ///
    /// # Panics
    ///
    /// When nothing is under way.
    pub fn wait(&mut self) -> Request {
        while !self.disk.has_done() {
            self.now = self.disk.next_event().expect("a command is under way");
            self.disk.advance(self.now, &mut self.requests);
        }
        let id = self.disk.take_done().expect("one is done");
        self.requests.take(id)
    }

    /// Asks for blocks and waits for them.
    pub fn one(&mut self, operation: Operation, block: u64, blocks: u64) {
        self.ask(operation, block, blocks);
        self.wait();
    }

    /// Asks for nothing for some time.
    pub fn pause(&mut self, time: Time) {
        let until = self.now + time;
        while let Some(next) = self.disk.next_event().filter(|next| *next <= until) {
            self.disk.advance(next, &mut self.requests);
        }
        self.now = until;
    }

    /// Mean time between completions of 4 KiB at random, in ms, once `before` are done.
    pub fn random_ms(
        &mut self,
        (operation, seed): (Operation, u64),
        depth: u64,
        (before, count): (u64, u64),
    ) -> f64 {
        let mut draws = Streams::new(seed).stream("blocks");
        let blocks = self.blocks();
        for _ in 0..depth {
            self.ask(operation, draws.below(blocks), 1);
        }
        let mut begun = self.now;
        for done in 0..before + count {
            if done == before {
                begun = self.now;
            }
            self.wait();
            self.ask(operation, draws.below(blocks), 1);
        }
        (self.now - begun).millis() / count as f64
    }
}
