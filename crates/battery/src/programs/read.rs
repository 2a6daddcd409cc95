//! `read_8192`: one sequential pass over a file, a block at a time (Kridle and McKusick 1983,
//! appendix A).

use crate::blocks::{ensure_file, read_block};
use crate::parameter::Field;
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_system::{Buffer, Open, System};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) call_bytes: u64,
}

impl Read {
    pub(crate) fn fields(&mut self) -> Vec<Field<'_>> {
        vec![Field::call_bytes(
            &mut self.call_bytes,
            "bytes that one call reads",
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
        let file = system
            .open(&worker.shared_file(), Open::READ.direct(worker.direct))
            .await?;
        let block = &mut buffer[..self.call_bytes as usize];
        for _ in 0..worker.size_bytes / self.call_bytes {
            read_block(system, file, block, worker.think).await?;
        }
        Ok(())
    }
}
