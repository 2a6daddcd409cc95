//! Ring of requests: several requests of one program in flight. This module holds the state that is
//! common to the rings of all kernels.
//!
//! Read data are dropped and written data are constant, except for a slot whose buffer contents the
//! program lends for its request.

use crate::errno::Result;
use crate::written::WriteData;
use diskperf_sim::Time;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Operation of a ring request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingOperation {
    /// Read at an offset, as read(2).
    Read,
    /// Write at an offset, as write(2).
    Write,
    /// Flush of a file, as fsync(2).
    Fsync,
    /// Discard (TRIM) of a range, which kernels of the time do not support.
    Discard,
}

/// Request in a ring: operation, file, range and slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingRequest {
    /// Operation of the ring request: read, write, flush or discard.
    pub operation: RingOperation,
    /// Number of the file among those given when the ring was opened.
    pub file_number: usize,
    /// Offset in the file, in bytes.
    pub offset_bytes: u64,
    /// Size of the request, in bytes.
    pub bytes: u32,
    /// Slot of the request, which no other request in flight uses.
    pub slot: u32,
}

/// Completion of a ring request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingCompletion {
    /// Slot of the completed request.
    pub slot: u32,
    /// Bytes transferred, or the error number.
    pub result: Result<u32>,
}

/// Depth and buffer size of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSize {
    /// Maximum number of requests in flight.
    pub queue_depth: u32,
    /// Maximum size of a read or write, in bytes.
    pub buffer_bytes: u32,
}

/// Value of each byte that a ring writes from a slot without contents.
const WRITE_FILL_BYTE: u8 = 0xa5;

/// Buffers and completions of a ring, and the program's wait for completions.
pub(crate) struct RingState {
    /// Data that slots without contents write.
    write_data: Rc<[u8]>,
    /// Contents of each slot's buffer, while the program lends them. Empty otherwise.
    slot_contents: Vec<RefCell<Vec<u8>>>,
    in_flight_requests: Cell<usize>,
    completions: RefCell<Vec<RingCompletion>>,
    /// Number of completions that the program waits for; 0 if it does not wait.
    awaited_completions: Cell<usize>,
    woken_by_slot: Cell<Option<u32>>,
}

impl RingState {
    pub(crate) fn new(size: RingSize) -> Self {
        Self {
            write_data: vec![WRITE_FILL_BYTE; size.buffer_bytes as usize].into(),
            slot_contents: (0..size.queue_depth).map(|_| RefCell::default()).collect(),
            in_flight_requests: Cell::new(0),
            completions: RefCell::default(),
            awaited_completions: Cell::new(0),
            woken_by_slot: Cell::new(None),
        }
    }

    /// Returns the data that a request writes if its slot has no contents.
    pub(crate) fn write_data_of(&self, request: RingRequest) -> WriteData<'_> {
        WriteData::from_kept_buffer(&self.write_data).subrange(0..request.bytes as usize)
    }

    /// Constant data that slots without contents write.
    pub(crate) fn write_bytes(&self) -> &[u8] {
        &self.write_data
    }

    /// Contents of a slot's buffer. Empty if the program lends none.
    pub(crate) fn contents_of_slot(&self, slot: u32) -> &RefCell<Vec<u8>> {
        &self.slot_contents[slot as usize]
    }

    /// Copies read data into the contents of a slot's buffer, if the program lends them.
    pub(crate) fn store_read_data(&self, slot: u32, read: &[u8]) {
        let mut contents = self.contents_of_slot(slot).borrow_mut();
        if let Some(front) = contents.get_mut(..read.len()) {
            front.copy_from_slice(read);
        }
    }

    /// Moves all completions of the ring into a list.
    pub(crate) fn take_completions(&self, into: &mut Vec<RingCompletion>) {
        into.append(&mut self.completions.borrow_mut());
    }

    pub(crate) fn in_flight_count(&self) -> usize {
        self.in_flight_requests.get()
    }

    /// Counts a request as in flight.
    ///
    /// # Panics
    ///
    /// If the request is larger than its buffer.
    pub(crate) fn admit_request(&self, request: RingRequest) {
        assert!(
            request.operation == RingOperation::Discard
                || request.bytes as usize <= self.write_data.len(),
            "{} bytes in a buffer of {}",
            request.bytes,
            self.write_data.len()
        );
        self.in_flight_requests
            .set(self.in_flight_requests.get() + 1);
    }

    /// Records the completion of a request. Returns whether the program must be woken, because it
    /// waits for this completion.
    pub(crate) fn complete_request(&self, slot: u32, result: Result<u32>) -> bool {
        self.in_flight_requests
            .set(self.in_flight_requests.get() - 1);
        let done = {
            let mut done = self.completions.borrow_mut();
            done.push(RingCompletion { slot, result });
            done.len()
        };
        let wakes = (1..=done).contains(&self.awaited_completions.get());
        if wakes {
            self.awaited_completions.set(0);
            self.woken_by_slot.set(Some(slot));
        }
        wakes
    }

    /// Begins the program's wait for `at_least` completions, at most until a deadline. Returns
    /// false if it need not wait. Without a deadline, the wait is for no more completions than
    /// there are requests.
    pub(crate) fn begin_completion_wait(
        &self,
        (at_least, until): (usize, Option<Time>),
        now: Time,
    ) -> bool {
        let done = self.completions.borrow().len();
        let wanted = match until {
            Some(_) => at_least,
            None => at_least.min(done + self.in_flight_count()),
        };
        if done >= wanted || until.is_some_and(|until| until <= now) {
            return false;
        }
        self.awaited_completions.set(wanted);
        self.woken_by_slot.set(None);
        true
    }

    /// Ends the program's wait. Returns false if the program was woken before.
    pub(crate) fn cancel_completion_wait(&self) -> bool {
        self.awaited_completions.replace(0) > 0
    }

    /// Takes the slot whose completion ended the last wait.
    pub(crate) fn woken_by_slot(&self) -> Option<u32> {
        self.woken_by_slot.take()
    }
}
