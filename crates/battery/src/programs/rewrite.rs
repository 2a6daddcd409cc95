//! Program `rewrite_8192`: overwrites an existing file one block at a time (Kridle and McKusick
//! 1983, appendix A). The file system allocates no blocks.

use crate::blocks::{ensure_file, write_file};
use crate::load::YesNo;
use crate::parameter::Field;
use crate::pattern::{Entry, Facts, Pattern, Place, Steps};
use crate::program::Input;
use crate::verify::calls::CallVerifier;
use crate::verify::verify_field;
use crate::worker::Worker;
use diskperf_system::{Buffer, Open, System};
use diskperf_timeline::WorkerMeasure;

pub(crate) const PROGRAMS: &[Entry] = &[Entry {
    name: "rewrite_8192",
    does: "writes over a file that exists, 8192 bytes a call (1983)",
    files: "tst2",
    pattern: || Box::new(Rewrite::of(8192)),
}];

#[derive(Clone, Debug)]
struct Rewrite {
    call_bytes: u64,
    verify: YesNo,
}

impl Rewrite {
    fn of(call_bytes: u64) -> Self {
        Self {
            call_bytes,
            verify: YesNo::No,
        }
    }
}

impl Pattern for Rewrite {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field::call_bytes(&mut self.call_bytes, "bytes that one call writes"),
            verify_field(&mut self.verify),
        ]
    }

    fn facts(&self) -> Facts {
        Facts::writing(self.call_bytes)
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        vec![Input {
            path: worker.shared_file(),
            length_bytes: worker.size_bytes,
            read: false,
        }]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.written_bytes
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(async move {
            ensure_file(system, worker, &worker.shared_file(), worker.size_bytes).await
        })
    }

    fn run<'a>(&'a self, (system, worker): Place<'a>, buffer: &'a mut Buffer) -> Steps<'a> {
        Box::pin(async move {
            let how = Open::READ_WRITE.direct(worker.direct);
            let file = system.open(&worker.shared_file(), how).await?;
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
