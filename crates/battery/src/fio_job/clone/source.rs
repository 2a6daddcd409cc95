//! Steps of a fio clone on its ring: it issues I/Os and syncs, and keeps as many in flight as the
//! job's queue depth permits.

use super::super::locks;
use super::super::pace::Turn;
use super::super::script::Step;
use super::super::search::{DepthSearch, SearchStep};
use super::super::stream::{Io, Next};
use super::super::syncs::DueSync;
use super::{JobClone, is_sync, operation};
use crate::program::ProgramError;
use crate::ring::slots::{Completed, Slots};
use crate::ring::{Ring, RingStep, Source};
use diskperf_fio::Direction;
use diskperf_fio::job::{Engine, ErrorKind};
use diskperf_system::{Errno, Operation, Submission, System};
use diskperf_timeline::Nanoseconds;

/// I/O that was drawn and is not yet issued.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldIo {
    pub(super) io: Io,
    intended: Option<Nanoseconds>,
}

/// Reason why a clone leaves its ring. All requests in flight complete before, except for
/// [`Halt::DropCache`] and [`Halt::Lock`].
#[derive(Debug)]
pub(super) enum Halt {
    /// Reset or opening of a zone of the file.
    ChangeZone,
    /// Drop of the page cache of the file with this index, because the clone starts the file again.
    DropCache(usize),
    /// Start of the next window of the queue depth search.
    Search,
    /// Wait for other jobs of the same fio flow, which go first. The value is the number of notices
    /// that workers had given by then.
    OtherJobs(u64),
    /// Sleep of the job that keeps it to its share of a fio flow.
    FlowSleep,
    /// Wait for the lock on the file of the held I/O.
    Lock,
    /// Work that follows the last I/O: its file is unlocked, blocks are trimmed, or blocks are read
    /// back.
    Follow {
        direction: Direction,
        trims: Vec<Io>,
    },
    /// Pause of the job after an I/O of this direction.
    Pause(Direction),
    /// End of a pass over the job's files.
    EndOfPass,
    /// End of the job.
    Over,
}

impl Source for JobClone<'_> {
    fn next(&mut self, ring: &mut Ring<'_>) -> Result<RingStep, ProgramError> {
        match self.halt.take() {
            Some(halt) => Ok(self.leave(ring, halt)),
            None => self.decide(ring),
        }
    }

    /// Fills the buffer of a write in a job whose data repeats in part.
    fn prepare(&mut self, ring: &mut Ring<'_>, request: &Submission) {
        if let (None, Operation::Write) = (&ring.verifier, request.operation)
            && let Some(duplicates) = &mut self.duplicates
            && let Some(buffer) = ring.system.ring_buffer(request.slot)
        {
            let bytes = buffer.len().min(request.bytes as usize);
            duplicates.fill(&mut buffer[..bytes]);
        }
    }

    fn complete(&mut self, ring: &mut Ring<'_>, done: &mut Completed) -> Result<(), ProgramError> {
        let (request, response) = (&done.request, done.response);
        let path = || ring.path(request.file);
        // As in fio, no limit is of calls on names.
        let is_watched = !self.job.engine.engine.is_of_names();
        if is_watched {
            self.watch.completed(request, response, path)?;
        }
        let is_io = !is_sync(request.operation);
        if let Some(search) = self.search.as_mut().filter(|_| is_io && is_watched)
            && self.search_step == SearchStep::None
        {
            self.search_step = search.completed(response);
            if self.search_step == SearchStep::Failed {
                return Err(self.watch.no_depth(request, response, path()));
            }
        }
        self.syncs_in_flight -= u32::from(!is_io);
        if let Some((_, errno)) = done.failure {
            done.is_passed_over = self.passes_over(ring.system, request.operation, errno);
        }
        Ok(())
    }

    fn end_reap(&mut self, ring: &mut Ring<'_>) -> Result<(), ProgramError> {
        self.now = ring.system.now();
        self.look(ring.system, ring.now)
    }
}

