//! Several requests of a program in flight, each in a slot of its own: what a drive's queue
//! is for.

use super::session::{OpenFile, RigSession, Volume, What};
use super::{Owner, Rig, Worker};
use crate::hardware::Operation;
use crate::kernel::errno::{Errno, Result};
use crate::kernel::ring::{RingCompletion, RingOperation, RingRequest, RingSize, WRITTEN};
use diskperf_sim::Time;
use diskperf_timeline::{Request as Spans, Stage};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

/// The requests of a program.
pub(crate) struct Ring {
    worker: Rc<Worker>,
    /// Open files that requests may name, each with its descriptor.
    files: Vec<(usize, OpenFile)>,
    slots: RefCell<Vec<Slot>>,
    /// Contents of each slot's buffer, while the program lends them; else empty.
    contents: Vec<RefCell<Vec<u8>>>,
    /// Bytes that slots without contents write.
    data: Vec<u8>,
    in_flight: Cell<usize>,
    done: RefCell<Vec<RingCompletion>>,
    /// How many completions the program waits for; 0 if it does not.
    wanted: Cell<usize>,
    /// The slot whose completion ended its wait.
    woken_by: Cell<Option<u32>>,
}

/// A slot, with its present request or its last one.
#[derive(Default)]
struct Slot {
    transfer: Option<Transfer>,
    /// Stages of the drive requests made for the slot's submission.
    spans: Spans,
}

