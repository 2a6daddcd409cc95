//! Ring of a program on a rig (drives without a computer): several requests in flight, each in its
//! own slot. The ring makes use of a drive's queue.

use super::session::{DeviceTarget, OpenDevice, RigSession};
use super::transfer::RigTransfer;
use super::{Rig, RigWorker, TransferOwner};
use crate::errno::{Errno, Result};
use crate::ring::{RingCompletion, RingOperation, RingRequest, RingSize, RingState};
use diskperf_device::Operation;
use diskperf_sim::Time;
use diskperf_timeline::{RequestTimeline as Spans, Stage};
use std::cell::RefCell;
use std::rc::Rc;

/// Ring of a program on a rig, with its requests in flight.
pub(crate) struct RigRing {
    worker: Rc<RigWorker>,
    /// Open files that requests may use, each with its descriptor.
    open_devices: Vec<(usize, OpenDevice)>,
    slots: RefCell<Vec<RigSlot>>,
    state: RingState,
}

#[derive(Default)]
struct RigSlot {
    transfer: Option<RigTransfer>,
    /// Stages of the drive requests for the slot's current request.
    spans: Spans,
}

impl RigSession {
    /// Opens a ring for the given open files.
    ///
    /// # Errors
    ///
    /// [`Errno::DeviceBusy`] if the program has a ring, [`Errno::InvalidArgument`] for a ring without slots,
    /// [`Errno::BadFileDescriptor`] for a file that is not open.
    pub fn open_ring(&mut self, size: RingSize, files: &[usize]) -> Result<()> {
        if self.ring.is_some() {
            return Err(Errno::DeviceBusy);
        }
        if size.queue_depth == 0 {
            return Err(Errno::InvalidArgument);
        }
        let open = |number: &usize| Ok((*number, self.open_device(*number)?));
        self.ring = Some(Rc::new(RigRing {
            worker: Rc::clone(&self.worker),
            open_devices: files.iter().map(open).collect::<Result<_>>()?,
            slots: RefCell::new((0..size.queue_depth).map(|_| RigSlot::default()).collect()),
            state: RingState::new(size),
        }));
        Ok(())
    }

    /// Submits requests to their drives, in order.
    ///
    /// # Errors
    ///
    /// [`Errno::InvalidArgument`] without a ring.
    ///
    /// # Panics
    ///
    /// If a slot is in flight, or if a request is larger than its buffer.
    pub fn submit_requests(&mut self, requests: &[RingRequest]) -> Result<()> {
        let ring = self.ring.as_ref().ok_or(Errno::InvalidArgument)?;
        for request in requests {
            self.rig.begin_request(ring, *request);
        }
        Ok(())
    }

    /// Waits until `at_least` requests are complete, at most until a deadline, and reaps all
    /// completions. Without a deadline, the wait is for no more completions than there are
    /// requests.
    ///
    /// # Errors
    ///
    /// [`Errno::InvalidArgument`] without a ring.
    pub async fn reap_completions(
        &mut self,
        at_least: usize,
        until: Option<Time>,
        completions: &mut Vec<RingCompletion>,
    ) -> Result<()> {
        let ring = self.ring.as_ref().ok_or(Errno::InvalidArgument)?;
        self.rig.wait_for_completions(ring, at_least, until).await;
        ring.state.take_completions(completions);
        Ok(())
    }

    /// Contents of the buffer of a ring's slot. None without an open ring.
    pub fn ring_contents(&self, slot: u32) -> Option<&RefCell<Vec<u8>>> {
        let ring = self.ring.as_ref()?;
        Some(ring.state.contents_of_slot(slot))
    }

    /// Number of requests of the ring that are in flight.
    pub fn in_flight_count(&self) -> usize {
        self.ring
            .as_ref()
            .map_or(0, |ring| ring.state.in_flight_count())
    }

    /// Waits for the requests in flight, and closes the ring.
    pub async fn close_ring(&mut self) {
        if let Some(ring) = self.ring.take() {
            self.rig.wait_for_completions(&ring, usize::MAX, None).await;
        }
    }
}

