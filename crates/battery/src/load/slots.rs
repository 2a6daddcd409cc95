//! The slots of a ring: which are free, what each of the others does, and what becomes of
//! a request that did less than it was to do.

use super::file_calls::FileCalls;
use crate::program::ProgramError;
use crate::verify::Verifier;
use diskperf_system::{Call, Completion, Errno, Error, File, Operation, Submission, System};
use diskperf_timeline::Nanoseconds;
use std::collections::HashMap;
use std::hint::black_box;
use std::mem::MaybeUninit;

/// The slots of a ring.
pub(crate) struct Slots {
    free: Vec<u32>,
    /// What each slot does; nothing of a free one.
    doing: Vec<Option<Submission>>,
    /// What is to be submitted.
    batch: Vec<Submission>,
    /// How much of it at once, at most; a quarter of that of the first.
    at_once: usize,
    /// What completed, and how many of them were taken.
    done: Vec<Completion>,
    taken: usize,
    /// Calls that are made instead of requests to a ring.
    calls: Option<FileCalls>,
    /// First byte of each file that is an area of a drive.
    starts: HashMap<File, u64>,
    /// Requests at their offsets on the drive.
    placed: Vec<Submission>,
}

impl Slots {
    /// Of a ring of so many slots, which submits all that it can at once.
    pub(crate) fn new(depth: u64) -> Self {
        Self::submitting(depth, depth)
    }

    /// The same, which submits at most so many at once.
    pub(crate) fn submitting(depth: u64, at_once: u64) -> Self {
        let depth = depth as usize;
        Self {
            free: (0..depth as u32).rev().collect(),
            doing: vec![None; depth],
            batch: with_memory(depth),
            at_once: at_once.max(1) as usize,
            done: with_memory(depth),
            taken: 0,
            calls: None,
            starts: HashMap::new(),
            placed: Vec::new(),
        }
    }

    /// Puts files at first bytes of their drive. Requests keep their offsets in the file, and
    /// are submitted at those on the drive.
    pub(crate) fn place_files(&mut self, starts: impl Iterator<Item = (File, u64)>) {
        self.starts = starts.filter(|(_, start_bytes)| *start_bytes > 0).collect();
    }

    /// One slot without a ring: each request is a call on a file, which is made as the
    /// request is submitted.
    pub(crate) fn calling(calls: FileCalls) -> Self {
        Self {
            calls: Some(calls),
            ..Self::new(1)
        }
    }

    /// Whether no slot is free.
    #[inline]
    pub(crate) fn are_full(&self) -> bool {
        self.free.is_empty()
    }

    /// How many are not free.
    #[inline]
    pub(crate) fn under_way(&self) -> usize {
        self.doing.len() - self.free.len()
    }

    /// How many have been submitted and did not complete.
    #[inline]
    pub(crate) fn submitted(&self) -> usize {
        self.under_way() - self.batch.len()
    }

    /// Whether a request in flight has bytes of a file in common with another request.
    pub(crate) fn overlap(&self, other: &Submission) -> bool {
        let end = |of: &Submission| of.offset_bytes + u64::from(of.bytes);
        let in_flight = self.doing.iter().flatten();
        in_flight
            .filter(|one| one.file == other.file)
            .any(|one| one.offset_bytes < end(other) && other.offset_bytes < end(one))
    }

    /// Gives a request a free slot, whatever slot it names, and tells which; it is submitted
    /// with the next batch.
    ///
    /// # Panics
    ///
    /// If no slot is free.
    #[inline]
    pub(crate) fn put(&mut self, request: Submission) -> u32 {
        let slot = self.free.pop().expect("a slot is free");
        let request = Submission { slot, ..request };
        self.doing[slot as usize] = Some(request);
        self.batch.push(request);
        slot
    }

    /// Submits what has a slot and is not submitted.
    #[inline]
    pub(crate) async fn submit(&mut self, system: &mut System) -> Result<(), ProgramError> {
        self.submit_at(None, system).await
    }

    /// The same, not before a moment that is near.
    #[inline]
    pub(crate) async fn submit_at(
        &mut self,
        moment: Option<Nanoseconds>,
        system: &mut System,
    ) -> Result<(), ProgramError> {
        if let Some(calls) = &self.calls {
            for request in self.batch.drain(..) {
                self.done.push(calls.carry_out(system, &request).await?);
            }
            return Ok(());
        }
        let batch = match self.starts.is_empty() {
            true => &self.batch,
            false => {
                let starts = &self.starts;
                let placed = self.batch.iter().map(|request| Submission {
                    offset_bytes: request.offset_bytes
                        + starts.get(&request.file).copied().unwrap_or(0),
                    ..*request
                });
                self.placed.clear();
                self.placed.extend(placed);
                &self.placed
            }
        };
        // A device that has completed all that it had begins again with the first few.
        let few = batch.len().min(self.at_once.div_ceil(4));
        let (first, others) = batch.split_at(few);
        match moment {
            _ if first.is_empty() => {}
            None => system.submit(first).await?,
            Some(moment) => system.submit_at(moment, first).await?,
        }
        for some in others.chunks(self.at_once) {
            system.submit(some).await?;
        }
        self.batch.clear();
        Ok(())
    }

