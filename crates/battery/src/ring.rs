//! I/O loop that issues the requests of a source on a ring and reaps their completions.

pub(crate) mod file_calls;
mod list;
pub(crate) mod slots;

use crate::blocks::pause;
use crate::program::ProgramError;
use crate::verify::{UnreadBlock, Verifier};
use diskperf_system::{Error, File, Submission, System};
use diskperf_timeline::Nanoseconds;
use slots::{CompletedRequest, Slots};

/// Source of requests, such as a load, a trace, a fio clone or a list.
pub(crate) trait RequestSource {
    /// Decides the next step of the I/O loop.
    fn next(&mut self, ring: &mut IoRing<'_>) -> Result<RingStep, ProgramError>;

    /// Prepares a request that has received its slot.
    fn prepare(&mut self, _ring: &mut IoRing<'_>, _request: &Submission) {}

    /// Counts a completed request. A source may ignore a failure of the request; otherwise the
    /// failure ends the program.
    fn complete(
        &mut self,
        _: &mut IoRing<'_>,
        _: &mut CompletedRequest,
    ) -> Result<(), ProgramError> {
        Ok(())
    }

    /// Runs after each reap, whether or not a request completed.
    fn end_reap(&mut self, _ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
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
    Submit(Option<Nanoseconds>),
    /// Submits the waiting requests, and waits for `at_least` completions, but not beyond `until`.
    /// Takes at most `at_most` of them and leaves the others to the next reap.
    Reap {
        at_least: usize,
        at_most: usize,
        until: Option<Nanoseconds>,
    },
    /// Takes the available completions and submits nothing. [`System::reap`] defines how long this
    /// waits if there is none, but not beyond the given time.
    Poll(Nanoseconds),
    /// Returns to the caller immediately, whatever is in flight.
    Leave,
}

impl RingStep {
    /// Creates the step that waits for `at_least` completions, but not beyond `until`, and takes
    /// all available ones.
    #[inline]
    pub(crate) fn reap(at_least: usize, until: Option<Nanoseconds>) -> Self {
        Self::Reap {
            at_least,
            at_most: usize::MAX,
            until,
        }
    }

    /// Creates the step that waits for the next completion, or that returns if no slot is in use.
    #[inline]
    pub(crate) fn drain(slots: &Slots) -> Self {
        match slots.in_use_count() {
            0 => Self::Leave,
            _ => Self::reap(1, None),
        }
    }
}

/// Open ring of a worker, with its files.
pub(crate) struct IoRing<'a> {
    pub(crate) system: &'a mut System,
    pub(crate) slots: Slots,
    pub(crate) files: Vec<(File, String)>,
    /// Verifier of the blocks of the files, if verification is on.
    pub(crate) verifier: Option<Verifier>,
    /// CPU time that the program uses after each completion.
    pub(crate) think: Nanoseconds,
    /// Time of the last reap, or the start of the I/O loop before the first reap.
    pub(crate) now: Nanoseconds,
}

impl<'a> IoRing<'a> {
    pub(crate) fn new(system: &'a mut System, slots: Slots, files: Vec<(File, String)>) -> Self {
        Self {
            now: system.now(),
            system,
            slots,
            files,
            verifier: None,
            think: Nanoseconds::ZERO,
        }
    }

    /// Issues the requests of a source until the source returns.
    ///
    /// # Errors
    ///
    /// Returns the errors of the source, of its requests and of the ring.
    pub(crate) async fn run(
        &mut self,
        source: &mut impl RequestSource,
    ) -> Result<(), ProgramError> {
        self.now = self.system.now();
        loop {
            match source.next(self)? {
                RingStep::PutRequest(file, request) => {
                    let request = self.slots.put_request(request);
                    if let Some(verifier) = &mut self.verifier {
                        verifier.prepare(self.system, request, file);
                    }
                    source.prepare(self, &request);
                }
                RingStep::ReadBack(unread) => {
                    let request = unread.request(self.files[unread.file()].0);
                    let slot = self.slots.put_request(request).slot;
                    if let Some(verifier) = &mut self.verifier {
                        verifier.expect_read_back(slot, unread);
                    }
                }
                RingStep::Submit(moment) => self.slots.submit(self.system, moment).await?,
                RingStep::Reap {
                    at_least,
                    at_most,
                    until,
                } => {
                    self.slots.submit(self.system, None).await?;
                    self.now = self.slots.reap(self.system, at_least, until).await?;
                    self.deliver_completions(source, at_most).await?;
                }
                RingStep::Poll(until) => {
                    self.now = self.slots.reap(self.system, 0, Some(until)).await?;
                    self.deliver_completions(source, usize::MAX).await?;
                }
                RingStep::Leave => return Ok(()),
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
            source.complete(self, &mut completed)?;
            self.verify_completed(&completed)?;
            if !self.think.is_zero() {
                pause(self.system, self.think).await?;
            }
        }
        if let Some(verifier) = &mut self.verifier {
            verifier.move_remainders(self.system, self.slots.unsubmitted_requests());
        }
        source.end_reap(self)
    }

    /// Verifies the block of a completed request. Fails if the request failed.
    #[inline]
    fn verify_completed(&mut self, completed: &CompletedRequest) -> Result<(), ProgramError> {
        let request = &completed.request;
        if let Some((call, errno)) = completed.failure
            && !completed.is_failure_ignored
        {
            return Err(Error::failed(call, self.path(request.file), errno).into());
        }
        match &mut self.verifier {
            Some(verifier) if completed.failure.is_some() => verifier.fail_slot(request.slot),
            Some(verifier) => {
                let path = |file: usize| self.files[file].1.clone();
                verifier.complete_slot(self.system, request.slot, path)?;
            }
            None => {}
        }
        Ok(())
    }

    pub(crate) fn path(&self, file: File) -> String {
        let found = self.files.iter().find(|(open, _)| *open == file);
        found.map(|(_, path)| path.clone()).unwrap_or_default()
    }
}
