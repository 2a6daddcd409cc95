//! Several requests of a program in flight at once: what every ring has, whoever carries its
//! requests out.
//!
//! Data that is read goes nowhere, and what is written is always the same bytes, but for a
//! slot whose contents the program lends for its request.

use crate::errno::Result;
use crate::written::Written;
use diskperf_sim::Time;
use std::cell::{Cell, RefCell};
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
    /// Gives a range up: kernels of the day have no way to.
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

/// Depth and buffer size of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSize {
    /// Requests under way at once, at most.
    pub depth: u32,
    /// The most that one reads or writes, in bytes.
    pub buffer_bytes: u32,
}

/// Contents of the bytes that a ring writes.
const WRITTEN: u8 = 0xa5;

/// Buffers and completions of a ring, and the program's wait for them.
pub(crate) struct RingState {
    /// Bytes that are written of slots without contents.
    data: Rc<[u8]>,
    /// Contents of each slot's buffer, while the program lends them; else empty.
    contents: Vec<RefCell<Vec<u8>>>,
    in_flight: Cell<usize>,
    done: RefCell<Vec<RingCompletion>>,
    /// Completions that the program waits for; 0 if it does not.
    wanted: Cell<usize>,
    /// The slot whose completion ended its wait.
    woken_by: Cell<Option<u32>>,
}

impl RingState {
    pub(crate) fn new(size: RingSize) -> Self {
        Self {
            data: vec![WRITTEN; size.buffer_bytes as usize].into(),
            contents: (0..size.depth).map(|_| RefCell::default()).collect(),
            in_flight: Cell::new(0),
            done: RefCell::default(),
            wanted: Cell::new(0),
            woken_by: Cell::new(None),
        }
    }

    /// Bytes that a request writes whose slot has no contents.
    pub(crate) fn data(&self, request: RingRequest) -> Written<'_> {
        Written::kept(&self.data).part(0..request.bytes as usize)
    }

    /// All bytes that slots without contents write.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// Contents of a slot's buffer; empty where the program lends none.
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
        into.append(&mut self.done.borrow_mut());
    }

    /// Requests that are not complete.
    pub(crate) fn under_way(&self) -> usize {
        self.in_flight.get()
    }

    /// A request is in flight from now on.
    ///
    /// # Panics
    ///
    /// When it is larger than its buffer.
    pub(crate) fn admit(&self, request: RingRequest) {
        assert!(
            request.operation == RingOperation::Discard
                || request.bytes as usize <= self.data.len(),
            "{} bytes in a buffer of {}",
            request.bytes,
            self.data.len()
        );
        self.in_flight.set(self.in_flight.get() + 1);
    }

    /// A request is complete; whether the program is to be woken, because that is what it
    /// waits for.
    pub(crate) fn complete(&self, slot: u32, result: Result<u32>) -> bool {
        self.in_flight.set(self.in_flight.get() - 1);
        let done = {
            let mut done = self.done.borrow_mut();
            done.push(RingCompletion { slot, result });
            done.len()
        };
        let wakes = (1..=done).contains(&self.wanted.get());
        if wakes {
            self.wanted.set(0);
            self.woken_by.set(Some(slot));
        }
        wakes
    }

    /// The program begins to wait until so many requests are complete, at most until a
    /// moment; false if it need not. Without a moment, no more are waited for than there are.
    pub(crate) fn begin_wait(&self, (at_least, until): (usize, Option<Time>), now: Time) -> bool {
        let done = self.done.borrow().len();
        let wanted = match until {
            Some(_) => at_least,
            None => at_least.min(done + self.under_way()),
        };
        if done >= wanted || until.is_some_and(|until| until <= now) {
            return false;
        }
        self.wanted.set(wanted);
        self.woken_by.set(None);
        true
    }

    /// The program waits no longer; false if it was woken before.
    pub(crate) fn give_up(&self) -> bool {
        self.wanted.replace(0) > 0
    }

    /// The slot whose completion ended the last wait, once.
    pub(crate) fn woken_by(&self) -> Option<u32> {
        self.woken_by.take()
    }
}
