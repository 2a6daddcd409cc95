//! Steps of a fio clone on its ring: it issues I/Os and syncs, and keeps as many in flight as the
//! job's queue depth permits.

use super::super::locks_files;
use super::super::pace::RateDecision;
use super::super::script::LogStep;
use super::super::search::{DepthSearch, SearchStep};
use super::super::stream::{FileExtent, FileIo, NextIo};
use super::super::syncs::DueSync;
use super::{JobClone, is_sync_operation, operation_of_direction};
use crate::program::ProgramError;
use crate::ring::slots::{CompletedRequest, Slots};
use crate::ring::{IoRing, RequestSource, RingStep};
use diskperf_fio::Direction;
use diskperf_fio::job::{ErrorKind, IoEngine};
use diskperf_system::{Errno, IoOperation, Submission, System};
use diskperf_timeline::Nanoseconds;

/// I/O that was drawn and is not yet issued.
#[derive(Clone, Copy, Debug)]
pub(super) struct DrawnIo {
    pub(super) file_io: FileIo,
    intended_issue: Option<Nanoseconds>,
}

/// Reason why a clone leaves its ring. All requests in flight complete before, except for
/// [`HaltReason::DropPageCache`] and [`HaltReason::LockFile`].
#[derive(Debug)]
pub(super) enum HaltReason {
    /// Reset or opening of a zone of the file.
    DrainForZoneChange,
    /// Drop of the page cache of the file with this index, because the clone starts the file again.
    DropPageCache(usize),
    /// Start of the next window of the queue depth search.
    DepthSearch,
    /// Wait for other jobs of the same fio flow, which go first. The value is the number of notices
    /// that workers had given by then.
    WaitForFlow(u64),
    /// Sleep of the job that keeps it to its share of a fio flow.
    FlowSleep,
    /// Wait for the lock on the file of the held I/O.
    LockFile,
    /// Work that follows the last I/O: its file is unlocked, blocks are trimmed, or blocks are read
    /// back.
    FollowUp {
        direction: Direction,
        trims: Vec<FileIo>,
    },
    /// Pause of the job after an I/O of this direction.
    PauseForThinkTime(Direction),
    /// End of a pass over the job's files.
    PassEnd,
    JobEnd,
}

impl RequestSource for JobClone<'_> {
    fn next_step(&mut self, ring: &mut IoRing<'_>) -> Result<RingStep, ProgramError> {
        match self.halt_reason.take() {
            Some(halt) => Ok(self.leave_ring(ring, halt)),
            None => self.decide_step(ring),
        }
    }

    /// Fills the buffer of a write in a job whose data repeats in part.
    fn prepare_request(&mut self, ring: &mut IoRing<'_>, request: &Submission) {
        if let (None, IoOperation::Write) = (&ring.verifier, request.operation)
            && let Some(duplicates) = &mut self.duplicates
            && let Some(buffer) = ring.target_system.ring_buffer(request.slot)
        {
            let bytes = buffer.len().min(request.bytes as usize);
            duplicates.fill_buffer(&mut buffer[..bytes]);
        }
    }

    fn complete_request(
        &mut self,
        ring: &mut IoRing<'_>,
        done: &mut CompletedRequest,
    ) -> Result<(), ProgramError> {
        let (request, response) = (&done.request, done.response_time);
        let path = || ring.path_of_file(request.file);
        // As in fio, no limit is of calls on names.
        let is_watched = !self.job.engine.engine.acts_on_names();
        if is_watched {
            self.monitor.record_completion(request, response, path)?;
        }
        let is_io = !is_sync_operation(request.operation);
        if let Some(search) = self.depth_search.as_mut().filter(|_| is_io && is_watched)
            && self.pending_search_step == SearchStep::ContinueWindow
        {
            self.pending_search_step = search.count_completed(response);
            if self.pending_search_step == SearchStep::SearchFailed {
                return Err(self
                    .monitor
                    .no_depth_within_target_error(request, response, path()));
            }
        }
        self.syncs_in_flight -= u32::from(!is_io);
        if let Some((_, errno)) = done.call_failure {
            done.is_failure_ignored =
                self.continues_on_error(ring.target_system, request.operation, errno);
        }
        Ok(())
    }

    fn end_of_reap(&mut self, ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        self.last_clock_reading = ring.target_system.now();
        self.run_checks(ring.target_system, ring.last_clock_reading)
    }
}

