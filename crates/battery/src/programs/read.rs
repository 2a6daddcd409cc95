//! Program `read_8192`: one sequential pass over a file, one block at a time (Kridle and McKusick
//! 1983, appendix A).

use crate::blocks::{ensure_file, read_block};
use crate::parameter::ParameterField;
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker,
};
use crate::program::InputFile;
use crate::worker::Worker;
use diskperf_system::{Buffer, OpenOptions, System};

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "read_8192",
    summary: "reads a file in calls of 8192 bytes (1983)",
    file_set_name: "tst2",
    new_pattern: || Box::new(ReadProgram { call_bytes: 8192 }),
}];

#[derive(Clone, Debug)]
struct ReadProgram {
    call_bytes: u64,
}

impl AccessPattern for ReadProgram {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![ParameterField::new_call_bytes(
            &mut self.call_bytes,
            "bytes per read call",
        )]
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties::new_for_reads(self.call_bytes)
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        vec![InputFile::new_read(
            worker.shared_file_path(),
            worker.size_bytes,
        )]
    }

    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
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

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let file = system
                .open(
                    &worker.shared_file_path(),
                    OpenOptions::READ.with_direct(worker.direct_io),
                )
                .await?;
            let block = &mut buffer[..self.call_bytes as usize];
            for _ in 0..worker.size_bytes / self.call_bytes {
                read_block(system, file, block, worker.think_time).await?;
            }
            Ok(())
        })
    }
}
