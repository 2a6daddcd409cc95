//! Several requests of a program in flight, each in a slot of its own: what a drive's queue
//! is for.

use super::session::{OpenFile, RigSession, What};
use super::transfer::Transfer;
use super::{Owner, Rig, Worker};
use crate::errno::{Errno, Result};
use crate::ring::{RingCompletion, RingOperation, RingRequest, RingSize, RingState};
use diskperf_device::Operation;
use diskperf_sim::Time;
use diskperf_timeline::{Request as Spans, Stage};
use std::cell::RefCell;
use std::rc::Rc;

/// The requests of a program.
pub(crate) struct Ring {
    worker: Rc<Worker>,
    /// Open files that requests may name, each with its descriptor.
    files: Vec<(usize, OpenFile)>,
    slots: RefCell<Vec<Slot>>,
    state: RingState,
}

/// A slot, with its present request or its last one.
#[derive(Default)]
struct Slot {
    transfer: Option<Transfer>,
    /// Stages of the drive requests made for the slot's submission.
    spans: Spans,
}

impl RigSession {
    /// Makes a ring for these open files.
    ///
    /// # Errors
    ///
    /// [`Errno::Busy`] where there is one, [`Errno::Invalid`] for one without slots,
    /// [`Errno::BadFile`] for a file that is not open.
    pub fn open_ring(&mut self, size: RingSize, files: &[usize]) -> Result<()> {
        if self.ring.is_some() {
            return Err(Errno::Busy);
        }
        if size.depth == 0 {
            return Err(Errno::Invalid);
        }
        let open = |number: &usize| Ok((*number, self.file(*number)?));
        self.ring = Some(Rc::new(Ring {
            worker: Rc::clone(&self.worker),
            files: files.iter().map(open).collect::<Result<_>>()?,
            slots: RefCell::new((0..size.depth).map(|_| Slot::default()).collect()),
            state: RingState::new(size),
        }));
        Ok(())
    }

    /// Gives requests to their drives, in order.
    ///
    /// # Errors
    ///
    /// [`Errno::Invalid`] without a ring.
    ///
    /// # Panics
    ///
    /// When a slot is in flight, or a request larger than its buffer.
    pub fn submit(&mut self, requests: &[RingRequest]) -> Result<()> {
        let ring = self.ring.as_ref().ok_or(Errno::Invalid)?;
        for request in requests {
            self.rig.submit(ring, *request);
        }
        Ok(())
    }

    /// Waits until so many requests are complete, at most until a moment, and takes all
    /// that are. Without a moment, no more are waited for than there are.
    ///
    /// # Errors
    ///
    /// [`Errno::Invalid`] without a ring.
    pub async fn reap(
        &mut self,
        at_least: usize,
        until: Option<Time>,
        completions: &mut Vec<RingCompletion>,
    ) -> Result<()> {
        let ring = self.ring.as_ref().ok_or(Errno::Invalid)?;
        self.rig.await_completions(ring, at_least, until).await;
        ring.state.take_done(completions);
        Ok(())
    }

    /// The contents of a slot's buffer, of a ring that is open.
    pub fn ring_contents(&self, slot: u32) -> Option<&RefCell<Vec<u8>>> {
        let ring = self.ring.as_ref()?;
        Some(ring.state.contents(slot))
    }

    /// Requests that are not complete.
    pub fn under_way(&self) -> usize {
        self.ring.as_ref().map_or(0, |ring| ring.state.under_way())
    }

    /// Waits for what is in flight, and does without the ring from then on.
    pub async fn close_ring(&mut self) {
        if let Some(ring) = self.ring.take() {
            self.rig.await_completions(&ring, usize::MAX, None).await;
        }
    }
}

