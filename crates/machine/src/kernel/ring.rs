//! Several requests of a process under way at once, which no kernel of the day had: an
//! extension of each of them, made of what they have.
//!
//! A request is carried out by a daemon of its own, as `biod` and `nfsd` do it for others:
//! a process that sleeps in the kernel until it is handed a request, goes the way that
//! read(2), write(2) and fsync(2) go, at the request's offset, and says when that is done.
//! The daemons are there when the ring is open; making them is no part of what is measured.
//! What it costs is what the kernel's routines cost: the one who submits enters the kernel
//! and looks the file up, the daemon wakes, does the work and moves the data, and the one
//! who waits enters the kernel, and wakes. What several daemons of one file keep each other
//! from (the lock of an inode, the one server of Minix), they keep each other from here.
//!
//! Data that is read goes nowhere, and what is written is always the same bytes, but for a
//! slot whose contents the process lends for its request.

pub(crate) mod unix;

use super::computer::Computer;
use super::process::Process;
use crate::errno::Result;
use crate::ring::{RingRequest, RingSize, RingState};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

/// The requests of a ring, between the process whose it is and its daemons.
pub(crate) struct Requests {
    process: Rc<Process>,
    slots: Vec<Slot>,
    state: RingState,
    /// Daemons that have come to wait for their first request.
    there: Cell<usize>,
    closing: Cell<bool>,
}

struct Slot {
    daemon: Rc<Process>,
    request: Cell<Option<RingRequest>>,
    is_under_way: Cell<bool>,
}

impl Requests {
    pub(crate) fn new(process: &Rc<Process>, size: RingSize) -> Self {
        let slot = |_| Slot {
            daemon: Process::working_for(process),
            request: Cell::new(None),
            is_under_way: Cell::new(false),
        };
        Self {
            process: Rc::clone(process),
            slots: (0..size.depth).map(slot).collect(),
            state: RingState::new(size),
            there: Cell::new(0),
            closing: Cell::new(false),
        }
    }

    fn slot(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    /// The daemon of a slot.
    pub(crate) fn daemon(&self, slot: u32) -> &Rc<Process> {
        &self.slot(slot).daemon
    }
}

impl Deref for Requests {
    type Target = RingState;

    fn deref(&self) -> &RingState {
        &self.state
    }
}

impl Computer {
    /// Sleeps until every daemon of a ring waits for its first request.
    pub(crate) async fn await_daemons(&self, ring: &Requests) {
        while ring.there.get() < ring.slots.len() {
            let from = self.sim.now();
            self.park(&ring.process, "its daemons to be there").await;
            ring.process.book_cpu_wait(from, ring.process.runnable_at());
        }
    }

    /// A daemon waits for its request; none when the ring is closed.
    pub(crate) async fn next_request(&self, ring: &Requests, slot: u32) -> Option<RingRequest> {
        let of = ring.slot(slot);
        if ring.there.get() < ring.slots.len() {
            ring.there.set(ring.there.get() + 1);
            if ring.there.get() == ring.slots.len() {
                self.wake(&ring.process);
            }
        }
        if !ring.closing.get() {
            self.park(&of.daemon, "a request").await;
        }
        of.request.take()
    }

    /// Hands a request to its daemon, whose errand begins with it.
    ///
    /// # Panics
    ///
    /// When the slot is under way, or the request larger than its buffer.
    pub(crate) fn hand_over(&self, ring: &Requests, request: RingRequest) {
        let slot = ring.slot(request.slot);
        assert!(
            !slot.is_under_way.replace(true),
            "slot {} is under way",
            request.slot
        );
        ring.admit(request);
        slot.request.set(Some(request));
        slot.daemon.open_account(self.sim.now());
        self.wake(&slot.daemon);
    }

    /// A daemon has done with a request: the process is woken, if that is what it sleeps
    /// for.
    pub(crate) fn complete(&self, ring: &Requests, slot: u32, result: Result<usize>) {
        ring.slot(slot).is_under_way.set(false);
        if ring.state.complete(slot, result.map(|bytes| bytes as u32)) {
            self.wake(&ring.process);
        }
    }

    /// Sleeps until so many requests are complete, at most until a moment. Without one,
    /// no more are waited for than there are.
    pub(crate) async fn await_completions(
        &self,
        ring: &Requests,
        at_least: usize,
        until: Option<Time>,
    ) {
        let from = self.sim.now();
        if !ring.begin_wait((at_least, until), from) {
            return;
        }
        let process = &ring.process;
        self.park_until(process, "its requests", (until, || ring.give_up()))
            .await;
        let to = process.runnable_at();
        match ring.woken_by() {
            Some(slot) => process.book_daemon(ring.daemon(slot), from, to),
            // Nothing came that it would have waited for.
            None => process.book(Stage::Think, to, to - from),
        }
    }

    /// Has the daemons of a ring end, none of which has anything to do.
    pub(crate) fn dismiss(&self, ring: &Requests) {
        assert!(ring.under_way() == 0, "a ring is closed when it is empty");
        ring.closing.set(true);
        for slot in &ring.slots {
            slot.daemon.open_account(self.sim.now());
            self.wake(&slot.daemon);
        }
    }
}
