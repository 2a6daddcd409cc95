//! Carries lists of requests out, with as many under way as the ring has slots.

use crate::program::ProgramError;
use diskperf_system::{Call, Completion, Errno, Error, Operation, Submission, System};

/// The slots of a ring, none of which is under way between two lists.
pub(crate) struct Window {
    free: Vec<u32>,
    /// What each slot is doing.
    slots: Vec<Option<Submission>>,
    batch: Vec<Submission>,
    done: Vec<Completion>,
}

impl Window {
    /// Of a ring of so many slots.
    pub(crate) fn new(depth: u64) -> Self {
        Self {
            free: (0..depth as u32).rev().collect(),
            slots: vec![None; depth as usize],
            batch: Vec::with_capacity(depth as usize),
            done: Vec::with_capacity(depth as usize),
        }
    }

    /// Submits all requests, whatever slots they name, in order, and waits for all.
    pub(crate) async fn carry_out(
        &mut self,
        (system, path): (&mut System, &str),
        requests: &[Submission],
    ) -> Result<(), ProgramError> {
        let mut next = 0;
        while next < requests.len() || self.free.len() < self.slots.len() {
            while let (Some(request), Some(slot)) = (requests.get(next), self.free.last()) {
                let request = Submission {
                    slot: *slot,
                    ..*request
                };
                self.slots[*slot as usize] = Some(request);
                self.batch.push(request);
                self.free.pop();
                next += 1;
            }
            if !self.batch.is_empty() {
                system.submit(&self.batch).await?;
                self.batch.clear();
            }
            system.reap(1, None, &mut self.done).await?;
            for Completion { slot, result, .. } in self.done.drain(..) {
                let request = self.slots[slot as usize].take();
                let request = request.expect("a slot that completes was under way");
                complete(path, request, result)?;
                self.free.push(slot);
            }
        }
        Ok(())
    }
}

/// Whether a request did all that it was to do.
fn complete(
    path: &str,
    request: Submission,
    result: Result<u32, Errno>,
) -> Result<(), ProgramError> {
    match result {
        Err(errno) => Err(failed(path, request.operation, errno)),
        Ok(moved) if moved >= request.bytes => Ok(()),
        Ok(_) if request.operation == Operation::Read => Err(ProgramError::ShortFile),
        Ok(_) => Err(ProgramError::NothingTaken),
    }
}

/// The error of a request.
#[cold]
pub(crate) fn failed(path: &str, operation: Operation, errno: Errno) -> ProgramError {
    let call = match operation {
        Operation::Read => Call::Read,
        Operation::Write => Call::Write,
        Operation::Fsync => Call::Fsync,
        Operation::Fdatasync => Call::Fdatasync,
        Operation::Discard => Call::Discard,
    };
    Error::failed(call, path, errno).into()
}