impl Rig {
    /// Submits a request to its drive. A request without work for the drive completes immediately.
    fn begin_request(&self, ring: &Rc<RigRing>, request: RingRequest) {
        ring.state.admit_request(request);
        match self.transfer_of_request(ring, request) {
            Ok(Some(transfer)) => {
                let slot = &mut ring.slots.borrow_mut()[request.slot as usize];
                assert!(
                    slot.transfer.is_none(),
                    "slot {} already has a request in flight",
                    request.slot
                );
                slot.spans
                    .begin_at(diskperf_device::moment(self.simulation.now()));
                self.issue_part(
                    &ring.worker,
                    &transfer,
                    TransferOwner::RingSlot(Rc::clone(ring), request.slot),
                );
                slot.transfer = Some(transfer);
            }
            Ok(None) => {
                let moves = matches!(request.operation, RingOperation::Write);
                let bytes = if moves { request.bytes } else { 0 };
                self.finish_request(ring, request.slot, Ok(bytes));
            }
            Err(errno) => self.finish_request(ring, request.slot, Err(errno)),
        }
    }

    /// Returns the transfer that a request needs from its drive. None if the drive has no work.
    fn transfer_of_request(
        &self,
        ring: &RigRing,
        request: RingRequest,
    ) -> Result<Option<RigTransfer>> {
        let mut files = ring.open_devices.iter();
        let file = files.find(|(number, _)| *number == request.file_number);
        let (_, file) = file.ok_or(Errno::BadFileDescriptor)?;
        let (may, changes) = match request.operation {
            RingOperation::Read => (file.is_readable, false),
            RingOperation::Write | RingOperation::Discard => (file.is_writable, true),
            RingOperation::Fsync => (true, false),
        };
        if !may {
            return Err(Errno::BadFileDescriptor);
        }
        let DeviceTarget::Volume(volume) = file.target else {
            return match request.operation {
                RingOperation::Read | RingOperation::Write => Ok(None),
                RingOperation::Fsync | RingOperation::Discard => Err(Errno::InvalidArgument),
            };
        };
        let operation = match request.operation {
            RingOperation::Read => Operation::Read,
            RingOperation::Write => volume.write_operation(),
            RingOperation::Fsync => Operation::Flush,
            RingOperation::Discard => Operation::Discard,
        };
        let all = match operation {
            Operation::Flush => 0..0,
            _ if i64::try_from(request.offset_bytes).is_err() => {
                return Err(Errno::InvalidArgument);
            }
            _ => self.transfer_range(
                volume,
                request.offset_bytes,
                request.bytes as usize,
                changes,
            )?,
        };
        Ok(self.begin_transfer(volume, operation, all))
    }

    /// Continues a slot's transfer after a drive request of it is complete: submits the next part,
    /// or completes the slot's request.
    pub(super) fn continue_transfer(&self, ring: &Rc<RigRing>, slot: u32, spans: &Spans) {
        let slots = &mut ring.slots.borrow_mut();
        let of = &mut slots[slot as usize];
        for span in spans.spans() {
            of.spans.mark_stage(span.stage, span.stage_end);
        }
        let transfer = of
            .transfer
            .as_mut()
            .expect("a completed request has a transfer");
        self.copy_part(transfer, (&ring.state, slot));
        if self.next_part(transfer) {
            let owner = TransferOwner::RingSlot(Rc::clone(ring), slot);
            self.issue_part(&ring.worker, transfer, owner);
        } else {
            let bytes = transfer.transferred_bytes();
            of.transfer = None;
            self.finish_request(ring, slot, Ok(bytes as u32));
        }
    }

    fn finish_request(&self, ring: &RigRing, slot: u32, result: Result<u32>) {
        if ring.state.complete_request(slot, result) {
            self.wake_worker(&ring.worker);
        }
    }

    /// Waits until `at_least` requests are complete, at most until a deadline. Without a deadline,
    /// the wait is for no more completions than there are requests.
    async fn wait_for_completions(&self, ring: &RigRing, at_least: usize, until: Option<Time>) {
        let from = self.simulation.now();
        if !ring.state.begin_completion_wait((at_least, until), from) {
            return;
        }
        let wait = (until, || ring.state.cancel_completion_wait());
        self.sleep_until_woken(&ring.worker, "its requests", wait)
            .await;
        let (books, to) = (&ring.worker.stage_account, self.simulation.now());
        match ring.state.woken_by_slot() {
            Some(slot) => {
                let spans = &ring.slots.borrow()[slot as usize].spans;
                books.book_request(spans, from, to);
            }
            // Nothing came that it would have waited for.
            None => books.book_stage(Stage::Think, to, to - from),
        }
    }
}
