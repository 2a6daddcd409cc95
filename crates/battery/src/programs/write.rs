//! Programs `write_4096` and `write_8192`: write a new file one block at a time (Kridle and
//! McKusick 1983, appendix A). They are one program with two call sizes.

use crate::blocks::{create, remove_file, write_file};
use crate::load::YesNo;
use crate::parameter::Field;
use crate::pattern::{Entry, Facts, Pattern, Place, Steps};
use crate::verify::calls::CallVerifier;
use crate::verify::verify_field;
use crate::worker::Worker;
use diskperf_system::{Buffer, System};
use diskperf_timeline::WorkerMeasure;

pub(crate) const PROGRAMS: &[Entry] = &[
    Entry {
        name: "write_4096",
        does: "writes a new file, 4096 bytes a call (1983)",
        files: "tst2",
        pattern: || Box::new(Write::of(4096)),
    },
    Entry {
        name: "write_8192",
        does: "writes a new file, 8192 bytes a call (1983)",
        files: "tst2",
        pattern: || Box::new(Write::of(8192)),
    },
];

#[derive(Clone, Debug)]
struct Write {
    call_bytes: u64,
    verify: YesNo,
}

impl Write {
    fn of(call_bytes: u64) -> Self {
        Self {
            call_bytes,
            verify: YesNo::No,
        }
    }
}

impl Pattern for Write {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field::call_bytes(&mut self.call_bytes, "bytes that one call writes"),
            verify_field(&mut self.verify),
        ]
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

    /// Removes the file before the clock starts, like `rm -f` in the paper's script.
    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(async move { remove_file(system, worker.medium, &worker.shared_file()).await })
    }

    fn run<'a>(&'a self, (system, worker): Place<'a>, buffer: &'a mut Buffer) -> Steps<'a> {
        Box::pin(async move {
            let file = create(system, worker.medium, &worker.shared_file(), worker.direct).await?;
            let sizes = (self.call_bytes, worker.size_bytes);
            let verifier = CallVerifier::new(self.verify, (&*system, worker), self.call_bytes);
            let Some(mut verifier) = verifier else {
                return write_file(system, file, sizes, buffer, worker.think).await;
            };
            let (path, think) = (worker.shared_file(), worker.think);
            verifier
                .write_file((&mut *system, file), path, sizes, think)
                .await?;
            verifier.read_back((system, worker)).await
        })
    }
}
