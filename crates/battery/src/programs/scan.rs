//! Program `scan`: several readers of the same area or of different areas, each of which starts
//! some time after the previous one (Zachariassen 1987, the parallel fscks).

use crate::blocks::{ensure_file, read_block, seek_to_offset};
use crate::parameter::{ParameterField, ParameterValue, choices};
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker,
};
use crate::program::InputFile;
use crate::worker::{Medium, Worker};
use diskperf_system::{Buffer, OpenOptions, System};

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "scan",
    summary: "several parallel readers of the same area or of different areas (1987)",
    file_set_name: "area",
    new_pattern: || {
        Box::new(ScanProgram {
            reader_count: 4,
            area_choice: Areas::Same,
            offset_ms: 100,
            call_bytes: 8192,
        })
    },
}];

#[derive(Clone, Debug)]
struct ScanProgram {
    reader_count: u64,
    area_choice: Areas,
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

impl AccessPattern for ScanProgram {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            ParameterField {
                name: "readers",
                description: "number of parallel readers",
                value: ParameterValue::Count(&mut self.reader_count, 1, 256),
            },
            ParameterField {
                name: "areas",
                description: "choice between one area for all readers and one area for each",
                value: ParameterValue::NamedChoice(&mut self.area_choice),
            },
            ParameterField {
                name: "offset_ms",
                description: "delay between the starts of two readers, in milliseconds",
                value: ParameterValue::Count(&mut self.offset_ms, 0, 3_600_000),
            },
            ParameterField::new_call_bytes(&mut self.call_bytes, "bytes per read call"),
        ]
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties {
            worker_count: self.reader_count as u32,
            start_offset_ms: self.offset_ms,
            ..ProgramProperties::new_for_reads(self.call_bytes)
        }
    }

    fn file_bytes(&self, size_bytes: u64) -> u64 {
        self.area_count().saturating_mul(size_bytes)
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        // On a device the areas lie one behind the other.
        let areas = match worker.medium {
            Medium::Directory => 1,
            Medium::Device | Medium::File => self.area_count(),
        };
        vec![InputFile::new_read(
            self.input_path(worker),
            areas * worker.size_bytes,
        )]
    }

    /// Makes all areas, one after the other, in the first reader. If they were made at the same
    /// time, their blocks would be interleaved on the disk.
    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            if worker.worker_index == 0 {
                for area in 0..self.area_count() as u32 {
                    ensure_file(
                        system,
                        worker,
                        &Self::area_path(worker, area),
                        worker.size_bytes,
                    )
                    .await?;
                }
            }
            Ok(())
        })
    }

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let file = system
                .open(
                    &self.input_path(worker),
                    OpenOptions::READ.with_direct(worker.direct_io),
                )
                .await?;
            if worker.medium != Medium::Directory {
                seek_to_offset(
                    system,
                    file,
                    u64::from(self.area_index(worker)) * worker.size_bytes,
                )
                .await?;
            }
            let block = &mut buffer[..self.call_bytes as usize];
            for _ in 0..worker.size_bytes / self.call_bytes {
                read_block(system, file, block, worker.think_time).await?;
            }
            Ok(())
        })
    }
}

impl ScanProgram {
    fn area_index(&self, worker: &Worker) -> u32 {
        match self.area_choice {
            Areas::Same => 0,
            Areas::Different => worker.worker_index,
        }
    }

    fn area_count(&self) -> u64 {
        match self.area_choice {
            Areas::Same => 1,
            Areas::Different => self.reader_count,
        }
    }

    fn area_path(worker: &Worker, area: u32) -> String {
        worker.file_path(&format!("area{area}"))
    }

    fn input_path(&self, worker: &Worker) -> String {
        Self::area_path(worker, self.area_index(worker))
    }
}
