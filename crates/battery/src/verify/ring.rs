//! Blocks that a ring's requests wrote are read back by it.

use super::{ShownReadBack, Unread, Verifier};
use crate::program::ProgramError;
use crate::ring::slots::{Completed, Slots};
use crate::ring::{Ring, RingStep, Source};
use crate::worker::Worker;
use diskperf_system::{File, Submission, System};
use diskperf_timeline::Nanoseconds;

/// Reads of the blocks that were written.
struct ReadBack<'a> {
    verifier: Verifier,
    files: &'a [(File, String)],
    shown: ShownReadBack,
    /// Block of the request that gets its slot.
    next: Option<Unread>,
}

impl Source for ReadBack<'_> {
    fn next(
        &mut self,
        system: &mut System,
        slots: &Slots,
        _now: Nanoseconds,
    ) -> Result<RingStep, ProgramError> {
        if !slots.are_full()
            && let Some(unread) = self.verifier.next_unread()
        {
            self.next = Some(unread);
            return Ok(RingStep::Put(unread.request(self.files[unread.file()].0)));
        }
        self.shown.show(system, &self.verifier);
        Ok(RingStep::drain(slots))
    }

    fn prepare(&mut self, _system: &mut System, request: &Submission) {
        if let Some(unread) = self.next.take() {
            self.verifier.expect(request.slot, unread);
        }
    }

    fn complete(
        &mut self,
        system: &mut System,
        completed: &Completed,
        _now: Nanoseconds,
    ) -> Result<(), ProgramError> {
        let request = &completed.request;
        completed.check(|| path_of(self.files, request.file))?;
        let path = |file: usize| self.files[file].1.clone();
        self.verifier.complete(system, request.slot, path)
    }
}

/// Reads back what was written, from storage: past the page cache, or with it dropped. That is
/// no part of what is measured. Nothing else may be in flight.
pub(crate) async fn read_back(
    (system, worker): (&mut System, &Worker),
    slots: &mut Slots,
    verifier: Verifier,
    files: &[(File, String)],
) -> Result<(), ProgramError> {
    system.end_timed_part().await?;
    let shown = verifier.begin_read_back(system);
    if !worker.direct {
        for (_, path) in files {
            system.drop_cached(path).await?;
        }
    }
    let mut source = ReadBack {
        verifier,
        files,
        shown,
        next: None,
    };
    let mut ring = Ring {
        system,
        slots,
        think: Nanoseconds::ZERO,
    };
    ring.run(&mut source).await?;
    system.count_verified(source.verifier.outcome()?);
    Ok(())
}

fn path_of(files: &[(File, String)], file: File) -> String {
    let found = files.iter().find(|(open, _)| *open == file);
    found.map(|(_, path)| path.clone()).unwrap_or_default()
}