impl JobClone<'_> {
    /// Leaves the ring once nothing is in flight. Until then, it waits for completions.
    fn leave(&mut self, ring: &Ring<'_>, halt: Halt) -> RingStep {
        let drains = !matches!(halt, Halt::DropCache(_) | Halt::Lock);
        self.halt = Some(halt);
        match drains && ring.slots.in_use() > 0 {
            true => self.reap_next(ring, None),
            false => RingStep::Return,
        }
    }

    /// Decides the next step: first the work that the last I/O requires, then the next I/O.
    fn decide(&mut self, ring: &Ring<'_>) -> Result<RingStep, ProgramError> {
        let slots = &ring.slots;
        let batch = self.job.engine.batch.max(1) as usize;
        if slots.waiting().len() >= batch {
            return Ok(RingStep::Submit(None));
        }
        if let Some(io) = self.issued.take()
            && let Some(halt) = self.follow_up(ring, io)
        {
            return Ok(self.leave(ring, halt));
        }
        // The sync of libaio is a call that returns when it is done; all that is in flight
        // goes on meanwhile.
        let waits_for_syncs = self.job.engine.engine == Engine::Libaio && self.script.is_none();
        if waits_for_syncs && self.syncs_in_flight > 0 {
            return Ok(self.reap_next(ring, None));
        }
        if let Some(held) = self.held.take() {
            return self.issue(ring, held);
        }
        let low = self.job.engine.depth_low.unwrap_or(u32::MAX) as usize;
        let left = slots.in_use();
        self.is_refilling &= left > 0 && (left > low || slots.are_full());
        if self.search_step != SearchStep::None && !self.is_refilling {
            return Ok(self.leave(ring, Halt::Search));
        }
        self.is_refilling |= !self.has_room(slots);
        if self.is_refilling {
            return Ok(self.reap_to_refill(ring));
        }
        if self.is_over(self.now) {
            return Ok(self.leave(ring, Halt::Over));
        }
        match self.script.is_some() {
            true => self.repeat_log(ring),
            false => self.draw(ring),
        }
    }

    /// Takes the next I/O of the log that the job repeats.
    fn repeat_log(&mut self, ring: &Ring<'_>) -> Result<RingStep, ProgramError> {
        let step = self.script.as_mut().map(|script| script.step(self.now));
        Ok(match step {
            Some(Step::Issue {
                operation,
                place,
                intended,
            }) => self.put(ring, operation, place, intended)?,
            Some(Step::Wait(due)) => self.reap_until(ring, due),
            Some(Step::End) | None => self.leave(ring, Halt::Over),
        })
    }

    /// Draws the next I/O, or takes the sync that is due before it.
    fn draw(&mut self, ring: &Ring<'_>) -> Result<RingStep, ProgramError> {
        while let Some(due) = self.stream.sync() {
            if let Some(step) = self.sync(ring, due)? {
                return Ok(step);
            }
        }
        let drawn = self.stream.draw_direction();
        let (direction, intended) = match self.rates.turn(drawn, self.job, self.now) {
            Turn::Issue(direction, intended) => (direction, intended),
            Turn::Wait(due) => return Ok(self.reap_until(ring, due)),
        };
        match self.flow_halt(ring.system) {
            // With I/O of its own in flight, the job looks again when one completes.
            Some(Halt::OtherJobs(_)) if ring.slots.in_use() > 0 => {
                return Ok(self.reap_next(ring, self.times.end));
            }
            Some(halt) => return Ok(self.leave(ring, halt)),
            None => {}
        }
        match self.stream.next(direction) {
            Next::Io(io) if self.is_covered(io.file, io.offset_bytes) => {
                self.rates.issued(&io);
                self.issue(ring, HeldIo { io, intended })
            }
            Next::Io(_) => Ok(self.leave(ring, Halt::Over)),
            Next::EndOfPass => Ok(self.leave(ring, Halt::EndOfPass)),
        }
    }

    /// Issues an I/O, or holds it until it may be issued.
    fn issue(&mut self, ring: &Ring<'_>, held: HeldIo) -> Result<RingStep, ProgramError> {
        let HeldIo { io, intended } = held;
        let halt = match self.stream.begun_again() {
            Some(file) => Some(Halt::DropCache(file)),
            None => self.stream.take_drain().then_some(Halt::ChangeZone),
        };
        if let Some(halt) = halt {
            self.held = Some(held);
            return Ok(self.leave(ring, halt));
        }
        if self.job.engine.serialize_overlap {
            let range = io.offset_bytes..io.offset_bytes + u64::from(io.bytes);
            if ring.slots.overlap(ring.files[io.file].0, range) {
                self.held = Some(held);
                return Ok(self.reap_next(ring, None));
            }
            // What has its lock is issued, and frees it.
            if self.lock.is_none() && self.is_over(ring.system.now()) {
                return Ok(self.leave(ring, Halt::Over));
            }
        }
        if locks(self.job) && self.lock.is_none() {
            self.held = Some(held);
            return Ok(self.leave(ring, Halt::Lock));
        }
        self.issued = Some(io);
        let place = (io.file, io.offset_bytes, io.bytes);
        self.put(ring, operation(io.direction), place, intended)
    }

    /// Returns the work that follows an issued I/O if the clone must leave its ring for it.
    fn follow_up(&mut self, ring: &Ring<'_>, io: Io) -> Option<Halt> {
        let direction = io.direction;
        let is_before_its_write =
            direction == Direction::Trim && self.job.pattern.access.does(Direction::Write);
        let trims = self.due_trims(&io);
        let is_followed = is_before_its_write || self.lock.is_some() || !trims.is_empty();
        if is_followed || self.backlog_batch(ring).is_some() {
            return Some(Halt::Follow { direction, trims });
        }
        let pauses = self.pauses.follow(ring.system.now());
        pauses.then_some(Halt::Pause(direction))
    }

    fn has_room(&self, slots: &Slots) -> bool {
        let depth = self.search.as_ref().map(DepthSearch::depth);
        !slots.are_full() && depth.is_none_or(|depth| slots.in_use() < depth as usize)
    }

    /// Issues a sync. Returns `None` for a range without bytes, which needs no sync.
    fn sync(&mut self, ring: &Ring<'_>, due: DueSync) -> Result<Option<RingStep>, ProgramError> {
        let is_of_range = matches!(due.operation, Operation::SyncRange(_));
        if is_of_range && due.range.is_empty() {
            return Ok(None);
        }
        // What no request can hold is all to the end of the file.
        let bytes = u32::try_from(due.range.end - due.range.start).unwrap_or(0);
        let place = match is_of_range {
            true => (due.file, due.range.start, bytes),
            false => (due.file, 0, 0),
        };
        self.put(ring, due.operation, place, None).map(Some)
    }

    /// Puts a request into a slot, and records it in the I/O log that the job writes.
    pub(in super::super) fn put(
        &mut self,
        ring: &Ring<'_>,
        operation: Operation,
        (file, offset_bytes, bytes): (usize, u64, u32),
        intended: Option<Nanoseconds>,
    ) -> Result<RingStep, ProgramError> {
        let request = Submission {
            operation,
            file: ring.files[file].0,
            offset_bytes,
            bytes,
            slot: 0,
            intended,
        };
        if let Some(log) = &mut self.iolog {
            log.issued(ring.system.now(), file, &request)?;
        }
        self.syncs_in_flight += u32::from(is_sync(operation));
        Ok(RingStep::Put(file, request))
    }

    /// Reaps as many completions as the job takes in one call, until few enough requests are in
    /// flight to fill the slots again.
    fn reap_to_refill(&self, ring: &Ring<'_>) -> RingStep {
        let engine = &self.job.engine;
        let least = engine.complete_min.max(1) as usize;
        // Without a maximum, fio takes as many as the minimum.
        let most = engine.complete_max.map_or(least, |most| most as usize);
        let at_least = least.min(ring.slots.in_use());
        RingStep::Reap {
            at_least,
            at_most: most.max(least),
            until: self.next_look(ring.system),
        }
    }

    /// Waits until a given time or for a completion, but not beyond the end of the job.
    fn reap_until(&self, ring: &Ring<'_>, due: Nanoseconds) -> RingStep {
        let wake = self.times.end.map_or(due, |end| end.min(due));
        self.reap_next(ring, Some(wake))
    }

    /// Waits for the next completion, but not longer than `until` and the next check of the job.
    /// fio reaps the last completions together, so that each of them seems to last until the
    /// slowest is complete.
    fn reap_next(&self, ring: &Ring<'_>, until: Option<Nanoseconds>) -> RingStep {
        RingStep::reap(
            1,
            until.into_iter().chain(self.next_look(ring.system)).min(),
        )
    }

    /// Reports whether the job continues although a request failed with this error, and counts the
    /// error.
    fn passes_over(&mut self, system: &mut System, operation: Operation, errno: Errno) -> bool {
        let has_no_space = matches!(errno, Errno::NoSpace | Errno::Quota);
        if self.job.files.fills && has_no_space && operation == Operation::Write {
            self.is_full = true;
            return true;
        }
        let errors = &self.job.errors;
        let passes_over = errors.passes_over(error_kind(operation), errno.number());
        if passes_over {
            system.count_error(errno);
        }
        passes_over
    }
}

