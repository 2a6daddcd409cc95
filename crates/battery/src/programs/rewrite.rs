//! Program `rewrite_8192`: overwrites an existing file one block at a time (Kridle and McKusick
//! 1983, appendix A). The file system allocates no blocks.

use crate::blocks::{ensure_file, write_file};
use crate::load::YesNo;
use crate::parameter::ParameterField;
use crate::pattern::{Pattern, PhaseFuture, ProgramEntry, ProgramProperties, RunContext};
use crate::program::Input;
use crate::verify::calls::CallVerifier;
use crate::verify::verify_field;
use crate::worker::Worker;
use diskperf_system::{Buffer, Open, System};
use diskperf_timeline::WorkerMeasure;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "rewrite_8192",
    summary: "overwrites an existing file in calls of 8192 bytes (1983)",
    files_name: "tst2",
    new_pattern: || Box::new(RewriteProgram::with_call_bytes(8192)),
}];

#[derive(Clone, Debug)]
struct RewriteProgram {
    call_bytes: u64,
    verify: YesNo,
}

impl RewriteProgram {
    fn with_call_bytes(call_bytes: u64) -> Self {
        Self {
            call_bytes,
            verify: YesNo::No,
        }
    }
}

impl Pattern for RewriteProgram {
    fn fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            ParameterField::call_bytes(&mut self.call_bytes, "bytes per write call"),
            verify_field(&mut self.verify),
        ]
    }

    fn properties(&self) -> ProgramProperties {
        ProgramProperties::for_writes(self.call_bytes)
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        vec![Input {
            path: worker.shared_file_path(),
            length_bytes: worker.size_bytes,
            read: false,
        }]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.written_bytes
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
            let how = Open::READ_WRITE.direct(worker.direct);
            let file = system.open(&worker.shared_file_path(), how).await?;
            let sizes = (self.call_bytes, worker.size_bytes);
            let verifier = CallVerifier::new(self.verify, (&*system, worker), self.call_bytes);
            let Some(mut verifier) = verifier else {
                return write_file(system, file, sizes, buffer, worker.think).await;
            };
            let (path, think) = (worker.shared_file_path(), worker.think);
            verifier
                .write_file((&mut *system, file), path, sizes, think)
                .await?;
            verifier.read_back((system, worker)).await
        })
    }
}
