//! Slots of a ring: free slots, requests in the others, and the remainders of short writes.

use super::file_calls::FileCalls;
use crate::program::ProgramError;
use diskperf_system::{CallKind, Errno, File, IoCompletion, IoOperation, Submission, System};
use diskperf_timeline::Nanoseconds;
use std::collections::HashMap;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ops::Range;

pub(crate) struct CompletedRequest {
    pub(crate) request: Submission,
    /// Response time of the request. For a write in several parts, the longest of their response
    /// times.
    pub(crate) response_time: Nanoseconds,
    /// Failed system call with its error, or `None` if the request succeeded.
    pub(crate) call_failure: Option<(CallKind, Errno)>,
    /// Whether the program continues although the request failed.
    pub(crate) is_failure_ignored: bool,
}

#[derive(Clone, Copy, Default)]
struct RequestProgress {
    moved_bytes: u32,
    response_max: Nanoseconds,
}

/// Slots of a ring, one for each request.
pub(crate) struct Slots {
    free_slots: Vec<u32>,
    /// Request in each slot. `None` for a free slot.
    request_by_slot: Vec<Option<Submission>>,
    /// Completed part of the write in each slot, before its remainder is submitted.
    progress_by_slot: Vec<RequestProgress>,
    /// Requests that wait for submission.
    unsubmitted_batch: Vec<Submission>,
    /// Maximum number of requests per submission. The first submission of a batch has a quarter of
    /// it.
    submission_size_max: usize,
    /// Completions of the last reap. `taken_count` counts those that were taken.
    completions: Vec<IoCompletion>,
    taken_completion_count: usize,
    /// Calls on files that stand for requests to a ring, if any.
    file_calls: Option<FileCalls>,
    /// First byte of each file that is an area of a drive.
    file_starts_bytes: HashMap<File, u64>,
    /// Requests with their offsets on the drive.
    batch_at_file_offsets: Vec<Submission>,
}

impl Slots {
    /// Creates the slots of a ring of this depth that submits all waiting requests in one call.
    pub(crate) fn new(depth: u64) -> Self {
        Self::with_submission_size(depth, depth)
    }

    /// Creates the slots of a ring of this depth that submits at most `at_once` requests per call.
    pub(crate) fn with_submission_size(depth: u64, at_once: u64) -> Self {
        let depth = depth as usize;
        Self {
            free_slots: (0..depth as u32).rev().collect(),
            request_by_slot: vec![None; depth],
            progress_by_slot: vec![RequestProgress::default(); depth],
            unsubmitted_batch: new_touched_vec(depth),
            submission_size_max: at_once.max(1) as usize,
            completions: new_touched_vec(depth),
            taken_completion_count: 0,
            file_calls: None,
            file_starts_bytes: HashMap::new(),
            batch_at_file_offsets: Vec::new(),
        }
    }

    /// Sets the first bytes of files on their drive. Requests keep their offsets within the file
    /// and are submitted at the offsets on the drive.
    pub(crate) fn set_file_starts(&mut self, starts: impl Iterator<Item = (File, u64)>) {
        self.file_starts_bytes = starts.filter(|(_, start_bytes)| *start_bytes > 0).collect();
    }

    /// Creates one slot without a ring. Each request is a call on a file, made when the request is
    /// submitted.
    pub(crate) fn with_file_calls(calls: FileCalls) -> Self {
        Self {
            file_calls: Some(calls),
            ..Self::new(1)
        }
    }