impl JobClone<'_> {
    /// Leaves the ring once nothing is in flight. Until then, it waits for completions.
    fn leave_ring(&mut self, ring: &IoRing<'_>, halt: HaltReason) -> RingStep {
        let drains = !matches!(halt, HaltReason::DropPageCache(_) | HaltReason::LockFile);
        self.halt_reason = Some(halt);
        match drains && ring.slots.in_use_count() > 0 {
            true => self.reap_next(ring, None),
            false => RingStep::LeaveRing,
        }
    }

    /// Decides the next step: first the work that the last I/O requires, then the next I/O.
    fn decide_step(&mut self, ring: &IoRing<'_>) -> Result<RingStep, ProgramError> {
        let slots = &ring.slots;
        let batch = self.job.engine.submit_batch.max(1) as usize;
        if slots.unsubmitted_requests().len() >= batch {
            return Ok(RingStep::SubmitBatch(None));
        }
        if let Some(io) = self.last_issued.take()
            && let Some(halt) = self.follow_up_of_io(ring, io)
        {
            return Ok(self.leave_ring(ring, halt));
        }
        // The sync of libaio is a call that returns when it is done; all that is in flight
        // goes on meanwhile.
        let waits_for_syncs =
            self.job.engine.engine == IoEngine::Libaio && self.log_cursor.is_none();
        if waits_for_syncs && self.syncs_in_flight > 0 {
            return Ok(self.reap_next(ring, None));
        }
        if let Some(held) = self.drawn_io.take() {
            return self.issue_io(ring, held);
        }
        let low = self.job.engine.depth_low.unwrap_or(u32::MAX) as usize;
        let left = slots.in_use_count();
        self.is_refilling &= left > 0 && (left > low || slots.is_full());
        if self.pending_search_step != SearchStep::ContinueWindow && !self.is_refilling {
            return Ok(self.leave_ring(ring, HaltReason::DepthSearch));
        }
        self.is_refilling |= !self.has_free_slot(slots);
        if self.is_refilling {
            return Ok(self.reap_to_refill(ring));
        }
        if self.is_time_over(self.last_clock_reading) {
            return Ok(self.leave_ring(ring, HaltReason::JobEnd));
        }
        match self.log_cursor.is_some() {
            true => self.next_log_step(ring),
            false => self.draw_io(ring),
        }
    }

    /// Takes the next I/O of the log that the job repeats.
    fn next_log_step(&mut self, ring: &IoRing<'_>) -> Result<RingStep, ProgramError> {
        let step = self
            .log_cursor
            .as_mut()
            .map(|script| script.next_step(self.last_clock_reading));
        Ok(match step {
            Some(LogStep::IssueIo {
                operation,
                extent,
                intended,
            }) => self.put_request_step(ring, operation, extent, intended)?,
            Some(LogStep::WaitUntil(due)) => self.reap_until(ring, due),
            Some(LogStep::EndOfLog) | None => self.leave_ring(ring, HaltReason::JobEnd),
        })
    }

    /// Draws the next I/O, or takes the sync that is due before it.
    fn draw_io(&mut self, ring: &IoRing<'_>) -> Result<RingStep, ProgramError> {
        while let Some(due) = self.io_stream.due_sync() {
            if let Some(step) = self.issue_sync(ring, due)? {
                return Ok(step);
            }
        }
        let drawn = self.io_stream.draw_direction();
        let (direction, intended) =
            match self
                .rate_limits
                .decide_issue(drawn, self.job, self.last_clock_reading)
            {
                RateDecision::IssueNow(direction, intended) => (direction, intended),
                RateDecision::WaitUntil(due) => return Ok(self.reap_until(ring, due)),
            };
        match self.wait_for_flow_turn(ring.target_system) {
            // With I/O of its own in flight, the job looks again when one completes.
            Some(HaltReason::WaitForFlow(_)) if ring.slots.in_use_count() > 0 => {
                return Ok(self.reap_next(ring, self.time_limits.time_limit_end));
            }
            Some(halt) => return Ok(self.leave_ring(ring, halt)),
            None => {}
        }
        match self.io_stream.next_io(direction) {
            NextIo::Io(io) if self.is_covered_by_state(io.file_index, io.offset_bytes) => {
                self.rate_limits.count_issued(&io);
                self.issue_io(
                    ring,
                    DrawnIo {
                        file_io: io,
                        intended_issue: intended,
                    },
                )
            }
            NextIo::Io(_) => Ok(self.leave_ring(ring, HaltReason::JobEnd)),
            NextIo::PassEnd => Ok(self.leave_ring(ring, HaltReason::PassEnd)),
        }
    }

    /// Issues an I/O, or holds it until it may be issued.
    fn issue_io(&mut self, ring: &IoRing<'_>, held: DrawnIo) -> Result<RingStep, ProgramError> {
        let DrawnIo {
            file_io: io,
            intended_issue: intended,
        } = held;
        let halt = match self.io_stream.take_restarted_file() {
            Some(file) => Some(HaltReason::DropPageCache(file)),
            None => self
                .io_stream
                .take_drain()
                .then_some(HaltReason::DrainForZoneChange),
        };
        if let Some(halt) = halt {
            self.drawn_io = Some(held);
            return Ok(self.leave_ring(ring, halt));
        }
        if self.job.engine.serializes_overlap {
            let range = io.offset_bytes..io.offset_bytes + u64::from(io.bytes);
            if ring
                .slots
                .has_overlapping_request(ring.open_files[io.file_index].0, range)
            {
                self.drawn_io = Some(held);
                return Ok(self.reap_next(ring, None));
            }
            // What has its lock is issued, and frees it.
            if self.file_lock.is_none() && self.is_time_over(ring.target_system.now()) {
                return Ok(self.leave_ring(ring, HaltReason::JobEnd));
            }
        }
        if locks_files(self.job) && self.file_lock.is_none() {
            self.drawn_io = Some(held);
            return Ok(self.leave_ring(ring, HaltReason::LockFile));
        }
        self.last_issued = Some(io);
        self.put_request_step(
            ring,
            operation_of_direction(io.direction),
            io.extent(),
            intended,
        )
    }

    /// Returns the work that follows an issued I/O if the clone must leave its ring for it.
    fn follow_up_of_io(&mut self, ring: &IoRing<'_>, io: FileIo) -> Option<HaltReason> {
        let direction = io.direction;
        let is_before_its_write =
            direction == Direction::Trim && self.job.pattern.access.includes(Direction::Write);
        let trims = self.due_trims(&io);
        let is_followed = is_before_its_write || self.file_lock.is_some() || !trims.is_empty();
        if is_followed || self.backlog_batch(ring).is_some() {
            return Some(HaltReason::FollowUp { direction, trims });
        }
        let pauses = self.think_pauses.count_io(ring.target_system.now());
        pauses.then_some(HaltReason::PauseForThinkTime(direction))
    }

    fn has_free_slot(&self, slots: &Slots) -> bool {
        let depth = self.depth_search.as_ref().map(DepthSearch::current_depth);
        !slots.is_full() && depth.is_none_or(|depth| slots.in_use_count() < depth as usize)
    }

    /// Issues a sync. Returns `None` for a range without bytes, which needs no sync.
    fn issue_sync(
        &mut self,
        ring: &IoRing<'_>,
        due: DueSync,
    ) -> Result<Option<RingStep>, ProgramError> {
        let is_of_range = matches!(due.operation, IoOperation::SyncRange(_));
        if is_of_range && due.byte_range.is_empty() {
            return Ok(None);
        }
        // What no request can hold is all to the end of the file.
        let bytes = u32::try_from(due.byte_range.end - due.byte_range.start).unwrap_or(0);
        let (offset_bytes, bytes) = match is_of_range {
            true => (due.byte_range.start, bytes),
            false => (0, 0),
        };
        let extent = FileExtent {
            file_index: due.file_index,
            offset_bytes,
            bytes,
        };
        self.put_request_step(ring, due.operation, extent, None)
            .map(Some)
    }

    /// Puts a request into a slot, and records it in the I/O log that the job writes.
    pub(in super::super) fn put_request_step(
        &mut self,
        ring: &IoRing<'_>,
        operation: IoOperation,
        extent: FileExtent,
        intended: Option<Nanoseconds>,
    ) -> Result<RingStep, ProgramError> {
        let request = Submission {
            operation,
            file: ring.open_files[extent.file_index].0,
            offset_bytes: extent.offset_bytes,
            bytes: extent.bytes,
            slot: 0,
            intended_start: intended,
        };
        if let Some(log) = &mut self.iolog_writer {
            log.record_issue(ring.target_system.now(), extent.file_index, &request)?;
        }
        self.syncs_in_flight += u32::from(is_sync_operation(operation));
        Ok(RingStep::PutRequest(extent.file_index, request))
    }

    /// Reaps as many completions as the job takes in one call, until few enough requests are in
    /// flight to fill the slots again.
    fn reap_to_refill(&self, ring: &IoRing<'_>) -> RingStep {
        let engine = &self.job.engine;
        let least = engine.completions_min.max(1) as usize;
        // Without a maximum, fio takes as many as the minimum.
        let most = engine.completions_max.map_or(least, |most| most as usize);
        let at_least = least.min(ring.slots.in_use_count());
        RingStep::ReapCompletions {
            at_least,
            at_most: most.max(least),
            until: self.next_check(ring.target_system),
        }
    }

    /// Waits until a given time or for a completion, but not beyond the end of the job.
    fn reap_until(&self, ring: &IoRing<'_>, due: Nanoseconds) -> RingStep {
        let wake = self
            .time_limits
            .time_limit_end
            .map_or(due, |end| end.min(due));
        self.reap_next(ring, Some(wake))
    }

    /// Waits for the next completion, but not longer than `until` and the next check of the job.
    /// fio reaps the last completions together, so that each of them seems to last until the
    /// slowest is complete.
    fn reap_next(&self, ring: &IoRing<'_>, until: Option<Nanoseconds>) -> RingStep {
        RingStep::reap_step(
            1,
            until
                .into_iter()
                .chain(self.next_check(ring.target_system))
                .min(),
        )
    }

    /// Reports whether the job continues although a request failed with this error, and counts the
    /// error.
    fn continues_on_error(
        &mut self,
        system: &mut System,
        operation: IoOperation,
        errno: Errno,
    ) -> bool {
        let has_no_space = matches!(errno, Errno::NoSpace | Errno::Quota);
        if self.job.files.fills_device && has_no_space && operation == IoOperation::Write {
            self.is_device_full = true;
            return true;
        }
        let errors = &self.job.errors;
        let passes_over = errors.ignores(error_kind(operation), errno.number());
        if passes_over {
            system.count_ignored_error(errno);
        }
        passes_over
    }
}

