//! Program `rewrite_8192`: overwrites an existing file one block at a time (Kridle and McKusick
//! 1983, appendix A). The file system allocates no blocks.

use crate::blocks::{ensure_file, write_file};
use crate::load::YesNo;
use crate::parameter::ParameterField;
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker,
};
use crate::program::InputFile;
use crate::verify::calls::CallVerifier;
use crate::verify::verify_field;
use crate::worker::Worker;
use diskperf_system::{Buffer, OpenOptions, System};
use diskperf_timeline::WorkerMeasure;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "rewrite_8192",
    summary: "overwrites an existing file in calls of 8192 bytes (1983)",
    file_set_name: "tst2",
    new_pattern: || Box::new(RewriteProgram::with_call_bytes(8192)),
}];

#[derive(Clone, Debug)]
struct RewriteProgram {
    call_bytes: u64,
    verify_writes: YesNo,
}

impl RewriteProgram {
    fn with_call_bytes(call_bytes: u64) -> Self {
        Self {
            call_bytes,
            verify_writes: YesNo::No,
        }
    }
}

impl AccessPattern for RewriteProgram {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            ParameterField::new_call_bytes(&mut self.call_bytes, "bytes per write call"),
            verify_field(&mut self.verify_writes),
        ]
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties::new_for_writes(self.call_bytes)
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        vec![InputFile {
            path: worker.shared_file_path(),
            length_bytes: worker.size_bytes,
            is_read_through: false,
        }]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.written_bytes
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
            let how = OpenOptions::READ_WRITE.with_direct(worker.direct_io);
            let file = system.open(&worker.shared_file_path(), how).await?;
            let sizes = (self.call_bytes, worker.size_bytes);
            let verifier =
                CallVerifier::new(self.verify_writes, (&*system, worker), self.call_bytes);
            let Some(mut verifier) = verifier else {
                return write_file(system, file, sizes, buffer, worker.think_time).await;
            };
            let (path, think) = (worker.shared_file_path(), worker.think_time);
            verifier
                .write_file((&mut *system, file), path, sizes, think)
                .await?;
            verifier.read_back((system, worker)).await
        })
    }
}