    /// Reports whether all slots of the ring are in use.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.free_slots.is_empty()
    }

    /// Returns the number of slots of the ring.
    pub(crate) fn slot_count(&self) -> usize {
        self.request_by_slot.len()
    }

    /// Returns the number of slots in use, by requests in flight or waiting for submission.
    #[inline]
    pub(crate) fn in_use_count(&self) -> usize {
        self.request_by_slot.len() - self.free_slots.len()
    }

    pub(crate) fn has_overlapping_request(&self, file: File, range: Range<u64>) -> bool {
        let in_flight = self.request_by_slot.iter().flatten();
        in_flight.filter(|one| one.file == file).any(|one| {
            let end_bytes = one.offset_bytes + u64::from(one.bytes);
            one.offset_bytes < range.end && range.start < end_bytes
        })
    }

    /// Assigns a free slot to a request, and returns the request with that slot. The request is
    /// submitted with the next batch.
    ///
    /// # Panics
    ///
    /// Panics if no slot is free.
    #[inline]
    pub(super) fn put_request(&mut self, request: Submission) -> Submission {
        let slot = self.free_slots.pop().expect("a slot is free");
        let request = Submission { slot, ..request };
        self.request_by_slot[slot as usize] = Some(request);
        self.unsubmitted_batch.push(request);
        request
    }

    /// Submits the waiting requests, but not before `moment`, which must be near, if it is given.
    #[inline]
    pub(super) async fn submit_batch(
        &mut self,
        system: &mut System,
        moment: Option<Nanoseconds>,
    ) -> Result<(), ProgramError> {
        if let Some(calls) = &self.file_calls {
            for request in self.unsubmitted_batch.drain(..) {
                self.completions
                    .push(calls.make_calls(system, &request).await?);
            }
            return Ok(());
        }
        let batch = match self.file_starts_bytes.is_empty() {
            true => &self.unsubmitted_batch,
            false => {
                let starts = &self.file_starts_bytes;
                let placed = self.unsubmitted_batch.iter().map(|request| Submission {
                    offset_bytes: request.offset_bytes
                        + starts.get(&request.file).copied().unwrap_or(0),
                    ..*request
                });
                self.batch_at_file_offsets.clear();
                self.batch_at_file_offsets.extend(placed);
                &self.batch_at_file_offsets
            }
        };
        // A device that has completed all that it had begins again with the first few.
        let few = batch.len().min(self.submission_size_max.div_ceil(4));
        let (first, others) = batch.split_at(few);
        match moment {
            _ if first.is_empty() => {}
            None => system.submit_requests(first).await?,
            Some(moment) => system.submit_requests_at(moment, first).await?,
        }
        for some in others.chunks(self.submission_size_max) {
            system.submit_requests(some).await?;
        }
        self.unsubmitted_batch.clear();
        Ok(())
    }

    #[inline]
    pub(crate) fn unsubmitted_requests(&self) -> &[Submission] {
        &self.unsubmitted_batch
    }

    /// Waits as [`System::reap_requests`] does. Completions that are available and not [taken](Self::take_completed)
    /// count.
    #[inline]
    pub(crate) async fn reap_completions(
        &mut self,
        system: &mut System,
        at_least: usize,
        until: Option<Nanoseconds>,
    ) -> Result<Nanoseconds, ProgramError> {
        let ready = self.completions.len() - self.taken_completion_count;
        if ready > 0 && ready >= at_least {
            return Ok(system.now());
        }
        self.completions.drain(..self.taken_completion_count);
        self.taken_completion_count = 0;
        if self.file_calls.is_none() {
            let at_least = at_least - ready;
            return Ok(system
                .reap_requests(at_least, until, &mut self.completions)
                .await?);
        }
        // What was submitted is complete: there is a moment, or no wait.
        if let (true, Some(until)) = (ready < at_least, until) {
            system.sleep_until(until).await?;
        }
        Ok(system.now())
    }

    /// Takes the next request that did all its work or failed, if there is one. The remainder of a
    /// short write joins the next batch, in the same slot.
    ///
    /// # Errors
    ///
    /// Fails for a read that ends early, and for a write that accepted no bytes.
    #[inline]
    pub(super) fn take_completed(&mut self) -> Result<Option<CompletedRequest>, ProgramError> {
        while let Some(completion) = self.completions.get(self.taken_completion_count).copied() {
            self.taken_completion_count += 1;
            let slot = completion.slot as usize;
            let request = self.request_by_slot[slot].expect("a slot that completes is in use");
            let failure = match completion.byte_count_or_errno {
                Ok(moved_bytes) if self.continue_if_short(&request, moved_bytes)? => {
                    let longest = &mut self.progress_by_slot[slot].response_max;
                    *longest = completion.response_time.max(*longest);
                    continue;
                }
                Ok(_) => None,
                Err(errno) => {
                    let calls = self.file_calls.as_ref();
                    let call = calls
                        .map_or_else(|| system_call_of(request.operation), FileCalls::call_kind);
                    Some((call, errno))
                }
            };
            self.free_slots.push(completion.slot);
            self.request_by_slot[slot] = None;
            let parts = std::mem::take(&mut self.progress_by_slot[slot]);
            return Ok(Some(CompletedRequest {
                request,
                response_time: completion.response_time.max(parts.response_max),
                call_failure: failure,
                is_failure_ignored: false,
            }));
        }
        self.completions.clear();
        self.taken_completion_count = 0;
        Ok(None)
    }

    /// Returns whether a request moved fewer bytes than it had to. The remainder of a write joins
    /// the next batch.
    #[inline]
    fn continue_if_short(
        &mut self,
        request: &Submission,
        moved_bytes: u32,
    ) -> Result<bool, ProgramError> {
        let moved_before = &mut self.progress_by_slot[request.slot as usize].moved_bytes;
        let all_moved_bytes = *moved_before + moved_bytes;
        if all_moved_bytes >= request.bytes || moves_no_bytes(request.operation) {
            return Ok(false);
        }
        if request.operation == IoOperation::Read {
            return Err(ProgramError::ShortFile);
        }
        if moved_bytes == 0 {
            return Err(ProgramError::WriteAcceptedNothing);
        }
        *moved_before = all_moved_bytes;
        self.unsubmitted_batch.push(Submission {
            offset_bytes: request.offset_bytes + u64::from(all_moved_bytes),
            bytes: request.bytes - all_moved_bytes,
            ..*request
        });
        Ok(true)
    }
}

/// Allocates a vector with room for `count` items and touches its memory, because the first touch
/// of a page takes as long as a fast request.
fn new_touched_vec<T: Copy>(count: usize) -> Vec<T> {
    let mut room = Vec::with_capacity(count);
    // Else the memory would be asked for as zeroes, which are there when they are touched.
    black_box(room.spare_capacity_mut()).fill(MaybeUninit::zeroed());
    room
}

fn moves_no_bytes(operation: IoOperation) -> bool {
    match operation {
        IoOperation::Fsync
        | IoOperation::Fdatasync
        | IoOperation::SyncRange(_)
        | IoOperation::DiscardRange => true,
        IoOperation::Read | IoOperation::Write => false,
    }
}

fn system_call_of(operation: IoOperation) -> CallKind {
    match operation {
        IoOperation::Read => CallKind::Read,
        IoOperation::Write => CallKind::Write,
        IoOperation::Fsync => CallKind::Fsync,
        IoOperation::Fdatasync => CallKind::Fdatasync,
        IoOperation::SyncRange(_) => CallKind::SyncFileRange,
        IoOperation::DiscardRange => CallKind::Discard,
    }
}