/// A submission as a range of a volume, moved by one drive request after the other.
#[derive(Clone)]
struct Transfer {
    volume: Volume,
    operation: Operation,
    /// Bytes of the volume.
    all: Range<u64>,
    /// Those that the drive is at.
    part: Range<u64>,
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
            contents: (0..size.depth).map(|_| RefCell::default()).collect(),
            data: vec![WRITTEN; size.buffer_bytes as usize],
            in_flight: Cell::new(0),
            done: RefCell::default(),
            wanted: Cell::new(0),
            woken_by: Cell::new(None),
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
        completions.append(&mut ring.done.borrow_mut());
        Ok(())
    }

    /// The contents of a slot's buffer, of a ring that is open.
    pub fn ring_contents(&self, slot: u32) -> Option<&RefCell<Vec<u8>>> {
        let ring = self.ring.as_ref()?;
        Some(&ring.contents[slot as usize])
    }

    /// Requests that are not complete.
    pub fn under_way(&self) -> usize {
        self.ring.as_ref().map_or(0, |ring| ring.in_flight.get())
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
        let is_discard = request.operation == RingOperation::Discard;
        assert!(
            is_discard || request.bytes as usize <= ring.data.len(),
            "{} bytes in a buffer of {}",
            request.bytes,
            ring.data.len()
        );
        ring.in_flight.set(ring.in_flight.get() + 1);
        match self.begin_transfer(ring, request) {
            Ok(Some(transfer)) => {
                let slot = &mut ring.slots.borrow_mut()[request.slot as usize];
                assert!(
                    slot.transfer.is_none(),
                    "slot {} is under way",
                    request.slot
                );
                slot.spans.issue(crate::hardware::moment(self.sim.now()));
                self.issue_part(ring, request.slot, &transfer);
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
    fn begin_transfer(&self, ring: &Ring, request: RingRequest) -> Result<Option<Transfer>> {
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
            Operation::Flush if self.flush_of(volume).is_none() => return Ok(None),
            Operation::Flush => 0..0,
            _ if i64::try_from(request.offset).is_err() => return Err(Errno::Invalid),
            _ => self.range(volume, (request.offset, request.bytes as usize, changes))?,
        };
        let part = match operation {
            Operation::Read | Operation::Write { .. } => self.first_part(volume, &all),
            _ => all.clone(),
        };
        let has_work = !all.is_empty() || operation == Operation::Flush;
        Ok(has_work.then_some(Transfer {
            volume,
            operation,
            all,
            part,
        }))
    }

    fn issue_part(&self, ring: &Rc<Ring>, slot: u32, transfer: &Transfer) {
        let Transfer {
            volume,
            operation,
            part,
            ..
        } = transfer;
        if *operation == Operation::Read {
            let bytes = part.end - part.start;
            ring.worker.books.count_storage_read(bytes);
        }
        let request = self.request_of(*volume, *operation, part);
        self.issue(request, Owner::Slot(Rc::clone(ring), slot));
    }

    /// The drive has done a part of a slot's transfer: the next one follows, if there is one.
    pub(super) fn continue_transfer(&self, ring: &Rc<Ring>, slot: u32, spans: &Spans) {
        let slots = &mut ring.slots.borrow_mut();
        let of = &mut slots[slot as usize];
        for span in spans.spans() {
            of.spans.mark(span.stage, span.until);
        }
        let transfer = of.transfer.as_mut().expect("what completes was submitted");
        self.move_part(ring, slot, transfer);
        let left = transfer.part.end..transfer.all.end;
        if left.is_empty() {
            let bytes = match transfer.operation {
                Operation::Read | Operation::Write { .. } => transfer.all.end - transfer.all.start,
                _ => 0,
            };
            of.transfer = None;
            self.finish(ring, slot, Ok(bytes as u32));
        } else {
            transfer.part = self.first_part(transfer.volume, &left);
            self.issue_part(ring, slot, transfer);
        }
    }

    /// Moves the data of a part, between the contents of its slot and the medium.
    fn move_part(&self, ring: &Ring, slot: u32, transfer: &Transfer) {
        let Transfer {
            volume, all, part, ..
        } = transfer;
        let within = (part.start - all.start) as usize..(part.end - all.start) as usize;
        let contents = &mut ring.contents[slot as usize].borrow_mut();
        self.volumes
            .medium(volume.number, |medium| match transfer.operation {
                Operation::Read => {
                    if let Some(into) = contents.get_mut(within) {
                        medium.read_bytes(part.start, into);
                    }
                }
                Operation::Write { .. } => {
                    let data = contents.get(within.clone());
                    medium.write_bytes(part.start, data.unwrap_or(&ring.data[within]));
                }
                Operation::Discard | Operation::WriteZeroes => medium.forget(part.clone()),
                Operation::Flush => {}
            });
    }

    /// A request is complete: its program is woken, if that is what it waits for.
    fn finish(&self, ring: &Ring, slot: u32, result: Result<u32>) {
        ring.in_flight.set(ring.in_flight.get() - 1);
        let done = {
            let mut done = ring.done.borrow_mut();
            done.push(RingCompletion { slot, result });
            done.len()
        };
        if (1..=done).contains(&ring.wanted.get()) {
            ring.wanted.set(0);
            ring.woken_by.set(Some(slot));
            self.sim.wake(ring.worker.task);
        }
    }

    /// Waits until so many requests are complete, at most until a moment. Without one, no
    /// more are waited for than there are.
    async fn await_completions(&self, ring: &Ring, at_least: usize, until: Option<Time>) {
        let done = ring.done.borrow().len();
        let wanted = match until {
            Some(_) => at_least,
            None => at_least.min(done + ring.in_flight.get()),
        };
        let from = self.sim.now();
        let is_late = || until.is_some_and(|until| until <= self.sim.now());
        if done >= wanted || is_late() {
            return;
        }
        ring.wanted.set(wanted);
        ring.woken_by.set(None);
        if let Some(until) = until {
            self.sim.wake_at(until);
        }
        while ring.wanted.get() > 0 {
            if is_late() {
                ring.wanted.set(0);
                break;
            }
            self.sim.wait_in_place("its requests").await;
        }
        let (books, to) = (&ring.worker.books, self.sim.now());
        match ring.woken_by.take() {
            Some(slot) => {
                let spans = &ring.slots.borrow()[slot as usize].spans;
                books.book_request(spans, from, to);
            }
            // Nothing came that it would have waited for.
            None => books.book(Stage::Think, to, to - from),
        }
    }
}
