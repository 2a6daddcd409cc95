//! `rewrite_8192`: a file that exists, written over a block at a time (seed
//! 000, appendix A). No block is allocated.

use crate::blocks::{ensure_file, write_file};
use crate::parameter::Field;
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_system::{Buffer, Open, System};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rewrite {
    pub(crate) call_bytes: u64,
}

impl Rewrite {
    pub(crate) fn fields(&mut self) -> Vec<Field<'_>> {
        vec![Field::call_bytes(
            &mut self.call_bytes,
            "bytes that one call writes",
        )]
    }

    pub(crate) async fn prepare(
        &self,
        system: &mut System,
        worker: &Worker,
    ) -> Result<(), ProgramError> {
        ensure_file(system, worker, &worker.shared_file(), worker.size_bytes).await
    }

    pub(crate) async fn run(
        &self,
        system: &mut System,
        worker: &Worker,
        buffer: &mut Buffer,
    ) -> Result<(), ProgramError> {
        let how = Open::READ_WRITE.direct(worker.direct);
        let file = system.open(&worker.shared_file(), how).await?;
        write_file(
            system,
            file,
            (self.call_bytes, worker.size_bytes),
            buffer,
            worker.think,
        )
        .await
    }
}
