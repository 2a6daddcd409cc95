//! Steps of a clone on its ring: its I/Os and syncs, as many in flight as the job says.

use super::super::locks;
use super::super::pace::Turn;
use super::super::script::Step;
use super::super::search::{DepthSearch, SearchStep};
use super::super::stream::{Io, Next};
use super::super::syncs::DueSync;
use super::{JobClone, Place, is_sync, operation, path_of};
use crate::program::ProgramError;
use crate::ring::slots::{Completed, Slots};
use crate::ring::{Ring, RingStep, Source};
use diskperf_fio::Direction;
use diskperf_fio::job::{Engine, ErrorKind};
use diskperf_system::{Errno, Operation, Submission, System};
use diskperf_timeline::Nanoseconds;

/// I/O that was drawn and is not issued.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldIo {
    pub(super) io: Io,
    intended: Option<Nanoseconds>,
}

/// Reason why a clone leaves its ring. Except for [`Halt::DropCache`] and [`Halt::Lock`],
/// all that is in flight completes before.
#[derive(Debug)]
pub(super) enum Halt {
    /// A zone is reset or opened.
    ChangeZone,
    /// The cache of a file is dropped: the clone begins with it again.
    DropCache(usize),
    /// The search for a depth begins its next window.
    Search,
    /// Other jobs of the flow go first: the notices that workers had given each other by then.
    OtherJobs(u64),
    /// The job sleeps for its flow.
    FlowSleep,
    /// The lock of the held I/O's file is taken.
    Lock,
    /// The lock of the last I/O's file is freed, blocks are trimmed, or blocks are read back.
    Follow {
        direction: Direction,
        trims: Vec<Io>,
    },
    /// The job pauses after an I/O of a direction.
    Pause(Direction),
    /// The pass is over.
    EndOfPass,
    /// The job is over.
    Over,
}

/// Decision of a clone.
enum Decision {
    Step(RingStep),
    Halt(Halt),
}

impl Source for JobClone<'_> {
    fn next(
        &mut self,
        system: &mut System,
        slots: &Slots,
        _now: Nanoseconds,
    ) -> Result<RingStep, ProgramError> {
        if self.halt.is_none() {
            match self.decide(system, slots)? {
                Decision::Step(step) => return Ok(step),
                Decision::Halt(halt) => self.halt = Some(halt),
            }
        }
        let drains = !matches!(self.halt, Some(Halt::DropCache(_) | Halt::Lock));
        Ok(match drains && slots.in_use() > 0 {
            true => self.reap_next(system, None),
            false => RingStep::Return,
        })
    }

    fn prepare(&mut self, system: &mut System, request: &Submission) {
        match (self.unread.take(), &mut self.verifier) {
            (Some(unread), Some(verifier)) => verifier.expect(request.slot, unread),
            _ => self.prepare_data(system, *request),
        }
    }

    fn complete(
        &mut self,
        system: &mut System,
        completed: &Completed,
        _now: Nanoseconds,
    ) -> Result<(), ProgramError> {
        let request = &completed.request;
        let path = || path_of(&self.files, request.file);
        self.watch.completed(request, completed.response, path)?;
        let is_io = !is_sync(request.operation);
        if let Some(search) = self.search.as_mut().filter(|_| is_io)
            && self.search_step == SearchStep::None
        {
            self.search_step = search.completed(completed.response);
            if self.search_step == SearchStep::Failed {
                return Err(self.watch.no_depth(request, completed.response, path()));
            }
        }
        let has_failed = match completed.result {
            Err(failure) if self.passes_over(system, request.operation, failure.errno) => true,
            _ => {
                completed.check(|| path_of(&self.files, request.file))?;
                false
            }
        };
        self.syncs_in_flight -= u32::from(is_sync(request.operation));
        let Some(verifier) = &mut self.verifier else {
            return Ok(());
        };
        let path = |file: usize| self.files[file].1.clone();
        match has_failed {
            true => verifier.fail(request.slot),
            false => verifier.complete(system, request.slot, path)?,
        }
        Ok(())
    }

    fn end_reap(
        &mut self,
        system: &mut System,
        waiting: &[Submission],
        now: Nanoseconds,
    ) -> Result<(), ProgramError> {
        if let Some(verifier) = &mut self.verifier {
            verifier.move_rests(system, waiting);
        }
        self.now = system.now();
        self.look(system, now)
    }
}

