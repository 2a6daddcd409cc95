//! I/O loop that issues the requests of a source on a ring and reaps their completions.

pub(crate) mod file_calls;
mod list;
pub(crate) mod slots;

use crate::blocks::pause_for_think_time;
use crate::program::ProgramError;
use crate::verify::{UnreadBlock, Verifier};
use diskperf_system::{Error, File, Submission, System};
use diskperf_timeline::Nanoseconds;
use slots::{CompletedRequest, Slots};

/// Source of requests, such as a load, a trace, a fio clone or a list.
pub(crate) trait RequestSource {
    /// Decides the next step of the I/O loop.
    fn next_step(&mut self, ring: &mut IoRing<'_>) -> Result<RingStep, ProgramError>;

    /// Prepares a request that has received its slot.
    fn prepare_request(&mut self, _ring: &mut IoRing<'_>, _request: &Submission) {}

    /// Counts a completed request. A source may ignore a failure of the request; otherwise the
    /// failure ends the program.
    fn complete_request(
        &mut self,
        _: &mut IoRing<'_>,
        _: &mut CompletedRequest,
    ) -> Result<(), ProgramError> {
        Ok(())
    }

    /// Runs after each reap, whether or not a request completed.
    fn end_of_reap(&mut self, _ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        Ok(())
    }
}

/// Step of the I/O loop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RingStep {
    /// Puts a request to the file with this index into a free slot, where it waits for submission.
    /// One slot must be free.
    PutRequest(usize, Submission),
    /// Puts the read of a previously written block into a slot. Its data is compared with the
    /// written data.
    ReadBack(UnreadBlock),
    /// Submits the waiting requests, now or at a time in the near future.
    SubmitBatch(Option<Nanoseconds>),
    /// Submits the waiting requests, and waits for `at_least` completions, but not beyond `until`.
    /// Takes at most `at_most` of them and leaves the others to the next reap.
    ReapCompletions {
        at_least: usize,
        at_most: usize,
        until: Option<Nanoseconds>,
    },
    /// Takes the available completions and submits nothing. [`System::reap_requests`] defines how long this
    /// waits if there is none, but not beyond the given time.
    PollUntil(Nanoseconds),
    /// Returns to the caller immediately, whatever is in flight.
    LeaveRing,
}

impl RingStep {
    /// Creates the step that waits for `at_least` completions, but not beyond `until`, and takes
    /// all available ones.
    #[inline]
    pub(crate) fn reap_step(at_least: usize, until: Option<Nanoseconds>) -> Self {
        Self::ReapCompletions {
            at_least,
            at_most: usize::MAX,
            until,
        }
    }

    /// Creates the step that waits for the next completion, or that returns if no slot is in use.
    #[inline]
    pub(crate) fn drain_step(slots: &Slots) -> Self {
        match slots.in_use_count() {
            0 => Self::LeaveRing,
            _ => Self::reap_step(1, None),
        }
    }
}

/// Open ring of a worker, with its files.
pub(crate) struct IoRing<'a> {
    pub(crate) target_system: &'a mut System,
    pub(crate) slots: Slots,
    pub(crate) open_files: Vec<(File, String)>,
    /// Verifier of the blocks of the files, if verification is on.
    pub(crate) verifier: Option<Verifier>,
    /// CPU time that the program uses after each completion.
    pub(crate) think_time: Nanoseconds,
    /// Time of the last reap, or the start of the I/O loop before the first reap.
    pub(crate) last_clock_reading: Nanoseconds,
}

impl<'a> IoRing<'a> {
    pub(crate) fn new(system: &'a mut System, slots: Slots, files: Vec<(File, String)>) -> Self {
        Self {
            last_clock_reading: system.now(),
            target_system: system,
            slots,
            open_files: files,
            verifier: None,
            think_time: Nanoseconds::ZERO,
        }
    }

    /// Issues the requests of a source until the source returns.
    ///
    /// # Errors
    ///
    /// Returns the errors of the source, of its requests and of the ring.
    pub(crate) async fn run_source(
        &mut self,
        source: &mut impl RequestSource,
    ) -> Result<(), ProgramError> {
        self.last_clock_reading = self.target_system.now();
        loop {
            match source.next_step(self)? {
                RingStep::PutRequest(file, request) => {
                    let request = self.slots.put_request(request);
                    if let Some(verifier) = &mut self.verifier {
                        verifier.prepare_write(self.target_system, request, file);
                    }
                    source.prepare_request(self, &request);
                }
                RingStep::ReadBack(unread) => {
                    let request = unread.read_request(self.open_files[unread.file()].0);
                    let slot = self.slots.put_request(request).slot;
                    if let Some(verifier) = &mut self.verifier {
                        verifier.expect_read_back(slot, unread);
                    }
                }
                RingStep::SubmitBatch(moment) => {
                    self.slots.submit_batch(self.target_system, moment).await?
                }
                RingStep::ReapCompletions {
                    at_least,
                    at_most,
                    until,
                } => {
                    self.slots.submit_batch(self.target_system, None).await?;
                    self.last_clock_reading = self
                        .slots
                        .reap_completions(self.target_system, at_least, until)
                        .await?;
                    self.deliver_completions(source, at_most).await?;
                }
                RingStep::PollUntil(until) => {
                    self.last_clock_reading = self
                        .slots
                        .reap_completions(self.target_system, 0, Some(until))
                        .await?;
                    self.deliver_completions(source, usize::MAX).await?;
                }
                RingStep::LeaveRing => return Ok(()),
            }
        }
    }

    /// Passes at most `at_most` completions to a source.
    #[inline]
    async fn deliver_completions(
        &mut self,
        source: &mut impl RequestSource,
        at_most: usize,
    ) -> Result<(), ProgramError> {
        for _ in 0..at_most {
            let Some(mut completed) = self.slots.take_completed()? else {
                break;
            };
            source.complete_request(self, &mut completed)?;
            self.verify_completed(&completed)?;
            if !self.think_time.is_zero() {
                pause_for_think_time(self.target_system, self.think_time).await?;
            }
        }
        if let Some(verifier) = &mut self.verifier {
            verifier.move_remainders(self.target_system, self.slots.unsubmitted_requests());
        }
        source.end_of_reap(self)
    }

    /// Verifies the block of a completed request. Fails if the request failed.
    #[inline]
    fn verify_completed(&mut self, completed: &CompletedRequest) -> Result<(), ProgramError> {
        let request = &completed.request;
        if let Some((call, errno)) = completed.call_failure
            && !completed.is_failure_ignored
        {
            return Err(Error::call_failed(call, self.path_of_file(request.file), errno).into());
        }
        match &mut self.verifier {
            Some(verifier) if completed.call_failure.is_some() => {
                verifier.discard_failed_slot(request.slot)
            }
            Some(verifier) => {
                let path = |file: usize| self.open_files[file].1.clone();
                verifier.complete_slot(self.target_system, request.slot, path)?;
            }
            None => {}
        }
        Ok(())
    }

    pub(crate) fn path_of_file(&self, file: File) -> String {
        let found = self.open_files.iter().find(|(open, _)| *open == file);
        found.map(|(_, path)| path.clone()).unwrap_or_default()
    }
}