impl Rig {
    /// Gives a request to its drive; one that has nothing to do is complete at once.
    fn submit(&self, ring: &Rc<Ring>, request: RingRequest) {
        ring.state.admit(request);
        match self.transfer_of(ring, request) {
            Ok(Some(transfer)) => {
                let slot = &mut ring.slots.borrow_mut()[request.slot as usize];
                assert!(
                    slot.transfer.is_none(),
                    "slot {} is under way",
                    request.slot
                );
                slot.spans.issue(diskperf_device::moment(self.sim.now()));
                self.issue_part(
                    &ring.worker,
                    &transfer,
                    Owner::Slot(Rc::clone(ring), request.slot),
                );
                slot.transfer = Some(transfer);
            }
            Ok(None) => {
                let moves = matches!(request.operation, RingOperation::Write);
                let bytes = if moves { request.bytes } else { 0 };
                self.finish(ring, request.slot, Ok(bytes));
            }
            Err(errno) => self.finish(ring, request.slot, Err(errno)),
        }
    }

    /// The transfer that a submission asks of its drive; none where it has nothing to do.
    fn transfer_of(&self, ring: &Ring, request: RingRequest) -> Result<Option<Transfer>> {
        let mut files = ring.files.iter();
        let file = files.find(|(number, _)| *number == request.file);
        let (_, file) = file.ok_or(Errno::BadFile)?;
        let (may, changes) = match request.operation {
            RingOperation::Read => (file.read, false),
            RingOperation::Write | RingOperation::Discard => (file.write, true),
            RingOperation::Fsync => (true, false),
        };
        if !may {
            return Err(Errno::BadFile);
        }
        let What::Volume(volume) = file.what else {
            return match request.operation {
                RingOperation::Read | RingOperation::Write => Ok(None),
                RingOperation::Fsync | RingOperation::Discard => Err(Errno::Invalid),
            };
        };
        let operation = match request.operation {
            RingOperation::Read => Operation::Read,
            RingOperation::Write => volume.write(),
            RingOperation::Fsync => Operation::Flush,
            RingOperation::Discard => Operation::Discard,
        };
        let all = match operation {
            Operation::Flush => 0..0,
            _ if i64::try_from(request.offset).is_err() => return Err(Errno::Invalid),
            _ => self.range(volume, (request.offset, request.bytes as usize, changes))?,
        };
        Ok(self.begin_transfer(volume, operation, all))
    }

    /// The drive has done a part of a slot's transfer: the next one follows, if there is one.
    pub(super) fn continue_transfer(&self, ring: &Rc<Ring>, slot: u32, spans: &Spans) {
        let slots = &mut ring.slots.borrow_mut();
        let of = &mut slots[slot as usize];
        for span in spans.spans() {
            of.spans.mark(span.stage, span.until);
        }
        let transfer = of.transfer.as_mut().expect("what completes was submitted");
        self.move_part(transfer, (&ring.state, slot));
        if self.next_part(transfer) {
            let owner = Owner::Slot(Rc::clone(ring), slot);
            self.issue_part(&ring.worker, transfer, owner);
        } else {
            let bytes = transfer.moved_bytes();
            of.transfer = None;
            self.finish(ring, slot, Ok(bytes as u32));
        }
    }

    /// A request is complete: its program is woken, if that is what it waits for.
    fn finish(&self, ring: &Ring, slot: u32, result: Result<u32>) {
        if ring.state.complete(slot, result) {
            self.wake(&ring.worker);
        }
    }

    /// Waits until so many requests are complete, at most until a moment. Without one, no
    /// more are waited for than there are.
    async fn await_completions(&self, ring: &Ring, at_least: usize, until: Option<Time>) {
        let from = self.sim.now();
        if !ring.state.begin_wait((at_least, until), from) {
            return;
        }
        let wait = (until, || ring.state.give_up());
        self.sleep(&ring.worker, "its requests", wait).await;
        let (books, to) = (&ring.worker.books, self.sim.now());
        match ring.state.woken_by() {
            Some(slot) => {
                let spans = &ring.slots.borrow()[slot as usize].spans;
                books.book_request(spans, from, to);
            }
            // Nothing came that it would have waited for.
            None => books.book(Stage::Think, to, to - from),
        }
    }
}