impl JobClone<'_> {
    /// Decides what comes next: first what belongs to the I/O before, then the next one.
    fn decide(&mut self, system: &mut System, slots: &Slots) -> Result<Decision, ProgramError> {
        let batch = self.job.engine.batch.max(1) as usize;
        if slots.waiting().len() >= batch {
            return Ok(Decision::Step(RingStep::Submit(None)));
        }
        if let Some(io) = self.issued.take()
            && let Some(halt) = self.follow_up(system, io)
        {
            return Ok(Decision::Halt(halt));
        }
        // The sync of libaio is a call that returns when it is done; all that is in flight
        // goes on meanwhile.
        let waits_for_syncs = self.job.engine.engine == Engine::Libaio && self.script.is_none();
        if waits_for_syncs && self.syncs_in_flight > 0 {
            return Ok(Decision::Step(self.reap_next(system, None)));
        }
        if let Some(held) = self.held.take() {
            return self.issue(system, slots, held);
        }
        if self.is_full_of_requests(slots) {
            return Ok(Decision::Step(self.reap_to_refill(system, slots)));
        }
        if self.search_step != SearchStep::None {
            return Ok(Decision::Halt(Halt::Search));
        }
        if !self.has_room(slots) {
            self.is_refilling = true;
            return Ok(Decision::Step(self.reap_to_refill(system, slots)));
        }
        if self.is_over(self.now) {
            return Ok(Decision::Halt(Halt::Over));
        }
        match self.script.is_some() {
            true => self.repeat_log(system),
            false => self.draw(system, slots),
        }
    }

    /// Takes the next I/O of the log that is repeated.
    fn repeat_log(&mut self, system: &mut System) -> Result<Decision, ProgramError> {
        let step = self.script.as_mut().map(|script| script.step(self.now));
        Ok(match step {
            Some(Step::Issue {
                operation,
                place,
                intended,
            }) => Decision::Step(self.put(system, operation, place, intended)?),
            Some(Step::Wait(due)) => Decision::Step(self.reap_until(system, due)),
            Some(Step::End) | None => Decision::Halt(Halt::Over),
        })
    }

    /// Draws the next I/O, or takes the sync that is due before it.
    fn draw(&mut self, system: &mut System, slots: &Slots) -> Result<Decision, ProgramError> {
        while let Some(due) = self.stream.sync() {
            if let Some(step) = self.sync(system, due)? {
                return Ok(Decision::Step(step));
            }
        }
        let drawn = self.stream.draw_direction();
        let (direction, intended) = match self.rates.turn(drawn, self.job, self.now) {
            Turn::Issue(direction, intended) => (direction, intended),
            Turn::Wait(due) => return Ok(Decision::Step(self.reap_until(system, due))),
        };
        match self.flow_halt(system) {
            // With I/O of its own in flight, the job looks again when one completes.
            Some(Halt::OtherJobs(_)) if slots.in_use() > 0 => {
                return Ok(Decision::Step(self.reap_next(system, self.times.end)));
            }
            Some(halt) => return Ok(Decision::Halt(halt)),
            None => {}
        }
        match self.stream.next(direction) {
            Next::Io(io) if self.is_covered(io.file, io.offset_bytes) => {
                self.rates.issued(&io);
                self.issue(system, slots, HeldIo { io, intended })
            }
            Next::Io(_) => Ok(Decision::Halt(Halt::Over)),
            Next::EndOfPass => Ok(Decision::Halt(Halt::EndOfPass)),
        }
    }

    /// Issues an I/O, or holds it back until it may be issued.
    fn issue(
        &mut self,
        system: &mut System,
        slots: &Slots,
        held: HeldIo,
    ) -> Result<Decision, ProgramError> {
        let HeldIo { io, intended } = held;
        let place = (io.file, io.offset_bytes, io.bytes);
        let halt = match self.stream.begun_again() {
            Some(file) => Some(Halt::DropCache(file)),
            None => self.stream.take_drain().then_some(Halt::ChangeZone),
        };
        if let Some(halt) = halt {
            self.held = Some(held);
            return Ok(Decision::Halt(halt));
        }
        if self.job.engine.serialize_overlap {
            if slots.overlap(&self.request(Operation::Read, place, None)) {
                self.held = Some(held);
                return Ok(Decision::Step(self.reap_next(system, None)));
            }
            if self.is_over(system.now()) {
                return Ok(Decision::Halt(Halt::Over));
            }
        }
        if locks(self.job) && self.lock.is_none() {
            self.held = Some(held);
            return Ok(Decision::Halt(Halt::Lock));
        }
        self.issued = Some(io);
        let step = self.put(system, operation(io.direction), place, intended)?;
        Ok(Decision::Step(step))
    }

    /// Returns what follows an I/O that was issued, where the clone leaves its ring for that.
    fn follow_up(&mut self, system: &System, io: Io) -> Option<Halt> {
        let direction = io.direction;
        let is_before_its_write =
            direction == Direction::Trim && self.job.pattern.access.does(Direction::Write);
        let trims = self.due_trims(&io);
        let is_followed = is_before_its_write || self.lock.is_some() || !trims.is_empty();
        if is_followed || self.backlog_batch().is_some() {
            return Some(Halt::Follow { direction, trims });
        }
        let pauses = self.pauses.follow(system.now());
        pauses.then_some(Halt::Pause(direction))
    }

    /// Returns whether another I/O may be in flight.
    fn has_room(&self, slots: &Slots) -> bool {
        let depth = self.search.as_ref().map(DepthSearch::depth);
        !slots.are_full() && depth.is_none_or(|depth| slots.in_use() < depth as usize)
    }

    /// Returns whether slots were full and are not to be filled again yet.
    fn is_full_of_requests(&mut self, slots: &Slots) -> bool {
        let low = self.job.engine.depth_low.unwrap_or(u32::MAX) as usize;
        let left = slots.in_use();
        self.is_refilling &= left > 0 && (left > low || slots.are_full());
        self.is_refilling
    }

    /// Issues a sync; returns nothing of a range without bytes.
    fn sync(
        &mut self,
        system: &mut System,
        due: DueSync,
    ) -> Result<Option<RingStep>, ProgramError> {
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
        self.put(system, due.operation, place, None).map(Some)
    }

    /// Puts a request into a slot, and into the log that the job writes.
    pub(in super::super) fn put(
        &mut self,
        system: &System,
        operation: Operation,
        place: Place,
        intended: Option<Nanoseconds>,
    ) -> Result<RingStep, ProgramError> {
        let request = self.request(operation, place, intended);
        self.file = place.0;
        if let Some(log) = &mut self.iolog {
            log.issued(system.now(), self.file, &request)?;
        }
        self.syncs_in_flight += u32::from(is_sync(operation));
        Ok(RingStep::Put(request))
    }

    fn request(
        &self,
        operation: Operation,
        (file, offset_bytes, bytes): Place,
        intended: Option<Nanoseconds>,
    ) -> Submission {
        Submission {
            operation,
            file: self.files[file].0,
            offset_bytes,
            bytes,
            slot: 0,
            intended,
        }
    }

    /// Takes as many completions as the job takes at once, until so few are in flight that it
    /// fills the slots again.
    fn reap_to_refill(&self, system: &System, slots: &Slots) -> RingStep {
        let engine = &self.job.engine;
        let least = engine.complete_min.max(1) as usize;
        // Without a maximum, fio takes as many as the minimum.
        let most = engine.complete_max.map_or(least, |most| most as usize);
        let at_least = least.min(slots.in_use());
        self.reap(system, (at_least, most.max(least)), None)
    }

    /// Waits until a time, which is not beyond the end of the job, or for a completion.
    fn reap_until(&self, system: &System, due: Nanoseconds) -> RingStep {
        let wake = self.times.end.map_or(due, |end| end.min(due));
        self.reap_next(system, Some(wake))
    }

    /// Waits for the next completion, until a time at most. fio takes the last ones together,
    /// so that each of them seems to last until the slowest is complete.
    fn reap_next(&self, system: &System, until: Option<Nanoseconds>) -> RingStep {
        self.reap(system, (1, usize::MAX), until)
    }

    /// Waits until so many completed, at most until a time, the end of the ramp or the next
    /// look at the clone.
    fn reap(
        &self,
        system: &System,
        (at_least, at_most): (usize, usize),
        until: Option<Nanoseconds>,
    ) -> RingStep {
        RingStep::Reap {
            at_least,
            at_most,
            until: until.into_iter().chain(self.next_look(system)).min(),
        }
    }

    /// Returns whether the job goes on although a request failed with an error.
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

