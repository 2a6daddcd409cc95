//! Programs `write_4096` and `write_8192`: write a new file one block at a time (Kridle and
//! McKusick 1983, appendix A). They are one program with two call sizes.

use crate::blocks::{create_empty_file, remove_file, write_file};
use crate::load::YesNo;
use crate::parameter::ParameterField;
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker,
};
use crate::verify::calls::CallVerifier;
use crate::verify::verify_field;
use crate::worker::Worker;
use diskperf_system::{Buffer, System};
use diskperf_timeline::WorkerMeasure;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[
    ProgramEntry {
        name: "write_4096",
        summary: "writes a new file in calls of 4096 bytes (1983)",
        file_set_name: "tst2",
        new_pattern: || Box::new(WriteProgram::with_call_bytes(4096)),
    },
    ProgramEntry {
        name: "write_8192",
        summary: "writes a new file in calls of 8192 bytes (1983)",
        file_set_name: "tst2",
        new_pattern: || Box::new(WriteProgram::with_call_bytes(8192)),
    },
];

#[derive(Clone, Debug)]
struct WriteProgram {
    call_bytes: u64,
    verify_writes: YesNo,
}

impl WriteProgram {
    fn with_call_bytes(call_bytes: u64) -> Self {
        Self {
            call_bytes,
            verify_writes: YesNo::No,
        }
    }
}

impl AccessPattern for WriteProgram {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            ParameterField::new_call_bytes(&mut self.call_bytes, "bytes per write call"),
            verify_field(&mut self.verify_writes),
        ]
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties::new_for_writes(self.call_bytes)
    }

    fn prepared_bytes(&self, _size_bytes: u64) -> u64 {
        0
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.written_bytes
    }

    /// Removes the file before the clock starts, like `rm -f` in the paper's script.
    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(
            async move { remove_file(system, worker.medium, &worker.shared_file_path()).await },
        )
    }

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let file = create_empty_file(
                system,
                worker.medium,
                &worker.shared_file_path(),
                worker.direct_io,
            )
            .await?;
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
