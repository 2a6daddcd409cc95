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
use super::errno::Result;
use super::process::Process;
use crate::written::Written;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// What a request of a ring does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingOperation {
    /// read(2), at an offset.
    Read,
    /// write(2), at an offset.
    Write,
    /// fsync(2).
    Fsync,
    /// Gives a range up: these kernels have no way to.
    Discard,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingRequest {
    /// What it does.
    pub operation: RingOperation,
    /// The number of the file, which was named when the ring was opened.
    pub file: usize,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// How much, in bytes.
    pub bytes: u32,
    /// The slot, which no other request has.
    pub slot: u32,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingCompletion {
    /// The slot that it had.
    pub slot: u32,
    /// Bytes moved, or what it failed with.
    pub result: Result<u32>,
}

/// What a ring is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSize {
    /// Requests under way at once, at most.
    pub depth: u32,
    /// The most that one reads or writes, in bytes.
    pub buffer_bytes: u32,
}

/// The requests of a ring, between the process whose it is and its daemons.
pub(crate) struct Requests {
    process: Rc<Process>,
    slots: Vec<Slot>,
    /// Bytes that are written of slots without contents.
    data: Rc<[u8]>,
    /// Contents of each slot's buffer, while the process lends them; else empty.
    contents: Vec<RefCell<Vec<u8>>>,
    under_way: Cell<usize>,
    done: RefCell<VecDeque<RingCompletion>>,
    /// How many completions the process sleeps for; 0 if it does not.
    wanted: Cell<usize>,
    /// Whose completion woke it.
    woken_by: Cell<Option<u32>>,
    /// Daemons that have come to wait for their first request.
    there: Cell<usize>,
    closing: Cell<bool>,
}

struct Slot {
    daemon: Rc<Process>,
    request: Cell<Option<RingRequest>>,
    is_under_way: Cell<bool>,
}

/// What the bytes are that a ring writes.
pub(crate) const WRITTEN: u8 = 0xa5;

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
            data: vec![WRITTEN; size.buffer_bytes as usize].into(),
            contents: (0..size.depth).map(|_| RefCell::default()).collect(),
            under_way: Cell::new(0),
            done: RefCell::default(),
            wanted: Cell::new(0),
            woken_by: Cell::new(None),
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

    /// Bytes that a request writes whose slot has no contents.
    pub(crate) fn data(&self, request: RingRequest) -> Written<'_> {
        Written::kept(&self.data).part(0..request.bytes as usize)
    }

    /// Contents of a slot's buffer; empty where the process lends none.
    pub(crate) fn contents(&self, slot: u32) -> &RefCell<Vec<u8>> {
        &self.contents[slot as usize]
    }

    /// Puts what a request read into the contents of its slot, if it has any.
    pub(crate) fn keep_read(&self, slot: u32, read: &[u8]) {
        let mut contents = self.contents(slot).borrow_mut();
        if let Some(front) = contents.get_mut(..read.len()) {
            front.copy_from_slice(read);
        }
    }

    /// Takes what is complete.
    pub(crate) fn take_done(&self, into: &mut Vec<RingCompletion>) {
        into.extend(self.done.borrow_mut().drain(..));
    }

    /// Requests that are not complete.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.get()
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
        assert!(
            request.operation == RingOperation::Discard
                || request.bytes as usize <= ring.data.len(),
            "{} bytes in a buffer of {}",
            request.bytes,
            ring.data.len()
        );
        slot.request.set(Some(request));
        ring.under_way.set(ring.under_way.get() + 1);
        slot.daemon.open_account(self.sim.now());
        self.wake(&slot.daemon);
    }

    /// A daemon has done with a request: the process is woken, if that is what it sleeps
    /// for.
    pub(crate) fn complete(&self, ring: &Requests, slot: u32, result: Result<usize>) {
        let result = result.map(|bytes| bytes as u32);
        ring.slot(slot).is_under_way.set(false);
        ring.under_way.set(ring.under_way.get() - 1);
        let done = {
            let mut done = ring.done.borrow_mut();
            done.push_back(RingCompletion { slot, result });
            done.len()
        };
        if (1..=done).contains(&ring.wanted.get()) {
            ring.wanted.set(0);
            ring.woken_by.set(Some(slot));
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
        let done = ring.done.borrow().len();
        let wanted = match until {
            Some(_) => at_least,
            None => at_least.min(done + ring.under_way()),
        };
        let from = self.sim.now();
        if done >= wanted || until.is_some_and(|until| until <= from) {
            return;
        }
        ring.wanted.set(wanted);
        ring.woken_by.set(None);
        let process = &ring.process;
        let give_up = || ring.wanted.replace(0) > 0;
        self.park_until(process, "its requests", (until, give_up))
            .await;
        let to = process.runnable_at();
        match ring.woken_by.take() {
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
