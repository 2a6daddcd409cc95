//! Program `read_8192`: one sequential pass over a file, one block at a time (Kridle and McKusick
//! 1983, appendix A).

use crate::blocks::{ensure_file, read_block};
use crate::parameter::ParameterField;
use crate::pattern::{Pattern, PhaseFuture, ProgramEntry, ProgramProperties, RunContext};
use crate::program::Input;
use crate::worker::Worker;
use diskperf_system::{Buffer, Open, System};

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "read_8192",
    summary: "reads a file in calls of 8192 bytes (1983)",
    files_name: "tst2",
    new_pattern: || Box::new(ReadProgram { call_bytes: 8192 }),
}];

#[derive(Clone, Debug)]
struct ReadProgram {
    call_bytes: u64,
}

impl Pattern for ReadProgram {
    fn fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![ParameterField::call_bytes(
            &mut self.call_bytes,
            "bytes per read call",
        )]
    }

    fn properties(&self) -> ProgramProperties {
        ProgramProperties::for_reads(self.call_bytes)
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        vec![Input::read(worker.shared_file_path(), worker.size_bytes)]
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            ensure_file(
                system,
                worker,
                &worker.shared_file_path(),
                worker.size_bytes,
            )
            .await
        })
    }

    fn run<'a>(
        &'a self,
        (system, worker): RunContext<'a>,
        buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let file = system
                .open(&worker.shared_file_path(), Open::READ.direct(worker.direct))
                .await?;
            let block = &mut buffer[..self.call_bytes as usize];
            for _ in 0..worker.size_bytes / self.call_bytes {
                read_block(system, file, block, worker.think).await?;
            }
            Ok(())
        })
    }
}