    /// What has a slot and is not submitted.
    pub(crate) fn waiting(&self) -> &[Submission] {
        &self.batch
    }

    /// What completed and was not taken, with its response.
    pub(crate) fn ready(&self) -> impl ExactSizeIterator<Item = (&Submission, Nanoseconds)> {
        self.done[self.taken..].iter().map(|completion| {
            let doing = self.doing[completion.slot as usize].as_ref();
            let request = doing.expect("a slot that completes was under way");
            (request, completion.response)
        })
    }

    /// Waits as [`System::reap`] does. What completed is there to be [taken](Self::take).
    #[inline]
    pub(crate) async fn reap(
        &mut self,
        system: &mut System,
        at_least: usize,
        until: Option<Nanoseconds>,
    ) -> Result<Nanoseconds, ProgramError> {
        if self.taken > 0 {
            self.done.drain(..self.taken);
            self.taken = 0;
        }
        if self.calls.is_none() {
            return Ok(system.reap(at_least, until, &mut self.done).await?);
        }
        // What was submitted is complete: there is a moment, or no wait.
        if let (true, Some(until)) = (self.done.len() < at_least, until) {
            system.sleep_until(until).await?;
        }
        Ok(system.now())
    }

    /// Takes the next request that did all that it was to do, if there is one. The rest of
    /// a short write is in the next batch, in the same slot.
    #[inline]
    pub(crate) fn take(
        &mut self,
        path: impl Fn(&Submission) -> String,
    ) -> Result<Option<Submission>, ProgramError> {
        self.take_unless(path, |_, _| false)
    }

    /// The same, for whom a request whose error is passed over is like one that did all.
    #[inline]
    pub(crate) fn take_unless(
        &mut self,
        path: impl Fn(&Submission) -> String,
        mut passes_over: impl FnMut(&Submission, Errno) -> bool,
    ) -> Result<Option<Submission>, ProgramError> {
        while let Some(Completion { slot, result, .. }) = self.done.get(self.taken).copied() {
            self.taken += 1;
            let doing = self.doing[slot as usize].as_mut();
            let request = doing.expect("a slot that completes was under way");
            let moved = match result {
                Ok(moved) => moved,
                Err(errno) if passes_over(request, errno) => request.bytes,
                Err(errno) => {
                    let call = match &self.calls {
                        Some(calls) => calls.name(),
                        None => call_of(request.operation),
                    };
                    return Err(Error::failed(call, path(request), errno).into());
                }
            };
            if moved >= request.bytes || is_of_no_bytes(request.operation) {
                let request = *request;
                self.free.push(slot);
                self.doing[slot as usize] = None;
                return Ok(Some(request));
            }
            if request.operation == Operation::Read {
                return Err(ProgramError::ShortFile);
            }
            if moved == 0 {
                return Err(ProgramError::NothingTaken);
            }
            request.offset_bytes += u64::from(moved);
            request.bytes -= moved;
            self.batch.push(*request);
        }
        self.done.clear();
        self.taken = 0;
        Ok(None)
    }

    /// Submits all requests of one file in order, and waits for all. Nothing else may be under
    /// way. `index` is that of the file where its blocks are verified.
    pub(crate) async fn carry_out(
        &mut self,
        (system, path, index): (&mut System, &str, usize),
        requests: &[Submission],
        mut verifier: Option<&mut Verifier>,
    ) -> Result<(), ProgramError> {
        let mut next = 0;
        while next < requests.len() || self.under_way() > 0 {
            while let Some(request) = requests.get(next).filter(|_| !self.are_full()) {
                let slot = self.put(*request);
                if let Some(verifier) = &mut verifier {
                    verifier.prepare(system, Submission { slot, ..*request }, index);
                }
                next += 1;
            }
            self.submit(system).await?;
            self.reap(system, 1, None).await?;
            while let Some(done) = self.take(|_| path.to_owned())? {
                if let Some(verifier) = &mut verifier {
                    verifier.complete(system, done.slot, |_| path.to_owned())?;
                }
            }
            if let Some(verifier) = &mut verifier {
                verifier.move_rests(system, self.waiting());
            }
        }
        Ok(())
    }
}

/// Room for so many, in memory that is there already: the first touch of a page takes as long
/// as a fast request.
fn with_memory<T: Copy>(count: usize) -> Vec<T> {
    let mut room = Vec::with_capacity(count);
    // Else the memory would be asked for as zeroes, which are there when they are touched.
    black_box(room.spare_capacity_mut()).fill(MaybeUninit::zeroed());
    room
}

/// Whether an operation's result is no number of bytes.
fn is_of_no_bytes(operation: Operation) -> bool {
    match operation {
        Operation::Fsync | Operation::Fdatasync | Operation::SyncRange(_) | Operation::Discard => {
            true
        }
        Operation::Read | Operation::Write => false,
    }
}

/// The call that a request to a ring is.
fn call_of(operation: Operation) -> Call {
    match operation {
        Operation::Read => Call::Read,
        Operation::Write => Call::Write,
        Operation::Fsync => Call::Fsync,
        Operation::Fdatasync => Call::Fdatasync,
        Operation::SyncRange(_) => Call::SyncFileRange,
        Operation::Discard => Call::Discard,
    }
}
