//! `write_4096` and `write_8192`: a new file, written a block at a time (seed
//! 000, appendix A). The two are one program with two sizes of call.

use crate::blocks::{create, remove_file, write_file};
use crate::parameter::Field;
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_system::{Buffer, System};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub(crate) call_bytes: u64,
}

impl Write {
    pub(crate) fn fields(&mut self) -> Vec<Field<'_>> {
        vec![Field::call_bytes(
            &mut self.call_bytes,
            "bytes that one call writes",
        )]
    }

    /// `rm -f` before the clock starts, as in the paper's script.
    pub(crate) async fn prepare(
        &self,
        system: &mut System,
        worker: &Worker,
    ) -> Result<(), ProgramError> {
        remove_file(system, worker.medium, &worker.shared_file()).await
    }

    pub(crate) async fn run(
        &self,
        system: &mut System,
        worker: &Worker,
        buffer: &mut Buffer,
    ) -> Result<(), ProgramError> {
        let file = create(system, worker.medium, &worker.shared_file(), worker.direct).await?;
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
