//! Requests that are issued in order, all of which complete.

use super::slots::{Completed, Slots};
use super::{Ring, RingStep, Source};
use crate::program::ProgramError;
use crate::verify::Verifier;
use diskperf_system::{Submission, System};
use diskperf_timeline::Nanoseconds;

/// Requests of one file.
struct Batch<'a> {
    requests: std::slice::Iter<'a, Submission>,
    path: &'a str,
    /// Index of the file where its blocks are verified.
    index: usize,
    verifier: Option<&'a mut Verifier>,
}

impl Source for Batch<'_> {
    fn next(
        &mut self,
        _system: &mut System,
        slots: &Slots,
        _now: Nanoseconds,
    ) -> Result<RingStep, ProgramError> {
        if !slots.are_full()
            && let Some(request) = self.requests.next()
        {
            return Ok(RingStep::Put(*request));
        }
        Ok(RingStep::drain(slots))
    }

    fn prepare(&mut self, system: &mut System, request: &Submission) {
        if let Some(verifier) = &mut self.verifier {
            verifier.prepare(system, *request, self.index);
        }
    }

    fn complete(
        &mut self,
        system: &mut System,
        completed: &Completed,
        _now: Nanoseconds,
    ) -> Result<(), ProgramError> {
        let path = || self.path.to_owned();
        completed.check(path)?;
        match &mut self.verifier {
            Some(verifier) => verifier.complete(system, completed.request.slot, |_| path()),
            None => Ok(()),
        }
    }

    fn end_reap(
        &mut self,
        system: &mut System,
        waiting: &[Submission],
        _now: Nanoseconds,
    ) -> Result<(), ProgramError> {
        if let Some(verifier) = &mut self.verifier {
            verifier.move_rests(system, waiting);
        }
        Ok(())
    }
}

impl Slots {
    /// Issues requests of one file in order, and waits for all. Nothing else may be in
    /// flight. `index` is that of the file where its blocks are verified.
    pub(crate) async fn carry_out(
        &mut self,
        (system, path, index): (&mut System, &str, usize),
        requests: &[Submission],
        verifier: Option<&mut Verifier>,
    ) -> Result<(), ProgramError> {
        let mut batch = Batch {
            requests: requests.iter(),
            path,
            index,
            verifier,
        };
        let mut ring = Ring {
            system,
            slots: self,
            think: Nanoseconds::ZERO,
        };
        ring.run(&mut batch).await
    }
}
