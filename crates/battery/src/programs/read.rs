//! Program `read_8192`: one sequential pass over a file, one block at a time (Kridle and McKusick
//! 1983, appendix A).

use crate::blocks::{ensure_file, read_block};
use crate::parameter::Field;
use crate::pattern::{Entry, Facts, Pattern, Place, Steps};
use crate::program::Input;
use crate::worker::Worker;
use diskperf_system::{Buffer, Open, System};

pub(crate) const PROGRAMS: &[Entry] = &[Entry {
    name: "read_8192",
    does: "reads a file, 8192 bytes a call (1983)",
    files: "tst2",
    pattern: || Box::new(Read { call_bytes: 8192 }),
}];

#[derive(Clone, Debug)]
struct Read {
    call_bytes: u64,
}

impl Pattern for Read {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![Field::call_bytes(
            &mut self.call_bytes,
            "bytes that one call reads",
        )]
    }

    fn facts(&self) -> Facts {
        Facts::reading(self.call_bytes)
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        vec![Input::read(worker.shared_file(), worker.size_bytes)]
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(async move {
            ensure_file(system, worker, &worker.shared_file(), worker.size_bytes).await
        })
    }

    fn run<'a>(&'a self, (system, worker): Place<'a>, buffer: &'a mut Buffer) -> Steps<'a> {
        Box::pin(async move {
            let file = system
                .open(&worker.shared_file(), Open::READ.direct(worker.direct))
                .await?;
            let block = &mut buffer[..self.call_bytes as usize];
            for _ in 0..worker.size_bytes / self.call_bytes {
                read_block(system, file, block, worker.think).await?;
            }
            Ok(())
        })
    }
}