/// Requests that a clone issues apart from its I/Os: trims, and reads that verify.
struct SideRequests<'c, 'a, Next> {
    clone: &'c mut JobClone<'a>,
    /// Number of requests that one call submits.
    batch: usize,
    next: Next,
}

impl<'a, Next> Source for SideRequests<'_, 'a, Next>
where
    Next: FnMut(&mut JobClone<'a>, &mut Ring<'_>) -> Result<Option<RingStep>, ProgramError>,
{
    fn next(&mut self, ring: &mut Ring<'_>) -> Result<RingStep, ProgramError> {
        if ring.slots.waiting().len() >= self.batch {
            return Ok(RingStep::Submit(None));
        }
        if !ring.slots.are_full()
            && let Some(step) = (self.next)(self.clone, ring)?
        {
            return Ok(step);
        }
        Ok(match ring.slots.in_use() {
            0 => RingStep::Return,
            _ => self.clone.reap_next(ring, None),
        })
    }

    fn complete(&mut self, ring: &mut Ring<'_>, done: &mut Completed) -> Result<(), ProgramError> {
        self.clone.complete(ring, done)
    }

    fn end_reap(&mut self, ring: &mut Ring<'_>) -> Result<(), ProgramError> {
        self.clone.end_reap(ring)
    }
}

impl<'a> JobClone<'a> {
    /// Issues all requests that `next` returns, submits them in batches of `batch`, and waits for
    /// them.
    pub(in super::super) async fn issue_all(
        &mut self,
        ring: &mut Ring<'_>,
        batch: usize,
        next: impl FnMut(&mut JobClone<'a>, &mut Ring<'_>) -> Result<Option<RingStep>, ProgramError>,
    ) -> Result<(), ProgramError> {
        let clone = self;
        ring.run(&mut SideRequests { clone, batch, next }).await
    }
}

/// Returns the error category under which fio counts a failure of an operation.
fn error_kind(operation: Operation) -> ErrorKind {
    match operation {
        Operation::Read => ErrorKind::Read,
        Operation::Write
        | Operation::Discard
        | Operation::Fsync
        | Operation::Fdatasync
        | Operation::SyncRange(_) => ErrorKind::Write,
    }
}