/// Requests that a clone issues apart from its I/Os: trims, and reads that verify.
struct SideRequests<'c, 'a, Next> {
    job_clone: &'c mut JobClone<'a>,
    /// Number of requests that one call submits.
    batch_size: usize,
    next_request: Next,
}

impl<'a, Next> RequestSource for SideRequests<'_, 'a, Next>
where
    Next: FnMut(&mut JobClone<'a>, &mut IoRing<'_>) -> Result<Option<RingStep>, ProgramError>,
{
    fn next_step(&mut self, ring: &mut IoRing<'_>) -> Result<RingStep, ProgramError> {
        if ring.slots.unsubmitted_requests().len() >= self.batch_size {
            return Ok(RingStep::SubmitBatch(None));
        }
        if !ring.slots.is_full()
            && let Some(step) = (self.next_request)(self.job_clone, ring)?
        {
            return Ok(step);
        }
        Ok(match ring.slots.in_use_count() {
            0 => RingStep::LeaveRing,
            _ => self.job_clone.reap_next(ring, None),
        })
    }

    fn complete_request(
        &mut self,
        ring: &mut IoRing<'_>,
        done: &mut CompletedRequest,
    ) -> Result<(), ProgramError> {
        self.job_clone.complete_request(ring, done)
    }

    fn end_of_reap(&mut self, ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        self.job_clone.end_of_reap(ring)
    }
}

impl<'a> JobClone<'a> {
    /// Issues all requests that `next` returns, submits them in batches of `batch`, and waits for
    /// them.
    pub(in super::super) async fn issue_all(
        &mut self,
        ring: &mut IoRing<'_>,
        batch: usize,
        next: impl FnMut(&mut JobClone<'a>, &mut IoRing<'_>) -> Result<Option<RingStep>, ProgramError>,
    ) -> Result<(), ProgramError> {
        let clone = self;
        ring.run_source(&mut SideRequests {
            job_clone: clone,
            batch_size: batch,
            next_request: next,
        })
        .await
    }
}

/// Returns the error category under which fio counts a failure of an operation.
fn error_kind(operation: IoOperation) -> ErrorKind {
    match operation {
        IoOperation::Read => ErrorKind::Read,
        IoOperation::Write
        | IoOperation::DiscardRange
        | IoOperation::Fsync
        | IoOperation::Fdatasync
        | IoOperation::SyncRange(_) => ErrorKind::Write,
    }
}
