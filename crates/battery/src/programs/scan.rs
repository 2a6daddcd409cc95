//! Program `scan`: several readers of the same area or of different areas, each of which starts
//! some time after the previous one (Zachariassen 1987, the parallel fscks).

use crate::blocks::{ensure_file, read_block, seek_to};
use crate::parameter::{Field, Value, choices};
use crate::pattern::{Entry, Facts, Pattern, Place, Steps};
use crate::program::Input;
use crate::worker::{Medium, Worker};
use diskperf_system::{Buffer, Open, System};

pub(crate) const PROGRAMS: &[Entry] = &[Entry {
    name: "scan",
    does: "several readers of the same or of different areas (1987)",
    files: "area",
    pattern: || {
        Box::new(Scan {
            readers: 4,
            areas: Areas::Same,
            offset_ms: 100,
            call_bytes: 8192,
        })
    },
}];

#[derive(Clone, Debug)]
struct Scan {
    readers: u64,
    areas: Areas,
    offset_ms: u64,
    call_bytes: u64,
}

choices! {
    /// Choice of the areas that the readers read.
    Areas {
        /// The same area for all readers.
        Same = "same",
        /// An area of its own for each reader.
        Different = "different",
    }
}

impl Pattern for Scan {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field {
                name: "readers",
                meaning: "readers at once",
                value: Value::Count(&mut self.readers, 1, 256),
            },
            Field {
                name: "areas",
                meaning: "whether the readers read the same bytes",
                value: Value::Choice(&mut self.areas),
            },
            Field {
                name: "offset_ms",
                meaning: "milliseconds from the start of one reader to that of the next",
                value: Value::Count(&mut self.offset_ms, 0, 3_600_000),
            },
            Field::call_bytes(&mut self.call_bytes, "bytes that one call reads"),
        ]
    }

    fn facts(&self) -> Facts {
        Facts {
            workers: self.readers as u32,
            offset_ms: self.offset_ms,
            ..Facts::reading(self.call_bytes)
        }
    }

    fn file_bytes(&self, size_bytes: u64) -> u64 {
        self.area_count().saturating_mul(size_bytes)
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        // On a device the areas lie one behind the other.
        let areas = match worker.medium {
            Medium::Directory => 1,
            Medium::Device | Medium::File => self.area_count(),
        };
        vec![Input::read(self.input(worker), areas * worker.size_bytes)]
    }

    /// Makes all areas, one after the other, in the first reader. If they were made at the same
    /// time, their blocks would be interleaved on the disk.
    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(async move {
            if worker.index == 0 {
                for area in 0..self.area_count() as u32 {
                    ensure_file(system, worker, &Self::path(worker, area), worker.size_bytes)
                        .await?;
                }
            }
            Ok(())
        })
    }

    fn run<'a>(&'a self, (system, worker): Place<'a>, buffer: &'a mut Buffer) -> Steps<'a> {
        Box::pin(async move {
            let file = system
                .open(&self.input(worker), Open::READ.direct(worker.direct))
                .await?;
            if worker.medium != Medium::Directory {
                seek_to(
                    system,
                    file,
                    u64::from(self.area(worker)) * worker.size_bytes,
                )
                .await?;
            }
            let block = &mut buffer[..self.call_bytes as usize];
            for _ in 0..worker.size_bytes / self.call_bytes {
                read_block(system, file, block, worker.think).await?;
            }
            Ok(())
        })
    }
}

impl Scan {
    fn area(&self, worker: &Worker) -> u32 {
        match self.areas {
            Areas::Same => 0,
            Areas::Different => worker.index,
        }
    }

    fn area_count(&self) -> u64 {
        match self.areas {
            Areas::Same => 1,
            Areas::Different => self.readers,
        }
    }

    fn path(worker: &Worker, area: u32) -> String {
        worker.file(&format!("area{area}"))
    }

    fn input(&self, worker: &Worker) -> String {
        Self::path(worker, self.area(worker))
    }
}