/// Requests that a clone issues while it issues no I/O: trims, and reads that verify.
struct SideRequests<'c, 'a, Draw> {
    clone: &'c mut JobClone<'a>,
    /// Requests that are submitted at once.
    batch: usize,
    draw: Draw,
}

impl<'a, Draw> Source for SideRequests<'_, 'a, Draw>
where
    Draw: FnMut(&mut JobClone<'a>, &System) -> Result<Option<RingStep>, ProgramError>,
{
    fn next(
        &mut self,
        system: &mut System,
        slots: &Slots,
        _now: Nanoseconds,
    ) -> Result<RingStep, ProgramError> {
        if slots.waiting().len() >= self.batch {
            return Ok(RingStep::Submit(None));
        }
        if !slots.are_full()
            && let Some(step) = (self.draw)(self.clone, system)?
        {
            return Ok(step);
        }
        Ok(match slots.in_use() {
            0 => RingStep::Return,
            _ => self.clone.reap_next(system, None),
        })
    }

    fn prepare(&mut self, system: &mut System, request: &Submission) {
        self.clone.prepare(system, request);
    }

    fn complete(
        &mut self,
        system: &mut System,
        completed: &Completed,
        now: Nanoseconds,
    ) -> Result<(), ProgramError> {
        self.clone.complete(system, completed, now)
    }

    fn end_reap(
        &mut self,
        system: &mut System,
        waiting: &[Submission],
        now: Nanoseconds,
    ) -> Result<(), ProgramError> {
        self.clone.end_reap(system, waiting, now)
    }
}

impl<'a> JobClone<'a> {
    /// Issues all requests that `draw` returns, `batch` of them at once, and waits for them.
    pub(in super::super) async fn issue_all(
        &mut self,
        ring: &mut Ring<'_>,
        batch: usize,
        draw: impl FnMut(&mut JobClone<'a>, &System) -> Result<Option<RingStep>, ProgramError>,
    ) -> Result<(), ProgramError> {
        let mut requests = SideRequests {
            clone: self,
            batch,
            draw,
        };
        ring.run(&mut requests).await
    }
}

/// The kind of error that fio counts those of an operation as.
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
