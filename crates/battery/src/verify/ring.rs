//! Blocks that a ring's requests wrote are read back by it.

use super::Verifier;
use crate::load::slots::Slots;
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_system::{File, System};

/// Reads back what was written, from storage: past the page cache, or with it dropped. That is
/// no part of what is measured. Nothing else may be in flight.
pub(crate) async fn read_back(
    (system, worker): (&mut System, &Worker),
    slots: &mut Slots,
    mut verifier: Verifier,
    files: &[(File, String)],
) -> Result<(), ProgramError> {
    system.end_timed_part().await?;
    let shown = verifier.begin_read_back(system);
    if !worker.direct {
        for (_, path) in files {
            system.drop_cached(path).await?;
        }
    }
    let path = |file: usize| files[file].1.clone();
    loop {
        while !slots.are_full()
            && let Some(unread) = verifier.next_unread()
        {
            let slot = slots.put(unread.request(files[unread.file()].0));
            verifier.expect(slot, unread);
        }
        shown.show(system, &verifier);
        if slots.under_way() == 0 {
            break;
        }
        slots.submit(system).await?;
        slots.reap(system, 1, None).await?;
        while let Some(done) = slots.take(|request| path_of(files, request.file))? {
            verifier.complete(system, done.slot, path)?;
        }
    }
    system.count_verified(verifier.outcome()?);
    Ok(())
}

fn path_of(files: &[(File, String)], file: File) -> String {
    let found = files.iter().find(|(open, _)| *open == file);
    found.map(|(_, path)| path.clone()).unwrap_or_default()
}
