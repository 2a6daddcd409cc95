//! `write_4096` and `write_8192`: a new file, written a block at a time (Kridle and
//! McKusick 1983, appendix A). The two are one program with two sizes of call.

use crate::blocks::{create, remove_file, write_file};
use crate::parameter::Field;
use crate::pattern::{Entry, Facts, Pattern, Place, Steps};
use crate::worker::Worker;
use diskperf_system::{Buffer, System};
use diskperf_timeline::WorkerMeasure;

pub(crate) const PROGRAMS: &[Entry] = &[
    Entry {
        name: "write_4096",
        does: "writes a new file, 4096 bytes a call (1983)",
        files: "tst2",
        pattern: || Box::new(Write { call_bytes: 4096 }),
    },
    Entry {
        name: "write_8192",
        does: "writes a new file, 8192 bytes a call (1983)",
        files: "tst2",
        pattern: || Box::new(Write { call_bytes: 8192 }),
    },
];

#[derive(Clone, Debug)]
struct Write {
    call_bytes: u64,
}

impl Pattern for Write {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![Field::call_bytes(
            &mut self.call_bytes,
            "bytes that one call writes",
        )]
    }

    fn facts(&self) -> Facts {
        Facts::writing(self.call_bytes)
    }

    fn prepared_bytes(&self, _size_bytes: u64) -> u64 {
        0
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.written_bytes
    }

    /// `rm -f` before the clock starts, as in the paper's script.
    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(async move { remove_file(system, worker.medium, &worker.shared_file()).await })
    }

    fn run<'a>(&'a self, (system, worker): Place<'a>, buffer: &'a mut Buffer) -> Steps<'a> {
        Box::pin(async move {
            let file = create(system, worker.medium, &worker.shared_file(), worker.direct).await?;
            write_file(
                system,
                file,
                (self.call_bytes, worker.size_bytes),
                buffer,
                worker.think,
            )
            .await
        })
    }
}
