//! `scan`: several readers of the same or of different areas, each started a
//! while after the one before it (Zachariassen 1987, the parallel fscks).

use crate::blocks::{ensure_file, read_block, seek_to};
use crate::parameter::{Field, Value, choices};
use crate::program::ProgramError;
use crate::worker::{Medium, Worker};
use diskperf_system::{Buffer, Open, System};
use diskperf_timeline::Nanoseconds;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scan {
    pub(crate) readers: u64,
    pub(crate) areas: Areas,
    pub(crate) offset_ms: u64,
    pub(crate) call_bytes: u64,
}

choices! {
    /// Whether the readers read the same bytes.
    Areas {
        /// All read the same area.
        Same = "same",
        /// Each reads its own.
        Different = "different",
    }
}

impl Scan {
    pub(crate) fn fields(&mut self) -> Vec<Field<'_>> {
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

    /// When this reader starts, after the first one.
    pub(crate) fn start_offset(&self, worker: &Worker) -> Nanoseconds {
        Nanoseconds::from_millis(self.offset_ms * u64::from(worker.index))
    }

    /// When the last reader starts, after the first one.
    pub(crate) fn last_start(&self) -> Nanoseconds {
        Nanoseconds::from_millis(self.offset_ms * self.readers.saturating_sub(1))
    }

    /// Which of the areas this reader reads.
    fn area(&self, worker: &Worker) -> u32 {
        match self.areas {
            Areas::Same => 0,
            Areas::Different => worker.index,
        }
    }

    /// How many areas there are.
    pub(crate) fn area_count(&self) -> u64 {
        match self.areas {
            Areas::Same => 1,
            Areas::Different => self.readers,
        }
    }

    fn path(worker: &Worker, area: u32) -> String {
        worker.file(&format!("area{area}"))
    }

    pub(crate) fn input(&self, worker: &Worker) -> String {
        Self::path(worker, self.area(worker))
    }

    /// The first reader makes all areas, one after the other: made at the same
    /// time, their blocks would be mixed on the disk.
    pub(crate) async fn prepare(
        &self,
        system: &mut System,
        worker: &Worker,
    ) -> Result<(), ProgramError> {
        if worker.index == 0 {
            for area in 0..self.area_count() as u32 {
                ensure_file(system, worker, &Self::path(worker, area), worker.size_bytes).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn run(
        &self,
        system: &mut System,
        worker: &Worker,
        buffer: &mut Buffer,
    ) -> Result<(), ProgramError> {
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
    }
}
