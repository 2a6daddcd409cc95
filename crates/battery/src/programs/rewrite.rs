//! `rewrite_8192`: a file that exists, written over a block at a time (Kridle and
//! McKusick 1983, appendix A). No block is allocated.

use crate::blocks::{ensure_file, write_file};
use crate::parameter::Field;
use crate::pattern::{Entry, Facts, Pattern, Place, Steps};
use crate::program::Input;
use crate::worker::Worker;
use diskperf_system::{Buffer, Open, System};
use diskperf_timeline::WorkerMeasure;

pub(crate) const PROGRAMS: &[Entry] = &[Entry {
    name: "rewrite_8192",
    does: "writes over a file that exists, 8192 bytes a call (1983)",
    files: "tst2",
    pattern: || Box::new(Rewrite { call_bytes: 8192 }),
}];

#[derive(Clone, Debug)]
struct Rewrite {
    call_bytes: u64,
}

impl Pattern for Rewrite {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![Field::call_bytes(
            &mut self.call_bytes,
            "bytes that one call writes",
        )]
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
